//! Which version a file is: as the program says itself, as a directory above it is named, as its neighbours are.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use regex::Regex;

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(10);

static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^0-9A-Za-z.])v?([0-9]+\.[0-9]+\.[0-9]+(?:-(?:alpha|beta|rc)[.0-9]*)?)(?:$|[^0-9.])")
        .expect("the expression is constant")
});

/// The first version in a text, without its `v`.
pub(super) fn first_in(text: &str) -> Option<String> {
    VERSION.captures(text).map(|found| found[1].trim_end_matches('.').to_owned())
}

/// The version in the name of the nearest directory above the file that has one: `etcd-v3.5.21-linux-amd64/etcd`.
pub(super) fn of_path(relative: &Path) -> Option<String> {
    relative.ancestors().skip(1).find_map(|above| first_in(above.file_name()?.to_str()?))
}

/// A program's output for `--version`, or for `version`. None: it does not run here, or has no such output.
pub(super) fn as_it_says(program: &Path) -> Option<String> {
    ["--version", "version"].into_iter().find_map(|question| first_in(&answer(program, question)?))
}

fn answer(program: &Path, question: &str) -> Option<String> {
    let mut child = Command::new(program)
        .arg(question)
        // It must not query a server's version, and finds no configuration to read.
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        #[expect(clippy::let_underscore_must_use, reason = "the output up to an error is used")]
        let _ = std::io::Read::read_to_end(&mut stdout, &mut text);
        text
    });
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Ok(Some(_)) = child.try_wait() {
            return reader.join().ok().map(|text| String::from_utf8_lossy(&text).into_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    #[expect(clippy::let_underscore_must_use, reason = "the program may have exited already")]
    let _ = child.kill();
    #[expect(clippy::let_underscore_must_use, reason = "a killed program has no exit code")]
    let _ = child.wait();
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (said, version) in [
            ("Kubernetes v1.36.2\n", "1.36.2"),
            ("etcd Version: 3.4.23\nGit SHA: Not provided\nGo Version: go1.19.8\n", "3.4.23"),
            (
                "x version: version.Info{GitVersion:\"v1.19.0-rc.0\", GitCommit:\"a957\", GoVersion:\"go1.26.5\"}",
                "1.19.0-rc.0",
            ),
        ] {
            assert_eq!(first_in(said).as_deref(), Some(version), "{said}");
        }
        for nothing in ["", "go1.26.5", "10.0.0.1", "1.2", "2026-08-13"] {
            assert_eq!(first_in(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn the_nearest_directory_that_names_a_version_counts() {
        assert_eq!(of_path(Path::new("etcd-v3.5.21-linux-amd64/etcd")).as_deref(), Some("3.5.21"));
        assert_eq!(of_path(Path::new("1.18.2/karmada-1.19.0-rc.0/crds/a.yaml")).as_deref(), Some("1.19.0-rc.0"));
        assert_eq!(of_path(Path::new("amd64/etcd-3.5.21")), None);
    }
}
