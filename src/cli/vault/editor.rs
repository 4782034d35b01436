//! A plain text in the person's editor: in memory where there is such a place, readable by its owner alone, gone
//! afterwards however the editor ends.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use tokio::signal::unix::{SignalKind, signal};

/// Files there are never on a disk.
const MEMORY: &str = "/dev/shm";

/// What the person makes of the text. `name`: of the file, so that the editor knows what is in it.
///
/// # Errors
/// The editor cannot be started or does not end well.
pub(super) fn edited(editor: &str, name: &Path, plain: &[u8]) -> anyhow::Result<Vec<u8>> {
    let directory = private_directory().context("cannot create a directory for the editor")?;
    let file = directory.path().join(name.file_name().unwrap_or(name.as_os_str()));
    let mut options = std::fs::OpenOptions::new();
    let mut text =
        options.write(true).create_new(true).mode(0o600).open(&file).context("cannot write the file for the editor")?;
    text.write_all(plain).context("cannot write the file for the editor")?;
    drop(text);
    run(editor, &file)?;
    // Dropping the directory also removes the editor's other files.
    std::fs::read(&file).context("cannot read the file back from the editor")
}

fn private_directory() -> std::io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("windlass-vault.").permissions(Permissions::from_mode(0o700));
    builder.tempdir_in(MEMORY).or_else(|_| builder.tempdir())
}

fn run(editor: &str, file: &Path) -> anyhow::Result<()> {
    let words = shlex::split(editor).filter(|words| !words.is_empty());
    let Some(words) = words else { bail!("invalid editor command: {editor:?}") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let _inside = runtime.enter();
    // Ctrl-C is the editor's; that this program ends by it would leave the plain text behind.
    let kinds = [SignalKind::interrupt(), SignalKind::quit(), SignalKind::terminate(), SignalKind::hangup()];
    let _caught: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    let status = Command::new(&words[0]).args(&words[1..]).arg(file).status();
    let status = status.with_context(|| format!("cannot start the editor {editor:?}"))?;
    if !status.success() {
        bail!("the editor {editor:?} failed ({status}); windlass wrote nothing");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An editor that does this with the file in `$1`.
    fn editor(directory: &Path, deed: &str) -> String {
        let path = directory.join("editor");
        std::fs::write(&path, format!("#!/bin/sh\n{deed}\n")).unwrap();
        format!("sh {}", path.display())
    }

    #[test]
    fn the_editor_gets_a_private_file_of_which_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let seen = directory.path().join("seen");
        let deed = format!(
            "stat -c '%a %n' \"$1\" \"$(dirname \"$1\")\" > {0}; echo more >> \"$1\"; cp \"$1\" \"$1.swp\"",
            seen.display()
        );
        let text = edited(&editor(directory.path(), &deed), Path::new("dir/secrets.yml"), b"a\n").unwrap();
        assert_eq!(text, b"a\nmore\n");
        let seen = std::fs::read_to_string(seen).unwrap();
        let places: Vec<(&str, &str)> = seen.lines().filter_map(|line| line.split_once(' ')).collect();
        assert_eq!((places[0].0, places[1].0), ("600", "700"));
        assert!(places[0].1.ends_with("/secrets.yml") && !Path::new(places[1].1).exists(), "{places:?}");
    }

    #[test]
    fn an_editor_that_fails_is_reported_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let seen = directory.path().join("seen");
        let deed = format!("dirname \"$1\" > {}; exit 3", seen.display());
        let error = edited(&editor(directory.path(), &deed), Path::new("a"), b"x").unwrap_err();
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        assert!(!Path::new(std::fs::read_to_string(seen).unwrap().trim()).exists());
    }
}
