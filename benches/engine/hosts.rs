//! Many hosts: a play of ten tasks on a thousand hosts that exist in memory only, through the whole engine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use windlass::engine::{self, BuildContext, Defaults, Event, Job, Options, Tags};
use windlass::inventory::Inventory;
use windlass::playbook::load::Loader;
use windlass::template::Templar;
use windlass::value::Vars;
use windlass::value::vault::Keyring;

use crate::fake_host::FakeHosts;
use crate::measure::{cpu, peak};

const HOSTS: usize = 1_000;

const TASKS: &str = r#"
    - set_fact: {place: "rack {{ number }} of {{ groups['all'] | length }}"}
    - command: /bin/true {{ place }}
      register: ran
    - assert: {that: ["ran.rc == 0", "place is defined"]}
    - file: {path: /srv/app, state: directory, mode: "0755"}
    - copy: {content: "{{ place }}\n", dest: "/srv/app/{{ inventory_hostname }}", mode: "0644"}
    - template: {src: app.conf.j2, dest: /srv/app/app.conf}
    - stat: {path: /srv/app/app.conf}
      register: file
    - debug: {msg: "{{ file.stat.size }} bytes on {{ inventory_hostname }}"}
    - command: /bin/true
      when: number % 2 == 0
    - shell: echo {{ item }}
      loop: [a, b]
"#;

const TEMPLATE: &str =
    "name = {{ inventory_hostname }}\n{% for i in range(5) %}\npeer.{{ i }} = {{ place }}\n{% endfor %}\n";

pub(crate) fn run(scratch: &Path) {
    std::fs::write(scratch.join("app.conf.j2"), TEMPLATE).expect("the scratch directory takes a file");
    let begun = Instant::now();
    let run = Run::load(scratch, &play(TASKS), HOSTS);
    let loaded = begun.elapsed();
    let results = run.go();
    assert_eq!(results, HOSTS * 12, "ten tasks, one of them with two items");
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "hosts: {HOSTS} hosts, 10 tasks: {seconds:.2} s, {:.2} of them to load; {:.2} s of CPU; {} MiB (aims: 3 s, 300 MiB)",
        loaded.as_secs_f64(),
        cpu(false),
        peak()
    );
}

/// A playbook of one play.
pub(crate) fn play(tasks: &str) -> String {
    format!("- hosts: all\n  gather_facts: false\n  tasks:\n{}", tasks.trim_start_matches('\n'))
}

/// A run that is about to begin, on hosts in memory.
pub(crate) struct Run(Job);

impl Run {
    /// Writes playbook and inventory into a directory, and loads them from there.
    pub(crate) fn load(directory: &Path, playbook: &str, hosts: usize) -> Run {
        let (path, inventory) = (directory.join("play.yml"), directory.join("hosts.ini"));
        let lines: String = (0..hosts).map(|number| format!("host{number} number={number}\n")).collect();
        std::fs::write(&path, playbook).expect("the scratch directory takes a playbook");
        std::fs::write(&inventory, lines).expect("the scratch directory takes an inventory");
        let (keyring, extra_vars, templar) = (Arc::<Keyring>::default(), Arc::<Vars>::default(), Templar::new());
        let known = Arc::new(BuildContext { templar: templar.clone() });
        let loader = Arc::new(Loader::new(known, keyring.clone(), extra_vars.clone(), Vec::new()));
        let plays = loader.load_playbook(&path).expect("the playbook is right");
        let inventory = Inventory::load(&[inventory.display().to_string()], &keyring).expect("so is the inventory");
        Run(Job {
            playbooks: vec![plays.into_iter().map(Arc::new).collect()],
            inventory,
            limit: None,
            tags: Tags::default(),
            check: false,
            diff: false,
            forks: 20,
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

    /// Runs it; gives the number of results, those of items counted. No host may fail.
    pub(crate) fn go(self) -> usize {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads can be had");
        runtime.block_on(async {
            let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
            let ways = Arc::new(FakeHosts);
            let running = tokio::spawn(engine::run_over(self.0, ways, sender, Arc::new(AtomicBool::new(false))));
            let mut results = 0;
            while let Some(reported) = events.recv().await {
                results += usize::from(matches!(reported.event, Event::Result { .. } | Event::Item { .. }));
            }
            let recap = running.await.expect("a run does not panic").expect("the run goes through");
            assert!(recap.lost == Default::default(), "{recap:?}");
            results
        })
    }
}
