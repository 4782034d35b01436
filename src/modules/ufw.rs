//! `ufw`: the rules of the uncomplicated firewall, and whether it is on.

use serde::Deserialize;

use super::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{Command, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

/// Where the rules are kept, by version.
const RULES: &str = "grep -hs '^### tuple' /lib/ufw/user.rules /lib/ufw/user6.rules /etc/ufw/user.rules \
    /etc/ufw/user6.rules /var/lib/ufw/user.rules /var/lib/ufw/user6.rules; exit 0";

/// What it is to do once it is on: while it is off, its status does not tell.
const SETTINGS: &str = "grep -hsE '^(DEFAULT_(INPUT|OUTPUT|FORWARD)_POLICY|LOGLEVEL)=' \
    /etc/default/ufw /etc/ufw/ufw.conf; exit 0";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ufw {
    state: Option<String>,
    default: Option<String>,
    logging: Option<String>,
    direction: Option<String>,
    rule: Option<String>,
    route: bool,
    delete: bool,
    insert: Option<i64>,
    insert_relative_to: String,
    log: bool,
    interface: Option<String>,
    interface_in: Option<String>,
    interface_out: Option<String>,
    from_ip: String,
    from_port: Option<String>,
    to_ip: String,
    to_port: Option<String>,
    proto: Option<String>,
    name: Option<String>,
    comment: Option<String>,
}

impl Module for Ufw {
    const CHANGES: Changes = Changes::FirewallRules;
    const DOC: Doc = Doc {
        name: "ufw",
        collection: "community.general",
        summary: "Manage rules and state of ufw, the uncomplicated firewall",
        arguments: &[
            Argument::new("state", ArgumentKind::Str, "Whether it is enabled; reloaded and reset always act")
                .choices(&["disabled", "enabled", "reloaded", "reset"]),
            Argument::new("default", ArgumentKind::Str, "The policy for traffic that matches no rule")
                .alias(&["policy"])
                .choices(&["allow", "deny", "reject"]),
            Argument::new("logging", ArgumentKind::Str, "How much it logs")
                .choices(&["full", "high", "low", "medium", "off", "on"]),
            Argument::new("direction", ArgumentKind::Str, "The direction of the rule or policy")
                .choices(&["in", "incoming", "out", "outgoing", "routed"]),
            Argument::new("rule", ArgumentKind::Str, "The action for matching traffic")
                .choices(&["allow", "deny", "limit", "reject"]),
            Argument::new("route", ArgumentKind::Bool, "Whether the rule is for forwarded traffic").default("false"),
            Argument::new("delete", ArgumentKind::Bool, "Whether to delete the rule").default("false"),
            Argument::new("insert", ArgumentKind::Int, "The position of a new rule"),
            Argument::new("insert_relative_to", ArgumentKind::Str, "What insert is relative to")
                .default("zero")
                .choices(&["first-ipv4", "first-ipv6", "last-ipv4", "last-ipv6", "zero"]),
            Argument::new("log", ArgumentKind::Bool, "Whether to log new connections that match the rule")
                .default("false"),
            Argument::new("interface", ArgumentKind::Str, "Its interface, with direction").alias(&["if"]),
            Argument::new("interface_in", ArgumentKind::Str, "The incoming interface").alias(&["if_in"]),
            Argument::new("interface_out", ArgumentKind::Str, "The outgoing interface").alias(&["if_out"]),
            Argument::new("from_ip", ArgumentKind::Str, "The source address").alias(&["from", "src"]).default("any"),
            Argument::new("from_port", ArgumentKind::Str, "The source port"),
            Argument::new("to_ip", ArgumentKind::Str, "The destination address").alias(&["dest", "to"]).default("any"),
            Argument::new("to_port", ArgumentKind::Str, "The destination port").alias(&["port"]),
            Argument::new("proto", ArgumentKind::Str, "The protocol")
                .alias(&["protocol"])
                .choices(&["any", "tcp", "udp", "ipv6", "esp", "ah", "gre", "igmp", "vrrp"]),
            Argument::new("name", ArgumentKind::Str, "An application that ufw knows, instead of ports").alias(&["app"]),
            Argument::new("comment", ArgumentKind::Str, "A comment on the rule"),
        ],
        free_form: None,
        example: "\
- name: Allow SSH
  community.general.ufw: { rule: allow, port: '22', proto: tcp, comment: SSH }

- name: Deny other incoming traffic
  community.general.ufw: { state: enabled, default: deny, direction: incoming }
",
        returns: &[
            Return::new("commands", "The commands of ufw"),
            Return::new("msg", "The output of ufw status verbose after the task"),
        ],
    };
    /// The calls of ufw, each without the program's name.
    type Change = Vec<Vec<String>>;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<Self::Change>, Error> {
        self.check()?;
        if probe.which("ufw").await?.is_none() {
            return Err(Error::Failed {
                message: "the host has no program ufw".to_owned(),
                hint: Some("install the package ufw with an earlier task".to_owned()),
            });
        }
        let commands = self.commands(probe).await?;
        if !here.check {
            return Ok(Plan::Unknown(commands));
        }
        let status = ask(probe, &["status", "verbose"]).await?;
        let mut changes = self.would_switch(&status, &text(probe, SETTINGS).await?);
        if self.rule.is_some() {
            let at = commands.len() - 1 - usize::from(self.logging.is_some());
            let reported = commands[at].as_slice();
            let argv: Vec<&str> = ["--dry-run"].into_iter().chain(reported.iter().map(String::as_str)).collect();
            changes |= would_change(&text(probe, RULES).await?, &ask(probe, &argv).await?);
        }
        let outcome = Outcome::default().with("commands", lines(&commands));
        Ok(match changes {
            true => Plan::Change { diff: Vec::new(), outcome, change: commands },
            false => Plan::Unchanged(outcome),
        })
    }

    async fn apply(&self, commands: Self::Change, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let look = async || {
            let status = ask(remote, &["status", "verbose"]).await?;
            Ok::<_, Error>((status, text(remote, RULES).await?, text(remote, SETTINGS).await?))
        };
        let before = look().await?;
        for argv in &commands {
            let whole = ["ufw".to_owned()].into_iter().chain(argv.iter().cloned());
            let output = remote.run(&in_c(Command::program(whole))).await?;
            answer(argv, output.code, &output.stdout, &output.stderr)?;
        }
        let after = look().await?;
        let outcome = Outcome::default().with("commands", lines(&commands)).message(after.0.trim_end());
        let always = matches!(self.state.as_deref(), Some("reloaded" | "reset"));
        Ok(Outcome { changed: always || before != after, ..outcome })
    }
}

impl Ufw {
    fn check(&self) -> Result<(), Error> {
        let direction = self.direction.as_deref();
        let nothing = [&self.state, &self.default, &self.logging, &self.rule].into_iter().all(Option::is_none);
        let other = self.interface_in.is_some() || self.interface_out.is_some();
        let problem = match () {
            () if nothing => "one of state, default, rule and logging is required",
            () if self.name.is_some()
                && (self.proto.is_some() || self.to_port.is_some() || self.from_port.is_some()) =>
            {
                "name excludes proto and ports"
            }
            () if self.interface.is_some() && other => "interface excludes interface_in and interface_out",
            () if self.interface.is_some() && !matches!(direction, Some("in" | "out")) => {
                "interface needs direction: in or direction: out"
            }
            () if self.interface_in.is_some() && self.interface_out.is_some() && !self.route => {
                "interface_in and interface_out work together only with route"
            }
            () if self.default.is_some() && matches!(direction, Some("in" | "out")) => {
                "direction of default must be incoming, outgoing or routed"
            }
            () if self.rule.is_some() && self.default.is_none() && !matches!(direction, None | Some("in" | "out")) => {
                "direction of a rule must be in or out"
            }
            () => return Ok(()),
        };
        Err(Error::failed(format!("ufw: {problem}")))
    }

    /// In the order in which Ansible gives them: what is reset is reset first.
    async fn commands(&self, probe: &Probe) -> Result<Vec<Vec<String>>, Error> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut commands = Vec::new();
        if let Some(state) = &self.state {
            let verb = match state.as_str() {
                "enabled" => "enable",
                "disabled" => "disable",
                "reloaded" => "reload",
                _ => "reset",
            };
            commands.push(words(&["--force", verb]));
        }
        if let Some(default) = &self.default {
            let direction = self.direction.as_deref();
            commands.push(words(&["default", default].into_iter().chain(direction).collect::<Vec<_>>()));
        }
        if let Some(rule) = &self.rule {
            let number = match self.insert {
                Some(insert) if !self.delete && self.insert_relative_to != "zero" => {
                    relative(&ask(probe, &["status", "numbered"]).await?, &self.insert_relative_to, insert)
                }
                number => number,
            };
            commands.push(self.rule(rule, number));
        }
        if let Some(logging) = &self.logging {
            commands.push(words(&["logging", logging]));
        }
        Ok(commands)
    }

    fn rule(&self, rule: &str, number: Option<i64>) -> Vec<String> {
        let mut argv = Vec::new();
        let mut add = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
        let flags = [(self.route, "route"), (self.delete, "delete")];
        flags.iter().filter(|(is, _)| *is).for_each(|(_, word)| add(&[word]));
        // A rule that is to be gone has no place.
        if let Some(number) = number.filter(|_| !self.delete) {
            add(&["insert", &number.to_string()]);
        }
        add(&[rule]);
        if let Some(direction) = self.direction.as_deref().filter(|_| self.default.is_none()) {
            add(&[direction]);
        }
        let ways = [("", &self.interface), ("in", &self.interface_in), ("out", &self.interface_out)];
        for (way, interface) in ways {
            let Some(interface) = interface else { continue };
            if !way.is_empty() {
                add(&[way]);
            }
            add(&["on", interface]);
        }
        if self.log {
            add(&["log"]);
        }
        let (from, to) = (Some(&self.from_ip), Some(&self.to_ip));
        let parts = [
            ("from", from),
            ("port", self.from_port.as_ref()),
            ("to", to),
            ("port", self.to_port.as_ref()),
            ("proto", self.proto.as_ref()),
            ("app", self.name.as_ref()),
            ("comment", self.comment.as_ref()),
        ];
        for (word, value) in parts {
            if let Some(value) = value {
                add(&[word, value]);
            }
        }
        argv
    }

    /// Whether status and settings tell of something else than what state, default and logging ask for.
    fn would_switch(&self, status: &str, settings: &str) -> bool {
        let is_on = status.lines().any(|line| line == "Status: active");
        let state = match self.state.as_deref() {
            None => false,
            Some("enabled") => !is_on,
            Some("disabled") => is_on,
            Some(_) => true,
        };
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let setting = |name: &str| {
            let value =
                |line: &str| Some(line.strip_prefix(name)?.strip_prefix('=')?.trim().trim_matches('"').to_lowercase());
            settings.lines().filter_map(value).next_back()
        };
        let logging = self.logging.as_deref().is_some_and(|wanted| match (wanted, setting("LOGLEVEL")) {
            ("on", Some(level)) => level == "off",
            (wanted, Some(level)) => level != wanted,
            ("on" | "off", None) => !line("Logging: ").starts_with(wanted),
            (level, None) => !line("Logging: ").contains(&format!("({level})")),
        });
        let default = self.default.as_deref().is_some_and(|wanted| {
            let direction = self.direction.as_deref().unwrap_or("incoming");
            let policy = match direction {
                "incoming" => setting("DEFAULT_INPUT_POLICY"),
                "outgoing" => setting("DEFAULT_OUTPUT_POLICY"),
                _ => setting("DEFAULT_FORWARD_POLICY"),
            };
            match policy.as_deref() {
                Some("accept") => wanted != "allow",
                Some("drop") => wanted != "deny",
                Some(policy) => wanted != policy,
                // If a host does not forward, the status does not show this policy; Ansible treats that as unchanged.
                None => !line("Default: ")
                    .split(", ")
                    .any(|part| [wanted, "disabled"].iter().any(|word| part == format!("{word} ({direction})"))),
            }
        });
        state || logging || default
    }
}

/// What a command says: the rules that are kept, or the settings, one a line.
async fn text(probe: &Probe, command: &str) -> Result<String, Error> {
    Ok(String::from_utf8_lossy(&probe.query(&Command::shell(command)).await?.stdout).into_owned())
}

async fn ask(probe: &Probe, argv: &[&str]) -> Result<String, Error> {
    let output = probe.query(&in_c(Command::program(["ufw"].iter().chain(argv).copied()))).await?;
    answer(argv, output.code, &output.stdout, &output.stderr)
}

fn answer<S: AsRef<str>>(argv: &[S], code: i32, stdout: &[u8], stderr: &[u8]) -> Result<String, Error> {
    if code == 0 {
        return Ok(String::from_utf8_lossy(stdout).into_owned());
    }
    let words = String::from_utf8_lossy(if stderr.is_empty() { stdout } else { stderr });
    let argv: Vec<&str> = argv.iter().map(AsRef::as_ref).collect();
    Err(Error::failed(format!("ufw {} failed with code {code}: {}", argv.join(" "), words.trim())))
}

/// Its words tell what would change.
fn in_c(command: Command) -> Command {
    Command {
        environment: [("LANG".to_owned(), "C".to_owned()), ("LC_ALL".to_owned(), "C".to_owned())].into(),
        ..command
    }
}

fn lines(commands: &[Vec<String>]) -> Vec<String> {
    commands.iter().map(|argv| format!("ufw {}", argv.join(" "))).collect()
}

/// Whether a dry run of a rule results in different rules. It prints the rules of IPv4, of IPv6, or of both.
fn would_change(rules: &str, dry: &str) -> bool {
    if dry.lines().all(|line| line.contains("Skipping") || line.trim().is_empty()) {
        return false;
    }
    let tuples = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("### tuple")).map(str::to_owned).collect()
    };
    // Action, protocol, port and address of the one end, port and address of the other, ...
    let is_v6 = |line: &String| {
        let mut fields = line.trim_start_matches("### tuple ###").split_whitespace().skip(3).step_by(2).take(2);
        fields.any(|address| address.contains(':'))
    };
    let (there, then) = (tuples(rules), tuples(dry));
    [false, true].into_iter().any(|v6| {
        let of = |all: &[String]| all.iter().filter(|line| is_v6(line) == v6).cloned().collect::<Vec<_>>();
        let then = of(&then);
        // Without output, these rules do not change, except by the deletion of the last one.
        if then.is_empty() { dry.contains("Rule deleted") && of(&there).len() == 1 } else { then != of(&there) }
    })
}

/// The number that is so far from the first or last rule of a kind; None: behind all.
fn relative(numbered: &str, to: &str, insert: i64) -> Option<i64> {
    let rule = |line: &str| {
        let (number, rest) = line.strip_prefix('[')?.split_once(']')?;
        Some((number.trim().parse::<i64>().ok()?, rest.contains("(v6)")))
    };
    let rules: Vec<(i64, bool)> = numbered.lines().filter_map(rule).collect();
    let last = rules.iter().map(|(number, _)| *number).max().unwrap_or(0);
    let last_v4 = rules.iter().filter(|(_, v6)| !v6).map(|(number, _)| *number).max();
    let from = match to {
        "first-ipv4" => 1,
        "last-ipv4" => last_v4.unwrap_or(1),
        "first-ipv6" => last_v4.map_or(1, |number| number + 1),
        _ if rules.iter().any(|(_, v6)| *v6) => last,
        _ => last + 1,
    };
    insert.checked_add(from).filter(|number| *number <= last)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::*;

    fn ufw() -> Ufw {
        Ufw { from_ip: "any".into(), to_ip: "any".into(), insert_relative_to: "zero".into(), ..Ufw::default() }
    }

    #[test]
    fn a_rule_becomes_words_in_the_order_that_ufw_wants() {
        let rule = Ufw {
            route: true,
            delete: true,
            interface_in: Some("eth0".into()),
            interface_out: Some("eth1".into()),
            log: true,
            to_port: Some("80,443".into()),
            proto: Some("tcp".into()),
            comment: Some("the web".into()),
            ..ufw()
        };
        let words = rule.rule("allow", Some(2));
        assert_eq!(
            words.join(" "),
            "route delete allow in on eth0 out on eth1 log from any to any port 80,443 proto tcp comment the web"
        );
        assert_eq!(words.last().unwrap(), "the web");
        let added = Ufw { delete: false, ..rule }.rule("allow", Some(2)).join(" ");
        assert!(added.starts_with("route insert 2 allow in on eth0"), "{added}");
        let app =
            Ufw { direction: Some("out".into()), interface: Some("lo".into()), name: Some("OpenSSH".into()), ..ufw() };
        assert_eq!(app.rule("deny", None).join(" "), "deny out on lo from any to any app OpenSSH");
    }

    #[test]
    fn a_number_is_counted_from_rules_of_a_kind() {
        let numbered = "Status: active\n\n[ 1] 22 ALLOW IN Anywhere\n[ 2] 23 DENY IN Anywhere\n[ 3] 22 (v6) ALLOW IN Anywhere (v6)\n";
        let number = |to: &str, insert| relative(numbered, to, insert);
        assert_eq!(
            (number("first-ipv4", 0), number("last-ipv4", 0), number("first-ipv6", 0)),
            (Some(1), Some(2), Some(3))
        );
        assert_eq!(
            (number("last-ipv6", 0), number("last-ipv6", 1), relative("", "last-ipv4", 0)),
            (Some(3), None, None)
        );
        assert_eq!((number("first-ipv4", i64::MAX), number("last-ipv6", i64::MAX)), (None, None));
    }

    #[test]
    fn a_dry_run_tells_what_would_change() {
        let there =
            "### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in\n### tuple ### allow tcp 22 ::/0 any ::/0 in\n";
        assert!(!would_change(there, "Skipping adding existing rule\nSkipping adding existing rule (v6)\n"));
        assert!(!would_change(there, "*filter\n### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in\n"));
        assert!(would_change(there, "### tuple ### deny tcp 22 0.0.0.0/0 any 0.0.0.0/0 in\n"));
        // Neither the name of an interface, a range of ports nor a forwarded rule makes one of IPv6.
        let there = "### tuple ### route:allow tcp 60:70 10.0.0.1 any 0.0.0.0/0 in_eth0:1\n";
        assert!(would_change(&format!("{there}### tuple ### allow tcp 22 ::/0 any ::/0 in\n"), "Rule deleted (v6)\n"));
        let both = format!(
            "{there}### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in\n### tuple ### allow tcp 22 ::/0 any ::/0 in\n"
        );
        assert!(!would_change(&both, both.rsplit_once("### tuple").unwrap().0));
        let status =
            "Status: active\nLogging: on (low)\nDefault: deny (incoming), allow (outgoing), disabled (routed)\n";
        let switches = |ufw: Ufw| ufw.would_switch(status, "");
        assert!(!switches(Ufw { state: Some("enabled".into()), default: Some("deny".into()), ..ufw() }));
        assert!(switches(Ufw { default: Some("deny".into()), direction: Some("outgoing".into()), ..ufw() }));
        assert!(switches(Ufw { state: Some("disabled".into()), ..ufw() }));
        assert!(
            switches(Ufw { logging: Some("full".into()), ..ufw() })
                && !switches(Ufw { logging: Some("low".into()), ..ufw() })
        );
    }

    #[test]
    fn settings_tell_what_the_status_does_not() {
        let settings = "DEFAULT_INPUT_POLICY=\"DROP\"\nDEFAULT_OUTPUT_POLICY=\"ACCEPT\"\n\
            DEFAULT_FORWARD_POLICY=\"REJECT\"\nLOGLEVEL=medium\n";
        let default = |policy: &str, direction: Option<&str>| Ufw {
            default: Some(policy.into()),
            direction: direction.map(str::to_owned),
            ..ufw()
        };
        let off = |ufw: Ufw| ufw.would_switch("Status: inactive\n", settings);
        assert!(!off(default("deny", None)) && off(default("reject", None)) && off(default("allow", Some("incoming"))));
        assert!(!off(default("allow", Some("outgoing"))) && off(default("deny", Some("outgoing"))));
        assert!(!off(default("reject", Some("routed"))) && off(default("deny", Some("routed"))));
        for (level, changes) in [("on", false), ("off", true), ("medium", false), ("low", true)] {
            assert_eq!(off(Ufw { logging: Some(level.into()), ..ufw() }), changes, "{level}");
        }
        let on = "Status: active\nDefault: deny (incoming), allow (outgoing), disabled (routed)\n";
        assert!(!default("reject", Some("routed")).would_switch(on, settings));
        assert!(default("deny", Some("routed")).would_switch(on, settings));
        assert!(!default("deny", Some("routed")).would_switch(on, ""));
        assert!(default("deny", Some("outgoing")).would_switch(on, ""));
    }

    /// A stand-in for ufw that is on or off and records its arguments.
    const STAND_IN: &str = "#!/bin/sh\ncd \"$(dirname \"$0\")\" || exit\ncase \"$*\" in\n\
        'status verbose') echo \"Status: $(cat state 2>/dev/null || echo inactive)\" ;;\n\
        '--force enable') echo active >state ;;\n\
        'default '*|'logging '*) echo \"$*\" >>reported; echo \"$*\" >settings ;;\n\
        *nothing*) echo 'ERROR: Bad port' >&2; exit 1 ;;\n*) echo \"$*\" >>reported ;;\nesac\n";

    /// A stand-in for grep, which prints the last settings given to ufw.
    const GREP: &str = "#!/bin/sh\ncase \"$*\" in *LOGLEVEL*) cat \"$(dirname \"$0\")/settings\" ;; esac\n";

    #[tokio::test]
    async fn what_is_set_while_it_is_off_is_a_change_once() {
        let host = tempfile::tempdir().unwrap();
        for (name, text) in [("ufw", STAND_IN), ("grep", GREP)] {
            let program = host.path().join(name);
            crate::value::testing::write_program(&program, text);
        }
        let path = format!("{}:{}", host.path().display(), std::env::var("PATH").unwrap());
        let bench = Bench::with_environment(&[("PATH", &path)]).await;
        for task in ["ufw: {default: reject}", "ufw: {logging: full}"] {
            assert!(bench.run_twice(task).await.changed, "{task}");
        }
        std::fs::write(host.path().join("settings"), "LOGLEVEL=full\nDEFAULT_INPUT_POLICY=\"REJECT\"\n").unwrap();
        assert!(!bench.check("ufw: {default: reject, logging: full}").await.unwrap().changed);
        assert!(bench.check("ufw: {default: reject, logging: low}").await.unwrap().changed);
        std::fs::write(host.path().join("reported"), "").unwrap();
        let done = bench.run("ufw: {logging: low, rule: allow, default: deny, state: reset}").await.unwrap();
        assert_eq!(
            value(&done.outcome, "commands"),
            "['ufw --force reset', 'ufw default deny', 'ufw allow from any to any', 'ufw logging low']"
        );
        let reported = std::fs::read_to_string(host.path().join("reported")).unwrap();
        assert_eq!(reported, "--force reset\ndefault deny\nallow from any to any\nlogging low\n");
        let dry = bench.check("ufw: {logging: full, rule: allow}").await.unwrap();
        assert!(dry.changed);
        let reported = std::fs::read_to_string(host.path().join("reported")).unwrap();
        assert!(reported.ends_with("logging low\n--dry-run allow from any to any\n"), "{reported}");
        bench.close().await;
    }

    #[tokio::test]
    async fn it_is_switched_on_once_and_its_refusal_is_reported() {
        let host = tempfile::tempdir().unwrap();
        let program = host.path().join("ufw");
        crate::value::testing::write_program(&program, STAND_IN);
        let path = format!("{}:{}", host.path().display(), std::env::var("PATH").unwrap());
        let bench = Bench::with_environment(&[("PATH", &path)]).await;
        assert!(bench.check("ufw: {state: enabled}").await.unwrap().changed);
        let done = bench.run_twice("ufw: {state: enabled}").await;
        assert!(done.changed && done.outcome.message.as_deref() == Some("Status: active"));
        assert_eq!(value(&done.outcome, "commands"), "['ufw --force enable']");
        bench.run("ufw: {rule: allow, port: 22, comment: 'a b'}").await.unwrap();
        let reported = std::fs::read_to_string(host.path().join("reported")).unwrap();
        assert_eq!(reported, "allow from any to any port 22 comment a b\n");
        let refused = bench.failure("ufw: {rule: allow, port: nothing}").await;
        assert!(refused.ends_with("failed with code 1: ERROR: Bad port"), "{refused}");
        let wrong = bench.failure("ufw: {rule: allow, interface: eth0}").await;
        assert_eq!(wrong, "ufw: interface needs direction: in or direction: out");
        bench.close().await;
    }
}
