//! Tests of `copy` against this machine.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::super::testing::{Bench, value};
use crate::value::vault;

#[tokio::test]
async fn a_file_is_copied_once_and_described() {
    let bench = Bench::new().await;
    bench.on_controller("files/a.conf", "hello\n");
    let task = "copy: {src: a.conf, dest: HOST/a.conf, mode: '0640'}";
    let checked = bench.check(task).await.unwrap();
    assert!(checked.changed);
    let done = bench.run_twice(task).await;
    assert!(done.changed);
    assert_eq!((bench.text("a.conf").as_str(), bench.mode("a.conf")), ("hello\n", 0o640));
    assert_eq!(done.diff, checked.diff);
    assert_eq!((done.diff[0].before.as_str(), done.diff[0].after.as_str()), ("", "hello\n"));
    let outcome = &done.outcome;
    assert_eq!(value(outcome, "checksum"), "f572d396fae9206628714fb2ce00f72e94f2258f");
    assert_eq!(value(outcome, "md5sum"), "b1946ac92492d2347c6235b4d2611184");
    assert_eq!(
        (value(outcome, "mode"), value(outcome, "state"), value(outcome, "size")),
        ("0640".into(), "file".into(), "6".into())
    );
    assert!(value(outcome, "dest").ends_with("/host/a.conf"));
}

#[tokio::test]
async fn a_directory_as_destination_takes_the_file_under_its_name() {
    let bench = Bench::new().await;
    bench.on_controller("files/a b'\"c", "x");
    std::fs::create_dir(bench.host("dir")).unwrap();
    bench.run_twice(r#"copy: {src: "a b'\"c", dest: HOST/dir}"#).await;
    bench.run_twice(r#"copy: {src: "a b'\"c", dest: HOST/new/below/, directory_mode: '0700'}"#).await;
    assert_eq!(bench.text("dir/a b'\"c"), "x");
    assert_eq!(bench.text("new/below/a b'\"c"), "x");
    assert_eq!((bench.mode("new"), bench.mode("new/below")), (0o700, 0o700));
}

#[tokio::test]
async fn odd_names_come_through() {
    let bench = Bench::new().await;
    bench.on_controller("files/x", "x");
    bench.run_twice(r#"copy: {src: x, dest: "HOST/line\nbreak $HOME `id` \\ *"}"#).await;
    assert_eq!(bench.text("line\nbreak $HOME `id` \\ *"), "x");
    bench.run_twice(r#"copy: {src: x, dest: "HOST/-rf"}"#).await;
}

#[tokio::test]
async fn content_is_written_as_it_is_and_structures_as_json() {
    let bench = Bench::new().await;
    bench.run_twice(r#"copy: {content: "a\nb", dest: HOST/text}"#).await;
    assert_eq!(bench.text("text"), "a\nb");
    bench.run_twice("copy: {content: {b: [1, true, null], a: é}, dest: HOST/json}").await;
    assert_eq!(bench.text("json"), r#"{"b": [1, true, null], "a": "\u00e9"}"#);
    bench.run_twice("copy: {content: '', dest: HOST/empty}").await;
    assert_eq!(bench.text("empty"), "");
    let message = bench.failure("copy: {content: x, dest: HOST}").await;
    assert!(message.starts_with("cannot write content to ") && message.ends_with("it is a directory"), "{message}");
}

#[tokio::test]
async fn an_old_file_keeps_its_mode_and_is_kept_as_a_backup() {
    let bench = Bench::new().await;
    let path = bench.on_host("a", "old\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o604)).unwrap();
    let done = bench.run("copy: {content: \"new\\n\", dest: HOST/a, backup: true}").await.unwrap();
    assert_eq!((bench.text("a").as_str(), bench.mode("a")), ("new\n", 0o604));
    let backup = value(&done.outcome, "backup_file");
    assert_eq!(std::fs::read_to_string(backup).unwrap(), "old\n");
    assert_eq!((done.diff[0].before.as_str(), done.diff[0].after.as_str()), ("old\n", "new\n"));
}

#[tokio::test]
async fn without_force_a_file_that_is_there_stays() {
    let bench = Bench::new().await;
    bench.on_host("a", "old");
    let done = bench.run("copy: {content: new, dest: HOST/a, force: false}").await.unwrap();
    assert!(!done.changed);
    assert_eq!(bench.text("a"), "old");
    bench.run_twice("copy: {content: new, dest: HOST/b, force: false}").await;
    assert_eq!(bench.text("b"), "new");
}

#[tokio::test]
async fn only_the_mode_changes_where_the_content_is_right() {
    let bench = Bench::new().await;
    let path = bench.on_host("a", "x");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let inode = std::fs::metadata(&path).unwrap().ino();
    let done = bench.run_twice("copy: {content: x, dest: HOST/a, mode: 'u=rw,go='}").await;
    assert!(done.changed);
    assert_eq!(bench.mode("a"), 0o600);
    assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode);
    assert!(done.diff[0].after.contains("0600"));
}

#[tokio::test]
async fn a_link_is_replaced_or_written_through_as_asked() {
    let bench = Bench::new().await;
    bench.on_host("real", "old");
    symlink("real", bench.host("link")).unwrap();
    bench.run_twice("copy: {content: new, dest: HOST/link, follow: true}").await;
    assert!(bench.host("link").is_symlink());
    assert_eq!(bench.text("real"), "new");
    let done = bench.run_twice("copy: {content: new, dest: HOST/link}").await;
    assert!(done.changed);
    assert!(!bench.host("link").is_symlink());
    assert_eq!(bench.text("link"), "new");
}

#[tokio::test]
async fn a_validation_that_fails_leaves_the_old_file() {
    let bench = Bench::new().await;
    bench.on_host("a", "good\n");
    let message = bench.failure("copy: {content: bad, dest: HOST/a, validate: grep -q good %s}").await;
    assert!(message.contains("grep -q good"), "{message}");
    assert_eq!(bench.text("a"), "good\n");
    bench.run_twice("copy: {content: still good, dest: HOST/a, validate: grep -q good %s}").await;
    assert_eq!(std::fs::read_dir(bench.host("")).unwrap().count(), 1);
}

#[tokio::test]
async fn what_cannot_be_done_is_said() {
    let bench = Bench::new().await;
    let message = bench.failure("copy: {src: nowhere, dest: HOST/a}").await;
    assert_eq!(message, "cannot find \"nowhere\" on the controller");
    let message = bench.failure("copy: {content: x, dest: HOST/no/such/a}").await;
    assert!(message.ends_with("/no/such does not exist"), "{message}");
    // An earlier task would have made the directory.
    assert!(bench.check("copy: {content: x, dest: HOST/no/such/a}").await.unwrap().changed);
    let message = bench.failure("copy: {dest: HOST/a}").await;
    assert_eq!(message, "copy: src or content is required");
    let message = bench.failure("copy: {content: x, dest: HOST/a, checksum: abc}").await;
    assert!(message.ends_with(", not abc"), "{message}");
    bench.on_host("file", "");
    let message = bench.failure("copy: {content: x, dest: HOST/file/a}").await;
    assert!(message.ends_with("/file is not a directory"), "{message}");
}

#[tokio::test]
async fn a_vault_file_is_decrypted_and_never_shown() {
    let mut bench = Bench::new().await;
    let password = crate::value::Secret::new("pass");
    bench.on_controller("files/key", vault::encrypt(b"plain secret\n", &password, None));
    let keyring = vault::Keyring::new(vec![("default".into(), password)]);
    bench.scope.keyring = std::sync::Arc::new(keyring);
    let done = bench.run_twice("copy: {src: key, dest: HOST/key, mode: '0600'}").await;
    assert_eq!(bench.text("key"), "plain secret\n");
    assert!(!format!("{:?}", done.diff).contains("plain"));
    bench.run_twice("copy: {src: key, dest: HOST/raw, decrypt: false}").await;
    assert!(bench.text("raw").starts_with("$ANSIBLE_VAULT;"));
}

#[tokio::test]
async fn no_log_shows_no_content() {
    let mut bench = Bench::new().await;
    bench.no_log = true;
    let done = bench.run("copy: {content: secret, dest: HOST/a}").await.unwrap();
    assert!(done.changed && done.diff.is_empty());
}

#[tokio::test]
async fn a_directory_is_copied_whole_or_its_contents_alone() {
    let bench = Bench::new().await;
    bench.on_controller("files/tree/a b", "1");
    bench.on_controller("files/tree/sub/c", "2");
    std::fs::create_dir(bench.here("files/tree/empty")).unwrap();
    std::fs::set_permissions(bench.here("files/tree/sub/c"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let task = "copy: {src: tree, dest: HOST/to, mode: preserve, directory_mode: '0711'}";
    assert!(bench.check(task).await.unwrap().changed);
    let done = bench.run_twice(task).await;
    assert_eq!(done.diff.len(), 2);
    assert_eq!((bench.text("to/tree/a b"), bench.mode("to/tree/sub/c")), ("1".into(), 0o755));
    assert_eq!((bench.mode("to"), bench.mode("to/tree/empty")), (0o711, 0o711));
    bench.run_twice("copy: {src: tree/, dest: HOST/contents}").await;
    assert_eq!(bench.text("contents/sub/c"), "2");
    std::fs::write(bench.host("contents/sub/c"), "3").unwrap();
    std::fs::write(bench.host("contents/other"), "stays").unwrap();
    let done = bench.run_twice("copy: {src: tree/, dest: HOST/contents/}").await;
    assert!(done.changed);
    assert_eq!((bench.text("contents/sub/c"), bench.text("contents/other")), ("2".into(), "stays".into()));
}

#[tokio::test]
async fn links_of_a_directory_are_followed_or_kept() {
    let bench = Bench::new().await;
    bench.on_controller("files/tree/real", "x");
    symlink("real", bench.here("files/tree/link")).unwrap();
    bench.run_twice("copy: {src: tree/, dest: HOST/followed}").await;
    assert!(!bench.host("followed/link").is_symlink());
    bench.run_twice("copy: {src: tree/, dest: HOST/kept, local_follow: false}").await;
    assert_eq!(std::fs::read_link(bench.host("kept/link")).unwrap().to_str(), Some("real"));
}

#[tokio::test]
async fn a_tree_goes_through_a_linked_directory_of_the_host() {
    let bench = Bench::new().await;
    bench.on_controller("files/tree/sub/c", "2");
    std::fs::create_dir_all(bench.host("elsewhere")).unwrap();
    std::fs::create_dir_all(bench.host("to")).unwrap();
    symlink("../elsewhere", bench.host("to/sub")).unwrap();
    bench.run_twice("copy: {src: tree/, dest: HOST/to}").await;
    assert_eq!(bench.text("elsewhere/c"), "2");
}

#[tokio::test]
async fn files_of_the_host_are_copied_on_the_host() {
    let bench = Bench::new().await;
    bench.on_host("from/a\nb", "x\n");
    let task = r#"copy: {src: "HOST/from/a\nb", dest: HOST/to, remote_src: true, mode: '0600'}"#;
    assert!(bench.check(task).await.unwrap().changed);
    let done = bench.run_twice(task).await;
    assert_eq!((bench.text("to").as_str(), bench.mode("to")), ("x\n", 0o600));
    assert_eq!(done.diff[0].after, "x\n");
    bench.on_host("to", "other");
    let done =
        bench.run(&format!("{}, backup: true, validate: 'grep x %s'}}", task.trim_end_matches('}'))).await.unwrap();
    assert_eq!(std::fs::read_to_string(value(&done.outcome, "backup_file")).unwrap(), "other");
    let message = bench.failure("copy: {src: HOST/from, dest: HOST/z/y, remote_src: true, content: x}").await;
    assert_eq!(message, "copy: src and content cannot both be given");
    let message = bench.failure("copy: {src: HOST/none, dest: HOST/z, remote_src: true}").await;
    assert!(message.ends_with("no such file on the host"), "{message}");
}

#[tokio::test]
async fn a_copy_on_the_host_that_fails_its_validation_changes_nothing() {
    let bench = Bench::new().await;
    bench.on_host("from", "bad");
    bench.on_host("to", "good");
    let message =
        bench.failure("copy: {src: HOST/from, dest: HOST/to, remote_src: true, validate: grep good %s}").await;
    assert!(message.ends_with("validation failed with code 1"), "{message}");
    assert_eq!(bench.text("to"), "good");
    assert_eq!(std::fs::read_dir(bench.host("")).unwrap().count(), 2);
}

#[tokio::test]
async fn directories_of_the_host_are_copied_on_the_host() {
    let bench = Bench::new().await;
    let script = bench.on_host("from/bin/run me", "#!/bin/sh\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    bench.on_host("from/etc", "1");
    let task = "copy: {src: HOST/from/, dest: HOST/to, remote_src: true}";
    assert!(bench.check(task).await.unwrap().changed);
    bench.run_twice(task).await;
    assert_eq!((bench.text("to/etc"), bench.mode("to/bin/run me")), ("1".into(), 0o755));
    std::fs::write(bench.host("from/etc"), "2").unwrap();
    assert!(bench.run_twice(task).await.changed);
    assert_eq!(bench.text("to/etc"), "2");
}

#[tokio::test]
async fn a_binary_has_a_note_for_a_diff() {
    let bench = Bench::new().await;
    bench.on_controller("files/bin", [0, 159, 146, 150]);
    let done = bench.run_twice("copy: {src: bin, dest: HOST/bin}").await;
    assert_eq!(done.diff[0].after, "[4 bytes, binary]\n");
}

#[tokio::test]
async fn with_vault_a_file_is_kept_encrypted() {
    let mut bench = Bench::new().await;
    let task = "copy: {content: hidden words, dest: HOST/secret, mode: '0600', vault: true}";
    let once = "copy: {content: others, dest: HOST/secret, mode: '0600', vault: true, force: false}";
    bench.run_twice(task).await;
    assert_eq!(bench.text("secret"), "hidden words", "without a vault password it is as it is");

    let keyring = vault::Keyring::new(vec![("default".into(), crate::value::Secret::new("password"))]);
    bench.scope.keyring = std::sync::Arc::new(keyring.clone());
    let plain = |sealed: &str| String::from_utf8(keyring.decrypt(sealed).unwrap()).unwrap();
    // One that is there and open is encrypted, also where it is not to be replaced.
    let done = bench.run_twice(once).await;
    assert!(!format!("{:?}", done.diff).contains("hidden"), "what is encrypted is not shown");
    let sealed = bench.text("secret");
    assert_eq!((plain(&sealed).as_str(), bench.mode("secret")), ("hidden words", 0o600));
    assert!(!bench.run(task).await.unwrap().changed);
    assert_eq!(bench.text("secret"), sealed);
    bench.run_twice(&task.replace("hidden", "other")).await;
    assert_eq!(plain(&bench.text("secret")), "other words");

    bench.scope.keyring = std::sync::Arc::default();
    assert!(bench.failure(task).await.contains("cannot decrypt"));
    assert_eq!(plain(&bench.text("secret")), "other words");
    bench.close().await;
}
