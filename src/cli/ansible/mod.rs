//! The tools of Ansible by their names: `ansible-playbook`, `ansible`, `ansible-inventory` and `ansible-vault`, called so
//! or as `windlass ansible-playbook …`. Their command lines and their ways of telling over the same work; see
//! `docs/reference/ansible.md`.

mod ad_hoc;
mod inventory;
mod playbook;
mod vault;
mod version;

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Args, Command};

use super::ExitCode;
use super::print::{MessageStyle, speaking};

/// A tool of Ansible that this program can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Playbook,
    AdHoc,
    Inventory,
    Vault,
}

const TOOLS: &[(&str, Tool)] = &[
    ("ansible-playbook", Tool::Playbook),
    ("ansible", Tool::AdHoc),
    ("ansible-inventory", Tool::Inventory),
    ("ansible-vault", Tool::Vault),
];

/// Options of ours that stay usable and are not among those that `--help` lists, as the tools have no such ones.
const OURS: &[&str] =
    &["offline", "uploads", "retry_file", "roles_path", "host_keys", "outputs", "color", "profile", "log_file", "otlp"];

impl Tool {
    fn name(self) -> &'static str {
        TOOLS.iter().find(|(_, tool)| *tool == self).map_or("ansible", |(name, _)| name)
    }
}

/// The tool that a command line calls, by the program's name or by its first argument, and its own command line.
pub(super) fn called(argv: &[OsString]) -> Option<(Tool, &[OsString])> {
    let named = |word: &OsString| {
        let name = Path::new(word).file_name()?.to_str()?;
        TOOLS.iter().find(|(tool, _)| *tool == name).map(|(_, tool)| *tool)
    };
    if let Some(tool) = argv.first().and_then(named) {
        return Some((tool, argv));
    }
    let second = argv.get(1).filter(|word| !word.to_string_lossy().contains('/'))?;
    named(second).map(|tool| (tool, &argv[1..]))
}

/// Runs the tool; the result is the program's exit code.
pub(super) fn run_ansible_tool(tool: Tool, argv: &[OsString]) -> ExitCode {
    speaking(MessageStyle::Ansible, || run_tool(tool, argv))
}

fn run_tool(tool: Tool, argv: &[OsString]) -> ExitCode {
    let result = match tool {
        Tool::Playbook => parsed(tool, argv).map(|args| playbook::run_ansible_playbook(&args)),
        Tool::AdHoc => parsed(tool, argv).map(|args| ad_hoc::run_ansible(&args)),
        Tool::Inventory => parsed(tool, argv).map(|args| inventory::run_ansible_inventory(&args)),
        Tool::Vault => parsed(tool, argv).map(|args| vault::run_ansible_vault(&args)),
    };
    match result {
        Ok(result) => result.unwrap_or_else(|failure| super::say(&failure)),
        Err(code) => code,
    }
}

/// The arguments of a tool; otherwise the exit code of a command line that asks for help, for the version, or is wrong.
fn parsed<A: Args>(tool: Tool, argv: &[OsString]) -> Result<A, ExitCode> {
    let matches = command::<A>(tool).try_get_matches_from(argv).and_then(|matches| {
        if matches.get_flag("version") { Ok(None) } else { A::from_arg_matches(&matches).map(Some) }
    });
    match matches {
        Ok(Some(args)) => Ok(args),
        Ok(None) => {
            Err(version::print_version(tool.name()).map_or_else(|failure| super::say(&failure), |()| ExitCode::Ok))
        }
        Err(error) => Err(wrong(tool, &error)),
    }
}

fn wrong(tool: Tool, error: &clap::Error) -> ExitCode {
    #[expect(clippy::let_underscore_must_use, reason = "nothing can be done about a closed standard error")]
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp => ExitCode::Ok,
        // That tool reads its options before it asks which of them go together.
        ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument if tool == Tool::Inventory => {
            ExitCode::Options
        }
        _ => ExitCode::Usage,
    }
}

/// The parser: as Python's, long options may be cut short and given again.
fn command<A: Args>(tool: Tool) -> Command {
    let command = A::augment_args(Command::new(tool.name()))
        .infer_long_args(true)
        .args_override_self(true)
        .disable_version_flag(true)
        .max_term_width(100);
    let version = Arg::new("version")
        .long("version")
        .action(ArgAction::SetTrue)
        .exclusive(true)
        .help("Print the version of the language and the settings' file");
    let known: Vec<String> = command.get_arguments().map(|argument| argument.get_id().to_string()).collect();
    let ours = OURS.iter().filter(|id| known.iter().any(|known| known == *id));
    ours.fold(command.arg(version), |command, id| command.mut_arg(*id, |argument| argument.hide(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(argv: &[&str]) -> Option<(Tool, usize)> {
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        called(&argv).map(|(tool, argv)| (tool, argv.len()))
    }

    #[test]
    fn a_tool_is_called_by_the_programs_name_or_as_the_first_word() {
        assert_eq!(tool(&["/usr/bin/ansible-playbook", "site.yml"]), Some((Tool::Playbook, 2)));
        assert_eq!(tool(&["windlass", "ansible-playbook", "site.yml"]), Some((Tool::Playbook, 2)));
        assert_eq!(tool(&["windlass", "playbook", "ansible-playbook"]), None);
        assert_eq!(tool(&["windlass", "./ansible-playbook"]), None);
    }

    #[test]
    fn the_parsers_are_well_formed() {
        command::<crate::cli::playbook::PlaybookArgs>(Tool::Playbook).debug_assert();
        command::<crate::cli::run::AdHocArgs>(Tool::AdHoc).debug_assert();
        command::<inventory::InventoryFace>(Tool::Inventory).debug_assert();
        command::<vault::VaultFace>(Tool::Vault).debug_assert();
    }
}
