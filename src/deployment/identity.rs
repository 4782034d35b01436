//! Which deployment it is: its names, its hosts, and the ways to them.

use std::path::PathBuf;
use std::sync::Arc;

use super::control::{Control, LockRequest, Progress};
use super::journal::{self, Journal, Journals};
use super::keys;
use super::lock::Lock;
use super::lock::{self, Holder, LockHost, LockOptions, OpenLockHost, holder};
use super::stage::{self, Stage};
use super::{Error, Phase};
use crate::connection::{Connectors, Method, Open};
use crate::engine::{self, Job};
use crate::remote::Remote;
use crate::resource::names::variable;
use crate::resource::{self, HookTime};
use crate::value::{ProcessEnvironment, Value};

/// The directory of an instance's lock and journal on its hosts.
const STATE: &str = "/var/lib/windlass";

/// The deployment that is meant, and the ways to the hosts that hold its lock.
pub struct Deployment {
    pub name: String,
    pub instance: String,
    /// What etcd-reset.yml asks for.
    pub etcd_cluster: String,
    /// Sorted by name.
    pub hosts: Vec<Arc<str>>,
    /// Where each of them is: method, address, port.
    addresses: Vec<(Method, String, Option<u16>)>,
    pub opens: OpenLockHost,
    /// The lock's, on each host.
    pub directory: String,
    /// None: it is described by an inventory of another kind.
    resource: Option<resource::Deployment>,
    /// The environment of the user who runs windlass: the lock names the user.
    pub surroundings: Arc<ProcessEnvironment>,
}

/// Playbooks before and after that of a stage.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    pub before: Vec<PathBuf>,
    pub after: Vec<PathBuf>,
}

impl Deployment {
    pub(super) fn of_job(job: &Job) -> Result<Deployment, Error> {
        let hosts = stage::locked_hosts(&job.inventory);
        let Some(first) = hosts.first() else {
            return Err(Error::NoHosts);
        };
        let text = |name: &str| -> Result<Option<String>, Error> {
            let value = engine::variable(job, first, name)?;
            Ok(value.map(|value: Value| value.to_string()).filter(|text| !text.is_empty()))
        };
        let instance = text(variable::KARMADA_INSTANCE)?.unwrap_or_else(|| "karmada".to_owned());
        let name = text(variable::KARMADA_DEPLOYMENT)?.unwrap_or_else(|| instance.clone());
        let etcd = text(variable::ETCD_INSTANCE)?.unwrap_or_else(|| "etcd".to_owned());
        let etcd_cluster = text(variable::ETCD_CLUSTER_NAME)?.unwrap_or(etcd);
        keys::refuse_keys_of_others(job, &etcd_cluster)?;
        let directory = format!("{STATE}/{instance}");
        let mut ways = Vec::new();
        let mut addresses = Vec::new();
        let mut apart = Vec::new();
        for host in hosts {
            let (target, user) = engine::reach(job, &host)?;
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
            None => Arc::new(Connectors),
        };
        let ways = Arc::new(ways);
        let opens: OpenLockHost = Arc::new(move |name: Arc<str>| {
            let (ways, open) = (ways.clone(), open.clone());
            Box::pin(async move {
                let way = ways.iter().find(|(host, ..)| *host == name);
                let (_, target, user) = way.expect("the lock asks for the hosts that it was given");
                let connection = open.open(target).await.map_err(|error| format!("{name}: {error}"))?;
                Ok(LockHost { name, connection, user: user.clone() })
            })
        });
        let resource = job.inventory.deployments.first().cloned();
        let surroundings = job.templar.surroundings().clone();
        Ok(Deployment {
            name,
            instance,
            etcd_cluster,
            hosts: apart,
            addresses,
            opens,
            directory,
            resource,
            surroundings,
        })
    }

    /// Refuses a deployment that is paused.
    pub(super) fn refuse_paused(&self) -> Result<(), Error> {
        match &self.resource {
            Some(resource) if resource.spec.paused => {
                Err(Error::Paused { name: self.name.clone(), path: resource.path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Refuses to continue with an inventory that was read again, if it is paused now, or describes another deployment or other hosts
    /// than those that were locked.
    ///
    /// # Errors
    /// It is, or does; or it cannot be rendered.
    pub(super) async fn recheck(&self, phase: &Phase<'_>, control: &Control) -> Result<(), Error> {
        let now = phase.describe_deployment(control).await?;
        now.refuse_paused()?;
        let key = |it: &Deployment| (it.name.clone(), it.instance.clone(), it.hosts.clone(), it.addresses.clone());
        if key(&now) == key(self) { Ok(()) } else { Err(Error::OtherHosts { name: self.name.clone() }) }
    }

    /// The members that its resource names, whether they have joined or not.
    pub fn asked_members(&self) -> impl Iterator<Item = &str> {
        let members = self.resource.iter().flat_map(|resource| &resource.spec.members);
        members.map(|member| member.name.as_str())
    }

    /// Refuses to continue with a spec that was changed since the plan was made: nobody has agreed to what it says now.
    ///
    /// # Errors
    /// It was.
    pub(super) async fn refuse_another_spec(&self, phase: &Phase<'_>, control: &Control) -> Result<(), Error> {
        let now = phase.describe_deployment(control).await?;
        let digest = |it: &Deployment| it.resource.as_ref().map(|resource| resource.digest.clone());
        if digest(&now) == digest(self) { Ok(()) } else { Err(Error::SpecChanged { name: self.name.clone() }) }
    }

    /// The hooks of a stage.
    pub(super) fn hooks(&self, stage: Stage) -> Hooks {
        let mut hooks = Hooks::default();
        let Some(resource) = &self.resource else { return hooks };
        for hook in resource.spec.hooks.iter().filter(|hook| hook.stage == stage) {
            let list = match hook.when {
                HookTime::Before => &mut hooks.before,
                HookTime::After => &mut hooks.after,
            };
            list.push(resource.resolve_beside(&hook.playbook));
        }
        hooks
    }

    /// Refuses hooks that cannot be run, before anything else is done.
    pub(super) fn check_hooks(&self, phase: &Phase<'_>) -> Result<(), Error> {
        let Some(resource) = self.resource.as_ref().filter(|resource| !resource.spec.hooks.is_empty()) else {
            return Ok(());
        };
        let loader = phase.launch().loader;
        for hook in &resource.spec.hooks {
            loader.load_playbook(&resource.resolve_beside(&hook.playbook))?;
        }
        Ok(())
    }

    /// Takes the lock.
    pub(super) async fn lock(&self, request: &LockRequest, control: &Control) -> Result<Lock, Error> {
        let tell = |words: &str| control.report_progress(Progress::Lock(words.to_owned()));
        let mut options = self.asked(request, &tell);
        options.run.run = Some(control.id.to_string());
        Ok(options.acquire().await?)
    }

    /// The run that holds the lock, if one does.
    pub(super) async fn holder(&self) -> Option<Holder> {
        let request = LockRequest { command: String::new(), breaks: false, abandons: false };
        self.asked(&request, &|_| ()).holder().await
    }

    /// Refuses while another run holds the lock, before anything else is looked at. The lock itself is taken later.
    ///
    /// # Errors
    /// Another run holds it, and the request does not break it.
    pub(super) async fn refuse_held(&self, request: &LockRequest) -> Result<(), Error> {
        match self.holder().await.filter(|_| !request.breaks) {
            Some(holder) => Err(lock::Error::Held(Box::new(holder)).into()),
            None => Ok(()),
        }
    }

    fn asked<'a>(&'a self, request: &LockRequest, tell: &'a (dyn Fn(&str) + Send + Sync)) -> LockOptions<'a> {
        LockOptions {
            hosts: &self.hosts,
            directory: &self.directory,
            run: holder::this_run(&self.surroundings, &request.command),
            breaks: request.breaks,
            opens: self.opens.clone(),
            tell,
        }
    }

    /// The hosts that answer, as root, to look at.
    async fn reachable(&self) -> Vec<(Arc<str>, Remote)> {
        let open = self.hosts.iter().map(|name| async { lock::open_lock_host(&self.opens, name).await.ok() });
        futures::future::join_all(open)
            .await
            .into_iter()
            .flatten()
            .map(|(lock_host, remote)| (lock_host.name, remote))
            .collect()
    }

    async fn journals(&self) -> Journals {
        journal::read_journals(&self.reachable().await, &self.directory, self.hosts.len()).await
    }

    /// The journal of the last apply, from the hosts that answer.
    pub async fn journal(&self) -> Option<Journal> {
        self.journals().await.newest()
    }

    /// As [`Deployment::journal`], before anything is planned or changed.
    ///
    /// # Errors
    /// A host is the machine that an earlier apply knew under the name of another one.
    pub async fn journal_of_same_hosts(&self) -> Result<Option<Journal>, Error> {
        let journals = self.journals().await;
        let exchanged = journal::exchanged(&journals.found, &self.hosts);
        if exchanged.is_empty() {
            return Ok(journals.newest());
        }
        let hosts = exchanged.iter().map(|(name, known)| ((*name).to_owned(), (*known).to_owned())).collect();
        Err(Error::ExchangedNames { name: self.name.clone(), hosts, directory: self.directory.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::STATE;

    /// systemd gives the state directory of a unit to its user, and deletes its own /tmp when the unit ends.
    #[test]
    fn units_of_the_package_keep_off_the_locks_and_off_what_runs_need() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/systemd");
        let mut units = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let values = |key: &str| -> Vec<&str> {
                let values = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
                values.flat_map(str::split_whitespace).collect()
            };
            if path.extension().is_none_or(|kind| kind != "service") {
                continue;
            }
            units += 1;
            let state = values("StateDirectory");
            assert!(!state.is_empty(), "{}", path.display());
            for name in &state {
                let first = name.split('/').next().unwrap();
                assert_ne!(format!("/var/lib/{first}"), STATE, "{}", path.display());
            }
            for variable in values("Environment") {
                if let Some((name, path)) = variable.split_once('=').filter(|(_, path)| path.starts_with("/var/lib/")) {
                    let is_own = state.iter().any(|state| path.starts_with(&format!("/var/lib/{state}")));
                    assert!(is_own, "{name}={path}");
                }
            }
            if values("KillMode") == ["process"] {
                assert!(values("PrivateTmp").is_empty() && values("DynamicUser").is_empty(), "{}", path.display());
                assert!(values("Environment").iter().any(|variable| variable.starts_with("TMPDIR=/var/lib/")));
            }
        }
        assert_eq!(units, 2);
    }
}
