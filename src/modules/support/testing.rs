//! Runs modules against this machine in temporary directories, for the modules' own tests.
//!
//! In a task's text, `HOST` is replaced by the directory that acts as the host, and `HERE` by the controller's.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use tempfile::TempDir;

use crate::bundle::RequiredSigners;
use crate::connection::{Confinement, Method, Target};
use crate::modules::question::{Answer, Question};
use crate::modules::{Caches, Controller, Error, ModuleResult, Outcome, arguments, find_module};
use crate::remote::{Remote, Sessions};
use crate::template::{Scope, Templar};
use crate::value::doc::{Argument, ArgumentKind, Doc};
use crate::value::mutex::Mutex;
use crate::value::origin::Source;
use crate::value::vault::Keyring;
use crate::value::yaml::NodeKind;
use crate::value::{Template, Value, Vars, yaml};

/// Reports that this machine does not have what a test needs, which then ends. Panics where every test has to run.
pub(in crate::modules) fn cannot_run(missing: &str) {
    assert!(std::env::var_os("TESTS_COMPLETE").is_none(), "the test cannot run: {missing}");
    println!("skipped: {missing}");
}

/// A host, a controller, and what modules need to run between them.
pub(in crate::modules) struct Bench {
    directory: TempDir,
    remote: Remote,
    sessions: Arc<Sessions>,
    templar: Arc<Templar>,
    caches: Caches,
    /// Whose signature a bundle needs.
    pub signers: Option<Arc<RequiredSigners>>,
    pub scope: Scope,
    pub no_log: bool,
    /// As if the task said `async`.
    pub apart: Option<Duration>,
    /// What the person answers; None: there is no person.
    answer: Option<Answer>,
    /// Whether the host counts as another machine.
    far: bool,
    questions: Mutex<Vec<Question>>,
}

impl Bench {
    pub(in crate::modules) async fn new() -> Bench {
        Bench::with_environment(&[]).await
    }

    /// The host counts as another machine.
    pub(in crate::modules) async fn far() -> Bench {
        Bench { far: true, ..Bench::new().await }
    }

    /// The run is for a resource from an API.
    pub(in crate::modules) async fn confined() -> Bench {
        let networks = ["127.0.0.0/8".to_owned()];
        let confined = Confinement::new(Some(&networks)).unwrap();
        Bench::at(&Target { confined: Some(Arc::new(confined)), ..local() }, &[]).await
    }

    /// The host's programs get these variables.
    pub(in crate::modules) async fn with_environment(variables: &[(&str, &str)]) -> Bench {
        Bench::at(&local(), variables).await
    }

    async fn at(target: &Target, variables: &[(&str, &str)]) -> Bench {
        // This machine's own proxy and logins are none of a test's.
        let variables = [&[("no_proxy", "*"), ("NETRC", "/nonexistent")][..], variables].concat();
        let directory = tempfile::Builder::new().prefix("windlass-test-").tempdir().unwrap();
        for side in ["host", "here"] {
            std::fs::create_dir(directory.path().join(side)).unwrap();
        }
        let connection = crate::connection::open(target).await.unwrap();
        let sessions = Sessions::new(connection);
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let remote = Remote::open(&sessions, None, &variables).await.unwrap();
        let mut scope = Scope::default();
        scope.base = Arc::new(directory.path().join("here"));
        Bench {
            directory,
            remote,
            sessions,
            templar: Templar::new(),
            caches: Caches::default(),
            signers: None,
            scope,
            no_log: false,
            apart: None,
            answer: None,
            far: false,
            questions: Mutex::default(),
        }
    }

    /// How many requests the host has answered.
    pub(in crate::modules) fn requests(&self) -> u64 {
        self.sessions.requests()
    }

    /// The host itself.
    pub(in crate::modules) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// A path of the host, inside its directory.
    pub(in crate::modules) fn host(&self, name: &str) -> PathBuf {
        self.directory.path().join("host").join(name)
    }

    /// A path of the controller, inside its directory.
    pub(in crate::modules) fn here(&self, name: &str) -> PathBuf {
        self.directory.path().join("here").join(name)
    }

    /// Writes a file of the host, with its parents.
    pub(in crate::modules) fn on_host(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        write(self.host(name), content.as_ref())
    }

    /// Writes a file of the controller, with its parents.
    pub(in crate::modules) fn on_controller(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        write(self.here(name), content.as_ref())
    }

    /// The text of a file of the host.
    pub(in crate::modules) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.host(name)).unwrap()
    }

    /// The lower 12 bits of the mode of a file of the host.
    pub(in crate::modules) fn mode(&self, name: &str) -> u32 {
        std::fs::metadata(self.host(name)).unwrap().permissions().mode() & 0o7777
    }

    /// Adds variables, as YAML.
    pub(in crate::modules) fn vars(&mut self, text: &str) {
        let vars = yaml_value(text);
        self.scope.push(Arc::new(pairs(&vars)));
    }

    /// Says what the person answers from now on.
    pub(in crate::modules) fn answers(&mut self, answer: Option<Answer>) {
        self.answer = answer;
    }

    /// What the person was asked: the words, whether typing is shown, and the time limit.
    pub(in crate::modules) fn asked(&self) -> Vec<(String, bool, Option<Duration>)> {
        let questions = self.questions.lock();
        questions.iter().map(|it| (it.words.clone(), it.echo, it.limit)).collect()
    }

    /// Runs `module: {arguments}`, given as YAML, with diff.
    pub(in crate::modules) async fn run(&self, task: &str) -> Result<ModuleResult, Error> {
        self.task(task, false).await
    }

    /// Runs a task that must succeed, then again, which must change nothing, neither by word nor by deed.
    /// Gives what the first run left.
    pub(in crate::modules) async fn run_twice(&self, task: &str) -> ModuleResult {
        let first = self.run(task).await.unwrap();
        let before = self.snapshot();
        let second = self.run(task).await.unwrap();
        assert!(!second.changed, "the second run says changed: {task}");
        assert!(second.diff.is_empty(), "the second run has a diff: {:?}", second.diff);
        assert_eq!(before, self.snapshot(), "the second run changed something: {task}");
        first
    }

    /// Runs a task in check mode with diff, and sees that nothing was touched.
    pub(in crate::modules) async fn check(&self, task: &str) -> Result<ModuleResult, Error> {
        let before = self.snapshot();
        let done = self.task(task, true).await;
        assert_eq!(before, self.snapshot(), "check mode touched something: {task}");
        done
    }

    /// The message of a task that must fail.
    pub(in crate::modules) async fn failure(&self, task: &str) -> String {
        match self.run(task).await {
            Err(error) => error.to_string(),
            Ok(done) => done.outcome.failed.unwrap_or_else(|| panic!("did not fail: {task}")),
        }
    }

    /// Everything on both sides: path, kind, mode, owner, time of change, content.
    fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let mut seen = BTreeMap::new();
        walk(self.directory.path(), &mut seen);
        seen
    }

    async fn task(&self, task: &str, check: bool) -> Result<ModuleResult, Error> {
        let task = task
            .replace("HOST", self.host("").to_str().unwrap().trim_end_matches('/'))
            .replace("HERE", self.here("").to_str().unwrap().trim_end_matches('/'));
        let task = pairs(&yaml_value(&task));
        let (name, args) = task.first().expect("a task has a module");
        let entry = find_module(name).unwrap_or_else(|| panic!("no module {name}"));
        let args = match has_template(args) {
            true => pairs(&self.templar.render(args, &self.scope)?),
            false => pairs(args),
        };
        let search = [self.here("")];
        let ask = |question: Question| {
            if let Some(answer) = &self.answer {
                question.answer(answer.clone());
                self.questions.lock().push(question);
            }
        };
        let here = Controller {
            templar: &self.templar,
            scope: &self.scope,
            search: &search,
            check,
            diff: true,
            no_log: self.no_log,
            verbosity: 0,
            caches: &self.caches,
            signers: self.signers.as_ref(),
            apart: self.apart,
            progress: &|_| {},
            ask: &ask,
            host: self,
        };
        (entry.run)(arguments::coerce(entry.doc, &args)?, Some(&self.remote), &here).await
    }

    /// Ends the session.
    pub(in crate::modules) async fn close(self) {
        self.sessions.close().await;
    }
}

#[async_trait::async_trait]
impl crate::modules::Open for Bench {
    async fn open(&self, _: bool) -> Result<Remote, Error> {
        Ok(Remote::open(&self.sessions, None, &IndexMap::new()).await?)
    }

    fn is_this_machine(&self) -> bool {
        !self.far
    }
}

/// A return value as text; empty if it is not there.
pub(in crate::modules) fn value(outcome: &Outcome, name: &str) -> String {
    outcome.values.get(name).map(Value::to_string).unwrap_or_default()
}

/// The tasks of an example: each its module's documentation and its arguments.
pub(in crate::modules) fn tasks(example: &str) -> Vec<(&'static Doc, Vars)> {
    let tasks = yaml_value(example);
    let found: Vec<_> = tasks.try_iter().expect("an example is a list of tasks").map(|task| action(&task)).collect();
    assert!(!found.is_empty(), "an example without tasks: {example}");
    found
}

/// Asserts that every argument exists and, as far as it has no templates, has a value of its kind.
pub(in crate::modules) fn assert_fits(doc: &Doc, args: &Vars) {
    let known = |(name, value): (&Arc<str>, &Value)| {
        let argument = doc.argument(name);
        let argument = argument.unwrap_or_else(|| panic!("{}: the example has an unknown argument {name:?}", doc.name));
        // A templated argument is there, but its value is not known.
        let value = if has_template(value) { sample(argument, argument.kind) } else { value.clone() };
        (name.clone(), value)
    };
    let args = args.iter().map(known).collect();
    arguments::coerce(doc, &args).unwrap_or_else(|error| panic!("{}: {error}", doc.name));
}

/// A value of the kind, for the argument.
pub(in crate::modules) fn sample(argument: &Argument, kind: ArgumentKind) -> Value {
    match kind {
        ArgumentKind::Bool => Value::from(true),
        ArgumentKind::Int | ArgumentKind::Float => Value::from(1),
        ArgumentKind::Mode => Value::from(0o600),
        ArgumentKind::List(of) => [sample(argument, *of)].into_iter().collect(),
        ArgumentKind::Dict => Value::from_pairs([("key", "value")]),
        ArgumentKind::Str | ArgumentKind::Path | ArgumentKind::Any => {
            Value::from(*argument.choices.first().unwrap_or(&"x"))
        }
    }
}

fn action(task: &Value) -> (&'static Doc, Vars) {
    let task = pairs(task);
    let (entry, args) = task
        .iter()
        .find_map(|(name, args)| Some((find_module(name)?, args)))
        .unwrap_or_else(|| panic!("no module in {task:?}"));
    let args = match args.as_str() {
        Some(text) => {
            let name = entry.doc.free_form.unwrap_or_else(|| panic!("{} has no short form", entry.doc.name));
            Vars::from_iter([(name.into(), Value::from(text))])
        }
        None => pairs(args),
    };
    let more = task.get("args").map(pairs).unwrap_or_default();
    (entry.doc, args.into_iter().chain(more).collect())
}

fn has_template(value: &Value) -> bool {
    use minijinja::value::ValueKind;
    match value.kind() {
        ValueKind::Map => pairs(value).values().any(has_template),
        ValueKind::Seq => value.try_iter().unwrap().any(|item| has_template(&item)),
        _ => value.as_object().is_some_and(|object| object.downcast_ref::<Template>().is_some()),
    }
}

fn pairs(value: &Value) -> Vars {
    let Ok(keys) = value.try_iter() else { return Vars::new() };
    keys.map(|key| (Arc::from(key.to_string()), value.get_item(&key).unwrap())).collect()
}

fn yaml_value(text: &str) -> Value {
    let source = Arc::new(Source::new("test.yml", text));
    let documents = yaml::parse_yaml(&source).unwrap_or_else(|complaint| panic!("{complaint}\n{text}"));
    let document = documents.first().unwrap_or_else(|| panic!("nothing in {text:?}"));
    assert!(!matches!(document.kind, NodeKind::Null), "nothing in {text:?}");
    document.to_value(&Keyring::default()).unwrap()
}

fn write(path: PathBuf, content: &[u8]) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

fn walk(directory: &Path, seen: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let meta = std::fs::symlink_metadata(&path).unwrap();
        let content = match meta.file_type() {
            kind if kind.is_dir() => String::new(),
            kind if kind.is_symlink() => format!("{:?}", std::fs::read_link(&path).unwrap()),
            kind if kind.is_file() => format!("{:?}", std::fs::read(&path).unwrap()),
            kind => format!("{kind:?}"),
        };
        let times = (meta.ctime(), meta.ctime_nsec());
        seen.insert(path.clone(), format!("{:o} {}:{} {times:?} {content}", meta.mode(), meta.uid(), meta.gid()));
        if meta.is_dir() {
            walk(&path, seen);
        }
    }
}

fn local() -> Target {
    Target { method: Method::Local, name: "localhost".to_owned(), address: "localhost".to_owned(), ..Target::default() }
}
