//! Places of fields in documents.

use crate::value::Origin;
use crate::value::yaml::{Node, NodeKind};

/// Where a field of a document is written, or else the nearest that is there above it: `spec.hosts[1].address`.
pub(super) fn field_origin(document: &Node, path: &str) -> Origin {
    let mut node = document;
    for step in path.split(['.', '[']).map(|step| step.trim_end_matches(']')).filter(|step| !step.is_empty()) {
        let next = match &node.kind {
            NodeKind::Seq(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => node.get(step),
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    node.origin.clone()
}
