//! Where hosts come from. A source is a comma list, a file or a directory of files; each file is read by the
//! first kind in the list below that accepts it.

mod candidate;
mod ini;
mod list;
mod resource;
mod script;
mod yaml;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use self::candidate::Candidate;
pub use self::resource::read_referenced_secret;
use super::Inventory;
use crate::kubernetes::LIVE;
use crate::resource::{STORED, STORED_SUFFIX, refuse_stored};
use crate::value::Value;
use crate::value::origin::{Diagnostic, Origin};

/// All kinds, in the order in which they are asked.
///
/// To add one: write `sources/<name>.rs` with `accepts`, `read` and tests, add its `mod` line above and its entry
/// here, before those kinds that would accept its files too (`ini` accepts everything).
pub static SOURCES: &[SourceKind] = &[
    SourceKind {
        name: "list",
        summary: "host names with commas, `a,b,`",
        accepts: list::accepts_host_list,
        read: list::read_host_list,
    },
    SourceKind {
        name: "script",
        summary: "an executable that prints JSON for `--list`",
        accepts: script::accepts_script,
        read: script::read_script,
    },
    SourceKind {
        name: "resource",
        summary: "a custom resource of windlass.dev: a KarmadaDeployment with its hosts and members",
        accepts: resource::accepts_resource,
        read: resource::read_deployment,
    },
    SourceKind {
        name: "yaml",
        summary: "YAML or JSON: groups with hosts",
        accepts: yaml::accepts_yaml,
        read: yaml::read_yaml_inventory,
    },
    SourceKind {
        name: "ini",
        summary: "sections with a host per line",
        accepts: ini::accepts_ini,
        read: ini::read_ini,
    },
];

/// A kind of source.
#[derive(Debug)]
pub struct SourceKind {
    pub name: &'static str,
    /// One line, no full stop.
    pub summary: &'static str,
    accepts: fn(&Candidate) -> bool,
    read: fn(&Candidate, &mut Inventory) -> Result<(), Vec<Diagnostic>>,
}

/// Reads a source into the inventory; gives its absolute path, or a comma list, `kube:...` or `stored:...` back as it is.
pub(super) fn read_source(inventory: &mut Inventory, source: &str) -> Result<PathBuf, Vec<Diagnostic>> {
    // Before lists: a path may have a comma, and must not lose its mark.
    if let Some(file) = source.strip_prefix(STORED) {
        resource::read_stored(inventory, Path::new(file))?;
        return Ok(source.into());
    }
    if source.contains(',') && !Path::new(source).exists() {
        read_one(inventory, &Candidate::list_candidate(source))?;
        return Ok(source.into());
    }
    if let Some(asked) = source.strip_prefix(LIVE) {
        resource::read_live(inventory, asked)?;
        return Ok(source.into());
    }
    let path = without_dots(&inventory.allowed.surroundings.absolute(source));
    refuse_stored(&path)?;
    if !path.exists() {
        return Err(Diagnostic::new(format!("no such inventory: {source:?}"), None)
            .hint(format!("to list hosts instead of a file, add a comma: \"{source},\""))
            .into());
    }
    read_path(inventory, &path)?;
    Ok(path)
}

fn read_path(inventory: &mut Inventory, path: &Path) -> Result<(), Vec<Diagnostic>> {
    let unreadable = |error| Diagnostic::new(format!("cannot read inventory {}: {error}", path.display()), None);
    if !path.is_dir() {
        refuse_stored(path)?;
        return read_one(inventory, &Candidate::open_candidate(path, &inventory.keyring)?);
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        names.push(entry.map_err(unreadable)?.file_name());
    }
    names.sort();
    for name in names.iter().filter(|name| !is_ignored(&name.to_string_lossy())) {
        read_path(inventory, &path.join(name))?;
    }
    Ok(())
}

fn read_one(inventory: &mut Inventory, candidate: &Candidate) -> Result<(), Vec<Diagnostic>> {
    let kind = SOURCES.iter().find(|kind| (kind.accepts)(candidate)).expect("ini accepts everything");
    (kind.read)(candidate, inventory)
}

/// Whether a name in a directory of sources is none: hidden, variables, documents and left-overs.
fn is_ignored(name: &str) -> bool {
    const NAMES: [&str; 3] = ["group_vars", "host_vars", "vars_plugins"];
    const ENDS: [&str; 13] =
        [".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry", STORED_SUFFIX];
    name.starts_with('.') || NAMES.contains(&name) || ENDS.iter().any(|end| name.ends_with(end))
}

/// The path without `.` and `..`; links are not followed.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

impl Inventory {
    /// Makes a group as a source names it.
    fn source_group(&mut self, name: &str, origin: Option<&Origin>) -> Result<(), Diagnostic> {
        if name.is_empty() {
            return Err(Diagnostic::new("a group must have a name", origin));
        }
        if !self.groups.contains_key(name) && !is_variable_name(name) {
            let why = "cannot be used in templates as groups.NAME";
            self.warn(format!("the group name {name:?} {why}"), origin);
        }
        self.put_group(name);
        Ok(())
    }

    /// Adds hosts as a source names them, with their variables, to a group that is there.
    fn source_hosts(
        &mut self,
        group: &str,
        named: &HostNames,
        vars: &[(Arc<str>, Value)],
        (path, origin): (&Path, Option<&Origin>),
    ) -> Result<(), Diagnostic> {
        for name in &named.names {
            if name.is_empty() {
                return Err(Diagnostic::new("a host must have a name", origin));
            }
            self.put_host(group, name, named.port, Some(path));
            let host = self.hosts.get_mut(name.as_str()).expect("it was just inserted");
            host.vars.extend(vars.iter().cloned());
        }
        vars.iter().for_each(|(name, _)| self.check_variable_name(name, origin));
        Ok(())
    }

    /// Sets a variable of a group that is there. `ansible_group_priority` is its priority, and no variable.
    fn source_group_var(
        &mut self,
        group: &str,
        name: &Arc<str>,
        value: Value,
        origin: Option<&Origin>,
    ) -> Result<(), Diagnostic> {
        self.check_variable_name(name, origin);
        let group = &mut self.groups[group];
        if &**name == "ansible_group_priority" {
            let number = value.as_i64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
            let message = || format!("ansible_group_priority must be a whole number, this is {value:?}");
            group.priority = number.ok_or_else(|| Diagnostic::new(message(), origin))?;
        } else {
            group.vars.insert(name.clone(), value);
        }
        Ok(())
    }

    fn check_variable_name(&mut self, name: &str, origin: Option<&Origin>) {
        if !is_variable_name(name) {
            let why = "has characters other than letters, digits and underscores, so templates cannot use it";
            self.warn(format!("the variable name {name:?} {why}"), origin);
        }
    }

    fn warn(&mut self, message: String, origin: Option<&Origin>) {
        self.warnings.push(match origin {
            Some(origin) => format!("{origin}: {message}"),
            None => message,
        });
    }
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The hosts that one entry expands to, and the port after them.
struct HostNames {
    names: Vec<String>,
    port: Option<u16>,
}

/// Reads `web[01:20].lan:2222`. What is no host name or address is taken as it is, colons and all.
fn host_names(entry: &str, origin: &Origin) -> Result<HostNames, Diagnostic> {
    let (host, port) = super::address::split_port(entry).unwrap_or((entry, None));
    let names = super::range::expand_range(host).map_err(|message| {
        Diagnostic::new(message, Some(origin)).hint("write a range as web[01:20], web[a:f] or web[1:10:2]")
    })?;
    Ok(HostNames { names, port })
}

#[cfg(test)]
mod tests;
