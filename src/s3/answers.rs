//! What an S3 service answers, in XML.

use roxmltree::{Document, Node};

use crate::http::url::decode;

/// An object in a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub key: String,
    /// In bytes.
    pub size: u64,
    /// By the clock of the service, in seconds since 1970.
    pub modified: u64,
}

/// A part of a list of objects.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListedObjects {
    pub objects: Vec<Object>,
    /// Asks for the next part.
    pub next: Option<String>,
}

fn text_of<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.children().find(|child| child.tag_name().name() == name)?.text()
}

/// How many attributes an answer may have. The parser compares those of an element with each other.
const MOST_ATTRIBUTES: usize = 1000;

/// The root of an answer, if it has the name.
fn within<T>(text: &[u8], name: &str, read: impl FnOnce(Node<'_, '_>) -> Option<T>) -> Result<T, String> {
    let invalid = || format!("the server's answer is no {name}");
    let text = std::str::from_utf8(text).map_err(|_| invalid())?;
    if text.matches(['"', '\'']).count() > 2 * MOST_ATTRIBUTES + text.matches("<ETag>").count() * 2 {
        return Err(invalid());
    }
    let document = Document::parse(text).map_err(|_| invalid())?;
    let root = Some(document.root_element()).filter(|root| root.tag_name().name() == name);
    root.and_then(read).ok_or_else(invalid)
}

/// Reads the answer of `ListObjectsV2`.
pub(super) fn parse_list(text: &[u8]) -> Result<ListedObjects, String> {
    within(text, "ListBucketResult", |root| {
        let is_encoded = text_of(root, "EncodingType") == Some("url");
        let contents = root.children().filter(|child| child.tag_name().name() == "Contents");
        let object = |node| {
            let key = text_of(node, "Key")?;
            let key = if is_encoded { decode(&key.replace('+', " ")) } else { key.to_owned() };
            let modified = chrono::DateTime::parse_from_rfc3339(text_of(node, "LastModified")?).ok()?.timestamp();
            let modified = u64::try_from(modified).unwrap_or_default();
            Some(Object { key, size: text_of(node, "Size")?.parse().ok()?, modified })
        };
        let objects = contents.map(object).collect::<Option<Vec<Object>>>()?;
        let next = match text_of(root, "IsTruncated") {
            // Without the token, objects would be missing.
            Some("true") => Some(text_of(root, "NextContinuationToken")?.to_owned()),
            _ => None,
        };
        Some(ListedObjects { objects, next })
    })
}

/// Reads the answer of `CreateMultipartUpload`: the ID of the upload.
pub(super) fn parse_upload(text: &[u8]) -> Result<String, String> {
    within(text, "InitiateMultipartUploadResult", |root| text_of(root, "UploadId").map(str::to_owned))
}

/// Reads the answer of `CompleteMultipartUpload`, which may be an error although its status is 200.
pub(super) fn parse_completed(text: &[u8]) -> Result<(), String> {
    within(text, "CompleteMultipartUploadResult", |_| Some(()))
}

/// The code and the message of an error; empty if the answer has none.
pub(super) fn parse_error(text: &[u8]) -> (String, String) {
    let found = within(text, "Error", |root| {
        let text = |name| text_of(root, name).unwrap_or_default().to_owned();
        Some((text("Code"), text("Message")))
    });
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_in_parts() {
        let text = br#"<?xml version="1.0" encoding="UTF-8"?>
            <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><EncodingType>url</EncodingType>
            <Contents><Key>a%2Fb+c</Key><Size>7</Size><LastModified>1970-01-01T00:01:40.000Z</LastModified></Contents>
            <Contents><Key>d</Key><Size>0</Size><LastModified>1970-01-01T00:00:00Z</LastModified></Contents>
            <IsTruncated>true</IsTruncated><NextContinuationToken>x=</NextContinuationToken></ListBucketResult>"#;
        let object = |key: &str, size, modified| Object { key: key.into(), size, modified };
        let objects = vec![object("a/b c", 7, 100), object("d", 0, 0)];
        assert_eq!(parse_list(text).unwrap(), ListedObjects { objects, next: Some("x=".into()) });
        let last = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
        assert_eq!(parse_list(last).unwrap(), ListedObjects { objects: Vec::new(), next: None });
        for wrong in [
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
            "<html/>",
            &format!("<ListBucketResult {}/>", (0..40_000).map(|n| format!("a{n}='' ")).collect::<String>()),
            "<!DOCTYPE x [<!ENTITY a \"aaa\">]><ListBucketResult>&a;</ListBucketResult>",
            "",
        ] {
            assert_eq!(
                parse_list(wrong.as_bytes()).unwrap_err(),
                "the server's answer is no ListBucketResult",
                "{wrong}"
            );
        }
    }

    #[test]
    fn an_upload_that_was_not_completed_is_an_error_with_status_200_too() {
        parse_completed(b"<CompleteMultipartUploadResult><Key>a</Key></CompleteMultipartUploadResult>").unwrap();
        let error = b"<Error><Code>InternalError</Code><Message>try again</Message></Error>";
        assert!(parse_completed(error).is_err());
        assert_eq!(parse_error(error), ("InternalError".into(), "try again".into()));
        assert_eq!(parse_error(b"not XML"), (String::new(), String::new()));
        let begun = b"<InitiateMultipartUploadResult><UploadId>u/1</UploadId></InitiateMultipartUploadResult>";
        assert_eq!(parse_upload(begun).unwrap(), "u/1");
    }
}
