//! Text for the files of services: units, environment files, configuration. Ansible has none of these.

use minijinja::value::ValueKind;
use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, kind, pairs, to_text};
use crate::value::doc::LanguageItem;
use crate::value::{Value, unit_file};

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new(
            "environment_quote",
            "A text as the value of a variable in an EnvironmentFile of systemd; a control character is an error.",
        )
        .gives("'say \"hi\"' | environment_quote", r#""say \"hi\"""#),
        environment_quote,
    ),
    (
        LanguageItem::new(
            "plain_word",
            "A text that needs no quoting in a shell, a unit or a configuration file: letters, digits and _.:/@+,=[]-; \
             anything else is an error.",
        )
        .gives("'/var/lib/etcd' | plain_word", "/var/lib/etcd"),
        plain_word,
    ),
    (
        LanguageItem::new(
            "systemd_limits",
            "A mapping of limits as lines of a unit; a directive that is not a service limit is an error.",
        )
        .gives("{'MemoryMax': '2G'} | systemd_limits", "MemoryMax=2G"),
        systemd_limits,
    ),
    (
        LanguageItem::new(
            "systemd_quote",
            "A text as one argument of a program in an Exec line of a unit; a control character is an error.",
        )
        .gives("'100% of $HOME' | systemd_quote", "\"100%% of $$HOME\""),
        systemd_quote,
    ),
    (
        LanguageItem::new(
            "systemd_value",
            "A text as the value of a directive that uses the whole line; a control character is an error.",
        )
        .gives("'100% done' | systemd_value", "100%% done"),
        systemd_value,
    ),
];

/// The text of a value; a list or a mapping is an error.
fn only(args: &mut Args) -> Result<String, Error> {
    let value = args.req("value")?;
    match value.kind() {
        ValueKind::String | ValueKind::Number => Ok(to_text(&value)),
        ValueKind::Bool => Ok(to_text(&value).to_lowercase()),
        _ => Err(fail(format!("a expected text, this is {}", kind(&value)))),
    }
}

pub(super) fn environment_quote(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = only(&mut args)?;
    args.no_more_arguments()?;
    unit_file::environment_value(&value).map(Value::from).map_err(fail)
}

pub(super) fn plain_word(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = only(&mut args)?;
    args.no_more_arguments()?;
    unit_file::plain_word(&value).map(Value::from).map_err(fail)
}

pub(super) fn systemd_limits(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("value")?;
    args.no_more_arguments()?;
    let mut limits = pairs(&value, "systemd_limits")?;
    limits.sort_by_key(|(name, _)| to_text(name));
    let line = |(name, value): &(Value, Value)| unit_file::limit(&to_text(name), &to_text(value)).map_err(fail);
    let lines = limits.iter().map(line).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::from(lines.join("\n")))
}

pub(super) fn systemd_quote(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = only(&mut args)?;
    args.no_more_arguments()?;
    unit_file::exec_argument(&value).map(Value::from).map_err(fail)
}

pub(super) fn systemd_value(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = only(&mut args)?;
    args.no_more_arguments()?;
    unit_file::unit_value(&value).map(Value::from).map_err(fail)
}
