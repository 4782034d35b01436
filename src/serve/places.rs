//! Places for connections: at most so many. When all are taken, the oldest one that nobody has logged in with makes room.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::value::mutex::Mutex;

/// The state of a connection: an extension of its requests.
#[derive(Default)]
pub(super) struct Visitor {
    is_known: AtomicBool,
    /// An answer is sent for as long as the client wants.
    is_stream: AtomicBool,
    was_asked: AtomicBool,
    leave: Notify,
}

impl Visitor {
    /// Whether the last request had a login.
    pub(super) fn set_known(&self, is_known: bool) {
        self.is_known.store(is_known, Ordering::Relaxed);
    }

    pub(super) fn set_stream(&self, is_stream: bool) {
        self.is_stream.store(is_stream, Ordering::Relaxed);
    }

    pub(super) fn is_stream(&self) -> bool {
        self.is_stream.load(Ordering::Relaxed)
    }

    /// Ends when another connection needs the place.
    pub(super) async fn until_asked(&self) {
        self.leave.notified().await;
    }
}

/// In the order in which they came.
type Visitors = Arc<Mutex<BTreeMap<u64, Arc<Visitor>>>>;

pub(super) struct Places {
    free: Arc<Semaphore>,
    there: Visitors,
    next: u64,
}

/// A place that is taken, until it is dropped.
pub(super) struct Place {
    pub visitor: Arc<Visitor>,
    number: u64,
    there: Visitors,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(most: usize) -> Places {
        Places { free: Arc::new(Semaphore::new(most)), there: Visitors::default(), next: 0 }
    }

    /// Takes a place, which another one may have to leave.
    pub(super) async fn take(&mut self) -> Place {
        let permit = match self.free.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.make_room();
                self.free.clone().acquire_owned().await.expect("it is never closed")
            }
        };
        let (visitor, number) = (Arc::new(Visitor::default()), self.next);
        self.next += 1;
        self.there.lock().insert(number, visitor.clone());
        Place { visitor, number, there: self.there.clone(), _permit: permit }
    }

    fn make_room(&self) {
        let there = self.there.lock();
        let strangers = there.values().filter(|visitor| !visitor.is_known.load(Ordering::Relaxed));
        if let Some(oldest) = strangers.into_iter().find(|visitor| !visitor.was_asked.swap(true, Ordering::Relaxed)) {
            oldest.leave.notify_one();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.there.lock().remove(&self.number);
    }
}
