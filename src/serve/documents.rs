//! The documents of deployments. Those that came through the API are in a directory of the server's own, and are never read as a person's:
//! see [`crate::resource::STORED`]. Files that a person wrote are shown, and not changed.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::access::sha256_hex;
use super::call::Call;
use super::check::document_text;
use super::complaints::judged;
use super::deployments::{
    MOST_FILES, broken_file_of, count_documents, file_name_of, named_deployment, read_deployments,
};
use super::problem::Problem;
use super::{ServeError, Server, answers, runs};
use crate::resource::{STORED_SUFFIX, is_stored_name};
use crate::value::ownership::written_by_others;

/// A document that was stored.
#[derive(Serialize, JsonSchema)]
pub(super) struct StoredDocument {
    deployment: String,
    /// SHA-256 of the text. In quotes it is the ETag.
    digest: String,
    /// Whether there was none before.
    created: bool,
}

/// What must be there for a change.
enum Precondition {
    Absent,
    /// One of these digests.
    Digest(Vec<String>),
}

impl Precondition {
    fn of_headers(headers: &HeaderMap) -> Result<Precondition, Problem> {
        let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
        match (text(header::IF_MATCH), text(header::IF_NONE_MATCH)) {
            (None, Some("*")) => Ok(Precondition::Absent),
            (Some(tags), None) if tags.trim() != "*" => {
                // A weak one says nothing of the text.
                let strong = tags.split(',').filter_map(|tag| tag.trim().strip_prefix('"')?.strip_suffix('"'));
                Ok(Precondition::Digest(strong.map(str::to_owned).collect()))
            }
            _ => {
                let detail = "a change of a document needs If-Match with the ETag of the document that was read; a new one If-None-Match: *";
                Err(Problem::new(StatusCode::PRECONDITION_REQUIRED, "NoPrecondition", detail))
            }
        }
    }

    fn is_met(&self, current: Option<&str>) -> bool {
        match (self, current) {
            (Precondition::Absent, None) => true,
            (Precondition::Digest(digests), Some(current)) => digests.iter().any(|digest| digest == current),
            _ => false,
        }
    }

    fn failed(&self, current: Option<&str>) -> Problem {
        let (detail, given) = match (self, current) {
            (Precondition::Absent, _) => ("there is a document of this name already", None),
            (Precondition::Digest(digests), None) => ("the document was deleted", digests.first()),
            (Precondition::Digest(digests), Some(_)) => ("the document was changed since it was read", digests.first()),
        };
        Problem::new(StatusCode::PRECONDITION_FAILED, "DocumentChanged", detail)
            .with_digests(given.cloned(), current.map(str::to_owned))
            .with_hint("read it again, and make your change in what is there now")
    }
}

/// Makes the directory of documents, if it is not there, for this user alone.
///
/// # Errors
/// It cannot be used, another user can write to it, or it is not apart from that of people's files.
pub(super) fn prepare_documents(directory: &Path, deployments: &Path) -> Result<PathBuf, ServeError> {
    let failed = |source| ServeError::Directory { path: directory.to_owned(), source };
    make_private(directory).map_err(failed)?;
    let directory = directory.canonicalize().map_err(failed)?;
    if directory.starts_with(deployments) || deployments.starts_with(&directory) {
        return Err(ServeError::Overlap { documents: directory, deployments: deployments.to_owned() });
    }
    match written_by_others(&directory).map_err(failed)? {
        Some(path) => Err(ServeError::NotOwn { path }),
        None => Ok(directory),
    }
}

/// A directory for this user alone.
pub(super) fn make_private(directory: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

fn document_path(server: &Server, name: &str) -> PathBuf {
    server.documents.join(format!("{name}{STORED_SUFFIX}"))
}

/// Whether a document of this name came through the API.
pub(super) fn has_document(server: &Server, name: &str) -> bool {
    document_path(server, name).exists()
}

/// The text of a stored document, with its digest.
fn stored_text(path: &Path) -> Result<Option<(String, String)>, Problem> {
    match std::fs::read_to_string(path) {
        Ok(text) => {
            let digest = sha256_hex(text.as_bytes());
            Ok(Some((text, digest)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Problem::internal(format!("{}: {error}", path.display()))),
    }
}

/// Holds the directory of documents until it is dropped: also against another server that uses it.
pub(super) fn hold_documents(server: &Server) -> Result<File, Problem> {
    let path = server.documents.join(".lock");
    let failed = |error| Problem::internal(format!("{}: {error}", path.display()));
    let lock = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(failed)?;
    lock.lock().map_err(failed)?;
    Ok(lock)
}

pub(super) fn invalid_name() -> Problem {
    let detail = "a name has at most 63 lower-case letters, digits and dashes, and no dash at its ends";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidName", detail)
}

/// Refuses to change what a person wrote.
pub(super) fn refuse_own_file(server: &Server, name: &str) -> Result<(), Problem> {
    let Some(file) = read_deployments(server, |other| other == name)?.into_iter().find(|file| !file.stored) else {
        return Ok(());
    };
    let detail = format!(
        "{} is a file that a person wrote on the server: it can only be changed there",
        file_name_of(&file.path)
    );
    Err(Problem::conflict("OwnFile", detail).with_hint("give the new deployment another name"))
}

/// Refuses one more document than the server reads.
fn refuse_too_many(server: &Server) -> Result<(), Problem> {
    if count_documents(server)? < MOST_FILES {
        return Ok(());
    }
    let detail = format!("there are {MOST_FILES} documents already, which is the most");
    Err(Problem::conflict("TooManyDocuments", detail).with_hint("delete those of deployments that are no more"))
}

/// Refuses a new document that may have the name of a person's file: one that cannot be used now must not lose it meanwhile.
fn refuse_broken_file(server: &Server, name: &str) -> Result<(), Problem> {
    let Some(path) = broken_file_of(server, name)? else { return Ok(()) };
    let detail = format!(
        "{} is a file that a person wrote on the server, and may be of this deployment: it cannot be used now",
        file_name_of(&path)
    );
    Err(Problem::conflict("OwnFile", detail).with_hint("mend the file, or give the new deployment another name"))
}

/// What the name of a file begins with that is being written.
const UNFINISHED: &str = ".new-";
/// A file that has been unfinished for so long is of a process that was killed.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// Writes a file whole, or not at all. Removes what processes left that were killed while they wrote in this directory.
pub(super) fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    for entry in std::fs::read_dir(directory)?.flatten() {
        let is_unfinished = entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes());
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_unfinished && age().is_some_and(|age| age > ABANDONED) {
            // Another process may have removed it.
            drop(std::fs::remove_file(entry.path()));
        }
    }
    let mode = path.metadata().map_or(0o600, |before| before.permissions().mode() & 0o777);
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

/// The document of a deployment: a person's file, or a stored one.
pub(super) async fn show_document(call: Call) -> Result<Response, Problem> {
    let text = named_deployment(call, |_, file| std::fs::read_to_string(&file.path).map_err(Problem::internal)).await?;
    let tag = etag(&sha256_hex(text.as_bytes()))?;
    let mut response = answers::text(text);
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

fn etag(digest: &str) -> Result<HeaderValue, Problem> {
    format!("\"{digest}\"").parse().map_err(Problem::internal)
}

/// Refuses a document that may not be put in the place of the current one, whose digest this is. Files of people are read again only if
/// they changed.
fn check_put(
    server: &Server,
    name: &str,
    precondition: &Precondition,
    new_digest: &str,
) -> Result<Option<String>, Problem> {
    refuse_own_file(server, name)?;
    let current = stored_text(&document_path(server, name))?.map(|(_, digest)| digest);
    // The same request again, maybe as its answer was lost: it is done.
    let is_done = current.as_deref() == Some(new_digest);
    if !is_done && !precondition.is_met(current.as_deref()) {
        return Err(precondition.failed(current.as_deref()));
    }
    if current.is_none() {
        refuse_broken_file(server, name)?;
        refuse_too_many(server)?;
    }
    Ok(current)
}

/// Creates a document, or changes the one that was read.
pub(super) async fn put_document(call: Call) -> Result<Response, Problem> {
    let name = call.part("deployment").to_owned();
    let precondition = Precondition::of_headers(&call.headers)?;
    let text = document_text(&call)?;
    let digest = sha256_hex(text.as_bytes());
    call.note.lock().detail = format!("document {digest}");
    if !is_stored_name(&name) {
        return Err(invalid_name());
    }
    let new_digest = digest.clone();
    let put = move |server: &Server| {
        // What takes long comes first: others wait for those who hold the documents.
        check_put(server, &name, &precondition, &new_digest)?;
        judged(&text, Some(&name), &server.limits).map_err(Problem::of_complaints)?;
        let _held = hold_documents(server)?;
        let current = check_put(server, &name, &precondition, &new_digest)?;
        if current.as_deref() != Some(&new_digest) {
            let path = document_path(server, &name);
            write_whole(&path, &text)
                .map_err(|error| Problem::internal(format!("cannot write {}: {error}", path.display())))?;
        }
        Ok(StoredDocument { deployment: name, digest: new_digest, created: current.is_none() })
    };
    let stored = call.server.blocking(put).await?;
    let status = if stored.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = answers::json_answer(status, &stored);
    response.headers_mut().insert(header::ETAG, etag(&digest)?);
    Ok(response)
}

/// Deletes a document with the credentials that came through the API. What is on its hosts stays there; so do the certificates and keys
/// that windlass made for it.
pub(super) async fn delete_document(call: Call) -> Result<Response, Problem> {
    let name = call.part("deployment").to_owned();
    let precondition = Precondition::of_headers(&call.headers)?;
    let delete = move |server: &Server| {
        let _held = hold_documents(server)?;
        let path = document_path(server, &name);
        let current = stored_text(&path)?.map(|(_, digest)| digest);
        // A document leaves also if a person's file has its name by now.
        if current.is_none() {
            refuse_own_file(server, &name)?;
        }
        let current = current.ok_or_else(|| Problem::not_found("such document"))?;
        if !precondition.is_met(Some(&current)) {
            return Err(precondition.failed(Some(&current)));
        }
        if let Some(run) = runs::running_runs(server, &name)?.first() {
            let detail = format!("{} by {} is under way (run {})", run.start.command, run.start.user, run.start.id);
            return Err(Problem::conflict("AlreadyRunning", detail).with_hint("wait until it has ended, or stop it"));
        }
        // First: a document without credentials can be deleted once more.
        for credential in server.credentials.credential_names(&name)? {
            server.credentials.delete_credential(&name, &credential)?;
        }
        let removed = std::fs::remove_file(&path).and_then(|()| File::open(&server.documents)?.sync_all());
        removed.map_err(|error| Problem::internal(format!("cannot delete {}: {error}", path.display())))?;
        Ok(current)
    };
    let digest = call.server.blocking(delete).await?;
    call.note.lock().detail = format!("document {digest}");
    Ok(answers::no_content())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_by_the_next_write() {
        let directory = tempfile::tempdir().unwrap();
        let [old, young] = [".new-old", ".new-young"].map(|name| directory.path().join(name));
        for path in [&old, &young] {
            std::fs::write(path, "half").unwrap();
        }
        let long_ago = std::time::SystemTime::now() - 2 * ABANDONED;
        File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        let path = directory.path().join("a.document");
        write_whole(&path, "whole").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole");
        assert!(!old.exists() && young.exists());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
