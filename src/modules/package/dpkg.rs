//! What dpkg says is installed, and which of a task's packages are.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::{failure, in_english, matches};
use crate::modules::Error;
use crate::remote::{Command, Probe};

/// Everything that is installed.
#[derive(Debug, Default)]
pub(super) struct Installed {
    /// Versions by name, and by `name:architecture`.
    versions: BTreeMap<String, String>,
    /// Names that installed packages provide.
    provided: BTreeSet<String>,
    /// Packages that dpkg did not finish: some of their files are there. By name, and by `name:architecture`.
    unfinished: BTreeSet<String>,
}

/// One package as written: `name`, `name=version`, `name:architecture`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    /// With the architecture, if one was written.
    pub name: String,
    /// May end with, or have, a star.
    pub version: Option<String>,
    /// `name>=version`
    pub at_least: Option<String>,
}

impl Spec {
    pub(super) fn parse_package_spec(written: &str) -> Result<Spec, Error> {
        let written = written.trim();
        let (name, version, is_least) = match (written.split_once(">="), written.split_once('=')) {
            (Some((name, version)), _) => (name.trim_end(), Some(version.trim_start().to_owned()), true),
            (None, Some((name, version))) => (name.trim_end(), Some(version.trim_start().to_owned()), false),
            (None, None) => (written, None, false),
        };
        let good = !name.is_empty()
            && !name.starts_with('-')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-.:*_".contains(c))
            && version.as_ref().is_none_or(|version| !version.is_empty());
        if !good {
            return Err(Error::failed(format!("invalid package name {written:?}")));
        }
        let (version, at_least) = if is_least { (None, version) } else { (version, None) };
        Ok(Spec { name: name.to_owned(), version, at_least })
    }

    /// As apt-get takes it.
    pub(super) fn spec_text(&self) -> String {
        match &self.version {
            Some(version) => format!("{}={version}", self.name),
            None => self.name.clone(),
        }
    }
}

impl Installed {
    pub(super) async fn read_installed(probe: &Probe) -> Result<Installed, Error> {
        let format = "${db:Status-Abbrev}\\t${Package}\\t${Architecture}\\t${Version}\\t${Provides}\\n";
        let argv = ["dpkg-query", "-W", "-f", format];
        let output = probe.query(&in_english(Command::program(argv))).await?;
        // 1: there is no package at all.
        if !matches!(output.code, 0 | 1) {
            return Err(failure(&["dpkg-query".to_owned(), "-W".to_owned()], &output));
        }
        Ok(Installed::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    fn parse(text: &str) -> Installed {
        let mut installed = Installed::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [state, name, architecture, version, provides] = fields[..] else { continue };
            // The second letter is what a package is: `i` means installed and configured.
            match state.chars().nth(1) {
                Some('i') => {}
                // Not installed; only its configuration is left.
                Some('n' | 'c') | None => continue,
                Some(_) => {
                    installed.unfinished.extend([name.to_owned(), format!("{name}:{architecture}")]);
                    continue;
                }
            }
            installed.versions.insert(name.to_owned(), version.to_owned());
            installed.versions.insert(format!("{name}:{architecture}"), version.to_owned());
            let names = provides.split(',').filter_map(|part| part.split_whitespace().next());
            installed.provided.extend(names.map(str::to_owned));
        }
        installed
    }

    /// Whether a package is there, in the version asked for; a virtual one is if an installed package provides it.
    pub(super) fn is_installed(&self, spec: &Spec) -> bool {
        if let Some(least) = &spec.at_least {
            return self.installed_version(&spec.name).is_some_and(|version| is_at_least(version, least));
        }
        match (self.installed_version(&spec.name), &spec.version) {
            (Some(found), Some(wanted)) => matches(wanted, found),
            (Some(_), None) => true,
            (None, None) if spec.name.contains('*') => self.versions.keys().any(|name| matches(&spec.name, name)),
            (None, None) => self.provided.contains(&spec.name),
            (None, Some(_)) => false,
        }
    }

    /// Whether a package itself is there: what can be removed.
    pub(super) fn has_itself(&self, spec: &Spec) -> bool {
        self.versions.keys().chain(&self.unfinished).any(|name| matches(&spec.name, name))
    }

    pub(super) fn installed_version(&self, name: &str) -> Option<&str> {
        self.versions.get(name).map(String::as_str)
    }
}

/// From `apt-cache policy`: the packages that have a newer candidate, or none installed but a candidate.
pub(super) fn outdated(policy: &str) -> Vec<String> {
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

/// From `apt-cache policy` of one package: the version that would be installed.
pub(super) fn candidate(policy: &str) -> Option<&str> {
    let version = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: "))?;
    Some(version).filter(|version| *version != "(none)")
}

/// Whether a version is that one or newer, in dpkg's order.
pub(super) fn is_at_least(version: &str, least: &str) -> bool {
    let parts = |text: &str| -> (u64, String, String) {
        let (epoch, rest) = text.split_once(':').unwrap_or(("0", text));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        (epoch.parse().unwrap_or(0), upstream.to_owned(), revision.to_owned())
    };
    let (one, other) = (parts(version), parts(least));
    one.0.cmp(&other.0).then_with(|| order(&one.1, &other.1)).then_with(|| order(&one.2, &other.2)).is_ge()
}

/// Text and numbers in turn; a tilde comes before everything, even the end, and letters before other characters.
fn order(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    let weight = |bytes: &[u8]| match bytes.first() {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_digit() => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        Some(byte) => i32::from(*byte) + 256,
    };
    let is_text = |bytes: &[u8]| bytes.first().is_some_and(|byte| !byte.is_ascii_digit());
    while !one.is_empty() || !other.is_empty() {
        while is_text(one) || is_text(other) {
            let compared = weight(one).cmp(&weight(other));
            if compared.is_ne() {
                return compared;
            }
            (one, other) = (&one[1.min(one.len())..], &other[1.min(other.len())..]);
        }
        let number = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
            let zeros = bytes[..end].iter().take_while(|byte| **byte == b'0').count();
            (end, bytes[zeros..end].to_vec())
        };
        let ((end, first), (other_end, second)) = (number(one), number(other));
        let compared = first.len().cmp(&second.len()).then_with(|| first.cmp(&second));
        if compared.is_ne() {
            return compared;
        }
        (one, other) = (&one[end..], &other[other_end..]);
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_dpkgs_order() {
        for (newer, older) in [
            ("1.10", "1.9"),
            ("1.0", "1.0~rc1"),
            ("1:0.1", "2.0"),
            ("1.0-2", "1.0-1"),
            ("1.0+b1", "1.0"),
            ("1.0a", "1.0"),
            ("1.0.1", "1.0a"),
            ("2.0-1", "2.0-1~bpo12+1"),
            ("007", "6"),
        ] {
            assert!(is_at_least(newer, older) && !is_at_least(older, newer), "{newer} {older}");
        }
        assert!(is_at_least("1.0", "1.00") && is_at_least("3.5.21-1", "3.5.21-1"));
        assert_eq!(candidate("x:\n  Installed: 1\n  Candidate: 2\n"), Some("2"));
        assert_eq!(candidate("x:\n  Candidate: (none)\n"), None);
    }

    const TEXT: &str = "ii \tcurl\tamd64\t7.88.1-10\t\nrc \tgone\tall\t1\t\nii \tpostfix\tamd64\t3.7\tdefault-mta, mail-transport-agent (= 3)\n\
        hi \theld\tall\t2:1\t\n";

    fn has(written: &str) -> bool {
        Installed::parse(TEXT).is_installed(&Spec::parse_package_spec(written).unwrap())
    }

    #[test]
    fn what_is_installed_is_found_by_name_version_architecture_and_what_it_stands_for() {
        for written in [
            "curl",
            "curl:amd64",
            "curl=7.88*",
            "curl=7.88.1-10",
            "mail-transport-agent",
            "held=2:1",
            "cur*",
            "curl>=7.88",
        ] {
            assert!(has(written), "{written}");
        }
        for written in ["gone", "curl:arm64", "curl=8*", "no", "mail-transport-agent=1", "x*", "curl>=8", "none>=1"] {
            assert!(!has(written), "{written}");
        }
    }

    #[test]
    fn what_dpkg_did_not_finish_is_removed_and_installed_again() {
        let text = "iU \tunpacked\tamd64\t1\t\niF \thalf\tall\t1\t\nrc \tgone\tall\t1\t\nun \tnever\tall\t\t\n";
        let installed = Installed::parse(text);
        let spec = |name: &str| Spec::parse_package_spec(name).unwrap();
        for name in ["unpacked", "unpacked:amd64", "half", "unp*"] {
            assert!(installed.has_itself(&spec(name)) && !installed.is_installed(&spec(name)), "{name}");
        }
        assert!(!installed.has_itself(&spec("gone")) && !installed.has_itself(&spec("never")));
    }

    #[test]
    fn what_is_no_package_name_is_refused() {
        for wrong in ["", "-y", "a b", "a;b", "a="] {
            assert!(Spec::parse_package_spec(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_has_a_newer_version_is_reported() {
        let policy = "curl:\n  Installed: 1\n  Candidate: 2\n  Version table:\n *** 1 500\nvim:\n  Installed: 3\n  Candidate: 3\n\
            new:\n  Installed: (none)\n  Candidate: 1\nnowhere:\n  Installed: 1\n  Candidate: (none)\n";
        assert_eq!(outdated(policy), ["curl", "new"]);
    }
}
