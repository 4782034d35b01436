//! Filters of lists: flattening, pairing, ordering, picking.

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, fits, iterate, member, pairs, to_list, to_text, truthy};
use super::super::python;
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("combinations", "All combinations of n items of a list, without regard to their order.")
            .takes("n")
            .gives("[1, 2, 3] | combinations(2) | list", "[[1, 2], [1, 3], [2, 3]]"),
        combinations,
    ),
    (
        LanguageItem::new(
            "extract",
            "The member of a container with the given key, for map: keys | map('extract', container).",
        )
        .takes("container, morekeys=none")
        .gives("['a', 'b'] | map('extract', {'a': 1, 'b': 2})", "[1, 2]"),
        extract,
    ),
    (
        LanguageItem::new("flatten", "A list without nested lists, or with the given number of levels removed.")
            .takes("levels=none, skip_nulls=true")
            .gives("[1, [2, [3]]] | flatten", "[1, 2, 3]"),
        flatten,
    ),
    (
        LanguageItem::new("join", "The items of a list as one text, with a separator between them.")
            .takes("separator='', attribute=none")
            .gives("['a', 'b'] | join('-')", "a-b"),
        join,
    ),
    (
        LanguageItem::new("list", "A value as a list: the keys of a mapping, the characters of a text.")
            .gives("{'a': 1, 'b': 2} | list", "['a', 'b']"),
        |_, mut args| iterate(&args.req("value")?).map(Value::from),
    ),
    (
        LanguageItem::new("max", "The largest item of a list.")
            .takes("attribute=none, case_sensitive=false")
            .gives("[3, 1, 2] | max", "3"),
        max,
    ),
    (
        LanguageItem::new("min", "The smallest item of a list.")
            .takes("attribute=none, case_sensitive=false")
            .gives("[3, 1, 2] | min", "1"),
        min,
    ),
    (
        LanguageItem::new("permutations", "All permutations of n items of a list; without n, of all items.")
            .takes("n=none")
            .gives("[1, 2] | permutations | list", "[[1, 2], [2, 1]]"),
        permutations,
    ),
    (
        LanguageItem::new("product", "Every combination of one item of each list.")
            .takes("lists..., repeat=1")
            .gives("[1, 2] | product(['a']) | list", "[[1, 'a'], [2, 'a']]"),
        product,
    ),
    (
        LanguageItem::new("sort", "The items of a list, sorted by their value or by a member.")
            .takes("reverse=false, case_sensitive=false, attribute=none")
            .gives("[3, 1, 2] | sort(reverse=true)", "[3, 2, 1]"),
        sort,
    ),
    (
        LanguageItem::new("subelements", "Pairs of an item and each of the items of a list that is its member.")
            .takes("subelements, skip_missing=false")
            .gives("[{'n': 'a', 'k': [1, 2]}] | subelements('k') | map('last')", "[1, 2]"),
        subelements,
    ),
    (
        LanguageItem::new(
            "zip",
            "Combines the first items of several lists, the second ones, and so on, up to the end of the shortest.",
        )
        .takes("lists...")
        .gives("[1, 2] | zip(['a', 'b']) | list", "[[1, 'a'], [2, 'b']]"),
        zip,
    ),
    (
        LanguageItem::new("zip_longest", "The same as zip, up to the end of the longest list.")
            .takes("lists..., fillvalue=none")
            .gives("[1, 2] | zip_longest(['a'], fillvalue='-') | list", "[[1, 'a'], [2, '-']]"),
        zip_longest,
    ),
];

/// The largest number of results; more is a mistake.
const MANY: usize = 1_000_000;

/// Nor are more items in all of them together.
const MOST: usize = 10_000_000;

/// How many results of so many items each there may be.
fn most(width: usize) -> usize {
    MANY.min(MOST / width.max(1))
}

fn tuple(items: Vec<Value>) -> Value {
    Value::from(Tuple::new(items))
}

/// `flatten(levels=None, skip_nulls=True)`
pub(super) fn flatten(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = iterate(&args.req("mylist")?)?;
    let levels = args.int("levels")?;
    let skip_nulls = args.opt("skip_nulls").is_none_or(|skip| truthy(&skip));
    args.no_more_arguments()?;
    let mut flat = Vec::new();
    flatten_into(&mut flat, value, levels.unwrap_or(i64::MAX), skip_nulls);
    Ok(Value::from(flat))
}

fn flatten_into(flat: &mut Vec<Value>, value: Vec<Value>, levels: i64, skip_nulls: bool) {
    for item in value {
        if skip_nulls && (item.is_none() || matches!(item.as_str(), Some("None" | "null"))) {
            continue;
        }
        match item.kind() {
            ValueKind::Seq if levels > 0 => {
                flatten_into(flat, item.try_iter().into_iter().flatten().collect(), levels - 1, skip_nulls);
            }
            _ => flat.push(item),
        }
    }
}

/// `key | extract(container, morekeys)`
pub(super) fn extract(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (key, container) = (args.req("item")?, args.req("container")?);
    let more = args.opt("morekeys").filter(|more| !more.is_none());
    args.no_more_arguments()?;
    let more = match more {
        None => Vec::new(),
        Some(more) if more.kind() == ValueKind::Seq => iterate(&more)?,
        Some(more) => vec![more],
    };
    let mut value = container.get_item(&key)?;
    for key in &more {
        if value.is_undefined() {
            break;
        }
        value = value.get_item(key)?;
    }
    if value.is_undefined() {
        let name = std::iter::once(&key).chain(&more).map(to_text).collect::<Vec<_>>().join(".");
        return Err(super::super::Error::Undefined { name, origin: None }.into_engine());
    }
    Ok(value)
}

/// `subelements('a.b', skip_missing=False)`: pairs of an item and each of its subelements.
pub(super) fn subelements(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (value, key) = (args.req("obj")?, args.req("subelements")?);
    let skip = args.flag_argument("skip_missing");
    args.no_more_arguments()?;
    let value = match value.kind() {
        ValueKind::Map => pairs(&value, "subelements")?.into_iter().map(|(_, item)| item).collect(),
        _ => to_list(&value, "subelements")?,
    };
    let path = match key.kind() {
        ValueKind::Seq => iterate(&key)?.iter().map(to_text).collect::<Vec<_>>().join("."),
        _ => to_text(&key),
    };
    let mut result = Vec::new();
    for item in value {
        let found = member(&item, &path);
        if found.is_undefined() {
            if skip {
                continue;
            }
            return Err(fail(format!("could not find {path:?} key in iterated item {item}")));
        }
        for sub in to_list(&found, &format!("the key {path:?} of subelements"))? {
            result.push(tuple(vec![item.clone(), sub]));
        }
    }
    Ok(Value::from(result))
}

/// `a | zip(b, c...)`, as far as the shortest goes.
pub(super) fn zip(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let lists = args.rest().iter().map(iterate).collect::<Result<Vec<_>, Error>>()?;
    args.no_more_arguments()?;
    let length = lists.iter().map(Vec::len).min().unwrap_or(0);
    let row = |i: usize| tuple(lists.iter().map(|list| list[i].clone()).collect());
    Ok(Value::from((0..length).map(row).collect::<Vec<_>>()))
}

/// `a | zip_longest(b, c..., fillvalue=x)`
pub(super) fn zip_longest(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let fill = args.named_argument("fillvalue").unwrap_or(Value::from(()));
    let lists = args.rest().iter().map(iterate).collect::<Result<Vec<_>, Error>>()?;
    args.no_more_arguments()?;
    let length = lists.iter().map(Vec::len).max().unwrap_or(0);
    let row = |i: usize| tuple(lists.iter().map(|list| list.get(i).unwrap_or(&fill).clone()).collect());
    Ok(Value::from((0..length).map(row).collect::<Vec<_>>()))
}

/// `a | product(b, c..., repeat=1)`
pub(super) fn product(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let repeat = args.named_argument("repeat").map_or(Ok(1), |repeat| super::super::conversions::int(&repeat))?;
    let lists = args.rest().iter().map(iterate).collect::<Result<Vec<_>, Error>>()?;
    args.no_more_arguments()?;
    let repeat = usize::try_from(repeat).unwrap_or(0);
    let many = || fail(format!("product of more than {MANY} items"));
    let width = lists.len().checked_mul(repeat).filter(|width| *width <= MANY).ok_or_else(many)?;
    let columns: Vec<&Vec<Value>> = lists.iter().cycle().take(width).collect();
    let rows = match columns.iter().any(|list| list.is_empty()) {
        true => 0,
        false => columns.iter().try_fold(1usize, |rows, list| rows.checked_mul(list.len())).ok_or_else(many)?,
    };
    if rows > most(width) {
        return Err(many());
    }
    // The last list turns fastest.
    let row = |mut rest: usize| {
        let mut items = Vec::with_capacity(width);
        for list in columns.iter().rev() {
            items.push(list[rest % list.len()].clone());
            rest /= list.len();
        }
        items.reverse();
        tuple(items)
    };
    Ok(Value::from((0..rows).map(row).collect::<Vec<_>>()))
}

/// `combinations(n)`
pub(super) fn combinations(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = iterate(&args.req("value")?)?;
    let n = args.int("n")?.ok_or_else(|| fail("combinations needs a number"))?;
    args.no_more_arguments()?;
    choose(&value, n, false)
}

/// `permutations(n)`
pub(super) fn permutations(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = iterate(&args.req("value")?)?;
    let n = args.int("n")?.unwrap_or(value.len() as i64);
    args.no_more_arguments()?;
    choose(&value, n, true)
}

/// Every way to take `n` items, in Python's order.
fn choose(value: &[Value], n: i64, ordered: bool) -> Result<Value, Error> {
    let (n, length) = (usize::try_from(n).map_err(|_| fail("the number must not be negative"))?, value.len());
    let mut all = Vec::new();
    if n > length {
        return Ok(Value::from(all));
    }
    let mut places: Vec<usize> = (0..length).collect();
    // Of orders: how many turns each of the first n places has left.
    let mut turns: Vec<usize> = (0..n).map(|i| length - i).collect();
    loop {
        if all.len() == most(n) {
            return Err(fail(format!("more than {} combinations", most(n))));
        }
        all.push(tuple(places[..n].iter().map(|at| value[*at].clone()).collect()));
        let more = if ordered { next_order(&mut places, &mut turns) } else { next_choice(&mut places[..n], length) };
        if !more {
            return Ok(Value::from(all));
        }
    }
}

/// The next choice of so many places; false: it was the last.
fn next_choice(places: &mut [usize], of: usize) -> bool {
    let n = places.len();
    let Some(at) = (0..n).rev().find(|i| places[*i] != i + of - n) else { return false };
    let first = places[at] + 1;
    places[at..].iter_mut().zip(first..).for_each(|(place, next)| *place = next);
    true
}

/// The next order of the places whose turns are counted; false: it was the last.
fn next_order(places: &mut [usize], turns: &mut [usize]) -> bool {
    let length = places.len();
    for i in (0..turns.len()).rev() {
        turns[i] -= 1;
        if turns[i] > 0 {
            places.swap(i, length - turns[i]);
            return true;
        }
        places[i..].rotate_left(1);
        turns[i] = length - i;
    }
    false
}

/// `join(d='', attribute=None)`
pub(super) fn join(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = iterate(&args.req("value")?)?;
    let (separator, attribute) = (args.text_or("d", ""), args.opt("attribute").filter(|a| !a.is_none()));
    args.no_more_arguments()?;
    let path = attribute.map(|attribute| to_text(&attribute));
    let word = |item: &Value| match &path {
        None => Ok(to_text(item)),
        Some(path) => match member(item, path) {
            found if found.is_undefined() => Err(Error::from(ErrorKind::UndefinedError)),
            found => Ok(to_text(&found)),
        },
    };
    let words = value.iter().map(word).collect::<Result<Vec<_>, Error>>()?;
    fits(words.len().checked_mul(separator.len()))?;
    Ok(Value::from(words.join(&separator)))
}

/// `sort(reverse=False, case_sensitive=False, attribute=None)`
pub(super) fn sort(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = iterate(&args.req("value")?)?;
    let (reverse, case) = (args.flag_argument("reverse"), args.flag_argument("case_sensitive"));
    let attribute = args.opt("attribute").filter(|a| !a.is_none()).map(|a| to_text(&a));
    args.no_more_arguments()?;
    let mut keyed = Vec::with_capacity(value.len());
    for item in value {
        keyed.push((sort_keys(&item, attribute.as_deref(), case)?, item));
    }
    python::sort(&mut keyed, reverse)?;
    Ok(Value::from(keyed.into_iter().map(|(_, item)| item).collect::<Vec<_>>()))
}

/// What an item is ordered by: itself, or its members `a.b` and `c` for the attribute `a.b,c`.
fn sort_keys(item: &Value, attribute: Option<&str>, case: bool) -> Result<Vec<Value>, Error> {
    let plain = |value: Value| match value.as_str() {
        Some(text) if !case => Value::from(text.to_lowercase()),
        _ => value,
    };
    let Some(attribute) = attribute else { return Ok(vec![plain(item.clone())]) };
    attribute
        .split(',')
        .map(|path| match member(item, path) {
            found if found.is_undefined() => {
                Err(super::super::Error::Undefined { name: path.into(), origin: None }.into_engine())
            }
            found => Ok(plain(found)),
        })
        .collect()
}

/// `min(attribute=None)`
pub(super) fn min(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    extreme(args, std::cmp::Ordering::Less)
}

/// `max(attribute=None)`
pub(super) fn max(_: &mut State<'_, '_>, args: Args) -> Result<Value, Error> {
    extreme(args, std::cmp::Ordering::Greater)
}

fn extreme(mut args: Args, wanted: std::cmp::Ordering) -> Result<Value, Error> {
    let value = iterate(&args.req("value")?)?;
    let case = args.named_argument("case_sensitive").is_some_and(|case| truthy(&case));
    let attribute = args.named_argument("attribute").filter(|a| !a.is_none()).map(|a| to_text(&a));
    args.no_more_arguments()?;
    let sign = if wanted == std::cmp::Ordering::Less { "<" } else { ">" };
    let mut best: Option<(Vec<Value>, Value)> = None;
    for item in value {
        let key = sort_keys(&item, attribute.as_deref(), case)?;
        match &best {
            Some((top, _)) if python::order_keys(&key, top, sign)? != wanted => {}
            _ => best = Some((key, item)),
        }
    }
    best.map(|(_, item)| item).ok_or_else(|| fail("an empty list has no smallest and no largest item"))
}
