//! `windlass bundle sbom`: a bill of materials, for tools that look for vulnerabilities and licences.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::super::{CliError, ExitCode, note, print, surroundings};
use super::{failure, open_to_look};
use crate::bundle::{BillOfMaterials, cyclonedx, spdx};
use crate::report::plain_json;

#[derive(Debug, Args)]
pub(super) struct SbomArgs {
    /// Directory or .tar.zst
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// CycloneDX 1.6 or SPDX 2.3, both as JSON
    #[arg(short = 'o', long, value_enum, default_value_t = SbomFormat::Cyclonedx, value_name = "FORMAT")]
    output: SbomFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SbomFormat {
    Cyclonedx,
    Spdx,
}

/// Prints the bill of materials. The files are compared with the manifest before.
pub(super) fn print_sbom(args: &SbomArgs) -> Result<ExitCode, CliError> {
    let bill = BillOfMaterials::of_bundle(&open_to_look(&args.bundle)?).map_err(failure)?;
    let name = args.bundle.file_name().map_or_else(|| "bundle".into(), |name| name.to_string_lossy().into_owned());
    let name = name.strip_suffix(".tar.zst").unwrap_or(&name);
    let document = match args.output {
        SbomFormat::Cyclonedx => cyclonedx(&bill, name),
        SbomFormat::Spdx => spdx(&bill, name, &created()?),
    };
    print(format!("{}\n", plain_json(&format!("{document:#}"))))?;
    let silent = bill.silent_programs();
    if !silent.is_empty() {
        let silent = silent.join(", ");
        note(&format!("warning: these programs do not record their modules, so the list has none of them: {silent}"));
    }
    Ok(ExitCode::Ok)
}

/// The time in a document of SPDX, which must have one: SOURCE_DATE_EPOCH, or else 1970, so that the same bundle gives the same document.
fn created() -> Result<String, CliError> {
    let seconds = match surroundings().variables.get("SOURCE_DATE_EPOCH") {
        Some(text) => {
            text.parse().map_err(|_| anyhow::anyhow!("SOURCE_DATE_EPOCH must be a number of seconds, not {text:?}"))?
        }
        None => 0,
    };
    let time = OffsetDateTime::from_unix_timestamp(seconds).ok().and_then(|time| time.format(&Rfc3339).ok());
    Ok(time.ok_or_else(|| anyhow::anyhow!("SOURCE_DATE_EPOCH is out of range"))?)
}
