//! Output to standard output and standard error. A closed pipe or a full disk is an error, not a panic.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, Write};

use anyhow::Context;
use tokio::sync::mpsc::WeakUnboundedSender;

use crate::engine::{CommandEvent, Event, Stream, TimedEvent};
use crate::report::harmless;

/// Writes all of it to standard output. A reader that closes the pipe (`| head`) is not an error.
///
/// # Errors
/// Standard output takes no more, such as a file on a full disk.
pub(super) fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    if copy_to_reports(Stream::Stdout, || String::from_utf8_lossy(text.as_ref()).into_owned()) == Copied::Instead {
        return Ok(());
    }
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
    copy_to_reports(Stream::Stderr, || line.to_owned());
    #[expect(clippy::let_underscore_must_use, reason = "nothing can be done about a closed standard error")]
    let _ = writeln!(io::stderr(), "{}", harmless(line));
}

/// Where reports that are open get a copy of what is printed.
#[derive(Clone)]
pub(super) struct PrintCopy {
    /// The reports end while this is there.
    pub events: WeakUnboundedSender<TimedEvent>,
    /// Standard output has JSON lines: text for it becomes one of them.
    pub json: bool,
}

thread_local! {
    /// Of the command line that this thread runs.
    static COPY: RefCell<Option<PrintCopy>> = const { RefCell::new(None) };
}

/// Copies what this thread prints, until it is dropped.
#[must_use]
pub(super) struct PrintCopying(Option<PrintCopy>);

impl PrintCopying {
    pub(super) fn start_copying(copy: PrintCopy) -> PrintCopying {
        PrintCopying(COPY.replace(Some(copy)))
    }
}

impl Drop for PrintCopying {
    fn drop(&mut self) {
        COPY.set(self.0.take());
    }
}

#[derive(PartialEq, Eq)]
enum Copied {
    /// It is to be printed.
    Too,
    Instead,
}

fn copy_to_reports(stream: Stream, text: impl FnOnce() -> String) -> Copied {
    COPY.with_borrow(|copy| {
        let Some(copy) = copy else { return Copied::Too };
        let Some(events) = copy.events.upgrade() else { return Copied::Too };
        let sent = events.send(Event::Command(CommandEvent::Message { stream, text: text() }).into());
        if sent.is_ok() && copy.json && stream == Stream::Stdout { Copied::Instead } else { Copied::Too }
    })
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
