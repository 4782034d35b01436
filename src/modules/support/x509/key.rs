//! Private keys: generated here (EC), or read in one of the usual PEM forms. A key is never shown.

use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;

use crate::modules::{Controller, Error, vault_file};
use crate::value::vault;

/// What kind of key to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyType {
    P256,
    P384,
}

/// Makes a new key.
pub(crate) fn generate(kind: KeyType) -> Result<KeyPair, Error> {
    let algorithm = match kind {
        KeyType::P256 => &rcgen::PKCS_ECDSA_P256_SHA256,
        KeyType::P384 => &rcgen::PKCS_ECDSA_P384_SHA384,
    };
    KeyPair::generate_for(algorithm).map_err(super::cannot("generate a private key"))
}

/// Reads a key of PEM text: PKCS#8, `EC PRIVATE KEY` or `RSA PRIVATE KEY`, not encrypted. `path` is for messages.
pub(crate) fn parse_private_key(text: &[u8], path: &str) -> Result<KeyPair, Error> {
    // The errors below name the file alone: words of a parser might quote what it read.
    if contains(text, b"ENCRYPTED") {
        return Err(Error::Failed {
            message: format!("the private key {path} is encrypted"),
            hint: Some("services cannot type a passphrase: provide a key without one, with file mode 0600".into()),
        });
    }
    let der = PrivateKeyDer::from_pem_slice(text)
        .map_err(|_| Error::failed(format!("{path} has no private key in PEM format")))?;
    let pkcs8 = match &der {
        PrivateKeyDer::Pkcs8(key) => key.secret_pkcs8_der().to_vec(),
        PrivateKeyDer::Pkcs1(key) => pkcs8(RSA, key.secret_pkcs1_der()),
        PrivateKeyDer::Sec1(key) => {
            let curve = [P256, P384].into_iter().find(|curve| contains(key.secret_sec1_der(), curve));
            pkcs8(&ec(curve.unwrap_or(P256)), key.secret_sec1_der())
        }
        _ => return Err(unusable(path)),
    };
    KeyPair::try_from(pkcs8).map_err(|_| unusable(path))
}

/// Reads a key as [`parse_private_key`] does, one that a vault password of this run encrypts too.
pub(crate) fn decrypt_private_key(here: &Controller<'_>, text: &[u8], path: &str) -> Result<KeyPair, Error> {
    match std::str::from_utf8(text) {
        Ok(sealed) if vault::is_vault(sealed) => {
            let plain = here.scope.keyring.decrypt_hidden(sealed).map_err(|error| Error::Failed {
                message: format!("cannot decrypt the private key {path}: {error}"),
                hint: Some("pass its password with --vault-password-file, --vault-id or --ask-vault-pass".into()),
            })?;
            parse_private_key(&plain, path)
        }
        _ => parse_private_key(text, path),
    }
}

/// The key as text that only a vault password opens; None if this run has no vault password.
pub(crate) fn sealed(here: &Controller<'_>, key: &KeyPair) -> Option<String> {
    vault_file::seal(here, key.serialize_pem().as_bytes())
}

/// Whether the key's own algorithm is RSA.
pub(crate) fn is_rsa(key: &KeyPair) -> bool {
    [&rcgen::PKCS_RSA_SHA256, &rcgen::PKCS_RSA_SHA384, &rcgen::PKCS_RSA_SHA512].contains(&key.algorithm())
}

/// The public half, as certificates have it.
pub(crate) fn public(key: &KeyPair) -> Vec<u8> {
    key.subject_public_key_info()
}

fn unusable(path: &str) -> Error {
    Error::Failed {
        message: format!("cannot use the private key {path}"),
        hint: Some("use a key of type EC (P-256 or P-384), RSA (2048 to 4096 bits) or Ed25519".into()),
    }
}

/// Object identifiers in DER.
const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];
const EC: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// rsaEncryption and its null parameter.
const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];

fn ec(curve: &[u8]) -> Vec<u8> {
    [EC, curve].concat()
}

/// The older key forms differ from PKCS#8 only in what is around them: version, algorithm, the key as octets.
fn pkcs8(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    element(0x30, &[vec![0x02, 0x01, 0x00], element(0x30, algorithm), element(0x04, key)].concat())
}

/// One DER element.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a key is shorter than 64 KiB");
    let mut der = vec![tag];
    match length.to_be_bytes() {
        [0, low] if low < 0x80 => der.push(low),
        [0, low] => der.extend([0x81, low]),
        [high, low] => der.extend([0x82, high, low]),
    }
    der.extend(content);
    der
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openssl(arguments: &[&str]) -> Vec<u8> {
        let output = std::process::Command::new("openssl").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    #[test]
    fn keys_of_every_usual_form_are_read() {
        let forms: [(&[&str], bool); 5] = [
            (&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], false),
            (&["ecparam", "-genkey", "-name", "prime256v1"], false),
            (&["ecparam", "-genkey", "-noout", "-name", "secp384r1"], false),
            (&["genrsa", "-traditional", "2048"], true),
            (&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], true),
        ];
        for (arguments, rsa) in forms {
            let key = parse_private_key(&openssl(arguments), "/k").unwrap_or_else(|e| panic!("{arguments:?}: {e}"));
            assert_eq!(is_rsa(&key), rsa, "{arguments:?}");
        }
    }

    #[test]
    fn what_is_no_key_is_named_but_never_shown() {
        let rubbish =
            parse_private_key(b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n", "/k").unwrap_err();
        assert_eq!(rubbish.to_string(), "cannot use the private key /k");
        assert!(
            parse_private_key(b"secret", "/k")
                .unwrap_err()
                .to_string()
                .ends_with("/k has no private key in PEM format")
        );
        let encrypted = openssl(&[
            "genpkey",
            "-algorithm",
            "EC",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-aes256",
            "-pass",
            "pass:x",
        ]);
        assert!(parse_private_key(&encrypted, "/k").unwrap_err().to_string().contains("is encrypted"));
    }

    #[test]
    fn a_made_key_is_read_back_as_the_same() {
        for kind in [KeyType::P256, KeyType::P384] {
            let key = generate(kind).unwrap();
            assert_eq!(public(&parse_private_key(key.serialize_pem().as_bytes(), "/k").unwrap()), public(&key));
        }
    }
}
