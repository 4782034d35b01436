//! `async_status`: how far a job is that a task with `async` started.

use serde::Deserialize;

use super::{Async, Changes, Controller, Error, Module, Outcome, Plan, async_job};
use crate::remote::{Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AsyncStatus {
    jid: String,
    mode: Mode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Status,
    Cleanup,
}

/// What is to be done on the host.
pub(super) enum AsyncStatusChange {
    /// Nothing; the job changed something while it ran.
    TimedEvent(Box<Outcome>),
    Cleanup,
}

impl Module for AsyncStatus {
    const CHANGES: Changes = Changes::Nothing;
    const ASYNC: Async = Async::Never;
    const DOC: Doc = Doc {
        name: "async_status",
        collection: "ansible.builtin",
        summary: "Query the status of a job that a task with async started, or remove its files",
        arguments: &[
            Argument::new("jid", ArgumentKind::Str, "The ansible_job_id of the task that started it").required(),
            Argument::new(
                "mode",
                ArgumentKind::Str,
                "status queries the job, cleanup removes the job's directory on the host",
            )
            .choices(&["status", "cleanup"])
            .default("status"),
        ],
        free_form: None,
        example: "\
- name: Start a long job
  command: sleep 1
  async: 600
  poll: 0
  register: long
- name: Wait for it
  async_status:
    jid: \"{{ long.ansible_job_id }}\"
  register: job
  until: job is finished
  retries: 60
  delay: 1
- name: Remove the files of the job
  async_status:
    jid: \"{{ long.ansible_job_id }}\"
    mode: cleanup
",
        returns: &[
            Return::new("ansible_job_id", "The job"),
            Return::new("started", "Whether it was started"),
            Return::new("finished", "Whether it has ended; then its task's results are also returned"),
            Return::new("results_file", "The directory of the job on the host"),
            Return::new("erased", "What mode cleanup removed"),
        ],
    };
    type Change = AsyncStatusChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<AsyncStatusChange>, Error> {
        if let Some(outcome) = async_job::not_begun(&self.jid) {
            return Ok(Plan::Unchanged(Outcome { skipped: here.check, ..outcome }));
        }
        let parent = async_job::directory(probe, here.templar, here.scope).await?;
        let reported = async_job::read_job(probe, &parent, &self.jid).await?;
        let found = reported.failed.is_none() || reported.values.contains_key("stdout");
        Ok(match self.mode {
            Mode::Cleanup if found => Plan::Unknown(AsyncStatusChange::Cleanup),
            Mode::Status if reported.changed => Plan::Change {
                diff: Vec::new(),
                outcome: reported.clone(),
                change: AsyncStatusChange::TimedEvent(Box::new(reported)),
            },
            _ => Plan::Unchanged(reported),
        })
    }

    async fn apply(&self, change: AsyncStatusChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        if let AsyncStatusChange::TimedEvent(reported) = change {
            return Ok(*reported);
        }
        let parent = async_job::directory(remote, here.templar, here.scope).await?;
        let erased = async_job::forget(remote, &parent, &self.jid).await?;
        let outcome = Outcome::default().with("ansible_job_id", self.jid.as_str()).with("erased", erased);
        let outcome = outcome.with("stdout", "").with("stdout_lines", Vec::<String>::new());
        let outcome = outcome.with("stderr", "").with("stderr_lines", Vec::<String>::new());
        Ok(outcome.with("started", false).with("finished", false))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{Bench, value};
    use super::*;

    /// A bench whose tasks run apart from the connection, below `HOST/jobs`.
    async fn bench() -> Bench {
        let mut bench = Bench::new().await;
        let jobs = bench.host("jobs");
        bench.vars(&format!("ansible_async_dir: {}", jobs.display()));
        bench.apart = Some(Duration::from_secs(60));
        bench
    }

    /// The result of a job after it has ended.
    async fn ended(bench: &Bench, job: &str) -> super::super::ModuleResult {
        for _ in 0..200 {
            let done = bench.run(&format!("async_status: {{jid: {job}}}")).await.unwrap();
            if value(&done.outcome, "finished") == "True" {
                return done;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{job} does not end")
    }

    #[tokio::test]
    async fn a_job_is_followed_from_its_start_to_its_removal() {
        let bench = bench().await;
        let begun = bench.run("shell: {cmd: 'echo out; echo err >&2; sleep 0.3; exit 3'}").await.unwrap();
        assert!(begun.outcome.changed && begun.outcome.failed.is_none());
        assert_eq!(value(&begun.outcome, "finished"), "False");
        let job = value(&begun.outcome, "ansible_job_id");
        let done = ended(&bench, &job).await;
        assert!(done.changed);
        assert_eq!(done.outcome.failed.as_deref(), Some("non-zero return code"));
        let reported = ["stdout", "stderr", "rc", "cmd"].map(|name| value(&done.outcome, name));
        assert_eq!(reported, ["out", "err", "3", "echo out; echo err >&2; sleep 0.3; exit 3"]);
        assert!(value(&done.outcome, "delta").starts_with("0:00:0"), "{}", value(&done.outcome, "delta"));
        let checked = bench.check(&format!("async_status: {{jid: {job}}}")).await.unwrap();
        assert_eq!(value(&checked.outcome, "rc"), "3");
        let cleanup = format!("async_status: {{jid: {job}, mode: cleanup}}");
        assert!(bench.check(&cleanup).await.unwrap().outcome.skipped);
        let done = bench.run(&cleanup).await.unwrap();
        assert!(!done.changed && value(&done.outcome, "erased").ends_with(&job));
        assert_eq!(std::fs::read_dir(bench.host("jobs")).unwrap().count(), 0, "something is left");
        assert_eq!(bench.failure(&cleanup).await, "could not find job");
        bench.close().await;
    }

    #[tokio::test]
    async fn a_script_and_a_missing_program_run_apart_too() {
        let bench = bench().await;
        bench.on_controller("run", "#!/bin/sh\necho $1\n");
        let begun = bench.run("script: {cmd: run 'a b'}").await.unwrap();
        let done = ended(&bench, &value(&begun.outcome, "ansible_job_id")).await;
        assert_eq!(value(&done.outcome, "stdout"), "a b\n");
        let begun = bench.run("command: {cmd: no-such-program x}").await.unwrap();
        let done = ended(&bench, &value(&begun.outcome, "ansible_job_id")).await;
        assert_eq!(value(&done.outcome, "rc"), "2");
        assert!(done.outcome.failed.unwrap().contains("No such file or directory: 'no-such-program'"));
        bench.close().await;
    }

    #[tokio::test]
    async fn a_name_never_leads_out_of_the_jobs_and_a_job_not_begun_is_known() {
        let bench = bench().await;
        for name in ["../x", "/etc", "..", "''"] {
            let failure = bench.failure(&format!("async_status: {{jid: {name}, mode: cleanup}}")).await;
            assert!(failure.contains("invalid job id"), "{name}: {failure}");
        }
        let mut outcome = Outcome::default();
        async_job::name_of_none(&mut outcome);
        let asks = format!("async_status: {{jid: {}}}", value(&outcome, "ansible_job_id"));
        let done = bench.run(&asks).await.unwrap();
        assert_eq!((value(&done.outcome, "finished"), done.outcome.skipped), ("True".into(), false));
        assert!(bench.check(&asks).await.unwrap().outcome.skipped);
        bench.close().await;
    }
}
