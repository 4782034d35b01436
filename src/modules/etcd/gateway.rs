//! One member's JSON gateway, and the plain endpoints beside it. Numbers of 64 bits come as strings there.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::http::{self, HttpError, Request, Response, Tls, Url};
use crate::remote::Probe;

/// A member's error response.
pub(super) type Refusal = String;

#[derive(Debug, Clone, Copy)]
pub(super) enum DowngradeAction {
    Validate,
    Enable,
    Cancel,
}

pub(super) struct Gateway<'a> {
    pub probe: &'a Probe,
    pub tls: &'a Tls,
    pub url: Url,
    pub limit: Duration,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Version {
    #[serde(rename = "etcdserver")]
    pub server: String,
    #[serde(rename = "etcdcluster")]
    pub cluster: String,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    #[serde(deserialize_with = "number")]
    pub cluster_id: u64,
    #[serde(deserialize_with = "number")]
    pub member_id: u64,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    pub header: Header,
    #[serde(deserialize_with = "number")]
    pub db_size: u64,
    #[serde(deserialize_with = "number")]
    pub db_size_in_use: u64,
    #[serde(deserialize_with = "number")]
    pub leader: u64,
    #[serde(deserialize_with = "number")]
    pub raft_term: u64,
    #[serde(deserialize_with = "number")]
    pub raft_index: u64,
    #[serde(deserialize_with = "number")]
    pub raft_applied_index: u64,
    pub is_learner: bool,
    pub errors: Vec<String>,
    /// The version whose format the database has: `3.6.0`. Empty before 3.6.
    pub storage_version: String,
    pub downgrade_info: DowngradeInfo,
}

/// Whether the cluster is being downgraded. Nothing before 3.6.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct DowngradeInfo {
    pub enabled: bool,
    /// `3.5.0`
    pub target_version: String,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub(super) struct Member {
    #[serde(rename = "ID", deserialize_with = "number")]
    pub id: u64,
    /// Empty: it was added, but never started.
    pub name: String,
    #[serde(rename = "peerURLs")]
    pub peer_urls: Vec<String>,
    #[serde(rename = "clientURLs")]
    pub client_urls: Vec<String>,
    #[serde(rename = "isLearner")]
    pub is_learner: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub(super) struct Alarm {
    #[serde(rename = "memberID", deserialize_with = "number")]
    pub member: u64,
    pub alarm: String,
}

/// What a member's metrics say.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Metrics {
    /// Bytes that its database may have. None: no limit is known.
    pub quota: Option<f64>,
    /// Milliseconds within which 99 of 100 syncs of the write-ahead log ended since the member started. None: fewer than a hundred.
    pub fsync_p99: Option<f64>,
}

impl Metrics {
    fn parse(text: &str) -> Metrics {
        const FSYNC: &str = "etcd_disk_wal_fsync_duration_seconds_bucket{le=\"";
        let mut metrics = Metrics::default();
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for line in text.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            if name == "etcd_server_quota_backend_bytes" {
                metrics.quota = Some(value).filter(|quota| *quota > 0.0);
            } else if let Some(limit) = name.strip_prefix(FSYNC).and_then(|rest| rest.strip_suffix("\"}")) {
                buckets.push((limit.parse().unwrap_or(f64::INFINITY), value));
            }
        }
        let all = buckets.last().map_or(0.0, |(_, count)| *count);
        let enough = buckets.iter().find(|(_, count)| all >= 100.0 && *count >= all * 0.99);
        metrics.fsync_p99 = enough.map(|(limit, _)| limit * 1000.0);
        metrics
    }
}

impl Gateway<'_> {
    pub(super) async fn server_version(&self) -> Result<Version, HttpError> {
        let response = self.get("/version").await?;
        self.parse(&response)
    }

    pub(super) async fn health(&self) -> Result<Result<(), Refusal>, HttpError> {
        #[derive(Deserialize)]
        struct Health {
            health: Value,
            #[serde(default)]
            reason: String,
        }
        let response = self.get("/health").await?;
        let Ok(health) = serde_json::from_slice::<Health>(&response.body) else { return Ok(Err(refusal(&response))) };
        Ok(match health.health == json!("true") || health.health == json!(true) {
            true => Ok(()),
            false if health.reason.is_empty() => Err("it reports itself as unhealthy".to_owned()),
            false => Err(health.reason),
        })
    }

    pub(super) async fn status(&self) -> Result<Result<Status, Refusal>, HttpError> {
        self.call("/v3/maintenance/status", json!({})).await
    }

    /// The figures that only the metrics tell. The client address serves them too.
    pub(super) async fn metrics(&self) -> Result<Result<Metrics, Refusal>, HttpError> {
        let response = self.get("/metrics").await?;
        Ok(match response.status {
            200 => Ok(Metrics::parse(&String::from_utf8_lossy(&response.body))),
            _ => Err(refusal(&response)),
        })
    }

    /// The members as this one knows them.
    pub(super) async fn members(&self, version: &str) -> Result<Result<Vec<Member>, Refusal>, HttpError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct List {
            members: Vec<Member>,
        }
        // From 3.5 on the list needs a quorum unless asked otherwise; 3.4 does not know the word.
        let body = if version.starts_with("3.4.") { json!({}) } else { json!({"linearizable": false}) };
        let list = self.call::<List>("/v3/cluster/member/list", body).await?;
        Ok(list.map(|mut list| {
            list.members.sort();
            list.members
        }))
    }

    pub(super) async fn alarms(&self) -> Result<Result<Vec<Alarm>, Refusal>, HttpError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct List {
            alarms: Vec<Alarm>,
        }
        Ok(self.call::<List>("/v3/maintenance/alarm", json!({"action": "GET"})).await?.map(|list| list.alarms))
    }

    /// A read that needs a quorum. None: there is no such key.
    pub(super) async fn read_key(&self, key: &[u8]) -> Result<Result<Option<Vec<u8>>, Refusal>, HttpError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Range {
            kvs: Vec<Pair>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Pair {
            value: String,
        }
        let range = self.call::<Range>("/v3/kv/range", json!({"key": BASE64.encode(key), "limit": 1})).await?;
        Ok(range.map(|range| range.kvs.first().map(|pair| BASE64.decode(&pair.value).unwrap_or_default())))
    }

    /// Writes a key of this member's own below `key`, reads it back, and deletes it.
    pub(super) async fn write_and_delete(&self, key: &str) -> Result<Result<(), Refusal>, HttpError> {
        let key = format!("{key}/{}", self.url.address());
        let content: [u8; 16] = rand::random();
        let put = json!({"key": BASE64.encode(&key), "value": BASE64.encode(content)});
        if let Err(refusal) = self.call::<Value>("/v3/kv/put", put).await? {
            return Ok(Err(refusal));
        }
        let read = self.read_key(key.as_bytes()).await?;
        let deleted = self.call::<Value>("/v3/kv/deleterange", json!({"key": BASE64.encode(&key)})).await?;
        Ok(match (read, deleted) {
            (Err(refusal), _) | (_, Err(refusal)) => Err(refusal),
            (Ok(Some(found)), Ok(_)) if found == content => Ok(()),
            (Ok(_), Ok(_)) => Err("the value read differs from the value written".to_owned()),
        })
    }

    /// Registers a member without a vote.
    pub(super) async fn add_learner(&self, peer_url: &str) -> Result<Result<(), Refusal>, HttpError> {
        self.send_change("/v3/cluster/member/add", json!({"peerURLs": [peer_url], "isLearner": true})).await
    }

    pub(super) async fn promote_member(&self, id: u64) -> Result<Result<(), Refusal>, HttpError> {
        self.send_change("/v3/cluster/member/promote", json!({"ID": id.to_string()})).await
    }

    pub(super) async fn remove_member(&self, id: u64) -> Result<Result<(), Refusal>, HttpError> {
        self.send_change("/v3/cluster/member/remove", json!({"ID": id.to_string()})).await
    }

    /// Only the leader does this.
    pub(super) async fn move_leader(&self, to: u64) -> Result<Result<(), Refusal>, HttpError> {
        self.send_change("/v3/maintenance/transfer-leadership", json!({"targetID": to.to_string()})).await
    }

    /// Rewrites the database without the space that is no longer used. The member answers nobody meanwhile.
    pub(super) async fn defragment(&self) -> Result<Result<(), Refusal>, HttpError> {
        self.send_change("/v3/maintenance/defragment", json!({})).await
    }

    /// Checks, enables or cancels a downgrade to a minor version, `3.5`. From 3.5 on; a cluster can be downgraded from 3.6 on.
    pub(super) async fn downgrade(
        &self,
        action: DowngradeAction,
        minor: &str,
    ) -> Result<Result<(), Refusal>, HttpError> {
        let action = match action {
            DowngradeAction::Validate => "VALIDATE",
            DowngradeAction::Enable => "ENABLE",
            DowngradeAction::Cancel => "CANCEL",
        };
        self.send_change("/v3/maintenance/downgrade", json!({"action": action, "version": minor})).await
    }

    async fn send_change(&self, path: &str, body: Value) -> Result<Result<(), Refusal>, HttpError> {
        Ok(self.call::<Value>(path, body).await?.map(drop))
    }

    async fn get(&self, path: &str) -> Result<Response, HttpError> {
        self.send(Request::get(Url { path: path.to_owned(), ..self.url.clone() })).await
    }

    async fn call<T: for<'de> Deserialize<'de>>(
        &self,
        path: &str,
        body: Value,
    ) -> Result<Result<T, Refusal>, HttpError> {
        let request = Request {
            method: "POST".to_owned(),
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.to_string().into_bytes(),
            ..Request::get(Url { path: path.to_owned(), ..self.url.clone() })
        };
        let response = self.send(request).await?;
        if response.status != 200 {
            return Ok(Err(refusal(&response)));
        }
        self.parse(&response).map(Ok)
    }

    async fn send(&self, request: Request) -> Result<Response, HttpError> {
        http::send(self.probe, self.tls, &request, self.limit).await
    }

    fn parse<T: for<'de> Deserialize<'de>>(&self, response: &Response) -> Result<T, HttpError> {
        serde_json::from_slice(&response.body).map_err(|_| HttpError::Protocol {
            address: self.url.address(),
            reason: format!("this does not look like etcd: {}", refusal(response)),
        })
    }
}

/// The words of a refusal: the gateway's `message` or `error`, or else the beginning of the body.
fn refusal(response: &Response) -> Refusal {
    const LONGEST: usize = 200;
    let json: Option<Value> = serde_json::from_slice(&response.body).ok();
    let words = json.as_ref().and_then(|json| json.get("message").or_else(|| json.get("error"))?.as_str());
    let body = String::from_utf8_lossy(&response.body);
    let words = words.unwrap_or_else(|| body.lines().next().unwrap_or_default());
    format!("{} (HTTP {})", words.chars().take(LONGEST).collect::<String>(), response.status)
}

/// A number, or a string of one.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => text.parse().map_err(serde::de::Error::custom),
        Value::Number(number) => number.as_u64().ok_or_else(|| serde::de::Error::custom("not a whole number")),
        _ => Err(serde::de::Error::custom("not a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_percentile_is_the_bucket_that_holds_it() {
        let text = "# HELP x\netcd_server_quota_backend_bytes 8.589934592e+09\n\
            etcd_disk_wal_fsync_duration_seconds_bucket{le=\"0.001\"} 90\n\
            etcd_disk_wal_fsync_duration_seconds_bucket{le=\"0.008\"} 990\n\
            etcd_disk_wal_fsync_duration_seconds_bucket{le=\"+Inf\"} 1000\n";
        assert_eq!(Metrics::parse(text), Metrics { quota: Some(8_589_934_592.0), fsync_p99: Some(8.0) });
        assert_eq!(Metrics::parse(&text.replace("1000", "99").replace("990", "99")).fsync_p99, None);
        assert_eq!(Metrics::parse(""), Metrics::default());
    }
}
