//! The line at the foot of a terminal that tells what takes long: hosts still at work, transfers with their rate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::modules::Progress;

/// Shown after this long, so that quick tasks leave no flicker.
const PATIENCE: Duration = Duration::from_millis(700);

/// Without a terminal it does nothing.
pub struct Live {
    bar: Option<ProgressBar>,
    task: String,
    begun: Instant,
    waiting: BTreeMap<Arc<str>, Option<(Progress, Instant)>>,
}

impl Live {
    pub fn new(terminal: bool) -> Self {
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
            let style = ProgressStyle::with_template("{wide_msg}").expect("the template is well formed");
            bar.set_style(style);
            bar
        });
        Live { bar, task: String::new(), begun: Instant::now(), waiting: BTreeMap::new() }
    }

    pub fn task(&mut self, name: &str) {
        self.task = name.to_string();
        self.begun = Instant::now();
        self.waiting.clear();
        self.draw();
    }

    pub fn host_began(&mut self, host: &Arc<str>) {
        self.waiting.insert(host.clone(), None);
    }

    pub fn host_ended(&mut self, host: &str) {
        self.waiting.remove(host);
        self.draw();
    }

    pub fn progress(&mut self, host: &Arc<str>, progress: &Progress) {
        let begun = match self.waiting.get(host) {
            Some(Some((old, begun))) if old.what == progress.what => *begun,
            _ => Instant::now(),
        };
        self.waiting.insert(host.clone(), Some((progress.clone(), begun)));
        self.draw();
    }

    /// Draws what is so now; called now and then while nothing happens.
    pub fn draw(&self) {
        let Some(bar) = &self.bar else { return };
        if self.waiting.is_empty() || self.begun.elapsed() < PATIENCE {
            bar.set_message("");
            return;
        }
        let names: Vec<&str> = self.waiting.keys().take(5).map(AsRef::as_ref).collect();
        let more = self.waiting.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let mut words = format!("{}: {} s on {}{more}", self.task, self.begun.elapsed().as_secs(), names.join(", "));
        let begun: Vec<(&Progress, Duration)> =
            self.waiting.values().flatten().map(|(progress, begun)| (progress, begun.elapsed())).collect();
        if let Some(transfers) = transfers(&begun) {
            words = format!("{words} | {transfers}");
        }
        bar.set_message(words);
    }

    /// Prints lines above the foot line.
    pub fn above(&self, print: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// How far the transfers are, each with the time that it has taken: one by its name, several as a sum, so that the line
/// keeps its length. None when there are none.
fn transfers(begun: &[(&Progress, Duration)]) -> Option<String> {
    let what = match begun {
        [] => return None,
        [(one, _)] => one.what.clone(),
        several => format!("{} transfers", several.len()),
    };
    let done: u64 = begun.iter().map(|(progress, _)| progress.done).sum();
    let total: u64 = begun.iter().map(|(progress, _)| progress.total).sum();
    if done >= total {
        // The host still flushes and checks what it got.
        return Some(format!("{what} sent"));
    }
    // What has arrived wholly goes no faster by waiting.
    let under_way = begun.iter().filter(|(progress, _)| progress.done < progress.total);
    let rate: f64 = under_way.map(|(progress, took)| progress.done as f64 / took.as_secs_f64().max(0.001)).sum();
    let left = (total - done) as f64 / rate.max(1.0);
    let percent = done * 100 / total;
    Some(format!("{what} {percent}% {}/s {left:.0} s left", HumanBytes(rate as u64)))
}

/// Columns of the terminal.
pub fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let columns = columns.unwrap_or_else(|| usize::from(indicatif::TermLike::width(&console_term())));
    columns.clamp(40, 200)
}

fn console_term() -> console::Term {
    console::Term::stdout()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(host: &str, done: u64, total: u64) -> Progress {
        Progress { what: format!("etcd → {host}"), done, total }
    }

    #[test]
    fn one_transfer_is_told_by_name_with_its_rate_and_what_is_left() {
        let one = progress("h1", 1 << 20, 4 << 20);
        let told = transfers(&[(&one, Duration::from_secs(1))]);
        assert_eq!(told.as_deref(), Some("etcd → h1 25% 1.00 MiB/s 3 s left"));
    }

    #[test]
    fn several_transfers_are_told_as_their_sum_and_those_that_ended_do_not_count_for_the_rate() {
        let (one, two, ended) =
            (progress("h1", 1 << 20, 4 << 20), progress("h2", 3 << 20, 4 << 20), progress("h3", 8, 8));
        let second = Duration::from_secs(1);
        let told = transfers(&[(&one, second), (&two, second), (&ended, second)]);
        assert_eq!(told.as_deref(), Some("3 transfers 50% 4.00 MiB/s 1 s left"));
    }

    #[test]
    fn what_has_left_us_wholly_is_sent_and_has_no_rate() {
        let one = progress("h1", 4 << 20, 4 << 20);
        assert_eq!(transfers(&[(&one, Duration::from_secs(9))]).as_deref(), Some("etcd → h1 sent"));
        let empty = progress("h1", 0, 0);
        assert_eq!(transfers(&[(&empty, Duration::ZERO)]).as_deref(), Some("etcd → h1 sent"));
        assert_eq!(transfers(&[]), None);
    }
}
