//! Custom resources as an inventory: the hosts of a `KarmadaDeployment` in the groups that the roles know, its fields as
//! their variables, its members as hosts. Texts of a resource are never templates, whatever they contain.

mod connection;
mod members;
mod secrets;
mod variables;

use std::path::Path;
use std::sync::Arc;

use super::Candidate;
use crate::connection::Confinement;
use crate::credentials::{Credentials, HandedSecrets, SecretStore};
use crate::inventory::Inventory;
use crate::kubernetes::{Cluster, LIVE, LiveName};
use crate::resource::names::{group, variable};
use crate::resource::{self, Component, ComponentEntry, Deployment, Places, Resource, RunsOn, TABLE, Trust};
use crate::value::origin::{Diagnostic, Source};
use crate::value::{Value, Vars, mapping};

pub use secrets::read_referenced_secret;
use secrets::{SecretSource, Secrets};

/// A file with documents of our kinds.
pub(super) fn accepts_resource(candidate: &Candidate) -> bool {
    let named = |extension: &str| matches!(extension, "yml" | "yaml" | "json");
    let extension = candidate.path.extension().map(|extension| extension.to_string_lossy().into_owned());
    // Looked for before anything is parsed, as other inventories are large.
    !candidate.is_list()
        && extension.is_none_or(|extension| named(&extension))
        && candidate.content_text().is_ok_and(|text| {
            text.contains(resource::GROUP)
                && crate::value::yaml::parse_with(&candidate.source(text), &mut Vec::new())
                    .is_ok_and(|nodes| nodes.iter().any(resource::is_resource))
        })
}

pub(super) fn read_deployment(candidate: &Candidate, inventory: &mut Inventory) -> Result<(), Vec<Diagnostic>> {
    let (resources, warnings) =
        resource::of_source(&candidate.source(candidate.content_text()?), Trust::Own, &inventory.allowed)?;
    inventory.warnings.extend(warnings.iter().map(ToString::to_string));
    for resource in resources {
        if let Resource::KarmadaDeployment(deployment) = resource {
            let around = inventory.allowed.surroundings.clone();
            let cluster = SecretSource::Cluster(Cluster { context: None, around });
            put(inventory, deployment, Some(&candidate.path), cluster, None)?;
        }
    }
    Ok(())
}

/// Reads a `KarmadaDeployment` from the cluster of the user's kubeconfig. `asked` is the text after `kube:`.
pub(super) fn read_live(inventory: &mut Inventory, asked: &str) -> Result<(), Vec<Diagnostic>> {
    let Some(live) = LiveName::parse(asked) else {
        let message = format!("{LIVE}{asked} is not the name of a KarmadaDeployment");
        return Err(Diagnostic::new(message, None)
            .hint("write kube:NAMESPACE/NAME or kube:CONTEXT/NAMESPACE/NAME")
            .into());
    };
    let (namespace, name) = (&*live.namespace, &*live.name);
    let around = inventory.allowed.surroundings.clone();
    let cluster = Cluster { context: live.context.clone(), around };
    let text = cluster
        .deployment(namespace, name)
        .map_err(|why| Diagnostic::new(format!("cannot read {LIVE}{asked}: {why}"), None))?;
    let source = std::sync::Arc::new(Source::new(format!("{LIVE}{asked}"), text));
    let (resources, _) = resource::of_source(&source, Trust::Foreign, &inventory.allowed)?;
    for resource in resources {
        if let Resource::KarmadaDeployment(deployment) = resource {
            if (deployment.namespace.as_deref(), deployment.name.as_str()) != (Some(namespace), name) {
                let message = format!("{LIVE}{asked}: the API server returned a different object");
                return Err(Diagnostic::new(message, Some(&deployment.node.origin)).into());
            }
            let store = SecretStore::of_deployment(cluster.clone(), asked, &live, deployment.credentials()?);
            let credentials = Credentials::Secret(Arc::new(store));
            put(inventory, deployment, None, SecretSource::Cluster(cluster.clone()), Some(credentials))?;
        }
    }
    Ok(())
}

/// Reads a document that a server stores. Its Secrets are what the server hands over, and no cluster's.
pub(super) fn read_stored(inventory: &mut Inventory, file: &Path) -> Result<(), Vec<Diagnostic>> {
    let deployment = resource::load_stored(file, &inventory.allowed)?;
    let handed = HandedSecrets::handed_to_process(&inventory.allowed.surroundings)
        .map_err(|why| Diagnostic::new(format!("cannot read the secrets for {}: {why}", file.display()), None))?;
    put_stored(inventory, file, deployment, handed)?;
    Ok(())
}

fn put_stored(
    inventory: &mut Inventory,
    file: &Path,
    deployment: Deployment,
    handed: Arc<HandedSecrets>,
) -> Result<(), Diagnostic> {
    let directory = file.parent().unwrap_or(Path::new("/")).join("credentials").join(&deployment.name);
    inventory.handed_generation = handed.generation().to_owned();
    put(inventory, deployment, None, SecretSource::Handed(handed), Some(Credentials::Directory(directory)))
}

/// Puts a deployment's hosts, groups and variables into the inventory. `file` is where it was read, if it was a file;
/// `source` has the Secrets that it refers to; `credentials` are its own, if they are not beside its file.
fn put(
    inventory: &mut Inventory,
    deployment: Deployment,
    file: Option<&Path>,
    source: SecretSource,
    credentials: Option<Credentials>,
) -> Result<(), Diagnostic> {
    if let Some(other) = inventory.deployments.first() {
        let message = format!(
            "an inventory can have one KarmadaDeployment: this is {}, and the inventory already has {} of {}",
            deployment.name,
            other.name,
            other.path.display()
        );
        let hint = "put each into its own file, and run windlass once for each";
        return Err(Diagnostic::new(message, Some(&deployment.node.origin)).hint(hint));
    }
    if deployment.trust == Trust::Foreign {
        let confined = Confinement::new(inventory.allowed.networks.as_deref());
        let wrong =
            |text| Diagnostic::new(format!("the setting resource_networks has no address or network {text:?}"), None);
        inventory.confined = Some(Arc::new(confined.map_err(wrong)?));
    }
    inventory.warnings.extend(deployment.warnings().iter().map(ToString::to_string));
    let places = deployment.places();
    let secrets = Secrets::of_resource(&deployment, source, &inventory.keyring);
    let usual = deployment.directory().join("credentials");
    let credentials = match credentials {
        Some(credentials) => credentials,
        None => Credentials::Directory(deployment.credentials()?),
    };
    let whole = inventory.put_group(group::DEPLOYMENT);
    whole.priority = 0;
    whole.vars = variables::deployment_vars(&deployment, &places, &secrets);
    // The roles know the usual one.
    if !matches!(&credentials, Credentials::Directory(directory) if *directory == usual) {
        whole.vars.insert(variable::CREDENTIALS_DIR.into(), credentials.value());
    }
    // Nobody else has its directory.
    if deployment.trust == Trust::Foreign {
        whole.vars.insert(variable::KEYS_OWNER.into(), Value::from(""));
    }
    inventory.credentials = Some(credentials);
    put_hosts(inventory, &deployment, &places, file);
    put_groups(inventory, &deployment);
    members::put_members(inventory, &deployment, &secrets, file);
    inventory.deployments.push(deployment);
    Ok(())
}

fn put_hosts(inventory: &mut Inventory, deployment: &Deployment, places: &Places, file: Option<&Path>) {
    let spec = &deployment.spec;
    for host in &spec.hosts {
        inventory.put_host(group::DEPLOYMENT, &host.name, None, file);
        let mut vars = connection::host_connection_vars(host, spec.ssh.as_ref(), places);
        if let Some(address) = &host.private_address {
            vars.insert(variable::KARMADA_ADDRESS.into(), Value::from(address.as_str()));
            vars.insert(variable::ETCD_ADDRESS.into(), Value::from(address.as_str()));
        }
        if let Some(architecture) = host.architecture {
            let known = match architecture {
                resource::Architecture::Amd64 => "x86_64",
                resource::Architecture::Arm64 => "aarch64",
            };
            vars.insert(variable::PREFLIGHT_ARCHITECTURES.into(), Value::from(vec![Value::from(known)]));
        }
        if !host.labels.is_empty() {
            let labels = host.labels.iter().map(|(key, value)| (key, Value::from(value.as_str())));
            vars.insert(variable::HOST_LABELS.into(), mapping(labels));
        }
        extend(inventory, &host.name, vars);
    }
}

/// The groups that the roles know. A host with `reset` is in the group of the control plane and in no component's, which makes
/// the roles remove what is installed there.
fn put_groups(inventory: &mut Inventory, deployment: &Deployment) {
    let spec = &deployment.spec;
    let reset: Vec<&str> = spec.hosts.iter().filter(|host| host.reset).map(|host| host.name.as_str()).collect();
    let named = |names: &[String]| names.iter().map(String::clone).collect::<Vec<_>>();
    let stay = |names: &[String]| named(names).into_iter().filter(|name| !reset.contains(&name.as_str())).collect();
    put_group(inventory, group::ETCD, spec.etcd.managed.as_ref().map_or(Vec::new(), |etcd| named(&etcd.hosts)));
    let mut control_plane = named(&spec.control_plane.hosts);
    control_plane.extend(reset.iter().map(|name| (*name).to_owned()));
    put_group(inventory, group::CONTROL_PLANE, control_plane);
    let components = spec.components.clone().unwrap_or_default();
    let placed = |entry: &ComponentEntry| -> Vec<String> {
        let own = components.get(entry).and_then(|component| component.hosts.as_ref());
        stay(own.unwrap_or(&spec.control_plane.hosts))
    };
    let api_server = TABLE.iter().find(|entry| entry.is_api_server()).expect("a test reads this table");
    for entry in TABLE.iter() {
        let wanted = !entry.optional || components.get(entry).is_some_and(Component::is_enabled);
        let hosts = match entry.runs {
            RunsOn::OnItsGroup => placed(entry),
            RunsOn::WithTheApiServer => placed(api_server),
            // On the hosts of those that query them, which the roles know.
            RunsOn::ForEachMember => continue,
        };
        if wanted {
            put_group(inventory, &entry.role, hosts);
        }
    }
    let balancer = spec.control_plane.load_balancer.as_ref();
    let balancers = balancer.map(|balancer| balancer.hosts.as_ref().unwrap_or(&spec.control_plane.hosts));
    put_group(inventory, group::LOAD_BALANCER, balancers.map_or(Vec::new(), |hosts| stay(hosts)));
}

/// A group with these hosts, which are there already.
fn put_group(inventory: &mut Inventory, name: &str, hosts: Vec<String>) {
    inventory.put_group(name);
    for host in hosts {
        inventory.add_host_to_group(name, &host);
    }
}

/// Adds variables to a host that is there.
fn extend(inventory: &mut Inventory, host: &str, vars: Vars) {
    let host = inventory.hosts.get_mut(host).expect("it was inserted before");
    host.vars.extend(vars);
}

#[cfg(test)]
mod tests;
