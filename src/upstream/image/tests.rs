//! Layers, and the image of an architecture.

use super::*;

const AMD64: &[&str] = &["bin/x"];

fn layer(members: &[(&str, Option<&str>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        match content {
            Some(text) => {
                header.set_size(text.len() as u64);
                builder.append_data(&mut header, path, text.as_bytes()).unwrap();
            }
            None => {
                header.set_size(0);
                header.set_entry_type(tar::EntryType::Symlink);
                builder.append_link(&mut header, path, "elsewhere").unwrap();
            }
        }
    }
    builder.into_inner().unwrap()
}

fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", bytes_to_hex(&Sha256::digest(bytes)))
}

/// What is found in layers, the lowest first.
fn found(layers: &[Vec<u8>]) -> Result<String, String> {
    let to = tempfile::tempdir().unwrap();
    let take: Vec<String> = AMD64.iter().map(|path| (*path).to_owned()).collect();
    let wanted = ImageSelection { architecture: "amd64", take: &take, digest: None, to: to.path() };
    let mut search = Search::new(&wanted, "IMAGE");
    for bytes in layers.iter().rev() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        if search.layer(file.path(), &digest_of(bytes)).map_err(|error| error.message)? {
            break;
        }
    }
    let taken = search.finish().map_err(|error| error.message)?;
    Ok(std::fs::read_to_string(&taken[0].path).unwrap())
}

#[test]
fn the_uppermost_layer_that_has_a_program_counts() {
    let (old, new) = (layer(&[("bin/x", Some("old"))]), layer(&[("bin/x", Some("new"))]));
    let other = layer(&[("bin/y", Some("y")), ("bin/.wh.z", Some(""))]);
    assert_eq!(found(&[old.clone(), new.clone(), other.clone()]).unwrap(), "new");
    for removed in ["bin/.wh.x", ".wh.bin", "bin/.wh..wh..opq", ".wh..wh..opq"] {
        let upper = layer(&[(removed, Some(""))]);
        assert_eq!(found(&[old.clone(), upper.clone()]).unwrap_err(), "IMAGE has no /bin/x", "{removed}");
        assert_eq!(found(&[old.clone(), upper, new.clone()]).unwrap(), "new");
        // A layer that removes files of lower layers may add its own.
        let both = layer(&[(removed, Some("")), ("bin/x", Some("own"))]);
        assert_eq!(found(&[old.clone(), both]).unwrap(), "own", "{removed}");
    }
    assert_eq!(found(&[old.clone(), layer(&[("bin", None)])]).unwrap_err(), "IMAGE has no /bin/x");
    assert!(found(&[old, layer(&[("bin/x", None)])]).unwrap_err().contains("bin/x is a link to elsewhere"));
    let twice = layer(&[("bin/x", Some("1")), ("bin/x", Some("2"))]);
    assert_eq!(found(&[twice]).unwrap_err(), "IMAGE: one layer has bin/x more than once");
}

#[test]
fn a_layer_must_unpack_to_what_the_configuration_says() {
    let to = tempfile::tempdir().unwrap();
    let take = vec!["bin/x".to_owned()];
    let wanted = ImageSelection { architecture: "amd64", take: &take, digest: None, to: to.path() };
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), layer(&[("bin/x", Some("x"))])).unwrap();
    let mut search = Search::new(&wanted, "IMAGE");
    let message = search.layer(file.path(), &digest_of(b"other")).unwrap_err().message;
    assert!(message.starts_with("IMAGE: a layer unpacks to the digest sha256:"), "{message}");
}

#[test]
fn the_image_of_an_architecture_is_chosen_from_an_index() {
    let amd = r#"{"digest": "amd", "size": 1, "platform": {"os": "linux", "architecture": "amd64"}}"#;
    let attestation = r#"{"digest": "att", "size": 1, "annotations": {"vnd.docker.reference.type": "attestation-manifest"}, "platform": {"os": "linux", "architecture": "amd64"}}"#;
    let unknown = r#"{"digest": "unk", "size": 1, "platform": {"os": "unknown", "architecture": "unknown"}}"#;
    let windows = r#"{"digest": "win", "size": 1, "platform": {"os": "windows", "architecture": "amd64"}}"#;
    let index = |parts: &[&str]| -> oci::Index {
        serde_json::from_str(&format!(r#"{{"manifests": [{}]}}"#, parts.join(","))).unwrap()
    };
    let all = index(&[attestation, unknown, windows, amd]);
    assert_eq!(all.child("amd64", "IMAGE").unwrap().digest, "amd");
    let message = all.child("arm64", "IMAGE").unwrap_err().message;
    assert_eq!(
        message,
        "IMAGE: architecture mismatch: expected linux/arm64, found unknown/unknown, windows/amd64, linux/amd64"
    );
    let twice = index(&[amd, amd]);
    assert_eq!(twice.child("amd64", "IMAGE").unwrap_err().message, "IMAGE has several images for linux/amd64");
}
