//! Settings read from files, the environment and both; what is said of slips.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::ansible_only::GROUPS;
use super::list::*;
use super::*;

/// A directory with an `ansible.cfg`, and what surrounds a program that runs there.
fn around(text: &str, variables: &[(&str, &str)]) -> (tempfile::TempDir, ProcessEnvironment) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    if !text.is_empty() {
        fs::write(path.join("ansible.cfg"), text).unwrap();
    }
    let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let (home, etc) = (Some(path.join("home")), path.join("etc"));
    (directory, ProcessEnvironment { variables, directory: path, home, etc, ..ProcessEnvironment::default() })
}

fn load(text: &str, variables: &[(&str, &str)]) -> Settings {
    Settings::load(&around(text, variables).1).unwrap()
}

fn warnings(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let reported = |warning: &Diagnostic| match &warning.hint {
        Some(hint) => format!("{warning} ({hint})"),
        None => warning.to_string(),
    };
    let (_directory, around) = around(text, variables);
    Settings::load(&around).unwrap().warnings.iter().map(reported).collect()
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
    let text = "[defaults]\nforks = 7\n";
    let settings = load(text, &[("ANSIBLE_FORKS", "9")]);
    assert_eq!((settings.number_setting(&FORKS), settings.get(&FORKS).set_by.to_string()), (9, "ANSIBLE_FORKS".into()));
    let settings = load(text, &[]);
    assert_eq!((settings.number_setting(&FORKS), settings.get(&FORKS).set_by.to_string()), (7, "ansible.cfg:2".into()));
    let settings = load("", &[]);
    assert_eq!((settings.number_setting(&FORKS), settings.get(&FORKS).set_by.to_string()), (20, "default".into()));
}

#[test]
fn a_later_place_of_the_same_setting_wins() {
    let text = "[ssh_connection]\ntimeout = 5\n[defaults]\ntimeout = 7\n";
    assert_eq!(load(text, &[]).number_setting(&TIMEOUT), 5);
    let both = [("ANSIBLE_TIMEOUT", "3"), ("ANSIBLE_SSH_TIMEOUT", "4")];
    assert_eq!(load(text, &both).number_setting(&TIMEOUT), 4);
}

#[test]
fn a_wrong_value_is_an_error_where_it_stands() {
    let (_directory, around) = around("[defaults]\nforks = abc\ngathering = smrat\n", &[("ANSIBLE_BECOME", "perhaps")]);
    let complaints = Settings::load(&around).unwrap_err();
    let reported: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    let expected = [
        "ansible.cfg:2:9: forks must be a whole number of at least 1, this is \"abc\"",
        "ansible.cfg:3:13: gathering must be one of implicit, explicit, smart, this is \"smrat\"",
        "$ANSIBLE_BECOME:1:1: become must be true or false, this is \"perhaps\"",
    ];
    assert_eq!(reported, expected);
    assert_eq!(complaints[1].hint.as_deref(), Some("did you mean \"smart\"?"));
}

#[test]
fn paths_are_relative_to_the_file_or_to_the_working_directory() {
    let (_directory, around) =
        around("", &[("ANSIBLE_CONFIG", "sub"), ("HERE", "there"), ("ANSIBLE_INVENTORY", "a, b")]);
    let top = around.directory.clone();
    fs::create_dir(top.join("sub")).unwrap();
    let text = "[defaults]\nroles_path = roles:~/mine:$HERE/x:/abs\nprivate_key_file = {{CWD}}/key\n";
    fs::write(top.join("sub/ansible.cfg"), text).unwrap();
    let settings = Settings::load(&around).unwrap();
    let under = |name: &str| top.join(name).display().to_string();
    let roles = [under("sub/roles"), under("home/mine"), under("sub/there/x"), "/abs".to_owned()];
    assert_eq!(settings.list_setting(&ROLES_PATH), roles);
    assert_eq!(settings.path_setting(&PRIVATE_KEY_FILE), Some(top.join("key")));
    assert_eq!(settings.list_setting(&INVENTORY), [under("a"), under("b")]);
}

#[test]
fn files_are_looked_for_in_ansible_s_order() {
    let (_directory, mut around) = around("", &[]);
    let file = |around: &ProcessEnvironment| {
        let found = Settings::load(around).unwrap().file?;
        Some(found.strip_prefix(&around.directory).unwrap().display().to_string())
    };
    assert_eq!(file(&around), None);
    for place in ["etc/ansible.cfg", "home/.ansible.cfg", "ansible.cfg"] {
        let path = around.directory.join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        assert_eq!(file(&around).as_deref(), Some(place));
    }
    fs::write(around.directory.join("named.cfg"), "").unwrap();
    around.variables.insert("ANSIBLE_CONFIG".into(), "named.cfg".into());
    assert_eq!(file(&around).as_deref(), Some("named.cfg"));
    around.variables.insert("ANSIBLE_CONFIG".into(), "away.cfg".into());
    assert_eq!(file(&around).as_deref(), Some("ansible.cfg"));
}

#[test]
fn a_file_in_a_directory_that_everyone_may_write_to_is_ignored_with_a_warning() {
    let (_directory, around) = around("[defaults]\nforks = 3\n", &[]);
    fs::set_permissions(&around.directory, fs::Permissions::from_mode(0o777)).unwrap();
    let settings = Settings::load(&around).unwrap();
    assert_eq!((settings.number_setting(&FORKS), settings.file), (20, None));
    assert!(settings.warnings[0].message.contains("every user can write"), "{}", settings.warnings[0]);
}

/// Needs root. What another user wrote could start programs as root.
#[test]
#[ignore = "needs root: cargo test --lib -- --ignored"]
fn a_file_of_another_user_is_ignored_with_a_warning() {
    const NOBODY: u32 = 65534;
    let (_directory, mut around) = around("[defaults]\nforks = 3\n", &[]);
    let forks = |around: &ProcessEnvironment| Settings::load(around).unwrap().number_setting(&FORKS);
    for path in [around.directory.join("ansible.cfg"), around.directory.clone()] {
        std::os::unix::fs::chown(&path, Some(NOBODY), None).unwrap();
        let settings = Settings::load(&around).unwrap();
        assert_eq!(settings.number_setting(&FORKS), 20, "{}", path.display());
        assert!(settings.warnings[0].message.ends_with("belongs to another user"), "{}", settings.warnings[0]);
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        assert_eq!(forks(&around), 3);
    }
    fs::set_permissions(around.directory.join("ansible.cfg"), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(forks(&around), 20);
    // With sudo in a directory of one's own.
    fs::set_permissions(around.directory.join("ansible.cfg"), fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::chown(&around.directory, Some(NOBODY), None).unwrap();
    around.variables.insert("SUDO_UID".into(), NOBODY.to_string());
    assert_eq!(forks(&around), 3);
}

#[test]
fn what_is_not_honoured_or_not_known_is_named_once_with_its_place() {
    let text = "[defaults]\ntest_plugins = x\nfroks = 3\nbecome = true\npipelining = true\n[privilege]\nx = 1\n";
    let expected = [
        "ansible.cfg:6:1: unknown section [privilege]",
        "ansible.cfg:2:1: test_plugins is not supported: windlass runs no Python plugins; your own modules, filters \
         and lookups are programs (docs/how-to/own-code.md)",
        "ansible.cfg:3:1: unknown setting \"froks\" in [defaults] (did you mean \"forks\"?)",
        "ansible.cfg:4:1: unknown setting \"become\" in [defaults] (become belongs in \
         [privilege_escalation])",
        "unknown setting ANSIBLE_FROKS (did you mean \"ANSIBLE_FORKS\"?)",
        "ANSIBLE_TEST_PLUGINS is not supported: windlass runs no Python plugins; your own modules, filters and \
         lookups are programs (docs/how-to/own-code.md)",
    ];
    let variables =
        [("ANSIBLE_FROKS", "3"), ("ANSIBLE_TEST_PLUGINS", "x"), ("ANSIBLE_PIPELINING", "1"), ("OTHER", "1")];
    assert_eq!(warnings(text, &variables), expected);
}

#[test]
fn what_is_so_anyway_needs_no_warning_and_its_opposite_does() {
    assert_eq!(warnings("[defaults]\nerror_on_undefined_vars = yes\n", &[]), [""; 0]);
    let reported = warnings("[defaults]\nerror_on_undefined_vars = no\n", &[]);
    assert_eq!(reported, ["ansible.cfg:2:1: error_on_undefined_vars is not supported: windlass always does this"]);
}

#[test]
fn a_secret_stays_out_of_complaints() {
    let settings = load("", &[("ANSIBLE_BECOME_PASS", "topsecret")]);
    let found = settings.get(&BECOME_PASSWORD);
    assert_eq!(settings.secret_setting(&BECOME_PASSWORD).unwrap().reveal(), "topsecret");
    assert!(!found.origin.as_ref().unwrap().source.text.contains("topsecret"));
}

#[test]
fn the_lists_agree_with_themselves() {
    let here = ProcessEnvironment::default();
    let mut places = HashSet::new();
    let mut variables = HashSet::new();
    for setting in SETTINGS {
        assert!(
            setting.default.is_empty() || setting.kind.parse_setting(setting.default, Path::new("/"), &here).is_some()
        );
        for (section, key) in setting.places() {
            assert!(places.insert(format!("{section}.{key}")), "{section}.{key} is there twice");
        }
        for name in setting.env {
            assert!(variables.insert(*name), "{name} is there twice");
        }
    }
    for row in GROUPS.iter().flat_map(|group| group.settings) {
        assert!(places.insert(row.0.to_owned()), "{} is there twice", row.0);
        row.1.iter().for_each(|name| assert!(variables.insert(name), "{name} is there twice"));
    }
    // As many constants as there are in the list: none was forgotten.
    let lists = [include_str!("list.rs"), include_str!("resources.rs")];
    let constants = lists.iter().flat_map(|list| list.lines()).filter(|line| line.starts_with("pub const ")).count();
    assert_eq!(constants, SETTINGS.len());
}
