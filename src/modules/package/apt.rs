//! `apt`: packages of Debian and its kin.

mod options;
mod policy;

use std::time::{Duration, Instant};

use serde::Deserialize;

use self::policy::Policy;
use super::dpkg::{self, Installed, Spec, candidate, outdated};
use super::{failure, in_english, said};
use crate::modules::web;
use crate::modules::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{Attributes, Command, Links, Output, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Apt {
    pub name: Option<Vec<String>>,
    pub state: AptState,
    pub update_cache: Option<bool>,
    pub cache_valid_time: u64,
    pub install_recommends: Option<bool>,
    pub default_release: Option<String>,
    pub deb: Option<String>,
    pub upgrade: Upgrade,
    pub purge: bool,
    pub autoremove: bool,
    pub autoclean: bool,
    pub only_upgrade: bool,
    pub allow_downgrade: bool,
    pub allow_unauthenticated: bool,
    pub allow_change_held_packages: bool,
    pub force: bool,
    pub dpkg_options: String,
    pub lock_timeout: u64,
    pub clean: bool,
    pub fail_on_autoremove: bool,
    pub policy_rc_d: Option<i64>,
    pub update_cache_retries: u32,
    pub update_cache_retry_max_delay: u64,
    /// There is no other way here.
    #[serde(rename = "force_apt_get")]
    pub _force_apt_get: bool,
    /// No module of Python's is needed.
    #[serde(rename = "auto_install_module_deps")]
    pub _auto_install_module_deps: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AptState {
    Present,
    Absent,
    Latest,
    BuildDep,
    Fixed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Upgrade {
    No,
    Yes,
    Safe,
    Dist,
    Full,
}

/// What is to be done, in this order.
#[derive(Debug, Default)]
pub(crate) struct AptChange {
    update: bool,
    upgrade: Option<&'static str>,
    install: Vec<String>,
    remove: Vec<String>,
    build_dep: Vec<String>,
    autoremove: bool,
    autoclean: bool,
    clean: bool,
}

impl AptChange {
    /// Whether packages come or go.
    fn is_of_packages(&self) -> bool {
        let named = [&self.install, &self.remove, &self.build_dep].iter().any(|names| !names.is_empty());
        self.upgrade.is_some() || named || self.autoremove
    }
}

/// Who only asks apt leaves no files of its cache on the host.
const KEEPS_NOTHING: &[&str] = &["-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="];

/// How often something is tried, with pauses of 1, 2, 4 seconds and so on.
pub(crate) struct Retries {
    pub times: u32,
    /// No pause is longer.
    pub longest: Duration,
}

/// Fetches the lists of packages.
pub(crate) async fn fetch_lists(remote: &Remote, retries: &Retries) -> Result<Output, Error> {
    let argv = ["apt-get".to_owned(), "-y".to_owned(), "update".to_owned()];
    let mut pause = Duration::from_secs(1);
    let mut attempt = 1;
    loop {
        let output = remote.run(&in_english(Command::program(argv.iter().cloned()))).await?;
        // It counts what could not be fetched as a warning, if there are older lists.
        let text = String::from_utf8_lossy(&output.stderr);
        let is_whole = !text.lines().any(|line| line.starts_with("W: Failed to fetch"));
        if output.code == 0 && is_whole {
            return Ok(output);
        }
        if attempt >= retries.times {
            return Err(failure(&argv, &output));
        }
        tokio::time::sleep(pause.min(retries.longest)).await;
        pause *= 2;
        attempt += 1;
    }
}

impl Module for Apt {
    const CHANGES: Changes = Changes::Packages;
    const DOC: Doc = Doc {
        name: "apt",
        collection: "ansible.builtin",
        summary: "Install and remove packages on Debian and its derivatives",
        arguments: &[
            Argument::new(
                "name",
                ArgumentKind::List(&ArgumentKind::Str),
                "Packages, as name, name=version, name>=version or name:architecture",
            )
            .alias(&["package", "pkg"]),
            Argument::new(
                "state",
                ArgumentKind::Str,
                "Whether they should be installed, absent, or installed in the newest version",
            )
            .default("present")
            .choices(&["absent", "build-dep", "latest", "present", "fixed"]),
            Argument::new("update_cache", ArgumentKind::Bool, "Whether to update the package lists first")
                .alias(&["update-cache"]),
            Argument::new(
                "cache_valid_time",
                ArgumentKind::Int,
                "Update the lists only if they are older than this, in seconds",
            )
            .default("0"),
            Argument::new(
                "install_recommends",
                ArgumentKind::Bool,
                "Whether to also install recommended packages (default: apt's own setting)",
            )
            .alias(&["install-recommends"]),
            Argument::new("default_release", ArgumentKind::Str, "The release to install packages from")
                .alias(&["default-release"]),
            Argument::new("deb", ArgumentKind::Path, "A package file to install: its path on the host, or its URL"),
            Argument::new(
                "upgrade",
                ArgumentKind::Str,
                "Whether to upgrade all packages; full and dist may also remove packages",
            )
            .default("no")
            .choices(&["no", "yes", "safe", "dist", "full"]),
            Argument::new("purge", ArgumentKind::Bool, "Whether to also remove the configuration of a removed package")
                .default("false"),
            Argument::new(
                "autoremove",
                ArgumentKind::Bool,
                "Whether to remove packages that nothing depends on any more",
            )
            .default("false"),
            Argument::new("autoclean", ArgumentKind::Bool, "Whether to remove old package files").default("false"),
            Argument::new("only_upgrade", ArgumentKind::Bool, "Whether to upgrade installed packages only")
                .default("false"),
            Argument::new("allow_downgrade", ArgumentKind::Bool, "Whether to allow downgrades")
                .alias(&["allow-downgrade", "allow_downgrades", "allow-downgrades"])
                .default("false"),
            Argument::new("allow_unauthenticated", ArgumentKind::Bool, "Whether to accept unsigned packages")
                .alias(&["allow-unauthenticated"])
                .default("false"),
            Argument::new("allow_change_held_packages", ArgumentKind::Bool, "Whether to change packages on hold")
                .default("false"),
            Argument::new("force", ArgumentKind::Bool, "Whether to pass --force-yes to apt-get").default("false"),
            Argument::new("dpkg_options", ArgumentKind::Str, "dpkg's options for changed configuration files")
                .default("force-confdef,force-confold"),
            Argument::new(
                "lock_timeout",
                ArgumentKind::Int,
                "How many seconds to wait for the lock of another package tool",
            )
            .default("60"),
            Argument::new("clean", ArgumentKind::Bool, "Whether to remove all downloaded package files")
                .default("false"),
            Argument::new("fail_on_autoremove", ArgumentKind::Bool, "Whether to fail rather than remove a package")
                .default("false"),
            Argument::new(
                "policy_rc_d",
                ArgumentKind::Int,
                "The exit code of policy-rc.d during the task, for packages that start services; 101 forbids it",
            ),
            Argument::new("update_cache_retries", ArgumentKind::Int, "How many times to try updating the lists")
                .default("5"),
            Argument::new(
                "update_cache_retry_max_delay",
                ArgumentKind::Int,
                "The longest wait between two attempts, in seconds",
            )
            .default("12"),
            Argument::new("force_apt_get", ArgumentKind::Bool, "Accepted for compatibility; it is always apt-get")
                .default("false"),
            Argument::new(
                "auto_install_module_deps",
                ArgumentKind::Bool,
                "Accepted for compatibility; no Python is needed",
            )
            .default("true"),
        ],
        free_form: None,
        example: "\
- name: Install what the service needs
  apt:
    name: [ca-certificates, curl]
    update_cache: true
    cache_valid_time: 3600
    install_recommends: false
",
        returns: &[
            Return::new("cache_updated", "Whether the package lists were updated"),
            Return::new("cache_update_time", "When they were last updated, in seconds since 1970"),
            Return::new("stdout", "Standard output of apt-get"),
            Return::new("stderr", "Standard error"),
        ],
    };
    type Change = AptChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<AptChange>, Error> {
        self.check()?;
        let change = self.changes(probe).await?;
        let names_nothing = self.name.is_none() && self.deb.is_none() && self.upgrade == Upgrade::No;
        let outcome =
            Outcome::default().with("cache_updated", false).with("cache_update_time", fetched(probe).await?.at);
        // Fetched lists may hold newer versions, a fetched file anything: only afterwards it is known what changes.
        let looks_again = change.update && (self.state == AptState::Latest || self.upgrade != Upgrade::No);
        Ok(if looks_again && !here.check || self.address().is_some() {
            Plan::Unknown(change)
        } else if change.is_of_packages() || (change.update || change.clean) && names_nothing {
            Plan::Change { diff: Vec::new(), outcome, change }
        } else if (change.update || change.autoclean || change.clean) && !here.check {
            Plan::Unknown(change)
        } else {
            Plan::Unchanged(outcome)
        })
    }

    async fn apply(&self, change: AptChange, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        match self.address() {
            Some(address) => {
                let apt = self.with_file(address, remote).await?;
                apt.carry_out(apt.changes(remote).await?, remote).await
            }
            None => self.carry_out(change, remote).await,
        }
    }
}

impl Apt {
    async fn carry_out(&self, mut change: AptChange, remote: &Remote) -> Result<Outcome, Error> {
        let mut outputs = Vec::new();
        let updated = change.update;
        if change.clean {
            outputs.push(self.apt_get(remote, &["clean"], &[]).await?);
        }
        if updated {
            let retries = Retries {
                times: self.update_cache_retries,
                longest: Duration::from_secs(self.update_cache_retry_max_delay),
            };
            outputs.push(fetch_lists(remote, &retries).await?);
            if self.state == AptState::Latest || self.upgrade != Upgrade::No {
                change = self.changes(remote).await?;
            }
        }
        let changed = change.is_of_packages();
        let policy = Policy::set_policy(remote, self.policy_rc_d.filter(|_| changed)).await?;
        let done = self.packages(remote, &change, &mut outputs).await;
        policy.put_back(remote).await?;
        done?;
        let outcome = said(&outputs).with("cache_updated", updated);
        Ok(Outcome { changed, ..outcome.with("cache_update_time", fetched(remote).await?.at) })
    }

    #[cfg(test)]
    fn of(name: Vec<String>, state: AptState) -> Apt {
        Apt {
            name: Some(name),
            state,
            update_cache: None,
            cache_valid_time: 0,
            install_recommends: None,
            default_release: None,
            deb: None,
            upgrade: Upgrade::No,
            purge: false,
            autoremove: false,
            autoclean: false,
            only_upgrade: false,
            allow_downgrade: false,
            allow_unauthenticated: false,
            allow_change_held_packages: false,
            force: false,
            dpkg_options: "force-confdef,force-confold".to_owned(),
            lock_timeout: 60,
            clean: false,
            fail_on_autoremove: false,
            policy_rc_d: None,
            update_cache_retries: 5,
            update_cache_retry_max_delay: 12,
            _force_apt_get: false,
            _auto_install_module_deps: true,
        }
    }

    fn check(&self) -> Result<(), Error> {
        let wanted = [self.name.is_some(), self.deb.is_some(), self.upgrade != Upgrade::No];
        if wanted.iter().filter(|is| **is).count() > 1 {
            return Err(Error::failed("only one of name, deb and upgrade can be given"));
        }
        match self.deb.is_some() && self.state != AptState::Present {
            true => Err(Error::failed("deb works with state: present only")),
            false => Ok(()),
        }
    }

    /// The address of a package file, if `deb` is one.
    fn address(&self) -> Option<&str> {
        self.deb.as_deref().filter(|deb| deb.contains("://"))
    }

    /// The same with a package file of the host, which is fetched; it goes when the session ends.
    async fn with_file(&self, address: &str, remote: &Remote) -> Result<Apt, Error> {
        let directory = remote.temporary_directory().await?;
        let name = address.split(['?', '#']).next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        let path = format!("{directory}/{}", if name.ends_with(".deb") { name } else { "package.deb" });
        let package = web::fetch(remote, address).await?;
        // apt reads it as a separate user.
        let mode = |mode| Attributes { mode: Some(mode), ..Attributes::default() };
        remote.set_attributes(&directory, &mode(0o755), Links::Follow).await?;
        remote.write(&path, &package, &mode(0o644)).await?;
        Ok(Apt { deb: Some(path), ..self.clone() })
    }

    /// Everything that is about packages, one after the other.
    async fn packages(&self, remote: &Remote, change: &AptChange, outputs: &mut Vec<Output>) -> Result<(), Error> {
        if let Some(verb) = change.upgrade {
            outputs.push(self.apt_get(remote, &self.upgrade_words(verb), &[]).await?);
        }
        if !change.install.is_empty() {
            outputs.push(self.apt_get(remote, &self.install_words(), &change.install).await?);
        }
        if !change.build_dep.is_empty() {
            outputs.push(self.apt_get(remote, &["build-dep"], &change.build_dep).await?);
        }
        if !change.remove.is_empty() {
            outputs.push(self.apt_get(remote, &self.remove_words(), &change.remove).await?);
        }
        if change.autoremove {
            outputs.push(self.apt_get(remote, &self.autoremove_words(), &[]).await?);
        }
        if change.autoclean {
            outputs.push(self.apt_get(remote, &["autoclean"], &[]).await?);
        }
        Ok(())
    }

    async fn changes(&self, probe: &Probe) -> Result<AptChange, Error> {
        let specs = self
            .name
            .iter()
            .flatten()
            .filter(|name| !name.trim().is_empty())
            .map(|name| Spec::parse_package_spec(name));
        let specs = specs.collect::<Result<Vec<_>, _>>()?;
        let mut change = AptChange {
            update: self.wants_update(probe).await?,
            autoclean: self.autoclean,
            clean: self.clean,
            ..AptChange::default()
        };
        let installed = Installed::read_installed(probe).await?;
        match self.state {
            AptState::Absent => {
                change.remove =
                    specs.iter().filter(|spec| installed.has_itself(spec)).map(|spec| spec.name.clone()).collect();
            }
            AptState::BuildDep => {
                let names: Vec<String> = specs.iter().map(Spec::spec_text).collect();
                let words: Vec<&str> = ["build-dep"].into_iter().chain(names.iter().map(String::as_str)).collect();
                let lacks = !names.is_empty() && self.would_change(probe, &words).await?;
                change.build_dep = if lacks { names } else { Vec::new() };
            }
            AptState::Present | AptState::Fixed => change.install = self.lacking(probe, &specs, &installed).await?,
            AptState::Latest => {
                change.install = self.lacking(probe, &specs, &installed).await?;
                let there = specs
                    .iter()
                    .filter(|spec| spec.version.is_none() && installed.installed_version(&spec.name).is_some());
                change.install.extend(self.outdated(probe, there.map(|spec| spec.name.as_str()).collect()).await?);
            }
        }
        if let Some(deb) = self.deb.as_ref().filter(|_| self.address().is_none())
            && let Some(path) = self.lacks_file(probe, deb, &installed).await?
        {
            change.install.push(path);
        }
        let verb = match self.upgrade {
            Upgrade::No => None,
            Upgrade::Yes | Upgrade::Safe => Some("upgrade"),
            Upgrade::Dist | Upgrade::Full => Some("dist-upgrade"),
        };
        if let Some(verb) = verb {
            change.upgrade = self.would_change(probe, &self.upgrade_words(verb)).await?.then_some(verb);
        }
        change.autoremove = self.autoremove && self.would_change(probe, &self.autoremove_words()).await?;
        Ok(change)
    }

    async fn lacking(&self, probe: &Probe, specs: &[Spec], installed: &Installed) -> Result<Vec<String>, Error> {
        let lacks = |spec: &&Spec| {
            !installed.is_installed(spec) && (!self.only_upgrade || installed.installed_version(&spec.name).is_some())
        };
        let lacking: Vec<&Spec> = specs.iter().filter(lacks).collect();
        for (spec, least) in lacking.iter().filter_map(|spec| Some((spec, spec.at_least.as_ref()?))) {
            let policy = String::from_utf8_lossy(&self.policy(probe, &[&spec.name]).await?.stdout).into_owned();
            // If there is none at all, apt-get reports it; in check mode an earlier task may have added its source.
            if candidate(&policy).is_some_and(|version| !dpkg::is_at_least(version, least)) {
                let message = format!("no version of {} is {least} or newer", spec.name);
                return Err(Error::failed(message));
            }
        }
        Ok(lacking.into_iter().map(Spec::spec_text).collect())
    }

    async fn outdated(&self, probe: &Probe, names: Vec<&str>) -> Result<Vec<String>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        Ok(outdated(&String::from_utf8_lossy(&self.policy(probe, &names).await?.stdout)))
    }

    async fn policy(&self, probe: &Probe, names: &[&str]) -> Result<Output, Error> {
        let release = self.default_release.iter().map(|release| format!("APT::Default-Release={release}"));
        let release = release.flat_map(|option| ["-o".to_owned(), option]);
        let argv = ["apt-cache"].iter().chain(KEEPS_NOTHING).map(|word| (*word).to_owned()).chain(release);
        let argv = argv.chain(["policy".to_owned()]).chain(names.iter().map(|name| (*name).to_owned()));
        let argv: Vec<String> = argv.collect();
        let output = probe.query(&in_english(Command::program(argv.clone()))).await?;
        if output.code == 0 { Ok(output) } else { Err(failure(&argv, &output)) }
    }

    /// The file's path, if the package in it is not installed in that version.
    async fn lacks_file(&self, probe: &Probe, deb: &str, installed: &Installed) -> Result<Option<String>, Error> {
        let path = probe.expand_on_host(deb).await?;
        let format = "--showformat=${Package}:${Architecture}\n${Version}\n";
        let output = probe.query(&in_english(Command::program(["dpkg-deb", "--show", format, &path]))).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        match (output.code, text.split_once('\n')) {
            (0, Some((name, version))) => {
                Ok((installed.installed_version(name) != Some(version.trim())).then_some(path))
            }
            _ => Err(Error::failed(format!("{path} is not a package file on the host"))),
        }
    }

    /// Whether to fetch the lists: requested, and too old.
    async fn wants_update(&self, probe: &Probe) -> Result<bool, Error> {
        if !self.update_cache.unwrap_or(self.cache_valid_time > 0) {
            return Ok(false);
        }
        if self.cache_valid_time == 0 {
            return Ok(true);
        }
        let fetched = fetched(probe).await?;
        Ok(fetched.now.saturating_sub(fetched.at) > self.cache_valid_time)
    }

    /// Asks apt-get what it would do.
    async fn would_change(&self, probe: &Probe, words: &[&str]) -> Result<bool, Error> {
        let argv = self.argv(&[KEEPS_NOTHING, &["-s"], words].concat(), &[]);
        let output = probe.query(&in_english(Command::program(argv.clone()))).await?;
        if output.code != 0 {
            return Err(failure(&argv, &output));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().any(|line| ["Inst ", "Remv ", "Purg "].iter().any(|word| line.starts_with(word))))
    }

    /// Runs apt-get; while another tool holds a lock, again and again until the time is over. (Its own waiting covers
    /// neither the lock of the lists nor releases before 2.0.)
    async fn apt_get(&self, remote: &Remote, words: &[&str], names: &[String]) -> Result<Output, Error> {
        let argv = self.argv(words, names);
        let clock = Instant::now();
        loop {
            let output = remote.run(&in_english(Command::program(argv.clone()))).await?;
            if output.code == 0 {
                return Ok(output);
            }
            let locked = String::from_utf8_lossy(&output.stderr).contains("Could not get lock");
            if !locked || clock.elapsed() >= Duration::from_secs(self.lock_timeout) {
                return Err(failure(&argv, &output));
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// When the lists of packages were fetched, by the host's clock, in seconds since 1970.
struct Fetched {
    now: u64,
    at: u64,
}

async fn fetched(probe: &Probe) -> Result<Fetched, Error> {
    let line = "date +%s; stat -c %Y /var/lib/apt/periodic/update-success-stamp 2>/dev/null \
        || stat -c %Y /var/lib/apt/lists 2>/dev/null || echo 0";
    let output = probe.query(&Command::shell(line)).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut times = text.lines().map(|line| line.trim().parse::<u64>().unwrap_or(0));
    Ok(Fetched { now: times.next().unwrap_or(0), at: times.next().unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_options() {
        let mut apt = Apt::of(vec!["curl".into()], AptState::Present);
        apt.install_recommends = Some(false);
        apt.default_release = Some("bookworm-backports".into());
        apt.allow_downgrade = true;
        let argv = apt.argv(&apt.install_words(), &["curl=1".to_owned()]).join(" ");
        assert_eq!(
            argv,
            "apt-get -y -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=60 \
             -t bookworm-backports install --allow-downgrades --no-install-recommends -- curl=1"
        );
        apt.purge = true;
        apt.autoremove = true;
        assert_eq!(apt.remove_words(), ["remove", "--purge", "--auto-remove"]);
        assert_eq!(apt.autoremove_words(), ["autoremove", "--purge"]);
        apt.state = AptState::Fixed;
        apt.fail_on_autoremove = true;
        assert_eq!(apt.upgrade_words("upgrade"), ["upgrade", "--no-remove", "--allow-downgrades"]);
        assert!(apt.install_words().contains(&"--fix-broken") && apt.install_words().contains(&"--no-remove"));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let mut apt = Apt::of(vec!["curl".into()], AptState::Present);
        apt.upgrade = Upgrade::Dist;
        assert_eq!(apt.check().unwrap_err().to_string(), "only one of name, deb and upgrade can be given");
        let fetched = Apt { name: None, deb: Some("http://d/x.deb".into()), ..Apt::of(Vec::new(), AptState::Present) };
        assert!(fetched.check().is_ok() && fetched.address().is_some());
        let removed = Apt { state: AptState::Absent, ..fetched };
        assert_eq!(removed.check().unwrap_err().to_string(), "deb works with state: present only");
    }
}
