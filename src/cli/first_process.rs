//! The first process of a container: it starts the program that does the work, hands signals on to it, and reaps processes whose parents have
//! ended. Without that they would stay as zombies until the container has no process ids left.

use std::process::Command;

use anyhow::Context;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use tokio::signal::unix::{SignalKind, signal};

use super::{CliError, ExitCode, launch};

/// Whether this process is the first one of a container.
pub(super) fn is_first_process() -> bool {
    std::process::id() == 1
}

/// Runs this program again, with its arguments and others after them, until it ends.
///
/// # Errors
/// It cannot be started.
pub(super) fn run_as_child(more: &[&str]) -> Result<ExitCode, CliError> {
    launch::wait(async || {
        // Before the child is there: no signal is lost.
        let mut ended = signal(SignalKind::child()).context("cannot listen for signals")?;
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let arguments = std::env::args_os().skip(1);
        // Not tokio's: this process waits for all of its children itself.
        let child = Command::new(program).args(arguments).args(more).spawn().context("cannot start windlass")?;
        let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("the child has no process id")?;
        loop {
            let signal = tokio::select! {
                _ = ended.recv() => None,
                _ = terminate.recv() => Some(Signal::TERM),
                _ = interrupt.recv() => Some(Signal::INT),
            };
            if let Some(signal) = signal {
                kill_process(child, signal).context("cannot hand a signal on")?;
            }
            while let Ok(Some((process, status))) = wait(WaitOptions::NOHANG) {
                if process == child {
                    let ended_well = status.exit_status() == Some(0);
                    return Ok(if ended_well { ExitCode::Ok } else { ExitCode::Error });
                }
            }
        }
    })
}
