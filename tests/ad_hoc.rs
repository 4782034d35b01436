//! `windlass run`: one task on many hosts, told as `ansible` tells it. Hosts are this machine, by the local connection.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::path::Path;

use assert_cmd::Command;

/// Exit code, standard output and standard error of `windlass run -i a,b, -c local` with more arguments; the lines of
/// hosts come as they end, so they are sorted by host.
fn run(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ANSIBLE_")) {
        command.env_remove(name);
    }
    command.env("NO_COLOR", "1").env("ANSIBLE_CONFIG", "/dev/null").current_dir(directory);
    let output = command.args(["run", "-i", "a,b,", "-c", "local"]).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut results: Vec<String> = Vec::new();
    for line in text(&output.stdout).lines() {
        match results.last_mut().filter(|_| !line.starts_with("a | ") && !line.starts_with("b | ")) {
            Some(last) => *last = format!("{last}\n{line}"),
            None => results.push(line.to_owned()),
        }
    }
    results.sort();
    (output.status.code().unwrap(), results.join("\n"), text(&output.stderr))
}

fn here(arguments: &[&str]) -> (i32, String, String) {
    run(tempfile::tempdir().unwrap().path(), arguments)
}

#[test]
fn a_command_is_reported_by_what_it_says() {
    let (code, reported, _) = here(&["all", "-a", "echo hi"]);
    assert_eq!((code, reported.as_str()), (0, "a | CHANGED | rc=0 >>\nhi\nb | CHANGED | rc=0 >>\nhi"));
    let (code, reported, _) = here(&["a", "-m", "shell", "-a", "echo out; echo err >&2; exit 3"]);
    assert_eq!((code, reported.as_str()), (2, "a | FAILED | rc=3 >>\nout\nerr\nnon-zero return code"));
    let (_, reported, _) = here(&["a", "-o", "-m", "shell", "-a", "echo one; echo two; echo err >&2"]);
    assert_eq!(reported, "a | CHANGED | rc=0 | (stdout) one\\ntwo (stderr) err");
    let (code, reported, _) = here(&["a", "-C", "-a", "echo hi"]);
    assert_eq!((code, reported.as_str()), (0, "a | SKIPPED"));
}

#[test]
fn other_modules_are_reported_as_json() {
    let (code, reported, _) = here(&["all", "-l", "a", "-m", "ping"]);
    assert_eq!((code, reported.as_str()), (0, "a | SUCCESS => {\n    \"changed\": false,\n    \"ping\": \"pong\"\n}"));
    let (_, reported, _) = here(&["a", "-o", "-m", "debug", "-a", "msg={{ inventory_hostname }}", "-e", "x=1"]);
    assert_eq!(reported, "a | SUCCESS => {\"changed\":false,\"msg\":\"a\"}");
    let (code, reported, _) = here(&["a", "-m", "assert", "-a", r#"{"that": ["x == '1'", "x == '2'"]}"#, "-e", "x=1"]);
    assert!(code == 2 && reported.starts_with("a | FAILED! => {\n    \"assertion\": \"x == '2'\","), "{reported}");
}

#[test]
fn changes_diffs_and_trees_are_there() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    let args = format!("dest={} content=text", file.display());
    let (_, reported, _) = run(scratch.path(), &["a", "-m", "copy", "-a", &args, "-C", "-D"]);
    assert!(reported.contains("+text") && reported.contains("a | CHANGED => {") && !file.exists(), "{reported}");
    let (_, reported, _) = run(scratch.path(), &["a", "-m", "copy", "-a", &args, "-t", "tree"]);
    assert!(reported.contains("a | CHANGED => {") && file.exists(), "{reported}");
    let kept = std::fs::read_to_string(scratch.path().join("tree/a")).unwrap();
    let mode = std::fs::metadata(scratch.path().join("tree/a")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600, "a result may hold a secret");
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!((&kept["changed"], &kept["dest"]), (&true.into(), &file.display().to_string().into()));
}

#[test]
fn json_events_are_those_of_a_playbook() {
    let (code, reported, _) = here(&["a", "-m", "ping", "--output", "json"]);
    let events: Vec<serde_json::Value> = reported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(code, 0);
    assert_eq!((&events[0]["event"], &events[0]["command"]), (&"run_start".into(), &"run".into()));
    assert_eq!((&events[1]["event"], &events[1]["play"]), (&"play_start".into(), &"Ansible Ad-Hoc".into()));
    assert_eq!(events.last().unwrap()["event"], "run_end");
}

#[test]
fn a_mistake_is_shown_in_the_argument_with_a_caret() {
    let (code, reported, stderr) = here(&["all", "-m", "copy", "-a", "dest=/x contnet=y"]);
    let expected = "error: copy has no argument \"contnet\"\n --> --args:1:9\n  |\n1 | dest=/x contnet=y\n  |         ^\n  \
                    = hint: did you mean \"content\"?\n";
    assert_eq!((code, reported.as_str(), stderr.as_str()), (4, "", expected));
    let (_, _, stderr) = here(&["all", "-m", "copy", "-a", r#"{"dest": "/x", "mode": "rwx"}"#]);
    assert!(stderr.contains("--> --args:1:24") && stderr.contains("must be a file mode"), "{stderr}");
    let (_, _, stderr) = here(&["all", "-m", "pnig"]);
    assert!(stderr.contains("unknown module \"pnig\"") && stderr.contains("did you mean \"ping\"?"), "{stderr}");
    let (code, _, stderr) = here(&["all"]);
    assert!(code == 4 && stderr.contains("command needs a command") && stderr.contains("with -a"), "{stderr}");
}

#[test]
fn no_host_is_a_warning_and_a_host_out_of_reach_is_exit_code_4() {
    let (code, reported, _) = here(&["nobody", "-m", "ping"]);
    assert!(code == 0 && reported.contains("no hosts matched, nothing to do"), "{reported}");
    let (code, reported, _) = here(&["all", "--list-hosts", "-l", "b"]);
    assert_eq!((code, reported.as_str()), (0, "  hosts (1):\n    b"));
    let away = ["a", "-m", "ping", "-e", "ansible_connection=ssh ansible_host=127.0.0.1 ansible_port=1"];
    let (code, reported, _) = here(&away);
    assert!(code == 4 && reported.starts_with("a | UNREACHABLE! => {\n    \"changed\": false,"), "{reported}");
}

#[test]
fn variables_beside_the_working_directory_and_settings_count() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir(scratch.path().join("group_vars")).unwrap();
    std::fs::write(scratch.path().join("group_vars/all.yml"), "x: beside\n").unwrap();
    let (_, reported, _) = run(scratch.path(), &["a", "-o", "-m", "debug", "-a", "var=x"]);
    assert_eq!(reported, "a | SUCCESS => {\"changed\":false,\"x\":\"beside\"}");
    let (code, reported, _) = run(scratch.path(), &["a", "-m", "pause", "-a", "seconds=20", "--task-timeout", "1"]);
    assert!(code == 2 && reported.contains("timed out after 1 s"), "{reported}");
}

/// A login may limit the size of files. The output of a program is spooled in one.
#[test]
fn an_output_that_reached_the_limit_of_file_sizes_is_no_success() {
    let seq = |limit: &str, more: &str| {
        let windlass = env!("CARGO_BIN_EXE_windlass");
        let line =
            format!("ulimit -f {limit}; exec {windlass} run -i a, -c local a {more} -m shell -a 'seq 1 1000000; true'");
        let output = std::process::Command::new("sh").args(["-c", &line]).env("NO_COLOR", "1").output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for more in ["", "-B60 -P1"] {
        let (code, reported) = seq("512", more);
        assert!(code == Some(2) && reported.contains("ulimit -f"), "{more}: {reported}");
        let (code, reported) = seq("51200", more);
        assert!(code == Some(0) && reported.contains("1000000"), "{more}: {code:?}");
    }
}

/// Variables there are templates, and modules programs: a local user would have others run them.
#[test]
fn what_another_user_may_have_written_beside_the_task_is_ignored_with_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    for (name, text) in [
        ("group_vars/all.yml", "v: \"{{ lookup('pipe', 'touch pwned; echo x') }}\"\n"),
        ("library/hello", "#!/bin/sh\ncat >/dev/null\ntouch pwned\necho '{}'\n"),
        ("filter_plugins/evil", "#!/bin/sh\ncat >/dev/null\ntouch pwned\necho 1\n"),
        ("roles/r/tasks/main.yml", "- command: touch pwned\n"),
    ] {
        std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        std::fs::write(at(name), text).unwrap();
        std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let tasks: [&[&str]; 4] = [
        &["a", "-m", "debug", "-a", "msg={{v | default('none')}}"],
        &["a", "-m", "hello"],
        &["a", "-m", "debug", "-a", "msg={{1 | evil}}"],
        &["a", "-m", "include_role", "-a", "name=r"],
    ];
    let mode = |name: &str, mode| std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
    for foreign in ["", "group_vars", "library/hello"] {
        mode(foreign, 0o777);
        for task in tasks {
            let (_, reported, told) = run(scratch.path(), task);
            assert!(!at("pwned").exists(), "{foreign} {task:?}: {reported}{told}");
            let warned = told.contains("warning: ignored group_vars/, ") && told.contains("every user can write to ");
            assert!(warned || told.contains("hello") || told.contains("evil"), "{foreign} {task:?}: {reported}{told}");
        }
        mode(foreign, 0o755);
    }
    for task in tasks {
        let (code, reported, told) = run(scratch.path(), task);
        assert!(code == 0 && at("pwned").exists() && !told.contains("ignored"), "{task:?}: {reported}{told}");
        std::fs::remove_file(at("pwned")).unwrap();
    }
    mode("", 0o777);
    let (_, reported, told) = run(scratch.path(), &[tasks[0], &["--playbook-dir", "."]].concat());
    assert!(at("pwned").exists() && !told.contains("ignored"), "{reported}{told}");
}
