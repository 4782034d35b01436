//! `tempfile`: a new temporary file or directory on the host, with a unique name.

use rand::RngExt as _;
use rand::distr::Alphanumeric;
use serde::Deserialize;

use super::{Changes, Controller, Error, Module, Outcome, Plan, file_attributes};
use crate::remote::{Command, Links, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tempfile {
    state: State,
    path: Option<String>,
    prefix: String,
    suffix: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    File,
    Directory,
}

/// 1 file or directory, 2 where (empty: the usual place), 3 name. `set -C` refuses a file that is there already.
const SCRIPT: &str = r#"
path=${2:-${TMPDIR:-/tmp}}/$3
umask 077
if [ "$1" = file ]; then set -C; : >"$path"; else mkdir -- "$path"; fi && printf %s "$path"
"#;

impl Module for Tempfile {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "tempfile",
        collection: "ansible.builtin",
        summary: "Create a temporary file or directory",
        arguments: &[
            Argument::new("state", ArgumentKind::Str, "What to create").default("file").choices(&["file", "directory"]),
            Argument::new("path", ArgumentKind::Path, "The parent directory (default: the host's usual one)"),
            Argument::new("prefix", ArgumentKind::Str, "The beginning of the name").default("ansible."),
            Argument::new("suffix", ArgumentKind::Str, "The end of the name").default(""),
        ],
        free_form: None,
        example: r#"
- name: Create a directory for the download
  tempfile:
    state: directory
    suffix: .etcd
  register: download

- name: Remove the directory
  file:
    path: "{{ download.path }}"
    state: absent
"#,
        returns: &[Return::new("path", "The new file or directory")],
    };
    type Change = String;

    async fn plan(&self, probe: &Probe, _: &Controller<'_>) -> Result<Plan<String>, Error> {
        for (name, value) in [("prefix", &self.prefix), ("suffix", &self.suffix)] {
            if value.contains('/') {
                return Err(Error::failed(format!("tempfile: {name} {value:?} must not have a slash in it")));
            }
        }
        let directory = match &self.path {
            Some(path) => probe.expand_on_host(path).await?,
            None => String::new(),
        };
        Ok(Plan::NotInCheckMode(Outcome::default(), directory))
    }

    async fn apply(&self, directory: String, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let random: String = rand::rng().sample_iter(Alphanumeric).take(8).map(char::from).collect();
        let name = format!("{}{}{}", self.prefix, random.to_ascii_lowercase(), self.suffix);
        let state = if self.state == State::File { "file" } else { "directory" };
        let output = remote.run(&Command::program(["sh", "-c", SCRIPT, "sh", state, &directory, &name])).await?;
        if output.code != 0 {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::failed(format!("cannot create a temporary {state}: {reason}")));
        }
        let path = String::from_utf8_lossy(&output.stdout).into_owned();
        let outcome = Outcome { changed: true, ..Outcome::default() }.with("path", path.as_str());
        Ok(match remote.stat(&path, Links::Keep).await? {
            Some(stat) => file_attributes::add_attributes(outcome, &stat),
            None => outcome,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::testing::{Bench, value};

    #[tokio::test]
    async fn each_run_makes_another_one_that_only_its_user_can_enter() {
        let bench = Bench::new().await;
        let mut paths = Vec::new();
        for (state, mode) in [("file", 0o600), ("file", 0o600), ("directory", 0o700)] {
            let task = format!("tempfile: {{path: HOST, state: {state}, prefix: 'a b.', suffix: .x}}");
            let done = bench.run(&task).await.unwrap();
            assert!(done.changed);
            let path = std::path::PathBuf::from(value(&done.outcome, "path"));
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode);
            assert!(path.file_name().unwrap().to_str().is_some_and(|n| n.starts_with("a b.") && n.ends_with(".x")));
            assert_eq!((value(&done.outcome, "state").as_str(), path.is_dir()), (state, mode == 0o700));
            paths.push(path);
        }
        paths.dedup();
        assert_eq!(paths.len(), 3);
    }

    #[tokio::test]
    async fn check_mode_makes_none_and_what_cannot_be_made_is_said() {
        let bench = Bench::new().await;
        assert!(bench.check("tempfile: {path: HOST}").await.unwrap().outcome.skipped);
        let message = bench.failure("tempfile: {path: HOST/none}").await;
        assert!(message.starts_with("cannot create a temporary file: "), "{message}");
        let message = bench.failure("tempfile: {prefix: a/b}").await;
        assert_eq!(message, "tempfile: prefix \"a/b\" must not have a slash in it");
    }
}
