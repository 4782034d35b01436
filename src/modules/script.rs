//! `script`: runs a file of the controller on the host. Works where temporary directories are mounted noexec: the
//! file's interpreter is started with the file.

use std::path::Path;

use serde::Deserialize;

use super::async_job::{self, JobMetadata};
use super::execution::{self, RunCondition, quote};
use super::{Async, Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{Attributes, Command, Probe, Remote, RemoteErrorKind};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::vault;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    cmd: String,
    chdir: Option<String>,
    creates: Option<String>,
    removes: Option<String>,
    executable: Option<String>,
    decrypt: bool,
}

/// The file and the text of its arguments.
pub(super) struct Prepared {
    name: String,
    content: Vec<u8>,
    arguments: String,
}

impl Module for Script {
    const CHANGES: Changes = Changes::Other;
    const ASYNC: Async = Async::Job;
    const DOC: Doc = Doc {
        name: "script",
        collection: "ansible.builtin",
        summary: "Run a script of the controller on the host",
        arguments: &[
            Argument::new("cmd", ArgumentKind::Str, "The script's file on the controller and its arguments")
                .alias(&["free_form"])
                .required(),
            Argument::new("chdir", ArgumentKind::Path, "The directory to run in, absolute"),
            Argument::new("creates", ArgumentKind::Path, "A path or pattern; if it exists, the task is skipped"),
            Argument::new("removes", ArgumentKind::Path, "A path or pattern; unless it exists, the task is skipped"),
            Argument::new("executable", ArgumentKind::Str, "The interpreter, instead of the one in the first line"),
            Argument::new("decrypt", ArgumentKind::Bool, "Whether to decrypt a file encrypted with the vault")
                .default("true"),
        ],
        free_form: Some("cmd"),
        example: "\
- name: Run a script of the role with two arguments
  script: prepare.sh --force data
  args:
    creates: /var/lib/data/ready
",
        returns: &[
            Return::new("rc", "The exit code"),
            Return::new("stdout", "Its standard output, unchanged"),
            Return::new("stdout_lines", "The same as a list of lines"),
            Return::new("stderr", "Its standard error, unchanged"),
            Return::new("stderr_lines", "The same as a list of lines"),
        ],
    };
    type Change = Prepared;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<Prepared>, Error> {
        let guard = RunCondition { chdir: None, creates: self.creates.as_deref(), removes: self.removes.as_deref() };
        if let Some(reason) = guard.reason(probe).await? {
            let message = match reason.exists {
                true => format!("{} exists, matching creates option", reason.path),
                false => format!("{} does not exist, matching removes option", reason.path),
            };
            return Ok(Plan::Unchanged(Outcome { skipped: true, ..Outcome::default().message(message) }));
        }
        if let Some(chdir) = self.chdir.as_deref().filter(|path| !path.starts_with(['/', '~'])) {
            return Err(Error::failed(format!("chdir {chdir} must be an absolute path")));
        }
        let change = self.prepare(here)?;
        Ok(match guard.decides() {
            true => Plan::Change { diff: Vec::new(), outcome: Outcome::default(), change },
            false => Plan::NotInCheckMode(Outcome::default(), change),
        })
    }

    async fn apply(&self, change: Prepared, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        if let Some(limit) = here.apart {
            // The script is in the job's directory, and is removed with it.
            let place = async_job::job_location(remote, here).await?;
            let command = self.put(&change, &format!("{}/script.", place.directory), remote).await?;
            let notes = JobMetadata { cmd: serde_json::Value::Null, strip: false, program: None, bare: true };
            return async_job::start_job(remote, &place, &command, limit, &notes).await;
        }
        let directory = remote.temporary_directory().await?;
        let command = self.put(&change, &format!("{directory}/"), remote).await?;
        let output = remote.run(&command).await;
        remote.remove(&directory).await?;
        Ok(execution::command_outcome(output?, false))
    }
}

impl Script {
    /// Writes the script to the host, its name after `before`; the command that runs it there.
    async fn put(&self, change: &Prepared, before: &str, remote: &Remote) -> Result<Command, Error> {
        let file = format!("{before}{}", change.name);
        let attributes = Attributes { mode: Some(0o700), ..Attributes::default() };
        remote.write(&file, &change.content, &attributes).await?;
        let interpreter = self.executable.clone().unwrap_or_else(|| interpreter(&change.content));
        let line = format!("{interpreter} {}{}", quote(&file), change.arguments);
        let directory = match &self.chdir {
            Some(path) => Some(remote.expand_on_host(path).await?),
            None => None,
        };
        Ok(Command { what: RemoteErrorKind::Shell { line, executable: None }, directory, ..Command::default() })
    }

    fn prepare(&self, here: &Controller<'_>) -> Result<Prepared, Error> {
        let (source, arguments) = split(&self.cmd)?;
        let path = here.find_file("files", &source)?;
        let cannot = |reason: String| Error::failed(format!("cannot read {}: {reason}", path.display()));
        let mut content = std::fs::read(&path).map_err(|error| cannot(error.to_string()))?;
        if let Ok(text) = std::str::from_utf8(&content)
            && self.decrypt
            && vault::is_vault(text)
        {
            content = here.scope.keyring.decrypt_hidden(text).map_err(|error| cannot(error.to_string()))?;
        }
        let name = Path::new(&source).file_name().map_or_else(|| "script".into(), |name| name.to_string_lossy().into());
        Ok(Prepared { name, content, arguments })
    }
}

/// The script's file and the rest of the line, in which quotes stay.
fn split(cmd: &str) -> Result<(String, String), Error> {
    let cmd = cmd.trim();
    let unclosed = || Error::failed(format!("a quote is not closed in {cmd:?}"));
    // The first word ends at the first blank at which the text before it is one whole word.
    let ends = cmd.char_indices().filter(|(_, c)| c.is_whitespace()).map(|(at, _)| at).chain([cmd.len()]);
    for end in ends {
        if let Some(words) = shlex::split(&cmd[..end])
            && let [word] = words.as_slice()
        {
            return Ok((word.clone(), cmd[end..].to_owned()));
        }
    }
    if cmd.is_empty() { Err(Error::failed("no script given")) } else { Err(unclosed()) }
}

/// Shell text of what the first line of a script names; `/bin/sh` if it names nothing.
pub(super) fn interpreter(content: &[u8]) -> String {
    let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Some(named) = line.strip_prefix(b"#!") else { return "/bin/sh".to_owned() };
    let named = String::from_utf8_lossy(named);
    // As the kernel does: the program, and all the rest is one argument.
    match named.trim().split_once(char::is_whitespace) {
        Some((program, argument)) => format!("{} {}", quote(program), quote(argument.trim())),
        None if named.trim().is_empty() => "/bin/sh".to_owned(),
        None => quote(named.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::*;

    #[test]
    fn the_arguments_keep_their_quotes() {
        let pair = |cmd: &str| split(cmd).unwrap();
        assert_eq!(pair("a.sh"), ("a.sh".into(), String::new()));
        assert_eq!(pair(" a.sh 'x y' $Z "), ("a.sh".into(), " 'x y' $Z".into()));
        assert_eq!(pair("'my script.sh' 1"), ("my script.sh".into(), " 1".into()));
        assert!(split("'my script.sh 1").is_err());
        assert!(split(" ").is_err());
    }

    #[test]
    fn the_interpreter_is_what_the_first_line_names() {
        assert_eq!(interpreter(b"#!/bin/bash\necho"), "'/bin/bash'");
        assert_eq!(interpreter(b"#! /usr/bin/env python3\n"), "'/usr/bin/env' 'python3'");
        assert_eq!(interpreter(b"#!/usr/bin/awk -f -v x\r\n"), "'/usr/bin/awk' '-f -v x'");
        assert_eq!(interpreter(b"echo"), "/bin/sh");
        assert_eq!(interpreter(b""), "/bin/sh");
    }

    #[tokio::test]
    async fn a_script_runs_on_the_host_with_its_arguments_and_leaves_nothing() {
        let bench = Bench::new().await;
        bench.on_controller(
            "files/a script.sh",
            "#!/bin/bash\necho \"$# $2 ${BASH_VERSION:+bash} $PWD\"; echo $0 >&2; exit 4\n",
        );
        let done = bench.run("script: {cmd: \"'a script.sh' x 'y z'\", chdir: /}").await.unwrap();
        assert_eq!(value(&done.outcome, "stdout"), "2 y z bash /\n");
        assert_eq!(done.outcome.failed.as_deref(), Some("non-zero return code"));
        let path = value(&done.outcome, "stderr");
        assert!(path.trim().ends_with("/a script.sh") && !Path::new(path.trim()).exists(), "{path}");
        bench.close().await;
    }

    #[tokio::test]
    async fn a_script_is_skipped_by_creates_and_in_check_mode() {
        let bench = Bench::new().await;
        bench.on_controller("x.sh", "touch $1");
        let done = bench.run("script: {cmd: x.sh HOST/y, creates: HOST}").await.unwrap();
        assert!(done.outcome.skipped && !done.changed);
        assert!(bench.check("script: {cmd: x.sh HOST/y}").await.unwrap().outcome.skipped);
        assert!(bench.check("script: {cmd: x.sh HOST/y, creates: HOST/y}").await.unwrap().changed);
        assert!(bench.run_twice("script: {cmd: x.sh HOST/y, creates: HOST/y}").await.changed);
        assert!(bench.failure("script: {cmd: no.sh}").await.contains("cannot find \"no.sh\""));
        bench.close().await;
    }
}
