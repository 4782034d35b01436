//! To the host: a few large requests, each a tar archive with a script in it that moves the files into place. What a
//! request stores meanwhile is in one directory at the destination, which it removes at the end, even if the connection is lost.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::compare::{Action, SyncPlan, SyncStep};
use super::tree::TreeEntryKind;
use crate::modules::execution::quote;
use crate::modules::{Controller, Error, Progress};
use crate::remote::{Attributes, Command, ExpectedDigest, Remote};

/// A larger file is sent separately.
const LARGE: u64 = 2 << 20;
/// Content of one request, in bytes.
const BATCH: u64 = 6 << 20;
/// Names in one command of the script.
const NAMES: usize = 200;

/// 1 the directory for what comes, 2 an option of tar for times, 3 the time that the destination is to have, if any. In
/// the directory are `t`, the files, and `script`. The owner of the destination may rename the directory and put another one in its place,
/// so it is entered, checked, and then only used from inside: it must be new, on the same file system, in the destination, and this user's
/// alone, unless the destination is. An old `sync` has no -f: one that has it refuses what is not there.
const UNPACK: &str = r#"
top=$(stat -c %d:%i .) || exit
mkdir -m 700 "./$1" && cd -P "./$1" || exit
is_own() {
[ "$(stat -c %d .)" = "${top%%:*}" ] && [ "$(stat -c %d:%i ..)" = "$top" ] && [ -z "$(ls -A)" ] || return
if [ -O .. ]; then
case $(stat -c %a ..) in
*[2367]? | *[2367]) ;;
*) return 0 ;;
esac
fi
[ -O . ] || return
case $(stat -c %a .) in
700 | 2700) ;;
*) return 1 ;;
esac
}
is_own || {
cd -P .. && rmdir "./$1" 2>/dev/null
echo "the directory $1 is not this user's alone: another user exchanged it, or its file system keeps no owners and modes" >&2
exit 1
}
! [ -g .. ] || chmod g+s . || exit
umask 077
trap 'rm -rf ./t ./script; cd -P .. && rmdir "./$1"' 0
trap 'exit 1' 1 2 13 15
tar -x -p -o $2 -f - || exit
sh ./script || exit
if sync -f /proc/none/none 2>&1 | grep -q none; then sync -f .; else sync; fi || exit
trap - 0
rm -rf ./t ./script
cd -P .. && rmdir "./$1" || exit
if [ "$3" ]; then touch -c -d "@$3" .; fi
"#;

/// Where the destination is, and the directory of a request, for its script.
const DESTINATION: &str = "..";
const STAGE: &str = ".";

/// Files of the controller on their way to a directory of the host.
pub(crate) struct Push {
    /// Where the paths are on the controller: below this, or this itself if only one file is sent.
    pub from: PathBuf,
    pub is_single: bool,
    /// The directory of the host that the paths are below.
    pub root: String,
    pub difference: SyncPlan,
}

impl Push {
    pub(crate) async fn apply_push(self, remote: &Remote, here: &Controller<'_>) -> Result<(), Error> {
        let sent = || self.difference.steps.iter().filter(|step| step.action == Action::Send);
        let total: u64 = sent().filter(|step| step.what == TreeEntryKind::File).map(|step| step.size).sum();
        let host = here.scope.get("inventory_hostname").map(ToString::to_string).unwrap_or_default();
        let what = format!("{} → {host}", self.from.file_name().unwrap_or_default().to_string_lossy());
        let mut done = 0;
        let tell = |done| (here.progress)(Progress { what: what.clone(), done, total });
        let mut request = Request::new();
        request.prepare(&self.difference);
        let (small, large): (Vec<&SyncStep>, Vec<&SyncStep>) =
            sent().partition(|step| step.what != TreeEntryKind::File || step.size <= LARGE);
        for step in small {
            request.add(step, &self.local(&step.path)).await?;
            if request.bytes >= BATCH {
                done += request.bytes;
                std::mem::replace(&mut request, Request::new()).send(remote, &self.root).await?;
                tell(done);
            }
        }
        if !large.is_empty() {
            done += request.bytes;
            std::mem::replace(&mut request, Request::new()).send(remote, &self.root).await?;
        }
        for step in &large {
            let (user, group) = step.owner.map_or((None, None), |(user, group)| (Some(user), Some(group)));
            let attributes = Attributes {
                owner: user.map(|id| id.to_string()),
                group: group.map(|id| id.to_string()),
                mode: Some(step.mode),
            };
            let path = crate::modules::host_path::join_path(&self.root, &step.path);
            let progress = |sent, _| tell(done + sent);
            let local = self.local(&step.path);
            let digests = here.caches.digests.of_file(&local).await?;
            remote.upload(&local, ExpectedDigest::Sha1(&digests.sha1), &path, &attributes, &progress).await?;
            done += step.size;
        }
        request.finish(&self.difference, &large);
        request.send(remote, &self.root).await?;
        tell(total);
        Ok(())
    }

    fn local(&self, path: &str) -> PathBuf {
        if self.is_single { self.from.clone() } else { self.from.join(path) }
    }
}

/// One request in the making.
struct Request {
    stage: String,
    archive: tar::Builder<Vec<u8>>,
    script: String,
    bytes: u64,
    /// By directory: what is moved there.
    moved: BTreeMap<String, Vec<String>>,
    owned: BTreeMap<(u32, u32), Vec<String>>,
    /// Bits that a change of the owner clears.
    special: BTreeMap<u32, Vec<String>>,
    times_matter: bool,
    /// Of the destination itself: set last.
    root_time: Option<i64>,
    is_empty: bool,
}

impl Request {
    fn new() -> Request {
        Request {
            stage: format!(".windlass.{:016x}", rand::random::<u64>()),
            archive: tar::Builder::new(Vec::new()),
            script: "set -e\n".to_owned(),
            bytes: 0,
            moved: BTreeMap::new(),
            owned: BTreeMap::new(),
            special: BTreeMap::new(),
            times_matter: true,
            root_time: None,
            is_empty: true,
        }
    }

    /// Adds a line for each few of the paths below `top`; none for none.
    fn each<'a>(&mut self, command: &str, top: &str, paths: impl IntoIterator<Item = &'a String>, end: &str) {
        let paths: Vec<String> = paths.into_iter().map(|path| quote(&format!("{top}/{path}"))).collect();
        for paths in paths.chunks(NAMES) {
            writeln!(self.script, "{command} {}{end}", paths.join(" ")).expect("a String takes any text");
            self.is_empty = false;
        }
    }

    /// What must be done before anything is put in place.
    fn prepare(&mut self, difference: &SyncPlan) {
        self.each("rm -rf", DESTINATION, &difference.first_removed, "");
        let new = difference.steps.iter().filter(|step| step.action == Action::MakeDirectory);
        let new: Vec<&String> = new.map(|step| &step.path).filter(|path| !path.is_empty()).collect();
        self.each("mkdir", DESTINATION, new, "");
    }

    async fn add(&mut self, step: &SyncStep, local: &Path) -> Result<(), Error> {
        let name = format!("t/{}", step.path);
        let mut header = tar::Header::new_gnu();
        header.set_mode(step.mode);
        header.set_mtime(step.mtime.and_then(|time| u64::try_from(time).ok()).unwrap_or_default());
        self.times_matter &= step.mtime.is_some();
        let odd = |error: std::io::Error| Error::failed(format!("cannot send {}: {error}", local.display()));
        match &step.what {
            TreeEntryKind::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_size(0);
                self.archive.append_link(&mut header, &name, target).map_err(odd)?;
            }
            _ => {
                let content = tokio::fs::read(local).await.map_err(odd)?;
                header.set_size(content.len() as u64);
                self.archive.append_data(&mut header, &name, content.as_slice()).map_err(odd)?;
                self.bytes += content.len() as u64;
            }
        }
        let directory = step.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let staged = name;
        if let Some(owner) = step.owner {
            self.owned.entry(owner).or_default().push(staged.clone());
            if step.mode & 0o6000 != 0 && step.what == TreeEntryKind::File {
                self.special.entry(step.mode).or_default().push(staged.clone());
            }
        }
        self.moved.entry(directory.to_owned()).or_default().push(staged);
        Ok(())
    }

    /// What is done when all is in place: removals, then attributes, directories' times last.
    fn finish(&mut self, difference: &SyncPlan, large: &[&SyncStep]) {
        self.put_in_place();
        self.each("rm -rf", DESTINATION, &difference.last_removed, "");
        let set = difference.steps.iter().filter(|step| step.action != Action::Send);
        let set: Vec<&SyncStep> = set.collect();
        let mut owners: BTreeMap<(u32, u32), Vec<&String>> = BTreeMap::new();
        let mut modes: BTreeMap<u32, Vec<&String>> = BTreeMap::new();
        let mut times: BTreeMap<i64, Vec<&String>> = BTreeMap::new();
        for step in &set {
            if let Some(owner) = step.owner {
                owners.entry(owner).or_default().push(&step.path);
            }
            if !matches!(step.what, TreeEntryKind::Link(_)) {
                modes.entry(step.mode).or_default().push(&step.path);
            }
        }
        let files = set.iter().filter(|step| step.what == TreeEntryKind::File).chain(large);
        for (time, step) in files.filter_map(|step| Some((step.mtime?, step))) {
            times.entry(time).or_default().push(&step.path);
        }
        for ((user, group), paths) in owners {
            self.each(&format!("chown -h {user}:{group}"), DESTINATION, paths, "");
        }
        for (mode, paths) in modes {
            // Five digits also clear setgid of a directory.
            self.each(&format!("chmod {mode:05o}"), DESTINATION, paths, "");
        }
        for (time, paths) in times {
            self.each(&format!("touch -c -d @{time}"), DESTINATION, paths, "");
        }
        for (path, time) in &difference.touched {
            match path.is_empty() {
                true => (self.root_time, self.is_empty) = (Some(*time), false),
                false => self.each(&format!("touch -c -d @{time}"), DESTINATION, [path], ""),
            }
        }
    }

    fn put_in_place(&mut self) {
        for ((user, group), paths) in std::mem::take(&mut self.owned) {
            self.each(&format!("chown -h {user}:{group}"), STAGE, &paths, "");
        }
        for (mode, paths) in std::mem::take(&mut self.special) {
            self.each(&format!("chmod {mode:05o}"), STAGE, &paths, "");
        }
        for (directory, paths) in std::mem::take(&mut self.moved) {
            let end = format!(" {}", quote(&format!("{DESTINATION}/{directory}/")));
            self.each("mv -f", STAGE, &paths, &end);
        }
    }

    async fn send(mut self, remote: &Remote, root: &str) -> Result<(), Error> {
        self.put_in_place();
        if self.is_empty {
            return Ok(());
        }
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o600);
        header.set_size(self.script.len() as u64);
        let packed = self.archive.append_data(&mut header, "script", self.script.as_bytes());
        let packed = packed.and_then(|()| self.archive.into_inner());
        let packed = packed.map_err(|error| Error::failed(format!("cannot pack the files for {root}: {error}")))?;
        let times = if self.times_matter { "" } else { "-m" };
        let root_time = self.root_time.map(|time| time.to_string()).unwrap_or_default();
        let command = Command {
            directory: Some(root.to_owned()),
            stdin: Some(packed),
            ..Command::program(["sh", "-c", UNPACK, "sh", &self.stage, times, &root_time])
        };
        let output = remote.run(&command).await?;
        if output.code == 0 {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        Err(Error::failed(format!("cannot synchronize to {root}: {words}")))
    }
}
