//! `windlass etcd`: what an etcd cluster needs for years, one sub-command each.

mod backup;
mod backups;
mod check;
mod credentials;
mod defrag;
mod documented;
mod keys;
mod member;
mod monitoring;
mod recover;
mod rehearse;
mod restore;
mod retention;
mod rotate_ca;
mod store;
mod upgrade;
mod verify;

use clap::{Args, Subcommand};

pub(in crate::cli) use keys::read_recipients;

use crate::cli::{CliError, ExitCode};
use crate::deployment::operation::Direction;

#[derive(Debug, Args)]
pub(crate) struct EtcdArgs {
    #[command(subcommand)]
    command: EtcdCommand,
}

#[derive(Debug, Subcommand)]
enum EtcdCommand {
    /// Check whether the cluster may be changed: members, leader, alarms, lag, sizes, disks, certificates, clocks
    Check(Box<check::CheckArgs>),
    /// Compare the data of all members by a hash of each one's keys at the same revision
    Verify(Box<verify::VerifyArgs>),
    /// Give the unused space of the databases back, one member at a time; clears the alarm of a full database
    Defrag(Box<defrag::DefragArgs>),
    /// Take a snapshot, verify it, and keep it in a directory on this machine or on another host, or in a bucket of an S3 service
    Backup(Box<backup::BackupArgs>),
    /// Remove members, one at a time: clients and leadership move away first, and the data is archived
    RemoveMember(Box<member::RemoveMemberArgs>),
    /// Remove members that are dead or lost their data, and add hosts of the inventory in their place
    ReplaceMember(Box<member::ReplaceMemberArgs>),
    /// Replace the certificate authority of the cluster by one with another key, while clients stay connected
    RotateCa(Box<rotate_ca::RotateCaArgs>),
    /// Upgrade etcd to the next minor version, one member at a time
    Upgrade(Box<upgrade::VersionArgs>),
    /// Go back to the minor version before, one member at a time
    Downgrade(Box<upgrade::VersionArgs>),
    /// Write rules for Prometheus and a dashboard for Grafana about the cluster; connects to no host
    Monitoring(Box<monitoring::MonitoringArgs>),
    /// List the backups in a directory, here or on another host, or in a bucket, and verify each of them
    Backups(backups::BackupsArgs),
    /// Restore a backup into a separate etcd on one host, and compare its data; the cluster is not touched
    Rehearse(Box<rehearse::RehearseArgs>),
    /// Start the members of a cluster that lost its majority, or show what is left of it and how to restore it
    Recover(Box<recover::RecoverArgs>),
    /// Write the credentials that a backup holds into a directory, for a controller that has lost them
    Credentials(credentials::CredentialsArgs),
    /// Restore the cluster from a backup: every member from the same snapshot; the old data is kept
    Restore(Box<restore::RestoreArgs>),
}

/// The checks that are skipped.
#[derive(Debug, Args)]
struct SkipArgs {
    /// Skip one of the checks that `windlass etcd check` shows, by its name; may be given several times
    #[arg(long = "skip-check", value_name = "NAME")]
    skip: Vec<String>,
}

/// Runs the sub-command.
pub(crate) fn run_etcd_command(args: &EtcdArgs) -> Result<ExitCode, CliError> {
    match &args.command {
        EtcdCommand::Check(args) => check::run_etcd_check(args),
        EtcdCommand::Verify(args) => verify::run_etcd_verify(args),
        EtcdCommand::Defrag(args) => defrag::run_defrag(args),
        EtcdCommand::Backup(args) => backup::run_backup(args),
        EtcdCommand::RemoveMember(args) => member::remove_member(args),
        EtcdCommand::ReplaceMember(args) => member::replace_member(args),
        EtcdCommand::RotateCa(args) => rotate_ca::rotate_ca(args),
        EtcdCommand::Upgrade(args) => upgrade::change_version(args, Direction::Up),
        EtcdCommand::Downgrade(args) => upgrade::change_version(args, Direction::Down),
        EtcdCommand::Monitoring(args) => monitoring::run_monitoring(args),
        EtcdCommand::Backups(args) => backups::print_backups(args),
        EtcdCommand::Rehearse(args) => rehearse::run_rehearsal(args),
        EtcdCommand::Recover(args) => recover::run_recover(args),
        EtcdCommand::Credentials(args) => credentials::write_credentials(args),
        EtcdCommand::Restore(args) => restore::run_restore(args),
    }
}
