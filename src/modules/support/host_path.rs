//! Paths of a host, as text: the host is always a POSIX one, whatever the controller is.

/// The last part of a path: `c` of `/a/b/c` and of `/a/b/c/`; empty for `/`.
pub(in crate::modules) fn base_name(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The directory that holds a path: `/a/b` of `/a/b/c`, `/` of `/a`, `.` of `a`.
pub(in crate::modules) fn parent(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((parent, _)) => parent,
        None if path.is_empty() => "/",
        None => ".",
    }
}

/// A path below a directory; an absolute path is returned unchanged.
pub(in crate::modules) fn join_path(directory: &str, path: &str) -> String {
    if path.starts_with('/') || directory.is_empty() {
        return path.to_owned();
    }
    format!("{}/{path}", directory.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart_and_put_together() {
        assert_eq!((base_name("/a/b"), base_name("/a/b/"), base_name("a"), base_name("/")), ("b", "b", "a", ""));
        assert_eq!(
            (parent("/a/b"), parent("/a/b/"), parent("/a"), parent("a"), parent("/")),
            ("/a", "/a", "/", ".", "/")
        );
        assert_eq!(join_path("/a/", "b"), "/a/b");
        assert_eq!(join_path("/", "b"), "/b");
        assert_eq!(join_path("/a", "/b"), "/b");
    }
}
