//! The environment and the working directory of the user who runs windlass, read once at the start.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::home;

/// What surrounds a program: its environment and its working directory.
///
/// The default has no variables and no home directory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProcessEnvironment {
    pub variables: BTreeMap<String, String>,
    /// Variables whose values are not UTF-8 text.
    pub unreadable: BTreeMap<String, OsString>,
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
        let (mut variables, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => variables.extend([(name, value)]),
                Err(value) => unreadable.extend([(name, value)]),
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

    /// A relative path begins at the working directory. `a/./b` and a slash at the end are the same path.
    pub fn absolute(&self, path: impl AsRef<Path>) -> PathBuf {
        self.directory.join(path).components().collect()
    }

    /// A program that gets this environment and this working directory, whatever this process has by now.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.variables).envs(&self.unreadable);
        if !self.directory.as_os_str().is_empty() {
            command.current_dir(&self.directory);
        }
        command
    }

    /// The user's kubeconfig: the files of `KUBECONFIG`, or else `~/.kube/config`. Empty without a home directory.
    pub fn kubeconfig_files(&self) -> Vec<PathBuf> {
        let named = std::env::split_paths(self.variable("KUBECONFIG").unwrap_or_default());
        let named = named.into_iter().filter(|path| !path.as_os_str().is_empty());
        let named: Vec<PathBuf> = named.map(|path| self.absolute(path)).collect();
        match named.is_empty() {
            true => self.home.iter().map(|home| home.join(".kube/config")).collect(),
            false => named,
        }
    }

    /// Where programs of the user keep what they can make again: `XDG_CACHE_HOME`, or else `~/.cache`.
    pub fn cache(&self) -> Option<PathBuf> {
        let named = self.variable("XDG_CACHE_HOME").map(PathBuf::from);
        named.or_else(|| self.home.as_ref().map(|home| home.join(".cache")))
    }

    /// Why another user may have written a file, or files of a directory: what they say starts programs. A group may share a directory,
    /// as with Ansible. With sudo, the user who called it counts as this one, as with git.
    pub fn doubt_about(&self, path: &Path) -> Option<String> {
        let found = std::fs::metadata(path).ok()?;
        if found.mode() & 0o002 != 0 {
            return Some(format!("every user can write to {}", path.display()));
        }
        let me = rustix::process::geteuid().as_raw();
        let caller = self.variable("SUDO_UID").filter(|_| me == 0).and_then(|id| id.parse().ok());
        let is_own = [Some(0), Some(me), caller].contains(&Some(found.uid()));
        (!is_own).then(|| format!("{} belongs to another user", path.display()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_the_environment_of_the_run_and_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let directory = std::fs::canonicalize(directory.path()).unwrap();
        let variables = BTreeMap::from([("OF_THE_RUN".to_owned(), "yes".to_owned())]);
        let around = ProcessEnvironment { variables, directory: directory.clone(), ..ProcessEnvironment::default() };
        // Cargo sets this one for the test's own process.
        let script = "echo \"$OF_THE_RUN${CARGO_MANIFEST_DIR+ and of the process}\"; pwd";
        let output = around.command("/bin/sh").args(["-c", script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("yes\n{}\n", directory.display()));
    }

    #[test]
    fn a_path_begins_at_the_working_directory() {
        let around = ProcessEnvironment { directory: "/srv".into(), ..ProcessEnvironment::default() };
        for (path, absolute) in [("a/./b/", "/srv/a/b"), ("./a", "/srv/a"), ("", "/srv"), ("/x", "/x")] {
            assert_eq!(around.absolute(path), Path::new(absolute));
        }
    }

    #[test]
    fn the_kubeconfig_is_that_of_the_variable_or_of_the_home_directory() {
        let around = |named: &str| ProcessEnvironment {
            variables: BTreeMap::from([("KUBECONFIG".to_owned(), named.to_owned())]),
            directory: "/srv".into(),
            home: Some("/home/me".into()),
            ..ProcessEnvironment::default()
        };
        assert_eq!(around("a::/b").kubeconfig_files(), [Path::new("/srv/a"), Path::new("/b")]);
        assert_eq!(around("").kubeconfig_files(), [Path::new("/home/me/.kube/config")]);
        assert!(ProcessEnvironment::default().kubeconfig_files().is_empty());
    }
}
