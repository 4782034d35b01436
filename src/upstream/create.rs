//! Makes a bundle as a recipe says: whole, or not at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures::{StreamExt, TryStreamExt};

use super::fetch::{Client, DownloadError, DownloadRequest};
use super::image::{self, FromImage};
use super::members::{self, ExtractedMember};
use crate::bundle::{
    ANY, Error, Item, MANIFEST, Manifest, Origin, PackageFile, RecipeSource, architecture_of, file_digest, hex_of,
    is_archive, is_plain, is_script, pack, scan, without_login,
};
use crate::http::Url;

/// So many sources at once.
const AT_ONCE: usize = 4;

/// Digests by what they are for: an address, an image, a path.
pub type KnownDigests = BTreeMap<String, String>;

/// What to make.
pub struct Order<'a> {
    pub sources: Vec<RecipeSource>,
    pub architectures: &'a [String],
    /// Digests for sources whose recipe has none.
    pub known: &'a KnownDigests,
    /// Whether a source without a digest is taken as it is.
    pub record: bool,
    /// Registries and addresses, each with what to try first.
    pub mirrors: &'a [(String, String)],
    /// Directory, or `.tar.zst`.
    pub to: &'a Path,
}

/// One source of the bundle that was made.
#[derive(Debug)]
pub struct SourceRow {
    pub name: String,
    pub architecture: String,
    /// None: a directory of this machine.
    pub digest: Option<String>,
    /// Whether the digest was known before.
    pub was_known: bool,
}

/// A bundle that was made.
#[derive(Debug)]
pub struct Created {
    pub manifest: Manifest,
    pub rows: Vec<SourceRow>,
}

/// Makes the bundle.
pub async fn create(client: &Client, order: Order<'_>) -> Result<Created, Error> {
    let Order { sources, architectures, known, record, mirrors, to } = order;
    let sources: Vec<RecipeSource> = sources.into_iter().map(|source| with_digest(source, known)).collect();
    if !record {
        refuse_unknown(&sources)?;
    }
    refuse_existing(to)?;
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let work = tempfile::Builder::new().prefix(".windlass-bundle-").tempdir_in(parent);
    let work = work.map_err(|error| Error::io("write below", parent, &error))?;
    let whole = work.path().join("whole");
    make_directory(&whole)?;
    let each = sources.into_iter().enumerate().map(|(number, source)| {
        let scratch = work.path().join(format!("source-{number}"));
        let whole = &whole;
        async move { one(client, source, architectures, mirrors, &scratch, whole).await }
    });
    let done: Vec<(Vec<Item>, SourceRow)> = futures::stream::iter(each).buffered(AT_ONCE).try_collect().await?;
    let (items, rows): (Vec<_>, Vec<_>) = done.into_iter().unzip();
    let manifest = Manifest::new(items.into_iter().flatten().collect());
    if manifest.files.is_empty() {
        return Err(Error::new("the recipe's sources have no files for these architectures"));
    }
    if is_archive(to) {
        pack(&whole, &manifest, to)?;
    } else {
        let path = whole.join(MANIFEST);
        std::fs::write(&path, manifest.to_yaml()).map_err(|error| Error::io("write", &path, &error))?;
        std::fs::rename(&whole, to).map_err(|error| Error::io("write", to, &error))?;
    }
    Ok(Created { manifest, rows })
}

fn with_digest(source: RecipeSource, known: &KnownDigests) -> RecipeSource {
    let digest = source.digest.clone().or_else(|| known.get(&source.origin.origin_name()).cloned());
    let named = || match &source.origin {
        Origin::Image(name) => name.split_once('@').map(|(_, digest)| digest.to_owned()),
        _ => None,
    };
    RecipeSource { digest: digest.or_else(named), ..source }
}

fn refuse_unknown(sources: &[RecipeSource]) -> Result<(), Error> {
    let mut names: Vec<String> = Vec::new();
    for source in sources.iter().filter(|source| source.digest.is_none()) {
        let name = source.origin.origin_name();
        if !matches!(source.origin, Origin::Directory(_)) && !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    let message = format!("no digest is known for {}: {}", count(names.len()), names.join(", "));
    Err(Error::new(message)
        .hint("add digest to the source, or accept what the servers send with --record-digests FILE"))
}

fn count(sources: usize) -> String {
    if sources == 1 { "1 source".to_owned() } else { format!("{sources} sources") }
}

/// A directory must be new or empty. An archive may be written again, as with any other command.
fn refuse_existing(to: &Path) -> Result<(), Error> {
    let is_empty = || std::fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_none());
    match to.exists() && !is_archive(to) && !is_empty() {
        true => Err(Error::new(format!("{} exists already", to.display())).hint("name a new directory with --to")),
        false => Ok(()),
    }
}

fn make_directory(path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).map_err(|error| Error::io("create", path, &error))
}

async fn one(
    client: &Client,
    source: RecipeSource,
    architectures: &[String],
    mirrors: &[(String, String)],
    scratch: &Path,
    whole: &Path,
) -> Result<(Vec<Item>, SourceRow), Error> {
    make_directory(scratch)?;
    let wanted = image::ImageSelection {
        architecture: &source.architecture,
        take: &source.take,
        digest: source.digest.as_deref(),
        to: scratch,
    };
    let (taken, found) = match &source.origin {
        Origin::Url(address) => {
            let (path, sha256) = download(client, address, mirrors, source.digest.as_deref()).await?;
            (unpacked(&path, address, &source, scratch)?, Some(format!("sha256:{sha256}")))
        }
        Origin::Image(name) => {
            let FromImage { taken, digest } = image::from_registry(client, mirrors, name, &wanted).await?;
            (taken, Some(digest))
        }
        Origin::Archive { path, image } => {
            let FromImage { taken, digest } = image::from_archive(client, path, image.as_deref(), &wanted).await?;
            (taken, Some(digest))
        }
        Origin::Directory(path) => {
            let items = copied(path, architectures, whole)?;
            let name = source.origin.origin_name();
            return Ok((items, SourceRow { name, architecture: source.architecture, digest: None, was_known: true }));
        }
    };
    let items = taken.iter().map(|taken| placed(taken, &source, whole)).collect::<Result<_, _>>()?;
    std::fs::remove_dir_all(scratch).map_err(|error| Error::io("remove", scratch, &error))?;
    let RecipeSource { origin, architecture, digest, .. } = source;
    Ok((items, SourceRow { name: origin.origin_name(), architecture, digest: found, was_known: digest.is_some() }))
}

/// A file from its address, or from a mirror of it.
async fn download(
    client: &Client,
    address: &str,
    mirrors: &[(String, String)],
    digest: Option<&str>,
) -> Result<(PathBuf, String), Error> {
    let behind = |(from, to): &(String, String)| {
        address.strip_prefix(from.as_str()).filter(|_| from.contains("://")).map(|rest| format!("{to}{rest}"))
    };
    let mut addresses: Vec<String> = mirrors.iter().filter_map(behind).collect();
    addresses.push(address.to_owned());
    let mut answers = Vec::new();
    for address in addresses {
        let url = Url::parse(&address)
            .map_err(|why| Error::new(format!("invalid address {}: {why}", without_login(&address))))?;
        let login = url.login.as_ref().map(crate::http::follow::basic);
        let headers: Vec<_> = login.into_iter().map(|value| ("authorization".to_owned(), value)).collect();
        let wanted = DownloadRequest { url: &url, sha256: digest.and_then(hex_of), size: None, headers: &headers };
        match client.download_file(&wanted).await {
            Ok(found) => return Ok(found),
            Err(DownloadError::Login) => answers.push(format!("cannot download {url}: the server requires a login")),
            Err(DownloadError::Error(error)) if error.hint.is_some() => return Err(error),
            Err(DownloadError::Error(error)) => answers.push(error.message),
        }
    }
    Err(Error::new(answers.join("; ")))
}

/// The parts of a downloaded file for the bundle.
fn unpacked(path: &Path, address: &str, source: &RecipeSource, scratch: &Path) -> Result<Vec<ExtractedMember>, Error> {
    if !source.take.is_empty() {
        return members::extract_members(path, &source.take, scratch, address);
    }
    let name = address.split(['?', '#']).next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let to = scratch.join("0");
    std::fs::copy(path, &to).map_err(|error| Error::io("write", &to, &error))?;
    Ok(vec![ExtractedMember { name: name.to_owned(), path: to }])
}

/// Moves a file to its path in the bundle.
fn placed(taken: &ExtractedMember, source: &RecipeSource, whole: &Path) -> Result<Item, Error> {
    use std::os::unix::fs::PermissionsExt;
    let RecipeSource { architecture, version, .. } = source;
    let base = taken.name.rsplit('/').next().unwrap_or_default();
    let origin = source.origin.origin_name();
    let of_directory = source.take.iter().filter_map(|take| take.strip_suffix('/'));
    let is_definition = of_directory.into_iter().any(|directory| taken.name.starts_with(&format!("{directory}/")));
    let (component, version, architecture, file) = if is_definition {
        let file = format!("crds-{version}/{}", taken.name);
        if !taken.name.starts_with("crds/") && !taken.name.contains("/crds/") {
            return Err(Error::new(format!("{origin}: {} is not below a directory crds", taken.name)));
        }
        ("crds".to_owned(), version.clone(), ANY.to_owned(), file)
    } else if let Some(package) = PackageFile::parse_file_name(base) {
        let (version, architecture) = (package.version.to_owned(), package.architecture_in_bundle().to_owned());
        ("packages".to_owned(), version, architecture, format!("packages/{base}"))
    } else {
        let real = match architecture_of(&taken.path)? {
            Some(real) => real,
            None if is_script(&taken.path)? => ANY.to_owned(),
            None => {
                let message = format!("{origin}: {} is neither an ELF program nor a script (#!)", taken.name);
                return Err(Error::new(message).hint("the server may have sent an error page with status 200"));
            }
        };
        if real != *architecture && real != ANY {
            let message =
                format!("{origin}: {}: architecture mismatch: expected {architecture}, found {real}", taken.name);
            return Err(match architecture == ANY {
                true => Error::new(message).hint("write {arch} into its address, or add architecture"),
                false => Error::new(message),
            });
        }
        (base.to_owned(), version.clone(), real.clone(), format!("{base}-{version}/{real}/{base}"))
    };
    let is_reserved = matches!(base, "crds" | "packages" | MANIFEST);
    if is_reserved || file.split('/').any(|part| !is_plain(part)) {
        return Err(Error::new(format!("{origin}: {:?} cannot be the name of a file in a bundle", taken.name)));
    }
    let mode = if matches!(component.as_str(), "crds" | "packages") { 0o644 } else { 0o755 };
    let path = whole.join(&file);
    let cannot = |error: std::io::Error| Error::io("write", &path, &error);
    std::fs::create_dir_all(path.parent().unwrap_or(whole)).map_err(cannot)?;
    if path.exists() {
        // A script is for all architectures, and each image of it has it.
        if file_digest(&path)? == file_digest(&taken.path)? && architecture == ANY && source.architecture != ANY {
            std::fs::remove_file(&taken.path).map_err(cannot)?;
            return item(component, version, architecture, file, whole, &source.origin);
        }
        return Err(Error::new(format!("two sources have {file}; the second is {origin}")));
    }
    std::fs::set_permissions(&taken.path, PermissionsExt::from_mode(mode)).map_err(cannot)?;
    std::fs::rename(&taken.path, &path).map_err(cannot)?;
    item(component, version, architecture, file, whole, &source.origin)
}

fn item(
    component: String,
    version: String,
    architecture: String,
    file: String,
    whole: &Path,
    origin: &Origin,
) -> Result<Item, Error> {
    let path = whole.join(&file);
    let size = std::fs::metadata(&path).map_err(|error| Error::io("read", &path, &error))?.len();
    Ok(Item {
        component,
        version,
        architecture,
        file,
        size,
        sha256: file_digest(&path)?,
        source: Some(origin.origin_name()),
    })
}

/// The programs of a directory, as `bundle create --from` finds them.
fn copied(from: &Path, architectures: &[String], whole: &Path) -> Result<Vec<Item>, Error> {
    let mut items = scan(from)?.manifest.files;
    items.retain(|item| item.architecture == ANY || architectures.contains(&item.architecture));
    for item in &items {
        let (path, to) = (from.join(&item.file), whole.join(&item.file));
        let cannot = |error: std::io::Error| Error::io("write", &to, &error);
        std::fs::create_dir_all(to.parent().unwrap_or(whole)).map_err(cannot)?;
        if to.exists() {
            return Err(Error::new(format!("two sources have {}; the second is {}", item.file, from.display())));
        }
        std::fs::copy(&path, &to).map_err(cannot)?;
        if file_digest(&to)? != item.sha256 {
            return Err(Error::new(format!("{} changed while windlass read it", path.display())));
        }
    }
    Ok(items)
}
