//! The SSH connection against real OpenSSH servers on 127.0.0.1. Needs root, openssh-server and openssh-client.

#![allow(clippy::unwrap_used)]

mod channels;
mod host_keys;
mod login;
mod loss;
mod server;
mod sessions;
mod way;
