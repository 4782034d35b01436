//! What servers do wrong, and what becomes of a download then.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng};
use sha2::{Digest, Sha256};

use super::*;
use crate::bundle::bytes_to_hex;
use crate::value::mutex::Mutex;

/// What is wrong with one answer.
#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    /// The connection ends after so many bytes of the body.
    Cut(usize),
    Status(u16),
    /// More bytes are announced than come.
    TooLong,
    /// Fewer bytes are announced than the file has.
    TooShort,
    Redirect,
    /// A request to resume gets the whole file.
    IgnoresRange,
    /// The bytes have pauses between them.
    Slow,
    /// One byte differs.
    Altered,
    /// The range begins elsewhere.
    WrongRange,
    /// The range is one byte long, although more was requested.
    PartOfRange,
}

/// Serves one file with these faults in turn, then without fault. Gives its address, and all heads of requests.
fn serve(content: Vec<u8>, faults: Vec<Fault>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/file", listener.local_addr().unwrap());
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    std::thread::spawn(move || {
        let mut faults = faults.into_iter();
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            answer(stream, &content, &mut faults, &seen);
        }
    });
    (address, heads)
}

fn answer(mut stream: TcpStream, content: &[u8], faults: &mut impl Iterator<Item = Fault>, seen: &Mutex<Vec<String>>) {
    let mut head = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    seen.lock().push(head.to_ascii_lowercase());
    let fault = faults.next().unwrap_or(Fault::None);
    let head = head.to_ascii_lowercase();
    let begin = head.split("range: bytes=").nth(1).and_then(|rest| rest.split('-').next()?.parse::<usize>().ok());
    let begin = begin.filter(|_| !matches!(fault, Fault::IgnoresRange));
    let mut body = content[begin.unwrap_or(0)..].to_vec();
    let mut length = body.len();
    let mut status = if begin.is_some() { "206 Partial Content".to_owned() } else { "200 OK".to_owned() };
    let range = |begin: usize| format!("bytes {begin}-{}/{}", content.len().saturating_sub(1), content.len());
    let mut more = format!("ETag: \"a\"\r\nContent-Range: {}\r\n", range(begin.unwrap_or(0)));
    match fault {
        Fault::Cut(count) => body.truncate(count.min(body.len())),
        Fault::Status(code) => {
            (status, body) = (format!("{code} Trouble"), b"trouble".to_vec());
            length = body.len();
        }
        Fault::TooLong => length += 10,
        Fault::TooShort => length = length.saturating_sub(10),
        Fault::Redirect => more.push_str("Location: /elsewhere\r\n"),
        Fault::Altered if !body.is_empty() => body[0] ^= 1,
        Fault::WrongRange => more = format!("ETag: \"a\"\r\nContent-Range: {}\r\n", range(1)),
        Fault::PartOfRange => {
            body.truncate(1);
            length = body.len();
            let begin = begin.unwrap_or(0);
            more = format!("ETag: \"a\"\r\nContent-Range: bytes {begin}-{begin}/{}\r\n", content.len());
        }
        _ => {}
    }
    if matches!(fault, Fault::Redirect) {
        status = "302 Found".to_owned();
    }
    // The client may be gone already.
    drop(write!(stream, "HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n"));
    for piece in body.chunks(4096) {
        if matches!(fault, Fault::Slow) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if stream.write_all(piece).is_err() {
            return;
        }
    }
}

fn content(seed: u64) -> Vec<u8> {
    let mut random = StdRng::seed_from_u64(seed);
    let size = random.random_range(1..80_000);
    (0..size).map(|_| random.random()).collect()
}

async fn get(client: &Client, address: &str, sha256: Option<&str>) -> Result<Vec<u8>, String> {
    let url = Url::parse(address).unwrap();
    let wanted = DownloadRequest { url: &url, sha256, size: None, headers: &[] };
    match client.download_file(&wanted).await {
        Ok((path, _)) => Ok(std::fs::read(path).unwrap()),
        Err(DownloadError::Error(error)) => Err(error.message),
        Err(DownloadError::Login) => Err("login".to_owned()),
    }
}

/// Names of all files below a directory of the cache.
fn kept(cache: &Path, below: &str) -> usize {
    std::fs::read_dir(cache.join(below)).unwrap().count()
}

#[tokio::test]
async fn whatever_a_server_does_a_file_is_whole_or_there_is_none() {
    for seed in 0..20 {
        let cache = tempfile::tempdir().unwrap();
        let client = Client::for_tests(cache.path());
        let content = content(seed);
        let digest = bytes_to_hex(&Sha256::digest(&content));
        let mut random = StdRng::seed_from_u64(seed + 1000);
        let faults: Vec<Fault> = (0..random.random_range(0..7))
            .map(|_| match random.random_range(0..9) {
                0 | 1 => Fault::Cut(random.random_range(0..content.len() + 1)),
                2 => Fault::Status([500, 502, 503, 429][random.random_range(0..4)]),
                3 => Fault::TooLong,
                4 => Fault::Redirect,
                5 => Fault::IgnoresRange,
                6 => Fault::Slow,
                7 => Fault::WrongRange,
                _ => Fault::TooShort,
            })
            .collect();
        let (address, _) = serve(content.clone(), faults.clone());
        match get(&client, &address, Some(&digest)).await {
            Ok(found) => {
                assert!(found == content, "seed {seed}: {faults:?}");
                assert_eq!((kept(cache.path(), "sha256"), kept(cache.path(), "partial")), (1, 0), "seed {seed}");
            }
            Err(why) => {
                assert!(why.contains("attempts") || why.contains("expected"), "seed {seed}: {faults:?}: {why}");
                assert_eq!(kept(cache.path(), "sha256"), 0, "seed {seed}: {faults:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_download_resumes_where_it_stopped_and_is_never_repeated() {
    let cache = tempfile::tempdir().unwrap();
    let client = Client::for_tests(cache.path());
    let content = vec![7; 50_000];
    let digest = bytes_to_hex(&Sha256::digest(&content));
    let (address, heads) = serve(content.clone(), vec![Fault::Cut(20_000), Fault::Status(503)]);
    assert!(get(&client, &address, Some(&digest)).await.unwrap() == content);
    assert!(get(&client, &address, Some(&digest)).await.unwrap() == content);
    let heads = heads.lock().clone();
    assert_eq!(heads.len(), 3);
    assert!(heads[1].contains("range: bytes=") && heads[2].contains("if-range: \"a\""), "{heads:?}");
    // A file of the cache that was altered is fetched again.
    let path = cache.path().join("sha256").join(&digest);
    std::fs::write(&path, "other").unwrap();
    assert!(get(&client, &address, Some(&digest)).await.unwrap() == content);
}

#[tokio::test]
async fn a_part_of_the_rest_is_not_the_file() {
    let cache = tempfile::tempdir().unwrap();
    let client = Client::for_tests(cache.path());
    let content = vec![7; 50_000];
    let (address, _) = serve(content.clone(), vec![Fault::Cut(20_000), Fault::PartOfRange]);
    assert!(get(&client, &address, None).await.unwrap() == content, "without a digest, too");
}

/// Answers every request with this head, and counts them.
fn serve_head(head: String) -> (String, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/file", listener.local_addr().unwrap());
    let count = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while reader.read_line(&mut line).unwrap_or(0) > 0 && !line.ends_with("\r\n\r\n") {}
            *seen.lock() += 1;
            drop(write!(stream, "HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
        }
    });
    (address, count)
}

#[tokio::test]
async fn a_server_that_another_one_redirects_to_gets_no_login() {
    let cache = tempfile::tempdir().unwrap();
    let client = Client::for_tests(cache.path());
    let (other, _) =
        serve_head("401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"http://127.0.0.1:1/token\"".into());
    let (address, requests) = serve_head(format!("302 Found\r\nLocation: {other}"));
    let url = Url::parse(&address).unwrap();
    let refused = client.download_text(&url, &[], 1000).await.unwrap_err();
    assert_eq!(refused.message, format!("{address} redirects to {other}, which requires a login"));
    assert_eq!(*requests.lock(), 1);
}

#[tokio::test]
async fn another_content_is_refused_with_both_digests() {
    let cache = tempfile::tempdir().unwrap();
    let client = Client::for_tests(cache.path());
    let (address, _) = serve(b"content".to_vec(), vec![]);
    let wanted = "0".repeat(64);
    let message = get(&client, &address, Some(&wanted)).await.unwrap_err();
    let found = bytes_to_hex(&Sha256::digest(b"content"));
    assert_eq!(message, format!("{address} has SHA-256 {found}, expected {wanted}"));
    let (address, _) = serve(content(1), vec![Fault::Status(404)]);
    let message = get(&client, &address, Some(&wanted)).await.unwrap_err();
    assert_eq!(message, format!("cannot download {address}: the server responded 404 Trouble"));
    // A file that changes after a partial download is downloaded again from its start.
    let bytes = content(3);
    let (address, _) = serve(bytes.clone(), vec![Fault::Cut(100), Fault::Altered]);
    let digest = bytes_to_hex(&Sha256::digest(&bytes));
    assert!(get(&client, &address, Some(&digest)).await.unwrap() == bytes);
    assert_eq!(kept(cache.path(), "sha256"), 1);
}

#[tokio::test]
async fn without_a_digest_the_length_must_be_known() {
    let cache = tempfile::tempdir().unwrap();
    let client = Client::for_tests(cache.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/file", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf").unwrap();
    });
    let message = get(&client, &address, None).await.unwrap_err();
    assert!(
        message.ends_with("sent no Content-Length, so windlass cannot check that the file is complete"),
        "{message}"
    );
    assert_eq!(kept(cache.path(), "sha256"), 0);
}
