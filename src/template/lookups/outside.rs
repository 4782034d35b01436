//! Lookups of the inventory, the settings, and web servers.

use std::path::PathBuf;
use std::time::Duration;

use super::{LookupCall, fail};
use crate::template::conversions::{self, to_text};
use crate::template::{Error, WebPage, engine_error_text};
use crate::value::Value;

/// The hosts that patterns name.
pub(super) fn inventory_hostnames(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let outside = call.scope.outside.as_ref().ok_or_else(|| fail("the inventory is not available here"))?;
    let hosts = outside.hosts(&call.texts()).map_err(fail)?;
    Ok(hosts.into_iter().map(Value::from).collect())
}

/// The settings in force, by Ansible's names for them.
pub(super) fn config(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let outside = call.scope.outside.as_ref().ok_or_else(|| fail("the settings are not available here"))?;
    let mut found = Vec::new();
    for name in call.texts() {
        match (outside.setting(&name), call.text_option("on_missing", "error").as_str()) {
            (Some(value), _) => found.push(value),
            (None, "skip") => {}
            (None, "warn") => tracing::warn!("lookup config: no such setting: {name}"),
            (None, _) => {
                return Err(fail(format!("no such setting: {name:?} (\"windlass config\" lists all)")));
            }
        }
    }
    Ok(found)
}

/// The options of `url`.
const URL_OPTIONS: &[&str] = &[
    "split_lines",
    "username",
    "password",
    "force_basic_auth",
    "headers",
    "http_agent",
    "timeout",
    "validate_certs",
    "ca_path",
    "follow_redirects",
    "force",
    "unix_socket",
    "unredirected_headers",
    "use_netrc",
    "use_proxy",
];

/// What web servers answer: line by line, or whole with `split_lines=false`.
pub(super) fn url(call: &mut LookupCall<'_>) -> Result<Vec<Value>, Error> {
    let outside = call.scope.outside.as_ref().ok_or_else(|| fail("requests to servers are not allowed here"))?;
    if let Some((name, _)) = call.named.iter().find(|(name, _)| !URL_OPTIONS.contains(&&**name)) {
        return Err(fail(format!("unknown option {name} of the lookup url; it has {}", URL_OPTIONS.join(", "))));
    }
    let mut found = Vec::new();
    for address in call.texts() {
        let page = page(call, &address)?;
        let body = crate::template::waiting(|| outside.fetch(&page));
        let body = body.map_err(|why| fail(format!("cannot fetch {}: {why}", without_login(&address))))?;
        match call.flag("split_lines", true) {
            true => found.extend(body.lines().map(Value::from)),
            false => found.push(Value::from(body)),
        }
    }
    Ok(found)
}

/// An address without its password, for messages.
fn without_login(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let server = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let shown = server.rsplit_once('@').map_or(rest, |(login, _)| &rest[login.len() + 1..]);
    format!("{scheme}://{shown}")
}

fn page(call: &LookupCall<'_>, address: &str) -> Result<WebPage, Error> {
    let headers = call.option("headers").map(|headers| conversions::pairs(headers, "headers")).transpose();
    let headers = headers
        .map_err(|error| fail(engine_error_text(&error)))?
        .unwrap_or_default()
        .iter()
        .map(|(name, value)| (to_text(name), to_text(value)))
        .chain(call.flag("force", false).then(|| ("Cache-Control".to_owned(), "no-cache".to_owned())))
        .collect();
    let unredirected = call.option("unredirected_headers").map(conversions::iterate).transpose();
    let unredirected = unredirected.map_err(|error| fail(engine_error_text(&error)))?.unwrap_or_default();
    let seconds = call.option("timeout").and_then(|seconds| f64::try_from(seconds.clone()).ok()).unwrap_or(10.0);
    Ok(WebPage {
        address: address.to_owned(),
        agent: call.text_option("http_agent", "windlass"),
        headers,
        login: call.option("username").map(|user| (to_text(user), call.text_option("password", ""))),
        login_at_once: call.flag("force_basic_auth", true),
        limit: Duration::from_secs_f64(seconds.clamp(0.1, 3600.0)),
        verify: call.flag("validate_certs", true),
        authorities: call.option("ca_path").map(to_text).filter(|path| !path.is_empty()).map(PathBuf::from),
        follow: call.text_option("follow_redirects", "urllib2").to_lowercase(),
        socket: call.option("unix_socket").map(to_text).filter(|path| !path.is_empty()).map(PathBuf::from),
        surroundings: call.scope.surroundings.clone(),
        proxies: call.flag("use_proxy", true),
        netrc: call.flag("use_netrc", true),
        unredirected: unredirected.iter().map(|name| to_text(name).to_lowercase()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::{LookupHost, Scope, Templar};
    use super::*;
    use crate::value::Template;

    #[derive(Debug)]
    struct Fake;

    impl LookupHost for Fake {
        fn hosts(&self, _: &[String]) -> Result<Vec<String>, String> {
            Ok(Vec::new())
        }

        fn setting(&self, _: &str) -> Option<Value> {
            None
        }

        fn fetch(&self, page: &WebPage) -> Result<String, String> {
            match page.headers.is_empty() {
                true => Ok(format!("{}\n{:?}\n", page.address, page.login)),
                false => Err(format!("{:?}", page.headers)),
            }
        }
    }

    #[test]
    fn a_page_comes_line_by_line_or_whole() {
        let mut scope = Scope::default();
        scope.outside = Some(Arc::new(Fake));
        let render = |text: &str| Templar::new().render_string(&Template::template_value(text, None), &scope);
        assert_eq!(render("{{ query('url', 'http://h') }}").unwrap(), "['http://h', 'None']");
        let whole = "{{ lookup('url', 'http://h', username='me', password='p', split_lines=false) }}";
        assert_eq!(render(whole).unwrap(), "http://h\nSome((\"me\", \"p\"))\n");
        let failure = |text: &str| render(text).unwrap_err().to_string();
        let reported = failure("{{ lookup('url', 'http://h', headers={'A': 1}) }}");
        assert!(reported.contains(r#"cannot fetch http://h: [("A", "1")]"#), "{reported}");
        let reported = failure("{{ lookup('url', 'http://h', use_gssapi=true) }}");
        assert!(reported.contains("unknown option use_gssapi"), "{reported}");
    }
}
