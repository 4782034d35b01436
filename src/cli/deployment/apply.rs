//! `windlass apply`: makes a deployment what it is described to be.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::{SiteArgs, agrees, declined, plan, plan_text, progress_messages, show, with_request};
use crate::cli::{CliError, ExitCode, note};
use crate::deployment::apply::{Agreement, Answer, Proposal, Question};
use crate::deployment::plan::PlanRequest;
use crate::deployment::{Control, LockRequest};

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// A plan that `windlass plan -o` saved; refused if anything changed since
    #[arg(value_name = "PLANFILE", conflicts_with_all = ["file", "inventory"])]
    plan: Option<PathBuf>,
    /// Apply to these hosts only: a pattern, such as h1,h2 or @FILE
    #[arg(short = 'l', long, value_name = "HOSTS", conflicts_with = "plan")]
    limit: Option<String>,
    /// Remove these members even if they do not answer; their lines must be gone
    #[arg(long, value_name = "MEMBERS", value_delimiter = ',', conflicts_with = "plan")]
    remove_by_force: Vec<String>,
    /// Apply without asking
    #[arg(short = 'y', long)]
    yes: bool,
    /// How many members to remove without asking again
    #[arg(long, value_name = "N", default_value_t = 1)]
    max_removals: usize,
    /// Take over the lock from a run that still holds it, such as a suspended one
    #[arg(long)]
    break_lock: bool,
}

/// Plans, asks, and applies.
pub(crate) fn run_apply(args: &ApplyArgs) -> Result<ExitCode, CliError> {
    let saved = args.plan.as_deref().map(plan::load_plan).transpose()?;
    let sources: Vec<PathBuf> = saved.iter().flat_map(|plan| &plan.sources).map(PathBuf::from).collect();
    let wanted = PlanRequest { limit: args.limit.clone(), remove_by_force: args.remove_by_force.clone() };
    let mut command = with_request(args.site.command("apply"), &wanted);
    command.arguments.extend(args.plan.iter().map(|plan| plan.display().to_string()));
    let command_line = command.command_line();
    args.site.carry_out(command, &sources, async |site, control| {
        let request = LockRequest { command: command_line, breaks: args.break_lock, abandons: false };
        let Some(proposal) = Proposal::make(site, saved, wanted, &request, control).await? else {
            return Ok(ExitCode::Interrupted);
        };
        show(&plan_text::plan(&proposal.plan, site.verbosity > 0), site)?;
        if let Some(journal) = &proposal.interrupted {
            note(&progress_messages::interrupted(journal, journal.is_apply()));
        }
        let mut agreed = Agreement { plan: args.yes, removals: args.max_removals };
        loop {
            match proposal.apply(agreed, &request, control).await? {
                Answer::Nothing => return Ok(proposal.plan.outcome().into()),
                Answer::Refused(stage) => {
                    note(&format!("error: windlass changed nothing, because stage {} is refused", stage.name()));
                    return Ok(proposal.plan.outcome().into());
                }
                Answer::Asks(questions) => {
                    for question in &questions {
                        if !answered(args, question, &mut agreed, control)? {
                            return Ok(declined(control));
                        }
                    }
                }
                Answer::Done(outcome) => return Ok(outcome.into()),
            }
        }
    })
}

/// Asks the person, and notes what was agreed to. False: no.
fn answered(
    args: &ApplyArgs,
    question: &Question,
    agreed: &mut Agreement,
    control: &Control,
) -> Result<bool, CliError> {
    let otherwise = "--yes applies without asking";
    match question {
        Question::Remove(members) => {
            let (count, names) = (plan_text::counted(members.len(), "member"), members.join(", "));
            if args.yes {
                return Err(anyhow!(
                    "refusing to remove {count} ({names}): --max-removals allows {}",
                    args.max_removals
                )
                .into());
            }
            agreed.removals = members.len();
            agrees(&format!("Remove {count}: {names}?"), otherwise, control)
        }
        Question::Apply => {
            agreed.plan = true;
            agrees("Apply?", otherwise, control)
        }
    }
}
