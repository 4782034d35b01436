//! Between two directories of this machine.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::modules::testing::{Bench, value};

/// A tree with odd names, links, empty directories and a script.
fn fill(bench: &Bench, side: &str) {
    let on = |name: &str, content: &str| match side {
        "host" => bench.on_host(name, content),
        _ => bench.on_controller(name, content),
    };
    on("src/a", "one");
    on("src/sub/b c", "two");
    on("src/sub/new\nline", "three");
    on("src/-rf", "four");
    on("src/it's", "five");
    let script = on("src/run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o750)).unwrap();
    let top = script.parent().unwrap();
    std::fs::create_dir(top.join("empty")).unwrap();
    symlink("sub/b c", top.join("link")).unwrap();
    symlink("/nowhere", top.join("broken")).unwrap();
    std::fs::create_dir(top.join(format!("long-{}", "x".repeat(200)))).unwrap();
    std::fs::write(top.join(format!("long-{0}/{0}", "x".repeat(200)).replace("/x", "/y")), "long").unwrap();
}

/// The content of a directory, with times, as `find` prints it. The size of a directory depends on the file system.
fn listing(top: &Path) -> String {
    let find =
        ["(", "-type", "d", "-printf", "%p %y %m %U:%G %Ts//", ")", "-o", "-printf", "%p %y %m %U:%G %Ts %l %s//"];
    let output = std::process::Command::new("find").current_dir(top).arg(".").args(find).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // A link's own time is not kept.
    let mut lines: Vec<&str> = text.split("//").filter(|line| !line.contains(" l ")).collect();
    assert!(lines.len() > 1, "nothing in {}", top.display());
    lines.sort_unstable();
    lines.join("\n")
}

#[tokio::test]
async fn a_pushed_tree_is_the_same_and_the_second_run_changes_nothing() {
    let bench = Bench::new().await;
    fill(&bench, "here");
    let task = "ansible.posix.synchronize: {src: HERE/src/, dest: HOST/dest}";
    assert!(bench.check(task).await.unwrap().changed);
    let done = bench.run_twice(task).await;
    assert!(done.diff[0].after.contains("<f+++++++++ sub/b c\n"), "{}", done.diff[0].after);
    assert_eq!(listing(&bench.here("src")), listing(&bench.host("dest")));
    assert_eq!(bench.text("dest/sub/new\nline"), "three");
    bench.close().await;
}

#[tokio::test]
async fn a_pulled_tree_is_the_same_and_the_second_run_changes_nothing() {
    let bench = Bench::new().await;
    fill(&bench, "host");
    std::fs::hard_link(bench.host("src/a"), bench.host("src/sub/hard")).unwrap();
    let task = "synchronize: {mode: pull, src: HOST/src, dest: HERE/dest}";
    assert!(bench.check(task).await.unwrap().changed);
    let done = bench.run_twice(task).await;
    assert!(value(&done.outcome, "stdout_lines").contains(">f+++++++++ run.sh"));
    assert_eq!(listing(&bench.here("dest/src")), listing(&bench.host("src")));
    bench.close().await;
}

#[tokio::test]
async fn only_what_differs_is_sent_and_only_what_is_asked_removed() {
    let bench = Bench::new().await;
    fill(&bench, "here");
    let task = |more: &str| format!("synchronize: {{src: HERE/src/, dest: HOST/dest{more}}}");
    bench.run(&task("")).await.unwrap();
    bench.on_controller("src/a", "changed");
    bench.on_host("dest/mine/deep", "");
    bench.on_host("dest/kept.log", "");
    std::fs::remove_file(bench.host("dest/link")).unwrap();
    std::fs::create_dir(bench.host("dest/link")).unwrap();
    let done = bench.run_twice(&task("")).await;
    let lines = value(&done.outcome, "stdout_lines");
    assert!(lines.contains("<f.s") && lines.contains("cL+++++++++ link -> sub/b c"), "{lines}");
    assert!(!lines.contains("run.sh") && bench.host("dest/mine/deep").exists());
    let delete = task(", delete: true, rsync_opts: ['--exclude=*.log']");
    assert!(bench.check(&delete).await.unwrap().changed);
    let done = bench.run_twice(&delete).await;
    assert!(value(&done.outcome, "stdout_lines").contains("*deleting   mine/"));
    assert!(!bench.host("dest/mine").exists() && bench.host("dest/kept.log").exists());
    bench.run_twice(&task(", delete: true")).await;
    assert_eq!(listing(&bench.here("src")), listing(&bench.host("dest")));
    bench.close().await;
}

#[tokio::test]
async fn a_pull_removes_and_mends_too() {
    let bench = Bench::new().await;
    fill(&bench, "host");
    let task = "synchronize: {mode: pull, src: HOST/src/, dest: HERE/dest, delete: true}";
    bench.run(task).await.unwrap();
    bench.on_host("src/a", "changed");
    bench.on_controller("dest/mine/deep", "");
    std::fs::remove_dir(bench.here("dest/empty")).unwrap();
    std::fs::write(bench.here("dest/empty"), "in the way").unwrap();
    std::fs::set_permissions(bench.here("dest/run.sh"), std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(bench.check(task).await.unwrap().changed);
    let lines = value(&bench.run_twice(task).await.outcome, "stdout_lines");
    assert!(lines.contains(".f...p..... run.sh") && lines.contains("*deleting   mine/"), "{lines}");
    assert_eq!(listing(&bench.here("dest")), listing(&bench.host("src")));
    bench.close().await;
}

#[tokio::test]
async fn contents_are_compared_where_times_cannot_tell() {
    let bench = Bench::new().await;
    bench.on_controller("src/a", "one");
    let task = |more: &str| format!("synchronize: {{src: HERE/src/, dest: HOST/dest, {more}}}");
    bench.run(&task("times: false")).await.unwrap();
    assert!(!bench.run(&task("times: false")).await.unwrap().changed);
    bench.run(&task("times: true")).await.unwrap();
    // The same size and time, another content.
    let time = std::fs::metadata(bench.host("dest/a")).unwrap().modified().unwrap();
    bench.on_host("dest/a", "two");
    std::fs::File::options().write(true).open(bench.host("dest/a")).unwrap().set_modified(time).unwrap();
    assert!(!bench.run(&task("times: true")).await.unwrap().changed);
    assert!(bench.run_twice(&task("checksum: true")).await.changed);
    assert_eq!(bench.text("dest/a"), "one");
    bench.close().await;
}

#[tokio::test]
async fn files_and_directories_go_where_slashes_say() {
    let bench = Bench::new().await;
    bench.on_controller("src/a", "one");
    std::fs::create_dir(bench.host("there")).unwrap();
    for (src, dest, path) in [
        ("src", "whole", "whole/src/a"),
        ("src/", "contents", "contents/a"),
        ("src/a", "there", "there/a"),
        ("src/a", "renamed", "renamed"),
        ("src/a", "new/", "new/a"),
    ] {
        bench.run_twice(&format!("synchronize: {{src: HERE/{src}, dest: HOST/{dest}}}")).await;
        assert_eq!(bench.text(path), "one", "{src} {dest}");
        let back = path.replace('/', "-");
        bench.run_twice(&format!("synchronize: {{mode: pull, src: HOST/{path}, dest: HERE/back-{back}}}")).await;
        assert_eq!(std::fs::read_to_string(bench.here(&format!("back-{back}"))).unwrap(), "one");
    }
    let done = bench.run("synchronize: {src: HERE/src, dest: HOST/flat, archive: false}").await.unwrap();
    assert!(!done.changed && !bench.host("flat").exists());
    bench.close().await;
}

#[tokio::test]
async fn a_link_at_the_destination_is_never_written_through() {
    let bench = Bench::new().await;
    bench.on_controller("src/sub/a", "one");
    bench.on_host("elsewhere/a", "old");
    std::fs::create_dir(bench.host("dest")).unwrap();
    symlink("../elsewhere", bench.host("dest/sub")).unwrap();
    bench.run_twice("synchronize: {src: HERE/src/, dest: HOST/dest}").await;
    assert_eq!((bench.text("elsewhere/a"), bench.text("dest/sub/a")), ("old".to_owned(), "one".to_owned()));
    bench.close().await;
}

#[tokio::test]
async fn large_files_and_what_links_lead_to_come_whole() {
    let bench = Bench::new().await;
    bench.on_controller("src/big", vec![b'x'; 5 << 20]);
    symlink("big", bench.here("src/link")).unwrap();
    bench.run_twice("synchronize: {src: HERE/src/, dest: HOST/dest, copy_links: true}").await;
    assert!(!bench.host("dest/link").is_symlink() && bench.text("dest/link").len() == 5 << 20);
    bench.run_twice("synchronize: {mode: pull, src: HOST/dest/, dest: HERE/back}").await;
    assert_eq!(listing(&bench.here("back")), listing(&bench.host("dest")));
    bench.close().await;
}

#[tokio::test]
async fn thousands_of_files_go_in_a_few_requests() {
    let bench = Bench::new().await;
    for number in 0..5_000 {
        let path = bench.here(&format!("src/{}/{number}", number % 20));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{number}")).unwrap();
    }
    let before = bench.requests();
    bench.run("synchronize: {src: HERE/src/, dest: HOST/dest}").await.unwrap();
    assert_eq!(listing(&bench.here("src")), listing(&bench.host("dest")));
    let requests = bench.requests() - before;
    assert!((1..50).contains(&requests), "5,000 files took {requests} requests");
    assert!(!bench.run("synchronize: {src: HERE/src/, dest: HOST/dest}").await.unwrap().changed);
    bench.close().await;
}

#[tokio::test]
async fn what_is_not_honoured_is_refused() {
    let bench = Bench::new().await;
    bench.on_controller("src/a", "one");
    bench.on_controller("rules/.rsync-filter", "");
    bench.on_host("file", "");
    bench.on_host("full/a/b", "");
    for (arguments, message) in [
        (
            "src: HERE/src/, dest: HOST/d, rsync_opts: [--bwlimit=5]",
            "rsync_opts has \"--bwlimit\", which windlass does not support",
        ),
        ("src: HERE/src/, dest: HOST/d, archive: false, delete: true", "delete needs recursive"),
        ("src: HERE/src/, dest: HOST/no/such/d", "the directory HOST/no/such does not exist on the host"),
        ("src: HERE/src/, dest: HOST/file", "HOST/file: it is not a directory"),
        ("src: HERE/rules/, dest: HOST/d", "filter rules in .rsync-filter are not supported"),
        ("src: HERE/src/, dest: HOST/full", "a directory with this name is not empty"),
        ("mode: pull, src: HOST/none, dest: HERE/d", "no such file on the host: HOST/none"),
    ] {
        let said = bench.failure(&format!("synchronize: {{{arguments}}}")).await;
        let message = message.replace("HOST", bench.host("").to_str().unwrap().trim_end_matches('/'));
        assert!(said.contains(&message), "{said}");
    }
    assert!(!bench.host("d").exists());
    bench.close().await;
}

#[tokio::test]
async fn a_directory_with_a_name_that_is_not_utf8_is_not_removed() {
    let bench = Bench::new().await;
    bench.on_controller("src/x", "a file");
    let odd: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"caf\xe9");
    std::fs::create_dir_all(bench.host("dst/x")).unwrap();
    std::fs::write(bench.host("dst/x").join(odd), "kept").unwrap();
    for options in ["", ", delete: true"] {
        let task = format!("synchronize: {{src: {}/, dest: HOST/dst/{options}}}", bench.here("src").display());
        let message = bench.failure(&task).await;
        assert!(message.contains("is not UTF-8"), "{message}");
    }
    assert!(bench.host("dst/x").join(odd).exists());
}

/// As the owner of the destination: the directory of a request is exchanged between two programs of the request.
#[tokio::test]
async fn what_is_put_in_the_place_of_the_directory_of_a_request_is_not_used() {
    let programs = tempfile::tempdir().unwrap();
    let usual = std::env::var("PATH").unwrap();
    let path = format!("{}:{usual}", programs.path().display());
    let bench = Bench::with_environment(&[("PATH", &path)]).await;
    bench.on_controller("src/a", "one");
    bench.on_host("dest/b", "two");
    bench.on_host("private/c", "three");
    std::fs::remove_file(bench.host("private/c")).unwrap();
    std::fs::set_permissions(bench.host("private"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let ran = bench.host("ran");
    for (program, exchange, words) in [
        ("tar", format!("mkdir \"$stage\"; echo 'touch {}' >\"$stage/script\"", ran.display()), "Directory not empty"),
        ("mkdir", format!("ln -s {} \"$stage\"", bench.host("private").display()), "is not this user's alone"),
    ] {
        let script = format!(
            "#!/bin/sh\nPATH='{usual}'\n{program} \"$@\" || exit\nfor stage in {}/.windlass.*; do\n\
             [ -d \"$stage\" ] || continue\nmv \"$stage\" \"$stage.away\"\n{exchange}\ndone\n",
            bench.host("dest").display(),
        );
        let file = programs.path().join(program);
        crate::value::testing::write_program(&file, script);
        let message = bench.failure("synchronize: {src: HERE/src/, dest: HOST/dest}").await;
        assert!(message.contains(words), "{message}");
        assert!(!ran.exists(), "a script of the owner of the destination was run");
        assert!(std::fs::read_dir(bench.host("private")).unwrap().next().is_none());
        std::fs::remove_file(file).unwrap();
        let tidy = ["-c", "rm -rf .windlass.* a"];
        assert!(
            std::process::Command::new("sh").args(tidy).current_dir(bench.host("dest")).status().unwrap().success()
        );
    }
    bench.run_twice("synchronize: {src: HERE/src/, dest: HOST/dest}").await;
    assert_eq!(bench.text("dest/a"), "one");
    bench.close().await;
}

/// An archive of a host: a file that was asked for, the same again, one that was not asked for, and links to the first.
#[test]
fn of_an_archive_only_what_was_asked_for_is_unpacked_and_once() {
    let mut archive = tar::Builder::new(Vec::new());
    let mut put = |name: &str, content: &str| {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, name, content.as_bytes()).unwrap();
    };
    put("./a", "one");
    put("./a", "two");
    put("./b", "three");
    for name in ["./c", "./d"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Link);
        header.set_size(0);
        archive.append_link(&mut header, name, "./a").unwrap();
    }
    let bytes = archive.into_inner().unwrap();
    let stage = tempfile::tempdir().unwrap();
    let came = super::pull::unpack(&bytes, stage.path(), &["a", "c"].into()).unwrap();
    let mut names: Vec<&String> = came.keys().collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "c"]);
    assert!(came.values().all(|path| std::fs::read_to_string(path).unwrap() == "one"));
    assert_eq!(std::fs::read_dir(stage.path()).unwrap().count(), 2);
}
