//! `windlass doc`: what a module does, its arguments, what it returns, an example; from the module's own file.

use std::fmt::Write;

use clap::Args;

use super::{ExitCode, Failure};
use crate::modules::{self, MODULES};
use crate::value::doc::{Argument, Doc, Kind};
use crate::value::origin::nearest;

#[derive(Debug, Args)]
pub struct DocArgs {
    /// List all modules
    #[arg(short = 'l', long)]
    list: bool,
    /// Modules, by short or long name
    #[arg(value_name = "MODULE", required_unless_present = "list")]
    modules: Vec<String>,
}

/// Prints the documentation.
#[allow(clippy::print_stdout)]
pub fn run(args: &DocArgs) -> Result<ExitCode, Failure> {
    if args.list {
        print!("{}", listed());
    }
    for name in &args.modules {
        let Some(entry) = modules::find(name) else {
            let names = MODULES.iter().map(|entry| entry.doc.name);
            let hint = nearest(name, names).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            return Err(anyhow::anyhow!("there is no module {name:?}{hint} (windlass doc -l lists them)").into());
        };
        print!("{}", text(entry.doc));
    }
    Ok(ExitCode::Ok)
}

fn listed() -> String {
    let width = MODULES.iter().map(|entry| entry.doc.name.len()).max().unwrap_or(0);
    MODULES.iter().map(|entry| format!("{:width$}  {}\n", entry.doc.name, entry.doc.summary)).collect()
}

fn text(doc: &Doc) -> String {
    let mut out = format!("{}.{}: {}\n", doc.collection, doc.name, doc.summary);
    if let Some(name) = doc.free_form {
        let _ = writeln!(out, "\nShort form: \"{}: TEXT\" gives TEXT to {name}.", doc.name);
    }
    out.push_str("\nArguments:\n");
    for argument in doc.arguments {
        let _ = writeln!(out, "  {} ({}){}", argument.name, kind(argument.kind), notes(argument));
        let _ = writeln!(out, "      {}", argument.summary);
    }
    if !doc.returns.is_empty() {
        out.push_str("\nReturns:\n");
        for value in doc.returns {
            let _ = writeln!(out, "  {}: {}", value.name, value.summary);
        }
    }
    let _ = writeln!(out, "\nExample:\n");
    for line in doc.example.trim_matches('\n').lines() {
        let _ = writeln!(out, "  {line}");
    }
    out
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Str => "string".to_string(),
        Kind::Path => "path".to_string(),
        Kind::Bool => "bool".to_string(),
        Kind::Int => "integer".to_string(),
        Kind::Float => "number".to_string(),
        Kind::Mode => "mode".to_string(),
        Kind::List(of) => format!("list of {}", self::kind(*of)),
        Kind::Dict => "mapping".to_string(),
        Kind::Any => "anything".to_string(),
    }
}

fn notes(argument: &Argument) -> String {
    let mut notes = String::new();
    if argument.required {
        notes.push_str(", required");
    }
    if let Some(default) = argument.default {
        let _ = write!(notes, ", default {default}");
    }
    if !argument.choices.is_empty() {
        let _ = write!(notes, ", one of {}", argument.choices.join(" | "));
    }
    if !argument.aliases.is_empty() {
        let _ = write!(notes, ", also {}", argument.aliases.join(", "));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_is_listed_and_every_argument_is_explained() {
        let list = listed();
        for entry in MODULES {
            assert!(list.contains(entry.doc.summary), "{}", entry.doc.name);
            let text = text(entry.doc);
            for argument in entry.doc.arguments {
                assert!(text.contains(argument.summary), "{}: {}", entry.doc.name, argument.name);
            }
            assert!(text.contains("Example:"));
        }
    }
}
