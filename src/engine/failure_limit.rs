//! `any_errors_fatal` and `max_fail_percentage`: when the failure of some hosts ends the play for the others.

use super::batch::Batch;
use super::host::{HostRun, HostState};
use super::keyword;
use crate::playbook::Task;

/// Ends the play for the hosts that are left, if the hosts that failed are too many.
pub(super) fn spread_failure<'a>(batch: &Batch, task: &Task, hosts: impl IntoIterator<Item = &'a mut HostRun>) {
    let mut hosts: Vec<_> = hosts.into_iter().collect();
    let Some(lost) = hosts.iter().find(|host| matches!(host.state, HostState::Failed | HostState::Unreachable)) else {
        return;
    };
    let scope = batch.task_scope(lost, task);
    let templar = &batch.run.job.templar;
    let fatal = keyword::keyword_flag(templar, ("any_errors_fatal", task.keywords.any_errors_fatal.as_ref()), &scope);
    // If it cannot be rendered, no host continues; the failed host has the error.
    let fatal = fatal.unwrap_or(Some(true)) == Some(true);
    let gone = batch.gone.read();
    // Those that were lost do not count.
    let gone = batch.hosts.iter().filter(|host| gone.get(*host) == Some(&HostState::Failed)).count();
    // What a rescue may save does not count before it has not.
    let saved = hosts.iter().filter(|host| host.state == HostState::Failed && host.rescues > 0).count();
    let gone = gone.saturating_sub(saved);
    let over = batch.max_fail_percentage.is_some_and(|limit| gone as f64 * 100.0 / batch.hosts.len() as f64 > limit);
    if fatal || over {
        hosts.iter_mut().filter(|host| host.going()).for_each(|host| host.state = HostState::Halted);
    }
}
