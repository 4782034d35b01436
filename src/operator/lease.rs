//! Leader election by a Lease: of several operators one works. Not what keeps two runs apart, which the lock on the hosts does.
//! Only this machine's own clock is used: a holder has ended if its Lease was not renewed for as long as it lasts.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::kubernetes::{error_text, is_absent};

/// How long a Lease lasts, how often it is renewed, and after how long without success its holder stops: the figures of client-go.
const LENGTH: Duration = Duration::from_secs(15);
const RENEW: Duration = Duration::from_secs(2);
const DEADLINE: Duration = Duration::from_secs(10);

/// A place in the election.
pub(super) struct Election {
    api: Api<Lease>,
    name: String,
    identity: String,
    /// The Lease as it was last seen, and since when it is so.
    seen: Option<(String, Instant)>,
}

impl Election {
    pub(super) fn new(client: Client, namespace: &str, name: &str, identity: String) -> Election {
        Election { api: Api::namespaced(client, namespace), name: name.to_owned(), identity, seen: None }
    }

    /// Waits until this process is the leader.
    pub(super) async fn win(&mut self) {
        let mut told = false;
        loop {
            match tokio::time::timeout(LENGTH, self.turn()).await.unwrap_or(Ok(false)) {
                Ok(true) => return,
                Ok(false) if !told => {
                    tracing::info!(lease = self.name, "another operator is the leader: waiting");
                    told = true;
                }
                Ok(false) => {}
                Err(error) => tracing::warn!("cannot take the lease {}: {}", self.name, error_text(&error)),
            }
            tokio::time::sleep(RENEW).await;
        }
    }

    /// Renews the Lease; returns when it is lost.
    pub(super) async fn hold(&mut self) {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(RENEW).await;
            match tokio::time::timeout(DEADLINE.saturating_sub(renewed.elapsed()), self.turn()).await {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) => return,
                Ok(Err(error)) => tracing::warn!("cannot renew the lease {}: {}", self.name, error_text(&error)),
                Err(_) => return,
            }
            if renewed.elapsed() >= DEADLINE {
                return;
            }
        }
    }

    /// Gives the Lease back, so that another operator need not wait.
    pub(super) async fn release(&self) {
        // It is free soon without that, too: the process need not wait for an API that does not answer.
        if tokio::time::timeout(RENEW, self.empty()).await.is_err() {
            tracing::warn!("cannot give back the lease {}: the API does not answer", self.name);
        }
    }

    async fn empty(&self) {
        let Ok(Some(mut lease)) = self.api.get_opt(&self.name).await else { return };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() == Some(&*self.identity) {
            spec.holder_identity = Some(String::new());
            if let Err(error) = self.api.replace(&self.name, &PostParams::default(), &lease).await {
                tracing::warn!("cannot give back the lease {}: {}", self.name, error_text(&error));
            }
        }
    }

    /// Takes or renews the Lease; whether this process holds it now.
    async fn turn(&mut self) -> kube::Result<bool> {
        let lease = match self.api.get(&self.name).await {
            Ok(lease) => lease,
            Err(error) if is_absent(&error) => {
                let lease = Lease {
                    metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                    spec: Some(self.spec(0)),
                };
                return lost_a_race(self.api.create(&PostParams::default(), &lease).await);
            }
            Err(error) => return Err(error),
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        if self.seen.as_ref().is_none_or(|(seen, _)| *seen != version) {
            self.seen = Some((version, Instant::now()));
        }
        let quiet = self.seen.as_ref().map_or(Duration::ZERO, |(_, since)| since.elapsed());
        if holder != self.identity && !holder.is_empty() && quiet < LENGTH {
            return Ok(false);
        }
        let transitions = spec.lease_transitions.unwrap_or_default() + i32::from(holder != self.identity);
        let mut own = lease;
        let acquired = (holder == self.identity).then_some(spec.acquire_time).flatten();
        own.spec = Some(self.spec(transitions));
        if let (Some(spec), Some(acquired)) = (own.spec.as_mut(), acquired) {
            spec.acquire_time = Some(acquired);
        }
        lost_a_race(self.api.replace(&self.name, &PostParams::default(), &own).await)
    }

    fn spec(&self, transitions: i32) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(LENGTH.as_secs()).ok(),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }
}

/// False: another process was faster.
fn lost_a_race<T>(written: kube::Result<T>) -> kube::Result<bool> {
    match written {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}
