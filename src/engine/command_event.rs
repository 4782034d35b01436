//! What the command that starts runs reports beside their events: its start and end, the stages of a deployment, what it prints. The
//! engine sends none of these; they go the same way, so that reports see all in one order.

use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEvent {
    /// The first event.
    Start(CommandStart),
    /// The deployment that the command is about is known.
    Deployment { name: String, hosts: Vec<String> },
    /// A stage begins: the events until its end belong to it.
    StageStart { stage: String, playbook: PathBuf, check: bool },
    /// `changes`: how many a stage in check mode found.
    StageEnd { stage: String, outcome: &'static str, changes: Option<usize> },
    /// Text that the command printed itself.
    Message { stream: Stream, text: String },
    /// The last event.
    End { outcome: &'static str, exit_code: u8 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandStart {
    /// `apply`, `etcd backup`
    pub command: String,
    pub command_line: String,
    /// `alice@workstation`
    pub user: String,
    pub pid: u32,
    /// Of windlass.
    pub version: &'static str,
    pub check: bool,
    pub verbosity: u8,
}

/// Where the command printed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub fn stream_word(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}
