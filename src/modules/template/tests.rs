//! Tests of `template` against this machine.

use super::super::testing::{Bench, value};

#[tokio::test]
async fn a_template_is_rendered_once_with_the_hosts_variables() {
    let mut bench = Bench::new().await;
    bench.vars("{port: 2379, names: [a, b]}");
    bench.on_controller("templates/x.j2", "port={{ port }}\n{% for name in names %}\n{{ name }}\n{% endfor %}\n");
    let task = "template: {src: x.j2, dest: HOST/x, mode: '0640'}";
    let checked = bench.check(task).await.unwrap();
    let done = bench.run_twice(task).await;
    assert_eq!(checked.diff, done.diff);
    assert_eq!((bench.text("x").as_str(), bench.mode("x")), ("port=2379\na\nb\n", 0o640));
    assert_eq!(value(&done.outcome, "state"), "file");
    assert!(done.diff[0].after_header.ends_with("templates/x.j2"));
}

#[tokio::test]
async fn a_template_knows_where_it_is_and_where_it_goes() {
    let bench = Bench::new().await;
    bench.on_controller(
        "templates/x.j2",
        "{{ ansible_managed }}|{{ template_path }}|{{ template_destpath }}|{{ template_fullpath }}",
    );
    bench.run_twice("template: {src: x.j2, dest: HOST/}").await;
    let text = bench.text("x.j2");
    let parts: Vec<_> = text.split('|').collect();
    assert_eq!(parts[..2], ["Ansible managed", "x.j2"]);
    assert!(parts[2].ends_with("/host/") && parts[3].ends_with("/here/templates/x.j2"), "{text}");
}

#[tokio::test]
async fn marks_and_newlines_can_be_others() {
    let mut bench = Bench::new().await;
    bench.vars("x: 1");
    bench.on_controller("templates/x", "[[ x ]] {{ x }}\nend\n");
    let task = "template: {src: x, dest: HOST/x, variable_start_string: '[[', variable_end_string: ']]', newline_sequence: '\\r\\n'}";
    bench.run_twice(task).await;
    assert_eq!(bench.text("x"), "1 {{ x }}\r\nend\r\n");
}

#[tokio::test]
async fn an_undefined_variable_and_a_missing_template_are_named() {
    let bench = Bench::new().await;
    bench.on_controller("templates/x", "{{ nobody }}");
    let message = bench.failure("template: {src: x, dest: HOST/x}").await;
    assert!(message.contains("nobody"), "{message}");
    let message = bench.failure("template: {src: y, dest: HOST/x}").await;
    assert_eq!(message, "cannot find \"y\" on the controller");
    assert!(!bench.host("x").exists());
}
