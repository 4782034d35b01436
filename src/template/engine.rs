//! The template engine of a run: compiles texts and keeps what it compiled.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Expression};

use super::Error;
use super::cache::TextCache;
use super::programs::Programs;
use super::rewrite::{SourceMode, rewrite};
use crate::value::mutex::Mutex;

/// All filters, tests and functions, with the programs of a project. Runs with the same programs have the same engine, which
/// lasts as long as the process: nothing in it depends on anything else, so that they do not see each other in it.
///
/// Texts of playbooks are compiled in it and kept, because they come from files and are few, as are template files that are
/// alone. Those that name others, or have a syntax of their own, are compiled in copies of it, which go.
pub(super) struct Engine {
    programs: Programs,
    /// Makes an environment with all filters, tests and functions.
    build: fn() -> Environment<'static>,
    environment: OnceLock<Environment<'static>>,
    /// By whether a backslash in a string literal is a backslash, as in texts, or escapes, as in expressions without braces.
    expressions: [TextCache<Arc<Compiled>>; 2],
    /// Texts, and expressions, that were checked and found good: in a large project the same is written many times.
    pub good: [TextCache<()>; 2],
}

/// How many compiled expressions are kept, of 20 KiB each: more than the large projects that we know have in one run.
const MOST_EXPRESSIONS: usize = 5_000;
/// How many texts are remembered as good.
const MOST_CHECKED: usize = 100_000;

static ENGINES: Mutex<BTreeMap<Programs, &'static Engine>> = Mutex::new(BTreeMap::new());

impl Engine {
    /// The engine for a project with these programs. `build` is the same for all.
    pub(super) fn for_programs(programs: Programs, build: fn() -> Environment<'static>) -> &'static Engine {
        let mut engines = ENGINES.lock();
        engines.entry(programs.clone()).or_insert_with(|| {
            Box::leak(Box::new(Engine {
                programs,
                build,
                environment: OnceLock::new(),
                expressions: [(); 2].map(|()| TextCache::with_room_for(MOST_EXPRESSIONS)),
                good: [(); 2].map(|()| TextCache::with_room_for(MOST_CHECKED)),
            }))
        })
    }

    pub(super) fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Whether a name is that of a function, and so no variable.
    pub(super) fn is_function(&'static self, name: &str) -> bool {
        self.minijinja_environment().globals().any(|(known, _)| known == name)
    }

    pub(super) fn minijinja_environment(&'static self) -> &'static Environment<'static> {
        self.environment.get_or_init(|| {
            let mut environment = (self.build)();
            environment.set_loader(|name| {
                let (text, backslashes) = match (name.strip_prefix(TEXT), name.strip_prefix(FILE)) {
                    (Some(text), _) => (text, true),
                    (None, Some(text)) => (text, false),
                    (None, None) => return Ok(None),
                };
                rewrite(text, SourceMode::Template, &syntax(), backslashes, &self.programs).map(Some)
            });
            environment
        })
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("programs", &self.programs).finish_non_exhaustive()
    }
}

/// Marks names of "template files" that are texts of playbooks.
pub(super) const TEXT: &str = "text:";

/// Marks names that are the texts of template files.
const FILE: &str = "file:";

/// An expression, or why it is none.
pub(super) type Compiled = Result<Expression<'static, 'static>, Error>;

/// The syntax of playbook strings.
pub(super) fn syntax() -> SyntaxConfig {
    static SYNTAX: LazyLock<SyntaxConfig> = LazyLock::new(|| {
        SyntaxConfig::builder().trim_blocks(true).keep_trailing_newline(true).build().expect("constant settings")
    });
    SYNTAX.clone()
}

/// The inside of a text that is `{{ expression }}` and nothing else.
pub(super) fn lone_expression(source: &str) -> Option<&str> {
    let inside = source.strip_prefix("{{")?.strip_suffix("}}")?;
    let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
    let inside = inside.strip_suffix(['-', '+']).unwrap_or(inside);
    // `{{ a }} and {{ b }}` begins and ends so, too; a string literal with braces in it is rare enough to go the long way.
    (!inside.contains("}}") && !inside.contains("{{")).then_some(inside)
}

/// The compiled expression of a source, from the cache or new.
pub(super) fn compile(engine: &'static Engine, source: &str, backslashes: bool) -> Arc<Compiled> {
    let known = &engine.expressions[usize::from(backslashes)];
    known.recall(source).unwrap_or_else(|| {
        let compiled = Arc::new(new_expression(engine, source, backslashes));
        known.keep(source, compiled.clone());
        compiled
    })
}

fn new_expression(engine: &'static Engine, source: &str, backslashes: bool) -> Compiled {
    rewrite(source, SourceMode::Expression, &SyntaxConfig::default(), backslashes, &engine.programs)
        .and_then(|text| engine.minijinja_environment().compile_expression_owned(text))
        .map_err(|error| Error::other(super::engine_error_text(&error), None))
}

/// Whether an expression without braces compiles; the error has no place yet. What is compiled is not kept: it takes
/// 20 KiB, and most of what is checked in a large project is not rendered in the same run.
pub(super) fn check_expression(engine: &'static Engine, source: &str) -> Result<(), Error> {
    new_expression(engine, source, false).map(drop)
}

/// Whether a text compiles, likewise.
pub(super) fn check_text(engine: &'static Engine, source: &str) -> Result<(), Error> {
    if let Some(expression) = lone_expression(source.strip_suffix('\n').unwrap_or(source)) {
        return new_expression(engine, expression, true).map(drop);
    }
    rewrite(source, SourceMode::Template, &syntax(), true, &engine.programs)
        .and_then(|text| engine.minijinja_environment().template_from_named_str(TEXT, &text).map(drop))
        .map_err(|error| Error::other(super::engine_error_text(&error), None))
}

/// The compiled text of a template file that names no other and has the usual syntax, from the cache or new.
pub(super) fn file_template(
    engine: &'static Engine,
    text: &str,
) -> Result<minijinja::Template<'static, 'static>, minijinja::Error> {
    engine.minijinja_environment().get_template(&format!("{FILE}{text}"))
}

/// Whether the engine's name of a template is that of one from [`file`].
pub(super) fn is_file(name: &str) -> bool {
    name.starts_with(FILE)
}

/// The engine, to be copied for a template file.
pub(super) fn copy_of(engine: &'static Engine) -> Environment<'static> {
    engine.minijinja_environment().clone()
}
