//! What passes from the outside in: plays to roles, blocks and tasks. Conditions and tags add up, variables and
//! environment lie in layers, of all others the nearest wins.

use std::path::PathBuf;
use std::sync::Arc;

use super::keywords::{self, KeywordScope};
use super::loader::LoadState;
use super::read::{is_null, is_template, pairs};
use super::{Include, Keywords, Role, SourceValue};
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};
use crate::value::{Value, Vars};

/// What is around a step.
#[derive(Debug, Clone)]
pub(super) struct InheritedKeywords {
    pub keywords: Arc<Keywords>,
    pub role: Option<Arc<Role>>,
    /// The directory of the file that is being read.
    pub directory: PathBuf,
}

impl InheritedKeywords {
    /// The keywords around the steps of an include.
    pub(super) fn of_include(include: &Include) -> InheritedKeywords {
        let mut keywords = include.apply.clone();
        if keywords.collections != include.task.keywords.collections {
            Arc::make_mut(&mut keywords).collections.clone_from(&include.task.keywords.collections);
        }
        InheritedKeywords { keywords, role: include.task.role.clone(), directory: include.task.directory.clone() }
    }

    /// The same place with other keywords.
    pub(super) fn with_keywords(&self, keywords: Arc<Keywords>) -> InheritedKeywords {
        InheritedKeywords { keywords, ..self.clone() }
    }
}

impl LoadState<'_> {
    /// The keywords in `map`, with all inherited ones. Complains of wrong shapes; unknown keys are for
    /// the caller.
    pub(super) fn inherit(&mut self, map: &Node, place: KeywordScope, around: &InheritedKeywords) -> Arc<Keywords> {
        // Shared with what is around it for as long as nothing is added.
        let mut all = around.keywords.clone();
        for (key, value) in pairs(map) {
            let Some(keyword) = key.as_str().and_then(|name| keywords::at(name, place)) else { continue };
            if !self.shaped(keyword, value) || is_null(value) {
                continue;
            }
            match keyword.field {
                Some(field) => {
                    if let Some(written) = self.written(value) {
                        *field(Arc::make_mut(&mut all)) = Some(written);
                    }
                }
                None => self.add(&mut all, keyword.name, value, place, around),
            }
        }
        all
    }

    /// Adds a keyword that does not replace what is around it.
    fn add(
        &mut self,
        all: &mut Arc<Keywords>,
        name: &str,
        value: &Node,
        place: KeywordScope,
        around: &InheritedKeywords,
    ) {
        match name {
            "when" => Arc::make_mut(all).when.extend(self.conditions(name, value)),
            "tags" => {
                for tag in self.tags(value, around) {
                    if !all.tags.contains(&tag) {
                        Arc::make_mut(all).tags.push(tag);
                    }
                }
            }
            // The variables of a play, and of the use of a role, are layers of their own.
            "vars" if !matches!(place, KeywordScope::Play | KeywordScope::Role) => {
                let vars = self.vars(value);
                if !vars.is_empty() {
                    Arc::make_mut(all).vars.push(Arc::new(vars));
                }
            }
            "collections" => {
                let written = self.written_list(value);
                let names = written.iter().map(|written| Arc::from(written.value.to_string()));
                Arc::make_mut(all).collections = names.collect();
            }
            "environment" => Arc::make_mut(all).environment.extend(self.written_list(value)),
            "module_defaults" => Arc::make_mut(all).module_defaults.extend(self.written_list(value)),
            "notify" => {
                let notify = self.written_list(value);
                if !notify.is_empty() {
                    Arc::make_mut(all).notify = notify;
                }
            }
            _ => {}
        }
    }

    /// Tags: strings with commas, or a list of them; templates must be known before the run.
    pub(super) fn tags(&mut self, node: &Node, around: &InheritedKeywords) -> Vec<Arc<str>> {
        let items = match &node.kind {
            NodeKind::Seq(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let mut tags = Vec::new();
        for item in items {
            let Some(written) = self.written(item) else { continue };
            let value = if is_template(item) {
                let vars = self.vars_at(around);
                let Some(value) = self.render_static(&written, &vars) else { continue };
                value
            } else {
                written.value
            };
            add_tags(&mut tags, &value);
        }
        tags
    }

    /// Renders what must be known before the run; a value without templates is itself.
    pub(super) fn render_static(&mut self, written: &SourceValue, vars: &Vars) -> Option<Value> {
        if written.value.downcast_object_ref::<crate::value::Template>().is_none() {
            return Some(written.value.clone());
        }
        let rendered = self.loader.known.render(&written.value, vars).map_err(|complaint| Diagnostic {
            message: format!("this must be known before the run: {}", complaint.message),
            origin: Some(written.origin.clone()),
            hint: complaint.hint,
        });
        self.collect(rendered)
    }

    /// The variables known before the run at a place, the strongest of each name.
    pub(super) fn vars_at(&self, around: &InheritedKeywords) -> Vars {
        let mut vars = Vars::new();
        let mut add = |layer: &Vars| vars.extend(layer.iter().map(|(name, value)| (name.clone(), value.clone())));
        if let Some(role) = &around.role {
            add(&role.defaults);
        }
        add(&self.base.vars);
        if let Some(role) = &around.role {
            add(&role.vars);
            add(&role.use_vars);
        }
        around.keywords.vars.iter().for_each(|layer| add(layer));
        if let Some(role) = &around.role {
            add(&role.params);
        }
        add(&self.loader.extra_vars);
        vars.insert("playbook_dir".into(), Value::from(self.base.directory.display().to_string()));
        if let Some(role) = &around.role {
            vars.extend(role.magic());
        }
        vars
    }
}

fn add_tags(tags: &mut Vec<Arc<str>>, value: &Value) {
    if value.kind() == minijinja::value::ValueKind::Seq {
        for item in value.try_iter().into_iter().flatten() {
            add_tags(tags, &item);
        }
        return;
    }
    let text = value.to_string();
    tags.extend(text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(Arc::from));
}
