//! Requests to the one member that a module names.

use std::time::Duration;

use super::gateway::{Gateway, Refusal, Status};
use super::{Controller, Error, endpoint_url, load_tls};
use crate::http::{HttpError, Tls, Url};
use crate::modules::web::TlsFiles;
use crate::remote::Probe;

/// What the arguments of a module say of the member.
pub(super) struct OneMember<'a> {
    pub endpoint: &'a str,
    pub ca_cert: Option<&'a str>,
    pub client_cert: Option<&'a str>,
    pub client_key: Option<&'a str>,
    pub remote_src: bool,
    /// Seconds.
    pub timeout: u64,
}

impl OneMember<'_> {
    pub(super) async fn connect(&self, probe: &Probe, here: &Controller<'_>) -> Result<(Tls, Url), Error> {
        let url = endpoint_url(self.endpoint, self.ca_cert.is_some())?;
        let (client_cert, client_key) = (self.client_cert, self.client_key);
        let files =
            TlsFiles { ca: self.ca_cert, client_cert, client_key, controller: (!self.remote_src).then_some(here) };
        Ok((load_tls(files, probe, url.secure).await?, url))
    }

    pub(super) fn gateway<'p>(&self, probe: &'p Probe, tls: &'p Tls, url: Url) -> Gateway<'p> {
        Gateway { probe, tls, url, limit: Duration::from_secs(self.timeout.max(1)) }
    }

    pub(super) async fn status(&self, gateway: &Gateway<'_>) -> Result<Status, Error> {
        self.granted("does not report its status", gateway.status().await)
    }

    /// What the member answered. No answer is an error.
    pub(super) fn answered<T>(&self, answer: Result<T, HttpError>) -> Result<T, Error> {
        answer.map_err(|failure| match failure {
            HttpError::Host(error) => error.into(),
            failure => Error::failed(format!("{} does not answer: {failure}", self.endpoint)),
        })
    }

    /// What the member granted. A refusal is an error, too: `refused` says what it does not do.
    pub(super) fn granted<T>(&self, refused: &str, answer: Result<Result<T, Refusal>, HttpError>) -> Result<T, Error> {
        self.answered(answer)?.map_err(|refusal| Error::failed(format!("{} {refused}: {refusal}", self.endpoint)))
    }
}
