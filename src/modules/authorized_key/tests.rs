//! Files of keys in a scratch directory, and what sshd would make of them.

use std::os::unix::fs::symlink;

use crate::modules::testing::{Bench, value};

const A: &str = "ssh-ed25519 AAAA a@x";
const B: &str = "ssh-rsa BBBB b@x";

/// The user that the tests run as, who surely exists.
fn user() -> String {
    let output = std::process::Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn task(arguments: &str) -> String {
    format!("ansible.posix.authorized_key: {{user: {}, path: HOST/ssh/keys, {arguments}}}", user())
}

#[tokio::test]
async fn second_run_changes_nothing_and_sshd_may_read_the_file() {
    let bench = Bench::new().await;
    let add = task(&format!("key: '{A}'"));
    assert!(bench.check(&add).await.unwrap().changed);
    let done = bench.run_twice(&add).await;
    assert!(done.changed);
    assert_eq!(done.diff[0].after, format!("{A}\n"));
    assert_eq!(value(&done.outcome, "keyfile"), bench.host("ssh/keys").display().to_string());
    assert_eq!((bench.text("ssh/keys"), bench.mode("ssh/keys"), bench.mode("ssh")), (format!("{A}\n"), 0o600, 0o700));
    assert!(bench.run_twice(&task(&format!("key: '{B}', key_options: no-pty"))).await.changed);
    assert_eq!(bench.text("ssh/keys"), format!("{A}\nno-pty {B}\n"));
    assert!(bench.run_twice(&task(&format!("key: '{B}', exclusive: true, comment: new"))).await.changed);
    assert_eq!(bench.text("ssh/keys"), "ssh-rsa BBBB new\n");
    assert!(bench.run_twice(&task(&format!("key: '{B}', state: absent"))).await.changed);
    assert_eq!(bench.text("ssh/keys"), "");
    bench.close().await;
}

#[tokio::test]
async fn the_directory_is_left_alone_if_asked() {
    let bench = Bench::new().await;
    std::fs::create_dir(bench.host("ssh")).unwrap();
    let mode = bench.mode("ssh");
    bench.run(&task(&format!("key: '{A}', manage_dir: false"))).await.unwrap();
    assert_eq!(bench.mode("ssh"), mode);
    bench.close().await;
}

#[tokio::test]
async fn a_link_is_followed_only_if_asked() {
    let bench = Bench::new().await;
    bench.on_host("elsewhere", format!("{A}\n"));
    std::fs::create_dir(bench.host("ssh")).unwrap();
    symlink("../elsewhere", bench.host("ssh/keys")).unwrap();
    assert!(bench.run_twice(&task(&format!("key: '{B}', follow: true, manage_dir: false"))).await.changed);
    assert!(bench.host("ssh/keys").is_symlink());
    assert_eq!(bench.text("elsewhere"), format!("{A}\n{B}\n"));
    assert!(bench.run_twice(&task(&format!("key: '{B}', state: absent"))).await.changed);
    assert!(!bench.host("ssh/keys").is_symlink());
    assert_eq!((bench.text("elsewhere"), bench.text("ssh/keys")), (format!("{A}\n{B}\n"), format!("{A}\n")));
    bench.close().await;
}

#[tokio::test]
async fn keys_come_from_a_file_of_the_host() {
    let bench = Bench::new().await;
    bench.on_host("list", format!("# all\n{A}\n\n{B}\n"));
    bench.run_twice(&task("key: 'file://HOST/list'")).await;
    assert_eq!(bench.text("ssh/keys"), format!("{A}\n{B}\n"));
    assert!(bench.failure(&task("key: 'file://HOST/no'")).await.starts_with("no such file of keys on the host: "));
    bench.close().await;
}

#[tokio::test]
async fn a_list_without_keys_removes_none() {
    let bench = Bench::new().await;
    bench.run(&task(&format!("key: '{A}'"))).await.unwrap();
    for list in ["", "\n# none\n"] {
        bench.on_host("list", list);
        let reported = bench.failure(&task("key: 'file://HOST/list', exclusive: true")).await;
        assert!(reported.ends_with("/list contains no key"), "{reported}");
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096]).await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await.unwrap();
    });
    let reported = bench.failure(&task(&format!("key: 'http://u:pw@{address}/k', exclusive: true"))).await;
    assert_eq!(reported, format!("authorized_key: http://{address}/k contains no key"));
    assert_eq!(bench.text("ssh/keys"), format!("{A}\n"));
    // As a value of the task itself, nothing is an answer.
    bench.run(&task("key: '', exclusive: true")).await.unwrap();
    assert_eq!(bench.text("ssh/keys"), "");
    bench.close().await;
}

#[tokio::test]
async fn what_is_wrong_is_reported_and_nothing_is_written() {
    let bench = Bench::new().await;
    assert_eq!(bench.failure(&task("key: nonsense")).await, "invalid key specified: nonsense");
    let evil = task(&format!("key: '{A}', key_options: \"no-pty\\nssh-rsa EVIL\""));
    assert_eq!(bench.failure(&evil).await, "authorized_key: key_options must be one line");
    let stranger = format!("authorized_key: {{user: no-such-user, key: '{A}'}}");
    let message = "failed to look up user no-such-user: the host has no such user";
    assert_eq!(bench.failure(&stranger).await, message);
    assert!(bench.check(&stranger).await.unwrap().changed, "an earlier task would have made the user");
    assert_eq!(std::fs::read_dir(bench.host("")).unwrap().count(), 0);
    bench.close().await;
}
