//! `blockinfile`: a block of lines in a text file, between two marker lines.

use fancy_regex::Regex;
use serde::Deserialize;

use super::file_attributes::DesiredAttributes;
use super::file_edit::{self, Target, WriteOptions, split_lines};
use super::file_write::Write;
use super::{Changes, Controller, Error, Module, Outcome, Plan, file_arguments, python_regex};
use crate::remote::{Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Blockinfile {
    path: String,
    state: State,
    block: String,
    marker: String,
    marker_begin: String,
    marker_end: String,
    insertafter: Option<String>,
    insertbefore: Option<String>,
    append_newline: bool,
    prepend_newline: bool,
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

pub(super) struct BlockinfileChange {
    write: Write,
    outcome: Outcome,
}

impl Module for Blockinfile {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "blockinfile",
        collection: "ansible.builtin",
        summary: "Insert, update or remove a block of lines in a text file, between two marker lines",
        arguments: &[
            file_arguments::TEXT_FILE,
            Argument::new("state", ArgumentKind::Str, "Whether the block should be in the file")
                .default("present")
                .choices(&["absent", "present"]),
            Argument::new("block", ArgumentKind::Str, "The lines; none removes the block")
                .default("")
                .alias(&["content"]),
            Argument::new("marker", ArgumentKind::Str, "The marker lines; {mark} is marker_begin or marker_end")
                .default("# {mark} ANSIBLE MANAGED BLOCK"),
            Argument::new("marker_begin", ArgumentKind::Str, "The value of {mark} before the block").default("BEGIN"),
            Argument::new("marker_end", ArgumentKind::Str, "The value of {mark} after the block").default("END"),
            Argument::new(
                "insertafter",
                ArgumentKind::Str,
                "Regular expression of the line to insert a new block after, or EOF",
            ),
            Argument::new(
                "insertbefore",
                ArgumentKind::Str,
                "Regular expression of the line to insert a new block before, or BOF",
            ),
            Argument::new("append_newline", ArgumentKind::Bool, "Whether an empty line follows the block")
                .default("false"),
            Argument::new("prepend_newline", ArgumentKind::Bool, "Whether an empty line precedes the block")
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
        example: r##"
- name: List the members of the cluster
  blockinfile:
    path: /etc/hosts
    marker: "# {mark} etcd members"
    block: |
      10.0.0.1 etcd-1
      10.0.0.2 etcd-2

- name: Remove the old members
  blockinfile: {path: /etc/hosts, marker: "# {mark} old members", state: absent}
"##,
        returns: &[Return::new("msg", "What was done"), file_arguments::returns::BACKUP_FILE],
    };
    type Change = BlockinfileChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<BlockinfileChange>, Error> {
        if self.insertbefore.is_some() && self.insertafter.is_some() {
            return Err(Error::failed("blockinfile: insertbefore and insertafter cannot both be given"));
        }
        let target = Target::read_target(probe, &self.path).await?;
        if self.state == State::Absent && target.there.is_none() {
            let message = format!("File {} not present", target.path);
            return Ok(Plan::Unchanged(Outcome::default().message(message)));
        }
        target.must_exist_or_be_made(self.create)?;
        let (edited, has_block) = self.edit(&target)?;
        let wanted =
            DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        let manner = WriteOptions {
            wanted: &wanted,
            backup: self.backup,
            validate: self.validate.as_deref(),
            make_directories: true,
        };
        let edit = file_edit::compare_text(probe, here, &target, &edited, &manner).await?;
        let done = match &edit.write {
            _ if target.there.is_none() => "File created",
            Some(write) if write.content.is_some() && has_block => "Block inserted",
            Some(write) if write.content.is_some() => "Block removed",
            _ => "",
        };
        let outcome = Outcome::default().message(file_edit::message(done, edit.attributes_change));
        Ok(match edit.write {
            None => Plan::Unchanged(outcome),
            Some(write) => {
                Plan::Change { diff: edit.diff, outcome: outcome.clone(), change: BlockinfileChange { write, outcome } }
            }
        })
    }

    async fn apply(&self, change: BlockinfileChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let backup = change.write.apply_write(remote, here).await?;
        Ok(match backup {
            Some(backup) => change.outcome.with("backup_file", backup),
            None => change.outcome,
        })
    }
}

impl Blockinfile {
    /// The edited text, and whether it has a block now.
    fn edit(&self, target: &Target) -> Result<(String, bool), Error> {
        let adapt = |text: &str| target.text.adapt(text);
        let marker = |mark: &str| format!("{}\n", adapt(&self.marker.replace("{mark}", mark)));
        let (begin, end) = (marker(&self.marker_begin), marker(&self.marker_end));
        let mut block = Vec::new();
        if self.state == State::Present && !self.block.is_empty() {
            let newline = if self.block.ends_with('\n') { "" } else { "\n" };
            let inside = split_lines(&adapt(&format!("{}{newline}", self.block)));
            block = [vec![begin.clone()], inside, vec![end.clone()]].concat();
        }
        let has_block = !block.is_empty();
        let mut lines = split_lines(&target.text.characters);
        let last = |marker: &String| lines.iter().rposition(|line| line == marker);
        let at = match (last(&begin), last(&end)) {
            (Some(begin), Some(end)) => {
                lines.drain(begin.min(end)..=begin.max(end));
                begin.min(end)
            }
            _ => self.place(target, &lines)?,
        };
        Ok((self.put(lines, at, block).concat(), has_block))
    }

    /// Puts the block before the line number `at`.
    fn put(&self, mut lines: Vec<String>, mut at: usize, block: Vec<String>) -> Vec<String> {
        let present = self.state == State::Present;
        if at > 0 && !lines[at - 1].ends_with('\n') {
            lines[at - 1].push('\n');
        }
        if self.prepend_newline && present && at > 0 && lines[at - 1] != "\n" {
            lines.insert(at, "\n".to_owned());
            at += 1;
        }
        let after = at + block.len();
        lines.splice(at..at, block);
        if self.append_newline && present && lines.get(after).is_some_and(|line| line != "\n") {
            lines.insert(after, "\n".to_owned());
        }
        lines
    }

    /// The number of the line before which a new block goes.
    fn place(&self, target: &Target, lines: &[String]) -> Result<usize, Error> {
        let find = |pattern: &str, argument: &str, after: bool| {
            let regex = python_regex::compile(&target.text.adapt(pattern), argument)?;
            let found = match is_multiline(pattern) {
                true => line_of(&regex, &target.text.characters, after)?,
                false => last_match(&regex, lines)?,
            };
            Ok(found.map_or(lines.len(), |at| if after { at + 1 } else { at }))
        };
        match (self.insertafter.as_deref(), self.insertbefore.as_deref()) {
            (Some("EOF") | None, None) => Ok(lines.len()),
            (None, Some("BOF")) => Ok(0),
            (Some(after), _) => find(after, "insertafter", true),
            (None, Some(before)) => find(before, "insertbefore", false),
        }
    }
}

/// Whether a pattern begins with flags of which one is `m`, so that it is for the whole text.
fn is_multiline(pattern: &str) -> bool {
    let flags = pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')')).map(|(flags, _)| flags);
    flags.is_some_and(|flags| flags.contains('m') && flags.chars().all(|c| c.is_ascii_alphabetic()))
}

fn last_match(regex: &Regex, lines: &[String]) -> Result<Option<usize>, Error> {
    let mut found = None;
    for (at, line) in lines.iter().enumerate() {
        if python_regex::is_match_in_line(regex, line)? {
            found = Some(at);
        }
    }
    Ok(found)
}

/// The line in which the first match ends or begins.
fn line_of(regex: &Regex, text: &str, end: bool) -> Result<Option<usize>, Error> {
    let found = python_regex::captures(regex, text)?;
    Ok(found.and_then(|captures| captures.get(0)).map(|whole| {
        let at = if end { whole.end() } else { whole.start() };
        text[..at].matches('\n').count()
    }))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    const BLOCK: &str = "# BEGIN ANSIBLE MANAGED BLOCK\none\ntwo\n# END ANSIBLE MANAGED BLOCK\n";

    #[tokio::test]
    async fn a_block_is_put_changed_and_removed() {
        let bench = Bench::new().await;
        bench.on_host("x y", "a\nb");
        let task = r#"blockinfile: {path: HOST/x y, block: "one\ntwo"}"#;
        let checked = bench.check(task).await.unwrap();
        let done = bench.run_twice(task).await;
        assert_eq!(checked.diff, done.diff);
        assert_eq!(bench.text("x y"), format!("a\nb\n{BLOCK}"));
        assert_eq!(done.outcome.message.as_deref(), Some("Block inserted"));
        bench.run_twice("blockinfile: {path: HOST/x y, block: three}").await;
        assert_eq!(bench.text("x y"), "a\nb\n# BEGIN ANSIBLE MANAGED BLOCK\nthree\n# END ANSIBLE MANAGED BLOCK\n");
        let done = bench.run_twice("blockinfile: {path: HOST/x y, state: absent, backup: true}").await;
        assert_eq!(bench.text("x y"), "a\nb\n");
        assert_eq!(done.outcome.message.as_deref(), Some("Block removed"));
        assert!(done.outcome.values.contains_key("backup_file"));
    }

    #[tokio::test]
    async fn a_new_block_goes_to_its_place() {
        let bench = Bench::new().await;
        let put = async |place: &str| {
            bench.on_host("x", "a\nb\nc\n");
            bench.run_twice(&format!("blockinfile: {{path: HOST/x, marker: '#{{mark}}', block: n, {place}}}")).await;
            bench.text("x").replace("#BEGIN\nn\n#END\n", "[]")
        };
        assert_eq!(put("insertafter: '^a'").await, "a\n[]b\nc\n");
        assert_eq!(put("insertbefore: '^b$'").await, "a\n[]b\nc\n");
        assert_eq!(put("insertbefore: BOF").await, "[]a\nb\nc\n");
        assert_eq!(put("insertafter: nowhere").await, "a\nb\nc\n[]");
        assert_eq!(put("insertafter: '(?m)^a\\nb$'").await, "a\nb\n[]c\n");
        assert_eq!(put("insertafter: a, append_newline: true, prepend_newline: true").await, "a\n\n[]\nb\nc\n");
    }

    #[tokio::test]
    async fn a_missing_file_is_made_only_when_asked() {
        let bench = Bench::new().await;
        let message = bench.failure("blockinfile: {path: HOST/d/x, block: a}").await;
        assert!(message.ends_with("no such file on the host"), "{message}");
        let done = bench.run_twice("blockinfile: {path: HOST/d/x, block: a, create: true, mode: '0600'}").await;
        assert_eq!((bench.mode("d/x"), done.outcome.message.as_deref()), (0o600, Some("File created")));
        assert!(!bench.run("blockinfile: {path: HOST/none, state: absent}").await.unwrap().changed);
    }
}
