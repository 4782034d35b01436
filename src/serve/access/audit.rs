//! The audit log: who did what, from where, and what became of it. Each entry carries a digest of all before it, so that a change to an
//! old entry shows.

use rusqlite::{TransactionBehavior, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AccessStore, sha256_hex};
use crate::runs::Error;

/// An entry. Its texts have no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// From 1, without gaps.
    pub sequence: u64,
    /// RFC 3339, UTC.
    pub time: String,
    /// The name of the login; `-`: nobody had logged in.
    pub who: String,
    /// The address that the request came from.
    pub from: String,
    /// What was asked for, such as `start a run`.
    pub action: String,
    /// A deployment, run or token.
    pub target: String,
    /// More about it, such as `apply of the plan 01m8e4g6cj6bkvypp4f46d3353`.
    #[serde(default)]
    pub detail: String,
    /// `201`, or the code of the problem, such as `PlanIsOld`.
    pub outcome: String,
}

/// The longest target and detail, in characters: what was asked for may be long.
const LONGEST: usize = 200;

/// What the chain starts with.
const START: &str = "windlass audit log";

impl AccessStore {
    /// Adds an entry; its sequence number is set here. When this returns, it is on the disk.
    pub fn add_audit_entry(&mut self, mut entry: AuditEntry) -> Result<(), Error> {
        let failed = self.failed();
        entry.target = cut(entry.target);
        entry.detail = cut(entry.detail);
        let mut add = || -> rusqlite::Result<()> {
            self.connection.pragma_update(None, "synchronous", "FULL")?;
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let last = transaction.query_row(
                "SELECT coalesce(max(sequence), 0), (SELECT chain FROM audit ORDER BY sequence DESC LIMIT 1) FROM audit",
                (),
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?)),
            );
            let (last, before) = last?;
            entry.sequence = u64::try_from(last).unwrap_or_default() + 1;
            let text = serde_json::to_string(&entry).expect("an entry is text and a number");
            let chain = chained(before.as_deref().unwrap_or(START), &text);
            let insert = "INSERT INTO audit (sequence, entry, chain) VALUES (?1, ?2, ?3)";
            transaction.execute(insert, params![last + 1, text, chain])?;
            transaction.commit()?;
            self.connection.pragma_update(None, "synchronous", "NORMAL")
        };
        add().map_err(failed)
    }

    /// Entries, the newest first: at most `limit`, with sequence numbers below `before`.
    pub fn audit_entries(&self, before: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>, Error> {
        self.some_audit_entries(before, limit, usize::MAX)
    }

    /// The same; after the first one no more than so many bytes.
    pub(in crate::serve) fn some_audit_entries(
        &self,
        before: Option<u64>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<AuditEntry>, Error> {
        let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
        let read = || -> rusqlite::Result<Vec<String>> {
            let query = "SELECT entry FROM audit WHERE sequence < ?1 ORDER BY sequence DESC LIMIT ?2";
            let mut query = self.connection.prepare(query)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let mut rows = query.query([before, limit])?;
            let (mut texts, mut length) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                let text: String = row.get(0)?;
                length += text.len();
                if length > bytes && !texts.is_empty() {
                    break;
                }
                texts.push(text);
            }
            Ok(texts)
        };
        let texts = read().map_err(self.failed())?;
        Ok(texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect())
    }

    /// The number of the first entry that is not as it was written, or from which on entries are missing before it.
    pub fn first_changed_audit_entry(&self) -> Result<Option<u64>, Error> {
        let check = || -> rusqlite::Result<Option<u64>> {
            let mut query = self.connection.prepare("SELECT sequence, entry, chain FROM audit ORDER BY sequence")?;
            let mut rows = query.query(())?;
            let (mut before, mut expected) = (START.to_owned(), 1);
            while let Some(row) = rows.next()? {
                let (sequence, entry, chain): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                if sequence != expected || chained(&before, &entry) != chain {
                    return Ok(Some(u64::try_from(sequence).unwrap_or_default()));
                }
                (before, expected) = (chain, expected + 1);
            }
            Ok(None)
        };
        check().map_err(self.failed())
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((end, _)) => format!("{} [cut]", &text[..end]),
    }
}

fn chained(before: &str, entry: &str) -> String {
    sha256_hex(format!("{before}\n{entry}").as_bytes())
}
