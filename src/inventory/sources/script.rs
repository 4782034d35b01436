//! An executable that answers `--list` with JSON: groups, and variables of hosts under `_meta.hostvars`.
//! One that gives no `_meta` is asked again with `--host NAME` for each host.

use std::sync::Arc;

use indexmap::IndexSet;
use serde_json::{Map, Value as Json};

use super::{Candidate, HostNames};
use crate::inventory::Inventory;
use crate::value::origin::{Diagnostic, Origin, Source};
use crate::value::vault::Keyring;
use crate::value::{ProcessEnvironment, Template, Value};

/// It can be executed, and is a program by its first bytes: an INI file that happens to have the bit is none.
pub(super) fn accepts_script(candidate: &Candidate) -> bool {
    let bytes = candidate.bytes();
    candidate.is_executable() && (bytes.starts_with(b"#!") || bytes.starts_with(b"\x7fELF"))
}

pub(super) fn read_script(candidate: &Candidate, inventory: &mut Inventory) -> Result<(), Vec<Diagnostic>> {
    inventory.printed = true;
    let around = inventory.allowed.surroundings.clone();
    let mut script = Script { candidate, around, hosts: IndexSet::new() };
    let Json::Object(answer) = script.ask(&["--list"])? else {
        return Err(script.complaint("printed something other than a JSON object for --list").into());
    };
    let mut meta = None;
    for (name, group) in &answer {
        if name == "_meta" {
            let vars = group.get("hostvars").and_then(Json::as_object);
            meta = Some(vars.ok_or_else(|| {
                script.complaint("printed a _meta without hostvars, or hostvars that are not an object")
            })?);
        } else {
            script.group(inventory, name, group)?;
        }
    }
    for host in std::mem::take(&mut script.hosts) {
        let asked;
        let vars = match meta {
            Some(meta) => meta.get(&host),
            None => {
                asked = script.ask(&["--host", &host])?;
                Some(&asked)
            }
        };
        let vars = vars.map_or(Ok(Vec::new()), |vars| script.vars(vars, &host, &inventory.keyring))?;
        let found = inventory.hosts.get_mut(host.as_str()).expect("all hosts of the answer were added");
        found.vars.extend(vars);
    }
    Ok(())
}

struct Script<'a> {
    candidate: &'a Candidate,
    /// What the script runs in.
    around: Arc<ProcessEnvironment>,
    /// All that the answer names.
    hosts: IndexSet<String>,
}

impl Script<'_> {
    fn complaint(&self, what: &str) -> Diagnostic {
        Diagnostic::new(format!("inventory script {} {what}", self.candidate.path.display()), None)
    }

    /// Runs the script. No output is an empty object, as a script may answer `--host`.
    fn ask(&self, arguments: &[&str]) -> Result<Json, Diagnostic> {
        let asked = arguments.join(" ");
        let output = self
            .around
            .command(&self.candidate.path)
            .args(arguments)
            .output()
            .map_err(|error| self.complaint(&format!("could not be started: {error}")))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().rfind(|line| !line.trim().is_empty());
        let with_errors = |complaint: Diagnostic| match last {
            Some(line) => complaint.hint(format!("its output: {}", line.trim())),
            None => complaint,
        };
        if !output.status.success() {
            return Err(with_errors(self.complaint(&format!("failed for {asked}: {}", output.status))));
        }
        if arguments[0] == "--host" && output.stdout.trim_ascii().is_empty() {
            return Ok(Json::Object(Map::new()));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| with_errors(self.complaint(&format!("printed invalid JSON for {asked}: {error}"))))
    }

    /// A group: an object with `hosts`, `children` and `vars`, or a bare list of hosts.
    fn group(&mut self, inventory: &mut Inventory, name: &str, group: &Json) -> Result<(), Diagnostic> {
        inventory.source_group(name, None)?;
        let Json::Object(entries) = group else {
            return self.add_hosts(inventory, name, group);
        };
        if !["hosts", "vars", "children"].iter().any(|key| entries.contains_key(*key)) {
            // An old form: the variables of a group with a host that is called like it.
            self.add_hosts(inventory, name, &Json::from(vec![name]))?;
            return self.set_vars(inventory, name, group);
        }
        if let Some(hosts) = entries.get("hosts") {
            self.add_hosts(inventory, name, hosts)?;
        }
        if let Some(vars) = entries.get("vars") {
            self.set_vars(inventory, name, vars)?;
        }
        for child in self.names(entries.get("children"), name, "children")? {
            inventory.source_group(child, None)?;
            inventory.add_child(name, child).map_err(|message| self.complaint(&format!("is invalid: {message}")))?;
        }
        Ok(())
    }

    fn add_hosts(&mut self, inventory: &mut Inventory, group: &str, hosts: &Json) -> Result<(), Diagnostic> {
        let names: Vec<String> = self.names(Some(hosts), group, "hosts")?.into_iter().map(String::from).collect();
        self.hosts.extend(names.iter().cloned());
        let named = HostNames { names, port: None };
        inventory.source_hosts(group, &named, &[], (&self.candidate.path, None))
    }

    fn set_vars(&self, inventory: &mut Inventory, group: &str, vars: &Json) -> Result<(), Diagnostic> {
        for (name, value) in self.vars(vars, group, &inventory.keyring)? {
            inventory.source_group_var(group, &name, value, None)?;
        }
        Ok(())
    }

    fn names<'a>(&self, list: Option<&'a Json>, group: &str, what: &str) -> Result<Vec<&'a str>, Diagnostic> {
        let wrong = || self.complaint(&format!("printed {what} of group {group:?} that are not a list of names"));
        match list {
            None => Ok(Vec::new()),
            Some(Json::Array(items)) => items.iter().map(|item| item.as_str().ok_or_else(wrong)).collect(),
            Some(_) => Err(wrong()),
        }
    }

    fn vars(&self, vars: &Json, of: &str, keyring: &Keyring) -> Result<Vec<(Arc<str>, Value)>, Diagnostic> {
        let Json::Object(vars) = vars else {
            return Err(self.complaint(&format!("printed variables of {of:?} that are not an object")));
        };
        let source = Arc::new(Source::new(self.candidate.path.clone(), ""));
        let origin = Origin { source, line: 1, column: 1 };
        vars.iter().map(|(name, value)| Ok((name.as_str().into(), self.value(value, &origin, keyring)?))).collect()
    }

    /// A value; `{"__ansible_vault": TEXT}` is decrypted, `{"__ansible_unsafe": TEXT}` is never a template.
    fn value(&self, json: &Json, origin: &Origin, keyring: &Keyring) -> Result<Value, Diagnostic> {
        Ok(match json {
            Json::String(text) => Template::template_value(text, Some(origin)),
            Json::Array(items) => {
                let items: Result<Vec<Value>, _> = items.iter().map(|item| self.value(item, origin, keyring)).collect();
                Value::from(items?)
            }
            Json::Object(entries) => match marked(entries) {
                Some(("__ansible_unsafe", text)) => Value::from(text),
                Some(("__ansible_vault", text)) => {
                    let plain = keyring
                        .decrypt(text)
                        .map_err(|error| self.complaint(&format!("printed an encrypted value: {error}")))?;
                    Template::template_value(&String::from_utf8_lossy(&plain), Some(origin))
                }
                _ => {
                    let mut pairs = Vec::new();
                    for (key, item) in entries {
                        pairs.push((Value::from(key.as_str()), self.value(item, origin, keyring)?));
                    }
                    Value::from_pairs(pairs)
                }
            },
            Json::Null => Value::from(()),
            Json::Bool(value) => Value::from(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => Value::from(whole),
                (None, Some(whole)) => Value::from(whole),
                (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
            },
        })
    }
}

/// The key and the text of an object that has one entry, whose value is text.
fn marked(entries: &Map<String, Json>) -> Option<(&str, &str)> {
    let (key, value) = entries.iter().next().filter(|_| entries.len() == 1)?;
    Some((key, value.as_str()?))
}
