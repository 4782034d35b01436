//! `--offline`: a run connects to the hosts of the inventory and to what a person names besides, and to nothing else. Any
//! other connection is refused before it is tried, a name before it is looked up.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;

use super::network::Network;
use super::{Connection, Error, Method, Open, Process, Stream, Target};
use crate::value::mutex::RwLock;

/// Opens connections with another connector, within the limits of an offline run.
pub struct Fence {
    ways: Arc<dyn Open>,
    inside: Arc<RwLock<AllowedTargets>>,
}

/// The allowed targets.
#[derive(Debug, Default)]
struct AllowedTargets {
    /// Names and addresses, in small letters and without brackets.
    names: HashSet<String>,
    networks: Vec<Network>,
}

impl Fence {
    /// `hosts` are names and addresses of the inventory's hosts; `besides` are names, addresses and networks
    /// (`10.0.0.0/24`) that a person admits.
    pub fn new<'a>(
        ways: Arc<dyn Open>,
        hosts: impl IntoIterator<Item = String>,
        besides: impl IntoIterator<Item = &'a str>,
    ) -> Fence {
        let mut inside = AllowedTargets::default();
        inside.names.extend(hosts.into_iter().map(|host| plain(&host)));
        for admitted in besides {
            match Network::parse_network(admitted) {
                Some(network) => inside.networks.push(network),
                None => drop(inside.names.insert(plain(admitted))),
            }
        }
        Fence { ways, inside: Arc::new(RwLock::new(inside)) }
    }

    fn has(&self, name: &str) -> bool {
        self.inside.read().has(name)
    }

    /// Refuses what is outside.
    pub fn may_reach(&self, host: &str) -> Result<(), Error> {
        may_reach(&self.inside, host)
    }
}

#[async_trait]
impl Open for Fence {
    async fn open(&self, target: &Target) -> Result<Arc<dyn Connection>, Error> {
        if target.method == Method::Ssh {
            if !self.has(&target.name) && !self.has(&target.address) {
                return Err(Error::Unreachable {
                    message: format!("cannot connect to {} ({}): {}", target.name, target.address, REASON),
                    hint: Some(HINT.to_owned()),
                });
            }
            self.admit(&target.address);
        }
        let connection = self.ways.open(target).await?;
        Ok(Arc::new(OfflineConnection { connection, inside: self.inside.clone() }))
    }

    fn admit(&self, address: &str) {
        self.inside.write().names.insert(plain(address));
    }
}

const REASON: &str = "the run is offline, and this is not a host of the inventory";
const HINT: &str = "--offline=ADDRESS allows another name, address or network";

/// A connection within the limits of an offline run.
#[derive(Debug)]
struct OfflineConnection {
    connection: Arc<dyn Connection>,
    inside: Arc<RwLock<AllowedTargets>>,
}

#[async_trait]
impl Connection for OfflineConnection {
    async fn start(&self, line: &str) -> Result<Process, Error> {
        self.connection.start(line).await
    }

    async fn tunnel(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, Error> {
        self.connection.tunnel(host, port).await
    }

    fn may_reach(&self, host: &str) -> Result<(), Error> {
        may_reach(&self.inside, host)
    }

    fn is_ssh(&self) -> bool {
        self.connection.is_ssh()
    }

    fn distrust(&self) -> Option<&str> {
        self.connection.distrust()
    }

    fn is_confined(&self) -> bool {
        self.connection.is_confined()
    }

    fn capacity(&self) -> usize {
        self.connection.capacity()
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    fn description(&self) -> String {
        self.connection.description()
    }

    async fn close(&self) {
        self.connection.close().await;
    }
}

fn may_reach(inside: &RwLock<AllowedTargets>, host: &str) -> Result<(), Error> {
    match inside.read().has(host) {
        true => Ok(()),
        false => Err(Error::Start { what: format!("connection to {host}"), reason: format!("{REASON} ({HINT})") }),
    }
}

impl AllowedTargets {
    /// Every machine may talk to itself.
    fn has(&self, name: &str) -> bool {
        let name = plain(name);
        if name == "localhost" || self.names.contains(&name) {
            return true;
        }
        let Ok(address) = name.parse::<IpAddr>() else { return false };
        address.is_loopback() || self.networks.iter().any(|network| network.contains(address))
    }
}

fn plain(name: &str) -> String {
    name.trim().trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Connectors;

    fn fence(besides: &[&str]) -> Fence {
        let hosts = ["web1".to_owned(), "10.0.0.1".to_owned(), "H2.example.com".to_owned()];
        Fence::new(Arc::new(Connectors), hosts, besides.iter().copied())
    }

    fn target(method: Method, name: &str, address: &str) -> Target {
        Target {
            method,
            name: name.to_owned(),
            address: address.to_owned(),
            port: Some(1),
            config_file: Some("/dev/null".into()),
            ..Target::default()
        }
    }

    #[tokio::test]
    async fn within_are_the_inventory_this_very_machine_and_what_is_named() {
        let fence = fence(&["10.9.0.0/16", "fd00::/8", "Registry.example.com."]);
        let local = fence.open(&target(Method::Local, "localhost", "localhost")).await.unwrap();
        for inside in ["web1", "10.0.0.1", "h2.example.com", "localhost", "127.0.0.9", "[::1]", "10.9.200.1", "fd00::7"]
        {
            assert!(local.may_reach(inside).is_ok(), "{inside}");
        }
        assert!(local.may_reach("registry.example.com").is_ok());
        for outside in ["10.0.0.2", "10.10.0.1", "example.com", "fe00::1", "web11"] {
            let error = local.may_reach(outside).unwrap_err().to_string();
            assert!(error.contains("the run is offline, and this is not a host of the inventory"), "{error}");
        }
        fence.admit("10.0.0.2");
        assert!(local.may_reach("10.0.0.2").is_ok());
    }

    #[tokio::test]
    async fn a_host_that_is_not_in_the_inventory_is_not_even_looked_up() {
        let error = fence(&[]).open(&target(Method::Ssh, "stranger", "nowhere.example.com")).await.unwrap_err();
        let words = "cannot connect to stranger (nowhere.example.com): the run is offline";
        assert!(error.to_string().starts_with(words), "{error}");
    }

    #[tokio::test]
    async fn a_host_of_the_inventory_brings_its_address() {
        let fence = fence(&[]);
        // No server listens there; the attempt is enough.
        let error = fence.open(&target(Method::Ssh, "web1", "127.0.0.1")).await.unwrap_err();
        assert!(!error.to_string().contains("offline"), "{error}");
        let of_its_group = target(Method::Ssh, "web1", "127.0.0.2");
        fence.open(&of_its_group).await.ok();
        assert!(fence.inside.read().names.contains("127.0.0.2"));
    }
}
