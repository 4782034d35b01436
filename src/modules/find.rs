//! `find`: paths of a host by name, kind, age, size, mode and content.

mod criteria;

use serde::Deserialize;

use super::host_tree::Tree;
use super::{Controller, Error, Inspect, Outcome, host_path, stat_fields};
use crate::remote::{Command, Digest, FileKind, Links, Probe, Stat};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::{Value, Vars};
use criteria::Criteria;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Find {
    paths: Vec<String>,
    patterns: Vec<String>,
    excludes: Option<Vec<String>>,
    use_regex: bool,
    contains: Option<String>,
    read_whole_file: bool,
    file_type: Type,
    age: Option<String>,
    age_stamp: FindTimestamp,
    size: Option<String>,
    recurse: bool,
    depth: Option<i64>,
    hidden: bool,
    follow: bool,
    get_checksum: bool,
    checksum_algorithm: Algorithm,
    mode: Option<String>,
    exact_mode: bool,
    limit: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Type {
    Any,
    Directory,
    File,
    Link,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FindTimestamp {
    Atime,
    Ctime,
    Mtime,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Algorithm {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// What the search came to.
#[derive(Default)]
struct Findings {
    files: Vec<Value>,
    examined: usize,
    skipped: Vars,
}

impl Inspect for Find {
    const DOC: Doc = Doc {
        name: "find",
        collection: "ansible.builtin",
        summary: "Find files by name, type, age, size, mode and content",
        arguments: &[
            Argument::new("paths", ArgumentKind::List(&ArgumentKind::Path), "Directories to search")
                .required()
                .alias(&["name", "path"]),
            Argument::new(
                "patterns",
                ArgumentKind::List(&ArgumentKind::Str),
                "Names, with * and ? and [], or regular expressions with use_regex",
            )
            .default("[]")
            .alias(&["pattern"]),
            Argument::new("excludes", ArgumentKind::List(&ArgumentKind::Str), "Names to skip").alias(&["exclude"]),
            Argument::new("use_regex", ArgumentKind::Bool, "Whether patterns and excludes are regular expressions")
                .default("false"),
            Argument::new(
                "contains",
                ArgumentKind::Str,
                "Regular expression that must match at the start of a line of the file",
            ),
            Argument::new("read_whole_file", ArgumentKind::Bool, "Whether contains is searched in the whole text")
                .default("false"),
            Argument::new("file_type", ArgumentKind::Str, "What to find").default("file").choices(&[
                "any",
                "directory",
                "file",
                "link",
            ]),
            Argument::new(
                "age",
                ArgumentKind::Str,
                "At least this old (2d), or at most if negative (-2d); units s, m, h, d, w",
            ),
            Argument::new("age_stamp", ArgumentKind::Str, "Which time age compares")
                .default("mtime")
                .choices(&["atime", "ctime", "mtime"]),
            Argument::new(
                "size",
                ArgumentKind::Str,
                "At least this large (10m), or at most if negative; units b, k, m, g, t",
            ),
            Argument::new("recurse", ArgumentKind::Bool, "Whether to search subdirectories").default("false"),
            Argument::new("depth", ArgumentKind::Int, "The maximum depth, with recurse"),
            Argument::new("hidden", ArgumentKind::Bool, "Whether to find names that start with a dot").default("false"),
            Argument::new("follow", ArgumentKind::Bool, "Whether to follow symbolic links to directories")
                .default("false"),
            Argument::new("get_checksum", ArgumentKind::Bool, "Whether to return checksums").default("false"),
            Argument::new("checksum_algorithm", ArgumentKind::Str, "Which checksum")
                .default("sha1")
                .choices(&["md5", "sha1", "sha224", "sha256", "sha384", "sha512"])
                .alias(&["checksum", "checksum_algo"]),
            Argument::new("mode", ArgumentKind::Mode, "The required file mode"),
            Argument::new("exact_mode", ArgumentKind::Bool, "Whether the mode must match exactly").default("true"),
            Argument::new("limit", ArgumentKind::Int, "The maximum number of results"),
        ],
        free_form: None,
        example: r#"
- name: Find old snapshots
  find:
    paths: /var/backups/etcd
    patterns: "*.db"
    age: 7d
  register: old

- name: Remove them
  file:
    path: "{{ item.path }}"
    state: absent
  loop: "{{ old.files }}"
"#,
        returns: &[
            Return::new("files", "What was found: path, mode, size, owner and more of each"),
            Return::new("matched", "How many were found"),
            Return::new("examined", "How many were examined"),
            Return::new("skipped_paths", "What could not be searched, and why"),
            Return::new("msg", "Whether all paths could be searched"),
        ],
    };
    async fn inspect(&self, probe: &Probe, _: &Controller<'_>) -> Result<Outcome, Error> {
        let criteria = self.criteria(probe).await?;
        let limit = match self.limit {
            Some(limit) if limit <= 0 => return Err(Error::failed(format!("find: limit cannot be {limit}"))),
            limit => limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX),
        };
        let mut findings = Findings::default();
        for path in &self.paths {
            let path = probe.expand_on_host(path).await?;
            self.search(probe, &path, &criteria, limit, &mut findings).await?;
            if findings.files.len() >= limit {
                break;
            }
        }
        let message = if !findings.skipped.is_empty() {
            "Not all paths examined, check warnings for details"
        } else if findings.files.len() >= limit {
            "Limit of matches reached"
        } else {
            "All paths examined"
        };
        Ok(Outcome::default()
            .message(message)
            .with("matched", findings.files.len())
            .with("examined", findings.examined)
            .with("files", Value::from_iter(findings.files))
            .with("skipped_paths", Value::from_pairs(findings.skipped)))
    }
}

impl Find {
    async fn criteria(&self, probe: &Probe) -> Result<Criteria, Error> {
        // Ages are counted by the host's clock.
        if self.age.is_none() {
            return Criteria::new(self, 0);
        }
        let output = probe.query(&Command::program(["date", "+%s"])).await?;
        let now = String::from_utf8_lossy(&output.stdout).trim().parse();
        Criteria::new(self, now.map_err(|_| Error::failed("cannot read the clock of the host: date said no number"))?)
    }

    async fn search(
        &self,
        probe: &Probe,
        path: &str,
        criteria: &Criteria,
        limit: usize,
        findings: &mut Findings,
    ) -> Result<(), Error> {
        if probe.stat(path, Links::Follow).await?.is_none_or(|stat| stat.kind != FileKind::Directory) {
            let reason = format!("'{path}' is not a directory");
            stat_fields::set_field(&mut findings.skipped, path, reason);
            return Ok(());
        }
        let depth = match (self.recurse, self.depth) {
            (false, _) => Some(1),
            (true, depth) => depth.filter(|depth| *depth > 0),
        };
        let depth: Vec<String> =
            depth.map(|depth| ["-maxdepth".to_owned(), depth.to_string()]).into_iter().flatten().collect();
        let tree = Tree::walk(probe, path, self.follow, &depth).await?;
        if let Some(reason) = tree.incomplete() {
            stat_fields::set_field(&mut findings.skipped, path, reason);
        }
        for (relative, stat) in tree.sorted() {
            findings.examined += 1;
            let whole = host_path::join_path(path, &relative);
            if criteria.is_met(host_path::base_name(&relative), &stat)?
                && self.has_content(probe, &whole, &stat, criteria).await?
            {
                let found = self.describe(probe, &whole, &stat).await?;
                findings.files.push(found);
                if findings.files.len() >= limit {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn has_content(&self, probe: &Probe, path: &str, stat: &Stat, criteria: &Criteria) -> Result<bool, Error> {
        if self.contains.is_none() || stat.kind != FileKind::File || self.file_type != Type::File {
            return Ok(true);
        }
        // What may not be read has no content that is known, as in Ansible.
        match probe.read_file(path).await {
            Ok(Some(content)) => criteria.is_in(&String::from_utf8_lossy(&content)),
            Ok(None) | Err(crate::remote::Error::Refused { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn describe(&self, probe: &Probe, path: &str, stat: &Stat) -> Result<Value, Error> {
        let mut fields = stat_fields::stat_values(path, stat);
        if self.get_checksum && stat.kind == FileKind::File {
            let digest = match self.checksum_algorithm {
                Algorithm::Md5 => Digest::Md5,
                Algorithm::Sha1 => Digest::Sha1,
                Algorithm::Sha224 => Digest::Sha224,
                Algorithm::Sha256 => Digest::Sha256,
                Algorithm::Sha384 => Digest::Sha384,
                Algorithm::Sha512 => Digest::Sha512,
            };
            let checksum = probe.digest(path, digest).await?;
            stat_fields::set_field(&mut fields, "checksum", checksum);
        }
        Ok(Value::from_pairs(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use crate::modules::ModuleResult;

    fn names(bench: &Bench, done: &ModuleResult) -> Vec<String> {
        let root = bench.host("");
        let files = done.outcome.values["files"].try_iter().unwrap();
        let path = |file: crate::value::Value| file.get_attr("path").unwrap().to_string();
        files.map(|file| path(file).strip_prefix(root.to_str().unwrap()).unwrap().to_owned()).collect()
    }

    async fn found(bench: &Bench, more: &str) -> Vec<String> {
        let done = bench.check(&format!("find: {{paths: HOST, {more}}}")).await.unwrap();
        assert!(!done.changed);
        names(bench, &done)
    }

    async fn bench() -> Bench {
        let bench = Bench::new().await;
        bench.on_host("a.db", "key = 1\n");
        bench.on_host("b c\nd.db", "x".repeat(3000));
        bench.on_host(".hidden", "");
        bench.on_host("sub/deep/e.db", "no key = 1\n");
        std::os::unix::fs::symlink("sub", bench.host("link")).unwrap();
        bench
    }

    #[tokio::test]
    async fn names_are_matched_by_pattern_or_expression() {
        let bench = bench().await;
        assert_eq!(found(&bench, "patterns: '*.db'").await, ["a.db", "b c\nd.db"]);
        assert_eq!(found(&bench, "patterns: '*.db', excludes: 'b*'").await, ["a.db"]);
        assert_eq!(
            found(&bench, "patterns: ['^[ae]'], use_regex: true, recurse: true").await,
            ["a.db", "sub/deep/e.db"]
        );
        assert_eq!(found(&bench, "hidden: true, patterns: '.h*'").await, [".hidden"]);
    }

    #[tokio::test]
    async fn depth_kind_and_links_are_respected() {
        let bench = bench().await;
        assert_eq!(found(&bench, "file_type: directory, recurse: true").await, ["sub", "sub/deep"]);
        assert_eq!(found(&bench, "file_type: directory, recurse: true, depth: 1").await, ["sub"]);
        assert_eq!(found(&bench, "file_type: link").await, ["link"]);
        let followed = found(&bench, "recurse: true, follow: true, patterns: 'e*'").await;
        assert_eq!(followed, ["link/deep/e.db", "sub/deep/e.db"]);
        assert_eq!(found(&bench, "file_type: any, limit: 2").await.len(), 2);
    }

    #[tokio::test]
    async fn size_age_mode_and_content_are_respected() {
        let bench = bench().await;
        assert_eq!(found(&bench, "size: 2k").await, ["b c\nd.db"]);
        assert_eq!(found(&bench, "size: -2k").await, ["a.db"]);
        assert_eq!(found(&bench, "age: 1h").await.len(), 0);
        assert_eq!(found(&bench, "age: -1h").await.len(), 2);
        assert_eq!(found(&bench, "contains: 'key', recurse: true").await, ["a.db"]);
        let whole = found(&bench, "contains: 'key', read_whole_file: true, recurse: true").await;
        assert_eq!(whole, ["a.db", "sub/deep/e.db"]);
        std::fs::set_permissions(bench.host("a.db"), std::os::unix::fs::PermissionsExt::from_mode(0o751)).unwrap();
        assert_eq!(found(&bench, "mode: '0751'").await, ["a.db"]);
        assert_eq!(found(&bench, "mode: '0001', exact_mode: false").await, ["a.db"]);
    }

    #[tokio::test]
    async fn findings_are_described_and_what_is_no_directory_is_reported() {
        let bench = bench().await;
        let done = bench.check("find: {paths: [HOST, HOST/none], patterns: a.db, get_checksum: true}").await.unwrap();
        let file = done.outcome.values["files"].get_item_by_index(0).unwrap();
        assert_eq!(file.get_attr("checksum").unwrap().to_string().len(), 40);
        assert_eq!(file.get_attr("isreg").unwrap().to_string(), "True");
        assert_eq!(value(&done.outcome, "matched"), "1");
        assert!(value(&done.outcome, "skipped_paths").contains("is not a directory"));
        let message = bench.failure("find: {paths: HOST, age: soon}").await;
        assert_eq!(message, "find: age \"soon\" is not an amount");
    }
}
