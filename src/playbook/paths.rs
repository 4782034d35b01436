//! Paths of playbooks, roles and what they include.

use std::path::{Component, Path, PathBuf};

use crate::value::nearest::nearest;

/// A path without `.` and `..`, as far as possible without reading the file system.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// What there is, in `directory` or below, that is called nearly as what was not found.
pub(super) fn similar_name(directory: &Path, name: &str) -> Option<String> {
    let (folder, name) = name.rsplit_once('/').map_or(("", name), |(folder, name)| (folder, name));
    let entries = std::fs::read_dir(directory.join(folder)).ok()?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    // Of a name without an ending, none was meant to matter.
    let bare =
        |found: String| if name.contains('.') { found } else { found.split('.').next().unwrap_or("").to_owned() };
    let names: Vec<String> = names.map(bare).collect();
    let similar = nearest(name, names.iter().map(String::as_str))?;
    Some(if folder.is_empty() { similar.to_owned() } else { format!("{folder}/{similar}") })
}

/// The directory of a file.
pub(super) fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_owned()
}
