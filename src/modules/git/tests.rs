//! With repositories of this machine.

use std::path::Path;
use std::process::Command;

use crate::modules::testing::{Bench, value};

/// Runs git in a directory; gives what it says.
fn git(directory: &Path, line: &str) -> String {
    let identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"];
    let words = shlex::split(line).unwrap();
    let output = Command::new("git").current_dir(directory).args(identity).args(words).output().unwrap();
    assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with a commit, a branch and a tag, beside the host's directory.
fn repository(bench: &Bench) -> std::path::PathBuf {
    let path = bench.here("repo");
    std::fs::create_dir(&path).unwrap();
    git(&path, "init -q -b main");
    commit(&path, "one");
    git(&path, "tag -a v1 -m v1");
    git(&path, "branch other");
    path
}

fn commit(repository: &Path, content: &str) -> String {
    std::fs::write(repository.join("file"), content).unwrap();
    git(repository, "add -A");
    git(repository, &format!("commit -q -m '{content}'"));
    git(repository, "rev-parse HEAD")
}

fn task(more: &str) -> String {
    format!("git: {{repo: HERE/repo, dest: HOST/d/clone{more}}}")
}

#[tokio::test]
async fn second_run_changes_nothing_and_a_new_commit_is_fetched() {
    let bench = Bench::new().await;
    let path = repository(&bench);
    let first = git(&path, "rev-parse HEAD");
    let reported = bench.check(&task("")).await.unwrap();
    assert!(reported.changed);
    assert_eq!(value(&reported.outcome, "after"), first);
    let done = bench.run_twice(&task("")).await;
    assert_eq!((value(&done.outcome, "before"), value(&done.outcome, "after")), ("None".to_owned(), first.clone()));
    assert_eq!(bench.text("d/clone/file"), "one");
    let second = commit(&path, "two");
    let reported = bench.check(&task("")).await.unwrap();
    assert_eq!((reported.changed, value(&reported.outcome, "after")), (true, second.clone()));
    assert_eq!((reported.diff[0].before.trim(), reported.diff[0].after.trim()), (first.as_str(), second.as_str()));
    assert!(!bench.run(&task(", update: false")).await.unwrap().changed);
    let done = bench.run_twice(&task("")).await;
    assert_eq!((value(&done.outcome, "before"), value(&done.outcome, "after")), (first, second));
    assert_eq!(bench.text("d/clone/file"), "two");
    bench.close().await;
}

#[tokio::test]
async fn branches_tags_and_commits_are_versions() {
    let bench = Bench::new().await;
    let path = repository(&bench);
    let first = git(&path, "rev-parse HEAD");
    let second = commit(&path, "two");
    for (version, content) in [("v1", "one"), ("main", "two"), (&first, "one"), ("other", "one"), (&second, "two")] {
        bench.run_twice(&task(&format!(", version: '{version}'"))).await;
        assert_eq!(bench.text("d/clone/file"), content, "{version}");
    }
    let message = bench.failure(&task(", version: no-such")).await;
    assert!(message.starts_with("could not find no-such in what was fetched from "), "{message}");
    bench.close().await;
}

#[tokio::test]
async fn what_was_changed_by_hand_is_only_thrown_away_if_asked() {
    let bench = Bench::new().await;
    repository(&bench);
    bench.run(&task("")).await.unwrap();
    bench.on_host("d/clone/file", "mine");
    bench.on_host("d/clone/untracked", "mine");
    assert!(bench.failure(&task("")).await.starts_with("Local modifications exist in the destination: "));
    assert_eq!(bench.text("d/clone/file"), "mine");
    assert!(bench.check(&task(", force: true")).await.unwrap().changed);
    assert!(bench.run_twice(&task(", force: true")).await.changed);
    assert_eq!((bench.text("d/clone/file"), bench.text("d/clone/untracked")), ("one".to_owned(), "mine".to_owned()));
    bench.close().await;
}

#[tokio::test]
async fn shallow_single_bare_and_separate_clones_are_made_and_kept() {
    let bench = Bench::new().await;
    let path = repository(&bench);
    commit(&path, "two");
    bench.run_twice(&task(", depth: 1, version: main")).await;
    assert_eq!(git(&bench.host("d/clone"), "rev-list --count HEAD"), "1");
    commit(&path, "three");
    assert!(bench.run_twice(&task(", depth: 1, version: main")).await.changed);
    bench.run_twice(&task(", depth: 1, version: other")).await;
    assert_eq!(bench.text("d/clone/file"), "one");
    let other = |more: &str| format!("git: {{repo: HERE/repo, dest: HOST/other{more}}}");
    bench.run_twice(&other(", single_branch: true, version: other")).await;
    bench.run_twice(&other(", version: main, umask: '077'")).await;
    assert_eq!((bench.text("other/file"), bench.mode("other/file")), ("three".to_owned(), 0o600));
    let moved = bench.run_twice(&other(", version: main, separate_git_dir: HOST/apart")).await;
    assert!(moved.changed && bench.host("apart/config").exists() && bench.host("other/.git").is_file());
    let bare = "git: {repo: HERE/repo, dest: HOST/bare, bare: true}";
    bench.run_twice(bare).await;
    let last = commit(&path, "four");
    assert!(bench.run_twice(bare).await.changed);
    assert_eq!(git(&bench.host("bare"), "rev-parse main"), last);
    bench.close().await;
}

#[tokio::test]
async fn another_address_and_an_archive_are_changes() {
    let bench = Bench::new().await;
    let path = repository(&bench);
    bench.run(&task("")).await.unwrap();
    git(&bench.here(""), "clone -q repo again");
    let moved = bench.run_twice("git: {repo: HERE/again, dest: HOST/d/clone}").await;
    assert_eq!((moved.changed, value(&moved.outcome, "remote_url_changed")), (true, "True".to_owned()));
    bench.run(&task("")).await.unwrap();
    let archive = task(", archive: HOST/a.tar.gz, archive_prefix: x/");
    assert!(bench.check(&archive).await.unwrap().changed);
    assert!(bench.run_twice(&archive).await.changed);
    let listed = Command::new("tar").args(["-tzf"]).arg(bench.host("a.tar.gz")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "x/\nx/file\n");
    commit(&path, "two");
    assert!(bench.run_twice(&archive).await.changed);
    assert!(bench.failure(&task(", archive: HOST/a.rar")).await.contains("cannot create the archive"));
    bench.close().await;
}

#[tokio::test]
async fn an_archive_in_the_place_of_a_link_has_nothing_of_its_target() {
    let bench = Bench::new().await;
    repository(&bench);
    bench.on_host("program", "");
    std::fs::set_permissions(bench.host("program"), std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
    std::os::unix::fs::symlink("program", bench.host("a.tar")).unwrap();
    std::fs::hard_link(bench.host("program"), bench.host("b.tar")).unwrap();
    for name in ["a.tar", "b.tar"] {
        bench.run(&task(&format!(", archive: HOST/{name}"))).await.unwrap();
        assert!(!bench.host(name).is_symlink() && bench.mode(name) & 0o7000 == 0, "{name}: {:o}", bench.mode(name));
    }
    assert_eq!(bench.mode("program"), 0o4755);
    bench.close().await;
}

#[tokio::test]
async fn submodules_are_brought_along() {
    let bench = Bench::new().await;
    let path = repository(&bench);
    let part = bench.here("part");
    std::fs::create_dir(&part).unwrap();
    git(&part, "init -q -b main");
    commit(&part, "part one");
    git(&path, &format!("submodule --quiet add {} part", part.display()));
    commit(&path, "with part");
    let allowed = "protocol.file.allow=always";
    bench.on_host("git", format!("#!/bin/sh\nexec git -c {allowed} \"$@\"\n"));
    Command::new("chmod").arg("755").arg(bench.host("git")).status().unwrap();
    let with = |more: &str| task(&format!(", executable: HOST/git{more}"));
    let done = bench.run_twice(&with("")).await;
    assert_eq!(
        (value(&done.outcome, "submodules_changed"), bench.text("d/clone/part/file")),
        ("True".into(), "part one".into())
    );
    commit(&part, "part two");
    assert!(!bench.run(&with("")).await.unwrap().changed);
    assert!(bench.run(&with(", track_submodules: true")).await.unwrap().changed);
    assert_eq!(bench.text("d/clone/part/file"), "part two");
    bench.close().await;
}

#[tokio::test]
async fn what_is_wrong_is_reported_and_nothing_is_made() {
    let bench = Bench::new().await;
    repository(&bench);
    for (arguments, message) in [
        (", version: '--upload-pack=x'", "git: version must not be \"--upload-pack=x\""),
        (", bare: true, separate_git_dir: /x", "git: separate_git_dir and bare cannot both be given"),
        (", umask: '9'", "git: umask must be an octal number in quotes"),
        (", verify_commit: true", "failed to verify the signature of "),
    ] {
        let said = bench.failure(&task(arguments)).await;
        assert!(said.starts_with(message), "{said}");
    }
    assert!(!bench.host("d/clone/file").exists(), "an unsigned commit was laid out");
    let lost = bench.failure("git: {repo: HERE/no, dest: HOST/x}").await;
    assert!(lost.starts_with("git ls-remote failed with code 128: "), "{lost}");
    bench.on_host("full/file", "");
    assert!(
        bench
            .failure("git: {repo: HERE/repo, dest: HOST/full}")
            .await
            .ends_with("the directory is not empty and not a git repository")
    );
    bench.close().await;
}

#[tokio::test]
async fn without_clone_the_repository_is_only_asked() {
    let bench = Bench::new().await;
    let path = repository(&bench);
    let done = bench.run("git: {repo: HERE/repo, clone: false, version: v1}").await.unwrap();
    assert_eq!(value(&done.outcome, "after"), git(&path, "rev-parse v1^{commit}"));
    assert!(!bench.host("d").exists());
    bench.close().await;
}

/// A git that verifies each signature that is there, and after whose first `ls-remote` somebody pushes a commit without one.
#[tokio::test]
async fn what_is_checked_out_is_what_was_verified() {
    let bench = Bench::new().await;
    let path = repository(&bench);
    let (signer, wrapper) = (bench.here("signer"), bench.here("git"));
    // It reads what it is given to the end, as gpg does: git takes a closed pipe for a failure.
    let script = |path: &Path, text: String| crate::value::testing::write_program(path, text);
    script(
        &signer,
        "#!/bin/sh\ncase $* in\n*--verify*) cat >/dev/null; echo '[GNUPG:] NEWSIG'; echo '[GNUPG:] GOODSIG K T'; echo '[GNUPG:] VALIDSIG K' ;;\n*) cat >/dev/null; echo '[GNUPG:] SIG_CREATED ' >&2\n\
         printf '%s\\n\\nx\\n%s\\n' '-----BEGIN PGP SIGNATURE-----' '-----END PGP SIGNATURE-----' ;;\nesac\n"
            .to_owned(),
    );
    let program = format!("-c gpg.program={}", signer.display());
    std::fs::write(path.join("file"), "signed").unwrap();
    git(&path, &format!("{program} commit -q -a -S -m signed"));
    git(&path, &format!("{program} tag -s -m signed v2"));
    // A branch of the tag's name, which git would prefer, without a signature.
    let signed = git(&path, "rev-parse HEAD");
    git(&path, "checkout -q -b later");
    commit(&path, "branch");
    git(&path, "checkout -q main");
    script(
        &wrapper,
        format!(
            "#!/bin/sh\ngit {program} \"$@\" || exit\ncase \" $* \" in\n*' ls-remote '*) cd '{0}' && [ ! -e ../pushed ] && touch ../pushed || exit 0\n\
             echo evil >file; git -c user.name=T -c user.email=t commit -q -a -m evil; git branch v2 later ;;\nesac\n",
            path.display()
        ),
    );
    let checked = |version: &str| task(&format!(", version: {version}, verify_commit: true, executable: HERE/git"));
    let told = bench.failure(&checked("main")).await;
    assert!(told.contains("failed to verify the signature"), "{told}");
    assert_ne!(std::fs::read_to_string(bench.host("d/clone/file")).unwrap_or_default(), "evil\n");
    git(&path, &format!("reset -q --hard {signed}"));
    git(&path, "branch -D v2");
    std::fs::remove_dir_all(bench.host("d")).unwrap();
    std::fs::remove_file(bench.here("pushed")).unwrap();
    bench.run(&checked("v2")).await.unwrap();
    assert_eq!(bench.text("d/clone/file"), "signed");
    bench.close().await;
}
