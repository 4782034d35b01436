//! What the world is like, from the events of a run of `playbooks/observe.yml`.

use super::plan::Observed;
use crate::engine::{Event, Status, TaskResult, TaskStart};
use crate::value::Value;

/// Its playbook.
pub const PLAYBOOK: &str = "observe.yml";
/// Names of its tasks that run programs on hosts.
const FILES: &str = "Files of configuration";
const PROGRAMS: &str = "Programs and links";
const UNITS: &str = "Units";

/// Takes an event of the run.
pub fn take(observed: &mut Observed, event: &Event) {
    let Event::Result { task, host, looped: false, result, .. } = event else { return };
    if result.status == Status::Unreachable {
        observed.entry(host.to_string()).or_default().insert("the host".into(), "does not answer".into());
    }
    if result.status == Status::Failed {
        let why = result.message.as_deref().unwrap_or("no message");
        let told = format!("cannot be read ({}: {why})", task.name);
        observed.entry(host.to_string()).or_default().insert("the host".into(), told);
    }
    if !matches!(result.status, Status::Ok | Status::Changed) {
        return;
    }
    match task.action {
        "command" => lines(observed, task, host, result),
        "etcd_cluster_info" => each(observed, "etcd", result.values.get("members"), |member| {
            Some((format!("member {}", member.get_attr("name").ok()?), member.get_attr("id").ok()?.to_string()))
        }),
        "k8s_info" => each(observed, "control plane", result.values.get("resources"), |cluster| {
            let metadata = cluster.get_attr("metadata").ok()?;
            let generation = metadata.get_attr("generation").ok()?.to_string();
            Some((format!("member cluster {}", metadata.get_attr("name").ok()?), generation))
        }),
        _ => {}
    }
}

/// What a program printed, by the line.
fn lines(observed: &mut Observed, task: &TaskStart, host: &str, result: &TaskResult) {
    let read = match task.name.as_str() {
        FILES => file,
        PROGRAMS => program,
        UNITS => unit,
        _ => return,
    };
    let text = result.values.get("stdout").map(ToString::to_string).unwrap_or_default();
    observed.entry(host.to_owned()).or_default().extend(text.lines().filter_map(read));
}

fn each(observed: &mut Observed, place: &str, list: Option<&Value>, read: impl Fn(&Value) -> Option<(String, String)>) {
    let Some(items) = list.and_then(|list| list.try_iter().ok()) else { return };
    observed.entry(place.to_owned()).or_default().extend(items.filter_map(|item| read(&item)));
}

/// `DIGEST  PATH`
fn file(line: &str) -> Option<(String, String)> {
    let (digest, path) = line.split_once("  ")?;
    Some((format!("file {path}"), digest.to_owned()))
}

/// `MODE:SIZE:TIME  'PATH'` or `MODE:SIZE:TIME  'LINK' -> 'TARGET'`
fn program(line: &str) -> Option<(String, String)> {
    let (look, names) = line.split_once("  ")?;
    let (path, target) = names.split_once(" -> ").unwrap_or((names, ""));
    Some((format!("program {}", path.trim_matches('\'')), format!("{look} {target}")))
}

/// `UNIT LOAD ACTIVE SUB DESCRIPTION`
fn unit(line: &str) -> Option<(String, String)> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    Some((format!("unit {name}"), words.take(3).collect::<Vec<_>>().join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_programs_become_names_and_states() {
        assert_eq!(file("ab12  /etc/a b"), Some(("file /etc/a b".into(), "ab12".into())));
        let link = program("a1ff:7:1763645954  '/opt/current' -> '3.5'");
        assert_eq!(link, Some(("program /opt/current".into(), "a1ff:7:1763645954 '3.5'".into())));
        let found = unit("etcd.service loaded active running etcd, a key-value store");
        assert_eq!(found, Some(("unit etcd.service".into(), "loaded active running".into())));
        assert_eq!(file("sha256sum: /etc/x: Permission denied"), None);
    }
}
