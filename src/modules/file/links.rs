//! Symbolic and hard links.

use super::super::file_attributes::{self, is_empty};
use super::super::{Controller, Error, host_links, host_path};
use super::FilePlan;
use super::steps::FileStep;
use crate::remote::{Attributes, FileKind, Links, Stat};

impl FilePlan<'_> {
    pub(super) async fn link(&mut self, here: &Controller<'_>) -> Result<(), Error> {
        let path = self.path.clone();
        self.returns("dest", &path);
        let old = self.there.as_ref().filter(|stat| stat.kind == FileKind::Link).and_then(|s| s.link_target.clone());
        let src = match &self.file.src {
            Some(src) => self.probe.expand_on_host(src).await?,
            None if self.file.follow && old.is_some() => old.clone().unwrap_or_default(),
            None if old.is_some() => return self.link_attributes(&path, None).await,
            None => return Err(Error::failed(format!("file: src is required to create the symbolic link {path}"))),
        };
        self.returns("src", &src);
        let target = self.target_of(&src).await?;
        let src_path = host_path::join_path(host_path::parent(&path), &src);
        if self.file.src.is_none() && target.is_some() {
            host_links::real_path(self.probe, &path).await?;
        }
        if self.file.src.is_some() && target.is_none() && !self.file.force && !here.check {
            return Err(Error::Failed {
                message: format!("cannot link {path} to {src}: no such file on the host"),
                hint: Some("force: true creates a link to a missing path".to_owned()),
            });
        }
        if old.as_deref() == Some(src.as_str()) {
            return self.link_attributes(&src_path, target).await;
        }
        self.make_way("symbolic link").await?;
        self.becomes("link");
        self.properties.change("src", old.as_deref(), src.as_str());
        self.steps.push(FileStep::Symlink { target: src, path });
        self.link_attributes(&src_path, target).await
    }

    pub(super) async fn hard(&mut self) -> Result<(), Error> {
        let path = self.path.clone();
        self.returns("dest", &path);
        let Some(src) = &self.file.src else {
            return match file_attributes::state(self.there.as_ref()) {
                "hard" => {
                    self.attributes_and_times();
                    Ok(())
                }
                _ => Err(Error::failed(format!("file: src is required to create the hard link {path}"))),
            };
        };
        let src = self.probe.expand_on_host(src).await?;
        self.returns("src", &src);
        let Some(target) = self.probe.stat(&src, Links::Follow).await? else {
            return Err(Error::failed(format!("cannot link {path} to {src}: no such file on the host")));
        };
        let same = |stat: &Stat| stat.inode == target.inode && stat.device == target.device;
        if self.there.as_ref().is_some_and(same) {
            self.attributes_and_times();
            return Ok(());
        }
        self.make_way("hard link").await?;
        self.becomes("hard");
        self.steps.push(FileStep::HardLink { target: src.clone(), path });
        let lacking = self.wanted.lacking(&target);
        if !is_empty(&lacking) {
            self.properties.attributes(&target, &lacking);
            let real = host_links::real_path(self.probe, &src).await?;
            self.steps.push(FileStep::SetAttributes(vec![real], lacking, Links::Follow));
        }
        Ok(())
    }

    /// What a link at the path would lead to.
    async fn target_of(&self, src: &str) -> Result<Option<Stat>, Error> {
        let base = match &self.there {
            Some(stat) if stat.kind == FileKind::Directory => self.path.as_str(),
            _ => host_path::parent(&self.path),
        };
        Ok(self.probe.stat(&host_path::join_path(base, src), Links::Follow).await?)
    }

    /// Checks whether a link may replace the file at the path.
    async fn make_way(&mut self, link: &str) -> Result<(), Error> {
        let path = self.path.clone();
        let Some(stat) = &self.there else { return Ok(()) };
        let state = file_attributes::state(Some(stat));
        match stat.kind {
            FileKind::Link => Ok(()),
            _ if !self.file.force => Err(Error::Failed {
                message: format!("refusing to replace the {state} {path} by a {link}"),
                hint: Some("force: true allows it".to_owned()),
            }),
            FileKind::Directory => {
                if self.probe.list_directory(&path).await?.is_some_and(|names| !names.is_empty()) {
                    return Err(Error::failed(format!("refusing to replace the directory {path}: it is not empty")));
                }
                self.steps.push(FileStep::RemoveDirectory(path));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The attributes of `src`, which the symbolic link leads to, or of the link itself if links are not followed.
    async fn link_attributes(&mut self, src: &str, target: Option<Stat>) -> Result<(), Error> {
        if !self.file.follow {
            let there = self.there.clone().filter(|stat| stat.kind == FileKind::Link);
            let attributes = match &there {
                Some(stat) => self.wanted.lacking(stat),
                None => Attributes { mode: None, ..self.wanted.for_new(FileKind::Link) },
            };
            if !is_empty(&attributes) {
                if let Some(stat) = &there {
                    self.properties.attributes(stat, &attributes);
                }
                self.steps.push(FileStep::SetAttributes(vec![self.path.clone()], attributes, Links::Keep));
            }
            return Ok(());
        }
        let Some(stat) = target else { return Ok(()) };
        let attributes = self.wanted.lacking(&stat);
        if is_empty(&attributes) && self.times.steps(src, Some(&stat)).is_empty() {
            return Ok(());
        }
        // `src` may be a link itself, and another user's.
        let real = host_links::real_path(self.probe, src).await?;
        if !is_empty(&attributes) {
            self.properties.attributes(&stat, &attributes);
            self.steps.push(FileStep::SetAttributes(vec![real.clone()], attributes, Links::Follow));
        }
        let steps = self.times.steps(&real, Some(&stat));
        if !steps.is_empty() {
            self.times.add_times(&mut self.properties, &stat);
            self.steps.extend(steps);
        }
        Ok(())
    }
}
