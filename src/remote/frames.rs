//! Reads a byte stream up to marks. What is before a mark is handed on as it comes, in constant memory.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::execute::MOST_OUTPUT;
use crate::connection::Reader;

/// The reading end of a session.
pub(super) struct Frames {
    reader: Reader,
    buffer: Vec<u8>,
    /// What is read and not yet handed on.
    held: std::ops::Range<usize>,
}

impl Frames {
    pub(super) fn new(reader: Reader) -> Self {
        Frames { reader, buffer: vec![0; 8 * 1024], held: 0..0 }
    }

    /// Passes on all data before the next `mark`, and skips the mark. Not cancel safe: data that it read is lost.
    ///
    /// # Errors
    /// `UnexpectedEof` if the stream ends before the mark; else what the reader or the sink says.
    pub(super) async fn until<W: AsyncWrite + Unpin>(&mut self, mark: &[u8], sink: &mut W) -> io::Result<()> {
        loop {
            let held = &self.buffer[self.held.clone()];
            if let Some(at) = find(held, mark) {
                sink.write_all(&held[..at]).await?;
                self.held.start += at + mark.len();
                return Ok(());
            }
            let sure = held.len() - beginning(held, mark);
            sink.write_all(&held[..sure]).await?;
            self.held.start += sure;
            self.fill().await?;
        }
    }

    /// Whether there is neither anything to read nor the end.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.held.is_empty() && self.reader.read(&mut self.buffer[..1]).now_or_never().is_none()
    }

    /// Reads something and forgets it. False: it was the end.
    pub(super) async fn skip(&mut self) -> bool {
        self.held = 0..0;
        self.fill().await.is_ok()
    }

    async fn fill(&mut self) -> io::Result<()> {
        const LARGEST: usize = 128 * 1024;
        self.buffer.copy_within(self.held.clone(), 0);
        self.held = 0..self.held.len();
        // What is held now is the beginning of a mark at most, so there is always room.
        match self.reader.read(&mut self.buffer[self.held.end..]).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                self.held.end += n;
                if self.held.end == self.buffer.len() && self.buffer.len() < LARGEST {
                    self.buffer.resize(self.buffer.len() * 2, 0);
                }
                Ok(())
            }
        }
    }
}

/// What of a stream is kept in memory, up to a bound: a host may answer without end.
pub(super) struct BoundedBuffer {
    pub(super) bytes: Vec<u8>,
    most: usize,
}

impl BoundedBuffer {
    pub(super) fn new() -> BoundedBuffer {
        BoundedBuffer { bytes: Vec::new(), most: MOST_OUTPUT }
    }

    /// For what is never more than some lines, unless the host means harm.
    pub(super) fn short() -> BoundedBuffer {
        BoundedBuffer { bytes: Vec::new(), most: 1 << 20 }
    }
}

impl AsyncWrite for BoundedBuffer {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.bytes.len() + bytes.len() > self.most {
            let reason = format!("it is more than {} MiB", self.most >> 20);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::FileTooLarge, reason)));
        }
        self.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Hands on what is written to it, up to a bound. If the inner writer fails, the rest is read and dropped, so that the session with the
/// host stays usable; the error is kept.
pub(super) struct LimitedWriter<W> {
    pub(super) inner: W,
    pub(super) left: u64,
    pub(super) failed: Option<io::Error>,
}

impl<W: AsyncWrite + Unpin> AsyncWrite for LimitedWriter<W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.len() as u64 > self.left {
            let reason = "the host sends more data than it announced";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::FileTooLarge, reason)));
        }
        let written = match self.failed {
            Some(_) => bytes.len(),
            None => match std::task::ready!(Pin::new(&mut self.inner).poll_write(context, bytes)) {
                Ok(written) => written,
                Err(error) => {
                    self.failed = Some(error);
                    bytes.len()
                }
            },
        };
        self.left -= written as u64;
        Poll::Ready(Ok(written))
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// How many bytes at the end of `text` are the beginning of `mark`.
fn beginning(text: &[u8], mark: &[u8]) -> usize {
    (1..mark.len().min(text.len() + 1)).rev().find(|&n| text.ends_with(&mark[..n])).unwrap_or(0)
}

fn find(text: &[u8], mark: &[u8]) -> Option<usize> {
    let first = *mark.first()?;
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|&byte| byte == first) {
        let at = from + at;
        if text[at..].starts_with(mark) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_error_of_the_inner_writer_is_kept_and_the_rest_is_dropped() {
        let (near, far) = tokio::io::duplex(8);
        drop(far);
        let mut writer = LimitedWriter { inner: near, left: 20, failed: None };
        writer.write_all(b"0123456789").await.unwrap();
        writer.write_all(b"0123456789").await.unwrap();
        assert!(writer.failed.is_some());
        assert!(writer.write_all(b"x").await.is_err(), "the bound still holds");
    }

    #[tokio::test]
    async fn marks_are_found_however_the_stream_is_cut() {
        for cut in 1..12 {
            let (mut near, far) = tokio::io::duplex(cut);
            let writer = tokio::spawn(async move {
                near.write_all(b"one\n\nEN\nEND\ntwo\0\n\nEND\n").await.unwrap();
            });
            let mut frames = Frames::new(Box::new(far));
            let (mut one, mut two) = (Vec::new(), Vec::new());
            frames.until(b"\nEND\n", &mut one).await.unwrap();
            frames.until(b"\nEND\n", &mut two).await.unwrap();
            assert_eq!((one.as_slice(), two.as_slice()), (&b"one\n\nEN"[..], &b"two\0\n"[..]));
            writer.await.unwrap();
            let end = frames.until(b"\nEND\n", &mut one).await.unwrap_err();
            assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[tokio::test]
    async fn of_an_endless_answer_no_more_is_kept_than_the_bound() {
        let mut frames = Frames::new(Box::new(tokio::io::repeat(0)));
        let mut kept = BoundedBuffer { bytes: Vec::new(), most: 1 << 20 };
        let error = frames.until(b"\nEND\n", &mut kept).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::FileTooLarge, "it is more than 1 MiB"));
        assert!(kept.bytes.len() <= 1 << 20);
    }

    #[tokio::test]
    async fn large_content_passes_in_little_memory() {
        let (mut near, far) = tokio::io::duplex(64 * 1024);
        let content: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
        let sent = content.clone();
        tokio::spawn(async move {
            near.write_all(&sent).await.unwrap();
            near.write_all(b"\nEND\n").await.unwrap();
        });
        let mut frames = Frames::new(Box::new(far));
        let mut got = Vec::new();
        frames.until(b"\nEND\n", &mut got).await.unwrap();
        assert!(got == content);
        assert!(frames.buffer.len() <= 128 * 1024);
    }
}
