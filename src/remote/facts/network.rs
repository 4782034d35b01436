//! Interfaces, their addresses, and the default routes.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::sections::{Facts, Sections};

pub(super) fn network(sections: &Sections, facts: &mut Facts) {
    let mut interfaces = Facts::new();
    for name in sections.names_below("/sys/class/net/") {
        // `bonding_masters` is a file beside the interfaces.
        if !sections.file_value(&format!("/sys/class/net/{name}/type")).is_empty() {
            interfaces.insert(name.to_owned(), interface(sections, name));
        }
    }
    let (mut all4, mut all6) = (Vec::new(), Vec::new());
    let mut default4 = route(sections.section("route4"));
    let mut default6 = route(sections.section("route6"));
    for address in sections.section("addresses").lines().filter_map(Address::parse) {
        let device = link(&interfaces, address.device);
        if address.six {
            let value = json!({ "address": address.address, "prefix": address.prefix, "scope": address.scope });
            fill(
                &mut default6,
                address.address,
                &[("prefix", json!(address.prefix)), ("scope", json!(address.scope))],
                &device,
            );
            if let Value::Array(list) =
                entry(&mut interfaces, address.device).entry("ipv6").or_insert_with(|| json!([]))
            {
                list.push(value);
            }
            if address.address != "::1" {
                all6.push(address.address);
            }
            continue;
        }
        let value = address.four();
        let more = ["broadcast", "netmask", "network", "prefix"].map(|name| (name, value[name].clone()));
        if fill(&mut default4, address.address, &more, &device) {
            default4.insert("alias".into(), json!(address.label));
        }
        place(&mut interfaces, &address, value);
        if !address.address.starts_with("127.") {
            all4.push(address.address);
        }
    }
    facts.insert("interfaces".into(), interfaces.keys().map(|name| json!(name)).collect());
    for (name, interface) in interfaces {
        facts.insert(name.replace('-', "_"), interface);
    }
    facts.insert("default_ipv4".into(), default4.into());
    facts.insert("default_ipv6".into(), default6.into());
    facts.insert("all_ipv4_addresses".into(), json!(all4));
    facts.insert("all_ipv6_addresses".into(), json!(all6));
    let local = |section: &str| -> Vec<&str> {
        let lines = sections.section(section).lines();
        lines.filter_map(|line| line.trim().strip_prefix("local ")?.split(' ').next()).collect()
    };
    facts.insert("locally_reachable_ips".into(), json!({ "ipv4": local("local4"), "ipv6": local("local6") }));
}

fn interface(sections: &Sections, name: &str) -> Value {
    let path = format!("/sys/class/net/{name}");
    let value = |file: &str| sections.file_value(&format!("{path}/{file}"));
    let mut facts = Facts::new();
    facts.insert("device".into(), json!(name));
    if !matches!(value("address"), "" | "00:00:00:00:00:00") {
        facts.insert("macaddress".into(), json!(value("address")));
    }
    if let Ok(mtu) = value("mtu").parse::<u64>() {
        facts.insert("mtu".into(), json!(mtu));
    }
    facts.insert("active".into(), json!(value("operstate") != "down"));
    if let Some(module) = target(sections, &format!("{path}/device/driver/module")) {
        facts.insert("module".into(), json!(module));
    }
    if let Some(bus) = target(sections, &format!("{path}/device")) {
        facts.insert("pciid".into(), json!(bus));
    }
    let kind = match value("type") {
        "1" => "ether",
        "32" => "infiniband",
        "512" => "ppp",
        "772" => "loopback",
        "65534" => "tunnel",
        _ => "unknown",
    };
    facts.insert("type".into(), json!(kind));
    if !value("bridge/bridge_id").is_empty() {
        let prefix = format!("{path}/brif/");
        let ports = sections.section("brif").lines().filter_map(|line| line.strip_prefix(&prefix));
        facts.insert("type".into(), json!("bridge"));
        facts.insert("interfaces".into(), json!(ports.collect::<Vec<_>>()));
        facts.insert("id".into(), json!(value("bridge/bridge_id")));
        facts.insert("stp".into(), json!(value("bridge/stp_state") == "1"));
    }
    if !value("bonding/mode").is_empty() {
        let first = |file: &str| json!(value(file).split(' ').next());
        facts.insert("type".into(), json!("bonding"));
        facts.insert("slaves".into(), json!(value("bonding/slaves").split_whitespace().collect::<Vec<_>>()));
        facts.insert("mode".into(), first("bonding/mode"));
        facts.insert("miimon".into(), first("bonding/miimon"));
        facts.insert("lacp_rate".into(), first("bonding/lacp_rate"));
        if !value("bonding/primary").is_empty() {
            facts.insert("primary".into(), json!(value("bonding/primary")));
        }
        facts.insert("all_slaves_active".into(), json!(value("bonding/all_slaves_active") == "1"));
    }
    if !value("bonding_slave/perm_hwaddr").is_empty() {
        facts.insert("perm_macaddress".into(), json!(value("bonding_slave/perm_hwaddr")));
    }
    let flags = u64::from_str_radix(value("flags").trim_start_matches("0x"), 16).unwrap_or(0);
    facts.insert("promisc".into(), json!(flags & 0x100 != 0));
    if let Ok(speed) = value("speed").parse::<i64>() {
        facts.insert("speed".into(), json!(speed));
    }
    Value::Object(facts)
}

/// The last component of a link's target, from the output of `ls -ld`.
fn target<'a>(sections: &'a Sections, path: &str) -> Option<&'a str> {
    let mut links = sections.section("netlinks").lines().filter_map(|line| line.split_once(" -> "));
    let (_, to) = links.find(|(left, _)| left.rsplit(' ').next() == Some(path))?;
    to.rsplit('/').next()
}

/// Interface, source address and gateway of `ip route get`.
fn route(text: &str) -> Facts {
    let words: Vec<&str> = text.lines().next().unwrap_or_default().split_whitespace().collect();
    let after = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
    let mut facts = Facts::new();
    // An unreachable destination names no interface of use.
    if words.first().is_some_and(|word| word.contains(['.', ':'])) {
        for (name, word) in [("interface", "dev"), ("address", "src"), ("gateway", "via")] {
            if let Some(value) = after(word) {
                facts.insert(name.to_owned(), json!(value));
            }
        }
    }
    facts
}

/// What a default route's facts take from its interface.
fn link(interfaces: &Facts, device: &str) -> Vec<(&'static str, Value)> {
    let Some(interface) = interfaces.get(device) else { return Vec::new() };
    ["macaddress", "mtu", "type"].into_iter().filter_map(|name| Some((name, interface.get(name)?.clone()))).collect()
}

/// Adds to a default route's facts if the address is its.
fn fill(default: &mut Facts, address: &str, more: &[(&str, Value)], link: &[(&str, Value)]) -> bool {
    let its = default.get("address").is_some_and(|it| it == address);
    if its {
        default.extend(more.iter().chain(link).map(|(name, value)| ((*name).to_owned(), value.clone())));
    }
    its
}

fn entry<'a>(interfaces: &'a mut Facts, name: &str) -> &'a mut Facts {
    let entry = interfaces.entry(name.to_owned()).or_insert_with(|| json!({}));
    entry.as_object_mut().expect("interfaces are objects")
}

/// The first address of an interface is its own, the others are secondaries; an alias (`eth0:1`) counts as an interface.
fn place(interfaces: &mut Facts, address: &Address, value: Value) {
    let alias = address.label.replace(':', "_");
    let name = if address.label == address.device { address.device } else { &alias };
    let mut later = false;
    let facts = entry(interfaces, name);
    if facts.contains_key("ipv4") {
        later = true;
        secondary(facts, value.clone());
    } else {
        facts.insert("ipv4".into(), value.clone());
    }
    if name != address.device && (later || address.secondary) {
        secondary(entry(interfaces, address.device), value);
    }
}

fn secondary(facts: &mut Facts, value: Value) {
    if let Value::Array(list) = facts.entry("ipv4_secondaries").or_insert_with(|| json!([])) {
        list.push(value);
    }
}

/// A line of `ip -o addr`.
struct Address<'a> {
    device: &'a str,
    six: bool,
    address: &'a str,
    prefix: &'a str,
    broadcast: &'a str,
    scope: &'a str,
    label: &'a str,
    secondary: bool,
}

impl Address<'_> {
    /// `2: eth0    inet 10.0.0.2/24 brd 10.0.0.255 scope global eth0\       valid_lft forever`
    fn parse(line: &str) -> Option<Address<'_>> {
        let line = line.split('\\').next()?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, device, family, address, rest @ ..] = words.as_slice() else { return None };
        let device = device.split('@').next()?.trim_end_matches(':');
        let six = match *family {
            "inet" => false,
            "inet6" => true,
            _ => return None,
        };
        let after = |name: &str| rest.iter().position(|word| *word == name).and_then(|at| rest.get(at + 1)).copied();
        // The prefix of a point-to-point link is behind its peer.
        let (plain, prefix) = match address.split_once('/') {
            Some(pair) => pair,
            None => (
                *address,
                after("peer").and_then(|peer| Some(peer.split_once('/')?.1)).unwrap_or(if six { "128" } else { "32" }),
            ),
        };
        let label =
            rest.last().copied().filter(|last| !six && last.split(':').next() == Some(device)).unwrap_or(device);
        Some(Address {
            device,
            six,
            address: plain,
            prefix,
            broadcast: after("brd").unwrap_or(""),
            scope: after("scope").unwrap_or("global"),
            label,
            secondary: rest.contains(&"secondary"),
        })
    }

    fn four(&self) -> Value {
        let bits = self.prefix.parse::<u32>().unwrap_or(32).min(32);
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        let network = self.address.parse::<Ipv4Addr>().map(|it| Ipv4Addr::from(u32::from(it) & mask).to_string());
        json!({
            "address": self.address, "broadcast": self.broadcast, "netmask": Ipv4Addr::from(mask).to_string(),
            "network": network.unwrap_or_default(), "prefix": self.prefix,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_addresses_and_routes_come_together() {
        let text = "\n@network\n/sys/class/net/eth0/address:02:fc:00:00:00:01\n/sys/class/net/eth0/mtu:1400\n\
            /sys/class/net/eth0/type:1\n/sys/class/net/eth0/operstate:up\n/sys/class/net/eth0/flags:0x1103\n\
            /sys/class/net/br-x/type:1\n/sys/class/net/br-x/bridge/bridge_id:8000.1\n/sys/class/net/br-x/operstate:down\n\
            \n@netlinks\nlrwxrwxrwx 1 root root 0 Nov 20 11:00 /sys/class/net/eth0/device -> ../../../virtio2\n\
            \n@brif\n/sys/class/net/br-x/brif/eth1\n\
            \n@addresses\n1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n\
            2: eth0    inet 10.0.1.2/23 brd 10.0.1.255 scope global eth0\\       valid_lft forever\n\
            2: eth0    inet 10.0.1.3/23 scope global secondary eth0:1\\       valid_lft forever\n\
            2: eth0    inet6 fd00::2/64 scope global \\       valid_lft forever\n\
            3: tun0    inet 10.9.0.1 peer 10.9.0.2/32 scope global tun0\\       valid_lft forever\n\
            \n@route4\n8.8.8.8 via 10.0.0.1 dev eth0 src 10.0.1.2 uid 0 \\    cache \n\
            \n@route6\nunreachable 2404:: dev lo\n\n@local4\nlocal 10.0.1.2 dev eth0 proto kernel\nbroadcast 10.0.1.255 dev eth0\n";
        let mut facts = Facts::new();
        network(&Sections::parse_sections(text.as_bytes(), "@"), &mut facts);
        assert_eq!(facts["all_ipv4_addresses"], json!(["10.0.1.2", "10.0.1.3", "10.9.0.1"]));
        assert_eq!(facts["all_ipv6_addresses"], json!(["fd00::2"]));
        let eth0 = json!({
            "device": "eth0", "macaddress": "02:fc:00:00:00:01", "mtu": 1400, "active": true, "pciid": "virtio2",
            "type": "ether", "promisc": true,
            "ipv4": {"address": "10.0.1.2", "broadcast": "10.0.1.255", "netmask": "255.255.254.0", "network": "10.0.0.0", "prefix": "23"},
            "ipv4_secondaries": [{"address": "10.0.1.3", "broadcast": "", "netmask": "255.255.254.0", "network": "10.0.0.0", "prefix": "23"}],
            "ipv6": [{"address": "fd00::2", "prefix": "64", "scope": "global"}],
        });
        assert_eq!(facts["eth0"], eth0);
        assert_eq!((&facts["br_x"]["interfaces"], &facts["br_x"]["active"]), (&json!(["eth1"]), &json!(false)));
        let default = json!({
            "interface": "eth0", "address": "10.0.1.2", "gateway": "10.0.0.1", "broadcast": "10.0.1.255",
            "netmask": "255.255.254.0", "network": "10.0.0.0", "prefix": "23", "macaddress": "02:fc:00:00:00:01",
            "mtu": 1400, "type": "ether", "alias": "eth0",
        });
        assert_eq!(facts["default_ipv4"], default);
        assert_eq!((&facts["default_ipv6"], &facts["tun0"]["ipv4"]["prefix"]), (&json!({}), &json!("32")));
        assert_eq!(facts["locally_reachable_ips"]["ipv4"], json!(["10.0.1.2"]));
    }
}
