//! A byte stream between a channel that must never wait and a reader that may: what the reader has not taken yet is
//! held in memory up to a bound, and beyond it in an unnamed temporary file.
//!
//! SSH multiplexes all channels over one socket, so a channel that waits for its reader would stop all others.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker, ready};

use crate::value::mutex::Mutex;
use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::task::coop::poll_proceed;

/// Bytes of one stream that are held in memory at most.
const MEMORY: usize = 1 << 20;
const CHUNK: usize = 128 << 10;
/// What a piece costs beside its bytes, so that many tiny ones are not taken for little.
const PIECE: usize = 128;

#[derive(Default)]
struct State {
    memory: VecDeque<Bytes>,
    held: usize,
    /// Comes after all that is in memory.
    overflow: Option<SpoolFile>,
    end: Option<End>,
    waiting: Option<Waker>,
    reader_gone: bool,
}

struct SpoolFile {
    file: File,
    read: u64,
    written: u64,
}

enum End {
    Clean,
    Broken(String),
}

/// A writing and a reading end.
pub(super) fn spool() -> (SpoolWriter, SpoolReader) {
    let state = Arc::new(Mutex::new(State::default()));
    (SpoolWriter(state.clone()), SpoolReader(state))
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock()
}

/// The writing end, which never waits. Dropping it without [`SpoolWriter::end_of_input`] is a broken stream.
pub(super) struct SpoolWriter(Arc<Mutex<State>>);

impl SpoolWriter {
    /// Adds bytes; without a reader they are discarded.
    pub(super) fn push(&self, bytes: Bytes) {
        let mut state = lock(&self.0);
        if state.reader_gone || state.end.is_some() || bytes.is_empty() {
            return;
        }
        if let Err(error) = state.add(bytes) {
            state.end = Some(End::Broken(format!("cannot store its output in a temporary file: {error}")));
        }
        state.wake();
    }

    /// End of file.
    pub(super) fn end_of_input(&self) {
        self.finish(End::Clean);
    }

    /// The stream ends in the middle: its reader gets an error after the bytes that arrived.
    pub(super) fn fail(&self, reason: &str) {
        self.finish(End::Broken(reason.to_owned()));
    }

    fn finish(&self, end: End) {
        let mut state = lock(&self.0);
        if state.end.is_none() {
            state.end = Some(end);
        }
        state.wake();
    }
}

impl Drop for SpoolWriter {
    fn drop(&mut self) {
        self.fail("the connection was closed");
    }
}

impl State {
    fn add(&mut self, bytes: Bytes) -> io::Result<()> {
        let spilled = self.overflow.as_ref().is_some_and(|overflow| overflow.read < overflow.written);
        if !spilled && self.held + bytes.len() + PIECE <= MEMORY {
            self.held += bytes.len() + PIECE;
            self.memory.push_back(bytes);
            return Ok(());
        }
        let overflow = match &mut self.overflow {
            Some(overflow) => overflow,
            None => self.overflow.insert(SpoolFile { file: tempfile::tempfile()?, read: 0, written: 0 }),
        };
        overflow.file.write_all_at(&bytes, overflow.written)?;
        overflow.written += bytes.len() as u64;
        Ok(())
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    /// Takes a chunk back into memory. Short reads of a file in the page cache, so not worth another thread.
    fn refill(&mut self) -> io::Result<()> {
        let Some(overflow) = self.overflow.as_mut().filter(|overflow| overflow.read < overflow.written) else {
            return Ok(());
        };
        let left = overflow.written - overflow.read;
        let mut chunk = vec![0; usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK))];
        overflow.file.read_exact_at(&mut chunk, overflow.read)?;
        overflow.read += chunk.len() as u64;
        if overflow.read == overflow.written {
            overflow.file.set_len(0)?;
            (overflow.read, overflow.written) = (0, 0);
        }
        self.held += chunk.len() + PIECE;
        self.memory.push_back(Bytes::from(chunk));
        Ok(())
    }
}

/// The reading end. Bytes that arrive after it is dropped are discarded.
pub(super) struct SpoolReader(Arc<Mutex<State>>);

impl AsyncRead for SpoolReader {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // While bytes arrive faster than they are read, this is always ready: without yielding now and then, no
        // timeout and no interrupt would take effect.
        let turn = ready!(poll_proceed(cx));
        let mut state = lock(&self.0);
        if state.memory.is_empty() {
            state.refill()?;
        }
        if let Some(front) = state.memory.front_mut() {
            let length = front.len().min(buffer.remaining());
            buffer.put_slice(&front[..length]);
            front.advance(length);
            let emptied = front.is_empty();
            state.held -= length;
            if emptied {
                state.memory.pop_front();
                state.held -= PIECE;
            }
            turn.made_progress();
            return Poll::Ready(Ok(()));
        }
        match &state.end {
            Some(End::Clean) => Poll::Ready(Ok(())),
            Some(End::Broken(reason)) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, reason.clone())))
            }
            None => {
                state.waiting = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for SpoolReader {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.reader_gone = true;
        state.memory.clear();
        state.overflow = None;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn what_does_not_fit_into_memory_comes_out_whole_and_in_order() {
        let (filler, mut tap) = spool();
        let expected: Vec<u8> = (0..=250).cycle().take(5 * MEMORY).collect();
        let (first, second) = expected.split_at(3 * MEMORY);
        first.chunks(32_768).for_each(|chunk| filler.push(Bytes::copy_from_slice(chunk)));
        assert!(lock(&filler.0).held <= MEMORY);

        let mut got = vec![0; 2 * MEMORY];
        tap.read_exact(&mut got).await.unwrap();
        second.chunks(7_001).for_each(|chunk| filler.push(Bytes::copy_from_slice(chunk)));
        filler.end_of_input();
        tap.read_to_end(&mut got).await.unwrap();
        assert!(got == expected);
    }

    #[tokio::test]
    async fn a_stream_that_breaks_is_no_end_of_file() {
        let (filler, mut tap) = spool();
        filler.push(Bytes::from_static(b"half"));
        drop(filler);
        let mut got = Vec::new();
        let error = tap.read_to_end(&mut got).await.unwrap_err();
        assert_eq!((got.as_slice(), error.kind()), (&b"half"[..], io::ErrorKind::ConnectionAborted));
    }

    #[tokio::test]
    async fn a_waiting_reader_is_woken() {
        let (filler, mut tap) = spool();
        let reading = tokio::spawn(async move { tap.read_u8().await });
        tokio::task::yield_now().await;
        filler.push(Bytes::from_static(b"x"));
        assert_eq!(reading.await.unwrap().unwrap(), b'x');
    }

    #[tokio::test]
    async fn a_reader_that_always_finds_more_can_be_stopped() {
        let (filler, mut tap) = spool();
        let endless = async {
            let mut bytes = [0; 16];
            loop {
                filler.push(Bytes::from_static(&[0; 16]));
                tap.read_exact(&mut bytes).await.unwrap();
            }
        };
        let stopped = tokio::time::timeout(std::time::Duration::from_millis(10), endless).await;
        assert!(stopped.is_err());
    }

    #[test]
    fn nothing_is_kept_for_a_reader_that_is_gone() {
        let (filler, tap) = spool();
        drop(tap);
        filler.push(Bytes::from(vec![0; 2 * MEMORY]));
        let state = lock(&filler.0);
        assert!(state.memory.is_empty() && state.overflow.is_none());
    }
}
