//! `windlass inventory`: what the inventory says, as `ansible-inventory` prints it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::{Map, Value as Json, json};

use super::options::{InventorySource, VaultPasswords};
use super::{CliError, ExitCode, extra_vars, vault};
use crate::inventory::{Group, Inventory, VarsFiles, vars_files};
use crate::launch::options;
use crate::settings::list;
use crate::value::{SecretTexts, Value, Vars, yaml};

/// Variables that every host has from its location; they are not shown.
const POSITION: [&str; 2] = ["inventory_dir", "inventory_file"];

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("action").required(true))]
pub(super) struct InventoryArgs {
    #[command(flatten)]
    source: InventorySource,
    #[command(flatten)]
    vault: VaultPasswords,
    /// Print all groups and all hosts with their variables, as an inventory script does
    #[arg(long, group = "action")]
    list: bool,
    /// Print the variables of one host
    #[arg(long, value_name = "HOST", group = "action")]
    host: Option<String>,
    /// Print the tree of groups
    #[arg(long, group = "action")]
    graph: bool,
    /// With --graph: show variables too
    #[arg(long)]
    vars: bool,
    /// Print YAML instead of JSON
    #[arg(short = 'y', long)]
    yaml: bool,
    /// Print TOML instead of JSON
    #[arg(long, conflicts_with = "yaml")]
    toml: bool,
    /// With --list: write it to this file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Variables that every host has: KEY=VALUE, JSON or YAML text, or @FILE
    #[arg(short = 'e', long = "extra-vars", value_name = "VARS")]
    extra_vars: Vec<String>,
    /// With --list: keep variables at their groups and hosts instead of merging them for each host
    #[arg(long)]
    export: bool,
    /// Read group_vars/ and host_vars/ of this directory too, as for a playbook there
    #[arg(long, value_name = "DIRECTORY")]
    playbook_dir: Option<PathBuf>,
    /// With --graph: start at this group
    #[arg(value_name = "GROUP", requires = "graph")]
    group: Option<String>,
}

/// Prints the requested data. Decrypted values are hidden: `ansible-inventory` prints it encrypted.
pub(super) fn print_inventory(args: &InventoryArgs) -> Result<ExitCode, CliError> {
    let settings = super::settings()?;
    let keyring = vault::keyring(&args.vault, &settings)?;
    let reading = options::reading(&settings)?;
    let inventory = Inventory::load_with(&args.source.inventories(&settings), &keyring, &reading)?;
    inventory.warnings.iter().for_each(|warning| super::warn(warning));
    let playbook_dir = args.playbook_dir.clone().or_else(|| settings.path_setting(&list::PLAYBOOK_DIR));
    let beside_playbook = playbook_dir.map(|directory| vars_files(&directory, &inventory, &keyring)).transpose()?;
    reading.duplicates.take_complaints().iter().for_each(super::warn_of);
    let mut hosts = inventory.hosts_of("all");
    if let Some(limit) = &args.source.limit {
        let (within, unmatched) = inventory.select_limit(limit)?;
        super::warn_unmatched(&inventory, &unmatched);
        hosts.retain(|host| within.contains(host));
    }
    let view = View {
        inventory: &inventory,
        beside_playbook: beside_playbook.as_ref(),
        hosts,
        extra_vars: extra_vars::read_extra_vars(&args.extra_vars, &keyring, &reading.duplicates)?,
        export: args.export || settings.bool(&list::INVENTORY_EXPORT),
    };
    let answer = if args.graph {
        let group = args.group.as_deref().unwrap_or("all");
        super::print(&*keyring.hidden.hide(&view.graph(group, args.vars)?))?;
        return Ok(ExitCode::Ok);
    } else if let Some(pattern) = &args.host {
        view.one_host(pattern)?
    } else if args.yaml {
        view.tree()
    } else if args.toml {
        view.tables()
    } else {
        view.list()
    };
    let answer = masked(answer, &keyring.hidden);
    let text = match &answer {
        _ if args.yaml => yaml(&answer)?,
        Json::Object(tables) if args.toml => super::toml::written(tables),
        _ => pretty(&answer)?,
    };
    match &args.output {
        Some(file) => std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?,
        None => super::print(text)?,
    }
    Ok(ExitCode::Ok)
}

/// The answer without what was decrypted.
fn masked(value: Json, hidden: &SecretTexts) -> Json {
    match value {
        Json::String(text) => hidden.hide(&text).into_owned().into(),
        Json::Number(number) => match hidden.hide(&number.to_string()) {
            Cow::Borrowed(_) => Json::Number(number),
            Cow::Owned(text) => text.into(),
        },
        Json::Array(items) => items.into_iter().map(|item| masked(item, hidden)).collect(),
        Json::Object(entries) => entries.into_iter().map(|(key, value)| (key, masked(value, hidden))).collect(),
        other => other,
    }
}

struct View<'a> {
    inventory: &'a Inventory,
    beside_playbook: Option<&'a VarsFiles>,
    /// Those within the limit, in inventory order.
    hosts: Vec<Arc<str>>,
    /// What every host has, unless variables stay where they were written.
    extra_vars: Vars,
    /// Variables stay where they were written.
    export: bool,
}

impl View<'_> {
    /// Groups by name, and the variables of all hosts under `_meta`.
    fn list(&self) -> Json {
        let available: HashSet<&str> = self.hosts.iter().map(|host| &**host).collect();
        let mut answer = Map::new();
        for group in self.inventory.groups.values() {
            let mut entry = Map::new();
            if &*group.name != "all" {
                entry.insert(
                    "hosts".into(),
                    group.hosts.iter().filter(|h| available.contains(&***h)).map(text).collect(),
                );
            }
            entry.insert("children".into(), group.children.iter().map(text).collect());
            if self.export {
                entry.insert("vars".into(), Json::Object(self.group_vars(group)));
            }
            insert_unless_empty(&mut answer, &group.name, entry);
        }
        let mut vars = Map::new();
        for host in &self.hosts {
            let of_host = self.host_vars(host);
            if !of_host.is_empty() {
                vars.insert(host.to_string(), Json::Object(of_host));
            }
        }
        // Readers of the format take `profile` as a promise of how templates and vault texts are marked.
        answer.insert("_meta".into(), json!({"hostvars": vars, "profile": "inventory_legacy"}));
        Json::Object(answer)
    }

    /// Groups by name, each with its children and its hosts, as a TOML inventory is written.
    fn tables(&self) -> Json {
        let mut seen = HashSet::new();
        let mut answer = Map::new();
        for group in self.inventory.groups.values() {
            let mut entry = Map::new();
            entry.insert("children".into(), group.children.iter().map(text).collect());
            let hosts = group.hosts.iter().filter(|name| &*group.name != "all" && self.hosts.contains(name));
            let hosts = hosts.map(|name| {
                let vars = if seen.insert(name.clone()) { self.host_vars(name) } else { Map::new() };
                (name.to_string(), Json::Object(vars))
            });
            entry.insert("hosts".into(), Json::Object(hosts.collect()));
            if self.export {
                entry.insert("vars".into(), Json::Object(self.group_vars(group)));
            }
            insert_unless_empty(&mut answer, &group.name, entry);
        }
        Json::Object(answer)
    }

    /// Groups in groups, each with its hosts, as a YAML inventory is written.
    fn tree(&self) -> Json {
        let mut seen = Seen::default();
        let entry = self.subtree(&self.inventory.groups["all"], &mut seen);
        let mut answer = Map::new();
        insert_unless_empty(&mut answer, "all", entry);
        Json::Object(answer)
    }

    /// A group or host in several groups is expanded only at its first place.
    fn subtree(&self, group: &Group, seen: &mut Seen) -> Map<String, Json> {
        let mut children = Map::new();
        for name in &group.children {
            if seen.groups.insert(name.clone()) {
                let entry = self.subtree(&self.inventory.groups[name], seen);
                insert_unless_empty(&mut children, name, entry);
            } else {
                children.insert(name.to_string(), json!({}));
            }
        }
        let mut hosts = Map::new();
        for name in group.hosts.iter().filter(|name| &*group.name != "all" && self.hosts.contains(name)) {
            let first = seen.hosts.insert(name.clone());
            let vars = if first { self.host_vars(name) } else { Map::new() };
            hosts.insert(name.to_string(), Json::Object(vars));
        }
        let vars = if self.export { self.group_vars(group) } else { Map::new() };
        let sections = [("children", children), ("hosts", hosts), ("vars", vars)];
        sections.into_iter().map(|(name, section)| (name.to_owned(), Json::Object(section))).collect()
    }

    fn one_host(&self, pattern: &str) -> Result<Json, CliError> {
        let (hosts, _) = self.inventory.select(pattern)?;
        match &hosts[..] {
            [host] => Ok(Json::Object(self.host_vars(host))),
            [] => {
                let hint = self.inventory.name_hint(pattern).map_or(String::new(), |hint| format!(", {hint}"));
                Err(CliError::Asked(anyhow!("no such host: {pattern:?}{hint}")))
            }
            _ => Err(CliError::Asked(anyhow!("--host takes one host, and {pattern:?} matches {}", hosts.len()))),
        }
    }

    fn graph(&self, group: &str, vars: bool) -> Result<String, CliError> {
        let Some(group) = self.inventory.groups.get(group) else {
            let hint = self.inventory.name_hint(group).map_or(String::new(), |hint| format!(", {hint}"));
            return Err(CliError::Asked(anyhow!("no such group: {group:?}{hint}")));
        };
        let mut lines = String::new();
        self.branch(group, 0, vars, &mut lines);
        Ok(lines)
    }

    fn branch(&self, group: &Group, depth: usize, vars: bool, lines: &mut String) {
        leaf(&format!("@{}:", group.name), depth, lines);
        for child in &group.children {
            self.branch(&self.inventory.groups[child], depth + 1, vars, lines);
        }
        let hosts = group.hosts.iter().filter(|_| &*group.name != "all");
        for host in hosts {
            leaf(host, depth + 1, lines);
            if vars {
                self.host_vars(host).iter().for_each(|(name, value)| variable(name, value, depth + 2, lines));
            }
        }
        if vars {
            self.group_vars(group).iter().for_each(|(name, value)| variable(name, value, depth + 1, lines));
        }
    }

    fn host_vars(&self, host: &str) -> Map<String, Json> {
        let vars = if self.export {
            let beside = self.beside_playbook.and_then(|files| files.hosts.get(host));
            self.combined(self.inventory.host_vars(host), beside)
        } else {
            let mut vars = self.inventory.vars_of(host, self.beside_playbook);
            vars.extend(self.extra_vars.clone());
            vars
        };
        sorted(vars)
    }

    fn group_vars(&self, group: &Group) -> Map<String, Json> {
        let beside = self.beside_playbook.and_then(|files| files.groups.get(&group.name));
        let mut vars = self.combined(self.inventory.group_vars(&group.name), beside);
        if group.priority != 1 {
            vars.insert("ansible_group_priority".into(), Value::from(group.priority));
        }
        sorted(vars)
    }

    fn combined(&self, mut vars: Vars, over: Option<&Vars>) -> Vars {
        let over = over.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
        self.inventory.hash_behaviour.combine(&mut vars, over);
        vars
    }
}

#[derive(Default)]
struct Seen {
    groups: HashSet<Arc<str>>,
    hosts: HashSet<Arc<str>>,
}

/// By name; unrendered templates are shown as they were written.
fn sorted(vars: Vars) -> Map<String, Json> {
    let mut pairs: Vec<(String, Json)> = vars
        .into_iter()
        .filter(|(name, _)| !POSITION.contains(&&**name))
        .map(|(name, value)| (name.to_string(), to_json(&value)))
        .collect();
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    pairs.into_iter().collect()
}

/// A key that is no string becomes one; a number that JSON cannot hold becomes text.
fn to_json(value: &Value) -> Json {
    serde_json::to_value(value).unwrap_or_else(|_| Json::String(value.to_string()))
}

fn text(name: &Arc<str>) -> Json {
    Json::String(name.to_string())
}

/// Leaves out empty sections, and the group if nothing is left.
fn insert_unless_empty(into: &mut Map<String, Json>, name: &str, mut entry: Map<String, Json>) {
    let empty = |section: &Json| match section {
        Json::Array(items) => items.is_empty(),
        Json::Object(entries) => entries.is_empty(),
        _ => false,
    };
    entry.retain(|_, section| !empty(section));
    if !entry.is_empty() {
        into.insert(name.into(), Json::Object(entry));
    }
}

fn leaf(what: &str, depth: usize, lines: &mut String) {
    if depth > 0 {
        lines.push_str(&"  |".repeat(depth));
        lines.push_str("--");
    }
    lines.push_str(what);
    lines.push('\n');
}

fn variable(name: &str, value: &Json, depth: usize, lines: &mut String) {
    let value = match value {
        Json::String(text) => text.clone(),
        other => python(other),
    };
    leaf(&format!("{{{name} = {value}}}"), depth, lines);
}

/// As Python writes the value.
fn python(value: &Json) -> String {
    let joined = |items: Vec<String>| items.join(", ");
    match value {
        Json::Null => "None".into(),
        Json::Bool(true) => "True".into(),
        Json::Bool(false) => "False".into(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => {
            let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
            let inner = text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r");
            let inner = if quote == '\'' { inner.replace('\'', "\\'") } else { inner };
            format!("{quote}{inner}{quote}")
        }
        Json::Array(items) => format!("[{}]", joined(items.iter().map(python).collect())),
        Json::Object(entries) => {
            let pair = |(key, value): (&String, &Json)| format!("{}: {}", python(&json!(key)), python(value));
            format!("{{{}}}", joined(entries.iter().map(pair).collect()))
        }
    }
}

/// JSON with sorted keys, four blanks a level.
fn pretty(answer: &Json) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    serde::Serialize::serialize(&in_order(answer), &mut serializer).context("cannot write JSON")?;
    bytes.push(b'\n');
    Ok(String::from_utf8(bytes).context("cannot write JSON")?)
}

fn in_order(value: &Json) -> Json {
    match value {
        Json::Object(entries) => {
            let mut pairs: Vec<(&String, &Json)> = entries.iter().collect();
            pairs.sort_by_key(|(key, _)| *key);
            pairs.into_iter().map(|(key, value)| (key.clone(), in_order(value))).collect()
        }
        Json::Array(items) => items.iter().map(in_order).collect(),
        scalar => scalar.clone(),
    }
}

fn yaml(answer: &Json) -> Result<String, CliError> {
    let value: Value = serde_json::from_value(answer.clone()).context("cannot write YAML")?;
    Ok(yaml::emit(&value, &yaml::YamlStyle::default()))
}
