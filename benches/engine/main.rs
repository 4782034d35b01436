//! Benchmarks of the engine itself, without a network. `run` beside this file starts them; README.md tells what each
//! row is. Every row has a process of its own, so that its peak of memory is its own.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing figures is what a benchmark is for")]

mod fake_host;
mod hosts;
mod load;
mod loops;
mod measure;
mod project;
mod templates;

use std::path::Path;
use std::process::{Command, ExitCode};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A row's name and what measures it in the scratch directory given.
type Row = (&'static str, fn(&Path));

const ROWS: &[Row] =
    &[("load", load::run), ("loops", loops::run), ("hosts", hosts::run), ("templates", templates::run)];

/// The argument that says: measure here, in this process.
const HERE: &str = "--here";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let (options, names): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|argument| argument.starts_with('-'));
    if let Some(name) = names.iter().find(|name| !ROWS.iter().any(|(known, _)| known == *name)) {
        let known: Vec<&str> = ROWS.iter().map(|(name, _)| *name).collect();
        eprintln!("there is no row {name:?}; the rows are {}", known.join(", "));
        return ExitCode::FAILURE;
    }
    for (name, measure) in ROWS.iter().filter(|(name, _)| names.is_empty() || names.contains(name)) {
        if options.contains(&HERE) {
            let scratch = tempfile::tempdir().expect("there is room for temporary files");
            measure(scratch.path());
        } else if !in_a_process_of_its_own(name) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn in_a_process_of_its_own(row: &str) -> bool {
    let program = std::env::current_exe().expect("this program has a path");
    Command::new(program).args([HERE, row]).status().is_ok_and(|status| status.success())
}
