//! Questions of a run at a real terminal: what is shown, what is typed, Ctrl-C; and the terminal as it was afterwards.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const CTRL_C: &str = "\x03";
const BACKSPACE: &str = "\x7f";

/// A run on a terminal of 60 rows and 80 columns, with somebody who types.
struct Run {
    child: Child,
    keys: ChildStdin,
    written: Receiver<Vec<u8>>,
    terminal: vt100::Parser,
    _files: tempfile::TempDir,
}

impl Run {
    fn of(tasks: &str) -> Run {
        Run::with("", tasks)
    }

    fn with(options: &str, tasks: &str) -> Run {
        let files = tempfile::tempdir().unwrap();
        std::fs::write(files.path().join("hosts.ini"), "h1 ansible_connection=local\n").unwrap();
        let play = format!("- hosts: all\n  gather_facts: false\n  tasks:\n{tasks}");
        std::fs::write(files.path().join("p.yml"), play).unwrap();
        let program = env!("CARGO_BIN_EXE_windlass");
        let line = format!(
            "stty rows 60 cols 80; {program} playbook {options} -i hosts.ini p.yml; echo exit code $?; stty -a | tr ' ' '\\n' | \
             grep -E '^-?(echo|icanon|isig);?$'"
        );
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color").env("SHELL", "/bin/sh");
        for name in ["WINDLASS_LOG", "ANSIBLE_CONFIG"] {
            command.env_remove(name);
        }
        command.current_dir(files.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (keys, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, written) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut bytes) {
                sender.send(bytes[..count].to_vec()).ok();
            }
        });
        let [rows, columns] = [60, 80].map(|number| std::num::NonZero::new(number).unwrap());
        Run { child, keys, written, terminal: vt100::Parser::new(rows, columns, 0), _files: files }
    }

    fn screen(&self) -> String {
        self.terminal.screen().contents()
    }

    /// Waits until the terminal ends with some words.
    fn asks(&mut self, words: &str) {
        while !self.screen().trim_end().ends_with(words) {
            let bytes = self.written.recv_timeout(Duration::from_secs(60));
            let bytes = bytes.unwrap_or_else(|_| panic!("{words:?} never came:\n{}", self.screen()));
            self.terminal.process(&bytes);
        }
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// All that stands on the terminal in the end, where it takes lines, shows keys and knows Ctrl-C as before.
    fn end(mut self) -> String {
        while let Ok(bytes) = self.written.recv_timeout(Duration::from_secs(60)) {
            self.terminal.process(&bytes);
        }
        assert!(self.child.wait().unwrap().success());
        let screen = self.screen();
        let modes: Vec<&str> = screen.lines().rev().take(3).map(|line| line.trim_end_matches(';')).collect();
        assert!(["isig", "icanon", "echo"].iter().all(|mode| modes.contains(mode)), "{screen}");
        screen
    }
}

#[test]
fn a_line_is_typed_and_mended_and_a_hidden_one_is_never_shown() {
    let mut run = Run::of(
        "    - pause: {prompt: All well}\n      register: first\n    - pause: {prompt: Word, echo: false}\n      \
         register: second\n    - debug: {msg: '<{{ first.user_input }}> and {{ second.user_input | length }}'}\n",
    );
    run.asks("All well:");
    run.types(&format!("yex{BACKSPACE}s"));
    run.asks("All well: yes");
    run.types("\r");
    run.asks("Word (output is hidden):");
    run.types("s3cret\r");
    let screen = run.end();
    assert!(screen.contains("<yes> and 6") && screen.contains("exit code 0"), "{screen}");
    assert!(!screen.contains("s3cret"), "{screen}");
}

#[test]
fn after_ctrl_c_a_person_continues_or_ends_the_play() {
    const CHOICE: &str = "Press 'C' to continue the play or 'A' to abort";
    let mut run = Run::of(
        "    - name: First\n      pause: {minutes: 60}\n    - name: Second\n      pause:\n    - debug: {msg: never}\n",
    );
    run.asks("(ctrl+C then 'C' = continue early, ctrl+C then 'A' = abort)");
    // Long enough for lines that show what is at work: they must not come between a question and its answer.
    std::thread::sleep(Duration::from_millis(1200));
    run.types(&format!("x{CTRL_C}"));
    run.asks(CHOICE);
    run.types("xC");
    run.asks("Press enter to continue, Ctrl+C to interrupt:");
    let screen = run.screen();
    let place = |words: &str| screen.find(words).unwrap_or_else(|| panic!("no {words:?}:\n{screen}"));
    assert!(place("ok: [h1]") < place("TASK [Second]"), "{screen}");
    assert!(place("TASK [Second]") < place("Press enter to continue"), "{screen}");
    run.types(CTRL_C);
    run.asks(CHOICE);
    run.types("A");
    let screen = run.end();
    assert!(screen.contains("fatal: [h1]: user requested abort!") && screen.contains("exit code 2"), "{screen}");
    assert!(!screen.contains("never") && !screen.contains("at work"), "{screen}");
}

#[test]
fn each_task_is_asked_for_until_the_person_lets_all_others_run() {
    let tasks =
        ["one", "two", "three", "four"].map(|name| format!("    - debug: {{msg: ran {name}}}\n      name: {name}\n"));
    let mut run = Run::with("--step", &tasks.concat());
    run.asks("Perform task: one (N)o/(y)es/(c)ontinue:");
    run.types("\n");
    run.asks("Perform task: two (N)o/(y)es/(c)ontinue:");
    run.types("y\n");
    run.asks("Perform task: three (N)o/(y)es/(c)ontinue:");
    run.types("c\n");
    let screen = run.end();
    assert!(!screen.contains("ran one") && !screen.contains("task: four"), "{screen}");
    assert!(["ran two", "ran three", "ran four", "exit code 0"].iter().all(|words| screen.contains(words)), "{screen}");
}

#[test]
fn whoever_aborts_when_asked_for_a_task_ends_the_run() {
    let mut run = Run::with("--step", "    - debug: {msg: ran one}\n      name: one\n");
    run.asks("(c)ontinue:");
    run.types(CTRL_C);
    run.asks("'A' to abort");
    run.types("a");
    let screen = run.end();
    assert!(!screen.contains("ran one") && screen.contains("exit code 99"), "{screen}");
}

#[test]
fn a_password_that_is_asked_for_is_kept_as_its_hash() {
    let mut run = Run::of(
        "    - debug: {msg: '{{ word == given }} {{ word | length }} {{ random[:3] }} {{ random | length }}'}\n      vars: \
         {given: \"{{ 's3cret' | password_hash('sha512', 'ab12cd34') }}\"}\n  vars_prompt:\n    - {name: word, encrypt: \
         sha512_crypt, salt: ab12cd34}\n    - {name: random, encrypt: sha256_crypt, salt_size: 8}\n",
    );
    for (words, keys) in [("word:", "s3cret\r"), ("random:", "other1\r")] {
        run.asks(words);
        // The question stands there before the terminal hides what is typed.
        std::thread::sleep(Duration::from_secs(3));
        run.types(keys);
    }
    let screen = run.end();
    // Mark, rounds, salt and hash.
    assert!(screen.contains("True 112 $5$ 69") && screen.contains("exit code 0"), "{screen}");
    assert!(!screen.contains("s3cret") && !screen.contains("other1"), "{screen}");
}
