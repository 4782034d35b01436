//! Sessions of people, who came in with a link or with a password.

use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};

use super::super::rights::Rights;
use super::{AccessStore, Login, USE_INTERVAL, hash, millis, moment, new_secret, rights_of, rights_text};
use crate::runs::Error;

/// How long a session lasts at most, and without any request.
pub(in crate::serve) const SESSION_AGE: Duration = Duration::from_secs(12 * 60 * 60);
pub(in crate::serve) const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);

/// A session, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::serve) struct OpenSession {
    pub id: String,
    pub name: String,
    /// None: it began with a link.
    pub account: Option<String>,
    /// Where it began.
    pub address: String,
    pub created: SystemTime,
    pub last_used: SystemTime,
}

impl OpenSession {
    /// When it ends at the latest, and when without another request.
    pub(in crate::serve) fn ends(&self) -> SystemTime {
        (self.created + SESSION_AGE).min(self.last_used + SESSION_IDLE)
    }
}

impl AccessStore {
    /// Uses a link up, and begins a session with all rights. Returns the session's secret: two halves with a dot between them. None: there
    /// is no such link any more.
    pub fn use_link(&mut self, secret: &str, address: &str, now: SystemTime) -> Result<Option<(String, Login)>, Error> {
        let failed = self.failed();
        let mut exchange = || -> rusqlite::Result<Option<(String, Login)>> {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let delete = "DELETE FROM links WHERE hash = ?1 AND ends > ?2 RETURNING name";
            let found =
                transaction.query_row(delete, params![hash(secret), millis(now)], |row| row.get::<_, String>(0));
            let Some(name) = found.optional()? else { return Ok(None) };
            let login = Login { name, account: None, session: None, rights: Rights::all(), ends: now };
            let begun = begin_session(&transaction, login, address, now)?;
            transaction.commit()?;
            Ok(Some(begun))
        };
        exchange().map_err(failed)
    }

    /// Begins a session of an account whose password was right, if it still is the one that was looked at. Returns the session's secret.
    /// None: the password was changed meanwhile, or the account removed.
    pub fn begin_account_session(
        &mut self,
        account: &str,
        password_hash: &str,
        address: &str,
        now: SystemTime,
    ) -> Result<Option<(String, Login)>, Error> {
        let failed = self.failed();
        let mut begin = || -> rusqlite::Result<Option<(String, Login)>> {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let update = "UPDATE accounts SET last_login = ?3 WHERE name = ?1 AND password = ?2 RETURNING name, rights";
            let found = transaction.query_row(update, params![account, password_hash, millis(now)], |row| {
                let name: String = row.get(0)?;
                Ok(Login { account: Some(name.clone()), name, session: None, rights: rights_of(row, 1)?, ends: now })
            });
            let Some(login) = found.optional()? else { return Ok(None) };
            let begun = begin_session(&transaction, login, address, now)?;
            transaction.commit()?;
            Ok(Some(begun))
        };
        begin().map_err(failed)
    }

    /// Who has this session, which counts as its use. None: it has ended.
    pub fn find_session(&mut self, secret: &str, now: SystemTime) -> Result<Option<Login>, Error> {
        let failed = self.failed();
        let find = || -> rusqlite::Result<Option<Login>> {
            let query = "SELECT sessions.name, coalesce(accounts.rights, sessions.rights), sessions.created, last_used, account, id
                 FROM sessions LEFT JOIN accounts ON accounts.name = account
                 WHERE hash = ?1 AND sessions.created > ?2 AND last_used > ?3";
            let values = params![hash(secret), millis(now - SESSION_AGE), millis(now - SESSION_IDLE)];
            let found = self.connection.query_row(query, values, |row| {
                let login = Login {
                    name: row.get(0)?,
                    account: row.get(4)?,
                    session: row.get(5)?,
                    rights: rights_of(row, 1)?,
                    ends: moment(row.get(2)?) + SESSION_AGE,
                };
                Ok((login, moment(row.get(3)?)))
            });
            let Some((login, used)) = found.optional()? else { return Ok(None) };
            if used + USE_INTERVAL <= now {
                let update = "UPDATE sessions SET last_used = ?2 WHERE hash = ?1";
                self.connection.execute(update, params![hash(secret), millis(now)])?;
            }
            Ok(Some(login))
        };
        find().map_err(failed)
    }

    /// Ends a session.
    pub fn end_session(&mut self, secret: &str) -> Result<(), Error> {
        let deleted = self.connection.execute("DELETE FROM sessions WHERE hash = ?1", [hash(secret)]);
        deleted.map(drop).map_err(self.failed())
    }

    /// The sessions that have not ended, those that were used last first.
    pub(in crate::serve) fn open_sessions(&self, now: SystemTime) -> Result<Vec<OpenSession>, Error> {
        let read = || -> rusqlite::Result<Vec<OpenSession>> {
            let mut query = self.connection.prepare(
                "SELECT id, name, account, address, created, last_used FROM sessions
                 WHERE created > ?1 AND last_used > ?2 ORDER BY last_used DESC, id",
            )?;
            let found = query.query_map([millis(now - SESSION_AGE), millis(now - SESSION_IDLE)], |row| {
                Ok(OpenSession {
                    id: row.get(0)?,
                    name: row.get(1)?,
                    account: row.get(2)?,
                    address: row.get(3)?,
                    created: moment(row.get(4)?),
                    last_used: moment(row.get(5)?),
                })
            });
            found?.collect()
        };
        read().map_err(self.failed())
    }

    /// Ends all sessions, and links that were not used. While no server was there, another user's may have had its port, and what browsers
    /// sent to it.
    pub(in crate::serve) fn end_all_sessions(&mut self) -> Result<(), Error> {
        let ended = self.connection.execute_batch("DELETE FROM sessions; DELETE FROM links");
        ended.map_err(self.failed())
    }

    /// Ends the session with this id, of a person of this name or, without one, of anybody. Returns whose it was. None: there is none.
    pub fn end_session_with_id(&mut self, id: &str, of: Option<&str>) -> Result<Option<String>, Error> {
        let delete = "DELETE FROM sessions WHERE id = ?1 AND coalesce(?2, name) = name RETURNING name";
        let deleted = self.connection.query_row(delete, params![id, of], |row| row.get(0)).optional();
        deleted.map_err(self.failed())
    }
}

fn begin_session(
    transaction: &Transaction<'_>,
    mut login: Login,
    address: &str,
    now: SystemTime,
) -> rusqlite::Result<(String, Login)> {
    let oldest = millis(now - SESSION_AGE);
    let idle = millis(now - SESSION_IDLE);
    transaction.execute("DELETE FROM sessions WHERE created <= ?1 OR last_used <= ?2", [oldest, idle])?;
    let session = format!("{}.{}", new_secret(), new_secret());
    let id = new_secret()[..16].to_owned();
    // With an account, the rights that it has at each request count.
    let rights = if login.account.is_some() { Rights::default() } else { login.rights.clone() };
    transaction.execute(
        "INSERT INTO sessions (hash, id, name, account, rights, address, created, last_used)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
        params![hash(&session), id, login.name, login.account, rights_text(&rights), address, millis(now)],
    )?;
    login.ends = now + SESSION_AGE;
    login.session = Some(id);
    Ok((session, login))
}
