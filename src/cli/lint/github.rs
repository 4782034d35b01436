//! Findings as annotations of GitHub Actions: one workflow command per line.

use crate::lint::{Finding, Level};

pub(super) fn annotations(findings: &[Finding]) -> String {
    let one = |finding: &Finding| {
        let command = match finding.rule.level {
            Level::Error => "error",
            Level::Advice => "warning",
        };
        let place = finding.complaint.origin.as_ref().map_or(String::new(), |origin| {
            let path = property(&origin.path().display().to_string());
            format!("file={path},line={},col={},", origin.line, origin.column)
        });
        format!("::{command} {place}title={}::{}\n", finding.rule.id, data(&super::finding_text(finding)))
    };
    findings.iter().map(one).collect()
}

/// A message: it may not end the line.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property's value: it may not end the property either.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::property;

    #[test]
    fn nothing_in_a_path_ends_the_property() {
        assert_eq!(property("a,b:c%d\n"), "a%2Cb%3Ac%25d%0A");
    }
}
