//! The download itself: the request, and the file on the controller that holds what came.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use chrono::DateTime;
use tempfile::TempDir;

use super::GetUrl;
use crate::http::follow::{Redirects, RequestOptions, basic};
use crate::http::network::Network;
use crate::http::url::decode;
use crate::http::{HttpError, LARGEST_DOWNLOAD, Request, Response, Tls, Url};
use crate::modules::Error;
use crate::modules::web::TlsFiles;
use crate::remote::{Digest, FileKind, Links, Probe};
use crate::value::float;

/// What a server answered.
pub(super) enum Answer {
    File(Fetched),
    /// It did not change since then; Ansible's words for it.
    Unchanged(String),
    Refused {
        /// -1: there was no answer.
        status: i32,
        words: String,
    },
}

/// Where a file is.
#[derive(Debug, Clone)]
pub(super) enum DownloadSource {
    Web(Url),
    /// On the host.
    File {
        address: String,
        path: String,
    },
}

impl DownloadSource {
    /// The error gives the reason and does not show a password.
    pub(super) fn parse_source(text: &str) -> Result<DownloadSource, String> {
        let Some(rest) = text.strip_prefix("file:") else { return Url::parse(text).map(DownloadSource::Web) };
        let path = rest.strip_prefix("//localhost").or_else(|| rest.strip_prefix("//")).unwrap_or(rest);
        match path.starts_with('/') {
            true => Ok(DownloadSource::File { address: text.to_owned(), path: decode(path) }),
            false => Err(format!("{text:?} has no absolute path on the host, such as file:///etc/hosts")),
        }
    }

    pub(super) fn source_path(&self) -> &str {
        match self {
            DownloadSource::Web(url) => &url.path,
            DownloadSource::File { path, .. } => path,
        }
    }
}

impl std::fmt::Display for DownloadSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DownloadSource::Web(url) => url.fmt(f),
            DownloadSource::File { address, .. } => f.write_str(address),
        }
    }
}

/// A file that came, on the controller. It is removed with this.
pub(crate) struct Fetched {
    directory: TempDir,
    /// What the server calls it: a file name, never a path.
    pub name: String,
    /// Ansible's `msg`.
    pub words: String,
    /// The code of the answer; None: no server was asked.
    pub status: Option<u16>,
}

impl Fetched {
    /// Where it is on the controller.
    pub(crate) fn local_path(&self) -> PathBuf {
        self.directory.path().join("download")
    }

    /// Lower-case hex.
    pub(crate) async fn fetched_digest(&self, algorithm: Digest) -> Result<String, Error> {
        let path = self.local_path();
        let hashed = tokio::task::spawn_blocking(move || match algorithm {
            Digest::Md5 => hash::<md5::Md5>(path),
            Digest::Sha1 => hash::<sha1::Sha1>(path),
            Digest::Sha224 => hash::<sha2::Sha224>(path),
            Digest::Sha256 => hash::<sha2::Sha256>(path),
            Digest::Sha384 => hash::<sha2::Sha384>(path),
            Digest::Sha512 => hash::<sha2::Sha512>(path),
        });
        hashed.await.map_err(std::io::Error::other).flatten().map_err(|error| not_kept(&error))
    }
}

fn hash<D: sha2::Digest>(path: PathBuf) -> std::io::Result<String> {
    let mut sum = D::new();
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            count => sum.update(&buffer[..count]),
        }
    }
}

impl GetUrl {
    /// Asks for the file. `since`: only if it changed after that, in seconds since 1970.
    pub(super) async fn fetch(
        &self,
        probe: &Probe,
        source: DownloadSource,
        since: Option<f64>,
        force: bool,
    ) -> Result<Answer, Error> {
        let directory = tempfile::Builder::new().prefix(".windlass.").tempdir().map_err(|error| not_kept(&error))?;
        let url = match source {
            DownloadSource::Web(url) => url,
            DownloadSource::File { path, .. } => return of_host(probe, &path, directory).await,
        };
        let network = self.network(probe).await?;
        let mut request = self.request(url);
        request.log_in(&network);
        if force {
            request.headers.push(("Cache-Control".to_owned(), "no-cache".to_owned()));
        } else if let Some(since) = since.and_then(|seconds| DateTime::from_timestamp(float::whole_part(seconds), 0)) {
            let date = since.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
            request.headers.push(("If-Modified-Since".to_owned(), date));
        }
        let tls = self.tls(probe).await?;
        let mut file =
            tokio::fs::File::create(directory.path().join("download")).await.map_err(|error| not_kept(&error))?;
        let unredirected = lower_case(&self.unredirected_headers);
        let answer = self.manner(&tls, &unredirected, &network).send(probe, &mut request, Some(&mut file)).await;
        let response = match answer {
            Ok(response) => response,
            Err(HttpError::Host(error)) => return Err(error.into()),
            Err(failure) => return Ok(Answer::Refused { status: -1, words: failure.to_string() }),
        };
        match response.status {
            200 => {}
            304 => return Ok(Answer::Unchanged("HTTP Error 304: Not Modified".to_owned())),
            status => {
                return Ok(Answer::Refused {
                    status: i32::from(status),
                    words: format!("HTTP Error {status}: {}", response.reason),
                });
            }
        }
        let packed = matches!(response.header("content-encoding"), Some("gzip" | "x-gzip"));
        let name = disposed_name(&response).unwrap_or_else(|| file_name(&request.url.path));
        let words = format!("OK ({} bytes)", response.header("content-length").unwrap_or("unknown"));
        let fetched = Fetched { directory, name, words, status: Some(200) };
        if packed && self.decompress {
            unpack(fetched.local_path()).await?;
        }
        Ok(Answer::File(fetched))
    }

    /// A short text from a server, such as a list of digests.
    pub(super) async fn fetch_text(&self, probe: &Probe, source: DownloadSource) -> Result<String, Error> {
        let failed = |words: String| Error::failed(format!("cannot read {source}: {words}"));
        let url = match &source {
            DownloadSource::Web(url) => url.clone(),
            DownloadSource::File { path, .. } => {
                let text = probe.read_file(path).await?.ok_or_else(|| failed("no such file on the host".into()))?;
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
        };
        let network = self.network(probe).await?;
        let mut request = self.request(url);
        request.log_in(&network);
        let tls = self.tls(probe).await?;
        let unredirected = lower_case(&self.unredirected_headers);
        match self.manner(&tls, &unredirected, &network).send(probe, &mut request, None).await {
            Ok(response) if response.status == 200 => Ok(String::from_utf8_lossy(&response.body).into_owned()),
            Ok(response) => Err(failed(format!("HTTP Error {}: {}", response.status, response.reason))),
            Err(HttpError::Host(error)) => Err(error.into()),
            Err(failure) => Err(failed(failure.to_string())),
        }
    }

    fn manner<'a>(&self, tls: &'a Tls, unredirected: &'a [String], network: &'a Network) -> RequestOptions<'a> {
        RequestOptions {
            tls,
            limit: Duration::from_secs(self.timeout),
            redirects: Redirects::Safe,
            unredirected,
            network,
        }
    }

    async fn network(&self, probe: &Probe) -> Result<Network, Error> {
        Ok(Network::load_network(probe, self.use_proxy, self.use_netrc && self.url_username.is_none()).await?)
    }

    async fn tls(&self, probe: &Probe) -> Result<Tls, Error> {
        let files = TlsFiles {
            client_cert: self.client_cert.as_deref(),
            client_key: self.client_key.as_deref(),
            ..TlsFiles::default()
        };
        // An http address may lead to an https one.
        files.load_tls(probe, self.validate_certs).await
    }

    fn request(&self, mut url: Url) -> Request {
        if let Some(user) = &self.url_username {
            url.login = Some((user.clone(), self.url_password.clone().unwrap_or_default()));
        }
        let mut headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
            headers.push(("User-Agent".to_owned(), self.http_agent.clone()));
        }
        if let (true, Some(login)) = (self.force_basic_auth, &url.login) {
            headers.push(("Authorization".to_owned(), basic(login)));
        }
        Request { headers, ..Request::get(url) }
    }
}

/// A file of the host itself.
async fn of_host(probe: &Probe, path: &str, directory: TempDir) -> Result<Answer, Error> {
    let size = match probe.stat(path, Links::Follow).await? {
        Some(stat) if stat.kind == FileKind::File => stat.size,
        _ => {
            let words = format!("no such file on the host: {path}");
            return Ok(Answer::Refused { status: -1, words });
        }
    };
    probe.download(path, &directory.path().join("download")).await?;
    let words = format!("OK ({size} bytes)");
    Ok(Answer::File(Fetched { directory, name: file_name(path), words, status: None }))
}

fn lower_case(names: &[String]) -> Vec<String> {
    names.iter().map(|name| name.to_ascii_lowercase()).collect()
}

/// The last part of an address's path; a server's own name for its root is not known.
pub(super) fn file_name(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    safe(path).unwrap_or_else(|| "index.html".to_owned())
}

/// The name that the header `Content-Disposition` gives.
fn disposed_name(response: &Response) -> Option<String> {
    let header = response.header("content-disposition")?;
    let parameters = header.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, name) = parameters.into_iter().find(|(key, _)| key.trim().eq_ignore_ascii_case("filename"))?;
    safe(name.trim().trim_matches('"'))
}

/// The file name that a server sent: it never points outside the directory.
fn safe(path: &str) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or_default();
    (!matches!(name, "" | "." | "..") && !name.contains('\0')).then(|| name.to_owned())
}

async fn unpack(path: PathBuf) -> Result<(), Error> {
    let unpacked = tokio::task::spawn_blocking(move || {
        let plain = path.with_extension("plain");
        gunzip(std::fs::File::open(&path)?, &mut std::fs::File::create(&plain)?, LARGEST_DOWNLOAD)?;
        std::fs::rename(&plain, &path)
    });
    let done = unpacked.await.map_err(std::io::Error::other).flatten();
    done.map_err(|error| Error::failed(format!("cannot decompress the download: {error}")))
}

fn gunzip(packed: impl std::io::Read, plain: &mut impl std::io::Write, most: u64) -> std::io::Result<()> {
    let mut reader = std::io::Read::take(flate2::read::MultiGzDecoder::new(packed), most + 1);
    match std::io::copy(&mut reader, plain)? > most {
        true => Err(std::io::Error::other(format!("it is larger than {} GiB", most >> 30))),
        false => Ok(()),
    }
}

fn not_kept(error: &std::io::Error) -> Error {
    Error::failed(format!("cannot keep the download on the controller: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_s_name_for_a_file_never_leads_out_of_the_directory() {
        let named = |header: &str| {
            let headers = vec![("content-disposition".to_owned(), header.to_owned())];
            disposed_name(&Response { status: 200, reason: String::new(), headers, body: Vec::new() })
        };
        assert_eq!(named("attachment; filename=\"a b.txt\"").as_deref(), Some("a b.txt"));
        assert_eq!(named("attachment; filename=../../etc/passwd").as_deref(), Some("passwd"));
        assert_eq!(named("attachment; filename=\"..\""), None);
        assert_eq!(named("inline"), None);
        assert_eq!(file_name("/a/b.tar.gz?x=/y"), "b.tar.gz");
        assert_eq!((file_name("/"), file_name("/a/..")), ("index.html".to_owned(), "index.html".to_owned()));
    }

    #[test]
    fn no_more_is_decompressed_than_the_limit() {
        use std::io::Write;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(&[0; 5000]).unwrap();
        let packed = packed.finish().unwrap();
        let mut plain = Vec::new();
        gunzip(packed.as_slice(), &mut plain, 5000).unwrap();
        assert_eq!(plain.len(), 5000);
        assert!(gunzip(packed.as_slice(), &mut Vec::new(), 4999).is_err());
    }
}
