//! What is done to a unit that is like so.

use super::super::arguments;
use super::*;

fn status(load: &str, active: &str, file: &str) -> Status {
    Status::parse(&format!(
        "LoadState={load}\nActiveState={active}\nUnitFileState={file}\nExecStart={{ path=/x ; \nargv[]=/x }}\nAfter=\n"
    ))
}

fn verbs(unit: &SystemdService, status: &Status) -> Vec<&'static str> {
    let enabled = match status.enabled() {
        Enabled::Known(enabled) => enabled,
        Enabled::Ask => panic!("not known"),
    };
    unit.actions(status, enabled).verbs
}

#[test]
fn properties_over_several_lines_are_read() {
    let status = status("loaded", "active", "enabled");
    assert_eq!(status.get("ExecStart"), "{ path=/x ; \nargv[]=/x }");
    assert_eq!(status.0.get("After").map(String::as_str), Some(""));
}

#[test]
fn only_what_differs_is_done() {
    let unit = |state, enabled, masked| SystemdService { state, enabled, masked, ..SystemdService::default() };
    let (running, stopped) = (status("loaded", "active", "enabled"), status("loaded", "failed", "disabled"));
    let started = unit(Some(UnitState::Started), Some(true), None);
    assert!(verbs(&started, &running).is_empty());
    assert_eq!(verbs(&started, &stopped), ["enable", "start"]);
    let away = unit(Some(UnitState::Stopped), Some(false), Some(true));
    assert_eq!(verbs(&away, &running), ["mask", "disable", "stop"]);
    let masked = status("masked", "inactive", "masked");
    assert!(verbs(&away, &masked).is_empty());
    assert_eq!(verbs(&unit(None, None, Some(false)), &masked), ["unmask"]);
}

#[test]
fn restarting_or_reloading_what_does_not_run_starts_it() {
    for (state, verb) in [(UnitState::Restarted, "restart"), (UnitState::Reloaded, "reload")] {
        let unit = SystemdService { state: Some(state), ..SystemdService::default() };
        assert_eq!(verbs(&unit, &status("loaded", "active", "static")), [verb]);
        assert_eq!(verbs(&unit, &status("loaded", "inactive", "static")), ["start"]);
    }
}

#[test]
fn what_can_be_neither_enabled_nor_disabled_is_left_alone() {
    let unit = |enabled| SystemdService { enabled: Some(enabled), ..SystemdService::default() };
    let fixed = status("loaded", "active", "static");
    assert!(verbs(&unit(true), &fixed).is_empty() && verbs(&unit(false), &fixed).is_empty());
    assert_eq!(verbs(&unit(true), &status("loaded", "active", "enabled-runtime")), ["enable"]);
    assert_eq!(status("loaded", "active", "generated").enabled(), Enabled::Ask);
}

fn service(written: serde_json::Value) -> SystemdService {
    let vars = written.as_object().unwrap().iter();
    let vars = vars.map(|(name, value)| (name.as_str().into(), Value::from(minijinja::value::Serde(value.clone()))));
    let coerced = arguments::coerce(&Service::DOC, &vars.collect()).unwrap();
    arguments::parse_arguments::<Service>(coerced).unwrap().unit()
}

#[test]
fn service_hands_on_what_systemd_takes() {
    let unit = service(serde_json::json!({"name": "docker", "daemon_reload": true, "masked": false, "runlevel": "2"}));
    assert!(unit.daemon_reload && unit.masked == Some(false) && !unit.daemon_reexec);
    assert_eq!(service(serde_json::json!({"unit": "docker"})).name.as_deref(), Some("docker"));
    let unit = service(serde_json::json!({"daemon_reload": true}));
    assert!(unit.name.is_none() && unit.daemon_reload);
}

#[test]
fn a_users_systemd_is_found_without_a_login() {
    let unit = SystemdService { scope: Scope::User, ..SystemdService::default() };
    let crate::remote::RemoteErrorKind::Shell { line, .. } = unit.systemctl(&["start", "--", "a b"]).what else {
        panic!()
    };
    assert!(line.contains("/run/user/$(id -u)") && line.ends_with("exec 'systemctl' '--user' 'start' '--' 'a b'"));
}
