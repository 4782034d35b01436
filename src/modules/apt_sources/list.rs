//! The files of sources in the one-line form: `deb [options] address suite components`.

use crate::modules::{Error, host_path};
use crate::remote::Probe;

use super::Places;

const KINDS: &[&str] = &["deb", "deb-src"];

/// A file of sources.
pub(crate) struct SourceFile {
    pub path: String,
    /// None: it is not there.
    pub before: Option<String>,
    lines: Vec<String>,
}

/// All files of sources, the main list first, the others sorted.
pub(super) struct Files {
    pub files: Vec<SourceFile>,
}

/// A source in a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AptSource {
    pub enabled: bool,
    /// Its words, one space between them.
    pub text: String,
}

impl AptSource {
    /// None: the line holds no source, only a comment or nothing.
    pub(super) fn parse_apt_line(line: &str) -> Option<AptSource> {
        let line = line.trim();
        let (enabled, line) = line.strip_prefix('#').map_or((true, line), |rest| (false, rest));
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        KINDS.contains(words.first()?).then(|| AptSource { enabled, text: words.join(" ") })
    }

    /// The default file name of a source, from its address.
    pub(super) fn file_name(&self) -> String {
        let mut text = self.text.clone();
        if let (Some(open), Some(close)) = (text.find('['), text.find(']')) {
            text.replace_range(open..(close + 1).max(open), "");
        }
        let address = text.split_whitespace().find(|word| !KINDS.contains(word)).unwrap_or_default();
        let address = address.split_once("://").map_or(address, |(_, rest)| rest);
        let address = address.split_once('@').map_or(address, |(_, rest)| rest);
        let words: Vec<&str> =
            address.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        format!("{}.list", words.join("_"))
    }
}

impl Files {
    pub(super) async fn read_source_files(probe: &Probe, places: &Places) -> Result<Files, Error> {
        let mut paths = vec![places.list.clone()];
        let names = probe.list_directory(&places.parts).await?.unwrap_or_default();
        let names = names.iter().filter(|name| name.ends_with(".list") && !name.starts_with('.'));
        paths.extend(names.map(|name| host_path::join_path(&places.parts, name)));
        let mut files = Vec::new();
        for path in paths {
            if let Some(content) = probe.read_file(&path).await? {
                files.push(SourceFile::new(path, Some(String::from_utf8_lossy(&content).into_owned())));
            }
        }
        Ok(Files { files })
    }

    /// Sees that the source is there and enabled: where it is, or at the end of `path`.
    pub(super) fn add_source(&mut self, source: &AptSource, path: &str) {
        let mut found = false;
        for file in &mut self.files {
            for line in &mut file.lines {
                let Some(it) = AptSource::parse_apt_line(line).filter(|it| it.text == source.text) else { continue };
                found = true;
                if !it.enabled {
                    *line = line.trim_start().trim_start_matches('#').trim_start().to_owned();
                }
            }
        }
        if found {
            return;
        }
        let at = self.files.iter().position(|file| file.path == path).unwrap_or_else(|| {
            self.files.push(SourceFile::new(path.to_owned(), None));
            self.files.len() - 1
        });
        self.files[at].lines.push(source.text.clone());
    }

    /// Removes the source wherever it is enabled.
    pub(super) fn remove_source(&mut self, source: &AptSource) {
        for file in &mut self.files {
            file.lines
                .retain(|line| AptSource::parse_apt_line(line).is_none_or(|it| !it.enabled || it.text != source.text));
        }
    }

    /// Those that are not as they were.
    pub(super) fn changed(self) -> Vec<SourceFile> {
        self.files.into_iter().filter(|file| file.lines != lines(file.before.as_deref().unwrap_or_default())).collect()
    }
}

impl SourceFile {
    fn new(path: String, before: Option<String>) -> SourceFile {
        SourceFile { path, lines: lines(before.as_deref().unwrap_or_default()), before }
    }

    /// None: nothing is left, the file is to go.
    pub(crate) fn after(&self) -> Option<String> {
        (!self.lines.is_empty()).then(|| self.lines.iter().map(|line| format!("{line}\n")).collect())
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_a_source_or_none() {
        let enabled = |text: &str| Some(AptSource { enabled: true, text: text.to_owned() });
        assert_eq!(AptSource::parse_apt_line(" deb  http://d  x main # why"), enabled("deb http://d x main"));
        assert_eq!(AptSource::parse_apt_line("# deb http://d x").map(|it| it.enabled), Some(false));
        for none in ["", "# a comment", "Types: deb", "rpm http://d x"] {
            assert_eq!(AptSource::parse_apt_line(none), None, "{none}");
        }
    }

    #[test]
    fn a_file_is_named_after_the_address() {
        for (line, name) in [
            ("deb http://archive.example.org/ubuntu hardy partner", "archive_example_org_ubuntu.list"),
            (
                "deb [arch=amd64 signed-by=/k.gpg] https://me:secret@d.example.org:8000/x ./",
                "d_example_org_8000_x.list",
            ),
            ("deb-src file:/srv/repo ./", "file_srv_repo.list"),
        ] {
            assert_eq!(AptSource::parse_apt_line(line).unwrap().file_name(), name);
        }
    }
}
