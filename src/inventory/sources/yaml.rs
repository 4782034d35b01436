//! YAML (and JSON): groups at the top, each with `hosts`, `children` and `vars`.

use std::sync::Arc;

use super::{Candidate, host_names};
use crate::inventory::Inventory;
use crate::value::Value;
use crate::value::nearest::did_you_mean;
use crate::value::origin::{Diagnostic, Source};
use crate::value::yaml::{self, Node, NodeKind};

const SECTIONS: [&str; 3] = ["hosts", "children", "vars"];

/// By the extension; a file without one is YAML if it starts like YAML or parses as a mapping.
pub(super) fn accepts_yaml(candidate: &Candidate) -> bool {
    match candidate.path.extension().map(|extension| extension.to_string_lossy()) {
        Some(extension) => matches!(&*extension, "yml" | "yaml" | "json"),
        None => candidate.content_text().is_ok_and(|text| {
            let source = Arc::new(Source::new(candidate.path.clone(), text));
            let mapping = |nodes: Vec<Node>| matches!(nodes.first().map(|n| &n.kind), Some(NodeKind::Map(_)));
            text.starts_with("---") || yaml::parse_with(&source, &mut Vec::new()).is_ok_and(mapping)
        }),
    }
}

pub(super) fn read_yaml_inventory(candidate: &Candidate, inventory: &mut Inventory) -> Result<(), Vec<Diagnostic>> {
    let Some(root) = yaml::load_yaml(&candidate.path, &inventory.keyring, &inventory.duplicates)? else {
        return Ok(());
    };
    let NodeKind::Map(groups) = &root.kind else {
        let message = format!("an inventory must be a mapping of groups, this is {}", root.what());
        return Err(Diagnostic::new(message, Some(&root.origin)).into());
    };
    if let Some(plugin) = root.get("plugin") {
        let message = format!("inventory plugins are not supported, and this file asks for {}", plugin.what());
        return Err(Diagnostic::new(message, Some(&plugin.origin))
            .hint("use an executable script that supports --list instead")
            .into());
    }
    for (name, group) in groups {
        read_group(candidate, inventory, name, Some(group))?;
    }
    Ok(())
}

/// Reads a group and those below it; gives its name.
fn read_group<'a>(
    candidate: &Candidate,
    inventory: &mut Inventory,
    name: &'a Node,
    group: Option<&Node>,
) -> Result<&'a str, Diagnostic> {
    let Some(group_name) = name.as_str() else {
        let message = format!("the name of a group must be a string, this is {}", name.what());
        return Err(Diagnostic::new(message, Some(&name.origin)).hint("put it in quotes"));
    };
    let entries = match group.map(|group| (&group.kind, group)) {
        Some((NodeKind::Map(entries), _)) => entries.as_slice(),
        Some((NodeKind::Null, _)) | None => &[],
        Some((_, group)) => {
            let message = format!("skipped {group_name:?}: a group must be a mapping, this is {}", group.what());
            inventory.warn(message, Some(&group.origin));
            return Ok(group_name);
        }
    };
    inventory.source_group(group_name, Some(&name.origin))?;
    for (key, value) in entries {
        match key.as_str() {
            Some("hosts") => read_hosts(candidate, inventory, group_name, value)?,
            Some("children") => read_children(candidate, inventory, group_name, value)?,
            Some("vars") => read_vars(inventory, group_name, value)?,
            _ => inventory.warn(strange_key(key, group_name), Some(&key.origin)),
        }
    }
    Ok(group_name)
}

fn strange_key(key: &Node, group: &str) -> String {
    let hint = key.as_str().and_then(|word| did_you_mean(word, SECTIONS));
    let hint = hint.map_or(String::new(), |hint| format!(", {hint}"));
    format!("skipped {} in group {group:?}: expected hosts, children or vars{hint}", key.what())
}

fn read_hosts(candidate: &Candidate, inventory: &mut Inventory, group: &str, hosts: &Node) -> Result<(), Diagnostic> {
    for (entry, vars) in entries("hosts", group, hosts)? {
        let Some(name) = entry.as_str() else {
            let message = format!("the name of a host must be a string, this is {}", entry.what());
            return Err(Diagnostic::new(message, Some(&entry.origin)).hint("put it in quotes"));
        };
        let named = host_names(name, &entry.origin)?;
        let vars: Vec<(Arc<str>, Value)> = match vars {
            Some(vars) => vars.to_vars(&inventory.keyring)?.into_iter().collect(),
            None => Vec::new(),
        };
        inventory.source_hosts(group, &named, &vars, (&candidate.path, Some(&entry.origin)))?;
    }
    Ok(())
}

fn read_children(
    candidate: &Candidate,
    inventory: &mut Inventory,
    group: &str,
    children: &Node,
) -> Result<(), Diagnostic> {
    for (name, child) in entries("children", group, children)? {
        let child = read_group(candidate, inventory, name, child)?;
        if inventory.groups.contains_key(child) {
            inventory.add_child(group, child).map_err(|message| Diagnostic::new(message, Some(&name.origin)))?;
        }
    }
    Ok(())
}

fn read_vars(inventory: &mut Inventory, group: &str, vars: &Node) -> Result<(), Diagnostic> {
    let origins: Vec<_> = entries("vars", group, vars)?.into_iter().map(|(name, _)| &name.origin).collect();
    for ((name, value), origin) in vars.to_vars(&inventory.keyring)?.into_iter().zip(origins) {
        inventory.source_group_var(group, &name, value, Some(origin))?;
    }
    Ok(())
}

/// The entries of a section, with their values if they have one. A lone string is one entry without value.
fn entries<'a>(section: &str, group: &str, node: &'a Node) -> Result<Vec<(&'a Node, Option<&'a Node>)>, Diagnostic> {
    let valued = |value: &'a Node| (!matches!(value.kind, NodeKind::Null)).then_some(value);
    match &node.kind {
        NodeKind::Map(pairs) => Ok(pairs.iter().map(|(key, value)| (key, valued(value))).collect()),
        NodeKind::Null => Ok(Vec::new()),
        NodeKind::Str(_) => Ok(vec![(node, None)]),
        _ => {
            let message = format!("{section} of group {group:?} must be a mapping, this is {}", node.what());
            Err(Diagnostic::new(message, Some(&node.origin)).hint("write each entry as \"NAME:\""))
        }
    }
}
