//! Symbolic links of a host. A link that another user made must not decide which file a task reads, writes or gives away: the task may
//! run as root, and a line in `~ann/.profile` would be one in `/etc/shadow`. Hence a link counts only if it belongs to root, to the user
//! of the task, or to the owner of what it leads to. The kernel has a similar rule for `/tmp` (`fs.protected_symlinks`).

use crate::modules::Error;
use crate::remote::{Command, FileKind, Links, Probe, Stat};

/// Links per command: well below what a host accepts as arguments.
const MOST_LINKS: usize = 200;

/// Prints where the paths lead; for a link that does not count: exit code 3, its path and its owner.
const FOLLOW: &str = r#"
me=$(id -u)
for path do
at=$path turn=0
while [ -L "$at" ] && [ "$turn" -lt 40 ]; do
  turn=$((turn + 1))
  of=$(stat -c %u -- "$at") || exit
  if [ "$of" != 0 ] && [ "$of" != "$me" ] && [ "$of" != "$(stat -L -c %u -- "$at" 2>/dev/null)" ]; then
    printf '%s\n%s' "$at" "$(stat -c %U -- "$at")"
    exit 3
  fi
  to=$(readlink -- "$at") || exit
  case $to in
    /*) at=$to ;;
    *) case $at in */*) at=${at%/*}/$to ;; *) at=$to ;; esac ;;
  esac
done
readlink -f -- "$path" || exit
done
"#;

/// The path without symbolic links. An error for a link that another user made to what is not theirs.
pub(in crate::modules) async fn real_path(probe: &Probe, path: &str) -> Result<String, Error> {
    real_paths(probe, &[path]).await
}

/// What a path leads to, as [`Probe::stat`] of [`Links::Follow`]. An error if it is a link as in [`real_path`].
pub(in crate::modules) async fn stat_target(probe: &Probe, path: &str) -> Result<Option<Stat>, Error> {
    // With a slash at its end, the link itself would not be seen.
    let trimmed = path.trim_end_matches('/');
    let path = if trimmed.is_empty() { path } else { trimmed };
    let there = probe.stat(path, Links::Keep).await?;
    if there.as_ref().is_none_or(|stat| stat.kind != FileKind::Link) {
        return Ok(there);
    }
    let target = probe.stat(path, Links::Follow).await?;
    if target.is_some() {
        real_path(probe, path).await?;
    }
    Ok(target)
}

/// An error if one of the paths is a link as in [`real_path`].
pub(in crate::modules) async fn check_links(probe: &Probe, paths: &[String]) -> Result<(), Error> {
    for paths in paths.chunks(MOST_LINKS) {
        real_paths(probe, &paths.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    }
    Ok(())
}

async fn real_paths(probe: &Probe, paths: &[&str]) -> Result<String, Error> {
    let argv = ["sh", "-c", FOLLOW, "sh"].into_iter().chain(paths.iter().copied());
    let output = probe.query(&Command::program(argv)).await?;
    let text = String::from_utf8(output.stdout).unwrap_or_default();
    match output.code {
        0 if !text.is_empty() => Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned()),
        3 => {
            let (link, owner) = text.rsplit_once('\n').unwrap_or((&text, "another user"));
            Err(Error::Failed {
                message: format!(
                    "does not follow {link}: {owner} made this symbolic link, and what it leads to does not belong to {owner}"
                ),
                hint: Some(format!(
                    "remove the link, name its target in the task, or give it to root: chown -h root {link}"
                )),
            })
        }
        _ => Err(Error::failed(format!("cannot follow the symbolic link {}", paths.join(" or ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    const NOBODY: u32 = 65534;

    /// Needs root, to make links of another user.
    #[tokio::test]
    #[ignore = "needs root: cargo test --lib -- --ignored"]
    async fn a_link_of_another_user_leads_to_nothing_but_what_is_theirs() {
        let bench = Bench::new().await;
        bench.on_host("secret", "root's\n");
        bench.on_host("theirs", "theirs\n");
        std::os::unix::fs::chown(bench.host("theirs"), Some(NOBODY), None).unwrap();
        let link = |name: &str, to: &str, owner: u32| {
            std::os::unix::fs::symlink(bench.host(to), bench.host(name)).unwrap();
            std::os::unix::fs::lchown(bench.host(name), Some(owner), None).unwrap();
        };
        link("profile", "secret", NOBODY);
        link("of-root", "profile", 0);
        link("dangling", "new", NOBODY);
        link("own", "theirs", NOBODY);
        link("by-root", "secret", 0);
        bench.on_host("system/etc", "root's\n");
        bench.on_host("parts/a", "a\n");
        bench.on_controller("files/tree/directory/f", "");
        std::fs::create_dir(bench.host("plain")).unwrap();
        link("directory", "system", NOBODY);
        link("parts/b", "secret", NOBODY);
        bench.run("x509_ca: {path: HOST/ca.crt, privatekey_path: HOST/ca.key, common_name: ca}").await.unwrap();
        // Of the text of `secret`.
        const SHA1: &str = "sha1:62e0e68e41cfb0080ffbefd7156f2551d886a3e1";
        let get_url =
            format!("get_url: {{url: 'file://HOST/secret', dest: HOST/profile, checksum: '{SHA1}', mode: '0644'}}");
        for task in [
            get_url.as_str(),
            "x509_key: {path: HOST/profile, owner: nobody}",
            "x509_csr: {privatekey_path: HOST/profile, common_name: x}",
            "x509_ca: {path: HOST/ca, privatekey_path: HOST/profile, common_name: x}",
            "x509_certificate: {path: HOST/profile, privatekey_path: HOST/key, ca_path: HOST/ca.crt, \
             ca_privatekey_path: HOST/ca.key, common_name: x}",
            "assemble: {src: HOST/parts, dest: HOST/new}",
            "assemble: {src: HOST/directory, dest: HOST/new}",
            "copy: {remote_src: true, src: HOST/profile, dest: HOST/new, mode: '0644'}",
            "copy: {remote_src: true, src: HOST/directory/, dest: HOST/new}",
            "copy: {remote_src: true, src: HOST/parts/, dest: HOST/new}",
            "unarchive: {remote_src: true, src: HOST/profile, dest: HOST/plain}",
            "copy: {src: tree/directory/f, dest: HOST/directory, owner: nobody}",
            "copy: {src: tree/directory/f, dest: HOST/directory/, owner: nobody}",
            "copy: {src: tree/directory/, dest: HOST/directory/}",
            "copy: {src: tree/, dest: HOST}",
            "template: {src: HERE/files/tree/directory/f, dest: HOST/directory/}",
            "get_url: {url: 'file://HOST/secret', dest: HOST/directory}",
            "unarchive: {src: none, dest: HOST/directory}",
            "git: {repo: HERE/none, dest: HOST/directory}",
            "synchronize: {src: HERE/files/tree/, dest: HOST/directory/}",
            "authorized_key: {user: nobody, key: 'file://HOST/profile', path: HOST/keys, manage_dir: false}",
            "mount: {path: HOST/directory, state: unmounted}",
            "file: {state: link, src: HOST/profile, path: HOST/new, owner: nobody, mode: '0644'}",
            "file: {state: link, src: of-root, path: HOST/new, owner: nobody}",
            "file: {state: link, src: HOST/profile, path: HOST/new, modification_time: now}",
            "file: {state: hard, src: HOST/profile, path: HOST/new, owner: nobody}",
            "lineinfile: {path: HOST/profile, line: x, owner: nobody}",
            "lineinfile: {path: HOST/of-root, line: x}",
            "blockinfile: {path: HOST/profile, block: x, mode: '0644'}",
            "replace: {path: HOST/profile, regexp: root, replace: x}",
            "ini_file: {path: HOST/profile, section: a, option: b, value: c, owner: nobody}",
            "lineinfile: {path: HOST/dangling, line: x, create: true}",
            "file: {path: HOST/profile, owner: nobody}",
            "file: {path: HOST/dangling, state: touch}",
            "file: {path: HOST, state: directory, recurse: true, owner: nobody}",
            "authorized_key: {user: nobody, key: ssh-ed25519 AAAA, path: HOST/profile}",
        ] {
            let told = bench.failure(task).await;
            assert!(
                told.contains("made this symbolic link, and what it leads to does not belong to"),
                "{task}: {told}"
            );
        }
        assert_eq!(std::fs::read_to_string(bench.host("secret")).unwrap(), "root's\n");
        assert!(!bench.host("new").exists());
        assert_eq!(std::fs::read_dir(bench.host("system")).unwrap().count(), 1);
        for name in ["own", "by-root"] {
            assert!(bench.run(&format!("lineinfile: {{path: HOST/{name}, line: x}}")).await.unwrap().changed, "{name}");
        }
        bench.close().await;
    }
}
