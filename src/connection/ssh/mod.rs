//! Connections over SSH: one authenticated TCP connection per host, on which programs and tunnels are channels.

mod authenticate;
mod channel;
mod connect;
mod login_keys;
mod proxy;
mod scan;
mod signing;
mod spool;
mod stall;
mod verify;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use russh::client::{Handle, Msg};
use russh::{Channel, ChannelMsg, ChannelOpenFailure, Disconnect};
use tokio::sync::{Semaphore, watch};

pub use self::login_keys::key_fingerprint_of;
pub use self::scan::{ShownHostKey, scan_host_key};
pub use self::signing::SigningKey;

use self::channel::Line;
use self::verify::Client;
use super::config::SshSettings;
use super::{Connection, Error, Process, Stream, Target};

/// Programs at once. OpenSSH's servers allow 10 (`MaxSessions`); two are left for those that are still ending.
const CAPACITY: usize = 8;

/// What open programs get to end when the connection is closed.
const PARTING: Duration = Duration::from_secs(1);

/// Opens a connection. A host that refuses or does not answer is tried again as often as the target says; a host
/// that answers and does not let us in is not.
pub(super) async fn connect_ssh(target: &Target) -> Result<Arc<dyn Connection>, Error> {
    let settings = SshSettings::of_target(target)?;
    let mut attempt = 0;
    loop {
        match connect::connect(target, &settings).await {
            Ok(connection) => return Ok(Arc::new(connection)),
            Err(connect::ConnectFailure::Transient(error)) if attempt < target.retries => {
                tracing::debug!("{error}; retrying");
                tokio::time::sleep(delay(attempt)).await;
                attempt += 1;
            }
            Err(connect::ConnectFailure::Transient(error) | connect::ConnectFailure::Final(error)) => {
                return Err(error);
            }
        }
    }
}

/// 1, 3, 7, 15, 30, 30... seconds.
fn delay(attempt: u32) -> Duration {
    Duration::from_secs(2u64.saturating_pow(attempt.saturating_add(1)).saturating_sub(1).min(30))
}

/// An authenticated connection.
struct Ssh {
    handle: Option<Handle<Client>>,
    line: Line,
    closing: watch::Sender<bool>,
    permits: Arc<Semaphore>,
    description: String,
    confined: bool,
    /// The connection that ours runs through.
    jump: Option<Box<Ssh>>,
    distrust: Option<String>,
}

impl Ssh {
    fn new(
        target: &Target,
        settings: &SshSettings,
        handle: Handle<Client>,
        lost: watch::Receiver<Option<String>>,
        jump: Option<Box<Ssh>>,
        distrust: Option<&str>,
    ) -> Ssh {
        let (closing, watch_closing) = watch::channel(false);
        Ssh {
            handle: Some(handle),
            line: Line { name: settings.label.clone(), lost, closing: watch_closing },
            closing,
            permits: Arc::new(Semaphore::new(CAPACITY)),
            description: format!("ssh {}", settings.host_and_port()),
            confined: target.confined.is_some(),
            jump,
            distrust: distrust.map(str::to_owned),
        }
    }

    fn handle(&self) -> &Handle<Client> {
        self.handle.as_ref().expect("the handle is only taken when the connection is dropped")
    }

    /// Opens a channel for a program; None: the host refuses another one. OpenSSH counts a session until some time after
    /// it has reported its end, so a refused request is retried for a short time.
    async fn session(&self) -> Result<Option<Channel<Msg>>, Error> {
        let mut delays = [10, 20, 40, 80, 160, 320].map(Duration::from_millis).into_iter();
        loop {
            match self.unless_lost(self.handle().channel_open_session()).await? {
                Ok(channel) => return Ok(Some(channel)),
                Err(russh::Error::ChannelOpenFailure(_)) => match delays.next() {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => return Ok(None),
                },
                Err(_) => return Err(self.line.error()),
            }
        }
    }

    /// Waits for something that would never finish once the connection has ended.
    async fn unless_lost<T>(&self, something: impl Future<Output = T>) -> Result<T, Error> {
        let mut lost = self.line.lost.clone();
        let mut closing = self.line.closing.clone();
        tokio::select! {
            // What was answered before the end was answered.
            biased;
            value = something => Ok(value),
            _ = lost.wait_for(Option::is_some) => Err(self.line.error()),
            _ = closing.wait_for(|closing| *closing) => Err(self.line.error()),
        }
    }
}

#[async_trait]
impl Connection for Ssh {
    async fn start(&self, line: &str) -> Result<Process, Error> {
        let refused = |reason: &str| Error::Start { what: line.to_owned(), reason: reason.to_owned() };
        let permit = self.unless_lost(self.permits.clone().acquire_owned()).await?;
        let permit = permit.map_err(|_| self.line.error())?;
        let Some(mut channel) = self.session().await? else {
            return Err(refused("the host refuses another session (MaxSessions in its sshd_config?)"));
        };
        self.unless_lost(channel.exec(true, line)).await?.map_err(|_| self.line.error())?;
        loop {
            match self.unless_lost(channel.wait()).await? {
                Some(ChannelMsg::Success) => return Ok(channel::process(channel, self.line.clone(), permit)),
                Some(ChannelMsg::Failure) => {
                    #[expect(clippy::let_underscore_must_use, reason = "a closed connection has no channel to close")]
                    let _ = channel.close().await;
                    return Err(refused("the host's SSH server does not allow commands"));
                }
                Some(ChannelMsg::Close) | None => return Err(self.line.error()),
                Some(_) => {}
            }
        }
    }

    async fn tunnel(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, Error> {
        let opening = self.handle().channel_open_direct_tcpip(host, u32::from(port), "127.0.0.1", 0);
        match self.unless_lost(opening).await? {
            Ok(channel) => Ok(channel::tunnel(channel, self.line.clone())),
            Err(russh::Error::ChannelOpenFailure(why)) => {
                let what = format!("tunnel to {}:{port}", super::config::bracketed(host));
                Err(match why {
                    ChannelOpenFailure::AdministrativelyProhibited => {
                        let reason = "the host's SSH server forbids it (AllowTcpForwarding)".to_owned();
                        Error::NoTunnels { what, reason }
                    }
                    _ => Error::Start { what, reason: "the host cannot connect to it".to_owned() },
                })
            }
            Err(_) => Err(self.line.error()),
        }
    }

    fn is_ssh(&self) -> bool {
        true
    }

    fn distrust(&self) -> Option<&str> {
        self.distrust.as_deref()
    }

    fn is_confined(&self) -> bool {
        self.confined
    }

    fn capacity(&self) -> usize {
        CAPACITY
    }

    fn is_closed(&self) -> bool {
        *self.line.closing.borrow() || self.line.lost.borrow().is_some() || self.handle().is_closed()
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    async fn close(&self) {
        part(self.handle(), &self.line, &self.closing, &self.permits).await;
        if let Some(jump) = &self.jump {
            jump.close().await;
        }
    }
}

/// Ends what runs, says goodbye, and waits for neither for long.
async fn part(handle: &Handle<Client>, line: &Line, closing: &watch::Sender<bool>, permits: &Semaphore) {
    #[expect(clippy::let_underscore_must_use, reason = "the receiver may be dropped")]
    let _ = closing.send(true);
    if line.lost.borrow().is_some() {
        return;
    }
    let all = u32::try_from(CAPACITY).expect("a small number");
    #[expect(clippy::let_underscore_must_use, reason = "channels that do not end in time are closed")]
    let _ = tokio::time::timeout(PARTING, permits.acquire_many(all)).await;
    let goodbye = async {
        #[expect(clippy::let_underscore_must_use, reason = "the connection may be closed already")]
        let _ = handle.disconnect(Disconnect::ByApplication, "", "").await;
        #[expect(clippy::let_underscore_must_use, reason = "the connection also ends on an error")]
        let _ = line.lost.clone().wait_for(Option::is_some).await;
    };
    #[expect(clippy::let_underscore_must_use, reason = "a host that does not answer is abandoned")]
    let _ = tokio::time::timeout(PARTING, goodbye).await;
}

impl Drop for Ssh {
    fn drop(&mut self) {
        #[expect(clippy::let_underscore_must_use, reason = "the receiver may be dropped")]
        let _ = self.closing.send(true);
        let (Some(handle), Ok(runtime)) = (self.handle.take(), tokio::runtime::Handle::try_current()) else { return };
        let (line, closing) = (self.line.clone(), self.closing.clone());
        let (permits, jump) = (self.permits.clone(), self.jump.take());
        runtime.spawn(async move {
            part(&handle, &line, &closing, &permits).await;
            // The way goes after what ran through it.
            drop(jump);
        });
    }
}

impl fmt::Debug for Ssh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ssh").field("description", &self.description).finish_non_exhaustive()
    }
}
