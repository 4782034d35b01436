//! The documents of deployments as they were read last: one that has not changed is not read and checked again at each request.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file_state::FileState;
use crate::resource::{self, Deployment, ForeignResourceLimits, Resource};
use crate::value::mutex::Mutex;
use crate::value::origin::Diagnostic;

/// What is in a file: the first deployment, if there is one, and whether there are more; or why it cannot be used.
pub(super) type Content = Result<(Option<Deployment>, bool), Vec<Diagnostic>>;

/// How many are kept. Beyond, all are forgotten: a directory has fewer.
const MOST: usize = 4000;

#[derive(Default)]
pub(super) struct DocumentsRead {
    kept: Mutex<HashMap<PathBuf, (FileState, Arc<Content>)>>,
    #[cfg(test)]
    reads: std::sync::atomic::AtomicUsize,
}

impl DocumentsRead {
    /// Reads a file, or takes what it had when it was read last.
    ///
    /// # Errors
    /// It is not there.
    pub(super) fn content(
        &self,
        path: &Path,
        is_stored: bool,
        limits: &ForeignResourceLimits,
    ) -> std::io::Result<Arc<Content>> {
        let state = FileState::from(&path.metadata()?);
        if let Some((known, content)) = self.kept.lock().get(path)
            && *known == state
        {
            return Ok(content.clone());
        }
        #[cfg(test)]
        self.reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let content = Arc::new(read(path, is_stored, limits));
        // One that changed meanwhile is read again the next time.
        if FileState::from(&path.metadata()?) == state {
            let mut kept = self.kept.lock();
            if kept.len() >= MOST {
                kept.clear();
            }
            kept.insert(path.to_owned(), (state, content.clone()));
        }
        Ok(content)
    }

    #[cfg(test)]
    pub(super) fn reads_so_far(&self) -> usize {
        self.reads.load(std::sync::atomic::Ordering::Relaxed)
    }
}

fn read(path: &Path, is_stored: bool, limits: &ForeignResourceLimits) -> Content {
    let resources = match is_stored {
        true => vec![Resource::KarmadaDeployment(resource::load_stored(path, limits)?)],
        false => resource::load_resources(path, limits)?,
    };
    let mut deployments = resources.into_iter().filter_map(|resource| match resource {
        Resource::KarmadaDeployment(deployment) => Some(deployment),
        _ => None,
    });
    Ok((deployments.next(), deployments.next().is_some()))
}
