//! The settings for what is trusted: what a foreign resource may use, and whose bundles are installed.

use super::Setting;
use super::SettingKind;
use super::list::setting;

pub const RESOURCE_TRUST: Setting = setting(
    "windlass",
    "resource_trust",
    SettingKind::Choice(&["own", "foreign"]),
    "own",
    "how far to trust custom resources in files; foreign: restrict them like resources from an API",
)
.env(&["WINDLASS_RESOURCE_TRUST"]);
pub const RESOURCE_NETWORKS: Setting = setting(
    "windlass",
    "resource_networks",
    SettingKind::List,
    "",
    "the only addresses and networks that a resource from an API may connect to (default: all except loopback, \
     link-local, metadata services and the networks of this machine)",
)
.env(&["WINDLASS_RESOURCE_NETWORKS"]);
pub const RESOURCE_BASTIONS: Setting = setting(
    "windlass",
    "resource_bastions",
    SettingKind::List,
    "",
    "bastions that a resource from an API may use, each `[USER@]ADDRESS[:PORT]`; windlass logs in to them as you do",
)
.env(&["WINDLASS_RESOURCE_BASTIONS"]);
pub const RESOURCE_BUNDLES: Setting = setting(
    "windlass",
    "resource_bundles",
    SettingKind::NamedPaths,
    "",
    "bundles that a resource from an API may name",
)
.env(&["WINDLASS_RESOURCE_BUNDLES"]);
pub const RESOURCE_FILES: Setting = setting(
    "windlass",
    "resource_files",
    SettingKind::NamedPaths,
    "",
    "files that a resource from an API may name; every user who can write such a resource can read them",
)
.env(&["WINDLASS_RESOURCE_FILES"]);
pub const RESOURCE_HOOKS: Setting = setting(
    "windlass",
    "resource_hooks",
    SettingKind::NamedPaths,
    "",
    "playbooks that a resource from an API may name as hooks",
)
.env(&["WINDLASS_RESOURCE_HOOKS"]);
pub const BUNDLE_SIGNERS: Setting = setting(
    "windlass",
    "bundle_signers",
    SettingKind::Path,
    "",
    "install only from bundles that somebody in this file has signed (OpenSSH's allowed_signers)",
)
.env(&["WINDLASS_BUNDLE_SIGNERS"]);
pub const BUNDLE_REVOKED: Setting = setting(
    "windlass",
    "bundle_revoked",
    SettingKind::Path,
    "",
    "public keys or fingerprints whose signatures of bundles do not count, one in each line",
)
.env(&["WINDLASS_BUNDLE_REVOKED"]);
pub const BUNDLE_PRINCIPALS: Setting = setting(
    "windlass",
    "bundle_principals",
    SettingKind::List,
    "",
    "only these of the allowed signers may sign bundles (default: all)",
)
.env(&["WINDLASS_BUNDLE_PRINCIPALS"]);
