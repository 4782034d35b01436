//! The program as a person calls it: help, exit codes, one message of each kind, the vault commands.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use assert_cmd::Command;

fn windlass() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.env("NO_COLOR", "1").env_remove("ANSIBLE_ROLES_PATH");
    command
}

/// A scratch directory with files in it.
fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    directory
}

fn playbook(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = windlass().current_dir(directory).arg("playbook").args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

const TASKS: &str = "- hosts: all\n  gather_facts: false\n  tasks:\n";

#[test]
fn help_names_every_sub_command_and_playbook_every_option_of_ansible_playbook() {
    let help = |arguments: &[&str]| {
        let output = windlass().args(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let all = help(&["--help"]);
    for word in [
        "plan",
        "apply",
        "destroy",
        "playbook",
        "run",
        "inventory",
        "doc",
        "vault",
        "config",
        "lint",
        "schema",
        "completion",
        "man",
    ] {
        assert!(all.contains(&format!("  {word}")), "{word} is not in\n{all}");
    }
    let options = [
        "-i,",
        "-l,",
        "-e,",
        "-t,",
        "--skip-tags",
        "--step",
        "-C,",
        "-D,",
        "-f,",
        "-u,",
        "-c,",
        "--private-key",
        "-k,",
        "-b,",
        "--become-user",
        "--become-method",
        "-K,",
        "-T,",
        "--vault-password-file",
        "--ask-vault-pass",
        "--syntax-check",
        "--list-hosts",
        "--list-tasks",
        "--list-tags",
        "-v",
        "--output",
        "--start-at-task",
        "--uploads",
        "--retry-file",
    ];
    let playbook = help(&["playbook", "--help"]);
    for option in options {
        assert!(playbook.contains(option), "{option} is not in\n{playbook}");
    }
}

#[test]
fn exit_codes_are_those_of_ansible_playbook() {
    let ok = format!("{TASKS}    - debug: {{msg: fine}}\n");
    let fails = format!("{TASKS}    - fail: {{msg: no}}\n");
    let wrong = format!("{TASKS}    - debgu: {{msg: typo}}\n");
    let away = "h1 ansible_host=127.0.0.1 ansible_port=1 ansible_ssh_retries=0\n";
    let files = [("ok.yml", &*ok), ("fails.yml", &fails), ("wrong.yml", &wrong), ("away.ini", away)];
    let files = directory(&[files.as_slice(), &[("ping.yml", &format!("{TASKS}    - ping:\n"))]].concat());
    let code = |arguments: &[&str]| playbook(files.path(), arguments).0;
    assert_eq!(code(&["-i", "localhost,", "ok.yml"]), 0);
    assert_eq!(code(&["-i", "localhost,", "fails.yml"]), 2);
    assert_eq!(code(&["-i", "localhost,", "wrong.yml"]), 4);
    assert_eq!(code(&["-i", "localhost,", "missing.yml"]), 4);
    assert_eq!(code(&["-i", "away.ini", "ping.yml"]), 4);
    assert_eq!(code(&["--no-such-option", "ok.yml"]), 2);
}

#[test]
fn a_mistake_is_shown_where_it_stands_with_what_was_meant() {
    let files = directory(&[("p.yml", &format!("{TASKS}    - debgu: {{msg: typo}}\n"))]);
    let (_, _, stderr) = playbook(files.path(), &["-i", "localhost,", "p.yml"]);
    for part in ["p.yml:4:7", "- debgu:", "^", "debug"] {
        assert!(stderr.contains(part), "{part:?} is not in\n{stderr}");
    }
}

#[test]
fn json_is_one_object_per_line_from_the_start_to_the_end_of_the_run() {
    let files = directory(&[("p.yml", &format!("{TASKS}    - debug: {{msg: \"two\\nlines\"}}\n"))]);
    let (code, stdout, _) = playbook(files.path(), &["-i", "localhost,", "--output", "json", "p.yml"]);
    assert_eq!(code, 0);
    let events: Vec<serde_json::Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().all(|event| event["event"].is_string() && event["time"].is_string()));
    let result = events.iter().find(|event| event["event"] == "result").unwrap();
    assert_eq!(result["result"]["values"]["msg"], "two\nlines");
    let [start, .., recap, end] = &events[..] else { panic!("{stdout}") };
    assert_eq!((&start["event"], &start["command"]), (&"run_start".into(), &"playbook".into()));
    assert_eq!((&recap["event"], &recap["hosts"]["localhost"]["ok"]), (&"recap".into(), &1.into()));
    assert_eq!((&end["event"], &end["outcome"]), (&"run_end".into(), &"succeeded".into()));
}

#[test]
fn lists_touch_no_host_and_name_hosts_tasks_and_tags() {
    let text = format!("{TASKS}    - name: First\n      ping:\n      tags: [a, b]\n    - name: Second\n      ping:\n");
    let files = directory(&[("p.yml", &text)]);
    let reported = |option: &str| playbook(files.path(), &["-i", "no.such.host,", option, "p.yml"]);
    assert!(reported("--list-hosts").1.contains("no.such.host"));
    assert!(reported("--list-tasks").1.contains("First\tTAGS: [a, b]"));
    assert!(reported("--list-tags").1.contains("TASK TAGS: [a, b]"));
    assert_eq!(reported("--syntax-check").0, 0);
}

#[test]
fn what_vault_encrypts_it_decrypts_and_a_playbook_reads() {
    let files = directory(&[("pass", "topsecret\n"), ("plain", "a: hidden value\n")]);
    let at = |name: &str| files.path().join(name);
    let vault = |arguments: &[&str], input: &str| {
        let mut command = windlass();
        command.current_dir(files.path()).arg("vault").args(arguments).write_stdin(input);
        let output = command.args(["--vault-password-file", "pass"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    vault(&["encrypt", "plain"], "");
    let encrypted = std::fs::read_to_string(at("plain")).unwrap();
    assert!(encrypted.starts_with("$ANSIBLE_VAULT;1.1;AES256\n") && !encrypted.contains("hidden"));
    assert_eq!(std::fs::metadata(at("plain")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(vault(&["view", "plain"], ""), "a: hidden value\n");

    let inline = vault(&["encrypt-string", "--name", "b"], "inline value");
    std::fs::write(at("vars.yml"), inline).unwrap();
    std::fs::write(at("p.yml"), format!("{TASKS}    - assert: {{that: [a == 'hidden value', b == 'inline value']}}\n"))
        .unwrap();
    let arguments = ["-i", "localhost,", "-e", "@plain", "-e", "@vars.yml", "p.yml"];
    let with = [arguments.as_slice(), &["--vault-password-file", "pass"]].concat();
    assert_eq!(playbook(files.path(), &with).0, 0);
    let (code, stdout, stderr) = playbook(files.path(), &arguments);
    assert!(code != 0 && stderr.contains("--vault-password-file"), "{code} {stdout} {stderr}");

    vault(&["decrypt", "plain"], "");
    assert_eq!(std::fs::read_to_string(at("plain")).unwrap(), "a: hidden value\n");
}

#[test]
fn vault_with_a_wrong_password_leaves_the_file_alone() {
    let files = directory(&[("pass", "one\n"), ("other", "two\n"), ("plain", "x")]);
    let run = |verb: &str, pass: &str| {
        let mut command = windlass();
        command.current_dir(files.path()).args(["vault", verb, "plain", "--vault-password-file", pass]);
        command.output().unwrap().status.success()
    };
    assert!(run("encrypt", "pass"));
    let before = std::fs::read(files.path().join("plain")).unwrap();
    assert!(!run("decrypt", "other"));
    assert_eq!(std::fs::read(files.path().join("plain")).unwrap(), before);
}

#[test]
fn what_is_no_command_line_is_a_usage_error_on_standard_error() {
    let wrong: [&[&str]; 6] = [
        &[],
        &["play"],
        &["playbook"],
        &["playbook", "--chek", "x.yml"],
        &["inventory"],
        &["playbook", "-f0", "x.yml"],
    ];
    for arguments in wrong {
        let output = windlass().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_limit_that_leaves_no_hosts_is_an_error() {
    let files = directory(&[("p.yml", &format!("{TASKS}    - debug:\n"))]);
    let hosts = "web1,web2,localhost,";
    let (code, stdout, stderr) = playbook(files.path(), &["-i", hosts, "-l", "wbe1", "p.yml"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    let warning = "warning: \"wbe1\" matches no host or group, did you mean \"web1\"?";
    assert_eq!(stderr, format!("{warning}\nerror: the limit \"wbe1\" matches no hosts\n"));
    let (code, stdout, _) = playbook(files.path(), &["-i", hosts, "-l", "localhost", "p.yml"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("ok: [localhost]") && !stdout.contains("web"), "{stdout}");
}

#[test]
fn without_an_inventory_a_play_on_other_hosts_is_warned_of() {
    let files = directory(&[
        ("other.yml", &format!("{TASKS}    - debug:\n").replace("all", "web")),
        ("local.yml", &format!("{TASKS}    - debug:\n").replace("all", "localhost")),
    ]);
    let warning = "warning: no inventory given: using only localhost (-i names an inventory)\n";
    assert!(playbook(files.path(), &["other.yml"]).2.contains(warning));
    assert_eq!(playbook(files.path(), &["local.yml"]).2, "");
}

#[test]
fn doc_explains_every_kind_of_word_and_says_what_was_meant() {
    let doc = |arguments: &[&str]| {
        let output = windlass().arg("doc").args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let (_, list, _) = doc(&["-l"]);
    for heading in ["modules:", "keywords:", "filters:", "tests:", "lookups:", "functions:", "variables:"] {
        assert!(list.lines().any(|line| line == heading), "{heading} is not in\n{list}");
    }
    let (_, filters, _) = doc(&["-l", "-t", "filter"]);
    assert!(filters.lines().any(|line| line.starts_with("combine ")) && !filters.contains("become"), "{filters}");
    let (_, combine, _) = doc(&["combine"]);
    assert!(combine.starts_with("combine(others..., recursive=false, list_merge='replace') (filter): "), "{combine}");
    assert!(combine.ends_with("  {'a': 1, 'b': 2} | combine({'b': 3})\n\n  gives {'a': 1, 'b': 3}\n"), "{combine}");
    let (_, control, _) = doc(&["loop_control"]);
    assert!(control.contains("  index_var (string)\n"), "{control}");
    let (code, _, stderr) = doc(&["combin"]);
    let kinds = "module, keyword, filter, test, lookup, function or variable";
    let reported =
        format!("error: no such {kinds}: \"combin\"; did you mean \"combine\"? (windlass doc -l lists all)\n");
    assert_eq!((code, stderr), (1, reported));
    let (_, json, _) = doc(&["--output", "json", "version"]);
    let objects: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let kinds: Vec<_> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["filter", "test"]);
}

#[test]
fn json_hides_what_no_log_hides() {
    let text = format!("{TASKS}    - debug: {{msg: s3cret}}\n      no_log: true\n");
    let files = directory(&[("p.yml", &text)]);
    let (code, stdout, stderr) = playbook(files.path(), &["-i", "localhost,", "--output", "json", "-vv", "p.yml"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("\"censored\":\"hidden by no_log\"") && !stdout.contains("s3cret"), "{stdout}");
}

#[test]
fn no_log_hides_items_and_paths_of_includes() {
    let text = format!(
        "{TASKS}    - include_tasks: inc.yml\n      loop: [s3cret]\n      no_log: true\n    - include_role: {{name: r}}\n      \
         loop: [s3cret]\n      no_log: true\n    - include_tasks: '/nowhere/{{{{ \"s3\" + \"cret\" }}}}.yml'\n      \
         no_log: true\n"
    );
    let task = "- debug: {msg: included}\n";
    let files = directory(&[("p.yml", &text), ("inc.yml", task), ("roles/r/tasks/main.yml", task)]);
    for output in ["human", "json"] {
        let (code, stdout, stderr) = playbook(files.path(), &["-i", "localhost,", "--output", output, "-vv", "p.yml"]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stdout.contains("included"), "{stdout}");
        assert!(!stdout.contains("s3cret") && !stderr.contains("s3cret"), "{stdout}\n{stderr}");
    }
}

#[test]
fn an_environment_that_is_not_a_mapping_fails_the_task() {
    for (value, passes) in [
        ("'{{ \"FOO=bar\" }}'", false),
        ("'{{ [\"FOO=bar\"] }}'", false),
        ("'{{ nothing | default(omit) }}'", true),
        ("'{{ nothing | default(\"\") }}'", true),
        ("'{{ [{\"FOO\": \"bar\"}] }}'", true),
    ] {
        let text = format!("{TASKS}    - command: 'true'\n      environment: {value}\n");
        let files = directory(&[("p.yml", &text)]);
        let (code, stdout, _) = playbook(files.path(), &["-i", "localhost,", "-c", "local", "p.yml"]);
        let refused = stdout.contains("environment must be a mapping of names to values, not a");
        assert_eq!((code == 0, refused), (passes, !passes), "{value}: {stdout}");
    }
}

#[test]
fn a_copy_of_a_directory_that_cannot_be_read_completely_fails() {
    let text =
        format!("{TASKS}    - copy: {{src: '{{{{ playbook_dir }}}}/src/', dest: /nowhere/dest/, remote_src: true}}\n");
    let files = directory(&[("p.yml", &text), ("src/a", "a")]);
    std::os::unix::fs::symlink("nothing", files.path().join("src/dangling")).unwrap();
    let (code, stdout, _) = playbook(files.path(), &["-i", "localhost,", "-c", "local", "--check", "p.yml"]);
    assert_eq!(code, 2);
    assert!(stdout.contains("src/ on the host completely: "), "{stdout}");
}

#[test]
fn vault_follows_a_symbolic_link_and_leaves_it_one() {
    let files = directory(&[("pass", "topsecret\n"), ("plain", "a: 1\n")]);
    let link = files.path().join("link");
    std::os::unix::fs::symlink("plain", &link).unwrap();
    let mut command = windlass();
    command.current_dir(files.path()).args(["vault", "encrypt", "link", "--vault-password-file", "pass"]);
    command.assert().success();
    assert!(link.is_symlink());
    assert!(std::fs::read_to_string(files.path().join("plain")).unwrap().starts_with("$ANSIBLE_VAULT;"));
}

#[test]
fn hosts_that_failed_are_written_for_a_limit_of_a_later_run() {
    let tasks = format!(
        "{TASKS}    - fail: {{msg: no}}\n      when: inventory_hostname != 'b' and not repaired | default(false)\n"
    );
    let hosts = "c ansible_connection=local\nb ansible_connection=local\na ansible_connection=local\n";
    let scratch = directory(&[("p.yml", &tasks), ("hosts.ini", hosts)]);
    let missing = playbook(scratch.path(), &["-i", "hosts.ini", "--limit", "@failed.txt", "p.yml"]);
    assert_eq!(missing.0, 4);
    assert!(missing.2.contains("cannot read the limit file \"failed.txt\": No such file"), "{}", missing.2);
    let (code, _, stderr) = playbook(scratch.path(), &["-i", "hosts.ini", "--retry-file", "failed.txt", "p.yml"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("--limit @failed.txt"), "{stderr}");
    assert_eq!(std::fs::read_to_string(scratch.path().join("failed.txt")).unwrap(), "a\nc\n");
    let again = ["-i", "hosts.ini", "--limit", "@failed.txt", "-e", "repaired=true", "p.yml"];
    let (code, stdout, _) = playbook(scratch.path(), &again);
    assert_eq!(code, 0);
    assert!(stdout.contains("2 hosts in") && !stdout.contains("[b]"), "{stdout}");
    let output = windlass()
        .current_dir(scratch.path())
        .env("ANSIBLE_RETRY_FILES_ENABLED", "1")
        .args(["playbook", "-i", "hosts.ini", "p.yml"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(scratch.path().join("p.retry").exists());
}

#[test]
fn a_hook_s_mistakes_are_reported_before_any_host_is_touched() {
    let tasks = format!("{TASKS}    - file: {{path: touched, state: touch}}\n");
    let hook = "- debug: {msgg: x}\n";
    let scratch = directory(&[("p.yml", &tasks), ("hook.yml", hook), ("hosts.ini", "a ansible_connection=local\n")]);
    let with = |name: &str, file: &str| {
        let mut command = windlass();
        command.current_dir(scratch.path()).env(name, file).args(["playbook", "-i", "hosts.ini", "p.yml"]);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, words) = with("WINDLASS_BEFORE_PLAY", "hook.yml");
    assert_eq!(code, Some(4));
    assert!(words.contains("hook.yml:1:11"), "{words}");
    let (code, words) = with("WINDLASS_AFTER_ROLE", "no.yml");
    assert_eq!(code, Some(4));
    assert!(words.contains("cannot find the file \"no.yml\" from the setting after_role"), "{words}");
    assert!(!scratch.path().join("touched").exists());
}

/// 203.0.113.0/24 is nobody's: were it tried, the words would be others.
#[test]
fn an_offline_run_connects_to_nothing_but_the_inventory() {
    let tasks = [
        ("uri", "uri: {url: 'http://203.0.113.7/x'}"),
        ("get_url", "get_url: {url: 'https://files.example.com/x', dest: /dev/null/x}"),
        ("git", "git: {repo: 'https://git.example.com/x.git', dest: /nonexistent/x}"),
        ("wait_for", "wait_for: {host: 203.0.113.7, port: 80, timeout: 30}"),
        ("ping", "ping:\n      delegate_to: 203.0.113.7"),
    ];
    let mut play = "- hosts: h\n  gather_facts: false\n  tasks:\n".to_string();
    for (name, task) in tasks {
        play.push_str(&format!(
            "    - name: {name}\n      ignore_errors: true\n      ignore_unreachable: true\n      {task}\n"
        ));
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    play.push_str(&format!("    - name: itself\n      wait_for: {{port: {port}, timeout: 30}}\n"));
    let directory = directory(&[("p.yml", &play), ("hosts.ini", "h ansible_connection=local\n")]);
    let offline = ["-i", "hosts.ini", "--offline", "p.yml"];
    let (code, stdout, stderr) = playbook(directory.path(), &offline);
    let reported = format!("{stdout}{stderr}");
    assert_eq!(code, 0, "{reported}");
    assert_eq!(reported.matches("the run is offline").count(), tasks.len(), "{reported}");

    let (code, _, stderr) =
        playbook(directory.path(), &[&offline[..], &["--otlp", "http://traces.example.com:4318"]].concat());
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("cannot send traces") && stderr.contains("the run is offline"), "{stderr}");
}

#[test]
fn facts_are_kept_from_run_to_run_and_are_hostvars_of_hosts_outside_the_play() {
    let gather = "- hosts: a\n  tasks:\n    - set_fact: {cacheable: true, kept: 7}\n";
    let read = "- hosts: b\n  gather_facts: false\n  tasks:\n    - debug:\n        msg: \"{{ hostvars.a.ansible_system }} {{ hostvars.a.kept }}\"\n- hosts: a\n  tasks:\n    - debug:\n        msg: \"{{ ansible_facts.kernel is defined }}\"\n";
    let hosts = "a ansible_connection=local\nb ansible_connection=local\n";
    let cfg = "[defaults]\ngathering = smart\nfact_caching = jsonfile\nfact_caching_connection = cache\nfact_caching_prefix = of_\n";
    let scratch = directory(&[("g.yml", gather), ("r.yml", read), ("hosts.ini", hosts), ("ansible.cfg", cfg)]);
    let (code, stdout, _) = playbook(scratch.path(), &["-i", "hosts.ini", "g.yml"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("TASK [Gathering Facts]"), "{stdout}");
    let file = scratch.path().join("cache/of_a");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, stdout, stderr) = playbook(scratch.path(), &["-i", "hosts.ini", "r.yml"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(
        stdout.contains("Linux 7") && stdout.contains("\"msg\": true") && !stdout.contains("Gathering"),
        "{stdout}"
    );
    std::fs::write(&file, "{}").unwrap();
    let (_, stdout, _) = playbook(scratch.path(), &["-i", "hosts.ini", "g.yml"]);
    assert!(stdout.contains("TASK [Gathering Facts]"), "an empty cache was taken for facts: {stdout}");
}

/// Sub-commands that print, each with something to print.
const PRINTING: [&str; 11] = [
    "doc -l",
    "doc copy --output json",
    "schema playbook",
    "config",
    "lint --list-rules",
    "man",
    "completion bash",
    "inventory -i one, --list",
    "inventory -i one, --graph",
    "run -i one, all --list-hosts",
    "playbook -i one, site.yml --list-tasks",
];

#[test]
fn a_reader_that_has_gone_is_no_error_for_what_prints() {
    let scratch = directory(&[("site.yml", "- hosts: all\n  tasks:\n    - ping:\n")]);
    for words in PRINTING {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"));
        let output = command.current_dir(&scratch).args(words.split(' ')).stdout(writer).output().unwrap();
        let reported = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*reported), (Some(0), ""), "{words}");
    }
}

#[test]
fn what_prints_says_that_the_disk_is_full() {
    let scratch = directory(&[("site.yml", "- hosts: all\n  tasks:\n    - ping:\n")]);
    for words in PRINTING {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"));
        let output = command.current_dir(&scratch).args(words.split(' ')).stdout(full).output().unwrap();
        let reported = String::from_utf8_lossy(&output.stderr);
        let expected = "error: cannot write to standard output: No space left on device (os error 28)\n";
        assert_eq!((output.status.code(), &*reported), (Some(1), expected), "{words}");
    }
}

#[test]
fn a_complaint_that_cannot_be_written_changes_no_exit_code() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"));
    let status = command.args(["playbook", "-i", "one,", "/nonexistent.yml"]).stderr(full).status().unwrap();
    assert_ne!(status.code(), Some(101));
    assert!(status.code().is_some_and(|code| code != 0));
}

#[test]
fn a_file_that_includes_itself_for_ever_fails_the_host_and_not_the_program() {
    let play = "- hosts: all\n  gather_facts: false\n  connection: local\n  tasks:\n    - include_tasks: again.yml\n";
    let again = "- block:\n    - block:\n        - include_tasks: again.yml\n";
    let scratch = directory(&[("site.yml", play), ("again.yml", again)]);
    let (code, out, err) = playbook(scratch.path(), &["-i", "one,", "site.yml"]);
    assert_eq!((code, &*err), (2, ""));
    let reported = "[one]: more than 200 nested includes, the last one of \"again.yml\"\n";
    assert!(out.contains(reported), "{out}");
    assert!(out.contains("hint: a file that includes itself needs a condition that stops it"), "{out}");
}

#[test]
fn a_template_without_end_is_ended_by_two_signals_and_nothing_is_asked_without_a_terminal() {
    let endless =
        "    - debug: msg=\"{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}\"\n";
    let begun = "    - command: touch {{ playbook_dir }}/begun\n";
    let directory = directory(&[("p.yml", &format!("{TASKS}{begun}{endless}"))]);
    let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["playbook", "-i", "a,", "-c", "local", "p.yml"])
        .current_dir(directory.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !directory.path().join("begun").exists() && run.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut signals = 0;
    let code = loop {
        std::thread::sleep(std::time::Duration::from_secs(1));
        match run.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if signals == 60 => {
                run.kill().unwrap();
                panic!("it goes on after {signals} signals");
            }
            None => {
                let killed = std::process::Command::new("kill").arg(run.id().to_string()).status().unwrap();
                assert!(killed.success());
                signals += 1;
            }
        }
    };
    assert_eq!(code, Some(99));
    let (code, _, error) = playbook(directory.path(), &["-i", "a,", "--step", "p.yml"]);
    assert_eq!(
        (code, error.contains("cannot use --step: it asks before each task, and standard input is not a terminal")),
        (1, true),
        "{error}"
    );
}

#[test]
fn programs_of_this_machine_get_the_environment() {
    let tasks = "    - {shell: echo $OF_THE_CALLER, register: it}\n    - {command: echo $OF_THE_CALLER, register: expanded}\n    - assert: {that: [it.stdout == 'seen', \
                 expanded.stdout == 'seen']}\n";
    let directory = directory(&[("p.yml", &format!("{TASKS}{tasks}"))]);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(["playbook", "-i", "a,", "-c", "local", "p.yml"]).current_dir(directory.path());
    let output = command.env("OF_THE_CALLER", "seen").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Runs a playbook of two tasks, and closes its terminal, twice, while the first one is under way. `start`: what the shell does
/// before.
fn hung_up(start: &str) -> (Option<i32>, tempfile::TempDir) {
    let tasks = "    - shell: touch begun; sleep 8; touch ended\n    - command: touch further\n";
    let directory =
        directory(&[("p.yml", &format!("{TASKS}{}", tasks.replace("touch ", "touch {{ playbook_dir }}/")))]);
    let mut run = std::process::Command::new("sh")
        .args(["-c", &format!("{start}\nexec \"$0\" playbook -i a, -c local p.yml"), env!("CARGO_BIN_EXE_windlass")])
        .current_dir(directory.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let is_there = |name: &str| directory.path().join(name).exists();
    while !is_there("begun") && run.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    for _ in 0..2 {
        let reported = std::process::Command::new("kill").args(["-HUP", &run.id().to_string()]).status().unwrap();
        assert!(reported.success());
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    let code = run.wait().unwrap().code();
    (code, directory)
}

#[test]
fn a_terminal_that_is_closed_lets_the_task_in_flight_end() {
    let (code, directory) = hung_up(":");
    let is_there = |name: &str| directory.path().join(name).exists();
    assert_eq!((code, is_there("ended"), is_there("further")), (Some(99), true, false));
    // Unless it was started to go on.
    let (code, directory) = hung_up("trap '' HUP");
    assert_eq!((code, directory.path().join("further").exists()), (Some(0), true));
}

#[test]
fn a_value_that_grows_deeper_and_deeper_is_refused() {
    let grow = "    - set_fact: {v: []}\n    - set_fact: {v: '{{ [v] }}'}\n      loop: '{{ range(250) }}'\n";
    let built = "    - debug: msg=\"{% set n = namespace(v=[]) %}{% for i in range(3000) %}{% set n.v = [n.v] %}{% endfor %}{{ n.v }}\"\n";
    let kept = "its value has more than 200 nested lists and mappings";
    for (tasks, why) in [(grow, kept), (built, "more than 1000 lists and mappings within each other")] {
        let directory = directory(&[("p.yml", &format!("{TASKS}{tasks}"))]);
        let (code, out, _) = playbook(directory.path(), &["-i", "a,", "-c", "local", "p.yml"]);
        assert_eq!(code, 2, "{out}");
        assert!(out.contains(why), "{out}");
    }
}

#[test]
fn a_hook_that_cannot_be_run_is_reported_before_any_host_is_asked() {
    let scratch = tempfile::tempdir().unwrap();
    let text = "apiVersion: windlass.dev/v1alpha1\nkind: KarmadaDeployment\nmetadata: {name: trial}\nspec:\n  \
                bundle: none\n  hosts: [{name: cp-1, address: 127.0.0.1, port: 1}]\n  controlPlane: {hosts: [cp-1]}\n  \
                etcd: {managed: {hosts: [cp-1]}}\n  hooks: [{stage: etcd, when: after, playbook: hooks/after.yml}]\n";
    let file = scratch.path().join("karmada.yaml");
    std::fs::write(&file, text).unwrap();
    std::fs::create_dir(scratch.path().join("hooks")).unwrap();
    let reported = |verb: &str| {
        let output = windlass().arg(verb).arg("-f").arg(&file).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    for (hook, why) in [(None, "hooks/after.yml"), (Some("- {hosts: all, tsks: []}\n"), "tsks")] {
        if let Some(hook) = hook {
            std::fs::write(scratch.path().join("hooks/after.yml"), hook).unwrap();
        }
        for verb in ["plan", "apply"] {
            let reported = reported(verb);
            assert!(reported.contains(why) && !reported.contains("127.0.0.1"), "{verb}: {reported}");
        }
    }
    // With a hook as it should be the host is asked.
    std::fs::write(scratch.path().join("hooks/after.yml"), "- {hosts: all, tasks: []}\n").unwrap();
    assert!(reported("apply").contains("127.0.0.1"), "{}", reported("apply"));
}

#[test]
fn a_keyword_that_cannot_be_read_is_an_error() {
    let task = |keyword: &str| {
        format!("- hosts: all\n  gather_facts: false\n  tasks:\n    - command: 'true'\n      {keyword}\n")
    };
    let play = |keyword: &str| format!("- hosts: all\n  {keyword}\n  tasks:\n    - command: 'true'\n");
    let reset = "- hosts: all\n  gather_facts: false\n  tasks:\n    - meta: reset_connection\n    - command: 'true'\n";
    let end = "- hosts: all\n  gather_facts: false\n  tasks:\n    - meta: end_play\n      when: nope\n    - command: 'true'\n";
    for (text, code, expected) in [
        (end.to_owned(), 2, "the condition of meta: end_play failed"),
        (task("delegate_to: \"{{ [] }}\""), 2, "delegate_to is empty"),
        (task("throttle: \"{{ nope }}\""), 2, "\"nope\" is undefined"),
        (task("throttle: \"{{ 'two' }}\""), 2, "throttle must be a whole number"),
        (task("run_once: \"{{ nope }}\""), 2, "\"nope\" is undefined"),
        (task("check_mode: \"{{ 'maybe' }}\""), 2, "check_mode must be true or false"),
        (task("retries: 1\n      delay: \"{{ 'nan' }}\""), 2, "delay must be a number"),
        (play("gather_facts: \"{{ nope }}\""), 1, "\"nope\" is undefined"),
        (
            play("gather_facts: false\n  max_fail_percentage: \"{{ 'many' }}\""),
            1,
            "max_fail_percentage must be a percentage",
        ),
        (reset.to_owned(), 2, "\"nope\" is undefined"),
    ] {
        let scratch = directory(&[("site.yml", &text)]);
        let connection = if text == reset { "{{ nope }}" } else { "local" };
        let local = format!("{{\"ansible_connection\": \"{connection}\"}}");
        let (got, out, reported) = playbook(scratch.path(), &["-i", "one,two", "-e", &local, "site.yml"]);
        assert_eq!(got, code, "{text}\n{out}{reported}");
        assert!(out.contains(expected) || reported.contains(expected), "{text}\n{out}{reported}");
        assert!(!out.contains("changed: ["), "{text}\n{out}");
    }
}

/// A host that skips the task and cannot read its keywords says nothing for those that run it.
#[test]
fn a_host_that_skips_a_task_does_not_turn_its_keywords_off() {
    let task = "    - command: touch {{ inventory_hostname }}\n      run_once: \"{{ of_two }}\"\n      \
                when: inventory_hostname != 'one'\n";
    let scratch = directory(&[
        ("site.yml", &format!("{TASKS}{task}")),
        ("hosts.ini", "one\ntwo of_two=true\nthree of_two=true\n"),
        ("order.yml", "- hosts: all\n  order: \"{{ 'sorted' }}\"\n  tasks: []\n"),
    ]);
    playbook(scratch.path(), &["-i", "hosts.ini", "-c", "local", "site.yml"]);
    let touched = ["one", "two", "three"].map(|name| scratch.path().join(name).exists());
    assert_eq!(touched, [false, true, false], "it runs once, on the first host that runs it");
    let (code, _, reported) = playbook(scratch.path(), &["-i", "hosts.ini", "order.yml"]);
    assert!(code != 0 && reported.contains("\"order\" cannot be a template"), "{reported}");
}

/// A person writes conditions into variables of an include, too.
#[test]
fn literal_conditions_may_come_from_variables_of_an_include() {
    let site = format!(
        "{TASKS}    - include_tasks: {{file: t.yml}}\n      vars: {{passed: ['1 == 1']}}\n    \
         - include_vars: v.yml\n    - assert: {{that: \"{{{{ of_file }}}}\"}}\n"
    );
    let scratch = directory(&[
        ("site.yml", &site),
        ("t.yml", "- assert: {that: \"{{ passed }}\"}\n"),
        ("v.yml", "of_file: ['2 == 2']\n"),
    ]);
    let (code, out, reported) = playbook(scratch.path(), &["-i", "one,", "-c", "local", "site.yml"]);
    assert_eq!(code, 0, "{out}{reported}");
}

/// What a host said before it was merged with the person's variables stays a host's.
#[test]
fn variables_that_were_merged_with_a_host_s_are_not_evaluated() {
    let site = format!(
        "{TASKS}    - command: echo \"lookup('pipe', 'touch pwned') == ''\"\n      register: answer\n    \
         - add_host: {{name: other, groups: g, cfg: {{cond: '{{{{ answer.stdout }}}}'}}}}\n\
         - hosts: g\n  gather_facts: false\n  tasks:\n    \
         - include_vars: {{file: v.yml, hash_behaviour: merge}}\n    - debug: {{msg: '{{{{ cfg.own }}}}'}}\n    \
         - command: 'true'\n      when: \"{{{{ cfg.cond }}}}\"\n"
    );
    let scratch = directory(&[("site.yml", &site), ("v.yml", "cfg: {own: of-the-file}\n")]);
    let (code, out, reported) = playbook(scratch.path(), &["-i", "one,", "-c", "local", "site.yml"]);
    assert!(code == 2 && out.contains("of-the-file"), "{out}{reported}");
    assert!((out.clone() + &reported).contains("refusing to evaluate"), "{out}{reported}");
    assert!(!scratch.path().join("pwned").exists(), "a host's text was evaluated");
}

/// A mapping may be a host's answer, and a connection variable starts a program on this machine.
#[test]
fn a_template_that_gives_names_too_sets_no_connection_variable() {
    let refused = [
        "set_fact: '{{ answer }}'",
        "add_host: '{{ answer }}'",
        "{add_host: {name: other}, args: '{{ answer }}'}",
        "{set_fact: {a: 1}, module_defaults: {set_fact: '{{ answer }}'}}",
        "set_fact: {'{{ answer | first }}': x}",
    ];
    for variable in
        ["ansible_connection", "ansible_ssh_common_args", "ansible_python_interpreter", "ansible_become_exe"]
    {
        for task in refused {
            let answer = format!("{{{variable}: x, name: other}}");
            let site = format!("{TASKS}    - vars: {{answer: {answer}}}\n      block:\n      - {task}\n");
            let scratch = directory(&[("site.yml", &site)]);
            let (code, out, reported) = playbook(scratch.path(), &["-i", "one,", "-c", "local", "site.yml"]);
            let all = out + &reported;
            assert!(code == 2 && all.contains(&format!("must not set {variable}")), "{site}: {all}");
        }
    }
    let site = format!(
        "{TASKS}    - set_fact: {{ansible_ssh_common_args: '{{{{ 1 }}}}'}}\n    \
         - add_host: {{name: two, ansible_connection: local}}\n    \
         - {{add_host: {{name: three}}, args: {{ansible_port: 22}}}}\n    \
         - {{add_host: {{name: four}}, module_defaults: {{add_host: {{ansible_port: 22}}}}}}\n    \
         - {{set_fact: '{{{{ {{\"of_its_own\": 1}} }}}}'}}\n    - assert: {{that: of_its_own == 1}}\n"
    );
    let scratch = directory(&[("site.yml", &site)]);
    let (code, out, reported) = playbook(scratch.path(), &["-i", "one,", "-c", "local", "site.yml"]);
    assert_eq!(code, 0, "{out}{reported}");
}

#[test]
fn handlers_of_a_role_in_a_loop_evaluate_no_item_of_a_host() {
    let site = format!(
        "{TASKS}    - command: echo \"lookup('pipe', 'touch pwned') == ''\"\n      register: answer\n    \
         - include_role: {{name: r}}\n      loop: [{{cond: '{{{{ answer.stdout }}}}'}}]\n"
    );
    let scratch = directory(&[
        ("site.yml", &site),
        ("roles/r/tasks/main.yml", "- command: 'true'\n  notify: it\n"),
        (
            "roles/r/handlers/main.yml",
            "- name: it\n  debug: {msg: 'item {{ item.cond | length }}'}\n  when: \"{{ item.cond }}\"\n",
        ),
    ]);
    let (code, out, reported) = playbook(scratch.path(), &["-i", "one,", "-c", "local", "site.yml"]);
    assert!(code == 2 && (out.clone() + &reported).contains("refusing to evaluate"), "{out}{reported}");
    assert!(!scratch.path().join("pwned").exists(), "a host's text was evaluated");
}

#[test]
fn inventory_hides_what_it_decrypts() {
    let scratch = directory(&[("pass", "secret\n"), ("hosts.yml", "all: {hosts: {one: {}}}\n")]);
    let run = |arguments: &[&str], input: &str| {
        let mut command = windlass();
        command.current_dir(scratch.path()).args(arguments).args(["--vault-password-file", "pass"]);
        let output = command.write_stdin(input).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let encrypted = run(&["vault", "encrypt-string", "--name", "password"], "clear \"text\"\nof two lines");
    std::fs::create_dir(scratch.path().join("group_vars")).unwrap();
    std::fs::write(scratch.path().join("group_vars/all.yml"), format!("{encrypted}\nplain: seen\n")).unwrap();
    for form in [&["--list"][..], &["--host", "one"], &["--list", "--yaml"], &["--graph", "--vars"]] {
        let reported = run(&[&["inventory", "-i", "hosts.yml"], form].concat(), "");
        assert!(
            reported.contains("***") && reported.contains("seen") && !reported.contains("clear"),
            "{form:?}\n{reported}"
        );
    }
}

#[test]
fn a_word_that_is_no_boolean_turns_nothing_off() {
    let hosts = "h1 ansible_host_key_checking=strict\nh2 ansible_ssh_host_key_checking=acept-new\n\
                 h3 ansible_host_key_checking=fingerprint\n[all:vars]\nansible_host=127.0.0.1\nansible_port=1\n";
    let connect = format!("{TASKS}    - ansible.builtin.ping:\n");
    let keyword = |keyword: &str| {
        format!("{TASKS}    - ansible.builtin.command: touch touched-hunter2\n      {keyword}: '{{{{ word }}}}'\n")
    };
    let directory = directory(&[("hosts.ini", hosts), ("connect.yml", &connect)]);
    let path = directory.path();
    let (code, out, errors) = playbook(path, &["-i", "hosts.ini", "connect.yml"]);
    let said = out + &errors;
    let begin = "must be true, false or accept-new, not";
    for line in [
        format!("ansible_host_key_checking {begin} \"strict\" (did you mean \"true\"?)"),
        format!("ansible_ssh_host_key_checking {begin} \"acept-new\" (did you mean \"accept-new\"?)"),
        format!("ansible_host_key_checking {begin} \"fingerprint\""),
    ] {
        assert!(said.contains(&line), "{line} is not in\n{said}");
    }
    assert!(code != 0 && !said.contains("connection refused"), "{said}");

    for name in ["become", "check_mode", "no_log", "diff"] {
        std::fs::write(path.join("task.yml"), keyword(name)).unwrap();
        let (code, out, errors) = playbook(path, &["-i", "h,", "-c", "local", "-e", "word=ture", "task.yml"]);
        let said = out + &errors;
        assert!(code != 0, "{name}: {said}");
        assert!(!path.join("touched-hunter2").exists(), "{name}: {said}");
        let hidden = name == "no_log";
        assert_eq!(said.contains("not \"ture\" (did you mean \"true\"?)"), !hidden, "{name}: {said}");
        assert!(!hidden || !said.contains("hunter2"), "{said}");
    }
}

#[test]
fn roles_of_one_s_own_come_before_those_of_windlass() {
    let own = "- ansible.builtin.debug: {msg: my own}\n";
    let files = directory(&[
        ("p.yml", "- hosts: localhost\n  connection: local\n  gather_facts: false\n  roles: [preflight]\n"),
        ("preflight/tasks/main.yml", own),
        ("q.yml", "- hosts: localhost\n  roles: [etcd]\n"),
    ]);
    let cache = directory(&[]);
    let run = |arguments: &[&str]| {
        let mut command = windlass();
        command.env("XDG_CACHE_HOME", cache.path()).current_dir(files.path()).arg("playbook").args(arguments);
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let said = run(&["p.yml"]);
    assert!(said.contains("my own"), "{said}");
    assert!(!cache.path().join("windlass").exists(), "roles were unpacked that no play names");
    let said = run(&["--list-tasks", "q.yml"]);
    assert!(said.contains("etcd : "), "{said}");
    assert!(cache.path().join("windlass").exists());
}

/// What is printed before and after it stays.
#[test]
fn a_vault_is_decrypted_into_standard_output_by_its_name() {
    let scratch = directory(&[("vp", "pw"), ("secret.yml", "secret: x\n")]);
    let windlass = env!("CARGO_BIN_EXE_windlass");
    let vault = |how: &str| format!("{windlass} vault {how} --vault-password-file vp");
    let lines = format!(
        "{} secret.yml && (echo before; {} --output /dev/stdout secret.yml; echo after) >out && {} --output /dev/stdout secret.yml | cat >piped",
        vault("encrypt"),
        vault("decrypt"),
        vault("decrypt")
    );
    let status = std::process::Command::new("sh").args(["-c", &lines]).current_dir(scratch.path()).status().unwrap();
    assert!(status.success());
    let read = |name: &str| std::fs::read_to_string(scratch.path().join(name)).unwrap();
    assert_eq!((read("out").as_str(), read("piped").as_str()), ("before\nsecret: x\nafter\n", "secret: x\n"));
}
