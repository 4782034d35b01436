//! Hosts that exist in memory only. They understand the session's requests well enough for the tasks of these
//! benchmarks: a command succeeds, a file that was written or a directory that was made is there afterwards.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use windlass::connection::{Connection, Error, Exit, Open, Process, Stream, Target};

/// What fits into a fake host's pipes at once.
const PIPE: usize = 16 * 1024;

/// The way to as many hosts as are asked for.
#[derive(Default)]
pub(crate) struct FakeHosts;

#[async_trait]
impl Open for FakeHosts {
    async fn open(&self, _: &Target) -> Result<Arc<dyn Connection>, Error> {
        Ok(Arc::new(FakeHost))
    }
}

#[derive(Debug)]
struct FakeHost;

#[async_trait]
impl Connection for FakeHost {
    async fn start(&self, _: &str) -> Result<Process, Error> {
        let (stdin, input) = duplex(PIPE);
        let (output, stdout) = duplex(PIPE);
        tokio::spawn(Shell::default().serve(input, output));
        Ok(Process {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(tokio::io::empty()),
            exit: Box::pin(async { Ok(Exit::Code(0)) }),
        })
    }

    async fn tunnel(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, Error> {
        Err(Error::Start { what: format!("connection to {host}:{port}"), reason: "a fake host has no network".into() })
    }

    fn capacity(&self) -> usize {
        8
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn description(&self) -> String {
        "fake".into()
    }

    async fn close(&self) {}
}

/// One session on a fake host.
#[derive(Default)]
struct Shell {
    nonce: String,
    request: String,
    /// Lines of the request under way.
    body: String,
    /// Paths that are there, with their kinds as `stat` prints them.
    there: HashMap<String, &'static str>,
}

impl Shell {
    /// Answers until the input ends.
    async fn serve(mut self, input: DuplexStream, mut output: DuplexStream) {
        let mut lines = BufReader::new(input).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(answer) = self.hear(&line)
                && output.write_all(answer.as_bytes()).await.is_err()
            {
                return;
            }
        }
    }

    /// Takes in a line; the answer, if the line ends a request.
    fn hear(&mut self, line: &str) -> Option<String> {
        if let Some(nonce) = line.strip_prefix("wl_n=") {
            self.nonce = nonce.to_owned();
        } else if let Some(request) = line.strip_prefix("wl_q=") {
            self.request = request.to_owned();
            self.body.clear();
        } else {
            self.body.push_str(line);
            self.body.push('\n');
        }
        if self.request.is_empty() || !line.contains("wl_r ") || line.contains("wl_r 1; exit") {
            return None;
        }
        let (stdout, stderr, code) = self.answer();
        let mark = format!("{}.{}", self.nonce, self.request);
        Some(format!("{stdout}\n{mark}|\n{stderr}\n{mark}={code}\n"))
    }

    fn answer(&mut self) -> (String, String, i32) {
        let body = &self.body;
        if body.contains("id -un") {
            return (format!("\n{}\nroot\0/root\0/dev/shm/.windlass.fake\0", self.nonce), String::new(), 0);
        }
        if let Some(path) = after(body, "wl_new ").and_then(|words| words.split(' ').nth(1)) {
            self.there.insert(path.to_owned(), "81a4");
            return (stat("81a4"), String::new(), 0);
        }
        if let Some(path) = after(body, "mkdir ").and_then(|words| words.split(' ').next()) {
            self.there.insert(path.to_owned(), "41ed");
        } else if let Some(path) = after(body, "%G\n' ").and_then(|words| words.split(' ').next()) {
            let path = path.trim_end();
            return match self.there.get(path) {
                Some(mode) => (stat(mode), String::new(), 0),
                None => (String::new(), format!("stat: cannot statx {path}: No such file or directory\n"), 1),
            };
        }
        (String::new(), String::new(), 0)
    }
}

/// As `stat` prints it for a session.
fn stat(mode: &str) -> String {
    format!("{mode}\n0\n0\n64\n1\n1\n1\n1\n1\n1\nroot\nroot\n\n")
}

/// What stands behind a mark in a text.
fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark).map(|(_, rest)| rest)
}
