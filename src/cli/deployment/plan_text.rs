//! The text of a plan: what it would change, stage by stage.

use std::collections::BTreeMap;

use crate::deployment::changes::{Change, Changes, Failure, Kind};
use crate::deployment::operation::Prepared;
use crate::deployment::plan::{Plan, Planned, State};
use crate::deployment::stage::Stage;

/// The host name of tasks on this machine.
const HERE: &str = "localhost";

/// What a plan says, with `detail` each single change.
pub(super) fn plan(plan: &Plan, detail: bool) -> String {
    let mut text = format!("Plan for {}\n", plan.deployment);
    for planned in plan.stages.iter().filter(|planned| planned.state != State::Same) {
        text.push_str(&format!("\n{}: {}\n", planned.stage.name(), headline(planned)));
        text.push_str(&body(planned, detail));
    }
    let same: Vec<&str> =
        plan.stages.iter().filter(|planned| planned.state == State::Same).map(|planned| planned.stage.name()).collect();
    if !same.is_empty() {
        text.push_str(&format!("\nnothing to do: {}\n", same.join(", ")));
    }
    text.push_str(&format!("\n{}\n", total(plan)));
    text
}

fn headline(planned: &Planned) -> String {
    let hosts = planned.hosts.join(", ");
    match planned.state {
        State::Same => "nothing to do".to_owned(),
        State::NotYet => format!("not installed yet: all of it ({hosts})"),
        State::Unknown => "the dry run failed".to_owned(),
        State::Differs => match planned.stage {
            Stage::Removals => format!("to remove: {hosts}"),
            _ => counted(planned.found.counts().keys().filter(|host| **host != HERE).count(), "host"),
        },
    }
}

fn body(planned: &Planned, detail: bool) -> String {
    let mut text = String::new();
    match planned.state {
        State::Differs => {
            text.push_str(&changes(&planned.found, detail));
        }
        State::Unknown => text.push_str(&failures(&planned.found)),
        State::Same | State::NotYet => {}
    }
    if planned.stage == Stage::Removals {
        planned.found.notes.iter().for_each(|note| text.push_str(&format!("  {note}\n")));
    }
    text
}

/// A line for each host, with `detail` another one for each change.
fn changes(found: &Changes, detail: bool) -> String {
    let mut text = String::new();
    for (host, kinds) in found.counts() {
        let place = if host == HERE { "this machine" } else { host };
        text.push_str(&format!("  {place:<12} {}\n", kinds_of(&kinds)));
        let of_host = found.changes.iter().filter(|change| detail && change.host == host);
        of_host.for_each(|change| text.push_str(&format!("    {}\n", line(change))));
    }
    text
}

/// A line for each task that failed.
fn failures(found: &Changes) -> String {
    let line = |failure: &Failure| format!("  {}: {}: {}\n", failure.host, failure.task, failure.message);
    found.failures.iter().map(line).collect()
}

/// What the dry run of an operation found.
pub(super) fn operation(prepared: &Prepared<'_>, detail: bool) -> String {
    let found = &prepared.found;
    let mut text = format!("Plan: {} of {}\n", prepared.operation.name(), prepared.deployment.name);
    found.notes.iter().for_each(|note| text.push_str(&format!("\n{note}\n")));
    text.push('\n');
    if !found.failures.is_empty() {
        text.push_str(&format!("The dry run failed:\n{}", failures(found)));
    } else if found.changes.is_empty() {
        text.push_str("Nothing to do.\n");
    } else {
        text.push_str(&changes(found, detail));
    }
    text
}

fn line(change: &Change) -> String {
    match change.kind {
        Kind::File => format!("file   {}", change.what),
        Kind::Unit => format!("unit   {}", change.what),
        Kind::Object => format!("object {}", change.what),
        Kind::Package => format!("package {}", change.what),
        Kind::Account => format!("account {}", change.what),
        Kind::Mount => format!("mount  {}", change.what),
        Kind::CronJob => format!("cron job {}", change.what),
        Kind::KernelSetting => format!("kernel setting {}", change.what),
        Kind::FirewallRule => format!("firewall rule {}", change.what),
        Kind::Other => format!("other  {}", change.what),
    }
}

fn kinds_of(kinds: &BTreeMap<Kind, usize>) -> String {
    let words = kinds.iter().map(|(kind, count)| match kind {
        Kind::File => counted(*count, "file"),
        Kind::Unit => counted(*count, "unit"),
        Kind::Object => counted(*count, "API object"),
        Kind::Package => counted(*count, "package"),
        Kind::Account => counted(*count, "account"),
        Kind::Mount => counted(*count, "mount"),
        Kind::CronJob => counted(*count, "cron job"),
        Kind::KernelSetting => counted(*count, "kernel setting"),
        Kind::FirewallRule => counted(*count, "firewall rule"),
        Kind::Other => counted(*count, "other change"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// `1 host`, `2 hosts`
pub(in crate::cli) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn total(plan: &Plan) -> String {
    if plan.is_empty() {
        return "Nothing to do.".to_owned();
    }
    let failed: Vec<&str> = plan
        .stages
        .iter()
        .filter(|planned| planned.state == State::Unknown)
        .map(|planned| planned.stage.name())
        .collect();
    if !failed.is_empty() {
        return format!("Nothing can be applied: the dry run failed ({}).", failed.join(", "));
    }
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    for change in plan.stages.iter().flat_map(|planned| &planned.found.changes) {
        *kinds.entry(change.kind).or_default() += 1;
    }
    let of = |stage: Stage| plan.stages.iter().find(|planned| planned.stage == stage && planned.state != State::Same);
    let removals = of(Stage::Removals).map_or(0, |planned| planned.hosts.len());
    let mut words: Vec<String> = Vec::new();
    if !kinds.is_empty() {
        words.push(kinds_of(&kinds));
    }
    if plan.stages.iter().any(|planned| planned.state == State::NotYet) {
        words.push("all of what is not installed yet".to_owned());
    }
    if removals > 0 {
        words.push(format!("{} removed", counted(removals, "member")));
    }
    format!("To do: {}.", words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(stage: Stage, state: State, changes: &[(&str, Kind, &str)]) -> Planned {
        let change = |(host, kind, what): &(&str, Kind, &str)| Change {
            host: (*host).into(),
            kind: *kind,
            what: (*what).into(),
            task: "t".into(),
        };
        let found = Changes { changes: changes.iter().map(change).collect(), ..Changes::default() };
        Planned { stage, state, hosts: vec!["h1".into(), "h2".into()], found }
    }

    #[test]
    fn a_plan_counts_by_host_and_names_what_is_not_installed_yet() {
        let mut removals = planned(Stage::Removals, State::Differs, &[("beta", Kind::Object, "Cluster beta")]);
        removals.hosts = vec!["beta".into()];
        removals.found.notes.push("beta leaves with 3 workloads".into());
        let changes = [("h1", Kind::File, "/etc/a"), ("h1", Kind::File, "/etc/b"), ("h1", Kind::Unit, "etcd")];
        let stages = vec![
            planned(Stage::Etcd, State::Differs, &changes),
            planned(Stage::ControlPlane, State::NotYet, &[]),
            planned(Stage::Members, State::Same, &[]),
            removals,
        ];
        let plan_of = Plan {
            windlass_plan: 1,
            deployment: "prod".into(),
            made: 0,
            by: String::new(),
            sources: Vec::new(),
            stages,
            observed: Default::default(),
        };
        let expected = "\
Plan for prod

etcd: 1 host
  h1           2 files, 1 unit

controlPlane: not installed yet: all of it (h1, h2)

removals: to remove: beta
  beta         1 API object
  beta leaves with 3 workloads

nothing to do: members

To do: 2 files, 1 unit, 1 API object; all of what is not installed yet; 1 member removed.
";
        assert_eq!(plan(&plan_of, false), expected);
        assert!(plan(&plan_of, true).contains("    file   /etc/a\n"));
    }

    #[test]
    fn a_stage_that_fails_says_where_and_why() {
        let mut etcd = planned(Stage::Etcd, State::Unknown, &[]);
        etcd.found.failures.push(Failure {
            host: "h2".into(),
            task: "Space".into(),
            message: "too little".into(),
            unreachable: false,
        });
        assert_eq!(body(&etcd, false), "  h2: Space: too little\n");
        let failed = Plan {
            windlass_plan: 1,
            deployment: "prod".into(),
            made: 0,
            by: String::new(),
            sources: Vec::new(),
            stages: vec![etcd],
            observed: Default::default(),
        };
        assert_eq!(total(&failed), "Nothing can be applied: the dry run failed (etcd).");
    }
}
