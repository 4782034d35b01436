//! The times of a file: `now`, `preserve`, or a written time in the host's own time zone.

use chrono::NaiveDateTime;

use super::super::Error;
use super::super::file_attributes::Properties;
use super::steps::FileStep;
use crate::remote::{Command, Probe, Stat};
use crate::value::float;

/// Ansible's usual form of a written time.
pub(super) const FORMAT: &str = "%Y%m%d%H%M.%S";

/// What the times are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Times {
    access: Time,
    modification: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Time {
    Preserve,
    Now,
    At { seconds: i64, stamp: String },
}

impl Times {
    /// Reads the time arguments, each with its format. `touch`: what is not given is now.
    pub(super) async fn load_times(
        probe: &Probe,
        access: (Option<&str>, &str),
        modification: (Option<&str>, &str),
        touch: bool,
    ) -> Result<Times, Error> {
        Ok(Times {
            access: time(probe, "access_time", access, touch).await?,
            modification: time(probe, "modification_time", modification, touch).await?,
        })
    }

    /// What must be done to the times of a path. `stat`: None if it was made just now.
    pub(super) fn steps(&self, path: &str, stat: Option<&Stat>) -> Vec<FileStep> {
        let access = self.access.differs(stat.map(|stat| stat.atime));
        let modification = self.modification.differs(stat.map(|stat| stat.mtime));
        let touch = |which: Option<&str>, time: &Time| {
            let stamp = match time {
                Time::At { stamp, .. } => vec!["-t", stamp],
                Time::Now | Time::Preserve => Vec::new(),
            };
            let options = ["-c"].into_iter().chain(which).chain(stamp).map(str::to_owned);
            FileStep::Touch(options.collect(), path.to_owned())
        };
        if access && modification && self.access == self.modification {
            return vec![touch(None, &self.access)];
        }
        let access = access.then(|| touch(Some("-a"), &self.access));
        let modification = modification.then(|| touch(Some("-m"), &self.modification));
        access.into_iter().chain(modification).collect()
    }

    /// Adds the written times that change.
    pub(super) fn add_times(&self, properties: &mut Properties, stat: &Stat) {
        for (name, time, now) in [("atime", &self.access, stat.atime), ("mtime", &self.modification, stat.mtime)] {
            match time {
                Time::At { seconds, .. } => properties.change(name, float::whole_part(now), *seconds),
                Time::Now => properties.change(name, now, "now"),
                Time::Preserve => {}
            }
        }
    }
}

impl Time {
    fn differs(&self, now: Option<f64>) -> bool {
        match self {
            Time::Preserve => false,
            Time::Now => now.is_some(),
            // `touch -t` knows whole seconds.
            Time::At { seconds, .. } => now.is_none_or(|now| float::whole_part(now.floor()) != *seconds),
        }
    }
}

async fn time(probe: &Probe, name: &str, written: (Option<&str>, &str), touch: bool) -> Result<Time, Error> {
    let (text, format) = match written {
        (None, _) if touch => return Ok(Time::Now),
        (None | Some("preserve" | ""), _) => return Ok(Time::Preserve),
        (Some("now"), _) => return Ok(Time::Now),
        (Some(text), format) => (text, format),
    };
    let time = NaiveDateTime::parse_from_str(text, format)
        .map_err(|_| Error::failed(format!("file: {name} {text:?} does not have the form {format:?}")))?;
    // The host knows its time zone.
    let readable = time.format("%Y-%m-%d %H:%M:%S").to_string();
    let output = probe.query(&Command::program(["date", "-d", &readable, "+%s"])).await?;
    let seconds = String::from_utf8_lossy(&output.stdout).trim().parse();
    let seconds = seconds.map_err(|_| Error::failed(format!("file: the host cannot read the time {readable:?}")))?;
    Ok(Time::At { seconds, stamp: time.format("%Y%m%d%H%M.%S").to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, stamp: &str) -> Time {
        Time::At { seconds, stamp: stamp.to_owned() }
    }

    fn options(times: &Times) -> Vec<Vec<String>> {
        let options = times.steps("/x", None).into_iter().map(|step| match step {
            FileStep::Touch(options, _) => options,
            _ => panic!("not a touch"),
        });
        options.collect()
    }

    #[test]
    fn equal_times_take_one_step_and_different_ones_two() {
        let same = Times { access: at(1, "S"), modification: at(1, "S") };
        assert_eq!(options(&same), [["-c", "-t", "S"]]);
        let different = Times { access: at(1, "S"), modification: at(2, "T") };
        assert_eq!(options(&different), [["-c", "-a", "-t", "S"], ["-c", "-m", "-t", "T"]]);
        let kept = Times { access: Time::Preserve, modification: Time::Preserve };
        assert!(options(&kept).is_empty());
    }

    #[test]
    fn written_times_are_compared_by_the_second() {
        assert!(!at(5, "").differs(Some(5.9)));
        assert!(at(5, "").differs(Some(6.0)));
        assert!(Time::Now.differs(Some(5.0)));
        assert!(!Time::Preserve.differs(Some(5.0)));
    }
}
