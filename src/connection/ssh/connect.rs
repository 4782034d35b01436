//! From a host's settings to an authenticated connection: name, TCP or jump host or proxy command, handshake.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use russh::client::{Config, Handle, connect_stream};
use russh::{Preferred, cipher};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::authenticate::{self, LoginFailure};
use super::proxy;
use super::stall::StallDetector;
use super::verify::{Client, HostKeyCheck, Refusal, UntrustedKeyReason, in_words};
use super::{Connection, Ssh};
use crate::connection::config::{SshSettings, bracketed};
use crate::connection::{Confinement, Error, Stream, Target};

/// Jump hosts one behind the other; more is a circle.
const MAX_JUMPS: usize = 8;

/// As OpenSSH's servers: the timeout for the login.
const LOGIN_GRACE: Duration = Duration::from_secs(120);

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum ConnectFailure {
    /// May succeed on a retry: the host does not answer, or not yet.
    Transient(Error),
    Final(Error),
}

impl From<Error> for ConnectFailure {
    fn from(error: Error) -> Self {
        ConnectFailure::Final(error)
    }
}

/// Connects and logs in.
pub(super) async fn connect(target: &Target, settings: &SshSettings) -> Result<Ssh, ConnectFailure> {
    reach(target, settings, MAX_JUMPS).await
}

/// As [`connect`]; boxed because jump hosts may have jump hosts.
fn reach<'a>(
    target: &'a Target,
    settings: &'a SshSettings,
    jumps_left: usize,
) -> BoxFuture<'a, Result<Ssh, ConnectFailure>> {
    Box::pin(async move {
        let mut with_keys = true;
        loop {
            tracing::debug!(host = settings.label, address = settings.address, port = settings.port, "connecting");
            let distrust = UntrustedKeyReason::default();
            let (mut session, way, lost) = greet(target, settings, jumps_left, &distrust).await?;
            let distrust = distrust.get().map(String::as_str);
            let login = authenticate::authenticate(&mut session, settings, &lost, with_keys, distrust);
            let Ok(login) = timeout(LOGIN_GRACE, login).await else {
                return Err(cannot(settings, "the login timed out", None).into());
            };
            match login {
                Ok(()) => return Ok(Ssh::new(target, settings, session, lost, way, distrust)),
                // The server rejected too many keys before windlass could try the password.
                Err(LoginFailure::TooManyFailures(_)) if with_keys && settings.password.is_some() => with_keys = false,
                Err(LoginFailure::TooManyFailures(error) | LoginFailure::Refused(error)) => return Err(error.into()),
                Err(LoginFailure::Lost(error)) => return Err(ConnectFailure::Transient(error)),
            }
        }
    })
}

type HandshakeResult = (Handle<Client>, Option<Box<Ssh>>, watch::Receiver<Option<String>>);

/// The encrypted connection to the host that we know, before the login.
async fn greet(
    target: &Target,
    settings: &SshSettings,
    jumps_left: usize,
    distrust: &UntrustedKeyReason,
) -> Result<HandshakeResult, ConnectFailure> {
    let check = HostKeyCheck::new(settings)?;
    let (stream, way, complaint) = stream(target, settings, jumps_left).await?;
    let config = Arc::new(config(settings, &check));
    let (client, lost) = Client::new(check, distrust.clone());
    let stream = StallDetector::new(stream, silence(settings));
    let reason = match timeout(settings.connect_timeout, connect_stream(config, stream, client)).await {
        Ok(Ok(handle)) => return Ok((handle, way, lost)),
        Ok(Err(Refusal::HostKey(error))) => return Err(error.into()),
        Ok(Err(Refusal::Protocol(error))) => match &error {
            russh::Error::HUP | russh::Error::Disconnect => "it closed the connection before the handshake".to_owned(),
            russh::Error::IO(_) => in_words(&error),
            _ => return Err(cannot(settings, &in_words(&error), None).into()),
        },
        Err(_) => format!("no SSH greeting within {:?}", settings.connect_timeout),
    };
    let said = match complaint {
        Some(mut complaint) => complaint.last_line().await,
        None => None,
    };
    let reason = said.map_or(reason.clone(), |said| format!("{reason}; output of the proxy command: {said}"));
    Err(ConnectFailure::Transient(cannot(settings, &reason, None)))
}

type RouteStep = (Box<dyn Stream>, Option<Box<Ssh>>, Option<proxy::ProxyError>);

async fn stream(target: &Target, settings: &SshSettings, jumps_left: usize) -> Result<RouteStep, ConnectFailure> {
    if let Some((nearest, before)) = settings.jumps.split_last() {
        if jumps_left == 0 {
            return Err(cannot(settings, "its jump hosts form a loop", None).into());
        }
        let mut jump = settings.of_jump(nearest, target)?;
        if !before.is_empty() {
            jump.jumps = before.to_vec();
            jump.proxy_command = None;
        }
        tracing::debug!(host = settings.label, jump = jump.address, "through a jump host");
        let address = match &target.confined {
            // The jump host gets an address that was checked, and resolves no name itself.
            Some(confined) => inside(confined, settings).await?[0].ip().to_string(),
            None => settings.address.clone(),
        };
        // An allowed jump host may use its own jump hosts.
        let own = Target { confined: None, ..target.clone() };
        let way = reach(&own, &jump, jumps_left - 1).await?;
        let tunnel = way.tunnel(&address, settings.port).await.map_err(|error| {
            ConnectFailure::Transient(cannot(settings, &format!("through jump host {}: {error}", nearest.host), None))
        })?;
        return Ok((tunnel, Some(Box::new(way)), None));
    }
    if let Some(command) = &settings.proxy_command {
        let (stream, complaint) = proxy::start_proxy(command, &target.surroundings)
            .map_err(|error| cannot(settings, &format!("{command:?}: {error}"), None))?;
        return Ok((stream, None, Some(complaint)));
    }
    Ok((Box::new(dial(target, settings).await?), None, None))
}

/// The host's addresses, all of them within.
async fn inside(confined: &Confinement, settings: &SshSettings) -> Result<Vec<SocketAddr>, ConnectFailure> {
    match timeout(settings.connect_timeout, confined.resolve(&settings.address, settings.port)).await {
        Ok(found) => found.map_err(|why| cannot(settings, &why, None).into()),
        Err(_) => Err(ConnectFailure::Transient(unresolved(settings, "timed out"))),
    }
}

/// The host's addresses.
async fn addresses(target: &Target, settings: &SshSettings) -> Result<Vec<SocketAddr>, ConnectFailure> {
    if let Some(confined) = &target.confined {
        return inside(confined, settings).await;
    }
    let name = settings.address.trim_start_matches('[').trim_end_matches(']');
    match timeout(settings.connect_timeout, tokio::net::lookup_host((name, settings.port))).await {
        Ok(Ok(addresses)) => Ok(addresses.collect()),
        Ok(Err(error)) => Err(unresolved(settings, &error.to_string()).into()),
        Err(_) => Err(ConnectFailure::Transient(unresolved(settings, "timed out"))),
    }
}

/// Connects to the first of the host's addresses that takes us.
pub(super) async fn dial(target: &Target, settings: &SshSettings) -> Result<TcpStream, ConnectFailure> {
    let limit = settings.connect_timeout;
    let mut last = None;
    for address in addresses(target, settings).await? {
        if !settings.family.admits(address.ip()) {
            continue;
        }
        let error = match timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Otherwise small requests wait 40 ms for the acknowledgement of those before.
                #[expect(clippy::let_underscore_must_use, reason = "the stream works without it, only slower")]
                let _ = stream.set_nodelay(true);
                tracing::debug!(host = settings.label, %address, "TCP connection");
                return Ok(stream);
            }
            Ok(Err(error)) => error,
            Err(_) => io::Error::new(io::ErrorKind::TimedOut, format!("timed out after {limit:?}")),
        };
        last = Some(error);
    }
    Err(match last {
        Some(error) => unreachable(settings, &error),
        None => unresolved(settings, "it has no address of the requested family").into(),
    })
}

fn unresolved(settings: &SshSettings, why: &str) -> Error {
    Error::Unreachable {
        message: format!("cannot connect to {}: cannot resolve the name {:?}: {why}", settings.label, settings.address),
        hint: Some("check the name, or set ansible_host to an address".to_owned()),
    }
}

fn unreachable(settings: &SshSettings, error: &io::Error) -> ConnectFailure {
    use io::ErrorKind as K;
    let (reason, hint) = match error.kind() {
        K::ConnectionRefused => {
            ("connection refused".to_owned(), "check that its SSH server is running, and listens on this port")
        }
        K::TimedOut => {
            let limit = settings.connect_timeout;
            (
                format!("timed out after {limit:?}"),
                "check that the host is up, and that no firewall blocks the connection",
            )
        }
        K::HostUnreachable | K::NetworkUnreachable => {
            ("no route to host".to_owned(), "check that the host is up, and that this machine can reach its network")
        }
        _ => return cannot(settings, &error.to_string(), None).into(),
    };
    ConnectFailure::Transient(cannot(settings, &reason, Some(hint)))
}

/// `cannot connect to web1 (10.0.0.1:22): connection refused`
pub(super) fn cannot(settings: &SshSettings, reason: &str, hint: Option<&str>) -> Error {
    let place = format!("{}:{}", bracketed(&settings.address), settings.port);
    Error::Unreachable {
        message: format!("cannot connect to {} ({place}): {reason}", settings.label),
        hint: hint.map(str::to_owned),
    }
}

/// After how long without a sign of life a host is given up.
fn silence(settings: &SshSettings) -> Option<Duration> {
    let times = u32::try_from(settings.alive_count).unwrap_or(u32::MAX).saturating_add(1);
    settings.alive_interval.map(|interval| interval.saturating_mul(times))
}

pub(super) fn config(settings: &SshSettings, check: &HostKeyCheck) -> Config {
    let keys = check.known.algorithms(check.host_name());
    // Asked for only where an authority is recorded: a host that has a certificate would show nothing else.
    let certificates = if check.known.has_authority(check.host_name()) { keys.clone() } else { Vec::new() };
    Config {
        preferred: Preferred {
            key: Cow::Owned(keys),
            host_key_certificates: Cow::Owned(certificates),
            // AES in hardware moves twice as much as ChaCha20.
            cipher: Cow::Borrowed(&[
                cipher::AES_128_GCM,
                cipher::AES_256_GCM,
                cipher::CHACHA20_POLY1305,
                cipher::AES_256_CTR,
                cipher::AES_192_CTR,
                cipher::AES_128_CTR,
            ]),
            ..Preferred::DEFAULT
        },
        keepalive_interval: settings.alive_interval,
        keepalive_max: settings.alive_count,
        nodelay: true,
        ..Config::default()
    }
}
