//! An image of windlass itself, with bundles in it, for an operator in a cluster and its Jobs: an OCI image layout in a tar archive, with
//! the `manifest.json` that older tools read. The same input makes the same bytes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::reference::Reference;
use crate::bundle::{Bundle, Error, MANIFEST, append, architecture_of, bytes_to_hex, is_static, member_header};

/// The user of the image's processes, who is not root.
const USER: u64 = 65532;
/// Where the image has its bundles.
const BUNDLES: &str = "bundles";
const PATHS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the sessions of windlass call on this machine, and what a person needs to look around. All are parts of busybox.
const TOOLS: &[&str] = &[
    "[",
    "awk",
    "base64",
    "basename",
    "cat",
    "chgrp",
    "chmod",
    "chown",
    "cmp",
    "cp",
    "cut",
    "date",
    "dd",
    "df",
    "dirname",
    "du",
    "echo",
    "env",
    "expr",
    "false",
    "find",
    "flock",
    "fold",
    "getopt",
    "grep",
    "gunzip",
    "gzip",
    "head",
    "hostname",
    "id",
    "install",
    "kill",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mkfifo",
    "mktemp",
    "mv",
    "nice",
    "nohup",
    "od",
    "pgrep",
    "pidof",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "setsid",
    "sh",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "sleep",
    "sort",
    "stat",
    "stty",
    "sync",
    "tail",
    "tar",
    "tee",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "truncate",
    "tty",
    "uname",
    "uniq",
    "wc",
    "which",
    "whoami",
    "xargs",
];

/// What an image is made of.
#[derive(Debug)]
pub struct OwnImage<'a> {
    /// `windlass:0.1.0`, `registry.example/windlass:0.1.0`
    pub name: &'a str,
    pub version: &'a str,
    /// Static windlass programs, one per architecture.
    pub programs: &'a [PathBuf],
    /// A static busybox for each of these architectures.
    pub shells: &'a [PathBuf],
    /// Bundles, and how deployments name them.
    pub bundles: &'a [(String, Bundle)],
}

/// A finished layer, or another part of an image.
struct Blob {
    content: NamedTempFile,
    /// SHA-256 of the content, and of what it unpacks to; lower-case hex.
    digest: String,
    unpacked: String,
    size: u64,
}

impl OwnImage<'_> {
    /// Writes the image, whole or not at all. Gives the architectures that it is for.
    ///
    /// # Errors
    /// A name is invalid; a program is not static; a bundle differs from its manifest; a file cannot be read or written.
    pub fn write_image(&self, to: &Path) -> Result<Vec<String>, Error> {
        let reference = Reference::parse_image_name(self.name)?;
        let tag = reference.tag.clone().filter(|_| reference.digest.is_none());
        let tag = tag.ok_or_else(|| Error::new(format!("invalid image {:?}: expected a tag, no digest", self.name)))?;
        let full_name = format!("{}/{}:{tag}", reference.registry, reference.repository);
        let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let cannot = |error: io::Error| Error::io("write", to, &error);
        let bundles: Vec<Blob> = self
            .bundles
            .iter()
            .map(|(name, bundle)| bundle_layer(directory, name, bundle))
            .collect::<Result<_, _>>()?;
        let (mut architectures, mut blobs, mut manifests, mut saved) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for program in self.programs {
            let architecture = static_architecture(program, "build it with packaging/build")?;
            if architectures.contains(&architecture) {
                return Err(Error::new(format!("{} is a second program for {architecture}", program.display())));
            }
            let own = self.program_layer(directory, program, &architecture)?;
            let layers: Vec<&Blob> = std::iter::once(&own).chain(&bundles).collect();
            let config = json_blob(directory, &self.config(&architecture, &layers)).map_err(cannot)?;
            let manifest = json_blob(directory, &manifest(&config, &layers)).map_err(cannot)?;
            let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
            entry["platform"] = json!({"architecture": &architecture, "os": "linux"});
            entry["annotations"] =
                json!({"io.containerd.image.name": &full_name, "org.opencontainers.image.ref.name": &tag});
            manifests.push(entry);
            saved.push(json!({
                "Config": path_of(&config),
                "RepoTags": [self.name],
                "Layers": layers.iter().map(|layer| path_of(layer)).collect::<Vec<_>>(),
            }));
            blobs.extend([own, config, manifest]);
            architectures.push(architecture);
        }
        if let [_, _, ..] = manifests.as_slice() {
            let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                "manifests": manifests.iter().map(|entry| without(entry, "annotations")).collect::<Vec<_>>()});
            let index = json_blob(directory, &index).map_err(cannot)?;
            let mut entry = descriptor("application/vnd.oci.image.index.v1+json", &index);
            entry["annotations"] = manifests[0]["annotations"].clone();
            manifests = vec![entry];
            blobs.push(index);
        }
        blobs.extend(bundles);
        // Whatever reads manifest.json knows one architecture only.
        saved.truncate(1);
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let temporary = tempfile::Builder::new().permissions(permissions).tempfile_in(directory).map_err(cannot)?;
        let mut archive = tar::Builder::new(temporary);
        let index =
            json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests});
        for (name, content) in [
            ("oci-layout", json!({"imageLayoutVersion": "1.0.0"})),
            ("index.json", index),
            ("manifest.json", Json::Array(saved)),
        ] {
            let content = content.to_string();
            append(&mut archive, name, content.len() as u64, 0o644, content.as_bytes()).map_err(cannot)?;
        }
        blobs.sort_by(|one, other| one.digest.cmp(&other.digest));
        blobs.dedup_by(|one, other| one.digest == other.digest);
        for blob in &blobs {
            let content = blob.content.reopen().map_err(cannot)?;
            append(&mut archive, &path_of(blob), blob.size, 0o644, content.take(blob.size)).map_err(cannot)?;
        }
        let temporary = archive.into_inner().map_err(cannot)?;
        temporary.as_file().sync_all().map_err(cannot)?;
        temporary.persist(to).map(drop).map_err(|error| cannot(error.error))?;
        Ok(architectures)
    }

    /// windlass, a shell with its tools, a user, and directories that can be written to.
    fn program_layer(&self, directory: &Path, program: &Path, architecture: &str) -> Result<Blob, Error> {
        let wanted = "name a static busybox with --busybox (apt install busybox-static)";
        let mut fitting = None;
        for shell in self.shells {
            if static_architecture(shell, wanted)? == architecture {
                fitting = Some(shell);
            }
        }
        let shell = fitting.ok_or_else(|| Error::new(format!("no busybox for {architecture}")).hint(wanted))?;
        layer(directory, |archive| {
            for (name, mode, owner) in [
                ("bin", 0o755, 0),
                ("etc", 0o755, 0),
                ("tmp", 0o1777, 0),
                ("usr", 0o755, 0),
                ("usr/bin", 0o755, 0),
                ("work", 0o700, USER),
            ] {
                append_directory(archive, name, mode, owner)?;
            }
            let user = format!("root:x:0:0:root:/root:/bin/sh\nwindlass:x:{USER}:{USER}:windlass:/work:/bin/sh\n");
            append(archive, "etc/passwd", user.len() as u64, 0o644, user.as_bytes())?;
            let group = format!("root:x:0:\nwindlass:x:{USER}:\n");
            append(archive, "etc/group", group.len() as u64, 0o644, group.as_bytes())?;
            append_file(archive, "bin/busybox", shell)?;
            for tool in TOOLS {
                let mut header = member_header(0, 0o777);
                header.set_entry_type(tar::EntryType::Symlink);
                archive.append_link(&mut header, format!("bin/{tool}"), "busybox")?;
            }
            append_file(archive, "usr/bin/windlass", program)
        })
    }

    fn config(&self, architecture: &str, layers: &[&Blob]) -> Json {
        let of_bundle = |(name, _): &(String, Bundle)| format!("{name}=/{BUNDLES}/{name}");
        let bundles: Vec<String> = self.bundles.iter().map(of_bundle).collect();
        let mut env = vec![format!("PATH={PATHS}"), "HOME=/work".to_owned(), "USER=windlass".to_owned()];
        if !bundles.is_empty() {
            env.push(format!("WINDLASS_RESOURCE_BUNDLES={}", bundles.join(",")));
        }
        json!({
            "architecture": architecture,
            "os": "linux",
            "config": {
                "User": format!("{USER}:{USER}"),
                "Env": env,
                "Entrypoint": ["/usr/bin/windlass"],
                "WorkingDir": "/work",
                "Labels": {"org.opencontainers.image.title": "windlass", "org.opencontainers.image.version": self.version},
            },
            "rootfs": {
                "type": "layers",
                "diff_ids": layers.iter().map(|layer| format!("sha256:{}", layer.unpacked)).collect::<Vec<_>>(),
            },
            "history": layers.iter().map(|_| json!({"created_by": "windlass bundle image"})).collect::<Vec<_>>(),
        })
    }
}

/// The architecture of a program that needs nothing of the system.
fn static_architecture(program: &Path, hint: &str) -> Result<String, Error> {
    match architecture_of(program)? {
        Some(architecture) if is_static(program)? => Ok(architecture),
        Some(_) => {
            Err(Error::new(format!("{} needs libraries that an image does not have", program.display())).hint(hint))
        }
        None => Err(Error::new(format!("{} is not a program", program.display())).hint(hint)),
    }
}

/// A bundle as a directory: nothing has to be unpacked where it is used.
fn bundle_layer(directory: &Path, name: &str, bundle: &Bundle) -> Result<Blob, Error> {
    if let Some(problem) = bundle.verify()?.into_iter().next() {
        return Err(problem);
    }
    let manifest = bundle.manifest()?;
    let mut directories = std::collections::BTreeSet::new();
    for item in &manifest.files {
        directories.extend(Path::new(&item.file).ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()));
    }
    layer(directory, |archive| {
        append_directory(archive, BUNDLES, 0o755, 0)?;
        let root = format!("{BUNDLES}/{name}");
        append_directory(archive, &root, 0o755, 0)?;
        for path in &directories {
            append_directory(archive, &format!("{root}/{}", path.display()), 0o755, 0)?;
        }
        // As it was signed, byte for byte.
        let text = bundle.seal().map_or_else(|| manifest.to_yaml(), |seal| seal.text.clone());
        append(archive, &format!("{root}/{MANIFEST}"), text.len() as u64, 0o644, text.as_bytes())?;
        for signature in bundle.seal().iter().flat_map(|seal| &seal.signatures) {
            let (name, text) = (format!("{root}/{}", signature.name), signature.text.as_slice());
            append(archive, &name, text.len() as u64, 0o644, text)?;
        }
        for item in &manifest.files {
            append_file(archive, &format!("{root}/{}", item.file), &bundle.unpacked_at().join(&item.file))?;
        }
        Ok(())
    })
}

fn manifest(config: &Blob, layers: &[&Blob]) -> Json {
    let layers = layers.iter().map(|layer| descriptor("application/vnd.oci.image.layer.v1.tar+gzip", layer));
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", config),
        "layers": layers.collect::<Vec<_>>(),
    })
}

fn descriptor(kind: &str, blob: &Blob) -> Json {
    json!({"mediaType": kind, "digest": format!("sha256:{}", blob.digest), "size": blob.size})
}

fn without(entry: &Json, key: &str) -> Json {
    let mut entry = entry.clone();
    entry.as_object_mut().and_then(|members| members.shift_remove(key));
    entry
}

fn path_of(blob: &Blob) -> String {
    format!("blobs/sha256/{}", blob.digest)
}

/// Passes on what is written, with its digest and length.
struct Summed<W> {
    inner: W,
    sum: Sha256,
    size: u64,
}

impl<W> Summed<W> {
    fn new(inner: W) -> Summed<W> {
        Summed { inner, sum: Sha256::new(), size: 0 }
    }

    fn digest(&self) -> String {
        bytes_to_hex(&self.sum.clone().finalize())
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.sum.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

type LayerArchive = tar::Builder<Summed<GzEncoder<Summed<NamedTempFile>>>>;

/// A compressed layer, in a file of its own in `directory`, which goes away with it.
fn layer(directory: &Path, fill: impl FnOnce(&mut LayerArchive) -> io::Result<()>) -> Result<Blob, Error> {
    let make = || {
        let packed = Summed::new(NamedTempFile::new_in(directory)?);
        let mut archive = tar::Builder::new(Summed::new(GzEncoder::new(packed, Compression::default())));
        fill(&mut archive)?;
        let plain = archive.into_inner()?;
        let unpacked = plain.digest();
        let packed = plain.inner.finish()?;
        Ok(Blob { digest: packed.digest(), unpacked, size: packed.size, content: packed.inner })
    };
    make().map_err(|error: io::Error| Error::new(format!("cannot write a layer of the image: {error}")))
}

fn json_blob(directory: &Path, content: &Json) -> io::Result<Blob> {
    let mut file = Summed::new(NamedTempFile::new_in(directory)?);
    file.write_all(content.to_string().as_bytes())?;
    Ok(Blob { digest: file.digest(), unpacked: String::new(), size: file.size, content: file.inner })
}

fn append_directory<W: Write>(to: &mut tar::Builder<W>, name: &str, mode: u32, owner: u64) -> io::Result<()> {
    let mut header = member_header(0, mode);
    header.set_entry_type(tar::EntryType::Directory);
    header.set_uid(owner);
    header.set_gid(owner);
    to.append_data(&mut header, format!("{name}/"), io::empty())
}

/// A file of this machine, which everybody may read and run.
fn append_file<W: Write>(to: &mut tar::Builder<W>, name: &str, path: &Path) -> io::Result<()> {
    let at = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(at)?;
    let size = file.metadata().map_err(at)?.len();
    let mut counted = file.take(size);
    append(to, name, size, 0o755, &mut counted).map_err(at)?;
    // One that became shorter meanwhile would shift everything after it.
    if counted.limit() == 0 { Ok(()) } else { Err(at(io::Error::other("it was changed while it was read"))) }
}

#[cfg(test)]
mod tests;
