//! `assemble`: the files of a directory, in the order of their names, as one file.

use fancy_regex::Regex;
use serde::Deserialize;

use super::file_attributes::{self, DesiredAttributes};
use super::file_digest::Digests;
use super::file_write::{self, Content, DesiredFile, Destination, Write};
use super::host_tree::Tree;
use super::{
    Async, Changes, Controller, Error, Module, Outcome, Plan, file_arguments, host_links, host_path, python_regex,
    vault_file,
};
use crate::remote::{FileKind, Links, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Assemble {
    src: String,
    dest: String,
    delimiter: Option<String>,
    regexp: Option<String>,
    ignore_hidden: bool,
    remote_src: bool,
    decrypt: bool,
    backup: bool,
    validate: Option<String>,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
}

pub(super) struct AssembleChange {
    write: Write,
    digests: Digests,
}

impl Module for Assemble {
    const CHANGES: Changes = Changes::Files;
    const ASYNC: Async = Async::Never;
    const DOC: Doc = Doc {
        name: "assemble",
        collection: "ansible.builtin",
        summary: "Join the files of a directory into one file",
        arguments: &[
            Argument::new("src", ArgumentKind::Path, "The directory with the fragments").required(),
            Argument::new("dest", ArgumentKind::Path, "The file on the host").required(),
            Argument::new("delimiter", ArgumentKind::Str, "The text between two fragments; \\n is a newline"),
            Argument::new(
                "regexp",
                ArgumentKind::Str,
                "A regular expression; only fragments whose names match are used",
            ),
            Argument::new("ignore_hidden", ArgumentKind::Bool, "Whether to skip names that start with a dot")
                .default("false"),
            file_arguments::REMOTE_SRC.default("true"),
            Argument::new("decrypt", ArgumentKind::Bool, "Whether to decrypt fragments that are vault files")
                .default("true"),
            file_arguments::BACKUP,
            file_arguments::VALIDATE,
            file_arguments::OWNER,
            file_arguments::GROUP,
            file_arguments::MODE,
            file_arguments::ATTRIBUTES,
            file_arguments::SEUSER,
            file_arguments::SEROLE,
            file_arguments::SETYPE,
            file_arguments::SELEVEL,
            file_arguments::UNSAFE_WRITES,
        ],
        free_form: None,
        example: r####"
- name: Assemble the configuration
  assemble:
    src: /etc/haproxy/conf.d
    dest: /etc/haproxy/haproxy.cfg
    regexp: '\.cfg$'
    delimiter: '### next part ###'
    validate: /usr/sbin/haproxy -c -f %s
"####,
        returns: &[
            Return::new("dest", "The file"),
            Return::new("src", "The directory with the fragments"),
            Return::new("checksum", "SHA-1 of the file"),
            Return::new("md5sum", "MD5 of the file"),
            file_arguments::returns::BACKUP_FILE,
        ],
    };
    type Change = AssembleChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<AssembleChange>, Error> {
        let (fragments, secret) = match self.remote_src {
            true => (self.fragments_on_host(probe).await?, false),
            false => self.fragments_here(here).await?,
        };
        let delimiter = self.delimiter.as_deref().map(unescape).filter(|delimiter| !delimiter.is_empty());
        let content = join(&fragments, delimiter.as_deref());
        let destination = Destination::find_destination(probe, &self.dest, None, false).await?;
        let wanted =
            DesiredAttributes::load_wanted(probe, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        let desired = DesiredFile {
            content: Content::Bytes(content),
            wanted: &wanted,
            directories: &DesiredAttributes::default(),
            backup: self.backup,
            validate: self.validate.as_deref(),
            secret,
            source: &self.src,
        };
        let found = file_write::compare_file(probe, here, &destination, desired).await?;
        let outcome = file_write::write_outcome(&destination.path, &found.digests, None, None).await?;
        let outcome = self.reported(outcome, &found.digests);
        let stat = destination.there.as_ref().map(|(stat, _)| stat);
        Ok(match (found.write, stat) {
            (Some(write), _) => {
                Plan::Change { diff: found.diff, outcome, change: AssembleChange { write, digests: found.digests } }
            }
            (None, Some(stat)) => Plan::Unchanged(file_attributes::add_attributes(outcome, stat)),
            (None, None) => Plan::Unchanged(outcome),
        })
    }

    async fn apply(&self, change: AssembleChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let outcome = change.write.apply_and_tell(remote, here, &change.digests).await?;
        Ok(self.reported(outcome, &change.digests))
    }
}

impl Assemble {
    fn reported(&self, outcome: Outcome, digests: &Digests) -> Outcome {
        outcome.with("src", self.src.as_str()).with("md5sum", digests.md5.as_str()).message("OK")
    }

    fn filter(&self) -> Result<Option<Regex>, Error> {
        self.regexp.as_deref().map(|regexp| python_regex::compile(regexp, "regexp")).transpose()
    }

    fn is_fragment(&self, name: &str, filter: Option<&Regex>) -> Result<bool, Error> {
        if self.ignore_hidden && name.starts_with('.') {
            return Ok(false);
        }
        filter.map_or(Ok(true), |regex| python_regex::is_match(regex, name))
    }

    async fn fragments_on_host(&self, probe: &Probe) -> Result<Vec<Vec<u8>>, Error> {
        let src = probe.expand_on_host(&self.src).await?;
        match host_links::stat_target(probe, &src).await? {
            None => return Err(Error::failed(format!("no such directory on the host: {src}"))),
            Some(stat) if stat.kind != FileKind::Directory => {
                return Err(Error::failed(format!("{src} is not a directory")));
            }
            Some(_) => {}
        }
        let filter = self.filter()?;
        let mut fragments = Vec::new();
        let tree = Tree::search(probe, &src, Links::Keep, &["-maxdepth".into(), "1".into()]).await?;
        for (name, stat) in tree.sorted() {
            if !self.is_fragment(&name, filter.as_ref())? {
                continue;
            }
            let path = host_path::join_path(&src, &name);
            let kind = match stat.kind {
                FileKind::Link => host_links::stat_target(probe, &path).await?.map(|stat| stat.kind),
                kind => Some(kind),
            };
            if kind == Some(FileKind::File) {
                let vanished = || Error::failed(format!("{path} was removed while it was read"));
                fragments.push(probe.read_file(&path).await?.ok_or_else(vanished)?);
            }
        }
        Ok(fragments)
    }

    /// The fragments, and whether one of them was encrypted.
    async fn fragments_here(&self, here: &Controller<'_>) -> Result<(Vec<Vec<u8>>, bool), Error> {
        let src = here.find_file("files", &self.src)?;
        let listed = std::fs::read_dir(&src).and_then(|list| list.collect::<Result<Vec<_>, _>>());
        let mut listed = listed.map_err(|error| file_write::unreadable(&src, &error))?;
        listed.sort_by_key(std::fs::DirEntry::file_name);
        let filter = self.filter()?;
        let (mut fragments, mut secret) = (Vec::new(), false);
        for item in listed {
            let path = item.path();
            if !path.is_file() || !self.is_fragment(&item.file_name().to_string_lossy(), filter.as_ref())? {
                continue;
            }
            let is_vault = self.decrypt && vault_file::is_vault(&path)?;
            secret |= is_vault;
            fragments.push(match is_vault {
                true => vault_file::decrypt(here, &path).await?,
                false => file_write::read_controller_file(&path).await?,
            });
        }
        Ok((fragments, secret))
    }
}

/// The fragments one after the other, each starting on a new line, and so does the delimiter between them.
fn join(fragments: &[Vec<u8>], delimiter: Option<&str>) -> Vec<u8> {
    let mut whole: Vec<u8> = Vec::new();
    for (at, fragment) in fragments.iter().enumerate() {
        if at > 0 && !fragments[at - 1].ends_with(b"\n") {
            whole.push(b'\n');
        }
        if let (Some(delimiter), true) = (delimiter, at > 0) {
            whole.extend_from_slice(delimiter.as_bytes());
            if !delimiter.ends_with('\n') {
                whole.push(b'\n');
            }
        }
        whole.extend_from_slice(fragment);
    }
    whole
}

/// `\n`, `\t`, `\\` and the like as Python reads them.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match characters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('\\') | None => out.push('\\'),
            Some(quote @ ('\'' | '"')) => out.push(quote),
            Some(other) => out.extend(['\\', other]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};

    #[tokio::test]
    async fn fragments_of_the_host_are_joined_in_order() {
        let bench = Bench::new().await;
        bench.on_host("d/2 b", "two");
        bench.on_host("d/1", "one\n");
        bench.on_host("d/3\nc", "three\n");
        bench.on_host("d/.hidden", "hidden\n");
        bench.on_host("d/sub/4", "not a fragment");
        bench.on_host("elsewhere", "four\n");
        for (link, target) in [("d/4", "../elsewhere"), ("d/5", "nowhere")] {
            std::os::unix::fs::symlink(target, bench.host(link)).unwrap();
        }
        let task = "assemble: {src: HOST/d, dest: HOST/all, ignore_hidden: true, mode: '0600'}";
        assert!(bench.check(task).await.unwrap().changed);
        let done = bench.run_twice(task).await;
        assert_eq!((bench.text("all").as_str(), bench.mode("all")), ("one\ntwo\nthree\nfour\n", 0o600));
        assert_eq!(done.outcome.message.as_deref(), Some("OK"));
        assert_eq!(value(&done.outcome, "checksum").len(), 40);
        let task = r"assemble: {src: HOST/d, dest: HOST/some, regexp: '^[12]', delimiter: '--\n#'}";
        bench.run_twice(task).await;
        assert_eq!(bench.text("some"), "one\n--\n#\ntwo");
    }

    #[tokio::test]
    async fn fragments_of_the_controller_are_joined() {
        let bench = Bench::new().await;
        bench.on_controller("files/parts/b", "2");
        bench.on_controller("files/parts/a", "1");
        bench.run_twice("assemble: {src: parts, dest: HOST/all, remote_src: false}").await;
        assert_eq!(bench.text("all"), "1\n2");
    }

    #[tokio::test]
    async fn what_cannot_be_joined_is_said() {
        let bench = Bench::new().await;
        bench.on_host("x", "");
        let message = bench.failure("assemble: {src: HOST/none, dest: HOST/all}").await;
        assert!(message.starts_with("no such directory on the host"), "{message}");
        let message = bench.failure("assemble: {src: HOST/x, dest: HOST/all}").await;
        assert!(message.ends_with("is not a directory"), "{message}");
    }
}
