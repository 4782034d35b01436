//! `program`: installs programs from a bundle. Versions lie side by side, a link says which one counts.

use async_trait::async_trait;
use serde::Deserialize;

use super::{Question, find, place};
use crate::bundle::{Found, architecture_named};
use crate::modules::{Controller, Diff, Error, Module, Outcome, Plan, Progress, file_digest};
use crate::remote::{Attributes, Command, Digest, FileKind, Links, Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, Doc, Kind, Return};

/// The link's name.
const CURRENT: &str = "current";
const MODE: u32 = 0o755;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    name: String,
    programs: Option<Vec<String>>,
    bundle: String,
    version: Option<String>,
    architecture: Option<String>,
    root: String,
    current: bool,
}

/// What is to be done.
pub struct Change {
    directory: String,
    uploads: Vec<Upload>,
    /// Programs that are there and whose mode is wrong.
    modes: Vec<String>,
    /// Where `current` is to lead, if it does not.
    link: Option<(String, String)>,
    outcome: Outcome,
}

struct Upload {
    from: Found,
    to: String,
    name: String,
}

#[async_trait]
impl Module for Program {
    const DOC: Doc = Doc {
        name: "program",
        collection: "windlass",
        summary: "Installs programs from a bundle, versions side by side",
        arguments: &[
            Argument::new("name", Kind::Str, "The component; its directory is called so").required(),
            Argument::new(
                "programs",
                Kind::List(&Kind::Str),
                "Programs that belong to it; the component's own if not given",
            ),
            Argument::new("bundle", Kind::Str, "Directory or .tar.zst on the controller").required(),
            Argument::new("version", Kind::Str, "Version, or its beginning; whichever the bundle has if not given"),
            Argument::new("architecture", Kind::Str, "Instead of what the host says"),
            Argument::new("root", Kind::Path, "Directory on the host that the component's own lies in")
                .default("/opt/windlass"),
            Argument::new("current", Kind::Bool, "Whether it becomes the version that counts").default("true"),
        ],
        free_form: None,
        example: "\
- name: Install etcd and its tools
  program:
    bundle: ~/etcd-v3.5.21-linux-amd64
    name: etcd
    programs: [etcd, etcdctl, etcdutl]
    root: /opt/windlass/main
",
        returns: &[
            Return::new("directory", "Where this version lies"),
            Return::new("current", "The link to the version that counts"),
            Return::new("version", "The version"),
            Return::new("previous_version", "Where the link led before, if it led elsewhere"),
            Return::new("architecture", "What the programs are for"),
            Return::new("sha256", "Digests, by program"),
        ],
    };
    type Change = Change;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<Change>, Error> {
        let found = self.in_bundle(probe, here).await?;
        let version = one_version(&found)?;
        let component = format!("{}/{}", probe.expand(&self.root).await?.trim_end_matches('/'), self.name);
        let directory = format!("{component}/{version}");
        let mut diff = Diff { before_header: component.clone(), after_header: component.clone(), ..Diff::default() };
        let (mut uploads, mut modes) = (Vec::new(), Vec::new());
        for (name, from) in &found {
            let to = format!("{directory}/{name}");
            let there = probe.stat_and_digest(&to, Links::Keep, Digest::Sha256).await?;
            let installed = there.as_ref().and_then(|(_, digest)| digest.as_deref());
            if installed == Some(from.sha256.as_str()) {
                if there.is_some_and(|(stat, _)| stat.mode != MODE) {
                    modes.push(to);
                }
                continue;
            }
            if let Some(digest) = installed {
                diff.before.push_str(&format!("{version}/{name} sha256:{digest}\n"));
            }
            diff.after.push_str(&format!("{version}/{name} sha256:{}\n", from.sha256));
            uploads.push(Upload { from: from.clone(), to, name: name.clone() });
        }
        let link = format!("{component}/{CURRENT}");
        let before = self.leads_to(probe, &link).await?;
        let turn = self.current && before.as_deref() != Some(version.as_str());
        if turn {
            diff.before.extend(before.iter().map(|before| format!("{CURRENT} -> {before}\n")));
            diff.after.push_str(&format!("{CURRENT} -> {version}\n"));
        }
        let outcome = outcome(&found, &directory, &link, &version);
        let outcome = match before {
            Some(before) if turn => outcome.with("previous_version", before),
            _ => outcome,
        };
        if uploads.is_empty() && modes.is_empty() && !turn {
            return Ok(Plan::Unchanged(outcome));
        }
        for path in &modes {
            diff.after.push_str(&format!("{path} mode 0{MODE:o}\n"));
        }
        let link = turn.then_some((version, link));
        let change = Change { directory, uploads, modes, link, outcome: outcome.clone() };
        Ok(Plan::Change { diff: vec![diff], outcome, change })
    }

    async fn apply(&self, change: Change, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let attributes = Attributes { mode: Some(MODE), ..Attributes::default() };
        remote.make_directory(&change.directory, &attributes).await?;
        for Upload { from, to, name } in &change.uploads {
            let tell =
                |done, total| (here.progress)(Progress { what: format!("{name} {}", from.version), done, total });
            let digests = file_digest::of_file(&from.path).await?;
            remote.upload(&from.path, &digests.sha1, to, &attributes, &tell).await?;
            // The upload was compared with the file as it is now; this is what the bundle vouched for.
            let arrived = remote.digest(to, Digest::Sha256).await?.unwrap_or_default();
            if arrived != from.sha256 {
                let message =
                    format!("{to} has the SHA-256 {arrived} on the host, and the bundle's is {}", from.sha256);
                return Err(Error::failed(message));
            }
        }
        for path in &change.modes {
            remote.set_attributes(path, &attributes, Links::Keep).await?;
        }
        if let Some((version, link)) = &change.link {
            remote.symlink(version, link).await?;
        }
        Ok(change.outcome)
    }
}

impl Program {
    /// Every program with its file in the bundle.
    async fn in_bundle(&self, probe: &Probe, here: &Controller<'_>) -> Result<Vec<(String, Found)>, Error> {
        let architecture = match &self.architecture {
            Some(given) => given.clone(),
            None => String::from_utf8_lossy(&probe.query(&Command::program(["uname", "-m"])).await?.stdout)
                .trim()
                .to_owned(),
        };
        let bundle = place(here, &self.bundle)?;
        let names = self.programs.clone().filter(|names| !names.is_empty()).unwrap_or_else(|| vec![self.name.clone()]);
        let mut found = Vec::new();
        for component in names {
            let question = Question {
                bundle: bundle.clone(),
                component: component.clone(),
                architecture: architecture_named(&architecture).to_owned(),
                version: self.version.clone(),
            };
            found.push((component, find(question).await?));
        }
        Ok(found)
    }

    /// Where the link leads. Refused: something else is in its place.
    async fn leads_to(&self, probe: &Probe, link: &str) -> Result<Option<String>, Error> {
        match probe.stat(link, Links::Keep).await? {
            None => Ok(None),
            Some(stat) if stat.kind == FileKind::Link => Ok(stat.link_target),
            Some(_) => Err(Error::failed(format!("{link} is on the host and is no link"))),
        }
    }
}

/// The version of all of them.
fn one_version(found: &[(String, Found)]) -> Result<String, Error> {
    let first = &found.first().expect("there is at least the component's own program").1.version;
    match found.iter().find(|(_, other)| other.version != *first) {
        None => Ok(first.clone()),
        Some((name, other)) => Err(Error::failed(format!(
            "the bundle's {} is version {first} and its {name} is {}: they do not belong together",
            found[0].0, other.version
        ))),
    }
}

fn outcome(found: &[(String, Found)], directory: &str, link: &str, version: &str) -> Outcome {
    let digests = found.iter().map(|(name, found)| (name.clone(), Value::from(found.sha256.as_str())));
    Outcome::default()
        .with("directory", directory)
        .with("current", link)
        .with("version", version)
        .with("architecture", found.first().map_or("", |(_, found)| found.architecture.as_str()))
        .with("sha256", Value::from_pairs(digests))
}

#[cfg(test)]
pub mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::super::testing::{Bench, value};

    /// A program of the controller that says its version.
    pub fn script(bench: &Bench, file: &str, version: &str) {
        let path = bench.on_controller(file, format!("#!/bin/sh\necho 'Sample v{version}'\n"));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn task(version: &str) -> String {
        format!("program: {{bundle: HERE/{version}, name: etcd, programs: [etcd, etcdctl], root: HOST/opt}}")
    }

    async fn bench() -> Bench {
        let bench = Bench::new().await;
        for version in ["3.5.21", "3.6.1"] {
            script(&bench, &format!("{version}/etcd"), version);
            script(&bench, &format!("{version}/etcdctl"), version);
        }
        bench
    }

    #[tokio::test]
    async fn programs_are_installed_and_the_second_run_changes_nothing() {
        let bench = bench().await;
        let done = bench.run_twice(&task("3.5.21")).await;
        assert!(done.changed);
        assert_eq!(value(&done.outcome, "version"), "3.5.21");
        assert!(bench.text("opt/etcd/current/etcdctl").contains("3.5.21"));
        assert_eq!(bench.mode("opt/etcd/3.5.21/etcd"), 0o755);
        assert!(done.diff[0].after.ends_with("current -> 3.5.21\n"), "{:?}", done.diff);
    }

    #[tokio::test]
    async fn check_mode_touches_nothing_and_tells_all() {
        let done = bench().await.check(&task("3.5.21")).await.unwrap();
        assert!(done.changed);
        assert_eq!(done.diff[0].after.lines().count(), 3);
    }

    #[tokio::test]
    async fn another_version_lies_beside_the_first_and_the_link_turns() {
        let bench = bench().await;
        bench.run(&task("3.5.21")).await.unwrap();
        let done = bench.run_twice(&task("3.6.1")).await;
        assert_eq!(value(&done.outcome, "previous_version"), "3.5.21");
        assert!(bench.text("opt/etcd/current/etcd").contains("3.6.1"));
        assert!(bench.text("opt/etcd/3.5.21/etcd").contains("3.5.21"));
    }

    #[tokio::test]
    async fn a_version_can_be_brought_without_turning_to_it() {
        let bench = bench().await;
        bench.run(&task("3.5.21")).await.unwrap();
        let ahead = task("3.6.1").replace("root:", "current: false, root:");
        assert!(bench.run_twice(&ahead).await.changed);
        assert!(bench.text("opt/etcd/current/etcd").contains("3.5.21"));
        assert!(bench.host("opt/etcd/3.6.1/etcd").exists());
    }

    #[tokio::test]
    async fn one_altered_byte_and_a_wrong_mode_are_noticed_and_mended() {
        let bench = bench().await;
        bench.run(&task("3.5.21")).await.unwrap();
        let program = bench.host("opt/etcd/3.5.21/etcd");
        let text = bench.text("opt/etcd/3.5.21/etcd");
        std::fs::write(&program, text.replace("Sample", "Sbmple")).unwrap();
        assert!(bench.run_twice(&task("3.5.21")).await.changed);
        assert_eq!(bench.text("opt/etcd/3.5.21/etcd"), text);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(bench.run_twice(&task("3.5.21")).await.changed);
        assert_eq!(bench.mode("opt/etcd/3.5.21/etcd"), 0o755);
    }

    #[tokio::test]
    async fn programs_that_do_not_belong_together_are_refused() {
        let bench = Bench::new().await;
        script(&bench, "x/etcd", "3.5.21");
        script(&bench, "x/etcdctl", "3.6.1");
        let message = bench.failure(&task("x")).await;
        assert_eq!(
            message,
            "the bundle's etcd is version 3.5.21 and its etcdctl is 3.6.1: they do not belong together"
        );
    }

    #[tokio::test]
    async fn what_is_in_the_link_s_place_is_not_removed() {
        let bench = bench().await;
        bench.on_host("opt/etcd/current/precious", "x");
        let message = bench.failure(&task("3.5.21")).await;
        assert!(message.ends_with("opt/etcd/current is on the host and is no link"), "{message}");
        assert!(!bench.host("opt/etcd/3.5.21").exists());
    }
}
