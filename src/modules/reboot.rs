//! `reboot`: restarts the host and waits until it is back.

use std::time::{Duration, Instant};

use serde::Deserialize;

use super::execution::quote;
use super::wait_for_connection::{BOOT_ID, RetryLimits, boot_id, reach};
use super::{Changes, Controller, Error, Local, ModuleResult, Outcome};
use crate::remote::Command;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reboot {
    pre_reboot_delay: u64,
    post_reboot_delay: u64,
    reboot_timeout: u64,
    connect_timeout: u64,
    test_command: Option<String>,
    msg: String,
    reboot_command: Option<String>,
    boot_time_command: String,
    search_paths: Vec<String>,
}

impl Local for Reboot {
    const CHANGES: Changes = Changes::Other;
    const DOC: Doc = Doc {
        name: "reboot",
        collection: "ansible.builtin",
        summary: "Reboot the host and wait until it is up again",
        arguments: &[
            Argument::new("pre_reboot_delay", ArgumentKind::Int, "How many seconds to wait before the reboot")
                .default("0"),
            Argument::new("post_reboot_delay", ArgumentKind::Int, "How many seconds to wait after the reboot")
                .default("0"),
            Argument::new("reboot_timeout", ArgumentKind::Int, "Timeout for the reboot, in seconds").default("600"),
            Argument::new("connect_timeout", ArgumentKind::Int, "Timeout for one connection attempt, in seconds")
                .default("5"),
            Argument::new(
                "test_command",
                ArgumentKind::Str,
                "A command that must succeed before the host counts as up",
            ),
            Argument::new("msg", ArgumentKind::Str, "The message for logged-in users")
                .default("Reboot initiated by Ansible"),
            Argument::new(
                "reboot_command",
                ArgumentKind::Str,
                "The command that reboots the host, instead of shutdown -r",
            ),
            Argument::new("boot_time_command", ArgumentKind::Str, "A command whose output changes with every boot")
                .default(BOOT_ID),
            Argument::new(
                "search_paths",
                ArgumentKind::List(&ArgumentKind::Str),
                "The directories to search for the shutdown program",
            )
            .default("/sbin,/bin,/usr/sbin,/usr/bin,/usr/local/sbin"),
        ],
        free_form: None,
        example: "\
- name: Reboot into the new kernel
  reboot:
    reboot_timeout: 300
",
        returns: &[Return::new("rebooted", "Whether it rebooted"), Return::new("elapsed", "How many seconds it took")],
    };

    async fn run(&self, here: &Controller<'_>) -> Result<ModuleResult, Error> {
        let changed = |outcome| Ok(ModuleResult { changed: true, diff: Vec::new(), outcome });
        if here.host.is_this_machine() {
            let message = "refusing to reboot the machine that windlass runs on (local connection)";
            return Err(Error::failed(message));
        }
        if here.check {
            return changed(Outcome::default().with("rebooted", true).with("elapsed", 0));
        }
        let clock = Instant::now();
        let remote = here.host.open(false).await?;
        let before = boot_id(&remote, &self.boot_time_command).await?;
        tokio::time::sleep(Duration::from_secs(self.pre_reboot_delay)).await;
        let output = remote.run(&Command::shell(self.line())).await?;
        if output.code != 0 {
            let words = String::from_utf8_lossy(&output.stderr);
            return Err(Error::failed(format!("cannot start the reboot: {}", words.trim())));
        }
        drop(remote);
        let patience = RetryLimits {
            one: Duration::from_secs(self.connect_timeout),
            pause: Duration::from_secs(1),
            all: Duration::from_secs(self.reboot_timeout).saturating_sub(clock.elapsed()),
        };
        let outcome = Outcome { changed: true, ..Outcome::default() };
        let failed = |outcome: Outcome, why: String| Outcome { failed: Some(why), ..outcome.with("rebooted", false) };
        match reach(here, &patience, &self.boot_time_command, |boot| boot != before).await {
            Err(why) => return changed(failed(outcome, format!("the host did not come up again: {why}"))),
            Ok(remote) => {
                if let Some(line) = &self.test_command
                    && remote.query(&Command::shell(line.as_str())).await?.code != 0
                {
                    return changed(failed(outcome, format!("the host is up again, but {line:?} fails")));
                }
            }
        }
        tokio::time::sleep(Duration::from_secs(self.post_reboot_delay)).await;
        changed(outcome.with("rebooted", true).with("elapsed", clock.elapsed().as_secs()))
    }
}

impl Reboot {
    /// Restarts from a new session, a moment later, so that the response still arrives.
    fn line(&self) -> String {
        let usual = format!("shutdown -r now {} || reboot", quote(&self.msg));
        let command = self.reboot_command.clone().unwrap_or(usual);
        let paths = self.search_paths.join(":");
        let later = quote(&format!("sleep 1; PATH={}:$PATH; {command}", quote(&paths)));
        format!(
            "if command -v setsid >/dev/null; then s=setsid; else s=nohup; fi; $s sh -c {later} >/dev/null 2>&1 </dev/null &"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};

    #[tokio::test]
    async fn in_check_mode_nothing_restarts() {
        let bench = Bench::far().await;
        let done = bench.check("reboot:").await.unwrap();
        assert!(done.changed);
        assert_eq!(value(&done.outcome, "rebooted"), "True");
        bench.close().await;
    }

    #[tokio::test]
    async fn a_host_that_does_not_restart_is_a_failure() {
        let bench = Bench::far().await;
        crate::value::testing::write_program(bench.host("bin/restart"), "#!/bin/sh\ntouch \"$1\"\n");
        let task = "reboot: {reboot_command: restart HOST/asked, search_paths: [HOST/bin], reboot_timeout: 3}";
        let done = bench.run(task).await.unwrap();
        assert_eq!(done.outcome.failed.as_deref(), Some("the host did not come up again: it has not rebooted yet"));
        assert!(bench.host("asked").exists());
        bench.close().await;
    }

    #[tokio::test]
    async fn a_host_whose_start_is_read_by_a_command_is_back_when_its_output_changes() {
        let bench = Bench::far().await;
        bench.on_host("boot", "1");
        let task =
            "reboot: {reboot_command: 'echo 2 > HOST/boot', boot_time_command: cat HOST/boot, test_command: 'true'}";
        let done = bench.run(task).await.unwrap();
        assert_eq!((done.changed, value(&done.outcome, "rebooted").as_str()), (true, "True"));
        assert!(bench.failure("reboot: {boot_time_command: 'true'}").await.starts_with("cannot read the boot time"));
        bench.close().await;
    }

    #[tokio::test]
    async fn a_start_that_cannot_be_read_is_no_other_start() {
        let bench = Bench::far().await;
        for afterwards in ["rm HOST/boot", ": > HOST/boot"] {
            bench.on_host("boot", "1");
            let task = format!(
                "reboot: {{reboot_command: '{afterwards}', boot_time_command: cat HOST/boot, test_command: 'true', \
                 reboot_timeout: 3}}"
            );
            let failed = bench.run(&task).await.unwrap().outcome.failed.unwrap();
            assert!(failed.starts_with("the host did not come up again: cannot read the boot time"), "{failed}");
        }
        bench.close().await;
    }

    #[tokio::test]
    async fn this_very_machine_is_never_restarted() {
        let bench = Bench::new().await;
        assert!(
            bench
                .failure("reboot: {reboot_command: touch HOST/asked}")
                .await
                .contains("refusing to reboot the machine that windlass runs on")
        );
        assert!(!bench.host("asked").exists());
        bench.close().await;
    }
}
