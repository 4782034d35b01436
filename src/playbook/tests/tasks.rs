//! Tasks: their module, their keywords, their loop; includes and imports among them.

use super::{Project, arguments, block, conditions, include, tags, task, tasks, text, wrong};
use crate::playbook::IncludeWhat;

#[test]
fn a_task_keeps_all_its_keywords() {
    let steps = tasks(
        "- name: one\n  ping:\n  register: r\n  until: r is ok\n  retries: 3\n  delay: 2\n  changed_when: [a, b]\n  \
         failed_when: false\n  notify: h\n  delegate_to: x\n  delegate_facts: yes\n  async: 10\n  poll: 0\n",
    );
    let task = task(&steps[0]);
    assert_eq!(task.name.as_ref().unwrap().to_string(), "one");
    assert_eq!((task.register.as_deref(), task.until.len(), task.changed_when.len()), (Some("r"), 1, 2));
    assert!(task.retries.is_some() && task.delay.is_some() && task.asynchronous.is_some() && task.poll.is_some());
    assert_eq!((task.notify.len(), task.delegate_facts, task.failed_when.len()), (1, true, 1));
    assert_eq!(task.delegate_to.as_ref().unwrap().value.to_string(), "x");
    assert_eq!((task.origin.line, task.origin.column), (3, 7));
}

#[test]
fn a_loop_keeps_what_it_loops_over_and_how() {
    let steps = tasks(
        "- ping:\n  loop: [1, 2]\n  loop_control: {loop_var: it, index_var: at, label: x, pause: 1, extended: true}\n\
         - ping:\n  with_dict: '{{ d }}'\n",
    );
    let first = task(&steps[0]).repeat.clone().unwrap();
    assert!(first.lookup.is_none() && first.control.extended && first.control.label.is_some());
    assert_eq!((&*first.control.loop_var, first.control.index_var.as_deref()), ("it", Some("at")));
    let second = task(&steps[1]).repeat.clone().unwrap();
    assert_eq!((second.lookup.as_deref(), &*second.control.loop_var), (Some("dict"), "item"));
}

#[test]
fn loops_that_cannot_be_are_refused() {
    assert_eq!(
        wrong("- ping:\n  loop: [1]\n  with_items: [1]"),
        "5:7: two loops in one task: \"loop\" and \"with_items\""
    );
    assert!(wrong("- ping:\n  loop: hosts_list").contains("write \"{{ hosts_list }}\""));
    assert!(wrong("- ping:\n  loop: {a: 1}").contains("dict2items"));
    assert!(wrong("- ping:\n  loop: [1]\n  loop_control: {loopvar: x}").contains("did you mean \"loop_var\"?"));
}

#[test]
fn local_action_runs_on_the_controller() {
    let steps = tasks("- local_action: command ls -l\n- local_action: {module: ping}");
    let first = task(&steps[0]);
    assert_eq!(arguments(first), "cmd=ls -l");
    assert_eq!(first.delegate_to.as_ref().unwrap().value.to_string(), "localhost");
    assert_eq!(first.keywords.connection.as_ref().unwrap().value.to_string(), "local");
    assert_eq!(task(&steps[1]).action.doc.name, "ping");
}

#[test]
fn a_task_has_exactly_one_module() {
    assert_eq!(wrong("- name: x"), "3:7: this task has no module (indent the module's line as far as \"name\")");
    assert_eq!(
        wrong("- ping:\n  copy: {dest: /b}"),
        "4:7: two modules in one task: \"ping\" and \"copy\" (start another task with \"-\")"
    );
    assert!(wrong("- ping:\n  community.general.ufw:").contains("two modules in one task"));
    assert!(wrong("- community.general.ufw: {}").contains("modules of collections are not supported"));
    assert!(wrong("- community.general.copy: {}").contains("windlass has \"ansible.builtin.copy\""));
    assert_eq!(wrong("- action: pong"), "3:15: unknown module \"pong\" (did you mean \"ping\"?)");
}

#[test]
fn arguments_beside_their_module_need_to_be_indented() {
    assert_eq!(
        wrong("- copy:\n  src: a\n  dest: /b"),
        "3:7: copy needs the argument \"dest\"\n\
         4:7: \"src\" is an argument of copy, not a keyword of a task (indent it below \"copy:\")\n\
         5:7: \"dest\" is an argument of copy, not a keyword of a task (indent it below \"copy:\")"
    );
}

#[test]
fn keywords_in_the_wrong_place_are_reported_where_they_belong() {
    assert_eq!(wrong("- ping:\n  hosts: all"), "4:7: \"hosts\" is a keyword of a play, not of a task");
    assert_eq!(wrong("- block:\n    - ping:\n  loop: [1]"), "5:7: \"loop\" is a keyword of a task, not of a block");
    assert_eq!(wrong("- ping:\n  listen: x"), "4:7: \"listen\" is a keyword of a handler, not of a task");
    assert!(wrong("- rescue:\n    - ping:").starts_with("3:7: \"rescue\" without \"block\""));
}

#[test]
fn keywords_of_a_wrong_type_are_refused() {
    assert_eq!(
        wrong("- ping:\n  become: maybe"),
        "4:15: \"become\" must be true or false, this is the string \"maybe\""
    );
    assert_eq!(
        wrong("- ping:\n  retries: many"),
        "4:16: \"retries\" must be a whole number, this is the string \"many\""
    );
    assert_eq!(wrong("- ping:\n  vars: [a]"), "4:13: \"vars\" must be a mapping, this is a list");
    assert_eq!(wrong("- ping:\n  when: [{a: b}]"), "4:14: \"when\" must be an expression, this is a mapping");
    assert!(wrong("- ping:\n  register: a-b").contains("invalid variable name"));
    assert!(wrong("- ping:\n  vars: {is: 1}").contains("the template language reserves this word"));
    assert!(wrong("- ping").contains("write \"ping:\""));
}

#[test]
fn braces_in_a_condition_are_odd_but_not_wrong() {
    let project = Project::new(&[("play.yml", &super::with_tasks("- ping:\n  when: '{{ x }}'"))]);
    project.load().unwrap();
    let warnings = text(&project.loader.take_warnings());
    assert_eq!(warnings, "4:13: \"when\" is already an expression and needs no braces (write when: x)");
    assert!(project.loader.take_warnings().is_empty());
}

#[test]
fn an_imported_file_inherits_what_stands_at_its_import() {
    let text = super::with_tasks(
        "- import_tasks: sub/{{ edition }}.yml\n  when: go\n  tags: t\n  vars: {a: 1}\n  become: true",
    );
    let files = [
        ("play.yml", text.as_str()),
        ("sub/blue.yml", "- block:\n    - import_tasks: next.yml\n  when: inner\n"),
        ("sub/next.yml", "- ping:\n  when: own\n"),
    ];
    let play = Project::new(&files).play();
    let ping = task(&block(&play.tasks[0]).steps[0]);
    assert_eq!((conditions(ping).as_str(), tags(ping).as_str()), ("go & inner & own", "t"));
    assert!(ping.keywords.r#become.is_some() && ping.keywords.vars.len() == 1 && ping.directory.ends_with("sub"));
}

#[test]
fn imports_that_cannot_be_are_refused() {
    let reported = |text: &str, files: &[(&str, &str)]| {
        let play = super::with_tasks(text);
        let mut all = vec![("play.yml", play.as_str())];
        all.extend(files);
        super::text(&Project::new(&all).load().unwrap_err())
    };
    assert!(
        reported("- import_tasks: a.yml", &[("b.yml", "")])
            .starts_with("3:21: cannot find the file \"a.yml\" (did you mean \"b.yml\"?")
    );
    assert!(reported("- import_tasks: a.yml\n  loop: [1]", &[("a.yml", "[]")]).contains("use include_tasks"));
    assert!(reported("- import_tasks: '{{ nobody }}.yml'", &[]).contains("this must be known before the run"));
    let cycle = [("a.yml", "- import_tasks: b.yml\n"), ("b.yml", "- import_tasks: a.yml\n")];
    assert!(reported("- import_tasks: a.yml", &cycle).contains("the file \"a.yml\" imports itself (import chain: "));
}

#[test]
fn an_included_file_is_loaded_later_with_what_stood_around_it() {
    let text = super::with_tasks(
        "- block:\n    - include_tasks:\n        file: a.yml\n        apply: {tags: ap, become: true}\n      when: mine\n      \
         tags: own\n      vars: {a: 1}\n      loop: [1]\n  when: outer\n  tags: around\n",
    );
    let files = [
        ("play.yml", text.as_str()),
        ("a.yml", "- ping:\n- import_tasks: '{{ edition }}.yml'\n"),
        ("blue.yml", "- ping:\n"),
    ];
    let project = Project::new(&files);
    let play = project.play();
    let include = include(&block(&play.tasks[0]).steps[0]);
    assert!(matches!(&include.what, IncludeWhat::Tasks { file } if file.value.to_string() == "a.yml"));
    assert_eq!(tags(&include.task), "around,own");
    assert!(include.task.repeat.is_some());
    let steps = project.loader.included_tasks(include, "a.yml").unwrap();
    assert_eq!(steps.len(), 2);
    let ping = task(&steps[0]);
    assert_eq!((conditions(ping).as_str(), tags(ping).as_str()), ("outer", "around,ap"));
    assert!(ping.keywords.r#become.is_some() && ping.keywords.vars.len() == 1);
}

#[test]
fn an_include_takes_only_what_concerns_itself() {
    let reported = wrong("- include_tasks: a.yml\n  become: true\n  register: x");
    assert_eq!(
        reported,
        "4:7: include_tasks does not support \"become\" (put it below \"apply:\", for the included tasks)"
    );
    assert!(wrong("- include_role: {nam: x}").contains("did you mean \"name\"?"));
    assert!(wrong("- include_role: {}").contains("include_role needs the argument \"name\""));
    assert!(
        wrong("- include_tasks: {file: a, apply: {loop: [1]}}")
            .contains("\"loop\" is a keyword of a task, not of a block")
    );
}

#[test]
fn meta_is_a_module_like_others() {
    let steps = tasks("- meta: flush_handlers\n- ansible.builtin.include_tasks: x.yml\n");
    assert_eq!(arguments(task(&steps[0])), "free_form=flush_handlers");
    include(&steps[1]);
}
