//! Which deployment a request is about, and its playbooks as runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::control::{Control, Progress};
use super::{Deployment, Error, keys, members};
use crate::connection::Fence;
use crate::credentials::CredentialFiles;
use crate::engine::{Defaults, Job, Tags};
use crate::inventory::{Inventory, InventoryOptions};
use crate::launch::{Launch, RunOptions, options};
use crate::modules::Caches;
use crate::remote::DeploymentLease;
use crate::resource::check_table_layout;
use crate::settings::Settings;
use crate::value::vault::Keyring;
use crate::value::yaml::{Duplicates, NodeKind};
use crate::value::{Secret, Vars};

/// What every request on a deployment needs. The caller reads it, or asks for it, once.
pub struct Site {
    pub settings: Settings,
    /// The inventories, as with `-i`.
    pub sources: Vec<String>,
    pub keyring: Arc<Keyring>,
    /// What becomes of duplicate keys in files of variables.
    pub duplicates: Duplicates,
    pub extra_vars: Arc<Vars>,
    /// How hosts are reached, where the inventory does not say it.
    pub defaults: Defaults,
    /// The option with the user's own password or key: refused for a resource from an API.
    pub own_login: Option<&'static str>,
    /// The directory with `etcd.yml` and the others, beside that of their roles.
    pub playbooks: PathBuf,
    /// The working directory: absolute.
    pub directory: PathBuf,
    /// How many hosts to work on at once. None: as the settings say.
    pub forks: Option<usize>,
    /// Connect to the hosts of the inventory and to these addresses only. None: to any.
    pub offline: Option<Vec<String>>,
    pub verbosity: u8,
    /// Its runs share it.
    pub caches: Arc<Caches>,
}

/// The inventory as it was when a phase of a request began: planning, or one stage of an apply, which may change what the
/// inventory says.
pub struct Phase<'s> {
    site: &'s Site,
    inventory: Inventory,
}

/// A requested run.
#[derive(Default)]
pub struct Run<'a> {
    /// None: a job without plays, to look at variables with.
    pub playbook: Option<&'a Path>,
    pub check: bool,
    /// Variables beside the extra variables; they win.
    pub vars: Vars,
    /// The hosts to run it on, as a pattern. None: all hosts.
    pub limit: Option<String>,
    /// Members that are removed even if they do not answer, beside those of the resource.
    pub remove_by_force: Vec<String>,
    /// The lock under which it changes things.
    pub hold: Option<DeploymentLease>,
}

impl Site {
    /// What is read only once, for any number of requests. Its passwords are hidden in all outputs.
    ///
    /// # Errors
    /// No inventory is named, or the playbooks belong to another version of this program.
    pub fn checked(self) -> Result<Site, Error> {
        for password in self.defaults.password.iter().chain(&self.defaults.become_password) {
            self.keyring.hidden.add_secret(Secret::reveal(password));
        }
        if self.sources.is_empty() {
            return Err(Error::NoSource);
        }
        check_table_layout(&self.roles())?;
        Ok(self)
    }

    /// Reads the inventory.
    ///
    /// # Errors
    /// It is invalid, cannot be prompted for, or the user's own password was given for a resource from an API.
    pub async fn read_inventory(&self) -> Result<Phase<'_>, Error> {
        let reading = InventoryOptions { duplicates: self.duplicates.clone(), ..options::reading(&self.settings)? };
        let (sources, keyring) = (self.sources.clone(), self.keyring.clone());
        // On a thread that may wait: a source may be a program or an API server.
        let read = tokio::task::spawn_blocking(move || Inventory::load_with(&sources, &keyring, &reading));
        let inventory = read.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
        refuse_own_login(self.own_login, &inventory)?;
        Ok(Phase { site: self, inventory })
    }

    /// A playbook of the deployment.
    pub fn playbook_path(&self, name: &str) -> PathBuf {
        self.playbooks.join(name)
    }

    /// The directory of the deployment's roles, beside its playbooks.
    fn roles(&self) -> PathBuf {
        self.playbooks.with_file_name("roles")
    }

    /// The inventories as they can be named from anywhere.
    pub fn absolute_sources(&self) -> Vec<String> {
        let absolute = |source: &String| match self.directory.join(source) {
            path if path.exists() => path.display().to_string(),
            _ => source.clone(),
        };
        self.sources.iter().map(absolute).collect()
    }
}

impl Phase<'_> {
    pub fn site(&self) -> &Site {
        self.site
    }

    /// The generation of the resource, if it came from an API server.
    pub fn generation(&self) -> Option<i64> {
        match self.inventory.deployments.first()?.node.get("metadata")?.get("generation")?.kind {
            NodeKind::Int(generation) => Some(generation),
            _ => None,
        }
    }

    /// The deployment that the inventory describes.
    ///
    /// # Errors
    /// It describes none, or a host's variables cannot be rendered.
    pub async fn deployment(&self, control: &Control) -> Result<Deployment, Error> {
        self.inventory.warnings.iter().for_each(|warning| control.report_progress(Progress::Warning(warning.clone())));
        let deployment = self.describe_deployment(control).await?;
        let hosts = deployment.hosts.iter().map(ToString::to_string).collect();
        control.report_progress(Progress::Deployment { name: deployment.name.clone(), hosts });
        Ok(deployment)
    }

    /// As [`Phase::deployment`], without the warnings of the inventory.
    pub(super) async fn describe_deployment(&self, control: &Control) -> Result<Deployment, Error> {
        let mut job = self.job(Run { check: true, ..Run::default() }, control).await?;
        job.defaults.r#become = true;
        Deployment::of_job(&job)
    }

    /// The files with which a new controller can look after the deployment.
    ///
    /// # Errors
    /// One that a restore needs is missing, or cannot be read.
    pub(super) async fn credentials(
        &self,
        deployment: &Deployment,
        control: &Control,
    ) -> Result<CredentialFiles, Error> {
        let job = self.job(Run { check: true, ..Run::default() }, control).await?;
        keys::read_credentials(&job, deployment)
    }

    pub(super) fn launch(&self) -> Launch {
        let site = self.site;
        let (keyring, extra_vars) = (site.keyring.clone(), site.extra_vars.clone());
        let mut launch = Launch::over(&site.settings, self.inventory.clone(), None, keyring, extra_vars);
        launch.loader.hooks = options::hooks(&site.settings);
        // For hooks, which are elsewhere.
        let roles = site.roles();
        launch.loader.last_roles = Some(Arc::new(move |name| Some(roles.join(name)).filter(|role| role.is_dir())));
        launch
    }

    /// The run as a job of the engine. Where its plays depend on which members there are, the control plane is asked.
    ///
    /// # Errors
    /// The playbook is written wrongly.
    pub async fn job(&self, run: Run<'_>, control: &Control) -> Result<Job, Error> {
        let site = self.site;
        let launch = self.launch();
        let mut playbooks = Vec::new();
        if let Some(path) = run.playbook {
            playbooks.push(launch.loader.load_playbook(path)?.into_iter().map(Arc::new).collect());
        }
        let mut job = launch.job(playbooks, Tags::default(), &self.manner(run.check), &site.settings)?;
        job.defaults = site.defaults.clone();
        job.caches = site.caches.clone();
        job.limit = run.limit;
        if members::concern(&job)
            && let Some(warning) = members::find_members(&mut job, &run.remove_by_force).await?
        {
            control.report_progress(Progress::Warning(warning));
        }
        job.inventory.put_groups_of_plays();
        job.hold = run.hold;
        if !run.vars.is_empty() {
            let mut vars = (*job.extra_vars).clone();
            vars.extend(run.vars);
            job.extra_vars = Arc::new(vars);
        }
        Ok(job)
    }

    /// The limits of an offline run. None: it is not offline.
    ///
    /// # Errors
    /// A setting makes no sense.
    pub fn fence(&self) -> Result<Option<Fence>, Error> {
        Ok(self.launch().job(Vec::new(), Tags::default(), &self.manner(true), &self.site.settings)?.fence())
    }

    fn manner(&self, check: bool) -> RunOptions {
        let site = self.site;
        RunOptions {
            check,
            // A plan shows it with -v.
            diff: check && site.verbosity > 0,
            forks: site.forks,
            verbosity: site.verbosity,
            offline: site.offline.clone(),
            flush_cache: false,
            directory: site.directory.clone(),
        }
    }

    pub(super) fn inventory(&self) -> &Inventory {
        &self.inventory
    }
}

/// Refuses a password or key of the person's own for the inventory of a resource from an API.
///
/// # Errors
/// `option` gives one, and the inventory is of such a resource.
pub fn refuse_own_login(option: Option<&'static str>, inventory: &Inventory) -> Result<(), Error> {
    match option {
        Some(option) if inventory.confined.is_some() => Err(Error::OwnLogin { option }),
        _ => Ok(()),
    }
}
