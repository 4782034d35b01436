//! `modprobe`: modules of the host's kernel, now and after a boot.

use async_trait::async_trait;
use serde::Deserialize;

use super::execution::quote;
use super::file_attributes::Wanted;
use super::file_edit::{self, Manner, Target};
use super::file_write::Write;
use super::{Controller, Diff, Error, Module, Outcome, Plan};
use crate::remote::{Command, Output, Probe, Remote};
use crate::value::doc::{Argument, Doc, Kind, Return};

/// What is loaded at boot.
const LOADED: &str = "/etc/modules-load.d";
/// With which parameters.
const PARAMETERS: &str = "/etc/modprobe.d";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Modprobe {
    name: String,
    state: State,
    params: String,
    persistent: Persistent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Present,
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Persistent {
    Disabled,
    Present,
    Absent,
}

#[derive(Default)]
pub struct Change {
    files: Vec<Write>,
    /// What `modprobe` is told.
    argv: Vec<String>,
}

#[async_trait]
impl Module for Modprobe {
    const DOC: Doc = Doc {
        name: "modprobe",
        collection: "community.general",
        summary: "Loads and unloads modules of the host's kernel",
        arguments: &[
            Argument::new("name", Kind::Str, "The module of the kernel").required(),
            Argument::new("state", Kind::Str, "Whether it is to be loaded")
                .default("present")
                .choices(&["absent", "present"]),
            Argument::new("params", Kind::Str, "Its parameters, with blanks between them").default(""),
            Argument::new("persistent", Kind::Str, "Whether it is loaded at boot; disabled leaves that as it is")
                .default("disabled")
                .choices(&["disabled", "present", "absent"]),
        ],
        free_form: None,
        example: "\
- name: What Kubernetes needs, now and after a boot
  community.general.modprobe:
    name: br_netfilter
    persistent: present
",
        returns: &[
            Return::new("name", "The module of the kernel"),
            Return::new("state", "What was asked for"),
            Return::new("params", "Its parameters"),
            Return::new("stdout", "What modprobe said"),
            Return::new("stderr", "What it complained of"),
        ],
    };
    type Change = Change;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<Change>, Error> {
        self.check()?;
        let (files, diff) = match self.persistent {
            Persistent::Disabled => (Vec::new(), Vec::new()),
            _ => self.files(probe, here).await?,
        };
        let argv = match (self.state, self.is_loaded(probe).await?) {
            (State::Present, false) => self.argv(),
            (State::Absent, true) => ["modprobe", "-r", &self.name].map(str::to_owned).to_vec(),
            _ => Vec::new(),
        };
        if argv.is_empty() && files.is_empty() {
            return Ok(Plan::Unchanged(self.outcome(&Output::default())));
        }
        Ok(Plan::Change { diff, outcome: self.outcome(&Output::default()), change: Change { files, argv } })
    }

    async fn apply(&self, change: Change, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let mut said = Output::default();
        if !change.argv.is_empty() {
            said = remote.run(&Command::program(change.argv)).await?;
            if said.code != 0 {
                let verb = if self.state == State::Present { "load" } else { "unload" };
                let words = String::from_utf8_lossy(&said.stderr);
                return Err(Error::failed(format!(
                    "cannot {verb} the kernel's module {}: {}",
                    self.name,
                    words.trim()
                )));
            }
        }
        for file in change.files {
            file.apply(remote, here).await?;
        }
        Ok(self.outcome(&said))
    }
}

impl Modprobe {
    /// Names and parameters become parts of file names, lines and patterns.
    fn check(&self) -> Result<(), Error> {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if self.name.is_empty() || self.name.starts_with('-') || !self.name.chars().all(good) {
            return Err(Error::failed(format!("{:?} cannot be the name of a kernel's module", self.name)));
        }
        match self.params.contains(['\n', '\r', '\0']) {
            true => Err(Error::failed("modprobe: params must be one line")),
            false => Ok(()),
        }
    }

    fn argv(&self) -> Vec<String> {
        let words = shlex::split(&self.params).unwrap_or_else(|| self.parameters().map(str::to_owned).collect());
        ["modprobe", &self.name].map(str::to_owned).into_iter().chain(words).collect()
    }

    fn parameters(&self) -> impl Iterator<Item = &str> {
        self.params.split_whitespace()
    }

    /// Whether the kernel has it, loaded or built in.
    async fn is_loaded(&self, probe: &Probe) -> Result<bool, Error> {
        let loaded = probe.read("/proc/modules").await?.unwrap_or_default();
        let known = self.name.replace('-', "_");
        if String::from_utf8_lossy(&loaded).lines().any(|line| line.split(' ').next() == Some(&known)) {
            return Ok(true);
        }
        let line = "cat \"/lib/modules/$(uname -r)/modules.builtin\" 2>/dev/null; exit 0";
        let builtin = probe.query(&Command::shell(line)).await?.stdout;
        let file = format!("/{}.ko", self.name);
        Ok(String::from_utf8_lossy(&builtin).lines().any(|line| line.ends_with(&file)))
    }

    /// What is to be written for the next boot.
    async fn files(&self, probe: &Probe, here: &Controller<'_>) -> Result<(Vec<Write>, Vec<Diff>), Error> {
        let own = |directory: &str| format!("{directory}/{}.conf", self.name);
        let name = &self.name;
        let lists = files_with(probe, LOADED, &format!("^ *{name} *([#;].*)?$")).await?;
        let parameters = files_with(probe, PARAMETERS, &format!("^options {name} ")).await?;
        let mut edits = Vec::new();
        if self.persistent == Persistent::Absent {
            for path in &lists {
                edits.push((path.clone(), Edit::Comment(is_name)));
            }
            for path in &parameters {
                edits.push((path.clone(), Edit::Comment(is_options)));
            }
        } else {
            if lists.is_empty() {
                edits.push((own(LOADED), Edit::Text(format!("{name}\n"))));
            }
            let mut found = Vec::new();
            for path in &parameters {
                let target = Target::open(probe, path).await?;
                found.extend(target.text.characters.lines().filter_map(|line| option(line, name)).map(str::to_owned));
            }
            let mut wanted: Vec<&str> = self.parameters().collect();
            wanted.sort_unstable();
            found.sort_unstable();
            if found != wanted {
                let others = parameters.iter().filter(|path| **path != own(PARAMETERS) || wanted.is_empty());
                edits.extend(others.map(|path| (path.clone(), Edit::Comment(is_options))));
                if !wanted.is_empty() {
                    let lines = self.parameters().map(|parameter| format!("options {name} {parameter}\n"));
                    edits.push((own(PARAMETERS), Edit::Text(lines.collect())));
                }
            }
        }
        let (mut writes, mut diffs) = (Vec::new(), Vec::new());
        for (path, edit) in edits {
            let target = Target::open(probe, &path).await?;
            let edited = edit.applied(&target.text.characters, name);
            let wanted = Wanted::default();
            let manner = Manner { wanted: &wanted, backup: false, validate: None, make_directories: true };
            let edit = file_edit::compare(probe, here, &target, &edited, &manner).await?;
            writes.extend(edit.write);
            diffs.extend(edit.diff);
        }
        Ok((writes, diffs))
    }

    fn outcome(&self, said: &Output) -> Outcome {
        let state = if self.state == State::Present { "present" } else { "absent" };
        Outcome::default()
            .with("name", self.name.as_str())
            .with("state", state)
            .with("params", self.params.as_str())
            .with("stdout", String::from_utf8_lossy(&said.stdout).into_owned())
            .with("stderr", String::from_utf8_lossy(&said.stderr).into_owned())
    }
}

/// What is done to a file.
enum Edit {
    Text(String),
    /// The lines that are of the module become comments.
    Comment(fn(&str, &str) -> bool),
}

impl Edit {
    fn applied(&self, text: &str, name: &str) -> String {
        match self {
            Edit::Text(text) => text.clone(),
            Edit::Comment(is_own) => text
                .split_inclusive('\n')
                .map(|line| if is_own(line, name) { format!("#{line}") } else { line.to_owned() })
                .collect(),
        }
    }
}

fn is_name(line: &str, name: &str) -> bool {
    line.split(['#', ';']).next().is_some_and(|text| text.trim() == name)
}

fn is_options(line: &str, name: &str) -> bool {
    option(line, name).is_some()
}

/// The parameters that a line gives a module.
fn option<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.strip_prefix("options ")?.strip_prefix(name)?.strip_prefix(' ')?;
    rest.split(['#', ';']).next().map(str::trim)
}

/// The files of a directory that have a line of that form, sorted.
async fn files_with(probe: &Probe, directory: &str, pattern: &str) -> Result<Vec<String>, Error> {
    let line = format!("grep -slE {} {directory}/* /dev/null; exit 0", quote(pattern));
    let output = probe.query(&Command::shell(line)).await?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::*;

    #[tokio::test]
    async fn what_is_loaded_stays_and_what_is_not_would_be() {
        let bench = Bench::new().await;
        let modules = std::fs::read_to_string("/proc/modules").unwrap_or_default();
        if let Some(name) = modules.split(' ').next().filter(|name| !name.is_empty()) {
            let done = bench.run(&format!("modprobe: {{name: {name}}}")).await.unwrap();
            assert!(!done.changed && value(&done.outcome, "name") == name);
            assert!(bench.check(&format!("modprobe: {{name: {name}, state: absent}}")).await.unwrap().changed);
        }
        assert!(!bench.run("modprobe: {name: no_such, state: absent}").await.unwrap().changed);
        assert!(bench.check("modprobe: {name: no_such, params: 'a=1 b=2'}").await.unwrap().changed);
        let told = bench.failure("modprobe: {name: no_such}").await;
        assert!(told.starts_with("cannot load the kernel's module no_such: "), "{told}");
        let told = bench.failure("modprobe: {name: ../x}").await;
        assert_eq!(told, "\"../x\" cannot be the name of a kernel's module");
        bench.close().await;
    }

    #[test]
    fn lines_of_a_module_are_known() {
        assert!(is_name(" dummy # x\n", "dummy") && !is_name("dummy2\n", "dummy") && !is_name("#dummy\n", "dummy"));
        assert_eq!(option("options dummy numdummies=2 # x", "dummy"), Some("numdummies=2"));
        assert_eq!(option("options dummy2 a=1", "dummy"), None);
        let edit = Edit::Comment(is_options);
        assert_eq!(edit.applied("options a x=1\noptions b x=1", "b"), "options a x=1\n#options b x=1");
    }

    #[test]
    fn parameters_are_words() {
        let it = |params: &str| Modprobe {
            name: "x".into(),
            state: State::Present,
            params: params.into(),
            persistent: Persistent::Disabled,
        };
        assert_eq!(it("a=1  b='x y'").argv(), ["modprobe", "x", "a=1", "b=x y"]);
        assert_eq!(it("").argv(), ["modprobe", "x"]);
    }
}
