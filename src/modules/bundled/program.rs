//! `program`: installs programs from a bundle. Versions are installed side by side; a link points to the active one.

use serde::Deserialize;

use super::Question;
use super::verified::{self, Directory, FileIdentity};
use crate::bundle::{FoundProgram, architecture_named};
use crate::modules::{Changes, Controller, Diff, Error, Module, Outcome, Plan, Progress};
use crate::remote::{Attributes, Command, Digest, ExpectedDigest, FileKind, Links, Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

/// The link's name.
const CURRENT: &str = "current";
const MODE: u32 = 0o755;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    name: String,
    programs: Option<Vec<String>>,
    bundle: String,
    version: Option<String>,
    architecture: Option<String>,
    root: String,
    current: bool,
    full_check: bool,
}

/// What is to be done.
pub(crate) struct ProgramChange {
    directory: String,
    programs: Vec<Wanted>,
    /// Where `current` is to lead, if it does not.
    link: Option<(String, String)>,
    outcome: Outcome,
}

/// One program, and what is to be done about it.
struct Wanted {
    name: String,
    from: FoundProgram,
    found: State,
}

enum State {
    /// Not there, or not what the bundle has; its digest.
    Other(Option<String>),
    /// As the bundle has it, and how it looked before its digest was taken.
    Right { looks: FileIdentity, noted: bool, mode: u32 },
}

impl Wanted {
    fn is_to_be_written(&self) -> bool {
        matches!(self.found, State::Other(_))
    }

    fn has_wrong_mode(&self) -> bool {
        matches!(self.found, State::Right { mode, .. } if mode != MODE)
    }

    fn is_unnoted(&self) -> bool {
        matches!(self.found, State::Right { noted: false, .. })
    }
}

impl Module for Program {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "program",
        collection: "windlass",
        summary: "Install programs from a bundle, in a directory for each version",
        arguments: &[
            Argument::new("name", ArgumentKind::Str, "The component, also the name of its directory").required(),
            Argument::new(
                "programs",
                ArgumentKind::List(&ArgumentKind::Str),
                "The programs that belong to it (default: the one named like the component)",
            ),
            Argument::new("bundle", ArgumentKind::Str, "Directory or .tar.zst on the controller").required(),
            Argument::new(
                "version",
                ArgumentKind::Str,
                "The version, or its beginning (default: the one in the bundle)",
            ),
            Argument::new("architecture", ArgumentKind::Str, "The architecture, instead of the host's own"),
            Argument::new(
                "root",
                ArgumentKind::Path,
                "The directory on the host that contains the component's directory",
            )
            .default("/opt/windlass"),
            Argument::new("current", ArgumentKind::Bool, "Whether to make it the current version").default("true"),
            Argument::new(
                "full_check",
                ArgumentKind::Bool,
                "Whether to read programs again even if the file system shows no change since the last time",
            )
            .default("false"),
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
            Return::new("directory", "The directory of this version"),
            Return::new("current", "The link to the current version"),
            Return::new("version", "The version"),
            Return::new("previous_version", "The former target of the link, if it changed"),
            Return::new("architecture", "The architecture of the programs"),
            Return::new("sha256", "Digests, by program"),
            Return::new("written", "The programs that were missing or differed from the bundle"),
        ],
    };
    type Change = ProgramChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<ProgramChange>, Error> {
        let found = self.in_bundle(probe, here).await?;
        let version = one_version(&found)?;
        let component = format!("{}/{}", probe.expand_on_host(&self.root).await?.trim_end_matches('/'), self.name);
        let directory = format!("{component}/{version}");
        let programs = self.look(probe, &directory, found).await?;
        let mut diff = Diff { before_header: component.clone(), after_header: component.clone(), ..Diff::default() };
        for Wanted { name, from, found } in &programs {
            let State::Other(digest) = found else { continue };
            diff.before.extend(digest.iter().map(|digest| format!("{version}/{name} sha256:{digest}\n")));
            diff.after.push_str(&format!("{version}/{name} sha256:{}\n", from.sha256));
        }
        let link = format!("{component}/{CURRENT}");
        let before = self.leads_to(probe, &link).await?;
        let turn = self.current && before.as_deref() != Some(version.as_str());
        if turn {
            diff.before.extend(before.iter().map(|before| format!("{CURRENT} -> {before}\n")));
            diff.after.push_str(&format!("{CURRENT} -> {version}\n"));
        }
        let mut outcome = outcome(&programs, &directory, &link, &version);
        if let Some(before) = before.filter(|_| turn) {
            outcome = outcome.with("previous_version", before);
        }
        for wrong in programs.iter().filter(|program| program.has_wrong_mode()) {
            diff.after.push_str(&format!("{directory}/{} mode 0{MODE:o}\n", wrong.name));
        }
        let as_it_should_be = diff.after.is_empty();
        let unnoted = programs.iter().any(Wanted::is_unnoted);
        if as_it_should_be && (here.check || !unnoted) {
            return Ok(Plan::Unchanged(outcome));
        }
        let link = turn.then_some((version, link));
        let change = ProgramChange { directory, programs, link, outcome: outcome.clone() };
        Ok(match as_it_should_be {
            // Only the note changes, which does not count as a change of the host.
            true => Plan::Unknown(change),
            false => Plan::Change { diff: vec![diff], outcome, change },
        })
    }

    async fn apply(&self, change: ProgramChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let ProgramChange { directory, programs, link, outcome } = change;
        let attributes = Attributes { mode: Some(MODE), ..Attributes::default() };
        if programs.iter().any(Wanted::is_to_be_written) {
            remote.make_directory(&directory, &attributes).await?;
        }
        for program in &programs {
            let path = format!("{directory}/{}", program.name);
            if program.is_to_be_written() {
                let what = format!("{} {}", program.name, program.from.version);
                let tell = |done, total| (here.progress)(Progress { what: what.clone(), done, total });
                let expected = ExpectedDigest::Sha256(&program.from.sha256);
                remote.upload(&program.from.path, expected, &path, &attributes, &tell).await?;
            } else if program.has_wrong_mode() {
                remote.set_attributes(&path, &attributes, Links::Keep).await?;
            }
        }
        note(remote, &directory, &programs).await?;
        if let Some((version, link)) = &link {
            remote.symlink(version, link).await?;
        }
        Ok(outcome)
    }
}

/// Notes what all programs look like now that they are what the bundle has. One that was only looked at is noted as it
/// looked before it was read: if it was written to meanwhile, the next run reads it again.
async fn note(remote: &Remote, directory: &str, programs: &[Wanted]) -> Result<(), Error> {
    let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
    let now = Directory::read_directory(remote, directory, &names).await?;
    let noted = programs.iter().filter_map(|program| {
        let looks = match &program.found {
            State::Right { looks, mode, .. } if *mode == MODE => looks.clone(),
            _ => now.seen_file(&program.name)?.looks.clone(),
        };
        Some((program.name.as_str(), program.from.sha256.as_str(), looks))
    });
    verified::write_verified(remote, directory, &noted.collect::<Vec<_>>()).await
}

impl Program {
    /// Every program with its file in the bundle.
    async fn in_bundle(&self, probe: &Probe, here: &Controller<'_>) -> Result<Vec<(String, FoundProgram)>, Error> {
        let architecture = match &self.architecture {
            Some(given) => given.clone(),
            None => String::from_utf8_lossy(&probe.query(&Command::program(["uname", "-m"])).await?.stdout)
                .trim()
                .to_owned(),
        };
        let surroundings = here.scope.surroundings.clone();
        // Relative to where windlass was called, as paths of a command line are.
        let bundle = surroundings.absolute(surroundings.expand_home(&self.bundle));
        let names = self.programs.clone().filter(|names| !names.is_empty()).unwrap_or_else(|| vec![self.name.clone()]);
        let mut found = Vec::new();
        for component in names {
            let question = Question {
                bundle: bundle.clone(),
                surroundings: surroundings.clone(),
                component: component.clone(),
                architecture: architecture_named(&architecture).to_owned(),
                version: self.version.clone(),
                signers: here.signers.cloned(),
            };
            found.push((component, here.caches.programs.find(question).await?));
        }
        Ok(found)
    }

    /// What each program is on the host. It is read only where the note beside it does not tell.
    async fn look(
        &self,
        probe: &Probe,
        directory: &str,
        found: Vec<(String, FoundProgram)>,
    ) -> Result<Vec<Wanted>, Error> {
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        let there = Directory::read_directory(probe, directory, &names).await?;
        let mut programs = Vec::new();
        for (name, from) in found {
            let known = there.recorded_digest(&name).filter(|_| !self.full_check).map(str::to_owned);
            let digest = match (&known, there.seen_file(&name)) {
                (Some(digest), _) => Some(digest.clone()),
                (None, Some(_)) => probe.digest(&format!("{directory}/{name}"), Digest::Sha256).await?,
                (None, None) => None,
            };
            let found = match there.seen_file(&name) {
                Some(file) if digest.as_deref() == Some(from.sha256.as_str()) => {
                    let noted = there.recorded_digest(&name) == digest.as_deref();
                    State::Right { looks: file.looks.clone(), noted, mode: file.mode }
                }
                _ => State::Other(digest),
            };
            programs.push(Wanted { name, from, found });
        }
        Ok(programs)
    }

    /// The target of the link. Refused: its path is not a link.
    async fn leads_to(&self, probe: &Probe, link: &str) -> Result<Option<String>, Error> {
        match probe.stat(link, Links::Keep).await? {
            None => Ok(None),
            Some(stat) if stat.kind == FileKind::Link => Ok(stat.link_target),
            Some(_) => Err(Error::failed(format!("{link} exists on the host and is not a link"))),
        }
    }
}

/// The version of all of them.
fn one_version(found: &[(String, FoundProgram)]) -> Result<String, Error> {
    let first = &found.first().expect("there is at least the component's own program").1.version;
    match found.iter().find(|(_, other)| other.version != *first) {
        None => Ok(first.clone()),
        Some((name, other)) => Err(Error::failed(format!(
            "the bundle's {} is version {first} and its {name} is {}: the versions must match",
            found[0].0, other.version
        ))),
    }
}

fn outcome(programs: &[Wanted], directory: &str, link: &str, version: &str) -> Outcome {
    let digests = programs.iter().map(|program| (program.name.clone(), Value::from(program.from.sha256.as_str())));
    let written = programs.iter().filter(|program| program.is_to_be_written());
    Outcome::default()
        .with("directory", directory)
        .with("current", link)
        .with("version", version)
        .with("architecture", programs.first().map_or("", |program| program.from.architecture.as_str()))
        .with("sha256", Value::from_pairs(digests))
        .with("written", written.map(|program| Value::from(program.name.as_str())).collect::<Value>())
}

#[cfg(test)]
pub(crate) mod tests {

    use super::super::super::testing::{Bench, value};

    /// A program of the controller that says its version.
    pub(crate) fn script(bench: &Bench, file: &str, version: &str) {
        let path = bench.on_controller(file, "");
        crate::value::testing::write_program(path, format!("#!/bin/sh\necho 'Sample v{version}'\n"));
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

    /// The file of signers is named: each module refuses what nobody has signed, before a host is touched.
    #[tokio::test]
    async fn unsigned_bundles_are_refused_where_signatures_are_demanded() {
        let mut bench = bench().await;
        let public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS";
        let signers = bench.on_controller("signers", format!("maker@x {public}\n"));
        let required = crate::bundle::RequiredSigners { signers, revoked: None, principals: Vec::new() };
        bench.signers = Some(std::sync::Arc::new(required));
        for expected in
            ["has no manifest, so nobody can have signed it", "is not signed, and bundle_signers demands a signature"]
        {
            let message = bench.failure(&task("3.5.21")).await;
            assert!(message.ends_with(expected), "{message}");
            for component in ["etcd", "crds", "packages"] {
                let info =
                    format!("bundle_info: {{bundle: HERE/3.5.21, components: [{component}], architecture: amd64}}");
                let message = bench.failure(&info).await;
                assert!(message.ends_with(expected), "{component}: {message}");
            }
            bench.on_controller("3.5.21/manifest.yaml", "format: 1\nfiles: []\n");
        }
        assert!(!bench.host("opt").exists());
        bench.signers = None;
        std::fs::remove_file(bench.on_controller("3.5.21/manifest.yaml", "")).unwrap();
        assert!(bench.run(&task("3.5.21")).await.unwrap().changed);
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
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        assert!(bench.run_twice(&task("3.5.21")).await.changed);
        assert_eq!(bench.mode("opt/etcd/3.5.21/etcd"), 0o755);
    }

    /// With the same size and mtime, the ctime shows the change, because no program can set it.
    #[tokio::test]
    async fn an_altered_byte_is_noticed_though_size_and_time_are_put_back() {
        let bench = bench().await;
        bench.run(&task("3.5.21")).await.unwrap();
        let program = bench.host("opt/etcd/3.5.21/etcd");
        let (text, time) = (bench.text("opt/etcd/3.5.21/etcd"), program.metadata().unwrap().modified().unwrap());
        std::fs::write(&program, text.replace("Sample", "Sbmple")).unwrap();
        std::fs::File::options().write(true).open(&program).unwrap().set_modified(time).unwrap();
        let done = bench.run_twice(&task("3.5.21")).await;
        assert_eq!(value(&done.outcome, "written"), "['etcd']");
        assert_eq!(bench.text("opt/etcd/3.5.21/etcd"), text);
    }

    #[tokio::test]
    async fn what_has_not_changed_is_not_read_again_unless_a_full_check_is_asked_for() {
        let bench = bench().await;
        bench.run(&task("3.5.21")).await.unwrap();
        assert_eq!(bench.mode("opt/etcd/3.5.21/.verified"), 0o600);
        // A wrong note: only reading the program shows it.
        let note = bench.text("opt/etcd/3.5.21/.verified");
        let lie = note.split_once(' ').map(|(_, rest)| format!("{} {rest}", "0".repeat(64))).unwrap();
        std::fs::write(bench.host("opt/etcd/3.5.21/.verified"), lie).unwrap();
        assert!(bench.check(&task("3.5.21")).await.unwrap().changed);
        let full = task("3.5.21").replace("root:", "full_check: true, root:");
        assert!(!bench.run(&full).await.unwrap().changed);
        assert_eq!(bench.text("opt/etcd/3.5.21/.verified"), note);
    }

    #[tokio::test]
    async fn a_note_that_is_gone_is_written_again_which_is_no_change() {
        let bench = bench().await;
        bench.run(&task("3.5.21")).await.unwrap();
        let note = bench.text("opt/etcd/3.5.21/.verified");
        std::fs::remove_file(bench.host("opt/etcd/3.5.21/.verified")).unwrap();
        assert!(!bench.check(&task("3.5.21")).await.unwrap().changed);
        assert!(!bench.host("opt/etcd/3.5.21/.verified").exists());
        assert!(!bench.run(&task("3.5.21")).await.unwrap().changed);
        assert_eq!(bench.text("opt/etcd/3.5.21/.verified"), note);
    }

    #[tokio::test]
    async fn programs_that_do_not_belong_together_are_refused() {
        let bench = Bench::new().await;
        script(&bench, "x/etcd", "3.5.21");
        script(&bench, "x/etcdctl", "3.6.1");
        let message = bench.failure(&task("x")).await;
        assert_eq!(message, "the bundle's etcd is version 3.5.21 and its etcdctl is 3.6.1: the versions must match");
    }

    #[tokio::test]
    async fn what_is_in_the_link_s_place_is_not_removed() {
        let bench = bench().await;
        bench.on_host("opt/etcd/current/precious", "x");
        let message = bench.failure(&task("3.5.21")).await;
        assert!(message.ends_with("opt/etcd/current exists on the host and is not a link"), "{message}");
        assert!(!bench.host("opt/etcd/3.5.21").exists());
    }
}
