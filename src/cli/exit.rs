//! Exit codes: the numbers that `ansible-playbook` gives.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    Ok = 0,
    /// The run could not be done.
    Error = 1,
    /// The command line was wrong, or a task failed on a host: both are 2, as there.
    Usage = 2,
    /// A host could not be reached.
    Unreachable = 4,
    /// Options that do not go together, as Ansible's tools have it.
    Options = 5,
    /// Ctrl-C.
    Interrupted = 99,
}

#[expect(non_upper_case_globals, reason = "written as the values of the enum are")]
impl ExitCode {
    /// A task failed on a host.
    pub const Failed: ExitCode = ExitCode::Usage;
    /// A playbook, a role or an inventory is written wrongly.
    pub const Parse: ExitCode = ExitCode::Unreachable;
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        std::process::ExitCode::from(code as u8)
    }
}
