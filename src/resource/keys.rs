//! Which directory has the certificates and keys of a deployment, and whose they are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::{Deployment, GROUP, Trust, is_resource};
use crate::value::origin::{Diagnostic, Source};
use crate::value::yaml::{self, Node, NodeKind};

/// The file beside the keys of an authority that says whose they are. The role pki writes it.
const RECORD: &str = ".deployment.json";

/// The directory in which deployments have a directory each, because another one has the files above it.
const EACH: &str = "_deployments";

/// Larger files are no documents of ours.
const LARGEST: u64 = 1 << 20;

/// Whose the keys of an authority are.
#[derive(Debug, Deserialize)]
struct KeysRecord {
    name: String,
}

/// The name of the deployment to which the keys in an authority's directory belong, as the record in it says. None: there is none.
///
/// # Errors
/// One line that says why it cannot be read.
pub fn keys_owner(authority: &Path) -> Result<Option<String>, String> {
    let path = record_path(authority);
    match std::fs::read(&path) {
        Ok(text) => match serde_json::from_slice::<KeysRecord>(&text) {
            Ok(record) => Ok(Some(record.name)),
            Err(error) => Err(format!("{} does not say whose the keys beside it are: {error}", path.display())),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        // What is in the place of the directory shows later.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(None),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

/// The record of an authority's directory.
pub fn record_path(authority: &Path) -> PathBuf {
    authority.join(RECORD)
}

/// A deployment that a file of a directory describes, well written or not.
#[derive(Debug, Clone)]
pub struct Sibling {
    file: PathBuf,
    name: String,
    /// None: the file cannot be understood.
    authorities: Option<Vec<String>>,
    /// Where its hosts are.
    hosts: BTreeSet<String>,
}

impl Deployment {
    /// The name of the etcd cluster that windlass manages for it.
    pub fn etcd_cluster(&self) -> String {
        etcd_cluster(&self.spec.instance)
    }

    /// The directory of its certificates and keys. Those of a file are in `credentials` beside it, or below it in a directory of the
    /// deployment's own if another deployment uses the same names there. Foreign documents have one each.
    ///
    /// # Errors
    /// Two files describe different deployments of one name; or several could have the keys that are there, and nothing says which.
    pub fn credentials(&self) -> Result<PathBuf, Diagnostic> {
        match self.trust {
            Trust::Own => self.credentials_among(&siblings(&self.directory())),
            Trust::Foreign => self.credentials_among(&[]),
        }
    }

    /// As [`Deployment::credentials`], with the deployments that all files of its directory describe.
    ///
    /// # Errors
    /// As there.
    pub fn credentials_among(&self, described: &[Sibling]) -> Result<PathBuf, Diagnostic> {
        let all = self.directory().join("credentials");
        if self.trust == Trust::Foreign {
            return Ok(all.join("_api").join(self.namespace.as_deref().unwrap_or("default")).join(&self.name));
        }
        let mut others = described.iter().filter(|other| other.file.file_name() != self.path.file_name());
        let hosts = hosts_of(&self.node);
        let is_namesake =
            |other: &&Sibling| other.name == self.name && !other.hosts.is_empty() && other.hosts.is_disjoint(&hosts);
        if let Some(other) = others.clone().find(is_namesake) {
            let message = format!(
                "{} describes another deployment of the name {}, and both would use the same keys in {}",
                other.file.display(),
                self.name,
                all.display()
            );
            return Err(self.complaint(message).hint("give each deployment a name of its own (metadata.name)"));
        }
        let own = all.join(EACH).join(&self.name);
        if own.is_dir() {
            return Ok(own);
        }
        let authorities = self.authorities().map(|name| all.join(name));
        let owners = authorities.iter().filter_map(|authority| keys_owner(authority).transpose());
        let owners = owners.collect::<Result<Vec<_>, _>>().map_err(|why| self.complaint(why))?;
        if owners.contains(&self.name) {
            return Ok(all);
        }
        if !owners.is_empty() {
            return Ok(own);
        }
        let shares = |other: &&Sibling| {
            let known = other.authorities.as_ref();
            other.name != self.name
                && known.is_none_or(|known| self.authorities().iter().any(|name| known.contains(name)))
        };
        let Some(other) = others.find(shares) else { return Ok(all) };
        match authorities.iter().find(|authority| is_used(authority)) {
            None => Ok(own),
            Some(authority) => Err(self.unknown_owner(&other.file, authority)),
        }
    }

    fn unknown_owner(&self, other: &Path, authority: &Path) -> Diagnostic {
        let message = format!(
            "{} has the keys of a deployment, and nothing says whose they are: {} would use them as well",
            authority.display(),
            other.display()
        );
        let hint = format!(
            "write the name of the deployment to which they belong into {}, as \
             {{\"kind\": \"KarmadaDeployment\", \"name\": \"{}\"}}; the other one then gets keys of its own",
            record_path(authority).display(),
            self.name
        );
        self.complaint(message).hint(hint)
    }

    fn complaint(&self, message: String) -> Diagnostic {
        Diagnostic::new(message, Some(&self.node.origin))
    }

    /// The directories of its authorities in that of its credentials.
    fn authorities(&self) -> [String; 2] {
        [self.spec.instance.clone(), self.etcd_cluster()]
    }
}

/// The deployments that the files of a directory describe, by file.
pub fn siblings(directory: &Path) -> Vec<Sibling> {
    siblings_by(directory, siblings_in)
}

/// As [`siblings`], with something else that reads the files, such as from memory.
pub fn siblings_by(directory: &Path, read: impl Fn(&Path) -> Vec<Sibling>) -> Vec<Sibling> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<Sibling> = entries.flat_map(|entry| read(&entry.path())).collect();
    found.sort_by(|a, b| a.file.cmp(&b.file));
    found
}

/// The name of the etcd cluster of an instance: two instances in one directory share no authority.
fn etcd_cluster(instance: &str) -> String {
    if instance == "karmada" { "etcd".to_owned() } else { format!("{instance}-etcd") }
}

/// Whether there is something in the directory of an authority. One that cannot be read has something.
fn is_used(authority: &Path) -> bool {
    match std::fs::read_dir(authority) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// The deployments that a file describes. None if it is no document.
pub fn siblings_in(path: &Path) -> Vec<Sibling> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_document = matches!(extension, None | Some("yaml" | "yml" | "json"))
        && path.metadata().is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
    let Some(text) = is_document.then(|| std::fs::read_to_string(path).ok()).flatten() else { return Vec::new() };
    if !text.contains(GROUP) || !text.contains("KarmadaDeployment") {
        return Vec::new();
    }
    let Ok(nodes) = yaml::parse_with(&Arc::new(Source::new(path, text)), &mut Vec::new()) else {
        let (file, name, hosts) = (path.to_owned(), String::new(), BTreeSet::new());
        return vec![Sibling { file, name, authorities: None, hosts }];
    };
    let is_deployment =
        |node: &&Node| is_resource(node) && node.get("kind").and_then(Node::as_str) == Some("KarmadaDeployment");
    nodes.iter().filter(is_deployment).map(|node| sibling(path, node)).collect()
}

fn sibling(path: &Path, node: &Node) -> Sibling {
    let text = |part: &str, key: &str| node.get(part).and_then(|part| part.get(key)).and_then(Node::as_str);
    let instance = text("spec", "instance").unwrap_or("karmada");
    Sibling {
        file: path.to_owned(),
        name: text("metadata", "name").unwrap_or_default().to_owned(),
        authorities: Some(vec![instance.to_owned(), etcd_cluster(instance)]),
        hosts: hosts_of(node),
    }
}

/// Where the hosts of a document are: address and port.
fn hosts_of(document: &Node) -> BTreeSet<String> {
    let hosts = match document.get("spec").and_then(|spec| spec.get("hosts")).map(|hosts| &hosts.kind) {
        Some(NodeKind::Seq(hosts)) => hosts.as_slice(),
        _ => &[],
    };
    let place = |host: &Node| {
        let address = host.get("address").or_else(|| host.get("name")).and_then(Node::as_str)?;
        let port = match host.get("port").map(|port| &port.kind) {
            Some(NodeKind::Int(port)) => *port,
            _ => 22,
        };
        Some(format!("{address} {port}"))
    };
    hosts.iter().filter_map(place).collect()
}

#[cfg(test)]
mod tests;
