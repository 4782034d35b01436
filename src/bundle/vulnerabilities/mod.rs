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
        let mut found: BTreeMap<(String, String, BTreeSet<String>, Option<String>), Vulnerability> = BTreeMap::new();
        let mut unknown = BTreeSet::new();
        for part in &bill.parts {
            let program = package_url::of_part(part).unwrap_or_default();
            for module in part.own_and_modules() {
                let Some(version) = module.version.as_deref().and_then(osv::parse_version) else {
                    unknown.insert(module.path.clone());
                    continue;
                };
                let url = package_url::of_module(&module);
                for Advisory { ids, severity, fixed, summary } in merge_aliases(&database.of_module(&module, &version))
                {
                    let names: Vec<&str> = ids.iter().map(String::as_str).collect();
                    let reason = vex.reason(&names, &program, &url);
                    let written = module.version.clone().unwrap_or_default();
                    let key = (module.path.clone(), written.clone(), ids.clone(), reason.clone());
                    let entry = found.entry(key).or_insert_with(|| Vulnerability {
                        ids: ids.into_iter().collect(),
                        severity,
                        module: module.path.clone(),
                        version: written,
                        fixed,
                        summary,
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
struct Advisory {
    ids: BTreeSet<String>,
    severity: Option<Severity>,
    fixed: Option<String>,
    summary: String,
}

/// Records with a name in common are about the same vulnerability.
fn merge_aliases(records: &[(&osv::OsvRecord, Option<String>)]) -> Vec<Advisory> {
    let mut merged: Vec<Advisory> = Vec::new();
    for (record, fixed) in records {
        let mut own = Advisory {
            ids: record.aliases.iter().cloned().chain([record.id.clone()]).collect(),
            severity: record.severity(),
            fixed: fixed.clone(),
            summary: record.summary.clone(),
        };
        // Two that were apart may be one by this record.
        for other in merged.extract_if(.., |other| !other.ids.is_disjoint(&own.ids)).collect::<Vec<_>>() {
            own.ids.extend(other.ids);
            own.severity = own.severity.max(other.severity);
            own.fixed = own.fixed.or(other.fixed);
            if own.summary.is_empty() {
                own.summary = other.summary;
            }
        }
        merged.push(own);
    }
    merged
}

#[cfg(test)]
mod tests;
