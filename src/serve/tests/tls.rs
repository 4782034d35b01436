//! HTTPS: a log-in over it, certificates that are exchanged, and what is refused.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::logins::PASSWORD;
use super::*;
use crate::serve::passwords::hash_password;
use crate::serve::tls::{ServerTls, TlsError};

/// Writes a certificate for these names and its key. Returns the certificate.
fn write_certificate(directory: &Path, names: &[&str]) -> CertificateDer<'static> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let files = files(directory);
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(0o600)).unwrap();
    made.cert.der().clone()
}

fn files(directory: &Path) -> TlsFiles {
    TlsFiles { certificate: directory.join("tls.crt"), key: directory.join("tls.key") }
}

fn options(directory: &Path, listen: &str) -> ServeOptions {
    let deployments = directory.join("deployments");
    std::fs::create_dir_all(&deployments).unwrap();
    ServeOptions {
        listen: listen.parse().unwrap(),
        socket: None,
        tls: Some(files(directory)),
        hosts: Vec::new(),
        deployments,
        documents: directory.join("state/documents"),
        credentials_key: None,
        limits: ForeignResourceLimits::default(),
        directory: directory.join("state"),
        program: directory.join("program"),
        process_options: Vec::new(),
        max_runs: 4,
        author_may_not_approve: false,
        webhooks: Vec::new(),
        backups: None,
        keep_backups: None,
        backup_recipients: None,
    }
}

/// A server that listens, until the sender is dropped.
async fn listen(options: ServeOptions) -> (u16, String, oneshot::Sender<()>) {
    let (said, listening) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let say = |server: &Listening<'_>| {
            let port = server.url.rsplit_once(':').unwrap().1.parse::<u16>().unwrap();
            said.send((port, server.fingerprint.clone().unwrap())).unwrap();
        };
        serve(options, "alice", say, async { drop(stopped.await) }).await.unwrap();
    });
    let (port, fingerprint) = listening.await.unwrap();
    (port, fingerprint, stop)
}

/// Sends a request over TLS to a server with this certificate.
async fn ask(port: u16, trusted: &CertificateDer<'static>, name: &str, request: &str) -> std::io::Result<String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut stream = tokio_rustls::TlsConnector::from(config).connect(name, stream).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8(answer).unwrap())
}

fn request_text(method: &str, path: &str, headers: &[String], body: &str) -> String {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_logs_in_over_https_and_plain_http_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = write_certificate(directory.path(), &["ops-1.example", "*.other.example", "192.0.2.9"]);
    let mut access = AccessStore::open_access(&directory.path().join("state")).unwrap();
    let hash = hash_password(PASSWORD).unwrap();
    assert!(access.create_account("alice", &hash, &Rights::all(), SystemTime::now()).unwrap());
    drop(access);
    let mut options = options(directory.path(), "0.0.0.0:0");
    options.hosts = vec!["ops-1.example".to_owned(), "proxy.example:443".to_owned()];
    let (port, fingerprint, _stop) = listen(options).await;
    assert_eq!(fingerprint, crate::serve::access::sha256_hex(&certificate));
    let ask = async |request: String| ask(port, &certificate, "ops-1.example", &request).await.unwrap();
    let host = format!("Host: ops-1.example:{port}");
    let json = "Content-Type: application/json".to_owned();
    let origin = format!("Origin: https://ops-1.example:{port}");
    let body = serde_json::json!({"name": "alice", "password": PASSWORD}).to_string();
    let answer = ask(request_text("POST", "/api/v1/sessions", &[host.clone(), json.clone(), origin], &body)).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert!(answer.contains("strict-transport-security: max-age=31536000\r\n"), "{answer}");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.starts_with("__Host-windlass_session="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
    let body: Json = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let key = format!("Windlass-Key: {}", body["key"].as_str().unwrap());
    let session = cookie.split(';').next().unwrap();
    let show = async |cookie: &str| {
        let headers = [host.clone(), key.clone(), format!("Cookie: {cookie}")];
        ask(request_text("GET", "/api/v1/session", &headers, "")).await
    };
    assert!(show(session).await.starts_with("HTTP/1.1 200 "));
    // Without the prefix, another server of this domain may have set it.
    assert!(show(session.strip_prefix("__Host-").unwrap()).await.starts_with("HTTP/1.1 401 "));

    for (known, status) in [
        ("ops-1.example", 421),
        ("proxy.example", 200),
        ("proxy.example:443", 200),
        (&format!("proxy.example:{port}"), 421),
        ("evil.example", 421),
        ("a.other.example", 421),
        (&format!("192.0.2.9:{port}"), 200),
        (&format!("localhost:{port}"), 200),
        (&format!("0.0.0.0:{port}"), 421),
    ] {
        let answer = ask(request_text("GET", "/healthz", &[format!("Host: {known}")], "")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{known}: {answer}");
        let is_strict = answer.contains("strict-transport-security");
        assert_eq!(is_strict, !known.starts_with("localhost"), "{known}: {answer}");
    }
    let foreign = format!("Origin: http://ops-1.example:{port}");
    let answer = ask(request_text("POST", "/api/v1/sessions", &[host.clone(), json, foreign], "{}")).await;
    assert!(answer.contains("OtherOrigin"), "a page without TLS: {answer}");

    let mut plain = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    plain.write_all(request_text("GET", "/healthz", &[host], "").as_bytes()).await.unwrap();
    plain.shutdown().await.unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("use https://\n"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchanged_certificate_is_taken_and_a_broken_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let first = write_certificate(directory.path(), &["first.example"]);
    let (port, _, _stop) = listen(options(directory.path(), "127.0.0.1:0")).await;
    let healthy = async |certificate: &CertificateDer<'static>, name: &str| {
        let request = request_text("GET", "/healthz", &[format!("Host: {name}:{port}")], "");
        ask(port, certificate, name, &request).await.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
    };
    assert!(healthy(&first, "first.example").await);
    // The key of another certificate, as when one file was exchanged and the other was not yet.
    let files = files(directory.path());
    let whole = std::fs::read(&files.certificate).unwrap();
    let second = rcgen::generate_simple_self_signed(["second.example".to_owned()]).unwrap();
    std::fs::write(&files.certificate, second.cert.pem()).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(healthy(&first, "first.example").await, "the former one stays in use");
    std::fs::write(&files.key, second.signing_key.serialize_pem()).unwrap();
    let begun = std::time::Instant::now();
    while !healthy(second.cert.der(), "second.example").await {
        assert!(begun.elapsed() < Duration::from_secs(20), "the new certificate is not in use");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!healthy(&first, "first.example").await);
    std::fs::write(&files.certificate, whole).unwrap();
    std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(0o644)).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(healthy(second.cert.der(), "second.example").await);
}

#[tokio::test]
async fn an_address_that_others_reach_needs_tls_and_an_account() {
    let directory = tempfile::tempdir().unwrap();
    write_certificate(directory.path(), &["ops-1.example"]);
    let refused = async |options: ServeOptions| {
        let served = serve(options, "alice", |_| panic!("it listens"), std::future::pending());
        tokio::time::timeout(Duration::from_secs(20), served).await.unwrap().unwrap_err().to_string()
    };
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let without = ServeOptions { tls: None, ..options(directory.path(), address) };
        let text = refused(without).await;
        assert!(text.contains("needs TLS\nhint: give --tls-cert and --tls-key"), "{text}");
        let text = refused(options(directory.path(), address)).await;
        assert!(text.contains("needs an account") && text.contains("hint: windlass serve user add"), "{text}");
    }
}

#[test]
fn a_key_that_others_can_read_and_files_that_do_not_fit_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    write_certificate(directory.path(), &["ops-1.example"]);
    let files = files(directory.path());
    let open = || ServerTls::read_certificate(files.clone()).map(drop);
    let set = |path: &Path, mode: u32| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    open().unwrap();
    let is_root = rustix::process::geteuid().is_root();
    for (mode, allowed) in [(0o600, true), (0o400, true), (0o644, false), (0o604, false), (0o640, is_root)] {
        set(&files.key, mode);
        match open() {
            Ok(()) => assert!(allowed, "{mode:o}"),
            Err(error) => assert!(!allowed && matches!(error, TlsError::KeyOfAll { .. }), "{mode:o}: {error}"),
        }
    }
    for (path, mode) in [(&files.key, 0o602), (&files.certificate, 0o666)] {
        set(path, mode);
        assert!(matches!(open().unwrap_err(), TlsError::NotOwn { .. }), "{mode:o}");
        set(path, 0o600);
    }
    let key = std::fs::read(&files.key).unwrap();
    let other = rcgen::generate_simple_self_signed(["other.example".to_owned()]).unwrap();
    for (text, why) in
        [(other.signing_key.serialize_pem().into_bytes(), "does not go with"), (b"x".to_vec(), "no private key")]
    {
        std::fs::write(&files.key, text).unwrap();
        let error = open().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    std::fs::write(&files.key, key).unwrap();
    for text in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        std::fs::write(&files.certificate, text).unwrap();
        assert!(matches!(open().unwrap_err(), TlsError::Invalid { .. }), "{text}");
    }
    std::fs::remove_file(&files.certificate).unwrap();
    assert!(matches!(open().unwrap_err(), TlsError::Read { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_that_do_not_end_keep_nobody_out_for_long() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = write_certificate(directory.path(), &["ops-1.example"]);
    let (port, _, _stop) = listen(options(directory.path(), "127.0.0.1:0")).await;
    let mut idle = Vec::new();
    for at in 0..512 {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        // Nothing, the start of a handshake, or plain HTTP whose answer is not read.
        let begin: &[u8] = [b"".as_slice(), b"\x16\x03\x01\x02", b"GET / HTTP/1.1\r\n"][at % 3];
        stream.write_all(begin).await.unwrap();
        idle.push(stream);
    }
    let request = request_text("GET", "/healthz", &[format!("Host: ops-1.example:{port}")], "");
    let answer = tokio::time::timeout(Duration::from_secs(30), ask(port, &certificate, "ops-1.example", &request));
    assert!(answer.await.unwrap().unwrap().starts_with("HTTP/1.1 200 "));
}
