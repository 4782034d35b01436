//! For several tests: a program that a test writes and runs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that can be run at once. Another program writes it: were the file open in this process, a process that another
/// test starts meanwhile would inherit it, and the program could not be run ("Text file busy").
pub(crate) fn write_program(path: &Path, text: &[u8]) {
    let mut install = Command::new("install");
    let mut install = install.args(["-D", "-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    install.stdin.take().unwrap().write_all(text).unwrap();
    assert!(install.wait().unwrap().success());
}
