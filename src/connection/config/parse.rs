//! Reads OpenSSH's client configuration files (`ssh_config`): Host, Match, Include and values.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::tokens::{Tokens, home, local_user, tilde};
use crate::value::pattern::{matches, matches_any, matches_list};
use crate::value::{ProcessEnvironment, truth};

const SYSTEM_DIRECTORY: &str = "/etc/ssh";
/// As OpenSSH; a file that includes itself ends here.
const MAX_DEPTH: usize = 16;

/// Values by keyword in lower case. The first value that is put counts, but identity and certificate files add up.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    values: HashMap<String, Vec<String>>,
    /// The values of `~` and variables.
    pub around: Arc<ProcessEnvironment>,
}

impl Options {
    pub(super) fn within(around: &Arc<ProcessEnvironment>) -> Options {
        Options { around: around.clone(), ..Options::default() }
    }

    pub(super) fn set_option(&mut self, keyword: &str, values: Vec<String>) {
        let adds_up = matches!(keyword, "identityfile" | "certificatefile");
        // `ProxyJump` and `ProxyCommand` are one question: the first of either decides.
        let rival = match keyword {
            "proxyjump" => "proxycommand",
            "proxycommand" => "proxyjump",
            _ => "",
        };
        if self.values.contains_key(rival) {
            return;
        }
        match self.values.get_mut(keyword) {
            Some(known) if adds_up => {
                let new = values.into_iter().filter(|value| !known.contains(value)).collect::<Vec<_>>();
                known.extend(new);
            }
            Some(_) => {}
            None => {
                self.values.insert(keyword.to_owned(), values);
            }
        }
    }

    fn first(&self, keyword: &str) -> Option<&str> {
        self.values.get(keyword).and_then(|values| values.first()).map(String::as_str)
    }

    /// The first value of a keyword.
    pub(super) fn take_option(&mut self, keyword: &str) -> Option<String> {
        self.values.remove(keyword).and_then(|values| values.into_iter().next())
    }

    pub(super) fn take_all(&mut self, keyword: &str) -> Vec<String> {
        self.values.remove(keyword).unwrap_or_default()
    }

    pub(super) fn parse_flag(&mut self, keyword: &str) -> Result<Option<bool>, String> {
        self.parsed(keyword, "yes or no", truth::of_ssh)
    }

    /// The value as `read` understands it; an error says what it should be.
    pub(super) fn parsed<T>(
        &mut self,
        keyword: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.take_option(keyword) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| format!("{keyword} {value:?} is not {expected}"))
    }
}

/// `30`, `1m30s`, `2h`: a time as OpenSSH writes it.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (mut total, mut number) = (0u64, None::<u64>);
    for c in text.chars() {
        if let Some(digit) = c.to_digit(10) {
            number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(u64::from(digit))?);
            continue;
        }
        let unit = match c.to_ascii_lowercase() {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        total = total.checked_add(number.take()?.checked_mul(unit)?)?;
    }
    if text.is_empty() {
        return None;
    }
    total.checked_add(number.unwrap_or(0)).map(Duration::from_secs)
}

/// Adds to `options` what the files say about a host: the named file alone, or the person's and then the system's.
pub(super) fn read_files(given: &str, options: &mut Options, file: Option<&Path>) -> Result<(), String> {
    if let Some(none) = file
        && none.as_os_str().eq_ignore_ascii_case("none")
    {
        return Ok(());
    }
    let files = match file {
        Some(file) => vec![(file.to_owned(), Owner::Person)],
        None => vec![
            (home(&options.around).join(".ssh/config"), Owner::Person),
            (PathBuf::from(SYSTEM_DIRECTORY).join("ssh_config"), Owner::System),
        ],
    };
    let host = given.to_owned();
    let mut reading = Reading { given, host, options, last_pass: false, wants_last_pass: false };
    for last_pass in [false, true] {
        if last_pass {
            reading.last_pass = true;
            reading.host = reading.address()?;
            // The address is final, whatever the second reading says.
            let address = reading.host.replace('%', "%%");
            reading.options.set_option("hostname", vec![address]);
        }
        for (path, owner) in &files {
            let must_exist = file.is_some();
            reading.file(path, *owner, must_exist, true, 0)?;
        }
        if !reading.wants_last_pass {
            break;
        }
    }
    Ok(())
}

/// Whose file it is: relative includes are looked for beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Person,
    System,
}

struct Reading<'a> {
    given: &'a str,
    /// What `Host` is about: in the last pass, the address.
    host: String,
    options: &'a mut Options,
    /// `Match final` requires a second reading of the files when the address is known.
    last_pass: bool,
    wants_last_pass: bool,
}

impl Reading<'_> {
    fn file(&mut self, path: &Path, owner: Owner, must_exist: bool, active: bool, depth: usize) -> Result<(), String> {
        let text = match fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => return Ok(()),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        if depth > MAX_DEPTH {
            return Err(format!("{}: Include directives are nested too deeply", path.display()));
        }
        // A block of an included file ends with the file, and cannot wake what its includer put to sleep.
        let (outer, mut active) = (active, active);
        for (index, line) in text.lines().enumerate() {
            let here = |message: String| format!("{}:{}: {message}", path.display(), index + 1);
            let Some((keyword, values)) = directive(line).map_err(here)? else { continue };
            match keyword.as_str() {
                "host" => active = outer && matches_any(values.iter().map(String::as_str), &self.host),
                "match" => active = self.criteria(&values, outer).map_err(here)?,
                "include" => {
                    for pattern in &values {
                        for file in included(pattern, owner, &self.options.around) {
                            self.file(&file, owner, false, active, depth + 1)?;
                        }
                    }
                }
                _ if active && values.is_empty() => return Err(here(format!("{keyword} has no value"))),
                _ if active => self.options.set_option(&keyword, values),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether all criteria of a `Match` line hold. They are looked at in turn, until one does not.
    fn criteria(&mut self, words: &[String], outer: bool) -> Result<bool, String> {
        if words.is_empty() {
            return Err("Match has no criteria".to_owned());
        }
        let mut holds = outer;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (negated, word) = word.strip_prefix('!').map_or((false, word.as_str()), |word| (true, word));
            let (name, attached) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            let name = name.to_lowercase();
            let found = match name.as_str() {
                "all" => true,
                // Names are not made canonical here.
                "canonical" => false,
                "final" => {
                    self.wants_last_pass = true;
                    self.last_pass
                }
                _ => {
                    let value = attached.or_else(|| words.next().map(String::as_str));
                    let value = value.ok_or_else(|| format!("Match {name} has no value"))?;
                    holds && self.criterion(&name, value)?
                }
            };
            holds &= found != negated;
        }
        Ok(holds)
    }

    fn criterion(&self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            // Unlike `Host`, these do not mind case.
            "host" => Ok(matches_list(&value.to_lowercase(), &self.address()?.to_lowercase())),
            "originalhost" => Ok(matches_list(&value.to_lowercase(), &self.given.to_lowercase())),
            "user" => Ok(matches_list(
                value,
                &self.options.first("user").map_or_else(|| local_user(&self.options.around), str::to_owned),
            )),
            "localuser" => Ok(matches_list(value, &local_user(&self.options.around))),
            "exec" => Err("Match exec is not supported; use Match host or Match user".to_owned()),
            _ => Err(format!("Match {name} is not supported")),
        }
    }

    fn address(&self) -> Result<String, String> {
        match self.options.first("hostname") {
            Some(name) => Tokens::host_tokens(self.given, &self.options.around).expand_tokens(name, "HostName"),
            None if self.last_pass => Ok(self.given.to_lowercase()),
            None => Ok(self.given.to_owned()),
        }
    }
}

/// One line: the keyword in lower case, and its values. None: nothing is said.
pub(super) fn directive(line: &str) -> Result<Option<(String, Vec<String>)>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let end = line.find([' ', '\t', '=', '"']).unwrap_or(line.len());
    let (keyword, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let keyword = keyword.to_lowercase();
    // A command is passed to the shell unchanged.
    if keyword == "proxycommand" {
        return Ok(Some((keyword, if rest.is_empty() { vec![] } else { vec![rest.to_owned()] })));
    }
    split_words(rest).map(|values| Some((keyword, values)))
}

/// Splits at blanks; quotes hold words together, and a `#` before a word begins a comment.
fn split_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text.chars().peekable();
    loop {
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        if rest.peek().is_none_or(|c| *c == '#') {
            return Ok(words);
        }
        let mut word = String::new();
        let mut quote = None;
        while let Some(c) = rest.next_if(|c| quote.is_some() || !c.is_whitespace()) {
            let escaped = (c == '\\')
                .then(|| rest.next_if(|next| matches!(next, '\'' | '"' | '\\') || (quote.is_none() && *next == ' ')))
                .flatten();
            match (escaped, quote) {
                (Some(escaped), _) => word.push(escaped),
                (None, Some(open)) if c == open => quote = None,
                (None, None) if matches!(c, '"' | '\'') => quote = Some(c),
                (None, _) => word.push(c),
            }
        }
        if quote.is_some() {
            return Err("a quote is not closed".to_owned());
        }
        words.push(word);
    }
}

/// The files that an `Include` names, in order of their names.
fn included(pattern: &str, owner: Owner, around: &ProcessEnvironment) -> Vec<PathBuf> {
    let pattern = tilde(around, pattern);
    let path = match owner {
        _ if pattern.is_absolute() => pattern,
        Owner::Person => home(around).join(".ssh").join(pattern),
        Owner::System => PathBuf::from(SYSTEM_DIRECTORY).join(pattern),
    };
    let mut found = vec![PathBuf::from("/")];
    for part in path.iter().skip(1) {
        let part = part.to_string_lossy();
        if !part.contains(['*', '?']) {
            found = found.into_iter().map(|base| base.join(&*part)).filter(|path| path.exists()).collect();
            continue;
        }
        let inside = |base: PathBuf| {
            let entries = fs::read_dir(base).into_iter().flatten().flatten();
            let fits = |name: &str| matches(&part, name) && (part.starts_with('.') || !name.starts_with('.'));
            entries.filter(|entry| fits(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect()
        };
        found = found.into_iter().flat_map(|base| -> Vec<PathBuf> { inside(base) }).collect();
        found.sort();
    }
    found
}
