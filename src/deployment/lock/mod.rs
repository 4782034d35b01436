//! The lock of a deployment: held on a majority of its hosts, kept alive, given back. One host's part is `remote::lock`.
//!
//! A token is one more than the highest that a majority has seen, so the later of two runs has the higher one. A run whose lock
//! was taken over is refused by every host that knows the new token, and stops on its own, because its lease expires before the
//! other run begins.

mod heartbeat;
pub mod holder;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};

use crate::connection::Connection;
use crate::remote::lock::{LockAttempt, LockState, Record};
use crate::remote::{self, Become, DeploymentLease, Lease, Remote, RootSessions, Sessions};
pub use heartbeat::Lock;
use holder::Process;

/// How long a host may take for anything that has to do with its lock. One that takes longer does not answer.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 30 });
/// What host clocks with whole seconds may be wrong by.
const MARGIN: Duration = Duration::from_secs(2);
/// How often a holder whose connections have just ended is asked after.
const PAUSE: Duration = Duration::from_millis(500);
/// How often to retry a claim that collided with another run's.
const TURNS: u64 = 5;

/// A host of the deployment, reached as root.
#[derive(Clone)]
pub struct LockHost {
    pub name: Arc<str>,
    pub connection: Arc<dyn Connection>,
    pub user: Option<Become>,
}

impl LockHost {
    pub(super) async fn remote(&self, hold: Option<&DeploymentLease>) -> Result<Remote, remote::Error> {
        let proof = hold.map(|hold| hold.on(&self.name));
        let sessions = Sessions::sharing(self.connection.clone(), None, proof);
        Remote::open(&sessions, self.user.as_ref(), &indexmap::IndexMap::new()).await
    }
}

/// Connects to a host as root, to take its lock.
pub type OpenLockHost = Arc<dyn Fn(Arc<str>) -> BoxFuture<'static, Result<LockHost, String>> + Send + Sync>;

/// A host as root, to look at and to take the lock; or why it does not answer.
///
/// # Errors
/// It cannot be reached, or not in time.
pub async fn open_lock_host(opens: &OpenLockHost, name: &Arc<str>) -> Result<(LockHost, Remote), String> {
    let open = async {
        let lock_host = opens(name.clone()).await?;
        let remote = lock_host.remote(None).await.map_err(|error| format!("{name}: {error}"))?;
        Ok((lock_host, remote))
    };
    let late = |_| Err(format!("{name}: timed out after {} s", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, open).await.unwrap_or_else(late)
}

/// What a host does, or that it takes too long.
pub(super) async fn within<T>(work: impl Future<Output = Result<T, remote::Error>>) -> Result<T, remote::Error> {
    let late = |_| remote::Error::TimedOut { what: "the lock request".into(), limit: PATIENCE };
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}", held(.0))]
    Held(Box<Holder>),
    #[error("cannot lock the deployment: this needs {needed} of its {all} hosts, and only {reached} answered: {why}")]
    NoMajority { reached: usize, all: usize, needed: usize, why: String },
    #[error("cannot lock the deployment: another run is taking the lock at the same time")]
    Contended,
    #[error(
        "cannot lock the deployment: the tokens on its hosts are at the maximum, which no run reaches; remove {file} from them while \
         nothing runs"
    )]
    NoToken { file: String },
}

/// Who holds a lock, as far as the hosts know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub record: Record,
    /// The time since its last heartbeat.
    pub silent: Duration,
    /// Since when it holds it, by this machine's clock.
    pub age: Duration,
    /// The hosts cannot tell whether it is still there.
    pub unsure: bool,
}

fn held(holder: &Holder) -> String {
    let Record { holder: who, pid, command, .. } = &holder.record;
    let (age, silent) = (duration_text(holder.age), duration_text(holder.silent));
    let unsure = match holder.unsure {
        true => "; it runs windlass 0.1.0, so the hosts cannot tell whether it has ended",
        false => "",
    };
    format!("locked by {who}: {command} (pid {pid}), held for {age}, last heartbeat {silent} ago{unsure}")
}

/// `45 s`, `12 min`, `3 h`
pub fn duration_text(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// By how much a host's token may be above that of most hosts. Every try for the lock adds one.
const LEAP: u64 = 1_000_000;

/// The highest token that a run can have written, by those of the hosts: one host alone must not use them up.
fn believable(mut tokens: Vec<u64>) -> u64 {
    tokens.sort_unstable();
    let middle = tokens.get(tokens.len().saturating_sub(1) / 2).copied().unwrap_or_default();
    middle.saturating_add(LEAP)
}

/// What is known of the run that a lock names.
struct OtherRun {
    record: Record,
    /// What further hosts say of it: it has ended only if all of them say so.
    further: Vec<Record>,
    silent: Duration,
    /// None: some host cannot tell.
    sessions: Option<usize>,
}

/// What was claimed.
struct ClaimedHosts<'d> {
    hosts: Vec<(&'d LockHost, &'d Remote)>,
    /// For how long others may still believe that they hold it.
    waits: Duration,
}

/// How a lock is to be taken.
pub struct LockOptions<'a> {
    /// All hosts of the deployment that hold its lock, sorted.
    pub hosts: &'a [Arc<str>],
    /// The lock's directory on each.
    pub directory: &'a str,
    /// This run; its token is found here.
    pub run: Record,
    /// A holder that is still there is taken over, too.
    pub breaks: bool,
    pub opens: OpenLockHost,
    /// Receives messages for the user while it waits.
    pub tell: &'a (dyn Fn(&str) + Send + Sync),
}

impl LockOptions<'_> {
    fn majority(&self) -> usize {
        self.hosts.len() / 2 + 1
    }

    /// Takes the lock on as many hosts as answer.
    ///
    /// # Errors
    /// Somebody holds it, or too few hosts answer.
    pub async fn acquire(mut self) -> Result<Lock, Error> {
        let open = self.hosts.iter().map(|name| open_lock_host(&self.opens, name));
        let mut why = Vec::new();
        let mut lock_hosts = Vec::new();
        for opened in join_all(open).await {
            match opened {
                Ok(lock_host) => lock_hosts.push(lock_host),
                Err(reason) => why.push(reason),
            }
        }
        self.needs(lock_hosts.len(), &why)?;
        for turn in 0..TURNS {
            let others = self.wait_for_ending(&mut lock_hosts, &mut why).await?;
            let over = self.judged(others)?;
            if let Some(claims) = self.claim(&lock_hosts, &over, &mut why).await? {
                return self.enter(claims, &over, why).await;
            }
            let pause = rand::random_range(100..1000) * (turn + 1);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        Err(Error::Contended)
    }

    /// Who holds the lock, without taking it: a run that may still be there. None also if too few hosts answer to know it.
    pub async fn holder(mut self) -> Option<Holder> {
        let open = self.hosts.iter().map(|name| open_lock_host(&self.opens, name));
        let mut lock_hosts: Vec<_> = join_all(open).await.into_iter().flatten().collect();
        let others = self.look(&mut lock_hosts, &mut Vec::new()).await.ok()?;
        match self.judged(others) {
            Err(Error::Held(holder)) => Some(*holder),
            _ => None,
        }
    }

    fn needs(&self, reached: usize, why: &[String]) -> Result<(), Error> {
        let (needed, all) = (self.majority(), self.hosts.len());
        match reached >= needed {
            true => Ok(()),
            false => Err(Error::NoMajority { reached, all, needed, why: why.join("; ") }),
        }
    }

    /// What the hosts say; a holder whose process has ended may leave shells there for a moment. Hosts that do not answer are
    /// left out from now on.
    async fn wait_for_ending(
        &mut self,
        lock_hosts: &mut Vec<(LockHost, Remote)>,
        why: &mut Vec<String>,
    ) -> Result<Vec<OtherRun>, Error> {
        let begun = tokio::time::Instant::now();
        let mut said = false;
        loop {
            let others = self.look(lock_hosts, why).await?;
            // Elsewhere, one that has no shells any more may come back while its lease lasts.
            let ends = |other: &OtherRun| {
                holder::process(&other.record) == Process::Elsewhere
                    && other.sessions == Some(0)
                    && other.silent < Lease::LENGTH + MARGIN
            };
            // A host's clock may have been set back: how long its holder is silent is then never known.
            if self.breaks || begun.elapsed() > PATIENCE || !others.iter().any(ends) {
                return Ok(others);
            }
            if !said {
                (self.tell)("the lock holder seems to have ended: waiting until this is certain");
                said = true;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whom the hosts' locks name beside us.
    async fn look(
        &mut self,
        lock_hosts: &mut Vec<(LockHost, Remote)>,
        why: &mut Vec<String>,
    ) -> Result<Vec<OtherRun>, Error> {
        let looks = join_all(lock_hosts.iter().map(|(_, remote)| within(remote.lock(self.directory)))).await;
        let tokens = looks.iter().flatten().map(|seen| seen.as_ref().map_or(0, |seen| seen.record.token));
        let most = believable(tokens.collect());
        let mut others: Vec<OtherRun> = Vec::new();
        for ((lock_host, remote), seen) in std::mem::take(lock_hosts).into_iter().zip(looks) {
            let seen = match seen {
                Ok(seen) => seen,
                Err(error) => {
                    why.push(format!("{}: {error}", lock_host.name));
                    continue;
                }
            };
            if let Some(LockState { record, .. }) = seen.as_ref().filter(|seen| seen.record.token > most) {
                let reason = format!(
                    "{}: {}/lock has the token {}, which no run can have written; remove the file while nothing runs",
                    lock_host.name, self.directory, record.token
                );
                (self.tell)(&reason);
                why.push(reason);
                continue;
            }
            lock_hosts.push((lock_host, remote));
            let Some(LockState { record, silent, sessions }) = seen else { continue };
            self.run.token = self.run.token.max(record.token);
            if record.run.is_none() || record.run == self.run.run {
                continue;
            }
            match others.iter_mut().find(|other| other.record.run == record.run) {
                Some(other) => {
                    other.further.push(record);
                    other.silent = other.silent.min(silent);
                    other.sessions = other.sessions.zip(sessions).map(|(one, more)| one.saturating_add(more));
                }
                None => others.push(OtherRun { record, further: Vec::new(), silent, sessions }),
            }
        }
        self.needs(lock_hosts.len(), why)?;
        Ok(others)
    }

    /// Those whose lock may be taken over.
    fn judged(&self, others: Vec<OtherRun>) -> Result<Vec<Record>, Error> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let mut over = Vec::new();
        for other in others {
            let gone =
                std::iter::once(&other.record).chain(&other.further).all(|record| match holder::process(record) {
                    Process::Ended => true,
                    Process::Here => false,
                    Process::Elsewhere => other.sessions == Some(0),
                });
            if !gone && !self.breaks {
                let age = now.saturating_sub(Duration::from_secs(other.record.since));
                let unsure = other.sessions.is_none();
                let holder = Holder { record: other.record, silent: other.silent, age, unsure };
                return Err(Error::Held(Box::new(holder)));
            }
            over.push(other.record);
        }
        Ok(over)
    }

    /// Claims host by host, all runs in the same order, so that of two runs the first one on the first host continues.
    /// None: another run was first.
    async fn claim<'d>(
        &mut self,
        lock_hosts: &'d [(LockHost, Remote)],
        over: &[Record],
        why: &mut Vec<String>,
    ) -> Result<Option<ClaimedHosts<'d>>, Error> {
        self.run.token = self
            .run
            .token
            .checked_add(1)
            .filter(|token| *token < 1 << 62)
            .ok_or_else(|| Error::NoToken { file: format!("{}/lock", self.directory) })?;
        let mut claims = ClaimedHosts { hosts: Vec::new(), waits: Duration::ZERO };
        for (lock_host, remote) in lock_hosts {
            match within(self.claim_on(remote, over)).await {
                Ok(Some(waits)) => {
                    claims.waits = claims.waits.max(waits);
                    claims.hosts.push((lock_host, remote));
                }
                Ok(None) => {
                    self.undo(&claims).await;
                    return Ok(None);
                }
                Err(error) => why.push(format!("{}: {error}", lock_host.name)),
            }
        }
        if let Err(error) = self.needs(claims.hosts.len(), why) {
            self.undo(&claims).await;
            return Err(error);
        }
        Ok(Some(claims))
    }

    /// Claims one host: how long the former lock holder may still consider the lock its own. None: another run has it.
    async fn claim_on(&self, remote: &Remote, over: &[Record]) -> Result<Option<Duration>, remote::Error> {
        let seen = remote.lock(self.directory).await?;
        let found = seen.and_then(|seen| over.iter().find(|other| other.run == seen.record.run));
        let ended = found.is_none_or(|other| holder::process(other) == Process::Ended);
        Ok(match remote.claim_lock(self.directory, &self.run, found).await? {
            LockAttempt::Taken { .. } if ended => Some(Duration::ZERO),
            LockAttempt::Taken { silent } => Some((Lease::LENGTH + MARGIN).saturating_sub(silent)),
            LockAttempt::Held(_) | LockAttempt::Low(_) => None,
        })
    }

    async fn undo(&self, claims: &ClaimedHosts<'_>) {
        let undone = claims.hosts.iter().map(|(_, remote)| within(remote.release_lock(self.directory, &self.run)));
        join_all(undone).await;
    }

    /// Writes the lock on the hosts, which ends the programs of former lock holders there, starts the heartbeat, and waits until those
    /// before can do nothing any more.
    async fn enter(self, claims: ClaimedHosts<'_>, over: &[Record], mut why: Vec<String>) -> Result<Lock, Error> {
        let hold = DeploymentLease {
            directory: self.directory.into(),
            record: Arc::new(self.run.clone()),
            hosts: Arc::new(self.hosts.iter().cloned().collect::<HashSet<_>>()),
            lease: Lease::unconfirmed(),
            roots: Arc::new(RootSessions::default()),
        };
        if let Some(other) = over.first() {
            (self.tell)(&format!("taking over the lock from {} ({})", other.holder, other.command));
        }
        let shown = claims.hosts.iter().map(|(lock_host, _)| within(lock_host.remote(Some(&hold))));
        let mut held = Vec::new();
        for ((lock_host, _), shown) in claims.hosts.iter().zip(join_all(shown).await) {
            match shown {
                Ok(remote) => held.push((lock_host.name.clone(), remote)),
                Err(error) => why.push(format!("{}: {error}", lock_host.name)),
            }
        }
        if let Err(error) = self.needs(held.len(), &why) {
            self.undo(&claims).await;
            return Err(error);
        }
        let lock = Lock::start_heartbeat(hold, held, self.majority(), self.opens.clone());
        if !claims.waits.is_zero() {
            (self.tell)(&format!(
                "waiting {} s until the previous lock holder can change nothing more",
                claims.waits.as_secs()
            ));
            tokio::time::sleep(claims.waits).await;
        }
        Ok(lock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{self, Process as Program, Stream, local::Local};

    /// This machine, or a host that accepts a connection and then says nothing.
    #[derive(Debug)]
    struct Host(Option<Local>);

    #[async_trait::async_trait]
    impl Connection for Host {
        async fn start(&self, line: &str) -> Result<Program, connection::Error> {
            match &self.0 {
                Some(local) => local.start(line).await,
                None => std::future::pending().await,
            }
        }
        async fn tunnel(&self, _host: &str, _port: u16) -> Result<Box<dyn Stream>, connection::Error> {
            std::future::pending().await
        }
        fn capacity(&self) -> usize {
            8
        }
        fn is_closed(&self) -> bool {
            false
        }
        fn description(&self) -> String {
            "a host".into()
        }
        async fn close(&self) {}
    }

    /// Hosts that share a lock's directory; those whose names begin with `silent` do not answer.
    async fn acquired(names: &[&str], directory: &str) -> Result<Lock, Error> {
        let hosts: Vec<Arc<str>> = names.iter().map(|name| Arc::from(*name)).collect();
        let opens: OpenLockHost = Arc::new(|name: Arc<str>| {
            let host = Host((!name.starts_with("silent")).then(|| Local::new("here", Arc::default())));
            Box::pin(async { Ok(LockHost { name, connection: Arc::new(host), user: None }) })
        });
        let run = holder::this_run(&Default::default(), "windlass apply");
        LockOptions { hosts: &hosts, directory, run, breaks: false, opens, tell: &|_| () }.acquire().await
    }

    #[tokio::test]
    async fn a_majority_is_enough_and_no_host_is_waited_for_without_end() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("lock");
        let directory = directory.to_str().unwrap();
        let limit = PATIENCE * 10;
        let taken = tokio::time::timeout(limit, acquired(&["h1", "h2", "silent1"], directory)).await.unwrap().unwrap();
        assert_eq!(taken.hosts().len(), 2);
        taken.release().await;
        let none = tokio::time::timeout(limit, acquired(&["h1", "silent1", "silent2"], directory)).await.unwrap();
        let words = none.err().unwrap().to_string();
        assert!(words.contains("needs 2 of its 3 hosts, and only 1 answered: silent1: timed out after"), "{words}");
    }

    #[test]
    fn one_host_does_not_use_up_the_tokens() {
        assert_eq!(believable(vec![]), LEAP);
        assert_eq!(believable(vec![7, 1 << 61, 8]), 8 + LEAP);
        assert_eq!(believable(vec![7, 1 << 61]), 7 + LEAP);
        assert!(believable(vec![40, 43, 40]) >= 43);
    }

    #[test]
    fn a_holder_has_ended_only_if_all_hosts_say_so() {
        let opens: OpenLockHost = Arc::new(|_| Box::pin(async { Err("no host is asked".to_owned()) }));
        let asked = LockOptions {
            hosts: &[],
            directory: "",
            run: holder::this_run(&Default::default(), "windlass apply"),
            breaks: false,
            opens,
            tell: &|_| (),
        };
        let here = holder::this_run(&Default::default(), "windlass apply");
        let mut ended = here.clone();
        ended.pid = 0x7fff_fff0;
        assert_eq!((holder::process(&here), holder::process(&ended)), (Process::Here, Process::Ended));
        let judged = |record: &Record, further: &[Record]| {
            let (record, further) = (record.clone(), further.to_vec());
            asked.judged(vec![OtherRun { record, further, silent: Duration::ZERO, sessions: Some(1) }])
        };
        assert!(judged(&ended, std::slice::from_ref(&ended)).is_ok());
        assert!(judged(&ended, std::slice::from_ref(&here)).is_err());
        assert!(judged(&here, &[ended.clone(), ended.clone()]).is_err());
    }
}
