//! The order in which variables are merged, and what a play adds while it runs.

use std::fs;

use super::{Inventory, vars_files};
use crate::value::vault::Keyring;
use crate::value::{Value, Vars};

fn inventory(files: &[(&str, &str)], sources: &[&str]) -> (tempfile::TempDir, Inventory) {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let sources: Vec<String> =
        sources.iter().map(|source| directory.path().join(source).to_string_lossy().into_owned()).collect();
    let inventory = Inventory::load(&sources, &Keyring::default()).unwrap();
    (directory, inventory)
}

/// Variable number n is set by place n and all weaker ones, so it must have the value n.
#[test]
fn a_later_place_wins() {
    let places = [
        ("all in the source", "i/h", "[all:vars]\n"),
        ("all beside the source", "i/group_vars/all.yml", ""),
        ("all beside the playbook", "p/group_vars/all.yml", ""),
        ("parent in the source", "i/h", "[top:vars]\n"),
        ("child in the source", "i/h", "[web:vars]\n"),
        ("parent beside the source", "i/group_vars/top.yml", ""),
        ("child beside the source", "i/group_vars/web.yml", ""),
        ("parent beside the playbook", "p/group_vars/top.yml", ""),
        ("child beside the playbook", "p/group_vars/web.yml", ""),
        ("host in the source", "i/h", "h"),
        ("host beside the source", "i/host_vars/h.yml", ""),
        ("host beside the playbook", "p/host_vars/h.yml", ""),
    ];
    let mut ini = String::from("[top:children]\nweb\n[web]\n");
    let mut files: Vec<(&str, String)> = Vec::new();
    let mut sections = String::new();
    for (at, (_, path, section)) in places.iter().enumerate() {
        let own_and_later = at..places.len();
        match (*path, *section) {
            ("i/h", "h") => {
                ini += &own_and_later.fold("h".into(), |line: String, n| format!("{line} v{n}={at}"));
                ini.push('\n');
            }
            ("i/h", section) => {
                sections += &own_and_later.fold(section.into(), |text: String, n| format!("{text}v{n}={at}\n"));
            }
            (path, _) => files.push((path, own_and_later.fold(String::new(), |text, n| format!("{text}v{n}: {at}\n")))),
        }
    }
    let ini = ini + &sections;
    files.push(("i/h", ini));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let (directory, inventory) = inventory(&files, &["i/h"]);
    let beside = vars_files(&directory.path().join("p"), &inventory, &Keyring::default()).unwrap();
    let vars = inventory.vars_of("h", Some(&beside));
    for (at, (place, ..)) in places.iter().enumerate() {
        assert_eq!(vars[format!("v{at}").as_str()], Value::from(at), "{place}");
    }
    assert_eq!(inventory.vars_of("h", None)["v11"], Value::from(10));
    assert_eq!(inventory.group_vars("web")["v11"], Value::from(6));
    assert_eq!(inventory.host_vars("h")["v11"], Value::from(10));
}

#[test]
fn files_beside_a_later_source_win_even_for_a_parent_group() {
    let files = [
        ("a/h", "[top:children]\nweb\n[web]\nh\n"),
        ("a/group_vars/web.yml", "x: a-web"),
        ("b/h", ""),
        ("b/group_vars/top.yml", "x: b-top"),
    ];
    assert_eq!(inventory(&files, &["a/h", "b/h"]).1.vars_of("h", None)["x"], Value::from("b-top"));
    assert_eq!(inventory(&files, &["b/h", "a/h"]).1.vars_of("h", None)["x"], Value::from("a-web"));
}

#[test]
fn the_implicit_localhost_has_the_variables_of_all_and_its_own_files() {
    let files = [("h", "web\n[all:vars]\nx=1\n"), ("host_vars/localhost.yml", "y: 2"), ("group_vars/all.yml", "z: 3")];
    let (_directory, inventory) = inventory(&files, &["h"]);
    let vars = inventory.vars_of("localhost", None);
    assert_eq!((&vars["x"], &vars["y"], &vars["z"]), (&Value::from(1), &Value::from(2), &Value::from(3)));
    assert_eq!(vars["ansible_connection"], Value::from("local"));
    assert!(inventory.hosts_of("all").iter().all(|host| &**host != "localhost"));
}

#[test]
fn a_host_added_by_a_play_is_a_host_like_others() {
    let files = [("h", "web\n"), ("host_vars/new.yml", "x: 1"), ("group_vars/fresh.yml", "y: 2")];
    let (_directory, mut inventory) = inventory(&files, &["h"]);
    let vars = || Vars::from([("z".into(), Value::from(3))]);
    assert!(inventory.add_host("new", &["fresh".into()], vars()).unwrap());
    assert!(!inventory.add_host("new", &["fresh".into()], vars()).unwrap());
    assert!(inventory.add_host("new", &[], Vars::from([("z".into(), Value::from(4))])).unwrap());
    let vars = inventory.vars_of("new", None);
    assert_eq!((&vars["x"], &vars["y"], &vars["z"]), (&Value::from(1), &Value::from(2), &Value::from(4)));
    assert_eq!(inventory.select("fresh").unwrap().0, ["new".into()]);
    assert_eq!(inventory.select("ungrouped").unwrap().0, ["web".into()]);
}

#[test]
fn a_host_leaves_ungrouped_when_a_play_groups_it() {
    let (_directory, mut inventory) = inventory(&[("h", "web\n"), ("group_vars/os.yml", "x: 1")], &["h"]);
    assert!(inventory.add_to_group("web", "os_debian").unwrap());
    assert!(!inventory.add_to_group("web", "os_debian").unwrap());
    assert!(inventory.add_child_group("os", "os_debian").unwrap());
    assert!(inventory.hosts_of("ungrouped").is_empty());
    assert_eq!(inventory.vars_of("web", None)["x"], Value::from(1));
    assert!(inventory.add_child_group("os_debian", "os").is_err());
}

#[test]
fn the_implicit_localhost_can_be_grouped_and_stays_out_of_all() {
    let (_directory, mut inventory) = inventory(&[("h", "web\n")], &["h"]);
    assert!(inventory.add_to_group("localhost", "here").unwrap());
    assert_eq!(inventory.select("here").unwrap().0, ["localhost".into()]);
    assert_eq!(inventory.select("all").unwrap().0, ["web".into()]);
}
