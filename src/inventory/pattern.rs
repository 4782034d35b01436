//! Host patterns: `web:db`, `web,db`, `web:&new`, `!old`, globs, `~regex`, `web[0]`, `web[1:3]`.

use std::sync::Arc;

use indexmap::IndexSet;

use super::{Inventory, LOCALHOST, address};
use crate::value::nearest::did_you_mean;
use crate::value::origin::Diagnostic;

/// The parts of a limit, with the lines of a file in the place of `@FILE`.
///
/// # Errors
/// A file cannot be read.
pub fn read_limit_files(limit: &str) -> Result<Vec<String>, Diagnostic> {
    let mut parts = Vec::new();
    for part in split(limit) {
        match part.strip_prefix('@') {
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .map_err(|error| Diagnostic::new(format!("cannot read the limit file {file:?}: {error}"), None))?;
                parts.extend(text.lines().map(|line| line.trim().to_owned()));
            }
            None => parts.push(part),
        }
    }
    Ok(parts)
}

impl Inventory {
    /// The hosts that a pattern names, in inventory order; an error names a pattern that is no pattern.
    /// A plain name that matches nothing is reported in the second value, to be warned of.
    pub fn select(&self, pattern: &str) -> Result<(Vec<Arc<str>>, Vec<String>), Diagnostic> {
        self.select_all(&[pattern])
    }

    /// As [`Inventory::select`], for the patterns of a list (`hosts: [web, db]`).
    pub fn select_all(&self, patterns: &[impl AsRef<str>]) -> Result<(Vec<Arc<str>>, Vec<String>), Diagnostic> {
        let mut parts: Vec<String> = patterns.iter().flat_map(|pattern| split(pattern.as_ref())).collect();
        // Additions come first, then intersections, then exclusions, in any written order.
        parts.sort_by_key(|part| match part.chars().next() {
            Some('!') => 2,
            Some('&') => 1,
            _ => 0,
        });
        if parts.first().is_none_or(|part| part.starts_with(['!', '&'])) {
            parts.insert(0, super::graph::ALL.into());
        }
        let mut hosts: IndexSet<Arc<str>> = IndexSet::new();
        let mut unmatched = Vec::new();
        for part in &parts {
            if let Some((name, _)) = self.hosts.get_key_value(part.as_str()) {
                hosts.insert(name.clone());
                continue;
            }
            let plain = part.trim_start_matches(['!', '&']);
            let found = self.matching(plain, &mut unmatched)?;
            match part.chars().next() {
                Some('!') => hosts.retain(|host| !found.contains(host)),
                Some('&') => hosts.retain(|host| found.contains(host)),
                _ => hosts.extend(found),
            }
        }
        Ok((hosts.into_iter().collect(), unmatched))
    }

    /// As [`Inventory::select`], for `--limit`: a part `@FILE` is replaced by the patterns in that file, one per line.
    pub fn select_limit(&self, limit: &str) -> Result<(Vec<Arc<str>>, Vec<String>), Diagnostic> {
        let patterns = read_limit_files(limit)?;
        // An empty limit file names no host; it must not come to mean all of them.
        if patterns.iter().all(String::is_empty) {
            return Ok((Vec::new(), Vec::new()));
        }
        self.select_all(&patterns)
    }

    /// The hosts of one part, without `!` or `&`.
    fn matching(&self, part: &str, unmatched: &mut Vec<String>) -> Result<Vec<Arc<str>>, Diagnostic> {
        let (name, subscript) = subscript(part);
        let matches = matcher(name)?;
        let groups: Vec<&Arc<str>> = self.groups.keys().filter(|group| matches(group)).collect();
        let mut found: Vec<Arc<str>> = groups.iter().flat_map(|group| self.hosts_of(group)).collect();
        if groups.is_empty() || name.starts_with('~') || name.contains(['.', '?', '*', '[']) {
            found.extend(self.hosts.keys().filter(|host| matches(host)).cloned());
        }
        if found.is_empty() && LOCALHOST.contains(&name) {
            found.extend(self.localhost(name));
        }
        if found.is_empty() && groups.is_empty() && name != super::graph::ALL {
            unmatched.push(part.to_owned());
        }
        match subscript {
            Some(_) if found.is_empty() => Ok(found),
            Some(Subscript::One(at)) => {
                let index = if at < 0 { at + found.len() as i64 } else { at };
                let host = usize::try_from(index).ok().and_then(|index| found.get(index).cloned());
                let count = found.len();
                let none = || Diagnostic::new(format!("no host matches {part:?}: {name:?} has only {count}"), None);
                host.map(|host| vec![host]).ok_or_else(none)
            }
            Some(Subscript::Range(first, last)) => {
                let end = last.map_or(found.len(), |last| last.saturating_add(1).min(found.len()));
                Ok(found.get(first..end).unwrap_or_default().to_vec())
            }
            None => Ok(found),
        }
    }

    /// The host that a source marks as this machine, whichever of its names was requested, or else the implicit one.
    fn localhost(&self, name: &str) -> Option<Arc<str>> {
        let defined = self.hosts.keys().find(|host| LOCALHOST.contains(&&***host));
        defined.or_else(|| self.implicit.get_key_value(name).map(|(name, _)| name)).cloned()
    }

    /// A hint for a name that matched nothing: the group or host that was probably meant.
    pub fn name_hint(&self, name: &str) -> Option<String> {
        did_you_mean(name, self.groups.keys().chain(self.hosts.keys()).map(|name| &**name))
    }
}

/// The parts of a pattern: at commas if there are any, else at colons, unless the whole is an address.
pub fn split(pattern: &str) -> Vec<String> {
    let parts: Vec<&str> = if pattern.contains(',') {
        pattern.split(',').collect()
    } else if address::split_port(pattern).is_some() {
        vec![pattern]
    } else {
        split_at_colons(pattern)
    };
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).map(String::from).collect()
}

/// Colons and blanks separate, but not those in brackets.
fn split_at_colons(pattern: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, c) in pattern.char_indices() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            c if !inside && (c == ':' || c.is_whitespace()) => {
                parts.push(&pattern[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&pattern[start..]);
    parts
}

enum Subscript {
    /// From the end if negative.
    One(i64),
    /// Both ends included; None: to the last.
    Range(usize, Option<usize>),
}

/// Splits `NAME[1]` or `NAME[1:3]`; brackets with anything else in them belong to a glob.
fn subscript(part: &str) -> (&str, Option<Subscript>) {
    let inside = part.strip_suffix(']').and_then(|part| part.rsplit_once('[')).filter(|(name, _)| !name.is_empty());
    let Some((name, inside)) = inside.filter(|_| !part.starts_with('~')) else {
        return (part, None);
    };
    if let Ok(at) = inside.parse()
        && !inside.starts_with('+')
    {
        return (name, Some(Subscript::One(at)));
    }
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let Some((first, last)) = inside.split_once([':', '-']).filter(|(a, b)| !a.is_empty() && digits(a) && digits(b))
    else {
        return (part, None);
    };
    match (first.parse(), last.parse()) {
        (Ok(first), last) => (name, Some(Subscript::Range(first, last.ok()))),
        _ => (part, None),
    }
}

/// What decides whether a name is meant: a regular expression after `~`, which must match from the start on, or a glob.
fn matcher(pattern: &str) -> Result<impl Fn(&str) -> bool, Diagnostic> {
    let expression = match pattern.strip_prefix('~') {
        Some(expression) => format!(r"\A(?:{expression})"),
        None => glob(pattern),
    };
    let regex = fancy_regex::Regex::new(&expression).map_err(|error| {
        Diagnostic::new(format!("invalid host pattern {pattern:?}: {error}"), None)
            .hint("write a regular expression after ~")
    })?;
    Ok(move |name: &str| regex.is_match(name).unwrap_or(false))
}

/// A glob as a regular expression for the whole name.
pub fn glob(pattern: &str) -> String {
    let mut expression = String::from(r"(?s)\A");
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '[' => match class(rest) {
                Some((class, after)) => {
                    expression.push_str(&class);
                    rest = after;
                }
                None => expression.push_str(r"\["),
            },
            c => expression.push_str(&fancy_regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    expression + r"\z"
}

/// `abc]`, `!a-c]`: a set of characters as a regular expression, and what follows. None: the bracket is not closed.
fn class(text: &str) -> Option<(String, &str)> {
    let (negated, body) = match text.strip_prefix('!') {
        Some(body) => ("^", body),
        None => ("", text),
    };
    // A bracket that comes first is a member.
    let first = body.chars().next()?.len_utf8();
    let end = first + body[first..].find(']')?;
    let mut members = String::new();
    for c in body[..end].chars() {
        if matches!(c, '\\' | '[' | ']' | '^' | '&' | '~') {
            members.push('\\');
        }
        members.push(c);
    }
    Some((format!("[{negated}{members}]"), &body[end + 1..]))
}

#[cfg(test)]
mod tests;
