//! Two sides compared: what is to be done to make the second as the first, in an order that works.

use std::collections::{BTreeSet, HashMap};

use super::tree::{FilteredTree, Item, Tree, TreeEntryKind};
use crate::modules::Error;

/// What is kept the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct SyncOptions {
    pub links: bool,
    pub perms: bool,
    pub times: bool,
    pub owner: bool,
    pub group: bool,
    pub checksum: bool,
    pub delete: bool,
    pub existing_only: bool,
}

/// The side that receives.
pub(super) struct Receiver {
    pub umask: u32,
    /// Only root can change the owner of files.
    pub is_root: bool,
    /// Numbers there of names here.
    pub users: HashMap<String, u32>,
    pub groups: HashMap<String, u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    MakeDirectory,
    /// A file with its content, or a link.
    Send,
    /// The existing file differs only in its attributes.
    SetAttributes,
}

/// One path that changes.
#[derive(Debug, Clone)]
pub(crate) struct SyncStep {
    pub path: String,
    pub action: Action,
    pub what: TreeEntryKind,
    pub size: u64,
    pub mode: u32,
    /// None: the time of the transfer.
    pub mtime: Option<i64>,
    /// None: the user who writes it.
    pub owner: Option<(u32, u32)>,
}

/// All that is to be done.
#[derive(Debug, Default)]
pub(crate) struct SyncPlan {
    /// In the way of something of another kind.
    pub first_removed: Vec<String>,
    pub steps: Vec<SyncStep>,
    /// What the sender does not have, contents before their directories.
    pub last_removed: Vec<String>,
    /// Directories whose times change when things are put into them, and their times.
    pub touched: Vec<(String, i64)>,
    /// What rsync would say.
    pub lines: Vec<String>,
}

/// Files of the same size, for which only the content shows whether they differ.
pub(super) fn unsure(sender: &Tree, receiver: &Tree, wanted: &SyncOptions) -> Vec<String> {
    let same_size = |path: &String, item: &Item| {
        let there = receiver.get(path).filter(|there| there.what == TreeEntryKind::File && there.size == item.size);
        there.is_some_and(|there| wanted.checksum || !wanted.times || there.mtime != item.mtime)
    };
    let files = sender.iter().filter(|(_, item)| item.what == TreeEntryKind::File);
    files.filter(|(path, item)| same_size(path, item)).map(|(path, _)| path.clone()).collect()
}

/// Compares. `same`: of the unsure files those with the same content. `mark`: `<` or `>`, as rsync shows the direction.
pub(super) fn compare_trees(
    sender: &Tree,
    receiver: &FilteredTree,
    wanted: &SyncOptions,
    side: &Receiver,
    same: &dyn Fn(&str) -> bool,
    mark: char,
) -> Result<SyncPlan, Error> {
    let mut all = Comparison { wanted, side, mark, receiver, sender, found: SyncPlan::default() };
    for (path, item) in sender {
        all.item(path, item, same)?;
    }
    if wanted.delete && sender.get("").is_some() {
        all.removals();
    }
    all.touched();
    Ok(all.found)
}

struct Comparison<'a> {
    wanted: &'a SyncOptions,
    side: &'a Receiver,
    mark: char,
    receiver: &'a FilteredTree,
    sender: &'a Tree,
    found: SyncPlan,
}

impl Comparison<'_> {
    fn item(&mut self, path: &str, item: &Item, same: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        match item.what {
            TreeEntryKind::Other => {
                return Err(Error::Failed {
                    message: format!("cannot synchronize {path:?}: it is a device, a socket or a pipe"),
                    hint: Some("exclude it: rsync_opts: [--exclude=…]".to_owned()),
                });
            }
            TreeEntryKind::Link(_) if !self.wanted.links => return Ok(()),
            _ => {}
        }
        let Some(there) = self.receiver.tree.get(path) else {
            if !self.wanted.existing_only {
                self.create(path, item, None);
            }
            return Ok(());
        };
        let same_kind = std::mem::discriminant(&there.what) == std::mem::discriminant(&item.what);
        if !same_kind {
            return self.replace(path, item, there);
        }
        let differs = match (&item.what, &there.what) {
            (TreeEntryKind::File, _) => item.size != there.size || (self.is_unsure(item, there) && !same(path)),
            (TreeEntryKind::Link(target), TreeEntryKind::Link(found)) => target != found,
            _ => false,
        };
        if differs {
            self.create(path, item, Some(there));
        } else {
            self.attributes(path, item, there);
        }
        Ok(())
    }

    fn is_unsure(&self, item: &Item, there: &Item) -> bool {
        self.wanted.checksum || !self.wanted.times || item.mtime != there.mtime
    }

    /// Something of another kind is there.
    fn replace(&mut self, path: &str, item: &Item, there: &Item) -> Result<(), Error> {
        if there.what == TreeEntryKind::Directory {
            let below = format!("{path}/");
            let full = self.receiver.tree.keys().any(|other| other.starts_with(&below));
            let excluded = self.receiver.excluded.iter().any(|other| other.starts_with(&below));
            if excluded || (full && !self.wanted.delete) {
                return Err(Error::Failed {
                    message: format!("cannot write {path:?}: a directory with this name is not empty"),
                    hint: (!excluded).then(|| "delete: true removes it".to_owned()),
                });
            }
        }
        if there.what == TreeEntryKind::Directory || item.what == TreeEntryKind::Directory {
            self.found.first_removed.push(path.to_owned());
        }
        self.create(path, item, None);
        Ok(())
    }

    fn create(&mut self, path: &str, item: &Item, there: Option<&Item>) {
        let action = if item.what == TreeEntryKind::Directory { Action::MakeDirectory } else { Action::Send };
        let line = match there {
            Some(there) => self.changes(item, there, true),
            None => "+++++++++".to_owned(),
        };
        let verb = match item.what {
            TreeEntryKind::File => self.mark,
            _ => 'c',
        };
        self.say(verb, path, item, &line);
        self.found.steps.push(self.step(path, item, there, action));
    }

    fn attributes(&mut self, path: &str, item: &Item, there: &Item) {
        let line = self.changes(item, there, false);
        if line.chars().all(|c| c == '.') {
            return;
        }
        self.say('.', path, item, &line);
        self.found.steps.push(self.step(path, item, Some(there), Action::SetAttributes));
    }

    fn step(&self, path: &str, item: &Item, there: Option<&Item>, action: Action) -> SyncStep {
        SyncStep {
            path: path.to_owned(),
            action,
            what: item.what.clone(),
            size: item.size,
            mode: self.mode(item, there),
            mtime: self.wanted.times.then_some(item.mtime),
            owner: self.owner(item, there),
        }
    }

    fn mode(&self, item: &Item, there: Option<&Item>) -> u32 {
        match there {
            _ if self.wanted.perms => item.mode,
            Some(there) => there.mode,
            None => item.mode & !self.side.umask,
        }
    }

    /// Owner and group as numbers there; what is not synchronized is kept.
    fn owner(&self, item: &Item, there: Option<&Item>) -> Option<(u32, u32)> {
        if !self.side.is_root {
            return None;
        }
        let user = self.side.users.get(&item.user).copied().unwrap_or(item.uid);
        let group = self.side.groups.get(&item.group).copied().unwrap_or(item.gid);
        let old = there.map_or((0, 0), |there| (there.uid, there.gid));
        Some((if self.wanted.owner { user } else { old.0 }, if self.wanted.group { group } else { old.1 }))
    }

    /// What differs, in rsync's letters.
    fn changes(&self, item: &Item, there: &Item, content: bool) -> String {
        let is_link = matches!(item.what, TreeEntryKind::Link(_));
        let is_file = item.what == TreeEntryKind::File;
        let owner = self.owner(item, Some(there)).unwrap_or((there.uid, there.gid));
        // A link's own time and permissions are not compared.
        let late = !is_link && item.mtime != there.mtime;
        let flags = [
            (content && (is_link || (is_file && self.wanted.checksum)), 'c'),
            (is_file && item.size != there.size, 's'),
            (
                late && self.wanted.times || content && is_file && !self.wanted.times,
                if self.wanted.times { 't' } else { 'T' },
            ),
            (!is_link && self.mode(item, Some(there)) != there.mode, 'p'),
            (owner.0 != there.uid, 'o'),
            (owner.1 != there.gid, 'g'),
        ];
        let letters: String = flags.iter().map(|(differs, letter)| if *differs { *letter } else { '.' }).collect();
        format!("{letters}...")
    }

    fn say(&mut self, verb: char, path: &str, item: &Item, changes: &str) {
        let (kind, end) = match &item.what {
            TreeEntryKind::Directory => ('d', "/".to_owned()),
            TreeEntryKind::Link(target) => ('L', format!(" -> {target}")),
            _ => ('f', String::new()),
        };
        let shown = if path.is_empty() { "." } else { path };
        self.found.lines.push(format!("{verb}{kind}{changes} {shown}{end}"));
    }

    /// What only the receiver has goes, but for what is excluded and the directories that hold it.
    fn removals(&mut self) {
        let mut kept: BTreeSet<&str> = BTreeSet::new();
        for excluded in &self.receiver.excluded {
            let mut path = excluded.as_str();
            while let Some((parent, _)) = path.rsplit_once('/') {
                kept.insert(parent);
                path = parent;
            }
        }
        let replaced: Vec<String> = self.found.first_removed.iter().map(|path| format!("{path}/")).collect();
        for (path, item) in self.receiver.tree.iter().rev() {
            let there = self
                .sender
                .get(path)
                .is_some_and(|item| self.wanted.links || !matches!(item.what, TreeEntryKind::Link(_)));
            let gone = replaced.iter().any(|directory| path.starts_with(directory));
            if path.is_empty() || there || gone || kept.contains(path.as_str()) {
                continue;
            }
            let end = if item.what == TreeEntryKind::Directory { "/" } else { "" };
            self.found.lines.push(format!("*deleting   {path}{end}"));
            self.found.last_removed.push(path.clone());
        }
    }

    /// The directories in which something is made or removed, with the times that they are to keep.
    fn touched(&mut self) {
        if !self.wanted.times {
            return;
        }
        let made = self.found.steps.iter().filter(|step| step.action != Action::SetAttributes).map(|step| &step.path);
        let changed = made.chain(&self.found.first_removed).chain(&self.found.last_removed);
        let parents = changed.filter(|path| !path.is_empty()).map(|path| path.rsplit_once('/').map_or("", |it| it.0));
        let own =
            self.found.steps.iter().filter(|step| step.what == TreeEntryKind::Directory).map(|step| step.path.as_str());
        let all: BTreeSet<&str> = parents.chain(own).collect();
        let times = all.into_iter().filter_map(|path| {
            let item = self.sender.get(path).filter(|item| item.what == TreeEntryKind::Directory)?;
            Some((path.to_owned(), item.mtime))
        });
        // Those further down first: nothing is done in a directory after its time was set.
        let mut times: Vec<_> = times.collect();
        times.reverse();
        self.found.touched = times;
    }
}

impl SyncPlan {
    pub(crate) fn is_nothing(&self) -> bool {
        self.steps.is_empty() && self.last_removed.is_empty() && self.first_removed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(what: TreeEntryKind, size: u64, mtime: i64) -> Item {
        let (user, group) = (String::new(), String::new());
        Item { what, mode: 0o644, size, mtime, uid: 1, gid: 1, user, group }
    }

    fn tree(items: &[(&str, TreeEntryKind, u64, i64)]) -> Tree {
        items.iter().map(|(path, what, size, mtime)| ((*path).to_owned(), item(what.clone(), *size, *mtime))).collect()
    }

    fn wanted() -> SyncOptions {
        SyncOptions {
            links: true,
            perms: true,
            times: true,
            owner: true,
            group: true,
            checksum: false,
            delete: true,
            existing_only: false,
        }
    }

    fn receiver() -> Receiver {
        Receiver { umask: 0o022, is_root: true, users: HashMap::new(), groups: HashMap::new() }
    }

    fn lines(sender: &Tree, tree: Tree, excluded: &[&str], wanted: &SyncOptions) -> Vec<String> {
        let receiver_side = FilteredTree { tree, excluded: excluded.iter().map(|path| (*path).to_owned()).collect() };
        compare_trees(sender, &receiver_side, wanted, &receiver(), &|path| path == "same", '<').unwrap().lines
    }

    #[test]
    fn what_differs_is_reported_in_rsync_s_letters() {
        use TreeEntryKind::{Directory, File, Link};
        let sender = tree(&[
            ("", Directory, 0, 1),
            ("a", File, 3, 1),
            ("b", File, 4, 2),
            ("l", Link("x".into()), 1, 1),
            ("new", Directory, 0, 1),
            ("same", File, 2, 9),
        ]);
        let there = tree(&[
            ("", Directory, 0, 1),
            ("a", File, 3, 1),
            ("b", File, 3, 1),
            ("l", Link("y".into()), 1, 1),
            ("old", Directory, 0, 1),
            ("old/keep", File, 0, 1),
            ("same", File, 2, 1),
        ]);
        let expected = [
            "<f.st...... b",
            "cLc........ l -> x",
            "cd+++++++++ new/",
            ".f..t...... same",
            "*deleting   old/keep",
            "*deleting   old/",
        ];
        assert_eq!(lines(&sender, there.clone(), &[], &wanted()), expected);
        let kept = lines(&sender, there.clone(), &["old/mine"], &wanted());
        assert_eq!(kept.last().unwrap(), "*deleting   old/keep");
        let existing = SyncOptions { existing_only: true, delete: false, ..wanted() };
        assert!(!lines(&sender, there, &[], &existing).iter().any(|line| line.contains('+')));
    }

    #[test]
    fn a_full_directory_is_not_replaced_unless_asked() {
        let sender = tree(&[("", TreeEntryKind::Directory, 0, 1), ("a", TreeEntryKind::File, 0, 1)]);
        let there = tree(&[
            ("", TreeEntryKind::Directory, 0, 1),
            ("a", TreeEntryKind::Directory, 0, 1),
            ("a/b", TreeEntryKind::File, 0, 1),
        ]);
        let listed = FilteredTree { tree: there.clone(), excluded: Vec::new() };
        let strict = SyncOptions { delete: false, ..wanted() };
        assert!(compare_trees(&sender, &listed, &strict, &receiver(), &|_| true, '<').is_err());
        let found = compare_trees(&sender, &listed, &wanted(), &receiver(), &|_| true, '<').unwrap();
        assert_eq!((found.first_removed, found.last_removed.len()), (vec!["a".to_owned()], 0));
    }

    #[test]
    fn without_perms_and_owner_what_is_there_stays() {
        let (mut sender, mut there) =
            (tree(&[("a", TreeEntryKind::File, 1, 1)]), tree(&[("a", TreeEntryKind::File, 1, 1)]));
        sender.get_mut("a").unwrap().mode = 0o777;
        there.get_mut("a").unwrap().uid = 7;
        let strict = SyncOptions { perms: false, owner: false, delete: false, ..wanted() };
        assert!(lines(&sender, there.clone(), &[], &strict).is_empty());
        assert_eq!(lines(&sender, there, &[], &SyncOptions { delete: false, ..wanted() }), [".f...po.... a"]);
        let listed = FilteredTree::default();
        let found = compare_trees(&sender, &listed, &strict, &receiver(), &|_| true, '<').unwrap();
        assert_eq!((found.steps[0].mode, found.steps[0].owner), (0o755, Some((0, 1))));
    }
}
