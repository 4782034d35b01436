//! Two runs in one process, with projects whose filters, lookups and modules have the same names: each run has its own. At the same
//! time, or one after the other with files that were changed in between.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use windlass::engine::{self, BuildContext, Defaults, Event, Job, Options, Recap, Tags};
use windlass::inventory::Inventory;
use windlass::playbook::load::Loader;
use windlass::template::Templar;
use windlass::value::Vars;
use windlass::value::vault::Keyring;

#[path = "shared/program.rs"]
mod program;
use program::write_program;

/// The same in every project. The loop gives the runs time to be in each other's way.
const PLAY: &str = "
- hosts: all
  gather_facts: false
  tasks:
    - own_module:
      register: module
    - copy:
        dest: '{{ playbook_dir }}/said'
        content: >-
          {{ 1 | own_filter }} {{ lookup('own_lookup') }} {{ module.of }} {{ hostvars['h'].deep }}
          {% if true %}{{ [1] | map('own_filter') | first }}{% endif %}
      vars: {item: 0}
    - debug: {msg: '{{ item | own_filter }}'}
      loop: '{{ range(5) | list }}'
    - template: {src: said.j2, dest: '{{ playbook_dir }}/file'}
    - copy: {src: name, dest: '{{ playbook_dir }}/copied'}
    - bundle_info: {bundle: '{{ playbook_dir }}/bundle', components: [program], architecture: x86_64}
      register: bundle
    - copy: {content: '{{ bundle.components.program.sha256 }}', dest: '{{ playbook_dir }}/digest'}
";

fn program(path: &Path, prints: &str) {
    write_program(path, format!("#!/bin/sh\necho '{prints}'\n"));
}

/// A project whose own programs say its name; one without a name has none.
fn project(directory: &Path, name: Option<&str>) -> Result<Job, String> {
    if let Some(name) = name {
        program(&directory.join("filter_plugins/own_filter"), &format!("\"{name}\""));
        program(&directory.join("lookup_plugins/own_lookup"), &format!("[\"{name}\"]"));
        program(&directory.join("library/own_module"), &format!("{{\"changed\": false, \"of\": \"{name}\"}}"));
    }
    let (play, hosts) = (directory.join("play.yml"), directory.join("hosts.ini"));
    std::fs::write(&play, PLAY).unwrap();
    std::fs::write(&hosts, "h ansible_connection=local deep=\"{{ 2 | own_filter }}\"\n").unwrap();
    std::fs::create_dir_all(directory.join("files")).unwrap();
    std::fs::write(directory.join("files/name"), name.unwrap_or_default()).unwrap();
    let version = format!("program version 1.0.0\n# {}", name.unwrap_or_default());
    program(&directory.join("bundle/program"), &version);
    std::fs::create_dir_all(directory.join("templates")).unwrap();
    std::fs::write(directory.join("templates/said.j2"), "{{ 3 | own_filter }} {% include 'more.j2' %}\n").unwrap();
    std::fs::write(directory.join("templates/more.j2"), "{{ 4 | own_filter }}\n").unwrap();
    let (keyring, extra_vars, templar) = (Arc::<Keyring>::default(), Arc::<Vars>::default(), Templar::new());
    let known = Arc::new(BuildContext { templar: templar.clone() });
    let loader = Arc::new(Loader::new(known, keyring.clone(), extra_vars.clone(), Vec::new()));
    let plays = loader.load_playbook(&play).map_err(|complaints| format!("{complaints:?}"))?;
    Ok(Job {
        playbooks: vec![plays.into_iter().map(Arc::new).collect()],
        inventory: Inventory::load(&[hosts.display().to_string()], &keyring).unwrap(),
        limit: None,
        tags: Tags::default(),
        check: false,
        diff: false,
        forks: 5,
        verbosity: 0,
        extra_vars,
        defaults: Defaults::default(),
        options: Options::default(),
        keyring,
        templar,
        loader,
        caches: Arc::default(),
        prompted: Vars::new(),
        directory: directory.to_path_buf(),
        hold: None,
    })
}

/// Runs a job to its end; what its tasks said that failed.
async fn run(job: Job) -> (Recap, Vec<String>) {
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let running = tokio::spawn(engine::run(job, sender, Arc::new(AtomicBool::new(false))));
    let mut failed = Vec::new();
    while let Some(reported) = events.recv().await {
        if let Event::Result { result, .. } = reported.event {
            failed.extend(result.message.clone().filter(|_| result.status == engine::Status::Failed));
        }
    }
    (running.await.unwrap().unwrap(), failed)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_do_not_see_each_others_filters_lookups_and_modules() {
    let [one, two, none] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let jobs = (project(one.path(), Some("one")).unwrap(), project(two.path(), Some("two")).unwrap());
    let (first, second) = tokio::join!(run(jobs.0), run(jobs.1));
    for (directory, name, (recap, failed)) in [(&one, "one", first), (&two, "two", second)] {
        assert!(recap.lost == Default::default(), "{name}: {failed:?}");
        let said = |file: &str| std::fs::read_to_string(directory.path().join(file)).unwrap();
        assert_eq!(said("said").split_whitespace().collect::<Vec<_>>(), [name; 5], "{name}");
        assert_eq!(said("file").split_whitespace().collect::<Vec<_>>(), [name; 2], "{name}");
    }
    let refused = project(none.path(), None).err().expect("a project without such programs is refused");
    assert!(refused.contains("own_filter") && refused.contains("own_module"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_does_not_see_what_an_earlier_run_found_in_the_same_files() {
    let directory = tempfile::tempdir().unwrap();
    let mut digests = Vec::new();
    // Names of one length: the files have the same path and size.
    for name in ["one", "two"] {
        let (recap, failed) = run(project(directory.path(), Some(name)).unwrap()).await;
        assert!(recap.lost == Default::default(), "{name}: {failed:?}");
        let said = |file: &str| std::fs::read_to_string(directory.path().join(file)).unwrap();
        assert_eq!(said("said").split_whitespace().collect::<Vec<_>>(), [name; 5], "{name}");
        assert_eq!(said("file").split_whitespace().collect::<Vec<_>>(), [name; 2], "{name}");
        assert_eq!(said("copied"), name);
        digests.push(said("digest"));
    }
    assert!(digests[0].len() == 64 && digests[0] != digests[1], "{digests:?}");
}
