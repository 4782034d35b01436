//! The `windlass` program: argv to `cli::run`, its exit code to the shell.

use std::process::ExitCode;

/// Loading and rendering make many small values; the static binary's own allocator is slow at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    windlass::cli::run(std::env::args_os()).into()
}
