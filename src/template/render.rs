//! Evaluating what `engine.rs` compiled: the one place that runs the template engine.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use minijinja::ErrorKind;
use minijinja::value::ValueKind;

use super::engine::{TEXT, compile, lone_expression};
use super::lazy::{self, ScopeView};
use super::rewrite::SourceMode;
use super::{Error, Scope, guard, naming};
use crate::value::{Origin, Template, Value};

/// How deep texts may refer to texts that refer to texts.
const DEPTH: usize = 40;

thread_local! {
    /// The texts that are being rendered on this thread, outermost first: where their source and scope are.
    static RUNNING: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
    /// While a text with statements is rendered: how many values it put out, and the last one.
    static OUTPUT: RefCell<Option<(usize, Value)>> = const { RefCell::new(None) };
    /// Texts that failed since the outermost one began, so that explaining an error does not render them again.
    static FAILED: RefCell<HashMap<(usize, usize), FailedTemplate>> = RefCell::default();
    /// How many texts are being rendered or explained on this thread.
    static NESTED: Cell<usize> = const { Cell::new(0) };
}

/// A text that failed in a scope. It holds both, so that nothing else gets the addresses by which it is found.
struct FailedTemplate {
    _source: Arc<str>,
    _scope: Arc<Scope>,
    error: Error,
}

/// Renders a text of a playbook; a lone expression keeps its type. The result may be lazy.
pub(super) fn template(template: &Template, scope: &Arc<Scope>) -> Result<Value, Error> {
    let _session = Session::enter();
    let here = identity(template, scope);
    if let Some(error) = FAILED.with_borrow(|failed| failed.get(&here).map(|failed| failed.error.clone())) {
        return Err(error);
    }
    let _running = RenderFrame::enter(template, here)?;
    let origin = template.origin.as_ref();
    guard::located(origin, || render_text(&template.source, origin, scope)).inspect_err(|error| {
        let (source, scope) = (template.source.clone(), scope.clone());
        FAILED.with_borrow_mut(|failed| {
            failed.insert(here, FailedTemplate { _source: source, _scope: scope, error: error.clone() })
        });
    })
}

/// Which text in which scope, while both live.
fn identity(template: &Template, scope: &Arc<Scope>) -> (usize, usize) {
    (template.source.as_ptr() as usize, Arc::as_ptr(scope) as usize)
}

/// Renders a text that may have template marks.
pub(super) fn render_text(source: &str, origin: Option<&Origin>, scope: &Arc<Scope>) -> Result<Value, Error> {
    // A block scalar's newline behind a lone expression does not make it text; behind text it stays.
    let body = source.strip_suffix('\n');
    let Some(expression) = lone_expression(body.unwrap_or(source)) else { return mixed(source, origin, scope) };
    let value = evaluate(expression, true, origin, scope)?;
    Ok(match value.as_str().filter(|_| body.is_some()) {
        Some(text) => Value::from(format!("{text}\n")),
        None => value,
    })
}

/// Evaluates an expression without braces. The result may be lazy, but not undefined.
pub(super) fn evaluate_expression(source: &str, origin: Option<&Origin>, scope: &Arc<Scope>) -> Result<Value, Error> {
    evaluate(source, false, origin, scope)
}

/// `backslashes`: as for [`crate::template::rewrite`].
fn evaluate(source: &str, backslashes: bool, origin: Option<&Origin>, scope: &Arc<Scope>) -> Result<Value, Error> {
    let _session = Session::enter();
    let compiled = compile(scope.engine, source, backslashes);
    let compiled = (*compiled).as_ref().map_err(|error| place(error.clone(), origin))?;
    let explain = |error| naming::explain(&error, source, SourceMode::Expression, origin, scope);
    let value = guard::located(origin, || compiled.eval(root(scope)).map_err(explain))?;
    if value.is_undefined() {
        return Err(naming::undefined(source, SourceMode::Expression, origin, scope));
    }
    Ok(value)
}

/// [`lazy::settle`] for the result of a text: names the undefined variable in it.
pub(super) fn settle_of(
    value: &Value,
    source: &str,
    reading: SourceMode,
    origin: Option<&Origin>,
    scope: &Arc<Scope>,
) -> Result<Value, Error> {
    guard::located(origin, || lazy::settle(value, scope)).map_err(|error| match error {
        Error::Undefined { name, origin: None } if name.is_empty() => naming::undefined(source, reading, origin, scope),
        error => error,
    })
}

/// The root of a template: the scope's variables.
pub(super) fn root(scope: &Arc<Scope>) -> Value {
    Value::from_object(ScopeView(scope.clone()))
}

/// A text with several parts: a string, unless exactly one value came out and nothing else.
fn mixed(source: &str, origin: Option<&Origin>, scope: &Arc<Scope>) -> Result<Value, Error> {
    let _session = Session::enter();
    let name = format!("{TEXT}{source}");
    let explain = |error: &minijinja::Error| naming::explain(error, source, SourceMode::Template, origin, scope);
    let template = scope.engine.minijinja_environment().get_template(&name).map_err(|error| explain(&error))?;
    let outer = OUTPUT.replace(Some((0, Value::UNDEFINED)));
    let rendered = template.render(root(scope));
    let output = OUTPUT.replace(outer);
    let text = rendered.map_err(|error| explain(&error))?;
    match output {
        Some((1, value)) if text == value_to_text(&value) => Ok(value),
        _ => Ok(Value::from(text)),
    }
}

/// Called for every value that a template prints.
pub(super) fn put_out(value: &Value) {
    OUTPUT.with_borrow_mut(|output| {
        if let Some((count, last)) = output {
            *count += 1;
            *last = value.clone();
        }
    });
}

/// A value as text, as Python prints it; nothing for `None`. The value must be settled.
pub(super) fn value_to_text(value: &Value) -> String {
    match value.kind() {
        ValueKind::None => String::new(),
        ValueKind::Number if !value.is_integer() => float(value),
        _ => value.to_string(),
    }
}

/// A float as Python prints it: very large and very small ones with an exponent of two digits.
fn float(value: &Value) -> String {
    let plain = value.to_string();
    match f64::try_from(value.clone()) {
        Ok(number) if number.is_finite() && number != 0.0 && !(1e-4..1e16).contains(&number.abs()) => {
            let scientific = format!("{number:e}");
            let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
            let (sign, exponent) = exponent.strip_prefix('-').map_or(("+", exponent), |exponent| ("-", exponent));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        _ => plain,
    }
}

fn place(error: Error, at: Option<&Origin>) -> Error {
    match error {
        Error::Other { message, origin: None } => Error::other(message, at),
        Error::Unknown { what, name, near, origin: None } => Error::Unknown { what, name, near, origin: at.cloned() },
        error => error,
    }
}

/// The time in which failures are remembered: until the outermost text is done with.
pub(super) struct Session;

impl Session {
    pub(super) fn enter() -> Self {
        NESTED.set(NESTED.get() + 1);
        Session
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        NESTED.set(NESTED.get() - 1);
        if NESTED.get() == 0 {
            // They are dropped when the map is free again: a scope may hold values of any kind.
            drop(FAILED.take());
        }
    }
}

/// A text on the stack of those being rendered.
struct RenderFrame;

impl RenderFrame {
    fn enter(template: &Template, here: (usize, usize)) -> Result<Self, Error> {
        RUNNING.with_borrow_mut(|running| {
            if running.contains(&here) || running.len() >= DEPTH {
                let start: String = template.source.chars().take(60).collect();
                let message = format!("recursive loop in template: {start:?} needs itself to be rendered");
                return Err(Error::other(message, template.origin.as_ref()));
            }
            running.push(here);
            Ok(RenderFrame)
        })
    }
}

impl Drop for RenderFrame {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(|running| running.pop());
    }
}

/// Whether an engine error means that something is undefined.
pub(super) fn is_undefined(error: &minijinja::Error) -> bool {
    error.kind() == ErrorKind::UndefinedError
}

/// The value without lazy parts, rendered in its own scopes.
pub(super) fn settle(value: &Value, scope: &Arc<Scope>) -> Result<Value, Error> {
    lazy::settle(value, scope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Vars;

    #[test]
    fn an_undefined_operand_is_named_whatever_the_operator() {
        let empty = Arc::new(Scope::default());
        for operator in ["+", "/", "//", "-", "*", "%", "**", "<", "in"] {
            for text in [format!("nope {operator} 1"), format!("[] {operator} nope.inner")] {
                let error = evaluate_expression(&text, None, &empty).unwrap_err();
                assert_eq!(error.undefined(), Some("nope"), "{text}: {error}");
            }
            let text = format!("none {operator} 1");
            let error = evaluate_expression(&text, None, &empty).unwrap_err();
            assert!(error.undefined().is_none(), "{text}: {error}");
        }
    }

    #[test]
    fn the_version_of_the_engine_is_pinned() {
        let manifest = include_str!("../../Cargo.toml");
        for name in ["minijinja", "minijinja-contrib"] {
            let line = manifest.lines().find(|line| line.starts_with(&format!("{name} ="))).unwrap();
            assert!(line.contains("version = \"="), "the version is not pinned: {line}");
        }
    }

    #[test]
    fn the_failure_of_a_scope_that_is_gone_is_not_that_of_the_next_one() {
        let greeting = Template { source: "hello {{ who }}".into(), origin: None };
        let scope = |name: &str| Arc::new(Scope::default().with_layer(Vars::from([(name.into(), Value::from("x"))])));
        let _session = Session::enter();
        for _ in 0..100 {
            // Each scope is dropped before the next one is made, which may get its address.
            assert!(template(&greeting, &scope("other")).is_err());
            assert_eq!(template(&greeting, &scope("who")).unwrap().to_string(), "hello x");
        }
    }
}
