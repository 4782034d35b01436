//! The report of the command `ansible-playbook`: the lines of Ansible's default callback, for scripts that read them.

mod diff;
mod json;
mod minimal;
mod place;
mod result;

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::SystemTime;

use console::measure_text_width;
pub(super) use minimal::Minimal;
pub use place::complaint;
pub use result::ResultFormat;

use super::paint::{Colour, harmless, one_line};
use super::{DisplayOptions, Report};
use crate::engine::{Counts, Event, Recap, Stats, Status, TaskResult, TaskStart};
use crate::value::{ProcessEnvironment, Value, Vars};

/// Columns where there is no terminal.
pub const COLUMNS: usize = 79;

/// What a label is under `no_log`.
const NO_LABEL: &str = "(censored due to no_log)";

/// Modules that fail on the controller, for which Ansible uses another word.
const ACTIONS: &[&str] = &["assert", "fail", "include_vars", "validate_argument_spec", "set_fact", "set_stats"];

/// The options of the default callback, from its settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnsibleStyle {
    pub shape: ResultFormat,
    /// `display_failed_stderr`
    pub failures_to_stderr: bool,
    /// `check_mode_markers`
    pub marks_check_mode: bool,
    /// `show_per_host_start`
    pub host_starts: bool,
    /// `show_task_path_on_failure`
    pub path_on_failure: bool,
    /// `show_custom_stats`
    pub stats: bool,
    /// The playbooks by name, each with the number of its plays.
    pub playbooks: Vec<(String, usize)>,
    /// `--check`
    pub check: bool,
}

/// How wide banners are, whether colours are used, how much is said, where relative paths begin.
#[derive(Debug, Clone)]
pub(super) struct PageStyle {
    pub columns: usize,
    pub colour: bool,
    pub verbosity: u8,
    pub surroundings: Arc<ProcessEnvironment>,
}

pub(super) struct Ansible {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    style: AnsibleStyle,
    page: PageStyle,
    shows: DisplayOptions,
    /// Output that is not printed yet, in pieces, each for standard output or standard error.
    pending: Vec<(OutputMode, String)>,
    /// Warnings and errors are said once.
    said: HashSet<String>,
    /// The banner of a task without output so far, while not all results are shown.
    held: Option<Arc<TaskStart>>,
    /// Jobs that were asked after, by host.
    jobs: HashMap<Arc<str>, String>,
    checks: bool,
    /// The banner of the play.
    play: String,
    /// Plays that have begun.
    plays: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputMode {
    Out,
    Err,
}

/// Where a result belongs.
struct TimedEvent<'a> {
    task: &'a TaskStart,
    host: String,
    /// ` (item=x)`, or nothing.
    item: String,
    /// The result of a loop whose items were reported.
    whole: bool,
}

impl Ansible {
    pub(super) fn new(
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        style: AnsibleStyle,
        page: PageStyle,
        shows: DisplayOptions,
    ) -> Self {
        Ansible {
            out,
            err,
            style,
            page,
            shows,
            pending: Vec::new(),
            said: HashSet::new(),
            held: None,
            jobs: HashMap::new(),
            checks: false,
            play: String::new(),
            plays: 0,
        }
    }

    fn paint(&self, colour: Colour, text: &str) -> String {
        if self.page.colour { colour.paint(text) } else { text.to_owned() }
    }

    fn say(&mut self, way: OutputMode, colour: Colour, text: &str) {
        let text = self.paint(colour, text);
        match self.pending.last_mut() {
            Some((last, pending)) if *last == way => {
                pending.push_str(&text);
                pending.push('\n');
            }
            _ => self.pending.push((way, format!("{text}\n"))),
        }
    }

    fn banner(&mut self, text: &str) {
        let stars = self.page.columns.saturating_sub(measure_text_width(text)).max(3);
        self.say(OutputMode::Out, Colour::Plain, &format!("\n{text} {}", "*".repeat(stars)));
    }

    fn mark(&self, checks: bool) -> &'static str {
        if checks && self.style.marks_check_mode { " [CHECK MODE]" } else { "" }
    }

    fn task_banner(&mut self, task: &TaskStart) {
        let word = if task.handler { "RUNNING HANDLER" } else { "TASK" };
        let mark = self.mark(self.checks);
        self.banner(&format!("{word} [{}]{mark}", one_line(&task.name)));
        if self.page.verbosity >= 2 {
            self.task_path(task);
        }
    }

    fn task_path(&mut self, task: &TaskStart) {
        let path = self.page.surroundings.absolute(task.origin.path());
        self.say(OutputMode::Out, Colour::Plain, &format!("task path: {}:{}", path.display(), task.origin.line));
    }

    /// A line of a task: its banner comes first if it was held back.
    fn line(&mut self, way: OutputMode, colour: Colour, text: &str) {
        if let Some(task) = self.held.take() {
            self.task_banner(&task);
        }
        self.say(way, colour, text);
    }

    fn warning(&mut self, text: &str) {
        let text = format!("[WARNING]: {}", harmless(text));
        if self.said.insert(text.clone()) {
            self.say(OutputMode::Err, Colour::Purple, &text);
        }
    }

    /// Whether a result is shown at all.
    fn shown(&self, result: &TaskResult) -> bool {
        match result.status {
            Status::Ok => self.shows.ok || result.changed,
            Status::Skipped => self.shows.skipped,
            _ => true,
        }
    }

    fn result(&mut self, reported: &TimedEvent, result: &TaskResult) {
        if result.changed {
            for (colour, line) in
                result.diff.iter().flat_map(|one| diff::ansible_diff_lines(one, self.shows.context)).collect::<Vec<_>>()
            {
                self.line(OutputMode::Out, colour, &harmless(&line));
            }
        }
        match result.status {
            Status::Failed | Status::Unreachable | Status::Ignored => self.failure(reported, result),
            _ if reported.whole && result.status != Status::Skipped => {}
            _ => self.good(reported, result),
        }
    }

    fn good(&mut self, reported: &TimedEvent, result: &TaskResult) {
        let (word, colour) = match result.status {
            Status::Skipped => ("skipping", Colour::Cyan),
            _ if result.changed => ("changed", Colour::Yellow),
            _ => ("ok", Colour::Green),
        };
        let item = match (reported.item.is_empty(), result.status) {
            (true, _) => String::new(),
            // Ansible leaves a blank at the end of the line.
            (false, Status::Skipped) => format!(" =>{} ", reported.item),
            (false, _) => format!(" =>{}", reported.item),
        };
        let mut line = format!("{word}: [{}]{item}", reported.host);
        if result::is_shown(reported.task.action, result, self.page.verbosity) {
            line.push_str(&format!(" => {}", self.values(reported, result)));
        }
        self.line(OutputMode::Out, colour, &line);
    }

    fn values(&self, reported: &TimedEvent, result: &TaskResult) -> String {
        result::result_text(reported.task.action, result, reported.whole, self.page.verbosity, self.style.shape)
    }

    fn failure(&mut self, reported: &TimedEvent, result: &TaskResult) {
        let way = if self.style.failures_to_stderr { OutputMode::Err } else { OutputMode::Out };
        let unreachable = result.status == Status::Unreachable || result.values.contains_key("unreachable");
        if !reported.whole {
            self.reason(way, reported.task, result, unreachable);
            let head = match (reported.item.is_empty(), unreachable) {
                (_, true) => format!("fatal: [{}]: UNREACHABLE!", reported.host),
                (true, false) => format!("fatal: [{}]: FAILED!", reported.host),
                (false, false) => format!("failed: [{}]{}", reported.host, reported.item),
            };
            if self.style.path_on_failure && self.page.verbosity < 2 && reported.item.is_empty() && !unreachable {
                self.task_path(reported.task);
            }
            let values = self.values(reported, result);
            self.line(way, Colour::Red, &format!("{head} => {values}"));
        }
        if result.status == Status::Ignored && reported.item.is_empty() {
            self.line(OutputMode::Out, Colour::Cyan, "...ignoring");
        }
    }

    /// `[ERROR]: Task failed: …` with the place of the task, once for all hosts that fail for one reason.
    fn reason(&mut self, way: OutputMode, task: &TaskStart, result: &TaskResult, unreachable: bool) {
        let message = match (&result.message, result.no_log) {
            (_, true) => "the reason is hidden by no_log",
            (Some(message), false) => message,
            (None, false) => "no reason was given",
        };
        let who = match unreachable {
            true => "",
            false if ACTIONS.contains(&task.action) => "Action failed: ",
            false => "Module failed: ",
        };
        let hint = result.hint.as_ref().map_or_else(String::new, |hint| format!("\n\n{}", harmless(hint)));
        let excerpt = place::excerpt(&task.origin, &self.page.surroundings);
        let text = format!("[ERROR]: Task failed: {who}{}\n{excerpt}{hint}\n", harmless(message));
        if self.said.insert(text.clone()) {
            self.line(way, Colour::Red, &text);
        }
    }

    fn play_banner(&mut self, name: &str) {
        let next = self.style.playbooks.iter().scan(0, |before, (name, plays)| {
            let first = *before;
            *before += plays;
            Some((first, name, plays))
        });
        let begins = next.into_iter().find(|(first, _, plays)| *first == self.plays && **plays > 0);
        let begins = begins.map(|(_, name, plays)| (name.clone(), *plays));
        if let Some((playbook, plays)) = begins {
            if self.page.verbosity > 1 {
                let file = playbook.rsplit('/').next().unwrap_or(&playbook).to_owned();
                self.banner(&format!("PLAYBOOK: {file}"));
                self.say(OutputMode::Out, Colour::Plain, &format!("{plays} plays in {playbook}"));
            }
            if self.style.check && self.style.marks_check_mode {
                self.banner("DRY RUN");
            }
        }
        self.plays += 1;
        let mark = self.mark(self.checks);
        self.play = format!("PLAY [{}]{mark}", one_line(name));
        self.banner(&self.play.clone());
    }

    fn recap(&mut self, recap: &Recap) {
        self.banner("PLAY RECAP");
        let mut hosts: Vec<(&Arc<str>, &Counts)> = recap.hosts.iter().collect();
        hosts.sort_by(|one, other| one.0.cmp(other.0));
        for (host, counts) in hosts {
            let line = self.counted(host, counts);
            self.say(OutputMode::Out, Colour::Plain, &line);
        }
        self.say(OutputMode::Out, Colour::Plain, "");
        let Stats { run, hosts } = &recap.stats;
        if self.style.stats && (!run.is_empty() || !hosts.is_empty()) {
            self.banner("CUSTOM STATS:");
            let text = |stats: &Vars| {
                let all = stats.iter().map(|(name, value)| (name.to_string(), super::to_json(value)));
                json::without_line_ends(&serde_json::Value::Object(all.collect()))
            };
            let mut hosts: Vec<_> = hosts.iter().collect();
            hosts.sort_by_key(|(host, _)| (*host).clone());
            let of_hosts: String = hosts.iter().map(|(host, stats)| format!("\t{host}: {}\n", text(stats))).collect();
            let of_run = if run.is_empty() { String::new() } else { format!("\n\tRUN: {}\n", text(run)) };
            self.say(OutputMode::Out, Colour::Plain, &format!("{of_hosts}{of_run}"));
        }
        if self.style.check && self.style.marks_check_mode {
            self.banner("DRY RUN");
        }
        if recap.interrupted {
            self.say(OutputMode::Err, Colour::Red, "[ERROR]: User interrupted execution");
        }
    }

    fn counted(&self, host: &str, counts: &Counts) -> String {
        let colour = match counts {
            Counts { failed: 0, unreachable: 0, changed: 0, .. } => Colour::Green,
            Counts { failed: 0, unreachable: 0, .. } => Colour::Yellow,
            _ => Colour::Red,
        };
        let counted = |name: &str, count: usize, colour| {
            let text = format!("{name}={count:<4}");
            if count == 0 { text } else { self.paint(colour, &text) }
        };
        let parts = [
            counted("ok", counts.ok, Colour::Green),
            counted("changed", counts.changed, Colour::Yellow),
            counted("unreachable", counts.unreachable, Colour::Red),
            counted("failed", counts.failed, Colour::Red),
            counted("skipped", counts.skipped, Colour::Cyan),
            counted("rescued", counts.rescued, Colour::Green),
            counted("ignored", counts.ignored, Colour::Purple),
        ];
        let name = format!("{:<26}", one_line(host));
        format!("{} : {}", self.paint(colour, &name), parts.join(" "))
    }
}

/// `h1`, or `h1 -> h2` of a task that is delegated.
fn host_label(host: &str, delegated: &Option<String>) -> String {
    match delegated.as_deref().filter(|delegate| *delegate != host) {
        Some(delegate) => format!("{} -> {}", one_line(host), one_line(delegate)),
        None => one_line(host).into_owned(),
    }
}

fn item_label(label: &str, no_log: bool) -> String {
    format!(" (item={})", if no_log { NO_LABEL.into() } else { one_line(label) })
}

impl Ansible {
    fn print_event(&mut self, event: &Event) {
        match event {
            Event::PlayStart { name, check, .. } => {
                self.checks = *check;
                self.held = None;
                self.play_banner(name);
            }
            Event::NextBatch => self.banner(&self.play.clone()),
            Event::NoHosts { .. } => self.say(OutputMode::Out, Colour::Cyan, "skipping: no hosts matched"),
            Event::TaskStart(task) => match self.shows.ok && self.shows.skipped {
                true => self.task_banner(task),
                false => self.held = Some(task.clone()),
            },
            Event::HostStart { task, host } if self.style.host_starts => {
                let words = format!(" [started TASK: {} on {}]", one_line(&task.name), one_line(host));
                self.line(OutputMode::Out, Colour::Green, &words);
            }
            Event::TaskEnd(_)
            | Event::HostStart { .. }
            | Event::Progress { .. }
            | Event::Question(_)
            | Event::Command(_) => {}
            Event::Item { result, .. } | Event::Result { result, .. } if !self.shown(result) => {}
            Event::Item { task, host, delegated, label, result } => {
                let item = item_label(label, result.no_log);
                let reported = TimedEvent { task, host: host_label(host, delegated), item, whole: false };
                self.result(&reported, result);
            }
            Event::Result { task, host, delegated, looped, result } => {
                self.job_ended(task, host, result);
                let delegated = delegated.clone().filter(|_| result.status != Status::Skipped);
                let host = host_label(host, &delegated);
                self.result(&TimedEvent { task, host, item: String::new(), whole: *looped }, result);
            }
            Event::Retry { task, host, left, result, .. } => {
                let mut words =
                    format!("FAILED - RETRYING: [{}]: {} ({left} retries left).", one_line(host), one_line(&task.name));
                if self.page.verbosity > 2 {
                    let reported = TimedEvent { task, host: String::new(), item: String::new(), whole: false };
                    words.push_str(&format!("Result was: {}", self.values(&reported, result)));
                }
                self.line(OutputMode::Out, Colour::Plain, &words);
            }
            Event::AsyncPoll { host, job, .. } => {
                self.jobs.insert(host.clone(), job.clone());
                let words = format!("ASYNC POLL on {}: jid={job} started=True finished=False", one_line(host));
                self.line(OutputMode::Out, Colour::Plain, &words);
            }
            Event::Meta { task, host, skipped } => {
                self.task_banner(task);
                if *skipped && self.shows.skipped {
                    self.line(OutputMode::Out, Colour::Cyan, &format!("skipping: [{}]", one_line(host)));
                }
            }
            Event::Included { what, path, item, hosts } => {
                let what = path.as_ref().map_or_else(|| what.clone(), |path| path.display().to_string());
                let hosts: Vec<&str> = hosts.iter().map(AsRef::as_ref).collect();
                let item = item.as_ref().map_or_else(String::new, |item| format!(" => (item={item})"));
                self.line(
                    OutputMode::Out,
                    Colour::Cyan,
                    &one_line(&format!("included: {what} for {}{item}", hosts.join(", "))),
                );
            }
            Event::NoHostsLeft { percentage: true } => self.banner("NO MORE HOSTS LEFT"),
            Event::NoHostsLeft { percentage: false } => {}
            Event::Warning(text) => self.warning(text),
            Event::Recap(recap) => self.recap(recap),
        }
    }

    /// The end of a job that was waited for is reported before its result.
    fn job_ended(&mut self, task: &TaskStart, host: &Arc<str>, result: &TaskResult) {
        let known = self.jobs.remove(host);
        let ended = task.action != "async_status" && result.values.get("finished").is_some_and(Value::is_true);
        let named = || result.values.get("ansible_job_id").filter(|_| ended).map(ToString::to_string);
        let Some(job) = known.or_else(named) else { return };
        let word = if result.failed() || result.status == Status::Ignored { "FAILED" } else { "OK" };
        self.line(OutputMode::Out, Colour::Plain, &format!("ASYNC {word} on {}: jid={job}", one_line(host)));
    }
}

impl Report for Ansible {
    fn event(&mut self, _: SystemTime, event: &Event) -> io::Result<()> {
        self.print_event(event);
        Ok(())
    }

    fn show(&mut self) -> io::Result<()> {
        for (way, text) in std::mem::take(&mut self.pending) {
            let stream = if way == OutputMode::Out { &mut self.out } else { &mut self.err };
            stream.write_all(text.as_bytes())?;
            stream.flush()?;
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.show()
    }
}

#[cfg(test)]
mod tests;
