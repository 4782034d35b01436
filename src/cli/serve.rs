//! `windlass serve`: the API and the page; and who may use them.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use super::{CliError, ExitCode, launch, note, print, recording, reporting, surroundings};
use crate::launch::options;
use crate::report::one_line;
use crate::runs;
use crate::serve::{
    ALL, AccessStore, LINK_AGE, Right, Rights, ServeOptions, Token, new_token, openapi_document, serve,
};
use crate::settings::Settings;
use crate::value::SecretTexts;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ServeArgs {
    #[command(subcommand)]
    action: Option<ServeAction>,
    /// Directory with the files of deployments, one KarmadaDeployment in each
    #[arg(short = 'd', long, value_name = "DIRECTORY", default_value = ".")]
    deployments: PathBuf,
    /// Address to listen on: one of this machine alone
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7480")]
    listen: SocketAddr,
    /// How many runs may be under way at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    max_runs: u16,
    /// Variables of all deployments: KEY=VALUE, JSON or YAML text, or @FILE
    #[arg(short = 'e', long = "extra-vars", value_name = "VARS")]
    extra_vars: Vec<String>,
    /// Directory with etcd.yml, karmada.yml and the others (default: those in windlass)
    #[arg(long, value_name = "DIRECTORY")]
    playbooks: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum ServeAction {
    /// Print a link with which a person logs in once, within 15 minutes
    Link {
        /// Address that the server listens on
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7480")]
        listen: SocketAddr,
        /// Name of the person, for the audit log (default: your user name)
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Create, list and revoke tokens, with which programs log in
    Token {
        #[command(subcommand)]
        action: TokenAction,
    },
    /// Print the audit log, oldest entries first; exit code 2 if an entry was changed or is missing
    Audit,
    /// Print the description of the API: OpenAPI 3.1, as JSON
    Openapi,
}

#[derive(Debug, Subcommand)]
enum TokenAction {
    /// Create a token and print it; it cannot be printed again
    Create {
        #[arg(value_name = "NAME")]
        name: String,
        /// A right and the deployment it is for, * for all: see, plan, approve, stop, admin; may be given several times
        #[arg(long = "right", value_name = "RIGHT=DEPLOYMENT", value_parser = right, required = true)]
        rights: Vec<(Right, String)>,
        /// For how many days it is good
        #[arg(long, value_name = "N", default_value_t = 90)]
        days: u32,
    },
    /// List tokens, without their secrets
    List,
    /// Revoke a token
    Revoke {
        #[arg(value_name = "NAME")]
        name: String,
    },
}

fn right(text: &str) -> Result<(Right, String), String> {
    let (right, deployment) = text.split_once('=').unwrap_or((text, ALL));
    let names: Vec<&str> = Right::EVERY.into_iter().map(Right::right_name).collect();
    let known = Right::right_named(right).ok_or_else(|| format!("{right:?} is none of {}", names.join(", ")))?;
    match deployment {
        "" => Err("the name of the deployment is missing: RIGHT=DEPLOYMENT, or RIGHT=* for all".to_owned()),
        name => Ok((known, name.to_owned())),
    }
}

/// Serves, or changes who may use it.
pub(super) fn run_serve(args: &ServeArgs) -> Result<ExitCode, CliError> {
    let settings = super::settings()?;
    match &args.action {
        None => start_server(args, &settings),
        Some(ServeAction::Link { listen, name }) => {
            let person = name.clone().unwrap_or_else(user_name);
            let secret = access(&settings)?.create_link(&person, SystemTime::now()).map_err(anyhow::Error::new)?;
            print(format!("{}\n", link(*listen, &secret)))?;
            Ok(ExitCode::Ok)
        }
        Some(ServeAction::Token { action }) => change_tokens(action, &settings),
        Some(ServeAction::Audit) => print_audit_log(&settings),
        Some(ServeAction::Openapi) => {
            print(format!("{:#}\n", openapi_document()))?;
            Ok(ExitCode::Ok)
        }
    }
}

fn store_directory(settings: &Settings) -> Result<PathBuf, CliError> {
    let directory = recording::store_directory(settings).ok_or(runs::Error::NoHome).map_err(anyhow::Error::new)?;
    Ok(settings.surroundings.absolute(&directory))
}

fn access(settings: &Settings) -> Result<AccessStore, CliError> {
    Ok(AccessStore::open_access(&store_directory(settings)?).map_err(anyhow::Error::new)?)
}

fn user_name() -> String {
    surroundings().variable("USER").unwrap_or("person").to_owned()
}

/// The secret is in the fragment, which no browser sends.
fn link(address: SocketAddr, secret: &str) -> String {
    format!("http://{address}/#link={secret}")
}

/// Serves until SIGTERM or Ctrl-C. Runs that it has started continue.
fn start_server(args: &ServeArgs, settings: &Settings) -> Result<ExitCode, CliError> {
    let options = ServeOptions {
        listen: args.listen,
        deployments: surroundings().absolute(&args.deployments),
        limits: options::allowed(settings)?,
        directory: store_directory(settings)?,
        program: std::env::current_exe().context("cannot find this program")?,
        process_options: {
            let playbooks = args.playbooks.iter().map(|path| ("--playbooks", path.display().to_string()));
            let vars = args.extra_vars.iter().map(|vars| ("--extra-vars", vars.clone()));
            playbooks.chain(vars).map(|(option, value)| format!("{option}={value}")).collect()
        },
        max_runs: args.max_runs.into(),
    };
    reporting::log_parts("windlass=info", SecretTexts::default(), None);
    launch::wait(async || {
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
        let stop = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let listening = |address: SocketAddr, secret: &str| {
            note(&format!("listening on http://{address}, for the deployments in {}", args.deployments.display()));
            // A log that others read is no place for it.
            if std::io::stderr().is_terminal() {
                let minutes = LINK_AGE.as_secs() / 60;
                note(&format!("open this link within {minutes} minutes to log in: {}", link(address, secret)));
            } else {
                note("windlass serve link prints a link to log in");
            }
        };
        serve(options, &user_name(), listening, stop).await.map_err(anyhow::Error::new)?;
        Ok(ExitCode::Ok)
    })
}

fn change_tokens(action: &TokenAction, settings: &Settings) -> Result<ExitCode, CliError> {
    let mut access = access(settings)?;
    match action {
        TokenAction::Create { name, rights, days } => {
            let mut all = Rights::default();
            for (right, deployment) in rights {
                all.0.entry(deployment.clone()).or_default().insert(*right);
            }
            let token = new_token(name, all, *days, SystemTime::now()).map_err(anyhow::Error::msg)?;
            let secret = access.create_token(&token).map_err(anyhow::Error::new)?;
            let secret = secret.ok_or_else(|| anyhow!("there is a token {name} already"))?;
            print(format!("{secret}\n"))?;
        }
        TokenAction::List => print(token_table(&access.tokens().map_err(anyhow::Error::new)?))?,
        TokenAction::Revoke { name } => {
            if !access.delete_token(name).map_err(anyhow::Error::new)? {
                return Err(anyhow!("there is no token {name:?}\nhint: windlass serve token list").into());
            }
            note(&format!("revoked the token {name}"));
        }
    }
    Ok(ExitCode::Ok)
}

fn token_table(tokens: &[Token]) -> String {
    let day = |at: SystemTime| chrono::DateTime::<chrono::Local>::from(at).format("%Y-%m-%d").to_string();
    let row = |token: &Token| {
        let rights = token.rights.0.iter().flat_map(|(deployment, rights)| {
            rights.iter().map(move |right| format!("{}={deployment}", right.right_name()))
        });
        let rights = rights.collect::<Vec<_>>().join(" ");
        let used = token.last_used.map_or_else(|| "never".to_owned(), day);
        format!("{:<20}  {:<10}  {:<10}  {}\n", token.name, day(token.ends), used, one_line(&rights))
    };
    let head = format!("{:<20}  {:<10}  {:<10}  RIGHTS\n", "NAME", "ENDS", "LAST USED");
    std::iter::once(head).chain(tokens.iter().map(row)).collect()
}

fn print_audit_log(settings: &Settings) -> Result<ExitCode, CliError> {
    let access = access(settings)?;
    let entries = access.audit_entries(None, usize::MAX).map_err(anyhow::Error::new)?;
    for entry in entries.iter().rev() {
        let line = format!(
            "{} {} {} from {}: {} {} ({})",
            entry.sequence, entry.time, entry.who, entry.from, entry.action, entry.target, entry.outcome
        );
        print(format!("{}\n", one_line(&line)))?;
    }
    match access.first_changed_audit_entry().map_err(anyhow::Error::new)? {
        None => Ok(ExitCode::Ok),
        Some(sequence) => {
            note(&format!("error: entry {sequence} is not as it was written, or entries before it are missing"));
            Ok(ExitCode::Failed)
        }
    }
}
