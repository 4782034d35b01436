//! A proof that a server has the store of its owner: the program that listens must give it before a link is printed that lets a person in.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use axum::response::Response;
use hmac::{Hmac, KeyInit, Mac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::access::hex;
use super::answers;
use super::call::{API, Call};
use super::problem::Problem;

/// The key of proofs, which is in the store.
pub struct ProofKey(pub(super) String);

/// How long a server may take for each step.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest answer, in bytes.
const LONGEST: u64 = 16 << 10;

/// The length of a nonce: 256 bits in hexadecimal.
const NONCE: usize = 64;

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct Proof {
    /// In hexadecimal.
    proof: String,
}

/// Why no proof was given.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    #[error(
        "cannot ask the server at {address}\n\
         hint: start the server (`windlass serve`), or give its address with --listen; with TLS, give --url https://NAME:PORT"
    )]
    Ask { address: SocketAddr, source: std::io::Error },
    #[error(
        "what listens on {address} does not prove that it is the server of your store: it would get all rights with a link\n\
         hint: find out whose it is (ss -ltnp). If it is yours, call this as its user, with its WINDLASS_RUNS_DIRECTORY; with TLS, give --url https://NAME:PORT"
    )]
    Wrong { address: SocketAddr },
}

impl ProofKey {
    /// Covers the address too: the answer of a server elsewhere does not fit here.
    fn mac(&self, address: SocketAddr, nonce: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).expect("HMAC takes keys of any length");
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        mac.update(format!("windlass serve\n{address}\n{nonce}").as_bytes());
        mac
    }

    /// Asks the server at an address for a proof.
    ///
    /// # Errors
    /// Nobody answers, or not with a proof.
    pub fn ask_server(&self, listens: SocketAddr) -> Result<(), ProofError> {
        let ip = match listens.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let address = SocketAddr::new(ip, listens.port());
        let nonce = hex(&rand::random::<[u8; 32]>());
        let text = ask(address, &nonce).map_err(|source| ProofError::Ask { address, source })?;
        let proof = text.strip_prefix("HTTP/1.1 200 ").and_then(|text| text.split_once("\r\n\r\n"));
        let proof: Option<Proof> = proof.and_then(|(_, body)| serde_json::from_str(body).ok());
        let bytes = proof.and_then(|found| bytes_of(&found.proof));
        let is_right = bytes.is_some_and(|bytes| self.mac(address, &nonce).verify_slice(&bytes).is_ok());
        if is_right { Ok(()) } else { Err(ProofError::Wrong { address }) }
    }
}

fn ask(address: SocketAddr, nonce: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!("GET {API}/proof?nonce={nonce} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut bytes = Vec::new();
    stream.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn bytes_of(hexadecimal: &str) -> Option<Vec<u8>> {
    let pairs = hexadecimal.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Anybody may ask: a proof is of use only to who has the key.
pub(super) async fn show_proof(call: Call) -> Result<Response, Problem> {
    let nonce = call
        .query
        .get("nonce")
        .filter(|nonce| nonce.len() == NONCE && nonce.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
    let nonce = nonce.ok_or_else(|| Problem::bad_request("nonce must be 64 digits from 0 to f"))?;
    let mac = call.server.proof_key.mac(call.local, nonce);
    Ok(answers::ok(&Proof { proof: hex(&mac.finalize().into_bytes()) }))
}
