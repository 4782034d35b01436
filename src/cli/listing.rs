//! `--syntax-check`, `--list-hosts`, `--list-tasks`, `--list-tags`: what a run would be about, in Ansible's form.

use std::path::PathBuf;
use std::sync::Arc;

use super::{CliError, ExitCode};
use crate::engine::{self, Job};
use crate::playbook::{Play, Step, Task};
use crate::value::Value;

/// What is listed of each play; nothing: the playbooks' names alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListingOptions {
    pub hosts: bool,
    pub tasks: bool,
    pub tags: bool,
}

/// Lists the plays of the job, which are those of these playbooks.
pub(super) fn print_listing(playbooks: &[PathBuf], job: &Job, what: ListingOptions) -> Result<ExitCode, CliError> {
    let mut text = String::new();
    for (path, plays) in playbooks.iter().zip(&job.playbooks) {
        text.push_str(&format!("\nplaybook: {}\n", path.display()));
        if what.hosts || what.tasks || what.tags {
            for (number, play) in plays.iter().enumerate() {
                text.push_str(&of_play(job, play, number + 1, what)?);
            }
        }
    }
    super::print(text)?;
    Ok(ExitCode::Ok)
}

fn of_play(job: &Job, play: &Play, number: usize, what: ListingOptions) -> Result<String, CliError> {
    let patterns = patterns(&play.hosts.value);
    let pattern = patterns.join(",");
    let name = play.name.as_ref().map_or_else(|| pattern.clone(), ToString::to_string);
    let tags = sorted(play.keywords.tags.iter());
    let mut text = format!("\n  play #{number} ({pattern}): {name}\tTAGS: [{}]\n", tags.join(","));
    if what.hosts {
        let hosts = engine::hosts_of(job, play).map_err(anyhow::Error::new)?;
        let quoted: Vec<String> = patterns.iter().map(|pattern| format!("'{pattern}'")).collect();
        text.push_str(&format!("    pattern: [{}]\n    hosts ({}):\n", quoted.join(", "), hosts.len()));
        hosts.iter().for_each(|host| text.push_str(&format!("      {host}\n")));
    }
    let sections = [&play.pre_tasks, &play.roles, &play.tasks, &play.post_tasks];
    let tasks = sections.into_iter().flat_map(|section| expected(section));
    let tasks: Vec<&Arc<Task>> = tasks.filter(|task| job.tags.allow(&task.keywords.tags)).collect();
    if what.tasks {
        text.push_str("    tasks:\n");
        for task in &tasks {
            let tags = sorted(task.keywords.tags.iter());
            text.push_str(&format!("      {}\tTAGS: [{}]\n", name_of(task), tags.join(", ")));
        }
    }
    if what.tags {
        let tags = sorted(tasks.iter().flat_map(|task| &task.keywords.tags));
        text.push_str(&format!("      TASK TAGS: [{}]\n", tags.join(", ")));
    }
    Ok(text)
}

/// The tasks that run if none fails, in order. What a block does beside is not listed, as in Ansible.
fn expected<'a>(steps: &'a [Step]) -> Vec<&'a Arc<Task>> {
    let of_step = |step: &'a Step| match step {
        Step::Task(task) => vec![task],
        Step::Include(include) => vec![&include.task],
        Step::Block(block) => expected(&block.steps),
    };
    steps.iter().flat_map(of_step).collect()
}

/// The patterns of `hosts`.
fn patterns(hosts: &Value) -> Vec<String> {
    match hosts.kind() {
        minijinja::value::ValueKind::Seq => hosts.try_iter().into_iter().flatten().map(|one| one.to_string()).collect(),
        _ => vec![hosts.to_string()],
    }
}

fn name_of(task: &Task) -> String {
    match (&task.name, &task.role) {
        (Some(name), Some(role)) => format!("{} : {name}", role.name),
        (Some(name), None) => name.to_string(),
        (None, _) => task.action.written.to_string(),
    }
}

fn sorted<'a>(tags: impl Iterator<Item = &'a Arc<str>>) -> Vec<&'a str> {
    let mut tags: Vec<&str> = tags.map(AsRef::as_ref).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}
