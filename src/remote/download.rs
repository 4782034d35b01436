//! A file of the host becomes one of the controller.

use std::fs::{Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::io::AsyncWriteExt;

use super::execute::MOST_OUTPUT;
use super::frames::LimitedWriter;
use super::probe::{file_check, subshell};
use super::{Error, Links, Probe, quote, refused};

/// Where a file is written, and what is there.
struct Destination {
    path: PathBuf,
    before: Option<Metadata>,
}

impl Destination {
    /// A symbolic link is kept: its target gets the content. Refuses a link of another user, and what is no file.
    fn find(path: &Path) -> std::io::Result<Destination> {
        let link = match path.symlink_metadata() {
            Ok(link) => link,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Destination { path: path.to_owned(), before: None });
            }
            Err(error) => return Err(error),
        };
        if link.is_symlink() && ![0, rustix::process::geteuid().as_raw()].contains(&link.uid()) {
            return Err(std::io::Error::other("it is a symbolic link of another user"));
        }
        let broken = |_| std::io::Error::other("it is a broken symbolic link");
        let path = path.canonicalize().map_err(broken)?;
        let before = path.metadata()?;
        match before.is_file() {
            true => Ok(Destination { path, before: Some(before) }),
            false => Err(std::io::Error::other("it is not a regular file")),
        }
    }

    fn temporary(&self) -> std::io::Result<tempfile::NamedTempFile> {
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Nobody else sees the content before it has the owner and mode of the former file. A new file has what the umask leaves.
        let mode = if self.before.is_some() { 0o600 } else { 0o666 };
        tempfile::Builder::new().prefix(".windlass.").permissions(Permissions::from_mode(mode)).tempfile_in(directory)
    }

    /// Gives the new file the owner and mode of the former one. Without the right to do so, this user owns it, and a group that
    /// cannot be kept gets no access.
    async fn keep_access(&self, file: &tokio::fs::File) -> std::io::Result<()> {
        let Some(before) = &self.before else { return Ok(()) };
        let now = file.metadata().await?;
        let mut mode = before.mode() & 0o777;
        if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
            let chown = |owner| std::os::unix::fs::fchown(file, owner, Some(before.gid()));
            match chown(Some(before.uid())).or_else(|_| chown(None)) {
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => mode &= 0o707,
                other => other?,
            }
        }
        file.set_permissions(Permissions::from_mode(mode)).await
    }
}

impl Probe {
    /// Copies a file of the host to the controller, through a temporary file beside `to`. A file that was there keeps its owner and
    /// mode, and a symbolic link stays one.
    ///
    /// # Errors
    /// `to` is a device, a pipe, or a link of another user; it cannot be written; the host's file cannot be read.
    pub async fn download(&self, path: &str, to: &Path) -> Result<(), Error> {
        let here = |error: std::io::Error| Error::Refused {
            what: format!("write {} on the controller", to.display()),
            reason: error.to_string(),
        };
        let word = quote::quote_path(path)?;
        let destination = Destination::find(to).map_err(here)?;
        let (file, beside) = destination.temporary().map_err(here)?.into_parts();
        // A file may grow meanwhile, and one of the kernel's has no size; but a host may also send without end.
        let size = self.stat(path, Links::Follow).await?.map_or(0, |stat| stat.size);
        let left = size.saturating_add(MOST_OUTPUT as u64);
        let mut file = LimitedWriter { inner: tokio::fs::File::from_std(file), left, failed: None };
        let body = format!("{}\ncat {word}", file_check(&word));
        let (code, stderr) = self.session().await?.ask_into(&subshell(&body), &mut file).await?;
        if let Some(error) = file.failed {
            return Err(here(error));
        }
        if code != 0 {
            return Err(refused(format!("read {path}"), &stderr));
        }
        file.flush().await.map_err(here)?;
        destination.keep_access(&file.inner).await.map_err(here)?;
        file.inner.sync_all().await.map_err(here)?;
        beside.persist(&destination.path).map_err(|error| here(error.error))
    }
}
