//! `deb822_repository`: a source of packages in its own file, with its key.

use std::time::Duration;

use serde::Deserialize;

use super::Places;
use crate::http::follow::{Redirects, RequestOptions};
use crate::http::network::Network;
use crate::http::{HttpError, Request, Url};
use crate::modules::file_attributes::DesiredAttributes;
use crate::modules::file_write::{self, Content, DesiredFile, Destination, Write};
use crate::modules::web::TlsFiles;
use crate::modules::{Changes, Controller, Diff, Error, Module, Outcome, Plan};
use crate::remote::{FileKind, Links, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

const ARMOUR: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deb822Repository {
    name: String,
    state: State,
    mode: String,
    types: Vec<String>,
    uris: Option<Vec<String>>,
    suites: Option<Vec<String>>,
    components: Option<Vec<String>>,
    architectures: Option<Vec<String>>,
    languages: Option<Vec<String>>,
    targets: Option<Vec<String>>,
    signed_by: Option<String>,
    trusted: Option<bool>,
    enabled: Option<bool>,
    allow_downgrade_to_insecure: Option<bool>,
    allow_insecure: Option<bool>,
    allow_weak: Option<bool>,
    by_hash: Option<bool>,
    check_date: Option<bool>,
    check_valid_until: Option<bool>,
    date_max_future: Option<i64>,
    inrelease_path: Option<String>,
    pdiffs: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Present,
    Absent,
}

/// What is to be written, or removed.
pub(crate) struct Deb822Change {
    /// The key first: apt must not see a source whose key is missing.
    writes: Vec<Write>,
    remove: Vec<String>,
    outcome: Outcome,
}

/// What `Signed-By` says, and the file of the key if one is to be kept.
struct Key {
    signed_by: String,
    path: Option<String>,
    content: Option<Vec<u8>>,
}

impl Module for Deb822Repository {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "deb822_repository",
        collection: "ansible.builtin",
        summary: "Add, change or remove an apt repository in its own file, with its key",
        arguments: &[
            Argument::new("name", ArgumentKind::Str, "Its name, also the name of its files").required(),
            Argument::new("state", ArgumentKind::Str, "Whether it should exist")
                .default("present")
                .choices(&["absent", "present"]),
            Argument::new("mode", ArgumentKind::Mode, "Permissions of the file").default("0644"),
            Argument::new("types", ArgumentKind::List(&ArgumentKind::Str), "Programs, sources or both")
                .default("deb")
                .choices(&["deb", "deb-src"]),
            Argument::new("uris", ArgumentKind::List(&ArgumentKind::Str), "Addresses of the archive"),
            Argument::new(
                "suites",
                ArgumentKind::List(&ArgumentKind::Str),
                "Releases; or a path that ends with a slash",
            ),
            Argument::new(
                "components",
                ArgumentKind::List(&ArgumentKind::Str),
                "Components of the release; none with a path",
            ),
            Argument::new("architectures", ArgumentKind::List(&ArgumentKind::Str), "Architectures to fetch"),
            Argument::new("languages", ArgumentKind::List(&ArgumentKind::Str), "Languages of descriptions to fetch"),
            Argument::new("targets", ArgumentKind::List(&ArgumentKind::Str), "Kinds of package lists to fetch"),
            Argument::new(
                "signed_by",
                ArgumentKind::Str,
                "The key: an address, a path on the host, fingerprints, or the key itself",
            ),
            Argument::new("trusted", ArgumentKind::Bool, "Whether to trust it without a signature"),
            Argument::new("enabled", ArgumentKind::Bool, "Whether it is enabled"),
            Argument::new(
                "allow_downgrade_to_insecure",
                ArgumentKind::Bool,
                "Whether it may be unsigned after it was signed",
            ),
            Argument::new("allow_insecure", ArgumentKind::Bool, "Whether it may be unsigned"),
            Argument::new("allow_weak", ArgumentKind::Bool, "Whether its signature may be weak"),
            Argument::new("by_hash", ArgumentKind::Bool, "Whether to fetch lists by their digest"),
            Argument::new("check_date", ArgumentKind::Bool, "Whether to check dates against the host's clock"),
            Argument::new("check_valid_until", ArgumentKind::Bool, "Whether to refuse an expired list"),
            Argument::new("date_max_future", ArgumentKind::Int, "How many seconds a list's date may be in the future"),
            Argument::new("inrelease_path", ArgumentKind::Str, "The path of the InRelease file"),
            Argument::new("pdiffs", ArgumentKind::Bool, "Whether to fetch only changes of lists"),
        ],
        free_form: None,
        example: "\
- name: Add our package repository
  deb822_repository:
    name: ours
    uris: http://10.0.0.1:8000
    suites: ./
    signed_by: /etc/apt/keyrings/ours.asc
  register: ours

- name: Update the package lists when the repository changed
  apt:
    update_cache: true
  when: ours is changed
",
        returns: &[
            Return::new("repo", "The file's text"),
            Return::new("dest", "The file"),
            Return::new("key_filename", "The file with the key"),
        ],
    };
    type Change = Deb822Change;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<Deb822Change>, Error> {
        let places = Places::look(probe).await?;
        let slug = slug(&self.name);
        if slug.is_empty() {
            return Err(Error::failed(format!("{:?} is not a valid name: it has no letters or digits", self.name)));
        }
        let path = format!("{}/{slug}.sources", places.parts);
        match self.state {
            State::Absent => remove(probe, &places, &slug, path).await,
            State::Present => self.present(probe, here, &places, &slug, path).await,
        }
    }

    async fn apply(&self, change: Deb822Change, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        for write in change.writes {
            write.apply_write(remote, here).await?;
        }
        for path in change.remove {
            remote.remove(&path).await?;
        }
        Ok(change.outcome)
    }
}

impl Deb822Repository {
    async fn present(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        places: &Places,
        slug: &str,
        path: String,
    ) -> Result<Plan<Deb822Change>, Error> {
        let key = match &self.signed_by {
            Some(signed_by) => Some(self.key(probe, places, slug, signed_by).await?),
            None => None,
        };
        let text = self.text(key.as_ref().map(|key| key.signed_by.as_str()));
        let outcome = Outcome::default()
            .with("repo", text.as_str())
            .with("dest", path.as_str())
            .with("key_filename", key.as_ref().and_then(|key| key.path.clone()));
        let (mut writes, mut diff) = (Vec::new(), Vec::new());
        if let Some(Key { path: Some(path), content: Some(content), .. }) = key {
            let (write, its) = compare(probe, here, path, content, Some("0644")).await?;
            writes.extend(write);
            diff.extend(its);
        }
        let (write, its) = compare(probe, here, path, text.into_bytes(), Some(&self.mode)).await?;
        writes.extend(write);
        diff.extend(its);
        if writes.is_empty() {
            return Ok(Plan::Unchanged(outcome));
        }
        let change = Deb822Change { writes, remove: Vec::new(), outcome: outcome.clone() };
        Ok(Plan::Change { diff, outcome, change })
    }

    async fn key(&self, probe: &Probe, places: &Places, slug: &str, signed_by: &str) -> Result<Key, Error> {
        let file = |path: &str| Key { signed_by: path.to_owned(), path: Some(path.to_owned()), content: None };
        let is_path = signed_by.starts_with('/') && !signed_by.contains(['\n', ' ']);
        let stat = if is_path { probe.stat(signed_by, Links::Follow).await? } else { None };
        if stat.is_some_and(|stat| stat.kind == FileKind::File) {
            return Ok(file(signed_by));
        }
        if !["http://", "https://"].iter().any(|scheme| signed_by.starts_with(scheme)) {
            return Ok(Key { signed_by: signed_by.to_owned(), path: None, content: None });
        }
        let content = fetch(probe, signed_by).await?;
        let armoured = String::from_utf8_lossy(&content).contains(ARMOUR);
        let path = format!("{}/{slug}.{}", places.keyrings, if armoured { "asc" } else { "gpg" });
        Ok(Key { content: Some(content), ..file(&path) })
    }

    /// The file: fields in the order of the arguments' names.
    fn text(&self, signed_by: Option<&str>) -> String {
        let words = |list: &Option<Vec<String>>| list.as_ref().map(|list| list.join(" "));
        let truth = |value: Option<bool>| value.map(|value| if value { "yes" } else { "no" }.to_owned());
        let fields = [
            ("Allow-Downgrade-To-Insecure", truth(self.allow_downgrade_to_insecure)),
            ("Allow-Insecure", truth(self.allow_insecure)),
            ("Allow-Weak", truth(self.allow_weak)),
            ("Architectures", words(&self.architectures)),
            ("By-Hash", truth(self.by_hash)),
            ("Check-Date", truth(self.check_date)),
            ("Check-Valid-Until", truth(self.check_valid_until)),
            ("Components", words(&self.components)),
            ("Date-Max-Future", self.date_max_future.map(|seconds| seconds.to_string())),
            ("Enabled", truth(self.enabled)),
            ("Inrelease-Path", self.inrelease_path.clone()),
            ("Languages", words(&self.languages)),
            ("X-Repolib-Name", Some(self.name.clone())),
            ("Pdiffs", truth(self.pdiffs)),
            ("Signed-By", signed_by.map(str::to_owned)),
            ("Suites", words(&self.suites)),
            ("Targets", words(&self.targets)),
            ("Trusted", truth(self.trusted)),
            ("Types", Some(self.types.join(" "))),
            ("URIs", words(&self.uris)),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        fields.map(|(name, value)| field(name, &value)).collect()
    }
}

/// `Name: value`; of several lines each is indented, and an empty one is a dot.
fn field(name: &str, value: &str) -> String {
    if !value.contains('\n') {
        return if value.is_empty() { format!("{name}:\n") } else { format!("{name}: {value}\n") };
    }
    let lines = value.trim().lines().map(|line| match line.trim() {
        "" => "    .\n".to_owned(),
        line => format!("    {line}\n"),
    });
    format!("{name}:\n{}", lines.collect::<String>())
}

/// The name of the files: lower case, dashes for blanks.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    let mut blank = false;
    for c in name.to_lowercase().chars() {
        if c == '_' || c.is_whitespace() {
            if !blank {
                slug.push('-');
            }
            blank = true;
            continue;
        }
        blank = false;
        slug.extend(Some(c).filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-'));
    }
    slug
}

/// What is to be written for a file to have this content.
async fn compare(
    probe: &Probe,
    here: &Controller<'_>,
    path: String,
    content: Vec<u8>,
    mode: Option<&str>,
) -> Result<(Option<Write>, Vec<Diff>), Error> {
    let wanted = DesiredAttributes::load_wanted(probe, None, None, mode).await?;
    let directories = DesiredAttributes::load_wanted(probe, None, None, Some("0755")).await?;
    let mut destination = Destination::find_destination(probe, &path, None, true).await?;
    // The directory of keys may not be there yet.
    let parent = crate::modules::host_path::parent(&path);
    let missing = match destination.there {
        None => file_write::missing_directories(probe, parent).await?,
        Some(_) => Vec::new(),
    };
    if !missing.is_empty() {
        destination = Destination::known(path.clone(), None);
        destination.new_directories = missing;
    }
    let desired = DesiredFile {
        content: Content::Bytes(content),
        wanted: &wanted,
        directories: &directories,
        backup: false,
        validate: None,
        secret: false,
        source: &path,
    };
    let found = file_write::compare_file(probe, here, &destination, desired).await?;
    Ok((found.write, found.diff))
}

async fn remove(probe: &Probe, places: &Places, slug: &str, path: String) -> Result<Plan<Deb822Change>, Error> {
    let keys = ["asc", "gpg"].map(|end| format!("{}/{slug}.{end}", places.keyrings));
    let outcome =
        Outcome::default().with("repo", ()).with("dest", path.as_str()).with("key_filename", keys[1].as_str());
    let (mut there, mut diff) = (Vec::new(), Vec::new());
    for path in [path].into_iter().chain(keys) {
        if let Some(content) = probe.read_file(&path).await? {
            diff.push(Diff {
                before_header: path.clone(),
                after_header: "/dev/null".to_owned(),
                before: String::from_utf8_lossy(&content).into_owned(),
                after: String::new(),
            });
            there.push(path);
        }
    }
    if there.is_empty() {
        return Ok(Plan::Unchanged(outcome));
    }
    let change = Deb822Change { writes: Vec::new(), remove: there, outcome: outcome.clone() };
    Ok(Plan::Change { diff, outcome, change })
}

/// Fetches a key as the host sees the network.
async fn fetch(probe: &Probe, address: &str) -> Result<Vec<u8>, Error> {
    const LIMIT: Duration = Duration::from_secs(30);
    let failed = |why: String| Error::failed(format!("cannot fetch the key {address}: {why}"));
    let mut request = Request::get(Url::parse(address).map_err(&failed)?);
    // It may lead on to an address with TLS.
    let tls = TlsFiles::default().load_tls(probe, true).await?;
    let network = Network::load_network(probe, true, false).await?;
    let manner =
        RequestOptions { tls: &tls, limit: LIMIT, redirects: Redirects::All, unredirected: &[], network: &network };
    match manner.send(probe, &mut request, None).await {
        Ok(response) if response.status == 200 => Ok(response.body),
        Ok(response) => Err(failed(format!("HTTP {} {}", response.status, response.reason))),
        Err(HttpError::Host(gone)) => Err(gone.into()),
        Err(failure) => Err(failed(failure.to_string())),
    }
}
