//! Encrypted backups are made, and decrypted by those who have the key.

#![cfg(feature = "age")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::directory::keep_in_directory;
use super::tests::{back_up, snapshot, taken};
use super::*;
use crate::credentials::{CredentialFile, CredentialFiles};

/// Two secret keys of age, and their public keys.
fn keys() -> [(Identities, Recipients); 2] {
    [(); 2].map(|()| {
        let secret = age::x25519::Identity::generate();
        let text = format!("# created: today\n# public key: {0}\n{1}\n", secret.to_public(), {
            use age::secrecy::ExposeSecret as _;
            secret.to_string().expose_secret().to_owned()
        });
        (Identities::from_lines(&text).unwrap(), Recipients::from_lines(&secret.to_public().to_string()).unwrap())
    })
}

fn encrypt(
    directory: &Path,
    content: &[u8],
    recipients: &Recipients,
    credentials: Option<&CredentialFiles>,
) -> BackupResult {
    let staging = Staging::in_directory(directory).unwrap();
    fs::write(staging.path().join("snapshot.db"), content).unwrap();
    let prepared = prepare_backup(&staging, taken(content, 5), "karmada".into(), recipients, credentials).unwrap();
    keep_in_directory(directory, staging, &prepared, &Retention::default()).unwrap()
}

#[test]
fn only_those_whom_a_backup_is_encrypted_for_can_restore_it() {
    let directory = tempfile::tempdir().unwrap();
    let content = snapshot(b"a Secret of the cluster ");
    let [(owner, to_owner), (other, to_other)] = keys();
    let made = encrypt(directory.path(), &content, &to_owner, None);
    let path = &made.backup.path;
    for file in fs::read_dir(path).unwrap().flatten() {
        assert!(!fs::read(file.path()).unwrap().windows(8).any(|part| part == b"a Secret"), "{file:?}");
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    }
    assert!(!path.join(SNAPSHOT).exists());
    let to = directory.path().join("out.db");
    for (identities, why) in [(Identities::default(), "--identity FILE"), (other.clone(), "none of the identities")] {
        let refused = unpack_backup(path, &to, &identities).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
        assert!(!to.exists());
    }
    assert!(verify(path, &Identities::default()).is_ok());
    assert_eq!(unpack_backup(path, &to, &owner).unwrap(), made.manifest);
    assert_eq!(fs::read(&to).unwrap(), content);
    // A version that knows nothing of encryption refuses it by its layout.
    assert_eq!(made.manifest.layout, 2);
    // For both.
    let both = tempfile::tempdir().unwrap();
    let made = encrypt(both.path(), &content, &to_owner.and(to_other), None);
    for identities in [&owner, &other] {
        assert!(verify(&made.backup.path, identities).is_ok());
    }
    // Damage is found without a key.
    let packed = made.backup.path.join(ENCRYPTED_SNAPSHOT);
    let mut bytes = fs::read(&packed).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&packed, bytes).unwrap();
    assert!(verify(&made.backup.path, &Identities::default()).unwrap_err().contains("digest differs"));
}

#[test]
fn credentials_come_back_from_an_encrypted_backup_and_are_in_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let content = snapshot(b"x");
    let [(owner, to_owner), (other, _)] = keys();
    let file = |text: &[u8], mode| CredentialFile { content: text.to_vec(), mode };
    let files = CredentialFiles::from([
        ("etcd/ca.key".into(), file(b"the key of the authority", 0o600)),
        ("etcd/hosts/h1/server.crt".into(), file(b"a certificate", 0o644)),
    ]);
    let made = encrypt(directory.path(), &content, &to_owner, Some(&files));
    assert_eq!(made.manifest.credentials.as_ref().unwrap().files, 2);
    let path = &made.backup.path;
    assert!(!fs::read(path.join(CREDENTIALS)).unwrap().windows(7).any(|part| part == b"the key"));
    let to = directory.path().join("new/credentials");
    assert!(unpack_credentials(path, &to, &other).unwrap_err().to_string().contains("none of the identities"));
    assert!(!to.exists());
    unpack_credentials(path, &to, &owner).unwrap();
    assert!(crate::credentials::read_files(&to).unwrap() == files);
    assert_eq!(to.metadata().unwrap().mode() & 0o777, 0o700);
    // Files that are there stay.
    assert!(matches!(unpack_credentials(path, &to, &owner), Err(BackupError::NotEmpty { .. })));
    // Damage of the credentials alone is found, too.
    fs::write(path.join(CREDENTIALS), b"other").unwrap();
    assert!(verify(path, &Identities::default()).is_err() && verify(path, &owner).is_err());
    // Not without encryption.
    let staging = Staging::in_directory(directory.path()).unwrap();
    fs::write(staging.path().join("snapshot.db"), &content).unwrap();
    let refused = prepare_backup(&staging, taken(&content, 6), "karmada".into(), &Recipients::default(), Some(&files));
    assert!(matches!(refused, Err(BackupError::CredentialsInClear)));
    let plain = back_up(directory.path(), &content, taken(&content, 7), None).unwrap();
    let none = unpack_credentials(&plain.backup.path, &directory.path().join("none"), &owner);
    assert!(matches!(none, Err(BackupError::HoldsNoCredentials { .. })));
}

#[test]
fn an_archive_of_credentials_stays_in_its_directory() {
    use super::files::write_packed;

    let [(owner, to_owner), _] = keys();
    for path in ["../outside", "/tmp/outside", "etcd/../../outside", "link", "etcd/\u{1b}]0;name"] {
        let directory = tempfile::tempdir().unwrap();
        let content = snapshot(b"x");
        let files = CredentialFiles::from([("a".into(), CredentialFile { content: vec![1], mode: 0o600 })]);
        let made = encrypt(directory.path(), &content, &to_owner, Some(&files));
        let at = made.backup.path.join(CREDENTIALS);
        fs::remove_file(&at).unwrap();
        let written = write_packed(&at, made.manifest.encryption.as_ref(), |to| {
            let mut header = tar::Header::new_gnu();
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(if path == "link" { tar::EntryType::Symlink } else { tar::EntryType::Regular });
            header.set_mode(0o600);
            header.set_size(0);
            header.set_cksum();
            to.write_all(header.as_bytes())?;
            to.write_all(&[0; 1024])
        });
        let (compressed_size, compressed_sha256) = written.unwrap();
        let credentials = PackedCredentials { files: 1, compressed_size, compressed_sha256 };
        let manifest = Manifest { credentials: Some(credentials), ..made.manifest };
        fs::write(made.backup.path.join(MANIFEST), serde_json::to_vec(&manifest).unwrap()).unwrap();
        let to = directory.path().join("new");
        let refused = unpack_credentials(&made.backup.path, &to, &owner).unwrap_err().to_string();
        assert!(refused.contains("is not a file in their directory"), "{path:?}: {refused}");
        assert!(!refused.contains('\u{1b}'), "{refused:?}");
        assert!(!to.exists());
        // It is found before it is needed, too.
        assert!(verify(&made.backup.path, &owner).unwrap_err().contains("is not a file in their directory"));
    }
}

#[test]
fn a_key_that_cannot_be_used_is_not_repeated() {
    let secret = "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ";
    for text in [secret, "age1qqqq", "age1", "ssh-ed25519 AAAA", ""] {
        let why = Recipients::from_lines(text).unwrap_err();
        assert!(text.is_empty() || !why.contains(text.split(' ').next_back().unwrap()) || text == "age1", "{why}");
    }
    assert!(Recipients::from_lines(secret).unwrap_err().starts_with("it is a secret key"));
    for text in ["", "# only a comment\n", "AGE-SECRET-KEY-1QQQQ", "age-encryption.org/v1\n-> scrypt"] {
        let why = Identities::from_lines(text).unwrap_err();
        assert!(!why.contains("QQQQ"), "{why}");
    }
}

#[test]
fn credentials_are_all_there_or_none_is() {
    let [(owner, to_owner), _] = keys();
    let directory = tempfile::tempdir().unwrap();
    let content = snapshot(b"x");
    let file = |size: usize| CredentialFile { content: vec![7; size], mode: 0o600 };
    let large = CredentialFiles::from([("etcd/image".into(), file(49 << 20))]);
    let staging = Staging::in_directory(directory.path()).unwrap();
    fs::write(staging.path().join("snapshot.db"), &content).unwrap();
    let refused = prepare_backup(&staging, taken(&content, 6), "karmada".into(), &to_owner, Some(&large));
    assert!(matches!(refused, Err(BackupError::LargeCredentials { size }) if size == 49 << 20));
    // An archive that ends early.
    let files = CredentialFiles::from([("a".into(), file(3)), ("b".into(), file(3))]);
    let made = encrypt(directory.path(), &content, &to_owner, Some(&files));
    let credentials = made.manifest.credentials.clone().map(|packed| PackedCredentials { files: 3, ..packed });
    fs::write(made.backup.path.join(MANIFEST), serde_json::to_vec(&Manifest { credentials, ..made.manifest }).unwrap())
        .unwrap();
    let to = directory.path().join("new");
    let refused = unpack_credentials(&made.backup.path, &to, &owner).unwrap_err().to_string();
    assert!(refused.contains("2 files instead of 3"), "{refused}");
    assert!(!to.exists());
    assert!(verify(&made.backup.path, &owner).unwrap_err().contains("2 files instead of 3"));
    // One that cannot be written as a whole leaves nothing.
    let directory = tempfile::tempdir().unwrap();
    let to = directory.path().join("new");
    let files = CredentialFiles::from([("a".into(), file(3)), ("a/b".into(), file(3))]);
    let made = encrypt(directory.path(), &content, &to_owner, Some(&files));
    let refused = unpack_credentials(&made.backup.path, &to, &owner).unwrap_err().to_string();
    assert!(refused.starts_with("cannot write "), "{refused}");
    let left = fs::read_dir(directory.path()).unwrap().flatten().map(|entry| entry.file_name()).collect::<Vec<_>>();
    assert!(!to.exists() && !left.iter().any(|name| name.to_string_lossy().contains("credentials")), "{left:?}");
}

#[test]
fn a_local_backup_that_was_copied_for_others_is_no_success() {
    let directory = tempfile::tempdir().unwrap();
    let content = snapshot(b"x");
    let [(_, to_owner), (_, to_other)] = keys();
    let files = CredentialFiles::from([("a".into(), CredentialFile { content: vec![1], mode: 0o600 })]);
    let copy = |recipients: &Recipients, credentials: Option<&CredentialFiles>| {
        let staging = Staging::in_directory(directory.path()).unwrap();
        fs::write(staging.path().join("snapshot.db"), &content).unwrap();
        let taken = SnapshotReport { taken: Some(StatusNumber::Number(1_795_494_651)), ..taken(&content, 5) };
        let prepared = prepare_backup(&staging, taken, "karmada".into(), recipients, credentials).unwrap();
        keep_in_directory(directory.path(), staging, &prepared, &Retention::default()).unwrap()
    };
    assert!(copy(&to_owner, None).failures.is_empty());
    let again = copy(&to_owner, None);
    assert!(again.was_there && again.failures.is_empty(), "{:?}", again.failures);
    for (recipients, credentials, why) in
        [(&to_other, None, "it is encrypted (age, to age1"), (&to_owner, Some(&files), "it has no credentials")]
    {
        let again = copy(recipients, credentials);
        assert!(again.failures[0].contains(why), "{:?}", again.failures);
    }
}
