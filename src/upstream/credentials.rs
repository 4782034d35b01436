//! Logins of registries from `~/.docker/config.json`: those that are in the file itself. Helper programs are not run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine;
use serde::Deserialize;

use crate::bundle::Error;
use crate::value::ProcessEnvironment;

/// The key of docker.io in that file.
const HUB: &str = "https://index.docker.io/v1/";

/// By the server's name; `user:password` in base64.
#[derive(Default)]
pub(super) struct Logins(BTreeMap<String, String>);

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    auths: BTreeMap<String, Auth>,
}

#[derive(Deserialize)]
struct Auth {
    #[serde(default)]
    auth: String,
}

impl Logins {
    pub(super) fn read_logins(around: &ProcessEnvironment) -> Result<Logins, Error> {
        let named = around.variable("DOCKER_CONFIG").map(PathBuf::from);
        let directory = named.or_else(|| around.home.as_ref().map(|home| home.join(".docker")));
        let Some(path) = directory.map(|directory| directory.join("config.json")) else { return Ok(Logins::default()) };
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Logins::default()),
            Err(error) => return Err(Error::io("read", &path, &error)),
        };
        // The parser's own words are left out: they might quote a password.
        let unreadable = |_| Error::new(format!("{} is not a configuration of docker", path.display()));
        let config: Config = serde_json::from_slice(&text).map_err(unreadable)?;
        let given = config.auths.into_iter().filter(|(_, login)| !login.auth.is_empty());
        Ok(Logins(given.map(|(server, login)| (server, login.auth)).collect()))
    }

    /// The value of a header Authorization for a server.
    pub(super) fn login_for(&self, server: &str) -> Option<String> {
        let hub = matches!(server, "registry-1.docker.io" | "docker.io");
        let keys = [server.to_owned(), format!("https://{server}"), format!("https://{server}/v2/"), HUB.to_owned()];
        let found = keys.iter().take(if hub { 4 } else { 3 }).find_map(|key| self.0.get(key))?;
        // Sent as it is: what is no base64 is no header either.
        base64::engine::general_purpose::STANDARD.decode(found).ok()?;
        Some(format!("Basic {found}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_belongs_to_its_server() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".docker")).unwrap();
        let text =
            r#"{"auths": {"h:5000": {"auth": "dTpw"}, "https://index.docker.io/v1/": {"auth": "eDp5"}, "e": {}}}"#;
        std::fs::write(home.path().join(".docker/config.json"), text).unwrap();
        let around = ProcessEnvironment { home: Some(home.path().into()), ..ProcessEnvironment::default() };
        let logins = Logins::read_logins(&around).unwrap();
        assert_eq!(logins.login_for("h:5000").as_deref(), Some("Basic dTpw"));
        assert_eq!(logins.login_for("registry-1.docker.io").as_deref(), Some("Basic eDp5"));
        assert_eq!((logins.login_for("h"), logins.login_for("e"), logins.login_for("other")), (None, None, None));
        std::fs::write(home.path().join(".docker/config.json"), "{secret").unwrap();
        let message = Logins::read_logins(&around).err().unwrap().message;
        assert!(message.ends_with("is not a configuration of docker"), "{message}");
    }
}
