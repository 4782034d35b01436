//! `windlass serve`: the API and the page; and who may use them.

mod users;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand, ValueEnum};

use super::deployment::etcd::read_recipients;
use super::options::PassedOn;
use super::{CliError, ExitCode, interrupt, launch, note, print, recording, reporting, surroundings};
use crate::deployment::lock::holder::user_and_machine;
use crate::launch::options;
use crate::report::{one_line, plain_json};
use crate::runs;
use crate::serve::{
    ALL, AccessStore, AuditEntry, LINK_AGE, Listening, Right, Rights, SealingKey, ServeOptions, TlsFiles, Token,
    host_fault, new_token, openapi_document, passed_listener, read_webhooks, send_test_message, serve,
};
use crate::settings::Settings;
use crate::value::SecretTexts;
use users::{UserAction, change_users};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ServeArgs {
    #[command(subcommand)]
    action: Option<ServeAction>,
    /// Directory with the files of deployments, one KarmadaDeployment in each
    #[arg(short = 'd', long, value_name = "DIRECTORY", default_value = ".")]
    deployments: PathBuf,
    /// Directory of documents that come through the API or the page (default: documents in the directory of the store of runs)
    #[arg(long, value_name = "DIRECTORY")]
    documents: Option<PathBuf>,
    /// Directory for backups of etcd, which is created: below it, each deployment has a directory of its own (default: none, so that nobody
    /// can take backups by the API or the page)
    #[arg(long, value_name = "DIRECTORY")]
    backups: Option<PathBuf>,
    /// How many backups of each deployment to keep; older ones are removed after a new one is complete (default: all)
    #[arg(long, value_name = "N", requires = "backups", value_parser = clap::value_parser!(u16).range(1..))]
    keep_backups: Option<u16>,
    /// A file with public keys of age: backups are encrypted, so that only the owners of their secret keys can restore them (default: they are
    /// not encrypted)
    #[arg(long, value_name = "FILE", requires = "backups")]
    backup_recipients: Option<PathBuf>,
    /// File with the key for SSH keys and passwords that come through the API or the page: 32 random bytes in base64, mode 0600 (default:
    /// windlass-credentials-key in $CREDENTIALS_DIRECTORY, a credential of the systemd unit)
    #[arg(long, value_name = "FILE")]
    credentials_key: Option<PathBuf>,
    /// Address to listen on; one that other machines reach needs TLS and an account
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7480")]
    listen: SocketAddr,
    /// File with the certificate for HTTPS, and those that signed it, in PEM format; read again when it changes, and at SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// File with the private key of the certificate, in PEM format, which others cannot read
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Name by which browsers reach the server, with a port if they use another one; the names of the certificate need not be given
    #[arg(long = "host", value_name = "NAME[:PORT]", value_parser = host)]
    hosts: Vec<String>,
    /// How many runs may be under way at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    max_runs: u16,
    /// Refuse the approval of a plan by the person who made it
    #[arg(long)]
    author_may_not_approve: bool,
    /// File with webhooks, which get messages about runs and plans, in YAML format; nobody but its owner may read it
    #[arg(long, value_name = "FILE")]
    webhooks: Option<PathBuf>,
    #[command(flatten)]
    passed_on: PassedOn,
}

#[derive(Debug, Subcommand)]
enum ServeAction {
    /// Print a link with which a person logs in once, within 15 minutes
    Link {
        /// Address that the server listens on; without TLS, it must prove there that it has this store of runs
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7480")]
        listen: SocketAddr,
        /// Address of the page as the person reaches it, such as https://ops-1:7480
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        /// Name of the person, for the audit log (default: your user name)
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Create, list, change and remove accounts, with which people log in
    User {
        #[command(subcommand)]
        action: UserAction,
    },
    /// Create, list and revoke tokens, with which programs log in
    Token {
        #[command(subcommand)]
        action: TokenAction,
    },
    /// Print the audit log, oldest entries first; exit code 2 if an entry was changed or is missing
    Audit {
        /// Output format
        #[arg(short = 'o', long, value_enum, default_value_t = AuditFormat::Table, value_name = "FORMAT")]
        output: AuditFormat,
    },
    /// Send a test message to the webhooks of a file, or to one of them; exit code 1 if one does not receive it
    TestWebhooks {
        /// File with webhooks, as for `windlass serve --webhooks`
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Name of a webhook (default: all)
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Print the description of the API: OpenAPI 3.1, as JSON
    Openapi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AuditFormat {
    Table,
    /// One object a line
    Json,
}

#[derive(Debug, Subcommand)]
enum TokenAction {
    /// Create a token and print it; it cannot be printed again
    Create {
        /// At most 63 lower-case letters, digits and dashes
        #[arg(value_name = "NAME")]
        name: String,
        /// A right and the deployment it is for, * for all: see, plan, edit, approve, stop, destroy, admin; may be given several times
        #[arg(long = "right", value_name = "RIGHT=DEPLOYMENT", value_parser = right, required = true)]
        rights: Vec<(Right, String)>,
        /// For how many days it is good, from 1 to 366
        #[arg(long, value_name = "N", default_value_t = 90)]
        days: u32,
    },
    /// List tokens, without their secrets
    List,
    /// Revoke a token
    Revoke {
        /// Name of the token
        #[arg(value_name = "NAME")]
        name: String,
    },
}

fn right(text: &str) -> Result<(Right, String), String> {
    let (right, deployment) =
        text.split_once('=').ok_or_else(|| format!("which deployment? {text}=NAME, or {text}={ALL} for all"))?;
    let names: Vec<&str> = Right::EVERY.into_iter().map(Right::right_name).collect();
    let known = Right::right_named(right).ok_or_else(|| format!("{right:?} is none of {}", names.join(", ")))?;
    match deployment {
        "" => Err(format!("which deployment? {right}=NAME, or {right}={ALL} for all")),
        name => Ok((known, name.to_owned())),
    }
}

fn all_rights(words: &[(Right, String)]) -> Rights {
    let mut all = Rights::default();
    for (right, deployment) in words {
        all.0.entry(deployment.clone()).or_default().insert(*right);
    }
    all
}

fn host(text: &str) -> Result<String, String> {
    match host_fault(text) {
        Some(fault) => Err(fault),
        None => Ok(text.to_owned()),
    }
}

/// Serves, or changes who may use it.
pub(super) fn run_serve(args: &ServeArgs) -> Result<ExitCode, CliError> {
    let settings = super::settings()?;
    match &args.action {
        None => start_server(args, &settings),
        Some(ServeAction::Link { listen, url, name }) => {
            let person = name.clone().unwrap_or_else(user_name);
            check_person(&person)?;
            let mut access = access(&settings)?;
            let url = url.clone().unwrap_or_else(|| format!("http://{listen}"));
            // With TLS, the person's browser checks whose server it is.
            let is_secure = url.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"));
            if !is_secure {
                let key = access.proof_key().map_err(anyhow::Error::new)?;
                key.ask_server(*listen).map_err(anyhow::Error::new)?;
            }
            let secret = access.create_link(&person, SystemTime::now()).map_err(anyhow::Error::new)?;
            add_audit_entry(&mut access, "create a link", &person, String::new())?;
            print(format!("{}\n", link(&url, &secret)))?;
            Ok(ExitCode::Ok)
        }
        Some(ServeAction::User { action }) => change_users(action, &settings),
        Some(ServeAction::Token { action }) => change_tokens(action, &settings),
        Some(ServeAction::Audit { output }) => print_audit_log(*output, &settings),
        Some(ServeAction::TestWebhooks { file, name }) => test_webhooks(file, name.as_deref()),
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
fn link(url: &str, secret: &str) -> String {
    format!("{}/#link={secret}", url.trim_end_matches('/'))
}

/// Serves until SIGTERM or Ctrl-C. Runs that it has started continue.
fn start_server(args: &ServeArgs, settings: &Settings) -> Result<ExitCode, CliError> {
    let tls = args.tls_cert.as_ref().zip(args.tls_key.as_ref());
    let socket = passed_listener(surroundings(), args.listen);
    let options = ServeOptions {
        listen: args.listen,
        socket: socket.map_err(|why| {
            anyhow!(
                "cannot listen on {}: {why}\nhint: --listen and the socket unit must have the same address",
                args.listen
            )
        })?,
        tls: tls.map(|(certificate, key)| TlsFiles {
            certificate: surroundings().absolute(certificate),
            key: surroundings().absolute(key),
        }),
        hosts: args.hosts.clone(),
        deployments: surroundings().absolute(&args.deployments),
        documents: match &args.documents {
            Some(documents) => surroundings().absolute(documents),
            None => store_directory(settings)?.join("documents"),
        },
        backups: args.backups.as_ref().map(|backups| surroundings().absolute(backups)),
        keep_backups: args.keep_backups,
        backup_recipients: match &args.backup_recipients {
            // One that cannot be used is reported now, and not by each backup.
            Some(file) => read_recipients(file).map(|_| Some(surroundings().absolute(file)))?,
            None => None,
        },
        credentials_key: SealingKey::find(
            args.credentials_key.as_deref(),
            surroundings().variable("CREDENTIALS_DIRECTORY").map(Path::new),
        )
        .map_err(anyhow::Error::new)?,
        limits: options::allowed(settings)?,
        directory: store_directory(settings)?,
        program: std::env::current_exe().context("cannot find this program")?,
        process_options: args.passed_on.as_options(),
        max_runs: args.max_runs.into(),
        author_may_not_approve: args.author_may_not_approve,
        webhooks: match &args.webhooks {
            Some(file) => read_webhooks(&surroundings().absolute(file), surroundings()).map_err(anyhow::Error::new)?,
            None => Vec::new(),
        },
    };
    reporting::log_parts("windlass=info", SecretTexts::default(), None);
    launch::wait(async || {
        let stop = interrupt::asked_to_end()?;
        let listening = |server: &Listening<'_>| {
            note(&format!("listening on {}, for the deployments in {}", server.url, args.deployments.display()));
            if let Some(fingerprint) = &server.fingerprint {
                note(&format!("SHA-256 of its certificate: {fingerprint}"));
            }
            // A log that others read is no place for it.
            if std::io::stderr().is_terminal() {
                let minutes = LINK_AGE.as_secs() / 60;
                note(&format!("open this link within {minutes} minutes to log in: {}", link(server.url, server.link)));
            } else {
                note("to log in, run: windlass serve link");
            }
        };
        serve(options, &user_name(), listening, stop).await.map_err(anyhow::Error::new)?;
        Ok(ExitCode::Ok)
    })
}

fn test_webhooks(file: &Path, name: Option<&str>) -> Result<ExitCode, CliError> {
    let webhooks = read_webhooks(&surroundings().absolute(file), surroundings()).map_err(anyhow::Error::new)?;
    let wanted: Vec<_> = webhooks.iter().filter(|webhook| name.is_none_or(|name| webhook.name == name)).collect();
    if wanted.is_empty() {
        return Err(match name {
            Some(name) => anyhow!("{} has no webhook {name:?}", file.display()),
            None => anyhow!("{} has no webhooks", file.display()),
        }
        .into());
    }
    launch::wait(async || {
        let mut all_arrived = true;
        for webhook in wanted {
            let line = match send_test_message(webhook).await {
                Ok(()) => format!("{}: delivered\n", webhook.name),
                Err(why) => {
                    all_arrived = false;
                    format!("{}: not delivered: {why}\n", webhook.name)
                }
            };
            print(one_line(line.trim_end()).into_owned() + "\n")?;
        }
        Ok(if all_arrived { ExitCode::Ok } else { ExitCode::Error })
    })
}

fn change_tokens(action: &TokenAction, settings: &Settings) -> Result<ExitCode, CliError> {
    let mut access = access(settings)?;
    match action {
        TokenAction::Create { name, rights, days } => {
            let token = new_token(name, all_rights(rights), *days, SystemTime::now()).map_err(anyhow::Error::msg)?;
            let secret = access.create_token(&token).map_err(anyhow::Error::new)?;
            let secret = secret.ok_or_else(|| anyhow!("there is a token {name} already"))?;
            let detail = format!("{} for {days} days", token.rights.rights_text());
            add_audit_entry(&mut access, "create a token", name, detail)?;
            print(format!("{secret}\n"))?;
        }
        TokenAction::List => print(token_table(&access.tokens().map_err(anyhow::Error::new)?))?,
        TokenAction::Revoke { name } => {
            if !access.delete_token(name).map_err(anyhow::Error::new)? {
                return Err(anyhow!("there is no token {name:?}\nhint: windlass serve token list").into());
            }
            add_audit_entry(&mut access, "revoke a token", name, String::new())?;
            note(&format!("revoked the token {name}"));
        }
    }
    Ok(ExitCode::Ok)
}

/// Refuses a name that could be taken for that of a token, or that hides something.
fn check_person(name: &str) -> Result<(), CliError> {
    let is_name = !name.trim().is_empty() && name.chars().count() <= 64 && !name.starts_with("token ");
    let is_plain = name.chars().all(|letter| letter.is_alphanumeric() || " .-_@'".contains(letter));
    match is_name && is_plain {
        true => Ok(()),
        false => Err(anyhow!(
            "{:?} is no name of a person: use at most 64 letters, digits, spaces and .-_@', without \"token \" at the start",
            one_line(name)
        )
        .into()),
    }
}

/// Writes down what a person did on this machine.
fn add_audit_entry(access: &mut AccessStore, action: &str, target: &str, detail: String) -> Result<(), CliError> {
    let entry = AuditEntry {
        sequence: 0,
        time: runs::timestamp_text(SystemTime::now()),
        who: user_and_machine(surroundings()),
        from: "the command line".to_owned(),
        action: action.to_owned(),
        target: target.to_owned(),
        detail,
        outcome: "done".to_owned(),
    };
    Ok(access.add_audit_entry(entry).map_err(anyhow::Error::new)?)
}

fn token_table(tokens: &[Token]) -> String {
    let day = |at: SystemTime| chrono::DateTime::<chrono::Local>::from(at).format("%Y-%m-%d").to_string();
    let row = |token: &Token| {
        let rights = token.rights.rights_text();
        let used = token.last_used.map_or_else(|| "never".to_owned(), day);
        format!("{:<20}  {:<10}  {:<10}  {}\n", token.name, day(token.ends), used, one_line(&rights))
    };
    let head = format!("{:<20}  {:<10}  {:<10}  RIGHTS\n", "NAME", "ENDS", "LAST USED");
    std::iter::once(head).chain(tokens.iter().map(row)).collect()
}

fn print_audit_log(output: AuditFormat, settings: &Settings) -> Result<ExitCode, CliError> {
    let access = access(settings)?;
    let entries = access.audit_entries(None, usize::MAX).map_err(anyhow::Error::new)?;
    for entry in entries.iter().rev() {
        if output == AuditFormat::Json {
            print(format!("{}\n", plain_json(&serde_json::json!(entry).to_string())))?;
            continue;
        }
        let about = [&entry.target, &entry.detail].map(String::as_str);
        let about = about.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
        let line = format!(
            "{:>5}  {}  {}  {}  {}  {}: {about}",
            entry.sequence, entry.time, entry.from, entry.who, entry.outcome, entry.action
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
