//! References to secrets as values that are read when a task needs them, and not before.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use crate::credentials::HandedSecrets;
use crate::kubernetes::Cluster;
use crate::resource::{NamedResource, Places, Reference, SecretKey};
use crate::value::vault::{self, Keyring};
use crate::value::{Deferred, Value, read};

/// Where Secrets are.
#[derive(Debug, Clone)]
pub(super) enum SecretSource {
    Cluster(Cluster),
    /// A server handed them over: those of one deployment, whatever namespace is named.
    Handed(Arc<HandedSecrets>),
}

/// What a secret is for. Who may name Secrets in a resource may not read them: a key must not be sent to a host as if it were a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretKind {
    /// It is sent to a host, or unlocks a key.
    Password,
    /// It logs in to a host, and stays here.
    SshKey,
    /// It is copied to hosts.
    AuthorityKey,
}

impl SecretKind {
    /// Refuses what is of another kind, without any part of it.
    fn check(self, text: &str) -> Result<(), String> {
        match self {
            SecretKind::Password if text.trim_end().contains(['\n', '\r']) => {
                Err("it has several lines, and a password has one".to_owned())
            }
            SecretKind::AuthorityKey
                if text.contains("BEGIN OPENSSH PRIVATE KEY") || !text.contains(" PRIVATE KEY-----") =>
            {
                Err("it is not the private key of a certificate authority".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// What is needed to follow references.
#[derive(Debug, Clone)]
pub(super) struct Secrets {
    /// Where paths begin, and where programs run.
    places: Places,
    /// The namespace of Secrets that name none.
    namespace: Option<String>,
    source: SecretSource,
    keyring: Keyring,
}

impl Secrets {
    pub(super) fn of_resource<Spec>(
        resource: &NamedResource<Spec>,
        source: SecretSource,
        keyring: &Keyring,
    ) -> Secrets {
        Secrets { places: resource.places(), namespace: resource.namespace.clone(), source, keyring: keyring.clone() }
    }

    /// A path of the document.
    pub(super) fn secret_path(&self, given: &str) -> PathBuf {
        self.places.resolve_given(given)
    }

    /// Whether a file of the document is there and encrypted with the vault: by how it begins, without its password.
    pub(super) fn is_encrypted(&self, given: &str) -> bool {
        vault::is_vault_file(&self.secret_path(given)).unwrap_or(false)
    }

    /// A placeholder for the secret until a template renders it.
    pub(super) fn secret_value(&self, reference: &Reference, kind: SecretKind) -> Value {
        let (own, reference) = (self.clone(), reference.clone());
        let place = self.place(&reference);
        Deferred::deferred_value(place, &self.keyring.hidden, move || {
            let text = own.resolve(&reference)?;
            match reference.secret.is_some() {
                true => kind.check(&text).map(|()| text),
                false => Ok(text),
            }
        })
    }

    /// As [`Secrets::secret_value`], of a kubeconfig: what is not one is refused, as a text of one line would be taken for a path.
    pub(super) fn kubeconfig(&self, reference: &Reference) -> Value {
        let (own, reference) = (self.clone(), reference.clone());
        let place = self.place(&reference);
        Deferred::deferred_value(place, &self.keyring.hidden, move || {
            let text = own.resolve(&reference)?;
            // The error may contain a part of the content.
            let kubeconfig =
                kube::config::Kubeconfig::from_yaml(&text).map_err(|_| "it is not a valid kubeconfig".to_owned())?;
            // An empty text is read as one with nothing in it, and would count as if none was given.
            if kubeconfig.clusters.is_empty() || kubeconfig.contexts.is_empty() {
                return Err("the kubeconfig has no cluster or no context".to_owned());
            }
            Ok(if text.ends_with('\n') { text } else { format!("{text}\n") })
        })
    }

    /// Where it is, in a person's words.
    fn place(&self, reference: &Reference) -> String {
        match reference {
            Reference { file: Some(file), .. } => format!("the file {}", self.secret_path(file).display()),
            Reference { env: Some(name), .. } => format!("the environment variable {name}"),
            Reference { command: Some(words), .. } => {
                format!("the output of {}", words.first().map_or("nothing", String::as_str))
            }
            Reference { secret: Some(secret), .. } => match &self.source {
                SecretSource::Cluster(_) => format!("the Kubernetes Secret {}", self.label(secret)),
                SecretSource::Handed(_) => format!("the credential {}, key {}", secret.name, secret.key),
            },
            _ => "a vault value".to_owned(),
        }
    }

    fn label(&self, secret: &SecretKey) -> String {
        format!("{}/{}, key {}", self.namespace(secret), secret.name, secret.key)
    }

    fn namespace(&self, secret: &SecretKey) -> String {
        secret.namespace.clone().or_else(|| self.namespace.clone()).unwrap_or_else(|| "default".to_owned())
    }

    fn resolve(&self, reference: &Reference) -> Result<String, String> {
        match reference {
            Reference { file: Some(file), .. } => {
                let text = read::read_text(&self.secret_path(file)).map_err(|error| error.to_string())?;
                self.opened(text).map(without_newline)
            }
            Reference { env: Some(name), .. } => self.variable(name),
            Reference { vault: Some(text), .. } => self.opened(text.clone()).map(without_newline),
            Reference { command: Some(words), .. } => self.printed(words),
            Reference { secret: Some(secret), .. } => match &self.source {
                SecretSource::Cluster(cluster) => {
                    cluster.read_secret(&self.namespace(secret), &secret.name, &secret.key)
                }
                SecretSource::Handed(handed) => handed.handed_secret(&secret.name, &secret.key),
            },
            _ => Err("the reference is empty".to_owned()),
        }
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        let around = &self.places.surroundings;
        let unreadable = around.unreadable.contains_key(name);
        let why = if unreadable { "it is not UTF-8 text" } else { "it is not set" };
        around.variables.get(name).cloned().ok_or_else(|| why.to_owned())
    }

    /// A text, decrypted if it is a vault text.
    fn opened(&self, text: String) -> Result<String, String> {
        if !vault::is_vault(&text) {
            return Ok(text);
        }
        let plain = self.keyring.decrypt(&text).map_err(|error| match error {
            vault::Error::NoPassword => format!("{error} (--vault-password-file or --ask-vault-pass)"),
            error => error.to_string(),
        })?;
        String::from_utf8(plain).map_err(|_| "the decrypted text is not UTF-8".to_owned())
    }

    fn printed(&self, words: &[String]) -> Result<String, String> {
        let (program, arguments) = words.split_first().ok_or("the command is empty")?;
        let mut command = self.places.surroundings.command(program);
        command.args(arguments).current_dir(&self.places.directory).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| error.to_string())?;
        let (status, said) = read::printed(child).map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("it failed ({status})"));
        }
        String::from_utf8(said).map(without_newline).map_err(|_| "it is not UTF-8 text".to_owned())
    }
}

/// The secret that a reference in a person's own file names, or why it cannot be read. It is hidden in all output. Secrets are those of the
/// cluster of the user's kubeconfig.
///
/// # Errors
/// Where it should be, and why it is not read.
pub fn read_referenced_secret<Spec>(
    resource: &NamedResource<Spec>,
    reference: &Reference,
    keyring: &Keyring,
) -> Result<String, String> {
    let surroundings = resource.places().surroundings;
    let source = SecretSource::Cluster(Cluster { context: None, around: surroundings });
    let secrets = Secrets::of_resource(resource, source, keyring);
    let text = secrets.resolve(reference).map_err(|why| format!("{}: {why}", secrets.place(reference)))?;
    keyring.hidden.add_secret(&text);
    Ok(text)
}

/// Files and programs end with a newline that is no part of what they say. A key of several lines keeps its own.
fn without_newline(text: String) -> String {
    match text.strip_suffix('\n') {
        Some(line) if !line.contains('\n') => line.strip_suffix('\r').unwrap_or(line).to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::SecretKind;

    #[test]
    fn a_key_is_no_password_and_a_login_is_no_authority() {
        let of = |kind: &str| format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
        let (openssh, pkcs8) = (of("OPENSSH PRIVATE KEY"), of("PRIVATE KEY"));
        for (kind, good, bad) in [
            (
                SecretKind::Password,
                vec!["pass word\n", "", "-----"],
                vec![openssh.as_str(), "apiVersion: v1\nkind: Config", "a\rb"],
            ),
            (SecretKind::AuthorityKey, vec![pkcs8.as_str()], vec![openssh.as_str(), "password", ""]),
            (SecretKind::SshKey, vec![openssh.as_str(), pkcs8.as_str()], vec![]),
        ] {
            for text in good {
                assert_eq!(kind.check(text), Ok(()), "{kind:?} {text}");
            }
            for text in bad {
                let why = kind.check(text).unwrap_err();
                assert!(!why.contains("AAAA") && !why.contains("apiVersion"), "{kind:?} {why}");
            }
        }
    }
}
