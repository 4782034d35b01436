//! Where a bucket is and who uses it: by the environment variables and files that the tools of AWS read.

use std::path::PathBuf;

use super::error::S3Error;
use crate::http::Tls;
use crate::value::{ProcessEnvironment, Secret};

/// Who uses a bucket, of which service.
#[derive(Debug, Clone)]
pub struct S3Settings {
    /// The URL of the service. None: Amazon's.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    pub authorities: Authorities,
    /// The bucket is a part of the host's name, also with an endpoint.
    pub has_virtual_hosts: bool,
    pub encryption: Option<ServerSideEncryption>,
    pub access_key: String,
    pub secret_key: Secret,
    pub session_token: Option<Secret>,
}

/// The certificate authorities that are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Authorities {
    /// Those of this machine.
    #[default]
    OfMachine,
    /// Those of a file in PEM format.
    File(PathBuf),
    /// Those of a text in PEM format.
    Text(String),
}

impl Authorities {
    pub(super) fn tls(&self) -> Result<Tls, String> {
        match self {
            Authorities::OfMachine => Tls::from_here(None),
            Authorities::File(path) => Tls::from_here(Some(path)),
            Authorities::Text(text) => Ok(Tls::trusting(text.as_bytes())),
        }
    }
}

/// How the service encrypts what it stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerSideEncryption {
    /// With keys of the service.
    Aes256,
    /// With a key of the key management service. None: its default key.
    Kms(Option<String>),
}

impl std::str::FromStr for ServerSideEncryption {
    type Err = String;

    /// `AES256`, `aws:kms` or `aws:kms:KEY`.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("aws:kms:")) {
            ("AES256", _) => Ok(ServerSideEncryption::Aes256),
            ("aws:kms", _) => Ok(ServerSideEncryption::Kms(None)),
            (_, Some(key)) if !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Ok(ServerSideEncryption::Kms(Some(key.to_owned())))
            }
            _ => Err("it must be AES256, aws:kms or aws:kms:KEY".to_owned()),
        }
    }
}

impl S3Settings {
    /// From `AWS_ACCESS_KEY_ID` and the like, or the file of credentials with the profile `AWS_PROFILE`.
    ///
    /// # Errors
    /// There are no keys.
    pub fn from_environment(around: &ProcessEnvironment) -> Result<S3Settings, S3Error> {
        let first = |names: &[&str]| names.iter().find_map(|name| around.variable(name)).map(str::to_owned);
        let (access_key, secret_key, session_token) = match around.variable("AWS_ACCESS_KEY_ID") {
            Some(id) => {
                let secret = around
                    .variable("AWS_SECRET_ACCESS_KEY")
                    .ok_or_else(|| S3Error::settings("AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not"))?;
                (id.to_owned(), secret.to_owned(), first(&["AWS_SESSION_TOKEN"]))
            }
            None => keys_of_profile(around)?,
        };
        Ok(S3Settings {
            endpoint: first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]),
            region: first(&["AWS_REGION", "AWS_DEFAULT_REGION"]),
            authorities: match around.variable("AWS_CA_BUNDLE") {
                Some(path) => Authorities::File(around.absolute(path)),
                None => Authorities::OfMachine,
            },
            has_virtual_hosts: false,
            encryption: None,
            access_key,
            secret_key: Secret::new(secret_key),
            session_token: session_token.map(Secret::new),
        })
    }
}

type Keys = (String, String, Option<String>);

fn keys_of_profile(around: &ProcessEnvironment) -> Result<Keys, S3Error> {
    let named = around.variable("AWS_SHARED_CREDENTIALS_FILE").map(|path| around.absolute(PathBuf::from(path)));
    let path = named.or_else(|| around.home.as_ref().map(|home| home.join(".aws/credentials")));
    let text = path.as_ref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let profile = around.variable("AWS_PROFILE").unwrap_or("default");
    let value = |name: &str| {
        let mut is_profile = false;
        let mut found = None;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                is_profile = section.trim() == profile;
            } else if let Some((_, value)) =
                line.split_once('=').filter(|(key, _)| is_profile && key.trim().eq_ignore_ascii_case(name))
            {
                found = Some(value.trim().to_owned());
            }
        }
        found.filter(|value| !value.is_empty())
    };
    match (value("aws_access_key_id"), value("aws_secret_access_key")) {
        (Some(id), Some(secret)) => Ok((id, secret, value("aws_session_token"))),
        _ => Err(S3Error::settings(match path.filter(|path| path.exists()) {
            Some(path) => {
                format!("AWS_ACCESS_KEY_ID is not set, and {} has no keys of the profile {profile}", path.display())
            }
            None => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set".to_owned(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> ProcessEnvironment {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ProcessEnvironment { variables: variables.collect(), ..ProcessEnvironment::default() }
    }

    #[test]
    fn keys_are_those_of_the_environment_or_of_a_profile() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "[default]\naws_access_key_id = one\naws_secret_access_key = first\n\n[ other ]\n# mine\n\
            AWS_ACCESS_KEY_ID=two\naws_secret_access_key=sec=ond\naws_session_token = t\n[half]\naws_access_key_id = three\n";
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().to_str().unwrap();
        let keys = |variables: &[(&str, &str)]| {
            let all = [variables, &[("AWS_SHARED_CREDENTIALS_FILE", path)]].concat();
            let found = S3Settings::from_environment(&environment(&all)).map_err(|error| error.to_string())?;
            let token = found.session_token.map(|token| token.reveal().to_owned());
            Ok::<_, String>((found.access_key, found.secret_key.reveal().to_owned(), token))
        };
        let own = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];
        assert_eq!(keys(&own), Ok(("id".into(), "secret".into(), None)));
        assert!(keys(&own[..1]).unwrap_err().contains("AWS_SECRET_ACCESS_KEY is not"));
        assert_eq!(keys(&[]), Ok(("one".into(), "first".into(), None)));
        assert_eq!(keys(&[("AWS_PROFILE", "other")]), Ok(("two".into(), "sec=ond".into(), Some("t".into()))));
        assert!(keys(&[("AWS_PROFILE", "half")]).unwrap_err().contains("no keys of the profile half"));
        let none = S3Settings::from_environment(&environment(&[])).unwrap_err().to_string();
        assert_eq!(none, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set");
    }

    #[test]
    fn variables_say_where_the_service_is() {
        let own = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];
        let more = [("AWS_ENDPOINT_URL", "https://a"), ("AWS_DEFAULT_REGION", "r"), ("AWS_CA_BUNDLE", "/ca.pem")];
        let found = S3Settings::from_environment(&environment(&[own.as_slice(), &more].concat())).unwrap();
        assert_eq!((found.endpoint.as_deref(), found.region.as_deref()), (Some("https://a"), Some("r")));
        assert_eq!(found.authorities, Authorities::File("/ca.pem".into()));
        assert!(!format!("{found:?}").contains("secret\""));
    }

    #[test]
    fn encryption_is_by_the_service_or_by_a_key() {
        let parsed = |text: &str| text.parse::<ServerSideEncryption>();
        assert_eq!(parsed("AES256"), Ok(ServerSideEncryption::Aes256));
        assert_eq!(parsed("aws:kms"), Ok(ServerSideEncryption::Kms(None)));
        assert_eq!(parsed("aws:kms:arn:x"), Ok(ServerSideEncryption::Kms(Some("arn:x".into()))));
        for wrong in ["", "aes256", "aws:kms:", "aws:kms:a\nb", "aws:kms:dsse key"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
