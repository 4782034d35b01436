//! `windlass bundle diff`: what one bundle has that another has not.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::super::{CliError, ExitCode, print};
use super::{exit_as_diff, failure, open_to_look};
use crate::bundle::{BundleDiff, ChangedItem, Item, Manifest};
use crate::report::{one_line, plain_json};

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// Directory or .tar.zst
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Directory or .tar.zst
    #[arg(value_name = "B")]
    b: PathBuf,
    /// How to print the differences
    #[arg(short = 'o', long, value_enum, default_value_t = DiffFormat::Human, value_name = "FORMAT")]
    output: DiffFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DiffFormat {
    Human,
    Json,
}

/// Runs the sub-command; its exit codes are those of diff.
pub(super) fn diff_bundles(args: &DiffArgs) -> Result<ExitCode, CliError> {
    Ok(exit_as_diff(compare(args)))
}

fn compare(args: &DiffArgs) -> Result<bool, CliError> {
    let open = |path: &Path| -> Result<(Manifest, Vec<String>), CliError> {
        let bundle = open_to_look(path)?;
        Ok((bundle.manifest().map_err(failure)?, bundle.signing_keys()))
    };
    let ((a, keys_of_a), (b, keys_of_b)) = (open(&args.a)?, open(&args.b)?);
    let diff = BundleDiff::of_manifests(&a, &b).with_keys(keys_of_a, keys_of_b);
    match args.output {
        DiffFormat::Human => print(lines(&diff))?,
        DiffFormat::Json => {
            let text = serde_json::to_string_pretty(&diff).map_err(anyhow::Error::from)?;
            print(format!("{}\n", plain_json(&text)))?;
        }
    }
    Ok(diff.is_same())
}

/// `-` is only in the first bundle, `+` only in the second, `~` in both and differs.
fn lines(diff: &BundleDiff) -> String {
    let BundleDiff { only_in_a, only_in_b, changed, signed_only_a, signed_only_b } = diff;
    let mut lines = Vec::new();
    lines.extend(only_in_a.iter().map(|item| alone('-', item)));
    lines.extend(only_in_b.iter().map(|item| alone('+', item)));
    lines.extend(changed.iter().map(both));
    lines.extend(signed_only_a.iter().map(|key| format!("- signature of {}\n", one_line(key))));
    lines.extend(signed_only_b.iter().map(|key| format!("+ signature of {}\n", one_line(key))));
    lines.concat()
}

fn alone(mark: char, item: &Item) -> String {
    let Item { component, version, architecture, file, size, sha256, .. } = item;
    format!("{mark} {component} {version} {architecture} {file} ({size} bytes, sha256:{})\n", short(sha256))
}

fn both(changed: &ChangedItem) -> String {
    let ChangedItem { a, b, differs } = changed;
    let mut text = format!("~ {} {}\n", a.component, a.architecture);
    for field in differs {
        let value = |item: &Item| match *field {
            "component" => item.component.clone(),
            "version" => item.version.clone(),
            "architecture" => item.architecture.clone(),
            "file" => item.file.clone(),
            "size" => item.size.to_string(),
            "sha256" => short(&item.sha256).to_owned(),
            _ => item.source.clone().unwrap_or_else(|| "none".to_owned()),
        };
        text.push_str(&format!("    {field}: {} -> {}\n", value(a), value(b)));
    }
    text
}

fn short(sha256: &str) -> &str {
    sha256.get(..12).unwrap_or(sha256)
}
