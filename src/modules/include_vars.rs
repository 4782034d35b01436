//! `include_vars`: variables from files of the controller.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;
use serde::Deserialize;

use super::{Controller, Effect, Error, Local, ModuleResult, Outcome};
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::merged;
use crate::value::{Value, Vars, yaml};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IncludeVars {
    file: Option<String>,
    dir: Option<String>,
    name: Option<String>,
    /// How many directories deep; 0: all.
    depth: usize,
    files_matching: Option<String>,
    ignore_files: Option<Vec<String>>,
    extensions: Vec<String>,
    ignore_unknown_extensions: bool,
    hash_behaviour: Option<String>,
}

impl Local for IncludeVars {
    const DOC: Doc = Doc {
        name: "include_vars",
        collection: "ansible.builtin",
        summary: "Read variables from YAML files on the controller",
        arguments: &[
            Argument::new("file", ArgumentKind::Str, "A file, searched in vars/ first").alias(&["free_form"]),
            Argument::new("dir", ArgumentKind::Str, "A directory; its files are read in the order of their names"),
            Argument::new("name", ArgumentKind::Str, "A variable for the result, as a mapping"),
            Argument::new("depth", ArgumentKind::Int, "How many directory levels to read; 0: all").default("0"),
            Argument::new(
                "files_matching",
                ArgumentKind::Str,
                "Read only files whose names match this regular expression",
            ),
            Argument::new(
                "ignore_files",
                ArgumentKind::List(&ArgumentKind::Str),
                "Regular expressions; skip names whose end matches",
            ),
            Argument::new("extensions", ArgumentKind::List(&ArgumentKind::Str), "File extensions to read")
                .default("json,yaml,yml"),
            Argument::new(
                "ignore_unknown_extensions",
                ArgumentKind::Bool,
                "Whether to skip other files instead of failing",
            )
            .default("false"),
            Argument::new(
                "hash_behaviour",
                ArgumentKind::Str,
                "Whether mappings replace those of the same name, or are merged",
            )
            .choices(&["replace", "merge"]),
        ],
        free_form: Some("file"),
        example: "\
- name: Read the variables for this system
  include_vars:
    file: debian.yml
    name: system
",
        returns: &[
            Return::new("ansible_facts", "The variables"),
            Return::new("ansible_included_var_files", "The files that were read"),
        ],
    };

    async fn run(&self, here: &Controller<'_>) -> Result<ModuleResult, Error> {
        let files = match (&self.file, &self.dir) {
            (Some(_), Some(_)) => return Err(Error::failed("only file or dir can be given, not both")),
            (None, None) => return Err(Error::failed("file or dir is needed")),
            (Some(file), None) => vec![here.find_file("vars", file)?],
            (None, Some(dir)) => self.files_of(&directory(here, dir)?)?,
        };
        let mut vars = Vars::new();
        for file in &files {
            vars.extend(read_vars_file(file, here)?);
        }
        if let Some(name) = &self.name {
            vars = Vars::from_iter([(Arc::from(name.as_str()), Value::from_pairs(vars))]);
        }
        let mut foreign = Vars::new();
        if self.hash_behaviour.as_deref() == Some("merge") {
            for (name, value) in &mut vars {
                if let Some(old) = here.scope.get(name) {
                    *value = merged(old, value);
                    if here.scope.own(name).is_none() {
                        foreign.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        let paths: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
        let outcome = Outcome::default()
            .with("ansible_included_var_files", paths)
            .with("ansible_facts", Value::from_pairs(vars.clone()))
            .effect(Effect::IncludeVars {
                own: vars.into_iter().filter(|(name, _)| !foreign.contains_key(name)).collect(),
                merged: foreign,
            });
        Ok(ModuleResult::unchanged(outcome))
    }
}

impl IncludeVars {
    /// The files to read, directory by directory, each sorted by name.
    fn files_of(&self, root: &Path) -> Result<Vec<PathBuf>, Error> {
        let matching = self.files_matching.as_deref().map(expression).transpose()?;
        let ignored = self.ignore_files.iter().flatten().map(|text| expression(&format!("(?:{text})$")));
        let ignored = ignored.collect::<Result<Vec<_>, _>>()?;
        let mut directories = vec![(root.to_owned(), 1)];
        let mut files = Vec::new();
        while let Some((directory, depth)) = directories.pop() {
            let mut below = Vec::new();
            for path in sorted(&directory)? {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() {
                    below.push((path, depth + 1));
                    continue;
                }
                if matching.as_ref().is_some_and(|m| !m.is_match(&name)) || ignored.iter().any(|i| i.is_match(&name)) {
                    continue;
                }
                match path.extension().is_some_and(|e| self.extensions.iter().any(|known| **known == *e)) {
                    true => files.push(path),
                    false if self.ignore_unknown_extensions => {}
                    false => {
                        let known = self.extensions.join(", ");
                        let message = format!("{} does not have a valid extension: {known}", path.display());
                        return Err(Error::failed(message));
                    }
                }
            }
            if self.depth == 0 || depth < self.depth {
                directories.extend(below.into_iter().rev());
            }
        }
        Ok(files)
    }
}

fn directory(here: &Controller<'_>, dir: &str) -> Result<PathBuf, Error> {
    let path = here.find_file("vars", dir)?;
    match path.is_dir() {
        true => Ok(path),
        false => Err(Error::failed(format!("{} is not a directory", path.display()))),
    }
}

fn sorted(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let cannot = |error: std::io::Error| Error::failed(format!("cannot read {}: {error}", directory.display()));
    let entries = std::fs::read_dir(directory).map_err(cannot)?;
    let mut paths = entries.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(cannot)?;
    paths.sort();
    Ok(paths)
}

fn expression(text: &str) -> Result<Regex, Error> {
    Regex::new(text).map_err(|_| Error::failed(format!("invalid regular expression {text:?}")))
}

fn read_vars_file(path: &Path, here: &Controller<'_>) -> Result<Vars, Error> {
    let (keyring, duplicates) = (&here.scope.keyring, &here.scope.duplicates);
    let vars = yaml::load_yaml(path, keyring, duplicates)
        .and_then(|node| node.map_or_else(|| Ok(Vars::new()), |n| n.to_vars(keyring)));
    vars.map_err(|complaint| Error::Failed { message: complaint.to_string(), hint: complaint.hint })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::*;

    fn arguments(depth: usize) -> IncludeVars {
        IncludeVars {
            file: None,
            dir: None,
            name: None,
            depth,
            files_matching: None,
            ignore_files: Some(vec!["skip.yml".into()]),
            extensions: vec!["yml".into()],
            ignore_unknown_extensions: true,
            hash_behaviour: None,
        }
    }

    fn names(arguments: &IncludeVars, root: &Path) -> Vec<String> {
        let files = arguments.files_of(root).unwrap();
        files.iter().map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn a_directory_gives_its_files_in_order_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("sub/deep")).unwrap();
        for name in ["b.yml", "a.yml", "skip.yml", "x.txt", "sub/c.yml", "sub/deep/d.yml"] {
            std::fs::write(root.path().join(name), "").unwrap();
        }
        assert_eq!(names(&arguments(0), root.path()), ["a.yml", "b.yml", "sub/c.yml", "sub/deep/d.yml"]);
        assert_eq!(names(&arguments(2), root.path()), ["a.yml", "b.yml", "sub/c.yml"]);
        let mut strict = arguments(1);
        strict.ignore_unknown_extensions = false;
        assert!(strict.files_of(root.path()).unwrap_err().to_string().contains("x.txt"));
        let mut some = arguments(1);
        some.files_matching = Some("^b".into());
        assert_eq!(names(&some, root.path()), ["b.yml"]);
    }

    #[test]
    fn mappings_are_merged_at_any_depth() {
        let map =
            |text: &str| Value::from(minijinja::value::Serde(serde_json::from_str::<serde_json::Value>(text).unwrap()));
        let merged = merged(&map(r#"{"a": {"b": 1, "c": 2}, "d": 3}"#), &map(r#"{"a": {"c": 4}, "e": [1]}"#));
        assert_eq!(merged, map(r#"{"a": {"b": 1, "c": 4}, "d": 3, "e": [1]}"#));
    }

    #[tokio::test]
    async fn files_and_directories_of_variables_are_read() {
        let mut bench = Bench::new().await;
        bench.vars("{a: {x: 1}}");
        bench.on_controller("vars/one.yml", "a: {y: '{{ b }}'}\nb: 2\n");
        bench.on_controller("vars/all/1.yml", "a: 1\n");
        bench.on_controller("vars/all/2.json", "{\"a\": 3}");
        let done = bench.run("include_vars: {file: one.yml, hash_behaviour: merge}").await.unwrap();
        let [Effect::IncludeVars { own, merged: vars }] = done.outcome.effects.as_slice() else { panic!() };
        // What was there before may be a host's.
        assert_eq!((own.len(), vars.len(), own["b"].as_i64()), (1, 1, Some(2)));
        assert_eq!(vars["a"].get_attr("x").unwrap().as_i64(), Some(1));
        assert!(!vars["a"].get_attr("y").unwrap().is_undefined());
        let done = bench.run("include_vars: {dir: all, name: n}").await.unwrap();
        assert_eq!(value(&done.outcome, "ansible_facts"), "{'n': {'a': 3}}");
        assert!(bench.failure("include_vars: {file: no.yml}").await.contains("cannot find \"no.yml\""));
        bench.close().await;
    }
}
