//! Vault files: seen by how they begin, decrypted in memory only.

use std::path::Path;

use crate::modules::{Controller, Error, file_write};
use crate::value::vault;

/// Whether a file begins as vault files do.
pub(in crate::modules) fn is_vault(path: &Path) -> Result<bool, Error> {
    vault::is_vault_file(path).map_err(|error| file_write::unreadable(path, &error))
}

/// The content of a file, decrypted if it is a vault file.
pub(in crate::modules) async fn read_decrypted(here: &Controller<'_>, path: &Path) -> Result<Vec<u8>, Error> {
    match is_vault(path)? {
        true => decrypt(here, path).await,
        false => file_write::read_controller_file(path).await,
    }
}

/// The plain content of a vault file.
pub(in crate::modules) async fn decrypt(here: &Controller<'_>, path: &Path) -> Result<Vec<u8>, Error> {
    let bytes = file_write::read_controller_file(path).await?;
    decrypt_bytes(here, &bytes, &path.display().to_string())
}

/// The plain content of a vault file that has been read; `name` is for the error.
pub(in crate::modules) fn decrypt_bytes(here: &Controller<'_>, bytes: &[u8], name: &str) -> Result<Vec<u8>, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| vault::Error::Damaged);
    let plain = text.and_then(|text| here.scope.keyring.decrypt_hidden(text));
    plain.map_err(|error| Error::Failed {
        message: format!("cannot decrypt {name}: {error}"),
        hint: Some("pass its password with --vault-password-file or --ask-vault-pass".to_owned()),
    })
}

pub(in crate::modules) fn is_sealed(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(vault::is_vault)
}

/// Whether what is kept on this machine is encrypted.
pub(in crate::modules) fn seals(here: &Controller<'_>) -> bool {
    !here.scope.keyring.passwords.is_empty() && !here.scope.keyring.writes_plain
}

/// A text that only the first vault password of the run opens; None if it has none, or others use it.
pub(in crate::modules) fn seal(here: &Controller<'_>, plain: &[u8]) -> Option<String> {
    if !seals(here) {
        return None;
    }
    let (identity, password) = here.scope.keyring.passwords.first()?;
    let identity = Some(identity.as_str()).filter(|identity| *identity != "default");
    Some(vault::encrypt(plain, password, identity))
}

/// The same; as it is if there is none.
pub(in crate::modules) fn sealed(here: &Controller<'_>, plain: Vec<u8>) -> Vec<u8> {
    seal(here, &plain).map_or(plain, String::into_bytes)
}
