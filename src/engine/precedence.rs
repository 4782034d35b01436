//! The variables that a task sees on a host: Ansible's list of precedence, weakest first.

use std::sync::Arc;

use indexmap::IndexSet;
use minijinja::value::{Enumerator, Object, ObjectRepr};

use super::batch::Batch;
use super::host::{HostRun, HostState, HostVars, IncludeLayer};
use super::{Event, Job, Run, target};
use crate::http;
use crate::inventory::{Inventory, VarsFiles};
use crate::playbook::{Keywords, Play, Role, Task};
use crate::template::{LookupHost, Scope, Templar, WebPage};
use crate::value::origin::Diagnostic;
use crate::value::{CORE, HashBehaviour, Value, Vars, mapping};

/// What all hosts of a batch have in common.
pub(crate) struct BatchVars {
    /// Defaults of the play's public roles.
    role_defaults: Vec<Arc<Vars>>,
    role_vars: Vec<Arc<Vars>>,
    /// `groups`, `ansible_check_mode`, `ansible_play_name` and the like.
    magic: Arc<Vars>,
    /// What lookups may ask of the run.
    outside: Arc<dyn LookupHost>,
}

impl BatchVars {
    pub(super) fn new(run: &Arc<Run>, play: &Play, play_hosts: &[Arc<str>], batch: &[Arc<str>]) -> Self {
        let public = || play.all_roles.iter().filter(|role| role.public);
        let mut magic = run_magic(&run.job);
        let list = |names: &[Arc<str>]| names.iter().map(|name| Value::from(name.as_ref())).collect::<Value>();
        magic.insert("ansible_play_hosts_all".into(), list(play_hosts));
        magic.insert("ansible_play_hosts".into(), list(play_hosts));
        magic.insert("play_hosts".into(), list(batch));
        magic.insert("ansible_play_batch".into(), list(batch));
        magic.insert("playbook_dir".into(), Value::from(play.directory.display().to_string()));
        if let Some(name) = &play.name {
            magic.insert("ansible_play_name".into(), name.clone());
        }
        let roles: Vec<Arc<str>> = play.all_roles.iter().map(|role| role.name.clone()).collect();
        let is_dependency = |name: &&Arc<str>| play.all_roles.iter().any(|role| role.dependencies.contains(name));
        let (below, named): (Vec<Arc<str>>, Vec<Arc<str>>) =
            roles.iter().cloned().partition(|name| is_dependency(&name));
        let once = |names: Vec<Arc<str>>| names.into_iter().collect::<IndexSet<_>>().into_iter().collect::<Vec<_>>();
        let (below, roles) = (once(below), once(roles));
        magic.insert("ansible_play_role_names".into(), list(&named));
        magic.insert("ansible_dependent_role_names".into(), list(&below));
        magic.insert("ansible_role_names".into(), list(&roles));
        magic.insert("role_names".into(), list(&named));
        magic.insert("environment".into(), Value::from(Vec::<Value>::new()));
        magic.insert("hostvars".into(), Templar::views(AllHosts { run: Arc::downgrade(run) }));
        BatchVars {
            role_defaults: public().map(|role| role.defaults.clone()).collect(),
            role_vars: public().map(|role| role.vars.clone()).collect(),
            magic: Arc::new(magic),
            outside: Arc::new(AllHosts { run: Arc::downgrade(run) }),
        }
    }
}

/// The layer that holds `groups`: all groups with all their hosts.
pub(crate) fn groups_layer(inventory: &Inventory) -> Arc<Vars> {
    Arc::new(Vars::from([("groups".into(), groups(inventory))]))
}

fn groups(inventory: &Inventory) -> Value {
    let names =
        |group: &str| inventory.hosts_of(group).iter().map(|host| Value::from(host.as_ref())).collect::<Value>();
    mapping(inventory.groups.keys().map(|group| (group, names(group))))
}

fn run_magic(job: &Job) -> Vars {
    let list = |words: &[String]| words.iter().map(|word| Value::from(word.as_str())).collect::<Value>();
    let mut vars = Vars::new();
    let mut set = |name: &str, value: Value| vars.insert(name.into(), value);
    set("ansible_check_mode", Value::from(job.check));
    set("ansible_diff_mode", Value::from(job.diff));
    set("ansible_forks", Value::from(job.forks));
    set("ansible_verbosity", Value::from(job.verbosity));
    set("ansible_run_tags", if job.tags.only.is_empty() { list(&["all".into()]) } else { list(&job.tags.only) });
    set("ansible_skip_tags", list(&job.tags.skip));
    if let Some(limit) = &job.limit {
        set("ansible_limit", Value::from(limit.as_str()));
    }
    let sources: Vec<String> = job.inventory.sources.iter().map(|path| path.display().to_string()).collect();
    set("ansible_inventory_sources", list(&sources));
    set("ansible_version", ansible_version());
    let file = job.options.config_file.as_ref();
    set("ansible_config_file", file.map_or(Value::from(()), |path| Value::from(path.display().to_string())));
    set("omit", crate::template::omit());
    vars
}

/// What every host has until something stronger says otherwise: no facts, and the first inventory as its own, which is
/// where the implicit localhost has it from.
fn weakest(job: &Job) -> Vars {
    let mut vars = Vars::from([("ansible_facts".into(), mapping(Vars::new()))]);
    if let Some(first) = job.inventory.sources.first() {
        let directory = if first.is_dir() { Some(first.as_path()) } else { first.parent() };
        let directory = directory.map(|path| path.display().to_string()).unwrap_or_default();
        vars.insert("inventory_file".into(), Value::from(first.display().to_string()));
        vars.insert("inventory_dir".into(), Value::from(directory));
    }
    vars
}

/// The version of ansible-core whose language this is: what roles ask for is whether it is new enough.
fn ansible_version() -> Value {
    let numbers = CORE.split('.').map(|number| Value::from(number.parse::<u32>().unwrap_or_default()));
    let numbers = ["major", "minor", "revision"].into_iter().zip(numbers);
    mapping([("full", Value::from(CORE)), ("string", Value::from(CORE))].into_iter().chain(numbers))
}

/// What is known before any host: for play names, patterns, `serial`.
pub(crate) fn before_any_host(job: &Job, play: &Play) -> Scope {
    let mut scope = empty(job, &play.directory);
    for role in play.all_roles.iter().filter(|role| role.public) {
        scope.push(role.defaults.clone());
    }
    scope.push(play.vars.clone());
    scope.push(Arc::new(job.prompted.clone()));
    scope.push(job.extra_vars.clone());
    scope.push(Arc::new(run_magic(job)));
    scope.push(groups_layer(&job.inventory));
    combined(job, scope)
}

/// What is known of a host before any play: its variables of the inventory, and extra variables.
pub(crate) fn outside_of_plays(job: &Job, host: &str) -> Scope {
    let mut scope = empty(job, &job.directory);
    scope.push(Arc::new(job.inventory.vars_of(host, None)));
    scope.push(Arc::new(host_magic(&job.inventory, host)));
    scope.push(job.extra_vars.clone());
    scope.push(Arc::new(run_magic(job)));
    scope.push(groups_layer(&job.inventory));
    combined(job, scope)
}

/// `hash_behaviour = merge`: the layers become one.
fn combined(job: &Job, scope: Scope) -> Scope {
    match job.options.hash_behaviour {
        HashBehaviour::Replace => scope,
        HashBehaviour::Merge => scope.merged(),
    }
}

/// Facts as variables; `inject_facts_as_vars = false` leaves `ansible_facts` and `ansible_local` alone.
fn facts_layer(job: &Job, facts: &Arc<Vars>) -> Arc<Vars> {
    if !job.options.facts_apart {
        return facts.clone();
    }
    let kept = |(name, _): &(&Arc<str>, &Value)| matches!(name.as_ref(), "ansible_facts" | "ansible_local");
    Arc::new(facts.iter().filter(kept).map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn empty(job: &Job, directory: &std::path::Path) -> Scope {
    let mut scope = job.templar.scope();
    scope.base = Arc::new(directory.to_path_buf());
    scope.keyring = job.keyring.clone();
    scope.duplicates = job.loader.duplicates.clone();
    scope.search = Arc::new(vec![directory.to_path_buf()]);
    scope.push(Arc::new(weakest(job)));
    scope
}

/// The inventory variables of a host: groups from `all` downwards, then the host itself.
pub(crate) fn inventory_layers(inventory: &Inventory, files: &VarsFiles, host: &str, into: &mut Scope) {
    let vars = inventory.vars_of(host, Some(files));
    let (own, others): (Vars, Vars) = vars.into_iter().partition(|(name, _)| inventory.is_written(host, name));
    into.push(Arc::new(others));
    into.push_own(Arc::new(own));
}

/// `inventory_hostname`, `group_names` and the like.
pub(crate) fn host_magic(inventory: &Inventory, host: &str) -> Vars {
    let mut names: Vec<&str> = inventory.groups_of(host).iter().map(|group| group.name.as_ref()).collect();
    names.retain(|name| *name != "all");
    names.sort_unstable();
    let short = host.split('.').next().unwrap_or(host);
    let mut vars = Vars::from([
        ("inventory_hostname".into(), Value::from(host)),
        ("inventory_hostname_short".into(), Value::from(short)),
        ("group_names".into(), names.into_iter().map(Value::from).collect()),
    ]);
    // The implicit localhost is in no inventory.
    if !inventory.hosts.contains_key(host) && is_localhost(host) {
        vars.insert("ansible_connection".into(), Value::from("local"));
    }
    vars
}

pub(crate) fn is_localhost(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "::1")
}

impl Batch {
    /// The scope of a host, without any task.
    pub(super) fn host_scope(&self, host: &HostRun) -> Scope {
        self.scope(host, None, &Keywords::default())
    }

    /// The scope of a task on a host, without loop variables.
    pub(super) fn task_scope(&self, host: &HostRun, task: &Task) -> Scope {
        let mut scope = self.scope(host, task.role.as_ref(), &task.keywords);
        let reached = target::variables(&self.run.job, &host.name, &task.keywords, &scope);
        scope.lay_below(reached);
        let mut search = Vec::new();
        if let Some(role) = &task.role {
            search.push(role.path.clone());
            search.extend(role.used_by.iter().cloned());
        }
        search.push(task.directory.clone());
        search.push(self.play.directory.clone());
        search.dedup();
        let paths: Value = search.iter().map(|path| Value::from(path.display().to_string())).collect();
        scope.push(Arc::new(Vars::from([("ansible_search_path".into(), paths)])));
        scope.search = Arc::new(search);
        scope
    }

    fn scope(&self, host: &HostRun, role: Option<&Arc<Role>>, keywords: &Keywords) -> Scope {
        let job = &self.run.job;
        let mut scope = empty(job, &self.play.directory);
        scope.outside = Some(self.shared.outside.clone());
        let own_roles = || host.vars.roles.iter().chain(role);
        self.shared.role_defaults.iter().for_each(|layer| scope.push_own(layer.clone()));
        own_roles().for_each(|role| scope.push_own(role.defaults.clone()));
        self.inventory_part(host, &mut scope);
        scope.push(facts_layer(job, &host.vars.facts));
        scope.push_own(self.play.vars.clone());
        if !job.prompted.is_empty() {
            scope.push_own(Arc::new(job.prompted.clone()));
        }
        scope.push_own(host.play_files.clone());
        self.shared.role_vars.iter().for_each(|layer| scope.push_own(layer.clone()));
        for role in own_roles() {
            scope.push_own(role.vars.clone());
            // `vars:` where the role is used: for its own tasks only.
            scope.push_own(role.use_vars.clone());
        }
        keywords.include_loop_vars.iter().for_each(|layer| scope.push(layer.clone()));
        keywords.vars.iter().for_each(|layer| scope.push_own(layer.clone()));
        scope.push(host.vars.merged_vars.clone());
        scope.push_own(host.vars.include_vars.clone());
        scope.push(host.vars.set.clone());
        if let Some(role) = role {
            scope.push_own(role.params.clone());
        }
        for IncludeLayer { vars, own } in &host.include_params {
            match own {
                true => scope.push_own(vars.clone()),
                false => scope.push(vars.clone()),
            }
        }
        scope.push_own(job.extra_vars.clone());
        scope.push(self.shared.magic.clone());
        scope.push(self.run.groups());
        self.live(&mut scope);
        scope.push(host.magic.clone());
        if let Some(role) = role {
            scope.push(Arc::new(role.magic()));
        }
        let scope = combined(job, scope);
        let all = Templar::view(&scope);
        scope.with_layer(Vars::from([("vars".into(), all)]))
    }

    fn inventory_part(&self, host: &HostRun, scope: &mut Scope) {
        host.inventory.iter().for_each(|layer| scope.push_layer(layer.clone()));
    }

    /// `ansible_play_hosts` and `ansible_play_batch` after hosts failed.
    fn live(&self, scope: &mut Scope) {
        let gone = self.gone.read();
        if gone.is_empty() {
            return;
        }
        let rest = |names: &[Arc<str>]| {
            names
                .iter()
                .filter(|name| !gone.contains_key(*name))
                .map(|name| Value::from(name.as_ref()))
                .collect::<Value>()
        };
        scope.push(Arc::new(Vars::from([
            ("ansible_play_hosts".into(), rest(&self.play_hosts)),
            ("play_hosts".into(), rest(&self.hosts)),
            ("ansible_play_batch".into(), rest(&self.hosts)),
        ])));
    }

    /// The variables of a host when it enters the batch, or when a task is delegated to it.
    pub(super) fn enter(&self, name: &Arc<str>, order: usize) -> HostRun {
        let inventory = self.run.inventory.read();
        let mut layers = Scope::default();
        inventory_layers(&inventory, &self.files, name, &mut layers);
        HostRun {
            name: name.clone(),
            order,
            inventory: layers.into_layers(),
            magic: Arc::new(host_magic(&inventory, name)),
            vars: self.run.board.published_vars(name),
            play_files: Arc::default(),
            include_params: Vec::new(),
            notified: indexmap::IndexSet::new(),
            waiting: indexmap::IndexSet::new(),
            state: HostState::Going,
            rescues: 0,
            failure: Vars::new(),
            waits_for: None,
            in_hook: false,
            role_ended: false,
            roles_done: Vec::new(),
        }
    }
}

/// Reads `vars_files` for every host: a name may depend on the host's variables.
pub(crate) fn read_vars_files(batch: &Batch, hosts: Vec<HostRun>) -> Vec<HostRun> {
    if batch.play.vars_files.is_empty() {
        return hosts;
    }
    hosts
        .into_iter()
        .map(|mut host| {
            for written in &batch.play.vars_files {
                let read = vars_file(batch, &host, &written.value, written);
                match read {
                    Ok(vars) => {
                        let behaviour = batch.run.job.options.hash_behaviour;
                        behaviour.combine(Arc::make_mut(&mut host.play_files), vars);
                    }
                    Err(complaint) => {
                        batch.run.count(&host.name, |counts| counts.failed += 1);
                        batch.run.send_event(Event::Warning(format!("{}: {complaint}", host.name)));
                        host.state = HostState::Failed;
                    }
                }
            }
            host
        })
        .collect()
}

/// One entry of `vars_files`; of a nested list the first that exists counts.
fn vars_file(
    batch: &Batch,
    host: &HostRun,
    value: &Value,
    written: &crate::playbook::SourceValue,
) -> Result<Vars, Diagnostic> {
    let job = &batch.run.job;
    let scope = batch.host_scope(host);
    let complain = |message: String| Diagnostic::new(message, Some(&written.origin));
    let rendered = job.templar.render(value, &scope).map_err(|error| complain(error.to_string()))?;
    let names: Vec<String> = match rendered.kind() {
        minijinja::value::ValueKind::Seq => {
            rendered.try_iter().into_iter().flatten().map(|name| name.to_string()).collect()
        }
        _ => vec![rendered.to_string()],
    };
    let paths = names.iter().map(|name| batch.play.directory.join(name));
    let Some(path) = paths.into_iter().find(|path| path.exists()) else {
        return Err(complain(format!("no such vars file: {}", names.join(", ")))
            .hint(format!("looked in {}", batch.play.directory.display())));
    };
    match crate::value::yaml::load_yaml(&path, &job.keyring, &job.loader.duplicates)? {
        Some(node) => node.to_vars(&job.keyring),
        None => Ok(Vars::new()),
    }
}

/// `hostvars`: every host of the inventory, its variables rendered on access.
struct AllHosts {
    run: std::sync::Weak<Run>,
}

impl std::fmt::Debug for AllHosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hostvars")
    }
}

impl LookupHost for AllHosts {
    fn hosts(&self, patterns: &[String]) -> Result<Vec<String>, String> {
        let run = self.run.upgrade().ok_or("the run has ended")?;
        let inventory = run.inventory.read();
        let (hosts, _) = inventory.select_all(patterns).map_err(|complaint| complaint.message)?;
        Ok(hosts.iter().map(|host| host.to_string()).collect())
    }

    fn setting(&self, name: &str) -> Option<Value> {
        self.run.upgrade()?.job.options.settings.get(name).cloned()
    }

    fn fetch(&self, page: &WebPage) -> Result<String, String> {
        match self.run.upgrade().is_some_and(|run| run.job.options.offline.is_some()) {
            true => Err("--offline forbids it".to_owned()),
            false => http::page(page),
        }
    }
}

impl Object for AllHosts {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let run = self.run.upgrade()?;
        let name = key.as_str()?;
        let known = run.inventory.read().hosts.contains_key(name);
        if !known && !is_localhost(name) {
            return None;
        }
        let scope = published_scope(&run, name);
        Some(Templar::view(&scope))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let Some(run) = self.run.upgrade() else { return Enumerator::Empty };
        let inventory = run.inventory.read();
        Enumerator::Values(inventory.hosts.keys().map(|name| Value::from(name.as_ref())).collect())
    }
}

/// A host's variables as others see them: inventory, facts, what it set; extra variables on top.
fn published_scope(run: &Arc<Run>, name: &str) -> Scope {
    let vars: HostVars = run.board.published_vars(name);
    let inventory = run.inventory.read();
    let mut scope = empty(&run.job, &run.job.directory);
    // A host that no play has used yet has the files of the present play.
    let files = vars.files.clone().unwrap_or_else(|| run.beside.read().clone());
    let playbook = vars.files.as_ref().map(|files| files.directory());
    let playbook = playbook.or_else(|| Some(run.job.playbooks.first()?.first()?.directory.as_path()));
    inventory_layers(&inventory, &files, name, &mut scope);
    scope.push(facts_layer(&run.job, &vars.facts));
    scope.push(vars.merged_vars);
    scope.push(vars.include_vars);
    scope.push(vars.set);
    scope.push(run.job.extra_vars.clone());
    scope.push(Arc::new(run_magic(&run.job)));
    scope.push(groups_layer(&inventory));
    scope.push(Arc::new(host_magic(&inventory, name)));
    if let Some(directory) = playbook {
        scope.push(Arc::new(Vars::from([("playbook_dir".into(), Value::from(directory.display().to_string()))])));
    }
    combined(&run.job, scope)
}
