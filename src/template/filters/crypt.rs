//! Hashes of passwords as `/etc/shadow` has them: SHA-256 and SHA-512 of crypt, and bcrypt, with the rounds that Ansible
//! takes.

use base64::Engine as _;
use base64::alphabet::BCRYPT;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use minijinja::Error;
use rand::RngExt as _;

use super::super::conversions::fail;

/// How a password is hashed.
#[derive(Debug, Default)]
pub struct Hashing<'a> {
    /// As `vars_prompt` and `lookup('password')` name it; the filter leaves `_crypt` out.
    pub scheme: &'a str,
    /// None, or nothing in it: a random one.
    pub salt: Option<String>,
    pub salt_size: Option<i64>,
    pub rounds: Option<i64>,
    /// bcrypt's version.
    pub ident: Option<String>,
}

/// The hash of a password.
pub fn crypt(password: &str, hashing: &Hashing<'_>) -> Result<String, Error> {
    let salt = hashing.salt.clone().filter(|salt| !salt.is_empty());
    match hashing.scheme {
        "sha256" | "sha256_crypt" => sha(password, hashing, salt, false),
        "sha512" | "sha512_crypt" => sha(password, hashing, salt, true),
        "blowfish" | "bcrypt" => bcrypt(password, hashing, salt),
        "md5" | "md5_crypt" => Err(fail("md5 does not protect a password: use sha512, sha256 or bcrypt")),
        other => Err(fail(format!("unknown password hash {other:?}: use sha512, sha256 or bcrypt"))),
    }
}

/// Checks a number of rounds.
fn within(rounds: i64, least: u32, most: u32) -> Result<u32, Error> {
    let count = u32::try_from(rounds).ok().filter(|count| (least..=most).contains(count));
    count.ok_or_else(|| fail(format!("rounds must be from {least} to {most}, not {rounds}")))
}

fn sha(password: &str, hashing: &Hashing<'_>, salt: Option<String>, long: bool) -> Result<String, Error> {
    let usual = if long { 656_000 } else { 535_000 };
    let count = within(hashing.rounds.unwrap_or(usual), 1000, 999_999_999)?;
    let size = hashing.salt_size.filter(|size| *size != 0).unwrap_or(16);
    let salt = match salt {
        Some(salt) => salt,
        None => match usize::try_from(size) {
            Ok(size @ 1..=16) => random_salt(size),
            _ => return Err(fail(format!("salt_size must be from 1 to 16, not {size}"))),
        },
    };
    if salt.len() > 16 || !salt.chars().all(is_letter) {
        return Err(fail("a salt must have 1 to 16 letters, digits, dots and slashes"));
    }
    let params = sha_crypt::Params::new(count).map_err(|_| fail(format!("rounds must not be {count}")))?;
    let (password, plain) = (password.as_bytes(), salt.as_bytes());
    let (mark, hash) = match long {
        true => (6, crypt64_512(&sha_crypt::sha512_crypt(password, plain, params))),
        false => (5, crypt64_256(&sha_crypt::sha256_crypt(password, plain, params))),
    };
    // crypt's own number is not written.
    let rounds = if count == 5000 { String::new() } else { format!("rounds={count}$") };
    Ok(format!("${mark}${rounds}{salt}${hash}"))
}

fn bcrypt(password: &str, hashing: &Hashing<'_>, salt: Option<String>) -> Result<String, Error> {
    // 22 letters say 132 bits, of which four are not used.
    const LENGTH: usize = 22;
    if hashing.salt_size.is_some_and(|size| size != 0 && size != LENGTH as i64) {
        return Err(fail("salt_size of bcrypt must be 22"));
    }
    let cost = within(hashing.rounds.unwrap_or(12), 4, 31)?;
    let version = match hashing.ident.as_deref().unwrap_or("2b") {
        "2a" => bcrypt::Version::TwoA,
        "2b" => bcrypt::Version::TwoB,
        "2y" => bcrypt::Version::TwoY,
        other => return Err(fail(format!("unknown bcrypt ident {other:?}: use 2b, 2a or 2y"))),
    };
    if password.contains('\0') {
        return Err(fail("a password for bcrypt must not contain a NUL character"));
    }
    let salt = salt.unwrap_or_else(|| random_salt(LENGTH));
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone);
    let bytes = GeneralPurpose::new(&BCRYPT, config).decode(&salt).ok();
    let bytes: Option<[u8; 16]> = bytes.filter(|_| salt.len() == LENGTH).and_then(|bytes| bytes.try_into().ok());
    let bytes = bytes.ok_or_else(|| fail("a salt for bcrypt must have 22 letters, digits, dots and slashes"))?;
    let hashed = bcrypt::hash_with_salt(password, cost, bytes);
    hashed.map(|parts| parts.format_for_version(version)).map_err(|error| fail(format!("bcrypt: {error}")))
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || "./".contains(c)
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
pub(crate) fn random_salt(size: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./";
    let mut random = rand::rng();
    (0..size).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())])).collect()
}
