//! Findings in the Static Analysis Results Interchange Format, version 2.1.0.

use serde_json::{Value, json};

use crate::lint::{Finding, Level, rules::RULES};

/// A log with one run.
pub(super) fn log(findings: &[Finding]) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": {"text": rule.about},
                "defaultConfiguration": {"level": level(rule.level)},
            })
        })
        .collect();
    let results: Vec<Value> = findings.iter().map(result).collect();
    let driver = json!({"name": "windlass", "version": env!("CARGO_PKG_VERSION"), "rules": rules});
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    })
}

fn result(finding: &Finding) -> Value {
    let index = RULES.iter().position(|rule| rule.id == finding.rule.id);
    let mut result = json!({
        "ruleId": finding.rule.id,
        "ruleIndex": index,
        "level": level(finding.rule.level),
        "message": {"text": super::finding_text(finding)},
    });
    if let Some(origin) = &finding.complaint.origin {
        let place = json!({
            "artifactLocation": {"uri": uri(&origin.path().display().to_string())},
            "region": {"startLine": origin.line, "startColumn": origin.column},
        });
        result["locations"] = json!([{"physicalLocation": place}]);
    }
    result
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Advice => "warning",
    }
}

/// A path as a relative reference, or a file's URI if it is absolute.
fn uri(path: &str) -> String {
    let escaped: String = path
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    if path.starts_with('/') { format!("file://{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("roles/a b/tasks/main.yml"), "roles/a%20b/tasks/main.yml");
        assert_eq!(uri("/srv/x.yml"), "file:///srv/x.yml");
    }
}
