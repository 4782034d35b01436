//! The lines of `/etc/fstab`, and what the kernel says of its mounts.

/// A line as it is to be.
#[derive(Debug, Clone)]
pub(super) struct FstabEntry {
    pub src: Option<String>,
    pub path: String,
    pub fstype: Option<String>,
    pub opts: String,
    pub dump: String,
    pub passno: String,
}

impl FstabEntry {
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let some = [&self.src, &self.fstype].into_iter().flatten();
        some.chain([&self.path, &self.opts, &self.dump, &self.passno]).map(String::as_str)
    }

    /// The same in the characters of a file.
    pub(super) fn adapt(&self, adapt: impl Fn(&str) -> String) -> FstabEntry {
        FstabEntry {
            src: self.src.as_deref().map(&adapt),
            path: adapt(&self.path),
            fstype: self.fstype.as_deref().map(&adapt),
            opts: adapt(&self.opts),
            dump: adapt(&self.dump),
            passno: adapt(&self.passno),
        }
    }

    fn fields(&self) -> [String; 6] {
        let [src, fstype] = [&self.src, &self.fstype].map(|text| text.as_deref().unwrap_or_default());
        [src, &self.path, fstype, &self.opts, &self.dump, &self.passno].map(escaped)
    }

    fn is_of(&self, fields: &[&str]) -> bool {
        // All swap has the mount point none; its source identifies it.
        let other_swap = || {
            NOWHERE.contains(&fields[1])
                && fields[2] == "swap"
                && self.src.as_ref().is_none_or(|src| escaped(src) != fields[0])
        };
        let path = if fields[1].len() > 1 { fields[1].trim_end_matches('/') } else { fields[1] };
        path == escaped(&self.path) && !other_swap()
    }
}

/// The words that replace a mount point for entries without one.
pub(super) const NOWHERE: &[&str] = &["none", "swap"];

/// The text with one line for the entry, in the place of those that it had.
pub(super) fn with_entry(text: &str, entry: &FstabEntry) -> String {
    let wanted = entry.fields();
    let mut edited = String::new();
    let mut is_there = false;
    for line in text.split_inclusive('\n') {
        let own = fields(line).filter(|fields| entry.is_of(fields));
        is_there |= own.is_some();
        match own.is_some_and(|fields| fields != wanted) {
            true => edited.push_str(&format!("{}\n", wanted.join(" "))),
            false => edited.push_str(line),
        }
    }
    if !is_there {
        if !edited.is_empty() && !edited.ends_with('\n') {
            edited.push('\n');
        }
        edited.push_str(&format!("{}\n", wanted.join(" ")));
    }
    edited
}

/// The text without the entry.
pub(super) fn without(text: &str, entry: &FstabEntry) -> String {
    let is_own = |line: &&str| fields(line).is_some_and(|fields| entry.is_of(&fields));
    text.split_inclusive('\n').filter(|line| !is_own(line)).collect()
}

/// The source that the text has for an entry, unchanged.
pub(super) fn source<'a>(text: &'a str, entry: &FstabEntry) -> Option<&'a str> {
    text.lines().filter_map(fields).find(|fields| entry.is_of(fields)).map(|fields| fields[0])
}

/// The fields of a line that has the four to six of an entry.
fn fields(line: &str) -> Option<Vec<&str>> {
    // Only what is before the line, or behind its fields, is a comment: a source may have that sign.
    let mut fields: Vec<&str> = line.split([' ', '\t', '\n', '\r']).filter(|field| !field.is_empty()).collect();
    if fields.first().is_some_and(|first| first.starts_with('#')) {
        return None;
    }
    let comment = fields.iter().skip(4).position(|field| field.starts_with('#'));
    fields.truncate(comment.map_or(fields.len(), |at| at + 4));
    (4..=6).contains(&fields.len()).then_some(fields)
}

/// A field as it is written.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\134").replace(' ', "\\040").replace('&', "\\046")
}

/// What is mounted, by `/proc/self/mountinfo`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    pub path: String,
    /// Of the file system: `8:1`.
    device: String,
    /// The directory of the file system that is seen there.
    root: String,
    source: String,
}

impl Mounted {
    /// In the order in which they were mounted.
    pub(super) fn parse_mounts(text: &str) -> Vec<Mounted> {
        text.lines().filter_map(Mounted::parse).collect()
    }

    fn parse(line: &str) -> Option<Mounted> {
        let (place, what) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(2);
        let (device, root, path) = (place.next()?, place.next()?, place.next()?);
        let source = what.split(' ').nth(1)?;
        Some(Mounted { path: plain(path), device: device.to_owned(), root: plain(root), source: plain(source) })
    }

    /// What may be called its source: the device, or a directory of the host if it is one that is bound there.
    pub(super) fn sources<'a>(&'a self, all: &'a [Mounted]) -> impl Iterator<Item = String> + 'a {
        let same = all.iter().filter(|other| other.device == self.device && other.path != self.path);
        let bound = same.filter_map(|other| {
            let rest = self.root.strip_prefix(other.root.trim_end_matches('/'))?;
            let is_below = rest.is_empty() || rest.starts_with('/');
            is_below.then(|| format!("{}{rest}", other.path.trim_end_matches('/')))
        });
        std::iter::once(self.source.clone()).chain(bound)
    }
}

/// A text with escapes such as `\040` decoded.
fn plain(text: &str) -> String {
    ["\\040 ", "\\011\t", "\\012\n", "\\134\\"].iter().fold(text.to_owned(), |text, pair| {
        let (code, character) = pair.split_at(4);
        text.replace(code, character)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, src: &str, fstype: &str) -> FstabEntry {
        FstabEntry {
            src: Some(src.into()),
            path: path.into(),
            fstype: Some(fstype.into()),
            opts: "defaults".into(),
            dump: "0".into(),
            passno: "0".into(),
        }
    }

    #[test]
    fn one_swap_is_not_another() {
        let text = "/dev/a none swap sw 0 0\n/dev/b none swap sw 0 0";
        assert_eq!(without(text, &entry("none", "/dev/b", "swap")), "/dev/a none swap sw 0 0\n");
        assert_eq!(
            with_entry(text, &entry("none", "/dev/c", "swap")),
            format!("{text}\n/dev/c none swap defaults 0 0\n")
        );
    }

    #[test]
    fn an_entry_is_known_however_its_line_is_written() {
        let text = "sshfs#me@h:/d /mnt/a#b fuse defaults 0 0\n/dev/b\t/data/ xfs noatime # mine\n/dev/c /c\u{a0}d ext4 x 0 0\n";
        assert_eq!(with_entry(text, &entry("/mnt/a#b", "sshfs#me@h:/d", "fuse")), text);
        assert_eq!(without(text, &entry("/mnt/a#b", "x", "fuse")).lines().count(), 2);
        assert_eq!(source(text, &entry("/data", "x", "xfs")), Some("/dev/b"));
        assert_eq!(source(text, &entry("/c\u{a0}d", "x", "ext4")), Some("/dev/c"));
        assert_eq!(source("UUID=a swap swap sw 0 0\n", &entry("swap", "UUID=b", "swap")), None);
    }

    #[test]
    fn a_short_line_is_completed_and_a_comment_is_none() {
        let text = "#/dev/a /a ext4 defaults 0 0\n/dev/a /a ext4 defaults\n";
        let completed = "#/dev/a /a ext4 defaults 0 0\n/dev/a /a ext4 defaults 0 0\n";
        assert_eq!(with_entry(text, &entry("/a", "/dev/a", "ext4")), completed);
        assert_eq!(with_entry(completed, &entry("/a", "/dev/a", "ext4")), completed);
        assert_eq!(source(text, &entry("/a", "x", "ext4")), Some("/dev/a"));
    }

    #[test]
    fn the_source_of_what_is_bound_is_a_directory() {
        let all = Mounted::parse_mounts(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /run rw shared:5 - tmpfs tmpfs rw\n\
             3 1 0:5 /a\\040b/c /mnt rw - tmpfs tmpfs rw\n",
        );
        assert_eq!(all.len(), 3);
        assert_eq!(all[2].sources(&all).collect::<Vec<_>>(), ["tmpfs", "/run/a b/c"]);
        assert_eq!(all[0].sources(&all).collect::<Vec<_>>(), ["/dev/sda1"]);
    }
}
