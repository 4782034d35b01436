//! `command` (a program and its arguments, no shell) and `shell` (a line for a shell).

use serde::Deserialize;

use super::async_job::{self, JobMetadata};
use super::execution::{self, RunCondition};
use super::{Async, Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{self, Links, Probe, Remote, RemoteErrorKind};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

const CHDIR: Argument = Argument::new("chdir", ArgumentKind::Path, "The directory to run in");
const CREATES: Argument =
    Argument::new("creates", ArgumentKind::Path, "A path or pattern; if it exists, the task is skipped");
const REMOVES: Argument =
    Argument::new("removes", ArgumentKind::Path, "A path or pattern; unless it exists, the task is skipped");
const STDIN: Argument = Argument::new("stdin", ArgumentKind::Str, "The command's standard input");
const STDIN_NEWLINE: Argument =
    Argument::new("stdin_add_newline", ArgumentKind::Bool, "Whether to add a newline to stdin").default("true");
const STRIP: Argument =
    Argument::new("strip_empty_ends", ArgumentKind::Bool, "Whether to remove newlines at the end of stdout and stderr")
        .default("true");
const RETURNS: &[Return] = &[
    Return::new("cmd", "The command: a list for command, a string for shell"),
    Return::new("rc", "The exit code"),
    Return::new("stdout", "Its standard output"),
    Return::new("stdout_lines", "The same as a list of lines"),
    Return::new("stderr", "Its standard error"),
    Return::new("stderr_lines", "The same as a list of lines"),
    Return::new("start", "The start time"),
    Return::new("end", "The end time"),
    Return::new("delta", "The duration"),
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Command {
    cmd: Option<String>,
    argv: Option<Vec<String>>,
    chdir: Option<String>,
    creates: Option<String>,
    removes: Option<String>,
    stdin: Option<String>,
    stdin_add_newline: bool,
    strip_empty_ends: bool,
    expand_argument_vars: bool,
}

impl Module for Command {
    const CHANGES: Changes = Changes::Other;
    const ASYNC: Async = Async::Job;
    const DOC: Doc = Doc {
        name: "command",
        collection: "ansible.builtin",
        summary: "Run a program, without a shell",
        arguments: &[
            Argument::new("cmd", ArgumentKind::Str, "The program and its arguments, quoted as in a shell"),
            Argument::new(
                "argv",
                ArgumentKind::List(&ArgumentKind::Str),
                "The program and its arguments as a list, instead of cmd",
            ),
            CHDIR,
            CREATES,
            REMOVES,
            STDIN,
            STDIN_NEWLINE,
            STRIP,
            Argument::new(
                "expand_argument_vars",
                ArgumentKind::Bool,
                "Whether $NAME and ~ in arguments are expanded on the host",
            )
            .default("true"),
        ],
        free_form: Some("cmd"),
        example: "\
- name: Show the operating system
  command: uname -s
  register: kernel
  changed_when: false
- name: Pass arguments as a list, without quoting
  command:
    argv: [printf, '%s', two words]
",
        returns: RETURNS,
    };
    type Change = ();

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<()>, Error> {
        let argv = self.command_line()?;
        plan(&self.guard(), Value::from(argv), probe, here).await
    }

    async fn apply(&self, (): (), remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let argv = self.command_line()?;
        let what = if self.expand_argument_vars {
            expanded(&argv, remote).await?
        } else {
            RemoteErrorKind::Program(argv.clone())
        };
        let command = command(what, self.chdir.as_deref(), self.input(), remote).await?;
        if let Some(limit) = here.apart {
            let program = Some(argv[0].clone());
            let notes = JobMetadata { cmd: argv.into(), strip: self.strip_empty_ends, program, bare: false };
            let place = async_job::job_location(remote, here).await?;
            return async_job::start_job(remote, &place, &command, limit, &notes).await;
        }
        let (output, times) = execution::timed(remote, &command).await?;
        let code = output.code;
        // Ansible's modules have a message that says nothing.
        let outcome = execution::command_outcome(output, self.strip_empty_ends).message("");
        let outcome = times.add_to(outcome).with("cmd", argv.clone());
        execution::unless_missing(outcome, code, &argv[0], remote).await
    }
}

impl Command {
    fn guard(&self) -> RunCondition<'_> {
        RunCondition {
            chdir: self.chdir.as_deref(),
            creates: self.creates.as_deref(),
            removes: self.removes.as_deref(),
        }
    }

    /// The program and its arguments.
    fn command_line(&self) -> Result<Vec<String>, Error> {
        let words = match (&self.cmd, &self.argv) {
            (Some(_), Some(_)) => return Err(Error::failed("only command or argv can be given, not both")),
            (None, Some(argv)) => argv.clone(),
            (Some(cmd), None) => {
                shlex::split(cmd).ok_or_else(|| Error::failed(format!("a quote is not closed in {cmd:?}")))?
            }
            (None, None) => Vec::new(),
        };
        if words.is_empty() { Err(Error::failed("no command given")) } else { Ok(words) }
    }

    fn input(&self) -> Option<Vec<u8>> {
        input(self.stdin.as_deref(), self.stdin_add_newline)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shell {
    cmd: String,
    chdir: Option<String>,
    creates: Option<String>,
    removes: Option<String>,
    executable: Option<String>,
    stdin: Option<String>,
    stdin_add_newline: bool,
    strip_empty_ends: bool,
}

impl Module for Shell {
    const CHANGES: Changes = Changes::Other;
    const ASYNC: Async = Async::Job;
    const DOC: Doc = Doc {
        name: "shell",
        collection: "ansible.builtin",
        summary: "Run a line in a shell",
        arguments: &[
            Argument::new("cmd", ArgumentKind::Str, "The line, with pipes, redirections and variables of the host")
                .required(),
            CHDIR,
            CREATES,
            REMOVES,
            Argument::new("executable", ArgumentKind::Path, "The shell, instead of /bin/sh"),
            STDIN,
            STDIN_NEWLINE,
            STRIP,
        ],
        free_form: Some("cmd"),
        example: "\
- name: Count the users of this host
  shell: getent passwd | wc -l
  register: users
  changed_when: false
",
        returns: RETURNS,
    };
    type Change = ();

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<()>, Error> {
        let guard = RunCondition {
            chdir: self.chdir.as_deref(),
            creates: self.creates.as_deref(),
            removes: self.removes.as_deref(),
        };
        plan(&guard, Value::from(self.cmd.as_str()), probe, here).await
    }

    async fn apply(&self, (): (), remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let what = RemoteErrorKind::Shell { line: self.cmd.clone(), executable: self.executable.clone() };
        let input = input(self.stdin.as_deref(), self.stdin_add_newline);
        let command = command(what, self.chdir.as_deref(), input, remote).await?;
        if let Some(limit) = here.apart {
            let cmd = self.cmd.as_str().into();
            let notes = JobMetadata { cmd, strip: self.strip_empty_ends, program: None, bare: false };
            let place = async_job::job_location(remote, here).await?;
            return async_job::start_job(remote, &place, &command, limit, &notes).await;
        }
        let (output, times) = execution::timed(remote, &command).await?;
        let outcome = execution::command_outcome(output, self.strip_empty_ends).message("");
        Ok(times.add_to(outcome).with("cmd", self.cmd.as_str()))
    }
}

async fn plan(guard: &RunCondition<'_>, cmd: Value, probe: &Probe, here: &Controller<'_>) -> Result<Plan<()>, Error> {
    Ok(match guard.reason(probe).await? {
        Some(reason) => Plan::Unchanged(execution::not_run(&reason, cmd, here.check)),
        None if guard.decides() => Plan::Change { diff: Vec::new(), outcome: execution::would_run(cmd), change: () },
        None => {
            let outcome = execution::would_run(cmd).with("start", ()).with("end", ()).with("delta", ());
            Plan::NotInCheckMode(outcome, ())
        }
    })
}

/// The command; a directory that is not there is an error by its name.
async fn command(
    what: RemoteErrorKind,
    chdir: Option<&str>,
    stdin: Option<Vec<u8>>,
    probe: &Probe,
) -> Result<remote::Command, Error> {
    let directory = match chdir {
        Some(path) => Some(directory(path, probe).await?),
        None => None,
    };
    Ok(remote::Command { what, directory, stdin, ..remote::Command::default() })
}

async fn directory(path: &str, probe: &Probe) -> Result<String, Error> {
    let path = probe.expand_on_host(path).await?;
    match probe.stat(&path, Links::Follow).await? {
        Some(stat) if stat.kind == remote::FileKind::Directory => Ok(path),
        Some(_) => {
            Err(Error::failed(format!("unable to change directory before execution: {path} is not a directory")))
        }
        None => Err(Error::failed(format!("unable to change directory before execution: no such directory: {path}"))),
    }
}

fn input(stdin: Option<&str>, add_newline: bool) -> Option<Vec<u8>> {
    let mut text = stdin?.to_owned();
    if add_newline && !text.ends_with('\n') {
        text.push('\n');
    }
    Some(text.into_bytes())
}

/// Expands `$NAME`, `${NAME}` and a leading `~` in arguments, as the host has them; unset variables are kept as written.
async fn expanded(argv: &[String], probe: &Probe) -> Result<RemoteErrorKind, Error> {
    let mut words = Vec::with_capacity(argv.len());
    for word in argv {
        words.push(if word.starts_with('~') { probe.expand_on_host(word).await? } else { word.clone() });
    }
    if !words.iter().any(|word| word.contains('$')) {
        return Ok(RemoteErrorKind::Program(words));
    }
    let line = words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
    Ok(RemoteErrorKind::Shell { line: format!("exec {line}"), executable: None })
}

/// Shell text for a word in which only variables are expanded.
fn shell_word(word: &str) -> String {
    let (mut text, mut rest) = (String::new(), word);
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        let after = &from[1..];
        let braced = after.starts_with('{');
        let name: &str = after[usize::from(braced)..]
            .split(|c: char| c != '_' && !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or_default();
        let closed = !braced || after[1 + name.len()..].starts_with('}');
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !closed {
            text.push_str(&execution::quote(&rest[..=at]));
            rest = after;
            continue;
        }
        if !before.is_empty() {
            text.push_str(&execution::quote(before));
        }
        let unset = if braced { format!("\\${{{name}\\}}") } else { format!("\\${name}") };
        text.push_str(&format!("\"${{{name}-{unset}}}\""));
        rest = &after[name.len() + 2 * usize::from(braced)..];
    }
    if !rest.is_empty() || text.is_empty() {
        text.push_str(&execution::quote(rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::*;

    #[test]
    fn only_variables_are_left_to_the_shell() {
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("$HOME/x"), "\"${HOME-\\$HOME}\"'/x'");
        assert_eq!(shell_word("a${B}c"), "'a'\"${B-\\${B\\}}\"'c'");
        assert_eq!(shell_word("$(id) $1 ${x"), "'$''(id) $''1 $''{x'");
    }

    #[test]
    fn what_the_shell_makes_of_a_word_is_the_word_with_its_variables() {
        for (word, expected) in [("$A_B/x", "v/x"), ("${A_B}y", "vy"), ("${NONE_}", "${NONE_}"), ("$NONE_'", "$NONE_'")]
        {
            let line = format!("printf %s {}", shell_word(word));
            let output = std::process::Command::new("sh").args(["-c", &line]).env("A_B", "v").output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{line}");
        }
    }

    #[test]
    fn stdin_ends_with_one_line_end() {
        assert_eq!(input(Some("a"), true), Some(b"a\n".to_vec()));
        assert_eq!(input(Some("a\n"), true), Some(b"a\n".to_vec()));
        assert_eq!(input(Some("a"), false), Some(b"a".to_vec()));
        assert_eq!(input(None, true), None);
    }

    #[tokio::test]
    async fn a_command_gives_its_output_code_and_times() {
        let bench = Bench::new().await;
        let done = bench.run("command: {argv: [printf, '%s\\n', 'a  b', $NO_SUCH_NAME]}").await.unwrap();
        assert!(done.changed);
        assert_eq!(value(&done.outcome, "stdout"), "a  b\n$NO_SUCH_NAME");
        assert_eq!(value(&done.outcome, "cmd"), "['printf', '%s\\\\n', 'a  b', '$NO_SUCH_NAME']");
        assert_eq!(value(&done.outcome, "rc"), "0");
        assert!(value(&done.outcome, "delta").starts_with("0:00:0"), "{}", value(&done.outcome, "delta"));
        let failed = bench.run("shell: {cmd: 'echo out; echo err >&2; exit 3', chdir: HOST}").await.unwrap();
        assert_eq!(failed.outcome.failed.as_deref(), Some("non-zero return code"));
        assert_eq!((value(&failed.outcome, "stderr"), value(&failed.outcome, "rc")), ("err".into(), "3".into()));
        bench.close().await;
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let bench = Bench::new().await;
        let done = bench.run("command: {cmd: no-such-program -x}").await.unwrap();
        assert_eq!(value(&done.outcome, "rc"), "2");
        assert!(done.outcome.failed.unwrap().contains("No such file or directory: 'no-such-program'"));
        assert!(bench.failure("command: {cmd: pwd, chdir: HOST/no}").await.contains("no such directory: "));
        assert!(bench.failure("command: {cmd: \"echo 'a\"}").await.contains("is not closed"));
        bench.close().await;
    }

    #[tokio::test]
    async fn what_is_created_or_removed_decides_whether_it_runs() {
        let bench = Bench::new().await;
        let task = "command: {cmd: touch x1, chdir: HOST, creates: 'x*'}";
        assert!(bench.check(task).await.unwrap().changed);
        let first = bench.run_twice(task).await;
        assert!(first.changed);
        let done = bench.run(task).await.unwrap();
        assert_eq!(value(&done.outcome, "rc"), "0");
        assert!(done.outcome.message.unwrap().starts_with("Did not run command since '"));
        let done = bench.check("shell: {cmd: rm y, removes: HOST/y}").await.unwrap();
        assert!(!done.changed && done.outcome.message.unwrap().ends_with("/y' does not exist"));
        bench.close().await;
    }

    #[tokio::test]
    async fn in_check_mode_a_command_is_skipped() {
        let bench = Bench::new().await;
        for task in ["command: {cmd: touch HOST/x}", "shell: {cmd: touch HOST/x}", "raw: {cmd: touch HOST/x}"] {
            let done = bench.check(task).await.unwrap();
            assert!(done.outcome.skipped && !done.changed, "{task}");
        }
        bench.close().await;
    }

    #[tokio::test]
    async fn a_shell_line_is_for_a_shell_of_ones_choice_and_reads_stdin() {
        let bench = Bench::new().await;
        let done = bench.run("shell: {cmd: 'cat; echo ${BASH_VERSION:+bash}', executable: /bin/bash, stdin: in}").await;
        assert_eq!(value(&done.unwrap().outcome, "stdout"), "in\nbash");
        let done = bench.run("raw: {cmd: 'printf \"a\\n\\n\"'}").await.unwrap();
        assert_eq!(value(&done.outcome, "stdout"), "a\n\n");
        bench.close().await;
    }
}
