//! What a module is given, and what is wrong with it.

use super::{arguments, task, tasks, wrong};
use crate::value::{Template, Value};

fn given(text: &str) -> String {
    arguments(task(&tasks(text)[0]))
}

#[test]
fn arguments_may_be_a_mapping_a_text_or_both() {
    assert_eq!(given("- copy: {src: a, dest: /b}"), "src=a dest=/b");
    assert_eq!(given("- copy: src=a dest='/b c'"), "src=a dest=/b c");
    assert_eq!(given("- action: copy src=a dest=/b"), "src=a dest=/b");
    assert_eq!(given("- action: {module: copy, src: a, dest: /b}"), "src=a dest=/b");
    assert_eq!(given("- copy: dest=/b\n  args: {src: a, dest: /c}"), "src=a dest=/b");
    assert_eq!(given("- ansible.builtin.copy:\n    dest: /b"), "dest=/b");
}

#[test]
fn a_command_keeps_its_text_and_gives_up_known_arguments() {
    assert_eq!(given("- command: ls -l chdir=/tmp A=b"), "cmd=ls -l A=b chdir=/tmp");
    assert_eq!(given("- command: ls\n  args:\n    chdir: /tmp"), "chdir=/tmp cmd=ls");
    assert_eq!(given("- command: {argv: [ls, -l]}"), "argv=['ls', '-l']");
    assert_eq!(
        given("- command: '{{ program }} --x=\"{{ y }}\" creates={{ z }}/file'"),
        "cmd={{ program }} --x=\"{{ y }}\" creates={{ z }}/file"
    );
}

#[test]
fn aliases_are_names_of_their_arguments() {
    assert_eq!(given("- file: dest=/x state=touch"), "dest=/x state=touch");
    assert_eq!(given("- file: {dest: /x, path: /y}\n  args: {dest: /z}"), "dest=/x path=/y");
    assert!(wrong("- file: {state: touch}").contains("file needs the argument \"path\""));
}

#[test]
fn variables_of_any_name_stay_as_they_are() {
    assert_eq!(given("- set_fact: {a: 1, b_c: [x], cacheable: true}"), "a=1 b_c=['x'] cacheable=True");
    assert_eq!(given("- set_fact: {'{{ prefix }}_x': 1}"), "{{ prefix }}_x=1");
    assert!(wrong("- set_fact: {'{{ prefix': 1}").contains("template is not closed"));
    assert!(wrong("- set_fact: {a-b: 1}").starts_with("3:18: invalid variable name \"a-b\""));
}

#[test]
fn a_text_that_is_no_template_is_none_in_its_parts() {
    for text in ["- command: !unsafe 'echo {{ x }}'", "- command: !unsafe 'chdir={{ x }} ls'"] {
        let task = task(&tasks(text)[0]).clone();
        let templates = |value: &Value| value.downcast_object_ref::<Template>().is_some();
        assert!(!task.action.args.values().any(|written| templates(&written.value)), "{text}");
    }
}

#[test]
fn arguments_may_come_whole_from_a_template() {
    let steps = tasks("- copy: '{{ all }}'\n- copy:\n  args: '{{ all }}'");
    assert!(steps.iter().all(|step| task(step).action.more_args.is_some() && task(step).action.args.is_empty()));
}

#[test]
fn an_unknown_argument_is_reported_with_its_neighbour() {
    assert_eq!(wrong("- copy: {scr: a, dest: /b}"), "3:14: copy has no argument \"scr\" (did you mean \"src\"?)");
    assert_eq!(wrong("- copy: dest=/b scr=a"), "3:21: copy has no argument \"scr\" (did you mean \"src\"?)");
    assert_eq!(
        wrong("- ping:\n    when: x"),
        "4:9: ping has no argument \"when\" (\"when\" is a keyword of a task: indent it as far as \"ping\")"
    );
}

#[test]
fn literals_of_a_wrong_type_are_refused_and_templates_are_not() {
    assert_eq!(
        wrong("- copy: {dest: /b, backup: maybe}"),
        "3:32: \"backup\" must be true or false, this is the string \"maybe\""
    );
    assert_eq!(
        wrong("- user: {name: x, uid: many}"),
        "3:28: \"uid\" must be a whole number, this is the string \"many\""
    );
    assert_eq!(wrong("- copy: {dest: [/b]}"), "3:20: \"dest\" must be a path, this is a list");
    assert_eq!(wrong("- user: {name: x, groups: {a: b}}"), "3:31: \"groups\" must be a list, this is a mapping");
    assert!(wrong("- copy: {dest: /b, mode: 'rw-r'}").contains("must be a file mode"));
    assert_eq!(given("- user: {name: x, uid: '{{ y }}', groups: 'a,b'}"), "name=x uid={{ y }} groups=a,b");
    assert_eq!(given("- copy: {dest: /b, backup: 'yes', mode: 'u=rw,g+r'}"), "dest=/b backup=yes mode=u=rw,g+r");
}

#[test]
fn a_missing_argument_is_reported_unless_defaults_may_give_it() {
    assert_eq!(wrong("- copy: {src: a}"), "3:7: copy needs the argument \"dest\"");
    assert_eq!(wrong("- meta:"), "3:7: meta needs the argument \"free_form\"");
    assert_eq!(given("- copy: {src: a}\n  module_defaults: {copy: {dest: /b}}"), "src=a");
    assert_eq!(given("- copy: {src: a}\n  module_defaults: {ansible.builtin.copy: {dest: /b}}"), "src=a");
}

#[test]
fn a_word_that_is_no_choice_is_refused() {
    assert_eq!(
        wrong("- file: {path: /x, state: directry}"),
        "3:31: \"state\" must be one of absent, directory, file, touch, this is the string \"directry\" (did you mean \"directory\"?)"
    );
}

#[test]
fn a_text_that_is_no_argument_is_refused() {
    assert_eq!(
        wrong("- copy: src=a b dest=/c"),
        "3:19: copy needs arguments as key=value, and \"b\" is not one (put quotes around a value with spaces, or \
         write the arguments as a mapping)"
    );
    assert!(wrong("- command: echo don't").starts_with("3:24: ' is never closed in the arguments of command"));
    assert_eq!(wrong("- copy: [a]"), "3:13: the arguments of copy must be a mapping, this is a list");
}

#[test]
fn expressions_in_arguments_are_checked() {
    assert_eq!(wrong("- assert: {that: [a == b, 'c ==']}"), "3:31: the expression ends too early");
    assert_eq!(wrong("- debug: {var: 'c =='}"), "3:20: the expression ends too early");
    assert_eq!(wrong("- debug: {msg: '{{ c'}"), "3:20: template is not closed");
}

#[test]
fn a_decimal_mode_is_odd_but_not_wrong() {
    let project = super::Project::new(&[(
        "play.yml",
        &super::with_tasks("- copy: {dest: /b, mode: 644}\n- copy: {dest: /b, mode: 0644}"),
    )]);
    project.load().unwrap();
    let warnings = super::text(&project.loader.take_warnings());
    assert_eq!(warnings, "3:30: the mode 644 is a decimal number, which is 1204 in octal (write \"0644\")");
}
