//! Copying a file from one place of a host to another without it passing through the controller.

use super::Error;
use crate::remote::{Attributes, Command, Remote};

/// A file of the host to be copied to another path of the host.
pub struct HostCopy {
    pub from: String,
    pub to: String,
    /// `to`'s directory.
    pub directory: String,
    pub attributes: Attributes,
    /// Owner and group (as numbers) and mode that `to` has and is to keep where `attributes` say nothing.
    pub keep: Option<(u32, u32, u32)>,
    pub back_up: bool,
    pub validate: Option<String>,
}

/// Copies to a temporary file beside the target, then renames: the target is whole at any time.
/// 1 source, 2 target, 3 its directory, 4 kept owner, 5 wanted owner, 6 mode, 7 validate with `"$new"` for the file.
const SCRIPT: &str = r#"
set -e
new=$(mktemp "$3/.windlass.XXXXXXXX")
trap 'rm -f -- "$new"' EXIT
cat <"$1" >"$new"
if [ -n "$4" ]; then chown "$4" "$new" 2>/dev/null || :; fi
if [ -n "$5" ]; then chown "$5" "$new"; fi
if [ -n "$6" ]; then chmod "$6" "$new"; else chmod "$(printf %o $((0666 & ~$(umask))))" "$new"; fi
if [ -n "$7" ]; then eval "$7" || { echo "validation failed with code $?" >&2; exit 1; }; fi
sync "$new" 2>/dev/null || :
mv -f -- "$new" "$2"
trap - EXIT
"#;

impl HostCopy {
    /// Does it. Gives the path of the backup, if one was made.
    pub async fn apply(self, remote: &Remote) -> Result<Option<String>, Error> {
        let backup = match self.back_up {
            true => Some(remote.back_up(&self.to).await?),
            false => None,
        };
        let kept = self.keep.map(|(uid, gid, _)| format!("{uid}:{gid}")).unwrap_or_default();
        let owner = match (&self.attributes.owner, &self.attributes.group) {
            (None, None) => String::new(),
            (owner, group) => {
                let group = group.as_ref().map(|group| format!(":{group}")).unwrap_or_default();
                format!("{}{group}", owner.as_deref().unwrap_or_default())
            }
        };
        let mode = self.attributes.mode.or(self.keep.map(|(_, _, mode)| mode));
        let mode = mode.map(|mode| format!("{mode:o}")).unwrap_or_default();
        let validate = self.validate.map(|line| line.replace("%s", "\"$new\"")).unwrap_or_default();
        let argv = ["sh", "-c", SCRIPT, "sh", &self.from, &self.to, &self.directory, &kept, &owner, &mode, &validate];
        let output = remote.run(&Command::program(argv)).await?;
        if output.code == 0 {
            return Ok(backup);
        }
        let reason = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        Err(Error::failed(format!("cannot copy {} to {}: {reason}", self.from, self.to)))
    }
}
