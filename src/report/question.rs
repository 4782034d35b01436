//! Questions of a run (`pause`) at the terminal, key by key: a timeout ends them, Ctrl-C asks whether to continue.
//! On standard error, as standard output may be for a program to read.

use std::io::Write;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, Termios};

use super::paint::harmless;
use crate::modules::question::{Answer, Question};

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const CTRL_U: u8 = 21;
/// How often to check whether the answer is still needed.
const LOOK: Duration = Duration::from_millis(200);

/// Whether there is a person: standard input is a terminal, and ours at the moment.
pub(super) fn is_possible() -> bool {
    let foreground = rustix::termios::tcgetpgrp(stdin());
    foreground.is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Asks the question and returns the answer. None: it is no longer needed.
pub(super) fn ask_question(question: &Question) -> std::io::Result<Option<Answer>> {
    let terminal = Terminal::open()?;
    let end = if question.limit.is_some() { "\n" } else { " " };
    say(&format!("{}{end}", harmless(&question.words)))?;
    let mut left = question.limit;
    let mut typed = Vec::new();
    loop {
        let begun = Instant::now();
        let wait = left.map_or(LOOK, |left| left.min(LOOK));
        let key = terminal.key(wait)?;
        left = left.map(|left| left.saturating_sub(begun.elapsed()));
        match (key, left) {
            (_, _) if question.is_moot() => return Ok(None),
            (Some(CTRL_C), _) => return confirm(&terminal, question),
            (_, Some(Duration::ZERO)) => return Ok(Some(Answer::GoOn)),
            (None, _) | (Some(_), Some(_)) => {}
            (Some(b'\r' | b'\n' | CTRL_D), None) => {
                say("\n")?;
                return Ok(Some(Answer::Text(String::from_utf8_lossy(&typed).into_owned())));
            }
            (Some(key), None) => edit(&mut typed, key, question.echo)?,
        }
    }
}

/// After Ctrl-C: continue, or abort.
fn confirm(terminal: &Terminal, question: &Question) -> std::io::Result<Option<Answer>> {
    say("\nPress 'C' to continue the play or 'A' to abort\n")?;
    loop {
        match terminal.key(LOOK)? {
            _ if question.is_moot() => return Ok(None),
            Some(b'c' | b'C') => return Ok(Some(Answer::GoOn)),
            Some(b'a' | b'A' | CTRL_C) => return Ok(Some(Answer::Abort)),
            _ => {}
        }
    }
}

/// One key more, or fewer.
fn edit(typed: &mut Vec<u8>, key: u8, echo: bool) -> std::io::Result<()> {
    let mut shown = Vec::new();
    match key {
        8 | 127 => {
            if !typed.is_empty() {
                shown.extend(b"\x08 \x08");
            }
            // All bytes of the last character.
            while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
        }
        CTRL_U => {
            let count = String::from_utf8_lossy(typed).chars().count();
            typed.clear();
            shown.extend(b"\x08 \x08".repeat(count));
        }
        key if key >= 32 => {
            typed.push(key);
            shown.push(key);
        }
        _ => {}
    }
    if !echo {
        return Ok(());
    }
    let mut out = std::io::stderr();
    out.write_all(&shown).and_then(|()| out.flush())
}

fn say(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stderr();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// The terminal while it gives every key at once and shows none; as it was again in the end.
struct Terminal(Termios);

impl Terminal {
    fn open() -> std::io::Result<Terminal> {
        let before = rustix::termios::tcgetattr(stdin())?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        rustix::termios::tcsetattr(stdin(), OptionalActions::Now, &modes)?;
        Ok(Terminal(before))
    }

    /// The next key, if one comes in time.
    fn key(&self, wait: Duration) -> std::io::Result<Option<u8>> {
        let input = stdin();
        let mut ready = [PollFd::new(&input, PollFlags::IN)];
        let wait = Timespec::try_from(wait).map_err(std::io::Error::other)?;
        match rustix::event::poll(&mut ready, Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            other => other?,
        };
        let mut byte = [0];
        match rustix::io::read(stdin(), &mut byte)? {
            0 => Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the terminal was closed")),
            _ => Ok(Some(byte[0])),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        #[expect(clippy::let_underscore_must_use, reason = "a closed terminal needs no settings")]
        let _ = rustix::termios::tcsetattr(stdin(), OptionalActions::Now, &self.0);
    }
}
