//! `windlass status`: the state of etcd, the components, the members and their certificates, and reasons for unhealthy ones.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::{SiteArgs, show};
use crate::cli::recording::StartedCommand;
use crate::cli::{CliError, ExitCode, note};
use crate::deployment::contract::{LossWindow, Status};
use crate::deployment::status::{self, Report, short_text};
use crate::deployment::{Outcome, lock};

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Table,
    Json,
}

/// Queries all hosts, changes nothing. The exit code is 2 when something is unhealthy, 4 when a host is unreachable.
pub(crate) fn run_status(args: &StatusArgs) -> Result<ExitCode, CliError> {
    let command = StartedCommand { recorded: false, ..args.site.command("status") };
    args.site.carry_out(command, &[], async |site, control| {
        let Some(report) = status::read_status(site, control).await? else { return Ok(ExitCode::Interrupted) };
        match &report.status {
            Some(status) => show(&text(args.format, &report, status), site)?,
            // No host is left to build the report from.
            None => report
                .unreachable
                .values()
                .chain(&report.failures)
                .for_each(|message| note(&site.keyring.hidden.hide(message))),
        }
        // The playbook knows nothing of what was begun.
        Ok(match (report.outcome, &report.unfinished) {
            (Outcome::Ok, Some(_)) => ExitCode::Failed,
            (outcome, _) => outcome.into(),
        })
    })
}

/// All of it, in the format.
fn text(format: Format, report: &Report, status: &Status) -> String {
    if format == Format::Json {
        let problems = status.problems();
        let unfinished = report.unfinished.as_ref().map(|journal| short_text(&journal.apply));
        let running = report.holder.as_ref().map(|holder| {
            let record = &holder.record;
            json!({"command": short_text(&record.command), "by": short_text(&record.holder), "since": record.since})
        });
        let found = json!({
            "deployment": report.deployment.name,
            "healthy": problems.is_empty() && report.unreachable.is_empty() && report.unfinished.is_none(),
            "wrong": problems,
            "etcd": status.etcd,
            "backup_loss_window": status.loss_window(),
            "components": status.components,
            "members": status.members.as_deref().unwrap_or_default(),
            "unreachable": report.unreachable,
            "unfinished": unfinished,
            "running": running,
        });
        return format!("{found:#}\n");
    }
    let mut text = table(status);
    for (host, why) in &report.unreachable {
        text.push_str(&format!("unhealthy: {host}: {why}\n"));
    }
    if let Some(holder) = &report.holder {
        // A host may have written anything there.
        let [command, who] = [&holder.record.command, &holder.record.holder]
            .map(|text| short_text(&text.split(char::is_control).collect::<Vec<_>>().join(" ")));
        text.push_str(&format!("running: {command} by {who}, for {}\n", lock::duration_text(holder.age)));
    }
    if let Some(journal) = &report.unfinished {
        let stage = journal.open_stage().map_or_else(String::new, |stage| format!(" at {}", stage.name()));
        let resume = journal.how_to_resume();
        text.push_str(&format!(
            "unhealthy: the {} by {} {}{stage}; {resume}\n",
            journal.operation,
            journal.who,
            journal.fate()
        ));
    }
    text
}

fn age_text(seconds: i64) -> String {
    match u64::try_from(seconds) {
        Ok(seconds) => lock::duration_text(Duration::from_secs(seconds)),
        Err(_) => "future".to_owned(),
    }
}

/// A line for each member of etcd, component and member cluster, and for each problem.
fn table(status: &Status) -> String {
    let yes = |is: bool| if is { "yes" } else { "no" };
    let line = |[name, host, state, ready, leads, version, port, certificate]: [&str; 8]| {
        let line =
            format!("{name:<24} {host:<12} {state:<10} {ready:<6} {leads:<6} {version:<16} {port:<6} {certificate}");
        format!("{}\n", line.trim_end())
    };
    let mut text = line(["COMPONENT", "HOST", "STATE", "READY", "LEADS", "VERSION", "PORT", "CERTIFICATE"]);
    for row in &status.etcd {
        let state = if row.role == "no reply" { "no reply" } else { "active" };
        let leads = if row.role == "leader" { "yes" } else { "" };
        let (port, days) = (row.port.to_string(), format!("{} days", row.days_left));
        text.push_str(&line(["etcd", &row.host, state, yes(row.healthy), leads, &row.version, &port, &days]));
    }
    for row in &status.components {
        let leads = if row.leads { "yes" } else { "" };
        let (port, days) = (row.port.to_string(), format!("{} days", row.days_left));
        let ready = yes(row.ready);
        text.push_str(&line([&row.component, &row.host, &row.state, ready, leads, &row.version, &port, &days]));
    }
    if let Some(LossWindow { seconds, had_leader, interval_minutes }) = status.loss_window() {
        text.push_str(&line(["LOCAL BACKUP", "HOST", "AGE", "READY", "", "REVISION", "", ""]));
        for (row, backup) in status.etcd.iter().filter_map(|row| Some((row, row.local_backup.as_ref()?))) {
            let age = backup.age_seconds.map_or_else(|| "none".to_owned(), age_text);
            let revision = backup.revision.map_or_else(String::new, |revision| revision.to_string());
            let ready = yes(backup.problem.is_empty());
            text.push_str(&line(["etcd", &row.host, &age, ready, "", &revision, "", ""]));
        }
        let now = match (seconds, had_leader) {
            (None, _) => "everything in etcd would be lost now".to_owned(),
            (Some(seconds), true) => format!("the writes of {} would be lost now", age_text(seconds)),
            (Some(seconds), false) => format!(
                "the writes of {} would be lost now, and perhaps earlier ones: the member knew no leader",
                age_text(seconds)
            ),
        };
        text.push_str(&format!(
            "if the data of all members is lost: {now}; a backup is due every {interval_minutes} min\n"
        ));
    }
    let members = status.members.as_deref().unwrap_or_default();
    if !members.is_empty() {
        text.push_str(&line(["MEMBER", "MODE", "", "READY", "", "VERSION", "", ""]));
    }
    for row in members {
        text.push_str(&line([&row.name, &row.mode, "", yes(row.ready), "", &row.version, "", ""]));
    }
    status.problems().iter().for_each(|problem| text.push_str(&format!("unhealthy: {problem}\n")));
    text
}
