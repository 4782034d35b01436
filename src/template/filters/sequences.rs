//! Filters of whatever has items or lines, as Jinja has them.

use minijinja::{Error, ErrorKind, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, fits, iterate, kind, member, pairs, to_text};
use super::super::{operations, python};
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("batch", "A list in pieces of the given size.")
            .takes("size, fill_with=none")
            .gives("[1, 2, 3] | batch(2) | list", "[[1, 2], [3]]"),
        batch,
    ),
    (
        LanguageItem::new("dictsort", "A mapping as a list of pairs, sorted.")
            .takes("case_sensitive=false, by='key', reverse=false")
            .gives("{'b': 1, 'a': 2} | dictsort | map('first')", "['a', 'b']"),
        dictsort,
    ),
    (
        LanguageItem::new("indent", "A text with spaces before its lines; before the first one only with first=true.")
            .takes("width=4, first=false, blank=false")
            .example("'text' | indent(2, first=true)"),
        indent,
    ),
    (
        LanguageItem::new("last", "The last item of a list, or the last character of a text.")
            .gives("[3, 1] | last", "1"),
        |_, mut args| Ok(iterate(&args.req("seq")?)?.pop().unwrap_or_default()),
    ),
    (
        LanguageItem::new("reverse", "A list or text in reverse order.").gives("[1, 2] | reverse | list", "[2, 1]"),
        reverse,
    ),
    (
        LanguageItem::new("slice", "A list in the given number of pieces.")
            .takes("count, fill_with=none")
            .gives("[1, 2, 3] | slice(2) | list", "[[1, 2], [3]]"),
        slice,
    ),
    (
        LanguageItem::new("sum", "The sum of the numbers of a list.")
            .takes("attribute=none, start=0")
            .gives("[1, 2, 3] | sum", "6"),
        sum,
    ),
];

/// `batch(linecount, fill_with=None)`
fn batch(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let list = iterate(&args.req("value")?)?;
    let size = args.length("linecount")?.unwrap_or(0);
    let fill = args.opt("fill_with").filter(|fill| !fill.is_none());
    args.no_more_arguments()?;
    let (mut all, mut piece) = (Vec::new(), Vec::new());
    for item in list {
        if piece.len() == size {
            all.push(Value::from(std::mem::take(&mut piece)));
        }
        piece.push(item);
    }
    if let Some(fill) = fill
        && !piece.is_empty()
        && piece.len() < size
    {
        piece.resize(size, fill);
    }
    if !piece.is_empty() {
        all.push(Value::from(piece));
    }
    Ok(Value::from(all))
}

/// `dictsort(case_sensitive=False, by='key', reverse=False)`
fn dictsort(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let map = pairs(&args.req("value")?, "dictsort")?;
    let (case, by, reverse) =
        (args.flag_argument("case_sensitive"), args.text_or("by", "key"), args.flag_argument("reverse"));
    args.no_more_arguments()?;
    if !matches!(by.as_str(), "key" | "value") {
        return Err(fail("dictsort can sort by key or value"));
    }
    let keyed = |(key, value): (Value, Value)| {
        let by = if by == "key" { &key } else { &value };
        let by = match by.as_str() {
            Some(text) if !case => Value::from(text.to_lowercase()),
            _ => by.clone(),
        };
        (vec![by], Value::from((key, value)))
    };
    let mut keyed: Vec<_> = map.into_iter().map(keyed).collect();
    python::sort(&mut keyed, reverse)?;
    Ok(keyed.into_iter().map(|(_, pair)| pair).collect())
}

/// `indent(width=4, first=False, blank=False)`
fn indent(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("s")?;
    let Some(string) = value.as_str() else { return Err(fail(format!("indent needs text, this is {}", kind(&value)))) };
    let width = match args.opt("width") {
        Some(width) if width.as_str().is_some() => to_text(&width),
        Some(width) => " ".repeat(width.as_usize().filter(|width| *width <= 1_000_000).unwrap_or(0)),
        None => " ".repeat(4),
    };
    let (first, blank) = (args.flag_argument("first"), args.flag_argument("blank"));
    args.no_more_arguments()?;
    // The last newline begins a line that is empty.
    let whole = format!("{string}\n");
    fits(whole.lines().count().checked_mul(width.len()))?;
    let lines = python::python_lines(&whole, false).into_iter().enumerate().map(|(i, line)| {
        let indented = if i == 0 { first } else { blank || !line.is_empty() };
        format!("{}{line}", if indented { &width } else { "" })
    });
    Ok(Value::from(lines.collect::<Vec<_>>().join("\n")))
}

fn reverse(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("value")?;
    args.no_more_arguments()?;
    if let Some(text) = value.as_str() {
        return Ok(Value::from(text.chars().rev().collect::<String>()));
    }
    Ok(iterate(&value)?.into_iter().rev().collect())
}

/// `slice(slices, fill_with=None)`: the first pieces take what is left over; the others are filled up.
fn slice(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let list = iterate(&args.req("value")?)?;
    let count =
        args.length("slices")?.filter(|count| *count > 0).ok_or_else(|| fail("slice needs a number above 0"))?;
    let fill = args.opt("fill_with").filter(|fill| !fill.is_none());
    args.no_more_arguments()?;
    let (each, longer) = (list.len() / count, list.len() % count);
    let mut rest = list.into_iter();
    let piece = |at: usize| {
        let mut piece: Vec<Value> = rest.by_ref().take(each + usize::from(at < longer)).collect();
        piece.extend(fill.clone().filter(|_| at >= longer));
        Value::from(piece)
    };
    Ok(Value::from((0..count).map(piece).collect::<Vec<_>>()))
}

/// `sum(attribute=None, start=0)`
fn sum(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let list = iterate(&args.req("iterable")?)?;
    let path = args.opt("attribute").filter(|path| !path.is_none()).map(|path| to_text(&path));
    let start = args.opt("start").unwrap_or(Value::from(0));
    args.no_more_arguments()?;
    list.into_iter().try_fold(start, |sum, item| {
        let item = path.as_deref().map_or_else(|| item.clone(), |path| member(&item, path));
        if item.is_undefined() {
            return Err(Error::from(ErrorKind::UndefinedError));
        }
        operations::add_values(&sum, &item)
    })
}
