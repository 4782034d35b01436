//! Points in time in templates: `now()`, `to_datetime`, `strftime`.

use std::sync::Arc;

use chrono::{DateTime, Datelike, FixedOffset, Local, NaiveDate, NaiveDateTime, TimeDelta, TimeZone, Timelike, Utc};
use minijinja::value::{Object, ObjectRepr, Rest, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State};

use super::args::{Args, fail, text};
use super::environment::Filter;
use crate::value::doc::Word;
use crate::value::{Value, float};

/// The filters of this file.
pub(super) const FILTERS: &[(Word, Filter)] = &[
    (
        Word::new("strftime", "A time in the given format (default: the current time).")
            .takes("seconds=now, utc=false")
            .gives("'%Y-%m-%d' | strftime(0, utc=true)", "1970-01-01"),
        strftime,
    ),
    (
        Word::new("to_datetime", "Parses a text as a time, with members such as year and methods such as strftime.")
            .takes("format='%Y-%m-%d %H:%M:%S'")
            .gives("('2026-01-02' | to_datetime('%Y-%m-%d')).year", "2026"),
        to_datetime,
    ),
];

/// A Python `datetime`, as far as templates need one.
#[derive(Debug)]
struct Moment(NaiveDateTime);

/// `now(utc=False, fmt=None)`.
pub(super) fn now(state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let Ok(mut args) = Args::new(state, &values.into_values())? else {
        return Err(Error::from(ErrorKind::UndefinedError));
    };
    let utc = args.flag("utc");
    let format = args.opt("fmt").filter(|format| !format.is_none());
    args.end()?;
    let now = if utc { Utc::now().naive_utc() } else { Local::now().naive_local() };
    match format {
        Some(format) => print(&now, &text(&format)).map(Value::from),
        None => Ok(Value::from_object(Moment(now))),
    }
}

/// `'2024-01-02 03:04:05' | to_datetime(format)`.
pub(super) fn to_datetime(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (string, format) = (args.text("string")?, args.text_or("format", "%Y-%m-%d %H:%M:%S"));
    args.end()?;
    NaiveDateTime::parse_from_str(&string, &format)
        .or_else(|error| {
            NaiveDate::parse_from_str(&string, &format)
                .map(|day| day.and_hms_opt(0, 0, 0).unwrap_or_default())
                .map_err(|_| error)
        })
        .map(|moment| Value::from_object(Moment(moment)))
        .map_err(|_| fail(format!("time data {string:?} does not match format {format:?}")))
}

/// `'%Y-%m-%d' | strftime(second, utc)`.
pub(super) fn strftime(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let format = args.only_text("format")?;
    let second = args.opt("second").filter(|second| !second.is_none());
    let utc = args.flag("utc");
    args.end()?;
    let moment: DateTime<Utc> = match second {
        None => Utc::now(),
        Some(second) => {
            let seconds =
                text(&second).parse::<f64>().map_err(|_| fail(format!("{second:?} is not a number of seconds")))?;
            DateTime::from_timestamp_micros(float::whole_part(seconds * 1e6))
                .ok_or_else(|| fail("a time out of range"))?
        }
    };
    let moment = if utc { moment.naive_utc() } else { moment.with_timezone(&Local).naive_local() };
    print(&moment, &format).map(Value::from)
}

fn print(moment: &NaiveDateTime, format: &str) -> Result<String, Error> {
    use std::fmt::Write as _;
    let mut result = String::new();
    // `%s` of the local clock, which a time without a zone lacks.
    let zone: FixedOffset = *Local.from_local_datetime(moment).earliest().unwrap_or_else(Local::now).offset();
    let moment = zone.from_local_datetime(moment).earliest().ok_or_else(|| fail("a time that does not exist"))?;
    write!(result, "{}", moment.format(format)).map_err(|_| fail(format!("invalid time format {format:?}")))?;
    Ok(result)
}

/// What lies between two times.
#[derive(Debug)]
struct Span(TimeDelta);

/// `a - b` of times: what lies between them, or the time so long before.
pub(super) fn difference(a: &Value, b: &Value) -> Option<Value> {
    match (a.downcast_object_ref::<Moment>(), b.downcast_object_ref::<Moment>(), b.downcast_object_ref::<Span>()) {
        (Some(a), Some(b), _) => Some(Value::from_object(Span(a.0 - b.0))),
        (Some(a), _, Some(b)) => a.0.checked_sub_signed(b.0).map(|moment| Value::from_object(Moment(moment))),
        _ => None,
    }
}

/// The order of two times, or of two spans of time; None: they are not that.
pub(super) fn order(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    let moments = a.downcast_object_ref::<Moment>().zip(b.downcast_object_ref::<Moment>());
    let spans = a.downcast_object_ref::<Span>().zip(b.downcast_object_ref::<Span>());
    moments.map(|(a, b)| a.0.cmp(&b.0)).or_else(|| spans.map(|(a, b)| a.0.cmp(&b.0)))
}

/// Python's name of the type of a time or a span of time.
pub(super) fn type_name(value: &Value) -> Option<&'static str> {
    let span = value.downcast_object_ref::<Span>().map(|_| "timedelta");
    value.downcast_object_ref::<Moment>().map(|_| "datetime").or(span)
}

impl Span {
    /// Whole days, rounded down, the seconds beyond them, and the microseconds beyond those.
    fn parts(&self) -> (i64, i64, i64) {
        let micros = self.0.num_microseconds().unwrap_or(i64::MAX);
        let seconds = micros.div_euclid(1_000_000);
        (seconds.div_euclid(86_400), seconds.rem_euclid(86_400), micros.rem_euclid(1_000_000))
    }
}

impl Object for Span {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let (days, seconds, micros) = self.parts();
        match key.as_str()? {
            "days" => Some(Value::from(days)),
            "seconds" => Some(Value::from(seconds)),
            "microseconds" => Some(Value::from(micros)),
            _ => None,
        }
    }

    fn call_method(self: &Arc<Self>, _: &mut State<'_, '_>, method: &str, _: &[Value]) -> Result<Value, Error> {
        let (days, seconds, micros) = self.parts();
        match method {
            "total_seconds" => Ok(Value::from((days * 86_400 + seconds) as f64 + micros as f64 / 1e6)),
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (days, seconds, micros) = self.parts();
        if days != 0 {
            write!(f, "{days} day{}, ", if days.abs() == 1 { "" } else { "s" })?;
        }
        write!(f, "{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
        if micros == 0 { Ok(()) } else { write!(f, ".{micros:06}") }
    }
}

impl Object for Moment {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        Some(Value::from(match key.as_str()? {
            "year" => i64::from(self.0.year()),
            "month" => i64::from(self.0.month()),
            "day" => i64::from(self.0.day()),
            "hour" => i64::from(self.0.hour()),
            "minute" => i64::from(self.0.minute()),
            "second" => i64::from(self.0.second()),
            "microsecond" => i64::from(self.0.and_utc().timestamp_subsec_micros()),
            _ => return None,
        }))
    }

    fn call_method(self: &Arc<Self>, _: &mut State<'_, '_>, method: &str, args: &[Value]) -> Result<Value, Error> {
        let local = || Local.from_local_datetime(&self.0).earliest().ok_or_else(|| fail("a time that does not exist"));
        match method {
            "strftime" => print(&self.0, args.first().and_then(Value::as_str).unwrap_or("")).map(Value::from),
            "isoformat" => Ok(Value::from(self.0.format("%Y-%m-%dT%H:%M:%S%.f").to_string())),
            "timestamp" => Ok(Value::from(local()?.timestamp_micros() as f64 / 1e6)),
            "date" => Ok(Value::from(self.0.format("%Y-%m-%d").to_string())),
            "weekday" => Ok(Value::from(self.0.weekday().num_days_from_monday())),
            "isoweekday" => Ok(Value::from(self.0.weekday().number_from_monday())),
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.format("%Y-%m-%d %H:%M:%S%.6f").to_string().trim_end_matches(".000000"))
    }
}
