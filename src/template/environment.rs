//! The template engine with Ansible's manners: strict about undefined, Python's printing, all filters and tests.

use minijinja::value::{Rest, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior};

use super::args::Args;
use super::{
    COLLECTIONS, engine, filters, functions, is_omit, jinja_tests, lazy, macro_arguments, methods, operations, render,
};
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// An environment without templates.
pub(super) fn new() -> Environment<'static> {
    let mut env = Environment::new();
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_syntax(engine::syntax());
    env.set_formatter(put_out);
    env.set_unknown_method_callback(methods::call);
    for (word, filter) in filters::all_filters() {
        let filter = *filter;
        add_filter(&mut env, word.name, move |state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>| match Args::new(
            state,
            &values.into_values(),
        )? {
            Ok(args) => filter(state, args),
            Err(undefined) => Ok(undefined),
        });
    }
    for (word, filter) in filters::ENGINE_FILTERS {
        let filter = filter();
        add_filter(&mut env, word.name, move |state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>| {
            filters::call_engine_filter(&filter, state, &values.into_values())
        });
    }
    for (word, filter) in filters::of_undefined::FILTERS {
        add_filter(&mut env, word.name, *filter);
    }
    for (word, test) in jinja_tests::TESTS {
        let test = *test;
        add_test(&mut env, word.name, move |state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>| {
            match Args::new(state, &values.into_values())? {
                Ok(args) => test(state, args),
                Err(_) => Err(Error::from(ErrorKind::UndefinedError)),
            }
        });
    }
    for sign in ["<", "<=", ">", ">="] {
        // As `select('>', 1)` names them.
        add_test(&mut env, sign, move |state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>| {
            match Args::new(state, &values.into_values())? {
                Ok(args) => jinja_tests::ordered(args, sign),
                Err(_) => Err(Error::from(ErrorKind::UndefinedError)),
            }
        });
    }
    for (word, test) in jinja_tests::of_undefined::TESTS {
        add_test(&mut env, word.name, *test);
    }
    operations::install(&mut env);
    macro_arguments::install(&mut env);
    functions::add_functions(&mut env);
    env
}

fn add_filter<F, Rv, A>(env: &mut Environment<'static>, name: &'static str, filter: F)
where
    F: minijinja::functions::Function<Rv, A> + Clone,
    Rv: minijinja::value::FunctionResult,
    A: for<'a> minijinja::value::FunctionArgs<'a>,
{
    for collection in COLLECTIONS {
        env.add_filter(format!("{collection}{name}"), filter.clone());
    }
    env.add_filter(name, filter);
}

fn add_test<F, Rv, A>(env: &mut Environment<'static>, name: &'static str, test: F)
where
    F: minijinja::functions::Function<Rv, A> + Clone,
    Rv: minijinja::value::FunctionResult,
    A: for<'a> minijinja::value::FunctionArgs<'a>,
{
    for collection in COLLECTIONS {
        env.add_test(format!("{collection}{name}"), test.clone());
    }
    env.add_test(name, test);
}

/// Writes a value into the output.
fn put_out(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    if value.is_undefined() {
        // The engine has refused real undefined ones; this is `'a' if false` without an else.
        render::put_out(&Value::from(""));
        return Ok(());
    }
    // Most values are no objects, and numbers are mostly integers: nothing is allocated for these.
    if value.as_object().is_none() || is_omit(value) {
        return write(out, value);
    }
    write(out, &lazy::settle(value, &lazy::scope_of(state)).map_err(super::Error::into_engine)?)
}

/// Writes a settled value into the output.
fn write(out: &mut Output<'_>, value: &Value) -> Result<(), Error> {
    render::put_out(value);
    if let Some(text) = value.as_str() {
        return Ok(out.write_str(text)?);
    }
    // Asking anything but a number for one costs more than all the rest here.
    match value.is_integer().then(|| value.as_i64()).flatten() {
        Some(number) => out.write_str(itoa::Buffer::new().format(number))?,
        None => out.write_str(&render::value_to_text(value))?,
    }
    Ok(())
}

/// All filters, sorted by name.
pub fn filter_words() -> Vec<&'static LanguageItem> {
    let own = filters::all_filters().map(|(word, _)| word);
    let of_undefined = filters::of_undefined::FILTERS.iter().map(|(word, _)| word);
    let engine = filters::ENGINE_FILTERS.iter().map(|(word, _)| word);
    // What our rewriting of templates adds is no word of the language.
    let mut words: Vec<_> = own.chain(of_undefined).chain(engine).filter(|word| !word.name.starts_with('_')).collect();
    words.sort_unstable_by_key(|word| word.name);
    words
}

/// All tests, sorted by name.
pub fn test_words() -> Vec<&'static LanguageItem> {
    let own = jinja_tests::TESTS.iter().map(|(word, _)| word);
    let of_undefined = jinja_tests::of_undefined::TESTS.iter().map(|(word, _)| word);
    let mut words: Vec<_> = own.chain(of_undefined).chain(jinja_tests::ENGINE_TESTS).collect();
    words.sort_unstable_by_key(|word| word.name);
    words
}

/// Short names of all filters, sorted.
pub(super) fn filter_names() -> Vec<&'static str> {
    filter_words().iter().map(|word| word.name).collect()
}

/// Short names of all tests, sorted.
pub(super) fn test_names() -> Vec<&'static str> {
    test_words().iter().map(|word| word.name).collect()
}
