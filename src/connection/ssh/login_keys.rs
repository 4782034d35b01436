//! Keys to log in with: those of the agent and those in files, and in which order to offer them.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use russh::keys::agent::client::AgentClient;
use russh::keys::agent::{AgentIdentity, AgentSessionBinding};
use russh::keys::{Certificate, PrivateKey, PublicKey, decode_secret_key};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::super::config::{SshSettings, user_id};
use super::super::known_hosts::key_fingerprint;
use crate::value::Secret;

/// The names that OpenSSH looks for in `~/.ssh`, in its order.
const DEFAULT_NAMES: [&str; 3] = ["id_rsa", "id_ecdsa", "id_ed25519"];

/// An agent may ask its user; windlass must not wait forever.
pub(super) const AGENT_PATIENCE: Duration = Duration::from_secs(30);

pub(super) type Agent = AgentClient<UnixStream>;

/// A key to offer.
#[derive(Debug)]
pub(super) enum Candidate {
    /// The agent signs; a certificate may say more than the plain key.
    Agent {
        key: PublicKey,
        certificate: Option<Certificate>,
        comment: String,
    },
    File {
        path: PathBuf,
        certificate: Option<Certificate>,
    },
    /// It is the value of a variable.
    Text(Secret),
}

impl Candidate {
    /// How messages call it: `key ~/.ssh/id_ed25519`, `agent key me@here SHA256:...`
    pub(super) fn description(&self) -> String {
        let certified = |certificate: &Option<Certificate>| if certificate.is_some() { "certificate of " } else { "" };
        match self {
            Candidate::Agent { key, certificate, comment } => {
                format!("{}agent key {comment} {}", certified(certificate), key_fingerprint(key))
            }
            Candidate::File { path, certificate } => format!("{}key {}", certified(certificate), path.display()),
            Candidate::Text(_) => "the key of ansible_private_key".to_owned(),
        }
    }
}

/// All keys to offer, and warnings about unusable ones.
#[derive(Default)]
pub(super) struct Candidates {
    pub list: Vec<Candidate>,
    pub agent: Option<Agent>,
    pub notes: Vec<String>,
}

/// Collects the keys: those from the configuration (signed by the agent, if it has them), then the agent's others unless
/// `IdentitiesOnly`, then the default files. The named ones come first, so that a full agent does not use up the
/// server's patience. `agent`: its socket, if it is to be asked.
pub(super) async fn candidates(
    settings: &SshSettings,
    agent: Option<&Path>,
    binding: Option<&AgentSessionBinding>,
) -> Candidates {
    let mut found = Candidates::default();
    let mut held = match agent {
        Some(socket) => ask_agent(socket, binding, &mut found).await,
        None => Vec::new(),
    };
    found.list.extend(settings.private_key.clone().map(Candidate::Text));
    let mut certificates = Vec::new();
    for path in &settings.certificate_files {
        match read_certificate(path) {
            Ok(certificate) => certificates.push(certificate),
            Err(error) => found.notes.push(format!("cannot read the certificate {}: {error}", path.display())),
        }
    }
    for path in settings.identity_files.iter().flatten() {
        if path.exists() || beside(path, ".pub").exists() {
            offer_file(path, &certificates, &mut held, &mut found.list);
        } else {
            found.notes.push(format!("no such key file: {}", path.display()));
        }
    }
    let mut defaults = Vec::new();
    if settings.identity_files.is_none() {
        for path in DEFAULT_NAMES.iter().map(|name| settings.directory.join(name)).filter(|path| path.exists()) {
            offer_file(&path, &certificates, &mut held, &mut defaults);
        }
    }
    if !settings.identities_only {
        found.list.extend(held.into_iter().map(|held| agent_candidate(held, None)));
    }
    found.list.extend(defaults);
    found
}

async fn ask_agent(socket: &Path, binding: Option<&AgentSessionBinding>, found: &mut Candidates) -> Vec<AgentIdentity> {
    let asking = async {
        let mut agent = AgentClient::connect_uds(socket).await?;
        if let Some(binding) = binding {
            // For keys that the agent gives to certain hosts only; agents that know nothing of it refuse.
            #[expect(clippy::let_underscore_must_use, reason = "an agent that does not know the request refuses it")]
            let _ = agent.bind_session(binding, false).await;
        }
        let held = agent.request_identities().await?;
        Ok::<_, russh::keys::Error>((agent, held))
    };
    match timeout(AGENT_PATIENCE, asking).await {
        Ok(Ok((agent, held))) => {
            if held.is_empty() {
                found.notes.push("the SSH agent has no keys".to_owned());
            }
            found.agent = Some(agent);
            held
        }
        Ok(Err(error)) => {
            found.notes.push(format!("cannot query the SSH agent at {}: {error}", socket.display()));
            Vec::new()
        }
        Err(_) => {
            found.notes.push(format!("the SSH agent at {} does not answer", socket.display()));
            Vec::new()
        }
    }
}

/// Adds a key file, with its certificates first; what the agent holds of it is used there and taken out of `held`.
fn offer_file(path: &Path, certificates: &[Certificate], held: &mut Vec<AgentIdentity>, list: &mut Vec<Candidate>) {
    let public = public_key(path);
    let fits = |certificate: &&Certificate| {
        public.as_ref().is_some_and(|public| public.key_data() == certificate.public_key())
    };
    let mut own: Vec<Certificate> = certificates.iter().filter(fits).cloned().collect();
    own.extend(read_certificate(&beside(path, "-cert.pub")).ok());
    let is_held = |identity: &AgentIdentity| {
        public.as_ref().is_some_and(|public| public.key_data() == identity.public_key().key_data())
    };
    let (matching, rest): (Vec<_>, Vec<_>) = std::mem::take(held).into_iter().partition(is_held);
    *held = rest;
    if matching.is_empty() {
        let file = |certificate| Candidate::File { path: path.to_owned(), certificate };
        list.extend(own.into_iter().map(|certificate| file(Some(certificate))));
        if path.exists() {
            list.push(file(None));
        }
        return;
    }
    for certificate in own {
        list.push(agent_candidate(matching[0].clone(), Some(certificate)));
    }
    list.extend(matching.into_iter().map(|identity| agent_candidate(identity, None)));
}

fn agent_candidate(identity: AgentIdentity, certificate: Option<Certificate>) -> Candidate {
    let key = identity.public_key().into_owned();
    match identity {
        AgentIdentity::PublicKey { comment, .. } => Candidate::Agent { key, certificate, comment },
        AgentIdentity::Certificate { certificate: own, comment } => {
            Candidate::Agent { key, certificate: certificate.or(Some(own)), comment }
        }
    }
}

/// `ED25519 SHA256:...`
pub(super) fn name_of(key: &PublicKey) -> String {
    format!("{} {}", key.algorithm(), key_fingerprint(key))
}

/// The public half of a key file, from the `.pub` beside it or from the file itself, encrypted or not.
fn public_key(path: &Path) -> Option<PublicKey> {
    let beside = fs::read_to_string(beside(path, ".pub")).ok();
    let own = || fs::read_to_string(path).ok();
    beside.and_then(|text| PublicKey::from_openssh(text.trim()).ok()).or_else(|| {
        let text = own()?;
        PublicKey::from_openssh(text.trim())
            .ok()
            .or_else(|| PrivateKey::from_openssh(&text).ok().map(|key| key.public_key().clone()))
            .or_else(|| decode_secret_key(&text, None).ok().map(|key| key.public_key().clone()))
    })
}

fn read_certificate(path: &Path) -> Result<Certificate, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    Certificate::from_openssh(text.trim()).map_err(|error| error.to_string())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Reads a private key. An error says what to do, and shows nothing of the key.
pub(super) fn private_key(path: &Path, passphrase: Option<&Secret>) -> Result<PrivateKey, String> {
    let shown = path.display();
    if fs::read_to_string(path).is_ok_and(|text| PublicKey::from_openssh(text.trim()).is_ok()) {
        return Err(format!("{shown} is a public key, and the SSH agent does not have its private key"));
    }
    let metadata = fs::metadata(path).map_err(|error| format!("cannot read the key {shown}: {}", plain(&error)))?;
    // As OpenSSH: a key that others can read is no secret any more. Another owner's is that owner's affair.
    if metadata.uid() == user_id() && metadata.mode() & 0o077 != 0 {
        return Err(format!(
            "refusing to use the key {shown}: other users can read it (mode {:04o}); run chmod 600 {shown}",
            metadata.mode() & 0o7777
        ));
    }
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read the key {shown}: {}", plain(&error)))?;
    private_key_of(&text, &shown.to_string(), passphrase)
}

/// As [`private_key`], of its text; `shown` is what messages call it.
pub(super) fn private_key_of(text: &str, shown: &str, passphrase: Option<&Secret>) -> Result<PrivateKey, String> {
    if let Ok(key) = decode_secret_key(text, None) {
        return Ok(key);
    }
    if !is_encrypted(text) {
        return Err(format!("{shown} is not a valid private key"));
    }
    let Some(passphrase) = passphrase else {
        return Err(format!(
            "the key {shown} needs a passphrase: set ansible_ssh_private_key_passphrase or use an agent"
        ));
    };
    decode_secret_key(text, Some(passphrase.reveal()))
        .map_err(|_| format!("the passphrase of the key {shown} is wrong"))
}

/// The fingerprint of the public key that belongs to the text of a private key, encrypted or not. None: it is no private key, or an
/// encrypted one of a format that does not show its public key.
pub fn key_fingerprint_of(text: &str) -> Option<String> {
    let key = PrivateKey::from_openssh(text).ok().or_else(|| decode_secret_key(text, None).ok())?;
    Some(key_fingerprint(key.public_key()))
}

pub(super) fn is_encrypted(text: &str) -> bool {
    PrivateKey::from_openssh(text).is_ok_and(|key| key.is_encrypted())
        || text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
        || text.contains("Proc-Type: 4,ENCRYPTED")
}

fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
