//! `ansible`: the work of `windlass run`, with the output of Ansible's minimal callback.

use anyhow::anyhow;

use super::playbook::begin_output;
use crate::cli::run::{self, AdHocArgs};
use crate::cli::{CliError, ExitCode};
use crate::report::{AdHocStyle, OutputFormat};
use crate::settings::list;
use crate::value::doc::COMMAND_MODULES;

/// Loads, checks and runs.
pub(super) fn run_ansible(args: &AdHocArgs) -> Result<ExitCode, CliError> {
    let settings = crate::cli::settings()?;
    let module = args.module_name.clone().or_else(|| settings.text_setting(&list::MODULE_NAME));
    let module = module.unwrap_or_else(|| "command".to_owned());
    let given = args.args.clone().or_else(|| settings.text_setting(&list::MODULE_ARGS)).unwrap_or_default();
    let short = module.strip_prefix("ansible.builtin.").unwrap_or(&module);
    if !args.list_hosts && given.is_empty() && COMMAND_MODULES.contains(&short) {
        return Err(CliError::Asked(anyhow!("No argument passed to {module} module")));
    }
    begin_output("ansible", args.reporting.verbosity(&settings), &settings)?;
    let style = AdHocStyle { one_line: args.one_line, tree: args.tree.clone() };
    run::run_ad_hoc(args, &settings, OutputFormat::AnsibleAdHoc(style))
}
