//! `windlass serve user`: accounts of people.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, anyhow};
use clap::Subcommand;

use super::{access, add_audit_entry, all_rights, right};
use crate::cli::{CliError, ExitCode, ask, note, print, surroundings};
use crate::report::one_line;
use crate::serve::{AccessStore, Account, Right, hash_password, password_fault};
use crate::settings::Settings;
use crate::value::Secret;

#[derive(Debug, Subcommand)]
pub(super) enum UserAction {
    /// Create an account; asks for its password twice
    Add {
        /// At most 63 lower-case letters, digits and .-_@
        #[arg(value_name = "NAME")]
        name: String,
        /// A right and the deployment it is for, * for all: see, plan, edit, approve, stop, destroy, admin; may be given several times
        #[arg(long = "right", value_name = "RIGHT=DEPLOYMENT", value_parser = right, required = true)]
        rights: Vec<(Right, String)>,
        /// File with the password in its first line, which others cannot read; - is standard input
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
    },
    /// List accounts
    List,
    /// Set the password of an account, which ends its sessions; asks for it twice
    SetPassword {
        /// Name of the account
        #[arg(value_name = "NAME")]
        name: String,
        /// File with the password in its first line, which others cannot read; - is standard input
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
    },
    /// Replace the rights of an account, which ends its sessions
    SetRights {
        /// Name of the account
        #[arg(value_name = "NAME")]
        name: String,
        /// A right and the deployment it is for, * for all: see, plan, edit, approve, stop, destroy, admin; may be given several times
        #[arg(long = "right", value_name = "RIGHT=DEPLOYMENT", value_parser = right, required = true)]
        rights: Vec<(Right, String)>,
    },
    /// Remove an account, which ends its sessions and revokes the tokens that it created
    Remove {
        /// Name of the account
        #[arg(value_name = "NAME")]
        name: String,
    },
}

pub(super) fn change_users(action: &UserAction, settings: &Settings) -> Result<ExitCode, CliError> {
    let mut access = access(settings)?;
    match action {
        UserAction::Add { name, rights, password_file } => {
            if let Some(fault) = Account::name_fault(name) {
                return Err(anyhow!("{:?} is no name of an account: {fault}", one_line(name)).into());
            }
            let rights = all_rights(rights);
            if let Some(fault) = rights.fault() {
                return Err(anyhow!(fault).into());
            }
            let taken = || anyhow!("there is an account {name} already\nhint: windlass serve user set-password {name}");
            if password_hash(&access, name)?.is_some() {
                return Err(taken().into());
            }
            let hash = new_password(name, password_file.as_deref())?;
            if !access.create_account(name, &hash, &rights, SystemTime::now()).map_err(anyhow::Error::new)? {
                return Err(taken().into());
            }
            add_audit_entry(&mut access, "create an account", name, rights.rights_text())?;
            note(&format!("created the account {name}"));
        }
        UserAction::List => print(table(&access.accounts().map_err(anyhow::Error::new)?))?,
        UserAction::SetPassword { name, password_file } => {
            if password_hash(&access, name)?.is_none() {
                return Err(no_account(name));
            }
            let hash = new_password(name, password_file.as_deref())?;
            if !access.set_password(name, &hash, None, None, SystemTime::now()).map_err(anyhow::Error::new)? {
                return Err(no_account(name));
            }
            add_audit_entry(&mut access, "set a password", name, String::new())?;
            note(&format!("set the password of {name}, and ended its sessions"));
        }
        UserAction::SetRights { name, rights } => {
            let rights = all_rights(rights);
            if let Some(fault) = rights.fault() {
                return Err(anyhow!(fault).into());
            }
            if !access.set_rights(name, &rights).map_err(anyhow::Error::new)? {
                return Err(no_account(name));
            }
            add_audit_entry(&mut access, "set the rights of an account", name, rights.rights_text())?;
            note(&format!("set the rights of {name}, and ended its sessions"));
        }
        UserAction::Remove { name } => {
            if !access.remove_account(name).map_err(anyhow::Error::new)? {
                return Err(no_account(name));
            }
            add_audit_entry(&mut access, "remove an account", name, String::new())?;
            note(&format!("removed the account {name}, its sessions and its tokens"));
        }
    }
    Ok(ExitCode::Ok)
}

fn no_account(name: &str) -> CliError {
    anyhow!("there is no account {:?}\nhint: windlass serve user list", one_line(name)).into()
}

fn password_hash(access: &AccessStore, name: &str) -> Result<Option<String>, CliError> {
    Ok(access.password_hash(name).map_err(anyhow::Error::new)?)
}

/// The hash of a password that was read from a file, or typed twice.
fn new_password(name: &str, file: Option<&Path>) -> Result<String, CliError> {
    let password = match file {
        Some(path) => password_of(path)?,
        None => {
            let prompt = format!("Password for {name} (at least 15 characters): ");
            let password = ask::ask_secret(&prompt)
                .map_err(|error| anyhow!("{error:#}\nhint: --password-file FILE reads it from a file"))?;
            // What cannot be used need not be typed again.
            check_password(name, &password)?;
            if ask::ask_secret("The same again: ")?.reveal() != password.reveal() {
                return Err(anyhow!("the passwords differ").into());
            }
            password
        }
    };
    check_password(name, &password)?;
    Ok(hash_password(password.reveal()).map_err(|error| anyhow!("cannot hash the password: {error}"))?)
}

fn check_password(name: &str, password: &Secret) -> Result<(), CliError> {
    match password_fault(name, password.reveal()) {
        Some(fault) => Err(anyhow!(fault).into()),
        None => Ok(()),
    }
}

/// The first line of a file, or of standard input.
fn password_of(path: &Path) -> Result<Secret, CliError> {
    if path == Path::new("-") {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).context("cannot read the password from standard input")?;
        return Ok(Secret::new(line.trim_end_matches(['\n', '\r'])));
    }
    let path = surroundings().absolute(path);
    let failed = || format!("cannot read the password from {}", path.display());
    let file = std::fs::File::open(&path).with_context(failed)?;
    let found = file.metadata().with_context(failed)?;
    if found.is_file() && found.mode() & 0o077 != 0 {
        let shown = path.display();
        return Err(anyhow!("{shown}: other users can read it\nhint: chmod 600 {shown}").into());
    }
    let text = std::io::read_to_string(file).with_context(failed)?;
    Ok(Secret::new(text.lines().next().unwrap_or_default()))
}

fn table(accounts: &[Account]) -> String {
    let day = |at: SystemTime| chrono::DateTime::<chrono::Local>::from(at).format("%Y-%m-%d").to_string();
    let row = |account: &Account| {
        let login = account.last_login.map_or_else(|| "never".to_owned(), day);
        let rights = account.rights.rights_text();
        format!("{:<20}  {:<12}  {:<10}  {}\n", account.name, day(account.password_set), login, one_line(&rights))
    };
    let head = format!("{:<20}  {:<12}  {:<10}  RIGHTS\n", "NAME", "PASSWORD SET", "LAST LOGIN");
    std::iter::once(head).chain(accounts.iter().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_help_of_right_lists_every_right() {
        let names = Right::EVERY.map(Right::right_name).join(", ");
        let mut serve = crate::cli::Cli::command().find_subcommand("serve").expect("serve").clone();
        for path in [["user", "add"], ["user", "set-rights"], ["token", "create"]] {
            let command = path.iter().fold(&mut serve, |command, name| command.find_subcommand_mut(name).expect(name));
            let argument =
                command.get_arguments().find(|argument| argument.get_long() == Some("right")).expect("right");
            let help = argument.get_help().expect("a help").to_string();
            assert!(help.contains(&format!("{names};")), "{path:?}: {help}");
        }
    }
}
