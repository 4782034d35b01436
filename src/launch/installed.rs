//! The playbooks and roles of the package: what is not found where it was named is looked for there.

use std::path::{Path, PathBuf};

/// Where the package puts `playbooks/` and `roles/`.
const SHARE: &str = "/usr/share/windlass";

/// A playbook as named or, if there is none and the name is a bare one, that of the package.
pub fn playbook(named: &Path) -> PathBuf {
    playbook_of(Path::new(SHARE), named)
}

/// A playbook of the package.
pub fn own_playbook(name: &str) -> PathBuf {
    Path::new(SHARE).join("playbooks").join(name)
}

/// The roles of the package, to be looked through last.
pub fn roles() -> Option<PathBuf> {
    Some(Path::new(SHARE).join("roles")).filter(|roles| roles.is_dir())
}

fn playbook_of(share: &Path, named: &Path) -> PathBuf {
    let bare = named.components().count() == 1 && named.is_relative();
    let installed = share.join("playbooks").join(named);
    if bare && !named.exists() && installed.is_file() { installed } else { named.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bare_name_that_is_not_here_is_one_of_the_package() {
        let share = tempfile::tempdir().unwrap();
        std::fs::create_dir(share.path().join("playbooks")).unwrap();
        for name in ["installed.yml", "Cargo.toml"] {
            std::fs::write(share.path().join("playbooks").join(name), "").unwrap();
        }
        let found = |named: &str| playbook_of(share.path(), Path::new(named));
        assert_eq!(found("installed.yml"), share.path().join("playbooks/installed.yml"));
        // Tests run where Cargo.toml is.
        for named in ["Cargo.toml", "none.yml", "./installed.yml", "playbooks/installed.yml", "/installed.yml"] {
            assert_eq!(found(named), Path::new(named));
        }
    }
}
