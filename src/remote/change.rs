//! Touching a host: commands, attributes, directories, links, removal.

use std::sync::Arc;

use indexmap::IndexMap;

use super::execute::ProcessGroup;
use super::probe::subshell;
use super::session::random;
use super::sessions::BorrowedSession;
use super::write::owner;
use super::{Attributes, Become, Command, Error, Links, Output, Probe, Remote, Sessions, quote, refused};

impl Remote {
    /// Opens a session for a user of the host. `environment` goes to every command.
    pub async fn open(
        sessions: &Arc<Sessions>,
        user: Option<&Become>,
        environment: &IndexMap<String, String>,
    ) -> Result<Remote, Error> {
        let account = sessions.borrow_session(user).await?.account.clone();
        let environment = Arc::new(environment.clone());
        Ok(Remote { probe: Probe { sessions: sessions.clone(), user: user.cloned(), account, environment } })
    }

    /// Only the looking half, for check mode and `plan`.
    pub fn probe(&self) -> &Probe {
        self
    }

    /// A session for what changes something: it is refused, there or here, when the run's lock is another's.
    pub(super) async fn to_change(&self) -> Result<BorrowedSession, Error> {
        self.probe.sessions.take_to_change(self.probe.user.as_ref()).await
    }

    /// Refuses if the run's lock is another's. For what changes something in another way than by this host's sessions, right
    /// before it does.
    pub async fn may_change(&self) -> Result<(), Error> {
        self.touch("change anything".to_owned(), ":").await
    }

    /// Flushes the file system of a directory to its disk. For directories into which many files were written
    /// by a tool that does not flush them. An old `sync` has no -f and reports no error: one with -f fails for a missing path.
    pub async fn flush(&self, directory: &str) -> Result<(), Error> {
        let word = quote::quote_path(directory)?;
        let body = format!("if sync -f /proc/none/none 2>&1 | grep -q none; then sync -f {word}; else sync; fi");
        self.touch(format!("write {directory} to its disk"), &body).await
    }

    /// Runs a command.
    pub async fn run(&self, command: &Command) -> Result<Output, Error> {
        self.execute(self.to_change().await?, command, ProcessGroup::Own).await
    }

    /// Runs shell text whose only result is its success.
    pub(super) async fn touch(&self, what: String, body: &str) -> Result<(), Error> {
        let answer = self.to_change().await?.ask(&subshell(body)).await?;
        if answer.code == 0 { Ok(()) } else { Err(refused(what, &answer.stderr)) }
    }

    /// The permissions of a link that is kept are not set: Linux has none.
    pub async fn set_attributes(&self, path: &str, attributes: &Attributes, links: Links) -> Result<(), Error> {
        let word = quote::quote_path(path)?;
        let body = set(&word, attributes, links)?;
        self.touch(format!("set the attributes of {path}"), &body).await
    }

    /// Copies a file aside: `path.PID.2026-11-20@10:00:00~`, as Ansible names it. Gives the new path.
    pub async fn back_up(&self, path: &str) -> Result<String, Error> {
        let word = quote::quote_path(path)?;
        let body = format!(
            "wl_i=$$\nwl_j=$(date +%Y-%m-%d@%H:%M:%S) || exit\n\
             while [ -e {word}.$wl_i.$wl_j~ ]; do wl_i=$((wl_i+1)); done\n\
             cp -p {word} {word}.$wl_i.$wl_j~ && wl_flush {word}.$wl_i.$wl_j~ || {{\n\
             rm -f {word}.$wl_i.$wl_j~; exit 1; }}\n\
             printf %s $wl_i.$wl_j~"
        );
        let answer = self.to_change().await?.ask(&subshell(&body)).await?;
        match answer.code {
            0 => Ok(format!("{path}.{}", String::from_utf8_lossy(&answer.stdout))),
            _ => Err(refused(format!("back up {path}"), &answer.stderr)),
        }
    }

    /// With parents; those that are new get the attributes, too, as does a directory that was there.
    pub async fn make_directory(&self, path: &str, attributes: &Attributes) -> Result<(), Error> {
        let trimmed = path.trim_end_matches('/');
        let path = if trimmed.is_empty() && !path.is_empty() { "/" } else { trimmed };
        let ends = path.match_indices('/').map(|(at, _)| at).filter(|&at| at > 0).chain([path.len()]);
        let mut body = String::new();
        // Closed to others until its owner is set. Somebody else may make it at the same moment.
        let umask = if attributes.mode.is_some() { "umask 077\n" } else { "" };
        for end in ends {
            let word = quote::quote_path(&path[..end])?;
            let set = if end == path.len() { ":".to_owned() } else { set(&word, attributes, Links::Follow)? };
            body.push_str(&format!(
                "[ -d {word} ] || {{ mkdir {word} && {{ {set}; }}; }} || [ -d {word} ] || exit 1\n"
            ));
        }
        let word = quote::quote_path(path)?;
        let body = format!("{umask}{body}{}", set(&word, attributes, Links::Follow)?);
        self.touch(format!("create the directory {path}"), &body).await
    }

    /// A new directory that only this user can enter, removed when the session ends. Programs in it can be run unless
    /// no place of the host that the user can write allows that.
    pub async fn temporary_directory(&self) -> Result<String, Error> {
        let name = random();
        let body = format!(
            "wl_i=\n\
             for wl_j in \"${{TMPDIR:-/tmp}}\" /tmp /var/tmp \"$HOME\" /dev/shm \"${{XDG_RUNTIME_DIR:-/nowhere}}\"; do\n\
             [ -O \"$wl_j\" ] || [ -k \"$wl_j\" ] || continue\n\
             wl_j=$wl_j/.windlass.{name}\n\
             (umask 077 && mkdir \"$wl_j\") 2>/dev/null || continue\n\
             if (umask 077 && printf '#!/bin/sh\\nexit 0\\n' >\"$wl_j/x\" && chmod 700 \"$wl_j/x\" && \"$wl_j/x\") 2>/dev/null\n\
             then rm -f \"$wl_j/x\"; [ -z \"$wl_i\" ] || rm -rf \"$wl_i\"; wl_i=$wl_j; break; fi\n\
             rm -f \"$wl_j/x\"\n\
             if [ \"$wl_i\" ]; then rm -rf \"$wl_j\"; else wl_i=$wl_j; fi\ndone\n\
             [ \"$wl_i\" ] && printf %s \"$wl_i\" ||\n\
             {{ echo ': no directory for temporary files belongs to this user or has the sticky bit' >&2; false; }}"
        );
        let mut session = self.to_change().await?;
        let answer = session.ask(&subshell(&body)).await?;
        let directory = String::from_utf8_lossy(&answer.stdout).into_owned();
        if answer.code != 0 || directory.is_empty() {
            return Err(refused("create a temporary directory", &answer.stderr));
        }
        // For the trap, which reads it as shell text.
        let word = quote::quote_word(&quote::quote_path(&directory)?);
        session.ask(&format!("wl_k=\"$wl_k \"{word}")).await?;
        session.keeps_directories = true;
        Ok(directory)
    }

    /// Replaces whatever non-directory is at `path`.
    pub async fn symlink(&self, target: &str, path: &str) -> Result<(), Error> {
        let word = quote::quote_path(path)?;
        let end = quote::quote_word(quote::checked(target, "link target")?);
        let directory = path.rfind('/').map_or("", |at| &path[..=at]);
        let temporary = quote::quote_word(&format!("{directory}.windlass.{}", &random()[..16]));
        // In the session itself, so that the temporary link goes with it if need be.
        let body = format!(
            "wl_p={word}\nwl_t={temporary}\n\
             if [ -d \"$wl_p\" ] && ! [ -L \"$wl_p\" ]; then echo ': Is a directory' >&2; wl_t=; false\n\
             else ln -s -- {end} \"$wl_t\" && wl_mv || wl_drop; fi"
        );
        let answer = self.to_change().await?.ask(&body).await?;
        if answer.code == 0 { Ok(()) } else { Err(refused(format!("link {path} to {target}"), &answer.stderr)) }
    }

    /// Removes a file, a link, or a directory with all that is in it. Nothing there is no error.
    pub async fn remove(&self, path: &str) -> Result<(), Error> {
        let trimmed = path.trim_end_matches('/');
        let last = trimmed.rsplit('/').next().unwrap_or_default();
        if matches!(last, "" | "." | "..") {
            return Err(Error::Refused {
                what: format!("remove {path}"),
                reason: "this path must not be removed".into(),
            });
        }
        self.touch(format!("remove {path}"), &format!("rm -rf {}", quote::quote_path(trimmed)?)).await
    }
}

/// Shell text that sets attributes of a path that exists. chown first: it takes setuid bits away.
fn set(word: &str, attributes: &Attributes, links: Links) -> Result<String, Error> {
    let mut text = String::from(":");
    let owner = owner(attributes)?;
    if !owner.is_empty() {
        let keep = if links == Links::Keep { "-h " } else { "" };
        text.push_str(&format!(" && chown {keep}{} {word}", quote::quote_word(&owner)));
    }
    if let Some(mode) = attributes.mode {
        // Five digits: GNU chmod takes setgid of a directory away only when it is said so explicitly.
        let chmod = format!("chmod {mode:05o} {word}");
        match links {
            Links::Follow => text.push_str(&format!(" && {chmod}")),
            Links::Keep => text.push_str(&format!(" && {{ [ -L {word} ] || {chmod}; }}")),
        }
    }
    Ok(text)
}
