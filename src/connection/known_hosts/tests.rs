//! What the records mean, compared with what `ssh-keygen -F` finds where it can say.

use std::process::Command;

use super::*;

const ED: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA6rWI3G1sz07DnfFlrouTcysQlj2P+jpNSOEWD9OJ3X";

fn known(text: &str) -> KnownHosts {
    let mut known = KnownHosts::default();
    known.add(text, Path::new("/known"));
    known
}

fn key(text: &str) -> PublicKeyOrCertificate {
    PublicKey::from_openssh(text).unwrap().into()
}

fn check(text: &str, name: &Name) -> HostKeyVerdict {
    known(text).check_host_key(name, &key(ED))
}

fn is_known(text: &str, host: &str, port: u16) -> bool {
    check(text, &Name::new(host, port)) == HostKeyVerdict::Known
}

#[test]
fn names_are_found_as_openssh_finds_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("known_hosts");
    let lines = [
        format!("plain,other.example.com {ED} a comment with blanks"),
        format!("tab\t{ED}"),
        format!("  indented   {ED}"),
        format!("*.wild.example.com,!not.wild.example.com {ED}"),
        format!("[port]:2222 {ED}"),
        format!("10.1.?.* {ED}"),
        format!("MiXed.Case {ED}"),
        format!("# commented {ED}"),
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    let mut names = vec!["plain", "other.example.com", "tab", "indented", "a.wild.example.com", "not.wild.example.com"];
    names.extend(["wild.example.com", "[port]:2222", "port", "10.1.2.33", "10.1.22.3", "mixed.case", "commented", "#"]);
    let compare = |names: &[&str]| {
        let known = KnownHosts::read_known_hosts(std::slice::from_ref(&file)).unwrap();
        for name in names {
            let output = Command::new("ssh-keygen").args(["-F", name, "-f"]).arg(&file).output().unwrap();
            let ours = !known.of(&Name::alias(name), Marker::None).is_empty();
            assert_eq!(ours, output.status.success(), "{name}");
        }
    };
    compare(&names);
    assert!(Command::new("ssh-keygen").args(["-q", "-H", "-f"]).arg(&file).output().unwrap().status.success());
    assert!(fs::read_to_string(&file).unwrap().contains("|1|"));
    compare(&names);
}

#[test]
fn a_port_is_part_of_the_name() {
    assert!(is_known(&format!("[h]:2222 {ED}"), "H", 2222));
    assert!(!is_known(&format!("[h]:2222 {ED}"), "h", 22));
    assert!(!is_known(&format!("[h]:2222 {ED}"), "h", 2223));
    assert!(is_known(&format!("h {ED}"), "h", 22));
    // The same key under the bare name is good enough, another one says nothing.
    assert!(is_known(&format!("h {ED}"), "h", 2222));
    let verdict = check(&format!("h {OTHER}"), &Name::new("h", 2222));
    assert_eq!(verdict, HostKeyVerdict::Unknown { certificate: None });
    assert!(is_known(&format!("alias {ED}"), "alias", 22));
    assert_eq!(check(&format!("alias {ED}"), &Name::alias("ALIAS")), HostKeyVerdict::Known);
}

#[test]
fn one_of_several_keys_is_enough() {
    assert!(is_known(&format!("h {OTHER}\nh {ED}\n"), "h", 22));
}

#[test]
fn another_key_is_a_changed_one_with_its_place() {
    let HostKeyVerdict::Changed(record) = check(&format!("\n# old\nh {OTHER}\n"), &Name::new("h", 22)) else {
        panic!()
    };
    assert_eq!((record.file.as_path(), record.line), (Path::new("/known"), 3));
    assert_eq!(record.algorithm, "ssh-ed25519");
    assert!(record.fingerprint.starts_with("SHA256:"));
    assert_eq!(record.fingerprint, key_fingerprint(&PublicKey::from_openssh(OTHER).unwrap()));
}

#[test]
fn a_revoked_key_is_refused_wherever_it_is_revoked() {
    for revocation in ["@revoked *", "@revoked h", "@revoked\th,x", "@revoked [h]:2222"] {
        let verdict = check(&format!("[h]:2222 {ED}\n{revocation} {ED}\n"), &Name::new("h", 2222));
        assert!(matches!(verdict, HostKeyVerdict::Revoked(Record { line: 2, .. })), "{revocation}: {verdict:?}");
    }
    assert!(is_known(&format!("h {ED}\n@revoked elsewhere {ED}\n@revoked * {OTHER}\n"), "h", 22));
}

#[test]
fn an_authoritys_key_is_no_host_key() {
    let verdict = check(&format!("@cert-authority * {ED}\n"), &Name::new("h", 22));
    assert_eq!(verdict, HostKeyVerdict::Unknown { certificate: None });
}

#[test]
fn lines_that_cannot_be_read_are_passed_over() {
    let text =
        format!("h\nh ssh-ed25519\nh ssh-ed25519 !!!\n@strange h {ED}\n|1|x {ED}\n|1|a|b {ED}\n\u{fffd}\nh {ED}\n");
    assert!(is_known(&text, "h", 22));
    assert!(!is_known(&format!("@strange h {ED}\n"), "h", 22));
}

#[test]
fn recorded_types_are_asked_for_first() {
    let rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQA=";
    let algorithms = |text: &str| -> Vec<String> {
        known(text).algorithms(&Name::new("h", 22)).iter().map(ToString::to_string).collect()
    };
    let all = algorithms("");
    assert_eq!((all[0].as_str(), all.len()), ("ssh-ed25519", 6));
    let first = algorithms(&format!("h {rsa}\nelsewhere {ED}\n"));
    assert_eq!((&first[..2], first.len()), (&["rsa-sha2-512".to_owned(), "rsa-sha2-256".to_owned()][..], 6));
    assert!(!first.contains(&"ssh-rsa".to_owned()), "SHA-1 is not asked for");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_a_missing_one_is_empty() {
    let directory = tempfile::tempdir().unwrap();
    assert!(KnownHosts::read_known_hosts(&[directory.path().join("none")]).unwrap().entries.is_empty());
    assert!(KnownHosts::read_known_hosts(&[directory.path().to_owned()]).is_err());
}

#[test]
fn a_record_is_made_once_and_never_over_another_key() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a/b/known_hosts");
    let name = Name::new("h", 2222);
    for hashed in [false, true] {
        assert_eq!(record(&file, &name, &key(ED), hashed).unwrap(), HostKeyVerdict::Known);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("[h]:2222 {ED}\n"));
    assert!(matches!(record(&file, &name, &key(OTHER), false).unwrap(), HostKeyVerdict::Changed(_)));
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
}
