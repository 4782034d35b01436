//! For several tests, of the library too: a TCP port of this machine.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// A port that nothing listens on: below those that the kernel gives to sockets without one, and each only once.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(std::process::id() % 10_000).unwrap();
    loop {
        let port = 20_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
