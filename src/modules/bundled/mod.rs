//! Modules around bundles: `program` installs from one, `bundle_info` lists its content.

pub(super) mod info;
pub(super) mod program;
mod verified;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::Error;
use super::file_digest::{self, Key};
use crate::bundle::{Bundle, FoundProgram, MANIFEST, ProgramQuery, RequiredSigners};
use crate::value::ProcessEnvironment;
use crate::value::mutex::Mutex;

impl From<crate::bundle::Error> for Error {
    fn from(error: crate::bundle::Error) -> Self {
        Error::Failed { message: error.message, hint: error.hint }
    }
}

/// What was asked of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    bundle: PathBuf,
    surroundings: Arc<ProcessEnvironment>,
    component: String,
    architecture: String,
    version: Option<String>,
    signers: Option<Arc<RequiredSigners>>,
}

/// A program that was found, and what its file looked like then.
type Answer = (FoundProgram, Option<Key>);

/// A question, and what the bundle and its manifest looked like then.
type Asked = (Question, [Option<Key>; 2]);

/// The programs that were found, by the question and what the bundle and its manifest look like. Programs are large, and all hosts
/// ask for the same at the same time: each is found and hashed once, unless something changes.
#[derive(Debug, Default)]
pub(in crate::modules) struct FoundPrograms(Mutex<HashMap<Asked, Arc<OnceCell<Answer>>>>);

impl FoundPrograms {
    /// Finds a program. The bundle must not change while a run lasts.
    async fn find(&self, question: Question) -> Result<FoundProgram, Error> {
        let key = |path: &Path| file_digest::key(path).ok();
        let looks = [key(&question.bundle), key(&question.bundle.join(MANIFEST))];
        let asked = (question, looks);
        let cell = Arc::clone(self.0.lock().entry(asked.clone()).or_default());
        let (found, then) = cell.get_or_try_init(|| answer(&asked.0)).await?;
        if *then == key(&found.path) {
            return Ok(found.clone());
        }
        self.0.lock().remove(&asked);
        Ok(answer(&asked.0).await?.0)
    }
}

async fn answer(question: &Question) -> Result<Answer, Error> {
    let question = question.clone();
    blocking(move || {
        let Question { bundle, surroundings, component, architecture, version, signers } = &question;
        let bundle = Bundle::open_bundle(bundle, surroundings, signers.as_deref())?;
        let found = bundle.find_program(ProgramQuery { component, architecture, version: version.as_deref() })?;
        let file = file_digest::key(&found.path).ok();
        Ok((found, file))
    })
    .await
}

/// For what reads and hashes files.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, crate::bundle::Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|_| Error::failed("reading the bundle was interrupted"))??)
}
