//! `windlass etcd verify`: whether all members have the same data.

use clap::Args;
use serde_json::json;

use crate::cli::deployment::status::Format;
use crate::cli::deployment::{SiteArgs, show};
use crate::cli::{CliError, ExitCode, note};
use crate::deployment::Outcome;
use crate::deployment::etcd::verify::{self, Comparison, Hashes};
use crate::report::one_line;

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    format: Format,
}

/// The exit code is 2 if a member differs or gave no hash, 4 if a host was not reached.
pub(super) fn run_etcd_verify(args: &VerifyArgs) -> Result<ExitCode, CliError> {
    args.site.carry_out(args.site.command("etcd verify"), &[], async |site, control| {
        let Some((deployment, reply)) = verify::read_etcd_hashes(site, control).await? else {
            return Ok(ExitCode::Interrupted);
        };
        let silent = reply.unreachable.iter().map(|(host, why)| format!("unreachable: {host}: {why}"));
        let Some(hashes) = &reply.reported else {
            silent.chain(reply.failures.iter().cloned()).for_each(|why| note(&site.keyring.hidden.hide(&why)));
            return Ok(if reply.outcome == Outcome::Ok { ExitCode::Failed } else { reply.outcome.into() });
        };
        let compared = hashes.compare();
        let is_same = compared.iter().all(|one| *one == Comparison::Same);
        match args.format {
            Format::Json => {
                let members = hashes.members.iter().zip(&compared).map(|(member, comparison)| {
                    json!({
                        "name": member.name,
                        "isLearner": member.is_learner,
                        "comparison": comparison,
                        "hash": member.hash,
                        "compactRevision": member.compact_revision,
                    })
                });
                let found = json!({
                    "deployment": deployment.name,
                    "cluster": hashes.cluster,
                    "revision": hashes.revision,
                    "same": is_same,
                    "members": members.collect::<Vec<_>>(),
                    "unreachable": reply.unreachable,
                });
                show(&format!("{found:#}\n"), site)?;
            }
            Format::Table => {
                show(&table(hashes, &compared), site)?;
                silent.for_each(|why| note(&site.keyring.hidden.hide(&why)));
            }
        }
        Ok(match (is_same, reply.outcome) {
            (false, Outcome::Ok) => ExitCode::Failed,
            (_, outcome) => outcome.into(),
        })
    })
}

/// A line for each member, then what it means.
fn table(hashes: &Hashes, compared: &[Comparison]) -> String {
    let mut text = format!("{:<20} {:<15} {:>12} {:>12}\n", "MEMBER", "DATA", "HASH", "COMPACTED");
    for (member, comparison) in hashes.members.iter().zip(compared) {
        let data = match comparison {
            Comparison::Same => "same",
            Comparison::Differs => "differs",
            Comparison::NotComparable => "not comparable",
            Comparison::NoHash => "no hash",
        };
        let [hash, compacted] = [member.hash.map(|hash| hash.to_string()), member.compact_revision.map(revision_text)]
            .map(|figure| figure.unwrap_or_else(|| "-".to_owned()));
        text.push_str(&format!("{:<20} {data:<15} {hash:>12} {compacted:>12}\n", one_line(&member.name)));
    }
    let with = |comparison: Comparison| {
        let names = hashes.members.iter().zip(compared).filter(|(_, one)| **one == comparison);
        names.map(|(member, _)| one_line(&member.name).into_owned()).collect::<Vec<_>>()
    };
    let (same, differing, missing) = (with(Comparison::Same), with(Comparison::Differs), with(Comparison::NoHash));
    let revision = hashes.revision;
    match (same.len(), differing.as_slice()) {
        (same, []) if same == hashes.members.len() => {
            text.push_str(&format!("All {same} members have the same data at revision {revision}.\n"));
        }
        (_, []) => {}
        (0, _) => text.push_str(&format!(
            "The members have different data at revision {revision}, and no majority has the same: nobody can tell which is right. \
             Stop the clients, and restore a backup (windlass etcd restore).\n"
        )),
        (_, differing) => text.push_str(&format!(
            "Other data than the majority at revision {revision}: {}. Stop etcd on its host (systemctl stop etcd), then replace it: \
             windlass etcd replace-member {}\n",
            differing.join(", "),
            differing.join(" "),
        )),
    }
    if !missing.is_empty() {
        text.push_str(&format!("No hash: {}. Run windlass etcd check\n", missing.join(", ")));
    }
    if compared.contains(&Comparison::NotComparable) {
        text.push_str("A member was compacted meanwhile: run this again\n");
    }
    text
}

/// etcd says -1 before the first compaction.
fn revision_text(revision: i64) -> String {
    if revision < 0 { "never".to_owned() } else { revision.to_string() }
}
