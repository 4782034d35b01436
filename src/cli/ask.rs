//! Questions to the person at the terminal.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::value::Secret;

/// Asks for a secret without showing it.
pub(super) fn ask_secret(prompt: &str) -> anyhow::Result<Secret> {
    rpassword::prompt_password(prompt)
        .map(Secret::new)
        .with_context(|| format!("cannot ask for {prompt:?}: no terminal"))
}

/// Asks for a line. None: the run was stopped before the answer.
pub(super) fn line_unless(prompt: &str, stopping: &AtomicBool) -> anyhow::Result<Option<String>> {
    show(prompt)?;
    // The terminal hands over whole lines.
    let wait = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let input = std::io::stdin();
    while !stopping.load(Ordering::Relaxed) {
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return answer().map(Some),
            Err(error) => return Err(error).context("cannot read the answer"),
        }
    }
    Ok(None)
}

/// Asks for a line.
pub(super) fn ask_line(prompt: &str) -> anyhow::Result<String> {
    show(prompt)?;
    answer()
}

fn show(prompt: &str) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!("cannot ask {prompt:?}: standard input is not a terminal\nhint: set the variable with -e");
    }
    let mut out = std::io::stderr();
    write!(out, "{prompt}").and_then(|()| out.flush()).context("cannot ask")
}

fn answer() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().read_line(&mut text).context("cannot read the answer")?;
    Ok(text.trim_end_matches(['\n', '\r']).to_string())
}
