//! The home directory of the user who runs windlass, and paths below it. The only place that expands `~/` for files
//! of this machine; a host's own are expanded there (`remote::Probe::expand`).

use std::path::{Path, PathBuf};

/// A path with `~` or `~/` at its start replaced by the home directory. Any other path, and `~name`, is returned unchanged.
pub fn expand_in(home: Option<&Path>, path: &str) -> PathBuf {
    match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_home_directory_is_expanded() {
        let home = Some(Path::new("/home/ops"));
        let expanded = |path| expand_in(home, path).display().to_string();
        let paths = ["~", "~/", "~/a/b", "~//a", "~ops/a", "a/~/b", "/a", ""].map(expanded);
        let wanted = ["/home/ops", "/home/ops/", "/home/ops/a/b", "/home/ops/a", "~ops/a", "a/~/b", "/a", ""];
        assert_eq!(paths, wanted);
        assert_eq!(expand_in(None, "~/a"), Path::new("~/a"));
    }
}
