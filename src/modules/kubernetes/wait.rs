//! Waiting until an object is ready, or gone.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value as Json;

use super::api::{Api, ObjectLocation};
use crate::modules::Error;
use crate::value::Value;

/// How long to wait, and how often to look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitLimits {
    pub limit: Duration,
    pub pause: Duration,
}

/// A condition in an object's status.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: Option<Value>,
    reason: Option<String>,
}

impl Condition {
    /// From an argument.
    pub(crate) fn given(argument: Option<&Value>) -> Result<Option<Condition>, Error> {
        super::structure("wait_condition", "type, status and reason", argument)
    }

    fn named(kind: &str) -> Condition {
        Condition { kind: kind.to_owned(), status: None, reason: None }
    }

    /// `True`, `False` or `Unknown`; a YAML truth counts, too.
    fn status(&self) -> String {
        let text = self.status.as_ref().map_or_else(|| "True".to_owned(), Value::to_string);
        let mut letters = text.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters.flat_map(char::to_lowercase)).collect())
            .unwrap_or_default()
    }

    /// Err: why it does not hold.
    fn holds(&self, object: &Json) -> Result<(), String> {
        let conditions = object.pointer("/status/conditions").and_then(Json::as_array);
        let found = conditions.into_iter().flatten().find(|condition| text(condition, "type") == self.kind);
        let found = found.ok_or_else(|| format!("it has no condition {} yet", self.kind))?;
        let as_wanted = text(found, "status") == self.status()
            && self.reason.as_ref().is_none_or(|reason| text(found, "reason") == *reason);
        match as_wanted {
            true => Ok(()),
            false => Err(described(found)),
        }
    }
}

/// Waits until the object is there and ready: until `condition` holds, or what its kind calls ready. Gives the object.
pub(super) async fn until_ready(
    api: &Api,
    place: &ObjectLocation,
    condition: Option<&Condition>,
    patience: WaitLimits,
) -> Result<Json, Error> {
    let since = Instant::now();
    loop {
        let why = match api.get(place).await? {
            None => "it does not exist".to_owned(),
            Some(object) => match ready(&object, condition) {
                Ok(()) => return Ok(object),
                Err(why) => why,
            },
        };
        if since.elapsed() >= patience.limit {
            let seconds = patience.limit.as_secs();
            return Err(Error::failed(format!("{} is not ready after {seconds} seconds: {why}", place.label)));
        }
        tokio::time::sleep(patience.pause).await;
    }
}

/// Waits until an object is deleted; a new one of the same name does not count.
pub(super) async fn until_gone(
    api: &Api,
    place: &ObjectLocation,
    uid: Option<&str>,
    patience: WaitLimits,
) -> Result<(), Error> {
    let since = Instant::now();
    loop {
        let Some(object) = api.get(place).await? else { return Ok(()) };
        if uid.is_some() && object.pointer("/metadata/uid").and_then(Json::as_str) != uid {
            return Ok(());
        }
        if since.elapsed() >= patience.limit {
            let seconds = patience.limit.as_secs();
            let held = holders(&object);
            return Err(Error::failed(format!("{} still exists after {seconds} seconds{held}", place.label)));
        }
        tokio::time::sleep(patience.pause).await;
    }
}

/// Who keeps an object from going.
fn holders(object: &Json) -> String {
    let mut held = String::new();
    for path in ["/metadata/finalizers", "/spec/finalizers"] {
        let names: Vec<&str> =
            object.pointer(path).and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
        if !names.is_empty() {
            held.push_str(&format!(", held by {}", names.join(", ")));
        }
    }
    let conditions = object.pointer("/status/conditions").and_then(Json::as_array);
    for condition in conditions.into_iter().flatten().filter(|condition| text(condition, "status") == "True") {
        held.push_str(&format!("; {}", described(condition)));
    }
    held
}

/// Err: why it is not ready.
pub(super) fn ready(object: &Json, condition: Option<&Condition>) -> Result<(), String> {
    if let Some(condition) = condition {
        return condition.holds(object);
    }
    let number = |path: &str| object.pointer(path).and_then(Json::as_i64);
    let all = |what: &str, have: &str, want: i64| match number(have).unwrap_or(0) {
        have if have == want => Ok(()),
        have => Err(format!("{have} of {want} {what}")),
    };
    let observed = || match (number("/status/observedGeneration"), number("/metadata/generation")) {
        (seen, Some(generation)) if seen.unwrap_or(0) < generation => {
            Err("its controller has not processed it yet".to_owned())
        }
        _ => Ok(()),
    };
    let replicas = number("/spec/replicas").unwrap_or(1);
    match object.get("kind").and_then(Json::as_str).unwrap_or_default() {
        "Deployment" => {
            observed()?;
            all("replicas are up to date", "/status/updatedReplicas", replicas)?;
            all("replicas are available", "/status/availableReplicas", replicas)
        }
        "StatefulSet" => {
            observed()?;
            all("replicas are up to date", "/status/updatedReplicas", replicas)?;
            all("replicas are ready", "/status/readyReplicas", replicas)
        }
        "DaemonSet" => {
            observed()?;
            let hosts = number("/status/desiredNumberScheduled").unwrap_or(0);
            all("are up to date", "/status/updatedNumberScheduled", hosts)?;
            all("are ready", "/status/numberReady", hosts)
        }
        "Pod" => Condition::named("Ready").holds(object),
        "CustomResourceDefinition" => Condition::named("Established").holds(object),
        "APIService" => Condition::named("Available").holds(object),
        _ => Ok(()),
    }
}

/// `Available is False (MissingEndpoints): no addresses`
fn described(condition: &Json) -> String {
    let mut words = format!("{} is {}", text(condition, "type"), text(condition, "status"));
    for (name, before, after) in [("reason", " (", ")"), ("message", ": ", "")] {
        let part = text(condition, name);
        if !part.is_empty() {
            words.push_str(&format!("{before}{part}{after}"));
        }
    }
    words
}

fn text<'a>(object: &'a Json, name: &str) -> &'a str {
    object.get(name).and_then(Json::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployment_is_ready_when_all_replicas_are_the_new_ones_and_available() {
        let deployment = |seen, updated, available| {
            json!({"kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 3},
                "status": {"observedGeneration": seen, "updatedReplicas": updated, "availableReplicas": available}})
        };
        let why = |object| ready(&object, None).unwrap_err();
        assert_eq!(why(deployment(1, 3, 3)), "its controller has not processed it yet");
        assert_eq!(why(deployment(2, 1, 3)), "1 of 3 replicas are up to date");
        assert_eq!(why(deployment(2, 3, 2)), "2 of 3 replicas are available");
        assert_eq!(ready(&deployment(2, 3, 3), None), Ok(()));
    }

    #[test]
    fn a_condition_that_does_not_hold_is_reported_with_its_reason() {
        let condition =
            json!({"type": "Available", "status": "False", "reason": "MissingEndpoints", "message": "no addresses"});
        let service = json!({"kind": "APIService", "status": {"conditions": [condition]}});
        assert_eq!(ready(&service, None).unwrap_err(), "Available is False (MissingEndpoints): no addresses");
        let wanted: Condition = serde_json::from_value(json!({"type": "Available", "status": false})).unwrap();
        assert_eq!(ready(&service, Some(&wanted)), Ok(()));
        let wanted: Condition = serde_json::from_value(json!({"type": "Ready"})).unwrap();
        assert_eq!(ready(&service, Some(&wanted)).unwrap_err(), "it has no condition Ready yet");
    }

    #[test]
    fn what_holds_a_namespace_is_reported() {
        let condition =
            json!({"type": "NamespaceDeletionDiscoveryFailure", "status": "True", "reason": "DiscoveryFailed"});
        let namespace = json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"conditions": [condition]}});
        let reported = holders(&namespace);
        assert_eq!(reported, ", held by kubernetes; NamespaceDeletionDiscoveryFailure is True (DiscoveryFailed)");
    }
}
