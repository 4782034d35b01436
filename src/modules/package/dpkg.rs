//! What dpkg says is installed, and which of a task's packages are.

use std::collections::{BTreeMap, BTreeSet};

use super::matches;
use crate::modules::Error;
use crate::remote::{Command, Probe};

/// Everything that is installed.
#[derive(Debug, Default)]
pub struct Installed {
    /// Versions by name, and by `name:architecture`.
    versions: BTreeMap<String, String>,
    /// Names that installed packages stand in for.
    provided: BTreeSet<String>,
}

/// One package as written: `name`, `name=version`, `name:architecture`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// With the architecture, if one was written.
    pub name: String,
    /// May end with, or have, a star.
    pub version: Option<String>,
}

impl Spec {
    pub fn parse(written: &str) -> Result<Spec, Error> {
        let written = written.trim();
        let (name, version) = match written.split_once('=') {
            Some((name, version)) => (name.trim_end(), Some(version.trim_start().to_owned())),
            None => (written, None),
        };
        let good = !name.is_empty()
            && !name.starts_with('-')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-.:*_".contains(c));
        match good && version.as_ref().is_none_or(|version| !version.is_empty()) {
            true => Ok(Spec { name: name.to_owned(), version }),
            false => Err(Error::failed(format!("{written:?} names no package"))),
        }
    }

    /// As apt-get takes it.
    pub fn word(&self) -> String {
        match &self.version {
            Some(version) => format!("{}={version}", self.name),
            None => self.name.clone(),
        }
    }
}

impl Installed {
    pub async fn look(probe: &Probe) -> Result<Installed, Error> {
        let format = "${db:Status-Abbrev}\\t${Package}\\t${Architecture}\\t${Version}\\t${Provides}\\n";
        let output = probe.query(&Command::program(["dpkg-query", "-W", "-f", format])).await?;
        Ok(Installed::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    fn parse(text: &str) -> Installed {
        let mut installed = Installed::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [state, name, architecture, version, provides] = fields[..] else { continue };
            // The second letter is what a package is: `i` means installed and configured.
            if state.chars().nth(1) != Some('i') {
                continue;
            }
            installed.versions.insert(name.to_owned(), version.to_owned());
            installed.versions.insert(format!("{name}:{architecture}"), version.to_owned());
            let names = provides.split(',').filter_map(|part| part.split_whitespace().next());
            installed.provided.extend(names.map(str::to_owned));
        }
        installed
    }

    /// Whether a package is there, in the version asked for; a virtual one is if something stands in for it.
    pub fn has(&self, spec: &Spec) -> bool {
        match (self.version(&spec.name), &spec.version) {
            (Some(found), Some(wanted)) => matches(wanted, found),
            (Some(_), None) => true,
            (None, None) if spec.name.contains('*') => self.versions.keys().any(|name| matches(&spec.name, name)),
            (None, None) => self.provided.contains(&spec.name),
            (None, Some(_)) => false,
        }
    }

    /// Whether a package itself is there: what can be removed.
    pub fn has_itself(&self, spec: &Spec) -> bool {
        self.version(&spec.name).is_some() || self.versions.keys().any(|name| matches(&spec.name, name))
    }

    pub fn version(&self, name: &str) -> Option<&str> {
        self.versions.get(name).map(String::as_str)
    }
}

/// From `apt-cache policy`: the packages that have a newer candidate, or none installed but a candidate.
pub fn outdated(policy: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut name, mut installed) = ("", "");
    for line in policy.lines() {
        if !line.starts_with(' ') {
            name = line.trim_end_matches(':');
        } else if let Some(version) = line.trim().strip_prefix("Installed: ") {
            installed = version;
        } else if let Some(candidate) = line.trim().strip_prefix("Candidate: ")
            && candidate != installed
            && candidate != "(none)"
        {
            found.push(name.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ii \tcurl\tamd64\t7.88.1-10\t\nrc \tgone\tall\t1\t\nii \tpostfix\tamd64\t3.7\tdefault-mta, mail-transport-agent (= 3)\n\
        hi \theld\tall\t2:1\t\n";

    fn has(written: &str) -> bool {
        Installed::parse(TEXT).has(&Spec::parse(written).unwrap())
    }

    #[test]
    fn what_is_installed_is_found_by_name_version_architecture_and_what_it_stands_for() {
        for written in
            ["curl", "curl:amd64", "curl=7.88*", "curl=7.88.1-10", "mail-transport-agent", "held=2:1", "cur*"]
        {
            assert!(has(written), "{written}");
        }
        for written in ["gone", "curl:arm64", "curl=8*", "no", "mail-transport-agent=1", "x*"] {
            assert!(!has(written), "{written}");
        }
    }

    #[test]
    fn what_is_no_package_name_is_refused() {
        for wrong in ["", "-y", "a b", "a;b", "a="] {
            assert!(Spec::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_has_a_newer_version_is_told() {
        let policy = "curl:\n  Installed: 1\n  Candidate: 2\n  Version table:\n *** 1 500\nvim:\n  Installed: 3\n  Candidate: 3\n\
            new:\n  Installed: (none)\n  Candidate: 1\nnowhere:\n  Installed: 1\n  Candidate: (none)\n";
        assert_eq!(outdated(policy), ["curl", "new"]);
    }
}
