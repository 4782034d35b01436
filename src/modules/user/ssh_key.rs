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

/// The key at a path; None: there is none.
pub(super) async fn read_ssh_key(probe: &Probe, path: &str) -> Result<Option<Key>, Error> {
    let file = quote(path);
    let line =
        format!("[ -e {file} ] || exit 3; cat {file}.pub 2>/dev/null; echo; ssh-keygen -lf {file} 2>/dev/null; exit 0");
    let output = probe.query(&Command::shell(line)).await?;
    if output.code != 0 {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut next = || lines.next().unwrap_or_default().to_owned();
    Ok(Some(Key { path: path.to_owned(), public: next(), fingerprint: next() }))
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
    let line = format!(
        "umask 077; f={file}; d=$(dirname \"$f\"); o={uid}:{gid}\n\
         [ ! -L \"$d\" ] && [ ! -L \"$f\" ] || {{ echo \"$d or $f is a symbolic link\" >&2; exit 1; }}\n\
         [ -d \"$d\" ] || {{ mkdir \"$d\" && chown -h \"$o\" \"$d\"; }} || exit\n\
         rm -f \"$f\" \"$f.pub\"\n\
         ssh-keygen -q -t {kind} {bits} -C {comment} -N '' -f \"$f\" </dev/null >&2 && chown -h \"$o\" \"$f\" \"$f.pub\"",
        file = quote(path),
        uid = account.uid,
        gid = account.gid,
        kind = quote(kind),
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
    async fn a_key_is_made_once_and_told() {
        let bench = Bench::new().await;
        let path = bench.host(".ssh/id_ed25519").display().to_string();
        assert!(read_ssh_key(bench.remote(), &path).await.unwrap().is_none());
        let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let account =
            Account { uid, gid, name: "me".into(), comment: String::new(), home: String::new(), shell: String::new() };
        generate_ssh_key(bench.remote(), &path, &account, "ed25519", None, Some("it's mine")).await.unwrap();
        let key = read_ssh_key(bench.remote(), &path).await.unwrap().unwrap();
        assert!(key.public.starts_with("ssh-ed25519 ") && key.public.ends_with("it's mine"), "{}", key.public);
        assert!(key.fingerprint.contains("SHA256:"), "{}", key.fingerprint);
        assert_eq!((bench.mode(".ssh"), bench.mode(".ssh/id_ed25519")), (0o700, 0o600));
        let told =
            generate_ssh_key(bench.remote(), &path, &account, "no-such", None, None).await.unwrap_err().to_string();
        assert!(told.contains("cannot generate the key"), "{told}");
        bench.close().await;
    }
}
