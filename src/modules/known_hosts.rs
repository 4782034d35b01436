//! `known_hosts`: which keys other hosts have, in the file that ssh on the host reads. Needs no ssh there.

use serde::Deserialize;

use super::file_attributes::DesiredAttributes;
use super::file_edit::{self, Target, WriteOptions};
use super::file_write::Write;
use super::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::connection::known_hosts::hosts;
use crate::remote::{Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownHosts {
    name: String,
    key: Option<String>,
    path: String,
    hash_host: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Present,
    Absent,
}

pub(super) struct KnownHostsChange {
    write: Write,
    outcome: Outcome,
}

impl Module for KnownHosts {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "known_hosts",
        collection: "ansible.builtin",
        summary: "Add or remove a host key in a known_hosts file",
        arguments: &[
            Argument::new("name", ArgumentKind::Str, "The other host, [host]:port if its port is not 22")
                .required()
                .alias(&["host"]),
            Argument::new("key", ArgumentKind::Str, "Its key as a line of known_hosts, with the host's name first"),
            Argument::new("path", ArgumentKind::Path, "The file").default("~/.ssh/known_hosts"),
            Argument::new("hash_host", ArgumentKind::Bool, "Whether to hash the host's name").default("false"),
            Argument::new(
                "state",
                ArgumentKind::Str,
                "Whether the key should be in the file; absent without key removes all keys of the host",
            )
            .default("present")
            .choices(&["present", "absent"]),
        ],
        free_form: None,
        example: r#"
- name: Add the key of the git server
  known_hosts:
    path: /etc/ssh/ssh_known_hosts
    name: git.example.org
    key: git.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH6mXH9dVYQyZgK7lTzv0Wn1sRjJ1r0o4r8pD5eUuV2b
    hash_host: true

- name: Remove the keys of an old host
  known_hosts:
    name: "[old.example.org]:2222"
    state: absent
"#,
        returns: &[
            Return::new("name", "The other host"),
            Return::new("key", "Its key as given"),
            Return::new("path", "The file"),
            Return::new("hash_host", "Whether its name is hashed"),
            Return::new("state", "The type of the file, or absent"),
        ],
    };
    type Change = KnownHostsChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<KnownHostsChange>, Error> {
        let name = self.name.to_lowercase();
        if name.trim().is_empty() || name.contains(',') || name.contains(char::is_whitespace) {
            return Err(Error::failed(format!("known_hosts: name {:?} must be one host's name", self.name)));
        }
        let keys = self.keys(&name)?;
        let target = Target::read_target(probe, &self.path).await?;
        let edited = match (self.state, &self.key) {
            (State::Present, None) => return Err(Error::failed("known_hosts: key is required when state is present")),
            (State::Present, Some(_)) => {
                keys.iter().fold(target.text.characters.clone(), |text, key| with(&text, &name, key, self.hash_host))
            }
            (State::Absent, Some(_)) => {
                keys.iter().fold(target.text.characters.clone(), |text, key| without(&text, &name, key))
            }
            (State::Absent, None) => without_host(&target.text.characters, &name),
        };
        let outcome = self.outcome(&target.path);
        if target.there.is_none() && edited.is_empty() {
            return Ok(Plan::Unchanged(outcome));
        }
        let wanted = DesiredAttributes::default();
        let manner = WriteOptions { wanted: &wanted, backup: false, validate: None, make_directories: false };
        let edit = file_edit::compare_text(probe, here, &target, &edited, &manner).await?;
        Ok(match edit.write {
            None => Plan::Unchanged(outcome),
            Some(write) => {
                Plan::Change { diff: edit.diff, outcome: outcome.clone(), change: KnownHostsChange { write, outcome } }
            }
        })
    }

    async fn apply(&self, change: KnownHostsChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        change.write.apply_write(remote, here).await?;
        Ok(change.outcome)
    }
}

impl KnownHosts {
    /// The keys that are given, one a line; each must be for the host.
    fn keys(&self, name: &str) -> Result<Vec<String>, Error> {
        let lines = self.key.iter().flat_map(|key| key.lines()).map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        if lines.is_empty() && self.key.is_some() {
            return Err(Error::failed("known_hosts: key contains no key"));
        }
        let several = lines.len() > 1;
        let first = lines.first().and_then(|line| Entry::parse(line)).map(|entry| entry.hosts);
        // A text that another host sent may have more lines than the author of the task expects.
        let of_this_host = |entry: &Entry| {
            let same = entry.hosts.starts_with("|1|") || Some(entry.hosts) == first || entry.hosts == name;
            entry.marker.is_empty() && same && !entry.hosts.contains(['*', '?', '!'])
        };
        let keys = lines.into_iter().map(|line| match Entry::parse(line) {
            Some(entry) if several && !of_this_host(&entry) => Err(Error::Failed {
                message: format!(
                    "known_hosts: key has several lines, and this one is not a key of {name} only: {line:?}"
                ),
                hint: Some("write a task for each line with a marker, a pattern or other hosts".to_owned()),
            }),
            Some(entry) if hosts::are_for(entry.hosts, name) => Ok(line.to_owned()),
            Some(entry) => Err(Error::Failed {
                message: format!("host parameter does not match the host in the supplied key: {:?}", entry.hosts),
                hint: Some(format!("key must start with the host's name: {name} ssh-ed25519 AAAA…")),
            }),
            None => Err(Error::failed(format!("known_hosts: invalid line {line:?}"))),
        });
        keys.collect()
    }

    fn outcome(&self, path: &str) -> Outcome {
        Outcome::default()
            .with("name", self.name.as_str())
            .with("key", self.key.as_deref().map_or(Value::from(()), Value::from))
            .with("path", path)
            .with("hash_host", self.hash_host)
            .with("state", if self.state == State::Present { "present" } else { "absent" })
    }
}

/// A line that has a key in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry<'a> {
    /// `@cert-authority` or `@revoked`, or nothing.
    marker: &'a str,
    hosts: &'a str,
    kind: &'a str,
    key: &'a str,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Entry<'a>> {
        let mut words = line.split_whitespace();
        let first = words.next().filter(|word| !word.starts_with('#'))?;
        let (marker, hosts) = if first.starts_with('@') { (first, words.next()?) } else { ("", first) };
        Some(Entry { marker, hosts, kind: words.next()?, key: words.next()? })
    }

    /// Whether both say the same of one host; hashed names of it all do.
    fn is_same(&self, other: &Entry) -> bool {
        let both_hashed = self.hosts.starts_with("|1|") && other.hosts.starts_with("|1|");
        (self.marker, self.kind, self.key) == (other.marker, other.kind, other.key)
            && (self.hosts == other.hosts || both_hashed)
    }

    /// Whether the one takes the other's place: a host has one key of each kind.
    fn replaces(&self, other: &Entry) -> bool {
        self.marker.is_empty() && other.marker.is_empty() && self.kind == other.kind
    }
}

/// The text without the lines of a host of which `goes` says so.
fn filtered(text: &str, name: &str, goes: impl Fn(&Entry) -> bool) -> String {
    let stays = |line: &&str| {
        let entry = Entry::parse(line).filter(|entry| hosts::are_for(entry.hosts, name));
        !entry.is_some_and(|entry| goes(&entry))
    };
    text.split_inclusive('\n').filter(stays).collect()
}

fn has(text: &str, name: &str, is_it: impl Fn(&Entry) -> bool) -> bool {
    let mut entries = text.lines().filter_map(Entry::parse);
    entries.any(|entry| hosts::are_for(entry.hosts, name) && is_it(&entry))
}

/// The text with a key, once, at its end if it was not there.
fn with(text: &str, name: &str, line: &str, hashed: bool) -> String {
    let line = if hashed { hash(line, name) } else { line.to_owned() };
    let Some(new) = Entry::parse(&line) else { return text.to_owned() };
    if has(text, name, |entry| entry.is_same(&new)) {
        return text.to_owned();
    }
    let mut text = filtered(text, name, |entry| new.replaces(entry));
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&line);
    text.push('\n');
    text
}

/// The text without a key: as it is given or, if it is not there so, the host's key of this kind.
fn without(text: &str, name: &str, line: &str) -> String {
    let Some(old) = Entry::parse(line) else { return text.to_owned() };
    match has(text, name, |entry| entry.is_same(&old)) {
        true => filtered(text, name, |entry| entry.is_same(&old)),
        false => filtered(text, name, |entry| old.replaces(entry)),
    }
}

/// The text without the keys of a host. What is said of authorities, and what is revoked, stays.
fn without_host(text: &str, name: &str) -> String {
    filtered(text, name, |entry| entry.marker.is_empty())
}

/// The line with a hashed name in the place of its hosts.
fn hash(line: &str, name: &str) -> String {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let at = usize::from(line.starts_with('@'));
    if let Some(hosts) = words.get_mut(at) {
        *hosts = hosts::hash(name);
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::*;

    const A: &str = "h ssh-ed25519 AAAA";

    #[test]
    fn one_key_of_each_kind_is_kept_for_a_host() {
        let text = "# c\nh,1.2.3.4 ssh-rsa BBBB x\nother ssh-ed25519 CCCC\n@revoked h ssh-ed25519 DDDD";
        let added = with(text, "h", A, false);
        assert_eq!(added, format!("{text}\n{A}\n"));
        assert_eq!(with(&added, "h", &format!("{A} comment"), false), added);
        let changed = with(&added, "h", "h ssh-ed25519 EEEE", false);
        assert_eq!(changed, format!("{text}\nh ssh-ed25519 EEEE\n"));
        assert_eq!(without(&added, "h", A), format!("{text}\n"));
        assert_eq!(without(&added, "h", "h ssh-dss X"), added);
        assert_eq!(without_host(&added, "h"), "# c\nother ssh-ed25519 CCCC\n@revoked h ssh-ed25519 DDDD\n");
    }

    #[test]
    fn a_hashed_name_is_found_and_not_reported() {
        let text = with("", "h", A, true);
        assert!(text.starts_with("|1|") && text.ends_with(" ssh-ed25519 AAAA\n"), "{text}");
        assert_eq!(with(&text, "h", A, true), text);
        assert_eq!(with(&text, "h", A, false), format!("{A}\n"));
        assert_eq!(without_host(&text, "h"), "");
        assert_eq!(without_host(&text, "i"), text);
    }

    #[tokio::test]
    async fn second_run_changes_nothing() {
        let bench = Bench::new().await;
        let add = format!("known_hosts: {{name: H, path: HOST/known, key: '{A}'}}");
        assert!(bench.check(&add).await.unwrap().changed);
        let done = bench.run_twice(&add).await;
        assert!(done.changed);
        assert_eq!((value(&done.outcome, "state"), bench.text("known")), ("file".into(), format!("{A}\n")));
        let hashed = add.replace("path", "hash_host: true, path");
        assert!(bench.run_twice(&hashed).await.changed);
        assert!(bench.run_twice("known_hosts: {name: h, path: HOST/known, state: absent}").await.changed);
        assert_eq!(bench.text("known"), "");
        assert!(!bench.run("known_hosts: {name: h, path: HOST/no, state: absent}").await.unwrap().changed);
        assert!(!bench.host("no").exists());
        bench.close().await;
    }

    #[tokio::test]
    async fn several_lines_are_keys_of_one_host() {
        let bench = Bench::new().await;
        let task = |key: &str| format!("known_hosts: {{name: h, path: HOST/k, key: \"{key}\"}}");
        let further =
            ["@cert-authority h,* ssh-rsa E", "@cert-authority h ssh-rsa E", "h,* ssh-rsa E", "*,!i ssh-rsa E"];
        for line in further {
            let reported = bench.failure(&task(&format!("{A}\\n{line}"))).await;
            assert!(reported.contains("is not a key of h only"), "{reported}");
        }
        let reported = bench.failure(&task("@cert-authority * ssh-rsa E\\nh ssh-rsa E")).await;
        assert!(reported.contains("is not a key of h only"), "{reported}");
        assert!(!bench.host("k").exists());
        bench.run_twice(&task(&format!("# h:22\\n{A}\\nh ssh-rsa BBBB"))).await;
        assert_eq!(bench.text("k"), format!("{A}\nh ssh-rsa BBBB\n"));
        bench.run_twice(&task("@cert-authority *,!i ssh-rsa CCCC")).await;
        bench.close().await;
    }

    #[tokio::test]
    async fn what_is_written_is_found_by_ssh_keygen() {
        let bench = Bench::new().await;
        bench.run(&format!("known_hosts: {{name: '[h]:22', path: HOST/k, key: '[h]:22 {}'}}", &A[2..])).await.unwrap();
        bench.run("known_hosts: {name: b.example.org, path: HOST/k, hash_host: true, key: 'b.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMf+RJcDfZ0eFfLyMKoxBk8GoBVRuFTPPBBNZeKzp1PC'}").await.unwrap();
        let output = std::process::Command::new("ssh-keygen")
            .args(["-F", "b.example.org", "-f"])
            .arg(bench.host("k"))
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("found: line 2"), "{output:?}");
        bench.close().await;
    }

    #[tokio::test]
    async fn what_is_wrong_is_reported() {
        let bench = Bench::new().await;
        for (arguments, message) in [
            ("name: h, path: HOST/k", "known_hosts: key is required when state is present"),
            ("name: 'h,i', path: HOST/k, key: 'h a b'", "known_hosts: name \"h,i\" must be one host's name"),
            (
                "name: h, path: HOST/k, key: 'i ssh-rsa A'",
                "host parameter does not match the host in the supplied key: \"i\"",
            ),
            ("name: h, path: HOST/k, key: 'ssh-rsa A'", "known_hosts: invalid line \"ssh-rsa A\""),
        ] {
            assert_eq!(bench.failure(&format!("known_hosts: {{{arguments}}}")).await, message);
        }
        let lost = bench.failure(&format!("known_hosts: {{name: h, path: HOST/no/k, key: '{A}'}}")).await;
        assert!(lost.ends_with("does not exist"), "{lost}");
        bench.close().await;
    }
}
