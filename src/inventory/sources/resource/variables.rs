//! The fields of a deployment as the variables that the roles read.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::secrets::{SecretKind, Secrets};
use crate::inventory::sources::resource::connection;
use crate::resource::names::variable;
use crate::resource::{
    Addon, AddonState, Certificates, Component, ComponentEntry, Deployment, Etcd, ExternalEtcd, ManagedEtcd, Places,
    TABLE,
};
use crate::value::{Value, Vars, mapping};

/// The variables of all hosts and members of a deployment.
pub(super) fn deployment_vars(deployment: &Deployment, places: &Places, secrets: &Secrets) -> Vars {
    let spec = &deployment.spec;
    let mut vars = Vars::new();
    let mut set = |name: &str, value: Value| drop(vars.insert(name.into(), value));
    set(variable::KARMADA_DEPLOYMENT, text(&deployment.name));
    set(variable::KARMADA_INSTANCE, text(&spec.instance));
    set(variable::KARMADA_BUNDLE, text(&places.resolve_given(&spec.bundle).to_string_lossy()));
    if spec.instance != "karmada" {
        set(variable::ETCD_CLUSTER_NAME, text(&deployment.etcd_cluster()));
    }
    for (name, given) in [
        (variable::KARMADA_VERSION, &spec.version),
        (variable::KARMADA_ENDPOINT, &spec.control_plane.endpoint),
        (variable::KARMADA_SERVICE_CIDR, &spec.control_plane.service_subnet),
    ] {
        if let Some(given) = given {
            set(name, text(given));
        }
    }
    if !spec.control_plane.cert_sans.is_empty() {
        set(variable::KARMADA_EXTRA_NAMES, names(&spec.control_plane.cert_sans));
    }
    if let Some(balancer) = &spec.control_plane.load_balancer {
        for (name, given) in [
            (variable::KARMADA_VIRTUAL_ADDRESS, &balancer.virtual_address),
            (variable::LOAD_BALANCER_INTERFACE, &balancer.interface),
        ] {
            if let Some(given) = given {
                set(name, text(given));
            }
        }
        if let Some(number) = balancer.router_id {
            set(variable::LOAD_BALANCER_ROUTER_ID, Value::from(number));
        }
        if !balancer.package_files.is_empty() {
            let files = balancer.package_files.iter().map(|file| text(&places.resolve_given(file).to_string_lossy()));
            set(variable::LOAD_BALANCER_PACKAGE_FILES, files.collect());
        }
    }
    if !spec.addons.is_empty() {
        set(variable::KARMADA_ADDONS, spec.addons.iter().map(addon).collect());
    }
    if let Some(cluster) = &spec.host_cluster {
        let kubeconfig = places.resolve_given(&cluster.kubeconfig.file);
        set(variable::KARMADA_HOST_CLUSTER_KUBECONFIG, text(&kubeconfig.to_string_lossy()));
    }
    vars.extend(etcd(&spec.etcd, places));
    if let Some(certificates) = &spec.certificates {
        vars.extend(validity(certificates));
        if let Some(ca) = &certificates.ca {
            vars.insert(variable::KARMADA_CA_CERT.into(), text(&places.resolve_given(&ca.cert.file).to_string_lossy()));
            vars.insert(variable::KARMADA_CA_KEY.into(), secrets.secret_value(&ca.key, SecretKind::AuthorityKey));
        }
    }
    vars.extend(components(deployment));
    if let Some(ssh) = &spec.ssh {
        vars.extend(connection::of_all(ssh, places, secrets));
    }
    vars
}

fn text(text: &str) -> Value {
    Value::from(text)
}

fn etcd(etcd: &Etcd, places: &Places) -> Vars {
    match (&etcd.managed, &etcd.external) {
        (Some(managed), _) => managed_etcd(managed),
        (None, Some(external)) => [(variable::ETCD_EXTERNAL.into(), external_etcd(external, places))].into(),
        (None, None) => Vars::new(),
    }
}

fn managed_etcd(etcd: &ManagedEtcd) -> Vars {
    let mut vars = Vars::new();
    if let Some(directory) = &etcd.data_dir {
        vars.insert(variable::ETCD_DATA_DIR.into(), text(directory));
    }
    if let Some(bytes) = etcd.quota_backend_bytes {
        vars.insert(variable::ETCD_QUOTA_BACKEND_BYTES.into(), Value::from(bytes));
    }
    if let Some(backup) = &etcd.local_backup {
        vars.insert(variable::ETCD_LOCAL_BACKUP_MINUTES.into(), Value::from(backup.interval_minutes));
        if let Some(keep) = backup.keep {
            vars.insert(variable::ETCD_LOCAL_BACKUP_KEEP.into(), Value::from(keep));
        }
        if let Some(directory) = &backup.dir {
            vars.insert(variable::ETCD_LOCAL_BACKUP_DIR.into(), text(directory));
        }
    }
    if !etcd.server_cert_sans.is_empty() {
        vars.insert(variable::ETCD_EXTRA_NAMES.into(), names(&etcd.server_cert_sans));
    }
    if !etcd.extra_args.is_empty() {
        vars.insert(
            variable::ETCD_FLAGS.into(),
            mapping(etcd.extra_args.iter().map(|(flag, value)| (flag, text(value)))),
        );
    }
    vars
}

fn external_etcd(etcd: &ExternalEtcd, places: &Places) -> Value {
    let file = |file: &str| text(&places.resolve_given(file).to_string_lossy());
    mapping([
        ("endpoints", etcd.endpoints.iter().map(|endpoint| text(endpoint)).collect()),
        ("ca_cert", file(&etcd.ca_cert.file)),
        ("client_cert", file(&etcd.client_cert.file)),
        ("client_key", file(&etcd.client_key.file)),
    ])
}

fn validity(certificates: &Certificates) -> Vars {
    let days = [("days", certificates.leaf_cert_validity_days), ("renew_days", certificates.renew_before_days)];
    let mut vars = Vars::new();
    for (name, days) in days.into_iter().filter_map(|(name, days)| Some((name, days?))) {
        for prefix in ["karmada", "etcd"] {
            vars.insert(format!("{prefix}_certificate_{name}").into(), Value::from(days));
        }
    }
    vars
}

fn components(deployment: &Deployment) -> Vars {
    let Some(all) = &deployment.spec.components else { return Vars::new() };
    let mut vars = Vars::new();
    for entry in TABLE.iter() {
        if let Some(component) = all.get(entry) {
            vars.extend(component_vars(entry, component));
        }
    }
    vars
}

fn component_vars(entry: &ComponentEntry, component: &Component) -> Vars {
    let name = &entry.role;
    let mut vars = Vars::new();
    if entry.optional {
        vars.insert(format!("{name}_enabled").into(), Value::from(component.is_enabled()));
    }
    for (what, value) in [
        ("extra_args", user_map(&component.extra_args, |value| text(value))),
        ("feature_gates", user_map(&component.feature_gates, |on| Value::from(*on))),
        ("resources", user_map(&component.resources, |limit| text(limit))),
    ] {
        if let Some(value) = value {
            vars.insert(format!("{name}_{what}").into(), value);
        }
    }
    vars
}

/// A map of the user's, with its own keys; None: it is empty.
fn user_map<T>(map: &BTreeMap<String, T>, value: impl Fn(&T) -> Value) -> Option<Value> {
    (!map.is_empty()).then(|| mapping(map.iter().map(|(key, item)| (key, value(item)))))
}

/// Names and addresses as certificates have them.
fn names(given: &[String]) -> Value {
    let one = |name: &String| match name.parse::<IpAddr>() {
        Ok(address) => Value::from(format!("IP:{address}")),
        Err(_) => Value::from(format!("DNS:{name}")),
    };
    given.iter().map(one).collect()
}

fn addon(addon: &Addon) -> Value {
    let given = Manifests {
        name: &addon.name,
        to: addon.to.iter().map(|place| text(place)).collect(),
        src: &addon.src,
        namespace: addon.namespace.as_deref(),
        state: addon.state,
        wait: addon.wait,
        force: addon.force,
    };
    given.manifests_value()
}

/// An entry in the form that the role for add-ons expects.
pub(super) struct Manifests<'a> {
    pub name: &'a str,
    pub to: Value,
    pub src: &'a [String],
    pub namespace: Option<&'a str>,
    pub state: AddonState,
    pub wait: bool,
    pub force: bool,
}

impl Manifests<'_> {
    pub(super) fn manifests_value(self) -> Value {
        let state = match self.state {
            AddonState::Present => "present",
            AddonState::Absent => "absent",
        };
        let mut pairs =
            vec![("name", text(self.name)), ("to", self.to), ("src", self.src.iter().map(|src| text(src)).collect())];
        pairs.extend(self.namespace.map(|namespace| ("namespace", text(namespace))));
        pairs.extend([("state", text(state)), ("wait", Value::from(self.wait)), ("force", Value::from(self.force))]);
        mapping(pairs)
    }
}
