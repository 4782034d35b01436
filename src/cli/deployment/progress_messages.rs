//! Messages while a deployment is planned and changed.

use tokio::sync::mpsc::UnboundedSender;

use crate::cli::recording::outcome_of_code;
use crate::cli::{note, warn};
use crate::deployment::journal::Journal;
use crate::deployment::lock;
use crate::deployment::{Progress, RemainingParts};
use crate::engine::{CommandEvent, Event, TimedEvent};

/// What happens between runs.
pub(super) fn print_progress(progress: &Progress) {
    match progress {
        // These are events.
        Progress::Deployment { .. } | Progress::StageStart { .. } | Progress::StageEnd { .. } => {}
        Progress::Planning(stage) => note(&format!("planning {}", stage.name())),
        Progress::Waiting(words) => note(&format!("waiting for {words}")),
        Progress::PlanningAgain => note("something changed on the hosts while planning: planning again"),
        Progress::Applying { stage, playbook } => {
            note(&format!("applying {}: {}", stage.name(), playbook.display()));
        }
        Progress::DryRun(playbook) => note(&format!("checking what {} would change", playbook.display())),
        Progress::Running(playbook) => note(&format!("running {}", playbook.display())),
        Progress::Lock(words) => note(words),
        Progress::Warning(words) => warn(words),
        Progress::NotRemoved(RemainingParts::Everything) => note(
            "not removed: members, the control plane, etcd and its data\nhint: set member_force to remove a member that does \
             not answer",
        ),
        Progress::NotRemoved(remaining) => {
            let what = match remaining {
                RemainingParts::Etcd => "etcd and its data",
                _ => "the control plane, etcd and its data",
            };
            note(&format!("possibly not removed: {what}\nhint: run destroy again to resume"));
        }
    }
}

/// What reports see of it as an event of its own.
pub(super) fn send_progress(progress: Progress, events: &UnboundedSender<TimedEvent>) {
    let event = match progress {
        Progress::Deployment { name, hosts } => CommandEvent::Deployment { name, hosts },
        Progress::StageStart { stage, playbook, check } => {
            CommandEvent::StageStart { stage: stage.to_owned(), playbook, check }
        }
        Progress::StageEnd { stage, outcome, changes } => {
            let outcome = outcome_of_code(outcome.into()).outcome_word();
            CommandEvent::StageEnd { stage: stage.to_owned(), outcome, changes }
        }
        _ => return,
    };
    #[expect(clippy::let_underscore_must_use, reason = "reports that ended early say so themselves")]
    let _ = events.send(Event::Command(event).into());
}

/// An operation that did not come to its end, as the next one shows it. `resumes`: the next one resumes it.
pub(super) fn interrupted(journal: &Journal, resumes: bool) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let ago = lock::duration_text(now.saturating_sub(std::time::Duration::from_secs(journal.begun)));
    let then = match journal.open_stage() {
        _ if !resumes => journal.how_to_resume(),
        Some(stage) if journal.is_apply() => {
            format!("resuming with the stages that have changes; it had reached stage {}", stage.name())
        }
        None if journal.is_apply() => "resuming with the stages that have changes".to_owned(),
        _ => "resuming it".to_owned(),
    };
    let (operation, who) = (&journal.operation, &journal.who);
    format!("the {operation} that {who} started {ago} ago {}: {then}", journal.fate())
}
