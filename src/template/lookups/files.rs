//! Lookups of files on the controller.

use std::path::{Path, PathBuf};

use minijinja::value::ValueKind;
use rand::RngExt as _;

use super::super::conversions::to_text;
use super::super::filters::Hashing;
use super::super::{file as template_file, filters};
use super::{LookupCall, fail};
use crate::template::{Error, Options};
use crate::value::truth;
use crate::value::{Value, read as whole, vault};

fn not_found(call: &LookupCall<'_>, name: &str, folder: &str) -> Error {
    let mut places: Vec<String> = Vec::new();
    for path in call.places(name, folder) {
        let place = path.display().to_string();
        if !places.contains(&place) {
            places.push(place);
        }
    }
    fail(format!("no such file: {name}, looked for as {}", places.join(", ")))
}

fn read_found_file(call: &LookupCall<'_>, name: &str, folder: &str) -> Result<(PathBuf, String), Error> {
    let path = call.find(name, folder).ok_or_else(|| not_found(call, name, folder))?;
    let text = whole::read_text(&path).map_err(|error| fail(format!("cannot read {}: {error}", path.display())))?;
    if !vault::is_vault(&text) {
        return Ok((path, text));
    }
    let plain = call
        .scope
        .keyring
        .decrypt_hidden(&text)
        .map_err(|error| fail(format!("cannot decrypt {}: {error}", path.display())))?;
    let plain = String::from_utf8(plain).map_err(|_| fail(format!("{} is not UTF-8 text", path.display())))?;
    Ok((path, plain))
}

/// The contents of files, without the newline at their end. Options `lstrip` and `rstrip`.
pub(super) fn lookup_file(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let (lstrip, rstrip) = (call.flag("lstrip", false), call.flag("rstrip", true));
    let one = |name: &String| {
        let (_, text) = read_found_file(call, name, "files")?;
        let text = if rstrip { text.trim_end() } else { &text };
        Ok(Value::from(if lstrip { text.trim_start() } else { text }))
    };
    call.texts().iter().map(one).collect()
}

/// The contents of vault files.
pub(super) fn unvault(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    call.texts().iter().map(|name| read_found_file(call, name, "files").map(|(_, text)| Value::from(text))).collect()
}

/// Template files, rendered with the variables at hand and those of the option `template_vars`.
pub(super) fn template(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let mut scope = (**call.scope).clone();
    if let Some(more) = call.option("template_vars") {
        let pairs = super::super::conversions::pairs(more, "template_vars")
            .map_err(|error| fail(crate::template::engine_error_text(&error)))?;
        scope = scope.with_layer(pairs.into_iter().map(|(key, value)| (to_text(&key).into(), value)).collect());
    }
    let mut options = Options {
        trim_blocks: call.flag("trim_blocks", true),
        lstrip_blocks: call.flag("lstrip_blocks", false),
        ..Options::default()
    };
    let marks = (call.option("variable_start_string"), call.option("variable_end_string"));
    if let (Some(start), Some(end)) = marks {
        options.variable = Some((to_text(start), to_text(end)));
    }
    let scope = std::sync::Arc::new(scope);
    let one = |name: &String| {
        let (path, body) = read_found_file(call, name, "templates")?;
        // What looks like data is text, since 2.19; convert_data has no effect there either.
        template_file::render_file(&body, &path, &options, &scope).map(Value::from)
    };
    call.texts().iter().map(one).collect()
}

/// Files that match patterns, sorted.
pub(super) fn fileglob(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    for pattern in call.texts() {
        let places = call.places(&pattern, "files");
        found.extend(
            places
                .iter()
                .map(|place| filters::glob(&place.to_string_lossy()))
                .find(|found| !found.is_empty())
                .unwrap_or_default(),
        );
    }
    Ok(found)
}

/// The option of `first_found` that names a folder beside the directories of the search path. `with_first_found` gives it.
const FOLDER: &str = "_folder";

/// Options of the lookup behind `with_<name>` of a task: `first_found` looks where the task's action has its files.
pub(crate) fn of_task(name: &str, action: &str) -> Vec<(String, Value)> {
    if name.rsplit('.').next() != Some("first_found") {
        return Vec::new();
    }
    let folder = match action {
        _ if action.contains("template") => "templates",
        _ if action.contains("var") => "vars",
        _ => "files",
    };
    vec![(FOLDER.into(), Value::from(folder))]
}

/// The first of several files that is there. Terms: names, or a mapping of `files` and `paths`; `skip` for none at all.
pub(super) fn first_found(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let mut skip = call.flag("skip", false);
    let mut names = Vec::new();
    let option = |name: &str| call.option(name).cloned();
    add(&mut names, option("files"), option("paths"));
    for term in &call.terms {
        match term.kind() {
            ValueKind::Map => {
                let get = |key: &str| term.get_attr(key).ok().filter(|value| !value.is_undefined());
                skip |= get("skip").is_some_and(|skip| skip.is_true());
                add(&mut names, get("files"), get("paths"));
            }
            ValueKind::Seq => names.extend(term.try_iter().into_iter().flatten().map(|name| to_text(&name))),
            _ => names.push(to_text(term)),
        }
    }
    let folder = call.text_option(FOLDER, "");
    let found = names.iter().find_map(|name| call.find(name, &folder));
    match found {
        Some(path) => Ok(vec![Value::from(path.display().to_string())]),
        None if skip => Ok(Vec::new()),
        None => Err(fail(format!("none of these files was found: {}", names.join(", ")))),
    }
}

/// Every file in every path.
fn add(names: &mut Vec<String>, files: Option<Value>, paths: Option<Value>) {
    let split = |value: Option<Value>, at: &[char]| -> Vec<String> {
        match value {
            Some(value) if value.kind() == ValueKind::Seq => {
                value.try_iter().into_iter().flatten().map(|v| to_text(&v)).collect()
            }
            Some(value) => {
                to_text(&value).split(at).map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
            }
            None => Vec::new(),
        }
    };
    let (files, paths) = (split(files, &[',', ';']), split(paths, &[',', ':', ';']));
    if paths.is_empty() {
        names.extend(files);
        return;
    }
    for path in &paths {
        names.extend(files.iter().map(|file| format!("{}/{file}", path.trim_end_matches('/'))));
    }
}

/// A value of a file of columns: `key file=x.csv delimiter=, col=1`.
pub(super) fn csvfile(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    for term in call.texts() {
        let (key, options) = options(&term);
        let get = |name: &str, default: &str| {
            options.iter().find(|(n, _)| n == name).map_or_else(|| call.text_option(name, default), |(_, v)| v.clone())
        };
        let delimiter = match get("delimiter", "TAB").as_str() {
            "TAB" | "\\t" => "\t".to_owned(),
            delimiter => delimiter.to_owned(),
        };
        let number = |name: &str, default: &str| {
            get(name, default).parse::<usize>().map_err(|_| fail(format!("csvfile: {name} must be a number")))
        };
        let (column, key_column) = (number("col", "1")?, number("keycol", "0")?);
        let (_, text) = read_found_file(call, &get("file", "ansible.csv"), "files")?;
        let row = text.lines().map(|line| columns(line, &delimiter)).find(|row| row.get(key_column) == Some(&key));
        match row.and_then(|row| row.get(column).cloned()) {
            Some(value) => found.push(Value::from(value)),
            None => found.extend(call.option("default").cloned()),
        }
    }
    Ok(found)
}

/// The columns of a line; quotes hold delimiters together.
fn columns(line: &str, delimiter: &str) -> Vec<String> {
    let mut columns = vec![String::new()];
    let mut quoted = false;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let last = columns.last_mut().expect("there is always one column");
        if c == '"' && quoted && rest[1..].starts_with('"') {
            last.push('"');
            rest = &rest[2..];
        } else if c == '"' {
            quoted = !quoted;
            rest = &rest[1..];
        } else if !quoted && rest.starts_with(delimiter) {
            columns.push(String::new());
            rest = &rest[delimiter.len()..];
        } else {
            last.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    columns
}

/// A value of an INI or properties file: `key section=x file=y.ini type=ini default=z`.
pub(super) fn ini(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    for term in call.texts() {
        let (key, options) = options(&term);
        let get = |name: &str, default: &str| {
            options.iter().find(|(n, _)| n == name).map_or_else(|| call.text_option(name, default), |(_, v)| v.clone())
        };
        let (_, text) = read_found_file(call, &get("file", "ansible.ini"), "files")?;
        let section = if get("type", "ini") == "properties" { String::new() } else { get("section", "global") };
        if truth::of_exact_word(&get("re", "false")) == Some(true) {
            let pattern =
                filters::regex(&key, true, false).map_err(|error| fail(crate::template::engine_error_text(&error)))?;
            let matches = |name: &str| pattern.find(name).is_ok_and(|found| found.is_some_and(|at| at.start() == 0));
            found.extend(
                ini_pairs(&text, &section).filter(|(name, _)| matches(name)).map(|(_, value)| Value::from(value)),
            );
            continue;
        }
        let value =
            ini_pairs(&text, &section).find(|(name, _)| name.eq_ignore_ascii_case(&key)).map(|(_, value)| value);
        found.push(value.map_or_else(|| Value::from(get("default", "")), Value::from));
    }
    Ok(found)
}

/// The names and values of a section.
fn ini_pairs<'t>(text: &'t str, wanted: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let mut section = "";
    text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])).filter_map(move |line| {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
            return None;
        }
        let (name, value) = line.split_once(['=', ':']).filter(|_| section == wanted)?;
        Some((name.trim(), value.trim()))
    })
}

/// `word name=value name=value`
fn options(term: &str) -> (String, Vec<(String, String)>) {
    let words = shlex::split(term).unwrap_or_else(|| vec![term.to_owned()]);
    let mut words = words.into_iter();
    let first = words.next().unwrap_or_default();
    let options =
        words.filter_map(|word| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
    (first, options.collect())
}

/// A password kept in a file, made when the file is not there: `path length=20 chars=ascii_letters,digits encrypt=sha512_crypt`.
pub(super) fn password(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let one = |term: &String| {
        let (path, options) = options(term);
        let get = |name: &str, default: &str| {
            options.iter().find(|(n, _)| n == name).map_or_else(|| call.text_option(name, default), |(_, v)| v.clone())
        };
        let length: usize = get("length", "20").parse().map_err(|_| fail("password: length must be a number"))?;
        if !(1..=10_000).contains(&length) {
            return Err(fail("password: the length must be 1 to 10000"));
        }
        let letters = letters(&match call.option("chars") {
            Some(list) if list.kind() == ValueKind::Seq => {
                let classes = list.try_iter().into_iter().flatten().map(|class| to_text(&class).replace(',', "\u{0}"));
                classes.collect::<Vec<_>>().join(",")
            }
            _ => get("chars", "ascii_letters,digits,.,:-_").replace(",,", "\u{0},"),
        });
        let path: PathBuf = call.scope.base.join(call.scope.surroundings.expand_home(&path));
        let is_kept = path != Path::new("/dev/null");
        let encrypt = get("encrypt", "");
        let size = if encrypt == "bcrypt" { 22 } else { 16 };
        let salted =
            |salt: Option<String>| (!encrypt.is_empty()).then(|| salt.unwrap_or_else(|| filters::random_salt(size)));
        let mut found = if is_kept { kept_password(&path)? } else { None };
        let (password, salt) = loop {
            if let Some((password, salt)) = found {
                break (password, salted(salt));
            }
            let mut random = rand::rng();
            let password: String = (0..length).map(|_| letters[random.random_range(0..letters.len())]).collect();
            let salt = salted(None);
            let note = salt.as_ref().map_or_else(String::new, |salt| format!(" salt={salt}"));
            let cannot = |error| fail(format!("cannot write {}: {error}", path.display()));
            if !is_kept || keep(&path, &format!("{password}{note}\n")).map_err(cannot)? {
                break (password, salt);
            }
            // Another process was first.
            found = kept_password(&path)?;
            if found.is_none() {
                return Err(cannot(std::io::Error::other("it is a link to a file that does not exist")));
            }
        };
        match salt {
            Some(salt) => {
                filters::crypt(&password, &Hashing { scheme: &encrypt, salt: Some(salt), ..Hashing::default() })
                    .map(Value::from)
                    .map_err(|error| fail(crate::template::engine_error_text(&error)))
            }
            None => Ok(Value::from(password)),
        }
    };
    call.texts().iter().map(one).collect()
}

/// The password and the salt in a file. None: there is no file.
fn kept_password(path: &Path) -> Result<Option<(String, Option<String>)>, Error> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(format!("cannot read {}: {error}", path.display()))),
    };
    let line = text.trim_end_matches('\n');
    let (password, salt) = line.split_once(" salt=").map_or((line, None), |(word, salt)| (word, Some(salt)));
    if password.is_empty() {
        let path = path.display();
        return Err(fail(format!("{path} has no password in it: delete the file to have a new password generated")));
    }
    Ok(Some((password.to_owned(), salt.map(|salt| salt.split(' ').next().unwrap_or("").to_owned()))))
}

/// Creates a file that only its owner can read, whole or not at all. Returns whether this process created it: false if another one
/// was first.
fn keep(path: &Path, text: &str) -> std::io::Result<bool> {
    use std::io::Write as _;
    use std::os::unix::fs::DirBuilderExt as _;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}

/// The letters of class names and single characters.
fn letters(classes: &str) -> Vec<char> {
    let mut letters = Vec::new();
    for class in classes.split(',') {
        match class {
            "ascii_letters" => letters.extend(('a'..='z').chain('A'..='Z')),
            "ascii_lowercase" => letters.extend('a'..='z'),
            "ascii_uppercase" => letters.extend('A'..='Z'),
            "digits" => letters.extend('0'..='9'),
            "hexdigits" => letters.extend(('0'..='9').chain('a'..='f').chain('A'..='F')),
            "punctuation" => letters.extend((33u8..127).map(char::from).filter(char::is_ascii_punctuation)),
            other => letters.extend(other.chars().map(|c| if c == '\0' { ',' } else { c })),
        }
    }
    if letters.is_empty() { vec!['a'] } else { letters }
}
