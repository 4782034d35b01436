//! The last words of a session outside its frames: what sudo, su and the login's start files say.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::sync::watch;

use crate::connection::Reader;
use crate::value::mutex::Mutex;

const KEPT: usize = 16 * 1024;

/// Gathers a session's stderr as it comes; keeps its end.
pub(super) struct StartupOutput {
    heard: OutputSink,
    changed: watch::Receiver<u64>,
    task: tokio::task::JoinHandle<()>,
}

impl StartupOutput {
    pub(super) fn new(mut reader: Reader) -> Self {
        let (tell, changed) = watch::channel(0);
        let heard = OutputSink { text: Arc::default(), tell };
        let kept = heard.clone();
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; 2048];
            while let Ok(n @ 1..) = reader.read(&mut buffer).await {
                kept.push(&buffer[..n]);
            }
        });
        StartupOutput { heard, changed, task }
    }

    pub(super) fn collected_text(&self) -> String {
        let text = self.heard.text.lock();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// A counter that changes each time more output arrives.
    pub(super) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// Takes further words in, from elsewhere.
    pub(super) fn hears(&self) -> OutputSink {
        self.heard.clone()
    }

    /// Waits a moment for the end of the stream.
    pub(super) async fn ended(&mut self) {
        if !self.task.is_finished() {
            #[expect(clippy::let_underscore_must_use, reason = "the output up to then is enough")]
            let _ = tokio::time::timeout(Duration::from_millis(300), &mut self.task).await;
        }
    }
}

impl Drop for StartupOutput {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where words are put.
#[derive(Clone)]
pub(super) struct OutputSink {
    text: Arc<Mutex<Vec<u8>>>,
    tell: watch::Sender<u64>,
}

impl OutputSink {
    fn push(&self, words: &[u8]) {
        let mut text = self.text.lock();
        text.extend_from_slice(words);
        let excess = text.len().saturating_sub(KEPT);
        text.drain(..excess);
        drop(text);
        self.tell.send_modify(|count| *count += 1);
    }
}

impl AsyncWrite for OutputSink {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, words: &[u8]) -> Poll<std::io::Result<usize>> {
        self.push(words);
        Poll::Ready(Ok(words.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
