//! YAML with places: the only file that names the YAML parser.

use std::path::Path;
use std::sync::Arc;

use super::origin::{Complaint, Origin, Source};
use super::vault::Keyring;
use super::{Value, Vars};

/// A YAML value and where it stands.
#[derive(Debug, Clone)]
pub struct Node {
    pub kind: NodeKind,
    /// `!vault`, `!unsafe` and the like, with the exclamation mark.
    pub tag: Option<Arc<str>>,
    pub origin: Origin,
}

#[derive(Debug, Clone)]
pub enum NodeKind {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Arc<str>),
    Seq(Vec<Node>),
    /// In the order written; merge keys (`<<`) are resolved, of two equal keys the last counts.
    Map(Vec<(Node, Node)>),
}

/// Reads and parses a YAML file of one document (None: it is empty); a vault-encrypted file is decrypted first.
pub fn load(path: &Path, keyring: &Keyring) -> Result<Option<Node>, Complaint> {
    let _ = (path, keyring);
    todo!()
}

/// Parses all documents of a source.
pub fn parse(source: &Arc<Source>) -> Result<Vec<Node>, Complaint> {
    let _ = source;
    todo!()
}

impl Node {
    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        todo!()
    }
    /// The value under a key, if it is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let _ = key;
        todo!()
    }
    /// What it is, in a person's words: `a list`, `a mapping`, `the string "x"`.
    pub fn what(&self) -> String {
        todo!()
    }
    /// The dynamic value: strings with template marks become [`super::Template`]s (not those tagged `!unsafe`),
    /// `!vault` strings are decrypted with the keyring.
    pub fn to_value(&self, keyring: &Keyring) -> Result<Value, Complaint> {
        let _ = keyring;
        todo!()
    }
    /// As [`Node::to_value`], for a mapping with string keys; null is an empty mapping.
    pub fn to_vars(&self, keyring: &Keyring) -> Result<Vars, Complaint> {
        let _ = keyring;
        todo!()
    }
}
