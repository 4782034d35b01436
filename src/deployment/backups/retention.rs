//! Which older backups are kept.

use std::time::Duration;

use chrono::{Datelike, Timelike};

use super::{AHEAD, Backup, Manifest, time};

/// Which backups of a cluster are kept: those that one of the rules wants, and always the newest. Without a rule all are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// So many of the newest.
    pub last: Option<usize>,
    /// Those that are at most so much older than the one before the newest.
    pub within: Option<Duration>,
    /// The newest one of each hour that has one, for the newest so many such hours; and so on. Hours and days are those of UTC, weeks
    /// begin on Monday.
    pub hourly: Option<usize>,
    pub daily: Option<usize>,
    pub weekly: Option<usize>,
    pub monthly: Option<usize>,
    pub yearly: Option<usize>,
}

/// A period of the calendar that has only one such number.
type Period = (i32, u32);

/// A rule for periods, and the period of a time.
type Calendar = (Option<usize>, fn(chrono::DateTime<chrono::Utc>) -> Period);

impl Retention {
    pub fn keeps_all(&self) -> bool {
        *self == Retention::default()
    }

    fn has_time_rules(&self) -> bool {
        *self != Retention { last: self.last, ..Retention::default() }
    }

    fn calendars(&self) -> [Calendar; 5] {
        [
            (self.hourly, |time| (time.num_days_from_ce(), time.hour())),
            (self.daily, |time| (time.num_days_from_ce(), 0)),
            (self.weekly, |time| (time.iso_week().year(), time.iso_week().week())),
            (self.monthly, |time| (time.year(), time.month())),
            (self.yearly, |time| (time.year(), 0)),
        ]
    }

    /// Of backups of one cluster, sorted from the newest to the oldest, those that no rule wants. Never the newest, the newest one with
    /// credentials, nor, if times count, one from the future, as a clock was wrong.
    fn unwanted(&self, backups: Vec<Backup>) -> Vec<Backup> {
        if self.keeps_all() {
            return Vec::new();
        }
        let taken = |backup: &Backup| backup.manifest.as_ref().map_or(0, |manifest| manifest.taken);
        let has_credentials = |backup: &Backup| backup.manifest.as_ref().is_ok_and(|found| found.credentials.is_some());
        let newest = backups.first().map_or(0, taken);
        // If the clock is ahead now, all others look old: their age counts from the newest of them that is not from the future.
        let is_future = |backup: &Backup| taken(backup) > newest.saturating_add(AHEAD);
        let before = backups.iter().skip(1).filter(|backup| !is_future(backup)).map(taken).max();
        let now = before.map_or(newest, |before| before.min(newest));
        let newest_with_credentials = backups.iter().position(has_credentials);
        let mut seen: [Vec<Period>; 5] = Default::default();
        let mut unwanted = Vec::new();
        for (at, backup) in backups.into_iter().enumerate() {
            // Their times say nothing.
            if is_future(&backup) && self.has_time_rules() {
                continue;
            }
            let age = Duration::from_secs(now.saturating_sub(taken(&backup)));
            let mut is_wanted = at == 0
                || Some(at) == newest_with_credentials
                || self.last.is_some_and(|last| at < last)
                || self.within.is_some_and(|within| age <= within);
            for ((count, period), seen) in self.calendars().into_iter().zip(&mut seen) {
                let period = period(time(taken(&backup)));
                if count.is_some_and(|count| seen.len() < count) && !seen.contains(&period) {
                    seen.push(period);
                    is_wanted = true;
                }
            }
            if !is_wanted {
                unwanted.push(backup);
            }
        }
        unwanted
    }

    /// The good backups of the cluster of `newest`, a new one, that no rule wants. Never `newest` itself.
    pub(super) fn superseded(
        &self,
        mut all: Vec<Backup>,
        newest: &Backup,
        is_good: impl Fn(&Backup) -> bool,
    ) -> Vec<Backup> {
        // Those of an earlier cluster stay: they may be all that is left of it. So do damaged ones, which do not count either.
        let cluster_of = |backup: &Backup| backup.manifest.as_ref().ok().map(|manifest| manifest.cluster_id.clone());
        all.retain(|backup| backup.name != newest.name && cluster_of(backup) == cluster_of(newest));
        all.retain(is_good);
        // Clocks can be wrong; revisions only grow.
        let age = |found: &Manifest| (found.revision, found.taken);
        all.sort_by_key(|backup| std::cmp::Reverse(backup.manifest.as_ref().map_or((0, 0), age)));
        all.insert(0, newest.clone());
        self.unwanted(all)
    }
}

#[cfg(test)]
mod tests {
    use super::super::PackedCredentials;
    use super::*;

    /// Times such as `2026-11-28 04:00`, from the newest to the oldest.
    fn kept(retention: Retention, times: &[&str]) -> Vec<String> {
        let unwanted = retention.unwanted(backups(times));
        let is_there = |text: &&&str| unwanted.iter().all(|gone| gone.name != **text);
        times.iter().filter(is_there).map(|&text| text.to_owned()).collect()
    }

    fn backups(times: &[&str]) -> Vec<Backup> {
        let backup = |(at, text): (usize, &&str)| {
            let taken = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap().and_utc().timestamp();
            let manifest: Manifest = serde_json::from_value(serde_json::json!({
                "layout": 1, "deployment": "prod", "cluster": "etcd", "cluster_id": "7", "member": "h1", "is_leader": false,
                "members": ["h1"], "compared": 1, "etcd_version": "3.5.16", "windlass_version": "0.1.0", "taken": taken,
                "revision": 1000 - at, "keys": 9, "size": 40, "sha256": "ab", "compressed_size": 20, "compressed_sha256": "cd",
            }))
            .unwrap();
            Backup { name: (*text).to_owned(), path: "/b".into(), manifest: Ok(manifest) }
        };
        times.iter().enumerate().map(backup).collect()
    }

    const TIMES: [&str; 9] = [
        "2026-11-28 12:30",
        "2026-11-28 12:00",
        "2026-11-28 03:00",
        "2026-11-27 03:00",
        "2026-11-23 03:00",
        "2026-11-22 03:00",
        "2026-10-31 03:00",
        "2026-01-01 00:00",
        "2025-12-31 23:59",
    ];

    #[test]
    fn each_rule_keeps_the_newest_backup_of_its_periods() {
        let none = Retention::default();
        assert_eq!(kept(none, &TIMES), TIMES);
        assert_eq!(kept(Retention { last: Some(3), ..none }, &TIMES), TIMES[..3]);
        assert_eq!(kept(Retention { hourly: Some(2), ..none }, &TIMES), [TIMES[0], TIMES[2]]);
        assert_eq!(kept(Retention { daily: Some(3), ..none }, &TIMES), [TIMES[0], TIMES[3], TIMES[4]]);
        // The week of Monday, 23 November, and the one before.
        assert_eq!(kept(Retention { weekly: Some(2), ..none }, &TIMES), [TIMES[0], TIMES[5]]);
        assert_eq!(kept(Retention { monthly: Some(3), ..none }, &TIMES), [TIMES[0], TIMES[6], TIMES[7]]);
        assert_eq!(kept(Retention { yearly: Some(5), ..none }, &TIMES), [TIMES[0], TIMES[8]]);
        let two_days = Some(Duration::from_secs(48 * 3600));
        assert_eq!(kept(Retention { within: two_days, ..none }, &TIMES), TIMES[..4]);
    }

    #[test]
    fn a_backup_is_kept_if_one_rule_wants_it_and_the_newest_always() {
        let rules = Retention { last: Some(2), daily: Some(2), yearly: Some(2), ..Retention::default() };
        assert_eq!(kept(rules, &TIMES), [TIMES[0], TIMES[1], TIMES[3], TIMES[8]]);
        for nothing in
            [Retention { last: Some(0), ..Retention::default() }, Retention { daily: Some(0), ..Retention::default() }]
        {
            assert_eq!(kept(nothing, &TIMES), TIMES[..1]);
        }
        assert!(kept(rules, &[]).is_empty());
    }

    #[test]
    fn the_newest_backup_with_credentials_stays() {
        let mut backups = backups(&["2026-11-28 12:00", "2026-11-27 12:00", "2026-11-26 12:00"]);
        for backup in &mut backups[1..] {
            let credentials = PackedCredentials { files: 1, compressed_size: 1, compressed_sha256: "ab".into() };
            backup.manifest.as_mut().unwrap().credentials = Some(credentials);
        }
        let unwanted = Retention { last: Some(1), ..Retention::default() }.unwanted(backups);
        let names: Vec<&str> = unwanted.iter().map(|backup| &*backup.name).collect();
        assert_eq!(names, ["2026-11-26 12:00"]);
    }

    #[test]
    fn a_clock_that_is_ahead_removes_nothing_that_is_recent() {
        let week = Retention { within: Some(Duration::from_secs(7 * 24 * 3600)), ..Retention::default() };
        let ahead = ["2026-12-28 12:00", "2026-11-28 12:00", "2026-11-22 12:00", "2026-11-20 12:00"];
        assert_eq!(kept(week, &ahead), ahead[..3]);
        // When the clock is right again, the one from the future stays, and takes nobody's place.
        let right =
            ["2026-11-28 13:00", "2030-01-01 00:00", "2026-11-28 12:00", "2025-12-31 00:00", "2024-12-31 00:00"];
        let years = Retention { yearly: Some(2), ..Retention::default() };
        assert_eq!(kept(years, &right), [right[0], right[1], right[3]]);
    }

    #[test]
    fn what_a_rule_kept_stays_until_as_many_periods_have_passed() {
        // One backup each night for a year, with the rules applied each night: seven days, then Sundays, then ends of months.
        let rules = Retention { daily: Some(7), weekly: Some(4), monthly: Some(12), ..Retention::default() };
        let mut there: Vec<String> = Vec::new();
        let first = chrono::NaiveDate::from_ymd_opt(2025, 11, 28).unwrap();
        for day in first.iter_days().take(366) {
            there.insert(0, format!("{} 03:00", day.format("%Y-%m-%d")));
            let times: Vec<&str> = there.iter().map(String::as_str).collect();
            there = kept(rules, &times);
        }
        let expected_months =
            ["10-31", "09-30", "08-31", "07-31", "06-30", "05-31", "04-30", "03-31", "02-28", "01-31"];
        let days = ["11-28", "11-27", "11-26", "11-25", "11-24", "11-23", "11-22"];
        // Besides the two Sundays among the days.
        let weeks = ["11-15", "11-08"];
        let expected = days.iter().chain(&weeks).chain(&expected_months).map(|day| format!("2026-{day} 03:00"));
        let expected: Vec<String> = expected.chain(["2025-12-31 03:00".to_owned()]).collect();
        assert_eq!(there, expected);
    }
}
