//! The CustomResourceDefinitions that follow from the types, and the schemas in them as the checks need them.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kube::core::cel::{CompiledSchema, compile_schema};
use serde_json::Value as Json;

use super::{EtcdBackup, EtcdRestore, KarmadaDeployment};

/// The definitions of all kinds, as an API server takes them.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![KarmadaDeployment::crd(), EtcdBackup::crd(), EtcdRestore::crd()]
}

/// A kind and its schema.
pub struct Kind {
    pub name: String,
    /// The structural schema of a whole document.
    pub schema: Json,
    /// Its CEL rules, compiled.
    pub rules: CompiledSchema,
}

/// All kinds, made from the definitions once.
pub static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let kind = |definition: CustomResourceDefinition| {
        let version = definition.spec.versions.into_iter().next().expect("a definition has a version");
        let schema = version.schema.and_then(|schema| schema.open_api_v3_schema).expect("a version has a schema");
        let schema = serde_json::to_value(schema).expect("a schema is JSON");
        Kind { name: definition.spec.names.kind, rules: compile_schema(&schema), schema }
    };
    definitions().into_iter().map(kind).collect()
});
