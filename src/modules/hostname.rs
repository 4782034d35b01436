//! `hostname`: the host's own name, now and after a reboot.

use serde::Deserialize;

use super::{Changes, Controller, Diff, Error, Module, Outcome, Plan};
use crate::remote::{Attributes, Command, Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hostname {
    name: String,
    #[serde(rename = "use")]
    way: Option<HostnameMethod>,
}

/// How a name is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum HostnameMethod {
    Alpine,
    Debian,
    Sles,
    Systemd,
}

/// What is to be set.
pub(super) struct HostnameChange {
    running: bool,
    permanent: bool,
    systemd: bool,
}

impl Module for Hostname {
    const CHANGES: Changes = Changes::Other;
    const DOC: Doc = Doc {
        name: "hostname",
        collection: "ansible.builtin",
        summary: "Set the host's name, now and after a reboot",
        arguments: &[
            Argument::new("name", ArgumentKind::Str, "The name").required(),
            Argument::new(
                "use",
                ArgumentKind::Str,
                "How to store it (default: hostnamectl if systemd runs, else /etc/hostname)",
            )
            .choices(&["alpine", "debian", "sles", "systemd"]),
        ],
        free_form: None,
        example: "\
- name: Set the host name
  hostname:
    name: '{{ inventory_hostname }}'
",
        returns: &[Return::new("name", "The name"), Return::new("ansible_facts", "The facts that depend on it")],
    };
    type Change = HostnameChange;

    async fn plan(&self, probe: &Probe, _: &Controller<'_>) -> Result<Plan<HostnameChange>, Error> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(good) || self.name.starts_with('-') {
            return Err(Error::failed(format!("{:?} is not a valid host name", self.name)));
        }
        let line = format!(
            "cat /proc/sys/kernel/hostname; head -n 1 {} 2>/dev/null || echo; \
            [ -d /run/systemd/system ] && command -v hostnamectl; exit 0",
            self.file()
        );
        let output = probe.query(&Command::shell(line)).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines().map(str::trim);
        let (running, permanent) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let change = HostnameChange {
            running: running != self.name,
            permanent: permanent != self.name,
            systemd: match self.way {
                None => lines.next().is_some_and(|path| !path.is_empty()),
                Some(way) => way == HostnameMethod::Systemd,
            },
        };
        if !change.running && !change.permanent {
            return Ok(Plan::Unchanged(self.outcome()));
        }
        let before = if change.running { running } else { permanent };
        let diff = Diff {
            before_header: "hostname".to_owned(),
            after_header: "hostname".to_owned(),
            before: format!("{before}\n"),
            after: format!("{}\n", self.name),
        };
        Ok(Plan::Change { diff: vec![diff], outcome: self.outcome(), change })
    }

    async fn apply(&self, change: HostnameChange, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        if change.systemd {
            self.run(remote, &["hostnamectl", "set-hostname", "--", &self.name]).await?;
            return Ok(self.outcome());
        }
        if change.permanent {
            remote.write(self.file(), format!("{}\n", self.name).as_bytes(), &Attributes::default()).await?;
        }
        if change.running {
            self.run(remote, &["hostname", &self.name]).await?;
        }
        Ok(self.outcome())
    }
}

impl Hostname {
    fn file(&self) -> &'static str {
        if self.way == Some(HostnameMethod::Sles) { "/etc/HOSTNAME" } else { "/etc/hostname" }
    }

    async fn run(&self, remote: &Remote, argv: &[&str]) -> Result<(), Error> {
        let output = remote.run(&Command::program(argv.iter().copied())).await?;
        let words = String::from_utf8_lossy(&output.stderr);
        match output.code {
            0 => Ok(()),
            code => Err(Error::failed(format!("{} failed with code {code}: {}", argv[0], words.trim()))),
        }
    }

    fn outcome(&self) -> Outcome {
        let (short, domain) = self.name.split_once('.').unwrap_or((&self.name, ""));
        let facts = [
            ("ansible_hostname", short),
            ("ansible_nodename", self.name.as_str()),
            ("ansible_fqdn", self.name.as_str()),
            ("ansible_domain", domain),
        ];
        let facts: crate::value::Vars =
            facts.into_iter().map(|(name, value)| (name.into(), Value::from(value))).collect();
        let outcome = Outcome::default().with("name", self.name.as_str());
        outcome.with("ansible_facts", Value::from_pairs(facts.clone())).effect(super::Effect::Facts(facts))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    #[tokio::test]
    async fn another_name_would_be_a_change_and_a_wrong_one_is_refused() {
        let bench = Bench::new().await;
        let done = bench.check("hostname: {name: windlass-test-name}").await.unwrap();
        assert!(done.changed);
        assert_eq!(done.diff[0].after, "windlass-test-name\n");
        for wrong in ["a b", "-x", "a_b"] {
            assert!(
                bench.failure(&format!("hostname: {{name: '{wrong}'}}")).await.contains("is not a valid host name")
            );
        }
        bench.close().await;
    }
}
