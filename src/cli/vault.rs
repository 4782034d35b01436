//! `windlass vault`: files and strings in Ansible's vault format; and the passwords that other sub-commands read it with.

use std::io::{IsTerminal, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};

use super::options::VaultPasswords;
use super::{ExitCode, Failure, ask};
use crate::settings::{Settings, Surroundings, list};
use crate::value::Secret;
use crate::value::vault::{self, Keyring};

#[derive(Debug, Args)]
pub struct VaultArgs {
    #[command(subcommand)]
    command: VaultCommand,
}

#[derive(Debug, Subcommand)]
enum VaultCommand {
    /// Encrypt files in place
    Encrypt(Files),
    /// Decrypt files in place
    Decrypt(Files),
    /// Print the plain text of a file
    View(Files),
    /// Print a string (from standard input) as an inline vault value
    #[command(alias = "encrypt_string")]
    EncryptString(Text),
}

#[derive(Debug, Args)]
struct Files {
    #[command(flatten)]
    passwords: VaultPasswords,
    /// Encrypt under this name (format 1.2)
    #[arg(long = "encrypt-vault-id", value_name = "NAME")]
    identity: Option<String>,
    /// Files
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct Text {
    #[command(flatten)]
    passwords: VaultPasswords,
    /// Encrypt under this name (format 1.2)
    #[arg(long = "encrypt-vault-id", value_name = "NAME")]
    identity: Option<String>,
    /// The name of the variable
    #[arg(short = 'n', long = "name", value_name = "NAME")]
    name: Option<String>,
}

/// Runs the sub-command.
pub fn run(args: &VaultArgs) -> Result<ExitCode, Failure> {
    let settings = super::settings()?;
    let identity = |option: &Option<String>| option.clone().or_else(|| settings.text(&list::VAULT_ENCRYPT_IDENTITY));
    match &args.command {
        VaultCommand::Encrypt(files) => {
            let keyring = with_new_password(&files.passwords, &settings)?;
            let identity = identity(&files.identity);
            let password = to_encrypt_with(&keyring, identity.as_deref())?;
            for path in &files.paths {
                let plain = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
                if std::str::from_utf8(&plain).is_ok_and(vault::is_vault) {
                    return Err(anyhow!("{} is encrypted already", path.display()).into());
                }
                replace(path, vault::encrypt(&plain, password, identity.as_deref()).as_bytes())?;
            }
        }
        VaultCommand::Decrypt(files) => {
            let keyring = with_question(&files.passwords, &settings)?;
            for path in &files.paths {
                replace(path, &decrypted(path, &keyring)?)?;
            }
        }
        VaultCommand::View(files) => {
            let keyring = with_question(&files.passwords, &settings)?;
            for path in &files.paths {
                super::print(decrypted(path, &keyring)?)?;
            }
        }
        VaultCommand::EncryptString(text) => {
            let keyring = with_new_password(&text.passwords, &settings)?;
            let identity = identity(&text.identity);
            let password = to_encrypt_with(&keyring, identity.as_deref())?;
            let mut plain = Vec::new();
            if std::io::stdin().is_terminal() {
                super::note(
                    "type the text, then Ctrl-D twice (after a line's end: once; the line's end belongs to the text)",
                );
            }
            std::io::stdin().read_to_end(&mut plain).context("cannot read standard input")?;
            super::print(inline(&vault::encrypt(&plain, password, identity.as_deref()), text.name.as_deref()))?;
        }
    }
    Ok(ExitCode::Ok)
}

fn inline(encrypted: &str, name: Option<&str>) -> String {
    let lines: Vec<String> = encrypted.lines().map(|line| format!("  {line}")).collect();
    let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
    format!("{name}!vault |\n{}\n", lines.join("\n"))
}

fn decrypted(path: &Path, keyring: &Keyring) -> anyhow::Result<Vec<u8>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    keyring.decrypt(&text).with_context(|| format!("cannot decrypt {}", path.display()))
}

/// Puts new content in a file's place, whole or not at all, readable by its owner alone.
fn replace(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    // A symbolic link stays one: what it leads to gets the new content.
    let path = &path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(content)?;
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o600))?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

fn to_encrypt_with<'a>(keyring: &'a Keyring, identity: Option<&str>) -> anyhow::Result<&'a Secret> {
    let found = match identity {
        Some(identity) => keyring.passwords.iter().find(|(name, _)| name == identity).or(keyring.passwords.first()),
        None => keyring.passwords.first(),
    };
    found.map(|(_, password)| password).context("no vault password was given")
}

/// The passwords that were named; without any, the person is asked.
fn with_question(passwords: &VaultPasswords, settings: &Settings) -> anyhow::Result<Keyring> {
    let keyring = keyring(passwords, settings)?;
    if !keyring.passwords.is_empty() {
        return Ok(keyring);
    }
    let password = ask::secret("Vault password: ")?;
    Ok(Keyring::new(vec![(default_name(settings), password)]))
}

/// The same for encryption: a password that is typed is typed twice, since a slip would lose the text.
fn with_new_password(passwords: &VaultPasswords, settings: &Settings) -> anyhow::Result<Keyring> {
    let keyring = keyring(passwords, settings)?;
    if !keyring.passwords.is_empty() {
        return Ok(keyring);
    }
    let password = ask::secret("New vault password: ")?;
    if password.reveal().is_empty() {
        bail!("an empty vault password protects nothing");
    }
    if ask::secret("Confirm new vault password: ")?.reveal() != password.reveal() {
        bail!("the two passwords differ");
    }
    Ok(Keyring::new(vec![(default_name(settings), password)]))
}

/// The name of a password that was given none.
fn default_name(settings: &Settings) -> String {
    settings.text(&list::VAULT_IDENTITY).unwrap_or_else(|| "default".to_string())
}

/// The passwords that the command line and the settings name.
pub fn keyring(passwords: &VaultPasswords, settings: &Settings) -> anyhow::Result<Keyring> {
    let mut found = Vec::new();
    let by_setting = || settings.path(&list::VAULT_PASSWORD_FILE);
    let asked = passwords.ask || settings.bool(&list::ASK_VAULT_PASS);
    let files = match passwords.files.is_empty() && !passwords.ask {
        true => by_setting().into_iter().collect(),
        false => passwords.files.clone(),
    };
    for path in &files {
        found.push((default_name(settings), password_of(path, "vault")?));
    }
    let around = Surroundings::of_process();
    for id in settings.list(&list::VAULT_IDENTITY_LIST).iter().chain(&passwords.ids) {
        let (name, source) = match id.split_once('@') {
            Some((name, source)) => (name.to_string(), source),
            None => (default_name(settings), id.as_str()),
        };
        let password = match source {
            "prompt" | "prompt_ask_vault_pass" => ask::secret(&format!("Vault password ({name}): "))?,
            file => password_of(&around.path(file, &around.directory), "vault")?,
        };
        found.push((name, password));
    }
    if asked {
        found.push((default_name(settings), ask::secret("Vault password: ")?));
    }
    Ok(Keyring::new(found))
}

/// The content of a password file, or what it prints if it is executable; `whose` says what it lets in to.
pub fn password_of(path: &Path, whose: &str) -> anyhow::Result<Secret> {
    let context = || format!("cannot read the {whose} password file {}", path.display());
    let executable = std::fs::metadata(path).with_context(context)?.permissions().mode() & 0o111 != 0;
    let text = if executable {
        let path = std::path::absolute(path).with_context(context)?;
        let output = std::process::Command::new(&path).output().with_context(context)?;
        if !output.status.success() {
            bail!("{} ended with {}", path.display(), output.status);
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
