//! `windlass vault`, and `ansible-vault`: files and strings in Ansible's vault format; and the passwords that other
//! sub-commands read it with.

mod editor;
mod io;
mod passwords;
mod strings;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use passwords::{EncryptionIdentity, sealing};
pub(super) use passwords::{keyring, password_of};

use super::files::{self, Access};
use super::options::VaultPasswords;
use super::{CliError, ExitCode};
use crate::settings::{Settings, list};
use crate::value::vault::{self, Keyring};

#[derive(Debug, Args)]
pub(super) struct VaultArgs {
    #[command(subcommand)]
    command: VaultCommand,
}

#[derive(Debug, Subcommand)]
enum VaultCommand {
    /// Write a new file in an editor, and encrypt it
    Create(Create),
    /// Decrypt files in place
    Decrypt(Files),
    /// Change encrypted files in an editor
    Edit(Edited),
    /// Print the plain text of files
    View(ViewArgs),
    /// Encrypt files in place
    Encrypt(Encrypted),
    /// Print strings as inline vault values
    #[command(alias = "encrypt_string")]
    EncryptString(strings::Strings),
    /// Re-encrypt files with another password
    Rekey(RekeyArgs),
}

#[derive(Debug, Args)]
struct Create {
    #[command(flatten)]
    passwords: VaultPasswords,
    /// Encrypt with the password of this name
    #[arg(long = "encrypt-vault-id", value_name = "NAME")]
    identity: Option<String>,
    /// Start the editor even without a terminal
    #[arg(long)]
    skip_tty_check: bool,
    /// The file
    #[arg(value_name = "FILE")]
    path: PathBuf,
}

#[derive(Debug, Args)]
struct Files {
    #[command(flatten)]
    passwords: VaultPasswords,
    /// Write to this file instead, - for standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Files (default: standard input)
    #[arg(value_name = "FILE")]
    paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct Encrypted {
    #[command(flatten)]
    files: Files,
    /// Encrypt with the password of this name
    #[arg(long = "encrypt-vault-id", value_name = "NAME")]
    identity: Option<String>,
}

#[derive(Debug, Args)]
struct Edited {
    #[command(flatten)]
    passwords: VaultPasswords,
    /// Encrypt with the password of this name (default: the one that the file was encrypted with)
    #[arg(long = "encrypt-vault-id", value_name = "NAME")]
    identity: Option<String>,
    /// Files
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct ViewArgs {
    #[command(flatten)]
    passwords: VaultPasswords,
    /// Files
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct RekeyArgs {
    #[command(flatten)]
    passwords: VaultPasswords,
    /// Encrypt with the password of this name
    #[arg(long = "encrypt-vault-id", value_name = "NAME")]
    identity: Option<String>,
    /// File with the new password, or an executable that prints it
    #[arg(long, value_name = "FILE", conflicts_with = "new_vault_id")]
    new_vault_password_file: Option<PathBuf>,
    /// The new password, named: NAME@FILE, or NAME@prompt
    #[arg(long, value_name = "NAME@SOURCE")]
    new_vault_id: Option<String>,
    /// Files
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
}

/// Runs the sub-command.
pub(super) fn run_vault_command(args: &VaultArgs) -> Result<ExitCode, CliError> {
    let settings = super::settings()?;
    let identity =
        |option: &Option<String>| option.clone().or_else(|| settings.text_setting(&list::VAULT_ENCRYPT_IDENTITY));
    match &args.command {
        VaultCommand::Create(args) => create(args, identity(&args.identity).as_deref(), &settings)?,
        VaultCommand::Encrypt(args) => encrypt(&args.files, identity(&args.identity).as_deref(), &settings)?,
        VaultCommand::Decrypt(args) => decrypt(args, &settings)?,
        VaultCommand::View(args) => {
            let keyring = passwords::to_read(&args.passwords, &settings)?;
            for path in &args.paths {
                super::print(decrypted(path, &keyring)?)?;
            }
        }
        VaultCommand::Edit(args) => edit(args, &settings)?,
        VaultCommand::EncryptString(args) => {
            strings::encrypt_strings(args, identity(&args.identity).as_deref(), &settings)?
        }
        VaultCommand::Rekey(args) => rekey(args, identity(&args.identity).as_deref(), &settings)?,
    }
    Ok(ExitCode::Ok)
}

fn create(args: &Create, identity: Option<&str>, settings: &Settings) -> Result<(), CliError> {
    let Create { passwords, path, .. } = args;
    if !args.skip_tty_check && !std::io::stdout().is_terminal() {
        return Err(CliError::Asked(anyhow!(
            "cannot start the editor: no terminal (--skip-tty-check starts it anyway)"
        )));
    }
    let keyring = passwords::to_write(passwords, settings)?;
    let sealing = sealing(&keyring, identity)?;
    if path.exists() {
        return Err(anyhow!("{} already exists (vault edit changes it)", path.display()).into());
    }
    let plain = editor::edited(&editor_of(settings), path, b"")?;
    Ok(files::create(path, vault::encrypt(&plain, sealing.password, sealing.identity).as_bytes())?)
}

fn encrypt(args: &Files, identity: Option<&str>, settings: &Settings) -> Result<(), CliError> {
    let keyring = passwords::to_write(&args.passwords, settings)?;
    let EncryptionIdentity { identity, password } = sealing(&keyring, identity)?;
    for path in places(args)? {
        let plain = io::read_vault_input(path)?;
        if std::str::from_utf8(&plain).is_ok_and(vault::is_vault) {
            return Err(anyhow!("{} is encrypted already", path.display()).into());
        }
        io::write_vault_output(vault::encrypt(&plain, password, identity).as_bytes(), path, args.output.as_deref())?;
    }
    note_success("Encryption successful");
    Ok(())
}

fn decrypt(args: &Files, settings: &Settings) -> Result<(), CliError> {
    let keyring = passwords::to_read(&args.passwords, settings)?;
    for path in places(args)? {
        io::write_vault_output(&decrypted(path, &keyring)?, path, args.output.as_deref())?;
    }
    note_success("Decryption successful");
    Ok(())
}

/// The files that were named, or standard input.
fn places(args: &Files) -> Result<Vec<&Path>, CliError> {
    if args.output.is_some() && args.paths.len() > 1 {
        return Err(CliError::Asked(anyhow!("--output takes one file, not {}", args.paths.len())));
    }
    let standard = || vec![Path::new(io::STANDARD)];
    Ok(if args.paths.is_empty() { standard() } else { args.paths.iter().map(PathBuf::as_path).collect() })
}

/// What is not changed is not written.
fn edit(args: &Edited, settings: &Settings) -> Result<(), CliError> {
    let keyring = passwords::to_read(&args.passwords, settings)?;
    let chosen = args.identity.as_deref().map(|identity| sealing(&keyring, Some(identity))).transpose()?;
    for path in &args.paths {
        let text = text_of(path)?;
        let opened = keyring.decrypt_text(&text).with_context(|| format!("cannot decrypt {}", path.display()))?;
        let before = EncryptionIdentity { identity: opened.identity, password: opened.password };
        let plain = editor::edited(&editor_of(settings), path, &opened.plain)?;
        if plain != opened.plain {
            let EncryptionIdentity { identity, password } = chosen.unwrap_or(before);
            files::replace(path, vault::encrypt(&plain, password, identity).as_bytes(), Access::AsBefore)?;
        }
    }
    Ok(())
}

/// All files are decrypted before the first one is written: a password that does not fit leaves all as they were.
fn rekey(args: &RekeyArgs, identity: Option<&str>, settings: &Settings) -> Result<(), CliError> {
    let keyring = passwords::to_read(&args.passwords, settings)?;
    let plain: Vec<Vec<u8>> = args.paths.iter().map(|path| decrypted(path, &keyring)).collect::<Result<_, _>>()?;
    let known = identity.map(|_| settings.list_setting(&list::VAULT_IDENTITY_LIST)).unwrap_or_default();
    let ids: Vec<String> = known.into_iter().chain(args.new_vault_id.clone()).collect();
    let files: Vec<PathBuf> = args.new_vault_password_file.iter().cloned().collect();
    let new = passwords::new(&files, &ids, args.passwords.ask, settings)?;
    let EncryptionIdentity { identity, password } = sealing(&new, identity)?;
    for (path, plain) in args.paths.iter().zip(plain) {
        files::replace(path, vault::encrypt(&plain, password, identity).as_bytes(), Access::AsBefore)?;
    }
    note_success("Rekey successful");
    Ok(())
}

fn text_of(path: &Path) -> anyhow::Result<String> {
    let content = io::read_vault_input(path)?;
    String::from_utf8(content).map_err(|_| anyhow!("cannot decrypt {}: {}", path.display(), vault::Error::NotVault))
}

fn decrypted(path: &Path, keyring: &Keyring) -> anyhow::Result<Vec<u8>> {
    keyring.decrypt(&text_of(path)?).with_context(|| format!("cannot decrypt {}", path.display()))
}

fn editor_of(settings: &Settings) -> String {
    settings.text_setting(&list::EDITOR).unwrap_or_else(|| "vi".to_owned())
}

/// Said to a person only: what is printed may go into a file.
fn note_success(words: &str) {
    if std::io::stdout().is_terminal() {
        super::note(words);
    }
}
