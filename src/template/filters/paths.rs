//! Paths as text; those that look at files look at the controller's.

use std::path::{Component, Path, PathBuf};

use minijinja::value::Tuple;
use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, iterate, only_text, to_list, to_text};
use super::super::lazy::scope_of;
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("basename", "The last part of a path.")
            .gives("'/etc/etcd/etcd.conf' | basename", "etcd.conf"),
        basename,
    ),
    (
        LanguageItem::new("commonpath", "The longest path that all paths of a list have in common.")
            .gives("['/etc/a/x', '/etc/a/y'] | commonpath", "/etc/a"),
        commonpath,
    ),
    (
        LanguageItem::new("dirname", "A path without its last part.")
            .gives("'/etc/etcd/etcd.conf' | dirname", "/etc/etcd"),
        dirname,
    ),
    (
        LanguageItem::new("expanduser", "A path on the controller with ~ replaced by the home directory.")
            .example("'~/bin' | expanduser"),
        expanduser,
    ),
    (
        LanguageItem::new("expandvars", "A text with $NAME replaced by environment variables of the controller.")
            .example("'$HOME/bin' | expandvars"),
        expandvars,
    ),
    (
        LanguageItem::new("fileglob", "The files on the controller that match a pattern, sorted.")
            .example("'/etc/*.conf' | fileglob"),
        fileglob,
    ),
    (
        LanguageItem::new("normpath", "A path without . and .. in it.")
            .gives("'/etc/./etcd/../hosts' | normpath", "/etc/hosts"),
        normpath,
    ),
    (
        LanguageItem::new(
            "path_join",
            "Joins the parts of a list to a path; an absolute part discards the parts before it.",
        )
        .gives("['/etc', 'etcd', 'etcd.conf'] | path_join", "/etc/etcd/etcd.conf"),
        path_join,
    ),
    (
        LanguageItem::new("realpath", "A path on the controller with symbolic links resolved.")
            .gives("'/' | realpath", "/"),
        realpath,
    ),
    (
        LanguageItem::new("relpath", "A path relative to a directory.")
            .takes("start='.'")
            .gives("'/etc/etcd/etcd.conf' | relpath('/etc')", "etcd/etcd.conf"),
        relpath,
    ),
    (
        LanguageItem::new("splitext", "A path without its extension, and the extension.")
            .gives("'etcd.tar.gz' | splitext", "['etcd.tar', '.gz']"),
        splitext,
    ),
    (
        LanguageItem::new("win_basename", "The last part of a Windows path.")
            .gives("'C:\\etc\\hosts' | win_basename", "hosts"),
        win_basename,
    ),
    (
        LanguageItem::new("win_dirname", "A Windows path without its last part.")
            .gives("'C:\\etc\\hosts' | win_dirname", "C:\\etc"),
        win_dirname,
    ),
    (
        LanguageItem::new("win_splitdrive", "The drive or share of a Windows path, and the rest.")
            .gives("'C:\\etc' | win_splitdrive | first", "C:"),
        |_, mut args| {
            let path = args.text_argument("path")?;
            let (drive, rest) = win_drive(&path);
            Ok(Value::from(Tuple::new(vec![Value::from(drive), Value::from(rest)])))
        },
    ),
];

pub(super) fn basename(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let path = args.text_argument("path")?;
    Ok(Value::from(path.rsplit_once('/').map_or(path.as_str(), |(_, name)| name)))
}

pub(super) fn win_basename(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let path = args.text_argument("path")?;
    Ok(Value::from(win_drive(&path).1.rsplit(WIN_SEPARATORS).next().unwrap_or("")))
}

pub(super) fn win_dirname(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let path = args.text_argument("path")?;
    let (drive, rest) = win_drive(&path);
    let head = &rest[..rest.rfind(WIN_SEPARATORS).map_or(0, |at| at + 1)];
    let trimmed = head.trim_end_matches(WIN_SEPARATORS);
    Ok(Value::from(format!("{drive}{}", if trimmed.is_empty() { head } else { trimmed })))
}

const WIN_SEPARATORS: [char; 2] = ['\\', '/'];

/// `C:`, or `\\server\share`, and what comes after it.
fn win_drive(path: &str) -> (&str, &str) {
    if let Some(server) = path.strip_prefix(r"\\").or_else(|| path.strip_prefix("//")) {
        let mut separators = server.match_indices(WIN_SEPARATORS);
        return match (separators.next(), separators.next()) {
            (Some(_), Some((share, _))) => path.split_at(2 + share),
            _ => (path, ""),
        };
    }
    match path.char_indices().nth(1) {
        Some((at, ':')) => path.split_at(at + 1),
        _ => ("", path),
    }
}

pub(super) fn dirname(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let path = args.text_argument("path")?;
    let head = path.rsplit_once('/').map_or("", |(_, _)| &path[..=path.rfind('/').unwrap_or(0)]);
    let trimmed = head.trim_end_matches('/');
    Ok(Value::from(if trimmed.is_empty() { head } else { trimmed }))
}

/// The path without its extension, and the extension with its dot.
pub(super) fn splitext(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let path = args.text_argument("path")?;
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    let first = path[name..].find(|c| c != '.').map_or(path.len(), |at| name + at);
    let dot = path[first..].rfind('.').map_or(path.len(), |dot| first + dot);
    Ok(Value::from(Tuple::new(vec![Value::from(&path[..dot]), Value::from(&path[dot..])])))
}

/// `~` and `~/x` with the home directory of who runs us.
pub(super) fn expanduser(state: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    Ok(Value::from(scope_of(state).surroundings.expand_home(&args.text_argument("path")?).to_string_lossy()))
}

/// `$NAME` and `${NAME}` from the environment; unknown ones stay.
pub(super) fn expandvars(state: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (string, scope) = (args.text_argument("path")?, scope_of(state));
    let regex = super::regex(r"\$(?:(\w+)|\{([^}]*)\})", false, false)?;
    let replaced = regex.replace_all(&string, |captures: &fancy_regex::Captures<'_>| {
        let name = captures.get(1).or_else(|| captures.get(2)).map_or("", |name| name.as_str());
        scope.surroundings.variables.get(name).cloned().unwrap_or_else(|| captures[0].to_owned())
    });
    Ok(Value::from(replaced.into_owned()))
}

pub(super) fn normpath(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let path = clean(Path::new(&args.text_argument("path")?));
    Ok(Value::from(if path.as_os_str().is_empty() { ".".into() } else { path.display().to_string() }))
}

/// A path without `.`, and without `..` as far as there is something to go up from.
fn clean(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir if path.file_name().is_some_and(|name| name != "..") => {
                path.pop();
            }
            Component::ParentDir if path.has_root() => {}
            part => path.push(part),
        }
        path
    })
}

pub(super) fn realpath(state: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let path = scope_of(state).surroundings.absolute(args.text_argument("path")?);
    Ok(Value::from(std::fs::canonicalize(&path).unwrap_or_else(|_| clean(&path)).display().to_string()))
}

/// `relpath(start='.')`
pub(super) fn relpath(state: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (path, start) = (args.only_text("path")?, args.opt("start").unwrap_or(Value::from(".")));
    if path.is_empty() {
        return Err(fail("relpath of an empty path"));
    }
    let scope = scope_of(state);
    let absolute = |path: &str| clean(&scope.surroundings.absolute(path));
    let (path, start) = (absolute(&path), absolute(&only_text(&start)?));
    let common = path.components().zip(start.components()).take_while(|(a, b)| a == b).count();
    let up = start.components().skip(common).map(|_| Component::ParentDir);
    let relative: PathBuf = up.chain(path.components().skip(common)).collect();
    Ok(Value::from(if relative.as_os_str().is_empty() { ".".into() } else { relative.display().to_string() }))
}

/// `['a', 'b'] | path_join`: an absolute part replaces the path before it.
pub(super) fn path_join(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("paths")?;
    let parts = if value.as_str().is_some() { vec![value] } else { to_list(&value, "path_join")? };
    let parts = parts.iter().map(only_text).collect::<Result<Vec<_>, Error>>()?;
    if parts.is_empty() {
        return Err(fail("path_join of no parts"));
    }
    let joined = parts.into_iter().fold(String::new(), |path, part| match path.as_str() {
        _ if part.starts_with('/') => part,
        "" => part,
        _ if path.ends_with('/') => path + &part,
        _ => format!("{path}/{part}"),
    });
    Ok(Value::from(joined))
}

pub(super) fn commonpath(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let paths: Vec<PathBuf> = iterate(&args.req("paths")?)?.iter().map(|path| PathBuf::from(to_text(path))).collect();
    let first = paths.first().ok_or_else(|| fail("commonpath of no paths"))?;
    let same = |n: &usize| paths.iter().all(|path| path.components().take(*n).eq(first.components().take(*n)));
    let longest = (0..=first.components().count()).rev().find(same).unwrap_or(0);
    Ok(Value::from(first.components().take(longest).collect::<PathBuf>().display().to_string()))
}

/// Files of the controller that match, sorted.
pub(super) fn fileglob(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    Ok(Value::from(glob(&args.text_argument("pattern")?)))
}

/// The files that match a pattern whose last part may have `*`, `?` and `[a-z]`.
pub(crate) fn glob(pattern: &str) -> Vec<Value> {
    let (directory, name) = pattern.rsplit_once('/').unwrap_or((".", pattern));
    let Ok(regex) = super::regex(&glob_regex(name), false, false) else { return Vec::new() };
    let directory = if directory.is_empty() { "/" } else { directory };
    let mut found: Vec<String> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|file| regex.is_match(file).unwrap_or(false) && (!file.starts_with('.') || name.starts_with('.')))
        .map(|file| if pattern.contains('/') { format!("{}/{file}", directory.trim_end_matches('/')) } else { file })
        .collect();
    found.sort();
    found.into_iter().map(Value::from).collect()
}

fn glob_regex(pattern: &str) -> String {
    let mut regex = String::from("^");
    for c in pattern.chars() {
        match c {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' | ']' | '-' => regex.push(c),
            '!' if regex.ends_with('[') => regex.push('^'),
            c if c.is_alphanumeric() => regex.push(c),
            c => {
                regex.push('\\');
                regex.push(c);
            }
        }
    }
    regex + "$"
}
