//! The store in an SQLite database, for one person on one machine. Several processes may use it at once.

pub(super) mod database;
mod held;
mod schema;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Row, TransactionBehavior, params};

use super::{
    Error, RecordedEvent, RecordedRun, Retention, RunEnd, RunFilter, RunId, RunOutcome, RunStart, RunStore, RunSummary,
};
use crate::value::process::mark_of;
use held::HeldRuns;

/// The database in the store's directory.
pub const FILE_NAME: &str = "runs.db";

/// How much text one compressed piece of events has at the most, roughly.
const PIECE: usize = 1 << 20;

/// How much text of events is read at once, roughly.
const MOST_READ: usize = 4 * PIECE;

pub(super) struct SqliteStore {
    connection: Connection,
    path: PathBuf,
    held: HeldRuns,
}

impl SqliteStore {
    /// Opens the database in a directory; creates what is not there, for this user alone.
    pub(super) fn open_database(directory: &Path) -> Result<SqliteStore, Error> {
        Self::open_with(directory, schema::LAYOUTS)
    }

    fn open_with(directory: &Path, layouts: &[&str]) -> Result<SqliteStore, Error> {
        let (connection, path) = database::open_private_database(directory, FILE_NAME, layouts)?;
        let directory = path.parent().unwrap_or(directory);
        Ok(SqliteStore { connection, held: HeldRuns::below(directory), path })
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> Error + use<> {
        let path = self.path.clone();
        move |source| Error::Database { path: path.clone(), source }
    }

    /// The runs of a condition on the columns, the newest first.
    fn select(&self, condition: &str, values: impl rusqlite::Params) -> Result<Vec<RecordedRun>, Error> {
        let select = || -> rusqlite::Result<Vec<RecordedRun>> {
            let mut query = self.connection.prepare(&format!("SELECT * FROM runs WHERE {condition}"))?;
            query.query_map(values, |row| self.run_of(row))?.collect()
        };
        select().map_err(self.failed())
    }

    fn run_of(&self, row: &Row<'_>) -> rusqlite::Result<RecordedRun> {
        let id: String = row.get("id")?;
        let id = RunId::parse_id(&id).ok_or_else(|| unreadable("id", "it is no id"))?;
        let start = RunStart {
            id,
            command: row.get("command")?,
            command_line: row.get("command_line")?,
            user: row.get("user")?,
            pid: row.get("pid")?,
            version: row.get("version")?,
            check: row.get("check_mode")?,
            started: moment(row.get("started")?),
        };
        let summary: String = row.get("summary")?;
        let mut summary: RunSummary = serde_json::from_str(&summary).map_err(|error| unreadable("summary", error))?;
        summary.deployment = row.get("deployment")?;
        let ended: Option<i64> = row.get("ended")?;
        let outcome: Option<String> = row.get("outcome")?;
        let mut run = RecordedRun {
            start,
            summary,
            running: false,
            ended: ended.map(moment),
            outcome: outcome.map(|word| RunOutcome::outcome_named(&word).unwrap_or(RunOutcome::Error)),
            exit_code: row.get("exit_code")?,
            complete: row.get("complete")?,
            last_sequence: u64::try_from(row.get::<_, i64>("last_sequence")?).unwrap_or_default(),
        };
        if ended.is_none() {
            run.running = self.held.is_held(id);
            if !run.running {
                (run.outcome, run.complete) = (Some(RunOutcome::Interrupted), false);
                run.ended = Some(moment(row.get("last_written")?));
            }
        }
        Ok(run)
    }
}

impl RunStore for SqliteStore {
    fn record_start(&mut self, start: &RunStart) -> Result<(), Error> {
        let failed = self.failed();
        // The run is held before other processes find it in the database.
        self.held
            .hold_run(start.id, mark_of(start.pid))
            .map_err(|source| Error::File { path: self.path.clone(), source })?;
        let started = millis(start.started);
        let summary = serde_json::to_string(&RunSummary::default()).expect("it is text and numbers");
        let inserted = self.connection.execute(
            "INSERT INTO runs (id, command, command_line, user, pid, version, check_mode, started, summary, last_written)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?8)",
            params![
                start.id.to_string(),
                start.command,
                start.command_line,
                start.user,
                start.pid,
                start.version,
                start.check,
                started,
                summary
            ],
        );
        inserted.map(drop).map_err(failed)
    }

    fn record_events(&mut self, run: RunId, events: &[RecordedEvent], summary: &RunSummary) -> Result<(), Error> {
        let failed = self.failed();
        let summary_text = serde_json::to_string(summary).expect("it is text and numbers");
        let pieces = pieces(events);
        let last = pieces.last().map_or(0, |(_, last, _)| *last);
        let id = run.to_string();
        let mut write = || -> rusqlite::Result<()> {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for (first, last, lines) in &pieces {
                let mut insert =
                    transaction.prepare("INSERT INTO events (run, first, last, lines) VALUES (?1, ?2, ?3, ?4)")?;
                insert.execute(params![id, first, last, lines])?;
            }
            let mut update = transaction.prepare(
                "UPDATE runs SET deployment = ?2, summary = ?3, last_sequence = max(last_sequence, ?4), last_written = ?5
                 WHERE id = ?1",
            )?;
            update.execute(params![id, summary.deployment, summary_text, last, millis(SystemTime::now())])?;
            drop(update);
            transaction.commit()
        };
        write().map_err(failed)
    }

    fn record_end(&mut self, run: RunId, end: &RunEnd) -> Result<(), Error> {
        let failed = self.failed();
        let write = || -> rusqlite::Result<()> {
            // This one commit is written to the disk, and with it all before it.
            self.connection.pragma_update(None, "synchronous", "FULL")?;
            self.connection.execute(
                "UPDATE runs SET ended = ?2, outcome = ?3, exit_code = ?4, complete = ?5 WHERE id = ?1",
                params![run.to_string(), millis(end.ended), end.outcome.outcome_word(), end.exit_code, end.complete],
            )?;
            self.connection.pragma_update(None, "synchronous", "NORMAL")
        };
        write().map_err(failed)?;
        self.held.release_run(run);
        Ok(())
    }

    fn read_run(&mut self, run: RunId) -> Result<Option<RecordedRun>, Error> {
        let select = || self.select("id = ?1", [run.to_string()]).map(|found| found.into_iter().next());
        match select()? {
            Some(run) if is_unsettled(&run) => select(),
            found => Ok(found),
        }
    }

    fn process_of(&mut self, run: RunId) -> Option<String> {
        self.held.process_of(run)
    }

    fn find_runs(&mut self, filter: &RunFilter) -> Result<Vec<RecordedRun>, Error> {
        let prefix = filter.prefix.as_ref().map(|prefix| prefix.to_ascii_lowercase());
        let limit = filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let before = filter.before.map(|run| run.to_string());
        let ended_since = filter.ended_since.map(millis);
        let condition = "(?1 IS NULL OR deployment = ?1) AND (?2 IS NULL OR substr(id, 1, length(?2)) = ?2)
             AND (?3 IS NULL OR command = ?3) AND (?4 IS NULL OR id < ?4) AND (NOT ?5 OR ended IS NULL) AND (?6 IS NULL OR check_mode = ?6)
             AND (?8 IS NULL OR ended IS NULL OR ended >= ?8)
             ORDER BY id DESC LIMIT ?7";
        let found = self.select(
            condition,
            params![filter.deployment, prefix, filter.command, before, filter.open, filter.check, limit, ended_since],
        )?;
        let settled = found.into_iter().map(|run| match is_unsettled(&run) {
            true => Ok(self.read_run(run.start.id)?.unwrap_or(run)),
            false => Ok(run),
        });
        settled.collect()
    }

    fn read_events(&mut self, run: RunId, after: u64) -> Result<Vec<RecordedEvent>, Error> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let read = || -> rusqlite::Result<Vec<Piece>> {
            let mut query = self.connection.prepare(
                "SELECT first, last, lines FROM events WHERE run = ?1 AND last > ?2 ORDER BY first LIMIT 64",
            )?;
            query
                .query_map(params![run.to_string(), after], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect()
        };
        let mut events = Vec::new();
        let mut bytes = 0;
        for (first, last, lines) in read().map_err(self.failed())? {
            if bytes > MOST_READ {
                break;
            }
            let damaged = || Error::Damaged { path: self.path.clone(), run };
            let text = zstd::decode_all(lines.as_slice()).map_err(|_| damaged())?;
            let text = String::from_utf8(text).map_err(|_| damaged())?;
            bytes += text.len();
            let numbered = (u64::try_from(first).unwrap_or_default()..).zip(text.lines());
            let before = events.len();
            events.extend(numbered.map(|(sequence, line)| RecordedEvent { sequence, line: line.to_owned() }));
            let count = i64::try_from(events.len() - before).ok();
            if last.checked_sub(first).and_then(|more| more.checked_add(1)) != count {
                return Err(damaged());
            }
        }
        events.retain(|event| i64::try_from(event.sequence).is_ok_and(|sequence| sequence > after));
        Ok(events)
    }

    fn delete_old_runs(&mut self, retention: &Retention) -> Result<usize, Error> {
        let count = i64::try_from(retention.count).unwrap_or(i64::MAX);
        let oldest = SystemTime::now().checked_sub(retention.age).map_or(0, millis);
        let candidates = || -> rusqlite::Result<Vec<(String, bool)>> {
            let mut query = self.connection.prepare(
                "SELECT id, ended IS NULL FROM (
                     SELECT id, started, ended,
                         row_number() OVER (PARTITION BY deployment, command, check_mode ORDER BY id DESC) AS place,
                         row_number() OVER (PARTITION BY deployment, command, check_mode, ended IS NULL,
                                            coalesce(outcome, '') = 'succeeded' ORDER BY id DESC) AS place_of_outcome
                     FROM runs)
                 WHERE (place > ?1 OR started < ?2) AND place_of_outcome > 1 ORDER BY id",
            )?;
            query.query_map([count, oldest], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let candidates = candidates().map_err(self.failed())?;
        let ended = candidates
            .into_iter()
            .filter(|(id, open)| !open || RunId::parse_id(id).is_some_and(|id| !self.held.is_held(id)));
        let ended: Vec<String> = ended.map(|(id, _)| id).collect();
        let delete = || -> rusqlite::Result<()> {
            for id in &ended {
                self.connection.prepare("DELETE FROM runs WHERE id = ?1")?.execute([id])?;
            }
            if !ended.is_empty() {
                // It returns a row for each page that it gives back, and stops when nobody reads them.
                let mut vacuum = self.connection.prepare("PRAGMA incremental_vacuum")?;
                let mut pages = vacuum.query([])?;
                while pages.next()?.is_some() {}
            }
            Ok(())
        };
        delete().map_err(self.failed())?;
        self.held.delete_dead();
        Ok(ended.len())
    }
}

/// Whether a run may have ended between the look at its row and the look at its file: it is to be read again.
fn is_unsettled(run: &RecordedRun) -> bool {
    run.exit_code.is_none() && !run.running
}

/// Events, compressed, behind the numbers of the first and the last.
type Piece = (i64, i64, Vec<u8>);

fn pieces(events: &[RecordedEvent]) -> Vec<Piece> {
    let (mut pieces, mut text, mut first) = (Vec::new(), String::new(), 0);
    for (at, event) in events.iter().enumerate() {
        let sequence = i64::try_from(event.sequence).unwrap_or(i64::MAX);
        if text.is_empty() {
            first = sequence;
        }
        text.push_str(&event.line);
        text.push('\n');
        if text.len() >= PIECE || at + 1 == events.len() {
            let compressed = zstd::encode_all(text.as_bytes(), 3).expect("it is written to memory");
            pieces.push((first, sequence, compressed));
            text.clear();
        }
    }
    pieces
}

/// Opens a file for writing; a new one is for this user alone. Links are not followed.
fn create_private_file(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits();
    let flags = i32::try_from(flags).unwrap_or_default();
    OpenOptions::new().read(true).write(true).create(true).mode(0o600).custom_flags(flags).open(path)
}

/// Creates a directory that only this user may enter; leaves one that is there as it is.
fn create_private_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn millis(at: SystemTime) -> i64 {
    i64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

fn moment(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

fn unreadable(column: &str, why: impl std::fmt::Display) -> rusqlite::Error {
    rusqlite::Error::InvalidParameterName(format!("column {column}: {why}"))
}

#[cfg(test)]
pub(super) mod tests;
