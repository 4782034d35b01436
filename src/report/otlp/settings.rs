//! Where traces go, from the command line and OpenTelemetry's own variables of the environment.

use std::path::PathBuf;
use std::time::Duration;

use super::span::Id;
use crate::http::Url;
use crate::value::Secret;

/// As OpenTelemetry has it where nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct OtlpSettings {
    /// Of the collector, with `/v1/traces`.
    pub url: Url,
    /// Further headers; they may hold a key.
    pub(super) headers: Vec<(String, Secret)>,
    pub(super) timeout: Duration,
    /// Certificate authorities in PEM form; the system's if None.
    pub(super) authorities: Option<PathBuf>,
    pub(super) service: String,
    /// Of the resource: `OTEL_RESOURCE_ATTRIBUTES`.
    pub(super) resource: Vec<(String, String)>,
    /// The trace and the span that the run belongs to.
    pub(super) parent: Option<(Id<16>, Id<8>)>,
    /// What of the environment has no effect.
    pub(super) remarks: Vec<String>,
}

impl OtlpSettings {
    /// `option` is `--otlp`; `variable` looks up the environment. None: traces are off. The error says which
    /// setting is wrong, and shows no header's value.
    pub fn from_option(
        option: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let variable = |name: &str| variable(name).map(|text| text.trim().to_string()).filter(|text| !text.is_empty());
        let traces = |name: &str| {
            let own = format!("OTEL_EXPORTER_OTLP_TRACES_{name}");
            variable(&own).or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        let off = variable("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"))
            || variable("OTEL_TRACES_EXPORTER").is_some_and(|text| text == "none");
        let base = |text: String| format!("{}/v1/traces", text.trim_end_matches('/'));
        let (name, address) = if let Some(option) = option {
            ("--otlp", base(option.to_string()))
        } else if off {
            return Ok(None);
        } else if let Some(own) = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", own)
        } else if let Some(all) = variable("OTEL_EXPORTER_OTLP_ENDPOINT") {
            ("OTEL_EXPORTER_OTLP_ENDPOINT", base(all))
        } else {
            return Ok(None);
        };
        let url = Url::parse(&address).map_err(|why| format!("invalid collector URL in {name}: {why}"))?;
        let pairs = |text: Option<String>, name: &str| match text {
            Some(text) => pairs(&text).ok_or_else(|| format!("{name} must have the form key=value,key=value")),
            None => Ok(Vec::new()),
        };
        let headers = pairs(traces("HEADERS"), "OTEL_EXPORTER_OTLP_HEADERS")?;
        let mut resource = pairs(variable("OTEL_RESOURCE_ATTRIBUTES"), "OTEL_RESOURCE_ATTRIBUTES")?;
        let named = resource.iter().position(|(key, _)| key == "service.name").map(|at| resource.remove(at).1);
        let milliseconds = traces("TIMEOUT").map(|text| {
            text.parse()
                .map_err(|_| format!("OTEL_EXPORTER_OTLP_TIMEOUT must be a number of milliseconds, not {text:?}"))
        });
        let mut remarks = Vec::new();
        if traces("PROTOCOL").is_some_and(|protocol| protocol == "grpc") {
            remarks.push("OTEL_EXPORTER_OTLP_PROTOCOL is grpc, which is not supported; use http/json".to_string());
        }
        let parent = variable("TRACEPARENT");
        if parent.as_deref().is_some_and(|text| traceparent(text).is_none()) {
            remarks.push("ignored TRACEPARENT: it is not a valid trace context".to_string());
        }
        Ok(Some(OtlpSettings {
            url,
            headers: headers.into_iter().map(|(name, value)| (name, Secret::new(value))).collect(),
            timeout: milliseconds.transpose()?.map_or(TIMEOUT, Duration::from_millis),
            authorities: traces("CERTIFICATE").map(PathBuf::from),
            service: variable("OTEL_SERVICE_NAME").or(named).unwrap_or_else(|| "windlass".to_string()),
            resource,
            parent: parent.as_deref().and_then(traceparent),
            remarks,
        }))
    }
}

/// `key=value,key=value`, values with percent signs as in addresses.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (key, value) = part.split_once('=')?;
        (!key.trim().is_empty()).then(|| (key.trim().to_string(), decoded(value.trim())))
    };
    parts.map(pair).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| more.get(..2)).flatten();
        let byte = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `00-<trace>-<span>-<flags>`, as the W3C's trace context has it; later versions may have more parts.
fn traceparent(text: &str) -> Option<(Id<16>, Id<8>)> {
    let mut parts = text.split('-');
    let version = parts.next()?;
    let (trace, span) = (Id::parse_id(parts.next()?)?, Id::parse_id(parts.next()?)?);
    let flags = parts.next()?;
    let known =
        version.len() == 2 && version != "ff" && flags.len() == 2 && (version != "00" || parts.next().is_none());
    known.then_some((trace, span))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(option: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<OtlpSettings>, String> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        OtlpSettings::from_option(option, find)
    }

    #[test]
    fn the_option_wins_over_the_environment_and_an_own_address_is_taken_as_it_is() {
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318/");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own:1/x");
        let url = |option, variables: &[_]| {
            let url = read(option, variables).unwrap().unwrap().url;
            format!("{}{}", url.address(), url.path)
        };
        assert_eq!(url(Some("http://here:9"), &[all, own]), "here:9/v1/traces");
        assert_eq!(url(None, &[all, own]), "own:1/x");
        assert_eq!(url(None, &[all]), "all:4318/v1/traces");
        assert!(read(None, &[]).unwrap().is_none());
        assert!(read(None, &[all, ("OTEL_SDK_DISABLED", "true")]).unwrap().is_none());
        assert!(read(None, &[all, ("OTEL_TRACES_EXPORTER", "none")]).unwrap().is_none());
    }

    #[test]
    fn headers_names_and_the_parent_come_from_the_environment() {
        let settings = read(
            Some("https://c"),
            &[
                ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, tenant=1"),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,env=prod"),
                ("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            ],
        );
        let settings = settings.unwrap().unwrap();
        assert!(settings.url.secure && settings.remarks.is_empty());
        assert_eq!((&*settings.headers[0].0, settings.headers[0].1.reveal()), ("x-key", "a b"));
        assert_eq!((&*settings.service, settings.resource.len()), ("other", 1));
        let (trace, span) = settings.parent.unwrap();
        assert_eq!(format!("{trace} {span}"), "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331");
        assert!(!format!("{:?}", settings.headers).contains("a b"));
    }

    #[test]
    fn what_is_written_wrongly_is_reported_without_its_value() {
        assert!(read(Some("ftp://c"), &[]).unwrap_err().starts_with("invalid collector URL in --otlp: "));
        let error = read(Some("http://c"), &[("OTEL_EXPORTER_OTLP_HEADERS", "tops3cret")]).unwrap_err();
        assert_eq!(error, "OTEL_EXPORTER_OTLP_HEADERS must have the form key=value,key=value");
        let settings = read(Some("http://c"), &[("TRACEPARENT", "00-0-0-01")]).unwrap().unwrap();
        assert_eq!(settings.remarks, ["ignored TRACEPARENT: it is not a valid trace context"]);
    }
}
