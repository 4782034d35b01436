//! Tools that cannot compare (unzip, busybox's and BSD's tar): the archive is unpacked beside the destination, and
//! what differs is copied into a private directory of the destination, and moved from there to its place.

use super::super::Error;
use super::super::host_tree::Tree;
use super::archive::{Archive, Tool, refuse_unreadable_name, refused, remove_files};
use crate::remote::{Command, FileKind, Remote};

/// 1 the directory beside, 2 the destination, 3 `-u` to keep newer files. Prints `changed` if something differs. Each file is written
/// under another name and then moved to its place: what is there is complete, and a link that is there is replaced, not followed. A link
/// to a directory counts only if it belongs to root or to this user. Directories get their attributes last, as they may forbid writing.
const MOVE: &str = r#"
cd -- "$1" || exit
dest=$2 newer=$3 me=$(id -u) || exit
export dest newer me
differing=$(find . -exec sh -c '
    for path do
        there=$dest/$path
        if [ -L "$path" ]; then
            [ -L "$there" ] && [ "$(readlink -- "$path")" = "$(readlink -- "$there")" ] && continue
        elif [ -d "$path" ]; then
            [ -d "$there" ] && continue
        else
            [ -f "$there" ] && ! [ -L "$there" ] && cmp -s -- "$path" "$there" && continue
            [ "$newer" ] && [ "$there" -nt "$path" ] && continue
        fi
        echo differs
        exit
    done' sh {} +) || exit
[ "$differing" ] || exit 0
new=$(mktemp -d "$dest/.windlass.XXXXXX") || exit
trap 'rm -rf -- "$new"' 0
trap 'exit 1' 1 2 15
# Not every mv knows -T, without which it moves into the directory that a link leads to.
: >"$new/a" && exact= && mv -f -T "$new/a" "$new/b" 2>/dev/null && exact=-T
rm -f -- "$new/a" "$new/b"
export new exact
find . -exec sh -c '
    fail() { echo "$there $1" >&2; exit 1; }
    for path do
        there=$dest/$path
        if [ -d "$path" ] && ! [ -L "$path" ]; then
            if [ -L "$there" ]; then
                case $(stat -c %u -- "$there") in
                0 | "$me") ;;
                *) fail "is a symbolic link of another user, and a directory in the archive" ;;
                esac
            fi
            [ -d "$there" ] || mkdir -- "$there" || exit
            continue
        fi
        [ -L "$there" ] || ! [ -d "$there" ] || fail "is a directory, and none in the archive"
        if [ -L "$path" ]; then
            [ -L "$there" ] && [ "$(readlink -- "$path")" = "$(readlink -- "$there")" ] && continue
        else
            [ -f "$there" ] && ! [ -L "$there" ] && cmp -s -- "$path" "$there" && continue
            [ "$newer" ] && [ "$there" -nt "$path" ] && continue
        fi
        file=$new/${path##*/}
        cp -a -- "$path" "$file" || exit
        [ "$exact" ] || ! [ -L "$there" ] || rm -f -- "$there" || exit
        mv -f $exact -- "$file" "$there" || exit
    done' sh {} + &&
find . -depth -type d ! -name . -exec sh -c '
    for path do
        there=$dest/$path
        [ -L "$there" ] && continue
        of=$(stat -c "%a %u:%g" -- "$path") || exit
        [ "$me" != 0 ] || chown "${of#* }" -- "$there" || exit
        chmod "${of% *}" -- "$there" && touch -r "$path" -- "$there" || exit
    done' sh {} + && echo changed
"#;

/// Unpacks; whether something changed, and the names in the archive.
pub(super) async fn unpack_with_tool(
    remote: &Remote,
    archive: &Archive,
    tool: Tool,
) -> Result<(bool, Vec<String>), Error> {
    let directory = remote.temporary_directory().await?;
    let done = unpack_in(remote, archive, tool, &directory).await;
    remote.remove(&directory).await?;
    done
}

async fn unpack_in(
    remote: &Remote,
    archive: &Archive,
    tool: Tool,
    directory: &str,
) -> Result<(bool, Vec<String>), Error> {
    let command = if tool == Tool::Unzip { unzip(archive, directory) } else { tar(archive, directory) };
    let output = remote.run(&command).await?;
    // unzip gives 1 for warnings.
    if output.code != 0 && !(tool == Tool::Unzip && output.code == 1) {
        return Err(refused(&format!("unpack {}", archive.path), &output.stderr));
    }
    let tree = Tree::walk(remote, directory, false, &[]).await?;
    refuse_unreadable_name(archive, tree.unreadable_name())?;
    let tree = tree.sorted();
    let slash = |kind| if kind == FileKind::Directory { "/" } else { "" };
    let names = tree.into_iter().map(|(name, stat)| format!("{name}{}", slash(stat.kind))).collect::<Vec<_>>();
    let newer = if archive.keep_newer { "1" } else { "" };
    let moved = remote.run(&Command::program(["sh", "-c", MOVE, "sh", directory, &archive.dest, newer])).await?;
    match moved.code {
        0 => {
            let changed = moved.stdout.starts_with(b"changed");
            if changed && let Err(error) = remote.flush(&archive.dest).await {
                remove_files(remote, archive, &names, directory).await?;
                return Err(error.into());
            }
            Ok((changed, names))
        }
        code => {
            let what = format!("unpack {} to {} (exit code {code})", archive.path, archive.dest);
            Err(refused(&what, &moved.stderr))
        }
    }
}

fn unzip(archive: &Archive, directory: &str) -> Command {
    let mut argv: Vec<String> = ["unzip", "-o", "-q"].map(String::from).to_vec();
    argv.extend_from_slice(&archive.options);
    argv.push(archive.path.clone());
    argv.extend_from_slice(&archive.include);
    if !archive.exclude.is_empty() {
        argv.push("-x".to_owned());
        argv.extend_from_slice(&archive.exclude);
    }
    argv.extend(["-d".to_owned(), directory.to_owned()]);
    Command::program(argv)
}

fn tar(archive: &Archive, directory: &str) -> Command {
    let mut argv: Vec<String> = ["tar", "-x"].map(String::from).to_vec();
    argv.extend(archive.format.option().map(str::to_owned));
    argv.extend_from_slice(&archive.options);
    argv.extend(archive.exclude.iter().map(|name| format!("--exclude={name}")));
    argv.extend(["-f".to_owned(), archive.path.clone(), "-C".to_owned(), directory.to_owned()]);
    argv.extend_from_slice(&archive.include);
    Command::program(argv)
}
