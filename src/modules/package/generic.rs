//! `package`: whatever package tool the host has.

use async_trait::async_trait;
use serde::Deserialize;

use super::apt::{self, Apt};
use super::dnf::{self, Dnf};
use super::{first_of, run, said};
use crate::modules::execution::quote;
use crate::modules::{Controller, Error, Module, Outcome, Plan};
use crate::remote::{Command, Probe, Remote};
use crate::value::doc::{Argument, Doc, Kind, Return};

const TOOLS: &[&str] = &["apt-get", "dnf", "yum", "apk", "zypper", "pacman"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    name: Vec<String>,
    state: State,
    #[serde(rename = "use")]
    tool: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    #[serde(alias = "installed")]
    Present,
    #[serde(alias = "removed")]
    Absent,
    Latest,
}

/// What is to be done, by whom.
pub enum Change {
    Apt(apt::Change),
    Dnf(dnf::Change),
    /// One command; with true, its packages are compared before and after.
    Simple {
        argv: Vec<String>,
        compare: Option<String>,
    },
}

/// A tool that needs little knowledge.
struct Simple {
    /// Says what is installed, with versions; the names follow.
    query: &'static str,
    install: &'static [&'static str],
    latest: &'static [&'static str],
    remove: &'static [&'static str],
}

#[async_trait]
impl Module for Package {
    const DOC: Doc = Doc {
        name: "package",
        collection: "ansible.builtin",
        summary: "Installs and removes packages with whatever tool the host has",
        arguments: &[
            Argument::new("name", Kind::List(&Kind::Str), "Packages, by the names that the host's system gives them")
                .required(),
            Argument::new("state", Kind::Str, "Whether they are to be there, or there in the newest version")
                .default("present")
                .choices(&["present", "installed", "absent", "removed", "latest"]),
            Argument::new("use", Kind::Str, "The tool; auto takes the first that is there")
                .default("auto")
                .choices(&["auto", "apt", "dnf", "yum", "apk", "zypper", "pacman"]),
        ],
        free_form: None,
        example: "\
- name: What every host needs
  package:
    name: [ca-certificates, tar]
",
        returns: &[Return::new("stdout", "What the tool said"), Return::new("stderr", "What it complained of")],
    };
    type Change = Change;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<Change>, Error> {
        let tool = match self.tool.as_str() {
            "auto" => first_of(probe, TOOLS)
                .await?
                .ok_or_else(|| Error::failed("the host has no package tool that is known"))?,
            named => named.to_owned(),
        };
        match tool.as_str() {
            "apt" | "apt-get" => Ok(wrapped(self.apt().plan(probe, here).await?, Change::Apt)),
            "dnf" | "yum" => Ok(wrapped(self.dnf().plan(probe, here).await?, Change::Dnf)),
            tool => self.plan_simple(&simple(tool)?, probe).await,
        }
    }

    async fn apply(&self, change: Change, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        match change {
            Change::Apt(change) => self.apt().apply(change, remote, here).await,
            Change::Dnf(change) => self.dnf().apply(change, remote, here).await,
            Change::Simple { argv, compare } => {
                let before = versions(remote, compare.as_deref()).await?;
                let output = run(remote, &argv).await?;
                let changed = before != versions(remote, compare.as_deref()).await?;
                Ok(Outcome { changed, ..said(&[output]) })
            }
        }
    }
}

impl Package {
    fn apt(&self) -> Apt {
        Apt::of(
            self.name.clone(),
            match self.state {
                State::Present => apt::State::Present,
                State::Absent => apt::State::Absent,
                State::Latest => apt::State::Latest,
            },
        )
    }

    fn dnf(&self) -> Dnf {
        let state = match self.state {
            State::Present => dnf::State::Present,
            State::Absent => dnf::State::Absent,
            State::Latest => dnf::State::Latest,
        };
        Dnf { name: self.name.clone(), state: Some(state), ..Dnf::default() }
    }

    async fn plan_simple(&self, tool: &Simple, probe: &Probe) -> Result<Plan<Change>, Error> {
        if let Some(wrong) = self.name.iter().find(|name| name.is_empty() || name.starts_with('-')) {
            return Err(Error::failed(format!("{wrong:?} names no package")));
        }
        let mut there = Vec::new();
        let mut missing = Vec::new();
        for name in &self.name {
            let query = Command::shell(format!("{} {} >/dev/null 2>&1", tool.query, quote(name)));
            if probe.query(&query).await?.code == 0 { there.push(name.clone()) } else { missing.push(name.clone()) }
        }
        let (verb, names) = match self.state {
            State::Present => (tool.install, missing),
            State::Absent => (tool.remove, there),
            State::Latest => (tool.latest, self.name.clone()),
        };
        if names.is_empty() {
            return Ok(Plan::Unchanged(Outcome::default()));
        }
        let argv = verb.iter().map(|word| (*word).to_owned()).chain(names.iter().cloned()).collect();
        if self.state != State::Latest {
            let change = Change::Simple { argv, compare: None };
            return Ok(Plan::Change { diff: Vec::new(), outcome: Outcome::default(), change });
        }
        let quoted: Vec<String> = names.iter().map(|name| quote(name)).collect();
        Ok(Plan::Unknown(Change::Simple { argv, compare: Some(format!("{} {}", tool.query, quoted.join(" "))) }))
    }
}

fn wrapped<A>(plan: Plan<A>, wrap: fn(A) -> Change) -> Plan<Change> {
    match plan {
        Plan::Unchanged(outcome) => Plan::Unchanged(outcome),
        Plan::Change { diff, outcome, change } => Plan::Change { diff, outcome, change: wrap(change) },
        Plan::Unknown(change) => Plan::Unknown(wrap(change)),
        Plan::NotInCheckMode(change) => Plan::NotInCheckMode(wrap(change)),
    }
}

async fn versions(probe: &Probe, query: Option<&str>) -> Result<Vec<u8>, Error> {
    match query {
        Some(line) => Ok(probe.query(&Command::shell(line)).await?.stdout),
        None => Ok(Vec::new()),
    }
}

fn simple(tool: &str) -> Result<Simple, Error> {
    match tool {
        "apk" => Ok(Simple {
            query: "apk info -e -v",
            install: &["apk", "add"],
            latest: &["apk", "add", "-u"],
            remove: &["apk", "del"],
        }),
        "zypper" => Ok(Simple {
            query: "rpm -q --whatprovides",
            install: &["zypper", "--non-interactive", "install", "--"],
            latest: &["zypper", "--non-interactive", "install", "--"],
            remove: &["zypper", "--non-interactive", "remove", "--"],
        }),
        "pacman" => Ok(Simple {
            query: "pacman -Q",
            install: &["pacman", "-S", "--noconfirm", "--needed"],
            latest: &["pacman", "-Sy", "--noconfirm", "--needed"],
            remove: &["pacman", "-R", "--noconfirm"],
        }),
        other => Err(Error::failed(format!("{other:?} is not a package tool that is known"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Bench;
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
            println!("skipped: this machine has no dpkg");
            return;
        }
        let bench = Bench::new().await;
        for module in ["apt", "package"] {
            assert!(!bench.run(&format!("{module}: {{name: [dpkg, 'libc6']}}")).await.unwrap().changed);
            assert!(bench.check(&format!("{module}: {{name: [dpkg, no-such-package]}}")).await.unwrap().changed);
            assert!(bench.check(&format!("{module}: {{name: dpkg, state: absent}}")).await.unwrap().changed);
            assert!(!bench.run(&format!("{module}: {{name: no-such-package, state: absent}}")).await.unwrap().changed);
        }
        bench.close().await;
    }
}
