//! Records of vulnerabilities in Go modules, in the format of OSV: <https://ossf.github.io/osv-schema/>. Fields that are not needed are ignored.

use std::collections::HashMap;
use std::path::Path;

use semver::Version;
use serde::Deserialize;

use super::Severity;
use crate::bundle::Error;
use crate::bundle::build_info::GoModule;

/// A database of vulnerabilities, by the modules that have them.
#[derive(Debug, Default)]
pub struct VulnerabilityDatabase {
    records: Vec<OsvRecord>,
    by_module: HashMap<String, Vec<usize>>,
    /// When a record was last changed (RFC 3339).
    pub newest: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct OsvRecord {
    pub(super) id: String,
    #[serde(default)]
    pub(super) aliases: Vec<String>,
    #[serde(default)]
    pub(super) summary: String,
    #[serde(default)]
    modified: String,
    #[serde(default)]
    withdrawn: Option<String>,
    #[serde(default)]
    affected: Vec<Affected>,
    #[serde(default)]
    database_specific: Specific,
}

#[derive(Debug, Default, Deserialize)]
struct Specific {
    #[serde(default)]
    severity: serde_json::Value,
}

#[derive(Debug, Deserialize)]
struct Affected {
    #[serde(default)]
    package: Package,
    #[serde(default)]
    ranges: Vec<Range>,
    #[serde(default)]
    versions: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Package {
    #[serde(default)]
    ecosystem: String,
    #[serde(default)]
    name: String,
}

#[derive(Debug, Deserialize)]
struct Range {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    events: Vec<Event>,
}

/// It has one of these, or another field that does not matter here.
#[derive(Debug, Deserialize)]
struct Event {
    #[serde(default)]
    introduced: Option<String>,
    #[serde(default)]
    fixed: Option<String>,
    #[serde(default)]
    last_affected: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RecordFile {
    Several(Vec<OsvRecord>),
    One(Box<OsvRecord>),
}

impl VulnerabilityDatabase {
    /// Reads a file with a record or a list of records, or all files `*.json` in a directory and those below it.
    ///
    /// # Errors
    /// A file cannot be read, or holds no such record.
    pub fn read_database(path: &Path) -> Result<VulnerabilityDatabase, Error> {
        let mut database = VulnerabilityDatabase::default();
        let mut left = vec![path.to_owned()];
        while let Some(path) = left.pop() {
            if path.is_dir() {
                let entries = std::fs::read_dir(&path).map_err(|error| Error::io("read", &path, &error))?;
                for entry in entries {
                    let entry = entry.map_err(|error| Error::io("read", &path, &error))?;
                    let is_record = entry.path().extension().is_some_and(|end| end == "json") && entry.path().is_file();
                    // Links to directories are not followed: one may lead back.
                    if is_record || entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        left.push(entry.path());
                    }
                }
                continue;
            }
            let text = std::fs::read(&path).map_err(|error| Error::io("read", &path, &error))?;
            match serde_json::from_slice(&text) {
                Ok(RecordFile::Several(records)) => records.into_iter().for_each(|record| database.add(record)),
                Ok(RecordFile::One(record)) => database.add(*record),
                Err(_) => {
                    return Err(Error::new(format!("{} is no record of OSV, nor a list of them", path.display()))
                        .hint("unpack the archive of the ecosystem Go, and name its directory"));
                }
            }
        }
        if database.by_module.is_empty() {
            return Err(Error::new(format!("{} has no vulnerabilities of Go modules", path.display())));
        }
        Ok(database)
    }

    pub fn record_count(&self) -> usize {
        self.records.len()
    }

    fn add(&mut self, record: OsvRecord) {
        if record.withdrawn.is_some() {
            return;
        }
        if record.modified > self.newest {
            self.newest.clone_from(&record.modified);
        }
        let mut of_go: Vec<&str> =
            record.affected.iter().filter(|it| it.is_of_go()).map(|it| &*it.package.name).collect();
        of_go.sort_unstable();
        of_go.dedup();
        for module in of_go {
            self.by_module.entry(module.to_owned()).or_default().push(self.records.len());
        }
        self.records.push(record);
    }

    /// Those that a version of a module has, by their ids.
    pub(super) fn of_module(&self, module: &GoModule, version: &Version) -> Vec<&OsvRecord> {
        let records = self.by_module.get(&module.path).into_iter().flatten().map(|index| &self.records[*index]);
        let mut found: Vec<&OsvRecord> = records.filter(|record| record.has(&module.path, version)).collect();
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found
    }
}

/// The first version of a module after another one that none of these records is about.
pub(super) fn fixed_after(records: &[&OsvRecord], module: &str, version: &Version) -> Option<String> {
    let affected = records.iter().flat_map(|record| record.of_module(module));
    let events = affected.flat_map(Affected::comparable).flat_map(|range| &range.events);
    let fixed = events.filter_map(|event| parse_version(event.fixed.as_ref()?));
    let later = fixed.filter(|fixed| fixed.cmp_precedence(version).is_gt());
    let free = later.filter(|fixed| !records.iter().any(|record| record.has(module, fixed)));
    free.min_by(Version::cmp_precedence).map(|version| version.to_string())
}

impl OsvRecord {
    fn of_module(&self, module: &str) -> impl Iterator<Item = &Affected> {
        self.affected.iter().filter(move |it| it.is_of_go() && it.package.name == module)
    }

    fn has(&self, module: &str, version: &Version) -> bool {
        self.of_module(module).any(|it| it.has(version))
    }

    /// Its names in all databases.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.aliases.iter().chain([&self.id]).map(String::as_str)
    }

    pub(super) fn severity(&self) -> Option<Severity> {
        Severity::parse_severity(self.database_specific.severity.as_str()?)
    }
}

impl Affected {
    fn is_of_go(&self) -> bool {
        self.package.ecosystem == "Go"
    }

    fn has(&self, version: &Version) -> bool {
        let is_listed = |listed: &String| parse_version(listed).is_some_and(|it| it.cmp_precedence(version).is_eq());
        self.versions.iter().any(is_listed) || self.comparable().any(|range| range.has(version))
    }

    /// The others are ranges of commits.
    fn comparable(&self) -> impl Iterator<Item = &Range> {
        self.ranges.iter().filter(|range| range.kind != "GIT")
    }
}

impl Range {
    /// As the specification evaluates a range: the last event at or before the version counts. What cannot be read counts as affected.
    fn has(&self, version: &Version) -> bool {
        let mut events: Vec<(Version, bool)> = Vec::new();
        let mut is_affected = false;
        for Event { introduced, fixed, last_affected } in &self.events {
            match introduced.as_deref() {
                // Before all versions.
                Some("0") => is_affected = true,
                Some(text) => match parse_version(text) {
                    Some(introduced) => events.push((introduced, true)),
                    None => is_affected = true,
                },
                None => {}
            }
            events.extend(fixed.as_deref().and_then(parse_version).map(|it| (it, false)));
            let last = last_affected.as_deref().and_then(parse_version);
            events.extend(last.filter(|last| version.cmp_precedence(last).is_gt()).map(|it| (it, false)));
        }
        events.sort_by(|(a, _), (b, _)| a.cmp_precedence(b));
        for (at, begins) in events {
            if at.cmp_precedence(version).is_le() {
                is_affected = begins;
            }
        }
        is_affected
    }
}

/// A semantic version, with or without a `v`; or one of Go itself, such as `1.26`, `go1.26`, `1.27rc1` or `1.26.8 X:boringcrypto`.
pub(super) fn parse_version(text: &str) -> Option<Version> {
    let text = text.split(' ').next()?;
    let text = text.strip_prefix("go").or(text.strip_prefix('v')).unwrap_or(text);
    if let Ok(version) = Version::parse(text) {
        return Some(version);
    }
    let begins = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(begins);
    let missing = 2_usize.checked_sub(numbers.matches('.').count())?;
    let numbers = format!("{numbers}{}", ".0".repeat(missing));
    let pre = match rest.find(|c: char| c.is_ascii_digit()) {
        Some(digits) => format!("-{}.{}", &rest[..digits], &rest[digits..]),
        None if rest.is_empty() => String::new(),
        None => return None,
    };
    Version::parse(&format!("{numbers}{pre}")).ok()
}
