//! What `stat` prints, as [`Stat`]. GNU coreutils and busybox.

use super::{FileKind, Stat};

/// One field a line; a user's or group's name may hold spaces. busybox gives whole seconds for `%.9X`.
pub(super) const FORMAT: &str = "%f\n%u\n%g\n%s\n%i\n%d\n%h\n%.9X\n%.9Y\n%.9Z\n%U\n%G\n";

/// The bits of a regular file in what `%f` prints.
pub(super) const REGULAR: u32 = 0o100_000;

/// Reads the lines of [`FORMAT`]; what follows them is left over.
pub(super) fn parse_stat(text: &[u8]) -> Option<(Stat, &[u8])> {
    let mut rest = text;
    let mut next = || {
        let at = rest.iter().position(|&byte| byte == b'\n')?;
        let field = &rest[..at];
        rest = &rest[at + 1..];
        std::str::from_utf8(field).ok()
    };
    let mode = u32::from_str_radix(next()?, 16).ok()?;
    let mut stat = Stat {
        kind: kind(mode)?,
        mode: mode & 0o7777,
        uid: next()?.parse().ok()?,
        gid: next()?.parse().ok()?,
        size: next()?.parse().ok()?,
        inode: next()?.parse().ok()?,
        device: next()?.parse().ok()?,
        links: next()?.parse().ok()?,
        atime: seconds(next()?)?,
        mtime: seconds(next()?)?,
        ctime: seconds(next()?)?,
        user: String::new(),
        group: String::new(),
        link_target: None,
    };
    // An account that is not known has a number only.
    let name = |text: &str| if text == "UNKNOWN" { String::new() } else { text.to_owned() };
    stat.user = name(next()?);
    stat.group = name(next()?);
    // `stat` ends its output with a line feed.
    Some((stat, rest.strip_prefix(b"\n").unwrap_or(rest)))
}

fn seconds(text: &str) -> Option<f64> {
    text.parse().ok()
}

fn kind(mode: u32) -> Option<FileKind> {
    Some(match mode & 0o170_000 {
        REGULAR => FileKind::File,
        0o040_000 => FileKind::Directory,
        0o120_000 => FileKind::Link,
        0o010_000 => FileKind::Fifo,
        0o140_000 => FileKind::Socket,
        0o020_000 => FileKind::Character,
        0o060_000 => FileKind::Block,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_the_rest_is_left() {
        let text = b"81a4\n0\n12\n5\n77\n2049\n1\n1.5\n1795170069.519311145\n3\nroot\ndomain users\n\nrest";
        let (stat, rest) = parse_stat(text).unwrap();
        assert_eq!((stat.kind, stat.mode, stat.gid), (FileKind::File, 0o644, 12));
        assert_eq!((stat.user.as_str(), stat.group.as_str(), stat.atime), ("root", "domain users", 1.5));
        assert_eq!(rest, b"rest");
    }

    #[test]
    fn half_an_answer_is_none() {
        assert!(parse_stat(b"81a4\n0\n").is_none());
        assert!(parse_stat(b"").is_none());
    }
}
