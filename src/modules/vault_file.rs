//! Vault files: seen by how they begin, decrypted in memory only.

use std::io::Read;
use std::path::Path;

use super::{Controller, Error, file_write};
use crate::value::vault;

/// Whether a file begins as vault files do.
pub fn is_vault(path: &Path) -> Result<bool, Error> {
    let mut start = [0; 15];
    let mut file = std::fs::File::open(path).map_err(|error| file_write::unreadable(path, &error))?;
    match file.read_exact(&mut start) {
        Ok(()) => Ok(&start == b"$ANSIBLE_VAULT;"),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(file_write::unreadable(path, &error)),
    }
}

/// The plain content of a vault file.
pub async fn decrypt(here: &Controller<'_>, path: &Path) -> Result<Vec<u8>, Error> {
    let bytes = file_write::read(path).await?;
    open(here, &bytes, &path.display().to_string())
}

/// The plain content of a vault file that has been read; `name` is for the error.
pub fn open(here: &Controller<'_>, bytes: &[u8], name: &str) -> Result<Vec<u8>, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| vault::Error::Damaged);
    let plain = text.and_then(|text| here.scope.keyring.decrypt(text));
    plain.map_err(|error| Error::Failed {
        message: format!("cannot decrypt {name}: {error}"),
        hint: Some("give its password with --vault-password-file, or copy it as it is with decrypt: false".to_owned()),
    })
}

pub fn is_sealed(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(vault::is_vault)
}

/// A text that only the first vault password of the run opens; None if it has none.
pub fn seal(here: &Controller<'_>, plain: &[u8]) -> Option<String> {
    let (identity, password) = here.scope.keyring.passwords.first()?;
    let identity = Some(identity.as_str()).filter(|identity| *identity != "default");
    Some(vault::encrypt(plain, password, identity))
}

/// The same; as it is if there is none.
pub fn sealed(here: &Controller<'_>, plain: Vec<u8>) -> Vec<u8> {
    seal(here, &plain).map_or(plain, String::into_bytes)
}
