//! Modules that a person wrote: where their files are looked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::include;
use super::inherit::InheritedKeywords;
use super::loader::LoadState;
use super::paths::normal;
use crate::value::Origin;
use crate::value::doc::Doc;
use crate::value::origin::Diagnostic;

/// Extensions of files next to modules that are not modules.
const NO_MODULES: &[&str] =
    &["md", "txt", "rst", "yml", "yaml", "json", "ini", "cfg", "bak", "orig", "swp", "pyc", "rpm"];

impl LoadState<'_> {
    /// The module of that name, includes and imports among them.
    ///
    /// # Errors
    /// When a file has the name of a module of windlass, or is no module that can be run.
    pub(super) fn module(
        &self,
        name: &str,
        origin: &Origin,
        around: &InheritedKeywords,
    ) -> Result<Option<&'static Doc>, Diagnostic> {
        let known = include::doc(name).or_else(|| self.loader.known.module(name));
        let short = name.strip_prefix("ansible.legacy.").unwrap_or(name);
        let file = if short.contains('.') { None } else { self.own_file(short, around) };
        match (known, file) {
            (known, None) => Ok(known),
            (Some(doc), Some(file)) => {
                let message = format!(
                    "{name:?} is a module of windlass, and {} has the same name",
                    self.loader.shown(&file).display()
                );
                let hint =
                    format!("write \"{}.{short}\" for the module of windlass, or rename the file", doc.collection);
                Err(Diagnostic::new(message, Some(origin)).hint(hint))
            }
            (None, Some(file)) => self
                .loader
                .known
                .own_module(short, self.loader.shown(&file))
                .map(Some)
                .map_err(|(message, hint)| Diagnostic::new(message, Some(origin)).hint(hint)),
        }
    }

    /// The file of a module: in `library/` of the role, beside the playbook, in that of the play's other roles, and where
    /// configuration says.
    fn own_file(&self, name: &str, around: &InheritedKeywords) -> Option<PathBuf> {
        let roles = self.open_roles.iter().rev().cloned().chain(around.role.iter().map(|role| role.path.clone()));
        let own = Some(self.base.directory.clone()).filter(|_| !self.loader.ignores_beside);
        let beside = roles.chain(own);
        let all = beside.chain(self.all_roles.iter().map(|role| role.path.clone()));
        let mut places = all.map(|place| place.join("library")).chain(self.loader.library.iter().cloned());
        places.find_map(|place| self.library(&normal(&place)).get(name).cloned())
    }

    fn library(&self, directory: &Path) -> Arc<BTreeMap<String, PathBuf>> {
        let mut libraries = self.loader.libraries.lock();
        let known = libraries.entry(directory.to_owned());
        known.or_insert_with(|| Arc::new(files(directory))).clone()
    }
}

/// The modules of a directory; of two files with one name the first.
fn files(directory: &Path) -> BTreeMap<String, PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut files = BTreeMap::new();
    for path in paths.into_iter().filter(|path| path.is_file()) {
        let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned()).unwrap_or_default();
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !name.starts_with(['.', '_']) && !ending.ends_with('~') && !NO_MODULES.contains(&&*ending) {
            files.entry(name).or_insert(path);
        }
    }
    files
}
