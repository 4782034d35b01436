//! Filters of numbers and sizes.

use minijinja::value::ValueKind;
use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, kind, to_text};
use super::super::render::value_to_text;
use super::super::{operations, python};
use crate::value::doc::LanguageItem;
use crate::value::{Value, float as float_value};

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (LanguageItem::new("abs", "A number without its sign.").gives("-3 | abs", "3"), |_, mut args| {
        let value = python::to_number(&args.req("x")?);
        operations::compare_values(&value, "<", &Value::from(0))
            .and_then(|negative| if negative { operations::mul(&value, &Value::from(-1)) } else { Ok(value) })
    }),
    (
        LanguageItem::new(
            "filesizeformat",
            "A number of bytes in a readable form, in steps of 1000, or of 1024 with binary.",
        )
        .takes("binary=false")
        .gives("1500 | filesizeformat", "1.5 kB"),
        filesizeformat,
    ),
    (
        LanguageItem::new("float", "A text as a floating-point number.")
            .takes("default=0.0")
            .gives("'1.5' | float", "1.5"),
        float,
    ),
    (
        LanguageItem::new("human_readable", "A number of bytes in a readable form.")
            .takes("isbits=false, unit=none")
            .gives("1536 | human_readable", "1.50 KB"),
        human_readable,
    ),
    (
        LanguageItem::new("human_to_bytes", "Converts a text such as 1.5G to a number of bytes.")
            .takes("default_unit=none, isbits=false")
            .gives("'1.5K' | human_to_bytes", "1536"),
        human_to_bytes,
    ),
    (
        LanguageItem::new("int", "A text as a whole number, or the default if it is not a number.")
            .takes("default=0, base=10")
            .gives("'0x1f' | int(base=16)", "31"),
        int,
    ),
    (LanguageItem::new("log", "The logarithm of a number.").takes("base=e").gives("8 | log(2)", "3.0"), log),
    (LanguageItem::new("pow", "A number raised to a power.").takes("exponent").gives("2 | pow(10)", "1024.0"), pow),
    (
        LanguageItem::new("root", "The square root of a number, or another root.")
            .takes("base=2")
            .gives("27 | root(3)", "3.0"),
        root,
    ),
    (
        LanguageItem::new("round", "A number rounded: common, or down with floor and up with ceil.")
            .takes("precision=0, method='common'")
            .gives("2.7 | round", "3.0"),
        round,
    ),
];

/// `round(precision=0, method='common')`; halves go to the even neighbour.
pub(super) fn round(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = python::to_number(&args.req("value")?);
    let precision = args.int("precision")?.unwrap_or(0).clamp(-300, 300);
    let precision = i32::try_from(precision).expect("it is within the range");
    let method = args.text_or("method", "common");
    args.no_more_arguments()?;
    if value.as_str().is_some() || !value.is_number() {
        return Err(fail(format!("round needs a number, this is {}", kind(&value))));
    }
    let (x, power) = (number(&value)?, 10f64.powi(precision));
    let rounded = match method.as_str() {
        "common" if value.is_integer() && precision >= 0 => return Ok(value),
        // As integers, which are no longer right as floating-point numbers where they are large. Halves go to the even one.
        "common" if value.is_integer() => {
            let number = i128::try_from(value).map_err(|_| fail("the number is too large"))?;
            let Some(unit) = 10i128.checked_pow(precision.unsigned_abs()) else { return Ok(whole(0)) };
            let (tens, rest) = (number.div_euclid(unit), number.rem_euclid(unit));
            let up = rest > unit - rest || (rest == unit - rest && tens % 2 != 0);
            return Ok(whole((tens + i128::from(up)).saturating_mul(unit)));
        }
        "common" if precision >= 0 => format!("{x:.*}", precision.unsigned_abs() as usize).parse().unwrap_or(x),
        "common" => (x * power).round_ties_even() / power,
        "ceil" => (x * power).ceil() / power,
        "floor" => (x * power).floor() / power,
        _ => return Err(fail("the method of round must be common, ceil or floor")),
    };
    Ok(Value::from(rounded))
}

fn number(value: &Value) -> Result<f64, Error> {
    match value.kind() {
        ValueKind::Bool => Ok(f64::from(u8::from(value.is_true()))),
        _ => f64::try_from(value.clone())
            .ok()
            .or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()))
            .ok_or_else(|| fail(format!("{value:?} is not a number"))),
    }
}

fn whole(number: i128) -> Value {
    i64::try_from(number).map_or_else(|_| Value::from(number), Value::from)
}

/// `int(default=0, base=10)`
pub(super) fn int(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("value")?;
    let (default, base) = (args.opt("default").unwrap_or(Value::from(0)), args.int("base")?.unwrap_or(10));
    args.no_more_arguments()?;
    if value.kind() == ValueKind::Number && value.is_integer() {
        return Ok(value);
    }
    if let Some(string) = value.as_str() {
        let clean = string.trim().replace('_', "").to_lowercase();
        let (sign, digits) = clean.strip_prefix('-').map_or((1, clean.as_str()), |digits| (-1, digits));
        let digits = match base {
            16 => digits.strip_prefix("0x").unwrap_or(digits),
            8 => digits.strip_prefix("0o").unwrap_or(digits),
            2 => digits.strip_prefix("0b").unwrap_or(digits),
            _ => digits,
        };
        let base = u32::try_from(base)
            .ok()
            .filter(|base| (2..=36).contains(base))
            .ok_or_else(|| fail("the base must be from 2 to 36"))?;
        if let Ok(number) = i128::from_str_radix(digits, base) {
            return number.checked_mul(sign).map(whole).ok_or_else(|| fail("the resulting number is too large"));
        }
    }
    Ok(number(&value)
        .ok()
        .filter(|number| number.is_finite())
        .map_or(default, |number| Value::from(float_value::whole_part(number))))
}

/// `float(default=0.0)`
pub(super) fn float(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("value")?;
    let default = args.opt("default").unwrap_or(Value::from(0.0));
    args.no_more_arguments()?;
    Ok(number(&value).map_or(default, Value::from))
}

/// `filesizeformat(binary=False)`
pub(super) fn filesizeformat(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (mut size, binary) = (number(&args.req("value")?)?, args.flag_argument("binary"));
    args.no_more_arguments()?;
    let (step, unit) = if binary { (1024.0, "iB") } else { (1000.0, "B") };
    if size == 1.0 {
        return Ok(Value::from("1 Byte"));
    }
    if size < step {
        return Ok(Value::from(format!("{} Bytes", float_value::whole_part(size))));
    }
    let mut prefix = 'Y';
    for letter in ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'] {
        size /= step;
        prefix = letter;
        if size < step {
            break;
        }
    }
    let prefix = if binary { prefix.to_ascii_uppercase() } else { prefix };
    Ok(Value::from(format!("{size:.1} {prefix}{unit}")))
}

/// `log(base=e)`
pub(super) fn log(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let x = number(&args.req("x")?)?;
    let base = args.opt("base").map_or(Ok(std::f64::consts::E), |base| number(&base))?;
    if x <= 0.0 {
        return Err(fail("log needs a number above zero"));
    }
    Ok(Value::from(if base == 10.0 { x.log10() } else { x.ln() / base.ln() }))
}

/// `pow(y)`
pub(super) fn pow(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    real(number(&args.req("x")?)?.powf(number(&args.req("y")?)?))
}

/// `root(base=2)`
pub(super) fn root(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let x = number(&args.req("x")?)?;
    let base = args.opt("base").map_or(Ok(2.0), |base| number(&base))?;
    real(if base == 2.0 { x.sqrt() } else { x.powf(1.0 / base) })
}

fn real(number: f64) -> Result<Value, Error> {
    if number.is_nan() { Err(fail("the result is not a real number")) } else { Ok(Value::from(number)) }
}

const UNITS: [(char, f64); 8] = [
    ('Y', 1_208_925_819_614_629_174_706_176.0),
    ('Z', 1_180_591_620_717_411_303_424.0),
    ('E', 1_152_921_504_606_846_976.0),
    ('P', 1_125_899_906_842_624.0),
    ('T', 1_099_511_627_776.0),
    ('G', 1_073_741_824.0),
    ('M', 1_048_576.0),
    ('K', 1024.0),
];

/// `human_readable(isbits=False, unit=None)`
pub(super) fn human_readable(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let size = number(&args.req("size")?)?;
    let bits = args.flag_argument("isbits");
    let unit =
        args.opt("unit").filter(|unit| !unit.is_none()).and_then(|unit| to_text(&unit).to_uppercase().chars().next());
    let base = if bits { "bits" } else { "Bytes" };
    let fits = |(name, limit): &&(char, f64)| match unit {
        Some(unit) => unit == *name,
        None => size >= *limit,
    };
    Ok(Value::from(match UNITS.iter().find(fits) {
        Some((name, limit)) => format!("{:.2} {name}{}", size / limit, if bits { 'b' } else { 'B' }),
        None => format!("{size:.2} {base}"),
    }))
}

/// `human_to_bytes(default_unit=None, isbits=False)`: `1.5G` to bytes. A unit is one letter, or that letter and `B` (of
/// bits `b`), or its name in full.
pub(super) fn human_to_bytes(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    const NAMES: [&str; 8] = ["yotta", "zeta", "exa", "peta", "tera", "giga", "mega", "kilo"];
    let size = value_to_text(&args.req("size")?);
    let default = args.opt("default_unit").filter(|unit| !unit.is_none()).map(|unit| to_text(&unit));
    let bits = args.flag_argument("isbits");
    args.no_more_arguments()?;
    let wrong = || fail(format!("human_to_bytes cannot read {size:?}"));
    let digits = size.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(size.len());
    let (number, written) = size.split_at(digits);
    let number: f64 = number.parse().ok().filter(|_| !number.ends_with('.')).ok_or_else(wrong)?;
    let written = written.trim();
    let unit = if written.is_empty() { default.unwrap_or_default() } else { written.to_owned() };
    let (letter, name) = if bits { ("b", "bit") } else { ("B", "byte") };
    let factor = UNITS.iter().zip(NAMES).find(|((first, _), _)| unit.starts_with([*first, first.to_ascii_lowercase()]));
    let (factor, allowed) = match factor {
        Some(((first, factor), prefix)) => (*factor, [format!("{first}{letter}"), format!("{prefix}{name}")]),
        None if unit.is_empty() || unit.starts_with(['b', 'B']) => (1.0, [letter.to_owned(), name.to_owned()]),
        None => return Err(wrong()),
    };
    let fits = unit.chars().count() <= 1 || unit == allowed[0] || unit.to_lowercase() == allowed[1];
    if !fits {
        return Err(fail(format!("human_to_bytes: unknown unit {unit:?}, use {}", allowed.join(" or "))));
    }
    Ok(Value::from(float_value::whole_part((number * factor).round_ties_even())))
}
