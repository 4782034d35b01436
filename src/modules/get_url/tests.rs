//! Against a small server on loopback.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::modules::testing::{Bench, value};
use crate::value::mutex::Mutex;

const SHA256_OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const NEW: &str = "Fri, 01 Jan 2100 00:00:00 GMT";

/// A server on loopback, and the heads of the requests that it got.
struct Server {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = heads.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = String::new();
                let mut buffer = [0; 4096];
                while !head.contains("\r\n\r\n") {
                    match stream.read(&mut buffer).await {
                        Ok(0) | Err(_) => break,
                        Ok(count) => head.push_str(&String::from_utf8_lossy(&buffer[..count])),
                    }
                }
                let head = head.to_lowercase();
                stream.write_all(&answer(&head)).await.ok();
                kept.lock().push(head);
            }
        });
        Server { address, heads }
    }

    fn last(&self) -> String {
        self.heads.lock().last().cloned().unwrap()
    }

    fn count(&self) -> usize {
        self.heads.lock().len()
    }
}

fn answer(head: &str) -> Vec<u8> {
    let (status, headers, body) = match head.split_whitespace().nth(1).unwrap() {
        away if away.starts_with("/to/") => ("302 Found", format!("Location: http://{}\r\n", &away[4..]), Vec::new()),
        "/abc" if head.contains("if-modified-since: ") => ("304 Not Modified", String::new(), Vec::new()),
        "/never" => ("304 Not Modified", String::new(), Vec::new()),
        "/abc" | "/fresh" => ("200 OK", format!("Last-Modified: {NEW}\r\n"), b"abc".to_vec()),
        "/sums" => ("200 OK", String::new(), format!("00  x\n{SHA256_OF_ABC}  ./abc\n").into_bytes()),
        "/named" => ("200 OK", "Content-Disposition: attachment; filename=../given\r\n".to_owned(), b"named".to_vec()),
        "/big" => ("200 OK", String::new(), vec![7; 3 << 20]),
        "/cut" => return b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this".to_vec(),
        "/moved" => ("302 Found", "Location: /abc\r\n".to_owned(), Vec::new()),
        "/login" if !head.contains("authorization: basic dtpw") => {
            ("401 Unauthorized", "WWW-Authenticate: Basic realm=x\r\n".to_owned(), Vec::new())
        }
        "/login" => ("200 OK", String::new(), b"let in".to_vec()),
        "/packed" => {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut packed, b"plain").unwrap();
            ("200 OK", "Content-Encoding: gzip\r\n".to_owned(), packed.finish().unwrap())
        }
        _ => ("404 File not found", String::new(), b"gone".to_vec()),
    };
    let mut text = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    text.extend(body);
    text
}

#[tokio::test]
async fn second_run_changes_nothing_and_downloads_nothing_that_did_not_change() {
    let (bench, server) = (Bench::new().await, Server::start().await);
    let task = format!("get_url: {{url: 'http://u:p@{}/abc', dest: HOST/a, mode: '0640'}}", server.address);
    assert!(bench.check(&task).await.unwrap().changed);
    let done = bench.run_twice(&task).await;
    assert!(done.changed);
    assert_eq!((bench.text("a"), bench.mode("a")), ("abc".to_owned(), 0o640));
    for (name, expected) in [
        ("status_code", "200"),
        ("checksum_src", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("md5sum", "900150983cd24fb0d6963f7d28e17f72"),
        ("checksum_dest", "None"),
        ("mode", "0640"),
        ("url", &format!("http://{}/abc", server.address)),
    ] {
        assert_eq!(value(&done.outcome, name), expected, "{name}");
    }
    assert_eq!(done.outcome.message.as_deref(), Some("OK (3 bytes)"));
    assert!(server.last().contains("if-modified-since: "), "{}", server.last());
    let again = bench.run(&task).await.unwrap().outcome;
    assert_eq!((value(&again, "status_code"), value(&again, "mode")), ("304".to_owned(), "0640".to_owned()));
    let task = format!("get_url: {{url: 'http://{}/abc', dest: HOST/a, force: true}}", server.address);
    assert!(!bench.run(&task).await.unwrap().changed);
    assert!(server.last().contains("cache-control: no-cache"), "{}", server.last());
    bench.close().await;
}

#[tokio::test]
async fn a_right_checksum_spares_the_download_and_a_wrong_one_leaves_the_old_file() {
    let (bench, server) = (Bench::new().await, Server::start().await);
    let at = &server.address;
    let task = format!("get_url: {{url: 'http://{at}/abc', dest: HOST/a, checksum: 'sha256:{SHA256_OF_ABC}'}}");
    bench.on_host("a", "old");
    assert!(bench.run(&task).await.unwrap().changed);
    let before = server.count();
    let right = bench.run(&task).await.unwrap();
    assert!(!right.changed && right.outcome.values["checksum_src"].is_none());
    assert_eq!(server.count(), before, "it was asked for although it is there");
    let attributes = task.replace("dest:", "mode: '0600', dest:");
    let done = bench.run_twice(&attributes).await;
    assert_eq!(done.outcome.message.as_deref(), Some("file already exists but file attributes changed"));
    let wrong = format!("get_url: {{url: 'http://{at}/named', dest: HOST/a, checksum: 'sha1:00ff'}}");
    let message = bench.failure(&wrong).await;
    assert!(message.ends_with("has the checksum b62714700750e0b01d1f3113ce90b218b7f0dceb, not 00ff"), "{message}");
    assert_eq!(bench.text("a"), "abc");
    bench.close().await;
}

#[tokio::test]
async fn a_checksum_comes_from_a_list_of_the_server() {
    let (bench, server) = (Bench::new().await, Server::start().await);
    let at = &server.address;
    let task = format!("get_url: {{url: 'http://{at}/abc', dest: HOST, checksum: 'sha256:http://{at}/sums'}}");
    assert!(bench.run_twice(&task).await.changed);
    assert_eq!(bench.text("abc"), "abc");
    let message = bench.failure(&task.replace("/abc'", "/named'")).await;
    assert_eq!(message, format!("unable to find a checksum for file \"named\" in http://{at}/sums"));
    let message = bench.failure(&task.replace("/sums", "/nothing")).await;
    assert_eq!(message, format!("cannot read http://{at}/nothing: HTTP Error 404: File not found"));
    bench.close().await;
}

#[tokio::test]
async fn in_a_directory_the_server_names_the_file() {
    let (bench, server) = (Bench::new().await, Server::start().await);
    std::fs::create_dir(bench.host("d")).unwrap();
    let task = format!("get_url: {{url: 'http://{}/named', dest: HOST/d}}", server.address);
    assert!(bench.run_twice(&task).await.changed);
    assert_eq!(bench.text("d/given"), "named");
    bench.close().await;
}

#[tokio::test]
async fn redirects_logins_and_packed_answers_are_understood() {
    let (bench, server) = (Bench::new().await, Server::start().await);
    for (path, more, content) in [
        ("moved", "", "abc"),
        ("login", ", username: u, password: p", "let in"),
        ("packed", "", "plain"),
        ("fresh", ", headers: {X-A: 1}", "abc"),
    ] {
        let task = format!("get_url: {{url: 'http://{}/{path}', dest: HOST/{path}{more}}}", server.address);
        bench.run(&task).await.unwrap();
        assert_eq!(bench.text(path), content);
    }
    assert!(server.last().contains("x-a: 1\r\n") && server.last().contains("user-agent: ansible-httpget"));
    bench.close().await;
}

#[tokio::test]
async fn headers_that_log_in_are_for_the_first_server_only() {
    let (bench, first, second) = (Bench::new().await, Server::start().await, Server::start().await);
    let headers = "Authorization: s1, Cookie: s2, X-Vault-Token: s3, PRIVATE-TOKEN: s4, X-Api-Key: s5, X-Plain: open";
    let to = |address: &str| {
        format!("get_url: {{url: 'http://{}/to/{address}/abc', dest: HOST/a, headers: {{{headers}}}}}", first.address)
    };
    bench.run(&to(&second.address)).await.unwrap();
    let heads = (first.last(), second.last());
    assert!(heads.0.contains("x-vault-token: s3") && heads.0.contains("x-plain: open"), "{}", heads.0);
    let secret = ["s1", "s2", "s3", "s4", "s5"].into_iter().find(|secret| heads.1.contains(&format!(": {secret}\r")));
    assert!(secret.is_none() && heads.1.contains("x-plain: open"), "{}", heads.1);
    bench.run(&to(&first.address)).await.unwrap();
    assert!(first.last().starts_with("get /abc ") && first.last().contains("x-vault-token: s3"), "{}", first.last());
    bench.close().await;
}

#[tokio::test]
async fn what_does_not_come_whole_leaves_the_old_file() {
    let (bench, server) = (Bench::new().await, Server::start().await);
    bench.on_host("a", "old");
    for (path, message) in [
        ("nothing", "Request failed: HTTP Error 404: File not found"),
        ("cut", "Request failed: invalid response from"),
    ] {
        let task = format!("get_url: {{url: 'http://{}/{path}', dest: HOST/a, force: true}}", server.address);
        let said = bench.failure(&task).await;
        assert!(said.starts_with(message), "{said}");
    }
    assert_eq!(bench.text("a"), "old");
    assert_eq!(std::fs::read_dir(bench.host("")).unwrap().count(), 1, "something is left beside it");
    bench.close().await;
}

/// A server, or a proxy before it, that answers 304 to every request.
#[tokio::test]
async fn not_modified_is_an_answer_only_to_a_question() {
    let (bench, server) = (Bench::new().await, Server::start().await);
    bench.on_host("a", "old");
    for arguments in [
        "dest: HOST/new".to_owned(),
        "dest: HOST".to_owned(),
        "dest: HOST/a, force: true".to_owned(),
        format!("dest: HOST/a, checksum: 'sha256:{SHA256_OF_ABC}'"),
    ] {
        let said = bench.failure(&format!("get_url: {{url: 'http://{}/never', {arguments}}}", server.address)).await;
        assert_eq!(said, "Request failed: HTTP Error 304: Not Modified, although the request was unconditional");
    }
    assert!(!bench.host("new").exists() && bench.text("a") == "old");
    bench.close().await;
}

#[tokio::test]
async fn a_long_file_comes_whole_with_a_backup_of_the_old_one() {
    let (bench, server) = (Bench::new().await, Server::start().await);
    bench.on_host("a", "old");
    let task = format!("get_url: {{url: 'http://{}/big', dest: HOST/a, force: true, backup: true}}", server.address);
    let done = bench.run(&task).await.unwrap();
    assert_eq!(std::fs::read(bench.host("a")).unwrap(), vec![7; 3 << 20]);
    assert_eq!(std::fs::read_to_string(value(&done.outcome, "backup_file")).unwrap(), "old");
    assert!(!bench.run(&task).await.unwrap().changed);
    bench.close().await;
}

#[tokio::test]
async fn a_link_is_replaced_unless_it_leads_to_the_same_content() {
    let (bench, server) = (Bench::new().await, Server::start().await);
    bench.on_host("target", "old");
    std::os::unix::fs::symlink("target", bench.host("link")).unwrap();
    let task = format!("get_url: {{url: 'http://{}/abc', dest: HOST/link, force: true}}", server.address);
    assert!(bench.run_twice(&task).await.changed);
    assert_eq!((bench.text("target"), bench.text("link")), ("old".to_owned(), "abc".to_owned()));
    bench.on_host("target", "abc");
    std::fs::remove_file(bench.host("link")).unwrap();
    std::os::unix::fs::symlink("target", bench.host("link")).unwrap();
    assert!(!bench.run(&task).await.unwrap().changed);
    assert!(bench.host("link").is_symlink());
    bench.close().await;
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_by_name() {
    let (bench, server) = (Bench::new().await, Server::start().await);
    let at = &server.address;
    for (arguments, message) in [
        (format!("url: 'http://{at}/abc', dest: HOST/no/dir"), "HOST/no does not exist"),
        ("url: 'ftp://h/x', dest: HOST/a".to_owned(), "invalid URL: it must start with http:// or https://"),
        ("url: 'file:x', dest: HOST/a".to_owned(), "has no absolute path on the host, such as file:///etc/hosts"),
        (format!("url: 'http://{at}/abc', dest: HOST/a, checksum: abc"), "must be an algorithm, a colon"),
    ] {
        let said = bench.failure(&format!("get_url: {{{arguments}}}")).await;
        let message = message.replace("HOST", bench.host("").to_str().unwrap().trim_end_matches('/'));
        assert!(said.ends_with(&message) || said.contains(&message), "{said}");
    }
    bench.close().await;
}

#[tokio::test]
async fn a_file_of_the_host_may_be_an_address() {
    let bench = Bench::new().await;
    let from = bench.on_host("a b", "abc");
    bench.on_host("sums", format!("{SHA256_OF_ABC}  a b\n"));
    let address = format!("file://{}", from.display().to_string().replace(' ', "%20"));
    let sums = bench.host("sums").display().to_string();
    let task = format!("get_url: {{url: '{address}', dest: HOST/got, checksum: 'sha256:file://{sums}', force: true}}");
    let done = bench.run_twice(&task).await;
    assert_eq!((bench.text("got").as_str(), done.outcome.message.as_deref()), ("abc", Some("OK (3 bytes)")));
    assert!(
        bench
            .failure("get_url: {url: 'file:///no/such', dest: HOST/x}")
            .await
            .contains("no such file on the host: /no/such")
    );
    bench.close().await;
}

#[tokio::test]
async fn a_proxy_and_logins_are_taken_from_the_environment() {
    let server = Server::start().await;
    let proxy = format!("http://u:p@{}", server.address);
    let own = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(own.path(), "machine far.invalid login me password secret\n").unwrap();
    let netrc = own.path().to_str().unwrap();
    let bench = Bench::with_environment(&[("http_proxy", &proxy), ("no_proxy", ""), ("NETRC", netrc)]).await;
    bench.run("get_url: {url: 'http://far.invalid/x', dest: HOST/a}").await.unwrap();
    let head = server.last();
    assert!(head.starts_with("get http://far.invalid/x http/1.1\r\n"), "{head}");
    assert!(
        head.contains("proxy-authorization: basic dtpw") && head.contains("\r\nauthorization: basic bwu6c2vjcmv0"),
        "{head}"
    );
    bench.run("get_url: {url: 'http://far.invalid/x', dest: HOST/b, use_netrc: false}").await.unwrap();
    assert!(!server.last().contains("\r\nauthorization: "));
    let count = server.count();
    let reported = bench.failure("get_url: {url: 'http://far.invalid/x', dest: HOST/c, use_proxy: false}").await;
    assert!(
        reported.starts_with("Request failed: cannot connect to far.invalid:80") && server.count() == count,
        "{reported}"
    );
    bench.close().await;
}
