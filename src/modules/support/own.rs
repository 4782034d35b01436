//! Modules that a person writes: a program in `library/`, run on the host in Ansible's way of binary modules. It gets the
//! path of a file with its arguments as JSON, and prints a JSON object.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use minijinja::value::{Serde, ValueKind};

use crate::modules::execution::quote;
use crate::modules::{
    Async, Changes, Controller, Diff, Effect, Error, ModuleEntry, ModuleResult, Outcome, Run, RunsAt, script,
};
use crate::remote::{Attributes, Command, Output, Remote};
use crate::value::doc::{ANY_NAME, Argument, ArgumentKind, Doc, OWN};
use crate::value::mutex::Mutex;
use crate::value::truth;
use crate::value::{CORE, Value, Vars, read};

static ARGUMENTS: &[Argument] = &[Argument::new(ANY_NAME, ArgumentKind::Any, "What the module takes")];

/// How a program gets its arguments: in a file that its only argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Style {
    /// A JSON object: programs that are no text, and scripts with the word `WANT_JSON`.
    Json,
    /// `key=value` words, quoted as a shell reads them: other scripts.
    Words,
}

/// A program that is a module.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct OwnModule {
    name: String,
    file: PathBuf,
    style: Style,
}

/// The module in a file. Equal ones are kept once, for as long as the process lasts: a module is its name, its file and how
/// that gets its arguments. each run decides which file a name refers to.
///
/// # Errors
/// Why the file is none that can be run, and what to do.
pub fn open_module(name: &str, file: &Path) -> Result<&'static ModuleEntry, (String, &'static str)> {
    let content = read::bytes(file).map_err(|error| {
        (format!("cannot read the module {}: {error}", file.display()), "make the file readable for you")
    })?;
    let style = style(&content).map_err(|(why, hint)| (format!("the module {} {why}", file.display()), hint))?;
    let own = OwnModule { name: name.to_owned(), file: file.to_owned(), style };
    let mut opened = OPENED.lock();
    if let Some(entry) = opened.get(&own) {
        return Ok(entry);
    }
    let key = own.clone();
    let own: &'static OwnModule = Box::leak(Box::new(own));
    let doc = Doc {
        name: &own.name,
        collection: OWN,
        summary: "A module of the project",
        arguments: ARGUMENTS,
        free_form: None,
        example: "",
        returns: &[],
    };
    let entry: &'static ModuleEntry = Box::leak(Box::new(ModuleEntry {
        doc: Box::leak(Box::new(doc)),
        place: RunsAt::Host,
        changes: Changes::Other,
        asynchronous: Async::Limit,
        once: false,
        accepts: |_| Ok(()),
        run: run_of(own),
    }));
    opened.insert(key, entry);
    Ok(entry)
}

fn run_of(own: &'static OwnModule) -> Run {
    fn kept<F>(run: F) -> Run
    where
        F: for<'a> Fn(Value, Option<&'a Remote>, &'a Controller<'a>) -> BoxFuture<'a, Result<ModuleResult, Error>>
            + Send
            + Sync
            + 'static,
    {
        Box::leak(Box::new(run))
    }
    kept(move |args, remote, here| Box::pin(own.run(args, remote, here)))
}

static OPENED: Mutex<BTreeMap<OwnModule, &'static ModuleEntry>> = Mutex::new(BTreeMap::new());

/// The module that was opened with this documentation.
pub fn own_entry(doc: &Doc) -> Option<&'static ModuleEntry> {
    let opened = OPENED.lock();
    opened.values().copied().find(|entry| std::ptr::eq(entry.doc, doc))
}

/// How a program gets its arguments, or why it cannot be run, and what to do.
fn style(content: &[u8]) -> Result<Style, (&'static str, &'static str)> {
    let Some(text) = std::str::from_utf8(content).ok().filter(|text| !text.contains('\0')) else {
        return Ok(Style::Json);
    };
    let starts = |words: &[&str]| text.lines().any(|line| words.iter().any(|word| line.trim_start().starts_with(word)));
    if starts(&["from ansible", "import ansible"]) || text.contains("<<INCLUDE_ANSIBLE_MODULE") {
        let why = "needs Python and ansible.module_utils on the host, which windlass does not install";
        return Err((why, "write it as a program or script that reads its arguments as JSON: docs/how-to/own-code.md"));
    }
    if starts(&["#Requires -Module", "#AnsibleRequires"]) {
        return Err(("is one for Windows", "windlass manages hosts with a POSIX shell"));
    }
    if !text.starts_with("#!") {
        return Err(("has no line that names its interpreter", "start it with a line such as #!/bin/sh"));
    }
    Ok(if text.contains("WANT_JSON") { Style::Json } else { Style::Words })
}

impl OwnModule {
    async fn run(&self, args: Value, remote: Option<&Remote>, here: &Controller<'_>) -> Result<ModuleResult, Error> {
        let remote = remote.expect("the engine opens the host for every module that is placed there");
        let program = read::bytes(&self.file)
            .map_err(|error| Error::failed(format!("cannot read the module {}: {error}", self.file.display())))?;
        if !here.check {
            remote.may_change().await?;
        }
        let directory = remote.temporary_directory().await?;
        let output = self.run_in(&directory, &program, &args, remote, here).await;
        remote.remove(&directory).await?;
        Ok(self.done(&output?))
    }

    async fn run_in(
        &self,
        directory: &str,
        program: &[u8],
        args: &Value,
        remote: &Remote,
        here: &Controller<'_>,
    ) -> Result<Output, Error> {
        let (file, given) = (format!("{directory}/{}", self.name), format!("{directory}/args"));
        let attributes = |mode| Attributes { mode: Some(mode), ..Attributes::default() };
        remote.write(&file, program, &attributes(0o700)).await?;
        remote.write(&given, self.arguments(args, directory, here)?.as_bytes(), &attributes(0o600)).await?;
        let text = program.starts_with(b"#!");
        let interpreter = if text { format!("{} ", script::interpreter(program)) } else { String::new() };
        let line = format!("{interpreter}{} {}", quote(&file), quote(&given));
        Ok(remote.run(&Command::shell(line)).await?)
    }

    /// The task's arguments, and those that Ansible passes to every module.
    fn arguments(&self, args: &Value, directory: &str, here: &Controller<'_>) -> Result<String, Error> {
        let reported = [
            ("check_mode", Value::from(here.check)),
            ("no_log", Value::from(here.no_log)),
            ("debug", Value::from(false)),
            ("diff", Value::from(here.diff)),
            ("verbosity", Value::from(here.verbosity)),
            ("version", Value::from(CORE)),
            ("module_name", Value::from(&*self.name)),
            ("syslog_facility", Value::from("LOG_USER")),
            ("shell_executable", Value::from("/bin/sh")),
            ("keep_remote_files", Value::from(false)),
            ("tmpdir", Value::from(directory)),
            ("remote_tmp", Value::from(directory)),
        ];
        let given = args.as_object().and_then(|args| args.try_iter_pairs()).into_iter().flatten();
        let reported = reported.into_iter().map(|(name, value)| (Value::from(format!("_ansible_{name}")), value));
        let all: Vec<(Value, Value)> = given.chain(reported).collect();
        match self.style {
            Style::Json => Ok(serde_json::to_string(&Value::from_pairs(all)).unwrap_or_default()),
            // The module's shell reads the names as its own text.
            Style::Words => match all.iter().find(|(name, _)| !is_shell_name(&name.to_string())) {
                Some((name, _)) => Err(Error::failed(format!(
                    "cannot give the argument {:?} to the module {:?}: a name may contain only letters, digits and _",
                    name.to_string(),
                    self.name
                ))),
                None => Ok(all.iter().map(|(name, value)| format!("{name}={} ", quote(&value.to_string()))).collect()),
            },
        }
    }

    /// What the program printed, as the result of the task.
    fn done(&self, output: &Output) -> ModuleResult {
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let object = object(&stdout).and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
        let Some(serde_json::Value::Object(members)) = object else {
            let outcome = Outcome {
                failed: Some(self.no_object(output.code, &stdout, &stderr)),
                ..Outcome::default()
                    .with("module_stdout", &*stdout)
                    .with("module_stderr", &*stderr)
                    .with("rc", output.code)
            };
            return ModuleResult::unchanged(outcome);
        };
        // What begins so is between the module and its runner.
        let members = members.into_iter().filter(|(name, _)| !name.starts_with("_ansible_"));
        let values = members.map(|(name, value)| (Arc::from(name), Value::from(Serde(value))));
        outcome(values.collect())
    }

    fn no_object(&self, code: i32, stdout: &str, stderr: &str) -> String {
        let reported = |what: &str, text: &str| match text.trim() {
            "" => format!("nothing to {what}"),
            text => format!("{:?} to {what}", text.chars().take(500).collect::<String>()),
        };
        let (stdout, stderr) = (reported("standard output", stdout), reported("standard error", stderr));
        format!("the module {:?} printed no JSON object: {stdout}, {stderr}, exit code {code}", self.name)
    }
}

/// The object in what a program printed, without lines before and after it.
fn object(stdout: &str) -> Option<&str> {
    let mut start = 0;
    for line in stdout.split_inclusive('\n') {
        if line.trim_start().starts_with('{') {
            return stdout[start..].rfind('}').map(|end| &stdout[start..=start + end]);
        }
        start += line.len();
    }
    None
}

/// The members of a result as what became of the task.
fn outcome(mut values: Vars) -> ModuleResult {
    let mut flag = |name: &str| values.shift_remove(name).map(|value| is_true(&value));
    let (changed, failed, skipped) = (flag("changed"), flag("failed"), flag("skipped"));
    let code = values.get("rc").filter(|code| code.as_i64() != Some(0) && code.as_str() != Some("0"));
    let failed = failed.unwrap_or(code.is_some());
    let message = values.shift_remove("msg").filter(|message| !message.is_none()).map(|message| message.to_string());
    for name in ["stdout", "stderr"] {
        let lines = format!("{name}_lines");
        if let Some(text) = values.get(name).and_then(Value::as_str)
            && !values.contains_key(&*lines)
        {
            let split: Vec<Value> = text.lines().map(Value::from).collect();
            values.insert(Arc::from(lines), Value::from(split));
        }
    }
    let facts = values.get("ansible_facts").map(pairs).unwrap_or_default();
    let diff = values.get("diff").map(diffs).unwrap_or_default();
    let skipped = skipped.unwrap_or(false);
    if skipped {
        // Unlike a task whose conditions say no, it was run.
        values.insert("failed".into(), Value::from(failed));
    }
    let mut outcome = Outcome { skipped, values, ..Outcome::default() };
    match failed {
        true => outcome.failed = Some(message.unwrap_or_else(|| "the module failed without a message".to_owned())),
        false => outcome.message = message,
    }
    if !facts.is_empty() && !failed {
        outcome = outcome.effect(Effect::Facts(facts));
    }
    ModuleResult { changed: changed.unwrap_or(false), diff, outcome }
}

/// Python's truth, and that of the words for it that shell scripts print.
fn is_true(value: &Value) -> bool {
    match value.as_str() {
        Some(text) => truth::of_any_text(text),
        None => value.is_true(),
    }
}

fn pairs(value: &Value) -> Vars {
    let pairs = value.as_object().filter(|_| value.kind() == ValueKind::Map).and_then(|map| map.try_iter_pairs());
    pairs.into_iter().flatten().map(|(name, value)| (Arc::from(name.to_string()), value)).collect()
}

/// `diff: {before: …, after: …}`, or a list of such.
fn diffs(value: &Value) -> Vec<Diff> {
    let all: Vec<Value> = match value.kind() {
        ValueKind::Seq => value.try_iter().into_iter().flatten().collect(),
        _ => vec![value.clone()],
    };
    let part = |diff: &Value, name: &str| {
        diff.get_attr(name).ok().filter(Value::is_true).map_or(String::new(), |v| v.to_string())
    };
    all.iter()
        .filter(|diff| diff.kind() == ValueKind::Map)
        .map(|diff| Diff {
            before_header: part(diff, "before_header"),
            after_header: part(diff, "after_header"),
            before: part(diff, "before"),
            after: part(diff, "after"),
        })
        .collect()
}

/// Whether a shell takes it as the name of a variable.
fn is_shell_name(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_shell_text_is_no_argument() {
        assert!(is_shell_name("path") && is_shell_name("_ansible_check_mode") && is_shell_name("a1"));
        assert!(!is_shell_name("a;touch x;b") && !is_shell_name("1a") && !is_shell_name("") && !is_shell_name("a b"));
    }

    #[test]
    fn a_program_says_how_it_wants_its_arguments_or_why_it_cannot_run() {
        assert_eq!(style(b"\x7fELF\0\x01"), Ok(Style::Json));
        assert_eq!(style(b"#!/bin/sh\n# WANT_JSON\n"), Ok(Style::Json));
        assert_eq!(style(b"#!/bin/sh\n. \"$1\"\n"), Ok(Style::Words));
        assert!(style(b"echo {}\n").unwrap_err().0.contains("has no line that names its interpreter"));
        let python = b"#!/usr/bin/python3\nfrom ansible.module_utils.basic import AnsibleModule\n";
        assert!(style(python).unwrap_err().0.contains("ansible.module_utils"));
        assert!(style(b"#!powershell\n#AnsibleRequires -CSharpUtil Ansible.Basic\n").is_err());
    }

    #[test]
    fn the_object_is_found_between_other_lines() {
        assert_eq!(object("motd\n {\"a\":\n 1}\nbye\n"), Some(" {\"a\":\n 1}"));
        assert_eq!(object("no object"), None);
        assert_eq!(object(""), None);
    }

    #[test]
    fn a_result_fails_by_its_flag_or_else_by_its_code() {
        let run = |json: &str| {
            let own = OwnModule { name: "x".into(), file: "x".into(), style: Style::Json };
            own.done(&Output { code: 0, stdout: json.into(), stderr: b"oops".to_vec() })
        };
        let done = run("{\"changed\": true, \"msg\": \"m\", \"stdout\": \"a\\nb\", \"_ansible_x\": 1}");
        assert!(done.changed && done.outcome.failed.is_none() && done.outcome.message.as_deref() == Some("m"));
        assert_eq!(done.outcome.values["stdout_lines"].len(), Some(2));
        assert!(!done.outcome.values.contains_key("_ansible_x"));
        assert!(run("{\"rc\": 3}").outcome.failed.is_some());
        assert!(run("{\"rc\": 3, \"failed\": false}").outcome.failed.is_none());
        let facts = run("{\"ansible_facts\": {\"f\": 1}}").outcome.effects;
        assert!(matches!(facts.as_slice(), [Effect::Facts(facts)] if facts["f"].as_i64() == Some(1)));
        let words = run("hello").outcome.failed.unwrap();
        assert!(words.contains("\"hello\" to standard output, \"oops\" to standard error, exit code 0"), "{words}");
    }
}
