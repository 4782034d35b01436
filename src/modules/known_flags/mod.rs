//! `known_flags`: refuses flags that a program of a certain version does not have, before any host is touched. The
//! versions are data: catalogue files, see `docs/how-to/catalogue.md`.

mod catalogue;

use indexmap::IndexMap;
use serde::Deserialize;

use self::catalogue::{Catalogue, Program};
use super::{Controller, Error, Local, ModuleResult, Outcome};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};
use crate::value::nearest::nearest;
use crate::value::truth;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownFlags {
    catalogue: String,
    flags: IndexMap<String, Value>,
}

impl Local for KnownFlags {
    const DOC: Doc = Doc {
        name: "known_flags",
        collection: "windlass",
        summary: "Refuse flags that a program of a given version does not have",
        arguments: &[
            Argument::new(
                "catalogue",
                ArgumentKind::Str,
                "A catalogue file on the controller, searched in files/ first",
            )
            .required(),
            Argument::new("flags", ArgumentKind::Dict, "Flags without dashes and their values, by program").required(),
        ],
        free_form: None,
        example: "\
- name: Check the flags against Karmada 1.19
  known_flags:
    catalogue: catalogue/karmada-1.19.yml
    flags:
      karmada-scheduler:
        kube-api-burst: 100
        feature-gates: {MultiplePodTemplatesScheduling: true}
",
        returns: &[
            Return::new("version", "The version whose programs the catalogue was made from"),
            Return::new("deprecated", "The given flags that a later version will not have, as PROGRAM --FLAG"),
        ],
    };

    async fn run(&self, here: &Controller<'_>) -> Result<ModuleResult, Error> {
        let catalogue = Catalogue::load_catalogue(&here.find_file("files", &self.catalogue)?, here.scope)?;
        let mut judged = FlagErrors::default();
        for (name, flags) in &self.flags {
            match catalogue.programs.get(name) {
                Some(program) => judged.flags_of(&catalogue, name, program, flags)?,
                None => judged.strange_program(&catalogue, name),
            }
        }
        if !judged.problems.is_empty() {
            return Err(Error::Failed { message: judged.problems.join("; "), hint: judged.hints() });
        }
        let outcome = Outcome::default().with("version", catalogue.version).with("deprecated", judged.deprecated);
        Ok(ModuleResult::unchanged(outcome))
    }
}

/// The errors so far: all of them are reported together.
#[derive(Debug, Default)]
struct FlagErrors {
    problems: Vec<String>,
    hints: Vec<String>,
    deprecated: Vec<String>,
}

impl FlagErrors {
    fn strange_program(&mut self, catalogue: &Catalogue, name: &str) {
        self.problems.push(format!("{} has no program {name}", catalogue.release()));
        self.near(name, catalogue.programs.keys().map(String::as_str));
    }

    fn flags_of(&mut self, catalogue: &Catalogue, name: &str, program: &Program, flags: &Value) -> Result<(), Error> {
        let keys = flags.try_iter().ok().filter(|_| flags.kind() == minijinja::value::ValueKind::Map);
        let keys = keys.ok_or_else(|| Error::failed(format!("the flags of {name} are not a mapping")))?;
        for key in keys {
            let flag = key.to_string();
            let Some(known) = program.flags.get(&flag) else {
                self.strange_flag(catalogue, name, program, &flag);
                continue;
            };
            if known.deprecated {
                self.deprecated.push(format!("{name} --{flag}"));
            }
            let value = flags.get_item(&key).unwrap_or_default();
            if flag == "feature-gates" && !program.gates.is_empty() {
                self.gates(catalogue, name, program, &value);
            } else if let Some(wanted) = known.refuses(&value) {
                self.problems.push(format!("{name} --{flag} must be {wanted}, not {value}"));
            }
        }
        Ok(())
    }

    fn strange_flag(&mut self, catalogue: &Catalogue, name: &str, program: &Program, flag: &str) {
        let mut problem = format!("{name} of {} has no flag --{flag}", catalogue.release());
        match program.removed.get(flag) {
            Some(story) => problem.push_str(&format!(" ({story})")),
            None => self.near(flag, program.flags.keys().map(String::as_str)),
        }
        self.problems.push(problem);
    }

    /// Feature gates: a mapping, or as on a command line, where a gate may have its component before it (`kube:Name`).
    fn gates(&mut self, catalogue: &Catalogue, name: &str, program: &Program, value: &Value) {
        let text = catalogue::flag_text(value);
        for gate in text.split(',').filter(|gate| !gate.trim().is_empty()) {
            let (gate, choice) = gate.split_once('=').unwrap_or((gate, ""));
            let gate = gate.trim().rsplit(':').next().unwrap_or_default();
            if truth::of_flag(choice.trim()).is_none() {
                self.problems.push(format!("the feature gate {gate} of {name} must be true or false, not {choice:?}"));
            }
            if !program.gates.iter().any(|known| known == gate) {
                self.problems.push(format!("{name} of {} has no feature gate {gate}", catalogue.release()));
                self.near(gate, program.gates.iter().map(String::as_str));
            }
        }
    }

    fn near<'a>(&mut self, word: &str, candidates: impl Iterator<Item = &'a str>) {
        if let Some(name) = nearest(word, candidates) {
            self.hints.push(format!("{name:?}"));
        }
    }

    fn hints(&self) -> Option<String> {
        (!self.hints.is_empty()).then(|| format!("did you mean {}?", self.hints.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, value};
    use super::*;

    const CATALOGUE: &str = "
product: karmada
version: v1.19.0
programs:
  karmada-scheduler:
    flags:
      kube-api-burst: {type: int}
      feature-gates: {type: mapStringBool}
      lease: {type: duration, deprecated: true}
      enable-pprof: {type: bool}
    gates: [Failover, PriorityBasedScheduling]
    removed:
      bind-address: use health-probe-bind-address
";

    async fn bench() -> Bench {
        let bench = Bench::new().await;
        bench.on_controller("files/c.yml", CATALOGUE);
        bench
    }

    fn task(flags: &str) -> String {
        format!("known_flags: {{catalogue: c.yml, flags: {{karmada-scheduler: {flags}}}}}")
    }

    async fn complaint(flags: &str) -> (String, String) {
        match bench().await.run(&task(flags)).await {
            Err(Error::Failed { message, hint }) => (message, hint.unwrap_or_default()),
            other => panic!("expected a complaint, got {:?}", other.map(|done| done.outcome)),
        }
    }

    #[tokio::test]
    async fn flags_that_the_version_has_pass_and_deprecated_ones_are_reported() {
        let flags = "{kube-api-burst: '60', lease: 10s, feature-gates: {Failover: true}, enable-pprof: false, }";
        let done = bench().await.run(&task(flags)).await.unwrap();
        assert!(!done.changed);
        assert_eq!(value(&done.outcome, "version"), "v1.19.0");
        assert_eq!(value(&done.outcome, "deprecated"), "['karmada-scheduler --lease']");
    }

    #[tokio::test]
    async fn a_flag_that_the_version_does_not_have_is_named_with_its_neighbour() {
        let (message, hint) = complaint("{kube-api-brust: 60}").await;
        assert_eq!(message, "karmada-scheduler of karmada v1.19.0 has no flag --kube-api-brust");
        assert_eq!(hint, "did you mean \"kube-api-burst\"?");
    }

    #[tokio::test]
    async fn a_removed_flag_is_reported_with_what_is_there_instead() {
        let (message, hint) = complaint("{bind-address: 0.0.0.0}").await;
        let expected =
            "karmada-scheduler of karmada v1.19.0 has no flag --bind-address (use health-probe-bind-address)";
        assert_eq!((message.as_str(), hint.as_str()), (expected, ""));
    }

    #[tokio::test]
    async fn all_that_is_wrong_is_reported_at_once() {
        let (message, _) = complaint("{kube-api-burst: many, lease: soon, enable-pprof: 7, nonsense: 1}").await;
        let problems: Vec<&str> = message.split("; ").collect();
        assert_eq!(
            problems,
            [
                "karmada-scheduler --kube-api-burst must be a whole number, not many",
                "karmada-scheduler --lease must be a duration such as 10s or 1h30m, not soon",
                "karmada-scheduler --enable-pprof must be true or false, not 7",
                "karmada-scheduler of karmada v1.19.0 has no flag --nonsense",
            ]
        );
    }

    #[tokio::test]
    async fn a_feature_gate_is_checked_in_both_ways_of_writing() {
        for gates in ["{Failovr: true}", "Failover=true,Failovr=false", "kube:Failover=true,kube:Failovr=false"] {
            let (message, hint) =
                complaint(&format!("{{feature-gates: {gates:?}}}").replace("\"{", "{").replace("}\"", "}")).await;
            assert_eq!(message, "karmada-scheduler of karmada v1.19.0 has no feature gate Failovr");
            assert_eq!(hint, "did you mean \"Failover\"?");
        }
    }

    #[tokio::test]
    async fn a_feature_gate_is_either_true_or_false() {
        let (message, _) = complaint("{feature-gates: {Failover: 1}}").await;
        assert_eq!(message, "the feature gate Failover of karmada-scheduler must be true or false, not \"1\"");
    }

    #[tokio::test]
    async fn a_program_that_is_not_in_the_catalogue_is_named() {
        let bench = bench().await;
        let message = bench.failure("known_flags: {catalogue: c.yml, flags: {karmada-schedule: {}}}").await;
        assert_eq!(message, "karmada v1.19.0 has no program karmada-schedule");
    }

    #[tokio::test]
    async fn a_file_that_is_no_catalogue_is_refused() {
        let bench = Bench::new().await;
        bench.on_controller("files/c.yml", "programs: [a]");
        let message = bench.failure("known_flags: {catalogue: c.yml, flags: {}}").await;
        assert!(message.ends_with("files/c.yml is not a catalogue of flags"), "{message}");
    }
}
