//! Credentials of deployments whose documents are stored: they are written and listed, and no answer has one.

use std::time::SystemTime;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answers;
use super::call::Call;
use super::documents::{has_document, hold_documents, refuse_own_file};
use super::problem::Problem;
use super::sealed::{CredentialKind, LONGEST_SECRET, SealError, SealedCredential};
use super::{Server, documents};
use crate::connection::key_fingerprint_of;
use crate::resource::is_stored_name;
use crate::runs::timestamp_text;
use crate::value::Secret;

/// A credential to keep.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewCredential {
    kind: CredentialKind,
    /// It cannot be read again.
    value: String,
}

/// A credential, without what is secret.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Credential {
    name: String,
    kind: CredentialKind,
    /// What the document says to use it: `{secret: {name: NAME, key: KEY}}`.
    key: &'static str,
    /// Of an SSH key: SHA-256 of its public key, as `ssh-keygen -l` prints it.
    fingerprint: Option<String>,
    /// When it was written.
    set: String,
    by: String,
}

/// The credentials of a deployment.
#[derive(Serialize, JsonSchema)]
pub(super) struct CredentialList {
    items: Vec<Credential>,
    next: Option<String>,
    /// Whether the server has a key, without which none can be written.
    writable: bool,
}

impl Credential {
    fn of_sealed(name: String, sealed: SealedCredential) -> Credential {
        let SealedCredential { kind, fingerprint, set, by, .. } = sealed;
        Credential { name, kind, key: kind.key_name(), fingerprint, set, by }
    }
}

impl From<SealError> for Problem {
    fn from(error: SealError) -> Problem {
        match error {
            SealError::Opened { .. } => {
                tracing::error!("{error}");
                let detail = "the credentials of this deployment were sealed with another key, or are damaged";
                Problem::conflict("CredentialsSealed", detail)
                    .with_hint("start the server with their key, or write them again")
            }
            error => Problem::internal(error),
        }
    }
}

fn no_key() -> Problem {
    Problem::conflict("NoCredentialsKey", "the server has no key to seal credentials with").with_hint(
        "make one: (umask 077; openssl rand -base64 32 > FILE), and start the server with --credentials-key FILE",
    )
}

/// How many credentials a deployment may have.
const MOST_CREDENTIALS: usize = 32;

/// How many deployments may have credentials before they have a document: a new one gets its credentials first.
const MOST_WITHOUT_DOCUMENT: usize = 32;

/// Refuses one more credential where there are too many.
fn refuse_too_many(server: &Server, deployment: &str, name: &str) -> Result<(), Problem> {
    let names = server.credentials.credential_names(deployment)?;
    if names.iter().any(|there| there == name) {
        return Ok(());
    }
    if names.len() >= MOST_CREDENTIALS {
        let detail = format!("the deployment has {MOST_CREDENTIALS} credentials already, which is the most");
        return Err(
            Problem::conflict("TooManyCredentials", detail).with_hint("delete those that its document does not use")
        );
    }
    if names.is_empty() && !has_document(server, deployment) {
        let others = server.credentials.deployments_with_credentials()?;
        let waiting = others.iter().filter(|other| !has_document(server, other)).count();
        if waiting >= MOST_WITHOUT_DOCUMENT {
            let detail = format!("{waiting} deployments have credentials and no document already, which is the most");
            return Err(Problem::conflict("TooManyCredentials", detail)
                .with_hint("send the document first, or delete credentials that no document is going to use"));
        }
    }
    Ok(())
}

/// The names of the path: the deployment and the credential.
fn names(call: &Call) -> Result<(String, String), Problem> {
    let (deployment, name) = (call.part("deployment").to_owned(), call.part("credential").to_owned());
    call.note.lock().detail = format!("credential {name}");
    match is_stored_name(&deployment) && is_stored_name(&name) {
        true => Ok((deployment, name)),
        false => Err(documents::invalid_name()),
    }
}

pub(super) async fn list_credentials(call: Call) -> Result<Response, Problem> {
    let deployment = call.part("deployment").to_owned();
    let list = move |server: &Server| {
        let found = match is_stored_name(&deployment) {
            true => server.credentials.list_credentials(&deployment)?,
            false => Vec::new(),
        };
        let items = found.into_iter().map(|(name, sealed)| Credential::of_sealed(name, sealed)).collect();
        Ok(CredentialList { items, next: None, writable: server.credentials.has_key() })
    };
    Ok(answers::ok(&call.server.blocking(list).await?))
}

pub(super) async fn put_credential(call: Call) -> Result<Response, Problem> {
    let (deployment, name) = names(&call)?;
    // The parser's own words might quote it.
    let invalid = |detail: &str| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidBody", detail);
    let new: NewCredential = serde_json::from_slice(&call.body).map_err(|_| {
        invalid("the body must be an object with the texts kind (sshKey, password, kubeconfig or privateKey) and value")
    })?;
    if new.value.trim().is_empty() || new.value.len() > LONGEST_SECRET {
        return Err(invalid("the value must not be empty, and have at most 65536 bytes"));
    }
    let fingerprint = match new.kind {
        CredentialKind::SshKey => {
            let found = key_fingerprint_of(&new.value);
            Some(found.ok_or_else(|| invalid("the value is not a private key of OpenSSH or in PEM"))?)
        }
        _ => None,
    };
    let secret = Secret::new(new.value);
    let by = call.login.as_ref().map_or_else(String::new, |login| login.name.clone());
    let put = move |server: &Server| {
        // Files of people are read before others have to wait.
        refuse_own_file(server, &deployment)?;
        let _held = hold_documents(server)?;
        refuse_own_file(server, &deployment)?;
        refuse_too_many(server, &deployment, &name)?;
        let now = timestamp_text(SystemTime::now());
        let sealed = || SealedCredential::new(new.kind, fingerprint.clone(), now.clone(), by.clone());
        let written = server.credentials.write_credential((&deployment, &name), &secret, sealed())?;
        let is_new = written.ok_or_else(no_key)?;
        Ok((is_new, Credential::of_sealed(name, sealed())))
    };
    let (is_new, credential) = call.server.blocking(put).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answers::json_answer(status, &credential))
}

pub(super) async fn delete_credential(call: Call) -> Result<Response, Problem> {
    let (deployment, name) = names(&call)?;
    let deleted =
        call.server.blocking(move |server| Ok(server.credentials.delete_credential(&deployment, &name)?)).await?;
    match deleted {
        true => Ok(answers::no_content()),
        false => Err(Problem::not_found("such credential")),
    }
}
