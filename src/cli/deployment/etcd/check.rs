//! `windlass etcd check`: the checks that every change of the cluster makes first.

use clap::Args;
use serde_json::json;

use super::SkipArgs;
use crate::cli::deployment::status::Format;
use crate::cli::deployment::{SiteArgs, show};
use crate::cli::{CliError, ExitCode, note};
use crate::deployment::Outcome;
use crate::deployment::etcd::check::{self, Checks};
use crate::report::one_line;

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    format: Format,
    #[command(flatten)]
    skip: SkipArgs,
}

/// The exit code is 2 when a check refuses, 4 when a host was not reached.
pub(super) fn run_etcd_check(args: &CheckArgs) -> Result<ExitCode, CliError> {
    args.site.carry_out(args.site.command("etcd check"), &[], async |site, control| {
        let Some((deployment, reply)) = check::read_etcd_check(site, &args.skip.skip, control).await? else {
            return Ok(ExitCode::Interrupted);
        };
        match &reply.reported {
            Some(checks) if args.format == Format::Json => {
                let found = json!({
                    "deployment": deployment.name,
                    "cluster": checks.cluster,
                    "passed": checks.problem.is_empty() && !checks.checks.iter().any(|check| check.state == "refused"),
                    "checks": checks.checks,
                    "problem": checks.problem,
                    "unreachable": reply.unreachable,
                });
                show(&format!("{found:#}\n"), site)?;
            }
            Some(checks) => {
                show(&table(checks), site)?;
                reply.unreachable.iter().for_each(|(host, why)| note(&format!("unreachable: {host}: {why}")));
            }
            None => {
                let silent = reply.unreachable.iter().map(|(host, why)| format!("unreachable: {host}: {why}"));
                silent.chain(reply.failures.iter().cloned()).for_each(|why| note(&site.keyring.hidden.hide(&why)));
            }
        }
        Ok(match (&reply.reported, reply.outcome) {
            (None, Outcome::Ok) => ExitCode::Failed,
            (_, outcome) => outcome.into(),
        })
    })
}

/// A line for each check, then what to do.
fn table(checks: &Checks) -> String {
    let mut text = format!("{:<13} {:<8} {}\n", "CHECK", "STATE", "FOUND");
    for row in &checks.checks {
        text.push_str(format!("{:<13} {:<8} {}", row.check, row.state, one_line(&row.found)).trim_end());
        text.push('\n');
    }
    for row in checks.checks.iter().filter(|row| !row.hint.is_empty() && row.state != "skipped") {
        text.push_str(&format!("{}: {}\n", row.check, row.hint));
    }
    if !checks.problem.is_empty() {
        text.push_str(&format!("skipped all checks: {}\n", checks.problem));
    }
    text
}
