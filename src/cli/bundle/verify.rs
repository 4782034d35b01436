//! `windlass bundle verify`: every file against the manifest, and the manifest against its signatures.

use std::path::PathBuf;

use clap::Args;

use super::super::{CliError, ExitCode, note, print, settings, surroundings};
use super::failure;
use crate::bundle::{Bundle, RequiredSigners, Seal, SignatureVerdict};
use crate::launch;
use crate::report::one_line;

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Directory or .tar.zst
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Fail unless somebody in this file (OpenSSH's allowed_signers) has signed the bundle [default: the setting bundle_signers]
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,
    /// Public keys or fingerprints whose signatures do not count, one in each line [default: the setting bundle_revoked]
    #[arg(long, value_name = "FILE")]
    revoked: Option<PathBuf>,
    /// Only this signer counts; can be repeated [default: the setting bundle_principals]
    #[arg(long, value_name = "NAME")]
    principal: Vec<String>,
}

/// Runs the sub-command.
pub(super) fn verify_bundle(args: &VerifyArgs) -> Result<ExitCode, CliError> {
    let around = surroundings();
    let required = required(args)?;
    let bundle = Bundle::open_bundle(&args.bundle, around, None).map_err(failure)?;
    let problems = bundle.verify().map_err(failure)?;
    let files = bundle.manifest().map_err(failure)?.files.len();
    let signed = match (&required, bundle.seal()) {
        (Some(required), Some(seal)) => {
            let verdicts = required.judge(seal, around).map_err(failure)?;
            print(verdicts.iter().map(line).collect::<String>())?;
            verdicts.iter().any(|verdict| verdict.who.is_ok())
        }
        (_, Some(seal)) => {
            unjudged(seal);
            true
        }
        _ => true,
    };
    for problem in &problems {
        note(&problem.message);
    }
    if !problems.is_empty() {
        return Err(anyhow::anyhow!("{} of {files} files do not match the manifest", problems.len()).into());
    }
    if required.is_some() {
        bundle.refuse_strays().map_err(failure)?;
    }
    print(format!("all {files} files match the manifest\n"))?;
    match signed {
        true => Ok(ExitCode::Ok),
        false => Err(anyhow::anyhow!("the bundle has no signature that counts").into()),
    }
}

/// What the options say, or else the settings.
fn required(args: &VerifyArgs) -> Result<Option<RequiredSigners>, CliError> {
    let set = launch::options::signers(&settings()?)?;
    let absolute = |path: &PathBuf| surroundings().absolute(path);
    let Some(signers) = args.signers.as_ref().map(absolute).or_else(|| set.as_ref().map(|set| set.signers.clone()))
    else {
        return match args.revoked.is_some() || !args.principal.is_empty() {
            true => {
                Err(anyhow::anyhow!("--revoked and --principal need --signers FILE, or the setting bundle_signers")
                    .into())
            }
            false => Ok(None),
        };
    };
    let (revoked, principals) = set.map(|set| (set.revoked, set.principals)).unwrap_or_default();
    Ok(Some(RequiredSigners {
        signers,
        revoked: args.revoked.as_ref().map(absolute).or(revoked),
        principals: if args.principal.is_empty() { principals } else { args.principal.clone() },
    }))
}

fn line(verdict: &SignatureVerdict) -> String {
    let SignatureVerdict { file, key, who } = verdict;
    // The signature says what kind of key it has.
    let key = one_line(key.as_deref().unwrap_or("unknown key"));
    match who {
        Ok(who) => format!("good     {}  {key}  {file}\n", one_line(who)),
        Err(why) => format!("refused  {key}  {file}: {}\n", one_line(why)),
    }
}

/// Says that nobody's signature was checked.
fn unjudged(seal: &Seal) {
    if let count @ 1.. = seal.signatures.len() {
        let word = if count == 1 { "signature" } else { "signatures" };
        note(&format!("did not check {count} {word}: --signers FILE says whose count"));
    }
}
