//! `unarchive`: what is in an archive, unpacked on a host.

mod archive;
mod beside;
mod tar;
#[cfg(test)]
mod tests;

use serde::Deserialize;

use super::file_attributes::{self, DesiredAttributes, is_empty};
use super::{
    Async, Changes, Controller, Error, Module, Outcome, Plan, file_arguments, file_write, host_links, host_path,
    vault_file,
};
use crate::remote::{Attributes, FileKind, Links, Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use archive::{Archive, Format, Tool};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Unarchive {
    src: String,
    dest: String,
    remote_src: Option<bool>,
    copy: Option<bool>,
    creates: Option<String>,
    list_files: bool,
    keep_newer: bool,
    exclude: Vec<String>,
    include: Vec<String>,
    extra_opts: Vec<String>,
    decrypt: bool,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
}

pub(super) enum UnarchiveChange {
    /// An archive of the controller: only on the host, beside its tools, it can be compared with what is there.
    Local { path: std::path::PathBuf, format: Format, dest: String, wanted: DesiredAttributes },
    /// An archive of the host, compared already where its tool can.
    OnHost { archive: Archive, tool: Tool, wanted: DesiredAttributes, src: String },
    /// Unpacked already; only attributes are lacking.
    Attributes { lacking: Vec<(String, Attributes)>, outcome: Outcome },
}

impl Module for Unarchive {
    const CHANGES: Changes = Changes::Files;
    const ASYNC: Async = Async::Never;
    const DOC: Doc = Doc {
        name: "unarchive",
        collection: "ansible.builtin",
        summary: "Unpack an archive on a host, with the host's tar or unzip",
        arguments: &[
            Argument::new("src", ArgumentKind::Path, "The archive on the controller, or on the host with remote_src")
                .required(),
            Argument::new("dest", ArgumentKind::Path, "The directory on the host; it must exist").required(),
            Argument::new("remote_src", ArgumentKind::Bool, "Whether src is on the host (default false)"),
            Argument::new("copy", ArgumentKind::Bool, "The opposite of remote_src, from older playbooks"),
            Argument::new("creates", ArgumentKind::Path, "A path on the host; if it exists, the task is skipped"),
            Argument::new("list_files", ArgumentKind::Bool, "Whether to return the names of the files")
                .default("false"),
            Argument::new(
                "keep_newer",
                ArgumentKind::Bool,
                "Whether to keep files that are newer than those in the archive",
            )
            .default("false"),
            Argument::new("exclude", ArgumentKind::List(&ArgumentKind::Str), "Names and patterns to skip")
                .default("[]"),
            Argument::new(
                "include",
                ArgumentKind::List(&ArgumentKind::Str),
                "Names and patterns to unpack, and no others",
            )
            .default("[]"),
            Argument::new(
                "extra_opts",
                ArgumentKind::List(&ArgumentKind::Str),
                "More options for tar or unzip, one on each line",
            )
            .default("[]"),
            file_arguments::DECRYPT,
            Argument::new("owner", ArgumentKind::Str, "The owner of the files"),
            Argument::new("group", ArgumentKind::Str, "The group of the files"),
            Argument::new("mode", ArgumentKind::Mode, "File mode of the files, preferably symbolic: u=rwX,go=rX"),
            file_arguments::ATTRIBUTES,
            file_arguments::SEUSER,
            file_arguments::SEROLE,
            file_arguments::SETYPE,
            file_arguments::SELEVEL,
            file_arguments::UNSAFE_WRITES,
        ],
        free_form: None,
        example: r#"
- name: Unpack etcd from an archive on the controller
  unarchive:
    src: etcd-v3.6.0-linux-amd64.tar.gz
    dest: /opt/etcd
    owner: root
    group: root
    extra_opts: [--strip-components=1]

- name: Unpack an archive that is on the host
  unarchive:
    src: /var/cache/site.zip
    dest: /srv/site
    remote_src: true
    creates: /srv/site/index.html
"#,
        returns: &[
            Return::new("dest", "The directory"),
            Return::new("src", "The archive"),
            Return::new("handler", "The kind of archive"),
            Return::new("files", "The names in the archive, with list_files"),
            Return::new("mode", "File mode of the directory"),
            Return::new("owner", "The owner of the directory"),
            Return::new("group", "The group of the directory"),
        ],
    };
    type Change = UnarchiveChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<UnarchiveChange>, Error> {
        let remote_src = self.remote_src()?;
        if let Some(creates) = &self.creates {
            let creates = probe.expand_on_host(creates).await?;
            if probe.stat(&creates, Links::Follow).await?.is_some() {
                let outcome = Outcome { skipped: true, ..Outcome::default() };
                return Ok(Plan::Unchanged(outcome.message(format!("skipped, since {creates} exists"))));
            }
        }
        let dest = probe.expand_on_host(&self.dest).await?;
        let there = host_links::stat_target(probe, &dest).await?;
        let is_directory = there.is_some_and(|stat| stat.kind == FileKind::Directory);
        if !is_directory && !here.check {
            return Err(Error::Failed {
                message: format!("cannot unpack to {dest}: it must be a directory that exists"),
                hint: Some(format!("create it with an earlier task: file: {{path: {dest}, state: directory}}")),
            });
        }
        let wanted =
            DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        if remote_src {
            return self.plan_on_host(probe, here, dest, is_directory, wanted).await;
        }
        let path = here.find_file("files", &self.src)?;
        let format = Format::of_file(&path)?;
        Ok(Plan::Unknown(UnarchiveChange::Local { path, format, dest, wanted }))
    }

    async fn apply(&self, change: UnarchiveChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        match change {
            UnarchiveChange::Attributes { lacking, outcome } => {
                set(remote, lacking).await?;
                Ok(Outcome { changed: true, ..outcome })
            }
            UnarchiveChange::OnHost { archive, tool, wanted, src } => {
                self.unpack(remote, &archive, tool, &wanted, &src).await
            }
            UnarchiveChange::Local { path, format, dest, wanted } => {
                let directory = remote.temporary_directory().await?;
                let there = host_path::join_path(&directory, "archive");
                let attributes = Attributes { mode: Some(0o600), ..Attributes::default() };
                match self.decrypt && vault_file::is_vault(&path)? {
                    true => remote.write(&there, &vault_file::decrypt(here, &path).await?, &attributes).await?,
                    false => drop(file_write::upload(remote, here, &path, &there, &attributes).await?),
                }
                let format = if self.decrypt { Format::detect_format(remote, &there).await? } else { format };
                let archive = self.archive(format, there, dest);
                let done = match archive.tool(remote).await {
                    Ok(tool) => self.unpack(remote, &archive, tool, &wanted, &path.display().to_string()).await,
                    Err(error) => Err(error),
                };
                // The session would remove it at its end; a large archive should not stay that long.
                remote.remove(&directory).await?;
                done
            }
        }
    }
}

impl Unarchive {
    fn remote_src(&self) -> Result<bool, Error> {
        if !self.include.is_empty() && !self.exclude.is_empty() {
            return Err(Error::failed("unarchive: include and exclude cannot both be given"));
        }
        let remote_src = match (self.remote_src, self.copy) {
            (Some(_), Some(_)) => return Err(Error::failed("unarchive: remote_src and copy cannot both be given")),
            (Some(remote_src), None) => remote_src,
            (None, copy) => !copy.unwrap_or(true),
        };
        if self.src.contains("://") {
            return Err(Error::Failed {
                message: format!("cannot unpack {}: it is a URL, not a file", self.src),
                hint: Some("download it with get_url first, then unpack it with remote_src: true".to_owned()),
            });
        }
        Ok(remote_src)
    }

    fn archive(&self, format: Format, path: String, dest: String) -> Archive {
        Archive {
            format,
            path,
            dest,
            keep_newer: self.keep_newer,
            exclude: self.exclude.iter().map(|name| name.trim_end_matches('/').to_owned()).collect(),
            include: self.include.clone(),
            options: self.extra_opts.clone(),
            owner: self.owner.clone(),
            group: self.group.clone(),
            has_mode: self.mode.is_some(),
        }
    }

    async fn plan_on_host(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        dest: String,
        is_directory: bool,
        wanted: DesiredAttributes,
    ) -> Result<Plan<UnarchiveChange>, Error> {
        let src = probe.expand_on_host(&self.src).await?;
        match host_links::stat_target(probe, &src).await? {
            Some(stat) if stat.kind == FileKind::File && stat.size > 0 => {}
            Some(stat) if stat.kind == FileKind::File => {
                return Err(Error::failed(format!("cannot unpack {src}: it is empty")));
            }
            Some(_) => return Err(Error::failed(format!("cannot unpack {src}: it is not a file"))),
            None => return Err(Error::failed(format!("cannot unpack {src}: no such file on the host"))),
        }
        let archive = self.archive(Format::detect_format(probe, &src).await?, src.clone(), dest);
        let tool = archive.tool(probe).await?;
        let outcome = self.outcome(&archive, &src);
        if tool != Tool::GnuTar || !is_directory {
            return Ok(Plan::Unknown(UnarchiveChange::OnHost { archive, tool, wanted, src }));
        }
        if !tar::is_unpacked(probe, &archive).await? {
            let change = UnarchiveChange::OnHost { archive, tool, wanted, src };
            return Ok(Plan::Change { diff: Vec::new(), outcome, change });
        }
        let names = tar::archive_names(probe, &archive).await?;
        let outcome = self.finish(probe, outcome, &archive, &names).await?;
        let lacking = archive::lacking(probe, &archive.dest, &names, &wanted).await?;
        if lacking.is_empty() {
            return Ok(Plan::Unchanged(outcome));
        }
        let mut diff = Vec::new();
        for (path, stat, attributes) in &lacking {
            diff.extend(file_attributes::attributes_diff(path, stat, attributes).filter(|_| here.diff));
        }
        let lacking = lacking.into_iter().map(|(path, _, attributes)| (path, attributes)).collect();
        Ok(Plan::Change { diff, outcome: outcome.clone(), change: UnarchiveChange::Attributes { lacking, outcome } })
    }

    /// Unpacks what is not there yet, then sets the attributes.
    async fn unpack(
        &self,
        remote: &Remote,
        archive: &Archive,
        tool: Tool,
        wanted: &DesiredAttributes,
        src: &str,
    ) -> Result<Outcome, Error> {
        let (mut changed, names) = match tool {
            Tool::GnuTar => {
                let names = tar::archive_names(remote, archive).await?;
                let unreadable = names.iter().find(|name| name.contains(char::REPLACEMENT_CHARACTER));
                archive::refuse_unreadable_name(archive, unreadable.map(String::as_str))?;
                let unpacked = tar::is_unpacked(remote, archive).await?;
                if !unpacked {
                    tar::unpack_tar(remote, archive).await?;
                }
                (!unpacked, names)
            }
            Tool::OtherTar | Tool::Unzip => beside::unpack_with_tool(remote, archive, tool).await?,
        };
        let lacking = archive::lacking(remote, &archive.dest, &names, wanted).await?;
        changed |= lacking.iter().any(|(_, _, attributes)| !is_empty(attributes));
        set(remote, lacking.into_iter().map(|(path, _, attributes)| (path, attributes)).collect()).await?;
        let outcome = self.finish(remote, self.outcome(archive, src), archive, &names).await?;
        Ok(Outcome { changed, ..outcome })
    }

    fn outcome(&self, archive: &Archive, src: &str) -> Outcome {
        Outcome::default()
            .with("dest", archive.dest.as_str())
            .with("src", src)
            .with("handler", archive.format.handler())
    }

    async fn finish(
        &self,
        probe: &Probe,
        mut outcome: Outcome,
        archive: &Archive,
        names: &[String],
    ) -> Result<Outcome, Error> {
        if self.list_files {
            outcome = outcome.with("files", names.iter().map(Value::from).collect::<Value>());
        }
        Ok(match probe.stat(&archive.dest, Links::Follow).await? {
            Some(stat) => file_attributes::add_attributes(outcome, &stat),
            None => outcome,
        })
    }
}

async fn set(remote: &Remote, lacking: Vec<(String, Attributes)>) -> Result<(), Error> {
    for (path, attributes) in lacking {
        remote.set_attributes(&path, &attributes, Links::Keep).await?;
    }
    Ok(())
}
