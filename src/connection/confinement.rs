//! Where a run for a foreign resource may connect to. Names are resolved first, the addresses are checked, and the
//! connection goes to an address that was checked, so that a name server cannot answer differently in between.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use tokio::sync::Semaphore;

use super::network::{self, Network};

/// The addresses that a run may connect to from this machine. Such a run logs in with what the resource gives alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Confinement {
    /// None: all except the protected ones.
    networks: Option<Vec<Network>>,
}

/// What hosts of clouds learn their credentials from, besides the link-local 169.254.169.254.
const METADATA: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// How many names are looked up at once. A name server that does not answer keeps a thread of this process, also when nobody waits for
/// the answer any more.
static LOOKUPS: Semaphore = Semaphore::const_new(32);

impl Confinement {
    /// `networks` are addresses and networks; None: all addresses except the protected ones.
    ///
    /// # Errors
    /// The first that is neither.
    pub fn new(networks: Option<&[String]>) -> Result<Confinement, String> {
        let parsed = |text: &String| Network::parse_any(text).ok_or_else(|| text.clone());
        let networks = networks.map(|networks| networks.iter().map(parsed).collect()).transpose()?;
        Ok(Confinement { networks })
    }

    /// The addresses of a name, every one of which may be connected to.
    ///
    /// # Errors
    /// Why not, in one line.
    pub async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let found = match name.parse() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => {
                let name = name.to_owned();
                let found = look_up(&LOOKUPS, move || Ok((name, port).to_socket_addrs()?.collect())).await;
                found.map_err(|error| format!("cannot resolve the name {host:?}: {error}"))?
            }
        };
        for address in &found {
            if let Some(why) = self.refusal(address.ip()) {
                let address = address.ip();
                let named = if name == address.to_string() { name.to_owned() } else { format!("{name} ({address})") };
                return Err(format!("a resource from an API must not connect to {named}: {why}"));
            }
        }
        match found.is_empty() {
            true => Err(format!("the name {host:?} has no address")),
            false => Ok(found),
        }
    }

    /// Why an address may not be connected to; None: it may.
    fn refusal(&self, address: IpAddr) -> Option<String> {
        let address = plain(address);
        if let Some(networks) = &self.networks {
            let inside = networks.iter().any(|network| network.contains(address));
            return (!inside).then(|| "the setting resource_networks does not list it".to_owned());
        }
        let what = match address {
            address if METADATA.contains(&address) => "it is a metadata service",
            address if address.is_loopback() => "it is a loopback address",
            address if address.is_unspecified() || address.is_multicast() => "it is not the address of a host",
            IpAddr::V4(v4) if v4.is_link_local() => "it is a link-local address",
            IpAddr::V4(v4) if v4.is_broadcast() || v4.octets()[0] == 0 => "it is not the address of a host",
            IpAddr::V6(v6) if v6.is_unicast_link_local() || v6.segments()[0] & 0xffc0 == 0xfec0 => {
                "it is a link-local or site-local address"
            }
            IpAddr::V6(v6) if v6.segments()[..2] == [0x2001, 0] => "it is an address of a Teredo tunnel",
            address => match network::of_this_machine() {
                Ok(own) if own.iter().any(|network| network.contains(address)) => {
                    "it is in a network of the machine that windlass runs on"
                }
                Ok(_) => return None,
                Err(error) => return Some(format!("cannot read the networks of this machine: {error}")),
            },
        };
        Some(format!("{what} (the setting resource_networks can allow it)"))
    }
}

/// Does what may block in a thread of its own, and keeps its place until that has ended, also if nobody waits for it.
async fn look_up(
    places: &'static Semaphore,
    work: impl FnOnce() -> io::Result<Vec<SocketAddr>> + Send + 'static,
) -> io::Result<Vec<SocketAddr>> {
    let place = places.acquire().await.map_err(io::Error::other)?;
    let found = tokio::task::spawn_blocking(move || {
        let found = work();
        drop(place);
        found
    });
    found.await.map_err(io::Error::other)?
}

/// The address that a packet goes to in the end: IPv6 has forms that carry an IPv4 address.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let parts = v6.segments();
    let inner = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match parts {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => address,
        // Mapped, compatible, translated.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        // Of a network's own translator (RFC 8215), with the usual length of its prefix.
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        // 6to4.
        | [0x2002, high, low, ..] => inner(high, low),
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn reported(confinement: &Confinement, host: &str) -> String {
        confinement.resolve(host, 22).await.err().unwrap_or_else(|| "allowed".to_owned())
    }

    #[tokio::test]
    async fn protected_addresses_are_refused_in_every_spelling() {
        let usual = Confinement::default();
        for (host, why) in [
            ("127.0.0.1", "loopback"),
            ("127.9.9.9", "loopback"),
            ("localhost", "loopback"),
            ("[::1]", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::7f00:1", "loopback"),
            ("2130706433", "loopback"),
            ("0x7f.1", "loopback"),
            ("64:ff9b::7f00:1", "loopback"),
            ("2002:7f00:1::", "loopback"),
            ("64:ff9b:1::7f00:1", "loopback"),
            ("2001:0:1::1", "Teredo"),
            ("fec0::1", "site-local"),
            ("0.0.0.0", "not the address of a host"),
            ("::", "not the address of a host"),
            ("169.254.169.254", "link-local"),
            ("::ffff:169.254.169.254", "link-local"),
            ("fe80::1", "link-local"),
            ("100.100.100.200", "metadata"),
            ("fd00:ec2::254", "metadata"),
        ] {
            let reported = reported(&usual, host).await;
            assert!(reported.contains(why) && reported.contains("must not connect to"), "{host}: {reported}");
        }
        // Whatever networks the machine of the tests has, it is not in all three of those for documentation.
        let own = network::of_this_machine().unwrap();
        let foreign = ["192.0.2.7", "198.51.100.7", "203.0.113.7"].map(|text| text.parse::<IpAddr>().unwrap());
        let foreign =
            foreign.into_iter().find(|address| !own.iter().any(|network| network.contains(*address))).unwrap();
        assert_eq!(reported(&usual, &foreign.to_string()).await, "allowed");
        assert_eq!(reported(&usual, "2001:db8::7").await, "allowed");
    }

    #[tokio::test]
    async fn names_that_nobody_waits_for_keep_their_places() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        use std::time::Duration;
        static PLACES: Semaphore = Semaphore::const_new(2);
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let ended = std::sync::Arc::new(crate::value::mutex::Mutex::new(ended));
        let slow = || {
            let ended = ended.clone();
            look_up(&PLACES, move || {
                BEGUN.fetch_add(1, Ordering::SeqCst);
                ended.lock().recv().map_err(io::Error::other)?;
                Ok(Vec::new())
            })
        };
        let lookups = futures::future::join_all((0..6).map(|_| slow()));
        assert!(tokio::time::timeout(Duration::from_millis(200), lookups).await.is_err());
        assert!(tokio::time::timeout(Duration::from_millis(200), slow()).await.is_err());
        assert_eq!(BEGUN.load(Ordering::SeqCst), 2, "two have a place, and keep it");
        for _ in 0..3 {
            end.send(()).unwrap();
        }
        let found = tokio::time::timeout(Duration::from_secs(10), slow()).await;
        assert!(found.unwrap().is_ok());
    }

    #[tokio::test]
    async fn the_networks_of_this_machine_are_refused() {
        let own = network::of_this_machine().unwrap();
        assert!(own.iter().any(|network| network.contains("127.0.0.1".parse().unwrap())), "{own:?}");
        // A socket that could send to the documentation's network has the address of an interface.
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        if socket.connect("192.0.2.1:9").is_ok() {
            let here = socket.local_addr().unwrap().ip().to_string();
            let reported = reported(&Confinement::default(), &here).await;
            assert!(reported.contains("it is in a network of the machine that windlass runs on"), "{reported}");
        }
    }

    #[tokio::test]
    async fn networks_that_are_configured_are_the_only_ones() {
        let networks = ["127.0.0.0/8".to_owned(), "192.0.2.9".to_owned()];
        let some = Confinement::new(Some(&networks)).unwrap();
        assert_eq!(reported(&some, "127.0.0.1").await, "allowed");
        assert_eq!(reported(&some, "192.0.2.9").await, "allowed");
        for outside in ["192.0.2.8", "169.254.169.254", "::1"] {
            assert!(reported(&some, outside).await.contains("resource_networks does not list it"), "{outside}");
        }
        assert!(reported(&Confinement::new(Some(&[])).unwrap(), "192.0.2.9").await.contains("resource_networks"));
        assert_eq!(Confinement::new(Some(&["h1".to_owned()])).unwrap_err(), "h1");
    }
}
