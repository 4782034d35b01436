//! Becoming another user with sudo or su: the line that does it, its password prompt, and why it did not work.
//!
//! The line is in the arguments of processes, which every user of the host can read: its nonce keeps prompt and greeting apart
//! from other texts, and is not that of the session's frames.

use std::future::Future;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::startup_output::StartupOutput;
use super::{Become, Error, Method, quote};
use crate::connection::Writer;

/// How long sudo or su may say nothing, from its start or from the password on.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing must follow what may be a prompt in another language.
const SETTLES: Duration = Duration::from_millis(700);

/// Why there is no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BecomeFailure {
    /// sudo or su ended.
    Ended,
    /// It asked again after the password.
    Wrong,
    /// It asked, and we have no password.
    NoPassword,
    /// No output for [`PATIENCE`].
    Timeout,
}

/// What the new session says first: from then on its stdin is a shell's.
pub(super) fn ready(nonce: &str) -> String {
    format!("ready-{nonce}\n")
}

fn prompt(nonce: &str) -> String {
    format!("password-{nonce}: ")
}

/// The line for the login shell that becomes `user` and then runs `script` (which holds no single quote) in `sh`.
pub(super) fn become_command(user: &Become, nonce: &str, script: &str) -> Result<String, Error> {
    let name = quote::quote_word(quote::checked(&user.user, "user")?);
    let program = |default: &str| quote::quote_word(user.executable.as_deref().unwrap_or(default));
    let flags = flags(user)?;
    // LANGUAGE=C makes messages English whatever LC_ALL says, and is unset before any program of a task runs.
    let script = format!("echo {}; unset LANGUAGE; {script}", ready(nonce).trim_end());
    Ok(match user.method {
        Method::Sudo => {
            // -n: fail at once instead of prompting.
            let password = match user.password {
                Some(_) => format!("-S -p {}", quote::quote_word(&prompt(nonce))),
                None => "-n".to_owned(),
            };
            format!("exec env LANGUAGE=C {} {flags}{password} -u {name} -- sh -c '{script}'", program("sudo"))
        }
        Method::Su => format!("exec env LANGUAGE=C {} {flags}-s /bin/sh {name} -c '{script}'", program("su")),
    })
}

/// `become_flags` as words, each followed by a space. Which of -n, -S and -p is given is our affair.
fn flags(user: &Become) -> Result<String, Error> {
    let default = match user.method {
        Method::Sudo => "-H",
        Method::Su => "",
    };
    let written = user.flags.as_deref().unwrap_or(default);
    let Some(words) = shlex::split(written) else {
        let reason = format!("a quote is not closed in become_flags {written:?}");
        return Err(Error::Become { user: user.user.clone(), reason, hint: None });
    };
    let ours = |word: &String| user.method == Method::Sudo && matches!(word.as_str(), "-n" | "-S");
    Ok(words.iter().filter(|word| !ours(word)).map(|word| quote::quote_word(word) + " ").collect())
}

/// Waits until the session is `arrived`, and sends the password at the prompt.
pub(super) async fn answer_prompt(
    user: &Become,
    nonce: &str,
    arrived: impl Future<Output = std::io::Result<()>>,
    stdin: &mut Writer,
    words: &StartupOutput,
) -> Result<(), BecomeFailure> {
    tokio::pin!(arrived);
    let mut changed = words.changed();
    let mut answered = false;
    let mut until = Instant::now() + PATIENCE;
    // When what may be a prompt is taken for one.
    let mut settled: Option<Instant> = None;
    loop {
        tokio::select! {
            arrived = &mut arrived => return arrived.map_err(|_| BecomeFailure::Ended),
            Ok(()) = changed.changed() => settled = None,
            () = tokio::time::sleep_until(settled.unwrap_or(until)) => {
                if settled.is_none() {
                    return Err(BecomeFailure::Timeout);
                }
            }
        }
        match asks(user.method, nonce, &words.collected_text(), answered) {
            PromptKind::No => continue,
            PromptKind::Maybe if settled.is_none() => {
                settled = Some(Instant::now() + SETTLES);
                continue;
            }
            PromptKind::Maybe | PromptKind::Yes => settled = None,
        }
        let Some(password) = &user.password else { return Err(BecomeFailure::NoPassword) };
        if answered {
            return Err(BecomeFailure::Wrong);
        }
        answered = true;
        until = Instant::now() + PATIENCE;
        let text = format!("{}\n", password.reveal());
        if stdin.write_all(text.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return Err(BecomeFailure::Ended);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum PromptKind {
    No,
    /// If nothing follows.
    Maybe,
    Yes,
}

/// Whether the program prompts for the password, or again after it got it.
fn asks(method: Method, nonce: &str, text: &str, answered: bool) -> PromptKind {
    match method {
        Method::Sudo if text.matches(&prompt(nonce)).count() > usize::from(answered) => PromptKind::Yes,
        Method::Sudo => PromptKind::No,
        // It asks once only.
        Method::Su if answered => PromptKind::No,
        // su has its own prompt, in a language of its own where LANGUAGE does not move it. An error message may come
        // in parts, and its first part, `su: `, looks like a prompt.
        Method::Su => {
            let last = text.rsplit('\n').next().unwrap_or_default().trim_end();
            match last.ends_with([':', '：']) {
                true if last.to_lowercase().contains("password") => PromptKind::Yes,
                true => PromptKind::Maybe,
                false => PromptKind::No,
            }
        }
    }
}

/// What went wrong, in words for a person.
pub(super) fn explain(user: &Become, nonce: &str, silence: BecomeFailure, text: &str) -> Error {
    let program = match user.method {
        Method::Sudo => "sudo",
        Method::Su => "su",
    };
    let text = text.replace(&prompt(nonce), "");
    let said = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned();
    let error = |reason: String, hint: &str| Error::Become {
        user: user.user.clone(),
        reason,
        hint: (!hint.is_empty()).then(|| hint.to_owned()),
    };
    let has = |part: &str| text.contains(part);
    let password_hint = "pass it with -K, or set ansible_become_password";
    match silence {
        BecomeFailure::Wrong => return error(format!("{program} rejected the password"), wrong_hint(user)),
        BecomeFailure::NoPassword => {
            return error(format!("{program} asks for a password, and none was given"), password_hint);
        }
        BecomeFailure::Timeout => {
            let words = if said.is_empty() { "without output".to_owned() } else { format!("output: {said}") };
            return error(format!("{program} timed out after {PATIENCE:?}, {words}"), "");
        }
        BecomeFailure::Ended => {}
    }
    if has("a password is required") || has("no password was provided") {
        error(format!("{program} asks for a password, and none was given"), password_hint)
    } else if has("incorrect password") || has("Authentication failure") || has("incorrect password attempt") {
        error(format!("{program} rejected the password"), wrong_hint(user))
    } else if has("not in the sudoers file") || has("may not run sudo") || has("is not allowed to") {
        error(said, "the login user needs an entry in sudoers on the host")
    } else if has("unknown user") || has("does not exist") || has("Unknown id") {
        error("the user does not exist on the host".to_owned(), "")
    } else if has("must have a tty") || has("a terminal is required") {
        error(said, "`Defaults requiretty` in sudoers requires a terminal; exempt the login user from it")
    } else if has("No such file or directory") || has("not found") {
        let name = user.executable.as_deref().unwrap_or(program);
        error(format!("the host has no program {name}"), "choose another become_method, or log in as that user")
    } else if said.is_empty() {
        error(format!("{program} failed without output"), "")
    } else {
        error(said, "")
    }
}

fn wrong_hint(user: &Become) -> &'static str {
    match user.method {
        Method::Sudo => "sudo needs the login user's own password (unless sudoers says otherwise)",
        Method::Su => "su needs the password of the user to become, not that of the login user",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_distinguished_from_the_beginning_of_a_message() {
        let su = |text: &str| asks(Method::Su, "x", text, false);
        assert_eq!(su("Password: "), PromptKind::Yes);
        assert_eq!(su("Welcome\nPasswort: "), PromptKind::Maybe);
        assert_eq!(su("su: "), PromptKind::Maybe);
        assert_eq!(su("su: user x does not exist\n"), PromptKind::No);
        assert_eq!(asks(Method::Su, "x", "Password: ", true), PromptKind::No);
        let sudo = |text: &str, answered| asks(Method::Sudo, "x", text, answered);
        assert_eq!(sudo("lecture\npassword-x: ", false), PromptKind::Yes);
        assert_eq!(sudo("password-x: \nSorry, try again.\n", true), PromptKind::No);
        assert_eq!(sudo("password-x: \nSorry, try again.\npassword-x: ", true), PromptKind::Yes);
        assert_eq!(sudo("password-other: ", false), PromptKind::No);
    }

    #[test]
    fn flags_of_ours_are_not_given_twice() {
        let user = |flags: Option<&str>| Become {
            method: Method::Sudo,
            user: "it's".into(),
            password: None,
            executable: None,
            flags: flags.map(str::to_owned),
        };
        let begins = |flags, expected: &str| {
            let line = become_command(&user(flags), "x", "y").unwrap();
            assert!(line.starts_with(expected), "{line}");
        };
        begins(None, r"exec env LANGUAGE=C sudo -H -n -u 'it'\''s' -- sh -c 'echo ready-x; ");
        begins(Some("-H -S -n"), "exec env LANGUAGE=C sudo -H -n -u ");
        begins(Some("-E -p 'a b'"), "exec env LANGUAGE=C sudo -E -p 'a b' -n -u ");
        assert!(become_command(&user(Some("'open")), "x", "y").is_err());
    }
}
