//! Templates with Ansible's behaviour, on minijinja. Knows variables, not where they come from.

pub mod scope;

use std::path::PathBuf;
use std::sync::Arc;

pub use scope::Scope;

use crate::value::{Origin, Value};

/// What goes wrong while rendering.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The variable, and where the text that used it stands.
    #[error("{name:?} is undefined")]
    Undefined { name: String, origin: Option<Origin> },
    #[error("{message}")]
    Other { message: String, origin: Option<Origin> },
}

/// Renders templates and evaluates expressions. One for a whole run; compiled texts are kept.
#[derive(Debug)]
pub struct Templar {}

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
        todo!()
    }

    /// Renders every template in a value, at any depth; a lone `{{ expr }}` keeps its type. The result holds no
    /// templates and no lazy parts. A value that turns out to be `omit` is dropped from the mapping that holds it.
    pub fn render(&self, value: &Value, scope: &Scope) -> Result<Value, Error> {
        let _ = (value, scope);
        todo!()
    }

    /// As [`Templar::render`], to a string as Ansible prints it.
    pub fn render_string(&self, value: &Value, scope: &Scope) -> Result<String, Error> {
        let _ = (value, scope);
        todo!()
    }

    /// Renders the text of a template file.
    pub fn render_file(
        &self,
        text: &str,
        path: &std::path::Path,
        options: &Options,
        scope: &Scope,
    ) -> Result<String, Error> {
        let _ = (text, path, options, scope);
        todo!()
    }

    /// Evaluates a condition: an expression without braces (`when: x is defined`), or a boolean.
    pub fn condition(&self, expression: &Value, origin: Option<&Origin>, scope: &Scope) -> Result<bool, Error> {
        let _ = (expression, origin, scope);
        todo!()
    }

    /// Evaluates an expression without braces (`loop` of `until`, `debug: var=`), keeping its type.
    pub fn expression(&self, expression: &str, origin: Option<&Origin>, scope: &Scope) -> Result<Value, Error> {
        let _ = (expression, origin, scope);
        todo!()
    }

    /// Checks the syntax of every template in a value, and that its filters and tests exist, without variables.
    pub fn check(&self, value: &Value) -> Result<(), Error> {
        let _ = value;
        todo!()
    }

    /// As [`Templar::check`], for an expression without braces.
    pub fn check_expression(&self, expression: &str, origin: Option<&Origin>) -> Result<(), Error> {
        let _ = (expression, origin);
        todo!()
    }

    /// Runs a lookup by name, as `with_<name>` does; the result is a list.
    pub fn lookup(&self, name: &str, terms: &Value, scope: &Scope) -> Result<Value, Error> {
        let _ = (name, terms, scope);
        todo!()
    }
}

/// The value of `omit`.
pub fn omit() -> Value {
    todo!()
}

/// Whether a value is `omit`.
pub fn is_omit(value: &Value) -> bool {
    let _ = value;
    todo!()
}
