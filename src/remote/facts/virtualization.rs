//! Whether the host is a guest, and of what.

use serde_json::json;

use super::sections::{Facts, Sections};

pub(super) fn virtualization(sections: &Sections, facts: &mut Facts) {
    let (container, machine) = (container(sections), machine(sections));
    let mut guest: Vec<&str> = container.iter().chain(&machine).copied().collect();
    if container.is_some() {
        guest.push("container");
    }
    let host = host(sections);
    // Inside out: a container on a virtual machine is a container.
    let (kind, role) = match (container.or(machine), host.first()) {
        (Some(kind), _) => (kind, "guest"),
        (None, Some(kind)) => (*kind, "host"),
        (None, None) => ("NA", "NA"),
    };
    facts.insert("virtualization_type".into(), json!(kind));
    facts.insert("virtualization_role".into(), json!(role));
    facts.insert("virtualization_tech_guest".into(), json!(guest));
    facts.insert("virtualization_tech_host".into(), json!(host));
}

fn container(sections: &Sections) -> Option<&'static str> {
    let there = |path: &str| sections.has("virtual-there", path);
    let groups = sections.file("/proc/1/cgroup").unwrap_or_default();
    // What the first process was told, where we may read it; systemd keeps it for all.
    let told =
        [sections.line("environ").strip_prefix("container=").unwrap_or(""), sections.value("/run/systemd/container")];
    let named = |name: &str| told.contains(&name) || sections.section("detect").lines().any(|line| line == name);
    let in_groups = |word: &str| groups.contains(word);
    match () {
        () if named("podman") || there("/run/.containerenv") => Some("podman"),
        () if named("docker") || there("/.dockerenv") || there("/.dockerinit") || in_groups("/docker") => {
            Some("docker")
        }
        () if named("lxc") || named("lxc-libvirt") || in_groups("/lxc/") => Some("lxc"),
        () if named("systemd-nspawn") => Some("systemd-nspawn"),
        () if named("openvz") || there("/proc/vz") && !there("/proc/bc") => Some("openvz"),
        () if in_groups("/kubepods") || in_groups("containerd") => Some("containerd"),
        () if told.iter().any(|name| !name.is_empty()) => Some("container"),
        () => None,
    }
}

fn machine(sections: &Sections) -> Option<&'static str> {
    const DETECTED: &[(&str, &str)] = &[
        ("kvm", "kvm"),
        ("qemu", "kvm"),
        ("amazon", "kvm"),
        ("google", "kvm"),
        ("vmware", "VMware"),
        ("oracle", "virtualbox"),
        ("microsoft", "VirtualPC"),
        ("xen", "xen"),
        ("parallels", "parallels"),
        ("bhyve", "bhyve"),
        ("zvm", "zvm"),
        ("wsl", "wsl"),
    ];
    let detected = DETECTED.iter().find(|(name, _)| sections.section("detect").lines().any(|line| line == *name));
    if let Some((_, kind)) = detected {
        return Some(kind);
    }
    let dmi = |file: &str| sections.value(&format!("/sys/class/dmi/id/{file}"));
    let (product, vendor, bios) = (dmi("product_name"), dmi("sys_vendor"), dmi("bios_vendor"));
    match () {
        () if sections.value("/sys/hypervisor/type") == "xen" || bios == "Xen" => Some("xen"),
        () if product.starts_with("VMware") || vendor == "VMware, Inc." => Some("VMware"),
        () if product == "VirtualBox" || vendor == "innotek GmbH" => Some("virtualbox"),
        () if product == "Virtual Machine" && vendor == "Microsoft Corporation" => Some("VirtualPC"),
        () if matches!(
            product,
            "KVM" | "KVM Server" | "Bochs" | "AHV" | "OpenStack Nova" | "Google Compute Engine"
        ) =>
        {
            Some("kvm")
        }
        () if matches!(
            vendor,
            "QEMU" | "Red Hat" | "oVirt" | "Amazon EC2" | "Google" | "DigitalOcean" | "Hetzner" | "Scaleway"
        ) =>
        {
            Some("kvm")
        }
        // No more than that there is a hypervisor, as in the smallest virtual machines.
        () if sections.line("cpu").split_whitespace().any(|flag| flag == "hypervisor") => Some("kvm"),
        () => None,
    }
}

fn host(sections: &Sections) -> Vec<&'static str> {
    let module = |name: &str| sections.has("modules", name);
    let mut kinds = Vec::new();
    if sections.value("/proc/xen/capabilities").contains("control_d") {
        kinds.push("xen");
    }
    if sections.has("virtual-there", "/proc/vz") && sections.has("virtual-there", "/proc/bc") {
        kinds.push("openvz");
    }
    if module("kvm") || sections.has("virtual-there", "/dev/kvm") {
        kinds.push("kvm");
    }
    if module("vboxdrv") {
        kinds.push("virtualbox");
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> (String, String) {
        let mut facts = Facts::new();
        virtualization(&Sections::parse(text.as_bytes(), "@"), &mut facts);
        let text = |name: &str| facts[name].as_str().unwrap().to_owned();
        (text("virtualization_type"), text("virtualization_role"))
    }

    #[test]
    fn a_container_on_a_virtual_machine_is_a_container() {
        let guest = "\n@virtual\n/sys/class/dmi/id/product_name:KVM\n";
        assert_eq!(kind(guest), ("kvm".into(), "guest".into()));
        assert_eq!(kind(&format!("{guest}\n@virtual-there\n/.dockerenv\n")), ("docker".into(), "guest".into()));
    }

    #[test]
    fn plain_hardware_is_a_host_if_it_can_have_guests() {
        assert_eq!(kind("\n@modules\nkvm\n"), ("kvm".into(), "host".into()));
        assert_eq!(kind("\n@detect\nnone\nnone\n"), ("NA".into(), "NA".into()));
    }
}
