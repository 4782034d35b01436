//! The environment and the working directory of the user who runs windlass, read once at the start.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use super::home;

/// What surrounds a program: its environment and its working directory.
///
/// The default has no variables and no home directory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProcessEnvironment {
    pub variables: BTreeMap<String, String>,
    /// The names of variables whose values are not UTF-8 text.
    pub unreadable: BTreeSet<String>,
    /// The working directory.
    pub directory: PathBuf,
    pub home: Option<PathBuf>,
    /// `/etc/ansible`.
    pub etc: PathBuf,
}

impl ProcessEnvironment {
    /// Those of this process, for the program's entry point, which passes them on: no other code reads the environment or
    /// the working directory.
    pub fn of_process() -> ProcessEnvironment {
        let (mut variables, mut unreadable) = (BTreeMap::new(), BTreeSet::new());
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => variables.extend([(name, value)]),
                Err(_) => unreadable.extend([name]),
            }
        }
        ProcessEnvironment {
            variables,
            unreadable,
            directory: std::env::current_dir().unwrap_or_default(),
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            etc: "/etc/ansible".into(),
        }
    }

    /// A path with `~` or `~/` at its start replaced.
    pub fn expand_home(&self, path: &str) -> PathBuf {
        home::expand_in(self.home.as_deref(), path)
    }

    /// A relative path begins at the working directory.
    pub fn absolute(&self, path: impl AsRef<Path>) -> PathBuf {
        self.directory.join(path)
    }

    /// Where programs of the user keep what they can make again: `XDG_CACHE_HOME`, or else `~/.cache`.
    pub fn cache(&self) -> Option<PathBuf> {
        let named = self.variable("XDG_CACHE_HOME").map(PathBuf::from);
        named.or_else(|| self.home.as_ref().map(|home| home.join(".cache")))
    }

    /// A variable of the environment; an empty one counts as none.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A path with `~`, `$NAME`, `${NAME}` and `{{CWD}}` replaced, absolute; a relative one begins at `base`.
    pub fn resolve_path(&self, text: &str, base: &Path) -> PathBuf {
        let text = text.replace("{{CWD}}", &self.directory.display().to_string());
        let text = self.with_variables(&text);
        let path = base.join(self.expand_home(&text));
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
                // The name of an unset variable is kept as text.
                None => out.push_str(&rest[at..=at + length]),
            }
            rest = &after[length..];
        }
        out + rest
    }
}

/// Values may be passwords.
impl fmt::Debug for ProcessEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Of what a program hardly has twice; hundreds of variables would take time.
impl Hash for ProcessEnvironment {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.directory, &self.home, self.variables.len()).hash(state);
    }
}
