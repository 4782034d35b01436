//! Facts of a host, under Ansible's names and in its shapes: one request gathers, the controller makes sense of it.
//!
//! To add a fact: let `gather.sh` print its input, compute it in the file of its kind, name it in
//! [`COLLECTORS`] if it can be requested on its own.

mod distribution;
mod hardware;
mod network;
mod sections;
mod storage;
mod system;
mod virtualization;

use std::collections::BTreeSet;
use std::sync::Arc;

use minijinja::value::Serde;
use serde_json::json;

use sections::{Facts, Sections};

use super::probe::subshell;
use super::session::random;
use super::{Error, Probe, quote};
use crate::value::{Value, Vars};

const GATHER: &str = include_str!("gather.sh");

/// Subsets that can be requested on their own.
struct Collector {
    name: &'static str,
    /// Further names for it: of the facts that it gives.
    aliases: &'static [&'static str],
    /// The part of the script that prints its input.
    part: &'static str,
    /// Whether it is gathered unless `!min` is said.
    minimal: bool,
    /// Others that it does not go without.
    needs: &'static [&'static str],
    make: fn(&Sections, &mut Facts),
}

const fn minimal(name: &'static str, aliases: &'static [&'static str], make: fn(&Sections, &mut Facts)) -> Collector {
    Collector { name, aliases, part: "minimal", minimal: true, needs: &[], make }
}

/// In the order in which they are made.
static COLLECTORS: &[Collector] = &[
    minimal(
        "platform",
        &["system", "kernel", "kernel_version", "machine", "machine_id", "python_version", "architecture"],
        system::platform,
    ),
    minimal(
        "distribution",
        &["distribution_version", "distribution_release", "distribution_major_version", "os_family"],
        distribution::distribution,
    ),
    minimal("apparmor", &[], system::apparmor),
    minimal("caps", &["system_capabilities", "system_capabilities_enforced"], system::capabilities),
    minimal("cmdline", &[], system::command_line),
    minimal("date_time", &[], system::date_time),
    minimal("dns", &[], system::resolver),
    minimal("env", &[], system::environment_facts),
    minimal("fips", &[], system::fips),
    // `ansible_local` is the setup module's: only it knows where to look.
    minimal("local", &[], |_, _| ()),
    Collector { needs: &["distribution"], ..minimal("lsb", &[], distribution::lsb) },
    Collector { needs: &["distribution"], ..minimal("pkg_mgr", &[], distribution::package_manager) },
    // There is no Python that we would use.
    minimal("python", &["pythonversion"], |_, _| ()),
    minimal("selinux", &[], system::selinux),
    Collector { needs: &["platform", "distribution"], ..minimal("service_mgr", &[], system::service_manager) },
    minimal(
        "ssh_pub_keys",
        &[
            "ssh_host_pub_keys",
            "ssh_host_key_dsa_public",
            "ssh_host_key_rsa_public",
            "ssh_host_key_ecdsa_public",
            "ssh_host_key_ed25519_public",
        ],
        system::host_keys,
    ),
    minimal(
        "user",
        &[
            "user_id",
            "user_uid",
            "user_gid",
            "user_gecos",
            "user_dir",
            "user_shell",
            "real_user_id",
            "effective_user_id",
            "real_group_id",
            "effective_group_id",
        ],
        system::user,
    ),
    Collector { minimal: false, ..minimal("chroot", &["is_chroot"], system::chroot) },
    Collector { minimal: false, ..minimal("loadavg", &[], system::load_average) },
    Collector {
        name: "hardware",
        aliases: &["processor", "processor_cores", "processor_count", "mounts", "memory", "devices", "dmi"],
        part: "hardware",
        minimal: false,
        needs: &["platform"],
        make: |sections, facts| {
            hardware::processor(sections, facts);
            hardware::memory(sections, facts);
            hardware::firmware(sections, facts);
            hardware::mounts(sections, facts);
            storage::devices(sections, facts);
            storage::volumes(sections, facts);
        },
    },
    Collector { part: "storage", minimal: false, ..minimal("fibre_channel_wwn", &[], storage::fibre_channel) },
    Collector { part: "storage", minimal: false, ..minimal("iscsi", &[], storage::iscsi) },
    Collector { part: "storage", minimal: false, ..minimal("nvme", &[], storage::nvme) },
    Collector { part: "systemd", minimal: false, ..minimal("systemd", &[], system::systemd) },
    Collector {
        name: "network",
        aliases: &["interfaces", "default_ipv4", "default_ipv6", "all_ipv4_addresses", "all_ipv6_addresses"],
        part: "network",
        minimal: false,
        needs: &["platform", "distribution"],
        make: network::network,
    },
    Collector {
        name: "virtual",
        aliases: &[
            "virtualization_type",
            "virtualization_role",
            "virtualization_tech_guest",
            "virtualization_tech_host",
        ],
        part: "virtual",
        minimal: false,
        needs: &[],
        make: virtualization::virtualization,
    },
];

/// Known to Ansible; their facts need third-party programs.
const ACCEPTED: &[&str] = &["facter", "ohai"];

impl Probe {
    /// Facts under Ansible's names, with the `ansible_` prefix, besides `gather_subset` and `module_setup`.
    /// `subset` as `gather_subset` has it; empty: all. Without `ansible_local`.
    pub async fn facts(&self, subset: &[String]) -> Result<Vars, Error> {
        let chosen = choose(subset)?;
        let mark = format!("={}=", random());
        let mut facts = Facts::new();
        if !chosen.is_empty() {
            let script = script(&chosen, &self.account.user, &quote::exports(self.environment.iter())?, &mark);
            let answer = self.session().await?.ask(&subshell(&script)).await?;
            let sections = Sections::parse_sections(&answer.stdout, &mark);
            for collector in chosen {
                (collector.make)(&sections, &mut facts);
            }
        }
        let prefixed =
            facts.into_iter().map(|(name, value)| (Arc::from(format!("ansible_{name}")), Value::from(Serde(value))));
        let mut vars: Vars = prefixed.collect();
        vars.sort_unstable_keys();
        let asked = if subset.is_empty() { json!(["all"]) } else { json!(subset) };
        vars.insert(Arc::from("gather_subset"), Value::from(Serde(asked)));
        vars.insert(Arc::from("module_setup"), Value::from(true));
        Ok(vars)
    }
}

/// Whether `gather_subset` chooses what is gathered under a name.
pub fn gathers(subset: &[String], name: &str) -> Result<bool, Error> {
    Ok(choose(subset)?.iter().any(|it| it.name == name))
}

/// What `gather_subset` chooses: the minimum always comes first, then the named subsets; `!` excludes one that is not named
/// without it.
fn choose(subset: &[String]) -> Result<Vec<&'static Collector>, Error> {
    let of = |name: &str| COLLECTORS.iter().find(|it| it.name == name || it.aliases.contains(&name));
    let minimal = || COLLECTORS.iter().filter(|it| it.minimal).map(|it| it.name);
    let others = || COLLECTORS.iter().filter(|it| !it.minimal).map(|it| it.name);
    let all = ["all".to_owned()];
    let (mut chosen, mut named, mut excluded) = (BTreeSet::from_iter(minimal()), BTreeSet::new(), BTreeSet::new());
    for word in if subset.is_empty() { &all } else { subset } {
        let (exclude, name) = word.strip_prefix('!').map_or((false, word.as_str()), |name| (true, name));
        match (name, exclude) {
            ("min", false) => {}
            ("min", true) => excluded.extend(minimal()),
            ("all", false) => chosen.extend(others()),
            ("all", true) => excluded.extend(others()),
            (name, _) if ACCEPTED.contains(&name) => {}
            (name, exclude) => {
                let Some(collector) = of(name) else {
                    let names = COLLECTORS.iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
                    let reason = format!("no such subset; use all, min, {names}");
                    return Err(Error::Refused { what: format!("gather {name:?}"), reason });
                };
                // A single fact of a collector cannot be excluded.
                if exclude {
                    excluded.extend(Some(collector.name).filter(|it| *it == name));
                } else {
                    named.insert(collector.name);
                }
            }
        }
    }
    chosen.retain(|name| !excluded.contains(name));
    chosen.extend(named);
    let needed: Vec<&str> =
        COLLECTORS.iter().filter(|it| chosen.contains(it.name)).flat_map(|it| it.needs.iter().copied()).collect();
    chosen.extend(needed);
    Ok(COLLECTORS.iter().filter(|it| chosen.contains(it.name)).collect())
}

/// The parts of the script that the chosen collectors need.
fn script(chosen: &[&Collector], user: &str, exports: &str, mark: &str) -> String {
    let mut text = String::new();
    let mut wanted = true;
    for line in GATHER.lines() {
        if let Some(part) = line.strip_prefix("#: ") {
            wanted = part == "always" || chosen.iter().any(|it| it.part == part);
        } else if wanted && !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    let exports = if exports.is_empty() { String::new() } else { format!("{exports};") };
    text.replace("@MARK@", mark).replace("@USER@", &quote::quote_word(user)).replace("@EXPORTS@", &exports)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SHELLS, remote};
    use super::*;

    fn names(subset: &[&str]) -> Vec<&'static str> {
        let subset: Vec<String> = subset.iter().map(|word| (*word).to_owned()).collect();
        choose(&subset).unwrap().iter().map(|it| it.name).collect()
    }

    #[test]
    fn subsets_add_up_as_in_ansible() {
        let minimal = names(&["min"]);
        assert_eq!(names(&[]).len(), COLLECTORS.len());
        assert_eq!(names(&["!all"]), minimal);
        assert_eq!(names(&["!hardware"]), minimal);
        assert!(names(&["!all", "!min"]).is_empty());
        assert_eq!(names(&["!all", "!min", "distribution"]), ["distribution"]);
        assert_eq!(names(&["!all", "!min", "network", "!network"]), ["platform", "distribution", "network"]);
        assert_eq!(names(&["mounts"]).len(), minimal.len() + 1);
        assert_eq!(names(&["all", "!hardware"]).len(), COLLECTORS.len() - 1);
        assert!(!names(&["min", "!env"]).contains(&"env"));
        assert!(names(&["all", "!mounts"]).contains(&"hardware"));
        assert!(names(&["all", "!hardware", "mounts"]).contains(&"hardware"));
        let error = choose(&["bogus".to_owned()]).err().unwrap().to_string();
        assert!(error.starts_with("cannot gather \"bogus\": no such subset; use all, min, platform"), "{error}");
    }

    #[tokio::test]
    async fn facts_of_this_computer_are_true() {
        for kind in SHELLS {
            let facts = remote(kind).await.facts(&[]).await.unwrap();
            let text = |name: &str| facts.get(name).map(ToString::to_string).unwrap_or_default();
            assert_eq!(text("ansible_system"), "Linux", "{kind}");
            assert_eq!(text("ansible_architecture"), std::env::consts::ARCH, "{kind}");
            assert_eq!(
                text("ansible_nodename"),
                std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim(),
                "{kind}"
            );
            assert_eq!(text("ansible_user_id"), remote(kind).await.user(), "{kind}");
            let cpus = std::thread::available_parallelism().unwrap();
            assert_eq!(text("ansible_processor_nproc"), cpus.to_string(), "{kind}");
            let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
            let total: u64 = memory.lines().next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
            assert_eq!(text("ansible_memtotal_mb"), (total / 1024).to_string(), "{kind}");
            let of = |name: &str, key: &str| facts[name].get_attr(key).unwrap();
            assert_eq!(of("ansible_lo", "ipv4").get_attr("address").unwrap().to_string(), "127.0.0.1", "{kind}");
            assert!(of("ansible_env", "PATH").to_string().contains("bin"), "{kind}");
            assert!(of("ansible_env", "LC_ALL").is_undefined() || std::env::var("LC_ALL").is_ok(), "{kind}");
            let epoch: i64 = of("ansible_date_time", "epoch").to_string().parse().unwrap();
            assert!((chrono::Utc::now().timestamp() - epoch).abs() < 60, "{kind}");
            let mounts: Vec<Value> = facts["ansible_mounts"].try_iter().unwrap().collect();
            assert!(
                mounts.iter().any(|it| it.get_attr("size_total").unwrap().as_i64().is_some_and(|size| size > 0)),
                "{kind}"
            );
        }
    }

    #[tokio::test]
    async fn the_tasks_environment_is_in_the_facts() {
        let sessions = super::super::Sessions::new(super::super::tests::Host::new("dash"));
        let environment = indexmap::IndexMap::from([("A_B".to_owned(), "it's\nso".to_owned())]);
        let remote = super::super::Remote::open(&sessions, None, &environment).await.unwrap();
        let facts = remote.facts(&["env".to_owned()]).await.unwrap();
        assert_eq!(facts["ansible_env"].get_attr("A_B").unwrap().to_string(), "it's\nso");
        assert!(!facts.contains_key("ansible_memtotal_mb"));
    }
}
