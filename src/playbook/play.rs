//! Playbooks and plays.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::inherit::InheritedKeywords;
use super::keywords::{self, KeywordScope};
use super::loader::{LoadState, OwnPrograms};
use super::paths::{normal, parent, similar_name};
use super::read::{is_null, pairs};
use super::{Base, Handler, Hooks, Keywords, Play, Step};
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};
use crate::value::{Origin, Vars};

impl LoadState<'_> {
    /// The plays of a file. `outer` and `vars` are what an import adds to each of them.
    pub(super) fn load_plays(&mut self, path: &Path, outer: &Keywords, vars: &Vars, by: Option<&Origin>) -> Vec<Play> {
        let path = normal(path);
        if self.open_files.contains(&path) {
            let message = format!("the playbook {} imports itself", self.loader.shown(&path).display());
            self.complain(Diagnostic::new(message, by));
            return Vec::new();
        }
        let wrong = self.wrong_so_far();
        let Some(node) = self.load_file(&path) else {
            if self.wrong_so_far() == wrong {
                let complaint =
                    Diagnostic::new(format!("the playbook {} is empty", self.loader.shown(&path).display()), by);
                self.complain(complaint.hint("a playbook must be a list of plays, each with \"hosts\" and \"tasks\""));
            }
            return Vec::new();
        };
        let NodeKind::Seq(items) = &node.kind else {
            let complaint = Diagnostic::new(
                format!("a playbook must be a list of plays, this is {}", node.what()),
                Some(&node.origin),
            );
            self.complain(complaint.hint("start each play with \"- \""));
            return Vec::new();
        };
        self.loader.known.own_words(&OwnPrograms::beside(&parent(&path)));
        self.loader.known.own_words(&self.loader.words);
        self.open_files.push(path.clone());
        let plays = items.iter().flat_map(|item| self.entry_of_playbook(item, &path, outer, vars)).collect();
        self.open_files.pop();
        plays
    }

    fn entry_of_playbook(&mut self, node: &Node, path: &Path, outer: &Keywords, vars: &Vars) -> Vec<Play> {
        if !matches!(node.kind, NodeKind::Map(_)) {
            let message = format!("a play must be a mapping, this is {}", node.what());
            self.complain(Diagnostic::new(message, Some(&node.origin)));
            return Vec::new();
        }
        let is_import =
            |key: &Node| matches!(key.as_str(), Some("import_playbook" | "ansible.builtin.import_playbook"));
        match pairs(node).iter().find(|(key, _)| is_import(key)) {
            Some((_, file)) => self.import_playbook(node, file, path, outer, vars),
            None => self.play(node, path, outer, vars).into_iter().collect(),
        }
    }

    fn import_playbook(&mut self, map: &Node, file: &Node, path: &Path, outer: &Keywords, vars: &Vars) -> Vec<Play> {
        for (key, _) in pairs(map) {
            let name = key.as_str().unwrap_or_default();
            if name != "ansible.builtin.import_playbook" && keywords::at(name, KeywordScope::ImportPlaybook).is_none() {
                self.complain(keywords::unknown(name, &key.origin, KeywordScope::ImportPlaybook));
            }
        }
        let directory = self.absolute_directory(path);
        self.base = Arc::new(Base { directory, vars: Arc::new(vars.clone()) });
        let around = InheritedKeywords { keywords: Arc::new(outer.clone()), role: None, directory: parent(path) };
        let mut keywords = (*self.inherit(map, KeywordScope::ImportPlaybook, &around)).clone();
        let mut inner = vars.clone();
        for layer in keywords.vars.drain(..) {
            // What an outer import says wins, as in `--extra-vars`.
            inner.extend(
                layer.iter().filter(|(name, _)| !vars.contains_key(*name)).map(|(n, v)| (n.clone(), v.clone())),
            );
        }
        let Some(written) = self.written(file) else { return Vec::new() };
        let Some(name) = self.known_text(Some(&written), &around) else { return Vec::new() };
        let target = parent(path).join(&name);
        if !target.is_file() {
            let complaint = Diagnostic::new(format!("cannot find the playbook {name:?}"), Some(&file.origin));
            self.complain(match similar_name(&parent(path), &name) {
                Some(other) => complaint.hint(format!("did you mean {other:?}?")),
                None => complaint.hint(format!("searched {}", self.loader.shown(&target).display())),
            });
            return Vec::new();
        }
        self.load_plays(&target, &keywords, &inner, Some(&file.origin))
    }

    pub(super) fn play(&mut self, map: &Node, path: &Path, outer: &Keywords, import_vars: &Vars) -> Option<Play> {
        self.complain_of_play_keywords(map);
        let directory = self.absolute_directory(path);
        let mut vars = self.play_vars(map);
        vars.extend(import_vars.iter().map(|(name, value)| (name.clone(), value.clone())));
        self.base = Arc::new(Base { directory: directory.clone(), vars: Arc::new(vars) });
        self.all_roles.clear();
        self.uses.clear();
        let outside = InheritedKeywords { keywords: Arc::new(outer.clone()), role: None, directory: parent(path) };
        let keywords = self.inherit(map, KeywordScope::Play, &outside);
        let around = InheritedKeywords { keywords: keywords.clone(), role: None, directory: directory.clone() };
        let hosts = self.hosts(map);
        let part = |name: &str| map.get(name).filter(|node| !is_null(node));
        let hooks = self.hooks(&map.origin, &around);
        // In the order in which they run: that is the order in which roles are first used.
        let pre_tasks = self.play_steps(part("pre_tasks"), "\"pre_tasks\"", &around);
        let roles = part("roles").map(|node| self.roles(node, "\"roles\"", &around)).unwrap_or_default();
        let tasks = self.play_steps(part("tasks"), "\"tasks\"", &around);
        let post_tasks = self.play_steps(part("post_tasks"), "\"post_tasks\"", &around);
        let handlers = part("handlers").map(|node| self.handlers(node, "\"handlers\"", &around)).unwrap_or_default();
        self.warn_of_nameless(&handlers);
        let mut one = |name: &str| part(name).and_then(|node| self.written(node));
        let (name, gather_facts, gather_subset) = (one("name"), one("gather_facts"), one("gather_subset"));
        let (gather_timeout, fact_path) = (one("gather_timeout"), one("fact_path"));
        let (max_fail_percentage, force_handlers) = (one("max_fail_percentage"), one("force_handlers"));
        Some(Play {
            origin: map.origin.clone(),
            name: name.map(|name| name.value),
            hosts: hosts?,
            gather_facts,
            gather_subset,
            gather_timeout,
            fact_path,
            serial: self.serial(part("serial")),
            strategy: self.strategy(part("strategy")),
            order: self.order(part("order")),
            max_fail_percentage,
            force_handlers: self.read_flag(force_handlers.as_ref()).unwrap_or(self.loader.play_defaults.force_handlers),
            vars: self.base.vars.clone(),
            vars_files: self.vars_files(part("vars_files")),
            vars_prompt: self.prompts(part("vars_prompt")),
            keywords,
            directory,
            pre_tasks,
            roles,
            tasks,
            post_tasks,
            handlers,
            hooks,
            all_roles: std::mem::take(&mut self.all_roles),
        })
    }

    /// The files of tasks that configuration names.
    fn hooks(&mut self, origin: &Origin, around: &InheritedKeywords) -> Hooks {
        let files = self.loader.hooks.clone();
        let mut steps = |setting: &str, file: Option<PathBuf>| {
            let Some(file) = file else { return Vec::new() };
            if !file.is_file() {
                let message = format!("cannot find the file {:?} from the setting {setting}", self.loader.shown(&file));
                self.complain(Diagnostic::new(message, None));
                return Vec::new();
            }
            self.tasks_of_file(&file.display().to_string(), origin, around, KeywordScope::Task)
        };
        Hooks {
            before_play: steps("before_play", files.before_play),
            after_play: steps("after_play", files.after_play),
            before_role: steps("before_role", files.before_role),
            after_role: steps("after_role", files.after_role),
        }
    }

    /// Complains of keys that plays do not have.
    fn complain_of_play_keywords(&mut self, map: &Node) {
        for (key, _) in pairs(map) {
            let Some(name) = key.as_str() else {
                let message = format!("a keyword must be a string, this is {}", key.what());
                self.complain(Diagnostic::new(message, Some(&key.origin)));
                continue;
            };
            match keywords::at(name, KeywordScope::Play) {
                Some(_) => {}
                None if self.is_module(name) => {
                    let complaint = Diagnostic::new(format!("module {name:?} in a play"), Some(&key.origin));
                    self.complain(complaint.hint("put tasks below \"tasks:\" of a play"));
                }
                None => self.complain(keywords::unknown(name, &key.origin, KeywordScope::Play)),
            }
        }
    }

    fn play_vars(&mut self, map: &Node) -> Vars {
        match map.get("vars") {
            Some(node) if matches!(node.kind, NodeKind::Map(_)) => self.vars(node),
            _ => Vars::new(),
        }
    }

    fn play_steps(&mut self, node: Option<&Node>, what: &str, around: &InheritedKeywords) -> Vec<Step> {
        node.map(|node| self.steps(node, what, around, KeywordScope::Task)).unwrap_or_default()
    }

    /// The directory of a file as seen from anywhere: it outlives the way the playbook was named.
    fn absolute_directory(&self, file: &Path) -> PathBuf {
        normal(&self.loader.surroundings.absolute(parent(file)))
    }

    /// Warns of handlers that nothing can notify.
    pub(super) fn warn_of_nameless(&mut self, handlers: &[Handler]) {
        super::handlers::nameless(handlers).for_each(|warning| self.warn(warning));
    }
}
