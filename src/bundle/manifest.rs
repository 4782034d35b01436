//! `manifest.yaml`: what a bundle holds, file by file.

use std::path::{Component, Path};

use minijinja::value::Serde;
use serde::{Deserialize, Serialize};

use super::Error;
use super::seal::is_signature;
use crate::value::terminal::alters_display;
use crate::value::vault::Keyring;
use crate::value::{Value, yaml};

/// The file's name.
pub const MANIFEST: &str = "manifest.yaml";
/// The architecture of what runs everywhere, or nowhere.
pub const ANY: &str = "any";
/// What this program writes and reads.
const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub format: u32,
    /// Sorted by path.
    pub files: Vec<Item>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The program's name; `crds` for resource definitions, `packages` for packages of operating systems.
    pub component: String,
    /// Without a `v`.
    pub version: String,
    /// `amd64`, `arm64`, …, or `any`.
    pub architecture: String,
    /// Relative to the manifest.
    pub file: String,
    /// Bytes.
    pub size: u64,
    /// Lower-case hex.
    pub sha256: String,
    /// Where the file came from: an address, an image. None: from a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Manifest {
    pub fn new(mut files: Vec<Item>) -> Manifest {
        files.sort_by(|a, b| a.file.cmp(&b.file));
        // A script that the images of several architectures have.
        files.dedup();
        Manifest { format: FORMAT, files }
    }

    /// From text; `path` is for messages.
    pub fn parse_manifest(text: &str, path: &Path) -> Result<Manifest, Error> {
        let source = crate::value::origin::Source::new(path, text);
        let documents = yaml::parse_yaml(&source.into()).map_err(|complaint| Error::new(complaint.to_string()))?;
        // A second document would be signed and not be read.
        let [document] = documents.as_slice() else {
            return Err(Error::new(format!("{} is not the manifest of a bundle", path.display())));
        };
        let value = document.to_value(&Keyring::default()).ok();
        let manifest: Option<Manifest> = value.and_then(|value| Manifest::deserialize(value).ok());
        let manifest =
            manifest.ok_or_else(|| Error::new(format!("{} is not the manifest of a bundle", path.display())))?;
        if manifest.format != FORMAT {
            let format = manifest.format;
            return Err(Error::new(format!(
                "{} has the format {format}; this windlass reads format {FORMAT}",
                path.display()
            )));
        }
        if let Some(item) = manifest.files.iter().find(|item| !is_inside(&item.file)) {
            return Err(Error::new(format!("{}: {:?} points outside the bundle", path.display(), item.file)));
        }
        match manifest.files.iter().find(|item| item.file == MANIFEST || is_signature(&item.file)) {
            Some(item) => Err(Error::new(format!("{}: {:?} is not a file of the bundle", path.display(), item.file))),
            None => manifest.refuse_hostile_texts(path).map(|()| manifest),
        }
    }

    /// Refuses texts that a terminal would obey, or that would look like others; and digests that are none. `path` is for messages.
    pub(super) fn refuse_hostile_texts(&self, path: &Path) -> Result<(), Error> {
        for item in &self.files {
            let Item { component, version, architecture, file, size: _, sha256, source } = item;
            let source = source.as_deref().unwrap_or_default();
            for text in [component, version, architecture, file, source] {
                if text.contains(alters_display) {
                    return Err(Error::new(format!("{}: {text:?} has control characters", path.display())));
                }
            }
            let is_digit = |c: char| c.is_ascii_digit() || matches!(c, 'a'..='f');
            if sha256.len() != 64 || !sha256.chars().all(is_digit) {
                return Err(Error::new(format!("{}: the sha256 of {file:?} is no digest", path.display())));
            }
        }
        Ok(())
    }

    pub fn to_yaml(&self) -> String {
        let style = yaml::YamlStyle { sort_keys: false, width: 200, ..yaml::YamlStyle::default() };
        yaml::emit(&Value::from(Serde(self)), &style)
    }
}

/// Whether a path stays below where it is joined to.
fn is_inside(file: &str) -> bool {
    !file.is_empty() && Path::new(file).components().all(|part| matches!(part, Component::Normal(_)))
}
