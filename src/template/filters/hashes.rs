//! Digests, password hashes, UUIDs.

use md5::Md5;
use minijinja::{Error, State};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::fail;
use super::crypt::{Hashing, crypt};
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("checksum", "The SHA-1 of a text, in hexadecimal digits.")
            .gives("'a' | checksum", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        checksum,
    ),
    (
        LanguageItem::new(
            "hash",
            "The digest of a text, in hexadecimal digits: md5, sha1, sha224, sha256, sha384 \
             or sha512.",
        )
        .takes("hashtype='sha1'")
        .gives("'a' | hash('md5')", "0cc175b9c0f1b6a831c399e269772661"),
        hash,
    ),
    (
        LanguageItem::new(
            "md5",
            "The MD5 of a text, in hexadecimal digits. It detects accidental changes, not attacks.",
        )
        .gives("'a' | md5", "0cc175b9c0f1b6a831c399e269772661"),
        md5,
    ),
    (
        LanguageItem::new(
            "password_hash",
            "The hash of a password in the format of /etc/shadow: sha512, sha256 or blowfish (bcrypt). Without a \
             salt, it changes with every run.",
        )
        .takes("hashtype='sha512', salt=none, salt_size=none, rounds=none, ident=none")
        .example("'secret' | password_hash('sha512', 'ab12cd34')"),
        password_hash,
    ),
    (
        LanguageItem::new("sha1", "The SHA-1 of a text, in hexadecimal digits.")
            .gives("'a' | sha1", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        sha1,
    ),
    (
        LanguageItem::new("to_uuid", "A UUID (version 5) that is always the same for the same text.")
            .takes("namespace=none")
            .gives("'web1' | to_uuid | length", "36"),
        to_uuid,
    ),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(text: &str, algorithm: &str) -> Result<Value, Error> {
    let text = text.as_bytes();
    Ok(Value::from(match algorithm {
        "md5" => hex(&Md5::digest(text)),
        "sha1" => hex(&Sha1::digest(text)),
        "sha224" => hex(&Sha224::digest(text)),
        "sha256" => hex(&Sha256::digest(text)),
        "sha384" => hex(&Sha384::digest(text)),
        "sha512" => hex(&Sha512::digest(text)),
        _ => return Err(fail(format!("unknown hash algorithm {algorithm:?}"))),
    }))
}

/// `hash(hashtype='sha1')`
pub(super) fn hash(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    digest(&args.text_argument("data")?, &args.text_or("hashtype", "sha1"))
}

pub(super) fn checksum(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    digest(&args.text_argument("data")?, "sha1")
}

pub(super) fn md5(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    digest(&args.text_argument("data")?, "md5")
}

pub(super) fn sha1(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    digest(&args.text_argument("data")?, "sha1")
}

/// `password_hash(hashtype='sha512', salt=None, salt_size=None, rounds=None, ident=None)`
pub(super) fn password_hash(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    // An empty password is refused: the account would get a password that is easy to guess.
    let (password, scheme) = (args.only_text("password")?, args.text_or("hashtype", "sha512"));
    let salt = args.opt("salt").filter(|salt| !salt.is_none()).map(|salt| salt.to_string());
    let (salt_size, rounds) = (args.int("salt_size")?, args.int("rounds")?.filter(|rounds| *rounds != 0));
    let ident = args.opt("ident").filter(|ident| ident.is_true()).map(|ident| ident.to_string());
    crypt(&password, &Hashing { scheme: &scheme, salt, salt_size, rounds, ident }).map(Value::from)
}

/// `to_uuid(namespace)`: version 5, in Ansible's namespace unless another is given.
pub(super) fn to_uuid(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let string = args.text_argument("string")?;
    let namespace = args.text_or("namespace", "361E6D51-FAEC-444A-9079-341386DA8E2E").replace('-', "");
    let bytes = |i: usize| namespace.get(2 * i..2 * i + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
    let space: Option<Vec<u8>> = (0..16).map(bytes).collect();
    let space = space.filter(|_| namespace.len() == 32).ok_or_else(|| fail("the namespace must be a UUID"))?;
    let mut hash = Sha1::new();
    hash.update(&space);
    hash.update(string.as_bytes());
    let mut id: Vec<u8> = hash.finalize()[..16].to_vec();
    id[6] = id[6] & 0x0f | 0x50;
    id[8] = id[8] & 0x3f | 0x80;
    let id = hex(&id);
    Ok(Value::from(format!("{}-{}-{}-{}-{}", &id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..])))
}
