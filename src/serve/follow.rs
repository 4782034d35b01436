//! The events of a run, as a list or as a stream that lasts until the run ends.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::stream;
use serde_json::Value as Json;
use tokio::sync::watch;

use super::problem::Problem;
use super::{Server, guard};
use crate::runs::{RecordedEvent, RecordedRun, RunId};
use crate::value::mutex::Mutex;

/// How often a run that is under way is looked at: four times a second, however many follow it.
const INTERVAL: Duration = Duration::from_millis(250);
/// How often a stream without events shows that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often a stream looks whether its login is still good.
const CHECK: Duration = if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(15) };
/// After how long a browser comes back when the connection was lost.
const RETRY: Duration = Duration::from_secs(2);

/// Which events are wanted.
#[derive(Debug, Clone, Default)]
pub(super) struct EventFilter {
    pub host: Option<String>,
    /// The id of a task.
    pub task: Option<u64>,
}

impl EventFilter {
    fn matches(&self, line: &str) -> bool {
        if self.host.is_none() && self.task.is_none() {
            return true;
        }
        // Most lines are of other hosts and tasks, and need not be parsed.
        let may_be = self.task.is_none_or(|task| line.contains(&format!("\"id\":{task}")));
        let may_be = may_be && self.host.as_deref().is_none_or(|host| line.contains(&Json::from(host).to_string()));
        let Some(event) = may_be.then(|| serde_json::from_str::<Json>(line).ok()).flatten() else { return false };
        self.host.as_deref().is_none_or(|host| event["host"] == host)
            && self.task.is_none_or(|task| event["task"]["id"] == task)
    }
}

/// Passes all events of a run that are there by now. May block.
pub(super) fn for_each_event(server: &Server, run: RunId, mut pass: impl FnMut(&str)) -> Result<(), Problem> {
    until_event(server, run, |line| {
        pass(line);
        true
    })
}

/// Passes the events of a run that are there by now, until `pass` wants no more. May block.
pub(super) fn until_event(server: &Server, run: RunId, mut pass: impl FnMut(&str) -> bool) -> Result<(), Problem> {
    let mut after = 0;
    loop {
        let events = server.stores.with_store(|store| store.read_events(run, after))?;
        let Some(last) = events.last() else { return Ok(()) };
        after = last.sequence;
        if !events.iter().all(|event| pass(&event.line)) {
            return Ok(());
        }
    }
}

/// At most so many events that match, and the number to continue after. May block.
pub(super) fn some_events(
    server: &Server,
    run: RunId,
    mut after: u64,
    filter: &EventFilter,
    most: usize,
) -> Result<(Vec<RecordedEvent>, Option<u64>), Problem> {
    let mut found = Vec::new();
    loop {
        let events = server.stores.with_store(|store| store.read_events(run, after))?;
        let Some(last) = events.last() else { return Ok((found, None)) };
        after = last.sequence;
        for event in events {
            if found.len() == most {
                return Ok((found, Some(event.sequence - 1)));
            }
            if filter.matches(&event.line) {
                found.push(event);
            }
        }
    }
}

/// How far a run is: the number of its last event, and whether it is running.
type Progress = (u64, bool);

/// The runs that are followed: one look serves all who follow a run.
#[derive(Default)]
pub(super) struct Followers {
    runs: Mutex<HashMap<RunId, watch::Receiver<Progress>>>,
}

impl Followers {
    /// Whether no run is followed.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.runs.lock().is_empty()
    }

    fn follow(server: &Arc<Server>, run: &RecordedRun) -> watch::Receiver<Progress> {
        let id = run.start.id;
        let mut runs = server.follow.runs.lock();
        let entry = match runs.entry(id) {
            Entry::Occupied(entry) => return entry.get().clone(),
            Entry::Vacant(entry) => entry,
        };
        let (sender, receiver) = watch::channel((run.last_sequence, run.running));
        entry.insert(receiver.clone());
        let server = server.clone();
        tokio::spawn(async move {
            loop {
                let found =
                    server.blocking(move |server| Ok(server.stores.with_store(|store| store.read_run(id))?)).await;
                let now = match found {
                    Ok(Some(run)) => (run.last_sequence, run.running),
                    // It was deleted: there is nothing more to come.
                    Ok(None) => (u64::MAX, false),
                    Err(_) => *sender.borrow(),
                };
                sender.send_if_modified(|before| std::mem::replace(before, now) != now);
                let mut runs = server.follow.runs.lock();
                // One receiver is in the map.
                if !now.1 || sender.receiver_count() <= 1 {
                    runs.remove(&id);
                    return;
                }
                drop(runs);
                tokio::time::sleep(INTERVAL).await;
            }
        });
        receiver
    }
}

/// What a stream needs to continue.
struct Position {
    server: Arc<Server>,
    /// Of the request: they say whose it is.
    headers: HeaderMap,
    /// When the login was last looked at.
    checked: Instant,
    run: RunId,
    after: u64,
    filter: EventFilter,
    progress: watch::Receiver<Progress>,
    ready: std::vec::IntoIter<RecordedEvent>,
    ended: bool,
}

/// Server-sent events: those there are, then those that come. When the run has ended and all was sent, the run itself is sent as `end`.
pub(super) fn event_stream(
    server: Arc<Server>,
    headers: HeaderMap,
    run: &RecordedRun,
    after: u64,
    filter: EventFilter,
) -> impl IntoResponse + use<> {
    let progress = Followers::follow(&server, run);
    let position = Position {
        server,
        headers,
        checked: Instant::now(),
        run: run.start.id,
        after,
        filter,
        progress,
        ready: Vec::new().into_iter(),
        ended: false,
    };
    let first = Event::default().retry(RETRY).comment("events of a run");
    let events = stream::unfold((Some(first), position), |(first, mut position)| async move {
        let event = match first {
            Some(first) => first,
            None => next_event(&mut position).await?,
        };
        Some((Ok::<_, Infallible>(event), (None, position)))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("waiting");
    // A proxy is not to hold events back.
    ([("x-accel-buffering", "no")], Sse::new(events).keep_alive(keep_alive))
}

/// None: the stream ends. A stream that cannot read ends too, and its reader comes back.
async fn next_event(position: &mut Position) -> Option<Event> {
    loop {
        if let Some(event) = position.ready.find(|event| position.filter.matches(&event.line)) {
            return Some(Event::default().id(event.sequence.to_string()).data(event.line));
        }
        if position.ended {
            return None;
        }
        // A login that has ended sees no more; one that follows a run is in use.
        if position.checked.elapsed() >= CHECK {
            guard::login_of(&position.server, &position.headers).await.ok()??;
            position.checked = Instant::now();
        }
        // Its state is read first: what was recorded before the end is read after it.
        let (_, running) = *position.progress.borrow_and_update();
        let (run, after) = (position.run, position.after);
        let read = move |server: &Server| Ok(server.stores.with_store(|store| store.read_events(run, after))?);
        let events = position.server.blocking(read).await.ok()?;
        if let Some(last) = events.last() {
            position.after = last.sequence;
            position.ready = events.into_iter();
            continue;
        }
        if running {
            let Ok(changed) = tokio::time::timeout(CHECK, position.progress.changed()).await else { continue };
            // The sender is gone when the run has ended.
            if changed.is_err() && position.progress.borrow().1 {
                return None;
            }
            continue;
        }
        position.ended = true;
        let read = move |server: &Server| Ok(server.stores.with_store(|store| store.read_run(run))?);
        let ended = position.server.blocking(read).await.ok()??;
        let text = serde_json::to_string(&ended).ok()?;
        return Some(Event::default().event("end").data(text));
    }
}
