//! What `find` looks for. Knows no hosts.

use fancy_regex::Regex;

use super::super::file_mode::Mode;
use super::super::{Error, name_pattern, python_regex};
use super::{Find, FindTimestamp, Type};
use crate::remote::{FileKind, Stat};
use crate::value::float;

/// The criteria, read and compiled once.
pub(super) struct Criteria {
    kind: Type,
    hidden: bool,
    patterns: Vec<Regex>,
    excludes: Vec<Regex>,
    /// Seconds; negative: at most.
    age: Option<i64>,
    stamp: FindTimestamp,
    now: i64,
    /// Bytes; negative: at most.
    size: Option<i64>,
    mode: Option<u32>,
    exact_mode: bool,
    contains: Option<Regex>,
    whole_file: bool,
}

impl Criteria {
    /// `now`: the host's time, in seconds since 1970.
    pub(super) fn new(find: &Find, now: i64) -> Result<Criteria, Error> {
        let compile = |patterns: &[String], argument: &str| {
            let one = |pattern: &String| match find.use_regex {
                true => python_regex::compile(&format!(r"\A(?:{pattern})"), argument),
                false => name_pattern::compile(pattern, argument),
            };
            patterns.iter().map(one).collect::<Result<Vec<_>, _>>()
        };
        Ok(Criteria {
            kind: find.file_type,
            hidden: find.hidden,
            patterns: compile(&find.patterns, "patterns")?,
            excludes: compile(find.excludes.as_deref().unwrap_or_default(), "excludes")?,
            age: find.age.as_deref().map(|age| amount("age", age, seconds)).transpose()?,
            stamp: find.age_stamp,
            now,
            size: find.size.as_deref().map(|size| amount("size", size, bytes)).transpose()?,
            mode: find.mode.as_deref().map(|mode| Mode::parse_mode(mode).apply_mode(0, false, 0)),
            exact_mode: find.exact_mode,
            contains: find.contains.as_deref().map(|text| python_regex::compile(text, "contains")).transpose()?,
            whole_file: find.read_whole_file,
        })
    }

    /// Whether a path is meant, its content aside.
    pub(super) fn is_met(&self, name: &str, stat: &Stat) -> Result<bool, Error> {
        let is_kind = match self.kind {
            Type::Any => true,
            Type::Directory => stat.kind == FileKind::Directory,
            Type::File => stat.kind == FileKind::File,
            Type::Link => stat.kind == FileKind::Link,
        };
        let is_hidden = name.starts_with('.') && !self.hidden;
        Ok(is_kind
            && !is_hidden
            && self.is_old(stat)
            && self.is_large(stat)
            && self.has_mode(stat)
            && self.is_named(name)?)
    }

    /// Whether a text has what must be in it: at the beginning of a line, or anywhere with `read_whole_file`.
    pub(super) fn is_in(&self, text: &str) -> Result<bool, Error> {
        let Some(regex) = &self.contains else { return Ok(true) };
        if self.whole_file {
            return python_regex::is_match(regex, text);
        }
        for line in text.lines() {
            if python_regex::captures(regex, line)?
                .and_then(|found| found.get(0))
                .is_some_and(|found| found.start() == 0)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_named(&self, name: &str) -> Result<bool, Error> {
        let any = |regexes: &[Regex]| -> Result<bool, Error> {
            for regex in regexes {
                if python_regex::is_match(regex, name)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        Ok((self.patterns.is_empty() || any(&self.patterns)?) && !any(&self.excludes)?)
    }

    fn is_old(&self, stat: &Stat) -> bool {
        let time = match self.stamp {
            FindTimestamp::Atime => stat.atime,
            FindTimestamp::Ctime => stat.ctime,
            FindTimestamp::Mtime => stat.mtime,
        };
        let age = self.now.saturating_sub(float::whole_part(time.floor()));
        self.age.is_none_or(|limit| if limit >= 0 { age >= limit } else { age <= -limit })
    }

    /// Only files have a size that counts.
    fn is_large(&self, stat: &Stat) -> bool {
        let size = i64::try_from(stat.size).unwrap_or(i64::MAX);
        stat.kind != FileKind::File
            || self.size.is_none_or(|limit| if limit >= 0 { size >= limit } else { size <= -limit })
    }

    fn has_mode(&self, stat: &Stat) -> bool {
        self.mode.is_none_or(|mode| if self.exact_mode { stat.mode == mode } else { stat.mode & mode != 0 })
    }
}

fn seconds(unit: &str) -> Option<i64> {
    Some(match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    })
}

fn bytes(unit: &str) -> Option<i64> {
    let powers = ["b", "k", "m", "g", "t"];
    let power = if unit.is_empty() { 0 } else { powers.iter().position(|name| *name == unit)? };
    Some(1 << (10 * power))
}

/// `-2d`: a number and a unit.
fn amount(argument: &str, text: &str, unit: impl Fn(&str) -> Option<i64>) -> Result<i64, Error> {
    let lower = text.to_ascii_lowercase();
    let (number, rest) = lower.split_at(lower.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(lower.len()));
    let amount = number.parse::<i64>().ok().and_then(|number| number.checked_mul(unit(rest)?));
    amount.ok_or_else(|| Error::Failed {
        message: format!("find: {argument} {text:?} is not an amount"),
        hint: Some("write a number and a unit, such as 2d or 10m".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units_and_signs() {
        assert_eq!(amount("age", "-2d", seconds).unwrap(), -172_800);
        assert_eq!(amount("age", "1W", seconds).unwrap(), 604_800);
        assert_eq!(amount("size", "10m", bytes).unwrap(), 10_485_760);
        assert_eq!(amount("size", "7", bytes).unwrap(), 7);
        assert!(amount("size", "7x", bytes).is_err() && amount("size", "m", bytes).is_err());
    }
}
