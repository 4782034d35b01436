//! Schedules in cron's five fields, in a time zone.

use croner::Cron;
use croner::parser::{CronParser, Seconds as SecondsField, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::decide::Seconds;

/// When something is done again and again.
pub(super) struct Schedule {
    cron: Cron,
    zone: TimeZone,
}

impl Schedule {
    /// `text`: minute, hour, day of month, month, day of week, as cron has them. `zone`: for example `Asia/Shanghai`; None: UTC.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub(super) fn parse_schedule(text: &str, zone: Option<&str>) -> Result<Schedule, String> {
        let zone = match zone {
            None => TimeZone::UTC,
            Some(name) => TimeZone::get(name).map_err(|_| format!("there is no time zone {name:?}"))?,
        };
        let parser = CronParser::builder().seconds(SecondsField::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(text).map_err(|error| format!("invalid schedule {text:?}: {error}"))?;
        Ok(Schedule { cron, zone })
    }

    /// The first time after `time`. None: never.
    pub(super) fn next_after(&self, time: Seconds) -> Option<Seconds> {
        let next = self.cron.find_next_occurrence(&self.zoned(time)?, false).ok()?;
        Some(next.timestamp().as_second())
    }

    /// The last time up to `time`. None: there was none.
    pub(super) fn last_until(&self, time: Seconds) -> Option<Seconds> {
        let last = self.cron.find_previous_occurrence(&self.zoned(time)?, true).ok()?;
        Some(last.timestamp().as_second())
    }

    fn zoned(&self, time: Seconds) -> Option<Zoned> {
        Some(Timestamp::from_second(time).ok()?.to_zoned(self.zone.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Seconds {
        text.parse::<Timestamp>().unwrap().as_second()
    }

    fn next(text: &str, zone: Option<&str>, after: &str) -> String {
        let next = Schedule::parse_schedule(text, zone).unwrap().next_after(at(after)).unwrap();
        Timestamp::from_second(next).unwrap().to_string()
    }

    #[test]
    fn times_are_those_of_cron() {
        assert_eq!(next("30 2 * * *", None, "2026-11-28T02:29:59Z"), "2026-11-28T02:30:00Z");
        assert_eq!(next("30 2 * * *", None, "2026-11-28T02:30:00Z"), "2026-11-29T02:30:00Z");
        assert_eq!(next("*/15 * * * *", None, "2026-11-28T23:59:00Z"), "2026-11-29T00:00:00Z");
        // 0 and 7 are Sunday.
        for sunday in ["0 4 * * 0", "0 4 * * 7", "0 4 * * SUN"] {
            assert_eq!(next(sunday, None, "2026-11-28T05:00:00Z"), "2026-11-29T04:00:00Z", "{sunday}");
        }
        // With both days given, either of them counts.
        assert_eq!(next("0 0 1 * 1", None, "2026-11-28T00:00:00Z"), "2026-11-30T00:00:00Z");
        assert_eq!(next("0 0 29 2 *", None, "2026-11-28T00:00:00Z"), "2028-02-29T00:00:00Z");
        let daily = Schedule::parse_schedule("30 2 * * *", None).unwrap();
        assert_eq!(daily.last_until(at("2026-11-28T02:30:00Z")), Some(at("2026-11-28T02:30:00Z")));
        assert_eq!(daily.last_until(at("2026-11-28T02:29:59Z")), Some(at("2026-11-27T02:30:00Z")));
        assert_eq!(Schedule::parse_schedule("0 0 31 2 *", None).unwrap().next_after(at("2026-11-28T00:00:00Z")), None);
    }

    #[test]
    fn a_time_zone_has_its_summer() {
        assert_eq!(next("0 2 * * *", Some("Asia/Shanghai"), "2026-11-28T00:00:00Z"), "2026-11-28T18:00:00Z");
        assert_eq!(next("0 2 * * *", Some("Europe/Berlin"), "2026-07-01T12:00:00Z"), "2026-07-02T00:00:00Z");
        assert_eq!(next("0 2 * * *", Some("Europe/Berlin"), "2026-12-01T12:00:00Z"), "2026-12-02T01:00:00Z");
        // That hour does not exist on this day.
        let next = next("30 2 * * *", Some("Europe/Berlin"), "2026-03-28T12:00:00Z");
        assert!(next.starts_with("2026-03-29T01:"), "{next}");
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for wrong in ["", "* * * *", "60 * * * *", "* * * * * *", "0 0 1 1 1 2026", "x * * * *", "*/0 * * * *"] {
            assert!(Schedule::parse_schedule(wrong, None).is_err(), "{wrong}");
        }
        assert_eq!(
            Schedule::parse_schedule("* * * * *", Some("Mars/Base")).err().unwrap(),
            "there is no time zone \"Mars/Base\""
        );
    }
}
