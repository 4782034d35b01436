//! The backups of etcd of each deployment: below the directory that the server was started with, and nowhere else.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::Server;
use super::answers::{self, List};
use super::backup_directory::backups_of;
use super::call::Call;
use super::deployments::{DeploymentFile, named_deployment};
use super::file_state::FileState;
use super::problem::Problem;
use crate::deployment::backups::{self, Backup, Identities};
use crate::runs::timestamp_text;
use crate::value::mutex::Mutex;

/// A backup of etcd.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Backup")]
pub(super) struct EtcdBackup {
    name: String,
    /// Null, as all below, if it has no manifest that can be read.
    taken: Option<String>,
    /// Of the snapshot, in bytes.
    size: Option<u64>,
    compressed_size: Option<u64>,
    revision: Option<u64>,
    keys: Option<u64>,
    etcd_version: Option<String>,
    /// The member that it was taken from.
    member: Option<String>,
    /// How many members' hashes at this revision were compared, and agree.
    compared: Option<u64>,
    /// Whether all of it was read, and is what was written. Null: not yet, ask again.
    verified: Option<bool>,
    verified_at: Option<String>,
    /// Why it cannot be used.
    problem: Option<String>,
}

/// How long what was found out about a backup counts.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// How many backups of a deployment are listed, the newest.
const MOST: usize = 1000;

/// What was found out about backups by reading all of them: one at a time, however many ask.
#[derive(Default)]
pub(super) struct Verified(Mutex<Reading>);

#[derive(Default)]
struct Reading {
    known: HashMap<PathBuf, Found>,
    /// A thread reads backups.
    is_under_way: bool,
}

#[derive(Clone)]
struct Found {
    /// Of its files.
    of: Vec<Option<FileState>>,
    at: SystemTime,
    problem: Option<String>,
}

/// A thread reads backups, until this is dropped: also if it panics.
struct UnderWay<'a>(&'a Verified);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.0.lock().is_under_way = false;
    }
}

impl Verified {
    const MOST: usize = 10_000;

    fn find(&self, backup: &Path) -> Option<Found> {
        let known = self.0.lock().known.get(backup).cloned()?;
        let is_fresh = known.at.elapsed().is_ok_and(|age| age < FRESH) && known.of == states(backup);
        is_fresh.then_some(known)
    }

    fn keep(&self, backup: PathBuf, found: Found) {
        let mut reading = self.0.lock();
        if reading.known.len() >= Self::MOST {
            reading.known.clear();
        }
        reading.known.insert(backup, found);
    }

    /// Reads backups, one after the other, unless others are being read: then who asks again has them read.
    fn read_soon(self: &Arc<Self>, paths: Vec<PathBuf>) {
        if paths.is_empty() || std::mem::replace(&mut self.0.lock().is_under_way, true) {
            return;
        }
        let verified = self.clone();
        let read = move || {
            let _under_way = UnderWay(&verified);
            for path in paths {
                let of = states(&path);
                let problem = backups::verify(&path, &Identities::default()).err();
                verified.keep(path, Found { of, at: SystemTime::now(), problem });
            }
        };
        if let Err(error) = std::thread::Builder::new().name("read backups".into()).spawn(read) {
            tracing::warn!("cannot read backups: {error}");
            self.0.lock().is_under_way = false;
        }
    }
}

fn states(backup: &Path) -> Vec<Option<FileState>> {
    backups::files_of(backup).map(|file| file.metadata().ok().as_ref().map(FileState::from)).collect()
}

pub(super) async fn list_backups(call: Call) -> Result<Response, Problem> {
    let list = |server: &Server, file: DeploymentFile| {
        let directory = backups_of(server, &file.name)?;
        let mut found = match backups::list_backups(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            found => found.map_err(Problem::internal)?,
        };
        found.truncate(MOST);
        let known: Vec<Option<Found>> = found.iter().map(|backup| server.verified.find(&backup.path)).collect();
        let unknown = found.iter().zip(&known).filter(|(_, known)| known.is_none());
        server.verified.read_soon(unknown.map(|(backup, _)| backup.path.clone()).collect());
        Ok(found.into_iter().zip(known).map(|(backup, known)| EtcdBackup::of(backup, known)).collect::<Vec<_>>())
    };
    Ok(answers::ok(&List::whole(named_deployment(call, list).await?)))
}

impl EtcdBackup {
    fn of(backup: Backup, known: Option<Found>) -> EtcdBackup {
        let (manifest, unreadable) = match backup.manifest {
            Ok(manifest) => (Some(manifest), None),
            Err(why) => (None, Some(why)),
        };
        let taken = |seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).map(timestamp_text);
        EtcdBackup {
            name: backup.name,
            taken: manifest.as_ref().and_then(|it| taken(it.taken)),
            size: manifest.as_ref().map(|it| it.size),
            compressed_size: manifest.as_ref().map(|it| it.compressed_size),
            revision: manifest.as_ref().map(|it| it.revision),
            keys: manifest.as_ref().map(|it| it.keys),
            etcd_version: manifest.as_ref().map(|it| it.etcd_version.clone()),
            member: manifest.as_ref().map(|it| it.member.clone()),
            compared: manifest.as_ref().map(|it| it.compared),
            verified: known.as_ref().map(|known| known.problem.is_none()),
            verified_at: known.as_ref().map(|known| timestamp_text(known.at)),
            problem: unreadable.or(known.and_then(|known| known.problem)),
        }
    }
}
