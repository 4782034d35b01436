//! Words on standard output and standard error. Nobody panics because nobody reads, or because a disk is full.

use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

use anyhow::Context;

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

/// Text for a terminal, of which parts may come from a host: control characters are shown and not obeyed.
pub(super) fn plain_text(text: &str) -> std::borrow::Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    match text.contains(obeyed) {
        false => text.into(),
        true => text.chars().map(|c| if obeyed(c) { c.escape_default().to_string() } else { c.to_string() }).collect(),
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
    let _ = writeln!(io::stderr(), "{}", plain_text(line));
}

#[cfg(test)]
mod tests {
    #[test]
    fn control_characters_are_shown() {
        assert_eq!(super::plain_text("é\tx\ny"), "é\tx\ny");
        assert_eq!(super::plain_text("a\u{1b}[2Jb\rc\u{9b}"), "a\\u{1b}[2Jb\\rc\\u{9b}");
    }
}
