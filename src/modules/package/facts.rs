//! `package_facts`: which packages are installed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::in_english;
use crate::modules::{Controller, Effect, Error, Inspect, Outcome};
use crate::remote::{Command, Probe};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::{Value, Vars};

/// Packages by name; of each every version that is installed.
type Packages = BTreeMap<String, Vec<Json>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PackageFacts {
    manager: Vec<String>,
    strategy: Strategy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Strategy {
    First,
    All,
}

/// A package database, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Apk,
    Apt,
    Pacman,
    Rpm,
}

impl Inspect for PackageFacts {
    const DOC: Doc = Doc {
        name: "package_facts",
        collection: "ansible.builtin",
        summary: "Return installed packages as facts",
        arguments: &[
            Argument::new(
                "manager",
                ArgumentKind::List(&ArgumentKind::Str),
                "The package manager; auto tries all that windlass knows",
            )
            .default("auto")
            .choices(&["auto", "apk", "apt", "dnf", "dnf5", "pacman", "rpm", "yum", "zypper"]),
            Argument::new("strategy", ArgumentKind::Str, "Whether to stop at the first one with packages")
                .default("first")
                .choices(&["first", "all"]),
        ],
        free_form: None,
        example: "\
- name: List the installed packages
  package_facts:

- name: Show the version of systemd
  debug:
    msg: \"{{ ansible_facts.packages['systemd'] | map(attribute='version') | join(', ') }}\"
  when: \"'systemd' in ansible_facts.packages\"
",
        returns: &[Return::new("ansible_facts", "packages: by name a list of name, version, source and more")],
    };
    async fn inspect(&self, probe: &Probe, _: &Controller<'_>) -> Result<Outcome, Error> {
        let mut packages = Packages::new();
        for manager in self.managers() {
            if self.strategy == Strategy::First && !packages.is_empty() {
                break;
            }
            for (name, mut found) in manager.packages(probe).await? {
                packages.entry(name).or_default().append(&mut found);
            }
        }
        if packages.is_empty() {
            let asked = self.manager.join(", ");
            return Err(Error::failed(format!("the host has none of these package databases: {asked}")));
        }
        let packages = packages.into_iter().map(|(name, found)| (name, Json::Array(found))).collect::<Map<_, _>>();
        let packages = Value::from(minijinja::value::Serde(Json::Object(packages)));
        let facts = Vars::from_iter([(Arc::from("packages"), packages)]);
        let outcome = Outcome::default().with("ansible_facts", Value::from_pairs(facts.clone()));
        Ok(outcome.effect(Effect::Facts(facts)))
    }
}

impl PackageFacts {
    /// Those to ask, each once.
    fn managers(&self) -> Vec<Manager> {
        let mut managers = Vec::new();
        let mut add = |manager| {
            if !managers.contains(&manager) {
                managers.push(manager);
            }
        };
        for name in &self.manager {
            match name.as_str() {
                "apk" => add(Manager::Apk),
                "apt" => add(Manager::Apt),
                "pacman" => add(Manager::Pacman),
                "auto" => [Manager::Apk, Manager::Apt, Manager::Pacman, Manager::Rpm].into_iter().for_each(&mut add),
                _ => add(Manager::Rpm),
            }
        }
        managers
    }
}

impl Manager {
    /// What it has installed; nothing if the host does not have it.
    async fn packages(self, probe: &Probe) -> Result<Packages, Error> {
        // The tool comes before its database: a Debian host may have rpm's tools and none of its packages.
        let (tool, line, read): (&str, &str, fn(&str) -> Packages) = match self {
            Manager::Apk => ("apk", "apk info -v 2>/dev/null", apk),
            Manager::Apt => ("dpkg-query", APT, apt),
            Manager::Pacman => ("pacman", "pacman -Qi", pacman),
            Manager::Rpm => ("rpm", RPM, rpm),
        };
        if probe.which(tool).await?.is_none() {
            return Ok(Packages::new());
        }
        let output = probe.query(&in_english(Command::shell(line))).await?;
        match output.code {
            0 => Ok(read(&String::from_utf8_lossy(&output.stdout))),
            code => Err(Error::failed(format!("{tool} cannot list the installed packages: exit code {code}"))),
        }
    }
}

/// The native architecture; a line for each package; which release each list of packages is of; where each package's
/// version is from.
const APT: &str = "dpkg --print-architecture && \
    dpkg-query -W -f '${db:Status-Abbrev}\\t${Package}\\t${Architecture}\\t${Version}\\t${Section}\\n' || exit\n\
    command -v apt-cache >/dev/null || exit 0\n\
    set -- -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=\n\
    echo; apt-cache \"$@\" policy; echo; \
    dpkg-query -W -f '${binary:Package}\\n' | xargs apt-cache \"$@\" policy; exit 0";

const RPM: &str = "rpm -qa --qf '%{NAME}\\t%{VERSION}\\t%{RELEASE}\\t%{EPOCH}\\t%{ARCH}\\n'";

fn apt(text: &str) -> Packages {
    let mut parts = text.splitn(3, "\n\n");
    let mut lines = parts.next().unwrap_or_default().lines();
    let native = lines.next().unwrap_or_default();
    let (releases, policies) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (releases, sources) = (origins(releases), installed_from(policies));
    let mut packages = Packages::new();
    for line in lines {
        let [state, name, architecture, version, section] = line.split('\t').collect::<Vec<_>>()[..] else { continue };
        // Neither removed nor never there.
        if matches!(state.chars().nth(1), Some('n' | 'c') | None) {
            continue;
        }
        let is_native = architecture == native || architecture == "all";
        let name = if is_native { name.to_owned() } else { format!("{name}:{architecture}") };
        let origin = sources.get(&name).and_then(|list| releases.get(list)).map_or("", String::as_str);
        packages.entry(name.clone()).or_default().push(json!({
            "name": name, "version": version, "arch": architecture, "category": section, "origin": origin, "source": "apt",
        }));
    }
    packages
}

/// From `apt-cache policy`: who made a list of packages, by its address.
fn origins(text: &str) -> BTreeMap<String, String> {
    let mut origins = BTreeMap::new();
    let mut list = "";
    for line in text.lines().map(str::trim) {
        if let Some(release) = line.strip_prefix("release ") {
            let origin = release.split(',').find_map(|part| part.strip_prefix("o="));
            origins.insert(list.to_owned(), origin.unwrap_or_default().to_owned());
        } else if line.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            list = line.split_once(' ').map_or("", |(_, list)| list);
        }
    }
    origins
}

/// From `apt-cache policy NAME...`: the first list of packages that the installed version is in, by name.
fn installed_from(text: &str) -> BTreeMap<String, String> {
    let mut lists = BTreeMap::new();
    let (mut name, mut is_next) = ("", false);
    for line in text.lines() {
        if !line.starts_with(' ') {
            name = line.trim_end_matches(':');
            is_next = false;
        } else if line.starts_with(" *** ") {
            is_next = true;
        } else if is_next {
            is_next = false;
            let list = line.trim().split_once(' ').map_or("", |(_, list)| list);
            lists.insert(name.to_owned(), list.to_owned());
        }
    }
    lists
}

fn rpm(text: &str) -> Packages {
    let mut packages = Packages::new();
    for line in text.lines() {
        let [name, version, release, epoch, architecture] = line.split('\t').collect::<Vec<_>>()[..] else { continue };
        let architecture = Some(architecture).filter(|it| *it != "(none)");
        packages.entry(name.to_owned()).or_default().push(json!({
            "name": name, "version": version, "release": release, "epoch": epoch.parse::<u64>().ok(),
            "arch": architecture, "source": "rpm",
        }));
    }
    packages
}

fn apk(text: &str) -> Packages {
    let mut packages = Packages::new();
    for line in text.lines() {
        let [release, version, name] = line.rsplitn(3, '-').collect::<Vec<_>>()[..] else { continue };
        let package = json!({ "name": name, "version": version, "release": release, "source": "apk" });
        packages.entry(name.to_owned()).or_default().push(package);
    }
    packages
}

fn pacman(text: &str) -> Packages {
    let mut packages = Packages::new();
    for block in text.split("\n\n") {
        let field = |name: &str| {
            block.lines().find_map(|line| {
                let (key, value) = line.split_once(" : ")?;
                (key.trim() == name).then(|| value.trim())
            })
        };
        let Some(name) = field("Name") else { continue };
        let provides = field("Provides").filter(|names| *names != "None");
        let bare = |name: &str| name.split('=').next().unwrap_or(name).to_owned();
        let provides = provides.map(|names| names.split_whitespace().map(bare).collect::<Vec<_>>());
        packages.entry(name.to_owned()).or_default().push(json!({
            "name": name, "version": field("Version"), "arch": field("Architecture"), "provides": provides,
            "source": "pacman",
        }));
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Bench, cannot_run};
    use super::*;

    #[test]
    fn packages_of_debian_have_their_section_and_origin() {
        let text = "amd64\nii \tcurl\tamd64\t7.88\tweb\nrc \tgone\tall\t1\tmisc\nii \tlibc6\ti386\t2.36\tlibs\nhi \thtop\tall\t3\tutils\n\n\
            Package files:\n 100 /var/lib/dpkg/status\n     release a=now\n 500 http://d/debian bookworm/main amd64 Packages\n     \
            release v=12.11,o=Debian,a=stable,n=bookworm\n     origin d\nPinned packages:\n\n\
            curl:\n  Installed: 7.88\n  Candidate: 7.88\n  Version table:\n *** 7.88 500\n        500 http://d/debian bookworm/main amd64 Packages\n        \
            100 /var/lib/dpkg/status\nhtop:\n  Version table:\n *** 3 100\n        100 /var/lib/dpkg/status\n";
        let packages = apt(text);
        assert_eq!(packages.keys().collect::<Vec<_>>(), ["curl", "htop", "libc6:i386"]);
        let curl = json!({ "name": "curl", "version": "7.88", "arch": "amd64", "category": "web", "origin": "Debian", "source": "apt" });
        assert_eq!(packages["curl"], [curl]);
        assert_eq!(packages["htop"][0]["origin"], json!(""));
    }

    #[test]
    fn a_package_of_rpm_may_be_there_in_several_versions() {
        let packages = rpm(
            "kernel\t5.14.0\t1.el9\t(none)\tx86_64\nkernel\t5.14.0\t2.el9\t(none)\tx86_64\nbind\t9\t1\t32\t(none)\n",
        );
        assert_eq!((packages["kernel"].len(), &packages["kernel"][1]["release"]), (2, &json!("2.el9")));
        assert_eq!((&packages["bind"][0]["epoch"], &packages["bind"][0]["arch"]), (&json!(32), &Json::Null));
    }

    #[test]
    fn packages_of_alpine_and_arch_are_read() {
        assert_eq!(apk("busybox-extras-1.36.1-r5\n")["busybox-extras"][0]["release"], json!("r5"));
        let text = "Name            : bash\nVersion         : 5.2-1\nArchitecture    : x86_64\nProvides        : sh=5  posix\n\n";
        assert_eq!(pacman(text)["bash"][0]["provides"], json!(["sh", "posix"]));
    }

    #[tokio::test]
    async fn this_machine_has_its_own_package_tool_installed() {
        if !std::path::Path::new("/usr/bin/dpkg-query").exists() {
            cannot_run("this machine has no dpkg");
            return;
        }
        let bench = Bench::new().await;
        let done = bench.check("package_facts: {manager: [auto]}").await.unwrap();
        let packages = done.outcome.values["ansible_facts"].get_attr("packages").unwrap();
        let dpkg = packages.get_attr("dpkg").unwrap().get_item(&Value::from(0)).unwrap();
        assert_eq!(dpkg.get_attr("source").unwrap().to_string(), "apt");
        assert!(bench.failure("package_facts: {manager: pacman}").await.contains("none of these package databases"));
        bench.close().await;
    }
}
