//! The host's git: its command line, its options for ssh, and its error messages.

use crate::modules::Error;
use crate::modules::execution::quote;
use crate::remote::{Command, Output, Probe, Remote};

/// 1 umask or nothing, 2 options for ssh; then the command. The task's own `GIT_SSH_COMMAND` is kept.
const SCRIPT: &str = r#"
if [ "$1" ]; then umask "$1" || exit; fi
GIT_SSH_COMMAND="${GIT_SSH:-${GIT_SSH_COMMAND:-ssh}} $2"
unset GIT_SSH
export GIT_SSH_COMMAND
shift 2
exec "$@"
"#;

/// The options of ssh.
pub(super) struct Ssh<'a> {
    pub options: Option<&'a str>,
    pub key_file: Option<&'a str>,
    pub accept_any: bool,
    pub accept_new: bool,
}

impl Ssh<'_> {
    fn ssh_command(&self) -> String {
        let mut words = vec![self.options.unwrap_or_default().to_owned()];
        let reported = |option: &str| words[0].contains(option);
        let decided = reported("StrictHostKeyChecking=no") || reported("StrictHostKeyChecking=accept-new");
        let mut more = Vec::new();
        match (self.accept_any, self.accept_new) {
            (true, _) if !decided => more.push("-o StrictHostKeyChecking=no".to_owned()),
            (_, true) if !decided => more.push("-o StrictHostKeyChecking=accept-new".to_owned()),
            _ => {}
        }
        if !reported("BatchMode=yes") {
            more.push("-o BatchMode=yes".to_owned());
        }
        if let Some(key) = self.key_file {
            more.push(format!("-i {} -o IdentitiesOnly=yes", quote(key)));
        }
        words.extend(more);
        words.join(" ").trim().to_owned()
    }
}

/// Whom git connects to for a repository: `https://git@host:8443/x`, `git@host:x`. None: it is a path or a file.
pub(super) fn server_of(repo: &str) -> Option<&str> {
    let (login, is_url) = match repo.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => (rest.split('/').next()?, true),
        None => (repo.split_once(':').map(|(login, _)| login).filter(|login| !login.contains('/'))?, false),
    };
    let host = login.rsplit_once('@').map_or(login, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(host) => host.split(']').next()?,
        None if is_url => host.split(':').next()?,
        None => host,
    };
    Some(host).filter(|host| !host.is_empty())
}

/// The program and its constant options.
pub(super) struct GitCommand {
    program: String,
    ssh: String,
    umask: String,
    /// A password in the repository's address, which no report shows.
    secret: Option<String>,
}

impl GitCommand {
    pub(super) fn new(program: String, ssh: &Ssh<'_>, umask: Option<&str>, repo: &str) -> GitCommand {
        let login = repo.split_once("://").and_then(|(_, rest)| rest.split('/').next()?.rsplit_once('@'));
        let secret = login.and_then(|(login, _)| login.split_once(':')).map(|(_, password)| password.to_owned());
        let secret = secret.filter(|secret| !secret.is_empty());
        GitCommand { program, ssh: ssh.ssh_command(), umask: umask.unwrap_or_default().to_owned(), secret }
    }

    fn command(&self, directory: Option<&str>, arguments: &[&str]) -> Command {
        let argv = ["sh", "-c", SCRIPT, "sh", &self.umask, &self.ssh, &self.program];
        // Git must not prompt, must print English messages, and must not write an index when it reads the status.
        let environment =
            [("LC_ALL", "C"), ("LANGUAGE", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")];
        Command {
            directory: directory.map(str::to_owned),
            environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Command::program(argv.into_iter().chain(arguments.iter().copied()))
        }
    }

    /// Asks, whatever it answers.
    pub(super) async fn ask(
        &self,
        probe: &Probe,
        directory: Option<&str>,
        arguments: &[&str],
    ) -> Result<Output, Error> {
        Ok(probe.query(&self.command(directory, arguments)).await?)
    }

    /// Asks for something that must be there; without the line's end.
    pub(super) async fn git_output(
        &self,
        probe: &Probe,
        directory: Option<&str>,
        arguments: &[&str],
    ) -> Result<String, Error> {
        let output = self.ask(probe, directory, arguments).await?;
        self.succeeded(&output, arguments)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
    }

    /// Asks for one word that need not be there.
    pub(super) async fn git_word(
        &self,
        probe: &Probe,
        directory: &str,
        arguments: &[&str],
    ) -> Result<Option<String>, Error> {
        let output = self.ask(probe, Some(directory), arguments).await?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.code == 0 && !text.is_empty()).then_some(text))
    }

    /// Does something.
    pub(super) async fn run_git(
        &self,
        remote: &Remote,
        directory: Option<&str>,
        arguments: &[&str],
    ) -> Result<(), Error> {
        let output = remote.run(&self.command(directory, arguments)).await?;
        self.succeeded(&output, arguments)
    }

    fn succeeded(&self, output: &Output, arguments: &[&str]) -> Result<(), Error> {
        if output.code == 0 {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines: Vec<&str> = lines.filter(|line| !line.starts_with("Cloning into ")).collect();
        let words = self.without_secret(&lines.join("; "));
        let verb = arguments.first().copied().unwrap_or_default();
        let message = format!("git {verb} failed with code {}: {words}", output.code);
        let hint = if words.contains("Host key verification failed") {
            Some("record the server's key with known_hosts, or set accept_newhostkey: true".to_owned())
        } else if words.contains("dubious ownership") {
            Some("run the task as the user who owns the repository: become_user".to_owned())
        } else {
            None
        };
        Err(Error::Failed { message, hint })
    }

    /// A text that is shown.
    pub(super) fn without_secret(&self, text: &str) -> String {
        match &self.secret {
            Some(secret) => text.replace(secret.as_str(), "********"),
            None => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_says_whom_git_connects_to() {
        for (repo, server) in [
            ("https://user:word@git.example.org:8443/x.git", Some("git.example.org")),
            ("ssh://git@[fd00::1]:22/x", Some("fd00::1")),
            ("git@git.example.org:ops/site.git", Some("git.example.org")),
            ("h1:x", Some("h1")),
            ("file:///srv/x.git", None),
            ("/srv/a:b", None),
            ("./a:b", None),
        ] {
            assert_eq!(server_of(repo), server, "{repo}");
        }
    }

    #[test]
    fn ssh_options_are_set_once() {
        let ssh = |options, accept_any, accept_new| {
            Ssh { options, key_file: Some("/k y"), accept_any, accept_new }.ssh_command()
        };
        assert_eq!(ssh(None, false, false), "-o BatchMode=yes -i '/k y' -o IdentitiesOnly=yes");
        let words = ssh(Some("-p 2222 -o BatchMode=yes"), false, true);
        assert_eq!(
            words,
            "-p 2222 -o BatchMode=yes -o StrictHostKeyChecking=accept-new -i '/k y' -o IdentitiesOnly=yes"
        );
        assert_eq!(ssh(Some("-o StrictHostKeyChecking=no"), true, false).matches("Strict").count(), 1);
    }

    #[test]
    fn a_password_of_the_address_is_not_shown() {
        let ssh = Ssh { options: None, key_file: None, accept_any: false, accept_new: false };
        let tool = GitCommand::new("git".into(), &ssh, None, "https://u:pa55@h/x");
        let output = Output { code: 128, stdout: Vec::new(), stderr: b"fatal: no https://u:pa55@h/x".to_vec() };
        let error = tool.succeeded(&output, &["clone"]).unwrap_err();
        assert_eq!(error.to_string(), "git clone failed with code 128: fatal: no https://u:********@h/x");
    }
}
