//! Bundles: the programs that are to be installed, with what else belongs to them, on this machine. A directory with a
//! `manifest.yaml`, the same packed as `.tar.zst`, or any directory of programs, which is a bundle without a manifest.

mod archive;
mod build_info;
pub mod carried;
mod diff;
mod elf;
mod manifest;
mod package_file;
mod recipe;
mod sbom;
mod scan;
mod seal;
mod signature;
mod signers;
mod trust;
mod versions;
mod vulnerabilities;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::value::ProcessEnvironment;
use crate::value::nearest::did_you_mean;

pub(crate) use archive::{HashingReader, append, member_header};
pub use archive::{is_archive, pack};
pub use diff::{BundleDiff, ChangedItem};
pub(crate) use elf::architecture as architecture_of;
pub use elf::architecture_name as architecture_named;
pub(crate) use elf::is_static;
pub use manifest::{ANY, Item, MANIFEST, Manifest};
pub(crate) use package_file::PackageFile;
pub use recipe::{Origin, Recipe, RecipeSource, hex_of, is_plain, without_login};
pub use sbom::{BillOfMaterials, cyclonedx, spdx};
pub(crate) use scan::is_script;
pub use scan::{BundleScan, scan};
pub use seal::{Seal, SignatureFile};
pub use signature::{NAMESPACE, signature_text, signed_data};
pub use trust::{RequiredSigners, SignatureVerdict};
pub use vulnerabilities::{Severity, VexDocument, Vulnerability, VulnerabilityDatabase, VulnerabilityReport};

/// What is wrong with a bundle, for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// One line, small first letter, no full stop.
    pub message: String,
    pub hint: Option<String>,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error { message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn io(what: &str, path: &Path, error: &std::io::Error) -> Error {
        Error::new(format!("cannot {what} {}: {error}", path.display()))
    }
}

/// A bundle at hand.
#[derive(Debug)]
pub struct Bundle {
    /// As it was named, for messages.
    name: String,
    root: PathBuf,
    /// None: the directory has no manifest; each query scans it again.
    manifest: Option<Manifest>,
    /// What the manifest was read from, with its signatures.
    seal: Option<Seal>,
    /// The archive that `root` was unpacked from.
    archive: Option<PathBuf>,
}

/// A requested file of a bundle, its digest already checked against the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProgram {
    pub path: PathBuf,
    pub version: String,
    pub architecture: String,
    /// Lower-case hex.
    pub sha256: String,
}

/// The request.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProgramQuery<'a> {
    pub component: &'a str,
    /// `amd64`, `arm64`, …
    pub architecture: &'a str,
    /// `1.19.0`, or its beginning, `1.19`; None: whichever is there, if there is but one.
    pub version: Option<&'a str>,
}

impl Bundle {
    /// Opens a directory, or an archive, which is unpacked once into the cache of this machine's user. `required`: refuses a bundle
    /// without a good signature, before anything is unpacked or run. The signed manifest is read once: what it says is what counts.
    pub fn open_bundle(
        path: &Path,
        around: &ProcessEnvironment,
        required: Option<&RequiredSigners>,
    ) -> Result<Bundle, Error> {
        let name = path.display().to_string();
        let meta =
            std::fs::metadata(path).map_err(|error| Error::new(format!("cannot open the bundle {name}: {error}")))?;
        let is_directory = meta.is_dir();
        let seal = match is_directory {
            true => Seal::of_directory(path)?,
            false if is_archive(path) => Some(archive::head(path)?),
            false => return Err(Error::new(format!("{name} is not a bundle: expected a directory or a .tar.zst"))),
        };
        if let Some(required) = required {
            required.demand(&name, seal.as_ref(), around)?;
        }
        let manifest = seal.as_ref().map(|seal| seal.parsed_manifest(&path.join(MANIFEST))).transpose()?;
        let (root, archive) = match (&seal, &manifest) {
            (Some(seal), Some(manifest)) if !is_directory => {
                let root = archive::unpack_bundle(path, seal, manifest, required.is_some(), around)?;
                (root, Some(path.to_owned()))
            }
            _ => (path.to_owned(), None),
        };
        let bundle = Bundle { name, root, manifest, seal, archive };
        if is_directory && required.is_some() {
            bundle.refuse_strays()?;
        }
        Ok(bundle)
    }

    /// The manifest as it was written, and its signatures. None: there is no manifest.
    pub fn seal(&self) -> Option<&Seal> {
        self.seal.as_ref()
    }

    /// Refuses a bundle with a file that its manifest does not list: nobody has signed it.
    pub fn refuse_strays(&self) -> Result<(), Error> {
        match self.strays()?.first() {
            None => Ok(()),
            Some(stray) => {
                let message = format!("the bundle {} has a file that its manifest does not list: {stray}", self.name);
                Err(Error::new(message).hint("remove it, or create and sign the manifest again"))
            }
        }
    }

    /// The files that the manifest does not list.
    fn strays(&self) -> Result<Vec<String>, Error> {
        let (Some(manifest), Some(seal)) = (&self.manifest, &self.seal) else { return Ok(Vec::new()) };
        if let Some(archive) = &self.archive {
            return archive::strays(archive, seal, manifest);
        }
        let mut found = Vec::new();
        let mut directories = vec![PathBuf::new()];
        while let Some(directory) = directories.pop() {
            let here = self.root.join(&directory);
            let cannot = |error: std::io::Error| Error::io("read", &here, &error);
            for entry in std::fs::read_dir(&here).map_err(cannot)? {
                let entry = entry.map_err(cannot)?;
                let relative = directory.join(entry.file_name());
                let name = relative.to_string_lossy().into_owned();
                if entry.file_type().map_err(cannot)?.is_dir() {
                    directories.push(relative);
                } else if !scan::is_of_seal(&relative) && !manifest.files.iter().any(|item| item.file == name) {
                    found.push(name);
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// What a key must sign.
    ///
    /// # Errors
    /// There is no manifest; a file differs from it; a file is not in it: the signer would vouch for something else.
    pub fn to_be_signed(&self) -> Result<&Seal, Error> {
        if let Some(problem) = self.verify()?.into_iter().next() {
            return Err(problem);
        }
        self.refuse_strays()?;
        self.seal.as_ref().ok_or_else(|| Error::new(format!("{} has no {MANIFEST}", self.name)))
    }

    /// Adds a signature; one of the same key is replaced. Every other file stays as it is. Gives the name of its file.
    pub fn add_signature(&mut self, text: &str) -> Result<String, Error> {
        let (Some(seal), Some(manifest)) = (&mut self.seal, &self.manifest) else {
            return Err(Error::new(format!("{} has no {MANIFEST}", self.name)));
        };
        let name = seal.put(text)?;
        if let Some(archive) = &self.archive {
            archive::sign_again(archive, seal, manifest)?;
            return Ok(name);
        }
        let path = self.root.join(&name);
        let cannot = |error: std::io::Error| Error::io("write", &path, &error);
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(&self.root).map_err(cannot)?;
        std::io::Write::write_all(&mut file, text.as_bytes()).map_err(cannot)?;
        file.as_file().sync_all().map_err(cannot)?;
        file.persist(&path).map_err(|error| cannot(error.error))?;
        Ok(name)
    }

    /// The keys that signed it: kind and fingerprint. Nobody has checked whose they are.
    pub fn signing_keys(&self) -> Vec<String> {
        self.seal.as_ref().map(trust::keys_of).unwrap_or_default()
    }

    /// The directory with its files.
    pub(crate) fn unpacked_at(&self) -> &Path {
        &self.root
    }

    /// What is in it; of a directory without a manifest, what such a one would say.
    pub fn manifest(&self) -> Result<Manifest, Error> {
        match &self.manifest {
            Some(manifest) => Ok(manifest.clone()),
            None => scan(&self.root).map(|scanned| scanned.manifest),
        }
    }

    /// The single file that matches. Refused: no file matches, several do, or the file differs from the manifest.
    pub fn find_program(&self, wanted: ProgramQuery<'_>) -> Result<FoundProgram, Error> {
        let items = match &self.manifest {
            Some(manifest) => manifest.files.clone(),
            None => scan::scan_components(&self.root, wanted)?,
        };
        let item = self.choose(&items, wanted)?;
        let path = self.root.join(&item.file);
        let sha256 = match &self.manifest {
            Some(_) => self.checked(&item)?,
            None => file_digest(&path)?,
        };
        Ok(FoundProgram { path, version: item.version, architecture: item.architecture, sha256 })
    }

    /// All files of a component that is no program (`crds`), in the order of their names.
    pub fn find_all(&self, component: &str, version: Option<&str>) -> Result<Vec<FoundProgram>, Error> {
        let items = self.manifest()?.files;
        let of_component: Vec<&Item> = items.iter().filter(|item| item.component == component).collect();
        let fitting: Vec<&Item> = of_component.iter().copied().filter(|item| fits(&item.version, version)).collect();
        let versions: BTreeSet<&str> = of_component.iter().map(|item| item.version.as_str()).collect();
        match fitting.first() {
            None if of_component.is_empty() => return Err(self.lacks(&items, component)),
            None => return Err(self.has_other(component, &versions, version)),
            Some(first) if fitting.iter().any(|item| item.version != first.version) => {
                return Err(self.has_several(component, &versions));
            }
            Some(_) => {}
        }
        fitting.into_iter().map(|item| self.found(item)).collect()
    }

    /// The packages of operating systems, each of its own version; those for an architecture, if one is meant. There may
    /// be none.
    pub fn packages(&self, architecture: Option<&str>) -> Result<Vec<FoundProgram>, Error> {
        let items = self.manifest()?.files;
        let fits = |item: &&Item| architecture.is_none_or(|wanted| [wanted, "any"].contains(&&*item.architecture));
        items.iter().filter(|item| item.component == "packages").filter(fits).map(|item| self.found(item)).collect()
    }

    fn found(&self, item: &Item) -> Result<FoundProgram, Error> {
        Ok(FoundProgram {
            path: self.root.join(&item.file),
            version: item.version.clone(),
            architecture: item.architecture.clone(),
            sha256: self.checked(item)?,
        })
    }

    /// Every file compared with the manifest: what is wrong with each. Fails where there is no manifest.
    pub fn verify(&self) -> Result<Vec<Error>, Error> {
        let Some(manifest) = &self.manifest else {
            return Err(Error::new(format!("{} has no {MANIFEST}, so windlass cannot verify it", self.name))
                .hint(format!("create it with windlass bundle create --from {}", self.name)));
        };
        // The files that were unpacked may be from another archive with the same manifest.
        if let Some(archive) = &self.archive {
            let problems = archive::differences(archive, manifest)?;
            if !problems.is_empty() {
                return Ok(problems);
            }
        }
        Ok(manifest.files.iter().filter_map(|item| self.checked(item).err()).collect())
    }

    fn choose(&self, items: &[Item], wanted: ProgramQuery<'_>) -> Result<Item, Error> {
        let ProgramQuery { component, architecture, version } = wanted;
        let named: Vec<&Item> = items.iter().filter(|item| item.component == component).collect();
        if named.is_empty() {
            return Err(self.lacks(items, component));
        }
        let fitting: Vec<&Item> = named
            .iter()
            .copied()
            .filter(|item| item.architecture == architecture || item.architecture == ANY)
            .collect();
        if fitting.is_empty() {
            let built_for: BTreeSet<&str> = named.iter().map(|item| item.architecture.as_str()).collect();
            let built_for: Vec<&str> = built_for.into_iter().collect();
            return Err(Error::new(format!(
                "the bundle {} has {component} for {}, not for {architecture}",
                self.name,
                built_for.join(" and ")
            )));
        }
        let versions: BTreeSet<&str> = fitting.iter().map(|item| item.version.as_str()).collect();
        let fitting: Vec<&Item> = fitting.into_iter().filter(|item| fits(&item.version, version)).collect();
        match fitting.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(self.has_other(component, &versions, version)),
            _ => Err(self.has_several(component, &versions)),
        }
    }

    fn lacks(&self, items: &[Item], component: &str) -> Error {
        let error = Error::new(format!("the bundle {} has no {component}", self.name));
        match did_you_mean(component, items.iter().map(|item| item.component.as_str())) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    fn has_other(&self, component: &str, versions: &BTreeSet<&str>, wanted: Option<&str>) -> Error {
        let versions: Vec<&str> = versions.iter().copied().collect();
        let wanted = wanted.unwrap_or_default();
        Error::new(format!("the bundle {} has {component} {}, not {wanted}", self.name, versions.join(" and ")))
    }

    fn has_several(&self, component: &str, versions: &BTreeSet<&str>) -> Error {
        let versions: Vec<&str> = versions.iter().copied().collect();
        if let [one] = versions.as_slice() {
            return Error::new(format!("the bundle {} has {component} {one} more than once", self.name));
        }
        Error::new(format!("the bundle {} has {component} {}", self.name, versions.join(" and ")))
            .hint("choose one with version")
    }

    /// The digest of a file that the manifest lists. Refused: it is missing, altered, or not for what the manifest says.
    fn checked(&self, item: &Item) -> Result<String, Error> {
        let path = self.root.join(&item.file);
        if !path.is_file() {
            return Err(Error::new(format!("{} is missing from the bundle {}", item.file, self.name)));
        }
        let sha256 = file_digest(&path)?;
        if sha256 != item.sha256 {
            return Err(Error::new(format!(
                "{} in the bundle {} has changed: its SHA-256 is {sha256}, and the manifest says {}",
                item.file, self.name, item.sha256
            )));
        }
        match elf::architecture(&path)? {
            Some(real) if real != item.architecture => Err(Error::new(format!(
                "{} in the bundle {}: architecture mismatch: the manifest says {}, found {real}",
                item.file, self.name, item.architecture
            ))),
            _ => Ok(sha256),
        }
    }
}

/// Whether a version is the one that is wanted, or begins with it: `1.19.0` fits `1.19`, `1.190.0` does not.
fn fits(version: &str, wanted: Option<&str>) -> bool {
    let Some(wanted) = wanted else { return true };
    let wanted = wanted.strip_prefix('v').unwrap_or(wanted);
    version.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+']))
}

/// SHA-256 of a regular file, lower-case hex.
///
/// # Errors
/// It cannot be read.
pub fn file_digest(path: &Path) -> Result<String, Error> {
    let cannot = |error: std::io::Error| Error::io("read", path, &error);
    // Opening a pipe blocks until it has a writer.
    if !path.metadata().map_err(cannot)?.is_file() {
        return Err(cannot(std::io::Error::other("it is not a regular file")));
    }
    let mut file = std::fs::File::open(path).map_err(cannot)?;
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer).map_err(cannot)? {
            0 => return Ok(bytes_to_hex(&sum.finalize())),
            count => sum.update(&buffer[..count]),
        }
    }
}

pub(crate) fn bytes_to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
