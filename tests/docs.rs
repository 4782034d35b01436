//! The documentation holds together: links and anchors of all Markdown files lead somewhere, every page is in the book's
//! table of contents, and the pages that messages and comments name exist.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Text that may name a page, by the ending of its file.
const TEXTS: &[&str] = &["md", "rs", "yml", "yaml", "j2", "toml", "txt", "ini", "sh", "py", "tsv", ""];

/// The files of a tree by their path from its root, without what is built or made by a run.
fn files(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_symlink()
                || ["target", ".git", "credentials", "artifacts", "corpus", "node_modules"].contains(&name.as_str())
            {
                continue;
            }
            let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned()).unwrap_or_default();
            if path.is_dir() {
                folders.push(path);
            } else if TEXTS.contains(&ending.as_str()) {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                found.insert(path.strip_prefix(root).unwrap().to_path_buf(), text);
            }
        }
    }
    found
}

/// The prose of a page, line by line with its number: without code blocks, and code spans emptied.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut fence: Option<&str> = None;
    let mut after_blank = true;
    let mut in_list = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                let item = trimmed.starts_with("- ")
                    || trimmed.split_once(". ").is_some_and(|(number, _)| {
                        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                    });
                in_list = item || in_list && (line.starts_with(' ') || line.is_empty());
                if !(line.starts_with("    ") && after_blank && !in_list) {
                    lines.push((index + 1, without_code(line)));
                    after_blank = line.is_empty();
                }
                continue;
            }
        }
        after_blank = false;
    }
    lines
}

/// A line with every code span emptied, so that what is in one is no link.
fn without_code(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        let ticks = rest[at..].bytes().take_while(|byte| *byte == b'`').count();
        let mark = "`".repeat(ticks);
        let behind = &rest[at + ticks..];
        let Some(end) = behind.find(&mark) else { break };
        kept.push_str(&rest[..at]);
        rest = &behind[end + ticks..];
    }
    kept + rest
}

/// The targets of a page's links and pictures that are not addresses of the web, with their lines.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let definition = line.starts_with('[').then(|| line.split_once("]: ")).flatten().map(|(_, target)| target);
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        let html = ["src=\"", "href=\""].into_iter().flat_map(|attribute| line.split(attribute).skip(1));
        let html = html.filter_map(|rest| rest.split_once('"')).map(|(target, _)| target);
        for target in inline.chain(definition).chain(html) {
            let target = target.split_whitespace().next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// The anchors of a page: its headings as GitHub and mdBook name them, and those that are written out.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let visible = text.lines().map(str::to_owned).enumerate().map(|(index, line)| (index + 1, line));
    let kept: BTreeSet<usize> = prose(text).into_iter().map(|(number, _)| number).collect();
    for (_, line) in visible.filter(|(number, _)| kept.contains(number)) {
        for attribute in ["id=\"", "name=\""] {
            found.extend(line.split(attribute).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
        let Some(heading) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#')) else { continue };
        let slug: String = heading.trim().chars().filter_map(slug_letter).collect();
        let mut name = slug.clone();
        let mut again = 0;
        while !found.insert(name.clone()) {
            again += 1;
            name = format!("{slug}-{again}");
        }
    }
    found
}

fn slug_letter(letter: char) -> Option<char> {
    match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => letter.to_lowercase().next(),
        _ => None,
    }
}

/// A path without `.` and `..`; `None` if it leaves the tree.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            _ if parts.pop() => {}
            _ => return None,
        }
    }
    Some(parts)
}

/// What is wrong with the links of a tree.
fn broken_links(root: &Path) -> Vec<String> {
    let files = files(root);
    let mut faults = Vec::new();
    for (page, text) in files.iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "md")) {
        let folder = page.parent().unwrap();
        for (line, target) in targets(text) {
            let mut fault = |what: &str| faults.push(format!("{}:{line}: {target}: {what}", page.display()));
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if path.is_empty() { Some(page.clone()) } else { plain(&folder.join(path)) };
            let Some(file) = file else {
                fault("is outside of the repository");
                continue;
            };
            if !root.join(&file).exists() {
                fault("does not exist");
            } else if page.starts_with("docs") && !file.starts_with("docs") {
                fault("is not part of the book: name the file without a link");
            } else if !anchor.is_empty() && !files.get(&file).is_some_and(|text| anchors(text).contains(anchor)) {
                fault("there is no such heading");
            }
        }
    }
    faults
}

/// What is wrong with the book's table of contents.
fn wrong_contents(root: &Path) -> Vec<String> {
    let summary = std::fs::read_to_string(root.join("docs/SUMMARY.md")).unwrap();
    let mut listed = BTreeSet::new();
    let mut faults = Vec::new();
    for (line, target) in targets(&summary) {
        if !listed.insert(target.clone()) {
            faults.push(format!("docs/SUMMARY.md:{line}: {target} is listed twice"));
        }
    }
    for page in files(&root.join("docs")).keys().filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let page = page.display().to_string();
        if page != "SUMMARY.md" && !listed.contains(&page) {
            faults.push(format!("docs/{page} is not in docs/SUMMARY.md"));
        }
    }
    faults
}

/// Pages that are named in text, such as `docs/how-to/bundle.md` in a message, and do not exist.
fn names_of_no_page(root: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    // This file's own tests name pages that there are not.
    for (path, text) in files(root).into_iter().filter(|(path, _)| path != Path::new("tests/docs.rs")) {
        for (index, line) in text.lines().enumerate() {
            for (at, _) in line.match_indices("docs/") {
                let begins = line[..at].chars().next_back().is_none_or(|before| !allowed(before));
                let name: String = line[at..].chars().take_while(|letter| allowed(*letter)).collect();
                let name = name.trim_end_matches('.');
                let page = Path::new(name).extension().is_some_and(|end| end == "md");
                if begins && page && !root.join(name).is_file() {
                    faults.push(format!("{}:{}: there is no {name}", path.display(), index + 1));
                }
            }
        }
    }
    faults
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_link_leads_somewhere() {
    let faults = broken_links(repository());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let faults = wrong_contents(repository());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_page_that_text_names_exists() {
    let faults = names_of_no_page(repository());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_changelog_has_this_version_and_what_comes_next() {
    let text = std::fs::read_to_string(repository().join("CHANGELOG.md")).unwrap();
    let begins = |heading: &str| text.lines().filter(|line| line.starts_with(heading)).count();
    assert_eq!(begins("## Unreleased"), 1);
    assert_eq!(begins(concat!("## ", env!("CARGO_PKG_VERSION"), " - 20")), 1);
}

/// What GitHub refuses to show: an element without a label, an unknown type, an id that is there twice.
#[test]
fn every_issue_template_is_a_form() {
    let folder = repository().join(".github/ISSUE_TEMPLATE");
    let texts = files(&folder).into_iter().filter(|(path, _)| path != Path::new("config.yml"));
    let mut forms = 0;
    for (path, text) in texts {
        let form: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
        let named = ["name", "description"].into_iter().all(|key| form[key].is_string());
        assert!(named, "{}: no name or no description", path.display());
        let mut ids = BTreeSet::new();
        for element in form["body"].as_sequence().unwrap() {
            let kind = element["type"].as_str().unwrap();
            let filled = if kind == "markdown" { "value" } else { "label" };
            assert!(["markdown", "input", "textarea", "dropdown"].contains(&kind), "{}: {kind}", path.display());
            assert!(element["attributes"][filled].is_string(), "{}: no {filled} of {kind}", path.display());
            assert_eq!(kind == "dropdown", element["attributes"]["options"].is_sequence(), "{}", path.display());
            assert!(
                kind == "markdown" || ids.insert(element["id"].as_str().unwrap()),
                "{}: an id twice",
                path.display()
            );
        }
        forms += 1;
    }
    assert_eq!(forms, 3);
}

/// A tree with one fault of each kind: the checks find these and nothing else.
#[test]
fn the_checks_find_what_is_broken() {
    let tree = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = tree.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "README.md",
        "[one](docs/one.md) [there](docs/one.md#a-heading-twice-1) [none](docs/none.md) ![p](docs/p.svg)\n",
    );
    write("notes.txt", "see docs/gone.md, and docs/one.md.\n");
    write("docs/SUMMARY.md", "- [One](one.md)\n- [Two](two.md)\n- [Again](one.md)\n");
    write(
        "docs/one.md",
        "# One: `the` first\n\n## A heading, twice\n\n## A heading, twice\n\n[out](../README.md) [up](../../x.md)\n\n\
         ```\n# No heading\n[code](none.md)\n```\n\n    [code](none.md)\n\n`[code](none.md)` [no](#no-heading) \
         [self](#one-the-first)\n\n[web](https://example.com/none.md)\n\n<a id=\"written\"></a> [w](#written)\n",
    );
    write("docs/two.md", "- item\n\n    [in a list](none.md)\n\n[defined]: none.md\n");
    write("docs/three.md", "# Three\n");
    write("target/left/out.md", "[none](none.md)\n");

    assert_eq!(
        broken_links(tree.path()),
        [
            "README.md:1: docs/none.md: does not exist",
            "README.md:1: docs/p.svg: does not exist",
            "docs/one.md:7: ../README.md: is not part of the book: name the file without a link",
            "docs/one.md:7: ../../x.md: is outside of the repository",
            "docs/one.md:16: #no-heading: there is no such heading",
            "docs/two.md:3: none.md: does not exist",
            "docs/two.md:5: none.md: does not exist",
        ]
    );
    assert_eq!(
        wrong_contents(tree.path()),
        ["docs/SUMMARY.md:3: one.md is listed twice", "docs/three.md is not in docs/SUMMARY.md"]
    );
    assert_eq!(
        names_of_no_page(tree.path()),
        ["README.md:1: there is no docs/none.md", "notes.txt:1: there is no docs/gone.md"]
    );
}

/// Files of the source that documents point at, such as the tests in docs/explanation/security.md.
#[test]
fn every_source_file_that_a_document_names_exists() {
    let mut missing = BTreeSet::new();
    let documents = files(repository()).into_iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "md"));
    let mut named = 0;
    for (path, text) in documents {
        for (at, _) in text.match_indices("src/") {
            let end =
                text[at..].find(|c: char| !c.is_ascii_alphanumeric() && !"_/.-".contains(c)).unwrap_or(text.len() - at);
            let file = text[at..at + end].trim_end_matches('.');
            let is_file = [".rs", ".sh"].iter().any(|ending| file.ends_with(ending));
            // Not a path below something else, and no placeholder.
            if !is_file || text[..at].ends_with(['/', '.']) || file.contains("NAME") {
                continue;
            }
            named += 1;
            if !repository().join(file).is_file() {
                missing.insert(format!("{}: {file}", path.display()));
            }
        }
    }
    assert!(named > 50, "only {named} files are named");
    assert!(missing.is_empty(), "{missing:#?}");
}
