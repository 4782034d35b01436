//! `windlass status`: how etcd, the components, the members and their certificates are, and why they are not well.

use clap::{Args, ValueEnum};
use serde_json::Value as Json;

use super::SiteArgs;
use crate::cli::{ExitCode, Failure, note, print};
use crate::deployment::status::{self, Report};
use crate::report::{harmless, plain};
use crate::value::Value;

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

/// Asks all hosts, changes nothing. The exit code is 2 when something is not well, 4 when a host was not reached.
pub(crate) fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    args.site.carry_out(&[], async |site, control| {
        let Some(report) = status::read(site, control).await? else { return Ok(ExitCode::Interrupted) };
        match &report.found {
            Some(found) => show(args.format, &report, found)?,
            // Nobody was left to put it together.
            None => report.unreachable.values().chain(&report.failures).for_each(|message| note(message)),
        }
        Ok(report.outcome.into())
    })
}

fn show(format: Format, report: &Report, found: &Value) -> Result<(), Failure> {
    let mut found = plain(found);
    let text = found.as_object_mut().and_then(|found| found.shift_remove("text"));
    if format == Format::Json {
        if let Some(found) = found.as_object_mut() {
            let unreachable = report.unreachable.iter().map(|(host, why)| (host.clone(), Json::from(why.clone())));
            let unfinished = report.interrupted.as_ref().map_or(Json::Null, |journal| journal.apply.clone().into());
            found.insert("deployment".into(), report.deployment.name.clone().into());
            found.insert("unreachable".into(), unreachable.collect());
            found.insert("unfinished".into(), unfinished);
        }
        return Ok(print(format!("{found:#}\n"))?);
    }
    let lines = text.as_ref().and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    let mut said: String = lines.map(|line| format!("{}\n", line.trim_end())).collect();
    for (host, why) in &report.unreachable {
        said.push_str(&format!("unhealthy: {host}: {why}\n"));
    }
    if let Some(journal) = &report.interrupted {
        let stage = journal.open_stage().map_or_else(String::new, |stage| format!(" at {}", stage.name()));
        said.push_str(&format!(
            "unhealthy: an {} by {} was interrupted{stage}; run apply to resume it\n",
            journal.deed, journal.who
        ));
    }
    Ok(print(harmless(&said).as_bytes())?)
}
