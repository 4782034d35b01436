//! The files that vaults are in, and standard input and output in their place.

use std::io::{IsTerminal, Read};
use std::path::Path;

use anyhow::Context;

use crate::cli::{files, print};

/// Standard input or output, as a name of a file.
pub(super) const STANDARD: &str = "-";

/// The content of a file, or of standard input.
pub(super) fn read_vault_input(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path != Path::new(STANDARD) {
        return std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    }
    if std::io::stdin().is_terminal() {
        crate::cli::note("reading standard input; press Ctrl-D to end it");
    }
    let mut content = Vec::new();
    std::io::stdin().read_to_end(&mut content).context("cannot read standard input")?;
    Ok(content)
}

/// Puts the content where it belongs: into `output` if that was named, else into the file that it came from; what came
/// from standard input goes to standard output.
pub(super) fn write_vault_output(content: &[u8], from: &Path, output: Option<&Path>) -> anyhow::Result<()> {
    match output.unwrap_or(from) {
        standard if standard == Path::new(STANDARD) => print(content),
        path => files::write_file(path, content),
    }
}
