//! The tables, and how a database of an older windlass is upgraded.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};

use super::super::Error;

/// `wndl`: tells our files from other databases.
const APPLICATION_ID: i64 = 0x776e_646c;

/// The layouts, each as the change from the one before. A layout that was released never changes: add one, and make it such that an
/// older windlass that is recording a run meanwhile can go on.
pub(super) const LAYOUTS: &[&str] = &["
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        command TEXT NOT NULL,
        command_line TEXT NOT NULL,
        user TEXT NOT NULL,
        pid INTEGER NOT NULL,
        version TEXT NOT NULL,
        check_mode INTEGER NOT NULL,
        started INTEGER NOT NULL,              -- milliseconds since 1970, as all times
        deployment TEXT,
        summary TEXT NOT NULL,                 -- stages and hosts, as JSON
        last_sequence INTEGER NOT NULL DEFAULT 0,
        last_written INTEGER NOT NULL,
        ended INTEGER,                         -- NULL: it is under way, or its process died
        outcome TEXT,
        exit_code INTEGER,
        complete INTEGER NOT NULL DEFAULT 1
    ) STRICT;
    CREATE INDEX runs_of_deployments ON runs (deployment, id);
    CREATE TABLE events (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        first INTEGER NOT NULL,                -- the sequence numbers of the first and the last event
        last INTEGER NOT NULL,
        lines BLOB NOT NULL,                   -- JSON lines, compressed with zstd
        PRIMARY KEY (run, first)
    ) STRICT, WITHOUT ROWID;
"];

/// What a database is to be.
pub(super) struct Upgrade<'a> {
    pub path: &'a Path,
    pub layouts: &'a [&'a str],
    pub journal_mode: &'a str,
}

impl Upgrade<'_> {
    /// Brings a database to the newest layout. An older one is copied to a file beside it first; one that is not ours, or is newer, is
    /// left alone.
    pub(super) fn upgrade_database(&self, connection: &mut Connection) -> Result<(), Error> {
        if self.is_done(connection)? {
            return Ok(());
        }
        // One process upgrades, the others wait for it.
        let lock_path = self.path.with_extension("lock");
        let file = |source| Error::File { path: lock_path.clone(), source };
        let lock = super::create_private_file(&lock_path).map_err(file)?;
        lock.lock().map_err(file)?;
        if self.is_done(connection)? {
            return Ok(());
        }
        let found = self.layout(connection)?;
        if found == 0 {
            // Only a database without tables can be told to give space back.
            connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL").map_err(self.failed())?;
        } else if found < self.newest() {
            self.copy_database(connection, found)?;
        }
        connection.pragma_update(None, "journal_mode", self.journal_mode).map_err(self.failed())?;
        self.change_layout(connection, found).map_err(self.failed())
    }

    fn change_layout(&self, connection: &mut Connection, found: i64) -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for change in self.layouts.iter().skip(usize::try_from(found).unwrap_or_default()) {
            transaction.execute_batch(change)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", self.newest())?;
        transaction.commit()
    }

    fn is_done(&self, connection: &Connection) -> Result<bool, Error> {
        let is_newest = self.layout(connection)? == self.newest();
        let mode = || connection.query_row("PRAGMA journal_mode", (), |row| row.get::<_, String>(0));
        Ok(is_newest && mode().map_err(self.failed())? == self.journal_mode)
    }

    fn newest(&self) -> i64 {
        i64::try_from(self.layouts.len()).unwrap_or(i64::MAX)
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> Error {
        |source| Error::Database { path: self.path.to_owned(), source }
    }

    /// The layout of a database; 0: it is new.
    fn layout(&self, connection: &Connection) -> Result<i64, Error> {
        // In one transaction: another process may create the tables between two of them.
        let read = || -> rusqlite::Result<(i64, i64, i64)> {
            let transaction = connection.unchecked_transaction()?;
            let number = |query: &str| transaction.query_row(query, (), |row| row.get::<_, i64>(0));
            let tables = number("SELECT count(*) FROM sqlite_schema")?;
            Ok((number("PRAGMA application_id")?, number("PRAGMA user_version")?, tables))
        };
        let (application, found, tables) = read().map_err(self.failed())?;
        if application != APPLICATION_ID {
            let is_new = found == 0 && application == 0 && tables == 0;
            return if is_new { Ok(0) } else { Err(Error::Foreign { path: self.path.to_owned() }) };
        }
        match found > self.newest() {
            true => Err(Error::Newer { path: self.path.to_owned(), found, known: self.newest() }),
            false => Ok(found),
        }
    }

    fn copy_database(&self, connection: &Connection, layout: i64) -> Result<(), Error> {
        let backup = backup_path(self.path, layout);
        let partial = backup.with_extension("partial");
        let file = |source| Error::File { path: backup.clone(), source };
        match std::fs::remove_file(&partial) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(file(error)),
            _ => {}
        }
        super::create_private_file(&partial).map_err(file)?;
        connection.execute("VACUUM INTO ?1", [partial.display().to_string()]).map_err(self.failed())?;
        File::open(&partial).and_then(|copy| copy.sync_all()).map_err(file)?;
        std::fs::rename(&partial, &backup).map_err(file)
    }
}

/// Where a database of this layout is copied to before it is upgraded.
pub(super) fn backup_path(path: &Path, layout: i64) -> PathBuf {
    path.with_extension(format!("layout-{layout}.backup"))
}
