//! The admin's kubeconfig of a deployment: as it is, or merged into the kubeconfig of a person. Nothing is written here.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::{Error, members};
use crate::launch::options;
use crate::resource::{self, Deployment, Resource};
use crate::settings::Settings;
use crate::value::{ProcessEnvironment, Value, read, yaml};

/// What a face asks for.
pub struct Request<'a> {
    /// The file with the KarmadaDeployment.
    pub file: &'a Path,
    pub settings: &'a Settings,
    /// The kubeconfig to merge it into, which need not exist. None: the admin's kubeconfig alone.
    pub merge_into: Option<&'a Path>,
}

/// A kubeconfig to print or write.
#[derive(Debug, PartialEq, Eq)]
pub struct Kubeconfig {
    /// The name of the admin's context in it: that of the deployment.
    pub context: String,
    pub text: String,
}

/// Why there is no kubeconfig to print or write. Nothing of a kubeconfig is quoted.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    #[error("{} has no KarmadaDeployment", file.display())]
    NoDeployment { file: PathBuf },
    #[error("{} has several KarmadaDeployments; expected one", file.display())]
    SeveralDeployments { file: PathBuf },
    #[error("{name} has no kubeconfig yet: windlass writes {} when it installs the control plane", path.display())]
    NotInstalled { name: String, path: PathBuf },
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{} is not a valid kubeconfig", path.display())]
    Invalid { path: PathBuf },
    #[error("{}: expected one entry in {list}", path.display())]
    NotOneEntry { path: PathBuf, list: &'static str },
    #[error("{} was not changed: found several entries named {name} in {list}", path.display())]
    SeveralEntries { path: PathBuf, name: String, list: &'static str },
}

/// The lists of a kubeconfig, with what an entry of each holds.
const LISTS: [(&str, &str); 3] = [("clusters", "cluster"), ("users", "user"), ("contexts", "context")];

/// Reads the admin's kubeconfig, with cluster, user and context named after the deployment.
///
/// # Errors
/// The file does not describe one deployment, the control plane is not installed, or a kubeconfig is not valid.
pub fn read_admin_kubeconfig(request: &Request<'_>) -> Result<Kubeconfig, Error> {
    let deployment = deployment(request)?;
    let path = members::admin_kubeconfig(&deployment.credentials()?, &deployment.spec.instance);
    if !path.is_file() {
        return Err(KubeconfigError::NotInstalled { name: deployment.name.clone(), path }.into());
    }
    let admin = named(&parsed(&path)?, &path, &deployment.name)?;
    let kubeconfig = match request.merge_into {
        Some(own) if own.exists() => merged(parsed(own)?, own, &admin, &deployment.name)?,
        _ => admin,
    };
    let value: Value = serde_json::from_value(kubeconfig).expect("a value takes any JSON");
    Ok(Kubeconfig { context: deployment.name.clone(), text: yaml::emit(&value, &yaml::YamlStyle::default()) })
}

/// Where kubectl would write: the first file of KUBECONFIG, or else ~/.kube/config. A link is followed.
pub fn own_path(around: &ProcessEnvironment) -> Option<PathBuf> {
    let path = around.kubeconfig_files().into_iter().next()?;
    Some(std::fs::canonicalize(&path).unwrap_or(path))
}

fn deployment(request: &Request<'_>) -> Result<Deployment, Error> {
    let resources = resource::load_resources(request.file, &options::allowed(request.settings)?)?.into_iter();
    let mut found = resources.filter_map(|resource| match resource {
        Resource::KarmadaDeployment(deployment) => Some(deployment),
        _ => None,
    });
    let file = || request.file.to_owned();
    match (found.next(), found.next()) {
        (Some(deployment), None) => Ok(deployment),
        (None, _) => Err(KubeconfigError::NoDeployment { file: file() }.into()),
        _ => Err(KubeconfigError::SeveralDeployments { file: file() }.into()),
    }
}

/// A kubeconfig as JSON.
fn parsed(path: &Path) -> Result<Json, KubeconfigError> {
    let invalid = || KubeconfigError::Invalid { path: path.to_owned() };
    let text = read::read_text(path).map_err(|error| KubeconfigError::Unreadable { path: path.to_owned(), error })?;
    let documents = yaml::plain_values(&text).map_err(|_| invalid())?;
    let json = match &documents[..] {
        [] => return Ok(json!({})),
        [document] if document.is_none() => return Ok(json!({})),
        [document] => serde_json::to_value(document).map_err(|_| invalid())?,
        _ => return Err(invalid()),
    };
    let is_list = |name: &str| json.get(name).is_none_or(|list| list.is_null() || list.is_array());
    let version = json.get("apiVersion").is_none_or(|version| version == "v1");
    if !json.is_object() || !version || !LISTS.iter().all(|(name, _)| is_list(name)) {
        return Err(invalid());
    }
    Ok(json)
}

/// The admin's kubeconfig with cluster, user and context named after the deployment.
fn named(admin: &Json, path: &Path, name: &str) -> Result<Json, KubeconfigError> {
    let only = |list: &'static str, what: &str| {
        let entry = admin[list].as_array().filter(|entries| entries.len() == 1).map(|entries| &entries[0][what]);
        let entry = entry.filter(|entry| entry.is_object()).cloned();
        entry.ok_or_else(|| KubeconfigError::NotOneEntry { path: path.to_owned(), list })
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

/// A kubeconfig with the entries of `admin` in it; entries of other names stay as they are, and so does the current context if
/// there is one.
fn merged(mut own: Json, path: &Path, admin: &Json, name: &str) -> Result<Json, KubeconfigError> {
    for (list, what) in LISTS {
        if own[list].is_null() {
            own[list] = json!([]);
        }
        let entries = own[list].as_array_mut().expect("`parsed` accepts lists only");
        match entries.iter_mut().filter(|entry| entry["name"] == *name).collect::<Vec<_>>()[..] {
            [] => entries.push(admin[list][0].clone()),
            [ref mut entry] => entry[what] = admin[list][0][what].clone(),
            _ => return Err(KubeconfigError::SeveralEntries { path: path.to_owned(), name: name.to_owned(), list }),
        }
    }
    for key in ["apiVersion", "kind", "current-context"] {
        if own[key].as_str().is_none_or(str::is_empty) {
            own[key] = admin[key].clone();
        }
    }
    Ok(own)
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
        let path = Path::new("config");
        let own = json!({
            "apiVersion": "v1", "kind": "Config", "preferences": {"colors": true},
            "clusters": [{"name": "theirs", "cluster": {"server": "https://b", "extensions": [1]}}],
            "users": [{"name": "admin", "user": {"token": "t"}}],
            "contexts": null, "current-context": "theirs",
        });
        let ours = named(&admin(), path, "production").unwrap();
        let once = merged(own.clone(), path, &ours, "production").unwrap();
        for (list, at) in [("clusters", 0), ("users", 0)] {
            assert_eq!(once[list][at], own[list][at]);
        }
        assert_eq!(once["preferences"], own["preferences"]);
        assert_eq!(once["current-context"], "theirs");
        assert_eq!(
            once["contexts"],
            json!([{"name": "production", "context": {"cluster": "production", "user": "production"}}])
        );
        assert_eq!(merged(once.clone(), path, &ours, "production").unwrap(), once, "a second time changes nothing");
        let mut twice = once;
        let entry = twice["users"][1].clone();
        twice["users"].as_array_mut().unwrap().push(entry);
        let error = merged(twice, path, &ours, "production").unwrap_err().to_string();
        assert_eq!(error, "config was not changed: found several entries named production in users");
    }

    #[test]
    fn what_is_no_kubeconfig_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        for text in ["- a\n", "clusters: {}\n", "a: [", "apiVersion: v2\n", "a: 1\n---\nb: 2\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(parsed(&path).is_err(), "{text}");
        }
        std::fs::write(&path, "").unwrap();
        assert_eq!(parsed(&path).unwrap(), json!({}));
    }

    const DEPLOYMENT: &str = "
apiVersion: windlass.dev/v1alpha1
kind: KarmadaDeployment
metadata: {name: NAME}
spec:
  bundle: karmada.tar.zst
  hosts: [{name: cp-1, address: 192.0.2.11}]
  controlPlane: {hosts: [cp-1]}
  etcd: {managed: {hosts: [cp-1]}}
";

    #[test]
    fn a_request_gives_the_admin_s_kubeconfig_or_says_why_there_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let (file, own) = (directory.path().join("karmada.yaml"), directory.path().join("config"));
        let around = ProcessEnvironment { directory: directory.path().to_owned(), ..ProcessEnvironment::default() };
        let settings = Settings::load(&around).unwrap();
        let of =
            |own: Option<&Path>| read_admin_kubeconfig(&Request { file: &file, settings: &settings, merge_into: own });
        let refused = |own: Option<&Path>| of(own).unwrap_err().to_string();
        let deployment = |name: &str| DEPLOYMENT.replace("NAME", name);
        std::fs::write(&file, "").unwrap();
        assert!(refused(None).ends_with("karmada.yaml has no KarmadaDeployment"), "{}", refused(None));
        std::fs::write(&file, deployment("one") + "---" + &deployment("two")).unwrap();
        assert!(refused(None).contains("has several KarmadaDeployments"), "{}", refused(None));
        std::fs::write(&file, deployment("production")).unwrap();
        assert!(refused(None).starts_with("production has no kubeconfig yet: "), "{}", refused(None));
        let credentials = directory.path().join("credentials");
        std::fs::create_dir(&credentials).unwrap();
        std::fs::write(credentials.join("admin.kubeconfig"), admin().to_string()).unwrap();
        let alone = of(None).unwrap();
        assert_eq!(alone.context, "production");
        assert_eq!(of(Some(&own)).unwrap(), alone, "there is nothing to merge it into yet");
        std::fs::write(&own, "users: [{name: theirs, user: {}}]\n").unwrap();
        let both = of(Some(&own)).unwrap();
        std::fs::write(&own, &both.text).unwrap();
        let users = parsed(&own).unwrap()["users"].clone();
        assert_eq!(users[0], json!({"name": "theirs", "user": {}}));
        assert_eq!(users[1], json!({"name": "production", "user": {"client-key-data": "a2V5"}}));
        std::fs::write(&own, "users: {}\n").unwrap();
        assert_eq!(refused(Some(&own)), format!("{} is not a valid kubeconfig", own.display()));
    }

    #[test]
    fn the_own_kubeconfig_is_the_first_of_kubeconfig_or_that_of_the_home_directory() {
        let around = |named: &str, home: Option<&str>| ProcessEnvironment {
            variables: [("KUBECONFIG".to_owned(), named.to_owned())].into(),
            directory: "/nonexistent/work".into(),
            home: home.map(PathBuf::from),
            ..ProcessEnvironment::default()
        };
        let path = |named, home| own_path(&around(named, home)).map(|path| path.display().to_string());
        assert_eq!(path(":/nonexistent/a:/b", Some("/nonexistent/home")).unwrap(), "/nonexistent/a");
        assert_eq!(path("a", None).unwrap(), "/nonexistent/work/a");
        assert_eq!(path("", Some("/nonexistent/home")).unwrap(), "/nonexistent/home/.kube/config");
        assert_eq!(path("", None), None);
    }
}
