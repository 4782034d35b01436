//! Whether the host is the one it says it is, and when its connection ended: our side of russh's callbacks.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use russh::client::{DisconnectReason, Handler, Session};
use russh::keys::PublicKeyOrCertificate;
use tokio::sync::watch;

use super::super::config::SshSettings;
use super::super::known_hosts::{self, HostKeyVerdict, KnownHosts, Name, Record, key_fingerprint};
use super::super::{Error, HostKeys};

/// Why a handshake ended.
#[derive(Debug)]
pub(super) enum Refusal {
    /// By us: the host's key.
    HostKey(Error),
    Protocol(russh::Error),
}

impl From<russh::Error> for Refusal {
    fn from(error: russh::Error) -> Self {
        Refusal::Protocol(error)
    }
}

/// Why an accepted host must get no secret: its key differs from the recorded one. Empty: it may.
pub(super) type UntrustedKeyReason = Arc<OnceLock<String>>;

/// What we know about the host before it shows its key.
pub(super) struct HostKeyCheck {
    label: String,
    address: String,
    port: u16,
    name: Name,
    policy: HostKeys,
    /// The required key, if one is pinned.
    fingerprint: Option<String>,
    pub(super) known: KnownHosts,
    /// Where a new key is recorded.
    record: Option<PathBuf>,
    hashed: bool,
}

impl HostKeyCheck {
    pub(super) fn new(settings: &SshSettings) -> Result<HostKeyCheck, Error> {
        let files: Vec<_> = settings.user_known_hosts.iter().chain(&settings.global_known_hosts).cloned().collect();
        // With checking off, too: a changed or revoked key is known by its records alone.
        let known = KnownHosts::read_known_hosts(&files).and_then(|mut known| {
            settings.revoked_host_keys.iter().try_for_each(|file| known.revoke(file)).map(|()| known)
        });
        let known = known.map_err(|error| Error::Unreachable {
            message: format!("cannot check the host key of {}: {error}", settings.label),
            hint: None,
        })?;
        Ok(HostKeyCheck {
            label: settings.label.clone(),
            address: settings.address.clone(),
            port: settings.port,
            name: settings.known_name(),
            policy: settings.host_keys,
            fingerprint: settings.fingerprint.clone(),
            known,
            record: settings.user_known_hosts.first().cloned(),
            hashed: settings.hash_known_hosts,
        })
    }

    pub(super) fn host_name(&self) -> &Name {
        &self.name
    }

    /// Whether to continue with a host that presents this key. With checking off, a host whose key has changed is accepted
    /// without being trusted, and a revoked key is refused, as OpenSSH does.
    fn decide(&self, shown: &PublicKeyOrCertificate, distrust: &UntrustedKeyReason) -> Result<(), Error> {
        match (self.known.check_host_key(&self.name, shown), self.policy) {
            (verdict @ HostKeyVerdict::Revoked(_), _) => self.judge(verdict, shown),
            (_, _) if let Some(wanted) = &self.fingerprint => self.compare(wanted, shown),
            (HostKeyVerdict::Unknown { .. }, HostKeys::Off) => Ok(()),
            (HostKeyVerdict::Changed(record), HostKeys::Off) => {
                let message = self.changed(&record, shown);
                tracing::warn!("{message}; host key checking is off, so windlass uses no password and no SSH agent");
                #[expect(clippy::let_underscore_must_use, reason = "one reason is enough")]
                let _ = distrust.set(format!(
                    "its host key differs from the one at {}:{}",
                    record.file.display(),
                    record.line
                ));
                Ok(())
            }
            (HostKeyVerdict::Unknown { .. }, HostKeys::AcceptNew) => self.accept(shown),
            (verdict, _) => self.judge(verdict, shown),
        }
    }

    fn changed(&self, record: &Record, shown: &PublicKeyOrCertificate) -> String {
        let key = shown.public_key();
        format!(
            "WARNING: the host key of {} ({}) has changed: it shows {} {}, but {}:{} has {} {}",
            self.label,
            self.address,
            key.algorithm(),
            key_fingerprint(&key),
            record.file.display(),
            record.line,
            record.algorithm,
            record.fingerprint
        )
    }

    /// A key without the pinned fingerprint is refused, whatever the policy is.
    fn compare(&self, wanted: &str, shown: &PublicKeyOrCertificate) -> Result<(), Error> {
        let key = shown.public_key();
        let found = key_fingerprint(&key);
        if found == wanted.trim_end_matches('=') {
            return Ok(());
        }
        let (label, address, algorithm) = (&self.label, &self.address, key.algorithm());
        Err(Error::Unreachable {
            message: format!("the host key of {label} ({address}) is {algorithm} {found}, and {wanted} is expected"),
            hint: Some(format!(
                "compare with the host's own {algorithm} key (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub); if they \
                 differ, somebody may be intercepting the connection"
            )),
        })
    }

    fn accept(&self, shown: &PublicKeyOrCertificate) -> Result<(), Error> {
        // `UserKnownHostsFile none`: record no keys.
        let Some(file) = &self.record else { return Ok(()) };
        let verdict =
            known_hosts::record(file, &self.name, shown, self.hashed).map_err(|error| Error::Unreachable {
                message: format!("cannot record the host key of {} in {}: {error}", self.label, file.display()),
                hint: None,
            })?;
        tracing::info!(
            host = self.label,
            fingerprint = key_fingerprint(&shown.public_key()),
            "recorded the new host key"
        );
        self.judge(verdict, shown)
    }

    fn judge(&self, verdict: HostKeyVerdict, shown: &PublicKeyOrCertificate) -> Result<(), Error> {
        let key = shown.public_key();
        let (algorithm, fingerprint) = (key.algorithm(), key_fingerprint(&key));
        let (label, address) = (&self.label, &self.address);
        let (message, hint) = match verdict {
            HostKeyVerdict::Known => return Ok(()),
            HostKeyVerdict::Unknown { certificate } => {
                let why = certificate.map(|why| format!(" ({why})")).unwrap_or_default();
                let file = self.record.as_ref().map_or("known_hosts".to_owned(), |file| file.display().to_string());
                let hint = format!(
                    "compare the fingerprint with the host's own (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub), then \
                     record it: ssh-keyscan -p {} {address} >> {file}; or record new keys unchecked: --host-keys accept-new (or \
                     ansible_ssh_common_args: -o StrictHostKeyChecking=accept-new)",
                    self.port
                );
                (format!("the host key of {label} ({address}) is not known{why}: {algorithm} {fingerprint}"), hint)
            }
            HostKeyVerdict::Changed(record) => {
                let place = format!("{}:{}", record.file.display(), record.line);
                let message = self.changed(&record, shown);
                let hint = format!(
                    "an attacker may be intercepting the connection; if the host was reinstalled, and the fingerprint is \
                     its own, remove the old key: {place}"
                );
                (message, hint)
            }
            HostKeyVerdict::Revoked(record) => {
                let place = format!("{}:{}", record.file.display(), record.line);
                let message =
                    format!("the host key of {label} ({address}) is revoked: {algorithm} {fingerprint}, by {place}");
                (message, "do not trust this key: generate a new one on the host".to_owned())
            }
        };
        Err(Error::Unreachable { message, hint: Some(hint) })
    }
}

/// Takes part in a connection from our side.
pub(super) struct Client {
    check: HostKeyCheck,
    distrust: UntrustedKeyReason,
    lost: watch::Sender<Option<String>>,
}

impl Client {
    /// The receiver learns why the connection ended.
    pub(super) fn new(check: HostKeyCheck, distrust: UntrustedKeyReason) -> (Client, watch::Receiver<Option<String>>) {
        let (lost, receiver) = watch::channel(None);
        (Client { check, distrust, lost }, receiver)
    }

    fn end(&self, reason: &str) {
        self.lost.send_if_modified(|lost| {
            let first = lost.is_none();
            if first {
                *lost = Some(reason.to_owned());
            }
            first
        });
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.end("it was closed");
    }
}

impl Handler for Client {
    type Error = Refusal;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, Refusal> {
        self.check.decide(shown, &self.distrust).map(|()| true).map_err(Refusal::HostKey)
    }

    async fn auth_banner(&mut self, banner: &str, _: &mut Session) -> Result<(), Refusal> {
        tracing::debug!(host = self.check.label, banner);
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<Refusal>) -> Result<(), Refusal> {
        self.end(&match reason {
            DisconnectReason::ReceivedDisconnect(goodbye) => goodbye.message.trim().to_owned(),
            DisconnectReason::Error(Refusal::HostKey(error)) => error.to_string(),
            DisconnectReason::Error(Refusal::Protocol(error)) => in_words(&error),
        });
        Ok(())
    }
}

/// What an error of the protocol means for a person.
pub(super) fn in_words(error: &russh::Error) -> String {
    use russh::Error as E;
    match error {
        E::KeepaliveTimeout | E::InactivityTimeout => "the host no longer answers".to_owned(),
        E::HUP | E::Disconnect | E::RecvError | E::SendError => "the host closed it".to_owned(),
        E::IO(error) => match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                "the host closed it".to_owned()
            }
            ErrorKind::TimedOut => "the host no longer answers".to_owned(),
            _ => error.to_string(),
        },
        E::Version => "the port does not belong to an SSH server".to_owned(),
        E::NoCommonAlgo { kind, theirs, .. } => {
            format!("no common {} algorithm: the host offers {}", format!("{kind:?}").to_lowercase(), theirs.join(", "))
        }
        E::WrongServerSig => "the host does not have the private key of the host key that it presents".to_owned(),
        other => other.to_string(),
    }
}
