//! Roles: where they are found, what they contain, and their dependencies.

use super::{Project, arguments, block, conditions, include, tags, task, text};
use crate::playbook::load::EntryPoint;
use crate::playbook::{Block, IncludeWhat};

const WEB: &[(&str, &str)] = &[
    ("roles/web/defaults/main.yml", "port: 80\n"),
    ("roles/web/vars/main.yaml", "user: www\n"),
    ("roles/web/tasks/main.yml", "- import_tasks: more.yml\n  tags: more\n- ping:\n  notify: reload\n"),
    ("roles/web/tasks/more.yml", "- command: ls\n"),
    ("roles/web/handlers/main.yml", "- name: reload\n  ping:\n"),
];

fn project(playbook: &str, files: &[(&str, &str)]) -> Project {
    let mut all = vec![("play.yml", playbook)];
    all.extend(files);
    Project::new(&all)
}

fn name(block: &Block) -> &str {
    &block.role_entry.as_ref().unwrap().name
}

#[test]
fn a_role_brings_its_variables_tasks_and_handlers() {
    let play = project("- hosts: all\n  roles: [web]\n", WEB).play();
    let web = block(&play.roles[0]);
    assert_eq!((name(web), web.steps.len()), ("web", 2));
    let role = task(&web.steps[0]).role.clone().unwrap();
    assert_eq!((role.defaults["port"].to_string(), role.vars["user"].to_string()), ("80".into(), "www".into()));
    assert_eq!((arguments(task(&web.steps[0])).as_str(), tags(task(&web.steps[0])).as_str()), ("cmd=ls", "more"));
    assert!(task(&web.steps[0]).directory.ends_with("roles/web/tasks"));
    assert_eq!(play.all_roles.len(), 1);
    assert_eq!(play.all_roles[0].handlers[0].task.name.as_ref().unwrap().to_string(), "reload");
    assert_eq!(play.all_roles[0].handlers[0].task.role.as_ref().unwrap().defaults["port"].to_string(), "80");
}

#[test]
fn a_role_of_a_collection_is_found_by_its_long_name() {
    let files = &[
        ("collections/ansible_collections/acme/tools/roles/web/tasks/main.yml", "- ping:\n"),
        ("collections/ansible_collections/acme/tools/roles/web/meta/main.yml", "dependencies: [common]\n"),
        ("collections/ansible_collections/acme/tools/roles/common/tasks/main.yml", "- command: ls\n"),
    ];
    let play = project("- hosts: all\n  roles: [acme.tools.web]\n", files).play();
    let paths: Vec<_> = play.all_roles.iter().map(|role| role.path.clone()).collect();
    assert!(paths.iter().any(|path| path.ends_with("acme/tools/roles/web")), "{paths:?}");
    assert!(paths.iter().any(|path| path.ends_with("acme/tools/roles/common")), "{paths:?}");
    assert!(play.all_roles.iter().all(|role| role.collection().as_deref() == Some("acme.tools")));
    let wrong = project("- hosts: all\n  roles: [acme.tools.wbe]\n", files).load().unwrap_err();
    assert!(text(&wrong).contains("ansible_collections/acme/tools/roles"), "{}", text(&wrong));
}

#[test]
fn tags_may_tell_of_the_role_and_of_those_that_use_it() {
    let common =
        "- ping:\n  tags: ['{{ ansible_parent_role_names }}', '{{ ansible_collection_name }}', '{{ role_name }}']\n";
    let files = &[
        ("collections/ansible_collections/acme/tools/roles/web/tasks/main.yml", "- import_role: {name: common}\n"),
        ("collections/ansible_collections/acme/tools/roles/common/tasks/main.yml", common),
    ];
    let play = project("- hosts: all\n  roles: [acme.tools.web]\n", files).play();
    let common = block(&block(&play.roles[0]).steps[0]);
    assert_eq!(tags(task(&common.steps[0])), "acme.tools.web,acme.tools,common");
}

#[test]
fn the_use_of_a_role_passes_keywords_parameters_and_variables() {
    let text = "- hosts: all\n  tags: p\n  roles:\n    - {role: web, when: go, tags: 'a,b', become: true, size: 3, vars: {v: 1}}\n";
    let play = project(text, WEB).play();
    let ping = task(&block(&play.roles[0]).steps[1]);
    assert_eq!((conditions(ping).as_str(), tags(ping).as_str()), ("go", "p,a,b"));
    assert!(ping.keywords.r#become.is_some() && ping.keywords.vars.is_empty());
    let role = &play.all_roles[0];
    assert_eq!((role.params["size"].to_string(), role.use_vars["v"].to_string()), ("3".into(), "1".into()));
    assert_eq!(conditions(&role.handlers[0].task), "go");
}

#[test]
fn dependencies_come_first_and_share_variables_both_ways() {
    let mut files = WEB.to_vec();
    files.extend([
        ("roles/web/meta/main.yml", "dependencies:\n  - {role: base, level: 2, when: deep}\n  - base2\n"),
        ("roles/base/vars/main.yml", "from_base: 1\nuser: other\n"),
        ("roles/base/defaults/main.yml", "port: 1\nonly_base: 1\n"),
        ("roles/base/tasks/main.yml", "- ping:\n"),
        ("roles/base2/tasks/main.yml", "- ping:\n"),
    ]);
    let play = project("- hosts: all\n  roles:\n    - {role: web, when: go, p: 1}\n", &files).play();
    let names: Vec<&str> = play.roles.iter().map(|step| name(block(step))).collect();
    assert_eq!(names, ["base", "base2", "web"]);
    let base = task(&block(&play.roles[0]).steps[0]);
    assert_eq!(conditions(base), "go & deep");
    let (base, web) = (base.role.clone().unwrap(), play.all_roles[2].clone());
    assert_eq!((base.params["p"].to_string(), base.params["level"].to_string()), ("1".into(), "2".into()));
    assert_eq!((base.vars["user"].to_string(), web.vars["user"].to_string()), ("other".into(), "www".into()));
    assert_eq!((web.vars["from_base"].to_string(), web.defaults["only_base"].to_string()), ("1".into(), "1".into()));
    assert_eq!((web.defaults["port"].to_string(), base.parents.len()), ("80".into(), 0));
    assert_eq!(web.dependencies.join(","), "base,base2");
}

#[test]
fn equal_uses_are_one_role_and_different_ones_are_two() {
    let text = "- hosts: all\n  roles: [web, {role: web}, {role: web, x: 1}, {role: web, when: a}]\n";
    let play = project(text, WEB).play();
    assert_eq!((play.roles.len(), play.all_roles.len()), (4, 3));
    let entry = |index: usize| block(&play.roles[index]).role_entry.clone().unwrap();
    assert!(std::sync::Arc::ptr_eq(&entry(0), &entry(1)) && !std::sync::Arc::ptr_eq(&entry(0), &entry(2)));
    assert!(!entry(0).allow_duplicates);
}

#[test]
fn roles_that_need_each_other_are_refused() {
    let files = [("roles/a/meta/main.yml", "dependencies: [b]\n"), ("roles/b/meta/main.yml", "dependencies: [a]\n")];
    let reported = text(&project("- hosts: all\n  roles: [a]\n", &files).load().unwrap_err());
    assert_eq!(reported, "1:16: the role \"a\" depends on itself (dependency chain: a > b > a)");
}

#[test]
fn a_role_that_is_not_there_is_reported_with_where_it_was_looked_for() {
    let reported = text(&project("- hosts: all\n  roles: [wep]\n", WEB).load().unwrap_err());
    assert!(reported.starts_with("2:11: cannot find the role \"wep\" (did you mean \"web\"? searched "), "{reported}");
}

#[test]
fn a_directory_of_variables_is_read_in_order() {
    let files = [
        ("roles/r/vars/main/10.yml", "a: 1\nb: 1\n"),
        ("roles/r/vars/main/20.yml", "b: 2\n"),
        ("roles/r/vars/main/sub/x.yml", "c: 3\n"),
        ("roles/r/tasks/main.yml", "- ping:\n"),
    ];
    let play = project("- hosts: all\n  roles: [r]\n", &files).play();
    let vars = &play.all_roles[0].vars;
    assert_eq!(
        (vars["a"].to_string(), vars["b"].to_string(), vars["c"].to_string()),
        ("1".into(), "2".into(), "3".into())
    );
}

#[test]
fn an_imported_role_stands_where_it_is_imported() {
    let mut files = WEB.to_vec();
    files.push(("roles/web/tasks/other.yml", "- ping:\n"));
    let text = "- hosts: all\n  tasks:\n    - import_role: {name: web, tasks_from: other}\n      when: go\n      vars: {x: 1}\n";
    let play = project(text, &files).play();
    let ping = task(&block(&play.tasks[0]).steps[0]);
    assert_eq!((conditions(ping).as_str(), ping.keywords.vars.len()), ("go", 1));
    assert!(play.all_roles[0].public && play.all_roles[0].allow_duplicates);
}

#[test]
fn an_included_role_is_loaded_later_with_what_stood_around_it() {
    let text = "- hosts: all\n  become: true\n  tasks:\n    - block:\n        - include_role: {name: '{{ which }}', apply: {tags: ap}}\n          \
                when: mine\n          tags: t\n          vars: {x: 1}\n      when: outer\n";
    let project = project(text, WEB);
    let play = project.play();
    let include = include(&block(&play.tasks[0]).steps[0]);
    assert!(matches!(include.what, IncludeWhat::Role { public: false, allow_duplicates: true, .. }));
    assert_eq!((conditions(&include.task).as_str(), tags(&include.task).as_str()), ("outer & mine", "t"));
    let (roles, steps) = project.loader.included_role(include, "web", &EntryPoint::default()).unwrap();
    let ping = task(&block(&steps[0]).steps[1]);
    assert_eq!((conditions(ping).as_str(), tags(ping).as_str()), ("outer", "ap"));
    assert!(ping.keywords.r#become.is_some() && ping.keywords.vars.len() == 1 && !roles[0].public);
    assert_eq!(roles[0].handlers.len(), 1);
}

#[test]
fn a_role_that_describes_its_arguments_checks_them_first() {
    let spec = "argument_specs:\n  main:\n    short_description: A role\n    options: {size: {type: int}}\n";
    let mut files = WEB.to_vec();
    files.push(("roles/web/meta/argument_specs.yml", spec));
    let play = project("- hosts: all\n  roles: [{role: web, size: 1}]\n", &files).play();
    let first = task(&block(&play.roles[0]).steps[0]);
    assert_eq!(first.name.as_ref().unwrap().to_string(), "Validating arguments against arg spec 'main' - A role");
    assert_eq!(arguments(first), "argument_spec={'size': {'type': 'int'}} provided_arguments={'size': 1}");
    assert_eq!(tags(first), "always");
}

#[test]
fn an_empty_role_has_no_tasks_and_is_no_mistake() {
    let play = project("- hosts: all\n  roles: [r]\n", &[("roles/r/tasks/main.yml", "---\n")]).play();
    assert!(block(&play.roles[0]).steps.is_empty());
}

#[test]
fn an_imported_role_knows_who_imports_it_and_sees_its_variables() {
    let mut files = WEB.to_vec();
    files.extend([
        ("roles/top/tasks/main.yml", "- import_role: {name: middle}\n"),
        ("roles/top/vars/main.yml", "of_top: 1\n"),
        ("roles/middle/tasks/main.yml", "- import_role: {name: web}\n"),
    ]);
    let play = project("- hosts: all\n  roles: [top]\n", &files).play();
    let web = play.all_roles.iter().find(|role| &*role.name == "web").unwrap();
    assert_eq!((web.parents.join(","), web.vars["of_top"].to_string()), ("middle,top".into(), "1".into()));
}
