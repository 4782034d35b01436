//! `synchronize`: makes one directory (or file) as another, between controller and host, over our own connection. Needs
//! no rsync: what both sides have is compared here, and only what differs goes over, many files at a time.

mod compare;
mod filter;
mod pull;
mod push;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use self::compare::{Action, Receiver, SyncOptions, SyncPlan};
use self::filter::Filter;
use self::pull::Pull;
use self::push::Push;
use self::tree::{AccountNames, FilteredTree, Item, Tree, TreeEntryKind, TreeReadOptions};
use super::{Changes, Controller, Diff, Error, Module, Outcome, Plan, host_links, host_path};
use crate::remote::{Attributes, Command, FileKind, Links, Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Synchronize {
    src: String,
    dest: String,
    mode: Mode,
    archive: bool,
    recursive: Option<bool>,
    links: Option<bool>,
    copy_links: bool,
    perms: Option<bool>,
    times: Option<bool>,
    owner: Option<bool>,
    group: Option<bool>,
    checksum: bool,
    delete: bool,
    existing_only: bool,
    rsync_opts: Vec<String>,
    // The connection's own matter, whatever is said.
    #[serde(rename = "compress")]
    _compress: bool,
    #[serde(rename = "delay_updates")]
    _delay_updates: bool,
    #[serde(rename = "use_ssh_args")]
    _use_ssh_args: bool,
    #[serde(rename = "verify_host")]
    _verify_host: bool,
    #[serde(rename = "ssh_connection_multiplexing")]
    _multiplexing: bool,
    #[serde(rename = "set_remote_user")]
    _set_remote_user: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Push,
    Pull,
}

pub(super) enum Transfer {
    Push(Push),
    Pull(Pull),
}

pub(super) struct SynchronizeChange {
    transfer: Transfer,
    /// The destination's directory is made first.
    makes_root: bool,
    outcome: Outcome,
}

/// What is sent, from where to where.
struct SyncPaths {
    /// The directory that paths are below on the sending side; of a single file the directory that it is in.
    from: String,
    /// The same on the receiving side.
    root: String,
    /// Of a single file or link: its name there. Its path in the tree is its name on the receiving side.
    single: Option<String>,
    /// For the filter.
    prefix: String,
    /// What must exist of the destination.
    above: String,
}

impl Module for Synchronize {
    const CHANGES: Changes = Changes::Files;
    const DOC: Doc = Doc {
        name: "synchronize",
        collection: "ansible.posix",
        summary: "Synchronize a directory of the host with one of the controller, in either direction",
        arguments: &[
            Argument::new("src", ArgumentKind::Path, "The source; only the contents of a directory if it ends with /")
                .required(),
            Argument::new("dest", ArgumentKind::Path, "The destination; its parent must exist").required(),
            Argument::new(
                "mode",
                ArgumentKind::Str,
                "push: from the controller to the host; pull: from the host to the controller",
            )
            .default("push")
            .choices(&["pull", "push"]),
            Argument::new(
                "archive",
                ArgumentKind::Bool,
                "The default of recursive, links, perms, times, owner and group",
            )
            .default("true"),
            Argument::new("recursive", ArgumentKind::Bool, "Whether to copy directories"),
            Argument::new("links", ArgumentKind::Bool, "Whether to copy symbolic links"),
            Argument::new("copy_links", ArgumentKind::Bool, "Whether to copy the targets of links instead")
                .default("false"),
            Argument::new("perms", ArgumentKind::Bool, "Whether to keep file modes"),
            Argument::new("times", ArgumentKind::Bool, "Whether to keep modification times"),
            Argument::new("owner", ArgumentKind::Bool, "Whether to keep owners, if root writes"),
            Argument::new("group", ArgumentKind::Bool, "Whether to keep groups, if root writes"),
            Argument::new(
                "checksum",
                ArgumentKind::Bool,
                "Whether to compare contents even if size and time are the same",
            )
            .default("false"),
            Argument::new("delete", ArgumentKind::Bool, "Whether to remove files that only the destination has")
                .default("false"),
            Argument::new("existing_only", ArgumentKind::Bool, "Whether to update existing files only")
                .default("false"),
            Argument::new(
                "rsync_opts",
                ArgumentKind::List(&ArgumentKind::Str),
                "--exclude=PATTERN and --include=PATTERN, no others",
            )
            .default("[]"),
            Argument::new("compress", ArgumentKind::Bool, "Accepted for compatibility; the connection decides")
                .default("true"),
            Argument::new(
                "delay_updates",
                ArgumentKind::Bool,
                "Accepted for compatibility; files are always replaced atomically",
            )
            .default("true"),
            Argument::new(
                "use_ssh_args",
                ArgumentKind::Bool,
                "Accepted for compatibility; the host's connection is always used",
            )
            .default("false"),
            Argument::new(
                "verify_host",
                ArgumentKind::Bool,
                "Accepted for compatibility; the host's connection decides",
            )
            .default("false"),
            Argument::new(
                "ssh_connection_multiplexing",
                ArgumentKind::Bool,
                "Accepted for compatibility; the host's connection is always used",
            )
            .default("false"),
            Argument::new(
                "set_remote_user",
                ArgumentKind::Bool,
                "Accepted for compatibility; the host's connection is always used",
            )
            .default("true"),
        ],
        free_form: None,
        example: r#"
- name: Copy the site and remove other files
  ansible.posix.synchronize:
    src: site/
    dest: /srv/site
    delete: true
    rsync_opts:
      - --exclude=.git/
      - --exclude=*.swp

- name: Collect reports of the host
  ansible.posix.synchronize:
    mode: pull
    src: /var/lib/reports
    dest: /backup/{{ inventory_hostname }}/
    owner: false
    group: false
"#,
        returns: &[
            Return::new("stdout_lines", "Changes in rsync's format, one path on each line"),
            Return::new("rc", "0"),
        ],
    };
    type Change = SynchronizeChange;

    async fn plan(&self, probe: &Probe, here: &Controller<'_>) -> Result<Plan<SynchronizeChange>, Error> {
        let filter = Filter::parse_filter(&self.rsync_opts)?;
        if self.delete && !self.is_on(self.recursive) {
            return Err(Error::failed("synchronize: delete needs recursive"));
        }
        let names = AccountNames::read_account_names();
        match self.mode {
            Mode::Push => self.plan_push(probe, here, &filter, &names).await,
            Mode::Pull => self.plan_pull(probe, here, &filter, &names).await,
        }
    }

    async fn apply(&self, change: SynchronizeChange, remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        match change.transfer {
            Transfer::Push(push) => {
                if change.makes_root {
                    remote.make_directory(&push.root, &Attributes::default()).await?;
                }
                push.apply_push(remote, here).await?;
            }
            Transfer::Pull(pull) => {
                if change.makes_root {
                    let made = std::fs::create_dir_all(&pull.root);
                    made.map_err(|error| Error::failed(format!("cannot create {}: {error}", pull.root.display())))?;
                }
                pull.apply_pull(remote).await?;
            }
        }
        Ok(change.outcome)
    }
}

impl Synchronize {
    fn is_on(&self, argument: Option<bool>) -> bool {
        argument.unwrap_or(self.archive)
    }

    fn wanted(&self) -> SyncOptions {
        SyncOptions {
            links: self.is_on(self.links) && !self.copy_links,
            perms: self.is_on(self.perms),
            times: self.is_on(self.times),
            owner: self.is_on(self.owner),
            group: self.is_on(self.group),
            checksum: self.checksum,
            delete: self.delete,
            existing_only: self.existing_only,
        }
    }

    async fn plan_push(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        filter: &Filter,
        names: &AccountNames,
    ) -> Result<Plan<SynchronizeChange>, Error> {
        let src = here.find_file("files", &self.src)?;
        let dest = probe.expand_on_host(&self.dest).await?;
        let contents = self.src.ends_with('/');
        let top = tree::controller_item(&src, names, contents || self.copy_links)?;
        let top = top.ok_or_else(|| {
            Error::failed(format!("cannot read {} on the controller: it was removed meanwhile", src.display()))
        })?;
        let there = probe.stat(&dest, Links::Follow).await?;
        let into = dest.ends_with('/') || there.is_some_and(|stat| stat.kind == FileKind::Directory);
        let Some(way) = self.way(&src.to_string_lossy(), &dest, &top, contents, into)? else {
            return Ok(skipped(&self.src));
        };
        let reading = TreeReadOptions { filter, prefix: &way.prefix, follow: self.copy_links };
        let sender = match &way.single {
            Some(name) => single(name, top),
            None => tree::of_controller(&src, names, &reading)?,
        };
        let root = host_root(probe, here, &way).await?;
        let receiver = match (&way.single, root) {
            (_, Root::Missing) => FilteredTree::default(),
            (Some(name), Root::There) => {
                match tree::host_item(probe, &host_path::join_path(&way.root, name), false).await? {
                    Some(item) => single(name, item),
                    None => FilteredTree::default(),
                }
            }
            (None, Root::There) => {
                tree::host_tree_entries(probe, &way.root, &TreeReadOptions { follow: false, ..reading }, false).await?
            }
        };
        let wanted = self.wanted();
        let side = host_receiver(probe, &sender.tree, &wanted).await?;
        let unsure = compare::unsure(&sender.tree, &receiver.tree, &wanted);
        let theirs = tree::host_digests(probe, &way.root, &unsure).await?;
        let mut ours = HashMap::new();
        for path in &unsure {
            let local = if way.single.is_some() { src.clone() } else { src.join(path) };
            ours.insert(path.clone(), here.caches.digests.of_file(&local).await?.sha1);
        }
        let difference = self.compare(&sender, &receiver, &side, (&ours, &theirs), '<')?;
        let push = |difference| {
            let (from, is_single) = (src.clone(), way.single.is_some());
            Transfer::Push(Push { from, is_single, root: way.root.clone(), difference })
        };
        Ok(self.planned(here, difference, root == Root::Missing, push))
    }

    async fn plan_pull(
        &self,
        probe: &Probe,
        here: &Controller<'_>,
        filter: &Filter,
        names: &AccountNames,
    ) -> Result<Plan<SynchronizeChange>, Error> {
        let src = probe.expand_on_host(&self.src).await?;
        let dest = local_path(here, &self.dest);
        let contents = src.ends_with('/');
        let top = tree::host_item(probe, &src, contents || self.copy_links).await?;
        let top = top.ok_or_else(|| Error::failed(format!("no such file on the host: {src}")))?;
        let text = dest.to_string_lossy().into_owned();
        let into = self.dest.ends_with('/') || dest.is_dir();
        let Some(way) = self.way(&src, &text, &top, contents, into)? else { return Ok(skipped(&src)) };
        let reading = TreeReadOptions { filter, prefix: &way.prefix, follow: self.copy_links };
        let sender = match &way.single {
            Some(name) => single(name, top),
            // An unreadable file must not count as missing: delete would remove it here.
            None => tree::host_tree_entries(probe, &way.from, &reading, true).await?,
        };
        let root_path = PathBuf::from(&way.root);
        let root = local_root(here, &way)?;
        let receiver = match (&way.single, root) {
            (_, Root::Missing) => FilteredTree::default(),
            (Some(name), Root::There) => match tree::controller_item(&root_path.join(name), names, false)? {
                Some(item) => single(name, item),
                None => FilteredTree::default(),
            },
            (None, Root::There) => {
                tree::of_controller(&root_path, names, &TreeReadOptions { follow: false, ..reading })?
            }
        };
        let wanted = self.wanted();
        let unsure = compare::unsure(&sender.tree, &receiver.tree, &wanted);
        let source = way.single.as_ref().map(|_| host_path::base_name(&src).to_owned());
        let asked: Vec<String> = unsure.iter().map(|path| source.clone().unwrap_or_else(|| path.clone())).collect();
        let found = tree::host_digests(probe, &way.from, &asked).await?;
        let theirs = unsure.iter().zip(&asked);
        let theirs = theirs.filter_map(|(path, asked)| Some((path.clone(), found.get(asked)?.clone()))).collect();
        let mut ours = HashMap::new();
        for path in &unsure {
            ours.insert(path.clone(), here.caches.digests.of_file(&root_path.join(path)).await?.sha1);
        }
        let side = local_receiver(names, &sender.tree);
        let difference = self.compare(&sender, &receiver, &side, (&ours, &theirs), '>')?;
        let pull = |difference| {
            Transfer::Pull(Pull {
                from: way.from.clone(),
                single: source.clone(),
                follow: self.copy_links,
                root: root_path.clone(),
                difference,
            })
        };
        Ok(self.planned(here, difference, root == Root::Missing, pull))
    }

    /// Where things go. None: there is nothing to send. `into`: the destination is a directory.
    fn way(&self, src: &str, dest: &str, top: &Item, contents: bool, into: bool) -> Result<Option<SyncPaths>, Error> {
        let trimmed = if dest.trim_end_matches('/').is_empty() { "/" } else { dest.trim_end_matches('/') };
        let base = host_path::base_name(src).to_owned();
        match top.what {
            TreeEntryKind::Directory if !self.is_on(self.recursive) => Ok(None),
            TreeEntryKind::Directory if contents => {
                let above = host_path::parent(trimmed).to_owned();
                let root = trimmed.to_owned();
                Ok(Some(SyncPaths { from: src.to_owned(), root, single: None, prefix: String::new(), above }))
            }
            TreeEntryKind::Directory => {
                let root = host_path::join_path(trimmed, &base);
                let above = host_path::parent(trimmed).to_owned();
                Ok(Some(SyncPaths { from: src.to_owned(), root, single: None, prefix: base, above }))
            }
            TreeEntryKind::Link(_) if !self.is_on(self.links) => Ok(None),
            TreeEntryKind::File | TreeEntryKind::Link(_) => {
                let (root, name) = match into {
                    true => (trimmed.to_owned(), base),
                    false => (host_path::parent(trimmed).to_owned(), host_path::base_name(trimmed).to_owned()),
                };
                let above = if into { host_path::parent(trimmed).to_owned() } else { root.clone() };
                let from = host_path::parent(src).to_owned();
                Ok(Some(SyncPaths { from, root, single: Some(name), prefix: String::new(), above }))
            }
            TreeEntryKind::Other => {
                Err(Error::failed(format!("cannot synchronize {src}: it is neither a file nor a directory")))
            }
        }
    }

    fn compare(
        &self,
        sender: &FilteredTree,
        receiver: &FilteredTree,
        side: &Receiver,
        (ours, theirs): (&HashMap<String, String>, &HashMap<String, String>),
        mark: char,
    ) -> Result<SyncPlan, Error> {
        let filters = sender.tree.keys().find(|path| host_path::base_name(path) == ".rsync-filter");
        if let Some(path) = filters {
            return Err(Error::Failed {
                message: format!("cannot synchronize: filter rules in {path} are not supported"),
                hint: Some(
                    "put the patterns into rsync_opts, and exclude the file with --exclude=.rsync-filter".into(),
                ),
            });
        }
        let same = |path: &str| ours.get(path).is_some_and(|digest| theirs.get(path) == Some(digest));
        compare::compare_trees(&sender.tree, receiver, &self.wanted(), side, &same, mark)
    }

    fn planned(
        &self,
        here: &Controller<'_>,
        difference: SyncPlan,
        is_missing: bool,
        transfer: impl FnOnce(SyncPlan) -> Transfer,
    ) -> Plan<SynchronizeChange> {
        let text = difference.lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let outcome = Outcome::default()
            .message(text.clone())
            .with("rc", 0)
            .with("stdout_lines", Value::from(difference.lines.clone()));
        if difference.is_nothing() {
            return Plan::Unchanged(outcome);
        }
        let diff = match here.diff {
            true => vec![Diff { after_header: self.dest.clone(), after: text, ..Diff::default() }],
            false => Vec::new(),
        };
        let makes_root = is_missing && difference.steps.iter().any(|step| step.action != Action::SetAttributes);
        let change = SynchronizeChange { transfer: transfer(difference), makes_root, outcome: outcome.clone() };
        Plan::Change { diff, outcome, change }
    }
}

fn skipped(path: &str) -> Plan<SynchronizeChange> {
    let words = format!("skipping {path}: it is a directory and recursive is off, or a link and links is off");
    Plan::Unchanged(Outcome::default().message(words).with("rc", 0).with("stdout_lines", Vec::<String>::new()))
}

fn single(name: &str, item: Item) -> FilteredTree {
    FilteredTree { tree: Tree::from([(name.to_owned(), item)]), excluded: Vec::new() }
}

/// The receiving directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    There,
    Missing,
}

const NO_PARENT: &str = "create it with an earlier task: synchronize creates only the last part of dest";

async fn host_root(probe: &Probe, here: &Controller<'_>, way: &SyncPaths) -> Result<Root, Error> {
    let SyncPaths { root, above, .. } = way;
    match host_links::stat_target(probe, root).await? {
        Some(stat) if stat.kind == FileKind::Directory => return Ok(Root::There),
        Some(_) => return Err(Error::failed(format!("cannot synchronize to {root}: it is not a directory"))),
        None => {}
    }
    // In check mode an earlier task would have created it.
    if !here.check && probe.stat(above, Links::Follow).await?.is_none() {
        let message = format!("the directory {above} does not exist on the host");
        return Err(Error::Failed { message, hint: Some(NO_PARENT.into()) });
    }
    Ok(Root::Missing)
}

fn local_root(here: &Controller<'_>, way: &SyncPaths) -> Result<Root, Error> {
    let SyncPaths { root, above, .. } = way;
    match std::fs::metadata(root) {
        Ok(meta) if meta.is_dir() => return Ok(Root::There),
        Ok(_) => return Err(Error::failed(format!("cannot synchronize to {root}: it is not a directory"))),
        Err(_) => {}
    }
    if !here.check && !Path::new(above).is_dir() {
        let message = format!("the directory {above} does not exist on the controller");
        return Err(Error::Failed { message, hint: Some(NO_PARENT.into()) });
    }
    Ok(Root::Missing)
}

/// A path of the controller: relative ones start at the play's directory.
fn local_path(here: &Controller<'_>, path: &str) -> PathBuf {
    here.scope.base.join(here.scope.surroundings.expand_home(path))
}

/// The names of the owners of a tree.
fn owners(tree: &Tree) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let users = tree.values().map(|item| item.user.as_str()).filter(|name| !name.is_empty());
    let groups = tree.values().map(|item| item.group.as_str()).filter(|name| !name.is_empty());
    (users.collect(), groups.collect())
}

/// Prints the umask, then the numbers of users and groups. 1 how many users; then their names, then the groups'.
const NUMBERS: &str = r#"
umask
n=$1
shift
while [ "$n" -gt 0 ]; do echo "u $(id -u "$1" 2>/dev/null) $1"; shift; n=$((n-1)); done
for g do echo "g $( { getent group "$g" || awk -F: -v n="$g" '$1 == n' /etc/group; } 2>/dev/null | cut -d: -f3) $g"; done
"#;

async fn host_receiver(probe: &Probe, sender: &Tree, wanted: &SyncOptions) -> Result<Receiver, Error> {
    let is_root = probe.user() == "root";
    let (mut users, mut groups) = owners(sender);
    if !is_root || !wanted.owner {
        users.clear();
    }
    if !is_root || !wanted.group {
        groups.clear();
    }
    let count = users.len().to_string();
    let argv = ["sh", "-c", NUMBERS, "sh", &count].into_iter().chain(users).chain(groups);
    let output = probe.query(&Command::program(argv)).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let umask = lines.next().and_then(|line| u32::from_str_radix(line.trim(), 8).ok()).unwrap_or(0o022);
    let mut side = Receiver { umask, is_root, users: HashMap::new(), groups: HashMap::new() };
    for line in lines {
        let mut words = line.splitn(3, ' ');
        let (kind, number, name) = (words.next(), words.next(), words.next());
        if let (Some(kind), Some(Ok(number)), Some(name)) = (kind, number.map(str::parse), name) {
            let known = if kind == "u" { &mut side.users } else { &mut side.groups };
            known.insert(name.to_owned(), number);
        }
    }
    Ok(side)
}

fn local_receiver(names: &AccountNames, sender: &Tree) -> Receiver {
    use std::os::unix::fs::MetadataExt;
    let (users, groups) = owners(sender);
    let numbers = |all: BTreeSet<&str>, is_group| {
        let number = |name: &str| Some((name.to_owned(), names.account_id(name, is_group)?));
        all.into_iter().filter_map(number).collect()
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("Umask:")?.trim(), 8).ok());
    Receiver {
        umask: umask.unwrap_or(0o022),
        is_root: std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0),
        users: numbers(users, false),
        groups: numbers(groups, true),
    }
}
