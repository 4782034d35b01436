//! Vault files of the controller: seen by how they begin, decrypted in memory only.

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
    let text = String::from_utf8(bytes).map_err(|_| vault::Error::Damaged);
    let plain = text.and_then(|text| here.scope.keyring.decrypt(&text));
    plain.map_err(|error| Error::Failed {
        message: format!("cannot decrypt {}: {error}", path.display()),
        hint: Some("give its password with --vault-password-file, or copy it as it is with decrypt: false".to_owned()),
    })
}
