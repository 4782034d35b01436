//! `windlass serve`: an API under `/api/v1`, and the page. It reads the store of runs and the files of deployments, and does all work in
//! processes of its own, which are the commands that a person would type. [`routes`] is the list of all that the API can do.

mod access;
mod answers;
mod call;
mod connections;
mod deployments;
mod dispatch;
mod follow;
mod guard;
mod openapi;
mod page;
mod plans;
mod problem;
mod processes;
mod repeats;
mod rights;
mod routes;
mod runs;
mod sessions;
mod stores;
mod tasks;
mod tokens;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::net::TcpListener;

pub use access::{AccessStore, AuditEntry, LINK_AGE, Token};
pub use openapi::openapi_document;
pub use rights::{ALL, Right, Rights};
pub use tokens::new_token;

use crate::resource::ForeignResourceLimits;
use crate::value::mutex::Mutex;
use problem::Problem;
use processes::Processes;
use stores::Stores;

/// How `windlass serve` was started.
pub struct ServeOptions {
    /// Of this machine only: a loopback address.
    pub listen: SocketAddr,
    /// The directory with the files of deployments.
    pub deployments: PathBuf,
    /// Of documents that say they are from an API.
    pub limits: ForeignResourceLimits,
    /// The directory of the store of runs, and of what the server keeps.
    pub directory: PathBuf,
    /// This program.
    pub program: PathBuf,
    /// Options of every process that it starts.
    pub process_options: Vec<String>,
    /// How many runs may be under way at once.
    pub max_runs: usize,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("{address} is not an address of this machine alone (127.0.0.1, ::1)")]
    NotLoopback { address: SocketAddr },
    #[error("cannot use {}", path.display())]
    Directory { path: PathBuf, source: std::io::Error },
    #[error("{}: another user owns it or can write to it", path.display())]
    NotOwn { path: PathBuf },
    #[error(transparent)]
    Store(#[from] crate::runs::Error),
}

/// What all requests share.
struct Server {
    deployments: PathBuf,
    limits: ForeignResourceLimits,
    stores: Stores,
    access: Mutex<AccessStore>,
    processes: Processes,
    follow: follow::Followers,
    repeats: repeats::Repeats,
    ended_tasks: tasks::EndedTasks,
    refusals: dispatch::Refusals,
    /// The values of the header Host that requests may have.
    hosts: Vec<String>,
}

impl Server {
    /// Opens what it needs.
    fn open(options: ServeOptions, address: SocketAddr) -> Result<Arc<Server>, ServeError> {
        let directory = |source| ServeError::Directory { path: options.deployments.clone(), source };
        let deployments = options.deployments.canonicalize().map_err(directory)?;
        if let Some(path) = crate::value::ownership::written_by_others(&deployments).map_err(directory)? {
            return Err(ServeError::NotOwn { path });
        }
        let port = address.port();
        let names = ["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}"));
        Ok(Arc::new(Server {
            deployments,
            access: Mutex::new(AccessStore::open_access(&options.directory)?),
            stores: Stores::open_stores(&options.directory)?,
            processes: Processes::new(options.program, options.process_options, &options.directory, options.max_runs),
            limits: options.limits,
            follow: follow::Followers::default(),
            repeats: repeats::Repeats::default(),
            ended_tasks: tasks::EndedTasks::default(),
            refusals: dispatch::Refusals::default(),
            // Browsers leave the usual port out.
            hosts: match port {
                80 => ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into_iter().chain(names).collect(),
                _ => [address.to_string()].into_iter().chain(names).collect(),
            },
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

/// Serves until `stop` ends. `listening` gets the address, and the secret of a link for the first login.
///
/// # Errors
/// The address is taken or not of this machine alone, or a directory or database cannot be used.
pub async fn serve(
    options: ServeOptions,
    person: &str,
    listening: impl FnOnce(SocketAddr, &str),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    if !options.listen.ip().is_loopback() {
        return Err(ServeError::NotLoopback { address: options.listen });
    }
    let failed = |source| ServeError::Listen { address: options.listen, source };
    let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let server = Server::open(options, address)?;
    let link = server.access.lock().create_link(person, SystemTime::now())?;
    listening(address, &link);
    drop(link);
    // Streams do not end by themselves: a request that is under way is not waited for.
    tokio::select! {
        () = connections::serve_connections(listener, dispatch::router(server)) => {}
        () = stop => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests;
