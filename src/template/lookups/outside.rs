//! Lookups of what lies around a run: its inventory, its settings, and a web server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine as _;

use super::{Call, fail};
use crate::template::{Error, filters};
use crate::value::Value;

/// The hosts that patterns name.
pub fn inventory_hostnames(call: &mut Call<'_>) -> Result<Vec<Value>, Error> {
    let outside = call.scope.outside.as_ref().ok_or_else(|| fail("there is no inventory at this place"))?;
    let hosts = outside.hosts(&call.texts()).map_err(fail)?;
    Ok(hosts.into_iter().map(Value::from).collect())
}

/// The settings in force, by Ansible's names for them.
pub fn config(call: &mut Call<'_>) -> Result<Vec<Value>, Error> {
    let outside = call.scope.outside.as_ref().ok_or_else(|| fail("there are no settings at this place"))?;
    let mut found = Vec::new();
    for name in call.texts() {
        match (outside.setting(&name), call.text_option("on_missing", "error").as_str()) {
            (Some(value), _) => found.push(value),
            (None, "skip") => {}
            (None, "warn") => tracing::warn!("lookup config: there is no setting {name}"),
            (None, _) => {
                return Err(fail(format!("there is no setting {name:?}; \"windlass config\" lists those that count")));
            }
        }
    }
    Ok(found)
}

/// What web servers answer, by http alone: line by line, or whole with `split_lines=false`.
pub fn url(call: &mut Call<'_>) -> Result<Vec<Value>, Error> {
    if call.scope.outside.as_ref().is_some_and(|outside| outside.offline()) {
        return Err(fail("the lookup url fetches from a server, which --offline forbids"));
    }
    let mut found = Vec::new();
    for address in call.texts() {
        let body = fetch(call, &address, 5).map_err(|why| fail(format!("cannot fetch {address}: {why}")))?;
        match call.flag("split_lines", true) {
            true => found.extend(body.lines().map(Value::from)),
            false => found.push(Value::from(body)),
        }
    }
    Ok(found)
}

/// The body of an answer with a code below 300; so many redirections are followed.
fn fetch(call: &Call<'_>, address: &str, redirections: usize) -> Result<String, String> {
    let url = filters::Url::split(address).map_err(|error| crate::template::words(&error))?;
    if url.scheme != "http" {
        return Err("only http:// is fetched here; a task with the module uri or get_url does more".into());
    }
    let host = url.netloc.rsplit_once('@').map_or(&*url.netloc, |(_, host)| host);
    let place = if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    let path = if url.path.is_empty() { "/" } else { &url.path };
    let query = if url.query.is_empty() { String::new() } else { format!("?{}", url.query) };
    let mut request = format!("GET {path}{query} HTTP/1.0\r\nHost: {host}\r\nUser-Agent: windlass\r\nAccept: */*\r\n");
    if let Some(user) = call.option("username") {
        let both = format!("{user}:{}", call.text_option("password", ""));
        request += &format!("Authorization: Basic {}\r\n", base64::engine::general_purpose::STANDARD.encode(both));
    }
    for (name, value) in call
        .option("headers")
        .map(|headers| crate::template::args::pairs(headers, "headers"))
        .transpose()
        .map_err(|error| crate::template::words(&error))?
        .unwrap_or_default()
    {
        if format!("{name}{value}").contains(['\r', '\n']) {
            return Err("a header with a line end in it".into());
        }
        request += &format!("{name}: {value}\r\n");
    }
    let seconds = call.option("timeout").and_then(|seconds| f64::try_from(seconds.clone()).ok()).unwrap_or(10.0);
    let limit = Some(Duration::from_secs_f64(seconds.clamp(0.1, 3600.0)));
    let words = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(&place).map_err(words)?;
    stream.set_read_timeout(limit).and_then(|()| stream.set_write_timeout(limit)).map_err(words)?;
    stream.write_all(format!("{request}\r\n").as_bytes()).map_err(words)?;
    let mut answer = Vec::new();
    stream.take(64 << 20).read_to_end(&mut answer).map_err(words)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or("it is no answer of a web server")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    let code: u16 =
        status.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or("it is no answer of a web server")?;
    let header = |name: &str| {
        head.lines().find_map(|line| {
            line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        })
    };
    match (code, header("location")) {
        (200..=299, _) => {
            String::from_utf8(answer.split_off(end + 4)).map_err(|_| "the answer is not UTF-8 text".into())
        }
        (300..=399, Some(_)) if redirections == 0 => Err("it leads on for ever".into()),
        (300..=399, Some(location)) => {
            let next =
                if location.contains("://") { location.to_owned() } else { format!("http://{}{location}", url.netloc) };
            fetch(call, &next, redirections - 1)
        }
        _ => Err(format!("the server answered {}", status.split_once(' ').map_or(status, |(_, words)| words))),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::super::super::{Scope, Templar};
    use super::*;
    use crate::value::Template;

    #[test]
    fn a_page_is_fetched_line_by_line_and_a_refusal_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let answers = [
                "200 OK\r\n\r\na\nb\n",
                "301 Moved\r\nLocation: /x\r\n\r\n",
                "200 OK\r\n\r\nmoved",
                "404 Not Found\r\n\r\n",
            ];
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).unwrap();
                stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
            }
        });
        let render = |text: &str| {
            let text = text.replace("PORT", &port.to_string());
            Templar::new().render_string(&Template::value(&text, None), &Scope::default())
        };
        assert_eq!(render("{{ query('url', 'http://127.0.0.1:PORT/') }}").unwrap(), "['a', 'b']");
        assert_eq!(render("{{ lookup('url', 'http://127.0.0.1:PORT/', split_lines=false) }}").unwrap(), "moved");
        let error = render("{{ lookup('url', 'http://127.0.0.1:PORT/') }}").unwrap_err().to_string();
        assert!(error.contains("the server answered 404 Not Found"), "{error}");
        assert!(render("{{ lookup('url', 'https://h1/') }}").unwrap_err().to_string().contains("only http://"));
        server.join().unwrap();
    }
}
