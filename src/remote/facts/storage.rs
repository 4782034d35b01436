//! Block devices with their partitions and links, logical volumes, and the names of storage initiators.

use serde_json::{Value, json};

use super::sections::{Facts, Sections};

/// Names in a directory of links, and the last component of each target.
pub(super) fn links<'a>(sections: &'a Sections, directory: &str) -> Vec<(&'a str, &'a str)> {
    let heading = format!("{directory}:");
    let listing = sections.section("links").lines().skip_while(|line| *line != heading).skip(1);
    let lines = listing.take_while(|line| !line.is_empty());
    lines
        .filter_map(|line| {
            let (left, to) = line.split_once(" -> ")?;
            Some((left.rsplit(' ').next()?, to.rsplit('/').next()?))
        })
        .collect()
}

/// Names that lead to a device, by kind of name and device, each list sorted.
struct Links(Facts);

impl Links {
    fn of(sections: &Sections) -> Links {
        const DIRECTORIES: [(&str, &str); 3] =
            [("ids", "/dev/disk/by-id"), ("uuids", "/dev/disk/by-uuid"), ("labels", "/dev/disk/by-label")];
        let mut kinds = Facts::new();
        for (kind, directory) in DIRECTORIES {
            kinds.insert(kind.to_owned(), by_device(links(sections, directory)));
        }
        // What is built of it: `/sys/block/dm-0/slaves/sda`.
        let owners = sections.section("holders").lines().filter_map(|line| {
            let (device, part) = line.strip_prefix("/sys/block/")?.split_once("/slaves/")?;
            Some((device, part))
        });
        kinds.insert("masters".to_owned(), by_device(owners.collect()));
        Links(kinds)
    }

    fn to(&self, device: &str) -> Value {
        self.0.iter().map(|(kind, all)| (kind.clone(), all.get(device).cloned().unwrap_or(json!([])))).collect()
    }
}

fn by_device(mut pairs: Vec<(&str, &str)>) -> Value {
    pairs.sort_unstable();
    let mut all = Facts::new();
    for (name, device) in pairs {
        if let Value::Array(names) = all.entry(device.to_owned()).or_insert_with(|| json!([])) {
            names.push(json!(name));
        }
    }
    Value::Object(all)
}

pub(super) fn devices(sections: &Sections, facts: &mut Facts) {
    let links = Links::of(sections);
    let names = sections.names_below("/sys/block/").into_iter();
    let devices: Facts = names.map(|name| (name.to_owned(), device(sections, name, &links))).collect();
    facts.insert("devices".into(), devices.into());
    facts.insert("device_links".into(), links.0.into());
}

fn device(sections: &Sections, name: &str, links: &Links) -> Value {
    let path = format!("/sys/block/{name}");
    let value = |file: &str| sections.file_value(&format!("{path}/{file}"));
    let text = |file: &str| match value(file) {
        "" => Value::Null,
        text => json!(text),
    };
    // The kernel counts in 512 bytes whatever the device does.
    let sectors = number(value("size"));
    let scheduler = value("queue/scheduler");
    let chosen =
        scheduler.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(scheduler, |(name, _)| name);
    let discards = value("queue/discard_max_hw_bytes") != "0";
    let mut device = json!({
        // As Ansible has it for every device since /sys/block holds links.
        "virtual": 1,
        "links": links.to(name), "vendor": text("device/vendor"),
        "model": text("device/model"), "sas_address": text("device/sas_address"),
        "sas_device_handle": text("device/sas_device_handle"), "removable": value("removable"),
        "support_discard": if discards { value("queue/discard_granularity") } else { "0" },
        "partitions": partitions(sections, &path, links), "rotational": value("queue/rotational"),
        "scheduler_mode": chosen, "sectors": sectors, "sectorsize": sector_size(sections, &path),
        "size": human(sectors.saturating_mul(512)), "host": "", "holders": holders(sections, &path),
    });
    let wwn = device["links"]["ids"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let wwn = wwn.filter_map(|id| id.strip_prefix("wwn-")).next_back().map(str::to_owned);
    let serial = Some(value("device/serial")).filter(|serial| !serial.is_empty()).map(str::to_owned);
    for (name, value) in [("wwn", wwn), ("serial", serial)] {
        if let Some(value) = value {
            device[name] = json!(value);
        }
    }
    device
}

fn partitions(sections: &Sections, path: &str, links: &Links) -> Value {
    let value = |file: &str| sections.file_value(&format!("{path}/{file}"));
    let names = sections.names_below(&format!("{path}/"));
    let names = names.into_iter().filter(|name| !value(&format!("{name}/partition")).is_empty());
    let partition = |name: &str| {
        let sectors = number(value(&format!("{name}/size")));
        let links = links.to(name);
        json!({
            "uuid": links["uuids"].get(0).cloned(), "links": links, "start": value(&format!("{name}/start")),
            "sectors": sectors, "sectorsize": sector_size(sections, path), "size": human(sectors.saturating_mul(512)),
            "holders": [],
        })
    };
    names.map(|name| (name.to_owned(), partition(name))).collect()
}

fn sector_size<'a>(sections: &'a Sections, path: &str) -> &'a str {
    match sections.file_value(&format!("{path}/queue/logical_block_size")) {
        "" => "512",
        size => size,
    }
}

/// The mapped devices that are built on a device, by the names that people gave them.
fn holders(sections: &Sections, path: &str) -> Vec<String> {
    let prefix = format!("{path}/holders/");
    let holders = sections.section("holders").lines().filter_map(|line| line.strip_prefix(&prefix));
    holders.filter(|holder| holder.starts_with("dm-")).map(|holder| mapped_name(sections, holder)).collect()
}

fn mapped_name(sections: &Sections, device: &str) -> String {
    match sections.file_value(&format!("/sys/block/{device}/dm/name")) {
        "" => device.to_owned(),
        name => name.to_owned(),
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// `50.00 GB`, in steps of 1024.
fn human(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, "Bytes");
    for larger in ["KB", "MB", "GB", "TB", "PB", "EB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    format!("{value:.2} {unit}")
}

/// Volume groups, logical and physical volumes. `N/A` without their tools, or to a user who may not ask.
pub(super) fn volumes(sections: &Sections, facts: &mut Facts) {
    let text = sections.section("volumes");
    if matches!(text.lines().next(), None | Some("none" | "refused")) && text.lines().count() <= 1 {
        facts.insert("lvm".into(), json!("N/A"));
        return;
    }
    let (mut groups, mut logical, mut physical) = (Facts::new(), Facts::new(), Facts::new());
    for line in text.lines() {
        match line.split(',').collect::<Vec<_>>()[..] {
            ["vgs", name, pvs, lvs, .., size, free] => {
                let group = json!({ "size_g": size, "free_g": free, "num_lvs": lvs, "num_pvs": pvs });
                groups.insert(name.to_owned(), group);
            }
            ["lvs", name, group, _, size, ..] => {
                logical.insert(name.to_owned(), json!({ "size_g": size, "vg": group }));
            }
            ["pvs", name, group, _, _, size, free, ..] => {
                let name = match name.strip_prefix("/dev/") {
                    Some(device) if device.starts_with("dm-") => {
                        format!("/dev/mapper/{}", mapped_name(sections, device))
                    }
                    _ => name.to_owned(),
                };
                physical.insert(name, json!({ "size_g": size, "free_g": free, "vg": group }));
            }
            _ => {}
        }
    }
    facts.insert("lvm".into(), json!({ "lvs": logical, "vgs": groups, "pvs": physical }));
}

/// The host's name as an iSCSI initiator; empty if it has none.
pub(super) fn iscsi(sections: &Sections, facts: &mut Facts) {
    let file = sections.file_content("/etc/iscsi/initiatorname.iscsi").unwrap_or_default();
    let name = file.lines().find_map(|line| line.strip_prefix("InitiatorName="));
    facts.insert("iscsi_iqn".into(), json!(name.unwrap_or_default()));
}

/// The host's NVMe qualified name; empty if it has none.
pub(super) fn nvme(sections: &Sections, facts: &mut Facts) {
    let file = sections.file_content("/etc/nvme/hostnqn").unwrap_or_default();
    facts.insert("hostnqn".into(), json!(file.lines().find(|line| line.starts_with("nqn.")).unwrap_or_default()));
}

/// The world-wide names of Fibre Channel ports, without `0x`.
pub(super) fn fibre_channel(sections: &Sections, facts: &mut Facts) {
    let hosts = sections.names_below("/sys/class/fc_host/").into_iter();
    let names = hosts.map(|host| sections.file_value(&format!("/sys/class/fc_host/{host}/port_name")));
    facts.insert("fibre_channel_wwn".into(), names.filter_map(|name| name.get(2..)).map(|name| json!(name)).collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str, make: fn(&Sections, &mut Facts)) -> Facts {
        let mut facts = Facts::new();
        make(&Sections::parse_sections(text.as_bytes(), "@"), &mut facts);
        facts
    }

    #[test]
    fn sizes_are_written_for_people() {
        assert_eq!([human(0), human(1024), human(5 << 30)], ["0.00 Bytes", "1.00 KB", "5.00 GB"]);
    }

    #[test]
    fn devices_have_their_partitions_links_and_what_is_built_on_them() {
        let text = "\n@hardware\n/sys/block/sda/size:2048\n/sys/block/sda/queue/scheduler:none [mq-deadline]\n\
            /sys/block/sda/sda1/partition:1\n/sys/block/sda/sda1/size:1024\n/sys/block/sda/sda1/start:64\n\
            /sys/block/dm-0/dm/name:data\n\
            \n@links\n/dev/disk/by-id:\nl 1 wwn-0x5 -> ../../sda\nl 1 ata-x -> ../../sda\n\n/dev/disk/by-uuid:\nl 1 11-22 -> ../../sda1\n\
            \n@holders\n/sys/block/sda/holders/dm-0\n/sys/block/dm-0/slaves/sda\n";
        let facts = facts(text, devices);
        let sda = &facts["devices"]["sda"];
        assert_eq!(
            (&sda["size"], &sda["scheduler_mode"], &sda["wwn"]),
            (&json!("1.00 MB"), &json!("mq-deadline"), &json!("0x5"))
        );
        assert_eq!(sda["links"]["ids"], json!(["ata-x", "wwn-0x5"]));
        assert_eq!((&sda["holders"], &sda["links"]["masters"]), (&json!(["data"]), &json!(["dm-0"])));
        assert_eq!(
            (&sda["partitions"]["sda1"]["uuid"], &sda["partitions"]["sda1"]["start"]),
            (&json!("11-22"), &json!("64"))
        );
        assert_eq!(facts["device_links"]["uuids"], json!({ "sda1": ["11-22"] }));
    }

    #[test]
    fn volumes_are_read_from_what_their_tools_print() {
        let text = "\n@volumes\nvgs,vg0,1,2,0,wz--n-,9.99,4.99\nlvs,root,vg0,-wi-a-----,5.00,,,,,,,,\npvs,/dev/dm-0,vg0,lvm2,a--,9.99,4.99\n\
            \n@hardware\n/sys/block/dm-0/dm/name:crypt\n";
        let lvm = json!({
            "vgs": { "vg0": { "size_g": "9.99", "free_g": "4.99", "num_lvs": "2", "num_pvs": "1" } },
            "lvs": { "root": { "size_g": "5.00", "vg": "vg0" } },
            "pvs": { "/dev/mapper/crypt": { "size_g": "9.99", "free_g": "4.99", "vg": "vg0" } },
        });
        assert_eq!(facts(text, volumes)["lvm"], lvm);
        assert_eq!(facts("\n@volumes\nnone\n", volumes)["lvm"], json!("N/A"));
    }

    #[test]
    fn initiators_have_their_names_or_none() {
        let text = "\n@storage\n/etc/iscsi/initiatorname.iscsi:# x\n/etc/iscsi/initiatorname.iscsi:InitiatorName=iqn.a\n\
            /sys/class/fc_host/host1/port_name:0x21\n/etc/nvme/hostnqn:nqn.b\n";
        assert_eq!(facts(text, iscsi)["iscsi_iqn"], json!("iqn.a"));
        assert_eq!(facts(text, nvme)["hostnqn"], json!("nqn.b"));
        assert_eq!(facts(text, fibre_channel)["fibre_channel_wwn"], json!(["21"]));
        assert_eq!(facts("", iscsi)["iscsi_iqn"], json!(""));
    }
}
