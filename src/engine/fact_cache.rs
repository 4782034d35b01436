//! Facts kept from run to run: a JSON file per host, in the form of Ansible's `jsonfile`, so that both can read it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minijinja::value::Serde;
use tokio::sync::mpsc::UnboundedSender;

use super::host::HostVars;
use super::{Event, FactCache, TimedEvent};
use crate::value::{ProcessEnvironment, Value, Vars};

/// Says that a host's facts were gathered, not only set; what `gathering: smart` asks for.
const GATHERED: &str = "_ansible_facts_gathered";

/// The files of a cache. A failure to read or write is a warning and does not end the run.
#[derive(Debug)]
pub(super) struct Cache {
    place: FactCache,
    events: UnboundedSender<TimedEvent>,
}

impl Cache {
    /// Makes the directory, for its owner alone, unless it is there.
    ///
    /// # Errors
    /// It cannot be made, or another user may have written the files in it: the message names it.
    pub(super) fn open_cache(
        place: FactCache,
        events: UnboundedSender<TimedEvent>,
        around: &ProcessEnvironment,
    ) -> Result<Cache, String> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&place.directory);
        let cannot =
            |error| format!("cannot create the directory {} of the fact cache: {error}", place.directory.display());
        made.map_err(cannot)?;
        // Facts are variables of all that a run does.
        if let Some(doubt) = around.doubt_about(&place.directory) {
            return Err(format!(
                "refusing to use the fact cache, as other users may have written it: {doubt}; \
                 choose another directory, or change its owner or mode"
            ));
        }
        Ok(Cache { place, events })
    }

    /// What is known of a host; None if there is no file, or one too old.
    pub(super) fn cached_facts(&self, host: &str) -> Option<HostVars> {
        let path = self.path(host)?;
        let age = fs::metadata(&path).ok()?.modified().ok()?.elapsed().unwrap_or_default();
        if self.place.timeout.is_some_and(|limit| age > limit) {
            return None;
        }
        let read = fs::read(&path).map_err(|error| error.to_string()).and_then(|text| parse(&text));
        read.map_err(|reason| self.warn(&format!("cannot use the fact cache {}: {reason}", path.display()))).ok()
    }

    /// Writes the facts of a host, whole or not at all, for their owner alone.
    pub(super) fn store_facts(&self, host: &str, vars: &HostVars) {
        let Some(path) = self.path(host) else { return };
        if let Err(error) = self.replace(&path, vars) {
            self.warn(&format!("cannot write the fact cache {}: {error}", path.display()));
        }
    }

    /// Forgets a host.
    pub(super) fn forget_host(&self, host: &str) {
        let Some(path) = self.path(host) else { return };
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            self.warn(&format!("cannot remove the fact cache {}: {error}", path.display()));
        }
    }

    /// None: no file may have this name.
    fn path(&self, host: &str) -> Option<PathBuf> {
        let name = format!("{}{host}", self.place.prefix);
        let unfit = name.contains(['/', '\0']) || matches!(name.as_str(), "" | "." | "..");
        (!unfit).then(|| self.place.directory.join(name))
    }

    fn replace(&self, path: &Path, vars: &HostVars) -> std::io::Result<()> {
        let mut kept: Vars = Vars::clone(&vars.facts);
        // It is made of the others.
        kept.shift_remove("ansible_facts");
        if vars.gathered {
            kept.insert(GATHERED.into(), Value::from(true));
        }
        let mut file = tempfile::Builder::new().prefix(".windlass.").tempfile_in(&self.place.directory)?;
        serde_json::to_writer(&mut file, &kept)?;
        file.flush()?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    fn warn(&self, words: &str) {
        #[expect(clippy::let_underscore_must_use, reason = "the report may have ended already")]
        let _ = self.events.send(Event::Warning(words.to_owned()).into());
    }
}

fn parse(text: &[u8]) -> Result<HostVars, String> {
    let read: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(text).map_err(|error| format!("it is not a JSON object: {error}"))?;
    let mut vars = HostVars::default();
    let mut facts = Vars::new();
    for (name, value) in &read {
        match name.as_str() {
            GATHERED => vars.gathered = value.as_bool() == Some(true),
            "ansible_facts" => {}
            name => _ = facts.insert(Arc::from(name), Value::from(Serde(value.clone()))),
        }
    }
    vars.add_facts(facts);
    Ok(vars)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    fn cache(directory: &Path, timeout: Option<Duration>) -> (Cache, UnboundedReceiver<TimedEvent>) {
        let (sender, receiver) = unbounded_channel();
        let place = FactCache { directory: directory.join("a/b"), prefix: "p_".into(), timeout };
        (Cache::open_cache(place, sender, &ProcessEnvironment::default()).unwrap(), receiver)
    }

    fn facts() -> HostVars {
        let mut vars = HostVars { gathered: true, ..HostVars::default() };
        let list = Value::from(vec!["{{ 1 + 1 }}", "b"]);
        vars.add_facts(Vars::from([("fact".into(), list), ("plain".into(), Value::from(7))]));
        vars
    }

    #[test]
    fn facts_come_back_as_they_were_and_only_their_owner_may_read_them() {
        let scratch = tempfile::tempdir().unwrap();
        let (cache, _) = cache(scratch.path(), Some(Duration::from_secs(60)));
        cache.store_facts("h1", &facts());
        let mode = |path: &str| fs::metadata(scratch.path().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("a/b"), mode("a/b/p_h1")), (0o700, 0o600));
        let back = cache.cached_facts("h1").unwrap();
        assert!(back.gathered);
        assert_eq!(back.facts, facts().facts);
        cache.forget_host("h1");
        assert!(cache.cached_facts("h1").is_none());
        assert_eq!(fs::read_dir(scratch.path().join("a/b")).unwrap().count(), 0, "something is left");
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a/b");
        let opened = || {
            let place = FactCache { directory: path.clone(), prefix: String::new(), timeout: None };
            Cache::open_cache(place, unbounded_channel().0, &ProcessEnvironment::default()).map(drop)
        };
        opened().unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let told = opened().unwrap_err();
        assert!(told.contains("every user can write to ") && told.contains("a/b"), "{told}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        opened().unwrap();
    }

    #[test]
    fn facts_that_are_too_old_are_not_read() {
        let scratch = tempfile::tempdir().unwrap();
        let (short, _) = cache(scratch.path(), Some(Duration::from_millis(10)));
        short.store_facts("h1", &facts());
        std::thread::sleep(Duration::from_millis(30));
        assert!(short.cached_facts("h1").is_none());
        let (endless, _) = cache(scratch.path(), None);
        assert!(endless.cached_facts("h1").is_some());
    }

    #[test]
    fn a_broken_file_is_reported_and_a_name_never_leads_out_of_the_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let (cache, mut events) = cache(scratch.path(), None);
        fs::write(scratch.path().join("a/b/p_h1"), "{").unwrap();
        assert!(cache.cached_facts("h1").is_none());
        let Ok(TimedEvent { event: Event::Warning(words), .. }) = events.try_recv() else { panic!("nothing was told") };
        assert!(words.contains("p_h1: it is not a JSON object: "), "{words}");
        cache.store_facts("x/../../y", &facts());
        assert!(!scratch.path().join("y").exists() && !scratch.path().join("a/y").exists());
    }
}
