//! Writing files whole or not at all: a temporary file beside the target takes the content, gets its attributes, is
//! flushed and renamed over the target.

use super::execute::Group;
use super::session::{Content, Session, random};
use super::{Attributes, Command, Error, Output, Remote, quote, refused};

/// Up to here content travels inside the request, as arguments of the shell's own `printf`; above, raw.
pub(super) const INLINE: usize = 16 * 1024;

impl Remote {
    /// Writes a file whole or not at all: temporary file beside it, attributes set, flushed, renamed over.
    /// A file that was there keeps its owner and mode where `attributes` say nothing.
    pub async fn write(&self, path: &str, content: &[u8], attributes: &Attributes) -> Result<(), Error> {
        let target = Target::of(path)?;
        let mut session = self.session().await?;
        let end = format!("{} && wl_mv || wl_drop", target.own(content.len() as u64, attributes)?);
        let answer = if content.len() <= INLINE {
            let text = quote::print(content);
            session.ask(&format!("{} && {{ {text}; }} >\"$wl_t\" && {end}", target.begin())).await?
        } else {
            session.pass(&target.begin(), "\"$wl_t\"", bytes(&mut &*content, &mut |_| ()), &end).await?
        };
        done(path, &answer)
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
        let target = Target::of(path)?;
        let words = shlex::split(validate).unwrap_or_default();
        if !validate.contains("%s") || words.is_empty() {
            let reason = "it must be a command that has %s where the new file's path goes";
            return Err(Error::Refused { what: what(), reason: reason.into() });
        }
        let mut session = self.session().await?;
        let own = format!("{} || wl_drop", target.own(content.len() as u64, attributes)?);
        let answer = session.pass(&target.begin(), "\"$wl_t\"", bytes(&mut &*content, &mut |_| ()), &own).await?;
        done(path, &answer)?;
        let command = Command::program(words.iter().map(|word| word.replace("%s", &target.temporary)));
        let verdict = session.execute(&command, &self.environment, None, Group::Own).await?;
        if verdict.code != 0 {
            session.ask("wl_drop").await?;
            let words = if verdict.stderr.trim_ascii().is_empty() { &verdict.stdout } else { &verdict.stderr };
            let words = String::from_utf8_lossy(words.trim_ascii()).into_owned();
            let code = verdict.code;
            let reason =
                if words.is_empty() { format!("it gave code {code}") } else { format!("code {code}: {words}") };
            return Err(Error::Refused { what: what(), reason });
        }
        done(path, &session.ask("wl_mv || wl_drop").await?)
    }
}

fn bytes<'a>(content: &'a mut &[u8], each: &'a mut (dyn FnMut(&[u8]) + Send)) -> Content<'a> {
    Content { size: content.len() as u64, reader: content, each }
}

pub(super) fn done(path: &str, answer: &Output) -> Result<(), Error> {
    match answer.code {
        0 => Ok(()),
        _ => Err(refused(format!("write {path}"), &answer.stderr)),
    }
}

/// A file to be written, and the name that its content has until then.
pub(super) struct Target {
    path: String,
    temporary: String,
}

impl Target {
    pub(super) fn of(path: &str) -> Result<Target, Error> {
        if path.ends_with('/') {
            return Err(Error::Refused { what: format!("write {path}"), reason: "Is a directory".into() });
        }
        let directory = path.rfind('/').map_or("", |at| &path[..=at]);
        Ok(Target { path: quote::path(path)?, temporary: format!("{directory}.windlass.{}", &random()[..16]) })
    }

    pub(super) fn begin(&self) -> String {
        format!("wl_new {} {}", quote::word(&self.temporary), self.path)
    }

    pub(super) fn own(&self, size: u64, attributes: &Attributes) -> Result<String, Error> {
        let owner = quote::word(&owner(attributes)?);
        let mode = attributes.mode.map_or_else(|| "''".to_owned(), |mode| format!("{mode:o}"));
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
        let word = quote::path(&file)?;
        let answer = if content.len() <= INLINE {
            self.ask(&format!("{{ {}; }} >{word}", quote::print(content))).await?
        } else {
            self.pass(":", &word, bytes(&mut &*content, &mut |_| ()), ":").await?
        };
        match answer.code {
            0 => Ok(file),
            _ => Err(refused("pass input to the program", &answer.stderr)),
        }
    }
}
