//! Signatures of requests, version 4, in the header `Authorization`
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>).

use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::value::Secret;

/// Who signs, and for which region.
#[derive(Debug, Clone)]
pub(super) struct Signer {
    pub access_key: String,
    pub secret_key: Secret,
    pub session_token: Option<Secret>,
    pub region: String,
}

/// What is signed of a request.
pub(super) struct Signed<'a> {
    pub method: &'a str,
    /// The value of the header `Host`.
    pub host: &'a str,
    /// Encoded, as it is sent.
    pub path: &'a str,
    /// As [`encoded_query`] gives it.
    pub query: &'a str,
    pub payload_sha256: &'a str,
}

impl Signer {
    /// Adds the headers of a signature to those that a request has. All of them are signed.
    pub(super) fn add_signature(&self, request: &Signed<'_>, headers: &mut Vec<(String, String)>, at: DateTime<Utc>) {
        let time = at.format("%Y%m%dT%H%M%SZ").to_string();
        let date = at.format("%Y%m%d").to_string();
        headers.push(("host".into(), request.host.into()));
        headers.push(("x-amz-content-sha256".into(), request.payload_sha256.into()));
        headers.push(("x-amz-date".into(), time.clone()));
        if let Some(token) = &self.session_token {
            headers.push(("x-amz-security-token".into(), token.reveal().into()));
        }
        let mut sorted: Vec<(String, &str)> =
            headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.trim())).collect();
        sorted.sort();
        let names = sorted.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(";");
        let lines: String = sorted.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let Signed { method, path, query, payload_sha256, .. } = request;
        let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{payload_sha256}");
        let scope = format!("{date}/{}/s3/aws4_request", self.region);
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
        let first = format!("AWS4{}", self.secret_key.reveal());
        let key = [date.as_str(), &self.region, "s3", "aws4_request"]
            .iter()
            .fold(first.into_bytes(), |key, part| mac(&key, part.as_bytes()));
        let signature = hex(&mac(&key, text.as_bytes()));
        let access_key = &self.access_key;
        headers.push((
            "authorization".into(),
            format!("AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"),
        ));
    }
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A query in the order in which it is signed.
pub(super) fn encoded_query(query: &[(&str, String)]) -> String {
    let mut parts: Vec<String> =
        query.iter().map(|(name, value)| format!("{}={}", encode(name, ""), encode(value, ""))).collect();
    parts.sort();
    parts.join("&")
}

/// A text in which all characters but letters, digits, `-._~` and those in `kept` are written as `%XX`.
pub(super) fn encode(text: &str, kept: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.as_bytes().contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    /// The examples of Amazon's description.
    #[test]
    fn signatures_are_those_of_the_published_examples() {
        const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        const WELCOME: &str = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
        let signer = Signer {
            access_key: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_key: Secret::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            session_token: None,
            region: "us-east-1".into(),
        };
        let at = Utc.with_ymd_and_hms(2013, 5, 24, 0, 0, 0).unwrap();
        let signature = |method, path: &str, query: &[(&str, String)], headers: &[(&str, &str)], payload_sha256| {
            let path = encode(path, "/");
            let host = "examplebucket.s3.amazonaws.com";
            let query = encoded_query(query);
            let request = Signed { method, host, path: &path, query: &query, payload_sha256 };
            let mut headers: Vec<(String, String)> =
                headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            signer.add_signature(&request, &mut headers, at);
            headers.pop().unwrap().1.split_once("Signature=").unwrap().1.to_owned()
        };
        let range = signature("GET", "/test.txt", &[], &[("range", "bytes=0-9")], EMPTY);
        assert_eq!(range, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
        let headers = [("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
        let put = signature("PUT", "/test$file.text", &[], &headers, WELCOME);
        assert_eq!(put, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
        let lifecycle = signature("GET", "/", &[("lifecycle", String::new())], &[], EMPTY);
        assert_eq!(lifecycle, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
        let list = signature("GET", "/", &[("prefix", "J".into()), ("max-keys", "2".into())], &[], EMPTY);
        assert_eq!(list, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    }

    #[test]
    fn the_session_token_is_signed_and_secrets_are_not_sent() {
        let signer = Signer {
            access_key: "id".into(),
            secret_key: Secret::new("private"),
            session_token: Some(Secret::new("session")),
            region: "r".into(),
        };
        let mut headers = Vec::new();
        let request = Signed { method: "GET", host: "h", path: "/", query: "", payload_sha256: "" };
        signer.add_signature(&request, &mut headers, Utc.timestamp_opt(0, 0).unwrap());
        assert!(headers.contains(&("x-amz-security-token".into(), "session".into())));
        let (_, authorization) = headers.pop().unwrap();
        assert!(authorization.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"));
        assert!(!authorization.contains("private"));
    }
}
