//! Packages of the host's system: `package` (whatever the host has), `apt`, `dnf` and `package_facts`.

pub(super) mod apt;
pub(super) mod dnf;
mod dpkg;
pub(super) mod facts;
mod generic;

use crate::remote::{Command, Output, Probe, Remote};

pub(super) use generic::Package;

use super::{Error, Outcome};

/// The first of these programs that the host has.
async fn first_of(probe: &Probe, programs: &[&str]) -> Result<Option<String>, Error> {
    let line = format!(
        "for p in {}; do command -v \"$p\" >/dev/null 2>&1 && echo \"$p\" && exit 0; done; exit 0",
        programs.join(" ")
    );
    let output = probe.query(&Command::shell(line)).await?;
    let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// Messages in English, and no prompts.
fn in_english(mut command: Command) -> Command {
    for (name, value) in [("LC_ALL", "C"), ("DEBIAN_FRONTEND", "noninteractive"), ("DEBIAN_PRIORITY", "critical")] {
        command.environment.insert(name.to_owned(), value.to_owned());
    }
    command
}

/// Runs a package tool; the end of what it said is the error if it fails.
async fn run(remote: &Remote, argv: &[String]) -> Result<Output, Error> {
    let output = remote.run(&in_english(Command::program(argv.iter().cloned()))).await?;
    if output.code == 0 { Ok(output) } else { Err(failure(argv, &output)) }
}

fn failure(argv: &[String], output: &Output) -> Error {
    const LINES: usize = 5;
    let text = String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr });
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let words = lines[lines.len().saturating_sub(LINES)..].join("; ");
    Error::failed(format!("{} failed with code {}: {words}", argv.join(" "), output.code))
}

/// The error of a tool that could not read its database, which is no answer to whether a package is installed. Lines that begin with
/// `absent` only say that a package is not.
fn database_error<'a>(stderr: &'a str, absent: &str) -> Option<&'a str> {
    let is_error = |line: &&str| line.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("error:"));
    stderr.lines().map(str::trim).filter(is_error).find(|line| absent.is_empty() || !line.starts_with(absent))
}

/// What the tools said, one after the other.
fn said(outputs: &[Output]) -> Outcome {
    let all = |part: fn(&Output) -> &Vec<u8>| -> String {
        outputs.iter().map(|output| String::from_utf8_lossy(part(output)).into_owned()).collect()
    };
    let (stdout, stderr) = (all(|output| &output.stdout), all(|output| &output.stderr));
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    Outcome::default()
        .with("stdout_lines", lines(&stdout))
        .with("stderr_lines", lines(&stderr))
        .with("stdout", stdout)
        .with("stderr", stderr)
}

/// Whether a pattern, in which `*` matches anything, matches a whole text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| matches(after, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::matches;

    /// A tool that cannot read its database does not know what is installed.
    #[tokio::test]
    async fn a_broken_database_is_an_error_and_not_an_absent_package() {
        let bench = Bench::new().await;
        let fails = |words: &str| format!("#!/bin/sh\necho '{words}' >&2\necho 'package x is not installed'\nexit 1\n");
        let broken = "error: cannot open Packages database in /var/lib/rpm";
        let tools = [
            ("rpm", "dnf: {name: x, state: absent}", broken, "error: file x: No such file or directory"),
            (
                "rpm",
                "package: {name: x, state: absent, use: zypper}",
                broken,
                "error: file x: No such file or directory",
            ),
            ("pacman", "package: {name: x, state: absent, use: pacman}", broken, "error: package x was not found"),
            ("apk", "package: {name: x, state: absent, use: apk}", "ERROR: Unable to read database: I/O error", "none"),
        ];
        for (program, task, broken, absent) in tools {
            let programs = bench.here("programs");
            std::fs::remove_dir_all(&programs).ok();
            std::fs::create_dir(&programs).unwrap();
            crate::value::testing::write_program(programs.join("dnf"), "#!/bin/sh\nexit 0\n");
            let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
            let host = Bench::with_environment(&[("PATH", &path)]).await;
            crate::value::testing::write_program(programs.join(program), fails(broken));
            let told = host.failure(task).await;
            assert!(told.starts_with("cannot query the package x: ") && told.contains(broken), "{task}: {told}");
            crate::value::testing::write_program(programs.join(program), fails(absent));
            assert!(!host.run(task).await.unwrap().changed, "{task}");
            host.close().await;
        }
        let path = std::env::var("PATH").unwrap();
        if std::path::Path::new("/usr/bin/dpkg-query").exists() {
            let broken = bench.on_host("adm/status", "no status file");
            let directory = broken.parent().unwrap().display().to_string();
            let host = Bench::with_environment(&[("PATH", &path), ("DPKG_ADMINDIR", &directory)]).await;
            let told = host.failure("apt: {name: tar, state: absent}").await;
            assert!(told.starts_with("dpkg-query -W failed with code 2: "), "{told}");
            host.close().await;
        }
        bench.close().await;
    }

    #[test]
    fn a_star_stands_for_anything() {
        assert!(matches("1.2*", "1.2.3") && matches("*-1", "2.0-1") && matches("1", "1"));
        assert!(!matches("1.2*", "1.3") && !matches("1", "1.0"));
    }
}
