//! Chance. With a seed the same result comes every time, though not the one that Python would give.

use minijinja::value::ValueKind;
use minijinja::{Error, State};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use sha2::{Digest as _, Sha256};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, iterate, to_text};
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new(
            "random",
            "A random item of a list, or a random number below the given one; with a seed always the same one.",
        )
        .takes("start=0, step=1, seed=none")
        .example("['a', 'b', 'c'] | random(seed=inventory_hostname)"),
        random,
    ),
    (
        LanguageItem::new("shuffle", "The items of a list in random order; with a seed always in the same one.")
            .takes("seed=none")
            .gives("[1, 2, 3] | shuffle(seed='x') | sort", "[1, 2, 3]"),
        shuffle,
    ),
];

fn generator(seed: Option<Value>) -> StdRng {
    match seed.filter(|seed| !seed.is_none()) {
        Some(seed) => StdRng::from_seed(Sha256::digest(to_text(&seed).as_bytes()).into()),
        None => StdRng::from_rng(&mut rand::rng()),
    }
}

/// `60 | random(start=0, step=1, seed=None)`, or an item of a list.
pub(super) fn random(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let end = args.req("end")?;
    let (start, step, seed) = (args.int("start")?, args.int("step")?, args.opt("seed"));
    args.no_more_arguments()?;
    let mut random = generator(seed);
    if end.kind() == ValueKind::Number {
        let (end, start, step) = (super::super::conversions::int(&end)?, start.unwrap_or(0), step.unwrap_or(1).max(1));
        if end <= start {
            return Err(fail("random needs an end that is larger than the start"));
        }
        // Wider than the numbers themselves: their difference may be twice as large.
        let (start, step) = (i128::from(start), i128::from(step));
        let count = (i128::from(end) - start + step - 1) / step;
        let number = start + step * random.random_range(0..count);
        return Ok(Value::from(i64::try_from(number).expect("it is below the end")));
    }
    let list = iterate(&end)?;
    if list.is_empty() {
        return Err(fail("random of an empty list"));
    }
    Ok(list[random.random_range(0..list.len())].clone())
}

/// `shuffle(seed=None)`
pub(super) fn shuffle(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let mut list = iterate(&args.req("mylist")?)?;
    list.shuffle(&mut generator(args.opt("seed")));
    Ok(Value::from(list))
}
