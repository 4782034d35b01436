//! Filters of mappings.

use indexmap::IndexMap;
use minijinja::value::ValueKind;
use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, iterate, kind, pairs, to_list, to_text};
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new(
            "combine",
            "Merges mappings; for equal keys the last one wins. With recursive, nested mappings are also merged.",
        )
        .takes("others..., recursive=false, list_merge='replace'")
        .gives("{'a': 1, 'b': 2} | combine({'b': 3})", "{'a': 1, 'b': 3}"),
        combine,
    ),
    (
        LanguageItem::new("dict2items", "A mapping as a list of mappings with key and value, for loops.")
            .takes("key_name='key', value_name='value'")
            .gives("{'a': 1} | dict2items", "[{'key': 'a', 'value': 1}]"),
        dict2items,
    ),
    (
        LanguageItem::new("items2dict", "The opposite of dict2items.")
            .takes("key_name='key', value_name='value'")
            .gives("[{'key': 'a', 'value': 1}] | items2dict", "{'a': 1}"),
        items2dict,
    ),
    (
        LanguageItem::new(
            "rekey_on_member",
            "A list of mappings as a mapping, with a member of each as key; duplicates can be overwrite.",
        )
        .takes("key, duplicates='error'")
        .gives("([{'n': 'a', 'p': 80}] | rekey_on_member('n')).a.p", "80"),
        rekey_on_member,
    ),
];

/// How `combine` treats two lists under one key.
#[derive(Clone, Copy)]
enum ListMerge {
    Replace,
    Keep,
    Append,
    Prepend,
    /// Append, and drop from the first what the second has.
    AppendRp,
    PrependRp,
}

/// `a | combine(b, c..., recursive=False, list_merge='replace')`
pub(super) fn combine(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let recursive = args.named_argument("recursive").is_some_and(|value| value.is_true());
    let list_merge = match args.named_argument("list_merge").map(|value| to_text(&value)).as_deref() {
        None | Some("replace") => ListMerge::Replace,
        Some("keep") => ListMerge::Keep,
        Some("append") => ListMerge::Append,
        Some("prepend") => ListMerge::Prepend,
        Some("append_rp") => ListMerge::AppendRp,
        Some("prepend_rp") => ListMerge::PrependRp,
        Some(other) => return Err(fail(format!("invalid list_merge {other:?}"))),
    };
    let mut maps = Vec::new();
    for value in args.rest() {
        // A list of mappings is replaced by its items.
        match value.kind() {
            ValueKind::Seq => maps.extend(iterate(&value)?),
            _ => maps.push(value),
        }
    }
    args.no_more_arguments()?;
    let mut result: IndexMap<Value, Value> = IndexMap::new();
    for map in &maps {
        if map.kind() != ValueKind::Map {
            return Err(fail(format!("combine needs mappings, this is {}", kind(map))));
        }
        merge(&mut result, map, recursive, list_merge)?;
    }
    Ok(Value::from_pairs(result))
}

fn merge(into: &mut IndexMap<Value, Value>, from: &Value, recursive: bool, list_merge: ListMerge) -> Result<(), Error> {
    for (key, value) in pairs(from, "combine")? {
        let Some(old) = into.get(&key) else {
            into.insert(key, value);
            continue;
        };
        let merged = match (old.kind(), value.kind()) {
            (ValueKind::Map, ValueKind::Map) if recursive => {
                let mut inner: IndexMap<Value, Value> = pairs(old, "combine")?.into_iter().collect();
                merge(&mut inner, &value, recursive, list_merge)?;
                Value::from_pairs(inner)
            }
            (ValueKind::Seq, ValueKind::Seq) => Value::from(merge_lists(&iterate(old)?, &iterate(&value)?, list_merge)),
            _ => value,
        };
        into.insert(key, merged);
    }
    Ok(())
}

fn merge_lists(old: &[Value], new: &[Value], how: ListMerge) -> Vec<Value> {
    let rest = || old.iter().filter(|item| !new.contains(item)).cloned().collect::<Vec<_>>();
    match how {
        ListMerge::Replace => new.to_vec(),
        ListMerge::Keep => old.to_vec(),
        ListMerge::Append => [old, new].concat(),
        ListMerge::Prepend => [new, old].concat(),
        ListMerge::AppendRp => [rest(), new.to_vec()].concat(),
        ListMerge::PrependRp => [new.to_vec(), rest()].concat(),
    }
}

/// `dict2items(key_name='key', value_name='value')`
pub(super) fn dict2items(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let map = pairs(&args.req("data")?, "dict2items")?;
    let (key_name, value_name) = (args.text_or("key_name", "key"), args.text_or("value_name", "value"));
    args.no_more_arguments()?;
    let item = |(key, value)| Value::from_pairs([(key_name.as_str(), key), (value_name.as_str(), value)]);
    Ok(Value::from(map.into_iter().map(item).collect::<Vec<_>>()))
}

/// `items2dict(key_name='key', value_name='value')`
pub(super) fn items2dict(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let list = to_list(&args.req("data")?, "items2dict")?;
    let (key_name, value_name) =
        (args.opt("key_name").unwrap_or(Value::from("key")), args.opt("value_name").unwrap_or(Value::from("value")));
    args.no_more_arguments()?;
    let mut map = IndexMap::new();
    for item in list {
        let member = |name: &Value| match item.get_item(name) {
            Ok(value) if !value.is_undefined() => Ok(value),
            _ => Err(fail(format!("items2dict needs {key_name:?} and {value_name:?} in every item, this is {item}"))),
        };
        map.insert(member(&key_name)?, member(&value_name)?);
    }
    Ok(Value::from_pairs(map))
}

/// `rekey_on_member('key', duplicates='error')`
pub(super) fn rekey_on_member(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (data, key) = (args.req("data")?, args.req("key")?);
    let overwrite = args.text_or("duplicates", "error") == "overwrite";
    args.no_more_arguments()?;
    let list = match data.kind() {
        ValueKind::Map => pairs(&data, "rekey_on_member")?.into_iter().map(|(_, value)| value).collect(),
        _ => to_list(&data, "rekey_on_member")?,
    };
    let mut map = IndexMap::new();
    for item in list {
        let found = item.get_item(&key).unwrap_or(Value::UNDEFINED);
        if found.is_undefined() {
            return Err(fail(format!("key {key} was not found in {item}")));
        }
        if map.insert(found.clone(), item).is_some() && !overwrite {
            return Err(fail(format!("key {found} is not unique, cannot rekey")));
        }
    }
    Ok(Value::from_pairs(map))
}
