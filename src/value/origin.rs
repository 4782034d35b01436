//! Where something was written: file, line and column, with the text at hand to show the line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file (or an argument such as `--extra-vars`) and its text.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Source {
    pub path: PathBuf,
    pub text: String,
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
        self.source.text.lines().nth(self.line.saturating_sub(1)).unwrap_or("")
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// One line, small first letter, no full stop.
    pub message: String,
    pub origin: Option<Origin>,
    /// What to do about it, for example `did you mean "become"?`
    pub hint: Option<String>,
}

impl Complaint {
    pub fn new(message: impl Into<String>, origin: Option<&Origin>) -> Self {
        Complaint { message: message.into(), origin: origin.cloned(), hint: None }
    }
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{origin}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Complaint {}

/// The nearest of `candidates` to `word`, if one is near enough to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(d, candidate)| *d <= 1 + candidate.len().min(word.len()) / 4)
        .min_by_key(|(d, _)| *d)
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace, swap of neighbours) from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            rows[i][j] = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                rows[i][j] = rows[i][j].min(rows[i - 2][j - 2] + 1);
            }
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_misspelt_word_finds_its_neighbour_and_a_strange_one_none() {
        let words = ["become", "become_user", "when", "register"];
        assert_eq!(nearest("becom", words), Some("become"));
        assert_eq!(nearest("wehn", words), Some("when"));
        assert_eq!(nearest("zebra", words), None);
    }
}
