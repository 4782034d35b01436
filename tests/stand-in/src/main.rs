//! A stand-in for Karmada's programs, for tests where those cannot be had; never shipped. It takes the flags of the real
//! program and no others, loads every certificate and kubeconfig that it is given, holds the real lease through the real
//! API and answers where the real one does. It does none of the real one's work. Which program it stands for is
//! written at the end of the file: `tests/stand-in/bundle` makes a bundle of them.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of the tests")]

mod answers;
mod api;
mod clusters;
mod files;
mod flags;
mod lease;
mod serve;

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flags::Given;

/// What this file stands for.
pub struct Identity {
    /// `karmada-scheduler`
    pub program: String,
    /// `1.19.0`
    pub version: String,
}

const MARK: &str = "\nstand-in for ";

/// Reads the file's last line, "stand-in for PROGRAM VERSION".
fn identity() -> Result<Identity, String> {
    let unmarked = "this file does not say what it stands for: make it with tests/stand-in/bundle";
    let tail = own_end().map_err(|error| format!("cannot read the own program: {error}"))?;
    let text = String::from_utf8_lossy(&tail);
    let (_, line) = text.rsplit_once(MARK).ok_or(unmarked)?;
    let (program, version) = line.trim_end().split_once(' ').ok_or(unmarked)?;
    Ok(Identity { program: program.to_owned(), version: version.to_owned() })
}

fn own_end() -> std::io::Result<Vec<u8>> {
    let mut own = std::fs::File::open("/proc/self/exe")?;
    own.seek(SeekFrom::End(-128))?;
    let mut tail = Vec::new();
    own.read_to_end(&mut tail)?;
    Ok(tail)
}

fn main() -> ExitCode {
    let ended = identity().and_then(|identity| {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        match arguments.first().map(String::as_str) {
            Some("version" | "--version") => {
                println!("{} version: version.Info{{GitVersion:\"v{}-stand-in\"}}", identity.program, identity.version);
                return Ok(());
            }
            Some("--help") => {
                println!("A stand-in for {}, for tests of the installer. It does none of its work.", identity.program);
                return Ok(());
            }
            _ => {}
        }
        let given = flags::parse(&identity, &arguments)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| error.to_string())?.block_on(run(&identity, &given))
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("Error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Loads, listens, says that it is ready, and then leads or waits until something breaks.
async fn run(identity: &Identity, given: &Given) -> Result<(), String> {
    files::all_can_be_loaded(given)?;
    let (client, server) = api::client(given).await?;
    // Those that the API server calls are there before it, and wait for it.
    let called = identity.program == "karmada-webhook" || given.get("authentication-skip-lookup") == Some("true");
    let known = Arc::new(AtomicBool::new(!called));
    if identity.program == "karmada-scheduler-estimator" {
        api::member_lets_us_count(&client, &server).await?;
    } else if !called {
        api::knows_us(&client, &server).await?;
    }
    for (address, paths) in plain_addresses(identity, given)? {
        serve::start(address, None, answers::plain(paths)).await?;
    }
    if let Some(group) = answers::aggregated_group(&identity.program) {
        let etcd = api::Etcd::of(given)?;
        if let Some(etcd) = &etcd {
            etcd.answers().await?;
        }
        let front_proxy = api::front_proxy_authorities(given, &client).await?;
        let tls = files::serving(given, "tls-cert-file", "tls-private-key-file", front_proxy)?;
        serve::start(
            secure_address(given)?,
            Some(tls),
            answers::aggregated(group, etcd, known.clone(), client.clone()),
        )
        .await?;
        notify_ready()?;
    }
    if identity.program == "karmada-webhook" {
        let tls = files::serving_of_webhook(given)?;
        serve::start(secure_address(given)?, Some(tls), answers::webhook()).await?;
    }
    // The real one speaks gRPC there.
    if let Some(port) = given.get("server-port").and_then(|port| port.parse().ok()) {
        let tls = files::serving(given, "grpc-auth-cert-file", "grpc-auth-key-file", Vec::new())?;
        serve::start(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), Some(tls), answers::nothing()).await?;
    }
    if called {
        api::will_know_us(&client, &server).await?;
        known.store(true, Ordering::Relaxed);
    }
    match lease::Election::of(&identity.program, given)? {
        Some(election) => election.run(client).await,
        None => std::future::pending().await,
    }
}

/// Where it listens without TLS, and what it answers there; both may be at one address. The health port knows `/healthz`
/// alone; the webhook's knows no path at all.
fn plain_addresses(identity: &Identity, given: &Given) -> Result<BTreeMap<SocketAddr, Vec<&'static str>>, String> {
    let health = if identity.program == "karmada-webhook" { None } else { Some("/healthz") };
    let mut addresses: BTreeMap<SocketAddr, Vec<&str>> = BTreeMap::new();
    for (flag, path) in [("metrics-bind-address", Some("/metrics")), ("health-probe-bind-address", health)] {
        let Some(text) = given.get(flag).filter(|text| *text != "0") else { continue };
        let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
        let address = full.parse().map_err(|_| format!("--{flag}: {text} is no address with a port"))?;
        addresses.entry(address).or_default().extend(path);
    }
    Ok(addresses)
}

fn secure_address(given: &Given) -> Result<SocketAddr, String> {
    let address = given.get("bind-address").unwrap_or("0.0.0.0").parse::<IpAddr>();
    let port = given.get("secure-port").unwrap_or_default().parse::<u16>();
    match (address, port) {
        (Ok(address), Ok(port)) => Ok(SocketAddr::new(address, port)),
        (Err(_), Ok(port)) => Ok(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))),
        _ => Err("--bind-address and --secure-port are no address".to_owned()),
    }
}

/// Tells systemd, where it waits for it (`Type=notify`).
fn notify_ready() -> Result<(), String> {
    let Ok(path) = std::env::var("NOTIFY_SOCKET") else { return Ok(()) };
    say_ready(&path).map_err(|error| format!("cannot tell systemd: {error}"))
}

fn say_ready(path: &str) -> std::io::Result<()> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address).map(drop)
}
