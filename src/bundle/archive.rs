//! Bundles in one file: tar, compressed with zstd, the manifest first.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::manifest::{Item, MANIFEST, Manifest};
use super::seal::{LARGEST_MANIFEST, Seal, is_signature, limited};
use super::signature::LARGEST_SIGNATURE;
use super::{Error, bytes_to_hex, file_digest};
use crate::value::ProcessEnvironment;
use crate::value::ownership::written_by_others;

/// Fast, and smaller by two thirds.
const LEVEL: i32 = 6;

/// Whether a path is named as an archive is.
pub fn is_archive(path: &Path) -> bool {
    path.to_str().is_some_and(|name| name.ends_with(".tar.zst"))
}

/// Writes a directory and its manifest as an archive, whole or not at all.
pub fn pack(root: &Path, manifest: &Manifest, to: &Path) -> Result<(), Error> {
    let cannot = |error: std::io::Error| Error::io("write", to, &error);
    if to.exists() && !to.is_file() {
        return Err(cannot(std::io::Error::other("it exists, and is not a file")));
    }
    let (temporary, mut archive) = begin(to, &Seal { text: manifest.to_yaml(), signatures: Vec::new() })?;
    for item in &manifest.files {
        let path = root.join(&item.file);
        let file = File::open(&path).map_err(|error| Error::io("read", &path, &error))?;
        append(&mut archive, &item.file, item.size, mode(&item.component), file.take(item.size)).map_err(cannot)?;
    }
    finish(temporary, archive, to)
}

type Writer = tar::Builder<zstd::Encoder<'static, File>>;

/// A new archive with nothing but its head, beside the place where it is to be.
fn begin(to: &Path, seal: &Seal) -> Result<(tempfile::NamedTempFile, Writer), Error> {
    let cannot = |error: std::io::Error| Error::io("write", to, &error);
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As any new file of the person's: what their umask leaves of it.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let temporary = tempfile::Builder::new().permissions(permissions).tempfile_in(directory).map_err(cannot)?;
    let file = temporary.as_file().try_clone().map_err(cannot)?;
    let mut writer = tar::Builder::new(zstd::Encoder::new(file, LEVEL).map_err(cannot)?);
    append(&mut writer, MANIFEST, seal.text.len() as u64, 0o644, seal.text.as_bytes()).map_err(cannot)?;
    for signature in &seal.signatures {
        let text = signature.text.as_slice();
        append(&mut writer, &signature.name, text.len() as u64, 0o644, text).map_err(cannot)?;
    }
    Ok((temporary, writer))
}

/// Puts a new archive into its place.
fn finish(temporary: tempfile::NamedTempFile, writer: Writer, to: &Path) -> Result<(), Error> {
    let cannot = |error: std::io::Error| Error::io("write", to, &error);
    let encoder = writer.into_inner().map_err(cannot)?;
    encoder.finish().map_err(cannot)?.sync_all().map_err(cannot)?;
    temporary.persist(to).map(drop).map_err(|error| cannot(error.error))
}

/// What an archive starts with: the manifest and the signatures. The files behind are not read.
pub(super) fn head(archive: &Path) -> Result<Seal, Error> {
    let mut reader = open(archive)?;
    let mut seal: Option<Seal> = None;
    for entry in reader.entries().map_err(|error| broken(archive, &error))? {
        let entry = entry.map_err(|error| broken(archive, &error))?;
        let name = entry.path().map_err(|error| broken(archive, &error))?.display().to_string();
        match &mut seal {
            None if name == MANIFEST => {
                let path = archive.join(MANIFEST);
                seal = Some(Seal::new(limited(entry, LARGEST_MANIFEST, &path)?, &path)?);
            }
            Some(seal) if is_signature(&name) => {
                let text = limited(entry, LARGEST_SIGNATURE, &archive.join(&name))?;
                seal.add(name, text)?;
            }
            _ => break,
        }
    }
    seal.ok_or_else(|| Error::new(format!("{} is not a bundle: it does not start with {MANIFEST}", archive.display())))
}

/// What an archive has that belongs neither to its head nor to its manifest.
pub(super) fn strays(archive: &Path, seal: &Seal, manifest: &Manifest) -> Result<Vec<String>, Error> {
    let mut reader = open(archive)?;
    let mut found = Vec::new();
    for (index, entry) in reader.entries().map_err(|error| broken(archive, &error))?.enumerate() {
        let entry = entry.map_err(|error| broken(archive, &error))?;
        let name = entry.path().map_err(|error| broken(archive, &error))?.display().to_string();
        if is_stray(index, &name, entry.header(), seal, manifest) {
            found.push(name);
        }
    }
    Ok(found)
}

fn is_stray(index: usize, name: &str, header: &tar::Header, seal: &Seal, manifest: &Manifest) -> bool {
    let is_of_head = index <= seal.signatures.len();
    !is_of_head && !header.entry_type().is_dir() && !manifest.files.iter().any(|item| item.file == name)
}

/// How the files of an archive differ from its manifest: one error for each.
pub(super) fn differences(archive: &Path, manifest: &Manifest) -> Result<Vec<Error>, Error> {
    let mut reader = open(archive)?;
    let mut problems = Vec::new();
    let mut found = BTreeSet::new();
    for entry in reader.entries().map_err(|error| broken(archive, &error))? {
        let entry = entry.map_err(|error| broken(archive, &error))?;
        let name = entry.path().map_err(|error| broken(archive, &error))?.display().to_string();
        let Some(item) = manifest.files.iter().find(|item| item.file == name) else { continue };
        let mut sum = Sha256::new();
        // One that is larger than it says stops here.
        let mut content = HashingReader(entry.take(item.size.saturating_add(1)), &mut sum);
        std::io::copy(&mut content, &mut std::io::sink()).map_err(|error| broken(archive, &error))?;
        if bytes_to_hex(&sum.finalize()) != item.sha256 {
            problems.push(damaged(archive, &name));
        }
        found.insert(name);
    }
    let missing = manifest.files.iter().filter(|item| !found.contains(&item.file));
    problems.extend(missing.map(|item| lacks_file(archive, item)));
    Ok(problems)
}

/// Writes an archive again with other signatures; every file stays as it is, and is compared with the manifest.
pub(super) fn sign_again(archive: &Path, seal: &Seal, manifest: &Manifest) -> Result<(), Error> {
    // Of a link, what it leads to is replaced.
    let archive = archive.canonicalize().map_err(|error| Error::io("read", archive, &error))?;
    let cannot = |error: std::io::Error| Error::io("write", &archive, &error);
    let permissions = archive.metadata().map_err(cannot)?.permissions();
    let mut reader = open(&archive)?;
    let (to, mut writer) = begin(&archive, seal)?;
    let mut left: Vec<&Item> = manifest.files.iter().collect();
    for entry in reader.entries().map_err(|error| broken(&archive, &error))? {
        let entry = entry.map_err(|error| broken(&archive, &error))?;
        let name = entry.path().map_err(|error| broken(&archive, &error))?.display().to_string();
        let Some(at) = left.iter().position(|item| item.file == name) else { continue };
        let item = left.remove(at);
        let mut sum = Sha256::new();
        let mode = entry.header().mode().map_err(|error| broken(&archive, &error))?;
        append(&mut writer, &name, item.size, mode, HashingReader(entry.take(item.size), &mut sum)).map_err(cannot)?;
        if bytes_to_hex(&sum.finalize()) != item.sha256 {
            return Err(damaged(&archive, &name));
        }
    }
    if let Some(item) = left.first() {
        return Err(lacks_file(&archive, item));
    }
    to.as_file().set_permissions(permissions).map_err(cannot)?;
    finish(to, writer, &archive)
}

/// What is read goes through a digest.
pub(crate) struct HashingReader<'a, R>(pub R, pub &'a mut Sha256);

impl<R: Read> Read for HashingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.read(buffer)?;
        self.1.update(&buffer[..count]);
        Ok(count)
    }
}

fn damaged(archive: &Path, name: &str) -> Error {
    Error::new(format!("{} is damaged: {name} differs from its digest in the manifest", archive.display()))
}

fn lacks_file(archive: &Path, item: &Item) -> Error {
    Error::new(format!("{} is damaged: it has no {}", archive.display(), item.file))
}

/// Unpacks an archive into the user's cache, unless the same is there already. Gives the directory. `strict`: an archive with other
/// files than those of the manifest is refused.
pub(super) fn unpack_bundle(
    archive: &Path,
    seal: &Seal,
    manifest: &Manifest,
    strict: bool,
    around: &ProcessEnvironment,
) -> Result<PathBuf, Error> {
    let cache = around.cache();
    let cache = cache.ok_or_else(|| Error::new("cannot unpack a bundle: neither XDG_CACHE_HOME nor HOME is set"))?;
    unpack_below(archive, seal, manifest, strict, &cache.join("windlass/bundles"))
}

/// As [`unpack_bundle`], into another cache.
pub(super) fn unpack_below(
    archive: &Path,
    seal: &Seal,
    manifest: &Manifest,
    strict: bool,
    cache: &Path,
) -> Result<PathBuf, Error> {
    let text = &seal.text;
    let root = cache.join(bytes_to_hex(&Sha256::digest(text)));
    let cannot = |error: std::io::Error| Error::io("write below", cache, &error);
    // Another user who can write there could put other programs in place of those of the archive.
    if let Some(open) = written_by_others(&root).map_err(cannot)? {
        let message = format!("cannot unpack {}: another user can write to {}", archive.display(), open.display());
        return Err(Error::new(message).hint("set XDG_CACHE_HOME to a directory of your own"));
    }
    if root.join(MANIFEST).is_file() {
        return Ok(root);
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(cache).map_err(cannot)?;
    let own = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    let temporary = tempfile::Builder::new().permissions(own).tempdir_in(cache).map_err(cannot)?;
    let mut reader = open(archive)?;
    for (index, entry) in reader.entries().map_err(|error| broken(archive, &error))?.enumerate() {
        let mut entry = entry.map_err(|error| broken(archive, &error))?;
        let name = entry.path().map_err(|error| broken(archive, &error))?.display().to_string();
        if strict && is_stray(index, &name, entry.header(), seal, manifest) {
            let message = format!("{} has a file that its manifest does not list: {name}", archive.display());
            return Err(Error::new(message));
        }
        // Only what the manifest lists; its paths were seen to stay inside.
        let Some(item) = manifest.files.iter().find(|item| item.file == name) else { continue };
        let path = temporary.path().join(&item.file);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(cannot)?;
        }
        let mut file = File::create(&path).map_err(cannot)?;
        // One that is larger than it says stops here.
        std::io::copy(&mut (&mut entry).take(item.size.saturating_add(1)), &mut file)
            .map_err(|error| broken(archive, &error))?;
        if file_digest(&path)? != item.sha256 {
            return Err(damaged(archive, &name));
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode(&item.component));
        file.set_permissions(mode).map_err(cannot)?;
        file.sync_all().map_err(cannot)?;
    }
    if let Some(item) = manifest.files.iter().find(|item| !temporary.path().join(&item.file).is_file()) {
        return Err(lacks_file(archive, item));
    }
    // Last: a directory with it is whole.
    let mut file = File::create(temporary.path().join(MANIFEST)).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)?;
    file.sync_all().map_err(cannot)?;
    match std::fs::rename(temporary.path(), &root) {
        Ok(()) => {
            #[expect(clippy::let_underscore_must_use, reason = "the directory was renamed")]
            let _ = temporary.keep();
        }
        // Somebody else was faster.
        Err(_) if root.join(MANIFEST).is_file() => {}
        Err(error) => return Err(cannot(error)),
    }
    Ok(root)
}

fn open(archive: &Path) -> Result<tar::Archive<impl Read>, Error> {
    let file = File::open(archive).map_err(|error| Error::io("read", archive, &error))?;
    let decoder = zstd::Decoder::new(file).map_err(|error| broken(archive, &error))?;
    Ok(tar::Archive::new(decoder))
}

fn broken(archive: &Path, error: &std::io::Error) -> Error {
    Error::new(format!("cannot unpack {}: {error}", archive.display()))
}

/// Writes a file into an archive.
pub(crate) fn append<W: Write>(
    to: &mut tar::Builder<W>,
    name: &str,
    size: u64,
    mode: u32,
    content: impl Read,
) -> std::io::Result<()> {
    to.append_data(&mut member_header(size, mode), name, content)
}

/// The same files make the same archive: no times, no users.
pub(crate) fn member_header(size: u64, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Programs can be run; definitions and packages are only read.
fn mode(component: &str) -> u32 {
    match component {
        "crds" | "packages" => 0o644,
        _ => 0o755,
    }
}
