//! Running programs in a session: their place, environment, input, output and end.

use indexmap::IndexMap;

use super::frames::BoundedBuffer;
use super::session::Session;
use super::{Command, Error, Output, RemoteErrorKind, quote, refused};

/// Output files on the host are removed after this many requests, or this many bytes.
const LITTER_FILES: u32 = 32;
const LITTER_BYTES: usize = 256 * 1024;
/// The code for a directory that cannot be entered; no program exits with it.
const NO_DIRECTORY: i32 = 999;
/// The code for a full disk while output is stored.
pub(super) const NO_ROOM: i32 = 997;
/// The code for more output than [`MOST_OUTPUT`].
pub(super) const TOO_MUCH: i32 = 995;
/// What a program may write to stdout, and to stderr, in bytes.
pub(super) const MOST_OUTPUT: usize = 256 << 20;
/// The code for a lock that another run holds now.
const NOT_OURS: i32 = 996;

/// Removes what is left of outputs and inputs.
const TIDY: &str = "rm -f \"$wl_d/x\" \"$wl_d\"/[oei].* </dev/null 2>/dev/null\n";

/// The process group of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessGroup {
    /// What it leaves orphaned is still ended with it, and what it does to its group does not come to us. Costs the start
    /// of one more program.
    Own,
    /// For the small tools that only ask. Their children are ended with them, too.
    Ours,
}

impl Session {
    /// Runs a program. `input` is a file on the host.
    pub(super) async fn execute(
        &mut self,
        command: &Command,
        environment: &IndexMap<String, String>,
        input: Option<&str>,
        group: ProcessGroup,
    ) -> Result<Output, Error> {
        let mut text = program(command, environment, input, group)?;
        if self.guards {
            text = format!("if wl_may 2>\"$wl_d/e\"; then\n{text}else wl_r {NOT_OURS}; fi\n");
        }
        self.begin_request(&text).await?;
        let mut stdout = BoundedBuffer::new();
        let answer = match command.limit {
            None => self.answer(&mut stdout).await,
            Some(limit) => match tokio::time::timeout(limit, self.answer(&mut stdout)).await {
                Ok(answer) => answer,
                Err(_) => {
                    self.close_session().await;
                    return Err(Error::TimedOut { what: name(command), limit });
                }
            },
        };
        let ((code, stderr), stdout) = (answer?, stdout.bytes);
        if code == NO_DIRECTORY {
            let directory = command.directory.as_deref().unwrap_or_default();
            return Err(refused(format!("change to the directory {directory}"), &stderr));
        }
        if code == NO_ROOM {
            return Err(self.no_room(&name(command)).await);
        }
        if code == TOO_MUCH {
            self.write_script(TIDY).await?;
            let what = format!("store the output of {}", name(command));
            let reason = format!("it is more than {} MiB", MOST_OUTPUT >> 20);
            return Err(Error::Refused { what, reason });
        }
        if code == NOT_OURS {
            return Err(refused(format!("run {}", name(command)), &stderr));
        }
        self.litter.0 += 1;
        self.litter.1 += stdout.len() + stderr.len();
        if self.litter.0 >= LITTER_FILES || self.litter.1 >= LITTER_BYTES {
            self.litter = (0, 0);
            // Without waiting: the next request finds it done.
            self.write_script(TIDY).await?;
        }
        Ok(Output { code, stdout, stderr })
    }

    /// The error when a program's output may be incomplete, because the session's directory is full.
    async fn no_room(&mut self, program: &str) -> Error {
        let look = "rm -f \"$wl_d\"/[oei].*; df -P \"$wl_d\"; ulimit -f";
        let answer = match self.ask(look).await {
            Ok(answer) => String::from_utf8_lossy(&answer.stdout).into_owned(),
            Err(error) => return error,
        };
        let mounted = mount_point(&answer).unwrap_or_else(|| self.directory.clone());
        let limit = answer.lines().last().filter(|limit| limit.bytes().all(|byte| byte.is_ascii_digit()));
        let limit = limit.map(|limit| format!(", or more than the login allows (ulimit -f: {limit})"));
        let reason = format!("{mounted}: No space left on device{}", limit.unwrap_or_default());
        Error::Refused { what: format!("store the whole output of {program} on the host"), reason }
    }
}

/// Where a file system is mounted, from what `df -P` prints of it.
fn mount_point(text: &str) -> Option<String> {
    let mut fields = text.lines().nth(1)?.split_ascii_whitespace().skip(5).peekable();
    fields.peek()?;
    Some(fields.collect::<Vec<_>>().join(" "))
}

/// The request that runs a program.
fn program(
    command: &Command,
    environment: &IndexMap<String, String>,
    input: Option<&str>,
    group: ProcessGroup,
) -> Result<String, Error> {
    let argv = command_text(command)?;
    let exports = quote::exports(environment.iter().chain(&command.environment))?;
    let exports = if exports.is_empty() { exports } else { format!("{exports} && ") };
    let input = input.map_or_else(|| Ok("/dev/null".to_owned()), quote::quote_path)?;
    let enter = match &command.directory {
        None => String::new(),
        Some(directory) => format!("cd {} && ", quote::quote_path(directory)?),
    };
    let run = match group {
        ProcessGroup::Own => "wl_go",
        ProcessGroup::Ours => "exec",
    };
    // If the files for its output cannot be made, or have no room, it is not run.
    let run = format!(
        "{{ ! wl_open || {{ ( {enter}wl_u; {exports}{run} {argv}\n) <{input} >&5 2>&6 5>&- 6>&-; wl_x $?; }}; }} \
         5>>\"$wl_d/o.$wl_q\" 6>>\"$wl_d/e.$wl_q\"; [ \"$wl_a\" = $wl_q ] || wl_r {NO_ROOM}\n"
    );
    Ok(match enter.strip_suffix(" && ") {
        None => run,
        Some(enter) => {
            format!("if ({enter}) 2>\"$wl_d/e\"; then\n{run}else wl_r {NO_DIRECTORY}; fi\n")
        }
    })
}

/// A command as words for a shell.
pub(super) fn command_text(command: &Command) -> Result<String, Error> {
    let argv = match &command.what {
        RemoteErrorKind::Program(argv) => quote::quote_arguments(argv)?,
        RemoteErrorKind::Shell { line, executable } => {
            let shell = executable.as_deref().unwrap_or("/bin/sh");
            quote::quote_arguments(&[shell.to_owned(), "-c".to_owned(), line.clone()])?
        }
    };
    match argv.is_empty() {
        true => Err(Error::Refused { what: "run a command".into(), reason: "it is empty".into() }),
        false => Ok(argv),
    }
}

/// What a command is called in messages: its program, never its arguments, which may hold secrets.
fn name(command: &Command) -> String {
    match &command.what {
        RemoteErrorKind::Program(argv) => argv.first().cloned().unwrap_or_default(),
        RemoteErrorKind::Shell { .. } => "the shell command".to_owned(),
    }
}
