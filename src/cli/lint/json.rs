//! Findings as one JSON list.

use serde_json::{Value, json};

use crate::lint::Finding;

/// Objects with `rule`, `level`, `message`, `hint`, `file`, `line`, `column`; what is not known is null.
pub(super) fn findings_json(findings: &[Finding]) -> Value {
    let one = |finding: &Finding| {
        let origin = finding.complaint.origin.as_ref();
        json!({
            "rule": finding.rule.id,
            "level": finding.rule.level.level_name(),
            "message": finding.complaint.message,
            "hint": finding.complaint.hint,
            "file": origin.map(|origin| origin.path().display().to_string()),
            "line": origin.map(|origin| origin.line),
            "column": origin.map(|origin| origin.column),
        })
    };
    findings.iter().map(one).collect()
}
