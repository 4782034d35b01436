//! `cron`: jobs and variables in a user's crontab, or in a file of /etc/cron.d.

mod table;
#[cfg(test)]
mod tests;

use serde::Deserialize;

use super::file_edit::Text;
use super::{Changes, Controller, Diff, Error, Module, Outcome, Plan};
use crate::remote::{Attributes, Command, Output, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use table::Table;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cron {
    name: String,
    user: Option<String>,
    job: Option<String>,
    cron_file: Option<String>,
    state: State,
    backup: bool,
    minute: String,
    hour: String,
    day: String,
    month: String,
    weekday: String,
    special_time: Option<String>,
    disabled: bool,
    env: bool,
    insertafter: Option<String>,
    insertbefore: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Present,
    Absent,
}

/// What is to be written.
pub(super) struct CronChange {
    /// None: the file is to go.
    after: Option<Vec<u8>>,
    /// For the copy that is kept.
    before: Vec<u8>,
    outcome: Outcome,
}

impl Module for Cron {
    const CHANGES: Changes = Changes::CronJobs;
    const DOC: Doc = Doc {
        name: "cron",
        collection: "ansible.builtin",
        summary: "Add, change or remove a job or a variable of a crontab",
        arguments: &[
            Argument::new(
                "name",
                ArgumentKind::Str,
                "The comment above the job, which identifies it; or the variable's name",
            )
            .required(),
            Argument::new(
                "user",
                ArgumentKind::Str,
                "The owner of the crontab; with cron_file (required) the user who runs the job",
            ),
            Argument::new("job", ArgumentKind::Str, "The command; or the variable's value").alias(&["value"]),
            Argument::new(
                "cron_file",
                ArgumentKind::Path,
                "A file in /etc/cron.d, or elsewhere, instead of a user's crontab",
            ),
            Argument::new("state", ArgumentKind::Str, "Whether it should exist")
                .default("present")
                .choices(&["present", "absent"]),
            Argument::new("backup", ArgumentKind::Bool, "Whether to keep a copy of the crontab as it was")
                .default("false"),
            Argument::new("minute", ArgumentKind::Str, "0-59, *, */2 and so on").default("*"),
            Argument::new("hour", ArgumentKind::Str, "0-23, *, */2 and so on").default("*"),
            Argument::new("day", ArgumentKind::Str, "Day of the month, 1-31").alias(&["dom"]).default("*"),
            Argument::new("month", ArgumentKind::Str, "1-12").default("*"),
            Argument::new("weekday", ArgumentKind::Str, "0-6, from Sunday").alias(&["dow"]).default("*"),
            Argument::new("special_time", ArgumentKind::Str, "A keyword instead of the five time fields")
                .choices(&["reboot", "yearly", "annually", "monthly", "weekly", "daily", "hourly"]),
            Argument::new("disabled", ArgumentKind::Bool, "Whether to comment the job out").default("false"),
            Argument::new("env", ArgumentKind::Bool, "Whether it is a variable, not a job").default("false"),
            Argument::new("insertafter", ArgumentKind::Str, "Insert a new variable after this one"),
            Argument::new("insertbefore", ArgumentKind::Str, "Insert a new variable before this one"),
        ],
        free_form: None,
        example: "\
- name: Make a snapshot every night
  cron:
    name: snapshot of etcd
    minute: '15'
    hour: '3'
    user: root
    cron_file: etcd-snapshot
    job: /usr/local/bin/etcd-snapshot

- name: Do not mail the job's output
  cron:
    name: MAILTO
    env: true
    value: ''
    user: root
    cron_file: etcd-snapshot
",
        returns: &[
            Return::new("jobs", "The names of the jobs"),
            Return::new("envs", "The names of the variables"),
            Return::new("cron_file", "As given"),
            Return::new("backup_file", "The path of the copy on the host"),
        ],
    };
    type Change = CronChange;

    async fn plan(&self, probe: &Probe, _: &Controller<'_>) -> Result<Plan<CronChange>, Error> {
        self.check()?;
        let before = self.read_crontab(probe).await?;
        let text = before.unwrap_or_else(|| Text::decode(b""));
        let mut table = Table::parse_crontab(&text.characters);
        let mut changed = self.edit(&mut table, &text)?;
        let before = table.original().to_owned();
        let lacks_end = !before.is_empty() && !before.ends_with(['\n', '\r']);
        let gone = changed && self.cron_file.is_some() && self.state == State::Absent && !self.env && table.is_empty();
        changed |= lacks_end;
        let mut outcome = Outcome::default().with("jobs", table.jobs()).with("envs", table.variables());
        if let Some(file) = &self.cron_file {
            outcome = outcome.with("cron_file", file.as_str());
        }
        if gone {
            outcome = outcome.with("state", "absent");
        }
        if !changed {
            return Ok(Plan::Unchanged(outcome));
        }
        let after = (!gone).then(|| table.render_crontab());
        let header = self.header();
        let diff = Diff {
            before_header: header.clone(),
            after_header: if gone { "/dev/null".to_owned() } else { header },
            before: before.clone(),
            after: after.clone().unwrap_or_default(),
        };
        let change = CronChange {
            after: after.map(|after| text.encode(&after)),
            before: text.encode(&before),
            outcome: outcome.clone(),
        };
        Ok(Plan::Change { diff: vec![diff], outcome, change })
    }

    async fn apply(&self, change: CronChange, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let mut outcome = change.outcome;
        if self.backup {
            let made = remote.run(&Command::program(["mktemp", "/tmp/crontab.XXXXXXXXXX"])).await?;
            let path = String::from_utf8_lossy(&succeeded("mktemp", made)?.stdout).trim().to_owned();
            remote.write(&path, &change.before, &Attributes::default()).await?;
            outcome = outcome.with("backup_file", path);
        }
        match (&self.file(), change.after) {
            (Some(file), Some(content)) => {
                let is_new = remote.stat(file, crate::remote::Links::Follow).await?.is_none();
                let mode = is_new.then_some(0o644);
                remote.write(file, &content, &Attributes { mode, ..Attributes::default() }).await?;
            }
            (Some(file), None) => remote.remove(file).await?,
            (None, content) => {
                let mut command = Command::program(self.crontab(remote, "-"));
                command.stdin = Some(content.unwrap_or_default());
                succeeded("crontab", remote.run(&command).await?)?;
            }
        }
        Ok(outcome)
    }
}

impl Cron {
    fn check(&self) -> Result<(), Error> {
        let times = [&self.minute, &self.hour, &self.day, &self.month, &self.weekday];
        let problem = match () {
            () if self.breaks_lines() => "job, name, user and times must each be one line",
            () if self.cron_file.as_deref() == Some("/etc/crontab") => "cron_file cannot be /etc/crontab",
            () if self.insertafter.is_some() && self.insertbefore.is_some() => {
                "only insertafter or insertbefore can be given, not both"
            }
            () if self.special_time.is_some() && times.iter().any(|time| *time != "*") => {
                "special_time cannot be combined with minute, hour, day, month or weekday"
            }
            () if self.env && self.name.contains(' ') => "the name of a variable has no spaces",
            () if self.state == State::Absent => return Ok(()),
            () if self.cron_file.is_some() && self.user.is_none() => "cron_file needs user, the user who runs the job",
            () if self.job.is_none() => "job is required: the command, or the variable's value",
            () if !self.env && (self.insertafter.is_some() || self.insertbefore.is_some()) => {
                "insertafter and insertbefore are for variables (env: true)"
            }
            () => return Ok(()),
        };
        Err(Error::failed(problem))
    }

    /// A line break would add lines, which cron would run.
    fn breaks_lines(&self) -> bool {
        let job = self.job.as_deref().map(|job| job.trim_matches(['\r', '\n']));
        let words = [&self.user, &self.special_time, &self.insertafter, &self.insertbefore];
        let times = [&self.name, &self.minute, &self.hour, &self.day, &self.month, &self.weekday];
        let words = words.into_iter().filter_map(|word| word.as_deref());
        words.chain(times.map(String::as_str)).chain(job).any(|word| word.contains(['\r', '\n']))
    }

    /// Makes the table as it is to be, in the characters of the text that it came from. Gives whether that was a change.
    fn edit(&self, table: &mut Table, text: &Text) -> Result<bool, Error> {
        let job = self.job.as_deref().unwrap_or_default();
        let name = text.adapt(&self.name);
        match (self.env, self.state) {
            (true, State::Absent) => Ok(table.remove_variable(&name)),
            (true, State::Present) => {
                let line = text.adapt(&format!("{}=\"{job}\"", self.name));
                let beside = match (&self.insertafter, &self.insertbefore) {
                    (Some(other), _) => Some((other.as_str(), true)),
                    (None, Some(other)) => Some((other.as_str(), false)),
                    (None, None) => None,
                };
                table
                    .set_variable(&name, &line, beside)
                    .map_err(|other| Error::failed(format!("the crontab has no variable {other:?}")))
            }
            (false, State::Absent) => Ok(table.remove_job(&name)),
            (false, State::Present) => Ok(table.set_job(&name, &text.adapt(&self.line(job)))),
        }
    }

    /// The line of the job.
    fn line(&self, job: &str) -> String {
        let job = job.trim_matches(['\r', '\n']);
        let off = if self.disabled { "#" } else { "" };
        let when = match &self.special_time {
            Some(word) => format!("@{word}"),
            None => [&*self.minute, &self.hour, &self.day, &self.month, &self.weekday].join(" "),
        };
        match (&self.cron_file, &self.user) {
            (Some(_), Some(user)) => format!("{off}{when} {user} {job}"),
            _ => format!("{off}{when} {job}"),
        }
    }

    fn file(&self) -> Option<String> {
        let file = self.cron_file.as_deref()?;
        Some(if file.starts_with('/') { file.to_owned() } else { format!("/etc/cron.d/{file}") })
    }

    fn header(&self) -> String {
        match (self.file(), &self.user) {
            (Some(file), _) => file,
            (None, Some(user)) => format!("crontab for user {user:?}"),
            (None, None) => "crontab".to_owned(),
        }
    }

    /// None: there is none yet.
    async fn read_crontab(&self, probe: &Probe) -> Result<Option<Text>, Error> {
        if let Some(file) = self.file() {
            let content = probe.read_file(&file).await?;
            return Ok(content.map(|bytes| Text::decode(&bytes)));
        }
        if probe.which("crontab").await?.is_none() {
            return Err(Error::Failed {
                message: "the host has no program crontab".to_owned(),
                hint: Some("install cron, or name a file in /etc/cron.d with cron_file".to_owned()),
            });
        }
        let output = probe.query(&Command::program(self.crontab(probe, "-l"))).await?;
        match output.code {
            0 => Ok(Some(Text::decode(&output.stdout))),
            // What it says where there is none.
            1 if String::from_utf8_lossy(&output.stderr).to_lowercase().contains("no crontab") => Ok(None),
            _ => Err(failure("crontab", &output)),
        }
    }

    /// The program with the user whose crontab it is, unless that is the one who asks.
    fn crontab(&self, probe: &Probe, argument: &str) -> Vec<String> {
        let user = self.user.as_ref().filter(|user| *user != probe.user());
        let user = user.into_iter().flat_map(|user| ["-u".to_owned(), user.clone()]);
        ["crontab".to_owned()].into_iter().chain(user).chain([argument.to_owned()]).collect()
    }
}

fn succeeded(program: &str, output: Output) -> Result<Output, Error> {
    if output.code == 0 { Ok(output) } else { Err(failure(program, &output)) }
}

fn failure(program: &str, output: &Output) -> Error {
    let words = String::from_utf8_lossy(&output.stderr);
    let words = words.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no error message");
    Error::failed(format!("{program} failed with code {}: {words}", output.code))
}
