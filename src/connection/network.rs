//! Networks (`10.0.0.0/24`), and those that this machine is part of.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: an address and how many leading bits of it count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Network {
    address: IpAddr,
    length: u32,
}

impl Network {
    /// `10.0.0.0/24`
    pub(super) fn parse_network(text: &str) -> Option<Network> {
        let (address, length) = text.trim().split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let length = length.parse().ok().filter(|length| *length <= bits(address))?;
        Some(Network { address, length })
    }

    /// As [`Network::parse_network`], or a single address.
    pub(super) fn parse_any(text: &str) -> Option<Network> {
        Network::parse_network(text).or_else(|| Some(Network::of_address(text.trim().parse().ok()?)))
    }

    /// An address alone.
    pub(super) fn of_address(address: IpAddr) -> Network {
        Network { address, length: bits(address) }
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(32 - self.length).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(128 - self.length).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

fn bits(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The networks of this machine's interfaces.
pub(super) fn of_this_machine() -> io::Result<Vec<Network>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: getifaddrs(3) writes one pointer, to a list that is ours until freeifaddrs(3).
    #[expect(unsafe_code, reason = "the comment at the unsafe block gives the reason")]
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut networks = Vec::new();
    let mut next = list;
    while !next.is_null() {
        // SAFETY: an entry of the list, which is not freed yet; its pointers are null or lead to addresses of their family.
        #[expect(unsafe_code, reason = "the comment at the unsafe block gives the reason")]
        let (entry, address, mask) = unsafe {
            let entry = &*next;
            (entry, address_of(entry.ifa_addr), address_of(entry.ifa_netmask))
        };
        if let Some(address) = address {
            let length = match mask {
                Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones(),
                Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones(),
                None => bits(address),
            };
            networks.push(Network { address, length: length.min(bits(address)) });
        }
        next = entry.ifa_next;
    }
    // SAFETY: the list that getifaddrs(3) gave, once.
    #[expect(unsafe_code, reason = "the comment at the unsafe block gives the reason")]
    unsafe {
        libc::freeifaddrs(list);
    }
    Ok(networks)
}

/// # Safety
/// The pointer is null, or points to a socket address of the length of its family.
#[expect(unsafe_code, reason = "the comment at the unsafe block gives the reason")]
unsafe fn address_of(socket: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: what is asked of the caller. The reads do not ask for alignment.
    unsafe {
        if socket.is_null() {
            return None;
        }
        match i32::from(std::ptr::read_unaligned(socket).sa_family) {
            libc::AF_INET => {
                let found = std::ptr::read_unaligned(socket.cast::<libc::sockaddr_in>());
                Some(Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let found = std::ptr::read_unaligned(socket.cast::<libc::sockaddr_in6>());
                Some(Ipv6Addr::from(found.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}
