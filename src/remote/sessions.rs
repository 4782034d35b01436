//! The sessions of one host: idle ones are used again, further ones opened up to what the connection allows.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::session::{BEAT, Session};
use super::{Become, Error, LockProof};
use crate::connection::{self, Connection};
use crate::value::mutex::Mutex;

/// All sessions of one host. An idle session is used again; while all are busy a further one is opened,
/// up to what the connection allows.
pub struct Sessions {
    connection: Arc<dyn Connection>,
    /// Least recently used first.
    idle: Mutex<Vec<(Option<Become>, Session)>>,
    /// One permit for each session in use.
    permits: Arc<Semaphore>,
    capacity: usize,
    /// One permit for each host that gets file content; shared with other hosts.
    uploads: Option<Arc<Semaphore>>,
    closing: watch::Sender<bool>,
    /// What changes show. None: the run holds no lock.
    proof: Option<LockProof>,
    /// Sends heartbeats to idle sessions.
    alive: std::sync::Once,
}

impl Sessions {
    pub fn new(connection: Arc<dyn Connection>) -> Arc<Self> {
        Sessions::sharing(connection, None, None)
    }

    /// As [`Sessions::new`]; content of more than 16 KiB goes to the host only with a permit of `uploads`, and nothing is
    /// changed without `proof`.
    pub fn sharing(
        connection: Arc<dyn Connection>,
        uploads: Option<Arc<Semaphore>>,
        proof: Option<LockProof>,
    ) -> Arc<Self> {
        let capacity = connection.capacity().max(1);
        Arc::new(Sessions {
            connection,
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(capacity)),
            capacity,
            uploads,
            closing: watch::channel(false).0,
            proof,
            alive: std::sync::Once::new(),
        })
    }

    /// Keeps idle sessions alive, for as long as these sessions are in use.
    fn keep_alive(self: &Arc<Self>) {
        let sessions = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(BEAT).await;
                let Some(sessions) = sessions.upgrade() else { return };
                for (_, session) in sessions.idle().iter_mut() {
                    session.is_alive();
                }
            }
        });
    }

    /// How many requests the open sessions have answered, while none is in use.
    #[cfg(test)]
    pub(crate) fn requests(&self) -> u64 {
        self.idle().iter().map(|(_, session)| session.requests()).sum()
    }

    pub fn connection(&self) -> &Arc<dyn Connection> {
        &self.connection
    }

    /// Ends every session, and what still runs in them; requests under way fail. The connection stays open.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        let count = u32::try_from(self.capacity).unwrap_or(u32::MAX);
        // Those in use fail at once; their users give the permits back.
        tokio::time::timeout(Duration::from_secs(5), self.permits.acquire_many(count)).await.ok();
        let idle = std::mem::take(&mut *self.idle());
        futures::future::join_all(idle.into_iter().map(|(_, session)| end(session))).await;
    }

    /// Takes a session of a user, for one request or several that belong together.
    pub(super) fn borrow_session<'a>(
        self: &'a Arc<Self>,
        user: Option<&'a Become>,
    ) -> BoxFuture<'a, Result<BorrowedSession, Error>> {
        Box::pin(async move {
            let permit = self.permits.clone().acquire_owned().await.expect("it is never closed");
            if *self.closing.borrow() || self.connection.is_closed() {
                let name = self.connection.description();
                return Err(connection::Error::Lost { name, reason: "it was closed".into() }.into());
            }
            while let Some(mut session) = self.take_idle(user) {
                if session.usable() {
                    return Ok(BorrowedSession {
                        session: Some(session),
                        user: user.cloned(),
                        sessions: self.clone(),
                        _permit: permit,
                    });
                }
            }
            self.alive.call_once(|| self.keep_alive());
            self.make_room();
            let mut session =
                Session::open(&self.connection, user, self.closing.subscribe(), self.uploads.clone()).await?;
            if let Some(proof) = &self.proof {
                Box::pin(session.show_lock_proof(proof, user)).await?;
            }
            let other = user.map(|user| user.user.as_str());
            tracing::debug!(connection = self.connection.description(), r#become = other, "session opened");
            Ok(BorrowedSession { session: Some(session), user: user.cloned(), sessions: self.clone(), _permit: permit })
        })
    }

    /// As [`Sessions::borrow_session`], to change something: nothing is, once the run's lock is another's.
    pub(super) fn take_to_change<'a>(
        self: &'a Arc<Self>,
        user: Option<&'a Become>,
    ) -> BoxFuture<'a, Result<BorrowedSession, Error>> {
        Box::pin(async move {
            if let Some(proof) = &self.proof {
                proof.holds().await?;
            }
            let mut lent = self.borrow_session(user).await?;
            lent.guard(true);
            Ok(lent)
        })
    }

    fn take_idle(&self, user: Option<&Become>) -> Option<Session> {
        let mut idle = self.idle();
        let at = idle.iter().rposition(|(owner, _)| owner.as_ref() == user)?;
        Some(idle.remove(at).1)
    }

    /// Drops idle sessions of other users until there is room for one more.
    fn make_room(&self) {
        let mut idle = self.idle();
        // With our own permit counted.
        let in_use = self.capacity - self.permits.available_permits().min(self.capacity);
        while !idle.is_empty() && idle.len() + in_use > self.capacity {
            let at = idle.iter().position(|(_, session)| !session.keeps_directories).unwrap_or(0);
            idle.remove(at);
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(Option<Become>, Session)>> {
        self.idle.lock()
    }
}

async fn end(mut session: Session) {
    session.close_session().await;
}

/// A session in use. It goes back when this is dropped, unless it is out of step.
pub(super) struct BorrowedSession {
    session: Option<Session>,
    user: Option<Become>,
    sessions: Arc<Sessions>,
    _permit: OwnedSemaphorePermit,
}

impl std::ops::Deref for BorrowedSession {
    type Target = Session;
    fn deref(&self) -> &Session {
        self.session.as_ref().expect("it is taken only in drop")
    }
}

impl std::ops::DerefMut for BorrowedSession {
    fn deref_mut(&mut self) -> &mut Session {
        self.session.as_mut().expect("it is taken only in drop")
    }
}

impl Drop for BorrowedSession {
    fn drop(&mut self) {
        if let Some(mut session) = self.session.take().filter(Session::in_step) {
            session.guard(false);
            self.sessions.idle().push((self.user.take(), session));
        }
    }
}
