//! Backups are made, kept and verified in a directory of the test.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::directory::keep_in_directory;
use super::staging::prepare_directory;
use super::*;
use crate::deployment::plan::digest_to_hex;

pub(super) fn snapshot(content: &[u8]) -> Vec<u8> {
    let mut all = content.to_vec();
    all.extend(Sha256::digest(content));
    all
}

pub(super) fn taken(content: &[u8], revision: i64) -> SnapshotReport {
    SnapshotReport {
        layout: 3,
        cluster: "etcd".into(),
        cluster_id: "7".into(),
        host: "h1".into(),
        member: "h1".into(),
        is_leader: false,
        members: vec!["h1".into()],
        compared: 1,
        majority: 1,
        has_leader: true,
        hash: None,
        rehearsal: None,
        etcd_version: "3.5.16".into(),
        revision: StatusNumber::Number(revision),
        keys: StatusNumber::Number(1),
        sha256: digest_to_hex({
            let mut digest = Sha256::new();
            digest.update(content);
            digest
        }),
        taken: None,
    }
}

pub(super) fn back_up(
    directory: &Path,
    content: &[u8],
    taken: SnapshotReport,
    keep: Option<usize>,
) -> Result<BackupResult, BackupError> {
    let staging = Staging::in_directory(directory).unwrap();
    fs::write(staging.path().join("snapshot.db"), content).unwrap();
    let prepared = prepare_backup(&staging, taken, "karmada".into(), &Recipients::default(), None)?;
    let retention = Retention { last: keep, ..Retention::default() };
    keep_in_directory(directory, staging, &prepared, &retention)
}

#[test]
fn a_backup_is_what_was_taken_and_damage_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let content = snapshot(&[7; 100_000]);
    let made = back_up(directory.path(), &content, taken(&content, 5), None).unwrap();
    assert!(made.backup.name.ends_with("Z-r5"), "{}", made.backup.name);
    assert_eq!(verify(&made.backup.path, &Identities::default()).unwrap(), made.manifest);
    let to = directory.path().join("out.db");
    unpack_backup(&made.backup.path, &to, &Identities::default()).unwrap();
    assert_eq!(fs::read(&to).unwrap(), content);
    let packed = made.backup.path.join(SNAPSHOT);
    let mut bytes = fs::read(&packed).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&packed, bytes).unwrap();
    assert!(verify(&made.backup.path, &Identities::default()).is_err());
    fs::remove_file(&to).unwrap();
    assert!(unpack_backup(&made.backup.path, &to, &Identities::default()).is_err());
}

#[test]
fn a_local_backup_keeps_its_time_is_copied_once_and_never_follows_a_newer_backup() {
    let directory = tempfile::tempdir().unwrap();
    let local = |revision: i64, time: i64| {
        let content = snapshot(format!("{revision} {time}").as_bytes());
        let taken = SnapshotReport { taken: Some(StatusNumber::Number(time)), ..taken(&content, revision) };
        back_up(directory.path(), &content, taken, None)
    };
    let made = local(5, 1_795_494_651).unwrap();
    assert_eq!((made.backup.name.as_str(), made.was_there), ("20261124T043051Z-r5", false));
    assert_eq!(made.manifest.taken, 1_795_494_651);
    let again = local(5, 1_795_494_651).unwrap();
    assert_eq!((again.backup.name, again.was_there), (made.backup.name, true));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    assert!(matches!(local(4, 1_795_494_700), Err(BackupError::Older { revision: 4, known: 5, .. })));
    // One that is damaged here was not copied.
    let packed = made.backup.path.join(SNAPSHOT);
    fs::write(&packed, "damaged").unwrap();
    assert!(matches!(local(5, 1_795_494_651), Err(BackupError::DamagedCopy { path }) if path == made.backup.path));
    assert_eq!(fs::read(&packed).unwrap(), b"damaged");
    fs::remove_dir_all(&made.backup.path).unwrap();
    assert!(!local(5, 1_795_494_651).unwrap().was_there);
}

#[test]
fn of_two_runs_at_once_neither_removes_the_backup_of_the_other() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let run = |revision: i64| {
            let content = snapshot(&[u8::try_from(revision).unwrap(); 1000]);
            back_up(directory.path(), &content, taken(&content, revision), Some(1))
        };
        run(5).unwrap();
        std::thread::scope(|both| {
            let runs = [6, 7].map(|revision| both.spawn(move || run(revision)));
            // The older one is refused if it is the later one.
            let made = runs.map(|run| run.join().unwrap());
            assert!(made.iter().all(|made| matches!(made, Ok(_) | Err(BackupError::WentBack { .. }))), "{made:?}");
        });
        let left = list_backups(directory.path()).unwrap();
        assert!(left.iter().any(|backup| backup.name.ends_with("-r7") && backup.manifest.is_ok()), "{left:?}");
    }
}

#[test]
fn a_backup_that_came_meanwhile_is_not_removed() {
    let directory = tempfile::tempdir().unwrap();
    let made = |revision: i64| {
        let content = snapshot(&[u8::try_from(revision).unwrap(); 1000]);
        back_up(directory.path(), &content, taken(&content, revision), None).unwrap().backup
    };
    let (first, second) = (made(5), made(6));
    let earlier = list_backups(directory.path()).unwrap();
    let meanwhile = made(7);
    let mut removed = Vec::new();
    directory::prune(earlier, &second, &Retention { last: Some(1), ..Retention::default() }, &mut removed).unwrap();
    assert_eq!(removed, [first.name]);
    assert!(second.path.exists() && meanwhile.path.exists());
}

#[test]
fn what_arrives_damaged_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let content = snapshot(&[7; 1000]);
    let mut cut = content.clone();
    cut.truncate(900);
    let mut changed = content.clone();
    changed[3] ^= 1;
    for bad in [cut, changed] {
        let taken = taken(&bad, 5);
        assert!(matches!(back_up(directory.path(), &bad, taken, None), Err(BackupError::Damaged(_))));
    }
    let other = taken(b"else", 5);
    assert!(matches!(back_up(directory.path(), &content, other, None), Err(BackupError::Damaged(_))));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn the_newest_are_kept_and_never_none() {
    let directory = tempfile::tempdir().unwrap();
    let content = snapshot(b"x");
    let mut names = Vec::new();
    for revision in 1..=3 {
        names.push(back_up(directory.path(), &content, taken(&content, revision), None).unwrap().backup.name);
    }
    let earlier = SnapshotReport { cluster_id: "8".into(), ..taken(&content, 9) };
    let earlier = back_up(directory.path(), &content, earlier, None).unwrap().backup.name;
    // One that lost its manifest is no backup, and is not counted; nor is one whose content is damaged.
    fs::remove_file(directory.path().join(&names[2]).join(MANIFEST)).unwrap();
    fs::write(directory.path().join(&names[1]).join(SNAPSHOT), "damaged").unwrap();
    let made = back_up(directory.path(), &content, taken(&content, 4), Some(2)).unwrap();
    assert!(made.removed.is_empty(), "{:?}", made.removed);
    let made = back_up(directory.path(), &content, taken(&content, 5), Some(0)).unwrap();
    assert_eq!(made.removed.len(), 2, "{:?}", made.removed);
    assert!(made.removed.contains(&names[0]));
    let mut left: Vec<String> = list_backups(directory.path()).unwrap().into_iter().map(|backup| backup.name).collect();
    let mut expected = [made.backup.name, names[2].clone(), names[1].clone(), earlier];
    left.sort();
    expected.sort();
    assert_eq!(left, expected);
}

#[test]
fn only_the_owner_reads_a_backup_and_a_directory_that_others_can_write_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("backups");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    prepare_directory(&directory).unwrap();
    let staging = Staging::in_directory(&directory).unwrap();
    assert_eq!(fs::metadata(staging.path()).unwrap().mode() & 0o777, 0o700);
    drop(staging);
    let content = snapshot(b"x");
    let made = back_up(&directory, &content, taken(&content, 1), None).unwrap();
    assert_eq!(fs::metadata(&made.backup.path).unwrap().mode() & 0o777, 0o700);
    for mode in [0o777, 0o1777, 0o702] {
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        let refused = prepare_directory(&directory).unwrap_err().to_string();
        assert!(refused.contains("others can write to it"), "{mode:o}: {refused}");
    }
}

#[test]
fn partial_backups_are_removed_when_their_process_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let old = SystemTime::now() - Duration::from_secs(3600);
    let age = |path: &Path| File::open(path).unwrap().set_modified(old).unwrap();
    let in_use = Staging::in_directory(directory.path()).unwrap();
    age(in_use.path());
    let abandoned = directory.path().join(format!("{PARTIAL}dead"));
    fs::create_dir(&abandoned).unwrap();
    age(&abandoned);
    let note = directory.path().join(format!("{PARTIAL}note"));
    fs::write(&note, "a file").unwrap();
    age(&note);
    let content = snapshot(b"x");
    let made = back_up(directory.path(), &content, taken(&content, 1), Some(1)).unwrap();
    assert!(made.failures.is_empty(), "{:?}", made.failures);
    assert!(in_use.path().exists() && note.exists() && !abandoned.exists());
}

#[test]
fn nothing_older_is_removed_for_a_backup_that_may_lack_writes() {
    let directory = tempfile::tempdir().unwrap();
    let content = snapshot(b"x");
    back_up(directory.path(), &content, taken(&content, 1), None).unwrap();
    let alone = SnapshotReport { majority: 2, ..taken(&content, 2) };
    let without_leader = SnapshotReport { has_leader: false, ..taken(&content, 3) };
    for doubtful in [alone, without_leader] {
        let made = back_up(directory.path(), &content, doubtful, Some(1)).unwrap();
        assert!(made.removed.is_empty() && made.kept.is_some(), "{made:?}");
    }
    // A wrong clock does not make an old backup the newest one.
    let path = directory.path().join("20300101T000000Z-r1");
    let first = list_backups(directory.path()).unwrap().into_iter().find(|it| it.name.ends_with("-r1")).unwrap();
    fs::rename(first.path, &path).unwrap();
    let manifest = Manifest { taken: 1_900_000_000, ..first.manifest.unwrap() };
    fs::write(path.join(MANIFEST), serde_json::to_string(&manifest).unwrap()).unwrap();
    let made = back_up(directory.path(), &content, taken(&content, 4), Some(3)).unwrap();
    assert_eq!(made.removed, ["20300101T000000Z-r1"]);
}

#[test]
fn what_is_no_file_or_no_number_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let content = snapshot(b"x");
    for revision in [StatusNumber::Number(-7), StatusNumber::Text("seven".into())] {
        let wrong = SnapshotReport { revision, ..taken(&content, 1) };
        assert!(matches!(back_up(directory.path(), &content, wrong, None), Err(BackupError::Damaged(_))));
    }
    let made = back_up(directory.path(), &content, taken(&content, 1), None).unwrap();
    let packed = made.backup.path.join(SNAPSHOT);
    fs::remove_file(&packed).unwrap();
    assert_eq!(list_backups(directory.path()).unwrap().len(), 1, "a backup without its snapshot is listed");
    assert!(verify(&made.backup.path, &Identities::default()).is_err());
    let pipe = std::process::Command::new("mkfifo").arg(&packed).status().unwrap();
    assert!(pipe.success());
    assert!(verify(&made.backup.path, &Identities::default()).unwrap_err().contains("not a file"));
}

#[test]
fn a_cluster_that_went_back_or_is_another_one_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let content = snapshot(b"x");
    back_up(directory.path(), &content, taken(&content, 5), None).unwrap();
    let back = back_up(directory.path(), &content, taken(&content, 4), None).unwrap_err();
    assert!(back.to_string().contains("the snapshot has revision 4, but"), "{back}");
    // After a restore it is a new cluster.
    let restored = SnapshotReport { cluster_id: "8".into(), ..taken(&content, 4) };
    back_up(directory.path(), &content, restored, None).unwrap();
    let other = SnapshotReport { cluster: "events".into(), ..taken(&content, 9) };
    assert!(matches!(back_up(directory.path(), &content, other, None), Err(BackupError::OtherCluster { .. })));
}

#[test]
fn a_damaged_backup_prevents_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let content = snapshot(b"x");
    let made = back_up(directory.path(), &content, taken(&content, 99_999), None).unwrap();
    fs::write(made.backup.path.join(SNAPSHOT), b"other").unwrap();
    back_up(directory.path(), &content, taken(&content, 5), None).unwrap();
}

#[test]
fn a_backup_from_the_future_is_not_the_newest() {
    let directory = tempfile::tempdir().unwrap();
    let content = snapshot(b"x");
    let made = back_up(directory.path(), &content, taken(&content, 5), None).unwrap();
    let future = Backup { manifest: Ok(Manifest { taken: now() + 3600, ..made.manifest }), ..made.backup.clone() };
    let damaged = Backup { manifest: Err("damaged".into()), ..made.backup.clone() };
    let all = [damaged.clone(), Backup { name: "future".into(), ..future.clone() }, made.backup.clone()];
    assert_eq!(newest_backup(&all).unwrap().name, made.backup.name);
    assert_eq!(newest_backup(&all[..2]).unwrap().name, "future");
    assert!(newest_backup(&all[..1]).is_none());
}

#[test]
fn times_are_written_as_in_the_calendar() {
    assert_eq!(timestamp(0), "19700101T000000Z");
    assert_eq!(timestamp(951_782_400), "20000229T000000Z");
    assert_eq!(timestamp(1_795_494_651), "20261124T043051Z");
}

#[tokio::test]
async fn a_place_that_others_can_write_to_is_refused_before_a_snapshot_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("b");
    let stores = |place: &Path| BackupStores {
        stores: vec![BackupStore::Directory(place.to_owned())],
        scratch: directory.path().join("scratch"),
    };
    stores(&place).check().await.unwrap();
    assert!(!place.exists());
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = stores(&place).check().await.unwrap_err().to_string();
    assert!(refused.contains("is not safe for backups"), "{refused}");
}
