//! What a `KarmadaDeployment` says to the operator: whether and when it changes hosts.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

/// What says when and by whom hosts are changed, and nothing about the hosts.
const POLICY: [&str; 4] = ["apply", "deletionPolicy", "maintenanceWindows", "paused"];

/// The digest of what a spec says about hosts, in hexadecimal: its policy does not count.
pub fn digest_of_spec(spec: &Json) -> String {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|name, _| !POLICY.contains(&name.as_str()));
    }
    spec.sort_all_objects();
    Sha256::digest(spec.to_string().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A time at which changes may begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MaintenanceWindow {
    /// The days on which it begins, in UTC (default: every day).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 7))]
    pub days: Vec<Weekday>,
    /// When it begins, in UTC, such as 22:30.
    #[schemars(length(max = 5))]
    #[x_kube(validation = Rule::new("self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')")
        .message("the start of a maintenance window must be a time from 00:00 to 23:59"))]
    pub start: String,
    /// How long it lasts.
    #[schemars(range(min = 15, max = 1440))]
    pub minutes: i32,
}

/// A day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Weekday {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

/// Whether the operator applies a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ApplyPolicy {
    /// As soon as there is one, except one that removes members.
    Automatic,
    /// When a Run names its digest.
    #[default]
    Approve,
    /// Never: it only says what differs.
    Never,
}

/// What the operator does with the hosts of a deployment whose object is deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// Nothing.
    #[default]
    Keep,
    /// It waits for a Run that destroys the deployment.
    Destroy,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::digest_of_spec;

    #[test]
    fn the_policy_says_nothing_about_the_hosts() {
        let spec = json!({"bundle": "b", "hosts": [{"name": "h1"}]});
        let mut more = spec.clone();
        for (field, value) in
            [("apply", json!("Automatic")), ("paused", json!(true)), ("deletionPolicy", json!("Destroy"))]
        {
            more[field] = value;
        }
        assert_eq!(digest_of_spec(&spec), digest_of_spec(&more));
        more["bundle"] = json!("c");
        assert_ne!(digest_of_spec(&spec), digest_of_spec(&more));
    }
}
