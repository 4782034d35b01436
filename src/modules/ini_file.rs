//! `ini_file`: an option, or a section, of a file in the form of INI files.

mod edit;

use serde::Deserialize;

use super::file_attributes::DesiredAttributes;
use super::file_edit::{self, Target, WriteOptions};
use super::file_write::Write;
use super::{Changes, Controller, Error, Module, Outcome, Plan, file_arguments};
use crate::remote::{Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use edit::{Condition, DesiredOption, IniStyle};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IniFile {
    path: String,
    section: Option<String>,
    section_has_values: Vec<Value>,
    option: Option<String>,
    value: Option<String>,
    values: Option<Vec<String>>,
    state: State,
    exclusive: bool,
    backup: bool,
    no_extra_spaces: bool,
    ignore_spaces: bool,
    create: bool,
    allow_no_value: bool,
    modify_inactive_option: bool,
    follow: bool,
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

/// An item of `section_has_values`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionValue {
    option: String,
    value: Option<Value>,
    values: Option<Vec<Value>>,
}

pub(super) struct IniFileChange {
    write: Write,
    outcome: Outcome,
}

impl Module for IniFile {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "ini_file",
        collection: "community.general",
        summary: "Add, change or remove an option or section of an INI file",
        arguments: &[
            Argument::new("path", ArgumentKind::Path, "The file on the host").required().alias(&["dest"]),
            Argument::new("section", ArgumentKind::Str, "The section (default: the part before the first section)"),
            Argument::new(
                "section_has_values",
                ArgumentKind::List(&ArgumentKind::Any),
                "Which of several sections of that name: the one with these, each with option and value or values",
            )
            .default("[]"),
            Argument::new(
                "option",
                ArgumentKind::Str,
                "The option; without it, state absent removes the whole section",
            ),
            Argument::new("value", ArgumentKind::Str, "Its value"),
            Argument::new(
                "values",
                ArgumentKind::List(&ArgumentKind::Str),
                "Its values, instead of value: a line for each",
            ),
            Argument::new("state", ArgumentKind::Str, "Whether it should exist")
                .default("present")
                .choices(&["absent", "present"]),
            Argument::new("exclusive", ArgumentKind::Bool, "Whether to remove other values of the option")
                .default("true"),
            file_arguments::BACKUP,
            Argument::new("no_extra_spaces", ArgumentKind::Bool, "Whether to write = without spaces around it")
                .default("false"),
            Argument::new("ignore_spaces", ArgumentKind::Bool, "Whether to keep a line that differs only in spaces")
                .default("false"),
            Argument::new("create", ArgumentKind::Bool, "Whether to create the file if it is missing").default("true"),
            Argument::new("allow_no_value", ArgumentKind::Bool, "Whether the option may have no value")
                .default("false"),
            Argument::new(
                "modify_inactive_option",
                ArgumentKind::Bool,
                "Whether to also replace a commented-out line with the option",
            )
            .default("true"),
            Argument::new("follow", ArgumentKind::Bool, "Whether to write through a symbolic link at path")
                .default("false"),
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
- name: Limit the size of the journal
  community.general.ini_file:
    path: /etc/systemd/journald.conf
    section: Journal
    option: SystemMaxUse
    value: 200M
    no_extra_spaces: true

- name: Remove the proxy
  community.general.ini_file:
    path: /etc/tool.ini
    section: network
    option: proxy
    state: absent
"#,
        returns: &[
            Return::new("msg", "What was done"),
            Return::new("path", "The file"),
            file_arguments::returns::BACKUP_FILE,
            file_arguments::returns::MODE,
            file_arguments::returns::OWNER,
            file_arguments::returns::GROUP,
            file_arguments::returns::UID,
            file_arguments::returns::GID,
            file_arguments::returns::SIZE,
        ],
    };
    type Change = IniFileChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<IniFileChange>, Error> {
        self.check()?;
        let target = Target::at(probe, &self.path, self.follow).await?;
        target.must_exist_or_be_made(self.create)?;
        let adapt = |text: &str| target.text.adapt(text);
        let desired = DesiredOption {
            section: self.section.as_deref().filter(|name| !name.is_empty()).map(adapt),
            conditions: self.conditions()?.iter().map(|condition| condition.adapt(adapt)).collect(),
            option: self.option.as_deref().map(adapt),
            values: self.value.iter().chain(self.values.iter().flatten()).map(|value| adapt(value)).collect(),
            present: self.state == State::Present,
            exclusive: self.exclusive,
            style: IniStyle {
                no_extra_spaces: self.no_extra_spaces,
                ignore_spaces: self.ignore_spaces,
                allow_no_value: self.allow_no_value,
                modify_inactive_option: self.modify_inactive_option,
            },
        };
        let (edited, message) = desired.applied(&target.text.characters);
        let text = edited.as_ref().unwrap_or(&target.text.characters);
        let outcome = Outcome::default().message(message).with("path", target.path.as_str());
        let wanted =
            DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        if edited.is_none() && target.there.is_none() {
            return Ok(Plan::Unchanged(outcome));
        }
        let manner = WriteOptions { wanted: &wanted, backup: self.backup, validate: None, make_directories: true };
        let edit = file_edit::compare_text(probe, here, &target, text, &manner).await?;
        Ok(match edit.write {
            None => Plan::Unchanged(outcome),
            Some(write) => {
                Plan::Change { diff: edit.diff, outcome: outcome.clone(), change: IniFileChange { write, outcome } }
            }
        })
    }

    async fn apply(&self, change: IniFileChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let backup = change.write.apply_write(remote, here).await?;
        Ok(match backup {
            Some(backup) => change.outcome.with("backup_file", backup),
            None => change.outcome,
        })
    }
}

impl IniFile {
    fn check(&self) -> Result<(), Error> {
        if self.value.is_some() && self.values.is_some() {
            return Err(Error::failed("ini_file: value and values cannot both be given"));
        }
        let has_value = self.value.is_some() || self.values.as_ref().is_some_and(|values| !values.is_empty());
        if self.state == State::Present && !self.allow_no_value && !has_value {
            return Err(Error::failed(
                "ini_file: value or values is required with state: present, unless allow_no_value",
            ));
        }
        if let Some(option) = &self.option {
            check_option(option)?;
        }
        let texts = self.section.iter().chain(&self.option).chain(&self.value).chain(self.values.iter().flatten());
        match texts.into_iter().any(|text| text.contains(['\n', '\r'])) {
            true => Err(Error::failed("ini_file: section, option and value must each be one line")),
            false => Ok(()),
        }
    }

    fn conditions(&self) -> Result<Vec<Condition>, Error> {
        let read = |item: &Value| {
            let has = SectionValue::deserialize(item.clone()).map_err(|_| {
                Error::failed("ini_file: an item of section_has_values must have option, and value or values")
            })?;
            check_option(&has.option)?;
            let values = has.value.into_iter().chain(has.values.into_iter().flatten());
            let values: Vec<String> = values.map(|value| value.to_string()).collect();
            if values.iter().chain([&has.option]).any(|text| text.contains(['\n', '\r'])) {
                return Err(Error::failed("ini_file: options and values in section_has_values must each be one line"));
            }
            Ok(Condition { option: has.option, values })
        };
        self.section_has_values.iter().map(read).collect()
    }
}

/// What a line cannot be begun with, as it would not be found again.
fn check_option(option: &str) -> Result<(), Error> {
    match option.trim_matches([' ', '\t']) {
        "" => Err(Error::failed("ini_file: option must not be empty; omit it to address the whole section")),
        text if text.starts_with('[') => Err(Error::failed("ini_file: option must not start with [")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};

    #[tokio::test]
    async fn an_option_comes_changes_and_goes() {
        let bench = Bench::new().await;
        let task = "ini_file: {path: HOST/d/x, section: a, option: k, value: 1, mode: '0600'}";
        assert!(bench.check(task).await.unwrap().changed);
        let done = bench.run_twice(task).await;
        assert_eq!(bench.text("d/x"), "\n[a]\nk = 1\n");
        assert_eq!((bench.mode("d/x"), value(&done.outcome, "mode")), (0o600, "0600".to_owned()));
        assert_eq!(done.outcome.message.as_deref(), Some("section and option added"));
        let done = bench.run_twice(&task.replace("value: 1", "value: 2, backup: true")).await;
        assert_eq!(bench.text("d/x"), "\n[a]\nk = 2\n");
        assert!(std::path::Path::new(&value(&done.outcome, "backup_file")).exists());
        bench.run_twice("ini_file: {path: HOST/d/x, section: a, option: k, state: absent}").await;
        assert_eq!(bench.text("d/x"), "\n[a]\n");
        bench.close().await;
    }

    #[tokio::test]
    async fn a_link_is_replaced_or_written_through() {
        let bench = Bench::new().await;
        bench.on_host("real", "[a]\nk = 1\n");
        std::os::unix::fs::symlink("real", bench.host("link")).unwrap();
        let task = "ini_file: {path: HOST/link, section: a, option: k, value: 2, follow: true}";
        bench.run_twice(task).await;
        assert_eq!(bench.text("real"), "[a]\nk = 2\n");
        bench.run_twice("ini_file: {path: HOST/link, section: a, option: k, value: 3}").await;
        assert_eq!((bench.text("real"), bench.text("link")), ("[a]\nk = 2\n".into(), "[a]\nk = 3\n".into()));
        assert!(!bench.host("link").is_symlink());
        bench.close().await;
    }

    #[tokio::test]
    async fn what_is_wrong_is_reported() {
        let bench = Bench::new().await;
        for (arguments, message) in [
            ("option: k", "ini_file: value or values is required with state: present, unless allow_no_value"),
            ("option: k, value: \"a\\nb\"", "ini_file: section, option and value must each be one line"),
            ("option: \"a\\rb\", value: 1", "ini_file: section, option and value must each be one line"),
            ("option: k, values: [a, \"b\\n[t]\"]", "ini_file: section, option and value must each be one line"),
            (
                "option: k, value: 1, section_has_values: [{option: n, value: \"1\\n2\"}]",
                "ini_file: options and values in section_has_values must each be one line",
            ),
            (
                "option: k, value: 1, section_has_values: [{option: \"n\\nm\", values: [1]}]",
                "ini_file: options and values in section_has_values must each be one line",
            ),
            (
                "option: '', section: s, state: absent",
                "ini_file: option must not be empty; omit it to address the whole section",
            ),
            ("option: ' ', value: 1", "ini_file: option must not be empty; omit it to address the whole section"),
            ("option: '[k', value: 1", "ini_file: option must not start with ["),
            ("option: k, value: 1, values: [1]", "ini_file: value and values cannot both be given"),
            ("option: k, value: 1, create: false", "no such file on the host"),
            (
                "option: k, value: 1, section_has_values: [{value: 1}]",
                "ini_file: an item of section_has_values must have option, and value or values",
            ),
        ] {
            let reported = bench.failure(&format!("ini_file: {{path: HOST/x, {arguments}}}")).await;
            assert!(reported.ends_with(message), "{reported}");
        }
        bench.close().await;
    }
}
