//! One long-lived `sh` on the host, as one user: requests are shell text on its stdin, answers are framed on its stdout.
//!
//! A frame's marks hold a random number that only the two ends know, so no output can be taken for one. It goes to the shell on
//! its stdin: the arguments of a process can be read by every user of the host. One request is under way at a time. A session
//! whose request failed or was cancelled is out of step: it is dropped, which ends over there what it ran, and never used
//! again.
//!
//! The futures that all modules wait for are boxed, so that the compiler does not look into them again for each module.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, watch};

use super::execute::{MOST_OUTPUT, NO_ROOM, TOO_MUCH};
use super::frames::{BoundedBuffer, Frames};
use super::startup_output::StartupOutput;
use super::{Become, Error, Output, becoming, quote, stat};
use crate::connection::{self, Connection, Exit, Process, Writer};

/// What a session's shell knows before its first request.
const PRELUDE: [&str; 3] = [include_str!("prelude.sh"), super::FLUSH, include_str!("guard.sh")];
const WATCH: &str = include_str!("watch.sh");
/// How long a host may take to start a shell.
const START: Duration = Duration::from_secs(60);
/// How long a program may take to exit after SIGTERM: the watcher kills it after 2 s.
const END: Duration = Duration::from_secs(6);
/// How often a session gets a heartbeat; its guard ends it after 45 s without one.
pub(super) const BEAT: Duration = Duration::from_secs(10);
/// The code of an answer that is the session's last.
const OVER: i32 = 998;

/// Who a session is on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) user: String,
    pub(super) home: String,
    pub(super) selinux: bool,
}

/// An open session.
pub(super) struct Session {
    stdin: Option<Writer>,
    frames: Frames,
    exit: Option<BoxFuture<'static, Result<Exit, connection::Error>>>,
    words: StartupOutput,
    closing: watch::Receiver<bool>,
    /// A permit is held while content is passed.
    uploads: Option<Arc<Semaphore>>,
    nonce: String,
    sequence: u64,
    /// A request is under way; if it is never finished the session is out of step.
    busy: bool,
    /// The host is about to take what comes for content.
    passes: bool,
    pub(super) litter: (u32, usize),
    pub(super) host: String,
    connection: Arc<dyn Connection>,
    /// Its own, on the host.
    pub(super) directory: String,
    pub(super) account: Arc<Account>,
    /// It can show its run's hold; see `lease.rs`.
    pub(super) bears: bool,
    /// What it is asked now changes something.
    pub(super) guards: bool,
    /// Directories that the tasks still use are removed at its end: it is not closed to free space.
    pub(super) keeps_directories: bool,
}

impl Session {
    /// Opens a session as the login user, or as another.
    pub(super) async fn open(
        connection: &Arc<dyn Connection>,
        user: Option<&Become>,
        closing: watch::Receiver<bool>,
        uploads: Option<Arc<Semaphore>>,
    ) -> Result<Session, Error> {
        // A host with an untrusted key may be an attacker's: it does not get the password for sudo either.
        let without_password =
            user.filter(|_| connection.distrust().is_some()).map(|user| Become { password: None, ..user.clone() });
        let user = without_password.as_ref().or(user);
        // Every user of the host can read this one, in the arguments of sudo or su.
        let public = random();
        let process = connection.start(&line(user, &public)?).await?;
        let Process { stdin, stdout, stderr, exit } = process;
        let mut session = Session {
            stdin: Some(stdin),
            frames: Frames::new(stdout),
            exit: Some(exit),
            words: StartupOutput::new(stderr),
            closing,
            uploads,
            nonce: random(),
            sequence: 0,
            busy: true,
            passes: false,
            litter: (0, 0),
            host: connection.description(),
            connection: connection.clone(),
            directory: String::new(),
            account: Arc::new(Account { user: String::new(), home: String::new(), selinux: false }),
            bears: false,
            guards: false,
            keeps_directories: false,
        };
        if let Some(user) = user {
            session.become_user(user, &public).await?;
        }
        match tokio::time::timeout(START, session.greet()).await {
            Ok(greeted) => greeted?,
            Err(_) => {
                let what = format!("starting a shell on {}", session.host);
                return Err(Error::TimedOut { what, limit: START });
            }
        }
        if let Some(user) = user.filter(|user| user.user != session.account.user) {
            let reason = format!("the session is {}'s", session.account.user);
            // `root` under another name, or a number: then it counts as the requested user.
            if !session.is_account(&user.user).await? {
                return Err(Error::Become { user: user.user.clone(), reason, hint: None });
            }
        }
        Ok(session)
    }

    /// Whether no request is under way.
    pub(super) fn in_step(&self) -> bool {
        !self.busy
    }

    /// Whether it may be used for a further request: in step, and still there as far as is known at once.
    pub(super) fn usable(&mut self) -> bool {
        // In step there is nothing to read; the end of the stream can be.
        !self.busy && self.frames.is_quiet()
    }

    /// Sends a heartbeat to the host, if that does not block. For an idle session.
    pub(super) fn is_alive(&mut self) {
        if let Some(stdin) = self.stdin.as_mut() {
            let _ = futures::FutureExt::now_or_never(beat(stdin));
        }
    }

    /// Runs shell text in the session itself; its stdout and stderr come back.
    pub(super) fn ask<'a>(&'a mut self, body: &'a str) -> BoxFuture<'a, Result<Output, Error>> {
        Box::pin(async move {
            let mut stdout = BoundedBuffer::new();
            let (code, stderr) = self.ask_into(body, &mut stdout).await?;
            Ok(Output { code, stdout: stdout.bytes, stderr })
        })
    }

    /// As [`Session::ask`], with stdout going to `sink` as it comes. Gives code and stderr.
    pub(super) async fn ask_into<W: AsyncWrite + Unpin + Send>(
        &mut self,
        body: &str,
        sink: &mut W,
    ) -> Result<(i32, Vec<u8>), Error> {
        let body = self.guarded(body);
        self.begin_request(&format!("{{ {body}\n}} </dev/null 2>\"$wl_d/e\"; wl_r $?\n")).await?;
        self.answer(sink).await
    }

    /// Passes content to the file `word`, between the shell texts `before` and `after`. Where it fails on the way the
    /// session is over: what is left of the bytes must never be taken for requests.
    pub(super) fn pass<'a>(
        &'a mut self,
        before: &'a str,
        (into, name): (&'a str, &'a str),
        content: InputStream<'a>,
        after: &'a str,
    ) -> BoxFuture<'a, Result<Output, Error>> {
        Box::pin(async move {
            let size = content.size;
            let _turn = match &self.uploads {
                Some(uploads) => tokio::select! {
                    biased;
                    turn = uploads.clone().acquire_owned() => turn.ok(),
                    never = keep_alive(self.stdin.as_mut()) => match never {},
                },
                None => None,
            };
            let (before, after) = (self.guarded(before), self.guarded_end(after));
            // The shell may read ahead. When it says that it is ready there is nothing that it could have read.
            let text = format!(
                ": >\"$wl_d/w\"\nif {{ {before}\n}} </dev/null 2>\"$wl_d/e\"; then rm -f \"$wl_d/w\"\n\
             printf '\\n%s.%s>\\n' \"$wl_n\" \"$wl_q\"\n\
             head -c {size} {into} 2>\"$wl_d/e\" || {{ wl_why {name} 2>>\"$wl_d/e\"; wl_r {OVER}; exit; }}\n\
             {{ {after}\n}} </dev/null 2>\"$wl_d/e\"; wl_r $?; else rm -f \"$wl_d/w\"; wl_r 1; fi\n"
            );
            self.begin_request(&text).await?;
            let (either, mut kind) = (self.mark("", ""), BoundedBuffer::short());
            // Whatever is sent now would be taken for content.
            self.passes = true;
            self.until(&either, &mut tokio::io::sink()).await?;
            self.until("\n", &mut kind).await?;
            self.passes = false;
            if kind.bytes != b">" {
                return Ok(Output { code: 1, stderr: self.end_of_answer().await?.1, stdout: Vec::new() });
            }
            let stdin = self.stdin.as_mut().expect("it is taken only at the end");
            let passed = content.send(stdin).await;
            let mut stdout = BoundedBuffer::short();
            match passed {
                Ok(()) => {
                    let (code, stderr) = self.answer(&mut stdout).await?;
                    self.busy = code == OVER;
                    Ok(Output { code, stdout: stdout.bytes, stderr })
                }
                // A full disk ends the host's reading; its answer then reports it.
                Err(error) => {
                    self.stdin = None;
                    let answer = tokio::time::timeout(END, self.answer(&mut stdout)).await;
                    self.busy = true;
                    match answer {
                        Ok(Ok((code, stderr))) if code != 0 => Ok(Output { code, stdout: stdout.bytes, stderr }),
                        _ => Err(self.lost(Some(error)).await),
                    }
                }
            }
        })
    }

    /// Ends the session and what it runs; waits for that a while.
    pub(super) async fn close_session(&mut self) {
        if let Some(stdin) = self.stdin.as_mut().filter(|_| !self.busy) {
            // An idle shell takes its guard with it; at the mere end of its input the watcher has to look for that.
            #[expect(clippy::let_underscore_must_use, reason = "a closed session has already ended")]
            let _ = tokio::time::timeout(Duration::from_secs(1), stdin.write_all(b"exit\n")).await;
            #[expect(clippy::let_underscore_must_use, reason = "a closed session has already ended")]
            let _ = tokio::time::timeout(Duration::from_secs(1), stdin.flush()).await;
        }
        self.busy = true;
        self.stdin = None;
        let frames = &mut self.frames;
        #[expect(clippy::let_underscore_must_use, reason = "a session that does not end in time is dropped")]
        let _ = tokio::time::timeout(END, async move { while frames.skip().await {} }).await;
        if let Some(exit) = self.exit.take() {
            #[expect(clippy::let_underscore_must_use, reason = "a session that does not end in time is dropped")]
            let _ = tokio::time::timeout(END, exit).await;
        }
    }

    async fn become_user(&mut self, user: &Become, nonce: &str) -> Result<(), Error> {
        let Some(stdin) = self.stdin.as_mut() else { unreachable!("it is taken only at the end") };
        let ready = becoming::ready(nonce);
        // Some su ask on stdout.
        let mut heard = self.words.hears();
        let arrived = self.frames.until(ready.as_bytes(), &mut heard);
        let outcome = becoming::answer_prompt(user, nonce, arrived, stdin, &self.words).await;
        match outcome {
            Ok(()) => Ok(()),
            Err(silence) => {
                self.stdin = None;
                if silence == becoming::BecomeFailure::Ended {
                    // Its last words may still be on their way.
                    if let Some(exit) = self.exit.take() {
                        #[expect(
                            clippy::let_underscore_must_use,
                            reason = "the reason of the failure is known without the exit code"
                        )]
                        let _ = tokio::time::timeout(Duration::from_secs(2), exit).await;
                    }
                    self.words.ended().await;
                }
                let mut error = becoming::explain(user, nonce, silence, &self.words.collected_text());
                if let (Some(why), Error::Become { hint, .. }) = (self.connection.distrust(), &mut error) {
                    *hint = Some(format!("windlass sends no password to this host, because {why}"));
                }
                Err(error)
            }
        }
    }

    /// Sends the prelude and learns who we are.
    async fn greet(&mut self) -> Result<(), Error> {
        self.write_script(&prelude(&self.nonce)).await?;
        // The first mark also ends whatever the login's start files print.
        self.begin_request(
            "printf '\\n%s\\n' \"$wl_n\"\n\
             [ \"$wl_d\" ] || { wl_d=/dev/null; wl_r 1; exit; }\n\
             wl_i=$(id -un 2>/dev/null || id -u); true >\"$wl_d/e\"\n\
             wl_v=\n[ ! -e /sys/fs/selinux/enforce ] || wl_v=1\n\
             printf '%s\\000' \"$wl_i\" \"${HOME-}\" \"$wl_v\" \"$wl_d\"; wl_r 0\n",
        )
        .await?;
        let first = format!("\n{}\n", self.nonce);
        self.until(&first, &mut tokio::io::sink()).await?;
        let mut stdout = BoundedBuffer::short();
        let (code, _) = self.answer(&mut stdout).await?;
        let stdout = stdout.bytes;
        if code != 0 {
            let reason =
                "none of /run, $XDG_RUNTIME_DIR, /dev/shm, $TMPDIR, /tmp, /var/tmp and the home directory is usable";
            self.busy = true;
            let what = format!("create a directory for a session on {}", self.host);
            return Err(Error::Refused { what, reason: reason.into() });
        }
        let mut fields = stdout.split(|&byte| byte == 0).map(|field| String::from_utf8_lossy(field).into_owned());
        self.account = Arc::new(Account {
            user: fields.next().unwrap_or_default(),
            home: fields.next().filter(|home| !home.is_empty()).unwrap_or_else(|| "/".to_owned()),
            selinux: fields.next().is_some_and(|is| is == "1"),
        });
        self.directory = fields.next().unwrap_or_default();
        Ok(())
    }

    /// A name in the session's directory that is tidied up after a while.
    /// How many requests it was given.
    #[cfg(test)]
    pub(super) fn requests(&self) -> u64 {
        self.sequence
    }

    pub(super) fn next_file(&self) -> String {
        format!("{}/i.{}", self.directory, self.sequence)
    }

    pub(super) fn by_ssh(&self) -> bool {
        self.connection.is_ssh()
    }

    async fn is_account(&mut self, user: &str) -> Result<bool, Error> {
        let user = quote::checked(user, "user")?;
        // sudo takes a number as `#1000`, su as `1000`.
        let number = quote::quote_word(user.strip_prefix('#').unwrap_or(user));
        let body =
            format!("[ {number} = \"$(id -u)\" ] || [ \"$(id -u {})\" = \"$(id -u)\" ]", quote::quote_word(user));
        Ok(self.ask(&body).await?.code == 0)
    }

    /// Sends a request. `$wl_q` in it is its number.
    pub(super) async fn begin_request(&mut self, text: &str) -> Result<(), Error> {
        self.busy = true;
        self.sequence += 1;
        self.write_script(&format!("wl_q={}\n{text}", self.sequence)).await
    }

    pub(super) async fn write_script(&mut self, text: &str) -> Result<(), Error> {
        let Some(stdin) = self.stdin.as_mut() else { unreachable!("it is taken only at the end") };
        let written = match stdin.write_all(text.as_bytes()).await {
            Ok(()) => stdin.flush().await,
            Err(error) => Err(error),
        };
        match written {
            Ok(()) => Ok(()),
            Err(error) => {
                self.busy = true;
                Err(self.lost(Some(error)).await)
            }
        }
    }

    /// Reads the answer to the request under way: stdout to `sink`; code and stderr.
    pub(super) fn answer<'a, W: AsyncWrite + Unpin + Send>(
        &'a mut self,
        sink: &'a mut W,
    ) -> BoxFuture<'a, Result<(i32, Vec<u8>), Error>> {
        Box::pin(async move {
            let divide = self.mark("|", "\n");
            self.until(&divide, sink).await?;
            self.end_of_answer().await
        })
    }

    async fn end_of_answer(&mut self) -> Result<(i32, Vec<u8>), Error> {
        let end = self.mark("=", "");
        let mut stderr = BoundedBuffer::new();
        self.until(&end, &mut stderr).await?;
        let stderr = stderr.bytes;
        let mut code = BoundedBuffer::short();
        self.until("\n", &mut code).await?;
        if self.connection.is_closed() {
            // The last thing that came over it may be how the program was ended for that very reason.
            return Err(self.lost(None).await);
        }
        let code = String::from_utf8_lossy(&code.bytes).parse().unwrap_or(-1);
        self.busy = false;
        Ok((code, stderr))
    }

    fn mark(&self, kind: &str, end: &str) -> String {
        format!("\n{}.{}{kind}{end}", self.nonce, self.sequence)
    }

    async fn until<W: AsyncWrite + Unpin>(&mut self, mark: &str, sink: &mut W) -> Result<(), Error> {
        let stdin = if self.passes { None } else { self.stdin.as_mut() };
        let read = tokio::select! {
            biased;
            read = self.frames.until(mark.as_bytes(), sink) => read,
            never = keep_alive(stdin) => match never {},
            _ = self.closing.wait_for(|closing| *closing) => Err(std::io::Error::other("the run stopped it")),
        };
        match read {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(self.lost(None).await),
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                Err(Error::Refused { what: "record its output".into(), reason: error.to_string() })
            }
            Err(error) => Err(self.lost(Some(error)).await),
        }
    }

    /// Why the session ended, as far as can be known.
    async fn lost(&mut self, error: Option<std::io::Error>) -> Error {
        let exit = match self.exit.take() {
            Some(exit) if error.is_none() => tokio::time::timeout(Duration::from_secs(2), exit).await.ok(),
            _ => None,
        };
        self.words.ended().await;
        let words = self.words.collected_text();
        let words = words.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned();
        let mut reason = match (exit, error) {
            (Some(Err(error)), _) => return Error::Connection(error),
            (Some(Ok(Exit::Code(code))), _) => format!("the shell exited with code {code}"),
            (Some(Ok(Exit::Signal(signal))), _) => format!("the shell was killed by signal {signal}"),
            (None, Some(error)) => error.to_string(),
            (None, None) => "the shell exited".to_owned(),
        };
        if !words.is_empty() {
            reason = format!("{reason}: {words}");
        }
        Error::Connection(connection::Error::Lost { name: self.host.clone(), reason })
    }
}

/// The text of [`PRELUDE`] for a new session.
pub(super) fn prelude(nonce: &str) -> String {
    let lines = PRELUDE.iter().flat_map(|part| part.lines()).filter(|line| !line.starts_with('#'));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    text.replace("@NONCE@", nonce)
        .replace("@NAME@", &random())
        .replace("@FORMAT@", stat::FORMAT)
        .replace("@MOST@", &MOST_OUTPUT.to_string())
        .replace("@NO_ROOM@", &NO_ROOM.to_string())
        .replace("@TOO_MUCH@", &TOO_MUCH.to_string())
}

/// An empty line: the shell skips it, and the guard sees that the connection is alive.
async fn beat(stdin: &mut Writer) -> std::io::Result<()> {
    stdin.write_all(b"\n").await?;
    stdin.flush().await
}

/// Sends heartbeats while nothing else is written. Errors show up when reading.
async fn keep_alive(mut stdin: Option<&mut Writer>) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(BEAT).await;
        if let Some(stdin) = &mut stdin {
            beat(stdin).await.ok();
        }
    }
}

impl Drop for Session {
    /// An idle shell that gets an exit command also removes its guard and its directory.
    fn drop(&mut self) {
        if let Some(stdin) = self.stdin.as_mut().filter(|_| !self.busy) {
            let _ = futures::FutureExt::now_or_never(stdin.write_all(b"exit\n"));
        }
    }
}

/// Bytes on their way to the host.
pub(super) struct InputStream<'a> {
    pub(super) reader: &'a mut (dyn AsyncRead + Send + Unpin),
    pub(super) size: u64,
    /// Sees all of them.
    pub(super) each: &'a mut (dyn FnMut(&[u8]) + Send),
}

impl InputStream<'_> {
    /// Copies exactly `size` bytes. A file that shrank meanwhile is an error: the host waits for the rest.
    async fn send(self, stdin: &mut Writer) -> std::io::Result<()> {
        const CHUNK: u64 = 256 * 1024;
        let mut buffer = vec![0; usize::try_from(self.size.min(CHUNK)).unwrap_or_default()];
        let mut left = self.size;
        while left > 0 {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let n = self.reader.read(&mut buffer[..most]).await?;
            if n == 0 {
                return Err(std::io::Error::other("the file became shorter during the upload"));
            }
            (self.each)(&buffer[..n]);
            stdin.write_all(&buffer[..n]).await?;
            left -= n as u64;
        }
        stdin.flush().await
    }
}

/// The line for the login shell, whichever it is.
fn line(user: Option<&Become>, nonce: &str) -> Result<String, Error> {
    let lines: Vec<&str> = WATCH.lines().filter(|line| !line.starts_with('#')).collect();
    let watch = lines.join(" ");
    match user {
        None => Ok(format!("exec sh -c '{watch}'")),
        Some(user) => becoming::become_command(user, nonce, &watch),
    }
}

/// 128 random bits, as hex.
pub(super) fn random() -> String {
    format!("{:032x}", rand::random::<u128>())
}
