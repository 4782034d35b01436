//! `apt_repository`: a source of packages as a line in a list.

use std::time::Duration;

use serde::Deserialize;

use super::Places;
use super::list::{AptSource, Files, SourceFile};
use crate::modules::file_mode::Mode;
use crate::modules::package::apt;
use crate::modules::{Changes, Controller, Diff, Error, Module, Outcome, Plan};
use crate::remote::{Attributes, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AptRepository {
    repo: String,
    state: State,
    mode: Option<String>,
    update_cache: bool,
    update_cache_retries: u32,
    update_cache_retry_max_delay: u64,
    filename: Option<String>,
    #[serde(rename = "install_python_apt")]
    _install_python_apt: bool,
    #[serde(rename = "validate_certs")]
    _validate_certs: bool,
    #[serde(rename = "codename")]
    _codename: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Present,
    Absent,
}

impl Module for AptRepository {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "apt_repository",
        collection: "ansible.builtin",
        summary: "Add or remove a line in apt's list of sources",
        arguments: &[
            Argument::new("repo", ArgumentKind::Str, "The source, as a line of sources.list; ppa: is not supported")
                .required(),
            Argument::new("state", ArgumentKind::Str, "Whether it should exist")
                .default("present")
                .choices(&["absent", "present"]),
            Argument::new("mode", ArgumentKind::Mode, "File mode of a new file (default 0644)"),
            Argument::new("update_cache", ArgumentKind::Bool, "Whether to update the package lists after a change")
                .alias(&["update-cache"])
                .default("true"),
            Argument::new("update_cache_retries", ArgumentKind::Int, "How many attempts to make").default("5"),
            Argument::new(
                "update_cache_retry_max_delay",
                ArgumentKind::Int,
                "The longest wait between two attempts, in seconds",
            )
            .default("12"),
            Argument::new(
                "filename",
                ArgumentKind::Str,
                "The file in sources.list.d, without .list (default: derived from the address)",
            ),
            Argument::new("install_python_apt", ArgumentKind::Bool, "Accepted for compatibility; no Python is needed")
                .default("true"),
            Argument::new("validate_certs", ArgumentKind::Bool, "Accepted for compatibility; used only with ppa:")
                .default("true"),
            Argument::new("codename", ArgumentKind::Str, "Accepted for compatibility; used only with ppa:"),
        ],
        free_form: None,
        example: "\
- name: Add our package repository
  apt_repository:
    repo: deb [trusted=yes] http://10.0.0.1:8000 ./
    filename: ours
",
        returns: &[
            Return::new("repo", "As given"),
            Return::new("sources_added", "Files that are new"),
            Return::new("sources_removed", "Files that are gone"),
        ],
    };
    type Change = Vec<SourceFile>;

    async fn plan(&self, probe: &Probe, _: &Controller<'_>) -> Result<Plan<Vec<SourceFile>>, Error> {
        let source = self.source()?;
        let places = Places::look(probe).await?;
        let mut files = Files::read_source_files(probe, &places).await?;
        match self.state {
            State::Present => files.add_source(&source, &self.path(&places, &source)),
            State::Absent => files.remove_source(&source),
        }
        let changed = files.changed();
        let outcome = self.outcome(&changed);
        if changed.is_empty() {
            return Ok(Plan::Unchanged(outcome));
        }
        Ok(Plan::Change { diff: changed.iter().map(diff).collect(), outcome, change: changed })
    }

    async fn apply(&self, files: Vec<SourceFile>, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let mode = match self.mode.as_deref().map(Mode::parse_mode) {
            Some(mode) => mode.apply_mode(0o666, false, 0),
            None => 0o644,
        };
        for file in &files {
            put(remote, &file.path, file.after().as_deref(), file.before.is_none().then_some(mode)).await?;
        }
        if self.update_cache
            && let Err(error) = self.fetch_lists(remote).await
        {
            // A source that cannot be used would stop every later use of apt.
            for file in &files {
                put(remote, &file.path, file.before.as_deref(), None).await?;
            }
            return Err(error);
        }
        Ok(self.outcome(&files))
    }
}

impl AptRepository {
    fn source(&self) -> Result<AptSource, Error> {
        if self.repo.starts_with("ppa:") {
            return Err(Error::Failed {
                message: format!("cannot look up {:?}: ppa: is not supported", self.repo),
                hint: Some("write the whole line: deb [signed-by=...] https://ppa.launchpadcontent.net/...".to_owned()),
            });
        }
        AptSource::parse_apt_line(&self.repo)
            .filter(|source| source.enabled)
            .ok_or_else(|| Error::failed(format!("invalid source {:?}: it must start with deb or deb-src", self.repo)))
    }

    fn path(&self, places: &Places, source: &AptSource) -> String {
        let name = match &self.filename {
            Some(name) => format!("{name}.list"),
            None => source.file_name(),
        };
        if name.contains('/') { name } else { format!("{}/{name}", places.parts) }
    }

    fn outcome(&self, changed: &[SourceFile]) -> Outcome {
        let paths = |chosen: fn(&&SourceFile) -> bool| -> Vec<String> {
            changed.iter().filter(chosen).map(|file| file.path.clone()).collect()
        };
        Outcome::default()
            .with("repo", self.repo.as_str())
            .with("state", if self.state == State::Present { "present" } else { "absent" })
            .with("sources_added", paths(|file| file.before.is_none()))
            .with("sources_removed", paths(|file| file.after().is_none()))
    }

    async fn fetch_lists(&self, remote: &Remote) -> Result<(), Error> {
        let patience = apt::Retries {
            times: self.update_cache_retries,
            longest: Duration::from_secs(self.update_cache_retry_max_delay),
        };
        apt::fetch_lists(remote, &patience).await.map(drop)
    }
}

fn diff(file: &SourceFile) -> Diff {
    let header = |there: bool| if there { file.path.clone() } else { "/dev/null".to_owned() };
    let after = file.after();
    Diff {
        before_header: header(file.before.is_some()),
        after_header: header(after.is_some()),
        before: file.before.clone().unwrap_or_default(),
        after: after.unwrap_or_default(),
    }
}

/// The file has this content, or is removed.
async fn put(remote: &Remote, path: &str, content: Option<&str>, mode: Option<u32>) -> Result<(), Error> {
    match content {
        Some(text) => remote.write(path, text.as_bytes(), &Attributes { mode, ..Attributes::default() }).await?,
        None => remote.remove(path).await?,
    }
    Ok(())
}
