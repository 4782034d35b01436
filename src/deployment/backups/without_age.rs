//! What a windlass without the cargo feature `age` does instead of encrypting: it refuses.

use std::io::{self, Read, Write};

use super::encryption::{Encryption, Identities};

const MISSING: &str = "this windlass was built without age";

pub(super) fn check_recipient(_: &str) -> Result<(), String> {
    Err(MISSING.to_owned())
}

pub(super) fn check_identity(_: &str) -> Result<(), String> {
    Err(MISSING.to_owned())
}

pub(super) fn encrypt_file<W: Write>(
    _: W,
    _: &Encryption,
    _: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<W> {
    Err(io::Error::other(MISSING))
}

pub(super) fn decrypt_file<'a>(
    _: impl Read + 'a,
    encryption: &Encryption,
    _: &Identities,
) -> Result<Box<dyn Read + 'a>, String> {
    Err(format!("it is encrypted ({encryption}), and {MISSING}"))
}
