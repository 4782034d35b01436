//! What the settings say of inventories, playbooks and runs.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crate::bundle::RequiredSigners;
use crate::connection::Confinement;
use crate::engine::{self, FactCache, Gathering};
use crate::inventory::InventoryOptions;
use crate::playbook::load::{HookFiles, PlayDefaults};
use crate::playbook::{Keywords, SourceValue, Strategy};
use crate::resource::{ForeignResourceLimits, Trust};
use crate::settings::{Setting, Settings, list};
use crate::value::origin::Diagnostic;
use crate::value::yaml::{DuplicateKeys, Duplicates};
use crate::value::{HashBehaviour, Vars};

/// What the settings say of variables of one name.
pub fn hash_behaviour(settings: &Settings) -> HashBehaviour {
    match settings.text_setting(&list::HASH_BEHAVIOUR).as_deref() {
        Some("merge") => HashBehaviour::Merge,
        _ => HashBehaviour::Replace,
    }
}

/// What the settings say of all inventories.
pub fn reading(settings: &Settings) -> Result<InventoryOptions, Diagnostic> {
    Ok(InventoryOptions {
        hash_behaviour: hash_behaviour(settings),
        allowed: Arc::new(allowed(settings)?),
        duplicates: Duplicates::new(duplicate_keys(settings)),
    })
}

/// What the settings allow to foreign resources.
pub fn allowed(settings: &Settings) -> Result<ForeignResourceLimits, Diagnostic> {
    let networks = settings.given(&list::RESOURCE_NETWORKS).map(|_| settings.list_setting(&list::RESOURCE_NETWORKS));
    if let Err(text) = Confinement::new(networks.as_deref()) {
        let message = format!("invalid address or network {text:?} in resource_networks");
        let origin = settings.get(&list::RESOURCE_NETWORKS).origin.as_ref();
        return Err(Diagnostic::new(message, origin).hint("write 192.0.2.7, 10.0.0.0/24 or 2001:db8::/64"));
    }
    let paths = |setting| {
        let named = settings.list_setting(setting).into_iter();
        named.filter_map(|entry| entry.split_once('=').map(|(name, path)| (name.to_owned(), path.into()))).collect()
    };
    Ok(ForeignResourceLimits {
        documents: match settings.text_setting(&list::RESOURCE_TRUST).as_deref() {
            Some("foreign") => Trust::Foreign,
            _ => Trust::Own,
        },
        networks,
        bastions: settings.list_setting(&list::RESOURCE_BASTIONS),
        bundles: paths(&list::RESOURCE_BUNDLES),
        files: paths(&list::RESOURCE_FILES),
        hooks: paths(&list::RESOURCE_HOOKS),
        namespace: None,
        surroundings: settings.surroundings.clone(),
    })
}

/// What the settings say of how a run goes about its work.
pub fn engine(settings: &Settings) -> Result<engine::Options, Diagnostic> {
    Ok(engine::Options {
        gathering: match settings.text_setting(&list::GATHERING).as_deref() {
            Some("explicit") => Gathering::Explicit,
            Some("smart") => Gathering::Smart,
            _ => Gathering::Implicit,
        },
        hash_behaviour: hash_behaviour(settings),
        facts_apart: !settings.bool(&list::INJECT_FACTS_AS_VARS),
        missing_handlers_pass: !settings.bool(&list::ERROR_ON_MISSING_HANDLER),
        fact_cache: fact_cache(settings)?,
        poll_interval: Some(Duration::from_secs(settings.number_setting(&list::POLL_INTERVAL))),
        settings: Arc::new(named(settings)),
        config_file: settings.file.clone(),
        uploads: NonZeroUsize::new(settings.count(&list::UPLOADS)),
        signers: signers(settings)?.map(Arc::new),
        ..engine::Options::default()
    })
}

/// Whose signature the settings demand of bundles.
pub fn signers(settings: &Settings) -> Result<Option<RequiredSigners>, Diagnostic> {
    let revoked = settings.path_setting(&list::BUNDLE_REVOKED);
    let principals = settings.list_setting(&list::BUNDLE_PRINCIPALS);
    let Some(signers) = settings.path_setting(&list::BUNDLE_SIGNERS) else {
        // A person who sets one of these wants signatures to be checked.
        let others = [(&list::BUNDLE_REVOKED, revoked.is_some()), (&list::BUNDLE_PRINCIPALS, !principals.is_empty())];
        return match others.iter().find(|(_, is_set)| *is_set) {
            None => Ok(None),
            Some((setting, _)) => {
                let message = format!("{} has no effect without bundle_signers", setting.key);
                let complaint = Diagnostic::new(message, settings.get(setting).origin.as_ref());
                Err(complaint.hint("set bundle_signers to the file of the allowed signers"))
            }
        };
    };
    Ok(Some(RequiredSigners { signers, revoked, principals }))
}

/// Every setting under the names that Ansible may have for it: those of its variables of the environment, with and
/// without `DEFAULT_`.
fn named(settings: &Settings) -> Vars {
    let mut named = Vars::new();
    for setting in list::SETTINGS {
        for variable in setting.env.iter().filter_map(|name| name.strip_prefix("ANSIBLE_")) {
            let value = settings.get(setting).value.clone();
            named.insert(format!("DEFAULT_{variable}").into(), value.clone());
            named.insert(variable.into(), value);
        }
    }
    named
}

fn fact_cache(settings: &Settings) -> Result<Option<FactCache>, Diagnostic> {
    let kind = settings.get(&list::FACT_CACHING);
    if !kind.value.to_string().ends_with("jsonfile") {
        return Ok(None);
    }
    let Some(directory) = settings.path_setting(&list::FACT_CACHING_CONNECTION) else {
        let complaint = Diagnostic::new("fact_caching = jsonfile needs a directory", kind.origin.as_ref());
        return Err(complaint.hint("set fact_caching_connection to a directory"));
    };
    let seconds = settings.number_setting(&list::FACT_CACHING_TIMEOUT);
    Ok(Some(FactCache {
        directory,
        prefix: settings.text_setting(&list::FACT_CACHING_PREFIX).unwrap_or_default(),
        timeout: (seconds > 0).then(|| Duration::from_secs(seconds)),
    }))
}

/// What the settings say of plays that do not say it themselves.
pub fn play_defaults(settings: &Settings) -> PlayDefaults {
    // A setting applies to plays like a keyword, with the location where it is written.
    let keyword = |setting: &Setting| {
        let found = settings.given(setting)?;
        Some(SourceValue { value: found.value.clone(), origin: found.origin.clone()? })
    };
    PlayDefaults {
        keywords: Keywords {
            any_errors_fatal: keyword(&list::ANY_ERRORS_FATAL),
            no_log: keyword(&list::NO_LOG),
            timeout: keyword(&list::TASK_TIMEOUT),
            ..Keywords::default()
        },
        strategy: match settings.text_setting(&list::STRATEGY).as_deref() {
            Some("free") => Strategy::Free,
            Some("host_pinned") => Strategy::HostPinned,
            _ => Strategy::Linear,
        },
        force_handlers: settings.bool(&list::FORCE_HANDLERS),
        private_role_vars: settings.bool(&list::PRIVATE_ROLE_VARS),
    }
}

/// What becomes of keys that are there twice.
fn duplicate_keys(settings: &Settings) -> DuplicateKeys {
    match settings.text_setting(&list::DUPLICATE_DICT_KEY).as_deref() {
        Some("error") => DuplicateKeys::Error,
        Some("ignore") => DuplicateKeys::Ignore,
        _ => DuplicateKeys::Warn,
    }
}

/// The files of tasks that are put before and after plays and roles.
pub fn hooks(settings: &Settings) -> HookFiles {
    HookFiles {
        before_play: settings.path_setting(&list::BEFORE_PLAY),
        after_play: settings.path_setting(&list::AFTER_PLAY),
        before_role: settings.path_setting(&list::BEFORE_ROLE),
        after_role: settings.path_setting(&list::AFTER_ROLE),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::value::ProcessEnvironment;

    /// What a file of settings and variables of the environment demand of bundles.
    fn demanded(text: &str, variables: &[(&str, &str)]) -> Result<Option<RequiredSigners>, String> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ansible.cfg"), text).unwrap();
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let here = directory.path().to_owned();
        let around = ProcessEnvironment { directory: here.clone(), variables, ..ProcessEnvironment::default() };
        let engine = engine(&Settings::load(&around).unwrap()).map_err(|complaint| complaint.message)?;
        let beside = |path: &Path| path.strip_prefix(&here).unwrap_or(path).to_owned();
        Ok(engine.signers.map(|required| RequiredSigners {
            signers: beside(&required.signers),
            revoked: required.revoked.as_deref().map(beside),
            principals: required.principals.clone(),
        }))
    }

    #[test]
    fn settings_demand_signatures_of_bundles() {
        assert_eq!(demanded("[windlass]\n", &[]), Ok(None));
        let text = "[windlass]\nbundle_signers = signers\nbundle_revoked = revoked\nbundle_principals = a@x, b@x\n";
        let required = demanded(text, &[("WINDLASS_BUNDLE_REVOKED", "/etc/revoked")]).unwrap().unwrap();
        assert_eq!(required.signers, Path::new("signers"));
        assert_eq!(required.revoked.as_deref(), Some(Path::new("/etc/revoked")));
        assert_eq!(required.principals, ["a@x", "b@x"]);
        // An empty variable is none, and does not switch the demand off.
        assert!(demanded(text, &[("WINDLASS_BUNDLE_SIGNERS", "")]).unwrap().is_some());
        for alone in ["bundle_revoked = revoked", "bundle_principals = a@x"] {
            let (name, _) = alone.split_once(' ').unwrap();
            let refused = demanded(&format!("[windlass]\n{alone}\n"), &[]).unwrap_err();
            assert_eq!(refused, format!("{name} has no effect without bundle_signers"));
        }
    }
}
