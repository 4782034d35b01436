//! `wait_for`: waits until a port answers or falls silent, or a file is there, gone, or says something.

use std::time::{Duration, Instant};

use fancy_regex::Regex;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Changes, Controller, Error, Module, Outcome, Plan, python_regex};
use crate::http::{self, HttpError};
use crate::remote::{Command, Links, Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

/// The kernel's numbers of the states of a TCP connection, as in `/proc/net/tcp`.
const TCP_STATES: &[(&str, &str)] = &[
    ("ESTABLISHED", "01"),
    ("SYN_SENT", "02"),
    ("SYN_RECV", "03"),
    ("FIN_WAIT1", "04"),
    ("FIN_WAIT2", "05"),
    ("TIME_WAIT", "06"),
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitFor {
    host: String,
    port: Option<u16>,
    path: Option<String>,
    search_regex: Option<String>,
    state: PortState,
    timeout: u64,
    connect_timeout: u64,
    delay: u64,
    sleep: u64,
    msg: Option<String>,
    active_connection_states: Vec<String>,
    exclude_hosts: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PortState {
    Absent,
    Drained,
    Present,
    Started,
    Stopped,
}

/// What was waited for came, with the groups of the regular expression if there is one.
#[derive(Debug, Default)]
struct Found {
    groups: Vec<Value>,
    named: Vec<(String, Value)>,
}

impl Module for WaitFor {
    const CHANGES: Changes = Changes::Nothing;
    const DOC: Doc = Doc {
        name: "wait_for",
        collection: "ansible.builtin",
        summary: "Wait for a port or a file of the host",
        arguments: &[
            Argument::new("host", ArgumentKind::Str, "The address of the port, as seen from the host")
                .default("127.0.0.1"),
            Argument::new(
                "port",
                ArgumentKind::Int,
                "The port; without it and path, the task waits for the whole timeout",
            ),
            Argument::new("path", ArgumentKind::Path, "The file, instead of a port"),
            Argument::new(
                "search_regex",
                ArgumentKind::Str,
                "A regular expression that the file or the data from the port must also match",
            ),
            Argument::new(
                "state",
                ArgumentKind::Str,
                "The state to wait for: started means present, stopped means absent",
            )
            .default("started")
            .choices(&["absent", "drained", "present", "started", "stopped"]),
            Argument::new("timeout", ArgumentKind::Int, "How many seconds to wait at most").default("300"),
            Argument::new("connect_timeout", ArgumentKind::Int, "How many seconds to wait for one connection")
                .default("5"),
            Argument::new("delay", ArgumentKind::Int, "How many seconds to wait before the first check").default("0"),
            Argument::new("sleep", ArgumentKind::Int, "How many seconds to wait between two checks").default("1"),
            Argument::new("msg", ArgumentKind::Str, "The message on timeout"),
            Argument::new(
                "active_connection_states",
                ArgumentKind::List(&ArgumentKind::Str),
                "States of a connection that count when draining",
            )
            .default("ESTABLISHED,FIN_WAIT1,FIN_WAIT2,SYN_RECV,SYN_SENT,TIME_WAIT"),
            Argument::new(
                "exclude_hosts",
                ArgumentKind::List(&ArgumentKind::Str),
                "Addresses whose connections are ignored when draining",
            ),
        ],
        free_form: None,
        example: "\
- name: Wait for the SSH server
  wait_for:
    port: 22
    search_regex: OpenSSH
    timeout: 10
",
        returns: &[
            Return::new("elapsed", "How many seconds it took"),
            Return::new("match_groups", "The groups of search_regex"),
            Return::new("match_groupdict", "Its named groups"),
        ],
    };
    type Change = ();

    async fn plan(&self, _: &Probe, _: &Controller<'_>) -> Result<Plan<()>, Error> {
        self.check()?;
        // It changes nothing, but what it waits for may not come about in check mode.
        Ok(Plan::Unknown(()))
    }

    async fn apply(&self, (): (), remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let clock = Instant::now();
        let limit = Duration::from_secs(self.timeout);
        let regex = self.search_regex.as_deref().map(|text| python_regex::compile_multiline(text, "search_regex"));
        let regex = regex.transpose()?;
        tokio::time::sleep(Duration::from_secs(self.delay)).await;
        let path = match &self.path {
            Some(path) => Some(remote.expand_on_host(path).await?),
            None => None,
        };
        if self.port.is_none() && path.is_none() {
            tokio::time::sleep(limit.saturating_sub(clock.elapsed())).await;
            return Ok(self.outcome(clock, &Found::default()));
        }
        while clock.elapsed() < limit {
            let left = limit.saturating_sub(clock.elapsed());
            if let Some(found) = self.look(remote, path.as_deref(), regex.as_ref(), left).await? {
                return Ok(self.outcome(clock, &found));
            }
            tokio::time::sleep(Duration::from_secs(self.sleep.max(1)).min(limit.saturating_sub(clock.elapsed()))).await;
        }
        let message = self.msg.clone().unwrap_or_else(|| self.complaint(path.as_deref()));
        Ok(Outcome { failed: Some(message), ..Outcome::default() }.with("elapsed", clock.elapsed().as_secs()))
    }
}

impl WaitFor {
    fn check(&self) -> Result<(), Error> {
        let wrong = match (self.port, &self.path, self.state) {
            (Some(_), Some(_), _) => "only port or path can be given, not both",
            (_, Some(_), PortState::Stopped | PortState::Drained) => "state stopped and drained work with ports only",
            (None, None, PortState::Drained) => "state drained needs a port",
            (_, _, state) if self.exclude_hosts.is_some() && state != PortState::Drained => {
                "exclude_hosts works with state drained only"
            }
            _ => "",
        };
        if !wrong.is_empty() {
            return Err(Error::failed(wrong));
        }
        match self.active_connection_states.iter().find(|name| state_number(name).is_none()) {
            Some(name) => Err(Error::failed(format!("unknown active_connection_state {name:?}"))),
            None => Ok(()),
        }
    }

    /// One look; None: not yet.
    async fn look(
        &self,
        probe: &Probe,
        path: Option<&str>,
        regex: Option<&Regex>,
        left: Duration,
    ) -> Result<Option<Found>, Error> {
        let wants_absence = matches!(self.state, PortState::Absent | PortState::Stopped);
        match (path, self.port) {
            (Some(path), _) if wants_absence => Ok(probe.stat(path, Links::Keep).await?.is_none().then(Found::default)),
            (Some(path), _) => file(probe, path, regex).await,
            (None, Some(port)) if self.state == PortState::Drained => {
                Ok((self.connections(probe, port).await? == 0).then(Found::default))
            }
            (None, Some(port)) => {
                let limit = Duration::from_secs(self.connect_timeout).min(left);
                let answer = self.port(probe, port, regex, limit, left).await?;
                Ok(if wants_absence { answer.is_none().then(Found::default) } else { answer.flatten() })
            }
            (None, None) => Ok(None),
        }
    }

    /// None: the port is closed. `Some(None)`: it is open, but its data does not match.
    async fn port(
        &self,
        probe: &Probe,
        port: u16,
        regex: Option<&Regex>,
        limit: Duration,
        left: Duration,
    ) -> Result<Option<Option<Found>>, Error> {
        let mut stream = match tokio::time::timeout(limit, http::connect(probe, &self.host, port)).await {
            Err(_) => return Ok(None),
            Ok(Ok(stream)) => stream,
            Ok(Err(HttpError::Host(error))) => return Err(error.into()),
            Ok(Err(error @ HttpError::Offline { .. })) => return Err(Error::failed(error.to_string())),
            Ok(Err(HttpError::NoTunnels { .. })) if regex.is_none() => {
                return Ok(answers_without_tunnel(probe, &self.host, port, limit)
                    .await?
                    .then(|| Some(Found::default())));
            }
            Ok(Err(HttpError::NoTunnels { reason, .. })) => {
                return Err(Error::failed(reason));
            }
            Ok(Err(_)) => return Ok(None),
        };
        let Some(regex) = regex else {
            #[expect(
                clippy::let_underscore_must_use,
                reason = "the port has answered; how the connection ends does not matter"
            )]
            let _ = stream.shutdown().await;
            return Ok(Some(Some(Found::default())));
        };
        let mut text = Vec::new();
        let reading = async {
            let mut buffer = [0; 4096];
            loop {
                match stream.read(&mut buffer).await {
                    Ok(0) | Err(_) => return Ok(None),
                    Ok(count) => text.extend(&buffer[..count]),
                }
                if let Some(found) = search(regex, &text)? {
                    return Ok(Some(found));
                }
            }
        };
        let found = tokio::time::timeout(left, reading).await.unwrap_or(Ok(None));
        found.map(Some)
    }

    /// How many connections to the port there are, of states that count, from hosts that count.
    async fn connections(&self, probe: &Probe, port: u16) -> Result<usize, Error> {
        // A system without IPv6 has no second list.
        let line = "cat /proc/net/tcp && { [ ! -e /proc/net/tcp6 ] || cat /proc/net/tcp6; }";
        let output = probe.query(&Command::shell(line)).await?;
        if output.code != 0 {
            let words = String::from_utf8_lossy(&output.stderr);
            let why = format!("exit code {} {}", output.code, words.trim());
            return Err(Error::failed(format!("cannot read the connections in /proc/net/tcp: {}", why.trim())));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let states: Vec<&str> = self.active_connection_states.iter().filter_map(|name| state_number(name)).collect();
        let excluded: Vec<String> =
            self.exclude_hosts.iter().flatten().flat_map(|host| kernel_addresses(host)).collect();
        Ok(text.lines().filter(|line| counts(line, port, &states, &excluded)).count())
    }

    fn outcome(&self, clock: Instant, found: &Found) -> Outcome {
        let state = match self.state {
            PortState::Absent => "absent",
            PortState::Drained => "drained",
            PortState::Present => "present",
            PortState::Started => "started",
            PortState::Stopped => "stopped",
        };
        let text = |text: &Option<String>| text.as_deref().map_or_else(|| Value::from(()), Value::from);
        Outcome::default()
            .with("state", state)
            .with("port", self.port.map_or_else(|| Value::from(()), Value::from))
            .with("path", text(&self.path))
            .with("search_regex", text(&self.search_regex))
            .with("match_groups", found.groups.clone())
            .with("match_groupdict", Value::from_pairs(found.named.clone()))
            .with("elapsed", clock.elapsed().as_secs())
    }

    fn complaint(&self, path: Option<&str>) -> String {
        let port = format!("{}:{}", self.host, self.port.unwrap_or_default());
        match (path, self.state, &self.search_regex) {
            (Some(path), PortState::Absent, _) => format!("Timeout when waiting for {path} to be absent."),
            (None, PortState::Absent | PortState::Stopped, _) => format!("Timeout when waiting for {port} to stop."),
            (_, PortState::Drained, _) => format!("Timeout when waiting for {port} to drain"),
            (Some(path), _, Some(regex)) => format!("Timeout when waiting for search string {regex} in {path}"),
            (None, _, Some(regex)) => format!("Timeout when waiting for search string {regex} in {port}"),
            (Some(path), ..) => format!("Timeout when waiting for file {path}"),
            (None, ..) => format!("Timeout when waiting for {port}"),
        }
    }
}

async fn file(probe: &Probe, path: &str, regex: Option<&Regex>) -> Result<Option<Found>, Error> {
    match regex {
        None => Ok(probe.stat(path, Links::Follow).await?.map(|_| Found::default())),
        Some(regex) => match probe.read_file(path).await? {
            Some(content) => search(regex, &content),
            None => Ok(None),
        },
    }
}

fn search(regex: &Regex, content: &[u8]) -> Result<Option<Found>, Error> {
    let text = String::from_utf8_lossy(content);
    let Some(captures) = python_regex::captures(regex, &text)? else { return Ok(None) };
    let value =
        |found: Option<fancy_regex::Match<'_>>| found.map_or_else(|| Value::from(()), |m| Value::from(m.as_str()));
    let groups = (1..captures.len()).map(|at| value(captures.get(at))).collect();
    let named = regex.capture_names().flatten().map(|name| (name.to_owned(), value(captures.name(name)))).collect();
    Ok(Some(Found { groups, named }))
}

/// Where the SSH server forbids tunnels, the host itself tries: bash can, or netcat.
async fn answers_without_tunnel(probe: &Probe, host: &str, port: u16, limit: Duration) -> Result<bool, Error> {
    const LINE: &str = "if command -v bash >/dev/null; then exec bash -c 'exec 3<>\"/dev/tcp/$HOST_/$PORT_\"' 2>/dev/null\n\
        elif command -v nc >/dev/null; then exec nc -z \"$HOST_\" \"$PORT_\" 2>/dev/null; else exit 125; fi";
    let mut command = Command::shell(LINE);
    command.environment.insert("HOST_".to_owned(), host.to_owned());
    command.environment.insert("PORT_".to_owned(), port.to_string());
    command.limit = Some(limit);
    match probe.query(&command).await {
        Ok(output) if output.code == 125 => Err(Error::Failed {
            message: format!("cannot check {host}:{port} from the host"),
            hint: Some(
                "its SSH server forbids tunnels (AllowTcpForwarding), and it has neither bash nor nc".to_owned(),
            ),
        }),
        Ok(output) => Ok(output.code == 0),
        Err(crate::remote::Error::TimedOut { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn state_number(name: &str) -> Option<&'static str> {
    TCP_STATES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// An address as `/proc/net/tcp` and `tcp6` write it: 32-bit words in the machine's (little-endian) order.
fn kernel_addresses(host: &str) -> Vec<String> {
    let words = |bytes: &[u8]| -> String {
        bytes.chunks(4).flat_map(|word| word.iter().rev()).map(|byte| format!("{byte:02X}")).collect()
    };
    match host.parse() {
        Ok(std::net::IpAddr::V4(v4)) => vec![words(&v4.octets()), words(&v4.to_ipv6_mapped().octets())],
        Ok(std::net::IpAddr::V6(v6)) => vec![words(&v6.octets())],
        Err(_) => Vec::new(),
    }
}

/// Whether a line of `/proc/net/tcp` is a connection to the port that counts.
fn counts(line: &str, port: u16, states: &[&str], excluded: &[String]) -> bool {
    let mut fields = line.split_whitespace().skip(1);
    let (Some(local), Some(remote), Some(state)) = (fields.next(), fields.next(), fields.next()) else { return false };
    let is_local = local.rsplit_once(':').is_some_and(|(_, hex)| u16::from_str_radix(hex, 16) == Ok(port));
    let from = remote.split(':').next().unwrap_or_default();
    is_local && states.contains(&state) && !excluded.iter().any(|address| address == from)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::*;

    #[test]
    fn connections_are_counted_by_port_state_and_origin() {
        let line = "   0: 0100007F:094B 0200000A:C350 01 00000000:00000000 00:00000000 00000000     0        0 1 1";
        assert!(counts(line, 2379, &["01"], &[]));
        assert!(!counts(line, 2380, &["01"], &[]) && !counts(line, 2379, &["06"], &[]));
        assert!(!counts(line, 2379, &["01"], &kernel_addresses("10.0.0.2")));
        assert!(!counts("  sl  local_address rem_address   st", 2379, &["01"], &[]));
        assert_eq!(kernel_addresses("::1"), ["00000000000000000000000001000000"]);
    }

    #[tokio::test]
    async fn connections_that_cannot_be_read_are_not_gone() {
        let programs = tempfile::tempdir().unwrap();
        crate::value::testing::write_program(programs.path().join("cat"), "#!/bin/sh\nkill -9 $$\n");
        let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
        let bench = Bench::with_environment(&[("PATH", &path)]).await;
        let told = bench.failure("wait_for: {port: 1, state: drained, timeout: 1}").await;
        assert!(told.starts_with("cannot read the connections in /proc/net/tcp: exit code 137"), "{told}");
        bench.close().await;
    }

    #[tokio::test]
    async fn a_port_is_waited_for_until_it_says_what_it_should() {
        let bench = Bench::new().await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(b"SSH-2.0-Open").await.ok();
                stream.write_all(b"SSH_9\r\n").await.ok();
            }
        });
        let done = bench.run(&format!("wait_for: {{port: {port}, timeout: 60}}")).await.unwrap();
        assert!(!done.changed && done.outcome.failed.is_none());
        let task = format!("wait_for: {{port: {port}, timeout: 60, search_regex: 'Open(?P<what>\\w+?)_(\\d)'}}");
        let done = bench.run(&task).await.unwrap();
        assert_eq!(value(&done.outcome, "match_groups"), "['SSH', '9']");
        assert_eq!(value(&done.outcome, "match_groupdict"), "{'what': 'SSH'}");
        server.abort();
        server.await.ok();
        let done = bench.run(&format!("wait_for: {{port: {port}, state: stopped, timeout: 60}}")).await.unwrap();
        assert!(done.outcome.failed.is_none());
        let message = bench.failure(&format!("wait_for: {{port: {port}, timeout: 1}}")).await;
        assert_eq!(message, format!("Timeout when waiting for 127.0.0.1:{port}"));
        bench.close().await;
    }

    #[tokio::test]
    async fn a_file_is_waited_for_and_its_going_too() {
        let bench = Bench::new().await;
        bench.on_host("log", "starting\nready at 5\n");
        let done = bench.run("wait_for: {path: HOST/log, search_regex: '^ready at (\\d)$', timeout: 1}").await.unwrap();
        assert_eq!(value(&done.outcome, "match_groups"), "['5']");
        let message = bench.failure("wait_for: {path: HOST/log, state: absent, timeout: 1, msg: still there}").await;
        assert_eq!(message, "still there");
        assert!(
            bench.run("wait_for: {path: HOST/no, state: absent, timeout: 1}").await.unwrap().outcome.failed.is_none()
        );
        assert!(bench.failure("wait_for: {path: HOST/log, port: 1}").await.contains("not both"));
        bench.close().await;
    }
}
