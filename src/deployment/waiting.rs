//! Says which hosts a dry run waits for. Its tasks are not reported otherwise.

use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;

use super::control::{Control, Progress};
use crate::engine::{Event, Job, Recap};
use crate::launch;
use crate::value::mutex::Mutex;

/// How long a task runs on a host before that is reported, and how often it is reported then.
const PATIENCE: Duration = Duration::from_secs(10);

/// Hosts that are named at the most.
const NAMED: usize = 5;

/// Runs a job, as [`launch::Control::watch`], and reports every ten seconds what it waits for.
///
/// # Errors
/// As [`launch::Control::watch`].
pub(super) async fn watch(
    control: &Control,
    job: Job,
    mut each: impl FnMut(&Event),
) -> Result<Option<Recap>, launch::Error> {
    let running = Mutex::new(RunningTasks::default());
    let run = control.run.watch(job, |event| {
        running.lock().add_event(event, Instant::now());
        each(event);
    });
    let tell = async {
        loop {
            tokio::time::sleep(PATIENCE).await;
            let waiting = running.lock().waiting(Instant::now());
            waiting.into_iter().for_each(|words| control.report_progress(Progress::Waiting(words)));
        }
    };
    tokio::select! {
        recap = run => recap,
        () = tell => unreachable!("it has no end"),
    }
}

/// The tasks that hosts run now, with their names and beginnings.
#[derive(Default)]
struct RunningTasks(IndexMap<(usize, Arc<str>), (String, Instant)>);

impl RunningTasks {
    fn add_event(&mut self, event: &Event, now: Instant) {
        match event {
            Event::HostStart { task, host } => {
                self.0.insert((task.id, host.clone()), (task.name.clone(), now));
            }
            Event::Result { task, host, .. } => {
                self.0.shift_remove(&(task.id, host.clone()));
            }
            Event::TaskEnd(task) => self.0.retain(|(id, _), _| *id != task.id),
            _ => {}
        }
    }

    /// `north, south: Query the member (12 s)`: for each task that takes long, in the order in which they began.
    fn waiting(&self, now: Instant) -> Vec<String> {
        let mut tasks: IndexMap<&str, (Vec<&str>, Duration)> = IndexMap::new();
        for ((_, host), (task, begun)) in &self.0 {
            let took = now.saturating_duration_since(*begun);
            if took >= PATIENCE {
                let (hosts, longest) = tasks.entry(task).or_default();
                hosts.push(host);
                *longest = took.max(*longest);
            }
        }
        let words = |(task, (hosts, took)): (&str, (Vec<&str>, Duration))| {
            let more = hosts.len().saturating_sub(NAMED);
            let mut names = hosts[..hosts.len() - more].join(", ");
            if more > 0 {
                names.push_str(&format!(" and {more} more"));
            }
            format!("{names}: {task} ({} s)", took.as_secs())
        };
        tasks.into_iter().map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Status, TaskResult, TaskStart};
    use crate::value::{Origin, Source, Vars};

    fn task(id: usize, name: &str) -> Arc<TaskStart> {
        let origin = Origin { source: Arc::new(Source::new("site.yml", "")), line: 1, column: 1 };
        Arc::new(TaskStart { id, name: name.into(), role: None, action: "uri", origin, handler: false, hosts: 9 })
    }

    fn ended(task: &Arc<TaskStart>, host: &str) -> Event {
        let result = TaskResult {
            status: Status::Ok,
            changed: false,
            message: None,
            hint: None,
            values: Vars::new(),
            diff: Vec::new(),
            no_log: false,
            took: Duration::ZERO,
        };
        let (host, result) = (host.into(), Arc::new(result));
        Event::Result { task: task.clone(), host, delegated: None, looped: false, result }
    }

    #[test]
    fn only_what_takes_long_is_named() {
        let (begin, mut running) = (Instant::now(), RunningTasks::default());
        let (query, other) = (task(1, "Query the member"), task(2, "Read it"));
        let start = |task: &Arc<TaskStart>, host: &str| Event::HostStart { task: task.clone(), host: host.into() };
        ["a", "b", "c", "d", "e", "f", "g"].iter().for_each(|host| running.add_event(&start(&query, host), begin));
        running.add_event(&start(&other, "h"), begin + Duration::from_secs(4));
        assert!(running.waiting(begin + Duration::from_secs(9)).is_empty());
        running.add_event(&ended(&query, "a"), begin);
        let later = begin + Duration::from_secs(12);
        assert_eq!(running.waiting(later), ["b, c, d, e, f and 1 more: Query the member (12 s)"]);
        running.add_event(&Event::TaskEnd(query), later);
        assert_eq!(running.waiting(begin + Duration::from_secs(14)), ["h: Read it (10 s)"]);
        running.add_event(&ended(&other, "h"), later);
        assert!(running.waiting(begin + Duration::from_secs(60)).is_empty());
    }
}
