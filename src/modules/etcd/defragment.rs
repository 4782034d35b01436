//! `etcd_defragment`: rewrites a member's database without the space that is no longer used.

use std::time::{Duration, Instant};

use serde::Deserialize;

use super::gateway::Status;
use super::one_member::OneMember;
use super::{CA_CERT, CLIENT_CERT, CLIENT_KEY, Changes, Controller, Error, Module, Outcome, Plan, REMOTE_SRC};
use crate::http::HttpError;
use crate::remote::{Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

const MIB: u64 = 1 << 20;
/// Between two reads of a member that does not answer yet.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::modules) struct EtcdDefragment {
    endpoint: String,
    ca_cert: Option<String>,
    client_cert: Option<String>,
    client_key: Option<String>,
    remote_src: bool,
    timeout: u64,
    unused_percent: u64,
    unused_mb: u64,
}

impl Module for EtcdDefragment {
    const CHANGES: Changes = Changes::Other;
    const DOC: Doc = Doc {
        name: "etcd_defragment",
        collection: "windlass",
        summary: "Give the unused space in the database of an etcd member back to the file system",
        arguments: &[
            Argument::new("endpoint", ArgumentKind::Str, "Client address of one member as seen from the host")
                .required(),
            CA_CERT,
            CLIENT_CERT,
            CLIENT_KEY,
            REMOTE_SRC,
            Argument::new(
                "timeout",
                ArgumentKind::Int,
                "How long it may take, in seconds. The member answers no client meanwhile",
            )
            .default("600"),
            Argument::new(
                "unused_percent",
                ArgumentKind::Int,
                "Do nothing if less than this part of the database is unused, in percent",
            )
            .default("45"),
            Argument::new("unused_mb", ArgumentKind::Int, "Do nothing if less than this is unused, in MiB")
                .default("100"),
        ],
        free_form: None,
        example: "\
- name: Defragment the database
  windlass.etcd_defragment:
    endpoint: https://10.0.0.1:2379
    ca_cert: /etc/etcd/pki/ca.crt
    client_cert: /etc/etcd/pki/client.crt
    client_key: /etc/etcd/pki/client.key
",
        returns: &[
            Return::new("db_size", "Size of the database, in bytes; after the change if there was one"),
            Return::new("db_size_in_use", "How much of it is in use, in bytes"),
            Return::new("unused_percent", "The part that is unused, in percent; after the change if there was one"),
            Return::new("pays", "Whether so much is unused that the task changes something"),
            Return::new("freed_mb", "By how much the database became smaller, in MiB; in check mode about how much"),
            Return::new("seconds", "How long the member answered no client"),
        ],
    };
    /// The size of the database before.
    type Change = u64;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<u64>, Error> {
        let member = self.member();
        let (tls, url) = member.connect(probe, here).await?;
        let before = member.status(&member.gateway(probe, &tls, url)).await?;
        let unused = unused(&before);
        let pays = self.pays(&before);
        let freed = if pays { unused / MIB } else { 0 };
        let outcome = outcome(&before, pays).with("freed_mb", Value::from(freed));
        Ok(match pays {
            true => Plan::Change { diff: Vec::new(), outcome, change: before.db_size },
            false => Plan::Unchanged(outcome),
        })
    }

    async fn apply(&self, before: u64, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let member = self.member();
        let (tls, url) = member.connect(remote, here).await?;
        let gateway = member.gateway(remote, &tls, url);
        let begun = Instant::now();
        match gateway.defragment().await {
            Ok(Ok(())) => {}
            Ok(Err(refusal)) => return Err(Error::failed(format!("{}: etcd refused: {refusal}", self.endpoint))),
            Err(HttpError::Host(error)) => return Err(error.into()),
            // etcd does not stop because its client does.
            Err(failure) => {
                let message = format!(
                    "{}: {failure}. The member may still be defragmenting, and answers no client until it has finished",
                    self.endpoint
                );
                return Err(Error::failed(message));
            }
        }
        let took = begun.elapsed();
        // One that does not serve again must not be followed by the next one.
        loop {
            match gateway.read_key(b"health").await {
                Ok(Ok(_)) => break,
                Err(HttpError::Host(error)) => return Err(error.into()),
                Ok(Err(why)) if begun.elapsed() > gateway.limit => return Err(self.not_serving(&why)),
                Err(failure) if begun.elapsed() > gateway.limit => return Err(self.not_serving(&failure.to_string())),
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
        let after = member.status(&gateway).await?;
        let freed = before.saturating_sub(after.db_size) / MIB;
        let seconds = (took.as_secs_f64() * 10.0).round() / 10.0;
        Ok(outcome(&after, true).with("freed_mb", Value::from(freed)).with("seconds", Value::from(seconds)))
    }
}

impl EtcdDefragment {
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

    fn not_serving(&self, why: &str) -> Error {
        Error::failed(format!("{} was defragmented, but does not serve again: {why}", self.endpoint))
    }

    /// Whether enough is unused to be worth the time in which the member does not answer.
    fn pays(&self, status: &Status) -> bool {
        let unused = unused(status);
        unused > 0 && unused >= self.unused_mb * MIB && unused * 100 >= status.db_size * self.unused_percent
    }
}

fn unused(status: &Status) -> u64 {
    status.db_size.saturating_sub(status.db_size_in_use)
}

fn outcome(status: &Status, pays: bool) -> Outcome {
    let percent = (unused(status) * 100).checked_div(status.db_size).unwrap_or_default();
    Outcome::default()
        .with("db_size", Value::from(status.db_size))
        .with("db_size_in_use", Value::from(status.db_size_in_use))
        .with("unused_percent", Value::from(percent))
        .with("pays", pays)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_pays_if_much_is_unused_by_size_and_by_part() {
        let module = EtcdDefragment {
            endpoint: String::new(),
            ca_cert: None,
            client_cert: None,
            client_key: None,
            remote_src: true,
            timeout: 1,
            unused_percent: 45,
            unused_mb: 100,
        };
        let pays = |size: u64, used: u64| {
            module.pays(&Status { db_size: size * MIB, db_size_in_use: used * MIB, ..Status::default() })
        };
        assert!(pays(400, 200) && pays(1000, 550));
        assert!(!pays(1000, 551), "less than 45 percent");
        assert!(!pays(190, 91), "less than 100 MiB");
        // etcd 3.3 and older do not say how much is in use; and a size may be read before a write and its use after it.
        assert!(!pays(10, 20));
        let eager = EtcdDefragment { unused_percent: 0, unused_mb: 0, ..module };
        assert!(eager.pays(&Status { db_size: 2, db_size_in_use: 1, ..Status::default() }));
        assert!(!eager.pays(&Status { db_size: 1, db_size_in_use: 1, ..Status::default() }), "nothing to gain");
    }
}
