//! Kubeconfigs: a file of the controller or of the host, or content. Files that a kubeconfig of the host refers to are on the
//! host, too, and nothing that it names is ever run here. Content, which a host may have given, names no file and no program.
//! One of the controller may be a vault file.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::config::{Kubeconfig, KubeconfigError};
use minijinja::value::ValueKind;
use serde::Deserialize;

use crate::kubernetes::outside_reference;
use crate::modules::{Controller, Error, vault_file};
use crate::remote::Probe;
use crate::value::Value;

/// The default path.
const USUAL: &str = "~/.kube/config";

/// Reads a kubeconfig; None: the usual one of the host. `remote`: a path is one of the host.
pub(super) async fn load_kubeconfig(
    given: Option<&Value>,
    remote: bool,
    probe: &Probe,
    here: &Controller<'_>,
) -> Result<Kubeconfig, Error> {
    let Some(given) = given else { return of_host(USUAL, remote, probe).await };
    if given.kind() == ValueKind::Map {
        let content = serde_json::Value::deserialize(given.clone()).ok();
        let content = content.and_then(|content| serde_json::from_value(content).ok());
        let content = content.ok_or_else(|| Error::failed("the content of kubeconfig is not a valid kubeconfig"))?;
        return self_contained(content, probe);
    }
    let text = given.as_str().ok_or_else(|| Error::failed("kubeconfig must be a path or a mapping"))?;
    if text.contains('\n') {
        return self_contained(parse(text, "the content of kubeconfig")?, probe);
    }
    if remote {
        return of_host(text, remote, probe).await;
    }
    match here.find_file("files", text) {
        Ok(path) if path.is_file() => of_controller(&path, probe, here).await,
        _ => of_host(text, remote, probe).await,
    }
}

/// Content that a host may have given, or whose author is somebody else, runs no program of this machine and reads no file of it.
fn self_contained(kubeconfig: Kubeconfig, probe: &Probe) -> Result<Kubeconfig, Error> {
    let Some((name, field)) = outside_reference(&kubeconfig) else { return Ok(kubeconfig) };
    let flatten = "put the certificates and the token into the kubeconfig: kubectl config view --flatten";
    let (message, hint) = match probe.is_confined() {
        true => (
            format!(
                "the kubeconfig has {field} at {name:?}, which refers to a file or program of the machine that \
                 windlass runs on; a resource from an API must not do so"
            ),
            flatten.to_owned(),
        ),
        false => (
            format!(
                "the content of kubeconfig has {field} at {name:?}, which refers to a file or program of the controller; \
                 only a kubeconfig that is a file of the controller may do so"
            ),
            format!("set kubeconfig to the path of such a file, or {flatten}"),
        ),
    };
    Err(Error::Failed { message, hint: Some(hint) })
}

/// Of the controller: relative paths in it are relative to it. What a confined run reads, somebody else may have written: the
/// credentials of a resource from an API are in a Secret.
async fn of_controller(path: &Path, probe: &Probe, here: &Controller<'_>) -> Result<Kubeconfig, Error> {
    if probe.is_confined() {
        let name = path.display().to_string();
        let text = tokio::fs::read_to_string(path).await;
        let text = text.map_err(|error| Error::failed(format!("cannot read {name}: {error}")))?;
        return self_contained(parse(&text, &name)?, probe);
    }
    if !vault_file::is_vault(path)? {
        return Kubeconfig::read_from(path)
            .map_err(|error| Error::failed(format!("cannot use {}: {}", path.display(), problem(&error))));
    }
    let text = vault_file::decrypt(here, path).await?;
    let mut kubeconfig = parse(&String::from_utf8_lossy(&text), &path.display().to_string())?;
    let clusters = kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut());
    let mut files: Vec<&mut Option<String>> = clusters.map(|cluster| &mut cluster.certificate_authority).collect();
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        files.extend([&mut user.client_certificate, &mut user.client_key, &mut user.token_file]);
        let command = user.exec.as_mut().map(|exec| &mut exec.command);
        files.extend(command.filter(|command| command.as_ref().is_some_and(|command| command.contains('/'))));
    }
    let directory = path.parent().unwrap_or(Path::new(""));
    for file in files.into_iter().flatten() {
        *file = directory.join(&file).to_string_lossy().into_owned();
    }
    Ok(kubeconfig)
}

async fn of_host(path: &str, remote: bool, probe: &Probe) -> Result<Kubeconfig, Error> {
    if probe.is_confined() && probe.is_controller() {
        return Err(Error::failed(format!(
            "the kubeconfig {path} is a file of the machine that windlass runs on; a resource from an API must not use it"
        )));
    }
    let path = probe.expand_on_host(path).await?;
    let content = probe.read_file(&path).await?.ok_or_else(|| {
        let message = match remote {
            true => format!("no such kubeconfig on the host: {path}"),
            false => format!("no such kubeconfig on the controller or the host: {path}"),
        };
        Error::Failed { message, hint: Some("set kubeconfig to a path".to_owned()) }
    })?;
    let mut kubeconfig = parse(&String::from_utf8_lossy(&content), &path)?;
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        if let Some(file) = cluster.certificate_authority.take() {
            cluster.certificate_authority_data = Some(inline(&file, directory, probe).await?);
        }
    }
    for named in &mut kubeconfig.auth_infos {
        let Some(user) = named.auth_info.as_mut() else { continue };
        if user.exec.is_some() || user.auth_provider.is_some() {
            let message = format!(
                "{path} uses a program to log {} in, which windlass does not run for a kubeconfig on a host",
                named.name
            );
            return Err(Error::failed(message));
        }
        if let Some(file) = user.client_certificate.take() {
            user.client_certificate_data = Some(inline(&file, directory, probe).await?);
        }
        if let Some(file) = user.client_key.take() {
            user.client_key_data = Some(inline(&file, directory, probe).await?.into());
        }
        if let Some(file) = user.token_file.take() {
            let token = read_host_file(&file, directory, probe).await?;
            user.token = Some(String::from_utf8_lossy(&token).trim().to_owned().into());
        }
    }
    Ok(kubeconfig)
}

async fn inline(file: &str, directory: &str, probe: &Probe) -> Result<String, Error> {
    Ok(BASE64.encode(read_host_file(file, directory, probe).await?))
}

async fn read_host_file(file: &str, directory: &str, probe: &Probe) -> Result<Vec<u8>, Error> {
    let path = if file.starts_with('/') { file.to_owned() } else { format!("{directory}/{file}") };
    probe.read_file(&path).await?.ok_or_else(|| Error::failed(format!("no such file on the host: {path}")))
}

fn parse(text: &str, name: &str) -> Result<Kubeconfig, Error> {
    Kubeconfig::from_yaml(text).map_err(|error| Error::failed(format!("cannot use {name}: {}", problem(&error))))
}

/// What is wrong, in words that quote nothing of the content.
pub(super) fn problem(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::CurrentContextNotSet => "it has no current context".to_owned(),
        KubeconfigError::LoadContext(name) => format!("it has no context {name:?}"),
        KubeconfigError::LoadClusterOfContext(name) => format!("it has no cluster {name:?}"),
        KubeconfigError::MissingClusterUrl => "its cluster has no server".to_owned(),
        KubeconfigError::ParseClusterUrl(_) => "its server is not a valid URL".to_owned(),
        KubeconfigError::ReadConfig(error, path) => format!("cannot read {}: {error}", path.display()),
        KubeconfigError::LoadCertificateAuthority(_) => "cannot read its certificate-authority".to_owned(),
        KubeconfigError::LoadClientCertificate(_) => "cannot read its client-certificate".to_owned(),
        KubeconfigError::LoadClientKey(_) => "cannot read its client-key".to_owned(),
        _ => "it is not a valid kubeconfig".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::modules::testing::Bench;
    use crate::value::{Secret, vault};

    /// No server listens at its address: the connection error shows that the kubeconfig was read.
    const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', certificate-authority: ca.crt}}]
users: [{name: c, user: {tokenFile: token}}]
contexts: [{name: c, context: {cluster: c, user: c}}]
";

    #[tokio::test]
    async fn a_kubeconfig_that_is_encrypted_is_as_one_that_is_not() {
        let mut bench = Bench::new().await;
        let password = Secret::new("pass");
        let key = rcgen::generate_simple_self_signed(["c".to_owned()]).unwrap();
        bench.on_controller("files/ca.crt", key.cert.pem());
        bench.on_controller("files/token", "t0ken");
        bench.on_controller("files/plain", KUBECONFIG);
        bench.on_controller("files/sealed", vault::encrypt(KUBECONFIG.as_bytes(), &password, None));
        let task = |file: &str| format!("k8s_info: {{kubeconfig: {file}, kind: Namespace}}");
        let plain = bench.failure(&task("plain")).await;
        assert!(plain.contains("127.0.0.1:1"), "{plain}");
        let reported = bench.failure(&task("sealed")).await;
        assert!(reported.starts_with("cannot decrypt "), "{reported}");
        bench.scope.keyring = Arc::new(vault::Keyring::new(vec![("default".into(), password)]));
        assert_eq!(bench.failure(&task("sealed")).await, plain);
    }

    /// A playbook may read the content from a host: `slurp`, then `b64decode`.
    #[tokio::test]
    async fn content_refers_to_no_file_and_no_program() {
        let bench = Bench::new().await;
        let marker = bench.here("marker");
        let plain = KUBECONFIG.replace("tokenFile: token", "token: t").replace(", certificate-authority: ca.crt", "");
        let exec = format!(
            "exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: touch, args: ['{}']}}",
            marker.display()
        );
        for (there, field) in [
            (exec.as_str(), "exec"),
            ("auth-provider: {name: gcp, config: {cmd-path: touch}}", "auth-provider"),
            ("tokenFile: /etc/hostname", "tokenFile"),
            ("client-certificate: /etc/hostname", "client-certificate"),
            ("client-key: /etc/hostname", "client-key"),
        ] {
            let text = plain.replace("token: t", there);
            let map: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
            let map = serde_json::to_string(&map).unwrap();
            for content in [serde_json::to_string(&text).unwrap(), map] {
                let told = bench.failure(&format!("k8s_info: {{kubeconfig: {content}, kind: Namespace}}")).await;
                let expected =
                    format!("the content of kubeconfig has {field} at \"c\", which refers to a file or program");
                assert!(told.starts_with(&expected), "{told}");
                assert!(!marker.exists(), "{there}");
            }
        }
        let content = serde_json::to_string(&plain).unwrap();
        let told = bench.failure(&format!("k8s_info: {{kubeconfig: {content}, kind: Namespace}}")).await;
        assert!(told.contains("127.0.0.1:1"), "{told}");
        bench.close().await;
    }

    /// The credentials of such a run come from a Secret, which others may write.
    #[tokio::test]
    async fn a_file_for_a_confined_run_starts_no_program_in_whatever_encoding() {
        let bench = Bench::confined().await;
        let marker = bench.here("marker");
        let login = format!(
            "exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: touch, args: ['{}']}}",
            marker.display()
        );
        let text = KUBECONFIG.replace("tokenFile: token", &login).replace(", certificate-authority: ca.crt", "");
        let utf16: Vec<u8> = std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        bench.on_controller("files/text", &text);
        bench.on_controller("files/utf16", utf16);
        for file in ["text", "utf16"] {
            let told = bench.failure(&format!("k8s_info: {{kubeconfig: {file}, kind: Namespace}}")).await;
            assert!(told.contains("has exec at \"c\"") || told.contains("cannot read"), "{told}");
            assert!(!marker.exists(), "{file}");
        }
        bench.close().await;
    }
}
