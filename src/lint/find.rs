//! From the paths of a command line to files, and what each file is.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A path that is not there.
#[derive(Debug, thiserror::Error)]
#[error("cannot find {}", .0.display())]
pub struct MissingPath(pub PathBuf);

/// A file to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintPath {
    pub path: PathBuf,
    /// The directory of its role, if it is part of one.
    pub role: Option<PathBuf>,
    /// Its folder in the role: `tasks`, `defaults`, `templates`; empty outside of roles.
    pub folder: String,
}

/// What makes a directory a role.
const ROLE_FOLDERS: [&str; 6] = ["tasks", "handlers", "defaults", "vars", "meta", "templates"];

/// All files below the paths, each once, sorted; hidden ones are left out.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<LintPath>, MissingPath> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_file() {
            found.push(place(path));
        } else if path.is_dir() {
            walk(path, &mut HashSet::new(), &mut found);
        } else {
            return Err(MissingPath(path.clone()));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup();
    Ok(found)
}

/// `seen` are the directories it has been in: a symbolic link may lead back to one.
fn walk(directory: &Path, seen: &mut HashSet<PathBuf>, found: &mut Vec<LintPath>) {
    if !directory.canonicalize().is_ok_and(|real| seen.insert(real)) {
        return;
    }
    let mut links = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        match path.is_dir() {
            true if path.is_symlink() => links.push(path),
            true => walk(&path, seen, found),
            // Reading a pipe would never end.
            false if path.is_file() => found.push(place(&path)),
            false => {}
        }
    }
    // Last, so that what is here has its own name.
    links.sort();
    links.iter().for_each(|link| walk(link, seen, found));
}

fn place(path: &Path) -> LintPath {
    // As a person would write it, so that one file has one name.
    let path = path.strip_prefix("./").unwrap_or(path);
    let role = path.ancestors().skip(2).find(|directory| is_role(directory) && is_inside(path, directory));
    let folder = role.and_then(|role| path.strip_prefix(role).ok()?.iter().next());
    LintPath {
        path: path.to_owned(),
        folder: folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default(),
        role: role.map(Path::to_owned),
    }
}

/// A directory below `roles/`, or one with at least two folders of a role: playbooks may also be next to `tasks/`.
fn is_role(directory: &Path) -> bool {
    let folders = ROLE_FOLDERS.iter().filter(|folder| directory.join(folder).is_dir()).count();
    let below_roles = directory.parent().and_then(Path::file_name).is_some_and(|name| name == "roles");
    folders > 0 && (below_roles || directory.join("meta").is_dir() || directory.join("tasks/main.yml").is_file())
}

fn is_inside(path: &Path, role: &Path) -> bool {
    let first = path.strip_prefix(role).ok().and_then(|below| below.iter().next());
    first.is_some_and(|first| ROLE_FOLDERS.iter().any(|folder| first == *folder) || first == "files")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_roles_know_their_role_and_hidden_files_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        for file in ["roles/web/tasks/main.yml", "roles/web/files/x/y", "site.yml", ".hidden.yml"] {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = files(&[root.path().to_owned(), root.path().join("site.yml")]).unwrap();
        let reported: Vec<_> = found
            .iter()
            .map(|place| (place.path.strip_prefix(root.path()).unwrap().display().to_string(), place.folder.as_str()))
            .collect();
        let expected = [("roles/web/files/x/y", "files"), ("roles/web/tasks/main.yml", "tasks"), ("site.yml", "")];
        assert_eq!(reported, expected.map(|(path, folder)| (path.to_owned(), folder)));
        assert!(files(&[root.path().join("nowhere")]).is_err());
    }

    #[test]
    fn links_in_circles_and_pipes_do_not_keep_it_for_ever() {
        let root = tempfile::tempdir().unwrap();
        for directory in ["a", "b"] {
            std::fs::create_dir(root.path().join(directory)).unwrap();
            std::fs::write(root.path().join(directory).join("x.yml"), "").unwrap();
            for link in ["one", "two"] {
                std::os::unix::fs::symlink(root.path(), root.path().join(directory).join(link)).unwrap();
            }
        }
        std::os::unix::net::UnixListener::bind(root.path().join("socket.yml")).unwrap();
        let found = files(&[root.path().to_owned()]).unwrap();
        let paths: Vec<_> = found.iter().map(|place| place.path.strip_prefix(root.path()).unwrap()).collect();
        assert_eq!(paths, [Path::new("a/x.yml"), Path::new("b/x.yml")]);
    }
}
