//! What `command`, `shell`, `raw` and `script` share: whether to run at all (`creates`, `removes`), and the result.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use chrono::{DateTime, Local as LocalTime};
use minijinja::value::{Enumerator, Object, ObjectRepr};

use crate::modules::{Error, Outcome};
use crate::remote::{Command, Links, Output, Probe, Remote};
use crate::value::Value;

/// When a command is not to be run.
pub(in crate::modules) struct RunCondition<'a> {
    pub chdir: Option<&'a str>,
    pub creates: Option<&'a str>,
    pub removes: Option<&'a str>,
}

/// Why a command is not run.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::modules) struct SkipReason {
    pub path: String,
    pub exists: bool,
}

impl RunCondition<'_> {
    /// Whether `creates` or `removes` were given: then check mode can tell what would happen.
    pub(in crate::modules) fn decides(&self) -> bool {
        self.creates.is_some() || self.removes.is_some()
    }

    /// The reason not to run, if there is one. Patterns (`/etc/*.conf`) count as existing if anything matches.
    pub(in crate::modules) async fn reason(&self, probe: &Probe) -> Result<Option<SkipReason>, Error> {
        if let Some(path) = self.creates
            && self.exists(probe, path).await?
        {
            return Ok(Some(SkipReason { path: path.to_owned(), exists: true }));
        }
        if let Some(path) = self.removes
            && !self.exists(probe, path).await?
        {
            return Ok(Some(SkipReason { path: path.to_owned(), exists: false }));
        }
        Ok(None)
    }

    async fn exists(&self, probe: &Probe, path: &str) -> Result<bool, Error> {
        let mut path = probe.expand_on_host(path).await?;
        if let (Some(chdir), false) = (self.chdir, path.starts_with('/')) {
            path = format!("{}/{path}", probe.expand_on_host(chdir).await?.trim_end_matches('/'));
        }
        if !path.contains(['*', '?', '[']) {
            return Ok(probe.stat(&path, Links::Keep).await?.is_some());
        }
        let line =
            format!("for f in {}; do [ -e \"$f\" ] || [ -L \"$f\" ] && exit 0; done; exit 1", quote_pattern(&path));
        Ok(probe.query(&Command::shell(line)).await?.code == 0)
    }
}

/// Shell text for a file name pattern: everything but the pattern characters is quoted.
fn quote_pattern(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len() * 2);
    for c in pattern.chars() {
        match c {
            '*' | '?' | '[' | ']' | '-' | '!' | '/' | '.' | '_' => text.push(c),
            c if c.is_alphanumeric() => text.push(c),
            '\n' => text.push_str("'\n'"),
            c => text.extend(['\\', c]),
        }
    }
    text
}

/// Puts a text into single quotes for a shell.
pub(in crate::modules) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Ansible's outcome of `command` and `shell` that were not run for a reason.
pub(in crate::modules) fn not_run(reason: &SkipReason, cmd: Value, check: bool) -> Outcome {
    let would = if check { "Would" } else { "Did" };
    let state = if reason.exists { "exists" } else { "does not exist" };
    let stdout = format!("skipped, since {} {state}", reason.path);
    Outcome::default()
        .message(format!("{would} not run command since '{}' {state}", reason.path))
        .with("cmd", cmd)
        .with("rc", 0)
        .with("stdout_lines", vec![stdout.clone()])
        .with("stdout", stdout)
        .with("stderr", "")
        .with("stderr_lines", Vec::<String>::new())
        .with("start", ())
        .with("end", ())
        .with("delta", ())
}

/// The outcome of a run in check mode that `creates` or `removes` let through.
pub(in crate::modules) fn would_run(cmd: Value) -> Outcome {
    Outcome::default()
        .message("Command would have run if not in check mode")
        .with("cmd", cmd)
        .with("rc", 0)
        .with("stdout", "")
        .with("stdout_lines", Vec::<String>::new())
        .with("stderr", "")
        .with("stderr_lines", Vec::<String>::new())
}

/// Runs a command and takes the time.
pub(in crate::modules) async fn timed(remote: &Remote, command: &Command) -> Result<(Output, Times), Error> {
    let (start, clock) = (LocalTime::now(), Instant::now());
    let output = remote.run(command).await?;
    Ok((output, Times { start, end: LocalTime::now(), delta: clock.elapsed() }))
}

/// When a command ran, by the controller's clock.
pub(in crate::modules) struct Times {
    start: DateTime<LocalTime>,
    end: DateTime<LocalTime>,
    delta: std::time::Duration,
}

impl Times {
    /// Adds `start`, `end` and `delta` as Ansible writes them.
    pub(in crate::modules) fn add_to(&self, outcome: Outcome) -> Outcome {
        const FORMAT: &str = "%Y-%m-%d %H:%M:%S%.6f";
        outcome
            .with("start", self.start.format(FORMAT).to_string())
            .with("end", self.end.format(FORMAT).to_string())
            .with("delta", delta(self.delta))
    }
}

/// `0:00:01.250000`
pub(in crate::modules) fn delta(time: std::time::Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}:{:02}.{:06}", seconds / 3600, seconds / 60 % 60, seconds % 60, time.subsec_micros())
}

/// What a command left, under Ansible's names; a code other than 0 is a failure. `strip` takes line ends off the end.
pub(in crate::modules) fn command_outcome(output: Output, strip: bool) -> Outcome {
    let code = output.code;
    let text = |bytes: Vec<u8>| {
        let mut text =
            String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        if strip {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        Arc::<str>::from(text)
    };
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    let mut outcome = Outcome { changed: true, ..Outcome::default() }
        .with("rc", code)
        .with("stdout_lines", Lines::of(stdout.clone()))
        .with("stderr_lines", Lines::of(stderr.clone()))
        .with("stdout", stdout)
        .with("stderr", stderr);
    if code != 0 {
        outcome.failed = Some("non-zero return code".to_owned());
    }
    outcome
}

/// The lines of a text as a list that is no copy of it: outputs may be large, and few tasks look at both.
#[derive(Debug)]
struct Lines {
    text: Arc<str>,
    /// Where lines start and end, computed on demand: it may need more memory than the text.
    places: OnceLock<Vec<(usize, usize)>>,
}

impl Lines {
    fn of(text: Arc<str>) -> Value {
        Value::from_object(Lines { text, places: OnceLock::new() })
    }

    fn places(&self) -> &[(usize, usize)] {
        let base = self.text.as_ptr() as usize;
        let place = |line: &str| {
            let start = line.as_ptr() as usize - base;
            (start, start + line.len())
        };
        self.places.get_or_init(|| self.text.lines().map(place).collect())
    }
}

impl Object for Lines {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let (start, end) = *self.places().get(key.as_usize()?)?;
        Some(Value::from(&self.text[start..end]))
    }
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.places().len())
    }
}

/// The outcome, unless the code says that there is no such program and that is so: then Ansible's words for it.
pub(in crate::modules) async fn unless_missing(
    outcome: Outcome,
    code: i32,
    program: &str,
    probe: &Probe,
) -> Result<Outcome, Error> {
    let missing = code == 127
        && match program.contains('/') {
            true => probe.stat(program, Links::Follow).await?.is_none(),
            false => probe.which(program).await?.is_none(),
        };
    if !missing {
        return Ok(outcome);
    }
    let message = format!("[Errno 2] No such file or directory: '{program}'");
    Ok(Outcome { failed: Some(message), changed: false, ..outcome.with("rc", 2) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_texts_and_lines_without_the_last_line_end() {
        let output = Output { code: 0, stdout: b"a\r\n\xc3\xa4\n\n".to_vec(), stderr: Vec::new() };
        let outcome = command_outcome(output, true);
        assert_eq!(outcome.values["stdout"].as_str(), Some("a\r\nä"));
        assert_eq!(outcome.values["stdout_lines"].to_string(), "['a', 'ä']");
        assert_eq!(outcome.values["stderr_lines"].len(), Some(0));
        assert!(outcome.failed.is_none());
    }

    #[test]
    fn a_code_other_than_zero_is_a_failure_that_keeps_its_output() {
        let outcome = command_outcome(Output { code: 3, stdout: b"x\n".to_vec(), stderr: b"y".to_vec() }, false);
        assert_eq!(outcome.failed.as_deref(), Some("non-zero return code"));
        assert_eq!(outcome.values["stdout"].as_str(), Some("x\n"));
        assert_eq!(outcome.values["rc"].as_i64(), Some(3));
    }

    #[test]
    fn a_pattern_keeps_its_meaning_and_nothing_else_does() {
        assert_eq!(quote_pattern("/etc/a b/*.conf"), "/etc/a\\ b/*.conf");
        assert_eq!(quote_pattern("/x/$(id)'[0-9]?"), "/x/\\$\\(id\\)\\'[0-9]?");
    }

    #[test]
    fn a_delta_is_written_as_ansible_does() {
        assert_eq!(delta(std::time::Duration::from_millis(3_723_250)), "1:02:03.250000");
    }
}
