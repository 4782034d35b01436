//! What becomes of a deployment: hosts, groups, variables; what becomes of secrets and of texts with template marks.

use std::fs;

use crate::inventory::Inventory;
use crate::template::{Scope, Templar};
use crate::value::vault::Keyring;
use crate::value::{Template, Value, Vars};

const DEPLOYMENT: &str = r#"
apiVersion: windlass.dev/v1alpha1
kind: KarmadaDeployment
metadata: {name: production}
spec:
  bundle: bundles/karmada.tar.zst
  hosts:
    - {name: cp-1, address: 192.0.2.11, privateAddress: 10.0.0.1, architecture: amd64, labels: {Zone/Name: a}}
    - {name: cp-2, address: 192.0.2.12, port: 2222, user: ops, bastion: {address: gate, user: jump, port: 2200}}
    - {name: old, reset: true}
    - {name: m2-host, address: 192.0.2.20}
  ssh:
    user: deploy
    password: {file: password.txt}
    knownHosts: ["known hosts"]
  controlPlane:
    hosts: [cp-1, cp-2]
    certSANs: [karmada.example.com, 192.0.2.10]
    loadBalancer:
      hosts: [cp-2, m2-host, old]
      virtualAddress: 192.0.2.10
      interface: ens3
      routerID: 7
      packageFiles: [packages/haproxy.deb]
  etcd:
    managed: {hosts: [cp-1], extraArgs: {snapshot-count: "5000"}}
  components:
    karmadaScheduler: {hosts: [cp-2], extraArgs: {v: "4", x: "{{ boom }}"}}
    karmadaSearch: {}
    karmadaDescheduler: {enabled: false}
  certificates: {leafCertValidityDays: 90, renewBeforeDays: 10}
  members:
    - name: m1
      kubeconfig: {file: members/m1.kubeconfig}
      labels: {someKey: someValue}
      addons: [{name: metrics, src: [metrics.yaml], to: [member, control_plane]}]
    - name: m2
      syncMode: Pull
      agent: {host: m2-host}
      kubeconfigOnHost: {host: m2-host, path: /etc/kubernetes/admin.conf}
      workloads: keep
    - {name: m3, kubeconfig: {env: M3_KUBECONFIG}}
"#;

fn load(text: &str) -> (tempfile::TempDir, Inventory) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("karmada.yaml");
    fs::write(&file, text).unwrap();
    let inventory = Inventory::load(&[file.to_string_lossy().into_owned()], &Keyring::default()).unwrap();
    (directory, inventory)
}

fn group(inventory: &Inventory, name: &str) -> Vec<String> {
    inventory.hosts_of(name).iter().map(ToString::to_string).collect()
}

fn shown(vars: &Vars, name: &str) -> String {
    vars.get(name).map_or_else(|| "unset".to_owned(), |value| serde_json::to_string(value).unwrap())
}

#[test]
fn hosts_are_in_the_groups_that_the_roles_know() {
    let (_directory, inventory) = load(DEPLOYMENT);
    for (name, hosts) in [
        ("etcd", vec!["cp-1"]),
        ("karmada_control_plane", vec!["cp-1", "cp-2", "old"]),
        ("karmada_apiserver", vec!["cp-1", "cp-2"]),
        ("kube_controller_manager", vec!["cp-1", "cp-2"]),
        ("karmada_scheduler", vec!["cp-2"]),
        ("karmada_search", vec!["cp-1", "cp-2"]),
        ("load_balancer", vec!["cp-2", "m2-host"]),
        ("members", vec!["m1", "m2", "m3"]),
        ("add_member", vec![]),
        ("del_member", vec![]),
    ] {
        assert_eq!(group(&inventory, name), hosts, "{name}");
        assert!(inventory.groups.contains_key(name), "{name}");
    }
    assert!(!inventory.groups.contains_key("karmada_descheduler"), "it is switched off");
    assert_eq!(inventory.deployments[0].name, "production");
}

#[test]
fn a_load_balancer_is_on_the_hosts_of_the_control_plane_unless_it_names_others() {
    let lines = DEPLOYMENT.lines().filter(|line| !line.contains("hosts: [cp-2, m2-host, old]"));
    let (_directory, inventory) = load(&lines.map(|line| format!("{line}\n")).collect::<String>());
    assert_eq!(group(&inventory, "load_balancer"), ["cp-1", "cp-2"]);
}

#[test]
fn fields_are_variables_and_maps_of_the_user_keep_their_keys() {
    let (directory, inventory) = load(DEPLOYMENT);
    let vars = inventory.vars_of("cp-1", None);
    let here = |path: &str| format!("\"{}/{path}\"", directory.path().display());
    for (name, value) in [
        ("karmada_deployment", "\"production\""),
        ("karmada_instance", "\"karmada\""),
        ("karmada_bundle", &here("bundles/karmada.tar.zst")),
        ("karmada_address", "\"10.0.0.1\""),
        ("etcd_address", "\"10.0.0.1\""),
        ("preflight_architectures", "[\"x86_64\"]"),
        ("host_labels", "{\"Zone/Name\":\"a\"}"),
        ("karmada_extra_names", "[\"DNS:karmada.example.com\",\"IP:192.0.2.10\"]"),
        ("karmada_virtual_address", "\"192.0.2.10\""),
        ("load_balancer_interface", "\"ens3\""),
        ("load_balancer_router_id", "7"),
        ("load_balancer_package_files", &format!("[{}]", here("packages/haproxy.deb"))),
        ("etcd_flags", "{\"snapshot-count\":\"5000\"}"),
        ("karmada_scheduler_extra_args", "{\"v\":\"4\",\"x\":\"{{ boom }}\"}"),
        ("karmada_search_enabled", "true"),
        ("karmada_descheduler_enabled", "false"),
        ("karmada_certificate_days", "90"),
        ("etcd_certificate_renew_days", "10"),
        ("ansible_user", "\"deploy\""),
        ("ansible_host", "\"192.0.2.11\""),
    ] {
        assert_eq!(shown(&vars, name), value, "{name}");
    }
    let vars = inventory.vars_of("cp-2", None);
    assert_eq!((shown(&vars, "ansible_user"), shown(&vars, "ansible_port")), ("\"ops\"".into(), "2222".into()));
    let known = directory.path().join("known hosts");
    assert_eq!(
        vars["ansible_ssh_common_args"].to_string(),
        format!("-o 'UserKnownHostsFile=\"{}\"' -o 'ProxyJump=jump@gate:2200'", known.display())
    );
}

#[test]
fn members_are_hosts_reached_as_their_kubeconfig_is() {
    let (directory, inventory) = load(DEPLOYMENT);
    let vars = inventory.vars_of("m1", None);
    assert_eq!(shown(&vars, "ansible_connection"), "\"local\"");
    assert_eq!(vars["member_kubeconfig"].to_string(), directory.path().join("members/m1.kubeconfig").to_string_lossy());
    assert_eq!(shown(&vars, "member_labels"), "{\"someKey\":\"someValue\"}");
    assert!(shown(&vars, "member_addons").contains("\"to\":[\"m1\",\"control_plane\"]"));
    let vars = inventory.vars_of("m2", None);
    for (name, value) in [
        ("ansible_connection", "unset"),
        ("ansible_host", "\"192.0.2.20\""),
        ("member_sync_mode", "\"Pull\""),
        ("member_agent", "{\"host\":\"m2-host\"}"),
        ("member_kubeconfig", "\"/etc/kubernetes/admin.conf\""),
        ("member_kubeconfig_on_host", "true"),
        ("member_workloads", "\"keep\""),
    ] {
        assert_eq!(shown(&vars, name), value, "{name}");
    }
    let vars = inventory.vars_of("m3", None);
    assert_eq!(shown(&vars, "member_kubeconfig_content"), "\"a secret: the environment variable M3_KUBECONFIG\"");
}

#[test]
fn a_secret_is_read_when_it_is_rendered_and_then_no_report_shows_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("karmada.yaml");
    fs::write(&file, DEPLOYMENT).unwrap();
    let keyring = Keyring::default();
    let inventory = Inventory::load(&[file.to_string_lossy().into_owned()], &keyring).unwrap();
    let vars = inventory.vars_of("cp-1", None);
    assert!(shown(&vars, "ansible_password").starts_with("\"a secret: the file "));
    // Written only now: nothing has read it before.
    fs::write(directory.path().join("password.txt"), "hunter2-long\n").unwrap();
    let scope = Scope::default().with_layer(vars.clone());
    let template = Template::template_value("{{ ansible_password }}", None);
    assert_eq!(Templar::new().render(&template, &scope).unwrap(), Value::from("hunter2-long"));
    assert_eq!(Templar::new().render(&vars["ansible_password"], &scope).unwrap(), Value::from("hunter2-long"));
    assert_eq!(keyring.hidden.hide("it is hunter2-long"), "it is ***");
    assert!(shown(&vars, "ansible_password").starts_with("\"a secret: the file "));
}

/// An encrypted key file cannot be passed by its path: windlass decrypts it as a secret.
#[test]
fn a_private_key_that_is_encrypted_is_decrypted_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("karmada.yaml");
    fs::write(&file, DEPLOYMENT.replace("    user: deploy\n", "    user: deploy\n    privateKey: {file: id}\n"))
        .unwrap();
    let password = crate::value::Secret::new("pass");
    let keyring = Keyring::new(vec![("default".into(), password.clone())]);
    let load = || Inventory::load(&[file.to_string_lossy().into_owned()], &keyring).unwrap().vars_of("cp-1", None);
    fs::write(directory.path().join("id"), "a key\nof lines\n").unwrap();
    let (key, plain) = (directory.path().join("id"), load());
    assert_eq!(plain["ansible_private_key_file"].to_string(), key.to_string_lossy());
    assert!(!plain.contains_key("ansible_private_key"));
    fs::write(&key, crate::value::vault::encrypt(b"a key\nof lines\n", &password, None)).unwrap();
    let vars = load();
    assert!(!vars.contains_key("ansible_private_key_file"));
    assert!(shown(&vars, "ansible_private_key").starts_with("\"a secret: the file "));
    let scope = Scope::default().with_layer(vars.clone());
    assert_eq!(Templar::new().render(&vars["ansible_private_key"], &scope).unwrap(), Value::from("a key\nof lines\n"));
}

#[test]
fn a_text_with_template_marks_stays_text_wherever_it_goes() {
    let (_directory, inventory) = load(DEPLOYMENT);
    let scope = Scope::default().with_layer(inventory.vars_of("cp-1", None));
    let all = Template::template_value("{{ karmada_scheduler_extra_args }}", None);
    let all = Templar::new().render(&all, &scope).unwrap();
    assert_eq!(all.get_attr("x").unwrap(), Value::from("{{ boom }}"));
}

#[test]
fn one_inventory_is_of_one_deployment() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("karmada.yaml");
    fs::write(&file, format!("{DEPLOYMENT}\n---{}", DEPLOYMENT.replace("production", "staging"))).unwrap();
    let complaints = Inventory::load(&[file.to_string_lossy().into_owned()], &Keyring::default()).unwrap_err();
    assert!(
        complaints[0].message.starts_with("an inventory can have one KarmadaDeployment: this is staging"),
        "{complaints:?}"
    );
}

#[test]
fn other_credentials_of_a_stored_document_are_other_input() {
    use crate::credentials::HandedSecrets;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("karmada.yaml");
    fs::write(&file, DEPLOYMENT).unwrap();
    let generation = |text: &str| {
        let loaded = Inventory::load(&[file.to_string_lossy().into_owned()], &Keyring::default()).unwrap();
        let mut handed = HandedSecrets::default();
        handed.set_generation(text.to_owned());
        let mut inventory = Inventory::default();
        super::put_stored(&mut inventory, &file, loaded.deployments[0].clone(), handed.into()).unwrap();
        inventory.handed_generation
    };
    assert_eq!(generation("g1"), "g1");
    assert_ne!(generation("g1"), generation("g2"));
}
