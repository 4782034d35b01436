//! The gathered output, by sections, and the files in it by their paths.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Facts under their names without the prefix.
pub(super) type Facts = Map<String, Value>;

/// What came back from the host.
pub(super) struct Sections {
    sections: HashMap<String, String>,
    files: HashMap<String, String>,
}

impl Sections {
    /// Cuts the output at the lines that begin with `mark`. What is not UTF-8 is replaced.
    pub(super) fn parse_sections(output: &[u8], mark: &str) -> Sections {
        let text = String::from_utf8_lossy(output);
        let (mut sections, mut files) = (HashMap::new(), HashMap::<String, String>::new());
        for section in text.split(&format!("\n{mark}")).skip(1) {
            let (name, body) = section.split_once('\n').unwrap_or((section, ""));
            sections.insert(name.to_owned(), body.to_owned());
            if !matches!(name, "files" | "hardware" | "network" | "storage" | "virtual") {
                continue;
            }
            for line in body.lines() {
                if let Some((path, line)) = line.split_once(':') {
                    let file = files.entry(path.to_owned()).or_default();
                    file.push_str(line);
                    file.push('\n');
                }
            }
        }
        Sections { sections, files }
    }

    /// A section's text; empty if there is none.
    pub(super) fn section(&self, name: &str) -> &str {
        self.sections.get(name).map_or("", String::as_str)
    }

    /// Its first line, trimmed.
    pub(super) fn section_line(&self, name: &str) -> &str {
        self.section(name).lines().next().unwrap_or_default().trim()
    }

    /// Whether a section has exactly this line.
    pub(super) fn has_line(&self, section: &str, line: &str) -> bool {
        self.section(section).lines().any(|it| it == line)
    }

    pub(super) fn file_content(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// The first line of a file, trimmed; empty if there is none.
    pub(super) fn file_value(&self, path: &str) -> &str {
        self.file_content(path).and_then(|text| text.lines().next()).unwrap_or_default().trim()
    }

    /// Names in a directory of which some file came back, sorted.
    pub(super) fn names_below(&self, directory: &str) -> Vec<&str> {
        let below = |path: &'_ String| -> Option<usize> { path.starts_with(directory).then_some(directory.len()) };
        let mut names: Vec<&str> = self
            .files
            .keys()
            .filter_map(|path| below(path).and_then(|at| path[at..].split('/').next()))
            .filter(|name| !name.is_empty())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// `KEY="value"` lines, as in os-release.
pub(super) fn assignments(text: &str) -> HashMap<&str, String> {
    let pairs = text.lines().filter_map(|line| line.trim().split_once('='));
    let value = |text: &str| shlex::split(text).map_or_else(|| text.to_owned(), |words| words.join(" "));
    pairs.filter(|(key, _)| !key.starts_with('#')).map(|(key, text)| (key, value(text))).collect()
}

/// `name: value` lines, as in most of /proc.
pub(super) fn key_values(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_files_are_distinguished() {
        let output = b"noise\n=M=files\n/a/b:one: 1\n/a/b:\n/a/c/d:x\n\n=M=date\n2026\n";
        let sections = Sections::parse_sections(output, "=M=");
        assert_eq!(sections.file_content("/a/b"), Some("one: 1\n\n"));
        assert_eq!(sections.names_below("/a/"), ["b", "c"]);
        assert_eq!((sections.section_line("date"), sections.section_line("none")), ("2026", ""));
    }

    #[test]
    fn assignments_lose_their_quotes() {
        let text = "# x=y\nNAME=\"Debian GNU/Linux\"\nID=debian\nEMPTY=\nODD='a'\\''b'\n";
        let got = assignments(text);
        assert_eq!(got["NAME"], "Debian GNU/Linux");
        assert_eq!((got["ID"].as_str(), got["EMPTY"].as_str(), got["ODD"].as_str()), ("debian", "", "a'b"));
        assert_eq!(got.len(), 4);
    }
}
