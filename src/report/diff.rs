//! What a file or setting was and what it is, as lines with colours.

use super::paint::{Colour, one_line};
use crate::modules::Diff;

/// How many lines around a change a plan shows.
const AROUND: usize = 1;

/// The diffs of one result as text without colours.
pub fn diff_text(diffs: &[Diff]) -> String {
    let lines = diffs.iter().flat_map(|diff| diff_lines(diff, AROUND)).map(|(_, line)| line);
    lines.collect::<Vec<_>>().join("\n")
}

/// A unified diff with so many lines around each change.
pub(super) fn diff_lines(diff: &Diff, context: usize) -> Vec<(Colour, String)> {
    let text = similar::TextDiff::from_lines(diff.before.as_str(), diff.after.as_str());
    let mut unified = text.unified_diff();
    let name = |header: &str, other: &str| if header.is_empty() { other.to_string() } else { header.to_string() };
    let before = format!("before: {}", name(&diff.before_header, "(nothing)"));
    let after = format!("after: {}", name(&diff.after_header, &diff.before_header));
    unified.context_radius(context).header(&one_line(&before), &one_line(&after));
    let coloured = |line: &str| {
        let colour = match line.as_bytes().first() {
            Some(b'+') => Colour::Green,
            Some(b'-') => Colour::Red,
            Some(b'@') => Colour::Cyan,
            _ => Colour::Plain,
        };
        (colour, line.to_string())
    };
    unified.to_string().lines().map(coloured).collect()
}
