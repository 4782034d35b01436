//! URLs: their parts, values in them, and links in HTML.

use std::sync::LazyLock;

use fancy_regex::Regex;
use minijinja::value::ValueKind;
use minijinja::{Error, State};

use super::super::args::Args;
use super::super::args::Filter;
use super::super::conversions::{fail, iterate, kind, pairs, to_text};
use super::html::entities;
use crate::value::Value;
use crate::value::doc::LanguageItem;

/// The filters of this file.
pub(super) const FILTERS: &[(LanguageItem, Filter)] = &[
    (
        LanguageItem::new("urlencode", "A text encoded as part of a URL; a mapping, or pairs, as its query.")
            .gives("{'name': 'a b', 'n': 1} | urlencode", "name=a+b&n=1"),
        urlencode,
    ),
    (
        LanguageItem::new("urlize", "A text as HTML with web and mail addresses as links.")
            .takes("trim_url_limit=none, nofollow=false, target=none, rel=none, extra_schemes=none")
            .gives("'see etcd.io' | urlize", "see etcd.io"),
        urlize,
    ),
    (
        LanguageItem::new(
            "urlsplit",
            "The parts of a URL, or one of them: scheme, hostname, port, path, query, \
             fragment, username, password, netloc.",
        )
        .takes("part=''")
        .gives("'https://h1:2379/health' | urlsplit('port')", "2379"),
        urlsplit,
    ),
];

/// The parts of a URL as Python's `urlsplit` takes them apart.
pub(crate) struct Url {
    pub scheme: String,
    pub netloc: String,
    pub path: String,
    pub query: String,
    pub fragment: String,
}

impl Url {
    /// # Errors
    /// When a bracket of an IPv6 address is missing, all that Python refuses.
    pub(crate) fn split_url(url: &str) -> Result<Self, Error> {
        let url = url.trim_start_matches(|c: char| c <= ' ').replace(['\t', '\r', '\n'], "");
        let (rest, fragment) = url.split_once('#').unwrap_or((&url, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let scheme_ok = |scheme: &str| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        };
        let (scheme, rest) = rest.split_once(':').filter(|(scheme, _)| scheme_ok(scheme)).unwrap_or(("", rest));
        let (netloc, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        if netloc.contains('[') != netloc.contains(']') {
            return Err(fail(format!("a bracket is missing in the address {netloc:?}")));
        }
        Ok(Url {
            scheme: scheme.to_lowercase(),
            netloc: netloc.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            fragment: fragment.to_owned(),
        })
    }
}

/// `urlsplit('hostname')`, or a mapping of all parts.
pub(super) fn urlsplit(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let (url, query) = (Url::split_url(&args.text_argument("value")?)?, args.text_or("query", ""));
    args.no_more_arguments()?;
    let (user, host) = url.netloc.rsplit_once('@').map_or((None, &*url.netloc), |(user, host)| (Some(user), host));
    let (username, password) = match user.map(|user| user.split_once(':').map_or((user, None), |(u, p)| (u, Some(p)))) {
        Some((username, password)) => (Some(username), password),
        None => (None, None),
    };
    let (hostname, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
    };
    let maybe = |part: Option<&str>| part.map_or(Value::from(()), Value::from);
    let port = port.and_then(|port| port.parse::<u16>().ok()).map_or(Value::from(()), Value::from);
    let parts = [
        ("fragment", Value::from(url.fragment)),
        ("hostname", maybe(Some(hostname.to_lowercase().as_str()).filter(|host| !host.is_empty()))),
        ("netloc", Value::from(&*url.netloc)),
        ("password", maybe(password)),
        ("path", Value::from(url.path)),
        ("port", port),
        ("query", Value::from(url.query)),
        ("scheme", Value::from(url.scheme)),
        ("username", maybe(username)),
    ];
    if query.is_empty() {
        return Ok(Value::from_pairs(parts));
    }
    let part = parts.into_iter().find(|(name, _)| *name == query);
    part.map(|(_, value)| value).ok_or_else(|| fail(format!("unknown urlsplit part {query:?}")))
}

/// A lone value for a path, where slashes stay; pairs for a query, where they do not and a blank is `+`.
pub(super) fn urlencode(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("value")?;
    args.no_more_arguments()?;
    let pairs = match value.kind() {
        ValueKind::Map => pairs(&value, "urlencode")?,
        ValueKind::Seq | ValueKind::Iterable => iterate(&value)?.iter().map(pair).collect::<Result<_, Error>>()?,
        _ => return Ok(Value::from(quote(&to_text(&value), "/"))),
    };
    let part = |value: &Value| quote(&to_text(value), " ").replace(' ', "+");
    let parts: Vec<String> = pairs.iter().map(|(key, value)| format!("{}={}", part(key), part(value))).collect();
    Ok(Value::from(parts.join("&")))
}

fn pair(value: &Value) -> Result<(Value, Value), Error> {
    match <[Value; 2]>::try_from(iterate(value)?) {
        Ok([key, value]) => Ok((key, value)),
        Err(items) => Err(fail(format!("urlencode needs pairs, this has {} items", items.len()))),
    }
}

/// Percent signs for every byte but letters, digits, `_.-~` and what is `safe`.
fn quote(text: &str, safe: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-~".contains(&byte) || safe.as_bytes().contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// A site: with a scheme or `www.` any name, without them one of few endings; or an address. Then port, path and so on.
static SITE: LazyLock<Regex> = LazyLock::new(|| {
    let name = r"(?:https?://|www\.)(?:[\w%-]+\.)*(?:[a-z]{2,63}|xn--[\w%]{2,59})";
    let bare = r"(?:[\w%-]{2,63}\.)+(?:com|net|int|edu|gov|org|info|mil)";
    let address = r"https?://(?:\d{1,3}(?:\.\d{1,3}){3}|\[(?:[\da-f]{0,4}:){2}(?:[\da-f]{0,4}:?){1,6}\])";
    Regex::new(&format!(r"(?i)^(?:{name}|{bare}|{address})(?::\d{{1,5}})?(?:[/?#]\S*)?$")).expect("it is a pattern")
});
static MAILBOX: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\S+@\w[\w.-]*\.\w+$").expect("it is a pattern"));

/// `urlize(trim_url_limit=None, nofollow=False, target=None, rel=None, extra_schemes=None)`
pub(super) fn urlize(_: &mut State<'_, '_>, mut args: Args) -> Result<Value, Error> {
    let value = args.req("value")?;
    let limit = args.int("trim_url_limit")?.map(|limit| usize::try_from(limit).unwrap_or(0));
    let nofollow = args.flag_argument("nofollow");
    let mut named = |name: &str| args.opt(name).filter(|value| !value.is_none());
    let (target, rel, schemes) = (named("target"), named("rel"), named("extra_schemes"));
    args.no_more_arguments()?;
    let Some(string) = value.as_str() else {
        return Err(fail(format!("urlize needs text, this is {}", kind(&value))));
    };
    let rel = rel.map(|rel| to_text(&rel)).unwrap_or_default();
    let mut rel: Vec<&str> = rel.split_whitespace().chain(nofollow.then_some("nofollow")).chain(["noopener"]).collect();
    rel.sort_unstable();
    rel.dedup();
    let mut attributes = format!(" rel=\"{}\"", entities(&rel.join(" ")));
    if let Some(target) = target {
        attributes += &format!(" target=\"{}\"", entities(&to_text(&target)));
    }
    let schemes: Vec<String> = match schemes {
        Some(schemes) => iterate(&schemes)?.iter().map(to_text).collect(),
        None => Vec::new(),
    };
    let escaped = if value.is_safe() { string.to_owned() } else { entities(string) };
    let (mut html, mut rest) = (String::new(), &*escaped);
    while !rest.is_empty() {
        let blanks = rest.len() - rest.trim_start().len();
        html.push_str(&rest[..blanks]);
        rest = &rest[blanks..];
        let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        html.push_str(&link(word, limit, &attributes, &schemes));
        rest = after;
    }
    Ok(Value::from(html))
}

/// A word as a link, if it is one within its punctuation.
fn link(word: &str, limit: Option<usize>, attributes: &str, schemes: &[String]) -> String {
    let mut start = word;
    while let Some(rest) = ["(", "<", "&lt;"].iter().find_map(|mark| start.strip_prefix(mark)) {
        start = rest;
    }
    let head = &word[..word.len() - start.len()];
    let mut end = start;
    while let Some(rest) = [")", ">", ".", ",", "&gt;"].iter().find_map(|mark| end.strip_suffix(mark)) {
        end = rest;
    }
    let (mut middle, mut tail) = (end.to_owned(), &start[end.len()..]);
    // A closing mark belongs to a link that has the opening one in it.
    for (open, close) in [("(", ")"), ("<", ">"), ("&lt;", "&gt;")] {
        let opened = middle.matches(open).count();
        if opened > middle.matches(close).count() {
            for _ in 0..opened.min(tail.matches(close).count()) {
                let at = tail.find(close).map_or(0, |at| at + close.len());
                middle.push_str(&tail[..at]);
                tail = &tail[at..];
            }
        }
    }
    let shown = |text: &str| match limit {
        Some(limit) if text.chars().count() > limit => text.chars().take(limit).collect::<String>() + "...",
        _ => text.to_owned(),
    };
    let is = |pattern: &Regex, text: &str| pattern.is_match(text).unwrap_or(false);
    let mailbox = middle.strip_prefix("mailto:").filter(|mailbox| is(&MAILBOX, mailbox));
    let middle = if is(&SITE, &middle) {
        let scheme = if middle.starts_with("https://") || middle.starts_with("http://") { "" } else { "https://" };
        format!("<a href=\"{scheme}{middle}\"{attributes}>{}</a>", shown(&middle))
    } else if let Some(mailbox) = mailbox {
        format!("<a href=\"{middle}\">{mailbox}</a>")
    } else if !middle.starts_with("www.") && !middle.starts_with('@') && !middle.contains(':') && is(&MAILBOX, &middle)
    {
        format!("<a href=\"mailto:{middle}\">{middle}</a>")
    } else if schemes.iter().any(|scheme| middle != *scheme && middle.starts_with(&**scheme)) {
        format!("<a href=\"{middle}\"{attributes}>{middle}</a>")
    } else {
        middle
    };
    format!("{head}{middle}{tail}")
}
