//! The description of the API: OpenAPI 3.1, made from the table of routes.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value as Json, json};

use super::call::API;
use super::guard;
use super::problem::Problem;
use super::routes::{AnswerBody, Needs, ROUTES, Route};

/// The whole document.
pub fn openapi_document() -> Json {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    let mut paths: BTreeMap<String, Map<String, Json>> = BTreeMap::new();
    let problem = json!(schemas.subschema_for::<Problem>());
    for route in ROUTES {
        let path = paths.entry(format!("{API}{}", route.path)).or_default();
        let mut operation = json!({
            "summary": capital(route.action),
            "operationId": route.action.replace([' ', ','], "-").replace("--", "-"),
            "security": match route.needs {
                Needs::Nothing => json!([]),
                _ => json!([{"token": []}, {"session": []}]),
            },
            "description": match route.needs {
                Needs::Nothing => "Needs no login.".to_owned(),
                Needs::Login => "Needs a login, with any rights.".to_owned(),
                Needs::Right(right) => format!("Needs the right {}.", right.right_name()),
            },
            "parameters": parameters(route),
        });
        if let Some(body) = route.body {
            let schema = body(&mut schemas);
            operation["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
        }
        if route.takes_document {
            let text = json!({"schema": {"type": "string"}});
            operation["requestBody"] = json!({"required": true, "content": {guard::YAML: text}});
        }
        let content = match route.answer {
            AnswerBody::Json(schema) => json!({"application/json": {"schema": schema(&mut schemas)}}),
            AnswerBody::Text => json!({"text/plain": {"schema": {"type": "string"}}}),
            AnswerBody::Events(schema) => json!({
                "text/event-stream": {"schema": {"type": "string"}},
                "application/json": {"schema": schema(&mut schemas)},
            }),
            AnswerBody::Empty => Json::Null,
        };
        let mut answer = json!({"description": route.status.canonical_reason().unwrap_or_default()});
        if !content.is_null() {
            answer["content"] = content;
        }
        let refused = json!({"description": "A problem", "content": {"application/problem+json": {"schema": problem}}});
        operation["responses"] = json!({route.status.as_str(): answer, "default": refused});
        path.insert(route.method.method().as_str().to_ascii_lowercase(), operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "windlass", "version": env!("CARGO_PKG_VERSION"), "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": guard::COOKIE, "description": "With TLS, it is __Host-windlass_session. The header Windlass-Key goes with it."},
            },
        },
    })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Those in the path, then those of the query.
fn parameters(route: &Route) -> Vec<Json> {
    let parts = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parts = parts.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let query = route.query.iter().map(
        |(name, meaning)| json!({"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}),
    );
    parts.chain(query).collect()
}
