//! Functions of templates: `lookup`, `query`, `now`, `range` and the like.

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State};

use super::args::Args;
use super::conversions::{fail, to_text};
use super::filters::times;
use super::{lazy, lookups};
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// Adds a function to an environment.
type Add = fn(&mut Environment<'static>);

/// Every function and what is like one, sorted by name. `dict`, `namespace` and `range` are the engine's own.
pub(super) static FUNCTIONS: &[(LanguageItem, Add)] = &[
    (
        LanguageItem::new(
            "cycler",
            "An object whose method next() returns the values in turn, and starts over after the last one.",
        )
        .takes("values...")
        .example("cycler('odd', 'even')"),
        |env| {
            env.add_function("cycler", |Rest(items): Rest<Value>| Value::from_object(Cycler::new(items)));
        },
    ),
    (
        LanguageItem::new("dict", "A mapping of named arguments.")
            .takes("names=values...")
            .gives("dict(a=1)", "{'a': 1}"),
        |env| env.add_function("dict", dict),
    ),
    (
        LanguageItem::new(
            "joiner",
            "An object that returns an empty text on its first call, and its separator afterwards.",
        )
        .takes("separator=', '")
        .example("joiner('; ')"),
        |env| {
            env.add_function("joiner", |separator: Option<String>| Value::from_object(Joiner::new(separator)));
        },
    ),
    (
        LanguageItem::new("lipsum", "Random paragraphs of filler text, of min to max words.")
            .takes("n=5, html=true, min=20, max=100")
            .gives("lipsum(n=2, html=false).splitlines() | length", "3"),
        |env| env.add_function("lipsum", lipsum),
    ),
    (
        LanguageItem::new(
            "lookup",
            "Runs a lookup: returns a single result as it is, and joins several texts with commas. With \
             errors='ignore' or 'warn' a failure returns none.",
        )
        .takes("name, terms..., wantlist=false, errors='strict', options...")
        .gives("lookup('env', 'NO_SUCH_VARIABLE', default='x')", "x"),
        |env| {
            env.add_function("lookup", |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
                look_up(state, &args.into_values(), false)
            });
        },
    ),
    (
        LanguageItem::new("namespace", "An object whose members set can change, even inside loops and blocks.")
            .takes("names=values...")
            .gives("namespace(count=1).count", "1"),
        |_| {},
    ),
    (
        LanguageItem::new("now", "The time on the controller, with members such as year; with fmt, as text.")
            .takes("utc=false, fmt=none")
            .example("now(utc=true, fmt='%Y-%m-%d')"),
        |env| env.add_function("now", times::now),
    ),
    (
        LanguageItem::new("omit", "A value that omits the argument that it is given to.")
            .example("mode | default(omit)"),
        |env| {
            env.add_global("omit", super::omit());
        },
    ),
    (
        LanguageItem::new("q", "The short name of query.")
            .takes("name, terms..., options...")
            .gives("q('items', 1, 2)", "[1, 2]"),
        |env| {
            env.add_function("q", |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
                look_up(state, &args.into_values(), true)
            });
        },
    ),
    (
        LanguageItem::new("query", "Runs a lookup; the result is always a list, as loop needs it.")
            .takes("name, terms..., errors='strict', options...")
            .gives("query('items', 1, 2)", "[1, 2]"),
        |env| {
            env.add_function("query", |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
                look_up(state, &args.into_values(), true)
            });
        },
    ),
    (
        LanguageItem::new("range", "A sequence of whole numbers, without its end value.")
            .takes("start=0, end, step=1")
            .gives("range(1, 4) | list", "[1, 2, 3]"),
        |env| env.add_function("range", range),
    ),
    (
        LanguageItem::new("undef", "An undefined value, to mark a variable that the user has to set.")
            .takes("hint=none")
            .example("undef(hint='set it for every host')"),
        |env| env.add_function("undef", |_: Rest<ValueOrKwargs>| Value::UNDEFINED),
    ),
];

/// Adds all functions to an environment.
pub(super) fn add_functions(env: &mut Environment<'static>) {
    env.remove_global("debug");
    FUNCTIONS.iter().for_each(|(_, add)| add(env));
}

/// `dict(mapping_or_pairs, name=value...)`
fn dict(state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let Ok(mut args) = Args::new(state, &values.into_values())? else {
        return Err(Error::from(ErrorKind::UndefinedError));
    };
    let first = args.rest().into_iter().next();
    let mut all: indexmap::IndexMap<Value, Value> = match first {
        None => indexmap::IndexMap::new(),
        Some(map) if map.kind() == ValueKind::Map => super::conversions::pairs(&map, "dict")?.into_iter().collect(),
        Some(list) => {
            let pair = |pair: &Value| match super::conversions::iterate(pair)?.as_slice() {
                [key, value] => Ok((key.clone(), value.clone())),
                _ => Err(fail("dict needs pairs of a key and a value")),
            };
            super::conversions::iterate(&list)?.iter().map(pair).collect::<Result<_, Error>>()?
        }
    };
    all.extend(args.rest_named().into_iter().map(|(name, value)| (Value::from(name), value)));
    Ok(Value::from_pairs(all))
}

/// `lipsum(n=5, html=True, min=20, max=100)`
fn lipsum(state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    const MOST: i64 = 1_000_000;
    let Ok(mut args) = Args::new(state, &values.into_values())? else {
        return Err(Error::from(ErrorKind::UndefinedError));
    };
    let n = args.int("n")?.unwrap_or(5).max(0);
    let html = args.opt("html").is_none_or(|html| html.is_true());
    let (min, max) = (args.int("min")?.unwrap_or(20), args.int("max")?.unwrap_or(100));
    if min >= max || min < 0 || n.saturating_mul(max) > MOST {
        return Err(fail(format!("lipsum makes up to {MOST} words, and max must be above min")));
    }
    let given =
        [("n", Value::from(n)), ("html", Value::from(html)), ("min", Value::from(min)), ("max", Value::from(max))];
    let text = minijinja_contrib::globals::lipsum(state, None, given.into_iter().collect())?.to_string();
    let text = text.trim_end();
    // Paragraphs that have marks need no empty line between them.
    Ok(Value::from(if html { text.replace("\n\n", "\n") } else { text.to_owned() }))
}

/// `lookup('name', terms..., wantlist=, errors=, default=...)`.
fn look_up(state: &mut State<'_, '_>, values: &[Value], query: bool) -> Result<Value, Error> {
    let Ok(mut args) = Args::new(state, values)? else { return Err(Error::from(ErrorKind::UndefinedError)) };
    let name = args.text_argument("name")?;
    let want_list = args.named_argument("wantlist").is_some_and(|value| value.is_true()) || query;
    let errors = args.named_argument("errors").map_or_else(|| "strict".to_owned(), |value| to_text(&value));
    let terms = args.rest();
    let scope = lazy::scope_of(state);
    let found = match lookups::run_lookup(&name, terms, args.rest_named(), &scope) {
        Ok(found) => found,
        Err(error) if errors == "strict" => return Err(error.into_engine()),
        Err(error) => {
            if errors == "warn" {
                tracing::warn!("lookup {name}: {error}");
            }
            return Ok(if want_list { Value::from(Vec::<Value>::new()) } else { Value::from(()) });
        }
    };
    if want_list {
        return Ok(Value::from(found));
    }
    // As in Ansible: one result is itself, several strings are joined by commas.
    match found.len() {
        1 => Ok(found.into_iter().next().expect("there is one")),
        _ if found.iter().all(|value| value.kind() == ValueKind::String) => {
            Ok(Value::from(found.iter().map(to_text).collect::<Vec<_>>().join(",")))
        }
        _ => Ok(Value::from(found)),
    }
}

fn range(first: i64, stop: Option<i64>, step: Option<i64>) -> Result<Value, Error> {
    let (start, stop, step) = match stop {
        Some(stop) => (first, stop, step.unwrap_or(1)),
        None => (0, first, 1),
    };
    // Wider than the numbers themselves: their difference may be twice as large.
    let way = i128::from(stop) - i128::from(start);
    let count = match step {
        0 => return Err(fail("range needs a step that is not 0")),
        1.. => way.max(0).unsigned_abs().div_ceil(step.unsigned_abs().into()),
        _ => way.min(0).unsigned_abs().div_ceil(step.unsigned_abs().into()),
    };
    if count > 1_000_000 {
        return Err(fail("range of more than 1,000,000 numbers"));
    }
    // None of them is beyond `stop`.
    let mut numbers = Vec::new();
    for i in 0..i64::try_from(count).expect("it is at most 1,000,000") {
        numbers.push(Value::from(start + i * step));
    }
    Ok(Value::from(numbers))
}

/// Jinja's `cycler`: `next()`, `reset()`, `current`.
#[derive(Debug)]
struct Cycler {
    items: Vec<Value>,
    at: std::sync::atomic::AtomicUsize,
}

impl Cycler {
    fn new(items: Vec<Value>) -> Self {
        Cycler { items, at: 0.into() }
    }
}

impl minijinja::value::Object for Cycler {
    fn get_value(self: &std::sync::Arc<Self>, key: &Value) -> Option<Value> {
        let at = self.at.load(std::sync::atomic::Ordering::Relaxed);
        (key.as_str() == Some("current")).then(|| self.items.get(at % self.items.len().max(1)).cloned())?
    }

    fn call_method(
        self: &std::sync::Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        _: &[Value],
    ) -> Result<Value, Error> {
        use std::sync::atomic::Ordering::Relaxed;
        match method {
            "next" => {
                let at = self.at.fetch_add(1, Relaxed);
                self.items.get(at % self.items.len().max(1)).cloned().ok_or_else(|| fail("cycler without items"))
            }
            "reset" => {
                self.at.store(0, Relaxed);
                Ok(Value::from(()))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

/// Jinja's `joiner`: nothing at the first call, the separator at all others.
#[derive(Debug)]
struct Joiner {
    separator: String,
    used: std::sync::atomic::AtomicBool,
}

impl Joiner {
    fn new(separator: Option<String>) -> Self {
        Joiner { separator: separator.unwrap_or_else(|| ", ".into()), used: false.into() }
    }
}

impl minijinja::value::Object for Joiner {
    fn call(self: &std::sync::Arc<Self>, _: &mut State<'_, '_>, _: &[Value]) -> Result<Value, Error> {
        let used = self.used.swap(true, std::sync::atomic::Ordering::Relaxed);
        Ok(Value::from(if used { self.separator.as_str() } else { "" }))
    }
}
