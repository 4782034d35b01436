//! What YAML means to us, and what we say of what it cannot mean.

use std::sync::Arc;

use super::*;

fn source(text: &str) -> Arc<Source> {
    Arc::new(Source::new("play.yml", text))
}

fn one(text: &str) -> Node {
    parse_yaml(&source(text)).unwrap().remove(0)
}

fn json(text: &str) -> String {
    serde_json::to_string(&one(text).to_value(&Keyring::default()).unwrap()).unwrap()
}

fn complaint(text: &str) -> Diagnostic {
    parse_yaml(&source(text)).unwrap_err()
}

#[test]
fn plain_scalars_have_the_types_that_pyyaml_gives_them() {
    let cases = [
        ("yes", "true"),
        ("No", "false"),
        ("on", "true"),
        ("OFF", "false"),
        ("y", "\"y\""),
        ("n", "\"n\""),
        ("~", "null"),
        ("null", "null"),
        ("", "null"),
        ("Null", "null"),
        ("nULL", "\"nULL\""),
        ("0644", "420"),
        ("08", "\"08\""),
        ("0o644", "\"0o644\""),
        ("0x1F", "31"),
        ("0b101", "5"),
        ("1_000", "1000"),
        ("1:30", "90"),
        ("12:34:56", "45296"),
        ("1:30.5", "90.5"),
        ("-1:30", "-90"),
        ("1:99", "\"1:99\""),
        ("1e3", "\"1e3\""),
        ("1.0e+3", "1000.0"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("1.", "1.0"),
        ("-12", "-12"),
        ("+12", "12"),
        ("-.5", "\"-.5\""),
        ("1.2.3", "\"1.2.3\""),
        ("2024-01-02", "\"2024-01-02\""),
        ("NO", "false"),
        ("9223372036854775808", "9223372036854775808"),
        ("!!str 12", "\"12\""),
        ("!!int \"12\"", "12"),
        ("'yes'", "\"yes\""),
        ("\"12\"", "\"12\""),
        ("!!binary aGk=", "\"hi\""),
    ];
    for (text, expected) in cases {
        assert_eq!(json(&format!("a: {text}\n")), format!("{{\"a\":{expected}}}"), "{text}");
    }
}

#[test]
fn every_key_and_value_knows_its_place() {
    let node = one("a: 1\nlist:\n  - x: {y: 2}\n");
    let NodeKind::Map(pairs) = &node.kind else { panic!("a mapping") };
    assert_eq!(format!("{:?} {:?}", pairs[0].0.origin, pairs[0].1.origin), "play.yml:1:1 play.yml:1:4");
    let item = match &node.get("list").unwrap().kind {
        NodeKind::Seq(items) => items[0].get("x").unwrap().get("y").unwrap(),
        _ => panic!("a list"),
    };
    assert_eq!(item.origin.to_string(), "play.yml:3:12");
}

#[test]
fn merge_keys_give_way_to_written_ones_and_earlier_lists_win() {
    let text = "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz:\n  <<: [*x, *y]\n  c: 3\n  d: 4\n";
    let node = one(text);
    let z = node.get("z").unwrap().to_value(&Keyring::default()).unwrap();
    assert_eq!(serde_json::to_string(&z).unwrap(), r#"{"b":1,"c":3,"a":1,"d":4}"#);
}

#[test]
fn of_two_equal_keys_the_last_counts_and_both_lines_are_named() {
    let mut warnings = Vec::new();
    let nodes = parse_with(&source("a: 1\nb: 2\na: 3\n"), &mut warnings).unwrap();
    assert!(matches!(nodes[0].get("a").unwrap().kind, NodeKind::Int(3)));
    assert_eq!(warnings[0].to_string(), "play.yml:3:1: the key \"a\" is given twice, first in line 1");
}

#[test]
fn an_unquoted_template_is_named_as_what_it_is() {
    for text in ["a: {{ x }}\n", "a:\n  - {{ x }}\n", "a: {{ x }}/y\n"] {
        let complaint = complaint(text);
        assert_eq!(complaint.hint.as_deref(), Some("quote the template: \"{{ ... }}\""), "{text}: {complaint}");
    }
    assert_eq!(complaint("a: {{ x }}\n").to_string(), "play.yml:1:4: a value that begins with {{ must be quoted");
}

#[test]
fn tabs_and_stray_colons_are_explained() {
    let tab = complaint("a:\n\tb: 1\n");
    assert_eq!(tab.to_string(), "play.yml:2:1: a tab is used for indentation");
    assert_eq!(complaint("a: b: c\n").hint.as_deref(), Some("a value that contains \": \" must be quoted"));
    assert_eq!(complaint("a: \"b\" c\n").hint.as_deref(), Some("the quotes must span the whole value"));
}

#[test]
fn only_strings_with_marks_become_templates_and_never_unsafe_ones() {
    let vars = one("a: '{{ x }}'\nb: plain\nc: !unsafe '{{ x }}'\nd: [!unsafe {e: '{{ x }}'}]\n");
    let vars = vars.to_vars(&Keyring::default()).unwrap();
    assert!(vars["a"].downcast_object_ref::<Template>().is_some());
    assert_eq!(vars["b"].as_str(), Some("plain"));
    assert_eq!(vars["c"].as_str(), Some("{{ x }}"));
    assert_eq!(vars["d"].to_string(), "[{'e': '{{ x }}'}]");
}

#[test]
fn nesting_has_an_end() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let too_deep = "more than 200 nested lists and mappings";
    assert_eq!(one(&nested(200)).what(), "a list");
    assert!(complaint(&nested(202)).to_string().ends_with(too_deep));
    assert!(complaint(&nested(3000)).to_string().ends_with(too_deep));
}

#[test]
fn unknown_tags_and_keys_that_are_lists_are_refused() {
    assert_eq!(complaint("a: !foo x\n").to_string(), "play.yml:1:4: unknown tag !foo");
    assert_eq!(complaint("[1, 2]: x\n").to_string(), "play.yml:1:1: a list must not be a key");
}

#[test]
fn aliases_cannot_fill_the_memory() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let alias = format!("*a{}, ", i - 1).repeat(9);
        text.push_str(&format!("a{i}: &a{i} [{alias}x]\n"));
    }
    assert!(complaint(&text).message.contains("too large"));
}

#[test]
fn anchors_inside_anchors_cannot_fill_the_memory() {
    let many = "x, ".repeat(10_000);
    let opening: String = (0..100).map(|i| format!("&a{i} [")).collect();
    let text = format!("a: {opening}{many}x{}\n", "]".repeat(100));
    assert!(complaint(&text).message.contains("too large"));
}

#[test]
fn an_inline_vault_without_a_password_says_where_and_what_to_do() {
    let node = one("a: 1\nsecret: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  3030\n");
    let complaint = node.to_vars(&Keyring::default()).unwrap_err();
    assert!(complaint.to_string().starts_with("play.yml:2:"), "{complaint}");
    assert!(complaint.hint.unwrap().contains("--vault-password-file"));
}

#[test]
fn a_file_of_two_documents_is_refused_and_an_empty_one_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.yml");
    std::fs::write(&path, "---\na: 1\n---\nb: 2\n").unwrap();
    assert!(
        load_yaml(&path, &Keyring::default(), &Duplicates::default())
            .unwrap_err()
            .to_string()
            .contains("x.yml:4:1: expected one document, and a second one")
    );
    std::fs::write(&path, "---\n# nothing\n").unwrap();
    assert!(load_yaml(&path, &Keyring::default(), &Duplicates::default()).unwrap().is_none());
}

#[test]
fn a_whole_vault_file_is_read_and_its_plain_text_shown_by_no_message() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secrets.yml");
    let keyring = Keyring::new(vec![("default".into(), crate::value::Secret::new("p"))]);
    std::fs::write(&path, vault::encrypt(b"a: {b: 1}\nc: hush\n", &keyring.passwords[0].1, None)).unwrap();
    let node = load_yaml(&path, &keyring, &Duplicates::default()).unwrap().unwrap();
    assert_eq!(node.get("c").unwrap().as_str(), Some("hush"));
    assert_eq!(node.get("c").unwrap().origin.line_text(), "");
    let complaint = load_yaml(&path, &Keyring::default(), &Duplicates::default()).unwrap_err();
    assert!(complaint.to_string().ends_with("secrets.yml:1:1: cannot decrypt: no vault password was given"));
}

#[test]
fn of_an_encrypted_file_every_number_and_what_is_around_templates_is_hidden() {
    let keyring = Keyring::new(vec![("default".into(), crate::value::Secret::new("p"))]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secrets.yml");
    let text = b"url: 'postgres://u:S3cretPart@{{ host }}/x'\npin: 1234567\nrate: 12345.75\n";
    std::fs::write(&path, vault::encrypt(text, &keyring.passwords[0].1, None)).unwrap();
    load_yaml(&path, &keyring, &Duplicates::default()).unwrap();
    assert_eq!(keyring.hidden.hide("at postgres://u:S3cretPart@h1/x 1234567 12345.75"), "at ***h1/x *** ***");
}

#[test]
fn lines_within_quotes_and_brackets_begin_anywhere_as_for_pyyaml() {
    assert_eq!(json("a: \"x\n\ty\"\nb: 'it\n\t  is'\n"), r#"{"a":"x y","b":"it is"}"#);
    assert_eq!(json("---\n- a: \"x\n  y\"\n  b: [\n  1,\n\t2\n  ]\n"), r#"[{"a":"x y","b":[1,2]}]"#);
    let node = one("- a: {b: 'x\n\ty', c: 1}\n");
    let NodeKind::Seq(items) = &node.kind else { panic!("{node:?}") };
    let moved = items[0].get("a").unwrap().get("c").unwrap();
    assert_eq!((moved.origin.line, moved.origin.column), (2, 9));
    assert_eq!(complaint("a: 'x\n\ty'\n\tb: 1\n").message, "a tab is used for indentation");
}

#[test]
fn a_text_at_the_end_of_a_file_without_a_newline_has_none() {
    for (text, expected) in [
        ("a: |\n  x", "x"),
        ("a: |\n  x\n", "x\n"),
        ("a: >\n  x\n  y", "x y"),
        ("a: |+\n  x", "x"),
        ("a: |-\n  x", "x"),
        ("a: |\n  x\n ", "x\n"),
        ("a: |\n  x\n# end", "x\n"),
    ] {
        assert_eq!(one(text).get("a").unwrap().as_str(), Some(expected), "{text:?}");
    }
}
