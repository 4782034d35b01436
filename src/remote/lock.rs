//! The lock of a deployment on one host: what it says, how it is taken, given back, and taken over. How many hosts have to
//! agree is not known here.

use std::time::Duration;

use super::probe::subshell;
use super::{Error, Output, Probe, Remote, quote, refused};

const SCRIPT: &str = include_str!("lock.sh");

/// The lock holder: the content of the lock file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// Higher than the token of the former lock holder.
    pub token: u64,
    /// The run, letters and digits only. None: the lock is free.
    pub run: Option<String>,
    /// `alice@workstation`.
    pub holder: String,
    pub pid: u32,
    /// The workstation's boot id and the process's start time there, which tell whether that process is there still.
    pub process: String,
    /// What was called.
    pub command: String,
    /// Seconds since 1970, by the holder's clock.
    pub since: u64,
}

impl Record {
    pub(super) fn run_id(&self) -> &str {
        self.run.as_deref().unwrap_or("-")
    }

    /// The text of the file.
    fn text(&self) -> String {
        let line = |text: &str| text.replace(|c: char| c.is_control(), " ");
        format!(
            "{} {}\nholder {}\npid {}\nprocess {}\nsince {}\ncommand {}\n",
            self.token,
            self.run_id(),
            line(&self.holder),
            self.pid,
            line(&self.process),
            self.since,
            line(&self.command)
        )
    }

    fn parse(text: &str) -> Option<Record> {
        let mut lines = text.lines();
        let (token, run) = lines.next()?.split_once(' ')?;
        let run = (run != "-").then(|| run.to_owned());
        let mut record = Record { token: token.parse().ok()?, run, ..Record::default() };
        for (name, value) in lines.filter_map(|line| line.split_once(' ')) {
            match name {
                "holder" => record.holder = value.to_owned(),
                "pid" => record.pid = value.parse().ok()?,
                "process" => record.process = value.to_owned(),
                "since" => record.since = value.parse().ok()?,
                "command" => record.command = value.to_owned(),
                _ => {}
            }
        }
        Some(record)
    }

    /// The lock when it has been given back: the token stays.
    fn freed(&self) -> Record {
        Record { run: None, ..self.clone() }
    }
}

/// A lock as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockState {
    pub record: Record,
    /// The time since its holder's last heartbeat, by the host's clock.
    pub silent: Duration,
    /// How many shells its holder has on the host. None: windlass 0.1.0 took the lock, whose list of them proves nothing.
    pub sessions: Option<usize>,
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockAttempt {
    /// This run has it. `silent`: the time since the former lock holder's last heartbeat; long when there was none.
    Taken { silent: Duration },
    /// Somebody holds it.
    Held(Record),
    /// The host has seen this token already.
    Low(u64),
}

impl LockAttempt {
    /// Of a host that has to follow what most have agreed to.
    pub(super) fn taken(self, directory: &str) -> Result<(), Error> {
        let reason = match self {
            LockAttempt::Taken { .. } => return Ok(()),
            LockAttempt::Held(record) => format!("{} took it over", record.holder),
            LockAttempt::Low(token) => format!("another run took it over, with token {token}"),
        };
        Err(Error::Refused { what: format!("hold the lock {directory}"), reason })
    }
}

/// The script with the request, in a separate shell.
fn asks(directory: &str, what: &str) -> Result<String, Error> {
    let lines = SCRIPT.lines().filter(|line| !line.starts_with('#'));
    let script: String = lines.flat_map(|line| [line, "\n"]).collect();
    Ok(subshell(&format!("{}{what}", script.replace("@DIRECTORY@", &quote::quote_path(directory)?))))
}

fn claim(directory: &str, record: &Record, over: &str) -> Result<String, Error> {
    let (text, over) = (quote::printf_script(record.text().as_bytes()), quote::quote_word(over));
    asks(directory, &format!("{{ {text}; }} | claim {} {} {over}", record.token, record.run_id()))
}

/// Shell text that takes the lock of a host that does not have it yet.
pub(super) fn raise(directory: &str, record: &Record) -> Result<String, Error> {
    claim(directory, record, "any")
}

/// Shell text that makes a shell known beside the lock, after all other runs' shells there have been ended. `shell`: its
/// process and when it began; `user`: whose it is.
pub(super) fn enrol(
    directory: &str,
    record: &Record,
    (process, began): (u32, u64),
    user: &str,
    by_ssh: bool,
) -> Result<String, Error> {
    let (token, run, user) = (record.token, record.run_id(), quote::quote_word(quote::checked(user, "user")?));
    let ssh = if by_ssh { "1" } else { "''" };
    asks(directory, &format!("enrol {token} {run} {process} {began} {user} {ssh}"))
}

/// Reads what a claim answered.
pub(super) fn claimed(directory: &str, answer: &Output) -> Result<LockAttempt, Error> {
    let what = || format!("acquire the lock {directory}");
    let odd = || Error::Refused { what: what(), reason: "its files are damaged".into() };
    if answer.code != 0 {
        return Err(refused(what(), &answer.stderr));
    }
    let text = String::from_utf8_lossy(&answer.stdout);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    match first.split_once(' ').unwrap_or((first, "")) {
        ("taken", seconds) => {
            let silent = seconds.parse().map(Duration::from_secs);
            silent.map(|silent| LockAttempt::Taken { silent }).map_err(|_| odd())
        }
        ("held", _) => Record::parse(rest).map(LockAttempt::Held).ok_or_else(odd),
        ("low", token) => token.parse().map(LockAttempt::Low).map_err(|_| odd()),
        _ => Err(odd()),
    }
}

impl Probe {
    /// The lock of a directory. None: it was never held.
    pub async fn lock(&self, directory: &str) -> Result<Option<LockState>, Error> {
        let answer = self.session().await?.ask(&asks(directory, "look")?).await?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        if first == "none" {
            return Ok(None);
        }
        let read = || -> Option<LockState> {
            let mut numbers = first.strip_prefix("seen ")?.split(' ').map(|number| number.parse::<u64>().ok());
            let (now, beat) = (numbers.next()??, numbers.next()??);
            let sessions = numbers.next()?.and_then(|number| usize::try_from(number).ok());
            let silent = Duration::from_secs(now.saturating_sub(beat));
            Some(LockState { record: Record::parse(rest)?, silent, sessions })
        };
        read().map(Some).ok_or_else(|| refused(format!("read the lock {directory}"), &answer.stderr))
    }
}

impl Remote {
    /// Tries to take a lock that is free, or held by `over`. It is not compared with the locks of other hosts.
    pub async fn claim_lock(
        &self,
        directory: &str,
        record: &Record,
        over: Option<&Record>,
    ) -> Result<LockAttempt, Error> {
        let over = over.map_or_else(|| "-".to_owned(), |other| format!("{} {}", other.token, other.run_id()));
        claimed(directory, &self.session().await?.ask(&claim(directory, record, &over)?).await?)
    }

    /// Says that the holder is there. Refused when it holds the lock no more. Does not wait for the lease, which it renews.
    pub async fn beat(&self, directory: &str) -> Result<(), Error> {
        let text = format!("echo >{}/beat", quote::quote_path(directory)?);
        let mut session = self.session().await?;
        session.guard(true);
        let answer = session.ask(&text).await?;
        if answer.code == 0 { Ok(()) } else { Err(refused(format!("hold the lock {directory}"), &answer.stderr)) }
    }

    /// Gives a lock back. One that is another's by now is left alone.
    pub async fn release_lock(&self, directory: &str, record: &Record) -> Result<(), Error> {
        let free = quote::printf_script(record.freed().text().as_bytes());
        let text = asks(directory, &format!("{{ {free}; }} | release {} {}", record.token, record.run_id()))?;
        let answer = self.session().await?.ask(&text).await?;
        if answer.code == 0 { Ok(()) } else { Err(refused(format!("release the lock {directory}"), &answer.stderr)) }
    }
}
