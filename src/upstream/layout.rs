//! Images in files: what `docker save` writes, and OCI layouts as a directory or in a tar archive.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::blobs::Blobs;
use super::members::{self, ArchiveKind};
use super::oci::{Descriptor, Index, LARGEST_MANIFEST, json};
use crate::bundle::{Error, hex_of};

/// The files of an archive.
pub(super) struct Layout<'a> {
    blobs: &'a Blobs,
    path: PathBuf,
    files: Files,
}

enum Files {
    Directory,
    /// Where each file begins, and how long it is. The archive itself is not compressed.
    Tar(PathBuf, BTreeMap<String, (u64, u64)>),
}

/// The content of a file, and its size.
type OpenMember = (Box<dyn Read>, u64);

/// What `docker save` says of an image.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct DockerManifest {
    pub config: String,
    #[serde(default)]
    pub repo_tags: Option<Vec<String>>,
    pub layers: Vec<String>,
}

/// An image that was found.
pub(super) enum FoundImage {
    /// An index or manifest.
    Oci(Descriptor),
    Saved(DockerManifest),
}

impl<'a> Layout<'a> {
    /// A compressed archive is unpacked into `scratch` first.
    pub(super) fn open_layout(path: &Path, blobs: &'a Blobs, scratch: &Path) -> Result<Layout<'a>, Error> {
        let meta = std::fs::metadata(path).map_err(|error| Error::io("read", path, &error))?;
        if meta.is_dir() {
            return Ok(Layout { blobs, path: path.to_owned(), files: Files::Directory });
        }
        let name = path.display().to_string();
        let plain = plain_tar(path, scratch, &name)?;
        let mut files = BTreeMap::new();
        let packed = std::fs::metadata(&plain).map_err(|error| Error::io("read", &plain, &error))?.len();
        let mut opened = File::open(&plain).map_err(|error| Error::io("read", &plain, &error))?;
        let mut at = 0;
        let mut archive = tar::Archive::new(&mut opened);
        let broken = |error: std::io::Error| Error::new(format!("cannot read {name}: {error}"));
        for entry in archive.entries_with_seek().map_err(broken)? {
            let entry = entry.map_err(broken)?;
            let start = entry.raw_file_position();
            if start < at || start.saturating_add(entry.size()) > packed {
                return Err(Error::new(format!("{name} ends too early")));
            }
            at = start;
            let written = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let outside = || Error::new(format!("{name}: {written:?} points outside the archive"));
            let member = members::inside(&written).ok_or_else(outside)?;
            if entry.header().entry_type() != tar::EntryType::Regular {
                continue;
            }
            if files.insert(member.clone(), (start, entry.size())).is_some() {
                return Err(Error::new(format!("{name} has {member} more than once")));
            }
        }
        Ok(Layout { blobs, path: path.to_owned(), files: Files::Tar(plain, files) })
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn reader(&self, member: &str) -> Result<Option<OpenMember>, Error> {
        match &self.files {
            Files::Directory => {
                let path = self.path.join(member);
                let cannot = |error: std::io::Error| Error::io("read", &path, &error);
                match std::fs::symlink_metadata(&path) {
                    Ok(meta) if meta.is_file() => Ok(Some((Box::new(File::open(&path).map_err(cannot)?), meta.len()))),
                    Ok(_) => Err(Error::new(format!("{} is not a regular file", path.display()))),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(cannot(error)),
                }
            }
            Files::Tar(plain, files) => {
                let Some((start, size)) = files.get(member) else { return Ok(None) };
                let cannot = |error: std::io::Error| Error::io("read", plain, &error);
                let mut file = File::open(plain).map_err(cannot)?;
                file.seek(SeekFrom::Start(*start)).map_err(cannot)?;
                Ok(Some((Box::new(file.take(*size)), *size)))
            }
        }
    }

    /// A small file.
    pub(super) fn member_text(&self, member: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some((reader, size)) = self.reader(member)? else { return Ok(None) };
        if size > LARGEST_MANIFEST as u64 {
            return Err(Error::new(format!("{} in {} is too large: {size} bytes", member, self.name())));
        }
        let mut text = Vec::new();
        let read = reader.take(size).read_to_end(&mut text);
        read.map_err(|error| Error::new(format!("cannot read {member} in {}: {error}", self.name())))?;
        Ok(Some(text))
    }

    /// A file, put into the cache under the digest that it must have.
    pub(super) fn stored(&self, member: &str, digest: &str) -> Result<PathBuf, Error> {
        let name = format!("{member} in {}", self.name());
        let hex = hex_of(digest).ok_or_else(|| Error::new(format!("{name}: unsupported digest {digest:?}")))?;
        let found = self.reader(member)?;
        let (reader, _) = found.ok_or_else(|| Error::new(format!("{} has no {member}", self.name())))?;
        self.blobs.store(reader, hex, &name)
    }

    /// A blob of an OCI layout.
    pub(super) fn blob(&self, descriptor: &Descriptor) -> Result<PathBuf, Error> {
        self.stored(&format!("blobs/sha256/{}", descriptor.digest_hex()?), &descriptor.digest)
    }

    /// The one image, or the one of that name.
    pub(super) fn find_image(&self, image: Option<&str>) -> Result<FoundImage, Error> {
        if let Some(text) = self.member_text("index.json")? {
            let index: Index = json(&text, &format!("index.json in {}", self.name()))?;
            let fits = |one: &&Descriptor| image.is_none_or(|image| names(one).iter().any(|name| is_name(name, image)));
            let fitting: Vec<&Descriptor> = index.manifests.iter().filter(fits).collect();
            let known = index.manifests.iter().flat_map(names).collect();
            return self.one(&fitting, image, known).map(FoundImage::Oci);
        }
        if let Some(text) = self.member_text("manifest.json")? {
            let saved: Vec<DockerManifest> = json(&text, &format!("manifest.json in {}", self.name()))?;
            let tags = |one: &DockerManifest| one.repo_tags.clone().unwrap_or_default();
            let fits =
                |one: &&DockerManifest| image.is_none_or(|image| tags(one).iter().any(|name| is_name(name, image)));
            let fitting: Vec<&DockerManifest> = saved.iter().filter(fits).collect();
            return self.one(&fitting, image, saved.iter().flat_map(tags).collect()).map(FoundImage::Saved);
        }
        Err(Error::new(format!("{} holds no image: it has neither index.json nor manifest.json", self.name())))
    }

    fn one<T: Clone>(&self, fitting: &[&T], image: Option<&str>, known: Vec<String>) -> Result<T, Error> {
        let (name, known) = (self.name(), known.join(", "));
        match (fitting, image) {
            ([one], _) => Ok((*one).clone()),
            ([], Some(image)) => Err(Error::new(format!("{name} has no image {image}; it has {known}"))),
            ([], None) => Err(Error::new(format!("{name} has no image"))),
            (_, _) => Err(Error::new(format!("{name} has several images: {known}")).hint("choose one with image")),
        }
    }
}

/// The names that a layout gives an image.
fn names(descriptor: &Descriptor) -> Vec<String> {
    let keys = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];
    keys.iter().filter_map(|key| descriptor.annotations.get(*key).cloned()).collect()
}

/// Whether a name is that of an image: the same, or the same without the registry that docker leaves out, or its tag.
fn is_name(name: &str, image: &str) -> bool {
    let short = |text: &str| {
        let text = text.strip_prefix("docker.io/").unwrap_or(text);
        text.strip_prefix("library/").unwrap_or(text).to_owned()
    };
    let is_tag = !name.contains(['/', ':']) && image.rsplit_once(':').is_some_and(|(_, tag)| tag == name);
    short(name) == short(image) || is_tag
}

/// The archive itself, or what it unpacks to.
fn plain_tar(path: &Path, scratch: &Path, name: &str) -> Result<PathBuf, Error> {
    let mut magic = Vec::new();
    let file = File::open(path).map_err(|error| Error::io("read", path, &error))?;
    file.take(4).read_to_end(&mut magic).map_err(|error| Error::io("read", path, &error))?;
    if !matches!(magic.as_slice(), [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd]) {
        return Ok(path.to_owned());
    }
    let plain = scratch.join("plain.tar");
    let packed = std::fs::metadata(path).map_err(|error| Error::io("read", path, &error))?.len();
    let mut builder = tar::Builder::new(File::create(&plain).map_err(|error| Error::io("write", &plain, &error))?);
    members::walk(members::decompressed(path)?, packed, name, |member, content| {
        if member.kind != ArchiveKind::File {
            return Ok(());
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(member.size);
        header.set_mode(0o600);
        let appended = builder.append_data(&mut header, &member.path, content);
        appended.map_err(|error| Error::new(format!("cannot unpack {name}: {error}")))
    })?;
    builder.finish().map_err(|error| Error::io("write", &plain, &error))?;
    Ok(plain)
}
