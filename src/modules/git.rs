//! `git`: a working tree or a bare repository of a host, at the version that is wanted, by the host's own git.

mod look;
mod steps;
#[cfg(test)]
mod tests;
mod tool;

use serde::Deserialize;

use self::look::{Local, RevisionKind};
use self::tool::{GitCommand, Ssh};
use super::{Changes, Controller, Diff, Error, Module, Outcome, Plan, host_links};
use crate::remote::{Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Git {
    repo: String,
    dest: Option<String>,
    version: String,
    remote: String,
    refspec: Option<String>,
    reference: Option<String>,
    force: bool,
    depth: Option<u64>,
    clone: bool,
    update: bool,
    verify_commit: bool,
    gpg_allowlist: Vec<String>,
    accept_hostkey: bool,
    accept_newhostkey: bool,
    key_file: Option<String>,
    ssh_opts: Option<String>,
    executable: Option<String>,
    bare: bool,
    recursive: bool,
    single_branch: bool,
    track_submodules: bool,
    umask: Option<String>,
    archive: Option<String>,
    archive_prefix: Option<String>,
    separate_git_dir: Option<String>,
}

/// What is to be done.
pub(super) enum Operation {
    /// `clone: false`: only what the repository has was asked.
    Tell,
    Clone(RevisionKind),
    Update {
        local: Local,
        meaning: RevisionKind,
    },
    /// Only the archive, from the existing repository.
    Archive,
}

pub(super) struct GitChange {
    tool: GitCommand,
    repo: String,
    dest: String,
    operation: Operation,
    /// Where the repository is moved from, out of the working tree.
    relocate: Option<String>,
    outcome: Outcome,
}

impl Module for Git {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "git",
        collection: "ansible.builtin",
        summary: "Clone or update a git repository on a host",
        arguments: &[
            Argument::new("repo", ArgumentKind::Str, "The address of the repository, as seen from the host")
                .required()
                .alias(&["name"]),
            Argument::new("dest", ArgumentKind::Path, "The directory on the host; not needed with clone: false"),
            Argument::new("version", ArgumentKind::Str, "A branch, a tag, a commit, or HEAD").default("HEAD"),
            Argument::new("remote", ArgumentKind::Str, "The name of the remote in the clone").default("origin"),
            Argument::new(
                "refspec",
                ArgumentKind::Str,
                "An additional refspec to fetch, for versions that no branch or tag has",
            ),
            Argument::new("reference", ArgumentKind::Str, "A repository on the host to take objects from"),
            Argument::new("force", ArgumentKind::Bool, "Whether to discard changes of tracked files").default("false"),
            Argument::new("depth", ArgumentKind::Int, "How many commits of history to fetch"),
            Argument::new("clone", ArgumentKind::Bool, "Whether to clone if the directory does not exist")
                .default("true"),
            Argument::new("update", ArgumentKind::Bool, "Whether to fetch into an existing clone").default("true"),
            Argument::new(
                "verify_commit",
                ArgumentKind::Bool,
                "Whether the version must have a valid signature; submodules need none",
            )
            .default("false"),
            Argument::new(
                "gpg_allowlist",
                ArgumentKind::List(&ArgumentKind::Str),
                "Fingerprints of keys, one of which must have signed",
            )
            .default("[]")
            .alias(&["gpg_whitelist"]),
            Argument::new("accept_hostkey", ArgumentKind::Bool, "Whether ssh accepts any host key").default("false"),
            Argument::new("accept_newhostkey", ArgumentKind::Bool, "Whether ssh accepts the key of an unknown server")
                .default("false"),
            Argument::new("key_file", ArgumentKind::Path, "A private key on the host for ssh"),
            Argument::new("ssh_opts", ArgumentKind::Str, "More options for ssh"),
            Argument::new("executable", ArgumentKind::Path, "The git program"),
            Argument::new("bare", ArgumentKind::Bool, "Whether to clone without a working tree").default("false"),
            Argument::new("recursive", ArgumentKind::Bool, "Whether to clone submodules, too").default("true"),
            Argument::new("single_branch", ArgumentKind::Bool, "Whether to clone only the version's branch")
                .default("false"),
            Argument::new("track_submodules", ArgumentKind::Bool, "Whether submodules follow their own branches")
                .default("false"),
            Argument::new("umask", ArgumentKind::Str, "The umask for written files, octal and quoted"),
            Argument::new(
                "archive",
                ArgumentKind::Path,
                "An archive to create from the version: .zip, .tar.gz, .tar or .tgz",
            ),
            Argument::new("archive_prefix", ArgumentKind::Str, "The prefix of each path in the archive"),
            Argument::new(
                "separate_git_dir",
                ArgumentKind::Path,
                "The path of the repository, apart from the working tree",
            ),
        ],
        free_form: None,
        example: r#"
- name: Check out the release
  git:
    repo: https://git.example.org/tool.git
    dest: /opt/tool
    version: v1.4.2
    depth: 1

- name: Check out the main branch with a deploy key
  git:
    repo: git@git.example.org:ops/site.git
    dest: /srv/site
    version: main
    key_file: /root/.ssh/deploy
    accept_newhostkey: true
    force: true
"#,
        returns: &[
            Return::new("before", "The commit before, null if there was none"),
            Return::new("after", "The commit after"),
            Return::new("remote_url_changed", "Whether the clone had another address for the repository"),
            Return::new("submodules_changed", "Whether submodules were updated"),
            Return::new("git_dir_before", "The old path of the repository, if it was moved"),
            Return::new("git_dir_now", "The new path of the repository, if it was moved"),
        ],
    };
    type Change = GitChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<GitChange>, Error> {
        self.check_arguments()?;
        let tool = self.tool(probe).await?;
        let expanded = probe.expand_on_host(&self.repo).await?;
        let repo = if expanded.starts_with('/') { format!("file://{expanded}") } else { self.repo.clone() };
        if let Some(server) = tool::server_of(&repo) {
            probe.may_reach(server)?;
        }
        let dest = match &self.dest {
            Some(dest) => probe.expand_on_host(dest).await?.trim_end_matches('/').to_owned(),
            None => String::new(),
        };
        let git_dir = if dest.is_empty() {
            None
        } else {
            host_links::stat_target(probe, &dest).await?;
            look::git_dir(probe, &dest, self.bare).await?
        };
        let Some(git_dir) = git_dir else {
            return self.plan_new(probe, here, GitChange::new(tool, repo, dest)).await;
        };
        let mut change = GitChange::new(tool, repo, dest);
        if let Some(to) = self.separate_git_dir.as_ref().filter(|to| **to != git_dir) {
            change.outcome = change.outcome.with("git_dir_before", git_dir.as_str()).with("git_dir_now", to.as_str());
            change.relocate = Some(git_dir);
        }
        match self.update {
            true => self.plan_update(probe, here, change).await,
            false => self.plan_as_it_is(probe, change).await,
        }
    }

    async fn apply(&self, change: GitChange, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let GitChange { tool, repo, dest, operation, relocate, mut outcome } = change;
        if let (Some(_), Some(to)) = (&relocate, &self.separate_git_dir) {
            self.relocate(remote, &tool, &dest, to).await?;
        }
        let meaning = match operation {
            Operation::Tell => return Ok(outcome),
            Operation::Archive => {
                self.make_archive(remote, &tool, &dest, &self.version).await?;
                return Ok(outcome);
            }
            Operation::Clone(meaning) => {
                self.make_clone(remote, &tool, &repo, &dest, &meaning).await?;
                meaning
            }
            Operation::Update { local, meaning } => {
                if local.modified {
                    tool.run_git(remote, Some(&dest), &["reset", "--hard", "HEAD", "--"]).await?;
                }
                if local.url != repo {
                    tool.run_git(remote, Some(&dest), &["remote", "set-url", "--", &self.remote, &repo]).await?;
                }
                self.fetch(remote, &tool, &dest, &meaning).await?;
                meaning
            }
        };
        let commit = self.fetched_commit(remote, &tool, &dest, &meaning).await?;
        self.check_signature(remote, &tool, &dest, &meaning, &commit).await?;
        if !self.bare {
            self.switch(remote, &tool, &dest, &meaning, &commit).await?;
            if self.update_submodules(remote, &tool, &dest).await? {
                outcome = outcome.with("submodules_changed", true);
            }
        }
        self.make_archive(remote, &tool, &dest, &commit).await?;
        let after = tool.git_word(remote, &dest, &["rev-parse", "-q", "--verify", "HEAD"]).await?;
        Ok(outcome.with("after", after.map_or(Value::from(()), Value::from)))
    }
}

impl GitChange {
    fn new(tool: GitCommand, repo: String, dest: String) -> GitChange {
        let outcome = Outcome::default().with("before", ()).with("remote_url_changed", false);
        GitChange { tool, repo, dest, operation: Operation::Tell, relocate: None, outcome }
    }

    fn with(mut self, operation: Operation, before: Option<&str>, after: &str) -> GitChange {
        self.operation = operation;
        self.outcome = self.outcome.with("before", before.map_or(Value::from(()), Value::from)).with("after", after);
        self
    }

    fn plan(self, diff: Vec<Diff>) -> Plan<GitChange> {
        Plan::Change { diff, outcome: self.outcome.clone(), change: self }
    }
}

impl Git {
    fn check_arguments(&self) -> Result<(), Error> {
        let refuse = |words: &str| Err(Error::failed(format!("git: {words}")));
        if self.dest.is_none() && self.clone {
            return refuse("dest is required unless clone is false");
        }
        if self.separate_git_dir.is_some() && self.bare {
            return refuse("separate_git_dir and bare cannot both be given");
        }
        if self.accept_hostkey && self.accept_newhostkey {
            return refuse("accept_hostkey and accept_newhostkey cannot both be true");
        }
        if self.archive_prefix.is_some() && self.archive.is_none() {
            return refuse("archive_prefix needs archive");
        }
        if self.umask.as_ref().is_some_and(|umask| u32::from_str_radix(umask, 8).is_err()) {
            return refuse("umask must be an octal number in quotes");
        }
        // What begins with a dash would be an option of git.
        for (name, value) in [("version", &self.version), ("remote", &self.remote)] {
            if value.is_empty() || value.starts_with('-') || value.contains(char::is_whitespace) {
                return refuse(&format!("{name} must not be {value:?}"));
            }
        }
        Ok(())
    }

    async fn tool(&self, probe: &Probe) -> Result<GitCommand, Error> {
        let program = match &self.executable {
            Some(path) => Some(probe.expand_on_host(path).await?),
            None => probe.which("git").await?,
        };
        let program = program.ok_or_else(|| Error::Failed {
            message: "the host has no git".to_owned(),
            hint: Some("install it with an earlier task: package: {name: git}".to_owned()),
        })?;
        let ssh = Ssh {
            options: self.ssh_opts.as_deref(),
            key_file: self.key_file.as_deref(),
            accept_any: self.accept_hostkey,
            accept_new: self.accept_newhostkey,
        };
        Ok(GitCommand::new(program, &ssh, self.umask.as_deref(), &self.repo))
    }

    /// Nothing is there.
    async fn plan_new(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        change: GitChange,
    ) -> Result<Plan<GitChange>, Error> {
        let meaning = self.meaning(probe, &change.tool, &change.repo, None).await?;
        let after = meaning.commit().to_owned();
        if !self.clone {
            return Ok(change.with(Operation::Tell, None, &after).plan(Vec::new()));
        }
        if probe.list_directory(&change.dest).await?.is_some_and(|names| !names.is_empty()) {
            return Err(Error::failed(format!(
                "cannot clone to {}: the directory is not empty and not a git repository",
                change.dest
            )));
        }
        let diff = self.diff(here, &change.dest, None, &after);
        Ok(change.with(Operation::Clone(meaning), None, &after).plan(diff))
    }

    /// A clone that is not to be updated.
    async fn plan_as_it_is(&self, probe: &Probe, change: GitChange) -> Result<Plan<GitChange>, Error> {
        let head = change.tool.git_output(probe, Some(&change.dest), &["rev-parse", "--verify", "HEAD"]).await?;
        let archive = self.archive_differs(probe, &change.tool, &change.dest, &self.version).await?;
        let relocates = change.relocate.is_some();
        let operation = if archive { Operation::Archive } else { Operation::Tell };
        let change = change.with(operation, Some(&head), &head);
        Ok(if archive || relocates { change.plan(Vec::new()) } else { Plan::Unchanged(change.outcome) })
    }

    /// A clone that is to have what the repository has.
    async fn plan_update(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        mut change: GitChange,
    ) -> Result<Plan<GitChange>, Error> {
        let local = self.local(probe, &change.tool, &change.dest).await?;
        if local.modified && !self.force {
            let message = format!("Local modifications exist in the destination: {} (force=no).", change.dest);
            return Err(Error::Failed { message, hint: Some("force: true discards them".to_owned()) });
        }
        let at = (change.dest.as_str(), local.branch.as_deref());
        let meaning = self.meaning(probe, &change.tool, &change.repo, Some(at)).await?;
        let url_changed = local.url != change.repo;
        let is_there = local.head.as_deref() == Some(meaning.commit());
        let on_branch = match &meaning {
            RevisionKind::Branch { name, .. } => local.branch.as_ref() == Some(name),
            _ => true,
        };
        let settled = is_there && (on_branch || self.bare) && !local.modified && !url_changed;
        if settled {
            self.check_signature(probe, &change.tool, &change.dest, &meaning, meaning.commit()).await?;
        }
        let done = settled
            && change.relocate.is_none()
            && !self.submodules_differ(probe, &change.tool, &change.dest).await?
            && !self.archive_differs(probe, &change.tool, &change.dest, &self.version).await?;
        change.outcome = change.outcome.with("remote_url_changed", url_changed);
        if local.modified {
            let message = format!("Local modifications exist in the destination: {}", change.dest);
            change.outcome = change.outcome.message(message);
        }
        let (before, after) = (local.head.clone(), meaning.commit().to_owned());
        let diff = self.diff(here, &change.dest, before.as_deref(), &after);
        let change = change.with(Operation::Update { local, meaning }, before.as_deref(), &after);
        Ok(if done { Plan::Unchanged(change.outcome) } else { change.plan(diff) })
    }

    fn diff(&self, here: &Controller<'_>, dest: &str, before: Option<&str>, after: &str) -> Vec<Diff> {
        if !here.diff || before == Some(after) {
            return Vec::new();
        }
        let line = |commit: &str| format!("{commit}\n");
        vec![Diff {
            before_header: dest.to_owned(),
            after_header: dest.to_owned(),
            before: before.map(line).unwrap_or_default(),
            after: line(after),
        }]
    }
}
