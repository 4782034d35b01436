//! Where the certificates and keys of a deployment are kept between runs: a directory, or a Secret of the Kubernetes API. Roles
//! read and write files in a directory in both cases. Knows nothing of what the files are for.

mod entries;
mod handed;
mod scratch;
mod secret;

use std::path::PathBuf;
use std::sync::Arc;

pub use entries::{CredentialFile, CredentialFiles, read_files, read_some_files, write_files, write_files_for};
pub use handed::{HANDED, HandedSecrets};
pub use secret::SecretStore;

use crate::value::{Deferred, Value};

/// Where the credentials of a deployment are kept.
#[derive(Debug, Clone)]
pub enum Credentials {
    Directory(PathBuf),
    /// A Secret. Its files are in a private directory from when a run first asks for them until the run ends.
    Secret(Arc<SecretStore>),
}

impl Credentials {
    /// The directory with the files; those of a Secret are read now, if they were not.
    ///
    /// # Errors
    /// One line that says why the Secret cannot be used.
    pub fn files_directory(&self) -> Result<PathBuf, String> {
        match self {
            Credentials::Directory(directory) => Ok(directory.clone()),
            Credentials::Secret(store) => store.files_directory(),
        }
    }

    /// The directory as a value of a variable: a Secret is read when a task first needs it.
    pub fn value(&self) -> Value {
        match self {
            Credentials::Directory(directory) => Value::from(directory.to_string_lossy()),
            Credentials::Secret(store) => {
                let place = format!("the credentials in {}", store.place());
                let store = store.clone();
                Deferred::deferred_path(place, move || Ok(store.files_directory()?.to_string_lossy().into_owned()))
            }
        }
    }

    /// Keeps what tasks have written. It returns when it is kept.
    ///
    /// # Errors
    /// One line that says why it could not be: what depends on the files must not continue.
    pub async fn save(&self) -> Result<(), String> {
        match self {
            Credentials::Directory(_) => Ok(()),
            Credentials::Secret(store) => store.save().await,
        }
    }

    /// A warning about the store, which is given once.
    pub fn take_warning(&self) -> Option<String> {
        match self {
            Credentials::Directory(_) => None,
            Credentials::Secret(store) => store.warning.lock().take(),
        }
    }

    /// A text with the directory of a Secret's files, which differs from run to run, as `credentials`.
    pub fn without_directory(&self, text: &mut String) {
        if let Credentials::Secret(store) = self
            && let Some(directory) = store.opened.get()
            && text.contains(&**directory)
        {
            *text = text.replace(&**directory, "credentials");
        }
    }
}
