//! Records one run in a thread of its own, so that a slow disk or another process in the database holds up nothing. What cannot be
//! recorded is reported once, and the run continues; the caller can wait until its start is recorded.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::{Error, RecordedEvent, Retention, RunEnd, RunId, RunStart, RunStore, RunSummary};
use crate::value::mutex::Mutex;

/// How many batches may wait for the thread.
const BATCHES: usize = 16;

/// How much text goes into one transaction, roughly.
const LONGEST_BATCH: usize = 4 << 20;

/// How much text may wait when these are full. More, and the rest of the run is not recorded.
const WAITING: usize = 64 << 20;

/// How long the end of a run waits until the store has everything.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long events wait for others, which go into the same transaction. Who follows a run looks for events
/// less often than that.
const LINGER: Duration = Duration::from_millis(100);

const TOO_SLOW: &str = "it is too slow; the end of this run is not recorded";

/// Gets whether the start of a run is in the store.
pub type StartRecorded = tokio::sync::oneshot::Sender<Result<(), String>>;

/// Opens the store; called on the recorder's thread.
pub type OpenStore = Box<dyn FnOnce() -> Result<Box<dyn RunStore>, Error> + Send>;

/// The thread that records a run, and what it has not got yet.
pub struct Recorder {
    batches: SyncSender<Batch>,
    /// Events that the thread has no room for.
    pending: Vec<RecordedEvent>,
    pending_bytes: usize,
    done: Receiver<()>,
    problem: Problem,
    /// The rest of the events is not recorded.
    incomplete: bool,
}

/// The first thing that went wrong, until it was reported.
#[derive(Clone, Default)]
struct Problem(Arc<Mutex<ProblemState>>);

#[derive(Default)]
struct ProblemState {
    words: Option<String>,
    happened: bool,
}

impl Problem {
    fn set(&self, words: impl Into<String>) {
        let mut state = self.0.lock();
        if !state.happened {
            *state = ProblemState { words: Some(words.into()), happened: true };
        }
    }

    fn has_happened(&self) -> bool {
        self.0.lock().happened
    }
}

struct Batch {
    events: Vec<RecordedEvent>,
    summary: RunSummary,
    end: Option<RunEnd>,
}

impl Recorder {
    /// Starts to record.
    pub fn start_recording(
        start: RunStart,
        retention: Retention,
        open: OpenStore,
        started: Option<StartRecorded>,
    ) -> Recorder {
        let (batches, receiver) = sync_channel(BATCHES);
        let (ended, done) = channel();
        let problem = Problem::default();
        let told = problem.clone();
        let record = move || {
            let store = open_for(&start, open);
            if let Some(started) = started {
                // A caller who does not wait has ended.
                drop(started.send(store.as_ref().map(drop).map_err(Clone::clone)));
            }
            let recorded = store.and_then(|store| record(start.id, store, &retention, &receiver, &told));
            if let Err(error) = recorded {
                told.set(error);
            }
            drop(ended);
        };
        if let Err(error) = thread::Builder::new().name("run store".into()).spawn(record) {
            problem.set(error.to_string());
        }
        Recorder { batches, pending: Vec::new(), pending_bytes: 0, done, problem, incomplete: false }
    }

    /// Adds events. Never waits.
    pub fn add_events(&mut self, events: Vec<RecordedEvent>, summary: &RunSummary) {
        if self.incomplete || self.problem.has_happened() {
            return;
        }
        self.pending_bytes += events.iter().map(|event| event.line.len()).sum::<usize>();
        self.pending.extend(events);
        let batch = Batch { events: std::mem::take(&mut self.pending), summary: summary.clone(), end: None };
        match self.batches.try_send(batch) {
            Ok(()) => self.pending_bytes = 0,
            Err(TrySendError::Full(batch)) if self.pending_bytes <= WAITING => self.pending = batch.events,
            Err(_) => {
                self.incomplete = true;
                self.problem.set("it is too slow; the rest of this run is not recorded");
            }
        }
    }

    /// Records the end, and waits a moment until all is in the store.
    pub fn finish_recording(&mut self, summary: &RunSummary, end: RunEnd) {
        let until = Instant::now() + PATIENCE;
        let end = RunEnd { complete: end.complete && !self.incomplete, ..end };
        let events = std::mem::take(&mut self.pending);
        let mut batch = Batch { events, summary: summary.clone(), end: Some(end) };
        while let Err(TrySendError::Full(back)) = self.batches.try_send(batch) {
            if Instant::now() > until {
                return self.problem.set(TOO_SLOW);
            }
            batch = back;
            thread::sleep(Duration::from_millis(10));
        }
        // The thread drops its sender when it is done or has failed.
        if self.done.recv_timeout(until.saturating_duration_since(Instant::now())) == Err(RecvTimeoutError::Timeout) {
            self.problem.set(TOO_SLOW);
        }
    }

    /// What went wrong, once.
    pub fn take_problem(&self) -> Option<String> {
        self.problem.0.lock().words.take()
    }
}

/// The store, with the start of the run in it.
fn open_for(start: &RunStart, open: OpenStore) -> Result<Box<dyn RunStore>, String> {
    let failed = |error: Error| error.to_string();
    let mut store = open().map_err(failed)?;
    store.record_start(start).map_err(failed)?;
    Ok(store)
}

/// What the thread does.
fn record(
    run: RunId,
    mut store: Box<dyn RunStore>,
    retention: &Retention,
    batches: &Receiver<Batch>,
    problem: &Problem,
) -> Result<(), String> {
    let failed = |error: Error| error.to_string();
    // Without these events a later one would leave a gap.
    let mut incomplete = false;
    while let Ok(mut batch) = batches.recv() {
        let until = Instant::now() + LINGER;
        let mut length: usize = batch.events.iter().map(|event| event.line.len()).sum();
        while batch.end.is_none()
            && length < LONGEST_BATCH
            && let Ok(more) = batches.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            length += more.events.iter().map(|event| event.line.len()).sum::<usize>();
            batch.events.extend(more.events);
            (batch.summary, batch.end) = (more.summary, more.end);
        }
        if incomplete {
            batch.events.clear();
        }
        if let Err(error) = store.record_events(run, &batch.events, &batch.summary) {
            incomplete = true;
            problem.set(failed(error));
        }
        if let Some(end) = batch.end {
            store.record_end(run, &RunEnd { complete: end.complete && !incomplete, ..end }).map_err(failed)?;
            let deleted = store.delete_old_runs(retention);
            return deleted.map(drop).map_err(|error| format!("cannot delete old runs: {error}"));
        }
    }
    // There was no end, so the run counts as interrupted.
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::runs::{RunFilter, RunOutcome, open_store};

    const RETENTION: Retention = Retention { count: 10, age: Duration::from_secs(1000) };

    fn start() -> RunStart {
        let started = SystemTime::now();
        RunStart {
            id: RunId::new_at(started),
            command: "apply".to_owned(),
            command_line: "windlass apply".to_owned(),
            user: "alice@ws".to_owned(),
            pid: 7,
            version: "0.1.0".to_owned(),
            check: false,
            started,
        }
    }

    fn event(sequence: u64) -> Vec<RecordedEvent> {
        vec![RecordedEvent { sequence, line: format!("{{\"sequence\":{sequence}}}") }]
    }

    fn end() -> RunEnd {
        RunEnd { ended: SystemTime::now(), outcome: RunOutcome::Succeeded, exit_code: 0, complete: true }
    }

    fn until_problem(recorder: &Recorder) -> String {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            match recorder.take_problem() {
                Some(problem) => return problem,
                None => assert!(Instant::now() < until, "no problem is reported"),
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_is_added_is_in_the_store_when_the_run_has_ended() {
        let scratch = tempfile::tempdir().unwrap();
        let (start, directory) = (start(), scratch.path().to_owned());
        let mut recorder =
            Recorder::start_recording(start.clone(), RETENTION, Box::new(move || open_store(&directory)), None);
        for sequence in 1..=100 {
            recorder.add_events(event(sequence), &RunSummary::default());
        }
        recorder.finish_recording(&RunSummary::default(), end());
        assert_eq!(recorder.take_problem(), None);
        let mut store = open_store(scratch.path()).unwrap();
        let [run] = &store.find_runs(&RunFilter::default()).unwrap()[..] else { panic!("not one run") };
        assert_eq!((run.outcome, run.complete, run.last_sequence), (Some(RunOutcome::Succeeded), true, 100));
        assert_eq!(store.read_events(start.id, 0).unwrap(), (1..=100).flat_map(event).collect::<Vec<_>>());
    }

    #[test]
    fn a_store_that_cannot_be_opened_is_reported_once() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("file");
        std::fs::write(&file, "").unwrap();
        let directory = file.join("windlass");
        let beginning = format!("{}: ", directory.display());
        let open = move || open_store(&directory);
        let mut recorder = Recorder::start_recording(start(), RETENTION, Box::new(open), None);
        let problem = until_problem(&recorder);
        assert!(problem.starts_with(&beginning), "{problem}");
        for sequence in 1..=100 {
            recorder.add_events(event(sequence), &RunSummary::default());
        }
        recorder.finish_recording(&RunSummary::default(), end());
        assert_eq!((recorder.take_problem(), recorder.pending.len()), (None, 0));
    }

    #[test]
    fn after_a_full_disk_no_events_are_recorded_but_the_end() {
        let scratch = tempfile::tempdir().unwrap();
        let (start, directory) = (start(), scratch.path().to_owned());
        let open = move || Ok(Box::new(crate::runs::sqlite::tests::with_room_for(&directory, 12)) as Box<dyn RunStore>);
        let mut recorder = Recorder::start_recording(start.clone(), RETENTION, Box::new(open), None);
        recorder.add_events(event(1), &RunSummary::default());
        let noise: String = (0..80_000).map(|_| char::from(rand::random_range(b'a'..=b'z'))).collect();
        thread::sleep(Duration::from_millis(200));
        recorder.add_events(vec![RecordedEvent { sequence: 2, line: noise }], &RunSummary::default());
        let problem = until_problem(&recorder);
        assert!(problem.ends_with("runs.db: database or disk is full"), "{problem}");
        recorder.add_events(event(3), &RunSummary::default());
        recorder.finish_recording(&RunSummary::default(), end());
        assert_eq!(recorder.take_problem(), None);
        let mut store = open_store(scratch.path()).unwrap();
        let [run] = &store.find_runs(&RunFilter::default()).unwrap()[..] else { panic!("not one run") };
        assert_eq!((run.outcome, run.complete), (Some(RunOutcome::Succeeded), false));
        let recorded = store.read_events(start.id, 0).unwrap();
        assert!(
            recorded.len() <= 1 && recorded.iter().all(|event| event.sequence == 1),
            "there is a gap: {recorded:?}"
        );
    }

    /// A store on a disk that does not answer.
    struct Stuck;

    impl RunStore for Stuck {
        fn record_start(&mut self, _: &RunStart) -> Result<(), Error> {
            thread::sleep(Duration::from_secs(600));
            Ok(())
        }
        fn record_events(&mut self, _: RunId, _: &[RecordedEvent], _: &RunSummary) -> Result<(), Error> {
            Ok(())
        }
        fn record_end(&mut self, _: RunId, _: &RunEnd) -> Result<(), Error> {
            Ok(())
        }
        fn read_run(&mut self, _: RunId) -> Result<Option<crate::runs::RecordedRun>, Error> {
            Ok(None)
        }
        fn find_runs(&mut self, _: &RunFilter) -> Result<Vec<crate::runs::RecordedRun>, Error> {
            Ok(Vec::new())
        }
        fn read_events(&mut self, _: RunId, _: u64) -> Result<Vec<RecordedEvent>, Error> {
            Ok(Vec::new())
        }
        fn delete_old_runs(&mut self, _: &Retention) -> Result<usize, Error> {
            Ok(0)
        }
    }

    #[test]
    fn a_store_that_does_not_answer_holds_up_nothing_and_memory_is_bounded() {
        let mut recorder = Recorder::start_recording(start(), RETENTION, Box::new(|| Ok(Box::new(Stuck))), None);
        let line = "x".repeat(1 << 20);
        let begun = Instant::now();
        for sequence in 1..=200 {
            recorder.add_events(vec![RecordedEvent { sequence, line: line.clone() }], &RunSummary::default());
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert_eq!(until_problem(&recorder), "it is too slow; the rest of this run is not recorded");
        assert!(recorder.pending.is_empty());
    }
}
