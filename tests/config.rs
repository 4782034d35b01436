//! Settings as a person meets them: what `ansible.cfg` and the environment change, what is said of a slip, what
//! `windlass config` shows; and `docs/reference/configuration.md`, which is made from the list (`UPDATE_DOCS=1` writes it).

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::Path;

use assert_cmd::Command;
use windlass::connection::CONNECT_TIMEOUT;
use windlass::settings::{GROUPS, Relevance, SETTINGS, list};

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

/// Exit code, standard output and standard error, in a directory and with no settings but its own.
fn windlass(directory: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ANSIBLE_")) {
        command.env_remove(name);
    }
    // Set by .cargo/config.toml.
    command.env_remove("WINDLASS_RUNS");
    command.env("NO_COLOR", "1").env("HOME", directory).envs(variables.iter().copied());
    let output = command.current_dir(directory).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_default_that_is_shown_for_the_timeout_is_the_one_of_connections() {
    assert_eq!(list::TIMEOUT.default, CONNECT_TIMEOUT.as_secs().to_string());
}

#[test]
fn config_shows_what_is_in_force_and_where_it_comes_from() {
    let files = directory(&[("ansible.cfg", "[defaults]\nforks = 7\nroles_path = mine\npipelining = yes\n")]);
    let variables = [("ANSIBLE_REMOTE_USER", "deploy"), ("ANSIBLE_BECOME_PASS", "topsecret")];
    let arguments = ["config", "--only-changed", "-b", "-T", "3"];
    let (code, stdout, stderr) = windlass(files.path(), &variables, &arguments);
    let top = files.path().canonicalize().unwrap();
    let lines: Vec<String> = stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        format!("configuration file: {}/ansible.cfg", top.display()),
        format!("defaults.roles_path = {}/mine (ansible.cfg:3)", top.display()),
        "defaults.forks = 7 (ansible.cfg:2)".into(),
        "defaults.remote_user = deploy (ANSIBLE_REMOTE_USER)".into(),
        "defaults.timeout = 3 (command line)".into(),
        "privilege_escalation.become = true (command line)".into(),
        "sudo_become_plugin.password = (hidden) (ANSIBLE_BECOME_PASS)".into(),
        "pipelining (ansible.cfg:4) has no effect: windlass keeps one session per host and user open for the whole run"
            .into(),
    ];
    assert_eq!((code, stderr.as_str(), lines), (0, "", expected.to_vec()));
}

#[test]
fn a_key_that_is_there_twice_is_reported_wherever_it_stands() {
    let twice = |name: &str| format!("{name}: 1\n{name}: 2\n");
    let files = [
        ("in_inventory.yml", "all:\n  hosts:\n    h:\n    h:\n".to_owned()),
        ("group_vars/all.yml", twice("in_group")),
        ("host_vars/h.yml", twice("in_host")),
        ("in_file.yml", twice("in_file")),
        ("in_include.yml", twice("in_include")),
        ("in_extra.yml", twice("in_extra")),
        ("tasks.yml", "- debug:\n    msg: 1\n    msg: 2\n".to_owned()),
        (
            "play.yml",
            "- hosts: h\n  gather_facts: false\n  gather_facts: false\n  connection: local\n  vars_files: [in_file.yml]\n  \
             tasks:\n    - include_vars: in_include.yml\n    - include_tasks: \"{{ 'tasks' }}.yml\"\n    - debug:\n        \
             msg: \"{{ in_group + in_host + in_file + in_include + in_extra }}\"\n"
                .to_owned(),
        ),
    ];
    let directory = directory(&files.each_ref().map(|(name, text)| (*name, text.as_str())));
    let arguments = ["playbook", "-i", "in_inventory.yml", "play.yml", "-e", "@in_extra.yml"];
    let run = |rule: &str| windlass(directory.path(), &[("ANSIBLE_DUPLICATE_YAML_DICT_KEY", rule)], &arguments);
    let (code, stdout, stderr) = run("warn");
    let reported = stdout.clone() + &stderr;
    assert!(code == 0 && stdout.contains("\"msg\": 10"), "{reported}");
    for key in ["h", "gather_facts", "in_group", "in_host", "in_file", "in_include", "in_extra", "msg"] {
        let times = reported.matches(&format!("the key {key:?} is given twice, first in line")).count();
        assert_eq!(times, 1, "{key} in {reported}");
    }
    let (code, stdout, stderr) = run("ignore");
    assert!(code == 0 && !(stdout + &stderr).contains("twice"));
    // Refused wherever it stands: of the files that have such a key all but one are made right.
    let right = |text: &str| match text.split_once("2\n") {
        Some((before, _)) if text.starts_with("in_") => before.lines().next().unwrap().to_owned() + "\n",
        _ => text.replace("    h:\n    h:\n", "    h:\n").replace("    msg: 1\n", "").replacen(
            "  gather_facts: false\n",
            "",
            1,
        ),
    };
    for (name, text) in &files {
        for (other, text) in &files {
            std::fs::write(directory.path().join(other), right(text)).unwrap();
        }
        assert_eq!(run("error").0, 0, "{}", run("error").1);
        std::fs::write(directory.path().join(name), text).unwrap();
        let (code, stdout, stderr) = run("error");
        let reported = stdout + &stderr;
        assert!(
            code != 0 && reported.contains("is given twice, first in line") && !reported.contains("this one"),
            "{name}: {reported}"
        );
    }
}

/// Answers as many requests as there are answers, and gives what was asked.
fn server(answers: &'static [&'static str]) -> (String, std::thread::JoinHandle<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = std::thread::spawn(move || {
        let mut asked = String::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 2048];
            let count = stream.read(&mut request).unwrap();
            asked += &String::from_utf8_lossy(&request[..count]);
            stream.write_all(answer.as_bytes()).unwrap();
        }
        asked
    });
    (address, asked)
}

#[test]
fn the_lookup_url_goes_by_the_proxy_and_the_logins_of_this_machine() {
    const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfound";
    let (proxy, asked) = server(&[ANSWER, ANSWER]);
    let play = "- hosts: localhost\n  gather_facts: false\n  tasks:\n    - debug: {msg: \"{{ lookup('url', 'http://no.such.host/x', \
                force=true) }}\"}\n    - debug: {msg: \"{{ lookup('url', 'http://no.such.host/y', use_netrc=false) }}\"}\n    \
                - debug: {msg: \"{{ lookup('url', 'http://me:s3' ~ 'cret@127.0.0.1:9/x', use_proxy=false) }}\"}\n";
    let files = directory(&[("p.yml", play), (".netrc", "machine no.such.host login u password p\n")]);
    let proxy = format!("http://{proxy}");
    let variables = [("http_proxy", proxy.as_str()), ("no_proxy", "")];
    let (code, stdout, _) = windlass(files.path(), &variables, &["playbook", "p.yml"]);
    let asked = asked.join().unwrap();
    assert!(asked.contains("GET http://no.such.host/x HTTP/1.1\r\n"), "{asked}");
    // u:p in base64, for the first alone.
    assert_eq!(asked.to_lowercase().matches("authorization: basic dtpw").count(), 1, "{asked}");
    assert_eq!(asked.to_lowercase().matches("cache-control: no-cache").count(), 1, "{asked}");
    assert!(code == 2 && stdout.matches("\"msg\": \"found\"").count() == 2, "{stdout}");
    assert!(stdout.contains("cannot fetch http://127.0.0.1:9/x") && !stdout.contains("s3cret"), "{stdout}");
}

#[test]
fn a_failed_task_keeps_its_secret_arguments_to_itself() {
    let play = "- hosts: localhost\n  gather_facts: false\n  vars: {word: \"{{ 's3' ~ 'cret' }}\"}\n  tasks:\n    - block:\n        \
                - uri: {url: 'http://127.0.0.1:9/', url_username: me, url_password: '{{ word }}', timeout: 2}\n      \
                rescue:\n        - debug: {var: ansible_failed_task}\n";
    let files = directory(&[("p.yml", play)]);
    let (code, stdout, stderr) = windlass(files.path(), &[], &["playbook", "p.yml", "-vvv"]);
    let reported = stdout + &stderr;
    assert!(code == 0 && reported.contains("\"url_username\": \"me\"") && !reported.contains("s3cret"), "{reported}");
}

#[test]
fn config_explains_one_setting_and_speaks_json() {
    let files = directory(&[]);
    let (_, stdout, _) = windlass(files.path(), &[], &["config", "ANSIBLE_FORKS"]);
    let expected = "defaults.forks = 20  (default)\n    how many hosts to work on at once: a whole number of at least 1\n    \
                    default: 20\n    environment: ANSIBLE_FORKS\n    option: --forks\n";
    assert_eq!(stdout, expected);
    let (_, stdout, _) = windlass(files.path(), &[("ANSIBLE_FORKS", "3")], &["config", "--output", "json", "forks"]);
    let reported: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let forks = serde_json::json!({"value": 3, "from": "ANSIBLE_FORKS", "default": "20"});
    assert_eq!(reported, serde_json::json!({"file": null, "settings": {"defaults.forks": forks}}));
    let (code, _, stderr) = windlass(files.path(), &[], &["config", "froks"]);
    assert_eq!((code, stderr.trim()), (1, "error: no such setting: \"froks\", did you mean \"forks\"?"));
}

#[test]
fn a_wrong_value_is_shown_with_its_line_and_stops_everything() {
    let files = directory(&[("ansible.cfg", "[defaults]\nforks = abc\n"), ("p.yml", "- hosts: all\n")]);
    let expected = "error: forks must be a whole number of at least 1, this is \"abc\"\n --> ansible.cfg:2:9\n  |\n\
                    2 | forks = abc\n  |         ^\n";
    for arguments in [["playbook", "p.yml"], ["inventory", "--list"], ["config", "--only-changed"]] {
        assert_eq!(windlass(files.path(), &[], &arguments), (4, String::new(), expected.into()));
    }
}

#[test]
fn what_is_not_honoured_is_named_once_with_its_line() {
    let playbook = "- hosts: all\n  gather_facts: false\n  tasks: [{ping: }]\n";
    let settings = "[defaults]\ninventory = hosts\ntransport = local\ntest_plugins = mine\nfroks = 2\n";
    let files = directory(&[("ansible.cfg", settings), ("hosts", "a\nb\n"), ("p.yml", playbook)]);
    let (code, stdout, stderr) = windlass(files.path(), &[], &["playbook", "p.yml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("ok: [a]") && stdout.contains("ok: [b]"), "{stdout}");
    for words in ["test_plugins is not supported", "ansible.cfg:4:1", "did you mean \"forks\"?", "ansible.cfg:5:1"] {
        assert_eq!(stderr.matches(words).count(), 1, "{words} in\n{stderr}");
    }
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
    let playbook = "- hosts: all\n  gather_facts: false\n  tasks: [{debug: {msg: \"{{ ansible_forks }} forks\"}}]\n";
    let files = directory(&[("ansible.cfg", "[defaults]\nforks = 3\n"), ("p.yml", playbook)]);
    let reported = |variables: &[(&str, &str)], more: &[&str]| {
        let arguments = [&["playbook", "-i", "localhost,", "p.yml"], more].concat();
        let (_, stdout, _) = windlass(files.path(), variables, &arguments);
        let at = stdout.find(" forks").unwrap();
        stdout[at - 1..at].to_owned()
    };
    assert_eq!(reported(&[], &[]), "3");
    assert_eq!(reported(&[("ANSIBLE_FORKS", "4")], &[]), "4");
    assert_eq!(reported(&[("ANSIBLE_FORKS", "4")], &["-f", "5"]), "5");
}

#[test]
fn duplicate_keys_are_a_warning_an_error_or_nothing() {
    let playbook = "- hosts: all\n  gather_facts: false\n  vars: {a: 1, a: 2}\n  tasks: [{debug: }]\n";
    let files = directory(&[("p.yml", playbook)]);
    let run = |word| {
        let variables = [("ANSIBLE_DUPLICATE_YAML_DICT_KEY", word)];
        let (code, _, stderr) = windlass(files.path(), &variables, &["playbook", "-i", "localhost,", "p.yml"]);
        (code, stderr.lines().next().unwrap_or_default().to_owned())
    };
    let words = "the key \"a\" is given twice, first in line 3";
    assert_eq!(run("warn"), (0, format!("warning: {words}; the last one is used")));
    assert_eq!(run("error"), (4, format!("error: {words}")));
    assert_eq!(run("ignore"), (0, String::new()));
}

#[test]
fn duplicate_keys_in_files_of_variables_follow_the_same_setting() {
    let playbook = "- hosts: all\n  gather_facts: false\n  tasks: [{include_vars: included.yml}]\n";
    let files = directory(&[
        ("p.yml", playbook),
        ("extra.yml", "extra: 1\nextra: 2\n"),
        ("group_vars/all.yml", "group: 1\ngroup: 2\n"),
        ("included.yml", "included: 1\nincluded: 2\n"),
    ]);
    let run = |word| {
        let variables = [("ANSIBLE_DUPLICATE_YAML_DICT_KEY", word)];
        let arguments = ["playbook", "-i", "localhost,", "-e", "@extra.yml", "p.yml"];
        let (code, stdout, stderr) = windlass(files.path(), &variables, &arguments);
        let reported = stdout + &stderr;
        let warned = |key: &&str| reported.contains(&format!("the key \"{key}\" is given twice"));
        (code, ["extra", "group", "included"].into_iter().filter(warned).collect::<Vec<_>>())
    };
    assert_eq!(run("warn"), (0, vec!["extra", "group", "included"]));
    assert_eq!(run("error"), (4, vec!["extra"]));
    assert_eq!(run("ignore"), (0, vec![]));
}

#[test]
fn results_that_nobody_wants_to_see_are_left_out_with_their_banners() {
    let playbook = "- hosts: all\n  gather_facts: false\n  tasks:\n    - {name: Well, set_fact: {x: 1}}\n    \
                    - {name: Not done, debug: , when: false}\n    \
                    - {name: Done, debug: {msg: \"{{ x }}\"}, changed_when: true}\n    - set_stats: {data: {reported: 1}}\n";
    let files = directory(&[("p.yml", playbook)]);
    let reported = |settings: &[(&str, &str)]| {
        let (_, stdout, _) = windlass(files.path(), settings, &["playbook", "-i", "localhost,", "p.yml"]);
        ["TASK [Well]", "ok: [", "TASK [Not done]", "skipping: [", "TASK [Done]", "changed: [", "stats:"]
            .map(|words| stdout.contains(words))
    };
    assert_eq!(reported(&[]), [true; 7]);
    let not_ok = reported(&[("ANSIBLE_DISPLAY_OK_HOSTS", "no")]);
    assert_eq!(not_ok, [false, false, true, true, true, true, true]);
    let not_skipped = reported(&[("ANSIBLE_DISPLAY_SKIPPED_HOSTS", "no"), ("ANSIBLE_SHOW_CUSTOM_STATS", "no")]);
    assert_eq!(not_skipped, [true, true, false, false, true, true, false]);
}

#[test]
fn a_diff_has_as_many_lines_around_a_change_as_configured() {
    let playbook = "- hosts: all\n  gather_facts: false\n  tasks: [{lineinfile: {path: \"{{ playbook_dir }}/text\", \
                    line: NEW, regexp: '^5$'}}]\n";
    let text: String = (1..10).map(|number| format!("{number}\n")).collect();
    let files = directory(&[("p.yml", playbook), ("text", &text)]);
    let lines = |context| {
        let settings = [("ANSIBLE_DIFF_CONTEXT", context), ("ANSIBLE_DIFF_ALWAYS", "true")];
        let arguments = ["playbook", "-i", "localhost,", "-c", "local", "-C", "p.yml"];
        let (_, stdout, _) = windlass(files.path(), &settings, &arguments);
        stdout.lines().filter(|line| line.starts_with([' ', '+', '-'])).filter(|line| line.len() < 5).count()
    };
    assert_eq!((lines("0"), lines("1"), lines("3")), (2, 4, 8));
}

#[test]
fn a_task_that_does_not_say_ends_at_the_configured_time() {
    let playbook = "- hosts: all\n  gather_facts: false\n  tasks:\n    - {pause: {seconds: 1}, timeout: 9}\n    \
                    - pause: {seconds: 20}\n";
    let files = directory(&[("ansible.cfg", "[defaults]\ntask_timeout = 1\n"), ("p.yml", playbook)]);
    let (code, stdout, _) = windlass(files.path(), &[], &["playbook", "-i", "localhost,", "p.yml"]);
    assert!(code == 2 && stdout.contains("timed out after 1 s") && stdout.contains("ok=1 "), "{stdout}");
}

#[test]
fn passwords_come_from_files_that_settings_name() {
    let files = directory(&[("ansible.cfg", "[defaults]\nvault_identity_list = dev@pass\n"), ("pass", "topsecret\n")]);
    std::fs::write(files.path().join("plain"), "a: hidden\n").unwrap();
    let run = |variables: &[(&str, &str)], arguments: &[&str]| windlass(files.path(), variables, arguments);
    assert_eq!(run(&[("ANSIBLE_VAULT_ENCRYPT_IDENTITY", "dev")], &["vault", "encrypt", "plain"]).0, 0);
    let text = std::fs::read_to_string(files.path().join("plain")).unwrap();
    assert!(text.starts_with("$ANSIBLE_VAULT;1.2;AES256;dev\n"), "{text}");
    assert_eq!(run(&[], &["vault", "view", "plain"]).1, "a: hidden\n");
    let variables = [("ANSIBLE_CONFIG", "/dev/null"), ("ANSIBLE_VAULT_PASSWORD_FILE", "pass")];
    assert_eq!(run(&variables, &["vault", "view", "plain"]).1, "a: hidden\n");
}

/// Every setting and variable that `ansible-config list` has (recorded in `config/`) stands in one of the lists.
#[test]
fn no_setting_of_ansible_is_forgotten() {
    let ours = SETTINGS.iter().flat_map(|setting| {
        let also = setting.also.iter().map(|(section, key)| format!("{section}.{key}"));
        let env = setting.env.iter().map(ToString::to_string);
        also.chain(env).chain([setting.setting_name()])
    });
    let rows = GROUPS.iter().flat_map(|group| group.settings);
    let others = rows.flat_map(|row| row.1.iter().chain([&row.0]).map(ToString::to_string));
    let known: HashSet<String> = ours.chain(others).collect();
    let here = |name: &str| {
        let whole = name.split_once('.').map(|(section, _)| format!("{section}.*"));
        let begins = |known: &String| known.strip_suffix('*').is_some_and(|begin| name.starts_with(begin));
        known.contains(name) || whole.is_some_and(|whole| known.contains(&whole)) || known.iter().any(begins)
    };
    let no_settings = |name: &str| name.starts_with("ANSIBLE_WORKER_SHUTDOWN_");
    let names = include_str!("config/ansible-core-2.19.txt").lines().filter(|name| !no_settings(name));
    let forgotten: Vec<&str> = names.filter(|name| !here(name)).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}

#[test]
fn the_docs_are_the_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/configuration.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let (head, _) = written.split_once("## What is honoured\n").expect("the page has that heading");
    let right = format!("{head}{}", tables());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &right).unwrap();
        return;
    }
    assert!(
        written == right,
        "docs/reference/configuration.md is not what the list says: UPDATE_DOCS=1 cargo test --test config"
    );
}

fn tables() -> String {
    let mut out = "## What is honoured\n".to_owned();
    let mut sections: Vec<&str> = SETTINGS.iter().map(|setting| setting.section).collect();
    let mut seen = HashSet::new();
    sections.retain(|section| seen.insert(*section));
    let by_section = sections.iter().flat_map(|section| SETTINGS.iter().filter(move |one| one.section == *section));
    let mut section = "";
    for setting in by_section {
        if setting.section != section {
            section = setting.section;
            writeln!(out, "\n| in `[{section}]` | environment | option | default | meaning |")
                .expect("a String takes any text");
            out.push_str("|---|---|---|---|---|\n");
        }
        let code = |words: Vec<String>| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" ");
        let option = if setting.option.is_empty() { vec![] } else { vec![format!("--{}", setting.option)] };
        let default = if setting.default.is_empty() { vec![] } else { vec![setting.default.to_owned()] };
        let env = setting.env.iter().map(ToString::to_string).collect();
        let also = setting.also.iter().map(|(section, key)| format!("{section}.{key}")).collect::<Vec<_>>();
        let also = if also.is_empty() { String::new() } else { format!(" Also {}.", code(also)) };
        let (env, option, default) = (code(env), code(option), code(default));
        let (key, meaning, kind) = (setting.key, setting.meaning, setting.kind.setting_kind_text());
        writeln!(out, "| `{key}` | {env} | {option} | {default} | {meaning} ({kind}).{also} |")
            .expect("a String takes any text");
    }
    for (standing, heading, words) in [
        (Relevance::NotNeeded, "What is not needed", "Taken, and without effect; nothing is lost."),
        (Relevance::NotHonoured, "Unsupported settings", "A warning names each that is set to anything unusual."),
    ] {
        writeln!(out, "\n## {heading}\n\n{words}\n").expect("a String takes any text");
        for group in GROUPS.iter().filter(|group| group.standing == standing) {
            let names: Vec<String> = group.settings.iter().map(|row| format!("`{}`", row.0)).collect();
            writeln!(out, "- {}: {}", group.why, names.join(", ")).expect("a String takes any text");
        }
    }
    out
}
