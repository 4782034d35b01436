//! A host that exists in memory only and answers what it was given to say, whatever it is asked.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use windlass::connection::{Connection, Error, Exit, Process, Stream};
use windlass::value::mutex::Mutex;

/// What it says, one answer for each time that something was written to it to the end; then it hangs up.
#[derive(Debug)]
pub(super) struct Host(Arc<Mutex<VecDeque<Vec<u8>>>>);

impl Host {
    /// Answers as `reply.rs` describes them.
    pub(super) fn new(answers: Vec<Vec<u8>>) -> Host {
        Host(Arc::new(Mutex::new(answers.into())))
    }
}

#[async_trait::async_trait]
impl Connection for Host {
    async fn start(&self, _: &str) -> Result<Process, Error> {
        let shell = Arc::new(Mutex::new(Shell { answers: self.0.clone(), ..Shell::default() }));
        Ok(Process {
            stdin: Box::new(Input(shell.clone())),
            stdout: Box::new(Output(shell)),
            stderr: Box::new(tokio::io::empty()),
            exit: Box::pin(async { Ok(Exit::Code(0)) }),
        })
    }

    async fn tunnel(&self, host: &str, _: u16) -> Result<Box<dyn Stream>, Error> {
        Err(Error::Start { what: host.into(), reason: "there is no network".into() })
    }

    fn capacity(&self) -> usize {
        1
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn description(&self) -> String {
        "memory".into()
    }

    async fn close(&self) {}
}

/// One session.
#[derive(Default)]
struct Shell {
    answers: Arc<Mutex<VecDeque<Vec<u8>>>>,
    /// The line that is being written.
    line: Vec<u8>,
    nonce: Vec<u8>,
    request: Vec<u8>,
    /// What sets the sections of gathered facts apart.
    mark: Vec<u8>,
    /// What is to be said.
    said: VecDeque<u8>,
    /// It was read from, with nothing to say, since it was last written to.
    waited: bool,
}

impl Shell {
    fn hear(&mut self, bytes: &[u8]) {
        self.waited = false;
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if let Some(nonce) = line.strip_prefix(b"wl_n=") {
                self.nonce = nonce.to_vec();
            } else if let Some(request) = line.strip_prefix(b"wl_q=") {
                self.request = request.to_vec();
            } else if let Some(at) = line.windows(34).position(is_mark) {
                self.mark = line[at..at + 34].to_vec();
            }
        }
    }

    /// Takes the next answer, with the marks put in.
    fn answer(&mut self) {
        let next = self.answers.lock().pop_front();
        for byte in next.into_iter().flatten() {
            match byte {
                b'@' => self.said.extend(&self.nonce),
                b'#' => self.said.extend(&self.request),
                b'^' => self.said.extend(&self.mark),
                byte => self.said.push_back(byte),
            }
        }
    }
}

/// `=0123456789abcdef0123456789abcdef=`
fn is_mark(text: &[u8]) -> bool {
    text.starts_with(b"=") && text.ends_with(b"=") && text[1..text.len() - 1].iter().all(u8::is_ascii_hexdigit)
}

struct Input(Arc<Mutex<Shell>>);

impl AsyncWrite for Input {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().hear(bytes);
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shell = self.0.lock();
        // The prelude is no request.
        if !shell.request.is_empty() {
            shell.answer();
        }
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct Output(Arc<Mutex<Shell>>);

impl AsyncRead for Output {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut shell = self.0.lock();
        if shell.said.is_empty() && !std::mem::replace(&mut shell.waited, true) {
            // A session that is at rest looks once. One that waits looks again, and nothing more will come.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let count = shell.said.len().min(into.remaining());
        for byte in shell.said.drain(..count) {
            into.put_slice(&[byte]);
        }
        Poll::Ready(Ok(()))
    }
}
