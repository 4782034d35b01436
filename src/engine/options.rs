//! How a run goes about its work, apart from what it runs: what configuration and command line may say of it.
//! The default is Ansible's.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::bundle::RequiredSigners;
use crate::value::{HashBehaviour, Vars};

/// How a run goes about its work. Each field names its key in the section `[defaults]` of `ansible.cfg`.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `gathering` (`ANSIBLE_GATHERING`).
    pub gathering: Gathering,
    /// `hash_behaviour` (`ANSIBLE_HASH_BEHAVIOUR`).
    pub hash_behaviour: HashBehaviour,
    /// `inject_facts_as_vars = false`: facts are in `ansible_facts` alone.
    pub facts_apart: bool,
    /// `error_on_missing_handler = false`: notifying a missing handler is a warning, not a failure.
    pub missing_handlers_pass: bool,
    /// `--flush-cache`: the facts that the cache has of the inventory's hosts are forgotten at the beginning.
    pub flush_cache: bool,
    /// `fact_caching = jsonfile`; None is `memory`: facts last as long as the run.
    pub fact_cache: Option<FactCache>,
    /// `poll_interval` (`ANSIBLE_POLL_INTERVAL`): how often a task with `async` and no `poll` asks; None: every 15 s.
    pub poll_interval: Option<Duration>,
    /// `--start-at-task`: nothing before the first task of that name or pattern is run.
    pub start_at_task: Option<String>,
    /// `--step`: the person is asked before each task.
    pub step: bool,
    /// `--offline`: windlass connects only to the inventory's hosts and API servers, and to these names, addresses and
    /// networks; None: whatever a task asks for.
    pub offline: Option<Vec<String>>,
    /// All settings in force, by Ansible's names (`DEFAULT_FORKS`): what the lookup `config` gives.
    pub settings: Arc<Vars>,
    /// The file of settings.
    pub config_file: Option<PathBuf>,
    /// `--uploads`: how many hosts get file content at once; None: no limit.
    pub uploads: Option<NonZeroUsize>,
    /// `bundle_signers`: whose signature a bundle needs; None: no signature is needed.
    pub signers: Option<Arc<RequiredSigners>>,
}

/// When a play gathers facts of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gathering {
    /// Unless it says `gather_facts: false`.
    #[default]
    Implicit,
    /// Only if it says `gather_facts: true`.
    Explicit,
    /// As implicit, but not from hosts whose facts are known, from this run or from the cache.
    Smart,
}

/// Where facts are kept from run to run: a JSON file per host, as Ansible's `jsonfile` keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactCache {
    /// `fact_caching_connection` (`ANSIBLE_CACHE_PLUGIN_CONNECTION`); made when it is not there.
    pub directory: PathBuf,
    /// `fact_caching_prefix` (`ANSIBLE_CACHE_PLUGIN_PREFIX`): what the files' names begin with.
    pub prefix: String,
    /// `fact_caching_timeout` (`ANSIBLE_CACHE_PLUGIN_TIMEOUT`, 86400 s by default): older files are not read;
    /// None (written as 0): they never get too old.
    pub timeout: Option<Duration>,
}
