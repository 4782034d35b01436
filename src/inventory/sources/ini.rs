//! INI: `[group]` with a host per line and its variables, `[group:children]`, `[group:vars]`.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{Candidate, host_names};
use crate::inventory::{Inventory, graph, literal, shell_words};
use crate::value::Value;
use crate::value::nearest::did_you_mean;
use crate::value::origin::{Diagnostic, Origin, Source};

pub(super) fn accepts_ini(_: &Candidate) -> bool {
    true
}

pub(super) fn read_ini(candidate: &Candidate, inventory: &mut Inventory) -> Result<(), Vec<Diagnostic>> {
    if candidate.path.extension().is_some_and(|extension| extension == "toml") {
        return Err(Diagnostic::new(
            format!("cannot read inventory {}: TOML is not supported", candidate.path.display()),
            None,
        )
        .hint("convert it to YAML or INI")
        .into());
    }
    let text = text(candidate)?;
    let mut reader = Reader {
        candidate,
        source: candidate.source(&text),
        inventory,
        section: Section { group: graph::UNGROUPED.into(), kind: Kind::Hosts },
        awaited: IndexMap::new(),
    };
    for (number, line) in text.lines().enumerate() {
        reader.line(number + 1, line)?;
    }
    Ok(reader.finish()?)
}

/// The text; bytes that are no UTF-8 are let pass in lines that are comments.
fn text(candidate: &Candidate) -> Result<String, Diagnostic> {
    let comments_only = || {
        candidate.bytes().split(|byte| *byte == b'\n').try_fold(String::new(), |mut text, line| {
            match std::str::from_utf8(line) {
                Ok(line) => text.push_str(line),
                Err(_) if line.starts_with(b"#") || line.starts_with(b";") => text.push('#'),
                Err(_) => return None,
            }
            text.push('\n');
            Some(text)
        })
    };
    match candidate.content_text() {
        Ok(text) => Ok(text.to_owned()),
        Err(complaint) => comments_only().ok_or(complaint),
    }
}

struct Reader<'a> {
    candidate: &'a Candidate,
    source: Arc<Source>,
    inventory: &'a mut Inventory,
    section: Section,
    /// Groups that were named before they were declared, by name.
    awaited: IndexMap<String, PendingGroup>,
}

struct Section {
    group: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hosts,
    Children,
    Vars,
}

const KINDS: [(&str, Kind); 3] = [("hosts", Kind::Hosts), ("children", Kind::Children), ("vars", Kind::Vars)];

const SECTIONS: &str = "write [GROUP], [GROUP:children] or [GROUP:vars], without spaces";

enum PendingGroup {
    /// By these groups, as a child; where first.
    Child(Vec<String>, Origin),
    /// By a section of variables.
    Vars(Origin),
}

impl Reader<'_> {
    fn line(&mut self, number: usize, line: &str) -> Result<(), Diagnostic> {
        let text = line.trim();
        if text.is_empty() || text.starts_with(['#', ';']) {
            return Ok(());
        }
        let indent = line.chars().take_while(|c| c.is_whitespace()).count();
        let origin = Origin { source: self.source.clone(), line: number, column: indent + 1 };
        if let Some((group, kind)) = header(text) {
            return self.open_section(group, kind, &origin);
        }
        if text.starts_with('[') && text.ends_with(']') {
            return Err(Diagnostic::new(format!("invalid section: {text}"), Some(&origin)).hint(SECTIONS));
        }
        match self.section.kind {
            Kind::Hosts => self.host(text, &origin),
            Kind::Children => self.child(text, &origin),
            Kind::Vars => self.variable(text, &origin),
        }
    }

    fn open_section(&mut self, group: &str, kind: Option<&str>, origin: &Origin) -> Result<(), Diagnostic> {
        let word = kind.unwrap_or("hosts");
        let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == word) else {
            let message = format!("unknown kind of section {word:?} in [{group}:{word}]");
            let complaint = Diagnostic::new(message, Some(origin)).hint(SECTIONS);
            return Err(complaint.hint_if_any(did_you_mean(word, KINDS.map(|(name, _)| name))));
        };
        // Variables alone do not declare a group.
        let declares = *kind != Kind::Vars;
        if !declares && !self.inventory.groups.contains_key(group) && !self.awaited.contains_key(group) {
            self.awaited.insert(group.into(), PendingGroup::Vars(origin.clone()));
        }
        self.inventory.source_group(group, Some(origin))?;
        if declares && let Some(PendingGroup::Child(parents, at)) = self.awaited.shift_remove(group) {
            for parent in parents {
                self.add_child(&parent, group, &at)?;
            }
        }
        self.section = Section { group: group.into(), kind: *kind };
        Ok(())
    }

    fn child(&mut self, text: &str, origin: &Origin) -> Result<(), Diagnostic> {
        let name = text.split('#').next().unwrap_or_default().trim_end();
        if name.is_empty() || name.contains([':', ']']) || name.contains(char::is_whitespace) {
            return Err(Diagnostic::new(format!("invalid group name {text:?}"), Some(origin))
                .hint(format!("write one group on each line below [{}:children]", self.section.group)));
        }
        let parent = self.section.group.clone();
        if self.inventory.groups.contains_key(name) {
            return self.add_child(&parent, name, origin);
        }
        match self.awaited.get_mut(name) {
            Some(PendingGroup::Child(parents, _)) => parents.push(parent),
            _ => {
                self.awaited.insert(name.into(), PendingGroup::Child(vec![parent], origin.clone()));
            }
        }
        Ok(())
    }

    fn add_child(&mut self, parent: &str, child: &str, origin: &Origin) -> Result<(), Diagnostic> {
        self.inventory.add_child(parent, child).map(drop).map_err(|message| Diagnostic::new(message, Some(origin)))
    }

    fn variable(&mut self, text: &str, origin: &Origin) -> Result<(), Diagnostic> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(Diagnostic::new(format!("invalid variable {text:?}: it has no \"=\""), Some(origin))
                .hint(format!("write one NAME=VALUE on each line below [{}:vars]", self.section.group)));
        };
        let value = literal::parse_literal(value.trim(), Some(origin));
        self.inventory.source_group_var(&self.section.group, &name.trim().into(), value, Some(origin))
    }

    fn host(&mut self, text: &str, origin: &Origin) -> Result<(), Diagnostic> {
        let at = |column: usize| Origin { column: origin.column + column - 1, ..origin.clone() };
        let words = shell_words::split_shell_words(text)
            .map_err(|unfinished| Diagnostic::new(unfinished.message, Some(&at(unfinished.column))))?;
        let Some((entry, vars)) = words.split_first() else {
            return Ok(());
        };
        if entry.text == "---" {
            return Err(Diagnostic::new("this looks like a YAML file, and is read as INI", Some(origin))
                .hint("rename the file to .yml"));
        }
        let named = host_names(&entry.text, &at(entry.column))?;
        if entry.text.ends_with(':') && named.port.is_none() {
            return Err(Diagnostic::new(format!("the host {:?} ends with a colon", entry.text), Some(origin))
                .hint("write a port after the colon, as in web:2222; if this is YAML, rename the file to .yml"));
        }
        let mut pairs: Vec<(Arc<str>, Value)> = Vec::new();
        for word in vars {
            let at = at(word.column);
            let Some((name, value)) = word.text.split_once('=') else {
                return Err(Diagnostic::new(format!("invalid variable {:?}: it has no \"=\"", word.text), Some(&at))
                    .hint("write variables as NAME=VALUE after the host; quote a value that has spaces"));
            };
            pairs.push((name.into(), literal::parse_literal(value, Some(&at))));
        }
        let place = (self.candidate.path.as_path(), Some(origin));
        self.inventory.source_hosts(&self.section.group, &named, &pairs, place)
    }

    /// Complains of the first group that was named and never declared.
    fn finish(self) -> Result<(), Diagnostic> {
        let Some((name, awaited)) = self.awaited.first() else {
            return Ok(());
        };
        let declared = self.inventory.groups.keys().map(|group| &**group).filter(|group| *group != name.as_str());
        let (message, origin) = match awaited {
            PendingGroup::Child(parents, origin) => {
                (format!("[{}:children] names an unknown group: {name:?}", parents[0]), origin)
            }
            PendingGroup::Vars(origin) => (format!("[{name}:vars] is for an unknown group: {name:?}"), origin),
        };
        let complaint = Diagnostic::new(message, Some(origin)).hint(format!("add a section [{name}]"));
        Err(complaint.hint_if_any(did_you_mean(name, declared)))
    }
}

/// `[GROUP]` or `[GROUP:KIND]`, and a comment at most.
fn header(text: &str) -> Option<(&str, Option<&str>)> {
    let (inside, after) = text.strip_prefix('[')?.split_once(']')?;
    let after = after.trim_start();
    let (group, kind) = match inside.split_once(':') {
        Some((group, kind)) => (group, Some(kind)),
        None => (inside, None),
    };
    let word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let named = !group.is_empty() && !group.contains(char::is_whitespace) && kind.is_none_or(word);
    (named && (after.is_empty() || after.starts_with('#'))).then_some((group, kind))
}
