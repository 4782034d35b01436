//! Output to standard output and standard error. A closed pipe or a full disk is an error, not a panic.

use std::cell::Cell;
use std::io::{self, ErrorKind, Write};

use anyhow::Context;

use crate::report::harmless;

/// Writes all of it to standard output. A reader that closes the pipe (`| head`) is not an error.
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

/// The program's name in its own error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageStyle {
    Own,
    /// `[WARNING]: …`, `[ERROR]: …`
    Ansible,
}

thread_local! {
    /// Of the command line that this thread runs.
    static WORDING: Cell<MessageStyle> = const { Cell::new(MessageStyle::Own) };
}

/// Runs a command line that speaks so. Another one, on another thread of the process, keeps its own wording.
pub(super) fn speaking<T>(wording: MessageStyle, command_line: impl FnOnce() -> T) -> T {
    let outer = WORDING.replace(wording);
    let done = command_line();
    WORDING.set(outer);
    done
}

/// The wording of this command line.
pub(super) fn wording() -> MessageStyle {
    WORDING.get()
}

/// Writes a line to standard error. A failure to write there cannot be reported anywhere.
pub(super) fn print_error(line: &str) {
    #[expect(clippy::let_underscore_must_use, reason = "nothing can be done about a closed standard error")]
    let _ = writeln!(io::stderr(), "{}", harmless(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_line_has_a_wording_of_its_own() {
        let other = speaking(MessageStyle::Ansible, || {
            let other = std::thread::spawn(wording).join().unwrap();
            assert_eq!(wording(), MessageStyle::Ansible);
            other
        });
        assert_eq!([wording(), other], [MessageStyle::Own, MessageStyle::Own]);
    }
}
