//! Lookups of variables, the environment and the output of commands.

use std::process::Stdio;

use super::super::{lazy, render};
use super::{LookupCall, fail};
use crate::template::Error;
use crate::value::{Value, read};

/// Environment variables of the controller; the option `default` for one that is not set, else empty.
pub(super) fn env(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let default = call.option("default");
    let variables = &call.scope.surroundings.variables;
    let one = |name: &String| match variables.get(name) {
        Some(value) => Value::from(value.as_str()),
        None => default.cloned().unwrap_or(Value::from("")),
    };
    Ok(call.texts().iter().map(one).collect())
}

/// Variables by name.
pub(super) fn vars(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let one = |name: &String| match (call.scope.get(name), call.option("default")) {
        (Some(raw), _) => render::settle(&lazy::see(raw, call.scope)?, call.scope),
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => Err(Error::Undefined { name: name.clone(), origin: None }),
    };
    call.texts().iter().map(one).collect()
}

/// Names of variables that match any of the patterns.
pub(super) fn varnames(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    for term in call.texts() {
        let regex = super::super::filters::regex(&term, false, false)
            .map_err(|error| fail(crate::template::engine_error_text(&error)))?;
        let names = call.scope.variable_names();
        found.extend(
            names.iter().filter(|name| regex.is_match(name).unwrap_or(false)).map(|name| Value::from(name.clone())),
        );
    }
    Ok(found)
}

/// What commands print on the controller, each as a whole.
pub(super) fn pipe(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    call.texts()
        .iter()
        .map(|command| output(call, command).map(|out| Value::from(out.trim_end_matches(['\n', '\r']))))
        .collect()
}

/// What commands print on the controller, line by line.
pub(super) fn lookup_lines(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let mut lines = Vec::new();
    for command in call.texts() {
        lines.extend(output(call, &command)?.lines().map(Value::from));
    }
    Ok(lines)
}

fn output(call: &LookupCall<'_>, command: &str) -> Result<String, Error> {
    if call.scope.starts_nothing {
        return Err(fail(format!("this lookup runs {command:?}, {}", crate::template::own::NOT_STARTED)));
    }
    let mut shell = call.scope.surroundings.command("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stderr(Stdio::inherit());
    if call.scope.base.is_dir() {
        shell.current_dir(&*call.scope.base);
    }
    let printed = crate::template::waiting(|| shell.stdout(Stdio::piped()).spawn().and_then(read::printed));
    let (status, said) = printed.map_err(|error| fail(format!("cannot run {command:?}: {error}")))?;
    if !status.success() {
        return Err(fail(format!("lookup: the command {command:?} failed with {status}")));
    }
    String::from_utf8(said).map_err(|_| fail(format!("the output of {command:?} is not UTF-8 text")))
}
