//! Known vulnerabilities of the modules that a bundle's Go programs were built from, by a database that the caller brings.

mod osv;
mod vex;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::sbom::{BillOfMaterials, package_url};

pub use osv::VulnerabilityDatabase;
pub use vex::VexDocument;

/// How bad a vulnerability is, as its database says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Low,
    Medium,
    High,
    Critical,
}

/// A vulnerability of a module in programs of a bundle. The fields are those of the JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Vulnerability {
    /// Its names in all databases.
    pub ids: Vec<String>,
    /// None: no record says it.
    pub severity: Option<Severity>,
    pub module: String,
    pub version: String,
    /// The first version that does not have it any longer. None: there is none, or it is not known.
    pub fixed: Option<String>,
    pub summary: String,
    /// The programs, as files of the bundle.
    pub files: Vec<String>,
    /// Why it does not count.
    pub not_affected: Option<String>,
}

/// A module, its version, the names of a vulnerability, and why it does not count.
type FindingKey<'a> = (String, String, BTreeSet<&'a str>, Option<String>);

/// What was found, and what could not be compared. The fields are those of the JSON.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct VulnerabilityReport {
    /// The worst first.
    pub vulnerabilities: Vec<Vulnerability>,
    /// Programs that do not say what they were built from.
    pub unknown_programs: Vec<String>,
    /// Modules that were built from a directory, and so have no version.
    pub unknown_modules: Vec<String>,
    /// Packages of operating systems: the database is about Go.
    pub packages: usize,
}

impl Severity {
    /// As the databases of GitHub and of others write it.
    pub fn parse_severity(text: &str) -> Option<Severity> {
        match text.to_ascii_lowercase().as_str() {
            "low" => Some(Severity::Low),
            "medium" | "moderate" => Some(Severity::Medium),
            "high" => Some(Severity::High),
            "critical" => Some(Severity::Critical),
            _ => None,
        }
    }
}

impl VulnerabilityReport {
    /// Compares all modules of a bundle with a database.
    pub fn compare_with(
        bill: &BillOfMaterials,
        database: &VulnerabilityDatabase,
        vex: &VexDocument,
    ) -> VulnerabilityReport {
        let mut found: BTreeMap<FindingKey<'_>, Vulnerability> = BTreeMap::new();
        let mut unknown = BTreeSet::new();
        for part in &bill.parts {
            let program = package_url::of_part(part).unwrap_or_default();
            for module in part.own_and_modules() {
                let Some(version) = module.version.as_deref().and_then(osv::parse_version) else {
                    unknown.insert(module.path.clone());
                    continue;
                };
                let url = package_url::of_module(&module);
                for Advisory { ids, records } in merge_aliases(&database.of_module(&module, &version)) {
                    let judged = records.iter().map(|record| (*record, why_harmless(record, vex, &program, &url)));
                    let (counting, harmless): (Vec<_>, Vec<_>) = judged.partition(|(_, reason)| reason.is_none());
                    // It counts as long as one of its records does.
                    let (records, reason) = match counting.is_empty() {
                        false => (counting, None),
                        true => {
                            let reasons: BTreeSet<&str> =
                                harmless.iter().flat_map(|(_, reasons)| reasons.iter().flatten().copied()).collect();
                            let reasons = reasons.into_iter().collect::<Vec<_>>().join("; ");
                            (harmless, Some(reasons))
                        }
                    };
                    let records: Vec<&osv::OsvRecord> = records.into_iter().map(|(record, _)| record).collect();
                    let severity = records.iter().filter_map(|record| record.severity()).max();
                    let fixed = osv::fixed_after(&records, &module.path, &version);
                    let summary = records.iter().map(|record| &record.summary).find(|summary| !summary.is_empty());
                    let written = module.version.clone().unwrap_or_default();
                    let key = (module.path.clone(), written.clone(), ids.clone(), reason.clone());
                    let entry = found.entry(key).or_insert_with(|| Vulnerability {
                        ids: ids.into_iter().map(str::to_owned).collect(),
                        severity,
                        module: module.path.clone(),
                        version: written,
                        fixed,
                        summary: summary.cloned().unwrap_or_default(),
                        files: Vec::new(),
                        not_affected: reason,
                    });
                    entry.files.push(part.item.file.clone());
                }
            }
        }
        let mut vulnerabilities: Vec<Vulnerability> = found.into_values().collect();
        vulnerabilities.sort_by_key(|it| std::cmp::Reverse(it.severity.unwrap_or(Severity::Critical)));
        VulnerabilityReport {
            vulnerabilities,
            unknown_programs: bill.silent_programs().into_iter().map(str::to_owned).collect(),
            unknown_modules: unknown.into_iter().collect(),
            packages: bill.parts.iter().filter(|part| part.item.component == "packages").count(),
        }
    }

    /// Those that count, at least as bad. One of unknown severity always does.
    pub fn counting(&self, at_least: Severity) -> impl Iterator<Item = &Vulnerability> {
        let counts = move |it: &&Vulnerability| {
            it.not_affected.is_none() && it.severity.is_none_or(|severity| severity >= at_least)
        };
        self.vulnerabilities.iter().filter(counts)
    }
}

/// What the records of several databases say of one vulnerability.
struct Advisory<'a> {
    ids: BTreeSet<&'a str>,
    records: Vec<&'a osv::OsvRecord>,
}

/// Why the vulnerabilities of a record do not count for a program and a module of it. None: at least one counts. Names that begin with
/// CVE are of one vulnerability each, and a record may have several.
fn why_harmless<'a>(
    record: &osv::OsvRecord,
    vex: &'a VexDocument,
    program: &str,
    module: &str,
) -> Option<Vec<&'a str>> {
    let names: Vec<&str> = record.names().collect();
    let several: Vec<&str> = names.iter().copied().filter(|name| name.starts_with("CVE-")).collect();
    if several.len() < 2 {
        return vex.reason(&names, program, module).map(|reason| vec![reason]);
    }
    several.iter().map(|name| vex.reason(&[name, &record.id], program, module)).collect()
}

/// Records with a name in common are about the same vulnerability.
fn merge_aliases<'a>(records: &[&'a osv::OsvRecord]) -> Vec<Advisory<'a>> {
    let mut merged: Vec<Advisory<'_>> = Vec::new();
    for record in records {
        let mut own = Advisory { ids: record.names().collect(), records: vec![record] };
        // Two that were apart may be one by this record.
        for other in merged.extract_if(.., |other| !other.ids.is_disjoint(&own.ids)).collect::<Vec<_>>() {
            own.ids.extend(other.ids);
            own.records.extend(other.records);
        }
        merged.push(own);
    }
    merged
}

#[cfg(test)]
mod tests;
