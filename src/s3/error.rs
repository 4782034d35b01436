//! Why a bucket cannot be used.

use super::answers::parse_error;
use crate::http::Response;

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
        let said = match code.as_str() {
            "" => answer.reason.clone(),
            code => format!("{code}: {}", message.chars().take(LONGEST_MESSAGE).collect::<String>()),
        };
        let text = format!("{what}: the server responded {} {said}", answer.status);
        let hint = match (code.as_str(), answer.header("x-amz-bucket-region")) {
            ("PermanentRedirect" | "AuthorizationHeaderMalformed", Some(region)) => {
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
}

/// Of a message of the server.
const LONGEST_MESSAGE: usize = 300;

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
