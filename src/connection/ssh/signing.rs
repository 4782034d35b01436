//! Signs with a person's SSH key something that is no login: the key of a file, or one that the agent has.

use std::path::{Path, PathBuf};
use std::time::Duration;

use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::signature::Signer;
use russh::keys::ssh_key::{Signature, private::KeypairData};
use russh::keys::{HashAlg, PrivateKey, PublicKey};
use tokio::time::timeout;

use super::login_keys::{AGENT_PATIENCE, Agent, is_encrypted, name_of, private_key};
use crate::value::Secret;

/// A device waits for its owner's touch, and an agent for a passphrase; no signature is better than one that nobody waits for.
const SIGNING_PATIENCE: Duration = Duration::from_secs(120);

/// A key that can sign.
pub struct SigningKey {
    public: PublicKey,
    by: Signs,
}

enum Signs {
    Itself(Box<PrivateKey>),
    Agent(Agent, PathBuf),
}

impl SigningKey {
    /// Takes the private key of a file; of the file of a public key, the one that the agent has for it. `ask`: for the passphrase.
    ///
    /// # Errors
    /// Why there is no such key.
    pub async fn of_key_file(
        path: &Path,
        agent: Option<&Path>,
        ask: impl FnOnce() -> Result<Secret, String>,
    ) -> Result<SigningKey, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read the key {shown}: {error}"))?;
        if let Ok(public) = PublicKey::from_openssh(text.trim()) {
            let socket = agent.ok_or_else(|| {
                format!("{shown} is a public key, and there is no SSH agent (SSH_AUTH_SOCK) that has its private key")
            })?;
            return SigningKey::of_agent(public, socket).await;
        }
        let passphrase = if is_encrypted(&text) { Some(ask()?) } else { None };
        let key = private_key(path, passphrase.as_ref())?;
        if matches!(key.key_data(), KeypairData::SkEd25519(_) | KeypairData::SkEcdsaSha2NistP256(_)) {
            return Err(format!("{shown} is a key of a device: add it to the SSH agent, and name its .pub file"));
        }
        Ok(SigningKey { public: key.public_key().clone(), by: Signs::Itself(Box::new(key)) })
    }

    async fn of_agent(public: PublicKey, socket: &Path) -> Result<SigningKey, String> {
        let cannot = |why: String| format!("cannot query the SSH agent at {}: {why}", socket.display());
        let asking = async {
            let mut agent = AgentClient::connect_uds(socket).await?;
            let held = agent.request_identities().await?;
            Ok::<_, russh::keys::Error>((agent, held))
        };
        let answer = timeout(AGENT_PATIENCE, asking).await.map_err(|_| cannot("it does not answer".to_owned()))?;
        let (agent, held) = answer.map_err(|error| cannot(error.to_string()))?;
        let is_it = |held: &AgentIdentity| match held {
            AgentIdentity::PublicKey { key, .. } => key.key_data() == public.key_data(),
            AgentIdentity::Certificate { .. } => false,
        };
        match held.iter().any(is_it) {
            true => Ok(SigningKey { public, by: Signs::Agent(agent, socket.to_owned()) }),
            false => Err(format!("the SSH agent does not have the private key of {}", name_of(&public))),
        }
    }

    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Signs.
    ///
    /// # Errors
    /// The agent refuses, or the key cannot sign.
    pub async fn sign_data(&mut self, data: &[u8]) -> Result<Signature, String> {
        match &mut self.by {
            Signs::Itself(key) => key.try_sign(data).map_err(|error| format!("cannot sign with the key: {error}")),
            Signs::Agent(agent, socket) => {
                let asking = agent.sign_request_signature(&self.public, Some(HashAlg::Sha512), data);
                match timeout(SIGNING_PATIENCE, asking).await {
                    Ok(Ok(signature)) => Ok(signature),
                    Ok(Err(error)) => Err(format!("the SSH agent at {} refused to sign: {error}", socket.display())),
                    Err(_) => Err(format!("the SSH agent at {} did not sign in time", socket.display())),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    fn keygen(directory: &Path, arguments: &[&str]) {
        assert!(Command::new("ssh-keygen").args(arguments).current_dir(directory).status().unwrap().success());
    }

    async fn signs(path: &Path, agent: Option<&Path>, passphrase: &str) -> Result<(), String> {
        let ask = || Ok(Secret::new(passphrase.to_owned()));
        let mut key = SigningKey::of_key_file(path, agent, ask).await?;
        let signature = key.sign_data(b"text").await?;
        russh::keys::signature::Verifier::verify(key.public_key().key_data(), b"text", &signature)
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_key_of_a_file_signs_with_its_passphrase() {
        let directory = tempfile::tempdir().unwrap();
        keygen(directory.path(), &["-q", "-t", "ed25519", "-N", "secret", "-f", "key"]);
        let key = directory.path().join("key");
        assert_eq!(signs(&key, None, "secret").await, Ok(()));
        assert!(signs(&key, None, "wrong").await.unwrap_err().ends_with("is wrong"));
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(signs(&key, None, "secret").await.unwrap_err().contains("other users can read it"));
        assert!(signs(&directory.path().join("none"), None, "").await.unwrap_err().contains("No such file"));
        std::fs::write(&key, "no key").unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        assert!(signs(&key, None, "").await.unwrap_err().ends_with("is not a valid private key"));
    }

    #[tokio::test]
    async fn a_public_key_signs_if_the_agent_has_its_private_key() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let socket = at("agent");
        let mut agent = Command::new("ssh-agent").args(["-D", "-a"]).arg(&socket).spawn().unwrap();
        for _ in 0..200 {
            if socket.exists() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        for (kind, bits) in [("ed25519", "256"), ("rsa", "3072"), ("ecdsa", "256")] {
            keygen(directory.path(), &["-q", "-t", kind, "-b", bits, "-N", "", "-f", kind]);
            let public = at(&format!("{kind}.pub"));
            assert!(signs(&public, Some(&socket), "").await.unwrap_err().contains("does not have the private key"));
            let added = Command::new("ssh-add").arg("-q").arg(at(kind)).env("SSH_AUTH_SOCK", &socket).status().unwrap();
            assert!(added.success());
            assert_eq!(signs(&public, Some(&socket), "").await, Ok(()), "{kind}");
            assert!(signs(&public, None, "").await.unwrap_err().contains("there is no SSH agent"));
        }
        agent.kill().unwrap();
        agent.wait().unwrap();
        assert!(signs(&at("rsa.pub"), Some(&socket), "").await.unwrap_err().contains("cannot query the SSH agent"));
    }
}
