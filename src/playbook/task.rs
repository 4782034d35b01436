//! Tasks: their module, their keywords, their loop.

use std::path::PathBuf;
use std::sync::Arc;

use super::action::TaskAction;
use super::include::IncludeKind;
use super::inherit::InheritedKeywords;
use super::keywords::{self, KeywordScope};
use super::keywords_of_tasks::LOOP_CONTROL;
use super::loader::LoadState;
use super::read::{is_null, pairs};
use super::{Action, Keywords, Loop, LoopControl, SourceValue, Step, Task, variable_names};
use crate::value::doc::listed;
use crate::value::nearest::did_you_mean;
use crate::value::origin::Diagnostic;
use crate::value::yaml::Node;
use crate::value::{Origin, Value};

impl Task {
    /// A task with only an action.
    pub(super) fn plain_task(
        origin: Origin,
        name: Option<Value>,
        action: Action,
        keywords: Arc<Keywords>,
        directory: PathBuf,
    ) -> Task {
        Task {
            origin,
            name,
            action,
            keywords,
            role: None,
            repeat: None,
            register: None,
            until: Vec::new(),
            retries: None,
            delay: None,
            changed_when: Vec::new(),
            failed_when: Vec::new(),
            notify: Vec::new(),
            delegate_to: None,
            delegate_facts: false,
            asynchronous: None,
            poll: None,
            directory,
        }
    }
}

impl LoadState<'_> {
    /// A task, or the steps of a static import in its place.
    pub(super) fn task(&mut self, map: &Node, around: &InheritedKeywords, place: KeywordScope) -> Vec<Step> {
        let Some(chosen) = self.choose(map, place, around) else {
            // The keywords may also be wrong; all errors are reported together.
            self.inherit(map, place, around);
            return Vec::new();
        };
        match IncludeKind::of_doc(chosen.doc) {
            Some(verb @ (IncludeKind::ImportTasks | IncludeKind::ImportRole)) => {
                self.import(map, &chosen, verb, around, place)
            }
            Some(verb) => self.include(map, &chosen, verb, around, place).into_iter().collect(),
            None => {
                let keywords = self.inherit(map, place, around);
                let action = self.arguments(&chosen, map.get("args"), &keywords);
                let mut task = self.assemble(map, action, keywords, around, place);
                if chosen.local {
                    run_locally(&mut task);
                }
                vec![Step::Task(Arc::new(task))]
            }
        }
    }

    /// Builds a task from its action, its keywords and its mapping.
    pub(super) fn assemble(
        &mut self,
        map: &Node,
        action: Action,
        keywords: Arc<Keywords>,
        around: &InheritedKeywords,
        place: KeywordScope,
    ) -> Task {
        let name = map.get("name").filter(|name| !is_null(name)).and_then(|name| self.written(name));
        let name = name.map(|name| name.value);
        let mut task = Task::plain_task(map.origin.clone(), name, action, keywords, around.directory.clone());
        task.role = around.role.clone();
        task.notify = task.keywords.notify.clone();
        task.delegate_to = task.keywords.delegate_to.clone();
        task.delegate_facts = self.read_flag(task.keywords.delegate_facts.clone().as_ref()).unwrap_or(false);
        for (key, value) in pairs(map) {
            let Some(keyword) = key.as_str().and_then(|name| keywords::at(name, place)) else { continue };
            // The inherited ones have been checked.
            if keyword.field.is_some() || is_null(value) || !self.shaped(keyword, value) {
                continue;
            }
            self.own_keyword(&mut task, keyword.name, value);
        }
        task.repeat = self.repeat(map);
        let ends_role = task.action.doc.name == "meta"
            && task.action.args.values().any(|one| one.value.as_str() == Some("end_role"));
        if ends_role && task.role.is_none() {
            let complaint = Diagnostic::new("\"end_role\" is used outside of a role", Some(&task.origin));
            self.complain(complaint.hint("\"end_host\" ends the play for a host"));
        }
        self.complain_of_async(&task);
        task
    }

    /// What is plainly written; a template is looked at when the task runs.
    fn complain_of_async(&mut self, task: &Task) {
        let number = |written: &SourceValue| written.value.to_string().trim().parse::<f64>().ok();
        let Some(written) = task.asynchronous.as_ref().filter(|written| number(written).is_some_and(|n| n > 0.0))
        else {
            return;
        };
        let left_alone = task.poll.as_ref().and_then(number) == Some(0.0);
        if let Some((message, hint)) = self.loader.known.refuses_async(task.action.doc, left_alone) {
            self.complain(Diagnostic::new(message, Some(&written.origin)).hint(hint));
        }
    }

    /// Reads a keyword that is the task's alone.
    fn own_keyword(&mut self, task: &mut Task, name: &str, value: &Node) {
        match name {
            "register" => task.register = self.register(value),
            "until" => task.until = self.conditions(name, value),
            "changed_when" => task.changed_when = self.conditions(name, value),
            "failed_when" => task.failed_when = self.conditions(name, value),
            "retries" => task.retries = self.written(value),
            "delay" => task.delay = self.written(value),
            "async" => task.asynchronous = self.written(value),
            "poll" => task.poll = self.written(value),
            _ => {}
        }
    }

    fn register(&mut self, node: &Node) -> Option<Arc<str>> {
        self.variable(node, "register")
    }

    /// The name of a variable that a keyword sets.
    fn variable(&mut self, node: &Node, keyword: &str) -> Option<Arc<str>> {
        let Some(name) = node.as_str() else {
            let message = format!("{keyword:?} must be the name of a variable, this is {}", node.what());
            self.complain(Diagnostic::new(message, Some(&node.origin)));
            return None;
        };
        if let Some(complaint) = variable_names::wrong(name, &node.origin) {
            self.complain(complaint);
            return None;
        }
        Some(name.into())
    }

    /// `loop` or `with_*`, and `loop_control`.
    fn repeat(&mut self, map: &Node) -> Option<Loop> {
        let is_loop = |key: &Node| key.as_str().is_some_and(|name| name == "loop" || name.starts_with("with_"));
        let mut loops = pairs(map).iter().filter(|(key, _)| is_loop(key));
        let control = map.get("loop_control").filter(|node| !is_null(node)).map(|node| self.loop_control(node));
        let (key, items) = loops.next()?;
        if let Some((second, _)) = loops.next() {
            let (first, second_name) = (key.as_str().unwrap_or_default(), second.as_str().unwrap_or_default());
            let message = format!("two loops in one task: {first:?} and {second_name:?}");
            self.complain(Diagnostic::new(message, Some(&second.origin)));
        }
        let lookup = key.as_str().and_then(|name| name.strip_prefix("with_"));
        if is_null(items) {
            let message = format!("{:?} has no value to loop over", key.as_str().unwrap_or_default());
            self.complain(Diagnostic::new(message, Some(&key.origin)));
        }
        let items = self.written(items)?;
        Some(Loop { items, lookup: lookup.map(Arc::from), control: control.unwrap_or_default() })
    }

    fn loop_control(&mut self, map: &Node) -> LoopControl {
        let mut control = LoopControl::default();
        for (key, value) in pairs(map) {
            match key.as_str().unwrap_or_default() {
                "loop_var" => {
                    if let Some(name) = self.variable(value, "loop_var") {
                        control.loop_var = name;
                    }
                }
                "index_var" => control.index_var = self.variable(value, "index_var"),
                "label" => control.label = self.written(value),
                "pause" => control.pause = self.written(value),
                "extended" => {
                    let written = self.written(value);
                    control.extended = self.read_flag(written.as_ref()).unwrap_or(false);
                }
                "extended_allitems" => {
                    let written = self.written(value);
                    control.all_items = self.read_flag(written.as_ref()).unwrap_or(true);
                }
                "break_when" => control.break_when = self.conditions("break_when", value),
                other => {
                    let complaint = Diagnostic::new(format!("loop_control has no {other:?}"), Some(&key.origin));
                    let hint = did_you_mean(other, LOOP_CONTROL.iter().map(|part| part.name));
                    self.complain(complaint.hint(format!("known keys: {}", listed(LOOP_CONTROL))).hint_if_any(hint));
                }
            }
        }
        control
    }

    /// Whether a word names a module or an include.
    pub(super) fn is_module(&self, name: &str) -> bool {
        let name = name.trim();
        super::include::doc(name).is_some() || self.loader.known.module(name).is_some()
    }

    /// Complains of keywords that a static import or an include does not take.
    pub(super) fn complain_of_keywords(
        &mut self,
        map: &Node,
        chosen: &TaskAction,
        refused: impl Fn(&str) -> Option<String>,
    ) {
        for (key, _) in pairs(map) {
            if let Some(hint) = key.as_str().and_then(&refused) {
                let message = format!("{} does not support {:?}", chosen.doc.name, key.as_str().unwrap_or_default());
                self.complain(Diagnostic::new(message, Some(&key.origin)).hint(hint));
            }
        }
    }
}

/// `local_action`: as if delegated to the controller.
fn run_locally(task: &mut Task) {
    let origin = &task.origin;
    let written = |text: &str| Some(SourceValue { value: text.into(), origin: origin.clone() });
    task.delegate_to = written("localhost");
    let mut keywords = (*task.keywords).clone();
    keywords.connection = written("local");
    task.keywords = Arc::new(keywords);
}

impl Default for LoopControl {
    fn default() -> Self {
        LoopControl {
            loop_var: "item".into(),
            index_var: None,
            label: None,
            pause: None,
            extended: false,
            all_items: true,
            break_when: Vec::new(),
        }
    }
}
