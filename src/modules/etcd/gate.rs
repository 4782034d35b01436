//! `etcd_gate`: whether a cluster may be changed, check by check.

use serde::Deserialize;

use super::checks::{self, CheckState, EtcdCheck, Limits, NAMES};
use super::host_checks::HostFigures;
use super::{
    CA_CERT, CLIENT_CERT, CLIENT_KEY, Changes, Controller, Error, EtcdClusterInfo, Module, Outcome, Plan, REMOTE_SRC,
};
use crate::remote::{Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::modules) struct EtcdGate {
    endpoints: Vec<String>,
    ca_cert: Option<String>,
    client_cert: Option<String>,
    client_key: Option<String>,
    remote_src: bool,
    timeout: u64,
    hosts: Vec<HostFigures>,
    write_test_key: Option<String>,
    allow_full: bool,
    checks: Vec<String>,
    skip: Vec<String>,
    fsync_limit_ms: f64,
    certificate_days: i64,
}

impl Module for EtcdGate {
    const CHANGES: Changes = Changes::Nothing;
    const DOC: Doc = Doc {
        name: "etcd_gate",
        collection: "windlass",
        summary: "Check whether an etcd cluster may be changed: members, leader, alarms, lag, sizes, disks, certificates",
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
            Argument::new("timeout", ArgumentKind::Int, "Timeout for one request to a member, in seconds")
                .default("10"),
            Argument::new(
                "hosts",
                ArgumentKind::List(&ArgumentKind::Dict),
                "What is known of the members' hosts: host, disk_free_mb, days_left, clock, peer_url, local_backup",
            )
            .default("[]"),
            Argument::new(
                "write_test_key",
                ArgumentKind::Str,
                "A key to write, read and delete through every endpoint",
            ),
            Argument::new("allow_full", ArgumentKind::Bool, "Whether members may be out of space (alarm NOSPACE)")
                .default("false"),
            Argument::new("checks", ArgumentKind::List(&ArgumentKind::Str), "The checks to make (default: all)")
                .default("[]"),
            Argument::new("skip", ArgumentKind::List(&ArgumentKind::Str), "The checks to skip").default("[]"),
            Argument::new("fsync_limit_ms", ArgumentKind::Float, "How slow the disk may be, in milliseconds")
                .default("1000"),
            Argument::new("certificate_days", ArgumentKind::Int, "How many days certificates must be valid at least")
                .default("7"),
        ],
        free_form: None,
        example: "\
- name: Check that the cluster may be changed
  windlass.etcd_gate:
    endpoints: ['https://10.0.0.1:2379', 'https://10.0.0.2:2379', 'https://10.0.0.3:2379']
    ca_cert: /etc/etcd/pki/ca.crt
    client_cert: /etc/etcd/pki/client.crt
    client_key: /etc/etcd/pki/client.key
    skip: [fsync]
  register: gate
  failed_when: not gate.passed
",
        returns: &[
            Return::new("passed", "Whether no check refused"),
            Return::new("checks", "Each with check, state (ok, warning, refused, skipped, unknown), found and hint"),
            Return::new("refusals", "Those that refused, as a list of sentences"),
            Return::new("warnings", "Those that warn, as a list of sentences"),
            Return::new("members", "As etcd_cluster_info returns them, with all its other values"),
        ],
    };
    type Change = ();

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<()>, Error> {
        self.refuse_unknown_names()?;
        match self.write_test_key {
            Some(_) if !here.check => Ok(Plan::Unknown(())),
            _ => Ok(Plan::Unchanged(self.pass(probe, here, None).await?)),
        }
    }

    async fn apply(&self, (): (), remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        self.pass(remote, here, self.write_test_key.as_deref()).await
    }
}

impl EtcdGate {
    /// A slip in a name would skip nothing, or check nothing.
    fn refuse_unknown_names(&self) -> Result<(), Error> {
        match self.checks.iter().chain(&self.skip).find(|name| !NAMES.contains(&name.as_str())) {
            Some(name) => {
                Err(Error::failed(format!("there is no check {name:?} of etcd; there are {}", NAMES.join(", "))))
            }
            None => Ok(()),
        }
    }

    async fn pass(&self, probe: &Probe, here: &Controller<'_>, write_test_key: Option<&str>) -> Result<Outcome, Error> {
        let questions = EtcdClusterInfo {
            endpoints: self.endpoints.clone(),
            ca_cert: self.ca_cert.clone(),
            client_cert: self.client_cert.clone(),
            client_key: self.client_key.clone(),
            remote_src: self.remote_src,
            timeout: self.timeout,
            whole_cluster: true,
            linearizable: true,
            write_test_key: None,
            allow_full: self.allow_full,
        };
        let cluster = questions.ask_all(probe, here, write_test_key, true).await?;
        let limits = Limits { fsync_ms: self.fsync_limit_ms, days: self.certificate_days };
        let mut made = checks::run_checks(&cluster, &self.hosts, limits);
        made.retain(|check| self.checks.is_empty() || self.checks.iter().any(|name| name == check.name));
        for check in &mut made {
            let is_skipped = self.skip.iter().any(|name| name == check.name);
            if is_skipped && check.state != CheckState::Ok {
                check.state = CheckState::Skipped;
            }
        }
        let of = |state: CheckState| made.iter().filter(move |check| check.state == state).map(EtcdCheck::sentence);
        let refusals: Vec<String> = of(CheckState::Refused).collect();
        let warnings: Vec<String> = of(CheckState::Warning).collect();
        let mut outcome = cluster.cluster_outcome();
        if !refusals.is_empty() {
            let healthy = outcome.message.take().into_iter();
            let all = healthy.chain(refusals.iter().map(|refusal| format!("refused by the check {refusal}")));
            outcome.message = Some(all.collect::<Vec<_>>().join("\n"));
        }
        Ok(outcome
            .with("passed", refusals.is_empty())
            .with("checks", made.iter().map(EtcdCheck::check_value).collect::<Value>())
            .with("refusals", refusals)
            .with("warnings", warnings))
    }
}
