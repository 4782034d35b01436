//! Each kind of source on small files, and the error messages for invalid ones.

use std::fs;
use std::path::Path;

use crate::inventory::Inventory;
use crate::value::origin::Diagnostic;
use crate::value::testing::write_program;
use crate::value::vault::{self, Keyring};
use crate::value::{Secret, Template, Value};

fn load_with(files: &[(&str, &str)], source: &str, keyring: &Keyring) -> Result<Inventory, Diagnostic> {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match path.extension().is_some_and(|extension| extension == "sh") {
            true => write_program(path, text),
            false => fs::write(path, text).unwrap(),
        }
    }
    let source = directory.path().join(source);
    Inventory::load(&[source.to_string_lossy().into_owned()], keyring).map_err(|mut all| all.remove(0))
}

fn load(name: &str, text: &str) -> Inventory {
    load_with(&[(name, text)], name, &Keyring::default()).unwrap()
}

/// `LINE:COLUMN: message (hint)`.
fn refused(name: &str, text: &str) -> String {
    let complaint = load_with(&[(name, text)], name, &Keyring::default()).unwrap_err();
    let place = complaint.origin.map_or(String::new(), |origin| format!("{}:{}: ", origin.line, origin.column));
    format!("{place}{} ({})", complaint.message, complaint.hint.unwrap_or_default())
}

fn names<'a>(names: impl IntoIterator<Item = &'a std::sync::Arc<str>>) -> String {
    names.into_iter().map(|name| &**name).collect::<Vec<_>>().join(" ")
}

#[test]
fn ini_hosts_ranges_ports_and_values() {
    let inventory = load(
        "hosts",
        "lone:2222 a=1 b=\"x y\" # c=3\n; no\n[web]\nweb[01:02].lan l=\"['a', 'b']\" t='{{ lone }}' y=yes\nlone d=True\n",
    );
    assert_eq!(names(inventory.hosts.keys()), "lone web01.lan web02.lan");
    let lone = &inventory.hosts["lone"].vars;
    assert_eq!(lone["ansible_port"], Value::from(2222));
    assert_eq!((&lone["a"], &lone["b"], &lone["d"]), (&Value::from(1), &Value::from("x y"), &Value::from(true)));
    assert!(!lone.contains_key("c"));
    let web = &inventory.hosts["web02.lan"].vars;
    assert_eq!(web["l"], Value::from(vec![Value::from("a"), Value::from("b")]));
    assert_eq!(web["y"], Value::from("yes"));
    assert!(web["t"].downcast_object_ref::<Template>().is_some());
    assert_eq!(names(&inventory.groups["web"].hosts), "web01.lan web02.lan lone");
    assert!(inventory.groups["ungrouped"].hosts.is_empty());
}

#[test]
fn ini_children_may_come_before_their_declaration() {
    let inventory = load("h.ini", "[top:children]\nmid\n[top:vars]\nx = 'a # b'\n[mid:children]\nlow\n[low]\nh\n");
    assert_eq!(names(inventory.groups_of("h").iter().map(|group| &group.name)), "all top mid low");
    assert_eq!(inventory.groups["top"].vars["x"], Value::from("a # b"));
    assert_eq!(inventory.groups["low"].depth, 3);
    assert_eq!(names(&inventory.hosts_of("top")), "h");
}

#[test]
fn ini_mistakes_are_shown_where_they_stand() {
    let section = "write [GROUP], [GROUP:children] or [GROUP:vars], without spaces";
    assert_eq!(refused("h", "[a:var]\n"), "1:1: unknown kind of section \"var\" in [a:var] (did you mean \"vars\"?)");
    assert_eq!(refused("h", "[a b]\n"), format!("1:1: invalid section: [a b] ({section})"));
    assert_eq!(
        refused("h", "[web]\nw\n[all:children]\n  wbe\n"),
        "4:3: [all:children] names an unknown group: \"wbe\" (did you mean \"web\"?)"
    );
    assert_eq!(refused("h", "[x:vars]\na=1\n"), "1:1: [x:vars] is for an unknown group: \"x\" (add a section [x])");
    assert!(
        refused("h", "w1\n w[3:1] a=1\n")
            .starts_with("2:2: invalid range [3:1] in \"w[3:1]\": its start is after its end")
    );
    assert!(refused("h", "w a=1 b 'c\n").starts_with("1:9: a quote is not closed"));
    assert!(refused("h", "w a=1\tb\n").starts_with("1:7: invalid variable \"b\""));
    assert!(refused("h.ini", "all:\n  hosts:\n").starts_with("1:1: the host \"all:\" ends with a colon"));
    assert!(refused("h.ini", "---\n").starts_with("1:1: this looks like a YAML file"));
    assert!(refused("h", "[a:vars]\nx\n[a]\n").starts_with("2:1: invalid variable \"x\""));
}

#[test]
fn groups_in_a_circle_are_refused() {
    let text = "[a:children]\nb\n[b:children]\nc\n[c:children]\na\n";
    let message = refused("h", text);
    assert!(
        message.starts_with("6:1: group \"a\" cannot be a child of \"c\", because \"c\" is itself below \"a\""),
        "{message}"
    );
    assert!(refused("h", "[a:children]\na\n").starts_with("2:1: group \"a\" cannot be a child of itself"));
    let yaml = "a:\n  children:\n    b:\n      children:\n        a:\n";
    assert!(refused("h.yml", yaml).starts_with("3:5: group \"b\" cannot be a child of \"a\""));
}

#[test]
fn bytes_that_are_no_text_may_stand_in_comments_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("h.ini");
    let load = || Inventory::load(&[path.to_string_lossy().into_owned()], &Keyring::default());
    fs::write(&path, b"# caf\xe9\nweb\n").unwrap();
    assert_eq!(names(load().unwrap().hosts.keys()), "web");
    fs::write(&path, b"caf\xe9\n").unwrap();
    assert!(load().unwrap_err()[0].message.ends_with("is not UTF-8 text"));
}

#[test]
fn a_priority_is_no_variable_and_orders_groups_of_one_depth() {
    let inventory = load("h", "[a]\nh\n[b]\nh\n[a:vars]\nansible_group_priority=10\nx=a\n[b:vars]\nx=b\n");
    assert_eq!(names(inventory.groups_of("h").iter().map(|group| &group.name)), "all b a");
    assert_eq!(inventory.vars_of("h", None)["x"], Value::from("a"));
    assert!(!inventory.vars_of("h", None).contains_key("ansible_group_priority"));
    assert!(refused("h", "[a:vars]\nansible_group_priority=high\n[a]\n").starts_with("2:1: ansible_group_priority"));
}

#[test]
fn yaml_groups_hosts_and_what_is_left_out() {
    let text =
        "all:\n  hosts:\n    h[1:2]:\n      a: 1\n  children:\n    web:\n      hosts: w\n      var: {x: 1}\n    db:\n";
    for name in ["h.yml", "plain"] {
        let inventory = load(name, text);
        assert_eq!(names(inventory.hosts.keys()), "h1 h2 w");
        assert_eq!(inventory.hosts["h2"].vars["a"], Value::from(1));
        assert_eq!(names(&inventory.groups["ungrouped"].hosts), "h1 h2");
        assert_eq!(names(&inventory.groups["all"].children), "ungrouped web db");
        assert!(inventory.warnings[0].contains("8:7: skipped the string \"var\" in group \"web\""));
        assert!(inventory.warnings[0].ends_with("did you mean \"vars\"?"), "{:?}", inventory.warnings);
    }
}

#[test]
fn yaml_mistakes_are_shown_where_they_stand() {
    assert!(refused("h.yml", "- a\n").starts_with("1:1: an inventory must be a mapping of groups, this is a list"));
    assert!(refused("h.yml", "all:\n  hosts:\n    - a\n").starts_with("3:5: hosts of group \"all\" must be a mapping"));
    assert!(refused("h.yml", "all:\n  hosts:\n    10: {}\n").ends_with("this is the number 10 (put it in quotes)"));
    assert!(refused("h.yml", "plugin: aws_ec2\n").starts_with("1:9: inventory plugins are not supported"));
    assert!(refused("h.yml", "all:\n  hosts:\n    w[5]:\n").starts_with("3:5: invalid range [5]"));
}

#[test]
fn empty_files_are_inventories_without_hosts() {
    for name in ["h", "h.ini", "h.yml", "h.json"] {
        assert!(load(name, "").hosts.is_empty());
    }
}

const SCRIPT: &str = r#"#!/bin/sh
case "$1" in
--list) echo '{"web": {"hosts": ["w1"], "vars": {"v": "{{ x }}"}, "children": ["low"]}, "low": ["l1"]META}' ;;
--host) echo "{\"name\": \"$2\"}" ;;
esac
"#;

#[test]
fn a_script_is_asked_once_when_it_gives_meta() {
    let meta = r#", "_meta": {"hostvars": {"w1": {"p": {"__ansible_unsafe": "{{ y }}"}}, "other": {"q": 1}}}"#;
    let inventory = load("s.sh", &SCRIPT.replace("META", meta));
    assert_eq!(names(inventory.hosts.keys()), "w1 l1");
    assert!(!inventory.hosts["w1"].vars.contains_key("name"));
    assert_eq!(inventory.hosts["w1"].vars["p"], Value::from("{{ y }}"));
    assert!(inventory.groups["web"].vars["v"].downcast_object_ref::<Template>().is_some());
    assert_eq!(names(&inventory.groups["web"].children), "low");
}

#[test]
fn a_script_without_meta_is_asked_for_each_host() {
    let inventory = load("s.sh", &SCRIPT.replace("META", ""));
    assert_eq!(inventory.hosts["l1"].vars["name"], Value::from("l1"));
}

#[test]
fn a_script_that_fails_is_named_with_its_last_words() {
    let failed = refused("s.sh", "#!/bin/sh\necho no token >&2\nexit 3\n");
    assert!(failed.contains("s.sh failed for --list: exit status: 3 (its output: no token)"), "{failed}");
    assert!(refused("s.sh", "#!/bin/sh\necho '{'\n").contains("printed invalid JSON for --list"));
    assert!(refused("s.sh", "#!/bin/sh\necho '[]'\n").contains("something other than a JSON object"));
    assert!(refused("s.sh", "#!/bin/sh\necho '{\"_meta\": {}}'\n").contains("_meta without hostvars"));
}

#[test]
fn an_ini_file_with_the_executable_bit_is_no_script() {
    assert_eq!(names(load("x.sh", "web\n").hosts.keys()), "web");
}

#[test]
fn a_directory_is_read_in_the_order_of_names() {
    let files = [
        ("inv/02-b.yml", "web:\n  hosts: b\n  vars: {x: 2}\n"),
        ("inv/01-a", "[web]\na\n[web:vars]\nx=1\n"),
        ("inv/03/c.ini", "[web]\nc\n"),
        ("inv/notes.md", "["),
        ("inv/.hidden", "["),
        ("inv/old.bak", "["),
        ("inv/x.ini~", "["),
        ("inv/group_vars/web.yml", "y: 3"),
        ("inv/host_vars/a", "z: 4"),
    ];
    let inventory = load_with(&files, "inv", &Keyring::default()).unwrap();
    assert_eq!(names(&inventory.groups["web"].hosts), "a b c");
    let vars = inventory.vars_of("a", None);
    assert_eq!((&vars["x"], &vars["y"], &vars["z"]), (&Value::from(2), &Value::from(3), &Value::from(4)));
    let directory = inventory.hosts["c"].vars["inventory_dir"].as_str().unwrap().to_owned();
    assert!(Path::new(&directory).ends_with("inv/03"));
}

#[test]
fn a_comma_list_names_hosts_with_ports_and_no_ranges() {
    let inventory = Inventory::load(&["a:22, b[1:2],a:23,".into()], &Keyring::default()).unwrap();
    assert_eq!(names(inventory.hosts.keys()), "a b[1:2]");
    assert_eq!(inventory.hosts["a"].vars["ansible_port"], Value::from(22));
}

#[test]
fn a_missing_file_says_how_to_name_a_host() {
    let complaint = Inventory::load(&["web1".into()], &Keyring::default()).unwrap_err();
    assert_eq!(complaint[0].message, "no such inventory: \"web1\"");
    assert_eq!(complaint[0].hint.as_deref().unwrap(), "to list hosts instead of a file, add a comma: \"web1,\"");
}

#[test]
fn an_encrypted_inventory_is_read_and_its_lines_are_not_shown() {
    let password = Secret::new("sesame");
    let keyring = Keyring::new(vec![("default".into(), password.clone())]);
    let text = |plain: &str| vault::encrypt(plain.as_bytes(), &password, None);
    let good = load_with(&[("h", &text("web a=1\n"))], "h", &keyring).unwrap();
    assert_eq!(good.hosts["web"].vars["a"], Value::from(1));
    let complaint = load_with(&[("h", &text("web secret"))], "h", &keyring).unwrap_err();
    assert_eq!(complaint.origin.unwrap().line_text(), "");
    let complaint = load_with(&[("h", &text("web\n"))], "h", &Keyring::default()).unwrap_err();
    assert!(complaint.hint.unwrap().contains("--vault-password-file"));
}
