//! `strftime`, `to_datetime`, and the function `now`.

use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, Utc};
use minijinja::value::{Rest, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State};

use super::super::args::{Args, Filter};
use super::super::conversions::{fail, to_text};
use super::super::time::{NaiveMoment, format_time};
use crate::value::doc::LanguageItem;
use crate::value::{Value, float};

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("strftime", "A time in the given format (default: the current time).")
            .takes("seconds=now, utc=false")
            .gives("'%Y-%m-%d' | strftime(0, utc=true)", "1970-01-01"),
        strftime,
    ),
    (
        LanguageItem::new(
            "to_datetime",
            "Parses a text as a time, with members such as year and methods such as strftime.",
        )
        .takes("format='%Y-%m-%d %H:%M:%S'")
        .gives("('2026-01-02' | to_datetime('%Y-%m-%d')).year", "2026"),
        to_datetime,
    ),
];

/// `now(utc=False, fmt=None)`.
pub(in crate::template) fn now(state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let Ok(mut args) = Args::new(state, &values.into_values())? else {
        return Err(Error::from(ErrorKind::UndefinedError));
    };
    let utc = args.flag_argument("utc");
    let format = args.opt("fmt").filter(|format| !format.is_none());
    args.no_more_arguments()?;
    let now = if utc { Utc::now().naive_utc() } else { Local::now().naive_local() };
    match format {
        Some(format) => format_time(&now, &to_text(&format)).map(Value::from),
        None => Ok(Value::from_object(NaiveMoment(now))),
    }
}

/// `'2024-01-02 03:04:05' | to_datetime(format)`.
fn to_datetime(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (string, format) = (args.text_argument("string")?, args.text_or("format", "%Y-%m-%d %H:%M:%S"));
    args.no_more_arguments()?;
    NaiveDateTime::parse_from_str(&string, &format)
        .or_else(|error| {
            NaiveDate::parse_from_str(&string, &format)
                .map(|day| day.and_hms_opt(0, 0, 0).unwrap_or_default())
                .map_err(|_| error)
        })
        .map(|moment| Value::from_object(NaiveMoment(moment)))
        .map_err(|_| fail(format!("time data {string:?} does not match format {format:?}")))
}

/// `'%Y-%m-%d' | strftime(second, utc)`.
fn strftime(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let format = args.only_text("format")?;
    let second = args.opt("second").filter(|second| !second.is_none());
    let utc = args.flag_argument("utc");
    args.no_more_arguments()?;
    let moment: DateTime<Utc> = match second {
        None => Utc::now(),
        Some(second) => {
            let seconds =
                to_text(&second).parse::<f64>().map_err(|_| fail(format!("{second:?} is not a number of seconds")))?;
            DateTime::from_timestamp_micros(float::whole_part(seconds * 1e6))
                .ok_or_else(|| fail("a time out of range"))?
        }
    };
    let moment = if utc { moment.naive_utc() } else { moment.with_timezone(&Local).naive_local() };
    format_time(&moment, &format).map(Value::from)
}
