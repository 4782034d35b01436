//! A host on its way through a play, and what it lets others read.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexSet;

use super::fact_cache::Cache;
use super::target;
use crate::inventory::VarsFiles;
use crate::playbook::{Role, Task};
use crate::template::Layer;
use crate::value::mutex::RwLock;
use crate::value::{HashBehaviour, Vars, mapping};

/// A host in a play: it moves into a task and out of it; meanwhile, the task alone owns it.
#[derive(Debug, Clone)]
pub(crate) struct HostRun {
    pub name: Arc<str>,
    /// Its place among the play's hosts; results go back to this order.
    pub order: usize,
    /// Group and host variables of the inventory and of the files beside it and the playbook, weakest first.
    pub inventory: Vec<Layer>,
    /// `inventory_hostname` and the like.
    pub magic: Arc<Vars>,
    pub vars: HostVars,
    /// Names that were notified since the handlers were run.
    pub notified: IndexSet<Arc<str>>,
    /// Handlers (by their index in the play's list) that are being run and wait for their turn.
    pub waiting: IndexSet<usize>,
    pub state: HostState,
    /// How many blocks with `rescue` it is in: what fails there may be saved yet.
    pub rescues: usize,
    /// `ansible_failed_task` and `ansible_failed_result` of the failure that put it into its state; a `rescue` sees them.
    pub failure: Vars,
    /// Variables of the play's `vars_files`, as this host sees them.
    pub play_files: Arc<Vars>,
    /// Variables of the includes that it is in, outermost first.
    pub include_params: Vec<IncludeLayer>,
    /// `--start-at-task`: it runs nothing before it reaches this task.
    pub waits_for: Option<Arc<Task>>,
    /// It runs tasks of a hook.
    pub in_hook: bool,
    /// `meta: end_role`: it runs nothing more of the innermost role that it is in.
    pub role_ended: bool,
    /// Roles that ran on it in this play: they do not run twice.
    pub roles_done: Vec<Arc<Role>>,
}

/// Whether a host continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostState {
    Going,
    /// A task failed; a `rescue` may save it.
    Failed,
    /// Cannot be reached; nothing saves it in this run.
    Unreachable,
    /// `meta: end_host` or `end_play`.
    Ended,
    /// Another host's failure ended the play for it (`any_errors_fatal`); it did not fail itself.
    Halted,
}

/// Variables that an include gives its steps.
#[derive(Debug, Clone)]
pub(crate) struct IncludeLayer {
    pub vars: Arc<Vars>,
    /// The person wrote them; the items of a loop may come from a host.
    pub own: bool,
}

/// What a host learnt while it ran, kept from play to play.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostVars {
    pub facts: Arc<Vars>,
    /// Whether `facts` come of `setup`, in this run or an earlier one.
    pub gathered: bool,
    pub include_vars: Arc<Vars>,
    /// Those that `include_vars` merged with what a host may have said. A name is in one of the two.
    pub merged_vars: Arc<Vars>,
    /// `set_fact` and `register`.
    pub set: Arc<Vars>,
    /// Roles that `include_role` made public to it.
    pub roles: Vec<Arc<Role>>,
    /// `group_vars/` and `host_vars/` beside the playbook of its last play.
    pub files: Option<Arc<VarsFiles>>,
}

impl HostRun {
    pub(super) fn going(&self) -> bool {
        self.state == HostState::Going && !self.role_ended
    }
}

impl HostVars {
    /// Adds facts; they are seen as `ansible_x` and as `ansible_facts.x`. Those that would say how a host is reached are seen
    /// in `ansible_facts` alone: the host's own text would choose a program of this machine.
    pub(super) fn add_facts(&mut self, facts: Vars) {
        let mut dict: Vars = match self.facts.get("ansible_facts") {
            Some(old) => old
                .try_iter()
                .into_iter()
                .flatten()
                .map(|key| (Arc::from(key.to_string()), old.get_item(&key).unwrap_or_default()))
                .collect(),
            None => Vars::new(),
        };
        for (name, value) in &facts {
            let short = name.strip_prefix("ansible_").unwrap_or(name);
            dict.insert(short.into(), value.clone());
        }
        extend(&mut self.facts, facts.into_iter().filter(|(name, _)| !target::is_connection_variable(name)).collect());
        extend(&mut self.facts, Vars::from([("ansible_facts".into(), mapping(dict))]));
    }

    /// Adds variables of `include_vars`.
    pub(super) fn include(&mut self, own: Vars, merged: Vars, behaviour: HashBehaviour) {
        let (mine, theirs) = (Arc::make_mut(&mut self.include_vars), Arc::make_mut(&mut self.merged_vars));
        own.keys().for_each(|name| _ = theirs.shift_remove(name));
        merged.keys().for_each(|name| _ = mine.shift_remove(name));
        behaviour.combine(mine, own);
        theirs.extend(merged);
    }

    fn take(&mut self, delegated: DelegatedFacts) {
        match delegated {
            DelegatedFacts::Facts(facts) => self.add_facts(facts),
            DelegatedFacts::Set(vars) => extend(&mut self.set, vars),
        }
    }
}

/// What the task of another host leaves a host (`delegate_facts`).
#[derive(Debug, Clone)]
pub(crate) enum DelegatedFacts {
    Facts(Vars),
    Set(Vars),
}

/// What hosts have published: `hostvars` reads it, and a later play begins with it.
#[derive(Debug, Default)]
pub(crate) struct PublishedVars {
    all: RwLock<HashMap<Arc<str>, Published>>,
    /// What earlier runs knew.
    cache: Option<Cache>,
}

#[derive(Debug, Default)]
struct Published {
    vars: HostVars,
    /// The host itself, which may be on its way through a task, has not got them yet.
    delegated_facts: Vec<DelegatedFacts>,
}

impl PublishedVars {
    pub(super) fn new(cache: Option<Cache>) -> PublishedVars {
        PublishedVars { all: RwLock::default(), cache }
    }

    /// Publishes what a host knows, with what it was given meanwhile.
    pub(super) fn publish(&self, host: &Arc<str>, vars: &mut HostVars) {
        let mut all = self.all.write();
        let published = all.entry(host.clone()).or_default();
        published.delegated_facts.drain(..).for_each(|delegated| vars.take(delegated));
        published.vars = vars.clone();
    }

    /// Gives a host something: others see it at once, the host itself when it publishes or receives.
    pub(super) fn give(&self, host: &Arc<str>, delegated: DelegatedFacts) {
        // Beside what the cache knows, not instead of it.
        self.published_vars(host);
        let facts = matches!(delegated, DelegatedFacts::Facts(_));
        let mut all = self.all.write();
        let published = all.entry(host.clone()).or_default();
        published.vars.take(delegated.clone());
        published.delegated_facts.push(delegated);
        if let Some(cache) = self.cache.as_ref().filter(|_| facts) {
            cache.store_facts(host, &published.vars);
        }
    }

    /// Hands a host what it was given.
    pub(super) fn receive(&self, host: &mut HostRun) {
        let waiting =
            |all: &HashMap<Arc<str>, Published>| all.get(&host.name).is_some_and(|own| !own.delegated_facts.is_empty());
        if waiting(&self.all.read()) {
            self.publish(&host.name, &mut host.vars);
        }
    }

    /// What is known of a host, from this run or from the cache.
    pub(super) fn published_vars(&self, host: &str) -> HostVars {
        let all = self.all.read();
        if let Some(published) = all.get(host) {
            return published.vars.clone();
        }
        drop(all);
        let Some(cache) = &self.cache else { return HostVars::default() };
        let vars = cache.cached_facts(host).unwrap_or_default();
        let mut all = self.all.write();
        all.entry(host.into()).or_insert_with(|| Published { vars, delegated_facts: Vec::new() }).vars.clone()
    }

    /// Keeps a host's facts for later runs.
    pub(super) fn publish_host(&self, host: &HostRun) {
        if let Some(cache) = &self.cache {
            cache.store_facts(&host.name, &host.vars);
        }
    }

    /// Forgets a host's facts, those of earlier runs too.
    pub(super) fn clear_facts(&self, host: &mut HostRun) {
        host.vars.facts = Arc::default();
        host.vars.gathered = false;
        if let Some(cache) = &self.cache {
            cache.forget_host(&host.name);
        }
        self.publish(&host.name, &mut host.vars);
    }
}

/// Adds variables to a shared layer.
pub(crate) fn extend(layer: &mut Arc<Vars>, more: Vars) {
    Arc::make_mut(layer).extend(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    /// The names by which `target.rs` finds how a host is reached are in its text.
    #[test]
    fn no_fact_says_how_a_host_is_reached() {
        let mut names: Vec<&str> = include_str!("target.rs")
            .split('"')
            .filter(|text| {
                text.starts_with("ansible_") && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            })
            .filter(|name| *name != "ansible_")
            .collect();
        assert!(names.len() > 20, "{names:?}");
        names.extend(["ansible_async_dir", "ansible_python_interpreter"]);
        let mut host = HostVars::default();
        host.add_facts(names.iter().map(|name| (Arc::from(*name), Value::from("x"))).collect());
        let kept = ["ansible_distribution", "ansible_ssh_host_key_ed25519_public", "ansible_user_id", "of_its_own"];
        host.add_facts(kept.iter().map(|name| (Arc::from(*name), Value::from("x"))).collect());
        for name in names {
            assert!(!host.facts.contains_key(name), "{name}");
            let short = Value::from(name.trim_start_matches("ansible_"));
            assert_eq!(host.facts["ansible_facts"].get_item(&short).unwrap(), Value::from("x"), "{name}");
        }
        assert!(kept.iter().all(|name| host.facts.contains_key(*name)));
    }
}
