//! Findings as people read them: each with its line and a caret, then how many there are.

use crate::lint::{Finding, Level};
use crate::report::diagnostic::render_as;

pub(super) fn findings_text(findings: &[Finding]) -> String {
    let one = |finding: &Finding| {
        let word = format!("{}[{}]", finding.rule.level.level_name(), finding.rule.id);
        render_as(&word, &finding.complaint) + "\n\n"
    };
    let mut text: String = findings.iter().map(one).collect();
    if !findings.is_empty() {
        let errors = findings.iter().filter(|finding| finding.rule.level == Level::Error).count();
        let advice = findings.len() - errors;
        let plural = if errors == 1 { "" } else { "s" };
        text.push_str(&format!("{errors} error{plural}, {advice} advice\n"));
    }
    text
}
