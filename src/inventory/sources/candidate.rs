//! What was given as a source, while its kind is not known yet.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::value::origin::{Diagnostic, Source};
use crate::value::vault::{self, Keyring};

/// A file that was read, or a comma list.
pub(super) struct Candidate {
    /// Absolute; of a comma list the list itself.
    pub path: PathBuf,
    content: Option<Content>,
}

struct Content {
    /// Decrypted.
    bytes: Vec<u8>,
    /// The file was a vault, so its lines are not shown.
    secret: bool,
    executable: bool,
}

impl Candidate {
    pub(super) fn list_candidate(text: &str) -> Candidate {
        Candidate { path: text.into(), content: None }
    }

    /// Reads a file; a vault is decrypted.
    pub(super) fn open_candidate(path: &Path, keyring: &Keyring) -> Result<Candidate, Diagnostic> {
        let unreadable = |why: &dyn std::fmt::Display| {
            Diagnostic::new(format!("cannot read inventory {}: {why}", path.display()), None)
        };
        let bytes = crate::value::read::bytes(path).map_err(|error| unreadable(&error))?;
        let mode = std::fs::metadata(path).map_err(|error| unreadable(&error))?.permissions().mode();
        let text = std::str::from_utf8(&bytes).ok().filter(|text| vault::is_vault(text));
        let plain = text.map(|text| keyring.decrypt(text)).transpose().map_err(|error| {
            unreadable(&error).hint("pass the vault password with --vault-password-file or --ask-vault-pass")
        })?;
        let secret = plain.is_some();
        let bytes = plain.unwrap_or(bytes);
        Ok(Candidate { path: path.into(), content: Some(Content { bytes, secret, executable: mode & 0o111 != 0 }) })
    }

    pub(super) fn is_list(&self) -> bool {
        self.content.is_none()
    }

    pub(super) fn is_executable(&self) -> bool {
        self.content.as_ref().is_some_and(|content| content.executable)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.content.as_ref().map_or(&[], |content| &content.bytes)
    }

    /// The text, if it is UTF-8.
    pub(super) fn content_text(&self) -> Result<&str, Diagnostic> {
        std::str::from_utf8(self.bytes())
            .map_err(|_| Diagnostic::new(format!("inventory {} is not UTF-8 text", self.path.display()), None))
    }

    /// The file for messages: without its text when that is secret.
    pub(super) fn source(&self, text: &str) -> Arc<Source> {
        let secret = self.content.as_ref().is_some_and(|content| content.secret);
        let text = if secret { String::new() } else { text.to_owned() };
        Arc::new(Source::new(self.path.clone(), text))
    }
}
