//! Which distribution it is, under the names that Ansible gives them, and what follows from it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::sections::{Facts, Sections, assignments};

/// os-release's ID, Ansible's name of the distribution, its family.
const DISTRIBUTIONS: &[(&str, &str, &str)] = &[
    ("almalinux", "AlmaLinux", "RedHat"),
    ("alpine", "Alpine", "Alpine"),
    ("amzn", "Amazon", "RedHat"),
    ("anolis", "Anolis", "RedHat"),
    ("arch", "Archlinux", "Archlinux"),
    ("centos", "CentOS", "RedHat"),
    ("clear-linux-os", "ClearLinux", "ClearLinux"),
    ("cloudlinux", "CloudLinux", "RedHat"),
    ("debian", "Debian", "Debian"),
    ("deepin", "Deepin", "Debian"),
    ("devuan", "Devuan", "Debian"),
    ("fedora", "Fedora", "RedHat"),
    ("flatcar", "Flatcar", "Flatcar"),
    ("gentoo", "Gentoo", "Gentoo"),
    ("kali", "Kali", "Debian"),
    ("kylin", "Kylin Linux Advanced Server", "RedHat"),
    ("linuxmint", "Linux Mint", "Debian"),
    ("manjaro", "Archlinux", "Archlinux"),
    ("miraclelinux", "MIRACLE", "RedHat"),
    ("neon", "KDE neon", "Debian"),
    ("ol", "OracleLinux", "RedHat"),
    ("openEuler", "openEuler", "RedHat"),
    ("opensuse-leap", "openSUSE Leap", "Suse"),
    ("opensuse-tumbleweed", "openSUSE Tumbleweed", "Suse"),
    ("parrot", "Parrot", "Debian"),
    ("pop", "Pop!_OS", "Debian"),
    ("raspbian", "Debian", "Debian"),
    ("rhel", "RedHat", "RedHat"),
    ("rocky", "Rocky", "RedHat"),
    ("sled", "SLED", "Suse"),
    ("sles", "SLES", "Suse"),
    ("sles_sap", "SLES_SAP", "Suse"),
    ("tencentos", "TencentOS", "RedHat"),
    ("ubuntu", "Ubuntu", "Debian"),
    ("virtuozzo", "Virtuozzo", "RedHat"),
];

pub(super) fn distribution(sections: &Sections, facts: &mut Facts) {
    let (path, release) = os_release(sections);
    let key = |name: &str| release.get(name).map_or("", String::as_str);
    let (name, family) = name_and_family(sections, key("ID"), key("ID_LIKE"), key("NAME"));
    let point = sections.file_value("/etc/debian_version");
    let numbered = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let version = match name.as_str() {
        // os-release has the major version only.
        "Debian" if numbered(point) => point.to_owned(),
        "Alpine" if numbered(sections.file_value("/etc/alpine-release")) => {
            sections.file_value("/etc/alpine-release").to_owned()
        }
        _ if !key("VERSION_ID").is_empty() => key("VERSION_ID").to_owned(),
        _ => old_version(sections).unwrap_or_else(|| "NA".to_owned()),
    };
    let mut parts = version.split('.');
    let major = parts.next().unwrap_or_default().to_owned();
    let release_file = match family.as_str() {
        "RedHat" if sections.file_content("/etc/redhat-release").is_some() => "/etc/redhat-release",
        _ => path,
    };
    facts.insert("distribution".into(), json!(name));
    facts.insert("distribution_version".into(), json!(version));
    facts.insert("distribution_major_version".into(), json!(major));
    if let (true, Some(minor)) = (matches!(name.as_str(), "Debian" | "Ubuntu"), parts.next()) {
        facts.insert("distribution_minor_version".into(), json!(minor));
    }
    facts.insert("distribution_release".into(), json!(codename(key("VERSION_CODENAME"), key("VERSION"), key("NAME"))));
    if sections.file_content(release_file).is_some() {
        facts.insert("distribution_file_parsed".into(), json!(true));
        facts.insert("distribution_file_path".into(), json!(release_file));
        facts.insert("distribution_file_variety".into(), json!(if family == "Debian" { &family } else { &name }));
    }
    facts.insert("os_family".into(), json!(family));
}

fn os_release(sections: &Sections) -> (&'static str, HashMap<&str, String>) {
    let path =
        if sections.file_content("/etc/os-release").is_some() { "/etc/os-release" } else { "/usr/lib/os-release" };
    (path, assignments(sections.file_content(path).unwrap_or_default()))
}

fn name_and_family(sections: &Sections, id: &str, like: &str, name: &str) -> (String, String) {
    if let Some((_, name, family)) = DISTRIBUTIONS.iter().find(|(it, ..)| *it == id) {
        return ((*name).to_owned(), (*family).to_owned());
    }
    let family = |id: &str| DISTRIBUTIONS.iter().find(|(it, ..)| *it == id).map(|(_, _, family)| *family);
    let own = name.split(' ').next().unwrap_or_default();
    if !own.is_empty() {
        let family = like.split(' ').find_map(family).or_else(|| like.contains("suse").then_some("Suse"));
        return (own.to_owned(), family.unwrap_or(own).to_owned());
    }
    // Without os-release: CentOS 6 and its like.
    let old = sections.file_value("/etc/redhat-release");
    match old.split(' ').next() {
        Some("Red") => ("RedHat".into(), "RedHat".into()),
        Some(name) if !name.is_empty() => (name.to_owned(), "RedHat".into()),
        _ if !sections.file_value("/etc/debian_version").is_empty() => ("Debian".into(), "Debian".into()),
        _ => ("Linux".into(), "Linux".into()),
    }
}

fn old_version(sections: &Sections) -> Option<String> {
    let line = sections.file_value("/etc/redhat-release");
    line.split(' ').find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned)
}

/// `VERSION_CODENAME`, or the text in parentheses: `9.4 (Plow)`.
fn codename(codename: &str, version: &str, name: &str) -> String {
    if !codename.is_empty() {
        return codename.to_owned();
    }
    if name == "CentOS Stream" {
        return "Stream".to_owned();
    }
    let inside = version.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(inside, _)| inside);
    inside.unwrap_or("NA").to_owned()
}

/// Needs what [`distribution`] found.
pub(super) fn package_manager(sections: &Sections, facts: &mut Facts) {
    let red = facts.get("os_family").is_some_and(|family| family == "RedHat");
    facts.insert("pkg_mgr".into(), json!(package_manager_of(sections, red)));
}

fn package_manager_of(sections: &Sections, red_hat: bool) -> &'static str {
    let there = |path: &str| sections.has_line("there", path);
    if red_hat {
        // In the order of preference. Where the root is an image, packages are rpm-ostree's affair.
        return match () {
            () if there("/run/ostree-booted") => "atomic_container",
            () if there("/usr/bin/dnf-3") => "dnf",
            () if there("/usr/bin/dnf5") => "dnf5",
            () if there("/usr/bin/dnf") || there("/usr/bin/microdnf") => "dnf",
            () if there("/usr/bin/yum") => "yum",
            () => "unknown",
        };
    }
    const OTHERS: &[(&str, &str)] = &[
        ("/usr/bin/apt-get", "apt"),
        ("/usr/bin/zypper", "zypper"),
        ("/sbin/apk", "apk"),
        ("/usr/bin/apk", "apk"),
        ("/usr/bin/pacman", "pacman"),
        ("/usr/bin/emerge", "portage"),
        ("/usr/bin/xbps-install", "xbps"),
        ("/usr/bin/swupd", "swupd"),
        ("/usr/bin/opkg", "opkg"),
        ("/bin/opkg", "opkg"),
        ("/usr/bin/dnf5", "dnf5"),
        ("/usr/bin/dnf", "dnf"),
        ("/usr/bin/yum", "yum"),
    ];
    OTHERS.iter().find(|(path, _)| there(path)).map_or("unknown", |(_, name)| name)
}

/// What `lsb_release -a` says, without running it: on many hosts it is a slow script. Needs what [`distribution`] found.
pub(super) fn lsb(sections: &Sections, facts: &mut Facts) {
    facts.insert("lsb".into(), lsb_of(sections, facts));
}

fn lsb_of(sections: &Sections, facts: &Facts) -> Value {
    let os = os_release(sections).1;
    let key = |name: &str| os.get(name).map_or("", String::as_str);
    let fact = |name: &str| facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let file = assignments(sections.file_content("/etc/lsb-release").unwrap_or_default());
    let from_file = |name: &str| file.get(name).filter(|value| !value.is_empty()).cloned();
    if !sections.has_line("there", "/usr/bin/lsb_release") && !file.contains_key("DISTRIB_ID") {
        return json!({});
    }
    let release = from_file("DISTRIB_RELEASE").unwrap_or_else(|| match key("VERSION_ID") {
        "" => fact("distribution_version"),
        id => id.to_owned(),
    });
    json!({
        "id": from_file("DISTRIB_ID").unwrap_or_else(|| fact("distribution")),
        "description": from_file("DISTRIB_DESCRIPTION").unwrap_or_else(|| key("PRETTY_NAME").to_owned()),
        "major_release": release.split('.').next().unwrap_or_default(),
        "codename": from_file("DISTRIB_CODENAME").unwrap_or_else(|| key("VERSION_CODENAME").to_owned()),
        "release": release,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(files: &str, there: &str) -> Facts {
        let output = format!("\n@files\n{files}\n@there\n{there}\n");
        let mut facts = Facts::new();
        let sections = Sections::parse_sections(output.as_bytes(), "@");
        distribution(&sections, &mut facts);
        package_manager(&sections, &mut facts);
        facts
    }

    fn five(facts: &Facts) -> [&str; 5] {
        ["distribution", "distribution_version", "distribution_major_version", "distribution_release", "os_family"]
            .map(|name| facts[name].as_str().unwrap())
    }

    #[test]
    fn distributions_have_ansibles_names() {
        let debian = facts(
            "/etc/os-release:ID=debian\n/etc/os-release:VERSION_ID=\"12\"\n/etc/os-release:VERSION_CODENAME=bookworm\n\
             /etc/debian_version:12.11\n",
            "/usr/bin/apt-get",
        );
        assert_eq!(five(&debian), ["Debian", "12.11", "12", "bookworm", "Debian"]);
        assert_eq!((&debian["pkg_mgr"], &debian["distribution_minor_version"]), (&json!("apt"), &json!("11")));
        let rocky = facts(
            "/etc/os-release:ID=\"rocky\"\n/etc/os-release:VERSION_ID=\"9.4\"\n/etc/os-release:VERSION=\"9.4 (Blue Onyx)\"\n\
             /etc/redhat-release:Rocky Linux release 9.4 (Blue Onyx)\n",
            "/usr/bin/dnf-3\n/usr/bin/dnf\n/usr/bin/yum",
        );
        assert_eq!(five(&rocky), ["Rocky", "9.4", "9", "Blue Onyx", "RedHat"]);
        assert_eq!(rocky["pkg_mgr"], json!("dnf"));
        let alpine = facts(
            "/etc/os-release:ID=alpine\n/etc/os-release:VERSION_ID=3.20.1\n/etc/alpine-release:3.20.1\n",
            "/sbin/apk",
        );
        assert_eq!(five(&alpine), ["Alpine", "3.20.1", "3", "NA", "Alpine"]);
        let old = facts("/etc/redhat-release:CentOS release 6.10 (Final)\n", "/usr/bin/yum");
        assert_eq!((&old["distribution"], &old["distribution_version"]), (&json!("CentOS"), &json!("6.10")));
    }

    #[test]
    fn an_unknown_distribution_is_of_the_family_that_it_names() {
        let facts = facts(
            "/etc/os-release:ID=mine\n/etc/os-release:NAME=\"Mine OS\"\n/etc/os-release:ID_LIKE=\"x rhel\"\n",
            "",
        );
        assert_eq!((&facts["distribution"], &facts["os_family"]), (&json!("Mine"), &json!("RedHat")));
    }
}
