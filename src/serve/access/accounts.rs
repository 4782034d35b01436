//! Accounts: people who come in with a name and a password.

use std::time::SystemTime;

use rusqlite::{OptionalExtension, TransactionBehavior, params};

use super::super::rights::Rights;
use super::{AccessStore, millis, moment, rights_of, rights_text};
use crate::runs::Error;

/// An account, without its password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub rights: Rights,
    pub created: SystemTime,
    /// When its password was set.
    pub password_set: SystemTime,
    pub last_login: Option<SystemTime>,
}

impl Account {
    /// Why this is no name of an account. Names are for logs and other people: no two look alike, and none looks like a token's.
    pub fn name_fault(name: &str) -> Option<&'static str> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let allowed = name.bytes().all(|byte| is_plain(byte) || b".-_@".contains(&byte));
        match allowed && name.len() <= 63 && name.bytes().next().is_some_and(is_plain) {
            true => None,
            false => Some(
                "the name of an account consists of at most 63 lower-case letters, digits and .-_@, and starts with a letter or digit",
            ),
        }
    }
}

impl AccessStore {
    /// Creates an account. Whether there was none of this name.
    pub fn create_account(
        &mut self,
        name: &str,
        password_hash: &str,
        rights: &Rights,
        now: SystemTime,
    ) -> Result<bool, Error> {
        let created = self.connection.execute(
            "INSERT INTO accounts (name, password, rights, created, password_set) VALUES (?1, ?2, ?3, ?4, ?4)
             ON CONFLICT DO NOTHING",
            params![name, password_hash, rights_text(rights), millis(now)],
        );
        Ok(created.map_err(self.failed())? == 1)
    }

    /// All accounts, by name.
    pub fn accounts(&self) -> Result<Vec<Account>, Error> {
        let read = || -> rusqlite::Result<Vec<Account>> {
            let query = "SELECT name, rights, created, password_set, last_login FROM accounts ORDER BY name";
            let mut query = self.connection.prepare(query)?;
            let found = query.query_map((), |row| {
                Ok(Account {
                    name: row.get(0)?,
                    rights: rights_of(row, 1)?,
                    created: moment(row.get(2)?),
                    password_set: moment(row.get(3)?),
                    last_login: row.get::<_, Option<i64>>(4)?.map(moment),
                })
            });
            found?.collect()
        };
        read().map_err(self.failed())
    }

    /// The hash of an account's password. None: there is no such account.
    pub fn password_hash(&self, name: &str) -> Result<Option<String>, Error> {
        let query = "SELECT password FROM accounts WHERE name = ?1";
        self.connection.query_row(query, [name], |row| row.get(0)).optional().map_err(self.failed())
    }

    /// Sets the password of an account, and ends its sessions but the one with the id `kept`. `before`: only if it has this hash. Whether
    /// it was so.
    pub fn set_password(
        &mut self,
        name: &str,
        password_hash: &str,
        before: Option<&str>,
        kept: Option<&str>,
        now: SystemTime,
    ) -> Result<bool, Error> {
        let failed = self.failed();
        let mut set = || -> rusqlite::Result<bool> {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let update = "UPDATE accounts SET password = ?2, password_set = ?3
                 WHERE name = ?1 AND coalesce(?4, password) = password";
            if transaction.execute(update, params![name, password_hash, millis(now), before])? == 0 {
                return Ok(false);
            }
            let delete = "DELETE FROM sessions WHERE account = ?1 AND id IS NOT ?2";
            transaction.execute(delete, params![name, kept])?;
            transaction.commit()?;
            Ok(true)
        };
        set().map_err(failed)
    }

    /// Replaces the rights of an account, and ends its sessions. Whether there is such an account.
    pub fn set_rights(&mut self, name: &str, rights: &Rights) -> Result<bool, Error> {
        let failed = self.failed();
        let mut set = || -> rusqlite::Result<bool> {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let update = "UPDATE accounts SET rights = ?2 WHERE name = ?1";
            let changed = transaction.execute(update, params![name, rights_text(rights)])?;
            transaction.execute("DELETE FROM sessions WHERE account = ?1", [name])?;
            transaction.commit()?;
            Ok(changed == 1)
        };
        set().map_err(failed)
    }

    /// Removes an account, its sessions, also those that began with a link of its name, and its tokens. Whether there was one.
    pub fn remove_account(&mut self, name: &str) -> Result<bool, Error> {
        let failed = self.failed();
        let mut remove = || -> rusqlite::Result<bool> {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let removed = transaction.execute("DELETE FROM accounts WHERE name = ?1", [name])?;
            if removed == 1 {
                transaction.execute("DELETE FROM sessions WHERE name = ?1", [name])?;
                transaction.execute("DELETE FROM links WHERE name = ?1", [name])?;
                transaction.execute("DELETE FROM tokens WHERE account = ?1", [name])?;
            }
            transaction.commit()?;
            Ok(removed == 1)
        };
        remove().map_err(failed)
    }
}
