//! The file that `--webhooks` names: who gets messages, about what, and the secrets for that.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::sealed::is_private;
use crate::http::network::Network;
use crate::http::{Tls, Url};
use crate::value::origin::Source;
use crate::value::vault::Keyring;
use crate::value::{ProcessEnvironment, yaml};

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub(in crate::serve) enum WebhookEvent {
    /// A run of a deployment has ended, and not well.
    #[serde(rename = "run.failed")]
    RunFailed,
    /// A run that changes a deployment, or takes a backup of it, has ended well.
    #[serde(rename = "run.succeeded")]
    RunSucceeded,
    /// There is a plan that changes something, and that nobody has approved yet.
    #[serde(rename = "plan.ready")]
    PlanReady,
    /// Somebody wants to know whether messages arrive.
    #[serde(rename = "test")]
    Test,
}

impl WebhookEvent {
    /// As in messages and settings.
    pub(super) fn event_name(self) -> &'static str {
        match self {
            WebhookEvent::RunFailed => "run.failed",
            WebhookEvent::RunSucceeded => "run.succeeded",
            WebhookEvent::PlanReady => "plan.ready",
            WebhookEvent::Test => "test",
        }
    }
}

/// What the body of a message is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::serve) enum WebhookFormat {
    /// An object with `type`, `timestamp` and `data`, signed: <https://www.standardwebhooks.com>.
    #[default]
    Standard,
    /// An object with `text`, as chat services take it.
    Chat,
}

/// A webhook as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWebhook {
    name: String,
    url: String,
    secret: Option<String>,
    #[serde(default)]
    format: WebhookFormat,
    events: Option<BTreeSet<WebhookEvent>>,
    deployments: Option<BTreeSet<String>>,
    authorities: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    webhooks: Vec<WrittenWebhook>,
}

/// A webhook. Its address may hold a secret, as those of chat services do: it is never shown whole.
pub struct Webhook {
    pub name: String,
    pub(super) url: Url,
    pub(super) proxy: Option<Url>,
    pub(super) tls: Tls,
    /// What messages are signed with.
    pub(super) secret: Option<Vec<u8>>,
    pub(super) format: WebhookFormat,
    pub(super) events: BTreeSet<WebhookEvent>,
    /// None: all.
    pub(super) deployments: Option<BTreeSet<String>>,
}

impl Webhook {
    /// Whether it gets messages about this.
    pub(super) fn wants_event(&self, event: WebhookEvent, deployment: &str) -> bool {
        self.events.contains(&event) && self.deployments.as_ref().is_none_or(|names| names.contains(deployment))
    }
}

/// Why webhooks cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{}: nobody but its owner may read it: its mode must be 0600 or 0400", path.display())]
    Shared { path: PathBuf },
    #[error("{}: {why}", path.display())]
    Written { path: PathBuf, why: String },
}

/// The longest file of webhooks, in bytes.
const LONGEST_FILE: u64 = 1 << 20;

/// What a secret starts with, and how long it is, in bytes: as the Standard Webhooks say.
const SECRET_PREFIX: &str = "whsec_";
const SECRET_LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// Reads the webhooks of a file.
///
/// # Errors
/// The file cannot be read, others can read it, or something in it is wrong. No message has a secret or an address of it.
pub fn read_webhooks(path: &Path, around: &ProcessEnvironment) -> Result<Vec<Webhook>, WebhookError> {
    let failed = |source| WebhookError::File { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    let of_unit = around.variable("CREDENTIALS_DIRECTORY").is_some_and(|directory| path.starts_with(directory));
    if !found.is_file() {
        return Err(WebhookError::Written { path: path.to_owned(), why: "it is no file".to_owned() });
    }
    if !is_private(found.uid(), found.mode(), of_unit) {
        return Err(WebhookError::Shared { path: path.to_owned() });
    }
    let mut text = String::new();
    file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(failed)?;
    if u64::try_from(text.len()).is_ok_and(|length| length > LONGEST_FILE) {
        return Err(WebhookError::Written { path: path.to_owned(), why: "it has more than 1 MiB".to_owned() });
    }
    parse_webhooks(&text, path, around).map_err(|why| WebhookError::Written { path: path.to_owned(), why })
}

fn parse_webhooks(text: &str, path: &Path, around: &ProcessEnvironment) -> Result<Vec<Webhook>, String> {
    // A complaint about YAML shows the line, which may hold a secret: only its place is taken.
    let documents = yaml::parse_yaml(&Source::new(path, text).into()).map_err(|complaint| match complaint.origin {
        Some(origin) => format!("line {} is not valid YAML", origin.line),
        None => "it is not valid YAML".to_owned(),
    })?;
    let [document] = documents.as_slice() else {
        return Err("it must have one YAML document, with the key webhooks".to_owned());
    };
    let value = document.to_value(&Keyring::default()).map_err(|_| "it must have no vaulted values".to_owned())?;
    let file = WrittenFile::deserialize(value).map_err(|error| without_values(&error.to_string()))?;
    let mut names = BTreeSet::new();
    let mut webhooks = Vec::new();
    for written in file.webhooks {
        let name = written.name.clone();
        let is_name = (1..=63).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if !is_name {
            return Err("a name of a webhook must have at most 63 lower-case letters, digits and dashes".to_owned());
        }
        if !names.insert(name.clone()) {
            return Err(format!("there are two webhooks {name}"));
        }
        webhooks.push(usable_webhook(written, around).map_err(|why| format!("webhook {name}: {why}"))?);
    }
    Ok(webhooks)
}

fn usable_webhook(written: WrittenWebhook, around: &ProcessEnvironment) -> Result<Webhook, String> {
    let url = Url::parse(&written.url).map_err(|_| "the url is invalid".to_owned())?;
    if !written.url.is_ascii() || axum::http::Uri::try_from(&url.path).is_err() {
        return Err("the url has characters that must be written as %XX".to_owned());
    }
    let is_here = url.host == "localhost" || url.host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    if !url.secure && !is_here {
        return Err("the url must begin with https://, except for this machine".to_owned());
    }
    if url.login.is_some() {
        return Err("the url must have no user and password".to_owned());
    }
    let secret = match (&written.secret, written.format) {
        (Some(secret), WebhookFormat::Standard) => Some(signing_secret(secret)?),
        (None, WebhookFormat::Standard) => {
            return Err(format!("the format standard needs a secret: {SECRET_PREFIX}, and base64 of 24 to 64 bytes"));
        }
        (None, WebhookFormat::Chat) => None,
        (Some(_), WebhookFormat::Chat) => {
            return Err("messages of the format chat are not signed: remove secret".into());
        }
    };
    let events = written.events.unwrap_or_else(|| [WebhookEvent::RunFailed, WebhookEvent::PlanReady].into());
    if events.is_empty() || events.contains(&WebhookEvent::Test) {
        return Err("events must have some of run.failed, run.succeeded and plan.ready".to_owned());
    }
    if written.deployments.as_ref().is_some_and(BTreeSet::is_empty) {
        return Err("deployments must have a name, or be left out for all".to_owned());
    }
    let tls = match (url.secure, &written.authorities) {
        (false, None) => Tls::none(),
        (false, Some(_)) => return Err("authorities are for https:// only".to_owned()),
        (true, authorities) => Tls::from_here(authorities.as_deref())?,
    };
    let proxy = if is_here { None } else { Network::from_here(around, true, false).proxy(&url)? };
    Ok(Webhook {
        name: written.name,
        url,
        proxy,
        tls,
        secret,
        format: written.format,
        events,
        deployments: written.deployments,
    })
}

fn signing_secret(text: &str) -> Result<Vec<u8>, String> {
    let bytes = text.strip_prefix(SECRET_PREFIX).and_then(|encoded| BASE64_STANDARD.decode(encoded).ok());
    bytes.filter(|bytes| SECRET_LENGTHS.contains(&bytes.len())).ok_or_else(|| {
        format!(
            "the secret must be {SECRET_PREFIX}, and base64 of 24 to 64 bytes: \
             echo \"{SECRET_PREFIX}$(openssl rand -base64 32)\" makes one"
        )
    })
}

/// A complaint about a value without the value, which may be a secret. Short plain words are shown.
fn without_values(complaint: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || ".-_".contains(c);
    let is_word = |text: &str| text.len() <= 20 && text.chars().all(is_plain);
    // What serde found is between the first and the last of these before the words that it knows.
    let (found, known) = complaint.split_once(", expected").unwrap_or((complaint, ""));
    if let (Some(first), Some(last)) = (found.find('`'), found.rfind('`')) {
        return match found.get(first + 1..last).is_some_and(is_word) {
            true => complaint.to_owned(),
            false => format!("{}of a text that is not shown here, expected{known}", &found[..first]),
        };
    }
    match complaint.split_once("string \"").and_then(|(before, rest)| Some((before, rest.rsplit_once('"')?.1))) {
        Some((before, after)) => format!("{before}a text{after}"),
        None => complaint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

    fn parsed(text: &str) -> Result<Vec<Webhook>, String> {
        parse_webhooks(text, Path::new("webhooks.yaml"), &ProcessEnvironment::default())
    }

    fn fault(text: &str) -> String {
        parsed(text).err().unwrap_or_else(|| panic!("accepted: {text}"))
    }

    #[test]
    fn a_file_of_webhooks_is_read() {
        let text = format!(
            "webhooks:\n- {{name: ops, url: 'http://127.0.0.1:8080/in?x=1', secret: {SECRET}}}\n\
             - {{name: chat, url: 'http://localhost/T0/B0', format: chat, events: [run.succeeded], deployments: [prod]}}\n"
        );
        let webhooks = parsed(&text).unwrap();
        let [ops, chat] = webhooks.as_slice() else { panic!("two") };
        assert_eq!(ops.secret.as_deref(), Some(b"01234567890123456789012345678901".as_slice()));
        assert!(ops.wants_event(WebhookEvent::RunFailed, "a") && ops.wants_event(WebhookEvent::PlanReady, "b"));
        assert!(!ops.wants_event(WebhookEvent::RunSucceeded, "a"), "only what is asked for");
        assert!(chat.wants_event(WebhookEvent::RunSucceeded, "prod"));
        assert!(!chat.wants_event(WebhookEvent::RunSucceeded, "test"), "another deployment");
        assert!(!chat.wants_event(WebhookEvent::RunFailed, "prod"));
    }

    #[test]
    fn what_is_wrong_is_refused_without_the_secret() {
        let with = |rest: &str| format!("webhooks: [{{name: ops, url: 'https://h.example/SeCrEt', {rest}}}]");
        let cases = [
            ("webhooks: whsec_SeCrEt".to_owned(), "invalid type"),
            ("webhooks: [{name: ops, url: [SeCrEt".to_owned(), "is not valid YAML"),
            ("webhooks: []\n---\nwebhooks: []".to_owned(), "one YAML document"),
            (with("sekret: SeCrEt"), "unknown field `sekret`"),
            (with("secret:whsec_SeCrEt"), "unknown field"),
            (with("format: whsec_SeCrEt"), "unknown variant"),
            (with("format: 'abc`SeCrEt'"), "unknown variant"),
            ("webhooks: [{name: ops, url: 'https://h.example/a<b', format: chat}]".to_owned(), "written as %XX"),
            (with("format: chat, events: ['https://SeCrEt']"), "unknown variant"),
            ("webhooks: [{name: ops, url: 'https://h.example/ä', format: chat}]".to_owned(), "written as %XX"),
            (with("secret: SeCrEt"), "the secret must be whsec_, and base64"),
            (with("secret: whsec_U2VDckV0"), "the secret must be whsec_, and base64"),
            (with("format: standard"), "needs a secret"),
            (with(&format!("format: chat, secret: {SECRET}")), "are not signed"),
            (with("format: chat, events: []"), "events must have some of"),
            (with("format: chat, events: [test]"), "events must have some of"),
            (with("format: chat, events: [run.fialed]"), "unknown variant `run.fialed`"),
            (with("format: chat, deployments: []"), "deployments must have a name"),
            ("webhooks: [{name: ops, url: 'http://h.example/SeCrEt', format: chat}]".to_owned(), "must begin with https://"),
            ("webhooks: [{name: ops, url: 'https://u:SeCrEt@h.example', format: chat}]".to_owned(), "no user and password"),
            ("webhooks: [{name: ops, url: 'SeCrEt', format: chat}]".to_owned(), "the url is invalid"),
            ("webhooks: [{name: O ps, url: 'http://localhost', format: chat}]".to_owned(), "a name of a webhook must"),
            (
                "webhooks: [{name: a, url: 'http://localhost', format: chat}, {name: a, url: 'http://localhost', format: chat}]"
                    .to_owned(),
                "there are two webhooks a",
            ),
        ];
        for (text, expected) in cases {
            let fault = fault(&text);
            assert!(fault.contains(expected), "{text}: {fault}");
            assert!(!fault.contains("SeCrEt"), "{fault}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("webhooks.yaml");
        std::fs::write(&path, "webhooks: []\n").unwrap();
        for (mode, is_fine) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = read_webhooks(&path, &ProcessEnvironment::default());
            assert_eq!(read.is_ok(), is_fine, "{mode:o}");
        }
    }
}
