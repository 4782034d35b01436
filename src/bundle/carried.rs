//! The recipes that windlass carries, and the digests that other projects publish. Both are data: see `recipes/`.

use std::collections::BTreeMap;
use std::path::Path;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use super::{Error, Recipe, is_plain};
use crate::value::nearest::nearest;
use crate::value::origin::Source;
use crate::value::vault::Keyring;
use crate::value::yaml;

static RECIPES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/bundle/recipes");
const DIGESTS: &str = "digests.yaml";

/// The recipe of a product for a version: `karmada-1.18.yaml` for 1.18.2.
pub fn recipe(name: &str, version: &str) -> Result<Recipe, Error> {
    let known = || recipe_names().join(", ");
    if version.split('.').count() < 3 || !is_plain(version) {
        return Err(Error::new(format!("{name:?} needs a version, such as {name}@1.18.2"))
            .hint(format!("windlass has recipes for {}", known())));
    }
    let version = version.trim_start_matches('v');
    let minor: Vec<&str> = version.split('.').take(2).collect();
    let file = format!("{name}-{}.yaml", minor.join("."));
    let Some(text) = RECIPES.get_file(&file).and_then(|file| file.contents_utf8()) else {
        let error = Error::new(format!("windlass has no recipe for {name}@{version}; it has {}", known()));
        let all = recipe_names();
        return Err(match nearest(name, all.iter().filter_map(|one| one.split('@').next())) {
            Some(near) if near != name => error.hint(format!("did you mean {near:?}?")),
            _ => error.hint("write your own recipe, and pass it with -f"),
        });
    };
    Recipe::parse_recipe(text, Path::new(&file), &[("release", version)])
}

/// `karmada@1.18`, and so on.
pub fn recipe_names() -> Vec<String> {
    let files = RECIPES.files().filter_map(|file| file.path().to_str()?.strip_suffix(".yaml"));
    let mut names: Vec<String> =
        files.filter_map(|name| name.rsplit_once('-')).map(|(name, minor)| format!("{name}@{minor}")).collect();
    names.sort();
    names
}

/// Digests by address.
pub fn digests() -> Result<BTreeMap<String, String>, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        /// Where the digests come from.
        #[serde(rename = "source")]
        _source: String,
        /// With `{arch}` and `{version}`.
        address: String,
        /// By architecture and version.
        digests: BTreeMap<String, BTreeMap<String, String>>,
    }
    let text = RECIPES.get_file(DIGESTS).and_then(|file| file.contents_utf8()).unwrap_or_default();
    let wrong = |why: String| Error::new(format!("internal error: {DIGESTS}: {why}"));
    let documents =
        yaml::parse_yaml(&Source::new(Path::new(DIGESTS), text).into()).map_err(|e| wrong(e.to_string()))?;
    let value = documents.first().ok_or_else(|| wrong("it is empty".into()))?.to_value(&Keyring::default());
    let tables = Vec::<Table>::deserialize(value.map_err(|e| wrong(e.to_string()))?);
    let mut all = BTreeMap::new();
    for table in tables.map_err(|error| wrong(error.to_string()))? {
        for (architecture, digests) in &table.digests {
            for (version, digest) in digests {
                let address = table.address.replace("{arch}", architecture).replace("{version}", version);
                all.insert(address, digest.clone());
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::hex_of;
    use super::*;

    #[test]
    fn every_recipe_can_be_read_and_names_what_a_bundle_needs() {
        for name in recipe_names() {
            let (product, minor) = name.split_once('@').unwrap();
            let recipe = recipe(product, &format!("{minor}.2")).unwrap();
            let sources = recipe.sources(&recipe.architectures).unwrap();
            assert!(!sources.is_empty() && sources.iter().all(|source| !source.version.is_empty()), "{name}");
        }
        assert!(recipe_names().contains(&"karmada@1.18".to_owned()) && recipe_names().contains(&"etcd@3.5".to_owned()));
    }

    #[test]
    fn the_digests_of_etcd_are_known_for_both_architectures() {
        let digests = digests().unwrap();
        assert!(digests.values().all(|digest| hex_of(digest).is_some()));
        let recipe = recipe("etcd", "3.5.21").unwrap();
        let sources = recipe.sources(&recipe.architectures).unwrap();
        assert_eq!(sources.len(), 2);
        assert!(sources.iter().all(|source| digests.contains_key(&source.origin.origin_name())), "{sources:?}");
    }

    #[test]
    fn what_has_no_recipe_is_refused_with_what_there_is() {
        let refused = |name, version| recipe(name, version).unwrap_err();
        assert!(
            refused("karmada", "0.1.2")
                .message
                .starts_with("windlass has no recipe for karmada@0.1.2; it has etcd@3.5")
        );
        assert_eq!(refused("karmda", "1.18.2").hint.as_deref(), Some("did you mean \"karmada\"?"));
        assert!(refused("karmada", "1.18").message.contains("needs a version"));
        assert!(refused("karmada", "1.18.2/../x").message.contains("needs a version"));
    }
}
