//! `pause`: waits for some time, or until a person at the terminal confirms. Once for all hosts.

use std::time::{Duration, Instant};

use chrono::Local as LocalTime;
use serde::Deserialize;

use super::question::{Answer, Question};
use super::{Controller, Error, Local, ModuleResult, Outcome};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pause {
    seconds: Option<f64>,
    minutes: Option<f64>,
    prompt: Option<String>,
    echo: bool,
}

impl Local for Pause {
    const ONCE: bool = true;
    const DOC: Doc = Doc {
        name: "pause",
        collection: "ansible.builtin",
        summary: "Wait for some time, or until a person at the terminal confirms",
        arguments: &[
            Argument::new(
                "seconds",
                ArgumentKind::Float,
                "How many seconds; without it and minutes, windlass asks on the terminal",
            ),
            Argument::new("minutes", ArgumentKind::Float, "How many minutes"),
            Argument::new("prompt", ArgumentKind::Str, "The text of the prompt"),
            Argument::new("echo", ArgumentKind::Bool, "Whether to show the typed text").default("true"),
        ],
        free_form: None,
        example: "\
- name: Wait for a second
  pause:
    seconds: 1

- name: Ask before continuing
  pause:
    prompt: Look at the graphs; press enter when all is well
",
        returns: &[
            Return::new("start", "The start time"),
            Return::new("stop", "The end time"),
            Return::new("delta", "The duration, in seconds"),
            Return::new("stdout", "The same in words"),
            Return::new("user_input", "The typed text; empty with seconds or minutes, and without a terminal"),
            Return::new("echo", "As given"),
        ],
    };

    async fn run(&self, here: &Controller<'_>) -> Result<ModuleResult, Error> {
        let (limit, unit) = self.limit()?;
        let (start, clock) = (LocalTime::now(), Instant::now());
        let (question, answer) = Question::new(self.prompt_text(limit), self.echo && limit.is_none(), limit);
        (here.ask)(question);
        let typed = match (answer.await, limit) {
            (Ok(Answer::Abort), _) => return Err(Error::failed("user requested abort!")),
            (Ok(Answer::Text(text)), _) => text,
            (Ok(Answer::GoOn), _) | (Err(_), None) => String::new(),
            // Without a terminal, the timeout still applies.
            (Err(_), Some(limit)) => {
                tokio::time::sleep(limit).await;
                String::new()
            }
        };
        // What is typed without being shown is a password: no report and no record may have it.
        if !self.echo {
            here.scope.keyring.hidden.add_secret(&typed);
        }
        let (stop, elapsed) = (LocalTime::now(), clock.elapsed());
        let took = elapsed.as_secs_f64();
        let shown = if unit == "minutes" { took / 60.0 } else { took };
        const FORMAT: &str = "%Y-%m-%d %H:%M:%S%.6f";
        let outcome = Outcome::default()
            .with("start", start.format(FORMAT).to_string())
            .with("stop", stop.format(FORMAT).to_string())
            .with("delta", elapsed.as_secs())
            // As Python writes a number with two digits at the most.
            .with("stdout", format!("Paused for {:?} {unit}", (shown * 100.0).round() / 100.0))
            .with("stderr", "")
            .with("rc", 0)
            .with("user_input", typed)
            .with("echo", self.echo);
        Ok(ModuleResult::unchanged(outcome))
    }
}

impl Pause {
    /// How long, at least a second; None: until a person continues. The unit is that of the result.
    fn limit(&self) -> Result<(Option<Duration>, &'static str), Error> {
        let (seconds, unit) = match (self.seconds, self.minutes) {
            (Some(_), Some(_)) => return Err(Error::failed("only seconds or minutes can be given, not both")),
            (Some(seconds), None) => (seconds.trunc(), "seconds"),
            (None, Some(minutes)) => (minutes.trunc() * 60.0, "minutes"),
            (None, None) => return Ok((None, "minutes")),
        };
        let limit = Duration::try_from_secs_f64(seconds.max(1.0));
        Ok((Some(limit.map_err(|_| Error::failed(format!("cannot pause for {seconds} seconds")))?), unit))
    }

    fn prompt_text(&self, limit: Option<Duration>) -> String {
        let prompt = self.prompt.as_deref().filter(|prompt| !prompt.is_empty());
        let hidden = if self.echo { "" } else { " (output is hidden)" };
        let Some(limit) = limit else {
            return format!("{}{hidden}:", prompt.unwrap_or("Press enter to continue, Ctrl+C to interrupt"));
        };
        let first = format!("Pausing for {} seconds", limit.as_secs());
        let keys = "(ctrl+C then 'C' = continue early, ctrl+C then 'A' = abort)";
        [Some(first.as_str()), Some(keys), prompt].into_iter().flatten().collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::*;

    #[tokio::test]
    async fn what_is_typed_is_returned() {
        let mut bench = Bench::new().await;
        bench.answers(Some(Answer::Text("yes, all well".into())));
        let done = bench.run("pause: {prompt: All well?}").await.unwrap();
        assert!(!done.changed);
        assert_eq!(value(&done.outcome, "user_input"), "yes, all well");
        assert_eq!(value(&done.outcome, "stdout"), "Paused for 0.0 minutes");
        assert_eq!(bench.asked(), [("All well?:".to_owned(), true, None)]);
        bench.run("pause: {prompt: Word?, echo: false}").await.unwrap();
        bench.run("pause:").await.unwrap();
        assert_eq!(bench.asked()[1].0, "Word? (output is hidden):");
        assert_eq!(bench.asked()[2].0, "Press enter to continue, Ctrl+C to interrupt:");
        assert!(!bench.asked()[1].1);
        bench.close().await;
    }

    #[tokio::test]
    async fn what_is_typed_without_being_shown_is_a_secret() {
        let mut bench = Bench::new().await;
        bench.answers(Some(Answer::Text("pa55phrase".to_owned())));
        bench.run("pause: {prompt: Word?}").await.unwrap();
        assert_eq!(bench.scope.keyring.hidden.hide("pa55phrase"), "pa55phrase");
        bench.run("pause: {prompt: Word?, echo: false}").await.unwrap();
        assert_eq!(bench.scope.keyring.hidden.hide("pa55phrase"), "***");
        bench.close().await;
    }

    #[tokio::test]
    async fn who_aborts_ends_the_play_and_who_continues_waits_no_more() {
        let mut bench = Bench::new().await;
        bench.answers(Some(Answer::Abort));
        assert_eq!(bench.failure("pause: {seconds: 1000}").await, "user requested abort!");
        bench.answers(Some(Answer::GoOn));
        let done = bench.run("pause: {minutes: 1000, prompt: Wait}").await.unwrap();
        assert_eq!(
            (value(&done.outcome, "delta"), value(&done.outcome, "user_input")),
            ("0".to_owned(), String::new())
        );
        let asked = bench.asked();
        assert_eq!(asked[1].2, Some(Duration::from_secs(60_000)));
        assert!(asked[1].0.starts_with("Pausing for 60000 seconds\n") && asked[1].0.ends_with("\nWait") && !asked[1].1);
        bench.close().await;
    }

    #[tokio::test]
    async fn where_nobody_can_be_asked_time_passes_all_the_same() {
        let bench = Bench::new().await;
        let done = bench.run("pause: {prompt: Anyone?}").await.unwrap();
        assert_eq!(value(&done.outcome, "user_input"), "");
        let clock = Instant::now();
        let done = bench.run("pause: {seconds: 0}").await.unwrap();
        assert!(clock.elapsed() >= Duration::from_secs(1));
        assert_eq!(value(&done.outcome, "delta"), "1");
        assert!(bench.failure("pause: {seconds: 1, minutes: 1}").await.contains("not both"));
        bench.close().await;
    }
}
