//! `replace`: all that matches a regular expression in a text file, replaced.

use std::ops::Range;

use fancy_regex::Regex;
use serde::Deserialize;

use super::file_attributes::DesiredAttributes;
use super::file_edit::{self, Target, WriteOptions};
use super::file_write::Write;
use super::{Changes, Controller, Error, Module, Outcome, Plan, file_arguments, python_regex};
use crate::remote::{Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Replace {
    path: String,
    regexp: String,
    replace: String,
    after: Option<String>,
    before: Option<String>,
    backup: bool,
    validate: Option<String>,
    encoding: String,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
}

pub(super) struct ReplaceChange {
    write: Write,
    outcome: Outcome,
}

impl Module for Replace {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "replace",
        collection: "ansible.builtin",
        summary: "Replace all matches of a regular expression in a text file",
        arguments: &[
            file_arguments::TEXT_FILE,
            Argument::new("regexp", ArgumentKind::Str, "The regular expression; ^ and $ match at every line")
                .required(),
            Argument::new(
                "replace",
                ArgumentKind::Str,
                "The replacement, with \\1 and so on; the default removes matches",
            )
            .default(""),
            Argument::new(
                "after",
                ArgumentKind::Str,
                "Regular expression; only text after its first match is searched",
            ),
            Argument::new("before", ArgumentKind::Str, "Regular expression; only text before its match is searched"),
            file_arguments::BACKUP,
            file_arguments::VALIDATE,
            Argument::new("encoding", ArgumentKind::Str, "Encoding of the file: utf-8 or ascii").default("utf-8"),
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
- name: Rename a host everywhere in the file
  replace:
    path: /etc/hosts
    regexp: '(\s+)old\.example\.org(\s+.*)?$'
    replace: '\1new.example.org\2'
    backup: true

- name: Comment out the lines between two lines
  replace:
    path: /etc/apt/sources.list
    after: '# backports'
    before: '# end'
    regexp: '^(deb .*)$'
    replace: '# \1'
"#,
        returns: &[
            Return::new("msg", "How many replacements were made"),
            Return::new("rc", "0"),
            file_arguments::returns::BACKUP_FILE,
        ],
    };
    type Change = ReplaceChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<ReplaceChange>, Error> {
        if !matches!(self.encoding.to_ascii_lowercase().replace('_', "-").as_str(), "utf-8" | "utf8" | "ascii") {
            return Err(Error::Failed {
                message: format!("replace: unknown encoding {:?}", self.encoding),
                hint: Some("use utf-8; bytes that are not UTF-8 are kept".to_owned()),
            });
        }
        let target = Target::read_target(probe, &self.path).await?;
        target.must_exist()?;
        let text = &target.text.characters;
        let outcome = Outcome::default().with("rc", 0);
        let Some(section) = self.section(&target)? else {
            let message = "Pattern for before/after params did not match the given file";
            return Ok(Plan::Unchanged(outcome.message(message)));
        };
        let regex = python_regex::compile_multiline(&target.text.adapt(&self.regexp), "regexp")?;
        let (new, count) = substitute(&regex, &text[section.clone()], &target.text.adapt(&self.replace))?;
        let edited = format!("{}{new}{}", &text[..section.start], &text[section.end..]);
        let message = if edited == *text { String::new() } else { format!("{count} replacements made") };
        let wanted =
            DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        let manner = WriteOptions {
            wanted: &wanted,
            backup: self.backup,
            validate: self.validate.as_deref(),
            make_directories: false,
        };
        let edit = file_edit::compare_text(probe, here, &target, &edited, &manner).await?;
        let outcome = outcome.message(file_edit::message(&message, edit.attributes_change));
        Ok(match edit.write {
            None => Plan::Unchanged(outcome),
            Some(write) => {
                Plan::Change { diff: edit.diff, outcome: outcome.clone(), change: ReplaceChange { write, outcome } }
            }
        })
    }

    async fn apply(&self, change: ReplaceChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let backup = change.write.apply_write(remote, here).await?;
        Ok(match backup {
            Some(backup) => change.outcome.with("backup_file", backup),
            None => change.outcome,
        })
    }
}

impl Replace {
    /// The part of the text that is searched. None: `after` or `before` are not in it.
    fn section(&self, target: &Target) -> Result<Option<Range<usize>>, Error> {
        let text = &target.text.characters;
        let pattern = match (self.after.as_deref(), self.before.as_deref()) {
            (None | Some(""), None | Some("")) => return Ok(Some(0..text.len())),
            (Some(after), None | Some("")) => format!("{after}(?P<subsection>.*)"),
            (None | Some(""), Some(before)) => format!("(?P<subsection>.*){before}"),
            (Some(after), Some(before)) => format!("{after}(?P<subsection>.*?){before}"),
        };
        let regex = python_regex::compile(&format!("(?s){}", target.text.adapt(&pattern)), "after or before")?;
        let found = python_regex::captures(&regex, text)?;
        Ok(found.and_then(|captures| captures.name("subsection").map(|section| section.range())))
    }
}

/// All matches replaced, and how many there were.
fn substitute(regex: &Regex, text: &str, replacement: &str) -> Result<(String, usize), Error> {
    let (mut out, mut end, mut count) = (String::new(), 0, 0);
    for captures in regex.captures_iter(text) {
        let captures = captures.map_err(|error| python_regex::too_hard(regex, &error))?;
        let whole = captures.get(0).expect("group 0 is the whole match");
        out.push_str(&text[end..whole.start()]);
        out.push_str(&python_regex::expand_captures(replacement, &captures)?);
        end = whole.end();
        count += 1;
    }
    out.push_str(&text[end..]);
    Ok((out, count))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};

    #[tokio::test]
    async fn all_matches_are_replaced_and_counted() {
        let bench = Bench::new().await;
        bench.on_host("x y", "a=1\nb=2\na=3\n");
        let task = r#"replace: {path: HOST/x y, regexp: '^a=(\d)$', replace: 'c=\1', backup: true}"#;
        let checked = bench.check(task).await.unwrap();
        let done = bench.run_twice(task).await;
        assert_eq!(checked.diff, done.diff);
        assert_eq!(bench.text("x y"), "c=1\nb=2\nc=3\n");
        assert_eq!(done.outcome.message.as_deref(), Some("2 replacements made"));
        assert!(std::fs::read_to_string(value(&done.outcome, "backup_file")).unwrap().starts_with("a=1"));
    }

    #[tokio::test]
    async fn only_the_section_is_searched() {
        let bench = Bench::new().await;
        let text = "x\n# from\nx\n# to\nx\n";
        bench.on_host("f", text);
        bench.run_twice("replace: {path: HOST/f, after: '# from', before: '# to', regexp: x, replace: y}").await;
        assert_eq!(bench.text("f"), "x\n# from\ny\n# to\nx\n");
        bench.run_twice("replace: {path: HOST/f, after: '# to', regexp: x}").await;
        assert_eq!(bench.text("f"), "x\n# from\ny\n# to\n\n");
        bench.run_twice("replace: {path: HOST/f, before: '# from', regexp: x, replace: z}").await;
        assert!(bench.text("f").starts_with("z\n"));
        let done = bench.run("replace: {path: HOST/f, after: nowhere, regexp: x}").await.unwrap();
        assert!(!done.changed && done.outcome.message.unwrap().starts_with("Pattern for before/after"));
    }

    #[tokio::test]
    async fn a_missing_file_is_named() {
        let bench = Bench::new().await;
        let message = bench.failure("replace: {path: HOST/none, regexp: x}").await;
        assert!(message.ends_with("no such file on the host"), "{message}");
        bench.on_host("x", "a");
        let message = bench.failure("replace: {path: HOST/x, regexp: '('}").await;
        assert!(message.contains("invalid regular expression"), "{message}");
    }
}
