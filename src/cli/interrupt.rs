//! How a person ends a run: Ctrl-C or SIGTERM once stops after the tasks in flight, a second one at once.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;

use crate::engine::{Event, Told};

/// Returns when the run is to end at once; sets `stopping` when it is to begin no further task.
pub async fn twice(stopping: &AtomicBool, events: &UnboundedSender<Told>) {
    let mut ways: Vec<Signal> =
        [SignalKind::interrupt(), SignalKind::terminate()].into_iter().filter_map(|kind| signal(kind).ok()).collect();
    for words in ["stopping after the tasks in flight; Ctrl-C again stops at once", "stopped at once"] {
        match ways.as_mut_slice() {
            [] => std::future::pending::<()>().await,
            ways => _ = futures::future::select_all(ways.iter_mut().map(|way| Box::pin(way.recv()))).await,
        }
        stopping.store(true, Ordering::Relaxed);
        // The report may have ended already.
        let _ = events.send(Event::Warning(words.to_string()).into());
    }
}
