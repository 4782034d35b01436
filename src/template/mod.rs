//! Templates with Ansible's behaviour, on minijinja. Knows variables, not where they come from.
//!
//! `render.rs` runs the engine, `environment.rs` sets it up, `rewrite.rs` bends the language where Ansible differs,
//! `operations.rs` does what Python's operators do, `guard.rs` keeps the engine's faults from ending a run,
//! `lazy.rs` renders variables on access, `naming.rs` finds the undefined variable and its location.

mod args;
mod blocking;
mod cache;
pub mod catalogue;
mod check;
mod conversions;
mod engine;
mod environment;
mod error;
mod file;
mod filters;
mod functions;
mod guard;
mod indirect;
mod jinja_tests;
mod lazy;
mod lookups;
mod macro_arguments;
mod methods;
mod mutable;
mod naming;
mod operations;
pub mod own;
mod printf;
mod programs;
mod python;
mod render;
mod rewrite;
pub mod scope;
mod time;
mod versions;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use minijinja::value::{Object, ObjectRepr, ValueKind};

pub use blocking::wait_for;
use blocking::waiting;
use engine::Engine;
pub use error::Error;
pub use filters::{Hashing, crypt};
use programs::Programs;
use rewrite::SourceMode;
pub use scope::{Layer, LookupHost, Scope, WebPage};

use crate::value::mutex::RwLock;
use crate::value::{Origin, ProcessEnvironment, Template, Value};

/// What the names of Ansible's own filters, tests and lookups may begin with.
const COLLECTIONS: [&str; 2] = ["ansible.builtin.", "ansible.legacy."];

/// Renders templates and evaluates expressions. One for a whole run; compiled texts are kept.
#[derive(Debug, Default)]
pub struct Templar {
    /// Whether a condition may be of any type, and is true as in Python (`allow_broken_conditionals`).
    pub lenient: bool,
    /// Lookups and filters start no program: the playbook is only checked, and may be anybody's.
    starts_nothing: bool,
    surroundings: Arc<ProcessEnvironment>,
    /// Of the run's own filters and lookups.
    engine: RwLock<&'static Engine>,
}

/// Without programs.
impl Default for &'static Engine {
    fn default() -> Self {
        static PLAIN: LazyLock<&'static Engine> =
            LazyLock::new(|| Engine::for_programs(Programs::default(), environment::new));
        *PLAIN
    }
}

/// How a template file is rendered: the arguments of Ansible's `template` module.
#[derive(Debug, Clone)]
pub struct Options {
    pub trim_blocks: bool,
    pub lstrip_blocks: bool,
    pub keep_trailing_newline: bool,
    /// Instead of `\n`.
    pub newline: Option<String>,
    /// Instead of `{{`, `}}`, `{%`, `%}`, `{#`, `#}`.
    pub variable: Option<(String, String)>,
    pub block: Option<(String, String)>,
    pub comment: Option<(String, String)>,
    /// Where `include`, `import` and `extends` look.
    pub search: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            trim_blocks: true,
            lstrip_blocks: false,
            keep_trailing_newline: true,
            newline: None,
            variable: None,
            block: None,
            comment: None,
            search: Vec::new(),
        }
    }
}

impl Templar {
    pub fn new() -> Arc<Self> {
        Arc::new(Templar::default())
    }

    /// For templates that see this environment. `lenient`: a condition may be of any type.
    pub fn within(surroundings: Arc<ProcessEnvironment>, lenient: bool) -> Arc<Self> {
        Arc::new(Templar { lenient, surroundings, ..Templar::default() })
    }

    /// For checking playbooks that may be anybody's: no template starts a program.
    pub fn for_checks() -> Arc<Self> {
        Arc::new(Templar { starts_nothing: true, ..Templar::default() })
    }

    /// What its templates see of the environment.
    pub fn surroundings(&self) -> &Arc<ProcessEnvironment> {
        &self.surroundings
    }

    /// Takes note of the filters or lookups in a directory of the project.
    pub fn add_own(&self, sort: own::ProgramKind, directory: &std::path::Path) {
        let mut engine = self.engine.write();
        let mut programs = engine.programs().clone();
        programs.add_directory(sort, &self.surroundings.absolute(directory));
        *engine = Engine::for_programs(programs, environment::new);
    }

    /// A scope without variables.
    pub fn scope(&self) -> Scope {
        self.scoped(Scope::default())
    }

    fn scoped(&self, mut scope: Scope) -> Scope {
        scope.engine = *self.engine.read();
        scope.surroundings = self.surroundings.clone();
        scope.starts_nothing = self.starts_nothing;
        scope
    }

    fn completed(&self, scope: &Scope) -> Arc<Scope> {
        Arc::new(self.scoped(scope.clone()))
    }

    /// Renders every template in a value, at any depth; a lone `{{ expr }}` keeps its type. The result holds no
    /// templates and no lazy parts. A value that turns out to be `omit` is dropped from the mapping that holds it.
    pub fn render(&self, value: &Value, scope: &Scope) -> Result<Value, Error> {
        if value.as_object().is_none() {
            return Ok(value.clone());
        }
        let scope = self.completed(scope);
        if is_omit(value) {
            return Ok(value.clone());
        }
        let Some(template) = value.downcast_object_ref::<Template>() else { return render::settle(value, &scope) };
        let value = render::template(template, &scope)?;
        if is_omit(&value) {
            return Ok(value);
        }
        render::settle_of(&value, &template.source, SourceMode::Template, template.origin.as_ref(), &scope)
    }

    /// As [`Templar::render`], to a string as Ansible prints it.
    pub fn render_string(&self, value: &Value, scope: &Scope) -> Result<String, Error> {
        Ok(render::value_to_text(&self.render(value, scope)?))
    }

    /// Renders the text of a template file.
    pub fn render_file(
        &self,
        text: &str,
        path: &std::path::Path,
        options: &Options,
        scope: &Scope,
    ) -> Result<String, Error> {
        file::render_file(text, path, options, &self.completed(scope))
    }

    /// Evaluates a condition: an expression without braces (`when: x is defined`), or a boolean.
    pub fn condition(&self, expression: &Value, origin: Option<&Origin>, scope: &Scope) -> Result<bool, Error> {
        let value = match expression.downcast_object_ref::<Template>() {
            // `when: "{{ x }}"` is frowned upon, but understood.
            Some(template) => {
                let found = self.indirect(expression, scope)?;
                let origin = template.origin.as_ref().or(origin);
                match found.as_str() {
                    Some(text) => self.expression_value(text, origin, scope)?,
                    None => found,
                }
            }
            None => match expression.as_str() {
                Some(text) if text.trim().is_empty() && self.lenient => return Ok(true),
                Some(text) if text.trim().is_empty() => return Err(Error::other("the condition is empty", origin)),
                Some(text) => self.evaluate(text, origin, &self.completed(scope))?,
                None => expression.clone(),
            },
        };
        match value.kind() {
            ValueKind::Bool => Ok(value.is_true()),
            ValueKind::Undefined | ValueKind::Invalid => {
                Err(Error::other(format!("the condition {expression} has no value"), origin))
            }
            _ if self.lenient => Ok(value.is_true()),
            _ => {
                let message = format!(
                    "the condition {expression} must be true or false, and is {}; write a comparison, such as x | \
                     length > 0, or x | bool",
                    conversions::kind(&value)
                );
                Err(Error::other(message, origin))
            }
        }
    }

    /// An expression, or a list of them, in the variable of a template: `that: "{{ rule }}"`.
    pub fn indirect(&self, value: &Value, scope: &Scope) -> Result<Value, Error> {
        indirect::resolve(self, value, scope)
    }

    /// Refuses a text to be evaluated that a host may have said, unless it is a name or a list of them.
    pub fn check_foreign(&self, value: &Value) -> Result<(), Error> {
        indirect::check_indirect(value, "{{ }}", None)
    }

    /// Evaluates an expression without braces (`loop` of `until`, `debug: var=`), keeping its type.
    pub fn expression_value(&self, expression: &str, origin: Option<&Origin>, scope: &Scope) -> Result<Value, Error> {
        let scope = self.completed(scope);
        let value = self.evaluate(expression, origin, &scope)?;
        if is_omit(&value) {
            return Ok(value);
        }
        render::settle_of(&value, expression, SourceMode::Expression, origin, &scope)
    }

    /// The value of an expression; a string that came of a variable with an expression in it is not evaluated again.
    fn evaluate(&self, expression: &str, origin: Option<&Origin>, scope: &Arc<Scope>) -> Result<Value, Error> {
        render::evaluate_expression(expression.trim(), origin, scope)
    }

    /// Checks the syntax of every template in a value, and that its filters and tests exist, without variables.
    pub fn check_template(&self, value: &Value) -> Result<(), Error> {
        check::check_value_syntax(*self.engine.read(), value)
    }

    /// As [`Templar::check_template`], for an expression without braces.
    pub fn check_expression(&self, expression: &str, origin: Option<&Origin>) -> Result<(), Error> {
        check::check_expression_syntax(*self.engine.read(), expression.trim(), origin)
    }

    /// Runs a lookup by name, as `with_<name>` of a task with this action does; the result is a list.
    pub fn lookup(&self, name: &str, terms: &Value, action: &str, scope: &Scope) -> Result<Value, Error> {
        let terms = self.render(terms, scope)?;
        let terms = match terms.kind() {
            ValueKind::Seq | ValueKind::Iterable => terms.try_iter().into_iter().flatten().collect(),
            _ => vec![terms],
        };
        lookups::run_lookup(name, terms, lookups::of_task(name, action), &self.completed(scope)).map(Value::from)
    }

    /// All variables of a scope as a mapping, each rendered in that scope when it is looked at: `vars`, or one host
    /// of `hostvars`. Such a mapping may be a variable of another scope.
    pub fn view(scope: &Scope) -> Value {
        Value::from_object(lazy::ScopeView(Arc::new(scope.clone())))
    }

    /// A mapping of such views that is large, `hostvars`: arguments of filters are rendered, and it is not.
    pub fn views(mapping: impl Object + 'static) -> Value {
        Value::from_object(lazy::Views(Value::from_object(mapping)))
    }
}

/// The value of `omit`.
pub fn omit() -> Value {
    static OMIT: LazyLock<Value> = LazyLock::new(|| Value::from_object(Omit));
    OMIT.clone()
}

/// Whether a value is `omit`.
pub fn is_omit(value: &Value) -> bool {
    value.downcast_object_ref::<Omit>().is_some()
}

#[derive(Debug)]
struct Omit;

impl Object for Omit {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("omit")
    }
}

/// An engine's error in one line without its own places, for ours are better.
pub(crate) fn engine_error_text(error: &minijinja::Error) -> String {
    let kind = error.kind().to_string();
    match error.detail() {
        Some(detail) if matches!(error.kind(), minijinja::ErrorKind::InvalidOperation) => detail.to_owned(),
        Some(detail) => format!("{kind}: {detail}"),
        None => kind,
    }
}

#[cfg(test)]
mod behaviour;
#[cfg(test)]
mod oracle;
