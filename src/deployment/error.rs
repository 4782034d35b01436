//! Why a request on a deployment failed.

use std::path::PathBuf;

use super::backups::BackupError;
use super::kubeconfig::KubeconfigError;
use super::lock;
use crate::launch;
use crate::resource::TableLayoutError;
use crate::template;
use crate::value::origin::Diagnostic;

/// How many changed things are named.
const SHOWN: usize = 20;

/// Why a request on a deployment was refused, or could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Run(#[from] launch::Error),
    #[error(transparent)]
    Template(#[from] template::Error),
    #[error("no deployment given")]
    NoSource,
    #[error("the inventory has no deployment: no host in the groups etcd and karmada_control_plane")]
    NoHosts,
    #[error("the inventory has no host in the group etcd: this deployment's etcd is managed elsewhere")]
    NoEtcdHosts,
    #[error("cannot run windlass {command}: a name has letters, digits and -._:[]@ only")]
    InvalidName { command: String },
    #[error("{name} is paused (spec.paused in {}); windlass changes nothing", path.display())]
    Paused { name: String, path: PathBuf },
    /// Each host with the name under which its machine was known.
    #[error("{}", exchanged(name, hosts, directory))]
    ExchangedNames { name: String, hosts: Vec<(String, String)>, directory: String },
    #[error(
        "cannot use {option} with a resource from an API: windlass logs in to its hosts only with the Secrets that spec.ssh \
         of the resource names"
    )]
    OwnLogin { option: &'static str },
    #[error(
        "the keys in {} belong to the deployment {owner}{}; windlass changed nothing\nhint: set credentials_dir to another \
         directory; if they are the keys of this deployment, set karmada_deployment to {owner}, or correct the name in {}",
        directory.display(), name.as_ref().map_or_else(String::new, |name| format!(", and not to {name}")),
        crate::resource::record_path(directory).display()
    )]
    KeysOfOthers { directory: PathBuf, owner: String, name: Option<String> },
    #[error("{0}")]
    KeysOwner(String),
    #[error(transparent)]
    TableLayout(#[from] TableLayoutError),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    #[error(transparent)]
    Lock(#[from] lock::Error),
    #[error("{}", moved(since, what))]
    Moved { since: &'static str, what: Vec<String> },
    #[error(
        "the spec of {name} was changed during the apply, so windlass did not begin the next stage\nhint: make a new plan: an apply of it finishes what this one has begun"
    )]
    SpecChanged { name: String },
    #[error("cannot write the journal to a majority of the hosts: {0}")]
    Journal(String),
    #[error("{0}")]
    Observation(String),
    #[error("the {operation} by {who} {fate}; windlass changed nothing\nhint: {resume}")]
    Unfinished { operation: String, who: String, fate: &'static str, resume: String },
    #[error("cannot carry out {operation}: its dry run failed; windlass changed nothing")]
    Refused { operation: &'static str },
    #[error(
        "windlass removed no member, because its plan did not show the removal of {}\nhint: run apply again: its plan shows it now",
        members.join(", ")
    )]
    UnplannedRemovals { members: Vec<String> },
    #[error(
        "windlass stopped, because the inventory now names other hosts for {name} than those that windlass showed and locked\n\
         hint: run the command again; it shows the changes on these hosts"
    )]
    OtherHosts { name: String },
    #[error("--limit {limit} names no host of the inventory")]
    NoHostWithin { limit: String },
    #[error("{member} is still a member: remove its lines before you remove it by force")]
    StillMember { member: String },
    #[error("{member} cannot be removed by force: windlass knows no such member of the control plane")]
    NoSuchMember { member: String },
    #[error("the deployment is named {name}, not {typed}; windlass {done} nothing")]
    WrongName { name: String, typed: String, done: &'static str },
}

impl From<Diagnostic> for Error {
    fn from(complaint: Diagnostic) -> Self {
        Error::Run(complaint.into())
    }
}

impl From<Vec<Diagnostic>> for Error {
    fn from(complaints: Vec<Diagnostic>) -> Self {
        Error::Run(complaints.into())
    }
}

fn exchanged(name: &str, hosts: &[(String, String)], directory: &str) -> String {
    let known = |(name, known): &(String, String)| format!("{name} is the machine that was known as {known}");
    let list = hosts.iter().map(known).collect::<Vec<_>>().join(", ");
    format!(
        "the inventory swaps the names of hosts of {name}: {list}; windlass changed nothing\n\
         hint: correct their addresses in the inventory; if you exchanged the names on purpose, remove {directory}/journal \
         from these hosts"
    )
}

fn moved(since: &str, what: &[String]) -> String {
    let mut list = what[..what.len().min(SHOWN)].join("\n  ");
    if what.len() > SHOWN {
        list.push_str(&format!("\n  and {} more", what.len() - SHOWN));
    }
    format!(
        "windlass changed nothing, because the hosts or the inventory changed since {since}:\n  {list}\nhint: make a new plan"
    )
}
