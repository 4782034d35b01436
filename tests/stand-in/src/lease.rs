//! Leader election by a Lease, with the real programs' names, timings and ends: who loses it ends.

use std::time::{Duration, Instant};

use chrono::Utc;
use kube::Client;
use kube::api::{Api, DynamicObject, ObjectMeta, PostParams};
use serde_json::{Value, json};

use crate::api::resource;
use crate::flags::Given;

pub(crate) struct Election {
    namespace: String,
    name: String,
    holder: String,
    duration: f64,
    deadline: Duration,
    retry: Duration,
}

impl Election {
    /// None for a program that has no leader, or is told to have none.
    pub(crate) fn of(program: &str, given: &Given) -> Result<Option<Election>, String> {
        if given.get("leader-elect") != Some("true") {
            return Ok(None);
        }
        let duration = given.seconds("leader-elect-lease-duration")?;
        let deadline = given.seconds("leader-elect-renew-deadline")?;
        if duration <= deadline {
            return Err("leaseDuration must be greater than renewDeadline".to_owned());
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").map_err(|error| error.to_string())?;
        let unique = std::fs::read_to_string("/proc/sys/kernel/random/uuid").map_err(|error| error.to_string())?;
        Ok(Some(Election {
            namespace: given.get("leader-elect-resource-namespace").unwrap_or("karmada-system").to_owned(),
            name: given.get("leader-elect-resource-name").unwrap_or(program).to_owned(),
            holder: format!("{}_{}", host.trim(), unique.trim()),
            duration,
            deadline: Duration::from_secs_f64(deadline),
            retry: Duration::from_secs_f64(given.seconds("leader-elect-retry-period")?),
        }))
    }

    /// Takes the lease when it is free, and renews it; ends when it cannot be renewed in time.
    pub(crate) async fn run(self, client: Client) -> Result<(), String> {
        let kind = resource("coordination.k8s.io", "v1", "Lease", "leases");
        let leases = Api::<DynamicObject>::namespaced_with(client, &self.namespace, &kind);
        let mut renewed: Option<Instant> = None;
        // What the lease said, and since when it says so: other hosts' clocks are not to be trusted.
        let mut observed: (Value, Instant) = (Value::Null, Instant::now());
        loop {
            match tokio::time::timeout(self.deadline, self.turn(&leases, &mut observed)).await {
                Ok(Ok(true)) => renewed = Some(Instant::now()),
                Ok(Ok(false)) if renewed.is_some() => return Err("leader election lost".to_owned()),
                Ok(Ok(false)) => {}
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => return Err(status.message),
                Ok(Err(error)) => eprintln!("cannot renew the lease {}: {error}", self.name),
                Err(_) => eprintln!("cannot renew the lease {}: no answer", self.name),
            }
            if renewed.is_some_and(|at| at.elapsed() > self.deadline) {
                return Err("leader election lost".to_owned());
            }
            tokio::time::sleep(self.retry).await;
        }
    }

    /// One look at the lease. Whether it is ours after it.
    async fn turn(&self, leases: &Api<DynamicObject>, observed: &mut (Value, Instant)) -> Result<bool, kube::Error> {
        let Some(mut lease) = leases.get_opt(&self.name).await? else {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            let lease = DynamicObject { types: None, metadata, data: json!({"spec": self.spec(0, None)}) };
            return leases.create(&PostParams::default(), &lease).await.map(|_| true);
        };
        let spec = lease.data["spec"].clone();
        if spec != observed.0 {
            *observed = (spec.clone(), Instant::now());
        }
        let ours = spec["holderIdentity"] == self.holder.as_str();
        let patience = spec["leaseDurationSeconds"].as_f64().unwrap_or(self.duration);
        let free = spec["holderIdentity"].as_str().is_none_or(str::is_empty);
        if !ours && !free && observed.1.elapsed().as_secs_f64() < patience {
            return Ok(false);
        }
        let changes = spec["leaseTransitions"].as_i64().unwrap_or(0) + i64::from(!ours);
        lease.data = json!({"spec": self.spec(changes, ours.then(|| spec["acquireTime"].clone()))});
        leases.replace(&self.name, &PostParams::default(), &lease).await.map(|_| true)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a duration in seconds is small")]
    fn spec(&self, changes: i64, since: Option<Value>) -> Value {
        let now = Utc::now().format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        json!({
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration.round() as i64,
            "acquireTime": since.unwrap_or_else(|| now.clone().into()),
            "renewTime": now,
            "leaseTransitions": changes,
        })
    }
}
