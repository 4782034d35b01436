//! Which members a deployment's control plane has: fills the groups `add_member` and `del_member`. The control plane is
//! asked by way of its hosts, as tasks are, and only when the inventory has a deployment.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use serde_json::Value as Json;
use tokio::sync::mpsc::unbounded_channel;

use crate::engine::{self, Event, Job, Status};
use crate::inventory::{ControlPlaneClusters, Inventory, JoinedCluster};
use crate::playbook::ad_hoc::AdHoc;
use crate::resource::Trust;
use crate::resource::names::{group, variable};
use crate::value::Value;
use crate::value::origin::Diagnostic;

/// Seconds for each question. A control plane that takes longer is not waited for.
const PATIENCE: u64 = 20;

/// Who is asked: every host with an API server, for itself.
const ASKED: &str = group::API_SERVER;

/// Whether a pattern names a group that only the control plane can fill.
pub fn names_members(pattern: &str) -> bool {
    pattern.contains(group::ADD_MEMBER) || pattern.contains(group::DEL_MEMBER)
}

/// Whether a run depends on what the control plane says: others are not kept waiting for it.
pub fn concern(job: &Job) -> bool {
    let named = job.playbooks.iter().flatten().any(|play| names_members(&play.hosts.value.to_string()));
    !job.inventory.deployments.is_empty() && (named || job.limit.as_deref().is_some_and(names_members))
}

/// Reads the Clusters of the control plane, and adds the result to the job's inventory. Without a deployment nothing
/// is done; what cannot be known leaves `del_member` empty, and the warning that is returned says why. `by_force`: members
/// to remove even if they do not answer, beside those that the resource names.
///
/// # Errors
/// A Cluster's name cannot be the name of a host.
pub async fn find_members(job: &mut Job, by_force: &[String]) -> Result<Option<String>, Diagnostic> {
    let Some(deployment) = job.inventory.deployments.first() else { return Ok(None) };
    let name = deployment.name.clone();
    let found = match kubeconfig(&job.inventory) {
        Err(why) => Err(format!("{why}; windlass cannot query the control plane and removes no member")),
        Ok(None) => Err(format!(
            "found no kubeconfig of {name} on this machine, so windlass cannot query the control plane and removes no \
             member"
        )),
        Ok(Some(kubeconfig)) => Clusters { job, kubeconfig: &kubeconfig }
            .of(&name)
            .await
            .map_err(|why| format!("cannot list the members of {name}, so windlass removes none: {why}")),
    };
    let none = ControlPlaneClusters { joined: Vec::new(), foreign: Vec::new() };
    let (mut standing, warning) = match found {
        Ok(standing) => (standing, None),
        Err(why) => (none, Some(why)),
    };
    let by_force = [by_force, &deployment.spec.remove_by_force].concat();
    for cluster in standing.joined.iter_mut().filter(|cluster| by_force.contains(&cluster.name)) {
        cluster.vars.push((variable::MEMBER_FORCE.to_owned(), true.into()));
    }
    job.inventory.put_clusters(&standing)?;
    Ok(warning)
}

/// The members to remove, if there are more than `most`: a line that was deleted by mistake must not take members with it.
pub fn too_many(inventory: &Inventory, most: usize) -> Option<Vec<Arc<str>>> {
    let gone = inventory.hosts_of(group::DEL_MEMBER);
    (!inventory.deployments.is_empty() && gone.len() > most).then_some(gone)
}

/// The admin's kubeconfig, where the roles put it; None: there is none yet.
///
/// # Errors
/// The credentials cannot be read.
pub fn kubeconfig(inventory: &Inventory) -> Result<Option<PathBuf>, String> {
    let (Some(deployment), Some(credentials)) = (inventory.deployments.first(), &inventory.credentials) else {
        return Ok(None);
    };
    let path = admin_kubeconfig(&credentials.files_directory()?, &deployment.spec.instance);
    Ok(Some(path).filter(|path| path.is_file()))
}

/// Where the roles put the admin's kubeconfig of an instance, in the directory of credentials.
pub fn admin_kubeconfig(credentials: &Path, instance: &str) -> PathBuf {
    let prefix = if instance == "karmada" { String::new() } else { format!("{instance}-") };
    credentials.join(format!("{prefix}admin.kubeconfig"))
}

/// One who asks, and what about.
struct Clusters<'a> {
    job: &'a Job,
    kubeconfig: &'a Path,
}

/// What was recorded on a Cluster when it joined.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Recorded {
    workloads: Option<String>,
    force: bool,
    kubeconfig: RecordedKubeconfig,
    #[serde(rename = "syncMode")]
    sync_mode: Option<String>,
    #[serde(rename = "apiEndpoint")]
    api_endpoint: Option<String>,
    agent: Json,
    connection: Option<RecordedConnection>,
}

/// Only the address of a host: a user who may write Clusters wrote it, and must not choose how windlass connects.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RecordedConnection {
    ansible_host: String,
    ansible_port: Option<u16>,
    ansible_user: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RecordedKubeconfig {
    kind: String,
    path: String,
    context: String,
}

impl Clusters<'_> {
    async fn of(&self, deployment: &str) -> Result<ControlPlaneClusters, String> {
        let clusters = self.ask(r#""api_version": "cluster.karmada.io/v1alpha1", "kind": "Cluster""#).await?;
        if clusters.is_empty() {
            return Ok(ControlPlaneClusters { joined: Vec::new(), foreign: Vec::new() });
        }
        let mark = r#""api_version": "v1", "kind": "ConfigMap", "namespace": "karmada-system", "name": "windlass""#;
        let mark = self.ask(mark).await?;
        let uid = mark.first().and_then(|mark| mark["metadata"]["uid"].as_str());
        // A label alone is no proof: every user of the API may write one.
        let ours = |cluster: &&Json| {
            let metadata = &cluster["metadata"];
            uid.is_some()
                && metadata["labels"]["windlass.dev/deployment"].as_str() == Some(deployment)
                && metadata["annotations"]["windlass.dev/deployment-uid"].as_str() == uid
        };
        // A name becomes a path here, and a host.
        let well_named = clusters.iter().filter(|cluster| cluster["metadata"]["name"].as_str().is_some_and(is_cluster));
        let (joined, foreign): (Vec<&Json>, Vec<&Json>) = well_named.partition(ours);
        let known = &|name: &str| self.job.inventory.hosts.contains_key(name);
        let trust = self.job.inventory.deployments.first().map(|deployment| deployment.trust).unwrap_or_default();
        let name = |cluster: &Json| cluster["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Ok(ControlPlaneClusters {
            joined: joined
                .into_iter()
                .map(|cluster| JoinedCluster { name: name(cluster), vars: recorded(cluster, trust, known) })
                .collect(),
            foreign: foreign.into_iter().map(name).collect(),
        })
    }

    /// The objects that the first host which answers has.
    async fn ask(&self, what: &str) -> Result<Vec<Json>, String> {
        let path = serde_json::to_string(&self.kubeconfig.to_string_lossy()).map_err(|error| error.to_string())?;
        let port =
            "{{ (karmada_ports | default({}))['apiserver'] | default(5443 + karmada_port_offset | default(0) | int) }}";
        let args = format!(r#"{{"kubeconfig": {path}, "host": "https://127.0.0.1:{port}", {what}}}"#);
        let asked = AdHoc {
            pattern: ASKED,
            module: "k8s_info",
            args: &args,
            keywords: vec![("timeout", PATIENCE)],
            directory: Path::new("."),
        };
        let play = self.job.loader.ad_hoc(&asked).map_err(|complaints| first(&complaints))?;
        let job = Job {
            playbooks: vec![vec![Arc::new(play)]],
            inventory: self.job.inventory.clone(),
            limit: None,
            tags: engine::Tags::default(),
            check: false,
            diff: false,
            forks: self.job.forks,
            verbosity: 0,
            extra_vars: self.job.extra_vars.clone(),
            defaults: self.job.defaults.clone(),
            options: engine::Options { start_at_task: None, step: false, ..self.job.options.clone() },
            keyring: self.job.keyring.clone(),
            templar: self.job.templar.clone(),
            loader: self.job.loader.clone(),
            caches: self.job.caches.clone(),
            prompted: self.job.prompted.clone(),
            directory: self.job.directory.clone(),
            hold: None,
        };
        answers(job).await
    }
}

fn first(complaints: &[Diagnostic]) -> String {
    complaints.first().map_or_else(String::new, ToString::to_string)
}

/// Runs the question on all hosts at once; the first list that came whole is the answer.
async fn answers(job: Job) -> Result<Vec<Json>, String> {
    let (sender, mut receiver) = unbounded_channel();
    let run = Box::pin(engine::run(job, sender, Arc::new(AtomicBool::new(false))));
    run.await.map_err(|error| error.to_string())?;
    let mut why = "no host of the control plane could be queried".to_owned();
    while let Ok(reported) = receiver.try_recv() {
        let Event::Result { host, result, .. } = reported.event else { continue };
        if result.status == Status::Ok
            && let Some(resources) = result.values.get("resources")
        {
            let found = result.values.get("api_found").is_some_and(Value::is_true);
            let resources: Result<Vec<Json>, _> = Deserialize::deserialize(resources.clone());
            match resources {
                Ok(resources) if found => return Ok(resources),
                _ => why = format!("the API server on {host} does not serve the Cluster API"),
            }
        } else if let Some(message) = &result.message {
            why = format!("{host}: {}", message.lines().next().unwrap_or_default());
        }
    }
    Err(why)
}

/// An address or a user's name without special characters.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:%@+-".contains(&byte);
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(plain)
}

/// A name that the API of Karmada takes for a Cluster.
fn is_cluster(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    name.len() <= 253 && name.bytes().all(plain) && name.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// What a removal needs to know, from what was recorded at the join. Never a secret. A file of this machine is taken from
/// the record only if the resource is the person's own.
fn recorded(cluster: &Json, trust: Trust, known: &dyn Fn(&str) -> bool) -> Vec<(String, Json)> {
    let text = cluster["metadata"]["annotations"]["windlass.dev/member"].as_str().unwrap_or("{}");
    let recorded: Recorded = serde_json::from_str(text).unwrap_or_default();
    let mut vars: Vec<(String, Json)> = Vec::new();
    let mut set = |name: &str, value: Json| vars.push((name.to_owned(), value));
    set(variable::MEMBER_NAME, cluster["metadata"]["name"].clone());
    let mode = recorded.sync_mode.map(Json::from).unwrap_or_else(|| cluster["spec"]["syncMode"].clone());
    set(variable::MEMBER_SYNC_MODE, mode);
    set(variable::MEMBER_FORCE, recorded.force.into());
    for (name, given) in [
        (variable::MEMBER_WORKLOADS, recorded.workloads),
        (variable::MEMBER_API_ENDPOINT, recorded.api_endpoint),
        (variable::MEMBER_CONTEXT, Some(recorded.kubeconfig.context)),
    ] {
        if let Some(given) = given.filter(|given| !given.is_empty()) {
            set(name, given.into());
        }
    }
    let readable = match recorded.kubeconfig.kind.as_str() {
        "content" => false,
        // Without a connection that host is this machine.
        "host" => recorded.connection.is_some() || trust == Trust::Own,
        _ => trust == Trust::Own,
    };
    if readable && !recorded.kubeconfig.path.is_empty() {
        set(variable::MEMBER_KUBECONFIG, recorded.kubeconfig.path.into());
        set(variable::MEMBER_KUBECONFIG_ON_HOST, (recorded.kubeconfig.kind == "host").into());
    }
    // Where its agent runs: on a host that is in the inventory, which this machine as such is not.
    let agent: serde_json::Map<_, _> = ["host", "image"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), recorded.agent.get(key)?.as_str()?)))
        .filter(|(key, text)| key != "host" || known(text))
        .map(|(key, text)| (key, Json::from(text)))
        .collect();
    if !agent.is_empty() {
        set(variable::MEMBER_AGENT, agent.into());
    }
    match recorded.connection {
        Some(connection) => {
            for (name, text) in [("ansible_host", connection.ansible_host), ("ansible_user", connection.ansible_user)] {
                if is_plain(&text) {
                    set(name, text.into());
                }
            }
            if let Some(port) = connection.ansible_port {
                set("ansible_port", port.into());
            }
            // Who wrote the record chose the address. Only a host that is known gets a login there.
            set("ansible_host_key_checking", true.into());
        }
        None => set("ansible_connection", "local".into()),
    }
    vars
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_recorded_at_the_join_is_what_a_removal_gets() {
        let note = json!({
            "syncMode": "Pull", "workloads": "keep", "force": true, "apiEndpoint": "",
            "kubeconfig": {"kind": "host", "path": "/etc/admin.conf", "context": ""},
            "agent": {"host": "m1-host"},
            "connection": {"ansible_host": "192.0.2.9", "ansible_port": 22, "ansible_user": "", "karmada_bundle": "x"},
        });
        let cluster = json!({"metadata": {"name": "m1", "annotations": {"windlass.dev/member": note.to_string()}}});
        let vars: serde_json::Map<String, Json> = recorded(&cluster, Trust::Own, &|_| true).into_iter().collect();
        assert_eq!(
            Json::Object(vars),
            json!({
                "member_name": "m1", "member_sync_mode": "Pull", "member_force": true, "member_workloads": "keep",
                "member_kubeconfig": "/etc/admin.conf", "member_kubeconfig_on_host": true,
                "member_agent": {"host": "m1-host"}, "ansible_host": "192.0.2.9", "ansible_port": 22,
                "ansible_host_key_checking": true,
            })
        );
    }

    /// A user who may write Clusters in the control plane can also write the record.
    #[test]
    fn a_record_of_a_cluster_chooses_no_way_and_no_file_here() {
        let of = |connection: Json, trust| {
            let note = json!({
                "kubeconfig": {"kind": "file", "path": "/root/.kube/config"}, "connection": connection,
                "agent": {"host": "localhost"},
            });
            let cluster = json!({"metadata": {"name": "m1", "annotations": {"windlass.dev/member": note.to_string()}}});
            recorded(&cluster, trust, &|host| host == "m1-host").into_iter().collect::<serde_json::Map<_, _>>()
        };
        let way = json!({
            "ansible_host": "$(touch /tmp/x)", "ansible_user": "-oProxyCommand=x", "ansible_connection": "local",
            "ansible_ssh_common_args": "-o ProxyCommand=id", "ansible_private_key_file": "/root/.ssh/id_ed25519",
        });
        let vars = of(way, Trust::Foreign);
        let chosen = |name: &String| {
            (name.starts_with("ansible_") && name != "ansible_host_key_checking")
                || name == "member_kubeconfig"
                || name == "member_agent"
        };
        assert!(!vars.keys().any(chosen), "{vars:?}");
        let note = json!({"kubeconfig": {"kind": "host", "path": "/root/.kube/config"}});
        let cluster = json!({"metadata": {"name": "m1", "annotations": {"windlass.dev/member": note.to_string()}}});
        let kubeconfig = |trust| {
            let vars: serde_json::Map<_, _> = recorded(&cluster, trust, &|_| false).into_iter().collect();
            vars.get("member_kubeconfig").cloned()
        };
        assert_eq!((kubeconfig(Trust::Foreign), kubeconfig(Trust::Own)), (None, Some("/root/.kube/config".into())));
        assert!(is_cluster("m1") && !is_cluster("../../etc") && !is_cluster("-x") && !is_cluster(""));
        let vars = of(json!({"ansible_host": "192.0.2.9", "ansible_user": "ops"}), Trust::Own);
        assert_eq!((&vars["ansible_host"], &vars["ansible_user"]), (&json!("192.0.2.9"), &json!("ops")));
        assert_eq!(vars["member_kubeconfig"], "/root/.kube/config");
    }

    #[test]
    fn a_note_that_cannot_be_read_leaves_what_the_cluster_says_itself() {
        let cluster = json!({
            "metadata": {"name": "m1", "annotations": {"windlass.dev/member": "broken"}},
            "spec": {"syncMode": "Push"},
        });
        let vars: serde_json::Map<String, Json> = recorded(&cluster, Trust::Own, &|_| true).into_iter().collect();
        let expected = json!({"member_name": "m1", "member_sync_mode": "Push", "member_force": false, "ansible_connection": "local"});
        assert_eq!(Json::Object(vars), expected);
    }
}
