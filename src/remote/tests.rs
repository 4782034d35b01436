//! Sessions against this very computer, in every kind of shell that a host may have.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::*;
use crate::connection::local::Local;
use crate::connection::{self, Connection, Process, Stream};

/// The kinds of `sh` that hosts have.
pub(super) const SHELLS: [&str; 3] = ["dash", "bash", "busybox"];

/// This computer, with another `sh` in front of its PATH.
#[derive(Debug)]
pub(super) struct Host {
    local: Local,
    shell: &'static str,
    bin: tempfile::TempDir,
}

impl Host {
    pub(super) fn new(shell: &'static str) -> Arc<Host> {
        let bin = tempfile::tempdir().unwrap();
        let path = std::fs::read_to_string("/proc/self/mounts").map(|_| format!("/usr/bin/{shell}")).unwrap();
        // Each is called `sh`, and behaves so.
        std::os::unix::fs::symlink(path, bin.path().join("sh")).unwrap();
        std::fs::set_permissions(bin.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Arc::new(Host { local: Local::new("here"), shell, bin })
    }
}

#[async_trait]
impl Connection for Host {
    async fn start(&self, line: &str) -> Result<Process, connection::Error> {
        self.local.start(&format!("PATH={}:$PATH; {line}", self.bin.path().display())).await
    }
    async fn tunnel(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, connection::Error> {
        self.local.tunnel(host, port).await
    }
    fn capacity(&self) -> usize {
        self.local.capacity()
    }
    fn is_closed(&self) -> bool {
        self.local.is_closed()
    }
    fn description(&self) -> String {
        format!("local {}", self.shell)
    }
    async fn close(&self) {
        self.local.close().await;
    }
}

pub(super) async fn remote(shell: &'static str) -> Remote {
    Remote::open(&Sessions::new(Host::new(shell)), None, &IndexMap::new()).await.unwrap()
}

/// A directory, and paths in it as text.
pub(super) struct Place(tempfile::TempDir);

impl Place {
    pub(super) fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
    pub(super) fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
    /// Names in it, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

const ODD: [&str; 8] = ["plain", "two words", "it's", "-rf", "new\nline", "$HOME `id`", "ä€\u{1f600}", "*\\\"?[x]"];

fn shell(line: &str) -> Command {
    Command::shell(line)
}

async fn sh(remote: &Remote, line: &str) -> Output {
    remote.run(&shell(line)).await.unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn a_command_gives_code_and_exact_output() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let got = sh(&remote, "printf 'a\\000b\\n\\n'; printf 'x\\n' >&2; exit 7").await;
        assert_eq!(got, Output { code: 7, stdout: b"a\0b\n\n".to_vec(), stderr: b"x\n".to_vec() }, "{kind}");
        let got = remote.run(&Command::program(["printf", "%s|", "it's", "", "a b", "*", "--"])).await.unwrap();
        assert_eq!(text(&got.stdout), "it's||a b|*|--|", "{kind}");
        assert_eq!(sh(&remote, "true").await, Output::default(), "{kind}");
        assert_eq!(sh(&remote, "kill -9 $$").await.code, 137, "{kind}");
        let missing = remote.run(&Command::program(["no-such-program-x"])).await.unwrap();
        assert_eq!(missing.code, 127, "{kind}");
        assert!(text(&missing.stderr).contains("not found"), "{kind}: {}", text(&missing.stderr));
        assert_eq!(remote.run(&Command::program(["/etc/passwd"])).await.unwrap().code, 126, "{kind}");
    }
}

#[tokio::test]
async fn environment_directory_and_input_reach_the_program() {
    for kind in SHELLS {
        let sessions = Sessions::new(Host::new(kind));
        let environment = IndexMap::from([("A".to_owned(), "task's".to_owned()), ("B".to_owned(), "b".to_owned())]);
        let remote = Remote::open(&sessions, None, &environment).await.unwrap();
        let place = Place::new();
        std::fs::create_dir(place.at("new\nline")).unwrap();
        for input in [&b"in\0put"[..], &vec![7u8; 300_000]] {
            let command = Command {
                environment: IndexMap::from([("B".to_owned(), "B\n".to_owned())]),
                directory: Some(place.at("new\nline")),
                stdin: Some(input.to_vec()),
                ..shell("printf '%s|%s|' \"$A\" \"$B\"; pwd; cat; env | grep -c ^wl_")
            };
            let got = remote.run(&command).await.unwrap();
            let mut expected = format!("task's|B\n|{}\n", place.at("new\nline")).into_bytes();
            expected.extend_from_slice(input);
            expected.extend_from_slice(b"0\n");
            assert!(got.stdout == expected, "{kind}");
        }
        assert_eq!(text(&sh(&remote, "echo $B; cat").await.stdout), "b\n", "{kind}");
        let nowhere = Command { directory: Some("/no/such".into()), ..shell("true") };
        let error = remote.run(&nowhere).await.unwrap_err().to_string();
        assert!(error.starts_with("cannot change to the directory /no/such: "), "{kind}: {error}");
        assert_eq!(sh(&remote, "echo still here").await.stdout, b"still here\n");
    }
}

#[tokio::test]
async fn what_runs_on_in_the_background_disturbs_nobody() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let got = sh(&remote, "(sleep 0.3; echo late; echo late >&2) & echo now").await;
        assert_eq!(text(&got.stdout), "now\n", "{kind}");
        for _ in 0..5 {
            assert_eq!(text(&sh(&remote, "sleep 0.1; echo mine").await.stdout), "mine\n", "{kind}");
        }
    }
}

#[tokio::test]
async fn large_output_comes_whole() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let got = sh(&remote, "head -c 5000000 /dev/zero; head -c 3000000 /dev/zero >&2").await;
        assert_eq!((got.stdout.len(), got.stderr.len()), (5_000_000, 3_000_000), "{kind}");
        assert_eq!(sh(&remote, "echo x").await.stdout, b"x\n");
    }
}

fn alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn gone(pid: &str) -> bool {
    for _ in 0..100 {
        if !alive(pid) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}

async fn pids(file: &str) -> Vec<String> {
    for _ in 0..100 {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if text.lines().count() == 2 {
            return text.lines().map(str::to_owned).collect();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the program did not start");
}

#[tokio::test]
async fn a_time_limit_ends_the_program_and_its_children() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let line = format!(
            "trap '' TERM; sleep 300 & echo $! $$ | tr ' ' '\\n' >{}; while :; do wait; sleep 1; done",
            place.at("pids")
        );
        let command = Command { limit: Some(Duration::from_millis(300)), ..shell(&line) };
        let error = remote.run(&command).await.unwrap_err();
        assert_eq!(error.to_string(), "the shell command did not end within 300ms", "{kind}");
        for pid in pids(&place.at("pids")).await {
            assert!(gone(&pid).await, "{kind}");
        }
        assert_eq!(sh(&remote, "echo again").await.stdout, b"again\n", "{kind}");
    }
}

#[tokio::test]
async fn a_cancelled_command_is_ended_and_its_session_not_used_again() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let line = format!("sleep 300 & echo $! $$ | tr ' ' '\\n' >{}; wait", place.at("pids"));
        let command = shell(&line);
        let file = place.at("pids");
        let pids = tokio::select! {
            _ = remote.run(&command) => panic!("it ended"),
            pids = pids(&file) => pids,
        };
        assert_eq!(sh(&remote, "echo mine").await.stdout, b"mine\n", "{kind}");
        for pid in pids {
            assert!(gone(&pid).await, "{kind}");
        }
    }
}

#[tokio::test]
async fn an_interrupt_is_not_ignored_by_programs() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        assert_eq!(sh(&remote, "kill -INT $$; echo ignored").await.code, 130, "{kind}");
    }
}

#[tokio::test]
async fn many_commands_share_few_sessions() {
    for kind in SHELLS {
        let remote = Arc::new(remote(kind).await);
        let each =
            (0..64).map(|i| {
                let remote = remote.clone();
                async move {
                    text(&sh(&remote, &format!("sleep 0.02; echo {i}")).await.stdout).to_owned() == format!("{i}\n")
                }
            });
        assert!(futures::future::join_all(each).await.into_iter().all(|good| good), "{kind}");
    }
}

#[tokio::test]
async fn odd_names_come_through() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        assert_eq!(remote.list(&place.at("")).await.unwrap(), Some(vec![]), "{kind}");
        for name in ODD {
            let path = place.at(name);
            assert_eq!(remote.stat(&path, Links::Follow).await.unwrap(), None, "{kind} {name:?}");
            remote.write(&path, name.as_bytes(), &Attributes::default()).await.unwrap();
            assert_eq!(remote.read(&path).await.unwrap().unwrap(), name.as_bytes(), "{kind} {name:?}");
            let (stat, digest) = remote.stat_and_digest(&path, Links::Keep, Digest::Sha1).await.unwrap().unwrap();
            assert_eq!((stat.size, stat.kind), (name.len() as u64, FileKind::File), "{kind} {name:?}");
            assert_eq!(digest, remote.digest(&path, Digest::Sha1).await.unwrap(), "{kind} {name:?}");
            let link = place.at(&format!("{name} link"));
            remote.symlink(name, &link).await.unwrap();
            let stat = remote.stat(&link, Links::Keep).await.unwrap().unwrap();
            assert_eq!((stat.kind, stat.link_target.as_deref()), (FileKind::Link, Some(name)), "{kind}");
        }
        let listed = remote.list(&place.at("")).await.unwrap().unwrap();
        assert_eq!(listed, place.names(), "{kind}");
        for name in ODD {
            remote.remove(&place.at(name)).await.unwrap();
            remote.remove(&place.at(&format!("{name} link"))).await.unwrap();
        }
        assert!(place.names().is_empty(), "{kind}: {:?}", place.names());
    }
}

#[tokio::test]
async fn a_stat_tells_what_the_kernel_knows() {
    use std::os::unix::fs::MetadataExt;
    let remote = remote("dash").await;
    let path = remote.stat("/dev/null", Links::Keep).await.unwrap().unwrap();
    assert_eq!(path.kind, FileKind::Character);
    let place = Place::new();
    std::fs::write(place.at("f"), "12345").unwrap();
    std::fs::set_permissions(place.at("f"), std::fs::Permissions::from_mode(0o4751)).unwrap();
    let (stat, real) =
        (remote.stat(&place.at("f"), Links::Keep).await.unwrap().unwrap(), std::fs::metadata(place.at("f")).unwrap());
    assert_eq!((stat.mode, stat.inode, stat.device, stat.links), (0o4751, real.ino(), real.dev(), 1));
    assert_eq!((stat.uid, stat.gid, stat.size), (real.uid(), real.gid(), 5));
    let mtime = real.mtime() as f64 + real.mtime_nsec() as f64 / 1e9;
    assert!((stat.mtime - mtime).abs() < 1e-6);
    assert_eq!(remote.stat(&place.at("f/below"), Links::Keep).await.unwrap(), None);
    std::os::unix::fs::symlink("nowhere", place.at("dangling")).unwrap();
    assert_eq!(remote.stat(&place.at("dangling"), Links::Follow).await.unwrap(), None);
}

#[tokio::test]
async fn reading_what_is_no_file_does_not_hang() {
    let remote = remote("dash").await;
    let place = Place::new();
    assert_eq!(remote.read(&place.at("none")).await.unwrap(), None);
    assert_eq!(remote.digest(&place.at("none"), Digest::Md5).await.unwrap(), None);
    assert_eq!(remote.list(&place.at("none")).await.unwrap(), None);
    sh(&remote, &format!("mkfifo {}", place.at("pipe"))).await;
    let error = remote.read(&place.at("pipe")).await.unwrap_err().to_string();
    assert_eq!(error, format!("cannot read {}: Is a named pipe", place.at("pipe")));
    let error = remote.read(&place.at("")).await.unwrap_err().to_string();
    assert!(error.ends_with(": Is a directory"), "{error}");
}

#[tokio::test]
async fn a_written_file_keeps_owner_and_mode_unless_told() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let path = place.at("f");
        for (content, size) in [(vec![0, 1, 2, b'\'', b'%', b'\\', 255], 7), (vec![b'x'; 100_000], 100_000)] {
            let _ = std::fs::remove_file(&path);
            remote.write(&path, &content, &Attributes::default()).await.unwrap();
            let stat = remote.stat(&path, Links::Keep).await.unwrap().unwrap();
            assert_eq!((stat.mode, stat.size), (0o644, size), "{kind}");
            assert!(std::fs::read(&path).unwrap() == content, "{kind}");
            let attributes = Attributes { owner: Some("daemon".into()), group: None, mode: Some(0o4710) };
            remote.write(&path, &content, &attributes).await.unwrap();
            remote.write(&path, b"new", &Attributes::default()).await.unwrap();
            let stat = remote.stat(&path, Links::Keep).await.unwrap().unwrap();
            assert_eq!((stat.user.as_str(), stat.mode, stat.size), ("daemon", 0o4710, 3), "{kind}");
        }
        assert_eq!(place.names(), ["f"], "{kind}");
    }
}

#[tokio::test]
async fn a_write_that_cannot_be_leaves_nothing() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let large = vec![1u8; 100_000];
        std::fs::create_dir(place.at("d")).unwrap();
        std::os::unix::fs::symlink("d", place.at("link")).unwrap();
        for content in [&b"x"[..], &large] {
            let error = remote.write(&place.at("d"), content, &Attributes::default()).await.unwrap_err();
            assert_eq!(error.to_string(), format!("cannot write {}: Is a directory", place.at("d")), "{kind}");
            let error = remote.write(&place.at("no/f"), content, &Attributes::default()).await.unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("cannot write {}: No such file or directory", place.at("no/f")),
                "{kind}"
            );
            let nobody = Attributes { owner: Some("no-such-user".into()), ..Attributes::default() };
            let error = remote.write(&place.at("f"), content, &nobody).await.unwrap_err().to_string();
            assert!(error.contains("user"), "{kind}: {error}");
            let error = remote.write("/proc/f", content, &Attributes::default()).await.unwrap_err().to_string();
            assert!(error.starts_with("cannot write /proc/f: "), "{kind}: {error}");
        }
        // A link is replaced, not written through.
        remote.write(&place.at("link"), b"x", &Attributes::default()).await.unwrap();
        assert!(std::fs::symlink_metadata(place.at("link")).unwrap().is_file(), "{kind}");
        assert_eq!(place.names(), ["d", "link"], "{kind}");
        assert_eq!(std::fs::read_dir(place.at("d")).unwrap().count(), 0, "{kind}");
        assert_eq!(sh(&remote, "echo still").await.stdout, b"still\n", "{kind}");
    }
}

/// A small file system of its own, unmounted at the end.
struct Disk(PathBuf);

impl Disk {
    fn new(path: &str) -> Disk {
        let done = std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "none", path]).status();
        assert!(done.unwrap().success(), "these tests need root");
        Disk(path.into())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_disk_leaves_the_old_file() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        std::fs::create_dir(place.at("disk")).unwrap();
        let disk = Disk::new(&place.at("disk"));
        let path = place.at("disk/f");
        remote.write(&path, b"old", &Attributes::default()).await.unwrap();
        sh(&remote, &format!("head -c 50000 /dev/zero >{}", place.at("disk/fill"))).await;
        let from = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(from.path(), vec![b'\n'; 3_000_000]).unwrap();
        // busybox says no more.
        let reason = if kind == "busybox" { "I/O error" } else { "No space left on device" };
        let full = format!("cannot write {path}: {reason}");
        let mut errors = Vec::new();
        for size in [12_000, 100_000, 3_000_000] {
            errors.push(
                remote.write(&path, &vec![b'\n'; size], &Attributes::default()).await.map_err(|it| it.to_string()),
            );
        }
        errors.push(remote.upload(from.path(), &path, &Attributes::default()).await.map_err(|it| it.to_string()));
        assert_eq!(errors[1..], vec![Err(full.clone()); 3], "{kind}");
        assert!(errors[0].is_err(), "{kind}: {errors:?}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old", "{kind}");
        for _ in 0..40 {
            if std::fs::read_dir(place.at("disk")).unwrap().count() == 2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let left: Vec<_> = std::fs::read_dir(place.at("disk")).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "{kind}: {left:?}");
        drop(remote);
        drop(disk);
    }
}

#[tokio::test]
async fn an_upload_arrives_whole_and_tells_how_far_it_is() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let from = tempfile::NamedTempFile::new().unwrap();
        let content: Vec<u8> = (0..30_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        std::fs::write(from.path(), &content).unwrap();
        let told = std::sync::Mutex::new(Vec::new());
        let attributes = Attributes { mode: Some(0o755), ..Attributes::default() };
        let progress = |done, total| told.lock().unwrap().push((done, total));
        remote.upload_with(from.path(), &place.at("f"), &attributes, &progress).await.unwrap();
        assert!(std::fs::read(place.at("f")).unwrap() == content, "{kind}");
        assert_eq!(told.lock().unwrap().last(), Some(&(30_000_000, 30_000_000)), "{kind}");
        remote.download(&place.at("f"), &place.path().join("back")).await.unwrap();
        assert!(std::fs::read(place.at("back")).unwrap() == content, "{kind}");
        assert_eq!(place.names(), ["back", "f"], "{kind}");
    }
}

#[tokio::test]
async fn validation_decides_whether_a_file_is_replaced() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let path = place.at("a file");
        let attributes = Attributes { mode: Some(0o600), ..Attributes::default() };
        remote.write_validated(&path, b"good\n", &attributes, "grep -q good %s").await.unwrap();
        let error =
            remote.write_validated(&path, b"bad\n", &attributes, "sh -c 'cat %s >&2; exit 3'").await.unwrap_err();
        assert!(error.to_string().ends_with(": code 3: bad"), "{kind}: {error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"good\n", "{kind}");
        assert!(remote.write_validated(&path, b"x", &attributes, "true").await.is_err(), "{kind}");
        assert_eq!(place.names(), ["a file"], "{kind}");
    }
}

#[tokio::test]
async fn a_cancelled_upload_leaves_nothing() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let from = tempfile::NamedTempFile::new().unwrap();
        // Lines that would do harm if they were taken for requests.
        let line = format!("touch {}\n", place.at("harm"));
        std::fs::write(from.path(), line.repeat(20_000_000 / line.len())).unwrap();
        let half = tokio::sync::Notify::new();
        let progress = |done, _| {
            if done > 2_000_000 {
                half.notify_one()
            }
        };
        let path = place.at("f");
        let attributes = Attributes::default();
        tokio::select! {
            biased;
            () = half.notified() => {}
            _ = remote.upload_with(from.path(), &path, &attributes, &progress) => panic!("it ended"),
        }
        for _ in 0..100 {
            if place.names().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(place.names(), [""; 0], "{kind}");
    }
}

#[tokio::test]
async fn directories_are_made_with_their_parents_and_attributes() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let attributes = Attributes { owner: Some("daemon".into()), group: Some("1".into()), mode: Some(0o2750) };
        remote.make_directory(&place.at("a b/c/d/"), &attributes).await.unwrap();
        for name in ["a b", "a b/c", "a b/c/d"] {
            let stat = remote.stat(&place.at(name), Links::Keep).await.unwrap().unwrap();
            assert_eq!((stat.user.as_str(), stat.gid, stat.mode), ("daemon", 1, 0o2750), "{kind} {name}");
        }
        let plain = Attributes { mode: Some(0o700), ..Attributes::default() };
        remote.set_attributes(&place.at("a b/c"), &plain, Links::Follow).await.unwrap();
        let stat = remote.stat(&place.at("a b/c"), Links::Keep).await.unwrap().unwrap();
        assert_eq!(stat.mode, 0o700, "{kind}");
        std::fs::write(place.at("f"), "").unwrap();
        let error = remote.make_directory(&place.at("f/x"), &Attributes::default()).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot make the directory {}: ", place.at("f/x"))), "{kind}: {error}");
    }
}

#[tokio::test]
async fn a_backup_is_a_copy_aside() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        std::fs::write(place.at("it's"), "x").unwrap();
        std::fs::set_permissions(place.at("it's"), std::fs::Permissions::from_mode(0o640)).unwrap();
        let (one, two) =
            (remote.back_up(&place.at("it's")).await.unwrap(), remote.back_up(&place.at("it's")).await.unwrap());
        assert_ne!(one, two, "{kind}");
        assert_eq!(std::fs::metadata(&one).unwrap().permissions().mode() & 0o7777, 0o640, "{kind}");
        let name = one.strip_prefix(&place.at("it's")).unwrap();
        let form = regex::Regex::new(r"^\.\d+\.\d{4}-\d\d-\d\d@\d\d:\d\d:\d\d~$").unwrap();
        assert!(form.is_match(name), "{kind}: {name}");
    }
}

#[tokio::test]
async fn small_questions_are_answered() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        assert_eq!(remote.user(), "root", "{kind}");
        assert_eq!(remote.which("mount").await.unwrap(), remote.which("/usr/bin/mount").await.unwrap(), "{kind}");
        assert_eq!(remote.which("no such").await.unwrap(), None, "{kind}");
        assert_eq!(remote.which("cd").await.unwrap(), None, "{kind}");
        let home = std::env::var("HOME").unwrap();
        assert_eq!(remote.expand("~/x y").await.unwrap(), format!("{home}/x y"), "{kind}");
        assert_eq!(remote.expand("~daemon/x").await.unwrap(), "/usr/sbin/x", "{kind}");
        assert_eq!(remote.expand("~no-such-user/x").await.unwrap(), "~no-such-user/x", "{kind}");
        assert_eq!(remote.expand("/a/~").await.unwrap(), "/a/~", "{kind}");
    }
}

#[tokio::test]
async fn nothing_is_left_after_the_end() {
    for kind in SHELLS {
        let sessions = Sessions::new(Host::new(kind));
        let remote = Remote::open(&sessions, None, &IndexMap::new()).await.unwrap();
        let own = remote.session().await.unwrap().ask("printf %s \"$wl_d\"").await.unwrap();
        let own = text(&own.stdout).to_owned();
        let temporary = remote.temporary_directory().await.unwrap();
        assert!(Path::new(&own).is_dir() && Path::new(&temporary).is_dir(), "{kind}");
        assert_eq!(std::fs::metadata(&temporary).unwrap().permissions().mode() & 0o777, 0o700, "{kind}");
        sh(&remote, "echo x").await;
        sessions.close().await;
        assert!(!Path::new(&own).exists() && !Path::new(&temporary).exists(), "{kind}");
        assert!(remote.run(&shell("true")).await.is_err(), "{kind}");
    }
}

#[tokio::test]
async fn a_killed_session_is_an_error_once() {
    let remote = remote("dash").await;
    let error = sh_error(&remote, "kill -9 $PPID").await;
    assert!(error.contains("was lost"), "{error}");
    assert_eq!(sh(&remote, "echo new").await.stdout, b"new\n");
    // One that died while idle is not noticed by anyone.
    let pid = sh(&remote, "echo $PPID").await.stdout;
    std::process::Command::new("kill").args(["-9", text(&pid).trim()]).status().unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(sh(&remote, "echo newer").await.stdout, b"newer\n");
}

async fn sh_error(remote: &Remote, line: &str) -> String {
    remote.run(&shell(line)).await.unwrap_err().to_string()
}
