//! An error message as text: the message, the location, the line with a caret, the hint.

use crate::value::origin::Diagnostic;

/// Several lines without a final newline:
///
/// ```text
/// error: "becom" is no keyword of a task
///  --> site.yml:5:7
///   |
/// 5 |       becom: true
///   |       ^
///   = hint: did you mean "become"?
/// ```
pub fn render_diagnostic(complaint: &Diagnostic) -> String {
    render_as("error", complaint)
}

/// As [`render_diagnostic`], under another word than `error`.
pub fn render_as(word: &str, complaint: &Diagnostic) -> String {
    let mut lines = vec![format!("{word}: {}", complaint.message)];
    let mut margin = 1;
    if let Some(origin) = &complaint.origin {
        let number = origin.line.to_string();
        margin = number.len();
        let pad = " ".repeat(margin);
        lines.push(format!("{pad}--> {origin}"));
        let text = origin.line_text();
        if !text.trim().is_empty() {
            let before = text.chars().take(origin.column.saturating_sub(1));
            // A tab stays a tab, so that the caret is below its character.
            let caret: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            lines.push(format!("{pad} |"));
            lines.push(format!("{number} | {}", crate::value::yaml::printable(text)));
            lines.push(format!("{pad} | {caret}^"));
        }
    }
    if let Some(hint) = &complaint.hint {
        lines.push(format!("{} = hint: {hint}", " ".repeat(margin)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::render_diagnostic;
    use crate::value::origin::Diagnostic;
    use crate::value::{Origin, Source};

    #[test]
    fn the_caret_stands_below_the_place() {
        let source = Source::new("site.yml", "- hosts: all\n  becom: true\n");
        let origin = Origin { source: Arc::new(source), line: 2, column: 3 };
        let complaint =
            Diagnostic::new("\"becom\" is no keyword of a play", Some(&origin)).hint("did you mean \"become\"?");
        let expected = "error: \"becom\" is no keyword of a play\n --> site.yml:2:3\n  |\n2 |   becom: true\n  |   ^\n  = hint: did you mean \"become\"?";
        assert_eq!(render_diagnostic(&complaint), expected);
    }
}
