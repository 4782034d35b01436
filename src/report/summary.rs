//! The report of a deployment's commands: per stage one line for each host, and above a live view only what a person must read.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use super::Report;
use super::human::{Human, hosts_word, message_text, without_host};
use super::paint::{Colour, indented, one_line};
use super::profile::Profile;
use crate::engine::{CommandEvent, Counts, Event, Recap, Status, TaskResult};
use crate::runs::RunId;

/// Shows failures, warnings and messages (`debug`) at once, and hosts when a playbook has ended.
pub(super) struct Summary {
    human: Human,
    /// What the playbook is run for.
    stage: String,
    /// The hosts of the playbook, as the inventory has them.
    hosts: Vec<Arc<str>>,
    /// The record of the run, which has all results.
    record: Option<RunId>,
    has_results: bool,
}

impl Summary {
    /// `human`: where lines are printed. `record`: of the run, if there is one.
    pub(super) fn new(human: Human, record: Option<RunId>) -> Self {
        Summary { human, stage: String::new(), hosts: Vec::new(), record, has_results: false }
    }

    /// What a task told people.
    fn message(&mut self, host: &str, result: &TaskResult) {
        if let Some(words) = self.human.shown_details(result, "debug") {
            let words = match result.values.get("msg").filter(|_| !result.no_log && result.values.len() == 1) {
                Some(message) => message_text(message),
                None => words,
            };
            let words = without_host(&words, host);
            let words = if words.contains('\n') { format!("\n{words}") } else { format!(" {words}") };
            self.human.say_instead(Colour::Plain, &format!("{}:{}", one_line(host), indented(&words)));
        }
    }

    fn recap(&mut self, recap: &Recap) {
        self.has_results = true;
        let count = hosts_word(recap.hosts.len());
        let stopped = if recap.interrupted { ", interrupted" } else { "" };
        let head = format!("{}: {count} in {:.1} s{stopped}", one_line(&self.stage), recap.took.as_secs_f64());
        self.human.say_instead(if recap.interrupted { Colour::Red } else { Colour::Plain }, &head);
        let longest = recap.hosts.keys().map(|host| host.chars().count()).max().unwrap_or(0);
        let place = |host: &Arc<str>| self.hosts.iter().position(|known| known == host).unwrap_or(usize::MAX);
        let mut hosts: Vec<_> = recap.hosts.iter().map(|(host, counts)| (place(host), host, counts)).collect();
        hosts.sort_by(|one, other| (one.0, one.1).cmp(&(other.0, other.1)));
        for (_, host, counts) in hosts {
            let lost = match (recap.lost.unreachable.contains(host), recap.lost.failed.contains(host)) {
                (true, _) => Some("unreachable"),
                (false, true) => Some("failed"),
                (false, false) => None,
            };
            let (colour, words) = host_words(counts, lost);
            self.human.say(colour, &format!("  {:<longest$}  {words}", one_line(host)));
        }
        self.hosts.clear();
    }
}

/// What happened on a host. `lost`: why it did not come to the end.
fn host_words(counts: &Counts, lost: Option<&str>) -> (Colour, String) {
    let changed = match counts.changed {
        0 => None,
        1 => Some("1 task changed".to_owned()),
        count => Some(format!("{count} tasks changed")),
    };
    match (lost, changed) {
        (Some(lost), Some(changed)) => (Colour::Red, format!("{lost}, {changed}")),
        (Some(lost), None) => (Colour::Red, lost.to_owned()),
        (None, Some(changed)) => (Colour::Yellow, changed),
        (None, None) => (Colour::Green, "no change".to_owned()),
    }
}

impl Report for Summary {
    fn event(&mut self, at: SystemTime, event: &Event) -> io::Result<()> {
        self.human.follow(at, event);
        match event {
            Event::Command(CommandEvent::StageStart { stage, .. }) => self.stage.clone_from(stage),
            Event::PlayStart { hosts, .. } => {
                hosts.iter().for_each(|host| {
                    if !self.hosts.contains(host) {
                        self.hosts.push(host.clone());
                    }
                });
            }
            // Its name is shown with the first failure.
            Event::TaskStart(_) => self.human.print_event(event),
            Event::Warning(_) => self.human.print_beside(event),
            Event::Item { task, host, result, .. } | Event::Result { task, host, result, looped: false, .. }
                if task.action == "debug" && result.status == Status::Ok =>
            {
                self.message(host, result);
            }
            Event::Item { result, .. } | Event::Result { result, .. }
                if result.failed() && result.status != Status::Ignored =>
            {
                self.human.print_event(event);
            }
            Event::Recap(recap) => self.recap(recap),
            _ => {}
        }
        Ok(())
    }

    fn show(&mut self) -> io::Result<()> {
        self.human.show()
    }

    fn settle(&mut self) -> io::Result<()> {
        self.human.settle()
    }

    fn profile(&mut self, at: SystemTime, profile: &Profile) -> io::Result<()> {
        self.human.profile(at, profile)
    }

    fn end(&mut self) -> io::Result<()> {
        if let Some(run) = self.record.filter(|_| self.has_results) {
            self.human.say_instead(Colour::Plain, &format!("results of all tasks: windlass logs {run}"));
        }
        self.human.end()
    }
}

#[cfg(test)]
mod tests {
    use super::super::human::HumanStyle;
    use super::super::{DisplayOptions, example_run};
    use super::*;
    use crate::engine::TaskStart;
    use crate::value::{Value, Vars};

    /// What is printed of the events.
    fn printed(events: &[Event], record: Option<RunId>) -> String {
        let sheet = example_run::CapturedOutput::default();
        let style = HumanStyle { colour: false, width: 40, verbosity: 0, stamped: false, messages: false };
        let human = Human::new(Box::new(sheet.clone()), style).showing(DisplayOptions {
            ok: false,
            skipped: false,
            ..DisplayOptions::default()
        });
        let mut summary = Summary::new(human, record);
        for event in events {
            summary.event(SystemTime::UNIX_EPOCH, event).unwrap();
        }
        summary.end().unwrap();
        sheet.captured_text()
    }

    fn stage(name: &str) -> Event {
        Event::Command(CommandEvent::StageStart { stage: name.into(), playbook: "etcd.yml".into(), check: false })
    }

    #[test]
    fn a_host_is_one_line_and_a_failure_is_whole() {
        let events: Vec<Event> = example_run::example_events().into_iter().map(|reported| reported.event).collect();
        let run = RunId::new_at(SystemTime::UNIX_EPOCH);
        let text = printed(&[vec![stage("etcd")], events].concat(), Some(run));
        let expected = format!(
            "\nTASK [etcd : Start it] ****************\nfatal: [h2]: no <such> unit & no hope\n    task: site.yml:4:7\n\
             etcd: 2 hosts in 6.0 s\n  h1  1 task changed\n  h2  failed\nresults of all tasks: windlass logs {run}\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn hosts_are_in_the_order_of_the_inventory() {
        let play = Event::PlayStart {
            name: "Cluster".into(),
            origin: example_run::origin(1),
            hosts: vec!["b".into(), "a".into()],
            check: false,
        };
        let counts = |changed| Counts { changed, ..Counts::default() };
        let recap = Recap {
            hosts: [("a".into(), counts(0)), ("b".into(), counts(2)), ("localhost".into(), counts(1))].into(),
            interrupted: true,
            ..Recap::default()
        };
        let text = printed(&[stage("addons"), play, Event::Recap(recap)], None);
        let expected = "addons: 3 hosts in 0.0 s, interrupted\n  b          2 tasks changed\n  a          no change\n  localhost  1 task changed\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn messages_for_people_are_shown_and_nothing_else_of_what_is_well() {
        let told = Arc::new(TaskStart { action: "debug", ..example_run::task(1, "Show the members") });
        let done = Arc::new(example_run::task(2, "Write it"));
        let message = |text: Value| {
            let values: Vars = [("msg".into(), text)].into_iter().collect();
            TaskResult { values, ..example_run::result(Status::Ok) }
        };
        let lines: Value = vec!["one", "two\u{1b}[2J"].into();
        let hidden = TaskResult { no_log: true, ..message("secret".into()) };
        let events = [
            Event::TaskStart(told.clone()),
            example_run::ended(&told, "h1", message("2 keys".into())),
            example_run::ended(&told, "h2", message(lines)),
            example_run::ended(&told, "h3", hidden),
            example_run::ended(&told, "h4", example_run::result(Status::Skipped)),
            Event::TaskStart(done.clone()),
            example_run::ended(&done, "h1", example_run::result(Status::Changed)),
            example_run::ended(&done, "h2", example_run::result(Status::Ignored)),
            Event::Warning("the clock is slow".into()),
        ];
        let text = printed(&events, Some(RunId::new_at(SystemTime::UNIX_EPOCH)));
        let expected =
            "h1: 2 keys\nh2:\n    one\n    two\\x1b[2J\nh3: (hidden by no_log)\nwarning: the clock is slow\n";
        assert_eq!(text, expected);
    }
}
