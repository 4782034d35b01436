//! Tools that cannot compare (unzip, busybox's and BSD's tar): the archive is unpacked beside the destination, and
//! what differs is moved there.

use super::super::Error;
use super::super::host_tree::Tree;
use super::archive::{Archive, Tool, refuse_unreadable_name, refused, remove_files};
use crate::remote::{Command, FileKind, Remote};

/// 1 the directory beside, 2 the destination, 3 `-u` to keep newer files. Prints `changed` if something differs.
const MOVE: &str = r#"
cd -- "$1" || exit
differing() {
    find . -exec sh -c '
        dest=$1; shift
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
            echo "$path"
        done' sh "$1" {} +
}
newer=$3
export newer
[ -n "$(differing "$2" | head -n 1)" ] || exit 0
if [ "$3" ]; then cp -a -u -- . "$2"; else cp -a -- . "$2"; fi && echo changed && exit
# What is there in part is removed: a task that only tests whether the file exists (creates) would take it for complete.
find . -type f -exec sh -c '
    dest=$1; shift
    for path do
        there=$dest/$path
        [ -f "$there" ] && ! [ -L "$there" ] || continue
        size=$(($(wc -c <"$there")))
        [ "$size" -lt "$(wc -c <"$path")" ] && head -c "$size" "$path" | cmp -s - "$there" && rm -f -- "$there"
    done' sh "$2" {} +
exit 1
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
    // A directory in it, because `cp -a` gives the destination the attributes of what it copies from.
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
    // `cp -a . dest` would give dest the mode of a private directory.
    let keep_mode =
        r#"chmod "$(stat -L -c %a -- "$2")" -- "$1" && chown "$(stat -L -c %u:%g -- "$2")" -- "$1" 2>/dev/null; "#;
    let script = format!("{keep_mode}{MOVE}");
    let newer = if archive.keep_newer { "1" } else { "" };
    let moved = remote.run(&Command::program(["sh", "-c", &script, "sh", directory, &archive.dest, newer])).await?;
    match moved.code {
        0 => {
            let changed = moved.stdout.starts_with(b"changed");
            if changed && let Err(error) = remote.flush(&archive.dest).await {
                remove_files(remote, archive, &names, directory).await?;
                return Err(error.into());
            }
            Ok((changed, names))
        }
        _ => Err(refused(&format!("unpack {} to {}", archive.path, archive.dest), &moved.stderr)),
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
