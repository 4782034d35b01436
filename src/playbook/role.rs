//! Roles as used: in `roles:`, as dependencies, by `import_role` and `include_role`. Each use becomes a block of the
//! role's tasks, after those of its dependencies.

use std::path::Path;
use std::sync::Arc;

use super::inherit::InheritedKeywords;
use super::keywords::{self, KeywordScope};
use super::loader::{LoadState, OwnPrograms};
use super::read::{bool_of, is_null, pairs};
use super::role_files::{collection_of, is_collection_name};
use super::{Block, Handler, Keywords, Role, Step};
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};
use crate::value::{Origin, Vars};

/// `tasks_from` and its like.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    /// Where the first of them is named.
    pub origin: Option<Origin>,
    pub tasks: Option<String>,
    pub vars: Option<String>,
    pub defaults: Option<String>,
    pub handlers: Option<String>,
}

/// One use of a role.
#[derive(Debug)]
pub(super) struct RoleReference {
    name: String,
    origin: Origin,
    params: Vars,
    vars: Vars,
    parts: Parts,
    /// What makes it another use than one with the same parameters.
    distinction: String,
    public: bool,
    /// What `import_role` and `include_role` say; None: what the role says.
    allow_duplicates: Option<bool>,
    validate: bool,
}

impl RoleReference {
    pub(super) fn role_named(name: &str, origin: Origin) -> RoleReference {
        RoleReference {
            name: name.to_owned(),
            origin,
            params: Vars::new(),
            vars: Vars::new(),
            parts: Parts::default(),
            distinction: String::new(),
            public: true,
            allow_duplicates: None,
            validate: true,
        }
    }

    pub(super) fn parts(mut self, parts: Parts) -> RoleReference {
        self.parts = parts;
        self
    }

    /// By `import_role` or `include_role`, with these `vars`: another use than one below `roles:`, or with other `vars`.
    pub(super) fn included(mut self, public: bool, allow_duplicates: bool, vars: Option<&Vars>) -> RoleReference {
        (self.public, self.allow_duplicates) = (public, Some(allow_duplicates));
        self.distinction += &format!("included {:?} ", vars.filter(|vars| !vars.is_empty()));
        self
    }

    pub(super) fn validated(mut self, validate: bool) -> RoleReference {
        self.validate = validate;
        self
    }

    /// Where a file of it that is not there was asked for.
    fn parts_origin(&self) -> &Origin {
        self.parts.origin.as_ref().unwrap_or(&self.origin)
    }

    /// Equal for uses of the same role; None for a use that is always separate.
    fn key(&self, path: &Path) -> Option<String> {
        let (params, vars) = (&self.params, &self.vars);
        let key = || format!("{path:?} {params:?} {vars:?} {:?} {}", self.parts, self.distinction);
        self.allow_duplicates.is_none().then(key)
    }
}

/// What `meta/main.yml` says.
#[derive(Default)]
struct Meta {
    dependencies: Option<Node>,
    collections: Option<Node>,
    allow_duplicates: bool,
    argument_specs: Option<Node>,
}

impl LoadState<'_> {
    /// The steps of `roles:` or of a role's dependencies.
    pub(super) fn roles(&mut self, node: &Node, what: &str, around: &InheritedKeywords) -> Vec<Step> {
        let NodeKind::Seq(items) = &node.kind else {
            if !is_null(node) {
                let message = format!("{what} must be a list, this is {}", node.what());
                self.complain(Diagnostic::new(message, Some(&node.origin)));
            }
            return Vec::new();
        };
        let mut steps = Vec::new();
        for item in items {
            if let Some((used, around)) = self.entry(item, around) {
                steps.extend(self.use_role(used, &around));
            }
        }
        steps
    }

    /// One entry: a name, or a mapping of a name, keywords and parameters.
    fn entry(&mut self, node: &Node, around: &InheritedKeywords) -> Option<(RoleReference, InheritedKeywords)> {
        let named = match &node.kind {
            NodeKind::Str(_) => Some(node),
            NodeKind::Map(_) => node.get("role").or_else(|| node.get("name")),
            _ => None,
        };
        let Some(name_node) = named.filter(|named| named.as_str().is_some_and(|name| !name.trim().is_empty())) else {
            let at = named.unwrap_or(node);
            let what = if named.is_some() { "a role's name must be a string" } else { "this entry has no role" };
            let message = format!("{what}, this is {}", at.what());
            self.complain(Diagnostic::new(message, Some(&at.origin)).hint("write \"- role: NAME\""));
            return None;
        };
        let inside = around.with_keywords(self.inherit(node, KeywordScope::Role, around));
        let written = self.written(name_node)?;
        let name = self.known_text(Some(&written), &inside)?;
        let mut used = RoleReference::role_named(&name, name_node.origin.clone());
        self.parameters(node, &mut used);
        Some((used, inside))
    }

    /// Keys that are no keywords are parameters.
    fn parameters(&mut self, map: &Node, used: &mut RoleReference) {
        for (key, value) in pairs(map) {
            let Some(name) = key.as_str() else {
                let message = format!("the name of a parameter must be a string, this is {}", key.what());
                self.complain(Diagnostic::new(message, Some(&key.origin)));
                continue;
            };
            match name {
                "vars" if matches!(value.kind, NodeKind::Map(_)) => used.vars = self.vars(value),
                "when" | "tags" => used.distinction += &format!("{name} {:?} ", value.to_value(&self.loader.keyring)),
                _ if keywords::at(name, KeywordScope::Role).is_some() => {}
                _ => {
                    self.variable_name(key);
                    self.warn_of_parameter(name, key);
                    if let Some(written) = self.written(value) {
                        used.params.insert(name.into(), written.value);
                    }
                }
            }
        }
    }

    /// A parameter that looks like a misspelt keyword is probably one.
    fn warn_of_parameter(&mut self, name: &str, key: &Node) {
        let strange = keywords::unknown(name, &key.origin, KeywordScope::Role);
        if keywords::find_keyword(name).is_some() || strange.hint.is_some() {
            let warning = format!("{name:?} is not a keyword of a role; windlass passes it to the role as a parameter");
            let warning = Diagnostic::new(warning, Some(&key.origin));
            self.warn(strange.hint.into_iter().fold(warning, Diagnostic::hint));
        }
    }

    /// The steps of one use: its dependencies', then its own block.
    pub(super) fn use_role(&mut self, used: RoleReference, around: &InheritedKeywords) -> Vec<Step> {
        let Some(path) = self.role_directory(&used.name, &used.origin, around) else { return Vec::new() };
        if self.open_roles.contains(&path) {
            let way: Vec<String> = self.open_roles.iter().map(|path| name_of(path)).collect();
            let message = format!("the role {:?} depends on itself", used.name);
            let hint = format!("dependency chain: {} > {}", way.join(" > "), name_of(&path));
            self.complain(Diagnostic::new(message, Some(&used.origin)).hint(hint));
            return Vec::new();
        }
        self.loader.known.own_words(&OwnPrograms::beside(&path));
        self.open_roles.push(path.clone());
        // Files that import each other are looked for within a role.
        let open_files = std::mem::take(&mut self.open_files);
        let steps = self.role_steps(&used, &path, around);
        self.open_files = open_files;
        self.open_roles.pop();
        steps
    }

    fn role_steps(&mut self, used: &RoleReference, path: &Path, around: &InheritedKeywords) -> Vec<Step> {
        let meta = self.meta(path);
        let around = &around.with_keywords(self.collections_of(path, &meta, around));
        let own = self.bare_role(used, path, around, &meta);
        let parent = InheritedKeywords { role: Some(Arc::new(own.clone())), ..around.clone() };
        let before = self.all_roles.len();
        let mut steps = match &meta.dependencies {
            Some(node) => self.roles(node, "\"dependencies\"", &parent),
            None => Vec::new(),
        };
        let dependencies = direct(&steps);
        let role = self.complete_role(used, own, &dependencies, around, &meta, before);
        let inside = InheritedKeywords { role: Some(role.clone()), directory: path.join("tasks"), ..around.clone() };
        let mut tasks: Vec<Step> = Vec::new();
        if used.validate {
            tasks.extend(self.validation(&role, used.parts.tasks.as_deref(), &inside));
        }
        for (file, node) in self.role_trees(&path.join("tasks"), used.parts.tasks.as_deref(), used.parts_origin()) {
            let inside = InheritedKeywords { directory: super::paths::parent(&file), ..inside.clone() };
            self.open_files.push(file);
            tasks.extend(self.steps(&node, "a role's tasks", &inside, KeywordScope::Task));
            self.open_files.pop();
        }
        steps.push(Step::Block(Arc::new(Block {
            origin: used.origin.clone(),
            name: None,
            role_entry: Some(role),
            steps: tasks,
            rescue: Vec::new(),
            always: Vec::new(),
            keywords: around.keywords.clone(),
        })));
        steps
    }

    /// A role looks for others in its own collection and in those that its `meta/main.yml` names; its play's are the
    /// play's alone.
    fn collections_of(&mut self, path: &Path, meta: &Meta, around: &InheritedKeywords) -> Arc<Keywords> {
        let mut keywords = around.keywords.clone();
        let own = collection_of(path).into_iter().map(Arc::from);
        let named = meta.collections.iter().flat_map(|node| self.written_list(node));
        let all: Vec<Arc<str>> = own.chain(named.map(|written| Arc::from(written.value.to_string()))).collect();
        if keywords.collections != all {
            Arc::make_mut(&mut keywords).collections = all;
        }
        keywords
    }

    /// The role with what it has from itself and from those that use it.
    fn bare_role(&mut self, used: &RoleReference, path: &Path, around: &InheritedKeywords, meta: &Meta) -> Role {
        let parent = around.role.as_deref();
        let layer = |base: Option<&Arc<Vars>>, own: Vars| {
            let mut all = base.map(|base| (**base).clone()).unwrap_or_default();
            all.extend(own);
            Arc::new(all)
        };
        let defaults = self.role_vars(&path.join("defaults"), used.parts.defaults.as_deref(), used.parts_origin());
        let vars = self.role_vars(&path.join("vars"), used.parts.vars.as_deref(), used.parts_origin());
        let inherited = layer(parent.map(|role| &role.vars), Vars::new());
        let inherited = layer(Some(&inherited), parent.map(|role| (*role.use_vars).clone()).unwrap_or_default());
        let mut parent_paths = parent.map(|role| role.parent_paths.clone()).unwrap_or_default();
        let mut parents = parent.map(|role| role.parents.clone()).unwrap_or_default();
        // Ansible does not count a role for the parent of its dependencies.
        if used.allow_duplicates.is_some() {
            parents.splice(0..0, parent.map(|role| role.name.clone()));
            parent_paths.splice(0..0, parent.map(|role| role.path.clone()));
        }
        Role {
            name: match collection_of(path) {
                Some(collection) if !is_collection_name(&used.name) => format!("{collection}.{}", name_of(path)).into(),
                _ if used.name.starts_with(['/', '~', '.']) => name_of(path).into(),
                _ => used.name.as_str().into(),
            },
            path: path.to_owned(),
            defaults: layer(parent.map(|role| &role.defaults), defaults),
            vars: layer(Some(&inherited), vars),
            params: layer(parent.map(|role| &role.params), used.params.clone()),
            use_vars: Arc::new(used.vars.clone()),
            handlers: Vec::new(),
            allow_duplicates: used.allow_duplicates.unwrap_or(meta.allow_duplicates),
            // `roles:` and dependencies do not say; `import_role` and `include_role` do.
            public: used.public && (used.allow_duplicates.is_some() || !self.loader.play_defaults.private_role_vars),
            parents,
            parent_paths,
            used_by: parent.map(|role| [std::slice::from_ref(&role.path), &*role.used_by].concat()).unwrap_or_default(),
            distinction: used.distinction.as_str().into(),
            dependencies: Vec::new(),
            argument_spec: None,
        }
    }

    /// Adds what comes of dependencies, and the handlers; an equal use that is there already is taken instead.
    fn complete_role(
        &mut self,
        used: &RoleReference,
        own: Role,
        dependencies: &[Arc<Role>],
        around: &InheritedKeywords,
        meta: &Meta,
        before: usize,
    ) -> Arc<Role> {
        let key = used.key(&own.path);
        if let Some(role) = key.as_ref().and_then(|key| self.uses.get(key)) {
            return role.clone();
        }
        let below = |pick: fn(&Role) -> &Arc<Vars>, own: &Arc<Vars>| {
            let mut all = Vars::new();
            for layer in dependencies.iter().map(|role| pick(role)).chain([own]) {
                all.extend(layer.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            Arc::new(all)
        };
        let mut role = Role {
            defaults: below(|role| &role.defaults, &own.defaults),
            vars: below(|role| &role.vars, &own.vars),
            dependencies: dependencies.iter().map(|role| role.name.clone()).collect(),
            argument_spec: self.argument_spec(&own.path, meta.argument_specs.as_ref(), used.parts.tasks.as_deref()),
            ..own
        };
        // A dependency's variables are seen no further than those of the role that needs it.
        if !role.public {
            self.hide_roles(before);
        }
        role.handlers = self.role_handlers(used, &role, around);
        let role = Arc::new(role);
        self.all_roles.push(role.clone());
        if let Some(key) = key {
            self.uses.insert(key, role.clone());
        }
        role
    }

    fn role_handlers(&mut self, used: &RoleReference, role: &Role, around: &InheritedKeywords) -> Vec<Handler> {
        let directory = role.path.join("handlers");
        let trees = self.role_trees(&directory, used.parts.handlers.as_deref(), used.parts_origin());
        if trees.is_empty() {
            return Vec::new();
        }
        let inside = InheritedKeywords { role: Some(Arc::new(role.clone())), directory, ..around.clone() };
        let mut handlers = Vec::new();
        for (file, node) in trees {
            self.open_files.push(file);
            handlers.extend(self.handlers(&node, "a role's handlers", &inside));
            self.open_files.pop();
        }
        self.warn_of_nameless(&handlers);
        handlers
    }

    fn hide_roles(&mut self, from: usize) {
        for role in &mut self.all_roles[from..] {
            if role.public {
                *role = Arc::new(Role { public: false, ..(**role).clone() });
            }
        }
    }

    /// Reads `meta/main.yml`.
    fn meta(&mut self, path: &Path) -> Meta {
        let directory = path.join("meta");
        let endings = ["yml", "yaml", "json"];
        let Some(file) = endings.iter().map(|end| directory.join(format!("main.{end}"))).find(|file| file.is_file())
        else {
            return Meta::default();
        };
        let Some(node) = self.load_file(&file) else { return Meta::default() };
        if !matches!(node.kind, NodeKind::Map(_)) {
            let message = format!("a role's meta/main.yml must be a mapping, this is {}", node.what());
            self.complain(Diagnostic::new(message, Some(&node.origin)));
        }
        let flag = node.get("allow_duplicates");
        let allow_duplicates = flag.and_then(bool_of);
        if let Some(flag) = flag.filter(|flag| allow_duplicates.is_none() && !is_null(flag)) {
            let message = format!("\"allow_duplicates\" must be true or false, this is {}", flag.what());
            self.complain(Diagnostic::new(message, Some(&flag.origin)));
        }
        Meta {
            dependencies: node.get("dependencies").cloned(),
            collections: node.get("collections").cloned(),
            allow_duplicates: allow_duplicates.unwrap_or(false),
            argument_specs: node.get("argument_specs").cloned(),
        }
    }
}

/// The roles of a list of role blocks.
fn direct(steps: &[Step]) -> Vec<Arc<Role>> {
    let role = |step: &Step| match step {
        Step::Block(block) => block.role_entry.clone(),
        _ => None,
    };
    steps.iter().filter_map(role).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
