//! Times in templates, and the differences between them.

use std::sync::Arc;

use chrono::{Datelike, FixedOffset, Local, NaiveDateTime, TimeDelta, TimeZone, Timelike};
use minijinja::value::{Object, ObjectRepr};
use minijinja::{Error, ErrorKind, State};

use super::conversions::fail;
use crate::value::Value;

/// A Python `datetime`, as far as templates need one.
#[derive(Debug)]
pub(super) struct NaiveMoment(pub NaiveDateTime);

/// A time in a format of `strftime`.
pub(super) fn format_time(moment: &NaiveDateTime, format: &str) -> Result<String, Error> {
    use std::fmt::Write as _;
    let mut result = String::new();
    // `%s` needs the local time zone, which a time without a zone does not have.
    let zone: FixedOffset = *Local.from_local_datetime(moment).earliest().unwrap_or_else(Local::now).offset();
    let moment = zone.from_local_datetime(moment).earliest().ok_or_else(|| fail("a time that does not exist"))?;
    write!(result, "{}", moment.format(format)).map_err(|_| fail(format!("invalid time format {format:?}")))?;
    Ok(result)
}

/// The difference between two times.
#[derive(Debug)]
struct Span(TimeDelta);

/// `a - b` of times: their difference, or the time that much earlier.
pub(super) fn difference(a: &Value, b: &Value) -> Option<Value> {
    match (
        a.downcast_object_ref::<NaiveMoment>(),
        b.downcast_object_ref::<NaiveMoment>(),
        b.downcast_object_ref::<Span>(),
    ) {
        (Some(a), Some(b), _) => Some(Value::from_object(Span(a.0 - b.0))),
        (Some(a), _, Some(b)) => a.0.checked_sub_signed(b.0).map(|moment| Value::from_object(NaiveMoment(moment))),
        _ => None,
    }
}

/// The order of two times, or of two spans of time; None: they are not that.
pub(super) fn order(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    let moments = a.downcast_object_ref::<NaiveMoment>().zip(b.downcast_object_ref::<NaiveMoment>());
    let spans = a.downcast_object_ref::<Span>().zip(b.downcast_object_ref::<Span>());
    moments.map(|(a, b)| a.0.cmp(&b.0)).or_else(|| spans.map(|(a, b)| a.0.cmp(&b.0)))
}

/// Python's name of the type of a time or a span of time.
pub(super) fn type_name(value: &Value) -> Option<&'static str> {
    let span = value.downcast_object_ref::<Span>().map(|_| "timedelta");
    value.downcast_object_ref::<NaiveMoment>().map(|_| "datetime").or(span)
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

impl Object for NaiveMoment {
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
            "strftime" => format_time(&self.0, args.first().and_then(Value::as_str).unwrap_or("")).map(Value::from),
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
