//! How far an apply or another operation came, kept on the hosts beside the lock: so that an interrupted one can be resumed from
//! anywhere. What the hosts can say themselves is not in it.

use std::sync::Arc;

use futures::future::join_all;
use serde::{Deserialize, Serialize};

use super::Error;
use super::control::{Control, Outcome, Progress};
use super::lock::{Lock, within};
use super::recorded_operation::{Direction, RecordedOperation, is_plain};
use super::stage::Stage;
use crate::remote::{Attributes, Remote};

/// How far an operation came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// The lock's token: of two journals the one with the higher is newer.
    pub token: u64,
    /// The run, as in the lock.
    pub apply: String,
    #[serde(rename = "deed")]
    pub operation: RecordedOperation,
    pub deployment: String,
    /// SHA-256 of the request.
    pub digest: String,
    /// `alice@workstation`.
    pub who: String,
    /// Seconds since 1970.
    pub begun: u64,
    /// Those that were begun, in order.
    pub stages: Vec<JournalEntry>,
    /// It came to its end.
    pub done: bool,
    /// A task failed, or a host was lost: the run itself went to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The inventory's name of the host that the journal is on. Empty: windlass 0.1.0 wrote it.
    #[serde(default)]
    pub host: String,
}

/// A stage in a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    pub stage: String,
    pub playbook: String,
    pub done: bool,
}

impl Journal {
    /// The journal of an operation that starts. `digest`: of the request.
    pub fn new_journal(operation: RecordedOperation, deployment: &str, digest: Option<&str>, lock: &Lock) -> Journal {
        let record = &lock.hold().record;
        Journal {
            token: record.token,
            apply: record.run.clone().unwrap_or_default(),
            operation,
            deployment: deployment.to_owned(),
            digest: digest.unwrap_or_default().to_owned(),
            who: record.holder.clone(),
            begun: record.since,
            stages: Vec::new(),
            done: false,
            failed: false,
            host: String::new(),
        }
    }

    /// Notes how the run ended. One that was interrupted is not done, and has not failed.
    pub fn finish_journal(&mut self, outcome: Outcome) {
        self.done = outcome == Outcome::Ok;
        self.failed = matches!(outcome, Outcome::Failed | Outcome::Unreachable);
    }

    /// Writes how the run ended. After a failure the journal is as it was if it cannot be written.
    ///
    /// # Errors
    /// The run succeeded, but this cannot be written.
    pub(super) async fn write_end(&self, outcome: Outcome, lock: &Lock, control: &Control) -> Result<(), Error> {
        let written = match outcome {
            Outcome::Interrupted => return Ok(()),
            _ => write_journal(lock, self).await,
        };
        match (written, outcome) {
            (Err(reason), Outcome::Ok) => Err(Error::Journal(reason)),
            (Err(reason), _) => {
                control.report_progress(Progress::Warning(Error::Journal(reason).to_string()));
                Ok(())
            }
            (Ok(()), _) => Ok(()),
        }
    }

    /// How many stages came to their end.
    fn ended(&self) -> usize {
        self.stages.iter().filter(|entry| entry.done).count()
    }

    /// Whether this is a journal of the same run that came as far as the other, by the same way.
    fn has_been_at(&self, other: &Journal) -> bool {
        let is_same_run = (self.token, self.begun, &self.apply, &self.operation, &self.digest, &self.who)
            == (other.token, other.begun, &other.apply, &other.operation, &other.digest, &other.who);
        let entries = self.stages.iter().zip(&other.stages);
        is_same_run
            && self.done >= other.done
            && self.stages.len() >= other.stages.len()
            && entries.into_iter().all(|(own, of_other)| {
                (&own.stage, &own.playbook) == (&of_other.stage, &of_other.playbook) && own.done >= of_other.done
            })
    }

    /// What became of it if it is not done.
    pub fn fate(&self) -> &'static str {
        if self.failed { "failed" } else { "was interrupted" }
    }

    /// Whether an apply resumes it.
    pub fn is_apply(&self) -> bool {
        self.operation == RecordedOperation::Apply
    }

    /// What a person can do about an operation that did not come to its end.
    pub fn how_to_resume(&self) -> String {
        use RecordedOperation::{ReleaseRestore, RestoreEtcd, UndoRestore};
        match &self.operation {
            RestoreEtcd { backup } => {
                return format!(
                    "run windlass etcd restore DIR/{backup} to resume it, or windlass etcd restore --undo to go back"
                );
            }
            UndoRestore | ReleaseRestore => return format!("run windlass {} to resume it", self.operation),
            _ => {}
        }
        let back = match &self.operation {
            RecordedOperation::Upgrade { .. } => " (with its --bundle, if it had one), or windlass rollback to go back",
            RecordedOperation::ChangeEtcdVersion(Direction::Up) => {
                " (with its --bundle, if it had one), or windlass etcd downgrade --bundle OLDER to go back"
            }
            RecordedOperation::ChangeEtcdVersion(Direction::Down) => {
                " (with its --bundle, if it had one), or windlass etcd upgrade --bundle NEWER to go back"
            }
            _ => "",
        };
        let end = if self.is_apply() { "" } else { "; if nothing is left of it to do, windlass apply closes it" };
        format!("run windlass {} to resume it{back}{end}", self.operation)
    }

    /// The stage that was begun and not ended.
    pub fn open_stage(&self) -> Option<Stage> {
        let open = self.stages.iter().rfind(|entry| !entry.done).filter(|_| !self.done)?;
        Stage::stage_named(&open.stage)
    }

    /// None for what is no journal. The file is on a host, which may have written anything into it: the operation is one that there
    /// is, for one host or component, and the holder's name has no blanks.
    fn parse(content: &[u8]) -> Option<Journal> {
        let mut journal: Journal = serde_json::from_slice(content).ok()?;
        journal.who = journal
            .who
            .chars()
            .map(|c| if is_plain(c.encode_utf8(&mut [0; 4])) || c == '-' { c } else { '?' })
            .collect();
        Some(journal)
    }
}

fn path(directory: &str) -> String {
    format!("{directory}/journal")
}

/// The journals that the hosts have, beside the lock.
pub struct Journals {
    pub found: Vec<(Arc<str>, Journal)>,
    /// How many hosts have a journal, or do not answer. A host that the inventory got since has none.
    having: usize,
    /// How many hosts did not answer.
    silent: usize,
}

/// Reads them from the hosts that answer, of `all`.
pub async fn read_journals(hosts: &[(Arc<str>, Remote)], directory: &str, all: usize) -> Journals {
    let path = path(directory);
    let ask = |remote: &Remote| {
        let (remote, path) = (remote.clone(), path.clone());
        async move { within(remote.read_file(&path)).await.ok() }
    };
    let answers = join_all(hosts.iter().map(|(_, remote)| ask(remote))).await;
    let mut journals = Journals { found: Vec::new(), having: all, silent: all };
    for ((name, _), answer) in hosts.iter().zip(answers) {
        let Some(content) = answer else { continue };
        journals.silent -= 1;
        journals.having -= usize::from(content.is_none());
        journals.found.extend(content.and_then(|content| Some((name.clone(), Journal::parse(&content)?))));
    }
    journals
}

impl Journals {
    /// The newest of them. A run writes its journal on a majority: what fewer of the hosts with a journal have is made up by one of
    /// them. One that came further has been where the others are.
    pub fn newest(self) -> Option<Journal> {
        let needed = (self.having / 2 + 1).saturating_sub(self.silent).max(1);
        let is_known = |journal: &Journal| {
            let others = self.found.iter().map(|(_, other)| other);
            others.filter(|other| other.has_been_at(journal)).count() >= needed
        };
        let known = self.found.iter().map(|(_, journal)| journal).filter(|journal| is_known(journal));
        known.max_by_key(|journal| (journal.token, journal.done, journal.stages.len(), journal.ended())).cloned()
    }
}

/// Hosts whose names were exchanged in the inventory: each with its former name, which now belongs to a
/// different host. A host with a new name is not one of them.
pub fn exchanged<'j>(journals: &'j [(Arc<str>, Journal)], names: &[Arc<str>]) -> Vec<(&'j str, &'j str)> {
    let pairs = journals.iter().map(|(name, journal)| (&**name, journal.host.as_str()));
    pairs.filter(|(name, known)| name != known && names.iter().any(|other| **other == **known)).collect()
}

/// Writes the journal onto the hosts of the lock.
///
/// # Errors
/// Fewer than a majority took it: the reasons.
pub async fn write_journal(lock: &Lock, journal: &Journal) -> Result<(), String> {
    let path = path(&lock.hold().directory);
    let attributes = Attributes { mode: Some(0o644), ..Attributes::default() };
    let one = |name: &str, remote: &Remote| {
        let own = Journal { host: name.to_owned(), ..journal.clone() };
        let content = serde_json::to_vec(&own).expect("it is text and numbers");
        let (remote, path, attributes) = (remote.clone(), path.clone(), attributes.clone());
        async move { within(remote.write(&path, &content, &attributes)).await }
    };
    let written = join_all(lock.hosts().iter().map(|(name, remote)| one(name, remote))).await;
    let failures: Vec<String> =
        written.iter().filter_map(|result| result.as_ref().err()).map(ToString::to_string).collect();
    match written.len() - failures.len() > lock.hold().hosts.len() / 2 {
        true => Ok(()),
        false => Err(failures.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(stages: &[(&str, bool)], done: bool) -> Journal {
        let entry = |(stage, done): &(&str, bool)| JournalEntry {
            stage: (*stage).to_owned(),
            playbook: "x.yml".into(),
            done: *done,
        };
        Journal {
            token: 7,
            apply: "r".into(),
            operation: RecordedOperation::Apply,
            deployment: "d".into(),
            digest: "0".into(),
            who: "a@b".into(),
            begun: 1,
            stages: stages.iter().map(entry).collect(),
            done,
            failed: false,
            host: String::new(),
        }
    }

    #[test]
    fn exchanged_names_are_distinguished_from_new_ones() {
        let on = |name: &str, known: &str| (name.into(), Journal { host: known.into(), ..journal(&[], true) });
        let names: [Arc<str>; 3] = ["h1".into(), "h2".into(), "h3".into()];
        let found = [on("h1", "h2"), on("h2", "h1"), on("h3", "h3")];
        assert_eq!(exchanged(&found, &names), [("h1", "h2"), ("h2", "h1")]);
        // Half of an exchange, when the other host does not answer.
        assert_eq!(exchanged(&found[..1], &names), [("h1", "h2")]);
        assert_eq!(exchanged(&[on("h1", "old-name"), on("h2", "")], &names), []);
    }

    #[test]
    fn a_journal_of_0_1_0_is_read() {
        let text = br#"{"token":7,"apply":"r","deed":"apply","deployment":"d","digest":"0","who":"a@b","begun":1,"stages":[{"stage":"etcd","playbook":"x.yml","done":false}],"done":false}"#;
        assert_eq!(Journal::parse(text).unwrap(), journal(&[("etcd", false)], false));
    }

    #[test]
    fn what_a_host_made_up_is_no_journal() {
        let forged = |field: &str, value: &str| {
            let mut json = serde_json::to_value(journal(&[("etcd", false)], false)).unwrap();
            json[field] = value.into();
            Journal::parse(json.to_string().as_bytes())
        };
        assert!(forged("deed", "remove-host h2").is_some());
        assert_eq!(forged("deed", "apply --yes; curl x|sh"), None);
        let who = forged("who", "a-b@c\nh9: run x").unwrap().who;
        assert_eq!(who, "a-b@c?h9:?run?x");
        // One host alone does not hide the journals of the others, whatever it writes there and into its lock.
        let of = |token: u64, done: bool| Journal { token, ..journal(&[("etcd", done)], done) };
        let newest = |journals: &[Journal], having, silent| {
            let found = journals.iter().map(|journal| ("h".into(), journal.clone())).collect();
            Journals { found, having, silent }.newest().map(|journal| (journal.token, journal.done))
        };
        let open = of(8, false);
        assert_eq!(newest(&[of(1 << 61, false), open.clone(), open.clone()], 3, 0), Some((8, false)));
        // Nor what becomes of theirs; nor does it make one up for a run that took the lock and did nothing.
        assert_eq!(newest(&[of(8, true), open.clone(), open.clone()], 3, 0), Some((8, false)));
        let made_up = Journal { operation: RecordedOperation::RemoveHost("h2".into()), ..of(9, false) };
        assert_eq!(newest(&[made_up, open.clone(), open.clone()], 3, 0), Some((8, false)));
        let elsewhere = Journal { token: 8, ..journal(&[("addons", false)], false) };
        let stages = [elsewhere, open.clone(), open.clone()];
        for order in [[0, 1, 2], [1, 2, 0]] {
            let found = order.iter().map(|at| ("h".into(), stages[*at].clone())).collect();
            let newest = Journals { found, having: 3, silent: 0 }.newest().unwrap();
            assert_eq!(newest.open_stage(), Some(Stage::Etcd));
        }
        // A host that was down when it was written, one that is down now, and a deployment of one host, or that was of one.
        assert_eq!(newest(&[of(7, true), open.clone(), open.clone()], 3, 0), Some((8, false)));
        assert_eq!(newest(&[of(7, true), open.clone()], 3, 1), Some((8, false)));
        assert_eq!(newest(&[of(8, true), of(8, true), open.clone()], 3, 0), Some((8, true)));
        assert_eq!(newest(&[open], 1, 0), Some((8, false)));
        assert_eq!(newest(&[], 0, 0), None);
    }

    #[test]
    fn the_stage_to_resume_is_the_one_that_was_not_ended() {
        assert_eq!(journal(&[("etcd", true), ("controlPlane", false)], false).open_stage(), Some(Stage::ControlPlane));
        assert_eq!(journal(&[("etcd", true)], false).open_stage(), None);
        assert_eq!(journal(&[("etcd", false)], true).open_stage(), None);
    }

    #[test]
    fn what_is_written_is_read_again_and_half_a_file_is_none() {
        let written = serde_json::to_vec(&journal(&[("etcd", false)], false)).unwrap();
        assert_eq!(Journal::parse(&written).unwrap(), journal(&[("etcd", false)], false));
        assert_eq!(Journal::parse(&written[..written.len() / 2]), None);
    }
}
