//! `local`: programs on the controller itself, for `ansible_connection: local` and for tests.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use super::{Confinement, Connection, Error, Exit, Process, Stream, Target};
use crate::value::ProcessEnvironment;

/// How many programs run at once, as an SSH server allows by default.
const CAPACITY: usize = 8;
/// How long a stopped program may take to exit after the end of its input, and then after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);

/// The way to the controller itself.
#[derive(Debug)]
pub struct Local {
    name: String,
    closed: AtomicBool,
    confined: Option<Arc<Confinement>>,
    /// What programs run in.
    surroundings: Arc<ProcessEnvironment>,
}

impl Local {
    /// `name` is the inventory's name of the host, for messages.
    pub fn new(name: impl Into<String>, surroundings: Arc<ProcessEnvironment>) -> Self {
        Local { name: name.into(), closed: AtomicBool::new(false), confined: None, surroundings }
    }

    pub(super) fn of_target(target: &Target) -> Self {
        Local { confined: target.confined.clone(), ..Local::new(&*target.name, target.surroundings.clone()) }
    }
}

#[async_trait]
impl Connection for Local {
    async fn start(&self, line: &str) -> Result<Process, Error> {
        let failed = |reason: std::io::Error| Error::Start { what: line.to_owned(), reason: reason.to_string() };
        if self.is_closed() {
            return Err(Error::Lost { name: self.name.clone(), reason: "it was closed".into() });
        }
        let mut child = Command::from(self.surroundings.command("/bin/sh"))
            .args(["-c", line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C at the terminal is for us; we end our programs ourselves.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            unreachable!("all three streams are pipes");
        };
        let (keep, dropped) = oneshot::channel::<()>();
        let (tell, reported) = oneshot::channel();
        tokio::spawn(watch(child, dropped, tell));
        let name = self.name.clone();
        let exit = async move {
            let status = reported.await;
            drop(keep);
            match status {
                Ok(Ok(exit)) => Ok(exit),
                Ok(Err(error)) => Err(Error::Lost { name, reason: error.to_string() }),
                Err(_) => Err(Error::Lost { name, reason: "the program is not awaited before".into() }),
            }
        };
        Ok(Process { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr), exit: exit.boxed() })
    }

    async fn tunnel(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, Error> {
        let failed = |reason: String| Error::Start { what: format!("connection to {host}:{port}"), reason };
        let stream = match &self.confined {
            Some(confined) => TcpStream::connect(&*confined.resolve(host, port).await.map_err(failed)?).await,
            None => TcpStream::connect((host, port)).await,
        };
        let stream = stream.map_err(|error| failed(error.to_string()))?;
        // Small requests and answers; without it each waits for the other side's delayed acknowledgement.
        #[expect(clippy::let_underscore_must_use, reason = "the stream works without it, only slower")]
        let _ = stream.set_nodelay(true);
        Ok(Box::new(stream))
    }

    fn is_confined(&self) -> bool {
        self.confined.is_some()
    }

    fn capacity(&self) -> usize {
        CAPACITY
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn description(&self) -> String {
        format!("local {}", self.name)
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// Waits for a program. If its [`Process`] is dropped first, it may exit on its own, because its input has ended; then its
/// process group gets SIGTERM, and at last SIGKILL.
async fn watch(mut child: Child, dropped: oneshot::Receiver<()>, tell: oneshot::Sender<std::io::Result<Exit>>) {
    let group = child.id();
    tokio::select! {
        status = child.wait() => {
            #[expect(clippy::let_underscore_must_use, reason = "the receiver may be dropped")]
            let _ = tell.send(status.map(exit));
            return;
        }
        _ = dropped => {}
    }
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        if tokio::time::timeout(GRACE, child.wait()).await.is_ok() {
            return;
        }
        if let Some(group) = group.and_then(|id| i32::try_from(id).ok()) {
            // SAFETY: kill(2) touches no memory. The child is not reaped yet, so the number is still its own.
            #[expect(unsafe_code, reason = "the comment at the unsafe block gives the reason")]
            unsafe {
                libc::kill(-group, signal);
            }
        }
    }
    #[expect(clippy::let_underscore_must_use, reason = "the exit code of a dropped process is not needed")]
    let _ = child.wait().await;
}

fn exit(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal.to_string()),
        (None, None) => Exit::Code(-1),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn all(mut reader: super::super::Reader) -> String {
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn a_program_reads_its_input_and_gives_its_output_and_code() {
        let mut process = Local::new("here", Arc::default()).start("cat; echo bad >&2; exit 3").await.unwrap();
        process.stdin.write_all(b"hello").await.unwrap();
        drop(process.stdin);
        assert_eq!(all(process.stdout).await, "hello");
        assert_eq!(all(process.stderr).await, "bad\n");
        assert_eq!(process.exit.await.unwrap(), Exit::Code(3));
    }

    #[tokio::test]
    async fn a_signal_is_reported() {
        let process = Local::new("here", Arc::default()).start("kill -9 $$").await.unwrap();
        assert_eq!(process.exit.await.unwrap(), Exit::Signal("9".into()));
    }

    #[tokio::test]
    async fn a_dropped_program_is_ended_with_its_children() {
        let mut process = Local::new("here", Arc::default()).start("sleep 300 & echo $!; wait").await.unwrap();
        let mut number = [0; 16];
        let n = process.stdout.read(&mut number).await.unwrap();
        let child: u32 = std::str::from_utf8(&number[..n]).unwrap().trim().parse().unwrap();
        drop(process);
        let path = format!("/proc/{child}/stat");
        let gone = async {
            // A zombie that is not reaped yet also counts as ended.
            while std::fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z ")) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone).await.expect("the child is still there");
    }

    #[tokio::test]
    async fn a_tunnel_reaches_a_port() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut near = Local::new("here", Arc::default()).tunnel("127.0.0.1", port).await.unwrap();
        let (mut far, _) = listener.accept().await.unwrap();
        near.write_all(b"ping").await.unwrap();
        let mut got = [0; 4];
        far.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"ping");
    }

    #[tokio::test]
    async fn a_closed_connection_starts_nothing() {
        let local = Local::new("here", Arc::default());
        local.close().await;
        assert!(matches!(local.start("true").await, Err(Error::Lost { .. })));
    }
}
