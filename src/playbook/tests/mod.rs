//! Tests of the loader, on playbooks in a temporary directory and a few modules of their own.

mod arguments;
mod inheritance;
mod known;
mod plays;
mod roles;
mod tasks;

use std::path::Path;
use std::sync::Arc;

use super::load::Loader;
use super::{Block, Include, Play, Step, Task};
use crate::value::Vars;
use crate::value::origin::Diagnostic;

/// A directory with files, gone with its value.
struct Project {
    directory: tempfile::TempDir,
    loader: Loader,
}

impl Project {
    /// Files by their paths; the playbook is `play.yml`.
    fn new(files: &[(&str, &str)]) -> Project {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let extra: Vars = [("edition".into(), "blue".into())].into_iter().collect();
        let loader = Loader::new(Arc::new(known::Few), Arc::default(), Arc::new(extra), Vec::new());
        Project { directory, loader }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn load(&self) -> Result<Vec<Play>, Vec<Diagnostic>> {
        self.loader.load_playbook(&self.path().join("play.yml"))
    }

    /// The only play.
    fn play(&self) -> Play {
        let mut plays = self.load().map_err(|complaints| text(&complaints)).unwrap();
        assert_eq!(plays.len(), 1);
        plays.pop().unwrap()
    }
}

/// The only play of a lone file.
fn play(text: &str) -> Play {
    Project::new(&[("play.yml", text)]).play()
}

/// A play with these tasks, given without indentation.
fn tasks(text: &str) -> Vec<Step> {
    play(&with_tasks(text)).tasks
}

fn with_tasks(text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("    {line}\n")).collect();
    format!("- hosts: all\n  tasks:\n{lines}")
}

/// What is wrong with these tasks: line:column of the play, message, hint.
fn wrong(text: &str) -> String {
    wrong_play(&with_tasks(text))
}

fn wrong_play(text: &str) -> String {
    let project = Project::new(&[("play.yml", text)]);
    self::text(&project.load().expect_err("it is wrong"))
}

fn text(complaints: &[Diagnostic]) -> String {
    let line = |complaint: &Diagnostic| {
        let place = complaint.origin.as_ref().map_or(String::new(), |o| format!("{}:{}: ", o.line, o.column));
        let hint = complaint.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
        format!("{place}{}{hint}", complaint.message)
    };
    complaints.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn task(step: &Step) -> &Task {
    match step {
        Step::Task(task) => task,
        other => panic!("no task: {other:?}"),
    }
}

fn block(step: &Step) -> &Block {
    match step {
        Step::Block(block) => block,
        other => panic!("no block: {other:?}"),
    }
}

fn include(step: &Step) -> &Include {
    match step {
        Step::Include(include) => include,
        other => panic!("no include: {other:?}"),
    }
}

/// The arguments of a task, printed: `src=a dest=b`.
fn arguments(task: &Task) -> String {
    let args = &task.action.args;
    args.iter().map(|(name, written)| format!("{name}={}", written.value)).collect::<Vec<_>>().join(" ")
}

/// Its conditions, joined with `&`.
fn conditions(task: &Task) -> String {
    task.keywords.when.iter().map(|written| written.value.to_string()).collect::<Vec<_>>().join(" & ")
}

/// Its tags, joined with commas.
fn tags(task: &Task) -> String {
    task.keywords.tags.join(",")
}
