//! Points in time in templates: `now()`, `to_datetime`, `strftime`.

use std::sync::Arc;

use chrono::{DateTime, Datelike, FixedOffset, Local, NaiveDate, NaiveDateTime, TimeZone, Timelike, Utc};
use minijinja::value::{Object, ObjectRepr, Rest, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State};

use super::args::{Args, fail, text};
use super::environment::Filter;
use crate::value::Value;
use crate::value::doc::Word;

/// The filters of this file.
pub const FILTERS: &[(Word, Filter)] = &[
    (
        Word::new("strftime", "A time as a format says; without seconds since 1970, now.")
            .takes("seconds=now, utc=false")
            .gives("'%Y-%m-%d' | strftime(0, utc=true)", "1970-01-01"),
        strftime,
    ),
    (
        Word::new(
            "to_datetime",
            "The time that a text stands for, with members such as year and methods such as \
             strftime.",
        )
        .takes("format='%Y-%m-%d %H:%M:%S'")
        .gives("('2026-01-02' | to_datetime('%Y-%m-%d')).year", "2026"),
        to_datetime,
    ),
];

/// A Python `datetime`, as far as templates need one.
#[derive(Debug)]
struct Moment(NaiveDateTime);

/// `now(utc=False, fmt=None)`.
pub fn now(state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>) -> Result<Value, Error> {
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
pub fn to_datetime(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
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
pub fn strftime(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let format = args.text("format")?;
    let second = args.opt("second").filter(|second| !second.is_none());
    let utc = args.flag("utc");
    args.end()?;
    let moment: DateTime<Utc> = match second {
        None => Utc::now(),
        Some(second) => {
            let seconds =
                text(&second).parse::<f64>().map_err(|_| fail(format!("{second:?} is no number of seconds")))?;
            DateTime::from_timestamp_micros((seconds * 1e6) as i64).ok_or_else(|| fail("a time out of range"))?
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
    write!(result, "{}", moment.format(format)).map_err(|_| fail(format!("not a time format: {format:?}")))?;
    Ok(result)
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
