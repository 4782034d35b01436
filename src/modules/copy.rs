//! `copy`: a file, a directory or given content to a host, or from one place of a host to another.

mod entries;
#[cfg(test)]
mod tests;
mod tree;

use std::path::Path;

use serde::Deserialize;

use super::file_attributes::{DesiredAttributes, is_empty};
use super::file_digest::Digests;
use super::file_mode::Mode;
use super::file_write::{self, Content, DesiredFile, Destination, Write};
use super::host_copy::HostCopy;
use super::{
    Async, Changes, Controller, Error, Module, Outcome, Plan, file_arguments, file_attributes, host_links, host_path,
    vault_file,
};
use crate::remote::{Digest, FileKind, Links, Probe, Remote, Stat};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Copy {
    src: Option<String>,
    content: Option<Value>,
    dest: String,
    remote_src: bool,
    force: bool,
    backup: bool,
    validate: Option<String>,
    directory_mode: Option<String>,
    checksum: Option<String>,
    follow: bool,
    local_follow: bool,
    decrypt: bool,
    vault: bool,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
}

pub(super) enum CopyChange {
    File {
        write: Write,
        digests: Digests,
        src: Option<String>,
    },
    OnHost {
        copy: HostCopy,
        digest: String,
    },
    Tree {
        steps: Vec<tree::CopyStep>,
        dest: String,
        src: String,
    },
    /// A file on the host that differs only in its attributes.
    Attributes {
        path: String,
        attributes: crate::remote::Attributes,
        src: String,
        digest: String,
    },
}

/// Content from the controller, with what must be known of it.
struct Source {
    content: Content,
    base_name: Option<String>,
    /// For the diff and `src`.
    name: String,
    mode: Option<u32>,
    /// It was encrypted.
    secret: bool,
}

impl Module for Copy {
    const CHANGES: Changes = Changes::Files;
    const ASYNC: Async = Async::Never;
    const DOC: Doc = Doc {
        name: "copy",
        collection: "ansible.builtin",
        summary: "Copy files to a host",
        arguments: &[
            Argument::new(
                "src",
                ArgumentKind::Path,
                "File or directory on the controller, or on the host with remote_src; a directory's contents alone if it ends with /",
            ),
            Argument::new(
                "content",
                ArgumentKind::Any,
                "Content instead of src; mappings and lists are written as JSON",
            ),
            Argument::new(
                "dest",
                ArgumentKind::Path,
                "The destination; a directory if src is one or if it ends with /",
            )
            .required(),
            file_arguments::REMOTE_SRC.default("false"),
            file_arguments::FORCE,
            file_arguments::BACKUP,
            file_arguments::VALIDATE,
            file_arguments::DIRECTORY_MODE,
            Argument::new("checksum", ArgumentKind::Str, "The expected SHA-1 of the source"),
            file_arguments::FOLLOW_DEST,
            Argument::new("local_follow", ArgumentKind::Bool, "Whether to follow symbolic links in the source")
                .default("true"),
            file_arguments::DECRYPT,
            Argument::new(
                "vault",
                ArgumentKind::Bool,
                "Whether to keep the file encrypted at dest, with the first vault password of the run, if there is \
                 one; an existing plain file is then encrypted",
            )
            .default("false"),
            file_arguments::OWNER,
            file_arguments::GROUP,
            Argument::new("mode", ArgumentKind::Mode, "File mode, or preserve for that of the source"),
            file_arguments::ATTRIBUTES,
            file_arguments::SEUSER,
            file_arguments::SEROLE,
            file_arguments::SETYPE,
            file_arguments::SELEVEL,
            file_arguments::UNSAFE_WRITES,
        ],
        free_form: None,
        example: r#"
- name: Copy the configuration file of the role
  copy:
    src: etcd.conf
    dest: /etc/etcd/etcd.conf
    owner: root
    group: root
    mode: "0644"
    backup: true

- name: Write the message of the day
  copy:
    content: "{{ motd }}\n"
    dest: /etc/motd

- name: Install a sudo rule after checking it
  copy:
    src: sudoers
    dest: /etc/sudoers.d/deploy
    mode: "0440"
    validate: /usr/sbin/visudo -csf %s

- name: Copy the content of a directory
  copy:
    src: certificates/
    dest: /etc/etcd/pki
    mode: preserve
    directory_mode: "0700"
"#,
        returns: &[
            Return::new("dest", "The path of the file"),
            Return::new("src", "The path of the source"),
            Return::new("checksum", "SHA-1 of the content"),
            Return::new("md5sum", "MD5 of the content, when it was copied"),
            file_arguments::returns::BACKUP_FILE,
            file_arguments::returns::MODE,
            file_arguments::returns::OWNER,
            file_arguments::returns::GROUP,
            file_arguments::returns::UID,
            file_arguments::returns::GID,
            file_arguments::returns::SIZE,
            Return::new("state", "File, directory or link"),
        ],
    };
    type Change = CopyChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<CopyChange>, Error> {
        match (&self.src, &self.content) {
            (Some(_), Some(_)) => Err(Error::failed("copy: src and content cannot both be given")),
            (None, None) => Err(Error::failed("copy: src or content is required")),
            (None, Some(content)) => {
                let source = Source {
                    content: Content::Bytes(text(content)?.into_bytes()),
                    base_name: None,
                    name: "dynamically generated".to_owned(),
                    mode: None,
                    secret: false,
                };
                self.plan_file(probe, here, source).await
            }
            (Some(src), None) if self.remote_src => self.plan_on_host(probe, here, src).await,
            (Some(src), None) => {
                let path = here.find_file("files", src)?;
                if path.is_dir() {
                    return self.plan_directory(probe, here, src, &path).await;
                }
                let source = self.open(here, &path).await?;
                self.plan_file(probe, here, source).await
            }
        }
    }

    async fn apply(&self, change: CopyChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        match change {
            CopyChange::File { write, digests, src } => {
                let outcome = write.apply_and_tell(remote, here, &digests).await?;
                let outcome = outcome.with("md5sum", digests.md5.as_str());
                Ok(with_source(outcome, src.as_deref()))
            }
            CopyChange::OnHost { copy, digest } => {
                let (from, to) = (copy.from.clone(), copy.to.clone());
                let backup = copy.copy_file(remote).await?;
                let mut outcome = on_host_outcome(&from, &to, &digest, remote).await?;
                if let Some(backup) = backup {
                    outcome = outcome.with("backup_file", backup);
                }
                Ok(outcome)
            }
            CopyChange::Attributes { path, attributes, src, digest } => {
                remote.set_attributes(&path, &attributes, Links::Follow).await?;
                on_host_outcome(&src, &path, &digest, remote).await
            }
            CopyChange::Tree { steps, dest, src } => {
                for step in steps {
                    step.apply_tree_step(remote, here).await?;
                }
                Ok(Outcome::default().with("dest", dest).with("src", src))
            }
        }
    }
}

impl Copy {
    /// Reads what must be known of a file of the controller; a vault file is decrypted in memory.
    async fn open(&self, here: &Controller<'_>, path: &Path) -> Result<Source, Error> {
        use std::os::unix::fs::PermissionsExt;
        let name = path.display().to_string();
        let meta = tokio::fs::metadata(path).await;
        let meta = meta.map_err(|error| Error::failed(format!("cannot read {name} on the controller: {error}")))?;
        let secret = self.decrypt && vault_file::is_vault(path)?;
        let content = match secret {
            true => Content::Bytes(vault_file::decrypt(here, path).await?),
            false => Content::Local(path.to_owned()),
        };
        let base_name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        Ok(Source { content, base_name, name, mode: Some(meta.permissions().mode() & 0o7777), secret })
    }

    async fn plan_file(&self, probe: &Probe, here: &Controller<'_>, source: Source) -> Result<Plan<CopyChange>, Error> {
        let destination =
            Destination::find_destination(probe, &self.dest, source.base_name.as_deref(), self.follow).await?;
        let src = source.base_name.is_some().then(|| source.name.clone());
        let source = match self.vault {
            true => self.sealed(probe, here, &destination, source).await?,
            false => source,
        };
        if let (false, false, Some((stat, _))) = (self.force, self.vault, &destination.there) {
            let outcome = Outcome::default().message("file already exists").with("dest", destination.path.as_str());
            return Ok(Plan::Unchanged(with_source(file_attributes::add_attributes(outcome, stat), src.as_deref())));
        }
        let wanted = self.wanted(probe, source.mode).await?;
        let directories = self.wanted_directories(probe).await?;
        let desired = DesiredFile {
            content: source.content,
            wanted: &wanted,
            directories: &directories,
            backup: self.backup,
            validate: self.validate.as_deref(),
            secret: source.secret,
            source: &source.name,
        };
        let found = file_write::compare_file(probe, here, &destination, desired).await?;
        self.check_sum(&found.digests.sha1)?;
        let outcome = file_write::write_outcome(&destination.path, &found.digests, None, None).await?;
        let outcome = with_source(outcome, src.as_deref());
        let stat = destination.there.as_ref().map(|(stat, _)| stat);
        Ok(match (found.write, stat) {
            (Some(write), _) => {
                let change = CopyChange::File { write, digests: found.digests, src };
                Plan::Change { diff: found.diff, outcome, change }
            }
            (None, Some(stat)) => {
                Plan::Unchanged(file_attributes::add_attributes(outcome.with("path", destination.path.as_str()), stat))
            }
            (None, None) => Plan::Unchanged(outcome),
        })
    }

    /// The content for the destination: the present content if it decrypts to the same text, because encrypting it again
    /// would give another text, and else encrypted.
    async fn sealed(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        destination: &Destination,
        mut source: Source,
    ) -> Result<Source, Error> {
        source.secret = true;
        let found = match destination.there {
            Some(_) => probe.read_file(&destination.path).await?,
            None => None,
        };
        let plain = match source.content {
            Content::Bytes(bytes) => bytes,
            Content::Local(path) => file_write::read_controller_file(&path).await?,
        };
        source.content = Content::Bytes(match found {
            Some(found) if vault_file::is_sealed(&found) => {
                match self.force && vault_file::decrypt_bytes(here, &found, &destination.path)? != plain {
                    true => vault_file::sealed(here, plain),
                    false => found,
                }
            }
            Some(found) if !self.force => vault_file::sealed(here, found),
            _ => vault_file::sealed(here, plain),
        });
        Ok(source)
    }

    /// `mode` with `preserve` resolved, as the source has it.
    async fn wanted(&self, probe: &Probe, source: Option<u32>) -> Result<DesiredAttributes, Error> {
        let wanted =
            DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        Ok(match (&wanted.mode, source) {
            (Some(Mode::Preserve), source) => wanted.with_mode(source.map(Mode::Exact)),
            _ => wanted,
        })
    }

    async fn wanted_directories(&self, probe: &Probe) -> Result<DesiredAttributes, Error> {
        DesiredAttributes::load_wanted(
            probe,
            self.owner.as_deref(),
            self.group.as_deref(),
            self.directory_mode.as_deref(),
        )
        .await
    }

    fn check_sum(&self, found: &str) -> Result<(), Error> {
        match &self.checksum {
            Some(wanted) if !wanted.eq_ignore_ascii_case(found) => {
                Err(Error::failed(format!("the source has the checksum {found}, not {wanted}")))
            }
            _ => Ok(()),
        }
    }

    async fn plan_directory(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        src: &str,
        path: &Path,
    ) -> Result<Plan<CopyChange>, Error> {
        let prefix = if src.ends_with('/') { "" } else { host_path::base_name(src) };
        let entries = entries::on_controller(path, prefix, self.local_follow)?;
        self.plan_tree(probe, here, &path.display().to_string(), entries).await
    }

    async fn plan_on_host(&self, probe: &Probe, here: &Controller<'_>, src: &str) -> Result<Plan<CopyChange>, Error> {
        let src = probe.expand_on_host(src).await?;
        let Some((stat, digest)) = probe.stat_and_digest(&src, Links::Follow, Digest::Sha1).await? else {
            return Err(Error::failed(format!("cannot copy {src}: no such file on the host")));
        };
        host_links::stat_target(probe, &src).await?;
        if stat.kind == FileKind::Directory {
            let prefix = if src.ends_with('/') { "" } else { host_path::base_name(&src) };
            let entries = entries::on_host(probe, &src, prefix, self.local_follow).await?;
            return self.plan_tree(probe, here, &src, entries).await;
        }
        let Some(digest) = digest else {
            return Err(Error::failed(format!("cannot copy {src}: it is neither a file nor a directory")));
        };
        self.check_sum(&digest)?;
        self.plan_host_file(probe, here, src, &stat, digest).await
    }

    async fn plan_host_file(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        src: String,
        source: &Stat,
        digest: String,
    ) -> Result<Plan<CopyChange>, Error> {
        let destination =
            Destination::find_destination(probe, &self.dest, Some(host_path::base_name(&src)), self.follow).await?;
        if !here.check {
            destination.check_parent()?;
        }
        let path = destination.path.clone();
        let outcome =
            Outcome::default().with("dest", path.as_str()).with("src", src.as_str()).with("checksum", digest.as_str());
        if let (false, Some((stat, _))) = (self.force, &destination.there) {
            return Ok(Plan::Unchanged(file_attributes::add_attributes(outcome.message("file already exists"), stat)));
        }
        let wanted = self.wanted(probe, Some(source.mode)).await?;
        let there = destination.there.as_ref().filter(|(stat, _)| stat.kind != FileKind::Link);
        let attributes = match there {
            Some((stat, _)) => wanted.lacking(stat),
            None => wanted.for_new(FileKind::File),
        };
        let mut diff = Vec::new();
        if let Some((stat, Some(old))) = there
            && *old == digest
        {
            if is_empty(&attributes) {
                let outcome = outcome.with("path", path.as_str());
                return Ok(Plan::Unchanged(file_attributes::add_attributes(outcome, stat)));
            }
            diff.extend(file_attributes::attributes_diff(&path, stat, &attributes).filter(|_| here.diff));
            return Ok(Plan::Change {
                diff,
                outcome,
                change: CopyChange::Attributes { path, attributes, src, digest },
            });
        }
        if here.diff && !here.no_log {
            diff.push(tree::host_diff(probe, &path, there.map(|(stat, _)| stat), &src, source).await?);
        }
        let copy = HostCopy {
            from: src,
            directory: host_path::parent(&path).to_owned(),
            to: path,
            attributes,
            keep: there.and_then(|(stat, _)| HostCopy::kept(stat)),
            back_up: self.backup && there.is_some(),
            validate: self.validate.clone(),
        };
        if destination.new_directories.is_empty() {
            return Ok(Plan::Change { diff, outcome, change: CopyChange::OnHost { copy, digest } });
        }
        let new = self.wanted_directories(probe).await?.for_new(FileKind::Directory);
        let make =
            destination.new_directories.iter().map(|path| tree::CopyStep::MakeDirectory(path.clone(), new.clone()));
        let (dest, src) = (copy.to.clone(), copy.from.clone());
        let steps = make.chain([tree::CopyStep::CopyOnHost(copy)]).collect();
        Ok(Plan::Change { diff, outcome, change: CopyChange::Tree { steps, dest, src } })
    }
}

/// Content as it is to be written: text as it is, structures as JSON.
fn text(content: &Value) -> Result<String, Error> {
    use minijinja::value::ValueKind;
    match content.kind() {
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => {
            let json = serde_json::Value::deserialize(content.clone());
            json.map(|json| python_json(&json)).map_err(|_| Error::failed("copy: content cannot be written as JSON"))
        }
        ValueKind::None | ValueKind::Undefined => Ok(String::new()),
        _ => Ok(content.to_string()),
    }
}

/// JSON on one line with a space after `,` and `:`, as Ansible writes structures.
fn python_json(json: &serde_json::Value) -> std::string::String {
    use serde_json::Value::{Array, Object, String};
    match json {
        Array(items) => format!("[{}]", items.iter().map(python_json).collect::<Vec<_>>().join(", ")),
        Object(map) => {
            let pairs = map.iter().map(|(key, value)| format!("{}: {}", ascii_json(key), python_json(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        String(text) => ascii_json(text),
        plain => plain.to_string(),
    }
}

/// A JSON string without characters beyond ASCII.
fn ascii_json(text: &str) -> String {
    let mut ascii = String::new();
    for c in serde_json::Value::from(text).to_string().chars() {
        match c {
            '\0'..='\x7f' => ascii.push(c),
            _ => ascii.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
        }
    }
    ascii
}

fn with_source(outcome: Outcome, src: Option<&str>) -> Outcome {
    match src {
        Some(src) => outcome.with("src", src),
        None => outcome,
    }
}

async fn on_host_outcome(src: &str, dest: &str, digest: &str, probe: &Probe) -> Result<Outcome, Error> {
    let outcome = Outcome::default().with("dest", dest).with("src", src).with("checksum", digest);
    Ok(match probe.stat(dest, Links::Keep).await? {
        Some(stat) => file_attributes::add_attributes(outcome, &stat),
        None => outcome,
    })
}
