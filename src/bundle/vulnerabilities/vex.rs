//! What somebody has found out about vulnerabilities of a bundle, in the format of OpenVEX: <https://github.com/openvex/spec>.

use std::path::Path;

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Deserializer, de};

use crate::bundle::Error;

/// Vulnerabilities that do not count, with the reason.
#[derive(Debug, Default, Deserialize)]
pub struct VexDocument {
    /// When it was made.
    #[serde(default, deserialize_with = "moment")]
    timestamp: Option<Moment>,
    statements: Vec<Statement>,
}

type Moment = DateTime<FixedOffset>;

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
    #[serde(default, deserialize_with = "moment")]
    timestamp: Option<Moment>,
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

    /// Why a vulnerability does not count for a program and a module of it, by their package URLs. None: no statement is about one of its
    /// names, or the newest of them has another status than `not_affected` and `fixed`.
    pub(super) fn reason(&self, names: &[&str], program: &str, module: &str) -> Option<&str> {
        let concerns = |statement: &&Statement| {
            names.contains(&statement.name()) && statement.products.iter().any(|product| product.means(program, module))
        };
        // Of the same moment, the later one in the document.
        let newest = self.statements.iter().filter(concerns).max_by_key(|it| it.timestamp.or(self.timestamp))?;
        let why = newest.justification.as_deref().or(newest.impact_statement.as_deref());
        matches!(newest.status.as_str(), "not_affected" | "fixed").then(|| why.unwrap_or(&newest.status))
    }
}

impl Statement {
    fn name(&self) -> &str {
        let (Name::Text(name) | Name::Map { name }) = &self.vulnerability;
        name
    }
}

impl Product {
    fn means(&self, program: &str, module: &str) -> bool {
        match self {
            Product::Map { id, subcomponents } if !subcomponents.is_empty() => {
                is_same(id, program) && subcomponents.iter().any(|part| is_same(part.id(), module))
            }
            Product::Text(id) | Product::Map { id, .. } => is_same(id, program) || is_same(id, module),
        }
    }

    fn id(&self) -> &str {
        let (Product::Text(id) | Product::Map { id, .. }) = self;
        id
    }
}

/// RFC 3339.
fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Moment>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| {
        DateTime::parse_from_rfc3339(&text).map_err(|_| de::Error::custom(format!("{text} is no timestamp")))
    })
    .transpose()
}

/// Whether a package URL of a statement means another one: one without a version means all versions.
fn is_same(stated: &str, url: &str) -> bool {
    let without_path = |url: &str| url.split('#').next().unwrap_or_default().to_owned();
    let url = without_path(url);
    let stated_whole = without_path(stated);
    stated_whole == url || (!stated_whole.contains('@') && url.split('@').next() == Some(stated_whole.as_str()))
}
