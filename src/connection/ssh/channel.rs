//! Channels of a connection: programs and tunnels. Every channel has a task that takes in whatever comes, so that none
//! can hold up the others.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Sig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

use super::spool::{SpoolReader, SpoolWriter, spool};
use crate::connection::{Error, Exit, Process, Stream};

/// How long a program may take to exit after its channel was dropped.
const GRACE: Duration = Duration::from_secs(2);
const CALL_AGAIN: Duration = Duration::from_millis(250);

/// What a channel must know of its connection.
#[derive(Clone)]
pub(super) struct Line {
    /// The host's name, for messages.
    pub name: String,
    /// Why the connection was lost, once it was.
    pub lost: watch::Receiver<Option<String>>,
    /// True when the connection is to be closed.
    pub closing: watch::Receiver<bool>,
}

impl Line {
    pub(super) fn error(&self) -> Error {
        let reason = self.lost.borrow().clone().unwrap_or_else(|| "it was closed".to_owned());
        Error::Lost { name: self.name.clone(), reason }
    }

    /// When a channel ends, the connection's end may not have been noted yet, though it is the cause.
    async fn settled_error(mut self) -> Error {
        #[expect(clippy::let_underscore_must_use, reason = "without a reason in time, the error is a general one")]
        let _ = tokio::time::timeout(Duration::from_millis(200), self.lost.wait_for(Option::is_some)).await;
        if self.lost.borrow().is_some() {
            return self.error();
        }
        Error::Lost { name: self.name, reason: "a program ended without an exit status".to_owned() }
    }
}

/// Hands out a started program; `permit` is kept until its channel is closed.
pub(super) fn process(channel: Channel<Msg>, line: Line, permit: OwnedSemaphorePermit) -> Process {
    let (stdout, stdout_tap) = spool();
    let (stderr, stderr_tap) = spool();
    let (exit, exited) = oneshot::channel();
    let PreparedChannel { read, input, hold, released, mut driver } = prepare(channel, stdout, &line);
    driver.stderr = Some(stderr);
    driver.exit = Some(exit);
    driver.permit = Some(permit);
    tokio::spawn(driver.run(read, released));
    let exit_hold = hold.clone();
    Process {
        stdin: Box::new(input),
        stdout: Box::new(Output { tap: stdout_tap, _hold: hold.clone() }),
        stderr: Box::new(Output { tap: stderr_tap, _hold: hold }),
        exit: Box::pin(async move {
            let _hold = exit_hold;
            match exited.await {
                Ok(exit) => Ok(exit),
                Err(_) => Err(line.settled_error().await),
            }
        }),
    }
}

/// Hands out both directions of a forwarded TCP connection.
pub(super) fn tunnel(channel: Channel<Msg>, line: Line) -> Box<dyn Stream> {
    let (filler, tap) = spool();
    let PreparedChannel { read, input, hold, released, driver } = prepare(channel, filler, &line);
    tokio::spawn(driver.run(read, released));
    Box::new(Duplex { input, output: Output { tap, _hold: hold } })
}

/// While a clone of it exists, the channel may still be needed.
type ChannelRef = Arc<oneshot::Sender<()>>;

struct PreparedChannel {
    read: ChannelReadHalf,
    input: Input,
    hold: ChannelRef,
    released: oneshot::Receiver<()>,
    driver: ChannelReader,
}

fn prepare(channel: Channel<Msg>, stdout: SpoolWriter, line: &Line) -> PreparedChannel {
    let (read, write) = channel.split();
    let write = Arc::new(write);
    let (hold, released) = oneshot::channel();
    let hold = Arc::new(hold);
    let (ended, watch_end) = watch::channel(false);
    let input = Input::new(write.clone(), watch_end, hold.clone());
    let closing = line.closing.clone();
    let driver = ChannelReader { write, stdout, stderr: None, exit: None, permit: None, ended, closing };
    PreparedChannel { read, input, hold, released, driver }
}

/// Takes in all messages of a channel and closes it in the end.
struct ChannelReader {
    write: Arc<ChannelWriteHalf<Msg>>,
    stdout: SpoolWriter,
    stderr: Option<SpoolWriter>,
    exit: Option<oneshot::Sender<Exit>>,
    permit: Option<OwnedSemaphorePermit>,
    ended: watch::Sender<bool>,
    closing: watch::Receiver<bool>,
}

impl ChannelReader {
    /// `released` resolves when both ends of the channel are dropped.
    async fn run(mut self, mut read: ChannelReadHalf, released: oneshot::Receiver<()>) {
        let mut closing = self.closing.clone();
        let stop = tokio::select! {
            () = self.take_in(&mut read) => false,
            _ = released => true,
            _ = closing.wait_for(|closing| *closing) => true,
        };
        if stop {
            tokio::spawn(hang_up(self.write.clone(), self.exit.is_some(), self.ended.subscribe()));
            if tokio::time::timeout(GRACE, self.take_in(&mut read)).await.is_err() {
                let write = self.write.clone();
                tokio::spawn(async move { write.close().await });
            }
        }
        #[expect(clippy::let_underscore_must_use, reason = "the receiver may be dropped")]
        let _ = self.ended.send(true);
        drop(self.permit.take());
    }

    /// Until the channel is closed, from there or by the end of the connection.
    async fn take_in(&mut self, read: &mut ChannelReadHalf) {
        while let Some(message) = read.wait().await {
            match message {
                ChannelMsg::Data { data } => self.stdout.push(data),
                ChannelMsg::ExtendedData { data, ext: 1 } => {
                    if let Some(stderr) = &self.stderr {
                        stderr.push(data);
                    }
                }
                ChannelMsg::ExitStatus { exit_status } => self.exited(Exit::Code(exit_status.cast_signed())),
                ChannelMsg::ExitSignal { signal_name, .. } => self.exited(Exit::Signal(name_of(&signal_name))),
                ChannelMsg::Eof => self.end_streams(),
                ChannelMsg::Close => {
                    self.end_streams();
                    return;
                }
                _ => {}
            }
        }
    }

    fn exited(&mut self, how: Exit) {
        if let Some(exit) = self.exit.take() {
            #[expect(clippy::let_underscore_must_use, reason = "the receiver may be dropped")]
            let _ = exit.send(how);
        }
    }

    fn end_streams(&self) {
        self.stdout.end_of_input();
        if let Some(stderr) = &self.stderr {
            stderr.end_of_input();
        }
    }
}

/// Sends a program end of file and, if it still runs, a hang-up, as when a terminal is
/// closed. Not within the driver: the connection may wait for that one to take in what came.
async fn hang_up(write: Arc<ChannelWriteHalf<Msg>>, running: bool, mut ended: watch::Receiver<bool>) {
    #[expect(clippy::let_underscore_must_use, reason = "a closed channel has no input to end")]
    let _ = write.eof().await;
    // A program that is only just being started may not be there to get the first.
    let calls = if running { GRACE.as_millis() / CALL_AGAIN.as_millis() } else { 0 };
    for _ in 0..calls {
        if write.signal(Sig::HUP).await.is_err() {
            return;
        }
        if tokio::time::timeout(CALL_AGAIN, ended.wait_for(|ended| *ended)).await.is_ok() {
            return;
        }
    }
}

/// `TERM`, as `kill -l` names it.
fn name_of(signal: &Sig) -> String {
    match signal {
        Sig::Custom(name) => name.split('@').next().unwrap_or(name).to_owned(),
        known => format!("{known:?}"),
    }
}

/// The far program's standard input, or one direction of a tunnel.
struct Input {
    to: Pin<Box<dyn AsyncWrite + Send>>,
    write: Arc<ChannelWriteHalf<Msg>>,
    /// Resolves when the channel is closed: without it a writer could wait forever for the window to open.
    closed: BoxFuture<'static, ()>,
    shut: bool,
    _hold: ChannelRef,
}

impl Input {
    fn new(write: Arc<ChannelWriteHalf<Msg>>, mut ended: watch::Receiver<bool>, hold: ChannelRef) -> Self {
        let closed = Box::pin(async move {
            #[expect(clippy::let_underscore_must_use, reason = "the driver also ends on an error")]
            let _ = ended.wait_for(|ended| *ended).await;
        });
        Input { to: Box::pin(write.make_writer()), write, closed, shut: false, _hold: hold }
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.shut {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "it was shut down"));
        }
        if self.closed.as_mut().poll(cx).is_ready() {
            self.shut = true;
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the reader was dropped"));
        }
        Ok(())
    }
}

impl AsyncWrite for Input {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_closed(cx)?;
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.to.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.to.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.shut || self.closed.as_mut().poll(cx).is_ready() {
            self.shut = true;
            return Poll::Ready(Ok(()));
        }
        let done = ready!(self.to.as_mut().poll_shutdown(cx));
        self.shut = true;
        Poll::Ready(done)
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if self.shut {
            return;
        }
        let write = self.write.clone();
        // Outside a runtime there is no connection left to tell.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { write.eof().await });
        }
    }
}

struct Output {
    tap: SpoolReader,
    _hold: ChannelRef,
}

impl AsyncRead for Output {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tap).poll_read(cx, buffer)
    }
}

struct Duplex {
    input: Input,
    output: Output,
}

impl AsyncRead for Duplex {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Duplex {
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
