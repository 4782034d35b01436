//! Writing files whole or not at all: a temporary file beside the target takes the content, gets its attributes, is
//! flushed and renamed over the target.

use super::execute::ProcessGroup;
use super::session::{InputStream, Session, random};
use super::{Attributes, Command, Error, Output, Remote, Stat, quote, refused, stat};

/// Up to here content travels inside the request, as arguments of the shell's own `printf`; above, raw.
pub(super) const INLINE: usize = 16 * 1024;
/// How a shell writes to the temporary file of a write, and what it calls the file: never by its name in the directory, whose
/// owner may put something else there.
pub(super) const TEMPORARY: (&str, &str) = (">&7", "\"$wl_at\"");

impl Remote {
    /// Writes a file whole or not at all: temporary file beside it, attributes set, flushed, renamed over.
    /// A file that was there keeps its owner and mode where `attributes` say nothing.
    pub async fn write(&self, path: &str, content: &[u8], attributes: &Attributes) -> Result<(), Error> {
        self.write_and_stat(path, content, attributes).await.map(drop)
    }

    /// As [`Remote::write`]; returns the state of the file, which saves a request.
    pub async fn write_and_stat(&self, path: &str, content: &[u8], attributes: &Attributes) -> Result<Stat, Error> {
        self.write_to(path, content, attributes, "wl_mv").await
    }

    /// As [`Remote::write`], for a file that is not there yet.
    ///
    /// # Errors
    /// Another process created it meanwhile, whose file is left as it is.
    pub async fn write_new(&self, path: &str, content: &[u8], attributes: &Attributes) -> Result<(), Error> {
        self.write_to(path, content, attributes, "wl_link").await.map(drop)
    }

    async fn write_to(&self, path: &str, content: &[u8], attributes: &Attributes, put: &str) -> Result<Stat, Error> {
        let target = Target::of_path(path)?;
        let mut session = self.to_change().await?;
        let begin = target.begin_script(attributes);
        let end = format!("{} && {put} || wl_drop", target.own(content.len() as u64, attributes)?);
        let answer = if content.len() <= INLINE {
            let text = quote::printf_script(content);
            session.ask(&format!("{begin} && {{ {{ {text}; }} >&7 || wl_why \"$wl_at\"; }} && {end}")).await?
        } else {
            session.pass(&begin, TEMPORARY, bytes(&mut &*content, &mut |_| ()), &end).await?
        };
        written(path, &answer)
    }

    /// As [`Remote::write`], but runs `validate` (`%s` is the new file's path) before the rename; its failure leaves
    /// the old file as it was.
    pub async fn write_validated(
        &self,
        path: &str,
        content: &[u8],
        attributes: &Attributes,
        validate: &str,
    ) -> Result<(), Error> {
        let what = || format!("validate {path} with {validate:?}");
        let target = Target::of_path(path)?;
        let words = shlex::split(validate).unwrap_or_default();
        if !validate.contains("%s") || words.is_empty() {
            let reason = "it must be a command with %s for the new file's path";
            return Err(Error::Refused { what: what(), reason: reason.into() });
        }
        let mut session = self.to_change().await?;
        let own = format!("{} && exec 7>&- || wl_drop", target.own(content.len() as u64, attributes)?);
        let begin = target.begin_script(attributes);
        let answer = session.pass(&begin, TEMPORARY, bytes(&mut &*content, &mut |_| ()), &own).await?;
        done(path, &answer)?;
        let command = Command::program(words.iter().map(|word| word.replace("%s", &target.temporary)));
        let verdict = session.execute(&command, &self.environment, None, ProcessGroup::Own).await?;
        if verdict.code != 0 {
            session.ask("wl_drop").await?;
            let words = if verdict.stderr.trim_ascii().is_empty() { &verdict.stdout } else { &verdict.stderr };
            let words = String::from_utf8_lossy(words.trim_ascii()).into_owned();
            let code = verdict.code;
            let reason = if words.is_empty() { format!("exit code {code}") } else { format!("code {code}: {words}") };
            return Err(Error::Refused { what: what(), reason });
        }
        done(path, &session.ask("wl_mv || wl_drop").await?)
    }
}

fn bytes<'a>(content: &'a mut &[u8], each: &'a mut (dyn FnMut(&[u8]) + Send)) -> InputStream<'a> {
    InputStream { size: content.len() as u64, reader: content, each }
}

fn done(path: &str, answer: &Output) -> Result<(), Error> {
    match answer.code {
        0 => Ok(()),
        _ => Err(refused(format!("write {path}"), &answer.stderr)),
    }
}

/// The state of a written file, from the host's answer.
pub(super) fn written(path: &str, answer: &Output) -> Result<Stat, Error> {
    done(path, answer)?;
    let unknown = || Error::Refused { what: format!("stat {path}"), reason: "stat prints something else".into() };
    stat::parse_stat(&answer.stdout).map(|(stat, _)| stat).ok_or_else(unknown)
}

/// A file to be written, and the name that its content has until then.
pub(super) struct Target {
    path: String,
    temporary: String,
}

impl Target {
    pub(super) fn of_path(path: &str) -> Result<Target, Error> {
        if path.ends_with('/') {
            return Err(Error::Refused { what: format!("write {path}"), reason: "Is a directory".into() });
        }
        let directory = path.rfind('/').map_or("", |at| &path[..=at]);
        Ok(Target { path: quote::quote_path(path)?, temporary: format!("{directory}.windlass.{}", &random()[..16]) })
    }

    /// Makes the temporary file. Its first mode gives no user more access than its final one.
    pub(super) fn begin_script(&self, attributes: &Attributes) -> String {
        let umask = match attributes {
            Attributes { owner: None, group: None, mode: None } => "\"$wl_w\"".to_owned(),
            Attributes { owner: None, group: None, mode: Some(mode) }
                if mode & !0o666 == 0 && mode & 0o600 == 0o600 =>
            {
                format!("{:03o}", 0o666 & !mode)
            }
            _ => "077".to_owned(),
        };
        format!("wl_new {} {} {umask}", quote::quote_word(&self.temporary), self.path)
    }

    pub(super) fn own(&self, size: u64, attributes: &Attributes) -> Result<String, Error> {
        let owner = quote::quote_word(&owner(attributes)?);
        let mode =
            attributes.mode.map_or_else(|| "'' ''".to_owned(), |mode| format!("{mode:o} {:x}", stat::REGULAR | mode));
        Ok(format!("wl_z={size} && wl_own {owner} {mode}"))
    }
}

/// What `chown` takes: `owner`, `owner:group`, `:group` or nothing.
pub(super) fn owner(attributes: &Attributes) -> Result<String, Error> {
    let part =
        |name: &Option<String>| name.as_deref().map_or(Ok(""), |name| quote::checked(name, "owner")).map(str::to_owned);
    let (owner, group) = (part(&attributes.owner)?, part(&attributes.group)?);
    Ok(if group.is_empty() { owner } else { format!("{owner}:{group}") })
}

impl Session {
    /// Keeps bytes in a file that only this session's user can read, until it is tidied up. Gives its path.
    pub(super) async fn store(&mut self, content: &[u8]) -> Result<String, Error> {
        let file = self.next_file();
        let word = quote::quote_path(&file)?;
        let answer = if content.len() <= INLINE {
            self.ask(&format!("{{ {}; }} >{word} || wl_why {word}", quote::printf_script(content))).await?
        } else {
            self.pass(":", (&format!(">{word}"), &word), bytes(&mut &*content, &mut |_| ()), ":").await?
        };
        match answer.code {
            0 => Ok(file),
            _ => Err(refused("pass input to the program", &answer.stderr)),
        }
    }
}
