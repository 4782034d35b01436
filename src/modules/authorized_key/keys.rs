//! Lines of an `authorized_keys` file: options, type, key and comment, as sshd reads them.

use crate::modules::Error;

/// What sshd takes for the type of a key.
const TYPES: &[&str] = &[
    "ssh-ed25519",
    "ssh-ed25519-cert-v01@openssh.com",
    "ssh-rsa",
    "ssh-rsa-cert-v01@openssh.com",
    "rsa-sha2-256",
    "rsa-sha2-256-cert-v01@openssh.com",
    "rsa-sha2-512",
    "rsa-sha2-512-cert-v01@openssh.com",
    "ssh-dss",
    "ssh-dss-cert-v01@openssh.com",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp384-cert-v01@openssh.com",
    "ecdsa-sha2-nistp521",
    "ecdsa-sha2-nistp521-cert-v01@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "webauthn-sk-ecdsa-sha2-nistp256@openssh.com",
    "sk-ssh-ed25519@openssh.com",
    "sk-ssh-ed25519-cert-v01@openssh.com",
    "ssh-xmss@openssh.com",
    "ssh-xmss-cert-v01@openssh.com",
];

/// A key and what it may be used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub options: Vec<String>,
    pub kind: String,
    /// Base64: what makes it this key and no other.
    pub blob: String,
    pub comment: String,
}

impl Key {
    /// Reads a line; None if there is no key in it.
    pub(super) fn parse_key_line(line: &str) -> Option<Key> {
        let line = line.trim();
        let (options, rest) = match first_word(line) {
            (word, rest) if TYPES.contains(&word) => ("", format!("{word} {rest}")),
            _ => {
                let (options, rest) = line.split_at(end_of_options(line)?);
                (options, rest.trim_start().to_owned())
            }
        };
        let (kind, rest) = first_word(&rest);
        let (blob, comment) = first_word(rest);
        if line.starts_with('#') || !TYPES.contains(&kind) || blob.is_empty() {
            return None;
        }
        let comment = comment.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Key { options: split_options(options), kind: kind.to_owned(), blob: blob.to_owned(), comment })
    }

    /// The line without its end.
    pub(super) fn key_line(&self) -> String {
        let options = if self.options.is_empty() { String::new() } else { format!("{} ", self.options.join(",")) };
        format!("{options}{} {} {}", self.kind, self.blob, self.comment).trim_end().to_owned()
    }

    /// Whether both say the same; the order of options of different names does not count.
    pub(super) fn is_same(&self, other: &Key) -> bool {
        let by_name = |key: &Key| {
            let mut options = key.options.clone();
            options.sort_by(|a, b| option_name(a).cmp(option_name(b)));
            options
        };
        (&self.kind, &self.blob, &self.comment) == (&other.kind, &other.blob, &other.comment)
            && by_name(self) == by_name(other)
    }
}

fn option_name(option: &str) -> &str {
    option.split_once('=').map_or(option, |(name, _)| name)
}

fn first_word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

/// Where the first blank is that is not between quotes.
fn end_of_options(line: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    line.char_indices().find_map(|(at, c)| {
        match c {
            '"' if !escaped => quoted = !quoted,
            c if c.is_whitespace() && !quoted => return Some(at),
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        None
    })
}

/// Options, split at the commas that are not between quotes.
pub(super) fn split_options(text: &str) -> Vec<String> {
    let mut options = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for c in text.trim().chars() {
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = c == '\\' && !escaped;
        match options.last_mut() {
            Some(last) if c != ',' || quoted => last.push(c),
            _ => options.push(String::new()),
        }
    }
    options.retain(|option| !option.is_empty());
    options
}

/// The keys that a task gives, one a line; blank lines and comments are none.
pub(super) fn given(text: &str, options: Option<&str>, comment: Option<&str>) -> Result<Vec<Key>, Error> {
    for (name, value) in [("key_options", options), ("comment", comment)] {
        // A second line would be another key, without restrictions.
        if value.is_some_and(|value| value.contains(['\n', '\r', '\0'])) {
            return Err(Error::failed(format!("authorized_key: {name} must be one line")));
        }
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let keys = lines.map(|line| {
        let mut key = Key::parse_key_line(&line.replace("\\#", "#")).ok_or_else(|| Error::Failed {
            message: format!("invalid key specified: {line}"),
            hint: Some("a public key has a type and a base64 text: ssh-ed25519 AAAA… comment".to_owned()),
        })?;
        if let Some(options) = options {
            key.options = split_options(options);
        }
        if let Some(comment) = comment {
            key.comment = comment.to_owned();
        }
        Ok(key)
    });
    keys.collect()
}

/// What is to become of a file's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DesiredKeys {
    Present,
    /// And nothing else.
    Exclusive,
    Absent,
}

/// The file's text as it is to be; the same text if it is right already.
pub(super) fn edited(text: &str, keys: &[Key], desired: DesiredKeys) -> String {
    let lines: Vec<(&str, Option<Key>)> =
        text.split_inclusive('\n').map(|line| (line, Key::parse_key_line(line))).collect();
    let of = |key: &Key| {
        let found = lines.iter().filter_map(|(_, found)| found.as_ref()).filter(|found| found.blob == key.blob);
        found.collect::<Vec<_>>()
    };
    // A key that is there as it should be, once, stays where it is.
    let stays = |key: &Key| matches!(of(key)[..], [found] if found.is_same(key));
    let kept = lines.iter().filter(|(_, found)| {
        let known = found.as_ref().and_then(|found| keys.iter().rfind(|key| key.blob == found.blob));
        match (known, desired) {
            (Some(key), DesiredKeys::Present | DesiredKeys::Exclusive) => stays(key),
            (Some(_), DesiredKeys::Absent) | (None, DesiredKeys::Exclusive) => false,
            (None, DesiredKeys::Present | DesiredKeys::Absent) => true,
        }
    });
    let mut edited: String = kept.map(|(line, _)| *line).collect();
    if desired == DesiredKeys::Absent {
        return edited;
    }
    for (at, key) in keys.iter().enumerate() {
        let again = keys[at + 1..].iter().any(|later| later.blob == key.blob);
        if again || stays(key) {
            continue;
        }
        if !edited.is_empty() && !edited.ends_with('\n') {
            edited.push('\n');
        }
        edited.push_str(&key.key_line());
        edited.push('\n');
    }
    edited
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "ssh-ed25519 AAAA a@x";
    const B: &str = "command=\"echo ssh-rsa x, \\\"y\\\"\",no-pty ssh-rsa BBBB b c";

    fn keys(text: &str) -> Vec<Key> {
        given(text, None, None).unwrap()
    }

    #[test]
    fn a_line_has_options_type_key_and_comment() {
        let key = Key::parse_key_line(B).unwrap();
        assert_eq!(key.options, ["command=\"echo ssh-rsa x, \\\"y\\\"\"", "no-pty"]);
        assert_eq!((key.kind.as_str(), key.blob.as_str(), key.comment.as_str()), ("ssh-rsa", "BBBB", "b c"));
        assert_eq!(key.key_line(), B);
        assert_eq!(Key::parse_key_line("ssh-ed25519 AAAA").unwrap().key_line(), "ssh-ed25519 AAAA");
        for none in ["", "# ssh-rsa AAAA", "ssh-rsa", "#ssh-rsa AAAA b", "no-such-type AAAA", "x \"ssh-rsa AAAA"] {
            assert!(Key::parse_key_line(none).is_none(), "{none}");
        }
    }

    #[test]
    fn what_is_given_is_checked_line_by_line() {
        assert_eq!(keys(&format!("# mine\n\n{A}\n  {B}  \n")).len(), 2);
        let all = given(A, Some("no-pty,from=\"1.2.3.4,5.6.7.8\""), Some("new")).unwrap();
        assert_eq!(all[0].key_line(), "no-pty,from=\"1.2.3.4,5.6.7.8\" ssh-ed25519 AAAA new");
        assert_eq!(given("nonsense", None, None).unwrap_err().to_string(), "invalid key specified: nonsense");
        assert!(given(A, Some("no-pty\nssh-rsa EVIL"), None).is_err());
        assert!(given(A, None, Some("x\nssh-rsa EVIL")).is_err());
    }

    #[test]
    fn keys_are_added_changed_and_removed_and_all_else_stays() {
        let text = format!("# comment\n\n{A}\nrubbish");
        assert_eq!(edited(&text, &keys(A), DesiredKeys::Present), text);
        assert_eq!(edited(&text, &keys(B), DesiredKeys::Present), format!("{text}\n{B}\n"));
        let other = "no-pty ssh-ed25519 AAAA a@x";
        assert_eq!(edited(&text, &keys(other), DesiredKeys::Present), format!("# comment\n\nrubbish\n{other}\n"));
        assert_eq!(edited(&text, &keys(other), DesiredKeys::Absent), "# comment\n\nrubbish");
        assert_eq!(edited(&text, &keys(B), DesiredKeys::Absent), text);
        assert_eq!(edited(&text, &keys(&format!("{A}\n{B}")), DesiredKeys::Exclusive), format!("{A}\n{B}\n"));
        assert_eq!(edited("", &keys(&format!("{A}\n{A}")), DesiredKeys::Present), format!("{A}\n"));
    }

    #[test]
    fn a_key_that_is_there_twice_with_other_rights_is_left_once() {
        let text = format!("no-pty {A}\n{A}\n");
        assert_eq!(edited(&text, &keys(A), DesiredKeys::Present), format!("{A}\n"));
        let (one, other) = ("no-pty,from=\"x\" ssh-rsa B", "from=\"x\",no-pty ssh-rsa B");
        assert_eq!(edited(&format!("{one}\n"), &keys(other), DesiredKeys::Present), format!("{one}\n"));
    }
}
