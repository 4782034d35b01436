//! The first field of a line in `known_hosts`: which hosts it is for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use crate::value::pattern::matches_list;

/// Whether the field, a list of patterns or one hashed name, is for a host: `name`, or `[name]:port`, in lower case.
pub fn are_for(field: &str, name: &str) -> bool {
    match field.strip_prefix("|1|") {
        Some(hashed) => hash_matches(hashed, name),
        None => matches_list(&field.to_lowercase(), name),
    }
}

/// A field that is for this name and does not tell it; another each time.
pub fn hash(name: &str) -> String {
    let salt: [u8; 20] = rand::random();
    let hash = keyed(&salt, name).finalize().into_bytes();
    format!("|1|{}|{}", STANDARD.encode(salt), STANDARD.encode(hash))
}

fn keyed(salt: &[u8], name: &str) -> Hmac<Sha1> {
    let mut mac = Hmac::<Sha1>::new_from_slice(salt).expect("HMAC takes a key of any length");
    mac.update(name.as_bytes());
    mac
}

/// `hashed`: `salt|hash`, both base64.
fn hash_matches(hashed: &str, name: &str) -> bool {
    let Some((salt, hash)) = hashed.split_once('|') else { return false };
    match (STANDARD.decode(salt), STANDARD.decode(hash)) {
        (Ok(salt), Ok(hash)) => keyed(&salt, name).verify_slice(&hash).is_ok(),
        _ => false,
    }
}
