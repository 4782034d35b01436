//! The custom resources, group `windlass.dev/v1alpha1`: their types, the schema that follows from these, and documents
//! read from files and checked against it. Knows no hosts' state and no variables.

#![expect(unreachable_pub, reason = "the derive macros generate public items")]

mod check;
mod components;
mod control_plane;
mod deployment;
mod document;
mod etcd;
mod foreign;
mod keys;
mod load_balancer;
mod members;
pub mod names;
mod place;
mod policy;
mod reference;
mod run;
mod schema;
mod snapshots;
pub mod status;
mod stored;
mod table;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::core::Rule;

use crate::value::ProcessEnvironment;
use crate::value::origin::{Diagnostic, Source};
use crate::value::yaml::Node;

pub use components::{Component, Components};
pub use control_plane::ControlPlane;
pub use deployment::{
    Addon, AddonState, Architecture, Bastion, Certificates, CustomAuthority, Hook, HookTime, Host, HostCluster,
    HostKeys, KarmadaDeployment, KarmadaDeploymentSpec, Ssh, Stage,
};
pub use document::{is_resource, of_source};
pub use etcd::{Etcd, ExternalEtcd, ManagedEtcd};
pub use keys::{Sibling, keys_owner, record_path, siblings, siblings_by, siblings_in};
pub use load_balancer::LoadBalancer;
pub use members::{Agent, KubeconfigOnHost, Member, MemberAddon, SyncMode, Taint, TaintEffect, Workloads};
pub use policy::{ApplyPolicy, DeletionPolicy, MaintenanceWindow, Weekday, digest_of_spec};
pub use reference::{FileReference, Reference, SecretKey};
pub use run::{AgreedPlan, Run, RunBackup, RunOperation, RunSpec, RunStatus, SUCCEEDED, WorkerStatus};
pub use schema::definitions;
pub use snapshots::{EtcdBackup, EtcdBackupSpec, EtcdBackupStatus, S3Bucket, SshDirectory};
pub use status::{Condition, KarmadaDeploymentStatus};
pub use stored::{
    AUTHORITY_KEY, KUBECONFIG, PASSWORD, SSH_KEY, STORED, STORED_SUFFIX, is_stored_name, load_stored, read_stored_text,
    refuse_stored,
};
pub use table::{ComponentEntry, RunsOn, TABLE, TableLayoutError, check_table_layout};
pub use trust::{ForeignResourceLimits, Trust};

/// The group of all kinds.
pub const GROUP: &str = "windlass.dev";

/// The group and its version, as documents name it.
pub const API_VERSION: &str = "windlass.dev/v1alpha1";

/// A document of one of our kinds that passed every rule, defaults filled in.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "few are read, and each is converted at once")]
pub enum Resource {
    KarmadaDeployment(Deployment),
    EtcdBackup(NamedResource<EtcdBackupSpec>),
    Run(NamedResource<RunSpec>),
}

/// A `KarmadaDeployment`.
pub type Deployment = NamedResource<KarmadaDeploymentSpec>;

/// A resource: whose it is, where it came from, and what it asks for.
#[derive(Debug, Clone)]
pub struct NamedResource<Spec> {
    pub name: String,
    pub namespace: Option<String>,
    /// As the API server gave it; None for a document of a file.
    pub uid: Option<String>,
    /// The file, absolute if it was given so; of one from an API server what was asked for (`kube:...`).
    pub path: PathBuf,
    /// Whose text it is.
    pub trust: Trust,
    /// SHA-256 over the spec with its defaults, in hex: two documents with the same ask for the same.
    pub digest: String,
    pub spec: Spec,
    surroundings: Arc<ProcessEnvironment>,
    /// The document, for messages about it.
    pub node: Arc<Node>,
}

/// Reads a file of one or several documents, all of them of our kinds.
///
/// # Errors
/// All that is wrong with it, each with its place.
pub fn load_resources(path: &Path, allowed: &ForeignResourceLimits) -> Result<Vec<Resource>, Vec<Diagnostic>> {
    stored::refuse_stored(path)?;
    let text = crate::value::read::read_text(path)
        .map_err(|error| vec![Diagnostic::new(format!("cannot read {}: {error}", path.display()), None)])?;
    let (resources, warnings) = of_source(&Arc::new(Source::new(path, text)), Trust::Own, allowed)?;
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(resources)
}

impl<Spec> NamedResource<Spec> {
    /// Where its relative paths begin: at its file, or at the working directory for one of an API server.
    pub fn directory(&self) -> PathBuf {
        match self.path.parent().filter(|_| self.path.is_file()) {
            Some(directory) => directory.to_owned(),
            None => self.surroundings.directory.clone(),
        }
    }

    /// What its paths mean.
    pub fn places(&self) -> Places {
        Places { directory: self.directory(), surroundings: self.surroundings.clone() }
    }

    /// A path in the document: absolute, below the home directory, or relative to the document's directory.
    pub fn resolve_beside(&self, given: &str) -> PathBuf {
        self.places().resolve_given(given)
    }
}

/// Flags of a program, by name.
fn flags() -> Rule {
    Rule::new("self.all(name, name.matches('^[0-9A-Za-z][0-9A-Za-z_.-]*$'))").message(
        "the name of a flag must consist of letters, digits, dashes, dots and underscores, without leading dashes",
    )
}

/// Names and addresses in a certificate.
fn subject_names() -> Rule {
    Rule::new("self.all(name, name.matches('^[0-9A-Za-z*:][0-9A-Za-z_.:-]*([.]?)$'))")
        .message("a name in a certificate must be a DNS name or an IP address")
}

/// Where the paths of a document begin.
#[derive(Debug, Clone)]
pub struct Places {
    pub directory: PathBuf,
    pub surroundings: Arc<ProcessEnvironment>,
}

impl Places {
    /// A path: absolute, below the home directory, or else from the document's own directory.
    pub fn resolve_given(&self, given: &str) -> PathBuf {
        self.directory.join(self.surroundings.expand_home(given))
    }
}

impl Deployment {
    /// Warnings, each with its location.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        deployment::warnings(self)
    }
}

#[cfg(test)]
mod tests;
