//! A user's own key for SSH, made by ssh-keygen on the host.

use crate::modules::accounts::Account;
use crate::modules::execution::quote;
use crate::modules::{Error, Outcome};
use crate::remote::{Command, Probe, Remote};

/// A key that is there.
pub(super) struct Key {
    path: String,
    public: String,
    fingerprint: String,
}

impl Key {
    pub(super) fn add_key(self, outcome: Outcome) -> Outcome {
        outcome
            .with("ssh_key_file", self.path)
            .with("ssh_public_key", self.public)
            .with("ssh_fingerprint", self.fingerprint)
    }
}

/// What runs a command in the current directory as the account whose directory it is, so that its links lead nowhere where it could
/// not write itself. In a directory of root the account cannot exchange anything, and root gives it what is made. For `sh`, which knows
/// $uid, $gid and $user.
const AS_OWNER: &str = r#"
as_user() {
  if [ "$(id -u)" = "$uid" ]; then sh -c "$1"
  elif setpriv --reuid="$uid" --regid="$gid" --init-groups true 2>/dev/null; then
    setpriv --reuid="$uid" --regid="$gid" --init-groups sh -c "$1"
  else su -s /bin/sh "$user" -c "$1"; fi
}
as_owner() {
  case $(stat -c %u .) in
    "$uid") as_user "$1" ;;
    0) [ "$(id -u)" = 0 ] && sh -c "$1" && sh -c "chown -h $uid:$gid $2" ;;
    *) echo "$PWD belongs to another user" >&2; return 1 ;;
  esac
}
"#;

/// The key at a path; None: there is none. It is read as its user, whose links may lead anywhere, and a pipe of theirs is not waited for.
pub(super) async fn read_ssh_key(probe: &Probe, path: &str, account: &Account) -> Result<Option<Key>, Error> {
    let read = "[ -f \"./$n.pub\" ] && timeout 10 head -c 16384 -- \"./$n.pub\" | head -n 1; echo; \
                [ ! -f \"./$n\" ] || timeout 10 ssh-keygen -lf \"./$n\" </dev/null; exit 0";
    let line = format!(
        "f={file}; uid={uid}; gid={gid}; user={user}\n\
         [ -e \"$f\" ] || exit 3; d=$(dirname \"$f\"); n=$(basename \"$f\"); export n\n\
         {AS_OWNER}\
         cd -P -- \"$d\" || exit\n\
         case $(stat -c %u .) in\n\
         \"$uid\") as_user {read} ;;\n\
         0) [ \"$PWD\" = \"$(readlink -f -- \"$(dirname \"$d\")\")/$(basename \"$d\")\" ] && sh -c {read} ;;\n\
         esac 2>/dev/null; exit 0",
        file = quote(path),
        uid = account.uid,
        gid = account.gid,
        user = quote(&account.name),
        read = quote(read),
    );
    let output = probe.query(&Command::shell(line)).await?;
    if output.code != 0 {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    let public = lines.next_if(|line| is_public_key(line)).unwrap_or_default().to_owned();
    let fingerprint = lines.find(|line| line.contains("SHA256:")).unwrap_or_default().to_owned();
    Ok(Some(Key { path: path.to_owned(), public, fingerprint }))
}

/// Whether a line is a public key as OpenSSH writes it.
fn is_public_key(line: &str) -> bool {
    let mut words = line.split(' ');
    let is_kind =
        words.next().is_some_and(|kind| ["ssh-", "ecdsa-", "sk-"].iter().any(|known| kind.starts_with(known)));
    is_kind && words.next().is_some_and(|key| key.starts_with("AAAA"))
}

/// Makes it, and its directory if that is missing; both are the user's.
pub(super) async fn generate_ssh_key(
    remote: &Remote,
    path: &str,
    account: &Account,
    kind: &str,
    bits: Option<u32>,
    comment: Option<&str>,
) -> Result<(), Error> {
    let comment = comment.map_or_else(|| "\"ansible-generated on $(hostname)\"".to_owned(), quote);
    let bits = bits.map(|bits| format!("-b {bits}")).unwrap_or_default();
    let make = format!(
        "rm -f \"./$n\" \"./$n.pub\"; ssh-keygen -q -t {kind} {bits} -C {comment} -N '' -f \"./$n\" </dev/null >&2",
        kind = quote(kind),
    );
    let line = format!(
        "umask 077; f={file}; uid={uid}; gid={gid}; user={user}\n\
         d=$(dirname \"$f\"); n=$(basename \"$f\"); e=$(basename \"$d\"); export n e\n\
         {AS_OWNER}\
         cd -P -- \"$(dirname \"$d\")\" || exit\n\
         [ ! -L \"$e\" ] && [ ! -L \"$f\" ] || {{ echo \"$d or $f is a symbolic link\" >&2; exit 1; }}\n\
         [ -d \"./$e\" ] || as_owner 'mkdir \"./$e\"' '\"./$e\"' || exit\n\
         at=${{PWD%/}}; cd -P -- \"./$e\" || exit\n\
         [ \"$PWD\" = \"$at/$e\" ] || {{ echo \"$d is a symbolic link\" >&2; exit 1; }}\n\
         as_owner {make} '\"./$n\" \"./$n.pub\"'",
        file = quote(path),
        uid = account.uid,
        gid = account.gid,
        user = quote(&account.name),
        make = quote(&make),
    );
    let output = remote.run(&Command::shell(line)).await?;
    match output.code {
        0 => Ok(()),
        code => {
            let words = String::from_utf8_lossy(&output.stderr);
            Err(Error::failed(format!(
                "cannot generate the key {path}: exit code {code}: {}",
                words.trim().replace('\n', "; ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Bench;
    use super::*;

    #[tokio::test]
    async fn a_key_is_made_once_and_reported() {
        let bench = Bench::new().await;
        let path = bench.host(".ssh/id_ed25519").display().to_string();
        let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let account =
            Account { uid, gid, name: "me".into(), comment: String::new(), home: String::new(), shell: String::new() };
        assert!(read_ssh_key(bench.remote(), &path, &account).await.unwrap().is_none());
        generate_ssh_key(bench.remote(), &path, &account, "ed25519", None, Some("it's mine")).await.unwrap();
        let key = read_ssh_key(bench.remote(), &path, &account).await.unwrap().unwrap();
        assert!(key.public.starts_with("ssh-ed25519 ") && key.public.ends_with("it's mine"), "{}", key.public);
        assert!(key.fingerprint.contains("SHA256:"), "{}", key.fingerprint);
        assert_eq!((bench.mode(".ssh"), bench.mode(".ssh/id_ed25519")), (0o700, 0o600));
        let reported =
            generate_ssh_key(bench.remote(), &path, &account, "no-such", None, None).await.unwrap_err().to_string();
        assert!(reported.contains("cannot generate the key"), "{reported}");
        bench.close().await;
    }

    /// Needs root. In a directory of another user it is that user who writes, so that a link of theirs leads nowhere.
    #[tokio::test]
    #[ignore = "needs root: cargo test --lib -- --ignored"]
    async fn the_key_of_another_user_is_written_as_that_user() {
        const NOBODY: u32 = 65534;
        let bench = Bench::new().await;
        for name in ["home/.ssh", "of-root"] {
            std::fs::create_dir_all(bench.host(name)).unwrap();
        }
        let give = |name: &str| std::os::unix::fs::chown(bench.host(name), Some(NOBODY), Some(NOBODY)).unwrap();
        ["home", "home/.ssh"].into_iter().for_each(give);
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(bench.host(""), open).unwrap();
        let account = Account {
            uid: NOBODY,
            gid: NOBODY,
            name: "nobody".into(),
            comment: String::new(),
            home: String::new(),
            shell: String::new(),
        };
        let make = async |path: &str| {
            let path = bench.host(path).display().to_string();
            generate_ssh_key(bench.remote(), &path, &account, "ed25519", None, Some("c")).await
        };
        make("home/.ssh/id").await.unwrap();
        make("home/new/id").await.unwrap();
        // A link that appears between the checks and the key leads to a directory that nobody may not write.
        std::os::unix::fs::symlink(bench.host("of-root"), bench.host("home/link")).unwrap();
        assert!(make("home/link/id").await.is_err());
        // Where root owns the directory, root gives the key away.
        make("of-root/id").await.unwrap();
        // It is read as the user: neither what only root may read, nor a pipe, nor another text.
        let read = async |path: &str| {
            let path = bench.host(path).display().to_string();
            let key = read_ssh_key(bench.remote(), &path, &account).await.unwrap().unwrap();
            (key.public, key.fingerprint)
        };
        for path in ["home/.ssh/id", "of-root/id"] {
            let (public, fingerprint) = read(path).await;
            assert!(
                public.starts_with("ssh-ed25519 ") && fingerprint.contains("SHA256:"),
                "{path}: {public} {fingerprint}"
            );
        }
        let (private, public) = (bench.host("home/.ssh/id"), bench.host("home/.ssh/id.pub"));
        bench.on_host("secret.pub", "ssh-ed25519 AAAAsecret of root");
        let only_root = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(bench.host("secret.pub"), only_root).unwrap();
        std::fs::remove_file(&public).unwrap();
        std::os::unix::fs::symlink(bench.host("secret.pub"), &public).unwrap();
        assert_eq!(read("home/.ssh/id").await.0, "");
        std::fs::remove_file(&public).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &public).unwrap();
        assert_eq!(read("home/.ssh/id").await.0, "");
        for path in [&private, &public] {
            std::fs::remove_file(path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        }
        assert_eq!(read("home/.ssh/id").await, (String::new(), String::new()));
        make("home/.ssh/id").await.unwrap();
        use std::os::unix::fs::MetadataExt;
        for name in ["home/.ssh/id", "home/.ssh/id.pub", "home/new", "home/new/id", "of-root/id", "of-root/id.pub"] {
            assert_eq!(std::fs::metadata(bench.host(name)).unwrap().uid(), NOBODY, "{name}");
        }
        bench.close().await;
    }
}
