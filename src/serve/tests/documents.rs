//! Documents that come through the API: that none overwrites another, and that none may use what is the server's.

use super::*;
use crate::deployment::plan::StageState;
use crate::deployment::stage::Stage;

const PATH: &str = "/api/v1/deployments/new/document";
const ABSENT: (&str, &str) = ("if-none-match", "*");

impl Fixture {
    async fn put(&self, token: &str, headers: &[(&str, &str)], text: &str) -> Answered {
        self.ask_as("application/yaml", "PUT", PATH, Some(token), headers, text).await
    }

    fn documents(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path().join("state/documents")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != ".lock").collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn a_document_is_created_changed_and_deleted() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let token = fixture.token("see@new edit@new plan@new");
    let created = fixture.put(&token, &[ABSENT], STORED_DOCUMENT).await;
    assert_eq!(shown(&created), "201", "{}", created.text);
    let tag = created.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(tag, format!("\"{}\"", created.json()["digest"].as_str().unwrap()));
    let read = fixture.ask("GET", PATH, Some(&token), None).await;
    assert_eq!((read.text.as_str(), read.headers["etag"].to_str().unwrap()), (STORED_DOCUMENT, tag.as_str()));
    let path = fixture.directory.path().join("state/documents/new.document");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let one = fixture.ask("GET", "/api/v1/deployments/new", Some(&token), None).await.json();
    assert_eq!((&one["stored"], &one["problem"]), (&Json::from(true), &Json::Null), "{one:#}");

    // The mode that a person gave the file stays.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let changed = STORED_DOCUMENT.replace("192.0.2.1", "192.0.2.2");
    let answer = fixture.put(&token, &[("if-match", &tag)], &changed).await;
    assert_eq!((shown(&answer).as_str(), &answer.json()["created"]), ("200", &Json::from(false)));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), changed);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fixture.documents(), ["new.document"]);

    let stale = fixture.ask_as("application/json", "DELETE", PATH, Some(&token), &[("if-match", &tag)], "").await;
    assert_eq!(shown(&stale), "412 DocumentChanged");
    let now = answer.headers["etag"].to_str().unwrap();
    // The credentials for it leave with it.
    let sealed = fixture.directory.path().join("state/credentials/new");
    std::fs::create_dir_all(&sealed).unwrap();
    let credential = r#"{"kind":"password","fingerprint":null,"set":"","by":"","sealed":""}"#;
    std::fs::write(sealed.join("login.json"), credential).unwrap();
    let deleted = fixture.ask_as("application/json", "DELETE", PATH, Some(&token), &[("if-match", now)], "").await;
    assert_eq!((shown(&deleted).as_str(), fixture.documents().len()), ("204", 0));
    assert!(!sealed.join("login.json").exists());
    let entries = fixture.server.access.lock().audit_entries(None, 10).unwrap();
    let seen: Vec<String> =
        entries.iter().map(|entry| format!("{} {} {}", entry.action, entry.target, entry.outcome)).collect();
    assert_eq!(
        seen,
        [
            "delete the document of a deployment new 204",
            "delete the document of a deployment new DocumentChanged",
            "write the document of a deployment new 200",
            "write the document of a deployment new 201",
        ]
    );
    assert!(entries[2].detail.contains(now.trim_matches('"')), "{}", entries[2].detail);
}

#[tokio::test]
async fn nobody_overwrites_what_they_have_not_seen() {
    let fixture = Fixture::new();
    let token = fixture.token("see@new edit@new");
    let first = fixture.put(&token, &[ABSENT], STORED_DOCUMENT).await.headers["etag"].to_str().unwrap().to_owned();
    let second_text = format!("{STORED_DOCUMENT}# the second\n");
    let second =
        fixture.put(&token, &[("if-match", &first)], &second_text).await.headers["etag"].to_str().unwrap().to_owned();
    let mine = format!("{STORED_DOCUMENT}# mine\n");
    let weak = format!("W/{second}");
    for (headers, expected) in [
        (vec![], "428 NoPrecondition"),
        (vec![("if-match", "*")], "428 NoPrecondition"),
        (vec![("if-none-match", second.as_str())], "428 NoPrecondition"),
        (vec![ABSENT, ("if-match", &second)], "428 NoPrecondition"),
        (vec![ABSENT], "412 DocumentChanged"),
        (vec![("if-match", first.as_str())], "412 DocumentChanged"),
        (vec![("if-match", weak.as_str())], "412 DocumentChanged"),
    ] {
        let answer = fixture.put(&token, &headers, &mine).await;
        assert_eq!(shown(&answer), expected, "{headers:?}");
        let now = fixture.ask("GET", PATH, Some(&token), None).await;
        assert_eq!(now.text, second_text, "{headers:?}");
    }
    let answer = fixture.put(&token, &[("if-match", &first)], &mine).await.json();
    let digest = |tag: &str| tag.trim_matches('"').to_owned();
    assert_eq!(answer["digests"], serde_json::json!({"given": digest(&first), "current": digest(&second)}));
    // The request whose answer was lost may be sent again.
    assert_eq!(shown(&fixture.put(&token, &[("if-match", &first)], &second_text).await), "200");
    // One of several tags is enough.
    let either = format!("{first}, {second}");
    assert_eq!(shown(&fixture.put(&token, &[("if-match", &either)], &mine).await), "200");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_those_who_write_at_once_one_wins() {
    let fixture = Fixture::new();
    let token = fixture.token("see@new edit@new");
    let texts: Vec<String> = (0..8).map(|at| format!("{STORED_DOCUMENT}# {at}\n")).collect();
    let puts = texts.iter().map(|text| fixture.put(&token, &[ABSENT], text));
    let answers = futures::future::join_all(puts).await;
    let won: Vec<usize> = (0..8).filter(|at| answers[*at].status == 201).collect();
    assert_eq!(won.len(), 1, "{won:?}");
    assert!(answers.iter().all(|answer| [201, 412].contains(&answer.status.as_u16())));
    assert_eq!(fixture.ask("GET", PATH, Some(&token), None).await.text, texts[won[0]]);
}

#[tokio::test]
async fn a_persons_file_is_not_changed() {
    let fixture = Fixture::new();
    let token = fixture.token("see@* edit@*");
    let path = "/api/v1/deployments/prod/document";
    let before = fixture.ask("GET", path, Some(&token), None).await;
    let tag = before.headers["etag"].to_str().unwrap();
    let text = STORED_DOCUMENT.replace("name: new", "name: prod");
    for (method, headers) in [("PUT", [("if-match", tag)]), ("PUT", [ABSENT]), ("DELETE", [("if-match", tag)])] {
        let kind = if method == "PUT" { "application/yaml" } else { "application/json" };
        let answer = fixture.ask_as(kind, method, path, Some(&token), &headers, &text).await;
        assert_eq!(shown(&answer), "409 OwnFile", "{method} {headers:?}");
        assert!(answer.text.contains("prod.yaml is a file that a person wrote"), "{}", answer.text);
    }
    assert_eq!(fixture.ask("GET", path, Some(&token), None).await.text, before.text);
    assert!(fixture.documents().is_empty());
}

#[tokio::test]
async fn names_lead_nowhere_else() {
    let fixture = Fixture::new();
    let token = fixture.token("see@* edit@*");
    for name in ["..%2fprod", "%2e%2e", "a.b", "A", "-a", "a%00", &"a".repeat(64)] {
        let path = format!("/api/v1/deployments/{name}/document");
        let answer = fixture.ask_as("application/yaml", "PUT", &path, Some(&token), &[ABSENT], STORED_DOCUMENT).await;
        assert_eq!(shown(&answer), "422 InvalidName", "{name}");
    }
    let path = "/api/v1/deployments/other/document";
    let answer = fixture.ask_as("application/yaml", "PUT", path, Some(&token), &[ABSENT], STORED_DOCUMENT).await;
    assert_eq!(shown(&answer), "422 InvalidDocument");
    assert!(answer.json()["detail"].as_str().unwrap().starts_with("metadata.name is new"), "{}", answer.text);
    assert!(fixture.documents().is_empty());
    let long = format!("# {}", "x".repeat(1 << 20));
    assert_eq!(shown(&fixture.put(&token, &[ABSENT], &long).await), "413 TooLarge");
    let json = fixture.ask_as("application/json", "PUT", PATH, Some(&token), &[ABSENT], STORED_DOCUMENT).await;
    assert_eq!(shown(&json), "415 NotYaml");
}

/// What a document may not say, by what is replaced by what, with the place of the complaint: path, line and column.
const REFUSED: [(&str, &str, &str); 22] = [
    ("{secret: {name: login, key: password}}", "{command: [sh, -c, id]}", "spec.ssh.password.command 9:25"),
    ("{secret: {name: login, key: password}}", "{file: /etc/passwd}", "spec.ssh.password.file 9:22"),
    ("{secret: {name: login, key: password}}", "{env: HOME}", "spec.ssh.password.env 9:21"),
    (
        "{secret: {name: login, key: password}}",
        "{vault: '$ANSIBLE_VAULT;1.1;AES256 3030'}",
        "spec.ssh.password.vault 9:23",
    ),
    ("key: password}}", "key: password, namespace: kube-system}}", "spec.ssh.password.secret.namespace 9:64"),
    // What is sent to a host is a password, and nothing else that the server keeps.
    ("key: password}}", "key: ssh-privatekey}}", "spec.ssh.password.secret.key 9:43"),
    (
        "hostKeys: strict",
        "becomePassword: {secret: {name: kc, key: kubeconfig}}",
        "spec.ssh.becomePassword.secret.key 10:46",
    ),
    (
        "  controlPlane",
        "  members: [{name: m, kubeconfig: {secret: {name: m, key: password}}}]\n  controlPlane",
        "spec.members[0].kubeconfig.secret.key 11:59",
    ),
    ("hostKeys: strict", "hostKeys: accept-new", "spec.ssh.hostKeys 10:15"),
    ("hostKeys: strict", "agent: /run/agent", "spec.ssh.agent 10:12"),
    ("hostKeys: strict", "knownHosts: [/etc/profile]", "spec.ssh.knownHosts 10:17"),
    ("hostKeys: strict", "bastion: {address: gate}", "spec.ssh.bastion 10:14"),
    ("bundle: karmada", "bundle: /srv/karmada", "spec.bundle 5:11"),
    ("cp-1", "127.0.0.1", "spec.hosts[0].name 7:14"),
    (", fingerprint: 'SHA256:0123456789012345678901234567890123456789012'", "", "spec.hosts[0] 7:7"),
    (
        "  controlPlane",
        "  hooks: [{stage: etcd, when: before, playbook: /srv/x.yml}]\n  controlPlane",
        "spec.hooks[0].playbook 11:49",
    ),
    (
        "  controlPlane",
        "  addons: [{name: a, to: [control_plane], src: [/etc/shadow]}]\n  controlPlane",
        "spec.addons[0].src[0] 11:49",
    ),
    (
        "  controlPlane",
        "  certificates: {ca: {cert: {file: ca.crt}, key: {secret: {name: ca, key: k}}}}\n  controlPlane",
        "spec.certificates.ca.cert.file 11:36",
    ),
    (
        "  controlPlane",
        "  certificates: {ca: {cert: {file: x}, key: {command: [id]}}}\n  controlPlane",
        "spec.certificates.ca.key.command 11:55",
    ),
    (
        "  controlPlane",
        "  members: [{name: m, kubeconfig: {file: /root/.kube/config}}]\n  controlPlane",
        "spec.members[0].kubeconfig.file 11:42",
    ),
    (
        "  controlPlane",
        "  members: [{name: m, kubeconfig: {command: [id]}}]\n  controlPlane",
        "spec.members[0].kubeconfig.command 11:45",
    ),
    (
        "  controlPlane",
        "  hostCluster: {kubeconfig: {file: /root/.kube/config}}\n  controlPlane",
        "spec.hostCluster.kubeconfig.file 11:36",
    ),
];

#[tokio::test]
async fn what_reaches_for_the_servers_own_is_refused_on_every_way() {
    let fixture = Fixture::new();
    let token = fixture.token("see@new edit@new plan@new");
    assert_eq!(shown(&fixture.put(&token, &[ABSENT], STORED_DOCUMENT).await), "201");
    let tag = fixture.ask("GET", PATH, Some(&token), None).await.headers["etag"].to_str().unwrap().to_owned();
    let file = fixture.directory.path().join("state/documents/new.document");
    for (what, instead, place) in REFUSED {
        let text = STORED_DOCUMENT.replace(what, instead);
        assert_ne!(text, STORED_DOCUMENT, "{what}");
        let put = fixture.put(&token, &[("if-match", &tag)], &text).await;
        assert_eq!(shown(&put), "422 InvalidDocument", "{instead}");
        let check =
            fixture.ask_as("application/yaml", "POST", "/api/v1/check?deployment=new", Some(&token), &[], &text).await;
        let check = check.json();
        assert_eq!(
            (&check["valid"], &check["complaints"]),
            (&Json::from(false), &put.json()["complaints"]),
            "{instead}"
        );
        let places: Vec<String> = check["complaints"].as_array().unwrap().iter().map(complained).collect();
        assert!(places.iter().any(|found| found == place), "{instead}: {places:?}");
        assert!(check["complaints"][0]["hint"].is_string(), "{instead}: {check:#}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), STORED_DOCUMENT, "{instead}");
        // Also if it came there in another way.
        std::fs::write(&file, &text).unwrap();
        let start = serde_json::json!({"command": "plan"});
        let run = fixture.ask("POST", "/api/v1/deployments/new/runs", Some(&token), Some(start)).await;
        assert_eq!(shown(&run), "409 InvalidDocument", "{instead}");
        std::fs::write(&file, STORED_DOCUMENT).unwrap();
    }
}

fn complained(complaint: &Json) -> String {
    format!("{} {}:{}", complaint["path"].as_str().unwrap_or("-"), complaint["line"], complaint["column"])
}

#[tokio::test]
async fn a_check_stores_nothing_and_says_what_a_document_lacks() {
    let fixture = Fixture::new();
    let token = fixture.token("see@new edit@new");
    let check = async |text: &str| {
        fixture.ask_as("application/yaml", "POST", "/api/v1/check", Some(&token), &[], text).await.json()
    };
    let good = check(STORED_DOCUMENT).await;
    assert_eq!((&good["valid"], &good["name"]), (&Json::from(true), &Json::from("new")), "{good:#}");
    let two = format!("{STORED_DOCUMENT}---\n{STORED_DOCUMENT}");
    for (text, message) in [
        ("", "the document must be one KarmadaDeployment"),
        ("a: [", ""),
        (two.as_str(), "the document must be one KarmadaDeployment"),
        (&STORED_DOCUMENT.replace("bundle: karmada", "bundel: karmada"), "unknown field"),
        (&STORED_DOCUMENT.replace("name: new", "name: a.b"), "must consist of at most 63"),
    ] {
        let found = check(text).await;
        assert_eq!(found["valid"], false, "{text}");
        let messages: Vec<&str> =
            found["complaints"].as_array().unwrap().iter().filter_map(|one| one["message"].as_str()).collect();
        assert!(messages.iter().any(|one| one.contains(message)), "{text}: {messages:?}");
    }
    // Of several documents none is checked: many short ones would take long.
    let wrong = STORED_DOCUMENT.replace("bundle: karmada", "bundel: karmada");
    let complaints = check(&format!("{wrong}---\n{wrong}---\n{wrong}")).await["complaints"].take();
    assert_eq!(complaints.as_array().unwrap().len(), 1, "{complaints:#}");
    assert_eq!(complaints[0]["line"], STORED_DOCUMENT.lines().count() + 2);
    assert!(fixture.documents().is_empty());
    let allowed = fixture.ask("GET", "/api/v1/allowed", Some(&token), None).await;
    assert_eq!(allowed.json(), serde_json::json!({"bundles": ["karmada"], "files": [], "hooks": [], "bastions": []}));
    let other = "/api/v1/check?deployment=prod";
    let answer = fixture.ask_as("application/yaml", "POST", other, Some(&token), &[], STORED_DOCUMENT).await;
    assert_eq!(shown(&answer), "403 Forbidden");
}

/// A long key above many items would make each of their paths as long.
#[tokio::test]
async fn the_paths_of_complaints_are_no_longer_than_they_must_be() {
    let fixture = Fixture::new();
    let token = fixture.token("see@new edit@new");
    let text = format!("{STORED_DOCUMENT}  ? {}\n  : [{}]\n", "k".repeat(50_000), vec!["1"; 20_000].join(","));
    let answer = fixture.ask_as("application/yaml", "POST", "/api/v1/check", Some(&token), &[], &text).await.json();
    let complaints = answer["complaints"].as_array().unwrap();
    assert!(!complaints.is_empty() && complaints.len() <= 100);
    let longest = complaints.iter().filter_map(|one| one["path"].as_str()).map(str::len).max().unwrap();
    assert!((300..=303).contains(&longest), "{longest}");
}

/// Run by the command line, too, its mark cannot be lost: without it, it is no inventory.
#[test]
fn a_stored_document_is_read_with_its_mark_only() {
    use crate::inventory::{Inventory, InventoryOptions};
    use crate::resource::Trust;
    let directory = tempfile::Builder::new().prefix("a,b").tempdir().unwrap();
    let path = directory.path().join("new.document");
    std::fs::write(&path, STORED_DOCUMENT).unwrap();
    let options = InventoryOptions { allowed: Arc::new(limits()), ..InventoryOptions::default() };
    let load = |source: String| Inventory::load_with(&[source], &Default::default(), &options);
    let marked = load(format!("stored:{}", path.display())).unwrap();
    assert_eq!(marked.deployments[0].trust, Trust::Foreign);
    assert!(marked.confined.is_some());
    let lost = load(path.display().to_string()).unwrap_err();
    assert!(lost[0].message.contains("is a document of windlass serve"), "{lost:?}");
    let whole = load(directory.path().display().to_string()).unwrap();
    assert!(whole.deployments.is_empty() && whole.hosts.is_empty());
    // The mark on a person's file only takes trust away, and is refused for it.
    let own = directory.path().join("new.yaml");
    std::fs::write(&own, STORED_DOCUMENT).unwrap();
    assert!(load(format!("stored:{}", own.display())).is_err());
    // A link with another name does not take the mark away, alone or in a directory.
    let link = directory.path().join("links/other.yaml");
    std::fs::create_dir(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for named in [link.as_path(), link.parent().unwrap()] {
        let lost = load(named.display().to_string()).unwrap_err();
        assert!(lost[0].message.contains("other.yaml is a document of windlass serve"), "{lost:?}");
    }
    let lost = crate::resource::load_resources(&link, &limits()).unwrap_err();
    assert!(lost[0].message.contains("other.yaml is a document of windlass serve"), "{lost:?}");
}

/// A document must not be applied as the person's file that had its name before, or the other way round.
#[tokio::test]
async fn a_plan_is_applied_to_the_file_that_it_was_made_from() {
    let fixture = Fixture::new();
    let token = fixture.token("see@* edit@* approve@*");
    assert_eq!(shown(&fixture.put(&token, &[ABSENT], STORED_DOCUMENT).await), "201");
    let state = fixture.directory.path().join("state").canonicalize().unwrap();
    let own = format!("stored:{}", state.join("documents/new.document").display());
    for (source, expected) in [
        (own.as_str(), "409 NotStarted"),
        (own.strip_prefix("stored:").unwrap(), "409 PlanIsOld"),
        ("/srv/deployments/new.yaml", "409 PlanIsOld"),
    ] {
        let mut plan = super::plans::plan(&[(Stage::Etcd, StageState::Differs, "cp-1")]);
        (plan.deployment, plan.sources) = ("new".into(), vec![source.into()]);
        let (run, digest) = super::plans::save(&fixture, &plan, 0);
        let body = serde_json::json!({"command": "apply", "plan": run, "digest": digest});
        let answer = fixture.ask("POST", "/api/v1/deployments/new/runs", Some(&token), Some(body)).await;
        assert_eq!(shown(&answer), expected, "{source}: {}", answer.text);
    }
}

/// What a process of a stored document, and that of a person's file, gets from the server.
#[tokio::test]
async fn a_process_gets_the_secrets_of_its_own_deployment() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    std::fs::write(&key, format!("{}=\n", "A".repeat(43))).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let fixture = Fixture::with_key(SealingKey::find(Some(&key), None).unwrap());
    let program = fixture.directory.path().join("program");
    write_program(
        &program,
        "#!/bin/sh\necho \"$@\" >&2; env | grep WINDLASS >&2; echo \"input: $(cat)\" >&2; exit 1\n",
    );
    let token = fixture.token("see@* edit@* plan@*");
    assert_eq!(shown(&fixture.put(&token, &[ABSENT], STORED_DOCUMENT).await), "201");
    for (deployment, secret) in [("new", "the-secret-of-new"), ("other", "the-secret-of-other")] {
        let body = serde_json::json!({"kind": "password", "value": secret});
        let path = format!("/api/v1/deployments/{deployment}/credentials/login");
        assert_eq!(shown(&fixture.ask("PUT", &path, Some(&token), Some(body)).await), "201");
    }
    let printed = async |deployment: &str| {
        let path = format!("/api/v1/deployments/{deployment}/runs");
        let body = serde_json::json!({"command": "status"});
        let answer = fixture.ask("POST", &path, Some(&token), Some(body)).await;
        assert_eq!(shown(&answer), "409 NotStarted");
        answer.json()["detail"].as_str().unwrap().to_owned()
    };
    let own = printed("new").await;
    let (before, input) = own.split_once("input: ").unwrap();
    assert!(before.contains("-f stored:/") && before.contains("WINDLASS_RESOURCE_TRUST=foreign"), "{before}");
    assert!(!before.contains("the-secret"), "{before}");
    let input: Json = serde_json::from_str(input.trim()).unwrap();
    assert_eq!(input["secrets"], serde_json::json!({"login": {"password": "the-secret-of-new"}}));
    let persons = printed("prod").await;
    assert!(
        persons.ends_with("input:") && !persons.contains("stored:") && !persons.contains("WINDLASS_HANDED"),
        "{persons}"
    );
}
