//! Flags as the real program takes them: names, types and feature gates out of the catalogue of its release.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Identity;

const CATALOGUES: &[(&str, &str)] = &[
    ("1.18", include_str!("../../../roles/karmada_catalogue/files/catalogue/karmada-1.18.yml")),
    ("1.19", include_str!("../../../roles/karmada_catalogue/files/catalogue/karmada-1.19.yml")),
];

#[derive(Deserialize)]
struct Catalogue {
    programs: BTreeMap<String, Program>,
}

#[derive(Deserialize)]
struct Program {
    flags: BTreeMap<String, Flag>,
    #[serde(default)]
    gates: Vec<String>,
}

#[derive(Deserialize)]
struct Flag {
    #[serde(rename = "type")]
    kind: String,
    default: Option<String>,
}

/// The flags' values: those given, and the real program's defaults.
pub(crate) struct Given(BTreeMap<String, String>);

impl Given {
    /// A value, if one is given or there is a default; never an empty one.
    pub(crate) fn get(&self, flag: &str) -> Option<&str> {
        self.0.get(flag).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All of them, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).filter(|(_, value)| !value.is_empty())
    }

    /// Go's duration in seconds, for the durations that a lease has.
    pub(crate) fn seconds(&self, flag: &str) -> Result<f64, String> {
        let text = self.get(flag).unwrap_or_default();
        seconds(text).ok_or_else(|| format!("invalid argument {text:?} for \"--{flag}\" flag"))
    }
}

/// Reads a command line, and refuses what the real program refuses.
pub(crate) fn parse(identity: &Identity, arguments: &[String]) -> Result<Given, String> {
    let minor = identity.version.rsplitn(2, '.').last().unwrap_or_default();
    let text = CATALOGUES.iter().find(|(known, _)| *known == minor);
    let (_, text) = text.ok_or_else(|| format!("there is no catalogue of Karmada {minor}"))?;
    let catalogue: Catalogue = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
    let program = catalogue.programs.get(&identity.program);
    let program = program.ok_or_else(|| format!("Karmada {minor} has no program {}", identity.program))?;
    let defaults = program.flags.iter().filter_map(|(name, flag)| Some((name.clone(), flag.default.clone()?)));
    let mut values: BTreeMap<String, String> = defaults.collect();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let name = argument.strip_prefix("--").ok_or_else(|| format!("unknown command {argument:?}"))?;
        let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
        let flag = program.flags.get(name).ok_or_else(|| format!("unknown flag: --{name}"))?;
        let value = match (value, flag.kind.as_str()) {
            (Some(value), _) => value,
            (None, "bool") => "true",
            (None, _) => rest.next().ok_or_else(|| format!("flag needs an argument: --{name}"))?,
        };
        if !fits(&flag.kind, value) {
            return Err(format!("invalid argument {value:?} for \"--{name}\" flag"));
        }
        values.insert(name.to_owned(), value.to_owned());
    }
    let gates = values.get("feature-gates").map(String::as_str).unwrap_or_default();
    for gate in gates.split(',').filter(|gate| !gate.is_empty()) {
        let name = gate.split('=').next().unwrap_or_default();
        if !program.gates.iter().any(|known| known == name) {
            return Err(format!(
                "invalid argument {gate:?} for \"--feature-gates\" flag: unrecognized feature gate: {name}"
            ));
        }
    }
    Ok(Given(values))
}

fn fits(kind: &str, value: &str) -> bool {
    match kind {
        "bool" => matches!(value, "true" | "false"),
        "int" | "int32" | "int64" | "Level" => value.parse::<i64>().is_ok(),
        "uint" | "uint32" | "uint64" => value.parse::<u64>().is_ok(),
        "float" | "float32" | "float64" => value.parse::<f64>().is_ok(),
        "duration" => seconds(value).is_some(),
        "ip" => value.parse::<std::net::IpAddr>().is_ok(),
        _ => true,
    }
}

/// `1m30s` is 90. Without days, as in Go.
fn seconds(text: &str) -> Option<f64> {
    let mut total = 0.0;
    let mut rest = text;
    if rest == "0" {
        return Some(0.0);
    }
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let end = rest[unit..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| unit + at);
        let factor = match &rest[unit..end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total += rest[..unit].parse::<f64>().ok()? * factor;
        rest = &rest[end..];
    }
    (!text.is_empty()).then_some(total)
}
