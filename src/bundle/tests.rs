//! Bundles of small scripts, and of files that have no more of a program than its ELF header.

use std::path::Path;

use super::*;
use crate::value::ProcessEnvironment;
use crate::value::testing::write_program;

/// A program that says its version.
fn script(root: &Path, file: &str, version: &str) {
    write_program(root.join(file), format!("#!/bin/sh\necho 'Sample v{version}'\n"));
}

/// The first bytes of a program for an architecture.
fn program(root: &Path, file: &str, machine: u8) {
    let path = root.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, machine, 0];
    bytes.extend([7; 100]);
    std::fs::write(path, bytes).unwrap();
}

const AMD64: u8 = 62;
const ARM64: u8 = 183;

fn with_manifest(root: &Path) -> Bundle {
    let manifest = scan(root).unwrap().manifest;
    std::fs::write(root.join(MANIFEST), manifest.to_yaml()).unwrap();
    Bundle::open_bundle(root, &ProcessEnvironment::default(), None).unwrap()
}

fn wanted(component: &str) -> ProgramQuery<'_> {
    ProgramQuery { component, architecture: "amd64", version: None }
}

fn message<T: std::fmt::Debug>(root: &Path, result: Result<T, Error>) -> String {
    result.unwrap_err().message.replace(&root.display().to_string(), "BUNDLE")
}

#[test]
fn a_directory_is_a_bundle_without_a_manifest() {
    let root = tempfile::tempdir().unwrap();
    script(root.path(), "etcd", "3.5.30");
    let found = Bundle::open_bundle(root.path(), &ProcessEnvironment::default(), None)
        .unwrap()
        .find_program(wanted("etcd"))
        .unwrap();
    assert_eq!((found.version.as_str(), found.architecture.as_str()), ("3.5.30", "any"));
    assert_eq!(found.path, root.path().join("etcd"));
    assert_eq!(found.sha256, file_digest(&root.path().join("etcd")).unwrap());
}

#[test]
fn every_architecture_and_version_is_found_where_it_lies() {
    let root = tempfile::tempdir().unwrap();
    program(root.path(), "v3.5.21/amd64/etcd", AMD64);
    program(root.path(), "v3.5.21/arm64/etcd", ARM64);
    program(root.path(), "v3.6.1/arm64/etcd", ARM64);
    for bundle in
        [Bundle::open_bundle(root.path(), &ProcessEnvironment::default(), None).unwrap(), with_manifest(root.path())]
    {
        let at = |architecture, version| bundle.find_program(ProgramQuery { component: "etcd", architecture, version });
        assert_eq!(at("amd64", None).unwrap().path, root.path().join("v3.5.21/amd64/etcd"));
        assert_eq!(at("arm64", Some("3.5")).unwrap().path, root.path().join("v3.5.21/arm64/etcd"));
        assert_eq!(at("arm64", Some("v3.6.1")).unwrap().path, root.path().join("v3.6.1/arm64/etcd"));
        let several = at("arm64", None).unwrap_err();
        assert!(several.message.ends_with("has etcd 3.5.21 and 3.6.1"), "{several}");
        assert_eq!(several.hint.as_deref(), Some("choose one with version"));
        assert!(at("amd64", Some("3.6")).unwrap_err().message.ends_with("has etcd 3.5.21, not 3.6"));
        let strange = at("s390x", None).unwrap_err().message;
        assert!(strange.ends_with("has etcd for amd64 and arm64, not for s390x"), "{strange}");
    }
}

#[test]
fn a_component_that_is_not_there_is_named_with_its_neighbour() {
    let root = tempfile::tempdir().unwrap();
    script(root.path(), "karmadactl", "1.19.0");
    let error = with_manifest(root.path()).find_program(wanted("karmadctl")).unwrap_err();
    assert!(error.message.ends_with("has no karmadctl"), "{error}");
    assert_eq!(error.hint.as_deref(), Some("did you mean \"karmadactl\"?"));
}

#[test]
fn an_altered_a_missing_and_a_disguised_file_are_reported() {
    let root = tempfile::tempdir().unwrap();
    for name in ["altered", "disguised", "missing"] {
        program(root.path(), &format!("v1.2.3/{name}"), AMD64);
    }
    let bundle = with_manifest(root.path());
    assert_eq!(bundle.verify().unwrap(), []);
    let altered = root.path().join("v1.2.3/altered");
    let mut bytes = std::fs::read(&altered).unwrap();
    bytes[50] ^= 1;
    std::fs::write(&altered, bytes).unwrap();
    std::fs::remove_file(root.path().join("v1.2.3/missing")).unwrap();
    program(root.path(), "v1.2.3/disguised", ARM64);
    let mut manifest = bundle.manifest().unwrap();
    let item = manifest.files.iter_mut().find(|item| item.component == "disguised").unwrap();
    item.sha256 = file_digest(&root.path().join(&item.file)).unwrap();
    std::fs::write(root.path().join(MANIFEST), manifest.to_yaml()).unwrap();
    let bundle = Bundle::open_bundle(root.path(), &ProcessEnvironment::default(), None).unwrap();
    let reported = message(root.path(), bundle.find_program(wanted("altered")));
    assert!(reported.starts_with("v1.2.3/altered in the bundle BUNDLE has changed: its SHA-256 is "), "{reported}");
    assert_eq!(
        message(root.path(), bundle.find_program(wanted("missing"))),
        "v1.2.3/missing is missing from the bundle BUNDLE"
    );
    let reported = message(root.path(), bundle.find_program(wanted("disguised")));
    assert_eq!(
        reported,
        "v1.2.3/disguised in the bundle BUNDLE: architecture mismatch: the manifest says amd64, found arm64"
    );
    assert_eq!(bundle.verify().unwrap().len(), 3);
}

#[test]
fn a_version_that_cannot_be_found_is_asked_for() {
    let root = tempfile::tempdir().unwrap();
    program(root.path(), "etcd", ARM64);
    let error = scan(root.path()).unwrap_err();
    let foreign = elf::own() != "arm64";
    if foreign {
        assert_eq!(
            error.message,
            "cannot find out the version of etcd: it is built for arm64, which this machine cannot run"
        );
    }
    assert!(error.hint.unwrap().contains("v1.2.3"));
    // Unless the caller names the version.
    let bundle = Bundle::open_bundle(root.path(), &ProcessEnvironment::default(), None).unwrap();
    let found = bundle
        .find_program(ProgramQuery { component: "etcd", architecture: "arm64", version: Some("3.5.21") })
        .unwrap();
    assert_eq!(found.version, "3.5.21");
}

#[test]
fn definitions_have_the_version_of_their_neighbours_and_packages_their_own() {
    let root = tempfile::tempdir().unwrap();
    script(root.path(), "karmada-scheduler", "1.19.0-rc.0");
    for file in ["crds/bases/a.yaml", "crds/b.yaml", "notes.yaml", "packages/debian12/curl_7.88.1-10_amd64.deb"] {
        std::fs::create_dir_all(root.path().join(file).parent().unwrap()).unwrap();
        std::fs::write(root.path().join(file), file).unwrap();
    }
    std::fs::write(root.path().join("packages/x-1.2-3.el9.noarch.rpm"), "x").unwrap();
    let scanned = scan(root.path()).unwrap();
    assert_eq!(scanned.left_out, ["notes.yaml"]);
    let reported: Vec<_> = scanned
        .manifest
        .files
        .iter()
        .map(|item| format!("{} {} {}", item.component, item.version, item.architecture))
        .collect();
    let expected = [
        "crds 1.19.0-rc.0 any",
        "crds 1.19.0-rc.0 any",
        "karmada-scheduler 1.19.0-rc.0 any",
        "packages 7.88.1-10 amd64",
        "packages 1.2 any",
    ];
    assert_eq!(reported, expected);
    let crds = with_manifest(root.path()).find_all("crds", Some("1.19")).unwrap();
    assert_eq!(crds.iter().map(|it| it.path.file_name().unwrap()).collect::<Vec<_>>(), ["b.yaml", "a.yaml"]);
}

fn unpack(archive: &Path, cache: &Path) -> Result<PathBuf, Error> {
    let seal = archive::head(archive)?;
    let manifest = seal.parsed_manifest(&archive.join(MANIFEST))?;
    archive::unpack_below(archive, &seal, &manifest, false, cache)
}

#[test]
fn an_archive_is_the_same_bundle() {
    let root = tempfile::tempdir().unwrap();
    script(root.path(), "sub/etcd", "3.5.30");
    let manifest = scan(root.path()).unwrap().manifest;
    let archive = root.path().join("bundle.tar.zst");
    pack(root.path(), &manifest, &archive).unwrap();
    let again = root.path().join("again.tar.zst");
    pack(root.path(), &manifest, &again).unwrap();
    assert_eq!(std::fs::read(&archive).unwrap(), std::fs::read(&again).unwrap());
    let cache = tempfile::tempdir().unwrap();
    let unpacked = unpack(&archive, cache.path()).unwrap();
    let bundle = Bundle::open_bundle(&unpacked, &ProcessEnvironment::default(), None).unwrap();
    assert_eq!(bundle.manifest().unwrap(), manifest);
    assert_eq!(bundle.verify().unwrap(), []);
    assert_eq!(versions::as_it_says(&bundle.find_program(wanted("etcd")).unwrap().path).as_deref(), Some("3.5.30"));
    assert_eq!(unpack(&archive, cache.path()).unwrap(), unpacked);
    assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 1);
    // Nobody else can exchange programs there.
    let open = tempfile::tempdir().unwrap();
    let below = open.path().join("bundles");
    std::fs::create_dir(&below).unwrap();
    std::fs::set_permissions(&below, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let refused = unpack(&archive, &below).unwrap_err();
    assert!(refused.message.contains("another user can write to"), "{}", refused.message);
    // A program that differs from its manifest is not kept.
    let mut other = manifest.clone();
    other.files[0].sha256 = "0".repeat(64);
    pack(root.path(), &other, &again).unwrap();
    let refused = unpack(&again, cache.path()).unwrap_err();
    assert!(refused.message.contains("differs from its digest in the manifest"), "{}", refused.message);
    assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 1);
}

#[test]
fn what_is_no_bundle_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let around = ProcessEnvironment { home: Some(cache.path().to_owned()), ..ProcessEnvironment::default() };
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("x");
    std::fs::write(&file, "x").unwrap();
    assert_eq!(
        message(&file, Bundle::open_bundle(&file, &ProcessEnvironment::default(), None)),
        "BUNDLE is not a bundle: expected a directory or a .tar.zst"
    );
    let archive = root.path().join("x.tar.zst");
    std::fs::write(&archive, "no archive").unwrap();
    assert!(message(&archive, Bundle::open_bundle(&archive, &around, None)).starts_with("cannot unpack BUNDLE: "));
    std::fs::write(root.path().join(MANIFEST), "format: 1\nfiles: 7\n").unwrap();
    assert_eq!(
        message(root.path(), Bundle::open_bundle(root.path(), &ProcessEnvironment::default(), None)),
        "BUNDLE/manifest.yaml is not the manifest of a bundle"
    );
    let outside =
        "format: 1\nfiles:\n- {component: a, version: '1', architecture: any, file: ../a, size: 1, sha256: x}\n";
    std::fs::write(root.path().join(MANIFEST), outside).unwrap();
    let reported = message(root.path(), Bundle::open_bundle(root.path(), &ProcessEnvironment::default(), None));
    assert_eq!(reported, "BUNDLE/manifest.yaml: \"../a\" points outside the bundle");
}
