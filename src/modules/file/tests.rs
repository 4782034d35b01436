//! Tests of `file` against this machine.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::super::testing::{Bench, value};

fn chmod(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_directory_is_made_with_its_parents_once() {
    let bench = Bench::new().await;
    let task = "file: {path: \"HOST/a b/c'\\\"d\", state: directory, mode: '0750'}";
    let checked = bench.check(task).await.unwrap();
    assert!(checked.changed && checked.diff[0].after.contains("\"directory\""));
    let done = bench.run_twice(task).await;
    assert!(done.changed);
    assert_eq!((bench.mode("a b"), bench.mode("a b/c'\"d")), (0o750, 0o750));
    assert_eq!((value(&done.outcome, "state"), value(&done.outcome, "mode")), ("directory".into(), "0750".into()));
}

#[tokio::test]
async fn attributes_of_a_directory_are_set_on_all_that_is_in_it() {
    let bench = Bench::new().await;
    chmod(&bench.on_host("d/x y", ""), 0o644);
    chmod(&bench.on_host("d/sub/run", ""), 0o755);
    chmod(&bench.on_host("d/line\nbreak", ""), 0o666);
    let task = "file: {path: HOST/d, state: directory, recurse: true, mode: 'u=rwX,go='}";
    assert!(bench.check(task).await.unwrap().changed);
    assert!(bench.run_twice(task).await.changed);
    let modes = ["d", "d/x y", "d/sub", "d/sub/run", "d/line\nbreak"].map(|name| bench.mode(name));
    assert_eq!(modes, [0o700, 0o600, 0o700, 0o700, 0o600]);
    let message = bench.failure("file: {path: HOST/d/x y, state: file, recurse: true}").await;
    assert_eq!(message, "file: recurse needs state: directory");
}

#[tokio::test]
async fn a_file_must_be_there_and_gets_its_mode() {
    let bench = Bench::new().await;
    let message = bench.failure("file: {path: HOST/none, state: file}").await;
    assert!(message.ends_with("/none does not exist"), "{message}");
    chmod(&bench.on_host("x", ""), 0o644);
    let task = "file: {path: HOST/x, mode: g+w}";
    let checked = bench.check(task).await.unwrap();
    assert!(checked.diff[0].before.contains("0644") && checked.diff[0].after.contains("0664"));
    assert!(bench.run_twice(task).await.changed);
    assert_eq!(bench.mode("x"), 0o664);
    let message = bench.failure("file: {path: HOST/x, state: directory}").await;
    assert!(message.ends_with("/x already exists as a file"), "{message}");
    let message = bench.failure("file: {path: HOST, state: file}").await;
    assert!(message.ends_with("is a directory, not a file"), "{message}");
}

#[tokio::test]
async fn what_must_be_absent_is_removed_with_all_that_is_in_it() {
    let bench = Bench::new().await;
    bench.on_host("d/sub/x", "");
    symlink("nowhere", bench.host("dangling")).unwrap();
    assert!(bench.check("file: {path: HOST/d, state: absent}").await.unwrap().changed);
    let done = bench.run_twice("file: {path: HOST/d/, state: absent}").await;
    assert!(done.changed && !bench.host("d").exists());
    assert_eq!(value(&done.outcome, "state"), "absent");
    assert!(bench.run_twice("file: {path: HOST/dangling, state: absent}").await.changed);
}

#[tokio::test]
async fn touching_makes_an_empty_file_and_then_only_changes_its_times() {
    let bench = Bench::new().await;
    let done = bench.run("file: {path: HOST/x, state: touch, mode: '0600'}").await.unwrap();
    assert!(done.changed);
    assert_eq!((bench.text("x").as_str(), bench.mode("x")), ("", 0o600));
    assert!(bench.run("file: {path: HOST/x, state: touch}").await.unwrap().changed);
    let keep = "file: {path: HOST/x, state: touch, access_time: preserve, modification_time: preserve}";
    assert!(!bench.run(keep).await.unwrap().changed);
    let message = bench.failure("file: {path: HOST/no/x, state: touch}").await;
    assert!(message.ends_with("/no does not exist"), "{message}");
}

#[tokio::test]
async fn a_written_time_is_set_once() {
    let bench = Bench::new().await;
    bench.on_host("x", "");
    let task = "file: {path: HOST/x, modification_time: '202001020304.05', access_time: '2021-01-01', access_time_format: '%Y-%m-%d'}";
    let message = bench.failure(task).await;
    assert!(message.contains("does not have the form"), "{message}");
    let task = "file: {path: HOST/x, state: file, modification_time: '202001020304.05'}";
    assert!(bench.check(task).await.unwrap().changed);
    assert!(bench.run_twice(task).await.changed);
    let time = chrono::DateTime::from_timestamp(std::fs::metadata(bench.host("x")).unwrap().mtime(), 0).unwrap();
    assert_eq!(time.with_timezone(&chrono::Local).format("%Y%m%d%H%M.%S").to_string(), "202001020304.05");
}

#[tokio::test]
async fn a_symbolic_link_is_made_changed_and_left_alone() {
    let bench = Bench::new().await;
    bench.on_host("one", "");
    bench.on_host("two", "");
    let checked = bench.check("file: {src: HOST/one, path: HOST/link, state: link}").await.unwrap();
    assert!(checked.changed && checked.diff[0].after.contains("\"link\""));
    let done = bench.run_twice("file: {src: HOST/one, path: HOST/link, state: link}").await;
    assert_eq!(value(&done.outcome, "state"), "link");
    assert!(bench.run_twice("file: {src: two, path: HOST/link, state: link}").await.changed);
    assert_eq!(std::fs::read_link(bench.host("link")).unwrap().to_str(), Some("two"));
    let message = bench.failure("file: {src: none, path: HOST/other, state: link}").await;
    assert!(message.ends_with("no such file on the host"), "{message}");
    bench.run_twice("file: {src: none, path: HOST/other, state: link, force: true}").await;
    let message = bench.failure("file: {path: HOST/third, state: link}").await;
    assert!(message.starts_with("file: src is required"), "{message}");
}

#[tokio::test]
async fn a_link_replaces_a_file_only_by_force_and_a_full_directory_never() {
    let bench = Bench::new().await;
    bench.on_host("src", "");
    bench.on_host("file", "");
    bench.on_host("full/x", "");
    std::fs::create_dir(bench.host("empty")).unwrap();
    let message = bench.failure("file: {src: src, path: HOST/file, state: link}").await;
    assert!(message.starts_with("refusing to replace the file"), "{message}");
    bench.run_twice("file: {src: src, path: HOST/file, state: link, force: true}").await;
    bench.run_twice("file: {src: src, path: HOST/empty, state: link, force: true}").await;
    assert!(bench.host("empty").is_symlink());
    let message = bench.failure("file: {src: src, path: HOST/full, state: link, force: true}").await;
    assert!(message.ends_with("it is not empty"), "{message}");
}

#[tokio::test]
async fn the_mode_of_a_link_is_that_of_what_it_leads_to() {
    let bench = Bench::new().await;
    chmod(&bench.on_host("real", ""), 0o644);
    symlink("real", bench.host("link")).unwrap();
    bench.run_twice("file: {path: HOST/link, mode: '0600'}").await;
    assert!(bench.host("link").is_symlink());
    assert_eq!(bench.mode("real"), 0o600);
}

#[tokio::test]
async fn a_hard_link_shares_its_inode() {
    let bench = Bench::new().await;
    bench.on_host("one", "1");
    bench.on_host("two", "2");
    assert!(bench.check("file: {src: HOST/one, path: HOST/hard, state: hard}").await.unwrap().changed);
    let done = bench.run_twice("file: {src: HOST/one, path: HOST/hard, state: hard}").await;
    assert_eq!(value(&done.outcome, "state"), "hard");
    let inode = |name: &str| std::fs::metadata(bench.host(name)).unwrap().ino();
    assert_eq!(inode("one"), inode("hard"));
    let message = bench.failure("file: {src: HOST/two, path: HOST/hard, state: hard}").await;
    assert!(message.starts_with("refusing to replace"), "{message}");
    bench.run_twice("file: {src: HOST/two, path: HOST/hard, state: hard, force: true}").await;
    assert_eq!(inode("two"), inode("hard"));
}
