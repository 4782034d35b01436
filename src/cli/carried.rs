//! The playbooks and roles that the program carries, as its command lines use them.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use crate::launch::carried::{Carried, Error};
use crate::value::Surroundings;

thread_local! {
    /// Of the program whose command line this thread runs.
    static CARRIED: Cell<Option<&'static Carried>> = const { Cell::new(None) };
}

/// Runs a command line of a program that carries these.
pub(super) fn with<T>(carried: &'static Carried, command_line: impl FnOnce() -> T) -> T {
    let outer = CARRIED.replace(Some(carried));
    let done = command_line();
    CARRIED.set(outer);
    done
}

pub(super) fn get() -> Option<&'static Carried> {
    CARRIED.get()
}

/// The directory of the playbooks, unpacked.
///
/// # Errors
/// They cannot be unpacked.
pub(super) fn playbooks(around: &Surroundings) -> Result<PathBuf, Error> {
    let carried = get().ok_or(Error::NoCache)?;
    Ok(carried.unpack(around)?.join("playbooks"))
}

/// The roles, for playbooks of one's own. None: they cannot be unpacked, which matters only to a play that names one.
pub(super) fn roles(around: &Surroundings) -> Option<PathBuf> {
    match get()?.unpack(around) {
        Ok(directory) => Some(directory.join("roles")),
        Err(error) => {
            tracing::info!(%error, "roles of windlass are not found");
            None
        }
    }
}

/// A playbook as named or, if there is none and the name is a bare one, that of windlass.
///
/// # Errors
/// It cannot be unpacked.
pub(super) fn playbook(named: &Path, around: &Surroundings) -> Result<PathBuf, Error> {
    let is_bare = named.components().count() == 1 && named.is_relative();
    match get().filter(|carried| is_bare && !around.absolute(named).exists() && carried.has(named)) {
        Some(_) => Ok(playbooks(around)?.join(named)),
        None => Ok(named.to_owned()),
    }
}
