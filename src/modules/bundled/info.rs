//! `bundle_info`: what a bundle has, before any host is touched.

use serde::Deserialize;

use super::{Question, blocking};
use crate::bundle::{Bundle, FoundProgram, architecture_named};
use crate::modules::{Controller, Error, Local, ModuleResult, Outcome};
use crate::value::Value;
use crate::value::doc::{Argument, ArgumentKind, Doc, Return};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BundleInfo {
    bundle: String,
    components: Vec<String>,
    architecture: Option<String>,
    version: Option<String>,
}

impl Local for BundleInfo {
    const DOC: Doc = Doc {
        name: "bundle_info",
        collection: "windlass",
        summary: "Return the content of a bundle; fail if something is missing or a file was changed",
        arguments: &[
            Argument::new("bundle", ArgumentKind::Str, "Directory or .tar.zst on the controller").required(),
            Argument::new(
                "components",
                ArgumentKind::List(&ArgumentKind::Str),
                "Names of programs, or crds, or packages",
            )
            .required(),
            Argument::new(
                "architecture",
                ArgumentKind::Str,
                "The architecture, as in the fact of that name or as amd64; required for programs. Selects packages",
            ),
            Argument::new("version", ArgumentKind::Str, "The version of all of them, or its beginning such as 1.19"),
        ],
        free_form: None,
        example: "\
- name: Check that the bundle has the programs for this host
  bundle_info:
    bundle: ~/karmada-1.19
    components: [karmada-scheduler, karmada-webhook]
    architecture: \"{{ ansible_facts.architecture }}\"
    version: \"1.19\"
  register: programs
",
        returns: &[
            Return::new(
                "components",
                "By name: path, version, architecture, sha256; for crds and packages a list of these, which may be \
                 empty for packages",
            ),
            Return::new("version", "The version of all of them, if it is the same"),
        ],
    };

    async fn run(&self, here: &Controller<'_>) -> Result<ModuleResult, Error> {
        let surroundings = here.scope.surroundings.clone();
        // Relative to where windlass was called, as paths of a command line are.
        let bundle = surroundings.absolute(surroundings.expand_home(&self.bundle));
        let mut components = Vec::new();
        let mut versions = Vec::new();
        for component in &self.components {
            let (bundle, surroundings) = (bundle.clone(), surroundings.clone());
            let signers = here.signers.cloned();
            let (version, architecture) = (self.version.clone(), self.architecture.clone());
            if component == "packages" {
                let all = move || {
                    Bundle::open_bundle(&bundle, &surroundings, signers.as_deref())?
                        .packages(architecture.as_deref().map(architecture_named))
                };
                components.push((component.clone(), blocking(all).await?.iter().map(described).collect::<Value>()));
                continue;
            }
            if component == "crds" {
                let all = move || {
                    Bundle::open_bundle(&bundle, &surroundings, signers.as_deref())?
                        .find_all("crds", version.as_deref())
                };
                let all = blocking(all).await?;
                versions.extend(all.first().map(|found| found.version.clone()));
                components.push((component.clone(), all.iter().map(described).collect::<Value>()));
                continue;
            }
            let architecture = architecture.as_deref().ok_or_else(|| {
                Error::failed(format!("bundle_info: argument \"architecture\" is required for {component}"))
            })?;
            let question = Question {
                bundle,
                surroundings,
                component: component.clone(),
                architecture: architecture_named(architecture).to_owned(),
                version,
                signers,
            };
            let found = here.caches.programs.find(question).await?;
            versions.push(found.version.clone());
            components.push((component.clone(), described(&found)));
        }
        versions.dedup();
        let outcome = Outcome::default().with("components", Value::from_pairs(components));
        Ok(ModuleResult::unchanged(match versions.as_slice() {
            [version] => outcome.with("version", version.as_str()),
            _ => outcome,
        }))
    }
}

fn described(found: &FoundProgram) -> Value {
    Value::from_pairs([
        ("path", Value::from(found.path.display().to_string())),
        ("version", Value::from(found.version.as_str())),
        ("architecture", Value::from(found.architecture.as_str())),
        ("sha256", Value::from(found.sha256.as_str())),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Bench, value};
    use super::super::program::tests::script;

    #[tokio::test]
    async fn the_components_are_reported_with_their_common_version() {
        let bench = Bench::new().await;
        for name in ["b/v3.5.21/etcd", "b/v3.5.21/etcdctl", "b/v3.5.21/crds/a.yaml"] {
            script(&bench, name, "3.5.21");
        }
        let task = "bundle_info: {bundle: HERE/b, components: [etcd, etcdctl, crds], architecture: x86_64}";
        let done = bench.run(task).await.unwrap();
        assert!(!done.changed);
        assert_eq!(value(&done.outcome, "version"), "3.5.21");
        let components = value(&done.outcome, "components");
        for part in ["v3.5.21/etcdctl'", "crds/a.yaml'", "'sha256': '"] {
            assert!(components.contains(part), "{components}");
        }
    }

    #[tokio::test]
    async fn packages_are_reported_by_architecture_and_there_may_be_none() {
        let bench = Bench::new().await;
        script(&bench, "b/etcd", "3.5.21");
        let reported = async |architecture: &str| {
            let task = format!("bundle_info: {{bundle: HERE/b, components: [packages]{architecture}}}");
            value(&bench.run(&task).await.unwrap().outcome, "components")
        };
        assert_eq!(reported("").await, "{'packages': []}");
        for name in ["a_1.0_amd64.deb", "b_1%3a2-1_all.deb", "c_1.0_arm64.deb"] {
            bench.on_controller(&format!("b/packages/{name}"), "x");
        }
        let packages = reported(", architecture: x86_64").await;
        assert!(packages.contains("packages/a_1.0_amd64.deb'") && packages.contains("packages/b_"), "{packages}");
        assert!(!packages.contains("arm64") && reported("").await.contains("packages/c_1.0_arm64.deb'"), "{packages}");
    }

    #[tokio::test]
    async fn what_the_bundle_lacks_is_reported() {
        let bench = Bench::new().await;
        script(&bench, "b/etcd", "3.5.21");
        let message = bench.failure("bundle_info: {bundle: HERE/b, components: [etcdutl], architecture: amd64}").await;
        assert!(message.ends_with("/b has no etcdutl"), "{message}");
        let message = bench.failure("bundle_info: {bundle: HERE/none, components: [crds]}").await;
        assert!(message.starts_with("cannot open the bundle ") && message.contains("No such file"), "{message}");
    }
}
