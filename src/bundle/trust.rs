//! Which bundles windlass installs from: those that somebody signed whom the person named.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::Error;
use super::seal::Seal;
use super::signature::{MadeSignature, key_name};
use super::signers::{RevokedKeys, Signers};
use crate::value::ProcessEnvironment;

/// Whose signature a bundle needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequiredSigners {
    /// In OpenSSH's format.
    pub signers: PathBuf,
    pub revoked: Option<PathBuf>,
    /// Only these of the signers; empty: all.
    pub principals: Vec<String>,
}

/// What is to be said of one signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureVerdict {
    /// The file's name.
    pub file: String,
    /// The kind of the key and its fingerprint; None: the signature cannot be read.
    pub key: Option<String>,
    /// Who made it, or why it does not count.
    pub who: Result<String, String>,
}

impl RequiredSigners {
    /// Judges every signature, as of now.
    ///
    /// # Errors
    /// One of the files cannot be relied on.
    pub fn judge(&self, seal: &Seal, around: &ProcessEnvironment) -> Result<Vec<SignatureVerdict>, Error> {
        self.judge_at(seal, around, Utc::now())
    }

    pub(super) fn judge_at(
        &self,
        seal: &Seal,
        around: &ProcessEnvironment,
        now: DateTime<Utc>,
    ) -> Result<Vec<SignatureVerdict>, Error> {
        let signers = Signers::read_signers(&self.signers, around)?;
        let revoked = self.revoked.as_deref().map(|path| RevokedKeys::read_revoked(path, around)).transpose()?;
        let verdict = |made: &MadeSignature| {
            made.check(&seal.text)?;
            if revoked.as_ref().is_some_and(|revoked| revoked.has(made.key())) {
                return Err("the key is revoked".to_owned());
            }
            signers.who(made.key(), &self.principals, now).map(str::to_owned)
        };
        let verdicts = seal.signatures.iter().map(|file| {
            let made = MadeSignature::parse_signature(&file.text);
            SignatureVerdict {
                file: file.name.clone(),
                key: made.as_ref().ok().map(|made| key_name(made.key())),
                who: made.and_then(|made| verdict(&made)),
            }
        });
        Ok(verdicts.collect())
    }

    /// Refuses a bundle without a good signature.
    pub(super) fn demand(&self, name: &str, seal: Option<&Seal>, around: &ProcessEnvironment) -> Result<(), Error> {
        let seal = seal.ok_or_else(|| {
            Error::new(format!("the bundle {name} has no manifest, so nobody can have signed it"))
                .hint("create the manifest with windlass bundle create, then sign it with windlass bundle sign")
        })?;
        let verdicts = self.judge(seal, around)?;
        if verdicts.iter().any(|verdict| verdict.who.is_ok()) {
            return Ok(());
        }
        let reasons = verdicts.iter().filter_map(|verdict| {
            let why = verdict.who.as_ref().err()?;
            let key = verdict.key.as_ref().map(|key| format!(" by {key}")).unwrap_or_default();
            Some(format!("{}{key}: {why}", verdict.file))
        });
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        Err(match reasons.as_str() {
            "" => Error::new(format!("the bundle {name} is not signed, and bundle_signers demands a signature"))
                .hint(format!("sign it with windlass bundle sign {name} --key FILE")),
            reasons => Error::new(format!("no signature of the bundle {name} counts ({reasons})"))
                .hint(format!("the allowed signers are in {}", self.signers.display())),
        })
    }
}

/// The keys whose signature over this manifest is right. Whose they are is not looked at.
pub(super) fn keys_of(seal: &Seal) -> Vec<String> {
    let read = seal.signatures.iter().filter_map(|file| MadeSignature::parse_signature(&file.text).ok());
    let mut keys: Vec<String> =
        read.filter(|made| made.check(&seal.text).is_ok()).map(|made| key_name(made.key())).collect();
    keys.sort();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests;
