//! Accounts of `windlass serve`, as a person creates them on the command line and at a terminal.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const PASSWORD: &str = "seven green boats wait";

fn windlass(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.env("NO_COLOR", "1").env("WINDLASS_RUNS", "true").env("WINDLASS_RUNS_DIRECTORY", directory.join("runs"));
    command.current_dir(directory).stdin(Stdio::null());
    command
}

/// What a command prints, with its exit code.
fn say(directory: &Path, arguments: &[&str]) -> (i32, String) {
    let output = windlass(directory).args(["serve"]).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout) + &text(&output.stderr))
}

fn write_password(directory: &Path, password: &str) {
    let path = directory.join("password");
    std::fs::write(&path, format!("{password}\nanother line\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn accounts_are_added_listed_changed_and_removed() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let add = |name: &str, right: &str| {
        say(directory, &["user", "add", name, "--right", right, "--password-file", "password"])
    };
    write_password(directory, PASSWORD);
    assert_eq!(add("alice", "see=prod"), (0, "created the account alice\n".to_owned()));
    let (code, said) = add("alice", "see=prod");
    assert!(code != 0 && said.contains("there is an account alice already"), "{said}");
    for name in ["Alice", "token ci", "a\u{301}lice", ""] {
        let (code, said) = add(name, "see=prod");
        assert!(code != 0 && said.contains("is no name of an account"), "{name}: {said}");
    }
    let (code, said) = add("bob", "admin=prod");
    assert!(code != 0 && said.contains("the right admin is for all deployments"), "{said}");
    for (weak, why) in [("short", "at least 15"), ("passwordpassword", "repeats"), ("bob-windlass-2026", "common")] {
        write_password(directory, weak);
        let (code, said) = add("bob", "see=prod");
        assert!(code != 0 && said.contains(why) && !said.contains(weak), "{said}");
    }
    std::fs::set_permissions(directory.join("password"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let (code, said) = add("bob", "see=prod");
    assert!(code != 0 && said.contains("other users can read it\nhint: chmod 600 "), "{said}");
    let (code, said) = say(directory, &["user", "add", "bob", "--right", "see=prod"]);
    assert!(code != 0 && said.contains("no terminal") && said.contains("--password-file"), "{said}");

    write_password(directory, "eight blue boats sail");
    let (code, said) = say(directory, &["user", "set-password", "alice", "--password-file", "password"]);
    assert_eq!((code, said.as_str()), (0, "set the password of alice, and ended its sessions\n"));
    let (code, said) = say(directory, &["user", "set-rights", "alice", "--right", "see=*", "--right", "admin=*"]);
    assert_eq!((code, said.as_str()), (0, "set the rights of alice, and ended its sessions\n"));
    let (_, said) = say(directory, &["user", "list"]);
    assert!(
        said.lines().nth(1).unwrap().starts_with("alice  ") && said.ends_with("never       see=* admin=*\n"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 2, "{said}");
    let (code, said) = say(directory, &["user", "remove", "alice"]);
    assert_eq!((code, said.as_str()), (0, "removed the account alice, its sessions and its tokens\n"));
    for command in ["remove", "set-password"] {
        let (code, said) = say(directory, &["user", command, "alice"]);
        assert!(code != 0 && said.contains("there is no account \"alice\""), "{said}");
    }
    let (_, said) = say(directory, &["audit"]);
    for line in [
        "done  create an account: alice, see=prod",
        "done  set a password: alice",
        "done  set the rights of an account: alice, see=* admin=*",
        "done  remove an account: alice",
    ] {
        assert!(said.contains(line), "{line} is not in\n{said}");
    }
    assert!(!said.contains("boats"), "{said}");
}

#[test]
fn a_password_is_asked_for_twice_and_never_shown() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let program = env!("CARGO_BIN_EXE_windlass");
    let ask = |first: &str, second: &str| {
        let line = format!("{program} serve user add alice --right see=prod");
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env("SHELL", "/bin/sh").env("NO_COLOR", "1").current_dir(directory);
        command.env("WINDLASS_RUNS", "true").env("WINDLASS_RUNS_DIRECTORY", directory.join("runs"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut keys = child.stdin.take().unwrap();
        let mut shown = String::new();
        let mut out = child.stdout.take().unwrap();
        for (question, answer) in [("characters): ", first), ("again: ", second)] {
            while !shown.ends_with(question) {
                let mut byte = [0];
                if std::io::Read::read(&mut out, &mut byte).unwrap() == 0 {
                    break;
                }
                shown.push(char::from(byte[0]));
            }
            // The question is shown a moment before the terminal stops to show what is typed.
            std::thread::sleep(std::time::Duration::from_secs(1));
            // Nobody reads it any more after a refusal.
            writeln!(keys, "{answer}").and_then(|()| keys.flush()).ok();
        }
        let mut rest = Vec::new();
        std::io::Read::read_to_end(&mut out, &mut rest).ok();
        shown.push_str(&String::from_utf8_lossy(&rest));
        assert!(!shown.contains("boats"), "{shown}");
        (child.wait().unwrap().success(), shown)
    };
    let (done, shown) = ask(PASSWORD, "seven green boats went");
    assert!(!done && shown.contains("the passwords differ"), "{shown}");
    let (done, shown) = ask("too few boats", "");
    assert!(!done && shown.contains("a password has at least 15 characters") && !shown.contains("again"), "{shown}");
    let (done, shown) = ask(PASSWORD, PASSWORD);
    assert!(done && shown.contains("created the account alice"), "{shown}");
}

#[test]
fn what_other_machines_reach_needs_tls_and_an_account() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let made = rcgen::generate_simple_self_signed(["ops-1.example".to_owned()]).unwrap();
    std::fs::write(directory.join("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(directory.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    let (key, listen) = (directory.join("tls.key"), ["--listen", "0.0.0.0:0"]);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let tls = ["--tls-cert", "tls.crt", "--tls-key", "tls.key"];
    for (arguments, why) in [
        (listen.to_vec(), "which needs TLS\nhint: give --tls-cert and --tls-key"),
        ([&listen[..], &tls[..2]].concat(), "--tls-key"),
        ([&listen[..], &tls[..]].concat(), "tls.key: other users can read it\nhint: chmod 600 "),
        (vec!["--host", "https://ops-1"], "is no host name"),
    ] {
        let (code, said) = say(directory, &arguments);
        assert!(code != 0 && said.contains(why), "{arguments:?}: {said}");
    }
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (code, said) = say(directory, &[&listen[..], &tls[..]].concat());
    assert!(code != 0 && said.contains("needs an account to log in with\nhint: windlass serve user add"), "{said}");
}
