//! What images consist of: index, manifest, configuration, layers; each named by its digest.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::bundle::{Error, bytes_to_hex, hex_of};

/// Indexes and manifests are not larger than this.
pub(super) const LARGEST_MANIFEST: usize = 4 << 20;
/// What we ask registries for.
pub(super) const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Descriptor {
    pub digest: String,
    pub size: u64,
    #[serde(default)]
    pub platform: Option<Platform>,
    #[serde(default)]
    pub annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Platform {
    #[serde(default)]
    pub os: String,
    #[serde(default)]
    pub architecture: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Index {
    pub manifests: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Manifest {
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Config {
    #[serde(default)]
    pub os: String,
    #[serde(default)]
    pub architecture: String,
    pub rootfs: RootFs,
}

#[derive(Debug, Deserialize)]
pub(super) struct RootFs {
    pub diff_ids: Vec<String>,
}

/// An index or a manifest.
pub(super) enum Document {
    Index(Index),
    Manifest(Manifest),
}

impl Descriptor {
    pub(super) fn digest_hex(&self) -> Result<&str, Error> {
        hex_of(&self.digest).ok_or_else(|| Error::new(format!("unsupported digest {:?}", self.digest)))
    }
}

/// Reads an index or a manifest; `name` is for messages.
pub(super) fn document(text: &[u8], name: &str) -> Result<Document, Error> {
    #[derive(Deserialize)]
    struct IndexOrManifest {
        manifests: Option<serde::de::IgnoredAny>,
        layers: Option<serde::de::IgnoredAny>,
    }
    let either: IndexOrManifest = json(text, name)?;
    match (either.manifests, either.layers) {
        (Some(_), None) => json(text, name).map(Document::Index),
        (None, Some(_)) => json(text, name).map(Document::Manifest),
        _ => Err(Error::new(format!("{name} is neither an index nor a manifest of an image"))),
    }
}

pub(super) fn json<T: DeserializeOwned>(text: &[u8], name: &str) -> Result<T, Error> {
    serde_json::from_slice(text).map_err(|error| Error::new(format!("cannot read {name}: {error}")))
}

/// Compares a text with the digest that it must have.
pub(super) fn check_digest(text: &[u8], digest: &str, name: &str) -> Result<(), Error> {
    let found = format!("sha256:{}", bytes_to_hex(&Sha256::digest(text)));
    match found == digest {
        true => Ok(()),
        false => Err(Error::new(format!("{name} has the digest {found}, expected {digest}"))),
    }
}

impl Index {
    /// The image for Linux on an architecture. Attestations have the platform unknown.
    pub(super) fn child(&self, architecture: &str, name: &str) -> Result<&Descriptor, Error> {
        let is_image = |child: &&Descriptor| !child.annotations.contains_key("vnd.docker.reference.type");
        let is_for = |child: &&Descriptor| {
            child.platform.as_ref().is_some_and(|of| of.os == "linux" && of.architecture == architecture)
        };
        let fitting: Vec<&Descriptor> = self.manifests.iter().filter(is_image).filter(is_for).collect();
        match fitting.as_slice() {
            [one] => Ok(one),
            [] => {
                let platforms = self.manifests.iter().filter(is_image).filter_map(|child| child.platform.as_ref());
                let platforms: Vec<String> =
                    platforms.map(|Platform { os, architecture }| format!("{os}/{architecture}")).collect();
                Err(Error::new(format!(
                    "{name}: architecture mismatch: expected linux/{architecture}, found {}",
                    platforms.join(", ")
                )))
            }
            _ => Err(Error::new(format!("{name} has several images for linux/{architecture}"))),
        }
    }
}

impl Config {
    /// The digests of the unpacked layers, once it is clear that the image is for the architecture.
    pub(super) fn layers(self, of: &Manifest, architecture: &str, name: &str) -> Result<Vec<String>, Error> {
        if (self.os.as_str(), self.architecture.as_str()) != ("linux", architecture) {
            let Config { os, architecture: found, .. } = self;
            return Err(Error::new(format!(
                "{name}: architecture mismatch: expected linux/{architecture}, found {os}/{found}"
            )));
        }
        if self.rootfs.diff_ids.len() != of.layers.len() {
            return Err(Error::new(format!("{name}: its configuration and its manifest have different layers")));
        }
        Ok(self.rootfs.diff_ids)
    }
}
