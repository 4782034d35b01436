//! `authorized_key`: who may log in as a user with which key.

mod keys;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::Deserialize;

use self::keys::DesiredKeys;
use super::accounts::{self, Account};
use super::{Changes, Controller, Error, Module, Outcome, Plan, file_diff, host_links, host_path};
use crate::http::follow::{Redirects, RequestOptions};
use crate::http::network::Network;
use crate::http::{HttpError, Request, Url};
use crate::modules::web::TlsFiles;
use crate::remote::{Attributes, FileKind, Links, Probe, Remote, Stat};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

/// How long a server of keys may take.
const FETCH_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuthorizedKey {
    user: String,
    key: String,
    path: Option<String>,
    manage_dir: bool,
    state: State,
    key_options: Option<String>,
    exclusive: bool,
    validate_certs: bool,
    comment: Option<String>,
    follow: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Present,
    Absent,
}

pub(super) struct AuthorizedKeyChange {
    path: String,
    text: String,
    uid: u32,
    gid: u32,
    outcome: Outcome,
}

impl Module for AuthorizedKey {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "authorized_key",
        collection: "ansible.posix",
        summary: "Add or remove the SSH keys that may log in as a user",
        arguments: &[
            Argument::new("user", ArgumentKind::Str, "The user of the host").required(),
            Argument::new(
                "key",
                ArgumentKind::Str,
                "Public keys, one on each line; or the http address or file:// path on the host of such a list",
            )
            .required(),
            Argument::new("path", ArgumentKind::Path, "The file (default: .ssh/authorized_keys of the user)"),
            Argument::new(
                "manage_dir",
                ArgumentKind::Bool,
                "Whether to create the file's directory and close it to other users",
            )
            .default("true"),
            Argument::new("state", ArgumentKind::Str, "Whether the keys should be in the file")
                .default("present")
                .choices(&["present", "absent"]),
            Argument::new("key_options", ArgumentKind::Str, "Options of the keys, in sshd's format; one line"),
            Argument::new("exclusive", ArgumentKind::Bool, "Whether to remove all other keys from the file")
                .default("false"),
            Argument::new(
                "validate_certs",
                ArgumentKind::Bool,
                "Whether to check the certificate of the server that sends the keys",
            )
            .default("true"),
            Argument::new("comment", ArgumentKind::Str, "The comment of the keys, instead of theirs"),
            Argument::new(
                "follow",
                ArgumentKind::Bool,
                "Whether to write through a symbolic link instead of replacing it",
            )
            .default("false"),
        ],
        free_form: None,
        example: r#"
- name: Allow only the deployment keys
  ansible.posix.authorized_key:
    user: deploy
    key: "{{ lookup('file', 'keys/deploy.pub') }}"
    exclusive: true

- name: Allow a key that can only make backups
  ansible.posix.authorized_key:
    user: backup
    key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH6mXH9dVYQyZgK7lTzv0Wn1sRjJ1r0o4r8pD5eUuV2b backup@store
    key_options: restrict,command="/usr/local/bin/backup"
"#,
        returns: &[
            Return::new("keyfile", "The file"),
            Return::new("user", "The user"),
            Return::new("key", "The keys as given"),
            Return::new("key_options", "The options of the keys"),
            Return::new("path", "The path as given"),
            Return::new("state", "Present or absent; with path what the file is"),
            Return::new("exclusive", "Whether all other keys are removed"),
            Return::new("manage_dir", "Whether the directory is managed"),
            Return::new("validate_certs", "Whether certificates are checked"),
        ],
    };
    type Change = AuthorizedKeyChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<AuthorizedKeyChange>, Error> {
        let given = self.given(probe).await?;
        let account = accounts::read_accounts(probe, &self.user).await?.account;
        let Some(path) = self.path(probe, account.as_ref()).await? else {
            return self.plan_without_user(here);
        };
        let old = probe.read_file(&path).await?.unwrap_or_default();
        let text =
            String::from_utf8(old).map_err(|_| Error::failed(format!("cannot edit {path}: it is not UTF-8 text")))?;
        let desired = match (self.state, self.exclusive) {
            (State::Absent, _) => DesiredKeys::Absent,
            (State::Present, true) => DesiredKeys::Exclusive,
            (State::Present, false) => DesiredKeys::Present,
        };
        let edited = keys::edited(&text, &given, desired);
        let outcome = self.outcome(&path);
        if edited == text {
            return Ok(Plan::Unchanged(outcome));
        }
        let diff = match here.diff && !here.no_log {
            true => vec![file_diff::content(
                &path,
                &file_diff::Side::Text(text.as_bytes()),
                &path,
                &file_diff::Side::Text(edited.as_bytes()),
            )],
            false => Vec::new(),
        };
        let (uid, gid) = match account {
            Some(account) => (account.uid, account.gid),
            // With a path argument, check mode works without the user.
            None if here.check => (0, 0),
            None => return Err(self.no_user()),
        };
        let change = AuthorizedKeyChange { path, text: edited, uid, gid, outcome: outcome.clone() };
        Ok(Plan::Change { diff, outcome, change })
    }

    async fn apply(&self, change: AuthorizedKeyChange, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let owned = |mode| Attributes {
            owner: Some(change.uid.to_string()),
            group: Some(change.gid.to_string()),
            mode: Some(mode),
        };
        let directory = host_path::parent(&change.path);
        match remote.stat(directory, Links::Follow).await? {
            _ if self.manage_dir => {
                let above = host_path::parent(directory);
                if remote.stat(above, Links::Follow).await?.is_none() {
                    return Err(Error::failed(format!(
                        "cannot create {directory}: the directory {above} does not exist"
                    )));
                }
                remote.make_directory(directory, &owned(0o700)).await?;
            }
            Some(stat) if stat.kind == FileKind::Directory => {}
            _ => remote.make_directory(directory, &Attributes::default()).await?,
        }
        // Others' keys, or ones that others may write, would not count: sshd ignores such a file.
        remote.write(&change.path, change.text.as_bytes(), &owned(0o600)).await?;
        Ok(change.outcome)
    }
}

impl AuthorizedKey {
    async fn given(&self, probe: &Probe) -> Result<Vec<keys::Key>, Error> {
        let is_url = self.key.starts_with("http://") || self.key.starts_with("https://");
        let path = self.key.strip_prefix("file://");
        let text = if is_url {
            self.fetch(probe).await?
        } else if let Some(path) = path {
            host_links::stat_target(probe, path).await?;
            let content = probe.read_file(path).await?;
            let content = content.ok_or_else(|| Error::failed(format!("no such file of keys on the host: {path}")))?;
            String::from_utf8_lossy(&content).into_owned()
        } else {
            self.key.clone()
        };
        let given = keys::given(&text, self.key_options.as_deref(), self.comment.as_deref())?;
        // An answer without keys, such as an empty one, would remove all keys.
        if given.is_empty() && self.exclusive && self.state == State::Present && (is_url || path.is_some()) {
            return Err(Error::Failed {
                message: format!("authorized_key: {} contains no key", self.key_source()),
                hint: Some("check the list; to remove all keys, use key: \"\" with exclusive: true".to_owned()),
            });
        }
        Ok(given)
    }

    /// Where the keys are from, without a password.
    fn key_source(&self) -> String {
        Url::parse(&self.key).map_or_else(|_| self.key.clone(), |url| url.to_string())
    }

    async fn fetch(&self, probe: &Probe) -> Result<String, Error> {
        let url = Url::parse(&self.key).map_err(|why| Error::failed(format!("invalid URL of the keys: {why}")))?;
        let failed = |words: String| Error::failed(format!("cannot get keys from {url}: {words}"));
        let tls = TlsFiles::default().load_tls(probe, self.validate_certs).await?;
        let network = Network::load_network(probe, true, true).await?;
        let redirects = Redirects::Safe;
        let manner = RequestOptions { tls: &tls, limit: FETCH_LIMIT, redirects, unredirected: &[], network: &network };
        let mut request = Request::get(url.clone());
        request.log_in(&network);
        request.headers.push(("User-Agent".to_owned(), "ansible-httpget".to_owned()));
        match manner.send(probe, &mut request, None).await {
            Ok(response) if response.status == 200 => Ok(String::from_utf8_lossy(&response.body).into_owned()),
            Ok(response) => Err(failed(format!("HTTP Error {}: {}", response.status, response.reason))),
            Err(HttpError::Host(error)) => Err(error.into()),
            Err(failure) => Err(failed(failure.to_string())),
        }
    }

    /// The file; None if it is in the home of a user who does not exist.
    async fn path(&self, probe: &Probe, account: Option<&Account>) -> Result<Option<String>, Error> {
        let path = match (&self.path, account) {
            (Some(path), _) => probe.expand_on_host(path).await?,
            (None, Some(account)) => host_path::join_path(&account.home, ".ssh/authorized_keys"),
            (None, None) => return Ok(None),
        };
        let is_link = |stat: Option<Stat>| stat.is_some_and(|stat| stat.kind == FileKind::Link);
        let directory = host_path::parent(&path);
        if is_link(probe.stat(directory, Links::Keep).await?) {
            host_links::real_path(probe, directory).await?;
        }
        if !is_link(probe.stat(&path, Links::Keep).await?) {
            return Ok(Some(path));
        }
        let real = host_links::real_path(probe, &path).await?;
        Ok(Some(if self.follow { real } else { path }))
    }

    /// In check mode an earlier task would have created the user.
    fn plan_without_user(&self, here: &Controller<'_>) -> Result<Plan<AuthorizedKeyChange>, Error> {
        let path = format!("~{}/.ssh/authorized_keys", self.user);
        let outcome = self.outcome(&path);
        match self.state {
            State::Present if !here.check => Err(self.no_user()),
            State::Present => {
                let change =
                    AuthorizedKeyChange { path, text: String::new(), uid: 0, gid: 0, outcome: outcome.clone() };
                Ok(Plan::Change { diff: Vec::new(), outcome, change })
            }
            State::Absent if here.check => Ok(Plan::Unchanged(outcome)),
            State::Absent => Err(self.no_user()),
        }
    }

    fn no_user(&self) -> Error {
        Error::failed(format!("failed to look up user {}: the host has no such user", self.user))
    }

    fn outcome(&self, path: &str) -> Outcome {
        let text = |text: &Option<String>| text.as_deref().map_or(Value::from(()), Value::from);
        Outcome::default()
            .with("keyfile", path)
            .with("user", self.user.as_str())
            .with("key", self.key.as_str())
            .with("key_options", text(&self.key_options))
            .with("path", text(&self.path))
            .with("state", if self.state == State::Present { "present" } else { "absent" })
            .with("exclusive", self.exclusive)
            .with("manage_dir", self.manage_dir)
            .with("comment", text(&self.comment))
            .with("follow", self.follow)
            .with("validate_certs", self.validate_certs)
    }
}
