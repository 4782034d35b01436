//! Whether other users can write to files of this user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The first directory on the way to this one that another user than root and this one owns or can write to. What is not there yet
/// will be this user's.
///
/// # Errors
/// A directory on the way cannot be looked at.
pub fn written_by_others(directory: &Path) -> std::io::Result<Option<PathBuf>> {
    const STICKY: u32 = 0o1000;
    let Some(there) = directory.ancestors().find(|above| above.symlink_metadata().is_ok()) else { return Ok(None) };
    for above in there.canonicalize()?.ancestors() {
        let found = above.metadata()?;
        let is_sticky = is_owned(&found) && found.mode() & STICKY != 0;
        if !is_sticky && !is_own(&found) {
            return Ok(Some(above.to_owned()));
        }
    }
    Ok(None)
}

/// The first file or directory in a directory or below that another user than root and this one owns or can write to. What is reached
/// by links that lead elsewhere is not looked at.
///
/// # Errors
/// One of them cannot be looked at.
pub fn written_by_others_below(directory: &Path) -> std::io::Result<Option<PathBuf>> {
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let found = path.symlink_metadata()?;
            if !(is_own(&found) || found.is_symlink() && is_owned(&found)) {
                return Ok(Some(path));
            }
            folders.extend(found.is_dir().then_some(path));
        }
    }
    Ok(None)
}

fn is_owned(found: &fs::Metadata) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&found.uid())
}

/// Whether only root and this user can write to it.
pub fn is_own(found: &fs::Metadata) -> bool {
    let me = rustix::process::geteuid().as_raw();
    // Many systems give each user a private group with the same number.
    let own_group = found.uid() == me && found.gid() == me;
    let shared = found.mode() & if own_group { 0o002 } else { 0o022 };
    is_owned(found) && shared == 0
}
