//! Text for HTML and XML.

use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, pairs, to_text};
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("e", "A text with the special characters of HTML as entities.")
            .gives("'a < b' | e", "a &lt; b"),
        escape,
    ),
    (
        LanguageItem::new("escape", "A text with the special characters of HTML as entities.")
            .gives("'a < b' | escape", "a &lt; b"),
        escape,
    ),
    (
        LanguageItem::new(
            "forceescape",
            "A text with the special characters of HTML as entities, even if it has been escaped already.",
        )
        .gives("'a < b' | forceescape", "a &lt; b"),
        |_, mut args| args.text_argument("s").map(|text| Value::from_safe_string(entities(&text))),
    ),
    (
        LanguageItem::new("striptags", "The text of HTML without tags, comments and entities, with single spaces.")
            .gives("'<b>a</b> &amp; b' | striptags", "a & b"),
        striptags,
    ),
    (
        LanguageItem::new(
            "tojson",
            "A value as JSON that is safe in HTML: names sorted, < and similar characters as escapes.",
        )
        .takes("indent=none")
        .gives("[1, 'a'] | tojson", "[1, \"a\"]"),
        tojson,
    ),
    (
        LanguageItem::new("xmlattr", "A mapping as attributes of an XML element, without those whose value is none.")
            .takes("autospace=true")
            .gives("{'id': 'a'} | xmlattr | trim", "id=\"a\""),
        xmlattr,
    ),
];

/// The special characters of HTML as entities.
pub(super) fn entities(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('\'', "&#39;").replace('"', "&#34;")
}

/// Escaped text, and text that is marked as safe, is returned unchanged.
pub(super) fn escape(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("s")?;
    args.no_more_arguments()?;
    if value.is_safe() {
        return Ok(value);
    }
    Ok(Value::from_safe_string(entities(&to_text(&value))))
}

pub(super) fn striptags(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let html = args.text_argument("value")?;
    args.no_more_arguments()?;
    let (mut plain, mut rest) = (String::new(), html.as_str());
    while let Some(at) = rest.find('<') {
        let tag = &rest[at..];
        let end = match tag.starts_with("<!--") {
            true => tag.get(4..).and_then(|tag| tag.find("-->")).map(|end| end + 7),
            false => tag.find('>').map(|end| end + 1),
        };
        let Some(end) = end else { break };
        plain.push_str(&rest[..at]);
        rest = &tag[end..];
    }
    plain.push_str(rest);
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&apos;", "'"),
        ("&nbsp;", "\u{a0}"),
    ];
    let plain = named.iter().fold(plain, |plain, (entity, character)| plain.replace(entity, character));
    Ok(Value::from(plain.replace("&amp;", "&")))
}

/// `tojson(indent=None)`
pub(super) fn tojson(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("value")?;
    let indent = args.length("indent")?;
    args.no_more_arguments()?;
    let json = to_text(&super::formats::dump(&value, indent, true, true)?);
    let json = json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    Ok(Value::from_safe_string(json.replace('\'', "\\u0027")))
}

/// `xmlattr(autospace=True)`
pub(super) fn xmlattr(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let attributes = pairs(&args.req("d")?, "xmlattr")?;
    let blank = args.opt("autospace").is_none_or(|blank| blank.is_true());
    args.no_more_arguments()?;
    let mut all = Vec::new();
    for (name, value) in attributes.iter().filter(|(_, value)| !value.is_none()) {
        let name = to_text(name);
        if name.contains(|c: char| c.is_whitespace() || "/>=".contains(c)) {
            return Err(fail(format!("invalid attribute name {name:?}")));
        }
        all.push(format!("{}=\"{}\"", entities(&name), entities(&to_text(value))));
    }
    let all = all.join(" ");
    Ok(Value::from(if blank && !all.is_empty() { format!(" {all}") } else { all }))
}
