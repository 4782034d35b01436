//! `windlass bundle create`: from a directory, from a recipe, or from a recipe that windlass carries.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use serde::Deserialize;

use super::super::{CliError, ExitCode, launch, note, warn};
use super::{failure, table};
use crate::bundle::{MANIFEST, Recipe, carried, hex_of, is_archive, pack, scan, without_login};
use crate::upstream::{self, Client, Created, KnownDigests, Order, Progress, SourceRow};
use crate::value::mutex::Mutex;
use crate::value::vault::Keyring;
use crate::value::{Value, yaml};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true))]
pub(super) struct Create {
    /// A recipe that windlass carries: karmada@1.18.2, etcd@3.5.21
    #[arg(value_name = "NAME@VERSION", group = "what")]
    named: Option<String>,
    /// Your own recipe: what to download, from where, with which digests
    #[arg(short, long, value_name = "FILE", group = "what")]
    file: Option<PathBuf>,
    /// Directory with programs, resource definitions (in crds/) and packages
    #[arg(long, value_name = "DIR", group = "what")]
    from: Option<PathBuf>,
    /// Write this archive (.tar.zst) or directory [default: NAME-VERSION.tar.zst; with --from: a manifest in DIR]
    #[arg(long, value_name = "PATH")]
    to: Option<PathBuf>,
    /// Take programs for this architecture only; can be repeated [default: those of the recipe]
    #[arg(long, value_name = "ARCHITECTURE", conflicts_with = "from")]
    architecture: Vec<String>,
    /// Accept files whose digest is not known, and write the digests to FILE. A later run compares with FILE
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    record_digests: Option<PathBuf>,
    /// Try TO first for images of the registry FROM, or for addresses that start with FROM; can be repeated
    #[arg(long, value_name = "FROM=TO", conflicts_with = "from")]
    mirror: Vec<String>,
    /// Trust these certificate authorities (PEM) instead of those of this machine
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    ca: Option<PathBuf>,
}

/// Runs the sub-command.
pub(super) fn create_bundle(create: &Create) -> Result<ExitCode, CliError> {
    match &create.from {
        Some(from) => from_directory(from, create.to.as_deref()),
        None => from_recipe(create),
    }
}

fn from_directory(from: &Path, to: Option<&Path>) -> Result<ExitCode, CliError> {
    if let Some(to) = to.filter(|to| !is_archive(to)) {
        return Err(anyhow::anyhow!("{} does not end with .tar.zst", to.display()).into());
    }
    let scanned = scan(from).map_err(failure)?;
    if scanned.manifest.files.is_empty() {
        return Err(anyhow::anyhow!("no programs found in {}", from.display()).into());
    }
    for file in scanned.left_out {
        // The archive itself may be written into the directory.
        if to.is_none_or(|to| !to.ends_with(&file)) {
            warn(&format!("skipped {file}: not a program, resource definition or package"));
        }
    }
    let written = match to {
        Some(to) => {
            pack(from, &scanned.manifest, to).map_err(failure)?;
            to.to_owned()
        }
        None => {
            let path = from.join(MANIFEST);
            std::fs::write(&path, scanned.manifest.to_yaml())
                .with_context(|| format!("cannot write {}", path.display()))?;
            path
        }
    };
    super::super::print(table(&scanned.manifest.files))?;
    note(&format!("wrote {}", written.display()));
    Ok(ExitCode::Ok)
}

fn from_recipe(create: &Create) -> Result<ExitCode, CliError> {
    let recipe = recipe(create)?;
    let architectures = match create.architecture.as_slice() {
        [] => recipe.architectures.clone(),
        some => some.to_vec(),
    };
    if let Some(other) = architectures.iter().find(|one| !recipe.architectures.contains(one)) {
        let known = recipe.architectures.join(", ");
        return Err(anyhow::anyhow!("the recipe {} has no sources for {other}; it has {known}", recipe.name).into());
    }
    let version = recipe.version().map_err(failure)?;
    let usual = version.map_or(recipe.name.clone(), |version| format!("{}-{version}", recipe.name));
    let to = create.to.clone().unwrap_or_else(|| format!("{usual}.tar.zst").into());
    let published = carried::digests().map_err(failure)?;
    let mut recorded = create.record_digests.as_deref().map(read_digests).transpose()?.unwrap_or_default();
    // What another project publishes counts more than what a server sent once.
    recorded.retain(|name, _| !published.contains_key(name));
    let known: KnownDigests = recorded.clone().into_iter().chain(published).collect();
    let mirrors = create.mirror.iter().map(|mirror| match mirror.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => Err(anyhow::anyhow!("invalid --mirror {:?}: expected FROM=TO", without_login(mirror))),
    });
    let mirrors = mirrors.collect::<anyhow::Result<Vec<_>>>()?;
    let client = Client::new(crate::cli::surroundings(), create.ca.as_deref(), progress()).map_err(failure)?;
    let order = Order {
        sources: recipe.sources(&architectures).map_err(failure)?,
        architectures: &architectures,
        known: &known,
        record: create.record_digests.is_some(),
        mirrors: &mirrors,
        to: &to,
    };
    let Created { manifest, rows } = launch::wait(async || upstream::create(&client, order).await).map_err(failure)?;
    super::super::print(table(&manifest.files))?;
    super::super::print(sources(&rows, &recorded))?;
    if let Some(file) = &create.record_digests {
        record(file, recorded, &rows)?;
    }
    note(&format!("wrote {}", to.display()));
    Ok(ExitCode::Ok)
}

fn recipe(create: &Create) -> Result<Recipe, CliError> {
    if let Some(path) = &create.file {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        return Recipe::parse_recipe(&text, path, &[]).map_err(failure);
    }
    let named = create.named.as_deref().unwrap_or_default();
    let (name, version) = named.split_once('@').unwrap_or((named, ""));
    carried::recipe(name, version).map_err(failure)
}

/// One line for each source: how its content was proved.
fn sources(rows: &[SourceRow], recorded: &KnownDigests) -> String {
    let mut lines = String::from("\n");
    for SourceRow { name, architecture, digest, was_known } in rows {
        let how = match digest {
            None => "files of this machine".to_owned(),
            Some(digest) => {
                let how = match (was_known, recorded.contains_key(name)) {
                    (true, false) => "matches the known digest",
                    (true, true) => "matches the recorded digest",
                    (false, _) => "NOT VERIFIED: the digest was not known",
                };
                format!("{digest}  {how}")
            }
        };
        lines.push_str(&format!("{architecture:6} {name}\n       {how}\n"));
    }
    lines
}

fn read_digests(path: &Path) -> anyhow::Result<KnownDigests> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(KnownDigests::new()),
        Err(error) => bail!("cannot read {}: {error}", path.display()),
    };
    let source = crate::value::origin::Source::new(path, &text);
    let documents = yaml::parse_yaml(&source.into()).map_err(|complaint| anyhow::anyhow!("{complaint}"))?;
    let Some(document) = documents.first() else { return Ok(KnownDigests::new()) };
    let value = document.to_value(&Keyring::default()).map_err(|complaint| anyhow::anyhow!("{complaint}"))?;
    let known =
        KnownDigests::deserialize(value).ok().filter(|known| known.values().all(|digest| hex_of(digest).is_some()));
    known.with_context(|| format!("{} does not list digests as ADDRESS: sha256:HEX", path.display()))
}

/// Adds the digests that were not known.
fn record(path: &Path, mut recorded: KnownDigests, rows: &[SourceRow]) -> anyhow::Result<()> {
    let new = rows.iter().filter(|row| !row.was_known).filter_map(|row| Some((row.name.clone(), row.digest.clone()?)));
    let before = recorded.len();
    recorded.extend(new);
    let added = recorded.len() - before;
    if added == 0 {
        return Ok(());
    }
    let style = yaml::YamlStyle { sort_keys: true, width: 400, ..yaml::YamlStyle::default() };
    let pairs = recorded.iter().map(|(name, digest)| (name.clone(), Value::from(digest.as_str())));
    let text = yaml::emit(&Value::from_pairs(pairs), &style);
    let text = format!(
        "# Digests of the files that windlass bundle create downloaded. Not verified against a second source.\n{text}"
    );
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let cannot = || format!("cannot write {}", path.display());
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(directory).with_context(cannot)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).with_context(cannot)?;
    file.as_file().sync_all().with_context(cannot)?;
    file.persist(path).with_context(cannot)?;
    let digests = if added == 1 { "1 digest".to_owned() } else { format!("{added} digests") };
    warn(&format!(
        "recorded {digests} in {}: they are computed from the downloads, not verified against a second source; \
         compare them before you trust them",
        path.display()
    ));
    Ok(())
}

/// Says every few seconds how far a download is, and when it is complete.
fn progress() -> Progress {
    let often = if std::io::stderr().is_terminal() { Duration::from_secs(2) } else { Duration::from_secs(15) };
    let (next, begun) = (AtomicU64::new(0), Instant::now());
    let last: Mutex<Option<String>> = Mutex::default();
    Box::new(move |name, done, total| {
        let now = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let complete = total == Some(done);
        if !complete && now < next.load(Ordering::Relaxed) {
            return;
        }
        next.store(now + u64::try_from(often.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
        let line = match total {
            Some(total) if complete => format!("downloaded {name} ({} MiB)", mebibytes(total)),
            Some(total) => format!("downloading {name}: {} of {} MiB", mebibytes(done), mebibytes(total)),
            None => format!("downloading {name}: {} MiB", mebibytes(done)),
        };
        if last.lock().replace(line.clone()).as_ref() != Some(&line) {
            note(&line);
        }
    })
}
