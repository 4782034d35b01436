//! JSON and YAML, in and out.

use minijinja::value::ValueKind;
use minijinja::{Error, State};
use serde::Serialize as _;

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, fits, pairs, to_text};
use super::super::render::value_to_text;
use crate::value::doc::LanguageItem;
use crate::value::{Value, yaml};

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("from_json", "Parses JSON text.").gives("('{\"a\": [1, 2]}' | from_json).a", "[1, 2]"),
        from_json,
    ),
    (
        LanguageItem::new("from_yaml", "Parses YAML text with one document.")
            .gives("('a: [1, 2]' | from_yaml).a", "[1, 2]"),
        from_yaml,
    ),
    (
        LanguageItem::new("from_yaml_all", "Parses YAML text and returns a list with the value of each document.")
            .gives("'a: 1' | from_yaml_all", "[{'a': 1}]"),
        from_yaml_all,
    ),
    (
        LanguageItem::new("json_query", "The result of a JMESPath query on a value.")
            .takes("expression")
            .gives("{'a': [{'n': 1}, {'n': 2}]} | json_query('a[*].n')", "[1, 2]"),
        json_query,
    ),
    (
        LanguageItem::new("to_json", "A value as JSON text.")
            .takes("indent=none, sort_keys=false, separators=none, ensure_ascii=true")
            .gives("{'b': 1, 'a': [true, none]} | to_json", "{\"b\": 1, \"a\": [true, null]}"),
        to_json,
    ),
    (
        LanguageItem::new("to_nice_json", "A value as indented JSON text with sorted names.")
            .takes("indent=4, sort_keys=true")
            .example("[1] | to_nice_json(indent=2)"),
        to_nice_json,
    ),
    (
        LanguageItem::new("to_nice_yaml", "A value as YAML text with one item on each line.")
            .takes("indent=4, width=80, sort_keys=true")
            .example("{'a': [1, 2]} | to_nice_yaml(indent=2)"),
        to_nice_yaml,
    ),
    (
        LanguageItem::new("to_yaml", "A value as YAML text; short lists and mappings stay on one line.")
            .takes("indent=2, width=80, sort_keys=true, default_flow_style=none")
            .gives("{'a': [1, 2]} | to_yaml | trim", "a: [1, 2]"),
        to_yaml,
    ),
];

/// `to_json(indent, sort_keys, separators, ensure_ascii...)`, as Python's `json.dumps` prints.
pub(super) fn to_json(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("a")?;
    let indent = args.named_length("indent")?;
    let sort = args.named_argument("sort_keys").is_some_and(|sort| sort.is_true());
    let ascii = args.named_argument("ensure_ascii").is_none_or(|ascii| ascii.is_true());
    dump(&value, indent, sort, ascii)
}

/// `to_nice_json(indent=4, sort_keys=True)`
pub(super) fn to_nice_json(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("a")?;
    let indent = args.named_length("indent")?.unwrap_or(4);
    let sort = args.named_argument("sort_keys").is_none_or(|sort| sort.is_true());
    let ascii = args.named_argument("ensure_ascii").is_none_or(|ascii| ascii.is_true());
    dump(&value, Some(indent), sort, ascii)
}

pub(super) fn dump(value: &Value, indent: Option<usize>, sort: bool, ascii: bool) -> Result<Value, Error> {
    let mut out = String::new();
    DumpOptions { indent, sort, ascii }.value(value, 0, &mut out)?;
    Ok(Value::from(out))
}

struct DumpOptions {
    indent: Option<usize>,
    sort: bool,
    ascii: bool,
}

impl DumpOptions {
    fn value(&self, value: &Value, level: usize, out: &mut String) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&number(value)),
            ValueKind::Map => self.map(value, level, out)?,
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.group(['[', ']'], level, out, items.len(), |i, out| self.value(&items[i], level + 1, out))?;
            }
            ValueKind::Undefined | ValueKind::Invalid => {
                return Err(fail("an undefined value cannot be converted to JSON"));
            }
            _ => self.string(&to_text(value), out),
        }
        Ok(())
    }

    fn map(&self, value: &Value, level: usize, out: &mut String) -> Result<(), Error> {
        let mut pairs = pairs(value, "to_json")?;
        if self.sort {
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
        }
        self.group(['{', '}'], level, out, pairs.len(), |i, out| {
            let (key, value) = &pairs[i];
            match key.kind() {
                ValueKind::String => self.string(&to_text(key), out),
                ValueKind::None => out.push_str("\"null\""),
                ValueKind::Bool => out.push_str(if key.is_true() { "\"true\"" } else { "\"false\"" }),
                _ => self.string(&to_text(key), out),
            }
            out.push_str(": ");
            self.value(value, level + 1, out)
        })
    }

    fn group(
        &self,
        [open, close]: [char; 2],
        level: usize,
        out: &mut String,
        count: usize,
        item: impl Fn(usize, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        out.push(open);
        for i in 0..count {
            match (self.indent, i) {
                (Some(indent), 0) => out.push_str(&format!("\n{}", " ".repeat(indent * (level + 1)))),
                (Some(indent), _) => out.push_str(&format!(",\n{}", " ".repeat(indent * (level + 1)))),
                (None, 0) => {}
                (None, _) => out.push_str(", "),
            }
            item(i, out)?;
            fits(Some(out.len()))?;
        }
        if let (Some(indent), 1..) = (self.indent, count) {
            out.push_str(&format!("\n{}", " ".repeat(indent * level)));
        }
        out.push(close);
        Ok(())
    }

    fn string(&self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if (c as u32) < 0x20 || self.ascii && !c.is_ascii() => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

fn number(value: &Value) -> String {
    match value_to_text(value).as_str() {
        "inf" => "Infinity".into(),
        "-inf" => "-Infinity".into(),
        "nan" => "NaN".into(),
        number => number.into(),
    }
}

pub(super) fn from_json(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("value")?;
    let Some(json) = value.as_str() else { return Ok(value) };
    let parsed: serde_json::Value = serde_json::from_str(json).map_err(|error| fail(format!("not JSON: {error}")))?;
    Ok(Value::from(minijinja::value::Serde(parsed)))
}

pub(super) fn from_yaml(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("value")?;
    let Some(text) = value.as_str() else { return Ok(value) };
    let mut documents = yaml::plain_values(text).map_err(|error| fail(error.to_string()))?;
    match documents.len() {
        0 => Ok(Value::from(())),
        1 => Ok(documents.remove(0)),
        _ => Err(fail("from_yaml: more than one document, use from_yaml_all")),
    }
}

pub(super) fn from_yaml_all(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let text = args.text_argument("value")?;
    yaml::plain_values(&text).map(Value::from).map_err(|error| fail(error.to_string()))
}

/// `to_yaml(indent=2, width=80, sort_keys=True, default_flow_style=None)`
pub(super) fn to_yaml(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    emit(args, 2, yaml::FlowStyle::Leaves)
}

/// `to_nice_yaml(indent=4)`
pub(super) fn to_nice_yaml(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    emit(args, 4, yaml::FlowStyle::Never)
}

fn emit(mut args: Args, indent: usize, flow: yaml::FlowStyle) -> Result<Value, Error> {
    let value = args.req("a")?;
    let number = |value: Option<Value>, default| value.and_then(|value| value.as_usize()).unwrap_or(default);
    let style = yaml::YamlStyle {
        indent: number(args.named_argument("indent"), indent),
        width: number(args.named_argument("width"), 80),
        sort_keys: args.named_argument("sort_keys").is_none_or(|sort| sort.is_true()),
        flow: match args.named_argument("default_flow_style") {
            Some(style) if style.is_none() => yaml::FlowStyle::Leaves,
            Some(style) if style.is_true() => yaml::FlowStyle::Always,
            Some(_) => yaml::FlowStyle::Never,
            None => flow,
        },
        explicit_start: args.named_argument("explicit_start").is_some_and(|start| start.is_true()),
    };
    Ok(Value::from(yaml::emit(&value, &style)))
}

/// `json_query('a[*].b')`: JMESPath.
pub(super) fn json_query(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (value, query) = (args.req("data")?, args.text_argument("expr")?);
    check_steps(&query)?;
    let compiled = jmespath::compile(&query)
        .map_err(|error| fail(format!("invalid JMESPath expression {query:?}: {}", first_line(&error))))?;
    let data = value.serialize(serde_json::value::Serializer).map_err(|error| fail(format!("json_query: {error}")))?;
    let data = jmespath::Variable::from_serializable(data).map_err(|error| fail(first_line(&error)))?;
    let found = compiled.search(data).map_err(|error| fail(format!("json_query: {}", first_line(&error))))?;
    let found = serde_json::to_value(&*found).map_err(|error| fail(error.to_string()))?;
    Ok(Value::from(minijinja::value::Serde(found)))
}

/// Refuses an expression whose nesting would overflow the stack. Quoted text does not count.
fn check_steps(query: &str) -> Result<(), Error> {
    const MOST: usize = 1_000;
    let (mut steps, mut quote, mut escaped) = (0, None, false);
    for c in query.chars() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '\'' | '"' | '`') => quote = Some(c),
            None => steps += usize::from("[({!&.|<>=".contains(c)),
        }
    }
    if steps > MOST { Err(fail(format!("more than {MOST} steps within one JMESPath expression"))) } else { Ok(()) }
}

fn first_line(error: &dyn std::fmt::Display) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
