//! Addresses and networks.

use std::net::IpAddr;

use minijinja::value::ValueKind;
use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, iterate, to_text};
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new(
            "ipaddr",
            "The value if it is an address or network, or the result of a query: address, network, netmask, prefix \
             and so on.",
        )
        .takes("query=''")
        .gives("'10.0.0.5/24' | ipaddr('network')", "10.0.0.0"),
        ipaddr,
    ),
    (
        LanguageItem::new("ipv4", "The same as ipaddr, for IPv4 only.")
            .takes("query=''")
            .gives("['10.0.0.5', '::1', 'x'] | ipv4", "['10.0.0.5']"),
        ipv4,
    ),
    (
        LanguageItem::new("ipv6", "The same as ipaddr, for IPv6 only.")
            .takes("query=''")
            .gives("['10.0.0.5', '::1'] | ipv6", "['::1']"),
        ipv6,
    ),
    (
        LanguageItem::new("ipwrap", "An IPv6 address in brackets, for URLs; anything else unchanged.")
            .gives("'::1' | ipwrap", "[::1]"),
        ipwrap,
    ),
];

/// An address with its prefix length.
#[derive(Clone, Copy)]
struct Net {
    address: IpAddr,
    prefix: u8,
    /// Whether the length was written.
    written: bool,
}

impl Net {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let address: IpAddr = address.parse().ok()?;
        let full = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => return Some(Net { address, prefix: full, written: false }),
            Some(prefix) => prefix.parse().ok().or_else(|| mask_length(prefix))?,
        };
        (prefix <= full).then_some(Net { address, prefix, written: true })
    }

    fn bits(&self) -> (u128, u32) {
        match self.address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        }
    }

    fn with(&self, bits: u128) -> IpAddr {
        match self.address {
            IpAddr::V4(_) => IpAddr::V4(u32::try_from(bits & 0xffff_ffff).unwrap_or(0).into()),
            IpAddr::V6(_) => IpAddr::V6(bits.into()),
        }
    }

    /// The bits that hosts of the net differ in.
    fn host_mask(&self) -> u128 {
        let (_, width) = self.bits();
        let free = width - u32::from(self.prefix);
        if free == 128 { u128::MAX } else { (1u128 << free) - 1 }
    }

    fn network(&self) -> IpAddr {
        self.with(self.bits().0 & !self.host_mask())
    }

    fn last(&self) -> IpAddr {
        self.with(self.bits().0 | self.host_mask())
    }
}

/// `255.255.255.0` as 24.
fn mask_length(mask: &str) -> Option<u8> {
    let bits = u32::from(mask.parse::<std::net::Ipv4Addr>().ok()?);
    let ones = u8::try_from(bits.leading_ones()).expect("there are 32 bits");
    (u32::from(ones) + bits.trailing_zeros() == 32 || bits == 0).then_some(ones)
}

/// `ipaddr(query='')`; the queries are those that roles use most.
pub(super) fn ipaddr(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    each(args, |_| true)
}

pub(super) fn ipv4(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    each(args, |net| net.address.is_ipv4())
}

pub(super) fn ipv6(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    each(args, |net| net.address.is_ipv6())
}

/// Of a list, those that the query has an answer for; of a lone value the answer or False.
fn each(mut args: Args, wanted: fn(&Net) -> bool) -> Result<Value, Error> {
    let (value, query) = (args.req("value")?, args.text_or("query", ""));
    args.no_more_arguments()?;
    let answer = |value: &Value| match Net::parse(&to_text(value)).filter(wanted) {
        Some(net) => ask(&net, &to_text(value), &query),
        None => Ok(None),
    };
    if value.kind() == ValueKind::Seq {
        let answers = iterate(&value)?.iter().map(answer).collect::<Result<Vec<_>, Error>>()?;
        return Ok(Value::from(answers.into_iter().flatten().collect::<Vec<_>>()));
    }
    Ok(answer(&value)?.unwrap_or(Value::from(false)))
}

fn ask(net: &Net, written: &str, query: &str) -> Result<Option<Value>, Error> {
    let show = |address: IpAddr| Some(Value::from(address.to_string()));
    let (_, width) = net.bits();
    Ok(match query {
        "" | "host/prefix" => Some(Value::from(written)),
        "address" | "ip" => show(net.address),
        "network" => show(net.network()),
        "netmask" => {
            show(net.with(if width == 32 { u128::from(u32::MAX) & !net.host_mask() } else { !net.host_mask() }))
        }
        "prefix" => Some(Value::from(net.prefix)),
        "broadcast" => (net.address.is_ipv4() && net.prefix < 31).then(|| Value::from(net.last().to_string())),
        "network/prefix" | "subnet" => Some(Value::from(format!("{}/{}", net.network(), net.prefix))),
        "net" => (net.written && net.network() == net.address).then(|| Value::from(written)),
        "host" => Some(Value::from(format!("{}/{}", net.address, net.prefix))),
        "size" => Some(Value::from(net.host_mask().saturating_add(1))),
        "version" => Some(Value::from(if width == 32 { 4 } else { 6 })),
        "private" => private(&net.address).then(|| Value::from(written)),
        "public" => (!private(&net.address) && !net.address.is_loopback() && !net.address.is_multicast())
            .then(|| Value::from(written)),
        "loopback" => net.address.is_loopback().then(|| Value::from(written)),
        "first_usable" => {
            show(net.with(net.bits().0 & !net.host_mask() | u128::from(u32::from(net.prefix) < width - 1)))
        }
        "last_usable" => {
            show(net.with((net.bits().0 | net.host_mask()) - u128::from(net.address.is_ipv4() && net.prefix < 31)))
        }
        _ => match (query.parse::<i128>(), Net::parse(query)) {
            // The nth address of the net.
            (Ok(nth), _) => {
                let size = net.host_mask().saturating_add(1);
                let nth = if nth < 0 { size.checked_sub(nth.unsigned_abs()) } else { Some(nth.unsigned_abs()) };
                nth.filter(|nth| *nth < size).map(|nth| {
                    let address = net.with((net.bits().0 & !net.host_mask()) + nth);
                    Value::from(format!("{address}/{}", net.prefix))
                })
            }
            // Whether it is in that network.
            (_, Some(outer)) => {
                let same =
                    outer.bits().1 == width && net.bits().0 & !outer.host_mask() == outer.bits().0 & !outer.host_mask();
                (same && net.prefix >= outer.prefix).then(|| Value::from(written))
            }
            _ => return Err(fail(format!("unknown ipaddr query {query:?}"))),
        },
    })
}

fn private(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_private(),
        IpAddr::V6(address) => address.is_unique_local(),
    }
}

/// An IPv6 address in brackets, as URLs need it; other values as they are.
pub(super) fn ipwrap(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("value")?;
    let wrap = |value: &Value| match Net::parse(&to_text(value)) {
        Some(net) if net.address.is_ipv6() && net.written => Value::from(format!("[{}]/{}", net.address, net.prefix)),
        Some(net) if net.address.is_ipv6() => Value::from(format!("[{}]", net.address)),
        _ => value.clone(),
    };
    if value.kind() == ValueKind::Seq {
        return Ok(Value::from(iterate(&value)?.iter().map(wrap).collect::<Vec<_>>()));
    }
    Ok(wrap(&value))
}
