//! Where settings come from outside the command line: the environment, and the one configuration file that counts.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::value::home;
use crate::value::origin::{Complaint, Source};

/// What surrounds a program, as far as settings depend on it.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    pub variables: BTreeMap<String, String>,
    /// The working directory.
    pub directory: PathBuf,
    pub home: Option<PathBuf>,
    /// `/etc/ansible`.
    pub etc: PathBuf,
}

impl Surroundings {
    /// Those of this process. A variable that is no UTF-8 text is not there.
    pub fn of_process() -> Surroundings {
        let text = |text: std::ffi::OsString| text.into_string().ok();
        let variables = std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        Surroundings {
            variables: variables.collect(),
            directory: std::env::current_dir().unwrap_or_default(),
            home: home::directory(),
            etc: "/etc/ansible".into(),
        }
    }

    /// A variable of the environment; an empty one counts as none.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A path with `~`, `$NAME`, `${NAME}` and `{{CWD}}` replaced, absolute; a relative one begins at `base`.
    pub fn path(&self, text: &str, base: &Path) -> PathBuf {
        let text = text.replace("{{CWD}}", &self.directory.display().to_string());
        let text = self.with_variables(&text);
        let path = base.join(home::expand_in(self.home.as_deref(), &text));
        // `a/./b` and a slash at the end are the same path.
        path.components().collect()
    }

    fn with_variables(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let named = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let (name, length) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                Some((name, _)) => (name, name.len() + 2),
                None => {
                    let end = after.find(|c| !named(c)).unwrap_or(after.len());
                    (&after[..end], end)
                }
            };
            match self.variables.get(name).filter(|_| !name.is_empty()) {
                Some(value) => out.push_str(value),
                // What names nothing stays as it is.
                None => out.push_str(&rest[at..=at + length]),
            }
            rest = &after[length..];
        }
        out + rest
    }
}

/// The configuration file that counts, and what is odd about the choice: the one that ANSIBLE_CONFIG names, `ansible.cfg`
/// in the working directory unless everyone may write there, `~/.ansible.cfg`, `/etc/ansible/ansible.cfg`.
pub(super) fn file(around: &Surroundings) -> (Option<PathBuf>, Vec<Complaint>) {
    let mut warnings = Vec::new();
    if let Some(named) = around.variable("ANSIBLE_CONFIG") {
        let mut path = around.path(named, &around.directory);
        if path.is_dir() {
            path.push("ansible.cfg");
        }
        if readable(&path) {
            return (Some(path), warnings);
        }
        let message = format!("ignored ANSIBLE_CONFIG: cannot read {}", path.display());
        warnings.push(Complaint::new(message, None));
    }
    let beside = around.directory.join("ansible.cfg");
    let everyone = std::fs::metadata(&around.directory).is_ok_and(|found| found.permissions().mode() & 0o002 != 0);
    if !everyone && readable(&beside) {
        return (Some(beside), warnings);
    }
    if everyone && beside.exists() {
        let message = format!("ignored {}: every user can write to its directory", beside.display());
        let hint = "set ANSIBLE_CONFIG to it, or remove the permission with chmod o-w";
        warnings.push(Complaint::new(message, None).hint(hint));
    }
    let home = around.home.as_ref().map(|home| home.join(".ansible.cfg"));
    let found = home.into_iter().chain([around.etc.join("ansible.cfg")]).find(|path| readable(path));
    (found, warnings)
}

fn readable(path: &Path) -> bool {
    std::fs::File::open(path).is_ok_and(|file| file.metadata().is_ok_and(|found| !found.is_dir()))
}

/// The text of a file; its path is shown as one would write it from the working directory.
pub(super) fn read(path: &Path, around: &Surroundings) -> Result<Arc<Source>, Complaint> {
    let wrong = |why: &dyn std::fmt::Display| Complaint::new(format!("cannot read {}: {why}", path.display()), None);
    let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is not UTF-8 text"))?;
    let shown = path.strip_prefix(&around.directory).unwrap_or(path);
    Ok(Arc::new(Source::new(shown, text)))
}
