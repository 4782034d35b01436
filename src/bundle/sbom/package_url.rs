//! Package URLs, by which databases of vulnerabilities know software: <https://github.com/package-url/purl-spec>.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{GoModule, Part};

/// What stays as it is in a name or version.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');
const ENCODED_PATH: &AsciiSet = &ENCODED.remove(b'/');

pub(super) fn of_module(module: &GoModule) -> String {
    let path = module.path.to_lowercase();
    let path = utf8_percent_encode(&path, ENCODED_PATH);
    match &module.version {
        Some(version) => format!("pkg:golang/{path}@{}", utf8_percent_encode(version, ENCODED)),
        None => format!("pkg:golang/{path}"),
    }
}

/// None: nobody would know it.
pub(super) fn of_part(part: &Part) -> Option<String> {
    let item = &part.item;
    let (name, version) = (utf8_percent_encode(part.name(), ENCODED), utf8_percent_encode(&item.version, ENCODED));
    match item.component.as_str() {
        "crds" => None,
        "packages" => {
            let architecture = match item.architecture.as_str() {
                "any" => String::new(),
                other => format!("?arch={}", utf8_percent_encode(other, ENCODED)),
            };
            // A package does not say which distribution it is of; the versions of Ubuntu do.
            Some(match item.file.ends_with(".rpm") {
                true => format!("pkg:rpm/{name}@{version}{architecture}"),
                false if item.version.contains("ubuntu") => format!("pkg:deb/ubuntu/{name}@{version}{architecture}"),
                false => format!("pkg:deb/debian/{name}@{version}{architecture}"),
            })
        }
        _ => Some(match part.build_info.as_ref().and_then(|info| Some((info, info.main.as_ref()?))) {
            Some((info, main)) => {
                // A program that was built from a checkout does not say its own version.
                let version = main.version.clone().unwrap_or_else(|| format!("v{}", item.version));
                let url = of_module(&GoModule { path: main.path.clone(), version: Some(version) });
                let inside = info.package.strip_prefix(main.path.as_str()).map(|path| path.trim_matches('/'));
                match inside.filter(|path| !path.is_empty()) {
                    Some(path) => format!("{url}#{}", utf8_percent_encode(path, ENCODED_PATH)),
                    None => url,
                }
            }
            None => format!("pkg:generic/{name}@{version}"),
        }),
    }
}
