//! Editing a text file of the host: what is in it, and the write that makes it so.
//! What `lineinfile`, `blockinfile` and `replace` have in common.

use crate::modules::file_attributes::{self, DesiredAttributes, is_empty};
use crate::modules::file_diff;
use crate::modules::file_write::{self, Content, Write};
use crate::modules::{Controller, Diff, Error, host_links, host_path};
use crate::remote::{Attributes, FileKind, Links, Probe, Stat};

/// A file to edit; for a symbolic link, its target.
pub(in crate::modules) struct Target {
    pub path: String,
    pub there: Option<Stat>,
    pub text: Text,
    original: Vec<u8>,
}

impl Target {
    /// Reads the file, if there is one.
    pub(in crate::modules) async fn read_target(probe: &Probe, path: &str) -> Result<Target, Error> {
        Target::at(probe, path, true).await
    }

    /// As [`Target::read_target`]; unless it follows a symbolic link, that is to be replaced by the edited file.
    pub(in crate::modules) async fn at(probe: &Probe, path: &str, follow: bool) -> Result<Target, Error> {
        let mut path = probe.expand_on_host(path).await?;
        let mut there = probe.stat(&path, Links::Keep).await?;
        if there.as_ref().is_some_and(|stat| stat.kind == FileKind::Link) {
            // Also what replaces the link begins with the text of its target.
            let real = host_links::real_path(probe, &path).await?;
            if follow {
                path = real;
            }
            there = probe.stat(&path, Links::Follow).await?;
        }
        if there.as_ref().is_some_and(|stat| stat.kind == FileKind::Directory) {
            return Err(Error::failed(format!("cannot edit {path}: it is a directory")));
        }
        let original = match there {
            Some(_) => probe.read_file(&path).await?.unwrap_or_default(),
            None => Vec::new(),
        };
        Ok(Target { path, there, text: Text::decode(&original), original })
    }

    /// An error unless the file is there.
    pub(in crate::modules) fn must_exist(&self) -> Result<(), Error> {
        match self.there {
            Some(_) => Ok(()),
            None => Err(Error::failed(format!("cannot edit {}: no such file on the host", self.path))),
        }
    }

    /// As [`Target::must_exist`], for modules that make it when asked.
    pub(in crate::modules) fn must_exist_or_be_made(&self, create: bool) -> Result<(), Error> {
        if self.there.is_some() || create {
            return Ok(());
        }
        Err(Error::Failed {
            message: format!("cannot edit {}: no such file on the host", self.path),
            hint: Some("create: true creates it".to_owned()),
        })
    }
}

/// Text of a file that need not be UTF-8: bytes of another encoding become one character each, and bytes again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::modules) struct Text {
    pub characters: String,
    is_utf8: bool,
}

impl Text {
    pub(in crate::modules) fn decode(bytes: &[u8]) -> Text {
        match std::str::from_utf8(bytes) {
            Ok(text) => Text { characters: text.to_owned(), is_utf8: true },
            Err(_) => Text { characters: bytes.iter().copied().map(char::from).collect(), is_utf8: false },
        }
    }

    /// A text of ours in the file's characters, to be compared with it or put into it.
    pub(in crate::modules) fn adapt(&self, text: &str) -> String {
        if self.is_utf8 { text.to_owned() } else { text.bytes().map(char::from).collect() }
    }

    /// The bytes of an edited text.
    pub(in crate::modules) fn encode(&self, edited: &str) -> Vec<u8> {
        if self.is_utf8 {
            return edited.as_bytes().to_vec();
        }
        // All characters of such a text came from bytes.
        edited.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
    }
}

/// How an edited file is to be written.
pub(in crate::modules) struct WriteOptions<'a> {
    pub wanted: &'a DesiredAttributes,
    pub backup: bool,
    pub validate: Option<&'a str>,
    /// Whether missing directories above a new file are made.
    pub make_directories: bool,
}

/// What an edit makes of a file.
pub(in crate::modules) struct Edit {
    /// None: nothing is to be done.
    pub write: Option<Write>,
    pub diff: Vec<Diff>,
    /// Whether owner, group or mode of a file that is there change.
    pub attributes_change: bool,
}

/// Compares the edited text with the file.
pub(in crate::modules) async fn compare_text(
    probe: &Probe,
    here: &Controller<'_>,
    target: &Target,
    edited: &str,
    manner: &WriteOptions<'_>,
) -> Result<Edit, Error> {
    let new = target.text.encode(edited);
    let same = new == target.original && target.there.is_some();
    let attributes = match &target.there {
        Some(stat) => manner.wanted.lacking(stat),
        None => manner.wanted.for_new(FileKind::File),
    };
    let mut diff = Vec::new();
    if !same && here.diff && !here.no_log {
        diff.push(file_diff::edit(&target.path, &target.original, &new));
    }
    if let (Some(stat), true) = (&target.there, here.diff) {
        diff.extend(file_attributes::attributes_diff(&target.path, stat, &attributes));
    }
    if same && is_empty(&attributes) {
        return Ok(Edit { write: None, diff, attributes_change: false });
    }
    let mut directories = Vec::new();
    if target.there.is_none() && !here.check {
        directories = file_write::missing_directories(probe, host_path::parent(&target.path)).await?;
        if let (false, Some(missing)) = (manner.make_directories, directories.last()) {
            return Err(Error::failed(format!(
                "cannot create {}: the directory {missing} does not exist",
                target.path
            )));
        }
    }
    let attributes_change = target.there.is_some() && !is_empty(&attributes);
    let write = Write {
        path: target.path.clone(),
        directories: directories.into_iter().map(|path| (path, Attributes::default())).collect(),
        content: (!same).then_some(Content::Bytes(new)),
        attributes,
        back_up: manner.backup && target.there.is_some() && !same,
        validate: manner.validate.map(str::to_owned),
    };
    Ok(Edit { write: Some(write), diff, attributes_change })
}

/// Ansible's message for a change of the content and of the attributes.
pub(in crate::modules) fn message(content: &str, attributes_change: bool) -> String {
    match (content, attributes_change) {
        (content, false) => content.to_owned(),
        ("", true) => "ownership, perms or SE linux context changed".to_owned(),
        (content, true) => format!("{content} and ownership, perms or SE linux context changed"),
    }
}

/// The lines of a text, each with its newline.
pub(in crate::modules) fn split_lines(text: &str) -> Vec<String> {
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// A line without what ends it.
pub(in crate::modules) fn bare(line: &str) -> &str {
    line.trim_end_matches(['\r', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_survive_an_edit() {
        let bytes = b"caf\xe9 = 1\n";
        let text = Text::decode(bytes);
        assert_eq!(text.encode(&text.characters), bytes);
        let added = text.characters.clone() + &text.adapt("café\n");
        assert_eq!(text.encode(&added), b"caf\xe9 = 1\ncaf\xc3\xa9\n");
    }

    #[test]
    fn lines_keep_their_ends() {
        assert_eq!(split_lines("a\r\nb\nc"), ["a\r\n", "b\n", "c"]);
        assert_eq!(bare("a\r\n"), "a");
        assert!(split_lines("").is_empty());
    }

    #[test]
    fn messages_join_content_and_attributes() {
        assert_eq!(message("line added", false), "line added");
        assert_eq!(message("line added", true), "line added and ownership, perms or SE linux context changed");
        assert_eq!(message("", true), "ownership, perms or SE linux context changed");
    }
}
