//! `ping`: whether a host can be reached and used.

use serde::Deserialize;

use super::{Controller, Error, Inspect, Outcome};
use crate::remote::{Command, Probe};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ping {
    data: String,
}

impl Inspect for Ping {
    const DOC: Doc = Doc {
        name: "ping",
        collection: "ansible.builtin",
        summary: "Check that windlass can connect to a host and run commands",
        arguments: &[Argument::new("data", ArgumentKind::Str, "The text to return; \"crash\" makes the task fail")
            .default("pong")],
        free_form: None,
        example: "\
- name: Check the connection
  ping:
",
        returns: &[Return::new("ping", "The text of data")],
    };
    async fn inspect(&self, probe: &Probe, _: &Controller<'_>) -> Result<Outcome, Error> {
        if self.data == "crash" {
            return Err(Error::failed("boom"));
        }
        // A session that was opened long ago says nothing about now: ask the host itself.
        let echoed = probe.query(&Command::program(["printf", "%s", &self.data])).await?;
        match echoed.code {
            0 => Ok(Outcome::default().with("ping", String::from_utf8_lossy(&echoed.stdout).into_owned())),
            code => Err(Error::failed(format!("the host cannot run a simple command: exit code {code}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};

    #[tokio::test]
    async fn the_host_answers_its_argument_and_crashes_on_request() {
        let bench = Bench::new().await;
        assert_eq!(value(&bench.check("ping: {data: 'a b'}").await.unwrap().outcome, "ping"), "a b");
        assert_eq!(bench.failure("ping: {data: crash}").await, "boom");
        bench.close().await;
    }
}
