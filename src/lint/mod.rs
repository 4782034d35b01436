//! What can be said of playbooks and roles without any host: all that is wrong with them, and advice.
//!
//! `find.rs` finds the files, `load.rs` runs every check of a load, `project.rs` is what the rules look at. To add a
//! rule: a file in `rules/` and its line in [`rules::RULES`].

mod find;
mod load;
mod project;
pub mod rules;
mod text;

use std::path::PathBuf;
use std::sync::Arc;

pub use project::Project;

use crate::playbook::load::{FindRole, OwnPrograms};
use crate::value::ProcessEnvironment;
use crate::value::origin::Diagnostic;
use crate::value::vault::Keyring;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It works, and would be better otherwise.
    Advice,
    /// It cannot work.
    Error,
}

impl Level {
    /// `advice` or `error`.
    pub fn level_name(self) -> &'static str {
        match self {
            Level::Advice => "advice",
            Level::Error => "error",
        }
    }
}

/// One thing to look for.
pub struct Rule {
    /// What it is called in reports and in `# windlass: allow`.
    pub id: &'static str,
    pub level: Level,
    /// One sentence: what is found, and why it matters.
    pub about: &'static str,
    /// Adds what it finds.
    pub check: fn(&Project, &mut Findings),
}

/// What a rule has found so far.
#[derive(Default)]
pub struct Findings(Vec<Diagnostic>);

impl Findings {
    pub fn add_finding(&mut self, complaint: Diagnostic) {
        self.0.push(complaint);
    }
}

/// What a rule found at one place.
pub struct Finding {
    pub rule: &'static Rule,
    pub complaint: Diagnostic,
}

/// What is needed to read playbooks.
#[derive(Default)]
pub struct LintSettings {
    pub keyring: Arc<Keyring>,
    /// Further directories of roles.
    pub roles_path: Vec<PathBuf>,
    /// Directories of collections.
    pub collections: Vec<PathBuf>,
    /// Further directories of modules, filters and lookups of the project's own.
    pub library: Vec<PathBuf>,
    pub words: OwnPrograms,
    pub surroundings: Arc<ProcessEnvironment>,
    /// Asked for the directory of a role that is nowhere else.
    pub last_roles: Option<FindRole>,
}

/// All findings in files and directories, by file and line. What a person allowed at its line is left out.
pub fn lint(paths: &[PathBuf], settings: &LintSettings) -> Result<Vec<Finding>, find::MissingPath> {
    let files = find::files(paths)?;
    let project = Project::read_project(files, settings);
    let mut findings = Vec::new();
    for rule in rules::RULES {
        let mut found = Findings::default();
        (rule.check)(&project, &mut found);
        let kept = found.0.into_iter().filter(|complaint| rule.id == rules::LOAD || !is_allowed(rule, complaint));
        findings.extend(kept.map(|complaint| Finding { rule, complaint }));
    }
    findings.sort_by_key(|finding| place(&finding.complaint));
    Ok(findings)
}

fn place(complaint: &Diagnostic) -> Option<(PathBuf, usize, usize)> {
    complaint.origin.as_ref().map(|origin| (origin.path().to_owned(), origin.line, origin.column))
}

/// Whether the line says `# windlass: allow RULE`; several rules, or the reason, may follow.
fn is_allowed(rule: &Rule, complaint: &Diagnostic) -> bool {
    let line = complaint.origin.as_ref().map_or("", |origin| origin.line_text());
    let Some((_, allowed)) = line.split_once("# windlass: allow ") else { return false };
    allowed.split(|c: char| !c.is_ascii_lowercase() && c != '-').any(|id| id == rule.id)
}
