//! Programs out of images: layers are read from the top, and the first that has a program is the last that is read.

use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::fetch::Client;
use super::layout::{FoundImage, Layout};
use super::members::{self, ArchiveKind, ExtractedMember};
use super::oci::{self, Config, Descriptor, Document, Manifest};
use super::reference::Reference;
use super::registry::{self, Repository};
use crate::bundle::{Error, HashingReader, bytes_to_hex, hex_of};

/// Where an image is read from.
enum Store<'a> {
    Registry(Repository<'a>),
    Layout(Layout<'a>),
}

/// Programs that were taken, and the digest of the image: of its index, or of its configuration where there is nothing else.
pub(super) struct FromImage {
    pub taken: Vec<ExtractedMember>,
    pub digest: String,
}

/// What to take.
pub(super) struct ImageSelection<'a> {
    pub architecture: &'a str,
    pub take: &'a [String],
    /// The digest that the image must have.
    pub digest: Option<&'a str>,
    /// Where the programs go; exists.
    pub to: &'a Path,
}

impl Store<'_> {
    async fn document(&self, descriptor: &Descriptor, name: &str) -> Result<Document, Error> {
        let text = match self {
            Store::Registry(repository) => repository.manifest(&descriptor.digest).await?,
            Store::Layout(layout) => read_blob(&layout.blob(descriptor)?)?,
        };
        if text.len() as u64 != descriptor.size {
            let size = descriptor.size;
            return Err(Error::new(format!("{name}: a manifest has {} bytes, and its index says {size}", text.len())));
        }
        oci::check_digest(&text, &descriptor.digest, name)?;
        oci::document(&text, name)
    }

    async fn blob(&self, descriptor: &Descriptor) -> Result<PathBuf, Error> {
        match self {
            Store::Registry(repository) => repository.blob(descriptor).await,
            Store::Layout(layout) => layout.blob(descriptor),
        }
    }
}

/// From a registry, or one of its mirrors.
pub(super) async fn from_registry(
    client: &Client,
    mirrors: &[(String, String)],
    name: &str,
    wanted: &ImageSelection<'_>,
) -> Result<FromImage, Error> {
    let reference = Reference::parse_image_name(name)?;
    if let (Some(own), Some(digest)) = (&reference.digest, wanted.digest)
        && own != digest
    {
        return Err(Error::new(format!("{name} has a different digest, expected {digest}")));
    }
    let (repository, text) = registry::find_field(client, &reference, mirrors, wanted.digest).await?;
    let digest = format!("sha256:{}", bytes_to_hex(&Sha256::digest(&text)));
    if let Some(demanded) = wanted.digest.or(reference.digest.as_deref()) {
        oci::check_digest(&text, demanded, name)?;
    }
    let taken = from_document(&Store::Registry(repository), oci::document(&text, name)?, name, wanted).await?;
    Ok(FromImage { taken, digest })
}

/// From an archive or a directory on this machine.
pub(super) async fn from_archive(
    client: &Client,
    path: &Path,
    image: Option<&str>,
    wanted: &ImageSelection<'_>,
) -> Result<FromImage, Error> {
    let scratch = tempfile::tempdir_in(wanted.to).map_err(|error| Error::io("write below", wanted.to, &error))?;
    let layout = Layout::open_layout(path, &client.blobs, scratch.path())?;
    let name = path.display().to_string();
    let demand = |found: &str| match wanted.digest {
        Some(digest) if digest != found => {
            Err(Error::new(format!("the image in {name} has the digest {found}, expected {digest}")))
        }
        _ => Ok(()),
    };
    match layout.find_image(image)? {
        FoundImage::Oci(descriptor) => {
            demand(&descriptor.digest)?;
            let store = Store::Layout(layout);
            let document = store.document(&descriptor, &name).await?;
            let taken = from_document(&store, document, &name, wanted).await?;
            Ok(FromImage { taken, digest: descriptor.digest })
        }
        FoundImage::Saved(saved) => {
            let text = layout.member_text(&saved.config)?;
            let text = text.ok_or_else(|| Error::new(format!("{name} has no {}", saved.config)))?;
            let digest = format!("sha256:{}", bytes_to_hex(&Sha256::digest(&text)));
            demand(&digest)?;
            let config: Config = oci::json(&text, &name)?;
            let size = text.len() as u64;
            let blank = |digest: &str| Descriptor {
                digest: digest.to_owned(),
                size,
                platform: None,
                annotations: Default::default(),
            };
            let layers = saved.layers.iter().map(|_| blank("")).collect();
            let manifest = Manifest { config: blank(&digest), layers };
            let unpacked = config.layers(&manifest, wanted.architecture, &name)?;
            let mut search = Search::new(wanted, &name);
            for (member, diff_id) in saved.layers.iter().zip(&unpacked).rev() {
                // Its layers are not compressed: the digest is that of the file.
                let path = layout.stored(member, diff_id)?;
                if search.layer(&path, diff_id)? {
                    break;
                }
            }
            Ok(FromImage { taken: search.finish()?, digest })
        }
    }
}

async fn from_document(
    store: &Store<'_>,
    document: Document,
    name: &str,
    wanted: &ImageSelection<'_>,
) -> Result<Vec<ExtractedMember>, Error> {
    let manifest = match document {
        Document::Manifest(manifest) => manifest,
        Document::Index(index) => match store.document(index.child(wanted.architecture, name)?, name).await? {
            Document::Manifest(manifest) => manifest,
            Document::Index(_) => return Err(Error::new(format!("{name}: an index in an index is not supported"))),
        },
    };
    if manifest.config.size > oci::LARGEST_MANIFEST as u64 {
        return Err(Error::new(format!("{name}: its configuration is too large")));
    }
    let config: Config = oci::json(&read_blob(&store.blob(&manifest.config).await?)?, name)?;
    let diff_ids = config.layers(&manifest, wanted.architecture, name)?;
    let mut search = Search::new(wanted, name);
    for (layer, diff_id) in manifest.layers.iter().zip(&diff_ids).rev() {
        let path = store.blob(layer).await?;
        if search.layer(&path, diff_id)? {
            break;
        }
    }
    search.finish()
}

fn read_blob(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| Error::io("read", path, &error))
}

/// What of the wanted programs was found so far.
struct Search<'a> {
    wanted: &'a ImageSelection<'a>,
    name: &'a str,
    /// By its number in `take`.
    found: Vec<Option<PathBuf>>,
    /// Upper layers removed it, so that a lower layer does not count.
    removed: Vec<bool>,
}

impl<'a> Search<'a> {
    fn new(wanted: &'a ImageSelection<'a>, name: &'a str) -> Search<'a> {
        let count = wanted.take.len();
        Search { wanted, name, found: vec![None; count], removed: vec![false; count] }
    }

    /// Looks through a layer. Whether nothing is left to look for.
    fn layer(&mut self, path: &Path, diff_id: &str) -> Result<bool, Error> {
        let name = self.name;
        let packed = std::fs::metadata(path).map_err(|error| Error::io("read", path, &error))?.len();
        let mut sum = Sha256::new();
        let hashing = HashingReader(members::decompressed(path)?, &mut sum);
        let mut removed_here = self.removed.clone();
        let mut here: Vec<bool> = vec![false; self.found.len()];
        // Some tools leave out the blocks at the end; the digest below verifies that the rest is complete.
        let ended = hashing.chain(std::io::repeat(0).take(1536));
        members::walk(ended, packed, name, |member, content| {
            for (number, wanted) in self.wanted.take.iter().enumerate() {
                if self.found[number].is_some() && !here[number] || self.removed[number] {
                    continue;
                }
                let wanted = wanted.trim_start_matches('/');
                if member.path != wanted {
                    removed_here[number] |= hides(&member.path, &member.kind, wanted);
                    continue;
                }
                match &member.kind {
                    ArchiveKind::File if here[number] => {
                        return Err(Error::new(format!("{name}: one layer has {wanted} more than once")));
                    }
                    ArchiveKind::File => {
                        let to = self.wanted.to.join(number.to_string());
                        members::write_member(content, member, &to, name)?;
                        self.found[number] = Some(to);
                        here[number] = true;
                    }
                    ArchiveKind::Link(target) => {
                        return Err(Error::new(format!("{name}: {wanted} is a link to {target}, not a file"))
                            .hint("name the file itself in take"));
                    }
                    _ => return Err(Error::new(format!("{name}: {wanted} is not a file"))),
                }
            }
            Ok(())
        })?;
        let unpacked = format!("sha256:{}", bytes_to_hex(&sum.finalize()));
        if hex_of(diff_id).is_none() || unpacked != diff_id {
            return Err(Error::new(format!("{name}: a layer unpacks to the digest {unpacked}, expected {diff_id}")));
        }
        self.removed = removed_here;
        Ok(self.found.iter().zip(&self.removed).all(|(found, removed)| found.is_some() || *removed))
    }

    fn finish(self) -> Result<Vec<ExtractedMember>, Error> {
        let programs = self.wanted.take.iter().zip(self.found);
        let taken = programs.map(|(wanted, found)| match found {
            Some(path) => Ok(ExtractedMember { name: wanted.trim_start_matches('/').to_owned(), path }),
            None => Err(Error::new(format!("{} has no /{}", self.name, wanted.trim_start_matches('/')))),
        });
        taken.collect()
    }
}

/// Whether a member of a layer removes `wanted` from the layers below it: a whiteout of it or of a directory above it, an opaque
/// directory, or anything but a directory where one of its directories was.
fn hides(path: &str, kind: &ArchiveKind, wanted: &str) -> bool {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    let is_at_or_above =
        |path: &str| wanted == path || wanted.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    if file == ".wh..wh..opq" {
        return directory.is_empty() || is_at_or_above(directory);
    }
    match file.strip_prefix(".wh.") {
        Some(removed) if directory.is_empty() => is_at_or_above(removed),
        Some(removed) => is_at_or_above(&format!("{directory}/{removed}")),
        None => *kind != ArchiveKind::Directory && is_at_or_above(path),
    }
}

#[cfg(test)]
mod tests;
