//! `package`: whatever package tool the host has.

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer};

use super::apt::{self, Apt};
use super::dnf::{self, Dnf};
use super::{database_error, first_of, in_english, run, said};
use crate::modules::execution::quote;
use crate::modules::{Changes, Controller, Error, Module, Outcome, Plan, arguments};
use crate::remote::{Command, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::{Value, Vars};

const TOOLS: &[&str] = &["apt-get", "dnf", "yum", "apk", "zypper", "pacman"];

/// What the task says, as it is handed on to the module of the host's tool.
#[derive(Debug)]
pub(crate) struct Package(Vars);

impl<'de> Deserialize<'de> for Package {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let args = IndexMap::<String, Value>::deserialize(deserializer)?;
        match args.keys().find(|name| Package::DOC.argument(name).is_none()) {
            Some(_) => Err(serde::de::Error::custom("an argument that no tool supports")),
            None => Ok(Package(args.into_iter().map(|(name, value)| (name.into(), value)).collect())),
        }
    }
}

/// What all tools take.
const COMMON: &[Argument] = &[
    Argument::new("name", ArgumentKind::List(&ArgumentKind::Str), "Packages, by their names on the host's system")
        .alias(&["package", "pkg"]),
    Argument::new(
        "state",
        ArgumentKind::Str,
        "Whether they should be installed, absent, or installed in the newest version",
    )
    .default("present")
    .choices(&["present", "installed", "absent", "removed", "latest"]),
    Argument::new("use", ArgumentKind::Str, "The package manager; auto uses the first one on the host")
        .default("auto")
        .choices(&["auto", "apt", "dnf", "yum", "apk", "zypper", "pacman"]),
];

/// What any tool takes, and how many arguments that are. What a task does not say is left to the tool's module.
const ALL: ([Argument; 64], usize) = {
    let mut all = [COMMON[0]; 64];
    let mut count = 0;
    let lists = [COMMON, Apt::DOC.arguments, Dnf::DOC.arguments];
    let mut list = 0;
    while list < lists.len() {
        let mut next = 0;
        while next < lists[list].len() {
            let argument = lists[list][next];
            if !is_in(&all, count, argument.name) {
                let default = if list == 0 { argument.default } else { None };
                all[count] = Argument { default, required: false, ..argument };
                count += 1;
            }
            next += 1;
        }
        list += 1;
    }
    (all, count)
};

const fn is_in(all: &[Argument], count: usize, name: &str) -> bool {
    let name = name.as_bytes();
    let mut at = 0;
    while at < count {
        let other = all[at].name.as_bytes();
        let mut same = 0;
        while same < name.len() && same < other.len() && name[same] == other[same] {
            same += 1;
        }
        if same == name.len() && same == other.len() {
            return true;
        }
        at += 1;
    }
    false
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Present,
    Absent,
    Latest,
}

/// What is to be done, by whom.
pub(crate) enum PackageChange {
    Apt(apt::AptChange),
    Dnf(dnf::DnfChange),
    /// One command; with true, its packages are compared before and after.
    Simple {
        argv: Vec<String>,
        compare: Option<String>,
    },
}

/// A tool that needs little knowledge.
struct BasicPackageManager {
    /// Says what is installed, with versions; the names follow.
    query: &'static str,
    /// How an error begins that only says that a package is not installed.
    absent: &'static str,
    install: &'static [&'static str],
    latest: &'static [&'static str],
    remove: &'static [&'static str],
}

impl Module for Package {
    const CHANGES: Changes = Changes::Packages;
    const DOC: Doc = Doc {
        name: "package",
        collection: "ansible.builtin",
        summary: "Install and remove packages with the host's package manager; supports the arguments of its module",
        arguments: ALL.0.split_at(ALL.1).0,
        free_form: None,
        example: "\
- name: Install basic packages
  package:
    name: [ca-certificates, tar]
",
        returns: &[Return::new("stdout", "Standard output of the tool"), Return::new("stderr", "Standard error")],
    };
    type Change = PackageChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<PackageChange>, Error> {
        let tool = match self.text("use").as_str() {
            "auto" => first_of(probe, TOOLS)
                .await?
                .ok_or_else(|| Error::failed("the host has no supported package manager"))?,
            named => named.to_owned(),
        };
        match tool.as_str() {
            "apt" | "apt-get" => Ok(wrapped(self.of::<Apt>()?.plan(probe, here).await?, PackageChange::Apt)),
            "dnf" | "yum" => Ok(wrapped(self.of::<Dnf>()?.plan(probe, here).await?, PackageChange::Dnf)),
            name => self.plan_simple(&tool, &simple(name)?, probe).await,
        }
    }

    async fn apply(&self, change: PackageChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        match change {
            PackageChange::Apt(change) => self.of::<Apt>()?.apply(change, remote, here).await,
            PackageChange::Dnf(change) => self.of::<Dnf>()?.apply(change, remote, here).await,
            PackageChange::Simple { argv, compare } => {
                let before = versions(remote, compare.as_deref()).await?;
                let output = run(remote, &argv).await?;
                let changed = before != versions(remote, compare.as_deref()).await?;
                Ok(Outcome { changed, ..said(&[output]) })
            }
        }
    }
}

impl Package {
    fn text(&self, name: &str) -> String {
        self.0.get(name).map(ToString::to_string).unwrap_or_default()
    }

    fn state(&self) -> State {
        match self.text("state").as_str() {
            "absent" | "removed" => State::Absent,
            "latest" => State::Latest,
            _ => State::Present,
        }
    }

    /// The module of a tool, with all that the task says.
    fn of<M: Module>(&self) -> Result<M, Error> {
        let mut args = self.0.clone();
        args.shift_remove("use");
        let state = match self.state() {
            State::Present => "present",
            State::Absent => "absent",
            State::Latest => "latest",
        };
        args.insert("state".into(), Value::from(state));
        arguments::parse_arguments(arguments::coerce(&M::DOC, &args)?)
    }

    async fn plan_simple(
        &self,
        named: &str,
        tool: &BasicPackageManager,
        probe: &Probe,
    ) -> Result<Plan<PackageChange>, Error> {
        if let Some(other) = self.0.keys().find(|name| !["name", "state", "use"].contains(&name.as_ref())) {
            return Err(Error::failed(format!("with {named}, package supports name and state, not {other:?}")));
        }
        let names = self.0.get("name").and_then(|names| names.try_iter().ok()).into_iter().flatten();
        let names: Vec<String> = names.map(|name| name.to_string()).collect();
        if names.is_empty() {
            return Err(Error::failed("package: argument \"name\" is required"));
        }
        let state = self.state();
        if let Some(wrong) = names.iter().find(|name| name.is_empty() || name.starts_with('-')) {
            return Err(Error::failed(format!("invalid package name {wrong:?}")));
        }
        let mut there = Vec::new();
        let mut missing = Vec::new();
        for name in &names {
            let query = Command::shell(format!("{} {} >/dev/null", tool.query, quote(name)));
            let output = probe.query(&in_english(query)).await?;
            let words = String::from_utf8_lossy(&output.stderr);
            match output.code {
                0 => there.push(name.clone()),
                // The program was killed, or cannot be run.
                code @ 126.. => {
                    let query = tool.query;
                    return Err(Error::failed(format!(
                        "cannot query the package {name}: {query} ended with code {code}"
                    )));
                }
                _ => match database_error(&words, tool.absent) {
                    Some(error) => return Err(Error::failed(format!("cannot query the package {name}: {error}"))),
                    None => missing.push(name.clone()),
                },
            }
        }
        let (verb, wanted) = match state {
            State::Present => (tool.install, missing),
            State::Absent => (tool.remove, there),
            State::Latest => (tool.latest, names.clone()),
        };
        if wanted.is_empty() {
            return Ok(Plan::Unchanged(Outcome::default()));
        }
        let argv = verb.iter().map(|word| (*word).to_owned()).chain(wanted.iter().cloned()).collect();
        if state != State::Latest {
            let change = PackageChange::Simple { argv, compare: None };
            return Ok(Plan::Change { diff: Vec::new(), outcome: Outcome::default(), change });
        }
        let quoted: Vec<String> = wanted.iter().map(|name| quote(name)).collect();
        Ok(Plan::Unknown(PackageChange::Simple { argv, compare: Some(format!("{} {}", tool.query, quoted.join(" "))) }))
    }
}

fn wrapped<A>(plan: Plan<A>, wrap: fn(A) -> PackageChange) -> Plan<PackageChange> {
    match plan {
        Plan::Unchanged(outcome) => Plan::Unchanged(outcome),
        Plan::Change { diff, outcome, change } => Plan::Change { diff, outcome, change: wrap(change) },
        Plan::Unknown(change) => Plan::Unknown(wrap(change)),
        Plan::NotInCheckMode(outcome, change) => Plan::NotInCheckMode(outcome, wrap(change)),
    }
}

async fn versions(probe: &Probe, query: Option<&str>) -> Result<Vec<u8>, Error> {
    match query {
        Some(line) => Ok(probe.query(&Command::shell(line)).await?.stdout),
        None => Ok(Vec::new()),
    }
}

fn simple(tool: &str) -> Result<BasicPackageManager, Error> {
    match tool {
        "apk" => Ok(BasicPackageManager {
            query: "apk info -e -v",
            absent: "",
            install: &["apk", "add"],
            latest: &["apk", "add", "-u"],
            remove: &["apk", "del"],
        }),
        "zypper" => Ok(BasicPackageManager {
            query: "rpm -q --whatprovides",
            absent: "error: file ",
            install: &["zypper", "--non-interactive", "install", "--"],
            latest: &["zypper", "--non-interactive", "install", "--"],
            remove: &["zypper", "--non-interactive", "remove", "--"],
        }),
        "pacman" => Ok(BasicPackageManager {
            query: "pacman -Q",
            absent: "error: package ",
            install: &["pacman", "-S", "--noconfirm", "--needed"],
            latest: &["pacman", "-Sy", "--noconfirm", "--needed"],
            remove: &["pacman", "-R", "--noconfirm"],
        }),
        other => Err(Error::failed(format!("unknown package manager {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Bench, cannot_run};
    use super::simple;

    #[test]
    fn every_tool_is_known() {
        for tool in ["apk", "zypper", "pacman"] {
            let tool = simple(tool).unwrap();
            assert!(!tool.install.is_empty() && !tool.remove.is_empty() && !tool.latest.is_empty());
        }
        assert!(simple("portage").is_err());
    }

    #[tokio::test]
    async fn what_is_installed_is_left_alone_and_what_is_not_would_be_installed() {
        if !std::path::Path::new("/usr/bin/dpkg-query").exists() {
            cannot_run("this machine has no dpkg");
            return;
        }
        let bench = Bench::new().await;
        for module in ["apt", "package"] {
            assert!(!bench.run(&format!("{module}: {{name: [dpkg, 'libc6']}}")).await.unwrap().changed);
            assert!(bench.check(&format!("{module}: {{name: [dpkg, no-such-package]}}")).await.unwrap().changed);
            assert!(bench.check(&format!("{module}: {{name: dpkg, state: absent}}")).await.unwrap().changed);
            assert!(!bench.run(&format!("{module}: {{name: no-such-package, state: absent}}")).await.unwrap().changed);
        }
        assert!(!bench.run("package: {pkg: dpkg, allow_downgrade: true, lock_timeout: 5}").await.unwrap().changed);
        let refused = bench.failure("package: {name: dpkg, enablerepo: epel}").await;
        assert_eq!(refused, "apt has no argument \"enablerepo\"");
        bench.close().await;
    }
}
