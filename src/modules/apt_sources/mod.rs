//! Where apt gets packages from: `apt_repository` (one line of a list) and `deb822_repository` (a separate file).

pub(super) mod deb822;
mod list;
pub(super) mod repository;
#[cfg(test)]
mod tests;

use super::Error;
use crate::remote::{Command, Probe};

/// Where the host's apt looks, as its configuration says.
struct Places {
    /// `/etc/apt/sources.list`
    list: String,
    /// `/etc/apt/sources.list.d`
    parts: String,
    /// `/etc/apt/keyrings`
    keyrings: String,
}

impl Places {
    async fn look(probe: &Probe) -> Result<Places, Error> {
        let words =
            ["apt-config", "shell", "L", "Dir::Etc::sourcelist/f", "D", "Dir::Etc::sourceparts/d", "E", "Dir::Etc/d"];
        let output = probe.query(&Command::program(words)).await?;
        if output.code != 0 {
            return Err(Error::failed("the host has no apt: cannot run apt-config"));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            let words = line.and_then(shlex::split).unwrap_or_default();
            words.first().map(|path| path.trim_end_matches('/').to_owned())
        };
        match (value("L"), value("D"), value("E")) {
            (Some(list), Some(parts), Some(etc)) => Ok(Places { list, parts, keyrings: format!("{etc}/keyrings") }),
            _ => Err(Error::failed("apt-config does not print the directory of the source lists")),
        }
    }
}
