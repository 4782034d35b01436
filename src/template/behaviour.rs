//! What a person sees of templates beyond their results: places, names, chains, laziness, files.

use std::path::Path;

use super::*;
use crate::value::Vars;
use crate::value::origin::{Diagnostic, Source};
use crate::value::vault::Keyring;
use crate::value::yaml;

fn vars(file: &str, text: &str) -> Vars {
    let source = Arc::new(Source::new(file, text));
    let nodes = yaml::parse_yaml(&source).unwrap();
    nodes[0].to_vars(&Keyring::default()).unwrap()
}

/// Renders the variable `it` of a file.
fn render(text: &str) -> Result<Value, Error> {
    let vars = vars("vars.yml", text);
    let it = vars["it"].clone();
    Templar::new().render(&it, &Scope::default().with_layer(vars))
}

fn complaint(text: &str) -> Diagnostic {
    render(text).unwrap_err().complaint()
}

fn condition(expression: &str) -> Result<bool, Error> {
    let scope =
        Scope::default().with_layer(vars("v.yml", "a: {b: 1}\nt: true\nn: 'no'\nx: '{{ a.b }}'\nneed: '{{ nope }}'\n"));
    Templar::new().condition(&Value::from(expression), None, &scope)
}

#[test]
fn a_slip_in_a_length_is_an_error_and_takes_no_memory() {
    for length in ["'x' | center(99999999999999)", "'x'.zfill(99999999999999)", "'x'.ljust(99999999999999)"] {
        let message = complaint(&format!("it: \"{{{{ {length} }}}}\"\n")).message;
        assert_eq!(message, "width of more than 1000000", "{length}");
    }
}

/// What an expression gives, as Python prints it.
fn printed(expression: &str) -> Result<String, Error> {
    Templar::new().expression_value(expression, None, &Scope::default()).map(|value| value.to_string())
}

#[test]
fn what_would_take_all_memory_or_all_time_is_an_error() {
    for (expression, words) in [
        ("range(-9223372036854775808, 9223372036854775807)", "range of more than 1,000,000 numbers"),
        ("query('sequence', 'start=-9223372036854775807 end=9223372036854775807')", "more than 1,000,000 numbers"),
        ("query('nested', range(1000), range(1001))", "more than 1,000,000 combinations"),
        ("[1] | slice(10**12)", "slices of more than 1000000"),
        ("{'a': 1} | json_query('[' * 2000)", "more than 1000 steps within one JMESPath expression"),
        ("[1] | product(repeat=10**12)", "product of more than 1000000 items"),
        ("range(99) | permutations(99)", "more than 101010 combinations"),
        ("'x' | comment(prefix_count=10**11)", "prefix_count of more than 1000000"),
        ("[1] | to_nice_json(indent=10**11)", "indent of more than 1000000"),
        ("'%09999999d' % 1", "a width of more than 1000000"),
        ("'%*d' % (9999999, 1)", "a width of more than 1000000"),
        ("'{:>9999999}'.format(1)", "a width of more than 1000000"),
        ("('a' * 10**6) | replace('a', 'b' * 10**6)", "the result is too long"),
        ("('a' * 10**6) | join('b' * 10**6)", "the result is too long"),
        ("('a' * 10**6) | regex_replace('a', 'b' * 10**3)", "the result is too long"),
        ("'a'.ljust(10**6, 'b' * 10**6)", "the result is too long"),
    ] {
        let error = printed(expression).unwrap_err().to_string();
        assert!(error.contains(words), "{expression}: {error}");
    }
}

#[test]
fn numbers_at_the_end_of_their_range_are_right_or_refused() {
    for (expression, expected) in [
        ("range(9223372036854775805, 9223372036854775807, 2) | list", "[9223372036854775805]"),
        ("range(5, -9223372036854775808, -9223372036854775808) | list", "[5, -9223372036854775803]"),
        ("query('sequence', 'start=9223372036854775806 end=9223372036854775807') | length", "2"),
        ("9223372036854775807 | round(-1)", "9223372036854775810"),
        ("9223372036854775807 | random(start=9223372036854775806)", "9223372036854775806"),
        ("range(5) | slice(3, 'x') | list", "[[0, 1], [2, 3], [4, 'x']]"),
        ("[1] | slice(2) | list", "[[1], []]"),
        ("range(4) | permutations(2) | first", "[0, 1]"),
        ("range(4) | permutations(2) | last", "[3, 2]"),
        ("range(4) | combinations(3) | list", "[[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]"),
        ("range(40) | combinations(39) | list | length", "40"),
        ("[[1] | combinations(2) | list, [] | permutations | list]", "[[], [[]]]"),
        ("[1, 2] | product(['a'], repeat=2) | last", "[2, 'a', 2, 'a']"),
        ("[[] | product(repeat=10**5) | list, [] | product(repeat=0) | list]", "[[], [[]]]"),
    ] {
        assert_eq!(printed(expression).unwrap(), expected, "{expression}");
    }
    assert!(printed("'--170141183460469231731687303715884105728' | int").is_err());
}

#[test]
fn a_list_or_mapping_does_not_get_into_itself() {
    let rendered = |text: &str| Templar::new().render_string(&Template::template_value(text, None), &Scope::default());
    let change = |what: &str| {
        rendered(&format!(
            "{{% set l = [2, 1] %}}{{% set d = {{'a': l}} %}}{{% set _ = {what} %}}{{{{ l }}}}{{{{ d }}}}"
        ))
    };
    for what in ["l.append(l)", "l.insert(0, l)", "d.setdefault('x', d)"] {
        let error = change(what).unwrap_err().to_string();
        assert!(error.contains("must not contain itself"), "{what}: {error}");
    }
    assert_eq!(change("l.extend(l)").unwrap(), "[2, 1, 2, 1]{'a': [2, 1]}");
    assert_eq!(change("l.sort()").unwrap(), "[1, 2]{'a': [2, 1]}");
    assert!(change("l.remove(l)").is_err());
    for use_of_it in ["ns", "ns | string", "ns | to_json"] {
        let text = format!("{{% set ns = namespace() %}}{{% set ns.x = ns %}}{{{{ {use_of_it} }}}}");
        // On a stack as runs have it.
        let roomy = std::thread::Builder::new().stack_size(16 << 20);
        let reported = roomy.spawn(move || rendered(&text).unwrap_err().to_string()).unwrap().join().unwrap();
        assert!(reported.contains("within each other"), "{use_of_it}: {reported}");
    }
}

#[test]
fn an_undefined_variable_is_named_at_the_place_where_it_is_used() {
    assert_eq!(complaint("a: 1\nit: 'x {{ a }} {{ nope }}'\n").to_string(), "vars.yml:2:19: \"nope\" is undefined");
    assert_eq!(complaint("it: '{{ nope.a.b }}'\n").to_string(), "vars.yml:1:9: \"nope\" is undefined");
    assert_eq!(
        complaint("d: {a: {}}\nit: \"{{ d.a.x | upper }}\"\n").to_string(),
        "vars.yml:2:9: \"d.a.x\" is undefined"
    );
    assert_eq!(complaint("it: |\n  one\n  {{ nope }}\n").to_string(), "vars.yml:3:6: \"nope\" is undefined");
    assert_eq!(complaint("it: '{{ [nope] }}'\n").to_string(), "vars.yml:1:10: \"nope\" is undefined");
    assert_eq!(
        complaint("a: {}\nit: '{{ a is defined and nope == 1 }}'\n").to_string(),
        "vars.yml:2:26: \"nope\" is undefined"
    );
}

#[test]
fn the_way_to_an_undefined_variable_is_reported() {
    let complaint = complaint("it: '{{ mid }}'\nmid: '{{ deep.x }}'\ndeep: {x: '{{ missing }}'}\n");
    assert_eq!(
        complaint.to_string(),
        "vars.yml:3:15: \"missing\" is undefined, needed by \"deep.x\", needed by \"mid\""
    );
}

#[test]
fn variables_that_need_themselves_are_reported() {
    assert!(complaint("it: '{{ a }}'\na: '{{ b }}'\nb: '{{ a }}'\n").message.starts_with("recursive loop in template"));
    assert_eq!(render("me: {x: 1, y: '{{ me.x }}'}\nit: '{{ me.y }}'\n").unwrap(), Value::from(1));
}

#[test]
fn the_hint_of_undef_is_the_error() {
    let hinted = "x: \"{{ undef(hint='set x for every host') }}\"\n";
    assert_eq!(complaint("it: \"{{ undef('set it') }}\"\n").to_string(), "vars.yml:1:9: set it");
    assert_eq!(
        complaint(&format!("{hinted}it: '{{{{ x }}}}'\n")).to_string(),
        "vars.yml:1:8: set x for every host, needed by \"x\""
    );
    assert_eq!(render(&format!("{hinted}it: '{{{{ x | default(1) }}}}'\n")).unwrap(), Value::from(1));
    assert!(complaint("it: '{{ undef() }}'\n").message.ends_with("is undefined"));
}

#[test]
fn only_what_is_looked_at_is_rendered() {
    assert_eq!(render("d: {good: '{{ 1 + 1 }}', bad: '{{ nope }}'}\nit: '{{ d.good }}'\n").unwrap(), Value::from(2));
    assert_eq!(
        render("l: ['{{ nope }}', 'x']\nit: '{{ l[1] }}{{ l | length }}'\n").unwrap_err().undefined(),
        Some("nope")
    );
}

#[test]
fn omit_is_dropped_from_what_holds_it() {
    let value = render("it: {a: 1, b: '{{ nope | default(omit) }}', c: ['{{ omit }}', 2]}\n").unwrap();
    assert_eq!(value.to_string(), "{'a': 1, 'c': [2]}");
    assert!(is_omit(&render("it: '{{ nope | default(omit) }}'\n").unwrap()));
}

#[test]
fn what_a_host_answered_is_never_rendered() {
    let mut vars = vars("v.yml", "it: '{{ answer }}'\n");
    vars.insert("answer".into(), Value::from_pairs([("stdout", "{{ 1 + 1 }}")]));
    let value = Templar::new().render(&vars["it"].clone(), &Scope::default().with_layer(vars)).unwrap();
    assert_eq!(value.get_attr("stdout").unwrap().as_str(), Some("{{ 1 + 1 }}"));
}

#[test]
fn what_a_host_answered_is_never_evaluated() {
    let scratch = tempfile::tempdir().unwrap();
    let mark = scratch.path().join("mark");
    let hostile = format!("lookup('pipe', 'touch {}') == ''", mark.display());
    let own = "text: '{{ answer.stdout }}'\nchain: '{{ text }}'\nlist: ['{{ answer.stdout }}']\nrule: 1 + 1 == 2\n\
               rules: {one: rule, two: '{{ rule }}', all: [rule, 1 == 1]}\nround: '{{ round_ }}'\nround_: '{{ round }}'\n";
    let answer = Value::from_pairs([
        ("stdout", Value::from(hostile.clone())),
        ("stdout_lines", Value::from(vec![hostile.clone()])),
        ("yes", Value::from("True")),
        ("name", Value::from("truth")),
    ]);
    let mut scope = Scope::default();
    scope.push_own(Arc::new(vars("v.yml", own)));
    scope.push(Arc::new(Vars::from([("answer".into(), answer), ("truth".into(), Value::from(true))])));
    let templar = Templar::new();
    for text in [
        "{{ answer.stdout }}",
        "{{ text }}",
        "{{ chain }}",
        "{{ list }}",
        "{{ list[0] }}",
        "{{ answer.stdout_lines }}",
        "{{ answer['stdout'] }}",
        "not {{ answer.stdout }}",
        "{{ answer.stdout | trim }}",
        "'{{ answer.stdout }}' == ''",
        "{% if true %}{{ answer.stdout }}{% endif %}",
    ] {
        let value = Template::template_value(text, None);
        let reported = templar.condition(&value, None, &scope).unwrap_err().to_string();
        assert!(reported.contains("refusing to evaluate"), "{text}: {reported}");
        assert!(templar.indirect(&value, &scope).is_err() && templar.indirect(&vec![value].into(), &scope).is_err());
    }
    assert!(templar.check_foreign(&Value::from(hostile.clone())).is_err());
    assert!(!mark.exists(), "a host's text was evaluated");
    for text in ["{{ rule }}", "{{ rules.two }}", "{{ answer.yes }}", "{{ answer.name }}", "{{ 1 == 1 }}"] {
        assert!(templar.condition(&Template::template_value(text, None), None, &scope).unwrap(), "{text}");
    }
    let all = templar.indirect(&Template::template_value("{{ rules.all }}", None), &scope).unwrap();
    assert_eq!(all.to_string(), "['rule', '1 == 1']");
    assert!(templar.condition(&Template::template_value("{{ round }}", None), None, &scope).is_err());
}

#[test]
fn conditions_are_true_false_or_an_error() {
    for (expression, expected) in [
        ("t", true),
        ("not t", false),
        ("a.b == 1", true),
        ("x == 1", true),
        ("a.c is defined", false),
        ("n | bool", false),
        ("a.c.d | default(true)", true),
        ("need is defined", false),
        ("zz is not defined", true),
        ("'a' in ['a']", true),
    ] {
        assert_eq!(condition(expression).unwrap(), expected, "{expression}");
    }
    assert_eq!(condition("nope == 1").unwrap_err().undefined(), Some("nope"));
    assert_eq!(condition("a.b + nope > 1").unwrap_err().undefined(), Some("nope"));
    assert_eq!(condition("need == 1").unwrap_err().undefined(), Some("nope"));
    assert!(condition("t and").is_err());
}

#[test]
fn a_backslash_escapes_in_expressions_and_is_one_in_texts() {
    for holds in [r"'a1' is match('a\\d')", r"'a1' is match('a\d')", r"'\\' | length == 1", r"'\n' | length == 1"] {
        assert!(condition(holds).unwrap(), "{holds}");
    }
    assert!(condition(r"'\x1' == ''").is_err() && Templar::new().check_expression(r"'\x1' == ''", None).is_err());
    assert_eq!(render(r#"it: '{{ "\\" | length }}'"#).unwrap().to_string(), "2");
}

#[test]
fn a_condition_is_neither_a_text_nor_a_list_unless_it_may_be() {
    for (expression, truth) in [("n", true), ("[1]", true), ("[]", false), ("a.b", true), ("a", true), ("none", false)]
    {
        let message = condition(expression).unwrap_err().complaint().message;
        assert!(message.contains("must be true or false"), "{expression}: {message}");
        let scope = Scope::default().with_layer(vars("v.yml", "a: {b: 1}\nn: 'no'\n"));
        let lenient = Templar::within(Default::default(), true);
        assert_eq!(lenient.condition(&Value::from(expression), None, &scope).unwrap(), truth, "{expression}");
    }
    assert_eq!(condition(" ").unwrap_err().complaint().message, "the condition is empty");
}

#[test]
fn unknown_filters_tests_and_bad_syntax_are_found_without_variables() {
    let check = |text: &str| {
        Templar::new().check_template(&Template::template_value(text, None)).map_err(|error| {
            let complaint = error.complaint();
            complaint.message + &complaint.hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
        })
    };
    assert_eq!(
        check("{{ a | defualt(1) }}").unwrap_err(),
        "there is no filter \"defualt\" (did you mean \"default\"?)"
    );
    assert_eq!(check("{{ a is definde }}").unwrap_err(), "there is no test \"definde\" (did you mean \"defined\"?)");
    assert_eq!(check("{{ lookup('fil', 'x') }}").unwrap_err(), "there is no lookup \"fil\" (did you mean \"file\"?)");
    assert_eq!(check("{{ query('nothing_like_it') }}").unwrap_err(), "there is no lookup \"nothing_like_it\"");
    assert!(check("{{ lookup('ansible.builtin.env', 'HOME') ~ lookup(kind, x) ~ lookup('fi' ~ 'le', x) }}").is_ok());
    assert!(check("{{ a ").unwrap_err().contains("syntax error"));
    assert!(check("{{ a | ansible.builtin.combine(b) }} {% if a is not defined %}x{% endif %}").is_ok());
    let expression = |text: &str| Templar::new().check_expression(text, None).map_err(|error| error.to_string());
    assert!(expression("a is defined and b | length > 0").is_ok());
    assert!(expression("a ===  b").is_err());
}

fn file(text: &str, options: &Options) -> Result<String, Error> {
    let scope =
        Scope::default().with_layer(vars("v.yml", "a: 1\nlist: [1, 2]\nlater: '{{ a }}!'\nbad: '{{ nope }}'\n"));
    Templar::new().render_file(text, Path::new("templates/x.j2"), options, &scope)
}

#[test]
fn template_files_keep_their_last_newline_and_trim_blocks() {
    let text = "{% for i in list %}\n{{ i }} {{ later }}\n{% endfor %}\nend\n";
    assert_eq!(file(text, &Options::default()).unwrap(), "1 1!\n2 1!\nend\n");
    assert_eq!(
        file("  {% if a %}\nx\n  {% endif %}\n", &Options { lstrip_blocks: true, ..Options::default() }).unwrap(),
        "x\n"
    );
    assert_eq!(file("a\n", &Options { newline: Some("\r\n".into()), ..Options::default() }).unwrap(), "a\r\n");
    assert_eq!(file(r"{{ 'x\ty' }}", &Options::default()).unwrap(), "x\ty");
}

#[test]
fn the_header_of_a_template_file_changes_its_syntax() {
    let text = "#jinja2: variable_start_string: '[%', variable_end_string: '%]', trim_blocks: False\n[% a %] {{ a }}\n";
    assert_eq!(file(text, &Options::default()).unwrap(), "1 {{ a }}\n");
}

#[test]
fn errors_of_template_files_name_the_line() {
    let undefined = file("one\n{{ a }} {{ nope.x }}\n", &Options::default()).unwrap_err().complaint();
    assert_eq!(undefined.to_string(), "templates/x.j2:2:12: \"nope\" is undefined");
    let syntax = file("one\n{% if a %}\n", &Options::default()).unwrap_err().complaint().to_string();
    assert!(syntax.starts_with("templates/x.j2:2:1: syntax error"), "{syntax}");
    let inner = file("{{ bad }}\n", &Options::default()).unwrap_err().complaint().to_string();
    assert_eq!(inner, "v.yml:4:10: \"nope\" is undefined, needed by \"bad\"");
}

#[test]
fn template_files_include_import_and_extend_from_the_search_path() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("part.j2"), "part {{ a }} {{ q.r.s | default('none') }}\n").unwrap();
    std::fs::write(dir.path().join("macros.j2"), "{% macro m(x) %}<{{ x }}>{% endmacro %}").unwrap();
    std::fs::write(dir.path().join("base.j2"), "top {% block body %}{% endblock %} end\n").unwrap();
    let options = Options { search: vec![dir.path().into()], ..Options::default() };
    assert_eq!(file("{% include 'part.j2' %}", &options).unwrap(), "part 1 none");
    assert_eq!(file("{% import 'macros.j2' as m %}{{ m.m(a) }}", &options).unwrap(), "<1>");
    assert_eq!(file("{% from 'macros.j2' import m %}{{ m(2) }}", &options).unwrap(), "<2>");
    assert_eq!(file("{% extends 'base.j2' %}{% block body %}x{{ a }}{% endblock %}", &options).unwrap(), "top x1 end");
    assert_eq!(file("{% include 'nowhere.j2' ignore missing %}ok", &options).unwrap(), "ok");
    assert!(file("{% include 'nowhere.j2' %}", &options).unwrap_err().to_string().contains("nowhere.j2"));
}

#[test]
fn what_a_template_file_includes_is_in_the_search_path() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("templates");
    std::fs::create_dir_all(inner.join("sub")).unwrap();
    std::fs::write(dir.path().join("outside"), "OUTSIDE").unwrap();
    std::fs::write(inner.join("sub/part.j2"), "part").unwrap();
    let options = Options { search: vec![inner.clone()], ..Options::default() };
    assert_eq!(file("{% include 'sub/part.j2' %}", &options).unwrap(), "part");
    // Jinja reads it below the search path, too.
    assert_eq!(file("{% include '/sub/part.j2' %}", &options).unwrap(), "part");
    assert_eq!(file("{% include './sub//part.j2' %}", &options).unwrap(), "part");
    let outside = dir.path().join("outside").display().to_string();
    for name in ["../outside", "sub/../../outside", "/../outside", "sub/..", &*outside, "/etc/passwd"] {
        for text in [
            format!("{{% include '{name}' %}}"),
            format!("{{% include ['{name}'] %}}"),
            format!("{{% import '{name}' as m %}}{{{{ m }}}}"),
            format!("{{% from '{name}' import m %}}"),
            format!("{{% extends '{name}' %}}"),
            format!("{{% set name = '{name}' %}}{{% include name %}}"),
        ] {
            let reported = file(&text, &options).unwrap_err().to_string();
            assert!(!reported.contains("OUTSIDE") && reported.contains(name), "{text}: {reported}");
        }
    }
    assert_eq!(file("{% include '../outside' ignore missing %}ok", &options).unwrap(), "ok");
}

#[test]
fn a_view_renders_each_host_in_its_own_scope() {
    let host =
        Scope::default().with_layer(vars("h.yml", "name: h1\naddress: '{{ name }}.example'\nbad: '{{ nope }}'\n"));
    let mut vars = vars(
        "v.yml",
        "name: other\nit: \"{{ hostvars['h1'].address }} {{ ['h1'] | map('extract', hostvars, 'address') | join }}\"\n",
    );
    vars.insert("hostvars".into(), Value::from_pairs([("h1", Templar::view(&host))]));
    let value = Templar::new().render(&vars["it"].clone(), &Scope::default().with_layer(vars)).unwrap();
    assert_eq!(value.as_str(), Some("h1.example h1.example"));
}

#[test]
fn lookups_read_files_of_the_search_path_and_keep_passwords() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("files")).unwrap();
    std::fs::write(dir.path().join("files/a.txt"), "content\n").unwrap();
    std::fs::write(dir.path().join("files/a.ini"), "[s]\nk = v\n").unwrap();
    let mut scope = Scope::default();
    scope.search = Arc::new(vec![dir.path().into()]);
    scope.base = Arc::new(dir.path().into());
    let templar = Templar::new();
    let get = |text: &str| templar.expression_value(text, None, &scope).map(|value| value.to_string());
    assert_eq!(get("lookup('file', 'a.txt')").unwrap(), "content");
    assert_eq!(get("lookup('ini', 'k section=s file=a.ini')").unwrap(), "v");
    assert!(get("lookup('first_found', ['zz', 'files/a.txt'])").unwrap().ends_with("files/a.txt"));
    let of_task = |action: &str| templar.lookup("first_found", &Value::from(vec!["zz", "a.txt"]), action, &scope);
    assert!(of_task("copy").unwrap().to_string().contains("files/a.txt"));
    assert!(get("lookup('first_found', ['a.txt'])").is_err() && of_task("template").is_err());
    assert!(get("lookup('fileglob', 'a.*') is search('a.txt')").unwrap() == "True");
    let first = get("lookup('password', 'pw/x length=12')").unwrap();
    assert_eq!((first.len(), get("lookup('password', 'pw/x length=12')").unwrap()), (12, first));
    let digits = get("lookup('password', '/dev/null', length=9, chars=['digits', ','])").unwrap();
    assert!(digits.len() == 9 && digits.chars().all(|c| c.is_ascii_digit() || c == ','), "{digits}");
    assert!(get("lookup('file', 'nope.txt')").unwrap_err().contains_place("no such file: nope.txt"));
    assert_eq!(get("lookup('fiel', 'a')").unwrap_err().to_string(), "there is no lookup \"fiel\"");
    assert_eq!(get("lookup('file', 'nope.txt', errors='ignore') is none").unwrap(), "True");
    let items = templar.lookup("items", &Value::from(vec![1, 2]), "debug", &scope).unwrap();
    assert_eq!(items.to_string(), "[1, 2]");
}

#[test]
fn a_password_is_whole_or_not_there_and_the_same_for_all() {
    let directory = tempfile::tempdir().unwrap();
    let mut scope = Scope::default();
    scope.base = Arc::new(directory.path().into());
    let get = |text: &str| Templar::new().expression_value(text, None, &scope).map(|value| value.to_string());
    // As several runs at once, none of which finds the file.
    let found: Vec<String> = std::thread::scope(|threads| {
        let asks = || get("lookup('password', 'pw/x length=40')").unwrap();
        let all: Vec<_> = (0..8).map(|_| threads.spawn(asks)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(found[0].len() == 40 && found.iter().all(|one| *one == found[0]), "{found:?}");
    assert_eq!(std::fs::read_dir(directory.path().join("pw")).unwrap().count(), 1);
    // As a full disk left it.
    for content in ["", "\n", " salt=abc\n"] {
        std::fs::write(directory.path().join("empty"), content).unwrap();
        for call in ["lookup('password', 'empty')", "lookup('password', 'empty', encrypt='sha512_crypt')"] {
            let error = get(call).unwrap_err().to_string();
            assert!(error.contains("empty has no password in it: delete the file"), "{error}");
        }
    }
    let error = get("lookup('password', 'none length=0')").unwrap_err().to_string();
    assert!(error.contains("the length must be 1 to 10000"), "{error}");
    std::os::unix::fs::symlink("nowhere", directory.path().join("link")).unwrap();
    let error = get("lookup('password', 'link')").unwrap_err().to_string();
    assert!(error.contains("it is a link to a file that does not exist"), "{error}");
    let error = get("lookup('password', 'pw')").unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("Is a directory"), "{error}");
}

impl Error {
    fn contains_place(&self, text: &str) -> bool {
        self.to_string().contains(text)
    }
}

#[test]
fn two_runs_see_environments_of_their_own() {
    let seen = |name: &str| {
        let surroundings = crate::value::ProcessEnvironment {
            variables: [("WHO".to_owned(), name.to_owned())].into(),
            directory: format!("/work/{name}").into(),
            home: Some(format!("/home/{name}").into()),
            ..Default::default()
        };
        let text = "{{ lookup('env', 'WHO') }} {{ '~/x' | expanduser }} {{ '$WHO' | expandvars }} {{ 'y' | realpath }}";
        Templar::within(Arc::new(surroundings), false)
            .render_string(&Template::template_value(text, None), &Scope::default())
    };
    assert_eq!(seen("a").unwrap(), "a /home/a/x a /work/a/y");
    assert_eq!(seen("b").unwrap(), "b /home/b/x b /work/b/y");
}
