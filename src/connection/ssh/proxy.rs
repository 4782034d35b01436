//! `ProxyCommand`: a program of this side whose input and output are the way to the host.

use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::connection::Stream;

/// The last line that the command wrote to standard error.
#[derive(Clone, Default)]
pub(super) struct Complaint(Arc<Mutex<Option<String>>>);

impl Complaint {
    pub(super) fn text(&self) -> Option<String> {
        self.0.lock().ok().and_then(|line| line.clone())
    }
}

/// Starts the command through a shell. It ends with the stream.
pub(super) fn start(command: &str) -> io::Result<(Box<dyn Stream>, Complaint)> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", &format!("exec {command}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let piped = "all three streams are pipes";
    let (input, output) = (child.stdin.take().expect(piped), child.stdout.take().expect(piped));
    let complaint = Complaint::default();
    let mut lines = BufReader::new(child.stderr.take().expect(piped)).lines();
    let last = complaint.clone();
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            if let (Ok(mut last), false) = (last.0.lock(), line.trim().is_empty()) {
                *last = Some(line.trim().to_owned());
            }
        }
    });
    Ok((Box::new(Proxy { _child: child, input, output }), complaint))
}

struct Proxy {
    _child: Child,
    input: ChildStdin,
    output: ChildStdout,
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
