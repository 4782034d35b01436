//! The names of this server: what the header Host of a request may say, and which page is its own.

use std::net::SocketAddr;
use std::sync::Arc;

use super::tls::ServerTls;

pub(super) struct Hosts {
    /// With ports, as browsers write them.
    known: Vec<String>,
    port: u16,
    /// It listens on all addresses, and nobody said how it is called.
    is_anywhere: bool,
    tls: Option<Arc<ServerTls>>,
}

impl Hosts {
    /// `names`: with a port, or without one for that of this server.
    pub(super) fn new(address: SocketAddr, names: &[String], tls: Option<Arc<ServerTls>>) -> Hosts {
        let port = address.port();
        let own = (!address.ip().is_unspecified()).then(|| with_port(&host_of(address), port, tls.is_some()));
        let local = ["localhost", "127.0.0.1", "[::1]"].map(|name| with_port(name, port, tls.is_some()));
        let named = names.iter().map(|name| match split_port(name) {
            (name, Some(port)) => with_port(name, port, tls.is_some()),
            (name, None) => with_port(name, port, tls.is_some()),
        });
        let known = named.chain(own).flatten().chain(local.into_iter().flatten()).collect();
        let is_anywhere = address.ip().is_unspecified() && names.is_empty();
        Hosts { known, port, is_anywhere, tls }
    }

    pub(super) fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether a request to this host is for this server: by `--host`, its address, or a name of its certificate.
    pub(super) fn is_known(&self, host: &str) -> bool {
        let is_host = |known: &String| known.eq_ignore_ascii_case(host);
        self.known.iter().any(is_host)
            || self.tls.as_ref().is_some_and(|tls| {
                tls.names().iter().flat_map(|name| with_port(name, self.port, true)).any(|known| is_host(&known))
            })
    }

    /// Whether a page has this origin.
    pub(super) fn is_own_origin(&self, origin: &str) -> bool {
        let host = origin.split_once("://").filter(|(scheme, _)| scheme.eq_ignore_ascii_case(self.scheme()));
        host.is_some_and(|(_, host)| self.is_known(host))
    }

    fn scheme(&self) -> &'static str {
        if self.is_secure() { "https" } else { "http" }
    }

    /// An address of this server.
    pub(super) fn url(&self) -> String {
        let of_certificate = self.tls.as_ref().and_then(|tls| tls.names().into_iter().next());
        let of_certificate = of_certificate.filter(|_| self.is_anywhere);
        let host = of_certificate.and_then(|name| with_port(&name, self.port, true).into_iter().next());
        let host = host.or_else(|| self.known.first().cloned()).unwrap_or_default();
        format!("{}://{host}", self.scheme())
    }
}

/// What browsers send: without the usual port.
fn with_port(name: &str, port: u16, secure: bool) -> Vec<String> {
    let numbered = format!("{name}:{port}");
    if port == if secure { 443 } else { 80 } { vec![name.to_owned(), numbered] } else { vec![numbered] }
}

/// An address of IPv6 has brackets.
fn host_of(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

fn split_port(name: &str) -> (&str, Option<u16>) {
    match name.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (name, None),
        },
        _ => (name, None),
    }
}

/// What is wrong with a name for `--host`. None: nothing.
pub fn host_fault(name: &str) -> Option<String> {
    let (host, _) = split_port(name);
    let is_address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_fine = match is_address {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)),
    };
    (!is_fine).then(|| format!("{name:?} is no host name, such as ops-1.example.com or ops-1:443"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str, names: &[&str]) -> Hosts {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Hosts::new(address.parse().unwrap(), &names, None)
    }

    #[test]
    fn a_request_names_an_address_or_a_name_of_this_server() {
        let found = hosts("192.0.2.1:7480", &["ops-1", "windlass.example:8443"]);
        for known in ["192.0.2.1:7480", "OPS-1:7480", "windlass.example:8443", "localhost:7480", "[::1]:7480"] {
            assert!(found.is_known(known), "{known}");
            assert!(found.is_own_origin(&format!("http://{known}")), "{known}");
        }
        for other in ["", "ops-1", "ops-1:80", "windlass.example:7480", "evil.example:7480", "ops-1:7480.evil.example"]
        {
            assert!(!found.is_known(other), "{other}");
        }
        assert!(
            !found.is_own_origin("https://ops-1:7480")
                && !found.is_own_origin("null")
                && !found.is_own_origin("ops-1:7480")
        );
        assert_eq!(found.url(), "http://ops-1:7480");
        assert_eq!(hosts("127.0.0.1:7480", &[]).url(), "http://127.0.0.1:7480");
    }

    #[test]
    fn browsers_leave_the_usual_port_out() {
        let found = hosts("[::]:80", &["ops-1"]);
        for known in ["ops-1", "ops-1:80", "localhost", "127.0.0.1:80"] {
            assert!(found.is_known(known), "{known}");
        }
        assert!(!found.is_known("[::]:80"));
    }

    #[test]
    fn names_are_checked() {
        for fine in ["ops-1", "ops-1.example.com:443", "192.0.2.1", "[2001:db8::1]", "[2001:db8::1]:443"] {
            assert_eq!(host_fault(fine), None, "{fine}");
        }
        for wrong in ["", "https://ops-1", "ops-1/", "ops 1", "*", "a\r\nb", "ops-1:99999", "[x]"] {
            assert!(host_fault(wrong).is_some(), "{wrong:?}");
        }
    }
}
