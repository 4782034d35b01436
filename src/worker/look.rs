//! A look at the hosts: their state, and what an apply would change. Nothing is changed.

use std::collections::BTreeSet;

use time::OffsetDateTime;

use super::time_text;
use crate::deployment::contract::{Status, StatusNumber};
use crate::deployment::plan::{Plan, PlanRequest, StageState};
use crate::deployment::stage::Stage;
use crate::deployment::status::{Report, read_status};
use crate::deployment::{Control, Error, Site, planning};
use crate::resource::TABLE;
use crate::resource::status::{
    EtcdMemberStatus, HostStatus, LockStatus, Look, LookSummary, MOST_CHANGES, MemberStatus, PlanStatus, short_message,
};

/// Looks at the hosts. `plans`: also at what an apply would change. None: the caller cancelled it.
///
/// # Errors
/// The deployment cannot be read.
pub async fn look_at_hosts(site: &Site, plans: bool, control: &Control) -> Result<Option<Look>, Error> {
    let generation = site.read_inventory().await?.generation().unwrap_or_default();
    let plan = match plans {
        true => match planning::plan(site, PlanRequest::default(), control).await? {
            Some(plan) => Some(plan),
            None => return Ok(None),
        },
        false => None,
    };
    let Some(report) = read_status(site, control).await? else { return Ok(None) };
    let hide = |text: &str| short_message(&site.keyring.hidden.hide(text));
    let mut look = of_report(&report, hide);
    look.generation = generation;
    look.time = time_text(OffsetDateTime::now_utc());
    look.plan = plan.as_ref().map(|plan| of_plan(plan, hide));
    if let Some(plan) = &look.plan {
        look.problems.extend(plan.refused_members.iter().cloned());
    }
    look.limit_size();
    Ok(Some(look))
}

fn of_report(report: &Report, hide: impl Fn(&str) -> String) -> Look {
    let none = Status::default();
    let status = report.status.as_ref().unwrap_or(&none);
    let silent: BTreeSet<&str> =
        report.unreachable.keys().map(String::as_str).chain(status.silent.iter().map(String::as_str)).collect();
    let hosts: Vec<HostStatus> = report
        .deployment
        .hosts
        .iter()
        .map(|host| {
            let name: &str = host;
            let etcd = status.etcd.iter().filter(|row| row.host == name && row.healthy).map(|_| "etcd");
            let ready = status.components.iter().filter(|row| row.host == name && row.ready);
            let ready: Vec<&str> = etcd.chain(ready.map(|row| row.component.as_str())).collect();
            HostStatus {
                name: name.to_owned(),
                reachable: !silent.contains(name),
                ready: hide(&ready.join(" ")),
                message: report.unreachable.get(name).map_or_else(String::new, |why| hide(why)),
            }
        })
        .collect();
    let members = status.members.as_deref().unwrap_or_default();
    let of = |ready: usize, all: usize| format!("{ready}/{all}");
    let versions: BTreeSet<&str> = status
        .components
        .iter()
        .filter(|row| row.version != "?" && is_of_karmada(&row.component))
        .map(|row| row.version.as_str())
        .collect();
    // A member of the spec that has not joined is in no row.
    let missing = report.deployment.asked_members().filter(|name| !members.iter().any(|row| row.name == *name)).count();
    let days = status.etcd.iter().map(|row| &row.days_left).chain(status.components.iter().map(|row| &row.days_left));
    let days = days.filter_map(|days| match days {
        StatusNumber::Number(days) => Some(*days),
        StatusNumber::Text(_) => None,
    });
    let mut problems: Vec<String> = report.unreachable.iter().map(|(host, why)| format!("{host}: {why}")).collect();
    problems.extend(status.problems());
    if report.status.is_none() {
        problems.extend(report.failures.iter().cloned());
    }
    Look {
        error: None,
        karmada_version: (versions.len() == 1).then(|| versions.first().map(|version| hide(version))).flatten(),
        summary: LookSummary {
            hosts: of(hosts.iter().filter(|host| host.reachable).count(), hosts.len()),
            etcd: of(status.etcd.iter().filter(|row| row.healthy).count(), status.etcd.len()),
            components: of(status.components.iter().filter(|row| row.ready).count(), status.components.len()),
            members: of(members.iter().filter(|row| row.ready).count(), members.len() + missing),
        },
        hosts,
        etcd_members: status
            .etcd
            .iter()
            .map(|row| EtcdMemberStatus {
                host: row.host.clone(),
                healthy: row.healthy,
                role: hide(&row.role),
                version: hide(&row.version),
                db_size: row.db_size,
                message: hide(&row.why),
            })
            .collect(),
        members: members
            .iter()
            .map(|row| MemberStatus {
                name: row.name.clone(),
                ready: row.ready,
                mode: hide(&row.mode),
                version: hide(&row.version),
                message: hide(&row.why),
            })
            .collect(),
        certificate_days_left: days.min(),
        lock: report.holder.as_ref().map(|holder| LockStatus {
            holder: hide(&holder.record.holder),
            command: hide(&holder.record.command),
            since: i64::try_from(holder.record.since)
                .ok()
                .and_then(|since| OffsetDateTime::from_unix_timestamp(since).ok())
                .map_or_else(String::new, time_text),
        }),
        unfinished: report
            .unfinished
            .as_ref()
            .map(|journal| hide(&format!("the {} by {} {}", journal.operation, journal.who, journal.fate()))),
        problems: problems.iter().map(|problem| hide(problem)).collect(),
        ..Look::default()
    }
}

/// Whether a component is one of Karmada's own, whose version is that of the deployment.
fn is_of_karmada(component: &str) -> bool {
    TABLE.iter().any(|entry| entry.name == component && entry.program.starts_with("karmada-"))
}

fn of_plan(plan: &Plan, hide: impl Fn(&str) -> String) -> PlanStatus {
    let stages = || plan.stages.iter().filter(|planned| planned.state != StageState::Same);
    let lines = stages().flat_map(|planned| {
        let changes = planned.found.changes.iter().map(|change| format!("{} {}", change.host, change.what));
        let waits = planned
            .found
            .waits
            .iter()
            .map(|wait| format!("{} waits for {}: {}", wait.host, wait.stage.name(), wait.reason));
        changes.chain(waits).map(|line| format!("{} {line}", planned.stage.name()))
    });
    let refused = plan.refused().map(|planned| {
        let failures = planned.found.failures.iter();
        let why: Vec<String> =
            failures.map(|failure| format!("{}: {}: {}", failure.host, failure.task, failure.message)).collect();
        hide(&format!("{}: {}", planned.stage.name(), why.join("; ")))
    });
    let members = plan.stages.iter().flat_map(|planned| planned.refused_members());
    PlanStatus {
        refused_members: members.map(|failure| hide(&format!("{}: {}", failure.host, failure.message))).collect(),
        digest: (!plan.is_empty()).then(|| plan.digest()),
        changes: stages().map(|planned| i64::try_from(planned.found.changes.len()).unwrap_or(i64::MAX)).sum(),
        removals: match stages().any(|planned| planned.stage == Stage::Removals) {
            true => plan.removals().to_vec(),
            false => Vec::new(),
        },
        refused,
        lines: lines.take(MOST_CHANGES).map(|line| hide(&line)).collect(),
    }
}
