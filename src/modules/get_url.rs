//! `get_url`: downloads a file to a host, as the host sees the network. What comes is kept on the controller until it is
//! known to be right; only then is the host touched.

mod checksum;
mod fetched;
#[cfg(test)]
mod tests;

use std::time::Instant;

use indexmap::IndexMap;
use serde::Deserialize;

use self::checksum::Checksum;
use self::fetched::{Answer, DownloadSource, Fetched};
use super::file_attributes::{self, DesiredAttributes, is_empty};
use super::file_write::{self, Content, DesiredFile, Destination, Write};
use super::{Changes, Controller, Error, Module, Outcome, Plan, file_arguments, host_links, host_path};
use crate::modules::web;
use crate::remote::{Attributes, Digest, FileKind, Links, Probe, Remote, Stat};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetUrl {
    url: String,
    dest: String,
    checksum: String,
    force: bool,
    backup: bool,
    headers: IndexMap<String, Value>,
    unredirected_headers: Vec<String>,
    timeout: u64,
    validate_certs: bool,
    client_cert: Option<String>,
    client_key: Option<String>,
    url_username: Option<String>,
    url_password: Option<String>,
    force_basic_auth: bool,
    http_agent: String,
    decompress: bool,
    use_proxy: bool,
    use_netrc: bool,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
}

pub(super) enum GetUrlChange {
    File { write: Box<Write>, fetched: Fetched },
    Attributes { path: String, attributes: Attributes },
}

/// A change, and the known part of its result.
pub(super) struct Planned {
    change: GetUrlChange,
    outcome: Outcome,
}

impl Module for GetUrl {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "get_url",
        collection: "ansible.builtin",
        summary: "Download a file to a host, through the host's network",
        arguments: &[
            Argument::new(
                "url",
                ArgumentKind::Str,
                "The address, http or https; with file the path of a file on the host",
            )
            .required(),
            Argument::new("dest", ArgumentKind::Path, "The path on the host; in a directory the server names the file")
                .required(),
            Argument::new(
                "checksum",
                ArgumentKind::Str,
                "The expected checksum: algorithm:digest, or algorithm:address of a list of digests",
            )
            .default(""),
            Argument::new(
                "force",
                ArgumentKind::Bool,
                "Whether to download it even if it did not change since dest was written",
            )
            .default("false"),
            file_arguments::BACKUP,
            web::HEADERS,
            Argument::new(
                "unredirected_headers",
                ArgumentKind::List(&ArgumentKind::Str),
                "Names of headers to send to the first server only, not after a redirect",
            )
            .default("[]"),
            Argument::new("timeout", ArgumentKind::Int, "Timeout for the server's answers, in seconds").default("10"),
            web::VALIDATE_CERTS,
            web::CLIENT_CERT,
            web::CLIENT_KEY,
            Argument::new("url_username", ArgumentKind::Str, "The user to log in as").alias(&["username"]),
            web::URL_PASSWORD,
            web::FORCE_BASIC_AUTH,
            web::HTTP_AGENT,
            Argument::new("decompress", ArgumentKind::Bool, "Whether to decompress a compressed response")
                .default("true"),
            web::USE_PROXY,
            web::USE_NETRC,
            file_arguments::OWNER,
            file_arguments::GROUP,
            file_arguments::MODE,
            file_arguments::ATTRIBUTES,
            file_arguments::SEUSER,
            file_arguments::SEROLE,
            file_arguments::SETYPE,
            file_arguments::SELEVEL,
            file_arguments::UNSAFE_WRITES,
        ],
        free_form: None,
        example: r#"
- name: Download a release and check its digest
  get_url:
    url: https://releases.example.org/tool-1.4.tar.gz
    dest: /opt/tool-1.4.tar.gz
    checksum: sha256:https://releases.example.org/SHA256SUMS
    mode: "0644"

- name: Download a file with a login, every time
  get_url:
    url: https://files.example.org/private/settings.json
    dest: /etc/tool/
    url_username: deploy
    url_password: "{{ files_password }}"
    force: true
    backup: true
"#,
        returns: &[
            Return::new("dest", "The path of the file"),
            Return::new("url", "The requested address"),
            Return::new("status_code", "The status code of the response"),
            Return::new("response", "The response body, when the download failed"),
            Return::new("elapsed", "How many seconds the download took"),
            Return::new("checksum_src", "SHA-1 of what was downloaded"),
            Return::new("checksum_dest", "SHA-1 of the file that was there, null if there was none"),
            Return::new("md5sum", "MD5 of what was downloaded"),
            file_arguments::returns::BACKUP_FILE,
            file_arguments::returns::MODE,
            file_arguments::returns::OWNER,
            file_arguments::returns::GROUP,
            file_arguments::returns::UID,
            file_arguments::returns::GID,
            file_arguments::returns::SIZE,
            Return::new("state", "File or link"),
        ],
    };
    type Change = Planned;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<Planned>, Error> {
        let url =
            DownloadSource::parse_source(&self.url).map_err(|why| Error::failed(format!("invalid URL: {why}")))?;
        let dest = probe.expand_on_host(&self.dest).await?;
        let checksum = match self.checksum.as_str() {
            "" => None,
            text => Some(self.wanted_checksum(probe, &url, text).await?),
        };
        let there = host_links::stat_target(probe, &dest).await?;
        let is_directory = there.as_ref().is_some_and(|stat| stat.kind == FileKind::Directory);
        let mut force = self.force;
        if let (Some(stat), Some(checksum), false, false) = (&there, &checksum, is_directory, force) {
            if probe.digest(&dest, checksum.algorithm).await?.as_ref() == Some(&checksum.digest) {
                return self.plan_attributes(probe, here, &dest, stat).await;
            }
            // What is there is wrong, however new.
            force = true;
        }
        let unchanged = there.filter(|_| !is_directory && !force);
        let since = unchanged.as_ref().map(|stat| stat.mtime);
        let clock = Instant::now();
        let answer = self.fetch(probe, url.clone(), since, force).await;
        let outcome = Outcome::default().with("url", url.to_string()).with("dest", dest.as_str());
        let outcome = outcome.with("elapsed", clock.elapsed().as_secs());
        let fetched = match answer? {
            Answer::File(fetched) => fetched,
            Answer::Unchanged(words) => {
                let mut outcome = outcome.with("status_code", 304);
                let Some(stat) = unchanged else {
                    outcome.failed = Some(format!("Request failed: {words}, although the request was unconditional"));
                    return Ok(Plan::Unchanged(outcome));
                };
                return Ok(Plan::Unchanged(file_attributes::add_attributes(outcome.message(words), &stat)));
            }
            Answer::Refused { status, words } => {
                let mut outcome = outcome.with("status_code", status).with("response", words.as_str());
                outcome.failed = Some(format!("Request failed: {words}"));
                return Ok(Plan::Unchanged(outcome));
            }
        };
        if let Some(checksum) = &checksum {
            checksum.check_checksum(&url, fetched.fetched_digest(checksum.algorithm).await?)?;
        }
        let dest = if is_directory { host_path::join_path(&dest, &fetched.name) } else { dest };
        self.plan_file(probe, here, dest, fetched, outcome).await
    }

    async fn apply(&self, planned: Planned, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let mut outcome = planned.outcome;
        let path = match planned.change {
            GetUrlChange::Attributes { path, attributes } => {
                remote.set_attributes(&path, &attributes, Links::Follow).await?;
                path
            }
            GetUrlChange::File { write, fetched } => {
                let path = write.path.clone();
                if let Some(backup) = write.apply_write(remote, here).await? {
                    outcome = outcome.with("backup_file", backup);
                }
                drop(fetched);
                path
            }
        };
        Ok(match remote.stat(&path, Links::Follow).await? {
            Some(stat) => file_attributes::add_attributes(outcome, &stat),
            None => outcome,
        })
    }
}

impl GetUrl {
    /// The file that is there is right; its attributes may not be.
    async fn plan_attributes(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        path: &str,
        stat: &Stat,
    ) -> Result<Plan<Planned>, Error> {
        let lacking = self.wanted(probe).await?.lacking(stat);
        let outcome = Outcome::default().with("dest", path).with("url", shown(&self.url)).with("elapsed", 0);
        // Nothing came, so nothing was compared: both are null in Ansible's result, too.
        let outcome = outcome.with("checksum_src", Value::from(())).with("checksum_dest", Value::from(()));
        if is_empty(&lacking) {
            return Ok(Plan::Unchanged(file_attributes::add_attributes(outcome.message("file already exists"), stat)));
        }
        let diff = file_attributes::attributes_diff(path, stat, &lacking).filter(|_| here.diff).into_iter().collect();
        let outcome = outcome.message("file already exists but file attributes changed");
        let change = GetUrlChange::Attributes { path: path.to_owned(), attributes: lacking };
        Ok(Plan::Change { diff, outcome: outcome.clone(), change: Planned { change, outcome } })
    }

    /// Compares the download with the existing file.
    async fn plan_file(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        dest: String,
        fetched: Fetched,
        outcome: Outcome,
    ) -> Result<Plan<Planned>, Error> {
        let wanted = self.wanted(probe).await?;
        let nothing = DesiredAttributes::default();
        let source = shown(&self.url);
        let desired = || DesiredFile {
            content: Content::Local(fetched.local_path()),
            wanted: &wanted,
            directories: &nothing,
            backup: self.backup,
            validate: None,
            secret: false,
            source: &source,
        };
        let mut destination = Destination::find_destination(probe, &dest, None, true).await?;
        let mut found = file_write::compare_file(probe, here, &destination, desired()).await?;
        let old = destination.there.as_ref().and_then(|(_, digest)| digest.clone());
        // A link to the same content is kept; with other content the link is replaced, not its target.
        if destination.path != dest && found.write.as_ref().is_some_and(|write| write.content.is_some()) {
            destination = Destination::find_destination(probe, &dest, None, false).await?;
            found = file_write::compare_file(probe, here, &destination, desired()).await?;
            if let Some(write) = &mut found.write {
                write.back_up = self.backup && old.is_some();
            }
        }
        let outcome = outcome
            .with("dest", dest)
            .with("checksum_src", found.digests.sha1.as_str())
            .with("checksum_dest", old.map_or(Value::from(()), Value::from))
            .with("md5sum", found.digests.md5.as_str())
            .with("status_code", fetched.status)
            .message(fetched.words.as_str());
        Ok(match (found.write, &destination.there) {
            (Some(write), _) => {
                let change = GetUrlChange::File { write: Box::new(write), fetched };
                Plan::Change { diff: found.diff, outcome: outcome.clone(), change: Planned { change, outcome } }
            }
            (None, Some((stat, _))) => Plan::Unchanged(file_attributes::add_attributes(outcome, stat)),
            (None, None) => Plan::Unchanged(outcome),
        })
    }

    async fn wanted(&self, probe: &Probe) -> Result<DesiredAttributes, Error> {
        DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref()).await
    }

    /// The digest that the task asks for, from a list on a server if it says so.
    async fn wanted_checksum(&self, probe: &Probe, url: &DownloadSource, text: &str) -> Result<Checksum, Error> {
        let (algorithm, digest) = checksum::split_checksum(text)?;
        if !digest.contains("://") {
            return Checksum::parse_checksum(algorithm, digest);
        }
        let of_no_use = |why| Error::failed(format!("invalid URL of the checksum: {why}"));
        let list = DownloadSource::parse_source(digest).map_err(of_no_use)?;
        let text = self.fetch_text(probe, list.clone()).await?;
        let name = fetched::file_name(url.source_path());
        match checksum::find_digest(&text, &name) {
            Some(digest) => Checksum::parse_checksum(algorithm, digest),
            None => Err(Error::failed(format!("unable to find a checksum for file {name:?} in {list}"))),
        }
    }
}

/// An address without a password in it.
fn shown(url: &str) -> String {
    DownloadSource::parse_source(url).map(|url| url.to_string()).unwrap_or_default()
}

/// The algorithm of a name.
fn algorithm(name: &str) -> Option<Digest> {
    Some(match name.to_ascii_lowercase().as_str() {
        "md5" => Digest::Md5,
        "sha1" => Digest::Sha1,
        "sha224" => Digest::Sha224,
        "sha256" => Digest::Sha256,
        "sha384" => Digest::Sha384,
        "sha512" => Digest::Sha512,
        _ => return None,
    })
}
