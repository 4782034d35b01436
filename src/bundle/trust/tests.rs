//! Signatures by the real ssh-keygen, and every way to alter them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use russh::keys::ssh_key::{HashAlg, LineEnding, SshSig};
use russh::keys::{PrivateKey, PublicKey};

use super::*;
use crate::bundle::{Bundle, MANIFEST, NAMESPACE, ProgramQuery, pack, scan, signature_text, signed_data};
use crate::value::testing::write_program;

/// Keys, bundles and a file of allowed signers.
struct Desk {
    directory: tempfile::TempDir,
    around: ProcessEnvironment,
}

impl Desk {
    /// A bundle in `b`, the key `maker` of maker@x, who may sign, and the key `other`.
    fn new() -> Desk {
        let directory = tempfile::tempdir().unwrap();
        let around = ProcessEnvironment { home: Some(directory.path().join("home")), ..ProcessEnvironment::default() };
        let desk = Desk { directory, around };
        desk.keygen(&["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", "maker"]);
        desk.keygen(&["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", "other"]);
        desk.allow(&format!("maker@x {}", desk.public("maker")));
        desk.bundle("b", "3.5.21");
        desk
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn keygen(&self, arguments: &[&str]) {
        let output = Command::new("ssh-keygen").args(arguments).current_dir(self.directory.path()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn public(&self, key: &str) -> String {
        std::fs::read_to_string(self.at(&format!("{key}.pub"))).unwrap()
    }

    fn allow(&self, text: &str) {
        std::fs::write(self.at("signers"), text).unwrap();
    }

    fn bundle(&self, name: &str, version: &str) {
        let root = self.at(name);
        write_program(root.join("sub/etcd"), format!("#!/bin/sh\necho 'Sample v{version}'\n"));
        std::fs::write(root.join(MANIFEST), scan(&root).unwrap().manifest.to_yaml()).unwrap();
    }

    /// `ssh-keygen -Y sign` over the manifest of a bundle.
    fn ssh_keygen_signs(&self, bundle: &str, key: &str, namespace: &str) {
        let manifest = format!("{bundle}/{MANIFEST}");
        drop(std::fs::remove_file(self.at(&format!("{manifest}.sig"))));
        self.keygen(&["-q", "-Y", "sign", "-n", namespace, "-f", key, &manifest]);
    }

    /// Ours.
    fn signs(&self, bundle: &str, key: &str) -> String {
        let mut opened = Bundle::open_bundle(&self.at(bundle), &self.around, None).unwrap();
        let manifest = opened.to_be_signed().unwrap().text.clone();
        let text = self.own_signature(key, &manifest);
        opened.add_signature(&text).unwrap()
    }

    fn own_signature(&self, key: &str, manifest: &str) -> String {
        let private = PrivateKey::from_openssh(std::fs::read(self.at(key)).unwrap()).unwrap();
        let signature = russh::keys::signature::Signer::try_sign(&private, &signed_data(manifest).unwrap()).unwrap();
        signature_text(private.public_key(), signature, manifest).unwrap()
    }

    fn required(&self) -> RequiredSigners {
        RequiredSigners { signers: self.at("signers"), revoked: None, principals: Vec::new() }
    }

    fn open(&self, bundle: &str) -> Result<Bundle, String> {
        let opened = Bundle::open_bundle(&self.at(bundle), &self.around, Some(&self.required()));
        opened.map_err(|error| error.message.replace(&self.directory.path().display().to_string(), "HERE"))
    }

    /// Why the only signature of `b` does not count.
    fn why(&self, required: &RequiredSigners) -> String {
        let bundle = Bundle::open_bundle(&self.at("b"), &self.around, None).unwrap();
        let verdicts = required.judge(bundle.seal().unwrap(), &self.around).unwrap();
        assert_eq!(verdicts.len(), 1);
        assert!(Bundle::open_bundle(&self.at("b"), &self.around, Some(required)).is_err());
        verdicts[0].who.clone().unwrap_err()
    }

    fn signature(&self) -> String {
        std::fs::read_to_string(self.at("b/manifest.yaml.sig")).unwrap()
    }

    fn replace_signature(&self, text: impl AsRef<[u8]>) {
        std::fs::write(self.at("b/manifest.yaml.sig"), text).unwrap();
    }
}

const KINDS: [(&str, &str); 5] =
    [("ed25519", "256"), ("rsa", "3072"), ("ecdsa", "256"), ("ecdsa", "384"), ("ecdsa", "521")];

#[test]
fn what_ssh_keygen_signs_counts_here_and_what_is_signed_here_counts_there() {
    let desk = Desk::new();
    for (kind, bits) in KINDS {
        let key = format!("{kind}-{bits}");
        desk.keygen(&["-q", "-t", kind, "-b", bits, "-N", "", "-C", "", "-f", &key]);
        desk.allow(&format!("maker@x namespaces=\"{NAMESPACE}\" {}", desk.public(&key)));
        desk.ssh_keygen_signs("b", &key, NAMESPACE);
        assert!(desk.open("b").is_ok(), "{key}");
        std::fs::remove_file(desk.at("b/manifest.yaml.sig")).unwrap();
        assert_eq!(desk.signs("b", &key), "manifest.yaml.sig");
        assert!(desk.open("b").is_ok(), "{key}");
        let manifest = std::fs::File::open(desk.at("b/manifest.yaml")).unwrap();
        let verified = Command::new("ssh-keygen")
            .args(["-Y", "verify", "-f", "signers", "-I", "maker@x", "-n", NAMESPACE, "-s", "b/manifest.yaml.sig"])
            .current_dir(desk.directory.path())
            .stdin(Stdio::from(manifest))
            .output()
            .unwrap();
        assert!(verified.status.success(), "{key}: {verified:?}");
    }
}

#[test]
fn an_altered_signature_does_not_count() {
    let desk = Desk::new();
    desk.ssh_keygen_signs("b", "maker", NAMESPACE);
    assert!(desk.open("b").is_ok());
    let good = desk.signature();
    let refused = |what: &str, text: &[u8], why: &str| {
        desk.replace_signature(text);
        assert_eq!(desk.why(&desk.required()), why, "{what}");
    };
    let (broken, wrong) = ("it is not one whole SSH signature", "the key did not make it over this manifest");
    refused("empty", b"", broken);
    refused("truncated", &good.as_bytes()[..good.len() / 2], broken);
    refused("without its end", good.replace("-----END SSH SIGNATURE-----", "").as_bytes(), broken);
    refused("twice", format!("{good}{good}").as_bytes(), broken);
    refused("with text behind it", format!("{good}and more\n").as_bytes(), broken);
    refused("with text before it", format!("trust me\n{good}").as_bytes(), broken);
    refused("no text", b"\xff\xfe", "it is not text");
    refused("another label", good.replace("SSH SIGNATURE", "PGP SIGNATURE").as_bytes(), broken);
    let inner: String = good.lines().filter(|line| !line.starts_with('-')).collect();
    let engine = &base64::engine::general_purpose::STANDARD;
    let longer = [base64::Engine::decode(engine, &inner).unwrap(), vec![0]].concat();
    let longer = base64::Engine::encode(engine, longer);
    let longer: Vec<&str> = longer.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let longer = format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", longer.join("\n"));
    refused("with a byte behind it", longer.as_bytes(), broken);
    // Every byte, one after the other, whatever the reason.
    let raw = SshSig::from_pem(&good).unwrap();
    let line = |sig: &SshSig| sig.to_pem(LineEnding::LF).unwrap();
    let bytes: Vec<u8> = russh::keys::ssh_key::encoding::Encode::encode_vec(&raw).unwrap();
    for at in 0..bytes.len() {
        let mut altered = bytes.clone();
        altered[at] ^= 1;
        let Ok(altered) = <SshSig as russh::keys::ssh_key::encoding::Decode>::decode(&mut altered.as_slice()) else {
            continue;
        };
        desk.replace_signature(line(&altered));
        assert!(desk.open("b").is_err(), "byte {at}");
    }
    // The same signature under the name of an allowed key, and of another one.
    let other = PublicKey::from_openssh(&desk.public("other")).unwrap();
    let renamed = SshSig::new(other.key_data().clone(), NAMESPACE, HashAlg::Sha512, raw.signature().clone()).unwrap();
    refused("another key", line(&renamed).as_bytes(), wrong);
    desk.ssh_keygen_signs("b", "other", NAMESPACE);
    let by_other = SshSig::from_pem(desk.signature()).unwrap();
    let stolen =
        SshSig::new(raw.public_key().clone(), NAMESPACE, HashAlg::Sha512, by_other.signature().clone()).unwrap();
    refused("of another key under an allowed name", line(&stolen).as_bytes(), wrong);
    refused("of somebody else", line(&by_other).as_bytes(), "the key is not that of an allowed signer");
    // Another namespace, said or hidden.
    desk.ssh_keygen_signs("b", "maker", "git");
    let of_git = SshSig::from_pem(desk.signature()).unwrap();
    refused("of a commit", line(&of_git).as_bytes(), "its namespace is \"git\", not \"windlass-bundle\"");
    let hidden = SshSig::new(of_git.public_key().clone(), NAMESPACE, HashAlg::Sha512, of_git.signature().clone());
    refused("of a commit, renamed", line(&hidden.unwrap()).as_bytes(), wrong);
    // The other hash.
    let sha256 = SshSig::new(raw.public_key().clone(), NAMESPACE, HashAlg::Sha256, raw.signature().clone()).unwrap();
    refused("another hash", line(&sha256).as_bytes(), wrong);
    // Of another bundle.
    desk.bundle("newer", "3.6.1");
    desk.ssh_keygen_signs("newer", "maker", NAMESPACE);
    refused("of another bundle", &std::fs::read(desk.at("newer/manifest.yaml.sig")).unwrap(), wrong);
    desk.replace_signature(good);
    assert!(desk.open("b").is_ok());
}

#[test]
fn a_signer_may_be_revoked_too_late_or_somebody_else() {
    let desk = Desk::new();
    desk.ssh_keygen_signs("b", "maker", NAMESPACE);
    let required = desk.required();
    let line = |options: &str| desk.allow(&format!("maker@x {options} {}", desk.public("maker")));
    line("valid-before=\"20200101Z\"");
    assert_eq!(desk.why(&required), "the key counted until 2020-01-01T00:00:00Z (line 1)");
    line("valid-after=\"21000101Z\"");
    assert_eq!(desk.why(&required), "the key counts from 2100-01-01T00:00:00Z on (line 1)");
    line("namespaces=\"git\"");
    assert_eq!(desk.why(&required), "the signer may not sign bundles (namespaces in line 1)");
    line("");
    let named = RequiredSigners { principals: vec!["boss@x".to_owned()], ..required.clone() };
    assert_eq!(desk.why(&named), "the signer is maker@x, not boss@x");
    for listed in [desk.public("maker"), key_of(&desk, "maker")] {
        std::fs::write(desk.at("revoked"), listed).unwrap();
        let revoked = RequiredSigners { revoked: Some(desk.at("revoked")), ..required.clone() };
        assert_eq!(desk.why(&revoked), "the key is revoked");
    }
    std::fs::write(desk.at("revoked"), desk.public("other")).unwrap();
    let revoked = RequiredSigners { revoked: Some(desk.at("revoked")), ..required.clone() };
    assert!(Bundle::open_bundle(&desk.at("b"), &desk.around, Some(&revoked)).is_ok());
    // A list that cannot be read revokes everything.
    let missing = RequiredSigners { revoked: Some(desk.at("none")), ..required };
    let refused = Bundle::open_bundle(&desk.at("b"), &desk.around, Some(&missing)).unwrap_err();
    assert!(refused.message.contains("none: No such file"), "{refused}");
}

fn key_of(desk: &Desk, name: &str) -> String {
    PublicKey::from_openssh(&desk.public(name)).unwrap().fingerprint(HashAlg::Sha256).to_string()
}

#[test]
fn without_a_good_signature_nothing_is_opened() {
    let desk = Desk::new();
    assert_eq!(desk.open("b").unwrap_err(), "the bundle HERE/b is not signed, and bundle_signers demands a signature");
    desk.ssh_keygen_signs("b", "other", NAMESPACE);
    let refused = desk.open("b").unwrap_err();
    let expected = format!(
        "no signature of the bundle HERE/b counts (manifest.yaml.sig by ssh-ed25519 {}: the key is not that of an allowed signer)",
        key_of(&desk, "other")
    );
    assert_eq!(refused, expected);
    desk.ssh_keygen_signs("b", "maker", NAMESPACE);
    assert!(desk.open("b").is_ok());
    for (signers, why) in
        [("", "HERE/signers names no signers"), ("x\n", "HERE/signers:1: expected PRINCIPALS [OPTIONS] KEY")]
    {
        desk.allow(signers);
        assert_eq!(desk.open("b").unwrap_err(), why);
    }
    std::fs::remove_file(desk.at("signers")).unwrap();
    assert!(desk.open("b").unwrap_err().contains("signers: No such file"));
    // A directory of programs alone: its programs are not run for their versions.
    desk.allow(&format!("maker@x {}", desk.public("maker")));
    write_program(desk.at("bare/etcd"), format!("#!/bin/sh\ntouch {}\n", desk.at("ran").display()));
    assert_eq!(desk.open("bare").unwrap_err(), "the bundle HERE/bare has no manifest, so nobody can have signed it");
    assert!(!desk.at("ran").exists());
}

#[test]
fn what_is_changed_after_signing_is_refused() {
    let desk = Desk::new();
    desk.ssh_keygen_signs("b", "maker", NAMESPACE);
    let wanted = ProgramQuery { component: "etcd", architecture: "amd64", version: None };
    let manifest = std::fs::read_to_string(desk.at("b/manifest.yaml")).unwrap();
    let program = std::fs::read_to_string(desk.at("b/sub/etcd")).unwrap();
    // A file and the manifest, to fit it, while a run is at it: the digests are those of the signed manifest.
    let opened = desk.open("b").unwrap();
    std::fs::write(desk.at("b/sub/etcd"), program.replace("Sample", "Sbmple")).unwrap();
    std::fs::write(desk.at("b/manifest.yaml"), scan(&desk.at("b")).unwrap().manifest.to_yaml()).unwrap();
    assert!(opened.find_program(wanted).unwrap_err().message.contains("has changed"));
    assert!(desk.open("b").unwrap_err().contains("the key did not make it over this manifest"));
    std::fs::write(desk.at("b/manifest.yaml"), &manifest).unwrap();
    assert!(desk.open("b").unwrap().find_program(wanted).unwrap_err().message.contains("has changed"));
    std::fs::write(desk.at("b/sub/etcd"), program).unwrap();
    assert!(desk.open("b").unwrap().find_program(wanted).is_ok());
    for altered in [manifest.replace("3.5.21", "3.5.22"), format!("{manifest}\n"), format!("{manifest}---\n{manifest}")]
    {
        std::fs::write(desk.at("b/manifest.yaml"), altered).unwrap();
        assert!(desk.open("b").unwrap_err().contains("the key did not make it over this manifest"));
    }
    std::fs::write(desk.at("b/manifest.yaml"), &manifest).unwrap();
    // What nobody signed.
    for stray in ["sub/etcdctl", "manifest.yml", ".hidden", "manifest.yaml.sig.old"] {
        std::fs::write(desk.at("b").join(stray), "x").unwrap();
        let refused = desk.open("b").unwrap_err();
        assert_eq!(refused, format!("the bundle HERE/b has a file that its manifest does not list: {stray}"));
        std::fs::remove_file(desk.at("b").join(stray)).unwrap();
    }
    std::os::unix::fs::symlink("/", desk.at("b/all")).unwrap();
    assert!(desk.open("b").unwrap_err().ends_with("does not list: all"));
}

#[test]
fn a_signer_does_not_sign_what_differs_from_its_manifest() {
    let desk = Desk::new();
    let refused = |desk: &Desk| {
        Bundle::open_bundle(&desk.at("b"), &desk.around, None).unwrap().to_be_signed().unwrap_err().message
    };
    std::fs::write(desk.at("b/README"), "x").unwrap();
    assert!(refused(&desk).ends_with("has a file that its manifest does not list: README"));
    std::fs::remove_file(desk.at("b/README")).unwrap();
    std::fs::write(desk.at("b/sub/etcd"), "x").unwrap();
    assert!(refused(&desk).contains("has changed"));
    std::fs::remove_file(desk.at("b/manifest.yaml")).unwrap();
    assert!(refused(&desk).contains("has no manifest.yaml"));
    // What an agent answers is checked.
    let desk = Desk::new();
    let text = desk.own_signature("maker", "one");
    let of_one = SshSig::from_pem(text).unwrap();
    let key = PublicKey::from_openssh(&desk.public("maker")).unwrap();
    let refused = signature_text(&key, of_one.signature().clone(), "two").unwrap_err();
    assert_eq!(refused.message, "cannot sign: the key did not make it over this manifest");
}

#[test]
fn an_archive_is_signed_by_several_and_stays_the_same_bundle() {
    let desk = Desk::new();
    let archive = desk.at("b.tar.zst");
    pack(&desk.at("b"), &scan(&desk.at("b")).unwrap().manifest, &archive).unwrap();
    assert!(desk.open("b.tar.zst").unwrap_err().contains("is not signed"));
    // Nothing was unpacked.
    assert!(!desk.at("home").exists());
    assert_eq!(desk.signs("b.tar.zst", "other"), "manifest.yaml.sig");
    assert!(desk.open("b.tar.zst").unwrap_err().contains("not that of an allowed signer"));
    assert_eq!(desk.signs("b.tar.zst", "maker"), "manifest.yaml.2.sig");
    let once = std::fs::read(&archive).unwrap();
    let bundle = desk.open("b.tar.zst").unwrap();
    assert_eq!(bundle.verify().unwrap(), []);
    let verdicts = desk.required().judge(bundle.seal().unwrap(), &desk.around).unwrap();
    let who: Vec<_> = verdicts.iter().map(|it| (it.file.as_str(), it.who.as_deref().unwrap_or("nobody"))).collect();
    assert_eq!(who, [("manifest.yaml.2.sig", "maker@x"), ("manifest.yaml.sig", "nobody")]);
    assert_eq!(bundle.signing_keys().len(), 2);
    // The same key again replaces its signature.
    assert_eq!(desk.signs("b.tar.zst", "maker"), "manifest.yaml.2.sig");
    assert_eq!(std::fs::read(&archive).unwrap(), once);
    // The directory takes the same signatures.
    assert_eq!(desk.signs("b", "maker"), "manifest.yaml.sig");
    assert_eq!(desk.signs("b", "other"), "manifest.yaml.2.sig");
    assert!(desk.open("b").is_ok());
}

/// A tar of these files, in this order.
fn tar(to: &Path, files: &[(&str, &[u8])]) {
    let mut archive = tar::Builder::new(zstd::Encoder::new(std::fs::File::create(to).unwrap(), 1).unwrap());
    for (name, content) in files {
        crate::bundle::append(&mut archive, name, content.len() as u64, 0o644, *content).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap();
}

#[test]
fn an_archive_with_more_than_was_signed_is_not_unpacked() {
    let desk = Desk::new();
    desk.ssh_keygen_signs("b", "maker", NAMESPACE);
    let read = |name: &str| std::fs::read(desk.at("b").join(name)).unwrap();
    let (manifest, signature, program) = (read("manifest.yaml"), read("manifest.yaml.sig"), read("sub/etcd"));
    let head = [("manifest.yaml", manifest.as_slice()), ("manifest.yaml.sig", signature.as_slice())];
    let listed = ("sub/etcd", program.as_slice());
    let archive = desk.at("a.tar.zst");
    for (stray, content) in [
        ("etcdctl", b"x".as_slice()),
        ("manifest.yaml", manifest.as_slice()),
        // A signature that is not in the head.
        ("manifest.yaml.3.sig", signature.as_slice()),
    ] {
        tar(&archive, &[head[0], head[1], listed, (stray, content)]);
        let refused = desk.open("a.tar.zst").unwrap_err();
        assert_eq!(refused, format!("HERE/a.tar.zst has a file that its manifest does not list: {stray}"));
    }
    let other = String::from_utf8(manifest.clone()).unwrap().replace("3.5.21", "3.5.22");
    tar(&archive, &[("manifest.yaml", other.as_bytes()), head[0], head[1], listed]);
    assert!(desk.open("a.tar.zst").unwrap_err().contains("is not signed"));
    tar(&archive, &[head[0], head[1], ("sub/etcd", b"other")]);
    assert!(desk.open("a.tar.zst").unwrap_err().contains("differs from its digest"));
    let unpacked = std::fs::read_dir(desk.at("home/.cache/windlass/bundles")).unwrap().count();
    assert_eq!(unpacked, 0);
    tar(&archive, &[head[0], head[1], listed]);
    assert!(desk.open("a.tar.zst").is_ok());
    // Others with the same manifest, which is unpacked already.
    for (files, why) in [
        (
            &[head[0], head[1], ("sub/etcd", b"other".as_slice())] as &[_],
            "sub/etcd differs from its digest in the manifest",
        ),
        (&[head[0], head[1]], "it has no sub/etcd"),
        (&[head[0], head[1], listed, ("sub/etcd", b"second")], "sub/etcd differs from its digest in the manifest"),
    ] {
        tar(&archive, files);
        let problems = desk.open("a.tar.zst").unwrap().verify().unwrap();
        assert!(problems.len() == 1 && problems[0].message.ends_with(why), "{why}: {problems:?}");
    }
}

#[test]
fn a_manifest_lists_neither_itself_nor_signatures_and_is_one_document() {
    let desk = Desk::new();
    let refused = |text: &str| {
        std::fs::write(desk.at("b/manifest.yaml"), text).unwrap();
        Bundle::open_bundle(&desk.at("b"), &desk.around, None).unwrap_err().message
    };
    let item = |file: &str| {
        format!(
            "format: 1\nfiles:\n- {{component: a, version: '1', architecture: any, file: {file}, size: 1, sha256: x}}\n"
        )
    };
    for file in ["manifest.yaml", "manifest.yaml.sig", "manifest.yaml.2.sig"] {
        assert!(refused(&item(file)).ends_with("is not a file of the bundle"), "{file}");
    }
    assert!(refused(&format!("{}---\n{}", item("a"), item("b"))).ends_with("is not the manifest of a bundle"));
    assert!(refused(&item("a")).ends_with("the sha256 of \"a\" is no digest"));
    // What a terminal would obey, or show elsewhere.
    for file in ["\"a\\e[2J\"", "\"a\\n+ signature\"", "\"a\\u202eb\"", "\"a\\u0085\""] {
        assert!(refused(&item(file)).ends_with("has control characters"), "{file}");
    }
    write_program(desk.at("b/sub/e\x1b[2J"), "#!/bin/sh\necho 'Sample v1.2.3'\n");
    assert!(scan(&desk.at("b")).unwrap_err().message.ends_with("has control characters"));
}
