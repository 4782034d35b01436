//! The passwords that vaults are read and written with: from options and settings, or from a prompt.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, anyhow, bail};

use crate::cli::options::VaultPasswords;
use crate::cli::{CliError, ask};
use crate::settings::{Settings, list};
use crate::value::Secret;
use crate::value::vault::Keyring;

/// What something is encrypted with: the name that its header gets, unless it is the default one, and the password.
#[derive(Debug, Clone, Copy)]
pub(super) struct EncryptionIdentity<'a> {
    pub identity: Option<&'a str>,
    pub password: &'a Secret,
}

/// The passwords that the command line and the settings name.
pub(crate) fn keyring(passwords: &VaultPasswords, settings: &Settings) -> anyhow::Result<Keyring> {
    let typed = |prompt: &str| ask::ask_secret(prompt);
    let files = files(passwords, settings);
    let ids: Vec<String> =
        settings.list_setting(&list::VAULT_IDENTITY_LIST).into_iter().chain(passwords.ids.clone()).collect();
    let mut found = named(&files, &ids, settings, typed)?;
    if passwords.ask || settings.bool(&list::ASK_VAULT_PASS) {
        found.push((default_name(settings), typed("Vault password: ")?));
    }
    Ok(Keyring::new(found))
}

/// The same; without any, the person is asked.
pub(super) fn to_read(passwords: &VaultPasswords, settings: &Settings) -> anyhow::Result<Keyring> {
    let keyring = keyring(passwords, settings)?;
    if !keyring.passwords.is_empty() {
        return Ok(keyring);
    }
    let password = ask::ask_secret("Vault password: ")?;
    Ok(Keyring::new(vec![(default_name(settings), password)]))
}

/// The same for encryption: a password that is typed is typed twice, since a slip would lose the text.
pub(super) fn to_write(passwords: &VaultPasswords, settings: &Settings) -> anyhow::Result<Keyring> {
    let ids: Vec<String> =
        settings.list_setting(&list::VAULT_IDENTITY_LIST).into_iter().chain(passwords.ids.clone()).collect();
    let asked = passwords.ask || settings.bool(&list::ASK_VAULT_PASS);
    new(&files(passwords, settings), &ids, asked, settings)
}

/// Passwords to encrypt with; prompts for one if an option says so, or if none is named.
pub(super) fn new(
    files: &[std::path::PathBuf],
    ids: &[String],
    asked: bool,
    settings: &Settings,
) -> anyhow::Result<Keyring> {
    let mut found = named(files, ids, settings, |prompt| twice(&format!("New {}", uncapitalised(prompt))))?;
    if asked || found.is_empty() {
        found.push((default_name(settings), twice("New vault password: ")?));
    }
    Ok(Keyring::new(found))
}

/// The password to encrypt with: that of the name, or the only one there is.
///
/// # Errors
/// There are several and none is named, or none has that name.
pub(super) fn sealing<'a>(keyring: &'a Keyring, identity: Option<&str>) -> Result<EncryptionIdentity<'a>, CliError> {
    let names = || keyring.passwords.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let found = match (identity, keyring.passwords.as_slice()) {
        (Some(identity), all) => all
            .iter()
            .find(|(name, _)| name == identity)
            .ok_or_else(|| CliError::Asked(anyhow!("no such vault password: {identity:?}; known are {}", names())))?,
        (None, [only]) => only,
        (None, _) => {
            let words = anyhow!("several vault passwords given: {}", names());
            return Err(CliError::Asked(words.context("choose one with --encrypt-vault-id")));
        }
    };
    let (name, password) = found;
    Ok(EncryptionIdentity { identity: Some(name.as_str()).filter(|name| *name != "default"), password })
}

/// The files of passwords: those of the command line, or that of the settings.
fn files(passwords: &VaultPasswords, settings: &Settings) -> Vec<std::path::PathBuf> {
    match passwords.files.is_empty() && !passwords.ask {
        true => settings.path_setting(&list::VAULT_PASSWORD_FILE).into_iter().collect(),
        false => passwords.files.clone(),
    }
}

fn named(
    files: &[std::path::PathBuf],
    ids: &[String],
    settings: &Settings,
    typed: impl Fn(&str) -> anyhow::Result<Secret>,
) -> anyhow::Result<Vec<(String, Secret)>> {
    let mut found = Vec::new();
    for path in files {
        found.push((default_name(settings), password_of(path, "vault")?));
    }
    let around = &settings.surroundings;
    for id in ids {
        let (name, source) = match id.split_once('@') {
            Some((name, source)) => (name.to_string(), source),
            None => (default_name(settings), id.as_str()),
        };
        let password = match source {
            "prompt" | "prompt_ask_vault_pass" => typed(&format!("Vault password ({name}): "))?,
            file => password_of(&around.resolve_path(file, &around.directory), "vault")?,
        };
        found.push((name, password));
    }
    Ok(found)
}

fn twice(prompt: &str) -> anyhow::Result<Secret> {
    let password = ask::ask_secret(prompt)?;
    if password.reveal().is_empty() {
        bail!("the vault password must not be empty");
    }
    if ask::ask_secret(&format!("Confirm {}", uncapitalised(prompt)))?.reveal() != password.reveal() {
        bail!("the two passwords differ");
    }
    Ok(password)
}

fn uncapitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_lowercase().chain(rest).collect())
}

/// The name of a password that was given none.
fn default_name(settings: &Settings) -> String {
    settings.text_setting(&list::VAULT_IDENTITY).unwrap_or_else(|| "default".to_string())
}

/// The content of a password file, or what it prints if it is executable; `whose` names its purpose.
pub(crate) fn password_of(path: &Path, whose: &str) -> anyhow::Result<Secret> {
    let context = || format!("cannot read the {whose} password file {}", path.display());
    let executable = std::fs::metadata(path).with_context(context)?.permissions().mode() & 0o111 != 0;
    let text = if executable {
        let path = crate::cli::surroundings().absolute(path);
        let output = std::process::Command::new(&path).output().with_context(context)?;
        if !output.status.success() {
            bail!("{} failed ({})", path.display(), output.status);
        }
        String::from_utf8(output.stdout).with_context(context)?
    } else {
        std::fs::read_to_string(path).with_context(context)?
    };
    let password = text.trim();
    if password.is_empty() {
        bail!("the {whose} password file {} is empty", path.display());
    }
    Ok(Secret::new(password))
}
