//! The running tasks, as a few lines: slow hosts first, transfers with rate and remaining time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;

use crate::engine::{Event, TaskStart};
use crate::modules::Progress;

/// Nothing is shown before a task has run for this time on a host: quick tasks cause no flicker.
const PATIENCE: Duration = Duration::from_millis(700);

/// Hosts that are shown at the most, however high the terminal is.
const HOSTS: usize = 10;

/// A transfer's rate is that of the last seconds, at least so many once it has lasted so long.
const WINDOW: Duration = Duration::from_secs(4);

#[derive(Default)]
pub(super) struct Live {
    /// Tasks that are under way, by id.
    tasks: IndexMap<usize, Task>,
    /// Hosts with a running task, in the order in which they started it.
    hosts: IndexMap<(usize, Arc<str>), Host>,
}

struct Task {
    name: String,
    /// How many hosts will run it.
    hosts: usize,
    done: usize,
}

struct Host {
    begun: Instant,
    transfer: Option<Transfer>,
    /// Loop items that are done.
    items: usize,
    /// Attempts of `until` that are left.
    left: Option<u64>,
}

/// A transfer and two earlier states of it: the rate is reckoned from the older one.
struct Transfer {
    progress: Progress,
    older: (Instant, u64),
    newer: (Instant, u64),
}

impl Live {
    pub(super) fn event(&mut self, event: &Event, now: Instant) {
        match event {
            Event::TaskStart(task) => {
                let shown = Task { name: task.name.clone(), hosts: task.hosts, done: 0 };
                self.tasks.insert(task.id, shown);
            }
            Event::TaskEnd(task) => {
                self.tasks.shift_remove(&task.id);
                self.hosts.retain(|(id, _), _| *id != task.id);
            }
            Event::HostStart { task, host } => {
                let shown = Host { begun: now, transfer: None, items: 0, left: None };
                self.hosts.insert((task.id, host.clone()), shown);
            }
            Event::Item { task, host, .. } => {
                if let Some(shown) = self.host(task, host) {
                    (shown.items, shown.left, shown.transfer) = (shown.items + 1, None, None);
                }
            }
            Event::Retry { task, host, left, .. } => {
                if let Some(shown) = self.host(task, host) {
                    shown.left = Some(*left);
                }
            }
            Event::Result { task, host, .. } => {
                self.hosts.shift_remove(&(task.id, host.clone()));
                if let Some(shown) = self.tasks.get_mut(&task.id) {
                    shown.done += 1;
                }
            }
            Event::Progress { host, progress } => {
                // A host does one thing at a time.
                let shown = self.hosts.iter_mut().rev().find(|((_, name), _)| name == host);
                if let Some((_, shown)) = shown {
                    shown.transfer = Some(Transfer::follow(shown.transfer.take(), progress, now));
                }
            }
            _ => {}
        }
    }

    fn host(&mut self, task: &TaskStart, host: &Arc<str>) -> Option<&mut Host> {
        self.hosts.get_mut(&(task.id, host.clone()))
    }

    /// The lines for a terminal of so many rows; none while nothing takes long. At most a third of the rows are used.
    pub(super) fn frame(&self, rows: usize, now: Instant) -> Vec<String> {
        let at_work = |host: &Host| now.saturating_duration_since(host.begun);
        if self.hosts.values().next().is_none_or(|first| at_work(first) < PATIENCE) {
            return Vec::new();
        }
        let mut lines = vec![self.head(now)];
        let room = (rows / 3).saturating_sub(1).min(HOSTS);
        let all = self.hosts.len();
        // A line that says "1 more" could as well be that host's own.
        let shown = if all <= room { all } else { room.saturating_sub(1) };
        let several = self.running().count() > 1;
        let longest = self.hosts.keys().take(shown).map(|(_, name)| name.chars().count()).max().unwrap_or(0);
        for ((id, name), host) in self.hosts.iter().take(shown) {
            let mut line = format!("  {name:<longest$} {:>10}", lasting(at_work(host)));
            if several && let Some(task) = self.tasks.get(id) {
                line.push_str(&format!("  {}", task.name));
            }
            line.push_str(&host.progress_text(now));
            lines.push(line);
        }
        if room > 0 && shown < all {
            lines.push(format!("  … and {} more running", all - shown));
        }
        lines
    }

    /// Tasks that run on at least one host.
    fn running(&self) -> impl Iterator<Item = &Task> {
        let begun = |id: &usize| self.hosts.keys().any(|(of, _)| of == id);
        self.tasks.iter().filter(move |(id, _)| begun(id)).map(|(_, task)| task)
    }

    fn head(&self, now: Instant) -> String {
        let running: Vec<&Task> = self.running().collect();
        let at_work = self.hosts.len();
        let mut words = match running.as_slice() {
            [task] if task.hosts > 1 => format!("{}: {}/{} done, {at_work} running", task.name, task.done, task.hosts),
            [task] => task.name.clone(),
            several => format!("{} tasks, {at_work} hosts running", several.len()),
        };
        let transfers: Vec<&Transfer> = self.hosts.values().filter_map(|host| host.transfer.as_ref()).collect();
        if transfers.len() > 1 {
            words.push_str(&format!(" | {} transfers {}", transfers.len(), sum(&transfers, now)));
        }
        words
    }
}

impl Host {
    fn progress_text(&self, now: Instant) -> String {
        let mut words = String::new();
        if self.items > 0 {
            words.push_str(&format!("  {} items done", self.items));
        }
        if let Some(left) = self.left {
            words.push_str(&format!("  retrying, {left} left"));
        }
        if let Some(transfer) = &self.transfer {
            words.push_str(&format!("  {} {}", transfer.progress.what, sum(&[transfer], now)));
        }
        words
    }
}

impl Transfer {
    fn follow(before: Option<Transfer>, progress: &Progress, now: Instant) -> Transfer {
        let state = (now, progress.done);
        match before.filter(|before| before.progress.what == progress.what && before.progress.done <= progress.done) {
            Some(mut transfer) => {
                if now.duration_since(transfer.newer.0) >= WINDOW {
                    (transfer.older, transfer.newer) = (transfer.newer, state);
                }
                transfer.progress = progress.clone();
                transfer
            }
            None => Transfer { progress: progress.clone(), older: state, newer: state },
        }
    }

    /// Bytes per second.
    fn rate(&self, now: Instant) -> f64 {
        let (since, done) = self.older;
        let bytes = self.progress.done.saturating_sub(done);
        bytes as f64 / now.saturating_duration_since(since).as_secs_f64().max(0.001)
    }

    fn whole(&self) -> bool {
        self.progress.done >= self.progress.total
    }
}

/// `45% 12.3 MiB/s 3 s left`: how far transfers are, together.
fn sum(transfers: &[&Transfer], now: Instant) -> String {
    let done: u64 = transfers.iter().map(|transfer| transfer.progress.done).sum();
    let total: u64 = transfers.iter().map(|transfer| transfer.progress.total).sum();
    if done >= total {
        // The host still flushes and checks what it got.
        return "sent".to_string();
    }
    let percent = done.saturating_mul(100) / total;
    // What has arrived wholly goes no faster by waiting.
    let rate: f64 = transfers.iter().filter(|transfer| !transfer.whole()).map(|transfer| transfer.rate(now)).sum();
    if rate < 1.0 {
        return format!("{percent}%");
    }
    let left = Duration::from_secs_f64(((total - done) as f64 / rate).min(1e6));
    format!("{percent}% {}/s {} left", bytes(rate), lasting(left))
}

/// `3 s`, `2 min 05 s`, `1 h 02 min`.
fn lasting(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// `512 B`, `1.5 MiB`.
fn bytes(count: f64) -> String {
    let mut count = count;
    let mut units = ["B", "KiB", "MiB", "GiB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if count < 1024.0 {
            break;
        }
        count /= 1024.0;
        unit = larger;
    }
    if unit == "B" { format!("{count:.0} {unit}") } else { format!("{count:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::super::example_run;
    use super::*;
    use crate::engine::Status;

    const MIB: u64 = 1 << 20;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn begun(hosts: usize, now: Instant) -> (Live, Arc<TaskStart>) {
        let mut live = Live::default();
        let task = Arc::new(TaskStart { hosts, ..example_run::task(1, "Install") });
        live.event(&Event::TaskStart(task.clone()), now);
        for number in 1..=hosts {
            // One after the other, the last host first.
            let name = format!("h{:03}", hosts + 1 - number);
            live.event(&example_run::begun(&task, &name), now + Duration::from_millis(number as u64));
        }
        (live, task)
    }

    fn progress(live: &mut Live, host: &str, done: u64, now: Instant) {
        let progress = Progress { what: format!("etcd → {host}"), done, total: 4 * MIB };
        live.event(&Event::Progress { host: host.into(), progress }, now);
    }

    #[test]
    fn a_hundred_hosts_take_a_third_of_the_terminal_and_those_that_take_long_come_first() {
        let now = Instant::now();
        let (mut live, task) = begun(100, now);
        live.event(&example_run::ended(&task, "h100", example_run::result(Status::Ok)), now + seconds(3));
        let frame = live.frame(24, now + seconds(65));
        assert_eq!(frame.len(), 8, "{frame:#?}");
        assert_eq!(frame[0], "Install: 1/100 done, 99 running");
        assert_eq!(frame[1], "  h099 1 min 04 s");
        assert_eq!(frame[7], "  … and 93 more running");
        assert_eq!(live.frame(200, now + seconds(65)).len(), 11);
        assert_eq!(live.frame(4, now + seconds(65)), ["Install: 1/100 done, 99 running"]);
    }

    #[test]
    fn quick_tasks_leave_no_flicker_and_what_ended_is_gone() {
        let now = Instant::now();
        let (mut live, task) = begun(2, now);
        assert!(live.frame(24, now + Duration::from_millis(500)).is_empty());
        assert_eq!(live.frame(24, now + seconds(1)).len(), 3);
        live.event(&Event::TaskEnd(task), now + seconds(2));
        assert!(live.frame(24, now + seconds(9)).is_empty());
    }

    #[test]
    fn a_transfer_is_reported_with_its_rate_and_what_is_left() {
        let now = Instant::now();
        let (mut live, _) = begun(1, now);
        progress(&mut live, "h001", 0, now);
        progress(&mut live, "h001", MIB, now + seconds(1));
        assert_eq!(live.frame(24, now + seconds(1))[1], "  h001        0 s  etcd → h001 25% 1.0 MiB/s 3 s left");
        progress(&mut live, "h001", 4 * MIB, now + seconds(2));
        assert_eq!(live.frame(24, now + seconds(2))[1], "  h001        1 s  etcd → h001 sent");
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let now = Instant::now();
        let (mut live, _) = begun(1, now);
        for second in 0..=20 {
            // Slow for ten seconds, ten times as fast afterwards.
            let done = if second <= 10 { second } else { 10 + (second - 10) * 10 };
            progress(&mut live, "h001", done * (MIB / 64), now + seconds(second));
        }
        let line = &live.frame(24, now + seconds(20))[1];
        assert!(line.contains("160.0 KiB/s"), "{line}");
    }

    #[test]
    fn several_transfers_are_reported_as_their_sum_and_those_that_ended_do_not_count_for_the_rate() {
        let now = Instant::now();
        let (mut live, _) = begun(3, now);
        for (host, done) in [("h001", MIB), ("h002", 3 * MIB), ("h003", 4 * MIB)] {
            progress(&mut live, host, 0, now);
            progress(&mut live, host, done, now + seconds(1));
        }
        let head = &live.frame(24, now + seconds(1))[0];
        assert_eq!(head, "Install: 0/3 done, 3 running | 3 transfers 66% 4.0 MiB/s 1 s left");
    }

    #[test]
    fn hosts_on_ways_of_their_own_are_shown_with_their_tasks() {
        let now = Instant::now();
        let mut live = Live::default();
        for (id, (host, name)) in [("a", "Copy"), ("b", "Restart")].into_iter().enumerate() {
            let task = Arc::new(TaskStart { hosts: 1, ..example_run::task(id, name) });
            live.event(&Event::TaskStart(task.clone()), now);
            live.event(&example_run::begun(&task, host), now);
        }
        let expected = ["2 tasks, 2 hosts running", "  a        2 s  Copy", "  b        2 s  Restart"];
        assert_eq!(live.frame(24, now + seconds(2)), expected);
    }

    #[test]
    fn loops_and_retries_are_reported() {
        let now = Instant::now();
        let (mut live, task) = begun(1, now);
        let result = Arc::new(example_run::result(Status::Ok));
        let item = |label: &str| Event::Item {
            task: task.clone(),
            host: "h001".into(),
            delegated: None,
            label: label.into(),
            result: result.clone(),
        };
        live.event(&item("a"), now);
        live.event(&item("b"), now);
        assert_eq!(live.frame(24, now + seconds(2))[1], "  h001        1 s  2 items done");
        let retry =
            Event::Retry { task: task.clone(), host: "h001".into(), attempt: 1, left: 4, result: result.clone() };
        live.event(&retry, now);
        assert_eq!(live.frame(24, now + seconds(2))[1], "  h001        1 s  2 items done  retrying, 4 left");
    }
}
