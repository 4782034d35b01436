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
    use super::matches;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(matches("1.2*", "1.2.3") && matches("*-1", "2.0-1") && matches("1", "1"));
        assert!(!matches("1.2*", "1.3") && !matches("1", "1.0"));
    }
}
