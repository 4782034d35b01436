//! The key that a host shows, for a person to confirm: no login, and nothing is recorded.

use std::sync::{Arc, OnceLock};

use russh::client::{Handler, connect_stream};
use russh::keys::PublicKeyOrCertificate;
use tokio::time::timeout;

use super::super::config::SshSettings;
use super::super::known_hosts::key_fingerprint;
use super::super::{Error, Target};
use super::connect::{self, ConnectFailure};
use super::verify::{HostKeyCheck, in_words};

/// A key of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownHostKey {
    pub algorithm: String,
    /// `SHA256:...`, as `ssh-keygen -l` prints it.
    pub fingerprint: String,
}

/// Ends the handshake when the host has shown its key.
struct Scan(Arc<OnceLock<ShownHostKey>>);

impl Handler for Scan {
    type Error = russh::Error;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        let key = shown.public_key();
        let found = ShownHostKey { algorithm: key.algorithm().to_string(), fingerprint: key_fingerprint(&key) };
        #[expect(clippy::let_underscore_must_use, reason = "a host shows its key first before it is asked again")]
        let _ = self.0.set(found);
        Ok(false)
    }
}

/// Asks a host for its key: the same as a connection to it is going to see. Only addresses within its confinement are connected to.
///
/// # Errors
/// It does not answer, it may not be connected to, or it is no SSH server.
pub async fn scan_host_key(target: &Target) -> Result<ShownHostKey, Error> {
    // Whatever key it is, a connection without a pinned one is refused before the host shows its own.
    let target = &Target { fingerprint: Some("to be shown".to_owned()), ..target.clone() };
    let settings = SshSettings::of_target(target)?;
    let config = Arc::new(connect::config(&settings, &HostKeyCheck::new(&settings)?));
    let stream = match connect::dial(target, &settings).await {
        Ok(stream) => stream,
        Err(ConnectFailure::Transient(error) | ConnectFailure::Final(error)) => return Err(error),
    };
    let shown = Arc::<OnceLock<ShownHostKey>>::default();
    let ended = timeout(settings.connect_timeout, connect_stream(config, stream, Scan(shown.clone()))).await;
    match (shown.get(), ended) {
        (Some(key), _) => Ok(key.clone()),
        (None, Ok(Err(error))) => Err(connect::cannot(&settings, &in_words(&error), None)),
        (None, _) => Err(connect::cannot(&settings, "it showed no host key in time", None)),
    }
}
