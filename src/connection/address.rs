//! Addresses of hosts, as a person writes them.

/// `USER@ADDRESS:PORT`; only the address has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SshAddress<'a> {
    pub user: Option<&'a str>,
    /// A name or an IP address, without the brackets of an IPv6 address.
    pub address: &'a str,
    pub port: Option<u16>,
}

impl<'a> SshAddress<'a> {
    /// Of `ADDRESS`, `USER@ADDRESS`, `ADDRESS:PORT` or `[ADDRESS]:PORT`. None: it is none of them. A password has no place in it.
    pub fn parse_address(text: &'a str) -> Option<SshAddress<'a>> {
        let (user, place) = text.rsplit_once('@').map_or((None, text), |(user, place)| (Some(user), place));
        let (address, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, "")) => (address, None),
            Some((address, rest)) => (address, Some(rest.strip_prefix(':')?)),
            // An IPv6 address without brackets has no port.
            None if place.matches(':').count() > 1 => (place, None),
            None => place.split_once(':').map_or((place, None), |(address, port)| (address, Some(port))),
        };
        let port = port.map(str::parse).transpose().ok()?;
        let is_plain = |text: &str, others: &[u8]| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
            !text.is_empty() && !text.starts_with('-') && text.bytes().all(plain)
        };
        let is_valid =
            is_plain(address, b"_.:%-") && port != Some(0) && user.is_none_or(|user| is_plain(user, b"_.%-"));
        is_valid.then_some(SshAddress { user, address, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_user_and_a_port_if_it_names_them() {
        let given = |text| SshAddress::parse_address(text);
        let of = |user, address, port| Some(SshAddress { user, address, port });
        assert_eq!(given("10.0.0.1"), of(None, "10.0.0.1", None));
        assert_eq!(given("root@10.0.0.1:22"), of(Some("root"), "10.0.0.1", Some(22)));
        assert_eq!(given("[2001:db8::1]:22"), of(None, "2001:db8::1", Some(22)));
        assert_eq!(given("[2001:db8::1]"), of(None, "2001:db8::1", None));
        assert_eq!(given("2001:db8::1"), of(None, "2001:db8::1", None));
        for wrong in
            ["", "a b", "root@", "host:port", "host:0", "host:70000", "x: {{ y }}", "a:b@host", "-host", "[::1]x"]
        {
            assert_eq!(given(wrong), None, "{wrong}");
        }
    }
}
