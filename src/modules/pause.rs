//! `pause`: waits. It asks nobody: where a person would be prompted, it goes on, as Ansible does without a terminal.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::Local as LocalTime;
use serde::Deserialize;

use super::{Controller, Done, Error, Local, Outcome};
use crate::value::doc::{Argument, Doc, Kind, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    seconds: Option<i64>,
    minutes: Option<i64>,
    prompt: Option<String>,
    echo: bool,
}

#[async_trait]
impl Local for Pause {
    const DOC: Doc = Doc {
        name: "pause",
        collection: "ansible.builtin",
        summary: "Waits for some time",
        arguments: &[
            Argument::new("seconds", Kind::Int, "How long"),
            Argument::new("minutes", Kind::Int, "How long, in minutes"),
            Argument::new("prompt", Kind::Str, "Returned as a message; nobody is asked"),
            Argument::new("echo", Kind::Bool, "Has no effect without a prompt").default("true"),
        ],
        free_form: None,
        example: "\
- name: Give the cluster a second
  pause:
    seconds: 1
",
        returns: &[
            Return::new("start", "When it began"),
            Return::new("stop", "When it ended"),
            Return::new("delta", "How long it took, in seconds"),
            Return::new("stdout", "The same in words"),
            Return::new("user_input", "Always empty"),
            Return::new("echo", "As given"),
        ],
    };

    async fn run(&self, _: &Controller<'_>) -> Result<Done, Error> {
        let (length, unit) = match (self.seconds, self.minutes) {
            (Some(_), Some(_)) => return Err(Error::failed("only seconds or minutes can be given, not both")),
            (Some(seconds), None) => (Some(seconds), "seconds"),
            (None, Some(minutes)) => (Some(minutes.saturating_mul(60)), "minutes"),
            (None, None) => (None, "minutes"),
        };
        let (start, clock) = (LocalTime::now(), Instant::now());
        // Ansible waits a second at least.
        if let Some(seconds) = length {
            tokio::time::sleep(Duration::from_secs(seconds.max(1).unsigned_abs())).await;
        }
        let (stop, took) = (LocalTime::now(), clock.elapsed().as_secs_f64());
        let shown = if unit == "minutes" { took / 60.0 } else { took };
        const FORMAT: &str = "%Y-%m-%d %H:%M:%S%.6f";
        let outcome = Outcome { message: self.prompt.clone(), ..Outcome::default() }
            .with("start", start.format(FORMAT).to_string())
            .with("stop", stop.format(FORMAT).to_string())
            .with("delta", took as u64)
            .with("stdout", format!("Paused for {:.2} {unit}", shown))
            .with("stderr", "")
            .with("rc", 0)
            .with("user_input", "")
            .with("echo", self.echo);
        Ok(Done::unchanged(outcome))
    }
}
