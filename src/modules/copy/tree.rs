//! Copying a directory: its entries compared with what the host has, and the steps that make up the difference.

use super::super::file_attributes::{self, DesiredAttributes, is_empty};
use super::super::file_diff::{self, LONGEST, Side};
use super::super::file_mode::Mode;
use super::super::file_write::{self, Content, DesiredFile, Destination, Write};
use super::super::host_copy::HostCopy;
use super::super::host_tree::Tree;
use super::super::{Controller, Diff, Error, Outcome, Plan, host_links, host_path, vault_file};
use super::entries::{CopyEntry, CopyEntryKind};
use super::{Copy, CopyChange};
use crate::remote::{Attributes, Digest, FileKind, Links, Probe, Remote, Stat};

/// One thing to do on the host.
pub(crate) enum CopyStep {
    MakeDirectory(String, Attributes),
    Write(Box<Write>),
    CopyOnHost(HostCopy),
    Symlink { target: String, path: String, attributes: Attributes },
    SetAttributes(String, Attributes),
}

impl CopyStep {
    pub(crate) async fn apply_tree_step(self, remote: &Remote, here: &Controller<'_>) -> Result<(), Error> {
        match self {
            CopyStep::MakeDirectory(path, attributes) => remote.make_directory(&path, &attributes).await?,
            CopyStep::Write(write) => drop(write.apply_write(remote, here).await?),
            CopyStep::CopyOnHost(copy) => drop(copy.copy_file(remote).await?),
            CopyStep::Symlink { target, path, attributes } => {
                remote.symlink(&target, &path).await?;
                if !is_empty(&attributes) {
                    remote.set_attributes(&path, &attributes, Links::Keep).await?;
                }
            }
            CopyStep::SetAttributes(path, attributes) => {
                remote.set_attributes(&path, &attributes, Links::Follow).await?
            }
        }
        Ok(())
    }
}

/// A directory of the host that entries are compared with.
struct Target<'a> {
    probe: &'a Probe,
    here: &'a Controller<'a>,
    root: String,
    /// None: the directory does not exist.
    tree: Option<Tree>,
    wanted: DesiredAttributes,
    directories: DesiredAttributes,
    steps: Vec<CopyStep>,
    diff: Vec<Diff>,
}

impl Copy {
    /// Compares entries with the destination, which is a directory or will be one.
    pub(super) async fn plan_tree(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        src: &str,
        entries: Vec<CopyEntry>,
    ) -> Result<Plan<CopyChange>, Error> {
        let dest = probe.expand_on_host(&self.dest).await?;
        let root = if dest == "/" { dest } else { dest.trim_end_matches('/').to_owned() };
        host_links::stat_target(probe, &root).await?;
        let missing = file_write::missing_directories(probe, &root).await?;
        let tree = match missing.is_empty() {
            true => Some(Tree::walk(probe, &root, false, &[]).await?),
            false => None,
        };
        let wanted =
            DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        let directories = self.wanted_directories(probe).await?;
        let new = directories.for_new(FileKind::Directory);
        let steps = missing.into_iter().map(|path| CopyStep::MakeDirectory(path, new.clone())).collect();
        let mut target = Target { probe, here, root, tree, wanted, directories, steps, diff: Vec::new() };
        for entry in entries {
            target.compare(self, entry).await?;
        }
        let Target { steps, diff, root: dest, .. } = target;
        let outcome = Outcome::default().with("dest", dest.as_str()).with("src", src);
        if steps.is_empty() {
            return Ok(Plan::Unchanged(outcome));
        }
        Ok(Plan::Change { diff, outcome, change: CopyChange::Tree { steps, dest, src: src.to_owned() } })
    }
}

impl Target<'_> {
    /// What is at a path below the root.
    async fn there(&self, relative: &str) -> Result<Option<Stat>, Error> {
        let Some(tree) = &self.tree else { return Ok(None) };
        match tree.get(relative) {
            // A link's target is not in the tree.
            Some(stat) if stat.kind != FileKind::Link => Ok(Some(stat.clone())),
            // In a directory that cannot be listed, a file may be there all the same.
            None if tree.incomplete().is_none() && !tree.is_behind_link(relative) => Ok(None),
            _ => Ok(self.probe.stat(&host_path::join_path(&self.root, relative), Links::Keep).await?),
        }
    }

    async fn compare(&mut self, copy: &Copy, entry: CopyEntry) -> Result<(), Error> {
        let there = self.there(&entry.path).await?;
        let path = host_path::join_path(&self.root, &entry.path);
        match entry.what {
            CopyEntryKind::Directory => self.directory(path, there).await,
            CopyEntryKind::Link { target } => self.link(path, there, target),
            CopyEntryKind::Local { .. } | CopyEntryKind::OnHost { .. } => {
                if there.as_ref().is_some_and(|stat| stat.kind == FileKind::Directory) {
                    return Err(Error::failed(format!("cannot write {path}: it is a directory")));
                }
                if there.is_some() && !copy.force {
                    return Ok(());
                }
                match entry.what {
                    CopyEntryKind::Local { path: from, size, mode, is_vault } => {
                        let wanted = self.wanted_of(mode);
                        let content = match is_vault && copy.decrypt {
                            true => Content::Bytes(vault_file::decrypt(self.here, &from).await?),
                            false => Content::Local(from.clone()),
                        };
                        let secret = matches!(content, Content::Bytes(_));
                        let size = if let Content::Bytes(plain) = &content { plain.len() as u64 } else { size };
                        let source = from.display().to_string();
                        let directories = self.directories.clone();
                        let desired = DesiredFile {
                            content,
                            wanted: &wanted,
                            directories: &directories,
                            backup: copy.backup,
                            validate: copy.validate.as_deref(),
                            secret,
                            source: &source,
                        };
                        self.local_file(path, there, size, desired).await
                    }
                    CopyEntryKind::OnHost { path: from, size, mode } => {
                        self.host_file(copy, path, there, from, size, mode).await
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// The attributes of a file whose source has the mode.
    fn wanted_of(&self, mode: u32) -> DesiredAttributes {
        match self.wanted.mode {
            Some(Mode::Preserve) => self.wanted.with_mode(Some(Mode::Exact(mode))),
            _ => self.wanted.clone(),
        }
    }

    async fn directory(&mut self, path: String, there: Option<Stat>) -> Result<(), Error> {
        let there = match there {
            Some(stat) if stat.kind == FileKind::Link => host_links::stat_target(self.probe, &path).await?,
            there => there,
        };
        match there {
            Some(stat) if stat.kind == FileKind::Directory => {}
            Some(_) => return Err(Error::failed(format!("cannot create the directory {path}: a file has this name"))),
            None => self.steps.push(CopyStep::MakeDirectory(path, self.directories.for_new(FileKind::Directory))),
        }
        Ok(())
    }

    fn link(&mut self, path: String, there: Option<Stat>, target: String) -> Result<(), Error> {
        let (owner, group) = (self.wanted.owner.clone(), self.wanted.group.clone());
        let attributes = match &there {
            Some(stat) if stat.kind == FileKind::Directory => {
                return Err(Error::failed(format!(
                    "cannot create the symbolic link {path}: a directory has this name"
                )));
            }
            Some(stat) if stat.link_target.as_deref() == Some(target.as_str()) => self.wanted.lacking(stat),
            _ => Attributes { owner, group, mode: None },
        };
        let same = there.is_some_and(|stat| stat.link_target.as_deref() == Some(target.as_str()));
        if !same || !is_empty(&attributes) {
            self.steps.push(CopyStep::Symlink { target, path, attributes });
        }
        Ok(())
    }

    async fn local_file(
        &mut self,
        path: String,
        there: Option<Stat>,
        size: u64,
        desired: DesiredFile<'_>,
    ) -> Result<(), Error> {
        let destination = Destination::known(path.clone(), self.with_digest(&path, there, size).await?);
        let found = file_write::compare_file(self.probe, self.here, &destination, desired).await?;
        self.diff.extend(found.diff);
        self.steps.extend(found.write.map(|write| CopyStep::Write(Box::new(write))));
        Ok(())
    }

    /// The digest of a file that is there; a file of another size differs, so no digest is computed.
    async fn with_digest(
        &self,
        path: &str,
        there: Option<Stat>,
        size: u64,
    ) -> Result<Option<(Stat, Option<String>)>, Error> {
        let Some(stat) = there else { return Ok(None) };
        let digest = match stat.kind {
            FileKind::File if stat.size == size => self.probe.digest(path, Digest::Sha1).await?,
            FileKind::File => Some("of another size".to_owned()),
            _ => None,
        };
        Ok(Some((stat, digest)))
    }

    async fn host_file(
        &mut self,
        copy: &Copy,
        path: String,
        there: Option<Stat>,
        from: String,
        size: u64,
        mode: u32,
    ) -> Result<(), Error> {
        let wanted = self.wanted_of(mode);
        let there = self.with_digest(&path, there.filter(|stat| stat.kind != FileKind::Link), size).await?;
        let same = match &there {
            Some((stat, digest)) if stat.size == size && digest.is_some() => {
                *digest == self.probe.digest(&from, Digest::Sha1).await?
            }
            _ => false,
        };
        let stat = there.map(|(stat, _)| stat);
        let attributes = match &stat {
            Some(stat) => wanted.lacking(stat),
            // A new file of a copied tree has its source's permissions, as in Ansible.
            None => {
                let new = wanted.for_new(FileKind::File);
                Attributes { mode: new.mode.or(Some(mode)), ..new }
            }
        };
        if let Some(stat) = stat.as_ref().filter(|_| same) {
            if !is_empty(&attributes) {
                self.diff.extend(file_attributes::attributes_diff(&path, stat, &attributes).filter(|_| self.here.diff));
                self.steps.push(CopyStep::SetAttributes(path, attributes));
            }
            return Ok(());
        }
        if self.here.diff && !self.here.no_log {
            let sizes = (stat.as_ref().map(|stat| stat.size), size);
            self.diff.push(diff_of(self.probe, &path, &from, sizes).await?);
        }
        self.steps.push(CopyStep::CopyOnHost(HostCopy {
            directory: host_path::parent(&path).to_owned(),
            from,
            to: path,
            attributes,
            keep: stat.as_ref().and_then(HostCopy::kept),
            back_up: copy.backup && stat.is_some(),
            validate: copy.validate.clone(),
        }));
        Ok(())
    }
}

/// The diff of a file that is copied on the host.
pub(super) async fn host_diff(
    probe: &Probe,
    path: &str,
    there: Option<&Stat>,
    from: &str,
    source: &Stat,
) -> Result<Diff, Error> {
    diff_of(probe, path, from, (there.map(|stat| stat.size), source.size)).await
}

async fn diff_of(probe: &Probe, path: &str, from: &str, sizes: (Option<u64>, u64)) -> Result<Diff, Error> {
    let read = async |path: &str, size: u64| match size <= LONGEST {
        true => probe.read_file(path).await,
        false => Ok(None),
    };
    let before = match sizes.0 {
        Some(size) => read(path, size).await?,
        None => None,
    };
    let after = read(from, sizes.1).await?;
    let old = match (&before, sizes.0) {
        (Some(text), _) => Side::Text(text),
        (None, Some(size)) => Side::Long(size),
        (None, None) => Side::Nothing,
    };
    let new = after.as_deref().map_or(Side::Long(sizes.1), Side::Text);
    Ok(file_diff::content(path, &old, from, &new))
}
