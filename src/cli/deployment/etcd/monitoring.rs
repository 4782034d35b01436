//! `windlass etcd monitoring`: files for Prometheus and Grafana.

use std::path::PathBuf;

use clap::Args;

use crate::cli::deployment::{SiteArgs, show};
use crate::cli::{CliError, ExitCode, note, working_directory};
use crate::deployment::Outcome;
use crate::deployment::etcd::monitoring::{self, MonitoringFiles};

#[derive(Debug, Args)]
pub(super) struct MonitoringArgs {
    /// Directory for alerts.yaml, targets.yaml and dashboard.json, on this machine; made if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    site: SiteArgs,
}

/// The exit code is 2 if a file could not be written.
pub(super) fn run_monitoring(args: &MonitoringArgs) -> Result<ExitCode, CliError> {
    let directory = working_directory()?.join(&args.directory);
    let mut command = args.site.command("etcd monitoring");
    command.arguments.push(directory.display().to_string());
    args.site.carry_out(command, &[], async |site, control| {
        let Some(reply) = monitoring::write_monitoring_files(site, &directory, control).await? else {
            return Ok(ExitCode::Interrupted);
        };
        let Some(files) = reply.reported.filter(|_| reply.failures.is_empty()) else {
            reply.failures.iter().for_each(|why| note(&site.keyring.hidden.hide(why)));
            return Ok(if reply.outcome == Outcome::Ok { ExitCode::Failed } else { reply.outcome.into() });
        };
        show(&written(&files, &directory.display().to_string()), site)?;
        Ok(reply.outcome.into())
    })
}

fn written(files: &MonitoringFiles, directory: &str) -> String {
    let members = match files.members.len() {
        1 => "1 member".to_owned(),
        count => format!("{count} members"),
    };
    let mut text = format!("{directory}/alerts.yaml: rules for Prometheus about {} ({members})\n", files.cluster);
    text.push_str(&format!("{directory}/dashboard.json: a dashboard for Grafana\n"));
    if files.local.is_empty() {
        text.push_str(&format!("{directory}/targets.yaml: the members, for file_sd_configs of Prometheus\n"));
    } else {
        text.push_str(&format!(
            "no targets.yaml: only their own hosts reach the metrics of {}. Set etcd_metrics_address, and run windlass apply\n",
            files.local.join(", "),
        ));
    }
    text
}
