//! `user`: users of a host.

mod ssh_key;

use serde::Deserialize;

use super::accounts::{self, Account, AccountTools, Accounts};
use super::{Changes, Controller, Error, Module, Outcome, Plan};
use crate::remote::{Command, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::float;

/// Not secret: Ansible's word in the place of the password.
const HIDDEN: &str = "NOT_LOGGING_PASSWORD";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct User {
    name: String,
    uid: Option<u32>,
    non_unique: bool,
    group: Option<String>,
    groups: Option<Vec<String>>,
    append: bool,
    comment: Option<String>,
    home: Option<String>,
    create_home: bool,
    move_home: bool,
    skeleton: Option<String>,
    shell: Option<String>,
    system: bool,
    password: Option<String>,
    update_password: PasswordUpdate,
    password_lock: Option<bool>,
    expires: Option<f64>,
    password_expire_min: Option<i64>,
    password_expire_max: Option<i64>,
    password_expire_warn: Option<i64>,
    password_expire_account_disable: Option<i64>,
    state: UserState,
    remove: bool,
    force: bool,
    generate_ssh_key: bool,
    ssh_key_type: String,
    ssh_key_bits: Option<u32>,
    ssh_key_file: Option<String>,
    ssh_key_comment: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PasswordUpdate {
    Always,
    OnCreate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum UserState {
    Present,
    Absent,
}

/// What is to be done, in order. The password goes to chpasswd's standard input, never into a command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UserChange {
    commands: Vec<Vec<String>>,
    set_password: bool,
    /// How the account is removed again that the first command adds, if its password cannot be set: with `update_password: on_create`
    /// it would be without one for ever.
    undo: Option<Undo>,
    /// After the password is set.
    lock: Option<&'static str>,
    make_key: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Undo {
    program: &'static str,
    /// The group of the account's name, if there is one already: the program may remove it, too.
    group: Option<u32>,
}

impl Module for User {
    const CHANGES: Changes = Changes::Accounts;
    const DOC: Doc = Doc {
        name: "user",
        collection: "ansible.builtin",
        summary: "Add, change and remove users of the host",
        arguments: &[
            Argument::new("name", ArgumentKind::Str, "The user").alias(&["user"]).required(),
            Argument::new("uid", ArgumentKind::Int, "The user id"),
            Argument::new("non_unique", ArgumentKind::Bool, "Whether another user may also have this id")
                .default("false"),
            Argument::new("group", ArgumentKind::Str, "The primary group, which must exist"),
            Argument::new("groups", ArgumentKind::List(&ArgumentKind::Str), "More groups; an empty list means none"),
            Argument::new("append", ArgumentKind::Bool, "Whether to keep other groups of the user").default("false"),
            Argument::new("comment", ArgumentKind::Str, "The full name or purpose of the user"),
            Argument::new("home", ArgumentKind::Path, "The home directory"),
            Argument::new("create_home", ArgumentKind::Bool, "Whether to create the home directory of a new user")
                .alias(&["createhome"])
                .default("true"),
            Argument::new("move_home", ArgumentKind::Bool, "Whether to move the home directory when home changes")
                .default("false"),
            Argument::new("skeleton", ArgumentKind::Path, "The template of a new home directory"),
            Argument::new("shell", ArgumentKind::Path, "The login shell"),
            Argument::new("system", ArgumentKind::Bool, "Whether a new user gets a system user id").default("false"),
            Argument::new(
                "password",
                ArgumentKind::Str,
                "The hash of the password, as the filter password_hash returns it",
            )
            .mark_secret(),
            Argument::new("update_password", ArgumentKind::Str, "Whether to also set the password of an existing user")
                .default("always")
                .choices(&["always", "on_create"]),
            Argument::new("password_lock", ArgumentKind::Bool, "Whether to lock the password"),
            Argument::new(
                "expires",
                ArgumentKind::Float,
                "When the account expires, in seconds since 1970; negative: never",
            ),
            Argument::new("password_expire_min", ArgumentKind::Int, "The minimum age of a password, in days"),
            Argument::new("password_expire_max", ArgumentKind::Int, "The maximum age of a password, in days"),
            Argument::new(
                "password_expire_warn",
                ArgumentKind::Int,
                "How many days before the password expires to warn the user",
            ),
            Argument::new(
                "password_expire_account_disable",
                ArgumentKind::Int,
                "How many days after the password expires to disable the account",
            ),
            Argument::new("state", ArgumentKind::Str, "Whether they should exist")
                .default("present")
                .choices(&["present", "absent"]),
            Argument::new("remove", ArgumentKind::Bool, "Whether to also remove the home directory of a removed user")
                .default("false"),
            Argument::new(
                "force",
                ArgumentKind::Bool,
                "Whether to remove users who are logged in, and to replace an existing SSH key",
            )
            .default("false"),
            Argument::new(
                "generate_ssh_key",
                ArgumentKind::Bool,
                "Whether to generate an SSH key without a passphrase, if there is none",
            )
            .default("false"),
            Argument::new("ssh_key_type", ArgumentKind::Str, "The type of the key").default("rsa"),
            Argument::new("ssh_key_bits", ArgumentKind::Int, "The number of bits (default: ssh-keygen's own)"),
            Argument::new(
                "ssh_key_file",
                ArgumentKind::Path,
                "The path of the key, relative to the home directory (default .ssh/id_TYPE)",
            ),
            Argument::new(
                "ssh_key_comment",
                ArgumentKind::Str,
                "The comment of the key (default: ansible-generated on HOST)",
            ),
        ],
        free_form: None,
        example: "\
- name: Add a user for the service
  user:
    name: etcd
    system: true
    home: /var/lib/etcd
    create_home: false
    shell: /usr/sbin/nologin
",
        returns: &[
            Return::new("name", "The user"),
            Return::new("state", "present or absent"),
            Return::new("uid", "The user id"),
            Return::new("group", "The id of the primary group"),
            Return::new("groups", "The requested additional groups, separated by commas"),
            Return::new("comment", "Their full name"),
            Return::new("home", "The home directory"),
            Return::new("shell", "The login shell"),
            Return::new("ssh_key_file", "With generate_ssh_key: the path of the key"),
            Return::new("ssh_public_key", "The public part of it"),
            Return::new("ssh_fingerprint", "Its fingerprint, as ssh-keygen -lf prints it"),
        ],
    };
    type Change = UserChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<UserChange>, Error> {
        accounts::check_name(&self.name, "user")?;
        self.check_texts()?;
        let accounts = accounts::read_accounts(probe, &self.name).await?;
        let outcome = self.outcome(accounts.account.as_ref());
        if self.state == UserState::Present && !here.check {
            self.check_groups(&accounts)?;
        }
        let mut change = match (self.state, &accounts.account) {
            (UserState::Absent, None) => UserChange::default(),
            (UserState::Absent, Some(_)) => self.removal(tools(&accounts)?),
            (UserState::Present, None) => self.creation(&accounts, tools(&accounts)?),
            (UserState::Present, Some(account)) => self.changes(account, &accounts)?,
        };
        let mut outcome = outcome;
        if self.generate_ssh_key && self.state == UserState::Present {
            let key = match &accounts.account {
                Some(account) => ssh_key::read_ssh_key(probe, &self.key_path(&account.home), account).await?,
                None => None,
            };
            change.make_key = key.is_none() || self.force;
            outcome = key.map_or(outcome.clone(), |key| key.add_key(outcome));
        }
        Ok(match change == UserChange::default() {
            true => Plan::Unchanged(outcome),
            false => Plan::Change { diff: Vec::new(), outcome, change },
        })
    }

    async fn apply(&self, change: UserChange, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let mut commands = change.commands.as_slice();
        let line = self.password.as_ref().filter(|_| change.set_password);
        let line = line.map(|hash| format!("{}:{hash}\n", self.name).into_bytes());
        if let (Some(_), Some(undo), Some((add, rest))) = (&line, change.undo, commands.split_first()) {
            commands = rest;
            let group = undo.group.map(|id| id.to_string()).unwrap_or_default();
            let script = ["sh", "-c", ADD_WITH_PASSWORD, "sh", undo.program, &self.name, &group].map(str::to_owned);
            let argv = script.into_iter().chain(add.iter().cloned());
            let output = remote.run(&Command { stdin: line.clone(), ..Command::program(argv) }).await?;
            match std::str::from_utf8(&output.stdout).unwrap_or_default().trim().split_once(' ') {
                None => accounts::check_account_tool(&add[0], &output)?,
                Some((code, "removed")) => return Err(self.no_password(code)),
                Some((code, _)) => {
                    let why = self.no_password(code);
                    return Err(Error::failed(format!("{why}; the account was added and has no password")));
                }
            }
        }
        for argv in commands {
            accounts::run_account_tool(remote, argv).await?;
        }
        if let (Some(_), None) = (&line, change.undo) {
            let output = remote.run(&Command { stdin: line, ..Command::program(["chpasswd", "-e"]) }).await?;
            if output.code != 0 {
                return Err(self.no_password(output.code));
            }
        }
        if let Some(option) = change.lock {
            accounts::run_account_tool(remote, &to_strings(&["usermod", option, &self.name])).await?;
        }
        let account = accounts::read_accounts(remote, &self.name).await?.account;
        let outcome = self.outcome(account.as_ref());
        let Some(account) = account.filter(|_| self.generate_ssh_key && self.state == UserState::Present) else {
            return Ok(outcome);
        };
        let path = self.key_path(self.home.as_deref().unwrap_or(&account.home));
        if change.make_key {
            ssh_key::generate_ssh_key(
                remote,
                &path,
                &account,
                &self.ssh_key_type,
                self.ssh_key_bits,
                self.ssh_key_comment.as_deref(),
            )
            .await?;
        }
        Ok(ssh_key::read_ssh_key(remote, &path, &account).await?.map_or(outcome.clone(), |key| key.add_key(outcome)))
    }
}

/// 1 the program that removes the account 2 again, 3 the id of the group of that name, if there is one, then the command that adds the
/// account. Adds it and sets its password, which is in the standard input; if the connection is lost in between, the session's watcher
/// gives it two seconds to finish. If chpasswd fails, prints its code and `removed` or `remains`: the words of chpasswd might repeat the
/// line that it was given. After 12, 13 and 14 of useradd the account is there, without its home or mail directory or its SELinux user.
const ADD_WITH_PASSWORD: &str = r#"
remove=$1 name=$2 group=$3
shift 3
trap '' 1 2 13 15
"$@" </dev/null >&2
code=$?
case $code in
0 | 12 | 13 | 14) ;;
*) exit $code ;;
esac
chpasswd -e >/dev/null 2>&1 && exit $code
code=$?
if "$remove" "$name" >&2; then echo "$code removed"; else echo "$code remains"; fi
if [ "$group" ]; then
while IFS=: read -r found rest; do
[ "$found" != "$name" ] || exit 1
done </etc/group
groupadd -g "$group" "$name" >&2 || addgroup -g "$group" "$name" >&2
fi
exit 1
"#;

impl User {
    fn no_password(&self, code: impl std::fmt::Display) -> Error {
        Error::failed(format!("chpasswd failed for {} with code {code}", self.name))
    }

    fn key_path(&self, home: &str) -> String {
        let below = || format!(".ssh/id_{}", self.ssh_key_type);
        let file = self.ssh_key_file.clone().unwrap_or_else(below);
        if file.starts_with('/') { file } else { format!("{}/{file}", home.trim_end_matches('/')) }
    }

    /// The files that keep accounts are lines of fields.
    fn check_texts(&self) -> Result<(), Error> {
        let texts =
            [("comment", &self.comment), ("home", &self.home), ("shell", &self.shell), ("password", &self.password)];
        for (name, text) in texts {
            if text.as_ref().is_some_and(|text| text.contains([':', '\n'])) {
                return Err(Error::failed(format!("{name} must not contain a colon or a newline")));
            }
        }
        Ok(())
    }

    fn check_groups(&self, accounts: &Accounts) -> Result<(), Error> {
        let mut named = self.group.iter().chain(self.groups.iter().flatten()).filter(|name| !name.is_empty());
        match named.find(|name| accounts.group(name).is_none()) {
            Some(name) => Err(Error::failed(format!("group {name} does not exist"))),
            None => Ok(()),
        }
    }

    fn outcome(&self, account: Option<&Account>) -> Outcome {
        let state = if self.state == UserState::Present { "present" } else { "absent" };
        let mut outcome = Outcome::default().with("name", self.name.as_str()).with("state", state);
        if self.state == UserState::Absent {
            return outcome.with("remove", self.remove).with("force", self.force);
        }
        if let Some(account) = account {
            outcome =
                accounts::add_account(outcome, account).with("append", self.append).with("move_home", self.move_home);
        } else {
            outcome = outcome.with("system", self.system).with("create_home", self.create_home);
        }
        if let Some(groups) = &self.groups {
            outcome = outcome.with("groups", groups.join(","));
        }
        if self.password.is_some() {
            outcome = outcome.with("password", HIDDEN);
        }
        outcome
    }

    fn removal(&self, tools: AccountTools) -> UserChange {
        let mut argv = match tools {
            AccountTools::Shadow => to_strings(&["userdel"]),
            AccountTools::Busybox => to_strings(&["deluser"]),
        };
        argv.extend((self.force && tools == AccountTools::Shadow).then(|| "-f".to_owned()));
        argv.extend(self.remove.then(|| if tools == AccountTools::Shadow { "-r" } else { "--remove-home" }.to_owned()));
        argv.push(self.name.clone());
        UserChange { commands: vec![argv], ..UserChange::default() }
    }

    fn creation(&self, accounts: &Accounts, tools: AccountTools) -> UserChange {
        let mut commands = match tools {
            AccountTools::Shadow => vec![self.useradd(accounts)],
            AccountTools::Busybox => self.adduser(),
        };
        commands.extend(self.chage([None; 4]));
        let lock = (self.password_lock == Some(true) && self.password.is_some()).then_some("-L");
        let undo = Some(Undo {
            program: if tools == AccountTools::Shadow { "userdel" } else { "deluser" },
            group: accounts.group(&self.name).filter(|group| group.name == self.name).map(|group| group.gid),
        });
        UserChange { commands, set_password: self.password.is_some(), undo, lock, ..UserChange::default() }
    }

    fn useradd(&self, accounts: &Accounts) -> Vec<String> {
        let mut argv = to_strings(&["useradd"]);
        if let Some(uid) = self.uid {
            option(&mut argv, "-u", uid.to_string());
            argv.extend(self.non_unique.then(|| "-o".to_owned()));
        }
        match &self.group {
            Some(group) => option(&mut argv, "-g", group.clone()),
            // useradd would fail to make the user's own group.
            None if accounts.group(&self.name).is_some() => argv.push("-N".to_owned()),
            None => {}
        }
        if let Some(groups) = self.groups.as_ref().filter(|groups| !groups.is_empty()) {
            option(&mut argv, "-G", groups.join(","));
        }
        for (name, text) in [("-c", &self.comment), ("-d", &self.home), ("-s", &self.shell)] {
            if let Some(text) = text {
                option(&mut argv, name, text.clone());
            }
        }
        if let Some(expires) = self.expires {
            option(&mut argv, "-e", date(expires));
        }
        argv.push(if self.create_home { "-m" } else { "-M" }.to_owned());
        if let Some(skeleton) = self.skeleton.as_ref().filter(|_| self.create_home) {
            option(&mut argv, "-k", skeleton.clone());
        }
        argv.extend(self.system.then(|| "-r".to_owned()));
        argv.push(self.name.clone());
        argv
    }

    /// The command that makes the ages of the password those that are wanted.
    fn chage(&self, found: [Option<i64>; 4]) -> Option<Vec<String>> {
        let wanted = [
            ("-m", self.password_expire_min),
            ("-M", self.password_expire_max),
            ("-W", self.password_expire_warn),
            ("-I", self.password_expire_account_disable),
        ];
        let mut argv = to_strings(&["chage"]);
        for ((name, wanted), found) in wanted.into_iter().zip(found) {
            // A number below 0 means none.
            if let Some(days) = wanted.filter(|days| Some(*days).filter(|days| *days >= 0) != found) {
                option(&mut argv, name, days.to_string());
            }
        }
        argv.push(self.name.clone());
        (argv.len() > 2).then_some(argv)
    }

    /// busybox: one command for the user, one for each further group.
    fn adduser(&self) -> Vec<Vec<String>> {
        let mut argv = to_strings(&["adduser", "-D"]);
        if let Some(uid) = self.uid {
            option(&mut argv, "-u", uid.to_string());
        }
        let texts = [
            ("-G", &self.group),
            ("-g", &self.comment),
            ("-h", &self.home),
            ("-s", &self.shell),
            ("-k", &self.skeleton),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                option(&mut argv, name, text.clone());
            }
        }
        argv.extend((!self.create_home).then(|| "-H".to_owned()));
        argv.extend(self.system.then(|| "-S".to_owned()));
        argv.push(self.name.clone());
        let groups = self.groups.iter().flatten().map(|group| to_strings(&["addgroup", &self.name, group]));
        std::iter::once(argv).chain(groups).collect()
    }

    fn changes(&self, account: &Account, accounts: &Accounts) -> Result<UserChange, Error> {
        let mut argv = to_strings(&["usermod"]);
        if let Some(uid) = self.uid.filter(|uid| *uid != account.uid) {
            option(&mut argv, "-u", uid.to_string());
            argv.extend(self.non_unique.then(|| "-o".to_owned()));
        }
        if let Some(group) = &self.group
            && accounts.group(group).is_none_or(|group| group.gid != account.gid)
        {
            option(&mut argv, "-g", group.clone());
        }
        self.change_groups(account, accounts, &mut argv);
        let texts = [
            ("-c", &self.comment, &account.comment),
            ("-d", &self.home, &account.home),
            ("-s", &self.shell, &account.shell),
        ];
        for (name, wanted, found) in texts {
            if let Some(wanted) = wanted.as_ref().filter(|wanted| *wanted != found) {
                option(&mut argv, name, wanted.clone());
                argv.extend((name == "-d" && self.move_home).then(|| "-m".to_owned()));
            }
        }
        let shadow = accounts.shadow.as_ref();
        if let Some(expires) = self.expires
            && shadow.is_none_or(|shadow| shadow.expires.filter(|days| *days >= 0) != days(expires))
        {
            option(&mut argv, "-e", date(expires));
        }
        let hash = shadow.map_or("", |shadow| shadow.password.as_str());
        let set_password = self.update_password == PasswordUpdate::Always
            && self
                .password
                .as_ref()
                .is_some_and(|wanted| wanted.trim_start_matches('!') != hash.trim_start_matches('!'));
        let lock = match self.password_lock {
            Some(true) if set_password || !hash.starts_with('!') => Some("-L"),
            // Nothing but an exclamation mark: there is no password to unlock.
            Some(false) if !set_password && hash.starts_with('!') && !hash.trim_start_matches('!').is_empty() => {
                Some("-U")
            }
            _ => None,
        };
        let mut commands = Vec::new();
        if argv.len() > 1 {
            if tools(accounts)? == AccountTools::Busybox {
                return Err(Error::failed(format!("the host has no usermod to change the user {}", self.name)));
            }
            argv.push(self.name.clone());
            commands.push(argv);
        }
        commands.extend(self.chage(shadow.map_or([None; 4], |shadow| shadow.ages)));
        Ok(UserChange { commands, set_password, lock, ..UserChange::default() })
    }

    fn change_groups(&self, account: &Account, accounts: &Accounts, argv: &mut Vec<String>) {
        let Some(groups) = &self.groups else { return };
        let found = accounts.groups_of(&self.name);
        let mut wanted: Vec<&str> = groups
            .iter()
            .filter(|name| !name.is_empty())
            .map(|written| accounts.group(written).map_or(written.as_str(), |group| group.name.as_str()))
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let own = accounts.groups.iter().find(|group| group.gid == account.gid).map(|group| group.name.as_str());
        // One's own group need not name its user as a member.
        let is_in = |name: &&str| found.contains(name) || Some(*name) == own;
        let lacks = !wanted.iter().all(is_in);
        let has_more = !self.append && found.iter().any(|name| !wanted.contains(name) && Some(*name) != own);
        if lacks || has_more {
            argv.extend(self.append.then(|| "-a".to_owned()));
            option(argv, "-G", wanted.join(","));
        }
    }
}

fn tools(accounts: &Accounts) -> Result<AccountTools, Error> {
    accounts.tools.ok_or_else(accounts::no_tools)
}

fn to_strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn option(argv: &mut Vec<String>, name: &str, value: String) {
    argv.extend([name.to_owned(), value]);
}

/// Days since 1970; None: never.
fn days(expires: f64) -> Option<i64> {
    const SECONDS: f64 = 86_400.0;
    (expires >= 0.0).then(|| float::whole_part((expires / SECONDS).floor()))
}

/// What usermod and useradd take: a date, or nothing for never.
fn date(expires: f64) -> String {
    let date = days(expires).and_then(|days| {
        chrono::DateTime::from_timestamp(days.checked_mul(86_400)?, 0).map(|time| time.format("%Y-%m-%d").to_string())
    });
    date.unwrap_or_default()
}

#[cfg(test)]
mod tests;
