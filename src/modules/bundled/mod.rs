//! Modules around bundles: `program` installs from one, `bundle_info` tells what is in it.

pub(super) mod info;
pub(super) mod program;
mod verified;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use tokio::sync::OnceCell;

use super::Error;
use crate::bundle::{Bundle, Found, Wanted};
use crate::value::home;
use crate::value::lock::Mutex;

impl From<crate::bundle::Error> for Error {
    fn from(error: crate::bundle::Error) -> Self {
        Error::Failed { message: error.message, hint: error.hint }
    }
}

/// What was asked of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    bundle: PathBuf,
    component: String,
    architecture: String,
    version: Option<String>,
}

type Answers = HashMap<Question, Arc<OnceCell<Found>>>;

/// Programs are large, and all hosts ask for the same at the same time: each is found and hashed once in a run.
static ANSWERS: LazyLock<Mutex<Answers>> = LazyLock::new(Mutex::default);

/// Finds a program. The bundle must not change while a run lasts.
async fn find(question: Question) -> Result<Found, Error> {
    let cell = {
        let mut answers = ANSWERS.lock();
        Arc::clone(answers.entry(question.clone()).or_default())
    };
    let ask = || async {
        blocking(move || {
            let Question { bundle, component, architecture, version } = &question;
            Bundle::open(bundle)?.find(Wanted { component, architecture, version: version.as_deref() })
        })
        .await
    };
    cell.get_or_try_init(ask).await.cloned()
}

/// For what reads and hashes files.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, crate::bundle::Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|_| Error::failed("reading the bundle was broken off"))??)
}

/// The path of a bundle: relative to where windlass was called, as paths of a command line are.
fn place(bundle: &str) -> PathBuf {
    home::expand(bundle)
}
