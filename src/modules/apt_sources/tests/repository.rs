//! Lists of sources in a directory that apt's configuration names.

use crate::modules::testing::{Bench, cannot_run, value};

/// A host whose apt looks into its own directory, and an `apt-get` that succeeds unless the lists name `broken`.
pub(super) async fn host() -> Option<(Bench, tempfile::TempDir)> {
    if !std::path::Path::new("/usr/bin/apt-config").exists() {
        cannot_run("this machine has no apt");
        return None;
    }
    let directory = tempfile::Builder::new().prefix("windlass-apt-").tempdir().unwrap();
    let at = directory.path().to_str().unwrap();
    let etc = directory.path().join("etc");
    std::fs::create_dir_all(etc.join("sources.list.d")).unwrap();
    std::fs::write(directory.path().join("apt.conf"), format!("Dir::Etc \"{at}/etc\";\n")).unwrap();
    let program = directory.path().join("apt-get");
    let script = format!("#!/bin/sh\necho \"$*\" >>{at}/log\n! grep -qs broken {at}/etc/sources.list.d/*\n");
    crate::value::testing::write_program(&program, script);
    let path = format!("{at}:{}", std::env::var("PATH").unwrap());
    let bench = Bench::with_environment(&[("PATH", &path), ("APT_CONFIG", &format!("{at}/apt.conf"))]).await;
    Some((bench, directory))
}

#[tokio::test]
async fn a_source_is_added_once_enabled_and_removed() {
    let Some((bench, directory)) = host().await else { return };
    let text = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap_or_default();
    let task = "apt_repository: {repo: 'deb  http://d.example.org/x ./', mode: '0600'}";
    let checked = bench.check(task).await.unwrap();
    assert!(checked.changed && text("etc/sources.list.d/d_example_org_x.list").is_empty() && text("log").is_empty());
    let done = bench.run(task).await.unwrap();
    assert_eq!(checked.diff, done.diff);
    assert_eq!(text("etc/sources.list.d/d_example_org_x.list"), "deb http://d.example.org/x ./\n");
    assert!(value(&done.outcome, "sources_added").ends_with("/etc/sources.list.d/d_example_org_x.list']"));
    assert_eq!(text("log").lines().count(), 1);
    assert!(!bench.run(task).await.unwrap().changed);
    // Another file may have it, off.
    std::fs::write(directory.path().join("etc/sources.list"), "# a comment\n# deb http://e ./\n").unwrap();
    assert!(bench.run("apt_repository: {repo: 'deb http://e ./', update_cache: false}").await.unwrap().changed);
    assert_eq!(text("etc/sources.list"), "# a comment\ndeb http://e ./\n");
    let done = bench.run("apt_repository: {repo: 'deb http://d.example.org/x ./', state: absent}").await.unwrap();
    assert!(done.changed && value(&done.outcome, "sources_removed").contains("d_example_org_x.list"));
    assert!(!directory.path().join("etc/sources.list.d/d_example_org_x.list").exists());
    assert!(
        !bench.run("apt_repository: {repo: 'deb http://d.example.org/x ./', state: absent}").await.unwrap().changed
    );
    bench.close().await;
}

#[tokio::test]
async fn a_source_that_cannot_be_used_is_taken_back() {
    let Some((bench, directory)) = host().await else { return };
    let task = "apt_repository: {repo: deb http://broken ./, filename: own, update_cache_retries: 2, update_cache_retry_max_delay: 0}";
    let message = bench.failure(task).await;
    assert!(message.starts_with("apt-get") && message.contains("update failed with code 1"), "{message}");
    assert!(!directory.path().join("etc/sources.list.d/own.list").exists());
    assert_eq!(std::fs::read_to_string(directory.path().join("log")).unwrap().lines().count(), 2);
    bench.close().await;
}

#[tokio::test]
async fn what_is_no_source_is_refused() {
    let Some((bench, _directory)) = host().await else { return };
    assert!(bench.failure("apt_repository: {repo: http://d ./}").await.contains("must start with deb or deb-src"));
    assert!(bench.failure("apt_repository: {repo: 'ppa:a/b'}").await.contains("ppa: is not supported"));
    bench.close().await;
}
