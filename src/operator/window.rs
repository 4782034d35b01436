//! Maintenance windows: when a change may begin.

use time::{OffsetDateTime, Time};

use super::decide::Seconds;
use crate::resource::{MaintenanceWindow, Weekday};

/// Whether changes may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    Open,
    /// The next one opens then.
    Closed {
        until: Seconds,
    },
}

/// What the windows of a deployment say now. Without any, changes may always begin.
pub(super) fn window_at(windows: &[MaintenanceWindow], now: OffsetDateTime) -> Window {
    if windows.is_empty() {
        return Window::Open;
    }
    let mut next = Seconds::MAX;
    for window in windows {
        let Some(start) = start_of(window) else { continue };
        // One that has begun yesterday may still be open; the next one begins within eight days.
        for day in -1..=8 {
            let begins = (now + time::Duration::days(day)).replace_time(start);
            if !window.days.is_empty() && !window.days.contains(&weekday(begins)) {
                continue;
            }
            let ends = begins + time::Duration::minutes(window.minutes.into());
            if begins <= now && now < ends {
                return Window::Open;
            }
            if begins > now {
                next = next.min(begins.unix_timestamp());
            }
        }
    }
    Window::Closed { until: next }
}

/// The definition checks the text.
fn start_of(window: &MaintenanceWindow) -> Option<Time> {
    let (hour, minute) = window.start.split_once(':')?;
    Time::from_hms(hour.parse().ok()?, minute.parse().ok()?, 0).ok()
}

fn weekday(time: OffsetDateTime) -> Weekday {
    match time.weekday() {
        time::Weekday::Monday => Weekday::Mon,
        time::Weekday::Tuesday => Weekday::Tue,
        time::Weekday::Wednesday => Weekday::Wed,
        time::Weekday::Thursday => Weekday::Thu,
        time::Weekday::Friday => Weekday::Fri,
        time::Weekday::Saturday => Weekday::Sat,
        time::Weekday::Sunday => Weekday::Sun,
    }
}

#[cfg(test)]
mod tests {
    use time::format_description::well_known::Rfc3339;

    use super::*;

    fn at(text: &str) -> OffsetDateTime {
        OffsetDateTime::parse(text, &Rfc3339).unwrap()
    }

    fn window(days: &[Weekday], start: &str, minutes: i32) -> MaintenanceWindow {
        MaintenanceWindow { days: days.to_vec(), start: start.into(), minutes }
    }

    #[test]
    fn a_window_is_open_from_its_start_for_its_minutes_also_past_midnight() {
        // A Thursday.
        let windows = [window(&[], "22:30", 180)];
        for (now, expected) in [
            ("2026-11-26T22:29:59Z", Window::Closed { until: at("2026-11-26T22:30:00Z").unix_timestamp() }),
            ("2026-11-26T22:30:00Z", Window::Open),
            ("2026-11-27T01:29:59Z", Window::Open),
            ("2026-11-27T01:30:00Z", Window::Closed { until: at("2026-11-27T22:30:00Z").unix_timestamp() }),
        ] {
            assert_eq!(window_at(&windows, at(now)), expected, "{now}");
        }
        assert_eq!(window_at(&[], at("2026-11-26T12:00:00Z")), Window::Open);
    }

    #[test]
    fn a_window_may_be_on_some_days_and_the_next_one_counts() {
        let windows = [window(&[Weekday::Sat, Weekday::Sun], "02:00", 60), window(&[Weekday::Thu], "01:00", 60)];
        let closed = |until: &str| Window::Closed { until: at(until).unix_timestamp() };
        assert_eq!(window_at(&windows, at("2026-11-26T12:00:00Z")), closed("2026-11-28T02:00:00Z"));
        assert_eq!(window_at(&windows, at("2026-11-28T02:30:00Z")), Window::Open);
        assert_eq!(window_at(&windows, at("2026-11-29T04:00:00Z")), closed("2026-12-03T01:00:00Z"));
        assert_eq!(window_at(&windows[..1], at("2026-11-29T04:00:00Z")), closed("2026-12-05T02:00:00Z"));
    }
}
