//! `--step`: before each task the person says whether it is run.

use std::sync::atomic::Ordering;

use tokio::sync::Mutex;

use super::event::{Event, TaskStart};
use super::{Job, Run};
use crate::modules::question::{Answer, Question};
use crate::value::truth;

/// Whether the person is still asked, one question at a time.
pub(crate) struct StepMode {
    asking: Mutex<bool>,
}

impl StepMode {
    pub(super) fn of_job(job: &Job) -> StepMode {
        StepMode { asking: Mutex::new(job.options.step) }
    }
}

/// Whether to run a task. `c` means yes for all following tasks; an abort, or no answer, ends the
/// run.
pub(super) async fn agrees(run: &Run, task: &TaskStart) -> bool {
    let mut asking = run.step.asking.lock().await;
    if !*asking {
        return true;
    }
    if run.stopping() {
        return false;
    }
    let (question, answer) = Question::new(format!("Perform task: {} (N)o/(y)es/(c)ontinue:", task.name), true, None);
    run.send_event(Event::Question(question));
    match answer.await {
        Ok(Answer::Text(word)) if truth::is_yes(&word) => true,
        Ok(Answer::Text(word)) => match word.trim().to_ascii_lowercase().as_str() {
            "c" | "continue" => {
                *asking = false;
                true
            }
            _ => false,
        },
        Ok(Answer::GoOn) => true,
        Ok(Answer::Abort) | Err(_) => {
            run.stopping.store(true, Ordering::Relaxed);
            false
        }
    }
}
