//! Keys of age, with which backups are encrypted and decrypted.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;

use crate::cli::{CliError, working_directory};
use crate::deployment::backups::{Identities, Recipients};

/// For whom backups are encrypted.
#[derive(Debug, Args)]
pub(super) struct RecipientArgs {
    /// Encrypt the backup, so that only the owner of the secret key of this public key of age can restore it; may be given several times
    #[arg(long, requires = "places", value_name = "AGE1...")]
    recipient: Vec<String>,
    /// A file with public keys of age, one per line; may be given several times
    #[arg(long, requires = "places", value_name = "FILE")]
    recipients_file: Vec<PathBuf>,
}

/// With what backups are decrypted.
#[derive(Debug, Args)]
pub(super) struct IdentityArgs {
    /// A file with secret keys of age, as age-keygen writes it, to decrypt backups; may be given several times
    #[arg(long, value_name = "FILE")]
    identity: Vec<PathBuf>,
}

impl RecipientArgs {
    pub(super) fn recipients(&self) -> Result<Recipients, CliError> {
        let mut all = Recipients::default();
        for key in &self.recipient {
            // The key is not repeated: somebody may take the secret one for it.
            let parsed = Recipients::from_lines(key).map_err(|why| anyhow!("--recipient: {why}"))?;
            all = all.and(parsed);
        }
        for file in &self.recipients_file {
            all = all.and(read_recipients(file)?);
        }
        Ok(all)
    }
}

/// Reads a file with public keys.
pub(in crate::cli) fn read_recipients(file: &Path) -> Result<Recipients, CliError> {
    read_keys(file, Recipients::from_lines)
}

impl IdentityArgs {
    pub(super) fn identities(&self) -> Result<Identities, CliError> {
        let mut all = Identities::default();
        for file in &self.identity {
            all = all.and(read_keys(file, Identities::from_lines)?);
        }
        Ok(all)
    }
}

/// In bytes.
const LARGEST: u64 = 1 << 20;

fn read_keys<T>(file: &Path, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, CliError> {
    let name = file.display();
    if file.to_string_lossy().to_ascii_uppercase().starts_with("AGE-SECRET-KEY-") {
        return Err(
            anyhow!("that is a secret key itself, which others may see now; give the name of a file with it").into()
        );
    }
    let mut text = String::new();
    let open = std::fs::File::open(working_directory()?.join(file));
    let read = open.and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    read.map_err(|error| anyhow!("cannot read {name}: {error}"))?;
    if text.len() as u64 > LARGEST {
        return Err(anyhow!("{name} is too large for a file of keys").into());
    }
    Ok(parse(text.trim_start_matches('\u{feff}')).map_err(|why| anyhow!("{name}: {why}"))?)
}
