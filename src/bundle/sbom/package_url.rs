//! Package URLs, by which databases of vulnerabilities know software: <https://github.com/package-url/purl-spec>.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{GoModule, Part};

/// What stays as it is in a name or version.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');
const ENCODED_PATH: &AsciiSet = &ENCODED.remove(b'/');

pub(in crate::bundle) fn of_module(module: &GoModule) -> String {
    let path = module.path.to_lowercase();
    let path = utf8_percent_encode(&path, ENCODED_PATH);
    match &module.version {
        Some(version) => format!("pkg:golang/{path}@{}", utf8_percent_encode(version, ENCODED)),
        None => format!("pkg:golang/{path}"),
    }
}

/// None: nobody would know it.
pub(in crate::bundle) fn of_part(part: &Part) -> Option<String> {
    let item = &part.item;
    let encoded = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
    let (name, version) = (part.name(), part.version());
    if name.is_empty() || version.is_empty() {
        return None;
    }
    match item.component.as_str() {
        "crds" => None,
        "packages" => {
            let package = part.package()?;
            let architecture = encoded(package.architecture);
            if let Some(release) = package.release {
                let (vendor, version) = (vendor(release), encoded(&format!("{version}-{release}")));
                return Some(format!("pkg:rpm/{vendor}{}@{version}?arch={architecture}", encoded(name)));
            }
            // A package does not say which distribution it is of; the versions of Ubuntu do.
            let distribution = if version.contains("ubuntu") { "ubuntu" } else { "debian" };
            let (name, version) = (encoded(&name.to_lowercase()), encoded(&version));
            Some(format!("pkg:deb/{distribution}/{name}@{version}?arch={architecture}"))
        }
        _ => Some(match part.build_info.as_ref().and_then(|info| Some((info, info.main.as_ref()?))) {
            Some((info, main)) => {
                let url = part.own_and_modules().first().map(of_module).unwrap_or_default();
                let inside = info.package.strip_prefix(main.path.as_str()).and_then(|path| path.strip_prefix('/'));
                match inside.filter(|path| !path.split('/').any(|name| ["", ".", ".."].contains(&name))) {
                    Some(path) => format!("{url}#{}", utf8_percent_encode(path, ENCODED_PATH)),
                    None => url,
                }
            }
            None => format!("pkg:generic/{}@{}", encoded(name), encoded(&version)),
        }),
    }
}

/// Who made an RPM package, by the end of its release; with a slash.
fn vendor(release: &str) -> &'static str {
    let ends = |mark: &str| {
        release
            .rsplit('.')
            .any(|part| part.strip_prefix(mark).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())))
    };
    match () {
        () if ends("el") => "redhat/",
        () if ends("fc") => "fedora/",
        () if ends("amzn") => "amazon/",
        () => "",
    }
}
