//! Words on standard output and standard error. Nobody panics because nobody reads, or because a disk is full.

use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

use anyhow::Context;

use crate::report::harmless;

/// Writes all of it to standard output. A reader that had enough (`| head`) is no error.
///
/// # Errors
/// Standard output takes no more, such as a file on a full disk.
pub(super) fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write to standard output"),
        _ => Ok(()),
    }
}

/// How this program speaks of itself and its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wording {
    Own,
    /// `[WARNING]: …`, `[ERROR]: …`
    Ansible,
}

static WORDING: OnceLock<Wording> = OnceLock::new();

/// Chooses the wording, once, before anything is said.
pub(super) fn speak(wording: Wording) {
    #[expect(
        clippy::let_underscore_must_use,
        reason = "a second command line in one process (tests) keeps the wording of the first"
    )]
    let _ = WORDING.set(wording);
}

/// The wording that was chosen.
pub(super) fn wording() -> Wording {
    WORDING.get().copied().unwrap_or(Wording::Own)
}

/// Writes a line to standard error. Where it cannot be told, it cannot be told either that it could not.
pub(super) fn tell(line: &str) {
    #[expect(clippy::let_underscore_must_use, reason = "nothing can be done about a closed standard error")]
    let _ = writeln!(io::stderr(), "{}", harmless(line));
}
