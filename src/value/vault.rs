//! Ansible's vault format, versions 1.1 and 1.2 (AES-256-CTR, HMAC-SHA256, PBKDF2-SHA256 with 10,000 rounds).

use std::io::Read as _;
use std::path::Path;

use aes::Aes256;
use aes::cipher::{KeyIvInit, StreamCipher};
use hmac::{Hmac, KeyInit, Mac};
use rand::Rng as _;
use sha2::Sha256;

use super::{Secret, SecretTexts};

/// What files are decrypted with: the vault passwords of this run, an identity (`default` if none was named) and its password
/// each.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    pub passwords: Vec<(String, Secret)>,
    /// What is written is not encrypted with the first password: others use it, who do not have the password.
    pub writes_plain: bool,
    /// What was decrypted with it, and the passwords: reports and logs do not show them.
    pub hidden: SecretTexts,
}

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("not a vault text: it does not start with $ANSIBLE_VAULT;1.1;AES256 or $ANSIBLE_VAULT;1.2;AES256;ID")]
    NotVault,
    #[error("no vault password was given")]
    NoPassword,
    #[error("none of the vault passwords matches")]
    WrongPassword,
    #[error("the vault text is damaged")]
    Damaged,
}

/// A vault text that was decrypted.
#[derive(Debug)]
pub struct DecryptedText<'a> {
    pub plain: Vec<u8>,
    /// The name in its header; None: it has none (version 1.1).
    pub identity: Option<&'a str>,
    pub password: &'a Secret,
}

/// Whether a text is a vault text.
pub fn is_vault(text: &str) -> bool {
    text.trim_start().starts_with("$ANSIBLE_VAULT;")
}

/// Whether a file begins as vault files do.
pub fn is_vault_file(path: &Path) -> std::io::Result<bool> {
    let mut start = [0; 15];
    match std::fs::File::open(path)?.read_exact(&mut start) {
        Ok(()) => Ok(&start == b"$ANSIBLE_VAULT;"),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

impl Keyring {
    /// A keyring of these identities and passwords.
    pub fn new(passwords: Vec<(String, Secret)>) -> Self {
        let hidden = SecretTexts::default();
        passwords.iter().for_each(|(_, password)| hidden.add_secret(password.reveal()));
        Keyring { passwords, hidden, writes_plain: false }
    }

    /// Decrypts a vault text; tries the password of the text's own identity first.
    pub fn decrypt(&self, text: &str) -> Result<Vec<u8>, Error> {
        self.decrypt_text(text).map(|opened| opened.plain)
    }

    /// As [`Keyring::decrypt`]; what comes out is hidden from then on. For texts that are secret as a whole: of a file of
    /// variables only the values are.
    pub fn decrypt_hidden(&self, text: &str) -> Result<Vec<u8>, Error> {
        let plain = self.decrypt(text)?;
        std::str::from_utf8(&plain).into_iter().for_each(|plain| self.hidden.add_secret(plain));
        Ok(plain)
    }

    /// As [`Keyring::decrypt`]; also returns the vault ID of the text.
    pub fn decrypt_text<'a>(&'a self, text: &'a str) -> Result<DecryptedText<'a>, Error> {
        if self.passwords.is_empty() && is_vault(text) {
            return Err(Error::NoPassword);
        }
        let sealed = VaultEnvelope::parse_envelope(text)?;
        let own = |entry: &&(String, Secret)| sealed.identity == Some(entry.0.as_str());
        let first = self.passwords.iter().filter(own);
        let others = self.passwords.iter().filter(|entry| !own(entry));
        for (_, password) in first.chain(others) {
            if let Some(plain) = sealed.open(password)? {
                return Ok(DecryptedText { plain, identity: sealed.identity, password });
            }
        }
        Err(Error::WrongPassword)
    }
}

/// Encrypts to version 1.1, or 1.2 when an identity is given. The result ends with a newline.
pub fn encrypt(plain: &[u8], password: &Secret, identity: Option<&str>) -> String {
    let mut salt = [0; 32];
    rand::rng().fill_bytes(&mut salt);
    encrypt_salted(plain, password, identity, &salt)
}

/// As [`encrypt`], with a given salt: the same text, password and salt give the same result.
pub fn encrypt_salted(plain: &[u8], password: &Secret, identity: Option<&str>, salt: &[u8]) -> String {
    let keys = Keys::derive(password, salt);
    // PKCS #7 of a 16 byte block, though a stream cipher needs none: the format has it.
    let padding = 16 - plain.len() % 16;
    let mut text = plain.to_vec();
    text.resize(plain.len() + padding, u8::try_from(padding).expect("at most 16"));
    keys.apply(&mut text);
    let mac = keys.mac(&text).finalize().into_bytes();
    let body = to_hex(format!("{}\n{}\n{}", to_hex(salt), to_hex(&mac), to_hex(&text)).as_bytes());
    let mut sealed = match identity {
        Some(identity) => format!("$ANSIBLE_VAULT;1.2;AES256;{identity}\n"),
        None => String::from("$ANSIBLE_VAULT;1.1;AES256\n"),
    };
    for line in body.as_bytes().chunks(80) {
        sealed.extend(line.iter().map(|byte| char::from(*byte)));
        sealed.push('\n');
    }
    sealed
}

/// A vault text taken apart.
struct VaultEnvelope<'a> {
    identity: Option<&'a str>,
    salt: Vec<u8>,
    mac: Vec<u8>,
    text: Vec<u8>,
}

impl<'a> VaultEnvelope<'a> {
    fn parse_envelope(text: &'a str) -> Result<Self, Error> {
        let (header, body) = text.trim().split_once('\n').ok_or(Error::NotVault)?;
        let mut words = header.trim().split(';');
        let head = [words.next(), words.next(), words.next()];
        let identity = match head {
            [Some("$ANSIBLE_VAULT"), Some("1.1"), Some("AES256")] => None,
            [Some("$ANSIBLE_VAULT"), Some("1.2"), Some("AES256")] => words.next(),
            _ => return Err(Error::NotVault),
        };
        let body: Vec<u8> = body.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let inner = from_hex(&body)?;
        let mut parts = inner.split(|byte| *byte == b'\n').map(from_hex);
        let mut part = || parts.next().ok_or(Error::Damaged)?;
        Ok(VaultEnvelope { identity, salt: part()?, mac: part()?, text: part()? })
    }

    /// The plain bytes; None: another password.
    fn open(&self, password: &Secret) -> Result<Option<Vec<u8>>, Error> {
        let keys = Keys::derive(password, &self.salt);
        if keys.mac(&self.text).verify_slice(&self.mac).is_err() {
            return Ok(None);
        }
        let mut plain = self.text.clone();
        keys.apply(&mut plain);
        let padding = usize::from(*plain.last().ok_or(Error::Damaged)?);
        let end = plain.len().checked_sub(padding).filter(|_| (1..=16).contains(&padding)).ok_or(Error::Damaged)?;
        plain.truncate(end);
        Ok(Some(plain))
    }
}

/// 32 bytes of cipher key, 32 of HMAC key, 16 of counter.
struct Keys([u8; 80]);

impl Keys {
    fn derive(password: &Secret, salt: &[u8]) -> Self {
        let mut keys = [0; 80];
        pbkdf2::pbkdf2_hmac::<Sha256>(password.reveal().as_bytes(), salt, 10_000, &mut keys);
        Keys(keys)
    }

    fn apply(&self, text: &mut [u8]) {
        ctr::Ctr128BE::<Aes256>::new_from_slices(&self.0[..32], &self.0[64..])
            .expect("the lengths are those of the cipher")
            .apply_keystream(text);
    }

    fn mac(&self, text: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0[32..64]).expect("HMAC takes keys of any length");
        mac.update(text);
        mac
    }
}

fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes any text");
        text
    })
}

fn from_hex(text: &[u8]) -> Result<Vec<u8>, Error> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok()).ok_or(Error::Damaged);
    if !text.len().is_multiple_of(2) {
        return Err(Error::Damaged);
    }
    text.chunks(2).map(|pair| Ok(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring(password: &str) -> Keyring {
        Keyring::new(vec![("default".into(), Secret::new(password))])
    }

    const PLAIN: &str = "key: \"wörld {{ x }}\"\nlist: [1, 2]\n";

    // Both made by ansible-vault of ansible-core 2.19.14 with the password "geheim".
    const V11: &str = "$ANSIBLE_VAULT;1.1;AES256\n\
        35663564376534613536653061353963396133663763643164303038333332623463376564383065\n\
        3336386238373564623562306564616132643834376364310a363038623766323866646265316430\n\
        64663237636231326366613264613563633233393666343635616433303432303032666330383433\n\
        3639646663656664630a383861623436313937636635643738316461313530643738316234303338\n\
        64663165363436616264653634353334316264383135656539666135303064636438646639633730\n\
        6535336537386338396262323064666265306535373637353630";
    const V12: &str = "$ANSIBLE_VAULT;1.2;AES256;prod\n\
        39656164393032353565313938356232373235643761333435343334656333383663376364653862\n\
        6532393161336362373131313339623132393637386666650a373039363533396165333830303630\n\
        61346263366261656534343637623731666637643265653034313236313765333931376530343663\n\
        3330336663653064300a633534353362353035313662643032363830343365316535393136343665\n\
        62363337616139323164356436653063306162306534333364653937323333336330373931346162\n\
        3634393337393530643466343438636236356561663665373963";

    #[test]
    fn texts_made_by_ansible_vault_are_read() {
        for sealed in [V11, V12] {
            assert_eq!(keyring("geheim").decrypt(sealed).unwrap(), PLAIN.as_bytes());
            let indented = sealed.replace('\n', "\n    ");
            assert_eq!(keyring("geheim").decrypt(&indented).unwrap(), PLAIN.as_bytes());
        }
    }

    #[test]
    fn what_was_encrypted_is_read_again_and_has_the_shape_of_the_format() {
        for length in [0, 1, 15, 16, 17, 1000] {
            let plain = vec![b'x'; length];
            let sealed = encrypt(&plain, &Secret::new("p"), Some("prod"));
            assert!(sealed.starts_with("$ANSIBLE_VAULT;1.2;AES256;prod\n"));
            assert!(sealed.lines().skip(1).all(|line| line.len() <= 80));
            assert_eq!(keyring("p").decrypt(&sealed).unwrap(), plain);
        }
    }

    #[test]
    fn wrong_and_missing_passwords_and_damage_are_distinguished() {
        assert_eq!(keyring("x").decrypt(V11), Err(Error::WrongPassword));
        assert_eq!(Keyring::default().decrypt(V11), Err(Error::NoPassword));
        assert_eq!(keyring("x").decrypt("$ANSIBLE_VAULT;1.1;AES256\n123"), Err(Error::Damaged));
        assert_eq!(keyring("x").decrypt("$ANSIBLE_VAULT;9;AES256\n12"), Err(Error::NotVault));
    }

    #[test]
    fn the_password_of_the_identity_is_found_among_others() {
        let mut ring = keyring("wrong");
        ring.passwords.push(("prod".into(), Secret::new("geheim")));
        assert_eq!(ring.decrypt(V12).unwrap(), PLAIN.as_bytes());
    }
}
