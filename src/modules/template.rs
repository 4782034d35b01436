//! `template`: a file of the controller, rendered with the host's variables, to a host.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Local};
use serde::Deserialize;

use super::file_attributes::{self, DesiredAttributes};
use super::file_digest::Digests;
use super::file_mode::Mode;
use super::file_write::{self, Content, DesiredFile, Destination, Write};
use super::{Async, Changes, Controller, Error, Module, Outcome, Plan, file_arguments, vault_file};
use crate::remote::{Probe, Remote};
use crate::template::Options;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::{Value, Vars};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Template {
    src: String,
    dest: String,
    backup: bool,
    force: bool,
    follow: bool,
    validate: Option<String>,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
    block_start_string: String,
    block_end_string: String,
    variable_start_string: String,
    variable_end_string: String,
    comment_start_string: String,
    comment_end_string: String,
    newline_sequence: String,
    trim_blocks: bool,
    lstrip_blocks: bool,
    output_encoding: String,
}

pub(super) struct TemplateChange {
    write: Write,
    digests: Digests,
    src: String,
}

impl Module for Template {
    const CHANGES: Changes = Changes::Files;
    const ASYNC: Async = Async::Never;
    const DOC: Doc = Doc {
        name: "template",
        collection: "ansible.builtin",
        summary: "Render a template to a file on the host",
        arguments: &[
            Argument::new("src", ArgumentKind::Path, "Template on the controller, searched in templates/").required(),
            Argument::new("dest", ArgumentKind::Path, "The destination; a directory gets a file in it").required(),
            file_arguments::BACKUP,
            file_arguments::FORCE,
            file_arguments::FOLLOW_DEST,
            file_arguments::VALIDATE,
            file_arguments::OWNER,
            file_arguments::GROUP,
            Argument::new("mode", ArgumentKind::Mode, "File mode, or preserve for that of the template"),
            file_arguments::ATTRIBUTES,
            file_arguments::SEUSER,
            file_arguments::SEROLE,
            file_arguments::SETYPE,
            file_arguments::SELEVEL,
            file_arguments::UNSAFE_WRITES,
            Argument::new("block_start_string", ArgumentKind::Str, "Start of a block").default("{%"),
            Argument::new("block_end_string", ArgumentKind::Str, "End of a block").default("%}"),
            Argument::new("variable_start_string", ArgumentKind::Str, "Start of an expression").default("{{"),
            Argument::new("variable_end_string", ArgumentKind::Str, "End of an expression").default("}}"),
            Argument::new("comment_start_string", ArgumentKind::Str, "Start of a comment").default("{#"),
            Argument::new("comment_end_string", ArgumentKind::Str, "End of a comment").default("#}"),
            Argument::new("newline_sequence", ArgumentKind::Str, "End of a line")
                .default("\n")
                .choices(&["\n", "\r", "\r\n", "\\n", "\\r", "\\r\\n"]),
            Argument::new("trim_blocks", ArgumentKind::Bool, "Whether to remove the newline after a block")
                .default("true"),
            Argument::new("lstrip_blocks", ArgumentKind::Bool, "Whether to remove the spaces before a block")
                .default("false"),
            Argument::new("output_encoding", ArgumentKind::Str, "Encoding of the file: utf-8, ascii or latin-1")
                .default("utf-8"),
        ],
        free_form: None,
        example: r#"
- name: Write the configuration of etcd
  template:
    src: etcd.conf.yml.j2
    dest: /etc/etcd/etcd.conf.yml
    owner: etcd
    group: etcd
    mode: "0640"
    backup: true

- name: Install a unit file after checking it
  template:
    src: etcd.service.j2
    dest: /etc/systemd/system/etcd.service
    validate: systemd-analyze verify %s
"#,
        returns: &[
            Return::new("dest", "The path of the file"),
            Return::new("src", "The template"),
            Return::new("checksum", "SHA-1 of the rendered text"),
            Return::new("md5sum", "MD5 of the rendered text, when it was written"),
            file_arguments::returns::BACKUP_FILE,
            file_arguments::returns::MODE,
            file_arguments::returns::OWNER,
            file_arguments::returns::GROUP,
            file_arguments::returns::UID,
            file_arguments::returns::GID,
            file_arguments::returns::SIZE,
            Return::new("state", "File"),
        ],
    };
    type Change = TemplateChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<TemplateChange>, Error> {
        let path = here.find_file("templates", &self.src)?;
        let src = path.display().to_string();
        let base_name = path.file_name().and_then(|name| name.to_str());
        let destination = Destination::find_destination(probe, &self.dest, base_name, self.follow).await?;
        if let (false, Some((stat, _))) = (self.force, &destination.there) {
            let outcome = Outcome::default().message("file already exists").with("dest", destination.path.as_str());
            return Ok(Plan::Unchanged(file_attributes::add_attributes(outcome, stat)));
        }
        let (text, secret) = self.render(here, &path).await?;
        let desired = DesiredFile {
            content: Content::Bytes(self.encode(text)?),
            wanted: &self.wanted(probe, &path).await?,
            directories: &DesiredAttributes::default(),
            backup: self.backup,
            validate: self.validate.as_deref(),
            secret,
            source: &src,
        };
        let found = file_write::compare_file(probe, here, &destination, desired).await?;
        let outcome =
            file_write::write_outcome(&destination.path, &found.digests, None, None).await?.with("src", src.as_str());
        let stat = destination.there.as_ref().map(|(stat, _)| stat);
        Ok(match (found.write, stat) {
            (Some(write), _) => {
                let change = TemplateChange { write, digests: found.digests, src };
                Plan::Change { diff: found.diff, outcome, change }
            }
            (None, Some(stat)) => {
                let path = outcome.values.get("dest").cloned().unwrap_or_default();
                Plan::Unchanged(file_attributes::add_attributes(outcome.with("path", path), stat))
            }
            (None, None) => Plan::Unchanged(outcome),
        })
    }

    async fn apply(&self, change: TemplateChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let outcome = change.write.apply_and_tell(remote, here, &change.digests).await?;
        Ok(outcome.with("src", change.src).with("md5sum", change.digests.md5))
    }
}

impl Template {
    /// The rendered text, and whether the template was encrypted.
    async fn render(&self, here: &Controller<'_>, path: &Path) -> Result<(String, bool), Error> {
        let meta = std::fs::metadata(path).map_err(|error| file_write::unreadable(path, &error))?;
        if meta.is_dir() {
            return Err(Error::failed(format!("the template {} is a directory", path.display())));
        }
        let secret = vault_file::is_vault(path)?;
        let bytes = match secret {
            true => vault_file::decrypt(here, path).await?,
            false => file_write::read_controller_file(path).await?,
        };
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::failed(format!("the template {} is not UTF-8", path.display())))?;
        let scope = here.scope.with_layer(self.vars(here, path, &meta));
        let options = self.options(here, path);
        Ok((here.templar.render_file(&text, path, &options, &scope)?, secret))
    }

    fn options(&self, here: &Controller<'_>, path: &Path) -> Options {
        let pair = |start: &str, end: &str, usual: (&str, &str)| {
            ((start, end) != usual).then(|| (start.to_owned(), end.to_owned()))
        };
        let newline = match self.newline_sequence.as_str() {
            "\n" | "\\n" => None,
            "\r" | "\\r" => Some("\r".to_owned()),
            _ => Some("\r\n".to_owned()),
        };
        let mut search: Vec<PathBuf> =
            here.search.iter().flat_map(|directory| [directory.join("templates"), directory.clone()]).collect();
        search.extend(path.parent().map(Path::to_owned));
        Options {
            trim_blocks: self.trim_blocks,
            lstrip_blocks: self.lstrip_blocks,
            keep_trailing_newline: true,
            newline,
            variable: pair(&self.variable_start_string, &self.variable_end_string, ("{{", "}}")),
            block: pair(&self.block_start_string, &self.block_end_string, ("{%", "%}")),
            comment: pair(&self.comment_start_string, &self.comment_end_string, ("{#", "#}")),
            search,
        }
    }

    /// What a template knows of itself: `template_path`, `ansible_managed` and so on.
    fn vars(&self, here: &Controller<'_>, path: &Path, meta: &std::fs::Metadata) -> Vars {
        let time = |time: DateTime<Local>| Value::from(time.format("%Y-%m-%d %H:%M:%S%.6f").to_string());
        let mut vars = Vars::new();
        let mut set = |name: &str, value: Value| vars.insert(Arc::from(name), value);
        set("template_host", Value::from(host_name()));
        set("template_path", Value::from(self.src.as_str()));
        set("template_fullpath", Value::from(path.display().to_string()));
        set("template_destpath", Value::from(self.dest.as_str()));
        set("template_uid", owner_name(meta.uid()));
        set("template_run_date", time(Local::now()));
        if let Ok(modified) = meta.modified() {
            set("template_mtime", time(modified.into()));
        }
        if here.scope.get("ansible_managed").is_none() {
            set("ansible_managed", Value::from("Ansible managed"));
        }
        vars
    }

    async fn wanted(&self, probe: &Probe, path: &Path) -> Result<DesiredAttributes, Error> {
        let wanted =
            DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        if wanted.mode != Some(Mode::Preserve) {
            return Ok(wanted);
        }
        let meta = std::fs::metadata(path).map_err(|error| file_write::unreadable(path, &error))?;
        Ok(wanted.with_mode(Some(Mode::Exact(meta.permissions().mode() & 0o7777))))
    }

    fn encode(&self, text: String) -> Result<Vec<u8>, Error> {
        let encoding = self.output_encoding.to_ascii_lowercase().replace('_', "-");
        let limit = match encoding.as_str() {
            "" | "utf-8" | "utf8" => return Ok(text.into_bytes()),
            "ascii" | "us-ascii" => 0x7f,
            "latin-1" | "latin1" | "iso-8859-1" => 0xff,
            _ => {
                return Err(Error::Failed {
                    message: format!("template: unknown output_encoding {:?}", self.output_encoding),
                    hint: Some("use utf-8, ascii or latin-1".to_owned()),
                });
            }
        };
        let byte = |c: char| u8::try_from(u32::from(c)).ok().filter(|byte| *byte <= limit);
        let bytes: Option<Vec<u8>> = text.chars().map(byte).collect();
        bytes.ok_or_else(|| Error::failed(format!("cannot encode the rendered text as {encoding}")))
    }
}

/// The controller's name.
fn host_name() -> String {
    let name =
        std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    name.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}

/// The name of a user of the controller, or the number if it has none.
fn owner_name(uid: u32) -> Value {
    let mut number = String::new();
    write!(number, "{uid}").expect("a string takes all that is written");
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let name =
        fields.into_iter().find(|fields| fields.get(2) == Some(&number.as_str())).map(|fields| fields[0].to_owned());
    name.map_or(Value::from(uid), Value::from)
}
