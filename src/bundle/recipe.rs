//! Recipes: where the files of a bundle come from. Data that a person writes, or that windlass carries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{ANY, Error};
use crate::value::origin::Source as Text;
use crate::value::vault::Keyring;
use crate::value::yaml;

/// As a person writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    pub name: String,
    /// Of the bundle, and of each source that has none of its own.
    #[serde(default)]
    pub version: Option<String>,
    /// Words that addresses and versions may contain in braces.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    pub architectures: Vec<String>,
    sources: Vec<RecipeDocument>,
    /// Relative paths begin here.
    #[serde(skip)]
    directory: PathBuf,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecipeDocument {
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    image: Option<String>,
    #[serde(default)]
    archive: Option<String>,
    #[serde(default)]
    directory: Option<String>,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    architecture: Option<String>,
    #[serde(default)]
    digest: Option<Digests>,
    #[serde(default)]
    take: Vec<String>,
}

/// One for all architectures, or one for each.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Digests {
    One(String),
    Each(BTreeMap<String, String>),
}

/// Where files come from, for one architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipeSource {
    pub origin: Origin,
    /// `any`: for all.
    pub architecture: String,
    /// Without a `v`. Empty: of a directory, whose files say it themselves.
    pub version: String,
    /// `sha256:` and hex. None: the recipe has none.
    pub digest: Option<String>,
    /// Paths, or ends of paths, in the archive or image. `crds/`: all definitions below a directory of that name. Empty: the file
    /// itself.
    pub take: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Url(String),
    /// In a registry.
    Image(String),
    /// `docker save`, or an OCI layout; the image in it, if it has several.
    Archive {
        path: PathBuf,
        image: Option<String>,
    },
    Directory(PathBuf),
}

/// An address without `USER:PASSWORD@`.
pub fn without_login(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => address.to_owned(),
    }
}

impl Origin {
    /// As digests are kept for it, and for messages: without the login of an address.
    pub fn origin_name(&self) -> String {
        match self {
            Origin::Url(address) => without_login(address),
            Origin::Image(reference) => reference.clone(),
            Origin::Archive { path, image: Some(image) } => format!("{} ({image})", path.display()),
            Origin::Archive { path, image: None } | Origin::Directory(path) => path.display().to_string(),
        }
    }
}

impl Recipe {
    /// From text; `path` is for messages, and relative paths begin beside it. `set` wins over the recipe's own `versions`.
    pub fn parse_recipe(text: &str, path: &Path, set: &[(&str, &str)]) -> Result<Recipe, Error> {
        let source = Text::new(path, text);
        let documents = yaml::parse_yaml(&source.into()).map_err(|complaint| Error::new(complaint.to_string()))?;
        let wrong = |why: String| Error::new(format!("{} is not a recipe: {why}", path.display()));
        let value = documents.first().ok_or_else(|| wrong("it is empty".into()))?;
        let value = value.to_value(&Keyring::default()).map_err(|complaint| Error::new(complaint.to_string()))?;
        let mut recipe = Recipe::deserialize(value).map_err(|error| wrong(error.to_string()))?;
        recipe.versions.extend(set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        recipe.directory = path.parent().map(Path::to_owned).unwrap_or_default();
        if recipe.architectures.is_empty() || recipe.sources.is_empty() {
            return Err(wrong("it needs architectures and sources".into()));
        }
        let words = recipe.architectures.iter().chain([&recipe.name]).chain(recipe.versions.values());
        let odd = words.into_iter().find(|word| !is_plain(word)).cloned();
        match odd {
            Some(word) => Err(wrong(format!("{word:?} may have letters, digits, dots, dashes and underscores only"))),
            None => Ok(recipe),
        }
    }

    /// The version of the whole, if it has one.
    pub fn version(&self) -> Result<Option<String>, Error> {
        self.version.as_deref().map(|version| self.filled(version, None)).transpose()
    }

    /// Every source for every architecture that is wanted.
    pub fn sources(&self, architectures: &[String]) -> Result<Vec<RecipeSource>, Error> {
        let mut sources = Vec::new();
        for written in &self.sources {
            sources.extend(self.expanded(written, architectures)?);
        }
        Ok(sources)
    }

    fn expanded(&self, written: &RecipeDocument, architectures: &[String]) -> Result<Vec<RecipeSource>, Error> {
        let RecipeDocument { url, image, archive, directory, .. } = written;
        let named = url.as_deref().or(archive.as_deref()).or(image.as_deref()).or(directory.as_deref());
        let named = named.ok_or_else(|| self.wrong("a source needs url, image, archive or directory"))?;
        let for_all = directory.is_some() || (url.is_some() && !named.contains("{arch}"));
        let wanted = match &written.architecture {
            Some(one) if one == ANY || architectures.contains(one) => vec![one.clone()],
            Some(_) => Vec::new(),
            None if for_all => vec![ANY.to_owned()],
            None => architectures.to_vec(),
        };
        wanted.into_iter().map(|architecture| self.one(written, architecture)).collect()
    }

    fn one(&self, written: &RecipeDocument, architecture: String) -> Result<RecipeSource, Error> {
        let fill = |text: &String| self.filled(text, Some(&architecture));
        let path = |text: &String| fill(text).map(|text| self.directory.join(text));
        let RecipeDocument { url, image, archive, directory, .. } = written;
        let origin = match (url, image, archive, directory) {
            (Some(url), None, None, None) => Origin::Url(fill(url)?),
            (None, Some(image), None, None) => Origin::Image(fill(image)?),
            (None, image, Some(archive), None) => {
                Origin::Archive { path: path(archive)?, image: image.as_ref().map(fill).transpose()? }
            }
            (None, None, None, Some(directory)) => Origin::Directory(path(directory)?),
            _ => {
                return Err(
                    self.wrong("a source has one of url, image, archive and directory; archive may name an image")
                );
            }
        };
        let digest = match &written.digest {
            Some(Digests::One(digest)) => Some(digest.clone()),
            Some(Digests::Each(all)) => all.get(&architecture).cloned(),
            None => None,
        };
        if let Some(digest) = digest.as_ref().filter(|digest| hex_of(digest).is_none()) {
            return Err(self.wrong(&format!("{digest:?} must be sha256: and 64 lower-case hexadecimal digits")));
        }
        let take = written.take.iter().map(fill).collect::<Result<Vec<_>, _>>()?;
        let is_image = matches!(origin, Origin::Image(_) | Origin::Archive { .. });
        if is_image && take.is_empty() {
            return Err(self.wrong(&format!("{} needs take: the programs in the image", origin.origin_name())));
        }
        let version = written.version.as_ref().or(self.version.as_ref());
        let version = match version {
            Some(version) => fill(version)?.trim_start_matches('v').to_owned(),
            None if matches!(origin, Origin::Directory(_)) => String::new(),
            None => return Err(self.wrong(&format!("{} needs a version", origin.origin_name()))),
        };
        if !version.is_empty() && !is_plain(&version) {
            return Err(self.wrong(&format!("invalid version {version:?}")));
        }
        Ok(RecipeSource { origin, architecture, version, digest, take })
    }

    /// A text with the words in braces replaced.
    fn filled(&self, text: &str, architecture: Option<&str>) -> Result<String, Error> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) =
                after.split_once('}').ok_or_else(|| self.wrong(&format!("{text:?} has no closing }}")))?;
            let value = match name {
                "arch" => architecture,
                name => self.versions.get(name).map(String::as_str),
            };
            let value = value.ok_or_else(|| self.wrong(&format!("{text:?}: {{{name}}} is not in versions")))?;
            filled.push_str(before);
            filled.push_str(value);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn wrong(&self, why: &str) -> Error {
        Error::new(format!("the recipe {}: {why}", self.name))
    }
}

/// The hex of a digest `sha256:HEX`.
pub fn hex_of(digest: &str) -> Option<&str> {
    let hex = digest.strip_prefix("sha256:")?;
    let is_hex = hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then_some(hex)
}

/// Whether a word can be part of a file's name and of an address.
pub fn is_plain(word: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+');
    !word.is_empty() && !word.starts_with(['.', '-']) && word.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: &str = "\
name: etcd
version: '{release}'
versions: {release: 3.5.21}
architectures: [amd64, arm64]
sources:
- url: https://h/etcd-v{release}-linux-{arch}.tar.gz
  take: [etcd]
- image: registry/x:v{release}
  take: [bin/x]
  digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
- url: https://h/crds.tar.gz
  take: [crds/]
";

    #[test]
    fn a_source_stands_for_each_architecture() {
        let recipe = Recipe::parse_recipe(RECIPE, Path::new("/r/x.yaml"), &[("release", "3.5.22")]).unwrap();
        let sources = recipe.sources(&recipe.architectures).unwrap();
        let names: Vec<String> =
            sources.iter().map(|it| format!("{} {}", it.architecture, it.origin.origin_name())).collect();
        assert_eq!(
            names,
            [
                "amd64 https://h/etcd-v3.5.22-linux-amd64.tar.gz",
                "arm64 https://h/etcd-v3.5.22-linux-arm64.tar.gz",
                "amd64 registry/x:v3.5.22",
                "arm64 registry/x:v3.5.22",
                "any https://h/crds.tar.gz",
            ]
        );
        assert!(sources.iter().all(|source| source.version == "3.5.22"));
        assert_eq!(recipe.sources(&["amd64".into()]).unwrap().len(), 3);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |from: &str, to: &str| {
            let recipe = Recipe::parse_recipe(&RECIPE.replace(from, to), Path::new("x.yaml"), &[]);
            recipe.and_then(|recipe| recipe.sources(&recipe.architectures)).unwrap_err().message
        };
        assert!(wrong("take: [etcd]", "took: [etcd]").contains("took"));
        assert_eq!(
            wrong("v{release}-", "v{other}-"),
            "the recipe etcd: \"https://h/etcd-v{other}-linux-{arch}.tar.gz\": {other} is not in versions"
        );
        assert!(wrong("sha256:0", "sha256:G").contains("64 lower-case hexadecimal digits"));
        assert!(wrong("3.5.21", "../..").contains("letters, digits"));
        assert!(wrong("  take: [bin/x]\n", "").contains("needs take"));
        assert!(
            wrong("- url: https://h/crds.tar.gz\n", "- version: '1'\n")
                .contains("needs url, image, archive or directory")
        );
    }
}
