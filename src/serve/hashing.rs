//! How many passwords are hashed at once: each takes 19 MiB of memory and a processor.

use std::time::Duration;

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const AT_ONCE: usize = 2;

/// How many wait for their turn, and how long at most.
const MOST_WAITING: usize = 32;
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// When those who find no place are to come back.
pub(super) const BUSY: Duration = Duration::from_secs(5);

pub(super) struct Hashing {
    turns: Arc<Semaphore>,
    waiting: Semaphore,
}

impl Default for Hashing {
    fn default() -> Hashing {
        Hashing { turns: Arc::new(Semaphore::new(AT_ONCE)), waiting: Semaphore::new(MOST_WAITING) }
    }
}

impl Hashing {
    /// Waits for a turn, which lasts until the answer is dropped. None: too many wait already.
    pub(super) async fn enter(&self) -> Option<OwnedSemaphorePermit> {
        let _waiting = self.waiting.try_acquire().ok()?;
        tokio::time::timeout(LONGEST_WAIT, self.turns.clone().acquire_owned()).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn few_passwords_are_hashed_at_once_and_not_too_many_wait() {
        let hashing = Hashing::default();
        let first = hashing.enter().await.unwrap();
        let _second = hashing.enter().await.unwrap();
        let mut waiting = Box::pin(futures::future::join_all((0..MOST_WAITING + 1).map(|_| hashing.enter())));
        assert!(futures::poll!(&mut waiting).is_pending());
        assert!(hashing.enter().await.is_none(), "too many wait");
        drop(first);
        let entered = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
        assert!(entered.is_err(), "one of them has the turn that ended, and keeps it");
    }
}
