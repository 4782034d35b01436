//! What somebody has found out about vulnerabilities of a bundle, in the format of OpenVEX: <https://github.com/openvex/spec>.

use std::path::Path;

use serde::Deserialize;

use crate::bundle::Error;

/// Vulnerabilities that do not count, with the reason.
#[derive(Debug, Default, Deserialize)]
pub struct VexDocument {
    statements: Vec<Statement>,
}

#[derive(Debug, Deserialize)]
struct Statement {
    vulnerability: Name,
    #[serde(default)]
    products: Vec<Product>,
    status: String,
    #[serde(default)]
    justification: Option<String>,
    #[serde(default)]
    impact_statement: Option<String>,
}

/// An earlier version of the format had a text in the place of a map.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Map { name: String },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Product {
    Text(String),
    Map {
        #[serde(rename = "@id")]
        id: String,
        #[serde(default)]
        subcomponents: Vec<Product>,
    },
}

impl VexDocument {
    /// # Errors
    /// It cannot be read, or is no document of OpenVEX.
    pub fn read_vex(path: &Path) -> Result<VexDocument, Error> {
        let text = std::fs::read(path).map_err(|error| Error::io("read", path, &error))?;
        serde_json::from_slice(&text)
            .map_err(|error| Error::new(format!("{} is no document of OpenVEX: {error}", path.display())))
    }

    /// Why a vulnerability with these names does not count for a program and a module of it, by their package URLs. None: it counts.
    pub(super) fn reason(&self, names: &[&str], program: &str, module: &str) -> Option<String> {
        let concerns = |statement: &&Statement| {
            let name = match &statement.vulnerability {
                Name::Text(name) | Name::Map { name } => name.as_str(),
            };
            let is_meant = |product: &Product| match product {
                Product::Text(id) => is_same(id, program) || is_same(id, module),
                Product::Map { id, subcomponents } if subcomponents.is_empty() => {
                    is_same(id, program) || is_same(id, module)
                }
                Product::Map { id, subcomponents } => {
                    let is_part = |part: &Product| match part {
                        Product::Text(id) | Product::Map { id, .. } => is_same(id, module),
                    };
                    is_same(id, program) && subcomponents.iter().any(is_part)
                }
            };
            names.contains(&name)
                && ["not_affected", "fixed"].contains(&statement.status.as_str())
                && statement.products.iter().any(is_meant)
        };
        // The last one that is about it counts, as later statements replace earlier ones.
        let statement = self.statements.iter().rfind(concerns)?;
        let why = statement.justification.as_ref().or(statement.impact_statement.as_ref());
        Some(why.unwrap_or(&statement.status).clone())
    }
}

/// Whether a package URL of a statement means another one: one without a version means all versions.
fn is_same(stated: &str, url: &str) -> bool {
    let without_path = |url: &str| url.split('#').next().unwrap_or_default().to_owned();
    let url = without_path(url);
    let stated_whole = without_path(stated);
    stated_whole == url || (!stated_whole.contains('@') && url.split('@').next() == Some(stated_whole.as_str()))
}
