//! The generated pages of the reference are what the program and the roles say: modules, options, fields of custom
//! resources, variables of roles. `UPDATE_DOCS=1 cargo test --test reference` writes them.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_yaml::Value;
use windlass::modules::MODULES;
use windlass::value::doc::{Argument, Doc};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a page with what it should be, or writes it.
fn compare(page: &str, right: &str) {
    let path = repository().join("docs/reference").join(page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, right).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == right, "{} is outdated: UPDATE_DOCS=1 cargo test --test reference", path.display());
}

fn windlass(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.env_clear().env("HOME", "/nonexistent").env("COLUMNS", "100").args(arguments);
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

fn row(out: &mut String, cells: &[&str]) {
    let clean = |cell: &&str| cell.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ");
    writeln!(out, "| {} |", cells.iter().map(clean).collect::<Vec<_>>().join(" | ")).expect("a String takes any text");
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", text.trim()) }
}

/// A sentence: with a full stop and, unless it begins with the name of something, a capital letter. `<NAME>` and `*` stay
/// text.
fn sentence(text: &str) -> String {
    let text = text.trim().replace('<', "&lt;").replace('*', "\\*");
    let word: String = text.chars().take_while(|letter| !letter.is_whitespace() && *letter != ',').collect();
    let named = ["etcd", "windlass", "haproxy", "karmada"].contains(&word.as_str());
    let plain = !named && word.bytes().all(|letter| letter.is_ascii_lowercase());
    let (first, rest) = text.split_at(usize::from(plain).min(text.len()));
    let end = if text.is_empty() || text.ends_with(['.', '?', ':']) { "" } else { "." };
    format!("{}{rest}{end}", first.to_uppercase())
}

#[test]
fn modules() {
    let mut out = "\
# Modules

`windlass doc NAME` shows the same on the command line. A task names a module by its short name (`copy`) or its full name
(`ansible.builtin.copy`).
"
    .to_owned();
    for entry in MODULES {
        module(&mut out, entry.doc);
    }
    compare("modules.md", &out);
}

fn module(out: &mut String, doc: &Doc) {
    write!(out, "\n## {}\n\n`{}.{}`: {}\n", doc.name, doc.collection, doc.name, sentence(doc.summary))
        .expect("a String takes any text");
    if !doc.arguments.is_empty() {
        out.push_str("\n| argument | type | default | meaning |\n|---|---|---|---|\n");
        doc.arguments.iter().for_each(|argument| argument_row(out, argument));
    }
    write!(out, "\n```yaml\n{}\n```\n", doc.example.trim_end()).expect("a String takes any text");
    if !doc.returns.is_empty() {
        out.push_str("\n| result | meaning |\n|---|---|\n");
        doc.returns.iter().for_each(|result| row(out, &[&code(result.name), &sentence(result.summary)]));
    }
}

fn argument_row(out: &mut String, argument: &Argument) {
    let mut meaning = sentence(argument.summary);
    if !argument.choices.is_empty() {
        let choices: Vec<String> = argument.choices.iter().map(|choice| code(choice)).collect();
        write!(meaning, " One of {}.", choices.join(", ")).expect("a String takes any text");
    }
    if !argument.aliases.is_empty() {
        let aliases: Vec<String> = argument.aliases.iter().map(|alias| code(alias)).collect();
        write!(meaning, " Also {}.", aliases.join(", ")).expect("a String takes any text");
    }
    let default = if argument.required { "required".to_owned() } else { code(argument.default.unwrap_or_default()) };
    row(out, &[&code(argument.name), &argument.kind.kind_text(), &default, &meaning]);
}

#[test]
fn options() {
    let mut out = "\
# Command-line options

The help of every command. [Commands and exit codes](commands.md) is an overview.
"
    .to_owned();
    let mut wanted = vec![Vec::<String>::new()];
    while let Some(path) = wanted.pop() {
        let arguments: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = windlass(&arguments);
        let name = [&["windlass".to_owned()], path.as_slice()].concat().join(" ");
        write!(out, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end()).expect("a String takes any text");
        let below = commands(&help).into_iter().rev().map(|command| [path.as_slice(), &[command]].concat());
        wanted.extend(below);
    }
    assert!(out.contains("\n## windlass vault create\n"), "no commands of commands");
    compare("options.md", &out);
}

/// The commands that a help lists.
fn commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).filter(|name| name != "help").collect()
}

#[test]
fn fields() {
    let mut out = "\
# Fields of custom resources

The schema of the custom resources, from `windlass crd`. [Custom resources](custom-resource.md) explains how to use them. `[]`
means every element of a list, `{}` for every name in a mapping.
"
    .to_owned();
    for definition in windlass(&["crd"]).split("---\n").filter(|text| !text.trim().is_empty()) {
        let definition: Value = serde_yaml::from_str(definition).unwrap();
        let spec = &definition["spec"];
        let schema = &spec["versions"][0]["schema"]["openAPIV3Schema"];
        let version = spec["versions"][0]["name"].as_str().unwrap();
        let kind = spec["names"]["kind"].as_str().unwrap();
        let about = sentence(schema["description"].as_str().unwrap_or_default());
        let group = spec["group"].as_str().unwrap();
        write!(out, "\n## {kind}\n\n`apiVersion: {group}/{version}`. {about}\n").expect("a String takes any text");
        out.push_str("\n| field | type | default | meaning |\n|---|---|---|---|\n");
        field_rows(&mut out, "spec", &schema["properties"]["spec"]);
    }
    compare("fields.md", &out);
}

fn field_rows(out: &mut String, path: &str, schema: &Value) {
    let required: Vec<&str> =
        schema["required"].as_sequence().into_iter().flatten().filter_map(Value::as_str).collect();
    if let Some(properties) = schema["properties"].as_mapping() {
        for (name, field) in properties {
            let name = name.as_str().unwrap();
            let path = format!("{path}.{name}");
            field_row(out, &path, field, required.contains(&name));
            field_rows(out, &path, field);
        }
    }
    for (mark, below) in [("[]", &schema["items"]), ("{}", &schema["additionalProperties"])] {
        if below.is_mapping() {
            field_rows(out, &format!("{path}{mark}"), below);
        }
    }
}

fn field_row(out: &mut String, path: &str, schema: &Value, required: bool) {
    let default = match &schema["default"] {
        Value::Null if required => "required".to_owned(),
        Value::Null => String::new(),
        other => code(&value(other)),
    };
    let mut meaning = sentence(schema["description"].as_str().unwrap_or_default());
    if let Some(choices) = schema["enum"].as_sequence() {
        let choices: Vec<String> = choices.iter().filter(|one| !one.is_null()).map(|one| code(&value(one))).collect();
        write!(meaning, " One of {}.", choices.join(", ")).expect("a String takes any text");
    }
    for rule in schema["x-kubernetes-validations"].as_sequence().into_iter().flatten() {
        if let Some(message) = rule["message"].as_str() {
            write!(meaning, " Rule: {}.", message.trim_end_matches('.')).expect("a String takes any text");
        }
    }
    row(out, &[&code(path), &kind(schema), &default, &meaning]);
}

fn kind(schema: &Value) -> String {
    let name = schema["type"].as_str().unwrap_or("any");
    match name {
        "array" => format!("list of {}", kind(&schema["items"])),
        "object" if schema["additionalProperties"].is_mapping() => {
            format!("mapping of {}", kind(&schema["additionalProperties"]))
        }
        "object" => "mapping".to_owned(),
        other => other.to_owned(),
    }
}

/// A value on one line.
fn value(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.clone(),
        other => serde_json::to_string(other).unwrap(),
    }
}

fn yaml(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn role_variables() {
    let mut out = "\
# Variables of roles

The variables of every role, from its `meta/argument_specs.yml` and `defaults/main.yml`. The `README.md` of a role says what it
does. A default with `{{ }}` is a template.
"
    .to_owned();
    let mut roles: Vec<PathBuf> =
        std::fs::read_dir(repository().join("roles")).unwrap().map(|entry| entry.unwrap().path()).collect();
    roles.sort();
    for role in roles {
        let name = role.file_name().unwrap().to_string_lossy().into_owned();
        let specs = yaml(&role.join("meta/argument_specs.yml"));
        let defaults = yaml(&role.join("defaults/main.yml"));
        let main = &specs["argument_specs"]["main"];
        // A role without tasks has no arguments.
        let about = yaml(&role.join("meta/main.yml"))["galaxy_info"]["description"].clone();
        let about = main["short_description"].as_str().or(about.as_str()).unwrap_or_default();
        write!(out, "\n## {name}\n\n{}\n", sentence(about)).expect("a String takes any text");
        let Some(options) = main["options"].as_mapping().filter(|options| !options.is_empty()) else { continue };
        out.push_str("\n| variable | type | default | meaning |\n|---|---|---|---|\n");
        let mut rows: Vec<(String, &Value)> = Vec::new();
        for (variable, spec) in options {
            let variable = variable.as_str().unwrap();
            rows.push((variable.to_owned(), spec));
            let keys = spec["options"].as_mapping().into_iter().flatten();
            rows.extend(keys.map(|(key, spec)| (format!("{variable}.{}", key.as_str().unwrap()), spec)));
        }
        for (variable, spec) in rows {
            let mut meaning = sentence(spec["description"].as_str().unwrap_or_default());
            if let Some(choices) = spec["choices"].as_sequence() {
                let choices: Vec<String> = choices.iter().map(|one| code(&value(one))).collect();
                write!(meaning, " One of {}.", choices.join(", ")).expect("a String takes any text");
            }
            let kind = spec["type"].as_str().unwrap_or("any");
            let required = spec["required"].as_bool().unwrap_or_default();
            let default = if required {
                "required".to_owned()
            } else {
                code(&value(defaults.get(&variable).unwrap_or(&spec["default"])))
            };
            row(&mut out, &[&code(&variable), kind, &default, &meaning]);
        }
    }
    compare("roles.md", &out);
}

#[test]
fn api() {
    let document: serde_json::Value = serde_json::from_str(&windlass(&["serve", "openapi"])).unwrap();
    let mut out = "\
# The API of windlass serve

[Use the API and the page](../how-to/serve.md) shows how. `windlass serve openapi` and `/api/v1/openapi.json` give all of this as OpenAPI
3.1 ([openapi.json](openapi.json)).

A program sends its token in the header `Authorization: Bearer TOKEN`; the page has the cookie `windlass_session`, or with TLS
`__Host-windlass_session`, and the header `Windlass-Key`. Rights are an object such as `{\"prod\": [\"see\", \"plan\"]}`, with `*` for all
deployments. Ids of runs are given in full.

A change needs the header `Content-Type: application/json`. An answer that is no success is a [problem](#problem). Lists come in parts:
as long as `next` is not null, its value as `after` gives the next part. Times are RFC 3339, in UTC.

## Paths
"
    .to_owned();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            api_operation(&mut out, &format!("{} {path}", method.to_uppercase()), operation);
        }
    }
    out.push_str("\n## Objects\n");
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        api_object(&mut out, name, schema);
    }
    assert!(out.contains("\n### POST /api/v1/tokens\n") && out.contains("\n### Problem\n"), "{out}");
    compare("api.md", &out);
}

fn api_operation(out: &mut String, name: &str, operation: &serde_json::Value) {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let summary = sentence(&text(&operation["summary"]));
    write!(out, "\n### {name}\n\n{summary} {}\n", text(&operation["description"])).unwrap();
    let query = operation["parameters"].as_array().into_iter().flatten().filter(|parameter| parameter["in"] == "query");
    let query: Vec<&serde_json::Value> = query.collect();
    if !query.is_empty() {
        out.push_str("\n| parameter | meaning |\n|---|---|\n");
        for parameter in query {
            row(out, &[&code(&text(&parameter["name"])), &sentence(&text(&parameter["description"]))]);
        }
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        write!(out, "\nBody: {}.\n", schema_text(body)).unwrap();
    }
    let (status, answer) = operation["responses"].as_object().unwrap().iter().next().unwrap();
    let kinds = answer["content"].as_object().into_iter().flatten().map(|(kind, content)| match kind.as_str() {
        "application/json" => schema_text(&content["schema"]),
        kind => code(kind),
    });
    let kinds: Vec<String> = kinds.collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(", {}", kinds.join(" or ")) };
    write!(out, "\nAnswer: {status}{kinds}.\n").unwrap();
}

fn api_object(out: &mut String, name: &str, schema: &serde_json::Value) {
    let summary = schema["description"].as_str().map(sentence).unwrap_or_default();
    write!(out, "\n### {name}\n\n{summary}\n").unwrap();
    let choices = ["oneOf", "anyOf"].iter().filter_map(|kind| schema[kind].as_array()).flatten();
    for choice in choices {
        if let Some(value) = choice["const"].as_str() {
            let meaning = choice["description"].as_str().map(sentence).unwrap_or_default();
            write!(out, "\n- {}: {meaning}", code(value)).unwrap();
            continue;
        }
        if let Some(values) = choice["enum"].as_array() {
            values
                .iter()
                .filter_map(|value| value.as_str())
                .for_each(|value| write!(out, "\n- {}", code(value)).unwrap());
            continue;
        }
        let summary = choice["description"].as_str().map(sentence).unwrap_or_default();
        write!(out, "\n{summary}\n").unwrap();
        api_fields(out, choice);
    }
    if schema["oneOf"].as_array().is_some_and(|choices| choices.iter().any(|choice| choice["const"].is_string())) {
        out.push('\n');
    }
    api_fields(out, schema);
}

fn api_fields(out: &mut String, schema: &serde_json::Value) {
    let Some(fields) = schema["properties"].as_object() else { return };
    out.push_str("\n| field | type | meaning |\n|---|---|---|\n");
    for (name, field) in fields {
        let meaning = field["description"].as_str().map(sentence).unwrap_or_default();
        row(out, &[&code(name), &schema_text(field), &meaning]);
    }
}

/// A schema in a few words, with links to objects.
fn schema_text(schema: &serde_json::Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(value) = schema["const"].as_str() {
        return code(value);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().map(schema_text).collect::<Vec<_>>().join(" or ");
    }
    let kinds = match &schema["type"] {
        serde_json::Value::String(kind) => vec![kind.clone()],
        serde_json::Value::Array(kinds) => kinds.iter().filter_map(|kind| kind.as_str().map(str::to_owned)).collect(),
        _ => return "any value".to_owned(),
    };
    let with_items = kinds.into_iter().map(|kind| match kind.as_str() {
        "array" => format!("list of {}", schema_text(&schema["items"])),
        "object" if !schema["additionalProperties"].is_null() => {
            format!("object with values of {}", schema_text(&schema["additionalProperties"]))
        }
        _ => kind,
    });
    with_items.collect::<Vec<_>>().join(" or ")
}
