//! How a person ends a run: Ctrl-C or SIGTERM once stops after the tasks in flight, a second one at once. A terminal that
//! is closed (SIGHUP, often sent twice) counts as the first Ctrl-C and never as the second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{oneshot, watch};

use super::ExitCode;
use crate::engine::{Event, TimedEvent};

/// How long a run that must end at once may take to report it. Its programs on hosts end with its connections.
const PATIENCE: Duration = Duration::from_secs(5);

/// Listens from now on for SIGTERM and Ctrl-C; the future ends with the first of them. For servers. To be called within the runtime.
pub(super) fn asked_to_end() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Who listens for Ctrl-C, until it is dropped.
pub(super) struct Interrupts {
    /// Both are there until the drop.
    thread: Option<JoinHandle<()>>,
    enough: Option<oneshot::Sender<()>>,
}

impl Interrupts {
    /// Starts to listen, on its own thread: the run's threads may all be busy with an endless template.
    /// Sets `stopping` when no further task is to be begun, and `at_once` when the run is to end at once.
    pub(super) fn listen(
        stopping: Arc<AtomicBool>,
        at_once: watch::Sender<bool>,
        events: &UnboundedSender<TimedEvent>,
    ) -> std::io::Result<Interrupts> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (enough, until) = oneshot::channel();
        // The events end with the run, even while a listener is left.
        let events = events.downgrade();
        let say = move |words: &str| {
            stopping.store(true, Ordering::Relaxed);
            if let Some(events) = events.upgrade() {
                #[expect(clippy::let_underscore_must_use, reason = "the report may have ended already")]
                let _ = events.send(Event::Warning(words.to_owned()).into());
            }
        };
        let listening = async move {
            let listened = |kinds: &[SignalKind]| kinds.iter().filter_map(|kind| signal(*kind).ok()).collect();
            let mut ways: Vec<Signal> = listened(&[SignalKind::interrupt(), SignalKind::terminate()]);
            // Listened to even when it is over, as it would end the program.
            let mut hangup: Vec<Signal> = if ignores_hangup() { Vec::new() } else { listened(&[SignalKind::hangup()]) };
            tokio::select! {
                () = next(&mut ways) => {}
                () = next(&mut hangup) => {}
            }
            say("stopping when the running tasks have finished; press Ctrl-C again to stop at once");
            next(&mut ways).await;
            say("stopped at once");
            at_once.send_replace(true);
            tokio::time::sleep(PATIENCE).await;
            std::process::exit(ExitCode::Interrupted as i32);
        };
        let listen = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = until => {}
                    () = listening => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("interrupts".into()).spawn(listen)?;
        Ok(Interrupts { thread: Some(thread), enough: Some(enough) })
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        drop(self.enough.take());
        // The panic is already reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Whether the program was started to outlive its terminal, as `nohup` does.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

async fn next(ways: &mut [Signal]) {
    match ways {
        [] => std::future::pending().await,
        ways => _ = futures::future::select_all(ways.iter_mut().map(|way| Box::pin(way.recv()))).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_listens_ends_when_nobody_wants_to_know() {
        let stopping: Arc<AtomicBool> = Arc::default();
        let (events, _) = tokio::sync::mpsc::unbounded_channel();
        let interrupts = Interrupts::listen(stopping.clone(), watch::channel(false).0, &events).unwrap();
        drop(interrupts);
        assert_eq!(Arc::strong_count(&stopping), 1, "a thread was left running");
    }
}
