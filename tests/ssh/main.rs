//! The SSH connection against real OpenSSH servers on 127.0.0.1. Needs root, openssh-server and openssh-client.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

mod channels;
mod host_keys;
mod login;
mod loss;
#[path = "../shared/port.rs"]
mod port;
mod server;
mod sessions;
mod way;
