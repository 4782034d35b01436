//! What a run shows of itself, by the program as a person calls it: a terminal with many hosts, files for build servers,
//! logs, timings, traces; and that no secret is in any of them.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use windlass::value::mutex::Mutex;

fn windlass(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    let clean = ["NO_COLOR", "TRACEPARENT", "WINDLASS_LOG", "ANSIBLE_ROLES_PATH", "ANSIBLE_CONFIG"];
    clean.iter().for_each(|name| _ = command.env_remove(name));
    command.current_dir(directory).arg("playbook").args(["-i", "hosts.ini"]).args(arguments);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The output must be a success or a failure of a task; anything else is shown.
fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{output:?}"))
}

/// A directory with hosts that are this machine, and a playbook.
fn directory(hosts: usize, tasks: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let line = |number| format!("h{number:03} ansible_connection=local number={number}\n");
    std::fs::write(directory.path().join("hosts.ini"), (1..=hosts).map(line).collect::<String>()).unwrap();
    let play = format!("- name: Play\n  hosts: all\n  gather_facts: false\n  tasks:\n{tasks}");
    std::fs::write(directory.path().join("p.yml"), play).unwrap();
    directory
}

const MIXED: &str = "    - name: Goes well\n      command: echo fine\n    - name: Is skipped\n      ping:\n      when: false\n    \
                     - name: Fails\n      command: sh -c 'echo \"<no> & way\"; exit 3'\n      when: number == 2\n";

#[test]
fn people_and_build_servers_are_reported_by_one_run() {
    let files = directory(2, MIXED);
    let output = windlass(files.path(), &["--output", "junit=out.xml", "--output", "json=out.json", "p.yml"]).output();
    let output = output.unwrap();
    assert_eq!(code(&output), 2);
    assert!(text(&output.stdout).contains("PLAY RECAP"), "{}", text(&output.stdout));
    let xml = std::fs::read_to_string(files.path().join("out.xml")).unwrap();
    let document = roxmltree::Document::parse(&xml).unwrap();
    let all = document.root_element();
    assert_eq!(
        (all.tag_name().name(), all.attribute("tests"), all.attribute("failures")),
        ("testsuites", Some("6"), Some("1"))
    );
    let suite = all.first_element_child().unwrap();
    let counts = ["tests", "failures", "errors", "skipped"].map(|name| suite.attribute(name).unwrap());
    assert_eq!((suite.attribute("name").unwrap(), counts), ("Play", ["6", "1", "0", "3"]));
    assert_shape(all);
    let failure = document.descendants().find(|node| node.has_tag_name("failure")).unwrap();
    assert_eq!(failure.parent().unwrap().attribute("name"), Some("[h002] Fails"));
    assert!(failure.text().unwrap().contains("stdout: <no> & way"), "{xml}");
    // The results of tasks may hold secrets.
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&files.path().join("out.json").metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let json = std::fs::read_to_string(files.path().join("out.json")).unwrap();
    let events: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [.., recap, end] = &events[..] else { panic!("{json}") };
    assert_eq!((&recap["event"], &end["event"], &end["exit_code"]), (&"recap".into(), &"run_end".into(), &2.into()));
}

/// The elements and attributes that readers of JUnit's XML know, and no others.
fn assert_shape(all: roxmltree::Node<'_, '_>) {
    let known: &[(&str, &[&str], &[&str])] = &[
        ("testsuites", &["name", "tests", "failures", "errors", "time"], &["testsuite"]),
        ("testsuite", &["name", "file", "timestamp", "tests", "failures", "errors", "skipped", "time"], &["testcase"]),
        ("testcase", &["name", "classname", "file", "line", "time"], &["failure", "error", "skipped", "system-out"]),
        ("failure", &["message", "type"], &[]),
        ("error", &["message", "type"], &[]),
        ("skipped", &["message"], &[]),
        ("system-out", &[], &[]),
    ];
    for node in all.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        let (_, attributes, children) = known.iter().find(|(known, ..)| *known == name).unwrap();
        assert!(node.attributes().all(|attribute| attributes.contains(&attribute.name())), "{node:?}");
        let inside = node.children().filter(roxmltree::Node::is_element);
        assert!(inside.into_iter().all(|child| children.contains(&child.tag_name().name())), "{node:?}");
        for number in ["tests", "failures", "errors", "skipped", "line", "time"] {
            assert!(node.attribute(number).is_none_or(|text| text.parse::<f64>().is_ok()), "{node:?}");
        }
    }
}

#[test]
fn timings_are_reported_to_people_and_programs() {
    let files = directory(2, "    - name: Slow\n      command: sleep 0.3\n    - name: Quick\n      ping:\n");
    let output = windlass(files.path(), &["--profile", "p.yml"]).output().unwrap();
    let reported = text(&output.stdout);
    let after = reported.split("TIME BY TASK").nth(1).unwrap_or_else(|| panic!("{reported}"));
    let lines: Vec<&str> = after.lines().skip(1).take(2).collect();
    for name in ["Slow", "Quick"] {
        assert!(lines.iter().any(|line| line.ends_with(&format!("%  {name}"))), "{reported}");
    }
    assert!(
        reported.contains("TIME BY HOST") && reported.find("TIME BY TASK") < reported.find("PLAY RECAP"),
        "{reported}"
    );
    let output = windlass(files.path(), &["--profile", "--output", "json", "p.yml"]).output().unwrap();
    let events: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let profile = events.iter().find(|event| event["event"] == "profile").unwrap();
    // The longest first. Which one that is depends on what else the machine does.
    let tasks: Vec<(&str, f64)> = profile["tasks"].as_array().unwrap().iter().map(of_task).collect();
    assert!(tasks.len() == 2 && tasks[0].1 >= tasks[1].1, "{profile}");
    assert!(tasks.iter().any(|(name, seconds)| *name == "Slow" && *seconds >= 0.3), "{profile}");
    assert_eq!(profile["hosts"].as_array().unwrap().len(), 2);
}

/// A task of the event `profile`: its name and its seconds.
fn of_task(task: &serde_json::Value) -> (&str, f64) {
    (task["name"].as_str().unwrap(), task["seconds"].as_f64().unwrap())
}

#[test]
fn a_log_file_grows_has_moments_and_no_colours_and_is_for_its_owner_alone() {
    let files = directory(1, "    - name: One\n      command: echo fine\n");
    for _ in 0..2 {
        let arguments = ["--log-file", "run.log", "--color", "always", "p.yml"];
        let output = windlass(files.path(), &arguments).output().unwrap();
        assert!(text(&output.stdout).contains("\x1b[33mchanged: [h001]\x1b[0m"), "{}", text(&output.stdout));
    }
    let path = files.path().join("run.log");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let log = std::fs::read_to_string(path).unwrap();
    assert_eq!(log.matches("changed: [h001]").count(), 2, "{log}");
    assert!(!log.contains('\x1b'), "{log}");
    let moment = |line: &str| chrono::DateTime::parse_from_rfc3339(line.split(' ').next().unwrap()).is_ok();
    assert!(log.lines().all(moment), "{log}");
    let by_setting = windlass(files.path(), &["p.yml"]).env("ANSIBLE_LOG_PATH", "other.log").output().unwrap();
    assert_eq!(code(&by_setting), 0);
    assert!(files.path().join("other.log").exists());
}

#[test]
fn a_full_disk_is_reported_and_is_no_success_but_a_reader_who_goes_away_is_none_of_our_business() {
    let files = directory(1, "    - ping:\n");
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = windlass(files.path(), &["p.yml"]).stdout(full()).output().unwrap();
    assert_eq!(code(&output), 1);
    assert_eq!(text(&output.stderr), "error: cannot write to standard output: No space left on device (os error 28)\n");
    for option in [["--log-file", "/dev/full"], ["--output", "junit=/dev/full"], ["--output", "json=/dev/full"]] {
        let output = windlass(files.path(), &[option[0], option[1], "p.yml"]).output().unwrap();
        assert_eq!(code(&output), 1, "{option:?}: {output:?}");
        assert!(text(&output.stderr).starts_with("error: cannot write to /dev/full: No space"), "{output:?}");
        assert!(text(&output.stdout).contains("PLAY RECAP"), "{output:?}");
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = windlass(files.path(), &["p.yml"]).stdout(writer).output().unwrap();
    assert_eq!((code(&output), text(&output.stderr)), (0, String::new()));
    let output = windlass(files.path(), &["--output", "junit=no/such/dir.xml", "p.yml"]).output().unwrap();
    assert_eq!(code(&output), 1);
    assert!(text(&output.stderr).contains("error: cannot write no/such/dir.xml: No such file"), "{output:?}");
}

/// What the program writes on a terminal of 24 rows and 80 columns.
fn on_a_terminal(directory: &Path, variables: &str, arguments: &str) -> Vec<u8> {
    let program = env!("CARGO_BIN_EXE_windlass");
    let line = format!("stty rows 24 cols 80; {variables} {program} playbook -i hosts.ini {arguments}");
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color").env_remove("NO_COLOR");
    command.env_remove("WINDLASS_LOG").env("SHELL", "/bin/sh");
    command.current_dir(directory).stdin(Stdio::null()).output().unwrap().stdout
}

/// What was written, cut before each return to the frame's first row: a reader may get half a frame at a time.
fn drawn(written: &[u8]) -> impl Iterator<Item = &[u8]> {
    let returns = written.windows(3).enumerate().filter(|(_, bytes)| bytes == b"\r\x1b[").map(|(place, _)| place);
    let mut begin = 0;
    returns.chain([written.len()]).map(move |end| &written[std::mem::replace(&mut begin, end)..end])
}

fn nonzero(number: u16) -> std::num::NonZero<u16> {
    std::num::NonZero::new(number).unwrap()
}

#[test]
fn a_hundred_hosts_at_work_are_a_few_lines_at_the_foot_of_a_terminal_and_leave_none_behind() {
    // Three hosts take long, in the middle of the others.
    let sleep = "    - name: Sleeps\n      command: sleep {{ 4 if number in [7, 8, 9] else 0.02 }}\n      \
                 changed_when: false\n";
    let files = directory(100, sleep);
    let mut terminal = vt100::Parser::new(nonzero(24), nonzero(80), 300);
    let mut frames = 0;
    let written = on_a_terminal(files.path(), "", "-f 30 p.yml");
    for whole in drawn(&written) {
        terminal.process(whole);
        let screen = terminal.screen().contents();
        let Some((above, frame)) = screen.split_once("Sleeps: ") else { continue };
        frames += 1;
        assert!(frame.lines().count() <= 8, "{screen}");
        assert!(frame.lines().all(|line| line.chars().count() < 80), "{screen}");
        assert!(!above.contains("at work"), "a frame was left behind:\n{screen}");
        if frames > 1 && frame.starts_with("97/100 done, 3 at work") {
            let name = |line: &str| line.split_whitespace().next().unwrap().to_owned();
            // In the order in which they began, which nobody knows.
            let shown: std::collections::BTreeSet<String> = frame.lines().skip(1).map(name).collect();
            assert_eq!(shown, ["h007", "h008", "h009"].map(str::to_owned).into(), "{screen}");
        }
    }
    assert!(frames > 2, "nothing was drawn");
    let screen = terminal.screen().contents();
    assert!(screen.contains("100 hosts in ") && !screen.contains("at work"), "{screen}");
    let page = |back: usize| {
        terminal.screen_mut().set_scrollback(back);
        terminal.screen().contents() + "\n"
    };
    let all: String = (0..300).step_by(24).rev().map(page).collect();
    assert!(!all.contains("at work") && !all.contains("done, "), "{all}");
    assert!((1..=100).all(|number| all.contains(&format!("ok: [h{number:03}]"))), "{all}");
}

#[test]
fn what_is_no_terminal_or_a_dumb_one_gets_plain_lines_and_no_color_takes_only_colours_away() {
    let files = directory(2, "    - name: Sleeps\n      command: sleep 1.2\n      changed_when: false\n");
    let reported = |variables: &str| text(&on_a_terminal(files.path(), variables, "p.yml"));
    let dumb = reported("TERM=dumb");
    assert!(dumb.contains("ok: [h001]") && !dumb.contains('\x1b'), "{dumb:?}");
    let plain = reported("NO_COLOR=1");
    assert!(plain.contains("\x1b[J") && !plain.contains("\x1b[32m"), "{plain:?}");
    let clever = reported("");
    assert!(clever.contains("\x1b[J") && clever.contains("\x1b[32mok: [h001]\x1b[0m"), "{clever:?}");
    let piped = windlass(files.path(), &["p.yml"]).output().unwrap();
    assert!(!piped.stdout.contains(&0x1b) && text(&piped.stdout).contains("ok: [h002]"), "{piped:?}");
}

#[test]
fn a_collector_that_is_down_is_one_warning_and_no_failure() {
    let files = directory(2, "    - ping:\n");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = windlass(files.path(), &["p.yml"]);
    let output = command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{free}")).output().unwrap();
    assert_eq!(code(&output), 0);
    let reported = text(&output.stderr);
    assert!(reported.starts_with("warning: cannot send 5 spans to ") && reported.lines().count() == 1, "{reported}");
}

/// A collector that keeps all that it is sent.
fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
    let sent = kept.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let text = String::from_utf8_lossy(&head).to_lowercase();
            let length = text.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            stream.read_exact(&mut body).unwrap();
            sent.lock().extend(head.into_iter().chain(body));
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").ok();
        }
    });
    (address, kept)
}

#[test]
fn no_secret_is_in_any_output_log_or_trace_however_much_is_reported() {
    let secrets = ["tops3cret-by-no-log", "hunter2-from-the-vault", "pass-of-the-vault", "key-of-the-collector"];
    let tasks = "    - name: Uses {{ hidden }}\n      command: echo {{ hidden }}\n      no_log: true\n    \
                 - name: Fails with it\n      command: sh -c 'echo {{ hidden }} >&2; exit 1'\n      no_log: true\n      \
                 ignore_errors: true\n    \
                 - name: Loops over it\n      command: echo {{ item }}\n      loop: [\"{{ hidden }}\"]\n      no_log: true\n    \
                 - name: Tries again\n      command: sh -c 'echo {{ hidden }}; exit 1'\n      no_log: true\n      retries: 1\n      \
                 delay: 0\n      ignore_errors: true\n    \
                 - name: Names {{ db_password }}\n      command: echo {{ db_password }}\n    \
                 - name: Writes it\n      copy: {content: \"p={{ db_password }}\\n\", dest: \"{{ scratch }}/f\"}\n    \
                 - debug: {var: db_password}\n    \
                 - name: Shows it in a failure\n      fail: {msg: \"not {{ db_password }}\"}\n      ignore_errors: true\n";
    let files = directory(1, tasks);
    let file = |name: &str| files.path().join(name);
    std::fs::write(file("pass"), "pass-of-the-vault\n").unwrap();
    let mut encrypt = Command::new(env!("CARGO_BIN_EXE_windlass"));
    encrypt.current_dir(files.path()).args(["vault", "encrypt-string", "--vault-password-file", "pass"]);
    let mut encrypt =
        encrypt.args(["--name", "db_password"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    encrypt.stdin.take().unwrap().write_all(b"hunter2-from-the-vault").unwrap();
    let vars = encrypt.wait_with_output().unwrap();
    assert!(vars.status.success(), "{vars:?}");
    std::fs::write(file("vars.yml"), [&vars.stdout[..], b"\nhidden: tops3cret-by-no-log\n"].concat()).unwrap();
    let scratch = format!("scratch={}", files.path().display());
    for level in ["", "-v", "-vv", "-vvv", "-vvvv"] {
        let (address, traced) = collector();
        let mut command = windlass(files.path(), &["-e", "@vars.yml", "-e", &scratch, "--vault-password-file", "pass"]);
        command.args(["--diff", "--profile", "--output", "human,junit=j.xml,json=j.json", "--log-file", "run.log"]);
        command.args(["--otlp", &address, "p.yml"]).env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=key-of-the-collector");
        if !level.is_empty() {
            command.arg(level);
        }
        let output = command.output().unwrap();
        assert_eq!(code(&output), 0, "{output:?}");
        let read = |name: &str| std::fs::read_to_string(file(name)).unwrap();
        let traced = text(&traced.lock()).replace("x-key: key-of-the-collector", "");
        let parts =
            [text(&output.stdout), text(&output.stderr), read("j.xml"), read("j.json"), read("run.log"), traced];
        for (number, part) in parts.iter().enumerate() {
            for secret in secrets {
                assert!(!part.contains(secret), "{secret} is in part {number} at {level:?}:\n{part}");
            }
            assert!(part.contains("***") || number == 1, "part {number} at {level:?} tells nothing:\n{part}");
        }
        assert!(parts[0].contains("TASK [Uses {{ hidden }}]") && parts[0].contains("TASK [Names ***]"), "{}", parts[0]);
        std::fs::remove_file(file("f")).unwrap();
    }
}

/// Encrypts what is in a file in its place, with the password `pass-of-the-vault` in the file `pass`.
fn encrypt(directory: &Path, name: &str, plain: &str) {
    std::fs::write(directory.join("pass"), "pass-of-the-vault\n").unwrap();
    std::fs::write(directory.join(name), plain).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    let command = command.current_dir(directory).args(["vault", "encrypt", "--vault-password-file", "pass", name]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn an_encrypted_text_is_in_no_output_however_it_is_read_and_spelled() {
    let tasks = "    - command: echo {{ url }} {{ umlaut }} {{ pin }}\n    \
                 - debug: {msg: \"{{ umlaut | to_json }} {{ umlaut | urlencode }} {{ umlaut | e }}\"}\n    \
                 - debug: {msg: \"{{ plain | b64encode }} {{ ('user:' ~ plain) | b64encode }} {{ ('u:' ~ plain) | b64encode }}\"}\n    \
                 - command: env\n      environment: {SECRET: \"{{ plain }}\"}\n    \
                 - command: printenv SECRET\n      environment: {SECRET: \"{{ lookup('file', 'tokens') }}\"}\n    \
                 - debug: {msg: \"{{ lookup('unvault', 'tokens').splitlines() }} {{ lookup('file', 'tokens') }}\"}\n    \
                 - copy: {src: tokens, dest: \"{{ scratch }}/copied\"}\n    \
                 - template: {src: mine.j2, dest: \"{{ scratch }}/rendered\"}\n    \
                 - command: cat {{ scratch }}/copied {{ scratch }}/rendered\n    \
                 - fail: {msg: \"{{ plain }} {{ url }}\"}\n      ignore_errors: true\n    \
                 - set_fact: {kept: \"{{ plain }}\"}\n    \
                 - set_stats: {data: {kept: \"{{ url }}\"}}\n    \
                 - assert: {that: plain == '', fail_msg: \"{{ plain }}\"}\n      ignore_errors: true\n    \
                 - command: sh -c 'echo {{ plain }} >&2; exit 1'\n      ignore_errors: true\n";
    let files = directory(1, tasks);
    let vars = "url: 'postgres://u:S3cretPart@{{ inventory_hostname }}/x'\numlaut: 'gehäim<&>-7'\npin: 1234567\n\
                plain: Pl4inSecret/+\n";
    encrypt(files.path(), "vars.yml", vars);
    encrypt(files.path(), "tokens", "t0kenOne\nt0kenTwo-of-many\n");
    encrypt(files.path(), "mine.j2", "k3y-in-a-template\nhost={{ inventory_hostname }}\n");
    let mut secrets: Vec<String> = [
        "S3cretPart",
        "gehäim",
        "geh\\u00e4im",
        "geh%C3%A4im",
        "1234567",
        "Pl4inSecret",
        "t0kenOne",
        "t0kenTwo",
        "k3y-in",
    ]
    .map(str::to_owned)
    .into();
    // What of "Pl4inSecret/+" does not depend on what is before it: at each of the three places that a digit may begin.
    secrets.extend(["UGw0aW5TZWNyZX", "BsNGluU2VjcmV0", "QbDRpblNlY3JldC"].map(str::to_owned));
    let scratch = format!("scratch={}", files.path().display());
    for (level, log) in [("-v", ""), ("-vvv", ""), ("-vvvv", "trace")] {
        let (address, traced) = collector();
        let mut command = windlass(files.path(), &["-e", "@vars.yml", "-e", &scratch, "--vault-password-file", "pass"]);
        command.args(["--diff", "--profile", "--output", "human,junit=j.xml,json=j.json", "--log-file", "run.log"]);
        command.args(["--otlp", &address, level, "p.yml"]);
        if !log.is_empty() {
            command.env("WINDLASS_LOG", log);
        }
        let output = command.output().unwrap();
        assert_eq!(code(&output), 0, "{output:?}");
        let read = |name: &str| std::fs::read_to_string(files.path().join(name)).unwrap();
        let traced = text(&traced.lock());
        let parts =
            [text(&output.stdout), text(&output.stderr), read("j.xml"), read("j.json"), read("run.log"), traced];
        for (number, part) in parts.iter().enumerate() {
            for secret in &secrets {
                let line = part.lines().find(|line| line.contains(secret));
                assert!(line.is_none(), "{secret} is in part {number} at {level:?}: {line:?}");
            }
        }
        assert!(parts[0].contains("***"), "{}", parts[0]);
        std::fs::remove_file(files.path().join("copied")).unwrap();
        std::fs::remove_file(files.path().join("rendered")).unwrap();
    }
}

#[test]
fn no_core_file_is_written_of_windlass_and_programs_keep_their_own_limit() {
    use std::os::unix::process::ExitStatusExt;
    let files = directory(
        1,
        "    - shell: ulimit -c > limit; touch begun; exec sleep 30\n      args: {chdir: \"{{ playbook_dir }}\"}\n",
    );
    let crashed = |command: &str| {
        let begun = files.path().join("begun");
        if begun.exists() {
            std::fs::remove_file(&begun).unwrap();
        }
        let mut shell = Command::new("sh");
        let line = format!("ulimit -c unlimited; exec {command}");
        let mut child = shell.args(["-c", &line]).current_dir(files.path()).stdout(Stdio::null()).spawn().unwrap();
        for _ in 0..600 {
            if begun.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let abort = Command::new("kill").args(["-ABRT", &child.id().to_string()]).status().unwrap();
        assert!(abort.success());
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(6), "{status:?}");
        status.core_dumped()
    };
    assert!(!crashed(&format!("{} playbook -i hosts.ini p.yml", env!("CARGO_BIN_EXE_windlass"))), "a core was dumped");
    assert_eq!(std::fs::read_to_string(files.path().join("limit")).unwrap(), "unlimited\n");
    // Where no program leaves a core file, the assertions above cannot fail: an error where every test has to run.
    let must_run = std::env::var_os("TESTS_COMPLETE").is_some();
    assert!(crashed("sh -c 'touch begun; exec sleep 30'") || !must_run, "this machine writes no core files");
}

#[test]
fn each_v_tells_more() {
    let files = directory(1, "    - name: One\n      command: echo fine\n");
    let reported = |arguments: &[&str]| {
        let output = windlass(files.path(), arguments).output().unwrap();
        (text(&output.stdout), text(&output.stderr))
    };
    let (words, log) = reported(&["p.yml"]);
    assert!(!words.contains("fine") && !words.contains("task path") && log.is_empty(), "{words}{log}");
    let (words, log) = reported(&["-v", "p.yml"]);
    assert!(words.contains("\"stdout\": \"fine\"") && !words.contains("task path") && log.is_empty(), "{words}{log}");
    let (words, log) = reported(&["-vv", "p.yml"]);
    assert!(words.contains("task path: ") && words.contains("p.yml:5:7") && log.is_empty(), "{words}{log}");
    let (_, log) = reported(&["-vvv", "p.yml"]);
    assert!(log.contains("session opened") && log.contains("begins") && log.contains("ended"), "{log}");
}
