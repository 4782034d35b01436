//! Who may come in: accounts of people, links that can be used once, sessions, tokens of programs, and the audit log; and the messages for
//! webhooks. Only digests of secrets are stored. Several processes may use the database at once: `windlass serve link` adds a link for a server that is running.

mod accounts;
mod audit;
mod sessions;
mod webhooks;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rusqlite::{Connection, OptionalExtension, Row, params};
use sha2::{Digest, Sha256};

use super::proof::ProofKey;
use super::rights::Rights;
use crate::runs::{Error, open_private_database};

pub use accounts::Account;
pub use audit::AuditEntry;
pub(super) use sessions::OpenSession;
pub(super) use webhooks::{Attempted, WebhookRecord};

/// The database, beside the store of runs.
const ACCESS_FILE: &str = "access.db";

/// How long a link can be used.
pub const LINK_AGE: Duration = Duration::from_secs(15 * 60);
/// A session's last use is written down no more often.
const USE_INTERVAL: Duration = Duration::from_secs(60);

/// What a token starts with, so that people and scanners recognise one.
pub(super) const TOKEN_PREFIX: &str = "wl_";

/// As in the store of runs: a layout that was released never changes.
const LAYOUTS: &[&str] = &[
    "
    CREATE TABLE links (
        hash TEXT PRIMARY KEY,                 -- SHA-256 of the secret, as all hashes here
        name TEXT NOT NULL,
        ends INTEGER NOT NULL                  -- milliseconds since 1970, as all times
    ) STRICT;
    CREATE TABLE sessions (
        hash TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        rights TEXT NOT NULL,                  -- JSON
        created INTEGER NOT NULL,
        last_used INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE tokens (
        name TEXT PRIMARY KEY,
        hash TEXT NOT NULL UNIQUE,
        rights TEXT NOT NULL,
        created INTEGER NOT NULL,
        ends INTEGER NOT NULL,
        last_used INTEGER
    ) STRICT;
    CREATE TABLE audit (
        sequence INTEGER PRIMARY KEY,
        entry TEXT NOT NULL,                   -- JSON
        chain TEXT NOT NULL                    -- SHA-256 of the chain before and this entry
    ) STRICT;
",
    "
    CREATE TABLE accounts (
        name TEXT PRIMARY KEY,
        password TEXT NOT NULL,                -- argon2id, with its salt and setting
        rights TEXT NOT NULL,
        created INTEGER NOT NULL,
        password_set INTEGER NOT NULL,
        last_login INTEGER
    ) STRICT;
    DROP TABLE sessions;
    CREATE TABLE sessions (
        hash TEXT PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,               -- names it in lists; no secret
        name TEXT NOT NULL,
        account TEXT REFERENCES accounts (name) ON DELETE CASCADE,  -- null: begun with a link
        rights TEXT NOT NULL,                  -- of a session without an account
        address TEXT NOT NULL,
        created INTEGER NOT NULL,
        last_used INTEGER NOT NULL
    ) STRICT;
    -- Whose it is: null for one that the command line or a session without an account created.
    ALTER TABLE tokens ADD COLUMN account TEXT REFERENCES accounts (name) ON DELETE CASCADE;
",
    "
    CREATE TABLE keys (
        name TEXT PRIMARY KEY,
        secret TEXT NOT NULL                   -- of proofs that a server has this store: it lets nobody in
    ) STRICT;
",
    "
    CREATE TABLE webhooks (
        name TEXT PRIMARY KEY,
        created INTEGER NOT NULL,
        seen_until INTEGER NOT NULL,           -- what ended before that has its messages
        last_delivered INTEGER,
        last_error TEXT                        -- null: the last attempt did not fail
    ) STRICT;
    CREATE TABLE messages (
        webhook TEXT NOT NULL REFERENCES webhooks (name) ON DELETE CASCADE,
        id TEXT NOT NULL,
        body TEXT NOT NULL,
        created INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        next INTEGER,                          -- when it is sent; null: it was delivered, or given up
        given_up INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (webhook, id)
    ) STRICT;
    CREATE INDEX due_messages ON messages (webhook, next) WHERE next IS NOT NULL;
",
];

/// Somebody who has come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub name: String,
    /// Whose it is: without one, it began with a link, or is a token of the command line.
    pub account: Option<String>,
    /// The id of the session. None: it is a token.
    pub session: Option<String>,
    pub rights: Rights,
    pub ends: SystemTime,
}

impl Login {
    /// When the session began. None: it is a token.
    pub(super) fn session_began(&self) -> Option<SystemTime> {
        self.session.as_ref().map(|_| self.ends - sessions::SESSION_AGE)
    }

    /// The person behind it: that of a token is the account that created it.
    pub(super) fn person(&self) -> &str {
        self.account.as_deref().unwrap_or(&self.name)
    }
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub name: String,
    /// The account that created it, and with which it goes.
    pub account: Option<String>,
    pub rights: Rights,
    pub created: SystemTime,
    pub ends: SystemTime,
    pub last_used: Option<SystemTime>,
}

pub struct AccessStore {
    connection: Connection,
    path: PathBuf,
}

impl AccessStore {
    /// Opens the database in a directory, which is created if needed.
    ///
    /// # Errors
    /// It cannot be read or written, belongs to another user, or a newer windlass wrote it.
    pub fn open_access(directory: &Path) -> Result<AccessStore, Error> {
        let (connection, path) = open_private_database(directory, ACCESS_FILE, LAYOUTS)?;
        Ok(AccessStore { connection, path })
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> Error + use<> {
        let path = self.path.clone();
        move |source| Error::Database { path: path.clone(), source }
    }

    /// The key with which a server proves that it has this store.
    pub fn proof_key(&mut self) -> Result<ProofKey, Error> {
        let failed = self.failed();
        let read = || -> rusqlite::Result<String> {
            let insert = "INSERT INTO keys (name, secret) VALUES ('proof', ?1) ON CONFLICT DO NOTHING";
            self.connection.execute(insert, [new_secret()])?;
            self.connection.query_row("SELECT secret FROM keys WHERE name = 'proof'", (), |row| row.get(0))
        };
        read().map(ProofKey).map_err(failed)
    }

    /// Creates a link for a person of this name. Returns its secret.
    pub fn create_link(&mut self, name: &str, now: SystemTime) -> Result<String, Error> {
        let failed = self.failed();
        let secret = new_secret();
        let old = self.connection.execute("DELETE FROM links WHERE ends <= ?1", [millis(now)]);
        old.map_err(&failed)?;
        let insert = "INSERT INTO links (hash, name, ends) VALUES (?1, ?2, ?3)";
        self.connection.execute(insert, params![hash(&secret), name, millis(now + LINK_AGE)]).map_err(failed)?;
        Ok(secret)
    }

    /// Creates a token. Returns its secret, which cannot be read again. None: there is one with this name.
    pub fn create_token(&mut self, token: &Token) -> Result<Option<String>, Error> {
        let secret = format!("{TOKEN_PREFIX}{}", new_secret());
        let created = self.connection.execute(
            "INSERT INTO tokens (name, hash, account, rights, created, ends) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO NOTHING",
            params![
                token.name,
                hash(&secret),
                token.account,
                rights_text(&token.rights),
                millis(token.created),
                millis(token.ends)
            ],
        );
        Ok((created.map_err(self.failed())? == 1).then_some(secret))
    }

    /// All tokens, by name; also those that have ended.
    pub fn tokens(&self) -> Result<Vec<Token>, Error> {
        let read = || -> rusqlite::Result<Vec<Token>> {
            let query = "SELECT name, rights, created, ends, last_used, account FROM tokens ORDER BY name";
            let mut query = self.connection.prepare(query)?;
            query.query_map((), token_of)?.collect()
        };
        read().map_err(self.failed())
    }

    /// Who has this token. None: it is unknown, or has ended.
    pub fn find_token(&mut self, secret: &str, now: SystemTime) -> Result<Option<Login>, Error> {
        let failed = self.failed();
        let find = || -> rusqlite::Result<Option<Login>> {
            let query =
                "SELECT name, rights, created, ends, last_used, account FROM tokens WHERE hash = ?1 AND ends > ?2";
            let found = self.connection.query_row(query, params![hash(secret), millis(now)], token_of).optional()?;
            let Some(token) = found else { return Ok(None) };
            if token.last_used.is_none_or(|used| used + USE_INTERVAL <= now) {
                let update = "UPDATE tokens SET last_used = ?2 WHERE hash = ?1";
                self.connection.execute(update, params![hash(secret), millis(now)])?;
            }
            // No name of a person, link or account starts like this, and no name of an account has a space.
            let name = match &token.account {
                Some(account) => format!("token {} of {account}", token.name),
                None => format!("token {}", token.name),
            };
            Ok(Some(Login { name, account: token.account, session: None, rights: token.rights, ends: token.ends }))
        };
        find().map_err(failed)
    }

    /// Revokes a token. Whether there was one.
    pub fn delete_token(&mut self, name: &str) -> Result<bool, Error> {
        let deleted = self.connection.execute("DELETE FROM tokens WHERE name = ?1", [name]);
        Ok(deleted.map_err(self.failed())? == 1)
    }
}

fn token_of(row: &Row<'_>) -> rusqlite::Result<Token> {
    Ok(Token {
        name: row.get(0)?,
        rights: rights_of(row, 1)?,
        created: moment(row.get(2)?),
        ends: moment(row.get(3)?),
        last_used: row.get::<_, Option<i64>>(4)?.map(moment),
        account: row.get(5)?,
    })
}

/// Rights that cannot be read are none.
fn rights_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Rights> {
    Ok(serde_json::from_str(&row.get::<_, String>(column)?).unwrap_or_default())
}

fn rights_text(rights: &Rights) -> String {
    serde_json::to_string(rights).expect("rights are JSON")
}

/// 256 random bits.
fn new_secret() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// Secrets are long and random: a plain digest cannot be turned back.
fn hash(secret: &str) -> String {
    sha256_hex(secret.as_bytes())
}

pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn millis(at: SystemTime) -> i64 {
    i64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

fn moment(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

#[cfg(test)]
mod tests;
