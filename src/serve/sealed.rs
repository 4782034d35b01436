//! SSH keys, passwords and the like that come through the API: written, used for runs, and never shown. Each is a file of its own, sealed
//! with AES-256-GCM for one deployment and one name, so that none can be put in another's place.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::sha256_hex;
use super::documents::{make_private, write_whole};
use crate::credentials::HandedSecrets;
use crate::resource::{self, is_stored_name};
use crate::value::Secret;

/// The name of the key among the credentials of a systemd unit.
const SYSTEMD_NAME: &str = "windlass-credentials-key";

/// The longest secret, in bytes.
pub(super) const LONGEST_SECRET: usize = 64 << 10;

const ENDING: &str = ".json";

/// What a credential is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum CredentialKind {
    /// A private key to log in with; its key in the document is `ssh-privatekey`.
    SshKey,
    /// A password or passphrase: `password`.
    Password,
    /// Of a member cluster: `kubeconfig`.
    Kubeconfig,
    /// The private key of an authority: `tls.key`.
    PrivateKey,
}

impl CredentialKind {
    /// The key of a Secret of Kubernetes that has the same.
    pub(super) fn key_name(self) -> &'static str {
        match self {
            CredentialKind::SshKey => resource::SSH_KEY,
            CredentialKind::Password => resource::PASSWORD,
            CredentialKind::Kubeconfig => resource::KUBECONFIG,
            CredentialKind::PrivateKey => resource::AUTHORITY_KEY,
        }
    }
}

/// A credential as its file has it.
#[derive(Serialize, Deserialize)]
pub(super) struct SealedCredential {
    pub kind: CredentialKind,
    pub fingerprint: Option<String>,
    pub set: String,
    pub by: String,
    /// Base64 of the nonce and what is sealed.
    sealed: String,
}

/// Why something could not be done with a credential. No text has a part of one.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("cannot use {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{}: {why}", path.display())]
    Key { path: PathBuf, why: &'static str },
    #[error("{}: it cannot be opened with this key", path.display())]
    Opened { path: PathBuf },
}

/// The key that credentials are sealed with.
pub struct SealingKey(LessSafeKey);

impl SealingKey {
    /// Reads it from the file that an option names, or else from the credentials of the systemd unit. None: there is none.
    ///
    /// # Errors
    /// The file cannot be read, others can read it, or it holds no key.
    pub fn find(file: Option<&Path>, systemd: Option<&Path>) -> Result<Option<SealingKey>, SealError> {
        let of_unit = systemd.map(|directory| directory.join(SYSTEMD_NAME)).filter(|path| path.exists());
        let Some(path) = file.map(Path::to_owned).or(of_unit) else { return Ok(None) };
        let failed = |source| SealError::File { path: path.clone(), source };
        let wrong = |why| SealError::Key { path: path.clone(), why };
        let open = File::open(&path).map_err(failed)?;
        let found = open.metadata().map_err(failed)?;
        let is_of_unit = systemd.is_some_and(|directory| is_below(&path, directory));
        if !found.is_file() || !is_private(found.uid(), found.mode(), is_of_unit) {
            return Err(wrong("only its owner may be able to read it: its mode must be 0600 or 0400"));
        }
        let text = std::io::read_to_string(open).map_err(|_| wrong("it must be 32 random bytes in base64"))?;
        let bytes = BASE64_STANDARD.decode(text.trim()).ok().filter(|bytes| bytes.len() == AES_256_GCM.key_len());
        let key = bytes.and_then(|bytes| UnboundKey::new(&AES_256_GCM, &bytes).ok());
        let key =
            key.ok_or_else(|| wrong("it must be 32 random bytes in base64: openssl rand -base64 32 makes them"))?;
        Ok(Some(SealingKey(LessSafeKey::new(key))))
    }

    fn seal(&self, secret: &Secret, about: &[u8]) -> Option<String> {
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut bytes = secret.reveal().as_bytes().to_vec();
        self.0.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(about), &mut bytes).ok()?;
        Some(BASE64_STANDARD.encode([&nonce[..], &bytes].concat()))
    }

    fn unseal(&self, sealed: &str, about: &[u8]) -> Option<Secret> {
        let bytes = BASE64_STANDARD.decode(sealed).ok()?;
        let (nonce, rest) = bytes.split_at_checked(NONCE_LEN)?;
        let (nonce, mut rest) = (Nonce::try_assume_unique_for_key(nonce).ok()?, rest.to_vec());
        let plain = self.0.open_in_place(nonce, Aad::from(about), &mut rest).ok()?;
        std::str::from_utf8(plain).ok().map(Secret::new)
    }
}

/// The names in a directory with this ending, without it. None if it is not there.
fn names_in(directory: &Path, ending: &str) -> Result<Vec<String>, SealError> {
    let failed = |source| SealError::File { path: directory.to_owned(), source };
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(ending));
        found.extend(name.filter(|name| is_stored_name(name)).map(str::to_owned));
    }
    found.sort();
    Ok(found)
}

/// Both without links, so that neither points outside.
fn is_below(path: &Path, directory: &Path) -> bool {
    matches!((path.canonicalize(), directory.canonicalize()), (Ok(path), Ok(directory)) if path.starts_with(&directory))
}

/// Whether a file with this owner and mode is for root and this user alone. systemd gives a unit's user access with an ACL, whose mask
/// the mode shows as bits of the group.
pub(super) fn is_private(owner: u32, mode: u32, is_of_unit: bool) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let others = if is_of_unit && owner == 0 { 0o027 } else { 0o077 };
    [0, me].contains(&owner) && mode & others == 0
}

/// What a secret is sealed for.
fn about(deployment: &str, name: &str, kind: CredentialKind) -> Vec<u8> {
    format!("windlass credential 1\n{deployment}\n{name}\n{}", kind.key_name()).into_bytes()
}

/// The credentials of all deployments.
pub(super) struct CredentialStore {
    directory: PathBuf,
    key: Option<SealingKey>,
}

impl CredentialStore {
    pub(super) fn new(directory: PathBuf, key: Option<SealingKey>) -> CredentialStore {
        CredentialStore { directory, key }
    }

    pub(super) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Both names are names of [`is_stored_name`], so that they lead nowhere else.
    fn credential_path(&self, deployment: &str, name: &str) -> PathBuf {
        self.directory.join(deployment).join(format!("{name}{ENDING}"))
    }

    /// Writes a credential in the place of the one that was there. Whether there was none. None: there is no key.
    pub(super) fn write_credential(
        &self,
        (deployment, name): (&str, &str),
        secret: &Secret,
        mut credential: SealedCredential,
    ) -> Result<Option<bool>, SealError> {
        let Some(key) = &self.key else { return Ok(None) };
        let path = self.credential_path(deployment, name);
        let failed = |source| SealError::File { path: path.clone(), source };
        let sealed = key.seal(secret, &about(deployment, name, credential.kind));
        credential.sealed = sealed.ok_or_else(|| SealError::Opened { path: path.clone() })?;
        let text = serde_json::to_string(&credential).map_err(|error| failed(error.into()))?;
        make_private(path.parent().unwrap_or(&self.directory)).map_err(failed)?;
        let is_new = !path.exists();
        write_whole(&path, &text).map_err(failed)?;
        Ok(Some(is_new))
    }

    /// The names of the credentials of a deployment, also of those that cannot be opened.
    pub(super) fn credential_names(&self, deployment: &str) -> Result<Vec<String>, SealError> {
        names_in(&self.directory.join(deployment), ENDING)
    }

    /// The deployments that have credentials.
    pub(super) fn deployments_with_credentials(&self) -> Result<Vec<String>, SealError> {
        let mut found = names_in(&self.directory, "")?;
        // One that cannot be read counts.
        found.retain(|name| !self.credential_names(name).is_ok_and(|names| names.is_empty()));
        Ok(found)
    }

    /// The credentials of a deployment, by name, still sealed.
    pub(super) fn list_credentials(&self, deployment: &str) -> Result<Vec<(String, SealedCredential)>, SealError> {
        let mut found = Vec::new();
        for name in self.credential_names(deployment)? {
            let path = self.credential_path(deployment, &name);
            let failed = |source| SealError::File { path: path.clone(), source };
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            let credential = serde_json::from_str(&text).map_err(|_| SealError::Opened { path: path.clone() })?;
            found.push((name, credential));
        }
        Ok(found)
    }

    /// Deletes a credential. Whether there was one.
    pub(super) fn delete_credential(&self, deployment: &str, name: &str) -> Result<bool, SealError> {
        let path = self.credential_path(deployment, name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true).map_err(|source| SealError::File { path, source }),
        }
    }

    /// Opens all credentials of a deployment for a process that works on it. Without a key, there are none.
    pub(super) fn handed_credentials(&self, deployment: &str) -> Result<HandedSecrets, SealError> {
        let mut handed = HandedSecrets::default();
        let Some(key) = &self.key else { return Ok(handed) };
        let mut all = String::new();
        for (name, credential) in self.list_credentials(deployment)? {
            // Sealed with a random number each time, so that the same secret has another text when it is set again.
            all.push_str(&format!("{name}\n{}\n", credential.sealed));
            let secret = key.unseal(&credential.sealed, &about(deployment, &name, credential.kind));
            let path = self.credential_path(deployment, &name);
            handed.hand_over(&name, credential.kind.key_name(), secret.ok_or(SealError::Opened { path })?);
        }
        handed.set_generation(sha256_hex(all.as_bytes()));
        Ok(handed)
    }
}

impl SealedCredential {
    /// Not sealed yet.
    pub(super) fn new(kind: CredentialKind, fingerprint: Option<String>, set: String, by: String) -> SealedCredential {
        SealedCredential { kind, fingerprint, set, by, sealed: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_of_a_unit_may_show_the_mask_of_its_acl() {
        let me = rustix::process::geteuid().as_raw();
        for (owner, mode, of_unit, elsewhere) in [
            (0, 0o100_400, true, true),
            (0, 0o100_440, true, false),
            (0, 0o100_460, false, false),
            (0, 0o100_420, false, false),
            (0, 0o100_444, false, false),
            (me + 1, 0o100_400, false, false),
            (me + 1, 0o100_440, false, false),
        ] {
            let found = [true, false].map(|is_of_unit| is_private(owner, mode, is_of_unit));
            assert_eq!(found, [of_unit, elsewhere], "{owner} {mode:o}");
        }
        assert!(is_private(me, 0o100_600, true) && is_private(me, 0o100_600, false));
        // Who is not root owns what systemd did not make.
        assert_eq!(is_private(me, 0o100_440, true), me == 0);
        let directory = tempfile::tempdir().unwrap();
        let unit = directory.path().join("unit");
        std::fs::create_dir(&unit).unwrap();
        for path in [unit.join("key"), directory.path().join("key")] {
            std::fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink("../key", unit.join("link")).unwrap();
        let below = ["key", "../key", "link", "missing"].map(|name| is_below(&unit.join(name), &unit));
        assert_eq!(below, [true, false, false, false]);
    }
}
