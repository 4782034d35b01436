//! A page of a web server, as this machine sees it: for the lookup `url`.

use super::follow::{self, Redirects, RequestOptions};
use super::network::Network;
use super::{Request, Tls, Url};
use crate::template::{WebPage, wait_for};
use crate::value::truth;

/// The body of an answer with a code below 300. Waits: for threads that templates are rendered on.
pub(crate) fn page(page: &WebPage) -> Result<String, String> {
    let mut request = Request::get(Url::parse(&page.address)?);
    request.socket.clone_from(&page.socket);
    let (proxies, netrc) = (page.proxies && page.socket.is_none(), page.netrc && page.login.is_none());
    let network = Network::from_here(&page.surroundings, proxies, netrc);
    request.headers.push(("User-Agent".into(), page.agent.clone()));
    match &page.login {
        Some(login) if page.login_at_once => request.headers.push(("Authorization".into(), follow::basic(login))),
        Some(login) => request.url.login = Some(login.clone()),
        None => request.log_in(&network),
    }
    for (name, value) in &page.headers {
        request.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        request.headers.push((name.clone(), value.clone()));
    }
    let tls = match (page.verify, request.url.secure, &page.authorities) {
        (false, _, _) => Tls::anyone(),
        // It may lead on to a server with TLS.
        (true, false, None) => Tls::from_here(None).unwrap_or_else(|_| Tls::none()),
        (true, _, path) => Tls::from_here(path.as_deref())?,
    };
    let redirects = match &*page.follow {
        "all" => Redirects::All,
        "safe" | "urllib2" => Redirects::Safe,
        "none" => Redirects::None,
        other => match truth::of_word(other) {
            Some(true) => Redirects::All,
            Some(false) => Redirects::None,
            None => return Err(format!("follow_redirects is {other:?}: one of all, safe, none, urllib2")),
        },
    };
    let manner =
        RequestOptions { tls: &tls, limit: page.limit, redirects, unredirected: &page.unredirected, network: &network };
    let answer = wait_for(manner.send_from_here(&mut request))?.map_err(|error| error.to_string())?;
    match answer.status {
        200..=299 => String::from_utf8(answer.body).map_err(|_| "the response is not UTF-8 text".into()),
        status => Err(format!("the server responded {status} {}", answer.reason)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn asked(address: String) -> WebPage {
        WebPage {
            address,
            agent: "windlass".into(),
            headers: Vec::new(),
            login: None,
            login_at_once: true,
            limit: Duration::from_secs(10),
            verify: true,
            authorities: None,
            follow: "urllib2".into(),
            proxies: false,
            netrc: false,
            unredirected: Vec::new(),
            surroundings: Arc::default(),
            socket: None,
        }
    }

    /// As a caller does: on a thread inside a runtime.
    fn page(page: &WebPage) -> Result<String, String> {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _inside = runtime.enter();
        super::page(page)
    }

    /// With one thread, which is the one that asks.
    #[test]
    fn a_page_is_fetched_by_a_thread_of_the_runtime() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhere").unwrap();
        });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (asked, nobody) = (asked(address.clone()), asked(address));
        let answer = runtime.block_on(async { tokio::spawn(async move { super::page(&asked) }).await });
        assert_eq!(answer.unwrap().unwrap(), "here");
        server.join().unwrap();
        assert_eq!(super::page(&nobody).unwrap_err(), "internal error: there is no runtime to wait in");
    }

    #[test]
    fn a_page_is_fetched_wherever_it_has_moved_and_a_refusal_is_reported() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let answers = [
                "200 OK\r\n\r\na\nb\n",
                "301 Moved\r\nLocation: /x\r\n\r\n",
                "200 OK\r\n\r\nmoved",
                "301 Moved\r\nLocation: /x\r\n\r\n",
                "404 Not Found\r\n\r\n",
            ];
            let mut seen = String::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                let count = stream.read(&mut request).unwrap();
                seen.push_str(&String::from_utf8_lossy(&request[..count]));
                stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
            }
            seen
        });
        let login = Some(("me".to_owned(), "secret".to_owned()));
        let headers = vec![("user-agent".to_owned(), "other".to_owned())];
        assert_eq!(page(&WebPage { login, headers, ..asked(address.clone()) }).unwrap(), "a\nb\n");
        assert_eq!(page(&asked(address.clone())).unwrap(), "moved");
        let stays = WebPage { follow: "none".into(), ..asked(address.clone()) };
        assert_eq!(page(&stays).unwrap_err(), "the server responded 301 Moved");
        assert_eq!(page(&asked(address)).unwrap_err(), "the server responded 404 Not Found");
        let seen = server.join().unwrap();
        let first = seen.split("\r\n\r\n").next().unwrap();
        assert!(first.contains("user-agent: other") && first.contains("Basic bWU6c2VjcmV0"), "{first}");
    }

    #[test]
    fn a_server_behind_tls_is_trusted_by_a_named_authority_or_not_asked_who_it_is() {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_string()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_no_client_auth().with_single_cert(vec![own.cert.der().clone()], key);
        let config = Arc::new(config.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let mut connection = rustls::ServerConnection::new(config.clone()).unwrap();
                let mut tls = rustls::Stream::new(&mut connection, &mut stream);
                // Who does not trust the certificate leaves here.
                if matches!(tls.read(&mut [0; 1024]), Ok(count) if count > 0) {
                    tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecure").unwrap();
                }
            }
        });
        let authority = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(authority.path(), own.cert.pem()).unwrap();
        let address = format!("https://localhost:{port}/");
        assert_eq!(page(&WebPage { verify: false, ..asked(address.clone()) }).unwrap(), "secure");
        let authorities = Some(authority.path().to_owned());
        assert_eq!(page(&WebPage { authorities, ..asked(address.clone()) }).unwrap(), "secure");
        let reported = page(&asked(address)).unwrap_err();
        assert!(reported.starts_with("TLS handshake with localhost"), "{reported}");
    }
}
