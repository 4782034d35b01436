//! The programs that are filters and lookups of a project: where they are.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgramKind {
    Filter,
    Lookup,
}

/// The programs of one run, by sort and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Programs(BTreeMap<(ProgramKind, String), PathBuf>);

impl Programs {
    /// Takes note of the programs in a directory (an absolute path), by their names without an ending. Of two of one name the first stays.
    pub(super) fn add_directory(&mut self, sort: ProgramKind, directory: &Path) {
        let Ok(entries) = std::fs::read_dir(directory) else { return };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let program = |path: &PathBuf| {
            std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        for path in paths.into_iter().filter(program) {
            if let Some(name) = path.file_stem().and_then(|name| name.to_str()) {
                self.0.entry((sort, name.to_owned())).or_insert(path.clone());
            }
        }
    }

    /// The program of that name.
    pub(super) fn find_program_path(&self, sort: ProgramKind, name: &str) -> Option<&Path> {
        // Most runs have none.
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&(sort, name.to_owned())).map(PathBuf::as_path)
    }

    /// Whether there are filters at all.
    pub(super) fn has_filters(&self) -> bool {
        self.0.keys().any(|(sort, _)| *sort == ProgramKind::Filter)
    }
}
