//! Where something was written: file, line and column, with the text at hand to show the line.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A file (or an argument such as `--extra-vars`) and its text.
#[derive(Debug)]
pub struct Source {
    pub path: PathBuf,
    pub text: String,
    /// The byte offsets of lines; computed when the first line is requested.
    lines: OnceLock<Vec<usize>>,
}

impl Source {
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Source { path: path.into(), text: text.into(), lines: OnceLock::new() }
    }

    /// The text of a line, counted from 1, without its end; empty if there is no such line.
    pub fn source_line(&self, number: usize) -> &str {
        let starts = self.lines.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(ends.map(|(end, _)| end + 1)).collect()
        });
        let start = number.checked_sub(1).and_then(|index| starts.get(index));
        start.and_then(|start| self.text[*start..].lines().next()).unwrap_or("")
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, &self.text) == (&other.path, &other.text)
    }
}

impl Eq for Source {}

impl Hash for Source {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Texts are long, and one path seldom has two.
        self.path.hash(state);
    }
}

/// A place in a source. Lines and columns count from 1.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    pub source: Arc<Source>,
    pub line: usize,
    pub column: usize,
}

impl Origin {
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.source.path
    }

    /// The text of the line.
    pub fn line_text(&self) -> &str {
        self.source.source_line(self.line.max(1))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.source.path.display(), self.line, self.column)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Something a person wrote wrongly, shown where they wrote it: the message, the line with a caret, a hint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// One line, small first letter, no full stop.
    pub message: String,
    pub origin: Option<Origin>,
    /// What to do about it, for example `did you mean "become"?`
    pub hint: Option<String>,
}

impl Diagnostic {
    pub fn new(message: impl Into<String>, origin: Option<&Origin>) -> Self {
        Diagnostic { message: message.into(), origin: origin.cloned(), hint: None }
    }
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Keeps the hint that is there if `hint` is None.
    pub fn hint_if_any(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{origin}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Diagnostic {}

/// One error where several may occur.
impl From<Diagnostic> for Vec<Diagnostic> {
    fn from(complaint: Diagnostic) -> Self {
        vec![complaint]
    }
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn lines_are_found_by_their_numbers_whatever_ends_them() {
        let source = Source::new("x", "one\r\n\nthree");
        assert_eq!([0, 1, 2, 3, 4].map(|number| source.source_line(number)), ["", "one", "", "three", ""]);
    }
}
