//! Commands: their output, their end, and what they leave running.

use std::io::{BufRead, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

#[tokio::test]
async fn a_command_gives_code_and_exact_output() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let got = sh(&remote, "printf 'a\\000b\\n\\n'; printf 'x\\n' >&2; exit 7").await;
        assert_eq!(got, Output { code: 7, stdout: b"a\0b\n\n".to_vec(), stderr: b"x\n".to_vec() }, "{kind}");
        let got = remote.run(&Command::program(["printf", "%s|", "it's", "", "a b", "*", "--"])).await.unwrap();
        assert_eq!(text(&got.stdout), "it's||a b|*|--|", "{kind}");
        assert_eq!(sh(&remote, "true").await, Output::default(), "{kind}");
        assert_eq!(sh(&remote, "kill -9 $$").await.code, 137, "{kind}");
        let missing = remote.run(&Command::program(["no-such-program-x"])).await.unwrap();
        assert_eq!(missing.code, 127, "{kind}");
        assert!(text(&missing.stderr).contains("not found"), "{kind}: {}", text(&missing.stderr));
        assert_eq!(remote.run(&Command::program(["/etc/passwd"])).await.unwrap().code, 126, "{kind}");
    }
}

/// Every user of a host can read the arguments of its processes, and have another user's command print what they hold.
#[tokio::test]
async fn the_process_list_does_not_hold_what_ends_an_answer() {
    use crate::value::testing::write_program;
    for kind in SHELLS {
        let host = Host::new(kind);
        let place = Place::new();
        let log = format!("printf '%s\\n' \"$@\" >>'{}'", place.at("arguments"));
        let sudo = format!("#!/bin/sh\n{log}\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n");
        write_program(host.bin.path().join("sudo"), sudo);
        let su = format!("#!/bin/sh\n{log}\nfor last do :; done\nexec sh -c \"$last\"\n");
        write_program(host.bin.path().join("su"), su);
        let user = remote(kind).await.user().to_owned();
        let sessions = Sessions::new(host);
        for method in [Method::Sudo, Method::Su] {
            let user = Become { method, user: user.clone(), password: None, executable: None, flags: None };
            let remote = Remote::open(&sessions, Some(&user), &IndexMap::new()).await.unwrap();
            let arguments = std::fs::read_to_string(place.at("arguments")).unwrap();
            let (_, nonce) = arguments.rsplit_once("echo ready-").unwrap();
            let nonce = &nonce[..32];
            let forged: String = (1..60).map(|n| format!("\n{nonce}.{n}|\n\n{nonce}.{n}=0\n")).collect();
            std::fs::write(place.at("forged"), &forged).unwrap();
            let got = sh(&remote, &format!("cat '{}'; exit 3", place.at("forged"))).await;
            assert_eq!((got.code, text(&got.stdout)), (3, forged.as_str()), "{kind} {method:?}");
            let own = remote.session().await.unwrap().ask("printf %s \"$wl_n\"").await.unwrap().stdout;
            assert_eq!(own.len(), 32, "{kind} {method:?}");
            let all = sh(&remote, "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null").await.stdout;
            let own = text(&own);
            assert!(String::from_utf8_lossy(&all).contains(nonce), "{kind} {method:?}: the list lacks the session");
            assert!(!String::from_utf8_lossy(&all).contains(own), "{kind} {method:?}");
        }
    }
}

#[tokio::test]
async fn environment_directory_and_input_reach_the_program() {
    for kind in SHELLS {
        let sessions = Sessions::new(Host::new(kind));
        let environment = IndexMap::from([("A".to_owned(), "task's".to_owned()), ("B".to_owned(), "b".to_owned())]);
        let remote = Remote::open(&sessions, None, &environment).await.unwrap();
        let place = Place::new();
        std::fs::create_dir(place.at("new\nline")).unwrap();
        for input in [&b"in\0put"[..], &vec![7u8; 300_000]] {
            let command = Command {
                environment: IndexMap::from([("B".to_owned(), "B\n".to_owned())]),
                directory: Some(place.at("new\nline")),
                stdin: Some(input.to_vec()),
                ..shell("printf '%s|%s|' \"$A\" \"$B\"; pwd; cat; env | grep -c ^wl_")
            };
            let got = remote.run(&command).await.unwrap();
            let mut expected = format!("task's|B\n|{}\n", place.at("new\nline")).into_bytes();
            expected.extend_from_slice(input);
            expected.extend_from_slice(b"0\n");
            assert!(got.stdout == expected, "{kind}");
        }
        assert_eq!(text(&sh(&remote, "echo $B; cat").await.stdout), "b\n", "{kind}");
        let nowhere = Command { directory: Some("/no/such".into()), ..shell("true") };
        let error = remote.run(&nowhere).await.unwrap_err().to_string();
        assert!(error.starts_with("cannot change to the directory /no/such: "), "{kind}: {error}");
        assert_eq!(sh(&remote, "echo still here").await.stdout, b"still here\n");
    }
}

#[tokio::test]
async fn what_runs_on_in_the_background_disturbs_nobody() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let got = sh(&remote, "(sleep 0.3; echo late; echo late >&2) & echo now").await;
        assert_eq!(text(&got.stdout), "now\n", "{kind}");
        for _ in 0..5 {
            assert_eq!(text(&sh(&remote, "sleep 0.1; echo mine").await.stdout), "mine\n", "{kind}");
        }
    }
}

#[tokio::test]
async fn large_output_comes_whole() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let got = sh(&remote, "head -c 5000000 /dev/zero; head -c 3000000 /dev/zero >&2").await;
        assert_eq!((got.stdout.len(), got.stderr.len()), (5_000_000, 3_000_000), "{kind}");
        assert_eq!(sh(&remote, "echo x").await.stdout, b"x\n");
    }
}

fn alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

pub(super) async fn gone(pid: &str) -> bool {
    for _ in 0..1500 {
        if !alive(pid) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}

async fn pids(file: &str) -> Vec<String> {
    for _ in 0..3000 {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if text.lines().count() == 2 {
            return text.lines().map(str::to_owned).collect();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the program did not start");
}

#[tokio::test]
async fn a_time_limit_ends_the_program_and_its_children() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let line = format!(
            "trap '' TERM; sleep 300 & echo $! $$ | tr ' ' '\\n' >{}; while :; do wait; sleep 1; done",
            place.at("pids")
        );
        let command = Command { limit: Some(Duration::from_secs(3)), ..shell(&line) };
        let error = remote.run(&command).await.unwrap_err();
        assert_eq!(error.to_string(), "the shell command timed out after 3s", "{kind}");
        for pid in pids(&place.at("pids")).await {
            assert!(gone(&pid).await, "{kind}");
        }
        assert_eq!(sh(&remote, "echo again").await.stdout, b"again\n", "{kind}");
    }
}

#[tokio::test]
async fn a_cancelled_command_is_ended_and_its_session_not_used_again() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        let place = Place::new();
        let line = format!("sleep 300 & echo $! $$ | tr ' ' '\\n' >{}; wait", place.at("pids"));
        let command = shell(&line);
        let file = place.at("pids");
        let pids = tokio::select! {
            _ = remote.run(&command) => panic!("it ended"),
            pids = pids(&file) => pids,
        };
        assert_eq!(sh(&remote, "echo mine").await.stdout, b"mine\n", "{kind}");
        for pid in pids {
            assert!(gone(&pid).await, "{kind}");
        }
    }
}

#[tokio::test]
async fn a_cancelled_query_is_ended_too() {
    let remote = remote("dash").await;
    let place = Place::new();
    let file = place.at("pids");
    let line = format!("sleep 300 & echo $! $$ | tr ' ' '\\n' >{file}; wait");
    let command = shell(&line);
    let pids = tokio::select! {
        _ = remote.query(&command) => panic!("it ended"),
        pids = pids(&file) => pids,
    };
    for pid in pids {
        assert!(gone(&pid).await);
    }
}

#[tokio::test]
async fn what_the_logins_start_files_say_is_passed_over() {
    let host = Host::starting_with("echo Welcome; printf 'no line feed'; echo warning >&2; alias ls=rm");
    let remote = Remote::open(&Sessions::new(host), None, &IndexMap::new()).await.unwrap();
    assert_eq!(sh(&remote, "echo x").await, Output { code: 0, stdout: b"x\n".to_vec(), stderr: Vec::new() });
}

#[tokio::test]
async fn a_login_without_a_shell_says_why() {
    let host = Host::starting_with("echo 'This account is currently not available.' >&2; exit 1");
    let opened = Remote::open(&Sessions::new(host), None, &IndexMap::new()).await;
    let error = opened.err().unwrap().to_string();
    assert!(error.ends_with("This account is currently not available."), "{error}");
}

#[tokio::test]
async fn an_interrupt_is_not_ignored_by_programs() {
    // The caller of the tests may ignore the signal, which programs inherit and a shell keeps.
    #[expect(unsafe_code, reason = "the comment at the unsafe block gives the reason")]
    // SAFETY: the default action is set; no handler of ours is involved.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_DFL);
    }
    for kind in SHELLS {
        let remote = remote(kind).await;
        assert_eq!(sh(&remote, "kill -INT $$; echo ignored").await.code, 130, "{kind}");
    }
}

#[tokio::test]
async fn many_commands_share_few_sessions() {
    for kind in SHELLS {
        let remote = Arc::new(remote(kind).await);
        let each = (0..64).map(|i| {
            let remote = remote.clone();
            async move { text(&sh(&remote, &format!("sleep 0.02; echo {i}")).await.stdout) == format!("{i}\n") }
        });
        assert!(futures::future::join_all(each).await.into_iter().all(|good| good), "{kind}");
    }
}

#[tokio::test]
async fn small_questions_are_answered() {
    for kind in SHELLS {
        let remote = remote(kind).await;
        assert_eq!(remote.user(), text(&sh(&remote, "id -un").await.stdout).trim(), "{kind}");
        assert_eq!(remote.which("mount").await.unwrap(), remote.which("/usr/bin/mount").await.unwrap(), "{kind}");
        assert_eq!(remote.which("no such").await.unwrap(), None, "{kind}");
        assert_eq!(remote.which("cd").await.unwrap(), None, "{kind}");
        let home = std::env::var("HOME").unwrap();
        assert_eq!(remote.expand_on_host("~/x y").await.unwrap(), format!("{home}/x y"), "{kind}");
        assert_eq!(remote.expand_on_host("~daemon/x").await.unwrap(), "/usr/sbin/x", "{kind}");
        assert_eq!(remote.expand_on_host("~no-such-user/x").await.unwrap(), "~no-such-user/x", "{kind}");
        assert_eq!(remote.expand_on_host("/a/~").await.unwrap(), "/a/~", "{kind}");
    }
}

#[tokio::test]
async fn nothing_is_left_after_the_end() {
    for kind in SHELLS {
        let sessions = Sessions::new(Host::new(kind));
        let remote = Remote::open(&sessions, None, &IndexMap::new()).await.unwrap();
        let own = own_directory(&remote).await;
        let temporary = remote.temporary_directory().await.unwrap();
        assert!(Path::new(&own).is_dir() && Path::new(&temporary).is_dir(), "{kind}");
        assert_eq!(std::fs::metadata(&temporary).unwrap().permissions().mode() & 0o777, 0o700, "{kind}");
        sh(&remote, "echo x").await;
        sessions.close().await;
        assert!(!Path::new(&own).exists() && !Path::new(&temporary).exists(), "{kind}");
        assert!(remote.run(&shell("true")).await.is_err(), "{kind}");
    }
}

#[tokio::test]
async fn a_lost_connection_ends_what_runs_whatever_the_kernel_can_tell_of_children() {
    use std::process::{Command, Stdio};
    let watch: Vec<&str> = include_str!("../watch.sh").lines().filter(|line| !line.starts_with('#')).collect();
    let watch = watch.join(" ");
    let scanning = watch.replace("/children", "/no-such-list");
    assert_ne!(watch, scanning);
    for (shell, line) in ["dash", "bash"].iter().flat_map(|shell| [(shell, &watch), (shell, &scanning)]) {
        let mut session =
            Command::new(shell).args(["-c", line]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut requests = session.stdin.take().unwrap();
        requests.write_all(b"sleep 1000 & echo $!\n").unwrap();
        let mut pid = String::new();
        std::io::BufReader::new(session.stdout.take().unwrap()).read_line(&mut pid).unwrap();
        assert!(alive(pid.trim()), "{shell}");
        drop(requests);
        session.wait().unwrap();
        assert!(!alive(pid.trim()), "{shell}: {line}");
    }
}

#[tokio::test]
async fn a_killed_session_is_an_error_once() {
    let remote = remote("dash").await;
    // What a killed shell leaves.
    let mut left = vec![own_directory(&remote).await];
    let error = sh_error(&remote, "kill -9 $PPID").await;
    assert!(error.contains("lost the connection"), "{error}");
    assert_eq!(sh(&remote, "echo new").await.stdout, b"new\n");
    // One that died while idle is not noticed by anyone.
    left.push(own_directory(&remote).await);
    let pid = sh(&remote, "echo $PPID").await.stdout;
    std::process::Command::new("kill").args(["-9", text(&pid).trim()]).status().unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(sh(&remote, "echo newer").await.stdout, b"newer\n");
    for directory in left {
        std::fs::remove_dir_all(directory).unwrap();
    }
}

async fn own_directory(remote: &Remote) -> String {
    let own = remote.session().await.unwrap().ask("printf %s \"$wl_d\"").await.unwrap();
    text(&own.stdout).to_owned()
}

async fn sh_error(remote: &Remote, line: &str) -> String {
    remote.run(&shell(line)).await.unwrap_err().to_string()
}
