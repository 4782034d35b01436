//! `--version`, in the form that scripts read: the first line names the tool and the version of Ansible's language.

use crate::cli::CliError;
use crate::settings::Settings;
use crate::value::CORE;

/// Prints it.
pub(super) fn print_version(tool: &str) -> Result<(), CliError> {
    let settings = Settings::load(crate::cli::surroundings())?;
    Ok(crate::cli::print(version_text(tool, &settings))?)
}

/// Several lines: the version, the settings' file, where this program is, and that there is no Python.
pub(super) fn version_text(tool: &str, settings: &Settings) -> String {
    let file = settings.file.as_ref().map_or_else(|| "None".to_owned(), |file| file.display().to_string());
    let program = std::env::current_exe().map_or_else(|_| "None".to_owned(), |path| path.display().to_string());
    format!(
        "{tool} [core {CORE}]\n  config file = {file}\n  executable location = {program}\n  windlass version = {}\n  \
         python version = None (windlass needs none)\n",
        env!("CARGO_PKG_VERSION")
    )
}
