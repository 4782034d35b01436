//! A text as a template of a playbook, as an expression, as a condition and as a template file.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use windlass::template::{Error, Options, Scope, Templar};
use windlass::value::{Template, Value, has_marks, yaml};

use super::reaches_out;

/// What the texts find: a value of every kind, and some that need others to be rendered.
const VARIABLES: &str = r#"
none:
sure: true
zero: 0
one: 1
least: -9223372036854775808
most: 9223372036854775807
more: 18446744073709551615
beyond: 340282366920938463463374607431768211455
half: 0.5
huge: 1.7e308
infinite: .inf
nan: .nan
empty: ""
text: one two three
accents: "Ünï©ødé ß 𝄞 e\u0301 \u202e"
lines: "a\n b\r\n\tc\n"
date: "2026-11-20 10:11:12"
version: 1.2.3-rc.4+5
address: 192.0.2.7/24
json: '{"a": [1, 2.5, null, true, "x"]}'
pattern: '(a|b)*c(?P<name>\d+)'
bytes: "\u0000\u0001\u007f\ufeff"
list: [3, 1, 2]
mixed: [1, "1", 1.0, null, [], {}, [1, [2, [3]]]]
people: [{name: ann, age: 3, tags: [x]}, {name: bob, age: 1, tags: []}, {name: cat}]
map: {b: 1, a: {c: [1, {d: 2}]}, 1: one}
wants: "{{ text }} and {{ list | length }}"
itself: "{{ itself }}"
asks: "{{ no_such_variable }}"
"#;

static SCOPE: LazyLock<Scope> = LazyLock::new(|| {
    let source = Arc::new(windlass::value::Source::new("variables.yml", VARIABLES));
    let node = yaml::parse_yaml(&source).expect("the variables are right").remove(0);
    let mut scope = Scope::default();
    scope.push(Arc::new(node.to_vars(&windlass::value::vault::Keyring::default()).expect("they are a mapping")));
    // What a host answered has marks and is no template.
    scope.with_layer([("answer".into(), Value::from("{{ text }}"))].into_iter().collect())
});

pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if reaches_out(input) {
        return;
    }
    let templar = Templar::new();
    if has_marks(text) || text.starts_with("#jinja2:") {
        let template = Template::template_value(text, None);
        sound(templar.check_template(&template)).ok();
        sound(templar.render_string(&template, &SCOPE)).ok();
        sound(templar.render_file(text, Path::new("template.j2"), &Options::default(), &SCOPE)).ok();
    } else {
        sound(templar.check_expression(text, None)).ok();
        if let Ok(value) = sound(templar.expression_value(text, None, &SCOPE)) {
            // It is printed by reports, too.
            let _ = (value.to_string(), format!("{value:?}"));
        }
        sound(templar.condition(&Value::from(text), None, &SCOPE)).ok();
    }
}

/// A panic of the template engine is told as an error. It is a fault all the same.
fn sound<T>(rendered: Result<T, Error>) -> Result<T, Error> {
    if let Err(error) = &rendered {
        let words = error.complaint().message;
        assert!(!words.contains("a fault of the template engine"), "{words}");
    }
    rendered
}
