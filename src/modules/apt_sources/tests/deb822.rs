//! Sources in files of their own, and their keys.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::repository::host;
use crate::modules::testing::value;

#[tokio::test]
async fn a_source_is_written_changed_and_removed() {
    let Some((bench, directory)) = host().await else { return };
    let file = directory.path().join("etc/sources.list.d/my-packages.sources");
    let task = "deb822_repository: {name: My  Packages!, uris: [http://a, http://b], suites: stable, components: [main, extra], \
        trusted: true, by_hash: false, date_max_future: 10, architectures: amd64}";
    let checked = bench.check(task).await.unwrap();
    assert!(checked.changed && !file.exists());
    let done = bench.run(task).await.unwrap();
    let text = "Architectures: amd64\nBy-Hash: no\nComponents: main extra\nDate-Max-Future: 10\nX-Repolib-Name: My  Packages!\n\
        Suites: stable\nTrusted: yes\nTypes: deb\nURIs: http://a http://b\n";
    assert_eq!((std::fs::read_to_string(&file).unwrap().as_str(), checked.diff), (text, done.diff));
    assert_eq!(
        (value(&done.outcome, "repo").as_str(), value(&done.outcome, "dest")),
        (text, file.display().to_string())
    );
    assert!(!bench.run(task).await.unwrap().changed);
    let gone = "deb822_repository: {name: my_packages, state: absent}";
    assert!(bench.check(gone).await.unwrap().changed && file.exists());
    assert!(bench.run(gone).await.unwrap().changed && !file.exists());
    assert!(!bench.run(gone).await.unwrap().changed);
    bench.close().await;
}

#[tokio::test]
async fn a_key_is_fetched_named_or_written_into_the_source() {
    let Some((bench, directory)) = host().await else { return };
    let etc = directory.path().join("etc");
    let text = || std::fs::read_to_string(etc.join("sources.list.d/k.sources")).unwrap();
    let run = async |key: &str| {
        let task = format!("deb822_repository: {{name: k, uris: http://a, suites: ./, signed_by: {key}}}");
        let done = bench.run(&task).await.unwrap();
        assert!(done.changed && !bench.run(&task).await.unwrap().changed, "{key}");
        done
    };
    let done = run(&format!("http://127.0.0.1:{}/key", server().await)).await;
    let path = etc.join("keyrings/k.asc");
    assert_eq!(value(&done.outcome, "key_filename"), path.display().to_string());
    assert!(text().contains(&format!("Signed-By: {}\n", path.display())));
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("-----BEGIN PGP PUBLIC KEY BLOCK-----"));
    run("\"-----BEGIN\\n\\n  abc\\n\"").await;
    assert!(text().contains("Signed-By:\n    -----BEGIN\n    .\n    abc\n"), "{}", text());
    run("0123456789ABCDEF").await;
    assert!(text().contains("Signed-By: 0123456789ABCDEF\n"));
    assert!(bench.run("deb822_repository: {name: k, state: absent}").await.unwrap().changed && !path.exists());
    let message = bench.failure("deb822_repository: {name: k, signed_by: http://127.0.0.1:1/none}").await;
    assert!(message.starts_with("cannot fetch the key http://127.0.0.1:1/none"), "{message}");
    bench.close().await;
}

/// Serves a key, twice; the first response is a redirect.
async fn server() -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 1024];
            let count = stream.read(&mut asked).await.unwrap();
            let body = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n";
            let answer = match String::from_utf8_lossy(&asked[..count]).starts_with("GET /key ") {
                true => "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n".to_owned(),
                false => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
            };
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    port
}
