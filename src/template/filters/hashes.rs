//! Digests, password hashes, UUIDs.

use md5::Md5;
use minijinja::{Error, State};
use rand::Rng as _;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::super::args::{Args, fail};
use super::super::environment::Filter;
use crate::value::Value;
use crate::value::doc::Word;

/// The filters of this file.
pub const FILTERS: &[(Word, Filter)] = &[
    (
        Word::new("checksum", "The SHA-1 of a text, in hexadecimal digits.")
            .gives("'a' | checksum", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        checksum,
    ),
    (
        Word::new(
            "hash",
            "The digest of a text, in hexadecimal digits: md5, sha1, sha224, sha256, sha384 \
             or sha512.",
        )
        .takes("hashtype='sha1'")
        .gives("'a' | hash('md5')", "0cc175b9c0f1b6a831c399e269772661"),
        hash,
    ),
    (
        Word::new(
            "md5",
            "The MD5 of a text, in hexadecimal digits. It protects against accidents, not \
             against people.",
        )
        .gives("'a' | md5", "0cc175b9c0f1b6a831c399e269772661"),
        md5,
    ),
    (
        Word::new(
            "password_hash",
            "The hash of a password as /etc/shadow has it, by sha512 or sha256. Give a salt, \
             or it changes with every run.",
        )
        .takes("hashtype='sha512', salt=none, salt_size=none, rounds=none")
        .example("'secret' | password_hash('sha512', 'ab12cd34')"),
        password_hash,
    ),
    (
        Word::new("sha1", "The SHA-1 of a text, in hexadecimal digits.")
            .gives("'a' | sha1", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        sha1,
    ),
    (
        Word::new("to_uuid", "A UUID (version 5) that is always the same for the same text.")
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
        _ => return Err(fail(format!("there is no hash {algorithm:?}"))),
    }))
}

/// `hash(hashtype='sha1')`
pub fn hash(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    digest(&args.text("data")?, &args.text_or("hashtype", "sha1"))
}

pub fn checksum(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    digest(&args.text("data")?, "sha1")
}

pub fn md5(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    digest(&args.text("data")?, "md5")
}

pub fn sha1(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    digest(&args.text("data")?, "sha1")
}

/// `password_hash(hashtype='sha512', salt=None, salt_size=None, rounds=None)`: SHA-256 and SHA-512 of crypt.
pub fn password_hash(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (password, kind) = (args.text("password")?, args.text_or("hashtype", "sha512"));
    let salt = args.opt("salt").filter(|salt| !salt.is_none()).map(|salt| salt.to_string());
    let (size, rounds) = (args.int("salt_size")?, args.int("rounds")?);
    salted(&password, &kind, salt, size, rounds).map(Value::from)
}

/// The crypt hash of a password; without a salt, with a random one of `size` letters (16).
pub fn salted(
    password: &str,
    kind: &str,
    salt: Option<String>,
    size: Option<i64>,
    rounds: Option<i64>,
) -> Result<String, Error> {
    let salt = salt.unwrap_or_else(|| random_salt(size.unwrap_or(16).clamp(1, 16) as usize));
    crypt(password, kind, &salt, rounds)
}

/// The crypt hash of a password. Without `rounds`, crypt's own 5000.
pub fn crypt(password: &str, kind: &str, salt: &str, rounds: Option<i64>) -> Result<String, Error> {
    let salt_ok = |c: char| c.is_ascii_alphanumeric() || "./".contains(c);
    if salt.is_empty() || salt.len() > 16 || !salt.chars().all(salt_ok) {
        return Err(fail("a salt has 1 to 16 letters, digits, dots and slashes"));
    }
    let count = u32::try_from(rounds.unwrap_or(5000)).unwrap_or(0).clamp(1000, 999_999_999);
    let params = sha_crypt::Params::new(count).map_err(|_| fail(format!("rounds cannot be {count}")))?;
    let (mark, hash) = match kind {
        "sha256" | "sha256_crypt" => {
            ('5', crypt64_256(&sha_crypt::sha256_crypt(password.as_bytes(), salt.as_bytes(), params)))
        }
        "sha512" | "sha512_crypt" => {
            ('6', crypt64_512(&sha_crypt::sha512_crypt(password.as_bytes(), salt.as_bytes(), params)))
        }
        _ => return Err(fail(format!("there is no password hash {kind:?}, take sha512 or sha256"))),
    };
    let rounds = if count == 5000 { String::new() } else { format!("rounds={count}$") };
    Ok(format!("${mark}${rounds}{salt}${hash}"))
}

/// Three bytes as four letters of crypt's alphabet, lowest bits first.
fn crypt64(bytes: [u8; 3], letters: usize, out: &mut String) {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut bits = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
    for _ in 0..letters {
        out.push(char::from(ALPHABET[(bits & 63) as usize]));
        bits >>= 6;
    }
}

/// SHA-512's bytes in crypt's order: each three are the former rotated left, plus one.
fn crypt64_512(bytes: &[u8; 64]) -> String {
    let mut out = String::new();
    let (mut a, mut b, mut c) = (0, 21, 42);
    for _ in 0..21 {
        crypt64([bytes[a], bytes[b], bytes[c]], 4, &mut out);
        (a, b, c) = (b + 1, c + 1, a + 1);
    }
    crypt64([0, 0, bytes[63]], 2, &mut out);
    out
}

/// SHA-256's bytes in crypt's order: each three are the former rotated right, plus one.
fn crypt64_256(bytes: &[u8; 32]) -> String {
    let mut out = String::new();
    let (mut a, mut b, mut c) = (0, 10, 20);
    for _ in 0..10 {
        crypt64([bytes[a], bytes[b], bytes[c]], 4, &mut out);
        (a, b, c) = (c + 1, a + 1, b + 1);
    }
    crypt64([0, bytes[31], bytes[30]], 3, &mut out);
    out
}

/// Letters and digits that crypt takes as a salt.
pub fn random_salt(size: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./";
    let mut random = rand::rng();
    (0..size).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())])).collect()
}

/// `to_uuid(namespace)`: version 5, in Ansible's namespace unless another is given.
pub fn to_uuid(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let string = args.text("string")?;
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
