//! `lineinfile`: inserts, replaces or removes one line of a text file.

mod edit;

use serde::Deserialize;

use super::file_attributes::DesiredAttributes;
use super::file_edit::{self, Target, WriteOptions};
use super::file_write::Write;
use super::{Changes, Controller, Error, Module, Outcome, Plan, file_arguments, python_regex};
use crate::remote::{Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use edit::{Edited, InsertPosition, Search};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lineinfile {
    path: String,
    state: State,
    regexp: Option<String>,
    search_string: Option<String>,
    line: Option<String>,
    backrefs: bool,
    insertafter: Option<String>,
    insertbefore: Option<String>,
    firstmatch: bool,
    create: bool,
    backup: bool,
    validate: Option<String>,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Present,
    Absent,
}

pub(super) struct LineinfileChange {
    write: Write,
    outcome: Outcome,
}

impl Module for Lineinfile {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "lineinfile",
        collection: "ansible.builtin",
        summary: "Add, replace or remove a line in a text file",
        arguments: &[
            file_arguments::TEXT_FILE,
            Argument::new("state", ArgumentKind::Str, "Whether the line should be in the file")
                .default("present")
                .choices(&["absent", "present"]),
            Argument::new(
                "regexp",
                ArgumentKind::Str,
                "Regular expression: the last matching line is replaced; with state \
                absent all matching lines are removed",
            )
            .alias(&["regex"]),
            Argument::new(
                "search_string",
                ArgumentKind::Str,
                "The line to replace contains this text; instead of regexp",
            ),
            Argument::new("line", ArgumentKind::Str, "The line").alias(&["value"]),
            Argument::new(
                "backrefs",
                ArgumentKind::Bool,
                "Whether line contains \\1 and so on of regexp; then no line is added",
            )
            .default("false"),
            Argument::new(
                "insertafter",
                ArgumentKind::Str,
                "Regular expression of the line to insert a new line after, or EOF",
            ),
            Argument::new(
                "insertbefore",
                ArgumentKind::Str,
                "Regular expression of the line to insert a new line before, or BOF",
            ),
            Argument::new(
                "firstmatch",
                ArgumentKind::Bool,
                "Whether to use the first matching line instead of the last",
            )
            .default("false"),
            file_arguments::CREATE,
            file_arguments::BACKUP,
            file_arguments::VALIDATE,
            file_arguments::OWNER,
            file_arguments::GROUP,
            file_arguments::MODE,
            file_arguments::ATTRIBUTES,
            file_arguments::SEUSER,
            file_arguments::SEROLE,
            file_arguments::SETYPE,
            file_arguments::SELEVEL,
            file_arguments::UNSAFE_WRITES,
        ],
        free_form: None,
        example: r#"
- name: Forbid root logins over SSH
  lineinfile:
    path: /etc/ssh/sshd_config
    regexp: '^#?PermitRootLogin\b'
    line: PermitRootLogin no
    validate: /usr/sbin/sshd -t -f %s

- name: Add an address after localhost
  lineinfile:
    path: /etc/hosts
    line: 10.0.0.1 etcd-1
    insertafter: '^127\.0\.0\.1'

- name: Change only the number
  lineinfile:
    path: /etc/security/limits.conf
    regexp: '^(\S+\s+soft\s+nofile\s+)\d+$'
    line: '\g<1>65536'
    backrefs: true

- name: Gone
  lineinfile: {path: /etc/fstab, regexp: '\sswap\s', state: absent}
"#,
        returns: &[
            Return::new("msg", "What was done"),
            Return::new("backup", "The path of the backup, or empty"),
            Return::new("found", "How many lines were removed"),
        ],
    };
    type Change = LineinfileChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<LineinfileChange>, Error> {
        self.check_arguments()?;
        let target = Target::read_target(probe, &self.path).await?;
        if self.state == State::Absent && target.there.is_none() {
            return Ok(Plan::Unchanged(Outcome::default().message("file not present")));
        }
        target.must_exist_or_be_made(self.create)?;
        let search = self.search(&target)?;
        let text = &target.text.characters;
        let line = target.text.adapt(self.line.as_deref().unwrap_or_default());
        let edited = match self.state {
            State::Absent => edit::remove_line(text, &search, &line)?,
            State::Present => {
                let place = self.place(&target)?;
                edit::put_line(text, &search, &line, &place, self.firstmatch, self.backrefs)?
            }
        };
        self.finish(probe, here, &target, edited).await
    }

    async fn apply(&self, change: LineinfileChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let backup = change.write.apply_write(remote, here).await?;
        Ok(change.outcome.with("backup", backup.unwrap_or_default()))
    }
}

impl Lineinfile {
    fn check_arguments(&self) -> Result<(), Error> {
        let present = self.state == State::Present;
        let searches = self.regexp.is_some() || self.search_string.is_some();
        let problem = if self.insertbefore.is_some() && self.insertafter.is_some() {
            "insertbefore and insertafter cannot both be given"
        } else if self.regexp.is_some() && self.search_string.is_some() {
            "regexp and search_string cannot both be given"
        } else if self.backrefs && self.search_string.is_some() {
            "backrefs and search_string cannot both be given"
        } else if present && self.backrefs && self.regexp.is_none() {
            "backrefs needs regexp"
        } else if present && self.line.is_none() {
            "line is required with state: present"
        } else if !searches && self.line.is_none() {
            "one of line, search_string or regexp is required with state: absent"
        } else {
            return Ok(());
        };
        Err(Error::failed(format!("lineinfile: {problem}")))
    }

    fn search(&self, target: &Target) -> Result<Search, Error> {
        Ok(match (&self.regexp, &self.search_string) {
            (Some(regexp), _) => Search::Regex(python_regex::compile(&target.text.adapt(regexp), "regexp")?),
            (None, Some(text)) => Search::Text(target.text.adapt(text)),
            (None, None) => Search::Line,
        })
    }

    fn place(&self, target: &Target) -> Result<InsertPosition, Error> {
        let compile = |text: &str, argument| python_regex::compile(&target.text.adapt(text), argument);
        Ok(match (self.insertafter.as_deref(), self.insertbefore.as_deref()) {
            (Some("BOF"), _) | (_, Some("BOF")) => InsertPosition::Beginning,
            (Some("EOF") | None, None) => InsertPosition::End,
            (Some(after), _) => InsertPosition::After(compile(after, "insertafter")?),
            (None, Some(before)) => InsertPosition::Before(compile(before, "insertbefore")?),
        })
    }

    async fn finish(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        target: &Target,
        edited: Edited,
    ) -> Result<Plan<LineinfileChange>, Error> {
        let wanted =
            DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        let manner = WriteOptions {
            wanted: &wanted,
            backup: self.backup,
            validate: self.validate.as_deref(),
            make_directories: true,
        };
        let mut outcome = Outcome::default().with("backup", "");
        if self.state == State::Absent {
            outcome = outcome.with("found", edited.removed);
        }
        if target.there.is_none() && edited.message.is_empty() {
            // `backrefs` in a file that does not exist: there is nothing to match.
            return Ok(Plan::Unchanged(outcome.message("")));
        }
        let edit = file_edit::compare_text(probe, here, target, &edited.text, &manner).await?;
        let outcome = outcome.message(file_edit::message(&edited.message, edit.attributes_change));
        Ok(match edit.write {
            None => Plan::Unchanged(outcome),
            Some(write) => {
                Plan::Change { diff: edit.diff, outcome: outcome.clone(), change: LineinfileChange { write, outcome } }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::testing::{Bench, value};

    #[tokio::test]
    async fn a_line_is_replaced_once_and_the_old_file_kept() {
        let bench = Bench::new().await;
        bench.on_host("a b", "# x\nport = 1\nlast");
        let task = "lineinfile: {path: HOST/a b, regexp: '^port', line: port = 2, backup: true, mode: '0600'}";
        let checked = bench.check(task).await.unwrap();
        let done = bench.run_twice(task).await;
        assert_eq!(checked.diff, done.diff);
        assert_eq!((bench.text("a b").as_str(), bench.mode("a b")), ("# x\nport = 2\nlast", 0o600));
        let message = "line replaced and ownership, perms or SE linux context changed";
        assert_eq!(done.outcome.message.as_deref(), Some(message));
        assert!(done.diff[0].before_header.ends_with("/a b (content)"));
        assert!(std::fs::read_to_string(value(&done.outcome, "backup")).unwrap().contains("port = 1"));
    }

    #[tokio::test]
    async fn a_missing_file_is_made_only_when_asked() {
        let bench = Bench::new().await;
        let message = bench.failure("lineinfile: {path: HOST/new/x, line: a}").await;
        assert!(message.ends_with("no such file on the host"), "{message}");
        let task = "lineinfile: {path: HOST/new/x, line: a, create: true}";
        assert!(bench.check(task).await.unwrap().changed);
        bench.run_twice(task).await;
        assert_eq!(bench.text("new/x"), "a\n");
        let done = bench.run("lineinfile: {path: HOST/none, line: a, state: absent}").await.unwrap();
        assert!(!done.changed);
    }

    #[tokio::test]
    async fn lines_are_removed_and_counted() {
        let bench = Bench::new().await;
        bench.on_host("x", "a\nb\na\n");
        let done = bench.run_twice("lineinfile: {path: HOST/x, line: a, state: absent}").await;
        assert_eq!((bench.text("x").as_str(), value(&done.outcome, "found").as_str()), ("b\n", "2"));
    }

    #[tokio::test]
    async fn a_link_is_edited_through_and_other_bytes_survive() {
        let bench = Bench::new().await;
        bench.on_host("real", b"caf\xe9\n");
        symlink("real", bench.host("link")).unwrap();
        bench.run_twice("lineinfile: {path: HOST/link, line: 'é'}").await;
        assert!(bench.host("link").is_symlink());
        assert_eq!(std::fs::read(bench.host("real")).unwrap(), b"caf\xe9\n\xc3\xa9\n");
    }

    #[tokio::test]
    async fn a_validation_that_fails_changes_nothing() {
        let bench = Bench::new().await;
        bench.on_host("x", "good\n");
        bench.failure("lineinfile: {path: HOST/x, regexp: good, line: bad, validate: grep -q good %s}").await;
        assert_eq!(bench.text("x"), "good\n");
    }

    #[tokio::test]
    async fn arguments_that_exclude_each_other_are_refused() {
        let bench = Bench::new().await;
        bench.on_host("x", "");
        let message = bench.failure("lineinfile: {path: HOST/x, line: a, insertafter: b, insertbefore: c}").await;
        assert_eq!(message, "lineinfile: insertbefore and insertafter cannot both be given");
        let message = bench.failure("lineinfile: {path: HOST/x}").await;
        assert_eq!(message, "lineinfile: line is required with state: present");
        let message = bench.failure("lineinfile: {path: HOST, line: a}").await;
        assert!(message.ends_with("it is a directory"), "{message}");
    }
}
