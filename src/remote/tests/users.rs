//! Becoming another user, with real sudo and su, for users that are made for it and removed again.

use super::*;

/// Users and a sudoers file of a test.
struct Users {
    names: Vec<String>,
    sudoers: String,
}

fn root(program: &str, arguments: &[&str], input: &str) {
    use std::io::Write;
    let mut command = std::process::Command::new(program);
    let mut child = command.args(arguments).stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{program} {arguments:?}: these tests need root");
}

impl Users {
    /// Makes `login` and `other`, each with its name and `'s` as the password. `rule` is what sudo allows to the first.
    fn new(test: &str, shell: &str, rule: &str) -> Users {
        let own = std::process::id();
        let names = ["login", "other"].map(|name| format!("wl-{test}-{own}-{name}"));
        let mut users = Users { names: Vec::new(), sudoers: format!("/etc/sudoers.d/wl-{test}-{own}") };
        for name in names {
            root("useradd", &["-m", "-s", shell, &name], "");
            root("chpasswd", &[], &format!("{name}:{name}'s"));
            users.names.push(name);
        }
        std::fs::write(&users.sudoers, rule.replace("LOGIN", users.login())).unwrap();
        users
    }
    fn login(&self) -> &str {
        &self.names[0]
    }
    fn other(&self) -> &str {
        &self.names[1]
    }
    fn password(&self, name: &str) -> Option<Secret> {
        Some(Secret::new(format!("{name}'s")))
    }
    async fn become_user(&self, user: Become) -> Result<Remote, Error> {
        let host = Arc::new(Login {
            local: Local::new("here", Arc::new(ProcessEnvironment::of_process())),
            user: self.login().to_owned(),
        });
        Remote::open(&Sessions::new(host), Some(&user), &IndexMap::new()).await
    }
    async fn reason(&self, user: Become) -> String {
        match self.become_user(user).await {
            Err(Error::Become { reason, .. }) => reason,
            Err(error) => panic!("{error}"),
            Ok(remote) => panic!("it became {}", remote.user()),
        }
    }
}

impl Drop for Users {
    fn drop(&mut self) {
        std::fs::remove_file(&self.sudoers).ok();
        for name in &self.names {
            std::process::Command::new("userdel")
                .args(["-f", "-r", name])
                .stderr(std::process::Stdio::null())
                .status()
                .ok();
        }
    }
}

/// This computer, as one logs in as a user.
#[derive(Debug)]
struct Login {
    local: Local,
    user: String,
}

#[async_trait]
impl Connection for Login {
    async fn start(&self, line: &str) -> Result<Process, connection::Error> {
        self.local.start(&format!("exec runuser -l {} -c {}", self.user, quote::quote_word(line))).await
    }
    async fn tunnel(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, connection::Error> {
        self.local.tunnel(host, port).await
    }
    fn capacity(&self) -> usize {
        self.local.capacity()
    }
    fn is_closed(&self) -> bool {
        self.local.is_closed()
    }
    fn description(&self) -> String {
        format!("login {}", self.user)
    }
    async fn close(&self) {
        self.local.close().await;
    }
}

fn sudo(user: &str) -> Become {
    Become { method: Method::Sudo, user: user.into(), password: None, executable: None, flags: None }
}

fn su(user: &str) -> Become {
    Become { method: Method::Su, ..sudo(user) }
}

const FREE: &str = "LOGIN ALL=(ALL) NOPASSWD: ALL\n";
const ASKS: &str = "LOGIN ALL=(ALL) ALL\n";

#[tokio::test]
#[ignore = "makes users, needs root"]
async fn sudo_without_password_becomes_anyone() {
    for (test, shell) in [("free1", "/bin/bash"), ("free2", "/bin/dash")] {
        let users = Users::new(test, shell, FREE);
        for name in ["root", users.other()] {
            // A password that is not asked for does no harm.
            for password in [None, users.password("any")] {
                let remote = users.become_user(Become { password, ..sudo(name) }).await.unwrap();
                assert_eq!(remote.user(), name);
                let got = sh(&remote, "id -un; echo $HOME; echo ${LANGUAGE-none}").await;
                let home = remote.expand_on_host("~").await.unwrap();
                assert_eq!(text(&got.stdout), format!("{name}\n{home}\nnone\n"));
            }
        }
        let flags = Become { flags: Some("-H -E -n".into()), ..sudo("root") };
        assert_eq!(users.become_user(flags).await.unwrap().user(), "root");
        assert_eq!(users.become_user(sudo("#0")).await.unwrap().user(), "root");
        assert_eq!(users.reason(sudo("wl-nobody")).await, "the user does not exist on the host");
        let missing = Become { executable: Some("no-such-sudo".into()), ..sudo("root") };
        assert_eq!(users.reason(missing).await, "the host has no program no-such-sudo");
    }
}

#[tokio::test]
#[ignore = "makes users, needs root"]
async fn sudo_asks_for_the_login_users_password() {
    let users = Users::new("asks", "/bin/sh", ASKS);
    // The other may not be where the login is.
    root("chmod", &["700", &format!("/home/{}", users.login())], "");
    let right = Become { password: users.password(users.login()), ..sudo(users.other()) };
    let remote = users.become_user(right).await.unwrap();
    assert_eq!(remote.user(), users.other());
    assert_eq!(text(&sh(&remote, "pwd").await.stdout), "/\n");
    // sudo remembers for a while whom it asked, but not without a terminal.
    let wrong = Become { password: users.password(users.other()), ..sudo("root") };
    assert_eq!(users.reason(wrong).await, "sudo rejected the password");
    assert_eq!(users.reason(sudo("root")).await, "sudo asks for a password, and none was given");
}

#[tokio::test]
#[ignore = "makes users, needs root"]
async fn who_may_not_use_sudo_is_reported() {
    let users = Users::new("not", "/bin/sh", "");
    let password = users.password(users.login());
    let reason = users.reason(Become { password, ..sudo("root") }).await;
    assert!(reason.contains("sudoers"), "{reason}");
    let only = Users::new("only", "/bin/sh", "LOGIN ALL=(ALL) /bin/true\n");
    let reason = only.reason(Become { password: only.password(only.login()), ..sudo("root") }).await;
    assert!(reason.contains("not allowed to execute"), "{reason}");
}

#[tokio::test]
#[ignore = "makes users, needs root"]
async fn su_asks_for_the_other_users_password() {
    let users = Users::new("su", "/bin/sh", "");
    let right = Become { password: users.password(users.other()), ..su(users.other()) };
    let remote = users.become_user(right).await.unwrap();
    assert_eq!(remote.user(), users.other());
    let got = sh(&remote, "id -un; echo $HOME").await;
    assert_eq!(text(&got.stdout), format!("{0}\n/home/{0}\n", users.other()));
    let wrong = Become { password: users.password(users.login()), ..su(users.other()) };
    assert_eq!(users.reason(wrong).await, "su rejected the password");
    assert_eq!(users.reason(su(users.other())).await, "su asks for a password, and none was given");
    assert_eq!(users.reason(su("wl-nobody")).await, "the user does not exist on the host");
}

#[tokio::test]
#[ignore = "makes users, needs root"]
async fn files_are_written_as_the_user_that_one_became() {
    let users = Users::new("write", "/bin/sh", ASKS);
    let user = Become { password: users.password(users.login()), ..sudo(users.other()) };
    let remote = users.become_user(user).await.unwrap();
    let path = format!("/home/{}/file", users.other());
    let large = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(large.path(), vec![0; 3_000_000]).unwrap();
    upload(&remote, large.path(), &path, &Attributes::default()).await.unwrap();
    remote.write(&path, b"x", &Attributes::default()).await.unwrap();
    let stat = remote.stat(&path, Links::Keep).await.unwrap().unwrap();
    assert_eq!((stat.user.as_str(), stat.size), (users.other(), 1));
    let error = remote.write("/etc/wl-no", b"x", &Attributes::default()).await.unwrap_err().to_string();
    assert_eq!(error, "cannot write /etc/wl-no: Permission denied");
    let error = remote.read_file("/etc/shadow").await.unwrap_err().to_string();
    assert_eq!(error, "cannot read /etc/shadow: Permission denied");
}

#[tokio::test]
#[ignore = "makes users, needs root"]
async fn what_runs_as_another_user_ends_with_its_session() {
    let users = Users::new("end", "/bin/sh", FREE);
    for user in [sudo("root"), sudo(users.other())] {
        let host = Arc::new(Login {
            local: Local::new("here", Arc::new(ProcessEnvironment::of_process())),
            user: users.login().to_owned(),
        });
        let sessions = Sessions::new(host);
        let remote = Remote::open(&sessions, Some(&user), &IndexMap::new()).await.unwrap();
        let command = shell("sleep 12345 & exec sleep 12345");
        tokio::select! {
            _ = remote.run(&command) => panic!("it ended"),
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
        }
        sessions.close().await;
        let mut left = String::new();
        for _ in 0..1200 {
            let listed = std::process::Command::new("ps").args(["-eo", "user:40,pid,args"]).output().unwrap();
            left = text(&listed.stdout).lines().filter(|line| line.contains("sleep 12345")).collect();
            if left.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(left, "");
    }
}
