//! `mount_facts`: mounted and known file systems, from the requested sources.

use std::collections::BTreeSet;
use std::sync::Arc;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::execution::quote;
use super::{Controller, Effect, Error, Inspect, Outcome, name_pattern, python_regex};
use crate::remote::{Command, Probe};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::{Value, Vars};

/// What the kernel has mounted.
const DYNAMIC: &[&str] = &["/etc/mtab", "/proc/mounts", "/etc/mnttab"];
/// The exit code for a source that is not a regular file.
const NO_FILE: i32 = 99;
/// What is to be mounted.
const STATIC: &[&str] = &["/etc/fstab", "/etc/vfstab", "/etc/filesystems"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MountFacts {
    sources: Option<Vec<String>>,
    /// Null: no program is asked.
    #[serde(default = "usual_program")]
    mount_binary: Value,
    devices: Option<Vec<String>>,
    fstypes: Option<Vec<String>>,
    timeout: Option<f64>,
    on_timeout: OnTimeout,
    include_aggregate_mounts: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OnTimeout {
    Error,
    Warn,
    Ignore,
}

/// A line of a source.
#[derive(Debug)]
struct Mount {
    source: String,
    line: String,
    device: String,
    path: String,
    kind: String,
    fields: Map<String, Json>,
}

impl Inspect for MountFacts {
    const DOC: Doc = Doc {
        name: "mount_facts",
        collection: "ansible.builtin",
        summary: "Return mounted file systems as facts",
        arguments: &[
            Argument::new(
                "sources",
                ArgumentKind::List(&ArgumentKind::Str),
                "Files, mount, or the keywords all, static and dynamic (default all)",
            ),
            Argument::new(
                "mount_binary",
                ArgumentKind::Any,
                "The program to run when no file lists mounts (default mount); null for none",
            ),
            Argument::new(
                "devices",
                ArgumentKind::List(&ArgumentKind::Str),
                "Patterns with * and ?; only mounts of matching devices",
            ),
            Argument::new(
                "fstypes",
                ArgumentKind::List(&ArgumentKind::Str),
                "Patterns with * and ?; only mounts of matching file systems",
            ),
            Argument::new("timeout", ArgumentKind::Float, "Timeout for each mount, in seconds (default: none)"),
            Argument::new("on_timeout", ArgumentKind::Str, "What to do when a mount times out")
                .default("error")
                .choices(&["error", "warn", "ignore"]),
            Argument::new(
                "include_aggregate_mounts",
                ArgumentKind::Bool,
                "Whether to list all mounts, including those hidden by others",
            ),
        ],
        free_form: None,
        example: "\
- name: List the disks with data
  mount_facts:
    devices: [/dev/*]
    fstypes: [ext4, xfs]
    timeout: 5

- name: Show the sizes
  debug:
    msg: \"{{ item.key }}: {{ item.value.size_total | default(0) }}\"
  loop: \"{{ ansible_facts.mount_points | dict2items }}\"
",
        returns: &[Return::new("ansible_facts", "mount_points by path, and aggregate_mounts, a list")],
    };
    async fn inspect(&self, probe: &Probe, _: &Controller<'_>) -> Result<Outcome, Error> {
        if let Some(seconds) = self.timeout.filter(|seconds| *seconds <= 0.0) {
            return Err(Error::failed(format!("timeout must be a positive number, not {seconds}")));
        }
        let mut outcome = Outcome::default();
        let mut mounts = self.mounts(probe).await?;
        let matches = |patterns: &Option<Vec<String>>, text: &str| patterns_match(patterns.as_deref(), text);
        let links = uuids(probe).await?;
        for mount in &mut mounts {
            if let Some(uuid) = mount.device.strip_prefix("UUID=") {
                let device = links.iter().find(|(_, it)| it == uuid).map(|(device, _)| device.clone());
                mount.fields.insert("uuid".into(), json!(uuid));
                mount.device = device.unwrap_or_else(|| mount.device.clone());
            }
        }
        let mut kept = Vec::new();
        for mount in mounts {
            if matches(&self.devices, &mount.device)? && matches(&self.fstypes, &mount.kind)? {
                kept.push(mount);
            }
        }
        let late = self.add_sizes(probe, &mut kept).await?;
        match self.on_timeout {
            OnTimeout::Error if !late.is_empty() => return Err(Error::failed(late.join("; "))),
            OnTimeout::Warn if !late.is_empty() => outcome = outcome.with("warnings", late),
            _ => {}
        }
        let (mut points, mut all) = (Map::new(), Vec::new());
        for mut mount in kept {
            mount.fields.insert("ansible_context".into(), json!({ "source": mount.source, "source_data": mount.line }));
            let uuid = links.iter().find(|(device, _)| *device == mount.device).map(|(_, uuid)| uuid.as_str());
            mount.fields.entry("uuid").or_insert(json!(uuid));
            points.entry(mount.path).or_insert_with(|| Json::Object(mount.fields.clone()));
            all.push(Json::Object(mount.fields));
        }
        if self.include_aggregate_mounts != Some(true) {
            all.clear();
        }
        let value = |json: Json| Value::from(minijinja::value::Serde(json));
        let facts = [("mount_points", Json::Object(points)), ("aggregate_mounts", Json::Array(all))];
        let facts: Vars = facts.into_iter().map(|(name, json)| (Arc::from(name), value(json))).collect();
        let outcome = outcome.with("ansible_facts", Value::from_pairs(facts.clone()));
        Ok(outcome.effect(Effect::Facts(facts)))
    }
}

impl MountFacts {
    fn sources(&self) -> Result<Vec<String>, Error> {
        let all = ["all".to_owned()];
        let mut sources = Vec::new();
        for source in self.sources.as_deref().unwrap_or(&all) {
            let known: Vec<&str> = match source.as_str() {
                "" => return Err(Error::failed("sources contains an empty string")),
                "all" => [DYNAMIC, STATIC].concat(),
                "dynamic" => DYNAMIC.to_vec(),
                "static" => STATIC.to_vec(),
                other => vec![other],
            };
            sources.extend(known.into_iter().map(str::to_owned));
        }
        Ok(sources)
    }

    /// The lines of all sources, each source once.
    async fn mounts(&self, probe: &Probe) -> Result<Vec<Mount>, Error> {
        let sources = self.sources()?;
        let binary = match &self.mount_binary {
            null if null.is_none() => None,
            value => Some(value.as_str().ok_or_else(|| Error::failed("mount_binary must be a string or null"))?),
        };
        let mut asks_program = sources.iter().any(|source| DYNAMIC.contains(&source.as_str()));
        let (mut seen, mut mounts) = (BTreeSet::new(), Vec::new());
        for source in sources {
            let found = match (source.as_str(), binary) {
                ("mount", Some(binary)) if seen.insert(source.clone()) => program(probe, binary, self.timeout).await?,
                ("mount", _) => Vec::new(),
                _ => file(probe, &source, &mut seen).await?,
            };
            if !found.is_empty() && (source == "mount" || DYNAMIC.contains(&source.as_str())) {
                asks_program = false;
            }
            mounts.extend(found);
        }
        if let (true, Some(binary)) = (asks_program, binary) {
            mounts.extend(program(probe, binary, self.timeout).await?);
        }
        Ok(mounts)
    }

    /// Adds what each file system says of its size; returns the warnings about those that time out.
    async fn add_sizes(&self, probe: &Probe, mounts: &mut [Mount]) -> Result<Vec<String>, Error> {
        if mounts.is_empty() {
            return Ok(Vec::new());
        }
        let limit = self.timeout.map(|seconds| format!("timeout {seconds} ")).unwrap_or_default();
        let look = |mount: &Mount| {
            format!(
                "{limit}stat -f -c '%S %s %b %a %c %d' -- {} 2>/dev/null || echo \"failed $?\"\n",
                quote(&mount.path)
            )
        };
        let output = probe.query(&Command::shell(mounts.iter().map(look).collect::<String>())).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut late = Vec::new();
        for (mount, line) in mounts.iter_mut().zip(text.lines()) {
            if line == "failed 124" {
                late.push(format!("timed out getting the size of {} (type {})", mount.path, mount.kind));
            }
            let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            let [fragment, block, total, available, inodes, free] = numbers[..] else { continue };
            let sizes = [
                ("size_total", fragment.saturating_mul(total)),
                ("size_available", fragment.saturating_mul(available)),
                ("block_size", block),
                ("block_total", total),
                ("block_available", available),
                ("block_used", total.saturating_sub(available)),
                ("inode_total", inodes),
                ("inode_available", free),
                ("inode_used", inodes.saturating_sub(free)),
            ];
            mount.fields.extend(sizes.map(|(name, size)| (name.to_owned(), json!(size))));
        }
        Ok(late)
    }
}

fn usual_program() -> Value {
    Value::from("mount")
}

fn patterns_match(patterns: Option<&[String]>, text: &str) -> Result<bool, Error> {
    let Some(patterns) = patterns.filter(|patterns| !patterns.is_empty()) else { return Ok(true) };
    for pattern in patterns {
        if python_regex::is_match(&name_pattern::compile(pattern, "devices or fstypes")?, text)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A file's mounts; nothing if there is no such file, or it was read under another name, or has another form.
async fn file(probe: &Probe, path: &str, seen: &mut BTreeSet<String>) -> Result<Vec<Mount>, Error> {
    let word = quote(path);
    // What is no file may have no end.
    let line =
        format!("if [ -e {word} ] && ! [ -f {word} ]; then exit {NO_FILE}; fi; readlink -f -- {word} && cat -- {word}");
    let output = probe.query(&Command::shell(line)).await?;
    if output.code == NO_FILE {
        return Err(Error::failed(format!("cannot read mounts from {path}: it is not a regular file")));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let Some((real, text)) = text.split_once('\n').filter(|_| output.code == 0) else { return Ok(Vec::new()) };
    // What the kernel has for the process that looks.
    let process = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let real = match real.strip_prefix("/proc/").and_then(|rest| rest.split_once('/')) {
        Some((id, rest)) if process(id) => format!("/proc/self/{rest}"),
        _ => real.to_owned(),
    };
    let is_new = seen.insert(real);
    Ok(if is_new { table(path, text).unwrap_or_default() } else { Vec::new() })
}

/// Lines as in fstab. None: it has another form.
fn table(source: &str, text: &str) -> Option<Vec<Mount>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<String> = line.split_whitespace().map(unescape).collect();
            let [device, path, kind, options, rest @ ..] = &fields[..] else { return None };
            let mut mount = mount(source, line, [device, path, kind, options]);
            if let [dump, pass, ..] = rest {
                mount.fields.insert("dump".into(), json!(dump.parse::<i64>().ok()?));
                mount.fields.insert("passno".into(), json!(pass.parse::<i64>().ok()?));
            }
            Some(mount)
        })
        .collect()
}

fn mount(source: &str, line: &str, [device, path, kind, options]: [&str; 4]) -> Mount {
    let fields = [("device", device), ("mount", path), ("fstype", kind), ("options", options)];
    Mount {
        source: source.to_owned(),
        line: line.to_owned(),
        device: device.to_owned(),
        path: path.to_owned(),
        kind: kind.to_owned(),
        fields: fields.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect(),
    }
}

/// `\040` and the like.
fn unescape(field: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|digits| first == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &tail[3..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What the mount program prints: `/dev/sda1 on / type ext4 (rw)`.
async fn program(probe: &Probe, binary: &str, timeout: Option<f64>) -> Result<Vec<Mount>, Error> {
    if probe.which(binary).await?.is_none() {
        return Err(Error::failed(format!("the host has no program {binary:?}")));
    }
    let limit = timeout.map(|seconds| format!("timeout {seconds} ")).unwrap_or_default();
    let output = probe.query(&Command::shell(format!("{limit}{}", quote(binary)))).await?;
    if output.code != 0 {
        return Err(Error::failed(format!("{binary} failed with code {}", output.code)));
    }
    let form = Regex::new(r"^(\S+) on (\S+) type (\S+) \((.+)\)$").expect("the expression is well formed");
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.lines().map(|line| {
        let parts = form.captures(line)?;
        let (_, fields) = parts.extract();
        Some(mount("mount", line, fields))
    });
    Ok(found.collect::<Option<Vec<Mount>>>().unwrap_or_default())
}

/// Devices and their UUIDs.
async fn uuids(probe: &Probe) -> Result<Vec<(String, String)>, Error> {
    let line = "for i in /dev/disk/by-uuid/*; do if [ -e \"$i\" ]; then echo \"$(readlink -f \"$i\") ${i##*/}\"; fi; done\n\
        if command -v lsblk >/dev/null; then lsblk --list --noheadings --paths --output NAME,UUID --exclude 2; fi; exit 0";
    let output = probe.query(&Command::shell(line)).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let pairs = text.lines().filter_map(|line| line.trim().split_once(' '));
    Ok(pairs
        .map(|(device, uuid)| (device.to_owned(), uuid.trim().to_owned()))
        .filter(|(_, uuid)| !uuid.is_empty())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    async fn facts(bench: &Bench, arguments: &str) -> Value {
        let done = bench.check(&format!("mount_facts: {{{arguments}}}")).await.unwrap();
        done.outcome.values["ansible_facts"].clone()
    }

    #[tokio::test]
    async fn what_is_mounted_at_the_root_is_reported_with_its_size_and_source() {
        let bench = Bench::new().await;
        let facts = facts(&bench, "sources: [dynamic]").await;
        let root = facts.get_attr("mount_points").unwrap().get_attr("/").unwrap();
        assert!(root.get_attr("size_total").unwrap().as_i64().unwrap() > 0, "{root}");
        assert!(root.get_attr("ansible_context").unwrap().get_attr("source").unwrap().to_string().starts_with('/'));
        assert_eq!(facts.get_attr("aggregate_mounts").unwrap().len(), Some(0));
        bench.close().await;
    }

    #[tokio::test]
    async fn a_table_of_ones_own_is_a_source_and_the_first_of_a_path_counts() {
        let bench = Bench::new().await;
        bench.on_host(
            "fstab",
            "# x\n/dev/a /nowhere\\040here ext4 ro 0 2\nnas:/b /nowhere\\040here nfs rw\n/dev/c /c xfs rw 0 0\n",
        );
        bench.on_host("odd", "no table\n");
        let all =
            facts(&bench, "sources: [HOST/fstab, HOST/odd, HOST/none, HOST/./fstab], include_aggregate_mounts: true")
                .await;
        let points = all.get_attr("mount_points").unwrap();
        assert_eq!((points.len(), all.get_attr("aggregate_mounts").unwrap().len()), (Some(2), Some(3)));
        let first = points.get_attr("/nowhere here").unwrap();
        assert_eq!(
            (first.get_attr("fstype").unwrap().to_string(), first.get_attr("passno").unwrap().as_i64()),
            ("ext4".into(), Some(2))
        );
        let chosen = facts(&bench, "sources: [HOST/fstab], devices: ['/dev/*'], fstypes: ['x*']").await;
        assert_eq!(chosen.get_attr("mount_points").unwrap().len(), Some(1));
        bench.close().await;
    }

    #[tokio::test]
    async fn a_source_that_has_no_end_is_refused() {
        let bench = Bench::new().await;
        let pipe = bench.host("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for source in ["/dev/zero", "HOST/pipe", "HOST"] {
            let message = bench.failure(&format!("mount_facts: {{sources: [{source}]}}")).await;
            assert!(message.ends_with(": it is not a regular file"), "{message}");
        }
        bench.close().await;
    }

    #[tokio::test]
    async fn the_mount_program_is_asked_when_it_is_named_and_not_when_it_is_null() {
        let bench = Bench::new().await;
        let text = "#!/bin/sh\necho '/dev/x on /x type ext4 (rw,noatime)'\n";
        crate::value::testing::write_program(bench.host("mount"), text);
        let facts_of = |binary: &'static str| facts(&bench, binary);
        let asked = facts_of("sources: [mount], mount_binary: HOST/mount").await;
        assert_eq!(
            asked.get_attr("mount_points").unwrap().get_attr("/x").unwrap().get_attr("options").unwrap().to_string(),
            "rw,noatime"
        );
        let not = facts_of("sources: [mount], mount_binary: null").await;
        assert_eq!(not.get_attr("mount_points").unwrap().len(), Some(0));
        for wrong in ["sources: ['']", "timeout: 0", "sources: [mount], mount_binary: no-such-program"] {
            bench.failure(&format!("mount_facts: {{{wrong}}}")).await;
        }
        bench.close().await;
    }
}
