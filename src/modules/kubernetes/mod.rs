//! Modules around the Kubernetes API: `k8s` and `k8s_info`. Their requests go through the connection to the task's host
//! and are made here, so the host needs no kubectl, and this machine no route to the API.

mod access;
mod api;
mod compare;
mod definitions;
mod failure;
mod info;
mod k8s;
mod kubeconfig;
mod tunnel;
mod wait;
mod work;

pub(super) use info::K8sInfo;
pub(super) use k8s::K8s;

use serde::de::DeserializeOwned;

use super::Error;
use crate::value::Value;

/// Who owns the fields that are set here, unless a task says otherwise.
const FIELD_MANAGER: &str = "windlass";

/// An argument that is a mapping of its own form; `takes` says which, for people.
fn structure<T: DeserializeOwned>(name: &str, takes: &str, argument: Option<&Value>) -> Result<Option<T>, Error> {
    let Some(value) = argument else { return Ok(None) };
    let parsed = T::deserialize(value.clone());
    parsed.map(Some).map_err(|_| Error::failed(format!("{name} must be a mapping with {takes}")))
}
