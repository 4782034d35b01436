//! Deployments whose files are in one directory, and the keys that each of them gets.

use std::fs;

use crate::resource::{ForeignResourceLimits, Resource, load_resources};

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Bench {
        Bench(tempfile::tempdir().unwrap())
    }

    fn put(&self, file: &str, name: &str, more: &str, address: &str) {
        let text = format!(
            "apiVersion: windlass.dev/v1alpha1\nkind: KarmadaDeployment\nmetadata: {{name: {name}}}\nspec:\n  bundle: b\n{more}  \
             hosts: [{{name: cp-1, address: {address}}}]\n  controlPlane: {{hosts: [cp-1]}}\n  etcd: {{managed: {{hosts: [cp-1]}}}}\n"
        );
        fs::write(self.0.path().join(file), text).unwrap();
    }

    fn keys(&self, path: &str, text: &str) {
        let path = self.0.path().join("credentials").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Where the deployment of a file has its keys, or why it has none.
    fn of(&self, file: &str) -> String {
        let resources = load_resources(&self.0.path().join(file), &ForeignResourceLimits::default()).unwrap();
        let Some(Resource::KarmadaDeployment(deployment)) = resources.into_iter().next() else { panic!("{file}") };
        let text = match deployment.credentials() {
            Ok(directory) => directory.display().to_string(),
            Err(complaint) => complaint.to_string(),
        };
        text.replace(&format!("{}/", self.0.path().display()), "")
    }
}

const PROD: &str = r#"{"kind": "KarmadaDeployment", "name": "prod"}"#;

#[test]
fn a_deployment_alone_has_the_keys_beside_its_file() {
    let bench = Bench::new();
    bench.put("prod.yaml", "prod", "", "192.0.2.1");
    fs::write(bench.0.path().join("members.yaml"), "kind: KarmadaDeployment of windlass.dev\n").unwrap();
    assert_eq!(bench.of("prod.yaml"), "credentials");
    bench.keys("etcd/ca.key", "");
    assert_eq!(bench.of("prod.yaml"), "credentials");
    // Another instance uses other names.
    bench.put("second.yaml", "second", "  instance: second\n", "192.0.2.1");
    assert_eq!((bench.of("prod.yaml"), bench.of("second.yaml")), ("credentials".into(), "credentials".into()));
}

#[test]
fn two_new_deployments_of_a_directory_have_keys_of_their_own() {
    let bench = Bench::new();
    bench.put("prod.yaml", "prod", "", "192.0.2.1");
    bench.put("test.yml", "test", "", "192.0.2.2");
    let own = |name: &str| format!("credentials/_deployments/{name}");
    assert_eq!((bench.of("prod.yaml"), bench.of("test.yml")), (own("prod"), own("test")));
    // Also when it is alone again.
    bench.keys("_deployments/test/etcd/ca.key", "");
    fs::remove_file(bench.0.path().join("prod.yaml")).unwrap();
    assert_eq!(bench.of("test.yml"), own("test"));
}

#[test]
fn keys_belong_to_whom_the_record_names() {
    let bench = Bench::new();
    bench.put("prod.yaml", "prod", "", "192.0.2.1");
    bench.keys("etcd/.deployment.json", PROD);
    assert_eq!(bench.of("prod.yaml"), "credentials");
    bench.put("test.yaml", "test", "", "192.0.2.2");
    assert_eq!(
        (bench.of("prod.yaml"), bench.of("test.yaml")),
        ("credentials".into(), "credentials/_deployments/test".into())
    );
    // Also if its file is elsewhere now.
    fs::remove_file(bench.0.path().join("prod.yaml")).unwrap();
    assert_eq!(bench.of("test.yaml"), "credentials/_deployments/test");
    bench.keys("etcd/.deployment.json", "");
    assert!(bench.of("test.yaml").contains("etcd/.deployment.json does not say whose the keys beside it are"));
}

#[test]
fn keys_that_two_deployments_could_have_are_refused_until_a_person_says_whose_they_are() {
    let bench = Bench::new();
    bench.put("prod.yaml", "prod", "", "192.0.2.1");
    bench.put("test.yaml", "test", "", "192.0.2.2");
    bench.keys("karmada/ca.key", "");
    let refused = bench.of("test.yaml");
    assert!(
        refused.contains(
            "credentials/karmada has the keys of a deployment, and nothing says whose they are: prod.yaml would use"
        ),
        "{refused}"
    );
    assert!(bench.of("prod.yaml").contains("test.yaml would use them as well"));
    // As is a file that cannot be understood.
    fs::write(bench.0.path().join("test.yaml"), "apiVersion: windlass.dev/v1alpha1\nkind: KarmadaDeployment\na: [\n")
        .unwrap();
    assert!(bench.of("prod.yaml").contains("test.yaml would use them as well"));
    bench.put("test.yaml", "test", "", "192.0.2.2");
    bench.keys("karmada/.deployment.json", PROD);
    assert_eq!(
        (bench.of("prod.yaml"), bench.of("test.yaml")),
        ("credentials".into(), "credentials/_deployments/test".into())
    );
}

#[test]
fn two_deployments_of_one_name_are_refused_and_a_copy_is_not() {
    let bench = Bench::new();
    bench.put("prod.yaml", "karmada", "", "192.0.2.1");
    bench.put("next.yaml", "karmada", "", "192.0.2.1");
    assert_eq!(bench.of("prod.yaml"), "credentials");
    bench.put("next.yaml", "karmada", "", "192.0.2.2");
    for (file, other) in [("prod.yaml", "next.yaml"), ("next.yaml", "prod.yaml")] {
        let refused = bench.of(file);
        assert!(refused.contains(&format!("{other} describes another deployment of the name karmada")), "{refused}");
    }
}
