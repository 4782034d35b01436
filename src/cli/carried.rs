//! The playbooks and roles that the program carries, as its command lines use them.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::launch::carried::{EmbeddedPlaybooks, Error};
use crate::playbook::load::FindRole;
use crate::value::ProcessEnvironment;

thread_local! {
    /// Of the program whose command line this thread runs.
    static CARRIED: Cell<Option<&'static EmbeddedPlaybooks>> = const { Cell::new(None) };
}

/// Runs a command line of a program that carries these.
pub(super) fn with_embedded<T>(carried: &'static EmbeddedPlaybooks, command_line: impl FnOnce() -> T) -> T {
    let outer = CARRIED.replace(Some(carried));
    let done = command_line();
    CARRIED.set(outer);
    done
}

pub(super) fn get() -> Option<&'static EmbeddedPlaybooks> {
    CARRIED.get()
}

/// The directory of the playbooks, unpacked.
///
/// # Errors
/// They cannot be unpacked.
pub(super) fn playbooks(around: &ProcessEnvironment) -> Result<PathBuf, Error> {
    let carried = get().ok_or(Error::NoCache)?;
    Ok(carried.unpack_playbooks(around)?.join("playbooks"))
}

/// The roles, for the user's own playbooks: unpacked when a play names one that is nowhere else.
pub(super) fn roles(around: &Arc<ProcessEnvironment>) -> Option<FindRole> {
    let (carried, around) = (get()?, around.clone());
    Some(Arc::new(move |name| {
        carried.roles.get_dir(name)?;
        match carried.unpack_playbooks(&around) {
            Ok(directory) => Some(directory.join("roles").join(name)),
            Err(error) => {
                tracing::warn!(%error, "cannot use the role {name} of windlass");
                None
            }
        }
    }))
}

/// A playbook as named or, if there is none and the name is a bare one, that of windlass.
///
/// # Errors
/// It cannot be unpacked.
pub(super) fn embedded_playbook(named: &Path, around: &ProcessEnvironment) -> Result<PathBuf, Error> {
    let is_bare = named.components().count() == 1 && named.is_relative();
    match get().filter(|carried| is_bare && !around.absolute(named).exists() && carried.has_file(named)) {
        Some(_) => Ok(playbooks(around)?.join(named)),
        None => Ok(named.to_owned()),
    }
}
