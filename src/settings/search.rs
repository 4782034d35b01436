//! The one configuration file that counts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::value::ProcessEnvironment;
use crate::value::origin::{Diagnostic, Source};

/// The configuration file that counts, and what is odd about the choice: the one that ANSIBLE_CONFIG names, `ansible.cfg`
/// in the working directory unless another user may have written it, `~/.ansible.cfg`, `/etc/ansible/ansible.cfg`.
pub(super) fn config_file(around: &ProcessEnvironment) -> (Option<PathBuf>, Vec<Diagnostic>) {
    let mut warnings = Vec::new();
    if let Some(named) = around.variable("ANSIBLE_CONFIG") {
        let mut path = around.resolve_path(named, &around.directory);
        if path.is_dir() {
            path.push("ansible.cfg");
        }
        if readable(&path) {
            return (Some(path), warnings);
        }
        let message = format!("ignored ANSIBLE_CONFIG: cannot read {}", path.display());
        warnings.push(Diagnostic::new(message, None));
    }
    let beside = around.directory.join("ansible.cfg");
    if readable(&beside) {
        let Some(doubt) = [&around.directory, &beside].into_iter().find_map(|path| around.doubt_about(path)) else {
            return (Some(beside), warnings);
        };
        let hint = "set ANSIBLE_CONFIG to it, or change the owner or mode";
        warnings.push(Diagnostic::new(format!("ignored {}: {doubt}", beside.display()), None).hint(hint));
    }
    let home = around.home.as_ref().map(|home| home.join(".ansible.cfg"));
    let found = home.into_iter().chain([around.etc.join("ansible.cfg")]).find(|path| readable(path));
    (found, warnings)
}

fn readable(path: &Path) -> bool {
    std::fs::File::open(path).is_ok_and(|file| file.metadata().is_ok_and(|found| !found.is_dir()))
}

/// The text of a file; its path is shown as one would write it from the working directory.
pub(super) fn read_config_file(path: &Path, around: &ProcessEnvironment) -> Result<Arc<Source>, Diagnostic> {
    let wrong = |why: &dyn std::fmt::Display| Diagnostic::new(format!("cannot read {}: {why}", path.display()), None);
    let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is not UTF-8 text"))?;
    let shown = path.strip_prefix(&around.directory).unwrap_or(path);
    Ok(Arc::new(Source::new(shown, text)))
}
