//! An archive on the host: what kind it is, which tool reads it, and which of its files lack attributes.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use super::super::file_attributes::{DesiredAttributes, is_empty};
use super::super::host_tree::Tree;
use super::super::{Error, file_write, host_path};
use crate::remote::{Attributes, Command, Probe, Remote, Stat};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Zip,
    Tar,
    Gzip,
    Bzip2,
    Xz,
    Zstd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// It compares, too.
    GnuTar,
    /// busybox's or BSD's.
    OtherTar,
    Unzip,
}

/// An archive on the host, and what is to be done with it.
pub(crate) struct Archive {
    pub format: Format,
    pub path: String,
    pub dest: String,
    pub keep_newer: bool,
    pub exclude: Vec<String>,
    pub include: Vec<String>,
    pub options: Vec<String>,
    pub owner: Option<String>,
    pub group: Option<String>,
    pub has_mode: bool,
}

impl Format {
    /// By how a file begins; what begins in no known way is a plain tar archive.
    fn of(start: &[u8]) -> Format {
        let known: [(&[u8], Format); 5] = [
            (b"PK", Format::Zip),
            (b"\x1f\x8b", Format::Gzip),
            (b"BZh", Format::Bzip2),
            (b"\xfd7zXZ", Format::Xz),
            (b"\x28\xb5\x2f\xfd", Format::Zstd),
        ];
        known.into_iter().find(|(magic, _)| start.starts_with(magic)).map_or(Format::Tar, |(_, format)| format)
    }

    /// Of a file of the controller.
    pub(crate) fn of_file(path: &Path) -> Result<Format, Error> {
        let mut start = Vec::new();
        let file = std::fs::File::open(path).map_err(|error| file_write::unreadable(path, &error))?;
        file.take(8).read_to_end(&mut start).map_err(|error| file_write::unreadable(path, &error))?;
        match start.is_empty() {
            true => Err(Error::failed(format!("cannot unpack {}: it is empty", path.display()))),
            false => Ok(Format::of(&start)),
        }
    }

    /// Of a file of the host.
    pub(crate) async fn detect_format(probe: &Probe, path: &str) -> Result<Format, Error> {
        let output = probe.query(&Command::program(["head", "-c", "8", "--", path])).await?;
        match output.code {
            0 => Ok(Format::of(&output.stdout)),
            _ => Err(refused(&format!("read {path}"), &output.stderr)),
        }
    }

    /// Ansible's name for what handles it.
    pub(crate) fn handler(self) -> &'static str {
        match self {
            Format::Zip => "ZipArchive",
            Format::Tar => "TarArchive",
            Format::Gzip => "TgzArchive",
            Format::Bzip2 => "TarBzipArchive",
            Format::Xz => "TarXzArchive",
            Format::Zstd => "TarZstdArchive",
        }
    }

    /// tar's option for it.
    pub(crate) fn option(self) -> Option<&'static str> {
        match self {
            Format::Zip | Format::Tar => None,
            Format::Gzip => Some("-z"),
            Format::Bzip2 => Some("-j"),
            Format::Xz => Some("-J"),
            Format::Zstd => Some("--use-compress-program=zstd"),
        }
    }
}

impl Archive {
    /// The host's tool for it.
    pub(crate) async fn tool(&self, probe: &Probe) -> Result<Tool, Error> {
        let program = if self.format == Format::Zip { "unzip" } else { "tar" };
        if probe.which(program).await?.is_none() {
            return Err(Error::Failed {
                message: format!("cannot unpack {}: the host has no {program}", self.path),
                hint: Some(format!("install it with an earlier task: package: {{name: {program}}}")),
            });
        }
        if self.format == Format::Zip {
            return Ok(Tool::Unzip);
        }
        let version = probe.query(&Command::program(["tar", "--version"])).await?;
        let is_gnu = String::from_utf8_lossy(&version.stdout).contains("GNU tar");
        Ok(if is_gnu { Tool::GnuTar } else { Tool::OtherTar })
    }
}

/// Refuses a name that is not UTF-8, if attributes are wanted: windlass could not set those of its file.
pub(super) fn refuse_unreadable_name(archive: &Archive, name: Option<&str>) -> Result<(), Error> {
    let wants = archive.owner.is_some() || archive.group.is_some() || archive.has_mode;
    match name.filter(|_| wants) {
        None => Ok(()),
        Some(name) => Err(Error::Failed {
            message: format!("cannot set the attributes of {name:?}: the name in the archive is not UTF-8"),
            hint: Some("leave owner, group and mode away, or rename the file in the archive".to_owned()),
        }),
    }
}

/// The unpacked paths whose attributes are not as wanted.
pub(super) async fn lacking(
    probe: &Probe,
    dest: &str,
    names: &[String],
    wanted: &DesiredAttributes,
) -> Result<Vec<(String, Stat, Attributes)>, Error> {
    if wanted.is_nothing() {
        return Ok(Vec::new());
    }
    // The top directory may have no entry in the archive.
    let tops = names.iter().filter_map(|name| name.split_once('/')).map(|(top, _)| top);
    let all = names.iter().map(|name| name.trim_end_matches('/')).chain(tops);
    let paths: BTreeSet<&str> = all.filter(|name| !matches!(*name, "" | ".")).collect();
    let paths: Vec<String> = paths.into_iter().map(str::to_owned).collect();
    let found = Tree::of_paths(probe, dest, &paths).await?.sorted();
    let lacking = found.into_iter().map(|(name, stat)| {
        let attributes = wanted.lacking(&stat);
        (host_path::join_path(dest, &name), stat, attributes)
    });
    Ok(lacking.filter(|(_, _, attributes)| !is_empty(attributes)).collect())
}

/// Removes those of its further arguments that are files and changed after the first one did. The find of busybox has no
/// `-cnewer`: there, whole seconds count.
pub(super) const REMOVE_NEWER: &str = r#"begun=$1
shift
if find "$begun" -maxdepth 0 -cnewer "$begun" >/dev/null 2>&1
then is_newer() { [ "$(find "$1" -maxdepth 0 -cnewer "$begun")" ]; }
else
since=$(stat -c %Z "$begun") || exit
is_newer() { [ "$(stat -c %Z "$1")" -ge "$since" ]; }
fi
for file
do
[ -f "$file" ] && [ ! -h "$file" ] && is_newer "$file" || continue
rm -f "$file" || exit
done"#;

/// Removes those files of the archive that changed after `begun` was made. Others were there before: tar lists a name also when
/// it leaves the file alone.
pub(super) async fn remove_files(
    remote: &Remote,
    archive: &Archive,
    names: &[String],
    begun: &str,
) -> Result<(), Error> {
    for some in names.chunks(500) {
        let mut argv: Vec<String> = ["sh", "-c", REMOVE_NEWER, "sh", begun].map(str::to_owned).to_vec();
        argv.extend(some.iter().map(|name| host_path::join_path(&archive.dest, name)));
        let output = remote.run(&Command::program(argv)).await?;
        if output.code != 0 {
            let what = format!("remove what was only partly unpacked in {}", archive.dest);
            return Err(refused(&what, &output.stderr));
        }
    }
    Ok(())
}

/// The host's words for why something did not work, on one line.
pub(super) fn refused(what: &str, stderr: &[u8]) -> Error {
    let reason = String::from_utf8_lossy(stderr).trim().replace('\n', "; ");
    Error::failed(format!("cannot {what}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_known_by_how_they_begin() {
        assert_eq!(Format::of(b"PK\x03\x04"), Format::Zip);
        assert_eq!(Format::of(b"\x1f\x8b\x08"), Format::Gzip);
        assert_eq!(Format::of(b"\xfd7zXZ\0"), Format::Xz);
        assert_eq!(Format::of(b"etcd/"), Format::Tar);
    }
}
