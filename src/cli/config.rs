//! `windlass config`: the settings in force, and where each comes from.

use std::fmt::Write;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};
use serde_json::{Value as Json, json};

use super::options::{ConnectionArgs, InventorySource, RunArgs, VaultPasswords};
use super::{CliError, ExitCode};
use crate::report::to_json;
use crate::settings::{SETTINGS, SetBy, Setting, SettingKind, Settings};
use crate::value::nearest::did_you_mean;

#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    /// Only settings that differ from their default
    #[arg(long = "only-changed")]
    only_changed: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human")]
    output: Output,
    #[command(flatten)]
    source: InventorySource,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    vault: VaultPasswords,
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Only these settings, by key, SECTION.KEY or environment variable, each with its description
    #[arg(value_name = "SETTING")]
    settings: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Human,
    /// One object: the file, and the settings by name
    Json,
}

/// A setting as it is shown.
struct ShownSetting {
    setting: &'static Setting,
    value: Json,
    set_by: SetBy,
}

/// Prints the settings. `matches` are the options as they were given: those that win over settings are shown as such.
pub(super) fn print_config(args: &ConfigArgs, matches: Option<&ArgMatches>) -> Result<ExitCode, CliError> {
    let settings = super::settings()?;
    let mut all: Vec<ShownSetting> =
        settings.all_settings().map(|(setting, _)| shown(setting, &settings, matches)).collect();
    if !args.settings.is_empty() {
        let chosen = args.settings.iter().map(|word| named(word)).collect::<Result<Vec<_>, _>>()?;
        all.retain(|one| chosen.contains(&one.setting.setting_name()));
    }
    if args.only_changed {
        all.retain(|one| one.set_by != SetBy::Default);
    }
    super::print(if args.output == Output::Json {
        format!("{}\n", json(&settings, &all))
    } else if args.settings.is_empty() {
        table(&settings, &all, args.only_changed)
    } else {
        explained(&all)
    })?;
    Ok(ExitCode::Ok)
}

fn shown(setting: &'static Setting, settings: &Settings, matches: Option<&ArgMatches>) -> ShownSetting {
    let found = settings.get(setting);
    let given = matches.and_then(|matches| on_command_line(setting, matches));
    let (value, set_by) = match given {
        Some(value) => (value, SetBy::CommandLine),
        None => (to_json(&found.value), found.set_by.clone()),
    };
    let value = if setting.kind == SettingKind::Secret && !value.is_null() { json!("(hidden)") } else { value };
    ShownSetting { setting, value, set_by }
}

/// What an option says in place of a setting.
fn on_command_line(setting: &Setting, matches: &ArgMatches) -> Option<Json> {
    let id = option_id(setting.option, matches)?;
    let given = matches.value_source(&id) == Some(ValueSource::CommandLine);
    let words = || matches.get_raw(&id).into_iter().flatten().map(|word| json!(word.to_string_lossy()));
    given.then(|| match setting.kind {
        SettingKind::Bool => json!(true),
        SettingKind::List | SettingKind::Paths | SettingKind::PathList | SettingKind::NamedPaths => words().collect(),
        _ => words().next_back().unwrap_or(Json::Bool(true)),
    })
}

/// The name under which the option `--long` is known to the parser.
fn option_id(long: &str, matches: &ArgMatches) -> Option<String> {
    let command = <super::Cli as clap::CommandFactory>::command();
    let command = command.find_subcommand("config")?;
    let id = command.get_arguments().find(|argument| argument.get_long() == Some(long))?.get_id().to_string();
    matches.try_contains_id(&id).is_ok().then_some(id)
}

/// The name of the setting that a word means.
fn named(word: &str) -> Result<String, CliError> {
    let fits =
        |setting: &&&Setting| setting.key == word || setting.setting_name() == word || setting.env.contains(&word);
    if let Some(setting) = SETTINGS.iter().find(fits) {
        return Ok(setting.setting_name());
    }
    let words = SETTINGS.iter().flat_map(|setting| setting.env.iter().copied().chain([setting.key]));
    let hint = did_you_mean(word, words).map_or(String::new(), |hint| format!(", {hint}"));
    Err(anyhow::anyhow!("no such setting: {word:?}{hint}").into())
}

fn table(settings: &Settings, all: &[ShownSetting], only_changed: bool) -> String {
    let mut out = match &settings.file {
        Some(file) => format!("configuration file: {}\n", file.display()),
        None => "configuration file: none\n".to_owned(),
    };
    let lines: Vec<(String, String)> = all
        .iter()
        .map(|one| (format!("{} = {}", one.setting.setting_name(), value_text(&one.value)), one.set_by.to_string()))
        .collect();
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0).min(72);
    for (line, set_by) in lines {
        writeln!(out, "{line:width$}  ({set_by})").expect("a String takes any text");
    }
    if only_changed {
        for (set_by, name, why) in &settings.not_needed {
            writeln!(out, "{name} ({set_by}) has no effect: {why}").expect("a String takes any text");
        }
    }
    out
}

/// Each setting with all that is known of it.
fn explained(all: &[ShownSetting]) -> String {
    let mut out = String::new();
    for one in all {
        let setting = one.setting;
        writeln!(out, "{} = {}  ({})", setting.setting_name(), value_text(&one.value), one.set_by)
            .expect("a String takes any text");
        writeln!(out, "    {}: {}", setting.meaning, setting.kind.setting_kind_text())
            .expect("a String takes any text");
        let default = if setting.default.is_empty() { "nothing" } else { setting.default };
        writeln!(out, "    default: {default}").expect("a String takes any text");
        for (section, key) in setting.also {
            writeln!(out, "    also: {section}.{key}").expect("a String takes any text");
        }
        if !setting.env.is_empty() {
            writeln!(out, "    environment: {}", setting.env.join(", ")).expect("a String takes any text");
        }
        if !setting.option.is_empty() {
            writeln!(out, "    option: --{}", setting.option).expect("a String takes any text");
        }
    }
    out
}

fn json(settings: &Settings, all: &[ShownSetting]) -> String {
    let one = |one: &ShownSetting| {
        let value = json!({"value": one.value, "from": one.set_by.to_string(), "default": one.setting.default});
        (one.setting.setting_name(), value)
    };
    let file = settings.file.as_ref().map(|file| file.display().to_string());
    let values: serde_json::Map<String, Json> = all.iter().map(one).collect();
    format!("{:#}", json!({"file": file, "settings": values}))
}

/// A value as one would write it.
fn value_text(value: &Json) -> String {
    match value {
        Json::Null => "(nothing)".to_owned(),
        Json::String(text) => text.replace('\n', " "),
        Json::Array(items) => items.iter().map(value_text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
