//! The store of runs: who ran which command on which deployment, when, how it ended, and its events. It knows no engine and prints
//! nothing: `report` hands it events as JSON lines without secrets, `cli` reads them.
//!
//! [`RunStore`] is all that the others know. To add a store, implement it and add an arm in [`open_store`].

mod id;
mod record;
pub mod recorder;
mod sqlite;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub use id::RunId;
pub use record::{
    HostCounts, RUN_FORMAT, RecordedEvent, RecordedRun, RunEnd, RunOutcome, RunStart, RunSummary, StageRecord,
    timestamp_text,
};
pub use sqlite::FILE_NAME;
pub use sqlite::database::open_private_database;

use crate::value::ProcessEnvironment;

/// Why a store cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("neither XDG_STATE_HOME nor HOME is set (WINDLASS_RUNS_DIRECTORY names a directory)")]
    NoHome,
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
    #[error("{}: another user owns it or can write to it", path.display())]
    NotOwn { path: PathBuf },
    #[error("{}: it is not a database of windlass", path.display())]
    Foreign { path: PathBuf },
    #[error("{}: a newer windlass wrote it (layout {found}; this one reads up to {known})", path.display())]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("{}: a record of run {run} is damaged", path.display())]
    Damaged { path: PathBuf, run: RunId },
}

/// Which runs are wanted, the newest first.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Of this deployment only.
    pub deployment: Option<String>,
    /// Of this command only, such as `etcd backup`.
    pub command: Option<String>,
    /// Those whose id starts so.
    pub prefix: Option<String>,
    /// Dry runs only, or none of them.
    pub check: Option<bool>,
    /// Those whose end is not recorded only: under way, or ended by force.
    pub open: bool,
    /// Those that ended at this time or later, or that are open.
    pub ended_since: Option<SystemTime>,
    /// Those that started before this one.
    pub before: Option<RunId>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// How long runs are kept. The newest success and the newest failure of each command of a deployment always stay; dry runs are counted apart
/// from the others.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// How many runs of each command of a deployment.
    pub count: usize,
    pub age: Duration,
}

/// Runs and their events. The process that records a run holds it until it records its end or dies; what is held is never deleted.
/// Every call may block.
pub trait RunStore: Send {
    /// Records that a run of this process starts.
    fn record_start(&mut self, start: &RunStart) -> Result<(), Error>;
    /// Adds the next events of a run of this process, and what is known about it by now. All or nothing.
    fn record_events(&mut self, run: RunId, events: &[RecordedEvent], summary: &RunSummary) -> Result<(), Error>;
    /// Records the end of a run of this process. When this returns, it is on the disk.
    fn record_end(&mut self, run: RunId, end: &RunEnd) -> Result<(), Error>;
    /// A run. None: it is not there.
    fn read_run(&mut self, run: RunId) -> Result<Option<RecordedRun>, Error>;
    /// Which process holds a run, as [`mark_of`](crate::value::process::mark_of) says it. None: that is not known.
    fn process_of(&mut self, _run: RunId) -> Option<String> {
        None
    }
    /// The runs, the newest first.
    fn find_runs(&mut self, filter: &RunFilter) -> Result<Vec<RecordedRun>, Error>;
    /// Events of a run in their order, from the one after this sequence number. Empty: there are no more by now.
    fn read_events(&mut self, run: RunId, after: u64) -> Result<Vec<RecordedEvent>, Error>;
    /// Deletes the runs that need not be kept. Returns how many.
    fn delete_old_runs(&mut self, retention: &Retention) -> Result<usize, Error>;
}

/// Opens the store in a directory, which is created if needed. A store of an older windlass is upgraded, after a backup.
///
/// # Errors
/// It cannot be read or written, belongs to another user, or a newer windlass wrote it.
pub fn open_store(directory: &Path) -> Result<Box<dyn RunStore>, Error> {
    Ok(Box::new(sqlite::SqliteStore::open_database(directory)?))
}

/// Whether there is a store in a directory.
pub fn has_store(directory: &Path) -> bool {
    directory.join(FILE_NAME).exists()
}

/// Where a user's store is by default: `windlass` in `XDG_STATE_HOME`, or else in `~/.local/state`. None: the user has no home.
pub fn default_directory(around: &ProcessEnvironment) -> Option<PathBuf> {
    let named = around.variable("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = named.or_else(|| around.home.as_ref().map(|home| home.join(".local/state")));
    state.map(|state| state.join("windlass"))
}
