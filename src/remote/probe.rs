//! Looking at a host: what is at a path, what is in it, what a program answers.

use super::execute::ProcessGroup;
use super::quote;
use super::sessions::BorrowedSession;
use super::{Command, Digest, Error, FileKind, Links, Output, Probe, Stat, refused, stat};
use crate::connection::Stream;

/// What tools say of a path that is not there.
fn is_absence(stderr: &[u8]) -> bool {
    let words = String::from_utf8_lossy(stderr);
    words.contains("No such file or directory") || words.contains("Not a directory")
}

impl Digest {
    /// The name that coreutils and openssl have for it.
    pub(super) fn algorithm_name(self) -> &'static str {
        match self {
            Digest::Md5 => "md5",
            Digest::Sha1 => "sha1",
            Digest::Sha224 => "sha224",
            Digest::Sha256 => "sha256",
            Digest::Sha384 => "sha384",
            Digest::Sha512 => "sha512",
        }
    }

    /// Shell text that prints the digest of a file and more words on the same line.
    pub(super) fn command(self, word: &str) -> String {
        let name = self.algorithm_name();
        format!("if command -v {name}sum >/dev/null; then {name}sum {word}; else openssl dgst -{name} -r {word}; fi")
    }
}

impl Probe {
    pub(super) async fn session(&self) -> Result<BorrowedSession, Error> {
        self.sessions.borrow_session(self.user.as_ref()).await
    }

    /// None: there is nothing at the path (or a part of it is missing).
    pub async fn stat(&self, path: &str, links: Links) -> Result<Option<Stat>, Error> {
        let word = quote::quote_path(path)?;
        let answer = self.session().await?.ask(&stat_command(&word, links)).await?;
        let Some((mut stat, rest)) = read_stat(path, &answer)? else { return Ok(None) };
        if stat.kind == FileKind::Link {
            stat.link_target = Some(String::from_utf8_lossy(rest).into_owned());
        }
        Ok(Some(stat))
    }

    /// Whether there is a directory at the path, or a link to one. Starts no program on the host.
    pub async fn is_directory(&self, path: &str) -> Result<bool, Error> {
        let word = quote::quote_path(path)?;
        Ok(self.session().await?.ask(&format!("[ -d {word} ]")).await?.code == 0)
    }

    /// Stat and digest in one request; the digest only of a regular file that can be read.
    pub async fn stat_and_digest(
        &self,
        path: &str,
        links: Links,
        digest: Digest,
    ) -> Result<Option<(Stat, Option<String>)>, Error> {
        let word = quote::quote_path(path)?;
        let look = stat_command(&word, links);
        let regular = match links {
            Links::Follow => format!("[ -f {word} ]"),
            Links::Keep => format!("[ -f {word} ] && ! [ -L {word} ]"),
        };
        let body = format!("{look}\nif {regular}; then {}; fi", digest.command(&word));
        let answer = self.session().await?.ask(&body).await?;
        let Some((mut stat, rest)) = read_stat(path, &answer)? else { return Ok(None) };
        match stat.kind {
            FileKind::Link => stat.link_target = Some(String::from_utf8_lossy(rest).into_owned()),
            FileKind::File => return Ok(Some((stat, parse_hex_digest(rest)))),
            _ => {}
        }
        Ok(Some((stat, None)))
    }

    /// Lower-case hex. None: no such file.
    pub async fn digest(&self, path: &str, digest: Digest) -> Result<Option<String>, Error> {
        let word = quote::quote_path(path)?;
        let what = || format!("read {path}");
        let body = format!("{}\n{}", file_check(&word), digest.command(&word));
        let answer = self.session().await?.ask(&subshell(&body)).await?;
        match parse_hex_digest(&answer.stdout) {
            Some(hex) if answer.code == 0 => Ok(Some(hex)),
            _ if is_absence(&answer.stderr) => Ok(None),
            _ => Err(refused(what(), &answer.stderr)),
        }
    }

    /// The whole file. None: no such file.
    pub async fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let word = quote::quote_path(path)?;
        let body = format!("{}\ncat {word}", file_check(&word));
        let answer = self.session().await?.ask(&subshell(&body)).await?;
        match answer.code {
            0 => Ok(Some(answer.stdout)),
            _ if is_absence(&answer.stderr) => Ok(None),
            _ => Err(refused(format!("read {path}"), &answer.stderr)),
        }
    }

    /// The names in a directory, sorted, without `.` and `..`. None: no such directory.
    pub async fn list_directory(&self, path: &str) -> Result<Option<Vec<String>>, Error> {
        let word = quote::quote_path(path)?;
        // No program has to be there for it, and any name comes through.
        let body = format!(
            "cd {word} || exit\n\
             if ! [ -r . ]; then echo 'ls: Permission denied' >&2; exit 1; fi\n\
             for wl_i in * .[!.]* ..?*; do\n\
             if [ -e \"$wl_i\" ] || [ -L \"$wl_i\" ]; then printf '%s\\0' \"$wl_i\"; fi\ndone"
        );
        let answer = self.session().await?.ask(&subshell(&body)).await?;
        if answer.code != 0 {
            return match is_absence(&answer.stderr) || says_no_directory(&answer.stderr) {
                true if self.stat(path, Links::Follow).await?.is_none_or(|it| it.kind != FileKind::Directory) => {
                    Ok(None)
                }
                _ => Err(refused(format!("list {path}"), &answer.stderr)),
            };
        }
        let names = answer.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        let mut names: Vec<String> = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        names.sort_unstable();
        Ok(Some(names))
    }

    /// Runs a command that only asks. The type cannot know: it is the caller's word.
    pub async fn query(&self, command: &Command) -> Result<Output, Error> {
        self.execute(self.session().await?, command, ProcessGroup::Ours).await
    }

    pub(super) async fn execute(
        &self,
        mut session: BorrowedSession,
        command: &Command,
        group: ProcessGroup,
    ) -> Result<Output, Error> {
        let Some(stdin) = &command.stdin else {
            return session.execute(command, &self.environment, None, group).await;
        };
        let input = session.store(stdin).await?;
        session.execute(command, &self.environment, Some(&input), group).await
    }

    /// Absolute path of a program, if it is in the session's PATH (with the sbin directories).
    pub async fn which(&self, program: &str) -> Result<Option<String>, Error> {
        let word = quote::quote_word(quote::checked(program, "program")?);
        let path = self.environment.get("PATH").map(|path| quote::quote_word(path));
        let path = path.unwrap_or_else(|| "$PATH".to_owned());
        let body = format!(
            "wl_j={word}\ncase $wl_j in\n\
             '') exit 1 ;;\n\
             */*) [ -f \"$wl_j\" ] && [ -x \"$wl_j\" ] && printf %s \"$wl_j\"; exit ;;\nesac\n\
             IFS=:; set -f\nwl_j={path}\nfor wl_i in $wl_j; do\n\
             if [ -f \"${{wl_i:=.}}/\"{word} ] && [ -x \"$wl_i/\"{word} ]; then printf %s \"$wl_i/\"{word}; exit; fi\ndone\nexit 1"
        );
        let answer = self.session().await?.ask(&subshell(&body)).await?;
        Ok((answer.code == 0).then(|| String::from_utf8_lossy(&answer.stdout).into_owned()))
    }

    /// `~` and `~user` at the beginning, as the session's user has them.
    pub async fn expand_on_host(&self, path: &str) -> Result<String, Error> {
        let Some(rest) = path.strip_prefix('~') else { return Ok(path.to_owned()) };
        let (user, rest) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if user.is_empty() {
            return Ok(format!("{}{rest}", self.account.home));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !user.chars().all(plain) {
            return Ok(path.to_owned());
        }
        // The one word that must not be quoted; it has letters and digits only.
        let answer = self.session().await?.ask(&format!("printf %s ~{user}")).await?;
        Ok(format!("{}{rest}", String::from_utf8_lossy(&answer.stdout)))
    }

    /// The user that the session runs as.
    pub fn user(&self) -> &str {
        &self.account.user
    }

    /// Whether SELinux is on.
    pub fn has_selinux(&self) -> bool {
        self.account.selinux
    }

    /// Refuses an address that an offline run may not connect to.
    pub fn may_reach(&self, host: &str) -> Result<(), Error> {
        Ok(self.sessions.connection().may_reach(host)?)
    }

    /// Whether the run is for a foreign resource, see [`crate::connection::Connection::is_confined`].
    pub fn is_confined(&self) -> bool {
        self.sessions.connection().is_confined()
    }

    /// Whether the host is the machine that windlass runs on, not reached by SSH.
    pub fn is_controller(&self) -> bool {
        !self.sessions.connection().is_ssh()
    }

    /// A TCP connection from the host. Does not ask [`Probe::may_reach`].
    pub async fn tunnel(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, Error> {
        Ok(self.sessions.connection().tunnel(host, port).await?)
    }
}

/// A body that may `exit`, and leaves no trace in the session.
pub(super) fn subshell(body: &str) -> String {
    format!("( {body}\n)")
}

/// Refuses what would never end, or is no file.
pub(super) fn file_check(word: &str) -> String {
    format!(
        "if [ -d {word} ]; then echo 'cat: Is a directory' >&2; exit 1; fi\n\
             if [ -p {word} ]; then echo 'cat: Is a named pipe' >&2; exit 1; fi\n\
             if [ -b {word} ] || [ -c {word} ] && [ {word} != /dev/null ]; then echo 'cat: Is a device' >&2; exit 1; fi"
    )
}

fn says_no_directory(stderr: &[u8]) -> bool {
    // dash says no more than `can't cd to x`.
    String::from_utf8_lossy(stderr).contains("can't cd to")
}

/// Prints [`stat::FORMAT`], then the target of a link that is not followed.
fn stat_command(word: &str, links: Links) -> String {
    let format = quote::quote_word(stat::FORMAT);
    match links {
        Links::Follow => format!("stat -L -c {format} {word}"),
        Links::Keep => format!("stat -c {format} {word} && if [ -L {word} ]; then readlink -n {word}; fi"),
    }
}

fn read_stat<'a>(path: &str, answer: &'a Output) -> Result<Option<(Stat, &'a [u8])>, Error> {
    match stat::parse_stat(&answer.stdout) {
        Some(found) => Ok(Some(found)),
        None if is_absence(&answer.stderr) => Ok(None),
        None => Err(refused(format!("stat {path}"), &answer.stderr)),
    }
}

/// The digest at the beginning of what a digest tool prints.
pub(super) fn parse_hex_digest(line: &[u8]) -> Option<String> {
    // A backslash marks a line that has an odd name in it.
    let line = line.strip_prefix(b"\\").unwrap_or(line);
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit())?;
    (end >= 32).then(|| String::from_utf8_lossy(&line[..end]).to_ascii_lowercase())
}
