//! What a file has beside its owner and mode: its SELinux context, and the flags of `chattr`. Modules for files take them
//! all alike, so they are seen to in one place, after the module's own work.

use std::collections::BTreeSet;

use crate::modules::file_attributes::stat_path;
use crate::modules::host_tree::Tree;
use crate::modules::{Controller, Error, ModuleResult, host_path};
use crate::remote::{Command, FileKind, Links, Output, Probe, Remote, Stat};
use crate::value::doc::Doc;
use crate::value::{Value, Vars};

/// The parts of a context, in their order.
const CONTEXT: [&str; 4] = ["seuser", "serole", "setype", "selevel"];
const FLAGS: &str = "attributes";
/// The flags that chattr can set; the others, such as `e` for extents, are the file system's own.
const CAN_BE_SET: &str = "aAcCdDijmPsStTux";

/// What a task asks for.
#[derive(Debug, Default)]
pub(in crate::modules) struct Labels {
    context: [Option<String>; 4],
    flags: Option<String>,
    /// The file, if the result names none.
    path: Option<String>,
    recurse: bool,
    unsafe_writes: bool,
}

impl Labels {
    /// Takes them out of the arguments of a module that has them.
    pub(in crate::modules) fn take_labels(doc: &Doc, args: Value) -> (Value, Labels) {
        if !doc.arguments.iter().any(|argument| argument.name == FLAGS) {
            return (args, Labels::default());
        }
        let keys = args.try_iter().into_iter().flatten();
        let mut args: Vars =
            keys.map(|key| (key.to_string().into(), args.get_item(&key).unwrap_or_default())).collect();
        let unsafe_writes = args.shift_remove("unsafe_writes").is_some_and(|is| is.is_true());
        let mut text = |name: &str| args.shift_remove(name).map(|value| value.to_string());
        let context = CONTEXT.map(&mut text);
        let flags = text(FLAGS);
        let path = ["path", "dest"].iter().find_map(|name| args.get(*name)).map(|path| path.to_string());
        let recurse = args.get("recurse").is_some_and(Value::is_true);
        (Value::from_pairs(args), Labels { context, flags, path, recurse, unsafe_writes })
    }

    /// Reports impossible labels before anything is changed.
    pub(in crate::modules) fn check_labels(&self) -> Result<(), Error> {
        if self.unsafe_writes {
            return Err(Error::Failed {
                message: "unsafe_writes must not be true: windlass replaces files atomically".to_owned(),
                hint: Some(
                    "remove it; write a file that cannot be replaced, such as a bind mount in a container, with a command"
                        .to_owned(),
                ),
            });
        }
        self.flags.as_deref().map_or(Ok(()), |flags| with_flags(&BTreeSet::new(), flags).map(drop))
    }

    /// Applies the missing labels; a file that does not exist, yet or any more, needs none.
    pub(in crate::modules) async fn settle(
        self,
        done: &mut ModuleResult,
        remote: &Remote,
        here: &Controller<'_>,
    ) -> Result<(), Error> {
        if self.flags.is_none() && (!remote.has_selinux() || self.context.iter().all(Option::is_none)) {
            return Ok(());
        }
        let named =
            ["path", "dest"].iter().find_map(|name| done.outcome.values.get(*name)?.as_str().map(str::to_owned));
        let Some(path) = named.or(self.path.clone()) else { return Ok(()) };
        let path = remote.expand_on_host(&path).await?;
        let Some(stat) = stat_path(remote, &path).await? else { return Ok(()) };
        let mut files = vec![(path, stat)];
        if self.recurse {
            let (top, _) = &files[0];
            let tree = Tree::read_host_tree(remote, top, Links::Keep).await?;
            let below = tree.sorted().into_iter().map(|(relative, stat)| (host_path::join_path(top, &relative), stat));
            let below: Vec<_> = below.collect();
            files.extend(below);
        }
        for (path, stat) in &files {
            for argv in self.lacking(remote, path, stat).await? {
                done.changed = true;
                if !here.check {
                    let output = remote.run(&Command::program(argv.iter().cloned())).await?;
                    succeeded(&argv, &output)?;
                    // chattr reports success even if the kernel refused.
                    if argv[0] == "chattr" && !output.stderr.is_empty() {
                        return Err(Error::failed(words_of(&argv, &output)));
                    }
                }
            }
        }
        Ok(())
    }

    /// The commands that apply the missing labels.
    async fn lacking(&self, probe: &Probe, path: &str, stat: &Stat) -> Result<Vec<Vec<String>>, Error> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut commands = Vec::new();
        if probe.has_selinux() && self.context.iter().any(Option::is_some) {
            let found = context(probe, path).await?;
            let usual = match self.context.iter().flatten().any(|part| part == "_default") {
                true => usual_context(probe, path).await?,
                false => found.clone(),
            };
            let wanted = with_parts(&found, &usual, &self.context);
            if wanted != found {
                commands.push(words(&["chcon", "-h", &wanted, path]));
            }
        }
        if let Some(text) = self.flags.as_deref().filter(|_| matches!(stat.kind, FileKind::File | FileKind::Directory))
        {
            let found = flags(probe, path).await?;
            let wanted = with_flags(&found, text)?;
            if wanted != found {
                // Flags that the task does not name, such as those of the file system itself, are kept.
                let change = |sign: char, flags: Vec<&char>| match flags.is_empty() {
                    true => None,
                    false => Some(flags.into_iter().fold(sign.to_string(), |text, flag| format!("{text}{flag}"))),
                };
                let more = change('+', wanted.difference(&found).collect());
                let less = change('-', found.difference(&wanted).collect());
                let argv = ["chattr".to_owned()].into_iter().chain(more).chain(less).chain([path.to_owned()]);
                commands.push(argv.collect());
            }
        }
        Ok(commands)
    }
}

/// The SELinux context of a file.
pub(in crate::modules) async fn context(probe: &Probe, path: &str) -> Result<String, Error> {
    answer(probe, &["stat", "-c", "%C", path]).await
}

/// The context that the host's policy has for a path.
async fn usual_context(probe: &Probe, path: &str) -> Result<String, Error> {
    answer(probe, &["matchpathcon", "-n", path]).await
}

/// The flags of a file that can be set.
async fn flags(probe: &Probe, path: &str) -> Result<BTreeSet<char>, Error> {
    let line = answer(probe, &["lsattr", "-d", path]).await?;
    let flags = line.split_whitespace().next().unwrap_or_default();
    Ok(flags.chars().filter(|flag| CAN_BE_SET.contains(*flag)).collect())
}

async fn answer(probe: &Probe, argv: &[&str]) -> Result<String, Error> {
    let output = probe.query(&Command::program(argv.iter().copied())).await?;
    succeeded(argv, &output)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn succeeded<S: AsRef<str>>(argv: &[S], output: &Output) -> Result<(), Error> {
    if output.code == 0 {
        return Ok(());
    }
    Err(Error::failed(words_of(argv, output)))
}

fn words_of<S: AsRef<str>>(argv: &[S], output: &Output) -> String {
    let program = argv.first().map_or("", AsRef::as_ref);
    format!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim())
}

/// A context with the parts that are wanted; `_default` is what the policy says.
fn with_parts(found: &str, usual: &str, wanted: &[Option<String>; 4]) -> String {
    // A level may contain colons.
    let (found, usual) = (found.splitn(4, ':').collect::<Vec<_>>(), usual.splitn(4, ':').collect::<Vec<_>>());
    let part = |(at, wanted): (usize, &Option<String>)| match wanted.as_deref() {
        Some("_default") => usual.get(at).copied().map(str::to_owned),
        Some(wanted) => Some(wanted.to_owned()),
        None => found.get(at).copied().map(str::to_owned),
    };
    wanted.iter().enumerate().filter_map(part).collect::<Vec<_>>().join(":")
}

/// The flags after `+i`, `-a`, `=aA` or, which is the same, `aA`.
fn with_flags(found: &BTreeSet<char>, text: &str) -> Result<BTreeSet<char>, Error> {
    let (sign, named) = match text.chars().next() {
        Some(sign @ ('+' | '-' | '=')) => (sign, &text[1..]),
        _ => ('=', text),
    };
    let named: BTreeSet<char> = named.chars().filter(|flag| *flag != 'e').collect();
    if let Some(wrong) = named.iter().find(|flag| !CAN_BE_SET.contains(**flag)) {
        return Err(Error::Failed {
            message: format!("attributes {text:?} contain {wrong:?}, which chattr cannot set"),
            hint: Some(format!("it can set {CAN_BE_SET}, with +, - or = before them")),
        });
    }
    Ok(match sign {
        '+' => found | &named,
        '-' => found - &named,
        _ => named,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Bench, cannot_run};

    #[tokio::test]
    async fn flags_are_set_once_and_taken_away() {
        let bench = Bench::new().await;
        let path = bench.on_host("x", "1\n");
        let lsattr = || std::process::Command::new("lsattr").arg("-d").arg(&path).output();
        let set = std::process::Command::new("chattr").arg("+d").arg(&path).status();
        if !set.is_ok_and(|status| status.success()) {
            cannot_run("this file system has no flags, or only root sets them");
            return;
        }
        let task = "file: {path: HOST/x, attributes: +A}";
        assert!(bench.check(task).await.unwrap().changed);
        bench.run_twice(task).await;
        let found = lsattr().unwrap().stdout;
        let found = String::from_utf8_lossy(&found).into_owned();
        let found = found.split(' ').next().unwrap();
        assert!(found.contains('A') && found.contains('d'), "{found}");
        bench.run_twice("lineinfile: {path: HOST/x, line: '2', attributes: -Ad}").await;
        let after = String::from_utf8_lossy(&lsattr().unwrap().stdout).into_owned();
        // The flags of the file system itself are as they were.
        let without = |flags: &str| flags.replace(['A', 'd'], "-");
        assert_eq!(after.split(' ').next().unwrap(), without(found));
        assert_eq!(bench.text("x"), "1\n2\n");
        bench.on_host("d/e", "");
        bench.run_twice("file: {path: HOST/d, recurse: true, state: directory, attributes: +A}").await;
        let below = std::process::Command::new("lsattr").arg(bench.host("d/e")).output().unwrap().stdout;
        assert!(String::from_utf8_lossy(&below).split(' ').next().unwrap().contains('A'));
        let reported = bench.failure("copy: {content: a, dest: HOST/x, attributes: '+Q'}").await;
        assert_eq!(reported, "attributes \"+Q\" contain 'Q', which chattr cannot set");
        bench.close().await;
    }

    #[tokio::test]
    async fn without_selinux_a_context_is_nothing() {
        let bench = Bench::new().await;
        if bench.remote().has_selinux() {
            cannot_run("this machine has SELinux");
            return;
        }
        let task = "copy: {content: a, dest: HOST/x, setype: etc_t, seuser: u, serole: r, selevel: s0}";
        assert!(bench.run_twice(task).await.changed);
        let reported = bench.failure("copy: {content: a, dest: HOST/x, unsafe_writes: true}").await;
        assert!(reported.starts_with("unsafe_writes must not be true"), "{reported}");
        assert!(!bench.run("copy: {content: a, dest: HOST/x, unsafe_writes: false}").await.unwrap().changed);
        bench.close().await;
    }

    #[test]
    fn parts_of_a_context_are_put_in_their_places() {
        let found = "system_u:object_r:tmp_t:s0:c1,c2";
        let with =
            |parts: [Option<&str>; 4]| with_parts(found, "u:r:usual_t:s0", &parts.map(|part| part.map(str::to_owned)));
        assert_eq!(with([None; 4]), found);
        assert_eq!(with([None, None, Some("etc_t"), None]), "system_u:object_r:etc_t:s0:c1,c2");
        assert_eq!(with([Some("a"), Some("b"), Some("_default"), Some("s1")]), "a:b:usual_t:s1");
    }

    #[test]
    fn flags_are_added_taken_away_or_all_that_there_are() {
        let found = BTreeSet::from(['a', 'A']);
        let with = |text: &str| with_flags(&found, text).unwrap().into_iter().collect::<String>();
        assert_eq!(
            (with("+i"), with("-a"), with("=i"), with("ie"), with("")),
            ("Aai".into(), "A".into(), "i".into(), "i".into(), String::new())
        );
    }
}
