//! `ansible-playbook`: the work of `windlass playbook`, with the output of Ansible's default callback.

use anyhow::anyhow;

use super::version;
use crate::cli::playbook::{self, PlaybookArgs};
use crate::cli::{CliError, ExitCode};
use crate::engine::Job;
use crate::report::OutputFormat;
use crate::report::ansible::{AnsibleStyle, ResultFormat};
use crate::settings::{Settings, list};

/// Loads, checks and runs.
pub(super) fn run_ansible_playbook(args: &PlaybookArgs) -> Result<ExitCode, CliError> {
    let settings = crate::cli::settings()?;
    for path in &args.playbooks {
        if !settings.surroundings.absolute(path).exists() {
            return Err(anyhow!("the playbook: {} could not be found", path.display()).into());
        }
    }
    begin_output("ansible-playbook", args.reporting.verbosity(&settings), &settings)?;
    playbook::run_playbooks(args, &settings, form)
}

/// What is above everything else from `-v` on.
pub(super) fn begin_output(tool: &str, verbosity: u8, settings: &Settings) -> Result<(), CliError> {
    let mut text = if verbosity > 1 { version::version_text(tool, settings) } else { String::new() };
    if verbosity > 0 {
        text.push_str(&match &settings.file {
            Some(file) => format!("Using {} as config file\n", file.display()),
            None => "No config file found; using defaults\n".to_owned(),
        });
    }
    Ok(crate::cli::print(text)?)
}

/// How results are written, by the settings.
pub(super) fn shape(settings: &Settings) -> ResultFormat {
    ResultFormat {
        yaml: settings.text_setting(&list::CALLBACK_RESULT_FORMAT).as_deref() == Some("yaml"),
        pretty: settings.given(&list::CALLBACK_FORMAT_PRETTY).map(|found| found.value.is_true()),
    }
}

fn form(args: &PlaybookArgs, settings: &Settings, job: &Job) -> OutputFormat {
    let names = args.playbooks.iter().map(|path| path.display().to_string());
    OutputFormat::Ansible(AnsibleStyle {
        shape: shape(settings),
        failures_to_stderr: settings.bool(&list::DISPLAY_FAILED_STDERR),
        marks_check_mode: settings.bool(&list::CHECK_MODE_MARKERS),
        host_starts: settings.bool(&list::SHOW_PER_HOST_START),
        path_on_failure: settings.bool(&list::SHOW_TASK_PATH_ON_FAILURE),
        stats: settings.given(&list::SHOW_CUSTOM_STATS).is_some_and(|found| found.value.is_true()),
        playbooks: names.zip(job.playbooks.iter().map(Vec::len)).collect(),
        check: job.check,
    })
}
