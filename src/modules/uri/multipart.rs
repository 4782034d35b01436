//! A body of several parts, such as a form with files.

use base64::Engine;
use minijinja::value::ValueKind;

use crate::modules::{Error, file_digest};
use crate::value::Value;

/// What a file is by the end of its name; anything else is bytes.
const KINDS: &[(&str, &str)] = &[
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("txt", "text/plain"),
    ("xml", "text/xml"),
    ("zip", "application/zip"),
];

/// One field of the form.
#[derive(Debug)]
pub(super) struct Part {
    name: String,
    file_name: Option<String>,
    kind: String,
    /// None: what is sent is the text itself.
    encoding: Option<Encoding>,
    pub content: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Base64,
    Plain,
}

impl Part {
    /// The file whose content this part is to have.
    pub(super) fn file_name(&self) -> Option<&str> {
        self.file_name.as_deref().filter(|_| self.encoding.is_some())
    }

    fn is_fit(&self) -> bool {
        [Some(&self.name), self.file_name.as_ref(), Some(&self.kind)]
            .into_iter()
            .flatten()
            .all(|text| !text.contains(['\r', '\n']))
    }

    fn write(&self, body: &mut Vec<u8>) {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let mut head = match self.encoding {
            None => String::new(),
            Some(Encoding::Base64) => "Content-Transfer-Encoding: base64\r\n".to_owned(),
            Some(Encoding::Plain) if self.content.is_ascii() => "Content-Transfer-Encoding: 7bit\r\n".to_owned(),
            Some(Encoding::Plain) => "Content-Transfer-Encoding: 8bit\r\n".to_owned(),
        };
        head.push_str(&format!("Content-Type: {}\r\n", self.kind));
        head.push_str(&format!("Content-Disposition: form-data; name={}", quoted(&self.name)));
        if let Some(name) = &self.file_name {
            head.push_str(&format!("; filename={}", quoted(name.rsplit('/').next().unwrap_or_default())));
        }
        body.extend(head.as_bytes());
        body.extend(b"\r\n\r\n");
        if self.encoding == Some(Encoding::Base64) {
            let text = base64::engine::general_purpose::STANDARD.encode(&self.content);
            for line in text.as_bytes().chunks(76) {
                body.extend(line);
                body.extend(b"\r\n");
            }
        } else {
            body.extend(lines_of_mail(&self.content));
        }
    }
}

/// Text whose lines end as those of mail and forms do.
fn lines_of_mail(text: &[u8]) -> Vec<u8> {
    let mut mail = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\n' if at > 0 && text[at - 1] == b'\r' => {}
            b'\n' | b'\r' => mail.extend(b"\r\n"),
            byte => mail.push(*byte),
        }
    }
    mail
}

/// The parts of a mapping, sorted by name; those of files without their content.
pub(super) fn parts(body: &Value) -> Result<Vec<Part>, Error> {
    if body.kind() != ValueKind::Map {
        return Err(Error::failed("body must be a mapping to be sent as form-multipart"));
    }
    let keys = body.try_iter().into_iter().flatten();
    let mut parts = keys
        .map(|key| part(key.to_string(), &body.get_item(&key).unwrap_or_default()))
        .collect::<Result<Vec<_>, _>>()?;
    parts.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(parts)
}

fn part(name: String, value: &Value) -> Result<Part, Error> {
    let wrong = |what: &str| Error::failed(format!("the part {name:?} of body {what}"));
    let part = match value.kind() {
        ValueKind::String => Part {
            file_name: None,
            kind: "text/plain".to_owned(),
            encoding: None,
            content: value.to_string().into_bytes(),
            name: name.clone(),
        },
        ValueKind::Map => {
            let text = |key: &str| {
                let found = value.get_attr(key).ok().filter(|found| !found.is_undefined() && !found.is_none());
                found.map(|found| found.to_string()).filter(|text| !text.is_empty())
            };
            let (file_name, content) = (text("filename"), text("content"));
            if file_name.is_none() && content.is_none() {
                return Err(wrong("has neither filename nor content"));
            }
            let encoding = match text("multipart_encoding").as_deref() {
                _ if content.is_some() => None,
                None | Some("base64") => Some(Encoding::Base64),
                Some("7or8bit") => Some(Encoding::Plain),
                Some(_) => return Err(wrong("has a multipart_encoding that is neither base64 nor 7or8bit")),
            };
            let end = file_name.as_deref().and_then(|name| name.rsplit_once('.')).map_or("", |(_, end)| end);
            let usual = KINDS.iter().find(|(known, _)| end.eq_ignore_ascii_case(known)).map(|(_, kind)| *kind);
            let kind = text("mime_type").unwrap_or_else(|| usual.unwrap_or("application/octet-stream").to_owned());
            Part { name: name.clone(), file_name, kind, encoding, content: content.unwrap_or_default().into_bytes() }
        }
        _ => return Err(wrong("must be a text or a mapping")),
    };
    if part.is_fit() { Ok(part) } else { Err(wrong("has line ends in its name or type")) }
}

/// The body, and its type with what is between the parts.
pub(super) fn joined(parts: &[Part]) -> (Vec<u8>, String) {
    let all: Vec<u8> = parts.iter().flat_map(|part| part.content.iter().copied()).collect();
    // No content has its own digest in it.
    let boundary = format!("==============={}==", file_digest::of_bytes(&all).sha1);
    let mut body = Vec::new();
    for part in parts {
        body.extend(format!("--{boundary}\r\n").as_bytes());
        part.write(&mut body);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").as_bytes());
    (body, format!("multipart/form-data; boundary=\"{boundary}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(json: serde_json::Value) -> Value {
        Value::from(minijinja::value::Serde(json))
    }

    #[test]
    fn parts_come_with_their_heads() {
        let body = mapping(serde_json::json!({
            "z": "text", "a": {"filename": "/x/a.json"}, "b": {"content": "1", "filename": "b", "mime_type": "text/x"},
        }));
        let mut parts = parts(&body).unwrap();
        assert_eq!(parts.iter().map(Part::file_name).collect::<Vec<_>>(), [Some("/x/a.json"), None, None]);
        parts[0].content = vec![0; 60];
        let (body, kind) = joined(&parts);
        let boundary = kind.split('"').nth(1).unwrap();
        let body = String::from_utf8(body).unwrap();
        let expected = format!(
            "--{boundary}\r\nContent-Transfer-Encoding: base64\r\nContent-Type: application/json\r\n\
             Content-Disposition: form-data; name=\"a\"; filename=\"a.json\"\r\n\r\n{}\r\nAAAA\r\n\r\n\
             --{boundary}\r\nContent-Type: text/x\r\nContent-Disposition: form-data; name=\"b\"; filename=\"b\"\r\n\r\n1\r\n\
             --{boundary}\r\nContent-Type: text/plain\r\nContent-Disposition: form-data; name=\"z\"\r\n\r\ntext\r\n\
             --{boundary}--\r\n",
            "A".repeat(76)
        );
        assert_eq!(body, expected);
        assert_eq!(lines_of_mail(b"a\nb\r\nc\r"), b"a\r\nb\r\nc\r\n");
    }

    #[test]
    fn what_is_no_part_is_reported() {
        for (json, reported) in [
            (serde_json::json!({"a": 1}), "the part \"a\" of body must be a text or a mapping"),
            (serde_json::json!({"a": {}}), "the part \"a\" of body has neither filename nor content"),
            (serde_json::json!({"a\r\nb": "x"}), "the part \"a\\r\\nb\" of body has line ends in its name or type"),
            (serde_json::json!([1]), "body must be a mapping to be sent as form-multipart"),
        ] {
            assert_eq!(parts(&mapping(json)).unwrap_err().to_string(), reported);
        }
    }
}
