//! Backups of etcd: where they are taken, and what the list says of them.

use super::*;

fn fixture() -> Fixture {
    Fixture::with(|options| options.backups = Some(options.directory.with_file_name("backups")))
}

/// A backup as `windlass etcd backup` writes it; `content` is what is in the compressed file.
fn write_backup(fixture: &Fixture, deployment: &str, name: &str, revision: u64, content: &[u8]) -> std::path::PathBuf {
    let path = fixture.directory.path().join("backups").join(deployment).join(name);
    std::fs::create_dir_all(&path).unwrap();
    let snapshot = b"a snapshot".as_slice();
    std::fs::write(path.join("snapshot.db.zst"), zstd::encode_all(content, 3).unwrap()).unwrap();
    let manifest = serde_json::json!({
        "layout": 1, "deployment": deployment, "cluster": "karmada", "cluster_id": "1f", "member": "cp-1", "is_leader": true,
        "members": ["cp-1"], "compared": 1, "has_leader": true, "etcd_version": "3.6.1", "windlass_version": "0.1.0",
        "taken": 1_800_000_000, "revision": revision, "keys": 4, "size": snapshot.len(),
        "sha256": super::super::access::sha256_hex(snapshot), "compressed_size": 20, "compressed_sha256": "",
    });
    std::fs::write(path.join("manifest.json"), manifest.to_string()).unwrap();
    path
}

/// The list, when all backups have been read.
async fn list(fixture: &Fixture, token: &str) -> Vec<Json> {
    for _ in 0..500 {
        let found = fixture.ask("GET", "/api/v1/deployments/prod/backups", Some(token), None).await.json();
        let items = found["items"].as_array().unwrap_or_else(|| panic!("{found:#}")).clone();
        if items.iter().all(|item| !item["verified"].is_null()) {
            return items;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("a backup was not read");
}

#[tokio::test]
async fn a_list_says_which_backups_are_good() {
    let fixture = fixture();
    let token = fixture.token("see@prod");
    assert!(list(&fixture, &token).await.is_empty());
    write_backup(&fixture, "prod", "20261127T120000Z-r7", 7, b"a snapshot");
    let damaged = write_backup(&fixture, "prod", "20261127T130000Z-r8", 8, b"A snapshot");
    let bare = write_backup(&fixture, "prod", "20261127T140000Z-r9", 9, b"a snapshot");
    std::fs::remove_file(bare.join("manifest.json")).unwrap();
    write_backup(&fixture, "test", "20261127T150000Z-r9", 9, b"a snapshot");
    let shown = |items: &[Json]| {
        let row = |item: &Json| format!("{} {} {}", item["name"], item["revision"], item["verified"]);
        items.iter().map(row).collect::<Vec<_>>()
    };
    let items = list(&fixture, &token).await;
    assert_eq!(
        shown(&items),
        [r#""20261127T130000Z-r8" 8 false"#, r#""20261127T120000Z-r7" 7 true"#, r#""20261127T140000Z-r9" null false"#,]
    );
    assert_eq!(items[0]["problem"], "damaged: its digest differs from the manifest's");
    assert!(items[2]["problem"].as_str().unwrap().starts_with("no manifest"), "{:#}", items[2]);
    assert_eq!((&items[1]["size"], &items[1]["taken"]), (&Json::from(10), &Json::from("2027-01-15T08:00:00.000Z")));
    // One that was exchanged is read again.
    std::fs::write(damaged.join("snapshot.db.zst"), zstd::encode_all(b"a snapshot".as_slice(), 3).unwrap()).unwrap();
    assert_eq!(shown(&list(&fixture, &token).await)[0], r#""20261127T130000Z-r8" 8 true"#);
}

#[tokio::test]
async fn a_backup_goes_to_the_directory_of_the_server_and_needs_its_right() {
    let ask = async |fixture: &Fixture, rights: &str, body: Json| {
        let token = fixture.token(rights);
        fixture.ask("POST", "/api/v1/deployments/prod/runs", Some(&token), Some(body)).await
    };
    let backup = || serde_json::json!({"command": "etcd_backup"});
    let without = Fixture::new();
    assert_eq!(ask(&without, "see@prod approve@prod", backup()).await.code(), "NoBackupDirectory");
    let token = without.token("see@prod");
    let listed = without.ask("GET", "/api/v1/deployments/prod/backups", Some(&token), None).await;
    assert_eq!(listed.code(), "NoBackupDirectory");

    let fixture = Fixture::with(|options| {
        options.backups = Some(options.directory.with_file_name("backups"));
        options.keep_backups = Some(5);
        options.backup_recipients = Some("/etc/windlass/backup.pub".into());
        write_program(&options.program, "#!/bin/sh\necho \"$@\" >&2\nexit 1\n");
    });
    assert_eq!(ask(&fixture, "see@prod plan@prod", backup()).await.code(), "Forbidden");
    let elsewhere = serde_json::json!({"command": "etcd_backup", "directory": "/tmp"});
    assert_eq!(ask(&fixture, "see@prod approve@prod", elsewhere).await.code(), "InvalidBody");
    let printed = ask(&fixture, "see@prod approve@prod", backup()).await;
    let root = fixture.directory.path().canonicalize().unwrap();
    let expected = format!(
        "etcd backup {0}/backups/prod -f {0}/deployments/prod.yaml --keep=5 --recipients-file=/etc/windlass/backup.pub --run-id=",
        root.display()
    );
    let detail = printed.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.starts_with(&expected), "{detail}");
    // Not while another run changes the deployment.
    let mut store = fixture.store();
    let upgrade = start_run(store.as_mut(), "upgrade", Some("prod"), 0);
    assert_eq!(ask(&fixture, "see@prod approve@prod", backup()).await.code(), "AlreadyRunning");
    end_run(store.as_mut(), upgrade);
}

#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a/backups");
    super::super::backup_directory::prepare_backups(&directory).unwrap();
    assert_eq!(directory.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    let refused = super::super::backup_directory::prepare_backups(&directory).unwrap_err();
    assert!(matches!(refused, ServeError::NotOwn { .. }), "{refused}");
}

#[tokio::test]
async fn etcd_is_checked_and_compared_without_holding_up_a_change() {
    let fixture = Fixture::with(|options| {
        options.backups = Some(options.directory.with_file_name("backups"));
        write_program(&options.program, "#!/bin/sh\necho \"$@\" >&2\nexit 1\n");
    });
    let (may, may_not) = (fixture.token("see@prod plan@prod"), fixture.token("see@prod approve@prod"));
    let ask = async |token: &str, command: &str| {
        let body = serde_json::json!({"command": command});
        fixture.ask("POST", "/api/v1/deployments/prod/runs", Some(token), Some(body)).await.json()
    };
    for (command, words) in [("etcd_check", "etcd check -f "), ("etcd_verify", "etcd verify -f ")] {
        let answer = ask(&may, command).await;
        assert!(answer["detail"].as_str().unwrap().starts_with(words), "{answer:#}");
        assert_eq!(ask(&may_not, command).await["code"], "Forbidden");
    }
    let mut store = fixture.store();
    for (at, (command, expected)) in
        [("etcd check", "NotStarted"), ("etcd verify", "NotStarted"), ("etcd backup", "AlreadyRunning")]
            .into_iter()
            .enumerate()
    {
        let run = start_run(store.as_mut(), command, Some("prod"), at as u64);
        assert_eq!(ask(&may_not, "etcd_backup").await["code"], expected, "{command}");
        end_run(store.as_mut(), run);
    }
}
