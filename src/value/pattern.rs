//! Patterns as OpenSSH's files have them: `*`, `?`, lists and negation.

/// Whether `text` matches one pattern. `*` is any run of characters, `?` any one.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to resume when the last `*` must match one character more.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((star_p, star_t)) = star else { return false };
                star = Some((star_p, star_t + 1));
                p = star_p + 1;
                t = star_t + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Whether one of the comma-separated patterns matches, and none of those with `!` before them.
pub(crate) fn matches_list(list: &str, text: &str) -> bool {
    matches_any(list.split(','), text)
}

/// As [`matches_list`], for patterns already split.
pub(crate) fn matches_any<'a>(patterns: impl IntoIterator<Item = &'a str>, text: &str) -> bool {
    let mut found = false;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(negated) if matches(negated, text) => return false,
            Some(_) => {}
            None => found |= matches(pattern, text),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_any_run_or_one_character() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("web?", "web1", true),
            ("web?", "web", false),
            ("web?", "web12", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("a*b*c", "axxbyybzc", true),
            ("a*b*c", "axxbyybz", false),
            ("10.0.0.*", "10.0.0.17", true),
            ("", "", true),
            ("", "a", false),
            ("**", "a", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_negated_pattern_wins_wherever_it_stands() {
        assert!(matches_list("*,!db*", "web1"));
        assert!(!matches_list("*,!db*", "db1"));
        assert!(!matches_list("!db*,*", "db1"));
        assert!(!matches_list("!db*", "web1"), "negation alone matches nothing");
    }
}
