//! Keywords: their names, allowed values, places and documentation.
//!
//! To add a keyword: its line in `keywords_of_plays.rs` or `keywords_of_tasks.rs`; if tasks inherit it, a field in
//! [`Keywords`]; otherwise the reading of it in `task.rs`, `block.rs` or `play.rs`.

use super::{Keywords, SourceValue};
use crate::value::Origin;
use crate::value::doc::Argument;
use crate::value::nearest::did_you_mean;
use crate::value::origin::Diagnostic;

/// Where a keyword is allowed; one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeywordScope {
    Play = 1,
    Block = 2,
    Task = 4,
    Handler = 8,
    /// `include_tasks` and `include_role`: only what concerns the include itself.
    Include = 16,
    /// An entry of `roles:` or of a role's dependencies.
    Role = 32,
    ImportPlaybook = 64,
}

impl KeywordScope {
    /// In a person's words.
    pub fn scope_text(self) -> &'static str {
        match self {
            KeywordScope::Play => "a play",
            KeywordScope::Block => "a block",
            KeywordScope::Task => "a task",
            KeywordScope::Handler => "a handler",
            KeywordScope::Include => "an include",
            KeywordScope::Role => "a role",
            KeywordScope::ImportPlaybook => "import_playbook",
        }
    }
}

impl KeywordScope {
    const ALL: [KeywordScope; 7] = [
        KeywordScope::Play,
        KeywordScope::Block,
        KeywordScope::Task,
        KeywordScope::Handler,
        KeywordScope::Include,
        KeywordScope::Role,
        KeywordScope::ImportPlaybook,
    ];
}

/// What may be written for a keyword. A template may replace any scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeywordType {
    Bool,
    Int,
    Float,
    /// A scalar.
    Text,
    /// A scalar, or a list of them.
    Texts,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// An expression, true or false, or a list of them.
    Conditions,
    Mapping,
    /// A mapping, or a list of mappings.
    Mappings,
    /// A list, or a template that becomes one.
    Loop,
    /// Checked by who reads it.
    Any,
}

impl KeywordType {
    /// In a person's words; None: its keyword has a form of its own.
    pub fn shape_text(self) -> Option<String> {
        Some(match self {
            KeywordType::Bool => "true or false".to_owned(),
            KeywordType::Int => "a whole number".to_owned(),
            KeywordType::Float => "a number".to_owned(),
            KeywordType::Text => "a string".to_owned(),
            KeywordType::Texts => "a string or a list of strings".to_owned(),
            KeywordType::Choice(words) => words.join(" | "),
            KeywordType::Conditions => "an expression without braces, true or false, or a list of them".to_owned(),
            KeywordType::Mapping => "a mapping".to_owned(),
            KeywordType::Mappings => "a mapping or a list of mappings".to_owned(),
            KeywordType::Loop => "a list, or a template that becomes one".to_owned(),
            KeywordType::Any => return None,
        })
    }
}

/// One keyword of the language.
pub struct Keyword {
    pub name: &'static str,
    pub shape: KeywordType,
    places: u8,
    /// Where it is kept while tasks inherit it; None: it is not inherited, or adds up instead of replacing.
    pub field: Option<fn(&mut Keywords) -> &mut Option<SourceValue>>,
    /// One sentence or more.
    pub about: &'static str,
    /// Plays or tasks in YAML, with a newline before and behind.
    pub example: &'static str,
    /// What is below it, if that is a mapping of its own.
    pub parts: &'static [Argument],
}

pub(super) const PLAY: u8 = KeywordScope::Play as u8;
pub(super) const BLOCK: u8 = KeywordScope::Block as u8;
pub(super) const TASK: u8 = KeywordScope::Task as u8 | KeywordScope::Handler as u8;
pub(super) const HANDLER: u8 = KeywordScope::Handler as u8;
pub(super) const INCLUDE: u8 = KeywordScope::Include as u8;
pub(super) const ROLE: u8 = KeywordScope::Role as u8;
pub(super) const IMPORT: u8 = KeywordScope::ImportPlaybook as u8;
/// Those that pass from the outside in, whatever they are at.
pub(super) const BASE: u8 = PLAY | BLOCK | TASK | ROLE;

pub(super) const fn keyword(name: &'static str, shape: KeywordType, places: u8) -> Keyword {
    Keyword { name, shape, places, field: None, about: "", example: "", parts: &[] }
}

pub(super) const fn inherited(
    name: &'static str,
    shape: KeywordType,
    places: u8,
    field: fn(&mut Keywords) -> &mut Option<SourceValue>,
) -> Keyword {
    Keyword { name, shape, places, field: Some(field), ..keyword(name, shape, places) }
}

/// Every keyword.
pub fn all_keywords() -> impl Iterator<Item = &'static Keyword> {
    LISTS.iter().copied().flatten()
}

static LISTS: [&[Keyword]; 2] = [super::keywords_of_plays::KEYWORDS, super::keywords_of_tasks::KEYWORDS];

impl Keyword {
    pub(super) const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    pub(super) const fn example(mut self, example: &'static str) -> Self {
        self.example = example;
        self
    }

    pub(super) const fn parts(mut self, parts: &'static [Argument]) -> Self {
        self.parts = parts;
        self
    }

    /// Where it is allowed.
    pub fn places(&self) -> impl Iterator<Item = KeywordScope> {
        KeywordScope::ALL.into_iter().filter(|place| self.is_at(*place))
    }

    /// Whether it is allowed there.
    pub fn is_at(&self, place: KeywordScope) -> bool {
        self.places & place as u8 != 0
    }
}

/// The keyword of that name, wherever it is allowed.
pub fn find_keyword(name: &str) -> Option<&'static Keyword> {
    let search = |list: &&'static [Keyword]| {
        let list = *list;
        list.binary_search_by(|keyword| keyword.name.cmp(name)).ok().map(|index| &list[index])
    };
    LISTS.iter().find_map(search)
}

/// The keyword of that name, if it is allowed there.
pub fn at(name: &str, place: KeywordScope) -> Option<&'static Keyword> {
    find_keyword(name).filter(|keyword| keyword.is_at(place))
}

/// Where a keyword belongs, in a person's words.
fn belongs(keyword: &Keyword) -> &'static str {
    let order = [
        KeywordScope::Play,
        KeywordScope::Block,
        KeywordScope::Handler,
        KeywordScope::Task,
        KeywordScope::Role,
        KeywordScope::ImportPlaybook,
    ];
    // What tasks know is named after them; `listen` alone is a handler's.
    if keyword.is_at(KeywordScope::Task) {
        return KeywordScope::Task.scope_text();
    }
    order.into_iter().find(|place| keyword.is_at(*place)).map_or("something else", KeywordScope::scope_text)
}

/// Complains of a key that is no keyword there.
pub fn unknown(name: &str, origin: &Origin, place: KeywordScope) -> Diagnostic {
    if let Some(keyword) = find_keyword(name) {
        let message = format!("{name:?} is a keyword of {}, not of {}", belongs(keyword), place.scope_text());
        return Diagnostic::new(message, Some(origin));
    }
    let complaint = Diagnostic::new(format!("unknown keyword {name:?} of {}", place.scope_text()), Some(origin));
    let here = all_keywords().filter(|keyword| keyword.is_at(place)).map(|keyword| keyword.name);
    complaint.hint_if_any(did_you_mean(name, here))
}

#[cfg(test)]
mod tests {
    use super::{KeywordScope, LISTS, all_keywords, at, find_keyword};

    #[test]
    fn the_lists_are_sorted_so_that_they_can_be_searched() {
        for list in LISTS {
            assert!(list.windows(2).all(|pair| pair[0].name < pair[1].name));
        }
    }

    #[test]
    fn every_keyword_is_explained_with_an_example_that_has_it() {
        for keyword in all_keywords() {
            assert!(keyword.about.ends_with('.'), "{}: {:?}", keyword.name, keyword.about);
            assert!(keyword.example.contains(&format!("{}:", keyword.name)), "{}", keyword.name);
            assert!(keyword.parts.iter().all(|part| !part.summary.is_empty()), "{}", keyword.name);
        }
    }

    #[test]
    fn a_keyword_of_plays_is_none_of_tasks() {
        assert!(find_keyword("hosts").is_some());
        assert!(at("hosts", KeywordScope::Task).is_none());
        assert!(at("listen", KeywordScope::Handler).is_some());
        assert!(at("listen", KeywordScope::Task).is_none());
    }
}
