//! `k8s_info` beside an API server that refuses for now. Real servers: tests/kubernetes/.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use assert_cmd::Command;

/// Answers one request with each of these, head and body, and then nobody. Gives the server's URL.
fn server(answers: Vec<(&'static str, &'static str)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (head, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            read_request(&mut stream);
            let length = body.len();
            let type_ = "Content-Type: application/json";
            write!(stream, "HTTP/1.1 {head}\r\n{type_}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
                .unwrap();
        }
    });
    url
}

fn read_request(stream: &mut TcpStream) {
    let mut read = Vec::new();
    let mut byte = [0];
    while !read.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        read.push(byte[0]);
    }
}

fn reported(answers: Vec<(&'static str, &'static str)>) -> (i32, String) {
    told_of(&server(answers))
}

fn told_of(server: &str) -> (i32, String) {
    let scratch = tempfile::tempdir().unwrap();
    let arguments = format!("host={server} kind=ConfigMap api_version=v1 namespace=default");
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.env("NO_COLOR", "1").env("ANSIBLE_CONFIG", "/dev/null").current_dir(scratch.path());
    let output = command.args(["run", "-i", "a,", "-c", "local", "a", "-m", "k8s_info", "-a", &arguments]).output();
    let output = output.unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

const KINDS: &str = r#"{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
    {"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": ["list"]}]}"#;
const LIST: &str =
    r#"{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": [{"metadata": {"name": "found"}}]}"#;
const LATER: &str = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429,
    "message": "storage is (re)initializing", "reason": "TooManyRequests"}"#;

#[test]
fn what_a_server_refuses_for_now_is_asked_again() {
    let later = ("429 Too Many Requests\r\nRetry-After: 1", LATER);
    let (code, reported) = reported(vec![("200 OK", KINDS), later, later, ("200 OK", LIST)]);
    assert!(code == 0 && reported.contains("\"found\""), "{reported}");
}

#[test]
fn what_it_refuses_for_good_is_not() {
    let never = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
        "message": "configmaps is forbidden", "reason": "Forbidden"}"#;
    let (code, reported) = reported(vec![("200 OK", KINDS), ("403 Forbidden", never), ("200 OK", LIST)]);
    assert!(code == 2 && reported.contains("configmaps is forbidden"), "{reported}");
}

/// An ingress without a backend says the same of every page.
#[test]
fn a_page_that_is_not_found_says_nothing_of_the_cluster() {
    let page = ("404 Not Found", "404 page not found");
    let (code, told) = reported(vec![page, page]);
    assert!(code == 2 && told.contains("is not a Kubernetes API"), "{told}");
    let (code, told) = reported(vec![page, ("200 OK", r#"{"kind": "APIGroupList", "groups": []}"#)]);
    assert!(code == 0 && told.contains("\"api_found\": false"), "{told}");
    let never = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden"}"#;
    assert_eq!(reported(vec![page, ("403 Forbidden", never)]).0, 0);
}

#[test]
fn an_answer_without_end_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&mut stream);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\"";
            stream.write_all(head.as_bytes()).unwrap();
            let blanks = vec![b' '; 1 << 20];
            while stream.write_all(&blanks).is_ok() {}
        }
    });
    let (code, reported) = told_of(&url);
    assert!(code == 2 && reported.contains("length limit exceeded"), "{reported}");
}
