//! Test results in the XML that build servers read (JUnit's): a suite per play, a case per task and host.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::Report;
use super::human::command_line;
use crate::engine::masking::HIDDEN;
use crate::engine::{Event, Status, TaskResult, TaskStart};

/// Written when the run ends, even if it was interrupted.
pub(super) struct Junit<W> {
    out: W,
    begun: Option<SystemTime>,
    last: SystemTime,
    suites: Vec<Suite>,
}

struct Suite {
    name: String,
    file: String,
    begun: SystemTime,
    ended: SystemTime,
    cases: Vec<Case>,
    /// Loop items that failed or were ignored, until their task ends on their host.
    items: Vec<(usize, Arc<str>, String)>,
}

struct Case {
    task: Arc<TaskStart>,
    host: Arc<str>,
    result: Arc<TaskResult>,
    /// The lines of its loop items.
    items: Vec<String>,
}

impl<W: Write + Send> Junit<W> {
    pub(super) fn new(out: W) -> Self {
        Junit { out, begun: None, last: SystemTime::UNIX_EPOCH, suites: Vec::new() }
    }

    fn document(&self) -> String {
        let took = self.begun.map_or(Duration::ZERO, |begun| self.last.duration_since(begun).unwrap_or_default());
        let cases = || self.suites.iter().flat_map(|suite| &suite.cases);
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let (counts, seconds) = (counts(cases()), took.as_secs_f64());
        xml.push_str(&format!("<testsuites name=\"windlass\" {counts} time=\"{seconds:.3}\">\n"));
        self.suites.iter().for_each(|suite| suite.write(&mut xml));
        xml.push_str("</testsuites>\n");
        xml
    }
}

impl<W: Write + Send> Report for Junit<W> {
    fn event(&mut self, at: SystemTime, event: &Event) -> io::Result<()> {
        self.begun.get_or_insert(at);
        self.last = at;
        match event {
            Event::PlayStart { name, origin, .. } => {
                let file = origin.path().display().to_string();
                self.suites.push(Suite {
                    name: name.clone(),
                    file,
                    begun: at,
                    ended: at,
                    cases: Vec::new(),
                    items: Vec::new(),
                });
            }
            Event::Item { task, host, label, result, .. } => {
                let Some(suite) = self.suites.last_mut() else { return Ok(()) };
                if result.failed() || result.status == Status::Ignored {
                    suite.items.push((task.id, host.clone(), format!("item {label}: {}", message(result))));
                }
            }
            Event::Result { task, host, result, .. } => {
                let Some(suite) = self.suites.last_mut() else { return Ok(()) };
                let of_this = |item: &mut (usize, Arc<str>, String)| item.0 == task.id && item.1 == *host;
                let items = suite.items.extract_if(.., of_this).map(|(_, _, words)| words).collect();
                suite.cases.push(Case { task: task.clone(), host: host.clone(), result: result.clone(), items });
                suite.ended = at;
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let document = self.document();
        self.out.write_all(document.as_bytes())?;
        self.out.flush()
    }
}

impl Suite {
    fn write(&self, xml: &mut String) {
        let took = self.ended.duration_since(self.begun).unwrap_or_default().as_secs_f64();
        let skipped = self.cases.iter().filter(|case| case.result.status == Status::Skipped).count();
        let counts = counts(self.cases.iter());
        // Without a zone, as the schema has it; it is UTC.
        let begun = chrono::DateTime::<chrono::Utc>::from(self.begun).format("%Y-%m-%dT%H:%M:%S");
        let (name, file) = (escaped(&self.name), escaped(&self.file));
        xml.push_str(&format!("  <testsuite name=\"{name}\" file=\"{file}\" timestamp=\"{begun}\" {counts}"));
        xml.push_str(&format!(" skipped=\"{skipped}\" time=\"{took:.3}\">\n"));
        // Build servers take dots for the borders of packages.
        let class = self.name.replace('.', "_");
        self.cases.iter().for_each(|case| case.write(&class, xml));
        xml.push_str("  </testsuite>\n");
    }
}

impl Case {
    fn write(&self, class: &str, xml: &mut String) {
        let origin = &self.task.origin;
        let name = escaped(&format!("[{}] {}", self.host, self.task.name));
        let file = escaped(&origin.path().display().to_string());
        let seconds = self.result.took.as_secs_f64();
        xml.push_str(&format!("    <testcase name=\"{name}\" classname=\"{}\" file=\"{file}\"", escaped(class)));
        xml.push_str(&format!(" line=\"{}\" time=\"{seconds:.3}\"", origin.line));
        match self.body() {
            Some(body) => xml.push_str(&format!(">\n      {body}\n    </testcase>\n")),
            None => xml.push_str("/>\n"),
        }
    }

    /// The content of the case; None: it succeeded.
    fn body(&self) -> Option<String> {
        let result = &self.result;
        let message = message(result);
        let reported = |tag: &str| {
            let first = escaped(message.lines().next().unwrap_or_default());
            let details = escaped(&self.details(&message));
            format!("<{tag} message=\"{first}\" type=\"{}\">{details}</{tag}>", self.task.action)
        };
        match result.status {
            Status::Failed => Some(reported("failure")),
            Status::Unreachable => Some(reported("error")),
            Status::Skipped => {
                let why = result.values.get("skip_reason").or_else(|| result.values.get("skipped_reason"));
                let why = why.map_or_else(|| "skipped".to_string(), ToString::to_string);
                Some(format!("<skipped message=\"{}\"/>", escaped(&why)))
            }
            Status::Ignored => {
                let words = format!("failed, and ignored: {}", self.details(&message));
                Some(format!("<system-out>{}</system-out>", escaped(&words)))
            }
            Status::Ok | Status::Changed => None,
        }
    }

    fn details(&self, message: &str) -> String {
        let mut lines = vec![message.to_string()];
        lines.extend(self.items.iter().cloned());
        for name in ["assertion", "cmd", "rc", "stdout", "stderr"] {
            let Some(value) = self.result.values.get(name) else { continue };
            let words = if name == "cmd" { command_line(value) } else { value.to_string() };
            if !words.trim().is_empty() {
                lines.push(format!("{name}: {}", words.trim_end()));
            }
        }
        lines.extend(self.result.hint.iter().map(|hint| format!("hint: {hint}")));
        lines.join("\n")
    }
}

fn message(result: &TaskResult) -> String {
    match (&result.message, result.no_log) {
        (_, true) => HIDDEN.to_string(),
        (Some(message), false) => message.clone(),
        (None, false) => "failed".to_string(),
    }
}

fn counts<'a>(cases: impl Iterator<Item = &'a Case>) -> String {
    let (mut tests, mut failures, mut errors) = (0, 0, 0);
    for case in cases {
        tests += 1;
        failures += usize::from(case.result.status == Status::Failed);
        errors += usize::from(case.result.status == Status::Unreachable);
    }
    format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"")
}

/// Text for XML: characters that XML cannot contain become question marks.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\r' => escaped.push_str("&#13;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::example_run::{self, CapturedOutput};
    use super::*;
    use crate::value::Value;

    fn written(events: Vec<crate::engine::TimedEvent>) -> String {
        let sheet = CapturedOutput::default();
        let mut junit = Junit::new(sheet.clone());
        events.iter().for_each(|reported| junit.event(reported.at, &reported.event).unwrap());
        assert_eq!(sheet.captured_text(), "");
        junit.end().unwrap();
        sheet.captured_text()
    }

    #[test]
    fn a_play_is_a_suite_and_a_task_on_a_host_is_a_case() {
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="windlass" tests="2" failures="1" errors="0" time="7.000">
  <testsuite name="Cluster" file="site.yml" timestamp="2023-11-14T22:13:20" tests="2" failures="1" errors="0" skipped="0" time="5.000">
    <testcase name="[h1] etcd : Start it" classname="Cluster" file="site.yml" line="4" time="1.000"/>
    <testcase name="[h2] etcd : Start it" classname="Cluster" file="site.yml" line="4" time="1.000">
      <failure message="no &lt;such&gt; unit &amp; no hope" type="command">no &lt;such&gt; unit &amp; no hope</failure>
    </testcase>
  </testsuite>
</testsuites>
"#;
        assert_eq!(written(example_run::example_events()), expected);
    }

    #[test]
    fn skipped_ignored_unreachable_and_loops_are_reported_as_such() {
        let task = Arc::new(example_run::task(1, "T"));
        let failed = TaskResult { message: Some("item went wrong".into()), ..example_run::result(Status::Failed) };
        let item = Event::Item {
            task: task.clone(),
            host: "a".into(),
            delegated: None,
            label: "x\u{1b}".into(),
            result: Arc::new(failed),
        };
        let values = [("skip_reason".into(), Value::from("Conditional result was False"))].into_iter().collect();
        let xml = written(example_run::apart(vec![
            example_run::play("v1.2"),
            item,
            example_run::ended(&task, "a", example_run::result(Status::Failed)),
            example_run::ended(&task, "b", TaskResult { values, ..example_run::result(Status::Skipped) }),
            example_run::ended(&task, "c", example_run::result(Status::Ignored)),
            example_run::ended(&task, "d", example_run::result(Status::Unreachable)),
        ]));
        for part in [
            r#"tests="4" failures="1" errors="1" skipped="1""#,
            r#"classname="v1_2""#,
            r#"<failure message="failed" type="command">failed&#10;item x?: item went wrong</failure>"#,
            r#"<skipped message="Conditional result was False"/>"#,
            "<system-out>failed, and ignored: failed</system-out>",
            r#"<error message="failed" type="command">failed</error>"#,
        ] {
            assert!(xml.contains(part), "{part} is not in\n{xml}");
        }
    }

    #[test]
    fn a_result_under_no_log_gives_no_reason() {
        let task = Arc::new(example_run::task(1, "T"));
        let secret = TaskResult { no_log: true, ..example_run::result(Status::Failed) };
        let xml = written(example_run::apart(vec![example_run::play("p"), example_run::ended(&task, "a", secret)]));
        assert!(xml.contains(r#"<failure message="(hidden by no_log)" type="command">(hidden by no_log)<"#), "{xml}");
    }
}
