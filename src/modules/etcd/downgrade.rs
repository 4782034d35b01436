//! `etcd_downgrade`: makes a cluster ready for programs of the minor version before, or takes that back.

use serde::Deserialize;

use super::gateway::{DowngradeAction, Status};
use super::one_member::OneMember;
use super::{CA_CERT, CLIENT_CERT, CLIENT_KEY, Changes, Controller, Error, Module, Outcome, Plan, REMOTE_SRC};
use crate::remote::{Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DowngradeState {
    Enabled,
    Cancelled,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::modules) struct EtcdDowngrade {
    endpoint: String,
    version: Option<String>,
    state: DowngradeState,
    ca_cert: Option<String>,
    client_cert: Option<String>,
    client_key: Option<String>,
    remote_src: bool,
    timeout: u64,
}

impl Module for EtcdDowngrade {
    const CHANGES: Changes = Changes::Other;
    const DOC: Doc = Doc {
        name: "etcd_downgrade",
        collection: "windlass",
        summary: "Make an etcd cluster ready for programs of the minor version before, or take that back",
        arguments: &[
            Argument::new("endpoint", ArgumentKind::Str, "Client address of one member as seen from the host")
                .required(),
            Argument::new(
                "version",
                ArgumentKind::Str,
                "The minor version to go to, one below that of the cluster, for example 3.5. Required by enabled",
            ),
            Argument::new(
                "state",
                ArgumentKind::Str,
                "enabled: the members convert their data, which takes some seconds: wait until storage_version of each of them has the \
                 version. A cluster that has this version already stays as it is. cancelled: a downgrade that was enabled is taken back",
            )
            .choices(&["enabled", "cancelled"])
            .default("enabled"),
            CA_CERT,
            CLIENT_CERT,
            CLIENT_KEY,
            REMOTE_SRC,
            Argument::new("timeout", ArgumentKind::Int, "Timeout for one request, in seconds").default("10"),
        ],
        free_form: None,
        example: "\
- name: Make the cluster ready for etcd 3.5
  windlass.etcd_downgrade:
    endpoint: https://10.0.0.1:2379
    version: '3.5'
    ca_cert: /etc/etcd/pki/ca.crt
    client_cert: /etc/etcd/pki/client.crt
    client_key: /etc/etcd/pki/client.key
",
        returns: &[
            Return::new("cluster_version", "The version of the cluster before, for example 3.6.0"),
            Return::new("downgrade_target", "The version that a downgrade was enabled to before, or empty"),
        ],
    };
    /// What it returns.
    type Change = Outcome;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<Outcome>, Error> {
        let member = self.member();
        let (tls, url) = member.connect(probe, here).await?;
        let gateway = member.gateway(probe, &tls, url);
        let cluster = member.answered(gateway.server_version().await)?.cluster;
        let status = member.status(&gateway).await?;
        let outcome = Outcome::default()
            .with("cluster_version", Value::from(cluster.as_str()))
            .with("downgrade_target", Value::from(status.downgrade_info.target_version.as_str()));
        if self.is_done(&cluster, &status)? {
            return Ok(Plan::Unchanged(outcome));
        }
        if self.state == DowngradeState::Enabled {
            let validated = gateway.downgrade(DowngradeAction::Validate, self.minor()?).await;
            member.granted("refuses the downgrade", validated)?;
        }
        Ok(Plan::Change { diff: Vec::new(), outcome: outcome.clone(), change: outcome })
    }

    async fn apply(&self, before: Outcome, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let member = self.member();
        let (tls, url) = member.connect(remote, here).await?;
        let gateway = member.gateway(remote, &tls, url);
        let done = match self.state {
            DowngradeState::Enabled => gateway.downgrade(DowngradeAction::Enable, self.minor()?).await,
            DowngradeState::Cancelled => gateway.downgrade(DowngradeAction::Cancel, "").await,
        };
        member.granted("refuses the request", done)?;
        Ok(before)
    }
}

impl EtcdDowngrade {
    fn member(&self) -> OneMember<'_> {
        OneMember {
            endpoint: &self.endpoint,
            ca_cert: self.ca_cert.as_deref(),
            client_cert: self.client_cert.as_deref(),
            client_key: self.client_key.as_deref(),
            remote_src: self.remote_src,
            timeout: self.timeout,
        }
    }

    fn minor(&self) -> Result<&str, Error> {
        let minor = self.version.as_deref().unwrap_or_default();
        let is_minor = matches!(minor.split_once('.'), Some((major, minor))
            if [major, minor].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())));
        match is_minor {
            true => Ok(minor),
            false => Err(Error::failed(format!("version must be a minor version such as 3.5, and is {minor:?}"))),
        }
    }

    /// Whether nothing is to be done. While a downgrade is enabled, the version of the cluster is the older one already.
    fn is_done(&self, cluster: &str, status: &Status) -> Result<bool, Error> {
        let target = &status.downgrade_info.target_version;
        match self.state {
            DowngradeState::Cancelled => Ok(!status.downgrade_info.enabled),
            DowngradeState::Enabled => {
                let minor = self.minor()?;
                if status.downgrade_info.enabled && !is_of_minor(target, minor) {
                    return Err(Error::failed(format!(
                        "a downgrade of the cluster to {target} is under way: complete it, or cancel it"
                    )));
                }
                Ok(status.downgrade_info.enabled || is_of_minor(cluster, minor))
            }
        }
    }
}

/// Whether `3.5.0` is a release of `3.5`.
fn is_of_minor(version: &str, minor: &str) -> bool {
    version.strip_prefix(minor).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::super::gateway::DowngradeInfo;
    use super::*;

    fn request(state: DowngradeState, version: &str) -> EtcdDowngrade {
        EtcdDowngrade {
            endpoint: String::new(),
            version: Some(version.into()),
            state,
            ca_cert: None,
            client_cert: None,
            client_key: None,
            remote_src: true,
            timeout: 1,
        }
    }

    fn status(target: &str) -> Status {
        let downgrade_info = DowngradeInfo { enabled: !target.is_empty(), target_version: target.into() };
        Status { downgrade_info, ..Status::default() }
    }

    #[test]
    fn a_downgrade_is_enabled_once() {
        let enable = request(DowngradeState::Enabled, "3.5");
        let done = |cluster, target| enable.is_done(cluster, &status(target)).map_err(|error| error.to_string());
        assert_eq!(done("3.6.0", ""), Ok(false));
        assert_eq!(done("3.6.0", "3.5.0"), Ok(true), "it takes some seconds until the version of the cluster changes");
        assert_eq!(done("3.5.0", "3.5.0"), Ok(true));
        assert_eq!(done("3.5.0", ""), Ok(true), "an upgrade that was not completed");
        assert!(done("3.6.0", "3.4.0").unwrap_err().contains("3.4.0 is under way"));
        assert_eq!(done("3.50.0", ""), Ok(false));
        for wrong in ["", "3", "3.", "3.5.1", "v3.5", "3.x"] {
            assert!(request(DowngradeState::Enabled, wrong).is_done("3.6.0", &status("")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_was_enabled_is_cancelled() {
        let cancel = request(DowngradeState::Cancelled, "");
        let done = |target| cancel.is_done("3.6.0", &status(target)).map_err(|error| error.to_string());
        assert_eq!((done("3.5.0"), done("")), (Ok(false), Ok(true)));
    }
}
