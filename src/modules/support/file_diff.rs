//! The diff of a file's content, or a note where content cannot or must not be shown.

use crate::modules::Diff;

/// Longer content is not shown, as in Ansible.
pub(in crate::modules) const LONGEST: u64 = 104_448;

/// One side of a diff.
pub(in crate::modules) enum Side<'a> {
    /// There is no file.
    Nothing,
    Text(&'a [u8]),
    /// Too long to read, in bytes.
    Long(u64),
}

/// The content of a file before and after. Headers say whose content it is.
pub(in crate::modules) fn content(before_header: &str, before: &Side, after_header: &str, after: &Side) -> Diff {
    Diff {
        before_header: before_header.to_owned(),
        after_header: after_header.to_owned(),
        before: shown(before),
        after: shown(after),
    }
}

/// That content changes, and nothing of it.
pub(in crate::modules) fn hidden(path: &str) -> Diff {
    Diff {
        before_header: path.to_owned(),
        after_header: path.to_owned(),
        before: String::new(),
        after: "[the content is secret and not shown]\n".to_owned(),
    }
}

/// Content of the same file before and after an edit, under Ansible's headers for it.
pub(in crate::modules) fn edit(path: &str, before: &[u8], after: &[u8]) -> Diff {
    let header = format!("{path} (content)");
    content(&header, &Side::Text(before), &header, &Side::Text(after))
}

fn shown(side: &Side) -> String {
    match side {
        Side::Nothing => String::new(),
        Side::Long(size) => format!("[{size} bytes, too long to be shown]\n"),
        Side::Text(text) if text.len() as u64 > LONGEST => format!("[{} bytes, too long to be shown]\n", text.len()),
        Side::Text(text) => match std::str::from_utf8(text) {
            Ok(text) if !text.contains('\0') => text.to_owned(),
            _ => format!("[{} bytes, binary]\n", text.len()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_binary_and_long_content_is_noted() {
        let diff = content("/x", &Side::Nothing, "x.j2", &Side::Text(b"a\n"));
        assert_eq!((diff.before.as_str(), diff.after.as_str()), ("", "a\n"));
        assert_eq!((diff.before_header.as_str(), diff.after_header.as_str()), ("/x", "x.j2"));
        let diff = content("/x", &Side::Long(200_000), "y", &Side::Text(b"\0\xff"));
        assert_eq!(diff.before, "[200000 bytes, too long to be shown]\n");
        assert_eq!(diff.after, "[2 bytes, binary]\n");
        let long = vec![b'a'; 104_449];
        assert_eq!(edit("/x", b"", &long).after, "[104449 bytes, too long to be shown]\n");
    }
}
