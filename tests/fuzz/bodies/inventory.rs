//! A text as an inventory: INI, YAML or a resource, what a script answers, a list of names; its last line as a pattern.

use std::os::unix::fs::PermissionsExt;

use windlass::inventory::Inventory;
use windlass::value::Secret;
use windlass::value::vault::Keyring;

use super::{Scratch, reaches_out};

pub(super) fn run(input: &[u8]) {
    if reaches_out(input) {
        return;
    }
    let scratch = Scratch::new();
    let text = String::from_utf8_lossy(input);
    let pattern = text.lines().last().unwrap_or_default();
    for name in ["hosts", "hosts.ini", "hosts.yml"] {
        load(&scratch.file(name, input).display().to_string(), pattern);
    }
    if text.trim_start().starts_with('{') {
        scratch.file("answer", input);
        let script = scratch.file("script", b"#!/bin/sh\nexec cat \"${0%/*}/answer\"\n");
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).expect("the script is ours");
        load(&script.display().to_string(), pattern);
    }
    // With a comma and without a slash it is neither a path nor something on the network.
    if text.contains(',') && !text.contains(['/', ':', '\0']) {
        load(&text, pattern);
    }
}

fn load(source: &str, pattern: &str) {
    let keyring = Keyring::new(vec![("default".into(), Secret::new("a password"))]);
    match Inventory::load(&[source.to_owned()], &keyring) {
        Ok(inventory) => {
            for host in inventory.hosts.keys().take(20) {
                inventory.vars_of(host, None);
            }
            for group in inventory.groups.keys().take(20) {
                inventory.hosts_of(group);
            }
            inventory.select(pattern).ok();
            inventory.select_limit(pattern).ok();
        }
        Err(complaints) => {
            for complaint in complaints {
                assert!(!windlass::report::diagnostic::render_diagnostic(&complaint).is_empty());
            }
        }
    }
}
