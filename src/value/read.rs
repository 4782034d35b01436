//! Reading files of the controller whole, up to a bound: a device or a pipe may have no end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ExitStatus};

/// More than any text that is to become variables.
const MOST: u64 = 1 << 30;

/// What is in a file.
///
/// # Errors
/// What the system says, or that it is more than 1 GiB.
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let size = file.metadata().map_or(0, |found| found.len().min(MOST));
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    up_to(file, MOST, &mut content)?;
    Ok(content)
}

/// As [`bytes`], of a file that is UTF-8 text.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes(path)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// What a program writes to its standard output, which is piped; one that writes more than 1 GiB is ended.
///
/// # Errors
/// As [`bytes`].
pub fn printed(mut program: Child) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut content = Vec::new();
    let read = program.stdout.take().map_or(Ok(()), |output| up_to(output, MOST, &mut content));
    if read.is_err() {
        #[expect(clippy::let_underscore_must_use, reason = "the program may have exited already")]
        let _ = program.kill();
    }
    let status = program.wait()?;
    read.map(|()| (status, content))
}

fn up_to(reader: impl Read, most: u64, content: &mut Vec<u8>) -> io::Result<()> {
    match reader.take(most + 1).read_to_end(content)? as u64 > most {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is more than {} MiB", most >> 20))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_and_a_file_is_read_whole() {
        let mut content = Vec::new();
        let error = up_to(io::repeat(0), 1 << 20, &mut content).unwrap_err();
        assert_eq!(error.to_string(), "it is more than 1 MiB");
        content.clear();
        up_to(io::repeat(7).take(1 << 20), 1 << 20, &mut content).unwrap();
        assert_eq!(content.len(), 1 << 20);
        let start = |line: &str| {
            let mut shell = std::process::Command::new("/bin/sh");
            shell.args(["-c", line]).stdout(std::process::Stdio::piped()).spawn().unwrap()
        };
        let (status, said) = printed(start("echo a; exit 3")).unwrap();
        assert_eq!((status.code(), said.as_slice()), (Some(3), &b"a\n"[..]));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "täxt").unwrap();
        assert_eq!(read_text(file.path()).unwrap(), "täxt");
        std::fs::write(file.path(), [0xff]).unwrap();
        assert_eq!(read_text(file.path()).unwrap_err().to_string(), "it is not UTF-8 text");
    }
}
