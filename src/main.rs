//! The `windlass` program: argv to `cli::run`, its exit code to the shell.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass::cli::run(std::env::args_os()).into()
}
