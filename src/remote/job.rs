//! Jobs: programs that continue when the session that started them ends. Its state is in a directory of
//! its user, mode 0700, until it is removed.

use std::time::Duration;

use super::probe::subshell;
use super::session::random;
use super::{Attributes, Command, Error, Output, Probe, Remote, execute, quote, refused};

const SUPERVISOR: &str = include_str!("job.sh");
/// A file of an output has a line from the beginning, so that it has a block of the disk, and has it whole if it is no
/// larger than the smallest block.
const SURE: usize = 1024;

/// The directory of a job's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPlace {
    /// `j493205118364.8821`, as Ansible names jobs.
    pub id: String,
    pub directory: String,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq)]
pub enum JobState {
    Running,
    Ended(JobResult),
    /// It does not run any more and left no result: the host was restarted, or it was killed.
    Lost,
}

/// What a job left.
#[derive(Debug, Clone, PartialEq)]
pub struct JobResult {
    pub output: Output,
    /// It was ended for it took longer than its limit.
    pub late: bool,
    pub begun: HostTime,
    pub ended: HostTime,
    /// What was given to [`Remote::start_job`].
    pub notes: String,
}

/// A time of the host's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTime {
    /// Since 1970.
    pub since_epoch: Duration,
    /// In the host's time zone: `2026-11-20 13:39:14.497383`.
    pub words: String,
}

impl Remote {
    /// Makes a directory for a job below `parent`, which is made, too.
    pub async fn place_for_job(&self, parent: &str) -> Result<JobPlace, Error> {
        let digits = u64::from_str_radix(&random()[..12], 16).unwrap_or_default();
        let id = format!("j{:012}.{}", digits % 1_000_000_000_000, digits % 99_999 + 1);
        let directory = format!("{}/{id}", parent.trim_end_matches('/'));
        let (above, word) = (quote::quote_path(parent)?, quote::quote_path(&directory)?);
        self.touch(format!("create {directory}"), &format!("umask 077; mkdir -p {above} && mkdir {word}")).await?;
        Ok(JobPlace { id, directory })
    }

    /// Starts a job. Its process group is ended after `limit`. `notes`: a line that comes back with its result.
    pub async fn start_job(
        &self,
        place: &JobPlace,
        command: &Command,
        limit: Duration,
        notes: &str,
    ) -> Result<(), Error> {
        let what = "start a background job";
        let private = Attributes { mode: Some(0o600), ..Attributes::default() };
        let run = script(command, &self.environment)?;
        let files = [
            ("run", run.as_bytes()),
            ("in", command.stdin.as_deref().unwrap_or_default()),
            ("notes", notes.as_bytes()),
        ];
        for (name, content) in files {
            self.write(&format!("{}/{name}", place.directory), content, &private).await?;
        }
        let lines: Vec<&str> = SUPERVISOR.lines().filter(|line| !line.starts_with('#')).collect();
        let (supervisor, directory) = (
            quote::quote_word(&lines.join("\n").replace("@MOST@", &execute::MOST_OUTPUT.to_string())),
            quote::quote_path(&place.directory)?,
        );
        let seconds = limit.as_secs_f64().ceil();
        // The substitution lasts until the job's supervisor has said that it is there, and no longer.
        let body = format!(
            "[ \"$wl_s\" ] || {{ echo ': the host has no program setsid' >&2; exit 1; }}\nwl_u\n\
             wl_i=$( ( setsid sh -c {supervisor} sh {directory} {seconds} \"$PWD\" </dev/null & ) )\n\
             [ \"$wl_i\" = started ]"
        );
        let answer = self.to_change().await?.ask(&subshell(&body)).await?;
        if answer.code == 0 { Ok(()) } else { Err(refused(what, &answer.stderr)) }
    }
}

impl Probe {
    /// How far the job of a directory is. None: there is no such job.
    pub async fn job(&self, directory: &str) -> Result<Option<JobState>, Error> {
        let word = quote::quote_path(directory)?;
        // `code` is the last thing that is written: it is read again after the process ended.
        let body = format!(
            "cd {word} 2>/dev/null || {{ [ -e {word} ] && exit 1; echo none; exit 0; }}\n\
             [ -e notes ] || {{ echo none; exit 0; }}\n\
             if ! [ -e code ]; then\n\
             {{ read -r p t <pid && while read -r l; do x=\"$x $l\"; done </proc/$p/stat; }} 2>/dev/null\n\
             x=${{x##*) }}; set -- $x\n\
             [ \"$t\" ] && [ \"${{20}}\" = \"$t\" ] && [ \"$1\" != Z ] && {{ echo running; exit; }}\n\
             [ -e code ] || {{ echo lost; exit; }}\nfi\n\
             [ -e much ] && {{ echo much; exit; }}\n\
             echo ended; tail -n 1 code; [ -e late ] && echo late || echo; cat begun; tail -n 1 ended; wc -c <out\n\
             cat notes; echo; cat out err"
        );
        let answer = self.session().await?.ask(&subshell(&body)).await?;
        let what = || format!("read the job in {directory}");
        if answer.code != 0 {
            return Err(refused(what(), &answer.stderr));
        }
        let refused = |reason: String| Error::Refused { what: what(), reason };
        if answer.stdout == b"much\n" {
            return Err(refused(format!("its output is larger than {} MiB", execute::MOST_OUTPUT >> 20)));
        }
        match parse(&answer.stdout) {
            Some(Parsed::State(state)) => Ok(state),
            Some(Parsed::Partial) => Err(refused(
                "its output is incomplete: No space left on device, or more than the login allows (ulimit -f)".into(),
            )),
            None => Err(refused("its files are damaged".into())),
        }
    }
}

/// The text that a shell runs as the job. It is read whole before it removes itself: it may hold secrets.
fn script(command: &Command, environment: &indexmap::IndexMap<String, String>) -> Result<String, Error> {
    let argv = execute::command_text(command)?;
    let exports = quote::exports(environment.iter().chain(&command.environment))?;
    let directory = match &command.directory {
        Some(directory) => quote::quote_path(directory)?,
        None => "\"$1\"".to_owned(),
    };
    Ok(format!("{{\nrm -f run\ncd {directory} || exit\n{exports}\nexec {argv}\n}}\n"))
}

/// What [`Probe::job`] prints.
#[derive(Debug, PartialEq)]
enum Parsed {
    State(Option<JobState>),
    /// The disk was full when the job ended, and its output is larger than what is sure to have been written.
    Partial,
}

/// Reads what [`Probe::job`] prints.
fn parse(text: &[u8]) -> Option<Parsed> {
    let mut rest = text;
    let mut line = || {
        let at = rest.iter().position(|byte| *byte == b'\n')?;
        let line = String::from_utf8_lossy(&rest[..at]).into_owned();
        rest = &rest[at + 1..];
        Some(line)
    };
    match line()?.as_str() {
        "none" => return Some(Parsed::State(None)),
        "running" => return Some(Parsed::State(Some(JobState::Running))),
        "lost" => return Some(Parsed::State(Some(JobState::Lost))),
        _ => {}
    }
    let (code, full) =
        line()?.trim().split_once(' ').and_then(|(code, full)| Some((code.parse().ok()?, full == "1")))?;
    let late = line()? == "late";
    let (begun, ended) = (moment(&line()?)?, moment(&line()?)?);
    let size: usize = line()?.trim().parse().ok()?;
    let notes = line()?;
    let (stdout, stderr) = rest.split_at_checked(size)?;
    if full && (stdout.len() > SURE || stderr.len() > SURE) {
        return Some(Parsed::Partial);
    }
    // A program that opened it again may have truncated it.
    let text = |bytes: &[u8]| bytes.strip_prefix(b".\n").unwrap_or(bytes).to_vec();
    let output = Output { code, stdout: text(stdout), stderr: text(stderr) };
    Some(Parsed::State(Some(JobState::Ended(JobResult { output, late, begun, ended, notes }))))
}

/// `1763645954.497383123 2026-11-20 13:39:14`; a `date` that has no fractions leaves `%N` or nothing in their place.
fn moment(text: &str) -> Option<HostTime> {
    let (epoch, words) = text.split_once(' ')?;
    let (seconds, fraction) = epoch.split_once('.')?;
    let nanoseconds: u32 = fraction.get(..9).and_then(|digits| digits.parse().ok()).unwrap_or_default();
    let since_epoch = Duration::new(seconds.parse().ok()?, nanoseconds);
    Some(HostTime { since_epoch, words: format!("{words}.{:06}", nanoseconds / 1000) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_fractions_where_the_host_s_date_has() {
        let time = moment("1763645954.049738312 2026-11-20 13:39:14").unwrap();
        assert_eq!(time.since_epoch, Duration::new(1_763_645_954, 49_738_312));
        assert_eq!(time.words, "2026-11-20 13:39:14.049738");
        assert_eq!(moment("7.%N 1970-01-01 00:00:07").unwrap().words, "1970-01-01 00:00:07.000000");
        assert!(moment("x").is_none());
    }

    #[test]
    fn output_is_distinguished_by_its_size() {
        let text = b"ended\n3 1\n\n1.0 a b\n2.5 c d\n 6\n{\"x\":1}\n.\nou\nt.\nerr\n";
        let Some(Parsed::State(Some(JobState::Ended(ended)))) = parse(text) else { panic!("not understood") };
        assert_eq!((ended.output.code, ended.late), (3, false));
        assert_eq!((ended.output.stdout.as_slice(), ended.output.stderr.as_slice()), (&b"ou\nt"[..], &b"err\n"[..]));
        assert_eq!(ended.notes, "{\"x\":1}");
        assert_eq!(parse(b"none\n"), Some(Parsed::State(None)));
        assert_eq!(parse(b"ended\n"), None);
        assert_eq!(parse(b"ended\n\n\n1.0 a b\n2.5 c d\n 6\n\n.\nou\nt.\nerr\n"), None);
        let full = format!("ended\n0 1\n\n1.0 a b\n2.5 c d\n 2000\n\n.\n{}.\n", "x".repeat(1998));
        assert_eq!(parse(full.as_bytes()), Some(Parsed::Partial));
    }
}
