//! Documents: which are ours, what is wrong with them, and the resources that they are.

use std::path::Path;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::policy::digest_of_spec;
use super::schema::KINDS;
use super::{API_VERSION, ForeignResourceLimits, GROUP, NamedResource, Resource, Trust, check, foreign, trust};
use crate::value::nearest::did_you_mean;
use crate::value::origin::{Diagnostic, Source};
use crate::value::yaml::{self, Node, NodeKind};

/// The allowed keys at the top of a document.
const TOP: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

/// What a source of one deployment must be.
pub(super) const ONLY_DEPLOYMENT: &str = "the document must be one KarmadaDeployment, and nothing else";

/// Whether a document is of our group, well written or not.
pub fn is_resource(node: &Node) -> bool {
    let group = |node: &Node| node.as_str().is_some_and(|text| text.split('/').next() == Some(GROUP));
    node.get("apiVersion").is_some_and(group)
}

/// Reads all documents of a source; those of other groups are left out, with a warning. `trust` is whose the source is.
///
/// # Errors
/// All that is wrong with them, each with its place.
pub fn of_source(
    source: &Arc<Source>,
    trust: Trust,
    allowed: &ForeignResourceLimits,
) -> Result<(Vec<Resource>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (nodes, mut warnings) = nodes_of(source)?;
    let (mut resources, mut complaints) = (Vec::new(), Vec::new());
    for node in nodes {
        if !is_resource(&node) {
            let message = format!("skipped a document whose apiVersion is not {API_VERSION}");
            warnings.push(Diagnostic::new(message, Some(&node.origin)));
            continue;
        }
        match of_node(node, &source.path, trust, allowed) {
            Ok(resource) => resources.push(resource),
            Err(more) => complaints.extend(more),
        }
    }
    if complaints.is_empty() { Ok((resources, warnings)) } else { Err(complaints) }
}

/// Reads a source that must be one document of our group and nothing else, as [`of_source`] does. With a second document none is checked:
/// a check takes longer than the text is long. None: it has no document of our group.
///
/// # Errors
/// As there.
pub(super) fn of_only_document(
    source: &Arc<Source>,
    trust: Trust,
    allowed: &ForeignResourceLimits,
) -> Result<(Option<Resource>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (mut nodes, warnings) = nodes_of(source)?;
    if let Some(second) = nodes.get(1) {
        let complaint = Diagnostic::new(ONLY_DEPLOYMENT, Some(&second.origin));
        return Err(complaint.hint("a second document starts here").into());
    }
    let node = nodes.pop().filter(is_resource);
    let resource = node.map(|node| of_node(node, &source.path, trust, allowed)).transpose()?;
    Ok((resource, warnings))
}

/// The documents of a source that are not empty, with warnings.
fn nodes_of(source: &Arc<Source>) -> Result<(Vec<Node>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut warnings = Vec::new();
    let mut nodes = yaml::parse_with(source, &mut warnings).map_err(|complaint| vec![complaint])?;
    nodes.retain(|node| !matches!(node.kind, NodeKind::Null));
    Ok((nodes, warnings.into_iter().map(yaml::warning).collect()))
}

/// One document: its kind, then its fields, then the rules over several of them, then what a foreign one may not say.
fn of_node(
    node: Node,
    path: &Path,
    source: Trust,
    allowed: &ForeignResourceLimits,
) -> Result<Resource, Vec<Diagnostic>> {
    let kind = kind(&node).map_err(|complaint| vec![complaint])?;
    let mut complaints = Vec::new();
    if let NodeKind::Map(pairs) = &node.kind {
        let strange = |(key, _): &&(Node, Node)| !key.as_str().is_some_and(|key| TOP.contains(&key));
        complaints.extend(pairs.iter().filter(strange).map(|(key, _)| check::unknown(key, "", TOP)));
    }
    let metadata = Metadata::of(&node, &mut complaints);
    let spec = check::check_fields(&KINDS[kind].schema["properties"]["spec"], &node, "spec", &mut complaints);
    let Some(metadata) = metadata.filter(|_| complaints.is_empty()) else { return Err(complaints) };
    let whole = serde_json::json!({"apiVersion": API_VERSION, "kind": KINDS[kind].name, "metadata": metadata.json, "spec": spec});
    let mut complaints = check::rules(&KINDS[kind].rules, &whole, &node);
    let digest = digest_of_spec(&spec);
    let (mut spec, trust) = (spec, allowed.trust(source, &node));
    if trust == Trust::Foreign && complaints.is_empty() {
        let namespace = metadata.namespace.as_deref().or(allowed.namespace.as_deref());
        complaints = foreign::admit(&KINDS[kind].name, &mut spec, &node, namespace, allowed);
        if source == Trust::Own && trust::is_of_api(&node) {
            complaints = complaints.into_iter().map(with_way_out).collect();
        }
    }
    if !complaints.is_empty() {
        return Err(complaints);
    }
    let read = ValidDocument { metadata, spec, trust, digest, node: Arc::new(node) };
    match &*KINDS[kind].name {
        "KarmadaDeployment" => read.named(path, allowed).map(Resource::KarmadaDeployment),
        "EtcdBackup" => read.named(path, allowed).map(Resource::EtcdBackup),
        _ => read.named(path, allowed).map(Resource::Run),
    }
}

/// A person who exported a document, and means it to be their own, can make it so.
fn with_way_out(complaint: Diagnostic) -> Diagnostic {
    let hint = complaint.hint.clone().unwrap_or_default();
    complaint.hint(format!(
        "{hint}; this file was exported from an API; to use it as your own, review it and remove uid, resourceVersion \
         and managedFields from its metadata"
    ))
}

/// Which of our kinds a document is, as an index of [`KINDS`].
fn kind(node: &Node) -> Result<usize, Diagnostic> {
    let version = node.get("apiVersion").expect("a document of this API group has one");
    if version.as_str() != Some(API_VERSION) {
        let message = format!("apiVersion must be {API_VERSION}, this is {}", version.what());
        return Err(Diagnostic::new(message, Some(&version.origin)));
    }
    let names = || KINDS.iter().map(|kind| kind.name.as_str());
    let all = || names().collect::<Vec<_>>().join(", ");
    let Some(kind) = node.get("kind") else {
        return Err(Diagnostic::new("the document has no kind", Some(&node.origin))
            .hint(format!("it must be one of {}", all())));
    };
    let found = kind.as_str().and_then(|kind| names().position(|name| name == kind));
    found.ok_or_else(|| {
        let complaint = Diagnostic::new(format!("unknown kind {} in {API_VERSION}", kind.what()), Some(&kind.origin));
        let hint = kind.as_str().and_then(|kind| did_you_mean(kind, names()));
        complaint.hint(hint.unwrap_or_else(|| format!("the kinds are {}", all())))
    })
}

/// What a document says of itself.
struct Metadata {
    name: String,
    namespace: Option<String>,
    uid: Option<String>,
    json: Json,
}

impl Metadata {
    /// None: something is wrong, and was said.
    fn of(node: &Node, complaints: &mut Vec<Diagnostic>) -> Option<Metadata> {
        let Some(metadata) = node.get("metadata") else {
            complaints.push(
                Diagnostic::new("the document has no metadata", Some(&node.origin)).hint("it needs metadata.name"),
            );
            return None;
        };
        let mut text = |key: &str| match metadata.get(key) {
            None => None,
            Some(node) => {
                let text = node.as_str().filter(|text| is_name(text)).map(str::to_owned);
                if text.is_none() {
                    let message = format!(
                        "metadata.{key} must be a name of lowercase letters, digits, dashes and dots, this is {}",
                        node.what()
                    );
                    complaints.push(Diagnostic::new(message, Some(&node.origin)));
                }
                text
            }
        };
        let (name, namespace, uid) = (text("name"), text("namespace"), text("uid"));
        if metadata.get("name").is_none() {
            complaints.push(Diagnostic::new("metadata has no name", Some(&metadata.origin)));
        }
        let name = name?;
        let given = [("name", Some(&name)), ("namespace", namespace.as_ref()), ("uid", uid.as_ref())];
        let json = given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), Json::from(value?.as_str()))));
        let json = Json::Object(json.collect::<Map<_, _>>());
        Some(Metadata { name, namespace, uid, json })
    }
}

/// A DNS subdomain, as Kubernetes requires for names.
fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        label.bytes().all(|byte| inner(byte) || byte == b'-')
            && !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// A document that passed every check.
struct ValidDocument {
    metadata: Metadata,
    spec: Json,
    trust: Trust,
    digest: String,
    node: Arc<Node>,
}

impl ValidDocument {
    fn named<Spec: DeserializeOwned>(
        self,
        path: &Path,
        allowed: &ForeignResourceLimits,
    ) -> Result<NamedResource<Spec>, Vec<Diagnostic>> {
        let ValidDocument { metadata, spec, trust, digest, node } = self;
        // The schema is generated from the types, so a valid document can be converted.
        let spec = serde_json::from_value(spec)
            .map_err(|error| vec![Diagnostic::new(format!("cannot read the document: {error}"), Some(&node.origin))])?;
        let Metadata { name, namespace, uid, .. } = metadata;
        Ok(NamedResource {
            name,
            namespace,
            uid,
            path: path.into(),
            trust,
            digest,
            spec,
            node,
            surroundings: allowed.surroundings.clone(),
        })
    }
}
