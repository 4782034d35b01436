//! The result of one `stat` of a path, under the names that Ansible's modules return.

use crate::modules::file_mode::octal;
use crate::remote::{FileKind, Stat};
use crate::value::{Value, Vars};

const KINDS: [(&str, FileKind); 7] = [
    ("isdir", FileKind::Directory),
    ("ischr", FileKind::Character),
    ("isblk", FileKind::Block),
    ("isreg", FileKind::File),
    ("isfifo", FileKind::Fifo),
    ("islnk", FileKind::Link),
    ("issock", FileKind::Socket),
];

const BITS: [(&str, u32); 11] = [
    ("wusr", 0o200),
    ("rusr", 0o400),
    ("xusr", 0o100),
    ("wgrp", 0o020),
    ("rgrp", 0o040),
    ("xgrp", 0o010),
    ("woth", 0o002),
    ("roth", 0o004),
    ("xoth", 0o001),
    ("isuid", 0o4000),
    ("isgid", 0o2000),
];

/// `path`, `mode`, `isdir` and so on.
pub(in crate::modules) fn stat_values(path: &str, stat: &Stat) -> Vars {
    let mut fields = Vars::new();
    set_field(&mut fields, "path", path);
    set_field(&mut fields, "mode", octal(stat.mode));
    for (name, kind) in KINDS {
        set_field(&mut fields, name, stat.kind == kind);
    }
    for (name, id) in [("uid", stat.uid), ("gid", stat.gid)] {
        set_field(&mut fields, name, id);
    }
    for (name, number) in [("size", stat.size), ("inode", stat.inode), ("dev", stat.device), ("nlink", stat.links)] {
        set_field(&mut fields, name, number);
    }
    for (name, time) in [("atime", stat.atime), ("mtime", stat.mtime), ("ctime", stat.ctime)] {
        set_field(&mut fields, name, time);
    }
    for (name, bit) in BITS {
        set_field(&mut fields, name, stat.mode & bit != 0);
    }
    // Who has no name has a number only.
    for (name, value) in [("pw_name", &stat.user), ("gr_name", &stat.group)] {
        if !value.is_empty() {
            set_field(&mut fields, name, value.as_str());
        }
    }
    fields
}

/// Adds a field.
pub(in crate::modules) fn set_field(fields: &mut Vars, name: &str, value: impl Into<Value>) {
    fields.insert(name.into(), value.into());
}
