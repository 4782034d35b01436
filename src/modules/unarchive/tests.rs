//! Tests of `unarchive` against this machine.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::super::testing::{Bench, value};

/// Makes an archive of two files, one with an odd name, below `etcd-v1/`.
fn archive(bench: &Bench, name: &str, argv: &[&str]) {
    let work = bench.here("files/work");
    std::fs::create_dir_all(work.join("etcd-v1/sub")).unwrap();
    std::fs::write(work.join("etcd-v1/etcd"), "binary").unwrap();
    std::fs::set_permissions(work.join("etcd-v1/etcd"), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(work.join("etcd-v1/sub/a b"), "text").unwrap();
    let status =
        Command::new(argv[0]).args(&argv[1..]).arg(format!("../{name}")).arg("etcd-v1").current_dir(&work).status();
    assert!(status.unwrap().success());
    std::fs::remove_dir_all(&work).unwrap();
    std::fs::create_dir_all(bench.host("to")).unwrap();
}

#[tokio::test]
async fn an_archive_of_the_controller_is_unpacked_once() {
    let bench = Bench::new().await;
    archive(&bench, "x.tar.gz", &["tar", "-czf"]);
    let task = "unarchive: {src: x.tar.gz, dest: HOST/to, mode: 'u=rwX,go=', list_files: true}";
    assert!(bench.check(task).await.unwrap().outcome.skipped);
    let done = bench.run_twice(task).await;
    assert!(done.changed);
    assert_eq!((bench.text("to/etcd-v1/sub/a b").as_str(), bench.mode("to/etcd-v1/etcd")), ("text", 0o700));
    assert_eq!(value(&done.outcome, "handler"), "TgzArchive");
    assert!(value(&done.outcome, "files").contains("etcd-v1/sub/a b"));
    std::fs::write(bench.host("to/etcd-v1/etcd"), "broken").unwrap();
    assert!(bench.run_twice(task).await.changed);
    assert_eq!(bench.text("to/etcd-v1/etcd"), "binary");
}

#[tokio::test]
async fn the_directory_on_top_can_be_stripped_and_names_left_out() {
    let bench = Bench::new().await;
    archive(&bench, "x.tar", &["tar", "-cf"]);
    bench
        .run_twice("unarchive: {src: x.tar, dest: HOST/to, extra_opts: [--strip-components=1], exclude: [etcd-v1/sub]}")
        .await;
    assert_eq!(bench.text("to/etcd"), "binary");
    assert!(!bench.host("to/sub").exists());
}

#[tokio::test]
async fn an_archive_of_the_host_is_compared_in_check_mode() {
    let bench = Bench::new().await;
    archive(&bench, "x.tar.gz", &["tar", "-czf"]);
    std::fs::rename(bench.here("files/x.tar.gz"), bench.host("x.tar.gz")).unwrap();
    let task = "unarchive: {src: HOST/x.tar.gz, dest: HOST/to, remote_src: true, include: [etcd-v1/etcd]}";
    assert!(bench.check(task).await.unwrap().changed);
    assert!(bench.run_twice(task).await.changed);
    assert!(bench.host("to/etcd-v1/etcd").exists() && !bench.host("to/etcd-v1/sub").exists());
    assert!(!bench.check(task).await.unwrap().changed);
}

#[tokio::test]
async fn a_zip_archive_is_unpacked_once() {
    let bench = Bench::new().await;
    archive(&bench, "x.zip", &["zip", "-qr"]);
    std::fs::set_permissions(bench.host("to"), PermissionsExt::from_mode(0o751)).unwrap();
    let done = bench.run_twice("unarchive: {src: x.zip, dest: HOST/to}").await;
    assert!(done.changed);
    assert_eq!((bench.text("to/etcd-v1/sub/a b").as_str(), bench.mode("to")), ("text", 0o751));
    std::fs::write(bench.host("to/etcd-v1/etcd"), "broken").unwrap();
    assert!(bench.run("unarchive: {src: x.zip, dest: HOST/to}").await.unwrap().changed);
    assert_eq!(bench.text("to/etcd-v1/etcd"), "binary");
}

/// Needs root. A user whose directory it is puts links where the archive has files and directories.
#[tokio::test]
#[ignore = "needs root: cargo test --lib -- --ignored"]
async fn a_link_of_another_user_is_replaced_or_refused() {
    const NOBODY: u32 = 65534;
    let usual = std::env::var("PATH").unwrap();
    let programs = tempfile::tempdir().unwrap();
    // A mv that knows no -T, as on some systems.
    let script = format!("#!/bin/sh\ncase \" $* \" in *' -T '*) exit 1 ;; esac\nPATH='{usual}' exec mv \"$@\"\n");
    crate::value::testing::write_program(programs.path().join("mv"), script);
    for path in [usual.clone(), format!("{}:{usual}", programs.path().display())] {
        let bench = Bench::with_environment(&[("PATH", &path)]).await;
        archive(&bench, "x.zip", &["zip", "-qr"]);
        bench.on_host("secret", "root's");
        bench.on_host("of-root/etcd", "root's");
        std::fs::create_dir_all(bench.host("to/etcd-v1")).unwrap();
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(bench.host(to), bench.host(name)).unwrap();
            std::os::unix::fs::lchown(bench.host(name), Some(NOBODY), None).unwrap();
        };
        link("secret", "to/etcd-v1/etcd");
        bench.run_twice("unarchive: {src: x.zip, dest: HOST/to}").await;
        assert_eq!((bench.text("secret"), bench.text("to/etcd-v1/etcd")), ("root's".into(), "binary".into()));
        std::fs::remove_dir_all(bench.host("to/etcd-v1")).unwrap();
        link("of-root", "to/etcd-v1");
        let told = bench.failure("unarchive: {src: x.zip, dest: HOST/to}").await;
        assert!(told.contains("is a symbolic link of another user"), "{told}");
        assert_eq!(bench.text("of-root/etcd"), "root's");
        // Nothing of ours is left in the destination.
        assert_eq!(std::fs::read_dir(bench.host("to")).unwrap().count(), 1);
        bench.close().await;
    }
}

#[tokio::test]
async fn nothing_is_done_where_it_was_made_before() {
    let bench = Bench::new().await;
    archive(&bench, "x.tar", &["tar", "-cf"]);
    bench.on_host("to/done", "");
    let done = bench.run("unarchive: {src: x.tar, dest: HOST/to, creates: HOST/to/done}").await.unwrap();
    assert!(!done.changed && done.outcome.skipped);
    assert!(!bench.host("to/etcd-v1").exists());
}

#[tokio::test]
async fn a_name_that_is_not_utf8_is_refused_if_attributes_are_wanted() {
    let bench = Bench::new().await;
    let odd: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"caf\xe9");
    std::fs::create_dir_all(bench.here("files/odd")).unwrap();
    std::fs::write(bench.here("files/odd").join(odd), "x").unwrap();
    std::fs::create_dir_all(bench.host("to")).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(bench.here("files/odd.tar")).arg("-C").arg(bench.here("files")).arg("odd");
    assert!(tar.status().unwrap().success());
    let message = bench.failure("unarchive: {src: odd.tar, dest: HOST/to, mode: '0600'}").await;
    assert!(message.ends_with("the name in the archive is not UTF-8"), "{message}");
    assert!(!bench.host("to/odd").exists());
    bench.run_twice("unarchive: {src: odd.tar, dest: HOST/to}").await;
    assert!(bench.host("to/odd").join(odd).exists());
}

#[tokio::test]
async fn what_cannot_be_unpacked_is_said() {
    let bench = Bench::new().await;
    archive(&bench, "x.tar", &["tar", "-cf"]);
    let message = bench.failure("unarchive: {src: x.tar, dest: HOST/none}").await;
    assert!(message.ends_with("it must be a directory that exists"), "{message}");
    bench.on_controller("files/bad.tar", "this is no archive");
    let message = bench.failure("unarchive: {src: bad.tar, dest: HOST/to}").await;
    assert!(message.starts_with("cannot list "), "{message}");
    bench.on_controller("files/empty", "");
    let message = bench.failure("unarchive: {src: empty, dest: HOST/to}").await;
    assert!(message.ends_with("it is empty"), "{message}");
    let message = bench.failure("unarchive: {src: 'https://example.org/x.tar', dest: HOST/to}").await;
    assert!(message.ends_with("it is a URL, not a file"), "{message}");
}

#[test]
fn what_changed_since_is_removed_with_the_find_of_busybox_too() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let programs = at("programs");
    std::fs::create_dir(&programs).unwrap();
    let usual = std::env::var("PATH").unwrap();
    for (find, path) in [("GNU", usual.clone()), ("busybox", format!("{}:{usual}", programs.display()))] {
        if find == "busybox" {
            let refuses = "#!/bin/sh\necho 'find: unrecognized: -cnewer' >&2\nexit 1\n";
            std::fs::write(programs.join("find"), refuses).unwrap();
            std::fs::set_permissions(programs.join("find"), PermissionsExt::from_mode(0o755)).unwrap();
        }
        std::fs::write(at("before"), "").unwrap();
        // The clock of files has steps, and busybox counts whole seconds.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        std::fs::write(at("begun"), "").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(at("after"), "").unwrap();
        let arguments = ["begun", "before", "after", "none"].map(at);
        let mut command = Command::new("sh");
        command.args(["-c", super::archive::REMOVE_NEWER, "sh"]).args(arguments).env("PATH", path);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{find}: {output:?}");
        assert_eq!((at("before").exists(), at("after").exists()), (true, false), "{find}");
    }
}

#[tokio::test]
async fn a_zip_archive_that_was_not_compared_is_not_taken_as_unpacked() {
    let programs = tempfile::tempdir().unwrap();
    let usual = std::env::var("PATH").unwrap();
    let bench = Bench::with_environment(&[("PATH", &format!("{}:{usual}", programs.path().display()))]).await;
    archive(&bench, "x.zip", &["zip", "-qr"]);
    let script =
        format!("#!/bin/sh\ncase \"$*\" in *'echo differs'*) kill -KILL $$ ;; esac\nPATH='{usual}' exec find \"$@\"\n");
    crate::value::testing::write_program(programs.path().join("find"), script);
    let message = bench.failure("unarchive: {src: x.zip, dest: HOST/to}").await;
    assert!(message.contains("cannot unpack") && message.contains("exit code 137"), "{message}");
    bench.close().await;
}

/// A tar that is killed, as by a kernel without memory, or that ends with an unknown code, while it compares.
#[tokio::test]
async fn an_archive_that_was_not_compared_is_not_taken_as_unpacked() {
    let programs = tempfile::tempdir().unwrap();
    let usual = std::env::var("PATH").unwrap();
    let path = format!("{}:{usual}", programs.path().display());
    for (ends, words) in [("kill -KILL $$", "(tar ended with code 137)"), ("exit 2", "(tar ended with code 2)")] {
        let bench = Bench::with_environment(&[("PATH", &path)]).await;
        archive(&bench, "x.tar", &["tar", "-cf"]);
        let script = format!("#!/bin/sh\ncase \"$*\" in *--diff*) {ends} ;; esac\nPATH='{usual}' exec tar \"$@\"\n");
        crate::value::testing::write_program(programs.path().join("tar"), script);
        let message = bench.failure("unarchive: {src: x.tar, dest: HOST/to}").await;
        assert!(message.contains("cannot compare") && message.ends_with(words), "{message}");
        bench.close().await;
    }
}
