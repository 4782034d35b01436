//! The text of a plan: what it would change, stage by stage.

use std::collections::BTreeMap;

use crate::deployment::changes::{ChangeKind, Changes, PlannedChange, ServiceChange, TaskFailure};
use crate::deployment::contract::{Clients, ServiceAction};
use crate::deployment::operation::PreparedOperation;
use crate::deployment::plan::{Plan, PlannedStage, StageState};
use crate::deployment::stage::Stage;
use crate::report::without_host;

/// The host name of tasks on this machine.
const HERE: &str = "localhost";

/// What a plan says, with `detail` each single change.
pub(super) fn plan(plan: &Plan, detail: bool) -> String {
    let mut text = format!("Plan for {}\n", plan.deployment);
    if let Some(limit) = &plan.reach.limit {
        text.push_str(&format!("limited to {limit}\n"));
    }
    if !plan.reach.remove_by_force.is_empty() {
        text.push_str(&format!("removed even if they do not answer: {}\n", plan.reach.remove_by_force.join(", ")));
    }
    if !plan.reach.left_out.is_empty() {
        text.push_str(&format!("skipped, because they do not answer: {}\n", plan.reach.left_out.join(", ")));
    }
    let (shown, same): (Vec<&PlannedStage>, Vec<&PlannedStage>) =
        plan.stages.iter().partition(|planned| planned.state != StageState::Same || !planned.found.failures.is_empty());
    let mut said: Vec<&TaskFailure> = Vec::new();
    for planned in shown {
        let is_new = |failure: &&TaskFailure| {
            !said.iter().any(|one| (&one.host, &one.message) == (&failure.host, &failure.message))
        };
        let failures: Vec<&TaskFailure> = planned.found.failures.iter().filter(is_new).collect();
        let same = if failures.is_empty() && !planned.found.failures.is_empty() { " for the same reason" } else { "" };
        text.push_str(&format!("\n{}: {}{same}\n", planned.stage.name(), headline(planned)));
        text.push_str(&body(planned, &failures, detail));
        said.extend(failures);
    }
    if !same.is_empty() {
        let names: Vec<&str> = same.iter().map(|planned| planned.stage.name()).collect();
        text.push_str(&format!("\nnothing to do: {}\n", names.join(", ")));
    }
    text.push_str(&format!("\n{}\n", total(plan)));
    text
}

fn headline(planned: &PlannedStage) -> String {
    let changed = planned.found.counts().keys().filter(|host| **host != HERE).count();
    match planned.state {
        StageState::Same => "nothing to do".to_owned(),
        StageState::Refused => "refused".to_owned(),
        StageState::Waits if planned.found.changes.is_empty() => waits(planned),
        StageState::Differs | StageState::Waits => match planned.stage {
            Stage::Removals => format!("to remove: {}", planned.hosts.join(", ")),
            _ => counted(changed, "host"),
        },
    }
}

/// `failures`: those that no stage before it has.
fn body(planned: &PlannedStage, failures: &[&TaskFailure], detail: bool) -> String {
    let mut text = String::new();
    if planned.state != StageState::Refused {
        text.push_str(&changes(&planned.found, detail));
        text.push_str(&services(&planned.found.services, &planned.hosts, detail));
    }
    if planned.state == StageState::Waits && !planned.found.changes.is_empty() {
        text.push_str(&format!("  {}\n", waits(planned)));
    }
    text.push_str(&refusals(planned, failures));
    if matches!(planned.stage, Stage::Removals | Stage::Etcd) {
        planned.found.notes.iter().for_each(|note| text.push_str(&format!("  {}\n", note.replace('\n', "\n    "))));
    }
    text
}

/// `needs controlPlane first (no API server answers yet): north, south`
fn waits(planned: &PlannedStage) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for wait in &planned.found.waits {
        let what = format!("needs {} first ({})", wait.stage.name(), wait.reason);
        match groups.iter_mut().find(|(known, _)| *known == what) {
            Some((_, hosts)) => hosts.push(&wait.host),
            None => groups.push((what, vec![&wait.host])),
        }
    }
    let of_group =
        |(what, hosts): &(String, Vec<&str>)| format!("{what}: {}", in_order(hosts, &planned.hosts).join(", "));
    groups.iter().map(of_group).collect::<Vec<_>>().join("; ")
}

/// Hosts in the inventory's order, others after them.
fn in_order<'a>(hosts: &[&'a str], order: &[String]) -> Vec<&'a str> {
    let mut hosts = hosts.to_vec();
    let place = |host: &str| order.iter().position(|known| known == host).unwrap_or(usize::MAX);
    hosts.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.cmp(b)));
    hosts.dedup();
    hosts
}

/// A line for each host, with `detail` another one for each change.
fn changes(found: &Changes, detail: bool) -> String {
    let mut text = String::new();
    for (host, kinds) in found.counts() {
        let place = if host == HERE { "this machine" } else { host };
        text.push_str(&format!("  {place:<12} {}\n", kinds_of(&kinds)));
        let of_host = found.changes.iter().filter(|change| detail && change.host == host);
        for change in of_host {
            text.push_str(&format!("    {}\n", line(change)));
            change.diff.lines().for_each(|line| text.push_str(&format!("      {line}\n")));
        }
    }
    text
}

/// What would happen to services: restarts and reloads in their order, and how many would start or stop, with `detail` which. What
/// happens to hosts at once is in the order of `hosts`.
fn services(services: &[ServiceChange], hosts: &[String], detail: bool) -> String {
    let mut text = String::new();
    let of = |action| services.iter().filter(|service| service.action == action).collect::<Vec<_>>();
    for (action, word) in [(ServiceAction::Start, "start"), (ServiceAction::Stop, "stop")] {
        let services = of(action);
        if detail {
            by_unit(&services).iter().for_each(|(unit, of_unit, _)| {
                text.push_str(&format!("  {word:<12} {unit}: {}\n", in_order(of_unit, hosts).join(", ")))
            });
        } else if !services.is_empty() {
            text.push_str(&format!("  {word:<12} {}\n", counted(services.len(), "service")));
        }
    }
    for (unit, of_unit, _) in by_unit(&of(ServiceAction::Reload)) {
        text.push_str(&format!("  reload       {unit}: {}\n", of_unit.join(", ")));
    }
    let restarts = of(ServiceAction::Restart);
    for (unit, hosts, clients) in by_unit(&restarts) {
        let with = restarts.iter().find(|service| service.unit == unit).map_or(&[][..], |service| &service.with);
        let units = [unit].into_iter().chain(with.iter().map(String::as_str)).collect::<Vec<_>>().join(" and ");
        let order = if hosts.len() > 1 { ", one after the other" } else { "" };
        let clients = match clients {
            Clients::Unaffected => "",
            Clients::Reconnect => "; clients reconnect to another host",
            Clients::Fail => "; requests fail until it is back",
        };
        text.push_str(&format!("  restart      {units}: {}{order}{clients}\n", hosts.join(", ")));
    }
    text
}

/// The hosts of each service in a row, with the most that clients notice.
fn by_unit<'a>(services: &[&'a ServiceChange]) -> Vec<(&'a str, Vec<&'a str>, Clients)> {
    let mut groups: Vec<(&str, Vec<&str>, Clients)> = Vec::new();
    for service in services {
        match groups.last_mut() {
            Some((unit, hosts, clients)) if *unit == service.unit => {
                hosts.push(&service.host);
                *clients = (*clients).max(service.clients);
            }
            _ => groups.push((&service.unit, vec![&service.host], service.clients)),
        }
    }
    groups
}

/// What was refused, host by host, what several of them share once.
fn refusals(planned: &PlannedStage, failures: &[&TaskFailure]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for failure in failures {
        let message = without_host(&failure.message, &failure.host);
        match groups.iter_mut().find(|(known, _)| *known == message) {
            Some((_, hosts)) => hosts.push(&failure.host),
            None => groups.push((message, vec![&failure.host])),
        }
    }
    let place = |host: &str| planned.hosts.iter().position(|known| known == host).unwrap_or(usize::MAX);
    groups.iter_mut().for_each(|(_, hosts)| *hosts = in_order(hosts, &planned.hosts));
    groups.sort_by_key(|(_, hosts)| hosts.first().map_or(usize::MAX, |host| place(host)));
    let line =
        |(message, hosts): &(&str, Vec<&str>)| format!("  {}: {}\n", hosts.join(", "), message.replace('\n', "\n    "));
    groups.iter().map(line).collect()
}

/// What the dry run of an operation found.
pub(super) fn operation(prepared: &PreparedOperation<'_>, detail: bool) -> String {
    let found = &prepared.found;
    let hosts: Vec<String> = prepared.deployment.hosts.iter().map(ToString::to_string).collect();
    let mut text = format!("Plan: {} of {}\n", prepared.operation.name(), prepared.deployment.name);
    found.notes.iter().for_each(|note| text.push_str(&format!("\n{note}\n")));
    text.push('\n');
    if !found.failures.is_empty() {
        text.push_str("The dry run failed:\n");
        let line = |failure: &TaskFailure| format!("  {}: {}: {}\n", failure.host, failure.task, failure.message);
        found.failures.iter().for_each(|failure| text.push_str(&line(failure)));
    } else if found.changes.is_empty() {
        text.push_str("Nothing to do.\n");
    } else {
        text.push_str(&changes(found, detail));
        text.push_str(&services(&found.services, &hosts, detail));
    }
    text
}

fn line(change: &PlannedChange) -> String {
    match change.kind {
        ChangeKind::File => format!("file   {}", change.what),
        ChangeKind::Unit => format!("unit   {}", change.what),
        ChangeKind::Object => format!("object {}", change.what),
        ChangeKind::Package => format!("package {}", change.what),
        ChangeKind::Account => format!("account {}", change.what),
        ChangeKind::Mount => format!("mount  {}", change.what),
        ChangeKind::CronJob => format!("cron job {}", change.what),
        ChangeKind::KernelSetting => format!("kernel setting {}", change.what),
        ChangeKind::FirewallRule => format!("firewall rule {}", change.what),
        ChangeKind::Other => format!("other  {}", change.what),
    }
}

fn kinds_of(kinds: &BTreeMap<ChangeKind, usize>) -> String {
    let words = kinds.iter().map(|(kind, count)| match kind {
        ChangeKind::File => counted(*count, "file"),
        ChangeKind::Unit => counted(*count, "unit"),
        ChangeKind::Object => counted(*count, "API object"),
        ChangeKind::Package => counted(*count, "package"),
        ChangeKind::Account => counted(*count, "account"),
        ChangeKind::Mount => counted(*count, "mount"),
        ChangeKind::CronJob => counted(*count, "cron job"),
        ChangeKind::KernelSetting => counted(*count, "kernel setting"),
        ChangeKind::FirewallRule => counted(*count, "firewall rule"),
        ChangeKind::Other => counted(*count, "other change"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// `1 host`, `2 hosts`
pub(in crate::cli) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn total(plan: &Plan) -> String {
    let refused: Vec<&str> = plan
        .stages
        .iter()
        .filter(|planned| planned.state == StageState::Refused)
        .map(|planned| planned.stage.name())
        .collect();
    if !refused.is_empty() {
        return format!("Nothing can be applied: {} refused.", are(&refused));
    }
    let members: Vec<&str> = plan
        .stages
        .iter()
        .flat_map(|planned| {
            let refused: Vec<&str> = planned.refused_members().iter().map(|failure| &*failure.host).collect();
            in_order(&refused, &planned.hosts)
        })
        .collect();
    let mut text = to_do(plan);
    if !members.is_empty() {
        text.push_str(&format!("\nNot done: {} refused.", are(&members)));
    }
    if !plan.reach.left_out.is_empty() {
        text.push_str(&format!("\nNot done on {}: run this again when they answer.", plan.reach.left_out.join(", ")));
    }
    text
}

fn to_do(plan: &Plan) -> String {
    if plan.is_empty() {
        return "Nothing to do.".to_owned();
    }
    let mut kinds: BTreeMap<ChangeKind, usize> = BTreeMap::new();
    for change in plan.stages.iter().flat_map(|planned| &planned.found.changes) {
        *kinds.entry(change.kind).or_default() += 1;
    }
    let of =
        |stage: Stage| plan.stages.iter().find(|planned| planned.stage == stage && planned.state != StageState::Same);
    let removals = of(Stage::Removals).map_or(0, |planned| planned.hosts.len());
    let mut words: Vec<String> = Vec::new();
    if !kinds.is_empty() {
        words.push(kinds_of(&kinds));
    }
    let waiting = plan.stages.iter().filter(|planned| planned.state == StageState::Waits);
    let waiting: Vec<&str> = waiting.map(|planned| planned.stage.name()).collect();
    if !waiting.is_empty() {
        words.push(format!("after that {}", waiting.join(" and ")));
    }
    let services = plan.stages.iter().flat_map(|planned| &planned.found.services);
    let restarted = services.filter(|service| service.action == ServiceAction::Restart);
    let restarts = restarted.map(|service| 1 + service.with.len()).sum();
    if restarts > 0 {
        words.push(counted(restarts, "service restart"));
    }
    if removals > 0 {
        words.push(format!("{} removed", counted(removals, "member")));
    }
    format!("To do: {}.", words.join("; "))
}

/// `a is`, `a and b are`, `a, b and c are`
fn are(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("{one} is"),
        [most @ .., last] => format!("{} and {last} are", most.join(", ")),
    }
}

#[cfg(test)]
mod tests;
