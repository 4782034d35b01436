//! The store of runs, opened a few times, so that requests need not wait for each other.

use std::path::Path;

use crate::runs::{self, RunStore, open_store};
use crate::value::mutex::Mutex;

/// How many requests may read at once.
const READERS: usize = 4;

pub(super) struct Stores {
    free: Mutex<Vec<Box<dyn RunStore>>>,
    directory: std::path::PathBuf,
}

impl Stores {
    pub(super) fn open_stores(directory: &Path) -> Result<Stores, runs::Error> {
        let store = open_store(directory)?;
        Ok(Stores { free: Mutex::new(vec![store]), directory: directory.to_owned() })
    }

    /// Reads. May block.
    pub(super) fn with_store<T>(
        &self,
        work: impl FnOnce(&mut dyn RunStore) -> Result<T, runs::Error>,
    ) -> Result<T, runs::Error> {
        let free = self.free.lock().pop();
        let mut store = match free {
            Some(store) => store,
            None => open_store(&self.directory)?,
        };
        let done = work(store.as_mut())?;
        let mut free = self.free.lock();
        if free.len() < READERS {
            free.push(store);
        }
        Ok(done)
    }
}
