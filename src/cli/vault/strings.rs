//! `vault encrypt-string`: texts as inline vault values, to be pasted into YAML.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;

use super::passwords::{self, EncryptionIdentity};
use super::{io, note_success};
use crate::cli::options::VaultPasswords;
use crate::cli::{CliError, ask, note};
use crate::settings::Settings;
use crate::value::vault;

/// Blanks before the lines of a vault text.
const INDENT: usize = 10;

#[derive(Debug, Args)]
pub(super) struct Strings {
    #[command(flatten)]
    passwords: VaultPasswords,
    /// Encrypt with the password of this name
    #[arg(long = "encrypt-vault-id", value_name = "NAME")]
    pub identity: Option<String>,
    /// Write to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Ask for the string and its name
    #[arg(short = 'p', long)]
    prompt: bool,
    /// With --prompt: show what is typed
    #[arg(long)]
    show_input: bool,
    /// The name of the variable; one for each string
    #[arg(short = 'n', long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// The name of the variable whose value is read from standard input
    #[arg(long, value_name = "NAME")]
    stdin_name: Option<String>,
    /// Strings; other users of this machine can see them on the command line (default: standard input)
    #[arg(value_name = "STRING")]
    strings: Vec<String>,
}

/// A text and the name of its variable.
struct Named {
    name: Option<String>,
    plain: Vec<u8>,
}

/// Prints what was given, encrypted.
pub(super) fn encrypt_strings(args: &Strings, identity: Option<&str>, settings: &Settings) -> Result<(), CliError> {
    if args.prompt && (args.stdin_name.is_some() || args.strings.iter().any(|string| string == io::STANDARD)) {
        return Err(CliError::Asked(anyhow!("cannot use --prompt together with standard input")));
    }
    let keyring = passwords::to_write(&args.passwords, settings)?;
    let sealing = passwords::sealing(&keyring, identity)?;
    let texts = texts(args)?;
    if texts.iter().any(|text| text.plain.is_empty()) {
        return Err(CliError::Asked(anyhow!("nothing to encrypt: the text is empty")));
    }
    let inline: String = texts.iter().map(|text| inline(text, sealing)).collect();
    io::write_vault_output(inline.as_bytes(), std::path::Path::new(io::STANDARD), args.output.as_deref())?;
    note_success("Encryption successful");
    Ok(())
}

fn texts(args: &Strings) -> anyhow::Result<Vec<Named>> {
    let mut found = Vec::new();
    if args.prompt {
        let name = Some(ask::ask_line("Variable name (enter for no name): ")?).filter(|name| !name.is_empty());
        let name = name.or_else(|| args.names.first().cloned());
        let text = match args.show_input {
            true => ask::ask_line("String to encrypt: ")?,
            false => ask::ask_secret("String to encrypt (hidden): ")?.reveal().to_owned(),
        };
        found.push(Named { name, plain: text.into_bytes() });
        return Ok(found);
    }
    let strings: Vec<&String> = args.strings.iter().filter(|string| *string != io::STANDARD).collect();
    let mut names = args.names.iter().cloned();
    if args.stdin_name.is_some() || strings.len() < args.strings.len() || strings.is_empty() {
        let name = args.stdin_name.clone().or_else(|| if strings.is_empty() { names.next() } else { None });
        found.push(Named { name, plain: from_stdin()? });
    }
    found.extend(strings.into_iter().map(|text| Named { name: names.next(), plain: text.clone().into_bytes() }));
    Ok(found)
}

fn from_stdin() -> anyhow::Result<Vec<u8>> {
    if std::io::stdin().is_terminal() {
        note(
            "type the text, then press Ctrl-D twice (or once after Enter, which makes the line break part of the text)",
        );
    }
    let mut plain = Vec::new();
    std::io::stdin().read_to_end(&mut plain).context("cannot read standard input")?;
    Ok(plain)
}

fn inline(text: &Named, sealing: EncryptionIdentity<'_>) -> String {
    let name = text.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let encrypted = vault::encrypt(&text.plain, sealing.password, sealing.identity);
    let lines: String = encrypted.lines().map(|line| format!("{:INDENT$}{line}\n", "")).collect();
    format!("{name}!vault |\n{lines}")
}
