//! Tests of bills of materials.

use super::*;

fn part(component: &str, version: &str, architecture: &str, file: &str, build_info: Option<BuildInfo>) -> Part {
    let item = Item {
        component: component.to_owned(),
        version: version.to_owned(),
        architecture: architecture.to_owned(),
        file: file.to_owned(),
        size: 1,
        sha256: "ab".repeat(32),
        source: None,
    };
    Part { item, build_info }
}

fn module(path: &str, version: Option<&str>) -> GoModule {
    GoModule { path: path.to_owned(), version: version.map(str::to_owned) }
}

fn built(main: GoModule, package: &str, dependencies: &[GoModule]) -> Option<BuildInfo> {
    let (go, package) = (Some("1.26.8".to_owned()), package.to_owned());
    Some(BuildInfo { go, package, main: Some(main), dependencies: dependencies.to_vec() })
}

/// A bill of one program, m, that was built from one module.
pub(in crate::bundle) fn bill_of_module(path: &str, version: &str) -> BillOfMaterials {
    let info =
        built(module("example.com/program", Some("v9.0.0")), "example.com/program", &[module(path, Some(version))]);
    BillOfMaterials { digest: String::new(), parts: vec![part("m", "9.0.0", "amd64", "m", info)] }
}

fn bill() -> BillOfMaterials {
    let karmada = || module("github.com/karmada-io/karmada", None);
    let shared = module("github.com/Masterminds/semver", Some("v1.5.0+incompatible"));
    let local = module("k8s.io/api", None);
    let scheduler = built(karmada(), "github.com/karmada-io/karmada/cmd/scheduler", &[shared.clone(), local]);
    let small = module("github.com/masterminds/semver", Some("v1.5.0+incompatible"));
    let webhook = built(karmada(), "github.com/karmada-io/karmada/cmd/webhook", &[shared, small]);
    BillOfMaterials {
        digest: "cd".repeat(32),
        parts: vec![
            part("crds", "1.18.2", "any", "crds/a.yaml", None),
            part("etcd", "3.5.16", "amd64", "etcd/etcd", None),
            part("karmada-scheduler", "1.18.2", "amd64", "karmada-scheduler", scheduler),
            part("karmada-webhook", "1.18.2", "amd64", "karmada-webhook", webhook),
            part("packages", "2.6.12-1+deb12u1", "amd64", "packages/haproxy_2.6.12-1+deb12u1_amd64.deb", None),
            part("packages", "1%3a2.2.7-1+b2", "any", "packages/keepalived_1%3a2.2.7-1+b2_all.deb", None),
            part("packages", "7.76.1", "amd64", "packages/libcurl-minimal-7.76.1-31.el9.x86_64.rpm", None),
        ],
    }
}

#[test]
fn everything_has_the_name_by_which_databases_know_it() {
    let bill = bill();
    let urls: Vec<_> = bill.parts.iter().map(|part| package_url::of_part(part).unwrap_or_default()).collect();
    assert_eq!(
        urls,
        [
            "",
            "pkg:generic/etcd@3.5.16",
            "pkg:golang/github.com/karmada-io/karmada@v1.18.2#cmd/scheduler",
            "pkg:golang/github.com/karmada-io/karmada@v1.18.2#cmd/webhook",
            "pkg:deb/debian/haproxy@2.6.12-1%2Bdeb12u1?arch=amd64",
            "pkg:deb/debian/keepalived@1:2.2.7-1%2Bb2?arch=all",
            "pkg:rpm/redhat/libcurl-minimal@7.76.1-31.el9?arch=x86_64",
        ]
    );
    let modules: Vec<_> = bill.modules().iter().map(package_url::of_module).collect();
    let semver = "pkg:golang/github.com/masterminds/semver@v1.5.0%2Bincompatible";
    // Go tells capital letters from small ones, and package URLs do not.
    assert_eq!(modules, [semver, semver, "pkg:golang/k8s.io/api", "pkg:golang/stdlib@1.26.8"]);
    assert_eq!(bill.silent_programs(), ["etcd/etcd"]);
}

#[test]
fn all_references_lead_to_something_that_is_there_once() {
    let document = cyclonedx(&bill(), "karmada");
    let components = document["components"].as_array().unwrap();
    let names: Vec<_> = components.iter().map(|it| it["bom-ref"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 11);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 11, "{names:?}");
    for dependency in document["dependencies"].as_array().unwrap() {
        let targets = dependency["dependsOn"].as_array().unwrap();
        assert!(targets.iter().all(|it| names.contains(&it.as_str().unwrap())), "{dependency}");
    }
    assert_eq!(document["dependencies"][1]["ref"], "file-2");
    assert_eq!(document["dependencies"][1]["dependsOn"].as_array().unwrap().len(), 3);
    assert_eq!(document["compositions"][0]["dependencies"], serde_json::json!(["file-1"]));

    let document = spdx(&bill(), "karmada", "1970-01-01T00:00:00Z");
    let packages = document["packages"].as_array().unwrap();
    let names: BTreeSet<_> = packages.iter().map(|it| it["SPDXID"].as_str().unwrap()).collect();
    assert_eq!((packages.len(), names.len()), (12, 12));
    let relations = document["relationships"].as_array().unwrap();
    assert!(relations.iter().all(|it| names.contains(&it["relatedSpdxElement"].as_str().unwrap())));
    let of = |kind: &str| relations.iter().filter(|it| it["relationshipType"] == kind).count();
    assert_eq!((of("DESCRIBES"), of("CONTAINS"), of("DEPENDS_ON")), (1, 7, 6));
}
