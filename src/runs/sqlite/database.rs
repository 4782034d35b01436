//! An SQLite database of this user alone, in a directory of this user.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::super::Error;
use super::{create_private_directory, schema};
use crate::value::ownership;

/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(5);

/// Network file systems, on which the memory that WAL shares between processes does not work across machines.
const NETWORK_FILE_SYSTEMS: [i64; 6] = [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x517b, 0x5346_414f, 0x0102_1997];

/// Opens a database in a directory; creates what is not there, for this user alone. `layouts` are the layouts of its tables, each as
/// the SQL that makes it from the one before. Returns the connection and the path of the file, without links.
///
/// # Errors
/// It cannot be read or written, belongs to another user, is not a database of windlass, or a newer windlass wrote it.
pub fn open_private_database(
    directory: &Path,
    file_name: &str,
    layouts: &[&str],
) -> Result<(Connection, PathBuf), Error> {
    let path = directory.join(file_name);
    let file = |source| Error::File { path: path.clone(), source };
    let is_own = |directory: &Path| match ownership::written_by_others(directory).map_err(file)? {
        Some(path) => Err(Error::NotOwn { path }),
        None => Ok(()),
    };
    // Nothing is created in another user's directory: root with another user's HOME would lock that user out.
    is_own(directory)?;
    create_private_directory(directory).map_err(|source| Error::File { path: directory.to_owned(), source })?;
    // From now on without links, which others could lead elsewhere.
    let directory = &directory.canonicalize().map_err(file)?;
    is_own(directory)?;
    let path = directory.join(file_name);
    let file = |source| Error::File { path: path.clone(), source };
    make_private(&path).map_err(file)?;
    let database = |source| Error::Database { path: path.clone(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(&path, flags).map_err(database)?;
    connection.busy_timeout(BUSY).map_err(database)?;
    connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF").map_err(database)?;
    let mode = if is_on_network(directory) { "delete" } else { "wal" };
    schema::Upgrade { path: &path, layouts, journal_mode: mode }.upgrade_database(&mut connection)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(database)?;
    // What was deleted is overwritten.
    connection.pragma_update(None, "secure_delete", true).map_err(database)?;
    Ok((connection, path))
}

/// Creates a database that is not there, and makes sure that only this user can read it. One that is there is not opened: closing it
/// would end the locks that SQLite has on it in this process.
fn make_private(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(found) if !found.is_file() => Err(io::Error::other("it is no file")),
        Ok(found) if found.permissions().mode() & 0o077 != 0 => {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => Ok(()),
            }
        }
        Err(error) => Err(error),
    }
}

fn is_on_network(directory: &Path) -> bool {
    #[expect(clippy::unnecessary_cast, reason = "its type differs between platforms")]
    rustix::fs::statfs(directory).is_ok_and(|found| NETWORK_FILE_SYSTEMS.contains(&(found.f_type as i64)))
}
