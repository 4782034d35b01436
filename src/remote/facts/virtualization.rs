//! Whether the host is a guest, and of what.

use serde_json::json;

use super::sections::{Facts, Sections};

/// The guesses: the first one about the host itself is used, all are kept.
#[derive(Default)]
struct VirtualizationGuess<'a> {
    /// Kind and role.
    first: Option<(&'a str, &'a str)>,
    guest: Vec<&'a str>,
    host: Vec<&'a str>,
}

impl<'a> VirtualizationGuess<'a> {
    fn guest(&mut self, kind: &'a str) {
        self.first.get_or_insert((kind, "guest"));
        if !self.guest.contains(&kind) {
            self.guest.push(kind);
        }
    }

    fn host(&mut self, kind: &'a str) {
        self.first.get_or_insert((kind, "host"));
        if !self.host.contains(&kind) {
            self.host.push(kind);
        }
    }
}

pub(super) fn virtualization(sections: &Sections, facts: &mut Facts) {
    let mut found = VirtualizationGuess::default();
    // Inside out: a container on a virtual machine is a container.
    containers(sections, &mut found);
    xen(sections, &mut found);
    firmware(sections, &mut found);
    processor(sections, &mut found);
    hosts(sections, &mut found);
    let (kind, role) = found.first.unwrap_or(("NA", "NA"));
    found.guest.sort_unstable();
    found.host.sort_unstable();
    facts.insert("virtualization_type".into(), json!(kind));
    facts.insert("virtualization_role".into(), json!(role));
    facts.insert("virtualization_tech_guest".into(), json!(found.guest));
    facts.insert("virtualization_tech_host".into(), json!(found.host));
}

fn containers<'a>(sections: &'a Sections, found: &mut VirtualizationGuess<'a>) {
    let there = |path: &str| sections.has_line("virtual-there", path);
    for group in sections.file_content("/proc/1/cgroup").unwrap_or_default().lines() {
        match group {
            group if is_docker(group) => found.guest("docker"),
            group if group.contains("/lxc/") || group.contains("/machine.slice/machine-lxc") => found.guest("lxc"),
            group if group.contains("/system.slice/containerd.service") => found.guest("containerd"),
            _ => {}
        }
    }
    // The environment of the first process; only root may read it.
    if let Some(reported) =
        sections.section_line("environ").strip_prefix("container=").filter(|reported| !reported.is_empty())
    {
        if let Some(kind) = ["lxc", "podman"].into_iter().find(|kind| reported.starts_with(kind)) {
            found.guest(kind);
        }
        found.guest("container");
    }
    if there("/proc/vz") && !there("/proc/lve") {
        if there("/proc/bc") { found.host("openvz") } else { found.guest("openvz") }
    }
    // systemd keeps the same for all to read.
    let kept = sections.file_value("/run/systemd/container");
    if !kept.is_empty() {
        found.guest(kept);
    }
    if there("/.dockerenv") || there("/.dockerinit") {
        found.guest("docker");
    }
    let is_container = ["docker", "lxc", "podman", "openvz", "containerd"].iter().any(|it| found.guest.contains(it));
    if is_container || !kept.is_empty() {
        found.guest("container");
    }
}

/// `/docker/ID`, or `/docker-ID.scope`.
fn is_docker(group: &str) -> bool {
    group.split("/docker").skip(1).any(|rest| {
        rest.starts_with('/') || rest.strip_prefix('-').and_then(|rest| rest.split_once(".scope")).is_some()
    })
}

fn xen(sections: &Sections, found: &mut VirtualizationGuess) {
    if sections.file_value("/proc/xen/capabilities").contains("control_d") {
        found.host("xen");
    } else if sections.has_line("virtual-there", "/proc/xen") {
        found.first.get_or_insert(("xen", "guest"));
    }
}

fn firmware(sections: &Sections, found: &mut VirtualizationGuess) {
    let dmi = |file: &str| sections.file_value(&format!("/sys/class/dmi/id/{file}"));
    let (product, vendor, bios) = (dmi("product_name"), dmi("sys_vendor"), dmi("bios_vendor"));
    match product {
        "KVM" | "KVM Server" | "Bochs" | "AHV" | "CloudStack KVM Hypervisor" => found.guest("kvm"),
        "OpenStack Compute" | "OpenStack Nova" => found.guest("openstack"),
        "RHEV Hypervisor" if vendor == "Red Hat" => found.guest("RHEV"),
        product if product.starts_with("VMware") => found.guest("VMware"),
        product if product.contains("BHYVE") => found.guest("bhyve"),
        _ => {}
    }
    match bios {
        "Xen" => found.guest("xen"),
        "innotek GmbH" => found.guest("virtualbox"),
        "Amazon EC2" | "DigitalOcean" | "Hetzner" | "Linode" => found.guest("kvm"),
        _ => {}
    }
    match vendor {
        "oVirt" => found.guest("oVirt"),
        "Red Hat" if dmi("product_family") == "RHV" => found.guest("RHV"),
        "QEMU" | "Amazon EC2" | "DigitalOcean" | "Google" | "Scaleway" | "Nutanix" => found.guest("kvm"),
        "KubeVirt" => found.guest("KubeVirt"),
        "Microsoft Corporation" => found.guest("VirtualPC"),
        "Parallels Software International Inc." => found.guest("parallels"),
        "OpenStack Foundation" => found.guest("openstack"),
        _ => {}
    }
}

fn processor(sections: &Sections, found: &mut VirtualizationGuess) {
    for line in sections.section("cpu").lines() {
        let Some((name, value)) = line.split_once(':').map(|(name, value)| (name.trim(), value.trim())) else {
            continue;
        };
        match (name, value) {
            ("model name", value) if value.contains("QEMU Virtual CPU") => found.guest("kvm"),
            ("vendor_id", "User Mode Linux") => found.guest("uml"),
            ("model name", value) if value.contains("UML") => found.guest("uml"),
            ("machine", value) if value.contains("(emulated by qemu)") => found.guest("kvm"),
            ("vendor_id", "PowerVM Lx86") => found.guest("powervm_lx86"),
            ("vendor_id", "IBM/S390") => {
                found.first.get_or_insert(("PR/SM", "LPAR"));
                found.guest("PR/SM");
            }
            ("VxID", "0") => found.host("linux_vserver"),
            ("VxID", _) => found.guest("linux_vserver"),
            _ => {}
        }
    }
}

fn hosts(sections: &Sections, found: &mut VirtualizationGuess) {
    let module = |name: &str| sections.has_line("modules", name);
    if module("kvm") {
        found.host("kvm");
    }
    if module("vboxdrv") {
        found.host("virtualbox");
    }
    if module("virtio") {
        found.first.get_or_insert(("kvm", "guest"));
        found.host("kvm");
    }
    if sections.has_line("virtual-there", "/dev/kvm") {
        found.host("kvm");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> Facts {
        let mut facts = Facts::new();
        virtualization(&Sections::parse_sections(text.as_bytes(), "@"), &mut facts);
        facts
    }

    fn kind(text: &str) -> (String, String) {
        let facts = facts(text);
        let text = |name: &str| facts[name].as_str().unwrap().to_owned();
        (text("virtualization_type"), text("virtualization_role"))
    }

    #[test]
    fn a_container_on_a_virtual_machine_is_a_container() {
        let guest = "\n@virtual\n/sys/class/dmi/id/product_name:KVM\n";
        assert_eq!(kind(guest), ("kvm".into(), "guest".into()));
        assert_eq!(kind(&format!("{guest}\n@virtual-there\n/.dockerenv\n")), ("docker".into(), "guest".into()));
        let both = facts(&format!("{guest}\n@virtual-there\n/.dockerenv\n"));
        assert_eq!(both["virtualization_tech_guest"], json!(["container", "docker", "kvm"]));
    }

    #[test]
    fn a_container_of_a_kind_without_a_name_in_ansible_is_a_container_to_root() {
        let kept = "\n@virtual\n/run/systemd/container:systemd-nspawn\n";
        assert_eq!(kind(kept).0, "systemd-nspawn");
        let root = format!("{kept}\n@environ\ncontainer=systemd-nspawn\n");
        assert_eq!(kind(&root).0, "container");
        assert_eq!(facts(&root)["virtualization_tech_guest"], json!(["container", "systemd-nspawn"]));
    }

    #[test]
    fn docker_is_known_by_its_control_group() {
        for group in ["0::/docker/0a1b", "1:cpu:/system.slice/docker-0a1b.scope"] {
            assert_eq!(kind(&format!("\n@virtual\n/proc/1/cgroup:{group}\n")).0, "docker", "{group}");
        }
        assert_eq!(kind("\n@virtual\n/proc/1/cgroup:0::/system.slice/docker.service\n").0, "NA");
    }

    #[test]
    fn plain_hardware_is_a_host_if_it_can_have_guests() {
        assert_eq!(kind("\n@modules\nkvm\n"), ("kvm".into(), "host".into()));
        assert_eq!(kind("\n@modules\n"), ("NA".into(), "NA".into()));
    }
}
