//! Our own roles and playbooks: they load, every variable is documented, and their names are those that windlass uses. What they do to hosts: `tests/e2e/`.

#[path = "shared/program.rs"]
mod program;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use assert_cmd::Command;
use regex::Regex;
use serde_yaml::Value;
use windlass::inventory::Inventory;
use windlass::resource::TABLE;
use windlass::resource::names::{group, variable};
use windlass::value::vault::Keyring;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn below(directory: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(directory)).expect("the directory is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    paths
}

fn yaml(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn keys(value: &Value) -> BTreeSet<String> {
    let mapping = value.as_mapping().expect("it is a mapping");
    mapping.keys().map(|key| key.as_str().expect("its keys are strings").to_owned()).collect()
}

#[test]
fn every_playbook_loads() {
    for playbook in below("playbooks").iter().filter(|path| path.extension().is_some_and(|end| end == "yml")) {
        for what in ["--syntax-check", "--list-tasks"] {
            let mut windlass = Command::cargo_bin("windlass").expect("it is built");
            windlass.args(["playbook", "-i", "h1,", what]).arg(playbook).assert().success();
        }
    }
}

/// A setting could have hosts run the roles each for itself, and a rolling change restart all members at once.
#[test]
fn every_play_on_hosts_keeps_them_in_step() {
    for playbook in below("playbooks").iter().filter(|path| path.extension().is_some_and(|end| end == "yml")) {
        for play in yaml(playbook).as_sequence().expect("it is a list of plays") {
            let on_hosts = play["hosts"].as_str().is_some_and(|hosts| hosts != "localhost");
            assert!(!on_hosts || play["strategy"] == "linear", "{}: {:?}", playbook.display(), play["name"]);
        }
    }
}

#[test]
fn every_default_of_a_role_is_in_its_argument_specs_and_the_other_way_round() {
    for role in below("roles") {
        let defaults = keys(&yaml(&role.join("defaults/main.yml")));
        let specs = yaml(&role.join("meta/argument_specs.yml"));
        // A role without tasks has no arguments. An argument that every caller must give has no default.
        let options = specs["argument_specs"].get("main").map(|main| main["options"].as_mapping().expect("options"));
        let options = options.into_iter().flatten().filter(|(_, spec)| spec.get("required").is_none());
        let options: BTreeSet<String> = options.map(|(name, _)| name.as_str().expect("a name").to_owned()).collect();
        assert_eq!(defaults, options, "{}", role.display());
    }
}

#[test]
fn every_role_has_a_readme() {
    for role in below("roles") {
        assert!(role.join("README.md").is_file(), "{}", role.display());
    }
}

/// The settings that the role makes for a minor version are among the flags of that version.
#[test]
fn no_setting_of_the_etcd_role_is_unknown_to_the_version() {
    let common = keys(&yaml(&root().join("roles/etcd/vars/main/settings.yml"))["etcd_settings_of_all"]);
    let versions = yaml(&root().join("roles/etcd/vars/versions.yml"));
    let versions = versions["etcd_by_minor"].as_mapping().expect("minor versions").clone();
    assert_eq!(versions.len(), 4);
    for (minor, of_minor) in &versions {
        let flags = of_minor["flags"].as_sequence().expect("a list of flags");
        let flags: BTreeSet<String> = flags.iter().map(|flag| flag.as_str().expect("a flag").to_owned()).collect();
        let ours = &common | &keys(&of_minor["settings"]);
        let unknown: Vec<_> = ours.difference(&flags).collect();
        assert!(unknown.is_empty(), "etcd {minor:?} has no {unknown:?}");
    }
}

/// What the etcd role makes of what its gate found, before it restarts h1: `members` are `id healthy learner applied`.
fn before_a_restart(members: &[&str]) -> String {
    let scratch = tempfile::tempdir().expect("a directory");
    let playbook = scratch.path().join("playbook.yml");
    let voters = members.iter().filter(|member| member.split(' ').nth(2) == Some("false")).count();
    let list = members.iter().map(|member| {
        let [id, healthy, learner, applied] = member.split(' ').collect::<Vec<_>>()[..] else { panic!("{member}") };
        format!("{{id: {id}, name: {id}, healthy: {healthy}, is_learner: {learner}, raft_applied_index: {applied}}}")
    });
    let text = format!(
        "- hosts: h1\n  gather_facts: false\n  vars:\n    etcd_local_url: 'https://192.0.2.1:2379'\n    etcd_health:\n      endpoints: [{{endpoint: 'https://192.0.2.1:2379', member_id: m1}}]\n      \
         majority: {}\n      voters: {voters}\n      members: [{}]\n  tasks:\n    \
         - import_role: {{name: etcd, tasks_from: refuse_inventory}}\n    \
         - debug: {{msg: \"{{{{ 'to ' ~ etcd_successor if etcd_majority_stays else 'no majority without ' ~ etcd_others_down | join }}}}\"}}\n",
        voters / 2 + 1,
        list.collect::<Vec<_>>().join(", "),
    );
    fs::write(&playbook, text).expect("it is written");
    let inventory = scratch.path().join("hosts.ini");
    let text = "[etcd]\nh1 ansible_connection=local etcd_address=192.0.2.1\nh2\nh3\n";
    fs::write(&inventory, text).expect("it is written");
    let mut windlass = Command::cargo_bin("windlass").expect("it is built");
    windlass.env("ANSIBLE_ROLES_PATH", root().join("roles")).arg("playbook").arg("-i").arg(&inventory);
    let output = windlass.arg(&playbook).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn etcd_is_restarted_only_if_a_majority_stays_and_leadership_goes_to_a_healthy_voter() {
    let expect = |members: &[&str], expected: &str| {
        let said = before_a_restart(members);
        assert!(said.contains(&format!("\"{expected}\"")), "{expected}: {said}");
    };
    expect(&["m1 true false 9", "m2 true false 7", "m3 true false 8"], "to m3");
    // Neither to a learner nor to a dead member, which has applied nothing that is known.
    expect(&["m1 true false 9", "m2 false false null", "m3 true false 8", "m4 true true 9"], "no majority without m2");
    expect(
        &[
            "m1 true false 9",
            "m2 false false null",
            "m3 true false 5",
            "m4 true true 9",
            "m5 true false 6",
            "m6 true false 4",
        ],
        "to m5",
    );
    expect(&["m1 true false 9", "m2 false false null", "m3 true false 8"], "no majority without m2");
}

/// What karmada_settings says on each host of a layout: its name, and the etcd endpoints of its API server. `listens` is what
/// etcd_flags sets.
fn endpoints(control_plane: &str, etcd: &str, listens: &str) -> Vec<String> {
    let scratch = tempfile::tempdir().expect("a directory");
    let resource = scratch.path().join("karmada.yaml");
    let text = format!(
        "apiVersion: windlass.dev/v1alpha1\nkind: KarmadaDeployment\nmetadata: {{name: production}}\nspec:\n  bundle: /nowhere\n  \
         hosts:\n    - {{name: cp-1, address: 192.0.2.1, privateAddress: 10.0.0.1}}\n    \
         - {{name: cp-2, address: 192.0.2.2, privateAddress: 10.0.0.2}}\n    \
         - {{name: cp-3, address: 192.0.2.3, privateAddress: 10.0.0.3}}\n  \
         controlPlane: {{{control_plane}}}\n  etcd: {{{etcd}}}\n"
    );
    fs::write(&resource, text).expect("it is written");
    let playbook = scratch.path().join("playbook.yml");
    let text = "- hosts: karmada_control_plane\n  gather_facts: false\n  tasks:\n    \
        - import_role: {name: karmada_settings, tasks_from: etcd_addresses}\n    \
        - debug: {msg: \"{{ inventory_hostname }} uses {{ karmada_etcd_endpoints_here | join(' ') }}\"}\n";
    fs::write(&playbook, text).expect("it is written");
    let mut windlass = Command::cargo_bin("windlass").expect("it is built");
    windlass.env("ANSIBLE_ROLES_PATH", root().join("roles")).args(["playbook", "-e", "ansible_connection=local"]);
    if !listens.is_empty() {
        windlass.args(["-e", &format!("{{\"etcd_flags\": {{\"listen-client-urls\": \"{listens}\"}}}}")]);
    }
    let output = windlass.arg("-i").arg(&resource).arg(&playbook).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let reported = said.lines().filter_map(|line| line.trim().strip_prefix("\"msg\": \"")?.strip_suffix('"'));
    let mut reported: Vec<String> = reported.map(|line| line.replace("https://", "").replace(":2379", "")).collect();
    reported.sort();
    reported
}

/// Wherever etcd is, each API server knows it, at the addresses that the members have certificates for.
#[test]
fn an_api_server_finds_etcd_in_every_layout() {
    let (three, balanced) = ("hosts: [cp-1, cp-2, cp-3]", "loadBalancer: {virtualAddress: 192.0.2.100}");
    let managed = |hosts: &str| format!("managed: {{hosts: [{hosts}]}}");
    let all = "10.0.0.1 10.0.0.2 10.0.0.3";
    // Stacked: behind a load balancer, an API server uses the member of its host alone.
    let etcd = managed("cp-1, cp-2, cp-3");
    let each = ["cp-1", "cp-2", "cp-3"].map(|host| format!("{host} uses {all}"));
    assert_eq!(endpoints(three, &etcd, ""), each);
    let own = ["cp-1 uses 10.0.0.1", "cp-2 uses 10.0.0.2", "cp-3 uses 10.0.0.3"];
    assert_eq!(endpoints(&format!("{three}, {balanced}"), &etcd, ""), own);
    // Partly shared, with members that have no control plane, and with a control plane that has no member.
    let two = "hosts: [cp-1, cp-2]";
    assert_eq!(endpoints(two, &etcd, ""), each[..2]);
    assert_eq!(endpoints(&format!("{two}, {balanced}"), &etcd, ""), own[..2]);
    let mixed = ["cp-1 uses 10.0.0.1", "cp-2 uses 10.0.0.1"];
    assert_eq!(endpoints(&format!("{two}, {balanced}"), &managed("cp-1"), ""), mixed);
    // Dedicated.
    assert_eq!(endpoints(two, &managed("cp-3"), ""), ["cp-1 uses 10.0.0.3", "cp-2 uses 10.0.0.3"]);
    // One host.
    assert_eq!(endpoints("hosts: [cp-1]", &managed("cp-1"), ""), ["cp-1 uses 10.0.0.1"]);
    // External.
    let external = "external: {endpoints: ['https://192.0.2.7:2379'], caCert: {file: a}, clientCert: {file: b}, clientKey: {file: c}}";
    assert_eq!(endpoints(two, external, ""), ["cp-1 uses 192.0.2.7", "cp-2 uses 192.0.2.7"]);
    // Members that serve clients on a network of their own, on any address, or on the usual one among others.
    let listens = "https://127.0.0.1:2379,https://{{ etcd_address | replace('10.0.', '10.9.') }}:2379";
    let there = "10.9.0.1 10.9.0.2 10.9.0.3";
    assert_eq!(endpoints("hosts: [cp-1]", &etcd, listens), [format!("cp-1 uses {there}")]);
    assert_eq!(
        endpoints("hosts: [cp-1]", &etcd, "https://0.0.0.0:2479"),
        [format!("cp-1 uses {}", all.replace(' ', ":2479 ") + ":2479")]
    );
    let listens = "https://10.9.0.1:2379, https://{{ etcd_address }}:2379";
    assert_eq!(endpoints("hosts: [cp-1]", &etcd, listens), [format!("cp-1 uses {all}")]);
}

/// What the release list promises is there, and every file has the form that `known_flags` reads.
#[test]
fn every_release_of_the_catalogue_has_its_flags() {
    let role = root().join("roles/karmada_catalogue");
    let releases = yaml(&role.join("vars/main.yml"))["karmada_releases"].as_mapping().expect("releases").clone();
    let mut promised = BTreeSet::new();
    for (release, with) in &releases {
        promised.insert(format!("karmada-{}.yml", release.as_str().expect("a release is a string")));
        for kubernetes in with["kubernetes"].as_sequence().expect("a list of releases") {
            promised.insert(format!("kubernetes-{}.yml", kubernetes.as_str().expect("a release is a string")));
        }
    }
    let there: BTreeSet<String> = below("roles/karmada_catalogue/files/catalogue")
        .iter()
        .map(|path| path.file_name().expect("a file").to_string_lossy().into_owned())
        .collect();
    assert_eq!(promised, there);
    for file in there {
        let catalogue = yaml(&role.join("files/catalogue").join(&file));
        let version = catalogue["version"].as_str().expect("a version").trim_start_matches('v');
        let minor = file.trim_end_matches(".yml").rsplit('-').next().expect("a minor version");
        assert!(version.starts_with(&format!("{minor}.")), "{file} is of {version}");
        for (program, of_program) in catalogue["programs"].as_mapping().expect("programs") {
            assert!(keys(&of_program["flags"]).contains("v"), "{file}: {program:?} has no flag v");
        }
    }
}

/// What a component's role gives its program is what every release's program takes.
#[test]
fn no_flag_of_a_component_s_role_is_unknown_to_a_release() {
    let catalogues = below("roles/karmada_catalogue/files/catalogue");
    let mut seen = 0;
    for role in below("roles") {
        let file = role.join("vars/main.yml");
        let Some(vars) = file.is_file().then(|| yaml(&file)) else { continue };
        let described = vars.as_mapping().expect("variables").values();
        for component in described.filter(|value| value.get("program").is_some_and(Value::is_string)) {
            let program = component["program"].as_str().expect("a name");
            let ours = keys(&component["flags"]);
            for catalogue in catalogues.iter().map(|path| yaml(path)) {
                let Some(of_program) = catalogue["programs"].get(program) else { continue };
                let unknown: Vec<_> = ours.difference(&keys(&of_program["flags"])).cloned().collect();
                assert!(unknown.is_empty(), "{program} of {:?} has no {unknown:?}", catalogue["version"]);
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "only {seen} programs were compared");
}

/// What the role that knows the releases says, with these variables.
fn catalogue_says(variables: &str) -> String {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let playbook = scratch.path().join("catalogue.yml");
    let role = root().join("roles/karmada_catalogue");
    let text = format!("- hosts: all\n  gather_facts: false\n  roles: [{{role: {}, {variables}}}]\n", role.display());
    fs::write(&playbook, text).expect("it can be written");
    let mut windlass = Command::cargo_bin("windlass").expect("it is built");
    // The host cannot be reached: nobody needs to ask it anything.
    let output = windlass.args(["playbook", "-i", "nowhere.invalid,"]).arg(&playbook).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn a_flag_that_the_release_does_not_have_is_refused_without_asking_a_host() {
    let said = catalogue_says("karmada_catalogue_flags: {karmada-scheduler: {kube-api-brust: 1}}");
    assert!(said.contains("karmada-scheduler of karmada v1.19.0-rc.0 has no flag --kube-api-brust"), "{said}");
    assert!(said.contains("did you mean \"kube-api-burst\"?"), "{said}");
    assert!(catalogue_says("karmada_catalogue_flags: {karmada-scheduler: {kube-api-burst: 1}}").contains("failed=0"));
}

#[test]
fn a_feature_gate_that_the_release_does_not_have_is_refused_without_asking_a_host() {
    let gates =
        |name: &str, gate: &str| format!("karmada_catalogue_flags: {{{name}: {{feature-gates: {{{gate}: true}}}}}}");
    let said = catalogue_says(&gates("karmada-controller-manager", "Failovr"));
    assert!(said.contains("karmada-controller-manager of karmada v1.19.0-rc.0 has no feature gate Failovr"), "{said}");
    assert!(said.contains("did you mean \"Failover\"?"), "{said}");
    let said = catalogue_says(&gates("kube-apiserver", "OpenAPIEnum"));
    assert!(said.contains("kube-apiserver of kubernetes v1.36.2 has no feature gate OpenAPIEnum"), "{said}");
    assert!(catalogue_says(&gates("karmada-controller-manager", "Failover")).contains("failed=0"));
}

#[test]
fn releases_that_nobody_tried_together_are_refused_without_asking_a_host() {
    let said = catalogue_says("karmada_catalogue_karmada: v1.17.3");
    assert!(said.contains("this role does not support Karmada v1.17.3; it supports 1.18, 1.19"), "{said}");
    let said = catalogue_says("karmada_catalogue_kubernetes: 1.30.1");
    assert!(said.contains("this role does not support Karmada 1.19 with Kubernetes 1.30.1, only with 1.36"), "{said}");
    let said = catalogue_says("karmada_catalogue_etcd: 3.4.23");
    assert!(said.contains("this role does not support Karmada 1.19 with etcd 3.4.23, only with 3.5, 3.6"), "{said}");
    assert!(catalogue_says("karmada_catalogue_etcd: 3.5.30").contains("failed=0"));
}

#[test]
fn an_endpoint_without_a_port_leads_to_the_load_balancer_where_there_is_one() {
    let scratch = tempfile::tempdir().expect("a directory");
    let playbook = scratch.path().join("playbook.yml");
    let text = "- {hosts: karmada_control_plane, gather_facts: false, tasks: [{import_role: {name: karmada_settings}}, {debug: {msg: 'at {{ karmada_server }}; named {{ karmada_names | join(\" \") }}.'}}]}\n";
    fs::write(&playbook, text).expect("it is written");
    let inventory = scratch.path().join("hosts.ini");
    let reported = |vars: &str, balancer: &str| {
        let text = format!(
            "[karmada_control_plane]\nh1 ansible_connection=local karmada_address=192.0.2.1\n[load_balancer]\n{balancer}\n[all:vars]\n{vars}\n"
        );
        fs::write(&inventory, text).expect("it is written");
        let mut windlass = Command::cargo_bin("windlass").expect("it is built");
        windlass.env("ANSIBLE_ROLES_PATH", root().join("roles")).arg("playbook").arg("-i").arg(&inventory);
        let output = windlass.arg(&playbook).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let led_to = |vars: &str, balancer: &str| {
        let reported = reported(vars, balancer);
        let at = reported.split_once("at https://").unwrap_or_else(|| panic!("{reported}")).1;
        at.split(';').next().unwrap_or_default().to_owned()
    };
    // A certificate names the address itself, without the brackets that it has before a port.
    let names = reported("karmada_endpoint=[2001:db8::1]:443", "");
    assert!(names.contains("IP:2001:db8::1 ") || names.contains("IP:2001:db8::1."), "{names}");
    assert_eq!(led_to("", ""), "192.0.2.1:5443");
    assert_eq!(led_to("", "h1"), "192.0.2.1:5443");
    assert_eq!(led_to("karmada_virtual_address=192.0.2.9", "h1"), "192.0.2.9:6443");
    assert_eq!(led_to("karmada_endpoint=k.example.com", ""), "k.example.com:5443");
    assert_eq!(led_to("karmada_endpoint=k.example.com", "h1"), "k.example.com:6443");
    assert_eq!(led_to("karmada_endpoint=k.example.com:443", "h1"), "k.example.com:443");
}

/// Filters after which a text is one word, one value or one document, whatever is in it.
const QUOTING: &[&str] = &[
    "b64encode",
    "environment_quote",
    "int",
    "plain_word",
    "quote",
    "systemd_limits",
    "systemd_quote",
    "systemd_value",
    "to_json",
    "to_nice_json",
    "to_nice_yaml",
];

/// The `{{ }}` of a text whose last filter is not one of those.
fn unquoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // As its first line says.
    let is_other = text.starts_with("#jinja2: variable_start_string: '[[', variable_end_string: ']]'\n");
    let (start, end) = if is_other { ("[[", "]]") } else { ("{{", "}}") };
    for part in text.split(start).skip(if is_other { 2 } else { 1 }) {
        let expression = part.split(end).next().expect("there is a first part").trim().trim_matches('-').trim();
        let words = expression.rsplit('|').next().expect("there is a last part").trim();
        let filter = words.split('(').next().expect("there is a first part").trim();
        // `x | map('plain_word') | join(' ')` is plain words, too.
        let each = ["plain_word", "quote"].iter().any(|each| expression.contains(&format!("| map('{each}') |")));
        let each = each && filter == "join";
        if !each && (!expression.contains('|') || !QUOTING.contains(&filter)) {
            found.push(expression.to_owned());
        }
    }
    found
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.expect("it can be read").path();
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

/// A line break in a variable would otherwise be a directive of a unit, which systemd obeys as root.
#[test]
fn whatever_a_template_puts_into_a_file_of_a_service_is_quoted() {
    let mut seen = 0;
    for role in below("roles") {
        let mut templates = Vec::new();
        files_below(&role.join("templates"), &mut templates);
        for template in templates {
            let text = fs::read_to_string(&template).expect("a template is text");
            let bare = unquoted(&text);
            assert!(bare.is_empty(), "{} puts unquoted text into a file: {bare:?}", template.display());
            seen += text.matches("{{").count();
        }
    }
    assert!(seen > 100, "{seen}");
}

/// The text that a shell runs, and the text that is split into the words of a command.
#[test]
fn whatever_a_task_puts_into_a_shell_is_quoted() {
    let mut files = Vec::new();
    for directory in ["tasks", "handlers"] {
        below("roles").iter().for_each(|role| files_below(&role.join(directory), &mut files));
    }
    files_below(&root().join("playbooks"), &mut files);
    let mut of_variables = Vec::new();
    below("roles").iter().for_each(|role| files_below(&role.join("vars"), &mut of_variables));
    let variables: Vec<Value> = of_variables.iter().map(|file| yaml(file)).collect();
    let mut seen = 0;
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "yml")) {
        let mut texts = Vec::new();
        commands(&yaml(file), &mut texts);
        for text in texts {
            // A whole script may stand in a variable of a role.
            let name = text.strip_prefix("{{ ").and_then(|rest| rest.strip_suffix(" }}"));
            let script = name.and_then(|name| variables.iter().find_map(|vars| vars.get(name)?.as_str()));
            let bare = unquoted(script.unwrap_or(&text));
            assert!(bare.is_empty(), "{} puts unquoted text into a command: {bare:?}", file.display());
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

fn commands(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Mapping(pairs) => {
            for (key, value) in pairs {
                let key = key.as_str().unwrap_or_default();
                let runs = ["shell", "command", "raw", "script", "validate"]
                    .contains(&key.rsplit('.').next().unwrap_or_default());
                let text = if runs { value.get("cmd").unwrap_or(value) } else { value };
                // `shell` is an argument of `user`, too, which is no text with blanks.
                match text.as_str().filter(|_| runs) {
                    Some(text) => found.push(text.to_owned()),
                    None => commands(value, found),
                }
            }
        }
        Value::Sequence(items) => items.iter().for_each(|item| commands(item, found)),
        _ => {}
    }
}

/// In a folded scalar, `'\\\\1'` is a backslash and a 1, and not the first group of `regex_replace`: there it is `'\\1'`.
#[test]
fn no_expression_has_a_backslash_too_many_before_a_group() {
    let mut files = Vec::new();
    ["roles", "playbooks"].iter().for_each(|directory| files_below(&root().join(directory), &mut files));
    files.retain(|file| file.extension().is_some_and(|end| end == "yml"));
    assert!(files.len() > 100, "{}", files.len());
    for file in files {
        let mut texts = Vec::new();
        scalars(&yaml(&file), &mut texts);
        let is_wrong = |text: &&String| {
            let mut groups = text.match_indices("\\\\").map(|(at, _)| text[at + 2..].chars().next());
            groups.any(|next| next.is_some_and(|next| next.is_ascii_digit()))
        };
        if let Some(text) = texts.iter().find(is_wrong) {
            panic!("{}: {text}", file.display());
        }
    }
}

fn scalars(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Sequence(items) => items.iter().for_each(|item| scalars(item, found)),
        Value::Mapping(pairs) => pairs.iter().for_each(|(_, value)| scalars(value, found)),
        _ => {}
    }
}

/// What the templates make of ordinary values, and that they refuse what would be a line of its own.
#[test]
fn no_variable_adds_a_line_to_a_file_of_a_service() {
    let scratch = tempfile::tempdir().expect("a directory");
    let mut windlass = Command::cargo_bin("windlass").expect("it is built");
    windlass.args(["playbook", "-i", "localhost,", "-e", &format!("scratch={}", scratch.path().display())]);
    windlass.args(["-e", &format!("roles={}", root().join("roles").display())]);
    windlass.arg(root().join("tests/roles/hostile_text.yml")).assert().success();
    let has = |file: &str, lines: &[&str]| {
        let text = fs::read_to_string(scratch.path().join(file)).expect("it was rendered");
        for line in lines {
            assert!(text.lines().any(|it| it.trim() == *line), "{file} lacks {line}:\n{text}");
        }
    };
    has("etcd.service", &["ReadWritePaths=/var/lib/etcd/data", "ExecStart=/opt/windlass/etcd/etcd/current/etcd"]);
    has("etcd.env", &["ETCD_PRE_VOTE=\"true\"", "ETCD_SNAPSHOT_COUNT=\"5\"", r#"ETCD_LOG_LEVEL="a\"b\\c $d""#]);
    has("formation.env", &[r#"ETCD_INITIAL_CLUSTER="h1=https://10.0.0.1:2380""#]);
    let flags =
        [r#""--feature-gates=A=true,B=false" \"#, r#""--leader-elect=true" \"#, r#""--title=%%h $$HOME \"x\"" \"#];
    has("unit.service", &flags);
    has(
        "unit.service",
        &["CPUQuota=200%", "MemoryMax=2G", "Description=Schedules 100%% (Karmada control plane karmada)"],
    );
}

/// What playbooks decide on is an exit code or a field of the result; the wording of a message may change.
#[test]
fn no_task_depends_on_the_wording_of_a_message() {
    let wording = regex::Regex::new(
        r"in \w+\.(msg|stderr)\b|\.(msg|stderr)\b[^'}]*(default\(''\) )?is (not )?(search|match)|attribute='(error|msg)'\).*'(search|match)'",
    )
    .expect("it is a pattern");
    let depends = |line: &&str| wording.is_match(line);
    assert!(depends(&"failed_when: x is failed and 'no file' not in x.msg | default('')"));
    assert!(depends(&"when: x.stderr is search('denied')"));
    assert!(depends(&"when: x.msg | default('') is not search('key')"));
    assert!(depends(&"{{ x | map(attribute='error') | select('search', 'alert') }}"));
    let mut files = Vec::new();
    for directory in ["roles", "playbooks"] {
        files_below(&root().join(directory), &mut files);
    }
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "yml")) {
        let text = fs::read_to_string(path).expect("it can be read");
        let found: Vec<&str> = text.lines().filter(depends).collect();
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
    }
}

/// The outputs of commands on which tasks may decide, because they are data and not messages: each with the reason.
const OUTPUTS_THAT_ARE_DATA: [(&str, &str); 15] = [
    ("etcd_activity", "`systemctl is-active` prints one of the states that systemd documents"),
    ("etcd_restore_mounts", "our script prints figures, and `mount` and `below PATH` for mount points"),
    ("etcd_restore_old", "our script prints the directories with data, `complete`, and the recorded members"),
    ("etcd_runs", "`etcd --version` prints the version, which the role installs"),
    ("etcd_up_to_date", "`sha256sum --check` prints `FILE: OK` for each file, in the locale C"),
    ("etcd_user_entry", "`getent passwd` prints the comment that windlass gave the user"),
    ("karmada_active", "`systemctl is-active` prints one of the states that systemd documents"),
    ("karmada_api_activity", "`systemctl is-active` prints one of the states that systemd documents"),
    ("karmada_stored", "our script prints a line of fields for each control plane"),
    ("karmada_user_entry", "`getent passwd` prints the comment that windlass gave the user"),
    ("load_balancer_found_before", "our script prints a number"),
    ("preflight_clock", "our script prints a number"),
    ("preflight_clock_again", "our script prints a number"),
    ("preflight_listening", "our script prints the ports in hexadecimal, and how the list ended"),
    ("preflight_services_running", "`systemctl list-units` prints the name of a unit in the first column"),
];

/// The outputs on which a line decides by their text, by the names of the variables that hold them. The last line `end`, by which our
/// own scripts report that their output is complete, is no message.
fn outputs_decided_on(line: &str) -> Vec<String> {
    static LOOP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bfor [\w, ]+ in ").expect("it is a pattern"));
    static DECISIONS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        [
            r"\bin (\w+)\.stdout(?:_lines)?\b",
            r"\b(\w+)\.stdout(?:_lines)?\b[^'{}]*(?:is (?:not )?(?:search|match)|[!=]= ')",
            r"\b(\w+)\.stdout(?:_lines)?\b[^{}]*(?:select|reject)\('(?:search|match)'",
        ]
        .map(|text| Regex::new(text).expect("it is a pattern"))
    });
    let line = LOOP.replace_all(line, "").replace("default('')", "default").replace("!= 'end'", "");
    let found =
        |decision: &Regex| -> Vec<String> { decision.captures_iter(&line).map(|found| found[1].to_owned()).collect() };
    DECISIONS.iter().flat_map(found).collect()
}

/// A script of ours may print other words tomorrow. Tasks decide by exit codes, numbers and lists.
#[test]
fn no_task_depends_on_the_words_that_a_script_prints() {
    let decides = |line: &str| !outputs_decided_on(line).is_empty();
    assert!(decides("changed_when: \"'was out' in load_balancer_taken_back.stdout\""));
    assert!(decides("when: x.stdout is search('denied')"));
    assert!(decides("when: x.stdout | default('') == 'nothing to do'"));
    assert!(decides("that: \"'a b' not in x.stdout_lines\""));
    assert!(decides("{{ x.stdout_lines | select('match', 'gone') | list }}"));
    assert!(!decides("when: x.stdout_lines | length > 0"));
    assert!(!decides("{% for line in x.stdout_lines[:-1] %}"));
    assert!(!decides("failed_when: x.stdout_lines | last | default('') != 'end'"));
    assert!(!decides("changed_when: x.stdout | default('') == item"));
    let mut files = Vec::new();
    for directory in ["roles", "playbooks"] {
        files_below(&root().join(directory), &mut files);
    }
    let mut used = BTreeSet::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "yml")) {
        for output in fs::read_to_string(path).expect("it can be read").lines().flat_map(outputs_decided_on) {
            let is_data = OUTPUTS_THAT_ARE_DATA.iter().any(|(name, _)| *name == output);
            assert!(is_data, "{}: a task decides by the words in {output}", path.display());
            used.insert(output);
        }
    }
    let unused: Vec<_> = OUTPUTS_THAT_ARE_DATA.iter().filter(|(name, _)| !used.contains(*name)).collect();
    assert!(unused.is_empty(), "no task decides by these outputs any more: {unused:?}");
}

/// The verbs with which names of plays and tasks begin. Add one if none of these says what a new task does.
#[rustfmt::skip]
const VERBS: [&str; 67] = [
    "Add", "Apply", "Archive", "Check", "Choose", "Clear", "Compare", "Complete", "Compute", "Configure", "Connect", "Copy", "Count",
    "Create", "Decide",
    "Defragment", "Deploy", "Downgrade", "Drain", "Exchange", "Find", "Forbid", "Generate", "Grant", "Group", "Install", "Join", "List", "Load",
    "Log", "Mark", "Measure", "Move", "Observe", "Parse", "Prepare", "Promote", "Publish", "Query", "Read", "Record", "Recover", "Replace",
    "Register", "Release", "Reload", "Remove", "Renew", "Report", "Request", "Restart", "Restore", "Roll", "Run", "Save", "Set", "Show",
    "Start", "Stop", "Store", "Submit", "Take", "Turn", "Update", "Upgrade", "Wait", "Write",
];

/// Whether a name is an instruction: one of these verbs, and an object.
fn is_instruction(name: &str) -> bool {
    let mut words = name.split_whitespace();
    words.next().is_some_and(|verb| VERBS.contains(&verb)) && words.next().is_some()
}

/// The names of plays and tasks, and of the tasks in them.
fn names_of_tasks(value: &Value, found: &mut Vec<String>) {
    for task in value.as_sequence().into_iter().flatten() {
        found.extend(task.get("name").and_then(Value::as_str).map(str::to_owned));
        for inner in ["tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"] {
            names_of_tasks(task.get(inner).unwrap_or(&Value::Null), found);
        }
    }
}

/// A person who watches a run reads only these names.
#[test]
fn every_name_of_a_play_or_task_is_an_instruction() {
    let sample = "- hosts: all\n  tasks:\n    - name: Check the host\n      block:\n        - name: Let workloads be moved again\n";
    let mut names = Vec::new();
    names_of_tasks(&serde_yaml::from_str(sample).expect("it is YAML"), &mut names);
    assert_eq!(names, ["Check the host", "Let workloads be moved again"]);
    assert!(is_instruction("Check the host"));
    for riddle in ["Let workloads be moved again", "The member is ready", "Checks the host", "reload systemd", "Wait"] {
        assert!(!is_instruction(riddle), "{riddle}");
    }
    let mut files: Vec<PathBuf> = below("playbooks");
    for role in below("roles") {
        ["tasks", "handlers"].iter().for_each(|part| files_below(&role.join(part), &mut files));
    }
    let mut seen = 0;
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "yml")) {
        let mut names = Vec::new();
        names_of_tasks(&yaml(path), &mut names);
        let riddles: Vec<&String> = names.iter().filter(|name| !is_instruction(name)).collect();
        assert!(riddles.is_empty(), "{}: begin these names with a verb of VERBS: {riddles:#?}", path.display());
        seen += names.len();
    }
    assert!(seen > 500, "only {seen} names were read");
}

/// The options of all roles, of whatever entry point.
fn options_of_roles() -> BTreeSet<String> {
    let specs = below("roles").into_iter().map(|role| yaml(&role.join("meta/argument_specs.yml")));
    let options = |specs: Value| -> Vec<String> {
        let entries = specs["argument_specs"].as_mapping().cloned().unwrap_or_default();
        entries
            .values()
            .filter(|entry| entry["options"].is_mapping())
            .flat_map(|entry| keys(&entry["options"]))
            .collect()
    };
    specs.flat_map(options).collect()
}

/// windlass fills the variables and groups of the roles from its own table of components.
#[test]
fn playbooks_with_a_component_table_of_another_layout_are_refused() {
    let scratch = tempfile::tempdir().expect("a directory");
    let table = scratch.path().join("roles/karmada_component_table/vars/main.yml");
    fs::create_dir_all(table.parent().expect("a directory")).expect("it can be created");
    fs::create_dir(scratch.path().join("playbooks")).expect("it can be created");
    let plan = |text: &str| {
        fs::write(&table, text).expect("it is written");
        let mut windlass = Command::cargo_bin("windlass").expect("it is built");
        windlass.current_dir(scratch.path()).args(["plan", "--playbooks"]).arg(scratch.path().join("playbooks"));
        let output = windlass.arg("-f").arg(root().join("tests/resources/good/small.yaml")).output().expect("it runs");
        assert!(!output.status.success(), "a plan without playbooks cannot succeed");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (text, found) in [("karmada_component_table_layout: 999\n", "layout 999"), ("a: 1\n", "no layout number")] {
        let said = plan(text);
        let path = table.display();
        let why = format!(
            "error: cannot use these playbooks: the component table {path} has {found}; this windlass reads layout "
        );
        assert!(said.contains(&why) && said.contains("hint: use the playbooks that belong to this version"), "{said}");
    }
    let own = root().join("roles/karmada_component_table/vars/main.yml");
    let said = plan(&fs::read_to_string(own).expect("it can be read"));
    assert!(!said.contains("layout"), "{said}");
}

/// Whether playbooks have a name as a word.
fn playbooks_name(name: &str) -> bool {
    let other = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let files = below("playbooks").into_iter().filter(|path| path.extension().is_some_and(|end| end == "yml"));
    files
        .into_iter()
        .any(|path| fs::read_to_string(path).expect("it can be read").split(other).any(|word| word == name))
}

/// For playbooks of a user's own, as the documentation says.
const FOR_USERS: [&str; 2] = [variable::FOREIGN_MEMBERS, variable::HOST_LABELS];

/// What playbooks take themselves.
const OF_PLAYBOOKS: [&str; 14] = [
    variable::COMPONENT,
    variable::CONFIRM_CLUSTER_NAME,
    variable::CONFIRM_INSTANCE,
    variable::ETCD_BACKUP_ID,
    variable::ETCD_BACKUP_LOCAL,
    variable::ETCD_BACKUP_REHEARSES,
    variable::ETCD_BACKUP_STAGING,
    variable::ETCD_MONITORING_DIR,
    variable::ETCD_REHEARSED_BACKUP,
    variable::ETCD_REHEARSED_FILE,
    variable::ETCD_RESTORE_BACKUP,
    variable::ETCD_RESTORE_ID,
    variable::ETCD_RESTORE_SNAPSHOT,
    variable::HOST,
];

/// What only dry runs of a plan have, so that it is no option of a role.
const OF_PLANS: [&str; 1] = [variable::PENDING_STAGES];

#[test]
fn every_variable_that_windlass_reads_or_sets_is_one_of_the_roles() {
    let options = options_of_roles();
    for name in OF_PLANS {
        let role = root().join("roles/member/tasks/check_control_plane.yml");
        assert!(fs::read_to_string(role).expect("it can be read").contains(name), "no role reads {name}");
    }
    for name in variable::ALL {
        let (of_playbook, for_users) = (OF_PLAYBOOKS.contains(name), FOR_USERS.contains(name));
        let known =
            options.contains(*name) || of_playbook && playbooks_name(name) || for_users || OF_PLANS.contains(name);
        assert!(known, "no role has the variable {name}");
    }
    // Those of components, and whatever else a deployment with all fields sets.
    let whole = root().join("tests/resources/good/whole.yaml").display().to_string();
    let inventory = Inventory::load(&[whole], &Keyring::default()).expect("it is well written");
    let of_groups = inventory.groups.values().flat_map(|group| group.vars.keys());
    let of_hosts = inventory.hosts.values().flat_map(|host| host.vars.keys());
    let set: BTreeSet<&str> = of_groups.chain(of_hosts).map(|name| &**name).collect();
    assert!(set.len() > 50, "{set:?}");
    let of_ansible = |name: &str| name.starts_with("ansible_") || name.starts_with("inventory_");
    let ours = set.into_iter().filter(|name| !of_ansible(name) && !FOR_USERS.contains(name));
    let strange: Vec<&str> = ours.filter(|name| !options.contains(*name)).collect();
    assert!(strange.is_empty(), "no role has these variables: {strange:?}");
}

#[test]
fn every_group_of_a_play_is_one_that_windlass_fills_and_the_other_way_round() {
    // Filled by the play before, from the hosts that members name.
    const BY_PLAYBOOKS: [&str; 2] = ["etcd_answering", "etcd_silent"];
    let components: Vec<&str> = TABLE.iter().map(|entry| entry.role.as_str()).collect();
    let mut named = BTreeSet::new();
    for playbook in below("playbooks").iter().filter(|path| path.extension().is_some_and(|end| end == "yml")) {
        for play in yaml(playbook).as_sequence().expect("it is a list of plays") {
            let pattern = play["hosts"].as_str().unwrap_or_default();
            if !pattern.contains("{{") {
                named.extend(pattern.split([':', ',']).map(|part| part.trim_start_matches(['!', '&']).to_owned()));
            }
        }
    }
    named.retain(|name| !matches!(name.as_str(), "" | "all" | "localhost"));
    let known = |name: &str| group::ALL.contains(&name) || components.contains(&name) || BY_PLAYBOOKS.contains(&name);
    let strange: Vec<&String> = named.iter().filter(|name| !known(name)).collect();
    assert!(strange.is_empty(), "windlass fills no such group: {strange:?}");
    // The group of everything carries variables, and the members that are to be joined are for playbooks of a user's own.
    let without_play = [group::DEPLOYMENT, group::ADD_MEMBER, group::API_SERVER];
    for name in group::ALL.iter().filter(|name| !without_play.contains(name)) {
        assert!(named.contains(*name), "no play is for the group {name}");
    }
}

/// A name that is typed in one place cannot be misspelt in another.
#[test]
fn names_that_are_shared_with_roles_are_written_in_one_file() {
    let mut files = Vec::new();
    for folder in ["cli", "deployment", "engine", "inventory", "launch", "resource"] {
        files_below(&root().join("src").join(folder), &mut files);
    }
    let tests =
        |path: &Path| path.ends_with("names.rs") || path.iter().any(|part| part == "tests" || part == "tests.rs");
    let mut wrong = Vec::new();
    for path in files.iter().filter(|path| !tests(path)) {
        let text = fs::read_to_string(path).expect("it can be read");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        // Names of one word stand for other things, too.
        for name in group::ALL.iter().chain(variable::ALL).filter(|name| name.contains('_')) {
            if code.contains(&format!("\"{name}\"")) {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "use src/resource/names.rs: {wrong:#?}");
}

/// The script of a task, run with other programs in its way: nobody may take a load balancer that does not answer for one without
/// connections.
#[test]
fn a_load_balancer_that_does_not_answer_is_not_drained() {
    let text = std::fs::read_to_string("roles/load_balancer/tasks/drain.yml").unwrap();
    let tasks: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
    let script = tasks[0]["ansible.builtin.shell"]["cmd"].as_str().unwrap().to_owned();
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    let socat = "#!/bin/sh\nread -r line\necho \"$line\" >>\"$log\"\n[ \"$line\" = 'show stat' ] || exit 0\n\
                 [ \"$(wc -l <\"$log\")\" -lt \"$fails_from\" ] || exit 1\n\
                 [ -z \"$silent\" ] || exit 0\necho '# pxname,svname'\n\
                 for h in h1 h2; do echo \"whole,$h,0,0,$connections,,,,,,,,,,,,,UP,\"; done\n";
    for (name, text) in [("socat", socat), ("systemctl", "#!/bin/sh\nexit $unit_state\n")] {
        program::write_program(at(name), text);
    }
    let run = |changes: &[(&str, &str)]| {
        std::fs::write(at("log"), "").unwrap();
        let path = format!("{}:{}", scratch.path().display(), std::env::var("PATH").unwrap());
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).env("PATH", path).env("log", at("log")).env("socket", at("socket"));
        command.envs([("unit", "lb"), ("server", "h1"), ("seconds", "1"), ("unit_state", "0"), ("connections", "0")]);
        command.envs([("fails_from", "99"), ("silent", "")]).envs(changes.iter().copied());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), std::fs::read_to_string(at("log")).unwrap())
    };
    let (code, out, asked) = run(&[]);
    assert_eq!((code, out.as_str()), (Some(0), "connections left: 0\n"));
    assert!(asked.contains("set server whole/h1 state drain\nset server apiserver/h1 state drain\n"), "{asked}");
    assert_eq!(run(&[("connections", "2")]).1, "connections left: 2\n");
    for failing in [("fails_from", "1"), ("fails_from", "5"), ("silent", "1"), ("unit_state", "137")] {
        let (code, out, _) = run(&[failing, ("seconds", "0")]);
        assert!(code == Some(1) && out.is_empty(), "{failing:?}: {code:?} {out}");
    }
    assert_eq!(run(&[("unit_state", "3")]), (Some(0), String::new(), String::new()));
}
