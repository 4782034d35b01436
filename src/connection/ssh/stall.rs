//! A stream that fails when a write makes no progress for too long.
//!
//! While a write to a frozen host is stuck, no keep-alive is sent: this is how such a host is noticed all the same.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// See the file's comment. `limit`: None waits forever.
pub(super) struct StallDetector<S> {
    stream: S,
    limit: Option<Duration>,
    /// Runs while a write is stuck.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> StallDetector<S> {
    pub(super) fn new(stream: S, limit: Option<Duration>) -> Self {
        StallDetector { stream, limit, timer: None }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let (Poll::Pending, Some(limit)) = (&written, self.limit) else {
            self.timer = None;
            return written;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if timer.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallDetector<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallDetector<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.watch(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn a_write_without_progress_fails_in_time() {
        let (near, _far) = duplex(16);
        let begun = Instant::now();
        let error = StallDetector::new(near, Some(LIMIT)).write_all(&[0; 100]).await.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed() >= LIMIT), (io::ErrorKind::TimedOut, true));
    }

    #[tokio::test]
    async fn a_slow_write_that_continues_does_not() {
        let (near, mut far) = duplex(16);
        tokio::spawn(async move {
            let mut some = [0; 16];
            while far.read(&mut some).await.is_ok_and(|read| read > 0) {
                sleep(LIMIT / 3).await;
            }
        });
        let begun = Instant::now();
        StallDetector::new(near, Some(LIMIT)).write_all(&[0; 160]).await.unwrap();
        assert!(begun.elapsed() > LIMIT * 2);
    }
}
