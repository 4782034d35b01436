//! The arguments that the modules for web services have in common, documented once.

use crate::value::doc::{Argument, Kind};

pub(crate) const HEADERS: Argument = Argument::new("headers", Kind::Dict, "Headers to send").default("{}");
pub(crate) const VALIDATE_CERTS: Argument =
    Argument::new("validate_certs", Kind::Bool, "Whether to check the server's certificate").default("true");
pub(crate) const CLIENT_CERT: Argument =
    Argument::new("client_cert", Kind::Path, "A file on the host with the client certificate");
pub(crate) const CLIENT_KEY: Argument =
    Argument::new("client_key", Kind::Path, "A file on the host with its key, unless it is in client_cert");
pub(crate) const URL_PASSWORD: Argument =
    Argument::new("url_password", Kind::Str, "The password").alias(&["password"]).secret();
pub(crate) const FORCE_BASIC_AUTH: Argument =
    Argument::new("force_basic_auth", Kind::Bool, "Whether to send the login with the first request").default("false");
pub(crate) const HTTP_AGENT: Argument =
    Argument::new("http_agent", Kind::Str, "The User-Agent header").default("ansible-httpget");
pub(crate) const USE_PROXY: Argument =
    Argument::new("use_proxy", Kind::Bool, "Whether to use http_proxy and https_proxy of the host or the task")
        .default("true");
pub(crate) const USE_NETRC: Argument =
    Argument::new("use_netrc", Kind::Bool, "Whether to use the login in ~/.netrc on the host, without url_username")
        .default("true");
