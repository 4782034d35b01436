//! The arguments and return values that all modules for files have in common, documented once.

use crate::value::doc::{Argument, ArgumentKind, Return};

pub(in crate::modules) const OWNER: Argument = Argument::new("owner", ArgumentKind::Str, "The owner");
pub(in crate::modules) const GROUP: Argument = Argument::new("group", ArgumentKind::Str, "The group");
pub(in crate::modules) const MODE: Argument = Argument::new("mode", ArgumentKind::Mode, "File mode, octal or symbolic");
pub(in crate::modules) const ATTRIBUTES: Argument = Argument::new(
    "attributes",
    ArgumentKind::Str,
    "Flags of chattr, such as +i, -i or =a; with a directory only its top",
)
.alias(&["attr"]);
pub(in crate::modules) const SEUSER: Argument =
    Argument::new("seuser", ArgumentKind::Str, "User of its SELinux context, where SELinux is on");
pub(in crate::modules) const SEROLE: Argument =
    Argument::new("serole", ArgumentKind::Str, "Role of its SELinux context");
pub(in crate::modules) const SETYPE: Argument =
    Argument::new("setype", ArgumentKind::Str, "Type of its SELinux context");
pub(in crate::modules) const SELEVEL: Argument =
    Argument::new("selevel", ArgumentKind::Str, "Level of its SELinux context");
pub(in crate::modules) const UNSAFE_WRITES: Argument =
    Argument::new("unsafe_writes", ArgumentKind::Bool, "Only false is supported: windlass replaces files atomically");
pub(in crate::modules) const DIRECTORY_MODE: Argument =
    Argument::new("directory_mode", ArgumentKind::Mode, "File mode of new directories");
pub(in crate::modules) const BACKUP: Argument =
    Argument::new("backup", ArgumentKind::Bool, "Whether to keep a backup of the old file next to it").default("false");
pub(in crate::modules) const VALIDATE: Argument = Argument::new(
    "validate",
    ArgumentKind::Str,
    "Command that must succeed before the file is replaced; %s is the new file",
);
pub(in crate::modules) const FORCE: Argument =
    Argument::new("force", ArgumentKind::Bool, "Whether to replace a file that differs").default("true");
pub(in crate::modules) const DECRYPT: Argument =
    Argument::new("decrypt", ArgumentKind::Bool, "Whether to decrypt a source that is a vault file").default("true");
/// Without a default: it differs from module to module.
pub(in crate::modules) const REMOTE_SRC: Argument =
    Argument::new("remote_src", ArgumentKind::Bool, "Whether src is on the host");
pub(in crate::modules) const FOLLOW_DEST: Argument =
    Argument::new("follow", ArgumentKind::Bool, "Whether to write through a symbolic link at dest").default("false");
/// The file that is edited in place.
pub(in crate::modules) const TEXT_FILE: Argument =
    Argument::new("path", ArgumentKind::Path, "The file on the host").required().alias(&["dest", "destfile", "name"]);
pub(in crate::modules) const CREATE: Argument =
    Argument::new("create", ArgumentKind::Bool, "Whether to create the file if it is missing").default("false");

/// What is returned of a file.
pub(in crate::modules) mod returns {
    use super::Return;

    pub(crate) const MODE: Return = Return::new("mode", "Permissions, octal");
    pub(crate) const OWNER: Return = Return::new("owner", "Its owner");
    pub(crate) const GROUP: Return = Return::new("group", "Its group");
    pub(crate) const UID: Return = Return::new("uid", "The user id");
    pub(crate) const GID: Return = Return::new("gid", "The group id");
    pub(crate) const SIZE: Return = Return::new("size", "Bytes");
    pub(crate) const BACKUP_FILE: Return = Return::new("backup_file", "The path of the backup");
}
