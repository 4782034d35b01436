//! What passes from the outside in.

use super::{block, conditions, play, tags, task};

const NESTED: &str = "- hosts: all\n  tags: [p]\n  become: true\n  become_user: a\n  environment: {P: 1}\n  vars: {x: play}\n  \
     module_defaults: {ping: {data: p}}\n  tasks:\n    - block:\n        - block:\n            - ping:\n              tags: 't, p'\n              \
     when: [c, d]\n              vars: {x: task}\n              environment: [{T: 1}, '{{ more }}']\n              become_user: c\n          \
     when: b\n          tags: [i, j]\n          become: false\n      when: a\n      vars: {x: block}\n      environment: {B: 1}\n      \
     become_user: b\n      delegate_to: there\n      notify: h\n      no_log: true\n";

#[test]
fn conditions_and_tags_add_up_from_the_outside() {
    let play = play(NESTED);
    let ping = task(&block(&block(&play.tasks[0]).steps[0]).steps[0]);
    assert_eq!((conditions(ping).as_str(), tags(ping).as_str()), ("a & b & c & d", "p,i,j,t"));
}

#[test]
fn variables_and_environment_lie_in_layers_and_a_plays_variables_are_its_own() {
    let play = play(NESTED);
    let ping = task(&block(&block(&play.tasks[0]).steps[0]).steps[0]);
    let layers: Vec<String> = ping.keywords.vars.iter().map(|vars| vars["x"].to_string()).collect();
    assert_eq!(layers, ["block", "task"]);
    let environment: Vec<String> = ping.keywords.environment.iter().map(|e| e.value.to_string()).collect();
    assert_eq!(environment, ["{'P': 1}", "{'B': 1}", "{'T': 1}", "{{ more }}"]);
    assert_eq!((ping.keywords.module_defaults.len(), play.vars["x"].to_string()), (1, "play".into()));
}

#[test]
fn of_other_keywords_the_nearest_wins() {
    let play = play(NESTED);
    let outer = block(&play.tasks[0]);
    let inner = block(&outer.steps[0]);
    let ping = task(&inner.steps[0]);
    let value = |written: &Option<crate::playbook::SourceValue>| written.as_ref().unwrap().value.to_string();
    assert_eq!(value(&ping.keywords.r#become), "False");
    assert_eq!(value(&ping.keywords.become_user), "c");
    assert_eq!(value(&outer.keywords.r#become), "True");
    assert_eq!(value(&inner.keywords.become_user), "b");
    assert_eq!(value(&ping.keywords.no_log), "True");
    assert_eq!((value(&ping.delegate_to).as_str(), ping.notify.len()), ("there", 1));
}

#[test]
fn tasks_without_keywords_share_those_around_them() {
    let play = play("- hosts: all\n  become: true\n  tasks:\n    - ping:\n    - ping:\n");
    assert!(std::sync::Arc::ptr_eq(&task(&play.tasks[0]).keywords, &play.keywords));
}
