//! Events to words. Only this floor and `cli` print.
//!
//! To add a report: write `src/report/<name>.rs` with an implementation of [`Report`], and add its arm in [`open`].

pub mod complaint;
mod human;
mod json;
mod live;

use std::io::{IsTerminal, Write};

pub use json::plain;

use crate::engine::Event;

/// The forms of `--output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    #[default]
    Human,
    /// One event per line.
    Json,
}

/// Turns events into words, one at a time.
pub trait Report: Send {
    /// An error is the terminal's or the pipe's; the run goes on without words.
    fn event(&mut self, event: &Event) -> std::io::Result<()>;

    /// Time has passed: what shows time may draw itself anew.
    fn tick(&mut self) {}
}

/// Opens a report on standard output.
pub fn open(form: Form, verbosity: u8) -> Box<dyn Report> {
    match form {
        Form::Json => Box::new(json::Json::new(std::io::stdout())),
        Form::Human => {
            let terminal = std::io::stdout().is_terminal();
            let colour = terminal && std::env::var_os("NO_COLOR").is_none();
            let width = if terminal { live::width() } else { 80 };
            let out: Box<dyn Write + Send> = Box::new(std::io::stdout());
            Box::new(human::Human::new(out, human::Style { colour, width, verbosity }, live::Live::new(terminal)))
        }
    }
}
