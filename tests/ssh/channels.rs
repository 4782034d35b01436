//! Programs and tunnels through one connection.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass::connection::{Connection, Error, Exit, Process};

use crate::server::{Server, open};

/// Runs a line to its end; gives its output, its error output and how it ended.
pub async fn run(connection: &dyn Connection, line: &str) -> (String, String, Exit) {
    let Process { stdin, mut stdout, mut stderr, exit } = connection.start(line).await.unwrap();
    drop(stdin);
    let (mut out, mut err) = (String::new(), String::new());
    let (_, _, exit) = tokio::join!(stdout.read_to_string(&mut out), stderr.read_to_string(&mut err), exit);
    (out, err, exit.unwrap())
}

#[tokio::test]
async fn output_error_output_and_exit_code_come_back_apart() {
    let server = Server::start();
    let connection = open(&server.target()).await;
    let (out, err, exit) = run(&*connection, "echo out; echo err >&2; exit 7").await;
    assert_eq!((out.as_str(), err.as_str(), exit), ("out\n", "err\n", Exit::Code(7)));
    assert_eq!(connection.description(), format!("ssh root@127.0.0.1:{}", server.port));
}
