//! The state of a deployment: etcd, the components, the members and their certificates, and reasons for unhealthy ones.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::contract::Status;
use super::control::{Control, Outcome};
use super::journal::Journal;
use super::lock::Holder;
use super::reply::{self, Reply};
use super::{Deployment, Error, Site};
use crate::value::Vars;

/// What was found.
pub struct Report {
    pub deployment: Deployment,
    /// What `status.yml` reported. None: no host was left to do so.
    pub status: Option<Status>,
    /// Hosts that were not reached, with the reason.
    pub unreachable: BTreeMap<String, String>,
    /// Tasks that failed: `HOST: MESSAGE`.
    pub failures: Vec<String>,
    /// The run that holds the lock.
    pub holder: Option<Holder>,
    /// The last apply or operation, if it did not come to its end and does not run.
    pub unfinished: Option<Journal>,
    pub outcome: Outcome,
}

/// Asks all hosts, changes nothing. None: the caller cancelled it.
///
/// # Errors
/// The deployment cannot be read.
pub async fn read_status(site: &Site, control: &Control) -> Result<Option<Report>, Error> {
    let phase = site.read_inventory().await?;
    let deployment = phase.deployment(control).await?;
    let Some(reply) = reply::run_reporting_playbook(&phase, Vars::default(), None, control).await? else {
        return Ok(None);
    };
    let holder = deployment.holder().await;
    let is_running =
        |journal: &Journal| holder.as_ref().is_some_and(|holder| holder.record.run.as_ref() == Some(&journal.apply));
    let unfinished = deployment.journal().await.filter(|journal| !journal.done && !is_running(journal));
    let Reply { reported, mut unreachable, failures, outcome } = reply;
    unreachable.values_mut().for_each(|why| *why = short_text(why));
    let status = reported.map(with_short_texts);
    Ok(Some(Report { deployment, status, unreachable, failures, holder, unfinished, outcome }))
}

/// The longest text of a host, in characters. One host is not to make a status that cannot be shown.
const LONGEST: usize = 200;

/// How many texts a list of a host has at the most.
const MOST: usize = 100;

/// A text of a host, as it is shown.
pub fn short_text(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn with_short_texts(mut status: Status) -> Status {
    status.silent.iter_mut().for_each(|host| *host = short_text(host));
    status.etcd.iter_mut().for_each(shorten);
    status.components.iter_mut().for_each(shorten);
    status.members.iter_mut().flatten().for_each(shorten);
    status
}

/// Shortens all texts of a row.
fn shorten<T: Serialize + DeserializeOwned>(row: &mut T) {
    let mut json = serde_json::json!(row);
    shorten_json(&mut json);
    *row = serde_json::from_value(json).expect("it has the same fields");
}

fn shorten_json(json: &mut Json) {
    match json {
        Json::String(text) => *text = short_text(text),
        Json::Array(items) => {
            items.truncate(MOST);
            items.iter_mut().for_each(shorten_json);
        }
        Json::Object(fields) => fields.values_mut().for_each(shorten_json),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract::{ComponentRow, EtcdRow, LocalBackupRow, MemberRow, StatusNumber};
    use super::*;

    #[test]
    fn what_a_host_says_is_short() {
        let long = || "é".repeat(1 << 20);
        let number = || StatusNumber::Text(long());
        let etcd = EtcdRow {
            host: "h1".into(),
            version: long(),
            role: long(),
            db_size: 20480,
            alarms: vec![long(); 1000],
            healthy: false,
            why: long(),
            port: StatusNumber::Number(2379),
            not_after: long(),
            days_left: number(),
            local_backup: Some(LocalBackupRow {
                interval_minutes: 5,
                age_seconds: None,
                revision: None,
                has_leader: false,
                problem: long(),
            }),
        };
        let component = ComponentRow {
            component: "webhook".into(),
            host: "h1".into(),
            state: long(),
            ready: true,
            why: String::new(),
            leads: false,
            version: long(),
            days_left: number(),
            port: number(),
        };
        let member = MemberRow {
            name: long(),
            mode: "Push".into(),
            version: long(),
            deployment: long(),
            ready: false,
            why: long(),
        };
        let status = Status {
            layout: 2,
            silent: vec![long()],
            etcd: vec![etcd.clone()],
            components: vec![component],
            members: Some(vec![member]),
        };
        let short = with_short_texts(status);
        assert_eq!(short.etcd[0].version, format!("{}…", "é".repeat(200)));
        assert_eq!((short.etcd[0].db_size, &short.etcd[0].port), (etcd.db_size, &etcd.port));
        assert_eq!(short.components[0].component, "webhook");
        let all = serde_json::json!([short.silent, short.etcd, short.components, short.members]).to_string();
        assert!(all.len() < 100_000, "{}", all.len());
        assert_eq!(short_text(&"x".repeat(200)), "x".repeat(200));
    }
}
