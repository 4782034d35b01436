//! `timezone`: the host's time zone.

use serde::Deserialize;

use super::execution::quote;
use super::{Changes, Controller, Diff, Error, Module, Outcome, Plan};
use crate::remote::{Command, Probe, Remote};
use crate::value::doc::{Argument, ArgumentKind, Doc};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Timezone {
    name: String,
}

/// What a host says of its zone.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HostTimezone {
    /// Whether it knows the zone that is wanted.
    known: bool,
    /// What `/etc/localtime` points to, from the zones' directory on; empty: no zone.
    link: String,
    /// What `/etc/timezone` says; None: the host keeps no such file.
    file: Option<String>,
}

impl HostTimezone {
    fn parse(text: &str) -> HostTimezone {
        let mut found = HostTimezone::default();
        for (word, rest) in text.lines().filter_map(|line| line.split_once(' ')) {
            match word {
                "known" => found.known = true,
                "link" => {
                    found.link = rest.rsplit_once("zoneinfo/").map(|(_, zone)| zone).unwrap_or_default().to_owned()
                }
                "file" => found.file = Some(rest.trim().to_owned()),
                _ => {}
            }
        }
        found
    }

    fn is(&self, zone: &str) -> bool {
        self.link == zone && self.file.as_ref().is_none_or(|file| file == zone)
    }
}

impl Module for Timezone {
    const CHANGES: Changes = Changes::Other;
    const DOC: Doc = Doc {
        name: "timezone",
        collection: "community.general",
        summary: "Set the time zone of the host",
        arguments: &[
            Argument::new("name", ArgumentKind::Str, "The zone, as a path below /usr/share/zoneinfo").required()
        ],
        free_form: None,
        example: "\
- name: Use UTC on all hosts
  timezone:
    name: Etc/UTC
",
        returns: &[],
    };
    type Change = HostTimezone;

    async fn plan(&self, probe: &Probe, _: &Controller<'_>) -> Result<Plan<HostTimezone>, Error> {
        let zone = &self.name;
        if zone.is_empty() || zone.starts_with('/') || zone.split('/').any(|part| part == "..") || zone.contains('\n') {
            return Err(Error::failed(format!("{zone:?} is not a valid name of a zone")));
        }
        let line = format!(
            "[ -f /usr/share/zoneinfo/{} ] && echo 'known '; echo \"link $(readlink /etc/localtime)\"\n\
             if [ -f /etc/timezone ] || [ -f /etc/debian_version ]; then echo \"file $(head -n 1 /etc/timezone 2>/dev/null)\"; fi\n\
             exit 0",
            quote(zone)
        );
        let output = probe.query(&Command::shell(line)).await?;
        let found = HostTimezone::parse(&String::from_utf8_lossy(&output.stdout));
        if !found.known {
            return Err(Error::Failed {
                message: format!("the host has no time zone {zone:?}"),
                hint: Some("time zones are files below /usr/share/zoneinfo, from the package tzdata".to_owned()),
            });
        }
        if found.is(zone) {
            return Ok(Plan::Unchanged(Outcome::default()));
        }
        let diff = Diff {
            before_header: "timezone".to_owned(),
            after_header: "timezone".to_owned(),
            before: format!("{}\n", found.link),
            after: format!("{zone}\n"),
        };
        Ok(Plan::Change { diff: vec![diff], outcome: Outcome::default(), change: found })
    }

    async fn apply(&self, found: HostTimezone, remote: &Remote, _: &Controller<'_>) -> Result<Outcome, Error> {
        let file = match found.file {
            Some(_) => format!(" && echo {} >/etc/timezone", quote(&self.name)),
            None => String::new(),
        };
        // The new link takes the place of the old one at once: there is no moment without a zone.
        let link = quote(&format!("../usr/share/zoneinfo/{}", self.name));
        let line = format!("t=/etc/.localtime.$$; ln -s {link} $t && mv -Tf $t /etc/localtime{file}");
        let output = remote.run(&Command::shell(line)).await?;
        match output.code {
            0 => Ok(Outcome::default()),
            code => {
                let words = String::from_utf8_lossy(&output.stderr);
                Err(Error::failed(format!("setting the time zone failed with code {code}: {}", words.trim())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn both_places_must_say_the_zone() {
        let debian = HostTimezone::parse("known \nlink ../usr/share/zoneinfo/Etc/UTC\nfile Etc/UTC\n");
        assert!(debian.known && debian.is("Etc/UTC") && !debian.is("UTC"));
        assert!(!HostTimezone::parse("link /usr/share/zoneinfo/Etc/UTC\nfile Europe/Berlin\n").is("Etc/UTC"));
        let other = HostTimezone::parse("link /usr/share/zoneinfo/Etc/UTC\n");
        assert!(!other.known && other.is("Etc/UTC"));
        assert!(!HostTimezone::parse("link \nfile Etc/UTC\n").is("Etc/UTC"));
    }

    #[tokio::test]
    async fn a_zone_that_is_none_is_refused() {
        let bench = Bench::new().await;
        assert!(bench.failure("timezone: {name: Mars/Olympus}").await.contains("has no time zone"));
        for wrong in ["/etc/passwd", "../../etc/passwd"] {
            assert!(bench.failure(&format!("timezone: {{name: {wrong}}}")).await.contains("is not a valid name"));
        }
        bench.close().await;
    }
}
