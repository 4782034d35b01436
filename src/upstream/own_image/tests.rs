//! The archive that is written, read again, and what is refused.

use super::*;
use crate::value::ProcessEnvironment;

/// An ELF program that does nothing: its header, and with `interpreter` a header of one.
fn program(path: &Path, machine: u16, interpreter: bool) {
    let mut bytes = vec![0; 64 + 56];
    bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    bytes[32] = 64;
    bytes[54] = 56;
    bytes[56] = 1;
    bytes[64] = if interpreter { 3 } else { 1 };
    std::fs::write(path, bytes).unwrap();
}

struct Made {
    scratch: tempfile::TempDir,
    programs: Vec<PathBuf>,
    shells: Vec<PathBuf>,
    bundles: Vec<(String, Bundle)>,
}

fn made() -> Made {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    for (name, machine) in [("windlass-amd64", 62), ("windlass-arm64", 183), ("shell-arm64", 183), ("shell-amd64", 62)]
    {
        program(&at(name), machine, false);
    }
    std::fs::create_dir(at("bundle")).unwrap();
    program(&at("bundle/etcd"), 62, false);
    let digest = crate::bundle::file_digest(&at("bundle/etcd")).unwrap();
    let text = format!(
        "format: 1\nfiles:\n  - {{component: etcd, version: 3.5.21, architecture: amd64, file: etcd, size: 120, sha256: \"{digest}\"}}\n"
    );
    std::fs::write(at("bundle/manifest.yaml"), text).unwrap();
    let bundle = Bundle::open_bundle(&at("bundle"), &ProcessEnvironment::default(), None).unwrap();
    Made {
        programs: vec![at("windlass-amd64"), at("windlass-arm64")],
        shells: vec![at("shell-arm64"), at("shell-amd64")],
        bundles: vec![("karmada".to_owned(), bundle)],
        scratch,
    }
}

impl Made {
    fn image<'a>(&'a self, name: &'a str) -> OwnImage<'a> {
        OwnImage { name, version: "1", programs: &self.programs, shells: &self.shells, bundles: &self.bundles }
    }

    fn write(&self, name: &str) -> Result<Vec<u8>, String> {
        let to = self.scratch.path().join("image.tar");
        let written = self.image(name).write_image(&to);
        written.map_err(|error| error.message)?;
        Ok(std::fs::read(to).unwrap())
    }
}

#[test]
fn the_same_input_makes_the_same_bytes_for_both_architectures() {
    let made = made();
    let first = made.write("registry.example/windlass:1").unwrap();
    assert_eq!(first, made.write("registry.example/windlass:1").unwrap());
    let mut names = Vec::new();
    let mut archive = tar::Archive::new(first.as_slice());
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        // Every blob has the name of its digest.
        if let Some(digest) = name.strip_prefix("blobs/sha256/") {
            assert_eq!(bytes_to_hex(&Sha256::digest(&content)), digest);
        }
        if name == "index.json" {
            let text = String::from_utf8(content).unwrap();
            assert!(text.contains("registry.example/windlass:1"), "{text}");
        }
        names.push(name);
    }
    // Two programs, configurations and manifests, one bundle, one index.
    assert_eq!(names.iter().filter(|name| name.starts_with("blobs/")).count(), 8, "{names:?}");
}

#[test]
fn what_cannot_run_or_was_changed_is_refused_and_nothing_is_left() {
    let made = made();
    let refused = |what: &str, name: &str, expected: &str| {
        let why = made.write(name).unwrap_err();
        assert!(why.contains(expected), "{what}: {why}");
    };
    refused("no tag", "windlass", "expected REGISTRY/REPOSITORY:TAG");
    program(&made.programs[0], 62, true);
    refused("needs an interpreter", "windlass:1", "needs libraries that an image does not have");
    std::fs::write(&made.programs[0], "#!/bin/sh\necho no program, though long enough\n").unwrap();
    refused("a script", "windlass:1", "is not a program");
    program(&made.programs[0], 183, false);
    refused("the same architecture twice", "windlass:1", "is a second program for arm64");
    program(&made.programs[0], 62, false);
    program(&made.shells[1], 183, false);
    refused("no shell", "windlass:1", "no busybox for amd64");
    program(&made.shells[1], 62, false);
    std::fs::write(made.scratch.path().join("bundle/etcd"), "other").unwrap();
    refused("another program in the bundle", "windlass:1", "has changed");
    let left = std::fs::read_dir(made.scratch.path()).unwrap().count();
    assert_eq!(left, 5, "the programs, the shells and the bundle");
}
