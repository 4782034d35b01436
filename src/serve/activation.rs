//! A socket that systemd keeps, and passes on to the server: nobody else can take the port while the server is down.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{FromRawFd, RawFd};

use crate::value::ProcessEnvironment;

/// The number of the first one that is passed on: see sd_listen_fds(3).
const FIRST: RawFd = 3;

/// The socket that was passed on. None: none was.
///
/// # Errors
/// It does not listen on this address, or there are several.
pub fn passed_listener(around: &ProcessEnvironment, address: SocketAddr) -> Result<Option<TcpListener>, String> {
    // Passed on from process to process, the variables are for this one only if they say so.
    if around.variable("LISTEN_PID") != Some(std::process::id().to_string().as_str()) {
        return Ok(None);
    }
    match around.variable("LISTEN_FDS") {
        None | Some("0") => Ok(None),
        Some("1") => listener(FIRST, address).map(Some),
        Some(count) => Err(format!("{count} sockets were passed on, and not one")),
    }
}

fn listener(number: RawFd, address: SocketAddr) -> Result<TcpListener, String> {
    let of_socket = |error: std::io::Error| format!("what was passed on is no TCP socket: {error}");
    let option = |name| socket_option(number, name).map_err(of_socket);
    if option(libc::SO_TYPE)? != libc::SOCK_STREAM || option(libc::SO_ACCEPTCONN)? != 1 {
        return Err("what was passed on is no TCP socket that listens".to_owned());
    }
    // SAFETY: it is open, as it has just answered, and nothing else in this process has this number.
    #[expect(unsafe_code, reason = "the comment at the unsafe block gives the reason")]
    let listener = unsafe { TcpListener::from_raw_fd(number) };
    let found = listener.local_addr().map_err(of_socket)?;
    if found != address {
        return Err(format!("the socket that was passed on listens on {found}"));
    }
    listener.set_nonblocking(true).map_err(of_socket)?;
    // A run that is started must not keep it.
    rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::CLOEXEC).map_err(|error| of_socket(error.into()))?;
    Ok(listener)
}

fn socket_option(number: RawFd, name: libc::c_int) -> std::io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut length = libc::socklen_t::try_from(size_of_val(&value)).expect("the size of a number");
    // SAFETY: both pointers are to variables that live longer than the call, and `length` is the size of the first.
    #[expect(unsafe_code, reason = "the comment at the unsafe block gives the reason")]
    let failed =
        unsafe { libc::getsockopt(number, libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut length) } != 0;
    if failed { Err(std::io::Error::last_os_error()) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, IntoRawFd};

    use super::*;

    #[test]
    fn only_a_socket_that_listens_on_the_address_is_taken() {
        let own = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = own.local_addr().unwrap();
        let other = SocketAddr::new(address.ip(), 1);
        let taken = listener(own.as_raw_fd(), address).unwrap();
        assert!(rustix::io::fcntl_getfd(&taken).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        // They are the same socket, which is closed once.
        assert_eq!(taken.into_raw_fd(), own.as_raw_fd());
        let dup = own.try_clone().unwrap().into_raw_fd();
        assert!(listener(dup, other).unwrap_err().contains(&address.to_string()));
        let connected = std::net::TcpStream::connect(address).unwrap();
        assert!(listener(connected.as_raw_fd(), address).unwrap_err().contains("listens"));
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(listener(datagrams.as_raw_fd(), datagrams.local_addr().unwrap()).is_err());
        let file = tempfile::tempfile().unwrap();
        assert!(listener(file.as_raw_fd(), address).is_err());
    }

    #[test]
    fn variables_of_another_process_say_nothing() {
        let around = |pid: u32, count: &str| ProcessEnvironment {
            variables: [("LISTEN_PID".to_owned(), pid.to_string()), ("LISTEN_FDS".to_owned(), count.to_owned())].into(),
            ..ProcessEnvironment::default()
        };
        let address = "127.0.0.1:7480".parse().unwrap();
        assert!(passed_listener(&around(1, "1"), address).unwrap().is_none());
        assert!(passed_listener(&around(std::process::id(), "2"), address).is_err());
        assert!(passed_listener(&around(std::process::id(), "0"), address).unwrap().is_none());
    }
}
