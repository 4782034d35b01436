//! Backups in a directory of another host, which is reached as `ssh` would reach it. Each is a directory, as on this machine: it gets its
//! name when all that arrived was read again. Only the login user may be able to write there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use tokio::sync::OnceCell;

use super::error::{BackupError, io_error};
use super::fetched::FetchedBackup;
use super::files::digest;
use super::history::check_history;
use super::prepare::Prepared;
use super::prune::remove_superseded;
use super::reading::{manifest, parse_manifest};
use super::retention::Retention;
use super::staging::Staging;
use super::{Backup, BackupResult, DIFFERS, LARGEST_MANIFEST, MANIFEST, Manifest, PARTS};
use crate::connection::{self, SshAddress, Target};
use crate::remote::{self, Attributes, Command, Digest, ExpectedDigest, FileKind, Links, Output, Remote, Sessions};
use crate::value::ProcessEnvironment;

/// What begins the address of a directory on another host.
pub const SSH_SCHEME: &str = "ssh://";

/// The beginning of the name of a backup that is being uploaded. Not that of a backup which windlass on that host is writing.
const UPLOAD: &str = ".upload-";
/// An upload of a process that was killed is removed when it is so much older than a new one, in seconds.
const ABANDONED: f64 = 24.0 * 60.0 * 60.0;

/// The backups of one deployment in a directory of another host. Connects when it is first used.
pub struct BackupHost {
    target: Target,
    /// `ssh://USER@ADDRESS:PORT`, as it was written.
    server: String,
    /// Absolute, without a slash at the end.
    directory: String,
    remote: OnceCell<Remote>,
}

impl BackupHost {
    /// Of `ssh://USER@ADDRESS:PORT/DIRECTORY`. What it does not say comes from `~/.ssh/config`.
    ///
    /// # Errors
    /// Why it is no such address.
    pub fn parse_place(text: &str, surroundings: &Arc<ProcessEnvironment>) -> Result<BackupHost, String> {
        let wrong = || "write ssh://USER@ADDRESS:PORT/DIRECTORY, with an absolute path and no password".to_owned();
        let rest = text.strip_prefix(SSH_SCHEME).ok_or_else(wrong)?;
        let (server, path) = rest.split_once('/').ok_or_else(wrong)?;
        let SshAddress { user, address, port } = SshAddress::parse_address(server).ok_or_else(wrong)?;
        let path = path.trim_end_matches('/');
        // With an @ further on, a part of a password was taken for a server. ~ has a meaning for shells alone.
        let is_odd = path.starts_with('~') || path.contains('@') || path.chars().any(char::is_control);
        if is_odd || path.split('/').any(|part| ["", ".", ".."].contains(&part)) {
            return Err(wrong());
        }
        let target = Target {
            name: server.to_owned(),
            address: address.to_owned(),
            port,
            user: user.map(str::to_owned),
            surroundings: surroundings.clone(),
            ..Target::default()
        };
        Ok(BackupHost::new(target, format!("{SSH_SCHEME}{server}"), format!("/{path}")))
    }

    /// The same, and the name of a backup in it: of `ssh://USER@ADDRESS:PORT/DIRECTORY/NAME`.
    ///
    /// # Errors
    /// Why it is no such address.
    pub fn parse_backup(text: &str, surroundings: &Arc<ProcessEnvironment>) -> Result<(BackupHost, String), String> {
        let (place, name) = text.trim_end_matches('/').rsplit_once('/').unwrap_or((text, ""));
        match is_name(name) {
            true => Ok((BackupHost::parse_place(place, surroundings)?, name.to_owned())),
            false => Err("write ssh://USER@ADDRESS:PORT/DIRECTORY/NAME, as windlass etcd backup prints it".to_owned()),
        }
    }

    /// Of a host that a resource describes. `directory`: absolute, without a slash at the end. Nothing of this machine is used to reach it
    /// if the target is confined.
    pub fn of_target(target: Target, directory: &str) -> BackupHost {
        let address = match target.address.contains(':') {
            true => format!("[{}]", target.address),
            false => target.address.clone(),
        };
        let user = target.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let port = target.port.map(|port| format!(":{port}")).unwrap_or_default();
        BackupHost::new(target, format!("{SSH_SCHEME}{user}{address}{port}"), directory.to_owned())
    }

    pub(super) fn new(target: Target, server: String, directory: String) -> BackupHost {
        BackupHost { target, server, directory, remote: OnceCell::new() }
    }

    /// `ssh://USER@ADDRESS:PORT/DIRECTORY`
    pub fn host_address(&self) -> PathBuf {
        PathBuf::from(format!("{}{}", self.server, self.directory))
    }

    fn address_of(&self, name: &str) -> PathBuf {
        self.host_address().join(name)
    }

    fn path(&self, name: &str, file: &str) -> String {
        format!("{}/{name}/{file}", self.directory)
    }

    async fn remote(&self) -> Result<&Remote, BackupError> {
        let open = async || {
            let connection = connection::open(&self.target).await?;
            Remote::open(&Sessions::new(connection), None, &IndexMap::new()).await
        };
        self.remote.get_or_try_init(open).await.map_err(|error| self.failure(error))
    }

    fn failure(&self, error: remote::Error) -> BackupError {
        use crate::connection::Error::Unreachable;
        let hint = match &error {
            // One that a document describes is reached as that says.
            remote::Error::Connection(Unreachable { .. }) if self.target.fingerprint.is_none() => {
                let server = self.server.trim_start_matches(SSH_SCHEME);
                format!(
                    "\nhint: ssh must reach {server} from here without a password, and know its host key: log in once"
                )
            }
            _ => String::new(),
        };
        self.unusable(format!("{error}{hint}"))
    }

    fn unusable(&self, why: String) -> BackupError {
        BackupError::Host { path: self.host_address(), why }
    }

    /// The failure of a program on the host, by its last line.
    fn refusal(&self, answer: &Output) -> BackupError {
        let words = String::from_utf8_lossy(&answer.stderr);
        let line = words.lines().map(str::trim).rfind(|line| !line.is_empty());
        self.unusable(line.unwrap_or("no error message").to_owned())
    }

    /// Refuses a directory that does not belong to the login user, or that others can write to. One that does not exist is no failure.
    pub(super) async fn check_host(&self) -> Result<(), BackupError> {
        let remote = self.remote().await?;
        let found = remote.stat(&self.directory, Links::Follow).await.map_err(|error| self.failure(error))?;
        match found {
            Some(found) if found.kind != FileKind::Directory => Err(self.unusable("it is not a directory".to_owned())),
            Some(found) if found.mode & 0o022 != 0 || found.user != remote.user() => {
                let (owner, mode, user) = (found.user, found.mode, remote.user());
                let why = match mode & 0o022 {
                    0 => format!("it belongs to {owner}, and not to {user}"),
                    _ => format!("others can write to it (user {owner}, mode {mode:04o})"),
                };
                Err(BackupError::OpenDirectory { path: self.host_address(), why })
            }
            _ => Ok(()),
        }
    }

    /// The backups in the directory, the newest first. Of each the manifest was read, and the sizes of its files compared with it.
    ///
    /// # Errors
    /// The host does not answer, or the directory does not exist or cannot be read.
    pub async fn list_on_host(&self) -> Result<Vec<Backup>, BackupError> {
        let remote = self.remote().await?;
        let script = Command::shell(LIST.replace("PARTS", &PARTS.join(" ")).replace("MANIFEST", MANIFEST));
        let script = Command { directory: Some(self.directory.clone()), ..script };
        let answer = remote.query(&script).await.map_err(|error| self.failure(error))?;
        if answer.code != 0 {
            return Err(self.refusal(&answer));
        }
        let texts: Vec<&[u8]> = answer.stdout.split(|&byte| byte == 0).collect();
        let mut backups = Vec::new();
        // A name, the size of each part, whether there is a manifest, and the manifest.
        for fields in texts.chunks_exact(PARTS.len() + 3) {
            let [name, sizes @ .., has_manifest, text] = fields else { continue };
            let Some(name) = std::str::from_utf8(name).ok().filter(|name| is_name(name)) else { continue };
            let size = |part: &str| {
                let at = PARTS.iter().position(|known| *known == part)?;
                std::str::from_utf8(sizes[at]).ok()?.parse().ok()
            };
            if has_manifest.is_empty() && sizes.iter().all(|size| size.is_empty()) {
                continue;
            }
            let manifest = match (has_manifest.is_empty(), text.len() > LARGEST_MANIFEST) {
                _ if sizes.iter().chain([has_manifest]).any(|text| *text == b"?") => {
                    Err(format!("cannot be read by {}", remote.user()))
                }
                (true, _) => Err("no manifest".to_owned()),
                (false, true) => Err("damaged manifest: it is too large".to_owned()),
                (false, false) => parse_manifest(text),
            };
            let manifest = manifest.and_then(|manifest| manifest.compare_sizes(size).map(|()| manifest));
            backups.push(Backup { name: name.to_owned(), path: self.address_of(name), manifest });
        }
        super::sort_backups(&mut backups);
        Ok(backups)
    }

    /// Reads all of a backup on its host, and compares it with its manifest; or why it is not good.
    ///
    /// # Errors
    /// The host does not answer.
    pub async fn verify_on_host(&self, backup: &Backup) -> Result<Result<Manifest, String>, BackupError> {
        let manifest = match &backup.manifest {
            Ok(manifest) => manifest.clone(),
            Err(why) => return Ok(Err(why.clone())),
        };
        let remote = self.remote().await?;
        for file in manifest.files() {
            match remote.digest(&self.path(&backup.name, file.name), Digest::Sha256).await {
                Ok(Some(sha256)) if sha256 == file.sha256 => {}
                Ok(Some(_)) => return Ok(Err(DIFFERS.to_owned())),
                Ok(None) => return Ok(Err(format!("damaged: it has no {}", file.name))),
                Err(error @ remote::Error::Refused { .. }) => return Ok(Err(format!("cannot be read: {error}"))),
                Err(error) => return Err(self.failure(error)),
            }
        }
        Ok(Ok(manifest))
    }

    /// Copies a backup whose files are in a directory to the host, and reads it there.
    pub(super) async fn keep_on_host(
        &self,
        files: &Path,
        prepared: &Prepared,
        retention: &Retention,
    ) -> Result<BackupResult, BackupError> {
        let remote = self.remote().await?;
        let failed = |error| self.failure(error);
        if !remote.is_directory(&self.directory).await.map_err(failed)? {
            let private = Attributes { mode: Some(0o700), ..Attributes::default() };
            remote.make_directory(&self.directory, &private).await.map_err(failed)?;
        }
        self.check_host().await?;
        let mut earlier = self.list_on_host().await?;
        let manifest = &prepared.manifest;
        if let Some(backup) = check_history(&self.host_address(), &earlier, prepared, |backup| backup.manifest.is_ok())?
            && let Ok(found) = self.verify_on_host(backup).await?
        {
            return Ok(BackupResult::of_earlier(backup.clone(), found, manifest));
        }
        let name = manifest.backup_name();
        let is_there = remote.stat(&format!("{}/{name}", self.directory), Links::Keep).await.map_err(failed)?;
        // Of a local backup: a good copy would have been found by its digest.
        if is_there.is_some() && prepared.is_local {
            return Err(BackupError::DamagedCopy { path: self.address_of(&name) });
        }
        let partial = format!("{UPLOAD}{:016x}", rand::random::<u64>());
        let private = Attributes { mode: Some(0o700), ..Attributes::default() };
        remote.make_directory(&format!("{}/{partial}", self.directory), &private).await.map_err(failed)?;
        // They may fill the disk.
        let cleaned = self.remove_abandoned_uploads(&partial).await;
        if let Err(error) = self.upload(&partial, &name, files, manifest).await {
            // What is wrong is known already; what stays is removed later.
            drop(remote.remove(&format!("{}/{partial}", self.directory)).await);
            return Err(error);
        }
        let backup = Backup { path: self.address_of(&name), name, manifest: Ok(manifest.clone()) };
        let mut made = BackupResult::of(backup, manifest.clone());
        if let Err(error) = cleaned {
            made.failures.push(format!("an abandoned upload cannot be removed: {error}"));
        }
        if !retention.keeps_all() && prepared.doubt.is_none() {
            // Damaged ones do not count. If that cannot be said, none is removed.
            for backup in &mut earlier {
                match self.verify_on_host(backup).await {
                    Ok(manifest) => backup.manifest = manifest,
                    Err(error) => {
                        made.failures.push(format!("older ones cannot be removed: {error}"));
                        return Ok(made);
                    }
                }
            }
        }
        let remove = async |backup: &Backup, _: &Manifest| {
            // It loses its manifest first: one that is half removed is no backup.
            remote.remove(&self.path(&backup.name, MANIFEST)).await?;
            remote.remove(&format!("{}/{}", self.directory, backup.name)).await
        };
        remove_superseded(&mut made, prepared, retention, earlier, remove).await;
        Ok(made)
    }

    /// Writes the files into the directory `partial`, which gets the name of the backup then.
    async fn upload(&self, partial: &str, name: &str, files: &Path, manifest: &Manifest) -> Result<(), BackupError> {
        let remote = self.remote().await?;
        let failed = |error| self.failure(error);
        let private = Attributes { mode: Some(0o600), ..Attributes::default() };
        let directory = format!("{}/{partial}", self.directory);
        let text = files.join(MANIFEST);
        let (_, text_sha256) = digest(&text).map_err(io_error(&text))?;
        let parts = manifest.files();
        let all = parts.iter().map(|file| (file.name, &file.sha256)).chain([(MANIFEST, &text_sha256)]);
        for (file, sha256) in all {
            let to = format!("{directory}/{file}");
            let expected = ExpectedDigest::Sha256(sha256);
            remote.upload(&files.join(file), expected, &to, &private, &|_, _| ()).await.map_err(failed)?;
            if remote.digest(&to, Digest::Sha256).await.map_err(failed)?.as_ref() != Some(sha256) {
                return Err(BackupError::Changed { path: self.address_of(name), why: DIFFERS.to_owned() });
            }
        }
        remote.flush(&directory).await.map_err(failed)?;
        let to = format!("{}/{name}", self.directory);
        let moved = remote.run(&Command::program(["mv", "-T", "--", &directory, &to])).await.map_err(failed)?;
        if moved.code != 0 {
            return Err(self.refusal(&moved));
        }
        remote.flush(&self.directory).await.map_err(failed)
    }

    /// Removes what processes that were killed left, long before the upload `newest` began.
    async fn remove_abandoned_uploads(&self, newest: &str) -> Result<(), remote::Error> {
        let Some(remote) = self.remote.get() else { return Ok(()) };
        let time = async |name: &str| {
            let found = remote.stat(&format!("{}/{name}", self.directory), Links::Keep).await?;
            Ok::<_, remote::Error>(found.map(|found| found.mtime))
        };
        let Some(now) = time(newest).await? else { return Ok(()) };
        for name in remote.list_directory(&self.directory).await?.unwrap_or_default() {
            if name.starts_with(UPLOAD) && time(&name).await?.is_some_and(|then| now - then > ABANDONED) {
                remote.remove(&format!("{}/{name}", self.directory)).await?;
            }
        }
        Ok(())
    }

    /// Downloads a backup into a directory below `scratch`, and compares it with its manifest.
    ///
    /// # Errors
    /// It does not exist, is damaged, or cannot be written.
    pub async fn download_backup(&self, name: &str, scratch: &Path) -> Result<FetchedBackup, BackupError> {
        let remote = self.remote().await?;
        let path = self.address_of(name);
        let unusable = |why| BackupError::Unusable { path: path.clone(), why };
        let is_there = remote.is_directory(&format!("{}/{name}", self.directory)).await;
        if !is_name(name) || !is_there.map_err(|error| self.failure(error))? {
            return Err(unusable("there is no such backup".to_owned()));
        }
        let staging = Staging::clean_in(scratch)?;
        let directory = staging.path().join(name);
        std::fs::create_dir(&directory).map_err(io_error(&directory))?;
        let receive = async |file: &str, most: u64| {
            let from = self.path(name, file);
            match remote.stat(&from, Links::Keep).await.map_err(|error| self.failure(error))? {
                None => Err(unusable(format!("damaged: it has no {file}"))),
                Some(found) if found.kind != FileKind::File => Err(unusable(format!("damaged: its {file} is no file"))),
                Some(found) if found.size > most => Err(unusable(format!("damaged: its {file} is too large"))),
                Some(_) => remote.download(&from, &directory.join(file)).await.map_err(|error| self.failure(error)),
            }
        };
        receive(MANIFEST, LARGEST_MANIFEST as u64).await?;
        let found = manifest(&directory).map_err(unusable)?;
        for file in found.files() {
            receive(file.name, file.size).await?;
            let to = directory.join(file.name);
            if digest(&to).map_err(io_error(&to))? != (file.size, file.sha256) {
                return Err(unusable(DIFFERS.to_owned()));
            }
        }
        Ok(FetchedBackup::downloaded(directory, path, staging))
    }
}

/// Prints, of each directory: its name, the sizes of its files, whether it has a manifest, and the manifest; a NUL follows each of them.
/// `?`: it cannot be read.
const LIST: &str = r#"
[ -r . ] || { echo 'the directory cannot be read: Permission denied' >&2; exit 1; }
for name in *; do
  { [ -d "$name" ] && ! [ -L "$name" ]; } || continue
  printf '%s\0' "$name"
  for part in PARTS; do
    if ! { [ -r "$name" ] && [ -x "$name" ]; }; then printf '?'
    elif [ -f "$name/$part" ] && ! [ -L "$name/$part" ]; then
      if [ -r "$name/$part" ]; then wc -c <"$name/$part" | tr -d ' \n'; else printf '?'; fi
    fi
    printf '\0'
  done
  if ! [ -f "$name/MANIFEST" ] || [ -L "$name/MANIFEST" ]; then printf '\0'
  elif ! [ -r "$name/MANIFEST" ]; then printf '?\0'
  else
    printf 'yes\0'
    head -c 1048577 <"$name/MANIFEST" | tr '\000' '\001'
  fi
  printf '\0'
done"#;

/// Whether a directory with this name may be a backup. Others may have renamed one.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && !name.starts_with(['.', '-']) && name.bytes().all(is_plain)
}
