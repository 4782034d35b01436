//! `mount`: what is mounted where, now and after a boot.

mod table;

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use super::file_attributes::DesiredAttributes;
use super::file_edit::{self, Target, WriteOptions};
use super::file_write::{self, Write};
use super::{Changes, Controller, Diff, Error, Module, Outcome, Plan, host_links};
use crate::remote::{Attributes, Command, Links, Output, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use table::{FstabEntry, Mounted};

const FSTAB: &str = "/etc/fstab";
/// What Ansible shows of a value that is not to be logged.
const HIDDEN: &str = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mount {
    path: String,
    src: Option<String>,
    fstype: Option<String>,
    opts: Option<String>,
    opts_no_log: bool,
    dump: String,
    passno: String,
    state: State,
    fstab: Option<String>,
    boot: bool,
    backup: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Absent,
    AbsentFromFstab,
    Mounted,
    Present,
    Unmounted,
    Remounted,
    Ephemeral,
}

/// What is to be done, in this order.
#[derive(Default)]
pub(super) struct MountChange {
    /// Outermost first.
    make: Vec<String>,
    fstab: Option<Write>,
    /// What the table held, to be put back if the mount fails; None: there was no table.
    before: Option<Vec<u8>>,
    act: Option<MountAction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MountAction {
    Mount,
    Remount,
    /// Off and on again, as another source is to be there.
    Replace,
    Unmount,
    /// Unmounts if something is mounted, and removes the directory.
    Clear {
        mounted: bool,
    },
}

impl Module for Mount {
    const CHANGES: Changes = Changes::Mounts;
    const DOC: Doc = Doc {
        name: "mount",
        collection: "ansible.posix",
        summary: "Mount and unmount file systems, now and at boot",
        arguments: &[
            Argument::new("path", ArgumentKind::Path, "The mount point; none for swap").required().alias(&["name"]),
            Argument::new("src", ArgumentKind::Path, "The device or other source"),
            Argument::new("fstype", ArgumentKind::Str, "Its type"),
            Argument::new("opts", ArgumentKind::Str, "Mount options, separated by commas (default: defaults)"),
            Argument::new("opts_no_log", ArgumentKind::Bool, "Whether to hide the options").default("false"),
            Argument::new("dump", ArgumentKind::Str, "The fifth field of the table").default("0"),
            Argument::new("passno", ArgumentKind::Str, "The sixth field: the order of checks at boot").default("0"),
            Argument::new(
                "state",
                ArgumentKind::Str,
                "Mounted and in the table, in the table, mounted without the table, remounted, unmounted, not in the \
                 table, or removed entirely",
            )
            .required()
            .choices(&[
                "absent",
                "absent_from_fstab",
                "mounted",
                "present",
                "unmounted",
                "remounted",
                "ephemeral",
            ]),
            Argument::new("fstab", ArgumentKind::Str, "The table (default /etc/fstab)"),
            Argument::new("boot", ArgumentKind::Bool, "Whether to mount it at boot").default("true"),
            Argument::new("backup", ArgumentKind::Bool, "Whether to keep a backup of the old table").default("false"),
        ],
        free_form: None,
        example: r#"
- name: Mount the data disk, now and at boot
  ansible.posix.mount:
    src: UUID=b3e48f45-f933-4c8e-a700-22a159ec9077
    path: /var/lib/etcd
    fstype: ext4
    opts: noatime
    passno: "2"
    state: mounted

- name: Do not use swap after the next boot
  ansible.posix.mount:
    path: none
    src: /dev/sda2
    fstype: swap
    state: absent_from_fstab
"#,
        returns: &[
            Return::new("name", "Where it is mounted"),
            Return::new("src", "The mounted source"),
            Return::new("fstype", "Its type"),
            Return::new("opts", "The options"),
            Return::new("dump", "The fifth field of the table"),
            Return::new("passno", "The sixth field"),
            Return::new("boot", "Whether to mount it at boot: yes or no"),
            Return::new("fstab", "The table"),
            Return::new("backup_file", "The path of the table's backup, or empty"),
        ],
    };
    type Change = MountChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<MountChange>, Error> {
        let entry = self.entry(probe).await?;
        let outcome = self.outcome(&entry);
        let mounts = mounts(probe).await?;
        let mounted = match self.state {
            State::Present | State::AbsentFromFstab | State::Remounted => None,
            _ => mounted_at(probe, &mounts, &entry.path).await?,
        };
        let (mut change, mut diff) = (MountChange::default(), Vec::new());
        if !matches!(self.state, State::Unmounted | State::Remounted | State::Ephemeral) {
            (change, diff) = self.table(probe, here, &entry).await?;
        }
        let edits = change.fstab.is_some();
        change.act = match self.state {
            State::Present | State::AbsentFromFstab => None,
            State::Unmounted => mounted.map(|_| MountAction::Unmount),
            State::Absent => edits.then_some(MountAction::Clear { mounted: mounted.is_some() }),
            State::Remounted => Some(MountAction::Remount),
            State::Mounted | State::Ephemeral if mounted.is_none() => Some(MountAction::Mount),
            State::Mounted if !edits => None,
            State::Mounted => match self.has_other_source(probe, &entry).await? {
                true => Some(MountAction::Replace),
                false => Some(MountAction::Remount),
            },
            State::Ephemeral => {
                let src = self.src.as_deref().unwrap_or_default();
                if !mounted.is_some_and(|mount| mount.sources(&mounts).any(|source| source == src)) {
                    return Err(Error::Failed {
                        message: format!("something other than {src} is mounted at {}", entry.path),
                        hint: Some("unmount it with an earlier task: state: unmounted".to_owned()),
                    });
                }
                Some(MountAction::Remount)
            }
        };
        // What is there may be a file, over which another one is bound.
        if change.act == Some(MountAction::Mount) && probe.stat(&entry.path, Links::Follow).await?.is_none() {
            change.make = file_write::missing_directories(probe, &entry.path).await?;
        }
        if !edits && change.act.is_none() {
            return Ok(Plan::Unchanged(outcome));
        }
        Ok(Plan::Change { diff, outcome, change })
    }

    async fn apply(&self, change: MountChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let entry = self.entry(remote).await?;
        let mut outcome = self.outcome(&entry);
        for directory in &change.make {
            remote.make_directory(directory, &Attributes::default()).await?;
        }
        // A file system that cannot be unmounted keeps its line, so that it stays visible.
        if let Some(act @ MountAction::Clear { .. }) = change.act {
            self.act(act, &entry, remote).await.map_err(|error| self.veiled(error))?;
        }
        let table = change.fstab.as_ref().map(|write| write.path.clone());
        if let Some(write) = change.fstab
            && let Some(backup) = write.apply_write(remote, here).await?
        {
            outcome = outcome.with("backup_file", backup);
        }
        let Some(act) = change.act.filter(|act| !matches!(act, MountAction::Clear { .. })) else { return Ok(outcome) };
        let Err(error) = self.act(act, &entry, remote).await else { return Ok(outcome) };
        let error = self.veiled(error);
        // A table with an entry that does not work may stop the next boot.
        if let (State::Mounted, Some(table)) = (self.state, table) {
            let restored = match &change.before {
                Some(before) => remote.write(&table, before, &Attributes::default()).await,
                None => remote.remove(&table).await,
            };
            if let Err(lost) = restored {
                return Err(Error::failed(format!("{error}; restoring {table} also failed: {lost}")));
            }
        }
        if matches!(act, MountAction::Replace | MountAction::Remount) {
            self.as_before(&entry, remote)
                .await
                .map_err(|lost| Error::failed(format!("{error}; mounting the old source again also failed: {lost}")))?;
        }
        for directory in change.make.iter().rev() {
            remote.run(&Command::program(["rmdir", "--", directory])).await?;
        }
        Err(error)
    }
}

impl Mount {
    /// An error without the options, if they are secret: `mount` may repeat them.
    fn veiled(&self, error: Error) -> Error {
        match error {
            Error::Failed { message, hint } if self.opts_no_log => {
                let what = message.split(": ").next().unwrap_or_default().to_owned();
                Error::Failed { message: format!("{what} (the reason is hidden by opts_no_log)"), hint }
            }
            error => error,
        }
    }

    /// Mounts again, as the table says, what is not mounted any more: programs would write into the directory beneath.
    async fn as_before(&self, entry: &FstabEntry, remote: &Remote) -> Result<(), Error> {
        if self.state == State::Ephemeral || mounted_at(remote, &mounts(remote).await?, &entry.path).await?.is_some() {
            return Ok(());
        }
        self.mount(entry, remote).await.map_err(|error| self.veiled(error))
    }

    /// The line that the table is to have.
    async fn entry(&self, probe: &Probe) -> Result<FstabEntry, Error> {
        let path = probe.expand_on_host(&self.path).await?;
        let path = if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path };
        let src = match &self.src {
            Some(src) => Some(probe.expand_on_host(src).await?),
            None => None,
        };
        let needs = matches!(self.state, State::Mounted | State::Present | State::Ephemeral);
        if needs && (src.is_none() || self.fstype.is_none()) {
            return Err(Error::failed("mount: src and fstype are required with this state"));
        }
        if table::NOWHERE.contains(&path.as_str()) && src.is_none() {
            return Err(Error::failed(format!("mount: {path:?} has several entries; set src to choose one")));
        }
        let mut opts = self.opts.clone().unwrap_or_else(|| "defaults".to_owned());
        if !self.boot && !opts.split(',').any(|option| option == "noauto") {
            opts.push_str(",noauto");
        }
        let entry = FstabEntry {
            src,
            path,
            fstype: self.fstype.clone(),
            opts,
            dump: self.dump.clone(),
            passno: self.passno.clone(),
        };
        let is_wrong = entry.texts().any(|text| text.is_empty() || text.contains(['\n', '\r', '\t', '\0']));
        match is_wrong {
            true => Err(Error::failed("mount: fields of the table must not be empty or contain newlines or tabs")),
            false => Ok(entry),
        }
    }

    fn outcome(&self, entry: &FstabEntry) -> Outcome {
        let opts = if self.opts_no_log && self.opts.is_some() { HIDDEN.to_owned() } else { hidden(&entry.opts) };
        let mut outcome = Outcome::default()
            .with("name", entry.path.as_str())
            .with("opts", opts)
            .with("dump", entry.dump.as_str())
            .with("passno", entry.passno.as_str())
            .with("boot", if self.boot { "yes" } else { "no" })
            .with("fstab", self.fstab())
            .with("backup_file", "");
        for (name, text) in [("src", &entry.src), ("fstype", &entry.fstype)] {
            if let Some(text) = text {
                outcome = outcome.with(name, text.as_str());
            }
        }
        if self.boot && entry.opts.split(',').any(|option| option == "noauto") {
            outcome = outcome.with("warnings", vec!["Ignore the 'boot' due to 'opts' contains 'noauto'."]);
        }
        outcome
    }

    fn fstab(&self) -> &str {
        self.fstab.as_deref().unwrap_or(FSTAB)
    }

    /// What is to be done to the table.
    async fn table(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        entry: &FstabEntry,
    ) -> Result<(MountChange, Vec<Diff>), Error> {
        let target = Target::read_target(probe, self.fstab()).await?;
        let text = &target.text.characters;
        let entry = entry.adapt(|text| target.text.adapt(text));
        let edited = match self.state {
            State::Absent | State::AbsentFromFstab => table::without(text, &entry),
            _ => table::with_entry(text, &entry),
        };
        if edited == *text {
            return Ok((MountChange::default(), Vec::new()));
        }
        let wanted = DesiredAttributes::default();
        let manner = WriteOptions { wanted: &wanted, backup: self.backup, validate: None, make_directories: true };
        let edit = file_edit::compare_text(probe, here, &target, &edited, &manner).await?;
        let before = target.there.as_ref().map(|_| target.text.encode(text));
        let hide = |diff: Diff| Diff { before: hidden(&diff.before), after: hidden(&diff.after), ..diff };
        let diff = if self.opts_no_log { Vec::new() } else { edit.diff.into_iter().map(hide).collect() };
        Ok((MountChange { fstab: edit.write, before, ..MountChange::default() }, diff))
    }

    /// Whether the table, as it is, has another source for the path: that cannot be remounted.
    async fn has_other_source(&self, probe: &Probe, entry: &FstabEntry) -> Result<bool, Error> {
        let target = Target::read_target(probe, self.fstab()).await?;
        let src = entry.src.as_ref().map(|src| table::escaped(&target.text.adapt(src)));
        Ok(table::source(&target.text.characters, entry).is_some_and(|found| Some(found) != src.as_deref()))
    }

    async fn act(&self, act: MountAction, entry: &FstabEntry, remote: &Remote) -> Result<(), Error> {
        let path = entry.path.as_str();
        match act {
            MountAction::Unmount => run(remote, "unmount", path, &["umount", path]).await,
            MountAction::Clear { mounted } => {
                if mounted {
                    run(remote, "unmount", path, &["umount", path]).await?;
                }
                match remote.stat(path, Links::Keep).await? {
                    Some(_) => run(remote, "remove", path, &["rmdir", "--", path]).await,
                    None => Ok(()),
                }
            }
            MountAction::Mount => self.mount(entry, remote).await,
            MountAction::Replace => {
                run(remote, "unmount", path, &["umount", path]).await?;
                self.mount(entry, remote).await
            }
            MountAction::Remount => self.remount(entry, remote).await,
        }
    }

    async fn mount(&self, entry: &FstabEntry, remote: &Remote) -> Result<(), Error> {
        let words = match self.state {
            State::Ephemeral => self.ephemeral(entry),
            _ => self.other_table(),
        };
        let argv: Vec<&str> = ["mount"].into_iter().chain(words).chain([entry.path.as_str()]).collect();
        run(remote, "mount", &entry.path, &argv).await
    }

    /// With the options of the task or the table; where that does not work, off and on again.
    async fn remount(&self, entry: &FstabEntry, remote: &Remote) -> Result<(), Error> {
        let own = self.state == State::Remounted && entry.opts != "defaults";
        let options = if own { format!("remount,{}", entry.opts) } else { "remount".to_owned() };
        let words = match self.state {
            State::Ephemeral => self.ephemeral(entry),
            _ => self.other_table(),
        };
        let path = entry.path.as_str();
        let argv: Vec<&str> = ["mount", "-o", &options].into_iter().chain(words).chain([path]).collect();
        match run(remote, "remount", path, &argv).await {
            Err(Error::Failed { .. }) if !own => {
                run(remote, "unmount", path, &["umount", path]).await?;
                self.mount(entry, remote).await
            }
            done => done,
        }
    }

    /// The arguments of `mount` for a table other than the default one.
    fn other_table(&self) -> Vec<&str> {
        match self.fstab() {
            FSTAB => Vec::new(),
            other => vec!["-T", other],
        }
    }

    /// The arguments of `mount` that replace a table's line.
    fn ephemeral<'a>(&'a self, entry: &'a FstabEntry) -> Vec<&'a str> {
        let mut words = vec!["-t", self.fstype.as_deref().unwrap_or("auto")];
        if entry.opts != "defaults" {
            words.extend(["-o", entry.opts.as_str()]);
        }
        words.extend(entry.src.as_deref());
        words
    }
}

async fn mounts(probe: &Probe) -> Result<Vec<Mounted>, Error> {
    let text = probe.read_file("/proc/self/mountinfo").await?.unwrap_or_default();
    Ok(Mounted::parse_mounts(&String::from_utf8_lossy(&text)))
}

/// What is mounted at a path last. The kernel names mount points without symbolic links.
async fn mounted_at<'a>(probe: &Probe, mounts: &'a [Mounted], path: &str) -> Result<Option<&'a Mounted>, Error> {
    let at = |path: &str| mounts.iter().rfind(|mount| mount.path == path);
    let found = at(path);
    if found.is_some() || probe.stat(path, Links::Follow).await?.is_none() {
        return Ok(found);
    }
    Ok(at(&host_links::real_path(probe, path).await?))
}

/// A table without the passwords that options may have.
fn hidden(table: &str) -> String {
    static PASSWORD: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?i)(pass[a-z0-9]*=)[^,\s]+").expect("it is an expression"));
    PASSWORD.replace_all(table, "${1}***").into_owned()
}

async fn run(remote: &Remote, what: &str, path: &str, argv: &[&str]) -> Result<(), Error> {
    let Output { code, stdout, stderr } = remote.run(&Command::program(argv.iter().copied())).await?;
    if code == 0 {
        return Ok(());
    }
    let words = [stdout, stderr].concat();
    let words = String::from_utf8_lossy(&words);
    let words = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    Err(Error::failed(format!("cannot {what} {path}: {words}")))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};

    const TABLE: &str =
        "# the disks\nUUID=1 / ext4 errors=remount-ro 0 1\n/dev/sdb1 /data xfs noatime # mine\nodd line\n";

    #[tokio::test]
    async fn a_line_of_the_table_comes_changes_and_goes_and_all_others_stay() {
        let bench = Bench::new().await;
        bench.on_host("fstab", TABLE);
        let common = "path: /no/such/a b, src: /dev/sdc1, fstype: ext4, fstab: HOST/fstab";
        let task = format!("mount: {{{common}, state: present}}");
        assert!(bench.check(&task).await.unwrap().changed);
        let done = bench.run_twice(&task).await;
        assert_eq!(bench.text("fstab"), format!("{TABLE}/dev/sdc1 /no/such/a\\040b ext4 defaults 0 0\n"));
        assert_eq!((value(&done.outcome, "opts"), value(&done.outcome, "boot")), ("defaults".into(), "yes".into()));
        let done = bench.run_twice(&format!("mount: {{{common}, state: present, boot: false, backup: true}}")).await;
        assert_eq!(bench.text("fstab"), format!("{TABLE}/dev/sdc1 /no/such/a\\040b ext4 defaults,noauto 0 0\n"));
        assert!(std::path::Path::new(&value(&done.outcome, "backup_file")).exists());
        assert!(bench.run_twice(&format!("mount: {{{common}, state: absent_from_fstab}}")).await.changed);
        assert_eq!(bench.text("fstab"), TABLE);
        bench.close().await;
    }

    #[tokio::test]
    async fn what_cannot_be_mounted_leaves_nothing_behind() {
        let bench = Bench::new().await;
        bench.on_host("fstab", TABLE);
        let task = "mount: {path: HOST/new/place, src: /no/such, fstype: nosuch, state: mounted, fstab: HOST/fstab}";
        assert!(bench.check(task).await.unwrap().changed);
        let reported = bench.failure(task).await;
        assert!(reported.starts_with("cannot mount "), "{reported}");
        assert_eq!(bench.text("fstab"), TABLE);
        assert!(!bench.host("new").exists());
        bench.failure(&task.replace("HOST/fstab", "HOST/none")).await;
        assert!(!bench.host("none").exists());
        bench.close().await;
    }

    #[tokio::test]
    async fn a_mount_is_found_by_every_path_that_leads_to_it() {
        let bench = Bench::new().await;
        std::os::unix::fs::symlink("/", bench.host("root")).unwrap();
        for path in ["HOST/root/proc", "//proc"] {
            let line = bench.host("root/proc").display().to_string();
            let line = if path == "//proc" { path } else { &line };
            bench.on_host("fstab", format!("proc {line} proc defaults 0 0\n"));
            let task = format!("mount: {{path: {path}, src: proc, fstype: proc, state: mounted, fstab: HOST/fstab}}");
            assert!(!bench.check(&task).await.unwrap().changed, "{path} is mounted");
            let unmounted = bench.check(&format!("mount: {{path: {path}, state: unmounted}}")).await.unwrap();
            assert!(unmounted.changed, "{path} is mounted");
        }
        bench.close().await;
    }

    #[tokio::test]
    async fn a_diff_of_the_table_shows_no_passwords() {
        let bench = Bench::new().await;
        bench.on_host("fstab", "//s/x /x cifs user=u,password=pw1,ro 0 0\n");
        let done = bench.run("mount: {path: /y, src: /dev/y, fstype: ext4, state: present, fstab: HOST/fstab}").await;
        let diff = format!("{:?}", done.unwrap().diff);
        assert!(diff.contains("password=***,ro") && !diff.contains("pw1"), "{diff}");
        bench.close().await;
    }

    #[tokio::test]
    async fn what_is_wrong_is_reported_and_secret_options_are_not() {
        let bench = Bench::new().await;
        let reported = bench.failure("mount: {path: /x, state: present, fstab: HOST/f}").await;
        assert_eq!(reported, "mount: src and fstype are required with this state");
        let reported =
            bench.failure("mount: {path: /x, src: \"a\\nb\", fstype: x, state: present, fstab: HOST/f}").await;
        assert!(reported.contains("newlines"), "{reported}");
        let reported = bench.failure("mount: {path: /proc, src: /other, fstype: x, state: ephemeral}").await;
        assert_eq!(reported, "something other than /other is mounted at /proc");
        let secret = "path: /x, src: //s/x, fstype: cifs, opts: 'password=pw', opts_no_log: true";
        let done = bench.run(&format!("mount: {{{secret}, state: present, fstab: HOST/f}}")).await.unwrap();
        assert!(done.diff.is_empty() && !value(&done.outcome, "opts").contains("pw"));
        assert!(bench.text("f").contains("password=pw"));
        let shown = "path: /y, src: //s/y, fstype: cifs, opts: 'ro,password=pw,vers=3'";
        let done = bench.run(&format!("mount: {{{shown}, state: present, fstab: HOST/f}}")).await.unwrap();
        assert_eq!(value(&done.outcome, "opts"), "ro,password=***,vers=3");
        bench.close().await;
    }
}
