//! Touching: cloning, fetching, switching, submodules, archives.

use super::Git;
use super::look::RevisionKind;
use super::tool::GitCommand;
use crate::modules::host_copy::HostCopy;
use crate::modules::{Error, host_path};
use crate::remote::{Attributes, Command, Digest, Links, Probe, Remote};

impl Git {
    pub(super) async fn make_clone(
        &self,
        remote: &Remote,
        tool: &GitCommand,
        repo: &str,
        dest: &str,
        meaning: &RevisionKind,
    ) -> Result<(), Error> {
        let depth = self.depth().map(|depth| depth.to_string());
        let separate = self.separate_git_dir.as_ref().map(|path| format!("--separate-git-dir={path}"));
        let by_name = !matches!(meaning, RevisionKind::Commit(_)) && self.version != "HEAD";
        let mut arguments = vec!["clone"];
        if self.bare {
            arguments.push("--bare")
        } else {
            arguments.extend(["--origin", &self.remote])
        }
        // The name of a commit cannot be cloned by: then all of it is.
        let shallow = depth.as_deref().filter(|_| self.version == "HEAD" || self.refspec.is_some() || by_name);
        arguments.extend(shallow.iter().flat_map(|depth| ["--depth", depth]));
        arguments.extend(self.reference.iter().flat_map(|path| ["--reference", path.as_str()]));
        if self.single_branch {
            arguments.push("--single-branch");
        }
        if by_name && (self.single_branch || shallow.is_some()) {
            arguments.extend(["--branch", &self.version]);
        }
        arguments.extend(separate.as_deref());
        if self.verify_commit && !self.bare {
            // Nothing is checked out before its signature is verified.
            arguments.push("--no-checkout");
        }
        arguments.extend(["--", repo, dest]);
        tool.run_git(remote, None, &arguments).await?;
        if self.bare && self.remote != "origin" {
            tool.run_git(remote, Some(dest), &["remote", "add", "--", &self.remote, repo]).await?;
        }
        if let Some(refspec) = &self.refspec {
            let depth = depth.iter().flat_map(|depth| ["--depth", depth.as_str()]);
            let arguments: Vec<&str> =
                ["fetch"].into_iter().chain(depth).chain(["--", &self.remote, refspec]).collect();
            tool.run_git(remote, Some(dest), &arguments).await?;
        }
        Ok(())
    }

    pub(super) async fn fetch(
        &self,
        remote: &Remote,
        tool: &GitCommand,
        dest: &str,
        meaning: &RevisionKind,
    ) -> Result<(), Error> {
        if let (RevisionKind::Branch { name, .. }, false) = (meaning, self.bare) {
            self.widen(remote, tool, dest, name).await?;
        }
        let mut refspecs: Vec<String> = Vec::new();
        let mut arguments = vec!["fetch"];
        let depth = self.depth().map(|depth| depth.to_string());
        let only = match (&self.refspec, meaning) {
            _ if depth.is_none() => None,
            (Some(refspec), _) => Some(refspec.clone()),
            (None, RevisionKind::Branch { name, .. }) if self.bare => {
                Some(format!("+refs/heads/{name}:refs/heads/{name}"))
            }
            (None, RevisionKind::Branch { name, .. }) => Some(self.tracking(name)),
            (None, RevisionKind::Tag { .. }) => Some(format!("+refs/tags/{0}:refs/tags/{0}", self.version)),
            (None, RevisionKind::Commit(_)) => None,
        };
        match (only, depth.as_deref()) {
            (Some(only), Some(depth)) => {
                arguments.extend(["--depth", depth]);
                refspecs.push(only);
            }
            _ => {
                match self.bare {
                    true => refspecs.extend(["heads", "tags"].map(|kind| format!("+refs/{kind}/*:refs/{kind}/*"))),
                    false => arguments.push("--tags"),
                }
                refspecs.extend(self.refspec.clone());
            }
        }
        if self.force {
            arguments.push("--force");
        }
        arguments.extend(["--", &self.remote]);
        arguments.extend(refspecs.iter().map(String::as_str));
        tool.run_git(remote, Some(dest), &arguments).await?;
        let RevisionKind::Branch { name, .. } = meaning else { return Ok(()) };
        // Where only a refspec was fetched.
        let tracked = format!("refs/remotes/{}/{name}", self.remote);
        if !self.bare && tool.git_word(remote, dest, &["rev-parse", "-q", "--verify", &tracked]).await?.is_none() {
            tool.run_git(remote, Some(dest), &["fetch", "--", &self.remote, &self.tracking(name)]).await?;
        }
        Ok(())
    }

    /// Makes a clone that knows of a single branch know of this one, too.
    async fn widen(&self, remote: &Remote, tool: &GitCommand, dest: &str, branch: &str) -> Result<(), Error> {
        let key = format!("remote.{}.fetch", self.remote);
        let known = tool.git_word(remote, dest, &["config", "--get-all", &key]).await?.unwrap_or_default();
        let one = format!("refs/heads/{branch}:");
        if known.contains("refs/heads/*:") || known.lines().any(|line| line.contains(&one)) {
            return Ok(());
        }
        tool.run_git(remote, Some(dest), &["remote", "set-branches", "--add", &self.remote, branch]).await
    }

    /// The refspec that keeps a branch of the repository as it is there.
    fn tracking(&self, branch: &str) -> String {
        format!("+refs/heads/{branch}:refs/remotes/{}/{branch}", self.remote)
    }

    /// Checks the commit out: of a branch, as the branch of that name.
    pub(super) async fn switch(
        &self,
        remote: &Remote,
        tool: &GitCommand,
        dest: &str,
        meaning: &RevisionKind,
        commit: &str,
    ) -> Result<(), Error> {
        let RevisionKind::Branch { name, .. } = meaning else {
            return tool.run_git(remote, Some(dest), &["checkout", "--force", "--detach", commit, "--"]).await;
        };
        let own = format!("refs/heads/{name}");
        let is_new = tool.git_word(remote, dest, &["rev-parse", "-q", "--verify", &own]).await?.is_none();
        tool.run_git(remote, Some(dest), &["checkout", "--force", "-B", name, commit, "--"]).await?;
        if is_new {
            let follows = [("remote", self.remote.as_str()), ("merge", own.as_str())];
            for (key, value) in follows {
                tool.run_git(remote, Some(dest), &["config", &format!("branch.{name}.{key}"), value]).await?;
            }
        }
        Ok(())
    }

    /// Brings the submodules to what they are to be; gives whether that was needed.
    pub(super) async fn update_submodules(
        &self,
        remote: &Remote,
        tool: &GitCommand,
        dest: &str,
    ) -> Result<bool, Error> {
        if !self.submodules_differ(remote, tool, dest).await? {
            return Ok(false);
        }
        tool.run_git(remote, Some(dest), &["submodule", "sync", "--recursive"]).await?;
        let mut arguments = vec!["submodule", "update", "--init", "--recursive"];
        if self.track_submodules {
            arguments.push("--remote");
        }
        if self.force {
            arguments.push("--force");
        }
        tool.run_git(remote, Some(dest), &arguments).await?;
        Ok(true)
    }

    /// The arguments for an archive, which goes to stdout.
    fn archive_arguments<'a>(&'a self, path: &str) -> Result<Vec<&'a str>, Error> {
        let format = [(".zip", "zip"), (".tar.gz", "tar.gz"), (".tgz", "tgz"), (".tar", "tar")];
        let format = format.iter().find(|(end, _)| path.ends_with(end)).ok_or_else(|| Error::Failed {
            message: format!("git: cannot create the archive {path}: unknown extension"),
            hint: Some("use .zip, .tar.gz, .tar or .tgz".to_owned()),
        })?;
        let prefix = self.archive_prefix.iter().flat_map(|prefix| ["--prefix", prefix.as_str()]);
        Ok(["archive", "--format", format.1].into_iter().chain(prefix).collect())
    }

    /// Whether the archive is not what git would make of the version.
    pub(super) async fn archive_differs(
        &self,
        probe: &Probe,
        tool: &GitCommand,
        dest: &str,
        version: &str,
    ) -> Result<bool, Error> {
        let Some(archive) = &self.archive else { return Ok(false) };
        let mut arguments = self.archive_arguments(archive)?;
        let Some(there) = probe.digest(archive, Digest::Sha1).await? else { return Ok(true) };
        arguments.push(version);
        let output = tool.ask(probe, Some(dest), &arguments).await?;
        Ok(output.code != 0 || crate::modules::file_digest::of_bytes(&output.stdout).sha1 != there)
    }

    /// Makes the archive, whole or not at all; gives whether it differs from what was there.
    pub(super) async fn make_archive(
        &self,
        remote: &Remote,
        tool: &GitCommand,
        dest: &str,
        version: &str,
    ) -> Result<bool, Error> {
        let Some(archive) = &self.archive else { return Ok(false) };
        let mut arguments = self.archive_arguments(archive)?;
        let new = host_path::join_path(&remote.temporary_directory().await?, "archive");
        arguments.extend(["--output", &new, version]);
        tool.run_git(remote, Some(dest), &arguments).await?;
        let made = remote.digest(&new, Digest::Sha1).await?;
        if remote.digest(archive, Digest::Sha1).await? == made {
            return Ok(false);
        }
        let there = remote.stat(archive, Links::Keep).await?;
        let copy = HostCopy {
            from: new.clone(),
            directory: host_path::parent(archive).to_owned(),
            to: archive.clone(),
            attributes: Attributes::default(),
            keep: there.as_ref().and_then(HostCopy::kept),
            back_up: false,
            validate: None,
        };
        copy.copy_file(remote).await?;
        remote.run(&Command::program(["rm", "-f", "--", &new])).await?;
        Ok(true)
    }

    /// Moves the repository of a working tree out of it.
    pub(super) async fn relocate(&self, remote: &Remote, tool: &GitCommand, dest: &str, to: &str) -> Result<(), Error> {
        if remote.stat(to, Links::Keep).await?.is_some() {
            return Err(Error::failed(format!("the path {to} of separate_git_dir already exists")));
        }
        tool.run_git(remote, None, &["init", "--quiet", "--separate-git-dir", to, "--", dest]).await
    }

    fn depth(&self) -> Option<u64> {
        self.depth.filter(|depth| *depth > 0)
    }
}
