//! A deployment's lock while it is held: the holder says on all hosts, again and again, that it is there, and gives the lock
//! back in the end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::task::JoinHandle;

use super::{OpenLockHost, within};
use crate::remote::{self, Command, DeploymentLease, Remote, uptime};

/// How often the holder says that it is there.
const BEAT: Duration = Duration::from_secs(5);
/// How long a host may take to receive it.
const ANSWER: Duration = Duration::from_secs(8);

/// A lock that is held, until it is given back. Dropping it stops the beats: others may take it when the lease is out.
pub struct Lock {
    hold: DeploymentLease,
    held: Vec<(Arc<str>, Remote)>,
    beating: JoinHandle<()>,
}

/// A host, and root there if it answers.
type LockReply = (Arc<str>, Option<Remote>);

impl Drop for Lock {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

impl Lock {
    /// Begins to beat. `held`: where it was taken, as root; `majority`: on how many hosts it has to stay.
    pub(super) fn start_heartbeat(
        hold: DeploymentLease,
        held: Vec<(Arc<str>, Remote)>,
        majority: usize,
        opens: OpenLockHost,
    ) -> Lock {
        let root = |name: &Arc<str>| held.iter().find(|(other, _)| other == name).map(|(_, remote)| remote.clone());
        let hosts: Vec<LockReply> = hold.hosts.iter().map(|name| (name.clone(), root(name))).collect();
        let pulse = Heartbeat { hold: hold.clone(), majority, opens };
        pulse.announce_hosts(&hosts);
        Lock { hold, held, beating: tokio::spawn(pulse.beat(hosts)) }
    }

    /// What the run's changes show.
    pub fn hold(&self) -> &DeploymentLease {
        &self.hold
    }

    /// The hosts on which it was taken, as root; what is done through them is refused once the lock is lost.
    pub fn hosts(&self) -> &[(Arc<str>, Remote)] {
        &self.held
    }

    /// Removes the lock and all that is beside it from the hosts, where these still answer.
    pub async fn forget(self) {
        self.beating.abort();
        self.remove_from(|_| true).await;
    }

    /// Removes the lock and all that is beside it from one host, which will not hold it any more. The run keeps it on the others.
    pub async fn forget_on(&mut self, host: &str) {
        self.remove_from(|name| name == host).await;
        self.held.retain(|(name, _)| **name != *host);
    }

    async fn remove_from(&self, which: impl Fn(&str) -> bool) {
        let directory = &self.hold.directory;
        let above = directory.rsplit_once('/').map_or("/", |(above, _)| above);
        let script = "rm -rf \"$0\"; rmdir \"$1\" 2>/dev/null; :";
        let argv = ["sh", "-c", script, directory, above];
        let removals = self.held.iter().filter(|(name, _)| which(name)).map(|(name, remote)| async move {
            if let Err(error) = within(remote.run(&Command::program(argv))).await {
                tracing::debug!(host = &**name, %error, "cannot remove the lock's directory");
            }
        });
        join_all(removals).await;
    }

    /// Gives the lock back, where hosts still answer.
    pub async fn release(self) {
        self.beating.abort();
        let hold = &self.hold;
        let releases = self.held.iter().map(|(name, remote)| async move {
            let given = remote.release_lock(&hold.directory, &hold.record);
            if !matches!(tokio::time::timeout(ANSWER, given).await, Ok(Ok(()))) {
                tracing::debug!(host = &**name, "cannot release the lock");
            }
        });
        join_all(releases).await;
    }
}

/// Says on all hosts, again and again, that the holder is there.
struct Heartbeat {
    hold: DeploymentLease,
    majority: usize,
    opens: OpenLockHost,
}

impl Heartbeat {
    /// Says through whom sessions of other users are made known.
    fn announce_hosts(&self, hosts: &[LockReply]) {
        let roots = hosts.iter().filter_map(|(name, remote)| Some((name.clone(), remote.clone()?)));
        self.hold.roots.set_roots(roots.collect::<HashMap<_, _>>());
    }

    async fn beat(self, mut hosts: Vec<LockReply>) {
        loop {
            let asked = uptime();
            let beats = hosts.iter().map(|(name, remote)| self.heard(name, remote.clone()));
            let heard = join_all(beats).await;
            let confirmed = heard.iter().filter(|heard| heard.is_ok()).count();
            let lost = heard.iter().find_map(|heard| heard.as_ref().err()?.clone());
            if confirmed >= self.majority {
                self.hold.lease.confirm(asked);
            } else if let Some(why) = lost {
                self.hold.lease.lose(&why);
                return;
            }
            for ((_, remote), heard) in hosts.iter_mut().zip(heard) {
                *remote = heard.ok();
            }
            self.announce_hosts(&hosts);
            tokio::time::sleep(BEAT).await;
        }
    }

    /// Renews the lock on one host; reconnects if the connection was lost. The error says whether another run holds the lock.
    async fn heard(&self, name: &Arc<str>, remote: Option<Remote>) -> Result<Remote, Option<Arc<str>>> {
        let work = async {
            let remote = match remote {
                Some(remote) => remote,
                None => {
                    let lock_host = (self.opens)(name.clone()).await.map_err(|_| None)?;
                    lock_host.remote(Some(&self.hold)).await.map_err(refusal)?
                }
            };
            remote.beat(&self.hold.directory).await.map_err(refusal)?;
            Ok(remote)
        };
        tokio::time::timeout(ANSWER, work).await.unwrap_or(Err(None))
    }
}

fn refusal(error: remote::Error) -> Option<Arc<str>> {
    match error {
        remote::Error::Refused { reason, .. } => Some(reason.into()),
        _ => None,
    }
}
