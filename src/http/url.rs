//! `http` and `https` addresses.

use std::fmt;

/// An address, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub secure: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// Begins with `/`; with the query.
    pub path: String,
    /// From `user:password@`, decoded.
    pub login: Option<(String, String)>,
}

impl Url {
    /// Parses a URL; the error gives the reason and does not show a password.
    pub fn parse(text: &str) -> Result<Url, String> {
        let (secure, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some(_) => return Err("it must start with http:// or https://".to_owned()),
            None => return Err("it must start with http:// or https://".to_owned()),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let (login, server) = match authority.rsplit_once('@') {
            Some((login, server)) => {
                let (user, password) = login.split_once(':').unwrap_or((login, ""));
                (Some((decode(user), decode(password))), server)
            }
            None => (None, authority),
        };
        let (host, port) = match server.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(Some((host, port))) => (host, port.strip_prefix(':')),
            Some(None) => return Err("a bracket is not closed".to_owned()),
            None => server.split_once(':').map_or((server, None), |(host, port)| (host, Some(port))),
        };
        let usual = if secure { 443 } else { 80 };
        let port = match port {
            None | Some("") => usual,
            // Not the text itself: it may be a part of a password.
            Some(port) => port.parse().map_err(|_| "the port must be a number up to 65535".to_owned())?,
        };
        if host.is_empty() {
            return Err("it has no host".to_owned());
        }
        Ok(Url { secure, host: host.to_owned(), port, path: encode_blanks(&path), login })
    }

    /// The address that a `Location` header names, seen from this one.
    pub fn resolve_location(&self, location: &str) -> Result<Url, String> {
        if location.contains("://") {
            return Url::parse(location);
        }
        let path = self.path.split('?').next().unwrap_or_default();
        let path = match location {
            absolute if absolute.starts_with("//") => {
                return Url::parse(&format!("{}:{absolute}", if self.secure { "https" } else { "http" }));
            }
            absolute if absolute.starts_with('/') => absolute.to_owned(),
            query if query.starts_with('?') => format!("{path}{query}"),
            relative => format!("{}/{relative}", path.rsplit_once('/').map_or("", |(directory, _)| directory)),
        };
        Ok(Url { path: encode_blanks(&path), ..self.clone() })
    }

    /// `host:port`, for messages.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    pub fn host_header(&self) -> String {
        let usual = if self.secure { 443 } else { 80 };
        match (self.port == usual, self.host.contains(':')) {
            (true, true) => format!("[{}]", self.host),
            (true, false) => self.host.clone(),
            _ => self.address(),
        }
    }
}

/// Without the login.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", if self.secure { "https" } else { "http" }, self.host_header(), self.path)
    }
}

/// A text without `%20` and the like.
pub(crate) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match (first, after.get(..2).and_then(hex)) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Blanks and non-ASCII characters as they must be sent; what is encoded already stays.
fn encode_blanks(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_graphic() { text.push(char::from(byte)) } else { text.push_str(&format!("%{byte:02X}")) }
    }
    text
}

/// A text for a form or a query: blanks become `+`.
pub(crate) fn encode_form(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(byte)),
            b' ' => encoded.push('+'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let url = Url::parse("https://u:p%40x@[fd00::1]:2379/a b?c#d").unwrap();
        assert_eq!((url.secure, url.host.as_str(), url.port, url.path.as_str()), (true, "fd00::1", 2379, "/a%20b?c"));
        assert_eq!(url.login, Some(("u".into(), "p@x".into())));
        assert_eq!(url.to_string(), "https://[fd00::1]:2379/a%20b?c");
        let plain = Url::parse("HTTP://h?x=1").unwrap();
        assert_eq!((plain.port, plain.path.as_str(), plain.host_header().as_str()), (80, "/?x=1", "h"));
        for wrong in ["h:80/", "ftp://h/", "http:///x", "http://h:99999/", "http://[::1/"] {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_location_is_seen_from_where_it_was_given() {
        let url = Url::parse("https://h:8443/a/b?c").unwrap();
        let joined = |location: &str| url.resolve_location(location).unwrap().to_string();
        assert_eq!(joined("/x"), "https://h:8443/x");
        assert_eq!(joined("x?y"), "https://h:8443/a/x?y");
        assert_eq!(joined("?y"), "https://h:8443/a/b?y");
        assert_eq!(joined("//other/x"), "https://other/x");
        assert_eq!(joined("http://other/"), "http://other/");
    }

    #[test]
    fn forms_are_encoded() {
        assert_eq!(encode_form("a b&c=é"), "a+b%26c%3D%C3%A9");
    }
}
