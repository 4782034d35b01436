//! `ProxyCommand`: a program of this side whose input and output are the way to the host.

use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::connection::Stream;
use crate::value::ProcessEnvironment;

/// How long a command that failed may take to say why.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The last line that the command wrote to standard error.
pub(super) struct ProxyError(watch::Receiver<Option<String>>);

impl ProxyError {
    /// What it said, at the latest when it closes its error output.
    pub(super) async fn last_line(&mut self) -> Option<String> {
        #[expect(clippy::let_underscore_must_use, reason = "the output up to then is enough")]
        let _ = timeout(LAST_WORDS, async { while self.0.changed().await.is_ok() {} }).await;
        self.0.borrow().clone()
    }
}

/// Starts the command through a shell. It ends with the stream.
pub(super) fn start_proxy(command: &str, around: &ProcessEnvironment) -> io::Result<(Box<dyn Stream>, ProxyError)> {
    let mut child = Command::from(around.command("/bin/sh"))
        .args(["-c", &format!("exec {command}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let piped = "all three streams are pipes";
    let (input, output) = (child.stdin.take().expect(piped), child.stdout.take().expect(piped));
    let errors = child.stderr.take().expect(piped);
    let (last, complaint) = watch::channel(None);
    let (hold, released) = oneshot::channel();
    tokio::spawn(attend(child, errors, last, released));
    Ok((Box::new(Proxy { input, output, _hold: hold }), ProxyError(complaint)))
}

/// Reads the command's errors, and ends the command when its connection is dropped.
async fn attend(
    mut child: Child,
    errors: ChildStderr,
    last: watch::Sender<Option<String>>,
    released: oneshot::Receiver<()>,
) {
    let mut lines = BufReader::new(errors).lines();
    let hearing = async move {
        while let Ok(Some(line)) = lines.next_line().await {
            if !line.trim().is_empty() {
                last.send_replace(Some(line.trim().to_owned()));
            }
        }
        // Its output is complete; dropping `last` signals that.
    };
    let over = async {
        #[expect(clippy::let_underscore_must_use, reason = "a dropped sender also releases it")]
        let _ = released.await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        () = over => {}
        _ = async { hearing.await; child.wait().await } => {}
    }
    #[expect(clippy::let_underscore_must_use, reason = "the program may have exited already")]
    let _ = child.kill().await;
}

struct Proxy {
    input: ChildStdin,
    output: ChildStdout,
    _hold: oneshot::Sender<()>,
}

impl AsyncRead for Proxy {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Proxy {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.input).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.input).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.input).poll_shutdown(cx)
    }
}
