//! Which operation a journal is of. On the hosts it is one text: the command line that resumes it, without `windlass`. Journals of
//! 0.1.0 have the same text, and a host may have written any other: what is no operation is refused where it is read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Of a change of the minor version of etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the next minor version.
    Up,
    /// To the minor version before.
    Down,
}

/// An apply, or another operation and what it is for. Not what a later run may choose differently, such as the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RecordedOperation {
    /// Makes a deployment what it is described to be.
    Apply,
    Upgrade {
        component: Option<String>,
    },
    Rollback {
        component: Option<String>,
    },
    RenewCertificates,
    RemoveHost(String),
    RemoveEtcdMembers {
        names: Vec<String>,
        even: bool,
    },
    ReplaceEtcdMembers {
        names: Vec<String>,
    },
    DefragmentEtcd,
    RotateEtcdCa {
        keeps_trust: bool,
    },
    ChangeEtcdVersion(Direction),
    /// Of the backup of this name.
    RestoreEtcd {
        backup: String,
    },
    UndoRestore,
    ReleaseRestore,
    RecoverEtcd,
}

/// A text that names no operation.
#[derive(Debug, thiserror::Error)]
#[error("no operation of windlass: {0:?}")]
pub struct UnknownOperation(String);

/// What the name of a host, component or member may be in a journal.
pub(super) fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-._:[]@".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) && text.len() < 256
}

impl RecordedOperation {
    fn parse(command: &str) -> Option<RecordedOperation> {
        let words: Vec<&str> = command.split(' ').collect();
        let plain = |word: &str| is_plain(word).then(|| word.to_owned());
        let plain_names = |names: &[&str]| names.iter().map(|name| plain(name)).collect::<Option<Vec<String>>>();
        let component = |options: &[&str]| match options {
            [] => Some(None),
            ["--component", component] => plain(component).map(Some),
            _ => None,
        };
        Some(match words.as_slice() {
            ["apply"] => RecordedOperation::Apply,
            ["upgrade", options @ ..] => RecordedOperation::Upgrade { component: component(options)? },
            ["rollback", options @ ..] => RecordedOperation::Rollback { component: component(options)? },
            ["certificates"] => RecordedOperation::RenewCertificates,
            ["remove-host", host] => RecordedOperation::RemoveHost(plain(host)?),
            ["etcd", "remove-member", first, names @ .., "--allow-even"] => {
                RecordedOperation::RemoveEtcdMembers { names: plain_names(&[&[*first], names].concat())?, even: true }
            }
            ["etcd", "remove-member", names @ ..] if !names.is_empty() => {
                RecordedOperation::RemoveEtcdMembers { names: plain_names(names)?, even: false }
            }
            ["etcd", "replace-member", names @ ..] if !names.is_empty() => {
                RecordedOperation::ReplaceEtcdMembers { names: plain_names(names)? }
            }
            ["etcd", "defrag"] => RecordedOperation::DefragmentEtcd,
            ["etcd", "rotate-ca"] => RecordedOperation::RotateEtcdCa { keeps_trust: false },
            ["etcd", "rotate-ca", "--keep-trust"] => RecordedOperation::RotateEtcdCa { keeps_trust: true },
            ["etcd", "upgrade"] => RecordedOperation::ChangeEtcdVersion(Direction::Up),
            ["etcd", "downgrade"] => RecordedOperation::ChangeEtcdVersion(Direction::Down),
            ["etcd", "restore", "--undo"] => RecordedOperation::UndoRestore,
            ["etcd", "restore", "--release"] => RecordedOperation::ReleaseRestore,
            ["etcd", "restore", backup] => RecordedOperation::RestoreEtcd { backup: plain(backup)? },
            ["etcd", "recover"] => RecordedOperation::RecoverEtcd,
            _ => return None,
        })
    }

    /// Whether a journal can name it: a name with a blank in it would be read as two.
    pub(super) fn can_be_read(&self) -> bool {
        RecordedOperation::parse(&self.to_string()).as_ref() == Some(self)
    }
}

/// The command line, without `windlass`.
impl fmt::Display for RecordedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_component = |component: &Option<String>| {
            component.as_ref().map_or_else(String::new, |component| format!(" --component {component}"))
        };
        match self {
            RecordedOperation::Apply => f.write_str("apply"),
            RecordedOperation::Upgrade { component } => write!(f, "upgrade{}", of_component(component)),
            RecordedOperation::Rollback { component } => write!(f, "rollback{}", of_component(component)),
            RecordedOperation::RenewCertificates => f.write_str("certificates"),
            RecordedOperation::RemoveHost(host) => write!(f, "remove-host {host}"),
            RecordedOperation::RemoveEtcdMembers { names, even } => {
                write!(f, "etcd remove-member {}{}", names.join(" "), if *even { " --allow-even" } else { "" })
            }
            RecordedOperation::ReplaceEtcdMembers { names } => write!(f, "etcd replace-member {}", names.join(" ")),
            RecordedOperation::DefragmentEtcd => f.write_str("etcd defrag"),
            RecordedOperation::RotateEtcdCa { keeps_trust: false } => f.write_str("etcd rotate-ca"),
            RecordedOperation::RotateEtcdCa { keeps_trust: true } => f.write_str("etcd rotate-ca --keep-trust"),
            RecordedOperation::ChangeEtcdVersion(Direction::Up) => f.write_str("etcd upgrade"),
            RecordedOperation::ChangeEtcdVersion(Direction::Down) => f.write_str("etcd downgrade"),
            RecordedOperation::RestoreEtcd { backup } => write!(f, "etcd restore {backup}"),
            RecordedOperation::UndoRestore => f.write_str("etcd restore --undo"),
            RecordedOperation::ReleaseRestore => f.write_str("etcd restore --release"),
            RecordedOperation::RecoverEtcd => f.write_str("etcd recover"),
        }
    }
}

impl TryFrom<String> for RecordedOperation {
    type Error = UnknownOperation;

    fn try_from(command: String) -> Result<Self, UnknownOperation> {
        RecordedOperation::parse(&command).ok_or(UnknownOperation(command))
    }
}

impl From<RecordedOperation> for String {
    fn from(operation: RecordedOperation) -> String {
        operation.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for command in [
            "apply",
            "upgrade",
            "upgrade --component scheduler",
            "rollback",
            "rollback --component scheduler",
            "certificates",
            "remove-host h4",
            "etcd remove-member h4 h5",
            "etcd remove-member h4 --allow-even",
            "etcd replace-member h4",
            "etcd defrag",
            "etcd rotate-ca",
            "etcd rotate-ca --keep-trust",
            "etcd upgrade",
            "etcd downgrade",
            "etcd restore 20261124T043051Z-r164",
            "etcd restore --undo",
            "etcd restore --release",
            "etcd recover",
        ] {
            let operation = RecordedOperation::parse(command).unwrap();
            assert_eq!(operation.to_string(), command);
            assert!(operation.can_be_read());
            let json = serde_json::to_string(&operation).unwrap();
            assert_eq!(json, format!("{command:?}"), "journals of 0.1.0 have a text");
            assert_eq!(serde_json::from_str::<RecordedOperation>(&json).unwrap(), operation);
        }
    }

    #[test]
    fn what_is_no_operation_is_refused_by_name() {
        for command in [
            "",
            "destroy --name karmada",
            "upgrade\nh9 is well",
            "upgrade --bundle /srv/x --yes",
            "upgrade --component",
            "apply --yes; curl x|sh",
            "remove-host",
            "remove-host ",
            "remove-host --yes",
            "remove-host h1 h2",
            "etcd replace-member",
            "etcd upgrade 3.6",
            "etcd restore",
            "etcd restore --yes",
            "etcd restore a b",
            "etcd remove-member --yes",
            "etcd remove-member --allow-even",
        ] {
            let error = serde_json::from_value::<RecordedOperation>(command.into()).unwrap_err().to_string();
            assert_eq!(error, format!("no operation of windlass: {command:?}"));
        }
        let odd = |name: &str| RecordedOperation::RemoveHost(name.into()).can_be_read();
        assert!(odd("h1") && !odd("h1 h2") && !odd("--yes") && !odd(""));
    }
}
