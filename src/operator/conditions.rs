//! The conditions of a deployment, by what is known of it and what is to be done.

use time::OffsetDateTime;

use super::backups::Recency;
use super::decide::{Blocked, Decision, DeploymentView, Limits, RunState, RunView, Seconds};
use crate::resource::status::{HostStatus, Look, short_message};
use crate::resource::{ApplyPolicy, Condition, RunOperation, TABLE};
use crate::worker::time_text;

/// How many days before a certificate expires the condition says so.
const CERTIFICATE_DAYS: i64 = 14;

/// How many names are in a message.
const NAMED: usize = 10;

/// A look older than so many pauses between looks, and the longest look, says nothing about now.
const OLD: Seconds = 3;
const LONGEST_LOOK: Seconds = 1200;

/// What is known of a deployment, and what is to be done.
pub(super) struct Known<'a> {
    pub view: &'a DeploymentView,
    pub look: Option<&'a Look>,
    pub decision: &'a Decision,
    pub limits: Limits,
    pub backups: &'a Recency,
}

/// What a condition says.
#[derive(Clone)]
struct Finding {
    status: &'static str,
    reason: &'static str,
    message: String,
}

fn yes(reason: &'static str, message: impl Into<String>) -> Finding {
    Finding { status: "True", reason, message: message.into() }
}

fn no(reason: &'static str, message: impl Into<String>) -> Finding {
    Finding { status: "False", reason, message: message.into() }
}

fn unknown(reason: &'static str, message: impl Into<String>) -> Finding {
    Finding { status: "Unknown", reason, message: message.into() }
}

/// What the last look says: as it is, or why it says nothing any more.
#[derive(Clone, Copy)]
struct Looked<'a> {
    look: Option<&'a Look>,
    outdated: Option<&'a Finding>,
}

/// Why the last look says nothing about the hosts now, and why nothing about whether they are as the spec says.
fn outdated(known: &Known<'_>, now: OffsetDateTime) -> (Option<Finding>, Option<Finding>) {
    let Some(look) = known.view.look.as_ref() else { return (None, None) };
    if now.unix_timestamp() - look.at > OLD * known.limits.look_every + LONGEST_LOOK {
        let old = unknown("LookTooOld", "the hosts were not looked at for a long time");
        return (Some(old.clone()), Some(old));
    }
    let touched = |run: &&RunView| match run.state {
        RunState::Ended { at, .. } => run.has_changed && at >= look.at,
        RunState::Running | RunState::Lost => true,
        RunState::Waiting => false,
    };
    let changes = known.view.runs.iter().filter(|run| run.operation.changes_hosts());
    let mut runs = changes.filter(touched).peekable();
    let Some(first) = runs.peek() else { return (None, None) };
    let since = unknown("ChangedSince", format!("the hosts were not looked at since the run {} began", first.name));
    let destroys = runs.any(|run| run.operation == RunOperation::Destroy);
    (destroys.then(|| since.clone()), Some(since))
}

/// All conditions. `name`: of the deployment. `failed`: what could not be done of the decision.
pub(super) fn conditions(name: &str, known: &Known<'_>, failed: Option<&str>, now: OffsetDateTime) -> Vec<Condition> {
    let (view, decision) = (known.view, known.decision);
    let (about_hosts, about_spec) = outdated(known, now);
    let look = Looked { look: known.look, outdated: about_hosts.as_ref() };
    let looked = known.look.filter(|look| look.error.is_none());
    let available = seen(look, available);
    let up_to_date = up_to_date(view, Looked { outdated: about_spec.as_ref(), ..look });
    let reachable = seen(look, reachable);
    let degraded = seen(look, |look| match (look.problems.as_slice(), &look.unfinished) {
        ([], None) => no("Healthy", ""),
        (problems, unfinished) => {
            let all: Vec<String> = unfinished.iter().chain(problems).cloned().collect();
            yes("Unhealthy", listed(&all, "; "))
        }
    });
    let ready = if view.deleted {
        no("Deleting", "the object was deleted")
    } else {
        let parts = [("Available", &available), ("UpToDate", &up_to_date), ("HostsReachable", &reachable)];
        let wrong = parts.into_iter().find(|(_, finding)| finding.status != "True");
        match (wrong, degraded.status) {
            (Some((_, finding)), _) if finding.status == "Unknown" => unknown(finding.reason, finding.message.clone()),
            (Some((_, finding)), _) => no(finding.reason, finding.message.clone()),
            (None, "False") => yes("Ready", ""),
            (None, _) => no(degraded.reason, degraded.message.clone()),
        }
    };
    let certificates = seen(look, |look| match look.certificate_days_left {
        None => unknown("NotInstalled", "no certificate was found"),
        Some(days) if days <= 0 => no("Expired", "a certificate has expired"),
        Some(days) if days <= CERTIFICATE_DAYS => no(
            "ExpireSoon",
            format!(
                "a certificate expires in {days} days: an apply renews those of etcd, and a Run with the operation RenewCertificates the others"
            ),
        ),
        Some(days) => yes("Valid", format!("the first certificate expires in {days} days")),
    });
    let of_rows = |summary: fn(&Look) -> &str, word: &str| {
        let word = word.to_owned();
        seen(look, move |look| of_summary(summary(look), &word))
    };
    let found = [
        ("Available", available),
        ("UpToDate", up_to_date),
        ("Progressing", progressing(view)),
        ("Degraded", degraded),
        ("Paused", if view.paused { yes("Paused", "spec.paused is true") } else { no("NotPaused", "") }),
        (
            "Blocked",
            match failed {
                Some(why) => yes("ActionFailed", why),
                None => blocked(name, view, looked, decision),
            },
        ),
        ("HostsReachable", reachable),
        ("EtcdHealthy", of_rows(|look| &look.summary.etcd, "etcd members are healthy")),
        ("ComponentsHealthy", of_rows(|look| &look.summary.components, "components are ready")),
        ("MembersJoined", of_rows(|look| &look.summary.members, "member clusters are ready")),
        ("CertificatesValid", certificates),
        ("BackupRecent", backup_recent(known.backups)),
        ("Drifted", drifted(view, looked)),
        ("Deleting", if view.deleted { yes("Deleted", "the object was deleted") } else { no("NotDeleted", "") }),
        ("Ready", ready),
    ];
    let condition = |(kind, finding): (&str, Finding)| Condition {
        r#type: kind.to_owned(),
        status: finding.status.to_owned(),
        reason: finding.reason.to_owned(),
        message: short_message(if finding.message.is_empty() { finding.reason } else { &finding.message }),
        last_transition_time: time_text(now),
        observed_generation: view.generation,
    };
    found.into_iter().map(condition).collect()
}

/// What a look says, or that there was none that counts.
fn seen(looked: Looked<'_>, find: impl FnOnce(&Look) -> Finding) -> Finding {
    match looked.look {
        Some(_) if let Some(why) = looked.outdated => why.clone(),
        None => unknown("NotLooked", "the hosts were not looked at yet"),
        Some(Look { error: Some(why), .. }) => unknown("LookFailed", why.as_str()),
        Some(look) => find(look),
    }
}

/// Whether clients of the control plane are served: an API server is ready, and etcd has a majority.
fn available(look: &Look) -> Finding {
    // Of all members: the rows may have been cut.
    let etcd = look.summary.etcd.split_once('/');
    let etcd = etcd.and_then(|(healthy, all)| Some((healthy.parse::<usize>().ok()?, all.parse::<usize>().ok()?)));
    if etcd.is_some_and(|(healthy, all)| all > 0 && healthy <= all / 2) {
        return no("EtcdHasNoMajority", format!("{} etcd members are healthy", look.summary.etcd));
    }
    let is_api_server = |component: &str| TABLE.iter().any(|entry| entry.is_api_server() && entry.name == component);
    let serves = |host: &&HostStatus| host.ready.split(' ').any(is_api_server);
    match look.hosts.iter().find(serves) {
        Some(_) => yes("Serving", ""),
        None => no("NoApiServer", "no API server is ready"),
    }
}

fn up_to_date(view: &DeploymentView, look: Looked<'_>) -> Finding {
    seen(look, |look| {
        if look.generation != view.generation {
            return unknown(
                "NotLooked",
                format!("the hosts were not compared with generation {} yet", view.generation),
            );
        }
        match &look.plan {
            None => unknown("NotPlanned", "no plan was made"),
            Some(plan) => match &plan.digest {
                None if !plan.refused_members.is_empty() => {
                    no("MembersRefused", format!("cannot join or leave: {}", listed(&plan.refused_members, "; ")))
                }
                None => yes("UpToDate", "the hosts are as the spec says"),
                Some(_) if plan.refused.is_some() => no("PlanRefused", plan.refused.clone().unwrap_or_default()),
                Some(_) if plan.changes == 1 => no("ChangesPending", "an apply makes 1 change"),
                Some(_) => no("ChangesPending", format!("an apply makes {} changes", plan.changes)),
            },
        }
    })
}

fn progressing(view: &DeploymentView) -> Finding {
    let active = view.runs.iter().find(|run| run.state == RunState::Running);
    match active {
        Some(run) => yes(
            match run.operation {
                RunOperation::Apply => "Applying",
                RunOperation::Upgrade => "Upgrading",
                RunOperation::Rollback => "RollingBack",
                RunOperation::RenewCertificates => "RenewingCertificates",
                RunOperation::UpgradeEtcd => "UpgradingEtcd",
                RunOperation::DowngradeEtcd => "DowngradingEtcd",
                RunOperation::DefragmentEtcd => "DefragmentingEtcd",
                RunOperation::Destroy => "Destroying",
                RunOperation::Backup => "BackingUp",
                RunOperation::Restore => "Restoring",
                RunOperation::UndoRestore => "UndoingRestore",
                RunOperation::ReleaseRestore => "ReleasingRestore",
            },
            format!("the run {} is under way", run.name),
        ),
        None => no("Idle", ""),
    }
}

fn reachable(look: &Look) -> Finding {
    let silent: Vec<String> = look.hosts.iter().filter(|host| !host.reachable).map(|host| host.name.clone()).collect();
    match silent.is_empty() {
        true => yes("AllReachable", ""),
        false => no("HostsUnreachable", format!("these hosts do not answer: {}", listed(&silent, ", "))),
    }
}

fn backup_recent(backups: &Recency) -> Finding {
    match backups {
        Recency::None => unknown("NoBackups", "no EtcdBackup is for this deployment"),
        Recency::NotYet => unknown("NoBackupYet", "no backup has ended yet"),
        Recency::Recent(time) => {
            let time = OffsetDateTime::from_unix_timestamp(*time).map_or_else(|_| String::new(), time_text);
            yes("Recent", format!("the newest good backup is of {time}"))
        }
        Recency::Overdue(why) => no("BackupOverdue", why.as_str()),
        Recency::Failed(why) => no("BackupFailed", why.as_str()),
    }
}

/// `2/3` and what it counts.
fn of_summary(summary: &str, counted: &str) -> Finding {
    let message = format!("{summary} {counted}");
    match summary.split_once('/') {
        Some((_, "0")) | None => unknown("None", message),
        Some((ready, all)) if ready == all => yes("AllHealthy", message),
        Some(_) => no("SomeUnhealthy", message),
    }
}

/// Whether hosts differ from what a run has made of them, while nobody asked for anything else.
fn drifted(view: &DeploymentView, look: Option<&Look>) -> Finding {
    let Some(look) = look else { return unknown("NotLooked", "") };
    let changes = view.runs.iter().rev().filter(|run| run.operation.changes_hosts());
    let applied = changes.into_iter().find_map(|run| match run.state {
        RunState::Ended { well, .. } => Some(well && run.plan_digest.is_some()),
        _ => None,
    });
    let differs = look.plan.as_ref().is_some_and(|plan| plan.digest.is_some());
    match (differs, applied) {
        (false, _) => no("NoDrift", ""),
        (true, Some(true)) if look.generation == view.generation && !view.changed_since_run => {
            yes("HostsDiffer", "the hosts differ from what the last run has made of them")
        }
        (true, None) => no("NotApplied", "no run has ended yet, so the hosts differ from the spec"),
        (true, Some(false)) => {
            no("NotApplied", "the last run failed, or was no apply of a plan, so the hosts differ from the spec")
        }
        (true, Some(true)) => no("SpecChanged", "the hosts differ because the spec was changed"),
    }
}

fn blocked(name: &str, view: &DeploymentView, look: Option<&Look>, decision: &Decision) -> Finding {
    if let Some(lock) = look.and_then(|look| look.lock.as_ref()).filter(|_| progressing(view).status == "False") {
        return yes("LockHeld", format!("{} holds the lock: {}", lock.holder, lock.command));
    }
    let plan = look.and_then(|look| look.plan.as_ref());
    match decision.blocked {
        None if view.apply == ApplyPolicy::Never => no("NeverApplies", ""),
        None => no("NotBlocked", ""),
        Some(Blocked::Paused) => yes("Paused", "spec.paused is true"),
        Some(Blocked::OutsideWindow { until }) => {
            let until = OffsetDateTime::from_unix_timestamp(until).map_or_else(|_| String::new(), time_text);
            yes("OutsideWindow", format!("the next maintenance window opens at {until}"))
        }
        Some(Blocked::Queued) => yes("Queued", "runs of other deployments come first"),
        Some(Blocked::AwaitingApproval) => {
            let digest = plan.and_then(|plan| plan.digest.clone()).unwrap_or_default();
            yes(
                "AwaitingApproval",
                format!(
                    "create a Run with deployment: {name}, operation: Apply and planDigest: \"{digest}\" to apply the plan"
                ),
            )
        }
        Some(Blocked::PlanRefused) => {
            yes("PlanRefused", plan.and_then(|plan| plan.refused.clone()).unwrap_or_default())
        }
        Some(Blocked::BackOff { until }) => {
            let until = OffsetDateTime::from_unix_timestamp(until).map_or_else(|_| String::new(), time_text);
            yes("BackOff", format!("the last run has failed: the next one begins at {until}, or create a Run"))
        }
        Some(Blocked::Destroyed) => {
            yes("Destroyed", "a run has destroyed it: change the spec, or create a Run, to install it again")
        }
        Some(Blocked::Looking) => yes("Looking", "a Run waits until the look at the hosts has ended"),
        Some(Blocked::AwaitingDestroy) => yes(
            "AwaitingDestroy",
            format!(
                "the deletionPolicy is Destroy: create a Run with operation: Destroy and confirm: {name}, or set the policy to Keep"
            ),
        ),
    }
}

fn listed(all: &[String], between: &str) -> String {
    let shown: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
    let more = all.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!("{between}and {more} more") } else { String::new() };
    format!("{}{rest}", shown.join(between))
}

#[cfg(test)]
mod tests;
