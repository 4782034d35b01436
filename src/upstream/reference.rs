//! Names of images: `registry/repository:tag@digest`.

use crate::bundle::{Error, hex_of};

/// The registry of names without one, and the host that serves it.
const HUB: &str = "docker.io";
const HUB_SERVER: &str = "registry-1.docker.io";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    /// `docker.io`, `registry.example:5000`
    pub registry: String,
    pub repository: String,
    /// None: only a digest is given.
    pub tag: Option<String>,
    /// `sha256:HEX`
    pub digest: Option<String>,
}

/// Where a repository may be read: a server and a path on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RepositoryLocation {
    /// With `http://` where TLS is not wanted.
    pub server: String,
    pub repository: String,
}

impl Reference {
    pub(super) fn parse_image_name(text: &str) -> Result<Reference, Error> {
        let wrong = || Error::new(format!("invalid image {text:?}: expected REGISTRY/REPOSITORY:TAG"));
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) if hex_of(digest).is_some() => (rest, Some(digest.to_owned())),
            Some(_) => return Err(wrong()),
            None => (text, None),
        };
        let (registry, path) = match rest.split_once('/') {
            Some((first, path)) if first.contains(['.', ':']) || first == "localhost" => (first, path.to_owned()),
            Some(_) => (HUB, rest.to_owned()),
            None => (HUB, format!("library/{rest}")),
        };
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) => (repository.to_owned(), Some(tag.to_owned())),
            None => (path, None),
        };
        let server = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        let part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        let tags = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_path = |path: &str| {
            path.split('/').all(|word| !word.is_empty() && !word.starts_with('.') && word.bytes().all(part))
        };
        let is_tag = |tag: &String| !tag.is_empty() && tag.len() <= 128 && tag.bytes().all(tags);
        let is_named = tag.as_ref().map_or(digest.is_some(), is_tag);
        if !registry.bytes().all(server) || !is_path(&repository) || !is_named {
            return Err(wrong());
        }
        Ok(Reference { registry: registry.to_owned(), repository, tag, digest })
    }

    /// The mirrors of the registry, in their order, then the registry itself.
    pub(super) fn places(&self, mirrors: &[(String, String)]) -> Vec<RepositoryLocation> {
        let of_registry = mirrors.iter().filter(|(registry, _)| *registry == self.registry);
        let mut places: Vec<RepositoryLocation> = of_registry.map(|(_, prefix)| self.behind(prefix)).collect();
        let server = if self.registry == HUB { HUB_SERVER } else { &self.registry };
        places.push(RepositoryLocation { server: server.to_owned(), repository: self.repository.clone() });
        places
    }

    fn behind(&self, prefix: &str) -> RepositoryLocation {
        let (scheme, rest) = match prefix.split_once("://") {
            Some((scheme, rest)) => (format!("{scheme}://"), rest),
            None => (String::new(), prefix),
        };
        let (server, path) = rest.trim_end_matches('/').split_once('/').unwrap_or((rest.trim_end_matches('/'), ""));
        let repository = match path {
            "" => self.repository.clone(),
            path => format!("{path}/{}", self.repository),
        };
        RepositoryLocation { server: format!("{scheme}{server}"), repository }
    }
}

impl RepositoryLocation {
    /// The address of what is behind `/v2/REPOSITORY/`. Without TLS only on loopback, or with the prefix http://.
    pub(super) fn address(&self, what: &str) -> String {
        let base = match self.server.contains("://") {
            true => self.server.clone(),
            false => {
                let host = self.server.rsplit_once(':').map_or(self.server.as_str(), |(host, _)| host);
                let is_loopback = host == "localhost" || host == "[::1]" || host.starts_with("127.");
                format!("{}://{}", if is_loopback { "http" } else { "https" }, self.server)
            }
        };
        format!("{base}/v2/{}/{what}", self.repository)
    }

    /// The server without scheme and login, as logins are kept for it.
    pub(super) fn host(&self) -> &str {
        let server = self.server.split_once("://").map_or(self.server.as_str(), |(_, host)| host);
        server.rsplit_once('@').map_or(server, |(_, host)| host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let parts = |text: &str| {
            let Reference { registry, repository, tag, .. } = Reference::parse_image_name(text).unwrap();
            format!("{registry} {repository} {}", tag.unwrap_or_default())
        };
        assert_eq!(parts("etcd:3"), "docker.io library/etcd 3");
        assert_eq!(parts("karmada/karmada-scheduler:v1.18.2"), "docker.io karmada/karmada-scheduler v1.18.2");
        assert_eq!(parts("localhost:5000/a/b:1"), "localhost:5000 a/b 1");
        let digest = format!("registry.k8s.io/a@sha256:{}", "0".repeat(64));
        assert!(Reference::parse_image_name(&digest).unwrap().digest.is_some());
        for wrong in
            ["a", "a:", "a:b/../c:1", "https://h/a:1", "h.x/a/../b:1", "a:1@sha256:0", "A:1", "h.x/a:1?x", "/a:1"]
        {
            assert!(Reference::parse_image_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn mirrors_come_first() {
        let mirrors = [("docker.io".to_owned(), "http://m:5000/hub".to_owned())];
        let reference = Reference::parse_image_name("docker.io/karmada/x:1").unwrap();
        let places: Vec<String> = reference.places(&mirrors).iter().map(|place| place.address("x")).collect();
        let wanted = ["http://m:5000/v2/hub/karmada/x/x", "https://registry-1.docker.io/v2/karmada/x/x"];
        assert_eq!(places, wanted);
        let local = Reference::parse_image_name("127.0.0.1:5000/a:1").unwrap();
        assert_eq!(local.places(&[])[0].address("x"), "http://127.0.0.1:5000/v2/a/x");
        let login = [("docker.io".to_owned(), "https://user:secret@m:5000".to_owned())];
        assert_eq!(reference.places(&login)[0].host(), "m:5000", "messages show it");
    }
}
