//! How hosts are reached: `spec.ssh` and what a host says itself, as connection variables.

use super::secrets::{SecretKind, Secrets};
use crate::resource::{Bastion, Host, HostKeys, Places, Reference, Ssh};
use crate::value::{Value, Vars};

/// The variables of all hosts.
pub(super) fn of_all(ssh: &Ssh, places: &Places, secrets: &Secrets) -> Vars {
    let mut vars = Vars::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            vars.insert(name.into(), value);
        }
    };
    set("ansible_user", ssh.user.as_deref().map(Value::from));
    set("ansible_port", ssh.port.map(Value::from));
    if let Some(key) = &ssh.private_key {
        match &key.file {
            Some(file) if !secrets.is_encrypted(file) => {
                set("ansible_private_key_file", Some(places.resolve_given(file).to_string_lossy().into()))
            }
            _ => set("ansible_private_key", Some(secrets.secret_value(key, SecretKind::SshKey))),
        }
    }
    let password = |reference: &Option<Reference>| {
        reference.as_ref().map(|reference| secrets.secret_value(reference, SecretKind::Password))
    };
    set("ansible_private_key_passphrase", password(&ssh.passphrase));
    set("ansible_password", password(&ssh.password));
    set("ansible_become_password", password(&ssh.become_password));
    set(
        "ansible_host_key_checking",
        ssh.host_keys.map(|keys| match keys {
            HostKeys::Strict => Value::from(true),
            HostKeys::AcceptNew => Value::from("accept-new"),
        }),
    );
    set("ansible_ssh_common_args", arguments(Some(ssh), None, places).map(Value::from));
    vars
}

/// What a host says itself.
pub(super) fn host_connection_vars(host: &Host, ssh: Option<&Ssh>, places: &Places) -> Vars {
    let mut vars = Vars::new();
    vars.insert("ansible_host".into(), Value::from(host.address.as_deref().unwrap_or(&host.name)));
    if let Some(port) = host.port {
        vars.insert("ansible_port".into(), Value::from(port));
    }
    if let Some(user) = &host.user {
        vars.insert("ansible_user".into(), Value::from(user.as_str()));
    }
    if let Some(fingerprint) = &host.fingerprint {
        vars.insert("ansible_host_key_fingerprint".into(), Value::from(fingerprint.as_str()));
    }
    if let Some(bastion) = &host.bastion {
        let arguments = arguments(ssh, Some(bastion), places);
        vars.insert("ansible_ssh_common_args".into(), Value::from(arguments.unwrap_or_default()));
    }
    vars
}

/// The options for `ssh` without a variable.
fn arguments(ssh: Option<&Ssh>, own: Option<&Bastion>, places: &Places) -> Option<String> {
    let mut options = Vec::new();
    if let Some(files) = ssh.map(|ssh| &ssh.known_hosts).filter(|files| !files.is_empty()) {
        let files = files.iter().map(|file| literal(&places.resolve_given(file).to_string_lossy()));
        options.push(format!("UserKnownHostsFile={}", files.collect::<Vec<_>>().join(" ")));
    }
    match ssh.and_then(|ssh| ssh.agent.as_deref()) {
        Some("none") => options.push("IdentityAgent=none".to_owned()),
        Some(socket) => {
            options.push(format!("IdentityAgent={}", literal(&places.resolve_given(socket).to_string_lossy())))
        }
        None => {}
    }
    if let Some(bastion) = own.or(ssh.and_then(|ssh| ssh.bastion.as_ref())) {
        options.push(format!("ProxyJump={}", hop(bastion)));
    }
    let quoted = options.iter().map(|option| format!("-o '{}'", option.replace('\'', "'\\''")));
    (!options.is_empty()).then(|| quoted.collect::<Vec<_>>().join(" "))
}

/// A path with special characters escaped.
fn literal(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

fn hop(bastion: &Bastion) -> String {
    let user = bastion.user.as_ref().map_or(String::new(), |user| format!("{user}@"));
    let address = match bastion.address.contains(':') {
        true => format!("[{}]", bastion.address),
        false => bastion.address.clone(),
    };
    let port = bastion.port.map_or(String::new(), |port| format!(":{port}"));
    format!("{user}{address}{port}")
}
