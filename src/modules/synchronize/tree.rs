//! What is on a side: a file, a link or a directory and all that is in it, by path below it.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use super::filter::Filter;
use crate::modules::host_tree;
use crate::modules::{Error, host_path};
use crate::remote::{Command, FileKind, Links, Probe, Stat};
use crate::value::float;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeEntryKind {
    File,
    Directory,
    /// Its target.
    Link(String),
    /// A device, a socket or a pipe: only in the way.
    Other,
}

/// A path's state, as far as it is kept the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub what: TreeEntryKind,
    /// The lower 12 bits.
    pub mode: u32,
    pub size: u64,
    /// Whole seconds since 1970.
    pub mtime: i64,
    pub uid: u32,
    pub gid: u32,
    /// Names; empty if the number has none.
    pub user: String,
    pub group: String,
}

/// A side: the empty path is the top directory itself. A directory comes before what is in it.
pub(super) type Tree = BTreeMap<String, Item>;

/// A side, and what a filter left out of it.
#[derive(Debug, Default)]
pub(super) struct FilteredTree {
    pub tree: Tree,
    /// Paths that must not be removed; what is in them neither.
    pub excluded: Vec<String>,
}

/// Names of users and groups by number, and the other way round, as the files of the controller have them.
pub(super) struct AccountNames {
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl AccountNames {
    pub(super) fn read_account_names() -> AccountNames {
        let by_number = |file: &str| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let entry = |line: &str| {
                let mut fields = line.split(':');
                let name = fields.next()?.to_owned();
                Some((fields.nth(1)?.parse().ok()?, name))
            };
            text.lines().filter_map(entry).collect()
        };
        AccountNames { users: by_number("/etc/passwd"), groups: by_number("/etc/group") }
    }

    /// The number of a user's name, or of a group's.
    pub(super) fn account_id(&self, name: &str, is_group: bool) -> Option<u32> {
        let names = if is_group { &self.groups } else { &self.users };
        names.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
    }

    fn item(&self, what: TreeEntryKind, meta: &std::fs::Metadata) -> Item {
        let name = |names: &HashMap<u32, String>, number| names.get(&number).cloned().unwrap_or_default();
        Item {
            what,
            mode: meta.permissions().mode() & 0o7777,
            size: meta.len(),
            mtime: meta.mtime(),
            uid: meta.uid(),
            gid: meta.gid(),
            user: name(&self.users, meta.uid()),
            group: name(&self.groups, meta.gid()),
        }
    }
}

/// How a side is read.
pub(super) struct TreeReadOptions<'a> {
    pub filter: &'a Filter,
    /// What comes before each path when the filter looks at it: the name of a directory that is itself sent.
    pub prefix: &'a str,
    /// Whether what links lead to is seen instead of them.
    pub follow: bool,
}

impl TreeReadOptions<'_> {
    fn excludes(&self, path: &str, what: &TreeEntryKind) -> bool {
        !path.is_empty()
            && self.filter.excludes(&host_path::join_path(self.prefix, path), *what == TreeEntryKind::Directory)
    }
}

/// Looks at one path of the controller. None: nothing is there.
pub(super) fn controller_item(path: &Path, names: &AccountNames, follow: bool) -> Result<Option<Item>, Error> {
    let complain =
        |error: &std::io::Error| Error::failed(format!("cannot read {} on the controller: {error}", path.display()));
    let meta = match if follow { std::fs::metadata(path) } else { std::fs::symlink_metadata(path) } {
        Ok(meta) => meta,
        // A broken link is listed as a link.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match std::fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(_) => return Ok(None),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(complain(&error)),
    };
    let kind = meta.file_type();
    let what = if kind.is_symlink() {
        let target = std::fs::read_link(path).map_err(|error| complain(&error))?;
        TreeEntryKind::Link(target.to_string_lossy().into_owned())
    } else if kind.is_dir() {
        TreeEntryKind::Directory
    } else if kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device() {
        TreeEntryKind::Other
    } else {
        TreeEntryKind::File
    };
    Ok(Some(names.item(what, &meta)))
}

/// All of a directory of the controller.
pub(super) fn of_controller(
    top: &Path,
    names: &AccountNames,
    reading: &TreeReadOptions<'_>,
) -> Result<FilteredTree, Error> {
    let mut listed = FilteredTree::default();
    if let Some(item) = controller_item(top, names, true)? {
        listed.tree.insert(String::new(), item);
    }
    let mut waiting = vec![String::new()];
    while let Some(directory) = waiting.pop() {
        let path = top.join(&directory);
        let complain = |error| Error::failed(format!("cannot read {} on the controller: {error}", path.display()));
        for entry in std::fs::read_dir(&path).map_err(complain)? {
            let entry = entry.map_err(complain)?;
            let name = entry.file_name().into_string();
            let name = name.map_err(|_| Error::failed(format!("{} is not UTF-8", entry.path().display())))?;
            let relative = host_path::join_path(&directory, &name);
            let Some(item) = controller_item(&entry.path(), names, reading.follow)? else { continue };
            if reading.excludes(&relative, &item.what) {
                listed.excluded.push(relative);
                continue;
            }
            if item.what == TreeEntryKind::Directory {
                // Links that are followed may lead back to where they are.
                if relative.split('/').count() > MOST_DEPTH {
                    return Err(Error::failed(format!("{} is nested too deeply", entry.path().display())));
                }
                waiting.push(relative.clone());
            }
            listed.tree.insert(relative, item);
        }
    }
    Ok(listed)
}

const MOST_DEPTH: usize = 256;

/// Looks at one path of the host.
pub(super) async fn host_item(probe: &Probe, path: &str, follow: bool) -> Result<Option<Item>, Error> {
    let links = if follow { Links::Follow } else { Links::Keep };
    let stat = match probe.stat(path, links).await? {
        None if follow => probe.stat(path, Links::Keep).await?,
        stat => stat,
    };
    let Some(stat) = stat else { return Ok(None) };
    let target = stat.link_target.clone();
    Ok(Some(item(stat, target)))
}

/// All of a directory of the host. `whole`: what cannot be read is an error.
pub(super) async fn host_tree_entries(
    probe: &Probe,
    top: &str,
    reading: &TreeReadOptions<'_>,
    whole: bool,
) -> Result<FilteredTree, Error> {
    let links = if reading.follow { Links::Follow } else { Links::Keep };
    let found = match whole {
        true => host_tree::Tree::read_host_tree(probe, top, links).await?,
        false => host_tree::Tree::walk(probe, top, reading.follow, &[]).await?,
    };
    // It would count as missing.
    if let Some(name) = found.unreadable_name() {
        return Err(Error::failed(format!("cannot compare with {top} on the host: the name {name:?} is not UTF-8")));
    }
    let found = found.sorted();
    let has_links = found.iter().any(|(_, stat)| stat.kind == FileKind::Link);
    let mut targets = if has_links { link_targets(probe, top).await? } else { HashMap::new() };
    let mut listed = FilteredTree::default();
    if let Some(item) = host_item(probe, top, true).await? {
        listed.tree.insert(String::new(), item);
    }
    for (path, stat) in found {
        check_name(&path, top)?;
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        // What is in a directory that was left out is left out with it.
        let lost = listed.tree.get(parent).is_none_or(|item| item.what != TreeEntryKind::Directory);
        if lost {
            continue;
        }
        let target = targets.remove(&path);
        let item = item(stat, target);
        if reading.excludes(&path, &item.what) {
            listed.excluded.push(path);
            continue;
        }
        listed.tree.insert(path, item);
    }
    Ok(listed)
}

/// The host's answer is untrusted: no path may point outside the directory.
fn check_name(path: &str, top: &str) -> Result<(), Error> {
    if path.split('/').any(|part| matches!(part, "." | "..")) || path.starts_with('/') {
        return Err(Error::failed(format!("the host reports a path {path:?} that points outside {top}")));
    }
    if path.contains('\u{fffd}') {
        return Err(Error::failed(format!("the name {path:?} in {top} is not UTF-8")));
    }
    Ok(())
}

fn item(stat: Stat, target: Option<String>) -> Item {
    let what = match stat.kind {
        FileKind::File => TreeEntryKind::File,
        FileKind::Directory => TreeEntryKind::Directory,
        FileKind::Link => TreeEntryKind::Link(target.unwrap_or_default()),
        _ => TreeEntryKind::Other,
    };
    Item {
        what,
        mode: stat.mode,
        size: stat.size,
        mtime: float::whole_part(stat.mtime),
        uid: stat.uid,
        gid: stat.gid,
        user: stat.user,
        group: stat.group,
    }
}

/// Where all links of a directory lead, with one request.
async fn link_targets(probe: &Probe, top: &str) -> Result<HashMap<String, String>, Error> {
    let each = r#"for l do printf '%s\0' "$l"; readlink -n -- "$l"; printf '\0'; done"#;
    let argv = ["find", ".", "-type", "l", "-exec", "sh", "-c", each, "sh", "{}", "+"];
    let command = Command { directory: Some(top.to_owned()), ..Command::program(argv) };
    let output = probe.query(&command).await?.stdout;
    let texts: Vec<String> =
        output.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned()).collect();
    let pairs = texts.chunks_exact(2);
    Ok(pairs.map(|pair| (pair[0].strip_prefix("./").unwrap_or(&pair[0]).to_owned(), pair[1].clone())).collect())
}

/// SHA-1 of many files of the host, by path, with one request.
pub(super) async fn host_digests(probe: &Probe, top: &str, paths: &[String]) -> Result<HashMap<String, String>, Error> {
    if paths.is_empty() {
        return Ok(HashMap::new());
    }
    let list: String = paths.iter().map(|path| format!("./{path}\0")).collect();
    let command = Command {
        directory: Some(top.to_owned()),
        stdin: Some(list.into_bytes()),
        ..Command::program(["xargs", "-0", "sha1sum", "--"])
    };
    let output = probe.query(&command).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |line: &str| {
        // A backslash before it: the name has special characters, and is queried separately.
        let (digest, path) = line.split_once("  ./")?;
        (digest.len() == 40).then(|| (path.to_owned(), digest.to_owned()))
    };
    let mut digests: HashMap<String, String> = text.lines().filter_map(line).collect();
    for path in paths {
        let odd = path.contains(['\n', '\\']);
        if odd || !digests.contains_key(path) {
            digests.remove(path);
            let digest = probe.digest(&host_path::join_path(top, path), crate::remote::Digest::Sha1).await?;
            digests.extend(digest.map(|digest| (path.clone(), digest)));
        }
    }
    Ok(digests)
}
