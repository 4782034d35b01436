//! Messages for webhooks that have not been delivered yet, and those that were, so that none is made twice.

use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension, TransactionBehavior, params};

use super::{AccessStore, millis, moment};
use crate::runs::Error;

/// How long a message that was delivered, or given up, is remembered. It must be longer than the time for which runs are looked up again
/// after the server was down.
const MEMORY: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A message that is to be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::serve) struct WebhookMessage {
    /// The same for each attempt.
    pub id: String,
    pub body: String,
    /// How often it was sent.
    pub attempts: u32,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::serve) enum Attempted {
    Delivered,
    /// It is sent again at this time, for this reason.
    Later(SystemTime, String),
    /// It is not sent again, for this reason.
    GivenUp(String),
}

/// What is known of a webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::serve) struct WebhookRecord {
    /// Messages that have not been delivered yet.
    pub waiting: usize,
    /// Messages that were given up in the last 30 days.
    pub given_up: usize,
    pub last_delivered: Option<SystemTime>,
    /// Why the last attempt failed. None: it did not, or there was none.
    pub last_error: Option<String>,
}

impl AccessStore {
    /// From now on, webhooks that are new get messages about what happens. Others keep what is known of them for a while: another server
    /// with this store may have them, and what is missing in a file may come back.
    pub(in crate::serve) fn keep_webhooks(&mut self, names: &[&str], now: SystemTime) -> Result<(), Error> {
        let failed = self.failed();
        let names = serde_json::to_string(names).expect("names are JSON");
        let mut keep = || -> rusqlite::Result<()> {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let others = "DELETE FROM webhooks WHERE name NOT IN (SELECT value FROM json_each(?1)) AND seen_until < ?2";
            transaction.execute(others, params![names, millis(now - MEMORY)])?;
            let insert =
                "INSERT INTO webhooks (name, created, seen_until) SELECT value, ?2, ?2 FROM json_each(?1) WHERE true
                          ON CONFLICT DO NOTHING";
            transaction.execute(insert, params![names, millis(now)])?;
            transaction.commit()
        };
        keep().map_err(failed)
    }

    /// Since when there is a webhook, and until when runs were looked at for it. None: there is no such webhook.
    pub(in crate::serve) fn webhook_times(&mut self, name: &str) -> Result<Option<(SystemTime, SystemTime)>, Error> {
        let query = "SELECT created, seen_until FROM webhooks WHERE name = ?1";
        let found = self.connection.query_row(query, [name], |row| Ok((moment(row.get(0)?), moment(row.get(1)?))));
        found.optional().map_err(self.failed())
    }

    /// Adds the messages that are new, and writes down until when runs were looked at. All or nothing.
    pub(in crate::serve) fn add_webhook_messages(
        &mut self,
        name: &str,
        messages: &[(String, String)],
        seen_until: SystemTime,
    ) -> Result<(), Error> {
        let failed = self.failed();
        let mut add = || -> rusqlite::Result<()> {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for (id, body) in messages {
                let insert = "INSERT INTO messages (webhook, id, body, created, next) VALUES (?1, ?2, ?3, ?4, ?4)
                              ON CONFLICT DO NOTHING";
                transaction.execute(insert, params![name, id, body, millis(seen_until)])?;
            }
            let old = "DELETE FROM messages WHERE webhook = ?1 AND next IS NULL AND created < ?2";
            transaction.execute(old, params![name, millis(seen_until - MEMORY)])?;
            let update = "UPDATE webhooks SET seen_until = ?2 WHERE name = ?1";
            transaction.execute(update, params![name, millis(seen_until)])?;
            transaction.commit()
        };
        add().map_err(failed)
    }

    /// Whether there is such a message already, delivered or not.
    pub(in crate::serve) fn has_webhook_message(&mut self, name: &str, id: &str) -> Result<bool, Error> {
        let query = "SELECT EXISTS (SELECT 1 FROM messages WHERE webhook = ?1 AND id = ?2)";
        self.connection.query_row(query, [name, id], |row| row.get(0)).map_err(self.failed())
    }

    /// The oldest message for a webhook that is due. `longest_pause`: how long one waits at most until it is sent again. None: there is none.
    pub(in crate::serve) fn due_webhook_message(
        &mut self,
        name: &str,
        now: SystemTime,
        longest_pause: Duration,
    ) -> Result<Option<WebhookMessage>, Error> {
        let query = "SELECT id, body, attempts FROM messages
                     WHERE webhook = ?1 AND (next <= ?2 OR next > ?3) ORDER BY created, id LIMIT 1";
        // The clock was ahead when it was to be sent so late.
        let latest = now + longest_pause;
        let found = self.connection.query_row(query, params![name, millis(now), millis(latest)], |row| {
            Ok(WebhookMessage { id: row.get(0)?, body: row.get(1)?, attempts: row.get(2)? })
        });
        found.optional().map_err(self.failed())
    }

    /// Writes down what became of an attempt to deliver a message.
    pub(in crate::serve) fn record_webhook_attempt(
        &mut self,
        name: &str,
        id: &str,
        attempted: &Attempted,
        now: SystemTime,
    ) -> Result<(), Error> {
        let failed = self.failed();
        let (next, error) = match attempted {
            Attempted::Delivered => (None, None),
            Attempted::Later(next, why) => (Some(millis(*next)), Some(why)),
            Attempted::GivenUp(why) => (None, Some(why)),
        };
        let (is_delivered, is_given_up) = (*attempted == Attempted::Delivered, next.is_none() && error.is_some());
        let mut record = || -> rusqlite::Result<()> {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let update =
                "UPDATE messages SET attempts = attempts + 1, next = ?3, given_up = ?4 WHERE webhook = ?1 AND id = ?2";
            transaction.execute(update, params![name, id, next, is_given_up])?;
            let update =
                "UPDATE webhooks SET last_error = ?2, last_delivered = iif(?3, ?4, last_delivered) WHERE name = ?1";
            transaction.execute(update, params![name, error, is_delivered, millis(now)])?;
            transaction.commit()
        };
        record().map_err(failed)
    }

    /// What is known of a webhook.
    pub(in crate::serve) fn webhook_record(&mut self, name: &str, now: SystemTime) -> Result<WebhookRecord, Error> {
        let query = "SELECT (SELECT count(*) FROM messages WHERE webhook = name AND next IS NOT NULL),
                            (SELECT count(*) FROM messages WHERE webhook = name AND given_up AND created >= ?2),
                            last_delivered, last_error
                     FROM webhooks WHERE name = ?1";
        let count = |number: i64| usize::try_from(number).unwrap_or_default();
        let found = self.connection.query_row(query, params![name, millis(now - MEMORY)], |row| {
            Ok(WebhookRecord {
                waiting: count(row.get(0)?),
                given_up: count(row.get(1)?),
                last_delivered: row.get::<_, Option<i64>>(2)?.map(moment),
                last_error: row.get(3)?,
            })
        });
        Ok(found.optional().map_err(self.failed())?.unwrap_or_default())
    }
}
