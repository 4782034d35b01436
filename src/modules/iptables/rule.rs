//! What a rule matches and does, in the words of iptables.

use serde::Deserialize;

use super::Version;
use crate::modules::Error;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Rule {
    protocol: Option<String>,
    source: Option<String>,
    to_source: Option<String>,
    destination: Option<String>,
    to_destination: Option<String>,
    #[serde(rename = "match")]
    matches: Vec<String>,
    tcp_flags: Option<TcpFlags>,
    jump: Option<String>,
    gateway: Option<String>,
    log_prefix: Option<String>,
    log_level: Option<String>,
    goto: Option<String>,
    in_interface: Option<String>,
    out_interface: Option<String>,
    fragment: Option<String>,
    set_counters: Option<String>,
    source_port: Option<String>,
    destination_port: Option<String>,
    destination_ports: Vec<String>,
    to_ports: Option<String>,
    set_dscp_mark: Option<String>,
    set_dscp_mark_class: Option<String>,
    comment: Option<String>,
    ctstate: Vec<String>,
    src_range: Option<String>,
    dst_range: Option<String>,
    match_set: Option<String>,
    match_set_flags: Option<String>,
    limit: Option<String>,
    limit_burst: Option<String>,
    uid_owner: Option<String>,
    gid_owner: Option<String>,
    reject_with: Option<String>,
    icmp_type: Option<String>,
    syn: SynMatch,
}

#[derive(Debug, Deserialize)]
struct TcpFlags {
    flags: Option<WordList>,
    flags_set: Option<WordList>,
}

/// A list, or one text with commas.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum WordList {
    One(String),
    Several(Vec<String>),
}

impl WordList {
    fn joined(&self) -> String {
        match self {
            WordList::One(text) => text.clone(),
            WordList::Several(list) => list.join(","),
        }
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SynMatch {
    #[default]
    Ignore,
    Match,
    Negate,
}

/// Collects words.
#[derive(Default)]
struct Line(Vec<String>);

impl Line {
    /// `--flag value`, or `! --flag value`.
    fn option(&mut self, flag: &str, value: Option<&String>) {
        let Some(value) = value.filter(|value| !value.is_empty()) else { return };
        match value.strip_prefix('!') {
            Some(value) => self.0.extend(["!".to_owned(), flag.to_owned(), value.trim_start().to_owned()]),
            None => self.0.extend([flag.to_owned(), value.clone()]),
        }
    }

    fn list(&mut self, flag: &str, values: &[String]) {
        if !values.is_empty() {
            self.0.extend([flag.to_owned(), values.join(",")]);
        }
    }

    fn extension(&mut self, name: &str, is_needed: bool) {
        if is_needed {
            self.0.extend(["-m".to_owned(), name.to_owned()]);
        }
    }
}

impl Rule {
    /// What does not go together.
    pub(super) fn check_rule(&self) -> Result<(), Error> {
        let jump = self.jump.as_deref().unwrap_or_default();
        let logs = self.log_prefix.is_some() || self.log_level.is_some();
        let marks = self.set_dscp_mark.is_some() || self.set_dscp_mark_class.is_some();
        let problem = match () {
            () if self.set_dscp_mark.is_some() && self.set_dscp_mark_class.is_some() => {
                "only set_dscp_mark or set_dscp_mark_class can be given, not both"
            }
            () if marks && jump.is_empty() => "set_dscp_mark and set_dscp_mark_class need jump",
            () if jump.eq_ignore_ascii_case("tee") && self.gateway.is_none() => "jump: TEE needs gateway",
            () if logs && !matches!(jump, "" | "LOG") => "log_prefix and log_level go with jump: LOG only",
            () => return Ok(()),
        };
        Err(Error::failed(problem))
    }

    /// The rule's words, in an order that the program understands; none if there is no rule.
    pub(super) fn rule_arguments(&self, version: Version) -> Vec<String> {
        let mut line = Line::default();
        line.option("-p", self.protocol.as_ref());
        line.option("-s", self.source.as_ref());
        line.option("-d", self.destination.as_ref());
        for name in &self.matches {
            line.option("-m", Some(name));
        }
        if let Some(TcpFlags { flags: Some(flags), flags_set: Some(set) }) = &self.tcp_flags {
            line.0.extend(["--tcp-flags".to_owned(), flags.joined(), set.joined()]);
        }
        self.target(&mut line);
        line.option("-g", self.goto.as_ref());
        line.option("-i", self.in_interface.as_ref());
        line.option("-o", self.out_interface.as_ref());
        line.option("-f", self.fragment.as_ref());
        line.option("-c", self.set_counters.as_ref());
        line.option("--source-port", self.source_port.as_ref());
        line.option("--destination-port", self.destination_port.as_ref());
        line.option("--to-ports", self.to_ports.as_ref());
        line.option("--set-dscp", self.set_dscp_mark.as_ref());
        line.option("--set-dscp-class", self.set_dscp_mark_class.as_ref());
        match self.syn {
            SynMatch::Ignore => {}
            SynMatch::Match => line.0.push("--syn".to_owned()),
            SynMatch::Negate => line.0.extend(["!".to_owned(), "--syn".to_owned()]),
        }
        self.extensions(&mut line);
        line.option("--reject-with", self.reject_with.as_ref());
        let icmp = if version == Version::Ipv6 { "--icmpv6-type" } else { "--icmp-type" };
        line.option(icmp, self.icmp_type.as_ref());
        line.extension("comment", self.comment.as_ref().is_some_and(|comment| !comment.is_empty()));
        line.option("--comment", self.comment.as_ref());
        line.0
    }

    /// What becomes of the packet.
    fn target(&self, line: &mut Line) {
        let logs = self.log_prefix.is_some() || self.log_level.is_some();
        let implied = match () {
            () if logs => Some("LOG"),
            () if self.reject_with.is_some() => Some("REJECT"),
            () => None,
        };
        let implied = implied.map(str::to_owned);
        let jump = self.jump.as_ref().or(implied.as_ref());
        line.option("-j", jump);
        line.option(
            "--gateway",
            self.gateway.as_ref().filter(|_| jump.is_some_and(|jump| jump.eq_ignore_ascii_case("tee"))),
        );
        line.option("--log-prefix", self.log_prefix.as_ref());
        line.option("--log-level", self.log_level.as_ref());
        line.option("--to-destination", self.to_destination.as_ref());
        line.extension("multiport", !self.destination_ports.is_empty());
        line.list("--dports", &self.destination_ports);
        line.option("--to-source", self.to_source.as_ref());
    }

    /// Matches that need an extension, which is loaded unless `match` names it.
    fn extensions(&self, line: &mut Line) {
        let named = |name: &str| self.matches.iter().any(|it| it == name);
        if named("state") && !named("conntrack") {
            line.list("--state", &self.ctstate);
        } else {
            line.extension("conntrack", !self.ctstate.is_empty() && !named("conntrack"));
            line.list("--ctstate", &self.ctstate);
        }
        let ranges = self.src_range.is_some() || self.dst_range.is_some();
        line.extension("iprange", ranges && !named("iprange"));
        line.option("--src-range", self.src_range.as_ref());
        line.option("--dst-range", self.dst_range.as_ref());
        if self.match_set.is_some() {
            line.extension("set", !named("set"));
            line.option("--match-set", self.match_set.as_ref());
            line.0.extend(self.match_set_flags.clone());
        }
        line.extension("limit", self.limit.is_some() || self.limit_burst.is_some());
        line.option("--limit", self.limit.as_ref());
        line.option("--limit-burst", self.limit_burst.as_ref());
        for (flag, owner) in [("--uid-owner", &self.uid_owner), ("--gid-owner", &self.gid_owner)] {
            line.extension("owner", owner.is_some());
            line.option(flag, owner.as_ref());
        }
    }
}
