//! Secrets that a server hands to a process that it starts: in memory that has no name in any file system, as the standard input of the
//! process. No argument, variable or file has them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::{Arc, OnceLock};

use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};

use crate::value::{ProcessEnvironment, Secret};

/// The variable that says that secrets are handed over, by standard input.
pub const HANDED: &str = "WINDLASS_HANDED_SECRETS";

/// The secrets of one deployment, by name and key.
#[derive(Default, Clone, PartialEq, Eq)]
pub struct HandedSecrets {
    secrets: BTreeMap<String, BTreeMap<String, Secret>>,
    /// Another text each time one of them is set, from which they cannot be guessed.
    generation: String,
    /// Whether a server was there to hand them over.
    by_server: bool,
}

/// As they are written.
#[derive(Serialize, Deserialize)]
struct Written {
    generation: String,
    secrets: BTreeMap<String, BTreeMap<String, String>>,
}

impl std::fmt::Debug for HandedSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandedSecrets").field("names", &self.secrets.keys()).finish_non_exhaustive()
    }
}

impl HandedSecrets {
    /// Those of this process. Read once, at the first call: what is at standard input is gone then.
    ///
    /// # Errors
    /// One line that says why they cannot be read, without any part of them.
    pub fn handed_to_process(surroundings: &ProcessEnvironment) -> Result<Arc<HandedSecrets>, String> {
        static HANDED_OVER: OnceLock<Result<Arc<HandedSecrets>, String>> = OnceLock::new();
        if surroundings.variable(HANDED).is_none() {
            return Ok(Arc::default());
        }
        HANDED_OVER
            .get_or_init(|| {
                let failed = |error: std::io::Error| format!("standard input: {error}");
                let mut bytes = Vec::new();
                std::io::stdin().lock().read_to_end(&mut bytes).map_err(failed)?;
                // Programs that this process starts must not find them there.
                let nothing = File::open("/dev/null").map_err(failed)?;
                rustix::stdio::dup2_stdin(&nothing).map_err(|error| failed(error.into()))?;
                HandedSecrets::of_bytes(&bytes).map(Arc::new)
            })
            .clone()
    }

    fn of_bytes(bytes: &[u8]) -> Result<HandedSecrets, String> {
        // The parser's own words might quote them.
        let written: Written = serde_json::from_slice(bytes).map_err(|_| "they are not as a server writes them")?;
        let secrets = written.secrets.into_iter().map(|(name, keys)| {
            (name, keys.into_iter().map(|(key, value)| (key, Secret::new(value))).collect::<BTreeMap<_, _>>())
        });
        Ok(HandedSecrets { secrets: secrets.collect(), generation: written.generation, by_server: true })
    }

    /// Adds a secret to hand over.
    pub fn hand_over(&mut self, name: &str, key: &str, value: Secret) {
        self.secrets.entry(name.to_owned()).or_default().insert(key.to_owned(), value);
    }

    /// Says that these are other secrets than those with another text, although nobody sees them.
    pub fn set_generation(&mut self, generation: String) {
        self.generation = generation;
    }

    /// Empty: none were handed over.
    pub fn generation(&self) -> &str {
        &self.generation
    }

    /// What is to be the standard input of the process that gets them.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn as_input(&self) -> std::io::Result<File> {
        let plain = |keys: &BTreeMap<String, Secret>| {
            keys.iter().map(|(key, value)| (key.clone(), value.reveal().to_owned())).collect()
        };
        let secrets = self.secrets.iter().map(|(name, keys)| (name.clone(), plain(keys))).collect();
        let written = Written { generation: self.generation.clone(), secrets };
        let mut file = File::from(rustix::fs::memfd_create("secrets", MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(&written)?)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }

    /// A secret.
    ///
    /// # Errors
    /// One line that says why there is none.
    pub fn handed_secret(&self, name: &str, key: &str) -> Result<String, String> {
        if !self.by_server {
            return Err("the server has it: plan and apply this document through windlass serve".to_owned());
        }
        let Some(keys) = self.secrets.get(name) else {
            return Err("the server has no credential of this name for the deployment".to_owned());
        };
        let found = keys.get(key).map(|value| value.reveal().to_owned());
        found.ok_or_else(|| {
            let known: Vec<&str> = keys.keys().map(String::as_str).collect();
            format!("it does not have this key, only {}", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_over_is_found_and_nothing_else() {
        let mut handed = HandedSecrets::default();
        handed.hand_over("login", "password", Secret::new("s3cret"));
        handed.set_generation("g2".to_owned());
        let mut bytes = Vec::new();
        handed.as_input().unwrap().read_to_end(&mut bytes).unwrap();
        let got = HandedSecrets::of_bytes(&bytes).unwrap();
        assert_eq!(got.handed_secret("login", "password").unwrap(), "s3cret");
        assert_eq!(got.generation(), "g2");
        assert_eq!(got.handed_secret("login", "key").unwrap_err(), "it does not have this key, only password");
        assert!(got.handed_secret("other", "password").unwrap_err().contains("no credential of this name"));
        assert!(!format!("{got:?}").contains("s3cret"));
        assert!(!HandedSecrets::of_bytes(b"{\"login\": \"s3cret\"}").unwrap_err().contains("s3cret"));
    }

    #[test]
    fn without_a_server_there_are_none() {
        let around = ProcessEnvironment::default();
        let why = HandedSecrets::handed_to_process(&around).unwrap().handed_secret("login", "password").unwrap_err();
        assert!(why.contains("through windlass serve"), "{why}");
    }
}
