//! The lock of a deployment: held on a majority of its hosts, kept alive, given back. One host's part is `remote::lock`.
//!
//! A token is one more than any that a majority has seen, so of two runs the later one has the higher. A run that is taken
//! over is refused by every host that has heard of it, and by itself, as its lease runs out before the other begins.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use tokio::task::JoinHandle;

use super::holder::{self, Process};
use crate::connection::Connection;
use crate::remote::lock::{Claimed, Record, Seen};
use crate::remote::{self, Become, Command, Hold, Lease, Remote, Sessions, uptime};

/// How often the holder says that it is there.
const BEAT: Duration = Duration::from_secs(5);
/// How long a host may take to hear it.
const ANSWER: Duration = Duration::from_secs(8);
/// What host clocks with whole seconds may be wrong by.
const MARGIN: Duration = Duration::from_secs(2);
/// How often a holder whose connections have just ended is asked after.
const PAUSE: Duration = Duration::from_millis(500);
/// How often a claim is tried that somebody else was in the way of.
const TURNS: u64 = 5;

/// A host of the deployment, reached as root.
#[derive(Clone)]
pub struct Door {
    pub name: Arc<str>,
    pub connection: Arc<dyn Connection>,
    pub user: Option<Become>,
}

impl Door {
    async fn remote(&self, hold: Option<&Hold>) -> Result<Remote, remote::Error> {
        let badge = hold.map(|hold| hold.on(&self.name));
        let sessions = Sessions::sharing(self.connection.clone(), None, badge);
        Remote::open(&sessions, self.user.as_ref(), &indexmap::IndexMap::new()).await
    }
}

/// Opens the door of a host.
pub type Opens = Arc<dyn Fn(Arc<str>) -> BoxFuture<'static, Result<Door, String>> + Send + Sync>;

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}", held(.0))]
    Held(Box<Holder>),
    #[error("the lock of the deployment needs {needed} of its {all} hosts, and {reached} answer: {why}")]
    NoMajority { reached: usize, all: usize, needed: usize, why: String },
    #[error("another run takes the lock at this very moment")]
    Contended,
    #[error("the lock of the deployment cannot be taken on {host}: {error}")]
    Host { host: Arc<str>, error: remote::Error },
}

/// Who holds a lock, as far as the hosts know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub record: Record,
    /// For how long nothing was heard of it.
    pub silent: Duration,
    /// Since when it holds it, by this machine's clock.
    pub age: Duration,
}

fn held(holder: &Holder) -> String {
    let Record { holder: who, pid, command, .. } = &holder.record;
    let (age, silent) = (words(holder.age), words(holder.silent));
    format!("{who} works on this deployment: {command} (process {pid}, for {age}; last heard of {silent} ago)")
}

/// `45 s`, `12 min`, `3 h`
pub fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// What is known of a run that stands in a lock.
struct Other {
    record: Record,
    silent: Duration,
    sessions: usize,
}

/// What was claimed.
struct Claims<'d> {
    hosts: Vec<(&'d Door, &'d Remote)>,
    /// For how long others may still believe that they hold it.
    waits: Duration,
}

/// A lock that is held, until it is given back. Dropping it stops the beats: others may take it when the lease is out.
pub struct Lock {
    hold: Hold,
    held: Vec<(Arc<str>, Remote)>,
    beating: JoinHandle<()>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

/// How a lock is to be taken.
pub struct Asked<'a> {
    /// All hosts of the deployment that hold its lock, sorted.
    pub hosts: &'a [Arc<str>],
    /// The lock's directory on each.
    pub directory: &'a str,
    /// This run; its token is found here.
    pub run: Record,
    /// A holder that is still there is taken over, too.
    pub breaks: bool,
    pub opens: Opens,
    /// Told what a person should know meanwhile.
    pub tell: &'a (dyn Fn(&str) + Send + Sync),
}

impl Asked<'_> {
    fn majority(&self) -> usize {
        self.hosts.len() / 2 + 1
    }

    /// Takes the lock on as many hosts as answer.
    ///
    /// # Errors
    /// Somebody holds it, or too few hosts answer.
    pub async fn acquire(mut self) -> Result<Lock, Error> {
        let open = join_all(self.hosts.iter().map(|name| (self.opens)(name.clone()))).await;
        let mut why = Vec::new();
        let mut doors = Vec::new();
        for door in open {
            match door {
                Ok(door) => match door.remote(None).await {
                    Ok(remote) => doors.push((door, remote)),
                    Err(error) => why.push(format!("{}: {error}", door.name)),
                },
                Err(reason) => why.push(reason),
            }
        }
        self.needs(doors.len(), &why)?;
        for turn in 0..TURNS {
            let others = self.wait_for_ending(&doors).await?;
            let over = self.judged(others)?;
            if let Some(claims) = self.claim(&doors, &over, &mut why).await? {
                return self.enter(claims, &over).await;
            }
            let pause = rand::random_range(100..1000) * (turn + 1);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        Err(Error::Contended)
    }

    fn needs(&self, reached: usize, why: &[String]) -> Result<(), Error> {
        let (needed, all) = (self.majority(), self.hosts.len());
        match reached >= needed {
            true => Ok(()),
            false => Err(Error::NoMajority { reached, all, needed, why: why.join("; ") }),
        }
    }

    /// What the hosts say; a holder whose process has ended may leave shells there for a moment.
    async fn wait_for_ending(&mut self, doors: &[(Door, Remote)]) -> Result<Vec<Other>, Error> {
        let mut said = false;
        loop {
            let looks = join_all(doors.iter().map(|(_, remote)| remote.lock(self.directory))).await;
            let mut others: Vec<Other> = Vec::new();
            for ((door, _), seen) in doors.iter().zip(looks) {
                let seen = seen.map_err(|error| Error::Host { host: door.name.clone(), error })?;
                let Some(Seen { record, silent, sessions }) = seen else { continue };
                self.run.token = self.run.token.max(record.token);
                if record.run.is_none() || record.run == self.run.run {
                    continue;
                }
                match others.iter_mut().find(|other| other.record.run == record.run) {
                    Some(other) => {
                        other.silent = other.silent.min(silent);
                        other.sessions += sessions;
                    }
                    None => others.push(Other { record, silent, sessions }),
                }
            }
            // Elsewhere, one that has no shells any more may come back while its lease lasts.
            let ends = |other: &Other| {
                holder::process(&other.record) == Process::Elsewhere
                    && other.sessions == 0
                    && other.silent < Lease::LENGTH + MARGIN
            };
            if self.breaks || !others.iter().any(ends) {
                return Ok(others);
            }
            if !said {
                (self.tell)("the run that holds the lock seems to have ended: waiting until that is sure");
                said = true;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Those whose lock may be taken over.
    fn judged(&self, others: Vec<Other>) -> Result<Vec<Record>, Error> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let mut over = Vec::new();
        for other in others {
            let gone = match holder::process(&other.record) {
                Process::Ended => true,
                Process::Here => false,
                Process::Elsewhere => other.sessions == 0,
            };
            if !gone && !self.breaks {
                let age = now.saturating_sub(Duration::from_secs(other.record.since));
                let holder = Holder { record: other.record, silent: other.silent, age };
                return Err(Error::Held(Box::new(holder)));
            }
            over.push(other.record);
        }
        Ok(over)
    }

    /// Claims host by host, all runs in the same order, so that of two the one that is first on the first host goes on.
    /// None: somebody else was first.
    async fn claim<'d>(
        &mut self,
        doors: &'d [(Door, Remote)],
        over: &[Record],
        why: &mut Vec<String>,
    ) -> Result<Option<Claims<'d>>, Error> {
        self.run.token += 1;
        let mut claims = Claims { hosts: Vec::new(), waits: Duration::ZERO };
        for (door, remote) in doors {
            match self.claim_on(remote, over).await {
                Ok(Some(waits)) => {
                    claims.waits = claims.waits.max(waits);
                    claims.hosts.push((door, remote));
                }
                Ok(None) => {
                    self.undo(&claims).await;
                    return Ok(None);
                }
                Err(error) => why.push(format!("{}: {error}", door.name)),
            }
        }
        if let Err(error) = self.needs(claims.hosts.len(), why) {
            self.undo(&claims).await;
            return Err(error);
        }
        Ok(Some(claims))
    }

    /// One host: for how long whoever held it may still believe that it does. None: it is not ours.
    async fn claim_on(&self, remote: &Remote, over: &[Record]) -> Result<Option<Duration>, remote::Error> {
        let seen = remote.lock(self.directory).await?;
        let found = seen.and_then(|seen| over.iter().find(|other| other.run == seen.record.run));
        let ended = found.is_none_or(|other| holder::process(other) == Process::Ended);
        Ok(match remote.claim_lock(self.directory, &self.run, found).await? {
            Claimed::Taken { .. } if ended => Some(Duration::ZERO),
            Claimed::Taken { silent } => Some((Lease::LENGTH + MARGIN).saturating_sub(silent)),
            Claimed::Held(_) | Claimed::Low(_) => None,
        })
    }

    async fn undo(&self, claims: &Claims<'_>) {
        let undone = claims.hosts.iter().map(|(_, remote)| remote.release_lock(self.directory, &self.run));
        join_all(undone).await;
    }

    /// Begins to beat, waits until those before can do nothing any more, and ends what they have running.
    async fn enter(self, claims: Claims<'_>, over: &[Record]) -> Result<Lock, Error> {
        let at = |name: &Arc<str>| {
            let host = name.clone();
            move |error| Error::Host { host, error }
        };
        let hold = Hold {
            directory: self.directory.into(),
            record: Arc::new(self.run.clone()),
            hosts: Arc::new(self.hosts.iter().cloned().collect::<HashSet<_>>()),
            lease: Lease::unconfirmed(),
        };
        let mut held = Vec::new();
        for (door, _) in &claims.hosts {
            held.push((door.name.clone(), door.remote(Some(&hold)).await.map_err(at(&door.name))?));
        }
        let pulse = Pulse { hold: hold.clone(), majority: self.majority(), opens: self.opens.clone() };
        let heard = |name: &Arc<str>| held.iter().find(|(other, _)| other == name).map(|(_, remote)| remote.clone());
        let hosts = self.hosts.iter().map(|name| (name.clone(), heard(name).map(Arc::new))).collect();
        let lock = Lock { hold, beating: tokio::spawn(pulse.beat(hosts)), held };
        if let Some(other) = over.first() {
            (self.tell)(&format!("taking over the lock of {} ({})", other.holder, other.command));
        }
        if !claims.waits.is_zero() {
            (self.tell)(&format!("waiting {} s, until it can change nothing any more", claims.waits.as_secs()));
            tokio::time::sleep(claims.waits).await;
        }
        for (door, remote) in claims.hosts {
            remote.end_other_runs(self.directory, &self.run).await.map_err(at(&door.name))?;
        }
        Ok(lock)
    }
}

impl Lock {
    /// What the run's changes show.
    pub fn hold(&self) -> &Hold {
        &self.hold
    }

    /// The hosts on which it was taken, as root; what is done through them is refused once the lock is lost.
    pub fn hosts(&self) -> &[(Arc<str>, Remote)] {
        &self.held
    }

    /// Removes the lock and all that is beside it from the hosts, where these still answer.
    pub async fn forget(self) {
        self.beating.abort();
        let directory = &self.hold.directory;
        let above = directory.rsplit_once('/').map_or("/", |(above, _)| above);
        let script = "rm -rf \"$0\"; rmdir \"$1\" 2>/dev/null; :";
        let argv = ["sh", "-c", script, directory, above];
        let removals = self.held.iter().map(|(name, remote)| async move {
            if let Err(error) = remote.run(&Command::program(argv)).await {
                tracing::debug!(host = &**name, %error, "the lock's directory is not removed there");
            }
        });
        futures::future::join_all(removals).await;
    }

    /// Gives the lock back, where hosts still answer.
    pub async fn release(self) {
        self.beating.abort();
        let hold = &self.hold;
        let releases = self.held.iter().map(|(name, remote)| async move {
            let given = remote.release_lock(&hold.directory, &hold.record);
            if !matches!(tokio::time::timeout(ANSWER, given).await, Ok(Ok(()))) {
                tracing::debug!(host = &**name, "the lock is not given back there");
            }
        });
        join_all(releases).await;
    }
}

/// Says on all hosts, again and again, that the holder is there.
struct Pulse {
    hold: Hold,
    majority: usize,
    opens: Opens,
}

type Heard = (Arc<str>, Option<Arc<Remote>>);

impl Pulse {
    async fn beat(self, mut hosts: Vec<Heard>) {
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
            tokio::time::sleep(BEAT).await;
        }
    }

    /// One host; opened anew if its connection was lost. The error is the host's word that the lock is another's, if it was.
    async fn heard(&self, name: &Arc<str>, remote: Option<Arc<Remote>>) -> Result<Arc<Remote>, Option<Arc<str>>> {
        let work = async {
            let remote = match remote {
                Some(remote) => remote,
                None => {
                    let door = (self.opens)(name.clone()).await.map_err(|_| None)?;
                    Arc::new(door.remote(Some(&self.hold)).await.map_err(refusal)?)
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
