//! `raw`: a line for the shell, as it is.

use serde::Deserialize;

use super::{Async, Changes, Controller, Error, Module, Outcome, Plan, execution};
use crate::remote::{Command, Probe, Remote, RemoteErrorKind};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    cmd: String,
    executable: Option<String>,
}

impl Module for Raw {
    const CHANGES: Changes = Changes::Other;
    const ASYNC: Async = Async::Never;
    const DOC: Doc = Doc {
        name: "raw",
        collection: "ansible.builtin",
        summary: "Run a line in the host's shell, unchanged",
        arguments: &[
            Argument::new("cmd", ArgumentKind::Str, "The line").alias(&["free_form"]).required(),
            Argument::new("executable", ArgumentKind::Path, "The shell, instead of /bin/sh"),
        ],
        free_form: Some("cmd"),
        example: "\
- name: Read the uptime of the host
  raw: cat /proc/uptime
  changed_when: false
",
        returns: &[
            Return::new("rc", "The exit code"),
            Return::new("stdout", "Its standard output, unchanged"),
            Return::new("stdout_lines", "The same as a list of lines"),
            Return::new("stderr", "Its standard error, unchanged"),
            Return::new("stderr_lines", "The same as a list of lines"),
        ],
    };
    type Change = ();

    async fn plan(&self, _: &Probe, _: &Controller<'_>) -> Result<Plan<()>, Error> {
        Ok(Plan::NotInCheckMode(Outcome::default(), ()))
    }

    async fn apply(&self, (): (), remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let what = RemoteErrorKind::Shell { line: self.cmd.clone(), executable: self.executable.clone() };
        let output = remote.run(&Command { what, ..Command::default() }).await?;
        Ok(execution::command_outcome(output, false))
    }
}
