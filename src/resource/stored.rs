//! Documents that a server stores for those who send them: foreign, wherever they lie. A file of them is no inventory by itself, so that
//! none is read as the user's own when its name is given without what marks it.

use std::path::Path;
use std::sync::Arc;

use super::document::{ONLY_DEPLOYMENT, of_only_document};
use super::place::field_origin;
use super::{Deployment, ForeignResourceLimits, Reference, Resource, Trust};
use crate::value::origin::{Diagnostic, Source};
use crate::value::read;

/// What the name of a stored document begins with, where a file could be named, too: `stored:/PATH/NAME.document`.
pub const STORED: &str = "stored:";

/// How the names of their files end. No kind of inventory has it.
pub const STORED_SUFFIX: &str = ".document";

/// The keys of stored credentials, by their kind.
pub const SSH_KEY: &str = "ssh-privatekey";
pub const PASSWORD: &str = "password";
pub const KUBECONFIG: &str = "kubeconfig";
pub const AUTHORITY_KEY: &str = "tls.key";

/// The namespace of stored documents that name none. Their Secrets are those of their own deployment, whatever they name.
const NAMESPACE: &str = "default";

/// The longest name of a deployment whose document is stored.
const LONGEST_NAME: usize = 63;

/// Whether a deployment whose document is stored may have this name, which is that of its file, too.
pub fn is_stored_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// Refuses the file of a stored document where a person's own is read, also behind links with other names.
///
/// # Errors
/// It is one.
pub fn refuse_stored(path: &Path) -> Result<(), Diagnostic> {
    let has_suffix =
        |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(STORED_SUFFIX.as_bytes()));
    if has_suffix(path) || path.canonicalize().is_ok_and(|file| has_suffix(&file)) {
        let message = format!("{} is a document of windlass serve", path.display());
        return Err(Diagnostic::new(message, None).hint("plan and apply it through the server"));
    }
    Ok(())
}

/// Reads a document: one deployment, with the name that it is stored under. None: any. `shown` is what complaints call it.
///
/// # Errors
/// All that is wrong with it, and all that a foreign document must not say, each with its place.
pub fn read_stored_text(
    shown: &str,
    text: &str,
    name: Option<&str>,
    allowed: &ForeignResourceLimits,
) -> Result<(Deployment, Vec<Diagnostic>), Vec<Diagnostic>> {
    let source = Arc::new(Source::new(shown, text));
    let allowed = ForeignResourceLimits { namespace: Some(NAMESPACE.to_owned()), ..allowed.clone() };
    let (resource, mut warnings) = of_only_document(&source, Trust::Foreign, &allowed)?;
    let Some(Resource::KarmadaDeployment(deployment)) = resource else {
        return Err(Diagnostic::new(ONLY_DEPLOYMENT, None).into());
    };
    let origin = deployment.node.get("metadata").and_then(|metadata| metadata.get("name")).map(|name| &name.origin);
    match name {
        Some(name) if name != deployment.name => {
            let message = format!("metadata.name is {}, and the document is that of {name}", deployment.name);
            Err(Diagnostic::new(message, origin).hint("a deployment keeps its name").into())
        }
        _ if !is_stored_name(&deployment.name) => {
            let message = format!("{} cannot be the name of a stored document", deployment.name);
            Err(Diagnostic::new(message, origin).into())
        }
        _ => {
            let wrong = wrong_kinds(&deployment);
            if !wrong.is_empty() {
                return Err(wrong);
            }
            warnings.extend(deployment.warnings());
            Ok((deployment, warnings))
        }
    }
}

/// Credentials in fields for another kind: a key in the field of a password would be sent to a host.
fn wrong_kinds(deployment: &Deployment) -> Vec<Diagnostic> {
    let spec = &deployment.spec;
    let mut fields: Vec<(String, &Reference, &str)> = Vec::new();
    if let Some(ssh) = &spec.ssh {
        for (field, reference, key) in [
            ("privateKey", &ssh.private_key, SSH_KEY),
            ("passphrase", &ssh.passphrase, PASSWORD),
            ("password", &ssh.password, PASSWORD),
            ("becomePassword", &ssh.become_password, PASSWORD),
        ] {
            fields.extend(reference.as_ref().map(|reference| (format!("spec.ssh.{field}"), reference, key)));
        }
    }
    if let Some(ca) = spec.certificates.as_ref().and_then(|certificates| certificates.ca.as_ref()) {
        fields.push(("spec.certificates.ca.key".to_owned(), &ca.key, AUTHORITY_KEY));
    }
    for (index, member) in spec.members.iter().enumerate() {
        let kubeconfig = member.kubeconfig.as_ref();
        fields.extend(kubeconfig.map(|it| (format!("spec.members[{index}].kubeconfig"), it, KUBECONFIG)));
    }
    let wrong = fields.into_iter().filter_map(|(at, reference, key)| {
        let secret = reference.secret.as_ref().filter(|secret| secret.key != key)?;
        let message = format!("{at}.secret.key is {:?}, and this field needs the key {key}", secret.key);
        let place = Some(field_origin(&deployment.node, &format!("{at}.secret.key")));
        Some(Diagnostic::new(message, place.as_ref()).hint("a field takes credentials of its own kind only"))
    });
    wrong.collect()
}

/// Reads the file of a stored document, which has the deployment's name.
///
/// # Errors
/// It cannot be read, or as for [`read_stored_text`].
pub fn load_stored(path: &Path, allowed: &ForeignResourceLimits) -> Result<Deployment, Vec<Diagnostic>> {
    let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(STORED_SUFFIX));
    let Some(name) = name.filter(|name| is_stored_name(name)) else {
        let message = format!("{} is not the file of a stored document", path.display());
        return Err(Diagnostic::new(message, None).into());
    };
    let unreadable = |error| Diagnostic::new(format!("cannot read {}: {error}", path.display()), None);
    let text = read::read_text(path).map_err(unreadable)?;
    Ok(read_stored_text(&format!("{STORED}{}", path.display()), &text, Some(name), allowed)?.0)
}
