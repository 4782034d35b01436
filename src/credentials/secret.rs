//! The credentials of a deployment in a Secret of its namespace. It has a finalizer: a user who deletes it by mistake does not lose
//! the certificate authorities. It is replaced only as it was read, so of two runs the second to write is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions};
use kube::config::Kubeconfig;

use super::entries::{self, CredentialFile, CredentialFiles, FileState, PRIVATE};
use super::scratch::Scratch;
use crate::kubernetes::{
    CREDENTIALS_TYPE, Cluster, LiveName, error_text, is_absent, limited, one_segment, outside_reference,
};
use crate::template::wait_for;
use crate::value::mutex::Mutex;
use crate::value::vault;

/// Keeps the Secret until `windlass credentials delete` takes it away.
const FINALIZER: &str = "windlass.dev/credentials";

/// The modes of files that are not private: JSON, `{"KEY": "0644"}`.
const MODES: &str = "windlass.dev/modes";

/// The name of the deployment, as a label.
const DEPLOYMENT: &str = "windlass.dev/deployment";

/// What the API server takes (`MaxSecretSize`), in bytes.
const MOST: usize = 1024 * 1024;

/// How long to wait before each attempt to write, in seconds.
const PAUSES: [u64; 6] = [0, 1, 2, 4, 8, 15];

/// The credentials of one deployment in the API.
#[derive(Debug)]
pub struct SecretStore {
    cluster: Cluster,
    /// What `kube:` was followed by, for hints.
    asked: String,
    namespace: String,
    deployment: String,
    /// Where an older windlass kept them.
    earlier: PathBuf,
    open: tokio::sync::Mutex<Option<OpenStore>>,
    /// The path of the directory, once there is one.
    pub(super) opened: OnceLock<String>,
    /// What a person should know, once.
    pub(super) warning: Mutex<Option<String>>,
}

/// The files of a Secret in a directory.
struct OpenStore {
    directory: Scratch,
    /// As it was read. None: there is none yet.
    secret: Option<Secret>,
    files: CredentialFiles,
    states: Vec<FileState>,
}

impl std::fmt::Debug for OpenStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenStore").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl SecretStore {
    /// Nothing is read yet. `asked`: as `kube:` names the deployment. `earlier`: the directory that an older windlass used.
    pub fn of_deployment(cluster: Cluster, asked: &str, live: &LiveName, earlier: PathBuf) -> SecretStore {
        let LiveName { namespace, name: deployment, .. } = live.clone();
        SecretStore {
            cluster,
            asked: asked.to_owned(),
            namespace,
            deployment,
            earlier,
            open: tokio::sync::Mutex::default(),
            opened: OnceLock::new(),
            warning: Mutex::default(),
        }
    }

    /// The Secret's name.
    fn name(&self) -> String {
        format!("{}-credentials", self.deployment)
    }

    /// The Secret, in a person's words.
    pub fn place(&self) -> String {
        format!("the Secret {}/{}", self.namespace, self.name())
    }

    /// See [`super::Credentials::files_directory`].
    pub(super) fn files_directory(&self) -> Result<PathBuf, String> {
        wait_for(async {
            let mut open = self.open.lock().await;
            if open.is_none() {
                let store = self.open().await?;
                self.opened.get_or_init(|| store.directory.path().display().to_string());
                *open = Some(store);
            }
            Ok(open.as_ref().expect("it was set above").directory.path().to_owned())
        })?
    }

    async fn open(&self) -> Result<OpenStore, String> {
        let (secret, files) = self.read_secret().await?;
        if secret.is_none() {
            self.refuse_earlier()?;
        }
        let failed = |error: std::io::Error| format!("cannot write {} to a directory: {error}", self.place());
        let directory = Scratch::make(&self.cluster.around).map_err(failed)?;
        entries::write_files(directory.path(), &files).map_err(failed)?;
        let states = entries::states(directory.path()).map_err(failed)?;
        *self.warning.lock() = self.deletion_warning(secret.as_ref());
        Ok(OpenStore { directory, secret, files, states })
    }

    /// The Secret and its files. None: there is no such Secret.
    ///
    /// # Errors
    /// One line that says why it cannot be read, or is not one of ours.
    pub async fn read_secret(&self) -> Result<(Option<Secret>, CredentialFiles), String> {
        let read = async {
            let api = self.api().await?;
            match limited(async { Ok(api.get(&self.name()).await) }).await? {
                Ok(secret) => {
                    let files = files_of(&secret)?;
                    Ok((Some(secret), files))
                }
                Err(error) if is_absent(&error) => Ok((None, CredentialFiles::new())),
                Err(error) => Err(error_text(&error)),
            }
        };
        read.await.map_err(|why: String| format!("cannot read {}: {why}", self.place()))
    }

    /// A warning, if the Secret was deleted: only its finalizer keeps it.
    pub fn deletion_warning(&self, secret: Option<&Secret>) -> Option<String> {
        secret?.metadata.deletion_timestamp.as_ref()?;
        Some(format!(
            "{} was deleted, and only its finalizer keeps it: to create it again, export it with windlass credentials export, then \
             import that with windlass credentials import --replace",
            self.place()
        ))
    }

    /// Credentials that an older windlass kept in a directory must not be replaced by new ones.
    fn refuse_earlier(&self) -> Result<(), String> {
        let earlier = &self.earlier;
        let files = entries::states(earlier).unwrap_or_default();
        match files.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "there is no {}, but {} has credentials of this deployment: import them with windlass credentials import \
                 -f kube:{} {}, or move them away",
                self.place().trim_start_matches("the "),
                earlier.display(),
                self.asked,
                earlier.display()
            )),
        }
    }

    /// See [`super::Credentials::save`].
    pub(super) async fn save(&self) -> Result<(), String> {
        let mut open = self.open.lock().await;
        let Some(open) = open.as_mut() else { return Ok(()) };
        let failed = |why: String| format!("cannot save the credentials to {}: {why}", self.place());
        let directory = open.directory.path();
        if !open.directory.is_there() {
            return Err(failed(format!("another program has removed files in {}", directory.display())));
        }
        let states = entries::states(directory).map_err(|error| failed(error.to_string()))?;
        if states == open.states {
            return Ok(());
        }
        let files = entries::read_files(directory).map_err(|error| failed(error.to_string()))?;
        if files != open.files {
            open.secret = self.write(open.secret.as_ref(), &open.files, &files).await.map_err(failed)?;
            open.files = files;
        }
        open.states = states;
        Ok(())
    }

    /// Writes files in place of those that were read. `before` is the Secret that had them; None: there was none. No files: the
    /// Secret is deleted.
    ///
    /// # Errors
    /// One line that says why: another run has changed it, or the API refuses it.
    pub async fn write(
        &self,
        before: Option<&Secret>,
        known: &CredentialFiles,
        files: &CredentialFiles,
    ) -> Result<Option<Secret>, String> {
        refuse_unusable(files)?;
        let size: usize = files.values().map(|file| file.content.len()).sum();
        if size > MOST {
            return Err(format!("they have {size} bytes, and a Secret can have {MOST}"));
        }
        let mut before = before.cloned();
        let mut last = "another run changes it all the time".to_owned();
        for pause in PAUSES {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            let sent = match files.is_empty() {
                true => self.remove(before.as_ref()).await.map(|()| None),
                false => self.send(before.as_ref(), files).await.map(Some),
            };
            match sent {
                Ok(secret) => return Ok(secret),
                Err(WriteError::Refused(why)) => return Err(why),
                Err(WriteError::Changed) => {}
                Err(WriteError::NoAnswer(why)) => last = why,
            }
            // An answer may have been lost on its way.
            let Ok((secret, found)) = self.read_secret().await else { continue };
            if found == *files {
                return Ok(secret);
            }
            if found != *known {
                return Err("another run has changed it meanwhile".to_owned());
            }
            before = secret;
        }
        Err(last)
    }

    async fn api(&self) -> Result<Api<Secret>, String> {
        [&self.namespace, &self.name()].into_iter().try_for_each(|name| one_segment(name))?;
        Ok(Api::namespaced(limited(self.cluster.client()).await?, &self.namespace))
    }

    async fn send(&self, before: Option<&Secret>, files: &CredentialFiles) -> Result<Secret, WriteError> {
        let api = self.api().await.map_err(WriteError::NoAnswer)?;
        let mut secret = before.cloned().unwrap_or_else(|| self.empty());
        put_files(&mut secret, files);
        let name = self.name();
        let sent = async {
            Ok(match before {
                Some(_) => api.replace(&name, &PostParams::default(), &secret).await,
                None => api.create(&PostParams::default(), &secret).await,
            })
        };
        limited(sent).await.map_err(WriteError::NoAnswer)?.map_err(|error| match &error {
            kube::Error::Api(status) if before.is_none() && status.code == 404 => {
                WriteError::Refused(format!("there is no namespace {}", self.namespace))
            }
            error => write_error(error),
        })
    }

    /// Deletes the Secret, if there is one.
    async fn remove(&self, before: Option<&Secret>) -> Result<(), WriteError> {
        let Some(before) = before else { return Ok(()) };
        let api = self.api().await.map_err(WriteError::NoAnswer)?;
        let mut secret = before.clone();
        secret.metadata.finalizers.get_or_insert_default().retain(|finalizer| finalizer != FINALIZER);
        let name = self.name();
        let removed = async {
            // Without its last finalizer, one that was deleted before is gone at once.
            let freed = match api.replace(&name, &PostParams::default(), &secret).await {
                Ok(freed) => freed,
                Err(error) => return Ok(Err(error)),
            };
            if freed.metadata.deletion_timestamp.is_some() {
                return Ok(Ok(()));
            }
            let preconditions =
                Preconditions { uid: freed.metadata.uid, resource_version: freed.metadata.resource_version };
            let delete = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            Ok(api.delete(&name, &delete).await.map(drop))
        };
        match limited(removed).await.map_err(WriteError::NoAnswer)? {
            Err(error) if is_absent(&error) => Ok(()),
            removed => removed.map_err(|error| write_error(&error)),
        }
    }

    /// A Secret without files.
    fn empty(&self) -> Secret {
        let labels = [("app.kubernetes.io/managed-by", "windlass"), (DEPLOYMENT, &self.deployment)];
        Secret {
            metadata: ObjectMeta {
                name: Some(self.name()),
                namespace: Some(self.namespace.clone()),
                labels: Some(labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
                ..ObjectMeta::default()
            },
            type_: Some(CREDENTIALS_TYPE.to_owned()),
            ..Secret::default()
        }
    }
}

/// Why the Secret was not written.
enum WriteError {
    /// It is not as it was read.
    Changed,
    /// The API did not answer: it may have been written.
    NoAnswer(String),
    Refused(String),
}

fn write_error(error: &kube::Error) -> WriteError {
    match error {
        kube::Error::Api(status) if status.code == 409 || status.code == 404 => WriteError::Changed,
        kube::Error::Api(status) if status.code < 500 && status.code != 429 => WriteError::Refused(error_text(error)),
        error => WriteError::NoAnswer(error_text(error)),
    }
}

/// The files that a Secret has.
fn files_of(secret: &Secret) -> Result<CredentialFiles, String> {
    if secret.type_.as_deref() != Some(CREDENTIALS_TYPE) {
        let kind = secret.type_.as_deref().unwrap_or("Opaque");
        return Err(format!("its type is {kind}, not {CREDENTIALS_TYPE}: it belongs to another program"));
    }
    let modes = secret.metadata.annotations.as_ref().and_then(|annotations| annotations.get(MODES));
    let modes: BTreeMap<String, String> = match modes {
        Some(text) => serde_json::from_str(text).map_err(|_| format!("its annotation {MODES} is not valid"))?,
        None => BTreeMap::new(),
    };
    let entry = |(key, value): (&String, &ByteString)| {
        let mode = match modes.get(key) {
            Some(text) => u32::from_str_radix(text, 8)
                .ok()
                .filter(|mode| *mode <= 0o777)
                .ok_or_else(|| format!("its annotation {MODES} has no valid mode for {key}"))?,
            None => PRIVATE,
        };
        Ok((entries::path_of_key(key)?, CredentialFile { content: value.0.clone(), mode }))
    };
    let files: CredentialFiles = secret.data.iter().flatten().map(entry).collect::<Result<_, String>>()?;
    refuse_unusable(&files)?;
    Ok(files)
}

/// Refuses files that would do more here than hold credentials: others than this user may write the Secret.
fn refuse_unusable(files: &CredentialFiles) -> Result<(), String> {
    for (path, file) in files {
        // Readers of kubeconfigs may decode UTF-16, and skip a byte order mark: what was checked here must be what they read.
        let text = std::str::from_utf8(&file.content).ok().filter(|text| !text.starts_with('\u{feff}'));
        let text = text.ok_or_else(|| format!("{} must be UTF-8 text without a byte order mark", path.display()))?;
        let is_kubeconfig = path.to_string_lossy().contains("kubeconfig");
        if entries::names_place(text) && path.extension() != Some("env".as_ref()) {
            return Err(format!(
                "{} names the directory of the credentials, which only .env files may do",
                path.display()
            ));
        }
        let path = path.display();
        if vault::is_vault(text) {
            return Err(format!("{path} is encrypted with the vault, which a file in a Secret must not be"));
        }
        let kubeconfig = Kubeconfig::from_yaml(text).ok();
        if is_kubeconfig && kubeconfig.is_none() {
            return Err(format!("{path} is not a valid kubeconfig"));
        }
        if let Some((name, field)) = kubeconfig.as_ref().and_then(outside_reference) {
            return Err(format!(
                "{path} has {field} at {name:?}, which refers to a file or program of the machine that windlass runs on"
            ));
        }
    }
    Ok(())
}

/// Puts files into a Secret, and the finalizer. What others have added to its metadata stays.
fn put_files(secret: &mut Secret, files: &CredentialFiles) {
    let key = |path: &Path| entries::key_of_path(path);
    let data = files.iter().map(|(path, file)| (key(path), ByteString(file.content.clone()))).collect();
    secret.data = Some(data);
    let others = files.iter().filter(|(_, file)| file.mode != PRIVATE);
    let modes: BTreeMap<String, String> =
        others.map(|(path, file)| (key(path), format!("{:04o}", file.mode))).collect();
    let text = serde_json::to_string(&modes).expect("a mapping of texts is JSON");
    secret.metadata.annotations.get_or_insert_default().insert(MODES.to_owned(), text);
    // Nobody may add a finalizer to an object that was deleted.
    let finalizers = secret.metadata.finalizers.get_or_insert_default();
    if secret.metadata.deletion_timestamp.is_none() && !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(earlier: &Path) -> SecretStore {
        let live = LiveName::parse("ops/prod").unwrap();
        SecretStore::of_deployment(Cluster::default(), "ops/prod", &live, earlier.to_owned())
    }

    #[test]
    fn files_are_the_same_after_they_were_in_a_secret() {
        let mut files = CredentialFiles::new();
        files.insert("etcd/ca.crt".into(), CredentialFile { content: b"cert".to_vec(), mode: 0o644 });
        files.insert("etcd/ca.key".into(), CredentialFile { content: b"key".to_vec(), mode: 0o600 });
        let mut secret = store(Path::new("/nowhere")).empty();
        put_files(&mut secret, &files);
        put_files(&mut secret, &files);
        assert_eq!(secret.metadata.finalizers, Some(vec![FINALIZER.to_owned()]));
        assert_eq!(secret.metadata.annotations.as_ref().unwrap()[MODES], r#"{"etcd__ca.crt":"0644"}"#);
        assert!(files_of(&secret).unwrap() == files);
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        let refused = |change: &dyn Fn(&mut Secret)| {
            let mut secret = store(Path::new("/nowhere")).empty();
            put_files(&mut secret, &CredentialFiles::new());
            change(&mut secret);
            files_of(&secret).err().unwrap()
        };
        let other = refused(&|secret| secret.type_ = Some("Opaque".to_owned()));
        assert!(other.contains("its type is Opaque"), "{other}");
        let outside = refused(&|secret| {
            let data = [("..__x".to_owned(), ByteString(Vec::new()))].into();
            secret.data = Some(data);
        });
        assert!(outside.contains("is not the path of a file"), "{outside}");
        let set_user_id = refused(&|secret| {
            secret.data = Some([("a".to_owned(), ByteString(Vec::new()))].into());
            secret.metadata.annotations = Some([(MODES.to_owned(), r#"{"a": "4755"}"#.to_owned())].into());
        });
        assert!(set_user_id.contains("no valid mode for a"), "{set_user_id}");
    }

    #[test]
    fn a_file_that_would_run_a_program_or_need_a_password_is_refused() {
        let refused_bytes = |content: &[u8]| {
            let file = CredentialFile { content: content.to_vec(), mode: 0o600 };
            refuse_unusable(&[("admin.kubeconfig".into(), file)].into()).err()
        };
        let refused = |text: &str| refused_bytes(text.as_bytes());
        let user = |field: &str| format!("clusters: []\nusers: [{{name: u, user: {{{field}}}}}]\n");
        for (field, name) in [
            ("exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}", "exec"),
            ("auth-provider: {name: x, config: {}}", "auth-provider"),
            ("tokenFile: /etc/shadow", "tokenFile"),
            ("client-key: /root/key", "client-key"),
        ] {
            let why = refused(&user(field)).unwrap_or_else(|| panic!("{field}"));
            assert!(why.contains(name), "{why}");
            // As JSON, and in a second document.
            assert!(refused(&format!("a: 1\n---\n{}", user(field))).is_some(), "{field}");
        }
        let authority = "clusters: [{name: c, cluster: {server: x, certificate-authority: /etc/passwd}}]";
        assert!(refused(authority).is_some());
        assert!(refused("$ANSIBLE_VAULT;1.1;AES256\n6133").is_some_and(|why| why.contains("vault")));
        // A reader of kubeconfigs would decode these, and the place of the directory would be valid YAML only when it was replaced.
        let exec = user("exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}");
        let utf16: Vec<u8> = std::iter::once(0xfeff).chain(exec.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        assert!(refused_bytes(&utf16).is_some_and(|why| why.contains("UTF-8")));
        assert!(refused(&format!("\u{feff}{exec}")).is_some_and(|why| why.contains("byte order mark")));
        assert!(refused(&format!("x: @windlass-credentials@\n{exec}")).is_some_and(|why| why.contains("directory")));
        // Other readers may be more lenient than ours.
        assert!(refused(&format!("{exec}users: []\n")).is_some_and(|why| why.contains("not a valid kubeconfig")));
        assert_eq!(refused(&user("token: t")), None);
        let file = |text: &str| CredentialFile { content: text.as_bytes().to_vec(), mode: 0o600 };
        let fine = [
            ("etcd/ca.crt".into(), file("-----BEGIN CERTIFICATE-----\n")),
            ("etcd/etcdctl.env".into(), file("ETCDCTL_CACERT=@windlass-credentials@/etcd/ca.crt\n")),
        ];
        assert_eq!(refuse_unusable(&fine.into()), Ok(()));
    }

    #[test]
    fn credentials_in_the_directory_of_an_older_version_are_not_replaced_by_new_ones() {
        let directory = tempfile::tempdir().unwrap();
        assert!(store(directory.path()).refuse_earlier().is_ok());
        std::fs::create_dir(directory.path().join("etcd")).unwrap();
        std::fs::write(directory.path().join("etcd/ca.key"), "key").unwrap();
        let why = store(directory.path()).refuse_earlier().unwrap_err();
        assert!(why.contains("windlass credentials import -f kube:ops/prod"), "{why}");
    }
}
