//! All that is in a directory of a host, seen with one request: what `find` and `stat` of coreutils or busybox say.

use std::collections::HashMap;

use crate::modules::Error;
use crate::remote::{Command, FileKind, Links, Probe, Stat};

/// Numbers, then the names of user, group and file. The names of accounts may contain spaces, but no slash. `//` and a newline
/// end a record: no name that `find .` gives has two slashes in a row, so names may hold anything else, newlines too.
const FORMAT: &str = "%f %u %g %s %i %d %h %X %Y %Z %U/%G/%n//";

const END: &[u8] = b"//\n";

/// How often a directory is read before it counts as incomplete: a file that vanished meanwhile is also reported as an error.
const ATTEMPTS: usize = 3;

/// What is below a directory, by path relative to it.
pub(in crate::modules) struct Tree {
    entries: HashMap<String, Stat>,
    /// Why it is not everything.
    incomplete: Option<String>,
    /// A name that is not UTF-8, whose entry is left out.
    unreadable_name: Option<String>,
}

impl Tree {
    /// Reads a directory, which must exist, and all that is in it; an error if something cannot be read. `Links::Follow` sees
    /// what links lead to; `Links::Keep` sees the links.
    pub(in crate::modules) async fn read_host_tree(
        probe: &Probe,
        directory: &str,
        links: Links,
    ) -> Result<Tree, Error> {
        Tree::search(probe, directory, links, &[]).await
    }

    /// As [`Tree::read_host_tree`], with options for `find`, such as `-maxdepth`.
    pub(in crate::modules) async fn search(
        probe: &Probe,
        directory: &str,
        links: Links,
        options: &[String],
    ) -> Result<Tree, Error> {
        let mut tree = Tree::ask(probe, directory, (links, links), options).await?;
        for _ in 1..ATTEMPTS {
            if tree.incomplete.is_some() {
                tree = Tree::ask(probe, directory, (links, links), options).await?;
            }
        }
        match tree.incomplete() {
            None => Ok(tree),
            Some(reason) => Err(Error::failed(format!("cannot read {directory} on the host completely: {reason}"))),
        }
    }

    /// As much of a directory as can be read, with the links themselves, and with what is in directories that they lead to if
    /// asked. [`Tree::incomplete`] says what was left out.
    pub(in crate::modules) async fn walk(
        probe: &Probe,
        directory: &str,
        through_links: bool,
        options: &[String],
    ) -> Result<Tree, Error> {
        let walk = if through_links { Links::Follow } else { Links::Keep };
        Tree::ask(probe, directory, (walk, Links::Keep), options).await
    }

    /// Only these paths of a directory, as far as they are there; links are not followed.
    pub(in crate::modules) async fn of_paths(probe: &Probe, directory: &str, paths: &[String]) -> Result<Tree, Error> {
        /// Paths per command: well below what a host lets through as arguments.
        const MOST: usize = 200;
        let mut found = HashMap::new();
        for paths in paths.chunks(MOST) {
            let named = paths.iter().map(|path| format!("./{path}"));
            let argv = ["stat", "-c", FORMAT, "--"].map(String::from).into_iter().chain(named);
            let command = Command { directory: Some(directory.to_owned()), ..Command::program(argv) };
            found.extend(records(&probe.query(&command).await?.stdout)?.0);
        }
        Ok(Tree { entries: found, incomplete: None, unreadable_name: None })
    }

    async fn ask(
        probe: &Probe,
        directory: &str,
        (walk, look): (Links, Links),
        options: &[String],
    ) -> Result<Tree, Error> {
        let follow = |links: Links| (links == Links::Follow).then(|| "-L".to_owned());
        let mut argv: Vec<String> = vec!["find".into()];
        argv.extend(follow(walk));
        argv.push(".".into());
        argv.extend_from_slice(options);
        argv.extend(["-exec", "stat"].map(String::from));
        argv.extend(follow(look));
        argv.extend(["-c", FORMAT, "--", "{}", "+"].map(String::from));
        let command = Command { directory: Some(directory.to_owned()), ..Command::program(argv) };
        let output = probe.query(&command).await?;
        let first_lines = |text: &str| text.lines().take(3).collect::<Vec<_>>().join("; ");
        let reason = (output.code != 0).then(|| first_lines(String::from_utf8_lossy(&output.stderr).trim()));
        match reason {
            Some(reason) if output.stdout.is_empty() => {
                Err(Error::failed(format!("cannot list {directory}: {reason}")))
            }
            incomplete => {
                let (entries, unreadable_name) = records(&output.stdout)?;
                Ok(Tree { entries, incomplete, unreadable_name })
            }
        }
    }

    /// Why it is not everything: what `find` and `stat` said first, or a name that is not UTF-8.
    pub(in crate::modules) fn incomplete(&self) -> Option<String> {
        let of_name = || self.unreadable_name.as_ref().map(|name| format!("the name {name:?} is not UTF-8"));
        self.incomplete.clone().or_else(of_name)
    }

    /// A name that is not UTF-8, so that its entry is left out; other characters stand for its bytes.
    pub(in crate::modules) fn unreadable_name(&self) -> Option<&str> {
        self.unreadable_name.as_deref()
    }

    /// What is at a path relative to the directory.
    pub(in crate::modules) fn get(&self, path: &str) -> Option<&Stat> {
        self.entries.get(path)
    }

    /// All paths, sorted, so that a directory comes before what is in it.
    pub(in crate::modules) fn sorted(self) -> Vec<(String, Stat)> {
        let mut entries: Vec<_> = self.entries.into_iter().collect();
        entries.sort_by(|(a, _), (b, _)| a.split('/').cmp(b.split('/')));
        entries
    }

    /// Whether a parent of a path is a link, so that the tree cannot know the path.
    pub(in crate::modules) fn is_behind_link(&self, path: &str) -> bool {
        path.match_indices('/').any(|(at, _)| self.get(&path[..at]).is_some_and(|stat| stat.kind == FileKind::Link))
    }
}

/// All records of an answer, and a name that is not UTF-8: its file is not among them. A record that is not
/// understood is an error: a file must never be taken for a missing one.
fn records(stdout: &[u8]) -> Result<(HashMap<String, Stat>, Option<String>), Error> {
    let (mut found, mut unreadable) = (HashMap::new(), None);
    let mut rest = stdout;
    while !rest.is_empty() {
        let end = rest.windows(END.len()).position(|bytes| bytes == END);
        let (bytes, after) = end.map_or((rest, &[][..]), |end| (&rest[..end], &rest[end + END.len()..]));
        rest = after;
        let text = &*String::from_utf8_lossy(bytes);
        let odd = || Error::failed(format!("the host's stat gave an answer that cannot be read: {text:?}"));
        let (name, stat) = record(text).ok_or_else(odd)?;
        if std::str::from_utf8(bytes).is_err() {
            unreadable.get_or_insert(name);
        } else if !name.is_empty() {
            found.insert(name, stat);
        }
    }
    Ok((found, unreadable))
}

/// The path without its leading `./`, and its stat.
fn record(text: &str) -> Option<(String, Stat)> {
    let mut parts = text.splitn(11, ' ');
    let mut next = || parts.next();
    let raw = u32::from_str_radix(next()?, 16).ok()?;
    let (uid, gid) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let (size, inode, device, links) =
        (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
    let (atime, mtime, ctime) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
    let mut names = next()?.splitn(3, '/');
    // As `remote` has it: an account that is not known has a number only.
    let account = |name: &str| if name == "UNKNOWN" { String::new() } else { name.to_owned() };
    let (user, group) = (account(names.next()?), account(names.next()?));
    // Any other beginning is part of an account name with a slash.
    let name = names.next()?;
    let name = if name == "." { "" } else { name.strip_prefix("./")? };
    let (kind, mode) = (kind(raw), raw & 0o7777);
    let stat =
        Stat { kind, mode, uid, gid, user, group, size, inode, device, links, atime, mtime, ctime, link_target: None };
    Some((name.to_owned(), stat))
}

fn kind(raw: u32) -> FileKind {
    match raw & 0o170_000 {
        0o040_000 => FileKind::Directory,
        0o120_000 => FileKind::Link,
        0o010_000 => FileKind::Fifo,
        0o140_000 => FileKind::Socket,
        0o020_000 => FileKind::Character,
        0o060_000 => FileKind::Block,
        _ => FileKind::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_with_odd_names_are_read() {
        let text =
            "81a4 0 5 12 99 2049 1 1 2 3 root/tty/./a b\nc//\n81a4 0 5 1 9 2049 1 1 2 3 a b/domain users/./d/e//\n";
        let (found, unreadable) = records(text.as_bytes()).unwrap();
        assert_eq!(unreadable, None);
        let stat = &found["a b\nc"];
        assert_eq!((stat.kind, stat.mode, stat.size), (FileKind::File, 0o644, 12));
        assert_eq!((stat.group.as_str(), stat.links, stat.mtime), ("tty", 1, 2.0));
        let stat = &found["d/e"];
        assert_eq!((stat.user.as_str(), stat.group.as_str(), stat.size), ("a b", "domain users", 1));
        assert_eq!(record("41ed 0 0 1 1 1 2 1 1 1 root/root/.").unwrap().0, "");
    }

    #[test]
    fn an_answer_that_is_not_understood_is_an_error() {
        assert!(records("81a4 0 5 1 9 2049 1 1 2 3 A/b/A/c/./d//\n".as_bytes()).is_err());
        let (found, unreadable) = records("81a4 0 5 12 99 2049 1 1 2 3 root/tty/./\u{fffd}//\n".as_bytes()).unwrap();
        assert!(found.contains_key("\u{fffd}") && unreadable.is_none());
        let (found, unreadable) = records(b"81a4 0 5 12 99 2049 1 1 2 3 root/tty/./caf\xe9//\n").unwrap();
        assert!(found.is_empty() && unreadable.unwrap() == "caf\u{fffd}");
        assert!(records(b"81a4 0 5 12 99 2049 1 1 2 3 root/tty/./a//\nstat: cannot stat//\n").is_err());
    }
}
