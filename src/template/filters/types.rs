//! Filters that turn one kind of value into another, or choose between values.

use minijinja::value::ValueKind;
use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::to_text;
use super::super::{mutable, own, python, versions};
use crate::value::Value;
use crate::value::doc::LanguageItem;
use crate::value::truth;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("_mutable", "Used internally for set: a list or mapping that methods can change.")
            .example("[1]"),
        mutable,
    ),
    (
        LanguageItem::new("_own", "Used internally for the project's own filters.")
            .takes("name, args...")
            .example("[1]"),
        own::filter,
    ),
    (
        LanguageItem::new("bool", "Converts words such as yes, on, 1 and true to true or false.")
            .gives("'yes' | bool", "True"),
        bool,
    ),
    (
        LanguageItem::new("pprint", "A value as Python code, for debugging.")
            .gives("['a', none] | pprint", "['a', None]"),
        |_, mut args| Ok(Value::from(python::repr(&args.req("value")?))),
    ),
    (
        LanguageItem::new("ternary", "One value if the input is true, another if it is not.")
            .takes("true_value, false_value, none_value=none")
            .gives("true | ternary('on', 'off')", "on"),
        ternary,
    ),
    (
        LanguageItem::new("version", "Compares two versions; also available as a test.")
            .takes("version, operator='eq', strict=false, version_type=none")
            .gives("'3.5.16' | version('3.5.2', '>')", "True"),
        version_filter,
    ),
    (
        LanguageItem::new("version_compare", "The old name of version.")
            .takes("version, operator='eq', strict=false, version_type=none")
            .gives("'3.5.16' | version_compare('3.5.2', '>')", "True"),
        version_filter,
    ),
];

/// Makes a list or mapping one that methods can change.
pub(super) fn mutable(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    Ok(mutable::mutable(args.req("value")?))
}

/// A boolean of what people write for one.
pub(super) fn bool(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("value")?;
    args.no_more_arguments()?;
    // What is neither is false, as in Ansible.
    Ok(Value::from(boolean(&value).unwrap_or(false)))
}

/// What a value means as a boolean; None: neither.
pub(super) fn boolean(value: &Value) -> Option<bool> {
    match value.kind() {
        ValueKind::Bool => Some(value.is_true()),
        ValueKind::None => Some(false),
        ValueKind::Number => Some(value.as_i64() == Some(1)),
        _ => match &*to_text(value) {
            "" => Some(false),
            word => truth::of_exact_word(word),
        },
    }
}

/// `ternary(true_val, false_val, none_val=None)`
pub(super) fn ternary(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (value, yes, no) = (args.req("value")?, args.req("true_val")?, args.req("false_val")?);
    let none = args.opt("none_val").filter(|none| !none.is_none());
    args.no_more_arguments()?;
    Ok(match none {
        Some(none) if value.is_none() => none,
        _ if value.is_true() => yes,
        _ => no,
    })
}

/// `'1.2' | version('1.0', '>=')`
pub(super) fn version_filter(state: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    versions::version_test(state, args).map(Value::from)
}
