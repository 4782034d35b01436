//! The values of `%h`, `~` and `${VARIABLE}` in OpenSSH's configuration.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::value::ProcessEnvironment;

/// The values of the `%` tokens of one host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens<'a> {
    pub given: &'a str,
    pub address: &'a str,
    pub port: u16,
    pub user: &'a str,
    pub around: &'a ProcessEnvironment,
}

impl<'a> Tokens<'a> {
    /// When only the host's name is known yet.
    pub(super) fn host_tokens(given: &'a str, around: &'a ProcessEnvironment) -> Self {
        Tokens { given, address: given, port: 0, user: "", around }
    }

    /// Replaces the tokens of a value. `keyword` is for the message about one that is not known.
    pub(super) fn expand_tokens(&self, text: &str, keyword: &str) -> Result<String, String> {
        let mut expanded = String::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                expanded.push(c);
                continue;
            }
            match rest.next() {
                Some('%') => expanded.push('%'),
                Some('h') => expanded.push_str(self.address),
                Some('n' | 'k') => expanded.push_str(self.given),
                Some('r') => expanded.push_str(self.user),
                Some('p') => expanded.push_str(&self.port.to_string()),
                Some('u') => expanded.push_str(&local_user(self.around)),
                Some('i') => expanded.push_str(&user_id().to_string()),
                Some('d') => expanded.push_str(&home(self.around).to_string_lossy()),
                Some('l') => expanded.push_str(&host_name()),
                Some('L') => expanded.push_str(host_name().split('.').next().unwrap_or_default()),
                Some(other) => return Err(format!("%{other} in {keyword} {text:?} is not supported")),
                None => return Err(format!("{keyword} {text:?} ends with a single %")),
            }
        }
        Ok(expanded)
    }

    /// As [`Tokens::expand_tokens`], and `~` and `${VARIABLE}` too.
    pub(super) fn expand_path(&self, text: &str, keyword: &str) -> Result<PathBuf, String> {
        // A name is one component of a path, so it cannot point to another directory.
        for (token, name) in [("%h", self.address), ("%n", self.given), ("%k", self.given), ("%r", self.user)] {
            if text.replace("%%", "").contains(token) && (name.contains('/') || name == "..") {
                return Err(format!("{keyword} {text:?} would point to another directory: {token} is {name:?}"));
            }
        }
        let text = self.expand_tokens(&self.variables(text)?, keyword)?;
        Ok(tilde(self.around, &text))
    }

    fn variables(&self, text: &str) -> Result<String, String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or_else(|| format!("{text:?} has no closing brace"))?;
            expanded.push_str(before);
            let value = self.around.variables.get(name);
            expanded.push_str(value.ok_or_else(|| format!("the environment variable {name} is not set"))?);
            rest = after;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }
}

/// Replaces `~/` by the home directory.
pub(super) fn tilde(around: &ProcessEnvironment, text: &str) -> PathBuf {
    crate::value::home::expand_in(Some(&home(around)), text)
}

/// The home directory of the user who runs windlass.
pub(crate) fn home(around: &ProcessEnvironment) -> PathBuf {
    around.home.clone().unwrap_or_else(|| PathBuf::from("/"))
}

/// The name of the user who runs windlass.
pub(crate) fn local_user(around: &ProcessEnvironment) -> String {
    let from_environment = || around.variables.get("USER").or_else(|| around.variables.get("LOGNAME")).cloned();
    account()
        .and_then(|fields| fields.first().cloned())
        .or_else(from_environment)
        .unwrap_or_else(|| user_id().to_string())
}

/// The user ID of the user who runs windlass.
pub(crate) fn user_id() -> u32 {
    fs::metadata("/proc/self").map_or(0, |own| own.uid())
}

/// Our line of `/etc/passwd`.
fn account() -> Option<Vec<String>> {
    let uid = user_id().to_string();
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    accounts.lines().map(fields).find(|fields| fields.get(2) == Some(&uid))
}

fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).unwrap_or_default()
}
