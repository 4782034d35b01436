//! What a foreign document may contain. Every field of every kind has its rule here; a field without one is
//! refused, and a test compares the lists with the schemas. Names that the configuration allows become its paths.

use serde_json::{Map, Value as Json};

use super::place::field_origin;
use super::trust::ForeignResourceLimits;
use crate::value::origin::Diagnostic;
use crate::value::yaml::Node;

/// How a field of a foreign document is treated, with all that is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// A word for the hosts or for the control plane: nothing of this machine is found, read or run by it.
    Plain,
    /// Where windlass connects to. The address is checked when it connects, after its name is resolved.
    Reached,
    /// A Secret of the document's own namespace, and no other reference.
    Secret,
    /// A name in `resource_bundles`.
    Bundle,
    /// A name in `resource_files`.
    File,
    /// A name in `resource_hooks`.
    Hook,
    /// A jump host in `resource_bastions`.
    Bastion,
    /// `strict` only.
    HostKeys,
    /// Not in a foreign document.
    Refused,
}

use Rule::{Bastion, Bundle, File, Hook, HostKeys, Plain, Reached, Refused, Secret};

/// The fields of `spec` of a `KarmadaDeployment`. `[]` is an item of a list, `*` is any name.
const DEPLOYMENT: &[(&str, Rule)] = &[
    ("version", Plain),
    ("bundle", Bundle),
    ("instance", Plain),
    ("hosts[].name", Reached),
    ("hosts[].address", Reached),
    ("hosts[].port", Reached),
    ("hosts[].user", Plain),
    ("hosts[].fingerprint", Plain),
    ("hosts[].architecture", Plain),
    ("hosts[].labels", Plain),
    ("hosts[].privateAddress", Plain),
    ("hosts[].bastion", Bastion),
    ("hosts[].reset", Plain),
    ("ssh.user", Plain),
    ("ssh.port", Reached),
    ("ssh.privateKey", Secret),
    ("ssh.passphrase", Secret),
    ("ssh.agent", Refused),
    ("ssh.password", Secret),
    ("ssh.becomePassword", Secret),
    ("ssh.knownHosts", Refused),
    ("ssh.hostKeys", HostKeys),
    ("ssh.bastion", Bastion),
    ("controlPlane.hosts", Plain),
    ("controlPlane.endpoint", Reached),
    ("controlPlane.loadBalancer.hosts", Plain),
    ("controlPlane.loadBalancer.virtualAddress", Reached),
    ("controlPlane.loadBalancer.interface", Plain),
    ("controlPlane.loadBalancer.routerID", Plain),
    ("controlPlane.loadBalancer.packageFiles[]", File),
    ("controlPlane.certSANs", Plain),
    ("controlPlane.serviceSubnet", Plain),
    ("etcd.managed.hosts", Plain),
    ("etcd.managed.dataDir", Plain),
    ("etcd.managed.quotaBackendBytes", Plain),
    ("etcd.managed.localBackup.intervalMinutes", Plain),
    ("etcd.managed.localBackup.keep", Plain),
    ("etcd.managed.localBackup.dir", Plain),
    ("etcd.managed.serverCertSANs", Plain),
    ("etcd.managed.extraArgs", Plain),
    ("etcd.external.endpoints", Reached),
    ("etcd.external.caCert.file", File),
    ("etcd.external.clientCert.file", File),
    ("etcd.external.clientKey.file", File),
    ("components.*.enabled", Plain),
    ("components.*.hosts", Plain),
    ("components.*.extraArgs", Plain),
    ("components.*.featureGates", Plain),
    ("components.*.resources", Plain),
    ("certificates.ca.cert.file", File),
    ("certificates.ca.key", Secret),
    ("certificates.leafCertValidityDays", Plain),
    ("certificates.renewBeforeDays", Plain),
    ("hostCluster.kubeconfig.file", File),
    ("addons[].name", Plain),
    ("addons[].to", Plain),
    ("addons[].src[]", File),
    ("addons[].namespace", Plain),
    ("addons[].state", Plain),
    ("addons[].wait", Plain),
    ("addons[].force", Plain),
    ("members[].name", Plain),
    ("members[].syncMode", Plain),
    ("members[].kubeconfig", Secret),
    ("members[].kubeconfigOnHost.host", Plain),
    ("members[].kubeconfigOnHost.path", Plain),
    ("members[].context", Plain),
    ("members[].agent.host", Plain),
    ("members[].agent.image", Plain),
    ("members[].apiEndpoint", Reached),
    ("members[].provider", Plain),
    ("members[].region", Plain),
    ("members[].zones", Plain),
    ("members[].labels", Plain),
    ("members[].taints[].key", Plain),
    ("members[].taints[].value", Plain),
    ("members[].taints[].effect", Plain),
    ("members[].workloads", Plain),
    ("members[].force", Plain),
    ("members[].estimator", Plain),
    ("members[].addons[].name", Plain),
    ("members[].addons[].to", Plain),
    ("members[].addons[].src[]", File),
    ("members[].addons[].namespace", Plain),
    ("members[].addons[].state", Plain),
    ("members[].addons[].wait", Plain),
    ("members[].addons[].force", Plain),
    ("removeByForce", Plain),
    ("hooks[].stage", Plain),
    ("hooks[].when", Plain),
    ("hooks[].playbook", Hook),
    ("paused", Plain),
    ("apply", Plain),
    ("maintenanceWindows[].days", Plain),
    ("maintenanceWindows[].start", Plain),
    ("maintenanceWindows[].minutes", Plain),
    ("deletionPolicy", Plain),
];

const BACKUP: &[(&str, Rule)] = &[
    ("deployment", Plain),
    ("schedule", Plain),
    ("timeZone", Plain),
    ("suspend", Plain),
    ("rehearse", Plain),
    ("keep", Plain),
    ("recipients", Plain),
    ("retention.withinDays", Plain),
    ("retention.hourly", Plain),
    ("retention.daily", Plain),
    ("retention.weekly", Plain),
    ("retention.monthly", Plain),
    ("retention.yearly", Plain),
    ("identity", Secret),
    ("storage.path", Refused),
    ("storage.s3.endpoint", Reached),
    ("storage.s3.bucket", Plain),
    ("storage.s3.prefix", Plain),
    ("storage.s3.region", Plain),
    ("storage.s3.virtualHost", Plain),
    ("storage.s3.encryption", Plain),
    ("storage.s3.caCert", Secret),
    ("storage.s3.accessKey", Secret),
    ("storage.s3.secretKey", Secret),
    ("storage.s3.sessionToken", Secret),
    ("storage.ssh.address", Reached),
    ("storage.ssh.port", Reached),
    ("storage.ssh.user", Plain),
    ("storage.ssh.fingerprint", Plain),
    ("storage.ssh.privateKey", Secret),
    ("storage.ssh.directory", Plain),
];

const RUN: &[(&str, Rule)] = &[
    ("deployment", Plain),
    ("operation", Plain),
    ("planDigest", Plain),
    ("confirm", Plain),
    ("backup", Plain),
    ("snapshot", Plain),
    ("stop", Plain),
];

/// The fields of a kind.
pub(super) fn foreign_fields(kind: &str) -> &'static [(&'static str, Rule)] {
    match kind {
        "KarmadaDeployment" => DEPLOYMENT,
        "EtcdBackup" => BACKUP,
        "Run" => RUN,
        _ => &[],
    }
}

/// The rule of a field, if it has one.
pub(super) fn rule(fields: &[(&str, Rule)], pattern: &str) -> Option<Rule> {
    fields.iter().find(|(field, _)| *field == pattern).map(|(_, rule)| *rule)
}

/// The pattern of a field below another. All components have the same fields.
pub(super) fn below(pattern: &str, key: &str) -> String {
    match pattern {
        "" => key.to_owned(),
        "components" => "components.*".to_owned(),
        _ => format!("{pattern}.{key}"),
    }
}

/// Checks the spec of a foreign document, and replaces names by the paths from the configuration.
pub(super) fn admit(
    kind: &str,
    spec: &mut Json,
    document: &Node,
    namespace: Option<&str>,
    allowed: &ForeignResourceLimits,
) -> Vec<Diagnostic> {
    let mut admission =
        Admission { fields: foreign_fields(kind), document, namespace, allowed, complaints: Vec::new() };
    admission.walk(spec, "", "spec");
    admission.hosts(spec);
    admission.complaints
}

struct Admission<'a> {
    fields: &'static [(&'static str, Rule)],
    document: &'a Node,
    namespace: Option<&'a str>,
    allowed: &'a ForeignResourceLimits,
    complaints: Vec<Diagnostic>,
}

impl Admission<'_> {
    fn complain(&mut self, at: &str, message: String, hint: impl Into<String>) {
        let complaint = Diagnostic::new(format!("{at}{message}"), Some(&field_origin(self.document, at)));
        self.complaints.push(complaint.hint(hint.into()));
    }

    fn walk(&mut self, value: &mut Json, pattern: &str, at: &str) {
        match (rule(self.fields, pattern), value) {
            (Some(rule), value) => self.judge(rule, value, at),
            (None, Json::Object(entries)) => {
                for (key, value) in entries {
                    self.walk(value, &below(pattern, key), &format!("{at}.{key}"));
                }
            }
            (None, Json::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.walk(item, &format!("{pattern}[]"), &format!("{at}[{index}]"));
                }
            }
            (None, _) => self.judge(Refused, &mut Json::Null, at),
        }
    }

    fn judge(&mut self, rule: Rule, value: &mut Json, at: &str) {
        let allowed = self.allowed;
        match rule {
            Plain | Reached => {}
            Secret => self.secret(value, at),
            Bundle => self.named(value, at, "resource_bundles", |name| allowed.bundles.get(name)),
            File => self.named(value, at, "resource_files", |name| allowed.files.get(name)),
            Hook => self.named(value, at, "resource_hooks", |name| allowed.hooks.get(name)),
            Bastion => {
                let hop = hop(value);
                if !allowed.bastions.contains(&hop) {
                    let hint = "the setting resource_bastions lists the allowed bastions";
                    self.complain(at, format!(" is {hop}, which is not allowed in a resource from an API"), hint);
                }
            }
            HostKeys if value.as_str() == Some("strict") => {}
            HostKeys => {
                let hint = "set the host key of every host: spec.hosts[].fingerprint";
                self.complain(at, " must be strict in a resource from an API".to_owned(), hint);
            }
            Refused => {
                let hint = "remove this field: it refers to the machine that windlass runs on";
                self.complain(at, " is not allowed in a resource from an API".to_owned(), hint);
            }
        }
    }

    /// A reference: to a Secret, and to one of the own namespace.
    fn secret(&mut self, reference: &mut Json, at: &str) {
        let Some(secret) = reference.get_mut("secret").and_then(Json::as_object_mut) else {
            let given = reference.as_object().and_then(|given| given.keys().next()).cloned().unwrap_or_default();
            let hint = "use a Secret of the resource's own namespace: {secret: {name: NAME, key: KEY}}";
            let at = format!("{at}.{given}");
            return self.complain(&at, " is not allowed in a resource from an API".to_owned(), hint);
        };
        let Some(own) = self.namespace else {
            let hint = "set metadata.namespace";
            return self.complain(at, " refers to a Secret, and the resource has no namespace".to_owned(), hint);
        };
        match secret.get("namespace").and_then(Json::as_str) {
            Some(other) if other != own => {
                let message = format!(" is {other}, and the resource is in the namespace {own}");
                let hint = "a resource from an API may only use Secrets of its own namespace";
                self.complain(&format!("{at}.secret.namespace"), message, hint);
            }
            _ => drop(secret.insert("namespace".to_owned(), Json::from(own))),
        }
    }

    fn named<'p>(
        &mut self,
        value: &mut Json,
        at: &str,
        setting: &str,
        path: impl FnOnce(&str) -> Option<&'p std::path::PathBuf>,
    ) {
        let name = value.as_str().unwrap_or_default();
        match path(name) {
            Some(path) => *value = Json::from(path.to_string_lossy()),
            None => {
                let message = format!(" is {name:?}, which the setting {setting} does not list");
                let hint =
                    format!("a resource from an API may only use names that the setting {setting} lists as NAME=PATH");
                self.complain(at, message, hint);
            }
        }
    }

    /// The key of every host is pinned, and none takes the name of this machine.
    fn hosts(&mut self, spec: &Json) {
        let entries = |list: &str| spec.get(list).and_then(Json::as_array).cloned().unwrap_or_default();
        for (index, host) in entries("hosts").iter().enumerate() {
            if host.get("fingerprint").is_none() {
                let hint = "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub prints it on the host";
                let message = " has no fingerprint, which a resource from an API must have for every host".to_owned();
                self.complain(&format!("spec.hosts[{index}]"), message, hint);
            }
        }
        for list in ["hosts", "members"] {
            for (index, entry) in entries(list).iter().enumerate() {
                let name = entry.get("name").and_then(Json::as_str).unwrap_or_default();
                if name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback()) {
                    let message = format!(" is {name}, which is the machine that windlass runs on");
                    self.complain(&format!("spec.{list}[{index}].name"), message, "rename it");
                }
            }
        }
    }
}

/// A bastion as the setting writes it: `[USER@]ADDRESS[:PORT]`.
fn hop(bastion: &Json) -> String {
    let none = Map::new();
    let bastion = bastion.as_object().unwrap_or(&none);
    let text = |key: &str| bastion.get(key).and_then(Json::as_str);
    let user = text("user").map_or(String::new(), |user| format!("{user}@"));
    let address = text("address").unwrap_or_default();
    let address = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    let port = bastion.get("port").map_or(String::new(), |port| format!(":{port}"));
    format!("{user}{address}{port}")
}

#[cfg(test)]
mod tests;
