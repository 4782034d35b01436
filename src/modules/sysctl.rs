//! `sysctl`: settings of the kernel, in the file that is read at boot and, if asked, in force.

use serde::Deserialize;

use super::file_attributes::DesiredAttributes;
use super::file_edit::{self, Target, WriteOptions};
use super::file_write::Write;
use super::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{Command, Output, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc};
use crate::value::truth;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sysctl {
    name: String,
    value: Option<String>,
    state: State,
    ignoreerrors: bool,
    reload: bool,
    sysctl_file: String,
    sysctl_set: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Present,
    Absent,
}

pub(super) struct SysctlChange {
    program: String,
    file: String,
    /// `name=value`, to be set at once.
    set: Option<String>,
    write: Option<Write>,
}

impl Module for Sysctl {
    const CHANGES: Changes = Changes::KernelSettings;
    const DOC: Doc = Doc {
        name: "sysctl",
        collection: "ansible.posix",
        summary: "Set kernel parameters with sysctl",
        arguments: &[
            Argument::new("name", ArgumentKind::Str, "The parameter, such as net.ipv4.ip_forward")
                .required()
                .alias(&["key"]),
            Argument::new("value", ArgumentKind::Str, "The value; yes and no mean 1 and 0").alias(&["val"]),
            Argument::new("state", ArgumentKind::Str, "Whether it should be in the file")
                .default("present")
                .choices(&["present", "absent"]),
            Argument::new(
                "ignoreerrors",
                ArgumentKind::Bool,
                "Whether to ignore parameters that the kernel does not know",
            )
            .default("false"),
            Argument::new("reload", ArgumentKind::Bool, "Whether to load the file after a change").default("true"),
            Argument::new("sysctl_file", ArgumentKind::Path, "The file").default("/etc/sysctl.conf"),
            Argument::new("sysctl_set", ArgumentKind::Bool, "Whether to also set the value in the running kernel")
                .default("false"),
        ],
        free_form: None,
        example: r#"
- name: Enable forwarding, now and at boot
  ansible.posix.sysctl:
    name: net.ipv4.ip_forward
    value: "1"
    sysctl_set: true
    sysctl_file: /etc/sysctl.d/50-router.conf

- name: Set swappiness from the next boot on
  ansible.posix.sysctl:
    name: vm.swappiness
    value: "10"
    reload: false
"#,
        returns: &[],
    };
    type Change = SysctlChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<SysctlChange>, Error> {
        let (name, value) = (self.name.trim(), self.value()?);
        check_name(name)?;
        let program = probe.which("sysctl").await?.ok_or_else(|| Error::Failed {
            message: "the host has no program sysctl".to_owned(),
            hint: Some("install the package procps".to_owned()),
        })?;
        let target = Target::read_target(probe, &self.sysctl_file).await?;
        let edited = self.edited(&target, name, &value);
        let wanted = DesiredAttributes::default();
        let manner = WriteOptions { wanted: &wanted, backup: false, validate: None, make_directories: false };
        let (mut write, mut diff) = (None, Vec::new());
        if edited != target.text.characters {
            let edit = file_edit::compare_text(probe, here, &target, &edited, &manner).await?;
            (write, diff) = (edit.write, edit.diff);
        }
        let in_force = match self.state {
            State::Present if self.reload || self.sysctl_set => self.in_force(probe, &program, name, &value).await?,
            _ => true,
        };
        if write.is_none() && in_force {
            return Ok(Plan::Unchanged(Outcome::default()));
        }
        let set = (self.sysctl_set && !in_force).then(|| format!("{name}={value}"));
        let change = SysctlChange { program, file: target.path, set, write };
        Ok(Plan::Change { diff, outcome: Outcome::default(), change })
    }

    async fn apply(&self, change: SysctlChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        if let Some(pair) = &change.set {
            let output = self.run(remote, &change.program, "-w", pair).await?;
            succeeded(&output, &format!("set {}", self.name.trim()))?;
        }
        if let Some(write) = change.write {
            write.apply_write(remote, here).await?;
        }
        if self.reload {
            let output = self.run(remote, &change.program, "-p", &change.file).await?;
            succeeded(&output, &format!("load {}", change.file))?;
        }
        Ok(Outcome::default())
    }
}

impl Sysctl {
    /// The value as it is written: 1 and 0 for what is a boolean.
    fn value(&self) -> Result<String, Error> {
        let value = self.value.as_deref().unwrap_or_default().trim();
        if self.state == State::Present && value.is_empty() {
            return Err(Error::failed("sysctl: value is required when state is present"));
        }
        if value.contains(['\n', '\r', '\0']) {
            return Err(Error::failed("sysctl: value must be one line"));
        }
        Ok(truth::of_word(value).map_or_else(|| value.to_owned(), |on| i32::from(on).to_string()))
    }

    /// The file's text as it is to be: one line for the name, the first that there was. All other lines stay.
    fn edited(&self, target: &Target, name: &str, value: &str) -> String {
        let text = target.text.characters.as_str();
        let is_own = |line: &str| setting(line).is_some_and(|(key, _)| key == name);
        let last = text.lines().rfind(|line| is_own(line)).and_then(setting);
        let mut wanted = match self.state {
            State::Present => Some(format!("{name}={}\n", target.text.adapt(value))),
            State::Absent => None,
        };
        if wanted.is_some() && last.is_some_and(|(_, found)| found == target.text.adapt(value)) {
            return text.to_owned();
        }
        let mut edited = String::new();
        for line in text.split_inclusive('\n') {
            match is_own(line) {
                true => edited.push_str(&wanted.take().unwrap_or_default()),
                false => edited.push_str(line),
            }
        }
        if let Some(line) = wanted {
            if !edited.is_empty() && !edited.ends_with('\n') {
                edited.push('\n');
            }
            edited.push_str(&line);
        }
        edited
    }

    /// Whether the kernel has the value; one that it does not know at all is in force if that does not matter.
    async fn in_force(&self, probe: &Probe, program: &str, name: &str, value: &str) -> Result<bool, Error> {
        let output = probe.query(&in_c(Command::program([program, "-e", "-n", name]))).await?;
        let found = String::from_utf8_lossy(&output.stdout);
        if output.code != 0 || found.trim().is_empty() {
            return Ok(self.ignoreerrors);
        }
        Ok(found.split_whitespace().eq(value.split_whitespace()))
    }

    async fn run(&self, remote: &Remote, program: &str, option: &str, argument: &str) -> Result<Output, Error> {
        let ignore = self.ignoreerrors.then_some("-e");
        let argv = [program].into_iter().chain(ignore).chain([option, argument]);
        Ok(remote.run(&in_c(Command::program(argv))).await?)
    }
}

/// In English: its output shows whether it worked.
fn in_c(command: Command) -> Command {
    let environment = ["LANG", "LC_ALL"].map(|name| (name.to_owned(), "C".to_owned()));
    Command { environment: environment.into(), ..command }
}

/// sysctl also ends well when the kernel refused a value.
fn succeeded(output: &Output, what: &str) -> Result<(), Error> {
    let words = String::from_utf8_lossy(&output.stderr);
    let refused = |line: &&str| {
        line.starts_with("sysctl: setting key ")
            && (line.ends_with("Invalid argument") || line.ends_with("Read-only file system"))
    };
    let line = words.lines().find(refused).or_else(|| words.lines().last().filter(|_| output.code != 0));
    match line {
        None if output.code == 0 => Ok(()),
        line => Err(Error::failed(format!("cannot {what}: {}", line.unwrap_or("no error message")))),
    }
}

/// The name and value of a line; None for comments and the like.
fn setting(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return None;
    }
    line.split_once('=').map(|(name, value)| (name.trim(), value.trim()))
}

fn check_name(name: &str) -> Result<(), Error> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '=' | '#' | ';');
    match name.is_empty() || name.starts_with('-') || name.contains(odd) {
        true => Err(Error::failed(format!("sysctl: {name:?} is not a valid parameter name"))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    #[tokio::test]
    async fn second_run_changes_nothing_and_all_other_lines_stay() {
        let bench = Bench::new().await;
        bench.on_host("s", "# c\nvm.a = 1\nvm.b=1\nvm.a=2\nrubbish");
        let task = "ansible.posix.sysctl: {name: vm.a, value: 'yes', reload: false, sysctl_file: HOST/s}";
        assert!(bench.check(task).await.unwrap().changed);
        let done = bench.run_twice(task).await;
        assert_eq!(bench.text("s"), "# c\nvm.a=1\nvm.b=1\nrubbish");
        assert_eq!(done.diff[0].before, "# c\nvm.a = 1\nvm.b=1\nvm.a=2\nrubbish");
        assert!(bench.run_twice(&task.replace("vm.a", "vm.c").replace("'yes'", "1 2  3")).await.changed);
        assert_eq!(bench.text("s"), "# c\nvm.a=1\nvm.b=1\nrubbish\nvm.c=1 2  3\n");
        assert!(
            bench.run_twice("sysctl: {name: vm.a, state: absent, reload: false, sysctl_file: HOST/s}").await.changed
        );
        assert_eq!(bench.text("s"), "# c\nvm.b=1\nrubbish\nvm.c=1 2  3\n");
        bench.close().await;
    }

    #[tokio::test]
    async fn what_is_in_force_is_not_set_again() {
        let bench = Bench::new().await;
        let found = std::fs::read_to_string("/proc/sys/kernel/ostype").unwrap();
        let name = "name: kernel.ostype, sysctl_file: HOST/s";
        bench.on_host("s", format!("kernel.ostype={found}"));
        let same = format!("sysctl: {{{name}, value: '{}', sysctl_set: true}}", found.trim());
        assert!(!bench.run(&same).await.unwrap().changed);
        let other = format!("sysctl: {{{name}, value: 'Another', sysctl_set: true, reload: false}}");
        assert!(bench.check(&other).await.unwrap().changed);
        let refused = bench.failure(&other).await;
        assert!(refused.starts_with("cannot set kernel.ostype: "), "{refused}");
        assert_eq!(bench.text("s"), format!("kernel.ostype={found}"), "the file has what the kernel refused");
        bench.close().await;
    }

    #[tokio::test]
    async fn what_the_kernel_does_not_know_may_not_matter() {
        let bench = Bench::new().await;
        let task = "sysctl: {name: no.such.thing, value: 1, sysctl_file: HOST/s, ignoreerrors: true}";
        assert!(bench.run_twice(task).await.changed);
        assert_eq!(bench.text("s"), "no.such.thing=1\n");
        bench.close().await;
    }

    #[tokio::test]
    async fn what_is_wrong_is_reported() {
        let bench = Bench::new().await;
        for (arguments, message) in [
            ("name: vm.a", "sysctl: value is required when state is present"),
            ("name: '-p', value: 1", "sysctl: \"-p\" is not a valid parameter name"),
            ("name: vm.a, value: \"1\\nvm.b=2\"", "sysctl: value must be one line"),
        ] {
            let task = format!("sysctl: {{{arguments}, sysctl_file: HOST/s}}");
            assert_eq!(bench.failure(&task).await, message);
        }
        bench.close().await;
    }
}
