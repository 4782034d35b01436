//! Which process a number means: numbers are used again, and each machine and container has its own.

use std::path::Path;

/// Another one after each start of this machine.
pub fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    // Machines in a container share it.
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{}/{}", id.trim(), space.display())
}

/// When a process began, in clock ticks since this machine did. None: it has ended.
///
/// # Errors
/// There is such a process, and this user may not look at it: `/proc` may hide the processes of other users (`hidepid`).
pub fn began(pid: u32) -> std::io::Result<Option<String>> {
    match std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")) {
        Ok(stat) => Ok(start_in(&stat)),
        Err(error) => match i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
            Some(pid) if rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH) => Ok(None),
            _ => Err(error),
        },
    }
}

/// The start of a process that lives.
fn start_in(stat: &str) -> Option<String> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let dead = matches!(fields.clone().next(), Some("Z" | "X"));
    fields.nth(19).filter(|_| !dead).map(str::to_owned)
}

/// Means this process only: its machine, since its start, and when it began. None: there is no such process, or it cannot be looked at.
pub fn mark_of(pid: u32) -> Option<String> {
    Some(format!("{} {}", boot(), began(pid).ok()??))
}
