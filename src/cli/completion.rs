//! `windlass completion`: a shell's completion of this command line, the words of `windlass doc` among it.

use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use super::doc::{self, DocKind};
use super::{Cli, CliError, ExitCode};

#[derive(Debug, Args)]
pub(super) struct CompletionArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script that the shell reads.
pub(super) fn print_completion(args: &CompletionArgs) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    generate(args.shell, &mut command(), "windlass", &mut script);
    super::print(script)?;
    Ok(ExitCode::Ok)
}

/// The command line, with all words that `doc` knows and all modules that `run` does; the parser itself takes any, to
/// say what was meant.
fn command() -> clap::Command {
    let names = |kind: Option<DocKind>| {
        let entries = doc::all_entries().into_iter().filter(move |entry| kind.is_none_or(|kind| entry.kind() == kind));
        let mut names: Vec<&str> = entries.map(|entry| entry.entry_name()).collect();
        names.sort_unstable();
        names.dedup();
        PossibleValuesParser::new(names)
    };
    Cli::command()
        .mut_subcommand("doc", |doc| doc.mut_arg("words", |words| words.value_parser(names(None))))
        .mut_subcommand("run", |run| run.mut_arg("module_name", |name| name.value_parser(names(Some(DocKind::Module)))))
}
