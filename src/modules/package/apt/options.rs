//! Arguments as apt-get's options.

use super::{Apt, AptState};

impl Apt {
    pub(super) fn install_words(&self) -> Vec<&'static str> {
        let flags = [
            (self.only_upgrade, "--only-upgrade"),
            (self.allow_downgrade, "--allow-downgrades"),
            (self.allow_unauthenticated, "--allow-unauthenticated"),
            (self.allow_change_held_packages, "--allow-change-held-packages"),
            (self.force, "--force-yes"),
            (self.state == AptState::Fixed, "--fix-broken"),
            (self.fail_on_autoremove, "--no-remove"),
            (self.install_recommends == Some(true), "--install-recommends"),
            (self.install_recommends == Some(false), "--no-install-recommends"),
        ];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag);
        ["install"].into_iter().chain(flags).collect()
    }

    pub(super) fn upgrade_words(&self, verb: &'static str) -> Vec<&'static str> {
        let flags = [
            (self.fail_on_autoremove, "--no-remove"),
            (self.allow_unauthenticated, "--allow-unauthenticated"),
            (self.allow_downgrade, "--allow-downgrades"),
            (self.force, "--force-yes"),
        ];
        [verb].into_iter().chain(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag)).collect()
    }

    pub(super) fn remove_words(&self) -> Vec<&'static str> {
        let flags = [
            (self.purge, "--purge"),
            (self.allow_change_held_packages, "--allow-change-held-packages"),
            (self.autoremove, "--auto-remove"),
        ];
        ["remove"].into_iter().chain(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag)).collect()
    }

    pub(super) fn autoremove_words(&self) -> Vec<&'static str> {
        if self.purge { vec!["autoremove", "--purge"] } else { vec!["autoremove"] }
    }

    pub(super) fn argv(&self, words: &[&str], names: &[String]) -> Vec<String> {
        let mut argv = vec!["apt-get".to_owned(), "-y".to_owned()];
        for option in self.dpkg_options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            argv.extend(["-o".to_owned(), format!("Dpkg::Options::=--{option}")]);
        }
        argv.extend(["-o".to_owned(), format!("DPkg::Lock::Timeout={}", self.lock_timeout)]);
        if let Some(release) = &self.default_release {
            argv.extend(["-t".to_owned(), release.clone()]);
        }
        argv.extend(words.iter().map(|word| (*word).to_owned()));
        if !names.is_empty() {
            argv.push("--".to_owned());
            argv.extend(names.iter().cloned());
        }
        argv
    }
}
