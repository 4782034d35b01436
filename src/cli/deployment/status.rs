//! `windlass status`: how etcd, the components, the members and their certificates are, and why they are not well.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use serde_json::Value as Json;

use super::{Deployment, Site, SiteArgs};
use crate::cli::launch;
use crate::cli::{ExitCode, Failure, note, print};
use crate::engine::{Event, Status};
use crate::report::{harmless, plain};
use crate::value::{Value, Vars};

/// What asks.
const PLAYBOOK: &str = "status.yml";

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
    let site = Site::open(&args.site, &[])?;
    launch::in_runtime(async || {
        let mut telling = site.telling()?;
        let deployment = site.deployment()?;
        let wanted: Vars = [("karmada_status_wanted".into(), Value::from(true))].into_iter().collect();
        let job = site.job(Some(&site.playbook(PLAYBOOK)), false, wanted, None)?;
        let mut silent = BTreeMap::new();
        let mut failures = Vec::new();
        let recap = telling
            .watch(job, |event| {
                if let Event::Result { host, result, .. } = event
                    && let Some(message) = &result.message
                {
                    match result.status {
                        Status::Unreachable => {
                            silent.entry(host.to_string()).or_insert_with(|| message.clone());
                        }
                        Status::Failed => failures.push(format!("{host}: {message}")),
                        _ => {}
                    }
                }
            })
            .await?;
        let Some(recap) = recap else { return telling.end(ExitCode::Interrupted).await };
        match recap.stats.run.get("status") {
            Some(found) => show(args.format, &deployment, found, &silent).await?,
            // Nobody was left to put it together.
            None => silent.values().chain(&failures).for_each(|message| note(message)),
        }
        telling.end(launch::exit_code(&recap)).await
    })
}

async fn show(
    format: Format,
    deployment: &Deployment,
    found: &Value,
    silent: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    let mut found = plain(found);
    let text = found.as_object_mut().and_then(|found| found.shift_remove("text"));
    let unfinished = deployment.journal().await.filter(|journal| !journal.done);
    if format == Format::Json {
        if let Some(found) = found.as_object_mut() {
            found.insert("deployment".into(), deployment.name.clone().into());
            found.insert(
                "unreachable".into(),
                silent.iter().map(|(host, why)| (host.clone(), Json::from(why.clone()))).collect(),
            );
            found.insert("unfinished".into(), unfinished.map_or(Json::Null, |journal| journal.apply.into()));
        }
        return Ok(print(format!("{found:#}\n"))?);
    }
    let lines = text.as_ref().and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    let mut said: String = lines.map(|line| format!("{}\n", line.trim_end())).collect();
    for (host, why) in silent {
        said.push_str(&format!("unhealthy: {host}: {why}\n"));
    }
    if let Some(journal) = unfinished {
        let stage = journal.open_stage().map_or_else(String::new, |stage| format!(" at {}", stage.name()));
        said.push_str(&format!(
            "unhealthy: an {} by {} was interrupted{stage}; run apply to resume it\n",
            journal.deed, journal.who
        ));
    }
    Ok(print(harmless(&said).as_bytes())?)
}
