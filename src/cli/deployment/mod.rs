//! What `windlass plan`, `apply`, `status` and `destroy` have in common: which deployment is meant, and its playbooks as jobs.

pub(super) mod apply;
pub(super) mod destroy;
pub(super) mod plan;
pub(super) mod show;
mod stages;
pub(super) mod status;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;

use super::launch::Launch;
use super::options::{self, ConnectionArgs, InventorySource, Offline, RunArgs, VaultPasswords};
use super::reporting::Reporting;
use super::{Failure, clusters, extra_vars, installed, vault};
use crate::connection::{Open, Ways};
use crate::deployment::held::Lock;
use crate::deployment::lock::{self, Asked, Door, Opens};
use crate::deployment::stage::Stage;
use crate::deployment::{holder, stage};
use crate::engine::{self, Defaults, Job, Tags};
use crate::remote::{Hold, Remote};
use crate::resource::{self, HookTime};
use crate::settings::Settings;
use crate::value::truth;
use crate::value::vault::Keyring;
use crate::value::{Secret, Value, Vars};

/// Where the lock and the journal of an instance lie on its hosts.
const STATE: &str = "/var/lib/windlass";

#[derive(Debug, Args)]
pub(super) struct SiteArgs {
    /// The deployment: a file with a KarmadaDeployment
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Option<PathBuf>,
    /// More inventories, or instead of -f one that has the groups of a deployment
    #[arg(short = 'i', long = "inventory", value_name = "INVENTORY")]
    inventory: Vec<String>,
    /// Variables: KEY=VALUE, JSON or YAML text, or @FILE
    #[arg(short = 'e', long = "extra-vars", value_name = "VARS")]
    extra_vars: Vec<String>,
    /// Directory with etcd.yml, karmada.yml and the others (default: ./playbooks if it has them, else the installed ones)
    #[arg(long, value_name = "DIRECTORY")]
    playbooks: Option<PathBuf>,
    /// How many hosts to work on at once (20 unless configured)
    #[arg(long, value_name = "FORKS")]
    forks: Option<usize>,
    #[command(flatten)]
    offline: Offline,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    vault: VaultPasswords,
    #[command(flatten)]
    pub reporting: Reporting,
}

/// What is asked for or read once, however many runs follow.
pub(super) struct Site<'a> {
    pub args: &'a SiteArgs,
    pub settings: Settings,
    source: InventorySource,
    keyring: Arc<Keyring>,
    extra_vars: Arc<Vars>,
    defaults: Defaults,
}

impl<'a> Site<'a> {
    /// Reads what the options name, and asks for passwords. `files` are inventories beside those of `-i`.
    pub(super) fn open(args: &'a SiteArgs, files: &[PathBuf]) -> Result<Site<'a>, Failure> {
        let settings = super::settings()?;
        let named = args.file.iter().chain(files).map(|file| file.display().to_string());
        let source = InventorySource { inventory: named.chain(args.inventory.clone()).collect(), limit: None };
        if source.inventories(&settings).is_empty() {
            return Err(anyhow!("no deployment given\nhint: pass -f FILE, a file with a KarmadaDeployment").into());
        }
        let keyring = Arc::new(vault::keyring(&args.vault, &settings)?);
        let extra_vars = Arc::new(extra_vars::read(&args.extra_vars, &keyring)?);
        let defaults = args.connection.defaults(&settings)?;
        for password in defaults.password.iter().chain(&defaults.become_password) {
            keyring.hidden.add(Secret::reveal(password));
        }
        Ok(Site { args, settings, source, keyring, extra_vars, defaults })
    }

    pub(super) fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Reads the inventory, anew each time: what a stage did may show in it.
    pub(super) fn launch(&self) -> Result<Launch, Failure> {
        // On a thread of its own: a source that asks an API waits in its own way.
        let read = || Launch::with(&self.settings, &self.source, self.keyring.clone(), self.extra_vars.clone());
        let mut launch = std::thread::scope(|scope| {
            let thread = scope.spawn(read);
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        launch.loader.hooks = options::hooks(&self.settings);
        launch.loader.roles_path.extend(installed::roles());
        Ok(launch)
    }

    /// A playbook of a stage: in the directory that was named, in `./playbooks`, or of the package.
    pub(super) fn playbook(&self, name: &str) -> PathBuf {
        let here = Path::new("playbooks");
        match &self.args.playbooks {
            Some(directory) => directory.join(name),
            None if here.join("karmada.yml").is_file() => here.join(name),
            None => installed::playbook(Path::new(name)),
        }
    }

    /// A run of a playbook, or of none.
    pub(super) fn job(
        &self,
        playbook: Option<&Path>,
        check: bool,
        answers: Vars,
        hold: Option<Hold>,
    ) -> Result<Job, Failure> {
        let launch = self.launch()?;
        self.args.connection.refuse_own_logins(&launch.inventory)?;
        let mut playbooks = Vec::new();
        if let Some(path) = playbook {
            playbooks.push(launch.loader.playbook(path)?.into_iter().map(Arc::new).collect());
        }
        let run = RunArgs {
            module_path: Vec::new(),
            extra_vars: Vec::new(),
            check,
            diff: false,
            forks: self.args.forks,
            offline: self.args.offline.clone(),
            flush_cache: false,
        };
        let mut job = launch.job(playbooks, Tags::default(), &run, &self.args.reporting, &self.settings)?;
        job.defaults = self.defaults.clone();
        // Who leaves is what the control plane has and the resource has no longer.
        if clusters::concern(&job) {
            clusters::look(&mut job)?;
        }
        job.hold = hold;
        if !answers.is_empty() {
            let mut vars = (*job.extra_vars).clone();
            vars.extend(answers);
            job.extra_vars = Arc::new(vars);
        }
        Ok(job)
    }

    /// The inventories as they can be named from anywhere.
    pub(super) fn sources(&self) -> Result<Vec<String>, Failure> {
        let here = std::env::current_dir().context("the working directory does not exist any more")?;
        let absolute = |source: &String| match Path::new(source).exists() {
            true => here.join(source).display().to_string(),
            false => source.clone(),
        };
        Ok(self.source.inventories(&self.settings).iter().map(absolute).collect())
    }

    /// Which deployment it is.
    pub(super) fn deployment(&self) -> Result<Deployment, Failure> {
        let mut job = self.job(None, true, Vars::new(), None)?;
        job.inventory.warnings.iter().for_each(|warning| super::warn(warning));
        job.defaults.r#become = true;
        Deployment::of(&job)
    }
}

/// The deployment that is meant, and the ways to the hosts that hold its lock.
pub(super) struct Deployment {
    pub name: String,
    pub instance: String,
    /// What etcd-reset.yml asks for.
    pub etcd_cluster: String,
    /// Sorted by name.
    pub hosts: Vec<Arc<str>>,
    pub opens: Opens,
    /// The lock's, on each host.
    pub directory: String,
    /// None: it is described by an inventory of another kind.
    resource: Option<resource::Deployment>,
}

/// Playbooks before and after that of a stage.
#[derive(Default)]
pub(super) struct Around {
    pub before: Vec<PathBuf>,
    pub after: Vec<PathBuf>,
}

impl Deployment {
    fn of(job: &Job) -> Result<Deployment, Failure> {
        let hosts = stage::locked_hosts(&job.inventory);
        let Some(first) = hosts.first() else {
            return Err(anyhow!(
                "the inventory has no deployment: no host in the groups etcd and karmada_control_plane"
            )
            .into());
        };
        let text = |name: &str| -> Result<Option<String>, Failure> {
            let value = engine::variable(job, first, name).map_err(anyhow::Error::new)?;
            Ok(value.map(|value: Value| value.to_string()).filter(|text| !text.is_empty()))
        };
        let instance = text("karmada_instance")?.unwrap_or_else(|| "karmada".to_owned());
        let name = text("karmada_deployment")?.unwrap_or_else(|| instance.clone());
        let etcd = text("etcd_instance")?.unwrap_or_else(|| "etcd".to_owned());
        let etcd_cluster = text("etcd_cluster_name")?.unwrap_or(etcd);
        let directory = format!("{STATE}/{instance}");
        let mut ways = Vec::new();
        let mut addresses = Vec::new();
        let mut apart = Vec::new();
        for host in hosts {
            let (target, user) = engine::reach(job, &host).map_err(anyhow::Error::new)?;
            // One machine under two names counts once.
            let address = (target.method, target.address.clone(), target.port);
            if !addresses.contains(&address) {
                addresses.push(address);
                apart.push(host.clone());
                ways.push((host, target, user));
            }
        }
        let open: Arc<dyn Open> = match job.fence() {
            Some(fence) => Arc::new(fence),
            None => Arc::new(Ways),
        };
        let ways = Arc::new(ways);
        let opens: Opens = Arc::new(move |name: Arc<str>| {
            let (ways, open) = (ways.clone(), open.clone());
            Box::pin(async move {
                let way = ways.iter().find(|(host, ..)| *host == name);
                let (_, target, user) = way.expect("the lock asks for the hosts that it was given");
                let connection = open.open(target).await.map_err(|error| format!("{name}: {error}"))?;
                Ok(Door { name, connection, user: user.clone() })
            })
        });
        let resource = job.inventory.deployments.first().cloned();
        Ok(Deployment { name, instance, etcd_cluster, hosts: apart, opens, directory, resource })
    }

    /// Refuses a deployment that is paused.
    pub(super) fn refuse_paused(&self) -> Result<(), Failure> {
        match &self.resource {
            Some(resource) if resource.spec.paused => Err(anyhow!(
                "{} is paused (spec.paused in {}); windlass changes nothing",
                self.name,
                resource.path.display()
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// The hooks of a stage.
    pub(super) fn around(&self, stage: Stage) -> Around {
        let mut around = Around::default();
        let Some(resource) = &self.resource else { return around };
        for hook in resource.spec.hooks.iter().filter(|hook| hook.stage == stage) {
            let list = match hook.when {
                HookTime::Before => &mut around.before,
                HookTime::After => &mut around.after,
            };
            list.push(resource.place(&hook.playbook));
        }
        around
    }

    /// Refuses hooks that cannot be run, before anything else is done.
    pub(super) fn check_hooks(&self, site: &Site<'_>) -> Result<(), Failure> {
        let Some(resource) = self.resource.as_ref().filter(|resource| !resource.spec.hooks.is_empty()) else {
            return Ok(());
        };
        let loader = site.launch()?.loader;
        for hook in &resource.spec.hooks {
            loader.playbook(&resource.place(&hook.playbook))?;
        }
        Ok(())
    }

    /// Takes the lock. `breaks`: of a holder that is still there, too.
    pub(super) async fn lock(&self, command: &str, breaks: bool) -> Result<Lock, Failure> {
        let asked = Asked {
            hosts: &self.hosts,
            directory: &self.directory,
            run: holder::this_run(command),
            breaks,
            opens: self.opens.clone(),
            tell: &|words| super::note(words),
        };
        use crate::deployment::lock::Error;
        asked.acquire().await.map_err(|error| {
            let held = matches!(error, Error::Held(_));
            let error = anyhow::Error::new(error);
            match held {
                true => anyhow!("{error:#}\nhint: wait until it has ended, or take over with --break-lock: it can change nothing from then on"),
                false => error,
            }
            .into()
        })
    }

    /// The hosts that answer, as root, to look at.
    pub(super) async fn doors(&self) -> Vec<(Arc<str>, Remote)> {
        let open = self.hosts.iter().map(|name| async { lock::open(&self.opens, name).await.ok() });
        futures::future::join_all(open).await.into_iter().flatten().map(|(door, remote)| (door.name, remote)).collect()
    }
}

/// Asks for a word of agreement on the terminal.
///
/// # Errors
/// There is no terminal.
fn agrees(question: &str, otherwise: &str) -> Result<bool, Failure> {
    use std::io::IsTerminal;
    if !std::io::stdin().is_terminal() {
        return Err(anyhow!("cannot ask: standard input is not a terminal ({otherwise})").into());
    }
    let answer = super::ask::line(&format!("{question} [y/N] ")).context("cannot ask")?;
    Ok(truth::is_yes(&answer))
}
