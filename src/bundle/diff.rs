//! What one bundle has that another has not.

use std::collections::BTreeSet;

use serde::Serialize;

use super::manifest::{Item, Manifest};
use super::package_file::PackageFile;

/// How two bundles differ. The fields are those of the JSON.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct BundleDiff {
    pub only_in_a: Vec<Item>,
    pub only_in_b: Vec<Item>,
    pub changed: Vec<ChangedItem>,
    /// Keys whose signature is right in one bundle, and which did not sign the other.
    pub signed_only_a: Vec<String>,
    pub signed_only_b: Vec<String>,
}

/// The same program for the same architecture, or the same file, with another content, version, place or source.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ChangedItem {
    pub a: Item,
    pub b: Item,
    /// The names of the fields that differ.
    pub differs: Vec<&'static str>,
}

impl BundleDiff {
    pub fn of_manifests(a: &Manifest, b: &Manifest) -> BundleDiff {
        let mut diff = BundleDiff::default();
        let mut left: Vec<&Item> = b.files.iter().collect();
        let mut unmatched = Vec::new();
        for item in &a.files {
            match left.iter().position(|other| other.file == item.file) {
                Some(at) => diff.compare(item, left.remove(at)),
                None => unmatched.push(item),
            }
        }
        // A program of another version usually has another path. Where there are several on one side, nobody knows which is which.
        let alone = |items: &[&Item], key: &Key<'_>| items.iter().filter(|item| Key::of(item) == *key).count() == 1;
        let all = unmatched.clone();
        for item in unmatched {
            let key = Key::of(item);
            let pair = left.iter().position(|other| Key::of(other) == key);
            match pair.filter(|_| alone(&all, &key) && alone(&left, &key)) {
                Some(at) => diff.compare(item, left.remove(at)),
                None => diff.only_in_a.push(item.clone()),
            }
        }
        diff.only_in_b = left.into_iter().cloned().collect();
        diff
    }

    /// Compares who signed, too.
    #[must_use]
    pub fn with_keys(mut self, a: Vec<String>, b: Vec<String>) -> BundleDiff {
        let (a, b): (BTreeSet<String>, BTreeSet<String>) = (a.into_iter().collect(), b.into_iter().collect());
        self.signed_only_a = a.difference(&b).cloned().collect();
        self.signed_only_b = b.difference(&a).cloned().collect();
        self
    }

    pub fn is_same(&self) -> bool {
        *self == BundleDiff::default()
    }

    fn compare(&mut self, a: &Item, b: &Item) {
        let fields = [
            ("component", a.component == b.component),
            ("version", a.version == b.version),
            ("architecture", a.architecture == b.architecture),
            ("file", a.file == b.file),
            ("size", a.size == b.size),
            ("sha256", a.sha256 == b.sha256),
            ("source", a.source == b.source),
        ];
        let differs: Vec<&str> = fields.iter().filter(|(_, same)| !same).map(|(name, _)| *name).collect();
        if !differs.is_empty() {
            self.changed.push(ChangedItem { a: a.clone(), b: b.clone(), differs });
        }
    }
}

/// What stays the same from version to version.
#[derive(PartialEq, Eq)]
struct Key<'a> {
    component: &'a str,
    architecture: &'a str,
    name: &'a str,
}

impl<'a> Key<'a> {
    fn of(item: &'a Item) -> Key<'a> {
        let base = item.file.rsplit('/').next().unwrap_or(&item.file);
        let package = PackageFile::parse_file_name(base).filter(|_| item.component == "packages");
        let name = package.map_or(base, |package| package.name);
        Key { component: &item.component, architecture: &item.architecture, name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(component: &str, version: &str, architecture: &str, file: &str, sha256: &str) -> Item {
        let text = str::to_owned;
        Item {
            component: text(component),
            version: text(version),
            architecture: text(architecture),
            file: text(file),
            size: sha256.len() as u64,
            sha256: text(sha256),
            source: None,
        }
    }

    fn bundle(items: &[Item]) -> Manifest {
        Manifest::new(items.to_vec())
    }

    #[test]
    fn a_new_version_at_another_path_is_a_change_of_the_same_program() {
        let old = bundle(&[
            item("etcd", "3.5.21", "amd64", "etcd-3.5.21/amd64/etcd", "aa"),
            item("etcd", "3.5.21", "arm64", "etcd-3.5.21/arm64/etcd", "ab"),
            item("packages", "7.1", "amd64", "packages/curl_7.1_amd64.deb", "c"),
            item("crds", "1.18.2", "any", "crds/a.yaml", "same"),
        ]);
        let new = bundle(&[
            item("etcd", "3.5.30", "amd64", "etcd-3.5.30/amd64/etcd", "bbb"),
            item("packages", "7.2", "amd64", "packages/curl_7.2_amd64.deb", "d"),
            item("crds", "1.18.2", "any", "crds/a.yaml", "same"),
            item("etcdctl", "3.5.30", "amd64", "etcd-3.5.30/amd64/etcdctl", "e"),
        ]);
        let diff = BundleDiff::of_manifests(&old, &new);
        let changed: Vec<_> = diff.changed.iter().map(|it| (it.a.file.as_str(), it.differs.join(","))).collect();
        assert_eq!(
            changed,
            [
                ("etcd-3.5.21/amd64/etcd", "version,file,size,sha256".to_owned()),
                ("packages/curl_7.1_amd64.deb", "version,file,sha256".to_owned())
            ]
        );
        assert_eq!(diff.only_in_a.iter().map(|it| &*it.file).collect::<Vec<_>>(), ["etcd-3.5.21/arm64/etcd"]);
        assert_eq!(diff.only_in_b.iter().map(|it| &*it.component).collect::<Vec<_>>(), ["etcdctl"]);
        assert!(!diff.is_same() && BundleDiff::of_manifests(&old, &old).is_same());
    }

    #[test]
    fn several_of_a_name_are_not_guessed_to_be_the_same() {
        let old = bundle(&[item("etcd", "1", "amd64", "1/etcd", "a"), item("etcd", "2", "amd64", "2/etcd", "b")]);
        let new = bundle(&[item("etcd", "3", "amd64", "3/etcd", "c")]);
        let diff = BundleDiff::of_manifests(&old, &new);
        assert_eq!((diff.only_in_a.len(), diff.only_in_b.len(), diff.changed.len()), (2, 1, 0));
    }

    #[test]
    fn sources_and_signers_count() {
        let one = item("etcd", "1", "amd64", "etcd", "a");
        let moved = Item { source: Some("https://mirror.example/etcd".to_owned()), ..one.clone() };
        let diff = BundleDiff::of_manifests(&bundle(std::slice::from_ref(&one)), &bundle(&[moved]));
        assert_eq!(diff.changed[0].differs, ["source"]);
        let same =
            || BundleDiff::of_manifests(&bundle(std::slice::from_ref(&one)), &bundle(std::slice::from_ref(&one)));
        let keys = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let diff = same().with_keys(keys(&["maker"]), keys(&["maker", "border"]));
        assert_eq!((diff.signed_only_a.len(), diff.signed_only_b), (0, keys(&["border"])));
        assert!(same().with_keys(keys(&["maker"]), keys(&["maker"])).is_same());
    }
}
