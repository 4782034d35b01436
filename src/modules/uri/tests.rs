//! Against a small server on loopback.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::testing::{Bench, value};

/// A server on loopback; gives its address. What it answers depends on the path, or is what it was asked.
async fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !is_whole(&request) {
                match stream.read(&mut buffer).await {
                    Ok(0) | Err(_) => break,
                    Ok(count) => request.extend(&buffer[..count]),
                }
            }
            stream.write_all(answer(&String::from_utf8_lossy(&request)).as_bytes()).await.ok();
        }
    });
    address
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

fn answer(request: &str) -> String {
    let (status, headers, body) = match request.split_whitespace().nth(1).unwrap() {
        "/json" => (
            "200 OK",
            "Content-Type: application/json; charset=utf-8\r\nX-A: 1\r\nSet-Cookie: s=1; Path=/\r\n",
            "{\"a\": [1]}".to_owned(),
        ),
        "/missing" => ("404 Not Found", "", "gone".to_owned()),
        "/moved" => ("302 Found", "Location: /json\r\n", String::new()),
        "/login" if !request.to_lowercase().contains("authorization: basic dtpw") => {
            ("401 Unauthorized", "WWW-Authenticate: Basic realm=x\r\n", String::new())
        }
        _ => ("200 OK", "Content-Type: text/plain\r\n", request.to_owned()),
    };
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn an_answer_comes_with_status_json_headers_and_cookies() {
    let (bench, address) = (Bench::new().await, server().await);
    let done = bench.run(&format!("uri: {{url: 'http://{address}/json', return_content: true}}")).await.unwrap();
    assert!(!done.changed);
    for (name, expected) in [
        ("status", "200"),
        ("json", "{'a': [1]}"),
        ("content", "{\"a\": [1]}"),
        ("x_a", "1"),
        ("cookies", "{'s': '1'}"),
        ("redirected", "False"),
    ] {
        assert_eq!(value(&done.outcome, name), expected, "{name}");
    }
    assert_eq!(done.outcome.message.as_deref(), Some("OK (10 bytes)"));
    assert!(bench.check(&format!("uri: {{url: 'http://{address}/json'}}")).await.unwrap().outcome.skipped);
    bench.close().await;
}

#[tokio::test]
async fn another_status_and_no_answer_at_all_are_failures_with_a_status() {
    let (bench, address) = (Bench::new().await, server().await);
    let done = bench.run(&format!("uri: {{url: 'http://{address}/missing'}}")).await.unwrap();
    let message = done.outcome.failed.as_deref();
    assert_eq!(message, Some("Status code was 404 and not [200]: HTTP Error 404: Not Found"));
    assert_eq!(value(&done.outcome, "status"), "404");
    let task = format!("uri: {{url: 'http://{address}/missing', status_code: [404, 200]}}");
    assert!(bench.run(&task).await.unwrap().outcome.failed.is_none());
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let done = bench.run(&format!("uri: {{url: 'http://{dead}/'}}")).await.unwrap();
    assert_eq!(value(&done.outcome, "status"), "-1");
    assert!(
        done.outcome.failed.unwrap().starts_with("Status code was -1 and not [200]: Request failed: cannot connect")
    );
    bench.close().await;
}

#[tokio::test]
async fn redirects_are_followed_and_a_login_is_given_when_asked_for() {
    let (bench, address) = (Bench::new().await, server().await);
    let done = bench.run(&format!("uri: {{url: 'http://{address}/moved'}}")).await.unwrap();
    assert_eq!(value(&done.outcome, "url"), format!("http://{address}/json"));
    assert_eq!(value(&done.outcome, "redirected"), "True");
    let stay = format!("uri: {{url: 'http://{address}/moved', follow_redirects: none, status_code: 302}}");
    assert_eq!(value(&bench.run(&stay).await.unwrap().outcome, "location"), format!("http://{address}/json"));
    let login = format!("uri: {{url: 'http://{address}/login', url_username: u, url_password: p}}");
    assert!(bench.run(&login).await.unwrap().outcome.failed.is_none());
    bench.close().await;
}

#[tokio::test]
async fn bodies_are_sent_as_json_and_as_forms() {
    let (bench, address) = (Bench::new().await, server().await);
    let task = |format: &str| {
        format!(
            "uri: {{url: 'http://{address}/echo', method: POST, body: {{a: [1, x y]}}, body_format: {format}, return_content: true}}"
        )
    };
    let json = value(&bench.run(&task("json")).await.unwrap().outcome, "content");
    assert!(json.contains("content-type: application/json") && json.ends_with("{\"a\":[1,\"x y\"]}"), "{json}");
    let form = value(&bench.run(&task("form-urlencoded")).await.unwrap().outcome, "content");
    assert!(form.contains("application/x-www-form-urlencoded") && form.ends_with("a=1&a=x+y"), "{form}");
    bench.close().await;
}

#[tokio::test]
async fn a_body_is_kept_once() {
    let (bench, address) = (Bench::new().await, server().await);
    let task = format!("uri: {{url: 'http://{address}/json', dest: HOST, mode: '0640'}}");
    assert!(bench.run_twice(&task).await.changed);
    assert_eq!((bench.text("json"), bench.mode("json")), ("{\"a\": [1]}".to_owned(), 0o640));
    bench.close().await;
}

#[tokio::test]
async fn a_link_in_the_place_of_a_body_gives_it_nothing() {
    let (bench, address) = (Bench::new().await, server().await);
    bench.on_host("secret", "other");
    std::fs::set_permissions(bench.host("secret"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("secret", bench.host("link")).unwrap();
    let task = format!("uri: {{url: 'http://{address}/json', dest: HOST/link, mode: '0600'}}");
    assert!(bench.run_twice(&task).await.changed);
    assert!(!bench.host("link").is_symlink());
    assert_eq!((bench.mode("link"), bench.text("secret")), (0o600, "other".to_owned()));
    bench.close().await;
}

/// Needs root, to make links of another user.
#[tokio::test]
#[ignore = "needs root: cargo test --lib -- --ignored"]
async fn a_link_of_another_user_does_not_choose_whose_file_is_changed_or_sent() {
    let (bench, address) = (Bench::new().await, server().await);
    bench.on_host("secret", "{\"a\": [1]}");
    std::fs::create_dir(bench.host("of-root")).unwrap();
    for (link, to) in [("body", "secret"), ("directory", "of-root")] {
        std::os::unix::fs::symlink(bench.host(to), bench.host(link)).unwrap();
        std::os::unix::fs::lchown(bench.host(link), Some(65534), None).unwrap();
    }
    for arguments in
        ["dest: HOST/body, owner: nobody", "dest: HOST/directory", "method: POST, remote_src: true, src: HOST/body"]
    {
        let told = bench.failure(&format!("uri: {{url: 'http://{address}/json', {arguments}}}")).await;
        assert!(told.contains("made this symbolic link"), "{arguments}: {told}");
    }
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&bench.host("secret").metadata().unwrap()), 0);
    bench.close().await;
}

#[tokio::test]
async fn a_form_of_several_parts_has_texts_and_files() {
    let (bench, address) = (Bench::new().await, server().await);
    bench.on_controller("files/up.txt", "from here");
    bench.on_host("there", "from the host");
    let task = format!(
        "uri: {{url: 'http://{address}/echo', method: POST, body_format: form-multipart, return_content: true, \
         body: {{field: text, file: {{filename: up.txt, multipart_encoding: 7or8bit}}}}}}"
    );
    let said = value(&bench.run(&task).await.unwrap().outcome, "content");
    for part in
        ["multipart/form-data; boundary=", "name=\"field\"\r\n\r\ntext\r\n", "filename=\"up.txt\"\r\n\r\nfrom here"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let task = task.replace("up.txt", "HOST/there").replace("method", "remote_src: true, method");
    assert!(value(&bench.run(&task).await.unwrap().outcome, "content").contains("\r\n\r\nfrom the host\r\n"));
    bench.close().await;
}
