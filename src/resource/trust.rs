//! Whose text a document is, and what the configuration allows to documents that are somebody else's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::value::ProcessEnvironment;
use crate::value::yaml::Node;

/// Whose text a document is. Decided once, where the document is loaded, and kept with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// A file that the person who runs windlass wrote or chose: it may use everything that person may use.
    #[default]
    Own,
    /// It came through an API: whoever may write there wrote it, and it may use what [`ForeignResourceLimits`] lists.
    Foreign,
}

/// What the configuration (`resource_*` settings) allows to documents that are somebody else's. The default allows
/// nothing.
#[derive(Debug, Clone, Default)]
pub struct ForeignResourceLimits {
    /// Foreign: every document is somebody else's, wherever it lies. Whoever stores documents of others sets it.
    pub documents: Trust,
    /// Addresses and networks that such a document may have windlass connect to. None: all but the protected ones.
    pub networks: Option<Vec<String>>,
    /// Jump hosts: `[USER@]ADDRESS[:PORT]`.
    pub bastions: Vec<String>,
    pub bundles: BTreeMap<String, PathBuf>,
    /// Their content may end up with whoever wrote the document.
    pub files: BTreeMap<String, PathBuf>,
    /// Playbooks.
    pub hooks: BTreeMap<String, PathBuf>,
    /// What the paths and the environment variables of a document's own are looked up in.
    pub surroundings: Arc<ProcessEnvironment>,
}

impl ForeignResourceLimits {
    /// Whose a document is: somebody else's if its source is, if the configuration says so of all, or if it has what
    /// only an API server writes.
    pub(super) fn trust(&self, source: Trust, document: &Node) -> Trust {
        match source == Trust::Foreign || self.documents == Trust::Foreign || is_of_api(document) {
            true => Trust::Foreign,
            false => Trust::Own,
        }
    }
}

/// Whether a document has metadata that an API server gave it, as after `kubectl get -o yaml`.
pub(super) fn is_of_api(document: &Node) -> bool {
    let metadata = document.get("metadata");
    metadata.is_some_and(|metadata| {
        ["uid", "resourceVersion", "managedFields"].iter().any(|key| metadata.get(key).is_some())
    })
}
