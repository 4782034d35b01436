//! What is set and has no meaning here: warnings, each with its place, and what need not be set.

use std::collections::HashSet;

use super::ansible_only::{GROUPS, NO_SETTINGS, Relevance, Row, SettingGroup};
use super::ini::IniEntry;
use super::{SETTINGS, SetBy, known_variables};
use crate::value::ProcessEnvironment;
use crate::value::nearest::did_you_mean;
use crate::value::origin::{Diagnostic, Origin};
use crate::value::truth;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct UnusedSettings {
    pub warnings: Vec<Diagnostic>,
    /// Where it is set, the setting, why it is not needed.
    pub not_needed: Vec<(SetBy, String, &'static str)>,
}

impl UnusedSettings {
    fn found(&mut self, name: &str, set_by: SetBy, origin: Option<&Origin>, group: &'static SettingGroup) {
        match group.standing {
            Relevance::NotNeeded => self.not_needed.push((set_by, name.to_owned(), group.why)),
            Relevance::NotHonoured => {
                let message = format!("{name} is not supported: {}", group.why);
                self.warnings.push(Diagnostic::new(message, origin));
            }
        }
    }
}

/// Reports all entries of a file that are not settings of windlass; for an unknown section, only its name.
pub(super) fn unused_in_file(entries: &[IniEntry], sections: &[(String, Origin)], judged: &mut UnusedSettings) {
    let known_sections: HashSet<&str> = sections_known().collect();
    let strange = |section: &str| !known_sections.contains(section);
    for (section, origin) in sections.iter().filter(|(section, _)| strange(section)) {
        // Servers of a galaxy have sections of their own.
        if !section.starts_with("galaxy_server.") {
            let complaint = Diagnostic::new(format!("unknown section [{section}]"), Some(origin));
            judged.warnings.push(with_hint(complaint, section, sections_known()));
        }
    }
    let known: Vec<(&str, &str)> = places_known().collect();
    for entry in entries.iter().filter(|entry| !strange(&entry.section)) {
        let name = format!("{}.{}", entry.section, entry.key);
        let ours = |place: (&str, &str)| place == (entry.section.as_str(), entry.key.as_str());
        if SETTINGS.iter().any(|setting| setting.places().any(ours)) {
            continue;
        }
        let matches = |row: &Row| row.0 == name || row.0.strip_suffix(".*") == Some(&*entry.section);
        match find(matches) {
            Some((_, row)) if same(&entry.value, row.2) => {}
            Some((group, _)) => {
                let set_by = SetBy::File(entry.key_origin.clone());
                judged.found(&entry.key, set_by, Some(&entry.key_origin), group);
            }
            None => judged.warnings.push(unknown_key(entry, &known)),
        }
    }
}

/// Judges all `ANSIBLE_*` and `WINDLASS_*` variables that are no settings of ours.
pub(super) fn unused_environment(around: &ProcessEnvironment, judged: &mut UnusedSettings) {
    let known = known_variables();
    let ours = |name: &str| name.starts_with("ANSIBLE_") || name.starts_with("WINDLASS_");
    for (name, value) in around.variables.iter().filter(|(name, value)| ours(name) && !value.is_empty()) {
        if known.contains_key(name.as_str()) || NO_SETTINGS.contains(&name.as_str()) {
            continue;
        }
        let named = |variable: &&str| match variable.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => *variable == name,
        };
        match find(|row| row.1.iter().any(named)) {
            Some((_, row)) if same(value, row.2) => {}
            Some((group, _)) => judged.found(name, SetBy::Environment(name.clone()), None, group),
            None => {
                let complaint = Diagnostic::new(format!("unknown setting {name}"), None);
                let all = GROUPS.iter().flat_map(|group| group.settings).flat_map(|row| row.1).copied();
                judged.warnings.push(with_hint(complaint, name, known.keys().copied().chain(all)));
            }
        }
    }
}

fn sections_known() -> impl Iterator<Item = &'static str> {
    let others = GROUPS.iter().flat_map(|group| group.settings).filter_map(|row| row.0.split('.').next());
    SETTINGS.iter().flat_map(|setting| setting.places().map(|(section, _)| section)).chain(others)
}

fn find(matches: impl Fn(&Row) -> bool) -> Option<(&'static SettingGroup, &'static Row)> {
    GROUPS.iter().find_map(|group| Some((group, group.settings.iter().find(|row| matches(row))?)))
}

/// Whether a written value is the one that is in force anyway.
fn same(written: &str, usual: &str) -> bool {
    !usual.is_empty()
        && match (truth::of_word(written), truth::of_word(usual)) {
            (Some(written), Some(usual)) => written == usual,
            _ => written.trim() == usual,
        }
}

/// Sections and keys of all settings.
fn places_known() -> impl Iterator<Item = (&'static str, &'static str)> {
    let ours = SETTINGS.iter().flat_map(|setting| setting.places());
    let others = GROUPS.iter().flat_map(|group| group.settings).filter_map(|row| row.0.split_once('.'));
    ours.chain(others).filter(|(_, key)| *key != "*")
}

fn unknown_key(entry: &IniEntry, known: &[(&str, &str)]) -> Diagnostic {
    let message = format!("unknown setting {:?} in [{}]", entry.key, entry.section);
    let complaint = Diagnostic::new(message, Some(&entry.key_origin));
    if let Some((section, key)) = known.iter().find(|(section, key)| *key == entry.key && *section != entry.section) {
        return complaint.hint(format!("{key} belongs in [{section}]"));
    }
    let here = known.iter().filter(|(section, _)| *section == entry.section).map(|(_, key)| *key);
    with_hint(complaint, &entry.key, here)
}

fn with_hint<'a>(complaint: Diagnostic, word: &str, known: impl IntoIterator<Item = &'a str>) -> Diagnostic {
    complaint.hint_if_any(did_you_mean(word, known))
}
