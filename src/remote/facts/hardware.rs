//! Processors, memory, firmware, mounts and block devices.

use serde_json::{Value, json};

use super::sections::{Facts, Sections, fields};

pub(super) fn processor(sections: &Sections, facts: &mut Facts) {
    let (mut list, mut sockets) = (Vec::new(), Vec::new());
    let (mut cores, mut siblings, mut index) = (1u64, 1u64, 0u64);
    let mut flags = json!([]);
    for (name, value) in fields(sections.file("/proc/cpuinfo").unwrap_or_default()) {
        match name {
            "processor" => {
                index += 1;
                list.push(json!(value));
            }
            "vendor_id" | "model name" | "Model Name" | "Processor" | "cpu" => list.push(json!(value)),
            "physical id" if !sockets.contains(&value) => sockets.push(value),
            "cpu cores" => cores = value.parse().unwrap_or(1),
            "siblings" => siblings = value.parse().unwrap_or(1),
            "flags" | "Features" if flags == json!([]) => flags = json!(value.split_whitespace().collect::<Vec<_>>()),
            _ => {}
        }
    }
    // Where the kernel names no sockets, as on ARM, each processor counts as one.
    let count = if sockets.is_empty() { index.max(1) } else { sockets.len() as u64 };
    let threads = (siblings / cores.max(1)).max(1);
    facts.insert("processor".into(), list.into());
    facts.insert("processor_count".into(), json!(count));
    facts.insert("processor_cores".into(), json!(cores));
    facts.insert("processor_threads_per_core".into(), json!(threads));
    let all = if sockets.is_empty() { index.max(1) } else { count * cores * threads };
    facts.insert("processor_vcpus".into(), json!(all));
    facts.insert("processor_nproc".into(), json!(sections.line("nproc").parse::<u64>().unwrap_or(index.max(1))));
    facts.insert("flags".into(), flags);
}

pub(super) fn memory(sections: &Sections, facts: &mut Facts) {
    let text = sections.file("/proc/meminfo").unwrap_or_default();
    let megabytes = |name: &str| -> u64 {
        let value = fields(text)
            .find(|(it, _)| *it == name)
            .and_then(|(_, value)| value.split(' ').next()?.parse::<u64>().ok());
        value.unwrap_or(0) / 1024
    };
    let (total, free) = (megabytes("MemTotal"), megabytes("MemFree"));
    let (swap, swap_free) = (megabytes("SwapTotal"), megabytes("SwapFree"));
    let without_cache = free + megabytes("Cached") + megabytes("Buffers");
    facts.insert("memtotal_mb".into(), json!(total));
    facts.insert("memfree_mb".into(), json!(free));
    facts.insert("swaptotal_mb".into(), json!(swap));
    facts.insert("swapfree_mb".into(), json!(swap_free));
    let value = json!({
        "real": { "total": total, "used": total.saturating_sub(free), "free": free },
        "nocache": { "free": without_cache, "used": total.saturating_sub(without_cache) },
        "swap": { "total": swap, "free": swap_free, "used": swap.saturating_sub(swap_free), "cached": megabytes("SwapCached") },
    });
    facts.insert("memory_mb".into(), value);
    let uptime = sections.value("/proc/uptime").split('.').next().and_then(|seconds| seconds.parse::<u64>().ok());
    if let Some(seconds) = uptime {
        facts.insert("uptime_seconds".into(), json!(seconds));
    }
}

/// The kinds of chassis, by their number in the SMBIOS standard.
const CHASSIS: &[&str] = &[
    "Unknown",
    "Other",
    "Unknown",
    "Desktop",
    "Low Profile Desktop",
    "Pizza Box",
    "Mini Tower",
    "Tower",
    "Portable",
    "Laptop",
    "Notebook",
    "Hand Held",
    "Docking Station",
    "All In One",
    "Sub Notebook",
    "Space-saving",
    "Lunch Box",
    "Main Server Chassis",
    "Expansion Chassis",
    "Sub Chassis",
    "Bus Expansion Chassis",
    "Peripheral Chassis",
    "RAID Chassis",
    "Rack Mount Chassis",
    "Sealed-case PC",
    "Multi-system",
    "CompactPCI",
    "AdvancedTCA",
    "Blade",
    "Blade Enclosure",
    "Tablet",
    "Convertible",
    "Detachable",
    "IoT Gateway",
    "Embedded PC",
    "Mini PC",
    "Stick PC",
];

/// What the firmware says; `NA` where it says nothing, or not to this user.
pub(super) fn firmware(sections: &Sections, facts: &mut Facts) {
    const FILES: &[&str] = &[
        "bios_date",
        "bios_vendor",
        "bios_version",
        "board_asset_tag",
        "board_name",
        "board_serial",
        "board_vendor",
        "board_version",
        "chassis_asset_tag",
        "chassis_serial",
        "chassis_vendor",
        "chassis_version",
        "product_name",
        "product_serial",
        "product_uuid",
        "product_version",
    ];
    let value = |file: &str| match sections.value(&format!("/sys/class/dmi/id/{file}")) {
        "" => "NA".to_owned(),
        value => value.to_owned(),
    };
    for file in FILES {
        facts.insert((*file).to_owned(), json!(value(file)));
    }
    facts.insert("system_vendor".into(), json!(value("sys_vendor")));
    let kind = value("chassis_type").parse::<usize>().ok().and_then(|number| CHASSIS.get(number));
    facts.insert("form_factor".into(), json!(kind.unwrap_or(&"NA")));
}

pub(super) fn mounts(sections: &Sections, facts: &mut Facts) {
    let uuids = links(sections, "/dev/disk/by-uuid");
    let sizes: Vec<(&str, Vec<u64>)> = sections.section("sizes").lines().filter_map(sizes).collect();
    let mut mounts = Vec::new();
    for line in sections.file("/proc/self/mounts").unwrap_or_default().lines() {
        let [device, path, kind, options, dump, pass] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        if !(device.starts_with('/') || device.contains(":/")) || kind == "none" {
            continue;
        }
        let (device, path) = (unescape(device), unescape(path));
        let uuid = uuids.iter().find(|(_, to)| device.rsplit('/').next() == Some(to)).map_or("N/A", |(uuid, _)| uuid);
        let mut mount = json!({
            "mount": path, "device": device, "fstype": kind, "options": options, "uuid": uuid,
            "dump": dump.parse::<u64>().unwrap_or(0), "passno": pass.parse::<u64>().unwrap_or(0),
        });
        if let (Some(map), Some((_, numbers))) = (mount.as_object_mut(), sizes.iter().find(|(it, _)| *it == path)) {
            let [size, total, available, inodes, free] = numbers[..] else { continue };
            map.insert("size_total".into(), json!(size * total));
            map.insert("size_available".into(), json!(size * available));
            map.insert("block_size".into(), json!(size));
            map.insert("block_total".into(), json!(total));
            map.insert("block_available".into(), json!(available));
            map.insert("block_used".into(), json!(total.saturating_sub(available)));
            map.insert("inode_total".into(), json!(inodes));
            map.insert("inode_available".into(), json!(free));
            map.insert("inode_used".into(), json!(inodes.saturating_sub(free)));
        }
        mounts.push(mount);
    }
    facts.insert("mounts".into(), mounts.into());
}

/// Block size, blocks, free blocks, inodes, free inodes, path.
fn sizes(line: &str) -> Option<(&str, Vec<u64>)> {
    let mut words = line.splitn(6, ' ');
    let numbers = words.by_ref().take(5).map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
    Some((words.next()?, numbers))
}

/// `\040` and the like, as the kernel writes spaces in paths.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let octal = (first == b'\\').then(|| tail.get(..3)).flatten();
        let byte = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        out.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &tail[3..] } else { tail };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Names in a directory of links, and the last part of where each leads.
fn links<'a>(sections: &'a Sections, directory: &str) -> Vec<(&'a str, &'a str)> {
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

pub(super) fn devices(sections: &Sections, facts: &mut Facts) {
    const KINDS: [(&str, &str); 3] =
        [("ids", "/dev/disk/by-id"), ("uuids", "/dev/disk/by-uuid"), ("labels", "/dev/disk/by-label")];
    let kinds = KINDS.map(|(kind, directory)| (kind, links(sections, directory)));
    let links_of = |device: &str| {
        let mut all = Facts::new();
        for (kind, links) in &kinds {
            let mut names: Vec<&str> = links.iter().filter(|(_, to)| *to == device).map(|(name, _)| *name).collect();
            names.sort_unstable();
            all.insert((*kind).to_owned(), json!(names));
        }
        all.insert("masters".into(), json!([]));
        Value::Object(all)
    };
    let mut devices = Facts::new();
    for name in sections.names_below("/sys/block/") {
        devices.insert(name.to_owned(), device(sections, name, &links_of));
    }
    facts.insert("devices".into(), devices.into());
    let mut all = Facts::new();
    for (kind, links) in &kinds {
        let mut by_device = Facts::new();
        for (name, to) in links {
            if let Value::Array(names) = by_device.entry((*to).to_owned()).or_insert_with(|| json!([])) {
                names.push(json!(name));
            }
        }
        all.insert((*kind).to_owned(), by_device.into());
    }
    all.insert("masters".into(), json!({}));
    facts.insert("device_links".into(), all.into());
}

fn device(sections: &Sections, name: &str, links: &dyn Fn(&str) -> Value) -> Value {
    let path = format!("/sys/block/{name}");
    let value = |file: &str| sections.value(&format!("{path}/{file}"));
    let text = |file: &str| match value(file) {
        "" => Value::Null,
        text => json!(text),
    };
    let number = |file: &str| value(file).parse::<u64>().unwrap_or(0);
    // The kernel counts in 512 bytes whatever the device does.
    let sectors = number("size");
    let sector = match value("queue/logical_block_size") {
        "" => "512",
        size => size,
    };
    let scheduler = value("queue/scheduler");
    let chosen =
        scheduler.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(scheduler, |(name, _)| name);
    let is_virtual = sections.section("block").lines().any(|line| line.ends_with(&format!("/virtual/block/{name}")));
    let mut partitions = Facts::new();
    for part in sections.names_below(&format!("{path}/")) {
        if value(&format!("{part}/partition")).is_empty() {
            continue;
        }
        let sectors = number(&format!("{part}/size"));
        let partition = json!({
            "links": links(part), "start": value(&format!("{part}/start")), "sectors": sectors,
            "sectorsize": sector, "size": human(sectors * 512), "holders": [],
            "uuid": links(part)["uuids"].get(0).cloned(),
        });
        partitions.insert(part.to_owned(), partition);
    }
    let prefix = format!("{path}/holders/");
    let holders: Vec<&str> =
        sections.section("holders").lines().filter_map(|line| line.strip_prefix(&prefix)).collect();
    json!({
        "virtual": u8::from(is_virtual), "links": links(name), "vendor": text("device/vendor"),
        "model": text("device/model"), "sas_address": null, "sas_device_handle": null,
        "removable": value("removable"), "support_discard": value("queue/discard_granularity"),
        "partitions": partitions, "rotational": value("queue/rotational"), "scheduler_mode": chosen,
        "sectors": sectors, "sectorsize": sector, "size": human(sectors * 512), "host": "", "holders": holders,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(text: &str) -> Sections {
        Sections::parse(text.as_bytes(), "@")
    }

    #[test]
    fn processors_are_counted_by_sockets_cores_and_threads() {
        let cpu = |n: u8, socket: u8| {
            format!(
                "processor : {n}\nvendor_id : X\nmodel name : Y\nphysical id : {socket}\ncpu cores : 2\nsiblings : 4\nflags : a b\n"
            )
        };
        let text: String = (0..8).map(|n| cpu(n, n / 4)).collect();
        let text: String = text.lines().map(|line| format!("/proc/cpuinfo:{line}\n")).collect();
        let mut facts = Facts::new();
        processor(&sections(&format!("\n@hardware\n{text}\n@nproc\n6\n")), &mut facts);
        assert_eq!(facts["processor_count"], 2);
        assert_eq!((&facts["processor_cores"], &facts["processor_threads_per_core"]), (&json!(2), &json!(2)));
        assert_eq!((&facts["processor_vcpus"], &facts["processor_nproc"]), (&json!(8), &json!(6)));
        assert_eq!(facts["processor"].as_array().unwrap()[..3], [json!("0"), json!("X"), json!("Y")]);
    }

    #[test]
    fn mounts_have_sizes_and_plain_paths() {
        let text = "\n@hardware\n/proc/self/mounts:/dev/sda1 /a\\040b ext4 rw,x 0 1\n/proc/self/mounts:proc /proc proc rw 0 0\n\
                    \n@sizes\n4096 10 4 100 90 /a b\n\n@links\n/dev/disk/by-uuid:\ntotal 0\nlrwxrwxrwx 1 root root 10 Jan 1 00:00 11-22 -> ../../sda1\n";
        let mut facts = Facts::new();
        mounts(&sections(text), &mut facts);
        let mount = &facts["mounts"][0];
        assert_eq!(facts["mounts"].as_array().unwrap().len(), 1);
        assert_eq!((&mount["mount"], &mount["uuid"]), (&json!("/a b"), &json!("11-22")));
        assert_eq!(
            (&mount["size_total"], &mount["block_used"], &mount["inode_used"]),
            (&json!(40960), &json!(6), &json!(10))
        );
    }

    #[test]
    fn sizes_are_written_for_people() {
        assert_eq!([human(0), human(1024), human(5 << 30)], ["0.00 Bytes", "1.00 KB", "5.00 GB"]);
    }
}
