//! The syntax of a host entry: a host name or an address, with ranges, and a port after it.

use std::net::Ipv6Addr;

/// Splits `HOST[:PORT]`. None: it is neither a host name nor an address, so its colons mean something else.
///
/// An IPv6 address takes a port only in brackets, `[fe80::1]:22`. Ranges are left as they are.
pub(super) fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match bracketed(text).or_else(|| suffixed(text)) {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    (is_host_name(host) || is_ipv6(host)).then_some((host, port))
}

/// `[HOST]:PORT`.
fn bracketed(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.strip_prefix('[')?.rsplit_once("]:")?;
    Some((host, decimal(port)?))
}

/// `HOST:PORT`, the colon being the only one outside of ranges.
fn suffixed(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = decimal(port)?;
    let mut inside = false;
    for c in host.chars() {
        match c {
            '[' if !inside => inside = true,
            ']' if inside => inside = false,
            '[' | ']' => return None,
            ':' if !inside => return None,
            _ => {}
        }
    }
    (!inside).then_some((host, port))
}

fn decimal(text: &str) -> Option<u16> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Labels of word characters, dashes and ranges, between dots; this covers IPv4 addresses.
fn is_host_name(text: &str) -> bool {
    match without_ranges(text, is_word_range) {
        Some(plain) => plain.split('.').all(is_label),
        None => false,
    }
}

fn is_label(label: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    label.starts_with(word) && label.chars().all(|c| word(c) || c == '-') && !label.ends_with(['-', '_'])
}

fn is_ipv6(text: &str) -> bool {
    without_ranges(text, |bounds| bounds.chars().all(|c| c.is_ascii_hexdigit() || c == ':'))
        .is_some_and(|plain| plain.parse::<Ipv6Addr>().is_ok())
}

/// `a:f`, `01:20`, each with an optional step.
fn is_word_range(bounds: &str) -> bool {
    let parts: Vec<&str> = bounds.split(':').collect();
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let letter = |s: &str| s.len() == 1 && s.bytes().all(|b| b.is_ascii_alphabetic());
    let ends = |a: &str, b: &str| (digits(a) && digits(b)) || (letter(a) && letter(b));
    match parts[..] {
        [a, b] => ends(a, b),
        [a, b, step] => ends(a, b) && digits(step),
        _ => false,
    }
}

/// The text with each range replaced by a digit; None if a bracket is open or a range is not as it must be.
fn without_ranges(text: &str, valid: impl Fn(&str) -> bool) -> Option<String> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let close = open + rest[open..].find(']')?;
        if !valid(&rest[open + 1..close]) {
            return None;
        }
        plain.push_str(&rest[..open]);
        plain.push('1');
        rest = &rest[close + 1..];
    }
    plain.push_str(rest);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::split_port;

    #[test]
    fn a_port_follows_names_addresses_and_ranges() {
        assert_eq!(split_port("web:2222"), Some(("web", Some(2222))));
        assert_eq!(split_port("10.0.0.7:22"), Some(("10.0.0.7", Some(22))));
        assert_eq!(split_port("web[01:20].lan:22"), Some(("web[01:20].lan", Some(22))));
        assert_eq!(split_port("[2001:db8::1]:22"), Some(("2001:db8::1", Some(22))));
        assert_eq!(split_port("web"), Some(("web", None)));
    }

    #[test]
    fn an_ipv6_address_is_a_host_and_two_names_with_a_colon_are_none() {
        assert_eq!(split_port("2001:db8::[1:9]"), Some(("2001:db8::[1:9]", None)));
        assert_eq!(split_port("::1"), Some(("::1", None)));
        assert_eq!(split_port("web:db"), None);
        assert_eq!(split_port("web:&db:!old"), None);
        assert_eq!(split_port("web[0]:db"), None);
        assert_eq!(split_port("web:"), None);
    }
}
