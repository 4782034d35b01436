//! Processors, memory, firmware and mounts.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use serde_json::json;

use super::sections::{Facts, Sections, key_values};
use super::storage::links;

pub(super) fn processor(sections: &Sections, facts: &mut Facts) {
    let (mut list, mut sockets) = (Vec::new(), Vec::new());
    let (mut cores, mut siblings, mut index) = (1u64, 1u64, 0u64);
    let mut flags = json!([]);
    for (name, value) in key_values(sections.file_content("/proc/cpuinfo").unwrap_or_default()) {
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
    let all = if sockets.is_empty() { index.max(1) } else { count.saturating_mul(cores).saturating_mul(threads) };
    facts.insert("processor_vcpus".into(), json!(all));
    facts
        .insert("processor_nproc".into(), json!(sections.section_line("nproc").parse::<u64>().unwrap_or(index.max(1))));
    facts.insert("flags".into(), flags);
}

pub(super) fn memory(sections: &Sections, facts: &mut Facts) {
    let text = sections.file_content("/proc/meminfo").unwrap_or_default();
    let megabytes = |name: &str| -> u64 {
        let value = key_values(text)
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
    let uptime = sections.file_value("/proc/uptime").split('.').next().and_then(|seconds| seconds.parse::<u64>().ok());
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
    let value = |file: &str| match sections.file_value(&format!("/sys/class/dmi/id/{file}")) {
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

/// What is mounted from a device or a network. Of several mounts at one place the last counts, as it hides the others.
pub(super) fn mounts(sections: &Sections, facts: &mut Facts) {
    let uuids = links(sections, "/dev/disk/by-uuid");
    let sizes: Vec<(&str, Vec<u64>)> = sections.section("sizes").lines().filter_map(sizes).collect();
    let parts = mounted_parts(sections);
    let mut mounts = IndexMap::new();
    for line in sections.file_content("/proc/self/mounts").unwrap_or_default().lines() {
        let [device, path, kind, options, dump, pass] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        if !(device.starts_with('/') || device.contains(":/")) || kind == "none" {
            continue;
        }
        let (device, path) = (unescape(device), unescape(path));
        let uuid = uuids.iter().find(|(_, to)| device.rsplit('/').next() == Some(to)).map_or("N/A", |(uuid, _)| uuid);
        let bind = if parts.contains(&path) && !options.contains("bind") { ",bind" } else { "" };
        let mut mount = json!({
            "mount": path, "device": device, "fstype": kind, "options": format!("{options}{bind}"), "uuid": uuid,
            "dump": dump.parse::<u64>().unwrap_or(0), "passno": pass.parse::<u64>().unwrap_or(0),
        });
        let numbers = sizes.iter().find(|(it, _)| *it == path).map(|(_, numbers)| numbers.as_slice());
        if let (Some(map), Some(&[size, total, available, inodes, free])) = (mount.as_object_mut(), numbers) {
            map.insert("size_total".into(), json!(size.saturating_mul(total)));
            map.insert("size_available".into(), json!(size.saturating_mul(available)));
            map.insert("block_size".into(), json!(size));
            map.insert("block_total".into(), json!(total));
            map.insert("block_available".into(), json!(available));
            map.insert("block_used".into(), json!(total.saturating_sub(available)));
            map.insert("inode_total".into(), json!(inodes));
            map.insert("inode_available".into(), json!(free));
            map.insert("inode_used".into(), json!(inodes.saturating_sub(free)));
        }
        mounts.insert(path, mount);
    }
    facts.insert("mounts".into(), mounts.into_values().collect());
}

/// Where a part of a file system is mounted, not its root: bind mounts, and subvolumes.
fn mounted_parts(sections: &Sections) -> BTreeSet<String> {
    let lines = sections.file_content("/proc/self/mountinfo").unwrap_or_default().lines();
    lines
        .filter_map(|line| {
            let mut words = line.split(' ').skip(3);
            let (root, path) = (words.next()?, words.next()?);
            (root != "/").then(|| unescape(path))
        })
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(text: &str) -> Sections {
        Sections::parse_sections(text.as_bytes(), "@")
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
                    /proc/self/mounts:/dev/sda1 /c ext4 ro 0 0\n/proc/self/mounts:/dev/sda1 /c ext4 rw 0 0\n\
                    /proc/self/mountinfo:30 1 8:1 /part /c rw - ext4 /dev/sda1 rw\n\
                    \n@sizes\n4096 10 4 100 90 /a b\n\n@links\n/dev/disk/by-uuid:\ntotal 0\nlrwxrwxrwx 1 root root 10 Jan 1 00:00 11-22 -> ../../sda1\n";
        let mut facts = Facts::new();
        mounts(&sections(text), &mut facts);
        let mount = &facts["mounts"][0];
        assert_eq!(facts["mounts"].as_array().unwrap().len(), 2);
        assert_eq!(facts["mounts"][1]["options"], json!("rw,bind"));
        assert_eq!((&mount["mount"], &mount["uuid"]), (&json!("/a b"), &json!("11-22")));
        assert_eq!(
            (&mount["size_total"], &mount["block_used"], &mount["inode_used"]),
            (&json!(40960), &json!(6), &json!(10))
        );
    }
}
