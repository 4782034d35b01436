//! `wait_for_connection`: waits until the host can be reached and used. It opens the connection itself, again and
//! again, so it runs on the controller.

use std::time::{Duration, Instant};

use serde::Deserialize;

use super::{Controller, Error, Local, ModuleResult, Outcome};
use crate::remote::{Command, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitForConnection {
    connect_timeout: u64,
    delay: u64,
    sleep: u64,
    timeout: u64,
}

impl Local for WaitForConnection {
    const DOC: Doc = Doc {
        name: "wait_for_connection",
        collection: "ansible.builtin",
        summary: "Wait until windlass can connect to the host and run commands",
        arguments: &[
            Argument::new("connect_timeout", ArgumentKind::Int, "Timeout for one attempt, in seconds").default("5"),
            Argument::new("delay", ArgumentKind::Int, "How many seconds to wait before the first attempt").default("0"),
            Argument::new("sleep", ArgumentKind::Int, "How many seconds to wait between two attempts").default("1"),
            Argument::new("timeout", ArgumentKind::Int, "How many seconds to wait at most").default("600"),
        ],
        free_form: None,
        example: "\
- name: Wait until the new host is up
  wait_for_connection:
    timeout: 120
",
        returns: &[Return::new("elapsed", "How many seconds it took")],
    };

    async fn run(&self, here: &Controller<'_>) -> Result<ModuleResult, Error> {
        if here.check {
            return Ok(ModuleResult::unchanged(Outcome { skipped: true, ..Outcome::default() }));
        }
        let clock = Instant::now();
        tokio::time::sleep(Duration::from_secs(self.delay)).await;
        let patience = RetryLimits {
            one: Duration::from_secs(self.connect_timeout),
            pause: Duration::from_secs(self.sleep),
            all: Duration::from_secs(self.timeout).saturating_sub(clock.elapsed()),
        };
        let reached = reach(here, &patience, "echo up", |_| true).await;
        let outcome = Outcome::default().with("elapsed", clock.elapsed().as_secs());
        Ok(ModuleResult::unchanged(match reached {
            Ok(_) => outcome,
            Err(why) => Outcome { failed: Some(format!("timed out waiting for the host: {why}")), ..outcome },
        }))
    }
}

/// How long to try.
pub(super) struct RetryLimits {
    pub one: Duration,
    pub pause: Duration,
    pub all: Duration,
}

/// Prints the identity of this start of the host's system.
pub(super) const BOOT_ID: &str = "cat /proc/sys/kernel/random/boot_id";

/// What the command says of this start of the host's system. A command that fails or says nothing is an error: its answer would differ
/// from that of any start.
pub(super) async fn boot_id(remote: &Remote, command: &str) -> Result<String, Error> {
    let output = remote.query(&Command::shell(command)).await?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let why = match output.code {
        0 if !text.is_empty() => return Ok(text),
        0 => "printed nothing".to_owned(),
        code => format!("ended with code {code}"),
    };
    Err(Error::failed(format!(
        "cannot read the boot time of the host, which shows whether it rebooted: {command:?} {why}"
    )))
}

/// Tries until the host answers with a boot that is good; or says why it did not.
pub(super) async fn reach(
    here: &Controller<'_>,
    patience: &RetryLimits,
    boot_command: &str,
    is_good: impl Fn(&str) -> bool + Send + Sync,
) -> Result<Remote, String> {
    let clock = Instant::now();
    let mut again = false;
    loop {
        let attempt = async {
            let remote = here.host.open(again).await?;
            let boot = boot_id(&remote, boot_command).await?;
            Ok::<_, Error>((remote, boot))
        };
        let why = match tokio::time::timeout(patience.one, attempt).await {
            Ok(Ok((remote, boot))) if is_good(&boot) => return Ok(remote),
            Ok(Ok(_)) => "it has not rebooted yet".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it timed out after {:?}", patience.one),
        };
        if clock.elapsed() + patience.pause >= patience.all {
            return Err(why);
        }
        tokio::time::sleep(patience.pause).await;
        again = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};

    #[tokio::test]
    async fn a_host_that_answers_is_not_waited_for() {
        let bench = Bench::new().await;
        let done = bench.run("wait_for_connection: {timeout: 5}").await.unwrap();
        assert!(!done.changed && done.outcome.failed.is_none());
        assert_eq!(value(&done.outcome, "elapsed"), "0");
        assert!(bench.check("wait_for_connection:").await.unwrap().outcome.skipped);
        bench.close().await;
    }
}
