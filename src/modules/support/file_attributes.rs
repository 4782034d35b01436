//! Owner, group and permissions: what a task requests, how a file differs, and how both are reported.

use serde_json::json;

use crate::modules::file_mode::{Mode, octal};
use crate::modules::{Diff, Error, Outcome, file_labels};
use crate::remote::{self, Attributes, Command, FileKind, Links, Probe, Stat};

/// The attributes that a task asks for.
#[derive(Debug, Clone, Default)]
pub(in crate::modules) struct DesiredAttributes {
    pub owner: Option<String>,
    pub group: Option<String>,
    pub mode: Option<Mode>,
    umask: u32,
}

impl DesiredAttributes {
    /// Reads the arguments `owner`, `group` and `mode`. Asks the host for its umask if the mode depends on it.
    pub(in crate::modules) async fn load_wanted(
        probe: &Probe,
        owner: Option<&str>,
        group: Option<&str>,
        mode: Option<&str>,
    ) -> Result<DesiredAttributes, Error> {
        let mode = mode.map(Mode::parse_mode);
        let umask = match mode {
            Some(Mode::Symbolic(_)) => umask(probe).await?,
            _ => 0,
        };
        Ok(DesiredAttributes { owner: owner.map(str::to_owned), group: group.map(str::to_owned), mode, umask })
    }

    /// These attributes with another mode.
    pub(in crate::modules) fn with_mode(&self, mode: Option<Mode>) -> DesiredAttributes {
        DesiredAttributes { mode, ..self.clone() }
    }

    /// Whether no attribute is requested.
    pub(in crate::modules) fn is_nothing(&self) -> bool {
        self.owner.is_none() && self.group.is_none() && self.mode.is_none()
    }

    /// What differs from a file that is there.
    pub(in crate::modules) fn lacking(&self, stat: &Stat) -> Attributes {
        let differs = |wanted: &&String, name: &str, id: u32| wanted.as_str() != name && wanted.parse() != Ok(id);
        let directory = stat.kind == FileKind::Directory;
        let mode = self.mode.as_ref().map(|mode| mode.apply_mode(stat.mode, directory, self.umask));
        Attributes {
            owner: self.owner.as_ref().filter(|owner| differs(owner, &stat.user, stat.uid)).cloned(),
            group: self.group.as_ref().filter(|group| differs(group, &stat.group, stat.gid)).cloned(),
            // A symbolic link has no mode.
            mode: mode.filter(|mode| *mode != stat.mode && stat.kind != FileKind::Link),
        }
    }

    /// What something new is to get.
    pub(in crate::modules) fn for_new(&self, kind: FileKind) -> Attributes {
        let directory = kind == FileKind::Directory;
        let usual = if directory { 0o777 } else { 0o666 } & !self.umask;
        let mode = match &self.mode {
            Some(mode @ (Mode::Exact(_) | Mode::Symbolic(_))) => Some(mode.apply_mode(usual, directory, self.umask)),
            Some(Mode::Preserve) | None => None,
        };
        Attributes { owner: self.owner.clone(), group: self.group.clone(), mode }
    }
}

/// Whether nothing is to be set.
pub(in crate::modules) fn is_empty(attributes: &Attributes) -> bool {
    *attributes == Attributes::default()
}

/// Adds what Ansible returns of a path: `owner`, `mode`, `size`, `state` and so on.
pub(in crate::modules) fn add_attributes(outcome: Outcome, stat: &Stat) -> Outcome {
    // Who has no name is shown by number.
    let name = |name: &str, id: u32| if name.is_empty() { id.to_string() } else { name.to_owned() };
    outcome
        .with("uid", stat.uid)
        .with("gid", stat.gid)
        .with("owner", name(&stat.user, stat.uid))
        .with("group", name(&stat.group, stat.gid))
        .with("mode", octal(stat.mode))
        .with("size", stat.size)
        .with("state", state(Some(stat)))
}

/// Adds Ansible's fields about the file that a result names, unless the module did.
pub(in crate::modules) async fn complete(outcome: Outcome, probe: &Probe) -> Result<Outcome, Error> {
    let named = outcome.values.get("path").or_else(|| outcome.values.get("dest"));
    let Some(path) = named.and_then(|path| path.as_str()).map(str::to_owned) else { return Ok(outcome) };
    if outcome.values.contains_key("uid") {
        return with_context(outcome, &path, probe).await;
    }
    match stat_path(probe, &path).await {
        Ok(Some(stat)) => with_context(add_attributes(outcome, &stat), &path, probe).await,
        // An unreadable file is treated as missing.
        Ok(None) | Err(remote::Error::Refused { .. }) => Ok(outcome),
        Err(error) => Err(error.into()),
    }
}

/// Adds the SELinux context of a file that is there, where SELinux is on.
async fn with_context(outcome: Outcome, path: &str, probe: &Probe) -> Result<Outcome, Error> {
    match probe.has_selinux() {
        true => Ok(match file_labels::context(probe, path).await {
            Ok(context) => outcome.with("secontext", context),
            // As for an unreadable file.
            Err(Error::Failed { .. }) => outcome,
            Err(error) => return Err(error),
        }),
        false => Ok(outcome),
    }
}

/// What is at a path; for a symbolic link with a target, the link itself.
pub(in crate::modules) async fn stat_path(probe: &Probe, path: &str) -> Result<Option<Stat>, remote::Error> {
    let stat = probe.stat(path, Links::Keep).await?;
    match stat.as_ref().map(|stat| stat.kind) {
        Some(FileKind::Link) => Ok(probe.stat(path, Links::Follow).await?.and(stat)),
        _ => Ok(stat),
    }
}

/// Ansible's word for what a path is.
pub(in crate::modules) fn state(stat: Option<&Stat>) -> &'static str {
    match stat {
        None => "absent",
        Some(stat) => match stat.kind {
            FileKind::Link => "link",
            FileKind::Directory => "directory",
            _ if stat.links > 1 => "hard",
            _ => "file",
        },
    }
}

/// The attributes before and after; None if they stay.
pub(in crate::modules) fn attributes_diff(path: &str, stat: &Stat, lacking: &Attributes) -> Option<Diff> {
    if is_empty(lacking) {
        return None;
    }
    let mut properties = Properties::new(path);
    properties.attributes(stat, lacking);
    let header = format!("{path} (file attributes)");
    Some(properties.properties_diff(&header))
}

/// What is said of a path before and after, shown as JSON with sorted names, as Ansible does.
pub(in crate::modules) struct Properties {
    before: serde_json::Map<String, serde_json::Value>,
    after: serde_json::Map<String, serde_json::Value>,
}

impl Properties {
    pub(in crate::modules) fn new(path: &str) -> Self {
        let both = serde_json::Map::from_iter([("path".to_owned(), json!(path))]);
        Properties { before: both.clone(), after: both }
    }

    /// Adds a property if it changes.
    pub(in crate::modules) fn change(
        &mut self,
        name: &str,
        before: impl Into<serde_json::Value>,
        after: impl Into<serde_json::Value>,
    ) {
        let (before, after) = (before.into(), after.into());
        if before != after {
            self.before.insert(name.to_owned(), before);
            self.after.insert(name.to_owned(), after);
        }
    }

    /// Adds the attributes that are lacking.
    pub(in crate::modules) fn attributes(&mut self, stat: &Stat, lacking: &Attributes) {
        if let Some(owner) = &lacking.owner {
            self.change("owner", stat.user.as_str(), owner.as_str());
        }
        if let Some(group) = &lacking.group {
            self.change("group", stat.group.as_str(), group.as_str());
        }
        if let Some(mode) = lacking.mode {
            self.change("mode", octal(stat.mode), octal(mode));
        }
    }

    pub(in crate::modules) fn properties_diff(self, header: &str) -> Diff {
        Diff {
            before_header: header.to_owned(),
            after_header: header.to_owned(),
            before: sorted_json(self.before),
            after: sorted_json(self.after),
        }
    }
}

fn sorted_json(mut map: serde_json::Map<String, serde_json::Value>) -> String {
    map.sort_keys();
    let mut text = format!("{:#}", serde_json::Value::Object(map));
    text.push('\n');
    text
}

async fn umask(probe: &Probe) -> Result<u32, Error> {
    let output = probe.query(&Command::shell("umask")).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    u32::from_str_radix(text.trim(), 8)
        .map_err(|_| Error::failed(format!("the host printed an invalid umask: {:?}", text.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(kind: FileKind, mode: u32) -> Stat {
        Stat {
            kind,
            mode,
            uid: 0,
            gid: 5,
            user: "root".into(),
            group: "tty".into(),
            size: 1,
            inode: 1,
            device: 1,
            links: 1,
            atime: 0.0,
            mtime: 0.0,
            ctime: 0.0,
            link_target: None,
        }
    }

    fn wanted(owner: &str, group: &str, mode: &str) -> DesiredAttributes {
        DesiredAttributes {
            owner: Some(owner.into()),
            group: Some(group.into()),
            mode: Some(Mode::parse_mode(mode)),
            umask: 0o022,
        }
    }

    #[test]
    fn names_and_numbers_mean_the_same_owner() {
        let stat = stat(FileKind::File, 0o644);
        assert!(is_empty(&wanted("root", "tty", "0644").lacking(&stat)));
        assert!(is_empty(&wanted("0", "5", "u=rw,go=r").lacking(&stat)));
        let lacking = wanted("daemon", "6", "0600").lacking(&stat);
        assert_eq!(lacking.owner.as_deref(), Some("daemon"));
        assert_eq!(lacking.group.as_deref(), Some("6"));
        assert_eq!(lacking.mode, Some(0o600));
    }

    #[test]
    fn a_link_never_lacks_a_mode() {
        assert!(is_empty(&wanted("root", "tty", "0600").lacking(&stat(FileKind::Link, 0o777))));
    }

    #[test]
    fn a_symbolic_mode_of_something_new_starts_from_the_umask() {
        assert_eq!(wanted("root", "tty", "g+w").for_new(FileKind::File).mode, Some(0o664));
        assert_eq!(wanted("root", "tty", "o=").for_new(FileKind::Directory).mode, Some(0o750));
        assert_eq!(wanted("root", "tty", "preserve").for_new(FileKind::File).mode, None);
    }

    #[test]
    fn the_diff_shows_only_what_changes() {
        let stat = stat(FileKind::File, 0o644);
        let diff = attributes_diff("/x", &stat, &wanted("root", "tty", "0600").lacking(&stat)).unwrap();
        assert_eq!(diff.before_header, "/x (file attributes)");
        assert_eq!(diff.before, "{\n  \"mode\": \"0644\",\n  \"path\": \"/x\"\n}\n");
        assert_eq!(diff.after, "{\n  \"mode\": \"0600\",\n  \"path\": \"/x\"\n}\n");
    }
}
