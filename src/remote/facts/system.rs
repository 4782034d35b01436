//! What every host has: kernel, names, time, user, environment, service manager, resolver.

use serde_json::{Value, json};

use super::sections::{Facts, Sections, assignments, key_values};

pub(super) fn platform(sections: &Sections, facts: &mut Facts) {
    let words: Vec<&str> = sections.section_line("uname").split(' ').collect();
    let [system, node, kernel, version @ .., architecture] = words.as_slice() else { return };
    // The way of `uname` on 32-bit x86 is not Ansible's.
    let architecture = if matches!(*architecture, "i486" | "i586" | "i686") { "i386" } else { architecture };
    facts.insert("system".into(), json!(system));
    facts.insert("kernel".into(), json!(kernel));
    facts.insert("kernel_version".into(), json!(version.join(" ")));
    facts.insert("machine".into(), json!(words.last()));
    facts.insert("architecture".into(), json!(architecture));
    let bits = match sections.section_line("bits") {
        "" if architecture.contains("64") => "64",
        "" => "32",
        bits => bits,
    };
    facts.insert("userspace_bits".into(), json!(bits));
    let userspace = match (architecture, bits) {
        ("x86_64", "32") => "i386",
        (architecture, _) => architecture,
    };
    facts.insert("userspace_architecture".into(), json!(userspace));
    facts.insert("nodename".into(), json!(node));
    facts.insert("hostname".into(), json!(node.split('.').next()));
    let fqdn = fully_qualified(node, sections.section_line("hosts"));
    facts.insert("domain".into(), json!(fqdn.split_once('.').map_or("", |(_, domain)| domain)));
    facts.insert("fqdn".into(), json!(fqdn));
    let id = [sections.file_value("/var/lib/dbus/machine-id"), sections.file_value("/etc/machine-id")];
    if let Some(id) = id.into_iter().find(|id| !id.is_empty()) {
        facts.insert("machine_id".into(), json!(id));
    }
}

/// The first name with a dot that the resolver has for the host's address; else its first name.
fn fully_qualified(node: &str, hosts: &str) -> String {
    let names: Vec<&str> = hosts.split_whitespace().skip(1).collect();
    let dotted = names.iter().find(|name| name.contains('.'));
    dotted.or(names.first()).copied().unwrap_or(node).to_owned()
}

pub(super) fn date_time(sections: &Sections, facts: &mut Facts) {
    let parts: Vec<&str> = sections.section_line("date").split('|').collect();
    let [year, month, day, hour, minute, second, epoch, nanos, zone, offset, weekday, number, week] = parts[..] else {
        return;
    };
    // busybox may not know of nanoseconds.
    let micros = if nanos.len() == 9 && nanos.bytes().all(|b| b.is_ascii_digit()) { &nanos[..6] } else { "000000" };
    let utc = epoch.parse().ok().and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0)).unwrap_or_default();
    let short = format!("{year}{month}{day}T{hour}{minute}{second}");
    let value = json!({
        "year": year, "month": month, "day": day, "hour": hour, "minute": minute, "second": second,
        "weekday": weekday, "weekday_number": number, "weeknumber": week,
        "epoch": epoch, "epoch_int": epoch,
        "date": format!("{year}-{month}-{day}"),
        "time": format!("{hour}:{minute}:{second}"),
        "iso8601_micro": format!("{}.{micros}Z", utc.format("%Y-%m-%dT%H:%M:%S")),
        "iso8601": utc.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "iso8601_basic": format!("{short}{micros}"),
        "iso8601_basic_short": short,
        "tz": zone, "tz_dst": zone, "tz_offset": offset,
    });
    facts.insert("date_time".into(), value);
}

pub(super) fn environment_facts(sections: &Sections, facts: &mut Facts) {
    let text = sections.section("env");
    let separator = if text.contains('\0') { '\0' } else { '\n' };
    let pairs = text.split(separator).filter_map(|pair| pair.split_once('='));
    facts.insert("env".into(), pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect());
}

pub(super) fn user(sections: &Sections, facts: &mut Facts) {
    let number = |text: &str| text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number));
    let line = sections.section_line("passwd");
    if let [name, _, uid, gid, gecos, home, shell] = line.split(':').collect::<Vec<_>>()[..] {
        facts.insert("user_id".into(), json!(name));
        facts.insert("user_uid".into(), number(uid));
        facts.insert("user_gid".into(), number(gid));
        facts.insert("user_gecos".into(), json!(gecos));
        facts.insert("user_dir".into(), json!(home));
        facts.insert("user_shell".into(), json!(shell));
    }
    for (name, value) in key_values(sections.file_content("/proc/self/status").unwrap_or_default()) {
        let (Some(kind), mut ids) = (
            match name {
                "Uid" => Some("user"),
                "Gid" => Some("group"),
                _ => None,
            },
            value.split_whitespace(),
        ) else {
            continue;
        };
        for which in ["real", "effective"] {
            facts.insert(format!("{which}_{kind}_id"), number(ids.next().unwrap_or_default()));
        }
    }
}

pub(super) fn service_manager(sections: &Sections, facts: &mut Facts) {
    let there = |path: &str| sections.has_line("there", path);
    let first = sections.file_value("/proc/1/comm");
    let name = match first {
        "procd" => "openwrt_init",
        "runit-init" | "runit" => "runit",
        "svscan" => "svc",
        "openrc-init" => "openrc",
        // A name of its own says it all; `init` may be anything, and so may the shells that containers run.
        name if !matches!(name, "" | "init" | "sh" | "bash" | "dash" | "ash" | "systemd") && !name.ends_with("sh") => {
            name
        }
        _ if ["/run/systemd/system", "/dev/.run/systemd", "/dev/.systemd"].into_iter().any(there) => "systemd",
        "systemd" => "systemd",
        _ if there("/sbin/openrc") => "openrc",
        _ if there("/sbin/initctl") && there("/etc/init.d") && !sections.section_line("init").ends_with("systemd") => {
            "upstart"
        }
        _ if sections.section_line("init").ends_with("systemd") => "systemd",
        _ if there("/etc/init.d") => "sysvinit",
        _ if there("/etc/runit") => "runit",
        _ => "service",
    };
    facts.insert("service_mgr".into(), json!(name));
}

/// `key=value` words and bare ones; a key given twice keeps its last value, or all of them in `proc_cmdline`.
pub(super) fn command_line(sections: &Sections, facts: &mut Facts) {
    let line = sections.file_value("/proc/cmdline");
    let words = shlex::split(line).unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect());
    let (mut last, mut every) = (Facts::new(), Facts::new());
    for word in words {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), json!(value)),
            None => (word, json!(true)),
        };
        match every.get_mut(&key) {
            Some(Value::Array(values)) => values.push(value.clone()),
            Some(first) => *first = json!([first.take(), value]),
            None => {
                every.insert(key.clone(), value.clone());
            }
        }
        last.insert(key, value);
    }
    facts.insert("cmdline".into(), last.into());
    facts.insert("proc_cmdline".into(), every.into());
}

pub(super) fn resolver(sections: &Sections, facts: &mut Facts) {
    let mut dns = Facts::new();
    for line in sections.file_content("/etc/resolv.conf").unwrap_or_default().lines() {
        let mut words = line.split_whitespace();
        let Some(keyword) = words.next().filter(|word| !word.starts_with(['#', ';'])) else { continue };
        let words: Vec<&str> = words.collect();
        match keyword {
            "nameserver" => {
                let servers = dns.entry("nameservers").or_insert_with(|| json!([]));
                if let Value::Array(servers) = servers {
                    servers.extend(words.iter().map(|word| json!(word)));
                }
            }
            "domain" => {
                dns.insert("domain".into(), json!(words.first()));
            }
            "search" | "sortlist" => {
                dns.insert(keyword.to_owned(), json!(words));
            }
            "options" => {
                let option = |word: &&str| match word.split_once(':') {
                    Some((name, value)) => (name.to_owned(), json!(value)),
                    None => ((*word).to_owned(), json!(true)),
                };
                dns.insert("options".into(), Value::Object(words.iter().map(option).collect()));
            }
            _ => {}
        }
    }
    facts.insert("dns".into(), dns.into());
}

pub(super) fn apparmor(sections: &Sections, facts: &mut Facts) {
    let armed = sections.has_line("there", "/sys/kernel/security/apparmor");
    facts.insert("apparmor".into(), json!({ "status": if armed { "enabled" } else { "disabled" } }));
}

pub(super) fn fips(sections: &Sections, facts: &mut Facts) {
    facts.insert("fips".into(), json!(sections.file_value("/proc/sys/crypto/fips_enabled") == "1"));
}

pub(super) fn selinux(sections: &Sections, facts: &mut Facts) {
    let selinux = match sections.file_value("/sys/fs/selinux/enforce") {
        "" => json!({ "status": "disabled" }),
        enforce => {
            let config = assignments(sections.file_content("/etc/selinux/config").unwrap_or_default());
            let configured = |name: &str| config.get(name).cloned().unwrap_or_else(|| "unknown".to_owned());
            json!({
                "status": "enabled",
                "mode": if enforce == "1" { "enforcing" } else { "permissive" },
                "config_mode": configured("SELINUX"),
                "type": configured("SELINUXTYPE"),
                "policyvers": sections.file_value("/sys/fs/selinux/policyvers").parse::<u64>().ok(),
            })
        }
    };
    facts.insert("selinux".into(), selinux);
    // It says whether the fact above is available; windlass needs no Python library for it.
    facts.insert("selinux_python_present".into(), json!(true));
}

/// Version and compile-time features of systemd, where it runs.
pub(super) fn systemd(sections: &Sections, facts: &mut Facts) {
    let mut lines = sections.section("systemd").lines();
    let version = lines.next().and_then(|line| line.split(' ').nth(1)?.parse::<u64>().ok());
    if let (Some(version), Some(features)) = (version, lines.next()) {
        facts.insert("systemd".into(), json!({ "version": version, "features": features }));
    }
}

pub(super) fn host_keys(sections: &Sections, facts: &mut Facts) {
    for kind in ["dsa", "rsa", "ecdsa", "ed25519"] {
        let mut words = sections.file_value(&format!("/etc/ssh/ssh_host_{kind}_key.pub")).split_whitespace();
        if let (Some(algorithm), Some(key)) = (words.next(), words.next()) {
            facts.insert(format!("ssh_host_key_{kind}_public"), json!(key));
            facts.insert(format!("ssh_host_key_{kind}_public_keytype"), json!(algorithm));
        }
    }
}

/// What `capsh --print` calls `Current`; `N/A` without it.
pub(super) fn capabilities(sections: &Sections, facts: &mut Facts) {
    let text = sections.section("caps");
    let current = text.lines().find_map(|line| line.strip_prefix("Current:")).map(str::trim);
    let (enforced, held) = match current {
        None if text.is_empty() => (json!("N/A"), json!("N/A")),
        None => (json!("NA"), json!([])),
        Some("=ep") => (json!("False"), json!([])),
        // The words behind the first `=`, whatever the release of capsh prints there.
        Some(value) => {
            let words = value.split('=').nth(1).unwrap_or_default();
            (json!("True"), words.split(',').map(|it| json!(it.trim())).collect())
        }
    };
    facts.insert("system_capabilities_enforced".into(), enforced);
    facts.insert("system_capabilities".into(), held);
}

pub(super) fn chroot(sections: &Sections, facts: &mut Facts) {
    facts.insert("is_chroot".into(), json!(sections.section_line("chroot") == "yes"));
}

pub(super) fn load_average(sections: &Sections, facts: &mut Facts) {
    let words: Vec<f64> =
        sections.file_value("/proc/loadavg").split(' ').filter_map(|word| word.parse().ok()).collect();
    if let [one, five, fifteen, ..] = words[..] {
        facts.insert("loadavg".into(), json!({ "1m": one, "5m": five, "15m": fifteen }));
    }
}
