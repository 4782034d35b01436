//! Bodies: as they are sent, and as they come.

use std::io::Read;

use minijinja::value::{Serde, ValueKind};

use super::Format;
use crate::http::url::encode_form;
use crate::http::{LARGEST_BODY, Response};
use crate::modules::Error;
use crate::value::Value;

/// The body as it is sent, and its type.
pub(super) fn encoded(body: Option<&Value>, format: Format) -> Result<(Vec<u8>, Option<&'static str>), Error> {
    let Some(body) = body else { return Ok((Vec::new(), None)) };
    let text = body.as_str().map(str::to_owned);
    Ok(match format {
        Format::Raw => (text.unwrap_or_else(|| body.to_string()).into_bytes(), None),
        Format::Json => {
            let json = match text {
                Some(text) => text,
                None => serde_json::to_string(body).map_err(|_| Error::failed("body cannot be written as JSON"))?,
            };
            (json.into_bytes(), Some("application/json"))
        }
        Format::FormUrlencoded => {
            let form = text.map_or_else(|| form(body), Ok)?;
            (form.into_bytes(), Some("application/x-www-form-urlencoded"))
        }
        Format::FormMultipart => return Err(Error::failed("a body of several parts is made elsewhere")),
    })
}

/// A mapping (a list as value means several fields), or a list of pairs.
fn form(body: &Value) -> Result<String, Error> {
    let wrong = || Error::failed("body must be a mapping or a list of pairs to be sent as a form");
    let mut pairs = Vec::new();
    for item in body.try_iter().map_err(|_| wrong())? {
        let (name, value) = match body.kind() {
            ValueKind::Map => (item.clone(), body.get_item(&item).unwrap_or_default()),
            _ if item.len() == Some(2) => {
                (item.get_item_by_index(0).unwrap_or_default(), item.get_item_by_index(1).unwrap_or_default())
            }
            _ => return Err(wrong()),
        };
        let values = match value.kind() {
            ValueKind::Seq => value.try_iter().map(Iterator::collect).unwrap_or_default(),
            _ => vec![value],
        };
        let name = encode_form(&name.to_string());
        pairs.extend(values.iter().map(|value| format!("{name}={}", encode_form(&value.to_string()))));
    }
    Ok(pairs.join("&"))
}

/// The body of an answer; a compressed one as what it was.
pub(super) fn unpacked(response: &Response, decompress: bool) -> Result<Vec<u8>, Error> {
    if !decompress || response.header("content-encoding") != Some("gzip") {
        return Ok(response.body.clone());
    }
    gunzipped(&response.body, LARGEST_BODY)
}

/// Decompressed, at most `most` bytes.
fn gunzipped(packed: &[u8], most: usize) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    let unpacked = flate2::read::GzDecoder::new(packed).take(most as u64 + 1).read_to_end(&mut body);
    let refused = |why: String| Error::failed(format!("cannot decompress the response: {why}"));
    unpacked.map_err(|error| refused(error.to_string()))?;
    match body.len() > most {
        true => Err(refused(format!("it is larger than {} MiB", most >> 20))),
        false => Ok(body),
    }
}

/// The body as a value, if the answer says that it is JSON, and it is.
pub(super) fn json(response: &Response, body: &[u8]) -> Option<Value> {
    let kind = response.header("content-type")?.split(';').next()?.trim().to_ascii_lowercase();
    let subtype = kind.split_once('/')?.1;
    let subtype = subtype.rsplit('+').next()?;
    if !["json", "x-json", "javascript", "x-javascript", "x-web-app-manifest"].contains(&subtype) {
        return None;
    }
    serde_json::from_slice::<serde_json::Value>(body).ok().map(|json| Value::from(Serde(json)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_decompressed_than_the_limit() {
        use std::io::Write;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(&vec![0; 3 << 20]).unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(gunzipped(&packed, 3 << 20).unwrap().len(), 3 << 20);
        let error = gunzipped(&packed, (3 << 20) - 1).unwrap_err().to_string();
        assert!(error.contains("cannot decompress the response: it is larger than 2 MiB"), "{error}");
    }
}
