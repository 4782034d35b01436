//! Tests with records that were written by hand.

use std::fs;

use serde_json::{Value, json};

use super::*;
use crate::bundle::Bundle;
use crate::bundle::sbom::bill_of_module;

fn record(id: &str, aliases: &[&str], module: &str, events: &Value, severity: Option<&str>) -> Value {
    let affected =
        json!([{"package": {"ecosystem": "Go", "name": module}, "ranges": [{"type": "SEMVER", "events": events}]}]);
    let mut record = json!({"id": id, "aliases": aliases, "summary": format!("about {id}"), "modified": "2026-11-01T00:00:00Z", "affected": affected});
    if let Some(severity) = severity {
        record["database_specific"] = json!({"severity": severity, "url": "https://example.com"});
    }
    record
}

fn report(version: &str, records: &[Value], statements: &Value) -> VulnerabilityReport {
    let directory = tempfile::tempdir().unwrap();
    let (database, vex) = (directory.path().join("all.json"), directory.path().join("vex.json"));
    fs::write(&database, json!(records).to_string()).unwrap();
    fs::write(&vex, json!({"@context": "https://openvex.dev/ns/v0.2.0", "statements": statements}).to_string())
        .unwrap();
    let database = VulnerabilityDatabase::read_database(&database).unwrap();
    let vex = VexDocument::read_vex(&vex).unwrap();
    VulnerabilityReport::compare_with(&bill_of_module("example.com/m", version), &database, &vex)
}

fn ids(report: &VulnerabilityReport, at_least: Severity) -> Vec<String> {
    report.counting(at_least).map(|it| it.ids.join(" ")).collect()
}

#[test]
fn a_version_is_in_a_range_from_where_it_was_introduced_to_where_it_was_fixed() {
    let events = json!([{"introduced": "0"}, {"fixed": "1.2.0"}, {"introduced": "2.0.0"}, {"last_affected": "2.1.0"}, {"limit": "9.0.0"}]);
    let cases = [
        ("v0.0.0-20260101000000-abcdefabcdef", Some(Some("1.2.0"))),
        ("v1.1.9+incompatible", Some(Some("1.2.0"))),
        ("v1.2.0-rc.1", Some(Some("1.2.0"))),
        ("v1.2.0", None),
        ("v1.9.0", None),
        ("v2.0.0", Some(None)),
        ("v2.1.0", Some(None)),
        ("v2.1.1", None),
    ];
    for (version, expected) in cases {
        let found = report(version, &[record("GO-1", &[], "example.com/m", &events, None)], &json!([]));
        let fixed = found.vulnerabilities.first().map(|it| it.fixed.clone());
        assert_eq!(fixed.as_ref().map(Option::as_deref), expected, "{version}");
    }
}

#[test]
fn records_of_one_vulnerability_are_one_and_the_worst_comes_first() {
    let all = json!([{"introduced": "0"}]);
    let records = [
        record("GO-1", &["CVE-1"], "example.com/m", &all, None),
        record("GHSA-2", &["CVE-2"], "example.com/m", &all, Some("MODERATE")),
        record("GHSA-1", &["CVE-1"], "example.com/m", &all, Some("HIGH")),
        record("GO-3", &[], "example.com/other", &all, None),
        json!({"id": "GO-4", "withdrawn": "2026-01-01T00:00:00Z", "affected": [{"package": {"ecosystem": "Go", "name": "example.com/m"}, "versions": ["1.0.0"]}]}),
    ];
    let found = report("v1.0.0", &records, &json!([]));
    assert_eq!(ids(&found, Severity::Low), ["CVE-1 GHSA-1 GO-1", "CVE-2 GHSA-2"]);
    assert_eq!(ids(&found, Severity::High), ["CVE-1 GHSA-1 GO-1"]);
    assert!(ids(&found, Severity::Critical).is_empty());
    assert_eq!(found.vulnerabilities[0].files, ["m"]);
    let unknown = report("v1.0.0", &records[..1], &json!([]));
    assert_eq!(ids(&unknown, Severity::Critical), ["CVE-1 GO-1"], "nobody knows how bad it is");
}

#[test]
fn what_somebody_has_found_harmless_does_not_count() {
    let records = [record("GO-1", &["CVE-1"], "example.com/m", &json!([{"introduced": "0"}]), None)];
    let statement = |name: &str, product: &Value, status: &str| json!([{"vulnerability": {"name": name}, "products": [product], "status": status, "justification": "vulnerable_code_not_in_execute_path"}]);
    let module = json!({"@id": "pkg:golang/example.com/m"});
    let harmless = report("v1.0.0", &records, &statement("CVE-1", &module, "not_affected"));
    assert!(ids(&harmless, Severity::Low).is_empty());
    assert_eq!(harmless.vulnerabilities[0].not_affected.as_deref(), Some("vulnerable_code_not_in_execute_path"));
    let this_version = json!({"@id": "pkg:golang/example.com/m@v1.0.0"});
    assert!(
        ids(&report("v1.0.0", &records, &statement("GO-1", &this_version, "not_affected")), Severity::Low).is_empty()
    );
    for (name, product, status) in [
        ("CVE-2", &module, "not_affected"),
        ("CVE-1", &module, "affected"),
        ("CVE-1", &module, "under_investigation"),
        ("CVE-1", &json!({"@id": "pkg:golang/example.com/m@v1.1.0"}), "not_affected"),
        ("CVE-1", &json!({"@id": "pkg:golang/example.com"}), "not_affected"),
        (
            "CVE-1",
            &json!({"@id": "pkg:generic/m", "subcomponents": [{"@id": "pkg:golang/example.com/other"}]}),
            "not_affected",
        ),
    ] {
        let counts = ids(&report("v1.0.0", &records, &statement(name, product, status)), Severity::Low);
        assert_eq!(counts.len(), 1, "{name} {product} {status}");
    }
    let none = json!([{"vulnerability": {"name": "CVE-1"}, "status": "not_affected"}]);
    assert_eq!(ids(&report("v1.0.0", &records, &none), Severity::Low).len(), 1, "it names no product");
}

#[test]
fn the_newest_statement_counts() {
    let records = [record("GO-1", &["CVE-1"], "example.com/m", &json!([{"introduced": "0"}]), None)];
    let statement = |name: &str, status: &str, timestamp: Option<&str>| {
        let mut statement = json!({"vulnerability": {"name": name}, "products": [{"@id": "pkg:golang/example.com/m"}], "status": status});
        if let Some(timestamp) = timestamp {
            statement["timestamp"] = json!(timestamp);
        }
        statement
    };
    let counting = |statements: &[Value]| ids(&report("v1.0.0", &records, &json!(statements)), Severity::Low).len();
    let (old, new) = (Some("2026-01-01T00:00:00Z"), Some("2026-01-01T00:30:00-01:00"));
    for (status, expected) in [("affected", 1), ("under_investigation", 1), ("fixed", 0)] {
        assert_eq!(counting(&[statement("CVE-1", "not_affected", None), statement("GO-1", status, None)]), expected);
        assert_eq!(counting(&[statement("GO-1", status, new), statement("CVE-1", "not_affected", old)]), expected);
    }
    assert_eq!(counting(&[statement("CVE-1", "affected", None), statement("CVE-1", "not_affected", None)]), 0);
    let directory = tempfile::tempdir().unwrap();
    let vex = directory.path().join("vex.json");
    fs::write(&vex, json!({"statements": [statement("CVE-1", "fixed", Some("yesterday"))]}).to_string()).unwrap();
    let refused = VexDocument::read_vex(&vex).unwrap_err().message;
    assert!(refused.contains("yesterday is no timestamp"), "{refused}");
}

#[test]
fn a_harmless_vulnerability_does_not_make_another_one_harmless() {
    let all = json!([{"introduced": "0"}]);
    let records = [
        record("GHSA-A", &["CVE-A"], "example.com/m", &all, Some("LOW")),
        record("GHSA-B", &["CVE-B"], "example.com/m", &all, Some("CRITICAL")),
        record("GO-1", &["CVE-A", "GHSA-A", "CVE-B", "GHSA-B"], "example.com/m", &all, None),
    ];
    let harmless = |names: &[&str]| {
        let statement = |name: &&str| json!({"vulnerability": {"name": name}, "products": [{"@id": "pkg:golang/example.com/m"}], "status": "not_affected"});
        let statements: Vec<Value> = names.iter().map(statement).collect();
        report("v1.0.0", &records, &json!(statements))
    };
    assert_eq!(ids(&harmless(&[]), Severity::Critical).len(), 1);
    assert_eq!(ids(&harmless(&["CVE-A"]), Severity::Critical).len(), 1);
    // What is left is as severe as what is left.
    let low = harmless(&["CVE-B"]);
    assert_eq!((ids(&low, Severity::Medium).len(), ids(&low, Severity::Low).len()), (0, 1));
    assert!(ids(&harmless(&["CVE-A", "CVE-B"]), Severity::Low).is_empty());
    // The record of the Go project alone names two.
    let alone = |name: &str| {
        let statement = json!([{"vulnerability": {"name": name}, "products": [{"@id": "pkg:golang/example.com/m"}], "status": "not_affected"}]);
        ids(&report("v1.0.0", &records[2..], &statement), Severity::Low).len()
    };
    assert_eq!((alone("CVE-A"), alone("GHSA-A"), alone("GO-1")), (1, 1, 0));
}

#[test]
fn the_version_to_go_to_is_free_of_the_vulnerability() {
    let until = |id: &str, fixed: &str| {
        record(id, &["CVE-1"], "example.com/m", &json!([{"introduced": "0"}, {"fixed": fixed}]), None)
    };
    for (one, two) in [("GO-1", "GHSA-1"), ("GHSA-1", "GO-1")] {
        let found = report("v1.0.0", &[until(one, "1.24.5"), until(two, "1.30.0")], &json!([]));
        assert_eq!(found.vulnerabilities[0].fixed.as_deref(), Some("1.30.0"));
    }
    let mut two_blocks = until("GO-1", "1.24.7");
    let other = until("GO-1", "1.26.0")["affected"][0].clone();
    two_blocks["affected"].as_array_mut().unwrap().push(other);
    assert_eq!(report("v1.0.0", &[two_blocks], &json!([])).vulnerabilities[0].fixed.as_deref(), Some("1.26.0"));
}

#[test]
fn a_range_that_cannot_be_read_counts_as_affected() {
    for (introduced, version, expected) in [
        ("go1.20", "v1.19.0", 0),
        ("go1.20", "v1.20.0", 1),
        ("1.20.0.1", "v1.19.0", 1),
        ("", "v1.19.0", 1),
        ("1.20.0.1", "v1.30.0", 0),
    ] {
        let events = json!([{"introduced": introduced}, {"fixed": "1.30.0"}]);
        let found = report(version, &[record("GO-1", &[], "example.com/m", &events, None)], &json!([]));
        assert_eq!(found.vulnerabilities.len(), expected, "{introduced} {version}");
    }
    let mut of_ecosystem = record("GO-1", &[], "example.com/m", &json!([{"introduced": "0"}]), None);
    of_ecosystem["affected"][0]["ranges"][0]["type"] = json!("ECOSYSTEM");
    assert_eq!(report("v1.0.0", &[of_ecosystem], &json!([])).vulnerabilities.len(), 1);
}

#[test]
fn versions_of_go_itself_are_read() {
    for (text, expected) in [
        ("1.26.8", "1.26.8"),
        ("1.20", "1.20.0"),
        ("1.27rc1", "1.27.0-rc.1"),
        ("go1.20", "1.20.0"),
        ("1.26.8 X:boringcrypto", "1.26.8"),
        ("v1.2.3+incompatible", "1.2.3+incompatible"),
    ] {
        assert_eq!(osv::parse_version(text).unwrap().to_string(), expected);
    }
    for text in ["", "(devel)", "devel", "1.2.3.4", "v", "1.20-"] {
        assert_eq!(osv::parse_version(text), None, "{text}");
    }
}

#[test]
fn a_database_is_a_file_or_a_directory_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let refused = |name: &str| VulnerabilityDatabase::read_database(&at(name)).unwrap_err().message;
    fs::create_dir_all(at("osv/more")).unwrap();
    assert!(refused("osv").ends_with("has no vulnerabilities of Go modules"));
    let all = json!([{"introduced": "0"}]);
    fs::write(at("osv/a.json"), record("GO-1", &[], "example.com/m", &all, None).to_string()).unwrap();
    fs::write(at("osv/more/b.json"), record("GO-2", &[], "example.com/n", &all, None).to_string()).unwrap();
    fs::write(at("osv/README"), "not a record").unwrap();
    std::os::unix::fs::symlink("..", at("osv/more/back.json")).unwrap();
    let database = VulnerabilityDatabase::read_database(&at("osv")).unwrap();
    assert_eq!((database.record_count(), database.newest.as_str()), (2, "2026-11-01T00:00:00Z"));
    fs::write(at("osv/c.json"), "{\"id\": ").unwrap();
    assert!(refused("osv").ends_with("c.json is no record of OSV, nor a list of them"));
    assert!(refused("missing").starts_with("cannot read "));
}

#[test]
fn a_bundle_without_programs_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = Bundle::open_bundle(directory.path(), &crate::value::ProcessEnvironment::default(), None).unwrap();
    let refused = BillOfMaterials::of_bundle(&bundle).unwrap_err().message;
    assert!(refused.ends_with(" has no programs"), "{refused}");
}
