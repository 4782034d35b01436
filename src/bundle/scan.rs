//! What is in a directory: programs, known by their ELF header or their first line, resource definitions below `crds/`,
//! packages of operating systems.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::manifest::{ANY, Item, MANIFEST, Manifest};
use super::package_file::PackageFile;
use super::seal::is_signature;
use super::{Error, ProgramQuery, elf, file_digest, versions};

/// The result of scanning a whole directory.
#[derive(Debug)]
pub struct BundleScan {
    pub manifest: Manifest,
    /// Files that do not belong in a bundle.
    pub left_out: Vec<String>,
}

/// A file that belongs in a bundle; its version may still be unknown.
struct Candidate {
    component: String,
    architecture: String,
    file: PathBuf,
    version: Option<String>,
}

/// Examines every file. A file whose version is unknown is an error.
pub fn scan(root: &Path) -> Result<BundleScan, Error> {
    let (mut candidates, mut left_out) = (Vec::new(), Vec::new());
    for file in files(root)? {
        match classify(root, &file)? {
            Some(candidate) => candidates.push(candidate),
            None if is_of_seal(&file) => {}
            None => left_out.push(file.display().to_string()),
        }
    }
    for candidate in &mut candidates {
        if candidate.version.is_none() {
            candidate.version = version(root, candidate);
        }
    }
    let of_karmada = the_one(candidates.iter().filter(|it| it.component.starts_with("karmada-")));
    let items = candidates.into_iter().map(|candidate| {
        let neighbours = of_karmada.clone().filter(|_| candidate.component == "crds");
        item(root, candidate, neighbours)
    });
    let manifest = Manifest::new(items.collect::<Result<_, _>>()?);
    manifest.refuse_hostile_texts(root)?;
    Ok(BundleScan { manifest, left_out })
}

/// The manifest, or a signature of it.
pub(super) fn is_of_seal(file: &Path) -> bool {
    file.to_str().is_some_and(|name| name == MANIFEST || is_signature(name))
}

/// The programs of one name, without looking at anything else. A version that is wanted counts where a program for
/// another architecture cannot be asked for its own.
pub(super) fn scan_components(root: &Path, wanted: ProgramQuery<'_>) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    for file in files(root)?.into_iter().filter(|file| file.file_name().is_some_and(|name| name == wanted.component)) {
        let Some(mut candidate) = classify(root, &file)? else { continue };
        let fits = candidate.architecture == wanted.architecture || candidate.architecture == ANY;
        if fits && candidate.version.is_none() {
            candidate.version = version(root, &candidate).or_else(|| wanted.version.map(str::to_owned));
        }
        // Programs for other architectures cannot run here, so their version stays unknown.
        let version = candidate.version.clone().or_else(|| (!fits).then(String::new));
        let version = version.ok_or_else(|| untold(&candidate))?;
        let Candidate { component, architecture, file, .. } = candidate;
        let file = file.display().to_string();
        items.push(Item { component, version, architecture, file, size: 0, sha256: String::new(), source: None });
    }
    Ok(items)
}

fn item(root: &Path, candidate: Candidate, neighbours: Option<String>) -> Result<Item, Error> {
    let path = root.join(&candidate.file);
    let version = candidate.version.clone().or(neighbours).ok_or_else(|| untold(&candidate))?;
    let size = std::fs::metadata(&path).map_err(|error| Error::io("read", &path, &error))?.len();
    let Candidate { component, architecture, file, .. } = candidate;
    let (file, sha256) = (file.display().to_string(), file_digest(&path)?);
    Ok(Item { component, version, architecture, file, size, sha256, source: None })
}

fn untold(candidate: &Candidate) -> Error {
    let Candidate { file, architecture, .. } = candidate;
    let why = match architecture == ANY || architecture == elf::own() {
        true => "it does not report its version".to_owned(),
        false => format!("it is built for {architecture}, which this machine cannot run"),
    };
    Error::new(format!("cannot find out the version of {}: {why}", file.display()))
        .hint("put it into a directory whose name is the version, such as v1.2.3")
}

/// The version that all of them have, if there is but one.
fn the_one<'a>(candidates: impl Iterator<Item = &'a Candidate>) -> Option<String> {
    let versions: BTreeSet<&String> = candidates.filter_map(|candidate| candidate.version.as_ref()).collect();
    let mut versions = versions.into_iter();
    versions.next().filter(|_| versions.next().is_none()).cloned()
}

fn version(root: &Path, candidate: &Candidate) -> Option<String> {
    let runs_here = candidate.architecture == elf::own() || candidate.architecture == ANY;
    let is_program = !matches!(candidate.component.as_str(), "crds" | "packages");
    let said = if runs_here && is_program { versions::as_it_says(&root.join(&candidate.file)) } else { None };
    said.or_else(|| versions::of_path(&candidate.file))
}

/// None: a file that does not belong in a bundle.
fn classify(root: &Path, file: &Path) -> Result<Option<Candidate>, Error> {
    let path = root.join(file);
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return Ok(None) };
    let candidate = |component: &str, architecture: &str, version: Option<String>| {
        let (component, architecture) = (component.to_owned(), architecture.to_owned());
        Some(Candidate { component, architecture, file: file.to_owned(), version })
    };
    if let Some(package) = PackageFile::parse_file_name(name) {
        return Ok(candidate("packages", package.architecture_in_bundle(), Some(package.version.to_owned())));
    }
    let is_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
    if is_yaml {
        let below_crds = file.ancestors().skip(1).any(|above| above.ends_with("crds") || above.ends_with("_crds"));
        return Ok(candidate("crds", ANY, None).filter(|_| below_crds));
    }
    let meta = std::fs::metadata(&path).map_err(|error| Error::io("read", &path, &error))?;
    if let Some(architecture) = elf::architecture(&path)? {
        return Ok(candidate(name, &architecture, None).filter(|_| !name.contains(".so")));
    }
    let is_script = meta.permissions().mode() & 0o111 != 0 && is_script(&path)?;
    Ok(candidate(name, ANY, None).filter(|_| is_script))
}

/// Whether a file begins with `#!`.
pub(crate) fn is_script(path: &Path) -> Result<bool, Error> {
    begins_with(path, b"#!")
}

fn begins_with(path: &Path, marks: &[u8]) -> Result<bool, Error> {
    let file = std::fs::File::open(path).map_err(|error| Error::io("read", path, &error))?;
    let mut beginning = Vec::new();
    let read = file.take(marks.len() as u64).read_to_end(&mut beginning);
    read.map_err(|error| Error::io("read", path, &error))?;
    Ok(beginning == marks)
}

/// Regular files below a directory, relative to it, in the order of their names; hidden ones are left out, and links are
/// followed to files only.
fn files(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        let here = root.join(&directory);
        let cannot = |error: std::io::Error| Error::io("read", &here, &error);
        for entry in std::fs::read_dir(&here).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let relative = directory.join(entry.file_name());
            let kind = entry.file_type().map_err(cannot)?;
            if kind.is_dir() {
                directories.push(relative);
            } else if kind.is_file() || entry.path().is_file() {
                found.push(relative);
            }
        }
    }
    found.sort();
    Ok(found)
}
