//! `windlass kubeconfig`: the admin's kubeconfig of a deployment, printed or merged into the user's own.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::{CliError, ExitCode, files, note, print};
use crate::deployment::kubeconfig::{self, Request};

#[derive(Debug, Args)]
pub(super) struct KubeconfigArgs {
    /// The KarmadaDeployment
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: PathBuf,
    /// Merge it into your own kubeconfig (KUBECONFIG, or else ~/.kube/config), under the deployment's name
    #[arg(long)]
    merge: bool,
}

/// Prints or merges.
pub(super) fn write_kubeconfig(args: &KubeconfigArgs) -> Result<ExitCode, CliError> {
    let settings = super::settings()?;
    let own = match args.merge {
        true => Some(kubeconfig::own_path(&settings.surroundings).context("neither KUBECONFIG nor HOME is set")?),
        false => None,
    };
    let found = kubeconfig::read_admin_kubeconfig(&Request {
        file: &args.file,
        settings: &settings,
        merge_into: own.as_deref(),
    })?;
    let Some(own) = own else {
        print(found.text)?;
        return Ok(ExitCode::Ok);
    };
    if let Some(directory) = own.parent() {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    }
    files::write_file(&own, found.text.as_bytes())?;
    let name = &found.context;
    note(&format!("added the context {name} to {}: kubectl --context {name} get clusters", own.display()));
    Ok(ExitCode::Ok)
}

fn deployment(file: &Path) -> Result<Deployment, CliError> {
    let mut found =
        resource::load_resources(file, &options::allowed(&super::settings()?)?)?.into_iter().filter_map(|resource| {
            match resource {
                Resource::KarmadaDeployment(deployment) => Some(deployment),
                _ => None,
            }
        });
    match (found.next(), found.next()) {
        (Some(deployment), None) => Ok(deployment),
        (None, _) => Err(anyhow!("{} has no KarmadaDeployment", file.display()).into()),
        _ => Err(anyhow!("{} has several KarmadaDeployments; expected one", file.display()).into()),
    }
}

/// A kubeconfig as JSON. What is wrong with it is said without quoting any of it.
fn parsed(path: &Path) -> anyhow::Result<Json> {
    let unusable = || anyhow!("{} is not a valid kubeconfig", path.display());
    let text = read::read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
    let documents = yaml::plain_values(&text).map_err(|_| unusable())?;
    let json = match &documents[..] {
        [] => return Ok(json!({})),
        [document] if document.is_none() => return Ok(json!({})),
        [document] => serde_json::to_value(document).map_err(|_| unusable())?,
        _ => return Err(unusable()),
    };
    let is_list = |name: &str| json.get(name).is_none_or(|list| list.is_null() || list.is_array());
    let version = json.get("apiVersion").is_none_or(|version| version == "v1");
    if !json.is_object() || !version || !LISTS.iter().all(|(name, _)| is_list(name)) {
        return Err(unusable());
    }
    Ok(json)
}

/// The admin's kubeconfig with cluster, user and context named after the deployment.
fn named(admin: &Json, name: &str) -> anyhow::Result<Json> {
    let only = |list: &str, what: &str| {
        let entry = admin[list].as_array().filter(|entries| entries.len() == 1).map(|entries| &entries[0][what]);
        entry.filter(|entry| entry.is_object()).cloned().ok_or_else(|| anyhow!("expected one entry in {list}"))
    };
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": only("clusters", "cluster")?}],
        "users": [{"name": name, "user": only("users", "user")?}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }))
}

/// The own kubeconfig with the entries of `admin` in it; entries of other names stay as they are, and so does the
/// current context if there is one.
fn merged(mut own: Json, admin: &Json) -> anyhow::Result<Json> {
    let name = &admin["current-context"];
    for (list, what) in LISTS {
        if own[list].is_null() {
            own[list] = json!([]);
        }
        let entries = own[list].as_array_mut().expect("checked when it was read");
        match entries.iter_mut().filter(|entry| entry["name"] == *name).collect::<Vec<_>>()[..] {
            [] => entries.push(admin[list][0].clone()),
            [ref mut entry] => entry[what] = admin[list][0][what].clone(),
            _ => bail!("found several entries named {name} in {list}"),
        }
    }
    for key in ["apiVersion", "kind", "current-context"] {
        if own[key].as_str().is_none_or(str::is_empty) {
            own[key] = admin[key].clone();
        }
    }
    Ok(own)
}

fn emitted(kubeconfig: &Json) -> anyhow::Result<String> {
    let value: Value = serde_json::from_value(kubeconfig.clone())?;
    Ok(yaml::emit(&value, &yaml::YamlStyle::default()))
}

/// Where kubectl would write: the first file of KUBECONFIG, or else ~/.kube/config. A link is followed.
fn own_path() -> anyhow::Result<PathBuf> {
    let around = ProcessEnvironment::of_process();
    let named = around.variable("KUBECONFIG").unwrap_or_default();
    let named = std::env::split_paths(named).find(|path| !path.as_os_str().is_empty());
    let home = around.home.map(|home| home.join(".kube/config"));
    let path = named.or(home).context("neither KUBECONFIG nor HOME is set")?;
    Ok(std::fs::canonicalize(&path).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admin() -> Json {
        json!({
            "clusters": [{"name": "karmada", "cluster": {"server": "https://a"}}],
            "users": [{"name": "admin", "user": {"client-key-data": "a2V5"}}],
            "contexts": [{"name": "karmada", "context": {"cluster": "karmada", "user": "admin"}}],
        })
    }

    #[test]
    fn entries_of_others_stay_and_ours_are_named_after_the_deployment() {
        let own = json!({
            "apiVersion": "v1", "kind": "Config", "preferences": {"colors": true},
            "clusters": [{"name": "theirs", "cluster": {"server": "https://b", "extensions": [1]}}],
            "users": [{"name": "admin", "user": {"token": "t"}}],
            "contexts": null, "current-context": "theirs",
        });
        let ours = named(&admin(), "production").unwrap();
        let once = merged(own.clone(), &ours).unwrap();
        for (list, at) in [("clusters", 0), ("users", 0)] {
            assert_eq!(once[list][at], own[list][at]);
        }
        assert_eq!(once["preferences"], own["preferences"]);
        assert_eq!(once["current-context"], "theirs");
        assert_eq!(
            once["contexts"],
            json!([{"name": "production", "context": {"cluster": "production", "user": "production"}}])
        );
        assert_eq!(merged(once.clone(), &ours).unwrap(), once, "a second time changes nothing");
    }

    #[test]
    fn what_is_no_kubeconfig_is_refused_and_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        for text in ["- a\n", "clusters: {}\n", "a: [", "apiVersion: v2\n", "a: 1\n---\nb: 2\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(parsed(&path).is_err(), "{text}");
        }
        std::fs::write(&path, "").unwrap();
        assert_eq!(parsed(&path).unwrap(), json!({}));
    }
}
