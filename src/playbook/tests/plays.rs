//! Plays and playbooks as a whole.

use super::{Project, conditions, play, tags, task, text, wrong_play};
use crate::playbook::load::{LoaderContext, setup_task};
use crate::playbook::{Order, Strategy};

#[test]
fn a_play_keeps_all_its_keywords() {
    let play = play(
        "- name: one\n  hosts: [a, b]\n  serial: [1, '50%']\n  strategy: free\n  order: sorted\n  force_handlers: true\n  \
         gather_facts: false\n  max_fail_percentage: 30\n  vars: {x: 1}\n  become: true\n  environment: {A: b}\n  \
         vars_prompt:\n    - {name: who, prompt: Who?, private: false}\n  tasks:\n    - ping:\n",
    );
    assert_eq!(play.name.unwrap().to_string(), "one");
    assert_eq!(play.hosts.value.to_string(), "['a', 'b']");
    assert_eq!((play.serial.len(), play.strategy, play.order), (2, Strategy::Free, Order::Sorted));
    assert!(play.force_handlers && play.keywords.r#become.is_some());
    assert_eq!(play.vars["x"].to_string(), "1");
    assert_eq!((play.vars_prompt[0].name.as_str(), play.vars_prompt[0].private), ("who", false));
    assert_eq!(task(&play.tasks[0]).keywords.environment.len(), 1);
}

#[test]
fn an_imported_playbook_inherits_condition_tags_and_variables() {
    let project = Project::new(&[
        ("play.yml", "- import_playbook: sub/two.yml\n  when: go\n  tags: [t]\n  vars: {x: 2}\n- hosts: c\n"),
        ("sub/two.yml", "- hosts: all\n  vars: {x: 1, y: 1}\n  tasks:\n    - ping:\n      tags: u\n      when: a\n"),
    ]);
    let plays = project.load().unwrap();
    assert_eq!(plays.len(), 2);
    let ping = task(&plays[0].tasks[0]);
    assert_eq!((conditions(ping).as_str(), tags(ping).as_str()), ("go & a", "t,u"));
    assert_eq!((plays[0].vars["x"].to_string(), plays[0].vars["y"].to_string()), ("2".into(), "1".into()));
    assert!(plays[0].directory.ends_with("sub"));
    let doc = super::known::Few.module("setup").unwrap();
    assert_eq!(conditions(&setup_task(&plays[0], doc)), "go");
    assert!(plays[1].keywords.tags.is_empty());
}

#[test]
fn facts_are_always_gathered_unless_the_play_has_tags() {
    let doc = super::known::Few.module("setup").unwrap();
    let play = play("- hosts: all\n  gather_subset: ['!all']\n  run_once: true\n");
    let setup = setup_task(&play, doc);
    assert_eq!((tags(&setup).as_str(), super::arguments(&setup).as_str()), ("always", "gather_subset=['!all']"));
    assert!(setup.keywords.run_once.is_none());
    assert_eq!(tags(&setup_task(&super::play("- hosts: all\n  tags: net\n"), doc)), "net");
}

#[test]
fn playbooks_that_import_each_other_are_refused() {
    let project =
        Project::new(&[("play.yml", "- import_playbook: b.yml\n"), ("b.yml", "- import_playbook: play.yml\n")]);
    let complaints = project.load().unwrap_err();
    assert!(text(&complaints).contains("imports itself"), "{}", text(&complaints));
}

#[test]
fn a_play_without_hosts_is_distinguished_from_a_lone_task() {
    assert_eq!(
        wrong_play("- name: x\n  tasks: []\n"),
        "1:3: this play has no \"hosts\" (add \"hosts: all\", or the hosts that the play is for)"
    );
    assert!(wrong_play("- name: x\n  ping:\n").contains("module \"ping\" in a play"));
    assert_eq!(wrong_play("- hosts:\n"), "1:3: \"hosts\" is empty");
}

#[test]
fn strategies_that_are_not_there_are_named() {
    let reported = wrong_play("- hosts: all\n  strategy: debug\n");
    assert_eq!(reported, "2:13: the strategy \"debug\" is not supported (use \"linear\", \"free\" or \"host_pinned\")");
}

#[test]
fn all_mistakes_are_reported_at_once_in_the_order_of_the_file() {
    let reported = wrong_play("- hosts: all\n  becom: true\n  tasks:\n    - pong:\n    - ping:\n      wehn: x\n");
    let lines: Vec<&str> = reported.lines().collect();
    assert_eq!(lines.len(), 3, "{reported}");
    assert_eq!(lines[0], "2:3: unknown keyword \"becom\" of a play (did you mean \"become\"?)");
    assert_eq!(lines[1], "4:7: unknown module \"pong\" (did you mean \"ping\"?)");
    assert_eq!(lines[2], "6:7: unknown keyword \"wehn\" of a task (did you mean \"when\"?)");
}

#[test]
fn handlers_keep_their_names_and_what_they_listen_to() {
    let project = Project::new(&[
        (
            "play.yml",
            "- hosts: all\n  handlers:\n    - name: a\n      ping:\n      listen: [x, y]\n    - import_tasks: more.yml\n    \
             - name: c\n      include_tasks: late.yml\n      listen: z\n",
        ),
        ("more.yml", "- name: b\n  ping:\n  listen: x\n"),
    ]);
    let play = project.play();
    let names: Vec<String> = play.handlers.iter().map(|h| h.task.name.clone().unwrap().to_string()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(play.handlers[0].listen.join(","), "x,y");
    assert_eq!(play.handlers[1].listen.join(","), "x");
    assert!(play.handlers[2].include.is_some());
}

#[test]
fn a_block_among_handlers_gives_them_its_keywords() {
    let play = play(
        "- hosts: all\n  handlers:\n    - name: both\n      when: go\n      block:\n        - name: a\n          ping:\n          listen: x\n        - name: b\n          ping:\n",
    );
    assert_eq!((play.handlers.len(), play.handlers[0].listen.len()), (2, 1));
    assert_eq!(conditions(&play.handlers[1].task), "go");
}
