//! A text as a playbook, as a file of tasks and as a file of variables.

use std::sync::Arc;

use windlass::engine::BuildContext;
use windlass::playbook::load::{Loaded, Loader};
use windlass::template::Templar;
use windlass::value::Secret;
use windlass::value::vault::Keyring;
use windlass::value::yaml::{self, YamlStyle};

use super::{Scratch, reaches_out};

pub(super) fn run(input: &[u8]) {
    if reaches_out(input) {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.file("play.yml", input);
    let keyring = Arc::new(Keyring::new(vec![("default".into(), Secret::new("a password"))]));
    let loader =
        Loader::new(Arc::new(BuildContext { templar: Templar::new() }), keyring.clone(), Arc::default(), Vec::new());
    reported(loader.load_playbook(&path));
    reported(loader.steps_file(&path, None, false));
    reported(loader.variables_file(&path));
    for warning in loader.take_warnings() {
        assert!(!windlass::report::diagnostic::render_diagnostic(&warning).is_empty());
    }
    if let Ok(Some(node)) = yaml::load_yaml(&path, &keyring, &loader.duplicates)
        && let Ok(value) = node.to_value(&keyring)
    {
        yaml::emit(&value, &YamlStyle::default());
    }
}

/// Says what was loaded, or what is wrong with it, in the words that a person reads.
fn reported<T>(loaded: Loaded<T>) {
    for complaint in loaded.err().into_iter().flatten() {
        assert!(!windlass::report::diagnostic::render_diagnostic(&complaint).is_empty());
    }
}
