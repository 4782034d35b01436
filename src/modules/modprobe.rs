//! `modprobe`: modules of the host's kernel, now and after a boot.

use serde::Deserialize;

use super::execution::quote;
use super::file_attributes::DesiredAttributes;
use super::file_edit::{self, Target, WriteOptions};
use super::file_write::Write;
use super::{Changes, Controller, Diff, Error, Module, Outcome, Plan};
use crate::remote::{Command, Output, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

/// What is loaded at boot.
const LOADED: &str = "/etc/modules-load.d";
/// With which parameters.
const PARAMETERS: &str = "/etc/modprobe.d";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Modprobe {
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
pub(super) struct ModprobeChange {
    files: Vec<Write>,
    /// The arguments of `modprobe`.
    argv: Vec<String>,
}

impl Module for Modprobe {
    const CHANGES: Changes = Changes::KernelSettings;
    const DOC: Doc = Doc {
        name: "modprobe",
        collection: "community.general",
        summary: "Load and unload kernel modules of the host",
        arguments: &[
            Argument::new("name", ArgumentKind::Str, "The kernel module").required(),
            Argument::new("state", ArgumentKind::Str, "Whether it should be loaded")
                .default("present")
                .choices(&["absent", "present"]),
            Argument::new("params", ArgumentKind::Str, "Its parameters, separated by spaces").default(""),
            Argument::new("persistent", ArgumentKind::Str, "Whether to load it at boot; disabled does not change this")
                .default("disabled")
                .choices(&["disabled", "present", "absent"]),
        ],
        free_form: None,
        example: "\
- name: Load br_netfilter, now and at boot
  community.general.modprobe:
    name: br_netfilter
    persistent: present
",
        returns: &[
            Return::new("name", "The kernel module"),
            Return::new("state", "The requested state"),
            Return::new("params", "Its parameters"),
            Return::new("stdout", "Standard output of modprobe"),
            Return::new("stderr", "Standard error"),
        ],
    };
    type Change = ModprobeChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<ModprobeChange>, Error> {
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
        let change = ModprobeChange { files, argv };
        // Whether the module is loaded is known only after loading it: the name may be an alias of another module.
        if change.files.is_empty() && self.state == State::Present && !here.check {
            return Ok(Plan::Unknown(change));
        }
        Ok(Plan::Change { diff, outcome: self.outcome(&Output::default()), change })
    }

    async fn apply(&self, change: ModprobeChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let mut said = Output::default();
        let acts = !change.argv.is_empty();
        if !change.argv.is_empty() {
            said = remote.run(&Command::program(change.argv)).await?;
            if said.code != 0 {
                let verb = if self.state == State::Present { "load" } else { "unload" };
                let words = String::from_utf8_lossy(&said.stderr);
                return Err(Error::failed(format!("cannot {verb} the kernel module {}: {}", self.name, words.trim())));
            }
        }
        for file in change.files {
            file.apply_write(remote, here).await?;
        }
        let outcome = self.outcome(&said);
        if !acts || self.state == State::Absent || self.is_loaded(remote).await? {
            return Ok(Outcome { changed: acts, ..outcome });
        }
        let warning = format!(
            "modprobe succeeded, but the kernel did not load a module {}; check whether this is an alias",
            self.name
        );
        Ok(outcome.with("warnings", vec![warning]))
    }
}

impl Modprobe {
    /// Names and parameters become parts of file names, lines and patterns.
    fn check(&self) -> Result<(), Error> {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if self.name.is_empty() || self.name.starts_with('-') || !self.name.chars().all(good) {
            return Err(Error::failed(format!("{:?} is not a valid name of a kernel module", self.name)));
        }
        match self.params.contains(['\n', '\r', '\0']) {
            true => Err(Error::failed("modprobe: params must be one line")),
            false => Ok(()),
        }
    }

    fn argv(&self) -> Vec<String> {
        let words = shlex::split(&self.params).unwrap_or_else(|| split_at_blanks(&self.params));
        ["modprobe", &self.name].map(str::to_owned).into_iter().chain(words).collect()
    }

    /// Whether the kernel has it, loaded or built in.
    async fn is_loaded(&self, probe: &Probe) -> Result<bool, Error> {
        let loaded = probe.read_file("/proc/modules").await?.unwrap_or_default();
        if has_loaded(&String::from_utf8_lossy(&loaded), &self.name) {
            return Ok(true);
        }
        let line = "cat \"/lib/modules/$(uname -r)/modules.builtin\" 2>/dev/null; exit 0";
        let builtin = probe.query(&Command::shell(line)).await?.stdout;
        Ok(has_builtin(&String::from_utf8_lossy(&builtin), &self.name))
    }

    /// What is to be written for the next boot.
    async fn files(&self, probe: &Probe, here: &Controller<'_>) -> Result<(Vec<Write>, Vec<Diff>), Error> {
        let (of_lists, of_options) = patterns(&self.name);
        let lists = files_with(probe, LOADED, &of_lists).await?;
        let mut options = Vec::new();
        for path in files_with(probe, PARAMETERS, &of_options).await? {
            let text = Target::read_target(probe, &path).await?.text.characters;
            options.push((path, text));
        }
        let edits = self.edits(&lists, &options);
        let (mut writes, mut diffs) = (Vec::new(), Vec::new());
        for (path, edit) in edits {
            let target = Target::read_target(probe, &path).await?;
            let edited = edit.applied(&target.text.characters, &self.name);
            let wanted = DesiredAttributes::default();
            let manner = WriteOptions { wanted: &wanted, backup: false, validate: None, make_directories: true };
            let edit = file_edit::compare_text(probe, here, &target, &edited, &manner).await?;
            writes.extend(edit.write);
            diffs.extend(edit.diff);
        }
        Ok((writes, diffs))
    }

    /// What is done to which files; `lists` are those that name the module, `options` those with parameters of it.
    fn edits(&self, lists: &[String], options: &[(String, String)]) -> Vec<(String, Edit)> {
        let own = |directory: &str| format!("{directory}/{}.conf", self.name);
        let comment = |path: &String, is_own| (path.clone(), Edit::Comment(is_own));
        let all_options = options.iter().map(|(path, _)| path);
        if self.persistent == Persistent::Absent {
            let lists = lists.iter().map(|path| comment(path, is_name));
            return lists.chain(all_options.map(|path| comment(path, is_options))).collect();
        }
        let mut edits = Vec::new();
        if lists.is_empty() {
            edits.push((own(LOADED), Edit::Add(format!("{}\n", self.name))));
        }
        let mut wanted = split_at_blanks(&self.params);
        let statements = options.iter().flat_map(|(_, text)| statements(text));
        let mut found: Vec<String> = statements.filter_map(|it| option(it, &self.name)).flatten().collect();
        // Of one parameter that is given twice the last counts.
        for all in [&mut wanted, &mut found] {
            all.sort_by(|a, b| a.split('=').next().cmp(&b.split('=').next()));
        }
        if found != wanted {
            let others = all_options.filter(|path| **path != own(PARAMETERS) || wanted.is_empty());
            edits.extend(others.map(|path| comment(path, is_options)));
            if !wanted.is_empty() {
                let line = format!("options {} {}\n", self.name, self.params.trim());
                edits.push((own(PARAMETERS), Edit::Options(line)));
            }
        }
        edits
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

/// The change of a file. Lines of other modules are kept.
enum Edit {
    /// The line comes behind all others.
    Add(String),
    /// The line comes in place of those that give the module parameters.
    Options(String),
    /// The lines that are of the module become comments.
    Comment(fn(&str, &str) -> bool),
}

impl Edit {
    fn applied(&self, text: &str, name: &str) -> String {
        match self {
            Edit::Add(line) => added(text, line),
            Edit::Options(new) => {
                let mut new = Some(new.as_str());
                let edited: String = statements(text)
                    .map(|it| if is_options(it, name) { new.take().unwrap_or_default() } else { it })
                    .collect();
                match new {
                    Some(line) => added(&edited, line),
                    None => edited,
                }
            }
            Edit::Comment(is_own) => {
                statements(text).map(|it| if is_own(it, name) { format!("#{it}") } else { it.to_owned() }).collect()
            }
        }
    }
}

/// A text with one more line.
fn added(text: &str, line: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}{line}")
}

/// The lines of a text, each with its continuation lines after a backslash, and with its newline.
fn statements(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let ends = rest.match_indices('\n').map(|(at, _)| at);
        let end = ends.into_iter().find(|at| !rest[..*at].ends_with('\\')).map_or(rest.len(), |at| at + 1);
        let (first, more) = rest.split_at(end);
        rest = more;
        (!first.is_empty()).then_some(first)
    })
}

/// To the kernel both dashes of a name are one.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// Whether a module is in the text of `/proc/modules`.
fn has_loaded(modules: &str, name: &str) -> bool {
    modules.lines().any(|line| line.split(' ').next().is_some_and(|it| plain(it) == plain(name)))
}

/// Whether a module is in the text of `modules.builtin`.
fn has_builtin(paths: &str, name: &str) -> bool {
    let file = |path: &str| path.rsplit('/').next().and_then(|file| file.strip_suffix(".ko").map(plain));
    paths.lines().any(|line| file(line.trim()) == Some(plain(name)))
}

fn is_name(line: &str, name: &str) -> bool {
    line.split(['#', ';']).next().is_some_and(|text| plain(text.trim()) == plain(name))
}

fn is_options(line: &str, name: &str) -> bool {
    option(line, name).is_some()
}

/// The parameters that a line gives a module.
fn option(line: &str, name: &str) -> Option<Vec<String>> {
    let line = line.replace("\\\n", " ");
    let mut words = split_at_blanks(&line).into_iter();
    let is_own = words.next()? == "options" && plain(&words.next()?) == plain(name);
    is_own.then(|| words.take_while(|word| !word.starts_with(['#', ';'])).collect())
}

/// The words of a text, unchanged: blanks in quotes do not end one.
fn split_at_blanks(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in text.chars() {
        match quote {
            None if c.is_whitespace() => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
                continue;
            }
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ => (),
        }
        word.push(c);
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// What a line looks like that names a module, and one that gives it parameters.
fn patterns(name: &str) -> (String, String) {
    let name: String =
        name.chars().map(|c| if matches!(c, '-' | '_') { "[-_]".into() } else { c.to_string() }).collect();
    (
        format!("^[[:blank:]]*{name}[[:blank:]]*([#;].*)?$"),
        format!("^[[:blank:]]*options[[:blank:]]+{name}([[:blank:]]|$)"),
    )
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
    async fn what_is_not_loaded_would_be() {
        let bench = Bench::new().await;
        assert!(!bench.run("modprobe: {name: no_such, state: absent}").await.unwrap().changed);
        assert!(bench.check("modprobe: {name: no_such, params: 'a=1 b=2'}").await.unwrap().changed);
        let reported = bench.failure("modprobe: {name: no_such}").await;
        assert!(reported.starts_with("cannot load the kernel module no_such: "), "{reported}");
        let reported = bench.failure("modprobe: {name: ../x}").await;
        assert_eq!(reported, "\"../x\" is not a valid name of a kernel module");
        bench.close().await;
    }

    /// `modprobe` accepts an alias, and loads a module with a different name.
    #[tokio::test]
    async fn what_is_not_there_afterwards_is_a_warning() {
        let programs = tempfile::tempdir().unwrap();
        let program = programs.path().join("modprobe");
        crate::value::testing::write_program(&program, "#!/bin/sh\necho \"$*\"\n");
        let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
        let bench = Bench::with_environment(&[("PATH", &path)]).await;
        let done = bench.run("modprobe: {name: no-such, params: a=1}").await.unwrap();
        assert!(!done.changed && value(&done.outcome, "stdout") == "no-such a=1\n");
        let warned = value(&done.outcome, "warnings");
        assert!(warned.contains("the kernel did not load a module no-such"), "{warned}");
        bench.close().await;
    }

    #[test]
    fn the_kernel_knows_a_name_with_either_dash() {
        let modules = "br_netfilter 32768 0 - Live 0x0\nbridge 1 1 br_netfilter, Live 0x0\n";
        assert!(
            has_loaded(modules, "br-netfilter") && has_loaded(modules, "bridge") && !has_loaded(modules, "netfilter")
        );
        assert!(!has_loaded("", "x") && !has_builtin("", "x"));
        let builtin = "kernel/drivers/md/dm-mod.ko\nkernel/fs/ext4/ext4.ko\n";
        assert!(has_builtin(builtin, "dm_mod") && has_builtin(builtin, "dm-mod") && has_builtin(builtin, "ext4"));
        assert!(!has_builtin(builtin, "mod") && !has_builtin(builtin, "ext"));
    }

    #[test]
    fn lines_of_a_module_are_known() {
        assert!(is_name(" dummy # x\n", "dummy") && !is_name("dummy2\n", "dummy") && !is_name("#dummy\n", "dummy"));
        assert!(is_name("br-netfilter\n", "br_netfilter"));
        assert_eq!(option("options dummy numdummies=2 # x", "dummy").unwrap(), ["numdummies=2"]);
        assert_eq!(option("options\tdummy a='x y' \\\n b=2\n", "dummy").unwrap(), ["a='x y'", "b=2"]);
        assert!(option("options dummy2 a=1", "dummy").is_none() && option("#options dummy a=1", "dummy").is_none());
        let edit = Edit::Comment(is_options);
        assert_eq!(edit.applied("options a x=1\noptions b x=1", "b"), "options a x=1\n#options b x=1");
    }

    fn module(name: &str, params: &str, persistent: Persistent) -> Modprobe {
        Modprobe { name: name.into(), state: State::Present, params: params.into(), persistent }
    }

    /// What becomes of files in which the module is named or has parameters, and of others with the same name.
    fn written(it: &Modprobe, lists: &[&str], files: &[(&str, &str)]) -> Vec<(String, String)> {
        let text = |path: &str| files.iter().find(|file| file.0 == path).map_or("", |file| file.1);
        let lists: Vec<String> = lists.iter().map(|path| (*path).to_owned()).collect();
        let of_it = files.iter().filter(|(_, text)| statements(text).any(|line| is_options(line, &it.name)));
        let options: Vec<_> = of_it.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let edits = it.edits(&lists, &options).into_iter();
        edits.map(|(path, edit)| (path.clone(), edit.applied(text(&path), &it.name))).collect()
    }

    #[test]
    fn only_the_lines_of_the_module_change() {
        let it = module("kvm", "a=1", Persistent::Present);
        let (list, own) = ("/etc/modules-load.d/kvm.conf", "/etc/modprobe.d/kvm.conf");
        let done = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        assert_eq!(
            written(&it, &[], &[(list, "# mine\nvhost"), (own, "options kvm_intel nested=0\nblacklist foo\n")]),
            [
                done(list, "# mine\nvhost\nkvm\n"),
                done(own, "options kvm_intel nested=0\nblacklist foo\noptions kvm a=1\n"),
            ]
        );
        let text = "options kvm a=0 \\\n  b=1\n\nsoftdep kvm pre: x\noptions kvm c=1\n# end";
        assert_eq!(
            written(&it, &[list], &[(own, text), ("/etc/modprobe.d/z.conf", "options kvm a=3\n")]),
            [
                done("/etc/modprobe.d/z.conf", "#options kvm a=3\n"),
                done(own, "options kvm a=1\n\nsoftdep kvm pre: x\n# end"),
            ]
        );
        let gone = module("kvm", "", Persistent::Absent);
        assert_eq!(
            written(&gone, &[list], &[(list, "vhost\nkvm\n"), (own, "blacklist foo\noptions kvm a=1\n")]),
            [done(list, "vhost\n#kvm\n"), done(own, "blacklist foo\n#options kvm a=1\n")]
        );
    }

    #[test]
    fn parameters_are_written_as_given_and_found_again() {
        let it = module("x", " b=2 a='x  y'", Persistent::Present);
        let own = "/etc/modprobe.d/x.conf";
        let done = written(&it, &["list"], &[]);
        assert_eq!(done, [(own.to_owned(), "options x b=2 a='x  y'\n".to_owned())]);
        assert!(written(&it, &["list"], &[(own, &done[0].1)]).is_empty());
        assert!(written(&it, &["list"], &[("other", "options x a='x  y'\noptions x b=2\n")]).is_empty());
        assert_eq!(written(&it, &["list"], &[(own, "options x b=2 a='x y'\n")]), done);
    }

    #[tokio::test]
    async fn files_are_found_by_lines_with_either_dash() {
        let bench = Bench::new().await;
        bench.on_host("a", "options br-netfilter a=1\n");
        bench.on_host("b", "options br_netfilter2 a=1\n#br_netfilter\n");
        bench.on_host("c", "x\n br_netfilter # why\n");
        let (lists, options) = patterns("br_netfilter");
        let directory = bench.host("").display().to_string();
        let directory = directory.trim_end_matches('/');
        let found = async |pattern: &str| files_with(bench.remote(), directory, pattern).await.unwrap();
        assert_eq!(found(&lists).await, [format!("{directory}/c")]);
        assert_eq!(found(&options).await, [format!("{directory}/a")]);
        bench.close().await;
    }

    #[test]
    fn parameters_are_words() {
        let it = |params: &str| module("x", params, Persistent::Disabled);
        assert_eq!(it("a=1  b='x y'").argv(), ["modprobe", "x", "a=1", "b=x y"]);
        assert_eq!(it("").argv(), ["modprobe", "x"]);
    }
}
