//! Files of credentials, by their paths, and the keys under which a Secret has them.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// The mode of most files: only their owner may read them.
pub(super) const PRIVATE: u32 = 0o600;

/// The directory of the files, in the text of a file that is not in any directory: files such as `etcdctl.env` name others.
const PLACE: &str = "@windlass-credentials@";

/// A file with its permission bits.
#[derive(Clone, PartialEq, Eq)]
pub struct CredentialFile {
    pub content: Vec<u8>,
    pub mode: u32,
}

/// Files by their paths, which are relative.
pub type CredentialFiles = BTreeMap<PathBuf, CredentialFile>;

/// All files of a directory and below; where they name the directory, [`PLACE`] is in its stead. Not those whose names begin with a
/// dot: files are written under such names first.
///
/// # Errors
/// A file cannot be read.
pub fn read_files(directory: &Path) -> io::Result<CredentialFiles> {
    read_some_files(directory, &[Path::new("")])
}

/// As [`read_files`], of some files and directories in it.
///
/// # Errors
/// A file cannot be read.
pub fn read_some_files(directory: &Path, some: &[&Path]) -> io::Result<CredentialFiles> {
    let mut files = CredentialFiles::new();
    let here = absolute_text(directory)?;
    for path in paths_below(directory, some)? {
        let whole = directory.join(&path);
        let content = match std::fs::read(&whole) {
            // Removed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            content => content.map_err(|error| with_path(&whole, &error))?,
        };
        let mode = std::fs::metadata(&whole).map_err(|error| with_path(&whole, &error))?.mode() & 0o777;
        files.insert(path, CredentialFile { content: replaced(content, &here, PLACE), mode });
    }
    Ok(files)
}

/// Writes files into a directory that is there; those in it only their owner may enter. [`PLACE`] becomes the directory.
///
/// # Errors
/// A file is there already, or cannot be written.
pub fn write_files(directory: &Path, files: &CredentialFiles) -> io::Result<()> {
    let here = absolute_text(directory)?;
    write_files_for(directory, &here, files)
}

/// As [`write_files`], into a directory that will have another path, `here`.
///
/// # Errors
/// A file is there already, or cannot be written.
pub fn write_files_for(directory: &Path, here: &str, files: &CredentialFiles) -> io::Result<()> {
    for (path, file) in files {
        let whole = directory.join(path);
        if let Some(parent) = whole.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|error| with_path(parent, &error))?;
        }
        let written = || -> io::Result<()> {
            let mut open = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&whole)?;
            open.write_all(&replaced(file.content.clone(), PLACE, here))?;
            open.set_permissions(std::fs::Permissions::from_mode(file.mode))?;
            open.sync_all()
        };
        written().map_err(|error| with_path(&whole, &error))?;
    }
    Ok(())
}

/// The path of a directory without links and relative parts.
fn absolute_text(directory: &Path) -> io::Result<String> {
    let path = std::fs::canonicalize(directory).map_err(|error| with_path(directory, &error))?;
    Ok(path.to_string_lossy().into_owned())
}

/// A text with another path in place of one. What is no text stays, and so does what only looks like the path: a short one may be in the middle
/// of another word, or of a key in base64.
fn replaced(content: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    let text = match String::from_utf8(content) {
        Ok(text) => text,
        Err(error) => return error.into_bytes(),
    };
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "+/_-.".contains(c);
    let mut written = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        let begins = !before.chars().next_back().or_else(|| written.chars().next_back()).is_some_and(is_of_word);
        let ends = after.starts_with('/') || !after.chars().next().is_some_and(is_of_word);
        written.push_str(before);
        written.push_str(if begins && ends { to } else { from });
        rest = after;
    }
    written.push_str(rest);
    written.into_bytes()
}

/// Whether a text names the directory of the files.
pub(super) fn names_place(text: &str) -> bool {
    text.contains(PLACE)
}

/// What shows whether a file was changed: its size, its time, its place on the disk and its mode.
pub(super) type FileState = (PathBuf, [i64; 5]);

/// The states of all files of a directory and below.
pub(super) fn states(directory: &Path) -> io::Result<Vec<FileState>> {
    let mut found = Vec::new();
    for path in paths_below(directory, &[Path::new("")])? {
        let Ok(file) = std::fs::symlink_metadata(directory.join(&path)) else { continue };
        let state = [file.size().cast_signed(), file.mtime(), file.mtime_nsec(), file.ino().cast_signed()];
        found.push((path, [state[0], state[1], state[2], state[3], i64::from(file.mode())]));
    }
    Ok(found)
}

/// The paths of the files below a directory, sorted: of `some`, which are relative to it, and of what is below these.
fn paths_below(directory: &Path, some: &[&Path]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let whole = directory.join(&folder);
        let entries = match std::fs::read_dir(&whole) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder != Path::new("") => continue,
            entries => entries.map_err(|error| with_path(&whole, &error))?,
        };
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let is_wanted = some.iter().any(|own| path.starts_with(own) || own.starts_with(&path));
            if entry.file_name().as_encoded_bytes().starts_with(b".") || !is_wanted {
                continue;
            }
            match entry.file_type()? {
                kind if kind.is_dir() => folders.push(path),
                kind if kind.is_file() => found.push(path),
                _ => {
                    let message = "neither a file nor a directory";
                    return Err(with_path(&directory.join(&path), &io::Error::other(message)));
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The key of a file in a Secret, which has letters, digits, `-`, `.` and `_` only: `/` becomes `__`, any other byte `_` and
/// two hexadecimal digits.
pub(super) fn key_of_path(path: &Path) -> String {
    let mut key = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => key.push(char::from(*byte)),
            b'/' => key.push_str("__"),
            other => key.push_str(&format!("_{other:02x}")),
        }
    }
    key
}

/// The path of the file that a Secret has under a key.
///
/// # Errors
/// The key is not one of those that [`key_of_path`] makes, or points outside of the directory.
pub(super) fn path_of_key(key: &str) -> Result<PathBuf, String> {
    let wrong = || format!("its key {key:?} is not the path of a file of credentials");
    let mut text = Vec::new();
    let mut rest = key.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'_' {
            text.push(byte);
            continue;
        }
        let digits = match rest.next().ok_or_else(wrong)? {
            b'_' => {
                text.push(b'/');
                continue;
            }
            first => [first, rest.next().ok_or_else(wrong)?],
        };
        let digits = std::str::from_utf8(&digits).map_err(|_| wrong())?;
        text.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
    }
    let path: PathBuf = Path::new(&String::from_utf8(text).map_err(|_| wrong())?).components().collect();
    let plain = path.components().all(|part| match part {
        Component::Normal(name) => !name.as_encoded_bytes().starts_with(b".") && !name.as_encoded_bytes().contains(&0),
        _ => false,
    });
    // Only that key, so that no two keys mean one file.
    if plain && !path.as_os_str().is_empty() && key_of_path(&path) == key { Ok(path) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_of_the_directory_is_replaced() {
        let text =
            "export CACERT=/mnt/etcd/ca.crt\nkey: eHh4/mnteXl5/mnt/abc\nplace: \"/mnt\"\nother: /mnt2/x /mnt.bak\n";
        let expected =
            "export CACERT=@/etcd/ca.crt\nkey: eHh4/mnteXl5/mnt/abc\nplace: \"@\"\nother: /mnt2/x /mnt.bak\n";
        assert_eq!(String::from_utf8(replaced(text.into(), "/mnt", "@")).unwrap(), expected);
    }

    #[test]
    fn every_path_has_a_key_and_comes_back() {
        for (path, key) in [
            ("admin.kubeconfig", "admin.kubeconfig"),
            ("karmada/hosts/cp-1/apiserver.key", "karmada__hosts__cp-1__apiserver.key"),
            ("a_b/c d", "a_5fb__c_20d"),
            ("ü", "_c3_bc"),
        ] {
            assert_eq!(key_of_path(Path::new(path)), key);
            assert_eq!(path_of_key(key).unwrap(), Path::new(path));
        }
    }

    #[test]
    fn a_key_that_leads_elsewhere_is_refused() {
        for key in [
            "..",
            "..__etc__passwd",
            "__etc__passwd",
            "a__..__..__b",
            "a_",
            "a_2",
            "a_zz",
            "",
            "_41",
            "a____b",
            ".x",
            "a__.lock",
            "a_00",
        ] {
            assert!(path_of_key(key).is_err(), "{key}");
        }
    }

    #[test]
    fn files_come_back_with_their_modes_and_hidden_ones_do_not() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut files = CredentialFiles::new();
        files.insert("etcd/ca.crt".into(), CredentialFile { content: b"cert".to_vec(), mode: 0o644 });
        files.insert("etcd/ca.key".into(), CredentialFile { content: vec![0, 255], mode: 0o600 });
        write_files(from.path(), &files).unwrap();
        std::fs::write(from.path().join("etcd/.windlass.1234"), "half").unwrap();
        let read = read_files(from.path()).unwrap();
        assert!(read == files);
        write_files(to.path(), &read).unwrap();
        assert_eq!(std::fs::metadata(to.path().join("etcd")).unwrap().mode() & 0o777, 0o700);
        assert_eq!(std::fs::metadata(to.path().join("etcd/ca.crt")).unwrap().mode() & 0o777, 0o644);
        // What is there is not replaced.
        assert_eq!(write_files(to.path(), &read).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        std::os::unix::fs::symlink("/etc/passwd", from.path().join("link")).unwrap();
        assert!(read_files(from.path()).is_err_and(|error| error.to_string().contains("link: neither")));
    }

    #[test]
    fn a_file_that_names_its_directory_names_the_new_one() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let line = |directory: &Path| format!("ETCDCTL_CACERT={}/etcd/ca.crt\n", directory.display());
        std::fs::write(from.path().join("etcdctl.env"), line(from.path())).unwrap();
        std::fs::write(from.path().join("binary"), [255, 0]).unwrap();
        let files = read_files(from.path()).unwrap();
        assert!(!String::from_utf8_lossy(&files[Path::new("etcdctl.env")].content).contains("/tmp"));
        write_files(to.path(), &files).unwrap();
        assert_eq!(std::fs::read_to_string(to.path().join("etcdctl.env")).unwrap(), line(to.path()));
        assert_eq!(std::fs::read(to.path().join("binary")).unwrap(), [255, 0]);
    }

    #[test]
    fn a_changed_file_has_another_state() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.crt");
        std::fs::write(&file, "one").unwrap();
        let before = states(directory.path()).unwrap();
        assert_eq!(before, states(directory.path()).unwrap());
        std::fs::write(directory.path().join(".new"), "two").unwrap();
        std::fs::rename(directory.path().join(".new"), &file).unwrap();
        assert_ne!(before, states(directory.path()).unwrap());
    }
}
