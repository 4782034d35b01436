//! `iptables`: one rule, one chain or one policy of the host's packet filter.

mod rule;
#[cfg(test)]
mod tests;

use serde::Deserialize;

use super::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{Command, Output, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use rule::Rule;

const LEVELS: &[&str] =
    &["0", "1", "2", "3", "4", "5", "6", "7", "emerg", "alert", "crit", "error", "warning", "notice", "info", "debug"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Iptables {
    table: String,
    state: State,
    action: Action,
    ip_version: Version,
    chain: Option<String>,
    rule_num: Option<String>,
    wait: Option<String>,
    flush: bool,
    policy: Option<String>,
    chain_management: bool,
    numeric: bool,
    #[serde(flatten)]
    rule: Rule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Present,
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Append,
    Insert,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Version {
    Ipv4,
    Ipv6,
    Both,
}

impl Version {
    fn programs(self) -> &'static [&'static str] {
        match self {
            Version::Ipv4 => &["iptables"],
            Version::Ipv6 => &["ip6tables"],
            Version::Both => &["iptables", "ip6tables"],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Version::Ipv4 => "ipv4",
            Version::Ipv6 => "ipv6",
            Version::Both => "both",
        }
    }
}

impl Module for Iptables {
    const CHANGES: Changes = Changes::FirewallRules;
    const DOC: Doc = Doc {
        name: "iptables",
        collection: "ansible.builtin",
        summary: "Add or remove a rule, a chain or a policy of the running packet filter; not kept after a reboot",
        arguments: &[
            Argument::new("table", ArgumentKind::Str, "The table")
                .default("filter")
                .choices(&["filter", "nat", "mangle", "raw", "security"]),
            Argument::new("state", ArgumentKind::Str, "Whether the rule should exist")
                .default("present")
                .choices(&["absent", "present"]),
            Argument::new("action", ArgumentKind::Str, "Whether to append or insert a new rule; see rule_num")
                .default("append")
                .choices(&["append", "insert"]),
            Argument::new("ip_version", ArgumentKind::Str, "The IP version")
                .default("ipv4")
                .choices(&["ipv4", "ipv6", "both"]),
            Argument::new("chain", ArgumentKind::Str, "The chain: INPUT, FORWARD, OUTPUT or your own"),
            Argument::new("rule_num", ArgumentKind::Str, "Where a rule is inserted"),
            Argument::new(
                "protocol",
                ArgumentKind::Str,
                "tcp, udp, icmp and so on; ! before it negates, here and below",
            ),
            Argument::new("wait", ArgumentKind::Str, "How many seconds to wait for the lock of the rules"),
            Argument::new("source", ArgumentKind::Str, "Address or network"),
            Argument::new("to_source", ArgumentKind::Str, "The new source address, for SNAT"),
            Argument::new("destination", ArgumentKind::Str, "Address or network"),
            Argument::new("to_destination", ArgumentKind::Str, "The new destination address, for DNAT"),
            Argument::new("match", ArgumentKind::List(&ArgumentKind::Str), "Extensions to load").default("[]"),
            Argument::new(
                "tcp_flags",
                ArgumentKind::Dict,
                "flags to examine, and flags_set, those of them that must be set",
            ),
            Argument::new("jump", ArgumentKind::Str, "The target of the rule: ACCEPT, DROP, a chain and so on"),
            Argument::new("gateway", ArgumentKind::Str, "Where TEE sends the copy"),
            Argument::new("log_prefix", ArgumentKind::Str, "The prefix of log lines, for LOG"),
            Argument::new("log_level", ArgumentKind::Str, "The log level, for LOG").choices(LEVELS),
            Argument::new("goto", ArgumentKind::Str, "A chain to continue in, without returning"),
            Argument::new("in_interface", ArgumentKind::Str, "The incoming interface"),
            Argument::new("out_interface", ArgumentKind::Str, "The outgoing interface"),
            Argument::new("fragment", ArgumentKind::Str, "Whether the rule matches only second and further fragments"),
            Argument::new("set_counters", ArgumentKind::Str, "The initial packet and byte counters"),
            Argument::new("source_port", ArgumentKind::Str, "Port or first:last"),
            Argument::new("destination_port", ArgumentKind::Str, "Port or first:last"),
            Argument::new("destination_ports", ArgumentKind::List(&ArgumentKind::Str), "Several ports or first:last")
                .default("[]"),
            Argument::new("to_ports", ArgumentKind::Str, "The new ports, for REDIRECT and others"),
            Argument::new("set_dscp_mark", ArgumentKind::Str, "The mark that DSCP sets"),
            Argument::new("set_dscp_mark_class", ArgumentKind::Str, "The class whose mark DSCP sets"),
            Argument::new("comment", ArgumentKind::Str, "A comment, which belongs to the rule"),
            Argument::new("ctstate", ArgumentKind::List(&ArgumentKind::Str), "States of the connection").default("[]"),
            Argument::new("src_range", ArgumentKind::Str, "From address-address"),
            Argument::new("dst_range", ArgumentKind::Str, "To address-address"),
            Argument::new("match_set", ArgumentKind::Str, "The name of an ipset"),
            Argument::new("match_set_flags", ArgumentKind::Str, "Which fields of the packet to look up in the set")
                .choices(&["src", "dst", "src,dst", "dst,src", "src,src", "dst,dst"]),
            Argument::new("limit", ArgumentKind::Str, "The rate limit: 2/second"),
            Argument::new("limit_burst", ArgumentKind::Str, "How many packets may pass before the limit applies"),
            Argument::new("uid_owner", ArgumentKind::Str, "The user whose program sent it"),
            Argument::new("gid_owner", ArgumentKind::Str, "The group whose program sent it"),
            Argument::new("reject_with", ArgumentKind::Str, "The response, for REJECT"),
            Argument::new("icmp_type", ArgumentKind::Str, "The kind of ICMP packet"),
            Argument::new("syn", ArgumentKind::Str, "Whether the packet opens a connection")
                .default("ignore")
                .choices(&["ignore", "match", "negate"]),
            Argument::new("flush", ArgumentKind::Bool, "Whether to remove all rules of the chain, or the table")
                .default("false"),
            Argument::new("policy", ArgumentKind::Str, "The policy for packets that match no rule of the chain")
                .choices(&["ACCEPT", "DROP", "QUEUE", "RETURN"]),
            Argument::new(
                "chain_management",
                ArgumentKind::Bool,
                "Whether to create or remove the chain itself, if no rule is given",
            )
            .default("false"),
            Argument::new("numeric", ArgumentKind::Bool, "Whether to list rules without resolving names")
                .default("false"),
        ],
        free_form: None,
        example: "\
- name: Allow traffic between members
  iptables:
    chain: INPUT
    protocol: tcp
    source: 10.0.0.0/24
    destination_ports: [2379, 2380]
    jump: ACCEPT
    comment: etcd

- name: Drop other traffic to etcd
  iptables:
    chain: INPUT
    protocol: tcp
    destination_ports: [2379, 2380]
    jump: DROP
",
        returns: &[
            Return::new("rule", "The rule as arguments of iptables"),
            Return::new("chain", "As given; so are ip_version, table, flush, state, chain_management and wait"),
        ],
    };
    /// Programs to run, each with its arguments.
    type Change = Vec<Vec<String>>;

    async fn plan(&self, probe: &Probe, _: &Controller<'_>) -> Result<Plan<Self::Change>, Error> {
        self.check()?;
        let (mut commands, mut changed) = (Vec::new(), false);
        for program in self.ip_version.programs() {
            let waits = self.wait_words(probe, program).await?;
            if let Some(command) = self.change(probe, program, &waits).await? {
                changed = true;
                commands.extend(command);
            }
        }
        let outcome = self.outcome();
        Ok(match changed {
            false => Plan::Unchanged(outcome),
            true => Plan::Change { diff: Vec::new(), outcome, change: commands },
        })
    }

    async fn apply(&self, commands: Self::Change, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        for argv in commands {
            succeeded(&argv, remote.run(&Command::program(argv.iter().cloned())).await?)?;
        }
        Ok(self.outcome())
    }
}

impl Iptables {
    fn check(&self) -> Result<(), Error> {
        if self.chain.is_none() && !self.flush {
            return Err(Error::failed("chain is required, unless the whole table is flushed"));
        }
        if self.flush && self.policy.is_some() {
            return Err(Error::failed("only flush or policy can be given, not both"));
        }
        self.rule.check_rule()
    }

    fn outcome(&self) -> Outcome {
        Outcome::default()
            .with("ip_version", self.ip_version.name())
            .with("table", self.table.as_str())
            .with("chain", self.chain.clone())
            .with("flush", self.flush)
            .with("rule", self.rule.rule_arguments(self.ip_version).join(" "))
            .with("state", if self.state == State::Present { "present" } else { "absent" })
            .with("chain_management", self.chain_management)
            .with("wait", self.wait.clone())
    }

    /// The commands to run. None: nothing to do; an empty list: a chain would change, but the task does not manage it.
    async fn change(&self, probe: &Probe, program: &str, waits: &[String]) -> Result<Option<Vec<Vec<String>>>, Error> {
        let argv = |action: &str| self.argv(program, action, waits);
        let words = self.rule.rule_arguments(self.ip_version);
        let with_rule = |action: &str| [argv(action), words.clone()].concat();
        if self.flush {
            return Ok(Some(vec![argv("-F")]));
        }
        if let Some(wanted) = &self.policy {
            let output = succeeded(&argv("-L"), probe.query(&Command::program(self.listing(argv("-L")))).await?)?;
            let found = policy(&String::from_utf8_lossy(&output.stdout))
                .ok_or_else(|| Error::failed("the chain has no policy: only built-in chains have one"))?;
            return Ok((found != *wanted).then(|| vec![[argv("-P"), vec![wanted.clone()]].concat()]));
        }
        let look = if words.is_empty() { self.listing(argv("-L")) } else { with_rule("-C") };
        let output = probe.query(&Command::program(look.iter().cloned())).await?;
        let is_there = match output.code {
            0 => true,
            // Beyond these, it could not look: 4 without the lock of the tables, for example.
            1 | 2 => false,
            _ => succeeded(&look, output).map(|_| false)?,
        };
        let wanted = self.state == State::Present;
        if is_there == wanted {
            return Ok(None);
        }
        Ok(Some(match (words.is_empty(), wanted) {
            (true, _) if !self.chain_management => Vec::new(),
            (true, true) => vec![argv("-N")],
            (true, false) => vec![argv("-X")],
            (false, true) if self.action == Action::Insert => vec![with_rule("-I")],
            (false, true) => vec![with_rule("-A")],
            (false, false) => vec![with_rule("-D")],
        }))
    }

    fn argv(&self, program: &str, action: &str, waits: &[String]) -> Vec<String> {
        let mut argv = vec![program.to_owned(), "-t".to_owned(), self.table.clone(), action.to_owned()];
        argv.extend(self.chain.clone());
        argv.extend(self.rule_num.clone().filter(|_| action == "-I"));
        argv.extend(waits.iter().cloned());
        argv
    }

    fn listing(&self, mut argv: Vec<String>) -> Vec<String> {
        argv.extend(self.numeric.then(|| "--numeric".to_owned()));
        argv
    }

    /// The options that make the program wait; old versions accept no timeout, older ones no such option.
    async fn wait_words(&self, probe: &Probe, program: &str) -> Result<Vec<String>, Error> {
        let argv = [program.to_owned(), "--version".to_owned()];
        let output = probe.query(&Command::program(argv.iter().cloned())).await?;
        if output.code == 127 {
            return Err(Error::failed(format!("the host has no program {program}")));
        }
        let output = succeeded(&argv, output)?;
        let Some(seconds) = &self.wait else { return Ok(Vec::new()) };
        let can_wait = version(&String::from_utf8_lossy(&output.stdout)) >= [1, 6, 0];
        Ok(if can_wait { vec!["-w".to_owned(), seconds.clone()] } else { Vec::new() })
    }
}

/// `iptables v1.8.9 (nf_tables)`
fn version(text: &str) -> [u32; 3] {
    let words = text.split_once('v').map_or("", |(_, rest)| rest).split([' ', '\n']).next().unwrap_or_default();
    let mut numbers = words.split('.').map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| numbers.next().unwrap_or(0))
}

/// `Chain INPUT (policy ACCEPT)`
fn policy(listing: &str) -> Option<String> {
    let (_, rest) = listing.lines().next()?.split_once("(policy ")?;
    Some(rest.split([' ', ')']).next()?.to_owned())
}

fn succeeded(argv: &[String], output: Output) -> Result<Output, Error> {
    if output.code == 0 {
        return Ok(output);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let words = words.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no error message");
    Err(Error::failed(format!("{} failed with code {}: {words}", argv.join(" "), output.code)))
}
