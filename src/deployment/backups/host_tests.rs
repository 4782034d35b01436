//! Backups in a directory of another host, which is this machine here, reached by a shell of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::host::BackupHost;
use super::tests::{snapshot, taken};
use super::*;
use crate::connection::{Method, Target};
use crate::value::ProcessEnvironment;

fn host(directory: &Path) -> BackupHost {
    let target =
        Target { method: Method::Local, name: "safe".into(), address: "localhost".into(), ..Target::default() };
    BackupHost::new(target, "ssh://safe".to_owned(), directory.display().to_string())
}

async fn keep(
    host: &BackupHost,
    scratch: &Path,
    revision: i64,
    retention: Retention,
) -> Result<BackupResult, BackupError> {
    let staging = Staging::clean_in(scratch).unwrap();
    let content = snapshot(format!("the data at revision {revision}").as_bytes());
    fs::write(staging.path().join("snapshot.db"), &content).unwrap();
    let report = taken(&content, revision);
    let prepared = prepare_backup(&staging, report, "prod".to_owned(), &Recipients::default(), None).unwrap();
    host.keep_on_host(staging.path(), &prepared, &retention).await
}

#[test]
fn a_place_on_a_host_is_an_address_and_an_absolute_path() {
    let around = Arc::new(ProcessEnvironment::default());
    let place =
        |text: &str| BackupHost::parse_place(text, &around).map(|host| host.host_address().display().to_string());
    for good in ["ssh://safe/b", "ssh://root@10.0.0.9:2222/srv/backups/prod", "ssh://[2001:db8::9]:22/b"] {
        assert_eq!(place(good).as_deref(), Ok(good));
        assert_eq!(place(&format!("{good}/")).as_deref(), Ok(good));
    }
    for wrong in [
        "safe:/b",
        "ssh://",
        "ssh:///b",
        "ssh://safe",
        "ssh://safe/",
        "ssh://safe//b",
        "ssh://safe/a/../b",
        "ssh://safe/a\nb",
        "ssh://a:secret@safe/b",
        "ssh://a:1234/secret@safe/b",
        "ssh://safe/~/b",
    ] {
        assert!(place(wrong).is_err_and(|why| !why.contains("secret")), "{wrong}");
    }
    let backup = |text: &str| BackupHost::parse_backup(text, &around).map(|(host, name)| (host.host_address(), name));
    assert_eq!(
        backup("ssh://safe/b/20261124T044022Z-r164").unwrap(),
        ("ssh://safe/b".into(), "20261124T044022Z-r164".into())
    );
    for wrong in ["ssh://safe/b", "ssh://safe/b/..", "ssh://safe/b/.partial-1", "ssh://safe/b/a b"] {
        assert!(backup(wrong).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn a_backup_is_kept_on_a_host_listed_read_and_downloaded() {
    let directory = tempfile::tempdir().unwrap();
    let (there, scratch) = (directory.path().join("there"), directory.path().join("scratch"));
    let host = host(&there);
    assert!(host.list_on_host().await.is_err_and(|why| why.to_string().starts_with("ssh://safe")));
    let kept = keep(&host, &scratch, 5, Retention::default()).await.unwrap();
    assert_eq!(
        kept.backup.path,
        Path::new("ssh://safe").join(&there.display().to_string()[1..]).join(&kept.backup.name)
    );
    assert_eq!(fs::metadata(&there).unwrap().permissions().mode() & 0o777, 0o700);
    let backups = host.list_on_host().await.unwrap();
    assert_eq!(backups.len(), 1);
    assert_eq!(host.verify_on_host(&backups[0]).await.unwrap().as_ref(), Ok(&kept.manifest));
    let fetched = host.download_backup(&backups[0].name, &scratch).await.unwrap();
    assert_eq!(verify(&fetched.path, &Identities::default()).as_ref(), Ok(&kept.manifest));
    let copy = fetched.path.clone();
    drop(fetched);
    assert!(!copy.exists());

    // It is listed with what is wrong with it, and not downloaded.
    let file = there.join(&backups[0].name).join(SNAPSHOT);
    let good = fs::read(&file).unwrap();
    let mut bad = good.clone();
    bad[10] ^= 1;
    fs::write(&file, &bad).unwrap();
    assert_eq!(host.verify_on_host(&backups[0]).await.unwrap(), Err(DIFFERS.to_owned()));
    let refused = host.download_backup(&backups[0].name, &scratch).await.err().unwrap();
    assert!(refused.to_string().contains(DIFFERS), "{refused}");
    fs::write(&file, &good[1..]).unwrap();
    let listed = host.list_on_host().await.unwrap();
    assert!(listed[0].manifest.as_ref().is_err_and(|why| why.contains("bytes, and had")), "{listed:?}");
    fs::remove_file(&file).unwrap();
    let listed = host.list_on_host().await.unwrap();
    assert!(listed[0].manifest.as_ref().is_err_and(|why| why.contains("it has no snapshot.db.zst")), "{listed:?}");

    // A link to any file of the host, however large, is not read.
    let text = there.join(&backups[0].name).join(MANIFEST);
    fs::rename(&text, there.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(there.join("elsewhere"), &text).unwrap();
    let refused = host.download_backup(&backups[0].name, &scratch).await.err().unwrap();
    assert!(refused.to_string().contains("its manifest.json is no file"), "{refused}");
    assert!(host.download_backup("..", &scratch).await.is_err_and(|why| why.to_string().contains("no such backup")));
    assert!(fs::read_dir(&scratch).unwrap().next().is_none());
}

#[tokio::test]
async fn what_others_put_beside_backups_is_neither_read_nor_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (there, scratch) = (directory.path().join("there"), directory.path().join("scratch"));
    let host = host(&there);
    for revision in [5, 6] {
        keep(&host, &scratch, revision, Retention::default()).await.unwrap();
    }
    let made = |name: &str, age: u64| {
        fs::create_dir(there.join(name)).unwrap();
        let then = SystemTime::now() - Duration::from_secs(age);
        fs::File::open(there.join(name)).unwrap().set_modified(then).unwrap();
    };
    made(".upload-old", 90_000);
    made(".upload-new", 60);
    made(".partial-old", 90_000);
    made("-n", 60);
    fs::write(there.join("-n").join(MANIFEST), "{}").unwrap();
    std::os::unix::fs::symlink("/etc", there.join("link")).unwrap();
    made("other", 90_000);
    made("with blank", 90_000);
    fs::write(there.join("with blank").join(MANIFEST), "{}").unwrap();
    fs::write(there.join("other").join("notes"), "mine").unwrap();
    let two = Retention { last: Some(2), ..Retention::default() };
    let kept = keep(&host, &scratch, 7, two).await.unwrap();
    assert_eq!((kept.removed.len(), kept.failures.len()), (1, 0), "{kept:?}");
    assert!(kept.removed[0].ends_with("-r5"), "{kept:?}");
    let mut names: Vec<String> =
        fs::read_dir(&there).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names.retain(|name| !name.ends_with("-r6") && !name.ends_with("-r7"));
    assert_eq!(names, ["-n", ".partial-old", ".upload-new", "link", "other", "with blank"]);
    // What a power cut leaves of a manifest is no JSON, and a damaged backup does not count as one that is kept.
    let listed = host.list_on_host().await.unwrap();
    let at = there.join(&listed[1].name).join(MANIFEST);
    let text = fs::read(&at).unwrap();
    fs::write(&at, [&text[..], b"\0\0"].concat()).unwrap();
    assert!(host.list_on_host().await.unwrap().iter().any(|backup| backup.manifest.is_err()));
    fs::write(&at, text).unwrap();
    let snapshot = there.join(&listed[1].name).join(SNAPSHOT);
    let mut bad = fs::read(&snapshot).unwrap();
    bad[10] ^= 1;
    fs::write(&snapshot, bad).unwrap();
    let kept = keep(&host, &scratch, 8, Retention { last: Some(2), ..Retention::default() }).await.unwrap();
    assert!(kept.removed.is_empty(), "{kept:?}");
    // An older state of the same cluster, and a directory in which others can write, are refused.
    assert!(matches!(keep(&host, &scratch, 4, two).await, Err(BackupError::WentBack { .. })));
    fs::set_permissions(&there, fs::Permissions::from_mode(0o770)).unwrap();
    assert!(matches!(keep(&host, &scratch, 9, two).await, Err(BackupError::OpenDirectory { .. })));
}

#[test]
fn a_host_of_a_resource_has_an_address_that_a_restore_can_be_given() {
    let around = Arc::new(ProcessEnvironment::default());
    let shown = |address: &str, port| {
        let target = Target { address: address.into(), user: Some("keeper".into()), port, ..Target::default() };
        BackupHost::of_target(target, "/srv/b").host_address().display().to_string()
    };
    for (shown, expected) in [
        (shown("10.0.0.9", None), "ssh://keeper@10.0.0.9/srv/b"),
        (shown("2001:db8::9", Some(2222)), "ssh://keeper@[2001:db8::9]:2222/srv/b"),
    ] {
        assert_eq!(shown, expected);
        assert_eq!(BackupHost::parse_place(&shown, &around).unwrap().host_address(), Path::new(expected));
    }
}
