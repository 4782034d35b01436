//! `windlass doc`: what a module, a keyword, a filter, a variable is, from where each of them is made.

mod catalogue;
mod json;
mod text;

use clap::{Args, ValueEnum};

pub(super) use catalogue::{DocEntry, DocKind, all_entries};

use super::{CliError, ExitCode};

#[derive(Debug, Args)]
pub(super) struct DocArgs {
    /// List everything, or one kind of it with --type
    #[arg(short = 'l', long)]
    list: bool,
    /// Only this kind of word
    #[arg(short = 't', long = "type", value_enum, value_name = "KIND")]
    kind: Option<DocKind>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human")]
    output: Output,
    /// Modules, keywords, filters, tests, lookups, functions or variables
    #[arg(value_name = "WORD", required_unless_present = "list")]
    pub words: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Human,
    /// One list of objects
    Json,
}

/// Prints the documentation.
pub(super) fn print_doc(args: &DocArgs) -> Result<ExitCode, CliError> {
    let mut entries: Vec<DocEntry> = Vec::new();
    if args.list {
        entries.extend(all_entries().into_iter().filter(|entry| args.kind.is_none_or(|kind| entry.kind() == kind)));
    }
    for word in &args.words {
        let found = catalogue::find_entries(word, args.kind);
        if found.is_empty() {
            return Err(unknown(word, args.kind).into());
        }
        entries.extend(found);
    }
    super::print(match args.output {
        Output::Json => {
            let objects: Vec<serde_json::Value> = entries.iter().map(json::object).collect();
            format!("{:#}\n", serde_json::Value::from(objects))
        }
        Output::Human if args.list => text::entries_text(&entries),
        Output::Human => entries.iter().map(text::doc_text).collect::<Vec<_>>().join("\n"),
    })?;
    Ok(ExitCode::Ok)
}

fn unknown(word: &str, kind: Option<DocKind>) -> anyhow::Error {
    let what = kind.map_or("module, keyword, filter, test, lookup, function or variable", DocKind::kind_name);
    let hint = catalogue::entry_hint(word, kind).map(|hint| format!("; {hint}")).unwrap_or_default();
    anyhow::anyhow!("no such {what}: {word:?}{hint} (windlass doc -l lists all)")
}
