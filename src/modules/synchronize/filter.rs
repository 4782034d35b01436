//! `--exclude` and `--include` patterns with rsync's meaning: the first that matches decides.

use crate::modules::Error;

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    includes: bool,
    pattern: Vec<char>,
    /// It began with a slash: it is for the whole path.
    anchored: bool,
    /// It ended with a slash.
    directories: bool,
    /// It has a slash in it, or `**`: more than the last part of a path is looked at.
    whole: bool,
}

/// Rules in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter(Vec<Rule>);

impl Filter {
    /// Reads `rsync_opts`; an option of another name is refused.
    pub(super) fn parse_filter(options: &[String]) -> Result<Filter, Error> {
        let mut rules = Vec::new();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let (name, pattern) = match option.split_once('=') {
                Some((name, pattern)) => (name, Some(pattern)),
                None => match option.split_once(' ') {
                    Some((name, pattern)) => (name, Some(pattern.trim())),
                    None => (option.as_str(), None),
                },
            };
            let includes = match name {
                "--include" => true,
                "--exclude" => false,
                other => {
                    return Err(Error::Failed {
                        message: format!(
                            "synchronize: rsync_opts has {other:?}, which windlass does not support: it does not use rsync"
                        ),
                        hint: Some("use only --exclude and --include".to_owned()),
                    });
                }
            };
            let pattern = pattern.map(str::to_owned).or_else(|| options.next().cloned());
            let pattern = pattern.filter(|pattern| !pattern.is_empty());
            let pattern = pattern.ok_or_else(|| Error::failed(format!("synchronize: {name} needs a pattern")))?;
            let pattern = unquoted(&pattern);
            rules.push(Rule::new(includes, pattern));
        }
        Ok(Filter(rules))
    }

    /// Whether a path below the transfer's root is left out. What is in a directory that is left out is, too; that is
    /// the caller's to see.
    pub(super) fn excludes(&self, path: &str, is_directory: bool) -> bool {
        self.0.iter().find(|rule| rule.matches(path, is_directory)).is_some_and(|rule| !rule.includes)
    }
}

/// People quote for a shell, which is not there.
fn unquoted(pattern: &str) -> &str {
    let inside = |quote| pattern.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inside('\'').or_else(|| inside('"')).unwrap_or(pattern)
}

impl Rule {
    fn new(includes: bool, pattern: &str) -> Rule {
        let anchored = pattern.starts_with('/');
        let text = pattern.strip_prefix('/').unwrap_or(pattern);
        let directories = text.ends_with('/') && text.len() > 1;
        let text = if directories { &text[..text.len() - 1] } else { text };
        let whole = text.contains('/') || text.contains("**");
        Rule { includes, pattern: text.chars().collect(), anchored, directories, whole }
    }

    fn matches(&self, path: &str, is_directory: bool) -> bool {
        if self.directories && !is_directory {
            return false;
        }
        // `dir/***` is the directory and all that is in it.
        if let Some(directory) = self.pattern.strip_suffix(&['/', '*', '*', '*'])
            && is_directory
            && self.fits(directory, path)
        {
            return true;
        }
        self.fits(&self.pattern, path)
    }

    fn fits(&self, pattern: &[char], path: &str) -> bool {
        let text: Vec<char> = path.chars().collect();
        if self.anchored {
            return matches(pattern, &text);
        }
        if !self.whole {
            let name = path.rsplit('/').next().unwrap_or(path);
            return matches(pattern, &name.chars().collect::<Vec<_>>());
        }
        // Against the end of the path, from any part on.
        let starts =
            std::iter::once(0).chain(text.iter().enumerate().filter(|(_, c)| **c == '/').map(|(at, _)| at + 1));
        starts.into_iter().any(|start| matches(pattern, &text[start..]))
    }
}

/// `*` and `?` stop at slashes, `**` does not; `[a-z]`, `[!a]` and `\` as in a shell.
fn matches(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['*', '*', rest @ ..] => {
            let rest = match rest {
                ['*', rest @ ..] => rest,
                rest => rest,
            };
            (0..=text.len()).any(|at| matches(rest, &text[at..]))
        }
        ['*', rest @ ..] => {
            let end = text.iter().position(|c| *c == '/').unwrap_or(text.len());
            (0..=end).any(|at| matches(rest, &text[at..]))
        }
        ['?', rest @ ..] => matches!(text, [c, more @ ..] if *c != '/' && matches(rest, more)),
        ['[', ..] => match (class(pattern), text) {
            (Some((contains, rest)), [c, more @ ..]) => *c != '/' && contains(*c) && matches(rest, more),
            (None, [c, more @ ..]) => *c == '[' && matches(&pattern[1..], more),
            (_, []) => false,
        },
        ['\\', escaped, rest @ ..] => matches!(text, [c, more @ ..] if c == escaped && matches(rest, more)),
        [first, rest @ ..] => matches!(text, [c, more @ ..] if c == first && matches(rest, more)),
    }
}

/// A character class at the beginning of a pattern: what is in it, and the rest of the pattern.
fn class(pattern: &[char]) -> Option<(impl Fn(char) -> bool, &[char])> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let start = if negated { 2 } else { 1 };
    let length = pattern.get(start + 1..)?.iter().position(|c| *c == ']')? + 1;
    let (inside, rest) = (pattern[start..start + length].to_vec(), &pattern[start + length + 1..]);
    let contains = move |c: char| {
        let mut at = 0;
        let mut found = false;
        while at < inside.len() {
            match inside[at..] {
                [low, '-', high, ..] => {
                    found |= (low..=high).contains(&c);
                    at += 3;
                }
                _ => {
                    found |= inside[at] == c;
                    at += 1;
                }
            }
        }
        found != negated
    };
    Some((contains, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(options: &[&str]) -> Filter {
        Filter::parse_filter(&options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn patterns_mean_what_they_mean_to_rsync() {
        for (pattern, path, is_directory, excluded) in [
            ("*.log", "a/b.log", false, true),
            ("*.log", "a.log/b", false, false),
            ("/a", "a", false, true),
            ("/a", "x/a", false, false),
            ("a/b", "x/a/b", false, true),
            ("a/b", "xa/b", false, false),
            ("cache/", "x/cache", true, true),
            ("cache/", "x/cache", false, false),
            ("a/**", "a/b/c", false, true),
            ("a/*", "a/b/c", false, false),
            ("a/***", "a", true, true),
            ("a/***", "a/b/c", false, true),
            ("/x/**/y", "x/1/2/y", false, true),
            ("a?c", "abc", false, true),
            ("[a-c]x", "bx", false, true),
            ("[!a-c]x", "bx", false, false),
            ("[", "[", false, true),
            ("a\\*", "a*", false, true),
            ("a\\*", "ab", false, false),
            ("'*.log'", "a.log", false, true),
        ] {
            let found = filter(&[&format!("--exclude={pattern}")]).excludes(path, is_directory);
            assert_eq!(found, excluded, "{pattern} {path}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let filter = filter(&["--include", "keep.log", "--exclude *.log"]);
        assert!(!filter.excludes("keep.log", false) && filter.excludes("other.log", false));
        assert!(!filter.excludes("other", false));
    }

    #[test]
    fn other_options_are_refused_by_name() {
        let error = Filter::parse_filter(&["--bwlimit=5".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("\"--bwlimit\""), "{error}");
        assert!(Filter::parse_filter(&["--exclude".to_owned()]).is_err());
    }
}
