//! The file of the hosts that failed, for `--limit @FILE` of a later run.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::engine::Recap;
use crate::settings::{Settings, list};

/// Where it goes: `--retry-file`, or what `retry_files_enabled` and `retry_files_save_path` make of the playbook's name.
pub(super) fn retry_file_path(
    option: Option<&Path>,
    playbook: Option<&PathBuf>,
    settings: &Settings,
) -> Option<PathBuf> {
    if let Some(file) = option {
        return Some(file.to_owned());
    }
    let playbook = playbook.filter(|_| settings.bool(&list::RETRY_FILES_ENABLED))?;
    let name = format!("{}.retry", playbook.file_stem()?.to_string_lossy());
    let beside = || playbook.parent().unwrap_or(Path::new("")).to_owned();
    Some(settings.path_setting(&list::RETRY_FILES_SAVE_PATH).unwrap_or_else(beside).join(name))
}

/// Writes the hosts that failed or were not reached, sorted, one per line; nothing if there are none.
///
/// # Errors
/// The message names the file.
pub(super) fn write_retry_file(file: &Path, recap: &Recap) -> anyhow::Result<()> {
    let lost = recap.hosts.iter().filter(|(_, counts)| counts.failed > 0 || counts.unreachable > 0);
    let mut lost: Vec<&str> = lost.map(|(host, _)| host.as_ref()).collect();
    if lost.is_empty() {
        return Ok(());
    }
    lost.sort_unstable();
    let replace = || -> std::io::Result<()> {
        let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut beside = tempfile::Builder::new().prefix(".windlass.").tempfile_in(directory)?;
        writeln!(beside, "{}", lost.join("\n"))?;
        beside.as_file().sync_all()?;
        beside.persist(file).map_err(|error| error.error)?;
        Ok(())
    };
    replace().map_err(|error| anyhow::anyhow!("cannot write the retry file {}: {error}", file.display()))?;
    super::note(&format!("to run again on the failed hosts only: --limit @{}", file.display()));
    Ok(())
}
