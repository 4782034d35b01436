//! `uri`: talks to a web service, as the host sees it.

mod body;
mod multipart;

use std::time::{Duration, Instant};

use indexmap::IndexMap;
use serde::Deserialize;

use super::file_attributes::DesiredAttributes;
use super::{Changes, Controller, Error, Module, Outcome, Plan, file_arguments, host_links};
use crate::http::follow::{Redirects, RequestOptions, basic};
use crate::http::network::Network;
use crate::http::{HttpError, Request, Response, Tls, Url};
use crate::modules::web;
use crate::modules::web::TlsFiles;
use crate::remote::{FileKind, Links, Probe, Remote};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Uri {
    url: String,
    method: String,
    body: Option<Value>,
    body_format: Format,
    src: Option<String>,
    remote_src: bool,
    headers: IndexMap<String, Value>,
    status_code: Vec<u16>,
    return_content: bool,
    validate_certs: bool,
    ca_path: Option<String>,
    client_cert: Option<String>,
    client_key: Option<String>,
    url_username: Option<String>,
    url_password: Option<String>,
    force_basic_auth: bool,
    http_agent: String,
    timeout: u64,
    follow_redirects: String,
    decompress: bool,
    use_proxy: bool,
    use_netrc: bool,
    dest: Option<String>,
    creates: Option<String>,
    removes: Option<String>,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Format {
    Raw,
    Json,
    FormUrlencoded,
    FormMultipart,
}

impl Module for Uri {
    const CHANGES: Changes = Changes::Other;
    const DOC: Doc = Doc {
        name: "uri",
        collection: "ansible.builtin",
        summary: "Send a request to a web service, through the host's network",
        arguments: &[
            Argument::new("url", ArgumentKind::Str, "The address, http or https").required(),
            Argument::new("method", ArgumentKind::Str, "The method, in capital letters").default("GET"),
            Argument::new(
                "body",
                ArgumentKind::Any,
                "The request body; with body_format json or form-urlencoded it may be a mapping; with form-multipart a mapping of texts, \
                 and of mappings with filename or content, mime_type and multipart_encoding",
            ),
            Argument::new("body_format", ArgumentKind::Str, "The format of body").default("raw").choices(&[
                "raw",
                "json",
                "form-urlencoded",
                "form-multipart",
            ]),
            Argument::new("src", ArgumentKind::Path, "A file to send instead of body"),
            file_arguments::REMOTE_SRC.default("false"),
            web::HEADERS,
            Argument::new("status_code", ArgumentKind::List(&ArgumentKind::Int), "The status codes that mean success")
                .default("200"),
            Argument::new("return_content", ArgumentKind::Bool, "Whether to return the response body as content")
                .default("false"),
            web::VALIDATE_CERTS,
            Argument::new(
                "ca_path",
                ArgumentKind::Path,
                "A file on the host with the certificate authorities to trust, instead of the system's",
            ),
            web::CLIENT_CERT,
            web::CLIENT_KEY,
            Argument::new("url_username", ArgumentKind::Str, "The user to log in as").alias(&["user"]),
            web::URL_PASSWORD,
            web::FORCE_BASIC_AUTH,
            web::HTTP_AGENT,
            Argument::new("timeout", ArgumentKind::Int, "Timeout for the response, in seconds").default("30"),
            Argument::new("follow_redirects", ArgumentKind::Str, "safe: only of GET and HEAD")
                .default("safe")
                .choices(&["all", "none", "safe", "urllib2", "yes", "no"]),
            Argument::new("decompress", ArgumentKind::Bool, "Whether to decompress a compressed response")
                .default("true"),
            web::USE_PROXY,
            web::USE_NETRC,
            Argument::new(
                "dest",
                ArgumentKind::Path,
                "Where on the host to store the response body: a file or a directory",
            ),
            Argument::new("creates", ArgumentKind::Path, "A path; if it exists, the task is skipped"),
            Argument::new("removes", ArgumentKind::Path, "A path; unless it exists, the task is skipped"),
            file_arguments::OWNER,
            file_arguments::GROUP,
            file_arguments::MODE,
            file_arguments::ATTRIBUTES,
            file_arguments::SEUSER,
            file_arguments::SEROLE,
            file_arguments::SETYPE,
            file_arguments::SELEVEL,
            file_arguments::UNSAFE_WRITES,
        ],
        free_form: None,
        example: "\
- name: Wait until the service is healthy
  uri:
    url: https://127.0.0.1:6443/healthz
    ca_path: /etc/service/ca.crt
    return_content: true
  register: health
  until: health.status == 200
  retries: 5
  delay: 1
",
        returns: &[
            Return::new("status", "The status code of the response, -1 if there was none"),
            Return::new("url", "The URL of the response"),
            Return::new("redirected", "Whether it differs from the requested URL"),
            Return::new("content", "The body, with return_content"),
            Return::new("json", "The body as a value, if it is JSON"),
            Return::new("cookies", "The cookies that were set"),
            Return::new("elapsed", "How many seconds it took"),
            Return::new("path", "The path of the stored body"),
            Return::new("content_type", "As all headers: in lower case, with underscores"),
        ],
    };
    type Change = ();

    async fn plan(&self, probe: &Probe, _: &Controller<'_>) -> Result<Plan<()>, Error> {
        for (path, wanted) in [(&self.creates, true), (&self.removes, false)] {
            let Some(path) = path else { continue };
            if probe.stat(&probe.expand_on_host(path).await?, Links::Follow).await?.is_some() == wanted {
                let state = if wanted { "exists" } else { "does not exist" };
                let outcome = Outcome::default().with("stdout", format!("skipped, since '{path}' {state}"));
                return Ok(Plan::Unchanged(outcome));
            }
        }
        Ok(Plan::Unknown(()))
    }

    async fn apply(&self, (): (), remote: &Remote, here: &Controller<'_>) -> Result<Outcome, Error> {
        let mut request = self.request(remote, here).await?;
        let network =
            Network::load_network(remote, self.use_proxy, self.use_netrc && self.url_username.is_none()).await?;
        request.log_in(&network);
        let files = TlsFiles {
            ca: self.ca_path.as_deref(),
            client_cert: self.client_cert.as_deref(),
            client_key: self.client_key.as_deref(),
            controller: None,
        };
        let asked = request.url.clone();
        let needs_tls = asked.secure || self.follow_redirects != "none";
        let tls = if needs_tls { files.load_tls(remote, self.validate_certs).await? } else { Tls::none() };
        let clock = Instant::now();
        let limit = Duration::from_secs(self.timeout);
        let manner =
            RequestOptions { tls: &tls, limit, redirects: self.redirects(), unredirected: &[], network: &network };
        let answer = manner.send(remote, &mut request, None).await;
        let elapsed = clock.elapsed().as_secs();
        match answer {
            Ok(response) => self.answered(&request.url, request.url != asked, elapsed, response, remote).await,
            Err(HttpError::Host(error)) => Err(error.into()),
            Err(failure) => Ok(self.unanswered(&asked, elapsed, &failure)),
        }
    }
}

impl Uri {
    async fn request(&self, remote: &Remote, here: &Controller<'_>) -> Result<Request, Error> {
        let mut url = Url::parse(&self.url).map_err(|why| Error::failed(format!("invalid URL: {why}")))?;
        if self.method.is_empty() || !self.method.chars().all(|c| c.is_ascii_uppercase()) {
            return Err(Error::failed(format!(
                "method {:?} must be a word in capital letters, such as GET",
                self.method
            )));
        }
        let mut headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let has = |headers: &[(String, String)], name: &str| headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        let (content, kind) = match &self.src {
            Some(_) if self.body.is_some() => return Err(Error::failed("only body or src can be given, not both")),
            Some(src) => (self.file(src, remote, here).await?, None),
            None if self.body_format == Format::FormMultipart => {
                let body = self.body.as_ref().ok_or_else(|| Error::failed("form-multipart needs a body"))?;
                let mut parts = multipart::parts(body)?;
                for part in &mut parts {
                    if let Some(file) = part.file_name() {
                        part.content = self.file(file, remote, here).await?;
                    }
                }
                headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
                let (content, kind) = multipart::joined(&parts);
                headers.push(("Content-Type".to_owned(), kind));
                (content, None)
            }
            None => body::encoded(self.body.as_ref(), self.body_format)?,
        };
        if let Some(kind) = kind
            && !has(&headers, "content-type")
        {
            headers.push(("Content-Type".to_owned(), kind.to_owned()));
        }
        if !has(&headers, "user-agent") {
            headers.push(("User-Agent".to_owned(), self.http_agent.clone()));
        }
        if let Some(user) = &self.url_username {
            url.login = Some((user.clone(), self.url_password.clone().unwrap_or_default()));
        }
        if self.force_basic_auth
            && let Some(login) = &url.login
        {
            headers.push(("Authorization".to_owned(), basic(login)));
        }
        Ok(Request { method: self.method.clone(), headers, body: content, ..Request::get(url) })
    }

    async fn file(&self, src: &str, remote: &Remote, here: &Controller<'_>) -> Result<Vec<u8>, Error> {
        if self.remote_src {
            let path = remote.expand_on_host(src).await?;
            host_links::stat_target(remote, &path).await?;
            return remote
                .read_file(&path)
                .await?
                .ok_or_else(|| Error::failed(format!("no such file on the host: {path}")));
        }
        let path = here.find_file("files", src)?;
        std::fs::read(&path).map_err(|error| Error::failed(format!("cannot read {}: {error}", path.display())))
    }

    fn redirects(&self) -> Redirects {
        match self.follow_redirects.as_str() {
            "none" | "no" => Redirects::None,
            "safe" => Redirects::Safe,
            _ => Redirects::All,
        }
    }

    async fn answered(
        &self,
        url: &Url,
        redirected: bool,
        elapsed: u64,
        response: Response,
        remote: &Remote,
    ) -> Result<Outcome, Error> {
        let content = body::unpacked(&response, self.decompress)?;
        let as_expected = self.status_code.contains(&response.status);
        let words = match response.status {
            200..=299 => format!("OK ({} bytes)", response.header("content-length").unwrap_or("unknown")),
            status => format!("HTTP Error {status}: {}", response.reason),
        };
        let mut outcome = flattened(&response, url)
            .with("status", response.status)
            .with("url", url.to_string())
            .with("redirected", redirected)
            .with("elapsed", elapsed);
        if let Some(json) = body::json(&response, &content) {
            outcome = outcome.with("json", json);
        }
        if self.return_content {
            outcome = outcome.with("content", String::from_utf8_lossy(&content).into_owned());
        }
        if !as_expected {
            outcome.failed = Some(self.unexpected(i32::from(response.status), &words));
            return Ok(outcome);
        }
        if let Some(dest) = &self.dest
            && response.status != 304
        {
            let (path, changed) = self.keep(dest, &url.path, &content, remote).await?;
            outcome = outcome.with("path", path);
            outcome.changed = changed;
        }
        Ok(outcome.message(words))
    }

    fn unanswered(&self, url: &Url, elapsed: u64, failure: &HttpError) -> Outcome {
        let failed = Some(self.unexpected(-1, &format!("Request failed: {failure}")));
        let outcome = Outcome { failed, ..Outcome::default() };
        outcome.with("status", -1).with("url", url.to_string()).with("redirected", false).with("elapsed", elapsed)
    }

    fn unexpected(&self, status: i32, words: &str) -> String {
        let wanted: Vec<String> = self.status_code.iter().map(u16::to_string).collect();
        format!("Status code was {status} and not [{}]: {words}", wanted.join(", "))
    }

    /// Keeps the body on the host; gives its path, and whether it differs from what was there.
    async fn keep(&self, dest: &str, url: &str, body: &[u8], remote: &Remote) -> Result<(String, bool), Error> {
        let mut path = remote.expand_on_host(dest).await?;
        let mut there = host_links::stat_target(remote, &path).await?;
        if there.as_ref().is_some_and(|stat| stat.kind == FileKind::Directory) {
            let name = url.split('?').next().and_then(|path| path.rsplit('/').next()).filter(|name| !name.is_empty());
            path = format!("{}/{}", path.trim_end_matches('/'), name.unwrap_or("index.html"));
            there = host_links::stat_target(remote, &path).await?;
        }
        let wanted =
            DesiredAttributes::load_wanted(remote, self.owner.as_deref(), self.group.as_deref(), self.mode.as_deref())
                .await?;
        if let Some(stat) = &there
            && remote.read_file(&path).await?.as_deref() == Some(body)
        {
            let lacking = wanted.lacking(stat);
            let changed = !super::file_attributes::is_empty(&lacking);
            if changed {
                remote.set_attributes(&path, &lacking, Links::Follow).await?;
            }
            return Ok((path, changed));
        }
        // A link is replaced, and gives the new file nothing.
        let there = remote.stat(&path, Links::Keep).await?.filter(|stat| stat.kind != FileKind::Link);
        let attributes = there.map_or_else(|| wanted.for_new(FileKind::File), |stat| wanted.lacking(&stat));
        remote.write(&path, body, &attributes).await?;
        Ok((path, true))
    }
}

/// Headers as return values: lower case, underscores; several of one name are joined.
fn flattened(response: &Response, url: &Url) -> Outcome {
    let mut headers: IndexMap<String, String> = IndexMap::new();
    let mut cookies: IndexMap<String, String> = IndexMap::new();
    for (name, value) in &response.headers {
        if name == "set-cookie"
            && let Some((name, value)) = value.split(';').next().and_then(|pair| pair.split_once('='))
        {
            cookies.insert(name.trim().to_owned(), value.trim().to_owned());
        }
        let name = name.replace('-', "_");
        // Where a file was kept is for the module to say: its attributes are looked after there.
        if matches!(&*name, "path" | "dest") {
            continue;
        }
        headers.entry(name).and_modify(|all| all.push_str(&format!(", {value}"))).or_insert_with(|| value.clone());
    }
    if let Some(location) = headers.get_mut("location")
        && let Ok(joined) = url.resolve_location(location)
    {
        *location = joined.to_string();
    }
    let cookies_string: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut outcome = Outcome::default();
    for (name, value) in headers {
        outcome = outcome.with(&name, value);
    }
    outcome.with("cookies", Value::from_pairs(cookies)).with("cookies_string", cookies_string.join("; "))
}

#[cfg(test)]
mod tests;
