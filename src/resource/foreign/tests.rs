//! Every field has its rule, and a field that a foreign document must not have is refused at its location.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{
    Bastion, Bundle, File, Hook, HostKeys, Plain, Reached, Refused, Rule, Secret, below, foreign_fields, rule,
};
use crate::resource::schema::KINDS;
use crate::resource::{Deployment, ForeignResourceLimits, Resource, Trust, of_source};
use crate::value::origin::Source;

/// Goes down the schema as far as no rule decides; gives the patterns of rules that decided, and of what has none.
fn walk(
    schema: &Json,
    fields: &[(&str, Rule)],
    pattern: &str,
    found: &mut BTreeSet<String>,
    without: &mut Vec<String>,
) {
    if rule(fields, pattern).is_some() {
        found.insert(pattern.to_owned());
    } else if let Some(properties) = schema["properties"].as_object() {
        for (key, property) in properties {
            walk(property, fields, &below(pattern, key), found, without);
        }
    } else if schema["items"].is_object() {
        walk(&schema["items"], fields, &format!("{pattern}[]"), found, without);
    } else {
        without.push(pattern.to_owned());
    }
}

/// A field that is added to a type is refused in a foreign document, and this test fails, until it has a rule.
#[test]
fn every_field_of_every_kind_has_a_rule_and_every_rule_a_field() {
    for kind in KINDS.iter() {
        let (mut found, mut without) = (BTreeSet::new(), Vec::new());
        let fields = foreign_fields(&kind.name);
        walk(&kind.schema["properties"]["spec"], fields, "", &mut found, &mut without);
        assert_eq!(without, Vec::<String>::new(), "{}: give each its rule in src/resource/foreign.rs", kind.name);
        let listed: BTreeSet<String> = fields.iter().map(|(field, _)| (*field).to_owned()).collect();
        assert_eq!(listed, found, "{}: a rule without a field, or one below another", kind.name);
        assert_eq!(listed.len(), fields.len(), "{}: a field with two rules", kind.name);
    }
}

/// A reference to a secret or a file of this machine cannot be called plain by mistake.
#[test]
fn what_refers_to_this_machine_is_plain_nowhere() {
    fn references(schema: &Json, pattern: &str, found: &mut Vec<String>) {
        let Some(properties) = schema["properties"].as_object() else {
            if schema["items"].is_object() {
                references(&schema["items"], &format!("{pattern}[]"), found);
            }
            return;
        };
        if properties.contains_key("command") || properties.contains_key("file") {
            found.push(pattern.to_owned());
        }
        for (key, property) in properties {
            let described = property["description"].as_str().unwrap_or_default();
            let here = ["the machine that windlass runs on", "the directory of this document"];
            if here.iter().any(|words| described.contains(words)) {
                found.push(below(pattern, key));
            }
            references(property, &below(pattern, key), found);
        }
    }
    for kind in KINDS.iter() {
        let mut found = Vec::new();
        references(&kind.schema["properties"]["spec"], "", &mut found);
        assert!(!found.is_empty() || kind.name == "Run", "{} refers to nothing", kind.name);
        for pattern in found {
            let within = |inner: &str, outer: &str| {
                inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            let of = foreign_fields(&kind.name)
                .iter()
                .filter(|(field, _)| within(field, &pattern) || within(&pattern, field));
            let plain: Vec<_> = of.filter(|(_, rule)| matches!(rule, Plain | Reached | HostKeys)).collect();
            assert!(plain.is_empty(), "{}: {pattern}: {plain:?}", kind.name);
        }
    }
}

/// The table in the documentation is the list of the code.
#[test]
fn the_documentation_has_every_field() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/custom-resource.md");
    let text = std::fs::read_to_string(path).unwrap();
    let words = |rule| match rule {
        Plain => "text for the hosts and the control plane",
        Reached => "text; the address is checked when windlass connects",
        Secret => "a Secret of its own namespace",
        Bundle => "a name in `resource_bundles`",
        File => "a name in `resource_files`",
        Hook => "a name in `resource_hooks`",
        Bastion => "a bastion in `resource_bastions`",
        HostKeys => "`strict` only",
        Refused => "refused",
    };
    let mut table = String::new();
    for kind in KINDS.iter() {
        for (field, rule) in foreign_fields(&kind.name) {
            table += &format!("| {} | `{field}` | {} |\n", kind.name, words(*rule));
        }
    }
    if std::env::var_os("UPDATE_DOCS").is_some() && !text.contains(&table) {
        let head = "| kind | field of `spec` | in a resource from an API |\n|---|---|---|\n";
        let (before, rest) = text.split_once(head).expect("the table has its head");
        let rest = rest.split_once("\n\n").map_or("", |(_, rest)| rest);
        std::fs::write(path, format!("{before}{head}{table}\n{rest}")).unwrap();
        return;
    }
    assert!(
        text.contains(&table),
        "docs/reference/custom-resource.md: UPDATE_DOCS=1 cargo test --lib the_documentation\n{table}"
    );
}

const GOOD: &str = r"
apiVersion: windlass.dev/v1alpha1
kind: KarmadaDeployment
metadata: {name: prod, namespace: team}
spec:
  bundle: karmada-1.18
  hosts: [{name: cp-1, address: 192.0.2.11, fingerprint: 'SHA256:0123456789012345678901234567890123456789012'}]
  ssh:
    privateKey: {secret: {name: login, key: key}}
    hostKeys: strict
    bastion: {address: gate, user: jump, port: 2200}
  controlPlane: {hosts: [cp-1]}
  etcd: {managed: {hosts: [cp-1]}}
  addons: [{name: metrics, to: [control_plane], src: [metrics]}]
  hooks: [{stage: etcd, when: before, playbook: notify}]
";

fn allowed() -> ForeignResourceLimits {
    ForeignResourceLimits {
        bastions: vec!["jump@gate:2200".to_owned()],
        bundles: [("karmada-1.18".to_owned(), "/srv/1.18".into())].into(),
        files: [("metrics".to_owned(), "/srv/metrics.yaml".into())].into(),
        hooks: [("notify".to_owned(), "/srv/notify.yml".into())].into(),
        ..ForeignResourceLimits::default()
    }
}

fn read(text: &str, trust: Trust, allowed: &ForeignResourceLimits) -> Result<Deployment, Vec<String>> {
    let reported = |complaint: &crate::value::origin::Diagnostic| complaint.message.clone();
    let source = Arc::new(Source::new("kube:team/prod", text));
    let read = of_source(&source, trust, allowed);
    match read.map_err(|complaints| complaints.iter().map(reported).collect::<Vec<_>>())?.0.pop() {
        Some(Resource::KarmadaDeployment(deployment)) => Ok(deployment),
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_that_the_configuration_allows_become_its_paths() {
    let deployment = read(GOOD, Trust::Foreign, &allowed()).unwrap();
    assert_eq!(deployment.trust, Trust::Foreign);
    assert_eq!(deployment.spec.bundle, "/srv/1.18");
    assert_eq!(deployment.spec.addons[0].src, ["/srv/metrics.yaml"]);
    assert_eq!(deployment.spec.hooks[0].playbook, "/srv/notify.yml");
    let secret = deployment.spec.ssh.as_ref().unwrap().private_key.as_ref().unwrap().secret.as_ref().unwrap();
    assert_eq!(secret.namespace.as_deref(), Some("team"));
    assert!(deployment.credentials().unwrap().ends_with("credentials/_api/team/prod"));
    // The user's own document has no such limits.
    assert_eq!(read(GOOD, Trust::Own, &ForeignResourceLimits::default()).unwrap().spec.bundle, "karmada-1.18");
}

#[test]
fn nothing_is_allowed_unless_it_is_configured() {
    let mut reported = read(GOOD, Trust::Foreign, &ForeignResourceLimits::default()).unwrap_err();
    reported.sort();
    assert_eq!(
        reported,
        [
            "spec.addons[0].src[0] is \"metrics\", which the setting resource_files does not list",
            "spec.bundle is \"karmada-1.18\", which the setting resource_bundles does not list",
            "spec.hooks[0].playbook is \"notify\", which the setting resource_hooks does not list",
            "spec.ssh.bastion is jump@gate:2200, which is not allowed in a resource from an API",
        ]
    );
}

#[test]
fn references_to_this_machine_and_to_other_namespaces_are_refused() {
    let key = "privateKey: {secret: {name: login, key: key}}";
    let vault = "$ANSIBLE_VAULT;1.1;AES256 3030";
    for (instead, reported) in [
        ("password: {command: [sh, -c, id]}", "spec.ssh.password.command is not allowed in a resource from an API"),
        ("password: {env: HOME}", "spec.ssh.password.env is not allowed in a resource from an API"),
        ("password: {file: /etc/passwd}", "spec.ssh.password.file is not allowed in a resource from an API"),
        (
            &format!("password: {{vault: '{vault}'}}"),
            "spec.ssh.password.vault is not allowed in a resource from an API",
        ),
        (
            "password: {secret: {namespace: kube-system, name: a, key: b}}",
            "spec.ssh.password.secret.namespace is kube-system, and the resource is in the namespace team",
        ),
        ("agent: /run/agent", "spec.ssh.agent is not allowed in a resource from an API"),
        ("knownHosts: [/etc/profile]", "spec.ssh.knownHosts is not allowed in a resource from an API"),
    ] {
        let text = GOOD.replace(key, instead);
        assert_eq!(read(&text, Trust::Foreign, &allowed()).unwrap_err(), [reported], "{instead}");
        assert!(read(&text, Trust::Own, &allowed()).is_ok(), "{instead}");
    }
    for (what, instead, reported) in [
        ("hostKeys: strict", "hostKeys: accept-new", "spec.ssh.hostKeys must be strict in a resource from an API"),
        (
            ", fingerprint: 'SHA256:0123456789012345678901234567890123456789012'",
            "",
            "spec.hosts[0] has no fingerprint, which a resource from an API must have for every host",
        ),
        (", namespace: team", "", "spec.ssh.privateKey refers to a Secret, and the resource has no namespace"),
        ("port: 2200", "port: 22", "spec.ssh.bastion is jump@gate:22, which is not allowed in a resource from an API"),
    ] {
        assert_eq!(
            read(&GOOD.replace(what, instead), Trust::Foreign, &allowed()).unwrap_err(),
            [reported],
            "{instead}"
        );
    }
    let named = GOOD.replace("cp-1", "127.0.0.1");
    let reported = ["spec.hosts[0].name is 127.0.0.1, which is the machine that windlass runs on"];
    assert_eq!(read(&named, Trust::Foreign, &allowed()).unwrap_err(), reported);
}

#[test]
fn a_document_that_came_through_an_api_is_foreign_wherever_it_lies() {
    for mark in ["uid: 5f1c", "resourceVersion: '7'", "managedFields: []"] {
        let text = GOOD.replace("namespace: team", &format!("namespace: team, {mark}"));
        assert_eq!(read(&text, Trust::Own, &allowed()).unwrap().trust, Trust::Foreign, "{mark}");
        assert_eq!(read(&text, Trust::Own, &ForeignResourceLimits::default()).unwrap_err().len(), 4, "{mark}");
    }
    let all = ForeignResourceLimits { documents: Trust::Foreign, ..allowed() };
    assert_eq!(read(GOOD, Trust::Own, &all).unwrap().trust, Trust::Foreign);
    assert_eq!(read(GOOD, Trust::Own, &allowed()).unwrap().trust, Trust::Own);
}
