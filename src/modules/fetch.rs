//! `fetch`: a file of the host to the controller.

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::file_digest::Digests;
use super::{Async, Changes, Controller, Error, Module, Outcome, Plan, host_path};
use crate::remote::{Digest, FileKind, Links, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fetch {
    src: String,
    dest: String,
    flat: bool,
    fail_on_missing: bool,
    validate_checksum: bool,
}

pub(super) struct FetchChange {
    src: String,
    dest: PathBuf,
    checksum: String,
}

impl Module for Fetch {
    const CHANGES: Changes = Changes::Files;
    const ASYNC: Async = Async::Never;
    const PATH_IS_ON_HOST: bool = false;
    const DOC: Doc = Doc {
        name: "fetch",
        collection: "ansible.builtin",
        summary: "Copy a file of the host to the controller",
        arguments: &[
            Argument::new("src", ArgumentKind::Path, "The file on the host").required(),
            Argument::new("dest", ArgumentKind::Path, "Directory on the controller; the file goes to dest/HOST/src")
                .required(),
            Argument::new(
                "flat",
                ArgumentKind::Bool,
                "Whether dest is the file itself, or its directory if it ends with /",
            )
            .default("false"),
            Argument::new("fail_on_missing", ArgumentKind::Bool, "Whether a missing file is a failure").default("true"),
            Argument::new("validate_checksum", ArgumentKind::Bool, "Whether to compare checksums after copying")
                .default("true"),
        ],
        free_form: None,
        example: r#"
- name: Fetch os-release to collected/HOST/etc/os-release
  fetch:
    src: /etc/os-release
    dest: collected

- name: Fetch the kubeconfig to one file
  fetch:
    src: /etc/kubernetes/admin.conf
    dest: "{{ playbook_dir }}/"
    flat: true
"#,
        returns: &[
            Return::new("dest", "The path of the file on the controller"),
            Return::new("file", "The file on the host, when nothing changed"),
            Return::new("checksum", "SHA-1 of the file"),
            Return::new("remote_checksum", "SHA-1 of the file on the host"),
            Return::new("md5sum", "MD5 of the file"),
        ],
    };
    type Change = FetchChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<FetchChange>, Error> {
        let src = probe.expand_on_host(&self.src).await?;
        let (stat, checksum) = match probe.stat_and_digest(&src, Links::Follow, Digest::Sha1).await? {
            Some(found) => found,
            None => return self.missing(&src, "the remote file does not exist"),
        };
        if stat.kind == FileKind::Directory {
            return self.missing(&src, "the remote file is a directory, fetch works on files");
        }
        let Some(checksum) = checksum else {
            return self.missing(&src, "the remote file is not a readable file");
        };
        let dest = self.destination(&src, here)?;
        let old = match dest.is_file() {
            true => Some(here.caches.digests.of_file(&dest).await?),
            false => None,
        };
        if let Some(old) = old.filter(|old| old.sha1 == checksum) {
            return Ok(Plan::Unchanged(outcome(&dest, &old).with("file", src)));
        }
        let planned = Outcome::default()
            .with("dest", dest.display().to_string())
            .with("checksum", checksum.as_str())
            .with("remote_checksum", checksum.as_str());
        Ok(Plan::Change { diff: Vec::new(), outcome: planned, change: FetchChange { src, dest, checksum } })
    }

    async fn apply(&self, change: FetchChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let FetchChange { src, dest, checksum } = change;
        if let Some(parent) = dest.parent() {
            let made = tokio::fs::create_dir_all(parent).await;
            made.map_err(|error| {
                Error::failed(format!("cannot create {} on the controller: {error}", parent.display()))
            })?;
        }
        remote.download(&src, &dest).await?;
        let new = here.caches.digests.of_file(&dest).await?;
        if self.validate_checksum && new.sha1 != checksum {
            return Err(Error::Failed {
                message: format!("{src} has the checksum {checksum}, its copy {}", new.sha1),
                hint: Some("it may have changed while it was copied".to_owned()),
            });
        }
        Ok(outcome(&dest, &new).with("remote_checksum", checksum).with("remote_md5sum", ()))
    }
}

impl Fetch {
    fn missing(&self, src: &str, what: &str) -> Result<Plan<FetchChange>, Error> {
        if self.fail_on_missing {
            return Err(Error::failed(format!("cannot fetch {src}: {what}")));
        }
        let message = format!("{what}, not transferring, ignored");
        Ok(Plan::Unchanged(Outcome::default().message(message).with("file", src)))
    }

    /// The path of the file on the controller.
    fn destination(&self, src: &str, here: &Controller<'_>) -> Result<PathBuf, Error> {
        let dest = here.scope.base.join(here.scope.surroundings.expand_home(&self.dest));
        if self.flat {
            let dest = match self.dest.ends_with('/') {
                true => dest.join(host_path::base_name(src)),
                false => dest,
            };
            if dest.is_dir() {
                return Err(Error::Failed {
                    message: format!("cannot write {}: it is a directory", dest.display()),
                    hint: Some("end dest with a slash to fetch into it".to_owned()),
                });
            }
            return Ok(normal(&dest));
        }
        let name = here.scope.get("inventory_hostname").map_or_else(|| "localhost".to_owned(), ToString::to_string);
        let directory = named_directory(&dest, &name)?;
        let path = normal(&directory.join(src.trim_start_matches('/')));
        if !path.starts_with(&directory) {
            return Err(Error::failed(format!("fetching {src} would write outside {}", directory.display())));
        }
        Ok(path)
    }
}

/// The directory of a host, whose name may be a text of another host (`add_host`).
fn named_directory(dest: &Path, name: &str) -> Result<PathBuf, Error> {
    match name.contains('/') || name == ".." {
        true => Err(Error::failed(format!("cannot fetch into a directory with the name of the host, {name:?}"))),
        false => Ok(normal(&dest.join(name))),
    }
}

fn outcome(dest: &Path, digests: &Digests) -> Outcome {
    Outcome::default()
        .with("dest", dest.display().to_string())
        .with("checksum", digests.sha1.as_str())
        .with("md5sum", digests.md5.as_str())
}

/// The path without `.` and `..`, as text: links are not looked at.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            component => normal.push(component),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};

    async fn bench() -> Bench {
        let mut bench = Bench::new().await;
        bench.vars("inventory_hostname: h1");
        bench
    }

    #[tokio::test]
    async fn a_file_goes_below_the_name_of_its_host() {
        let bench = bench().await;
        let src = bench.on_host("a b\nc", "abc");
        let task = r#"fetch: {src: "HOST/a b\nc", dest: collected}"#;
        assert!(bench.check(task).await.unwrap().changed);
        let done = bench.run_twice(task).await;
        let there = bench.here("collected/h1").join(src.strip_prefix("/").unwrap());
        assert_eq!(std::fs::read_to_string(&there).unwrap(), "abc");
        assert_eq!(value(&done.outcome, "dest"), there.to_str().unwrap());
        assert_eq!(value(&done.outcome, "checksum"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert!(!done.outcome.values.contains_key("owner"), "dest is on the controller");
        std::fs::write(&src, "abcd").unwrap();
        assert!(bench.run_twice(task).await.changed);
    }

    #[tokio::test]
    async fn flat_goes_to_the_given_path() {
        let bench = bench().await;
        bench.on_host("x", "abc");
        bench.run_twice("fetch: {src: HOST/x, dest: HERE/deep/down/, flat: true}").await;
        bench.run_twice("fetch: {src: HOST/x, dest: y, flat: true}").await;
        assert!(bench.here("deep/down/x").is_file() && bench.here("y").is_file());
        let message = bench.failure("fetch: {src: HOST/x, dest: HERE/deep, flat: true}").await;
        assert!(message.ends_with("it is a directory"), "{message}");
    }

    #[tokio::test]
    async fn a_missing_file_fails_unless_it_may_be_missing() {
        let bench = bench().await;
        let message = bench.failure("fetch: {src: HOST/none, dest: d}").await;
        assert!(message.ends_with("the remote file does not exist"), "{message}");
        let done = bench.run("fetch: {src: HOST/none, dest: d, fail_on_missing: false}").await.unwrap();
        assert!(!done.changed);
        assert_eq!(done.outcome.message.as_deref(), Some("the remote file does not exist, not transferring, ignored"));
        let message = bench.failure("fetch: {src: HOST, dest: d}").await;
        assert!(message.contains("is a directory"), "{message}");
    }

    #[tokio::test]
    async fn nothing_is_written_outside_of_the_destination() {
        let bench = bench().await;
        bench.on_host("x", "abc");
        let message = bench.failure("fetch: {src: /../../../HOST/x, dest: d}").await;
        assert!(message.contains("outside"), "{message}");
        for name in ["../out", "/out", ".."] {
            assert!(super::named_directory(std::path::Path::new("/d"), name).is_err(), "{name}");
        }
        assert_eq!(super::named_directory(std::path::Path::new("/d"), "h1").unwrap(), std::path::Path::new("/d/h1"));
    }
}
