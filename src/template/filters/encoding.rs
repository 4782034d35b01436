//! Base64, URL and vault encodings.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, to_text};
use super::super::lazy::scope_of;
use crate::value::doc::LanguageItem;
use crate::value::{Secret, Value, vault as sealed};

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("b64decode", "Decodes base64 text.")
            .takes("encoding='utf-8'")
            .gives("'d2luZGxhc3M=' | b64decode", "windlass"),
        b64decode,
    ),
    (
        LanguageItem::new("b64encode", "Encodes text as base64.")
            .takes("encoding='utf-8'")
            .gives("'windlass' | b64encode", "d2luZGxhc3M="),
        b64encode,
    ),
    (
        LanguageItem::new("unvault", "Decrypts a vault text; without a secret, with the passwords of the run.")
            .takes("secret")
            .example("encrypted_text | unvault"),
        unvault,
    ),
    (
        LanguageItem::new("urldecode", "Decodes %20 and other escapes in the text of a URL.")
            .gives("'a%20b' | urldecode", "a b"),
        urldecode,
    ),
    (
        LanguageItem::new("vault", "Encrypts text in the format of vault files.")
            .takes("secret, salt=none, vault_id=none")
            .example("'private' | vault('passphrase')"),
        vault,
    ),
];

pub(super) fn b64encode(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let string = args.text_argument("string")?;
    Ok(Value::from(STANDARD.encode(string)))
}

pub(super) fn b64decode(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let string: String = args.text_argument("string")?.split_whitespace().collect();
    let bytes = STANDARD.decode(string).map_err(|error| fail(format!("not base64: {error}")))?;
    String::from_utf8(bytes).map(Value::from).map_err(|_| fail("the decoded bytes are not UTF-8 text"))
}

pub(super) fn urldecode(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let string = args.text_argument("string")?.replace('+', " ");
    let mut bytes = Vec::with_capacity(string.len());
    let mut rest = string.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let byte = after
            .get(..2)
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Ok(Value::from(String::from_utf8_lossy(&bytes).into_owned()))
}

/// `vault(secret, salt, vault_id)`
pub(super) fn vault(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (data, secret) = (args.text_argument("data")?, args.text_argument("secret")?);
    let salt = args.opt("salt").filter(|salt| !salt.is_none()).map(|salt| to_text(&salt));
    let id = args.text_or("vault_id", "filter_default");
    let (data, secret) = (data.as_bytes(), Secret::new(secret));
    Ok(Value::from(match salt {
        Some(salt) => sealed::encrypt_salted(data, &secret, Some(&id), salt.as_bytes()),
        None => sealed::encrypt(data, &secret, Some(&id)),
    }))
}

/// `unvault(secret)`; without one, the run's vault passwords.
pub(super) fn unvault(state: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let data = args.text_argument("vault")?;
    let mut keyring = (*scope_of(state).keyring).clone();
    if let Some(secret) = args.opt("secret") {
        keyring.passwords.push(("default".into(), Secret::new(to_text(&secret))));
    }
    if !sealed::is_vault(&data) {
        return Ok(Value::from(data));
    }
    let plain = keyring.decrypt_hidden(&data).map_err(|error| fail(error.to_string()))?;
    String::from_utf8(plain).map(Value::from).map_err(|_| fail("the decrypted text is not UTF-8"))
}
