//! Files: what is at a path, and writing whole or not at all.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;

const ODD: [&str; 8] = ["plain", "two words", "it's", "-rf", "new\nline", "$HOME `id`", "ä€\u{1f600}", "*\\\"?[x]"];

#[tokio::test]
async fn odd_names_come_through() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        assert_eq!(remote.list_directory(&place.at("")).await.unwrap(), Some(vec![]), "{kind}");
        for name in ODD {
            let path = place.at(name);
            assert_eq!(remote.stat(&path, Links::Follow).await.unwrap(), None, "{kind} {name:?}");
            remote.write(&path, name.as_bytes(), &Attributes::default()).await.unwrap();
            assert_eq!(remote.read_file(&path).await.unwrap().unwrap(), name.as_bytes(), "{kind} {name:?}");
            let (stat, digest) = remote.stat_and_digest(&path, Links::Keep, Digest::Sha1).await.unwrap().unwrap();
            assert_eq!((stat.size, stat.kind), (name.len() as u64, FileKind::File), "{kind} {name:?}");
            assert_eq!(digest, remote.digest(&path, Digest::Sha1).await.unwrap(), "{kind} {name:?}");
            let link = place.at(&format!("{name} link"));
            remote.symlink(name, &link).await.unwrap();
            let stat = remote.stat(&link, Links::Keep).await.unwrap().unwrap();
            assert_eq!((stat.kind, stat.link_target.as_deref()), (FileKind::Link, Some(name)), "{kind}");
        }
        let listed = remote.list_directory(&place.at("")).await.unwrap().unwrap();
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
async fn a_file_never_replaces_a_device_or_a_pipe() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let pipe = place.at("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = remote.write(&pipe, b"x", &Attributes::default()).await.unwrap_err();
        assert!(error.to_string().contains("a pipe, which no file may replace"), "{kind}: {error}");
        let stat = remote.stat(&pipe, Links::Keep).await.unwrap().unwrap();
        assert_eq!((stat.kind, place.names().len()), (FileKind::Fifo, 1), "{kind}");
    }
}

#[tokio::test]
async fn reading_what_is_no_file_does_not_hang() {
    let remote = remote("dash").await;
    let place = Place::new();
    assert_eq!(remote.read_file(&place.at("none")).await.unwrap(), None);
    assert_eq!(remote.digest(&place.at("none"), Digest::Md5).await.unwrap(), None);
    assert_eq!(remote.list_directory(&place.at("none")).await.unwrap(), None);
    sh(&remote, &format!("mkfifo {}", place.at("pipe"))).await;
    let error = remote.read_file(&place.at("pipe")).await.unwrap_err().to_string();
    assert_eq!(error, format!("cannot read {}: Is a named pipe", place.at("pipe")));
    let error = remote.read_file(&place.at("")).await.unwrap_err().to_string();
    assert!(error.ends_with(": Is a directory"), "{error}");
}

#[tokio::test]
#[ignore = "needs root"]
async fn a_written_file_keeps_owner_and_mode_unless_they_are_given() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let path = place.at("f");
        for (content, size) in [(vec![0, 1, 2, b'\'', b'%', b'\\', 255], 7), (vec![b'x'; 100_000], 100_000)] {
            std::fs::remove_file(&path).ok();
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

/// A local user makes links; what they lead to gives the new file neither its owner nor its mode, least of all set-user-ID.
#[tokio::test]
async fn a_file_in_the_place_of_a_link_has_nothing_of_its_target() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        std::fs::write(place.at("program"), "old").unwrap();
        std::fs::set_permissions(place.at("program"), std::fs::Permissions::from_mode(0o4755)).unwrap();
        std::os::unix::fs::symlink("program", place.at("link")).unwrap();
        std::fs::hard_link(place.at("program"), place.at("second")).unwrap();
        let mode = |name: &str| std::fs::symlink_metadata(place.at(name)).unwrap().permissions().mode() & 0o7777;
        for (name, expected) in [("link", 0o644), ("second", 0o755)] {
            remote.write(&place.at(name), b"new", &Attributes::default()).await.unwrap();
            assert_eq!(mode(name), expected, "{kind}: {name}");
        }
        // A program that has one name keeps its mode.
        remote.write(&place.at("program"), b"newer", &Attributes::default()).await.unwrap();
        assert_eq!(mode("program"), 0o4755, "{kind}");
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

/// A separate small file system, unmounted at the end.
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
        std::process::Command::new("umount").arg(&self.0).status().ok();
    }
}

#[tokio::test]
#[ignore = "needs root"]
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
        let full = format!("cannot write {path}: No space left on device");
        let mut errors = Vec::new();
        for size in [12_000, 100_000, 3_000_000] {
            errors.push(
                remote.write(&path, &vec![b'\n'; size], &Attributes::default()).await.map_err(|it| it.to_string()),
            );
        }
        let uploaded = upload(&remote, from.path(), &path, &Attributes::default()).await;
        errors.push(uploaded.map(drop).map_err(|it| it.to_string()));
        assert_eq!(errors, vec![Err(full.clone()); 4], "{kind}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old", "{kind}");
        for _ in 0..1200 {
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
        let reported = crate::value::mutex::Mutex::new(Vec::new());
        let attributes = Attributes { mode: Some(0o755), ..Attributes::default() };
        let progress = |done, total| reported.lock().push((done, total));
        remote
            .upload(from.path(), ExpectedDigest::Sha1(&sha1(&content)), &place.at("f"), &attributes, &progress)
            .await
            .unwrap();
        assert!(std::fs::read(place.at("f")).unwrap() == content, "{kind}");
        assert_eq!(reported.lock().last(), Some(&(30_000_000, 30_000_000)), "{kind}");
        remote.download(&place.at("f"), &place.path().join("back")).await.unwrap();
        assert!(std::fs::read(place.at("back")).unwrap() == content, "{kind}");
        assert_eq!(place.names(), ["back", "f"], "{kind}");
    }
}

#[tokio::test]
async fn a_download_keeps_access_and_links_and_refuses_pipes() {
    let remote = remote("dash").await;
    let place = Place::new();
    std::fs::write(place.at("f"), "new").unwrap();
    std::fs::write(place.at("private"), "old").unwrap();
    std::fs::set_permissions(place.at("private"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("private", place.at("link")).unwrap();
    remote.download(&place.at("f"), &place.path().join("link")).await.unwrap();
    assert_eq!(std::fs::read_to_string(place.at("private")).unwrap(), "new");
    assert_eq!(std::fs::metadata(place.at("private")).unwrap().permissions().mode() & 0o7777, 0o600);
    assert!(place.path().join("link").is_symlink());
    assert!(std::process::Command::new("mkfifo").arg(place.at("pipe")).status().unwrap().success());
    let error = remote.download(&place.at("f"), &place.path().join("pipe")).await.unwrap_err().to_string();
    assert!(error.ends_with("it is not a regular file"), "{error}");
    assert_eq!(place.names(), ["f", "link", "pipe", "private"]);
}

#[tokio::test]
async fn an_upload_that_arrives_damaged_leaves_the_old_file() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        std::fs::write(place.at("f"), "old").unwrap();
        let from = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(from.path(), vec![b'x'; 100_000]).unwrap();
        let (wrong, attributes) = (sha1(b"something else"), Attributes::default());
        let error = remote
            .upload(from.path(), ExpectedDigest::Sha1(&wrong), &place.at("f"), &attributes, &|_, _| ())
            .await
            .unwrap_err();
        let right = sha1(&[b'x'; 100_000]);
        let words = format!("its sha1 is {right} after the upload, not {wrong}");
        assert_eq!(error.to_string(), format!("cannot write {}: {words}", place.at("f")), "{kind}");
        assert_eq!(std::fs::read(place.at("f")).unwrap(), b"old", "{kind}");
        assert_eq!(place.names(), ["f"], "{kind}");
    }
}

#[tokio::test]
async fn what_a_write_tells_is_what_a_look_sees() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        // Without a mode the umask decides; then modes that a new file has at once, and that are set afterwards.
        for (mode, expected) in [(None, 0o644), (Some(0o666), 0o666), (Some(0o640), 0o640), (Some(0o4750), 0o4750)] {
            let (path, attributes) = (place.at("f"), Attributes { mode, ..Attributes::default() });
            std::fs::remove_file(&path).ok();
            for content in [b"x".repeat(5), b"y".repeat(100_000)] {
                let reported = remote.write_and_stat(&path, &content, &attributes).await.unwrap();
                let seen = remote.stat(&path, Links::Keep).await.unwrap().unwrap();
                assert_eq!((reported.mode, reported.size), (expected, content.len() as u64), "{kind}");
                assert_eq!(Stat { ctime: seen.ctime, ..reported }, seen, "{kind}");
            }
        }
        // The programs that tasks run have the login's umask all the same.
        let umask = sh(&remote, "umask").await.stdout;
        assert_eq!(text(&umask).trim_start_matches('0'), "22\n", "{kind}");
    }
}

#[tokio::test]
async fn a_directory_is_distinguished_from_what_is_none() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        std::fs::create_dir(place.at("d")).unwrap();
        std::fs::write(place.at("f"), "").unwrap();
        std::os::unix::fs::symlink("d", place.at("l")).unwrap();
        for (name, expected) in [("d", true), ("l", true), ("f", false), ("none", false)] {
            assert_eq!(remote.is_directory(&place.at(name)).await.unwrap(), expected, "{kind} {name}");
        }
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
            _ = remote.upload(from.path(), ExpectedDigest::Sha1("never compared"), &path, &attributes, &progress) => panic!("it ended"),
        }
        for _ in 0..1200 {
            if place.names().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(place.names(), [""; 0], "{kind}");
    }
}

#[tokio::test]
#[ignore = "needs root"]
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
        assert!(error.starts_with(&format!("cannot create the directory {}: ", place.at("f/x"))), "{kind}: {error}");
    }
}

#[tokio::test]
async fn a_backup_is_a_copy_aside() {
    let form = regex::Regex::new(r"^\.\d+\.\d{4}-\d\d-\d\d@\d\d:\d\d:\d\d~$").unwrap();
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
        assert!(form.is_match(name), "{kind}: {name}");
    }
}

#[tokio::test]
async fn a_small_upload_and_an_empty_one_arrive() {
    let remote = remote("dash").await;
    let place = Place::new();
    for content in [&b"small"[..], b""] {
        std::fs::write(place.at("from"), content).unwrap();
        upload(&remote, &place.path().join("from"), &place.at("to"), &Attributes::default()).await.unwrap();
        assert_eq!(std::fs::read(place.at("to")).unwrap(), content);
    }
    let missing = upload(&remote, &place.path().join("none"), &place.at("to"), &Attributes::default()).await;
    assert!(missing.unwrap_err().to_string().contains("none on the controller: No such file"));
}

#[tokio::test]
async fn an_upload_waits_for_its_turn_and_nothing_else_does() {
    let turns = Arc::new(tokio::sync::Semaphore::new(1));
    let sessions = Sessions::sharing(Host::new("dash"), Some(turns.clone()), None);
    let remote = Remote::open(&sessions, None, &IndexMap::new()).await.unwrap();
    let (place, large) = (Place::new(), vec![b'x'; 100_000]);
    let other = turns.clone().acquire_owned().await.unwrap();
    remote.write(&place.at("small"), b"x", &Attributes::default()).await.unwrap();
    let (path, attributes) = (place.at("large"), Attributes::default());
    let upload = remote.write(&path, &large, &attributes);
    tokio::pin!(upload);
    let early = tokio::time::timeout(std::time::Duration::from_millis(300), &mut upload).await;
    assert!(early.is_err(), "it did not wait");
    assert_eq!(place.names(), ["small"]);
    drop(other);
    upload.await.unwrap();
    assert_eq!(std::fs::read(place.at("large")).unwrap(), large);
    assert_eq!(turns.available_permits(), 1, "the turn was not given back");
}

#[test]
fn a_refusal_has_the_tools_reason_and_what_helps() {
    let reported = |words: &str| {
        let error = super::super::refused("write /x", words.as_bytes());
        (error.to_string(), error.hint().is_some())
    };
    let cases = [
        ("mv: cannot move 'a' to 'b': No space left on device\n", "No space left on device", true),
        ("chown: changing ownership of '/x': Operation not permitted", "Operation not permitted", true),
        ("chown: invalid user: 'nobody-there'", "invalid user: 'nobody-there'", true),
        ("sh: 1: cannot create /x: Directory nonexistent", "No such file or directory", false),
        ("", "no error message", false),
    ];
    for (words, reason, helped) in cases {
        assert_eq!(reported(words), (format!("cannot write /x: {reason}"), helped), "{words}");
    }
}

/// The owner of the directory may replace the temporary file by a link. What root writes and hands over is still the file
/// itself.
#[tokio::test]
async fn a_link_in_the_place_of_the_temporary_file_is_not_followed() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let (victim, path, source) = (place.at("victim"), place.at("target"), place.at("source"));
        std::fs::write(&victim, "untouched").unwrap();
        std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o640)).unwrap();
        let content = vec![b'x'; 1 << 20];
        std::fs::write(&source, &content).unwrap();
        let digest = sha1(&content);
        let exchanged = std::sync::atomic::AtomicBool::new(false);
        let exchange = |_: u64, _: u64| {
            let temporary = place.names().into_iter().find(|name| name.starts_with(".windlass."));
            if let Some(temporary) =
                temporary.filter(|name| !std::fs::symlink_metadata(place.at(name)).unwrap().is_symlink())
            {
                std::fs::remove_file(place.at(&temporary)).unwrap();
                std::os::unix::fs::symlink(&victim, place.at(&temporary)).unwrap();
                exchanged.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        };
        let attributes = Attributes { mode: Some(0o604), ..Attributes::default() };
        remote
            .upload(std::path::Path::new(&source), ExpectedDigest::Sha1(&digest), &path, &attributes, &exchange)
            .await
            .ok();
        assert!(exchanged.load(std::sync::atomic::Ordering::Relaxed), "{kind}: nothing was exchanged");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched", "{kind}");
        let mode = std::fs::metadata(&victim).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o640, "{kind}: the link was followed");
    }
}

#[tokio::test]
async fn a_new_file_takes_the_place_of_nothing() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let attributes = Attributes { mode: Some(0o600), ..Attributes::default() };
        remote.write_new(&place.at("f"), b"first", &attributes).await.unwrap();
        std::os::unix::fs::symlink("nowhere", place.at("link")).unwrap();
        std::fs::create_dir(place.at("directory")).unwrap();
        for (name, words) in [
            ("f", "another process created it meanwhile"),
            ("link", "it is a link to a file that does not exist"),
            ("directory", "Is a directory"),
        ] {
            let error = remote.write_new(&place.at(name), b"second", &attributes).await.unwrap_err().to_string();
            assert!(error.ends_with(words), "{kind}: {error}");
        }
        assert_eq!(std::fs::read(place.at("f")).unwrap(), b"first", "{kind}");
        assert_eq!(std::fs::metadata(place.at("f")).unwrap().permissions().mode() & 0o7777, 0o600, "{kind}");
        assert_eq!(place.names(), ["directory", "f", "link"], "{kind}");
        assert!(std::fs::read_dir(place.at("directory")).unwrap().next().is_none(), "{kind}");
    }
}
