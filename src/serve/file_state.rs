//! Whether a file is still the one that was read: by its place, size and times.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Device and inode, size, modification and change, each with its nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileState {
    place: (u64, u64),
    size: u64,
    times: (i64, i64, i64, i64),
}

impl From<&Metadata> for FileState {
    fn from(found: &Metadata) -> FileState {
        FileState {
            place: (found.dev(), found.ino()),
            size: found.size(),
            times: (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()),
        }
    }
}
