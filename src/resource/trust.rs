//! Whether a document is the user's own or foreign, and what the configuration allows to foreign documents.

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
    /// It came from an API, where other users may have written it. It may use only what [`ForeignResourceLimits`] lists.
    Foreign,
}

/// What the configuration (`resource_*` settings) allows to foreign documents. The default allows
/// nothing.
#[derive(Debug, Clone, Default)]
pub struct ForeignResourceLimits {
    /// Foreign: every document is untrusted, wherever it is. A program that stores documents of others sets it.
    pub documents: Trust,
    /// Addresses and networks that windlass may connect to for such a document. None: all except the protected ones.
    pub networks: Option<Vec<String>>,
    /// Jump hosts: `[USER@]ADDRESS[:PORT]`.
    pub bastions: Vec<String>,
    pub bundles: BTreeMap<String, PathBuf>,
    /// The author of the document may get their content.
    pub files: BTreeMap<String, PathBuf>,
    /// Playbooks.
    pub hooks: BTreeMap<String, PathBuf>,
    /// The namespace of documents that name none.
    pub namespace: Option<String>,
    /// What the paths and the environment variables of a document's own are looked up in.
    pub surroundings: Arc<ProcessEnvironment>,
}

impl ForeignResourceLimits {
    /// Whether a document is foreign: if its source is, if the configuration says so for all documents, or if it has what
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
