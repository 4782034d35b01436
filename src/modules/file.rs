//! `file`: what a path is (file, directory, link or nothing), who owns it and when it changed.

mod links;
mod steps;
#[cfg(test)]
mod tests;
mod times;

use serde::Deserialize;

use super::file_attributes::{self, DesiredAttributes, Properties, is_empty};
use super::host_tree::Tree;
use super::{Changes, Controller, Error, Module, Outcome, Plan, file_arguments, file_write, host_links, host_path};
use crate::remote::{FileKind, Links, Probe, Remote, Stat};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use steps::{FileStep, set_on_many};
use times::Times;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    path: String,
    state: Option<State>,
    src: Option<String>,
    recurse: bool,
    force: bool,
    follow: bool,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
    access_time: Option<String>,
    access_time_format: String,
    modification_time: Option<String>,
    modification_time_format: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Absent,
    Directory,
    File,
    Hard,
    Link,
    Touch,
}

/// The steps, and what is returned when they are done.
pub(super) struct FileChange {
    steps: Vec<FileStep>,
    /// What is described afterwards.
    path: String,
    outcome: Outcome,
}

/// What a path is to become, as far as it is planned.
struct FilePlan<'a> {
    file: &'a File,
    probe: &'a Probe,
    path: String,
    there: Option<Stat>,
    wanted: DesiredAttributes,
    times: Times,
    steps: Vec<FileStep>,
    properties: Properties,
    outcome: Outcome,
}

impl Module for File {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "file",
        collection: "ansible.builtin",
        summary: "Create, remove or change a file, directory or link, its attributes and times",
        arguments: &[
            Argument::new("path", ArgumentKind::Path, "The path on the host").required().alias(&["dest", "name"]),
            Argument::new("state", ArgumentKind::Str, "The wanted state (default: the current one, or file)")
                .choices(&["absent", "directory", "file", "hard", "link", "touch"]),
            Argument::new("src", ArgumentKind::Path, "The target of a link"),
            Argument::new("recurse", ArgumentKind::Bool, "Whether to set the attributes of everything in a directory")
                .default("false"),
            Argument::new("force", ArgumentKind::Bool, "Whether a link may replace a file or point to a missing path")
                .default("false"),
            Argument::new("follow", ArgumentKind::Bool, "Whether to follow a symbolic link at path").default("true"),
            file_arguments::OWNER,
            file_arguments::GROUP,
            file_arguments::MODE,
            file_arguments::ATTRIBUTES,
            file_arguments::SEUSER,
            file_arguments::SEROLE,
            file_arguments::SETYPE,
            file_arguments::SELEVEL,
            file_arguments::UNSAFE_WRITES,
            Argument::new("access_time", ArgumentKind::Str, "Preserve, now, or a time in access_time_format"),
            Argument::new("access_time_format", ArgumentKind::Str, "Form of access_time").default(times::FORMAT),
            Argument::new(
                "modification_time",
                ArgumentKind::Str,
                "Preserve, now, or a time in modification_time_format",
            ),
            Argument::new("modification_time_format", ArgumentKind::Str, "Form of modification_time")
                .default(times::FORMAT),
        ],
        free_form: None,
        example: r#"
- name: Create a directory and its parents
  file:
    path: /var/lib/etcd/data
    state: directory
    owner: etcd
    group: etcd
    mode: "0700"

- name: Create a symbolic link
  file:
    src: /opt/etcd-v3.6.0/etcd
    path: /usr/local/bin/etcd
    state: link

- name: Make the files private
  file:
    path: /etc/etcd/pki
    mode: u=rwX,go=
    recurse: true
    state: directory

- name: Remove the download
  file: {path: /tmp/etcd-download, state: absent}
"#,
        returns: &[
            Return::new("path", "The path (file, directory, absent)"),
            Return::new("dest", "The path (link, hard, touch)"),
            Return::new("src", "The target of a link"),
            Return::new("state", "The current state"),
            file_arguments::returns::MODE,
            file_arguments::returns::OWNER,
            file_arguments::returns::GROUP,
            file_arguments::returns::UID,
            file_arguments::returns::GID,
            file_arguments::returns::SIZE,
        ],
    };
    type Change = FileChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<FileChange>, Error> {
        let mut path = clean(&probe.expand_on_host(&self.path).await?);
        let mut there = probe.stat(&path, Links::Keep).await?;
        if let (Some(src), true) = (&self.src, self.state == Some(State::Hard))
            && is_directory(probe, &path, there.as_ref()).await?
        {
            path = host_path::join_path(&path, host_path::base_name(src));
            there = probe.stat(&path, Links::Keep).await?;
        }
        let state = self.state(there.as_ref());
        self.check_arguments(state)?;
        let touch = state == State::Touch;
        let mut work = FilePlan {
            file: self,
            probe,
            wanted: DesiredAttributes::load_wanted(
                probe,
                self.owner.as_deref(),
                self.group.as_deref(),
                self.mode.as_deref(),
            )
            .await?,
            times: self.times(probe, touch).await?,
            steps: Vec::new(),
            properties: Properties::new(&path),
            outcome: Outcome::default(),
            path,
            there,
        };
        match state {
            State::Absent => work.absent(),
            State::Directory => work.directory().await?,
            State::File => work.file().await?,
            State::Touch => work.touch(here).await?,
            State::Link => work.link(here).await?,
            State::Hard => work.hard().await?,
        }
        work.finish(here).await
    }

    async fn apply(&self, change: FileChange, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        for step in change.steps {
            step.apply_step(remote).await?;
        }
        Ok(match remote.stat(&change.path, Links::Keep).await? {
            Some(stat) => file_attributes::add_attributes(change.outcome, &stat),
            None => change.outcome.with("state", "absent"),
        })
    }
}

impl File {
    /// The requested state, or the one that fits the existing file.
    fn state(&self, there: Option<&Stat>) -> State {
        self.state.unwrap_or(match file_attributes::state(there) {
            "link" => State::Link,
            "directory" => State::Directory,
            "hard" => State::Hard,
            "absent" if self.recurse => State::Directory,
            _ => State::File,
        })
    }

    fn check_arguments(&self, state: State) -> Result<(), Error> {
        if self.recurse && state != State::Directory {
            return Err(Error::failed("file: recurse needs state: directory"));
        }
        if self.src.is_some() && !matches!(state, State::Link | State::Hard) {
            return Err(Error::failed("file: src needs state: link or state: hard"));
        }
        Ok(())
    }

    async fn times(&self, probe: &Probe, touch: bool) -> Result<Times, Error> {
        let access = (self.access_time.as_deref(), self.access_time_format.as_str());
        let modification = (self.modification_time.as_deref(), self.modification_time_format.as_str());
        Times::load_times(probe, access, modification, touch).await
    }
}

impl FilePlan<'_> {
    async fn finish(self, here: &Controller<'_>) -> Result<Plan<FileChange>, Error> {
        let FilePlan { steps, path, there, outcome, properties, .. } = self;
        if steps.is_empty() {
            let outcome = match &there {
                Some(stat) => file_attributes::add_attributes(outcome, stat),
                None => outcome.with("state", "absent"),
            };
            return Ok(Plan::Unchanged(outcome));
        }
        let diff = if here.diff { vec![properties.properties_diff(&path)] } else { Vec::new() };
        Ok(Plan::Change { diff, outcome: outcome.clone(), change: FileChange { steps, path, outcome } })
    }

    fn returns(&mut self, name: &str, value: &str) {
        self.outcome = std::mem::take(&mut self.outcome).with(name, value);
    }

    fn becomes(&mut self, state: &str) {
        self.properties.change("state", file_attributes::state(self.there.as_ref()), state);
    }

    fn absent(&mut self) {
        self.returns("path", &self.path.clone());
        if self.there.is_some() {
            self.becomes("absent");
            self.returns("state", "absent");
            self.steps.push(FileStep::Remove(self.path.clone()));
        }
    }

    /// Continues with the target of a symbolic link, if links are followed.
    async fn follow(&mut self) -> Result<(), Error> {
        if self.file.follow && self.there.as_ref().is_some_and(|stat| stat.kind == FileKind::Link) {
            self.path = host_links::real_path(self.probe, &self.path).await?;
            self.there = self.probe.stat(&self.path, Links::Keep).await?;
            self.properties = Properties::new(&self.path);
        }
        Ok(())
    }

    async fn file(&mut self) -> Result<(), Error> {
        self.follow().await?;
        let path = self.path.clone();
        self.returns("path", &path);
        match file_attributes::state(self.there.as_ref()) {
            "file" | "hard" => self.attributes_and_times(),
            "absent" => {
                return Err(Error::Failed {
                    message: format!("{path} does not exist"),
                    hint: Some(
                        "state: touch creates an empty file; the copy module creates one with content".to_owned(),
                    ),
                });
            }
            state => return Err(Error::failed(format!("{path} is a {state}, not a file"))),
        }
        Ok(())
    }

    async fn touch(&mut self, here: &Controller<'_>) -> Result<(), Error> {
        self.follow().await?;
        let path = self.path.clone();
        self.returns("dest", &path);
        if self.there.is_some() {
            self.attributes_and_times();
            return Ok(());
        }
        let missing = file_write::missing_directories(self.probe, host_path::parent(&path)).await?;
        if let (false, Some(directory)) = (here.check, missing.last()) {
            return Err(Error::failed(format!("cannot create {path}: the directory {directory} does not exist")));
        }
        self.becomes("touch");
        self.steps.push(FileStep::MakeFile(path.clone(), self.wanted.for_new(FileKind::File)));
        self.steps.extend(self.times.steps(&path, None));
        Ok(())
    }

    async fn directory(&mut self) -> Result<(), Error> {
        self.follow().await?;
        let path = self.path.clone();
        self.returns("path", &path);
        match file_attributes::state(self.there.as_ref()) {
            "absent" => {
                self.becomes("directory");
                let attributes = self.wanted.for_new(FileKind::Directory);
                for missing in file_write::missing_directories(self.probe, &path).await? {
                    self.steps.push(FileStep::MakeDirectory(missing, attributes.clone()));
                }
                self.steps.extend(self.times.steps(&path, None));
            }
            "directory" => {
                self.attributes_and_times();
                if self.file.recurse {
                    self.recurse().await?;
                }
            }
            state => return Err(Error::failed(format!("{path} already exists as a {state}"))),
        }
        Ok(())
    }

    /// The attributes and times of the existing file.
    fn attributes_and_times(&mut self) {
        let Some(stat) = &self.there else { return };
        let lacking = self.wanted.lacking(stat);
        if !is_empty(&lacking) {
            self.properties.attributes(stat, &lacking);
            let links = if stat.kind == FileKind::Link { Links::Keep } else { Links::Follow };
            self.steps.push(FileStep::SetAttributes(vec![self.path.clone()], lacking, links));
        }
        let steps = self.times.steps(&self.path, Some(stat));
        if !steps.is_empty() {
            self.times.add_times(&mut self.properties, stat);
            self.steps.extend(steps);
        }
    }

    /// The attributes and times of all that is in the directory.
    async fn recurse(&mut self) -> Result<(), Error> {
        let tree = Tree::read_host_tree(self.probe, &self.path, Links::Keep).await?;
        let mut attributes = Vec::new();
        let mut times = Vec::new();
        for (relative, stat) in tree.sorted() {
            let path = host_path::join_path(&self.path, &relative);
            let (stat, links) = match stat.kind {
                FileKind::Link if self.file.follow => match self.probe.stat(&path, Links::Follow).await? {
                    Some(target) => {
                        host_links::real_path(self.probe, &path).await?;
                        (target, Links::Follow)
                    }
                    None => continue,
                },
                FileKind::Link => (stat, Links::Keep),
                _ => (stat, Links::Follow),
            };
            times.extend(self.times.steps(&path, Some(&stat)));
            attributes.push((path, self.wanted.lacking(&stat), links));
        }
        let steps = set_on_many(attributes);
        if !steps.is_empty() || !times.is_empty() {
            let count = steps.iter().map(FileStep::count).sum::<usize>().max(times.len());
            self.properties.change("below", "as they are", format!("{count} paths get their attributes"));
        }
        self.steps.extend(steps);
        self.steps.extend(times);
        Ok(())
    }
}

/// A path without slashes at its end.
fn clean(path: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() { path.chars().take(1).collect() } else { trimmed.to_owned() }
}

async fn is_directory(probe: &Probe, path: &str, there: Option<&Stat>) -> Result<bool, Error> {
    let stat = match there.map(|stat| stat.kind) {
        Some(FileKind::Link) => probe.stat(path, Links::Follow).await?,
        kind => return Ok(kind == Some(FileKind::Directory)),
    };
    Ok(stat.is_some_and(|stat| stat.kind == FileKind::Directory))
}
