//! Configuration: what `ansible.cfg`, the environment and our own `[windlass]` section say, each value with its origin.
//! [`list`] is the one list of what there is; [`ansible_only`] names what Ansible has beside it. Knows nothing of what the values
//! are used for.

pub mod ansible_only;
mod ini;
mod kind;
pub mod list;
mod resources;
mod search;
mod unused;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use ansible_only::{GROUPS, Relevance, SettingGroup};
pub use kind::SettingKind;
pub use list::SETTINGS;

use crate::value::nearest::did_you_mean;
use crate::value::origin::{Diagnostic, Origin, Source};
use crate::value::{ProcessEnvironment, Secret, Value};

/// One setting that has a meaning here. To add one: a line in [`list`] and its name in [`SETTINGS`].
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub section: &'static str,
    pub key: &'static str,
    /// Further places in a file; a later one wins.
    pub also: &'static [(&'static str, &'static str)],
    /// Variables of the environment; a later one wins.
    pub env: &'static [&'static str],
    pub kind: SettingKind,
    /// As one would write it in a file; empty: nothing.
    pub default: &'static str,
    /// The option that wins over it, by its long name without `--`; empty: none.
    pub option: &'static str,
    pub meaning: &'static str,
}

impl Setting {
    /// `defaults.forks`
    pub fn setting_name(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }

    /// All its places in a file, weakest first.
    fn places(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        std::iter::once((self.section, self.key)).chain(self.also.iter().copied())
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetBy {
    Default,
    File(Origin),
    Environment(String),
    CommandLine,
}

impl fmt::Display for SetBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetBy::Default => f.write_str("default"),
            SetBy::File(origin) => write!(f, "{}:{}", origin.path().display(), origin.line),
            SetBy::Environment(name) => f.write_str(name),
            SetBy::CommandLine => f.write_str("command line"),
        }
    }
}

/// A value and where it comes from.
#[derive(Debug, Clone)]
pub struct EffectiveSetting {
    pub value: Value,
    pub set_by: SetBy,
    /// Where it was written, for messages about its value.
    pub origin: Option<Origin>,
}

/// All settings as they are in force.
#[derive(Debug)]
pub struct Settings {
    /// What they were read in.
    pub surroundings: Arc<ProcessEnvironment>,
    /// The configuration file that was read.
    pub file: Option<PathBuf>,
    /// As [`SETTINGS`].
    in_force: Vec<EffectiveSetting>,
    /// The warnings, each once.
    pub warnings: Vec<Diagnostic>,
    /// What is set and needs no setting here: where, and why.
    pub not_needed: Vec<(SetBy, String, &'static str)>,
}

impl Settings {
    /// Reads them; all that is wrong at once.
    pub fn load(around: &ProcessEnvironment) -> Result<Settings, Vec<Diagnostic>> {
        let (file, warnings) = search::config_file(around);
        let (mut entries, mut sections) = (Vec::new(), Vec::new());
        if let Some(path) = &file {
            let source = search::read_config_file(path, around).map_err(|complaint| vec![complaint])?;
            let read = ini::parse_ini(&source)?;
            (entries, sections) = (read.entries, read.sections);
        }
        let base = file.as_deref().and_then(Path::parent).unwrap_or(&around.directory);
        let mut complaints = Vec::new();
        let mut in_force = Vec::new();
        for setting in SETTINGS {
            match one(setting, &entries, base, around) {
                Ok(found) => in_force.push(found),
                Err(complaint) => complaints.push(complaint),
            }
        }
        if !complaints.is_empty() {
            return Err(complaints);
        }
        let mut judged = unused::UnusedSettings { warnings, ..unused::UnusedSettings::default() };
        unused::unused_in_file(&entries, &sections, &mut judged);
        unused::unused_environment(around, &mut judged);
        Ok(Settings {
            surroundings: Arc::new(around.clone()),
            file,
            in_force,
            warnings: judged.warnings,
            not_needed: judged.not_needed,
        })
    }

    /// What is in force for a setting.
    pub fn get(&self, setting: &Setting) -> &EffectiveSetting {
        let same = |one: &&&Setting| one.section == setting.section && one.key == setting.key;
        let all = SETTINGS.iter().zip(&self.in_force);
        let found = all.into_iter().find(|(one, _)| same(one));
        found.map(|(_, found)| found).expect("a test checks that SETTINGS has every setting")
    }

    /// The value that was set; None: the default applies.
    pub fn given(&self, setting: &Setting) -> Option<&EffectiveSetting> {
        Some(self.get(setting)).filter(|found| found.set_by != SetBy::Default)
    }

    pub fn bool(&self, setting: &Setting) -> bool {
        self.get(setting).value.is_true()
    }

    /// A number; 0 if there is none.
    pub fn number_setting(&self, setting: &Setting) -> u64 {
        self.get(setting).value.as_i64().and_then(|number| number.try_into().ok()).unwrap_or_default()
    }

    /// A number of things.
    pub fn count(&self, setting: &Setting) -> usize {
        self.number_setting(setting).try_into().unwrap_or(usize::MAX)
    }

    pub fn text_setting(&self, setting: &Setting) -> Option<String> {
        let value = &self.get(setting).value;
        (!value.is_none()).then(|| value.to_string())
    }

    pub fn secret_setting(&self, setting: &Setting) -> Option<Secret> {
        self.text_setting(setting).map(Secret::new)
    }

    pub fn path_setting(&self, setting: &Setting) -> Option<PathBuf> {
        self.text_setting(setting).map(PathBuf::from)
    }

    pub fn list_setting(&self, setting: &Setting) -> Vec<String> {
        self.get(setting).value.try_iter().into_iter().flatten().map(|item| item.to_string()).collect()
    }

    /// Those of the list, each with what is in force.
    pub fn all_settings(&self) -> impl Iterator<Item = (&'static Setting, &EffectiveSetting)> {
        SETTINGS.iter().copied().zip(&self.in_force)
    }
}

/// What is in force for one setting: the environment wins over the file, the file over the default.
fn one(
    setting: &'static Setting,
    entries: &[ini::IniEntry],
    base: &Path,
    around: &ProcessEnvironment,
) -> Result<EffectiveSetting, Diagnostic> {
    let variable = setting.env.iter().rev().find_map(|name| Some((*name, around.variable(name)?)));
    if let Some((name, text)) = variable {
        let source = Arc::new(Source::new(format!("${name}"), shown(setting, text)));
        let origin = Origin { source, line: 1, column: 1 };
        let value = setting.kind.parse_setting(text, &around.directory, around);
        let value = value.ok_or_else(|| wrong(setting, text, &origin))?;
        return Ok(EffectiveSetting { value, set_by: SetBy::Environment(name.to_owned()), origin: Some(origin) });
    }
    let written = setting
        .places()
        .filter_map(|(section, key)| entries.iter().find(|entry| entry.section == section && entry.key == key));
    if let Some(entry) = written.last() {
        let value = setting.kind.parse_setting(&entry.value, base, around);
        let value = value.ok_or_else(|| wrong(setting, &entry.value, &entry.value_origin))?;
        let set_by = SetBy::File(entry.key_origin.clone());
        return Ok(EffectiveSetting { value, set_by, origin: Some(entry.value_origin.clone()) });
    }
    let value = match setting.default {
        "" if !matches!(
            setting.kind,
            SettingKind::List | SettingKind::Paths | SettingKind::PathList | SettingKind::NamedPaths
        ) =>
        {
            Value::from(())
        }
        default => setting.kind.parse_setting(default, &around.directory, around).expect("a test reads every default"),
    };
    Ok(EffectiveSetting { value, set_by: SetBy::Default, origin: None })
}

/// A secret stays out of messages.
fn shown(setting: &Setting, text: &str) -> String {
    if setting.kind == SettingKind::Secret { String::new() } else { text.to_owned() }
}

fn wrong(setting: &Setting, text: &str, origin: &Origin) -> Diagnostic {
    let message = format!("{} must be {}, this is {text:?}", setting.key, setting.kind.setting_kind_text());
    let complaint = Diagnostic::new(message, Some(origin));
    match setting.kind {
        SettingKind::Choice(words) | SettingKind::BoolOr(words) => {
            complaint.hint_if_any(did_you_mean(text, words.iter().copied()))
        }
        _ => complaint,
    }
}

/// All names of the environment that a setting reads.
fn known_variables() -> BTreeMap<&'static str, &'static Setting> {
    SETTINGS.iter().flat_map(|setting| setting.env.iter().map(move |name| (*name, *setting))).collect()
}

#[cfg(test)]
mod tests;
