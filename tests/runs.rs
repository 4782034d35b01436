//! The store of runs through the program: what is listed and shown, also of a run under way or of a dead process, and that no secret
//! is in it.

#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const BLOCKED: &str = "
- name: Block
  hosts: all
  gather_facts: false
  tasks:
    - {name: Say, debug: {msg: before}}
    - {name: Wait, shell: 'until test -e go; do sleep 0.05; done'}
    - {name: Say again, debug: {msg: after}}
";

/// A directory with playbooks and a state directory.
struct World(TempDir);

impl World {
    fn new(playbook: &str) -> World {
        let world = World(tempfile::tempdir().unwrap());
        world.write("p.yml", playbook);
        world
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn windlass(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        for name in ["NO_COLOR", "WINDLASS_LOG", "ANSIBLE_CONFIG", "WINDLASS_RUNS_DIRECTORY"] {
            command.env_remove(name);
        }
        command.env("WINDLASS_RUNS", "true").env("XDG_STATE_HOME", self.path("state")).env("HOME", self.0.path());
        command.current_dir(self.0.path()).args(arguments).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        ended(self.windlass(arguments).output().unwrap())
    }

    fn playbook(&self) -> Command {
        self.windlass(&["playbook", "-i", "h1,h2,", "-c", "local", "p.yml"])
    }

    fn runs(&self) -> Vec<Value> {
        let (code, out, err) = self.run(&["runs", "--output", "json"]);
        assert_eq!(code, 0, "{err}");
        serde_json::from_str(&out).unwrap()
    }

    fn blocked(&self) -> Child {
        let child = self.playbook().stdout(Stdio::piped()).spawn().unwrap();
        within("the run is recorded", || {
            self.runs().first().is_some_and(|run| run["last_sequence"].as_u64() >= Some(5))
        });
        child
    }

    fn all_files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        let mut folders = vec![self.path("state")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => files.push((path.display().to_string(), std::fs::read(&path).unwrap())),
                }
            }
        }
        files
    }
}

fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn within(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < until, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_run_is_listed_and_shown_as_it_was() {
    let world = World::new(
        "
- name: One
  hosts: all
  gather_facts: false
  tasks:
    - {name: Run, command: 'echo {{ item }}', loop: [a, b]}
    - {name: Fail, command: 'sh -c \"echo lost >&2; exit 3\"', when: inventory_hostname == 'h2'}
    - {name: Show, debug: {msg: [1, {a: b}]}}
",
    );
    let (code, out, _) =
        ended(world.playbook().args(["--output", "json=events.json", "--output", "human"]).output().unwrap());
    assert_eq!(code, 2, "{out}");
    let [run] = &world.runs()[..] else { panic!("not one run") };
    assert_eq!(
        (&run["command"], &run["outcome"], &run["exit_code"]),
        (&"playbook".into(), &"failed".into(), &2.into())
    );
    assert_eq!(run["command_line"], "windlass playbook -i 'h1,h2,' p.yml");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/events.md")).unwrap();
    let undocumented = run.as_object().unwrap().keys().find(|field| !page.contains(&format!("`{field}`")));
    assert_eq!(undocumented, None);
    assert_eq!((&run["running"], &run["complete"], &run["deployment"]), (&false.into(), &true.into(), &Value::Null));
    assert_eq!((&run["hosts"]["h1"]["changed"], &run["hosts"]["h2"]["failed"]), (&1.into(), &1.into()), "{run}");

    let id = run["id"].as_str().unwrap();
    for name in ["latest", id, &id[..12].to_uppercase()] {
        let (code, shown, err) = world.run(&["logs", name]);
        assert_eq!((code, shown, err), (0, out.clone(), String::new()), "{name}");
    }
    let (_, events, _) = world.run(&["logs", "latest", "--output", "json"]);
    assert_eq!(events, std::fs::read_to_string(world.path("events.json")).unwrap());
    let parsed: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(parsed.iter().all(|event| event["run"] == *id && event["format"] == 1), "{events}");
    assert_eq!((&parsed[0]["event"], &parsed.last().unwrap()["event"]), (&"run_start".into(), &"run_end".into()));

    let (_, table, _) = world.run(&["runs"]);
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((row[0], row[3], row[4], row[6]), (&id[..12], "playbook", "-", "failed"), "{table}");
    let (code, _, err) = world.run(&["logs", "zz"]);
    assert_eq!((code, err.lines().next()), (1, Some("error: no run starts with \"zz\"")), "{err}");
}

#[test]
fn no_secret_is_in_the_store() {
    let world = World::new(
        "
- name: Use secrets
  hosts: all
  gather_facts: true
  vars_files: [secrets.yml]
  tasks:
    - {name: 'Show {{ password }}', debug: {msg: 'it is {{ password }}'}}
    - {name: Run, command: 'echo {{ password | b64encode }} {{ pin }}', loop: ['{{ password }}']}
    - {name: Hidden, command: 'echo not-in-a-vault', no_log: true}
    - {name: Write, copy: {content: 'a={{ password }}', dest: '{{ playbook_dir }}/out'}, diff: true}
    - {name: Use an argument, command: 'true {{ token }}', no_log: true}
    - {name: Fail, fail: {msg: 'no {{ password }}'}}
",
    );
    world.write("password", "of-the-vault\n");
    world.write("secrets.yml", "password: tops3cret/and+more\npin: 8273645\n");
    let (code, _, err) = world.run(&["vault", "encrypt", "--vault-password-file", "password", "secrets.yml"]);
    assert_eq!(code, 0, "{err}");
    let arguments = ["--vault-password-file", "password", "-e", "token=given-on-the-command-line", "-v"];
    // Gathered facts have the environment.
    let mut playbook = world.playbook();
    playbook.env("CI_TOKEN", "of-the-environment").args(arguments);
    let (code, out, _) = ended(playbook.output().unwrap());
    assert_eq!(code, 2, "{out}");
    let (_, events, _) = world.run(&["logs", "latest", "--output", "json"]);
    assert!(events.contains("it is ***") && events.contains("run_end"), "{events}");
    let (_, runs, _) = world.run(&["runs", "--output", "json"]);
    let mut files = world.all_files();
    // The events are compressed in the file, so they are looked at as they come out of it, too.
    files.push(("events".to_owned(), events.into_bytes()));
    files.push(("runs".to_owned(), runs.into_bytes()));
    let secrets = [
        "tops3cret",
        "dG9wczNjcmV0",
        "8273645",
        "not-in-a-vault",
        "given-on-the-command-line",
        "of-the-vault",
        "of-the-environment",
    ];
    for (name, content) in &files {
        for secret in secrets {
            let found = content.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} is in {name}");
        }
    }
}

#[test]
fn a_run_under_way_is_followed_to_its_end() {
    let world = World::new(BLOCKED);
    let run = world.blocked();
    let [listed] = &world.runs()[..] else { panic!("not one run") };
    assert_eq!((&listed["running"], &listed["outcome"], &listed["ended"]), (&true.into(), &Value::Null, &Value::Null));
    let (_, now, note) = world.run(&["logs", "latest"]);
    assert!(now.contains("before") && !now.contains("RECAP"), "{now}");
    assert!(note.contains("under way"), "{note}");
    let mut follower = world.windlass(&["logs", "latest", "-f"]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    assert!(follower.try_wait().unwrap().is_none(), "it does not follow");
    world.write("go", "");
    let (code, out, _) = ended(run.wait_with_output().unwrap());
    let (followed, shown, _) = ended(follower.wait_with_output().unwrap());
    assert_eq!((code, followed), (0, 0));
    assert_eq!(shown, out);
    assert_eq!(world.runs()[0]["outcome"], "succeeded");
}

#[test]
fn a_run_that_was_killed_is_interrupted() {
    let world = World::new(BLOCKED);
    let mut run = world.blocked();
    let mut follower =
        world.windlass(&["logs", "latest", "-f"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    let [listed] = &world.runs()[..] else { panic!("not one run") };
    assert_eq!(
        (&listed["running"], &listed["outcome"], &listed["exit_code"]),
        (&false.into(), &"interrupted".into(), &Value::Null)
    );
    within("the follower ends", || follower.try_wait().unwrap().is_some());
    let (code, _, err) = ended(follower.wait_with_output().unwrap());
    assert_eq!((code, err.trim()), (0, "interrupted: the process of the run ended without recording its end"));
    // The next run finds nothing in its way.
    world.write("go", "");
    assert!(world.playbook().output().unwrap().status.success());
    let outcomes: Vec<Value> = world.runs().iter().map(|run| run["outcome"].clone()).collect();
    assert_eq!(outcomes, ["succeeded", "interrupted"]);
}

#[test]
fn a_store_that_cannot_be_written_is_one_warning() {
    let world =
        World::new("[{name: P, hosts: all, gather_facts: false, tasks: [{command: 'sleep 0.5'}, {command: 'true'}]}]");
    world.write("file", "");
    let below_a_file = world.path("file/windlass").display().to_string();
    for directory in [below_a_file.as_str(), "/proc/windlass"] {
        let (code, out, err) = ended(world.playbook().env("WINDLASS_RUNS_DIRECTORY", directory).output().unwrap());
        assert_eq!(code, 0, "{out}{err}");
        let warning = format!("warning: cannot write to the store of runs: {directory}: ");
        assert_eq!((out + &err).matches(&warning).count(), 1);
    }
    // A server that gives a run its id finds it by its record alone, so that it does nothing without one.
    world.write("p.yml", "[{name: P, hosts: all, gather_facts: false, tasks: [{command: 'touch done'}]}]");
    let id = "01m8e0000000000000000000p1";
    let with_id = |directory: &str| {
        let mut command = world.playbook();
        ended(command.args(["--run-id", id]).env("WINDLASS_RUNS_DIRECTORY", directory).output().unwrap())
    };
    let (code, _, err) = with_id(&below_a_file);
    assert!(code == 1 && err.contains("cannot record the run, so nothing was done: "), "{code} {err}");
    assert!(!world.path("done").exists());
    assert_eq!(with_id(world.path("elsewhere").to_str().unwrap()).0, 0);
    assert!(world.path("done").exists());
    let (code, out, _) = ended(world.playbook().env("WINDLASS_RUNS", "false").output().unwrap());
    assert_eq!((code, out.contains("warning")), (0, false), "{out}");
    assert!(!world.path("state").exists());
    assert_eq!(world.runs().len(), 0);
    let (code, _, err) = world.run(&["logs", "latest"]);
    assert_eq!((code, err.as_str()), (1, "error: no run is recorded yet\n"));
}

#[test]
fn a_plan_is_recorded_with_its_deployment_stages_and_messages() {
    let world = World::new("[]");
    world.write("hosts.ini", "[etcd]\nh1 ansible_host=127.0.0.1 ansible_port=1\n[karmada_control_plane]\nh1\n[all:vars]\nkarmada_deployment=prod\n");
    let (code, out, err) = world.run(&["plan", "-i", "hosts.ini"]);
    let [run] = &world.runs()[..] else { panic!("not one run") };
    assert_eq!(
        (&run["command"], &run["deployment"], &run["exit_code"]),
        (&"plan".into(), &"prod".into(), &code.into()),
        "{out}{err}"
    );
    assert_eq!((&run["stages"][0]["stage"], &run["stages"][0]["check"]), (&"etcd".into(), &true.into()), "{run}");
    assert_eq!(run["command_line"], "windlass plan -i hosts.ini");
    let (_, shown, _) = world.run(&["logs", "latest"]);
    for line in out.lines().chain(err.lines()) {
        assert!(shown.lines().any(|of_log| of_log == line), "{line:?} is not in the log:\n{shown}");
    }
    assert_eq!(world.run(&["runs", "--deployment", "prod"]).1.lines().count(), 2);
    assert_eq!(world.run(&["runs", "--deployment", "other"]).1.lines().count(), 1);
    world.write("prod.yml", "apiVersion: windlass.dev/v1alpha1\nkind: KarmadaDeployment\nmetadata: {name: prod}\n");
    assert_eq!(world.run(&["runs", "-f", "prod.yml"]).1.lines().count(), 2);

    let (_, out, _) = world.run(&["plan", "-i", "hosts.ini", "--output", "json"]);
    let events: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let is_plan = |event: &&Value| {
        event["stream"] == "stdout" && event["text"].as_str().is_some_and(|text| text.contains("prod"))
    };
    assert!(events.iter().any(|event| is_plan(&event)), "{out}");
    assert_eq!(world.run(&["logs", "latest", "--output", "json"]).1, out);
}

/// A file of the store that another version wrote is no reason to fail.
#[test]
fn a_newer_store_is_refused_and_the_run_goes_on() {
    let world = World::new("[{name: P, hosts: all, gather_facts: false, tasks: [{command: 'true'}]}]");
    assert!(world.playbook().output().unwrap().status.success());
    let database = world.path("state/windlass/runs.db");
    set_layout(&database, 99);
    let (code, out, err) = ended(world.playbook().output().unwrap());
    assert_eq!(code, 0, "{out}{err}");
    assert!((out + &err).contains("a newer windlass wrote it (layout 99; this one reads up to 1)"));
    let (code, _, err) = world.run(&["runs"]);
    assert!(code == 1 && err.contains("cannot read the store of runs") && err.contains("layout 99"), "{err}");
    set_layout(&database, 1);
    assert_eq!(world.runs().len(), 1);
}

fn set_layout(database: &Path, layout: i64) {
    rusqlite::Connection::open(database).unwrap().pragma_update(None, "user_version", layout).unwrap();
}
