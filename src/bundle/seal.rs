//! The manifest of a bundle as it was written, byte for byte, and the signatures beside it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::Error;
use super::manifest::{MANIFEST, Manifest};
use super::signature::{LARGEST_SIGNATURE, MadeSignature};

/// A manifest is not larger than this.
pub(super) const LARGEST_MANIFEST: u64 = 16 << 20;
/// A bundle has no more signatures than this.
const MOST_SIGNATURES: usize = 64;

/// What is signed, and the signatures. All that a bundle is trusted for comes from this text, read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    pub text: String,
    /// Sorted by name.
    pub signatures: Vec<SignatureFile>,
}

/// The file of one signature, whatever is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureFile {
    pub name: String,
    pub text: Vec<u8>,
}

impl Seal {
    /// Of a directory; None: it has no manifest.
    pub(super) fn of_directory(root: &Path) -> Result<Option<Seal>, Error> {
        let path = root.join(MANIFEST);
        let manifest = match File::open(&path) {
            Ok(file) => limited(file, LARGEST_MANIFEST, &path)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", &path, &error)),
        };
        let mut seal = Seal::new(manifest, &path)?;
        let cannot = |error: std::io::Error| Error::io("read", root, &error);
        for entry in std::fs::read_dir(root).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let Some(name) = entry.file_name().to_str().filter(|name| is_signature(name)).map(str::to_owned) else {
                continue;
            };
            let path = entry.path();
            // Opening a pipe would block.
            if !path.is_file() {
                return Err(Error::new(format!("{} is not a regular file", path.display())));
            }
            let file = File::open(&path).map_err(|error| Error::io("read", &path, &error))?;
            seal.add(name, limited(file, LARGEST_SIGNATURE, &path)?)?;
        }
        seal.signatures.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(seal))
    }

    /// Of the manifest's bytes; `path` is for messages.
    pub(super) fn new(manifest: Vec<u8>, path: &Path) -> Result<Seal, Error> {
        let text = String::from_utf8(manifest).map_err(|_| Error::new(format!("{} is not text", path.display())))?;
        Ok(Seal { text, signatures: Vec::new() })
    }

    pub(super) fn add(&mut self, name: String, text: Vec<u8>) -> Result<(), Error> {
        if self.signatures.len() == MOST_SIGNATURES {
            return Err(Error::new(format!("the bundle has more than {MOST_SIGNATURES} signatures")));
        }
        self.signatures.push(SignatureFile { name, text });
        Ok(())
    }

    /// Adds a signature. One that the same key made before is replaced; gives the name of the file.
    pub(super) fn put(&mut self, text: &str) -> Result<String, Error> {
        let key = |text: &[u8]| MadeSignature::parse_signature(text).ok().map(|made| made.key().clone());
        let own = key(text.as_bytes());
        if let Some(same) = self.signatures.iter_mut().find(|file| own.is_some() && key(&file.text) == own) {
            same.text = text.as_bytes().to_vec();
            return Ok(same.name.clone());
        }
        let names = std::iter::once(format!("{MANIFEST}.sig")).chain((2..).map(|n| format!("{MANIFEST}.{n}.sig")));
        let mut free = names.filter(|name| self.signatures.iter().all(|file| file.name != *name));
        let name = free.next().unwrap_or_default();
        self.add(name.clone(), text.as_bytes().to_vec())?;
        self.signatures.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(name)
    }

    /// What the text says; `path` is for messages.
    pub(super) fn parsed_manifest(&self, path: &Path) -> Result<Manifest, Error> {
        Manifest::parse_manifest(&self.text, path)
    }
}

/// Whether a file beside the manifest is a signature: `manifest.yaml.sig`, or with a word in between, `manifest.yaml.2.sig`.
pub(super) fn is_signature(name: &str) -> bool {
    let between = name.strip_prefix(MANIFEST).and_then(|rest| rest.strip_suffix(".sig"));
    between.is_some_and(|word| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        word.is_empty() || word.strip_prefix('.').is_some_and(|word| !word.is_empty() && word.bytes().all(plain))
    })
}

/// All of a file that is not larger than it may be.
pub(super) fn limited(from: impl Read, most: u64, path: &Path) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    from.take(most + 1).read_to_end(&mut content).map_err(|error| Error::io("read", path, &error))?;
    match content.len() as u64 > most {
        true => Err(Error::new(format!("{} is larger than {} KiB", path.display(), most >> 10))),
        false => Ok(content),
    }
}
