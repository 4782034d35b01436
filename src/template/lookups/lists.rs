//! Lookups that make lists of their terms: what `with_items`, `with_dict`, `with_nested` and the like loop over.

use minijinja::value::ValueKind;
use rand::seq::IndexedRandom as _;

use super::super::conversions::{self, to_text};
use super::super::printf;
use super::{LookupCall, fail};
use crate::template::Error;
use crate::value::Value;

/// The largest number of results; more is a mistake.
const MANY: usize = 1_000_000;

fn listed(value: &Value) -> Vec<Value> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value.try_iter().into_iter().flatten().collect(),
        _ => vec![value.clone()],
    }
}

/// The terms, one level flattened.
pub(super) fn lookup_items(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    Ok(call.terms.iter().flat_map(listed).collect())
}

pub(super) fn lookup_list(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    Ok(std::mem::take(&mut call.terms))
}

/// Pairs of a position and an item.
pub(super) fn indexed_items(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let items = lookup_items(call)?.into_iter().enumerate();
    Ok(items.map(|(i, item)| Value::from(vec![Value::from(i), item])).collect())
}

/// A mapping as a list of `key` and `value`.
pub(super) fn dict(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let mut all = Vec::new();
    for term in &call.terms {
        let pairs =
            conversions::pairs(term, "dict").map_err(|error| fail(crate::template::engine_error_text(&error)))?;
        all.extend(pairs.into_iter().map(|(key, value)| Value::from_pairs([("key", key), ("value", value)])));
    }
    Ok(all)
}

/// Every combination of one item of each term.
pub(super) fn nested(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    for term in &call.terms {
        let items: Vec<Vec<Value>> = listed(term).iter().map(listed).collect();
        if rows.len().saturating_mul(items.len()) > MANY {
            return Err(fail("nested: more than 1,000,000 combinations"));
        }
        let with = |row: Vec<Value>| items.iter().map(move |item| [&row[..], item].concat()).collect::<Vec<_>>();
        rows = rows.into_iter().flat_map(with).collect();
    }
    Ok(rows.into_iter().map(Value::from).collect())
}

/// The first items of each term together, the second ones, and so on; None where a term has no more.
pub(super) fn together(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let lists: Vec<Vec<Value>> = call.terms.iter().map(listed).collect();
    let length = lists.iter().map(Vec::len).max().unwrap_or(0);
    let row = |i: usize| lists.iter().map(|list| list.get(i).cloned().unwrap_or(Value::from(()))).collect::<Vec<_>>();
    Ok((0..length).map(|i| Value::from(row(i))).collect())
}

/// Pairs of an item and each of its subelements: `[list, 'a.b', {skip_missing: true}]`.
pub(super) fn subelements(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let [list, path, rest @ ..] = call.terms.as_slice() else {
        return Err(fail("subelements needs a list and the name of a subelement"));
    };
    let skip = rest.first().is_some_and(|flags| flags.get_attr("skip_missing").is_ok_and(|skip| skip.is_true()));
    let items = match list.kind() {
        ValueKind::Map => {
            conversions::pairs(list, "subelements").unwrap_or_default().into_iter().map(|(_, value)| value).collect()
        }
        _ => listed(list),
    };
    let path = to_text(path);
    let mut all = Vec::new();
    for item in items {
        if item.get_attr("skipped").is_ok_and(|skipped| skipped.is_true()) {
            continue;
        }
        let found = conversions::member(&item, &path);
        if found.is_undefined() {
            if skip {
                continue;
            }
            return Err(fail(format!("could not find {path:?} key in iterated item {item}")));
        }
        all.extend(listed(&found).into_iter().map(|sub| Value::from(vec![item.clone(), sub])));
    }
    Ok(all)
}

pub(super) fn random_choice(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    Ok(call.terms.choose(&mut rand::rng()).cloned().into_iter().collect())
}

/// `start=1 end=10 stride=2 format=host%02d count=5`, or `1-10/2:host%02d`.
pub(super) fn sequence(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let mut all = Vec::new();
    let terms = if call.terms.is_empty() { vec![String::new()] } else { call.texts() };
    for term in terms {
        let mut steps = Steps { start: 1, end: None, count: None, stride: None, format: "%d".into() };
        for name in ["start", "end", "count", "stride", "format"] {
            if let Some(value) = call.option(name) {
                steps.set(name, &to_text(value))?;
            }
        }
        steps.parse_term(&term)?;
        steps.run(&mut all)?;
    }
    Ok(all)
}

struct Steps {
    start: i64,
    end: Option<i64>,
    count: Option<i64>,
    stride: Option<i64>,
    format: String,
}

impl Steps {
    fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let number = || {
            let (digits, base) =
                match (value.strip_prefix("0x"), value.strip_prefix('0').filter(|rest| !rest.is_empty())) {
                    (Some(hex), _) => (hex, 16),
                    (None, Some(octal)) => (octal, 8),
                    (None, None) => (value, 10),
                };
            i64::from_str_radix(digits, base).map_err(|_| fail(format!("sequence: invalid {name} {value:?}")))
        };
        match name {
            "start" => self.start = number()?,
            "end" => self.end = Some(number()?),
            "count" => self.count = Some(number()?),
            "stride" => self.stride = Some(number()?),
            "format" => self.format = value.to_owned(),
            _ => return Err(fail(format!("sequence: unknown option {name:?}"))),
        }
        Ok(())
    }

    fn parse_term(&mut self, term: &str) -> Result<(), Error> {
        if !term.contains('=') && !term.trim().is_empty() {
            let (range, format) = term.split_once(':').unwrap_or((term, ""));
            if !format.is_empty() {
                self.format = format.to_owned();
            }
            let (range, stride) = range.split_once('/').map_or((range, None), |(range, stride)| (range, Some(stride)));
            if let Some(stride) = stride {
                self.set("stride", stride)?;
            }
            match range.split_once('-') {
                Some((start, end)) => {
                    self.set("start", start)?;
                    return self.set("end", end);
                }
                None => return self.set("end", range),
            }
        }
        for word in shlex::split(term).unwrap_or_default() {
            let (name, value) =
                word.split_once('=').ok_or_else(|| fail(format!("sequence: invalid option {word:?}")))?;
            self.set(name, value)?;
        }
        Ok(())
    }

    fn run(&self, all: &mut Vec<Value>) -> Result<(), Error> {
        let wide = |number: Option<i64>| number.map(i128::from);
        // Wider than the numbers themselves, because intermediate results may exceed them.
        let (start, stride) = (i128::from(self.start), wide(self.stride).unwrap_or(1));
        let end = match (wide(self.end), wide(self.count)) {
            (Some(end), None) => end,
            (None, Some(0)) => return Ok(()),
            (None, Some(count)) => start + count * stride - stride.signum(),
            _ => return Err(fail("sequence needs either end or count")),
        };
        if stride == 0 {
            return Err(fail("sequence: the stride must not be 0"));
        }
        if stride > 0 && end < start {
            return Err(fail("use a negative stride to count backwards"));
        }
        if (end - start) / stride >= MANY as i128 {
            return Err(fail("sequence of more than 1,000,000 numbers"));
        }
        let (mut number, mut bytes) = (start, 0);
        while if stride > 0 { number <= end } else { number >= end } {
            let value = i64::try_from(number).map_or_else(|_| Value::from(number), Value::from);
            let text = printf::fill(&self.format, vec![value], false)
                .map_err(|_| fail(format!("sequence: invalid format {:?}", self.format)))?;
            bytes += text.len();
            conversions::fits(Some(bytes))
                .map_err(|error| fail(format!("sequence: {}", crate::template::engine_error_text(&error))))?;
            all.push(Value::from(text));
            number += stride;
        }
        Ok(())
    }
}
