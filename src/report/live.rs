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
        let transfers = self.waiting.values().flatten().map(|(progress, begun)| transfer(progress, *begun));
        let mut words: Vec<String> = transfers.take(3).collect();
        let names: Vec<&str> = self.waiting.keys().take(5).map(AsRef::as_ref).collect();
        let more = self.waiting.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        words.insert(0, format!("{}: {} s on {}{more}", self.task, self.begun.elapsed().as_secs(), names.join(", ")));
        bar.set_message(words.join(" | "));
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

fn transfer(progress: &Progress, begun: Instant) -> String {
    let percent = (progress.done * 100).checked_div(progress.total).unwrap_or(100);
    let seconds = begun.elapsed().as_secs_f64().max(0.001);
    let rate = progress.done as f64 / seconds;
    let left = (progress.total.saturating_sub(progress.done)) as f64 / rate.max(1.0);
    format!("{} {percent}% {}/s {left:.0} s left", progress.what, HumanBytes(rate as u64))
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
