//! JSON as TOML: tables below each other, what is no table first; TOML has no null, which is left out.

use serde_json::{Map, Value as Json};

/// The document of an object.
pub(super) fn written(object: &Map<String, Json>) -> String {
    let mut text = String::new();
    table(object, &mut Vec::new(), &mut text);
    text
}

fn table(object: &Map<String, Json>, path: &mut Vec<String>, text: &mut String) {
    let nested = |value: &&Json| matches!(value, Json::Object(inner) if !inner.is_empty());
    let plain = object.iter().filter(|(_, value)| !nested(value) && !value.is_null());
    let own: String = plain.map(|(name, value)| format!("{} = {}\n", key(name), inline(value))).collect();
    // A table that contains only tables needs no separate line.
    if !path.is_empty() && (!own.is_empty() || object.is_empty()) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("[{}]\n", path.join(".")));
    }
    text.push_str(&own);
    for (name, value) in object.iter().filter(|(_, value)| nested(value)) {
        if let Json::Object(inner) = value {
            path.push(key(name));
            table(inner, path, text);
            path.pop();
        }
    }
}

fn inline(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().filter(|item| !item.is_null()).map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(entries) => {
            let pairs = entries.iter().filter(|(_, value)| !value.is_null());
            let pairs: Vec<String> = pairs.map(|(name, value)| format!("{} = {}", key(name), inline(value))).collect();
            if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
        }
        Json::String(text) => quoted(text),
        scalar => scalar.to_string(),
    }
}

fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
}

/// JSON's escapes are TOML's; only DEL must be written out there.
fn quoted(text: &str) -> String {
    Json::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tables_stand_below_each_other_and_their_values_first() {
        let object = json!({"all": {"children": ["web"], "vars": {"a b": 1, "none": null, "deep": {"x": [1, {"y": true}]}}},
            "web": {"hosts": {"h1": {}, "h\"2": {"a": "\n"}}}});
        let expected = "[all]\nchildren = [\"web\"]\n\n[all.vars]\n\"a b\" = 1\n\n[all.vars.deep]\nx = [1, { y = true }]\n\
                        \n[web.hosts]\nh1 = {}\n\n[web.hosts.\"h\\\"2\"]\na = \"\\n\"\n";
        assert_eq!(written(object.as_object().unwrap()), expected);
    }
}
