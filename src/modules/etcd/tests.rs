//! The picture of made-up answers, and of a real etcd with TLS and client certificates where its binary is there.

use std::process::{Child, Command, Stdio};

#[path = "../../../tests/shared/port.rs"]
mod port;

use port::free_port;

use super::gateway::{Alarm, Header, Member, Status};
use super::report::{Cluster, Endpoint, addresses_not_asked};
use crate::modules::Error;
use crate::modules::testing::{Bench, cannot_run, value};
use crate::value::{Value, vault};

fn endpoint(name: &str, leader: u64) -> Endpoint {
    let member = |id, name: &str| Member { id, name: name.into(), ..Member::default() };
    let header = Header { cluster_id: 7, member_id: 1 };
    Endpoint {
        endpoint: name.into(),
        reachable: true,
        status: Some(Status { header, leader, raft_term: 2, ..Status::default() }),
        members: Some(vec![member(1, "a"), member(2, "b")]),
        ..Endpoint::default()
    }
}

fn reasons(endpoints: Vec<Endpoint>) -> Vec<String> {
    Cluster::from_endpoints(endpoints).reasons
}

#[test]
fn members_that_agree_are_healthy() {
    let outcome = Cluster::from_endpoints(vec![endpoint("a", 2), endpoint("b", 2)]).cluster_outcome();
    assert_eq!(value(&outcome, "healthy"), "True");
    assert_eq!(value(&outcome, "leader"), "{'id': '2', 'name': 'b'}");
    assert_eq!(value(&outcome, "cluster_id"), "7");
}

/// A cluster of one raises its term with every restart. It must not be taken for the cluster.
#[test]
fn a_member_that_stands_alone_is_not_the_cluster() {
    // Restored on its own it has another cluster id; after force-new-cluster the same.
    for cluster_id in [7, 8] {
        let alone = || {
            let mut alone = endpoint("c", 3);
            let status = alone.status.as_mut().unwrap();
            (status.header, status.raft_term) = (Header { cluster_id, member_id: 3 }, 9);
            alone.members = Some(vec![Member { id: 3, name: "c".into(), ..Member::default() }]);
            alone
        };
        for place in 0..3 {
            let mut endpoints = vec![endpoint("a", 1), endpoint("b", 1)];
            endpoints.insert(place, alone());
            let cluster = Cluster::from_endpoints(endpoints);
            assert_eq!((cluster.members.len(), cluster.leader), (2, Some(1)));
            assert!(cluster.well(1).is_some());
            let outcome = cluster.cluster_outcome();
            assert_eq!(value(&outcome, "cluster_id"), "7");
            assert_eq!(value(&outcome, "clusters"), "[['a', 'b'], ['c']]");
            assert_eq!(value(&outcome, "healthy"), "False");
        }
        // Without a leader, no number of endpoints is a cluster that works.
        let cluster = Cluster::from_endpoints(vec![endpoint("a", 0), endpoint("b", 0), alone()]);
        assert_eq!((cluster.members.len(), cluster.clusters_with_leader.len()), (1, 1));
    }
}

/// While a leader changes, and while a member has not applied a change of the list, there is one cluster.
#[test]
fn members_that_are_behind_are_no_other_cluster() {
    let mut newer = endpoint("b", 2);
    newer.status.as_mut().unwrap().raft_term = 3;
    let cluster = Cluster::from_endpoints(vec![endpoint("a", 1), newer, endpoint("c", 1)]);
    assert_eq!((cluster.clusters_with_leader.len(), cluster.leader), (1, Some(2)));
    let mut longer = endpoint("b", 1);
    longer.members.as_mut().unwrap().push(Member { id: 9, ..Member::default() });
    longer.status.as_mut().unwrap().raft_applied_index = 5;
    let cluster = Cluster::from_endpoints(vec![endpoint("a", 1), longer, endpoint("c", 1)]);
    assert_eq!((cluster.clusters_with_leader.len(), cluster.members.len()), (1, 3));
    assert_eq!(Cluster::from_endpoints(vec![Endpoint::new("a")]).clusters_with_leader.len(), 0);
}

#[test]
fn whatever_speaks_against_health_is_said() {
    let mut other_cluster = endpoint("c", 1);
    other_cluster.status.as_mut().unwrap().header.cluster_id = 8;
    assert_eq!(
        reasons(vec![endpoint("a", 1), other_cluster]),
        ["the endpoints belong to different clusters: 7 at a; 8 at c"]
    );
    assert_eq!(
        reasons(vec![endpoint("a", 1), endpoint("b", 2)]),
        ["the endpoints name different leaders: a at a; b at b"]
    );
    assert_eq!(reasons(vec![endpoint("a", 0)]), ["a has no leader"]);
    let mut down = Endpoint::new("d");
    down.error = Some("cannot connect".into());
    assert_eq!(reasons(vec![endpoint("a", 1), down]), ["d does not answer: cannot connect"]);
    let mut fewer = endpoint("b", 1);
    fewer.members.as_mut().unwrap().pop();
    assert_eq!(
        reasons(vec![endpoint("a", 1), fewer]),
        ["the endpoints list different members: 1 members at b; 2 members at a"]
    );
    let mut troubled = endpoint("a", 1);
    troubled.alarms = vec![Alarm { member: 2, alarm: "NOSPACE".into() }];
    let members = troubled.members.as_mut().unwrap();
    members[0].is_learner = true;
    members.push(Member { id: 255, peer_urls: vec!["https://x:2380".into()], ..Member::default() });
    assert_eq!(
        reasons(vec![troubled]),
        [
            "the member a is still a learner",
            "the member ff (https://x:2380) never started",
            "the member b has the alarm NOSPACE",
        ]
    );
}

/// Answers as one of three voters and a learner, each at `https://<id>:2379`.
fn one_of_four(id: u64) -> Endpoint {
    let member = |id: u64, name: &str| Member {
        id,
        name: name.into(),
        client_urls: vec![format!("https://{id}:2379")],
        is_learner: name == "learner",
        ..Member::default()
    };
    let mut endpoint = endpoint(&format!("https://{id}:2379"), 1);
    let status = endpoint.status.as_mut().unwrap();
    (status.header.member_id, status.raft_applied_index) = (id, 100 + id);
    endpoint.members = Some(vec![member(1, "a"), member(2, "b"), member(3, "c"), member(4, "learner")]);
    endpoint
}

fn healthy_members(endpoints: Vec<Endpoint>) -> String {
    let outcome = Cluster::from_endpoints(endpoints).cluster_outcome();
    assert_eq!((value(&outcome, "voters"), value(&outcome, "majority")), ("3".into(), "2".into()));
    let members = value(&outcome, "members");
    ["a", "b", "c", "learner"]
        .into_iter()
        .filter(|name| {
            let at = members.find(&format!("'name': '{name}'")).unwrap();
            let rest = &members[at..];
            rest[rest.find("'healthy': ").unwrap()..].starts_with("'healthy': True")
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn dead_members_are_counted_and_are_not_healthy() {
    assert_eq!(healthy_members(vec![one_of_four(1)]), "a", "who was not asked is not taken for healthy");
    assert_eq!(healthy_members(vec![one_of_four(1), one_of_four(3), one_of_four(4)]), "a c learner");
    for spoil in [
        |endpoint: &mut Endpoint| endpoint.error = Some("cut".into()),
        |endpoint: &mut Endpoint| endpoint.failed_tests.push("rejects linearizable reads".into()),
        |endpoint: &mut Endpoint| endpoint.status.as_mut().unwrap().leader = 0,
        |endpoint: &mut Endpoint| endpoint.status.as_mut().unwrap().header.cluster_id = 8,
    ] {
        let mut spoilt = one_of_four(2);
        spoil(&mut spoilt);
        let mut newest = one_of_four(1);
        newest.status.as_mut().unwrap().raft_term = 3;
        assert_eq!(healthy_members(vec![newest, spoilt]), "a");
    }
}

#[test]
fn members_that_nobody_named_are_asked_where_they_registered() {
    assert_eq!(addresses_not_asked(&[one_of_four(1), one_of_four(2)]), [["https://3:2379"], ["https://4:2379"]]);
    // One that was asked already is not asked again, and one that never started has no address.
    let mut one = one_of_four(1);
    one.members.as_mut().unwrap().truncate(2);
    one.members.as_mut().unwrap().push(Member { id: 9, ..Member::default() });
    let addresses = addresses_not_asked(&[one, Endpoint::new("https://2:2379/")]);
    assert_eq!(addresses, [Vec::<String>::new(), Vec::new()]);
}

#[test]
fn what_is_wrong_with_members_that_nobody_named_is_distinguished() {
    let mut dead = Endpoint::new("https://3:2379");
    (dead.registered, dead.error) = (true, Some("cannot connect".into()));
    let mut named = one_of_four(1);
    named.members.as_mut().unwrap().pop();
    let cluster = Cluster::from_endpoints(vec![named, dead]);
    assert_eq!(cluster.absent, ["https://3:2379 does not answer: cannot connect"]);
    assert_eq!(cluster.reasons, Vec::<String>::new());
}

#[test]
fn the_reasons_are_in_the_message() {
    let mut down = Endpoint::new("d");
    down.error = Some("cannot connect".into());
    let outcome = Cluster::from_endpoints(vec![endpoint("a", 1), down]).cluster_outcome();
    assert_eq!(outcome.message.unwrap(), "etcd is not healthy: d does not answer: cannot connect");
    assert_eq!(Cluster::from_endpoints(vec![endpoint("a", 1)]).cluster_outcome().message, None);
}

/// An etcd of one member that requires client certificates; stopped when dropped.
struct Etcd {
    child: Child,
    client: u16,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The binary: `ETCD` in the environment, which must run then, or one in PATH if there is one.
fn binary() -> Option<String> {
    if let Ok(named) = std::env::var("ETCD") {
        return Some(named);
    }
    let named = "etcd".to_owned();
    Command::new(&named).arg("--version").output().ok().filter(|output| output.status.success()).map(|_| named)
}

async fn start(bench: &Bench, binary: &str) -> Etcd {
    bench.run("x509_ca: {path: HOST/ca.crt, privatekey_path: HOST/ca.key, common_name: ca}").await.unwrap();
    for name in ["server", "client"] {
        bench
            .run(&format!(
                "x509_certificate: {{path: HOST/{name}.crt, privatekey_path: HOST/{name}.key, ca_path: HOST/ca.crt, \
                 ca_privatekey_path: HOST/ca.key, common_name: {name}, subject_alt_name: ['127.0.0.1', localhost], \
                 usages: [server_auth, client_auth]}}"
            ))
            .await
            .unwrap();
    }
    let (client, peer) = (free_port(), free_port());
    let path = |name: &str| bench.host(name).to_str().unwrap().to_owned();
    let child = Command::new(binary)
        .args(["--name", "one", "--data-dir", &path("data"), "--log-level", "error"])
        .args(["--listen-client-urls", &format!("https://127.0.0.1:{client}")])
        .args(["--advertise-client-urls", &format!("https://127.0.0.1:{client}")])
        .args(["--listen-peer-urls", &format!("http://127.0.0.1:{peer}")])
        .args(["--initial-advertise-peer-urls", &format!("http://127.0.0.1:{peer}")])
        .args(["--initial-cluster", &format!("one=http://127.0.0.1:{peer}")])
        .args(["--client-cert-auth", "--trusted-ca-file", &path("ca.crt")])
        .args(["--cert-file", &path("server.crt"), "--key-file", &path("server.key")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Etcd { child, client }
}

#[tokio::test]
async fn a_real_etcd_tells_its_members_leader_and_health() {
    let Some(binary) = binary() else {
        cannot_run("there is no etcd in PATH, and ETCD does not name one");
        return;
    };
    let mut bench = Bench::new().await;
    let etcd = start(&bench, &binary).await;
    let dead = free_port();
    let task = |endpoints: &str, more: &str| {
        format!(
            "etcd_cluster_info: {{endpoints: [{endpoints}], ca_cert: HOST/ca.crt, client_cert: HOST/client.crt, \
             client_key: HOST/client.key{more}}}"
        )
    };
    let good = format!("'https://127.0.0.1:{}'", etcd.client);
    let mut outcome = bench.run(&task(&good, "")).await.unwrap().outcome;
    for _ in 0..1200 {
        if value(&outcome, "healthy") == "True" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        outcome = bench.run(&task(&good, "")).await.unwrap().outcome;
    }
    let done = bench.run(&task(&good, ", linearizable: true, write_test_key: /windlass/test")).await.unwrap();
    assert!(!done.changed);
    assert_eq!(value(&done.outcome, "reasons"), "[]");

    // The same with files of the controller, one of them encrypted.
    let password = crate::value::Secret::new("pass");
    let key = std::fs::read(bench.host("client.key")).unwrap();
    bench.on_controller("client.key", vault::encrypt(&key, &password, None));
    bench.scope.keyring = std::sync::Arc::new(vault::Keyring::new(vec![("default".into(), password)]));
    let sealed = task(&good, ", remote_src: false").replace("HOST/client.key", "HERE/client.key");
    let sealed = bench.run(&sealed).await.unwrap();
    assert_eq!(value(&sealed.outcome, "healthy"), "True", "{}", value(&sealed.outcome, "endpoints"));
    assert!(value(&done.outcome, "leader").contains("'name': 'one'"), "{}", value(&done.outcome, "leader"));
    assert!(value(&done.outcome, "cluster_version").starts_with("3."));
    let endpoints = value(&done.outcome, "endpoints");
    for part in ["'reachable': True", "'is_leader': True", "'linearizable': True", "'writable': True", "'raft_term': "]
    {
        assert!(endpoints.contains(part), "{part} in {endpoints}");
    }
    let members = value(&done.outcome, "members");
    assert!(members.contains("'started': True") && members.contains("'is_learner': False"), "{members}");

    let uri = |more: &str| {
        let url = format!("https://127.0.0.1:{}/version", etcd.client);
        format!("uri: {{url: '{url}', client_cert: HOST/client.crt, client_key: HOST/client.key{more}}}")
    };
    for more in [", ca_path: HOST/ca.crt", ", validate_certs: false"] {
        let done = bench.run(&uri(more)).await.unwrap();
        assert!(value(&done.outcome, "json").contains("etcdserver"), "{:?}", done.outcome);
    }
    let strange = bench.run(&uri("")).await.unwrap();
    assert!(
        strange.outcome.failed.unwrap().contains("TLS handshake with 127.0.0.1"),
        "an unknown authority is not trusted"
    );

    let half = format!("{good}, 'https://127.0.0.1:{dead}'");
    let done = bench.run(&task(&half, "")).await.unwrap();
    assert_eq!(value(&done.outcome, "healthy"), "False");
    assert!(value(&done.outcome, "reasons").contains(&format!("127.0.0.1:{dead} does not answer: cannot connect")));
    assert!(value(&done.outcome, "leader").contains("'name': 'one'"));

    let bare = format!("etcd_cluster_info: {{endpoints: [{good}], ca_cert: HOST/ca.crt}}");
    let done = bench.run(&bare).await.unwrap();
    assert_eq!(value(&done.outcome, "healthy"), "False", "without a client certificate nothing is told");
    assert!(
        value(&done.outcome, "endpoints").contains("'certificate_error': True"),
        "{}",
        value(&done.outcome, "endpoints")
    );
    let done = bench.run(&task(&half, "")).await.unwrap();
    assert!(
        !value(&done.outcome, "endpoints").contains("'certificate_error': True"),
        "{}",
        value(&done.outcome, "endpoints")
    );
    let endpoints = value(&done.outcome, "endpoints");
    assert_eq!((endpoints.matches("'answered': True").count(), endpoints.matches("'answered': False").count()), (1, 1));
    // A server that ends the connection is there, too.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closing = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let done = bench.run(&task(&format!("'https://127.0.0.1:{closing}'"), "")).await.unwrap();
    let endpoints = value(&done.outcome, "endpoints");
    assert!(endpoints.contains("'answered': True") && endpoints.contains("'reachable': False"), "{endpoints}");
    let foreign = task(&good, "").replace("HOST/ca.crt", "HOST/foreign.crt");
    bench.on_host("foreign.crt", rcgen::generate_simple_self_signed(["foreign".to_owned()]).unwrap().cert.pem());
    let done = bench.run(&foreign).await.unwrap();
    assert!(
        value(&done.outcome, "endpoints").contains("'certificate_error': True"),
        "{}",
        value(&done.outcome, "endpoints")
    );
    for unusable in ["HOST/none.crt", "HOST/client.crt"] {
        let failed = bench.run(&task(&good, "").replace("HOST/client.key", unusable)).await;
        let Err(Error::Answered { values, .. }) = failed else { panic!("{unusable} was used") };
        assert_eq!(values["certificate_error"], Value::from(true), "{unusable}");
    }
    bench.close().await;
}

#[tokio::test]
async fn the_unused_space_of_a_real_database_is_given_back() {
    let Some(binary) = binary() else {
        cannot_run("there is no etcd in PATH, and ETCD does not name one");
        return;
    };
    let bench = Bench::new().await;
    let etcd = start(&bench, &binary).await;
    let ask = async |path: &str, body: &str| {
        let url = format!("https://127.0.0.1:{}/v3/{path}", etcd.client);
        let task = format!(
            "uri: {{url: '{url}', method: POST, body: '{body}', ca_path: HOST/ca.crt, client_cert: HOST/client.crt, \
             client_key: HOST/client.key}}"
        );
        bench.run(&task).await.unwrap().outcome
    };
    let put = format!(r#"{{"key": "YQ==", "value": "{}"}}"#, "A".repeat(1_000_000));
    for _ in 0..600 {
        if ask("kv/put", &put).await.failed.is_none() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    let mut last = None;
    for _ in 0..7 {
        let answer = ask("kv/put", &put).await;
        assert_eq!(answer.failed, None);
        last = Some(answer);
    }
    // One whose answer came too late may have counted, too.
    let header = last.unwrap().values["json"].get_attr("header").unwrap();
    let revision = header.get_attr("revision").unwrap();
    let compaction = format!(r#"{{"revision": "{revision}", "physical": true}}"#);
    assert_eq!(ask("kv/compaction", &compaction).await.failed, None);
    let task = |more: &str| {
        format!(
            "etcd_defragment: {{endpoint: 'https://127.0.0.1:{}', ca_cert: HOST/ca.crt, client_cert: HOST/client.crt, \
             client_key: HOST/client.key{more}}}",
            etcd.client
        )
    };
    let done = bench.run(&task("")).await.unwrap();
    assert!(!done.changed, "less than 100 MiB are unused");
    let size = |outcome: &crate::modules::Outcome| value(outcome, "db_size").parse::<u64>().unwrap();
    let before = size(&done.outcome);
    assert!(before > 5_000_000, "{before}");
    // How much is in use may be known a moment later.
    let mut done = bench.run(&task(", unused_mb: 3")).await.unwrap();
    for _ in 0..100 {
        if done.changed {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        done = bench.run(&task(", unused_mb: 3")).await.unwrap();
    }
    assert!(done.changed && size(&done.outcome) < before / 2, "{:?}", done.outcome);
    assert!(value(&done.outcome, "freed_mb").parse::<u64>().unwrap() >= 3, "{:?}", done.outcome);
    assert!(!bench.run(&task(", unused_mb: 3")).await.unwrap().changed, "a second run changes nothing");
    bench.close().await;
}
