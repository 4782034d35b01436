//! From settings, inventories and playbooks to a run: the steps before anything runs.

pub mod carried;
mod control;
mod error;
pub mod options;

use std::path::PathBuf;
use std::sync::Arc;

pub use control::Control;
pub use error::Error;

use crate::credentials::Credentials;
use crate::engine::{self, BuildContext, Job, Tags};
use crate::inventory::Inventory;
use crate::playbook::Play;
use crate::playbook::load::{Loader, OwnPrograms};
use crate::settings::{Settings, list};
use crate::template::Templar;
use crate::value::Vars;
use crate::value::origin::Diagnostic;
use crate::value::vault::Keyring;

/// What is read before any play is: variables, the inventory, the loader of plays.
pub struct Launch {
    pub inventory: Inventory,
    pub loader: Loader,
    pub limit: Option<String>,
    pub keyring: Arc<Keyring>,
    extra_vars: Arc<Vars>,
    templar: Arc<Templar>,
}

/// How a run goes about its work.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    pub check: bool,
    pub diff: bool,
    /// How many hosts to work on at once; None: as the settings say.
    pub forks: Option<usize>,
    pub verbosity: u8,
    /// Connect to the hosts of the inventory and to these addresses only. None: to any.
    pub offline: Option<Vec<String>>,
    pub flush_cache: bool,
    /// The person's working directory.
    pub directory: PathBuf,
}

impl Launch {
    /// Over an inventory that was read before.
    pub fn over(
        settings: &Settings,
        inventory: Inventory,
        limit: Option<String>,
        keyring: Arc<Keyring>,
        extra_vars: Arc<Vars>,
    ) -> Launch {
        let keyring = match &inventory.credentials {
            Some(Credentials::Secret(_)) => Arc::new(Keyring { writes_plain: true, ..(*keyring).clone() }),
            _ => keyring,
        };
        let templar = Templar::within(settings.surroundings.clone(), settings.bool(&list::ALLOW_BROKEN_CONDITIONALS));
        let known = Arc::new(BuildContext { templar: templar.clone() });
        let paths = |setting| settings.list_setting(setting).into_iter().map(PathBuf::from).collect::<Vec<_>>();
        let mut loader = Loader::new(known, keyring.clone(), extra_vars.clone(), paths(&list::ROLES_PATH));
        loader.duplicates = inventory.duplicates.clone();
        loader.surroundings = settings.surroundings.clone();
        loader.play_defaults = options::play_defaults(settings);
        loader.collections = paths(&list::COLLECTIONS_PATH);
        loader.library = paths(&list::LIBRARY);
        loader.words = OwnPrograms { filters: paths(&list::FILTER_PLUGINS), lookups: paths(&list::LOOKUP_PLUGINS) };
        Launch { inventory, loader, limit, keyring, extra_vars, templar }
    }

    /// The job; how hosts are reached is to be said in its `defaults`.
    ///
    /// # Errors
    /// A setting makes no sense.
    pub fn job(
        self,
        playbooks: Vec<Vec<Arc<Play>>>,
        tags: Tags,
        manner: &RunOptions,
        settings: &Settings,
    ) -> Result<Job, Diagnostic> {
        Ok(Job {
            playbooks,
            inventory: self.inventory,
            limit: self.limit,
            tags,
            check: manner.check,
            diff: manner.diff || settings.bool(&list::DIFF_ALWAYS),
            forks: manner.forks.unwrap_or_else(|| settings.count(&list::FORKS)),
            verbosity: manner.verbosity,
            extra_vars: self.extra_vars,
            defaults: engine::Defaults::default(),
            options: engine::Options {
                flush_cache: manner.flush_cache,
                offline: manner.offline.clone(),
                ..options::engine(settings)?
            },
            keyring: self.keyring,
            templar: self.templar,
            loader: Arc::new(self.loader),
            caches: Arc::default(),
            prompted: Vars::new(),
            directory: manner.directory.clone(),
            hold: None,
        })
    }
}
