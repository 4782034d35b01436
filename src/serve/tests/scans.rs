//! Requests that ask hosts for their keys: few at once, and one for each login.

use tokio::net::{TcpListener, TcpStream};

use super::*;

const PATH: &str = "/api/v1/deployments/new/host-keys";
const SHORT: Duration = Duration::from_millis(500);

/// A server that may ask this machine, and a host that takes connections and says nothing.
async fn silent_host() -> (Arc<Fixture>, TcpListener) {
    let fixture = Fixture::with(|options| options.limits.networks = Some(vec!["127.0.0.0/8".to_owned()]));
    (Arc::new(fixture), TcpListener::bind("127.0.0.1:0").await.unwrap())
}

fn asked(host: &TcpListener, count: usize) -> Json {
    let port = host.local_addr().unwrap().port();
    let hosts =
        (0..count).map(|at| serde_json::json!({"name": format!("h{at}"), "address": "127.0.0.1", "port": port}));
    serde_json::json!({"hosts": hosts.collect::<Vec<_>>()})
}

fn ask(fixture: &Arc<Fixture>, token: &str, body: Json) -> tokio::task::JoinHandle<Answered> {
    let (fixture, token) = (fixture.clone(), token.to_owned());
    tokio::spawn(async move { fixture.ask("POST", PATH, Some(&token), Some(body)).await })
}

async fn connected(host: &TcpListener) -> Option<TcpStream> {
    tokio::time::timeout(SHORT, host.accept()).await.ok().map(|accepted| accepted.unwrap().0)
}

#[tokio::test]
async fn a_login_has_one_scan_at_once() {
    let (fixture, host) = silent_host().await;
    let [one, other] = [(); 2].map(|()| fixture.token("see@new edit@new"));
    let first = ask(&fixture, &one, asked(&host, 1));
    let held = connected(&host).await.unwrap();
    let refused = ask(&fixture, &one, asked(&host, 1)).await.unwrap();
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (429, "TooManyScans"));
    assert_eq!(refused.headers["retry-after"], "10");
    let entries = fixture.server.access.lock().audit_entries(None, 1).unwrap();
    let place = format!("127.0.0.1:{}", host.local_addr().unwrap().port());
    assert_eq!((entries[0].detail.as_str(), entries[0].outcome.as_str()), (place.as_str(), "TooManyScans"));
    let others = ask(&fixture, &other, asked(&host, 1));
    drop(connected(&host).await.unwrap());
    assert_eq!(others.await.unwrap().status, 200);
    drop(held);
    assert_eq!(first.await.unwrap().status, 200);
    // A client that leaves has its scan until that has ended.
    let left = ask(&fixture, &one, asked(&host, 1));
    let held = connected(&host).await.unwrap();
    left.abort();
    assert!(left.await.is_err());
    let refused_at_once = serde_json::json!({"hosts": [{"name": "a", "address": "192.0.2.1"}]});
    let again = async || ask(&fixture, &one, refused_at_once.clone()).await.unwrap().status.as_u16();
    assert_eq!(again().await, 429);
    drop(held);
    let free = async {
        while again().await != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), free).await.unwrap();
}

#[tokio::test]
async fn few_hosts_are_asked_at_once() {
    let (fixture, host) = silent_host().await;
    let scans = [(); 2].map(|()| ask(&fixture, &fixture.token("see@new edit@new"), asked(&host, 20)));
    let mut held = Vec::new();
    while let Some(stream) = connected(&host).await {
        held.push(stream);
    }
    assert_eq!(held.len(), 32);
    // The others have their turns then.
    drop(held);
    let mut later = 0;
    while connected(&host).await.is_some() {
        later += 1;
    }
    assert_eq!(later, 8);
    for scan in scans {
        assert_eq!(scan.await.unwrap().json()["items"].as_array().unwrap().len(), 20);
    }
}
