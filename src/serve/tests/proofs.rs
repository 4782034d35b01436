//! The start of a server: whose sessions end, and the proof that it is the one of the store's owner.

use std::io::{Read, Write};

use tokio::sync::oneshot;

use super::super::proof::ProofError;
use super::*;

/// Serves the store of a fixture, until the sender is dropped. Returns its address.
async fn listen(fixture: &Fixture) -> (SocketAddr, oneshot::Sender<()>) {
    let options = ServeOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        socket: None,
        tls: None,
        hosts: Vec::new(),
        deployments: fixture.directory.path().join("deployments"),
        documents: fixture.directory.path().join("state/documents"),
        credentials_key: None,
        limits: ForeignResourceLimits::default(),
        directory: fixture.directory.path().join("state"),
        program: fixture.directory.path().join("program"),
        process_options: Vec::new(),
        max_runs: 4,
        author_may_not_approve: false,
        webhooks: Vec::new(),
        backups: None,
        keep_backups: None,
        backup_recipients: None,
    };
    let (said, listening) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let say = |server: &Listening<'_>| said.send(server.url.strip_prefix("http://").unwrap().to_owned()).unwrap();
        serve(options, "alice", say, async { drop(stopped.await) }).await.unwrap();
    });
    (listening.await.unwrap().parse().unwrap(), stop)
}

/// Whoever had the port meanwhile may have got what browsers sent, and links that people opened.
#[tokio::test]
async fn sessions_and_links_end_when_a_server_starts() {
    let fixture = Fixture::new();
    fixture.account("alice", "see@*");
    let browser = fixture.log_in("alice").await;
    let (by_link, unused) = {
        let mut access = fixture.server.access.lock();
        let link = access.create_link("bob", SystemTime::now()).unwrap();
        let (session, _) = access.use_link(&link, "-", SystemTime::now()).unwrap().unwrap();
        (session, access.create_link("bob", SystemTime::now()).unwrap())
    };
    assert_eq!(fixture.by(&browser, "GET", "/api/v1/session", "").await.status, 200);
    let (_, _stop) = listen(&fixture).await;
    assert_eq!(fixture.by(&browser, "GET", "/api/v1/session", "").await.status, 401);
    let mut access = fixture.server.access.lock();
    assert_eq!(access.find_session(&by_link, SystemTime::now()).unwrap(), None);
    assert_eq!(access.use_link(&unused, "-", SystemTime::now()).unwrap(), None);
}

/// A server of somebody else, which passes requests on to another one, or answers itself.
fn stranger(passes_to: Option<SocketAddr>, answer: &'static str) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 4096];
        let length = stream.read(&mut bytes).unwrap();
        let request = String::from_utf8_lossy(&bytes[..length]).into_owned();
        let mut text = answer.to_owned();
        if let Some(to) = passes_to {
            let mut server = std::net::TcpStream::connect(to).unwrap();
            server.write_all(request.replace(&address.to_string(), &to.to_string()).as_bytes()).unwrap();
            server.read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
        }
        stream.write_all(text.as_bytes()).unwrap();
    });
    address
}

#[tokio::test]
async fn only_the_server_of_the_store_proves_that_it_is_that() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    let (address, stop) = listen(&fixture).await;
    let ask = async |of: &Fixture, address: SocketAddr| {
        let key = of.server.access.lock().proof_key().unwrap();
        tokio::task::spawn_blocking(move || key.ask_server(address)).await.unwrap()
    };
    ask(&fixture, address).await.unwrap();
    ask(&fixture, address).await.unwrap();
    let is_wrong = |asked: Result<(), ProofError>| matches!(asked, Err(ProofError::Wrong { .. }));
    assert!(is_wrong(ask(&other, address).await), "the server of another store");
    assert!(is_wrong(ask(&fixture, stranger(None, "HTTP/1.1 200 OK\r\n\r\n{\"proof\":\"\"}")).await));
    assert!(is_wrong(ask(&fixture, stranger(None, "220 mail.example\r\n")).await));
    assert!(is_wrong(ask(&fixture, stranger(Some(address), "")).await), "a stranger that passes the question on");
    drop(stop);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(matches!(ask(&fixture, closed).await, Err(ProofError::Ask { .. })));
}

#[tokio::test]
async fn a_proof_is_given_for_a_nonce_and_nothing_else() {
    let fixture = Fixture::new();
    let ask = async |nonce: &str| fixture.ask("GET", &format!("/api/v1/proof?nonce={nonce}"), None, None).await;
    let (one, other) = (ask(&"0a".repeat(32)).await, ask(&"0b".repeat(32)).await);
    assert_eq!((one.status.as_u16(), other.status.as_u16()), (200, 200));
    assert_ne!(one.json()["proof"], other.json()["proof"]);
    for wrong in ["", "0a", &"0A".repeat(32), &"0a".repeat(33), &"%0a".repeat(64)] {
        assert_eq!(ask(wrong).await.code(), "BadRequest", "{wrong}");
    }
}
