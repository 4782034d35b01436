//! `windlass worker`: one look or one Run of the operator, in a process of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use clap::Args;
use kube::ResourceExt;
use time::OffsetDateTime;

use super::SiteArgs;
use crate::cli::recording::StartedCommand;
use crate::cli::{CliError, ExitCode, failure_text, launch, note, print};
use crate::deployment::lock::holder::user_and_machine;
use crate::deployment::{Control, Outcome, Progress, Site};
use crate::kubernetes::{Cluster, LIVE, LiveName};
use crate::resource::AgreedPlan;
use crate::resource::status::{Look, short_message};
use crate::runs::RunId;
use crate::value::mutex::Mutex;
use crate::worker::{
    HEARTBEAT, LOCKED_BY_ITSELF, RunRecord, RunResult, RunWork, carry_out_run, look_at_hosts, time_text,
};

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    site: SiteArgs,
    /// Do this Run of the namespace of -f kube:NAMESPACE/NAME
    #[arg(long, value_name = "NAME", conflicts_with = "look", required_unless_present = "look")]
    run: Option<String>,
    /// Look at the hosts, and print what was found as JSON
    #[arg(long)]
    look: bool,
}

/// Looks, or does a run.
pub(crate) fn run_worker(args: &WorkerArgs) -> Result<ExitCode, CliError> {
    let live = args.site.file.as_ref().and_then(|file| LiveName::parse(file.to_str()?.strip_prefix(LIVE)?));
    let live = live.ok_or_else(|| anyhow!("a worker needs a deployment of an API server: -f kube:NAMESPACE/NAME"))?;
    match &args.run {
        Some(run) => do_run(args, &live, run),
        None => look(args),
    }
}

fn look(args: &WorkerArgs) -> Result<ExitCode, CliError> {
    let command = StartedCommand { recorded: false, ..args.site.command("look") };
    let mut found = None;
    let done = args.site.carry_out(command, &[], async |site, control| {
        found = look_at_hosts(site, true, control).await?;
        Ok(if found.is_some() { ExitCode::Ok } else { ExitCode::Interrupted })
    });
    let look = match (found, &done) {
        (Some(look), _) => look,
        (None, Ok(_)) => return done,
        (None, Err(failure)) => {
            let error = Some(short_message(&failure_text(failure)));
            Look { error, time: time_text(OffsetDateTime::now_utc()), ..Look::default() }
        }
    };
    print(serde_json::to_string(&look).map_err(anyhow::Error::new)?)?;
    done
}

fn do_run(args: &WorkerArgs, live: &LiveName, name: &str) -> Result<ExitCode, CliError> {
    let surroundings = Arc::new(crate::cli::surroundings().clone());
    let cluster = Cluster { context: live.context.clone(), around: surroundings.clone() };
    let record = RunId::new_at(std::time::SystemTime::now());
    let host = user_and_machine(&surroundings);
    let claimed = launch::wait(async || {
        let client = cluster.client().await?;
        RunRecord::claim(client, &live.namespace, name, &host, &record.to_string()).await
    });
    let run = match claimed.map_err(anyhow::Error::msg)? {
        Ok(run) => run,
        Err(why) => {
            note(&why);
            return Ok(ExitCode::Ok);
        }
    };
    let spec = run.run.spec.clone();
    let Done { result, generation, stops } = if spec.deployment != live.name {
        let message = format!("the run is for the deployment {}, not {}", spec.deployment, live.name);
        RunResult::refused("OtherDeployment", message).into()
    } else if spec.stop {
        RunResult::refused("Stopped", "it was stopped before it began").into()
    } else {
        carried_out(args, &run, record, (&cluster, &live.namespace))
    };
    let attempts = run.run.status.as_ref().map_or(1, |status| status.attempts);
    let given_back = match result.outcome {
        // A process that was asked to end does not count: its machine may be emptied again and again.
        Outcome::Interrupted if !stops => Some(("its process was stopped".to_owned(), attempts.saturating_sub(1))),
        _ if result.reason == LOCKED_BY_ITSELF => Some((result.message.clone(), attempts)),
        _ => None,
    };
    if let Some((why, attempts)) = given_back {
        launch::wait(async || run.give_back(&why, attempts).await);
        note(&format!("the run {name} did not come to its end: {why}; another process resumes it"));
        return Ok(ExitCode::Interrupted);
    }
    let written = launch::wait(async || run.finish(&result, generation).await)
        .map_err(|why| anyhow!("cannot write how the run {name} ended: {why}"))?;
    note(&format!("{}: {}", result.reason, result.message));
    if !written {
        note(&format!("another process does the run {name} now, or it is gone: its result is not written"));
    }
    Ok(result.outcome.into())
}

/// What became of a run.
struct Done {
    result: RunResult,
    /// Of the spec that it was about.
    generation: Option<i64>,
    /// The Run says that it is to stop.
    stops: bool,
}

impl From<RunResult> for Done {
    fn from(result: RunResult) -> Done {
        Done { result, generation: None, stops: true }
    }
}

/// Does the run, and says meanwhile that this process is there.
fn carried_out(args: &WorkerArgs, run: &RunRecord, record: RunId, (cluster, namespace): (&Cluster, &str)) -> Done {
    let (spec, name) = (&run.run.spec, run.run.name_any());
    let mut command = args.site.command(spec.operation.command());
    command.arguments.extend(["--run".to_owned(), args.run.clone().unwrap_or_default()]);
    let (mut result, mut generation) = (None, None);
    let stops = Arc::new(AtomicBool::new(false));
    let stopped = stops.clone();
    let done = args.site.carry_out_as(Some(record), command, &[], async |site: &Site, control: &Control| {
        let stage: Arc<Mutex<Option<String>>> = Arc::default();
        let (told, seen) = (control.progress.clone(), stage.clone());
        let control = Control {
            progress: Arc::new(move |progress| {
                if let Progress::StageStart { stage, .. } = &progress {
                    *seen.lock() = Some((*stage).to_owned());
                }
                told(progress);
            }),
            ..control.clone()
        };
        let alive = async {
            loop {
                let stage = stage.lock().clone();
                if run.beat(stage.as_deref()).await == Some(true) && !control.run.is_stopping() {
                    note("the run is to stop: stopping when the running tasks have finished");
                    stopped.store(true, Ordering::Relaxed);
                    control.run.stopping.store(true, Ordering::Relaxed);
                }
                tokio::time::sleep(HEARTBEAT).await;
            }
        };
        let work = async {
            generation = site.read_inventory().await?.generation();
            let agreed = run.run.status.as_ref().and_then(|status| status.agreed.as_ref());
            let agree = async |agreed: AgreedPlan| run.agree(&agreed).await;
            let created = run.run.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second());
            let created = u64::try_from(created).unwrap_or(0);
            let work = RunWork { name: &name, spec, cluster, namespace, agreed, created, agree };
            carry_out_run(site, work, &control).await
        };
        let ended = tokio::select! {
            ended = work => ended,
            () = alive => unreachable!("it has no end"),
        };
        let ended = ended.unwrap_or_else(|error| RunResult::of_error(&error));
        let message = site.keyring.hidden.hide(&ended.message).into_owned();
        let code = ended.outcome.into();
        result = Some(RunResult { message, ..ended });
        Ok(code)
    });
    let result = result.unwrap_or_else(|| {
        let why =
            done.err().map_or_else(|| "it was stopped before it began".to_owned(), |failure| failure_text(&failure));
        RunResult::refused("Error", why)
    });
    Done { result, generation, stops: stops.load(Ordering::Relaxed) }
}
