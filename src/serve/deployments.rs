//! Deployments: the files of a directory, the documents that came through the API, and what the last runs found out about them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use super::answers::{self, List};
use super::call::Call;
use super::looks::{Look, look_of, read_look};
use super::problem::Problem;
use super::rights::Right;
use super::{Server, runs};
use crate::resource::{self, STORED, STORED_SUFFIX};
use crate::runs::{RecordedRun, RunFilter, RunOutcome, timestamp_text};
use crate::value::ownership::{is_own, written_by_others};
use crate::value::read;

/// A deployment of the directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Deployment {
    /// Of a file that cannot be used: the name of the file.
    name: String,
    /// The name of the file.
    file: String,
    /// Whether its document came through the API: it can be changed there, and may use only what a resource from an API may use. Else it
    /// is a file that a person wrote on the server.
    stored: bool,
    /// Why the file cannot be used.
    problem: Option<String>,
    /// As the file says, or else as the last look found it.
    version: Option<String>,
    /// Of the control plane.
    hosts: Vec<String>,
    /// Empty if etcd is an external one.
    etcd_hosts: Vec<String>,
    members: Vec<String>,
    last_run: Option<RecordedRun>,
    /// Ids of runs that are under way.
    running: Vec<String>,
    status: Option<StatusSummary>,
}

/// What the last look found, in short.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StatusSummary {
    time: String,
    healthy: bool,
    wrong: Vec<String>,
    /// The run that looked.
    run: String,
}

/// What the last look found.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Status")]
pub(super) struct StatusAnswer {
    time: String,
    /// The run that looked.
    run: String,
    /// As `windlass status --format json` prints it.
    status: Json,
}

/// A file with one deployment, or why it has none.
pub(super) struct DeploymentFile {
    pub name: String,
    pub path: PathBuf,
    /// It came through the API.
    pub stored: bool,
    problem: Option<String>,
    spec: Option<resource::KarmadaDeploymentSpec>,
}

/// How many files are read at the most.
pub(super) const MOST_FILES: usize = 1000;

/// The files of deployments whose names are wanted, by name. Two of one name are both unusable; a document never makes a person's file
/// unusable, which comes first.
pub(super) fn read_deployments(
    server: &Server,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<DeploymentFile>, Problem> {
    let own = paths_in(&server.deployments, is_document)?;
    let mut stored = paths_in(&server.documents, is_stored)?;
    // A document has the name of its file, which is known before it is read.
    stored.retain(|path| file_name_of(path).strip_suffix(STORED_SUFFIX).is_some_and(&is_wanted));
    let siblings = server.documents_read.siblings(&server.deployments);
    let own = own.iter().filter_map(|path| read_deployment(server, path, Some(&siblings)));
    let stored = stored.iter().filter_map(|path| read_deployment(server, path, None));
    let mut files: Vec<DeploymentFile> = own.chain(stored).filter(|file| is_wanted(&file.name)).collect();
    files.sort_by(|a, b| (&a.name, a.stored).cmp(&(&b.name, b.stored)));
    for at in 1..files.len() {
        if files[at].name == files[at - 1].name {
            let other = file_name_of(&files[at - 1].path);
            files[at].problem = Some(format!("{other} has a deployment of this name too"));
            if !files[at].stored {
                let other = file_name_of(&files[at].path);
                files[at - 1].problem = Some(format!("{other} has a deployment of this name too"));
            }
        }
    }
    Ok(files)
}

/// A file of a person that cannot be used now, and that may be of the deployment of this name.
pub(super) fn broken_file_of(server: &Server, name: &str) -> Result<Option<PathBuf>, Problem> {
    let siblings = server.documents_read.siblings(&server.deployments);
    let is_broken = |path: &Path| {
        let read = read_deployment(server, path, Some(&siblings));
        !path.is_file() || read.is_some_and(|file| file.problem.is_some())
    };
    let is_of = |path: &Path| {
        path.file_stem().is_some_and(|stem| stem == name)
            || read::bytes(path).is_ok_and(|text| mentions(&String::from_utf8_lossy(&text), name))
    };
    // Also a link whose file is missing at the moment, and a file that is not read as there are too many.
    let paths = all_paths_in(&server.deployments, |path| has_ending(path) && !path.is_dir())?;
    let mut paths = paths.into_iter().enumerate();
    Ok(paths.find(|(at, path)| is_of(path) && (*at >= MOST_FILES || is_broken(path))).map(|(_, path)| path))
}

/// Whether a text has this name, and not only as a part of a longer one.
fn mentions(text: &str, name: &str) -> bool {
    let is_longer = |next: Option<char>| next.is_some_and(|next| next.is_ascii_alphanumeric() || next == '-');
    text.match_indices(name)
        .any(|(at, _)| !is_longer(text[..at].chars().next_back()) && !is_longer(text[at + name.len()..].chars().next()))
}

fn all_paths_in(directory: &Path, is_wanted: fn(&Path) -> bool) -> Result<Vec<PathBuf>, Problem> {
    let entries = std::fs::read_dir(directory).map_err(Problem::internal)?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| is_wanted(path)).collect();
    paths.sort();
    Ok(paths)
}

fn paths_in(directory: &Path, is_wanted: fn(&Path) -> bool) -> Result<Vec<PathBuf>, Problem> {
    let mut paths = all_paths_in(directory, is_wanted)?;
    if paths.len() > MOST_FILES {
        tracing::warn!("{} has {} files; the first {MOST_FILES} are read", directory.display(), paths.len());
        paths.truncate(MOST_FILES);
    }
    Ok(paths)
}

/// How many documents came through the API.
pub(super) fn count_documents(server: &Server) -> Result<usize, Problem> {
    Ok(all_paths_in(&server.documents, is_stored)?.len())
}

fn is_stored(path: &Path) -> bool {
    file_name_of(path).strip_suffix(STORED_SUFFIX).is_some_and(resource::is_stored_name) && path.is_file()
}

fn is_document(path: &Path) -> bool {
    has_ending(path) && path.is_file()
}

fn has_ending(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("yaml" | "yml")) && !file_name_of(path).starts_with('.')
}

pub(super) fn file_name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The first directory of others in which a link, or the file that it leads to, is.
fn directory_of_others(path: &Path) -> std::io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    // As many links as Linux follows.
    for _ in 0..40 {
        let directory = path.parent().unwrap_or(&path).to_owned();
        if let Some(found) = written_by_others(&directory)? {
            return Ok(Some(found));
        }
        match path.is_symlink() {
            true => path = directory.join(std::fs::read_link(&path)?),
            false => return Ok(None),
        }
    }
    Err(std::io::Error::other("too many links"))
}

/// `siblings`: the deployments of its directory; none for a document that the server stores. None: it is not about a deployment.
fn read_deployment(server: &Server, path: &Path, siblings: Option<&[resource::Sibling]>) -> Option<DeploymentFile> {
    let stored = siblings.is_none();
    let unusable = |problem: String| {
        let file = file_name_of(path);
        let name = file.strip_suffix(STORED_SUFFIX).unwrap_or(&file).to_owned();
        Some(DeploymentFile { name, path: path.to_owned(), stored, problem: Some(problem), spec: None })
    };
    if path.to_str().is_none() {
        return unusable("the name of the file is not UTF-8".to_owned());
    }
    match path.metadata() {
        Ok(found) if !is_own(&found) => return unusable("another user owns the file or can write to it".to_owned()),
        Err(error) => return unusable(error.to_string()),
        Ok(_) => {}
    }
    // The directories are not for everybody to know.
    let directory = path.parent().unwrap_or(path).display().to_string();
    let short = |text: String| text.replace(&format!("{directory}/"), "");
    match directory_of_others(path) {
        Ok(None) => {}
        Ok(Some(_)) => {
            return unusable("it is a link into a directory that another user owns or can write to".to_owned());
        }
        Err(error) => return unusable(error.to_string()),
    }
    let content = match server.documents_read.content(path, stored, &server.limits) {
        Ok(content) => content,
        Err(error) => return unusable(error.to_string()),
    };
    let (deployment, more) = match &*content {
        Ok((deployment, more)) => (deployment.as_ref()?, *more),
        Err(complaints) => {
            let texts = complaints.iter().map(|complaint| short(complaint.to_string()));
            return unusable(texts.collect::<Vec<_>>().join("\n"));
        }
    };
    let several = "the file has more than one KarmadaDeployment: give each its own file".to_owned();
    let problem = more.then_some(several).or_else(|| {
        let complaint = deployment.credentials_among(siblings?).err()?;
        Some(short(complaint.to_string()))
    });
    Some(DeploymentFile {
        name: deployment.name.clone(),
        path: path.to_owned(),
        stored,
        problem,
        spec: Some(deployment.spec.clone()),
    })
}

/// The file of a deployment that can be used.
pub(super) fn usable_deployment(server: &Server, name: &str) -> Result<DeploymentFile, Problem> {
    let found = read_deployments(server, |other| other == name)?.into_iter().next();
    let file = found.ok_or_else(|| Problem::not_found("such deployment"))?;
    match file.problem {
        None => Ok(file),
        Some(problem) => Err(Problem::conflict("InvalidDocument", problem)),
    }
}

impl DeploymentFile {
    /// What commands call it. A stored document is never named as a file, which would be a person's.
    pub(super) fn source(&self) -> String {
        let mark = if self.stored { STORED } else { "" };
        format!("{mark}{}", self.path.display())
    }
}

impl Deployment {
    fn of_file(server: &Server, file: DeploymentFile) -> Result<Deployment, Problem> {
        let filter = RunFilter { deployment: Some(file.name.clone()), limit: Some(1), ..RunFilter::default() };
        let last_run = server.stores.with_store(|store| store.find_runs(&filter))?.pop();
        let LastLooks { found, failed } = last_looks(server, &file.name)?;
        let running = runs::running_runs(server, &file.name)?;
        let (hosts, etcd_hosts, members, version) = match file.spec {
            None => Default::default(),
            Some(spec) => (
                spec.control_plane.hosts,
                spec.etcd.managed.map_or_else(Vec::new, |managed| managed.hosts),
                spec.members.into_iter().map(|member| member.name).collect(),
                spec.version,
            ),
        };
        Ok(Deployment {
            version: version.or_else(|| found.as_ref().and_then(|(_, look)| look.version.clone())),
            file: file_name_of(&file.path),
            stored: file.stored,
            name: file.name,
            problem: file.problem,
            hosts,
            etcd_hosts,
            members,
            last_run,
            running: running.into_iter().map(|run| run.start.id.to_string()).collect(),
            status: failed.or(found.map(|(run, look)| StatusSummary {
                time: run.ended.map(timestamp_text).unwrap_or_default(),
                healthy: look.healthy,
                wrong: look.wrong.clone(),
                run: run.start.id.to_string(),
            })),
        })
    }
}

/// The last looks at a deployment.
struct LastLooks {
    /// The last one that found something out.
    found: Option<(RecordedRun, Arc<Look>)>,
    /// The last one, if it ended without a result.
    failed: Option<StatusSummary>,
}

/// How many looks without a result are passed over.
const MOST_FAILED: usize = 5;

fn last_looks(server: &Server, deployment: &str) -> Result<LastLooks, Problem> {
    let filter = RunFilter {
        deployment: Some(deployment.to_owned()),
        command: Some("status".to_owned()),
        limit: Some(MOST_FAILED),
        ..RunFilter::default()
    };
    let mut looks = LastLooks { found: None, failed: None };
    for run in server.stores.with_store(|store| store.find_runs(&filter))? {
        let (Some(ended), Some(outcome)) = (run.ended, run.outcome) else { continue };
        if let Some(look) = look_of(server, &run)? {
            looks.found = Some((run, look));
            break;
        }
        let wrong = match outcome {
            RunOutcome::Unreachable => "the last look at the hosts reached none of them".to_owned(),
            outcome => format!("the last look at the hosts ended without a result: {}", outcome.outcome_word()),
        };
        let (time, run) = (timestamp_text(ended), run.start.id.to_string());
        looks.failed.get_or_insert(StatusSummary { time, healthy: false, wrong: vec![wrong], run });
    }
    Ok(looks)
}

pub(super) async fn list_deployments(call: Call) -> Result<Response, Problem> {
    let (server, may) = (call.server.clone(), call.login.map(|login| login.rights).unwrap_or_default());
    let list = move |server: &Server| {
        let files = read_deployments(server, |name| may.include(Right::See, Some(name)))?.into_iter();
        files.map(|file| Deployment::of_file(server, file)).collect::<Result<Vec<_>, _>>()
    };
    Ok(answers::ok(&List::whole(server.blocking(list).await?)))
}

/// The deployment that the path names, usable or not.
pub(super) async fn named_deployment<T: Send + 'static>(
    call: Call,
    work: impl FnOnce(&Server, DeploymentFile) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let (server, name): (Arc<Server>, _) = (call.server.clone(), call.part("deployment").to_owned());
    let find = move |server: &Server| {
        let found = read_deployments(server, |other| other == name)?.into_iter().next();
        work(server, found.ok_or_else(|| Problem::not_found("such deployment"))?)
    };
    server.blocking(find).await
}

pub(super) async fn show_deployment(call: Call) -> Result<Response, Problem> {
    let deployment = named_deployment(call, Deployment::of_file).await?;
    Ok(answers::ok(&deployment))
}

pub(super) async fn show_status(call: Call) -> Result<Response, Problem> {
    let find = |server: &Server, file: DeploymentFile| {
        let no_status = |detail: String| Problem::new(StatusCode::NOT_FOUND, "NoStatus", detail);
        match last_looks(server, &file.name)? {
            LastLooks { found: Some((run, _)), .. } => {
                let status = read_look(server, &run)?.ok_or_else(|| no_status("the run was deleted".to_owned()))?;
                let time = run.ended.map(timestamp_text).unwrap_or_default();
                Ok(StatusAnswer { time, run: run.start.id.to_string(), status })
            }
            LastLooks { found: None, failed: Some(failed) } => {
                Err(no_status(failed.wrong.join("; ")).with_hint(format!("the log of run {} says why", failed.run)))
            }
            LastLooks { found: None, failed: None } => {
                let detail = "nobody has looked at the hosts yet".to_owned();
                Err(no_status(detail).with_hint("start a run with the command status"))
            }
        }
    };
    let status = named_deployment(call, find).await?;
    Ok(answers::ok(&status))
}
