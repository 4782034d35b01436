//! Encrypts and decrypts files of age.

use std::io::{self, Read, Write};

use age::x25519::{Identity, Recipient};
use age::{DecryptError, Decryptor, Encryptor};

use super::encryption::{Encryption, Identities};

/// # Errors
/// It is no public key.
pub(super) fn check_recipient(key: &str) -> Result<(), String> {
    if key.get(..15).is_some_and(|start| start.eq_ignore_ascii_case("AGE-SECRET-KEY-")) {
        return Err("it is a secret key; its public key is needed, which age-keygen -y prints".to_owned());
    }
    key.parse::<Recipient>().map(drop).map_err(|_| "it is no public key of age, which begins with age1".to_owned())
}

/// # Errors
/// It is no secret key.
pub(super) fn check_identity(key: &str) -> Result<(), String> {
    let wrong = "it is no secret key of age, which begins with AGE-SECRET-KEY-1";
    key.parse::<Identity>().map(drop).map_err(|_| wrong.to_owned())
}

/// Encrypts what `write` writes. Gives `to` back.
pub(super) fn encrypt_file<W: Write>(
    to: W,
    encryption: &Encryption,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<W> {
    let Encryption::Age { recipients } = encryption;
    let keys: Result<Vec<Recipient>, _> = recipients.iter().map(|key| key.parse()).collect();
    let keys = keys.map_err(io::Error::other)?;
    let encryptor = Encryptor::with_recipients(keys.iter().map(|key| key as &dyn age::Recipient));
    let mut writer = encryptor.map_err(io::Error::other)?.wrap_output(to)?;
    write(&mut writer)?;
    writer.finish()
}

/// # Errors
/// No identity decrypts it, or it is damaged.
pub(super) fn decrypt_file<'a>(
    from: impl Read + 'a,
    encryption: &Encryption,
    identities: &Identities,
) -> Result<Box<dyn Read + 'a>, String> {
    if identities.0.is_empty() {
        return Err(format!(
            "it is encrypted ({encryption}); --identity FILE names the file with a secret key of these"
        ));
    }
    let keys: Vec<Identity> = identities.0.iter().filter_map(|key| key.reveal().parse().ok()).collect();
    let keys = keys.iter().map(|key| key as &dyn age::Identity);
    match Decryptor::new(from).and_then(|decryptor| decryptor.decrypt(keys)) {
        Ok(reader) => Ok(Box::new(reader)),
        Err(DecryptError::NoMatchingKeys) => Err(format!("none of the identities decrypts it ({encryption})")),
        Err(error) => Err(format!("damaged: {error}")),
    }
}
