//! Copying a file from one place of a host to another without it passing through the controller.

use crate::modules::Error;
use crate::remote::{Attributes, Command, FLUSH, FileKind, Remote, Stat};

/// A file of the host to be copied to another path of the host.
pub(in crate::modules) struct HostCopy {
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
/// 1 source, 2 target, 3 temporary file, 4 kept owner, 5 wanted owner, 6 mode; then the validating command, if any.
const SCRIPT: &str = r#"
from=$1 to=$2 new=$3 kept=$4 owner=$5 mode=$6
shift 6
before=$(umask)
umask 077
set -C
command exec 7>"$new" || exit
set +C
umask "$before"
# The open file itself: the directory's owner may have replaced the name meanwhile.
at=/proc/$$/fd/7
[ -e "$at" ] || at=$new
trap 'rm -f -- "$new"' 0
trap 'exit 1' 1 2 13 15
cat <"$from" >&7 && wl_flush "$at" || exit
if [ "$kept" ]; then chown "$kept" "$at" 2>/dev/null; fi
if [ "$owner" ]; then chown "$owner" "$at" || exit; fi
if [ "$mode" ]; then chmod "$mode" "$at" || exit; else chmod =rw "$at" || exit; fi
exec 7>&-
if [ $# -gt 0 ]; then "$@" >&2 || { echo "validation failed with code $?" >&2; exit 1; }; fi
mv -f -- "$new" "$to"
"#;

impl HostCopy {
    /// What of a file at the target is kept: nothing of a link, which is replaced, and no special bits of a file that has
    /// several names.
    pub(in crate::modules) fn kept(there: &Stat) -> Option<(u32, u32, u32)> {
        let mode = if there.links > 1 { there.mode & 0o777 } else { there.mode };
        (there.kind != FileKind::Link).then_some((there.uid, there.gid, mode))
    }

    /// Does it. Gives the path of the backup, if one was made.
    pub(in crate::modules) async fn copy_file(self, remote: &Remote) -> Result<Option<String>, Error> {
        let new = format!("{}/.windlass.{:016x}", self.directory.trim_end_matches('/'), rand::random::<u64>());
        let validate = self.validating(&new)?;
        let backup = match self.back_up {
            true => Some(remote.back_up(&self.to).await?),
            false => None,
        };
        let kept = self.keep.map(|(uid, gid, _)| format!("{uid}:{gid}")).unwrap_or_default();
        let group = self.attributes.group.as_ref().map(|group| format!(":{group}")).unwrap_or_default();
        let owner = format!("{}{group}", self.attributes.owner.as_deref().unwrap_or_default());
        let mode = self.attributes.mode.or(self.keep.map(|(_, _, mode)| mode));
        let mode = mode.map(|mode| format!("{mode:o}")).unwrap_or_default();
        let script = format!("{FLUSH}{SCRIPT}");
        let argv = ["sh", "-c", &script, "sh", &self.from, &self.to, &new, &kept, &owner, &mode];
        let argv = argv.into_iter().chain(validate.iter().map(String::as_str));
        let output = remote.run(&Command::program(argv)).await?;
        if output.code == 0 {
            return Ok(backup);
        }
        let reason = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        Err(Error::failed(format!("cannot copy {} to {}: {reason}", self.from, self.to)))
    }

    /// The words of the validating command, for the new file.
    fn validating(&self, new: &str) -> Result<Vec<String>, Error> {
        let Some(line) = &self.validate else { return Ok(Vec::new()) };
        let words = shlex::split(line).filter(|words| !words.is_empty() && line.contains("%s"));
        match words {
            Some(words) => Ok(words.into_iter().map(|word| word.replace("%s", new)).collect()),
            None => Err(Error::failed(format!("validate {line:?} must be a command with %s for the new file's path"))),
        }
    }
}
