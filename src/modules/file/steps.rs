//! What `file` does on the host, one step each.

use super::super::file_attributes::is_empty;
use super::super::{Error, host_path};
use crate::remote::{Attributes, Command, Links, Remote};

/// Paths per command: well below what a host lets through as arguments.
const MOST_PATHS: usize = 200;

pub(super) enum FileStep {
    Remove(String),
    /// Only an empty one.
    RemoveDirectory(String),
    MakeFile(String, Attributes),
    MakeDirectory(String, Attributes),
    Symlink {
        target: String,
        path: String,
    },
    HardLink {
        target: String,
        path: String,
    },
    SetAttributes(Vec<String>, Attributes, Links),
    /// `touch` with these options.
    Touch(Vec<String>, String),
}

impl FileStep {
    /// How many paths it is about.
    pub(super) fn count(&self) -> usize {
        match self {
            FileStep::SetAttributes(paths, ..) => paths.len(),
            _ => 1,
        }
    }

    pub(super) async fn apply_step(self, remote: &Remote) -> Result<(), Error> {
        match self {
            FileStep::Remove(path) => remote.remove(&path).await?,
            FileStep::RemoveDirectory(path) => run(remote, &format!("remove {path}"), ["rmdir", "--", &path]).await?,
            FileStep::MakeFile(path, attributes) => remote.write(&path, b"", &attributes).await?,
            FileStep::MakeDirectory(path, attributes) => remote.make_directory(&path, &attributes).await?,
            FileStep::Symlink { target, path } => remote.symlink(&target, &path).await?,
            FileStep::HardLink { target, path } => hard_link(remote, &target, &path).await?,
            FileStep::SetAttributes(paths, attributes, links) => match paths.as_slice() {
                [path] => remote.set_attributes(path, &attributes, links).await?,
                paths => set_attributes(remote, paths, &attributes, links).await?,
            },
            FileStep::Touch(options, path) => {
                let what = format!("set the times of {path}");
                let argv = ["touch"].into_iter().chain(options.iter().map(String::as_str)).chain(["--", &path]);
                run(remote, &what, argv).await?;
            }
        }
        Ok(())
    }
}

/// Steps for many paths; those that lack the same share a step.
pub(super) fn set_on_many(lacking: Vec<(String, Attributes, Links)>) -> Vec<FileStep> {
    let mut groups: Vec<(Vec<String>, Attributes, Links)> = Vec::new();
    for (path, attributes, links) in lacking.into_iter().filter(|(_, attributes, _)| !is_empty(attributes)) {
        match groups.iter_mut().find(|(_, other, same)| *other == attributes && *same == links) {
            Some((paths, ..)) => paths.push(path),
            None => groups.push((vec![path], attributes, links)),
        }
    }
    groups.into_iter().map(|(paths, attributes, links)| FileStep::SetAttributes(paths, attributes, links)).collect()
}

async fn set_attributes(remote: &Remote, paths: &[String], attributes: &Attributes, links: Links) -> Result<(), Error> {
    let group = attributes.group.as_ref().map(|group| format!(":{group}")).unwrap_or_default();
    let owner = format!("{}{group}", attributes.owner.as_deref().unwrap_or_default());
    let mode = attributes.mode.map(|mode| format!("{mode:o}"));
    let what = format!("set the attributes of {} paths", paths.len());
    for paths in paths.chunks(MOST_PATHS) {
        let paths = || paths.iter().map(String::as_str);
        // Owner first: chown clears setuid and setgid.
        if !owner.is_empty() {
            let keep_links = (links == Links::Keep).then_some("-h");
            let options = ["chown"].into_iter().chain(keep_links).chain([owner.as_str(), "--"]);
            run(remote, &what, options.chain(paths())).await?;
        }
        if let Some(mode) = &mode {
            run(remote, &what, ["chmod", mode, "--"].into_iter().chain(paths())).await?;
        }
    }
    Ok(())
}

/// Makes the link beside the path and renames it, so that the path is never missing.
async fn hard_link(remote: &Remote, target: &str, path: &str) -> Result<(), Error> {
    const SCRIPT: &str =
        r#"new=$3/.windlass.$$; ln -- "$1" "$new" && mv -f -- "$new" "$2" || { rm -f -- "$new"; exit 1; }"#;
    let directory = host_path::parent(path);
    run(remote, &format!("link {path} to {target}"), ["sh", "-c", SCRIPT, "sh", target, path, directory]).await
}

async fn run<'a>(remote: &Remote, what: &str, argv: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
    let output = remote.run(&Command::program(argv)).await?;
    if output.code == 0 {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(Error::failed(format!("cannot {what}: {reason}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lack_the_same_share_a_step_and_others_have_none() {
        let mode = |mode| Attributes { mode, ..Attributes::default() };
        let steps = set_on_many(vec![
            ("a".into(), mode(Some(0o600)), Links::Follow),
            ("b".into(), mode(None), Links::Follow),
            ("c".into(), mode(Some(0o700)), Links::Follow),
            ("d".into(), mode(Some(0o600)), Links::Follow),
        ]);
        assert_eq!(steps.iter().map(FileStep::count).collect::<Vec<_>>(), [2, 1]);
    }
}
