//! The table of components (`roles/karmada_component_table`): nothing else lists them, and one entry with its role is enough for a
//! component to be installed, upgraded, rolled back, checked and shown.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use regex::Regex;
use serde_yaml::Value;

#[path = "floors/source.rs"]
mod source;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn yaml(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_mapping().unwrap().keys().map(|key| key.as_str().unwrap().to_owned()).collect()
}

fn table() -> Vec<Value> {
    let file = yaml(&root().join("roles/karmada_component_table/vars/main.yml"));
    file["karmada_component_table"].as_sequence().unwrap().clone()
}

fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry[field].as_str().unwrap_or_else(|| panic!("{entry:?} has no {field}"))
}

/// Estimators: each member has an instance.
fn is_per_member(entry: &Value) -> bool {
    text(entry, "runs") == "for_each_member"
}

/// Names of components outside of the table and of the components' own roles, each with the reason why it is no list that a new
/// component would have to join: file, name, reason.
const NAMED: &[(&str, &str, &str)] = &[
    ("roles/member/vars/main.yml", "karmada_apiserver", "members join through API servers"),
    ("roles/member/vars/main.yml", "karmada-controller-manager", "the role that its account has in a member"),
    (
        "roles/karmada_settings/vars/main.yml",
        "karmada_apiserver",
        "other components run on the hosts of the API servers",
    ),
    ("roles/karmada_bootstrap/vars/main.yml", "webhook", "the webhook converts bindings"),
    ("roles/karmada_bootstrap/templates/webhooks.yaml.j2", "karmada-webhook", "the webhook checks objects"),
    ("roles/karmada_bootstrap/templates/webhooks.yaml.j2", "webhook", "the webhook checks objects"),
    ("roles/karmada_upgrade/tasks/stop_failover.yml", "descheduler", "it moves workloads"),
    ("roles/karmada_upgrade/tasks/stop_failover.yml", "karmada_controller_manager", "it moves workloads"),
    ("roles/karmada_upgrade/tasks/stop_failover.yml", "controller-manager", "it moves workloads"),
    ("roles/karmada_upgrade/tasks/restore_failover.yml", "descheduler", "it moves workloads"),
    ("roles/karmada_upgrade/tasks/restore_failover.yml", "karmada_controller_manager", "it moves workloads"),
    ("roles/karmada_upgrade/tasks/restore_failover.yml", "controller-manager", "it moves workloads"),
    ("roles/karmada_upgrade/vars/main.yml", "estimators", "each member has an instance, estimator-MEMBER"),
    ("playbooks/estimators.yml", "karmada_scheduler_estimator", "estimators come and go with members"),
    ("playbooks/add-member.yml", "karmada_scheduler_estimator", "estimators come and go with members"),
    ("src/modules/known_flags/mod.rs", "karmada-scheduler", "an example in the documentation of a module"),
    ("src/modules/bundled/info.rs", "karmada-scheduler", "an example in the documentation of a module"),
    ("src/modules/bundled/info.rs", "karmada-webhook", "an example in the documentation of a module"),
    ("src/resource/names.rs", "karmada_apiserver", "API servers know the members"),
    ("src/remote/facts/system.rs", "search", "a keyword of resolv.conf"),
];

/// Every text file of ours that could list components, with what is no comment and no test in it.
fn code() -> Vec<(String, String)> {
    let own: BTreeSet<String> = table().iter().map(|entry| format!("roles/{}/", text(entry, "role"))).collect();
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = ["roles", "playbooks", "src"].map(|folder| root().join(folder)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            let rust = name.ends_with(".rs");
            let ignored = name.ends_with(".md")
                || name.contains("tests")
                || name.ends_with("argument_specs.yml")
                || name.starts_with("roles/karmada_component_table/")
                || name.starts_with("roles/karmada_catalogue/files/")
                // Compared with the table below.
                || name.starts_with("src/bundle/recipes/")
                || own.iter().any(|role| name.starts_with(role));
            let Some(text) = (!ignored).then(|| fs::read_to_string(&path).ok()).flatten() else { continue };
            let text = if rust { source::without_tests(&text).to_owned() } else { text };
            let comment = if rust { "//" } else { "#" };
            let lines = text.lines().map(|line| line.split(comment).next().unwrap().to_owned());
            found.push((name, lines.collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(found.len() > 200, "only {} files were read", found.len());
    found
}

/// The names of components in a text, as far as they cannot be ordinary words: roles, programs, fields, and names in quotes or lists.
fn named(text: &str, table: &[Value], rust: bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in table {
        for field in ["role", "program", "field"] {
            let name = self::text(entry, field);
            if !text.contains(name) {
                continue;
            }
            let word = Regex::new(&format!(r"(^|[^\w-]){}($|[^\w-])", regex::escape(name))).unwrap();
            found.extend(word.is_match(text).then(|| name.to_owned()));
        }
        // Every part of a control plane talks to the API server, so its name is everywhere.
        let name = self::text(entry, "name");
        if name == "apiserver" || !text.contains(name) {
            continue;
        }
        // Rust has variables in lists.
        let quoted = format!(r#"(^|[^(])'{0}'|"{0}"|-{0}['"]"#, regex::escape(name));
        let listed = format!(r"[\[,] *{0} *[\],]|(^|[ \[])- {0}$", regex::escape(name));
        let found_by = Regex::new(&if rust { quoted } else { format!("{quoted}|{listed}") }).unwrap();
        let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("- name:"));
        found.extend(lines.any(|line| found_by.is_match(line)).then(|| name.to_owned()));
    }
    found
}

#[test]
fn no_other_file_lists_components() {
    let table = table();
    let mut unused: BTreeSet<(&str, &str)> = NAMED.iter().map(|(file, name, _)| (*file, *name)).collect();
    let mut wrong = Vec::new();
    for (file, text) in code() {
        for name in named(&text, &table, file.ends_with(".rs")) {
            let reason = NAMED.iter().find(|(of, it, _)| *of == file && *it == name);
            match reason {
                Some((file, name, _)) => drop(unused.remove(&(*file, *name))),
                None => wrong.push(format!("{file} names {name}")),
            }
        }
    }
    assert!(wrong.is_empty(), "derive this from roles/karmada_component_table, or add a reason to NAMED: {wrong:#?}");
    assert!(unused.is_empty(), "nobody names these any more: {unused:?}");
}

/// A bundle of a release has the program of every component.
#[test]
fn the_recipes_of_karmada_take_the_programs_of_all_components() {
    let programs: BTreeSet<String> = table().iter().map(|entry| text(entry, "program").to_owned()).collect();
    let mut recipes = 0;
    for entry in fs::read_dir(root().join("src/bundle/recipes")).unwrap() {
        let path = entry.unwrap().path();
        if !path.file_name().unwrap().to_string_lossy().starts_with("karmada-") {
            continue;
        }
        recipes += 1;
        let recipe: Value = serde_yaml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let mut taken = BTreeSet::new();
        for source in recipe["sources"].as_sequence().unwrap() {
            let url = source["url"].as_str().map(str::to_owned);
            let members = source["take"].as_sequence().into_iter().flatten().map(|it| it.as_str().unwrap().to_owned());
            taken.extend(url.into_iter().chain(members).map(|it| it.rsplit('/').next().unwrap().to_owned()));
        }
        let missing: Vec<&String> = programs.difference(&taken).collect();
        assert!(missing.is_empty(), "{} does not take {missing:?}", path.display());
    }
    assert!(recipes >= 2, "only {recipes} recipes were read");
}

/// The test above finds a list however it is written.
#[test]
fn a_list_of_components_is_found() {
    for (text, name) in [
        ("loop: [karmada_search, karmada_webhook]", "karmada_search"),
        ("  - role: karmada_descheduler", "karmada_descheduler"),
        ("x: \"{{ ['webhook', 'search'] }}\"", "search"),
        ("order: [scheduler, descheduler]", "descheduler"),
        ("order:\n  - webhook\n  - search", "search"),
        ("when: \"'metrics-adapter' in wanted\"", "metrics-adapter"),
        ("name: \"{{ karmada_instance }}-webhook\"", "webhook"),
        ("(\"kube_controller_manager\", true),", "kube_controller_manager"),
        ("has(self.karmadaWebhook)", "karmadaWebhook"),
        ("const OPTIONAL: [&str; 2] = [\"karmada_search\"];", "karmada_search"),
    ] {
        assert!(named(text, &table(), text.ends_with(';')).contains(name), "{text}");
    }
    assert!(named("x | select('search', 'a') and look for the webhook", &table(), false).is_empty());
}

#[test]
fn every_entry_has_a_role_that_fits_it() {
    let specs = yaml(&root().join("roles/karmada_component/meta/argument_specs.yml"));
    let options = keys(&specs["argument_specs"]["main"]["options"]["karmada_it"]["options"]);
    let common = keys(&yaml(&root().join("roles/karmada_settings/defaults/main.yml")));
    let mut steps = BTreeSet::new();
    let step_of = |product: &str, largest: bool| {
        let of_it = table().into_iter().filter(|entry| entry["product"] == product);
        let steps = of_it.map(|entry| entry["step"].as_i64().unwrap());
        if largest { steps.max() } else { steps.min() }
    };
    // An upgrade has the objects in the API in between.
    assert!(step_of("kubernetes", true) < step_of("karmada", false), "programs of Kubernetes come first");
    for entry in table() {
        let name = text(&entry, "name");
        assert!(steps.insert(entry["step"].as_i64().unwrap()), "{name} has the step of another component");
        let role = root().join("roles").join(text(&entry, "role"));
        let description = yaml(&role.join("vars/main.yml"))[format!("{}_description", text(&entry, "role"))].clone();
        assert_eq!(description["program"], entry["program"], "{name}");
        let version = format!("{{{{ karmada_versions.{} }}}}", text(&entry, "product"));
        assert_eq!(text(&description, "version"), version, "{name}");
        if !is_per_member(&entry) {
            assert_eq!(description["name"], entry["name"]);
            assert_eq!(text(&description, "hosts"), format!("{{{{ karmada_components['{name}'] }}}}"));
        }
        let unknown: Vec<_> = keys(&description).difference(&options).cloned().collect();
        assert!(unknown.is_empty(), "roles/karmada_component does not know {unknown:?} of {name}");
        let mut defaults = keys(&yaml(&role.join("defaults/main.yml")));
        defaults.extend(common.clone());
        let mut wanted = vec!["extra_args", "feature_gates", "resources"];
        wanted.extend(entry.get("optional").map(|_| "enabled"));
        for variable in wanted {
            let variable = format!("{}_{variable}", text(&entry, "role"));
            assert!(defaults.contains(&variable), "{} has no default of {variable}", role.display());
        }
        for tasks in ["main", "status"] {
            assert!(role.join(format!("tasks/{tasks}.yml")).is_file(), "{} has no tasks {tasks}", role.display());
        }
    }
}

/// Every field of a component that roles/karmada_component reads is in its argument specs.
#[test]
fn the_arguments_of_a_component_are_specified() {
    let role = root().join("roles/karmada_component");
    let specs = yaml(&role.join("meta/argument_specs.yml"));
    let options = keys(&specs["argument_specs"]["main"]["options"]["karmada_it"]["options"]);
    let field = Regex::new(r"karmada_it(?:\.(\w+)|\['(\w+)'\])").unwrap();
    let mut read = BTreeSet::new();
    for folder in ["tasks", "templates", "vars"] {
        for file in fs::read_dir(role.join(folder)).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let fields =
                field.captures_iter(&text).map(|found| found.get(1).or(found.get(2)).unwrap().as_str().to_owned());
            read.extend(fields);
        }
    }
    assert_eq!(read, options);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap().path();
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &target);
        } else {
            fs::copy(&entry, &target).unwrap();
        }
    }
}

/// Our playbooks and roles with one more component, where roles say what they would do instead of doing it.
struct Rehearsal {
    scratch: tempfile::TempDir,
}

impl Rehearsal {
    const ENTRY: &'static str = "
  - name: example
    role: karmada_example
    program: karmada-example
    product: karmada
    field: karmadaExample
    step: 85
    runs: with_the_api_server
    ports: {main: 8444, health: 8445}
    probe: /healthy
    certificates: [server, client, etcd]
";

    fn new() -> Rehearsal {
        let scratch = tempfile::tempdir().unwrap();
        for folder in ["roles", "playbooks"] {
            copy(&root().join(folder), &scratch.path().join(folder));
        }
        let it = Rehearsal { scratch };
        // The new component: its entry and its role.
        let table = it.path("roles/karmada_component_table/vars/main.yml");
        fs::write(&table, fs::read_to_string(&table).unwrap() + Self::ENTRY).unwrap();
        let role = it.path("roles/karmada_example");
        copy(&it.path("roles/karmada_webhook"), &role);
        for file in ["vars", "defaults", "meta", "tasks"].map(|folder| role.join(folder)) {
            for file in fs::read_dir(file).unwrap() {
                let file = file.unwrap().path();
                let text = fs::read_to_string(&file).unwrap().replace("karmada_webhook", "karmada_example");
                fs::write(&file, text.replace("karmada-webhook", "karmada-example").replace("webhook", "example"))
                    .unwrap();
            }
        }
        // What components would do.
        for entry in self::table() {
            let role = text(&entry, "role");
            let tasks = format!(
                "- include_role: {{name: karmada_component}}\n  vars: {{karmada_it: \"{{{{ {role}_description }}}}\"}}\n"
            );
            let tasks = if is_per_member(&entry) { "[]\n".to_owned() } else { tasks };
            it.write(&format!("roles/{role}/tasks/main.yml"), &tasks);
        }
        let say = |words: &str| format!("- debug: {{msg: \"SAID {words}\"}}\n");
        it.write(
            "roles/karmada_component/tasks/main.yml",
            &say("{{ karmada_it.name ~ (' drained' if karmada_it_serves else '') ~ (' early' if karmada_before_the_api | default(false) else '') }}"),
        );
        it.write("roles/karmada_component/meta/argument_specs.yml", "argument_specs: {}\n");
        it.write(
            "roles/karmada_component/tasks/status.yml",
            "- set_fact: {karmada_rows: \"{{ karmada_rows | default([]) + [{'component': karmada_it.name, 'host': inventory_hostname, 'ready': karmada_it.name not in (ill | default('')).split(','), 'why': 'ill'}] }}\"}\n",
        );
        it.write("roles/karmada_bootstrap/tasks/main.yml", &say("objects"));
        it.write(
            "roles/karmada_pki/tasks/main.yml",
            &say("certificates {{ (karmada_certificates + karmada_etcd_certificates) | map(attribute='name') | join(' ') }} and"),
        );
        let loops = yaml(&it.path("roles/karmada_settings/tasks/start_stopped.yml"))[0]["loop"].clone();
        it.write(
            "roles/karmada_settings/tasks/start_stopped.yml",
            &format!("- include_tasks: versions.yml\n- debug: {{msg: \"SAID started {{{{ started | join(' ') }}}} and\"}}\n  vars: {{started: {}}}\n", serde_json::to_string(&loops).unwrap()),
        );
        it.write(
            "roles/karmada_settings/tasks/versions.yml",
            "- set_fact: {karmada_installed_versions: \"{% set all = {} %}{% for name in karmada_here %}{% set _ = all.update({name: '1.18.0'}) %}{% endfor %}{{ all }}\"}\n",
        );
        it.write("roles/karmada_settings/tasks/query.yml", "- include_tasks: versions.yml\n");
        it.write("roles/karmada_upgrade/tasks/check_rollback.yml", "- include_tasks: check.yml\n");
        for nothing in [
            "karmada_settings/tasks/authorities",
            "karmada_settings/tasks/members",
            "karmada_settings/tasks/retire",
            "karmada_upgrade/tasks/record",
            "karmada_upgrade/tasks/stop_failover",
            "karmada_upgrade/tasks/restore_failover",
            "preflight/tasks/main",
        ] {
            it.write(&format!("roles/{nothing}.yml"), "[]\n");
        }
        let variables = format!(
            "ansible_connection=local ansible_become=false karmada_endpoint=192.0.2.9 karmada_config_dir={0}/etc karmada_program_dir={0}/opt \
             credentials_dir={0}/credentials{1}",
            it.scratch.path().display(),
            self::table()
                .iter()
                .filter(|entry| entry.get("optional").is_some() && !is_per_member(entry))
                .map(|entry| format!(" {}_enabled=true", text(entry, "role")))
                .collect::<String>(),
        );
        it.write(
            "hosts.ini",
            &format!("[karmada_control_plane]\nh1\nh2\n[all:vars]\n{}\n", variables.replace(' ', "\n")),
        );
        it
    }

    fn path(&self, path: &str) -> PathBuf {
        self.scratch.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
    }

    fn run(&self, playbook: &str, options: &[&str]) -> String {
        let mut windlass = Command::cargo_bin("windlass").unwrap();
        windlass.current_dir(self.scratch.path()).args(["playbook", "-i", "hosts.ini"]).args(options);
        windlass.args(["-e", r#"{"karmada_versions": {"karmada": "1.19.0", "kubernetes": "1.18.1"}}"#]);
        let output = windlass.arg(format!("playbooks/{playbook}.yml")).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// What roles said on h1, in order.
    fn said(output: &str) -> Vec<String> {
        let mut host = "";
        let mut said = Vec::new();
        for line in output.lines() {
            if let Some((_, rest)) = line.split_once(": [") {
                host = rest.split([']', ' ']).next().unwrap();
            }
            if let Some((_, words)) = line.split_once("\"SAID ").filter(|_| host == "h1") {
                said.push(words.trim_end_matches('"').to_owned());
            }
        }
        assert!(output.contains("failed=0") && !output.contains("failed=1"), "{output}");
        said
    }
}

/// What the roles say when an entry's component is installed: the servers of the API are drained before.
fn step(entry: &Value) -> String {
    let name = text(entry, "name");
    let drained = name == "apiserver" || text(entry, "runs") == "with_the_api_server";
    if drained { format!("{name} drained") } else { name.to_owned() }
}

/// The certificates of an entry, those of etcd's CA last.
fn certificates(entry: &Value, of_etcd: bool) -> Vec<String> {
    let kinds = entry["certificates"].as_sequence().into_iter().flatten().map(|kind| kind.as_str().unwrap());
    let name = text(entry, "name");
    let file = |kind| match kind {
        "api_server" => name.to_owned(),
        "server" => text(entry, "program").to_owned(),
        "client" => format!("{name}-client"),
        "estimators_client" => format!("{name}-estimators-client"),
        "etcd" => format!("{name}-etcd-client"),
        kind => panic!("{kind} is no certificate"),
    };
    kinds.filter(|kind| (*kind == "etcd") == of_etcd).map(file).collect()
}

#[test]
fn a_component_of_the_table_is_in_every_order() {
    let rehearsal = Rehearsal::new();
    let mut entries = table();
    entries.extend(serde_yaml::from_str::<Vec<Value>>(Rehearsal::ENTRY).unwrap());
    let files = [false, true].map(|of_etcd| entries.iter().flat_map(move |entry| certificates(entry, of_etcd)));
    let files: Vec<String> = files.into_iter().flatten().collect();
    for file in ["apiserver", "scheduler-estimators-client", "karmada-example", "example-client", "example-etcd-client"]
    {
        assert!(files.iter().any(|it| it == file), "{files:?} lacks {file}");
    }
    let certificates = format!("certificates {} and", files.join(" "));
    entries.retain(|entry| !is_per_member(entry));
    entries.sort_by_key(|entry| entry["step"].as_i64().unwrap());
    let steps = |wanted: &dyn Fn(&Value) -> bool| -> Vec<String> {
        entries.iter().filter(|entry| wanted(entry)).map(step).collect()
    };
    let called = entries.iter().filter(|entry| text(entry, "runs") == "with_the_api_server");
    let called: Vec<&str> = called.map(|entry| text(entry, "name")).collect();
    assert!(called.contains(&"example"));
    let started = format!("started {} apiserver and", called.join(" "));
    let objects = || vec!["objects".to_owned()];

    let before = |entry: &Value| entry.get("before_objects").is_some();
    let start =
        [vec![certificates.clone(), started.clone()], steps(&before), objects(), steps(&|entry| !before(entry))];
    assert_eq!(Rehearsal::said(&rehearsal.run("karmada", &[])), start.concat());

    let kubernetes = |entry: &Value| text(entry, "product") == "kubernetes";
    let order = [steps(&kubernetes), objects(), steps(&|entry| !kubernetes(entry))].concat();
    assert_eq!(order[0], "apiserver drained");
    assert!(order.contains(&"example drained".to_owned()));
    let forward = [vec![started.clone(), certificates.clone()], order.clone()].concat();
    assert_eq!(Rehearsal::said(&rehearsal.run("upgrade", &[])), forward);
    let without_objects: Vec<String> = forward.into_iter().filter(|step| step != "objects").collect();
    assert_eq!(Rehearsal::said(&rehearsal.run("certificates", &[])), without_objects);
    let back = order.into_iter().rev().filter(|step| step != "objects");
    let back: Vec<String> = [certificates, started].into_iter().chain(back).collect();
    assert_eq!(Rehearsal::said(&rehearsal.run("rollback", &[])), back);
    let refused = rehearsal.run("upgrade", &["-e", "component=example"]);
    assert!(refused.contains("before example, upgrade aggregated-apiserver (1.18.0 on h1), "), "{refused}");
    assert!(!refused.contains("metrics-adapter (1.18.0"), "{refused}");
}

#[test]
fn status_and_the_check_before_an_upgrade_cover_every_component() {
    let rehearsal = Rehearsal::new();
    let table = table();
    let names = table.iter().filter(|entry| !is_per_member(entry)).map(|entry| text(entry, "name")).chain(["example"]);
    let names: BTreeSet<&str> = names.collect();
    let ill = names.iter().copied().collect::<Vec<_>>().join(",");
    let said = rehearsal.run("upgrade", &["-e", &format!("ill={ill}")]);
    let (_, refused) = said.split_once("refusing to upgrade because these components are unhealthy: ").unwrap();
    let refused: BTreeSet<&str> = refused.split_once('.').unwrap().0.split("; ").collect();
    assert_eq!(refused, names);
    let said = rehearsal.run("status", &["-e", "ill=example"]);
    assert!(said.contains("not ready: example: ill"), "{said}");
}
