//! `windlass serve`: an API under `/api/v1`, and the page. It reads the store of runs and the files of deployments, and does all work in
//! processes of its own, which are the commands that a person would type. [`routes`] is the list of all that the API can do.

mod access;
mod activation;
mod answers;
mod attempts;
mod backup_directory;
mod backups;
mod call;
mod check;
mod complaints;
mod connections;
mod credentials;
mod deployments;
mod dispatch;
mod documents;
mod documents_read;
mod file_state;
mod follow;
mod guard;
mod hashing;
mod host_keys;
mod hosts;
mod looks;
mod openapi;
mod page;
mod passwords;
mod places;
mod plan_kinds;
mod plans;
mod problem;
mod processes;
mod proof;
mod refusals;
mod repeats;
mod rights;
mod routes;
mod runs;
mod sealed;
mod sessions;
mod stalls;
mod stores;
mod tasks;
mod tls;
mod tokens;
mod turns;
mod verb;
mod webhooks;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::net::TcpListener;

pub use access::{AccessStore, Account, AuditEntry, LINK_AGE, Token};
pub use activation::passed_listener;
pub use hosts::host_fault;
pub use openapi::openapi_document;
pub use passwords::{hash_password, password_fault};
pub use proof::{ProofError, ProofKey};
pub use rights::{ALL, Right, Rights};
pub use sealed::{SealError, SealingKey};
pub use tls::TlsFiles;
pub use tokens::new_token;
pub use webhooks::{Webhook, WebhookError, read_webhooks, send_test_message};

use crate::resource::ForeignResourceLimits;
use crate::value::mutex::Mutex;
use problem::Problem;
use processes::Processes;
use sealed::CredentialStore;
use stores::Stores;

/// How `windlass serve` was started.
pub struct ServeOptions {
    /// Without TLS and an account, a loopback address.
    pub listen: SocketAddr,
    /// One that listens there already.
    pub socket: Option<std::net::TcpListener>,
    pub tls: Option<TlsFiles>,
    /// Further names of this server, with a port or without.
    pub hosts: Vec<String>,
    /// The directory with the files of deployments.
    pub deployments: PathBuf,
    /// The directory of documents that come through the API.
    pub documents: PathBuf,
    /// The directory of backups of etcd, one in it for each deployment. None: there can be none.
    pub backups: Option<PathBuf>,
    /// How many backups of each deployment are kept. None: all.
    pub keep_backups: Option<u16>,
    /// A file with public keys of age, for which backups are encrypted. None: they are not.
    pub backup_recipients: Option<PathBuf>,
    /// What credentials that come through the API are sealed with. None: there can be none.
    pub credentials_key: Option<SealingKey>,
    /// Of documents, and of files that say they are from an API.
    pub limits: ForeignResourceLimits,
    /// The directory of the store of runs, and of what the server keeps.
    pub directory: PathBuf,
    /// This program.
    pub program: PathBuf,
    /// Options of every process that it starts.
    pub process_options: Vec<String>,
    /// How many runs may be under way at once.
    pub max_runs: usize,
    /// A plan needs the approval of another person than the one who made it.
    pub author_may_not_approve: bool,
    /// Who gets messages.
    pub webhooks: Vec<Webhook>,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error(
        "{address} can be reached from other machines, which needs TLS\n\
         hint: give --tls-cert and --tls-key, or listen on 127.0.0.1 and forward its port with SSH"
    )]
    NoTls { address: SocketAddr },
    #[error(
        "{address} can be reached from other machines, which needs an account to log in with\n\
         hint: windlass serve user add NAME --right admin='*' creates one"
    )]
    NoAccount { address: SocketAddr },
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
    #[error("cannot use {}", path.display())]
    Directory { path: PathBuf, source: std::io::Error },
    #[error("{}: another user owns it or can write to it", path.display())]
    NotOwn { path: PathBuf },
    #[error(
        "--documents {} and --deployments {} must be apart: a document that came through the API would be read as a person's file\n\
         hint: give --documents a directory of its own, neither inside the other nor around it", documents.display(), deployments.display()
    )]
    Overlap { documents: PathBuf, deployments: PathBuf },
    #[error(transparent)]
    Store(#[from] crate::runs::Error),
}

/// What all requests share.
struct Server {
    deployments: PathBuf,
    documents: PathBuf,
    documents_read: documents_read::DocumentsRead,
    backups: Option<PathBuf>,
    keep_backups: Option<u16>,
    backup_recipients: Option<PathBuf>,
    verified: Arc<backups::Verified>,
    credentials: CredentialStore,
    limits: ForeignResourceLimits,
    stores: Stores,
    access: Mutex<AccessStore>,
    processes: Processes,
    follow: follow::Followers,
    repeats: repeats::Repeats,
    ended_tasks: tasks::EndedTasks,
    looks: looks::Looks,
    plans: plans::Plans,
    refusals: refusals::Refusals,
    attempts: attempts::Attempts,
    hashing: hashing::Hashing,
    scans: host_keys::Scans,
    turns: turns::Turns,
    author_may_not_approve: bool,
    webhooks: Vec<Webhook>,
    hosts: hosts::Hosts,
    address: SocketAddr,
    proof_key: ProofKey,
}

impl Server {
    /// Opens what it needs, and ends the sessions of the server before it.
    fn open(
        options: ServeOptions,
        address: SocketAddr,
        tls: Option<Arc<tls::ServerTls>>,
    ) -> Result<Arc<Server>, ServeError> {
        let directory = |source| ServeError::Directory { path: options.deployments.clone(), source };
        let deployments = options.deployments.canonicalize().map_err(directory)?;
        if let Some(path) = crate::value::ownership::written_by_others(&deployments).map_err(directory)? {
            return Err(ServeError::NotOwn { path });
        }
        let documents = documents::prepare_documents(&options.documents, &deployments)?;
        let backups = options.backups.as_deref().map(backup_directory::prepare_backups).transpose()?;
        let mut access = AccessStore::open_access(&options.directory)?;
        access.end_all_sessions()?;
        let names: Vec<&str> = options.webhooks.iter().map(|webhook| webhook.name.as_str()).collect();
        access.keep_webhooks(&names, SystemTime::now())?;
        Ok(Arc::new(Server {
            deployments,
            proof_key: access.proof_key()?,
            access: Mutex::new(access),
            address,
            documents,
            documents_read: documents_read::DocumentsRead::default(),
            backups,
            keep_backups: options.keep_backups,
            backup_recipients: options.backup_recipients,
            verified: Arc::default(),
            credentials: CredentialStore::new(options.directory.join("credentials"), options.credentials_key),
            stores: Stores::open_stores(&options.directory)?,
            processes: Processes::new(options.program, options.process_options, &options.directory, options.max_runs),
            limits: options.limits,
            follow: follow::Followers::default(),
            repeats: repeats::Repeats::default(),
            ended_tasks: tasks::EndedTasks::default(),
            looks: looks::Looks::default(),
            plans: plans::Plans::default(),
            refusals: refusals::Refusals::default(),
            attempts: attempts::Attempts::default(),
            hashing: hashing::Hashing::default(),
            scans: host_keys::Scans::default(),
            turns: turns::Turns::default(),
            author_may_not_approve: options.author_may_not_approve,
            webhooks: options.webhooks,
            hosts: hosts::Hosts::new(address, &options.hosts, tls),
        }))
    }

    /// Does what may block, where it may.
    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Server) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let server = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&server)).await;
        done.unwrap_or_else(|error| Err(Problem::internal(error)))
    }
}

/// What a server says when it listens.
pub struct Listening<'a> {
    /// `https://192.0.2.1:7480`
    pub url: &'a str,
    /// The secret of a link for the first login.
    pub link: &'a str,
    /// SHA-256 of the certificate.
    pub fingerprint: Option<String>,
}

/// Serves until `stop` ends.
///
/// # Errors
/// The address is taken, or others reach it without TLS or an account; or a file, directory or database cannot be used.
pub async fn serve(
    mut options: ServeOptions,
    person: &str,
    listening: impl FnOnce(&Listening<'_>),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let is_reached = !options.listen.ip().is_loopback();
    let tls = options.tls.clone().map(tls::ServerTls::read_certificate).transpose()?;
    if is_reached && tls.is_none() {
        return Err(ServeError::NoTls { address: options.listen });
    }
    if is_reached && AccessStore::open_access(&options.directory)?.accounts()?.is_empty() {
        return Err(ServeError::NoAccount { address: options.listen });
    }
    let failed = |source| ServeError::Listen { address: options.listen, source };
    let listener = match options.socket.take() {
        Some(socket) => TcpListener::from_std(socket).map_err(failed)?,
        None => TcpListener::bind(options.listen).await.map_err(failed)?,
    };
    let address = listener.local_addr().map_err(failed)?;
    let server = Server::open(options, address, tls.clone())?;
    let link = server.access.lock().create_link(person, SystemTime::now())?;
    let fingerprint = tls.as_ref().map(|tls| tls.fingerprint());
    listening(&Listening { url: &server.hosts.url(), link: &link, fingerprint });
    drop(link);
    let current = tls.clone();
    let keep_current = async move {
        match current {
            Some(tls) => tls.keep_current().await,
            None => std::future::pending().await,
        }
    };
    // Streams do not end by themselves: a request that is under way is not waited for.
    tokio::select! {
        () = connections::serve_connections(listener, dispatch::router(server.clone()), tls) => {}
        () = refusals::write_refusals(server.clone()) => {}
        () = webhooks::send_messages(server.clone()) => {}
        () = keep_current => {}
        () = stop => {}
    }
    refusals::write_rest(&server).await;
    Ok(())
}

#[cfg(test)]
mod tests;
