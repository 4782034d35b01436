//! A bill of materials of a bundle: its programs, the modules that Go programs were built from, and its packages. The same bundle always gives
//! the same text.

mod cyclonedx;
pub(super) mod package_url;
mod spdx;

use std::collections::BTreeSet;

use super::build_info::{BuildInfo, GoModule};
use super::manifest::{Item, Manifest};
use super::package_file::PackageFile;
use super::{Bundle, Error, bytes_to_hex, without_login};

pub use cyclonedx::cyclonedx;
pub use spdx::spdx;

/// What a bundle consists of.
#[derive(Debug)]
pub struct BillOfMaterials {
    /// SHA-256 of the list of its files, in hex.
    digest: String,
    pub(super) parts: Vec<Part>,
}

/// A file of the bundle.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) item: Item,
    /// None: it is no Go program, or does not say it.
    build_info: Option<BuildInfo>,
}

impl BillOfMaterials {
    /// Reads all files, and compares each with the manifest, if there is one.
    ///
    /// # Errors
    /// One differs, or cannot be read.
    pub fn of_bundle(bundle: &Bundle) -> Result<BillOfMaterials, Error> {
        let manifest = bundle.manifest()?;
        if bundle.manifest.is_some()
            && let Some(problem) = bundle.verify()?.into_iter().next()
        {
            return Err(problem);
        }
        let part = |item: &Item| {
            let path = bundle.root.join(&item.file);
            Ok(Part { item: item.clone(), build_info: BuildInfo::of_program(&path)? })
        };
        let parts = manifest.files.iter().map(part).collect::<Result<Vec<_>, Error>>()?;
        if parts.is_empty() {
            return Err(Error::new(format!("{} has no programs", bundle.name)));
        }
        Ok(BillOfMaterials { digest: digest_of(&manifest), parts })
    }

    /// All modules of its Go programs, each once. Go's own library is the module `stdlib`, as vulnerability databases call it.
    fn modules(&self) -> BTreeSet<GoModule> {
        self.parts.iter().flat_map(Part::modules).collect()
    }

    /// The programs that do not say what they were built from.
    pub fn silent_programs(&self) -> Vec<&str> {
        let is_silent = |part: &Part| part.build_info.as_ref().is_none_or(|info| info.main.is_none());
        let silent = |part: &&Part| part.is_program() && is_silent(part);
        self.parts.iter().filter(silent).map(|part| part.item.file.as_str()).collect()
    }
}

impl Part {
    fn is_program(&self) -> bool {
        !["crds", "packages"].contains(&self.item.component.as_str())
    }

    fn modules(&self) -> Vec<GoModule> {
        let Some(info) = &self.build_info else { return Vec::new() };
        let library = GoModule { path: "stdlib".to_owned(), version: info.go.clone() };
        info.dependencies.iter().cloned().chain([library]).collect()
    }

    /// The module of the program itself, and those that it was built from. A program that was built from a checkout does not say its own version:
    /// it is that of the bundle.
    pub(super) fn own_and_modules(&self) -> Vec<GoModule> {
        let own = self.build_info.as_ref().and_then(|info| info.main.clone());
        let own = own
            .map(|main| GoModule { version: main.version.or_else(|| Some(format!("v{}", self.item.version))), ..main });
        own.into_iter().chain(self.modules()).collect()
    }

    /// Where it was downloaded, if that is an address that a document may have.
    fn address(&self) -> Option<String> {
        let address = without_login(self.item.source.as_ref()?);
        let is_plain = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c);
        (address.starts_with("https://") && address.chars().all(is_plain)).then_some(address)
    }

    /// What the file's name says, if it is a package.
    fn package(&self) -> Option<PackageFile<'_>> {
        let file = self.item.file.rsplit('/').next().filter(|_| self.item.component == "packages")?;
        PackageFile::parse_file_name(file)
    }

    /// The version of a package is written with escapes in its file's name, from where the bundle has it.
    fn version(&self) -> String {
        let version = &self.item.version;
        match self.item.component == "packages" {
            true => percent_encoding::percent_decode_str(version).decode_utf8_lossy().into_owned(),
            false => version.clone(),
        }
    }

    /// A package is called as its file's name says; everything else, as the bundle does.
    fn name(&self) -> &str {
        self.package().map_or(&self.item.component, |package| package.name)
    }
}

fn digest_of(manifest: &Manifest) -> String {
    use sha2::Digest;
    bytes_to_hex(&sha2::Sha256::digest(manifest.to_yaml().as_bytes()))
}

#[cfg(test)]
pub(super) use tests::bill_of_module;

#[cfg(test)]
mod tests;
