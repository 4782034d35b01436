//! The identity of this run in a lock, and whether a lock holder is a process of this machine.

use crate::remote::lock::Record;
use crate::value::ProcessEnvironment;
use crate::value::process::{began, boot};

/// Whether a holder's process is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// On this machine.
    Here,
    /// It was on this machine, and has ended.
    Ended,
    /// On another machine, or hidden from this user: its hosts know more.
    Elsewhere,
}

/// This run. The token is still to be found.
pub fn this_run(around: &ProcessEnvironment, command: &str) -> Record {
    let pid = std::process::id();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Record {
        token: 0,
        run: Some(format!("{:032x}", rand::random::<u128>())),
        holder: user_and_machine(around),
        pid,
        process: format!("{} {}", boot(), began(pid).ok().flatten().unwrap_or_default()),
        command: command.to_owned(),
        since: since.map(|since| since.as_secs()).unwrap_or_default(),
    }
}

/// `alice@workstation`
pub fn user_and_machine(around: &ProcessEnvironment) -> String {
    let user = around.variables.get("USER").or_else(|| around.variables.get("LOGNAME")).cloned();
    let user = user.unwrap_or_else(|| if is_root() { "root".to_owned() } else { "somebody".to_owned() });
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{user}@{}", machine.trim())
}

/// Where the holder's process is.
pub fn process(record: &Record) -> Process {
    match record.process.split_once(' ') {
        Some((machine, start)) if machine == boot() => match began(record.pid) {
            Ok(Some(found)) if found == start => Process::Here,
            Ok(_) => Process::Ended,
            Err(_) => Process::Elsewhere,
        },
        _ => Process::Elsewhere,
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_machine_number_and_start() {
        let own = this_run(&Default::default(), "windlass apply");
        assert_eq!(process(&own), Process::Here);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let start = began(child.id()).unwrap().unwrap_or_else(|| "1".to_owned());
        let other = Record { pid: child.id(), process: format!("{} {start}", boot()), ..own.clone() };
        child.wait().unwrap();
        assert_eq!(process(&other), Process::Ended);
        let reused = Record { process: format!("{} 1", boot()), ..own.clone() };
        assert_eq!(process(&reused), Process::Ended, "another process has the number now");
        assert_eq!(process(&Record { process: "elsewhere 1".into(), ..own }), Process::Elsewhere);
    }
    /// As root, in a namespace of its own, whose `/proc` shows a user's own processes only.
    #[test]
    #[ignore = "needs root: cargo test --lib -- --ignored"]
    fn a_process_that_proc_hides_has_not_ended() {
        for hidden in ["hidepid=1", "hidepid=2"] {
            let look =
                format!("mount -t proc -o {hidden} proc /proc && exec \"$0\" --ignored --exact {LOOK} --nocapture");
            let mut child = std::process::Command::new("unshare");
            child.args(["--mount", "--fork", "sh", "-c", &look]).arg(std::env::current_exe().unwrap());
            let own = this_run(&Default::default(), "windlass apply");
            child.env("WINDLASS_TEST_PROCESS", format!("{} {}", own.pid, own.process));
            let output = child.output().unwrap();
            let has_run = String::from_utf8_lossy(&output.stdout).contains("the process was looked at");
            assert!(output.status.success() && has_run, "{hidden}: {output:?}");
        }
    }

    const LOOK: &str = "deployment::lock::holder::tests::as_another_user_it_is_elsewhere";

    /// Run by the test above.
    #[test]
    #[ignore = "a part of the test above"]
    fn as_another_user_it_is_elsewhere() {
        let Ok(text) = std::env::var("WINDLASS_TEST_PROCESS") else { return };
        let (pid, holder) = text.split_once(' ').unwrap();
        let record = Record {
            pid: pid.parse().unwrap(),
            process: holder.to_owned(),
            ..this_run(&Default::default(), "windlass apply")
        };
        // The group of root would see all processes.
        let (user, group) = (rustix::process::Uid::from_raw(65534), rustix::process::Gid::from_raw(65534));
        rustix::thread::set_thread_groups(&[]).unwrap();
        rustix::thread::set_thread_res_gid(group, group, group).unwrap();
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        assert_eq!(process(&record), Process::Elsewhere);
        let free = Record { pid: 4_194_304, ..record };
        assert_eq!(process(&free), Process::Ended);
        println!("the process was looked at");
    }
}
