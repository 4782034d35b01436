//! What the environment of a host's programs says of the network: its proxies, and the logins in `~/.netrc`.

use std::path::PathBuf;

use super::Url;
use crate::remote::{self, Command, Probe};
use crate::value::ProcessEnvironment;

/// None of it unless it was asked for.
#[derive(Default)]
pub(crate) struct Network {
    /// The values of the variables; empty: none.
    http: String,
    https: String,
    /// The servers that are reached without a proxy.
    direct: String,
    logins: Vec<Login>,
}

struct Login {
    /// None: any other.
    machine: Option<String>,
    user: String,
    password: String,
}

impl Network {
    /// Asks the host, with the task's own `environment`.
    pub(crate) async fn load_network(probe: &Probe, proxies: bool, netrc: bool) -> Result<Network, remote::Error> {
        let line = "printf '%s\\n' \"${http_proxy-${HTTP_PROXY-}}\" \"${https_proxy-${HTTPS_PROXY-}}\" \"${no_proxy-${NO_PROXY-}}\"\n\
            cat \"${NETRC:-$HOME/.netrc}\" 2>/dev/null; exit 0";
        if !proxies && !netrc {
            return Ok(Network::default());
        }
        let output = probe.query(&Command::shell(line)).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut parts = text.splitn(4, '\n');
        let mut next = |wanted| parts.next().filter(|_| wanted).unwrap_or_default().trim().to_owned();
        let (http, https, direct) = (next(proxies), next(proxies), next(proxies));
        Ok(Network { http, https, direct, logins: logins(&next(netrc)) })
    }

    /// As [`Network::load_network`], of this machine.
    pub(crate) fn from_here(around: &ProcessEnvironment, proxies: bool, netrc: bool) -> Network {
        let variable = |name: &str| around.variables.get(name).or_else(|| around.variables.get(&name.to_uppercase()));
        let set = |name: &str| match variable(name).filter(|_| proxies) {
            Some(value) => value.trim().to_owned(),
            None => String::new(),
        };
        let file = around.variables.get("NETRC").map(PathBuf::from);
        let file = file.or_else(|| around.home.as_ref().map(|home| home.join(".netrc")));
        let text = file.filter(|_| netrc).and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        Network { http: set("http_proxy"), https: set("https_proxy"), direct: set("no_proxy"), logins: logins(&text) }
    }

    /// The proxy for an address; the error says what is wrong with it.
    pub(crate) fn proxy(&self, url: &Url) -> Result<Option<Url>, String> {
        let (name, text) = if url.secure { ("https_proxy", &self.https) } else { ("http_proxy", &self.http) };
        if text.is_empty() || self.is_direct(url) {
            return Ok(None);
        }
        let whole = if text.contains("://") { text.clone() } else { format!("http://{text}") };
        match Url::parse(&whole) {
            Ok(proxy) if !proxy.secure => Ok(Some(proxy)),
            Ok(_) => Err(format!("{name} must be an http address")),
            // The reason is not shown: it may contain a part of a password.
            Err(_) => Err(format!(
                "invalid {name}: it must be http://[USER:PASSWORD@]HOST:PORT, with special characters escaped as %23"
            )),
        }
    }

    /// Whether `no_proxy` names the server: itself, a domain above it, or all.
    fn is_direct(&self, url: &Url) -> bool {
        let (host, address) = (url.host.to_ascii_lowercase(), url.address().to_ascii_lowercase());
        let is_in = |name: &str| {
            let ends = |text: &str| text.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
            ends(&host) || ends(&address)
        };
        let names = self.direct.split(',').map(|name| name.trim().trim_start_matches('.').to_ascii_lowercase());
        self.direct.trim() == "*" || names.filter(|name| !name.is_empty()).any(|name| is_in(&name))
    }

    /// Who to log in as on a server.
    pub(crate) fn login(&self, host: &str) -> Option<(String, String)> {
        let is_own = |login: &&Login| login.machine.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(host));
        let own = self.logins.iter().rfind(is_own);
        let login = own.or_else(|| self.logins.iter().find(|login| login.machine.is_none()))?;
        (!login.user.is_empty() && !login.password.is_empty()).then(|| (login.user.clone(), login.password.clone()))
    }
}

/// The words of a line of such a file: only double quotes mean something, and a backslash before one character.
fn split_words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quoted, mut within, mut escaped) = (false, false, false);
    for c in line.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => {
                escaped = true;
                continue;
            }
            '"' if quoted || !within => {
                quoted = !quoted;
                if !within {
                    words.push(String::new());
                    within = true;
                }
                continue;
            }
            c if c.is_whitespace() && !quoted => {
                within = false;
                continue;
            }
            _ => {}
        }
        if !within {
            words.push(String::new());
            within = true;
        }
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    words
}

/// The entries of a file like `~/.netrc`.
fn logins(text: &str) -> Vec<Login> {
    let mut logins: Vec<Login> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let words = split_words(line);
        if words.first().is_some_and(|word| word == "macdef") {
            // Up to a blank line.
            lines.by_ref().find(|line| line.trim().is_empty());
            continue;
        }
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_default();
            match (word.as_str(), logins.last_mut()) {
                ("default", _) => {
                    logins.push(Login { machine: None, user: String::new(), password: String::new() });
                }
                ("machine", _) => {
                    logins.push(Login { machine: Some(value()), user: String::new(), password: String::new() });
                }
                ("login" | "user", Some(login)) => login.user = value(),
                ("password", Some(login)) => login.password = value(),
                ("account", _) => drop(value()),
                _ => {}
            }
        }
    }
    logins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_names_servers_domains_and_ports() {
        let of = |direct: &str, address: &str| {
            let network = Network { http: "proxy:3128".into(), direct: direct.into(), ..Network::default() };
            network.proxy(&Url::parse(address).unwrap()).unwrap().map(|proxy| proxy.address())
        };
        assert_eq!(of("", "http://a.b/"), Some("proxy:3128".to_owned()));
        assert_eq!(of("", "https://a.b/"), None);
        for direct in ["a.b", "x, .b", "b", "a.b:80", "*"] {
            assert_eq!(of(direct, "http://a.b/"), None, "{direct}");
        }
        for direct in ["c", "a", "xa.b", "a.b:81"] {
            assert!(of(direct, "http://a.b/").is_some(), "{direct}");
        }
        let odd = Network { http: "socks5://p".into(), ..Network::default() };
        assert!(odd.proxy(&Url::parse("http://a/").unwrap()).unwrap_err().starts_with("invalid http_proxy: "));
    }

    #[test]
    fn logins_are_found_by_their_machine() {
        let text = "# mine\nmachine a login u password \"p w\"\nmachine b\n  login v\n  password x\nmacdef m\nmachine z\n\n\
            default login any password y\n";
        let network = Network { logins: logins(text), ..Network::default() };
        let login = |host: &str| network.login(host).unwrap();
        assert_eq!(login("a"), ("u".into(), "p w".into()));
        assert_eq!(login("b"), ("v".into(), "x".into()));
        let odd = Network {
            logins: logins("machine Q login u password it's#1\nmachine q login u password #2\\\""),
            ..Network::default()
        };
        assert_eq!(odd.login("Q").unwrap().1, "#2\"");
        assert_eq!(split_words("password it's#1 \"a b\""), ["password", "it's#1", "a b"]);
        assert_eq!(login("z"), ("any".into(), "y".into()));
        assert!(Network::default().login("a").is_none());
    }
}
