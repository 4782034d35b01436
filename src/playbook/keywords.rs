//! The one table of keywords: what each is called, what may be written for it, and where it may stand.
//!
//! To add a keyword: its line here; if tasks inherit it, a field in [`Keywords`] and `field` in its line; otherwise
//! the reading of it in `task.rs`, `block.rs` or `play.rs`.

use super::{Keywords, Written};
use crate::value::Origin;
use crate::value::origin::{Complaint, nearest};

/// Where a keyword may stand; one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
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

impl Place {
    /// In a person's words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Place::Play => "a play",
            Place::Block => "a block",
            Place::Task => "a task",
            Place::Handler => "a handler",
            Place::Include => "an include",
            Place::Role => "a role",
            Place::ImportPlaybook => "import_playbook",
        }
    }
}

/// What may be written for a keyword. A template may stand for any scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shape {
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

pub(super) struct Keyword {
    pub name: &'static str,
    pub shape: Shape,
    places: u8,
    /// Where it is kept while tasks inherit it; None: it is not inherited, or adds up instead of replacing.
    pub field: Option<fn(&mut Keywords) -> &mut Option<Written>>,
}

const PLAY: u8 = Place::Play as u8;
const BLOCK: u8 = Place::Block as u8;
const TASK: u8 = Place::Task as u8 | Place::Handler as u8;
const HANDLER: u8 = Place::Handler as u8;
const INCLUDE: u8 = Place::Include as u8;
const ROLE: u8 = Place::Role as u8;
const IMPORT: u8 = Place::ImportPlaybook as u8;
/// Those that pass from the outside in, whatever they stand at.
const BASE: u8 = PLAY | BLOCK | TASK | ROLE;

const fn keyword(name: &'static str, shape: Shape, places: u8) -> Keyword {
    Keyword { name, shape, places, field: None }
}

const fn inherited(
    name: &'static str,
    shape: Shape,
    places: u8,
    field: fn(&mut Keywords) -> &mut Option<Written>,
) -> Keyword {
    Keyword { name, shape, places, field: Some(field) }
}

const DEBUGGER: Shape = Shape::Choice(&["always", "never", "on_failed", "on_unreachable", "on_skipped"]);
const ORDER: Shape = Shape::Choice(&["inventory", "reverse_inventory", "sorted", "reverse_sorted", "shuffle"]);

/// Every keyword, sorted by name.
pub(super) static KEYWORDS: &[Keyword] = &[
    keyword("action", Shape::Any, TASK | INCLUDE),
    keyword("always", Shape::Any, BLOCK),
    inherited("any_errors_fatal", Shape::Bool, BASE, |k| &mut k.any_errors_fatal),
    keyword("args", Shape::Mapping, TASK | INCLUDE),
    keyword("async", Shape::Int, TASK),
    inherited("become", Shape::Bool, BASE, |k| &mut k.r#become),
    inherited("become_exe", Shape::Text, BASE, |k| &mut k.become_exe),
    inherited("become_flags", Shape::Text, BASE, |k| &mut k.become_flags),
    inherited("become_method", Shape::Text, BASE, |k| &mut k.become_method),
    inherited("become_user", Shape::Text, BASE, |k| &mut k.become_user),
    keyword("block", Shape::Any, BLOCK),
    keyword("changed_when", Shape::Conditions, TASK),
    inherited("check_mode", Shape::Bool, BASE, |k| &mut k.check_mode),
    keyword("collections", Shape::Texts, BASE | INCLUDE),
    inherited("connection", Shape::Text, BASE, |k| &mut k.connection),
    inherited("debugger", DEBUGGER, BASE | INCLUDE, |k| &mut k.debugger),
    keyword("delay", Shape::Float, TASK),
    inherited("delegate_facts", Shape::Bool, BLOCK | TASK | ROLE, |k| &mut k.delegate_facts),
    inherited("delegate_to", Shape::Text, BLOCK | TASK | ROLE, |k| &mut k.delegate_to),
    inherited("diff", Shape::Bool, BASE, |k| &mut k.diff),
    keyword("environment", Shape::Mappings, BASE),
    keyword("fact_path", Shape::Text, PLAY),
    keyword("failed_when", Shape::Conditions, TASK),
    keyword("force_handlers", Shape::Bool, PLAY),
    keyword("gather_facts", Shape::Bool, PLAY),
    keyword("gather_subset", Shape::Texts, PLAY),
    keyword("gather_timeout", Shape::Int, PLAY),
    keyword("handlers", Shape::Any, PLAY),
    keyword("hosts", Shape::Texts, PLAY),
    inherited("ignore_errors", Shape::Bool, BASE | INCLUDE, |k| &mut k.ignore_errors),
    inherited("ignore_unreachable", Shape::Bool, BASE, |k| &mut k.ignore_unreachable),
    keyword("import_playbook", Shape::Text, IMPORT),
    keyword("listen", Shape::Texts, HANDLER),
    keyword("local_action", Shape::Any, TASK),
    keyword("loop", Shape::Loop, TASK | INCLUDE),
    keyword("loop_control", Shape::Mapping, TASK | INCLUDE),
    keyword("max_fail_percentage", Shape::Float, PLAY),
    keyword("module_defaults", Shape::Mappings, BASE),
    keyword("name", Shape::Text, BASE | INCLUDE | IMPORT),
    inherited("no_log", Shape::Bool, BASE | INCLUDE, |k| &mut k.no_log),
    keyword("notify", Shape::Texts, BLOCK | TASK),
    keyword("order", ORDER, PLAY),
    keyword("poll", Shape::Int, TASK),
    inherited("port", Shape::Int, BASE, |k| &mut k.port),
    keyword("post_tasks", Shape::Any, PLAY),
    keyword("pre_tasks", Shape::Any, PLAY),
    keyword("register", Shape::Text, TASK | INCLUDE),
    inherited("remote_user", Shape::Text, BASE, |k| &mut k.remote_user),
    keyword("rescue", Shape::Any, BLOCK),
    keyword("retries", Shape::Int, TASK),
    keyword("role", Shape::Text, ROLE),
    keyword("roles", Shape::Any, PLAY),
    inherited("run_once", Shape::Bool, BASE | INCLUDE, |k| &mut k.run_once),
    keyword("serial", Shape::Any, PLAY),
    keyword("strategy", Shape::Any, PLAY),
    keyword("tags", Shape::Texts, BASE | INCLUDE | IMPORT),
    keyword("tasks", Shape::Any, PLAY),
    inherited("throttle", Shape::Int, BASE, |k| &mut k.throttle),
    inherited("timeout", Shape::Int, BASE | INCLUDE, |k| &mut k.timeout),
    keyword("until", Shape::Conditions, TASK),
    // The old name of `remote_user`, still read in plays.
    inherited("user", Shape::Text, PLAY, |k| &mut k.remote_user),
    keyword("vars", Shape::Mapping, BASE | INCLUDE | IMPORT),
    keyword("vars_files", Shape::Any, PLAY),
    keyword("vars_prompt", Shape::Any, PLAY),
    keyword("when", Shape::Conditions, BLOCK | TASK | ROLE | INCLUDE | IMPORT),
];

impl Keyword {
    /// Whether it may stand there.
    pub(super) fn is_at(&self, place: Place) -> bool {
        self.places & place as u8 != 0
    }
}

/// The keyword of that name, wherever it may stand.
pub(super) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.binary_search_by(|keyword| keyword.name.cmp(name)).ok().map(|index| &KEYWORDS[index])
}

/// The keyword of that name, if it may stand there.
pub(super) fn at(name: &str, place: Place) -> Option<&'static Keyword> {
    find(name).filter(|keyword| keyword.is_at(place))
}

/// Where a keyword belongs, in a person's words.
fn belongs(keyword: &Keyword) -> &'static str {
    let order = [Place::Play, Place::Block, Place::Handler, Place::Task, Place::Role, Place::ImportPlaybook];
    // What tasks know is named after them; `listen` alone is a handler's.
    if keyword.is_at(Place::Task) {
        return Place::Task.words();
    }
    order.into_iter().find(|place| keyword.is_at(*place)).map_or("another place", Place::words)
}

/// Complains of a key that is no keyword there.
pub(super) fn unknown(name: &str, origin: &Origin, place: Place) -> Complaint {
    if let Some(keyword) = find(name) {
        let message = format!("{name:?} is a keyword of {}, not of {}", belongs(keyword), place.words());
        return Complaint::new(message, Some(origin));
    }
    let complaint = Complaint::new(format!("unknown keyword {name:?} of {}", place.words()), Some(origin));
    let here = KEYWORDS.iter().filter(|keyword| keyword.is_at(place)).map(|keyword| keyword.name);
    match nearest(name, here) {
        Some(word) => complaint.hint(format!("did you mean {word:?}?")),
        None => complaint,
    }
}

#[cfg(test)]
mod tests {
    use super::{KEYWORDS, Place, at, find};

    #[test]
    fn the_table_is_sorted_so_that_it_can_be_searched() {
        assert!(KEYWORDS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn a_keyword_of_plays_is_none_of_tasks() {
        assert!(find("hosts").is_some());
        assert!(at("hosts", Place::Task).is_none());
        assert!(at("listen", Place::Handler).is_some());
        assert!(at("listen", Place::Task).is_none());
    }
}
