//! Bundles in one file: tar, compressed with zstd, the manifest first.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::manifest::{MANIFEST, Manifest};
use super::{Error, bytes_to_hex, file_digest};
use crate::value::ProcessEnvironment;
use crate::value::ownership::written_by_others;

/// Fast, and smaller by two thirds.
const LEVEL: i32 = 6;
/// A manifest is not larger than this.
const LARGEST_MANIFEST: u64 = 16 << 20;

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
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As any new file of the person's: what their umask leaves of it.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let temporary = tempfile::Builder::new().permissions(permissions).tempfile_in(directory).map_err(cannot)?;
    let encoder = zstd::Encoder::new(temporary, LEVEL).map_err(cannot)?;
    let mut archive = tar::Builder::new(encoder);
    let text = manifest.to_yaml();
    append(&mut archive, MANIFEST, text.len() as u64, 0o644, text.as_bytes()).map_err(cannot)?;
    for item in &manifest.files {
        let path = root.join(&item.file);
        let file = File::open(&path).map_err(|error| Error::io("read", &path, &error))?;
        append(&mut archive, &item.file, item.size, mode(&item.component), file.take(item.size)).map_err(cannot)?;
    }
    let encoder = archive.into_inner().map_err(cannot)?;
    let temporary = encoder.finish().map_err(cannot)?;
    temporary.as_file().sync_all().map_err(cannot)?;
    temporary.persist(to).map(drop).map_err(|error| cannot(error.error))
}

/// The manifest of an archive, without unpacking it.
fn manifest_of(archive: &Path) -> Result<(Manifest, String), Error> {
    let mut entries = open(archive)?;
    let mut first = entries.entries().and_then(|mut all| all.next().transpose()).map_err(|e| broken(archive, &e))?;
    let entry = first.as_mut().filter(|entry| entry.path().is_ok_and(|path| path == Path::new(MANIFEST)));
    let entry = entry.ok_or_else(|| {
        Error::new(format!("{} is not a bundle: it does not start with {MANIFEST}", archive.display()))
    })?;
    let mut text = String::new();
    entry.take(LARGEST_MANIFEST).read_to_string(&mut text).map_err(|error| broken(archive, &error))?;
    let manifest = Manifest::parse_manifest(&text, &archive.join(MANIFEST))?;
    Ok((manifest, text))
}

/// Unpacks an archive into the user's cache, unless the same is there already. Gives the directory.
pub(super) fn unpack_bundle(archive: &Path, around: &ProcessEnvironment) -> Result<PathBuf, Error> {
    let cache = around.cache();
    let cache = cache.ok_or_else(|| Error::new("cannot unpack a bundle: neither XDG_CACHE_HOME nor HOME is set"))?;
    unpack_below(archive, &cache.join("windlass/bundles"))
}

/// As [`unpack_bundle`], into another cache.
pub(super) fn unpack_below(archive: &Path, cache: &Path) -> Result<PathBuf, Error> {
    let (manifest, text) = manifest_of(archive)?;
    let root = cache.join(bytes_to_hex(&Sha256::digest(&text)));
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
    for entry in reader.entries().map_err(|error| broken(archive, &error))? {
        let mut entry = entry.map_err(|error| broken(archive, &error))?;
        let name = entry.path().map_err(|error| broken(archive, &error))?.display().to_string();
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
            let message = format!("{} is damaged: {name} differs from its digest in the manifest", archive.display());
            return Err(Error::new(message));
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode(&item.component));
        file.set_permissions(mode).map_err(cannot)?;
        file.sync_all().map_err(cannot)?;
    }
    if let Some(item) = manifest.files.iter().find(|item| !temporary.path().join(&item.file).is_file()) {
        return Err(Error::new(format!("{} is damaged: it has no {}", archive.display(), item.file)));
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
