//! Users and groups as a host knows them, and which tools it has to change them. For `user` and `group`.

use crate::modules::execution::quote;
use crate::modules::{Error, Outcome};
use crate::remote::{Command, Output, Probe, Remote};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::modules) struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    pub comment: String,
    pub home: String,
    pub shell: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::modules) struct UnixGroup {
    pub name: String,
    pub gid: u32,
    pub members: Vec<String>,
}

/// What only root can see of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::modules) struct ShadowEntry {
    /// The hash; an exclamation mark before it locks the account.
    pub password: String,
    /// Days since 1970 on which the account ends.
    pub expires: Option<i64>,
    /// Days: the minimum and maximum age of a password, how long before its end the user is warned, and how long after
    /// it the account becomes inactive.
    pub ages: [Option<i64>; 4],
}

/// The tools of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::modules) enum AccountTools {
    /// useradd, usermod, groupadd and so on.
    Shadow,
    /// adduser and addgroup of busybox, which can add and remove but hardly change.
    Busybox,
}

/// What there is of one user (or none), and all groups.
#[derive(Debug)]
pub(in crate::modules) struct Accounts {
    pub account: Option<Account>,
    pub shadow: Option<ShadowEntry>,
    pub groups: Vec<UnixGroup>,
    pub tools: Option<AccountTools>,
}

/// Asks for a user, the groups and the tools in one request. Without getent (busybox) the files themselves are read.
pub(in crate::modules) async fn read_accounts(probe: &Probe, user: &str) -> Result<Accounts, Error> {
    let line = format!(
        // 2: getent knows no such name. 127: there is no such program. From 128 on it was killed.
        "n={}\nb=0\n\
         field() {{ getent \"$1\" \"$n\" 2>/dev/null; g=$?\n\
         [ $g != 0 ] || return 0\n\
         awk -F: -v n=\"$n\" '$1 == n' \"/etc/$1\" 2>/dev/null; a=$?\n\
         if [ $g -ge 128 ]; then b=$g; elif [ $a -ge 126 ] && [ $g != 2 ]; then b=$a; fi; }}\n\
         echo @passwd; field passwd\n\
         echo @shadow; field shadow\n\
         echo @group; getent group 2>/dev/null; g=$?\n\
         [ $g -lt 128 ] || b=$g\n\
         [ $g = 0 ] || cat /etc/group || {{ g=$?; [ $g -lt 126 ] || b=$g; }}\n\
         echo @tools; for t in useradd adduser; do command -v $t; done\n\
         exit $b",
        quote(user)
    );
    let output = probe.query(&Command::shell(line)).await?;
    if output.code != 0 {
        let message = format!("cannot look up the user {user}: getent or awk ended with code {}", output.code);
        return Err(Error::failed(message));
    }
    Ok(Accounts::parse(&String::from_utf8_lossy(&output.stdout), user))
}

/// Refuses names that no tool would take, or would take for an option.
pub(in crate::modules) fn check_name(name: &str, what: &str) -> Result<(), Error> {
    let good = !name.is_empty()
        && !name.starts_with('-')
        && !name.contains([':', ',', '/', '\n'])
        && !name.contains(char::is_whitespace);
    if good { Ok(()) } else { Err(Error::failed(format!("{name:?} is not a valid name of a {what}"))) }
}

/// Runs a tool; its words are the error if it fails.
pub(in crate::modules) async fn run_account_tool(remote: &Remote, argv: &[String]) -> Result<(), Error> {
    check_account_tool(&argv[0], &remote.run(&Command::program(argv.iter().cloned())).await?)
}

/// Whether a program that changes accounts succeeded.
pub(in crate::modules) fn check_account_tool(program: &str, output: &Output) -> Result<(), Error> {
    if output.code == 0 {
        return Ok(());
    }
    let words = String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr });
    let words = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    Err(Error::failed(format!("{program} failed with code {}: {words}", output.code)))
}

/// A host without any tool.
pub(in crate::modules) fn no_tools() -> Error {
    Error::Failed {
        message: "the host has no program useradd or adduser".to_owned(),
        hint: Some("install the package passwd, shadow-utils or shadow, or become root".to_owned()),
    }
}

impl Accounts {
    fn parse(text: &str, user: &str) -> Self {
        let mut accounts = Accounts { account: None, shadow: None, groups: Vec::new(), tools: None };
        let mut section = "";
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('@') {
                section = name;
                continue;
            }
            let fields: Vec<&str> = line.split(':').collect();
            match section {
                // A number asks for a uid, too: only the name counts.
                "passwd" if fields.first() == Some(&user) => accounts.account = account(&fields),
                "shadow" if fields.first() == Some(&user) => accounts.shadow = shadow(&fields),
                "group" => accounts.groups.extend(group(&fields)),
                "tools" if line.ends_with("/useradd") => accounts.tools = Some(AccountTools::Shadow),
                "tools" if line.ends_with("/adduser") && accounts.tools.is_none() => {
                    accounts.tools = Some(AccountTools::Busybox);
                }
                _ => {}
            }
        }
        accounts
    }

    /// A group by its name, or else by its number.
    pub(in crate::modules) fn group(&self, written: &str) -> Option<&UnixGroup> {
        let by_number = || written.parse().ok().and_then(|gid: u32| self.groups.iter().find(|group| group.gid == gid));
        self.groups.iter().find(|group| group.name == written).or_else(by_number)
    }

    /// The groups that name a user as their member, sorted.
    pub(in crate::modules) fn groups_of(&self, user: &str) -> Vec<&str> {
        let mut groups: Vec<&str> = self
            .groups
            .iter()
            .filter(|group| group.members.iter().any(|member| member == user))
            .map(|group| group.name.as_str())
            .collect();
        groups.sort_unstable();
        groups
    }
}

fn account(fields: &[&str]) -> Option<Account> {
    let [name, _, uid, gid, comment, home, shell, ..] = fields else { return None };
    Some(Account {
        name: (*name).to_owned(),
        uid: uid.parse().ok()?,
        gid: gid.parse().ok()?,
        comment: (*comment).to_owned(),
        home: (*home).to_owned(),
        shell: (*shell).to_owned(),
    })
}

fn shadow(fields: &[&str]) -> Option<ShadowEntry> {
    let password = (*fields.get(1)?).to_owned();
    let days = |at: usize| fields.get(at).and_then(|days| days.parse().ok());
    Some(ShadowEntry { password, expires: days(7), ages: [3, 4, 5, 6].map(days) })
}

fn group(fields: &[&str]) -> Option<UnixGroup> {
    let [name, _, gid, members, ..] = fields else { return None };
    let members = members.split(',').filter(|member| !member.is_empty()).map(str::to_owned).collect();
    Some(UnixGroup { name: (*name).to_owned(), gid: gid.parse().ok()?, members })
}

/// Return values that describe an account.
pub(in crate::modules) fn add_account(outcome: Outcome, account: &Account) -> Outcome {
    outcome
        .with("uid", account.uid)
        .with("group", account.gid)
        .with("comment", account.comment.as_str())
        .with("home", account.home.as_str())
        .with("shell", account.shell.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "@passwd\netcd:x:105:110:etcd,,,:/var/lib/etcd:/bin/false\n@shadow\netcd:!$6$x:19000:0:99999:7::20000:\n\
        @group\netcd:x:110:\nssl:x:111:www,etcd\nadm:x:4:etcd\n@tools\n/usr/sbin/useradd\n/usr/sbin/adduser\n";

    #[test]
    fn an_account_is_read_with_its_groups() {
        let accounts = Accounts::parse(TEXT, "etcd");
        let account = accounts.account.as_ref().unwrap();
        assert_eq!((account.uid, account.gid, account.home.as_str()), (105, 110, "/var/lib/etcd"));
        assert_eq!(accounts.groups_of("etcd"), ["adm", "ssl"]);
        assert_eq!(accounts.group("110").unwrap().name, "etcd");
        let ages = [Some(0), Some(99999), Some(7), None];
        assert_eq!(accounts.shadow, Some(ShadowEntry { password: "!$6$x".into(), expires: Some(20000), ages }));
        assert_eq!(accounts.tools, Some(AccountTools::Shadow));
    }

    /// Without an answer nobody knows whether the user is there.
    #[tokio::test]
    async fn a_program_that_was_killed_is_no_answer() {
        use crate::modules::testing::Bench;
        let programs = tempfile::tempdir().unwrap();
        let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
        let bench = Bench::with_environment(&[("PATH", &path)]).await;
        for (text, killed) in [("kill -9 $$", true), ("[ $1 != group ] || kill -9 $$; exit 2", true), ("exit 2", false)]
        {
            crate::value::testing::write_program(programs.path().join("getent"), format!("#!/bin/sh\n{text}\n"));
            let read = read_accounts(bench.remote(), "no-such-user-x").await;
            match read {
                Ok(accounts) => assert!(!killed && accounts.account.is_none(), "{text}"),
                Err(error) => assert!(killed && error.to_string().contains("ended with code 137"), "{text}: {error}"),
            }
        }
        bench.close().await;
    }

    #[test]
    fn a_number_is_not_taken_for_a_name() {
        assert!(Accounts::parse(TEXT, "105").account.is_none());
    }

    #[test]
    fn a_host_with_busybox_alone_is_known() {
        let accounts = Accounts::parse("@passwd\n@shadow\n@group\n@tools\n/usr/sbin/adduser\n", "x");
        assert_eq!(accounts.tools, Some(AccountTools::Busybox));
    }

    #[test]
    fn names_that_would_be_options_are_refused() {
        assert!(check_name("etcd", "user").is_ok());
        for wrong in ["", "-r", "a:b", "a b", "a/b", "a\nb"] {
            assert!(check_name(wrong, "user").is_err(), "{wrong:?}");
        }
    }
}
