//! What the hosts of a batch have in common on their way through a play.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::host::HostState;
use super::{Job, Run, precedence};
use crate::inventory::VarsFiles;
use crate::playbook::{Handler, Play};
use crate::value::mutex::RwLock;

/// One batch of a play's hosts, and what they share.
pub(crate) struct Batch {
    pub run: Arc<Run>,
    pub play: Arc<Play>,
    /// All hosts of the play, and those of this batch, as they began.
    pub play_hosts: Arc<Vec<Arc<str>>>,
    pub hosts: Vec<Arc<str>>,
    /// Whether the play begins by gathering facts.
    pub gather_facts: bool,
    /// Above how many percent of failed hosts the play ends for all.
    pub max_fail_percentage: Option<f64>,
    /// `group_vars/` and `host_vars/` beside the playbook.
    pub files: Arc<VarsFiles>,
    /// The play's handlers, those of roles first; an `include_role` adds to them.
    pub handlers: RwLock<Vec<Arc<Handler>>>,
    /// Variables of the run and the play that are the same for every host.
    pub shared: precedence::BatchVars,
    /// Hosts that failed or were lost, and which of both, in this batch or before; `ansible_play_hosts` leaves them out.
    pub gone: RwLock<HashMap<Arc<str>, HostState>>,
    /// `meta: clear_host_errors`: the play's hosts take part in the plays after it, whatever became of them before.
    pub forgiven: AtomicBool,
    /// `meta: end_play`: the play has no further batches.
    pub ended: AtomicBool,
}

impl Batch {
    /// The name of its play: the pattern of hosts where it has none.
    pub(super) fn play_name(&self) -> String {
        play_name(&self.run.job, &self.play, &self.play.hosts.value.to_string())
    }
}

/// The name of a play; `pattern` where it has none.
pub(super) fn play_name(job: &Job, play: &Play, pattern: &str) -> String {
    match &play.name {
        Some(name) => {
            let scope = precedence::before_any_host(job, play);
            job.templar.render_string(name, &scope).unwrap_or_else(|_| name.to_string())
        }
        None => pattern.to_string(),
    }
}
