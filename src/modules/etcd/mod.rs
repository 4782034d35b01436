//! `etcd_cluster_info`: what an etcd cluster says of itself, through its members' JSON gateway. `etcd_gate`: whether it may be
//! changed. `etcd_member`: adds, promotes and removes members. `etcd_defragment`: gives unused space of a database back.
//! `etcd_downgrade`: makes a cluster ready for programs of the minor version before.

mod checks;
mod defragment;
mod downgrade;
mod gate;
mod gateway;
mod host_checks;
mod member;
mod one_member;
mod report;

use std::time::Duration;

use futures::future::join_all;
use serde::Deserialize;

pub(super) use defragment::EtcdDefragment;
pub(super) use downgrade::EtcdDowngrade;
pub(super) use gate::EtcdGate;
use gateway::Gateway;
pub(super) use member::EtcdMember;
use report::{Cluster, Endpoint};

use super::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::http::{HttpError, Tls, Url};
use crate::modules::web::TlsFiles;
use crate::remote::{Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::{Value, Vars};

/// What these modules need to reach the members.
const CA_CERT: Argument =
    Argument::new("ca_cert", ArgumentKind::Path, "A file with the certificate authority of the members");
const CLIENT_CERT: Argument =
    Argument::new("client_cert", ArgumentKind::Path, "A file with the client certificate").alias(&["cert"]);
const CLIENT_KEY: Argument =
    Argument::new("client_key", ArgumentKind::Path, "A file with its private key").alias(&["key"]);
const REMOTE_SRC: Argument =
    Argument::new("remote_src", ArgumentKind::Bool, "Whether these files are on the host, not on the controller")
        .default("true");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EtcdClusterInfo {
    endpoints: Vec<String>,
    ca_cert: Option<String>,
    client_cert: Option<String>,
    client_key: Option<String>,
    remote_src: bool,
    timeout: u64,
    whole_cluster: bool,
    linearizable: bool,
    write_test_key: Option<String>,
    allow_full: bool,
}

impl Module for EtcdClusterInfo {
    const CHANGES: Changes = Changes::Nothing;
    const DOC: Doc = Doc {
        name: "etcd_cluster_info",
        collection: "windlass",
        summary: "Show an etcd cluster's members, leader, versions, alarms and health",
        arguments: &[
            Argument::new(
                "endpoints",
                ArgumentKind::List(&ArgumentKind::Str),
                "Client addresses as seen from the host, https://a:2379",
            )
            .required(),
            CA_CERT,
            CLIENT_CERT,
            CLIENT_KEY,
            REMOTE_SRC,
            Argument::new("timeout", ArgumentKind::Int, "Timeout for one request to a member, in seconds").default("5"),
            Argument::new(
                "whole_cluster",
                ArgumentKind::Bool,
                "Whether to also query members that are not among the endpoints, at the addresses that they registered",
            )
            .default("false"),
            Argument::new(
                "linearizable",
                ArgumentKind::Bool,
                "Whether to make every member do a linearizable read, which needs a quorum",
            )
            .default("false"),
            Argument::new("write_test_key", ArgumentKind::Str, "A key to write, read and delete through every member"),
            Argument::new(
                "allow_full",
                ArgumentKind::Bool,
                "Whether members may be out of space: skips the NOSPACE alarm, and the health that members report, \
                 which includes it",
            )
            .default("false"),
        ],
        free_form: None,
        example: "\
- name: Wait until the cluster is healthy
  windlass.etcd_cluster_info:
    endpoints: ['https://10.0.0.1:2379', 'https://10.0.0.2:2379', 'https://10.0.0.3:2379']
    ca_cert: /etc/etcd/pki/ca.crt
    client_cert: /etc/etcd/pki/client.crt
    client_key: /etc/etcd/pki/client.key
    linearizable: true
  register: etcd
  until: etcd.healthy
  retries: 10
  delay: 2
",
        returns: &[
            Return::new(
                "members",
                "Each with id (hex), name, peer_urls, client_urls, is_learner, started, healthy, raft_applied_index; \
                 healthy is false for a member that was not queried",
            ),
            Return::new(
                "endpoints",
                "Each with endpoint, reachable, error, certificate_error (whether one end rejected the other's certificate), \
                 answered (whether anything is there, also if it ended the connection), version, storage_version (whose format the database \
                 has; empty before etcd 3.6), downgrade_target (empty: no downgrade is enabled), db_size, leader, raft_index and more",
            ),
            Return::new(
                "certificate_error",
                "If the task failed: true if ca_cert, client_cert or client_key cannot be used",
            ),
            Return::new("leader", "The leader's name and id, or null"),
            Return::new("cluster_id", "Hex"),
            Return::new(
                "clusters",
                "For each cluster that has a leader the list of its endpoints, the largest first. More than one: a member was restored or \
                 formed on its own. members and leader are of the first",
            ),
            Return::new("cluster_version", "The cluster version"),
            Return::new("alarms", "Each with id, name and alarm"),
            Return::new("voters", "The number of voting members, including those that are down"),
            Return::new("majority", "How many of them must be running"),
            Return::new("healthy", "Whether the cluster and the given endpoints have no problems"),
            Return::new("reasons", "Their problems, as a list of sentences"),
            Return::new("absent", "With whole_cluster: problems of the other members, as a list of sentences"),
        ],
    };
    type Change = ();

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<()>, Error> {
        match self.write_test_key {
            Some(_) if !here.check => Ok(Plan::Unknown(())),
            _ => Ok(Plan::Unchanged(self.look(probe, here, None).await?)),
        }
    }

    async fn apply(&self, (): (), remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        self.look(remote, here, self.write_test_key.as_deref()).await
    }
}

impl EtcdClusterInfo {
    async fn look(&self, probe: &Probe, here: &Controller<'_>, write_test_key: Option<&str>) -> Result<Outcome, Error> {
        Ok(self.ask_all(probe, here, write_test_key, false).await?.cluster_outcome())
    }

    /// Asks every endpoint at once. One that does not answer is part of the picture; only the host itself being gone
    /// is an error.
    async fn ask_all(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        write_test_key: Option<&str>,
        metrics: bool,
    ) -> Result<Cluster, Error> {
        if self.endpoints.is_empty() {
            return Err(Error::failed("endpoints must name at least one"));
        }
        let urls = self.endpoints.iter().map(|written| endpoint_url(written, self.ca_cert.is_some()));
        let urls = urls.collect::<Result<Vec<_>, _>>()?;
        let (client_cert, client_key) = (self.client_cert.as_deref(), self.client_key.as_deref());
        let ca = self.ca_cert.as_deref();
        let files = TlsFiles { ca, client_cert, client_key, controller: (!self.remote_src).then_some(here) };
        let tls = load_tls(files, probe, urls.iter().any(|url| url.secure)).await?;
        let limit = Duration::from_secs(self.timeout.max(1));
        let secure = urls.iter().all(|url| url.secure);
        let gateway = |url| Gateway { probe, tls: &tls, url, limit };
        let asked = urls.into_iter().zip(&self.endpoints).map(|(url, written)| {
            let gateway = gateway(url);
            let questions = Questions { metrics, ..self.questions(write_test_key) };
            async move { endpoint(&gateway, written, questions).await }
        });
        let mut endpoints = join_all(asked).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        if self.whole_cluster {
            let members = report::addresses_not_asked(&endpoints);
            let others = members.iter().map(|addresses| self.registered(&gateway, addresses, secure, metrics));
            for other in join_all(others).await {
                endpoints.extend(other?);
            }
        }
        Ok(Cluster::from_endpoints(endpoints))
    }

    /// Asks a member at the addresses that it registered, one after the other until one answers. No write is tried: it
    /// is not among those that are being worked on.
    async fn registered<'a>(
        &self,
        gateway: &impl Fn(Url) -> Gateway<'a>,
        addresses: &[String],
        secure: bool,
        metrics: bool,
    ) -> Result<Option<Endpoint>, Error> {
        let mut last = None;
        for address in addresses {
            let mut other = match Url::parse(address) {
                Ok(url) if url.secure || !secure => {
                    let questions = Questions { metrics, ..self.questions(None) };
                    endpoint(&gateway(url), address, questions).await?
                }
                Ok(_) => Endpoint {
                    error: Some("it registered an address without TLS".to_owned()),
                    ..Endpoint::new(address)
                },
                Err(why) => {
                    Endpoint { error: Some(format!("it registered an invalid URL: {why}")), ..Endpoint::new(address) }
                }
            };
            other.registered = true;
            if other.reachable {
                return Ok(Some(other));
            }
            last = Some(other);
        }
        Ok(last)
    }

    fn questions<'a>(&self, write_test_key: Option<&'a str>) -> Questions<'a> {
        let (linearizable, allow_full) = (self.linearizable, self.allow_full);
        Questions { linearizable, write_test_key, allow_full, metrics: false }
    }
}

/// An endpoint without a scheme is https if an authority is given.
fn endpoint_url(written: &str, has_authority: bool) -> Result<Url, Error> {
    let text = match (written.contains("://"), has_authority) {
        (true, _) => written.to_owned(),
        (false, true) => format!("https://{written}"),
        (false, false) => format!("http://{written}"),
    };
    Url::parse(&text).map_err(|why| Error::failed(format!("invalid endpoint {written:?}: {why}")))
}

/// The certificates for endpoints with TLS.
async fn load_tls(files: TlsFiles<'_>, probe: &Probe, secure: bool) -> Result<Tls, Error> {
    match secure {
        true => files.load_tls(probe, true).await.map_err(certificate_error),
        false => Ok(Tls::none()),
    }
}

/// The certificates or the key cannot be used. Playbooks read `certificate_error`, not the message.
fn certificate_error(error: Error) -> Error {
    match error {
        Error::Failed { message, hint } => {
            let values = Vars::from([("certificate_error".into(), Value::from(true))]);
            Error::Answered { message, hint, values }
        }
        error => error,
    }
}

/// What a member is asked beside its state.
#[derive(Clone, Copy)]
struct Questions<'a> {
    linearizable: bool,
    write_test_key: Option<&'a str>,
    allow_full: bool,
    metrics: bool,
}

/// Whether the member may be asked at /health. Before 3.4.29 each such request stays in its write-ahead log as one that etcd 3.6
/// refuses to replay; its alarms and a linearizable read say the same.
fn knows_health(version: &str) -> bool {
    let patch = version.strip_prefix("3.4.").map(|patch| patch.split('-').next().unwrap_or_default().parse::<u32>());
    patch.is_none_or(|patch| patch.is_ok_and(|patch| patch >= 29))
}

async fn endpoint(gateway: &Gateway<'_>, written: &str, questions: Questions<'_>) -> Result<Endpoint, Error> {
    let mut endpoint = Endpoint::new(written);
    match ask(gateway, &mut endpoint, questions).await {
        Ok(()) => Ok(endpoint),
        Err(HttpError::Host(error)) => Err(error.into()),
        Err(failure) => {
            endpoint.certificate_error = matches!(failure, HttpError::Certificate { .. });
            let answered =
                matches!(failure, HttpError::Certificate { .. } | HttpError::Tls { .. } | HttpError::Protocol { .. });
            endpoint.answered |= answered;
            endpoint.error = Some(failure.to_string());
            Ok(endpoint)
        }
    }
}

/// Fills in what the member says. The first question that gets no answer ends it; a refusal by a member is an answer.
async fn ask(gateway: &Gateway<'_>, endpoint: &mut Endpoint, questions: Questions<'_>) -> Result<(), HttpError> {
    let version = gateway.server_version().await?;
    (endpoint.reachable, endpoint.answered) = (true, true);
    endpoint.version = version.server;
    endpoint.cluster_version = version.cluster;
    match gateway.status().await? {
        Ok(status) => endpoint.status = Some(status),
        Err(refusal) => endpoint.problems.push(format!("does not report its status: {refusal}")),
    }
    match gateway.members(&endpoint.version).await? {
        Ok(members) => endpoint.members = Some(members),
        Err(refusal) => endpoint.problems.push(format!("does not list the members: {refusal}")),
    }
    match gateway.alarms().await? {
        Ok(alarms) => endpoint.alarms = alarms,
        Err(refusal) => endpoint.problems.push(format!("does not list the alarms: {refusal}")),
    }
    if questions.allow_full {
        endpoint.leave_out_full();
    } else if knows_health(&endpoint.version)
        && let Err(refusal) = gateway.health().await?
    {
        endpoint.problems.push(format!("is not healthy: {refusal}"));
    }
    if questions.linearizable {
        let read = gateway.read_key(b"health").await?;
        endpoint.linearizable = Some(read.is_ok());
        if let Err(refusal) = read {
            endpoint.failed_tests.push(format!("rejects linearizable reads: {refusal}"));
        }
    }
    if let Some(key) = questions.write_test_key {
        let written = gateway.write_and_delete(key).await?;
        endpoint.writable = Some(written.is_ok());
        if let Err(refusal) = written {
            endpoint.failed_tests.push(format!("rejects writes: {refusal}"));
        }
    }
    if questions.metrics {
        endpoint.metrics = gateway.metrics().await?.ok();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
