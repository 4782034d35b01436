//! All that is in a directory of a host, seen with one request: what `find` and `stat` of coreutils or busybox say.

use std::collections::HashMap;

use crate::modules::Error;
use crate::remote::{Command, FileKind, Links, Probe, Stat};

/// A record's parts, then the name. `//` and a newline end it: no name that `find .` gives has two slashes in a row,
/// so names may hold anything else, newlines too.
const FORMAT: &str = "%f %u %g %U %G %s %i %d %h %X %Y %Z %n//";

/// What is below a directory, by path relative to it.
pub(in crate::modules) struct Tree {
    entries: HashMap<String, Stat>,
    whole: bool,
}

impl Tree {
    /// Reads a directory, which must exist. `Links::Follow` sees what links lead to (those that lead nowhere stay
    /// links); `Links::Keep` sees the links.
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
        Tree::ask(probe, directory, (links, links), options).await
    }

    /// As [`Tree::search`]; sees the links themselves, but also what is in directories that they lead to if asked.
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
            found.extend(records(&probe.query(&command).await?.stdout));
        }
        Ok(Tree { entries: found, whole: true })
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
        // find also fails when something vanished meanwhile or may not be read; what it did see counts.
        if output.code != 0 && output.stdout.is_empty() {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::failed(format!("cannot list {directory}: {reason}")));
        }
        Ok(Tree { entries: records(&output.stdout), whole: output.code == 0 })
    }

    /// Whether all could be read.
    pub(in crate::modules) fn is_whole(&self) -> bool {
        self.whole
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

fn records(stdout: &[u8]) -> HashMap<String, Stat> {
    let text = String::from_utf8_lossy(stdout);
    text.split_terminator("//\n").filter_map(record).filter(|(name, _)| !name.is_empty()).collect()
}

/// The path without its leading `./`, and its stat.
fn record(text: &str) -> Option<(String, Stat)> {
    let mut parts = text.splitn(13, ' ');
    let mut next = || parts.next();
    let raw = u32::from_str_radix(next()?, 16).ok()?;
    let (uid, gid) = (next()?.parse().ok()?, next()?.parse().ok()?);
    // As `remote` has it: an account that is not known has a number only.
    let account = |name: &str| if name == "UNKNOWN" { String::new() } else { name.to_owned() };
    let (user, group) = (account(next()?), account(next()?));
    let (size, inode, device, links) =
        (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
    let (atime, mtime, ctime) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
    let name = next()?;
    let name = name.strip_prefix("./").unwrap_or(if name == "." { "" } else { name });
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
        let text = "81a4 0 5 root tty 12 99 2049 1 1 2 3 ./a b\nc//";
        let (name, stat) = record(text.strip_suffix("//").unwrap()).unwrap();
        assert_eq!(name, "a b\nc");
        assert_eq!((stat.kind, stat.mode, stat.size), (FileKind::File, 0o644, 12));
        assert_eq!((stat.group.as_str(), stat.links, stat.mtime), ("tty", 1, 2.0));
        assert_eq!(record("41ed 0 0 root root 1 1 1 2 1 1 1 .").unwrap().0, "");
        assert!(record("stat: cannot stat").is_none());
    }
}
