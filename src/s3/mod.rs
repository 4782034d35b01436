//! Objects in a bucket of Amazon S3 (<https://docs.aws.amazon.com/AmazonS3/latest/API>), or of a service with the same protocol.

mod answers;
mod error;
mod requests;
mod settings;
mod sign;
mod upload;

use std::sync::Arc;
use std::time::Duration;

pub use answers::Object;
pub use error::S3Error;
pub use settings::{Authorities, S3Settings, ServerSideEncryption};

use requests::Call;
use sign::Signer;

use crate::connection::Confinement;
use crate::http::network::Network;
use crate::http::{Tls, Url};
use crate::value::ProcessEnvironment;

/// A bucket, and who uses it.
pub struct Bucket {
    name: String,
    /// Of the service; its path is that of the bucket.
    url: Url,
    signer: Signer,
    encryption: Option<ServerSideEncryption>,
    tls: Tls,
    proxy: Option<Url>,
    /// Where a connection may go to. None: anywhere.
    confined: Option<Arc<Confinement>>,
    /// For each step: the connection, the answer's head, each piece of its body.
    limit: Duration,
    attempts: u32,
    /// Before the second attempt; twice as long before each further one.
    pause: Duration,
    /// Larger objects are uploaded in parts of this size, in bytes.
    part: usize,
}

/// A page has up to 1000 objects.
const MOST_PAGES: usize = 1000;
/// The most objects that are listed.
const MOST_OBJECTS: usize = 200_000;

impl Bucket {
    /// `confined`: where a connection may go to, if others wrote the settings; then only with TLS, and without a proxy.
    ///
    /// # Errors
    /// The name or a setting is invalid, or the authorities cannot be read.
    pub fn new(
        name: &str,
        settings: &S3Settings,
        around: &ProcessEnvironment,
        confined: Option<Arc<Confinement>>,
    ) -> Result<Bucket, S3Error> {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        if !(3..=63).contains(&name.len()) || !name.bytes().all(is_name) || name.contains("..") {
            let message = format!("{name:?} is no name of a bucket: it must have 3 to 63 of a to z, 0 to 9, . and -");
            return Err(S3Error::settings(message));
        }
        let is_token = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_token(&settings.access_key) {
            return Err(S3Error::settings("the access key ID has characters that no key has"));
        }
        if settings.session_token.as_ref().is_some_and(|token| !is_token(token.reveal())) {
            return Err(S3Error::settings("the session token has characters that no token has"));
        }
        let region = match (&settings.region, &settings.endpoint) {
            (Some(region), _) => region.clone(),
            (None, Some(_)) => "us-east-1".to_owned(),
            (None, None) => {
                return Err(S3Error::settings("the region of the bucket is not known").with_hint("set AWS_REGION"));
            }
        };
        if region.is_empty() || !region.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
            return Err(S3Error::settings(format!("{region:?} is no region")));
        }
        let endpoint = match &settings.endpoint {
            Some(endpoint) => endpoint.clone(),
            None => format!("https://s3.{region}.amazonaws.com"),
        };
        let mut url = Url::parse(&endpoint)
            .map_err(|why| S3Error::settings(format!("the endpoint of the bucket {name} is no URL: {why}")))?;
        let is_here = url.host == "localhost" || url.host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        if !url.secure && (!is_here || confined.is_some()) {
            let except = if confined.is_some() { "" } else { ", except for this machine" };
            return Err(S3Error::settings(format!("the endpoint {url} must begin with https://{except}")));
        }
        if url.login.is_some() || url.path.contains('?') {
            let message = format!("the endpoint {url} must have no user, password and query");
            return Err(S3Error::settings(message));
        }
        // A certificate for all buckets covers no name with a dot.
        let has_virtual_hosts = settings.has_virtual_hosts || settings.endpoint.is_none() && !name.contains('.');
        url.path = url.path.trim_end_matches('/').to_owned();
        match has_virtual_hosts {
            true => url.host = format!("{name}.{}", url.host),
            false => url.path.push_str(&format!("/{name}")),
        }
        let tls = match url.secure {
            true => settings.authorities.tls().map_err(S3Error::settings)?,
            false => Tls::none(),
        };
        let proxy = match is_here || confined.is_some() {
            true => None,
            false => Network::from_here(around, true, false).proxy(&url).map_err(S3Error::settings)?,
        };
        let (access_key, secret_key) = (settings.access_key.clone(), settings.secret_key.clone());
        Ok(Bucket {
            name: name.to_owned(),
            url,
            signer: Signer { access_key, secret_key, session_token: settings.session_token.clone(), region },
            encryption: settings.encryption.clone(),
            tls,
            proxy,
            confined,
            limit: Duration::from_secs(60),
            attempts: 5,
            pause: Duration::from_millis(500),
            part: 16 << 20,
        })
    }

    /// `s3://BUCKET/KEY`
    pub fn object_address(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.name)
    }

    /// All objects whose keys begin with a text, in the order of their keys.
    ///
    /// # Errors
    /// The service refuses, or does not answer.
    pub async fn list_objects(&self, prefix: &str) -> Result<Vec<Object>, S3Error> {
        let what = format!("cannot list {}", self.object_address(prefix));
        let mut objects = Vec::new();
        let mut next = None;
        for _ in 0..MOST_PAGES {
            let mut query =
                vec![("list-type", "2".to_owned()), ("prefix", prefix.to_owned()), ("encoding-type", "url".to_owned())];
            query.extend(next.map(|token| ("continuation-token", token)));
            let (answer, _) = self.perform(&what, &Call { method: "GET", query, ..Call::default() }, &[]).await?;
            let part = answers::parse_list(&answer.body).map_err(|why| S3Error::other(&what, &why))?;
            objects.extend(part.objects);
            if objects.len() > MOST_OBJECTS {
                return Err(S3Error::other(&what, &format!("there are more than {MOST_OBJECTS} objects")));
            }
            match part.next {
                Some(token) => next = Some(token),
                None => return Ok(objects),
            }
        }
        Err(S3Error::other(&what, &format!("the list has more than {MOST_PAGES} pages")))
    }

    /// A small object.
    ///
    /// # Errors
    /// It does not exist, is larger than `most` bytes, or cannot be read.
    pub async fn read_object(&self, key: &str, most: usize) -> Result<Vec<u8>, S3Error> {
        let what = format!("cannot read {}", self.object_address(key));
        let (answer, _) = self.perform(&what, &Call { method: "GET", key, ..Call::default() }, &[]).await?;
        match answer.body.len() > most {
            true => Err(S3Error::other(&what, &format!("it is larger than {most} bytes"))),
            false => Ok(answer.body),
        }
    }

    /// Removes an object. One that does not exist is removed already.
    ///
    /// # Errors
    /// The service refuses, or does not answer.
    pub async fn delete_object(&self, key: &str) -> Result<(), S3Error> {
        let what = format!("cannot remove {}", self.object_address(key));
        self.perform(&what, &Call { method: "DELETE", key, ..Call::default() }, &[404]).await?;
        Ok(())
    }
}
