//! What the operators become where the engine differs from Python (`rewrite/operators.rs`).

use std::cmp::Ordering;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Rest, Tuple, ValueIter, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

use super::conversions::{fail, fits, iterate};
use super::{lazy, printf, python, time};
use crate::value::Value;

type Operation = fn(&Value, &Value) -> Result<Value, Error>;

/// Adds the operations to an environment, as filters whose names a person cannot mean.
pub(super) fn install(env: &mut Environment<'static>) {
    for (name, operation) in BINARY {
        env.add_filter(*name, |state: &mut State<'_, '_>, a: Value, b: Value| {
            operation(&settled(state, a)?, &settled(state, b)?)
        });
    }
    env.add_filter("_add", |state: &mut State<'_, '_>, a: Value, b: Value| add(state, a, b));
    env.add_filter("_in", |state: &mut State<'_, '_>, a: Value, b: Value| contains(state, a, &b).map(Value::from));
    env.add_filter("_not_in", |state: &mut State<'_, '_>, a: Value, b: Value| {
        contains(state, a, &b).map(|found| Value::from(!found))
    });
    env.add_filter("_chain", chain);
    env.add_filter("_neg", |state: &mut State<'_, '_>, a: Value| {
        let a = settled(state, a)?;
        match numbers(&a, &a) {
            Some(_) => mul(&a, &Value::from(-1)),
            None => Err(fail(format!("- is not defined for {}", python::type_name(&a)))),
        }
    });
    env.add_filter("_pos", |state: &mut State<'_, '_>, a: Value| match numbers(&settled(state, a.clone())?, &a) {
        Some(_) => Ok(python::to_number(&a)),
        None => Err(fail(format!("+ is not defined for {}", python::type_name(&a)))),
    });
    env.add_filter("_slice", |value: Value, Rest(bounds): Rest<Value>| slice(&value, &bounds));
    env.add_filter("_each", |value: Value| each(value));
}

const BINARY: &[(&str, Operation)] = &[
    ("_lt", |a, b| compare_values(a, "<", b).map(Value::from)),
    ("_le", |a, b| compare_values(a, "<=", b).map(Value::from)),
    ("_gt", |a, b| compare_values(a, ">", b).map(Value::from)),
    ("_ge", |a, b| compare_values(a, ">=", b).map(Value::from)),
    ("_sub", sub),
    ("_mul", mul),
    ("_div", div),
    ("_floordiv", floor_div),
    ("_mod", modulo),
    ("_pow", pow),
];

/// An operand, with nothing lazy in it.
fn settled(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        _ if lazy::needs_settling(&value) => {
            lazy::settle_argument(&value, &lazy::scope_of(state)).map_err(super::Error::into_engine)
        }
        _ => Ok(value),
    }
}

/// Whether `a SIGN b` holds, of settled values.
pub(super) fn compare_values(a: &Value, sign: &str, b: &Value) -> Result<bool, Error> {
    Ok(match (sign, python::order(a, b, sign)?) {
        (_, None) => false,
        ("<", Some(order)) => order == Ordering::Less,
        ("<=", Some(order)) => order != Ordering::Greater,
        (">", Some(order)) => order == Ordering::Greater,
        (_, Some(order)) => order != Ordering::Less,
    })
}

/// `a < b == c in d`: a value, then signs and values in turn.
fn chain(state: &mut State<'_, '_>, first: Value, Rest(rest): Rest<Value>) -> Result<bool, Error> {
    let mut left = first;
    for pair in rest.chunks(2) {
        let [sign, right] = pair else { return Err(fail("a comparison without a right side")) };
        let sign = sign.as_str().unwrap_or_default();
        let holds = match sign {
            "in" | "not in" => contains(state, left, right)? == (sign == "in"),
            "==" | "!=" => (settled(state, left)? == settled(state, right.clone())?) == (sign == "=="),
            _ => compare_values(&settled(state, left)?, sign, &settled(state, right.clone())?)?,
        };
        if !holds {
            return Ok(false);
        }
        left = right.clone();
    }
    Ok(true)
}

/// `item in container`
fn contains(state: &State<'_, '_>, item: Value, container: &Value) -> Result<bool, Error> {
    if container.is_undefined() || item.is_undefined() && container.len() != Some(0) {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    if item.is_undefined() {
        return match container.kind() {
            ValueKind::Seq => Ok(false),
            _ => Err(Error::from(ErrorKind::UndefinedError)),
        };
    }
    is_in(&settled(state, item)?, container)
}

/// Whether a settled value is in a list, a key of a mapping, or a part of a text.
pub(super) fn is_in(item: &Value, container: &Value) -> Result<bool, Error> {
    if let Some(text) = container.as_str() {
        let part = item.as_str().ok_or_else(|| {
            fail(format!("only text can be searched for in text, this is {}", super::conversions::kind(item)))
        })?;
        return Ok(text.contains(part));
    }
    match (container.kind(), container.as_object()) {
        (ValueKind::Map, Some(map)) => match item.kind() {
            ValueKind::Map => Err(fail("a mapping cannot be a key")),
            ValueKind::Seq | ValueKind::Iterable if !item.is_tuple() => Err(fail("a list cannot be a key")),
            _ => Ok(map.get_value(item).is_some()),
        },
        (ValueKind::Seq | ValueKind::Iterable, _) => {
            for other in container.try_iter()?.checked() {
                if other? == *item {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Err(fail(format!("nothing can be in {}", super::conversions::kind(container)))),
    }
}

/// Two numbers of one kind.
enum Numbers {
    Whole(i128, i128),
    Float(f64, f64),
}

fn numbers(a: &Value, b: &Value) -> Option<Numbers> {
    let is = |value: &Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool);
    if !is(a) || !is(b) {
        return None;
    }
    let (a, b) = (python::to_number(a), python::to_number(b));
    match (a.is_integer() && b.is_integer(), i128::try_from(a.clone()), i128::try_from(b.clone())) {
        (true, Ok(a), Ok(b)) => Some(Numbers::Whole(a, b)),
        _ => Some(Numbers::Float(f64::try_from(a).ok()?, f64::try_from(b).ok()?)),
    }
}

fn undefined_operation(a: &Value, sign: &str, b: &Value) -> Error {
    fail(format!("{sign} is not defined between {} and {}", python::type_name(a), python::type_name(b)))
}

fn whole(number: Option<i128>) -> Result<Value, Error> {
    let number = number.ok_or_else(|| fail("the resulting number is too large"))?;
    Ok(i64::try_from(number).map_or_else(|_| Value::from(number), Value::from))
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

/// `a + b`; the items of lists stay lazy.
fn add(state: &State<'_, '_>, a: Value, b: Value) -> Result<Value, Error> {
    if is_list(&a) && is_list(&b) && !a.is_tuple() && !b.is_tuple() {
        return Ok(Value::from_object(ListSum::new(&a, &b)));
    }
    let (a, b) = (settled(state, a)?, settled(state, b)?);
    match (a.as_str(), b.as_str()) {
        (Some(first), Some(second)) => Ok(Value::from([first, second].concat())),
        _ => add_values(&a, &b),
    }
}

/// Lists one after another. A sum of sums has the lists of both, so that `all = all + [one]` in a long loop does not nest.
#[derive(Debug)]
struct ListSum {
    lists: Vec<Value>,
    length: Option<usize>,
}

impl ListSum {
    fn new(a: &Value, b: &Value) -> Self {
        let mut lists = Vec::new();
        for list in [a, b] {
            match list.downcast_object_ref::<ListSum>() {
                Some(sum) => lists.extend_from_slice(&sum.lists),
                None => lists.push(list.clone()),
            }
        }
        ListSum { length: lists.iter().map(Value::len).sum(), lists }
    }
}

impl Object for ListSum {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Iter(Box::new(Items { sum: self.clone(), next: 0, items: None, left: self.length }))
    }
}

/// The items of a [`ListSum`].
struct Items {
    sum: Arc<ListSum>,
    /// The list after the one whose items are given.
    next: usize,
    items: Option<ValueIter>,
    left: Option<usize>,
}

impl Iterator for Items {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(item) = self.items.as_mut().and_then(Iterator::next) {
                self.left = self.left.map(|left| left.saturating_sub(1));
                return Some(item);
            }
            let list = self.sum.lists.get(self.next)?;
            self.next += 1;
            match list.try_iter() {
                Ok(items) => self.items = Some(items),
                Err(error) => return Some(Value::from(error)),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.unwrap_or(0), self.left)
    }
}

/// `a + b`, but for texts: what `sum` does.
pub(super) fn add_values(a: &Value, b: &Value) -> Result<Value, Error> {
    match numbers(a, b) {
        Some(Numbers::Whole(a, b)) => whole(a.checked_add(b)),
        Some(Numbers::Float(a, b)) => Ok(Value::from(a + b)),
        None if is_list(a) && is_list(b) && a.is_tuple() == b.is_tuple() => {
            Ok(like(a, [iterate(a)?, iterate(b)?].concat()))
        }
        None => Err(undefined_operation(a, "+", b)),
    }
}

fn sub(a: &Value, b: &Value) -> Result<Value, Error> {
    match numbers(a, b) {
        Some(Numbers::Whole(a, b)) => whole(a.checked_sub(b)),
        Some(Numbers::Float(a, b)) => Ok(Value::from(a - b)),
        None => time::difference(a, b).ok_or_else(|| undefined_operation(a, "-", b)),
    }
}

pub(super) fn mul(a: &Value, b: &Value) -> Result<Value, Error> {
    match numbers(a, b) {
        Some(Numbers::Whole(a, b)) => return whole(a.checked_mul(b)),
        Some(Numbers::Float(a, b)) => return Ok(Value::from(a * b)),
        None => {}
    }
    let count = |value: &Value| match value.kind() {
        ValueKind::Bool => Some(i64::from(value.is_true())),
        ValueKind::Number if value.is_integer() => value.as_i64(),
        _ => None,
    };
    let (repeated, times) = match (count(b), count(a)) {
        (Some(times), _) => (a, times),
        (None, Some(times)) => (b, times),
        (None, None) => return Err(undefined_operation(a, "*", b)),
    };
    let times = usize::try_from(times).unwrap_or(0);
    let fits = |length: usize| fits(length.checked_mul(times));
    match (repeated.as_str(), repeated.kind()) {
        (Some(text), _) => fits(text.len()).map(|()| Value::from(text.repeat(times))),
        (None, ValueKind::Seq | ValueKind::Iterable) => {
            let list = iterate(repeated)?;
            fits(list.len() * size_of::<Value>())?;
            let all = std::iter::repeat_n(list, times).flatten().collect();
            Ok(like(repeated, all))
        }
        _ => Err(undefined_operation(a, "*", b)),
    }
}

fn div(a: &Value, b: &Value) -> Result<Value, Error> {
    let (dividend, divisor) = match numbers(a, b) {
        Some(Numbers::Whole(a, b)) => (a as f64, b as f64),
        Some(Numbers::Float(a, b)) => (a, b),
        None => return Err(undefined_operation(a, "/", b)),
    };
    if divisor == 0.0 { Err(fail("division by zero")) } else { Ok(Value::from(dividend / divisor)) }
}

fn floor_div(a: &Value, b: &Value) -> Result<Value, Error> {
    match numbers(a, b) {
        Some(Numbers::Whole(_, 0) | Numbers::Float(_, 0.0)) => Err(fail("division by zero")),
        Some(Numbers::Whole(a, b)) => {
            whole(a.checked_div(b).map(|quotient| quotient - i128::from(a % b != 0 && (a < 0) != (b < 0))))
        }
        Some(Numbers::Float(a, b)) => {
            // The rest is exact, so that this quotient is whole but for its rounding.
            let quotient = (a - float_rest(a, b)) / b;
            Ok(Value::from(if quotient == 0.0 { 0f64.copysign(a / b) } else { quotient.round() }))
        }
        None => Err(undefined_operation(a, "//", b)),
    }
}

/// What remains of a floored division: it has the sign of the divisor.
fn float_rest(a: f64, b: f64) -> f64 {
    match a % b {
        0.0 => 0f64.copysign(b),
        rest if (rest < 0.0) != (b < 0.0) => rest + b,
        rest => rest,
    }
}

/// A list, or a tuple if the other is one.
fn like(other: &Value, list: Vec<Value>) -> Value {
    if other.is_tuple() { Value::from(Tuple::new(list)) } else { Value::from(list) }
}

fn modulo(a: &Value, b: &Value) -> Result<Value, Error> {
    if let Some(format) = a.as_str() {
        return printf::percent(format, b).map(Value::from);
    }
    match numbers(a, b) {
        Some(Numbers::Whole(_, 0)) => Err(fail("modulo by zero")),
        Some(Numbers::Float(_, 0.0)) => Err(fail("modulo by zero")),
        Some(Numbers::Whole(a, b)) => {
            whole(a.checked_rem(b).map(|rest| if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }))
        }
        Some(Numbers::Float(a, b)) => Ok(Value::from(float_rest(a, b))),
        None => Err(undefined_operation(a, "%", b)),
    }
}

fn pow(a: &Value, b: &Value) -> Result<Value, Error> {
    let float = |a: f64, b: f64| {
        if a == 0.0 && b < 0.0 {
            return Err(fail("zero to a power below zero"));
        }
        if a < 0.0 && b.fract() != 0.0 {
            return Err(fail("the result is not a real number"));
        }
        Ok(Value::from(a.powf(b)))
    };
    match numbers(a, b) {
        Some(Numbers::Whole(a, b)) if b >= 0 => whole(u32::try_from(b).ok().and_then(|b| a.checked_pow(b))),
        Some(Numbers::Whole(a, b)) => float(a as f64, b as f64),
        Some(Numbers::Float(a, b)) => float(a, b),
        None => Err(undefined_operation(a, "**", b)),
    }
}

/// `value[start:stop:step]`
fn slice(value: &Value, bounds: &[Value]) -> Result<Value, Error> {
    let bound = |i: usize| match bounds.get(i) {
        None => Ok(None),
        Some(bound) if bound.is_none() => Ok(None),
        Some(bound) if bound.is_undefined() => Err(Error::from(ErrorKind::UndefinedError)),
        Some(bound) => match python::to_number(bound) {
            number if number.is_integer() => Ok(number.as_i64()),
            _ => Err(fail("the bounds of a slice must be whole numbers")),
        },
    };
    let (start, stop, step) = (bound(0)?, bound(1)?, bound(2)?.unwrap_or(1));
    if step == 0 {
        return Err(fail("the step of a slice must not be 0"));
    }
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    if let Some(text) = value.as_str() {
        let chars: Vec<char> = text.chars().collect();
        return Ok(Value::from(places(chars.len(), start, stop, step).map(|at| chars[at]).collect::<String>()));
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            let list: Vec<Value> = value.try_iter()?.collect();
            Ok(like(value, places(list.len(), start, stop, step).map(|at| list[at].clone()).collect()))
        }
        _ => Err(fail(format!("{} cannot be sliced", super::conversions::kind(value)))),
    }
}

/// The places of a slice in something of that length.
fn places(length: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> impl Iterator<Item = usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let (least, most) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let within = |at: i64| if at < 0 { at.saturating_add(length) } else { at }.clamp(least, most);
    let first = start.map_or(if step > 0 { least } else { most }, within);
    let end = stop.map_or(if step > 0 { most } else { least }, within);
    std::iter::successors(Some(first), move |at| at.checked_add(step))
        .take_while(move |at| if step > 0 { *at < end } else { *at > end })
        .filter_map(|at| usize::try_from(at).ok())
}

/// What a loop goes over.
fn each(value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::None | ValueKind::Bool | ValueKind::Number => {
            Err(fail(format!("cannot loop over {}", super::conversions::kind(&value))))
        }
        // The engine does not know how long a text is, and so not which character is the last.
        ValueKind::String => iterate(&value).map(Value::from),
        _ => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use crate::template::{Error, Scope, Templar};

    fn printed(expression: &str) -> Result<String, Error> {
        Templar::new().expression_value(expression, None, &Scope::default()).map(|value| value.to_string())
    }

    #[test]
    fn a_quotient_is_that_of_python() {
        for (expression, expected) in [
            ("7 / 2", "3.5"),
            ("6 / 3", "2.0"),
            ("7 // 2", "3"),
            ("-7 // 2", "-4"),
            ("7 // -2", "-4"),
            ("-8 // 2", "-4"),
            ("7.5 // 2", "3.0"),
            ("-7.5 // 2", "-4.0"),
            ("1 // 0.1", "9.0"),
            ("true / 2", "0.5"),
        ] {
            assert_eq!(printed(expression).unwrap(), expected, "{expression}");
        }
        for expression in ["1 / 0", "1 // 0", "1.5 // 0", "'a' / 2", "[] // 2"] {
            assert!(printed(expression).is_err(), "{expression}");
        }
    }

    #[test]
    fn a_sum_joins_texts_and_lists_and_refuses_other_pairs() {
        assert_eq!(printed("'a' + 'b' + 'c'").unwrap(), "abc");
        assert_eq!(printed("([1] + [2] + [3])[-1]").unwrap(), "3");
        assert_eq!(printed("([1] + [2]) | length").unwrap(), "2");
        for expression in ["'a' + 1", "[1] + 1", "[1] + (1, 2)", "none + none"] {
            assert!(printed(expression).is_err(), "{expression}");
        }
    }

    #[test]
    fn a_sum_may_be_long_and_grow_in_a_long_loop() {
        assert_eq!(printed(&vec!["1"; 400].join(" + ")).unwrap(), "400");
        let loops = "{% set ns = namespace(l=[]) %}{% for i in range(3000) %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.l | sum }}";
        let text = crate::value::Template::template_value(loops, None);
        assert_eq!(Templar::new().render(&text, &Scope::default()).unwrap().to_string(), "4498500");
    }
}
