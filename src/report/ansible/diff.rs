//! What a file was and what it is, as the default callback shows it.

use serde_json::Value as Plain;
use similar::TextDiff;

use super::json::dumped;
use crate::modules::Diff;
use crate::report::paint::{Colour, one_line};

/// A unified diff with so many lines around each change and an empty line behind it; nothing if nothing differs.
pub(super) fn ansible_diff_lines(diff: &Diff, context: usize) -> Vec<(Colour, String)> {
    let named = |word: &str, header: &str| match header.is_empty() {
        true => word.to_owned(),
        false => one_line(&format!("{word}: {header}")).into_owned(),
    };
    let diff = &as_ansible(diff);
    let text = TextDiff::from_lines(diff.before.as_str(), diff.after.as_str());
    let mut unified = text.unified_diff();
    unified.context_radius(context).header(&named("before", &diff.before_header), &named("after", &diff.after_header));
    let coloured = |line: &str| {
        let colour = match line.as_bytes().first() {
            Some(b'+') => Colour::Green,
            Some(b'-') => Colour::Red,
            Some(b'@') => Colour::Cyan,
            _ => Colour::Plain,
        };
        (colour, line.to_owned())
    };
    let mut lines: Vec<_> = unified.to_string().lines().map(coloured).collect();
    if !lines.is_empty() {
        lines.push((Colour::Plain, String::new()));
    }
    lines
}

/// The diff under the headers that Ansible's modules give: attributes of a file have none, nor has a file that was not
/// there; content that no file holds is named after the file that it goes to.
fn as_ansible(diff: &Diff) -> Diff {
    let attributes = |text: &str| serde_json::from_str::<Plain>(text).ok().filter(Plain::is_object);
    if diff.before_header == diff.after_header
        && !diff.before_header.ends_with(')')
        && let Some((before, after)) = attributes(&diff.before).zip(attributes(&diff.after))
    {
        let [before, after] = [before, after].map(|object| format!("{}\n", dumped(&object, true)));
        return Diff { before, after, ..Diff::default() };
    }
    let mut shown = diff.clone();
    if diff.after_header == "dynamically generated" {
        shown.after_header = diff.before_header.clone();
    }
    if diff.before.is_empty() {
        shown.before_header = String::new();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> Vec<String> {
        let diff = Diff { before: before.into(), after: after.into(), after_header: "/a".into(), ..Diff::default() };
        ansible_diff_lines(&diff, 3).into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn a_header_that_is_not_known_is_left_out() {
        assert_eq!(shown("", "a\n"), ["--- before", "+++ after: /a", "@@ -0,0 +1 @@", "+a", ""]);
        assert!(shown("a\n", "a\n").is_empty());
    }

    #[test]
    fn attributes_have_no_header_and_four_blanks() {
        let side = |mode: &str| format!("{{\n  \"mode\": \"{mode}\"\n}}\n");
        let header = String::from("/a");
        let diff =
            Diff { before: side("0600"), after: side("0644"), before_header: header.clone(), after_header: header };
        let shown: Vec<String> = ansible_diff_lines(&diff, 3).into_iter().map(|(_, line)| line).collect();
        assert_eq!(shown[..2], ["--- before", "+++ after"]);
        assert_eq!(shown[3..6], [" {", "-    \"mode\": \"0600\"", "+    \"mode\": \"0644\""]);
    }

    #[test]
    fn a_last_line_without_an_end_is_reported() {
        let reported = "\\ No newline at end of file";
        assert_eq!(shown("a", "b\n"), ["--- before", "+++ after: /a", "@@ -1 +1 @@", "-a", reported, "+b", ""]);
    }
}
