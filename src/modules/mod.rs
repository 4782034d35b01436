//! What a task can do to one host. Knows one host through [`Probe`] and [`Remote`]; no engine, no terminal.
//!
//! To add a module: write `src/modules/<name>.rs` (a `//!` line, the arguments as a struct, `DOC` with an
//! example, [`Module`], [`Inspect`] or [`Local`], tests), then add its `mod` line and its line in [`MODULES`] below. What modules share is in
//! `support`.

mod add_host;
mod apt_sources;
mod assemble;
mod assert;
mod async_status;
mod authorized_key;
mod blockinfile;
mod bundled;
mod command;
mod copy;
mod cron;
mod debug;
mod etcd;
mod fail;
mod fetch;
mod file;
mod find;
mod get_url;
mod getent;
mod git;
mod group;
mod group_by;
mod hostname;
mod include_vars;
mod ini_file;
mod iptables;
mod known_flags;
mod known_hosts;
mod kubernetes;
mod lineinfile;
mod meta;
mod modprobe;
mod mount;
mod mount_facts;
mod package;
mod pause;
mod ping;
mod raw;
mod reboot;
mod replace;
mod script;
mod service_facts;
mod set_fact;
mod set_stats;
mod setup;
mod slurp;
mod stat;
pub(crate) mod support;
mod synchronize;
mod sysctl;
mod systemd_service;
mod tempfile;
mod template;
mod timezone;
mod ufw;
mod unarchive;
mod uri;
mod user;
mod validate_argument_spec;
mod wait_for;
mod wait_for_connection;
mod x509_ca;
mod x509_certificate;
mod x509_certificate_info;
mod x509_csr;
mod x509_key;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

pub use setup::gathers_facts;
#[cfg(test)]
use support::testing;
use support::{
    accounts, execution, file_arguments, file_attributes, file_diff, file_digest, file_edit, file_labels, file_mode,
    file_write, host_copy, host_links, host_path, host_tree, name_pattern, python_regex, stat_fields, vault_file, web,
    x509,
};
pub use support::{arguments, async_job, own, question};

use self::support::file_labels::Labels;
use crate::bundle::RequiredSigners;
use crate::remote::{Probe, Remote};
use crate::template::{Scope, Templar};
use crate::value::doc::Doc;
use crate::value::{Value, Vars};

/// Every module, sorted by name.
pub static MODULES: &[ModuleEntry] = &[
    local::<add_host::AddHost>(),
    entry::<package::apt::Apt>(),
    entry::<apt_sources::repository::AptRepository>(),
    entry::<assemble::Assemble>(),
    local::<assert::Assert>(),
    entry::<async_status::AsyncStatus>(),
    entry::<authorized_key::AuthorizedKey>(),
    entry::<blockinfile::Blockinfile>(),
    local::<bundled::info::BundleInfo>(),
    entry::<command::Command>(),
    entry::<copy::Copy>(),
    entry::<cron::Cron>(),
    entry::<apt_sources::deb822::Deb822Repository>(),
    local::<debug::Debug>(),
    entry::<package::dnf::Dnf>(),
    entry::<etcd::EtcdClusterInfo>(),
    entry::<etcd::EtcdDefragment>(),
    entry::<etcd::EtcdDowngrade>(),
    entry::<etcd::EtcdGate>(),
    entry::<etcd::EtcdMember>(),
    local::<fail::Fail>(),
    entry::<fetch::Fetch>(),
    entry::<file::File>(),
    inspection::<find::Find>(),
    ModuleEntry { doc: &setup::GATHER_FACTS, ..inspection::<setup::Setup>() },
    entry::<get_url::GetUrl>(),
    inspection::<getent::Getent>(),
    entry::<git::Git>(),
    entry::<group::GroupModule>(),
    local::<group_by::GroupBy>(),
    entry::<hostname::Hostname>(),
    local::<include_vars::IncludeVars>(),
    entry::<ini_file::IniFile>(),
    entry::<iptables::Iptables>(),
    entry::<kubernetes::K8s>(),
    inspection::<kubernetes::K8sInfo>(),
    local::<known_flags::KnownFlags>(),
    entry::<known_hosts::KnownHosts>(),
    entry::<lineinfile::Lineinfile>(),
    local::<meta::Meta>(),
    entry::<modprobe::Modprobe>(),
    entry::<mount::Mount>(),
    inspection::<mount_facts::MountFacts>(),
    entry::<package::Package>(),
    inspection::<package::facts::PackageFacts>(),
    local::<pause::Pause>(),
    inspection::<ping::Ping>(),
    entry::<bundled::program::Program>(),
    entry::<raw::Raw>(),
    local::<reboot::Reboot>(),
    entry::<replace::Replace>(),
    entry::<script::Script>(),
    entry::<systemd_service::Service>(),
    inspection::<service_facts::ServiceFacts>(),
    local::<set_fact::SetFact>(),
    local::<set_stats::SetStats>(),
    inspection::<setup::Setup>(),
    entry::<command::Shell>(),
    inspection::<slurp::Slurp>(),
    inspection::<stat::Stat>(),
    entry::<synchronize::Synchronize>(),
    entry::<sysctl::Sysctl>(),
    ModuleEntry { doc: &systemd_service::SYSTEMD, ..entry::<systemd_service::SystemdService>() },
    entry::<systemd_service::SystemdService>(),
    entry::<tempfile::Tempfile>(),
    entry::<template::Template>(),
    entry::<timezone::Timezone>(),
    entry::<ufw::Ufw>(),
    entry::<unarchive::Unarchive>(),
    entry::<uri::Uri>(),
    entry::<user::User>(),
    local::<validate_argument_spec::ValidateArgumentSpec>(),
    entry::<wait_for::WaitFor>(),
    local::<wait_for_connection::WaitForConnection>(),
    entry::<x509_ca::X509Ca>(),
    entry::<x509_certificate::X509Certificate>(),
    inspection::<x509_certificate_info::X509CertificateInfo>(),
    inspection::<x509_csr::X509Csr>(),
    entry::<x509_key::X509Key>(),
    ModuleEntry { doc: &package::dnf::YUM, ..entry::<package::dnf::Dnf>() },
];

/// The type itself is the task's arguments, rendered and coerced to the kinds in `DOC`. A module writes `async fn`; without
/// async-trait, the compiler checks only once, not for each module, that what all modules use is `Send`.
pub trait Module: DeserializeOwned + Send + Sync + 'static {
    const DOC: Doc;
    /// What it changes on the host.
    const CHANGES: Changes;
    /// What `async` means for it. Where Ansible has an action of the controller's, it is [`Async::Never`].
    const ASYNC: Async = Async::Limit;
    /// Whether the path in its outcome is one of the host: the file there gets labels, and its attributes are reported.
    const PATH_IS_ON_HOST: bool = true;
    /// What `plan` found to do.
    type Change: Send;

    /// Reads the host's state and returns the change. Check mode ends here.
    fn plan(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
    ) -> impl Future<Output = Result<Plan<Self::Change>, Error>> + Send;

    /// Makes the change that `plan` found.
    fn apply(
        &self,
        change: Self::Change,
        remote: &Remote,
        here: &Controller<'_>,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send;
}

/// A module that reads the host and never changes it (`stat`, `setup`): check mode makes no difference to it.
pub trait Inspect: DeserializeOwned + Send + Sync + 'static {
    const DOC: Doc;

    fn inspect(&self, probe: &Probe, here: &Controller<'_>) -> impl Future<Output = Result<Outcome, Error>> + Send;
}

/// A module that never needs the host (`debug`, `set_fact`): it runs on the controller and opens no connection.
pub trait Local: DeserializeOwned + Send + Sync + 'static {
    const DOC: Doc;
    /// What it changes on the host.
    const CHANGES: Changes = Changes::Nothing;
    /// Whether it runs once for all hosts, as with `run_once`.
    const ONCE: bool = false;

    /// Coerced arguments to the module's own type.
    fn coerce_arguments(args: Value) -> Result<Self, Error> {
        arguments::parse_arguments(args)
    }

    fn run(&self, here: &Controller<'_>) -> impl Future<Output = Result<ModuleResult, Error>> + Send;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsAt {
    Host,
    Controller,
}

pub enum Plan<C> {
    /// Nothing to do.
    Unchanged(Outcome),
    /// Known before acting: `changed` is true.
    Change { diff: Vec<Diff>, outcome: Outcome, change: C },
    /// The change is known only afterwards: `apply` sets [`Outcome::changed`]. In check mode: skipped.
    Unknown(C),
    /// Commands: skipped in check mode, as in Ansible, with this outcome.
    NotInCheckMode(Outcome, C),
}

/// This side of a task: files, templates and variables of the play; nothing of the engine.
pub struct Controller<'a> {
    pub templar: &'a Arc<Templar>,
    pub scope: &'a Scope,
    /// Where files are looked for, first match wins: the role's directories, the play's. `files/` or `templates/`
    /// below each comes first.
    pub search: &'a [PathBuf],
    pub check: bool,
    pub diff: bool,
    pub no_log: bool,
    pub verbosity: u8,
    pub caches: &'a Caches,
    /// Whose signature a bundle needs.
    pub signers: Option<&'a Arc<RequiredSigners>>,
    /// The task has `async`: its program runs without the connection, at most for this time.
    pub apart: Option<Duration>,
    /// Receives the progress of long transfers.
    pub progress: &'a (dyn Fn(Progress) + Send + Sync),
    /// Asks the person a question; drops it if there is no terminal.
    pub ask: &'a (dyn Fn(question::Question) + Send + Sync),
    /// The task's host, for modules that outlive a connection to it (`reboot`, `wait_for_connection`).
    pub host: &'a dyn Open,
}

/// What modules found out about files of the controller, for all hosts. It belongs to a run, or to the runs of one request.
#[derive(Debug, Default)]
pub struct Caches {
    digests: file_digest::FileDigests,
    programs: bundled::FoundPrograms,
}

/// A host that can be opened, as the user of the task.
#[async_trait]
pub trait Open: Send + Sync {
    /// Returns an open connection; `true` reconnects first.
    async fn open(&self, anew: bool) -> Result<Remote, Error>;

    /// Whether it is the machine that windlass runs on, by its connection.
    fn is_this_machine(&self) -> bool;
}

impl Controller<'_> {
    /// Finds a file of the play on this side: below `files/` (or whatever `folder` says) of each search directory,
    /// then in the directory itself, first match wins. An absolute path, or one that begins with `~/`, is taken as it is.
    /// Devices and pipes are refused: many have no end, and what is sent is read twice.
    pub fn find_file(&self, folder: &str, name: &str) -> Result<PathBuf, Error> {
        let path = self.search_for(folder, name)?;
        let special = std::fs::metadata(&path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        match special && path != Path::new("/dev/null") {
            true => Err(Error::failed(format!("{} is a device, a socket or a pipe, not a file", path.display()))),
            false => Ok(path),
        }
    }

    fn search_for(&self, folder: &str, name: &str) -> Result<PathBuf, Error> {
        let named = self.scope.surroundings.expand_home(name);
        if named.is_absolute() {
            return Ok(named);
        }
        let candidates = || self.search.iter().flat_map(|d| [d.join(folder).join(name), d.join(name)]);
        candidates().find(|path| path.exists()).ok_or_else(|| {
            let tried: Vec<String> = candidates().map(|path| path.display().to_string()).collect();
            Error::Failed {
                message: format!("cannot find {name:?} on the controller"),
                hint: Some(format!("searched {}", tried.join(", "))),
            }
        })
    }
}

/// How far a long transfer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// `etcd → h1`
    pub what: String,
    pub done: u64,
    pub total: u64,
}

/// What a module leaves behind.
#[derive(Debug, Default, Clone)]
pub struct Outcome {
    /// For plans whose change is known only afterwards.
    pub changed: bool,
    /// Ansible's `msg`.
    pub message: Option<String>,
    /// Return values, as `register` keeps them.
    pub values: Vars,
    pub effects: Vec<Effect>,
    /// A failure with return values (`command` with a non-zero code): the message.
    pub failed: Option<String>,
    /// Ansible's `skipped`, for `creates:` and the like.
    pub skipped: bool,
}

impl Outcome {
    /// Adds a return value.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.values.insert(Arc::from(name), value.into());
        self
    }

    /// Sets Ansible's `msg`.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Adds something for the engine to do.
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }
}

/// What a module asks the engine to do; it is done in one place.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Facts of the host (`setup`, or `set_fact: cacheable`).
    Facts(Vars),
    /// Variables of `set_fact`.
    SetFact(Vars),
    /// Variables of `include_vars`: those that the person wrote, and those that were merged with what a host may have said.
    IncludeVars {
        own: Vars,
        merged: Vars,
    },
    AddHost {
        name: String,
        groups: Vec<String>,
        vars: Vars,
    },
    GroupBy {
        group: String,
        parents: Vec<String>,
    },
    Stats {
        vars: Vars,
        per_host: bool,
        aggregate: bool,
    },
}

/// One file's or setting's before and after.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    pub before_header: String,
    pub after_header: String,
    pub before: String,
    pub after: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The task failed: a message for the person.
    #[error("{message}")]
    Failed { message: String, hint: Option<String> },
    /// As `Failed`, with values for the task's result: what a server answered, or what playbooks decide on.
    #[error("{message}")]
    Answered { message: String, hint: Option<String>, values: Vars },
    #[error(transparent)]
    Remote(#[from] crate::remote::Error),
    #[error(transparent)]
    Template(#[from] crate::template::Error),
}

impl Error {
    pub fn failed(message: impl Into<String>) -> Self {
        Error::Failed { message: message.into(), hint: None }
    }

    /// The object of the task does not exist. Playbooks read `exists`, not the message.
    pub fn absent(message: impl Into<String>) -> Self {
        let values = Vars::from([("exists".into(), Value::from(false))]);
        Error::Answered { message: message.into(), hint: None, values }
    }
}

/// What became of a module's run.
pub struct ModuleResult {
    pub changed: bool,
    pub diff: Vec<Diff>,
    pub outcome: Outcome,
}

impl ModuleResult {
    /// Nothing was changed.
    pub fn unchanged(outcome: Outcome) -> ModuleResult {
        ModuleResult { changed: false, diff: Vec::new(), outcome }
    }
}

/// A module's run, its type erased.
pub type Run = &'static (
             dyn for<'a> Fn(Value, Option<&'a Remote>, &'a Controller<'a>) -> BoxFuture<'a, Result<ModuleResult, Error>>
                 + Send
                 + Sync
         );

/// A module, its type erased.
pub struct ModuleEntry {
    pub doc: &'static Doc,
    pub place: RunsAt,
    pub changes: Changes,
    pub asynchronous: Async,
    /// Whether it runs once for all hosts, as with `run_once`.
    pub once: bool,
    /// Whether coerced arguments have the form of the module's own type.
    pub accepts: fn(Value) -> Result<(), Error>,
    /// Coerced arguments (see [`arguments::coerce`]), the host (None for modules of the controller), this side.
    pub run: Run,
}

const fn entry<M: Module>() -> ModuleEntry {
    ModuleEntry {
        doc: &M::DOC,
        place: RunsAt::Host,
        changes: M::CHANGES,
        asynchronous: M::ASYNC,
        once: false,
        accepts: |args| arguments::parse_arguments::<M>(Labels::take_labels(&M::DOC, args).0).map(drop),
        run: &|args, remote, here| Box::pin(run::<M>(args, remote, here)),
    }
}

const fn inspection<M: Inspect>() -> ModuleEntry {
    ModuleEntry {
        doc: &M::DOC,
        place: RunsAt::Host,
        changes: Changes::Nothing,
        asynchronous: Async::Limit,
        once: false,
        accepts: |args| arguments::parse_arguments::<M>(args).map(drop),
        run: &|args, remote, here| Box::pin(run_inspection::<M>(args, remote, here)),
    }
}

const fn local<M: Local>() -> ModuleEntry {
    ModuleEntry {
        doc: &M::DOC,
        place: RunsAt::Controller,
        changes: M::CHANGES,
        asynchronous: Async::Never,
        once: M::ONCE,
        accepts: |args| arguments::parse_arguments::<M>(args).map(drop),
        run: &|args, _, here| Box::pin(run_local::<M>(args, here)),
    }
}

/// Finds a module by its short or long name (`copy`, `ansible.builtin.copy`, `ansible.legacy.copy`).
pub fn find_module(name: &str) -> Option<&'static ModuleEntry> {
    let (collection, short) = name.rsplit_once('.').unwrap_or(("", name));
    MODULES.iter().find(|entry| {
        entry.doc.name == short
            && (collection.is_empty()
                || collection == entry.doc.collection
                || collection == "ansible.legacy" && entry.doc.collection == "ansible.builtin")
    })
}

/// The module of a documentation that the loader gave to a task.
pub fn entry_of_doc(doc: &'static Doc) -> &'static ModuleEntry {
    let entry = if doc.is_own() { own::own_entry(doc) } else { find_module(doc.name) };
    entry.expect("the loader takes modules from this list, or opens them")
}

/// What a module changes on a host, as a plan counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    Nothing,
    /// Files, directories and links.
    Files,
    /// systemd units.
    Units,
    /// Objects of a Kubernetes API.
    Objects,
    Packages,
    /// Users and groups.
    Accounts,
    Mounts,
    CronJobs,
    /// Kernel parameters and modules.
    KernelSettings,
    FirewallRules,
    /// Anything: a command, say.
    Other,
}

/// What `async` means for a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Async {
    /// Its program continues when the connection ends, and need not be followed (`poll: 0`).
    Job,
    /// It works through the connection: `async` is the time that it may take.
    Limit,
    /// Nothing.
    Never,
}

async fn run<M: Module>(args: Value, remote: Option<&Remote>, here: &Controller<'_>) -> Result<ModuleResult, Error> {
    let (args, labels) = Labels::take_labels(&M::DOC, args);
    labels.check_labels()?;
    let module: M = arguments::parse_arguments(args)?;
    let remote = opened(remote);
    let mut done = plan_and_apply(&module, remote, here).await?;
    if M::PATH_IS_ON_HOST {
        labels.settle(&mut done, remote, here).await?;
        done.outcome = file_attributes::complete(done.outcome, remote).await?;
    }
    Ok(done)
}

/// The one place that knows of check mode.
async fn plan_and_apply<M: Module>(module: &M, remote: &Remote, here: &Controller<'_>) -> Result<ModuleResult, Error> {
    let (diff, planned, change) = match module.plan(remote.probe(), here).await? {
        Plan::Unchanged(outcome) => return Ok(ModuleResult { changed: false, diff: Vec::new(), outcome }),
        Plan::Change { diff, outcome, .. } if here.check => return Ok(ModuleResult { changed: true, diff, outcome }),
        plan @ (Plan::Unknown(_) | Plan::NotInCheckMode(..)) if here.check => {
            let reported = if let Plan::NotInCheckMode(outcome, _) = plan { outcome } else { Outcome::default() };
            let message = || format!("{} would have run if not in check mode", M::DOC.name);
            let message = reported.message.clone().or_else(|| Some(message()));
            let outcome = Outcome { skipped: true, message, ..reported };
            return Ok(ModuleResult { changed: false, diff: Vec::new(), outcome });
        }
        Plan::Change { diff, change, .. } => (diff, true, change),
        Plan::Unknown(change) | Plan::NotInCheckMode(_, change) => (Vec::new(), false, change),
    };
    remote.may_change().await?;
    let outcome = module.apply(change, remote, here).await?;
    Ok(ModuleResult { changed: planned || outcome.changed, diff, outcome })
}

async fn run_inspection<M: Inspect>(
    args: Value,
    host: Option<&Remote>,
    here: &Controller<'_>,
) -> Result<ModuleResult, Error> {
    let module: M = arguments::parse_arguments(args)?;
    let probe = opened(host).probe();
    let outcome = module.inspect(probe, here).await?;
    Ok(ModuleResult::unchanged(file_attributes::complete(outcome, probe).await?))
}

fn opened(host: Option<&Remote>) -> &Remote {
    host.expect("the engine opens the host for every module that is placed there")
}

async fn run_local<M: Local>(args: Value, here: &Controller<'_>) -> Result<ModuleResult, Error> {
    M::coerce_arguments(args)?.run(here).await
}

#[cfg(test)]
mod tests {
    use super::testing::sample;
    use super::*;
    use crate::value::doc::ANY_NAME;

    /// A plan does not count the changes of these modules; decide this for every new module.
    #[test]
    fn modules_that_change_nothing_on_hosts_are_these() {
        let on_hosts = MODULES.iter().filter(|entry| entry.place == RunsAt::Host && entry.changes == Changes::Nothing);
        let names: Vec<_> = on_hosts.map(|entry| entry.doc.name).collect();
        let expected = [
            "async_status",
            "etcd_cluster_info",
            "etcd_gate",
            "find",
            "gather_facts",
            "getent",
            "k8s_info",
            "mount_facts",
            "package_facts",
            "ping",
            "service_facts",
            "setup",
            "slurp",
            "stat",
            "wait_for",
            "x509_certificate_info",
            "x509_csr",
        ];
        assert_eq!(names, expected);
        let on_controller = MODULES.iter().filter(|entry| entry.place == RunsAt::Controller);
        let changing: Vec<_> =
            on_controller.filter(|entry| entry.changes != Changes::Nothing).map(|entry| entry.doc.name).collect();
        assert_eq!(changing, ["reboot"]);
        let jobs: Vec<_> =
            MODULES.iter().filter(|entry| entry.asynchronous == Async::Job).map(|entry| entry.doc.name).collect();
        assert_eq!(jobs, ["command", "script", "shell"]);
    }

    #[test]
    fn a_module_that_runs_a_command_takes_it_as_text() {
        for name in crate::value::doc::COMMAND_MODULES {
            assert!(find_module(name).unwrap().doc.free_form.is_some(), "{name}");
        }
    }

    #[test]
    fn the_list_is_sorted_and_every_name_is_there_once() {
        let names: Vec<_> = MODULES.iter().map(|entry| entry.doc.name).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }

    #[test]
    fn a_module_is_found_by_its_short_and_long_names() {
        for entry in MODULES {
            let name = entry.doc.name;
            assert!(std::ptr::eq(find_module(name).expect(name), entry));
            assert!(find_module(&format!("{}.{name}", entry.doc.collection)).is_some());
            assert!(find_module(&format!("no.such.{name}")).is_none());
        }
    }

    #[test]
    fn every_summary_is_one_line_without_a_full_stop() {
        for entry in MODULES {
            let doc = entry.doc;
            let arguments = doc.arguments.iter().map(|a| (a.name, a.summary));
            let returns = doc.returns.iter().map(|r| (r.name, r.summary));
            for (name, summary) in arguments.chain(returns).chain([(doc.name, doc.summary)]) {
                let good = !summary.is_empty() && !summary.contains('\n') && !summary.ends_with('.');
                assert!(good, "{}: {name}: {summary:?}", doc.name);
            }
        }
    }

    #[test]
    fn every_argument_and_every_choice_fits_the_module_s_type() {
        for entry in MODULES {
            let doc = entry.doc;
            let required: Vars =
                doc.arguments.iter().filter(|a| a.required).map(|a| (a.name.into(), sample(a, a.kind))).collect();
            let fits = |name: &str, value: Value| {
                let mut args = required.clone();
                args.insert(name.into(), value.clone());
                let coerced = arguments::coerce(doc, &args).unwrap_or_else(|e| panic!("{}: {name}: {e}", doc.name));
                (entry.accepts)(coerced).unwrap_or_else(|e| panic!("{}: {name}={value}: {e}", doc.name));
            };
            for argument in doc.arguments.iter().filter(|a| a.name != ANY_NAME) {
                fits(argument.name, sample(argument, argument.kind));
                for choice in argument.choices {
                    fits(argument.name, Value::from(*choice));
                }
            }
        }
    }

    #[test]
    fn no_module_swallows_an_argument_that_its_doc_does_not_have() {
        for entry in MODULES.iter().filter(|entry| entry.doc.argument(ANY_NAME).is_none()) {
            let required: Vars = entry.doc.arguments.iter().map(|a| (a.name.into(), sample(a, a.kind))).collect();
            let with_stranger = required.into_iter().chain([("no_such_argument".into(), Value::from(1))]);
            assert!((entry.accepts)(Value::from_pairs(with_stranger)).is_err(), "{}", entry.doc.name);
        }
    }

    #[test]
    fn every_example_is_tasks_of_its_module_with_arguments_that_exist_and_fit() {
        for entry in MODULES {
            let tasks = testing::tasks(entry.doc.example);
            let own = tasks.iter().filter(|(doc, _)| doc.name == entry.doc.name).count();
            assert!(own > 0, "{}: the example does not use it", entry.doc.name);
            for (doc, args) in tasks {
                testing::assert_fits(doc, &args);
            }
        }
    }
}
