//! The hold that a run has on its deployment: sessions show it to their host before every change, and a run that has
//! slept asks whether it is still its own. How a lock is taken is in `lock.rs`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::session::Session;
use super::{Become, Error, Remote, lock, quote, refused};

const HOLD: &str = include_str!("hold.sh");
/// How long a run may wait for the confirmation of its lock.
const PATIENCE: Duration = Duration::from_secs(30);

/// A run's hold on a deployment.
#[derive(Debug, Clone)]
pub struct DeploymentLease {
    /// The lock's, on every host.
    pub directory: Arc<str>,
    pub record: Arc<lock::Record>,
    /// Inventory names of the hosts that have a lock. Changes elsewhere are guarded by the lease alone.
    pub hosts: Arc<HashSet<Arc<str>>>,
    pub lease: Arc<Lease>,
    pub roots: Arc<RootSessions>,
}

impl DeploymentLease {
    /// What sessions on a host show.
    pub fn on(&self, host: &str) -> LockProof {
        let mark = self.hosts.get(host).map(|host| LockFile {
            directory: self.directory.clone(),
            record: self.record.clone(),
            host: host.clone(),
            roots: Arc::downgrade(&self.roots),
        });
        LockProof { mark, lease: self.lease.clone() }
    }
}

/// Root on each host that has a lock and answers: makes other users' sessions known beside it.
#[derive(Default)]
pub struct RootSessions(watch::Sender<HashMap<Arc<str>, Remote>>);

impl std::fmt::Debug for RootSessions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_set().entries(self.0.borrow().keys()).finish()
    }
}

impl RootSessions {
    /// Those that answer now.
    pub fn set_roots(&self, roots: HashMap<Arc<str>, Remote>) {
        self.0.send_replace(roots);
    }

    /// Root on a host; one that does not answer may do so again.
    async fn on(&self, host: &str) -> Option<Remote> {
        let mut roots = self.0.subscribe();
        let found = tokio::time::timeout(PATIENCE / 2, roots.wait_for(|roots| roots.contains_key(host))).await;
        found.ok()?.ok()?.get(host).cloned()
    }
}

impl LockFile {
    /// Root on the host; for another session, which cannot do `what` itself.
    async fn root(&self, what: &str) -> Result<Remote, Error> {
        let root = match self.roots.upgrade() {
            Some(roots) => roots.on(&self.host).await,
            None => None,
        };
        let reason =
            || format!("root's session, which keeps the list of sessions in {}, does not answer", self.directory);
        root.ok_or_else(|| Error::Refused { what: what.to_owned(), reason: reason() })
    }
}

/// What the sessions of one host show before each change.
#[derive(Debug, Clone)]
pub struct LockProof {
    /// None: the host has no lock.
    mark: Option<LockFile>,
    lease: Arc<Lease>,
}

/// The lock of a host, and its required content.
#[derive(Debug, Clone)]
struct LockFile {
    directory: Arc<str>,
    record: Arc<lock::Record>,
    host: Arc<str>,
    /// Root's sessions have such a mark themselves.
    roots: Weak<RootSessions>,
}

impl LockProof {
    /// Waits for the confirmation that this run still holds the lock.
    pub(super) async fn holds(&self) -> Result<(), Error> {
        self.lease.holds().await
    }
}

/// How long a majority of the hosts has confirmed the lock. No other run can take it over before that time ends, so within it
/// no check is needed; a run that was suspended past it checks again before any change.
#[derive(Debug)]
pub struct Lease(watch::Sender<State>);

#[derive(Debug, Clone)]
struct State {
    /// On [`uptime`]'s clock.
    confirmed: Option<Duration>,
    lost: Option<Arc<str>>,
}

impl Lease {
    /// How long a confirmation counts.
    pub const LENGTH: Duration = Duration::from_secs(15);

    /// A lease that no host has confirmed yet.
    pub fn unconfirmed() -> Arc<Lease> {
        Arc::new(Lease(watch::channel(State { confirmed: None, lost: None }).0))
    }

    /// A majority confirmed it, having been asked at `asked`.
    pub fn confirm(&self, asked: Duration) {
        self.0.send_modify(|state| state.confirmed = state.confirmed.max(Some(asked)));
    }

    /// Somebody else has the lock now; `why` is a sentence for a person.
    pub fn lose(&self, why: &str) {
        self.0.send_modify(|state| state.lost = Some(why.into()));
    }

    /// Resolves when the lock is lost, with the reason.
    pub async fn lost(&self) -> Arc<str> {
        let mut states = self.0.subscribe();
        let lost = states.wait_for(|state| state.lost.is_some()).await.map(|state| state.lost.clone());
        match lost {
            Ok(Some(why)) => why,
            // The sender is ours.
            _ => std::future::pending().await,
        }
    }

    /// Waits, for a while, until it is known that the lock is ours.
    pub async fn holds(&self) -> Result<(), Error> {
        self.holds_within(PATIENCE).await
    }

    async fn holds_within(&self, patience: Duration) -> Result<(), Error> {
        let fresh = |confirmed: Duration| uptime().saturating_sub(confirmed) < Lease::LENGTH;
        let known = |state: &State| state.lost.is_some() || state.confirmed.is_some_and(fresh);
        let mut states = self.0.subscribe();
        let refused = |reason: &str| Error::Refused { what: "change anything".into(), reason: reason.to_owned() };
        match tokio::time::timeout(patience, states.wait_for(known)).await {
            Ok(Ok(state)) => match &state.lost {
                Some(why) => Err(refused(why)),
                None => Ok(()),
            },
            _ => Err(refused("a majority of the hosts that hold the deployment's lock does not answer")),
        }
    }
}

/// Time since this machine was started, with the time that it slept.
pub fn uptime() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) writes a timespec, and that is what it is given.
    #[expect(unsafe_code, reason = "the comment at the unsafe block gives the reason")]
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) } != 0;
    assert!(!failed, "Linux has had this clock since 2.6.39");
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

impl Session {
    /// From now on the session can show the run's hold: it is made known beside the lock, by root. Where the host has an
    /// older lock, because it was unreachable when this run took the lock, root's session updates it.
    pub(super) async fn show_lock_proof(&mut self, proof: &LockProof, user: Option<&Become>) -> Result<(), Error> {
        let what = format!("register the session of {} on {}", self.account.user, self.host);
        let known = tokio::time::timeout(PATIENCE, self.enrol(proof, user, &what)).await;
        let late = || Error::TimedOut { what: format!("the attempt to {what}"), limit: PATIENCE };
        known.unwrap_or_else(|_| Err(late()))
    }

    async fn enrol(&mut self, proof: &LockProof, user: Option<&Become>, what: &str) -> Result<(), Error> {
        let Some(mark) = &proof.mark else { return Ok(()) };
        let (directory, record) = (&*mark.directory, &*mark.record);
        let lines = HOLD.lines().filter(|line| !line.starts_with('#'));
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        let text = text
            .replace("@DIRECTORY@", &quote::quote_path(directory)?)
            .replace("@TOKEN@", &record.token.to_string())
            .replace("@RUN@", record.run_id());
        self.write_script(&text).await?;
        // A session may report a wrong user; the requested user is right.
        let name = user.map_or(&*self.account.user, |user| user.user.trim_start_matches('#')).to_owned();
        let found = self.ask("wl_me").await?;
        let words = String::from_utf8_lossy(&found.stdout).into_owned();
        let mut numbers = words.split_whitespace().map(|word| word.parse::<u64>().ok());
        let (Some(Some(process)), Some(Some(began)), writes) = (numbers.next(), numbers.next(), numbers.next()) else {
            return Err(refused(what, &found.stderr));
        };
        // Root's own sessions update the lock there, so that this session finds one.
        let root = match name == "root" || writes == Some(Some(1)) {
            true => None,
            false => Some(mark.root(what).await?),
        };
        let may = self.ask("wl_may").await?;
        if may.code != 0 {
            self.raise(proof, directory, record, &may.stderr).await?;
        }
        let shell = (u32::try_from(process).unwrap_or_default(), began);
        let enrol = lock::enrol(directory, record, shell, &name, self.by_ssh())?;
        let known = match root {
            None => self.ask(&format!("wl_g=$( {enrol} )")).await?,
            Some(root) => root.session().await?.ask(&enrol).await?,
        };
        match known.code {
            0 => self.bears = true,
            _ => return Err(refused(what, &known.stderr)),
        }
        Ok(())
    }

    /// Brings a host's lock up to date that is older than ours. A newer one says whose the deployment is now, as `why` does.
    async fn raise(
        &mut self,
        proof: &LockProof,
        directory: &str,
        record: &lock::Record,
        why: &[u8],
    ) -> Result<(), Error> {
        let seen =
            self.ask("wl_i=0; { read -r wl_i wl_v <\"$wl_f/lock\"; } 2>/dev/null; printf %s \"${wl_i:-0}\"").await?;
        let token = String::from_utf8_lossy(&seen.stdout).trim().parse().unwrap_or(u64::MAX);
        if token >= record.token || self.account.user != "root" {
            return Err(refused(format!("hold the lock {directory}"), why));
        }
        proof.holds().await?;
        let raised = self.ask(&lock::raise(directory, record)?).await?;
        lock::claimed(directory, &raised)?.taken(directory)
    }

    /// Requests from now on change something, and are refused where the lock is not ours any more.
    pub(super) fn guard(&mut self, guarded: bool) {
        self.guards = guarded && self.bears;
    }

    /// Shell text that is run only if the lock is still ours.
    pub(super) fn guarded(&self, body: &str) -> String {
        if self.guards { format!("wl_may && {{ {body}\n}}") } else { body.to_owned() }
    }

    /// As [`Session::guarded`], for the end of a write.
    pub(super) fn guarded_end(&self, body: &str) -> String {
        if self.guards { format!("if wl_may; then {body}\nelse wl_drop; fi") } else { body.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lease_that_is_out_waits_for_a_new_confirmation() {
        let lease = Lease::unconfirmed();
        lease.confirm(uptime());
        lease.holds().await.unwrap();
        let old = Lease::unconfirmed();
        old.confirm(uptime().saturating_sub(Lease::LENGTH));
        let error = old.holds_within(Duration::from_millis(20)).await.unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot change anything: a majority of the hosts that hold the deployment's lock does not answer"
        );
        let (waited, ()) = tokio::join!(old.holds(), async { old.confirm(uptime()) });
        waited.unwrap();
    }

    #[tokio::test]
    async fn a_lost_lease_never_comes_back() {
        let lease = Lease::unconfirmed();
        lease.lose("bob@ws has it");
        lease.confirm(uptime());
        assert_eq!(lease.holds().await.unwrap_err().to_string(), "cannot change anything: bob@ws has it");
        assert_eq!(&*lease.lost().await, "bob@ws has it");
    }
}
