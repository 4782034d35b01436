//! Why a run failed as a whole.

use crate::engine;
use crate::value::origin::Diagnostic;

/// Why there is no run, or why one ended early. The failure of a single host is not such an error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid input: every error, with its location.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Written(Vec<Diagnostic>),
    #[error(transparent)]
    Engine(engine::Error),
    /// The lock under which it ran was lost.
    #[error("the run was stopped: {0}")]
    LostLock(String),
}

impl From<Vec<Diagnostic>> for Error {
    fn from(complaints: Vec<Diagnostic>) -> Self {
        Error::Written(complaints)
    }
}

impl From<Diagnostic> for Error {
    fn from(complaint: Diagnostic) -> Self {
        Error::Written(vec![complaint])
    }
}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Self {
        match error {
            engine::Error::Complaint(complaint) => complaint.into(),
            error => Error::Engine(error),
        }
    }
}
