//! What the name of a package's file says: `NAME_VERSION_ARCHITECTURE.deb`, or `NAME-VERSION-RELEASE.ARCHITECTURE.rpm`.

use super::manifest::ANY;

/// The parts of the name, as they are written there: a colon of a Debian version is `%3a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackageFile<'a> {
    pub name: &'a str,
    pub version: &'a str,
    /// None: it is a package of Debian.
    pub release: Option<&'a str>,
    /// As the distribution calls it.
    pub architecture: &'a str,
}

impl<'a> PackageFile<'a> {
    /// `file`: without its directory. None: it is no package.
    pub(crate) fn parse_file_name(file: &'a str) -> Option<PackageFile<'a>> {
        if let Some(whole) = file.strip_suffix(".deb") {
            let mut parts = whole.splitn(3, '_');
            let (name, version, architecture) = (parts.next()?, parts.next()?, parts.next()?);
            return Some(PackageFile { name, version, release: None, architecture });
        }
        let (whole, architecture) = file.strip_suffix(".rpm")?.rsplit_once('.')?;
        let (rest, release) = whole.rsplit_once('-').filter(|(_, release)| !release.is_empty())?;
        let (name, version) = rest.rsplit_once('-')?;
        Some(PackageFile { name, version, release: Some(release), architecture })
    }

    /// The architecture as bundles call it.
    pub(crate) fn architecture_in_bundle(&self) -> &'a str {
        match self.architecture {
            "all" | "noarch" => ANY,
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_kinds_are_read() {
        let parts = |file: &'static str| {
            let it = PackageFile::parse_file_name(file)?;
            Some((it.name, it.version, it.release, it.architecture, it.architecture_in_bundle()))
        };
        assert_eq!(
            parts("keepalived_1%3a2.2.7-1+b2_amd64.deb"),
            Some(("keepalived", "1%3a2.2.7-1+b2", None, "amd64", "amd64"))
        );
        assert_eq!(
            parts("libcurl-minimal-7.76.1-31.el9.x86_64.rpm"),
            Some(("libcurl-minimal", "7.76.1", Some("31.el9"), "x86_64", "amd64"))
        );
        assert_eq!(parts("tzdata-2026a-1.el9.noarch.rpm"), Some(("tzdata", "2026a", Some("1.el9"), "noarch", "any")));
        for file in ["haproxy.deb", "haproxy_2.6.deb", "a.rpm", "a-1.rpm", "a-1-.x86_64.rpm", "a_1_amd64.tar", ""] {
            assert_eq!(parts(file), None, "{file}");
        }
    }
}
