//! `windlass bundle vulnerabilities`: what is known of the modules in a bundle, by a database that the caller brings.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::super::{CliError, ExitCode, note, print};
use super::{exit_as_diff, failure, open_to_look};
use crate::bundle::{
    BillOfMaterials, Severity, VexDocument, Vulnerability, VulnerabilityDatabase, VulnerabilityReport,
};
use crate::report::{one_line, plain_json};

#[derive(Debug, Args)]
pub(super) struct VulnerabilitiesArgs {
    /// Directory or .tar.zst
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Vulnerabilities of the ecosystem Go in the format of OSV: a directory of .json files, or a file
    #[arg(long, value_name = "PATH")]
    db: PathBuf,
    /// What does not count, with the reason: a document of OpenVEX
    #[arg(long, value_name = "FILE")]
    vex: Option<PathBuf>,
    /// Exit with 0 if all are less severe; one of unknown severity always counts
    #[arg(long, value_enum, default_value_t = SeverityArg::Low, value_name = "SEVERITY")]
    fail_on: SeverityArg,
    /// How to print what was found
    #[arg(short = 'o', long, value_enum, default_value_t = VulnerabilitiesFormat::Human, value_name = "FORMAT")]
    output: VulnerabilitiesFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SeverityArg {
    Low,
    Medium,
    High,
    Critical,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VulnerabilitiesFormat {
    Human,
    Json,
}

/// Runs the sub-command.
pub(super) fn list_vulnerabilities(args: &VulnerabilitiesArgs) -> Result<ExitCode, CliError> {
    Ok(exit_as_diff(compare(args)))
}

/// Whether nothing counts.
fn compare(args: &VulnerabilitiesArgs) -> Result<bool, CliError> {
    let vex = args.vex.as_deref().map(VexDocument::read_vex).transpose().map_err(failure)?.unwrap_or_default();
    let database = VulnerabilityDatabase::read_database(&args.db).map_err(failure)?;
    let bill = BillOfMaterials::of_bundle(&open_to_look(&args.bundle)?).map_err(failure)?;
    let report = VulnerabilityReport::compare_with(&bill, &database, &vex);
    match args.output {
        VulnerabilitiesFormat::Human => print(lines(&report, &database))?,
        VulnerabilitiesFormat::Json => {
            let text = serde_json::to_string_pretty(&report).map_err(anyhow::Error::from)?;
            print(format!("{}\n", plain_json(&text)))?;
        }
    }
    let VulnerabilityReport { unknown_programs, unknown_modules, packages, .. } = &report;
    if !unknown_programs.is_empty() {
        note(&format!(
            "warning: not compared: these programs do not say what they were built from: {}",
            unknown_programs.join(", ")
        ));
    }
    if !unknown_modules.is_empty() {
        note(&format!("warning: not compared: these modules have no version: {}", unknown_modules.join(", ")));
    }
    if *packages > 0 {
        note(&format!("warning: not compared: {packages} packages of operating systems; the database is about Go"));
    }
    let at_least = match args.fail_on {
        SeverityArg::Low => Severity::Low,
        SeverityArg::Medium => Severity::Medium,
        SeverityArg::High => Severity::High,
        SeverityArg::Critical => Severity::Critical,
    };
    Ok(report.counting(at_least).next().is_none())
}

fn lines(report: &VulnerabilityReport, database: &VulnerabilityDatabase) -> String {
    let mut text = String::new();
    for found in &report.vulnerabilities {
        let Vulnerability { ids, module, version, fixed, summary, files, not_affected, .. } = found;
        let fixed =
            fixed.as_ref().map_or_else(|| "no fixed version is known".to_owned(), |it| format!("fixed in {it}"));
        let severity = severity_text(found);
        text.push_str(&one_line(&format!("{severity:8} {}  {module} {version}, {fixed}", ids.join(", "))));
        text.push('\n');
        for line in [summary, &format!("in {}", files.join(", "))].into_iter().filter(|line| !line.is_empty()) {
            text.push_str(&format!("         {}\n", one_line(line)));
        }
        if let Some(why) = not_affected {
            text.push_str(&format!("         does not count: {}\n", one_line(why)));
        }
    }
    let counting = report.counting(Severity::Low).count();
    let harmless = report.vulnerabilities.len() - counting;
    let not_counted = if harmless > 0 { format!(", and {harmless} that do not count") } else { String::new() };
    let (records, newest) = (database.record_count(), one_line(&database.newest));
    text.push_str(&format!("{counting} vulnerabilities{not_counted}, by {records} records, the newest of {newest}\n"));
    text
}

fn severity_text(found: &Vulnerability) -> &'static str {
    match found.severity {
        Some(Severity::Low) => "low",
        Some(Severity::Medium) => "medium",
        Some(Severity::High) => "high",
        Some(Severity::Critical) => "critical",
        None => "unknown",
    }
}
