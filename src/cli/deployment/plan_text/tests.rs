//! Tests of the text of plans.

use super::*;
use crate::deployment::changes::Wait;

fn planned(stage: Stage, state: StageState, changes: &[(&str, ChangeKind, &str)]) -> PlannedStage {
    let change = |(host, kind, what): &(&str, ChangeKind, &str)| PlannedChange::example_change(host, *kind, what);
    let found = Changes { changes: changes.iter().map(change).collect(), ..Changes::default() };
    PlannedStage { stage, state, hosts: vec!["h1".into(), "h2".into()], found }
}

#[test]
fn a_plan_counts_by_host_and_names_what_is_not_installed_yet() {
    let mut removals = planned(Stage::Removals, StageState::Differs, &[("beta", ChangeKind::Object, "Cluster beta")]);
    removals.hosts = vec!["beta".into()];
    removals.found.notes.push("beta leaves with 3 workloads:\nDeployment web".into());
    let changes =
        [("h1", ChangeKind::File, "/etc/a"), ("h1", ChangeKind::File, "/etc/b"), ("h1", ChangeKind::Unit, "etcd")];
    let mut waiting = planned(Stage::ControlPlane, StageState::Waits, &[]);
    waiting.found.waits = ["h2", "h1"].map(|host| wait(host, Stage::Etcd, "etcd is not installed yet")).into();
    let stages = vec![
        planned(Stage::Etcd, StageState::Differs, &changes),
        waiting,
        planned(Stage::Members, StageState::Same, &[]),
        removals,
    ];
    let plan_of = plan_with(stages);
    let expected = "\
Plan for prod

etcd: 1 host
  h1           2 files, 1 unit

controlPlane: needs etcd first (etcd is not installed yet): h1, h2

removals: to remove: beta
  beta         1 API object
  beta leaves with 3 workloads:
    Deployment web

nothing to do: members

To do: 2 files, 1 unit, 1 API object; after that controlPlane; 1 member removed.
";
    assert_eq!(plan(&plan_of, false), expected);
    assert!(plan(&plan_of, true).contains("    file   /etc/a\n"));
}

fn wait(host: &str, stage: Stage, reason: &str) -> Wait {
    Wait { host: host.into(), stage, reason: reason.into() }
}

fn failure(host: &str, message: &str) -> TaskFailure {
    TaskFailure { host: host.into(), task: "Check".into(), message: message.into(), unreachable: false }
}

fn plan_with(stages: Vec<PlannedStage>) -> Plan {
    Plan {
        windlass_plan: 1,
        deployment: "prod".into(),
        made: 0,
        by: String::new(),
        sources: Vec::new(),
        reach: Default::default(),
        stages,
        observed: Default::default(),
    }
}

#[test]
fn a_stage_that_is_refused_says_where_and_why_and_each_reason_once() {
    let mut etcd = planned(Stage::Etcd, StageState::Refused, &[("h1", ChangeKind::File, "/etc/a")]);
    etcd.found.failures = vec![failure("h2", "too little"), failure("h1", "too little"), failure("h2", "no clock")];
    let failures: Vec<&TaskFailure> = etcd.found.failures.iter().collect();
    assert_eq!(body(&etcd, &failures, false), "  h1, h2: too little\n  h2: no clock\n");
    assert_eq!(total(&plan_with(vec![etcd])), "Nothing can be applied: etcd is refused.");
}

#[test]
fn what_several_stages_refuse_alike_is_said_once() {
    let refused = |stage, failures: &[TaskFailure]| {
        let mut planned = planned(stage, StageState::Refused, &[]);
        planned.found.failures = failures.to_vec();
        planned
    };
    let login = failure("h1", "permission denied");
    let stages = vec![
        refused(Stage::Etcd, std::slice::from_ref(&login)),
        refused(Stage::ControlPlane, std::slice::from_ref(&login)),
        refused(Stage::Members, &[login, failure("north", "north: there is no kubeconfig")]),
    ];
    let expected = "\
Plan for prod

etcd: refused
  h1: permission denied

controlPlane: refused for the same reason

members: refused
  north: there is no kubeconfig

Nothing can be applied: etcd, controlPlane and members are refused.
";
    assert_eq!(plan(&plan_with(stages), false), expected);
}

#[test]
fn a_plan_says_which_services_restart_and_in_which_order() {
    let service = |host: &str, unit: &str, action, clients| ServiceChange {
        host: host.into(),
        unit: unit.into(),
        action,
        clients,
        with: Vec::new(),
    };
    let restart = |host: &str, unit: &str, clients| service(host, unit, ServiceAction::Restart, clients);
    let all = [
        service("h3", "etcd", ServiceAction::Start, Clients::Unaffected),
        restart("h2", "etcd", Clients::Reconnect),
        restart("h1", "etcd", Clients::Reconnect),
        restart("h1", "karmada-scheduler", Clients::Unaffected),
        ServiceChange {
            with: vec!["karmada-apiserver".into()],
            ..restart("h1", "karmada-webhook", Clients::Unaffected)
        },
        service("h1", "karmada-load-balancer", ServiceAction::Reload, Clients::Unaffected),
        service("h2", "karmada-load-balancer", ServiceAction::Reload, Clients::Unaffected),
        service("h2", "karmada-agent-m1", ServiceAction::Stop, Clients::Unaffected),
        service("h1", "karmada-agent-m1", ServiceAction::Stop, Clients::Unaffected),
    ];
    let hosts = ["h1".to_owned(), "h2".to_owned()];
    let restarts = "  reload       karmada-load-balancer: h1, h2\n  restart      etcd: h2, h1, one after the other; clients reconnect to another host\n  \
                    restart      karmada-scheduler: h1\n  \
                    restart      karmada-webhook and karmada-apiserver: h1\n";
    assert_eq!(
        services(&all, &hosts, false),
        format!("  start        1 service\n  stop         2 services\n{restarts}")
    );
    let named = "  start        etcd: h3\n  stop         karmada-agent-m1: h1, h2\n";
    assert_eq!(services(&all, &hosts, true), format!("{named}{restarts}"));
    let mut planned = planned(Stage::Etcd, StageState::Differs, &[("h1", ChangeKind::File, "/etc/a")]);
    planned.found.services = all.to_vec();
    assert_eq!(total(&plan_with(vec![planned])), "To do: 1 file; 5 service restarts.");
}

#[test]
fn members_that_are_refused_hold_up_nothing_else() {
    let mut members = planned(Stage::Members, StageState::Differs, &[("south", ChangeKind::Object, "Cluster south")]);
    members.found.failures.push(failure("north", "its kubeconfig has expired"));
    let mut plan_of = plan_with(vec![members]);
    plan_of.reach.left_out.push("h3".into());
    let expected = "\
Plan for prod
skipped, because they do not answer: h3

members: 1 host
  south        1 API object
  north: its kubeconfig has expired

To do: 1 API object.
Not done: north is refused.
Not done on h3: run this again when they answer.
";
    assert_eq!(plan(&plan_of, false), expected);
    // Nothing else to do: it is still said.
    plan_of.stages[0].state = StageState::Same;
    plan_of.stages[0].found.changes.clear();
    assert!(plan(&plan_of, false).contains("members: nothing to do\n  north: its kubeconfig has expired\n"));
}
