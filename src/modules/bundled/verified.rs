//! The note beside installed programs: which digest each had, and how its file looked to the file system then. A file that
//! looks the same still has the same content, so an unchanged run need not read it: see docs/how-to/bundle.md for the limits.

use std::collections::HashMap;

use crate::modules::Error;
use crate::remote::{Attributes, Command, Probe, Remote};

/// The note's name in a version's directory.
pub(super) const NOTE: &str = ".verified";
/// Only its owner can read and write it.
const NOTE_MODE: u32 = 0o600;

/// Prints a line `stat HEX-MODE UID INODE SIZE MTIME CTIME NAME` for each file that is there, then the note's own lines.
const LOOK: &str = "\
cd \"$1\" 2>/dev/null || exit 0
shift
stat -c 'stat %f %u %i %s %.9Y %.9Z %n' -- \"$@\" 2>/dev/null
[ -r .verified ] && sed 's/^/note /' .verified
exit 0";

/// How a file looks to the file system: `inode size mtime ctime`. No program can set ctime; every write updates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileIdentity(String);

/// A regular file of a version's directory.
#[derive(Debug, Clone)]
pub(super) struct InstalledFile {
    pub looks: FileIdentity,
    /// The lower 12 bits.
    pub mode: u32,
    uid: u32,
}

/// A version's directory.
#[derive(Debug, Default)]
pub(super) struct Directory {
    files: HashMap<String, InstalledFile>,
    /// By name: digest and looks.
    noted: HashMap<String, (String, FileIdentity)>,
}

impl Directory {
    /// Looks at these programs and at the note, in one request, and reads no program. No directory: nothing is seen.
    pub(super) async fn read_directory(probe: &Probe, directory: &str, programs: &[&str]) -> Result<Directory, Error> {
        let arguments = ["/bin/sh", "-c", LOOK, "sh", directory, NOTE].into_iter().chain(programs.iter().copied());
        let answer = probe.query(&Command::program(arguments)).await?;
        let mut found = Directory::default();
        for line in String::from_utf8_lossy(&answer.stdout).lines() {
            match line.split_once(' ') {
                Some(("stat", line)) => found.files.extend(file(line)),
                Some(("note", line)) => found.noted.extend(noted(line)),
                _ => {}
            }
        }
        Ok(found)
    }

    /// None: there is no regular file of that name.
    pub(super) fn seen_file(&self, name: &str) -> Option<&InstalledFile> {
        self.files.get(name)
    }

    /// The digest that a program has, as far as the note can be trusted to know: it is the program's owner's alone, and
    /// the program looks as it did when the digest was taken.
    pub(super) fn recorded_digest(&self, name: &str) -> Option<&str> {
        let (file, note) = (self.files.get(name)?, self.files.get(NOTE)?);
        let (digest, looks) = self.noted.get(name)?;
        let own = note.uid == file.uid && note.mode == NOTE_MODE;
        (own && file.looks.tells_writes_apart() && *looks == file.looks).then_some(digest.as_str())
    }
}

impl FileIdentity {
    /// Where times have whole seconds only, a write in the same second would not be seen.
    fn tells_writes_apart(&self) -> bool {
        let fraction = self.0.rsplit_once('.').map_or("", |(_, fraction)| fraction);
        fraction.chars().any(|digit| digit != '0')
    }
}

/// Writes the note again: these programs, with their file state at the time of their digests or before.
pub(super) async fn write_verified(
    remote: &Remote,
    directory: &str,
    programs: &[(&str, &str, FileIdentity)],
) -> Result<(), Error> {
    let line = |(name, sha256, looks): &(&str, &str, FileIdentity)| format!("{sha256} {} {name}\n", looks.0);
    let content: String = programs.iter().map(line).collect();
    let attributes = Attributes { mode: Some(NOTE_MODE), ..Attributes::default() };
    remote.write(&format!("{directory}/{NOTE}"), content.as_bytes(), &attributes).await?;
    Ok(())
}

/// Reads `HEX-MODE UID INODE SIZE MTIME CTIME NAME`; None: no regular file.
fn file(line: &str) -> Option<(String, InstalledFile)> {
    const KIND: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    let mut words = line.splitn(3, ' ');
    let mode = u32::from_str_radix(words.next()?, 16).ok().filter(|mode| mode & KIND == REGULAR)?;
    let uid = words.next()?.parse().ok()?;
    let (looks, name) = looks_and_name(words.next()?)?;
    Some((name, InstalledFile { looks, mode: mode & 0o7777, uid }))
}

/// Reads `SHA256 INODE SIZE MTIME CTIME NAME`.
fn noted(line: &str) -> Option<(String, (String, FileIdentity))> {
    let (digest, rest) = line.split_once(' ')?;
    let (looks, name) = looks_and_name(rest)?;
    Some((name, (digest.to_owned(), looks)))
}

fn looks_and_name(text: &str) -> Option<(FileIdentity, String)> {
    let (at, _) = text.match_indices(' ').nth(3)?;
    Some((FileIdentity(text[..at].to_owned()), text[at + 1..].to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(note_mode: &str, note: &str, program: &str) -> Directory {
        let files = [file(&format!("{note_mode} 0 9 90 1.5 1.5 {NOTE}")), file(&format!("81ed 0 {program}"))];
        Directory { files: files.into_iter().flatten().collect(), noted: noted(note).into_iter().collect() }
    }

    #[test]
    fn the_note_counts_while_nothing_about_the_file_has_changed() {
        let note = "abc 7 100 1.25 2.25 etcd";
        assert_eq!(directory("8180", note, "7 100 1.25 2.25 etcd").recorded_digest("etcd"), Some("abc"));
        for other in ["8 100 1.25 2.25 etcd", "7 101 1.25 2.25 etcd", "7 100 1.26 2.25 etcd", "7 100 1.25 2.26 etcd"] {
            assert_eq!(directory("8180", note, other).recorded_digest("etcd"), None, "{other}");
        }
    }

    #[test]
    fn a_note_that_others_could_have_written_counts_for_nothing() {
        let line = "7 100 1.25 2.25 etcd";
        for mode in ["81b6", "81a4", "a1ff"] {
            assert_eq!(directory(mode, &format!("abc {line}"), line).recorded_digest("etcd"), None, "{mode}");
        }
    }

    #[test]
    fn times_of_whole_seconds_are_not_trusted() {
        for line in ["7 100 1 2 etcd", "7 100 1.250000000 2.000000000 etcd"] {
            assert_eq!(directory("8180", &format!("abc {line}"), line).recorded_digest("etcd"), None, "{line}");
        }
    }
}
