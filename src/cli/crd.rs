//! `windlass crd`: the definitions of the custom resources, for an API server.

use serde_json::Value as Json;

use super::{CliError, ExitCode, print};
use crate::resource;
use crate::value::{Value, yaml};

/// Prints the definitions as YAML documents, for `kubectl apply -f -`.
pub(super) fn print_crds() -> Result<ExitCode, CliError> {
    let mut text = String::new();
    for definition in resource::definitions() {
        let json: Json = serde_json::to_value(definition).map_err(anyhow::Error::new)?;
        let value: Value = serde_json::from_value(json).map_err(anyhow::Error::new)?;
        text.push_str("---\n");
        text.push_str(&yaml::emit(&value, &yaml::YamlStyle::default()));
    }
    print(text)?;
    Ok(ExitCode::Ok)
}
