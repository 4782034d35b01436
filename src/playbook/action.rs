//! Which module a task uses: the key that is no keyword, `action` or `local_action`.

use std::sync::Arc;

use super::inherit::InheritedKeywords;
use super::keywords::{self, KeywordScope};
use super::loader::LoadState;
use super::read::{bool_of, pairs};
use super::{include, role_files};
use crate::value::Origin;
use crate::value::doc::Doc;
use crate::value::nearest::{did_you_mean, nearest};
use crate::value::origin::Diagnostic;
use crate::value::yaml::{Node, NodeKind};

/// What a task is to run, as written.
pub(super) struct TaskAction {
    pub doc: &'static Doc,
    pub written: Arc<str>,
    /// Where its name is.
    pub origin: Origin,
    /// Its arguments: a mapping, a text of the short form, or nothing.
    pub arguments: Option<Node>,
    /// `local_action`.
    pub local: bool,
}

impl LoadState<'_> {
    /// The module of a task; None if it has none or several, which has been complained of.
    pub(super) fn choose(&mut self, map: &Node, place: KeywordScope, around: &InheritedKeywords) -> Option<TaskAction> {
        let mut chosen: Vec<(String, TaskAction)> = Vec::new();
        let mut strangers: Vec<&Node> = Vec::new();
        let mut failed = false;
        for (key, value) in pairs(map) {
            let Some(name) = key.as_str() else {
                let message = format!("a keyword must be a string, this is {}", key.what());
                self.complain(Diagnostic::new(message, Some(&key.origin)));
                failed = true;
                continue;
            };
            if matches!(name, "action" | "local_action") {
                match self.action(key, value, name == "local_action", around) {
                    Some(named) => chosen.push(named),
                    None => failed = true,
                }
                continue;
            }
            if keywords::at(name, place).is_some() || name.starts_with("with_") {
                continue;
            }
            // Both a module and a keyword of plays, as which it has a truth value.
            let of_play = name == "gather_facts" && bool_of(value).is_some();
            let doc = match self.module(name, &key.origin, around) {
                Ok(doc) => doc.filter(|_| !of_play),
                Err(complaint) => {
                    self.complain(complaint);
                    failed = true;
                    continue;
                }
            };
            if let Some(doc) = doc {
                let arguments = Some(value).filter(|value| !matches!(value.kind, NodeKind::Null)).cloned();
                let written = Arc::from(name);
                chosen.push((
                    name.to_owned(),
                    TaskAction { doc, written, origin: key.origin.clone(), arguments, local: false },
                ));
            } else {
                strangers.push(key);
            }
        }
        let only = (chosen.len() == 1).then(|| chosen[0].1.doc);
        let reported = self.complain_of_strangers(&strangers, only, place);
        if let [(first, _), (second, other), ..] = chosen.as_slice() {
            let message = format!("two modules in one task: {first:?} and {second:?}");
            let complaint = Diagnostic::new(message, Some(&other.origin));
            self.complain(complaint.hint("start another task with \"-\""));
            return None;
        }
        if chosen.is_empty() && !reported && !failed {
            self.complain(no_module(map));
        }
        chosen.pop().map(|(_, chosen)| chosen)
    }

    /// `action: copy src=a dest=b`, or a mapping with `module`.
    fn action(
        &mut self,
        key: &Node,
        value: &Node,
        local: bool,
        around: &InheritedKeywords,
    ) -> Option<(String, TaskAction)> {
        let (name, origin, arguments) = match &value.kind {
            NodeKind::Str(text) => {
                let text = text.trim_start();
                let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
                let kind = NodeKind::Str(Arc::from(rest.trim_start()));
                let rest = (!rest.trim().is_empty()).then(|| Node { kind, ..value.clone() });
                (name.to_owned(), value.origin.clone(), rest)
            }
            NodeKind::Map(all) => {
                let Some(module) = value.get("module") else {
                    let message = format!("{:?} is not the name of a module", key.as_str().unwrap_or_default());
                    self.complain(Diagnostic::new(message, Some(&value.origin)).hint("add \"module: NAME\""));
                    return None;
                };
                let rest = all.iter().filter(|(key, _)| key.as_str() != Some("module")).cloned().collect();
                let rest = Node { kind: NodeKind::Map(rest), ..value.clone() };
                (module.as_str().unwrap_or_default().to_owned(), module.origin.clone(), Some(rest))
            }
            _ => {
                let message = format!("this must be the name of a module, this is {}", value.what());
                self.complain(Diagnostic::new(message, Some(&value.origin)));
                return None;
            }
        };
        let found = self.module(&name, &origin, around);
        let found = found.and_then(|found| found.ok_or_else(|| self.unknown_module(&name, &origin)));
        let doc = self.collect(found)?;
        let written = Arc::from(name.as_str());
        Some((name, TaskAction { doc, written, origin, arguments, local }))
    }

    /// Complains of keys that are neither keywords nor modules; true if it did.
    fn complain_of_strangers(
        &mut self,
        strangers: &[&Node],
        module: Option<&'static Doc>,
        place: KeywordScope,
    ) -> bool {
        for key in strangers {
            let name = key.as_str().unwrap_or_default();
            let complaint = match module {
                Some(doc) => self.stray_key(name, &key.origin, doc, place),
                None => self.strange_key(name, &key.origin, place, strangers.len() == 1),
            };
            self.complain(complaint);
        }
        !strangers.is_empty()
    }

    /// A key too many, beside a module.
    fn stray_key(&self, name: &str, origin: &Origin, doc: &'static Doc, place: KeywordScope) -> Diagnostic {
        let is_argument = doc.arguments.iter().any(|a| a.name == name || a.aliases.contains(&name));
        if is_argument && keywords::find_keyword(name).is_none() {
            let message = format!("{name:?} is an argument of {}, not a keyword of {}", doc.name, place.scope_text());
            return Diagnostic::new(message, Some(origin)).hint(format!("indent it below \"{}:\"", doc.name));
        }
        if name.contains('.') {
            let message = format!("two modules in one task: {:?} and {name:?}", doc.name);
            return Diagnostic::new(message, Some(origin)).hint("start another task with \"-\"");
        }
        keywords::unknown(name, origin, place)
    }

    /// A key that may have been meant for the module or for a keyword.
    fn strange_key(&self, name: &str, origin: &Origin, place: KeywordScope, only: bool) -> Diagnostic {
        if keywords::find_keyword(name).is_some() {
            return keywords::unknown(name, origin, place);
        }
        let module = nearest(name, self.module_names());
        let keyword = keywords::unknown(name, origin, place);
        if module.is_some() || only && keyword.hint.is_none() || name.contains('.') {
            return self.unknown_module(name, origin);
        }
        if keyword.hint.is_some() {
            return keyword;
        }
        let message = format!("{name:?} is not a keyword of {} or a module", place.scope_text());
        Diagnostic::new(message, Some(origin))
    }

    fn module_names(&self) -> Vec<&'static str> {
        let mut names = self.loader.known.modules();
        names.extend(include::DOCS.iter().map(|doc| doc.name));
        names
    }

    /// Complains of a module that is not there.
    pub(super) fn unknown_module(&self, name: &str, origin: &Origin) -> Diagnostic {
        let complaint = Diagnostic::new(format!("unknown module {name:?}"), Some(origin));
        let (collection, short) = name.rsplit_once('.').unwrap_or(("", name));
        if !collection.is_empty()
            && let Some(doc) = include::doc(short).or_else(|| self.loader.known.module(short))
        {
            return complaint.hint(format!("windlass has \"{}.{short}\"", doc.collection));
        }
        match did_you_mean(short, self.module_names()) {
            Some(hint) => complaint.hint(hint),
            None if role_files::is_collection_name(name) => complaint.hint(
                "modules of collections are not supported; put your own modules into library/ \
                 (docs/how-to/own-code.md)",
            ),
            None => complaint.hint("\"windlass doc\" lists all modules"),
        }
    }
}

/// Complains of a task without a module.
fn no_module(map: &Node) -> Diagnostic {
    let origin = pairs(map).first().map_or(&map.origin, |(key, _)| &key.origin);
    let complaint = Diagnostic::new("this task has no module", Some(origin));
    match pairs(map) {
        [(key, _)] if key.as_str() == Some("name") => complaint.hint("indent the module's line as far as \"name\""),
        _ => complaint.hint("add a module, for example \"command: ...\""),
    }
}
