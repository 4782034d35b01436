//! `windlass lint`: checks playbooks and roles without hosts and without an inventory, and gives advice.

mod github;
mod human;
mod json;
mod sarif;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::options::VaultPasswords;
use super::{CliError, ExitCode, carried, vault};
use crate::lint::{self, Finding, Level, LintSettings, rules::RULES};
use crate::playbook::load::OwnPrograms;
use crate::settings::list;

#[derive(Debug, Args)]
pub(super) struct LintArgs {
    /// Playbooks, roles, files of tasks or variables, or directories of them
    #[arg(value_name = "PATH", required_unless_present = "list_rules")]
    paths: Vec<PathBuf>,
    /// List the rules and exit
    #[arg(long = "list-rules")]
    list_rules: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human")]
    output: Output,
    /// The lowest severity that makes the exit code 2
    #[arg(long = "fail-on", value_enum, value_name = "LEVEL", default_value = "advice")]
    fail_on: FailOn,
    /// More directories with roles
    #[arg(long = "roles-path", value_name = "DIRECTORY", value_delimiter = ':')]
    roles_path: Vec<PathBuf>,
    #[command(flatten)]
    vault: VaultPasswords,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Output {
    Human,
    /// One list of objects
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub Actions
    Github,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailOn {
    Advice,
    Error,
}

/// Lints and prints the findings.
pub(super) fn run_lint(args: &LintArgs) -> Result<ExitCode, CliError> {
    if args.list_rules {
        let width = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
        let lines =
            RULES.iter().map(|rule| format!("{:width$}  {:6}  {}\n", rule.id, rule.level.level_name(), rule.about));
        super::print(lines.collect::<String>())?;
        return Ok(ExitCode::Ok);
    }
    let in_force = super::settings()?;
    let keyring = Arc::new(vault::keyring(&args.vault, &in_force)?);
    let paths = |setting| in_force.list_setting(setting).into_iter().map(PathBuf::from).collect::<Vec<_>>();
    let roles_path = match args.roles_path.is_empty() {
        true => paths(&list::ROLES_PATH),
        false => args.roles_path.clone(),
    };
    let words = OwnPrograms { filters: paths(&list::FILTER_PLUGINS), lookups: paths(&list::LOOKUP_PLUGINS) };
    let (collections, library) = (paths(&list::COLLECTIONS_PATH), paths(&list::LIBRARY));
    let surroundings = in_force.surroundings.clone();
    let last_roles = carried::roles(&surroundings);
    let settings = LintSettings { keyring, roles_path, collections, library, words, surroundings, last_roles };
    let findings = lint::lint(&args.paths, &settings).map_err(anyhow::Error::new)?;
    super::print(match args.output {
        Output::Human => human::findings_text(&findings),
        Output::Json => format!("{:#}\n", json::findings_json(&findings)),
        Output::Sarif => format!("{:#}\n", sarif::log(&findings)),
        Output::Github => github::annotations(&findings),
    })?;
    let least = match args.fail_on {
        FailOn::Advice => Level::Advice,
        FailOn::Error => Level::Error,
    };
    let fails = findings.iter().any(|finding| finding.rule.level >= least);
    Ok(if fails { ExitCode::Failed } else { ExitCode::Ok })
}

/// The message and the hint of a finding as one text.
fn finding_text(finding: &Finding) -> String {
    match &finding.complaint.hint {
        Some(hint) => format!("{}; {hint}", finding.complaint.message),
        None => finding.complaint.message.clone(),
    }
}
