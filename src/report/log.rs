//! The log file: appended to, readable by its owner alone, shared by the report and our own log.

use crate::runs::timestamp_text;
use crate::value::mutex::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A log file that is open. Clones write to the same file.
#[derive(Debug, Clone)]
pub struct LogFile {
    path: PathBuf,
    file: Arc<Mutex<File>>,
}

impl LogFile {
    /// Opens a file to append to; a new one gets the mode 0600. The error names the file.
    pub fn open_log(path: &Path) -> io::Result<LogFile> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot write the log file {}: {error}", path.display()))
        })?;
        Ok(LogFile { path: path.to_path_buf(), file: Arc::new(Mutex::new(file)) })
    }

    pub fn log_path(&self) -> &Path {
        &self.path
    }
}

impl Write for LogFile {
    /// Writes all of it, so that lines of several writers are never mixed.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.file.lock();
        file.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Every line of a text behind the moment; empty lines go.
pub(super) fn stamped(at: SystemTime, text: &str) -> String {
    let stamp = timestamp_text(at);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("{stamp} {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_log_is_appended_to_and_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.log");
        for line in ["one\n", "two\n"] {
            LogFile::open_log(&path).unwrap().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let message = LogFile::open_log(directory.path()).unwrap_err().to_string();
        assert!(
            message.starts_with(&format!("cannot write the log file {}: ", directory.path().display())),
            "{message}"
        );
    }

    #[test]
    fn every_line_is_stamped_with_the_moment_of_its_event() {
        let at = super::super::example_run::example_start();
        assert_eq!(
            stamped(at, "\nTASK [a] ***\nok"),
            "2023-11-14T22:13:20.000Z TASK [a] ***\n2023-11-14T22:13:20.000Z ok\n"
        );
    }
}
