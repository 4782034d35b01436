//! For several tests, of the library too: a program that a test writes and runs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that can be run at once. Another program writes it: were the file open in this process, a process that another
/// test starts meanwhile would inherit it, and the program could not be run ("Text file busy").
pub(crate) fn write_program(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let mut install = Command::new("install");
    let mut install = install
        .args(["-D", "-m", "755", "/dev/stdin"])
        .arg(path.as_ref())
        .stdin(Stdio::piped())
        .spawn()
        .expect("install starts");
    install.stdin.take().expect("it is piped").write_all(text.as_ref()).expect("install reads");
    assert!(install.wait().expect("it was started").success());
}
