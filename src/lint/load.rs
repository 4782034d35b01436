//! Every check of a load, for all playbooks, all roles on their own, and the files of tasks that neither includes.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::LintSettings;
use super::project::{FileRole, LintFile};
use crate::engine::BuildContext;
use crate::playbook::load::Loader;
use crate::template::Templar;
use crate::value::origin::Diagnostic;

/// Errors and warnings, each once.
pub(super) fn load_files(files: &[LintFile], settings: &LintSettings) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    let known = Arc::new(BuildContext { templar: Templar::for_checks() });
    let mut loader = Loader::new(known, settings.keyring.clone(), Arc::default(), settings.roles_path.clone());
    loader.surroundings = settings.surroundings.clone();
    loader.collections = settings.collections.clone();
    loader.last_roles = settings.last_roles.clone();
    (loader.library, loader.words) = (settings.library.clone(), settings.words.clone());
    let (mut errors, mut known) = (Vec::new(), HashSet::new());
    let mut add = |complaints: Vec<Diagnostic>| {
        errors.extend(complaints.into_iter().filter(|complaint| known.insert(complaint.clone())));
    };
    add(files.iter().filter_map(|file| file.broken.clone()).collect());
    let mut roles: Vec<&PathBuf> = files.iter().filter_map(|file| file.role.as_ref()).collect();
    roles.sort();
    roles.dedup();
    for file in files.iter().filter(|file| file.sort == FileRole::Playbook) {
        add(loader.load_playbook(&file.path).err().unwrap_or_default());
    }
    for role in roles {
        add(loader.role(role).err().unwrap_or_default());
    }
    for file in files {
        let handlers = file.sort == FileRole::Handlers;
        let wanted = handlers || file.sort == FileRole::Tasks || file.sort == FileRole::Variables;
        if wanted && !loader.has_read(&file.path) {
            add(match file.sort {
                FileRole::Variables => loader.variables_file(&file.path),
                _ => loader.steps_file(&file.path, file.role.as_deref(), handlers),
            }
            .err()
            .unwrap_or_default());
        }
    }
    (errors, loader.take_warnings())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use crate::lint::{LintSettings, lint};

    /// One may check the playbook of a stranger.
    #[test]
    fn a_check_starts_no_program_of_the_playbook() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        for name in ["filter_plugins/evil", "lookup_plugins/evl"] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), format!("#!/bin/sh\ncat >/dev/null\ntouch {}\necho 1\n", at("pwned").display()))
                .unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        for call in ["lookup('pipe', 'touch PWNED')", "query('lines', 'touch PWNED')", "lookup('evl')", "'a' | evil"] {
            let call = call.replace("PWNED", &at("pwned").to_string_lossy());
            for place in [
                format!("- import_playbook: \"{{{{ {call} }}}}\"\n"),
                format!("- hosts: all\n  roles: [\"{{{{ {call} }}}}\"]\n"),
                format!("- hosts: all\n  tasks: [{{import_tasks: \"{{{{ {call} }}}}.yml\"}}]\n"),
                format!("- hosts: all\n  vars: {{v: \"{{{{ {call} }}}}\"}}\n  tags: [\"{{{{ v }}}}\"]\n  tasks: []\n"),
            ] {
                fs::write(at("site.yml"), &place).unwrap();
                let surroundings = Arc::new(crate::value::ProcessEnvironment::of_process());
                let settings = LintSettings { surroundings, ..LintSettings::default() };
                let findings = lint(&[at("site.yml")], &settings).unwrap();
                assert!(!at("pwned").exists(), "{place}");
                let told: Vec<String> = findings.iter().map(|finding| finding.complaint.message.clone()).collect();
                assert!(
                    told.iter().any(|text| text.contains("no program is started for a check")),
                    "{place}: {told:?}"
                );
            }
        }
    }
}
