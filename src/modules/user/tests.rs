//! What is done to an account that is like so.

use super::super::accounts::{ShadowEntry, UnixGroup};
use super::super::testing::Bench;
use super::*;

fn user() -> User {
    User {
        name: "etcd".into(),
        uid: None,
        non_unique: false,
        group: None,
        groups: None,
        append: false,
        comment: None,
        home: None,
        create_home: false,
        move_home: false,
        skeleton: None,
        shell: None,
        system: true,
        password: None,
        update_password: PasswordUpdate::Always,
        password_lock: None,
        expires: None,
        password_expire_min: None,
        password_expire_max: None,
        password_expire_warn: None,
        password_expire_account_disable: None,
        state: UserState::Present,
        remove: false,
        force: false,
        generate_ssh_key: false,
        ssh_key_type: "rsa".into(),
        ssh_key_bits: None,
        ssh_key_file: None,
        ssh_key_comment: None,
    }
}

fn accounts(groups: &[(&str, u32, &[&str])], password: &str) -> Accounts {
    let group = |(name, gid, members): &(&str, u32, &[&str])| UnixGroup {
        name: (*name).into(),
        gid: *gid,
        members: members.iter().map(|m| (*m).into()).collect(),
    };
    Accounts {
        account: Some(Account {
            name: "etcd".into(),
            uid: 105,
            gid: 110,
            comment: String::new(),
            home: "/home/etcd".into(),
            shell: "/bin/sh".into(),
        }),
        shadow: Some(ShadowEntry {
            password: password.into(),
            expires: None,
            ages: [Some(0), Some(99999), Some(7), None],
        }),
        groups: groups.iter().map(group).collect(),
        tools: Some(AccountTools::Shadow),
    }
}

fn changed(user: &User, accounts: &Accounts) -> Vec<String> {
    let change = user.changes(accounts.account.as_ref().unwrap(), accounts).unwrap();
    change.commands.iter().map(|argv| argv.join(" ")).collect()
}

#[test]
fn a_new_user_is_made_with_what_was_asked_for() {
    let mut user = User { home: Some("/var/lib/etcd".into()), shell: Some("/bin/false".into()), ..user() };
    let none = accounts(&[], "");
    assert_eq!(user.useradd(&none).join(" "), "useradd -d /var/lib/etcd -s /bin/false -M -r etcd");
    assert_eq!(user.useradd(&accounts(&[("etcd", 5, &[])], ""))[1], "-N");
    user.groups = Some(vec!["adm".into()]);
    let busybox: Vec<String> = user.adduser().iter().map(|argv| argv.join(" ")).collect();
    assert_eq!(busybox, ["adduser -D -h /var/lib/etcd -s /bin/false -H -S etcd", "addgroup etcd adm"]);
}

#[test]
fn a_key_is_below_the_home_unless_said_otherwise() {
    assert_eq!(user().key_path("/home/a/"), "/home/a/.ssh/id_rsa");
    assert_eq!(User { ssh_key_file: Some("k".into()), ..user() }.key_path("/h"), "/h/k");
    assert_eq!(User { ssh_key_file: Some("/k".into()), ..user() }.key_path("/h"), "/k");
}

#[test]
fn only_what_differs_is_changed() {
    let found = accounts(&[("etcd", 110, &[]), ("adm", 4, &["etcd"])], "*");
    let same = User {
        uid: Some(105),
        group: Some("110".into()),
        groups: Some(vec!["adm".into(), "etcd".into()]),
        home: Some("/home/etcd".into()),
        ..user()
    };
    assert!(changed(&same, &found).is_empty());
    let other = User { uid: Some(7), home: Some("/h".into()), move_home: true, ..user() };
    assert_eq!(changed(&other, &found), ["usermod -u 7 -d /h -m etcd"]);
}

#[test]
fn groups_are_appended_or_replaced() {
    let found = accounts(&[("etcd", 110, &[]), ("adm", 4, &["etcd"]), ("ssl", 5, &[])], "*");
    let with = |groups: &[&str], append| {
        let groups = Some(groups.iter().map(|g| (*g).into()).collect());
        changed(&User { groups, append, ..user() }, &found)
    };
    assert_eq!(with(&["ssl"], true), ["usermod -a -G ssl etcd"]);
    assert_eq!(with(&["ssl"], false), ["usermod -G ssl etcd"]);
    assert!(with(&["adm"], false).is_empty() && with(&[], true).is_empty());
    assert_eq!(with(&[], false), ["usermod -G  etcd"]);
}

#[test]
fn a_password_is_set_when_it_differs_and_never_stands_in_a_command() {
    let wanted = |hash: &str, lock, found: &str| {
        let user = User { password: Some(hash.into()), password_lock: lock, ..user() };
        let found = accounts(&[], found);
        user.changes(found.account.as_ref().unwrap(), &found).unwrap()
    };
    assert_eq!(wanted("$6$a", None, "$6$a"), UserChange::default());
    assert_eq!(wanted("$6$a", None, "!$6$a"), UserChange::default());
    let change = wanted("$6$b", Some(true), "$6$a");
    assert!(change.set_password && change.commands.is_empty() && change.lock == Some("-L"));
    assert_eq!(wanted("$6$a", Some(false), "!$6$a").lock, Some("-U"));
    let new = User { password: Some("$6$secret".into()), ..user() };
    assert!(!new.useradd(&accounts(&[], "")).join(" ").contains("secret"));
}

#[test]
fn ages_of_a_password_are_set_where_they_differ() {
    let found = accounts(&[], "*");
    let same = User { password_expire_min: Some(0), password_expire_max: Some(99999), ..user() };
    assert!(changed(&same, &found).is_empty());
    let none = User { password_expire_account_disable: Some(-1), ..user() };
    assert!(changed(&none, &found).is_empty());
    let other =
        User { password_expire_min: Some(0), password_expire_max: Some(90), password_expire_warn: Some(14), ..user() };
    assert_eq!(changed(&other, &found), ["chage -M 90 -W 14 etcd"]);
    let new = other.creation(&accounts(&[], ""), AccountTools::Shadow).commands;
    assert_eq!(new[1].join(" "), "chage -m 0 -M 90 -W 14 etcd");
}

#[test]
fn an_end_is_a_day() {
    assert_eq!((days(86_400.0 * 3.5), date(86_400.0)), (Some(3), "1970-01-02".into()));
    assert_eq!((days(-1.0), date(-1.0)), (None, String::new()));
}

/// With programs that say what they are asked for, and a chpasswd that fails at first.
#[tokio::test]
async fn an_account_whose_password_cannot_be_set_is_removed_again() {
    let programs = tempfile::tempdir().unwrap();
    let at = |name: &str| programs.path().join(name);
    for name in ["useradd", "userdel", "usermod"] {
        // Each ends with the code in a file of its own, if there is one.
        let code = format!("{}.code", at(name).display());
        let script = format!(
            "#!/bin/sh\necho \"{name} $*\" >>{}\n[ ! -e {code} ] || exit $(cat {code})\n",
            at("calls").display()
        );
        crate::value::testing::write_program(at(name), script);
    }
    let chpasswd = format!(
        "#!/bin/sh\nread -r line\necho \"chpasswd $* $line\" >>{0}\n[ -e {1} ] || {{ : >{1}; echo \"$line\" >&2; exit 9; }}\n",
        at("calls").display(),
        at("failed").display()
    );
    crate::value::testing::write_program(at("chpasswd"), chpasswd);
    let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
    let bench = Bench::with_environment(&[("PATH", &path)]).await;
    let task = "user: {name: nobody-yet, password: '$6$salt$hash', update_password: on_create, create_home: false}";
    assert_eq!(bench.failure(task).await, "chpasswd failed for nobody-yet with code 9");
    let calls = || std::fs::read_to_string(at("calls")).unwrap();
    let add = "useradd -M nobody-yet\nchpasswd -e nobody-yet:$6$salt$hash\n";
    assert_eq!(calls(), format!("{add}userdel nobody-yet\n"));
    std::fs::remove_file(at("calls")).unwrap();
    assert!(bench.run(task).await.unwrap().changed);
    assert_eq!(calls(), add);
    // The account is there, without its home directory.
    std::fs::remove_file(at("calls")).unwrap();
    std::fs::write(at("useradd.code"), "12").unwrap();
    assert_eq!(bench.failure(task).await, "useradd failed with code 12: ");
    assert_eq!(calls(), add);
    std::fs::remove_file(at("calls")).unwrap();
    std::fs::write(at("useradd.code"), "4").unwrap();
    assert_eq!(bench.failure(task).await, "useradd failed with code 4: ");
    assert_eq!(calls(), add.lines().next().unwrap().to_owned() + "\n");
    std::fs::remove_file(at("useradd.code")).unwrap();
    std::fs::remove_file(at("failed")).unwrap();
    std::fs::write(at("userdel.code"), "8").unwrap();
    let left = "chpasswd failed for nobody-yet with code 9; the account was added and has no password";
    assert_eq!(bench.failure(task).await, left);
    bench.close().await;
}
