//! The `windlass` program: argv to `cli::run`, its exit code to the shell.

use std::process::ExitCode;

use include_dir::include_dir;
use rustix::process::DumpableBehavior;
use windlass::launch::carried::EmbeddedPlaybooks;

/// Loading and rendering make many small values; the static binary's own allocator is slow at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compiled in here and not in the library, which a changed role need not compile again.
static CARRIED: EmbeddedPlaybooks = EmbeddedPlaybooks {
    playbooks: include_dir!("$CARGO_MANIFEST_DIR/playbooks"),
    roles: include_dir!("$CARGO_MANIFEST_DIR/roles"),
};

fn main() -> ExitCode {
    // Memory holds passwords and keys: no core file is written of it, and no other program of the same user reads it.
    // Programs that this one starts are as they would be without it, for `exec` ends this.
    #[expect(clippy::let_underscore_must_use, reason = "windlass also works if the kernel refuses")]
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    windlass::cli::run_command_line(std::env::args_os(), &CARRIED).into()
}
