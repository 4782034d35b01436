//! From what a person wrote to what a module takes: aliases, types, choices, defaults, required ones.

use serde::de::DeserializeOwned;

use super::Error;
use crate::value::doc::Doc;
use crate::value::{Value, Vars};

/// Rendered arguments to what the module's `DOC` says: canonical names, coerced kinds, defaults filled in, choices
/// and required ones checked. The result has every argument of `DOC` that has a value.
pub fn coerce(doc: &Doc, args: &Vars) -> Result<Value, Error> {
    let _ = (doc, args);
    todo!()
}

/// Coerced arguments to the module's own type.
pub fn parse<T: DeserializeOwned>(args: Value) -> Result<T, Error> {
    let _ = args;
    todo!()
}
