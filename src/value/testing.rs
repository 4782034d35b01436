//! For tests: programs that a test writes and runs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program or script that can be run at once. Another program writes it: were the file open in this process, a process that
/// another test starts meanwhile would inherit it, and the program could not be run ("Text file busy").
pub fn write_program(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let path = path.as_ref();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut install =
        Command::new("install").args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    install.stdin.take().unwrap().write_all(text.as_ref()).unwrap();
    assert!(install.wait().unwrap().success());
}
