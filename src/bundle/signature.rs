//! One signature over a manifest, in the format of `ssh-keygen -Y sign`.

use russh::keys::ssh_key::public::KeyData;
use russh::keys::ssh_key::{self, LineEnding, SshSig};
use russh::keys::{Algorithm, HashAlg, PublicKey};

use super::Error;

/// What the signatures of bundles are for: one over anything else, such as a commit, is none of a bundle.
pub const NAMESPACE: &str = "windlass-bundle";
/// A file of a signature is not larger than this.
pub(super) const LARGEST_SIGNATURE: u64 = 64 << 10;
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";
/// RSA keys are not smaller than this.
const SMALLEST_RSA: u32 = 2048;

/// What a key signs: the manifest's digest and the namespace, not the manifest itself.
///
/// # Errors
/// None in practice.
pub fn signed_data(manifest: &str) -> Result<Vec<u8>, Error> {
    SshSig::signed_data(NAMESPACE, HashAlg::Sha512, manifest.as_bytes()).map_err(|error| Error::new(error.to_string()))
}

/// The text of a signature file. Refused: the signature is not of this key over this manifest.
///
/// # Errors
/// As said.
pub fn signature_text(key: &PublicKey, signature: ssh_key::Signature, manifest: &str) -> Result<String, Error> {
    let cannot = |why: String| Error::new(format!("cannot sign: {why}"));
    let signature = SshSig::new(key.key_data().clone(), NAMESPACE, HashAlg::Sha512, signature);
    let text = signature.and_then(|signature| signature.to_pem(LineEnding::LF)).map_err(|e| cannot(e.to_string()))?;
    // An agent may answer anything.
    let made = MadeSignature::parse_signature(text.as_bytes()).map_err(cannot)?;
    made.check(manifest).map_err(cannot)?;
    Ok(text)
}

/// A signature that could be read.
#[derive(Debug)]
pub(super) struct MadeSignature(SshSig);

impl MadeSignature {
    /// Reads the text of one signature and nothing else.
    pub(super) fn parse_signature(text: &[u8]) -> Result<MadeSignature, String> {
        let text = std::str::from_utf8(text).map_err(|_| "it is not text")?;
        let text = text.trim_ascii();
        // The reader passes over what is around a signature; ssh-keygen would read another one of two.
        let is_one = text.starts_with(BEGIN) && text.ends_with(END) && text.matches("-----").count() == 4;
        let signature = is_one.then(|| SshSig::from_pem(text).ok()).flatten();
        signature.map(MadeSignature).ok_or_else(|| "it is not one whole SSH signature".to_owned())
    }

    pub(super) fn key(&self) -> &KeyData {
        self.0.public_key()
    }

    /// Whether the key that it names made it, for a bundle, over this manifest.
    pub(super) fn check(&self, manifest: &str) -> Result<(), String> {
        let MadeSignature(signature) = self;
        let (namespace, version) = (signature.namespace(), signature.version());
        if version != SshSig::VERSION {
            return Err(format!("its format has the version {version}"));
        }
        if namespace != NAMESPACE {
            return Err(format!("its namespace is {namespace:?}, not {NAMESPACE:?}"));
        }
        if !signature.reserved().is_empty() {
            return Err("it has more fields than this format has".to_owned());
        }
        if let Some(why) = unfit(signature.public_key()) {
            return Err(why);
        }
        if matches!(signature.algorithm(), Algorithm::Rsa { hash: None }) {
            return Err("it is made with SHA-1".to_owned());
        }
        let key = PublicKey::from(signature.public_key().clone());
        let made = key.verify(NAMESPACE, manifest.as_bytes(), signature);
        made.map_err(|_| "the key did not make it over this manifest".to_owned())
    }
}

/// Why no signature of a key counts.
pub(super) fn unfit(key: &KeyData) -> Option<String> {
    match key.algorithm() {
        Algorithm::Ed25519 | Algorithm::Ecdsa { .. } | Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256 => None,
        Algorithm::Rsa { .. } => {
            let size = key.rsa().map_or(0, |rsa| rsa.key_size());
            (size < SMALLEST_RSA).then(|| format!("RSA keys need {SMALLEST_RSA} bits, this one has {size}"))
        }
        other => Some(format!("windlass does not verify keys of the kind {other}")),
    }
}

/// `ssh-ed25519 SHA256:...`
pub(super) fn key_name(key: &KeyData) -> String {
    format!("{} {}", key.algorithm(), key.fingerprint(HashAlg::Sha256))
}
