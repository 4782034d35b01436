//! GNU tar on the host: what is in an archive, whether it is unpacked already, unpacking it.

use super::super::Error;
use super::archive::{Archive, refused, remove_files};
use crate::remote::{Command, Output, Probe, Remote};

/// Arguments that all uses share; `verb` first, members last.
fn command(archive: &Archive, verb: &[&str]) -> Command {
    let mut argv: Vec<String> = vec!["tar".into()];
    argv.extend(verb.iter().map(|word| (*word).to_owned()));
    argv.extend(["-C".to_owned(), archive.dest.clone()]);
    argv.extend(archive.format.option().map(str::to_owned));
    if !archive.options.is_empty() {
        argv.push("--show-transformed-names".to_owned());
        argv.extend_from_slice(&archive.options);
    }
    argv.extend(archive.exclude.iter().map(|name| format!("--exclude={name}")));
    argv.extend(["-f".to_owned(), archive.path.clone()]);
    if !archive.include.is_empty() {
        argv.extend(["--wildcards".to_owned(), "--".to_owned()]);
        argv.extend_from_slice(&archive.include);
    }
    let mut command = Command::program(argv);
    // Its words are read.
    command.environment.insert("LC_ALL".to_owned(), "C".to_owned());
    command
}

/// The names in the archive as they are unpacked.
pub(super) async fn archive_names(probe: &Probe, archive: &Archive) -> Result<Vec<String>, Error> {
    let output = probe.query(&command(archive, &["--list", "--quoting-style=escape"])).await?;
    if output.code != 0 {
        return Err(refused(&format!("list {}", archive.path), &output.stderr));
    }
    Ok(names_in(&output.stdout))
}

/// Whether all that is in the archive is there as it is in the archive.
pub(super) async fn is_unpacked(probe: &Probe, archive: &Archive) -> Result<bool, Error> {
    let output = probe.query(&command(archive, &["--diff"])).await?;
    // Differences in what a task sets anyway do not count, so the code alone does not tell.
    let is_root = probe.user() == "root";
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let text = String::from_utf8_lossy(&text);
    let is_different = text.lines().any(|line| differs(line, archive, is_root));
    // 2 is a fatal error, 1 a difference; a tar that was killed has another code, and says nothing.
    let has_compared = match output.code {
        0 | 1 => true,
        2 => is_missing_only(&text),
        _ => false,
    };
    if !is_different && !has_compared {
        let mut words = output.stderr;
        words.extend(format!(" (tar ended with code {})", output.code).as_bytes());
        return Err(refused(&format!("compare {} with {}", archive.path, archive.dest), &words));
    }
    Ok(!is_different)
}

pub(super) async fn unpack_tar(remote: &Remote, archive: &Archive) -> Result<(), Error> {
    let mut verb = vec!["--extract", "--verbose", "--quoting-style=escape"];
    if archive.keep_newer {
        verb.push("--keep-newer-files");
    }
    // What is newer than this was written by tar.
    let begun = remote.temporary_directory().await?;
    let Output { code, stdout, stderr } = remote.run(&command(archive, &verb)).await?;
    if code == 0 {
        let flushed = remote.flush(&archive.dest).await;
        // The disk refused a part of it, and which part is unknown: a task with `creates` would take an incomplete file for complete.
        if flushed.is_err() {
            remove_files(remote, archive, &names_in(&stdout), &begun).await?;
        }
        return Ok(flushed?);
    }
    remove_parts(remote, archive, &stdout, &begun).await?;
    Err(refused(&format!("unpack {} to {}", archive.path, archive.dest), &stderr))
}

/// Removes the files that tar began, as `begun` lists them, and could not write completely, for example on a full disk: a task with
/// `creates` would take such a file for complete.
async fn remove_parts(remote: &Remote, archive: &Archive, listed: &[u8], begun: &str) -> Result<(), Error> {
    let listed = names_in(listed);
    let output = remote.query(&command(archive, &["--diff", "--quoting-style=escape"])).await?;
    let mut parts: Vec<String> = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let part = [": Size differs", ": Contents differ"].iter().find_map(|end| line.strip_suffix(end));
        parts.extend(part.map(extracted));
    }
    parts.dedup();
    parts.retain(|part| listed.contains(part));
    remove_files(remote, archive, &parts, begun).await
}

/// The names that tar prints with `--quoting-style=escape`, as they are unpacked.
fn names_in(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    text.lines().map(extracted).filter(|name| !name.is_empty()).collect()
}

/// Where a name that tar prints is unpacked to: without leading slashes, and without all up to the last `..`.
fn extracted(line: &str) -> String {
    let name = unescape(line);
    let parts: Vec<&str> = name.split('/').collect();
    let from = parts.iter().rposition(|part| *part == "..").map_or(0, |at| at + 1);
    parts[from..].join("/").trim_start_matches('/').to_owned()
}

/// Whether a line that `tar --diff` printed is of a difference that unpacking would end.
fn differs(line: &str, archive: &Archive, is_root: bool) -> bool {
    // `--strip-components` leaves names that are empty.
    if line.ends_with(": : Warning: Cannot stat: No such file or directory") {
        return false;
    }
    let ends = [
        ": Mod time differs",
        ": Symlink differs",
        ": Contents differ",
        ": Size differs",
        ": File type differs",
        ": No such file or directory",
    ];
    ends.iter().any(|end| line.ends_with(end))
        || line.contains(": Not linked to ")
        || is_root && archive.owner.is_none() && line.ends_with(": Uid differs")
        || is_root && archive.group.is_none() && line.ends_with(": Gid differs")
        || !archive.has_mode && line.ends_with(": Mode differs")
}

/// Whether tar complains only about names that stripping made empty.
fn is_missing_only(text: &str) -> bool {
    let mut complaints = text.lines().filter(|line| line.starts_with("tar: ")).peekable();
    complaints.peek().is_some()
        && complaints.all(|line| line.contains(": Warning: ") || line.contains("Exiting with failure status"))
}

/// A name as `--quoting-style=escape` writes it.
fn unescape(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(digit) = rest.next_if(|byte| matches!(byte, b'0'..=b'7')) {
                        value = value * 8 + u32::from(digit - b'0');
                    }
                }
                bytes.extend(u8::try_from(value));
            }
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'a') => bytes.push(7),
            Some(b'b') => bytes.push(8),
            Some(b'v') => bytes.push(11),
            Some(b'f') => bytes.push(12),
            Some(other) => bytes.push(other),
            None => bytes.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for (name, inside) in [
            ("a/b", "a/b"),
            ("/etc/x", "etc/x"),
            ("../../v", "v"),
            ("a/../../b/c", "b/c"),
            ("a/..", ""),
            ("..x/y", "..x/y"),
        ] {
            assert_eq!(extracted(name), inside);
        }
        assert_eq!(extracted(r"d/caf\303\251/"), "d/café/");
    }

    #[test]
    fn names_are_unescaped() {
        assert_eq!(unescape(r"a\ b\nc\\d"), "a b\nc\\d");
        assert_eq!(unescape(r"caf\303\251"), "café");
    }
}
