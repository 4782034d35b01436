//! How a caller follows a run, and how it ends one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use super::Error;
use crate::engine::masking::masked;
use crate::engine::{self, Event, Job, Recap, TimedEvent};

/// The caller's handle of the runs that it started.
#[derive(Debug, Clone)]
pub struct Control {
    /// Takes the events of runs.
    pub events: UnboundedSender<TimedEvent>,
    /// Once true, no further task is begun.
    pub stopping: Arc<AtomicBool>,
    /// Becomes true when runs must end at once. If its sender is dropped, they are never ended.
    pub at_once: watch::Receiver<bool>,
}

impl Control {
    /// Whether nothing further is to be begun.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Runs a job. None: it was ended at once.
    ///
    /// # Errors
    /// It could not continue; another run took over its lock.
    pub async fn run(&self, job: Job) -> Result<Option<Recap>, Error> {
        self.run_into(job, self.events.clone()).await
    }

    /// Runs a job whose events only `each` sees, with secrets masked.
    ///
    /// # Errors
    /// As [`Control::run`].
    pub async fn watch(&self, job: Job, mut each: impl FnMut(&Event)) -> Result<Option<Recap>, Error> {
        let hidden = job.keyring.hidden.clone();
        self.watch_unmasked(job, |event| each(&masked(event.clone(), &hidden))).await
    }

    /// As [`Control::watch`], for values that only a program reads and no report shows.
    ///
    /// # Errors
    /// As [`Control::run`].
    pub async fn watch_unmasked(&self, job: Job, mut each: impl FnMut(&Event)) -> Result<Option<Recap>, Error> {
        let (sender, mut receiver) = unbounded_channel::<TimedEvent>();
        let watching = async {
            while let Some(reported) = receiver.recv().await {
                each(&reported.event);
            }
        };
        let (recap, ()) = tokio::join!(self.run_into(job, sender), watching);
        recap
    }

    async fn run_into(&self, job: Job, sender: UnboundedSender<TimedEvent>) -> Result<Option<Recap>, Error> {
        let hold = job.hold.clone();
        let lost = async {
            match &hold {
                Some(hold) => hold.lease.lost().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            result = Box::pin(engine::run(job, sender, self.stopping.clone())) => result.map(Some).map_err(Error::from),
            () = self.ended_at_once() => Ok(None),
            why = lost => Err(Error::LostLock(why.to_string())),
        }
    }

    async fn ended_at_once(&self) {
        if self.at_once.clone().wait_for(|ended| *ended).await.is_err() {
            std::future::pending().await
        }
    }
}
