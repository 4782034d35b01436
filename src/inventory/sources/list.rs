//! A comma list: `web1,web2:2222,` names hosts on the command line.

use super::{Candidate, HostNames};
use crate::inventory::{Inventory, address, graph};
use crate::value::origin::Diagnostic;

pub(super) fn accepts_host_list(candidate: &Candidate) -> bool {
    candidate.is_list()
}

pub(super) fn read_host_list(candidate: &Candidate, inventory: &mut Inventory) -> Result<(), Vec<Diagnostic>> {
    let list = candidate.path.to_string_lossy();
    for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let plain = address::split_port(entry).filter(|(host, _)| !host.contains('['));
        let (name, port) = plain.unwrap_or((entry, None));
        if !inventory.hosts.contains_key(name) {
            let named = HostNames { names: vec![name.to_owned()], port };
            inventory.source_hosts(graph::UNGROUPED, &named, &[], (&candidate.path, None))?;
        }
    }
    Ok(())
}
