//! `apt`: packages of Debian and its kin.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::Deserialize;

use super::dpkg::{Installed, Spec, outdated};
use super::{failure, in_english, said};
use crate::modules::{Controller, Error, Module, Outcome, Plan};
use crate::remote::{Command, Output, Probe, Remote};
use crate::value::doc::{Argument, Doc, Kind, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Apt {
    pub name: Option<Vec<String>>,
    pub state: State,
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Present,
    Absent,
    Latest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Upgrade {
    No,
    Yes,
    Safe,
    Dist,
    Full,
}

/// What is to be done, in this order.
#[derive(Debug, Default)]
pub struct Change {
    update: bool,
    upgrade: Option<&'static str>,
    install: Vec<String>,
    remove: Vec<String>,
    autoremove: bool,
    autoclean: bool,
}

impl Change {
    /// Whether packages come or go.
    fn is_of_packages(&self) -> bool {
        self.upgrade.is_some() || !self.install.is_empty() || !self.remove.is_empty() || self.autoremove
    }
}

#[async_trait]
impl Module for Apt {
    const DOC: Doc = Doc {
        name: "apt",
        collection: "ansible.builtin",
        summary: "Installs and removes packages of Debian and its kin",
        arguments: &[
            Argument::new("name", Kind::List(&Kind::Str), "Packages, as name, name=version or name:architecture")
                .alias(&["package", "pkg"]),
            Argument::new("state", Kind::Str, "Whether they are to be there, or there in the newest version")
                .default("present")
                .choices(&["present", "absent", "latest"]),
            Argument::new("update_cache", Kind::Bool, "Whether the lists of packages are fetched first")
                .alias(&["update-cache"]),
            Argument::new("cache_valid_time", Kind::Int, "How many seconds old the lists may be to be good enough")
                .default("0"),
            Argument::new(
                "install_recommends",
                Kind::Bool,
                "Whether recommended packages come, too; apt's own setting if not given",
            )
            .alias(&["install-recommends"]),
            Argument::new("default_release", Kind::Str, "The release to take packages from")
                .alias(&["default-release"]),
            Argument::new("deb", Kind::Path, "A package file on the host to install"),
            Argument::new(
                "upgrade",
                Kind::Str,
                "Whether everything is upgraded; full and dist may also remove packages",
            )
            .default("no")
            .choices(&["no", "yes", "safe", "dist", "full"]),
            Argument::new("purge", Kind::Bool, "Whether configuration goes with a removed package").default("false"),
            Argument::new("autoremove", Kind::Bool, "Whether packages that nothing needs any more are removed")
                .default("false"),
            Argument::new("autoclean", Kind::Bool, "Whether old package files are removed").default("false"),
            Argument::new("only_upgrade", Kind::Bool, "Whether packages that are not there stay away").default("false"),
            Argument::new("allow_downgrade", Kind::Bool, "Whether an older version may replace a newer one")
                .alias(&["allow-downgrade", "allow_downgrades", "allow-downgrades"])
                .default("false"),
            Argument::new("allow_unauthenticated", Kind::Bool, "Whether unsigned packages are taken")
                .alias(&["allow-unauthenticated"])
                .default("false"),
            Argument::new("allow_change_held_packages", Kind::Bool, "Whether packages on hold may change")
                .default("false"),
            Argument::new("force", Kind::Bool, "Whether apt-get gets --force-yes").default("false"),
            Argument::new("dpkg_options", Kind::Str, "What dpkg does about changed configuration files")
                .default("force-confdef,force-confold"),
            Argument::new("lock_timeout", Kind::Int, "How many seconds to wait for another package tool to end")
                .default("60"),
        ],
        free_form: None,
        example: "\
- name: What the service needs
  apt:
    name: [ca-certificates, curl]
    update_cache: true
    cache_valid_time: 3600
    install_recommends: false
",
        returns: &[
            Return::new("cache_updated", "Whether the lists of packages were fetched"),
            Return::new("stdout", "What apt-get said"),
            Return::new("stderr", "What it complained of"),
        ],
    };
    type Change = Change;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<Change>, Error> {
        let change = self.changes(probe).await?;
        let names_nothing = self.name.is_none() && self.deb.is_none() && self.upgrade == Upgrade::No;
        let outcome = Outcome::default().with("cache_updated", false);
        // Fetched lists may hold newer versions: only afterwards it is known what changes.
        let looks_again = change.update && (self.state == State::Latest || self.upgrade != Upgrade::No);
        Ok(if looks_again && !here.check {
            Plan::Unknown(change)
        } else if change.is_of_packages() || change.update && names_nothing {
            Plan::Change { diff: Vec::new(), outcome, change }
        } else if (change.update || change.autoclean) && !here.check {
            Plan::Unknown(change)
        } else {
            Plan::Unchanged(outcome)
        })
    }

    async fn apply(&self, mut change: Change, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let mut outputs = Vec::new();
        let updated = change.update;
        if updated {
            outputs.push(self.apt_get(remote, &["update"], &[]).await?);
            if self.state == State::Latest || self.upgrade != Upgrade::No {
                change = self.changes(remote).await?;
            }
        }
        let changed = change.is_of_packages();
        if let Some(verb) = change.upgrade {
            outputs.push(self.apt_get(remote, &[verb], &[]).await?);
        }
        if !change.install.is_empty() {
            outputs.push(self.apt_get(remote, &self.install_words(), &change.install).await?);
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
        Ok(Outcome { changed, ..said(&outputs).with("cache_updated", updated) })
    }
}

impl Apt {
    /// For `package`, which knows only names and states.
    pub fn of(name: Vec<String>, state: State) -> Apt {
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
        }
    }

    async fn changes(&self, probe: &Probe) -> Result<Change, Error> {
        let specs = self.name.iter().flatten().filter(|name| !name.trim().is_empty()).map(|name| Spec::parse(name));
        let specs = specs.collect::<Result<Vec<_>, _>>()?;
        let mut change =
            Change { update: self.wants_update(probe).await?, autoclean: self.autoclean, ..Change::default() };
        let installed = Installed::look(probe).await?;
        match self.state {
            State::Absent => {
                change.remove =
                    specs.iter().filter(|spec| installed.has_itself(spec)).map(|spec| spec.name.clone()).collect();
            }
            State::Present => change.install = self.lacking(&specs, &installed),
            State::Latest => {
                change.install = self.lacking(&specs, &installed);
                let there =
                    specs.iter().filter(|spec| spec.version.is_none() && installed.version(&spec.name).is_some());
                change.install.extend(self.outdated(probe, there.map(|spec| spec.name.as_str()).collect()).await?);
            }
        }
        if let Some(deb) = &self.deb
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
            change.upgrade = self.would_change(probe, &[verb]).await?.then_some(verb);
        }
        change.autoremove = self.autoremove && self.would_change(probe, &self.autoremove_words()).await?;
        Ok(change)
    }

    fn lacking(&self, specs: &[Spec], installed: &Installed) -> Vec<String> {
        let lacks =
            |spec: &&Spec| !installed.has(spec) && (!self.only_upgrade || installed.version(&spec.name).is_some());
        specs.iter().filter(lacks).map(Spec::word).collect()
    }

    async fn outdated(&self, probe: &Probe, names: Vec<&str>) -> Result<Vec<String>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let release = self.default_release.iter().map(|release| format!("APT::Default-Release={release}"));
        let release = release.flat_map(|option| ["-o".to_owned(), option]);
        let argv = ["apt-cache".to_owned()].into_iter().chain(release);
        let argv = argv.chain(["policy".to_owned()]).chain(names.into_iter().map(str::to_owned));
        let output = probe.query(&in_english(Command::program(argv))).await?;
        Ok(outdated(&String::from_utf8_lossy(&output.stdout)))
    }

    /// The file's path, if the package in it is not installed in that version.
    async fn lacks_file(&self, probe: &Probe, deb: &str, installed: &Installed) -> Result<Option<String>, Error> {
        let path = probe.expand(deb).await?;
        let format = "--showformat=${Package}:${Architecture}\n${Version}\n";
        let output = probe.query(&in_english(Command::program(["dpkg-deb", "--show", format, &path]))).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        match (output.code, text.split_once('\n')) {
            (0, Some((name, version))) => Ok((installed.version(name) != Some(version.trim())).then_some(path)),
            _ => Err(Error::failed(format!("{path} is not a package file on the host"))),
        }
    }

    /// Whether the lists are to be fetched: asked for, and too old.
    async fn wants_update(&self, probe: &Probe) -> Result<bool, Error> {
        if !self.update_cache.unwrap_or(self.cache_valid_time > 0) {
            return Ok(false);
        }
        if self.cache_valid_time == 0 {
            return Ok(true);
        }
        let line = "date +%s; stat -c %Y /var/lib/apt/periodic/update-success-stamp 2>/dev/null \
            || stat -c %Y /var/lib/apt/lists 2>/dev/null || echo 0";
        let output = probe.query(&Command::shell(line)).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut times = text.lines().map(|line| line.trim().parse::<u64>().unwrap_or(0));
        let (now, fetched) = (times.next().unwrap_or(0), times.next().unwrap_or(0));
        Ok(now.saturating_sub(fetched) > self.cache_valid_time)
    }

    /// Asks apt-get what it would do.
    async fn would_change(&self, probe: &Probe, words: &[&str]) -> Result<bool, Error> {
        let argv = self.argv(&[&["-s"], words].concat(), &[]);
        let output = probe.query(&in_english(Command::program(argv.clone()))).await?;
        if output.code != 0 {
            return Err(failure(&argv, &output));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().any(|line| ["Inst ", "Remv ", "Purg "].iter().any(|word| line.starts_with(word))))
    }

    fn install_words(&self) -> Vec<&'static str> {
        let flags = [
            (self.only_upgrade, "--only-upgrade"),
            (self.allow_downgrade, "--allow-downgrades"),
            (self.allow_unauthenticated, "--allow-unauthenticated"),
            (self.allow_change_held_packages, "--allow-change-held-packages"),
            (self.force, "--force-yes"),
            (self.install_recommends == Some(true), "--install-recommends"),
            (self.install_recommends == Some(false), "--no-install-recommends"),
        ];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag);
        ["install"].into_iter().chain(flags).collect()
    }

    fn remove_words(&self) -> Vec<&'static str> {
        let flags = [
            (self.purge, "--purge"),
            (self.allow_change_held_packages, "--allow-change-held-packages"),
            (self.autoremove, "--auto-remove"),
        ];
        ["remove"].into_iter().chain(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag)).collect()
    }

    fn autoremove_words(&self) -> Vec<&'static str> {
        if self.purge { vec!["autoremove", "--purge"] } else { vec!["autoremove"] }
    }

    fn argv(&self, words: &[&str], names: &[String]) -> Vec<String> {
        let mut argv = vec!["apt-get".to_owned(), "-y".to_owned()];
        for option in self.dpkg_options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            argv.extend(["-o".to_owned(), format!("Dpkg::Options::=--{option}")]);
        }
        argv.extend(["-o".to_owned(), format!("DPkg::Lock::Timeout={}", self.lock_timeout)]);
        if let Some(release) = &self.default_release {
            argv.extend(["-t".to_owned(), release.clone()]);
        }
        argv.extend(words.iter().map(|word| (*word).to_owned()));
        if !names.is_empty() {
            argv.push("--".to_owned());
            argv.extend(names.iter().cloned());
        }
        argv
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_options() {
        let mut apt = Apt::of(vec!["curl".into()], State::Present);
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
    }
}
