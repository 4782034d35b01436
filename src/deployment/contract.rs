//! What this program and its own playbooks agree on, each with a layout number. A playbook of another layout is refused.

use serde::{Deserialize, Serialize};

use crate::value::Value;

/// Something that a playbook reports in a variable, or in a statistic (`set_stats`), of its own.
pub trait Reported: serde::de::DeserializeOwned {
    /// The playbook that reports it.
    const PLAYBOOK: &'static str;
    /// The variable (`set_fact`) that holds it on each host, or the statistic that holds it for all.
    const VARIABLE: &'static str;
    /// The layout that this program reads.
    const LAYOUT: u32;

    /// Reads it.
    ///
    /// # Errors
    /// It is of another layout, or has not the fields of this one.
    fn from_report(value: &Value) -> Result<Self, String> {
        let layout = value.get_attr("layout").ok().and_then(|layout| u32::try_from(layout).ok());
        if layout != Some(Self::LAYOUT) {
            let found = layout.map_or_else(|| "no layout".to_owned(), |layout| format!("layout {layout}"));
            return Err(format!(
                "{} reports {found} in {}; this windlass reads layout {}\nhint: use the playbooks that belong to this \
                 version of windlass",
                Self::PLAYBOOK,
                Self::VARIABLE,
                Self::LAYOUT
            ));
        }
        Self::deserialize(value.clone())
            .map_err(|error| format!("cannot read what {} reports in {}: {error}", Self::PLAYBOOK, Self::VARIABLE))
    }
}

/// What a play of `observe.yml` found on a host. A play reports the fields that it observes.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observation {
    pub layout: u32,
    /// Configuration files, as `sha256sum` prints them: `DIGEST  PATH`.
    pub files: Vec<String>,
    /// Programs and links: `MODE:SIZE:TIME  'PATH'` or `MODE:SIZE:TIME  'LINK' -> 'TARGET'`.
    pub programs: Vec<String>,
    /// systemd units: `UNIT LOAD ACTIVE SUB DESCRIPTION`.
    pub units: Vec<String>,
    pub etcd_members: Vec<EtcdMember>,
    pub member_clusters: Vec<MemberCluster>,
}

impl Reported for Observation {
    const PLAYBOOK: &'static str = "observe.yml";
    const VARIABLE: &'static str = "windlass_observation";
    const LAYOUT: u32 = 1;
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdMember {
    pub name: String,
    /// In hexadecimal.
    pub id: String,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberCluster {
    pub name: String,
    pub generation: i64,
}

/// What a run would do to a service of a host. Roles report it in dry runs, in the order in which a run does it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceReport {
    pub layout: u32,
    /// The systemd service, without `.service`.
    pub unit: String,
    pub action: ServiceAction,
    pub clients: Clients,
    /// Other services of the host that restart with it, such as the API server that calls it.
    #[serde(default)]
    pub with: Vec<String>,
}

impl Reported for ServiceReport {
    const PLAYBOOK: &'static str = "the role";
    const VARIABLE: &'static str = "windlass_service";
    const LAYOUT: u32 = 1;
}

/// What happens to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceAction {
    Start,
    /// One host at a time.
    Restart,
    /// Reads its configuration again, one host at a time, without closing a connection.
    Reload,
    /// It is removed.
    Stop,
}

/// What clients notice of a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clients {
    /// Nothing: it serves none, or others have taken over before.
    Unaffected,
    /// Those that use this host lose their connections, and reach another host.
    Reconnect,
    /// Requests fail until it is back: there is no other host.
    Fail,
}

/// What a host waits for in a dry run: a stage that was not applied yet. It reports this and fails, so that nothing else is checked on it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitsFor {
    pub layout: u32,
    /// The name of the stage.
    pub stage: String,
    /// What that stage creates: `no API server answers yet`.
    pub reason: String,
}

impl Reported for WaitsFor {
    const PLAYBOOK: &'static str = "roles/preflight/tasks/wait_for_stage.yml";
    const VARIABLE: &'static str = "windlass_waits_for";
    const LAYOUT: u32 = 1;
}

/// What `status.yml` found on all hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    pub layout: u32,
    /// Hosts that should have reported a row and have not.
    pub silent: Vec<String>,
    pub etcd: Vec<EtcdRow>,
    pub components: Vec<ComponentRow>,
    /// None: no API server lists them.
    pub members: Option<Vec<MemberRow>>,
}

impl Reported for Status {
    const PLAYBOOK: &'static str = "status.yml";
    const VARIABLE: &'static str = "windlass_status";
    const LAYOUT: u32 = 2;
}

/// A number, or `?` if it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StatusNumber {
    Number(i64),
    Text(String),
}

impl std::fmt::Display for StatusNumber {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StatusNumber::Number(number) => number.fmt(to),
            StatusNumber::Text(text) => text.fmt(to),
        }
    }
}

/// An etcd member. The role `etcd` makes it in `tasks/row.yml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdRow {
    pub host: String,
    /// `?`: not known.
    pub version: String,
    /// `leader`, `follower` or `no reply`.
    pub role: String,
    /// Bytes.
    pub db_size: i64,
    pub alarms: Vec<String>,
    pub healthy: bool,
    /// Empty if it is healthy.
    pub why: String,
    pub port: StatusNumber,
    /// When its certificate ends.
    pub not_after: String,
    pub days_left: StatusNumber,
    /// None: the deployment has no local backups.
    pub local_backup: Option<LocalBackupRow>,
}

/// The local backups on a member's host. The role `etcd` makes it in `vars/main/local_backup.yml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalBackupRow {
    pub interval_minutes: i64,
    /// Of the newest one. None: there is none.
    pub age_seconds: Option<i64>,
    pub revision: Option<i64>,
    /// Whether the member knew a leader then. Without one, the newest writes may be missing in it.
    pub has_leader: bool,
    /// Empty if the last try succeeded and the newest one is recent.
    pub problem: String,
}

/// A component on a host. The role `karmada_component` makes it in `tasks/status.yml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentRow {
    pub component: String,
    pub host: String,
    /// As `systemctl is-active` prints it.
    pub state: String,
    pub ready: bool,
    /// Empty if it is ready.
    pub why: String,
    /// It is the instance that works.
    pub leads: bool,
    pub version: String,
    /// Until its first certificate ends.
    pub days_left: StatusNumber,
    pub port: StatusNumber,
}

/// A member cluster. The role `karmada_settings` makes it in `tasks/members.yml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberRow {
    pub name: String,
    /// `Push` or `Pull`.
    pub mode: String,
    pub version: String,
    /// The deployment that it was joined for; empty: none.
    pub deployment: String,
    pub ready: bool,
    /// Empty if it is ready.
    pub why: String,
}

/// What local backups leave to be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LossWindow {
    /// The age of the newest backup. None: there is none, and everything would be lost.
    pub seconds: Option<i64>,
    /// Its member knew a leader. Without one, it may not have had the newest writes.
    pub had_leader: bool,
    /// Between two backups.
    pub interval_minutes: i64,
}

impl Status {
    /// What would be lost if the data of all members were lost now. None: the deployment has no local backups.
    pub fn loss_window(&self) -> Option<LossWindow> {
        let backups = || self.etcd.iter().filter_map(|row| row.local_backup.as_ref());
        let interval_minutes = backups().map(|backup| backup.interval_minutes).max()?;
        let newest = |led: bool| {
            let taken = backups().filter(|backup| backup.has_leader == led);
            taken.filter_map(|backup| backup.age_seconds).min()
        };
        let led = newest(true);
        Some(LossWindow { seconds: led.or_else(|| newest(false)), had_leader: led.is_some(), interval_minutes })
    }

    /// Unhealthy parts, one per line.
    pub fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self.silent.iter().map(|host| format!("{host} does not answer")).collect();
        let etcd = self.etcd.iter().filter(|row| !row.healthy);
        problems.extend(etcd.map(|row| format!("etcd on {}: {}", row.host, row.why)));
        let backups = self.etcd.iter().filter_map(|row| Some((row, row.local_backup.as_ref()?)));
        let backups = backups.filter(|(_, backup)| !backup.problem.is_empty());
        problems.extend(backups.map(|(row, backup)| format!("etcd on {}: {}", row.host, backup.problem)));
        let components = self.components.iter().filter(|row| !row.ready);
        problems.extend(components.map(|row| format!("{} on {}: {}", row.component, row.host, row.why)));
        match &self.members {
            None if !self.components.is_empty() => problems.push("members: no API server lists them".to_owned()),
            members => {
                let members = members.iter().flatten().filter(|row| !row.ready);
                problems.extend(members.map(|row| format!("member {}: {}", row.name, row.why)));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: serde_json::Value) -> Value {
        Value::from(minijinja::value::Serde(json))
    }

    #[test]
    fn another_layout_or_another_form_is_refused() {
        let read = |json| Observation::from_report(&value(json));
        let own =
            serde_json::json!({"layout": 1, "files": ["ab  /etc/x"], "etcd_members": [{"name": "h1", "id": "8e9e"}]});
        assert_eq!(read(own).unwrap().etcd_members, [EtcdMember { name: "h1".into(), id: "8e9e".into() }]);
        for (json, why) in [
            (
                serde_json::json!({"layout": 2}),
                "reports layout 2 in windlass_observation; this windlass reads layout 1",
            ),
            (serde_json::json!({"files": []}), "reports no layout"),
            (serde_json::json!("text"), "reports no layout"),
            (serde_json::json!({"layout": 1, "links": []}), "unknown field `links`"),
            (serde_json::json!({"layout": 1, "files": "one text"}), "cannot read what observe.yml reports"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(why), "{why}: {error}");
        }
    }

    /// The playbook as it is shipped says the layout and the fields of this program, and nothing else.
    #[test]
    fn the_playbook_reports_what_this_program_reads() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/playbooks/observe.yml")).unwrap();
        let plays: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
        let mut fields = std::collections::BTreeSet::new();
        for play in plays.as_sequence().unwrap() {
            let reports =
                |task: &&serde_yaml::Value| task["ansible.builtin.set_fact"].get(Observation::VARIABLE).is_some();
            let task = play["tasks"].as_sequence().unwrap().iter().rfind(reports);
            let task = task.unwrap_or_else(|| panic!("{:?} reports nothing", play["name"]));
            let reported = task["ansible.builtin.set_fact"][Observation::VARIABLE].as_mapping().unwrap();
            fields.extend(reported.keys().map(|key| key.as_str().unwrap().to_owned()));
            assert_eq!(reported["layout"], Observation::LAYOUT, "{:?}", play["name"]);
        }
        let known = ["layout", "files", "programs", "units", "etcd_members", "member_clusters"];
        assert_eq!(fields, known.map(String::from).into());
        // Every one of them is a field.
        let all = known
            .iter()
            .map(|name| ((*name).to_owned(), if *name == "layout" { 1.into() } else { serde_json::json!([]) }));
        assert_eq!(Observation::from_report(&value(serde_json::Value::Object(all.collect()))).unwrap().layout, 1);
    }

    #[test]
    fn the_role_reports_the_wait_that_this_program_reads() {
        let path = format!("{}/{}", env!("CARGO_MANIFEST_DIR"), WaitsFor::PLAYBOOK);
        let tasks: serde_yaml::Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let reported = &tasks[0]["ansible.builtin.set_fact"][WaitsFor::VARIABLE];
        let fields: Vec<&str> = reported.as_mapping().unwrap().keys().map(|key| key.as_str().unwrap()).collect();
        assert_eq!(fields, ["layout", "stage", "reason"]);
        assert_eq!(reported["layout"], WaitsFor::LAYOUT);
        let wait =
            WaitsFor::from_report(&value(serde_json::json!({"layout": 1, "stage": "etcd", "reason": "r"}))).unwrap();
        assert_eq!((wait.stage.as_str(), wait.reason.as_str()), ("etcd", "r"));
    }

    #[test]
    fn the_roles_report_what_happens_to_a_service() {
        let services = ["etcd", "karmada_component", "load_balancer"].map(|role| format!("{role}/tasks/service.yml"));
        for path in services.into_iter().chain(["karmada_settings/tasks/reset_component.yml".to_owned()]) {
            let text = std::fs::read_to_string(format!("{}/roles/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
            let tasks: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
            let tasks = tasks.as_sequence().unwrap();
            let report = tasks.iter().find_map(|task| task["ansible.builtin.set_fact"].get(ServiceReport::VARIABLE));
            let report = report.unwrap_or_else(|| panic!("{path} reports nothing")).as_mapping().unwrap();
            let mut fields: Vec<&str> = report.keys().map(|key| key.as_str().unwrap()).collect();
            // Not every role has services that restart with another one.
            fields.retain(|field| *field != "with");
            assert_eq!(fields, ["layout", "unit", "action", "clients"], "{path}");
            assert_eq!(report["layout"], ServiceReport::LAYOUT, "{path}");
        }
        let mut json = serde_json::json!({"layout": 1, "unit": "etcd", "action": "restart", "clients": "reconnect"});
        assert_eq!(ServiceReport::from_report(&value(json.clone())).unwrap().clients, Clients::Reconnect);
        json["with"] = serde_json::json!(["karmada-apiserver"]);
        assert_eq!(ServiceReport::from_report(&value(json)).unwrap().with, ["karmada-apiserver"]);
    }

    fn example() -> serde_json::Value {
        serde_json::json!({
            "layout": 2,
            "silent": ["h3"],
            "etcd": [{
                "host": "h1", "version": "3.5.16", "role": "leader", "db_size": 20480, "alarms": [], "healthy": true, "why": "",
                "port": "2379", "not_after": "2027-11-22", "days_left": 364,
                "local_backup": {"interval_minutes": 5, "age_seconds": 130, "revision": 42, "has_leader": true, "problem": ""},
            }],
            "components": [{
                "component": "webhook", "host": "h1", "state": "inactive", "ready": false, "why": "the service is inactive",
                "leads": false, "version": "?", "days_left": "?", "port": 8443,
            }],
            "members": null,
        })
    }

    #[test]
    fn what_is_not_well_has_a_line() {
        let status = Status::from_report(&value(example())).unwrap();
        let problems =
            ["h3 does not answer", "webhook on h1: the service is inactive", "members: no API server lists them"];
        assert_eq!(status.problems(), problems);
        let mut json = example();
        json["members"] = serde_json::json!([{
            "name": "m1", "mode": "Push", "version": "?", "deployment": "", "ready": false, "why": "ClusterNotReachable",
        }]);
        assert_eq!(Status::from_report(&value(json.clone())).unwrap().problems()[2], "member m1: ClusterNotReachable");
        json["layout"] = 1.into();
        let error = Status::from_report(&value(json)).unwrap_err();
        assert!(
            error.contains("status.yml reports layout 1 in windlass_status; this windlass reads layout 2"),
            "{error}"
        );
    }

    #[test]
    fn a_local_backup_that_failed_is_a_problem_and_the_newest_one_with_a_leader_says_what_would_be_lost() {
        let mut json = example();
        let window = |seconds, had_leader| Some(LossWindow { seconds, had_leader, interval_minutes: 5 });
        assert_eq!(Status::from_report(&value(json.clone())).unwrap().loss_window(), window(Some(130), true));
        json["etcd"][0]["local_backup"]["problem"] = "the last local backup failed 2 min ago: full".into();
        let mut other = json["etcd"][0].clone();
        other["local_backup"] = serde_json::json!({
            "interval_minutes": 5, "age_seconds": 10, "revision": 40, "has_leader": false, "problem": "",
        });
        json["etcd"].as_array_mut().unwrap().push(other);
        let status = Status::from_report(&value(json.clone())).unwrap();
        assert_eq!(status.problems()[1], "etcd on h1: the last local backup failed 2 min ago: full");
        assert_eq!(status.loss_window(), window(Some(130), true));
        json["etcd"][0]["local_backup"] = serde_json::Value::Null;
        assert_eq!(Status::from_report(&value(json.clone())).unwrap().loss_window(), window(Some(10), false));
        json["etcd"][1]["local_backup"]["age_seconds"] = serde_json::Value::Null;
        assert_eq!(Status::from_report(&value(json.clone())).unwrap().loss_window(), window(None, false));
        json["etcd"][1]["local_backup"] = serde_json::Value::Null;
        assert_eq!(Status::from_report(&value(json)).unwrap().loss_window(), None);
    }

    /// The rows that the roles make have the fields of this program, and no others.
    #[test]
    fn the_roles_make_the_rows_that_this_program_reads() {
        let role =
            |path: &str| std::fs::read_to_string(format!("{}/roles/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let yaml = |text: &str| serde_yaml::from_str::<serde_yaml::Value>(text).unwrap();
        let keys = |of: &serde_yaml::Value| -> Vec<String> {
            of.as_mapping().unwrap().keys().map(|key| key.as_str().unwrap().to_owned()).collect()
        };
        let mut example = example();
        example["members"] = serde_json::json!([{
            "name": "m1", "mode": "Push", "version": "?", "deployment": "", "ready": true, "why": "",
        }]);
        let status = Status::from_report(&value(example.clone())).unwrap();
        let fields = |of: &serde_json::Value| -> Vec<String> { of.as_object().unwrap().keys().cloned().collect() };
        let same = |mut one: Vec<String>, mut other: Vec<String>, what: &str| {
            one.sort();
            other.sort();
            assert_eq!(one, other, "{what}");
        };
        let vars = yaml(&role("karmada_settings/vars/main.yml"));
        same(keys(&vars["karmada_status"]), fields(&example), "karmada_status");
        assert_eq!(vars["karmada_status"]["layout"], Status::LAYOUT);
        assert!(
            role("karmada_settings/tasks/report.yml")
                .contains(&format!("{}: \"{{{{ karmada_status }}}}\"", Status::VARIABLE))
        );
        let etcd = yaml(&role("etcd/tasks/row.yml"));
        let row = etcd.as_sequence().unwrap().iter().find_map(|task| task["ansible.builtin.set_fact"].get("etcd_row"));
        same(keys(row.unwrap()), fields(&serde_json::to_value(&status.etcd[0]).unwrap()), "etcd_row");
        let backup = &yaml(&role("etcd/vars/main/local_backup.yml"))["etcd_local_backup_row"];
        same(keys(backup), fields(&serde_json::to_value(&status.etcd[0].local_backup).unwrap()), "local_backup");
        // These two are made in templates: `'field': value,`, one in a line.
        let in_template = |text: &str, begin: &str| -> Vec<String> {
            let text = &text[text.find(begin).unwrap() + begin.len()..];
            let text = &text[..text.find("})").or(text.find("}]")).unwrap()];
            text.lines()
                .filter_map(|line| Some(line.trim().strip_prefix('\'')?.split_once("': ")?.0.to_owned()))
                .collect()
        };
        let component = role("karmada_component/tasks/status.yml");
        let component = in_template(&component[..component.find("}] }}").unwrap() + 2], "default([]) + [{");
        same(component, fields(&serde_json::to_value(&status.components[0]).unwrap()), "karmada_rows");
        let member = in_template(&role("karmada_settings/tasks/members.yml"), "rows.append({");
        same(member, fields(&serde_json::to_value(&status.members.unwrap()[0]).unwrap()), "karmada_member_rows");
    }
}
