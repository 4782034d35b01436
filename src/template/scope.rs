//! The variables that a template sees: layers of them, weakest first, looked up lazily.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use crate::value::{HashBehaviour, ProcessEnvironment, Value, Vars};

/// Layers of variables. Cheap to clone and to extend; a later layer wins.
#[derive(Clone, Default, Debug)]
pub struct Scope {
    layers: Vec<Layer>,
    /// Where lookups and `include` find files: role, then play directories, first match wins.
    pub search: Arc<Vec<PathBuf>>,
    /// The controller's side of the template: its working directory for relative paths.
    pub base: Arc<PathBuf>,
    pub keyring: Arc<crate::value::vault::Keyring>,
    /// What becomes of duplicate keys in files that modules read.
    pub duplicates: crate::value::yaml::Duplicates,
    /// The environment of the user who runs windlass, from the [`Templar`](super::Templar).
    pub surroundings: Arc<ProcessEnvironment>,
    /// What lookups may ask of the run around; None: there is none yet.
    pub outside: Option<Arc<dyn LookupHost>>,
    /// Lookups and filters start no program, as the [`Templar`](super::Templar) says.
    pub(super) starts_nothing: bool,
    /// The engine of the run, with the programs of its project.
    pub(super) engine: &'static Engine,
}

#[derive(Clone, Debug)]
pub struct Layer {
    vars: Arc<Vars>,
    /// Whether all of it is written in files of the controller or on the command line, so that it cannot come from a host.
    own: bool,
}

/// What lookups ask of the floors above.
pub trait LookupHost: std::fmt::Debug + Send + Sync {
    /// The names of the hosts that patterns name, in the order of the inventory; or what is wrong with a pattern.
    fn hosts(&self, patterns: &[String]) -> Result<Vec<String>, String>;
    /// A setting by Ansible's name, such as `DEFAULT_FORKS`.
    fn setting(&self, name: &str) -> Option<Value>;
    /// What a web server answers, as this machine sees it; or why there is nothing.
    fn fetch(&self, page: &WebPage) -> Result<String, String>;
}

/// A page of a web server.
#[derive(Debug, Clone)]
pub struct WebPage {
    /// `http://` or `https://`
    pub address: String,
    /// The User-Agent header.
    pub agent: String,
    pub headers: Vec<(String, String)>,
    /// User and password; whether they are sent without a request from the server.
    pub login: Option<(String, String)>,
    pub login_at_once: bool,
    /// For each server that is asked.
    pub limit: Duration,
    /// Whether the server's certificate is checked, and against which file instead of those that this machine trusts.
    pub verify: bool,
    pub authorities: Option<PathBuf>,
    /// Which redirections: `all`, `safe` or `urllib2`, `none`.
    pub follow: String,
    /// Whether the proxies of this machine's environment are used, and the logins of its `~/.netrc`.
    pub proxies: bool,
    pub netrc: bool,
    /// Headers, lower case, that are sent only to the first server.
    pub unredirected: Vec<String>,
    /// The socket of this machine behind which the server is.
    pub socket: Option<PathBuf>,
    pub surroundings: Arc<ProcessEnvironment>,
}

impl Scope {
    /// Adds a layer that wins over those already there.
    pub fn push(&mut self, layer: Arc<Vars>) {
        self.add(layer, false);
    }

    /// As [`Scope::push`], for values from local files or the command line.
    pub fn push_own(&mut self, layer: Arc<Vars>) {
        self.add(layer, true);
    }

    fn add(&mut self, vars: Arc<Vars>, own: bool) {
        if !vars.is_empty() {
            self.layers.push(Layer { vars, own });
        }
    }

    /// Adds a layer that all those already there win over.
    pub fn lay_below(&mut self, layer: Vars) {
        self.layers.insert(0, Layer { vars: Arc::new(layer), own: false });
    }

    /// This scope and one more layer.
    pub fn with_layer(&self, layer: Vars) -> Scope {
        let mut scope = self.clone();
        scope.push(Arc::new(layer));
        scope
    }

    /// The layers, weakest first.
    pub fn into_layers(self) -> Vec<Layer> {
        self.layers
    }

    /// Adds a layer of another scope, as it was there.
    pub fn push_layer(&mut self, layer: Layer) {
        self.layers.push(layer);
    }

    /// One layer in place of all, in which mappings of one name are merged.
    pub fn merged(mut self) -> Scope {
        let (mut all, mut foreign) = (Vars::new(), HashSet::new());
        for layer in std::mem::take(&mut self.layers) {
            // A merged mapping is our own only if all of its parts are.
            if !layer.own {
                foreign.extend(layer.vars.keys().cloned());
            }
            let pairs = layer.vars.iter().map(|(name, value)| (name.clone(), value.clone()));
            HashBehaviour::Merge.combine(&mut all, pairs);
        }
        let (others, own): (Vars, Vars) = all.into_iter().partition(|(name, _)| foreign.contains(name));
        self.push(Arc::new(others));
        self.push_own(Arc::new(own));
        self
    }

    /// The raw value, templates unrendered.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.layers.iter().rev().find_map(|layer| layer.vars.get(name))
    }

    /// As [`Scope::get`]; None also if a host may have said it.
    pub fn own(&self, name: &str) -> Option<&Value> {
        let found = self.layers.iter().rev().find_map(|layer| layer.vars.get(name).map(|value| (layer.own, value)));
        found.and_then(|(own, value)| own.then_some(value))
    }

    /// All names, each once.
    pub fn variable_names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = self.layers.iter().flat_map(|layer| layer.vars.keys().cloned()).collect();
        names.sort();
        names.dedup();
        names
    }
}
