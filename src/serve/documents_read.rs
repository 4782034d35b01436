//! The documents of deployments as they were read last: one that has not changed is not read and checked again at each request.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file_state::FileState;
use crate::resource::{self, Deployment, ForeignResourceLimits, Resource, Sibling};
use crate::value::mutex::Mutex;
use crate::value::origin::Diagnostic;

/// What is in a file: the first deployment, if there is one, and whether there are more; or why it cannot be used.
pub(super) type Content = Result<(Option<Deployment>, bool), Vec<Diagnostic>>;

/// How many are kept. Beyond, all are forgotten: a directory has fewer.
const MOST: usize = 4000;

/// What was found in files.
struct Kept<T>(Mutex<HashMap<PathBuf, (FileState, Arc<T>)>>);

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept(Mutex::default())
    }
}

impl<T> Kept<T> {
    /// Reads a file, or takes what it had when it was read last.
    fn find(&self, path: &Path, read: impl FnOnce() -> T) -> std::io::Result<Arc<T>> {
        let state = FileState::from(&path.metadata()?);
        if let Some((known, found)) = self.0.lock().get(path)
            && *known == state
        {
            return Ok(found.clone());
        }
        let found = Arc::new(read());
        // One that changed meanwhile is read again the next time.
        if FileState::from(&path.metadata()?) == state {
            let mut kept = self.0.lock();
            if kept.len() >= MOST {
                kept.clear();
            }
            kept.insert(path.to_owned(), (state, found.clone()));
        }
        Ok(found)
    }
}

#[derive(Default)]
pub(super) struct DocumentsRead {
    contents: Kept<Content>,
    siblings: Kept<Vec<Sibling>>,
    /// Of contents and of siblings.
    #[cfg(test)]
    reads: [std::sync::atomic::AtomicUsize; 2],
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
        self.contents.find(path, || {
            #[cfg(test)]
            self.reads[0].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            read(path, is_stored, limits)
        })
    }

    /// As [`resource::siblings`], with each file read once.
    pub(super) fn siblings(&self, directory: &Path) -> Vec<Sibling> {
        resource::siblings_by(directory, |path| {
            let found = self.siblings.find(path, || {
                #[cfg(test)]
                self.reads[1].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                resource::siblings_in(path)
            });
            found.map_or_else(|_| Vec::new(), |found| found.to_vec())
        })
    }

    /// How many times contents were read, and siblings.
    #[cfg(test)]
    pub(super) fn reads_so_far(&self) -> [usize; 2] {
        [0, 1].map(|of: usize| self.reads[of].load(std::sync::atomic::Ordering::Relaxed))
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
