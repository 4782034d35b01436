//! Objects in a bucket of a real server (moto), which compares signatures, and fails as asked: tests/s3/server.py. `tests/s3-server` installs it;
//! without it, these tests do nothing, unless TESTS_COMPLETE is set.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;
use sha2::{Digest, Sha256};
use windlass::connection::Confinement;
use windlass::s3::{Authorities, Bucket, S3Settings, ServerSideEncryption};
use windlass::value::{ProcessEnvironment, Secret};

struct Server {
    process: Child,
    port: u16,
    access_key: String,
    secret_key: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Server {
    fn start() -> Option<Server> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("target/s3/bin/python");
        if !python.exists() {
            assert!(std::env::var_os("TESTS_COMPLETE").is_none(), "tests/s3-server has not installed the S3 service");
            return None;
        }
        let mut command = Command::new(python);
        command.arg(root.join("tests/s3/server.py")).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let [port, access_key, secret_key] = words.try_into().unwrap();
        let (port, access_key, secret_key) = (port.parse().unwrap(), access_key.into(), secret_key.into());
        Some(Server { process, port, access_key, secret_key })
    }

    fn request(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let length = body.len();
        write!(stream, "{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn fault(&self, method: &str, path: &str, kind: &str, count: u32, after: u32) {
        let fault = json!({"method": method, "path": path, "kind": kind, "count": count, "after": after});
        self.request("PUT /faults", &fault.to_string());
    }

    /// How many requests there were.
    fn count(&self, method: &str, path: &str) -> usize {
        let is_it = |line: &&str| line.starts_with(&format!("{method} ")) && line.contains(path);
        self.request("GET /log", "").lines().filter(is_it).count()
    }

    fn settings(&self) -> S3Settings {
        S3Settings {
            endpoint: Some(format!("http://127.0.0.1:{}", self.port)),
            region: None,
            authorities: Authorities::OfMachine,
            has_virtual_hosts: false,
            encryption: None,
            access_key: self.access_key.clone(),
            secret_key: Secret::new(self.secret_key.clone()),
            session_token: None,
        }
    }

    fn bucket(&self) -> Bucket {
        Bucket::new("backups", &self.settings(), &ProcessEnvironment::default(), None).unwrap()
    }
}

/// Does work with a server, if there is one.
fn with_server(work: impl AsyncFnOnce(&Server)) {
    let Some(server) = Server::start() else { return };
    tokio::runtime::Runtime::new().unwrap().block_on(work(&server));
}

/// A file of so many MiB, no two of which are equal, and its digest.
fn file_of(directory: &Path, name: &str, mebibytes: u32) -> (PathBuf, String) {
    let path = directory.join(name);
    let content: Vec<u8> =
        (0..mebibytes << 18).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    std::fs::write(&path, &content).unwrap();
    let hex = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    (path, hex)
}

#[test]
fn objects_of_any_size_and_name_are_written_listed_read_and_removed() {
    with_server(async |server| {
        let bucket = server.bucket();
        let directory = tempfile::tempdir().unwrap();
        let (small, _) = file_of(directory.path(), "small", 0);
        std::fs::write(&small, "text").unwrap();
        let (large, digest) = file_of(directory.path(), "large", 40);
        for key in ["a/plain", "a/with space+plus", "a/é%41'()*!", "b/other"] {
            bucket.upload_object(key, &small).await.unwrap();
            assert_eq!(bucket.read_object(key, 4).await.unwrap(), b"text", "{key}");
        }
        bucket.upload_object("a/large", &large).await.unwrap();
        let listed = bucket.list_objects("a/").await.unwrap();
        let found: Vec<(&str, u64)> = listed.iter().map(|object| (object.key.as_str(), object.size)).collect();
        let expected = [("a/large", 40 << 20), ("a/plain", 4), ("a/with space+plus", 4), ("a/é%41'()*!", 4)];
        assert_eq!(found, expected);
        // In parts.
        assert_eq!(server.count("PUT", "partNumber="), 3);
        let mut file = tempfile::tempfile().unwrap();
        let read = bucket.download_object("a/large", 40 << 20, Some(&mut file)).await.unwrap();
        assert_eq!(read, (40 << 20, digest));
        let mut begin = [0; 8];
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_exact(&mut begin).unwrap();
        assert_eq!(begin[4..], 2_654_435_761_u32.to_le_bytes());
        let too_large = bucket.download_object("a/large", 1000, None).await.unwrap_err().to_string();
        assert_eq!(too_large, "cannot read s3://backups/a/large: it is larger than 1000 bytes");
        assert!(bucket.read_object("a/plain", 3).await.is_err());
        bucket.delete_object("a/plain").await.unwrap();
        bucket.delete_object("a/plain").await.unwrap();
        let missing = bucket.read_object("a/plain", 4).await.unwrap_err();
        assert!(missing.is_missing(), "{missing}");
        assert!(missing.to_string().contains("404 NoSuchKey: "), "{missing}");
    });
}

#[test]
fn lists_of_more_than_one_page_are_complete() {
    with_server(async |server| {
        let bucket = server.bucket();
        let file = tempfile::NamedTempFile::new().unwrap();
        for first in (0..1003).step_by(17) {
            let keys: Vec<String> = (first..first + 17).map(|number| format!("many/{number}")).collect();
            futures::future::try_join_all(keys.iter().map(|key| bucket.upload_object(key, file.path()))).await.unwrap();
        }
        let found = bucket.list_objects("many/").await.unwrap();
        assert_eq!(found.len(), 1003);
        assert_eq!(server.count("GET", "continuation-token="), 1);
    });
}

#[test]
fn nothing_that_exists_is_replaced() {
    with_server(async |server| {
        let bucket = server.bucket();
        let directory = tempfile::tempdir().unwrap();
        let (large, _) = file_of(directory.path(), "large", 20);
        let small = directory.path().join("small");
        std::fs::write(&small, "first").unwrap();
        for path in [&small, &large] {
            bucket.upload_object("taken", &small).await.ok();
            let refused = bucket.upload_object("taken", path).await.unwrap_err().to_string();
            assert!(refused.contains("412 PreconditionFailed: "), "{refused}");
        }
        assert_eq!(bucket.read_object("taken", 5).await.unwrap(), b"first");
        // The parts of the large one are removed.
        assert_eq!(server.count("DELETE", "taken?uploadId="), 1);
    });
}

#[test]
fn wrong_keys_buckets_and_settings_are_refused_with_what_to_do() {
    with_server(async |server| {
        let around = ProcessEnvironment::default();
        let fault = async |settings: S3Settings, name: &str| match Bucket::new(name, &settings, &around, None) {
            Ok(bucket) => bucket.list_objects("").await.unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        let wrong = S3Settings { secret_key: Secret::new("wrong"), ..server.settings() };
        let error = fault(wrong, "backups").await;
        assert!(error.contains("403 SignatureDoesNotMatch: "), "{error}");
        assert!(error.ends_with("hint: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"), "{error}");
        assert!(!error.contains("wrong"), "{error}");
        let unknown = S3Settings { access_key: "AKIAUNKNOWN".into(), ..server.settings() };
        assert!(fault(unknown, "backups").await.contains("InvalidAccessKeyId"));
        let error = fault(server.settings(), "other").await;
        assert!(error.contains("NoSuchBucket"), "{error}");
        assert!(error.contains("hint: create the bucket, or check its name"), "{error}");
        assert_eq!(server.count("GET", "/"), 3, "what cannot pass was tried again");
        for (endpoint, why) in [
            ("http://s3.example.org", "must begin with https://, except for this machine"),
            ("https://me:secret@s3.example.org", "must have no user, password and query"),
            ("s3.example.org", "is no URL"),
        ] {
            let settings = S3Settings { endpoint: Some(endpoint.into()), ..server.settings() };
            let error = fault(settings, "backups").await;
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
        }
        let nowhere = S3Settings { endpoint: None, ..server.settings() };
        assert_eq!(fault(nowhere, "backups").await, "the region of the bucket is not known\nhint: set AWS_REGION");
        let odd = S3Settings { session_token: Some(Secret::new("a\nb")), ..server.settings() };
        assert_eq!(fault(odd, "backups").await, "the session token has characters that no token has");
        for name in ["Backups", "a", "a..b", "b/c", "b?c", ""] {
            assert!(fault(server.settings(), name).await.contains("is no name of a bucket"), "{name}");
        }
    });
}

#[test]
fn failures_that_pass_are_tried_again_and_others_leave_nothing() {
    with_server(async |server| {
        let bucket = server.bucket();
        let directory = tempfile::tempdir().unwrap();
        let (large, digest) = file_of(directory.path(), "large", 40);
        let small = directory.path().join("small");
        std::fs::write(&small, "text").unwrap();
        // The service is busy, and answers are lost: of a part, and of the request that completes the upload.
        server.fault("PUT", "partNumber=2", "503", 2, 0);
        server.fault("PUT", "partNumber=3", "cut", 1, 0);
        server.fault("POST", "busy?uploadId=", "error", 1, 0);
        server.fault("POST", "busy?uploadId=", "cut", 1, 0);
        bucket.upload_object("busy", &large).await.unwrap();
        server.fault("GET", "/busy", "short", 1, 0);
        assert_eq!(bucket.download_object("busy", 40 << 20, None).await.unwrap(), (40 << 20, digest.clone()));
        // So is that of a small one, which is there by then.
        server.fault("PUT", "/small", "cut", 1, 0);
        bucket.upload_object("small", &small).await.unwrap();
        assert_eq!(bucket.read_object("small", 4).await.unwrap(), b"text");
        // What differs is seen in the digest.
        server.fault("GET", "/busy", "damaged", 1, 0);
        let (size, found) = bucket.download_object("busy", 40 << 20, None).await.unwrap();
        assert!(size == 40 << 20 && found != digest);
        // It stays busy: the upload is given up, and its parts are removed.
        server.fault("PUT", "given-up?partNumber=2", "503", 1000, 0);
        let error = bucket.upload_object("given-up", &large).await.unwrap_err().to_string();
        assert_eq!(error, "cannot write s3://backups/given-up: the server responded 503 Slow Down (after 5 attempts)");
        assert_eq!(server.count("DELETE", "given-up?uploadId="), 1);
        assert!(bucket.list_objects("given-up").await.unwrap().is_empty());
        // A part that was lost although the service said otherwise: it refuses to complete the upload.
        server.fault("PUT", "part-lost?partNumber=2", "lost", 1, 0);
        assert!(bucket.upload_object("part-lost", &large).await.is_err());
        assert!(bucket.list_objects("part-lost").await.unwrap().is_empty());
    });
}

#[test]
fn the_service_encrypts_as_it_is_asked_to() {
    with_server(async |server| {
        let directory = tempfile::tempdir().unwrap();
        let small = directory.path().join("small");
        std::fs::write(&small, "text").unwrap();
        let encrypted =
            S3Settings { encryption: Some(ServerSideEncryption::Kms(Some("key-1".into()))), ..server.settings() };
        let bucket = Bucket::new("backups", &encrypted, &ProcessEnvironment::default(), None).unwrap();
        bucket.upload_object("encrypted", &small).await.unwrap();
        server.bucket().upload_object("plain", &small).await.unwrap();
        let mut file = File::create(directory.path().join("read")).unwrap();
        bucket.download_object("encrypted", 4, Some(&mut file)).await.unwrap();
        assert_eq!(std::fs::read(directory.path().join("read")).unwrap(), b"text");
        let log = server.request("GET /log", "");
        assert!(log.contains("PUT /backups/encrypted aws:kms key-1\n"), "{log}");
        assert!(log.contains("PUT /backups/plain\n"), "{log}");
    });
}

/// What others wrote may not lead to every address, whatever its name resolves to.
#[test]
fn a_bucket_of_others_is_reached_where_it_may_be() {
    let settings = |endpoint: &str| S3Settings {
        endpoint: Some(endpoint.into()),
        region: None,
        authorities: Authorities::OfMachine,
        has_virtual_hosts: false,
        encryption: None,
        access_key: "id".into(),
        secret_key: Secret::new("secret"),
        session_token: None,
    };
    let confined = || Some(std::sync::Arc::new(Confinement::default()));
    let around = ProcessEnvironment::default();
    let open = |endpoint: &str| Bucket::new("backups", &settings(endpoint), &around, confined());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        for endpoint in
            ["https://localhost:1", "https://127.0.0.1:1", "https://[::ffff:127.0.0.1]:1", "https://169.254.169.254"]
        {
            let error = open(endpoint).unwrap().list_objects("").await.unwrap_err().to_string();
            assert!(error.contains("a resource from an API must not connect to"), "{endpoint}: {error}");
        }
    });
    let error = open("http://127.0.0.1:1").err().unwrap().to_string();
    assert_eq!(error, "the endpoint http://127.0.0.1:1/ must begin with https://");
}
