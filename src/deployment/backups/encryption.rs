//! Who can decrypt a backup. The format is that of age (<https://age-encryption.org/v1>), so that the programs age and rage read it, too.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::age_format::{check_identity, check_recipient};
use crate::value::Secret;

/// How a backup is encrypted, as its manifest says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "format", rename_all = "snake_case", deny_unknown_fields)]
pub enum Encryption {
    Age {
        /// The public keys of those who can decrypt it: `age1...`.
        recipients: Vec<String>,
    },
}

impl fmt::Display for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Encryption::Age { recipients } = self;
        write!(f, "age, to {}", recipients.join(", "))
    }
}

/// Public keys of age: who has the secret key of one of them can decrypt. None: nothing is encrypted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recipients(Vec<String>);

impl Recipients {
    /// Of one key per line. Empty lines, and those that begin with `#`, are comments.
    ///
    /// # Errors
    /// There is none, or a line is no public key. The line is not in the error: it may be a secret key.
    pub fn from_lines(text: &str) -> Result<Recipients, String> {
        let keys: Vec<String> = parse_lines(text, check_recipient)?.into_iter().map(str::to_owned).collect();
        match keys.is_empty() {
            true => Err("there is no public key of age, which begins with age1".to_owned()),
            false => Ok(Recipients::default().and(Recipients(keys))),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of both, each once.
    #[must_use]
    pub fn and(mut self, others: Recipients) -> Recipients {
        self.0.extend(others.0);
        self.0.sort_unstable();
        self.0.dedup();
        self
    }

    /// None: nothing is encrypted.
    pub(super) fn encryption(&self) -> Option<Encryption> {
        (!self.0.is_empty()).then(|| Encryption::Age { recipients: self.0.clone() })
    }
}

/// Secret keys of age. They are in no output.
#[derive(Debug, Clone, Default)]
pub struct Identities(pub(super) Vec<Secret>);

impl Identities {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Of what age-keygen writes: one secret key per line, and comments.
    ///
    /// # Errors
    /// There is none, or a line is no secret key. The line is not in the error.
    pub fn from_lines(text: &str) -> Result<Identities, String> {
        if text.starts_with("-----BEGIN AGE ENCRYPTED FILE") || text.starts_with("age-encryption.org/") {
            return Err("it is encrypted itself, with a passphrase; decrypt it first: age --decrypt FILE".to_owned());
        }
        let keys: Vec<Secret> = parse_lines(text, check_identity)?.into_iter().map(Secret::new).collect();
        match keys.is_empty() {
            true => Err("there is no secret key of age, which begins with AGE-SECRET-KEY-1".to_owned()),
            false => Ok(Identities(keys)),
        }
    }

    #[must_use]
    pub fn and(mut self, others: Identities) -> Identities {
        self.0.extend(others.0);
        self
    }
}

fn parse_lines(text: &str, check: impl Fn(&str) -> Result<(), String>) -> Result<Vec<&str>, String> {
    let lines = text.lines().map(str::trim).enumerate();
    let keys = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let whole = text.lines().count() > 1;
    let place = |at: usize| if whole { format!("line {}: ", at + 1) } else { String::new() };
    keys.map(|(at, line)| check(line).map(|()| line).map_err(|why| format!("{}{why}", place(at)))).collect()
}
