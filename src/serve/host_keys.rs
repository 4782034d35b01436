//! The keys that hosts show, for a person who writes them into a new document after comparing them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::Server;
use super::answers::{self, List};
use super::call::Call;
use super::problem::Problem;
use crate::connection::{Confinement, Error, Method, Target, scan_host_key};
use crate::value::mutex::Mutex;

/// How many hosts a request may name.
const MOST_HOSTS: usize = 64;

/// How many hosts are asked at once, for all requests.
const AT_ONCE: usize = 32;

/// How long a host may take.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

/// The scans that are under way.
pub(super) struct Scans {
    turns: Semaphore,
    /// Whose they are: one for each.
    people: Mutex<BTreeSet<String>>,
}

impl Default for Scans {
    fn default() -> Scans {
        Scans { turns: Semaphore::new(AT_ONCE), people: Mutex::default() }
    }
}

impl Scans {
    fn begin(&self, person: &str) -> Result<OneScan<'_>, Problem> {
        if !self.people.lock().insert(person.to_owned()) {
            let detail = "a request of this login is asking hosts for their keys already";
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "TooManyScans", detail);
            return Err(problem
                .with_retry_after(LONGEST_ANSWER.as_secs())
                .with_hint("wait until it has been answered"));
        }
        Ok(OneScan { scans: self, person: person.to_owned() })
    }
}

/// The scan of a login, until it is dropped.
struct OneScan<'a> {
    scans: &'a Scans,
    person: String,
}

impl Drop for OneScan<'_> {
    fn drop(&mut self) {
        self.scans.people.lock().remove(&self.person);
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedHosts {
    /// At most 64.
    hosts: Vec<AskedHost>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskedHost {
    name: String,
    address: String,
    /// 22 unless given.
    port: Option<u16>,
}

impl AskedHost {
    fn place(&self) -> String {
        let port = self.port.unwrap_or(22);
        match self.address.contains(':') && !self.address.contains('[') {
            true => format!("[{}]:{port}", self.address),
            false => format!("{}:{port}", self.address),
        }
    }
}

/// What a host showed, or why it showed nothing.
#[derive(Serialize, JsonSchema)]
pub(super) struct HostKey {
    name: String,
    address: String,
    port: Option<u16>,
    /// Such as `ssh-ed25519`.
    algorithm: Option<String>,
    /// For `fingerprint` of the host in the document, after it was compared with what the host itself says.
    fingerprint: Option<String>,
    problem: Option<String>,
}

/// Asks hosts for their keys. They are reached as they would be for the document: not the server's own networks.
pub(super) async fn scan_hosts(call: Call) -> Result<Response, Problem> {
    let AskedHosts { hosts } = call.body_as()?;
    let names: Vec<String> = hosts.iter().map(AskedHost::place).collect();
    call.note.lock().detail = names.join(" ");
    if hosts.is_empty() || hosts.len() > MOST_HOSTS {
        let detail = format!("name 1 to {MOST_HOSTS} hosts");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidBody", detail));
    }
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:%-[]".contains(&byte));
    if let Some(host) = hosts.iter().find(|host| !plain(&host.address) || !plain(&host.name) || host.address.is_empty())
    {
        let detail = format!("{:?} is not the address of a host", host.address);
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidBody", detail));
    }
    let confined = Confinement::new(call.server.limits.networks.as_deref()).map_err(Problem::internal)?;
    let confined = Arc::new(confined);
    let _scan = call.server.scans.begin(call.login.as_ref().map_or("", |login| login.person()))?;
    let scans = hosts.into_iter().map(|host| scan(&call.server, host, confined.clone()));
    Ok(answers::ok(&List::whole(futures::future::join_all(scans).await)))
}

async fn scan(server: &Server, host: AskedHost, confined: Arc<Confinement>) -> HostKey {
    let _turn = server.scans.turns.acquire().await.expect("it is never closed");
    let target = Target {
        method: Method::Ssh,
        name: if host.name.is_empty() { host.address.clone() } else { host.name.clone() },
        address: host.address.clone(),
        port: host.port,
        connect_timeout: Some(LONGEST_ANSWER),
        confined: Some(confined),
        surroundings: server.limits.surroundings.clone(),
        ..Target::default()
    };
    let (key, problem) = match scan_host_key(&target).await {
        Ok(key) => (Some(key), None),
        Err(Error::Unreachable { message, .. }) => (None, Some(message)),
        Err(error) => (None, Some(error.to_string())),
    };
    let (algorithm, fingerprint) = key.map_or((None, None), |key| (Some(key.algorithm), Some(key.fingerprint)));
    HostKey { name: host.name, address: host.address, port: host.port, algorithm, fingerprint, problem }
}
