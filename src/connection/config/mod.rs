//! How a host is reached, put together from the inventory, `-o` options and OpenSSH's client configuration,
//! in this order: what is said first counts. Reads files of this side; speaks to no host.

mod arguments;
mod names;
mod parse;
mod tokens;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::known_hosts::Name;
use super::{Error, HostKeys, Target};
use crate::value::Secret;
use crate::value::truth;
use parse::Options;
use tokens::Tokens;
use tokens::home;
use tokens::local_user;
pub(super) use tokens::user_id;

/// Everything that is needed to reach one host, or one jump host before it.
#[derive(Debug, Clone)]
pub(super) struct SshSettings {
    /// How messages call it: the inventory's name, or `web1's jump host bastion`.
    pub label: String,
    /// What to connect to.
    pub address: String,
    pub port: u16,
    pub user: String,
    pub password: Option<Secret>,
    /// Key files from the configuration; None: OpenSSH's default names.
    pub identity_files: Option<Vec<PathBuf>>,
    pub certificate_files: Vec<PathBuf>,
    pub passphrase: Option<Secret>,
    /// A key as text.
    pub private_key: Option<Secret>,
    pub identities_only: bool,
    /// The agent's socket, if one is to be asked.
    pub agent: Option<PathBuf>,
    pub methods: Vec<Method>,
    pub jumps: Vec<ProxyHop>,
    pub proxy_command: Option<String>,
    pub host_keys: HostKeys,
    /// What the host's key must be, whatever known hosts say.
    pub fingerprint: Option<String>,
    pub host_key_alias: Option<String>,
    /// The first is the one that new keys are recorded in.
    pub user_known_hosts: Vec<PathBuf>,
    pub global_known_hosts: Vec<PathBuf>,
    /// Files of keys that no host may have.
    pub revoked_host_keys: Vec<PathBuf>,
    pub hash_known_hosts: bool,
    pub connect_timeout: Duration,
    /// None: the host is not asked whether it is still there.
    pub alive_interval: Option<Duration>,
    pub alive_count: usize,
    pub family: Family,
    /// For the jump hosts, which read the same file.
    pub config_file: Option<PathBuf>,
    /// `~/.ssh` of the user who runs windlass.
    pub directory: PathBuf,
}

/// A way to authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    PublicKey,
    KeyboardInteractive,
    Password,
}

/// One hop of `ProxyJump`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProxyHop {
    pub user: Option<String>,
    pub host: String,
    pub port: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Any,
    V4,
    V6,
}

impl Family {
    pub(super) fn admits(self, address: IpAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        }
    }
}

/// Unless the setting `timeout` or `ConnectTimeout` says otherwise. `windlass config` shows it as the default of that setting.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const ALIVE_COUNT: usize = 3;

impl SshSettings {
    /// Reads what is said about a target. An option that is not understood is an error that names it.
    pub(super) fn of_target(target: &Target) -> Result<SshSettings, Error> {
        let mut options = Options::within(&target.surroundings);
        let mut put = |keyword: &str, value: String| options.set_option(keyword, vec![value]);
        if let Some(user) = &target.user {
            put("user", user.clone());
        }
        if let Some(port) = target.port {
            put("port", port.to_string());
        }
        if let Some(file) = &target.private_key_file {
            put("identityfile", file.display().to_string());
        }
        if let Some(limit) = target.connect_timeout {
            put("connecttimeout", limit.as_secs().max(1).to_string());
        }
        let what = if target.address == target.name { "its name" } else { "ansible_host" };
        names::host(&target.address, what).map_err(|message| refusal(target, &message))?;
        let user = target.user.iter().try_for_each(|user| names::user(user, "ansible_user"));
        user.map_err(|message| refusal(target, &message))?;
        let given = arguments::parse_ssh_arguments(&target.arguments, &mut options)
            .map_err(|message| refusal(target, &message))?;
        let config_file = match target.confined {
            Some(_) => Some(PathBuf::from("none")),
            None => target.config_file.clone().or(given.config_file),
        };
        let mut settings = SshSettings::resolve(&target.address, options, config_file.as_deref(), target.host_keys)
            .map_err(|message| refusal(target, &message))?;
        settings.label = target.name.clone();
        settings.password = target.password.clone();
        settings.passphrase = target.private_key_passphrase.clone();
        settings.private_key = target.private_key.clone();
        settings.fingerprint = target.fingerprint.clone();
        // Finer than the whole seconds of a configuration file.
        settings.connect_timeout = target.connect_timeout.unwrap_or(settings.connect_timeout);
        if target.confined.is_some() {
            settings.confine(target)?;
        }
        Ok(settings)
    }

    /// Leaves nothing of this side: no key, agent, known host or program that the target does not name itself. Its jump
    /// hosts are the person's own, and so are the files that count for them.
    fn confine(&mut self, target: &Target) -> Result<(), Error> {
        if self.fingerprint.is_none() {
            let message = format!("cannot connect to {}: its host key is not pinned", target.name);
            let hint = "set the fingerprint of every host in a resource from an API: spec.hosts[].fingerprint";
            return Err(Error::Unreachable { message, hint: Some(hint.to_owned()) });
        }
        if self.proxy_command.is_some() {
            return Err(refusal(target, "ProxyCommand is not used for a resource from an API"));
        }
        self.identity_files.get_or_insert_default();
        self.agent = None;
        self.host_keys = HostKeys::Strict;
        self.user_known_hosts.clear();
        self.global_known_hosts.clear();
        self.config_file.clone_from(&target.config_file);
        Ok(())
    }

    /// Reads what is said about a jump host. As with `ssh -J`, only the configuration files count for it, and the
    /// policy on host keys; neither the inventory's user, key nor password are the jump host's.
    pub(super) fn of_jump(&self, jump: &ProxyHop, target: &Target) -> Result<SshSettings, Error> {
        let mut options = Options::within(&target.surroundings);
        if let Some(user) = &jump.user {
            options.set_option("user", vec![user.clone()]);
        }
        if let Some(port) = jump.port {
            options.set_option("port", vec![port.to_string()]);
        }
        let mut settings = SshSettings::resolve(&jump.host, options, self.config_file.as_deref(), target.host_keys)
            .map_err(|message| refusal(target, &format!("jump host {}: {message}", jump.host)))?;
        settings.label = format!("{}'s jump host {}", target.name, jump.host);
        settings.connect_timeout = self.connect_timeout;
        Ok(settings)
    }

    fn resolve(
        given: &str,
        mut options: Options,
        config_file: Option<&Path>,
        host_keys: Option<HostKeys>,
    ) -> Result<SshSettings, String> {
        let around = options.around.clone();
        parse::read_files(given, &mut options, config_file)?;
        let user = options.take_option("user").unwrap_or_else(|| local_user(&around));
        let port = options.parsed("port", "a port", |port| port.parse().ok().filter(|port| *port != 0))?.unwrap_or(22);
        let address = match options.take_option("hostname") {
            Some(name) => Tokens::host_tokens(given, &around).expand_tokens(&name, "HostName")?,
            None => given.to_lowercase(),
        };
        // Again, with what the files of this side made of them.
        names::host(&address, "HostName")?;
        names::user(&user, "User")?;
        let tokens = Tokens { given, address: &address, port, user: &user, around: &around };
        let agent = options.take_option("identityagent");
        let no_proxy = |command: &String| !command.eq_ignore_ascii_case("none");
        let known = |options: &mut Options, keyword: &str, defaults: &[&str]| {
            let named = options.take_all(keyword);
            let named = if named.is_empty() { defaults.iter().map(ToString::to_string).collect() } else { named };
            let named = named.iter().filter(|file| !file.eq_ignore_ascii_case("none"));
            named.map(|file| tokens.expand_path(file, keyword)).collect::<Result<Vec<_>, _>>()
        };
        let user_known_hosts =
            known(&mut options, "userknownhostsfile", &["~/.ssh/known_hosts", "~/.ssh/known_hosts2"])?;
        let global_known_hosts =
            known(&mut options, "globalknownhostsfile", &["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"])?;
        Ok(SshSettings {
            label: given.to_owned(),
            directory: home(&around).join(".ssh"),
            port,
            password: None,
            passphrase: None,
            private_key: None,
            fingerprint: None,
            identity_files: files(&mut options, "identityfile", &tokens)?,
            certificate_files: files(&mut options, "certificatefile", &tokens)?.unwrap_or_default(),
            identities_only: options.parse_flag("identitiesonly")?.unwrap_or(false),
            agent: agent_socket(agent, &tokens)?,
            methods: methods(&mut options)?,
            jumps: options.take_option("proxyjump").map_or(Ok(Vec::new()), |list| jumps(&list))?,
            proxy_command: options
                .take_option("proxycommand")
                .filter(no_proxy)
                .map(|command| tokens.expand_tokens(&command, "ProxyCommand"))
                .transpose()?,
            host_keys: host_key_policy(&mut options, host_keys)?,
            host_key_alias: options.take_option("hostkeyalias"),
            user_known_hosts,
            global_known_hosts,
            revoked_host_keys: files(&mut options, "revokedhostkeys", &tokens)?.unwrap_or_default(),
            hash_known_hosts: options.parse_flag("hashknownhosts")?.unwrap_or(false),
            connect_timeout: options
                .parsed("connecttimeout", "a time", parse::duration)?
                .filter(|limit| !limit.is_zero())
                .unwrap_or(CONNECT_TIMEOUT),
            alive_interval: Some(
                options.parsed("serveraliveinterval", "a time", parse::duration)?.unwrap_or(ALIVE_INTERVAL),
            )
            .filter(|interval| !interval.is_zero()),
            alive_count: options
                .parsed("serveralivecountmax", "a number", |count| count.parse().ok())?
                .unwrap_or(ALIVE_COUNT),
            family: family(&mut options)?,
            config_file: config_file.map(Path::to_owned),
            user,
            address,
        })
    }

    /// The name that the host's key is recorded under.
    pub(super) fn known_name(&self) -> Name {
        match &self.host_key_alias {
            Some(alias) => Name::alias(alias),
            None => Name::new(&self.address, self.port),
        }
    }

    /// `deploy@10.0.0.1:22`
    pub(super) fn host_and_port(&self) -> String {
        format!("{}@{}:{}", self.user, bracketed(&self.address), self.port)
    }
}

/// An IPv6 address in brackets, so that a port can follow.
pub(super) fn bracketed(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

fn refusal(target: &Target, message: &str) -> Error {
    Error::Unreachable { message: format!("cannot connect to {}: {message}", target.name), hint: None }
}

/// Files that may be named several times; `none` names none. None: nothing is said.
fn files(options: &mut Options, keyword: &str, tokens: &Tokens<'_>) -> Result<Option<Vec<PathBuf>>, String> {
    let named = options.take_all(keyword);
    if named.is_empty() {
        return Ok(None);
    }
    let named = named.iter().filter(|file| !file.eq_ignore_ascii_case("none"));
    named.map(|file| tokens.expand_path(file, keyword)).collect::<Result<_, _>>().map(Some)
}

fn agent_socket(configured: Option<String>, tokens: &Tokens<'_>) -> Result<Option<PathBuf>, String> {
    let from = |variable: &str| tokens.around.variable(variable).map(PathBuf::from);
    Ok(match configured.as_deref() {
        None | Some("SSH_AUTH_SOCK") => from("SSH_AUTH_SOCK"),
        Some(none) if none.eq_ignore_ascii_case("none") => None,
        Some(variable) if variable.starts_with('$') && !variable.starts_with("${") => from(&variable[1..]),
        Some(path) => Some(tokens.expand_path(path, "IdentityAgent")?),
    })
}

/// The methods in the order to try them, without those switched off.
fn methods(options: &mut Options) -> Result<Vec<Method>, String> {
    let all = [
        ("publickey", "pubkeyauthentication", Method::PublicKey),
        ("keyboard-interactive", "kbdinteractiveauthentication", Method::KeyboardInteractive),
        ("password", "passwordauthentication", Method::Password),
    ];
    let mut order: Vec<Method> = all.iter().map(|(_, _, method)| *method).collect();
    if let Some(preferred) = options.take_option("preferredauthentications") {
        let named = |name: &str| all.iter().find(|(known, _, _)| *known == name.trim()).map(|(_, _, method)| *method);
        order = preferred.split(',').filter_map(named).collect();
    }
    for (_, keyword, method) in all {
        let on = options.parsed(keyword, "yes or no", |value| match value.to_lowercase().as_str() {
            "unbound" | "host-bound" if method == Method::PublicKey => Some(true),
            word => truth::of_ssh(word),
        })?;
        order.retain(|kept| on != Some(false) || *kept != method);
    }
    Ok(order)
}

fn host_key_policy(options: &mut Options, given: Option<HostKeys>) -> Result<HostKeys, String> {
    let configured = options.parsed("stricthostkeychecking", "one of yes, accept-new, no", |value| {
        match value.to_lowercase().as_str() {
            // windlass cannot ask while it connects to many hosts.
            "ask" => Some(HostKeys::Strict),
            "accept-new" => Some(HostKeys::AcceptNew),
            "off" => Some(HostKeys::Off),
            word => truth::of_ssh(word).map(|strict| if strict { HostKeys::Strict } else { HostKeys::Off }),
        }
    })?;
    Ok(given.or(configured).unwrap_or(HostKeys::Strict))
}

fn family(options: &mut Options) -> Result<Family, String> {
    let family = options.parsed("addressfamily", "one of any, inet, inet6", |value| {
        Some(match value.to_lowercase().as_str() {
            "any" => Family::Any,
            "inet" => Family::V4,
            "inet6" => Family::V6,
            _ => return None,
        })
    })?;
    Ok(family.unwrap_or(Family::Any))
}

/// `user@host:port,ssh://user@[address]:port`, nearest to us first; `none` is no jump.
fn jumps(list: &str) -> Result<Vec<ProxyHop>, String> {
    if list.eq_ignore_ascii_case("none") {
        return Ok(Vec::new());
    }
    let read = |hop: &str| {
        let jump = jump(hop.trim()).ok_or_else(|| format!("invalid jump host {hop:?}"))?;
        names::host(&jump.host, "the jump host")?;
        jump.user.iter().try_for_each(|user| names::user(user, "the jump host's user"))?;
        Ok(jump)
    };
    list.split(',').map(read).collect()
}

fn jump(hop: &str) -> Option<ProxyHop> {
    let hop = hop.strip_prefix("ssh://").map_or(hop, |rest| rest.trim_end_matches('/'));
    let (user, place) = match hop.rsplit_once('@') {
        Some((user, place)) => (Some(user.to_owned()).filter(|user| !user.is_empty()), place),
        None => (None, hop),
    };
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
        }
        // More than one colon without brackets is a bare IPv6 address.
        None if place.matches(':').count() == 1 => place.split_once(':').map(|(host, port)| (host, Some(port)))?,
        None => (place, None),
    };
    let port = port.map(|port| port.parse().ok().filter(|port| *port != 0).ok_or(())).transpose().ok()?;
    Some(ProxyHop { user, host: host.to_owned(), port }).filter(|jump| !jump.host.is_empty())
}

#[cfg(test)]
mod tests;
