//! What is in a directory that is to be copied, on the controller or on the host.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::file_write::unreadable;
use super::super::host_tree::Tree;
use super::super::{Error, host_links, host_path, vault_file};
use crate::remote::{FileKind, Links, Probe};

/// One thing to be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopyEntry {
    /// Below the destination.
    pub path: String,
    pub what: CopyEntryKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CopyEntryKind {
    Directory,
    /// A file of the controller.
    Local {
        path: PathBuf,
        size: u64,
        mode: u32,
        is_vault: bool,
    },
    /// A file of the host.
    OnHost {
        path: String,
        size: u64,
        mode: u32,
    },
    Link {
        target: String,
    },
}

/// Walks a directory of the controller, sorted. `prefix`: a directory of the destination to put it all into.
pub(super) fn on_controller(root: &Path, prefix: &str, follow: bool) -> Result<Vec<CopyEntry>, Error> {
    let mut entries = Vec::new();
    if !prefix.is_empty() {
        entries.push(CopyEntry { path: prefix.to_owned(), what: CopyEntryKind::Directory });
    }
    walk(root, prefix, follow, &mut Vec::new(), &mut entries)?;
    Ok(entries)
}

/// As [`on_controller`], of a directory of the host.
pub(super) async fn on_host(probe: &Probe, root: &str, prefix: &str, follow: bool) -> Result<Vec<CopyEntry>, Error> {
    let links = if follow { Links::Follow } else { Links::Keep };
    let tree = Tree::read_host_tree(probe, root, links).await?;
    if follow {
        let through = Tree::walk(probe, root, true, &[]).await?;
        if let Some(reason) = through.incomplete() {
            return Err(Error::failed(format!("cannot read {root} on the host completely: {reason}")));
        }
        let links = through.sorted().into_iter().filter(|(_, stat)| stat.kind == FileKind::Link);
        let links: Vec<String> = links.map(|(relative, _)| host_path::join_path(root, &relative)).collect();
        host_links::check_links(probe, &links).await?;
    }
    let mut entries = Vec::new();
    if !prefix.is_empty() {
        entries.push(CopyEntry { path: prefix.to_owned(), what: CopyEntryKind::Directory });
    }
    for (relative, stat) in tree.sorted() {
        let path = host_path::join_path(root, &relative);
        let what = match stat.kind {
            FileKind::Directory => CopyEntryKind::Directory,
            FileKind::File => CopyEntryKind::OnHost { path, size: stat.size, mode: stat.mode },
            FileKind::Link => {
                let target = probe.stat(&path, Links::Keep).await?.and_then(|stat| stat.link_target);
                CopyEntryKind::Link { target: target.unwrap_or_default() }
            }
            _ => return Err(Error::failed(format!("cannot copy {path}: it is neither a file nor a directory"))),
        };
        entries.push(CopyEntry { path: host_path::join_path(prefix, &relative), what });
    }
    Ok(entries)
}

/// `above`: the directories on the path of the walk, to detect a link back into one of them.
fn walk(
    directory: &Path,
    prefix: &str,
    follow: bool,
    above: &mut Vec<PathBuf>,
    entries: &mut Vec<CopyEntry>,
) -> Result<(), Error> {
    let real = fs::canonicalize(directory).map_err(|error| unreadable(directory, &error))?;
    if above.contains(&real) {
        return Err(Error::failed(format!(
            "{} is a symbolic link to a directory that contains it",
            directory.display()
        )));
    }
    above.push(real);
    let listed = fs::read_dir(directory).and_then(|list| list.collect::<Result<Vec<_>, _>>());
    let mut listed = listed.map_err(|error| unreadable(directory, &error))?;
    listed.sort_by_key(fs::DirEntry::file_name);
    for item in listed {
        let path = item.path();
        let name = item.file_name().into_string();
        let name = name.map_err(|_| Error::failed(format!("the name of {} is not UTF-8", path.display())))?;
        let relative = host_path::join_path(prefix, &name);
        let what = look(&path, follow)?;
        let is_directory = what == CopyEntryKind::Directory;
        entries.push(CopyEntry { path: relative.clone(), what });
        if is_directory {
            walk(&path, &relative, follow, above, entries)?;
        }
    }
    above.pop();
    Ok(())
}

fn look(path: &Path, follow: bool) -> Result<CopyEntryKind, Error> {
    let complain = |error: std::io::Error| unreadable(path, &error);
    let mut meta = fs::symlink_metadata(path).map_err(complain)?;
    if meta.is_symlink() {
        if !follow {
            let target = fs::read_link(path).map_err(complain)?;
            return Ok(CopyEntryKind::Link { target: target.to_string_lossy().into_owned() });
        }
        meta = fs::metadata(path).map_err(complain)?;
    }
    if meta.is_dir() {
        return Ok(CopyEntryKind::Directory);
    }
    if !meta.is_file() {
        return Err(Error::failed(format!("cannot copy {}: it is neither a file nor a directory", path.display())));
    }
    let mode = meta.permissions().mode() & 0o7777;
    Ok(CopyEntryKind::Local { path: path.to_owned(), size: meta.len(), mode, is_vault: vault_file::is_vault(path)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(entries: &[CopyEntry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.path.as_str()).collect()
    }

    #[test]
    fn a_directory_is_walked_in_order_below_its_prefix() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("b/empty")).unwrap();
        fs::write(root.path().join("b/x"), "").unwrap();
        fs::write(root.path().join("a"), "").unwrap();
        let entries = on_controller(root.path(), "", true).unwrap();
        assert_eq!(names(&entries), ["a", "b", "b/empty", "b/x"]);
        let entries = on_controller(root.path(), "top", true).unwrap();
        assert_eq!(names(&entries), ["top", "top/a", "top/b", "top/b/empty", "top/b/x"]);
    }

    #[test]
    fn links_are_followed_or_kept_as_asked() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), "abc").unwrap();
        std::os::unix::fs::symlink("file", root.path().join("link")).unwrap();
        let followed = on_controller(root.path(), "", true).unwrap();
        assert!(matches!(followed[1].what, CopyEntryKind::Local { size: 3, .. }));
        let kept = on_controller(root.path(), "", false).unwrap();
        assert_eq!(kept[1].what, CopyEntryKind::Link { target: "file".into() });
    }

    #[test]
    fn a_link_into_its_own_directory_is_refused() {
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(".", root.path().join("loop")).unwrap();
        let error = on_controller(root.path(), "", true).unwrap_err();
        assert!(error.to_string().ends_with("is a symbolic link to a directory that contains it"), "{error}");
    }
}
