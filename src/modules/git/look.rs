//! Looking: what is at the destination, what the repository has under a version's name, whether it is signed.

use super::Git;
use super::tool::GitCommand;
use crate::modules::{Error, host_path};
use crate::remote::{FileKind, Links, Probe};

/// The working tree that is there.
pub(crate) struct Local {
    /// The commit; None in a repository without any.
    pub head: Option<String>,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// Files that are tracked differ from the commit.
    pub modified: bool,
    pub url: String,
}

/// What a version means in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RevisionKind {
    Branch {
        name: String,
        commit: String,
    },
    Tag {
        commit: String,
    },
    /// Only the name of a commit, or what else git may understand.
    Commit(String),
}

impl RevisionKind {
    pub(crate) fn commit(&self) -> &str {
        match self {
            RevisionKind::Branch { commit, .. } | RevisionKind::Tag { commit } | RevisionKind::Commit(commit) => commit,
        }
    }
}

/// Where the repository itself is; None if there is none.
pub(super) async fn git_dir(probe: &Probe, dest: &str, bare: bool) -> Result<Option<String>, Error> {
    let mut path = if bare { dest.to_owned() } else { host_path::join_path(dest, ".git") };
    match probe.stat(&path, Links::Follow).await? {
        None => return Ok(None),
        Some(stat) if stat.kind == FileKind::File => {
            let text = probe.read_file(&path).await?.unwrap_or_default();
            let text = String::from_utf8_lossy(&text).trim_end().to_owned();
            let wrong = || Error::failed(format!("{path} does not point to a repository"));
            path = host_path::join_path(dest, text.strip_prefix("gitdir: ").ok_or_else(wrong)?);
        }
        Some(_) => {}
    }
    let config = probe.stat(&host_path::join_path(&path, "config"), Links::Follow).await?;
    Ok(config.map(|_| path))
}

impl Git {
    pub(super) async fn local(&self, probe: &Probe, tool: &GitCommand, dest: &str) -> Result<Local, Error> {
        let head = tool.git_word(probe, dest, &["rev-parse", "-q", "--verify", "HEAD"]).await?;
        let branch = tool.git_word(probe, dest, &["symbolic-ref", "-q", "--short", "HEAD"]).await?;
        let modified = match self.bare {
            true => false,
            false => {
                let status = tool.git_output(probe, Some(dest), &["status", "--porcelain"]).await?;
                status.lines().any(|line| !line.starts_with("??"))
            }
        };
        let url = tool.git_word(probe, dest, &["ls-remote", "--get-url", &self.remote]).await?.unwrap_or_default();
        Ok(Local { head, branch, modified, url })
    }

    /// Asks the repository what the version means. `local`: the branch and the directory of a working tree.
    pub(super) async fn meaning(
        &self,
        probe: &Probe,
        tool: &GitCommand,
        repo: &str,
        local: Option<(&str, Option<&str>)>,
    ) -> Result<RevisionKind, Error> {
        let checked_out = local.and_then(|(_, branch)| branch).filter(|_| self.version == "HEAD");
        let version = checked_out.unwrap_or(&self.version);
        let (branch, tag) = (format!("refs/heads/{version}"), format!("refs/tags/{version}"));
        let peeled = format!("{tag}^{{}}");
        let arguments = ["ls-remote", "--symref", "--", repo, "HEAD", &branch, &tag, &peeled];
        let refs = tool.git_output(probe, None, &arguments).await?;
        if let Some(meaning) = named(&refs, version) {
            return Ok(meaning);
        }
        if self.version == "HEAD" {
            let repo = tool.without_secret(repo);
            return Err(Error::failed(format!("could not determine the remote revision for {version}: {repo}")));
        }
        // The name of a commit: the working tree may know more of it.
        let known = match local {
            Some((dest, _)) => {
                let commit = format!("{version}^{{commit}}");
                tool.git_word(probe, dest, &["rev-parse", "-q", "--verify", "--end-of-options", &commit]).await?
            }
            None => None,
        };
        Ok(RevisionKind::Commit(known.unwrap_or_else(|| version.to_owned())))
    }

    /// Whether the submodules are not what they are to be.
    pub(super) async fn submodules_differ(&self, probe: &Probe, tool: &GitCommand, dest: &str) -> Result<bool, Error> {
        if !self.recursive
            || self.bare
            || probe.stat(&host_path::join_path(dest, ".gitmodules"), Links::Follow).await?.is_none()
        {
            return Ok(false);
        }
        let status = tool.git_output(probe, Some(dest), &["submodule", "status", "--recursive"]).await?;
        if !self.track_submodules {
            return Ok(status.lines().any(|line| !line.starts_with(' ')));
        }
        if status.lines().any(|line| line.starts_with(['-', 'U'])) {
            return Ok(true);
        }
        // What each has, and what its branch has over there.
        let each = r#"b=$(git config -f "$toplevel/.gitmodules" "submodule.$name.branch")
            if [ "$b" = . ]; then b=$(git -C "$toplevel" symbolic-ref -q --short HEAD); fi
            if [ "$b" ]; then b=refs/heads/$b; fi
            printf '%s %s\n' "$(git rev-parse HEAD)" "$(git ls-remote origin "${b:-HEAD}" | cut -f1)""#;
        let pairs = tool.git_output(probe, Some(dest), &["submodule", "--quiet", "foreach", each]).await?;
        Ok(pairs.lines().filter_map(|line| line.split_once(' ')).any(|(here, there)| here != there))
    }

    /// The commit that the version is in the repository at `dest`, after a fetch: the server may have another one by now than when it
    /// was asked what the version means. By the full name, as a branch and a tag may have the same.
    pub(super) async fn fetched_commit(
        &self,
        probe: &Probe,
        tool: &GitCommand,
        dest: &str,
        meaning: &RevisionKind,
    ) -> Result<String, Error> {
        let name = match meaning {
            RevisionKind::Branch { name, .. } if self.bare => format!("refs/heads/{name}"),
            RevisionKind::Branch { name, .. } => format!("refs/remotes/{}/{name}", self.remote),
            RevisionKind::Tag { .. } => format!("refs/tags/{}", self.version),
            RevisionKind::Commit(name) => name.clone(),
        };
        let commit = format!("{name}^{{commit}}");
        let found = tool.git_word(probe, dest, &["rev-parse", "-q", "--verify", "--end-of-options", &commit]).await?;
        found.ok_or_else(|| {
            let repo = tool.without_secret(&self.repo);
            Error::failed(format!("could not find {} in what was fetched from {repo}", self.version))
        })
    }

    /// An error unless the commit that will be checked out is signed, by a key of the list if there is one; of a tag with a message,
    /// the tag.
    pub(super) async fn check_signature(
        &self,
        probe: &Probe,
        tool: &GitCommand,
        dest: &str,
        meaning: &RevisionKind,
        commit: &str,
    ) -> Result<(), Error> {
        if !self.verify_commit {
            return Ok(());
        }
        let tag = format!("refs/tags/{}", self.version);
        let is_of_tag = match meaning {
            RevisionKind::Tag { .. } => {
                let kind = tool.git_word(probe, dest, &["cat-file", "-t", &tag]).await?;
                // The tag that is there may be an older one.
                let of_tag =
                    tool.git_word(probe, dest, &["rev-parse", "-q", "--verify", &format!("{tag}^{{commit}}")]).await?;
                kind.as_deref() == Some("tag") && of_tag.as_deref() == Some(commit)
            }
            _ => false,
        };
        let (verb, name) = if is_of_tag { ("verify-tag", tag.as_str()) } else { ("verify-commit", commit) };
        let output = tool.ask(probe, Some(dest), &[verb, "--raw", name]).await?;
        let words = String::from_utf8_lossy(&output.stderr);
        if output.code != 0 {
            return Err(Error::failed(format!(
                "failed to verify the signature of {name}: git {verb} did not accept it"
            )));
        }
        match signer(&words) {
            _ if self.gpg_allowlist.is_empty() => Ok(()),
            Some(key) if self.gpg_allowlist.iter().any(|allowed| allowed.eq_ignore_ascii_case(key)) => Ok(()),
            key => Err(Error::failed(format!(
                "gpg_allowlist does not have the key {} that signed {name}",
                key.unwrap_or("(unknown)")
            ))),
        }
    }
}

/// The branch or tag of that name in what `ls-remote --symref` lists; for `HEAD` the branch that it refers to.
fn named(refs: &str, version: &str) -> Option<RevisionKind> {
    let find = |name: &str| {
        refs.lines()
            .filter_map(|line| line.split_once('\t'))
            .find_map(|(value, found)| (found == name && !value.starts_with("ref: ")).then(|| value.to_owned()))
    };
    if version == "HEAD" {
        let symbolic = refs.lines().find_map(|line| line.strip_prefix("ref: refs/heads/")?.strip_suffix("\tHEAD"));
        let commit = find("HEAD")?;
        return Some(match symbolic {
            Some(name) => RevisionKind::Branch { name: name.to_owned(), commit },
            None => RevisionKind::Commit(commit),
        });
    }
    if let Some(commit) = find(&format!("refs/heads/{version}")) {
        return Some(RevisionKind::Branch { name: version.to_owned(), commit });
    }
    let tag = format!("refs/tags/{version}");
    find(&format!("{tag}^{{}}")).or_else(|| find(&tag)).map(|commit| RevisionKind::Tag { commit })
}

/// The fingerprint of the primary key, from what gpg says.
fn signer(words: &str) -> Option<&str> {
    let mut fields = words.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let fields = fields.find(|fields| fields.get(1) == Some(&"VALIDSIG"))?;
    fields.get(11).or(fields.get(2)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_branch_before_it_is_a_tag() {
        let refs = "ref: refs/heads/main\tHEAD\naa\tHEAD\naa\trefs/heads/main\nbb\trefs/tags/v1\ncc\trefs/tags/v1^{}\ndd\trefs/tags/main\n";
        let branch = RevisionKind::Branch { name: "main".into(), commit: "aa".into() };
        assert_eq!(named(refs, "main").unwrap(), branch);
        assert_eq!(named(refs, "HEAD").unwrap(), branch);
        assert_eq!(named(refs, "v1").unwrap(), RevisionKind::Tag { commit: "cc".into() });
        assert_eq!(named(refs, "v2"), None);
        assert_eq!(named("", "HEAD"), None);
    }

    #[test]
    fn the_primary_key_counts_even_if_a_subkey_signed() {
        let line = "[GNUPG:] VALIDSIG SUB 2020-01-01 1 0 4 0 1 10 00 PRIMARY\n";
        assert_eq!(signer(&format!("[GNUPG:] NEWSIG\n{line}")), Some("PRIMARY"));
        assert_eq!(signer("[GNUPG:] VALIDSIG ONLY 2020-01-01\n"), Some("ONLY"));
        assert_eq!(signer("gpg: rubbish\n"), None);
    }
}
