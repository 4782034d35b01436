//! Members of tar archives, read with limits: only requested members are written, and only to the requested path.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};
use std::rc::Rc;

use crate::bundle::Error;

/// The most that an archive may unpack to.
const MOST: u64 = 8 << 30;
/// An archive that grows by more than this, and by more than [`SLACK`], is a bomb.
const RATIO: u64 = 200;
const SLACK: u64 = 64 << 20;
/// The most that headers between two members may be.
const HEADERS: u64 = 1 << 20;
const MOST_MEMBERS: u64 = 500_000;
/// The largest program.
const LARGEST: u64 = 2 << 30;

/// What a member is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ArchiveKind {
    File,
    Directory,
    /// To this path; hard or symbolic.
    Link(String),
    /// A device, a pipe, or anything else.
    Special,
}

pub(super) struct Member {
    /// Relative, without `.` and `..`.
    pub path: String,
    pub kind: ArchiveKind,
    pub size: u64,
}

/// A stream of which no more than allowed is read.
struct LimitedReader<R> {
    inner: R,
    at: Rc<Cell<u64>>,
    until: Rc<Cell<u64>>,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.until.get().saturating_sub(self.at.get());
        if left == 0 {
            return Err(std::io::Error::other("it unpacks to more than windlass accepts"));
        }
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.inner.read(&mut buffer[..room])?;
        self.at.set(self.at.get() + count as u64);
        Ok(count)
    }
}

/// A file without its compression, which its first bytes tell.
pub(super) fn decompressed(path: &Path) -> Result<Box<dyn Read>, Error> {
    let cannot = |error: std::io::Error| Error::io("read", path, &error);
    let mut file = File::open(path).map_err(cannot)?;
    let mut magic = Vec::new();
    (&file).take(4).read_to_end(&mut magic).map_err(cannot)?;
    file.seek(SeekFrom::Start(0)).map_err(cannot)?;
    let file = BufReader::with_capacity(1 << 17, file);
    Ok(match magic.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            let mut decoder = zstd::Decoder::with_buffer(file).map_err(cannot)?;
            decoder.window_log_max(27).map_err(cannot)?;
            Box::new(decoder)
        }
        _ => Box::new(file),
    })
}

/// Reads an archive to its end and shows every member. `packed`: its size on disk; `name` is for messages.
pub(super) fn walk(
    source: impl Read,
    packed: u64,
    name: &str,
    mut visit: impl FnMut(&Member, &mut dyn Read) -> Result<(), Error>,
) -> Result<(), Error> {
    let most = MOST.min(packed.saturating_mul(RATIO).saturating_add(SLACK));
    let (at, until) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(HEADERS.min(most))));
    let metered = LimitedReader { inner: source, at: Rc::clone(&at), until: Rc::clone(&until) };
    let mut archive = tar::Archive::new(metered);
    let broken = |error: std::io::Error| Error::new(format!("cannot unpack {name}: {error}"));
    let mut members = 0;
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        members += 1;
        if members > MOST_MEMBERS {
            return Err(Error::new(format!("cannot unpack {name}: it has more than {MOST_MEMBERS} members")));
        }
        let size = entry.size();
        until.set(at.get().saturating_add(size).saturating_add(HEADERS).min(most));
        let member = member(&entry, size, name)?;
        visit(&member, &mut entry)?;
    }
    until.set(most);
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).map_err(broken)?;
    Ok(())
}

fn member<R: Read>(entry: &tar::Entry<'_, R>, size: u64, name: &str) -> Result<Member, Error> {
    use tar::EntryType;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let written = text(&entry.path_bytes());
    let path = inside(&written).ok_or_else(|| Error::new(format!("{name}: {written:?} points outside the archive")))?;
    let kind = match entry.header().entry_type() {
        EntryType::Regular | EntryType::Continuous => ArchiveKind::File,
        EntryType::Directory => ArchiveKind::Directory,
        EntryType::Link | EntryType::Symlink => {
            ArchiveKind::Link(entry.link_name_bytes().map(|bytes| text(&bytes)).unwrap_or_default())
        }
        _ => ArchiveKind::Special,
    };
    Ok(Member { path, kind, size })
}

/// A path without `.`; None: it is absolute or has `..` in it.
pub(super) fn inside(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// The target of a link in `directory` of an archive; None: outside the archive.
fn leads_out(member: &Member, target: &str) -> bool {
    let mut depth = member.path.split('/').count().saturating_sub(1);
    for part in Path::new(target).components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return true,
        }
    }
    false
}

/// Whether a member is what `wanted` names: the path itself, or the end of it.
fn fits(path: &str, wanted: &str) -> bool {
    path == wanted || path.strip_suffix(wanted).is_some_and(|before| before.ends_with('/'))
}

/// A member that was taken, and where it is now.
pub(super) struct ExtractedMember {
    /// As it was asked for; below a directory: the path from that directory on.
    pub name: String,
    pub path: std::path::PathBuf,
}

/// Takes members of an archive into a directory: `wanted` as in a recipe. Refused: an archive with anything that is not a plain
/// file or directory and could do harm, a member that is missing, or that is there twice.
pub(super) fn extract_members(
    archive: &Path,
    wanted: &[String],
    to: &Path,
    name: &str,
) -> Result<Vec<ExtractedMember>, Error> {
    let packed = std::fs::metadata(archive).map_err(|error| Error::io("read", archive, &error))?.len();
    let mut taken: Vec<(usize, ExtractedMember)> = Vec::new();
    walk(decompressed(archive)?, packed, name, |member, content| {
        let Member { path, kind, .. } = member;
        match kind {
            ArchiveKind::Special => {
                return Err(Error::new(format!("{name}: {path} is a device or another special file")));
            }
            ArchiveKind::Link(target) if leads_out(member, target) => {
                return Err(Error::new(format!("{name}: the link {path} points outside the archive: {target}")));
            }
            _ => {}
        }
        for (number, wanted) in wanted.iter().enumerate() {
            let found = match wanted.strip_suffix('/') {
                Some(directory) => below(path, directory).filter(|_| *kind == ArchiveKind::File),
                None => fits(path, wanted).then(|| wanted.clone()),
            };
            let Some(found) = found else { continue };
            if let ArchiveKind::Link(target) = kind {
                return Err(Error::new(format!("{name}: {path} is a link to {target}, not a file")));
            }
            if *kind == ArchiveKind::Directory {
                continue;
            }
            if taken.iter().any(|(_, other)| other.name == found) {
                return Err(
                    Error::new(format!("{name} has {found} more than once")).hint("write more of its path in take")
                );
            }
            let file = to.join(taken.len().to_string());
            write_member(content, member, &file, name)?;
            taken.push((number, ExtractedMember { name: found, path: file }));
            break;
        }
        Ok(())
    })?;
    match wanted.iter().enumerate().find(|(number, _)| !taken.iter().any(|(of, _)| of == number)) {
        Some((_, missing)) => Err(Error::new(format!("{name} has no {missing}"))),
        None => Ok(taken.into_iter().map(|(_, taken)| taken).collect()),
    }
}

/// The path from a directory on, if it is a definition below it.
fn below(path: &str, directory: &str) -> Option<String> {
    let is_definition = path.ends_with(".yaml") || path.ends_with(".yml");
    let start = match path.strip_prefix(directory) {
        Some(rest) if rest.starts_with('/') => 0,
        _ => path.find(&format!("/{directory}/"))? + 1,
    };
    is_definition.then(|| path[start..].to_owned())
}

/// Writes one member to a new file.
pub(super) fn write_member(content: &mut dyn Read, member: &Member, to: &Path, name: &str) -> Result<(), Error> {
    let Member { path, size, .. } = member;
    if *size > LARGEST {
        return Err(Error::new(format!("{name}: {path} has {size} bytes; windlass accepts {LARGEST}")));
    }
    let cannot = |error: std::io::Error| Error::io("write", to, &error);
    let mut file = File::options().write(true).create_new(true).mode(0o755).open(to).map_err(cannot)?;
    let mut buffer = vec![0; 1 << 17];
    let mut left = *size;
    while left > 0 {
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let count = content.read(&mut buffer[..room]);
        let count = count.map_err(|error| Error::new(format!("cannot unpack {name}: {path}: {error}")))?;
        if count == 0 {
            return Err(Error::new(format!("cannot unpack {name}: {path} ends too early")));
        }
        file.write_all(&buffer[..count]).map_err(cannot)?;
        left -= count as u64;
    }
    file.sync_all().map_err(cannot)
}

#[cfg(test)]
mod tests;
