//! Keys that are there twice in a mapping, of which the last counts: what becomes of them.

use std::collections::HashSet;
use std::sync::Arc;

use crate::value::mutex::Mutex;
use crate::value::origin::Diagnostic;

/// The warning about a duplicate key, if the file is still read.
pub fn warning(complaint: Diagnostic) -> Diagnostic {
    Diagnostic { message: format!("{}; the last one is used", complaint.message), ..complaint }
}

/// Whether such a key is a warning, an error, or ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DuplicateKeys {
    #[default]
    Warn,
    Error,
    Ignore,
}

/// The rule, and the warnings of the files that were read with it. Clones share both.
#[derive(Debug, Clone, Default)]
pub struct Duplicates {
    pub rule: DuplicateKeys,
    reported: Arc<Mutex<TimedEvent>>,
}

#[derive(Debug, Default)]
struct TimedEvent {
    /// A file that is read again is not reported again.
    known: HashSet<String>,
    waiting: Vec<Diagnostic>,
}

impl Duplicates {
    /// Nothing found yet.
    pub fn new(rule: DuplicateKeys) -> Duplicates {
        Duplicates { rule, ..Duplicates::default() }
    }

    /// Keeps what a file has twice until [`take_complaints`], or refuses it.
    pub fn found(&self, found: Vec<Diagnostic>) -> Result<(), Diagnostic> {
        match (self.rule, found.into_iter()) {
            (DuplicateKeys::Error, mut found) => found.next().map_or(Ok(()), Err),
            (DuplicateKeys::Warn, found) => {
                let mut reported = self.reported.lock();
                let TimedEvent { known, waiting } = &mut *reported;
                waiting.extend(found.map(warning).filter(|complaint| known.insert(complaint.to_string())));
                Ok(())
            }
            (DuplicateKeys::Ignore, _) => Ok(()),
        }
    }

    /// The warnings that were not reported yet.
    pub fn take_complaints(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.reported.lock().waiting)
    }
}
